//! Counters shown by EXPLAIN ANALYZE.

use std::any::Any;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, CustomMetricValue, ExecutionPlanMetricsSet, MetricBuilder, MetricValue,
};

use crate::client::{Scan, Verdicts};
use crate::decode::Decoded;

/// Name of the counter of reads that are not stored.
#[cfg(feature = "store")]
pub(super) const UNSTORED: &str = "reads_not_stored";

/// Counters of one partition.
pub(super) struct Counters {
    /// The engine's own counters: rows and time.
    pub(super) baseline: BaselineMetrics,
    /// Requests of the scan, as it sends them.
    pub(super) requests: Count,
    retries: Count,
    pages: Count,
    received: Count,
    bytes: Count,
    wait_ms: Count,
    conflicts: Count,
    mended: Count,
    unnamed: Count,
    doubles: Count,
    edited: Count,
    repaired: Count,
    passes: Count,
    cuts: Count,
    incomplete: Count,
    /// Verdicts of the scan.
    pub(super) verdicts: Arc<Mutex<Verdicts>>,
    /// Mentions taken from the store.
    #[cfg(feature = "store")]
    pub(super) stored: Count,
    /// Reads whose days are not stored, or not all of them, although they should be.
    #[cfg(feature = "store")]
    pub(super) unstored: Count,
    /// Files whose index of words was looked up, once for each part of a file that is read by itself.
    #[cfg(feature = "store")]
    pub(super) looked_up: Count,
    /// Rows of files that were not read because an index of words excluded them.
    #[cfg(feature = "store")]
    pub(super) skipped: Count,
}

impl Counters {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        let verdicts: Arc<Mutex<Verdicts>> = Arc::default();
        MetricBuilder::new(metrics).with_partition(partition).build(MetricValue::Custom {
            name: "verdict".into(),
            value: Arc::new(VerdictMetric(Arc::clone(&verdicts))),
        });
        Self {
            baseline: BaselineMetrics::new(metrics, partition),
            requests: counter("requests"),
            retries: counter("retries"),
            pages: counter("pages"),
            received: counter("mentions_received"),
            bytes: counter("bytes_received"),
            wait_ms: counter("wait_ms"),
            conflicts: counter("type_conflicts"),
            mended: counter("characters_replaced"),
            unnamed: counter("ids_missing"),
            doubles: counter("duplicates_dropped"),
            edited: counter("edited_meanwhile"),
            repaired: counter("pages_reread"),
            passes: counter("passes_repeated"),
            cuts: counter("windows_cut"),
            incomplete: counter("incomplete"),
            verdicts,
            #[cfg(feature = "store")]
            stored: counter("mentions_from_store"),
            #[cfg(feature = "store")]
            unstored: counter(UNSTORED),
            #[cfg(feature = "store")]
            looked_up: counter("files_looked_up"),
            #[cfg(feature = "store")]
            skipped: counter("rows_skipped"),
        }
    }

    /// Records a page that a scan has received.
    pub(super) fn page(&self, scan: &Scan, page: &Decoded) {
        self.received.add(page.batch.num_rows());
        self.conflicts.add(usize::try_from(page.conflicts).unwrap_or(usize::MAX));
        self.mended.add(usize::try_from(page.mended).unwrap_or(usize::MAX));
        self.unnamed.add(usize::try_from(page.unnamed).unwrap_or(usize::MAX));
        self.spent(scan);
    }

    /// Records what a scan has spent so far.
    pub(super) fn spent(&self, scan: &Scan) {
        for (counter, now) in [
            (&self.pages, &scan.pages),
            (&self.retries, &scan.retries),
            (&self.bytes, &scan.bytes),
            (&self.wait_ms, &scan.wait_ms),
            (&self.doubles, &scan.doubles),
            (&self.edited, &scan.edited),
            (&self.repaired, &scan.repaired),
            (&self.passes, &scan.passes),
            (&self.cuts, &scan.cuts),
            (&self.incomplete, &scan.incomplete),
        ] {
            let now = usize::try_from(now.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
            counter.add(now.saturating_sub(counter.value()));
        }
    }
}

/// Verdicts of a scan as a metric.
#[derive(Debug, Default)]
struct VerdictMetric(Arc<Mutex<Verdicts>>);

impl VerdictMetric {
    fn verdicts(&self) -> Verdicts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for VerdictMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verdicts().fmt(f)
    }
}

impl CustomMetricValue for VerdictMetric {
    fn new_empty(&self) -> Arc<dyn CustomMetricValue> {
        Arc::new(Self::default())
    }

    fn aggregate(&self, other: Arc<dyn CustomMetricValue>) {
        if let Some(other) = other.as_any().downcast_ref::<Self>() {
            let others = other.verdicts();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(others);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_usize(&self) -> usize {
        self.verdicts().count()
    }

    fn is_eq(&self, other: &Arc<dyn CustomMetricValue>) -> bool {
        other.as_any().downcast_ref::<Self>().is_some_and(|other| self.verdicts() == other.verdicts())
    }
}
