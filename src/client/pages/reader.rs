//! Reads the pages of one plan: asks ahead, links what comes, reads again what does not fit, and cuts windows.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};

use super::continuity::Rows;
use super::page_policy::Span;
use super::proof::Verdict;
use super::reading::{Reading, refused_behind};
use super::window::Window;
use super::{Pace, Page, PageDecoder, PageFacts};
use crate::client::budget::Held;
use crate::client::{Client, Completeness, Scan};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::profile::{Direction, Zone};
use crate::request::{PageRequest, Pages, RequestPlan};

/// Pages that have come and wait for an earlier one, on top of the requests under way.
const HELD: usize = 2;
/// Pages that are read for one that does not link, however much they bring: in a set that moves there may be always more.
const REPAIRS: u32 = 8;

/// See the module's documentation.
pub(super) struct PageReader<'a, D: PageDecoder> {
    client: &'a Client,
    scan: &'a Scan,
    plan: Arc<RequestPlan>,
    decoder: &'a D,
    pace: Pace,
    /// The zone that periods are said in.
    zone: Zone,
    /// The order of time in which rows come, if any.
    order: Option<Direction>,
    /// Windows still to be read, the next one last.
    windows: Vec<Window>,
    window: Window,
    reading: Option<Reading>,
    begun: bool,
    part: Option<Part>,
    /// Rows of a page, as far as the service was seen to keep them.
    stride: Option<u64>,
    queue: FuturesOrdered<Asked<'a, D::Page>>,
    ready: VecDeque<(D::Page, Held)>,
    withheld: Option<Withheld<D::Page>>,
    /// The memory of the ids.
    ids: Held,
    /// Rows that have left.
    given: u64,
    last_call: Option<u64>,
    history: History,
}

/// A page that was asked for.
type Asked<'a, P> = BoxFuture<'a, (Span, Result<PageAnswer<P>>)>;

/// A page that has come, what it tells, its memory, and the call that brought it.
struct PageAnswer<P> {
    page: P,
    facts: PageFacts,
    memory: Held,
    call: Option<u64>,
}

/// The near side of a cut, until the total of the far side shows whether it is whole.
struct Part {
    instants: (i64, i64),
    /// Ids that have left, on both sides.
    known: HashSet<u64>,
    /// Rows that came on this side, and that the service announced for both sides together.
    received: u64,
    announced: Option<u64>,
    /// Whether the announced number stood still.
    steady: bool,
    proof: PartProof,
}

/// What shows that nothing of a part was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartProof {
    /// The links between its pages, whatever changed meanwhile.
    Links,
    /// They do if nothing changed, which the totals show.
    Totals,
    /// Nothing.
    None,
}

/// A row that the next page is to bring again, in its newest version.
struct Withheld<P> {
    id: u64,
    version: i64,
    page: P,
    memory: Held,
}

/// What had to be done for the rows to be whole.
#[derive(Default)]
struct History {
    passes: u64,
    repaired: u64,
    changed: bool,
    doubles: u64,
    missing: Vec<String>,
}

impl History {
    /// What reading came to, in words.
    fn conclusion(&self) -> String {
        if !self.missing.is_empty() {
            return format!("incomplete: {}", self.missing.join("; "));
        }
        let mut events = Vec::new();
        for (number, one, many) in [
            (u64::from(self.changed), "the total changed", ""),
            (self.repaired, "a page read again", "pages read again"),
            (self.passes, "another pass", "further passes"),
            (self.doubles, "a double dropped", "doubles dropped"),
        ] {
            match number {
                0 => {}
                1 => events.push(one.to_owned()),
                _ => events.push(format!("{number} {many}")),
            }
        }
        if events.is_empty() { "complete".to_owned() } else { format!("repaired: {}", events.join(", ")) }
    }
}

