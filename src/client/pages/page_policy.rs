//! Page policy: the ranges of rows to request, in strides that the service returns, as far as paging reaches.
//!
//! ```text
//! offsets count rows    [0 100) [99 199) [198 298) …    pages share a row, and may begin anywhere
//! offsets count pages   [0 100) [100 200) [200 300) …   pages are adjacent, all of one size
//! a cursor              [0 100) [100 130) [130 230) …   pages are adjacent, of any size; one at a time
//! ```
//!
//! The unit of offsets matters only here: [`Layout`] covers them all. Pure; [`proof`](super::proof) decides what the rows
//! prove, and reports the progress in [`Seen`].

use crate::profile::{Offset, OffsetUnit, Oversize, PageSpec, Profile};
use crate::request::Pages;

/// Times that a page without new rows is requested again before it is believed.
pub(super) const STALLS: u32 = 2;
/// Attempts to link a page by reading further back.
const BACK_UPS: u64 = 4;
/// Smallest page that shares a row, in rows: in smaller pages, the shared row costs too much.
const OVERLAP_FROM: u64 = 5;

/// Rows to request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowRange {
    /// First row, 0-based.
    pub(super) row: u64,
    /// Number of rows.
    pub(super) size: u64,
}

/// Layout of the pages in the rows of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A page begins at any row: it shares one with the page before it, and continues after a short one. If it does not
    /// link, rows from further back are read.
    RowOffsets,
    /// Pages are adjacent: all pages of a scan have one size, a short one leaves a gap, and one that does not link can
    /// only be requested again.
    PageNumbers,
    /// Each page names the one after it, which begins where it ends; if stable, whatever is added or removed meanwhile.
    Cursors { stable: bool },
}

impl Layout {
    fn of(offset: &Offset) -> Self {
        match offset.unit {
            OffsetUnit::Cursor => Self::Cursors { stable: offset.stable },
            _ if offset.reaches_any_row() => Self::RowOffsets,
            _ => Self::PageNumbers,
        }
    }

    /// True if pages of this size share a row.
    fn shares_rows(self, size: u64) -> bool {
        self == Self::RowOffsets && size >= OVERLAP_FROM
    }

    /// Rows to request if this many are wanted: numbered pages are requested in full, and a cursor may hold the size.
    fn wanted(self, rows: u64) -> u64 {
        match self {
            Self::RowOffsets => rows,
            Self::PageNumbers | Self::Cursors { .. } => u64::MAX,
        }
    }

    /// Row number after a requested page.
    fn behind(self, range: RowRange, stride: u64) -> u64 {
        match self {
            Self::RowOffsets | Self::Cursors { .. } => range.row + range.size,
            Self::PageNumbers => range.row + stride,
        }
    }

    /// Row numbers that a page of this many rows takes up.
    fn advance(self, range: RowRange, got: u64) -> u64 {
        match self {
            Self::PageNumbers if got > 0 => range.size,
            _ => got,
        }
    }

    /// Number of attempts to link a page.
    fn tries(self) -> u64 {
        match self {
            Self::RowOffsets => BACK_UPS,
            Self::PageNumbers | Self::Cursors { .. } => STALLS.into(),
        }
    }
}

/// Progress of reading, as the rows show it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Total that the service reported last.
    pub(super) total: Option<u64>,
    /// Distinct rows of this pass.
    pub(super) received: u64,
    /// Rows from the last row that the next page may link to, to the end of its page.
    pub(super) overlap: u64,
    /// Set if the next page depends on the last one, so that pages are requested one at a time.
    pub(super) one_by_one: bool,
    /// Set if the last page showed that nothing follows it.
    pub(super) end_shown: bool,
}

