//! A read of mentions that differs from the window of its query: other instants are requested, or the mentions are stored.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::TimeDelta;
use datafusion::error::Result as DataFusionResult;

use super::reader::Reader;
use crate::profile::Origin;

/// How a read of mentions differs from the window of its query. Default: not at all.
#[derive(Clone, Default)]
pub(super) struct Part {
    /// The instants whose mentions are returned, in microseconds since 1970; `None`: all that are received.
    pub(super) within: Option<Range<i64>>,
    /// The window of the query, which rows repeat, if another one is requested.
    pub(super) label: Option<String>,
    /// Where the mentions are stored.
    #[cfg(feature = "store")]
    pub(super) fill: Option<Arc<super::stored::Fill>>,
}

impl Part {
    /// True if the mentions are stored, for which all their columns are needed.
    pub(super) fn is_kept(&self) -> bool {
        #[cfg(feature = "store")]
        return self.fill.is_some();
        #[cfg(not(feature = "store"))]
        false
    }

    /// Stores a page. `ahead`: time by which the service's clock is ahead of ours.
    #[cfg_attr(not(feature = "store"), expect(clippy::unused_async, reason = "nothing is stored"))]
    pub(super) async fn keep(&self, page: &RecordBatch, ahead: TimeDelta) {
        #[cfg(feature = "store")]
        if let Some(fill) = &self.fill {
            fill.add(page, ahead).await;
        }
        #[cfg(not(feature = "store"))]
        let _ = (page, ahead);
    }

    /// Returns the rows of a page that belong to the part, with the window of the query.
    pub(super) fn of(&self, page: &RecordBatch, reader: &Reader) -> DataFusionResult<RecordBatch> {
        let named = |origin: Origin| {
            let fields = page.schema_ref().fields().iter().enumerate();
            let mut of = fields.filter(move |(_, field)| reader.decoder.origin(field.name()) == Some(&origin));
            of.next().map(|(at, _)| at)
        };
        let mut page = page.clone();
        if let (Some(label), Some(at)) = (&self.label, named(Origin::Duration)) {
            let mut columns: Vec<ArrayRef> = page.columns().to_vec();
            columns[at] = Arc::new(StringArray::from(vec![label.as_str(); page.num_rows()]));
            let options = RecordBatchOptions::new().with_row_count(Some(page.num_rows()));
            page = RecordBatch::try_new_with_options(page.schema(), columns, &options)?;
        }
        let times = reader.time.map(|at| page.column(at).as_primitive::<TimestampMicrosecondType>());
        let (Some(within), Some(times)) = (&self.within, times) else { return Ok(page) };
        if times.values().iter().all(|time| within.contains(time)) {
            return Ok(page);
        }
        let belong: Vec<bool> = times.values().iter().map(|time| within.contains(time)).collect();
        Ok(arrow::compute::filter_record_batch(&page, &belong.into())?)
    }
}
