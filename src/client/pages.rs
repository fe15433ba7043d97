//! From a request plan to all its pages, each row once.
//!
//! ```text
//! first page ──▶ total ──▶ the rest in parallel, bounded, in order ──▶ all there? ──▶ end
//!                  │                                                       │ no
//!                  └ unknown: one after another until one is empty         └▶ another pass, bounded ──▶ Incomplete
//! ```
//!
//! [`Reading`] is the policy, pure: which spans to ask for next and whether what came is all. Rows are told apart by
//! the hash of their id; a collision would lose a row, and then the count shows it. A short page in the middle is
//! never taken for the end: its span is asked for on.
//!
//! Invariant: the stream ends without an error only if it gave as many distinct rows as the service announced, or as
//! many as the plan wanted.

use std::collections::HashSet;
use std::sync::Arc;

use async_stream::try_stream;
use futures::{Stream, StreamExt, stream};

use super::{Client, Scan};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::profile::{OffsetUnit, Oversize, Profile};
use crate::request::{PageRequest, Pages, RequestPlan};

/// Passes over all pages before a scan is given up as incomplete.
const PASSES: u32 = 3;
/// Times that an empty answer in the middle of a span is asked for again.
const EMPTY_ANSWERS: u32 = 2;

/// Rows of a page, as the decoder gives them.
pub trait Page: Send + 'static {
    /// A hash of the id of each row, in order; `None` where rows have no id and are not told apart.
    fn ids(&self) -> Option<&[u64]>;
    /// The rows whose flag is set.
    #[must_use]
    fn retain(self, keep: &[bool]) -> Self;
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
}

/// Rows to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First row, 0-based.
    pub row: u64,
    /// Number of rows.
    pub size: u64,
}

/// The progress of one scan. Pure.
#[derive(Debug)]
pub(super) struct Reading {
    pages: Pages,
    depth: Option<u64>,
    /// A first page smaller than asked for tells the page size.
    clamped: bool,
    /// Offsets count pages: all of a scan have one size.
    aligned: bool,
    seen: HashSet<u64>,
    /// Ids of this pass; only kept apart from the second pass on.
    this_pass: Option<HashSet<u64>>,
    total: Option<u64>,
    steady: bool,
    passes: u32,
}

/// Whether a pass gave all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All rows were seen.
    Complete,
    /// Some are missing; read again from the first row.
    Again,
}

impl Reading {
    /// The start of a scan.
    pub(super) fn new(pages: Pages, profile: &Profile) -> Self {
        Self {
            pages,
            depth: profile.depth.rows,
            clamped: profile.page.beyond == Oversize::Clamped,
            aligned: profile.offset.unit == OffsetUnit::Page,
            seen: HashSet::new(),
            this_pass: None,
            total: None,
            steady: true,
            passes: 0,
        }
    }

    /// The first span of a pass.
    pub(super) fn first(&self) -> Span {
        Span { row: 0, size: self.pages.size.min(self.pages.fetch.unwrap_or(u64::MAX)).max(1) }
    }

    /// Takes note of a total.
    ///
    /// # Errors
    /// [`ErrorKind::Incomplete`] where paging cannot reach all that is needed.
    pub(super) fn announce(&mut self, total: Option<u64>) -> Result<()> {
        self.steady &= self.total.is_none() || self.total == total;
        self.total = total.or(self.total);
        if let (Some(depth), Some(need)) = (self.depth, self.need())
            && need > depth
        {
            return Err(Error::new(
                ErrorKind::Incomplete,
                format!("{need} mentions match, and paging reaches {depth} only (profile `depth.rows`)"),
            )
            .advice("narrow the range of published_at, or add a filter that the service takes"));
        }
        Ok(())
    }

    /// The spans after a first page of `got` rows, where the total is known.
    pub(super) fn rest(&self, got: u64) -> Option<Vec<Span>> {
        let need = self.need()?;
        let asked = self.first().size;
        let stride = if self.clamped && (1..asked).contains(&got) { got } else { self.pages.size };
        // In aligned pages a short first page cannot be continued in its middle.
        let start = if self.aligned { asked.min(stride) } else { got };
        let mut spans = Vec::new();
        let mut row = start;
        while row < need {
            spans.push(Span { row, size: if self.aligned { stride } else { stride.min(need - row) } });
            row += stride;
        }
        Some(spans)
    }

    /// Whether the rows that the plan wants are there.
    pub(super) fn satisfied(&self) -> bool {
        self.pages.fetch.is_some_and(|fetch| self.seen.len() as u64 >= fetch)
    }

