//! Cost of a scan, as far as it can be known before its first request.

use std::collections::BTreeSet;
#[cfg(feature = "wording")]
use std::fmt;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::FetchExec;
use super::prune::possible;
use super::requests::has_unlisted_filters;
use super::scan_config::{Mode, ScanConfig, Slice};
#[cfg(feature = "store")]
use super::stored::StoreUse;
use crate::connection::Connection;
#[cfg(feature = "wording")]
use crate::numbers::counted;
#[cfg(feature = "distributed")]
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
    /// Set if the list is requested; all scans of a query share it.
    pub lists: bool,
    /// The same if the list still has the saved searches that it had last, for a scan that reads all of them.
    pub by_last_list: Option<ByLastList>,
    /// Number of requests, including the list, if the windows still have as many mentions as they had when they were last
    /// read. `None` if none of them was read, and for a cost that is exact anyway.
    pub likely: Option<u64>,
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
}

/// Estimates the cost of a plan. Scans that send the same request share its response.
pub fn plan_cost(plan: &Arc<dyn ExecutionPlan>) -> PlanCost {
    let scans = scans_of(plan);
    let Total { at_least, exact } = total(&scans);
    let cost = |Planned { scan, certain }| {
        let cost = Cost { by_last_list: scan.by_last_list(), likely: scan.likely(), ..scan.cost().clone() };
        if certain { cost } else { Cost { at_least: 0, exact: false, lists: false, likely: None, ..cost } }
    };
    PlanCost { scans: scans.into_iter().map(cost).collect(), at_least, exact }
}

/// Expected number of requests: what is certain if the last list still holds, and what is likely.
#[cfg(feature = "wording")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedRequests {
    /// Minimum number of requests.
    pub(crate) at_least: u64,
    /// Set if `at_least` is also the maximum.
    pub(crate) exact: bool,
    /// Probable number, if it is known and larger.
    pub(crate) likely: Option<u64>,
    /// Number of saved searches of the last list, if the numbers rest on it.
    pub(crate) searches: Option<u64>,
}

#[cfg(feature = "wording")]
impl PlanCost {
    /// The expected number of requests of the plan.
    pub(crate) fn expected(&self) -> ExpectedRequests {
        match self.scans.as_slice() {
            [scan] if self.at_least > 0 => scan.expected(self.at_least, self.exact),
            // Scans of one query share requests, so that what is expected of each cannot be added. Nothing is certain of a
            // scan that may stop early, such as one below a limit.
            _ => ExpectedRequests { at_least: self.at_least, exact: self.exact, likely: None, searches: None },
        }
    }
}

#[cfg(feature = "wording")]
impl Cost {
    /// The expected number of requests of the scan, including the list.
    pub(crate) fn expected(&self, at_least: u64, exact: bool) -> ExpectedRequests {
        let known = ExpectedRequests { at_least, exact, likely: None, searches: None };
        let by_list = self.by_last_list.as_ref().filter(|by_list| by_list.at_least >= at_least);
        let known = by_list.map_or(known, |by_list| ExpectedRequests {
            at_least: by_list.at_least,
            exact: by_list.exact,
            likely: None,
            searches: Some(by_list.searches),
        });
        let likely = self.likely.filter(|likely| !known.exact && *likely > known.at_least);
        ExpectedRequests { likely, ..known }
    }
}

/// As in `28`, `at least 3` or `at least 13, likely about 40 (12 saved searches in the last list)`.
#[cfg(feature = "wording")]
impl fmt::Display for ExpectedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_least, exact, likely, searches } = self;
        write!(f, "{}{at_least}", if *exact { "" } else { "at least " })?;
        if let Some(likely) = likely {
            write!(f, ", likely about {likely}")?;
        }
        match searches {
            Some(searches) => write!(f, " ({} in the last list)", counted(*searches, "saved search")),
            None => Ok(()),
        }
    }
}

/// Returns the minimum number of requests of a plan, without estimating each scan according to the last list.
pub(crate) fn least_requests(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    total(&scans_of(plan)).at_least
}

/// True if a plan is certain to read all rows of its scans of mentions, or of those of other tables, and their requests are all
/// known before it runs.
#[cfg(feature = "distributed")]
pub(crate) fn reads_all(plan: &Arc<dyn ExecutionPlan>, mentions: bool) -> bool {
    let mut scans = scans_of(plan).into_iter().filter(|planned| planned.scan.is_of_mentions() == mentions);
    scans.all(|Planned { scan, certain }| certain && scan.config.late.is_empty() && !scan.is_on_demand())
}

