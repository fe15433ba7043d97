//! Proof that the pages of a window contain all its rows, each once. Pure.
//!
//! Letters are rows in the requested order, brackets are pages of four. Each rule comes with a schedule on which a
//! reader without it loses a row, or returns one twice.
//!
//! | rule | schedule that breaks a reader without it |
//! | --- | --- |
//! | Pages share a row, and it is present. | `[a b c d]`, then `a` is deleted and `j` arrives at the end: the next four are `[f g h i]`. The total is unchanged, as many rows are received as exist at the end, and `e` never was. |
//! | A shared row proves nothing if its sort key continues after it, unless totals are unchanged (*loose*); careful passes share a row whose key was received completely (*firm*). | `c` and `d` have one key, and responses break the tie arbitrarily: `[a b d …]`, then from `d` on `[d e f g]` of a response that has `c` before `d`: `c` is never received. |
//! | A total that takes turns with another one, and exceeds the rows received, is not outdated. | Two copies of the data answer in turn, and one lacks `c` and `d`: `[a b e f]` of six, `[f g h]` of nine. Every page links, and one response shows the end. |
//! | A total that falls by a quarter and returns is that of another request. | Every third response has the rows of another saved search: all of them are received, with those. |
//! | If links are loose, the total is unchanged and equals the rows received. | As above; only the count shows it. |
//! | The end was seen: a page that is shorter than requested, in a response whose total ends there. | `[a b c d]` of nine; then `a`, `g`, `h` and `i` are deleted, and the service reports five. The page read again, `[b c d e]`, brings the count to five, and `f` is never requested. |
//! | In a changing set no count has to agree: firm links and an end shown by one response are enough. An unchanged total has to agree. | A row arrives and another is deleted while each page is read: counts never agree, and a reader that compares them never ends. |
//! | No row is repeated after new ones. | The service sorts by another key than the declared one: `[a b c d]`, `[d a e f]`. The rows between `d` and `e` may be anywhere. |
//! | Under a limit, as many rows arrive as the offsets of the pages count, while the total is unchanged. | The service hides `b` after paging: `[a c d]`, then from `d` on `[c d e f]`: `b` is never received, and only its place shows. |
//! | Rows arrive in the requested order. | The sort parameter is ignored: new rows land on pages that were already read. |
//! | A page that names no next one is no more than a page without new rows. Pages that name the next one are as adjacent ones. | The service ends its cursors after ten thousand rows, or they count rows: `[a b c d]`, then `a` is deleted: `[f g h i]`. |
//! | A page without new rows that names another one is not the end. | The service filters pages after it cut them: `[ ]`, `[ ]`, `[ ]`, `[a b]`. |
//! | Adjacent pages are full, except the last. | `[a b c d]`, `[e f]`, `[i j k l]`: the service dropped two rows of the second page after counting. |
//! | Rows of a later pass may only confirm an order whose rows were already emitted. | A newest row arrives during the first pass: after the others it would be out of order. |
//! | The first page again is no progress. | The offset has no effect: the first page is read forever, or treated as the complete result. |
//! | Without a total, the end is where nothing new arrives repeatedly, or where another count in the response ends. It is not believed below an exact count of the same window, or far below one that the service hints at. | Paging ends at an undeclared depth, with a short page: all deeper rows are lost. |
//! | Rows of an earlier pass that a complete one lacks were deleted, unless it has as many that are the same but for their ids. | The service writes ids in two notations: `[a b c d]`, then `[A B C D]`. Both passes are complete, and each row comes twice. |
//! | Without a total, pages that share no row are believed when two passes agree. | `[a b c d]`, then `a` is deleted: `[f g h i]`. Another pass has `e`, so they differ. |
//! | An end at the depth is not the end if the window can be cut (`Reading::wants_cut`). | Paging reaches eight rows and the service reports eight: there may be more. |

use super::continuity::{Chain, Link, Rows, Taken};
use super::ids::{Ids, Known};
use super::page_policy::{PagePolicy, RowRange, STALLS, within};
use crate::client::evidence::{PASSES, is_round};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::profile::{DepthAnswer, Direction, Grid, Profile, Trust};
use crate::request::{Beside, Hint};