impl<'a, D: PageDecoder> PageReader<'a, D> {
    pub(super) fn new(client: &'a Client, scan: &'a Scan, plan: Arc<RequestPlan>, decoder: &'a D, pace: Pace) -> Self {
        let profile = client.profile();
        let zone = plan.zone(profile);
        let sort = profile.sort.values.iter().find(|value| Some(&value.value) == plan.sort.as_ref());
        let by_time = sort.filter(|sort| Some(&sort.column) == profile.tables.mentions.time.as_ref());
        Self {
            client,
            scan,
            decoder,
            pace,
            order: by_time.map(|sort| sort.direction),
            windows: vec![Window::of(&profile.window, plan.duration.as_deref(), zone)],
            zone,
            window: Window::default(),
            reading: None,
            begun: false,
            part: None,
            stride: None,
            queue: FuturesOrdered::new(),
            ready: VecDeque::new(),
            withheld: None,
            // Nothing is always granted.
            ids: scan.hold(0).unwrap_or_default(),
            given: 0,
            last_call: None,
            history: History::default(),
            plan,
        }
    }

    /// The next page; `None` when all have left.
    pub(super) async fn next(&mut self) -> Result<Option<D::Page>> {
        let Some(pages) = self.plan.pages else {
            if self.windows.pop().is_none() {
                return Ok(None);
            }
            return Ok(Some(self.ask(Span { row: 0, size: 0 }).await.1?.page));
        };
        loop {
            // Its memory is the consumer's from here on.
            if let Some((page, _)) = self.ready.pop_front() {
                return Ok(Some(page));
            }
            if self.reading.is_none() {
                let Some(window) = self.windows.pop() else {
                    self.conclude();
                    return Ok(None);
                };
                self.begin_window(window, pages);
            }
            if !self.begun {
                self.begin_pass().await?;
                continue;
            }
            self.ask_ahead();
            match self.queue.next().await {
                Some((span, answer)) => self.arrive(span, answer).await?,
                None => self.end_of_pass()?,
            }
        }
    }

    fn begin_window(&mut self, mut window: Window, pages: Pages) {
        let profile = self.client.profile();
        // Rows are left out at the beginning of all.
        let skip = if window.words.is_none() { pages.skip } else { 0 };
        let left = |fetch: u64| fetch.saturating_sub(self.given) + window.known.len() as u64;
        let pages = match window.again {
            // Of what is read again all is needed.
            true => Pages { fetch: None, skip: 0, ..pages },
            false => Pages { fetch: pages.fetch.map(left), skip, ..pages },
        };
        let known = std::mem::take(&mut window.known);
        let reading =
            Reading::new(pages, profile, self.order, profile.window.grid(self.zone), known).reaching(self.scan.depth());
        // Nothing judges what is left unread.
        let stops = self.pace == Pace::OnDemand || pages.fetch.is_some_and(|fetch| fetch > pages.size);
        let early = stops && pages.ordered && self.order.is_some();
        let reading = if early { reading.stopping_early() } else { reading };
        self.reading = Some(match (window.again, window.cut) {
            (true, _) => reading.careful(),
            (false, true) => reading.rest(self.stride.unwrap_or(u64::MAX)),
            (false, false) => reading,
        });
        self.window = window;
        self.begun = false;
    }

    /// Asks for the first page of a pass.
    async fn begin_pass(&mut self) -> Result<()> {
        let Some(reading) = &self.reading else { return Ok(()) };
        let span = reading.first();
        let (span, answer) = self.ask(span).await;
        let answer = answer.map_err(|error| match span.row > 0 && is_refusal(&error) {
            true => refused_behind(span.row, error),
            false => error,
        })?;
        self.begun = true;
        let window = &self.client.profile().window;
        self.window.freeze(window, self.zone, answer.facts.window);
        let (order, splits) = (self.order, window.takes_instants() && self.window.instants.is_some());
        let Some(reading) = &mut self.reading else { return Ok(()) };
        reading.set_cuttable(order.is_some() && splits);
        reading.announce(answer.facts.total);
        reading.hint(answer.facts.hint, answer.facts.counted);
        reading.check_depth()?;
        // Where totals cannot show that a part is whole, its pages have to.
        let sayable = self.window.is_sayable(window, self.zone);
        let sayable = sayable && window.is_half_open();
        let comparable = answer.facts.total.is_some() && (sayable || !reading.will_be_cut());
        if splits && !comparable {
            reading.be_careful();
        }
        if let Some(part) = self.part.take()
            && !self.settle(part, answer.facts.total)?
        {
            return Ok(());
        }
        self.absorb(span, answer)?;
        if let (Pace::Ahead(_), Some(requests)) = (self.pace, self.reading.as_ref().and_then(Reading::requests))
            && self.history.passes == 0
            && !self.window.cut
        {
            self.scan.query.require(requests)?;
        }
        Ok(())
    }

