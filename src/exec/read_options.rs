//! A read of mentions that differs from the window of its query: other instants are requested, or the mentions are stored.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::TimeDelta;
#[cfg(feature = "store")]
use chrono::{DateTime, Utc};
use datafusion::error::Result as DataFusionResult;

use super::answer::{Answer, AnswerDecoder, AnswerTables};
use super::page_converter::PageConverter;
use super::stream::Driver;
use crate::client::{PageDecoder, PageFacts};
use crate::connection::facts_of;
use crate::decode::{Decoded, Decoder};
use crate::error::Result;
use crate::profile::{Origin, Profile};
#[cfg(feature = "store")]
use crate::pushdown::ServiceOrder;
use crate::request::PageRequest;

/// Differences between a read of mentions and the window of its query. Default: none.
#[derive(Clone, Default)]
pub(super) struct ReadOptions {
    /// The instants whose mentions are returned, in microseconds since 1970; `None`: all that are received.
    pub(super) within: Option<Range<i64>>,
    /// The window of the query, which rows repeat, if another one is requested.
    pub(super) label: Option<String>,
    /// The sort order, newest first, in which mentions are read until one is older than an instant.
    #[cfg(feature = "store")]
    pub(super) until: Option<(ServiceOrder, DateTime<Utc>)>,
    /// Keeps the first response.
    #[cfg(feature = "store")]
    pub(super) first: Option<Arc<OnceLock<Answer>>>,
    /// Destination of the mentions in the store.
    #[cfg(feature = "store")]
    pub(super) fill: Option<Arc<super::stored::Fill>>,
    /// Observations about its pages, for the store.
    #[cfg(feature = "store")]
    pub(super) pages: Arc<super::stored::WindowPages>,
}

/// A decoder that keeps the first response, with its overview.
pub(super) struct Keeping {
    decoder: Arc<Decoder>,
    first: Option<Arc<OnceLock<Answer>>>,
    /// Set if the one with the first rows is kept, and not only the first one whose times have no zone. If pages are requested
    /// together, another one may arrive before it.
    always: bool,
    profile: Arc<Profile>,
    lossy: bool,
}

impl Keeping {
    /// The decoder of what is kept of a response beside its mentions.
    fn beside(&self, request: &PageRequest, page: Option<Arc<Decoder>>) -> AnswerDecoder {
        let tables = AnswerTables::of(&self.profile, &request.plan.filters);
        let page = page.map(|decoder| (decoder, request.clone()));
        AnswerDecoder::new(&self.profile, self.lossy, AnswerTables { page, ..tables })
    }
}

impl PageDecoder for Keeping {
    type Page = Decoded;

    fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<(Decoded, PageFacts)> {
        let Some(first) = self.first.as_ref().filter(|first| first.get().is_none()) else {
            return PageDecoder::decode(self.decoder.as_ref(), request, body);
        };
        let begins = request.row <= request.plan.pages.map_or(0, |pages| pages.skip);
        if self.always && begins {
            let answer = self.beside(request, Some(Arc::clone(&self.decoder))).decode(request, body);
            if let Some(page) = answer.page().transpose()?.cloned() {
                first.get_or_init(|| answer);
                let facts = facts_of(&page);
                return Ok((page, facts));
            }
        }
        let page = PageDecoder::decode(self.decoder.as_ref(), request, body)?;
        if !self.always && page.0.assumed.is_some() {
            first.get_or_init(|| self.beside(request, None).decode(request, body));
        }
        Ok(page)
    }
}

impl Driver {
    /// Returns a decoder that keeps the first response in this place. `always`: even if its times have a zone.
    pub(super) fn keeping(
        &self,
        decoder: &Arc<Decoder>,
        first: Option<Arc<OnceLock<Answer>>>,
        always: bool,
    ) -> Arc<Keeping> {
        let profile = Arc::clone(self.config.connection.profile());
        Arc::new(Keeping { decoder: Arc::clone(decoder), first, always, profile, lossy: self.settings.lossy_text })
    }
}

impl ReadOptions {
    /// Slot for the first response; `None` if it is not kept.
    pub(super) fn first(&self) -> Option<Arc<OnceLock<Answer>>> {
        #[cfg(feature = "store")]
        return self.first.clone();
        #[cfg(not(feature = "store"))]
        None
    }

    /// True for a read of the window of the query, of which nothing is kept.
    pub(super) fn is_plain(&self) -> bool {
        self.within.is_none() && self.label.is_none() && !self.is_stored() && self.first().is_none()
    }

    /// True if the mentions are stored, for which all their columns are needed.
    pub(super) fn is_stored(&self) -> bool {
        #[cfg(feature = "store")]
        return self.fill.is_some();
        #[cfg(not(feature = "store"))]
        false
    }

    /// Records that the mentions are read by the values of a filter, and not in the order of the window.
    pub(super) fn note_by_value(&self) {
        #[cfg(feature = "store")]
        self.fill.iter().for_each(|fill| fill.note_by_value());
    }

    /// Stores a page. `ahead`: time by which the service's clock is ahead of ours.
    #[cfg_attr(not(feature = "store"), expect(clippy::unused_async, reason = "nothing is stored"))]
    pub(super) async fn keep(&self, page: &Decoded, ahead: TimeDelta) {
        #[cfg(feature = "store")]
        if let Some(fill) = &self.fill {
            fill.add(page, ahead, &self.pages).await;
        }
        #[cfg(not(feature = "store"))]
        let _ = (page, ahead);
    }

    /// Returns the rows of a page that belong to the read, with the window of the query.
    pub(super) fn of(&self, page: &RecordBatch, converter: &PageConverter) -> DataFusionResult<RecordBatch> {
        let named = |origin: Origin| {
            let fields = page.schema_ref().fields().iter().enumerate();
            let mut of = fields.filter(move |(_, field)| converter.decoder.origin(field.name()) == Some(&origin));
            of.next().map(|(at, _)| at)
        };
        let mut page = page.clone();
        if let (Some(label), Some(at)) = (&self.label, named(Origin::Duration)) {
            let mut columns: Vec<ArrayRef> = page.columns().to_vec();
            columns[at] = Arc::new(StringArray::from(vec![label.as_str(); page.num_rows()]));
            let options = RecordBatchOptions::new().with_row_count(Some(page.num_rows()));
            page = RecordBatch::try_new_with_options(page.schema(), columns, &options)?;
        }
        let times = converter.time.map(|at| page.column(at).as_primitive::<TimestampMicrosecondType>());
        let (Some(within), Some(times)) = (&self.within, times) else { return Ok(page) };
        if times.values().iter().all(|time| within.contains(time)) {
            return Ok(page);
        }
        let belong: Vec<bool> = times.values().iter().map(|time| within.contains(time)).collect();
        Ok(arrow::compute::filter_record_batch(&page, &belong.into())?)
    }
}
