//! Division of plans between the store and the service, and the requests that would confirm stored days, as far as known without
//! a request.
//!
//! A plan is divided once, when it is first asked for its cost: EXPLAIN, estimates, admission and the run use the same division. It
//! is divided anew if the regions of its saved search have changed meanwhile, or what the conditions of their use decide of one of
//! them: a plan may run long after it was made. A relative period ends at another instant when it runs, so it is divided again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chrono::{DateTime, Utc};
use datafusion::physical_expr::utils::collect_columns;

use super::declared_later::DeclaredLater;
use super::timeline::ShownMention;
use crate::connection::Connection;
use crate::error::Result;
use crate::exec::requests::Requests;
use crate::exec::scan_config::ScanConfig;
use crate::numbers::counted;
use crate::profile::{ColumnSpec, Origin, Profile, TableKind, Trust, Zone};
use crate::pushdown::windows_between;
use crate::request::{PageRequest, RequestKey, RequestPlan};
use crate::store::{
    Columns, Day, Division, Filters, FromStore, Regions, Subject, Terms, days_of, divide, divide_for_timeline,
    is_stored, span_of,
};

/// Expected use of the store by a scan, as far as it is known before the first request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::exec) struct ExpectedUse {
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
    /// Columns that some of the days from files lack.
    pub(in crate::exec) later: DeclaredLater,
}

/// As in `from the store: 83 days · to confirm: 1 request · to read: 2 days`, followed by the columns that some lack.
impl fmt::Display for ExpectedUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from the store: {}", counted(self.days, "day"))?;
        if self.confirming > 0 {
            write!(f, " · to confirm: {}", counted(self.confirming, "request"))?;
        }
        if self.reading > 0 {
            write!(f, " · to read: {}", counted(self.reading, "day"))?;
        }
        self.later.fmt(f)
    }
}