    fn ask_ahead(&mut self) {
        let ahead = match self.pace {
            Pace::OnDemand => 1,
            // Pages that have come do not take the place of those under way.
            Pace::Ahead(requests) => requests.max(1) + HELD,
        };
        while self.queue.len() < ahead {
            let idle = self.queue.is_empty();
            let Some(span) = self.reading.as_mut().and_then(|reading| reading.next_span(idle)) else { return };
            let asked = self.ask(span);
            self.queue.push_back(asked);
        }
    }

    /// Asks for rows of the window.
    fn ask(&self, span: Span) -> Asked<'a, D::Page> {
        let (client, scan, decoder) = (self.client, self.scan, self.decoder);
        let plan = Arc::clone(&self.plan);
        let request = PageRequest { plan, row: span.row, size: span.size, frozen: self.window.words.clone() };
        Box::pin(async move {
            let decode = |body: &Bytes| {
                let (page, facts) = decoder.decode(&request, body)?;
                let memory = scan.hold(page.bytes())?;
                Ok(((page, facts, memory), facts.rows))
            };
            let answer = client.fetch_logged(scan, &request, decode).await;
            (span, answer.map(|((page, facts, memory), call)| PageAnswer { page, facts, memory, call }))
        })
    }

    /// Takes a page that was asked for ahead; where it does not link, what was lost between it and those before is
    /// looked for.
    async fn arrive(&mut self, span: Span, answer: Result<PageAnswer<D::Page>>) -> Result<()> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if self.is_depth(&error) => {
                if let Some(reading) = &mut self.reading {
                    reading.met_depth();
                }
                self.queue = FuturesOrdered::new();
                return Ok(());
            }
            Err(error) if span.row > 0 && is_refusal(&error) => return Err(refused_behind(span.row, error)),
            Err(error) => return Err(error),
        };
        let (mut tried, mut rounds) = (0, 0);
        while !self.links(span, &answer.page) {
            rounds += 1;
            let tries = if rounds > REPAIRS { u64::MAX } else { tried };
            let Some(back) = self.reading.as_mut().and_then(|reading| reading.repair(span, tries)) else {
                if self.reading.as_ref().is_some_and(|reading| !reading.may_skip()) {
                    let reason =
                        "the pages do not hang together, so that mentions between them would be missing in the order";
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
                self.announce(back, found.facts)?;
                self.absorb(back, found)?;
                if let Some(reading) = &mut self.reading {
                    reading.fall_back(end);
                }
            }
            // What leads on may lead further on.
            tried = if self.reached() != before { 0 } else { tried + 1 };
        }
        self.announce(span, answer.facts)?;
        self.absorb(span, answer)
    }

    /// Whether an answer says that paging reaches no further: the rows before came by the same question.
    fn is_depth(&self, error: &Error) -> bool {
        is_refusal(error) && self.reading.as_ref().is_some_and(Reading::can_be_cut)
    }

    /// The rows that have come, and the rank behind the last of them.
    fn reached(&self) -> (u64, u64) {
        self.reading.as_ref().map_or((0, 0), |reading| (reading.proof.chain.received(), reading.row()))
    }

    fn links(&mut self, span: Span, page: &D::Page) -> bool {
        match (&mut self.reading, rows(page)) {
            (Some(reading), Some(rows)) => reading.links(span, rows),
            _ => true,
        }
    }

    fn announce(&mut self, span: Span, facts: PageFacts) -> Result<()> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        // Who says that there are rows and gives none is not believed.
        if facts.rows > 0 || facts.total.is_none_or(|total| total <= span.row) {
            reading.announce(facts.total);
        }
        reading.hint(facts.hint, facts.counted);
        reading.check_depth()
    }

    /// Takes the rows of a page that are new.
    fn absorb(&mut self, span: Span, answer: PageAnswer<D::Page>) -> Result<()> {
        let PageAnswer { page, facts, memory, call } = answer;
        self.check_times(span, &page)?;
        self.last_call = call.or(self.last_call);
        self.scan.pages.fetch_add(1, Ordering::Relaxed);
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let taken = reading.take(span, facts.rows, rows(&page))?;
        let Some(mut taken) = taken else {
            self.ready.push_back((page, memory));
            return Ok(());
        };
        if reading.too_late() {
            self.reading = None;
            self.queue = FuturesOrdered::new();
            let reason = "mentions came too late for the order, since others came or went while they were read";
            return self.incomplete(reason.to_owned());
        }
        let repeats = u64::from(taken.doubles > 0 && span.row > 0 && reading.overlaps());
        let doubles = taken.doubles.saturating_sub(repeats);
        self.scan.doubles.fetch_add(doubles, Ordering::Relaxed);
        self.scan.edited.fetch_add(taken.edited, Ordering::Relaxed);
        // Those of another pass were dropped as a whole.
        self.history.doubles += if self.history.passes == 0 && self.history.repaired == 0 { doubles } else { 0 };
        let more = reading.goes_on() && matches!(self.pace, Pace::Ahead(_));
        self.ids.resize(reading.proof.chain.bytes())?;
        // What was asked for along with the window's own instants.
        if let Some(times) = page.times().filter(|_| self.window.is_wider()) {
            let half_open = self.client.profile().window.is_half_open();
            taken.keep.iter_mut().zip(times).for_each(|(keep, at)| *keep &= self.window.holds(*at, half_open));
        }
        self.release(&page, &mut taken.keep);
        if let (true, Some(id), Some(true), true) =
            (more, page.ids().and_then(<[u64]>::last), taken.keep.last().copied(), taken.keep.len() > 1)
        {
            let version = page.versions().and_then(|versions| versions.last().copied()).unwrap_or(i64::MIN);
            let last = page.last_row();
            let memory = self.scan.hold(last.bytes())?;
            self.withheld = Some(Withheld { id: *id, version, page: last, memory });
            taken.keep.pop();
            taken.keep.push(false);
        }
        self.given += taken.keep.iter().filter(|keep| **keep).count() as u64;
        let page = if taken.keep.contains(&false) { page.retain(&taken.keep) } else { page };
        self.ready.push_back((page, memory));
        Ok(())
    }

    /// The part of a window that was cut has no mentions of other times. A service that takes any window for the same would
    /// give them again.
    fn check_times(&self, span: Span, page: &D::Page) -> Result<()> {
        let asked = self.window.wider.or(self.window.instants).filter(|_| self.window.cut);
        let (Some((from, to)), Some(times)) = (asked, page.times()) else {
            return Ok(());
        };
        if times.iter().all(|time| (from..=to).contains(time)) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Contradiction, "the answer has mentions of other times than were asked for")
            .advice("the service ignores the period or reads it otherwise: check the profile's [window]")
            .at(Place { aid: self.plan.aid.clone(), row: Some(span.row), ..Place::default() }))
    }

    /// Lets the row go that was withheld: as the page brings it again, or as it came where it is the newer one.
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

    /// Ends a pass: another window, another pass, or the end.
    fn end_of_pass(&mut self) -> Result<()> {
        if let Some(Withheld { page, memory, .. }) = self.withheld.take() {
            self.given += 1;
            self.ready.push_back((page, memory));
        }
        if self.cut() {
            return Ok(());
        }
        let Some(reading) = &mut self.reading else { return Ok(()) };
        reading.check_depth()?;
        let verdict = reading.end_of_pass();
        self.history.changed |= !reading.proof.is_constant();
        match verdict {
            Verdict::Complete => self.reading = None,
            Verdict::Again => {
                self.count_pass();
                self.begun = false;
            }
            Verdict::Incomplete(reason) => {
                self.reading = None;
                self.incomplete(reason)?;
            }
        }
        Ok(())
    }

    /// Cuts the window where its first part is to be read no further, or finds that it cannot be. Whether either is so.
    fn cut(&mut self) -> bool {
        let spec = &self.client.profile().window;
        let (Some((from, to)), Some(order)) = (self.window.instants, self.order) else { return false };
        let Some(mut reading) = self.reading.take_if(|reading| reading.wants_cut()) else { return false };
        let cut = reading.proof.chain.cut().and_then(|(edge, received)| {
            let (near, far) = match order {
                Direction::Asc => ((from, edge), (edge, to)),
                Direction::Desc => {
                    let edge = reading.proof.chain.next_edge(edge);
                    ((edge, to), (from, edge))
                }
            };
            let smaller = near.0 < near.1 && far.0 < far.1;
            let window = Window::part(spec, self.zone, far, HashSet::new(), false).filter(|_| smaller)?;
            Some((near, window, received))
        });
        let Some((near, window, received)) = cut else {
            // All that was reached lies in one instant: on as far as paging reaches.
            reading.set_cuttable(false);
            self.reading = Some(reading);
            return true;
        };
        reading.note_depth();
        self.stride = Some(reading.stride());
        self.scan.reached(reading.depth_found());
        self.scan.cuts.fetch_add(1, Ordering::Relaxed);
        self.history.changed |= !reading.proof.is_constant();
        let scattered = self.window.scattered || reading.proof.is_repeated();
        let known = reading.proof.chain.at_edge(scattered);
        let edge = if scattered { HashSet::new() } else { known.clone() };
        self.windows.push(Window { known, scattered, ..window });
        self.part = Some(Part {
            instants: near,
            received,
            announced: reading.proof.total(),
            steady: reading.proof.is_steady(),
            proof: match () {
                () if reading.proof.is_firm() => PartProof::Links,
                () if reading.proof.is_proven() => PartProof::Totals,
                () => PartProof::None,
            },
            // What lies at the edge belongs to the other side.
            known: reading.proof.chain.into_known().difference(&edge).copied().collect(),
        });
        true
    }

    /// Whether the near side of a cut is whole, by the total of the far one. Otherwise it is read again.
    fn settle(&mut self, part: Part, rest: Option<u64>) -> Result<bool> {
        // The rest of a window that is asked for with more around it has a total of its own.
        let rest = rest.filter(|_| !self.window.is_wider());
        let agree =
            part.announced.zip(rest).map(|(announced, rest)| part.received.checked_add(rest) == Some(announced));
        let whole = match part.proof {
            // Numbers that stood still and do not agree contradict even links.
            PartProof::Links => agree != Some(false) || !part.steady,
            PartProof::Totals => agree == Some(true),
            PartProof::None => false,
        };
        if whole {
            return Ok(true);
        }
        let spec = &self.client.profile().window;
        // A part with an end that belongs to both sides would bring the rows of that instant twice.
        let again = Window::part(spec, self.zone, part.instants, part.known, true).filter(|_| spec.is_half_open());
        let Some(again) = again else {
            self.incomplete(format!(
                "{} distinct mentions received, and the part cannot be read again",
                part.received
            ))?;
            return Ok(true);
        };
        self.count_pass();
        let known = self.reading.take().map(|reading| reading.proof.chain.into_known()).unwrap_or_default();
        let far = std::mem::take(&mut self.window);
        self.windows.push(Window { known, ..far });
        self.windows.push(again);
        Ok(false)
    }

    fn count_pass(&mut self) {
        self.history.passes += 1;
        self.scan.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Not all rows came: an error, or a note where the query asks for a report.
    fn incomplete(&mut self, reason: String) -> Result<()> {
        self.history.missing.push(reason.clone());
        self.scan.incomplete.fetch_add(1, Ordering::Relaxed);
        let error = Error::new(ErrorKind::Incomplete, reason).advice(
            "mentions come or go faster than they can be read, or equal keys come in no stable order; narrow the window, \
             or take what came: SET savedsearch.completeness = 'report'",
        );
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

    /// Writes down what reading came to.
    fn conclude(&mut self) {
        let conclusion = self.history.conclusion();
        if let Some(call) = self.last_call.take() {
            self.client.log().conclude(call, conclusion);
        }
    }
}

/// Whether the service refuses what was asked, and not who asks.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Rejected | ErrorKind::NotFound)
}

fn rows<P: Page>(page: &P) -> Option<Rows<'_>> {
    Some(Rows { ids: page.ids()?, times: page.times(), versions: page.versions() })
}
