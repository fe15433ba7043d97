//! Reader of the pages of one plan: requests ahead, links pages, re-reads those that do not fit, and cuts windows.

mod checks;

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use chrono::DateTime;
use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use self::checks::{check_offset, hidden_behind};
use super::continuity::Rows;
use super::ids::{Ids, Known};
use super::page_policy::RowRange;
use super::proof::Verdict;
use super::reading::{Reading, refused_behind};
use super::window::Window;
use super::{Page, PageDecoder, PageFacts, Prefetch};
use crate::client::budget::Held;
use crate::client::evidence;
use crate::client::fetch::Fetched;
use crate::client::verdict::Claims;
use crate::client::{Client, Completeness, Scan};
use crate::error::{Error, ErrorKind, Phrase, Place, Result, Setting};
use crate::memory::inherited;
use crate::profile::{Direction, Profile, Zone};
use crate::request::{Beside, Hint, PageRequest, Pages, RequestKey, RequestPlan};

/// Received pages that wait for an earlier one, on top of the requests in flight.
const HELD: usize = 2;
/// Mentions requested in the opposite order to confirm an end.
const CONFIRMING: u64 = 10;
/// Pages read to link one that does not, however much they contain: in a changing set there may always be more.
const REPAIRS: u32 = 8;

/// See the module's documentation.
pub(super) struct PageReader<D: PageDecoder> {
    client: Arc<Client>,
    scan: Arc<Scan>,
    plan: Arc<RequestPlan>,
    decoder: Arc<D>,
    prefetch: Prefetch,
    /// Number of times that further pages were wanted, if it decides how many are requested.
    turns: usize,
    /// Time zone in which periods are expressed.
    zone: Zone,
    /// Order in which rows arrive, if their sort keys are known.
    sort: Option<Direction>,
    /// That order, if it is one of time.
    order: Option<Direction>,
    /// Windows still to be read, the next one last.
    windows: Vec<Window>,
    window: Window,
    reading: Option<Reading>,
    begun: bool,
    near_side: Option<NearSide>,
    /// Rows per page, as far as the service was seen to return the requested size.
    stride: Option<u64>,
    queue: FuturesOrdered<PendingPage<D::Page>>,
    ready: VecDeque<(D::Page, Held)>,
    /// A short first page that more should follow, until the next one shows that it lacks none of its rows.
    doubted: Option<(D::Page, Held)>,
    withheld: Option<Withheld<D::Page>>,
    /// Traits of the mentions of the window.
    known: Known,
    /// Time of the first mention that the window does not have, which was dropped.
    stray: Option<i64>,
    /// Ends of the plan's window, if it names instants and its end is not a part of it.
    ends: Option<Ends>,
    /// Member of the last response that says that more mentions follow, with its value.
    more: Option<String>,
    /// Cursor of the page after the last one, if rows are not counted and there is one.
    cursor: Option<String>,
    /// Cursors of the pages since the last one with new rows.
    followed: Vec<String>,
    /// Memory of the ids.
    ids: Held,
    /// Rows emitted.
    given: u64,
    /// Distinct rows received, also those that belong to no window of the plan.
    arrived: u64,
    /// Those that belong to one.
    distinct: u64,
    /// Pages requested.
    asked: AtomicU64,
    /// Rows of the largest page.
    largest: u64,
    /// Number of mentions by the first response.
    first_total: Option<u64>,
    /// Window before it was cut.
    whole: Option<FirstWindow>,
    /// Mentions that were received, and lie outside of that window.
    outside: u64,
    /// Numbers that the mentions were compared with.
    claims: Claims,
    last_call: Option<u64>,
    /// Windows read, those not counted that were read again.
    windows_read: u64,
    history: History,
}

/// A requested page.
type PendingPage<P> = BoxFuture<'static, (RowRange, Result<PageAnswer<P>>)>;

/// A received page, its facts, its memory, and the call that fetched it.
struct PageAnswer<P> {
    page: P,
    facts: PageFacts,
    memory: Held,
    /// The header that says that another page follows, if there is one.
    more: Option<String>,
    call: Option<u64>,
}

/// Window as it was first requested, and the numbers of mentions in it by the first response.
struct FirstWindow {
    words: Option<String>,
    /// Its instants, if it names them.
    instants: Option<Range<i64>>,
    /// Set if its instants replaced it, and were requested since.
    resolved: bool,
    total: u64,
    beside: Beside,
}

/// Near side of a cut, until the total of the far side shows whether it is complete.
struct NearSide {
    instants: (i64, i64),
    /// Instant at its end that belongs to the far side, if windows include both ends.
    shared: Option<i64>,
    /// Ids emitted, on both sides.
    known: Ids,
    /// Rows received on this side.
    received: u64,
    /// Total that the service reported for both sides together.
    total: Option<u64>,
    /// Set if that total did not change.
    steady: bool,
    proof: SideProof,
}

/// Evidence that no row of that side is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SideProof {
    /// The links between its pages, whatever changed meanwhile.
    Links,
    /// The links between its pages if nothing changed, which the totals show.
    Totals,
    /// No evidence.
    None,
}

/// Row held back until the next page repeats it, possibly in a newer version.
struct Withheld<P> {
    id: u64,
    version: i64,
    page: P,
    memory: Held,
}

/// Repairs that were needed to get all rows.
#[derive(Default)]
struct History {
    passes: u64,
    repaired: u64,
    /// Set once a response covered more than its window.
    exceeded: bool,
    /// Set once a window was cut.
    cut: bool,
    /// Set if the far side of a cut lacked mentions at its edge that the near side had.
    lacking: bool,
    changed: bool,
    doubles: u64,
    missing: Vec<String>,
}

impl History {
    /// Describes the result of reading. `shown`: the mentions received, and what confirms that they are all.
    fn verdict(&self, shown: String, limited: bool) -> String {
        if !self.missing.is_empty() {
            return format!("incomplete: {}", self.missing.join("; "));
        }
        let mut events = Vec::new();
        for (number, one, many) in [
            (u64::from(self.changed), "the total changed", ""),
            (self.repaired, "1 page re-read", "pages re-read"),
            (self.passes, "1 further pass", "further passes"),
            (self.doubles, "1 duplicate dropped", "duplicates dropped"),
        ] {
            match number {
                0 => {}
                1 => events.push(one.to_owned()),
                _ => events.push(format!("{number} {many}")),
            }
        }
        match (events.is_empty(), limited) {
            (true, true) => format!("limited: {shown}"),
            (true, false) => format!("complete: {shown}"),
            (false, _) => format!("repaired: {}; {shown}", events.join(", ")),
        }
    }
}

