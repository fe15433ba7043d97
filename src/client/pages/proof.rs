//! How the pages of a window are proved to have all its rows, each once. Pure.
//!
//! Letters are rows in the order asked for, brackets are pages of four. Each row has a schedule by which a reader without the
//! rule loses a row, or gives one twice.
//!
//! | rule | the schedule that breaks a reader without it |
//! | --- | --- |
//! | Pages share a row, and it is there. | `[a b c d]`, then `a` is deleted and `j` arrives at the end: the next four are `[f g h i]`. The total stands still, as many rows came as there are in the end, and `e` never did. |
//! | A shared row proves nothing where its instant goes on behind it, unless totals stand still (*loose*); careful passes share a row whose instant came whole (*firm*). | `c` and `d` have one instant, and answers break the tie as they like: `[a b d …]`, then from `d` on `[d e f g]` of an answer that has `c` before `d`: `c` never came. |
//! | Where links are loose, the total stands still and as many came. | As above; nothing but the number shows it. |
//! | The end was seen: a page that is shorter than asked for, in an answer whose total ends there. | `[a b c d]` of nine; then `a`, `g`, `h` and `i` are deleted, and the service announces five. The page read again, `[b c d e]`, brings the count to five, and `f` is never asked for. |
//! | Of a set that moves no number has to agree: firm links and an end that one answer shows are enough. One that stood still has to. | A row arrives and another is deleted while each page is read: counts never agree, and a reader of counts reads for ever. |
//! | No row comes again behind new ones. | The service sorts by another key than it says: `[a b c d]`, `[d a e f]`. What lay between `d` and `e` may be anywhere. |
//! | Rows come in the order of time that was asked for. | The sort parameter is ignored: rows that arrive land on pages that were read. |
//! | Pages side by side are whole, but for the last. | `[a b c d]`, `[e f]`, `[i j k l]`: the service dropped two rows of the second page after it counted. |
//! | Rows of a later pass may only confirm an order whose rows have left. | A newest row arrives during the first pass: behind the others it would stand in the wrong place. |
//! | The first page again is no progress. | The offset has no effect: the first page is read for ever, or taken for the whole. |
//! | Without a total, an end is where nothing new comes again and again, or where another number of the answer ends. It is not believed far below a number that the service hints at. | Paging ends at a depth that nobody declared, with a short page: all that lies deeper is lost. |
//! | Without a total, pages that share no row are believed when two passes agree. | `[a b c d]`, then `a` is deleted: `[f g h i]`. Another pass has `e`, so they differ. |
//! | An end at the depth is not the end, where the window can be cut (`Reading::wants_cut`). | Paging reaches eight rows and announces eight: there may be more. |

use std::collections::HashSet;

use super::continuity::{Chain, Link, Rows, Taken};
use super::page_policy::{PagePolicy, STALLS, Span};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::profile::{DepthAnswer, Direction, Grid, Profile, Trust};

/// Passes over a window before it is given up as incomplete.
const PASSES: u32 = 3;

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

/// What was seen of a window.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) chain: Chain,
    /// Behind the end the last page comes again.
    repeats: bool,
    /// Whether the window is the rest of one that was cut: without a total, it may show that nothing follows.
    confirms: bool,
    /// All of the window was reached before.
    within_reach: bool,
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

/// What was seen in the pass under way.
#[derive(Debug)]
struct Pass {
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
}

impl Pass {
    fn new() -> Self {
        Self {
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
        }
    }
}

impl Proof {
    /// Nothing seen yet of a window, of which the rows `known` have left already. `order` is the order of time in which rows
    /// come, if any; `grid` the instants at which windows can be cut.
    pub(super) fn new(profile: &Profile, order: Option<Direction>, grid: Grid, known: HashSet<u64>) -> Self {
        // Of ends that belong to two windows both have what lies there.
        let closed = !profile.window.is_half_open();
        let chain = Chain::new(order, grid, closed, known);
        Self {
            // Without a total, nothing but the chain itself shows that nothing was lost.
            chain: if profile.total.trust == Trust::Exact { chain } else { chain.careful() },
            repeats: profile.depth.beyond == Some(DepthAnswer::LastPage),
            confirms: false,
            within_reach: false,
            first_page: Vec::new(),
            first_total: None,
            hint: None,
            counted: None,
            constant: true,
            passes: 0,
            pass: Pass::new(),
        }
    }

    /// The same, of the rest of a window that was cut.
    pub(super) fn of_the_rest(self) -> Self {
        Self { confirms: true, ..self }
    }

    /// The same, which takes no order of equal instants for granted.
    pub(super) fn carefully(self) -> Self {
        Self { chain: self.chain.careful(), ..self }
    }

