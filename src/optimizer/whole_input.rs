//! Windows whose frames end before their row, by RANGE, get all rows of a partition of the plan at once.
//!
//! For a frame such as `RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING`, the engine emits the result of each row that it has received,
//! because rows that follow have larger keys. A distance leaves some keys where they are: NULL, infinities, NaN, and numbers beside
//! which it is too small. The frame of such a row has its peers, which may be in a later batch. A node below the window makes one
//! batch of all.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::{Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{WindowFrameBound, WindowFrameUnits};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions};
use futures::{Stream, TryStreamExt, stream};

use super::pass_through::{Pass, PassThroughExec};

/// See the module's documentation. Runs after the engine's rules, which choose the operators of windows.
#[derive(Debug)]
pub(super) struct WholeInput;

impl PhysicalOptimizerRule for WholeInput {
    fn name(&self) -> &'static str {
        "savedsearch_whole_input"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let window = node.downcast_ref::<BoundedWindowAggExec>();
            let Some(window) = window.filter(|window| ends_before(window) && !is_whole_input(window.input().as_ref()))
            else {
                return Ok(Transformed::no(node));
            };
            let inputs = vec![whole_input(Arc::clone(window.input()))];
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(inputs, options)?))
        })
        .data()
    }
}

/// True for an operator with a frame by RANGE that ends at a distance before its row.
fn ends_before(window: &BoundedWindowAggExec) -> bool {
    window.window_expr().iter().any(|function| {
        let frame = function.get_window_frame();
        frame.units == WindowFrameUnits::Range && matches!(frame.end_bound, WindowFrameBound::Preceding(_))
    })
}

/// Returns an operator that makes one batch of the rows of each partition of its input.
pub(crate) fn whole_input(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(PassThroughExec::new(input, OneBatch))
}

/// True for an operator of [`whole_input`].
pub(crate) fn is_whole_input(plan: &dyn ExecutionPlan) -> bool {
    plan.downcast_ref::<PassThroughExec<OneBatch>>().is_some()
}

/// Makes one batch of all.
#[derive(Debug, Clone, Copy)]
struct OneBatch;

impl Pass for OneBatch {
    const NAME: &'static str = "WholeInputExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    fn rows(&self, mut input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream {
        let reservation = Arc::new(MemoryConsumer::new(Self::NAME).register(context.memory_pool()));
        let held = Arc::clone(&reservation);
        let schema = input.schema();
        let of_batches = Arc::clone(&schema);
        let whole = stream::once(async move {
            let mut batches = Vec::new();
            while let Some(batch) = input.try_next().await? {
                // The rows, and their copy.
                reservation.try_grow(2 * size_of(&batch))?;
                batches.push(batch);
            }
            Ok::<_, DataFusionError>(concat_batches(&of_batches, &batches)?)
        });
        let whole = whole.try_filter(|batch| ready(batch.num_rows() > 0));
        Box::pin(Reserved { rows: Box::pin(RecordBatchStreamAdapter::new(schema, whole)), _reservation: held })
    }
}

/// Rows with their memory. The window has them, and a copy of them, until it ends and drops this stream; the adapter of the engine
/// drops what is in it at the last row.
struct Reserved {
    rows: SendableRecordBatchStream,
    _reservation: Arc<MemoryReservation>,
}

impl Stream for Reserved {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rows.as_mut().poll_next(context)
    }
}

impl RecordBatchStream for Reserved {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// Bytes that a copy of a batch takes.
fn size_of(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(|column| {
        let of_rows = column.to_data().get_slice_memory_size();
        of_rows.unwrap_or_else(|_| column.get_buffer_memory_size())
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::catalog::memory::MemorySourceConfig;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    #[tokio::test]
    async fn memory_is_reserved_until_the_window_has_ended() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("a batch");
        let schema = batch.schema();
        let input = MemorySourceConfig::try_new_exec(&[vec![batch.clone(), batch]], schema, None).expect("an input");
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc().expect("a runtime");
        let context = Arc::new(TaskContext::default().with_runtime(runtime));
        let mut rows = whole_input(input).execute(0, context).expect("rows");
        let whole = rows.try_next().await.expect("a batch").expect("a batch");
        assert_eq!((whole.num_rows(), pool.reserved()), (2_000, 2 * 2 * 8_000));
        assert!(rows.try_next().await.expect("an end").is_none());
        assert_eq!(pool.reserved(), 2 * 2 * 8_000, "the window computes its results at the end");
        drop(rows);
        assert_eq!(pool.reserved(), 0);
    }
}
