//! Hides plan properties that the engine derives incorrectly and that lose rows or their order.
//!
//! Six defects of DataFusion 55.2 affect users. `tests/it/engine_defects.rs` reproduces each in a plain session, and fails
//! once the engine is fixed; then this rule can be removed.
//!
//! - A filter `t::date = DATE '…'` makes the engine treat `t` itself as a constant. A sort by `t` above the filter is then
//!   dropped, and `count(DISTINCT t)` is answered without reading. Such a condition is hidden from interval analysis
//!   ([`opaque`]); the rows that satisfy it stay the same.
//! - The partial half of an aggregate by ROLLUP, CUBE or GROUPING SETS claims that its keys keep the constants and the
//!   order of its input, although the sets replace keys by NULL. The final half then emits groups early, and twice. A
//!   node between the two claims nothing.
//! - An outer join claims that columns that are constant on a side stay constant, although it fills that side with NULL. A
//!   sort by them above the join is then dropped, and groups are emitted early. A node below that side claims nothing.
//! - A union of inputs with a constant each, such as a label, claims a constant that differs from partition to partition. The
//!   first rows of a sort then leave it out of the key, and compare their threshold across partitions. A node above the union
//!   claims nothing.
//! - A join of two inputs that are in order claims the order of one within that of the other, although several rows of the latter
//!   may have one key (#25052). A sort by both above the join is then dropped. A node below the side that a hash join builds
//!   from, and one above a merge join, claims nothing.
//! - A window function claims that the results of `count`, `max`, `min` and `sum` are in order, also if each partition begins
//!   anew, if NULL comes first, or if rows leave the frame. A sort by such a result above the window is then dropped. A node
//!   above the window claims the order of the other columns alone.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::SetMonotonicity;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, SlidingAggregateWindowExpr, WindowExpr};
use datafusion::physical_expr::{AcrossPartitions, EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};

use super::pass_through::{Pass, PassThroughExec};
use crate::exec::opaque;

/// See the module's documentation. Runs before all rules of the engine, some of which rely on such properties.
#[derive(Debug)]
pub(super) struct SoundProperties;

impl PhysicalOptimizerRule for SoundProperties {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if let Some(filter) = plan.downcast_ref::<FilterExec>() {
                return Ok(match opaque(filter.predicate(), &filter.input().schema()) {
                    Some(predicate) => {
                        let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
                        Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>)
                    }
                    None => Transformed::no(plan),
                });
            }
            let unsound = unsound_inputs(plan.as_ref());
            if unsound.contains(&true) {
                let inputs = plan.children().into_iter().cloned().zip(unsound);
                let inputs =
                    inputs.map(|(input, unsound)| if unsound { without_properties(input) } else { input }).collect();
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                return Ok(Transformed::yes(plan.replace_children(inputs, options)?));
            }
            let merges = plan.is::<SortMergeJoinExec>() && joins_orders(plan.as_ref());
            if merges || differs_between_partitions(plan.as_ref()) {
                return Ok(Transformed::yes(without_properties(plan)));
            }
            if !ordered_results(plan.as_ref()).is_empty() {
                return Ok(Transformed::yes(without_order_of_results(plan)));
            }
            Ok(Transformed::no(plan))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "savedsearch_sound_properties"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns which inputs of an operator have properties that it must not rely on.
fn unsound_inputs(plan: &dyn ExecutionPlan) -> [bool; 2] {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let half = aggregate.input().downcast_ref::<AggregateExec>();
        return [half.is_some_and(|half| half.group_expr().has_grouping_set()), false];
    }
    let mut inputs = filled_with_null(plan);
    for (filled, input) in inputs.iter_mut().zip(plan.children()) {
        *filled &= !input.equivalence_properties().eq_group().is_empty();
    }
    inputs[0] |= plan.is::<HashJoinExec>() && joins_orders(plan);
    inputs
}

/// True for an operator of two inputs that are both in order.
fn joins_orders(plan: &dyn ExecutionPlan) -> bool {
    let inputs = plan.children();
    inputs.len() == 2 && inputs.iter().all(|input| input.output_ordering().is_some())
}

