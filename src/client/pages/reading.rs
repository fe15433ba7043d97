//! Reading one window: the policy says what to ask for next, the proof whether all of it came.
//!
//! ```text
//! first page ─▶ total ─▶ spans (policy) ─▶ each page linked (proof), or read again from further back
//!                           │                             │
//!                           └ depth or memory: cut        └ end seen, count agrees ─▶ complete
//!                                                           else another pass, careful ─▶ … ─▶ incomplete
//! ```
//!
//! Pure. A short page in the middle is never taken for the end, nor an empty one; what is asked for again, how often
//! and from where is bounded.

use std::collections::HashSet;

use super::continuity::{Rows, Taken};
use super::page_policy::{PagePolicy, Seen, Span};
use super::proof::{Proof, Verdict};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Direction, Grid, Profile};
use crate::request::Pages;

/// Rows after which a window is cut where it can be, so that their ids can be forgotten.
const FORGET: u64 = 100_000;

/// The progress of reading one window.
#[derive(Debug)]
pub(super) struct Reading {
    policy: PagePolicy,
    pub(super) proof: Proof,
    /// Pages are asked for one after another.
    one_by_one: bool,
    /// The window may be cut, and is to be when that saves memory.
    cuttable: bool,
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
        Self {
            policy: PagePolicy::new(pages, profile),
            proof: Proof::new(profile, order, grid, known),
            one_by_one: false,
            cuttable: false,
        }
    }

    /// The same, where paging is known to reach so far.
    pub(super) fn reaching(mut self, depth: Option<u64>) -> Self {
        self.policy.reach(depth);
        self
    }

    /// The same, for the rest of a window that was cut, in pages of a size that the service was seen to keep.
    pub(super) fn rest(mut self, stride: u64) -> Self {
        self.policy.keep_to(stride);
        Self { proof: self.proof.of_the_rest(), ..self }
    }

    /// Begins with a pass that takes nothing for granted: the window was read before, and not all of it came.
    pub(super) fn careful(mut self) -> Self {
        self.proof.once_more();
        self
    }

    /// The same reading, which takes no order of equal instants for granted from the first page on: its reader may stop
    /// before the end.
    pub(super) fn stopping_early(self) -> Self {
        Self { proof: self.proof.carefully(), one_by_one: true, ..self }
    }

    /// Takes no order of equal instants for granted from the first page on: what comes of this pass has to be proved by
    /// its pages alone.
    pub(super) fn be_careful(&mut self) {
        self.proof.chain.be_careful();
        self.one_by_one = true;
    }

    /// Says whether the window can be cut.
    pub(super) fn set_cuttable(&mut self, cuttable: bool) {
        // What was left out at the beginning is not known on the far side.
        self.cuttable = cuttable && self.policy.pages.skip == 0;
    }

    /// Rows of a page, as far as the service was seen to keep them.
    pub(super) fn stride(&self) -> u64 {
        self.policy.stride()
    }

    /// Rank behind the last row that came.
    pub(super) fn row(&self) -> u64 {
        self.policy.row()
    }

    /// The depth that the service was found to have.
    pub(super) fn depth_found(&self) -> Option<u64> {
        self.policy.depth_found()
    }

    /// Whether rows of a page that does not hang on the others may leave: not in an order, where what is between them could
    /// only come too late.
    pub(super) fn may_skip(&self) -> bool {
        !self.policy.pages.ordered
    }

    /// Takes note of a total.
    pub(super) fn announce(&mut self, total: Option<u64>) {
        self.proof.announce(total);
    }

    /// Takes note of about how many rows there are, and of how many another part of the answer counts.
    pub(super) fn hint(&mut self, hint: Option<u64>, counted: Option<u64>) {
        self.proof.hint(hint, counted);
    }

    fn end(&self) -> Option<u64> {
        self.policy.end(self.proof.total())
    }

    /// Whether there are more rows than are read in one window.
    pub(super) fn will_be_cut(&self) -> bool {
        let most = self.policy.depth().map_or(FORGET, |depth| depth.min(FORGET));
        self.end().is_some_and(|end| end > most)
    }

    /// The rows needed that paging does not reach, where the window cannot be cut.
    ///
    /// # Errors
    /// [`ErrorKind::TooDeep`] naming them.
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

    /// Requests that are still to come, as far as the total tells.
    pub(super) fn requests(&self) -> Option<u64> {
        self.policy.requests(self.proof.total())
    }

    /// The first span of a pass.
    pub(super) fn first(&self) -> Span {
        self.policy.first()
    }

    /// The next span of the pass. None while the pages under way have to come first, and when there is no more to ask
    /// for.
    pub(super) fn next_span(&mut self, idle: bool) -> Option<Span> {
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

    /// Whether pages are held to hang together.
    pub(super) fn overlaps(&self) -> bool {
        self.policy.shares_rows(self.proof.total())
    }

    /// Whether a page hangs on those before it.
    pub(super) fn links(&mut self, span: Span, rows: Rows<'_>) -> bool {
        self.proof.links(&self.policy, span, rows)
    }

    /// What to read for a page that does not link, `tried` times without success so far; `None` where that was tried often
    /// enough.
    pub(super) fn repair(&mut self, span: Span, tried: u64) -> Option<Span> {
        let back = self.policy.repair(span, tried, self.proof.chain.overlap);
        if back.is_none() && self.policy.gives_up(tried) {
            self.proof.give_up_links();
        }
        back
    }

    /// Takes the rows of a page.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] where a further page repeats the first one: the offset has no effect.
    pub(super) fn take(&mut self, span: Span, got: u64, rows: Option<Rows<'_>>) -> Result<Option<Taken>> {
        // A page may have more than was asked for; they come again.
        let got = got.min(span.size);
        let total = self.proof.total();
        let span = self.policy.stands_for(span, got, total);
        let Some(rows) = rows else {
            self.proof.passed(got);
            self.policy.passed(span, got);
            return Ok(None);
        };
        let first = self.proof.chain.received() == 0;
        let taken = self.proof.take(&self.policy, span, got, rows)?;
        self.policy.take(span, got, taken.new, first, self.proof.last_page_repeats(), total);
        if self.proof.chain.overlap >= self.policy.stride() {
            self.proof.chain.loosen(rows);
        }
        Ok(Some(taken))
    }

    /// Takes note that a page read from further back ended there: the chain hangs on its rows now.
    pub(super) fn fall_back(&mut self, row: u64) {
        self.policy.fall_back(row);
    }

    /// Takes note that the service answers nothing behind the rows that have come.
    pub(super) fn met_depth(&mut self) {
        self.policy.met_depth();
    }

    /// The same, where pages brought nothing new again and again.
    pub(super) fn note_depth(&mut self) {
        if self.proof.is_stuck() {
            self.met_depth();
        }
    }

    /// Whether the rows that came can be left to a window of their own.
    pub(super) fn can_be_cut(&self) -> bool {
        self.cuttable && self.proof.chain.cut().is_some_and(|(_, received)| received > 0)
    }

    /// Whether more pages are to come.
    pub(super) fn goes_on(&self) -> bool {
        self.overlaps() && !self.satisfied() && self.end().is_none_or(|end| self.row() < end)
    }

    /// Whether the rest of the window has to be asked for as a window of its own.
    pub(super) fn wants_cut(&self) -> bool {
        if !self.cuttable || self.satisfied() {
            return false;
        }
        // A total that is just what paging reaches may be no more than that.
        let depth = self.policy.depth();
        let all_reached = depth.is_some_and(|depth| self.row() >= depth);
        let more = all_reached || self.end().is_none_or(|end| self.row() < end);
        let overlap = self.proof.chain.overlap;
        let from = self.row().saturating_sub(overlap);
        let deep = depth.is_some() && self.policy.reachable(from, u64::MAX) <= overlap;
        more && (deep || self.proof.chain.received() >= FORGET) || self.proof.may_go_on(&self.policy)
    }

    /// Whether rows have come that a pass before should have had, where they are wanted in order.
    pub(super) fn too_late(&self) -> bool {
        self.proof.too_late(&self.policy)
    }

    /// Whether the rows that the plan wants are there.
    pub(super) fn satisfied(&self) -> bool {
        self.proof.satisfies(&self.policy)
    }

    /// The verdict at the end of a pass.
    pub(super) fn end_of_pass(&mut self) -> Verdict {
        self.proof.end_of_pass(&mut self.policy)
    }
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
