//! Stored regions that may answer a plan, and the requests that would confirm them, as far as known without a request.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::physical_expr::utils::collect_columns;

use crate::connection::Connection;
use crate::error::Result;
use crate::exec::scan_config::ScanConfig;
use crate::numbers::counted;
use crate::profile::{ColumnSpec, Origin, Profile, TableKind, Trust, Zone};
use crate::pushdown::windows_between;
use crate::request::{PageRequest, RequestKey, RequestPlan};
use crate::store::{
    Division, Filters, FromStore, Regions, Subject, Terms, days_of, divide_for_timeline, is_stored, span_of,
};

/// Expected use of the store by a scan, as far as it is known before the first request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::exec) struct StoreUse {
    /// Days from files, over all saved searches.
    pub(in crate::exec) days: u64,
    /// Requests that confirm their numbers.
    pub(in crate::exec) confirming: u64,
    /// Days to read.
    pub(in crate::exec) reading: u64,
    /// Minimum number of requests.
    pub(in crate::exec) at_least: u64,
    /// Requests for daily counts, which scans of a query share; of several for one saved search, the first.
    pub(in crate::exec) timelines: BTreeSet<RequestKey>,
}

/// As in `from the store: 83 days · to confirm: 1 request · to read: 2 days`.
impl fmt::Display for StoreUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from the store: {}", counted(self.days, "day"))?;
        if self.confirming > 0 {
            write!(f, " · to confirm: {}", counted(self.confirming, "request"))?;
        }
        if self.reading > 0 {
            write!(f, " · to read: {}", counted(self.reading, "day"))?;
        }
        Ok(())
    }
}

/// Conditions under which stored days of a subject may be used by a query that began at an instant by our clock.
pub(super) fn terms(from: &FromStore, connection: &Connection, subject: &Subject, begun: DateTime<Utc>) -> Terms {
    let (profile, now) = (connection.profile(), connection.now());
    let rescan = profile.store.rescan.length();
    // A timeline that did not agree is asked again after a while.
    let distrusted = || {
        from.store
            .distrusted(subject)
            .ok()
            .flatten()
            .is_some_and(|since| now.checked_sub_signed(rescan).is_none_or(|age| since > age))
    };
    let rescan = (!can_confirm(profile) || distrusted()).then_some(rescan);
    // Before its first response, the service's clock is known from earlier runs.
    let ahead = connection.client().ahead().max(from.store.ahead());
    let since = (begun + ahead).checked_sub_signed(from.freshness).unwrap_or(DateTime::<Utc>::MIN_UTC);
    Terms { now, settling: profile.store.settle.length(), since, rescan }
}

/// The mentions that a plan asks for, without the window.
pub(super) fn subject_of(plan: &RequestPlan) -> Subject {
    Subject { aid: plan.aid.clone().unwrap_or_default(), filters: Filters::of(&plan.filters) }
}

/// True if the service reports exact daily counts in UTC.
pub(crate) fn can_confirm(profile: &Profile) -> bool {
    let days = profile.counts.as_ref().is_some_and(|counts| counts.days && counts.trust == Trust::Exact);
    days && profile.timezone.words_of(Zone::UTC).is_some()
}

/// The store that a scan reads, if it can answer the scan's plans.
pub(super) fn usable(config: &ScanConfig) -> Option<&FromStore> {
    let ScanConfig { connection, spec, plan, projection, predicate, mode, .. } = config;
    let from = config.from_store.as_ref()?;
    let known = |at: usize| {
        spec.columns.get(at).is_none_or(|column| {
            is_stored(&column.origin) || matches!(column.origin, Origin::Duration | Origin::Timezone)
        })
    };
    let read = predicate.iter().flat_map(collect_columns);
    let columns = projection.iter().copied().chain(read.map(|column| column.index())).all(known);
    let window = &connection.profile().window;
    let whole = mode.slice().skip == 0 && plan.until.is_none();
    (spec.kind == TableKind::Mentions && columns && whole && window.takes_instants() && window.is_half_open())
        .then_some(from)
}

/// Regions that may answer a scan: those that have all its columns. A region that was written before a column was declared
/// does not have it, and its other fields then were in `extra`.
pub(super) fn regions_for(config: &ScanConfig, from: &FromStore, aid: &str) -> Result<Regions> {
    let ScanConfig { spec, projection, predicate, .. } = config;
    let read = predicate.iter().flat_map(collect_columns).map(|column| column.index());
    let time = spec.columns.iter().position(|column| Some(&column.name) == spec.time.as_ref());
    let needed: HashSet<usize> = projection.iter().copied().chain(read).chain(time).collect();
    let needed: Vec<&ColumnSpec> = needed.into_iter().filter_map(|at| spec.columns.get(at)).collect();
    let mut versions: HashMap<i64, bool> = HashMap::new();
    let all = from.regions(aid)?;
    let mut fitting = Vec::with_capacity(all.len());
    for (filters, region) in all.iter() {
        let mut fits = true;
        if let Some(file) = region.file() {
            fits &= match versions.get(&file.schema) {
                Some(fits) => *fits,
                None => {
                    let has = from.store.has_columns(file.schema, &needed)?;
                    versions.insert(file.schema, has);
                    has
                }
            };
        }
        if fits {
            fitting.push((filters.clone(), Arc::clone(region)));
        }
    }
    Ok(Arc::new(fitting))
}

