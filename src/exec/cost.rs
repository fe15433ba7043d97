//! Cost of a scan, as far as it can be known before its first request.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateOutputMode};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::FetchExec;
use super::prune::possible;
use super::requests::has_unlisted_filters;
use super::scan_config::{Mode, ScanConfig, Slice};
#[cfg(feature = "store")]
use super::stored::{self, ExpectedUse};
use crate::client::Narrower;
use crate::connection::{Connection, LastList};
use crate::numbers::counted;
use crate::profile::TableKind;
use crate::pushdown::{Aids, SummaryRows};
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

/// Expected number of requests: what is certain if the last list still holds, and what is likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedRequests {
    /// Minimum number of requests.
    pub(crate) at_least: u64,
    /// Set if `at_least` is also the maximum.
    pub(crate) exact: bool,
    /// Maximum number, if it is known and larger.
    pub(crate) at_most: Option<u64>,
    /// Probable number, if it is known and larger.
    pub(crate) likely: Option<u64>,
    /// Number of saved searches of the last list, if the numbers rest on it.
    pub(crate) searches: Option<u64>,
    /// The time of that list, if an earlier process has requested it.
    pub(crate) listed_at: Option<DateTime<Utc>>,
    /// The time of the oldest known number of mentions, if an earlier process has read it.
    pub(crate) counted_at: Option<DateTime<Utc>>,
    /// The windows of known size, if the number rests on them.
    pub(crate) totals: KnownTotals,
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

impl ExpectedRequests {
    /// A number of requests that rests on nothing but the plan.
    pub(crate) fn certain(at_least: u64, exact: bool) -> Self {
        let (at_most, likely, searches) = (None, None, None);
        let totals = KnownTotals::default();
        Self { at_least, exact, at_most, likely, searches, listed_at: None, counted_at: None, totals }
    }

    fn of(at_least: u64, exact: bool, by_list: Option<&ByLastList>, likely: Likely) -> Self {
        let by_list = by_list.filter(|by_list| by_list.at_least >= at_least);
        let known = by_list.map_or(Self::certain(at_least, exact), |by_list| Self {
            searches: Some(by_list.searches),
            listed_at: by_list.earlier,
            ..Self::certain(by_list.at_least, by_list.exact)
        });
        let Likely { requests: likely, as_of: counted_at, totals } = likely;
        match likely {
            _ if known.exact => known,
            Some(likely) if likely <= known.at_least => known,
            _ => Self { likely, counted_at, totals, ..known },
        }
    }

    /// The same without what it rests on.
    #[cfg(feature = "mcp")]
    pub(crate) fn alone(self) -> Self {
        Self { likely: self.likely, ..Self::certain(self.at_least, self.exact) }
    }

    /// True if the number rests on more than the plan.
    pub(crate) fn rests_on_more(&self) -> bool {
        self.likely.is_some() || self.searches.is_some()
    }
}

/// As in `28`, `at least 3`, `at most 3`, `2 to 5`, `at least 13, likely about 40 (12 saved searches in the last list)`, or, if an
/// earlier process has read what the number rests on, `(12 saved searches in the list of 2026-07-01 12:00, totals of 2026-07-01 12:00)`.
/// If only some windows are known, `likely about 40 if the other windows are similar (…, totals of 8 of 12 windows)`.
impl fmt::Display for ExpectedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_least, exact, at_most, likely, searches, listed_at, counted_at, totals } = self;
        match at_most {
            Some(most) if *at_least <= 1 => write!(f, "at most {most}")?,
            Some(most) => write!(f, "{at_least} to {most}")?,
            None => write!(f, "{}{at_least}", if *exact { "" } else { "at least " })?,
        }
        if let Some(likely) = likely {
            let others = if totals.are_partial() { " if the other windows are similar" } else { "" };
            write!(f, ", likely about {likely}{others}")?;
        }
        let list = named_list(*listed_at);
        let list = searches.map(|searches| format!("{} in the {list}", counted(searches, "saved search")));
        let counted_at = counted_at.map(|at| at.format(MINUTE));
        let totals = match (totals.are_partial(), counted_at) {
            (true, Some(at)) => Some(format!("totals of {} of {} windows as of {at}", totals.known, totals.windows)),
            (true, None) => Some(format!("totals of {} of {} windows", totals.known, totals.windows)),
            (false, at) => at.map(|at| format!("totals of {at}")),
        };
        match (list, totals) {
            (Some(list), Some(totals)) => write!(f, " ({list}, {totals})"),
            (Some(one), None) | (None, Some(one)) => write!(f, " ({one})"),
            (None, None) => Ok(()),
        }
    }
}