/// Totals, each different from the one before, that show two of them taking turns.
const TURNS: usize = 4;

/// Verdict at the end of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All rows were received.
    Complete,
    /// Rows may be missing: read again from the first row.
    Again,
    /// Rows are missing, and reading again will not help.
    Incomplete(String),
    /// Paging ends before the total.
    Unreachable(String),
    /// Numbers of the same response contradict each other.
    Contradiction(String),
}

/// Evidence about a window.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) chain: Chain,
    /// Set if the last page is returned again beyond the end.
    repeats: bool,
    /// Set for the rest of a window that was cut: without a total, it may show that nothing follows.
    confirms: bool,
    /// Set if an earlier read reached the end of the window.
    within_reach: bool,
    /// Ids of the first page, which a service that ignores the offset returns again and again.
    first_page: Vec<u64>,
    first_total: Option<u64>,
    /// Approximate number of rows, if the service reports only that.
    hint: Option<Hint>,
    /// Number of rows by other counts in the last response.
    beside: Beside,
    /// Set while the total has never changed.
    constant: bool,
    /// The last totals that differ from the one before, the newest one last.
    changes: Vec<u64>,
    /// Completed passes.
    passes: u32,
    pass: Pass,
}

/// Evidence of the current pass.
#[derive(Debug)]
struct Pass {
    total: Option<u64>,
    /// Set while the total has not changed in this pass.
    steady: bool,
    /// Set while every page links to those before it.
    linked: bool,
    /// Set while all links hold even if rows with equal keys have changed places.
    firm: bool,
    /// Set while no row was repeated after new ones.
    in_order: bool,
    /// Pages taken.
    pages: u32,
    /// Set if the last page was full.
    full: bool,
    /// Consecutive pages without new rows.
    stalls: u32,
    /// Set if the last page showed that nothing follows it.
    end_shown: bool,
    /// Set if it did so in a response whose total ends with its last row.
    end_proven: bool,
    /// Set if another count in that response ends with it.
    end_counted: bool,
    /// Set if the last page was a short one received before, and this shows the end.
    repeated: bool,
    /// Set if the last page had no rows.
    blank: bool,
    /// Count that exceeded the total in a response, and its name.
    above: Option<(u64, &'static str)>,
    /// Count that ended with a short page, although its total says that more follow, and its name.
    below: Option<(u64, &'static str)>,
}

impl Pass {
    fn new() -> Self {
        Self {
            total: None,
            steady: true,
            linked: true,
            firm: true,
            in_order: true,
            pages: 0,
            full: false,
            stalls: 0,
            end_shown: false,
            end_proven: false,
            end_counted: false,
            repeated: false,
            blank: false,
            above: None,
            below: None,
        }
    }
}

impl Proof {
    /// Creates the proof of a window, with nothing received yet. The rows `known` were emitted already. `order` is the
    /// order of their keys in which rows arrive, if any; `grid` has the instants at which windows can be cut.
    pub(super) fn new(profile: &Profile, order: Option<Direction>, grid: Option<Grid>, known: Ids) -> Self {
        // If windows include their ends, two windows contain the rows at an end.
        let closed = !profile.window.is_half_open();
        let chain = Chain::new(order, grid, closed, known);
        Self {
            // Without an exact total, only the chain itself shows that nothing was lost.
            chain: if profile.total.trust == Trust::Exact { chain } else { chain.careful() },
            repeats: profile.depth.beyond == Some(DepthAnswer::LastPage),
            confirms: false,
            within_reach: false,
            first_page: Vec::new(),
            first_total: None,
            hint: None,
            beside: Beside::default(),
            constant: true,
            changes: Vec::new(),
            passes: 0,
            pass: Pass::new(),
        }
    }

    /// Returns the proof for the rest of a window that was cut.
    pub(super) fn of_the_rest(self) -> Self {
        Self { confirms: true, ..self }
    }

    /// Returns the proof in careful mode, which assumes no order of equal keys.
    pub(super) fn carefully(self) -> Self {
        Self { chain: self.chain.careful(), ..self }
    }

    /// Starts with a careful pass: the window was read before, but not completely.
    pub(super) fn once_more(&mut self) {
        self.chain.again(true);
        self.passes = 1;
        self.within_reach = true;
    }

    /// Ids of the first page of the pass.
    pub(super) fn first_page(&self) -> &[u64] {
        &self.first_page
    }

    /// Records a total.
    pub(super) fn record_total(&mut self, total: Option<u64>) {
        // A page may have no total, which shows nothing.
        self.pass.steady &= self.pass.total.is_none() || total.is_none() || self.pass.total == total;
        self.pass.total = total.or(self.pass.total);
        self.first_total = self.first_total.or(self.pass.total);
        if let Some(total) = total.filter(|total| self.changes.last() != Some(total)) {
            self.changes.push(total);
            let outdated = self.changes.len().saturating_sub(TURNS);
            self.changes.drain(..outdated);
        }
        self.constant &= self.pass.steady && self.first_total == self.pass.total;
    }

    /// Records the approximate number of rows, and the number by other counts in the response, whose total was recorded.
    pub(super) fn hint(&mut self, hint: Option<Hint>, beside: Beside) {
        self.hint = hint.or(self.hint);
        // Only the first page has a timeline and lists.
        let of = self.beside;
        let (timeline, listed) = (beside.timeline.or(of.timeline), beside.listed.or(of.listed));
        self.beside = Beside { timeline, listed, lists: beside.lists.or(of.lists), ..beside };
        self.pass.above = self.pass.total.and_then(|total| beside.above(total)).or(self.pass.above);
    }

    /// Numbers of rows by other counts, as responses reported them last.
    pub(super) fn beside(&self) -> Beside {
        self.beside
    }

    /// True if a count exceeds the total in the same response.
    pub(super) fn is_exceeded(&self) -> bool {
        self.pass.above.is_some()
    }

    /// A count that exceeds the total in the same response, and its name: more rows may follow.
    pub(super) fn above(&self) -> Option<(u64, &'static str)> {
        // Rows that are behind those known were requested, and there are none.
        let confirmed = self.confirms && self.chain.fresh() == 0;
        self.pass.above.filter(|(count, _)| !confirmed && self.pass.total.is_some_and(|total| total < *count))
    }

    /// A count that ends with the last row received, although the total says that more follow, and its name.
    fn below(&self) -> Option<(u64, &'static str)> {
        let total = self.pass.total.filter(|_| self.pass.linked)?;
        self.pass.below.filter(|(count, _)| *count < total)
    }

    /// Total that the service reported last.
    pub(super) fn total(&self) -> Option<u64> {
        self.pass.total
    }

    /// True if the total has not changed in this pass.
    pub(super) fn is_steady(&self) -> bool {
        self.pass.steady
    }

    /// True if the total never changed.
    pub(super) fn is_constant(&self) -> bool {
        self.constant
    }

    /// True if the total never changed, and is close to the number of rows received: it may be rounded.
    pub(super) fn may_be_rounded(&self) -> bool {
        /// Unit to which services round totals of a few mentions.
        const UNIT: u64 = 10;
        let close = |total: u64| self.chain.all().abs_diff(total) <= UNIT.max(total / 20);
        self.constant && self.pass.total.is_some_and(|total| total.is_multiple_of(UNIT) && close(total))
    }

    /// True if the window was read before.
    pub(super) fn is_repeated(&self) -> bool {
        self.passes > 0
    }

    /// True if the last page contained nothing new.
    pub(super) fn stalls(&self) -> bool {
        self.pass.stalls > 0
    }

    /// Records that the last page names none after it: as pages without new rows do, which may be a depth of paging. Once more, it
    /// is the end.
    pub(super) fn meet_end(&mut self) {
        (self.pass.end_shown, self.pass.stalls) = (true, (self.pass.stalls + 1).max(STALLS));
    }

    /// Records that the last page names one after it that was not read yet: what it lacks shows nothing.
    pub(super) fn follow(&mut self) {
        self.pass.stalls = 0;
    }

    /// True if the last page showed that nothing follows it.
    pub(super) fn end_shown(&self) -> bool {
        self.pass.end_shown
    }

    /// True if the service reports this number of rows as a lower bound.
    pub(super) fn is_bound(&self, rows: u64) -> bool {
        self.hint == Some(Hint::AtLeast(rows))
    }

    /// The totals that take turns, if not as many rows as the larger one were received: copies of the data that differ answer. Or if
    /// they differ by more than mentions that come and go explain: some responses are those to other requests.
    fn turns(&self, skip: u64) -> Option<(u64, u64)> {
        /// Mentions that may come and go in a small window.
        const FEW: u64 = 20;
        match *self.changes {
            [a, b, c, d] if a == c && b == d && skip + self.chain.all() < a.max(b) => Some((a, b)),
            [.., a, b, c] if a == c && a.abs_diff(b) > FEW.max(a.max(b) / 4) => Some((a, b)),
            _ => None,
        }
    }

    /// An exact count that exceeds the rows received, without a total.
    fn exceeding(&self, skip: u64) -> Option<(u64, &'static str)> {
        self.beside.exact_above(skip + self.chain.all())
    }

    /// True if fewer rows were received than the service reports at least, or far fewer than it hints at. Without an exact total, an
    /// undeclared depth of paging looks the same as the end.
    fn falls_short(&self, skip: u64) -> bool {
        /// Tolerance, since hints are rounded and counted at another time.
        const LEEWAY: u64 = 100;
        // A round bound is a limit, and a few mentions may have been deleted since another one.
        let with_leeway = |hint| match hint {
            Hint::AtLeast(number) if is_round(number) => number,
            Hint::AtLeast(number) => number.saturating_sub((number / 100).max(2)),
            Hint::About(number) => number.saturating_sub(LEEWAY.max(number / 10)),
        };
        self.hint.is_some_and(|hint| skip + self.chain.all() < with_leeway(hint))
    }

    /// True if a page links to those before it.
    pub(super) fn links(&mut self, policy: &PagePolicy, range: RowRange, rows: Rows<'_>) -> bool {
        let first = range.row <= policy.pages.skip;
        let shares = policy.shares_rows(self.pass.total);
        // Pages that share no row do not link, unless a page names the place where the next one begins.
        self.pass.firm &= first || shares || policy.has_stable_cursors();
        // Numbered pages are full, or rows were lost between one and the next.
        let whole = policy.lies_whole(range, rows.ids.len() as u64, self.pass.total);
        if let Some(whole) = whole.filter(|_| self.pass.linked) {
            return whole;
        }
        if rows.ids.is_empty() || range.row == policy.pages.skip || !shares || !self.pass.linked {
            return true;
        }
        match self.chain.link(rows) {
            Link::Missing => false,
            link => {
                self.pass.firm &= link == Link::Firm;
                true
            }
        }
    }

    /// Records that a page could not be linked.
    pub(super) fn give_up_links(&mut self) {
        self.pass.linked = false;
    }

    /// Records a page whose rows cannot be told apart.
    pub(super) fn passed(&mut self, got: u64) {
        self.pass.stalls = if got == 0 { self.pass.stalls + 1 } else { 0 };
    }

    /// Takes the rows of a page. To be called before the policy records the page.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if a further page repeats the first one: the offset has no effect.
    pub(super) fn take(&mut self, policy: &PagePolicy, range: RowRange, got: u64, rows: Rows<'_>) -> Result<Taken> {
        let (skip, total) = (policy.pages.skip, self.pass.total);
        if range.row == skip {
            self.first_page = rows.ids.to_vec();
        } else if rows.ids.len() > 1 && self.first_page.starts_with(rows.ids) {
            // A first page that is short, and not clamped, is the last one as well; so is one that ends at the total.
            let received = self.first_page.len() as u64;
            let short = received < policy.pages.size && !policy.is_clamped();
            if !(self.repeats && (short || total == Some(skip + received))) {
                return Err(no_progress(range.row));
            }
        }
        self.pass.pages = self.pass.pages.saturating_add(1);
        self.pass.blank = got == 0;
        // If pages share rows, an empty one lacks the shared row.
        let may_be_empty = !policy.shares_rows(total) || range.row == skip;
        let empty_behind_all = may_be_empty && total.is_some_and(|total| range.row >= total);
        self.pass.end_shown = got < range.size && (got > 0 || empty_behind_all);
        self.pass.end_proven = self.pass.end_shown && total == Some(range.row + got);
        self.pass.end_counted = self.pass.end_shown && got > 0 && self.beside.ends_at(range.row + got).is_some();
        let first = self.chain.received() == 0;
        let again = self.chain.ends_with(rows);
        // A service may leave rows out of a page that is not full.
        let taken = self.chain.take(rows, policy.pages.ordered && self.pass.full);
        let short = self.pass.end_shown && got > 0 && total.is_some_and(|total| range.row + got < total);
        self.pass.below = match self.beside.ends_at(range.row + got).filter(|_| short) {
            Some(name) => Some((range.row + got, name)),
            None => self.pass.below.filter(|_| taken.new == 0),
        };
        self.pass.full = got == range.size;
        self.pass.in_order &= taken.astray == 0;
        // A full page may be the last one that paging reaches.
        let short = got < policy.pages.size && policy.depth().is_none_or(|depth| policy.row() < depth);
        self.pass.repeated = self.repeats && short && again && taken.new == 0;
        self.pass.stalls = match () {
            () if taken.new > 0 || (first && got > 0) => 0,
            // The last row is present, and nothing follows it.
            () if again && got < range.size.min(policy.stride()) => self.pass.stalls + 2,
            () => self.pass.stalls + 1,
        };
        Ok(taken)
    }

    /// True if the last page is returned again beyond the end.
    pub(super) fn last_page_repeats(&self) -> bool {
        self.repeats
    }

    /// True if another count in the last response ends with its last row.
    pub(super) fn is_counted(&self) -> bool {
        self.pass.end_counted
    }

    /// True if so many pages contained nothing new that paging may reach no further.
    pub(super) fn is_stuck(&self) -> bool {
        self.pass.stalls > STALLS
    }

    /// True if the window may continue after what looks like its end: it stalls before the total, and may have an
    /// undeclared depth of paging. Without a total, any end may be such a depth, unless an earlier read went beyond it.
    pub(super) fn may_go_on(&self, policy: &PagePolicy) -> bool {
        match self.pass.total {
            // If another count ends here as well, nothing follows.
            Some(total) => self.is_stuck() && policy.row() < total && self.below().is_none(),
            None => {
                let came = self.chain.received() > 0 && !self.within_reach;
                self.pass.stalls >= STALLS && !self.ends(policy) && came
            }
        }
    }

    /// True if nothing follows: repeatedly there was nothing new, or the rest of a window that was cut contains only
    /// known rows.
    pub(super) fn ends(&self, policy: &PagePolicy) -> bool {
        let skip = policy.pages.skip;
        let short = policy.row() > skip && policy.row() < skip + policy.stride();
        let nothing_new = self.confirms && self.pass.total.is_none() && self.chain.fresh() == 0;
        // A short page that ends where another count in the response does.
        let counted = self.pass.total.is_none() && self.pass.end_counted;
        let counted = counted || self.below().is_some();
        self.is_stuck() || self.pass.repeated || counted || (nothing_new && short && policy.row() > skip + 1)
    }

    /// True if rows arrived that an earlier pass should have had, and the plan wants them in order.
    pub(super) fn too_late(&self, policy: &PagePolicy) -> bool {
        // Rows of another pass would follow those that were already emitted, and may only confirm them.
        policy.pages.ordered && self.passes > 0 && self.chain.fresh() > 0
    }

    /// True if the rows that the plan wants were received.
    pub(super) fn satisfies(&self, policy: &PagePolicy) -> bool {
        policy.pages.fetch.is_some_and(|fetch| self.chain.received() >= fetch)
    }

    /// True if it is proven that no row is missing among those received so far.
    pub(super) fn is_proven(&self) -> bool {
        self.is_firm() || (self.pass.linked && self.pass.total.is_some() && self.pass.steady)
    }

    /// True if fewer rows came than the offsets of pages count, although the total is unchanged: the service leaves rows out of its
    /// pages.
    pub(super) fn lacks_rows(&self, policy: &PagePolicy) -> bool {
        let Some(total) = self.pass.total.filter(|_| self.pass.steady) else { return false };
        // A numbered page takes up its size, even if it is the last one and short.
        let row = if policy.overlapping { policy.row() } else { policy.row().min(total) };
        !policy.follows_cursors() && policy.pages.skip + self.chain.received() < row
    }

    /// True if all pages of the pass link to those before them.
    pub(super) fn is_linked(&self) -> bool {
        self.pass.linked
    }

    /// True if the links between the pages alone prove it, whatever was added, removed or reordered meanwhile.
    pub(super) fn is_firm(&self) -> bool {
        self.pass.linked && self.pass.firm && self.chain.sorted && self.pass.in_order
    }

    /// The number of rows of earlier passes that a complete pass has under other ids, if that is what it shows. `part`: set if the
    /// rows known before may lie outside of the window.
    pub(super) fn renamed(&self, known: &Known, part: bool) -> Option<u64> {
        /// Rows that others may replace while a small window is read.
        const FEW: u64 = 20;
        /// Rows that others of the same second may replace.
        const TIED: u64 = 2;
        if self.chain.has_all_known() {
            return None;
        }
        // Rows by which the total fell were deleted.
        let fewer = self.first_total.zip(self.pass.total).map_or(0, |(first, last)| first.saturating_sub(last));
        let gone = (self.chain.gone().count() as u64).saturating_sub(fewer);
        let replaced = gone.min(self.chain.fresh());
        let again = known.again(self.chain.gone(), self.chain.found());
        // An earlier pass may have both ids, if it has requested a page again.
        let in_both = known.again(self.chain.gone(), self.chain.ids()).of_second;
        let many = !part && replaced > FEW.max(self.chain.received() / 4);
        let few = replaced.min(again.of_url) > 0 || replaced.min(again.of_second) > TIED;
        (many || few || (gone > TIED && 2 * in_both > gone)).then_some(gone)
    }

    /// Returns the verdict at the end of a pass.
    pub(super) fn end_of_pass(&mut self, policy: &mut PagePolicy) -> Verdict {
        self.passes += 1;
        if let Some(reason) = self.contradiction(policy) {
            return Verdict::Contradiction(reason);
        }
        if let Some(reason) = self.unreachable(policy) {
            return Verdict::Unreachable(reason);
        }
        let (done, reason) = match (self.turns(policy.pages.skip), self.pass.total) {
            (Some((a, b)), _) => {
                let received = self.chain.all();
                let reason =
                    format!("{received} distinct mentions received, but the total alternates between {a} and {b}");
                (
                    false,
                    format!(
                        "{reason}: the responses seem to come from different copies of the data, or to belong to other requests"
                    ),
                )
            }
            (None, Some(total)) => self.judge_by_total(policy, total.saturating_sub(policy.pages.skip)),
            (None, None) => self.judge_by_pages(policy),
        };
        if done {
            return Verdict::Complete;
        }
        if self.passes >= PASSES {
            return Verdict::Incomplete(reason);
        }
        self.chain.again(true);
        self.pass = Pass::new();
        policy.again();
        Verdict::Again
    }

    /// Describes an undeclared depth of paging: a second pass ended at the same round number of rows, before a total that never
    /// changed.
    fn unreachable(&self, policy: &PagePolicy) -> Option<String> {
        let (row, received) = (policy.row(), self.chain.received());
        let total = self.pass.total.filter(|total| self.constant && self.is_stuck() && row < *total)?;
        let same = self.passes > 1 && self.chain.fresh() == 0 && policy.pages.skip + received == row;
        (same && is_round(row)).then(|| {
            format!("{received} distinct mentions received, and paging ends at row {row}, before the total of {total}")
        })
    }

    /// Describes numbers of the same response that contradict each other, which another pass would not change.
    fn contradiction(&self, policy: &PagePolicy) -> Option<String> {
        let total = self.pass.total.filter(|_| self.constant && self.pass.linked && !self.satisfies(policy))?;
        let above = self.above().filter(|_| policy.row() >= total);
        let (count, name) = above.or_else(|| self.below())?;
        let received = self.chain.all();
        Some(format!(
            "{received} distinct mentions received; the total of the response is {total}, but its {name} counts {count}"
        ))
    }

    /// Returns true if all rows were received, for a service that reports no total, or else the reason why not.
    fn judge_by_pages(&self, policy: &PagePolicy) -> (bool, String) {
        let received = self.chain.received();
        // The end is the last row with nothing after it. A page without that row shows nothing, unless no row was ever
        // received, or pages share none.
        let shown = !self.pass.blank || self.chain.all() == 0 || !policy.overlapping;
        let links = policy.shares_rows(None) || policy.has_stable_cursors();
        let proven = links && self.is_proven() && self.chain.is_ordered();
        // Pages that share no row, or arrive in an order that may change, are believed when two passes agree.
        let agreed = self.passes > 1 && self.chain.fresh() == 0 && received == self.chain.all() && policy.gaps() == 0;
        // A cursor may be a place in an order that the service gave up.
        let agreed = agreed && (!policy.follows_cursors() || (self.chain.sorted && self.pass.in_order));
        let (short, exceeding) = (self.falls_short(policy.pages.skip), self.exceeding(policy.pages.skip));
        let done = match self.satisfies(policy) {
            true => !policy.pages.ordered || proven || self.pass.pages == 1,
            false => (proven || agreed) && shown && self.ends(policy) && !short && exceeding.is_none(),
        };
        let all = self.chain.all();
        let reason = match (exceeding, self.hint.filter(|_| short)) {
            (Some((count, name)), _) => {
                format!("{all} distinct mentions received, but the {name} of the response counts {count}")
            }
            (None, Some(hint)) => {
                let reported = match hint {
                    Hint::AtLeast(number) => format!("at least {number}"),
                    Hint::About(number) => format!("about {number}"),
                };
                format!(
                    "{all} distinct mentions received, but the service reports {reported} (profile `depth` and `total`)"
                )
            }
            (None, None) => "the pages do not link up, and the service reports no total to compare with".to_owned(),
        };
        (done, reason)
    }

    /// Returns true if all of this many rows were received, or else the reason why not.
    fn judge_by_total(&self, policy: &PagePolicy, total: u64) -> (bool, String) {
        let received = self.chain.received();
        let shares = policy.shares_rows(self.pass.total);
        let proven = shares && self.is_proven();
        let need = total.min(policy.pages.fetch.unwrap_or(u64::MAX));
        let done = if need < total || self.satisfies(policy) {
            // A limit accepts any rows, unless they are wanted in order.
            received >= need && (!policy.pages.ordered || proven || (self.pass.steady && !policy.overlapping))
        } else {
            // Either the rows link up, whatever was reordered, and are as many as the current total; or they are as
            // many as a total that never changed.
            let unreachable = within(policy.depth(), policy.row(), 1) == 0;
            let ended =
                self.pass.total.is_some_and(|total| policy.row() >= total) && (self.pass.end_shown || unreachable);
            let counted = self.pass.steady && !shares;
            // Every page links to the one before at a key that was received completely, and a response showed the
            // end: in a changing set, no count has to agree. An unchanged total is another matter.
            let linked = shares && self.is_firm() && self.chain.is_ordered();
            let linked = linked && self.pass.end_proven && !self.pass.steady;
            ((proven || counted) && ended && received == total)
                || linked
                || (self.constant && self.chain.all() == total && self.passes > 1)
        };
        let seen = self.chain.all();
        let short = match policy.gaps() {
            0 => "",
            _ => ", and some pages were shorter than requested (profile `page.max`)",
        };
        let changed = if self.constant { "" } else { " (the total changed meanwhile)" };
        let passes = if self.passes == 1 { "1 pass".to_owned() } else { format!("{} passes", self.passes) };
        let expected = match seen == need {
            true => "the expected number, but the pages do not prove that none is missing".to_owned(),
            false => format!("expected {need}"),
        };
        (done, format!("{seen} distinct mentions received in {passes}, {expected}{changed}{short}"))
    }
}

fn no_progress(row: u64) -> Error {
    Error::new(ErrorKind::Contradiction, "the page repeats rows that were already received")
        .advice("the offset seems to have no effect: check the profile's [offset] and [depth]")
        .at(Place { row: Some(row), ..Place::default() })
}
