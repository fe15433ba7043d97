//! Rules that let a session's planner ask the service for less.
//!
//! ```text
//! logical    … engine's …
//!            filtered_aggregates   what filters of aggregates bound together, bounded once for all
//!            … engine's, which carry filters down …
//!            plan_scans     what each scan asks for, decided once
//!            aggregate_pushdown   numbers of mentions from the overview, smallest and largest from a first row
//! planner    require_time_bound   refuses conditions on the time that do not reach a scan of the default window
//! physical   sound_properties   hides what the engine derives wrongly
//!            … engine's …
//!            ordered_scan   the first rows of an order through joins, filters and further keys
//!            (limits again, which the rule above and orders of scans have set free)
//!            offset_pushdown   rows to leave out, left out by the service
//!            sort_here      full scans in an order that proves less than that of time, sorted here
//!            … engine's filters from joins …
//!            budget_check   what all scans take together, to be refused before the first request
//! ```
//!
//! `pass_through` is what nodes that pass rows on have in common, here and in bounded sessions.
//!
//! Answers are the same with and without the rules, which change what is asked; a session that has none of them asks for
//! more. The planner refuses what would be answered from the default window without a word.
//!
//! Invariant: a rule that cannot prove that the rows stay the same leaves the plan as it is.

mod aggregate_pushdown;
mod budget_check;
mod filtered_aggregates;
mod offset_pushdown;
mod ordered_scan;
mod pass_through;
mod plan_scans;
mod require_time_bound;
mod sort_here;
mod sound_properties;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;

use self::aggregate_pushdown::AggregatePushdown;
use self::budget_check::BudgetCheck;
use self::filtered_aggregates::FilteredAggregates;
use self::offset_pushdown::OffsetPushdown;
use self::ordered_scan::OrderedScan;
#[cfg(feature = "flight")]
pub(crate) use self::pass_through::{Pass, PassThroughExec};
use self::plan_scans::PlanScans;
use self::require_time_bound::RequireTimeBound;
use self::sort_here::SortHere;
use self::sound_properties::SoundProperties;

/// Adds the rules to a session's, and the planner that refuses. They go by the tables of a plan, whatever connection those
/// belong to.
pub(crate) fn with_rules(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let planner = builder.query_planner().take();
    let mut rules = builder.physical_optimizers().take().unwrap_or_default().rules;
    // Behind the engine's own pushing of orders, which takes what a scan takes whole; before filters that refer to plan
    // nodes, which must not be replaced afterwards.
    let behind = rules.iter().position(|rule| rule.name() == "PushdownSort").map_or(rules.len(), |at| at + 1);
    let own: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 4] =
        [Arc::new(OrderedScan), Arc::new(LimitPushdown::new()), Arc::new(OffsetPushdown), Arc::new(SortHere)];
    rules.splice(behind..behind, own);
    rules.insert(0, Arc::new(SoundProperties));
    rules.push(Arc::new(BudgetCheck));
    let mut logical = builder.optimizer().take().unwrap_or_default().rules;
    // Behind the engine's simplification, which makes instants of `now()`, and before it carries filters down.
    let before = logical.iter().position(|rule| rule.name() == "push_down_filter").unwrap_or_default();
    logical.insert(before, Arc::new(FilteredAggregates));
    // Last, where filters have reached the scans and what is not looked at is gone.
    logical.extend([Arc::new(PlanScans) as Arc<dyn OptimizerRule + Send + Sync>, Arc::new(AggregatePushdown)]);
    builder
        .with_physical_optimizer_rules(rules)
        .with_optimizer_rules(logical)
        .with_query_planner(Arc::new(RequireTimeBound::over(planner)))
}
