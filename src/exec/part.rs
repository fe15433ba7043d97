//! A read of mentions that differs from the window of its query: other instants are requested, or the mentions are stored.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::TimestampMicrosecondType;
use bytes::Bytes;
use chrono::TimeDelta;
#[cfg(feature = "store")]
use chrono::{DateTime, Utc};
use datafusion::error::Result as DataFusionResult;

use super::reader::Reader;
use crate::client::{PageDecoder, PageFacts};
use crate::decode::{Decoded, Decoder};
use crate::error::Result;
use crate::profile::Origin;
#[cfg(feature = "store")]
use crate::pushdown::ServiceOrder;
use crate::request::PageRequest;

/// Differences between a read of mentions and the window of its query. Default: none.
#[derive(Clone, Default)]
pub(super) struct Part {
    /// The instants whose mentions are returned, in microseconds since 1970; `None`: all that are received.
    pub(super) within: Option<Range<i64>>,
    /// The window of the query, which rows repeat, if another one is requested.
    pub(super) label: Option<String>,
    /// The sort order, newest first, in which mentions are read until one is older than an instant.
    #[cfg(feature = "store")]
    pub(super) until: Option<(ServiceOrder, DateTime<Utc>)>,
    /// Keeps the first response.
    #[cfg(feature = "store")]
    pub(super) first: Option<Arc<OnceLock<FirstResponse>>>,
    /// Destination of the mentions in the store.
    #[cfg(feature = "store")]
    pub(super) fill: Option<Arc<super::stored::Fill>>,
}

/// A request for a page, and the response.
pub(super) type FirstResponse = (PageRequest, Bytes);

/// A decoder that keeps the first response.
pub(super) struct Keeping {
    pub(super) decoder: Arc<Decoder>,
    pub(super) first: Option<Arc<OnceLock<FirstResponse>>>,
    /// Set if it is kept in any case, and not only if its times have no zone.
    pub(super) always: bool,
}

impl PageDecoder for Keeping {
    type Page = Decoded;

    fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<(Decoded, PageFacts)> {
        let page = PageDecoder::decode(self.decoder.as_ref(), request, body)?;
        if let Some(first) = self.first.as_ref().filter(|_| self.always || page.0.assumed.is_some()) {
            first.get_or_init(|| (request.clone(), Bytes::copy_from_slice(body)));
        }
        Ok(page)
    }
}

impl Part {
    /// Slot for the first response; `None` if it is not kept.
    pub(super) fn first(&self) -> Option<Arc<OnceLock<FirstResponse>>> {
        #[cfg(feature = "store")]
        return self.first.clone();
        #[cfg(not(feature = "store"))]
        None
    }

    /// True for a read of the window of the query, of which nothing is kept.
    pub(super) fn is_plain(&self) -> bool {
        self.within.is_none() && self.label.is_none() && !self.is_kept() && self.first().is_none()
    }

    /// True if the mentions are stored, for which all their columns are needed.
    pub(super) fn is_kept(&self) -> bool {
        #[cfg(feature = "store")]
        return self.fill.is_some();
        #[cfg(not(feature = "store"))]
        false
    }

    /// Stores a page. `ahead`: time by which the service's clock is ahead of ours.
    #[cfg_attr(not(feature = "store"), expect(clippy::unused_async, reason = "nothing is stored"))]
    pub(super) async fn keep(&self, page: &Decoded, ahead: TimeDelta) {
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
