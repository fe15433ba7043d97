//! Reads the left side of a join by a condition once.
//!
//! If the rows of that side exceed the memory limit, the engine executes it again and joins it in parts, with part of its rows on
//! disk. In DataFusion 55.2 that loses rows, because its inputs have been read and send nothing or the rest
//! (#24676), loses rows without a match (#24745), and repeats them if the other side has partitions (#22641). It would also send
//! the requests of a scan again. A node between the two allows one execution, so that such a join fails with an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions};

use super::pass_through::{Pass, PassThroughExec};
use crate::error::{Error, ErrorKind};

/// See the module's documentation. Runs after the engine's rules, which recognize joins by their inputs.
#[derive(Debug)]
pub(super) struct ReadOnce;

impl PhysicalOptimizerRule for ReadOnce {
    fn name(&self) -> &'static str {
        "savedsearch_read_once"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(join) =
                node.downcast_ref::<NestedLoopJoinExec>().filter(|join| !is_read_once(join.left().as_ref()))
            else {
                return Ok(Transformed::no(node));
            };
            let inputs = vec![read_once(Arc::clone(join.left())), Arc::clone(join.right())];
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(inputs, options)?))
        })
        .data()
    }
}

/// Returns an operator with the rows of its input that can be executed once.
pub(crate) fn read_once(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(PassThroughExec::new(input, OneExecution::default()))
}

/// True for an operator of [`read_once`].
pub(crate) fn is_read_once(plan: &dyn ExecutionPlan) -> bool {
    plan.downcast_ref::<PassThroughExec<OneExecution>>().is_some()
}

/// Refuses a second execution. Its clone, for another plan, has not been executed.
#[derive(Debug, Default)]
struct OneExecution {
    begun: AtomicBool,
}

impl Clone for OneExecution {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Pass for OneExecution {
    const NAME: &'static str = "ReadOnceExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    fn begin(&self) -> Result<()> {
        if !self.begun.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let message = "a join by a condition that is not an equality keeps more rows in memory than the limit allows";
        let advice = "filter or aggregate its sides before the join, join by an equality, or raise the memory limit";
        Err(Error::new(ErrorKind::Memory, message).advice(advice).into())
    }

    fn rows(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        input
    }
}
