//! Reading of one window: the policy decides what to request next, the proof whether all of it was received.
//!
//! ```text
//! first page ─▶ total ─▶ ranges (policy) ─▶ each page linked (proof), or re-read from further back
//!                           │                             │
//!                           └ depth or memory: cut        └ end seen, count agrees ─▶ complete
//!                                                           else another pass, careful ─▶ … ─▶ incomplete
//! ```
//!
//! Pure. A short or empty page in the middle is never treated as the end; what is requested again, how often and from
//! where is bounded.

use super::PageFacts;
use super::continuity::{Rows, Taken};
use super::ids::{Ids, Known};
use super::page_policy::{PagePolicy, RowRange, Seen, within};
use super::proof::{Proof, Verdict};
use crate::client::evidence;
use crate::client::verdict::Claims;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Direction, Grid, Profile};
use crate::request::{Beside, Hint, Pages};

/// Rows after which a window is cut if possible, so that their ids can be forgotten.
const FORGET: u64 = 100_000;

/// Progress of reading one window.
#[derive(Debug)]
pub(super) struct Reading {
    policy: PagePolicy,
    pub(super) proof: Proof,
    /// Set if pages are requested one after another.
    one_by_one: bool,
    /// Set if the window may be cut, and is to be when that saves memory.
    cuttable: bool,
    /// Set once the opposite order or the overview confirmed the end.
    end_confirmed: bool,
    /// Set if it was the opposite order.
    opposite: bool,
    /// Set if the reader may stop before the end.
    stops_early: bool,
    /// Set once the place of a mention was checked.
    place_checked: bool,
    /// Set if a page behind the last row was refused.
    refused: bool,
}

impl Reading {
    /// Creates the reading of a window whose rows `known` were emitted already. `order` is the order of their keys in which
    /// rows arrive, if any; `grid` has the instants at which windows can be cut, if the keys are instants.
    pub(super) fn new(
        pages: Pages,
        profile: &Profile,
        order: Option<Direction>,
        grid: Option<Grid>,
        known: Ids,
    ) -> Self {
        Self {
            policy: PagePolicy::new(pages, profile),
            proof: Proof::new(profile, order, grid, known),
            one_by_one: false,
            cuttable: false,
            end_confirmed: false,
            refused: false,
            opposite: false,
            stops_early: false,
            place_checked: false,
        }
    }

    /// Sets the number of rows that paging is known to reach.
    pub(super) fn reaching(mut self, depth: Option<u64>) -> Self {
        self.policy.reach(depth);
        self
    }

    /// Returns the reading in adjacent pages from the beginning, for a service that was seen to round offsets down.
    pub(super) fn aligned(mut self) -> Self {
        self.policy.align(0);
        self
    }

    /// Switches to adjacent pages if this one, requested from a row within the first page on, is the first page: the service rounds
    /// offsets down to multiples of the page size. Returns true if so.
    pub(super) fn aligns(&mut self, range: RowRange, rows: Option<Rows<'_>>) -> bool {
        let first = self.proof.first_page();
        let within = range.row > self.policy.pages.skip && range.row < self.policy.pages.skip + first.len() as u64;
        let again = first.len() > 1 && first.len() as u64 == range.size && rows.is_some_and(|rows| rows.ids == first);
        if self.policy.is_aligned() || self.policy.pages.skip > 0 || !within || !again {
            return false;
        }
        self.policy.align(range.size);
        true
    }

    /// Returns the reading for the rest of a window that was cut, in pages of a size that the service was seen to
    /// return, and not smaller than the largest page before.
    pub(super) fn rest(mut self, stride: u64, largest: u64) -> Self {
        self.policy.keep_to(stride, largest);
        Self { proof: self.proof.of_the_rest(), ..self }
    }

    /// Starts with a careful pass: the window was read before, but not completely.
    pub(super) fn careful(mut self) -> Self {
        self.proof.once_more();
        self
    }

    /// Returns the reading in careful mode from the first page on, which assumes no order of equal keys, for a
    /// reader that may stop before the end.
    pub(super) fn stopping_early(self) -> Self {
        Self { proof: self.proof.carefully(), one_by_one: true, stops_early: true, ..self }
    }

    /// Switches to careful mode from the first page on: the rows of this pass have to be proven by its pages alone.
    pub(super) fn be_careful(&mut self) {
        self.proof.chain.be_careful();
        self.one_by_one = true;
    }

    /// Sets whether the window can be cut.
    pub(super) fn set_cuttable(&mut self, cuttable: bool) {
        // The far side does not know the rows skipped at the beginning.
        self.cuttable = cuttable && self.policy.pages.skip == 0;
    }

