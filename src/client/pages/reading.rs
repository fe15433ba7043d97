//! The policy of reading one window: which rows to ask for next, what a page means, and whether all of them came.
//!
//! ```text
//! first page ─▶ total ─▶ spans that overlap by a row ─▶ each page linked, or read again from further back
//!                                │                                  │
//!                                └ depth or memory reached: cut     └ end seen, count agrees ─▶ complete
//!                                                                     else another pass, careful ─▶ … ─▶ incomplete
//! ```
//!
//! Pure. A short page in the middle is never taken for the end, nor an empty one; what is asked for again, how often
//! and from where is bounded here.

use std::collections::HashSet;

use super::continuity::{Chain, Link, Rows, Taken};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::profile::{DepthAnswer, Direction, Grid, OffsetUnit, Oversize, Profile, Trust};
use crate::request::Pages;

/// Passes over a window before it is given up as incomplete.
const PASSES: u32 = 3;
/// Pages without anything new that are asked for again before that is believed.
const STALLS: u32 = 2;
/// Times that a page which does not link is looked for further back.
const BACK_UPS: u64 = 4;
/// In smaller pages, a row in each is too dear a price.
const OVERLAP_FROM: u64 = 5;
/// Rows after which a window is cut where it can be, so that their ids can be forgotten.
const FORGET: u64 = 100_000;

/// Rows to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First row, 0-based.
    pub(super) row: u64,
    /// Number of rows to ask for.
    pub(super) size: u64,
}

/// How all rows of a window came to be known, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All rows were seen.
    Complete,
    /// Some may be missing; read again from the first row.
    Again,
    /// Some are missing, and reading again will not help.
    Incomplete(String),
}

/// The progress of reading one window.
#[derive(Debug)]
pub(super) struct Reading {
    pages: Pages,
    /// Rows that paging reaches, as declared or met.
    depth: Option<u64>,
    depth_met: bool,
    /// A first page smaller than asked for tells the page size.
    clamped: bool,
    /// Offsets count pages: all of a scan have one size.
    aligned: bool,
    /// Whether pages overlap by a row.
    overlapping: bool,
    /// Rows that a page has, as far as the service was seen to keep to what it is asked.
    stride: u64,
    /// Behind the end the last page comes again.
    repeats: bool,
    /// Pages are asked for one after another.
    one_by_one: bool,
    /// Whether the window is the rest of one that was cut: without a total, it may show that nothing follows.
    confirms: bool,
    /// All of the window was reached before.
    within_reach: bool,
    /// The window may be cut, and is to be when that saves memory.
    cuttable: bool,
    pub(super) chain: Chain,
    /// Ids of the first page, which a service that ignores the offset sends again and again.
    first_page: Vec<u64>,
    first_total: Option<u64>,
    /// About how many rows there are, where that is all that the service tells.
    hint: Option<u64>,
    /// The number of rows that another part of the last answer counts.
    counted: Option<u64>,
    /// The total did not change at all.
    constant: bool,
    /// Passes that ended.
    passes: u32,
    pass: Pass,
}

/// What is known of the pass under way.
#[derive(Debug)]
struct Pass {
    /// Rank behind the last row received.
    row: u64,
    /// Rank behind the last row asked for.
    asked: u64,
    /// Rows of the last page that was shorter than asked for.
    short: Option<u64>,
    total: Option<u64>,
    /// The total did not change.
    steady: bool,
    /// Every page so far hangs on those before it, and whatever may have changed places.
    linked: bool,
    firm: bool,
    /// No row came again behind new ones.
    in_order: bool,
    /// Pages in a row that brought nothing new.
    stalls: u32,
    /// Whether the last page showed that nothing lies behind it.
    end_shown: bool,
    /// Whether it did so in an answer whose total ends with its last row.
    end_proven: bool,
    /// Whether another number in that answer ends with it.
    end_counted: bool,
    /// Whether the last page was a short one that had come before, where that shows the end.
    repeated: bool,
    /// Whether the last page had no rows at all.
    blank: bool,
    /// Pages that were shorter than asked for, though others followed, where pages are counted.
    gaps: u64,
    /// Whether the last of them was shorter than asked for.
    partial: bool,
}

