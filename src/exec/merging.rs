//! Streams of one sort order as one.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::sorts::streaming_merge::StreamingMergeBuilder;

use super::page_converter::PageConverter;
use super::scan_config::ScanConfig;
use super::scan_exec::sort_key;

/// Merges streams with the same sort order.
pub(super) struct Merging {
    reservation: MemoryReservation,
    batch_size: usize,
}

impl Merging {
    /// If `wanted` rows are enough, batches are no larger, so that output does not wait for more.
    pub(super) fn new(context: &TaskContext, wanted: Option<usize>) -> Self {
        let reservation = MemoryConsumer::new("FetchExec merge").register(context.memory_pool());
        let batch_size = context.session_config().batch_size();
        Self { reservation, batch_size: wanted.map_or(batch_size, |wanted| wanted.clamp(1, batch_size)) }
    }

    pub(super) fn merge(
        self,
        streams: Vec<SendableRecordBatchStream>,
        config: &ScanConfig,
        converter: &PageConverter,
    ) -> DataFusionResult<SendableRecordBatchStream> {
        let key = config.mode.order().and_then(|order| sort_key(order, &converter.schema));
        let Some(ordering) = LexOrdering::new(key) else {
            return internal_err!("sort key missing from the output");
        };
        StreamingMergeBuilder::new()
            .with_streams(streams)
            .with_schema(Arc::clone(&converter.schema))
            .with_expressions(&ordering)
            // The merge has its own metrics; the operator's are counted here.
            .with_metrics(BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), 0))
            .with_batch_size(self.batch_size)
            .with_fetch(config.mode.slice().fetch)
            .with_reservation(self.reservation)
            .build()
    }
}