/// Format of the times of what an estimate rests on.
const MINUTE: &str = "%Y-%m-%d %H:%M";

/// The last list, or the one of an earlier process by its time.
fn named_list(earlier: Option<DateTime<Utc>>) -> String {
    earlier.map_or_else(|| "last list".to_owned(), |at| format!("list of {}", at.format(MINUTE)))
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

/// A scan of a plan.
#[derive(Clone, Copy)]
struct Planned<'p> {
    scan: &'p FetchExec,
    /// Set if the plan is certain to start it.
    certain: bool,
    /// Set if it reads it completely once it has started it: a join may never start its other side.
    whole: bool,
    /// Set if a join selects its saved searches by all rows of the list.
    joins_list: bool,
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

fn scans_of(plan: &Arc<dyn ExecutionPlan>) -> Vec<Planned<'_>> {
    let mut scans = Vec::new();
    collect(plan, Within { certain: true, whole: true, joins_list: false }, &mut scans);
    scans
}

/// Use of a part of a plan by the operators above it; see [`Planned`].
#[derive(Clone, Copy)]
struct Within {
    certain: bool,
    whole: bool,
    joins_list: bool,
}

/// Collects the scans of a plan. Scans that the plan may end early, or never start, have no certain cost.
fn collect<'p>(plan: &'p Arc<dyn ExecutionPlan>, within: Within, scans: &mut Vec<Planned<'p>>) {
    let Within { certain, whole, joins_list } = within;
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        scans.push(Planned { scan, certain, whole, joins_list });
        return;
    }
    // A sort starts all scans below it, even if it has a limit; if it ends early, they are read on demand.
    let limited = plan.fetch().is_some() && !limits_as_its_scan(plan) && !reads_all_first(plan);
    let recursive = plan.downcast_ref::<RecursiveQueryExec>().is_some();
    let joins = plan.name().contains("Join");
    let children = plan.children();
    let beside_list = |at: usize| joins && children.iter().enumerate().any(|(of, child)| of != at && is_list(child));
    for (at, &child) in children.iter().enumerate() {
        // A join whose first side is empty never reads the other, unless it returns that one's rows.
        let starts = certain && !limited && (at == 0 || !(joins || recursive) || keeps_second_side(plan));
        let within = Within {
            certain: starts,
            whole: whole && !limited && (at == 0 || !recursive),
            joins_list: joins_list || beside_list(at),
        };
        collect(child, within, scans);
    }
}

/// True for all rows of the list of saved searches.
fn is_list(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match (plan.downcast_ref::<FetchExec>(), plan.children().as_slice()) {
        (Some(scan), _) => {
            let ScanConfig { spec, predicate, mode, late, .. } = scan.config.as_ref();
            spec.kind == TableKind::List && predicate.is_none() && mode.slice() == Slice::ALL && late.is_empty()
        }
        // Such as a projection. A filter or an aggregate may leave fewer saved searches.
        (None, [input]) => matches!(plan.cardinality_effect(), CardinalityEffect::Equal) && is_list(input),
        (None, _) => false,
    }
}

/// True for an operator that returns no row before it has read all rows of its scan, so that a limit makes it read no fewer.
fn reads_all_first(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // Partial aggregates may return rows early, and so may those of sorted input or with a limit.
    let aggregates = |aggregate: &AggregateExec| {
        aggregate.mode().output_mode() == AggregateOutputMode::Final
            && *aggregate.input_order_mode() == InputOrderMode::Linear
            && aggregate.limit_options().is_none()
    };
    plan.downcast_ref::<SortExec>().is_some()
        || plan.downcast_ref::<AggregateExec>().is_some_and(aggregates)
        || matches!(plan.children().as_slice(), [input] if reads_all_first(input))
}

/// True for a join that returns rows of its second side even if its first one is empty.
fn keeps_second_side(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let join = plan.downcast_ref::<HashJoinExec>();
    join.is_some_and(|join| !join.join_type().empty_build_side_produces_empty_result())
}

