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
//! never taken for the end: its span is asked for on. Where the service tells which instants a relative period came to,
//! the further pages are asked for by those, so that it stands still while it is read.
//!
//! Invariant: the stream ends without an error only if it gave as many distinct rows as the service announced, or as
//! many as the plan wanted.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_stream::try_stream;
use chrono::{DateTime, Utc};
use futures::{Stream, StreamExt, stream};

use super::{Client, Scan};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::profile::{End, OffsetUnit, Oversize, Profile, WindowSpec};
use crate::request::{PageRequest, Pages, RequestPlan};

/// Passes over all pages before a scan is given up as incomplete.
const PASSES: u32 = 3;
/// Pages that have come and wait for an earlier one, on top of the requests under way.
const HELD: usize = 2;
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
    /// The window that the service resolved the period to, [from, to).
    pub window: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// Rows to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First row, 0-based.
    pub row: u64,
    /// Number of rows to ask for.
    pub size: u64,
    /// Number of rows to expect; fewer on the last page, which is asked for whole, so that a total which is too low shows.
    pub due: u64,
}

/// The spans of a pass that are still to be asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    row: u64,
    end: u64,
    stride: u64,
    /// Whether the last page is asked for whole.
    whole: bool,
}

impl Rest {
    /// Requests that they take.
    pub(super) fn requests(&self) -> u64 {
        self.end.saturating_sub(self.row).div_ceil(self.stride)
    }
}