impl<D: PageDecoder> PageReader<D> {
    pub(super) fn new(
        client: Arc<Client>,
        scan: Arc<Scan>,
        plan: Arc<RequestPlan>,
        decoder: Arc<D>,
        prefetch: Prefetch,
    ) -> Self {
        let profile = client.profile();
        let zone = plan.zone(profile);
        let sort = profile.sort.values.iter().find(|value| Some(&value.value) == plan.sort.as_ref());
        let by_time = sort.filter(|sort| Some(&sort.column) == profile.tables.mentions.time.as_ref());
        Self {
            decoder,
            prefetch,
            turns: 0,
            sort: sort.map(|sort| sort.direction),
            order: by_time.map(|sort| sort.direction),
            windows: vec![Window::of(&profile.window, plan.duration.as_deref(), zone)],
            zone,
            window: Window::default(),
            reading: None,
            begun: false,
            near_side: None,
            stride: None,
            queue: FuturesOrdered::new(),
            ready: VecDeque::new(),
            doubted: None,
            withheld: None,
            known: Known::default(),
            stray: None,
            ends: Ends::of(profile, &plan, zone),
            more: None,
            cursor: None,
            followed: Vec::new(),
            // Holding zero bytes never fails.
            ids: scan.hold(0).unwrap_or_default(),
            given: 0,
            arrived: 0,
            largest: 0,
            distinct: 0,
            asked: AtomicU64::new(0),
            first_total: None,
            whole: None,
            outside: 0,
            claims: Claims::default(),
            last_call: None,
            windows_read: 0,
            history: History::default(),
            plan,
            client,
            scan,
        }
    }