/// True for a limit of as many rows, those before its offset included, as the scan below it returns at most.
fn limits_as_its_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() else { return false };
    let mut input = limit.input();
    while let Some(projection) = input.downcast_ref::<ProjectionExec>() {
        input = projection.input();
    }
    let rows = limit.fetch().map(|fetch| fetch.saturating_add(limit.skip()));
    input.downcast_ref::<FetchExec>().is_some_and(|scan| rows.is_some() && scan.config.mode.slice().fetch == rows)
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
                Some(format!("{stored}, according to the {}", named_list(earlier)))
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

impl Cost {
    /// Estimates the cost of a scan that sends this request for each of its windows.
    pub(super) fn of(config: &ScanConfig, sent: &RequestPlan, windows: u64) -> Self {
        let ScanConfig { plan, late, spec, mode, .. } = config;
        let default = if config.default_window().is_some() { " (default window)" } else { "" };
        // A join or a subquery may leave no saved search, or no time range, to request.
        let certain = late.is_empty() && plan.unbounded().is_none();
        let searches = match &plan.aids {
            Aids::Given(aids) => Some(aids.len() as u64),
            Aids::NotNeeded | Aids::Listed => None,
        };
        let RunCost { at_least, exact, requests } = run_cost(config, searches, windows);
        let at_most = match (mode, searches, mode.slice().fetch, plan.template.pages) {
            (Mode::Unordered(_) | Mode::Ordered { .. }, Some(1), Some(fetch), Some(pages))
                if certain && plan.exact && windows == 1 =>
            {
                Some(most_pages(fetch as u64, pages.size))
            }
            _ => None,
        };
        let in_turn = mode.slice().fetch.is_some() && mode.order().is_none();
        Self {
            table: Arc::clone(&spec.name),
            sent: format!("{sent}{default}"),
            requests,
            at_least: if certain { at_least } else { 0 },
            exact: exact && certain,
            at_most,
            in_turn,
            lists: matches!(plan.aids, Aids::Listed | Aids::NotNeeded),
            by_last_list: None,
            likely: None,
            likely_as_of: None,
            totals: KnownTotals::default(),
        }
    }
}

#[cfg(feature = "store")]
impl Cost {
    /// Returns the cost of a scan that takes mentions from the store.
    pub(super) fn with_store(self, stored: &ExpectedUse) -> Self {
        let Self { requests, at_least, exact, .. } = self;
        let RunCost { at_least, exact, requests } = RunCost { at_least, exact, requests }.with_store(stored);
        Self { requests, at_least, exact, at_most: None, ..self }
    }

    /// Returns the cost of a scan of responses of which this many are stored.
    pub(super) fn without_stored(self, stored: u64) -> Self {
        let Self { requests, at_least, exact, .. } = self;
        let RunCost { at_least, exact, requests } = RunCost { at_least, exact, requests }.without_stored(stored);
        Self { requests, at_least, exact, ..self }
    }
}

#[cfg(feature = "store")]
impl RunCost {
    fn with_store(self, stored: &ExpectedUse) -> Self {
        let ExpectedUse { days, at_least, .. } = *stored;
        if days == 0 && at_least > 0 {
            return self;
        }
        let requests = if at_least == 0 { "0".to_owned() } else { format!("{at_least} or more") };
        Self { requests, at_least, exact: at_least == 0 }
    }

    fn without_stored(self, stored: u64) -> Self {
        if stored == 0 {
            return self;
        }
        let at_least = self.at_least.saturating_sub(stored);
        let requests = if self.exact { at_least.to_string() } else { format!("{at_least} or more") };
        Self { requests, at_least, exact: self.exact }
    }
}

/// Requests of a scan that runs.
struct RunCost {
    at_least: u64,
    exact: bool,
    requests: String,
}

