//! Rules that let a session's planner ask the service for less.
//!
//! ```text
//! logical    filtered_aggregates   what filters of aggregates bound together, bounded once for all
//!            … engine's …
//!            summary        numbers of mentions from the overview, smallest and largest from a first row
//! planner    unbounded      refuses conditions on the time that do not reach a scan of the default window
//! physical   sound_properties   hides what the engine derives wrongly
//!            … engine's …
//!            ordered_scan   the first rows of an order through joins, filters and further keys
//!            (limits again, which the rule above and orders of scans have set free)
//!            offset         rows to leave out, left out by the service
//!            sort_here      full scans in an order that proves less than that of time, sorted here
//!            … engine's filters from joins …
//!            announce       what all scans take together, to be refused before the first request
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
mod require_time_bound;
mod sort_here;
mod sound_properties;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;

use self::aggregate_pushdown::Summarize;
use self::budget_check::Announce;
use self::filtered_aggregates::FilteredAggregates;
use self::offset_pushdown::OffsetAtService;
use self::ordered_scan::OrderedScan;
pub(crate) use self::pass_through::{Pass, PassThroughExec};
use self::require_time_bound::RefuseUnbounded;
use self::sort_here::SortHere;
use self::sound_properties::SoundProperties;

/// Adds the rules to a session's, and the planner that refuses. They go by the tables of a plan, whatever connection those
/// belong to.
pub fn with_rules(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut rules = builder.physical_optimizers().take().unwrap_or_default().rules;
    // Behind the engine's own pushing of orders, which takes what a scan takes whole; before filters that refer to plan
    // nodes, which must not be replaced afterwards.
    let behind = rules.iter().position(|rule| rule.name() == "PushdownSort").map_or(rules.len(), |at| at + 1);
    let own: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 4] =
        [Arc::new(OrderedScan), Arc::new(LimitPushdown::new()), Arc::new(OffsetAtService), Arc::new(SortHere)];
    rules.splice(behind..behind, own);
    rules.insert(0, Arc::new(SoundProperties));
    rules.push(Arc::new(Announce));
    // The first one comes before the engine's, which carry its filters on; the other last, where filters have reached the
    // scans and what is not looked at is gone.
    let mut logical: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![Arc::new(FilteredAggregates)];
    logical.extend(builder.optimizer().take().unwrap_or_default().rules);
    logical.push(Arc::new(Summarize));
    builder
        .with_physical_optimizer_rules(rules)
        .with_optimizer_rules(logical)
        .with_query_planner(Arc::new(RefuseUnbounded))
}