impl Iterator for Rest {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let left = self.end.checked_sub(self.row).filter(|left| *left > 0)?;
        let due = self.stride.min(left);
        let span = Span { row: self.row, size: if self.whole { self.stride } else { due }, due };
        self.row = self.row.saturating_add(self.stride);
        Some(span)
    }
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
    /// Ids of the first page, which a service that ignores the offset sends again and again.
    first_page: Vec<u64>,
    /// Ids of this pass; only kept apart from the second pass on.
    this_pass: Option<HashSet<u64>>,
    total: Option<u64>,
    /// The total did not change within the pass under way.
    steady: bool,
    /// The total did not change at all.
    constant: bool,
    first_total: Option<u64>,
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
            first_page: Vec::new(),
            this_pass: None,
            total: None,
            steady: true,
            constant: true,
            first_total: None,
            passes: 0,
        }
    }

    /// The first span of a pass.
    pub(super) fn first(&self) -> Span {
        let size = self.pages.size.min(self.pages.fetch.unwrap_or(u64::MAX)).max(1);
        Span { row: self.pages.skip, size, due: size }
    }

    /// Takes note of a total.
    ///
    /// # Errors
    /// [`ErrorKind::Incomplete`] where paging cannot reach all that is needed.
    pub(super) fn announce(&mut self, total: Option<u64>) -> Result<()> {
        self.steady &= self.total.is_none() || self.total == total;
        self.total = total.or(self.total);
        if let (Some(depth), Some(end)) = (self.depth, self.end())
            && end > depth
        {
            return Err(too_deep(&end.to_string(), depth));
        }
        Ok(())
    }

    /// The spans after a first page of `got` rows, where the total is known.
    pub(super) fn rest(&self, got: u64) -> Option<Rest> {
        let end = self.end()?;
        let Span { row: first, size: asked, .. } = self.first();
        let stride = if self.clamped && (1..asked).contains(&got) { got } else { self.pages.size };
        // In aligned pages a short first page cannot be continued in its middle.
        let row = first.saturating_add(if self.aligned { asked.min(stride) } else { got });
        Some(Rest { row, end, stride, whole: self.aligned || self.pages.fetch.is_none() })
    }

    /// Whether the rows that the plan wants are there.
    pub(super) fn satisfied(&self) -> bool {
        self.pages.fetch.is_some_and(|fetch| self.seen.len() as u64 >= fetch)
    }

    /// Which rows of a page are new; `None`: all.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] where a further page repeats the first one: the offset has no effect.
    pub(super) fn take(&mut self, row: u64, ids: Option<&[u64]>) -> Result<Option<Vec<bool>>> {
        let Some(ids) = ids else { return Ok(None) };
        if row == self.pages.skip {
            self.first_page = ids.to_vec();
        } else if ids.len() > 1 && self.first_page.starts_with(ids) {
            return Err(no_progress(row));
        }
        if let Some(this_pass) = &mut self.this_pass {
            this_pass.extend(ids);
        }
        let keep: Vec<bool> = ids.iter().map(|id| self.seen.insert(*id)).collect();
        Ok(keep.contains(&false).then_some(keep))
    }

    /// Whether a scan without a total may go on at this row.
    ///
    /// # Errors
    /// [`ErrorKind::Incomplete`] where that is further than paging reaches.
    pub(super) fn end_at(&self, row: u64) -> Result<()> {
        match self.depth {
            Some(depth) if row >= depth && !self.satisfied() => Err(too_deep(&format!("{row} or more"), depth)),
            _ => Ok(()),
        }
    }

    /// The verdict at the end of a pass.
    ///
    /// # Errors
    /// [`ErrorKind::Incomplete`] after the last pass.
    pub(super) fn end_of_pass(&mut self) -> Result<Verdict> {
        self.passes += 1;
        let Some(total) = self.total.map(|total| total.saturating_sub(self.pages.skip)) else {
            return Ok(Verdict::Complete);
        };
        let need = total.min(self.pages.fetch.unwrap_or(u64::MAX));
        let seen = self.seen.len() as u64;
        let this_pass = self.this_pass.as_ref().map_or(seen, |ids| ids.len() as u64);
        // A total that never changed: the rows of all passes together are the whole. One that changed before this pass
        // began: the rows of this pass alone.
        self.constant &= self.steady && self.first_total.is_none_or(|first| first == total);
        self.first_total = self.first_total.or(Some(total));
        let whole = (self.constant && seen == total) || (self.steady && this_pass == total);
        // A limit below the total takes any rows, unless they are wanted in order.
        let enough = need < total && seen >= need && (self.steady || !self.pages.ordered);
        if whole || enough {
            return Ok(Verdict::Complete);
        }
        // Rows of another pass would come behind those that have left already.
        if self.passes < PASSES && !self.pages.ordered {
            self.this_pass = Some(HashSet::new());
            self.total = None;
            self.steady = true;
            return Ok(Verdict::Again);
        }
        let changed = if self.steady { "" } else { ", a number that changed while they were read" };
        Err(Error::new(
            ErrorKind::Incomplete,
            format!("{seen} distinct mentions received in {} passes instead of {need}{changed}", self.passes),
        )
        .advice(
            "mentions come or go faster than they can be read, or equal keys come in no stable order; narrow the window",
        ))
    }

    /// The row behind the last one that the scan needs, where it is known.
    fn end(&self) -> Option<u64> {
        let wanted = self.pages.fetch.map_or(u64::MAX, |fetch| self.pages.skip.saturating_add(fetch));
        self.total.map(|total| total.min(wanted))
    }
}

fn no_progress(row: u64) -> Error {
    Error::new(ErrorKind::Contradiction, "the page repeats rows that were received before")
        .advice("the offset seems to have no effect: check the profile's [offset] and [depth]")
        .at(Place { row: Some(row), ..Place::default() })
}