/// Instants of a window in microseconds since 1970; for a relative period, those up to now. The flag is set for one.
pub(super) fn instants(profile: &Profile, plan: &RequestPlan, now: DateTime<Utc>) -> Option<(Range<i64>, bool)> {
    let words = plan.duration.as_deref()?;
    if let Some((from, to)) = profile.window.span_of(words, plan.zone(profile)) {
        return Some((from.timestamp_micros()..to.timestamp_micros(), false));
    }
    let length = profile.window.length_of(words)?;
    // The service has to say which instants it means.
    profile.echo.from.as_ref().and(profile.echo.to.as_ref())?;
    Some((now.checked_sub_signed(length)?.timestamp_micros()..now.timestamp_micros(), true))
}

/// Subject of a plan, and the regions that may answer it.
pub(super) struct Candidates {
    pub(super) subject: Subject,
    pub(super) terms: Terms,
    /// The instants of the window, in microseconds since 1970; of a relative period, those up to now.
    pub(super) span: Range<i64>,
    /// Set for a relative period, which the service has to resolve.
    pub(super) relative: bool,
    pub(super) regions: Regions,
}

/// Returns what may answer a plan of a query that began at an instant by our clock; `None` if the plan's window has no known
/// instants.
pub(super) fn candidates(
    config: &ScanConfig,
    from: &FromStore,
    plan: &RequestPlan,
    begun: DateTime<Utc>,
) -> Result<Option<Candidates>> {
    let subject = subject_of(plan);
    let terms = terms(from, &config.connection, &subject, begun);
    let Some((span, relative)) = instants(config.connection.profile(), plan, terms.now) else { return Ok(None) };
    let regions = regions_for(config, from, &subject.aid)?;
    Ok(Some(Candidates { subject, terms, span, relative, regions }))
}

/// Requests for daily counts.
pub(super) struct Timelines {
    /// Their windows, as the service expects them.
    pub(super) windows: Vec<String>,
    /// Those that no stored response answers.
    pub(super) unanswered: Vec<RequestKey>,
}

impl Timelines {
    /// Returns the requests that confirm the stored days of a division; of a relative period, those that resolve it.
    pub(super) fn of(
        config: &ScanConfig,
        from: &FromStore,
        plan: &RequestPlan,
        division: &Division,
        filters: &Filters,
        relative: bool,
    ) -> Result<Self> {
        let profile = config.connection.profile();
        let windows = match (division.to_confirm(), relative) {
            _ if division.is_stored() => Vec::new(),
            (_, true) => plan.duration.clone().into_iter().collect(),
            (None, false) => Vec::new(),
            (Some(days), false) => {
                let windows = windows_between(&profile.window, span_of(&days), Zone::UTC)?;
                windows.into_iter().map(|(words, _)| words).collect()
            }
        };
        let now = config.connection.now();
        let key = |words: &String| timeline_request(config, plan, filters, words).key(profile);
        let unanswered = windows.iter().map(key);
        let unanswered = unanswered.filter(|key| !from.has_answer(key, now)).collect();
        Ok(Self { windows, unanswered })
    }

    pub(super) fn requests(&self) -> u64 {
        self.unanswered.len() as u64
    }
}

/// Expected use of the store if a scan of these saved searches ran now; `None` if it uses none.
pub(in crate::exec) fn expected(config: &ScanConfig, plans: impl Iterator<Item = RequestPlan>) -> Option<StoreUse> {
    let from = usable(config)?;
    if !config.late.is_empty() {
        return None;
    }
    let mut total = StoreUse::default();
    for plan in plans {
        let begun = config.connection.clock().now();
        let Candidates { subject, terms, span, relative, regions } =
            candidates(config, from, &plan, begun).ok().flatten()?;
        let (division, confirmed_by) = divide_for_timeline(&span, &subject.filters, &regions, &terms);
        let timelines = Timelines::of(config, from, &plan, &division, &confirmed_by, relative).ok()?;
        let direct = direct(config, &plan, &division, timelines.requests());
        match (direct, is_limited(config)) {
            (true, true) => return None,
            (true, false) => {
                total.reading += days_of(&span).len() as u64;
                total.at_least += 1;
            }
            (false, limited) => {
                total.days += division.stored_days();
                total.confirming += timelines.requests();
                total.reading += division.read_days();
                // Other scans of the query may send the same requests, and what is stored may be enough for a limit.
                let reads = !division.read.is_empty() && !limited;
                total.at_least += u64::from(reads || timelines.requests() > 0);
                total.timelines.extend(timelines.unanswered.into_iter().next());
            }
        }
    }
    Some(total)
}

/// Returns the request for the daily counts of a window.
pub(super) fn timeline_request(config: &ScanConfig, plan: &RequestPlan, filters: &Filters, words: &str) -> PageRequest {
    PageRequest::overview(RequestPlan {
        duration: Some(words.to_owned()),
        timezone: config.connection.profile().timezone.words_of(Zone::UTC),
        filters: filters.to_terms(),
        ..plan.clone()
    })
}

/// True if a scan may need only some of its rows.
pub(super) fn is_limited(config: &ScanConfig) -> bool {
    config.mode.slice().fetch.is_some() || config.mode.wanted().is_some()
}

/// True if a plan is better requested completely, because that takes no more requests than what the store lacks.
pub(super) fn direct(config: &ScanConfig, plan: &RequestPlan, division: &Division, confirming: u64) -> bool {
    if division.is_stored() {
        return false;
    }
    let page = plan.pages.map_or(1, |pages| pages.size.max(1));
    match config.mode.slice().fetch.or(config.mode.wanted()) {
        // Each row of a page counts.
        Some(fetch) if config.plan.exact => (fetch as u64).div_ceil(page) <= confirming + division.read.len() as u64,
        _ => division.saves_nothing(page, confirming),
    }
}
