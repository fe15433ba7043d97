//! Cost of a scan, as far as it can be known before its first request.

mod expected;
mod planned;
mod run_cost;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

pub(crate) use self::expected::ExpectedRequests;
use self::planned::{Planned, scans_of};
use self::run_cost::{RunCost, run_cost};
use super::FetchExec;
use super::prune::possible;
use super::scan_config::{Mode, ScanConfig, Slice};
#[cfg(feature = "store")]
use super::stored;
use crate::client::Narrower;
use crate::connection::{Connection, LastList};
#[cfg(feature = "distributed")]
use crate::profile::TableKind;
use crate::pushdown::Aids;
use crate::request::{RequestKey, RequestPlan};

/// Estimated cost of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Name of the SQL table.
    pub table: Arc<str>,
    /// The request, without an aid.
    pub sent: String,
    /// Number of requests; a description if it depends on the service's data.
    pub requests: String,
    /// Minimum number of requests, not counting the list.
    pub at_least: u64,
    /// Set if `at_least` is also the maximum.
    pub exact: bool,
    /// Maximum number of requests, not counting the list, if a limit bounds it.
    pub at_most: Option<u64>,
    /// Set if a limit ends the scan after some of its saved searches.
    pub in_turn: bool,
    /// Set if the list is requested; all scans of a query share it.
    pub lists: bool,
    /// The same if the list still has the saved searches that it had last, for a scan that reads all of them.
    pub by_last_list: Option<ByLastList>,
    /// Number of requests, including the list, if the windows still have as many mentions as they had when they were last
    /// read, or as their stored days, and the others are similar. `None` if fewer than half of them are known.
    pub likely: Option<u64>,
    /// The time of the oldest number of mentions behind `likely`, if an earlier process has read it.
    pub likely_as_of: Option<DateTime<Utc>>,
    /// The windows of known size.
    pub totals: KnownTotals,
}

/// Windows whose number of mentions is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KnownTotals {
    /// Number of windows of known size.
    pub known: u64,
    /// Number of windows that a scan requests.
    pub windows: u64,
}

impl KnownTotals {
    /// True if the size of some windows is known, and that of others is not.
    pub(crate) fn are_partial(self) -> bool {
        (1..self.windows).contains(&self.known)
    }

    /// True if the known windows are enough to estimate the others.
    fn are_enough(self) -> bool {
        self.known.saturating_mul(2) >= self.windows
    }

    /// These and those of another scan.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { known: self.known + other.known, windows: self.windows + other.windows }
    }
}

/// Expected cost of a scan that reads all saved searches, according to the last list. The list may have changed since, so no
/// query is refused because of this cost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByLastList {
    /// Number of saved searches.
    pub searches: u64,
    /// Minimum number of requests, including the list.
    pub at_least: u64,
    /// Set if `at_least` is also the maximum.
    pub exact: bool,
    /// The time of the list if an earlier process has requested it.
    pub earlier: Option<DateTime<Utc>>,
}

/// Estimated costs of a plan: of each scan and in total.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanCost {
    /// The scans, in plan order.
    pub scans: Vec<Cost>,
    /// Minimum number of requests.
    pub at_least: u64,
    /// Set if `at_least` is also the maximum.
    pub exact: bool,
    /// The same if the list still has the saved searches that it had last, and some scan reads all of them.
    pub by_last_list: Option<ByLastList>,
    /// Number of requests that is likely. `None` if that of one of the scans is not known.
    pub likely: Option<u64>,
    /// The time of the oldest number of mentions behind `likely`, if an earlier process has read it.
    pub likely_as_of: Option<DateTime<Utc>>,
    /// The windows of known size of all scans.
    pub totals: KnownTotals,
}