impl Pass {
    /// A pass that begins behind so many rows.
    fn behind(skip: u64) -> Self {
        Self {
            row: skip,
            asked: skip,
            short: None,
            total: None,
            steady: true,
            linked: true,
            firm: true,
            in_order: true,
            stalls: 0,
            end_shown: false,
            end_proven: false,
            end_counted: false,
            repeated: false,
            blank: false,
            gaps: 0,
            partial: false,
        }
    }
}

impl Reading {
    /// The start of reading a window, of which the rows `known` have left already. `order` is the order of time in which
    /// rows come, if any; `grid` the instants at which windows can be cut.
    pub(super) fn new(
        pages: Pages,
        profile: &Profile,
        order: Option<Direction>,
        grid: Grid,
        known: HashSet<u64>,
    ) -> Self {
        let aligned = profile.offset.unit == OffsetUnit::Page;
        // Of ends that belong to two windows both have what lies there.
        let closed = !profile.window.is_half_open();
        let chain = Chain::new(order, grid, closed, known);
        Self {
            pages,
            depth: profile.depth.rows,
            depth_met: false,
            clamped: profile.page.beyond == Oversize::Clamped,
            aligned,
            overlapping: !aligned && pages.size >= OVERLAP_FROM,
            repeats: profile.depth.beyond == Some(DepthAnswer::LastPage),
            stride: pages.size,
            // Without a total, nothing but the chain itself shows that nothing was lost.
            chain: if profile.total.trust == Trust::Exact { chain } else { chain.careful() },
            first_page: Vec::new(),
            first_total: None,
            hint: None,
            counted: None,
            constant: true,
            passes: 0,
            pass: Pass::behind(pages.skip),
            confirms: false,
            within_reach: false,
            cuttable: false,
            one_by_one: false,
        }
    }

    /// The same, where paging is known to reach so far.
    pub(super) fn reaching(mut self, depth: Option<u64>) -> Self {
        self.depth = self.depth.into_iter().chain(depth).min();
        self
    }

    /// The same, for the rest of a window that was cut, in pages of a size that the service was seen to keep.
    pub(super) fn rest(self, stride: u64) -> Self {
        Self { confirms: true, stride: stride.min(self.stride), ..self }
    }

    /// Rows of a page, as far as the service was seen to keep them.
    pub(super) fn stride(&self) -> u64 {
        self.stride
    }

    /// Says whether the window can be cut.
    pub(super) fn set_cuttable(&mut self, cuttable: bool) {
        // What was left out at the beginning is not known on the far side.
        self.cuttable = cuttable && self.pages.skip == 0;
    }

    /// Begins with a pass that takes nothing for granted: the window was read before, and not all of it came.
    pub(super) fn careful(mut self) -> Self {
        self.chain.again(true);
        self.passes = 1;
        self.within_reach = true;
        self
    }

    /// The first span of a pass.
    pub(super) fn first(&self) -> Span {
        let size = self.stride.min(self.limit().saturating_sub(self.pages.skip)).max(1);
        Span { row: self.pages.skip, size: self.reachable(self.pages.skip, size).max(1) }
    }

    /// Takes note of a total.
    pub(super) fn announce(&mut self, total: Option<u64>) {
        self.pass.steady &= self.pass.total.is_none() || self.pass.total == total;
        self.pass.total = total.or(self.pass.total);
        self.first_total = self.first_total.or(self.pass.total);
        self.constant &= self.pass.steady && self.first_total == self.pass.total;
    }

    /// Takes note of about how many rows there are, and of how many another part of the answer counts.
    pub(super) fn hint(&mut self, hint: Option<u64>, counted: Option<u64>) {
        self.hint = hint.or(self.hint);
        self.counted = counted;
    }

