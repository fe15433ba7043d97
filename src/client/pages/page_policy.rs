//! What to ask for next: spans of rows, in strides that the service keeps, as far as paging reaches.
//!
//! ```text
//! offsets count rows    [0 100) [99 199) [198 298) …    pages share a row, and may begin anywhere
//! offsets count pages   [0 100) [100 200) [200 300) …   pages lie side by side, all of one size
//! ```
//!
//! What an offset counts is known here and nowhere else: [`Layout`] has both ways. Pure; what the rows prove is for
//! [`proof`](super::proof) to say, which tells how far it has come by [`Seen`].

use crate::profile::{OffsetUnit, Oversize, Profile};
use crate::request::Pages;

/// Pages without anything new that are asked for again before that is believed.
pub(super) const STALLS: u32 = 2;
/// Times that a page which does not link is looked for further back.
const BACK_UPS: u64 = 4;
/// Rows of the smallest page that shares one: below it, a shared row in each page costs too much.
const OVERLAP_FROM: u64 = 5;

/// Rows to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First row, 0-based.
    pub(super) row: u64,
    /// Number of rows to ask for.
    pub(super) size: u64,
}

/// How pages lie in the rows of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A page begins at any row: it shares one with the page before it, goes on behind a short one, and is looked for
    /// further back where it does not link.
    RowOffsets,
    /// A page is one of those that lie side by side: all of a scan have one size, a short one leaves a gap, and one that does
    /// not link can only be asked for again.
    PageNumbers,
}

impl Layout {
    fn of(unit: OffsetUnit) -> Self {
        match unit {
            OffsetUnit::Row => Self::RowOffsets,
            OffsetUnit::Page => Self::PageNumbers,
        }
    }

    /// Whether pages of a size share a row.
    fn shares_rows(self, size: u64) -> bool {
        self == Self::RowOffsets && size >= OVERLAP_FROM
    }

    /// Rows to ask for where so many are wanted: pages that are counted are asked for whole.
    fn wanted(self, rows: u64) -> u64 {
        match self {
            Self::RowOffsets => rows,
            Self::PageNumbers => u64::MAX,
        }
    }

    /// The rank behind a page that was asked for.
    fn behind(self, span: Span, stride: u64) -> u64 {
        match self {
            Self::RowOffsets => span.row + span.size,
            Self::PageNumbers => span.row + stride,
        }
    }

    /// Ranks that a page takes which has so many rows.
    fn advance(self, span: Span, got: u64) -> u64 {
        match self {
            Self::PageNumbers if got > 0 => span.size,
            _ => got,
        }
    }

    /// Times that a page which does not link is asked for.
    fn tries(self) -> u64 {
        match self {
            Self::RowOffsets => BACK_UPS,
            Self::PageNumbers => STALLS.into(),
        }
    }
}

/// How far reading has come, as the rows show it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The number of rows that the service announced last.
    pub(super) total: Option<u64>,
    /// Distinct rows of this pass.
    pub(super) received: u64,
    /// Rows from the last row that the next page may hang on to the end of its page.
    pub(super) overlap: u64,
    /// The next page hangs on what the last one was, so pages are asked for one at a time.
    pub(super) one_by_one: bool,
    /// The last page showed that nothing lies behind it.
    pub(super) end_shown: bool,
}

/// The policy of one window.
#[derive(Debug)]
pub(super) struct PagePolicy {
    pub(super) pages: Pages,
    layout: Layout,
    /// Rows that paging reaches, as declared or met.
    depth: Option<u64>,
    depth_met: bool,
    /// A first page smaller than asked for tells the page size.
    clamped: bool,
    /// Whether pages share a row.
    pub(super) overlapping: bool,
    /// Rows that a page has, as far as the service was seen to keep to what it is asked.
    stride: u64,
    /// Rank behind the last row received in this pass.
    row: u64,
    /// Rank behind the last row asked for.
    asked: u64,
    /// Rows of the last page that was shorter than asked for, where reading goes on behind it.
    short: Option<u64>,
    /// Whether the last page was shorter than asked for, where pages are counted.
    partial: bool,
    /// Pages that were, though others followed.
    gaps: u64,
}