/// Conditions under which stored days of a subject may be used by a query that began at an instant by our clock. `distrusted` returns
/// the latest instant at which the service's timeline did not agree with the mentions of the subject.
pub(super) fn terms(
    from: &FromStore,
    connection: &Connection,
    distrusted: impl FnOnce() -> Option<DateTime<Utc>>,
    begun: DateTime<Utc>,
) -> Terms {
    let (profile, now) = (connection.profile(), connection.now());
    let rescan = profile.store.rescan.length();
    // A timeline that did not agree is asked again after a while.
    let is_recent = |since: DateTime<Utc>| now.checked_sub_signed(rescan).is_none_or(|age| since > age);
    let rescan = (!can_confirm(profile) || distrusted().is_some_and(is_recent)).then_some(rescan);
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

/// Columns of a scan: those that decide which rows it returns and in which order, and those that it merely returns.
pub(super) fn needed(config: &ScanConfig) -> (Vec<&ColumnSpec>, Vec<&ColumnSpec>) {
    let ScanConfig { spec, projection, predicate, mode, .. } = config;
    let compared: HashSet<usize> = predicate.iter().flat_map(collect_columns).map(|column| column.index()).collect();
    // The time decides the days of stored rows; rows were deduplicated by the others.
    let mut keys: Vec<&String> =
        [&spec.time, &spec.id, &spec.version].into_iter().flatten().chain(&spec.stand_in).collect();
    keys.extend(mode.order().map(|order| &order.column));
    keys.extend(config.summary().and_then(|summary| summary.counted(spec)));
    let columns: &[ColumnSpec] = &spec.columns;
    let decides = |at: usize, column: &ColumnSpec| compared.contains(&at) || keys.contains(&&column.name);
    let deciding = columns.iter().enumerate().filter(|(at, column)| decides(*at, column));
    let others = columns.iter().enumerate();
    let others = others.filter(|(at, column)| projection.contains(at) && !decides(*at, column));
    (deciding.map(|(_, column)| column).collect(), others.map(|(_, column)| column).collect())
}

/// Regions that may answer a scan. A region that was written before a column was declared does not have it, and its other fields then
/// were in `extra`.
fn fitting(config: &ScanConfig, from: &FromStore, all: &Regions) -> Result<Regions> {
    let (deciding, others) = needed(config);
    let mut versions: HashMap<i64, bool> = HashMap::new();
    let mut fitting = Vec::with_capacity(all.len());
    for (filters, region) in all.iter() {
        let mut fits = true;
        if let Some(file) = region.file() {
            fits &= match versions.get(&file.schema) {
                Some(fits) => *fits,
                None => {
                    let fits = from.store.columns_in(file.schema, &deciding, &others)? != Columns::Others;
                    versions.insert(file.schema, fits);
                    fits
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
fn instants(profile: &Profile, plan: &RequestPlan, now: DateTime<Utc>) -> Option<(Range<i64>, bool)> {
    let words = plan.duration.as_deref()?;
    if let Some((from, to)) = profile.window.span_of(words, plan.zone(profile)) {
        return Some((from.timestamp_micros()..to.timestamp_micros(), false));
    }
    let length = profile.window.length_of(words)?;
    // The service has to say which instants it means.
    profile.echo.from.as_ref().and(profile.echo.to.as_ref())?;
    Some((now.checked_sub_signed(length)?.timestamp_micros()..now.timestamp_micros(), true))
}

/// Division of a plan, as far as it is known without a request.
#[derive(Debug, Clone)]
pub(in crate::exec) struct Decided {
    pub(super) subject: Subject,
    pub(super) terms: Terms,
    /// The instants of the window, in microseconds since 1970; of a relative period, those up to now.
    pub(super) span: Range<i64>,
    /// Set for a relative period, which the service has to resolve.
    pub(super) relative: bool,
    /// The regions that may answer the plan.
    pub(super) regions: Regions,
    /// Its division if one timeline confirms the stored days, and the filters of those that it confirms.
    pub(super) division: Division,
    pub(super) confirmed_by: Filters,
    /// Its division if any number of timelines may.
    apart: OnceLock<Division>,
    /// All regions of the saved search.
    all: Regions,
}

impl Decided {
    /// The division of the plan if any number of timelines may confirm the stored days.
    pub(super) fn apart(&self) -> &Division {
        self.apart.get_or_init(|| divide(&self.span, &self.subject.filters, &self.regions, &self.terms))
    }

    /// True if these are all regions of the saved search that it was made of.
    fn is_of(&self, all: &Regions) -> bool {
        Arc::ptr_eq(&self.all, all) || (self.all.is_empty() && all.is_empty())
    }

    /// True if it would be the same with these regions of the saved search, and under these conditions of the same query.
    fn holds(&self, all: &Regions, terms: &Terms) -> bool {
        self.is_of(all) && (self.terms.since, self.terms.rescan) == (terms.since, terms.rescan)
    }

    /// The division under the conditions of a later time; `None` if it may be another one then.
    fn later(&self, span: &Range<i64>, all: &Regions, terms: &Terms) -> Option<Self> {
        let agree = || self.regions.iter().all(|(_, region)| self.terms.agree(terms, region));
        (self.is_of(all) && self.span == *span && agree()).then(|| Self { terms: *terms, ..self.clone() })
    }
}

/// Divisions of the plans of a scan.
#[derive(Debug, Default)]
pub(in crate::exec) struct Divisions {
    /// Start of the query by our clock; of a scan that does not run, the first time that it is asked.
    begun: OnceLock<DateTime<Utc>>,
    /// The plan of a scan that runs: its divisions are used as far as they hold.
    planned: Option<Arc<Requests>>,
    decided: Mutex<HashMap<Asked, Arc<Decided>>>,
    /// Number of erasures in the store when the first division was decided, if what is read will be stored.
    erasures: OnceLock<i64>,
    /// Mentions that came along with daily counts, and that the stored days of a subject lack.
    lacking: Mutex<Vec<(Subject, ShownMention)>>,
}

/// Identity of a plan: its mentions, its window, and the zone that the window is in.
type Asked = (Subject, Option<String>, Option<String>);

impl Divisions {
    /// The divisions of a scan that runs, in a query that began at an instant by our clock.
    pub(in crate::exec) fn of_run(planned: &Arc<Requests>, begun: DateTime<Utc>) -> Self {
        Self { begun: OnceLock::from(begun), planned: Some(Arc::clone(planned)), ..Self::default() }
    }

    /// The last division of a plan, if there is one.
    fn last(&self, asked: &Asked) -> Option<Arc<Decided>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).get(asked).cloned()
    }

    /// Number of erasures in the store before the query sent a request for mentions; `None` if that is not known.
    pub(super) fn erasures(&self) -> Option<i64> {
        self.erasures.get().copied()
    }

    /// Remembers mentions that came along with daily counts, and that stored days lack.
    pub(super) fn note_lacking(&self, subject: &Subject, mentions: Vec<ShownMention>) {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.extend(mentions.into_iter().map(|mention| (subject.clone(), mention)));
    }

    /// Those of these days.
    pub(super) fn lacking(&self, subject: &Subject, days: &Range<Day>) -> Vec<ShownMention> {
        let lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        let of_days = lacking.iter().filter(|(of, (day, _))| of == subject && days.contains(day));
        of_days.map(|(_, mention)| mention.clone()).collect()
    }

    /// Returns the division of a plan; `None` if the plan's window has no known instants.
    ///
    /// # Errors
    /// Errors of the store's catalog.
    pub(super) fn of(&self, config: &ScanConfig, from: &FromStore, plan: &RequestPlan) -> Result<Option<Arc<Decided>>> {
        let begun = *self.begun.get_or_init(|| config.connection.clock().now());
        let subject = subject_of(plan);
        let now = config.connection.now();
        let Some((span, relative)) = instants(config.connection.profile(), plan, now) else { return Ok(None) };
        // What the catalog has of it is read again only after a change.
        let version = from.version()?;
        if from.writes && self.erasures.get().is_none() {
            let _ = self.erasures.set(from.erasures(version)?);
        }
        let distrusted = || from.distrusted(version, &subject);
        let terms = Terms { now, ..terms(from, &config.connection, distrusted, begun) };
        let all = from.regions(version, &subject.aid)?;
        let asked: Asked = (subject.clone(), plan.duration.clone(), plan.timezone.clone());
        if let Some(known) = self.last(&asked).filter(|known| known.holds(&all, &terms)) {
            return Ok(Some(known));
        }
        let planned = self.planned.as_ref().and_then(|requests| requests.divisions.last(&asked));
        let decided = match planned.and_then(|planned| planned.later(&span, &all, &terms)) {
            Some(decided) => decided,
            None => {
                #[cfg(test)]
                note_decision(&from.store);
                let regions = fitting(config, from, &all)?;
                let (division, confirmed_by) = divide_for_timeline(&span, &subject.filters, &regions, &terms);
                let apart = OnceLock::new();
                Decided { subject, terms, span, relative, regions, division, confirmed_by, apart, all }
            }
        };
        let decided = Arc::new(decided);
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).insert(asked, Arc::clone(&decided));
        Ok(Some(decided))
    }
}

/// The divisions that were decided: the addresses of their stores, and the threads.
#[cfg(test)]
static DECISIONS: Mutex<Vec<(usize, std::thread::ThreadId)>> = Mutex::new(Vec::new());

#[cfg(test)]
fn note_decision(store: &Arc<crate::store::Store>) {
    let decision = (Arc::as_ptr(store).addr(), std::thread::current().id());
    DECISIONS.lock().unwrap_or_else(PoisonError::into_inner).push(decision);
}

/// The threads that have decided divisions of a store.
#[cfg(all(test, feature = "simulator"))]
pub(crate) fn decisions(store: &Arc<crate::store::Store>) -> Vec<std::thread::ThreadId> {
    let decisions = DECISIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let of_store = decisions.iter().filter(|(of, _)| *of == Arc::as_ptr(store).addr());
    of_store.map(|(_, thread)| *thread).collect()
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
pub(in crate::exec) fn expected(
    config: &ScanConfig,
    divisions: &Divisions,
    plans: impl Iterator<Item = RequestPlan>,
) -> Option<ExpectedUse> {
    let from = usable(config)?;
    if !config.late.is_empty() {
        return None;
    }
    let (mut total, mut used) = (ExpectedUse::default(), Vec::new());
    for plan in plans {
        let decided = divisions.of(config, from, &plan).ok().flatten()?;
        let Decided { span, relative, division, confirmed_by, .. } = decided.as_ref();
        let timelines = Timelines::of(config, from, &plan, division, confirmed_by, *relative).ok()?;
        let direct = direct(config, &plan, division, timelines.requests());
        if !direct {
            used.push(Arc::clone(&decided));
        }
        match (direct, is_limited(config)) {
            (true, true) => return None,
            (true, false) => {
                total.reading += days_of(span).len() as u64;
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
    total.later = DeclaredLater::of(config, from, used.iter().flat_map(|decided| &decided.division.stored)).ok()?;
    Some(total)
}

/// True if a scan takes mentions from a store, as far as the store has them.
pub(in crate::exec) fn is_used(config: &ScanConfig) -> bool {
    usable(config).is_some()
}

/// Number of mentions of a window, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum Size {
    Known(u64),
    /// The total of a window that contains it.
    AtMost(u64),
    Unknown,
}

/// True if a plan that ran now would read mentions of days that are not stored.
#[cfg(feature = "shell")]
pub(in crate::exec) fn may_read(config: &ScanConfig, divisions: &Divisions, plan: &RequestPlan) -> bool {
    let Some(from) = usable(config) else { return true };
    let Ok(Some(decided)) = divisions.of(config, from, plan) else { return true };
    !decided.division.is_stored() && !decided.division.read.is_empty()
}

/// Likely number of requests for a plan if it ran now, in pages that each have this many further mentions: by the counts of its
/// stored days, and the size of its window. `None` if too little is known. Days that are not stored share what the size leaves for
/// them, or are taken to be like the stored ones, if those are not fewer.
pub(in crate::exec) fn likely(
    config: &ScanConfig,
    divisions: &Divisions,
    plan: &RequestPlan,
    step: u64,
    size: Size,
) -> Option<u64> {
    let from = usable(config)?;
    let decided = divisions.of(config, from, plan).ok().flatten()?;
    let Decided { subject, span, relative, regions, division, confirmed_by, .. } = decided.as_ref();
    if division.is_stored() {
        return Some(0);
    }
    let confirming = Timelines::of(config, from, plan, division, confirmed_by, *relative).ok()?.requests();
    let whole = direct(config, plan, division, confirming);
    // Days that have to be read again are known as well.
    let days = days_of(span);
    let mut counts: Vec<Option<u64>> = vec![None; days.len()];
    for (_, region) in regions.iter().filter(|(of, _)| *of == subject.filters) {
        for day in days.start.max(region.days.start)..days.end.min(region.days.end) {
            let slot = &mut counts[(day - days.start) as usize];
            *slot = region.count_of(day).max(*slot);
        }
    }
    let known = counts.iter().flatten().count() as u64;
    let mentions: u64 = counts.iter().flatten().sum();
    let others = days.len() as u64 - known;
    let alike = || (known > 0 && known >= others).then(|| (mentions * others).div_ceil(known));
    // Mentions of the days without a count.
    let rest = match size {
        Size::Known(total) => total.saturating_sub(mentions),
        Size::AtMost(most) => alike()?.min(most.saturating_sub(mentions)),
        Size::Unknown => alike()?,
    };
    let in_range = |range: &Range<i64>| -> u64 {
        let counted = days_of(range).map(|day| counts.get((day - days.start) as usize).copied().flatten());
        let (unknown, known) = counted.fold((0_u64, 0_u64), |(unknown, known), count| match count {
            Some(count) => (unknown, known + count),
            None => (unknown + 1, known),
        });
        known + (rest * unknown).div_ceil(others.max(1))
    };
    let pages = |range: &Range<i64>| in_range(range).div_ceil(step).max(1);
    if whole {
        return Some(pages(span));
    }
    let reading: u64 = division.read.iter().map(pages).sum();
    // One page of the newest days confirms the others as well.
    let ends = |range: &Range<i64>| division.stored.last().is_some_and(|last| span_of(&last.days).end == range.start);
    let tail = division.read.last().is_some_and(|range| ends(range) && in_range(range) < step);
    Some(reading + confirming.saturating_sub(u64::from(tail && !relative)))
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
