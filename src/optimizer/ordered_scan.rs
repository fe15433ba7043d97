//! The first rows of a sort order, if a join, a filter or a further key is between the sort and the scan.
//!
//! `ORDER BY published_at DESC, id LIMIT 10`, or the same above a join, needs only the newest pages. The engine pushes a
//! sort order only to a scan that satisfies it completely; this rule sorts a scan by the first key, with pages fetched on
//! demand. The engine verifies the change: the rule keeps it only if the engine itself derives the sort order, or its first
//! keys, for the output. The sort is then removed, or ends early.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};

use crate::exec::FetchExec;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OrderedScan;

impl PhysicalOptimizerRule for OrderedScan {
    fn name(&self) -> &'static str {
        "savedsearch_ordered_scan"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| match node.downcast_ref::<SortExec>().map(sorted).transpose()?.flatten() {
            Some(better) => Ok(Transformed::yes(better)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }
}

/// Returns the sort over a scan in its order; `None` if there is no such scan.
fn sorted(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(fetch) = sort.fetch() else { return Ok(None) };
    if sort.expr().iter().any(|key| loses_order(&key.expr)) {
        return Ok(None);
    }
    for input in in_order(sort.input(), sort.expr().first(), fetch)? {
        let (prefix, whole) = input.equivalence_properties().extract_common_sort_prefix(sort.expr().clone())?;
        if whole && input.output_partitioning().partition_count() == 1 {
            return Ok(Some(Arc::new(GlobalLimitExec::new(input, 0, Some(fetch)))));
        }
        if !prefix.is_empty() {
            let sort = SortExec::new(sort.expr().clone(), input)
                .with_fetch(Some(fetch))
                .with_preserve_partitioning(sort.preserve_partitioning());
            return Ok(Some(Arc::new(sort)));
        }
    }
    Ok(None)
}

/// Returns every variant of the plan in which one scan is in a sort order with the key's direction.
fn in_order(
    plan: &Arc<dyn ExecutionPlan>,
    key: &PhysicalSortExpr,
    wanted: usize,
) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        return Ok(scan.in_orders(key.options, wanted)?.into_iter().map(|scan| Arc::new(scan) as _).collect());
    }
    let mut ways = Vec::new();
    let children = plan.children();
    for (at, (child, keeps)) in children.iter().zip(plan.maintains_input_order()).enumerate() {
        // A limit below would select other rows in another sort order.
        let skips = plan.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0);
        if !keeps || skips || plan.fetch().is_some() {
            continue;
        }
        let computed = plan.downcast_ref::<ProjectionExec>();
        if computed.is_some_and(|computed| computed.expr().iter().any(|output| loses_order(&output.expr))) {
            continue;
        }
        for way in in_order(child, key, wanted)? {
            let mut children: Vec<_> = children.iter().map(|child| Arc::clone(child)).collect();
            children[at] = way;
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            ways.push(Arc::clone(plan).replace_children(children, options)?);
        }
    }
    Ok(ways)
}

/// True if the expression casts an instant to a time of day, or a local time to an instant. The engine assumes that
/// both casts keep the order; the first starts over every day, the second goes back when the clock is set back.
fn loses_order(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let casts = expr.downcast_ref::<CastExpr>().is_some_and(|cast| {
        matches!(
            cast.target_field().data_type(),
            DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(_, Some(_))
        )
    });
    casts || expr.children().into_iter().any(loses_order)
}