/// Page policy of one window.
#[derive(Debug)]
pub(super) struct PagePolicy {
    pub(super) pages: Pages,
    layout: Layout,
    /// Rows that paging reaches, declared or discovered.
    depth: Option<u64>,
    /// Rows that it reaches by the profile.
    declared: Option<u64>,
    /// Set if the depth was discovered in another window, until the first page of this one came.
    elsewhere: bool,
    depth_met: bool,
    /// Set if a first page that is smaller than requested shows the page size.
    clamped: bool,
    /// Set once offsets turned out to be rounded, until a page with new rows shows that they are not ignored.
    may_be_ignored: bool,
    /// Set if pages share a row.
    pub(super) overlapping: bool,
    /// Rows per page, as far as the service was seen to return the requested size.
    stride: u64,
    /// Rows per page before a short page was taken for the size of all, until another page of that size follows.
    wider: Option<u64>,
    /// Row number after the last row received in this pass.
    row: u64,
    /// Row number after the last row requested.
    asked: u64,
    /// Rows of the last page, if it was shorter than requested and reading continues after it.
    short: Option<u64>,
    /// Set if the last page was shorter than requested; only for numbered pages.
    partial: bool,
    /// Number of short numbered pages that others followed.
    gaps: u64,
    /// Rows of the largest page of this window and of the windows that it was cut from.
    largest: u64,
    /// Set if the last page with rows was as large as requested.
    full: bool,
    /// Page sizes that the service accepts.
    sizes: PageSpec,
}

impl PagePolicy {
    /// Creates the policy of a window.
    pub(super) fn new(pages: Pages, profile: &Profile) -> Self {
        let layout = Layout::of(&profile.offset);
        Self {
            pages,
            layout,
            depth: profile.depth.rows,
            declared: profile.depth.rows,
            elsewhere: false,
            depth_met: false,
            clamped: profile.page.beyond == Oversize::Clamped,
            may_be_ignored: false,
            overlapping: layout.shares_rows(pages.size),
            stride: pages.size,
            wider: None,
            row: pages.skip,
            asked: pages.skip,
            short: None,
            partial: false,
            gaps: 0,
            largest: 0,
            full: false,
            sizes: profile.page.clone(),
        }
    }

    /// Continues with adjacent pages after the first one, which had this many rows: the service rounds offsets down to multiples of
    /// the page size.
    pub(super) fn align(&mut self, rows: u64) {
        (self.layout, self.overlapping, self.may_be_ignored) = (Layout::PageNumbers, false, rows > 0);
        (self.row, self.asked, self.short) = (self.pages.skip + rows, self.pages.skip + rows, None);
    }

    /// True if pages are adjacent.
    pub(super) fn is_aligned(&self) -> bool {
        self.layout != Layout::RowOffsets
    }

    /// True if each page names the one after it.
    pub(super) fn follows_cursors(&self) -> bool {
        matches!(self.layout, Layout::Cursors { .. })
    }

    /// True if the page that one names follows it, whatever is added or removed.
    pub(super) fn has_stable_cursors(&self) -> bool {
        self.layout == Layout::Cursors { stable: true }
    }

    /// Starts another pass.
    pub(super) fn again(&mut self) {
        (self.row, self.asked, self.short) = (self.pages.skip, self.pages.skip, None);
        (self.partial, self.gaps) = (false, 0);
    }

    /// Records that paging reached this many rows in another window. The first page shows if it reaches further in this one.
    pub(super) fn reach(&mut self, depth: Option<u64>) {
        self.depth = self.depth.into_iter().chain(depth).min();
        self.elsewhere = depth.is_some();
    }

    /// Records that the service limits pages to this size, and that its largest page before had this many rows.
    pub(super) fn keep_to(&mut self, stride: u64, largest: u64) {
        self.largest = largest;
        self.stride = stride.max(largest).min(self.stride);
    }

    /// Rows per page, as far as the service was seen to return the requested size.
    pub(super) fn stride(&self) -> u64 {
        self.stride
    }

    /// True if a first page that is smaller than requested shows the page size.
    pub(super) fn is_clamped(&self) -> bool {
        self.clamped
    }

    /// Row number after the last row received.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// Depth of paging in rows, declared or discovered.
    pub(super) fn depth(&self) -> Option<u64> {
        self.depth
    }

    /// Depth of paging in rows, if it was discovered.
    pub(super) fn depth_found(&self) -> Option<u64> {
        self.depth.filter(|_| self.depth_met)
    }

    /// True if the last page with rows was as large as requested: the next one would have shown whether anything follows.
    pub(super) fn ends_with_full_page(&self) -> bool {
        self.full && self.largest > 1
    }

    /// Number of numbered pages that were shorter than requested although others followed.
    pub(super) fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Records that the service returns nothing after the rows received so far.
    pub(super) fn met_depth(&mut self) {
        // A short page before an empty one shows the depth, not the size of a page.
        self.stride = self.wider.take().unwrap_or(self.stride);
        self.depth = Some(self.depth.unwrap_or(u64::MAX).min(self.row.max(1)));
        self.depth_met = true;
    }