/// Estimates the cost of a plan. Scans that send the same request share its response.
pub fn plan_cost(plan: &Arc<dyn ExecutionPlan>) -> PlanCost {
    let planned = scans_of(plan);
    let Total { at_least, exact } = total(&planned);
    let cost = |planned: &Planned<'_>| {
        let cost = planned.scan.estimated_cost(planned.joins_list);
        match planned.certain {
            true => cost,
            false => {
                let requests =
                    if cost.requests == "0" { cost.requests } else { format!("{} if it is read", cost.requests) };
                let cost = Cost { requests, at_least: 0, exact: false, at_most: None, lists: false, ..cost };
                Cost { by_last_list: None, likely: None, likely_as_of: None, totals: KnownTotals::default(), ..cost }
            }
        }
    };
    let scans: Vec<Cost> = planned.iter().map(cost).collect();
    let (by_last_list, likely) = match scans.as_slice() {
        [] => (None, Likely::default()),
        [scan] => (scan.by_last_list.clone(), scan.known_likely()),
        _ => (by_last_list_of(&planned), likely_of(&planned).unwrap_or_default()),
    };
    let Likely { requests: likely, as_of: likely_as_of, totals } = likely;
    PlanCost { scans, at_least, exact, by_last_list, likely, likely_as_of, totals }
}

impl PlanCost {
    /// The expected number of requests of the plan.
    pub(crate) fn expected(&self) -> ExpectedRequests {
        match self.scans.as_slice() {
            [scan] if self.at_least > 0 => scan.expected(self.at_least, self.exact),
            // Nothing is certain of a scan that may stop early, such as one below a limit.
            _ => {
                let likely = Likely { requests: self.likely, as_of: self.likely_as_of, totals: self.totals };
                ExpectedRequests::of(self.at_least, self.exact, self.by_last_list.as_ref(), likely)
            }
        }
    }
}

/// The number of requests in words, as in `at least 13, likely about 40 (12 saved searches in the last list)`.
impl fmt::Display for PlanCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expected().fmt(f)
    }
}

impl Cost {
    /// The likely number of requests of the scan, and what it rests on.
    fn known_likely(&self) -> Likely {
        Likely { requests: self.likely, as_of: self.likely_as_of, totals: self.totals }
    }

    /// The expected number of requests of the scan, including the list.
    pub(crate) fn expected(&self, at_least: u64, exact: bool) -> ExpectedRequests {
        let likely = self.known_likely();
        let at_most = self.at_most.map(|most| most + u64::from(self.lists)).filter(|most| !exact && *most > at_least);
        ExpectedRequests { at_most, ..ExpectedRequests::of(at_least, exact, self.by_last_list.as_ref(), likely) }
    }
}

/// Returns the minimum number of requests of a plan, without estimating each scan according to the last list.
pub(crate) fn least_requests(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    total(&scans_of(plan)).at_least
}

/// Returns the changes by which a plan needs fewer requests. A LIMIT is none of them if the plan has one, or aggregates.
pub(crate) fn narrower_of(plan: &Arc<dyn ExecutionPlan>) -> Narrower {
    let scans = scans_of(plan).into_iter().filter_map(|planned| planned.scan.narrower());
    let narrower = scans.reduce(Narrower::with).unwrap_or_default();
    Narrower { limit: narrower.limit && !is_limited(plan), ..narrower }
}

fn is_limited(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let limited = plan.fetch().is_some() || plan.downcast_ref::<AggregateExec>().is_some();
    limited || plan.children().into_iter().any(is_limited)
}

/// True if a plan is certain to read all rows of its scans of mentions, or of those of other tables, and their requests are all
/// known before it runs.
#[cfg(feature = "distributed")]
pub(crate) fn reads_all(plan: &Arc<dyn ExecutionPlan>, mentions: bool) -> bool {
    let mut scans = scans_of(plan).into_iter().filter(|planned| planned.scan.is_of_mentions() == mentions);
    scans.all(|Planned { scan, certain, .. }| certain && scan.config.late.is_empty() && !scan.is_on_demand())
}