/// The scans of mentions that a plan is certain to start, and that take a request for each page.
#[cfg(feature = "shell")]
pub(super) fn scans_that_read_all(plan: &Arc<dyn ExecutionPlan>) -> impl Iterator<Item = &FetchExec> {
    let scans = scans_of(plan).into_iter().filter(|planned| planned.certain).map(|planned| planned.scan);
    scans.filter(|scan| scan.takes_all_pages() && scan.requests.page().is_some())
}

/// A scan of a plan.
#[derive(Clone, Copy)]
struct Planned<'p> {
    scan: &'p FetchExec,
    /// Set if the plan is certain to start it.
    certain: bool,
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
    let exact = scans.iter().all(|Planned { scan, certain }| scan.cost().exact && (*certain || adds_nothing(scan)));
    Total { at_least, exact }
}

fn scans_of(plan: &Arc<dyn ExecutionPlan>) -> Vec<Planned<'_>> {
    let mut scans = Vec::new();
    collect(plan, true, &mut scans);
    scans
}

/// Collects the scans of a plan. Scans that the plan may end early, or never start, have no certain cost.
fn collect<'p>(plan: &'p Arc<dyn ExecutionPlan>, certain: bool, scans: &mut Vec<Planned<'p>>) {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        scans.push(Planned { scan, certain });
        return;
    }
    // A sort starts all scans below it, even if it has a limit; if it ends early, they are read on demand.
    let limited = plan.fetch().is_some() && plan.downcast_ref::<SortExec>().is_none() && !limits_as_its_scan(plan);
    let recursive = plan.downcast_ref::<RecursiveQueryExec>().is_some();
    let joins = plan.name().contains("Join");
    for (at, child) in plan.children().into_iter().enumerate() {
        // A join whose first side is empty never reads the other.
        collect(child, certain && !limited && (at == 0 || !(joins || recursive)), scans);
    }
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

    /// The saved searches of the last list that the scan reads, if it reads all that are listed.
    pub(super) fn last_listed(&self) -> Option<Vec<String>> {
        let ScanConfig { plan, late, .. } = self.config.as_ref();
        // A join selects saved searches at run time.
        if plan.aids != Aids::Listed || !late.is_empty() {
            return None;
        }
        self.listed_before()
    }

    /// The saved searches of the last list that conditions on the aid alone do not exclude.
    pub(super) fn listed_before(&self) -> Option<Vec<String>> {
        let ScanConfig { connection, predicate, .. } = self.config.as_ref();
        let aids = connection.last_fan_out()?;
        match self.config.aid_column() {
            Some(column) => possible(aids, predicate, column).ok(),
            None => Some(aids),
        }
    }

    /// Expected use of the store, for the saved searches of the last list if none are given.
    #[cfg(feature = "store")]
    pub(super) fn expected_store(&self) -> Option<String> {
        match self.requests.stored(&self.config) {
            Some(stored) => Some(stored.to_string()),
            None => {
                let stored = self.requests.stored_of(&self.config, &self.last_listed()?)?;
                Some(format!("{stored}, according to the last list"))
            }
        }
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
        let aids = self.last_listed()?;
        let searches = aids.len() as u64;
        let windows = self.requests.windows().count() as u64;
        let cost = run_cost(&self.config, Some(searches), windows);
        #[cfg(feature = "store")]
        let cost = match self.requests.stored_of(&self.config, &aids) {
            Some(stored) => cost.with_store(&stored),
            None => {
                let shared = self.requests.shared_of(&self.config, &aids);
                cost.without_kept(self.requests.kept_of(&self.config, &shared))
            }
        };
        let RunCost { at_least, exact, .. } = cost;
        Some(ByLastList { searches, at_least: at_least + u64::from(self.cost().lists), exact })
    }

    /// See [`Cost::likely`]. Windows of unknown size are taken to be like the others.
    fn likely(&self) -> Option<u64> {
        let connection = &self.config.connection;
        let aids = if self.takes_all_pages() { self.aids_to_read()? } else { return None };
        // Two pages share a row.
        let step = self.requests.page()?.saturating_sub(1).max(1);
        let windows = aids.iter().flat_map(|aid| self.requests.windows().map(move |words| (aid, words)));
        let (mut all, mut known, mut pages) = (0_u64, 0_u64, 0_u64);
        for (aid, words) in windows {
            all += 1;
            if let Some(total) = connection.client().expected_total(self.requests.in_window(aid, words)) {
                known += 1;
                pages += total.div_ceil(step).max(1);
            }
        }
        (known > 0).then(|| (pages * all).div_ceil(known) + u64::from(self.cost().lists))
    }

    /// True for a scan that reads all pages of its windows, and none of it from a store.
    fn takes_all_pages(&self) -> bool {
        let config = self.config.as_ref();
        let ScanConfig { plan, mode, late, .. } = config;
        #[cfg(feature = "store")]
        if config.from_store.is_some() {
            // It depends on which of the days are stored.
            return false;
        }
        matches!(mode, Mode::Unordered(_) | Mode::Ordered { .. })
            && mode.slice() == Slice::ALL
            && mode.wanted().is_none()
            && late.is_empty()
            && plan.aids != Aids::NotNeeded
    }

    /// The saved searches that the scan reads; `None` if the list is needed to know them.
    pub(super) fn aids_to_read(&self) -> Option<Vec<String>> {
        match &self.config.plan.aids {
            Aids::Given(aids) => Some(aids.clone()),
            Aids::NotNeeded | Aids::Listed => self.last_listed(),
        }
    }

    /// Requests whose responses the scan shares with other scans of the query.
    fn shared(&self) -> &BTreeSet<RequestKey> {
        self.requests.shared(&self.config)
    }
}