/// True if a column is constant in each partition of an operator, with another value in each. Only operators whose inputs have no such
/// column: above them, a node hides it.
fn differs_between_partitions(plan: &dyn ExecutionPlan) -> bool {
    if plan.output_partitioning().partition_count() < 2 {
        return false;
    }
    let constants = plan.equivalence_properties().constants();
    constants.iter().any(|constant| constant.across_partitions == AcrossPartitions::Heterogeneous)
}

/// Returns whether a join fills its left side and its right side with NULL if the other side has no match.
fn filled_with_null(plan: &dyn ExecutionPlan) -> [bool; 2] {
    let hash = plan.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let loops = || plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let merge = || plan.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type());
    match hash.or_else(loops).or_else(merge) {
        Some(JoinType::Full) => [true, true],
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        _ => [false, false],
    }
}

/// Columns of a window operator that the engine takes for sorted: aggregates of frames that grow or move.
fn ordered_results(plan: &dyn ExecutionPlan) -> HashSet<usize> {
    let bounded = plan.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr);
    let windows = bounded.or_else(|| plan.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr));
    let Some(windows) = windows else { return HashSet::new() };
    let first = plan.schema().fields().len() - windows.len();
    let ordered = |window: &dyn WindowExpr| {
        let plain = window.as_any().downcast_ref::<PlainAggregateWindowExpr>();
        let sliding = window.as_any().downcast_ref::<SlidingAggregateWindowExpr>();
        let aggregate = plain.map(PlainAggregateWindowExpr::get_aggregate_expr);
        let aggregate = aggregate.or_else(|| sliding.map(SlidingAggregateWindowExpr::get_aggregate_expr));
        let frame = window.get_window_frame();
        let constant = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
        !constant && aggregate.is_some_and(|aggregate| aggregate.set_monotonicity() != SetMonotonicity::NotMonotonic)
    };
    windows.iter().enumerate().filter(|(_, window)| ordered(window.as_ref())).map(|(at, _)| first + at).collect()
}

/// Returns an operator with the rows of a window operator that reports no order of its [results](ordered_results).
pub(crate) fn without_order_of_results(window: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(PassThroughExec::new(window, OrderOfInput))
}

/// True for an operator of [`without_order_of_results`].
#[cfg(feature = "distributed")]
pub(crate) fn hides_order_of_results(plan: &dyn ExecutionPlan) -> bool {
    plan.downcast_ref::<PassThroughExec<OrderOfInput>>().is_some()
}

/// Reports the properties of a window operator, without the order of its [results](ordered_results).
#[derive(Debug, Clone, Copy)]
struct OrderOfInput;

impl Pass for OrderOfInput {
    const NAME: &'static str = "WindowOrderExec";
    // Otherwise the engine looks for an order below the node.
    const KEEPS_ORDER: bool = false;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        let (results, known) = (ordered_results(input), input.equivalence_properties());
        let is_known =
            |key: &PhysicalSortExpr| collect_columns(&key.expr).iter().all(|column| !results.contains(&column.index()));
        let orders = known.oeq_class().iter().map(|order| order.iter().take_while(|key| is_known(key)).cloned());
        let mut properties = EquivalenceProperties::new_with_orderings(input.schema(), orders);
        if properties.add_equivalence_group(known.eq_group().clone()).is_err() {
            return Unordered.properties(input);
        }
        Arc::new(PlanProperties::clone(input.properties()).with_eq_properties(properties))
    }

    fn rows(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        input
    }
}

/// Returns an operator with the rows of its input that reports none of their properties.
pub(crate) fn without_properties(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(PassThroughExec::new(input, Unordered))
}

/// True for an operator of [`without_properties`].
#[cfg(feature = "distributed")]
pub(crate) fn hides_properties(plan: &dyn ExecutionPlan) -> bool {
    plan.downcast_ref::<PassThroughExec<Unordered>>().is_some()
}

/// Reports neither a sort order of rows nor constants among them.
#[derive(Debug, Clone, Copy)]
struct Unordered;

impl Pass for Unordered {
    const NAME: &'static str = "UnorderedExec";
    const KEEPS_ORDER: bool = false;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        let properties = PlanProperties::clone(input.properties())
            .with_eq_properties(EquivalenceProperties::new(input.schema()))
            .with_partitioning(Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()));
        Arc::new(properties)
    }

    fn rows(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        input
    }
}