    /// Rows per page, as far as the service was seen to return the requested size.
    pub(super) fn stride(&self) -> u64 {
        self.policy.stride()
    }

    /// Row number after the last row received.
    pub(super) fn row(&self) -> u64 {
        self.policy.row()
    }

    /// Depth of paging in rows, if it was discovered.
    pub(super) fn depth_found(&self) -> Option<u64> {
        self.policy.depth_found()
    }

    /// True if rows of a page that does not link may be emitted. Not if an order is wanted, since the rows in between
    /// would be too late.
    pub(super) fn may_skip(&self) -> bool {
        !self.policy.pages.ordered
    }

    /// Records a total.
    pub(super) fn record_total(&mut self, total: Option<u64>) {
        self.proof.record_total(total);
    }

    /// Records the approximate number of rows, and the number by other counts in the response.
    pub(super) fn hint(&mut self, hint: Option<Hint>, beside: Beside) {
        self.proof.hint(hint, beside);
    }

    fn end(&self) -> Option<u64> {
        self.policy.end(self.proof.total())
    }

    /// True if there are more rows than are read in one window.
    pub(super) fn will_be_cut(&self) -> bool {
        let most = self.policy.depth().map_or(FORGET, |depth| depth.min(FORGET));
        self.end().is_some_and(|end| end > most)
    }

