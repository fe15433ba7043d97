//! Rules of analysis and optimization: some reduce the requests of a query, others correct what the engine alone answers wrongly.
//!
//! ```text
//! analysis   grouped_expressions  expressions of grouping sets, and groups of random values, as columns
//!            unnested_keys  keys of tables hidden from plans that unnest arrays
//!            peer_frames    frames of windows whose sort key has no distances, by peers
//!            range_frames   distances of frames that the engine would round, or compute wrongly near a change of clocks
//!            local_times    local times of instants in a zone, instead of the engine's in UTC
//!            literals       numbers compared with keys, as text
//!            pattern_matching   LIKE … ESCAPE and SIMILAR TO
//!            row_comparison  rows compared member by member
//!            … engine's type coercion …
//!            (local_times again, for the casts of type coercion)
//!            interval_fields  fields of intervals, instead of the engine's totals
//!            interval_texts  texts as intervals: a number without a unit counts seconds
//!            time_literals  times without seconds, and beyond the range of nanoseconds
//!            nested_order   arrays and rows in whose order NULL is the greatest member
//!            interval_comparison   intervals compared by their length
//!            derived_conditions  correlated conditions above derived tables
//!            applied_subqueries  subqueries that the engine cannot turn into joins, as an aggregate over one
//!            subqueries     IN and EXISTS with three values, wherever they are written
//!            unknown_lists  lists of one operand that must stay NULL
//!            aggregate_filters  conditions without columns, kept above an aggregate of one row
//!            checked_arithmetic    integers that overflow, as errors
//!            exact_decimals  doubles as decimals of the digits that they are written with
//!            narrowed_decimals  casts that drop digits, kept on their side of a comparison
//!            positive_zero  zeros and NaN without a sign, also in tables that are not those of a service
//!            sort_keys      keys that occur twice, or have no effect, removed; again after the engine's simplifications
//! logical    … engine's, after sound_dependencies, which corrects the functional dependencies of aggregates, and with
//!            sound_keys around those that make keys of joins; nested_projections before the one that merges projections …
//!            filtered_aggregates   the time bounds of aggregate filters, combined into one filter
//!            … engine's, with sound_filters around the one that pushes filters down …
//!            plan_scans     the requests of each scan, decided once
//!            aggregate_pushdown   counts of mentions from the overview, smallest and largest from a first row
//! planner    require_time_bound   refuses conditions on the time that do not reach a scan of the default window
//!            misread_templates   notes on templates that are hardly meant, such as the month for minutes
//!            texts_of_times   notes on comparisons of times that are texts
//!            cut_days   notes on conditions in FILTER and CASE that leave one instant of a day
//!            other_case   notes on comparisons with values that the service writes in another case
//!            explained_defects   EXPLAIN names the defects of the engine that a statement would meet
//!            budget_check   the requests of all scans together, refused before the first one if they are too many
//! physical   sound_properties   hides properties that the engine derives incorrectly
//!            offset_order       keeps the sort below an OFFSET, until sorts are planned
//!            … engine's, with sound_statistics and filter_names around two of them …
//!            ordered_scan   the first rows of a sort order through joins, filters and further keys
//!            (limits again, now free to move after the rule above and after sort pushdown)
//!            offset_pushdown   offsets skipped by the service
//!            sort_here      full scans in a sort order that proves less than that of time, sorted locally
//!            divide_rows    stored mentions divided over cores, below aggregates
//!            … engine's filters from joins …
//!            sound_pruning      hides conditions from the pruning of files that it would misread
//!            read_once          the left side of a join by a condition, which the engine would read again if memory is short
//!            budget_check   refuses scans whose time range has no beginning
//! ```
//!
//! `pass_through` contains the shared code of nodes that pass rows on, in rules and in bounded sessions.
//!
//! Results are the same with and without the rules; a session without the rules only sends more requests. The planner
//! refuses queries that would otherwise silently read the default window.
//!
//! Invariant: a rule that cannot prove that the rows stay the same leaves the plan unchanged.