    /// Returns the first range of a pass.
    pub(super) fn first(&self) -> RowRange {
        let size = self.stride.min(self.limit().saturating_sub(self.pages.skip)).max(1);
        let depth = if self.elsewhere { self.declared } else { self.depth };
        RowRange { row: self.pages.skip, size: within(depth, self.pages.skip, size).max(1) }
    }

    /// Returns up to `most` ranges after the first one, of full pages within the expected total.
    pub(super) fn early_ranges(&mut self, expected: u64, most: usize) -> Vec<RowRange> {
        let seen = Seen { total: Some(expected), received: 0, overlap: 0, one_by_one: false, end_shown: false };
        self.asked = self.layout.behind(self.first(), self.stride);
        let full = self.stride;
        let ranges = std::iter::from_fn(|| self.next(false, seen));
        ranges.take_while(|range| range.size == full && range.row + range.size <= expected).take(most).collect()
    }

    /// Returns how many of the early ranges are full pages by the first page and its total. The next range follows the last of
    /// them.
    pub(super) fn confirm_early(&mut self, ranges: impl Iterator<Item = RowRange>, total: Option<u64>) -> usize {
        let (stride, end) = (self.stride, self.end(total).unwrap_or_default());
        let as_expected = self.short.is_none() && !self.partial;
        let full = ranges.take_while(|range| as_expected && range.size == stride && range.row + range.size <= end);
        let mut confirmed = 0;
        for range in full {
            self.asked = self.layout.behind(range, stride);
            confirmed += 1;
        }
        confirmed
    }

    /// Returns the next range of a pass that is not over. `idle` is true if no page is in flight. `None` if the pages in
    /// flight have to arrive first, or if there is nothing more to request.
    pub(super) fn next(&mut self, idle: bool, seen: Seen) -> Option<RowRange> {
        if idle {
            self.asked = self.row;
        }
        let one_by_one = seen.one_by_one || self.follows_cursors() || self.may_be_ignored;
        if (one_by_one || self.end(seen.total).is_none() || self.short.is_some()) && !idle {
            return None;
        }
        // A full page that ends at the total is followed by another one, and with duplicates, a limit is reached later
        // than it seemed.
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
        // The last page is requested in full, so that it shows the end, and a total that is too low.
        let wanted = match self.pages.fetch {
            Some(fetch) if idle => self.layout.wanted(overlap + fetch.saturating_sub(seen.received)),
            Some(_) => self.layout.wanted(self.limit().saturating_sub(row)),
            None => u64::MAX,
        };
        let size = within(self.depth, row, self.stride.min(wanted));
        if size <= overlap {
            return None;
        }
        self.asked = self.layout.behind(RowRange { row, size }, self.stride);
        Some(RowRange { row, size })
    }

    /// Returns the range to read for a page that does not link: on from the last row if rows before the page have not
    /// been received, otherwise from further back. `tried` attempts have failed so far; `None` after enough of them.
    pub(super) fn repair(&self, range: RowRange, tried: u64, overlap: u64) -> Option<RowRange> {
        if self.gives_up(tried) {
            return None;
        }
        if self.layout != Layout::RowOffsets {
            // The page before it, if that was the short one.
            let row = if self.partial { self.row.saturating_sub(self.stride) } else { range.row };
            return Some(RowRange { row, size: self.stride });
        }
        let on = self.row.saturating_sub(overlap);
        let back = (self.stride - 1).saturating_mul(tried + 1);
        let row = if on < range.row && tried == 0 { on } else { range.row.min(on).saturating_sub(back) };
        let row = row.max(self.pages.skip);
        let size = within(self.depth, row, self.stride);
        (size > 0).then_some(RowRange { row, size })
    }

    /// True after enough attempts to link a page.
    pub(super) fn gives_up(&self, tried: u64) -> bool {
        tried >= self.layout.tries()
    }

    /// True if an adjacent page after those received leaves no row out: it is full, and so was the one before it.
    /// `None` if pages share rows, or if its position shows nothing.
    pub(super) fn lies_whole(&self, range: RowRange, rows: u64, total: Option<u64>) -> Option<bool> {
        if self.layout != Layout::PageNumbers || range.row < self.row || rows == 0 {
            return None;
        }
        let end = range.row + rows;
        let short = end < range.row + range.size && total.is_some_and(|total| end < total);
        Some(!short && !self.partial)
    }