impl PagePolicy {
    /// The start of a window.
    pub(super) fn new(pages: Pages, profile: &Profile) -> Self {
        let layout = Layout::of(profile.offset.unit);
        Self {
            pages,
            layout,
            depth: profile.depth.rows,
            depth_met: false,
            clamped: profile.page.beyond == Oversize::Clamped,
            overlapping: layout.shares_rows(pages.size),
            stride: pages.size,
            row: pages.skip,
            asked: pages.skip,
            short: None,
            partial: false,
            gaps: 0,
        }
    }

    /// Begins another pass.
    pub(super) fn again(&mut self) {
        (self.row, self.asked, self.short) = (self.pages.skip, self.pages.skip, None);
        (self.partial, self.gaps) = (false, 0);
    }

    /// Takes note that paging reaches so far.
    pub(super) fn reach(&mut self, depth: Option<u64>) {
        self.depth = self.depth.into_iter().chain(depth).min();
    }

    /// Takes note that the service keeps pages to a size.
    pub(super) fn keep_to(&mut self, stride: u64) {
        self.stride = stride.min(self.stride);
    }

    /// Rows of a page, as far as the service was seen to keep them.
    pub(super) fn stride(&self) -> u64 {
        self.stride
    }

    /// Whether a first page smaller than asked for tells the page size.
    pub(super) fn is_clamped(&self) -> bool {
        self.clamped
    }

    /// Rank behind the last row that came.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// The declared depth, or the one that was met.
    pub(super) fn depth(&self) -> Option<u64> {
        self.depth
    }

    /// The depth that the service was found to have.
    pub(super) fn depth_found(&self) -> Option<u64> {
        self.depth.filter(|_| self.depth_met)
    }

    /// Pages that were shorter than asked for, though others followed, where pages are counted.
    pub(super) fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Takes note that the service answers nothing behind the rows that have come.
    pub(super) fn met_depth(&mut self) {
        self.depth = Some(self.depth.unwrap_or(u64::MAX).min(self.row.max(1)));
        self.depth_met = true;
    }

    /// The first span of a pass.
    pub(super) fn first(&self) -> Span {
        let size = self.stride.min(self.limit().saturating_sub(self.pages.skip)).max(1);
        Span { row: self.pages.skip, size: self.reachable(self.pages.skip, size).max(1) }
    }

    /// The next span of a pass that is not over. `idle`: no page is under way. None while those have to come first, and where
    /// there is no more to ask for.
    pub(super) fn next(&mut self, idle: bool, seen: Seen) -> Option<Span> {
        if idle {
            self.asked = self.row;
        }
        if (seen.one_by_one || self.end(seen.total).is_none() || self.short.is_some()) && !idle {
            return None;
        }
        // A full page that ends where the total does is followed by another one, and where rows came twice, a limit lies
        // further than it seemed.
        let end = if idle { seen.total } else { self.end(seen.total) };
        if end.is_some_and(|end| self.asked >= end) && (!idle || seen.end_shown) {
            return None;
        }
        let overlap = match () {
            () if !self.shares_rows(seen.total) || self.asked == self.pages.skip => 0,
            () if idle => seen.overlap,
            () => 1,
        };
        let row = self.asked.saturating_sub(overlap.min(self.stride.saturating_sub(1)));
        // The last page is asked for whole, so that the end shows, and a total that is too low.
        let wanted = match self.pages.fetch {
            Some(fetch) if idle => self.layout.wanted(overlap + fetch.saturating_sub(seen.received)),
            Some(_) => self.layout.wanted(self.limit().saturating_sub(row)),
            None => u64::MAX,
        };
        let size = self.reachable(row, self.stride.min(wanted));
        if size <= overlap {
            return None;
        }
        self.asked = self.layout.behind(Span { row, size }, self.stride);
        Some(Span { row, size })
    }

    /// What to read for a page that does not link: on from the last row where rows before it have not come, else from
    /// further back, `tried` times without success so far. `None` where that was tried often enough.
    pub(super) fn repair(&self, span: Span, tried: u64, overlap: u64) -> Option<Span> {
        if self.gives_up(tried) {
            return None;
        }
        if self.layout == Layout::PageNumbers {
            // The page before it, where that was the short one.
            let row = if self.partial { self.row.saturating_sub(self.stride) } else { span.row };
            return Some(Span { row, size: self.stride });
        }
        let on = self.row.saturating_sub(overlap);
        let back = (self.stride - 1).saturating_mul(tried + 1);
        let row = if on < span.row && tried == 0 { on } else { span.row.min(on).saturating_sub(back) };
        let row = row.max(self.pages.skip);
        let size = self.reachable(row, self.stride);
        (size > 0).then_some(Span { row, size })
    }