/// Computes the requests for this number of saved searches; `None` if it is known only once the list has been requested.
fn run_cost(config: &ScanConfig, searches: Option<u64>, windows: u64) -> RunCost {
    let ScanConfig { plan, mode, late, .. } = config;
    let cost = |at_least, exact, requests: String| RunCost { at_least, exact, requests };
    if plan.aids == Aids::NotNeeded {
        return cost(0, true, "1".into());
    }
    let list = if searches.is_none() { "1 + " } else { "" };
    if !late.bounds.is_empty() {
        return cost(0, false, format!("{list}depends on the time range set by a subquery"));
    }
    let slice = mode.slice();
    let Some(size) = plan.template.pages.map(|pages| pages.size) else {
        return match searches {
            Some(searches) if slice.fetch.is_some() && searches * windows > 1 => {
                cost(1, false, format!("1 to {}", searches * windows))
            }
            Some(searches) => cost(searches * windows, true, (searches * windows).to_string()),
            None => cost(0, false, format!("1 + {windows} per saved search")),
        };
    };
    match mode {
        Mode::Summary(summary) => {
            // Without mentions beside the overview, a page of them shows what a filter means.
            let apart = !summary.with_mentions && !plan.template.filters.is_empty();
            let unlisted = has_unlisted_filters(config) || apart;
            of_summary(&summary.rows, plan.exact, unlisted, searches, windows, size)
        }
        Mode::Unordered(_) | Mode::Ordered { .. } => of_mentions(mode, plan.exact, searches, windows, size),
    }
}

fn of_summary(
    rows: &SummaryRows,
    exact: bool,
    unlisted: bool,
    searches: Option<u64>,
    windows: u64,
    size: u64,
) -> RunCost {
    let cost = |at_least, exact, requests: String| RunCost { at_least, exact, requests };
    if let SummaryRows::Firsts(orders) = rows
        && orders.len() > 1
    {
        let (one, all) = (windows, windows * orders.len() as u64);
        return match searches {
            Some(searches) => cost(searches * one, false, format!("{} to {}", searches * one, searches * all)),
            None => cost(0, false, format!("1 + {one} to {all} per saved search")),
        };
    }
    // If its counts do not add up, the mentions are read.
    let list = matches!(rows, SummaryRows::List(_));
    let certain = !list && !unlisted;
    let further = further_rows(size);
    let per_list = match list {
        true => format!(", or 1 per {further} mentions if the list omits some"),
        false => format!(", or 1 per {further} mentions if there are more"),
    };
    let more = match (exact, certain) {
        (true, true) => "",
        (true, false) => &per_list,
        (false, _) => " or more",
    };
    match searches {
        Some(searches) => cost(searches * windows, exact && certain, format!("{}{more}", searches * windows)),
        None => cost(0, false, format!("1 + {windows} per saved search{more}")),
    }
}

/// Rows of a page that were not on the page before: two pages share one.
fn further_rows(size: u64) -> u64 {
    size.saturating_sub(1).max(1)
}

/// Number of pages that this many rows take if further ones follow. Such a reader does not know the end of the window, and its pages
/// share two rows.
fn most_pages(rows: u64, size: u64) -> u64 {
    1 + rows.saturating_sub(size).div_ceil(size.saturating_sub(2).max(1))
}

fn of_mentions(mode: &Mode, exact: bool, searches: Option<u64>, windows: u64, size: u64) -> RunCost {
    let cost = |at_least, exact, requests: String| RunCost { at_least, exact, requests };
    let Slice { skip, fetch } = mode.slice();
    let ordered = mode.order().is_some();
    let list = if searches.is_none() { "1 + " } else { "" };
    let per_page = format!(", 1 per {} mentions", further_rows(size));
    match (searches, fetch) {
        (Some(0), _) | (_, Some(0)) => cost(0, true, "0".into()),
        (Some(1), Some(fetch)) if exact && windows == 1 => {
            let pages = most_pages(fetch as u64, size);
            cost(1, pages == 1, if pages == 1 { "1".to_owned() } else { format!("at most {pages}") })
        }
        // In a sort order, the first rows of each saved search are requested.
        (Some(searches), Some(_)) if ordered => cost(searches, false, format!("{searches} or more")),
        (None, Some(_)) if ordered => cost(0, false, format!("{list}1 or more per saved search")),
        // Otherwise they are read one after another until the limit is reached.
        (_, Some(_)) => cost(u64::from(searches.is_some()), false, format!("{list}1 or more")),
        (Some(searches), None) => {
            // In a sort order that is read on demand, the first window may be enough.
            let least = if mode.wanted().is_some() { searches } else { searches * windows };
            let less = if skip > 0 { format!(" after the first {skip}") } else { String::new() };
            cost(least, false, format!("{least} or more{per_page}{less}"))
        }
        (None, None) => cost(0, false, format!("{list}{windows} or more per saved search{per_page}")),
    }
}