    /// Begins with a pass that takes nothing for granted: the window was read before, and not all of it came.
    pub(super) fn once_more(&mut self) {
        self.chain.again(true);
        self.passes = 1;
        self.within_reach = true;
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

    /// The number of rows that the service announced last.
    pub(super) fn total(&self) -> Option<u64> {
        self.pass.total
    }

    /// Whether the total has stood still in this pass.
    pub(super) fn is_steady(&self) -> bool {
        self.pass.steady
    }

    /// Whether the total never changed.
    pub(super) fn is_constant(&self) -> bool {
        self.constant
    }

    /// Whether the window was read before.
    pub(super) fn is_repeated(&self) -> bool {
        self.passes > 0
    }

    /// Whether the last page brought nothing new.
    pub(super) fn stalls(&self) -> bool {
        self.pass.stalls > 0
    }

    /// Whether the last page showed that nothing lies behind it.
    pub(super) fn end_shown(&self) -> bool {
        self.pass.end_shown
    }

    /// Whether far fewer rows came than the service hints at. What paging does not reach, and nobody declared, looks the
    /// same as the end where there is no exact total.
    fn falls_short(&self, skip: u64) -> bool {
        /// Hints are rounded, and counted at another time.
        const LEEWAY: u64 = 100;
        self.hint.is_some_and(|hint| skip + self.chain.all() + LEEWAY.max(hint / 10) < hint)
    }

    /// Whether a page hangs on those before it.
    pub(super) fn links(&mut self, policy: &PagePolicy, span: Span, rows: Rows<'_>) -> bool {
        let first = span.row <= policy.pages.skip;
        let shares = policy.shares_rows(self.pass.total);
        // Nothing links what shares no row.
        self.pass.firm &= first || shares;
        // Pages that are counted have all of their rows, or some were lost between one and the next.
        let whole = policy.lies_whole(span, rows.ids.len() as u64, self.pass.total);
        if let Some(whole) = whole.filter(|_| self.pass.linked) {
            return whole;
        }
        if rows.ids.is_empty() || span.row == policy.pages.skip || !shares || !self.pass.linked {
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

    /// Takes note that a page which does not link was looked for often enough.
    pub(super) fn give_up_links(&mut self) {
        self.pass.linked = false;
    }

    /// Takes note of a page whose rows are not told apart.
    pub(super) fn passed(&mut self, got: u64) {
        self.pass.stalls = if got == 0 { self.pass.stalls + 1 } else { 0 };
    }

    /// Takes the rows of a page. The policy has not taken note of it yet.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] where a further page repeats the first one: the offset has no effect.
    pub(super) fn take(&mut self, policy: &PagePolicy, span: Span, got: u64, rows: Rows<'_>) -> Result<Taken> {
        let (skip, total) = (policy.pages.skip, self.pass.total);
        if span.row == skip {
            self.first_page = rows.ids.to_vec();
        } else if rows.ids.len() > 1 && self.first_page.starts_with(rows.ids) {
            // A first page that is short, and not clamped, is the last one as well.
            let short = (self.first_page.len() as u64) < policy.pages.size && !policy.is_clamped();
            if !(self.repeats && short) {
                return Err(no_progress(span.row));
            }
        }
        self.pass.blank = got == 0;
        // Where pages share rows, an empty one lacks the row that it should have had.
        let may_be_empty = !policy.shares_rows(total) || span.row == skip;
        let empty_behind_all = may_be_empty && total.is_some_and(|total| span.row >= total);
        self.pass.end_shown = got < span.size && (got > 0 || empty_behind_all);
        self.pass.end_proven = self.pass.end_shown && total == Some(span.row + got);
        self.pass.end_counted = self.pass.end_shown && got > 0 && self.counted == Some(span.row + got);
        let first = self.chain.received() == 0;
        let again = self.chain.ends_with(rows);
        let taken = self.chain.take(rows);
        self.pass.in_order &= taken.astray == 0;
        // A full one may be the last that paging reaches.
        let short = got < policy.pages.size && policy.depth().is_none_or(|depth| policy.row() < depth);
        self.pass.repeated = self.repeats && short && again && taken.new == 0;
        self.pass.stalls = match () {
            () if taken.new > 0 || (first && got > 0) => 0,
            // The last row is there, and nothing behind it.
            () if again && got < span.size.min(policy.stride()) => self.pass.stalls + 2,
            () => self.pass.stalls + 1,
        };
        Ok(taken)
    }

    /// Whether behind the end the last page comes again.
    pub(super) fn last_page_repeats(&self) -> bool {
        self.repeats
    }

    /// Whether pages brought nothing new so often that paging may reach no further.
    pub(super) fn is_stuck(&self) -> bool {
        self.pass.stalls > STALLS
    }

    /// Whether the window may go on behind what looks like its end: it stalls before the total, and may have a depth that
    /// nobody declared. Without a total, any end may be one, but for those that lie before what was reached.
    pub(super) fn may_go_on(&self, policy: &PagePolicy) -> bool {
        match self.pass.total {
            Some(total) => self.is_stuck() && policy.row() < total,
            None => {
                let came = self.chain.received() > 0 && !self.within_reach;
                self.pass.stalls >= STALLS && !self.ends(policy) && came
            }
        }
    }

    /// Whether nothing follows: again and again there was nothing new, or the rest of a window that was cut has nothing
    /// but what is known.
    pub(super) fn ends(&self, policy: &PagePolicy) -> bool {
        let skip = policy.pages.skip;
        let short = policy.row() > skip && policy.row() < skip + policy.stride();
        let nothing_new = self.confirms && self.pass.total.is_none() && self.chain.fresh() == 0;
        // A short page that ends where another number of the answer does.
        let counted = self.pass.total.is_none() && self.pass.end_counted;
        self.is_stuck() || self.pass.repeated || counted || (nothing_new && short && policy.row() > skip + 1)
    }

    /// Whether rows have come that a pass before should have had, where they are wanted in order.
    pub(super) fn too_late(&self, policy: &PagePolicy) -> bool {
        // Rows of another pass would come behind those that have left already, and may only confirm them.
        policy.pages.ordered && self.passes > 0 && self.chain.fresh() > 0
    }

    /// Whether the rows that the plan wants are there.
    pub(super) fn satisfies(&self, policy: &PagePolicy) -> bool {
        policy.pages.fetch.is_some_and(|fetch| self.chain.received() >= fetch)
    }

    /// Whether it is proven that nothing was lost among the rows received so far.
    pub(super) fn is_proven(&self) -> bool {
        self.is_firm() || (self.pass.linked && self.pass.total.is_some() && self.pass.steady)
    }

    /// Whether the links between the pages alone prove it, whatever came, went or changed places meanwhile.
    pub(super) fn is_firm(&self) -> bool {
        self.pass.linked && self.pass.firm && self.chain.sorted && self.pass.in_order
    }

    /// The verdict at the end of a pass.
    pub(super) fn end_of_pass(&mut self, policy: &mut PagePolicy) -> Verdict {
        self.passes += 1;
        let (done, reason) = match self.pass.total {
            Some(total) => self.judge_by_total(policy, total.saturating_sub(policy.pages.skip)),
            None => self.judge_by_pages(policy),
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

    /// Whether all came where no total is told, or else why not.
    fn judge_by_pages(&self, policy: &PagePolicy) -> (bool, String) {
        let received = self.chain.received();
        // The end is the last row with nothing behind it. A page without it shows nothing, unless no row ever came, or pages
        // share none.
        let shown = !self.pass.blank || self.chain.all() == 0 || !policy.overlapping;
        let proven = policy.shares_rows(None) && self.is_proven() && self.chain.is_by_time();
        // Pages that share no row, or come in an order that may change, are believed when two passes agree.
        let agreed = self.passes > 1 && self.chain.fresh() == 0 && received == self.chain.all() && policy.gaps() == 0;
        let short = self.falls_short(policy.pages.skip);
        let done = match self.satisfies(policy) {
            true => !policy.pages.ordered || proven || policy.pages.fetch.is_some_and(|f| f <= policy.pages.size),
            false => (proven || agreed) && shown && self.ends(policy) && !short,
        };
        let reason = match self.hint.filter(|_| short) {
            Some(hint) => format!(
                "{} distinct mentions received, though the service tells of about {hint} (profile `depth` and `total`)",
                self.chain.all()
            ),
            None => "the pages do not hang together, and the service tells no total to compare with".to_owned(),
        };
        (done, reason)
    }

    /// Whether all came of so many rows, or else why not.
    fn judge_by_total(&self, policy: &PagePolicy, total: u64) -> (bool, String) {
        let received = self.chain.received();
        let shares = policy.shares_rows(self.pass.total);
        let proven = shares && self.is_proven();
        let need = total.min(policy.pages.fetch.unwrap_or(u64::MAX));
        let done = if need < total || self.satisfies(policy) {
            // A limit takes any rows, unless they are wanted in order.
            received >= need && (!policy.pages.ordered || proven || (self.pass.steady && !policy.overlapping))
        } else {
            // Rows that hang together whatever changed places, and are as many as there are by now; or as many as there
            // were all the time.
            let unreachable = policy.depth().is_some() && policy.reachable(policy.row(), 1) == 0;
            let ended =
                self.pass.total.is_some_and(|total| policy.row() >= total) && (self.pass.end_shown || unreachable);
            let counted = self.pass.steady && !shares;
            // Every page follows the one before at an instant that came whole, and an answer showed the end: of a set that
            // moves, no number has to agree. One that stood still is another matter.
            let linked = shares && self.is_firm() && self.chain.is_by_time();
            let linked = linked && self.pass.end_proven && !self.pass.steady;
            ((proven || counted) && ended && received == total)
                || linked
                || (self.constant && self.chain.all() == total && self.passes > 1)
        };
        let seen = self.chain.all();
        let short = match policy.gaps() {
            0 => "",
            _ => ", from pages that were shorter than asked for (profile `page.max`)",
        };
        let changed = if self.constant { "" } else { ", a number that changed while they were read" };
        let passes = if self.passes == 1 { "1 pass".to_owned() } else { format!("{} passes", self.passes) };
        (done, format!("{seen} distinct mentions received in {passes} instead of {need}{changed}{short}"))
    }
}

fn no_progress(row: u64) -> Error {
    Error::new(ErrorKind::Contradiction, "the page repeats rows that were received before")
        .advice("the offset seems to have no effect: check the profile's [offset] and [depth]")
        .at(Place { row: Some(row), ..Place::default() })
}