    /// Whether a page that does not link was looked for often enough.
    pub(super) fn gives_up(&self, tried: u64) -> bool {
        tried >= self.layout.tries()
    }

    /// Whether a page of pages side by side, behind those that have come, leaves no row out: it is whole, and so was the one
    /// before it. `None` where pages share rows, or nothing follows from where it lies.
    pub(super) fn lies_whole(&self, span: Span, rows: u64, total: Option<u64>) -> Option<bool> {
        if self.layout == Layout::RowOffsets || span.row < self.row || rows == 0 {
            return None;
        }
        let end = span.row + rows;
        let short = end < span.row + span.size && total.is_some_and(|total| end < total);
        Some(!short && !self.partial)
    }

    /// The span that a page stands for. Pages that are counted can be had in the size of the first one, whatever made that
    /// smaller.
    pub(super) fn stands_for(&mut self, span: Span, got: u64, total: Option<u64>) -> Span {
        if self.layout == Layout::RowOffsets {
            return span;
        }
        let more = total.is_none_or(|total| total > got);
        if span.row == 0 && self.row == 0 && more && (1..self.stride).contains(&got) {
            self.stride = got;
        }
        Span { size: span.size.min(self.stride), ..span }
    }

    /// Takes note of a page whose rows are not told apart.
    pub(super) fn passed(&mut self, span: Span, got: u64) {
        self.row = span.row + self.layout.advance(span, got);
    }

    /// Takes note of a page with `new` rows; `first`: it is the first one of the pass. `last_again`: behind the end the last
    /// page comes again.
    pub(super) fn take(&mut self, span: Span, got: u64, new: u64, first: bool, last_again: bool, total: Option<u64>) {
        let behind = span.row >= self.row;
        let counted = self.layout == Layout::PageNumbers;
        let advance = self.layout.advance(span, got);
        if new > 0 || first {
            // A page that goes further than there are rows began before the row that was asked for.
            let displaced = !first && !counted && total.is_some_and(|total| span.row + advance > total);
            self.row = if displaced { self.row + new } else { span.row + advance };
        }
        let ended = total.is_some_and(|total| self.row >= total);
        self.short = match (got < span.size && got > 1 && !ended, self.short) {
            (true, Some(known)) if known == got => {
                self.stride = got;
                None
            }
            // Without a total it may be the end.
            (true, None) if self.clamped && !counted && total.is_some() => {
                self.stride = got;
                None
            }
            // Pages that are counted cannot be continued in their middle.
            (true, _) if !counted => Some(got),
            _ => None,
        };
        // The last page may come again.
        if counted && got > 0 && (first || new > 0 || !last_again) {
            self.gaps += u64::from(self.partial && behind);
            self.partial = got < span.size;
        }
    }

    /// Takes note that a page read from further back ended there: the next one hangs on its rows now.
    pub(super) fn fall_back(&mut self, row: u64) {
        if self.layout == Layout::RowOffsets {
            self.row = self.row.min(row);
        }
    }

    /// Whether pages are held to share rows, where the service announces so many.
    pub(super) fn shares_rows(&self, total: Option<u64>) -> bool {
        // Of rows in no order any will do, as long as not all are needed.
        let any =
            self.pages.fetch.is_some() && !self.pages.ordered && self.end(total).is_some_and(|end| Some(end) < total);
        self.overlapping && !any
    }

    /// Requests that are still to come, as far as the total tells.
    pub(super) fn requests(&self, total: Option<u64>) -> Option<u64> {
        let left = self.end(total)?.saturating_sub(self.row);
        let advance = if self.shares_rows(total) { self.stride.saturating_sub(1).max(1) } else { self.stride };
        Some(left.div_ceil(advance))
    }

    /// The row behind the last one that is needed, where it is known.
    pub(super) fn end(&self, total: Option<u64>) -> Option<u64> {
        total.map(|total| total.min(self.limit()))
    }

    fn limit(&self) -> u64 {
        self.pages.fetch.map_or(u64::MAX, |fetch| self.pages.skip.saturating_add(fetch))
    }

    /// The number of rows from `row` on that paging reaches, `size` at most.
    pub(super) fn reachable(&self, row: u64, size: u64) -> u64 {
        self.depth.map_or(size, |depth| size.min(depth.saturating_sub(row)))
    }
}