mod aggregate_filters;
mod aggregate_pushdown;
mod applied_subqueries;
mod budget_check;
mod checked_arithmetic;
mod cut_days;
mod derived_conditions;
#[cfg(feature = "store")]
mod divide_rows;
mod exact_decimals;
mod explained_defects;
pub(crate) mod expressions;
mod filter_names;
mod filtered_aggregates;
mod grouped_expressions;
mod interval_comparison;
mod interval_fields;
mod interval_texts;
mod literals;
mod local_times;
mod misread_templates;
mod narrowed_decimals;
mod nested_order;
mod nested_projections;
mod offset_order;
mod offset_pushdown;
mod ordered_scan;
mod other_case;
mod pass_through;
mod pattern_matching;
mod peer_frames;
mod plan_scans;
mod positive_zero;
mod range_frames;
mod read_once;
mod require_time_bound;
mod row_comparison;
mod sort_here;
mod sort_keys;
mod sound_dependencies;
mod sound_filters;
mod sound_keys;
mod sound_properties;
#[cfg(feature = "store")]
mod sound_pruning;
mod sound_statistics;
mod subqueries;
mod texts_of_times;
mod time_literals;
mod unknown_lists;
mod unnested_keys;
mod whole_input;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;

use self::aggregate_filters::AggregateFilters;
use self::aggregate_pushdown::AggregatePushdown;
use self::applied_subqueries::AppliedSubqueries;
use self::budget_check::BoundsCheck;
use self::checked_arithmetic::CheckedArithmetic;
use self::derived_conditions::DerivedConditions;
#[cfg(feature = "store")]
use self::divide_rows::DivideRows;
use self::exact_decimals::ExactDecimals;
use self::filter_names::FilterNames;
use self::filtered_aggregates::FilteredAggregates;
use self::grouped_expressions::GroupedExpressions;
pub(crate) use self::grouped_expressions::grouped_expressions;
use self::interval_comparison::IntervalComparison;
use self::interval_fields::IntervalFields;
use self::interval_texts::IntervalTexts;
use self::literals::Literals;
use self::local_times::LocalTimes;
use self::narrowed_decimals::NarrowedDecimals;
use self::nested_order::NestedOrder;
use self::nested_projections::NestedProjections;
use self::offset_order::{KeepOffsetOrder, ReleaseOffsetOrder};
use self::offset_pushdown::OffsetPushdown;
use self::ordered_scan::OrderedScan;
#[cfg(feature = "host")]
pub(crate) use self::pass_through::{Pass, PassThroughExec};
use self::pattern_matching::PatternMatching;
use self::peer_frames::PeerFrames;
use self::plan_scans::PlanScans;
use self::positive_zero::PositiveZero;
use self::range_frames::RangeFrames;
use self::read_once::ReadOnce;
#[cfg(feature = "distributed")]
pub(crate) use self::read_once::{is_read_once, read_once};
use self::require_time_bound::RequireTimeBound;
use self::row_comparison::RowComparison;
use self::sort_here::SortHere;
use self::sort_keys::SortKeys;
use self::sound_dependencies::{READERS, SoundDependencies};
use self::sound_filters::SoundFilters;
use self::sound_keys::SoundKeys;
use self::sound_properties::SoundProperties;
#[cfg(feature = "distributed")]
pub(crate) use self::sound_properties::{
    hides_order_of_results, hides_properties, without_order_of_results, without_properties,
};
#[cfg(feature = "store")]
use self::sound_pruning::SoundPruning;
use self::sound_statistics::SoundStatistics;
use self::subqueries::Subqueries;
use self::time_literals::TimeLiterals;
use self::unknown_lists::UnknownLists;
use self::unnested_keys::UnnestedKeys;
use self::whole_input::WholeInput;
#[cfg(feature = "distributed")]
pub(crate) use self::whole_input::{is_whole_input, whole_input};
use crate::error::{Error, ErrorKind, Result};

