//! Reads all rows of a request plan, each once.
//!
//! ```text
//! window ─▶ pages ahead, bounded ─▶ linked (continuity) ─▶ all there? (proof) ─▶ next window ─▶ … ─▶ verdict
//!    ▲                                   │ no                │ no
//!    │                                   └ read further back └ another pass, bounded ─▶ Incomplete
//!    └ cut in time, if paging reaches no further or the ids would take too much memory
//! ```
//!
//! Three parts: [`page_policy`] decides what to request next; [`proof`] decides whether all rows were received, by rules
//! that are listed there with what breaks a reader without them ([`continuity`] checks that pages link, and which rows
//! are new); and [`reader`] sends the requests, waits, repairs and emits the rows. The first two are pure, and
//! [`reading`] combines them for one [`window`]. If the expected [`totals`] cover more than the first page, further ones are
//! requested together with it. If the service reports the instants that a relative period resolved
//! to, the further pages are requested for those instants, so that the window does not move while it is read. A window
//! that is cut continues at the last instant that was reached; the total on the first page from there shows whether the
//! part before is complete.
//!
//! Invariant: the stream ends without an error only if its rows link up and are as many as the service reported or the
//! plan wanted, or, in a changing set, if each page links to the one before at a sort key that was received completely
//! and the end was seen; unless the query asks for a report instead.

mod continuity;
mod ids;
mod page_policy;
mod proof;
mod reader;
mod reading;
mod totals;
mod window;

use std::sync::Arc;

use futures::stream::{Stream, try_unfold};

use self::reader::PageReader;
pub(super) use self::totals::Totals;
use super::{Client, Scan};
use crate::error::Result;
use crate::request::{Beside, CountedDays, Echo, Hint, PageRequest, RequestPlan, Traits};

/// Rows of a page, as returned by the decoder.
pub trait Page: Clone + Send + 'static {
    /// Hash of each row's id, in order; `None` if rows have no id and cannot be told apart.
    fn ids(&self) -> Option<&[u64]>;
    /// The instant of each row, in microseconds since 1970.
    fn times(&self) -> Option<&[i64]>;
    /// The sort key of each row, as a number in the requested order; `None` if it is not known.
    fn keys(&self) -> Option<&[i64]>;
    /// Time of each row's last change, in microseconds since 1970; the least value if it is not known.
    fn versions(&self) -> Option<&[i64]>;
    /// Traits of each row that distinguish it apart from its id, if they are known.
    fn traits(&self) -> Option<&[Traits]> {
        None
    }
    /// Member of its response that says that more rows follow, with its value.
    fn more(&self) -> Option<&str> {
        None
    }
    /// Cursor of the next page, if rows are not counted and there is one.
    fn next(&self) -> Option<&str> {
        None
    }
    /// Size in bytes.
    fn bytes(&self) -> usize;
    /// Keeps the rows whose flag is set.
    #[must_use]
    fn retain(self, keep: &[bool]) -> Self;
    /// Returns the last row as a page with no other facts.
    #[must_use]
    fn last_row(&self) -> Self;
}

/// Decodes the body of a response into rows. After a `Malformed` error, the page is requested again.
pub trait PageDecoder: Send + Sync + 'static {
    /// The rows of a page.
    type Page: Page;
    /// Decodes one body.
    fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<(Self::Page, PageFacts)>;
}

/// Facts that a page reports about the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts {
    /// Records in the page.
    pub rows: u64,
    /// Total number of records, if the page reports it and the profile trusts it.
    pub total: Option<u64>,
    /// Approximate number of records, if the page reports no more or the profile trusts it no further.
    pub hint: Option<Hint>,
    /// Counts of the records beside that total.
    pub beside: Beside,
    /// Instants between which the timeline in the response counts records.
    pub counted_days: Option<CountedDays>,
    /// The window that the page reports, and the requested one.
    pub echo: Echo,
}

/// Prefetching of pages: the time at which the next one is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// After the previous page has been consumed: the consumer may stop at any row.
    OnDemand,
    /// At once, with at most this many requests in flight: the consumer wants all rows. Pages after the first one are
    /// received and decoded in tasks of their own, on several cores if the runtime has them. A scan that exceeds the query's
    /// budget is refused as soon as the total is known.
    Ahead(usize),
    /// After the previous page has been consumed at first, and the more pages have been consumed the earlier, up to this many
    /// requests in flight: the consumer fetches rows in parts, and may want few or all.
    Growing(usize),
}

/// Streams the pages of a plan, in order, each row once. Dropping the stream cancels the requests in flight.
pub fn read_pages<D: PageDecoder>(
    client: Arc<Client>,
    scan: Arc<Scan>,
    plan: Arc<RequestPlan>,
    decoder: Arc<D>,
    prefetch: Prefetch,
) -> impl Stream<Item = Result<D::Page>> + Send {
    try_unfold(PageReader::new(client, scan, plan, decoder, prefetch), |mut reader| async move {
        let page = reader.next().await?;
        Ok(page.map(|page| (page, reader)))
    })
}

#[cfg(test)]
mod tests;