    /// Which rows of a page are new; `None`: all.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] where a further page of the first pass has no new row: the offset has no effect.
    pub(super) fn take(&mut self, row: u64, ids: Option<&[u64]>) -> Result<Option<Vec<bool>>> {
        let Some(ids) = ids else { return Ok(None) };
        if let Some(this_pass) = &mut self.this_pass {
            this_pass.extend(ids);
        }
        let keep: Vec<bool> = ids.iter().map(|id| self.seen.insert(*id)).collect();
        let fresh = keep.iter().filter(|fresh| **fresh).count();
        if fresh == 0 && ids.len() > 1 && row > 0 && self.passes == 0 {
            return Err(Error::new(ErrorKind::Contradiction, "the page repeats rows that were received before")
                .advice("the offset seems to have no effect: check the profile's [offset]")
                .at(Place { row: Some(row), ..Place::default() }));
        }
        Ok((fresh < ids.len()).then_some(keep))
    }

    /// The verdict at the end of a pass.
    ///
    /// # Errors
    /// [`ErrorKind::Incomplete`] after the last pass.
    pub(super) fn end_of_pass(&mut self) -> Result<Verdict> {
        self.passes += 1;
        let Some(need) = self.need() else { return Ok(Verdict::Complete) };
        let enough = match (self.pages.fetch, &self.this_pass) {
            // With a fetch, any rows will do as long as they are enough.
            (Some(_), _) => self.seen.len() as u64 >= need,
            (None, Some(this_pass)) => this_pass.len() as u64 == need,
            (None, None) => self.seen.len() as u64 == need,
        };
        if enough && (self.steady || self.pages.fetch.is_some()) {
            return Ok(Verdict::Complete);
        }
        if self.passes < PASSES {
            self.this_pass = Some(HashSet::new());
            self.total = None;
            self.steady = true;
            return Ok(Verdict::Again);
        }
        let seen = self.seen.len();
        Err(Error::new(
            ErrorKind::Incomplete,
            format!("{seen} distinct mentions received in {} passes, the service announces {need}", self.passes),
        )
        .advice("mentions arrive or vanish faster than they can be read, or equal dates come in no stable order; narrow the window"))
    }

    /// Rows that the scan needs, where it is known.
    fn need(&self) -> Option<u64> {
        match (self.total, self.pages.fetch) {
            (Some(total), Some(fetch)) => Some(total.min(fetch)),
            (total, _) => total,
        }
    }
}

/// The pages of a plan, in order, each row once. At most `ahead` requests are under way at a time; 1 asks for a page
/// only when the one before it has been consumed. Dropping the stream cancels what is under way.
pub fn read_pages<'a, D: PageDecoder>(
    client: &'a Client,
    scan: &'a Scan,
    plan: Arc<RequestPlan>,
    decoder: &'a D,
    ahead: usize,
) -> impl Stream<Item = Result<D::Page>> + 'a {
    let pages = plan.pages;
    let fetch = move |span: Span| {
        let request = PageRequest { plan: Arc::clone(&plan), row: span.row, size: span.size };
        async move {
            client
                
                .fetch(scan, &request, |body| {
                    let (page, facts) = decoder.decode(&request, body)?;
                    Ok(((page, facts), facts.rows))
                })
                .await
        }
    };
    let first_page = fetch.clone();
    let fetch_span = move |span: Span, aligned: bool| {
        let fetch = fetch.clone();
        async move {
            let (mut received, mut empty, mut pages) = (0, 0, Vec::new());
            while received < span.size && empty <= EMPTY_ANSWERS {
                let row = span.row + received;
                let (page, facts) = fetch(Span { row, size: span.size - received }).await?;
                received += facts.rows;
                empty += u32::from(facts.rows == 0);
                pages.push((row, page, facts));
                if aligned {
                    // Pages that are counted cannot be continued in their middle; the count at the end judges.
                    break;
                }
            }
            Ok::<_, Error>(pages)
        }
    };
    try_stream! {
        let Some(pages) = pages else {
            let (page, _) = first_page(Span { row: 0, size: 0 }).await?;
            yield page;
            return;
        };
        let mut reading = Reading::new(pages, client.profile());
        let aligned = reading.aligned;
        loop {
            let (page, facts) = first_page(reading.first()).await?;
            reading.announce(facts.total)?;
            yield fresh(&mut reading, 0, page)?;
            if let Some(spans) = reading.rest(facts.rows) {
                scan.query.require(spans.len() as u64)?;
                let mut rest = stream::iter(spans).map(|span| fetch_span(span, aligned)).buffered(ahead.max(1));
                while let Some(pages) = rest.next().await {
                    for (row, page, facts) in pages? {
                        reading.announce(facts.total)?;
                        yield fresh(&mut reading, row, page)?;
                    }
                }
            } else {
                let (mut row, mut got) = (0, facts.rows);
                while got > 0 && !reading.satisfied() {
                    row += got;
                    let (page, facts) = first_page(Span { row, size: pages.size }).await?;
                    got = facts.rows;
                    yield fresh(&mut reading, row, page)?;
                }
            }
            if reading.end_of_pass()? == Verdict::Complete {
                return;
            }
        }
    }
}

fn fresh<P: Page>(reading: &mut Reading, row: u64, page: P) -> Result<P> {
    Ok(match reading.take(row, page.ids())? {
        Some(keep) => page.retain(&keep),
        None => page,
    })
}

#[cfg(test)]
mod tests;