/// Adds the rules to a session, and the planner that refuses queries. They recognize the tables of a plan by type,
/// whatever connection these belong to.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if a rule of the engine is missing that determines the position of ours.
pub(crate) fn with_rules(mut builder: SessionStateBuilder) -> Result<SessionStateBuilder> {
    let planner = builder.query_planner().take();
    let mut physical = builder.physical_optimizers().take().unwrap_or_default().rules;
    add_physical(&mut physical)?;
    add_analysis(&mut builder.analyzer().get_or_insert_default().rules);
    let mut logical = builder.optimizer().take().unwrap_or_default().rules;
    add_logical(&mut logical)?;
    Ok(builder
        .with_physical_optimizer_rules(physical)
        .with_optimizer_rules(logical)
        .with_query_planner(Arc::new(RequireTimeBound::over(planner))))
}

/// Adds the rules for physical plans.
fn add_physical(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) -> Result<()> {
    // After the engine's own sort pushdown, which handles orders that a scan satisfies completely; before filters that
    // refer to plan nodes, which must not be replaced afterwards.
    let behind = place_of("PushdownSort", rules.iter().map(|rule| rule.name()))? + 1;
    let own: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![
        Arc::new(ReleaseOffsetOrder),
        Arc::new(OrderedScan),
        Arc::new(LimitPushdown::new()),
        Arc::new(OffsetPushdown),
        Arc::new(SortHere),
        #[cfg(feature = "store")]
        Arc::new(DivideRows),
    ];
    rules.splice(behind..behind, own);
    place_of(FilterNames::INNER, rules.iter().map(|rule| rule.name()))?;
    for rule in rules.iter_mut().filter(|rule| rule.name().starts_with(FilterNames::INNER)) {
        *rule = Arc::new(FilterNames::over(Arc::clone(rule)));
    }
    let at = place_of(SoundStatistics::INNER, rules.iter().map(|rule| rule.name()))?;
    rules[at] = Arc::new(SoundStatistics::over(Arc::clone(&rules[at])));
    rules.splice(
        0..0,
        [Arc::new(SoundProperties) as Arc<dyn PhysicalOptimizerRule + Send + Sync>, Arc::new(KeepOffsetOrder)],
    );
    #[cfg(feature = "store")]
    rules.push(Arc::new(SoundPruning));
    rules.push(Arc::new(ReadOnce));
    rules.push(Arc::new(WholeInput));
    rules.push(Arc::new(BoundsCheck));
    Ok(())
}

/// Adds the rules of analysis, some before and some after the engine's.
fn add_analysis(rules: &mut Vec<Arc<dyn AnalyzerRule + Send + Sync>>) {
    // Again, for the casts of type coercion.
    rules.push(Arc::new(LocalTimes));
    // Before type coercion, which would convert the column instead.
    rules.insert(0, Arc::new(Literals));
    rules.insert(1, Arc::new(PatternMatching));
    rules.insert(2, Arc::new(RowComparison));
    // After it, when operands have one type.
    rules.extend([
        Arc::new(IntervalFields) as Arc<dyn AnalyzerRule + Send + Sync>,
        Arc::new(IntervalTexts),
        Arc::new(TimeLiterals),
        Arc::new(IntervalComparison),
        Arc::new(NestedOrder),
        Arc::new(DerivedConditions),
        Arc::new(AppliedSubqueries),
        Arc::new(Subqueries),
        Arc::new(UnknownLists),
        Arc::new(AggregateFilters),
        Arc::new(CheckedArithmetic),
        Arc::new(ExactDecimals),
        Arc::new(NarrowedDecimals),
        Arc::new(PositiveZero),
        Arc::new(SortKeys),
    ]);
    rules.insert(0, Arc::new(RangeFrames));
    rules.insert(0, Arc::new(PeerFrames));
    rules.insert(0, Arc::new(UnnestedKeys));
    rules.insert(0, Arc::new(LocalTimes));
    rules.insert(0, Arc::new(GroupedExpressions));
}