    /// Returns the range that a page stands for. Numbered pages are available in the size of the first one, for whatever
    /// reason that was smaller than requested.
    pub(super) fn stands_for(&mut self, range: RowRange, got: u64, total: Option<u64>) -> RowRange {
        if self.layout != Layout::PageNumbers {
            return range;
        }
        let more = total.is_none_or(|total| total > got);
        // The number of a page counts pages of the size that is sent.
        let accepted = self.sizes.accepted(got) == got;
        if range.row == 0 && self.row == 0 && more && accepted && (1..self.stride).contains(&got) {
            self.stride = got;
        }
        RowRange { size: range.size.min(self.stride), ..range }
    }

    /// Records a page whose rows cannot be told apart.
    pub(super) fn passed(&mut self, range: RowRange, got: u64) {
        self.row = range.row + self.layout.advance(range, got);
    }

    /// Records a page with `new` rows. `first` is true for the first page of the pass; `last_again` is true if the last
    /// page is returned again beyond the end.
    pub(super) fn take(
        &mut self,
        range: RowRange,
        got: u64,
        new: u64,
        first: bool,
        last_again: bool,
        total: Option<u64>,
    ) {
        let behind = range.row >= self.row;
        let counted = self.layout == Layout::PageNumbers;
        let advance = self.layout.advance(range, got);
        if std::mem::take(&mut self.elsewhere) && self.depth.is_some_and(|depth| range.row + got > depth) {
            self.depth = self.declared;
        }
        if new > 0 || first {
            // A page that goes beyond the total began before the row that was requested.
            let displaced = !first && self.layout == Layout::RowOffsets;
            let displaced = displaced && total.is_some_and(|total| range.row + advance > total);
            self.row = if displaced { self.row + new } else { range.row + advance };
        }
        self.may_be_ignored &= new == 0;
        let ended = total.is_some_and(|total| self.row >= total);
        if !first && new > 0 && got == self.stride {
            self.wider = None;
        }
        // A page that is smaller than an earlier one shows the end or the depth of paging, not the size of a page.
        self.largest = self.largest.max(got);
        self.full = if got > 0 { got >= range.size } else { self.full };
        let size = got == self.largest;
        // A page that a cursor names follows one of any size.
        let short = got < range.size && got > 1 && !ended && !self.follows_cursors();
        self.short = match (short, self.short) {
            (true, Some(known)) if known == got && size => {
                self.stride = got;
                None
            }
            // Without a total, this may be the end.
            (true, None) if self.clamped && !counted && total.is_some() && size => {
                self.wider.get_or_insert(self.stride);
                self.stride = got;
                None
            }
            // Numbered pages cannot be continued in the middle.
            (true, _) if !counted => Some(got),
            _ => None,
        };
        // The last page may be returned again.
        if counted && got > 0 && (first || new > 0 || !last_again) {
            self.gaps += u64::from(self.partial && behind);
            self.partial = got < range.size;
        }
    }

    /// Records that a page read from further back ended at `row`: the next page links to its rows now.
    pub(super) fn fall_back(&mut self, row: u64) {
        if self.layout == Layout::RowOffsets {
            self.row = self.row.min(row);
        }
    }

    /// True if pages have to share rows, given this total.
    pub(super) fn shares_rows(&self, total: Option<u64>) -> bool {
        // Without an order, any rows will do, as long as not all are needed.
        let any =
            self.pages.fetch.is_some() && !self.pages.ordered && self.end(total).is_some_and(|end| Some(end) < total);
        self.overlapping && !any
    }

    /// Number of remaining requests, as far as the total shows.
    pub(super) fn requests(&self, total: Option<u64>) -> Option<u64> {
        let left = self.end(total)?.saturating_sub(self.row);
        let advance = if self.shares_rows(total) { self.stride.saturating_sub(1).max(1) } else { self.stride };
        Some(left.div_ceil(advance))
    }

    /// Row number after the last row needed, if known.
    pub(super) fn end(&self, total: Option<u64>) -> Option<u64> {
        total.map(|total| total.min(self.limit()))
    }

    fn limit(&self) -> u64 {
        self.pages.fetch.map_or(u64::MAX, |fetch| self.pages.skip.saturating_add(fetch))
    }
}

/// Number of the `size` rows from `row` on that lie within a depth of paging: all of them if there is none.
pub(super) fn within(depth: Option<u64>, row: u64, size: u64) -> u64 {
    depth.map_or(size, |depth| size.min(depth.saturating_sub(row)))
}
