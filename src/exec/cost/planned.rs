//! The scans of a plan, and what its operators leave of them.

use std::sync::Arc;

use datafusion::physical_plan::aggregates::{AggregateExec, AggregateOutputMode};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use crate::exec::FetchExec;
use crate::exec::scan_config::{ScanConfig, Slice};
use crate::profile::TableKind;

/// A scan of a plan.
#[derive(Clone, Copy)]
pub(super) struct Planned<'p> {
    pub(super) scan: &'p FetchExec,
    /// Set if the plan is certain to start it.
    pub(super) certain: bool,
    /// Set if it reads it completely once it has started it: a join may never start its other side.
    pub(super) whole: bool,
    /// Set if a join selects its saved searches by all rows of the list.
    pub(super) joins_list: bool,
}

/// The scans of a plan, in plan order.
pub(super) fn scans_of(plan: &Arc<dyn ExecutionPlan>) -> Vec<Planned<'_>> {
    let mut scans = Vec::new();
    collect(plan, Within { certain: true, whole: true, joins_list: false }, &mut scans);
    scans
}

/// Use of a part of a plan by the operators above it; see [`Planned`].
#[derive(Clone, Copy)]
struct Within {
    certain: bool,
    whole: bool,
    joins_list: bool,
}

/// Collects the scans of a plan. Scans that the plan may end early, or never start, have no certain cost.
fn collect<'p>(plan: &'p Arc<dyn ExecutionPlan>, within: Within, scans: &mut Vec<Planned<'p>>) {
    let Within { certain, whole, joins_list } = within;
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        scans.push(Planned { scan, certain, whole, joins_list });
        return;
    }
    // A sort starts all scans below it, even if it has a limit; if it ends early, they are read on demand.
    let limited = plan.fetch().is_some() && !limits_as_its_scan(plan) && !reads_all_first(plan);
    let recursive = plan.downcast_ref::<RecursiveQueryExec>().is_some();
    let joins = plan.name().contains("Join");
    let children = plan.children();
    let beside_list = |at: usize| joins && children.iter().enumerate().any(|(of, child)| of != at && is_list(child));
    for (at, &child) in children.iter().enumerate() {
        // A join whose first side is empty never reads the other, unless it returns that one's rows.
        let starts = certain && !limited && (at == 0 || !(joins || recursive) || keeps_second_side(plan));
        let within = Within {
            certain: starts,
            whole: whole && !limited && (at == 0 || !recursive),
            joins_list: joins_list || beside_list(at),
        };
        collect(child, within, scans);
    }
}

/// True for all rows of the list of saved searches.
fn is_list(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match (plan.downcast_ref::<FetchExec>(), plan.children().as_slice()) {
        (Some(scan), _) => {
            let ScanConfig { spec, predicate, mode, late, .. } = scan.config.as_ref();
            spec.kind == TableKind::List && predicate.is_none() && mode.slice() == Slice::ALL && late.is_empty()
        }
        // Such as a projection. A filter or an aggregate may leave fewer saved searches.
        (None, [input]) => matches!(plan.cardinality_effect(), CardinalityEffect::Equal) && is_list(input),
        (None, _) => false,
    }
}

/// True for an operator that returns no row before it has read all rows of its scan, so that a limit makes it read no fewer.
fn reads_all_first(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // Partial aggregates may return rows early, and so may those of sorted input or with a limit.
    let aggregates = |aggregate: &AggregateExec| {
        aggregate.mode().output_mode() == AggregateOutputMode::Final
            && *aggregate.input_order_mode() == InputOrderMode::Linear
            && aggregate.limit_options().is_none()
    };
    plan.downcast_ref::<SortExec>().is_some()
        || plan.downcast_ref::<AggregateExec>().is_some_and(aggregates)
        || matches!(plan.children().as_slice(), [input] if reads_all_first(input))
}

/// True for a join that returns rows of its second side even if its first one is empty.
fn keeps_second_side(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let join = plan.downcast_ref::<HashJoinExec>();
    join.is_some_and(|join| !join.join_type().empty_build_side_produces_empty_result())
}

/// True for a limit of as many rows, those before its offset included, as the scan below it returns at most.
fn limits_as_its_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() else { return false };
    let mut input = limit.input();
    while let Some(projection) = input.downcast_ref::<ProjectionExec>() {
        input = projection.input();
    }
    let rows = limit.fetch().map(|fetch| fetch.saturating_add(limit.skip()));
    input.downcast_ref::<FetchExec>().is_some_and(|scan| rows.is_some() && scan.config.mode.slice().fetch == rows)
}