impl Cost {
    /// Estimates the cost of a scan that sends this request for each of its windows.
    pub(super) fn of(config: &ScanConfig, sent: &RequestPlan, windows: u64) -> Self {
        let ScanConfig { plan, late, spec, .. } = config;
        let default = if config.default_window().is_some() { " (default window)" } else { "" };
        // A join or a subquery may leave no saved search, or no time range, to request.
        let certain = late.is_empty() && plan.unbounded().is_none();
        let searches = match &plan.aids {
            Aids::Given(aids) => Some(aids.len() as u64),
            Aids::NotNeeded | Aids::Listed => None,
        };
        let RunCost { at_least, exact, requests } = run_cost(config, searches, windows);
        Self {
            table: Arc::clone(&spec.name),
            sent: format!("{sent}{default}"),
            requests,
            at_least: if certain { at_least } else { 0 },
            exact: exact && certain,
            lists: matches!(plan.aids, Aids::Listed | Aids::NotNeeded),
            by_last_list: None,
            likely: None,
        }
    }
}

#[cfg(feature = "store")]
impl Cost {
    /// Returns the cost of a scan that takes mentions from the store.
    pub(super) fn with_store(self, stored: &StoreUse) -> Self {
        let Self { requests, at_least, exact, .. } = self;
        let RunCost { at_least, exact, requests } = RunCost { at_least, exact, requests }.with_store(stored);
        Self { requests, at_least, exact, ..self }
    }

    /// Returns the cost of a scan of responses of which this many are kept.
    pub(super) fn without_kept(self, kept: u64) -> Self {
        let Self { requests, at_least, exact, .. } = self;
        let RunCost { at_least, exact, requests } = RunCost { at_least, exact, requests }.without_kept(kept);
        Self { requests, at_least, exact, ..self }
    }
}

#[cfg(feature = "store")]
impl RunCost {
    fn with_store(self, stored: &StoreUse) -> Self {
        let StoreUse { days, at_least, .. } = *stored;
        if days == 0 && at_least > 0 {
            return self;
        }
        let requests = if at_least == 0 { "0".to_owned() } else { format!("{at_least} or more") };
        Self { requests, at_least, exact: at_least == 0 }
    }

    fn without_kept(self, kept: u64) -> Self {
        if kept == 0 {
            return self;
        }
        let at_least = self.at_least.saturating_sub(kept);
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
            of_summary(&summary.rows, plan.exact, has_unlisted_filters(config), searches, windows, size)
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
    let per_list = match list {
        true => format!(", or 1 per {size} mentions if the list omits some"),
        false => format!(", or 1 per {size} mentions if there are more"),
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

fn of_mentions(mode: &Mode, exact: bool, searches: Option<u64>, windows: u64, size: u64) -> RunCost {
    let cost = |at_least, exact, requests: String| RunCost { at_least, exact, requests };
    let Slice { skip, fetch } = mode.slice();
    let ordered = mode.order().is_some();
    let list = if searches.is_none() { "1 + " } else { "" };
    let per_page = format!(", 1 per {size} mentions");
    match (searches, fetch) {
        (Some(0), _) | (_, Some(0)) => cost(0, true, "0".into()),
        (Some(1), Some(fetch)) if exact && windows == 1 => {
            let pages = (fetch as u64).div_ceil(size);
            cost(1, pages == 1, pages.to_string())
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