fn too_deep(rows: &str, depth: u64) -> Error {
    let message = format!("{rows} mentions match, and paging reaches {depth} only (profile `depth.rows`)");
    Error::new(ErrorKind::Incomplete, message)
        .advice("narrow the range of published_at, or add a filter that the service takes")
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
) -> impl Stream<Item = Result<D::Page>> + 'a {
    let pages = plan.pages;
    let duration = plan.duration.clone();
    let fetch = move |span: Span, frozen: Option<String>| {
        let request = PageRequest { plan: Arc::clone(&plan), row: span.row, size: span.size, frozen };
        async move {
            client
                .fetch(scan, &request, |body| {
                    let (page, facts) = decoder.decode(&request, body)?;
                    Ok(((page, facts), facts.rows))
                })
                .await
        }
    };
    let page = fetch.clone();
    let fetch_span = move |span: Span, aligned: bool, frozen: Option<String>| {
        let fetch = fetch.clone();
        async move {
            let (mut received, mut empty, mut pages) = (0, 0, Vec::new());
            while received < span.due && empty <= EMPTY_ANSWERS {
                let row = span.row + received;
                let rest = Span { row, size: span.size - received, due: span.due - received };
                let (page, facts) = fetch(rest, frozen.clone()).await?;
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
            let (page, _) = page(Span { row: 0, size: 0, due: 0 }, None).await?;
            yield page;
            return;
        };
        let mut reading = Reading::new(pages, client.profile());
        let aligned = reading.aligned;
        let mut frozen = None;
        loop {
            let (first, facts) = page(reading.first(), frozen.clone()).await?;
            reading.announce(facts.total)?;
            yield fresh(scan, &mut reading, pages.skip, first)?;
            frozen = frozen.or_else(|| freeze(&client.profile().window, duration.as_deref(), facts.window));
            if let Some(rest) = reading.rest(facts.rows) {
                let ahead = match pace {
                    Pace::OnDemand => 1,
                    Pace::Ahead(requests) => {
                        scan.query.require(rest.requests())?;
                        // Pages that have come do not take the place of those under way.
                        requests.max(1) + HELD
                    }
                };
                let spans = rest.map(|span| fetch_span(span, aligned, frozen.clone()));
                let mut rest = stream::iter(spans).buffered(ahead);
                while let Some(pages) = rest.next().await {
                    for (row, page, facts) in pages? {
                        reading.announce(facts.total)?;
                        yield fresh(scan, &mut reading, row, page)?;
                    }
                }
            } else {
                let (mut row, mut got, mut empty) = (pages.skip, facts.rows, u32::from(facts.rows == 0));
                while empty <= EMPTY_ANSWERS && !reading.satisfied() {
                    row += if aligned && got > 0 { pages.size } else { got };
                    reading.end_at(row)?;
                    let (next, facts) = page(Span { row, size: pages.size, due: pages.size }, frozen.clone()).await?;
                    got = facts.rows;
                    empty = if got == 0 { empty + 1 } else { 0 };
                    let known = reading.seen.len();
                    yield fresh(scan, &mut reading, row, next)?;
                    if got > 0 && reading.seen.len() == known {
                        Err(no_progress(row))?;
                    }
                }
            }
            if reading.end_of_pass()? == Verdict::Complete {
                return;
            }
        }
    }
}

/// The instants of a relative period in the service's words, once it has told them; `None` where they cannot be said
/// to the second, or where the period is one of instants already.
fn freeze(spec: &WindowSpec, duration: Option<&str>, window: Option<(DateTime<Utc>, DateTime<Utc>)>) -> Option<String> {
    let (from, to) = window?;
    let relative = duration.is_some_and(|words| spec.span_of(words).is_none());
    let sayable = spec.takes_instants() && spec.end == End::Exclusive;
    let whole = from.timestamp_subsec_nanos() == 0 && to.timestamp_subsec_nanos() == 0;
    let words = (relative && sayable && whole).then(|| spec.words_of(from, to))?;
    spec.check_words(&words).is_ok().then_some(words)
}

/// The rows of a page that did not come before; the others are counted.
fn fresh<P: Page>(scan: &Scan, reading: &mut Reading, row: u64, page: P) -> Result<P> {
    Ok(match reading.take(row, page.ids())? {
        Some(keep) => {
            let doubles = keep.iter().filter(|keep| !**keep).count();
            scan.doubles.fetch_add(doubles as u64, Ordering::Relaxed);
            page.retain(&keep)
        }
        None => page,
    })
}

#[cfg(test)]
mod tests;