/// Adds the rules for logical plans.
fn add_logical(rules: &mut Vec<Arc<dyn OptimizerRule + Send + Sync>>) -> Result<()> {
    // After the engine's simplification, which turns `now()` into instants, and before it pushes filters down.
    let at = place_of(SoundFilters::INNER, rules.iter().map(|rule| rule.name()))?;
    rules[at] = Arc::new(SoundFilters::over(Arc::clone(&rules[at])));
    rules.insert(at, Arc::new(FilteredAggregates));
    for name in READERS.iter().copied().chain([NestedProjections::INNER]) {
        place_of(name, rules.iter().map(|rule| rule.name()))?;
    }
    for at in (0..rules.len()).rev().filter(|at| READERS.contains(&rules[*at].name())).collect::<Vec<_>>() {
        rules.insert(at, Arc::new(SoundDependencies));
    }
    let merges = |at: &usize| rules[*at].name() == NestedProjections::INNER;
    for at in (0..rules.len()).rev().filter(merges).collect::<Vec<_>>() {
        rules.insert(at, Arc::new(NestedProjections));
    }
    for inner in SoundKeys::INNER {
        let at = place_of(inner, rules.iter().map(|rule| rule.name()))?;
        rules[at] = Arc::new(SoundKeys::over(Arc::clone(&rules[at])));
    }
    // Last, when filters have reached the scans and unused columns have been removed.
    let last: [Arc<dyn OptimizerRule + Send + Sync>; 3] =
        [Arc::new(SortKeys), Arc::new(PlanScans), Arc::new(AggregatePushdown)];
    rules.extend(last);
    Ok(())
}

/// The place of the engine's last rule that pushes filters down. After it, filters refer to operators, which must not be
/// replaced.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if there is no such rule.
#[cfg(feature = "host")]
pub(crate) fn last_filter_pushdown(rules: &[Arc<dyn PhysicalOptimizerRule + Send + Sync>]) -> Result<usize> {
    let place = rules.iter().rposition(|rule| rule.name().starts_with(FilterNames::INNER));
    place.ok_or_else(|| missing_rule(FilterNames::INNER))
}

/// The place of the engine's first rule of this name, or of one that begins with it.
fn place_of<'a>(name: &str, mut rules: impl Iterator<Item = &'a str>) -> Result<usize> {
    rules.position(|rule| rule.starts_with(name)).ok_or_else(|| missing_rule(name))
}

/// Error for a rule of the engine that is found by its name, and is missing.
pub(crate) fn missing_rule(rule: &str) -> Error {
    let message = format!("the session has no optimizer rule `{rule}`, to which rules of this crate refer");
    Error::new(ErrorKind::Unsupported, message)
        .advice("use the rules of the DataFusion version that this crate depends on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_a_rule_of_the_engine_is_refused() {
        let builder = || SessionStateBuilder::new().with_default_features();
        assert!(with_rules(builder()).is_ok());
        let without = |name: &str| {
            let mut builder = builder();
            let mut rules = builder.physical_optimizers().take().unwrap_or_default().rules;
            rules.retain(|rule| !rule.name().starts_with(name));
            builder.with_physical_optimizer_rules(rules)
        };
        let without_logical = |name: &str| {
            let mut builder = builder();
            let mut rules = builder.optimizer().take().unwrap_or_default().rules;
            rules.retain(|rule| rule.name() != name);
            builder.with_optimizer_rules(rules)
        };
        let physical = ["PushdownSort", FilterNames::INNER, SoundStatistics::INNER];
        let logical = READERS.iter().chain(&SoundKeys::INNER).chain(&[SoundFilters::INNER]);
        let physical = physical.into_iter().map(|name| (name, without(name)));
        for (name, session) in physical.chain(logical.map(|name| (*name, without_logical(name)))) {
            let error = with_rules(session).map(drop).expect_err(name);
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