    /// Fails if rows are needed that paging does not reach, and the window cannot be cut.
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`], naming their number.
    pub(super) fn check_depth(&self) -> Result<()> {
        let (Some(depth), false) = (self.policy.depth(), self.cuttable) else { return Ok(()) };
        let (skip, total) = (self.policy.pages.skip, self.proof.total());
        let skipped = skip >= depth && total.is_none_or(|total| total > depth);
        match self.end() {
            Some(end) if end > depth => Err(too_deep(&end.to_string(), depth)),
            None if self.row() >= depth && !self.satisfied() => Err(too_deep(&format!("{depth} or more"), depth)),
            _ if skipped => Err(too_deep(&format!("{skip} or more"), depth)),
            _ => Ok(()),
        }
    }

    /// Number of remaining requests, as far as the total shows.
    pub(super) fn requests(&self) -> Option<u64> {
        self.policy.requests(self.proof.total())
    }

    /// Returns the first range of a pass.
    pub(super) fn first(&self) -> RowRange {
        self.policy.first()
    }

    /// Returns up to `most` ranges after the first one, if this many rows are expected and pages need not be read one after another.
    pub(super) fn early_ranges(&mut self, expected: u64, most: usize) -> Vec<RowRange> {
        let early = !self.one_by_one && !self.proof.chain.is_careful() && expected <= FORGET;
        if early { self.policy.early_ranges(expected, most) } else { Vec::new() }
    }

    /// Returns how many of the early ranges are needed, now that the first page has arrived. The next range follows the last of
    /// them.
    pub(super) fn confirm_early(&mut self, ranges: impl Iterator<Item = RowRange>) -> usize {
        let goes_on = !self.satisfied() && !self.proof.ends(&self.policy) && !self.wants_cut();
        let careful = self.one_by_one || self.proof.chain.is_careful() || self.proof.stalls();
        match goes_on && !careful {
            true => self.policy.confirm_early(ranges, self.proof.total()),
            false => 0,
        }
    }

    /// Returns the next range of the pass. `None` if the pages in flight have to arrive first, or if there is nothing
    /// more to request.
    pub(super) fn next_range(&mut self, idle: bool) -> Option<RowRange> {
        if self.satisfied() || self.proof.ends(&self.policy) || self.wants_cut() {
            return None;
        }
        let proof = &self.proof;
        let seen = Seen {
            total: proof.total(),
            received: proof.chain.received(),
            overlap: proof.chain.overlap,
            one_by_one: self.one_by_one || proof.is_repeated() || proof.stalls(),
            end_shown: proof.end_shown(),
        };
        self.policy.next(idle, seen)
    }

    /// True if each page names the one after it.
    pub(super) fn follows_cursors(&self) -> bool {
        self.policy.follows_cursors()
    }

    /// Records that the last page names none after it.
    pub(super) fn meet_end(&mut self) {
        self.proof.meet_end();
    }

    /// Records that the last page names one after it that was not read yet.
    pub(super) fn follow(&mut self) {
        self.proof.follow();
    }

    /// True if pages have to share rows.
    pub(super) fn overlaps(&self) -> bool {
        self.policy.shares_rows(self.proof.total())
    }

    /// True if all pages of the pass link to those before them.
    pub(super) fn is_linked(&self) -> bool {
        self.proof.is_linked()
    }

    /// True if a page links to those before it.
    pub(super) fn links(&mut self, range: RowRange, rows: Rows<'_>) -> bool {
        self.proof.links(&self.policy, range, rows)
    }

    /// Returns the range to read for a page that does not link. `tried` attempts have failed so far; `None` after enough
    /// of them.
    pub(super) fn repair(&mut self, range: RowRange, tried: u64) -> Option<RowRange> {
        let back = self.policy.repair(range, tried, self.proof.chain.overlap);
        if back.is_none() && self.policy.gives_up(tried) {
            self.proof.give_up_links();
        }
        back
    }

    /// Takes the rows of a page.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if a further page repeats the first one: the offset has no effect.
    pub(super) fn take(&mut self, range: RowRange, got: u64, rows: Option<Rows<'_>>) -> Result<Option<Taken>> {
        // A page may have more rows than requested; the others come again.
        let got = got.min(range.size);
        let total = self.proof.total();
        let range = self.policy.stands_for(range, got, total);
        let Some(rows) = rows else {
            self.proof.passed(got);
            self.policy.passed(range, got);
            return Ok(None);
        };
        let first = self.proof.chain.received() == 0;
        let taken = self.proof.take(&self.policy, range, got, rows)?;
        self.policy.take(range, got, taken.new, first, self.proof.last_page_repeats(), total);
        if self.proof.chain.overlap >= self.policy.stride() {
            self.proof.chain.loosen(rows);
        }
        Ok(Some(taken))
    }

    /// Records that a page read from further back ended at `row`: the chain links to its rows now.
    pub(super) fn fall_back(&mut self, row: u64) {
        self.policy.fall_back(row);
    }

    /// Records that the service returns nothing after the rows received so far.
    pub(super) fn met_depth(&mut self) {
        self.policy.met_depth();
    }

    /// Does the same if pages repeatedly contained nothing new.
    pub(super) fn note_depth(&mut self) {
        if self.proof.is_stuck() {
            self.met_depth();
        }
    }

    /// True if the rows received can be left to a window of their own.
    pub(super) fn can_be_cut(&self) -> bool {
        self.cuttable && self.proof.chain.cut().is_some_and(|(_, received)| received > 0)
    }

    /// True if more pages follow.
    pub(super) fn goes_on(&self) -> bool {
        self.overlaps() && !self.satisfied() && self.end().is_none_or(|end| self.row() < end)
    }

    /// True if the rest of the window has to be requested as a window of its own.
    pub(super) fn wants_cut(&self) -> bool {
        if !self.cuttable || self.satisfied() {
            return false;
        }
        // A total that equals the depth of paging may be capped by it.
        let depth = self.policy.depth();
        let all_reached = depth.is_some_and(|depth| self.row() >= depth);
        let more = all_reached || self.end().is_none_or(|end| self.row() < end);
        let overlap = self.proof.chain.overlap;
        let from = self.row().saturating_sub(overlap);
        let deep = within(depth, from, u64::MAX) <= overlap;
        // A total below another count of the same response may be capped.
        let above = self.proof.above().is_some() && self.proof.total().is_some_and(|total| self.row() >= total);
        let above = above && self.proof.chain.received() > 0;
        more && (deep || self.proof.chain.received() >= FORGET) || self.proof.may_go_on(&self.policy) || above
    }

    /// True if a page behind the last row may be refused because nothing follows that row: it is the last one by the total, or there is
    /// no total. Whether the row is the depth of paging instead is shown by [`may_be_depth`](Self::may_be_depth).
    pub(super) fn may_have_ended(&self, range: RowRange) -> bool {
        let row = self.row();
        let behind = row > self.policy.pages.skip && range.row >= row && !self.policy.follows_cursors();
        behind && self.proof.total().is_none_or(|total| row >= total)
    }

    /// Records that a page behind the last row was refused.
    pub(super) fn meet_refusal(&mut self) {
        self.refused = true;
        self.proof.meet_end();
    }

    /// True if nothing but the last row shows that the rows of a complete window end there, and it is a round number, the last one of a
    /// full page before a refused one, or one that the service calls a lower bound; or if the total is the depth of paging, which may limit it. Services
    /// stop to page at such rows.
    pub(super) fn may_be_depth(&self) -> bool {
        let total = self.proof.total();
        let capped = total
            .filter(|total| self.policy.depth() == Some(*total) && self.proof.beside().equal_to(*total).is_empty());
        let counted = (total.is_some() && capped.is_none()) || self.proof.is_counted() || self.end_confirmed;
        // Numbered pages are counted as full ones.
        let row = if self.policy.overlapping { self.row() } else { self.proof.chain.received() };
        let bound = self.proof.is_bound(row);
        let suspicious =
            evidence::is_round(row) || (self.refused && self.policy.ends_with_full_page()) || bound || capped.is_some();
        !counted && !self.cuttable && !self.satisfied() && suspicious
    }

    /// Row and id of a mention of the first page whose place shows whether that page lacks any: if the reader may stop before the
    /// end, the first page came short, and those after it have nothing new.
    pub(super) fn place_to_check(&self) -> Option<(u64, u64)> {
        let (page, total) = (self.proof.first_page(), self.proof.total()?);
        let short = (page.len() as u64) < self.policy.first().size && self.row() < total;
        let stuck = self.stops_early && self.policy.overlapping && self.proof.is_stuck() && !self.satisfied();
        let at =
            page.len().checked_sub(2).filter(|_| stuck && short && !self.place_checked && self.proof.is_steady())?;
        Some((self.policy.pages.skip + at as u64, page[at]))
    }

    /// Records that the place of a mention was checked.
    pub(super) fn note_place_checked(&mut self) {
        self.place_checked = true;
    }

    /// True if nothing of the window is left to be read, and no limit ended reading.
    pub(super) fn is_at_its_end(&self) -> bool {
        !self.satisfied() && !self.wants_cut()
    }

    /// True if as many rows were received as another count of the window says.
    pub(super) fn has_received(&self, count: u64) -> bool {
        self.policy.pages.skip + self.proof.chain.all() == count
    }

    /// Records that something beside the pages confirms where the rows end: the opposite order, or else the overview.
    pub(super) fn confirm_end(&mut self, opposite: bool) {
        (self.end_confirmed, self.opposite) = (true, opposite);
    }

    /// True if the rows of a page, in this order and opposite to the one of reading, begin where the rows received end.
    pub(super) fn is_reached_by(&self, page: Rows<'_>, order: Direction) -> bool {
        let (Some(first), Some(keys), Some(last)) = (page.ids.first(), page.keys, self.proof.chain.last_key()) else {
            return false;
        };
        let within = |a: i64, b: i64| if order == Direction::Asc { a <= b } else { b <= a };
        let ordered = keys.windows(2).all(|pair| within(pair[0], pair[1]));
        ordered && within(keys[0], last) && self.proof.chain.has(*first)
    }

    /// Numbers that the rows were compared with.
    pub(super) fn claims(&self) -> Claims {
        Claims { total: self.proof.total(), beside: self.proof.beside(), opposite: self.opposite }
    }

    /// True if rows arrived that an earlier pass should have had, and the plan wants them in order.
    pub(super) fn too_late(&self) -> bool {
        self.proof.too_late(&self.policy)
    }

    /// True if the pages of a reader that may stop early lack rows that their offsets count: nothing judges them later.
    pub(super) fn lacks_rows(&self) -> bool {
        self.stops_early && self.proof.lacks_rows(&self.policy)
    }

    /// True if a page has fewer rows than requested although more follow: the service has smaller pages, or leaves rows out.
    pub(super) fn is_short(&self, range: RowRange, facts: PageFacts) -> bool {
        let more = facts.total.is_some_and(|total| range.row + facts.rows < total);
        self.policy.overlapping && more && facts.rows < range.size && !self.satisfied()
    }

    /// True if the rows that the plan wants were received.
    pub(super) fn satisfied(&self) -> bool {
        self.proof.satisfies(&self.policy)
    }

    /// The number of rows that a complete pass has under other ids than an earlier one, if it shows that. `part`: set if the rows known
    /// before may lie outside of the window.
    pub(super) fn renamed(&self, known: &Known, part: bool) -> Option<u64> {
        // A limit may end a pass before the rows of another one.
        if self.satisfied() { None } else { self.proof.renamed(known, part) }
    }

    /// Returns the verdict at the end of a pass.
    pub(super) fn end_of_pass(&mut self) -> Verdict {
        self.proof.end_of_pass(&mut self.policy)
    }
}

const NARROWER: &str = "narrow the range of published_at, or add a filter that the service supports";

/// Error for more mentions than paging reaches.
pub(super) fn too_deep(rows: &str, depth: u64) -> Error {
    Error::new(ErrorKind::TooDeep, format!("{rows} mentions match, but paging reaches only {depth}")).advice(NARROWER)
}

/// Error for a further page that the service rejects, if the window cannot be cut.
pub(super) fn refused_behind(row: u64, refusal: Error) -> Error {
    if refusal.kind() == ErrorKind::NotFound {
        // The saved search may have been deleted.
        return refusal.advice(format!("if paging reaches no further, {NARROWER}; otherwise check the aid"));
    }
    let message = format!("the service rejects the rows from {row} on: {}", refusal.message());
    Error::new(ErrorKind::TooDeep, message).advice(NARROWER).at(refusal.place().clone())
}