    /// Takes no order of equal instants for granted from the first page on: what comes of this pass has to be proved by
    /// its pages alone.
    pub(super) fn be_careful(&mut self) {
        self.chain.be_careful();
        self.one_by_one = true;
    }

    /// Whether there are more rows than are read in one window.
    pub(super) fn will_be_cut(&self) -> bool {
        let most = self.depth.map_or(FORGET, |depth| depth.min(FORGET));
        self.end().is_some_and(|end| end > most)
    }

    /// Whether the total has stood still in this pass.
    pub(super) fn is_steady(&self) -> bool {
        self.pass.steady
    }

    /// Whether far fewer rows came than the service hints at. What paging does not reach, and nobody declared, looks the
    /// same as the end where there is no exact total.
    fn falls_short(&self) -> bool {
        /// Hints are rounded, and counted at another time.
        const LEEWAY: u64 = 100;
        self.hint.is_some_and(|hint| self.pages.skip + self.chain.all() + LEEWAY.max(hint / 10) < hint)
    }

    /// The rows needed that paging does not reach, where the window cannot be cut.
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`] naming them.
    pub(super) fn check_depth(&self) -> Result<()> {
        let (Some(depth), false) = (self.depth, self.cuttable) else { return Ok(()) };
        let skipped = self.pages.skip >= depth && self.pass.total.is_none_or(|total| total > depth);
        match self.end() {
            Some(end) if end > depth => Err(too_deep(&end.to_string(), depth)),
            None if self.pass.row >= depth && !self.satisfied() => Err(too_deep(&format!("{depth} or more"), depth)),
            _ if skipped => Err(too_deep(&format!("{} or more", self.pages.skip), depth)),
            _ => Ok(()),
        }
    }

    /// Requests that are still to come, as far as the total tells.
    pub(super) fn requests(&self) -> Option<u64> {
        let left = self.end()?.saturating_sub(self.pass.row);
        Some(left.div_ceil(self.advance()))
    }

    /// The next span of the pass. None while the pages under way have to come first, and when there is no more to ask
    /// for.
    pub(super) fn next_span(&mut self, idle: bool) -> Option<Span> {
        if idle {
            self.pass.asked = self.pass.row;
        }
        // One at a time, where the next one hangs on what the last one was.
        let one_by_one = self.one_by_one
            || self.end().is_none()
            || self.pass.short.is_some()
            || self.careful_pass()
            || self.pass.stalls > 0;
        if (one_by_one && !idle) || self.satisfied() || self.ends() || self.wants_cut() {
            return None;
        }
        // A full page that ends where the total does is followed by another one, and where rows came twice, a limit lies
        // further than it seemed.
        let end = if idle { self.pass.total } else { self.end() };
        if end.is_some_and(|end| self.pass.asked >= end) && (!idle || self.pass.end_shown) {
            return None;
        }
        let overlap = if !self.overlaps() || self.pass.asked == self.pages.skip {
            0
        } else if idle {
            self.chain.overlap
        } else {
            1
        };
        let row = self.pass.asked.saturating_sub(overlap.min(self.stride.saturating_sub(1)));
        // The last page is asked for whole, so that the end shows, and a total that is too low.
        let wanted = match self.pages.fetch {
            Some(fetch) if idle && !self.aligned => overlap + fetch.saturating_sub(self.chain.received()),
            Some(_) if !self.aligned => self.limit().saturating_sub(row),
            _ => u64::MAX,
        };
        let size = self.reachable(row, self.stride.min(wanted));
        if size <= overlap {
            return None;
        }
        self.pass.asked = if self.aligned { row + self.stride } else { row + size };
        Some(Span { row, size })
    }

    /// Whether pages are held to hang together.
    pub(super) fn overlaps(&self) -> bool {
        // Of rows in no order any will do, as long as not all are needed.
        let any = self.pages.fetch.is_some()
            && !self.pages.ordered
            && self.end().is_some_and(|end| Some(end) < self.pass.total);
        self.overlapping && !any
    }

    /// Whether a page hangs on those before it.
    pub(super) fn links(&mut self, span: Span, rows: Rows<'_>) -> bool {
        // Pages that are counted have all of their rows, or some were lost between one and the next.
        let behind_first = span.row > self.pages.skip;
        // Nothing links what shares no row.
        self.pass.firm &= !behind_first || self.overlaps();
        if self.aligned && span.row >= self.pass.row && self.pass.linked && !rows.ids.is_empty() {
            let end = span.row + rows.ids.len() as u64;
            let short = end < span.row + span.size && self.pass.total.is_some_and(|total| end < total);
            return !short && !self.pass.partial;
        }
        if rows.ids.is_empty() || span.row == self.pages.skip || !self.overlaps() || !self.pass.linked {
            return true;
        }
        match self.chain.link(rows) {
            Link::Missing => return false,
            link => self.pass.firm &= link == Link::Firm,
        }
        true
    }

    /// What to read for a page that does not link: on from the last row where rows before it have not come, else from
    /// further back, `tried` times without success so far. `None` where that was tried often enough.
    pub(super) fn repair(&mut self, span: Span, tried: u64) -> Option<Span> {
        if tried >= if self.aligned { STALLS.into() } else { BACK_UPS } {
            self.pass.linked = false;
            return None;
        }
        if self.aligned {
            // The page before it, where that was the short one.
            let row = if self.pass.partial { self.pass.row.saturating_sub(self.stride) } else { span.row };
            return Some(Span { row, size: self.stride });
        }
        let on = self.pass.row.saturating_sub(self.chain.overlap);
        let back = (self.stride - 1).saturating_mul(tried + 1);
        let row = if on < span.row && tried == 0 { on } else { span.row.min(on).saturating_sub(back) };
        let row = row.max(self.pages.skip);
        let size = self.reachable(row, self.stride);
        (size > 0).then_some(Span { row, size })
    }

    /// Takes the rows of a page.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] where a further page repeats the first one: the offset has no effect.
    pub(super) fn take(&mut self, span: Span, got: u64, rows: Option<Rows<'_>>) -> Result<Option<Taken>> {
        // A page may have more than was asked for; they come again.
        let got = got.min(span.size);
        let behind = span.row >= self.pass.row;
        // Pages that are counted can be had in the size of the first one, whatever made that smaller.
        let more = self.pass.total.is_none_or(|total| total > got);
        if self.aligned && span.row == 0 && self.pass.row == 0 && more && (1..self.stride).contains(&got) {
            self.stride = got;
        }
        let span = Span { size: if self.aligned { span.size.min(self.stride) } else { span.size }, ..span };
        let Some(rows) = rows else {
            self.pass.stalls = if got == 0 { self.pass.stalls + 1 } else { 0 };
            self.pass.row = span.row + if self.aligned && got > 0 { span.size } else { got };
            return Ok(None);
        };
        if span.row == self.pages.skip {
            self.first_page = rows.ids.to_vec();
        } else if rows.ids.len() > 1 && self.first_page.starts_with(rows.ids) {
            // A first page that is short, and not clamped, is the last one as well.
            let short = (self.first_page.len() as u64) < self.pages.size && !self.clamped;
            if !(self.repeats && short) {
                return Err(no_progress(span.row));
            }
        }
        self.pass.blank = got == 0;
        // Where pages share rows, an empty one lacks the row that it should have had.
        let may_be_empty = !self.overlaps() || span.row == self.pages.skip;
        self.pass.end_shown =
            got < span.size && (got > 0 || (may_be_empty && self.pass.total.is_some_and(|total| span.row >= total)));
        self.pass.end_proven = self.pass.end_shown && self.pass.total == Some(span.row + got);
        self.pass.end_counted = self.pass.end_shown && got > 0 && self.counted == Some(span.row + got);
        let first = self.chain.received() == 0;
        let again = self.chain.ends_with(rows);
        let taken = self.chain.take(rows);
        self.pass.in_order &= taken.astray == 0;
        // A full one may be the last that paging reaches.
        let short = got < self.pages.size && self.depth.is_none_or(|depth| self.pass.row < depth);
        self.pass.repeated = self.repeats && short && again && taken.new == 0;
        self.pass.stalls = match () {
            () if taken.new > 0 || (first && got > 0) => 0,
            // The last row is there, and nothing behind it.
            () if again && got < span.size.min(self.stride) => self.pass.stalls + 2,
            () => self.pass.stalls + 1,
        };
        let advance = if self.aligned && got > 0 { span.size } else { got };
        if taken.new > 0 || first {
            // A page that goes further than there are rows began before the row that was asked for.
            let displaced = !first && !self.aligned && self.pass.total.is_some_and(|total| span.row + advance > total);
            self.pass.row = if displaced { self.pass.row + taken.new } else { span.row + advance };
        }
        let ended = self.pass.total.is_some_and(|total| self.pass.row >= total);
        self.pass.short = match (got < span.size && got > 1 && !ended, self.pass.short) {
            (true, Some(known)) if known == got => {
                self.stride = got;
                None
            }
            // Without a total it may be the end.
            (true, None) if self.clamped && !self.aligned && self.pass.total.is_some() => {
                self.stride = got;
                None
            }
            // Pages that are counted cannot be continued in their middle.
            (true, _) if !self.aligned => Some(got),
            _ => None,
        };
        // The last page may come again.
        if self.aligned && got > 0 && (first || taken.new > 0 || !self.repeats) {
            self.pass.gaps += u64::from(self.pass.partial && behind);
            self.pass.partial = got < span.size;
        }
        if self.chain.overlap >= self.stride {
            self.chain.loosen(rows);
        }
        Ok(Some(taken))
    }

    /// Takes note that a page read from further back ended there: the chain hangs on its rows now.
    pub(super) fn fall_back(&mut self, row: u64) {
        if !self.aligned {
            self.pass.row = self.pass.row.min(row);
        }
    }

    /// Takes note that the service answers nothing behind the rows that have come.
    pub(super) fn met_depth(&mut self) {
        self.depth = Some(self.depth.unwrap_or(u64::MAX).min(self.pass.row.max(1)));
        self.depth_met = true;
    }

    /// The same, where pages brought nothing new again and again.
    pub(super) fn note_depth(&mut self) {
        if self.pass.stalls > STALLS {
            self.met_depth();
        }
    }

    /// Whether the rows that came can be left to a window of their own.
    pub(super) fn can_be_cut(&self) -> bool {
        self.cuttable && self.chain.cut().is_some_and(|(_, received)| received > 0)
    }

    /// Rank behind the last row that came.
    pub(super) fn row(&self) -> u64 {
        self.pass.row
    }

    /// Whether more pages are to come.
    pub(super) fn goes_on(&self) -> bool {
        self.overlaps() && !self.satisfied() && self.end().is_none_or(|end| self.pass.row < end)
    }

    /// Whether the total never changed.
    pub(super) fn is_constant(&self) -> bool {
        self.constant
    }

    /// The depth that the service was found to have.
    pub(super) fn depth_found(&self) -> Option<u64> {
        self.depth.filter(|_| self.depth_met)
    }

    /// Whether the rest of the window has to be asked for as a window of its own.
    pub(super) fn wants_cut(&self) -> bool {
        if !self.cuttable || self.satisfied() {
            return false;
        }
        // A total that is just what paging reaches may be no more than that.
        let all_reached = self.depth.is_some_and(|depth| self.pass.row >= depth);
        let more = all_reached || self.end().is_none_or(|end| self.pass.row < end);
        let overlap = self.chain.overlap;
        let deep = self.depth.is_some() && self.reachable(self.pass.row.saturating_sub(overlap), u64::MAX) <= overlap;
        // What stalls before its end may have a depth that nobody declared. Without a total, any end may be one, but for
        // those that lie before what was reached.
        let stuck = match self.pass.total {
            Some(total) => self.pass.stalls > STALLS && self.pass.row < total,
            None => self.pass.stalls >= STALLS && !self.ends() && self.chain.received() > 0 && !self.within_reach,
        };
        more && (deep || self.chain.received() >= FORGET) || stuck
    }

    /// Whether nothing follows: again and again there was nothing new, or the rest of a window that was cut has nothing
    /// but what is known.
    fn ends(&self) -> bool {
        let short = self.pass.row > self.pages.skip && self.pass.row < self.pages.skip + self.stride;
        let nothing_new = self.confirms && self.pass.total.is_none() && self.chain.fresh() == 0;
        // A short page that ends where another number of the answer does.
        let counted = self.pass.total.is_none() && self.pass.end_counted;
        self.pass.stalls > STALLS
            || self.pass.repeated
            || counted
            || (nothing_new && short && self.pass.row > self.pages.skip + 1)
    }

    /// Whether rows have come that a pass before should have had, where they are wanted in order.
    pub(super) fn too_late(&self) -> bool {
        // Rows of another pass would come behind those that have left already, and may only confirm them.
        self.pages.ordered && self.passes > 0 && self.chain.fresh() > 0
    }

    /// Whether the rows that the plan wants are there.
    pub(super) fn satisfied(&self) -> bool {
        self.pages.fetch.is_some_and(|fetch| self.chain.received() >= fetch)
    }

    /// Whether it is proven that nothing was lost among the rows received so far.
    pub(super) fn is_proven(&self) -> bool {
        self.is_firm() || (self.pass.linked && self.pass.total.is_some() && self.pass.steady)
    }

    /// Whether the links between the pages alone prove it, whatever came, went or changed places meanwhile.
    pub(super) fn is_firm(&self) -> bool {
        self.pass.linked && self.pass.firm && self.chain.sorted && self.pass.in_order
    }

    /// Whether rows of a page that does not hang on the others may leave: not in an order, where what is between them could
    /// only come too late.
    pub(super) fn may_skip(&self) -> bool {
        !self.pages.ordered
    }

    /// The same reading, which takes no order of equal instants for granted from the first page on: its reader may stop
    /// before the end.
    pub(super) fn stopping_early(self) -> Self {
        Self { chain: self.chain.careful(), one_by_one: true, ..self }
    }

    /// The number of rows that the service announced last.
    pub(super) fn total(&self) -> Option<u64> {
        self.pass.total
    }

    /// The verdict at the end of a pass.
    pub(super) fn end_of_pass(&mut self) -> Verdict {
        self.passes += 1;
        let received = self.chain.received();
        let proven = self.overlaps() && self.is_proven();
        let Some(total) = self.pass.total.map(|total| total.saturating_sub(self.pages.skip)) else {
            // Without a total, the end is the last row with nothing behind it. A page without it shows nothing, unless no
            // row ever came, or pages share none.
            let shown = !self.pass.blank || self.chain.all() == 0 || !self.overlapping;
            let proven = proven && self.chain.is_by_time();
            // Pages that share no row, or come in an order that may change, are believed when two passes agree.
            let agreed =
                self.passes > 1 && self.chain.fresh() == 0 && received == self.chain.all() && self.pass.gaps == 0;
            let done = if self.satisfied() {
                !self.pages.ordered || proven || self.pages.fetch.is_some_and(|fetch| fetch <= self.pages.size)
            } else {
                (proven || agreed) && shown && self.ends() && !self.falls_short()
            };
            let reason = match self.hint.filter(|_| self.falls_short()) {
                Some(hint) => format!(
                    "{} distinct mentions received, though the service tells of about {hint} (profile `depth` and `total`)",
                    self.chain.all()
                ),
                None => "the pages do not hang together, and the service tells no total to compare with".to_owned(),
            };
            return self.verdict(done, &reason);
        };
        let need = total.min(self.pages.fetch.unwrap_or(u64::MAX));
        let done = if need < total || self.satisfied() {
            // A limit takes any rows, unless they are wanted in order.
            received >= need && (!self.pages.ordered || proven || (self.pass.steady && !self.overlapping))
        } else {
            // Rows that hang together whatever changed places, and are as many as there are by now; or as many as there
            // were all the time.
            let unreachable = self.depth.is_some() && self.reachable(self.pass.row, 1) == 0;
            let ended =
                self.pass.total.is_some_and(|total| self.pass.row >= total) && (self.pass.end_shown || unreachable);
            let counted = self.pass.steady && !self.overlaps();
            // Every page follows the one before at an instant that came whole, and an answer showed the end: of a set that
            // moves, no number has to agree. One that stood still is another matter.
            let linked = self.overlaps() && self.is_firm() && self.chain.is_by_time();
            let linked = linked && self.pass.end_proven && !self.pass.steady;
            ((proven || counted) && ended && received == total)
                || linked
                || (self.constant && self.chain.all() == total && self.passes > 1)
        };
        let seen = self.chain.all();
        let short = match self.pass.gaps {
            0 => "",
            _ => ", from pages that were shorter than asked for (profile `page.max`)",
        };
        let changed = if self.constant { "" } else { ", a number that changed while they were read" };
        let passes = if self.passes == 1 { "1 pass".to_owned() } else { format!("{} passes", self.passes) };
        let reason = format!("{seen} distinct mentions received in {passes} instead of {need}{changed}{short}");
        self.verdict(done, &reason)
    }

    fn verdict(&mut self, done: bool, reason: &str) -> Verdict {
        if done {
            return Verdict::Complete;
        }
        if self.passes >= PASSES {
            return Verdict::Incomplete(reason.to_owned());
        }
        self.chain.again(true);
        self.pass = Pass::behind(self.pages.skip);
        Verdict::Again
    }

    /// The row behind the last one that is needed, where it is known.
    fn end(&self) -> Option<u64> {
        self.pass.total.map(|total| total.min(self.limit()))
    }

    fn limit(&self) -> u64 {
        self.pages.fetch.map_or(u64::MAX, |fetch| self.pages.skip.saturating_add(fetch))
    }

    /// Rows that a page adds.
    fn advance(&self) -> u64 {
        if self.overlaps() { self.stride.saturating_sub(1).max(1) } else { self.stride }
    }

    /// The number of rows from `row` on that paging reaches, `size` at most.
    fn reachable(&self, row: u64, size: u64) -> u64 {
        self.depth.map_or(size, |depth| size.min(depth.saturating_sub(row)))
    }

    /// Whether the window was read before.
    pub(super) fn careful_pass(&self) -> bool {
        self.passes > 0
    }
}

fn no_progress(row: u64) -> Error {
    Error::new(ErrorKind::Contradiction, "the page repeats rows that were received before")
        .advice("the offset seems to have no effect: check the profile's [offset] and [depth]")
        .at(Place { row: Some(row), ..Place::default() })
}

const NARROWER: &str = "narrow the range of published_at, or add a filter that the service takes";

/// More mentions than paging reaches.
pub(super) fn too_deep(rows: &str, depth: u64) -> Error {
    Error::new(ErrorKind::TooDeep, format!("{rows} mentions match, and paging reaches {depth} only")).advice(NARROWER)
}

/// A page behind the first rows that the service refuses, where the window cannot be cut.
pub(super) fn refused_behind(row: u64, refusal: Error) -> Error {
    if refusal.kind() == ErrorKind::NotFound {
        // The saved search may be gone by now.
        return refusal.advice(format!("if paging reaches no further, {NARROWER}; otherwise check the aid"));
    }
    let message = format!("the service refuses the rows from {row} on: {}", refusal.message());
    Error::new(ErrorKind::TooDeep, message).advice(NARROWER).at(refusal.place().clone())
}
