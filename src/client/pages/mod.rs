//! From a request plan to all its rows, each once.
//!
//! ```text
//! window ─▶ pages ahead, bounded ─▶ linked (continuity) ─▶ all there? (proof) ─▶ next window ─▶ … ─▶ conclusion
//!    ▲                                   │ no                │ no
//!    │                                   └ read from further └ another pass, bounded ─▶ Incomplete
//!    └ cut in time, where paging reaches no further or the ids would take too much memory
//! ```
//!
//! Three parts: [`page_policy`] says what to ask for next, [`proof`] whether all came, by rules that stand there with what breaks
//! a reader without them ([`continuity`] is whether pages hang together, and which rows are new), and [`reader`] asks, waits,
//! repairs and hands on. The first two are pure, and [`reading`] puts them together for one [`window`]. Where the service tells
//! which instants a relative period came to, the further pages are asked for by those, so that it stands still while it
//! is read. A window that is cut goes on at the last instant that was reached, where its first page shows by the total
//! whether the part before is whole.
//!
//! Invariant: the stream ends without an error only if its rows hang together and are as many as the service announced or
//! the plan wanted, or, in a set that moves, each page links to the one before at an instant that came whole and the end was
//! seen; unless the query asks for a report instead.

mod continuity;
mod page_policy;
mod proof;
mod reader;
mod reading;
mod window;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::stream::{Stream, try_unfold};

use self::reader::PageReader;
use super::{Client, Scan};
use crate::error::Result;
use crate::request::{PageRequest, RequestPlan};

/// Rows of a page, as the decoder gives them.
pub trait Page: Clone + Send + 'static {
    /// A hash of the id of each row, in order; `None` where rows have no id and are not told apart.
    fn ids(&self) -> Option<&[u64]>;
    /// The instant of each row, in microseconds since 1970.
    fn times(&self) -> Option<&[i64]>;
    /// When each row was last changed, in microseconds since 1970; the least number where that is not told.
    fn versions(&self) -> Option<&[i64]>;
    /// Bytes that it takes.
    fn bytes(&self) -> usize;
    /// The rows whose flag is set.
    #[must_use]
    fn retain(self, keep: &[bool]) -> Self;
    /// The last row as a page that tells nothing else.
    #[must_use]
    fn last_row(&self) -> Self;
}

/// Turns the body of an answer into rows. A `Malformed` error has the page asked for again.
pub trait PageDecoder: Send + Sync {
    /// The rows of a page.
    type Page: Page;
    /// Decodes one body.
    fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<(Self::Page, PageFacts)>;
}

/// What a page tells about the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts {
    /// Records in the page.
    pub rows: u64,
    /// Records in the whole, where the page says so and the profile believes it.
    pub total: Option<u64>,
    /// About how many records there are, where that is all that the page says, or that the profile believes.
    pub hint: Option<u64>,
    /// Records in the whole, as another part of the answer counts them: it confirms an end, and proves none alone.
    pub counted: Option<u64>,
    /// The window that the service resolved the period to, [from, to).
    pub window: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// When the next page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When the one before it has been consumed: the consumer may stop at any row.
    OnDemand,
    /// At once, with so many requests under way at most: the consumer wants all rows. What is beyond the query's budget
    /// is refused as soon as the total is known.
    Ahead(usize),
}

/// The pages of a plan, in order, each row once. Dropping the stream cancels what is under way.
pub fn read_pages<'a, D: PageDecoder>(
    client: &'a Client,
    scan: &'a Scan,
    plan: Arc<RequestPlan>,
    decoder: &'a D,
    pace: Pace,
) -> impl Stream<Item = Result<D::Page>> + Send + 'a {
    try_unfold(PageReader::new(client, scan, plan, decoder, pace), |mut reader| async move {
        let page = reader.next().await?;
        Ok(page.map(|page| (page, reader)))
    })
}

#[cfg(test)]
mod tests;
