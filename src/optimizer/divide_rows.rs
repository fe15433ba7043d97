//! Division of stored mentions over cores, below aggregates.
//!
//! The engine's own round-robin repartitioning is off, because it requests pages that a limit further up does not need. An
//! aggregate without a limit needs all rows of its scan. Rows of a store arrive faster than one core computes the keys of
//! their groups, such as `date_trunc('day', published_at)`. If the keys are columns, no further cores are needed beside
//! those that read.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, InputOrderMode, Partitioning, ReplaceChildrenOptions,
};

use crate::exec::FetchExec;

/// See the module's documentation. Runs after the rules that push sort orders and limits down to the scans.
#[derive(Debug)]
pub(super) struct DivideRows;

impl PhysicalOptimizerRule for DivideRows {
    fn name(&self) -> &'static str {
        "savedsearch_divide_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let cores = config.execution.target_partitions;
        plan.transform_down(|plan| {
            let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(plan)) };
            let all = aggregate.limit_options().is_none() && *aggregate.input_order_mode() == InputOrderMode::Linear;
            let computes = aggregate.group_expr().expr().iter().any(|(key, _)| key.downcast_ref::<Column>().is_none());
            if !all || !computes || *aggregate.mode() != AggregateMode::Partial {
                return Ok(Transformed::no(plan));
            }
            match divided(aggregate.input(), cores)? {
                Some(input) => over(plan, input).map(Transformed::yes),
                None => Ok(Transformed::no(plan)),
            }
        })
        .data()
    }
}

/// The plan with the rows of its scan divided, if it is a scan of stored mentions below operators that work row by row.
fn divided(plan: &Arc<dyn ExecutionPlan>, cores: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        let few = scan.properties().partitioning.partition_count() < cores;
        if !few || !scan.reads_all_from_store() {
            return Ok(None);
        }
        let divided = RepartitionExec::try_new(Arc::clone(plan), Partitioning::RoundRobinBatch(cores))?;
        return Ok(Some(Arc::new(divided)));
    }
    let row_by_row = plan.downcast_ref::<FilterExec>().is_some() || plan.downcast_ref::<ProjectionExec>().is_some();
    match plan.children().as_slice() {
        [input] if row_by_row => match divided(input, cores)? {
            Some(input) => over(Arc::clone(plan), input).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn over(plan: Arc<dyn ExecutionPlan>, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.replace_children(vec![input], ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}
