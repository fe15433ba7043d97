//! Keeps the sort below an OFFSET without a LIMIT.
//!
//! `SELECT … FROM (SELECT … ORDER BY … OFFSET 600)` skips the first 600 rows in that order. The engine removes a sort if no
//! node above requires its order, and an offset does not count as requiring it. So any 600 rows would be skipped. If a node
//! above requires a sort, the engine also moves it below the offset. [`KeepOffsetOrder`] puts a node above such a sort that
//! requires its order, and one above the offset that keeps other sorts there; [`ReleaseOffsetOrder`] removes both after the
//! engine's rules about sorts. The engine keeps a sort with a LIMIT, so such a sort needs no node.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, OrderingRequirements};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions};

use super::pass_through::{Pass, PassThroughExec};

/// See the module's documentation. Runs before the engine's rules.
#[derive(Debug)]
pub(super) struct KeepOffsetOrder;

impl PhysicalOptimizerRule for KeepOffsetOrder {
    fn name(&self) -> &'static str {
        "savedsearch_keep_offset_order"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(limit) = node.downcast_ref::<GlobalLimitExec>().filter(|limit| limit.skip() > 0) else {
                return Ok(Transformed::no(node));
            };
            let Some(input) = with_order(limit.input())? else { return Ok(Transformed::no(node)) };
            Ok(Transformed::yes(Arc::new(PassThroughExec::new(with_input(node, input)?, AboveOffset))))
        })
        .data()
    }
}

/// Returns the input of an offset, with a node above the sort that decides which rows it skips; `None` without such a sort.
fn with_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        if sort.fetch().is_some() {
            return Ok(Some(Arc::clone(plan)));
        }
        let order = OrderingRequirements::from(sort.expr().clone());
        return Ok(Some(Arc::new(PassThroughExec::new(Arc::clone(plan), InOrder { order }))));
    }
    // Both keep the order of their input.
    if plan.downcast_ref::<ProjectionExec>().is_none() && plan.downcast_ref::<FilterExec>().is_none() {
        return Ok(None);
    }
    let [input] = plan.children()[..] else { return Ok(None) };
    with_order(input)?.map(|input| with_input(Arc::clone(plan), input)).transpose()
}

fn with_input(plan: Arc<dyn ExecutionPlan>, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.replace_children(vec![input], ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// See the module's documentation. Runs after the engine's rules about sorts, before this crate's about offsets.
#[derive(Debug)]
pub(super) struct ReleaseOffsetOrder;

impl PhysicalOptimizerRule for ReleaseOffsetOrder {
    fn name(&self) -> &'static str {
        "savedsearch_release_offset_order"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let in_order = node.downcast_ref::<PassThroughExec<InOrder>>().map(PassThroughExec::input);
            let above = || node.downcast_ref::<PassThroughExec<AboveOffset>>().map(PassThroughExec::input);
            match in_order.or_else(above) {
                Some(input) => Ok(Transformed::yes(Arc::clone(input))),
                None => Ok(Transformed::no(node)),
            }
        })
        .data()
    }
}

/// Requires the order of its input.
#[derive(Debug, Clone)]
struct InOrder {
    order: OrderingRequirements,
}

impl Pass for InOrder {
    const NAME: &'static str = "InOrderExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    fn required_order(&self) -> Option<OrderingRequirements> {
        Some(self.order.clone())
    }

    fn required_distribution(&self) -> Distribution {
        Distribution::SinglePartition
    }

    fn rows(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        input
    }
}

/// Lets no sort pass from above, and reports the order of its input.
#[derive(Debug, Clone, Copy)]
struct AboveOffset;

impl Pass for AboveOffset {
    const NAME: &'static str = "AboveOffsetExec";
    // Otherwise the engine would move a sort below.
    const KEEPS_ORDER: bool = false;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    fn rows(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        input
    }
}