/// The scans that a plan is certain to start, or that it joins with all rows of the list, which is rarely empty. `true`: a join
/// selects the scan's saved searches by all rows of the list.
#[cfg(feature = "shell")]
pub(super) fn likely_scans(plan: &Arc<dyn ExecutionPlan>) -> impl Iterator<Item = (&FetchExec, bool)> {
    let likely = |planned: &Planned<'_>| planned.certain || (planned.whole && planned.joins_list);
    scans_of(plan).into_iter().filter(likely).map(|planned| (planned.scan, planned.joins_list))
}

/// The processes whose knowledge an estimate uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// This process.
    #[cfg(feature = "shell")]
    Now,
    /// This process, or an earlier one.
    Before,
}

/// Requests of all scans of a plan.
struct Total {
    at_least: u64,
    exact: bool,
}

fn total(scans: &[Planned<'_>]) -> Total {
    let mut all = Total { at_least: 0, exact: true };
    let mut connections: Vec<&Arc<Connection>> = Vec::new();
    for connection in scans.iter().map(|planned| &planned.scan.config.connection) {
        if connections.iter().any(|known| Arc::ptr_eq(known, connection)) {
            continue;
        }
        connections.push(connection);
        let of_it = scans.iter().filter(|planned| Arc::ptr_eq(&planned.scan.config.connection, connection));
        let Total { at_least, exact } = total_of_one(&of_it.copied().collect::<Vec<_>>());
        all = Total { at_least: all.at_least.saturating_add(at_least), exact: all.exact && exact };
    }
    all
}

/// The total of the scans of one connection, which share the responses to equal requests.
fn total_of_one(scans: &[Planned<'_>]) -> Total {
    let lists = scans.iter().any(|planned| planned.certain && planned.scan.cost().lists);
    let certain = || {
        let certain = scans.iter().filter(|planned| planned.certain).map(|planned| planned.scan);
        certain.filter(|scan| scan.cost().at_least > 0)
    };
    let all = |scan: &FetchExec| scan.cost().at_least == scan.shared().len() as u64;
    let shared: BTreeSet<_> =
        certain().filter(|scan| all(scan)).flat_map(|scan| scan.shared().iter().cloned()).collect();
    // Scans that share only some of their requests, or read mentions, each add their own.
    let others = certain().filter(|scan| !all(scan) && scan.shared().is_disjoint(&shared));
    let at_least = u64::from(lists) + shared.len() as u64;
    let at_least = others.map(|scan| scan.cost().at_least).fold(at_least, u64::saturating_add);
    // A scan that may not run adds nothing if other scans send all of its requests.
    let adds_nothing = |scan: &FetchExec| {
        let (asked, needs_list) = (scan.shared(), scan.cost().lists);
        let listed = asked.is_empty() && needs_list;
        (!needs_list || lists) && (listed || !asked.is_empty()) && asked.is_subset(&shared)
    };
    let exact = scans.iter().all(|Planned { scan, certain, .. }| scan.cost().exact && (*certain || adds_nothing(scan)));
    Total { at_least, exact }
}

/// Expected requests of scans of one query. They share the list, and the requests for counts.
#[derive(Default)]
struct Together {
    /// Connections whose list is requested, by their addresses in memory.
    lists: BTreeSet<usize>,
    shared: BTreeSet<(usize, RequestKey)>,
    /// Of scans that do not share all of their requests: those that they may share, and their number.
    others: Vec<(BTreeSet<(usize, RequestKey)>, u64)>,
}

impl Together {
    /// Adds a scan that sends this many requests beside the list.
    fn add(&mut self, scan: &FetchExec, requests: u64) {
        let connection = connection_of(scan);
        if scan.cost().lists {
            self.lists.insert(connection);
        }
        let shared: BTreeSet<_> = scan.expected_shared().into_iter().map(|key| (connection, key)).collect();
        if shared.len() as u64 == requests {
            self.shared.extend(shared);
        } else {
            self.others.push((shared, requests));
        }
    }

    /// Number of requests. If `least`, those of a scan that shares some of them do not count.
    fn requests(&self, least: bool) -> u64 {
        let counted = self.others.iter().filter(|(shared, _)| !least || shared.is_disjoint(&self.shared));
        let others = counted.map(|(_, requests)| *requests);
        others.fold((self.lists.len() + self.shared.len()) as u64, u64::saturating_add)
    }
}

/// Identifies the connection of a scan among those of a plan.
fn connection_of(scan: &FetchExec) -> usize {
    Arc::as_ptr(&scan.config.connection).addr()
}

/// The minimum of several scans according to the last list; `None` if none of them reads it, or it is unknown.
fn by_last_list_of(scans: &[Planned<'_>]) -> Option<ByLastList> {
    let (mut all, mut searches, mut exact) = (Together::default(), None::<u64>, true);
    let mut earlier = None;
    for Planned { scan, certain, whole, joins_list } in scans {
        if !certain {
            exact = false;
            // It is likely to read all of them.
            let list = scan.estimated_list().filter(|_| *joins_list && *whole);
            earlier = earlier.into_iter().chain(list.as_ref().and_then(|list| list.earlier)).min();
            searches = searches.max(list.map(|list| list.aids.len() as u64));
            continue;
        }
        let (cost, by_list) = (scan.cost(), scan.by_last_list());
        let (at_least, is_exact) = match &by_list {
            Some(by_list) => (by_list.at_least.saturating_sub(u64::from(cost.lists)), by_list.exact),
            None => (cost.at_least, cost.exact),
        };
        earlier = earlier.into_iter().chain(by_list.as_ref().and_then(|by_list| by_list.earlier)).min();
        searches = searches.max(by_list.map(|by_list| by_list.searches));
        exact &= is_exact;
        all.add(scan, at_least);
    }
    let (at_least, most) = (all.requests(true), all.requests(false));
    Some(ByLastList { searches: searches?, at_least, exact: exact && at_least == most, earlier })
}

/// A likely number of requests, and what it rests on.
#[derive(Debug, Clone, Copy, Default)]
struct Likely {
    /// `None` if too few numbers of mentions are known.
    requests: Option<u64>,
    /// The time of the oldest number of mentions behind it, if an earlier process has read it.
    as_of: Option<DateTime<Utc>>,
    totals: KnownTotals,
}

impl Likely {
    /// A number that rests on no number of mentions.
    fn requests(requests: u64) -> Self {
        Self { requests: Some(requests), ..Self::default() }
    }
}

/// The earlier one of two instants, as far as they are known.
fn earlier(one: Option<DateTime<Utc>>, other: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    one.into_iter().chain(other).min()
}

/// The likely number of requests of several scans; `None` if nothing is known of one of them.
fn likely_of(scans: &[Planned<'_>]) -> Option<Likely> {
    let (mut all, mut as_of, mut totals) = (Together::default(), None, KnownTotals::default());
    let mut are_known = true;
    for Planned { scan, whole, joins_list, .. } in scans {
        // How much a limit leaves is not known.
        let likely = if *whole { scan.likely_beside_list(*joins_list)? } else { return None };
        match likely.requests {
            Some(requests) => all.add(scan, requests),
            None => are_known = false,
        }
        as_of = earlier(as_of, likely.as_of);
        totals = totals.and(likely.totals);
    }
    Some(Likely { requests: are_known.then(|| all.requests(false)), as_of, totals })
}

impl FetchExec {
    /// Estimated cost of the scan.
    pub(crate) fn cost(&self) -> &Cost {
        self.requests.cost(&self.config)
    }

    /// Estimated cost of the scan, according to the last list and what is known of its windows. `joins_list`: a join selects its
    /// saved searches by all rows of the list.
    fn estimated_cost(&self, joins_list: bool) -> Cost {
        let Likely { requests: likely, as_of: likely_as_of, totals } = self.likely(joins_list).unwrap_or_default();
        Cost { by_last_list: self.by_last_list(), likely, likely_as_of, totals, ..self.cost().clone() }
    }

    /// Expected number of requests of the scan, if it rests on more than the plan.
    pub(super) fn expected_requests(&self) -> Option<ExpectedRequests> {
        let cost = self.estimated_cost(false);
        let expected = cost.expected(cost.at_least + u64::from(cost.lists), cost.exact);
        expected.rests_on_more().then_some(expected)
    }

    /// The saved searches of the last list that the scan reads, if it reads all that are listed. For estimates only.
    fn last_listed(&self) -> Option<LastList> {
        let ScanConfig { plan, late, .. } = self.config.as_ref();
        // A join selects saved searches at run time.
        if plan.aids != Aids::Listed || !late.is_empty() {
            return None;
        }
        self.estimated_list()
    }

    /// The saved searches of the last list, of this process or an earlier one, that conditions on the aid alone do not exclude.
    /// For estimates only.
    fn estimated_list(&self) -> Option<LastList> {
        let list = self.config.connection.estimated_fan_out()?;
        Some(LastList { aids: self.possible_of(list.aids)?, ..list })
    }

    /// The saved searches of the last list of this process that conditions on the aid alone do not exclude.
    #[cfg(feature = "distributed")]
    pub(super) fn listed_before(&self) -> Option<Vec<String>> {
        self.possible_of(self.config.connection.last_fan_out()?)
    }

    /// The saved searches that conditions on the aid alone do not exclude.
    fn possible_of(&self, aids: Vec<String>) -> Option<Vec<String>> {
        match self.config.aid_column() {
            Some(column) => possible(aids, &self.config.predicate, column).ok(),
            None => Some(aids),
        }
    }

    /// Expected use of the store, for the saved searches of the last list if none are given.
    #[cfg(feature = "store")]
    pub(super) fn expected_store(&self) -> Option<String> {
        match self.requests.stored(&self.config) {
            Some(stored) => Some(stored.to_string()),
            None => {
                let LastList { aids, earlier } = self.last_listed()?;
                let stored = self.requests.stored_of(&self.config, &aids)?;
                Some(format!("{stored}, according to the {}", expected::named_list(earlier)))
            }
        }
    }

    /// Stored files with and without an index of the words that a condition looks for, for the saved searches of the last list if
    /// none are given.
    #[cfg(feature = "store")]
    pub(super) fn expected_indexes(&self) -> Option<String> {
        let indexes = self.requests.indexes_of(&self.config, &self.aids_to_read(Known::Before, false)?)?;
        #[cfg(feature = "distributed")]
        if self.by_workers {
            return Some("no index: workers read all files".to_owned());
        }
        Some(indexes)
    }

    /// True for a scan of mentions.
    #[cfg(feature = "distributed")]
    pub(crate) fn is_of_mentions(&self) -> bool {
        self.config.spec.kind == TableKind::Mentions
    }

    /// True if the scan has a limit, or reads pages only as they are needed.
    #[cfg(feature = "distributed")]
    pub(crate) fn is_on_demand(&self) -> bool {
        self.config.mode.slice() != Slice::ALL || self.config.mode.wanted().is_some()
    }

    fn by_last_list(&self) -> Option<ByLastList> {
        let LastList { aids, earlier } = self.last_listed()?;
        let searches = aids.len() as u64;
        let windows = self.requests.windows().count() as u64;
        let cost = run_cost(&self.config, Some(searches), windows);
        #[cfg(feature = "store")]
        let cost = match self.requests.stored_of(&self.config, &aids) {
            Some(stored) => cost.with_store(&stored),
            None => {
                let shared = self.requests.shared_of(&self.config, &aids);
                cost.without_stored(self.requests.stored_answers(&self.config, &shared))
            }
        };
        let RunCost { at_least, exact, .. } = cost;
        Some(ByLastList { searches, at_least: at_least + u64::from(self.cost().lists), exact, earlier })
    }

    /// See [`Cost::likely`], [`Cost::likely_as_of`] and [`Cost::totals`].
    fn likely(&self, joins_list: bool) -> Option<Likely> {
        let pages = self.likely_pages(joins_list)?;
        Some(Likely { requests: pages.requests.map(|requests| requests + u64::from(self.cost().lists)), ..pages })
    }

    /// The likely number of requests beside the list.
    fn likely_beside_list(&self, joins_list: bool) -> Option<Likely> {
        let cost = self.cost();
        if cost.exact {
            return Some(Likely::requests(cost.at_least));
        }
        let by_list = self.by_last_list().filter(|by_list| by_list.exact);
        let by_list = by_list.map(|by_list| by_list.at_least.saturating_sub(u64::from(cost.lists)));
        let counted = by_list.or_else(|| self.likely_counts(joins_list)).map(Likely::requests);
        counted.or_else(|| self.likely_pages(joins_list))
    }

    /// The likely number of requests for counts and overviews of the saved searches that a join selects by all rows of the list.
    fn likely_counts(&self, joins_list: bool) -> Option<u64> {
        if !joins_list {
            return None;
        }
        let searches = self.estimated_list()?.aids.len() as u64;
        let cost = run_cost(&self.config, Some(searches), self.requests.windows().count() as u64);
        cost.exact.then_some(cost.at_least)
    }

    /// The likely number of requests for mentions. Windows of unknown size are taken to be like the others that are read, if those
    /// are not fewer; a few windows, such as the largest one, show nothing of many. `None` if no size is known.
    fn likely_pages(&self, joins_list: bool) -> Option<Likely> {
        let aids = self.likely_aids(joins_list)?;
        let windows = aids.iter().flat_map(|aid| self.requests.windows().map(move |words| (aid, words)));
        let (mut totals, mut stored, mut requests) = (KnownTotals::default(), false, 0_u64);
        let mut as_of = None;
        for (aid, words) in windows {
            let (number, counted_at) = self.likely_for(aid, words, Known::Before);
            match number {
                None => totals.windows += 1,
                Some(0) => stored = true,
                Some(number) => {
                    totals = totals.and(KnownTotals { known: 1, windows: 1 });
                    requests += number;
                }
            }
            as_of = earlier(as_of, counted_at);
        }
        let requests = match totals {
            KnownTotals { known: 0, windows: 0 } if stored => Some(0),
            KnownTotals { known: 0, .. } => return None,
            KnownTotals { known, windows } => totals.are_enough().then(|| (requests * windows).div_ceil(known)),
        };
        Some(Likely { requests, as_of, totals })
    }

    /// The likely number of requests for the mentions of a window, `None` if its size is not known; and the time at which an earlier
    /// process knew the size.
    pub(super) fn likely_for(&self, aid: &str, words: &str, known: Known) -> (Option<u64>, Option<DateTime<Utc>>) {
        let Some(page) = self.requests.page() else { return (None, None) };
        // Two pages share a row.
        let step = self.config.connection.client().likely_page(page).saturating_sub(1).max(1);
        let plan = self.requests.in_window(aid, words);
        let known = self.known_total(&plan, known);
        let (total, counted_at) = (known.map(|(total, _)| total), known.and_then(|(_, at)| at));
        #[cfg(feature = "store")]
        if stored::is_used(&self.config) {
            let limit = if total.is_none() { self.config.connection.client().estimated_limit(&plan) } else { None };
            let size = match (total, limit) {
                (Some(total), _) => stored::Size::Known(total),
                (None, Some((limit, _))) => stored::Size::AtMost(limit),
                (None, None) => stored::Size::Unknown,
            };
            if let Some(likely) = stored::likely(&self.config, &self.requests.divisions, &plan, step, size) {
                return (Some(likely), counted_at.or_else(|| limit.and_then(|(_, at)| at)));
            }
        }
        (total.map(|total| total.div_ceil(step).max(1)), counted_at)
    }

    /// True if an estimate of the requests for the mentions of a window lacks the window's total.
    #[cfg(feature = "shell")]
    pub(super) fn lacks_total(&self, aid: &str, words: &str) -> bool {
        let plan = self.requests.in_window(aid, words);
        if self.known_total(&plan, Known::Now).is_some() {
            return false;
        }
        #[cfg(feature = "store")]
        if stored::is_used(&self.config) {
            return stored::may_read(&self.config, &self.requests.divisions, &plan);
        }
        true
    }

    /// The number of mentions of a window, and the time at which an earlier process knew it.
    fn known_total(&self, plan: &RequestPlan, known: Known) -> Option<(u64, Option<DateTime<Utc>>)> {
        let client = self.config.connection.client();
        match known {
            #[cfg(feature = "shell")]
            Known::Now => client.own_total(plan.clone()).map(|total| (total, None)),
            Known::Before => client.estimated_total(plan.clone()),
        }
    }

    /// The saved searches whose pages are all read, as far as is known.
    fn likely_aids(&self, joins_list: bool) -> Option<Vec<String>> {
        self.takes_all_pages(joins_list).then(|| self.aids_to_read(Known::Before, joins_list)).flatten()
    }

    /// True for a scan of mentions that takes a request for each page of its windows.
    #[cfg(feature = "shell")]
    pub(super) fn takes_each_page(&self, joins_list: bool) -> bool {
        self.takes_all_pages(joins_list) && self.requests.page().is_some()
    }

    /// True for a scan whose number of requests depends on the number of saved searches in the list.
    #[cfg(feature = "shell")]
    pub(super) fn depends_on_list(&self, joins_list: bool) -> bool {
        let (plan, cost) = (&self.config.plan, self.cost());
        plan.aids == Aids::Listed && self.omits_none(joins_list) && cost.lists && !cost.exact && !cost.in_turn
    }

    /// True for a scan that reads all pages of its windows, as far as a store does not have them.
    fn takes_all_pages(&self, joins_list: bool) -> bool {
        let ScanConfig { plan, mode, .. } = self.config.as_ref();
        matches!(mode, Mode::Unordered(_) | Mode::Ordered { .. })
            && mode.slice() == Slice::ALL
            && mode.wanted().is_none()
            && plan.aids != Aids::NotNeeded
            && self.omits_none(joins_list)
    }

    /// True if the scan omits no saved search at run time, as with all rows of the list on the other side of a join.
    fn omits_none(&self, joins_list: bool) -> bool {
        let ScanConfig { plan, late, .. } = self.config.as_ref();
        late.is_empty() || (joins_list && plan.aids == Aids::Listed && late.bounds.is_empty() && !late.choose)
    }

    /// The saved searches that the scan reads; `None` if the list is needed to know them. `joins_list`: a join selects them by all
    /// rows of the list.
    pub(super) fn aids_to_read(&self, known: Known, joins_list: bool) -> Option<Vec<String>> {
        match &self.config.plan.aids {
            Aids::Given(aids) => Some(aids.clone()),
            Aids::NotNeeded => None,
            Aids::Listed => {
                let list = self.omits_none(joins_list).then(|| self.estimated_list()).flatten()?;
                (known == Known::Before || list.earlier.is_none()).then_some(list.aids)
            }
        }
    }

    /// Requests whose responses the scan shares with other scans of the query.
    fn shared(&self) -> &BTreeSet<RequestKey> {
        self.requests.shared(&self.config)
    }

    /// The same, for the saved searches of the last list if the scan reads all that are listed.
    fn expected_shared(&self) -> BTreeSet<RequestKey> {
        let Some(LastList { aids, .. }) = self.last_listed() else { return self.shared().clone() };
        #[cfg(feature = "store")]
        if let Some(stored) = self.requests.stored_of(&self.config, &aids) {
            return stored.timelines;
        }
        self.requests.shared_of(&self.config, &aids)
    }
}