    /// Returns the next page; `None` after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<D::Page>> {
        let Some(pages) = self.plan.pages else {
            if self.windows.pop().is_none() {
                return Ok(None);
            }
            let (range, answer) = self.ask(RowRange { row: 0, size: 0 }).await;
            let answer = answer?;
            self.check_period(range, &answer)?;
            return Ok(Some(answer.page));
        };
        loop {
            // From here on, the consumer accounts for its memory.
            if let Some((page, _)) = self.ready.pop_front() {
                return Ok(Some(page));
            }
            if self.reading.is_none() {
                let Some(window) = self.windows.pop() else {
                    self.check_start().await?;
                    self.check_parts().await?;
                    self.conclude();
                    return Ok(None);
                };
                if self.client.rounds_offsets() && pages.skip > 0 {
                    let message = "the service rounds offsets down to multiples of the page size";
                    return Err(Error::new(ErrorKind::Contradiction, message)
                        .advice("set aligned = true in [offset] of the profile"));
                }
                self.begin_window(window, pages);
            }
            if self.queue.is_empty() && self.has_spent_all() {
                self.give_up()?;
                continue;
            }
            if !self.begun {
                self.begin_pass().await?;
                continue;
            }
            self.ask_ahead();
            match self.queue.next().await {
                Some((range, answer)) => self.arrive(range, answer).await?,
                None if self.reading.as_ref().is_some_and(Reading::may_be_depth) => self.check_end().await?,
                None if let Some((row, id)) = self.reading.as_ref().and_then(Reading::place_to_check) => {
                    self.check_place(row, id).await?;
                }
                None if self.more.is_some() && self.reading.as_ref().is_some_and(Reading::is_at_its_end) => {
                    self.check_more().await?;
                }
                None => self.end_of_pass()?,
            }
        }
    }

    fn begin_window(&mut self, mut window: Window, pages: Pages) {
        let profile = self.client.profile();
        // Only the beginning of the first window is skipped.
        let skip = if window.words.is_none() { pages.skip } else { 0 };
        let left = |fetch: u64| fetch.saturating_sub(self.given) + window.known.len() as u64;
        let pages = match window.again {
            // A part that is read again is needed completely.
            true => Pages { fetch: None, skip: 0, ..pages },
            false => Pages { fetch: pages.fetch.map(left), skip, ..pages },
        };
        let known = std::mem::take(&mut window.known);
        let grid = self.order.map(|_| profile.window.grid(self.zone));
        let reading = Reading::new(pages, profile, self.sort, grid, known).reaching(self.scan.depth());
        // If the reader may stop early, nothing judges the unread rows.
        let stops = self.prefetch == Prefetch::OnDemand || pages.fetch.is_some();
        let early = stops && pages.ordered && self.sort.is_some();
        let reading = if early { reading.stopping_early() } else { reading };
        let reading = if self.client.rounds_offsets() { reading.aligned() } else { reading };
        self.reading = Some(match (window.again, window.cut) {
            (true, _) => reading.careful(),
            (false, true) => reading.rest(self.stride.unwrap_or(u64::MAX), self.largest),
            (false, false) => reading,
        });
        self.windows_read += u64::from(!window.again);
        self.window = window;
        self.known = Known::default();
        self.stray = None;
        self.begun = false;
    }

    /// Requests the first page of a pass.
    async fn begin_pass(&mut self) -> Result<()> {
        let Some(reading) = &self.reading else { return Ok(()) };
        self.cursor = None;
        self.followed.clear();
        let first = self.ask(reading.first());
        // A relative period is resolved by the first response.
        let window = self.window_to_expect();
        let early = self.ask_early(window.as_ref());
        let (range, answer) = first.await;
        let answer = answer.map_err(|error| match range.row > 0 && is_refusal(&error) {
            true => refused_behind(range.row, error),
            false => error,
        })?;
        self.begun = true;
        self.note_totals(range, answer.facts, window.is_some());
        self.check_window(range, &answer.facts)?;
        self.check_period(range, &answer)?;
        self.check_beside_first(range, answer.facts)?;
        self.check_first(range, &answer)?;
        let asked = self.window.words.clone();
        let window = &self.client.profile().window;
        // A cursor belongs to the period that the first page was requested with.
        if !self.reading.as_ref().is_some_and(Reading::follows_cursors) {
            self.window.freeze(window, self.zone, answer.facts.echo.window());
        }
        let (order, splits) = (self.order, window.takes_instants() && self.window.instants.is_some());
        let counted = self.counted(answer.facts);
        let Some(reading) = &mut self.reading else { return Ok(()) };
        reading.set_cuttable(order.is_some() && splits);
        let beside = answer.facts.beside;
        reading.record_total(answer.facts.total);
        reading.hint(answer.facts.hint, beside);
        reading.check_depth()?;
        let skip = self.plan.pages.map_or(0, |pages| pages.skip);
        if let Some(reason) = hidden_behind(skip, answer.facts) {
            self.reading = None;
            return self.incomplete_because(reason, evidence::WHICH);
        }
        if let Err(error) = check_offset(skip, range, answer.facts) {
            return Err(error.at(self.place(range)));
        }
        let above = reading.proof.is_exceeded();
        self.first_total = self.first_total.or(answer.facts.total.map(|total| beside.most(total)));
        if let (None, Some(total), false) = (&self.whole, counted, self.window.cut) {
            let instants = self.window.instants.filter(|_| self.window.stated).map(|(from, to)| from..to);
            self.whole =
                Some(FirstWindow { resolved: asked != self.window.words, words: asked, instants, total, beside });
        }
        // If totals cannot show that a part is complete, its pages have to.
        let sayable = self.window.is_sayable(window, self.zone);
        let sayable = sayable && window.is_half_open();
        let comparable = answer.facts.total.is_some() && (sayable || !reading.will_be_cut());
        if splits && (!comparable || above) {
            reading.be_careful();
        }
        if let Some(side) = self.near_side.take()
            && !self.settle(side, answer.facts.total)?
        {
            return Ok(());
        }
        self.absorb(range, answer)?;
        if let (Prefetch::Ahead(_), Some(requests)) = (self.prefetch, self.reading.as_ref().and_then(Reading::requests))
            && self.history.passes == 0
            && !self.window.cut
        {
            self.scan.query.require(requests)?;
        }
        self.take_early(early);
        Ok(())
    }

    /// Notes the total of a first page, for estimates. `expected`: set for a window whose total is remembered.
    fn note_totals(&self, range: RowRange, facts: PageFacts, expected: bool) {
        let Some(total) = facts.total else { return };
        let relative = self.window.words.is_none() && self.window.instants.is_none() && self.history.passes == 0;
        // A relative period is read again at other instants: its total serves estimates alone.
        if relative || expected {
            self.client.note_total(&self.plan, total);
        }
        if range.row + facts.rows < total && facts.rows < range.size {
            self.client.totals.note_smaller(facts.rows);
        }
    }

    /// Requests the pages after the first one together with it, as far as the expected total covers full pages.
    fn ask_early(&mut self, window: Option<&RequestKey>) -> Vec<(RowRange, PendingPage<D::Page>)> {
        let Prefetch::Ahead(requests) = self.prefetch else { return Vec::new() };
        let expected = window.and_then(|window| self.client.totals.of(window));
        let (Some(expected), Some(reading)) = (expected, &mut self.reading) else { return Vec::new() };
        let ranges: Vec<RowRange> = reading.early_ranges(expected, requests.saturating_sub(1));
        let query = &self.scan.query;
        if query.allow(query.required().saturating_add(1 + ranges.len() as u64)).is_err() {
            return Vec::new();
        }
        ranges.into_iter().map(|range| (range, self.ask_beside(range))).collect()
    }

    /// Keeps the early pages that the first one confirms, and cancels the others.
    fn take_early(&mut self, early: Vec<(RowRange, PendingPage<D::Page>)>) {
        let (Some(reading), false) = (&mut self.reading, early.is_empty()) else { return };
        let confirmed = reading.confirm_early(early.iter().map(|(range, _)| *range));
        // Those that turn out not to be needed are no passes of the service's making.
        self.asked.fetch_sub((early.len() - confirmed) as u64, Ordering::Relaxed);
        self.queue.extend(early.into_iter().take(confirmed).map(|(_, asked)| asked));
    }

    /// The identity of the window, if its total is remembered and expected: it is complete, and its instants do not depend on the
    /// time of the request.
    fn window_to_expect(&self) -> Option<RequestKey> {
        let absolute = self.window.instants.is_some() && self.window.words.is_none() && self.history.passes == 0;
        absolute.then(|| PageRequest::overview(RequestPlan::clone(&self.plan)).key(self.client.profile()))
    }

    fn ask_ahead(&mut self) {
        let ahead = match self.prefetch {
            Prefetch::OnDemand => 1,
            // Received pages do not count against the requests in flight.
            Prefetch::Ahead(requests) => requests.max(1) + HELD,
            Prefetch::Growing(requests) => {
                self.turns += 1;
                (self.turns / 2).clamp(1, requests.max(1) + HELD)
            }
        };
        while self.queue.len() < ahead {
            let idle = self.queue.is_empty();
            if self.has_spent_all() {
                return;
            }
            let Some(reading) = &mut self.reading else { return };
            let Some(range) = reading.next_range(idle) else { return };
            if reading.follows_cursors() && self.cursor.is_none() {
                reading.meet_end();
                continue;
            }
            let asked = self.ask_beside(range);
            self.queue.push_back(asked);
        }
    }

    /// Requests rows of the window: the first ones, or those after the cursor.
    fn ask(&self, range: RowRange) -> PendingPage<D::Page> {
        let request = PageRequest { cursor: self.cursor.clone(), ..PageRequest::first(Arc::clone(&self.plan)) };
        self.send(PageRequest { frozen: self.window.words.clone(), ..request }, range)
    }

    /// Requests the first rows of a plan in the window of these words.
    fn ask_of(&self, plan: Arc<RequestPlan>, frozen: Option<String>, range: RowRange) -> PendingPage<D::Page> {
        self.send(PageRequest { frozen, ..PageRequest::first(plan) }, range)
    }

    fn send(&self, request: PageRequest, range: RowRange) -> PendingPage<D::Page> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (client, scan, decoder) = (Arc::clone(&self.client), Arc::clone(&self.scan), Arc::clone(&self.decoder));
        // Without mentions, there is no size.
        let sized = |size: u64| if size == 0 { range } else { RowRange { size: client.page_size(size), ..range } };
        let range = sized(range.size);
        let request = PageRequest { row: range.row, size: range.size, ..request };
        Box::pin(async move {
            let decode_for = |request: &PageRequest, body: &Bytes| {
                let (page, facts) = decoder.decode(request, body)?;
                let memory = scan.hold(page.bytes())?;
                Ok(((page, facts, memory), facts.rows))
            };
            let mut answer = client.fetch_logged(&scan, &request, |body| decode_for(&request, body)).await;
            let mut range = range;
            if let Err(error) = &answer
                && let Some(size) = client.larger_size(error, range.size)
            {
                let larger = PageRequest { size, ..request.clone() };
                answer = client.fetch_logged(&scan, &larger, |body| decode_for(&larger, body)).await;
                if answer.is_ok() {
                    client.note_refused_size(range.size);
                    range.size = size;
                }
            }
            let answer = answer.map(|Fetched { value: (page, facts, memory), more, call }| PageAnswer {
                page,
                facts,
                memory,
                more,
                call,
            });
            (range, answer)
        })
    }

    /// Requests rows of the window beside others: if pages are requested ahead, in a task of its own.
    fn ask_beside(&self, range: RowRange) -> PendingPage<D::Page> {
        let asked = self.ask(range);
        if self.prefetch == Prefetch::OnDemand {
            return asked;
        }
        let task = AbortOnDropHandle::new(tokio::spawn(inherited(asked.in_current_span())));
        Box::pin(async move {
            task.await.unwrap_or_else(|ended| match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(ended) => {
                    let message = format!("the request was not completed: {ended}");
                    (range, Err(Error::new(ErrorKind::Connect, message)))
                }
            })
        })
    }

    /// Takes a page that was requested ahead. If it does not link, looks for the rows lost between it and those before.
    async fn arrive(&mut self, range: RowRange, answer: Result<PageAnswer<D::Page>>) -> Result<()> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if self.is_depth(&error) => {
                if let Some(reading) = &mut self.reading {
                    reading.met_depth();
                }
                self.queue = FuturesOrdered::new();
                return Ok(());
            }
            Err(error) if range.row > 0 && is_refusal(&error) => {
                // Some services refuse a page behind the end instead of returning an empty one.
                let Some(reading) = self.reading.as_mut().filter(|reading| reading.may_have_ended(range)) else {
                    return Err(refused_behind(range.row, error));
                };
                reading.meet_refusal();
                self.queue = FuturesOrdered::new();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.reading.as_mut().is_some_and(|reading| reading.aligns(range, rows(&answer.page))) {
            self.client.note_rounded_offsets();
            self.queue = FuturesOrdered::new();
            return Ok(());
        }
        let (mut tried, mut rounds, mut renamed) = (0, 0, false);
        while !self.links(range, &answer.page) {
            rounds += 1;
            let tries = if rounds > REPAIRS || self.has_spent_all() { u64::MAX } else { tried };
            let Some(back) = self.reading.as_mut().and_then(|reading| reading.repair(range, tries)) else {
                if renamed {
                    self.reading = None;
                    self.flush();
                    return self.report_renamed("and a page has most of those before it again, with different ids");
                }
                if self.reading.as_ref().is_some_and(|reading| !reading.may_skip()) {
                    let reason =
                        "the pages do not link up, so mentions between them would be missing from the sorted result";
                    self.incomplete(reason.to_owned())?;
                }
                break;
            };
            let (back, found) = self.ask(back).await;
            let found = found?;
            self.scan.repaired.fetch_add(1, Ordering::Relaxed);
            self.history.repaired += 1;
            let before = self.reached();
            if self.links(back, &found.page) {
                let end = back.row + found.facts.rows;
                self.record_facts(back, found.facts)?;
                self.absorb(back, found)?;
                if let Some(reading) = &mut self.reading {
                    reading.fall_back(end);
                }
            } else if let (Some(ids), Some(traits)) = (found.page.ids(), found.page.traits()) {
                renamed = self.known.has_all_but_ids(ids, traits);
            }
            // Any progress restarts the count of attempts.
            tried = if self.reached() != before { 0 } else { tried + 1 };
        }
        self.record_facts(range, answer.facts)?;
        self.absorb(range, answer)
    }

    /// True if a response says that paging reaches no further, since the rows before were returned for the same query.
    fn is_depth(&self, error: &Error) -> bool {
        is_refusal(error) && self.reading.as_ref().is_some_and(Reading::can_be_cut)
    }

    /// Number of rows received, and the row number after the last of them.
    fn reached(&self) -> (u64, u64) {
        self.reading.as_ref().map_or((0, 0), |reading| (reading.proof.chain.received(), reading.row()))
    }

    fn links(&mut self, range: RowRange, page: &D::Page) -> bool {
        match (&mut self.reading, rows(page)) {
            (Some(reading), Some(rows)) => reading.links(range, rows),
            _ => true,
        }
    }

    fn record_facts(&mut self, range: RowRange, facts: PageFacts) -> Result<()> {
        self.check_window(range, &facts)?;
        let Some(reading) = &mut self.reading else { return Ok(()) };
        // A total from a page that should have rows but has none is not believed.
        if facts.rows > 0 || facts.total.is_none_or(|total| total <= range.row) {
            reading.record_total(facts.total);
        }
        reading.hint(facts.hint, facts.beside);
        reading.check_depth()
    }

    /// Takes the new rows of a page.
    fn absorb(&mut self, range: RowRange, answer: PageAnswer<D::Page>) -> Result<()> {
        let PageAnswer { page, facts, memory, more, call } = answer;
        self.check_times(range, &page)?;
        if let (Some(ids), Some(traits)) = (page.ids(), page.traits()) {
            self.known.take(ids, traits).map_err(|error| error.at(self.place(range)))?;
        }
        self.last_call = call.or(self.last_call);
        self.largest = self.largest.max(facts.rows);
        self.more = page.more().map(str::to_owned).or(more);
        self.scan.pages.fetch_add(1, Ordering::Relaxed);
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let taken = reading.take(range, facts.rows, rows(&page))?;
        // A page that names itself names no other, unless the service keeps the place.
        match taken.as_ref().is_some_and(|taken| taken.new == 0) {
            true => self.followed.extend(self.cursor.take()),
            false => self.followed.clear(),
        }
        self.cursor = page.next().map(str::to_owned).filter(|next| self.followed.last() != Some(next));
        if self.cursor.as_ref().is_some_and(|next| !self.followed.contains(next)) {
            reading.follow();
        }
        let Some(mut taken) = taken else {
            self.ready.push_back((page, memory));
            return Ok(());
        };
        if reading.too_late() {
            self.reading = None;
            self.queue = FuturesOrdered::new();
            let reason =
                "mentions arrived too late for the sort order, since others were added or removed during the read";
            return self.incomplete(reason.to_owned());
        }
        if reading.lacks_rows() {
            return self.report_lacking();
        }
        self.arrived += taken.keep.iter().filter(|keep| **keep).count() as u64;
        let repeats = u64::from(taken.doubles > 0 && range.row > 0 && reading.overlaps());
        let doubles = taken.doubles.saturating_sub(repeats);
        self.scan.doubles.fetch_add(doubles, Ordering::Relaxed);
        self.scan.edited.fetch_add(taken.edited, Ordering::Relaxed);
        // Duplicates of a further pass are expected.
        self.history.doubles += if self.history.passes == 0 && self.history.repaired == 0 { doubles } else { 0 };
        let more = reading.goes_on() && matches!(self.prefetch, Prefetch::Ahead(_));
        self.ids.resize(reading.proof.chain.bytes() + self.known.bytes())?;
        if let (Some(ends), Some(times)) = (&mut self.ends, page.times()) {
            ends.see(times);
        }
        let satisfied = reading.satisfied();
        self.drop_strays(&page, &mut taken.keep);
        // They count as some of the rows that a limit asked for.
        if let Some(at) = self.stray.filter(|_| satisfied && !self.window.is_wider()) {
            return Err(self.outside(range, at));
        }
        self.distinct += taken.keep.iter().filter(|keep| **keep).count() as u64;
        self.release(&page, &mut taken.keep);
        if more {
            self.withhold(&page, &mut taken.keep)?;
        }
        self.given += taken.keep.iter().filter(|keep| **keep).count() as u64;
        let page = if taken.keep.contains(&false) { page.retain(&taken.keep) } else { page };
        // A reader that may stop early would never see the page that shows whether this one lacks rows.
        let stops = self.prefetch == Prefetch::OnDemand && self.sort.is_some() && self.windows_read == 1;
        let doubted =
            stops && range.row == 0 && self.reading.as_ref().is_some_and(|reading| reading.is_short(range, facts));
        if doubted {
            self.doubted = Some((page, memory));
        } else {
            self.ready.extend(self.doubted.take());
            self.ready.push_back((page, memory));
        }
        Ok(())
    }

    /// Drops the rows outside the window's own instants.
    fn drop_strays(&mut self, page: &D::Page, keep: &mut [bool]) {
        let half_open = self.client.profile().window.is_half_open();
        let Some(times) = page.times() else { return };
        let Some(stray) = times.iter().copied().find(|at| !self.window.holds(*at, half_open)) else { return };
        self.stray = self.stray.or(Some(stray));
        let whole = self.whole.as_ref().and_then(|whole| whole.instants.clone()).unwrap_or(i64::MIN..i64::MAX);
        for (keep, at) in keep.iter_mut().zip(times).filter(|(keep, _)| **keep) {
            *keep = self.window.holds(*at, half_open);
            self.outside += u64::from(!*keep && !whole.contains(at));
        }
    }

    /// Holds the last row back, which the next page may repeat.
    fn withhold(&mut self, page: &D::Page, keep: &mut [bool]) -> Result<()> {
        let (Some(id), [_, .., last @ true]) = (page.ids().and_then(<[u64]>::last), keep) else { return Ok(()) };
        let version = page.versions().and_then(|versions| versions.last().copied()).unwrap_or(i64::MIN);
        let row = page.last_row();
        let memory = self.scan.hold(row.bytes())?;
        self.withheld = Some(Withheld { id: *id, version, page: row, memory });
        *last = false;
        Ok(())
    }

    fn place(&self, range: RowRange) -> Place {
        Place { aid: self.plan.aid.clone(), row: Some(range.row), ..Place::default() }
    }

    /// Emits the row that was withheld: as the page repeats it, or as it was received if that is the newer version.
    fn release(&mut self, page: &D::Page, keep: &mut [bool]) {
        let Some(Withheld { id, version, page: last, memory }) = self.withheld.take() else { return };
        let version_at = |at: usize| page.versions().and_then(|versions| versions.get(at).copied()).unwrap_or(i64::MIN);
        let again = page.ids().and_then(|ids| {
            let places = ids.iter().enumerate().filter(|(_, other)| **other == id);
            places.map(|(at, _)| at).max_by_key(|at| version_at(*at))
        });
        if let Some(again) = again {
            let newest = version_at(again);
            self.scan.edited.fetch_add(u64::from(newest != version), Ordering::Relaxed);
            if newest >= version {
                keep[again] = true;
                return;
            }
        }
        self.given += 1;
        self.ready.push_back((last, memory));
    }

    /// Emits what was held back.
    fn flush(&mut self) {
        self.ready.extend(self.doubted.take());
        if let Some(Withheld { page, memory, .. }) = self.withheld.take() {
            self.given += 1;
            self.ready.push_back((page, memory));
        }
    }

    /// Ends a pass: continues with another window or another pass, or finishes.
    fn end_of_pass(&mut self) -> Result<()> {
        self.flush();
        if self.cut() {
            return Ok(());
        }
        let Some(reading) = &mut self.reading else { return Ok(()) };
        reading.check_depth()?;
        let verdict = reading.end_of_pass();
        let rounded = reading.proof.may_be_rounded();
        self.history.changed |= !reading.proof.is_constant();
        match verdict {
            Verdict::Complete if let Some(renamed) = reading.renamed(&self.known, self.window.cut) => {
                self.reading = None;
                return self.report_renamed(&format!("{renamed} of them twice, with different ids"));
            }
            Verdict::Complete => {
                self.history.lacking |= self.window.lacks(&reading.proof.chain);
                // A total that counts mentions outside of the window says nothing about them.
                if !self.history.cut && !self.window.exceeded {
                    self.claims = reading.claims();
                }
                self.reading = None;
            }
            // Another pass that the budget does not allow would return nothing.
            Verdict::Again if !reading.requests().is_none_or(|requests| self.scan.query.has_left(requests)) => {
                self.reading = None;
                let reason = "nothing proves that all were received, and the budget allows no other pass";
                self.incomplete(format!("{} distinct mentions received: {reason}", self.distinct))?;
            }
            Verdict::Again => {
                self.count_pass();
                self.begun = false;
            }
            Verdict::Incomplete(reason) => {
                self.reading = None;
                match rounded {
                    true => self.incomplete_because(reason, evidence::ROUNDED)?,
                    false => self.incomplete(reason)?,
                }
            }
            Verdict::Unreachable(reason) => {
                self.reading = None;
                self.incomplete_because(reason, evidence::NARROWER)?;
            }
            Verdict::Contradiction(reason) => {
                self.reading = None;
                self.incomplete_because(reason, evidence::WHICH)?;
            }
        }
        Ok(())
    }

    /// Cuts the window if its first part is not to be read further, or finds that it cannot be cut. Returns true in
    /// both cases.
    fn cut(&mut self) -> bool {
        let spec = &self.client.profile().window;
        let (Some((from, to)), Some(order)) = (self.window.instants, self.order) else { return false };
        let Some(mut reading) = self.reading.take_if(|reading| reading.wants_cut()) else { return false };
        let cut = reading.proof.chain.cut().map(|(first, received)| match order {
            Direction::Asc => (first, (from, first), (first, to), received),
            Direction::Desc => {
                let edge = reading.proof.chain.next_edge(first);
                (edge, (edge, to), (from, edge), received)
            }
        });
        if cut.is_some_and(|(edge, ..)| self.window.shared == Some(edge)) && reading.proof.is_firm() {
            // What is left belongs to the part beside this one.
            return true;
        }
        let cut = cut.and_then(|(edge, near, far, received)| {
            let smaller = near.0 < near.1 && far.0 < far.1;
            let window = Window::part(spec, self.zone, far, Ids::default(), false).filter(|_| smaller)?;
            Some((near, edge, window, received))
        });
        let Some((near, edge, window, received)) = cut else {
            // All rows reached lie in one instant: continue as far as paging reaches.
            reading.set_cuttable(false);
            self.reading = Some(reading);
            return true;
        };
        reading.note_depth();
        self.stride = Some(reading.stride());
        self.scan.reached(reading.depth_found());
        self.scan.cuts.fetch_add(1, Ordering::Relaxed);
        self.history.cut = true;
        self.history.lacking |= self.window.lacks(&reading.proof.chain);
        self.history.changed |= !reading.proof.is_constant();
        let scattered = self.window.scattered || reading.proof.is_repeated();
        let known = reading.proof.chain.at_edge(scattered);
        let others = if scattered { Ids::default() } else { known.clone() };
        self.windows.push(Window { known, scattered, shared: self.window.shared, ..window });
        self.near_side = Some(NearSide {
            instants: near,
            shared: Some(edge).filter(|_| !spec.is_half_open()),
            received,
            // A total that another count exceeds is not the one of both sides.
            total: reading.proof.total().filter(|_| reading.proof.above().is_none()),
            steady: reading.proof.is_steady(),
            proof: match () {
                () if reading.proof.is_firm() => SideProof::Links,
                () if reading.proof.is_proven() => SideProof::Totals,
                () => SideProof::None,
            },
            // Rows at the edge belong to the other side.
            known: reading.proof.chain.into_known().difference(&others).copied().collect(),
        });
        true
    }

    /// Decides from the total of the far side whether the near side of a cut is complete. If not, it is read again.
    fn settle(&mut self, side: NearSide, rest: Option<u64>) -> Result<bool> {
        let sum = side.total.zip(rest.and_then(|rest| side.received.checked_add(rest)));
        let agree = match sum {
            // If the rest was requested with a wider window, its total may include other rows.
            Some((total, sum)) if self.window.is_wider() => (sum < total).then_some(false),
            sum => sum.map(|(total, sum)| total == sum),
        };
        let whole = match side.proof {
            // Unchanged totals that disagree contradict even links.
            SideProof::Links => agree != Some(false) || !side.steady,
            SideProof::Totals => agree == Some(true),
            SideProof::None => false,
        };
        if whole {
            return Ok(true);
        }
        let spec = &self.client.profile().window;
        let Some(again) = Window::part(spec, self.zone, side.instants, side.known, true) else {
            let received = side.received;
            let reason =
                format!("{received} distinct mentions received, and this part of the window cannot be read again");
            match self.reading.as_ref().is_some_and(Reading::follows_cursors) {
                true => self.incomplete_because(reason, evidence::CURSORS)?,
                false => self.incomplete(reason)?,
            }
            return Ok(true);
        };
        self.count_pass();
        if self.has_spent_all() {
            self.give_up()?;
            return Ok(false);
        }
        let known = self.reading.take().map(|reading| reading.proof.chain.into_known()).unwrap_or_default();
        let far = std::mem::take(&mut self.window);
        self.windows.push(Window { known, ..far });
        self.windows.push(Window { shared: side.shared, ..again });
        Ok(false)
    }

    /// True if as many pages were requested as three passes of an honest service take.
    fn has_spent_all(&self) -> bool {
        /// Smallest page of an honest service, as a part of the requested one.
        const PART: u64 = 10;
        let requested = self.plan.pages.map_or(1, |pages| pages.size);
        let size = self.reading.as_ref().map(Reading::stride).or(self.stride).unwrap_or(requested);
        // Cursors and limits in bytes make pages of any size. If pages do not link, they are small because they lack rows.
        let whole = self.history.repaired == 0 && self.reading.as_ref().is_none_or(Reading::is_linked);
        let largest = self.largest.min(requested);
        let page = if whole { size.min(requested / PART).max(largest) } else { size.max(largest) };
        // A total may be capped, which only its parts show.
        let most = self.first_total.filter(|_| !self.history.cut).unwrap_or(u64::MAX);
        // Without a total, several empty pages show an end. Where pages share no row, each part of a cut window needs them twice.
        let adjacent = !self.client.profile().offset.reaches_any_row();
        let ends = if self.history.cut && self.first_total.is_none() && adjacent { 2 } else { 1 };
        self.asked.load(Ordering::Relaxed) >= evidence::allowance(self.arrived.min(most), page, ends)
    }

    /// Stops reading, because the service needs more requests than three passes over its mentions take.
    fn give_up(&mut self) -> Result<()> {
        let rounded = self.reading.take().is_some_and(|reading| reading.proof.may_be_rounded());
        self.queue = FuturesOrdered::new();
        self.windows.clear();
        self.near_side = None;
        self.flush();
        self.whole = None;
        let reported = self.first_total.map_or_else(|| "no total".to_owned(), |total| total.to_string());
        let (distinct, asked) = (self.distinct, self.asked.load(Ordering::Relaxed));
        let reason = format!(
            "{distinct} distinct mentions received in {asked} requests, more than three passes take; the service reports \
             {reported}"
        );
        self.incomplete_because(reason, if rounded { evidence::ROUNDED } else { evidence::LEFT_OUT })
    }

    /// Compares the mentions of a window that was read in parts, or as instants instead of a relative period, with its first
    /// total. If they are fewer, the total is requested once more: in a changing set it has changed.
    async fn check_parts(&mut self) -> Result<()> {
        let Some(FirstWindow { words, resolved, total, beside: first, .. }) = self.whole.take() else { return Ok(()) };
        if self.history.cut && !self.history.exceeded {
            self.claims = Claims { total: Some(total), beside: first, opposite: false };
        }
        // Numbers of a response that covers more than the window count the mentions outside of it as well, or not.
        let (expected, distinct) = match self.history.exceeded {
            true => (total, self.distinct + self.outside),
            false => (first.most(total), self.distinct),
        };
        // If an edge lacks its mentions, a total that another count contradicts does not show that no other is missing.
        let both = first.both_above(distinct).filter(|_| !self.history.exceeded);
        let doubtful = (self.history.lacking && first.contradicts(total)) || both.is_some();
        // Mentions at an edge that are gone from there were deleted since, or came with another id.
        let twice = self.history.lacking && distinct > expected && !self.history.exceeded;
        let agrees = (distinct >= expected && !twice) || (distinct == total && !doubtful);
        let limited = self.plan.pages.is_none_or(|pages| pages.fetch.is_some() || pages.skip > 0);
        if agrees || limited || !(self.history.cut || resolved) || !self.history.missing.is_empty() {
            return Ok(());
        }
        let (_, answer) = self.ask_of(Arc::clone(&self.plan), words, RowRange { row: 0, size: 1 }).await;
        let facts = answer?.facts;
        let Some(now) = self.counted(facts).map(|total| facts.beside.most(total)) else { return Ok(()) };
        // As many as came or went between the two counts may be missing, but no more.
        let changed = expected.abs_diff(now);
        if changed > 0 && distinct >= expected.min(now).saturating_sub(changed) {
            return Ok(());
        }
        if let Some(count) = both {
            let reason = format!(
                "{distinct} distinct mentions received, and the total is {total}, but overview and timeline both count {count}"
            );
            return self.incomplete_because(reason, evidence::WHICH);
        }
        if twice {
            return self.report_renamed(&format!(
                "but the service reports {expected} for all of the window, and those at an edge have other ids"
            ));
        }
        let how = if self.history.cut { "in parts of the window" } else { "by the instants of the window" };
        let reason =
            format!("{distinct} distinct mentions received {how}, but the service reports {expected} for all of it");
        self.incomplete_because(reason, evidence::PARTS)
    }

    /// The mentions of a window by a response: its total, or else an exact count beside it, or else a number that they reach at least.
    fn counted(&self, facts: PageFacts) -> Option<u64> {
        facts.total.or(facts.beside.overview).or_else(|| facts.hint.and_then(Hint::at_least))
    }

    /// Checks that no mention of the first instant of the window is missing, if the service returned one of the instant at which the
    /// window ends: its windows may end with that instant, and begin after the first one.
    async fn check_start(&mut self) -> Result<()> {
        let Some(Ends { from, to, begins: false, ends: true }) = self.ends.take() else { return Ok(()) };
        let (Some(pages), spec) = (self.plan.pages, &self.client.profile().window) else { return Ok(()) };
        let grid = spec.grid(self.zone);
        let around = (grid.floor(from - 1), grid.ceil(from + 1));
        let Some(Window { words, .. }) = Window::part(spec, self.zone, around, Ids::default(), false) else {
            return Ok(());
        };
        let (_, answer) = self.ask_of(Arc::clone(&self.plan), words, RowRange { row: 0, size: pages.size }).await;
        let PageAnswer { page, facts, .. } = answer?;
        let whole = facts.total.map_or(facts.rows < pages.size, |total| total <= facts.rows);
        if whole && page.times().is_some_and(|times| !times.contains(&from)) {
            return Ok(());
        }
        let instant = |at: i64| DateTime::from_timestamp_micros(at).unwrap_or_default();
        let message = format!(
            "the response has a mention of {}, the end of the window, which should be excluded, and none of {}, its start",
            instant(to),
            instant(from)
        );
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice("the service's windows exclude their start: check [window] in the profile")
            .at(self.place(RowRange { row: 0, size: 0 })))
    }

    /// Confirms the end of a window at a round number of rows, where services stop to page: mentions in the opposite order have
    /// to begin with rows that were received, or else the overview has to count as many.
    async fn check_end(&mut self) -> Result<()> {
        let client = Arc::clone(&self.client);
        let profile = client.profile();
        let sort = profile.sort.values.iter().find(|value| Some(&value.value) == self.plan.sort.as_ref());
        let opposite = sort.and_then(|sort| {
            let mut others = profile.sort.values.iter();
            others.find(|other| other.column == sort.column && other.direction != sort.direction)
        });
        let row = self.reading.as_ref().map_or(0, Reading::row);
        let mut confirmed = false;
        if let (Some(opposite), Some(pages)) = (opposite, self.plan.pages) {
            let direction = opposite.direction;
            let plan = RequestPlan { sort: Some(opposite.value.clone()), ..RequestPlan::clone(&self.plan) };
            let range = RowRange { row: 0, size: pages.size.min(CONFIRMING) };
            let (_, answer) = self.ask_of(Arc::new(plan), self.window.words.clone(), range).await;
            let page = answer?.page;
            confirmed = self
                .reading
                .as_ref()
                .is_some_and(|reading| rows(&page).is_some_and(|rows| reading.is_reached_by(rows, direction)));
        } else if profile.counted_total().is_some() {
            let plan = PageRequest::overview(RequestPlan::clone(&self.plan)).plan;
            let (_, answer) = self.ask_of(plan, self.window.words.clone(), RowRange { row: 0, size: 0 }).await;
            let facts = answer?.facts;
            if let Some(reading) = &mut self.reading {
                reading.hint(facts.hint, facts.beside);
                confirmed = facts.beside.overview.is_some_and(|count| reading.has_received(count));
            }
        }
        if let Some(reading) = self.reading.as_mut().filter(|_| confirmed) {
            reading.confirm_end(opposite.is_some());
            return self.end_of_pass();
        }
        let counted = self.reading.take().and_then(|reading| reading.proof.beside().overview);
        let reported = counted.map_or_else(
            || "nothing shows that they are all: the service reports no total".to_owned(),
            |counted| format!("the overview counts {counted}"),
        );
        let reason =
            format!("{} distinct mentions received, and paging ends at row {row}, where {reported}", self.distinct);
        self.incomplete_because(reason, evidence::NARROWER)
    }

    /// Checks the place of a mention that was received, if further pages contain none that are new although more are wanted. If it
    /// is at another place, the pages lack mentions before it; otherwise paging reaches no further.
    async fn check_place(&mut self, row: u64, id: u64) -> Result<()> {
        let (_, answer) = self.ask(RowRange { row, size: 1 }).await;
        let PageAnswer { page, facts, .. } = answer?;
        let Some(reading) = &mut self.reading else { return Ok(()) };
        reading.note_place_checked();
        let moved = page.ids().and_then(<[u64]>::first).is_some_and(|other| *other != id);
        if moved && facts.total == reading.proof.total() { self.report_lacking() } else { Ok(()) }
    }

    /// Reports that pages lack mentions that their offsets count.
    fn report_lacking(&mut self) -> Result<()> {
        let Some(reading) = self.reading.take() else { return Ok(()) };
        let (received, rows) = (reading.proof.chain.received(), reading.row());
        let total = reading.proof.total().unwrap_or_default();
        self.flush();
        self.queue = FuturesOrdered::new();
        let reason = format!(
            "{received} distinct mentions received up to row {rows} of {total}: the pages lack mentions that their offsets count"
        );
        self.incomplete_because(reason, evidence::LEFT_OUT)
    }

    /// Reports mentions that came with one id and again with another.
    fn report_renamed(&mut self, how: &str) -> Result<()> {
        self.queue = FuturesOrdered::new();
        let reason = format!("{} distinct mentions received, {how}", self.distinct);
        self.incomplete_because(reason, evidence::IDS)
    }

    /// Confirms the end of a window whose last response says that more mentions follow: the page behind it has to be empty, and
    /// its body say nothing of the kind. A header alone may be sent with every page.
    async fn check_more(&mut self) -> Result<()> {
        let (Some(more), Some(reading)) = (self.more.take(), &self.reading) else { return Ok(()) };
        let (row, total) = (reading.row(), reading.proof.total());
        let nameless = reading.follows_cursors() && self.cursor.is_none();
        let behind = match self.ask(RowRange { row, size: reading.stride() }).await.1 {
            _ if nameless => "it names no next page",
            Ok(PageAnswer { page, facts, .. }) if facts.rows == 0 && page.more().is_none() => return Ok(()),
            Ok(PageAnswer { facts, .. }) if facts.rows == 0 => "none come",
            Ok(_) => "more come",
            Err(error) if is_refusal(&error) => "the service rejects the next page",
            Err(error) => return Err(error),
        };
        self.reading = None;
        self.flush();
        let expected = total.map_or_else(|| "no total".to_owned(), |total| format!("a total of {total}"));
        let reason = format!(
            "{} distinct mentions received, and the service reports {expected}, but its response says that more follow: {more}; \
             {behind}",
            self.distinct
        );
        self.incomplete_because(reason, evidence::FOLLOWS)
    }

    fn count_pass(&mut self) {
        self.history.passes += 1;
        self.scan.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports that rows are missing: an error, or a warning if the query asks for a report.
    fn incomplete(&mut self, reason: String) -> Result<()> {
        let cause = "mentions are added or removed faster than they can be read, or rows with equal sort keys have no \
                     stable order; narrow the window";
        self.incomplete_because(reason, cause)
    }

    /// Reports it with this cause and advice.
    fn incomplete_because(&mut self, reason: String, cause: &str) -> Result<()> {
        self.history.missing.push(reason.clone());
        self.scan.incomplete.fetch_add(1, Ordering::Relaxed);
        let accepted = Setting::Completeness.to("report").after(", or accept an incomplete result: ");
        let error = Error::new(ErrorKind::Incomplete, reason).advice(Phrase::from(cause) + accepted);
        let error = error.at(Place { aid: self.plan.aid.clone(), ..Place::default() });
        match self.scan.query.completeness {
            Completeness::Strict => {
                self.conclude();
                Err(error)
            }
            Completeness::Report => {
                self.client.log().warn(&self.scan.query, &error);
                Ok(())
            }
        }
    }

    /// Records the result of reading.
    fn conclude(&mut self) {
        let limited = self.plan.pages.is_some_and(|pages| pages.fetch.is_some_and(|fetch| self.given >= fetch));
        let windows = match self.windows_read {
            0 | 1 => String::new(),
            windows => format!(", in {windows} windows"),
        };
        let shown = match limited {
            true => format!("{}{}", self.given, self.claims.of()),
            false => format!("{}{windows}", self.claims.confirm(self.distinct)),
        };
        let verdict = self.history.verdict(shown, limited);
        if let Some(call) = self.last_call.take() {
            self.client.log().judge(call, &verdict);
        }
        self.scan.judged(verdict);
    }
}

/// Instants between which the mentions of a plan lie, [from, to), and whether mentions of exactly these were received.
struct Ends {
    from: i64,
    to: i64,
    begins: bool,
    ends: bool,
}

impl Ends {
    fn of(profile: &Profile, plan: &RequestPlan, zone: Zone) -> Option<Self> {
        let spec = &profile.window;
        let (from, to) = plan.duration.as_deref().and_then(|words| spec.span_of(words, zone))?;
        let ends = Self { from: from.timestamp_micros(), to: to.timestamp_micros(), begins: false, ends: false };
        Some(ends).filter(|_| spec.is_half_open())
    }

    fn see(&mut self, times: &[i64]) {
        self.begins |= times.contains(&self.from);
        self.ends |= times.contains(&self.to);
    }
}

/// True if the service rejects the request itself, not the caller.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Rejected | ErrorKind::NotFound)
}

fn rows<P: Page>(page: &P) -> Option<Rows<'_>> {
    Some(Rows { ids: page.ids()?, keys: page.keys(), versions: page.versions() })
}
