//! Mentions from the store, and requests for those that it lacks.
//!
//! ```text
//! plan ─ coverage ─▶ all stored and fresh ─▶ files
//!             ├────▶ some stored ─ one timeline request ─▶ files of days whose numbers agree, requests for all others
//!             └────▶ too few to save a request ─▶ requests
//! ```
//!
//! Days that are requested completely are written to the store while their rows are returned. A store that cannot be read
//! or written never fails a query: the query notes that and goes on with the service.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use async_stream::try_stream;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use datafusion::error::Result as DataFusionResult;
use datafusion::physical_expr::utils::collect_columns;
use futures::{StreamExt, stream};

use super::part::Part;
use super::scan_config::{Mode, ScanConfig};
use super::stream::{Batches, Driver};
use crate::client::Pace;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ColumnSpec, Origin, Profile, TableKind, Trust, Zone};
use crate::pushdown::{Aids, CLOCK_SKEW, windows_between};
use crate::request::{PageRequest, RequestKey, RequestPlan};
use crate::store::{
    Day, Division, Filling, Filters, FromStore, Reading, Region, Regions, Subject, Terms, date_of, day_of, days_of,
    divide, divide_for_timeline, is_stored, span_of, start_of,
};

/// Expected use of the store by a scan, as far as it is known before the first request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StoreUse {
    /// Days from files, over all saved searches.
    pub(super) days: u64,
    /// Requests that confirm their numbers.
    pub(super) confirming: u64,
    /// Days to read.
    pub(super) reading: u64,
    /// Minimum number of requests.
    pub(super) at_least: u64,
    /// Requests for daily counts, which scans of a query share; of several for one saved search, the first.
    pub(super) timelines: BTreeSet<RequestKey>,
}

/// As in `from the store: 83 days · to confirm: 1 request · to read: 2 days`.
impl fmt::Display for StoreUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |number: u64, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
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

/// A plan divided between the store and the service.
struct Divided {
    division: Division,
    /// The instants that belong to the window, in microseconds since 1970.
    span: Range<i64>,
    /// The daily counts of the service, as far as they are known.
    timeline: DailyCounts,
}

/// Counts of mentions by day in UTC; days without mentions may be missing.
type DailyCounts = HashMap<Day, u64>;

/// Daily counts of the service.
struct Timeline {
    /// The window that the service resolved the request to, in microseconds since 1970.
    window: Option<Range<i64>>,
    counts: DailyCounts,
    /// Instant by the service's clock since which they are known to be true.
    as_of: DateTime<Utc>,
}

/// Daily counts of a span, to compare stored days with.
struct Expected<'f> {
    /// The span, in microseconds since 1970.
    asked: Range<i64>,
    counts: DailyCounts,
    as_of: DateTime<Utc>,
    /// The filters that were sent.
    filters: &'f Filters,
}

impl Expected<'_> {
    /// The instants of a day within the span.
    fn instants_of(&self, day: Day) -> Range<i64> {
        start_of(day).max(self.asked.start)..start_of(day + 1).min(self.asked.end)
    }

    fn is_whole(&self, day: Day) -> bool {
        self.instants_of(day) == span_of(&(day..day + 1))
    }

    /// The counts of whole days, if they are of mentions that match `filters`.
    fn whole(&self, filters: &Filters) -> DailyCounts {
        if self.filters != filters {
            return DailyCounts::default();
        }
        let whole = days_of(&self.asked).filter(|day| self.is_whole(*day));
        whole.map(|day| (day, self.counts.get(&day).copied().unwrap_or_default())).collect()
    }
}

/// Days that are read into the store by one plan.
pub(super) struct Fill {
    from: FromStore,
    subject: Subject,
    days: Range<Day>,
    /// The daily counts of the service before.
    timeline: Arc<DailyCounts>,
    /// Announces the read to other queries.
    reading: Arc<Reading>,
    /// Time of the first request, by our clock.
    begun: DateTime<Utc>,
    filling: Mutex<Option<Arc<Filling>>>,
}

/// Conditions under which stored days of a subject may be used by a query that began at an instant by our clock.
fn terms(from: &FromStore, connection: &Connection, subject: &Subject, begun: DateTime<Utc>) -> Terms {
    let (profile, now) = (connection.profile(), connection.now());
    let rescan = profile.store.rescan.length();
    // A timeline that did not agree is asked again after a while.
    let distrusted = || from.store.distrusted(subject).ok().flatten().is_some_and(|since| since > now - rescan);
    let rescan = (!can_confirm(profile) || distrusted()).then_some(rescan);
    // Before its first response, the service's clock is known from earlier runs.
    let ahead = connection.client().ahead().max(from.store.ahead());
    let since = (begun + ahead).checked_sub_signed(from.freshness).unwrap_or(DateTime::<Utc>::MIN_UTC);
    Terms { now, settling: profile.store.settle.length(), since, rescan }
}

/// The mentions that a plan asks for, without the window.
fn subject_of(plan: &RequestPlan) -> Subject {
    Subject { aid: plan.aid.clone().unwrap_or_default(), filters: Filters::of(&plan.filters) }
}

/// True if the service reports exact daily counts in UTC.
fn can_confirm(profile: &Profile) -> bool {
    let days = profile.counts.as_ref().is_some_and(|counts| counts.days && counts.trust == Trust::Exact);
    days && profile.timezone.words_of(Zone::UTC).is_some()
}

/// The store that a scan reads, if it can answer the scan's plans.
fn usable(config: &ScanConfig) -> Option<&FromStore> {
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
fn regions_for(config: &ScanConfig, from: &FromStore, aid: &str) -> Result<Regions> {
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
        for file in &region.files {
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
fn instants(profile: &Profile, plan: &RequestPlan, now: DateTime<Utc>) -> Option<(Range<i64>, bool)> {
    let words = plan.duration.as_deref()?;
    if let Some((from, to)) = profile.window.span_of(words, plan.zone(profile)) {
        return Some((from.timestamp_micros()..to.timestamp_micros(), false));
    }
    let length = profile.window.length_of(words)?;
    // The service has to say which instants it means.
    profile.echo.from.as_ref().and(profile.echo.to.as_ref())?;
    Some(((now - length).timestamp_micros()..now.timestamp_micros(), true))
}

/// Number of requests for the daily counts of these days.
fn confirming(profile: &Profile, days: Option<Range<Day>>) -> u64 {
    let Some(days) = days else { return 0 };
    let longest = profile.window.longest.map_or(i64::MAX, |longest| longest.length().num_days().max(1));
    (days.len() as u64).div_ceil(u64::try_from(longest).unwrap_or(u64::MAX))
}

/// What a scan would take from the store if it ran now; `None` if it uses none, or its saved searches are not known.
pub(super) fn expected(config: &ScanConfig, plans: &[RequestPlan]) -> Option<StoreUse> {
    let from = usable(config)?;
    let profile = config.connection.profile();
    if !matches!(config.plan.aids, Aids::Given(_)) || !config.late.is_empty() {
        return None;
    }
    let mut total = StoreUse::default();
    for plan in plans {
        let subject = subject_of(plan);
        let terms = terms(from, &config.connection, &subject, config.connection.clock().now());
        let (span, relative) = instants(profile, plan, terms.now)?;
        let regions = regions_for(config, from, plan.aid.as_deref()?).ok()?;
        let (division, confirmed_by) = divide_for_timeline(&span, &subject.filters, &regions, &terms);
        let confirm = confirming(profile, division.to_confirm()).max(u64::from(relative && !division.is_stored()));
        if is_limited(config) && direct(config, plan, &division, confirm) {
            return None;
        }
        if direct(config, plan, &division, confirm) {
            total.reading += days_of(&span).len() as u64;
            total.at_least += 1;
        } else {
            total.days += division.stored_days();
            total.confirming += confirm;
            total.reading += division.read_days();
            // Other scans of the query may send the same requests, and what is stored may be enough for a limit.
            let reads = !division.read.is_empty() && !is_limited(config);
            total.at_least += u64::from(reads || confirm > 0);
            if confirm > 0 {
                let words = match division.to_confirm().filter(|_| !relative) {
                    Some(days) => windows_between(&profile.window, span_of(&days), Zone::UTC).ok()?.swap_remove(0).0,
                    None => plan.duration.clone()?,
                };
                total.timelines.insert(timeline_request(config, plan, &confirmed_by, &words).key(profile));
            }
        }
    }
    Some(total)
}

/// Returns the request for the daily counts of a window.
fn timeline_request(config: &ScanConfig, plan: &RequestPlan, filters: &Filters, words: &str) -> PageRequest {
    PageRequest::overview(RequestPlan {
        duration: Some(words.to_owned()),
        timezone: config.connection.profile().timezone.words_of(Zone::UTC),
        filters: filters.to_terms(),
        ..plan.clone()
    })
}

/// True if a service refuses a request that it accepts in another form.
fn is_refusal(kind: ErrorKind) -> bool {
    use ErrorKind::{Contradiction, Forbidden, Malformed, NotFound, Rejected, Unavailable};
    matches!(kind, Contradiction | Forbidden | Malformed | NotFound | Rejected | Unavailable)
}

/// True if a scan may need only some of its rows.
fn is_limited(config: &ScanConfig) -> bool {
    config.mode.slice().fetch.is_some() || config.mode.wanted().is_some()
}

/// True if a plan is better requested completely, because that takes no more requests than what the store lacks.
fn direct(config: &ScanConfig, plan: &RequestPlan, division: &Division, confirming: u64) -> bool {
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

impl Driver {
    /// True if the mentions of a plan need no request.
    pub(super) fn is_stored(&self, plan: &RequestPlan) -> bool {
        let Some(from) = usable(&self.config) else { return false };
        let subject = subject_of(plan);
        let terms = terms(from, &self.config.connection, &subject, self.query.begun);
        let divided = instants(self.config.connection.profile(), plan, terms.now).and_then(|(span, _)| {
            let regions = regions_for(&self.config, from, plan.aid.as_deref()?).ok()?;
            Some(divide(&span, &subject.filters, &regions, &terms))
        });
        divided.is_some_and(|division| division.is_stored())
    }

    /// Number of plans that take at least one request.
    pub(super) fn to_request(&self, plans: &[RequestPlan]) -> usize {
        let profile = self.config.connection.profile();
        let now = self.config.connection.now();
        let kept = |plan: &RequestPlan| {
            let from = self.config.from_store.as_ref()?;
            let asked = RequestPlan { timezone: self.requests.sent().timezone.clone(), ..plan.clone() };
            from.answer(&PageRequest::overview(asked).key(profile), now).ok().flatten()
        };
        let stored = |plan: &RequestPlan| {
            let all = self.requests.in_window(plan.aid.as_deref()?, plan.duration.as_deref()?);
            (self.config.spec.kind == TableKind::Mentions && self.is_stored(&all)).then_some(())
        };
        plans.iter().filter(|plan| stored(plan).is_none() && kept(plan).is_none()).count()
    }

    /// Returns the mentions of one plan, from the store as far as it has them; `None` if the scan uses no store.
    pub(super) fn stored_first(self: &Arc<Self>, plan: &RequestPlan, told: Option<u64>, pace: Pace) -> Option<Batches> {
        let from = usable(&self.config)?.clone();
        let (driver, plan) = (Arc::clone(self), plan.clone());
        let stream = try_stream! {
            let mut divided = driver.divided(&from, &plan).await.map_err(|error| driver.at_plan(error, &plan))?;
            if let Some(Divided { division, .. }) = &divided
                && from.writes
                && from.store.under_way().wait(&subject_of(&plan), &division.read, &driver.config.query).await
            {
                // Now the store has them.
                divided = driver.divided(&from, &plan).await.map_err(|error| driver.at_plan(error, &plan))?;
            }
            let Some(Divided { division, span, timeline }) = divided else {
                let mut rows = Arc::clone(&driver).mentions(plan, told, pace, Arc::default(), Part::default());
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
                return;
            };
            for mut rows in driver.segments(&from, &plan, division, &span, &Arc::new(timeline), pace)? {
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
            }
        };
        Some(stream.boxed())
    }

    /// Divides a plan. `None` if it is requested as it is, because that takes no more requests, and nothing is stored.
    async fn divided(&self, from: &FromStore, plan: &RequestPlan) -> Result<Option<Divided>> {
        let Self { config, .. } = self;
        let (connection, profile) = (&config.connection, config.connection.profile());
        let subject = subject_of(plan);
        let (terms, filters) = (terms(from, connection, &subject, self.query.begun), &subject.filters);
        let Some((span, relative)) = instants(profile, plan, terms.now) else { return Ok(None) };
        let regions = match regions_for(config, from, &subject.aid) {
            Ok(regions) => self.sound(from, plan, &subject.aid, regions),
            Err(error) => {
                self.note(plan, &error);
                return Ok(None);
            }
        };
        let (division, confirmed_by) = divide_for_timeline(&span, filters, &regions, &terms);
        let timeline = DailyCounts::default();
        if division.is_stored() {
            return Ok(Some(Divided { division, span, timeline }));
        }
        let confirm = confirming(profile, division.to_confirm()).max(u64::from(relative));
        let (limited, direct) = (is_limited(config), direct(config, plan, &division, confirm));
        if !relative {
            if direct {
                // Everything is read, and kept.
                let all = Division { stored: Vec::new(), read: vec![span.clone()] };
                return Ok((from.writes && !limited).then_some(Divided { division: all, span, timeline }));
            }
            let Some(days) = division.to_confirm() else { return Ok(Some(Divided { division, span, timeline })) };
            let asked = span_of(&days);
            let mut expected =
                Expected { asked: asked.clone(), counts: timeline, as_of: terms.now, filters: &confirmed_by };
            for (words, _) in windows_between(&profile.window, asked, Zone::UTC)? {
                let Some(timeline) = self.timeline(plan, &confirmed_by, &words).await? else {
                    // Its counts prove nothing, now or soon.
                    self.distrust(from, &subject, plan);
                    let terms = Terms { rescan: Some(profile.store.rescan.length()), ..terms };
                    let division = divide(&span, filters, &regions, &terms);
                    return Ok(Some(Divided { division, span, timeline: DailyCounts::default() }));
                };
                expected.counts.extend(timeline.counts);
                expected.as_of = expected.as_of.min(timeline.as_of);
            }
            let division = self.confirmed(from, &terms, plan, division, &span, &expected);
            return Ok(Some(Divided { division, span, timeline: expected.whole(filters) }));
        }
        // The service resolves a relative period.
        let invests = from.writes && from.freshness > TimeDelta::zero() && !limited;
        if !can_confirm(profile) || (direct && !invests) {
            return Ok(None);
        }
        let words = plan.duration.as_deref().unwrap_or_default();
        let Some(Timeline { window: Some(span), counts, as_of }) = self.timeline(plan, &confirmed_by, words).await?
        else {
            return Ok(None);
        };
        let expected = Expected { asked: span.clone(), counts, as_of, filters: &confirmed_by };
        let (division, by) = divide_for_timeline(&span, filters, &regions, &terms);
        if by != confirmed_by && division.to_confirm().is_some() {
            return Ok(None);
        }
        let division = self.confirmed(from, &terms, plan, division, &span, &expected);
        Ok(Some(Divided { division, span, timeline: expected.whole(filters) }))
    }

    /// Returns the regions whose files are there in full. A note tells of others, whose days are requested.
    fn sound(&self, from: &FromStore, plan: &RequestPlan, aid: &str, regions: Regions) -> Regions {
        let damaged = |(filters, region): &(Filters, Arc<Region>)| {
            let folder = from.store.folder(&Subject { aid: aid.to_owned(), filters: filters.clone() });
            let mut files = region.files.iter().map(|file| (folder.join(&file.path), file.bytes));
            files.find(|(path, bytes)| !path.metadata().is_ok_and(|found| found.len() == *bytes)).map(|(path, _)| path)
        };
        let Some(path) = regions.iter().find_map(damaged) else { return regions };
        let message = format!("{} is missing or damaged: requesting its days again", path.display());
        self.note(plan, &Error::new(ErrorKind::Store, message).advice("`savedsearch store verify` lists such files"));
        Arc::new(regions.iter().filter(|region| damaged(region).is_none()).cloned().collect())
    }

    /// Removes days whose counts differ from the timeline, and records that the others agree. Fresh days are compared as well:
    /// a mention whose time has changed leaves one day and comes to another.
    fn confirmed(
        &self,
        from: &FromStore,
        terms: &Terms,
        plan: &RequestPlan,
        division: Division,
        span: &Range<i64>,
        expected: &Expected<'_>,
    ) -> Division {
        let subject = Subject { aid: plan.aid.clone().unwrap_or_default(), filters: expected.filters.clone() };
        let (mut differing, mut confirmed, mut sealed) = (HashSet::new(), Vec::new(), Vec::new());
        for part in division.stored.iter().filter(|part| part.filters == *expected.filters) {
            for (day, count) in part.counts() {
                let instants = expected.instants_of(day);
                if instants.is_empty() {
                    continue;
                }
                let count = match expected.is_whole(day) {
                    true => Ok(count),
                    false => from.store.count_within(&subject, &part.region, &instants),
                };
                if count.ok() != Some(expected.counts.get(&day).copied().unwrap_or_default()) {
                    differing.insert(day);
                }
            }
            let agrees = |day: Day| !differing.contains(&day) && expected.is_whole(day);
            if let Some(id) = part.region.id.filter(|_| part.is_whole() && part.days.clone().all(agrees)) {
                confirmed.push(id);
                sealed.extend(terms.had_settled(expected.as_of, part.days.end - 1).then_some(id));
            }
        }
        if from.writes
            && let Err(error) = from.store.confirm(expected.as_of, &confirmed, &sealed)
        {
            self.note(plan, &error);
        }
        let page = plan.pages.map_or(1, |pages| pages.size);
        division.without(span, |day| differing.contains(&day)).with_fewer_gaps(page)
    }

    /// Requests the daily counts of a window. `None` if the response does not prove them, because they do not add up to the
    /// total, or if the service refuses it.
    async fn timeline(&self, plan: &RequestPlan, filters: &Filters, words: &str) -> Result<Option<Timeline>> {
        let request = timeline_request(&self.config, plan, filters, words);
        let (body, as_of) = match self.overview_as_of(&request).await {
            Ok(received) => received,
            Err(error) if is_refusal(error.kind()) => {
                self.note(plan, &error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some((window, days)) = self.days_told(&request, &body)? else { return Ok(None) };
        let begins = window.map(|(from, _)| from.timestamp_micros());
        let day = |(start, count): (i64, i64)| {
            let count = u64::try_from(count).ok()?;
            // Otherwise they are days of another zone. The first one may begin with the window.
            (start_of(day_of(start)) == start || Some(start) == begins).then_some((day_of(start), count))
        };
        let counts: Option<DailyCounts> = days.into_iter().map(day).collect();
        let window = window.map(|(from, to)| from.timestamp_micros()..to.timestamp_micros());
        Ok(counts.map(|counts| Timeline { window, counts, as_of }))
    }

    /// Requests an overview. Returns it with the instant by the service's clock since which it is true.
    async fn overview_as_of(&self, request: &PageRequest) -> Result<(Bytes, DateTime<Utc>)> {
        let Self { config, scan, query, .. } = self;
        let connection = &config.connection;
        let from = config.from_store.as_ref();
        let key = request.key(connection.profile());
        if let Some(kept) = from.and_then(|from| from.answer(&key, connection.now()).ok().flatten()) {
            return Ok(kept);
        }
        let body = self.overview(request).await?;
        scan.pages.fetch_add(1, Ordering::Relaxed);
        // Another scan of the query may have requested it.
        Ok((body, query.begun + connection.client().ahead()))
    }

    /// Returns the rows of a divided plan, part by part in the order of the scan.
    fn segments(
        self: &Arc<Self>,
        from: &FromStore,
        plan: &RequestPlan,
        division: Division,
        span: &Range<i64>,
        timeline: &Arc<DailyCounts>,
        pace: Pace,
    ) -> DataFusionResult<Vec<Batches>> {
        let ScanConfig { spec, mode, .. } = self.config.as_ref();
        let order = match mode {
            Mode::Ordered { order, .. } => Some(order),
            Mode::Unordered(_) | Mode::Summary(_) => None,
        };
        let by_time = order.is_some_and(|order| spec.time.as_ref() == Some(&order.column));
        let Division { stored, read } = division;
        let reads = read.into_iter().map(|range| {
            let start = range.start;
            let rows = Arc::clone(self).remainder(from, plan, range, span.end, timeline, pace)?;
            Ok((start, rows))
        });
        let reads: Vec<(i64, Batches)> = reads.collect::<Result<_>>().map_err(|error| self.at_plan(error, plan))?;
        let mut segments: Vec<(i64, Batches)> = Vec::new();
        if by_time {
            // Parts follow each other, so that a reader that has enough opens no more files.
            for part in stored {
                let start = start_of(part.days.start);
                segments.push((start, self.files(from, plan, vec![part], span)?));
            }
            segments.extend(reads);
            segments.sort_by_key(|(start, _)| *start);
            if order.is_some_and(|order| order.options.descending) {
                segments.reverse();
            }
        } else {
            if !stored.is_empty() {
                segments.push((i64::MIN, self.files(from, plan, stored, span)?));
            }
            segments.extend(reads);
            if order.is_some() && segments.len() > 1 {
                return Ok(vec![self.merged(segments.into_iter().map(|(_, rows)| rows).collect())?]);
            }
        }
        Ok(segments.into_iter().map(|(_, rows)| rows).collect())
    }

    /// Requests the mentions of a range of a span that ends at `end`, and stores its days. A store holds whole days, so whole
    /// days are requested.
    fn remainder(
        self: Arc<Self>,
        from: &FromStore,
        plan: &RequestPlan,
        range: Range<i64>,
        end: i64,
        timeline: &Arc<DailyCounts>,
        pace: Pace,
    ) -> Result<Batches> {
        let connection = Arc::clone(&self.config.connection);
        let profile = connection.profile();
        let limited = is_limited(&self.config);
        let pace = if limited { Pace::OnDemand } else { pace };
        // Days that have not begun yet change until they have.
        let tomorrow = day_of((connection.now() + CLOCK_SKEW).timestamp_micros()) + 1;
        let days = days_of(&range);
        let days = days.start..days.end.min(tomorrow).max(days.start);
        let fills = from.writes && !self.settings.lossy_text && !limited && !days.is_empty();
        let wanted = match fills {
            true => range.start.min(start_of(days.start))..range.end.max(start_of(days.end)),
            false => range.clone(),
        };
        let mut windows = windows_between(&profile.window, wanted.clone(), plan.zone(profile))?;
        let order = self.config.mode.order();
        if order.is_some_and(|order| order.options.descending) {
            windows.reverse();
        }
        let by_time = order.is_none_or(|order| self.config.spec.time.as_ref() == Some(&order.column));
        let (from, plan, timeline) = (from.clone(), plan.clone(), Arc::clone(timeline));
        let stream = try_stream! {
            // Announced once the rows are asked for: a reader that never starts keeps nobody waiting.
            let fill = fills.then(|| {
                let (subject, begun) = (subject_of(&plan), connection.clock().now());
                let reading = from.store.under_way().begin(&subject, &days, &self.config.query);
                Arc::new(Fill { from, subject, days, begun, timeline, reading, filling: Mutex::new(None) })
            });
            let last = plan.duration.as_deref() == self.requests.windows().next_back();
            let open = self.config.plan.ends_open && last && range.end == end;
            let parts = windows.into_iter().map(|(words, instants)| {
                let within = range.start.max(instants.start)..range.end.min(instants.end);
                let last = (open && instants.end == wanted.end).then_some(instants.end);
                let part = Part { within: Some(within), label: plan.duration.clone(), fill: fill.clone() };
                let asked = RequestPlan { duration: Some(words), ..plan.clone() };
                Arc::clone(&self).window(asked, part, last, pace)
            });
            let parts: Vec<Batches> = parts.collect();
            // Windows follow each other in order of time, but in no other order.
            let mut rows = match by_time || parts.len() == 1 {
                true => stream::iter(parts).flatten().boxed(),
                false => self.merged(parts)?,
            };
            while let Some(batch) = rows.next().await {
                yield batch?;
            }
            drop(rows);
            if let Some(fill) = fill {
                self.commit(fill, &plan).await;
            }
        };
        Ok(stream.boxed())
    }

    /// Requests the mentions of a window. `last`: its end in microseconds since 1970, if it has to reach beyond the service's
    /// current time.
    fn window(self: Arc<Self>, plan: RequestPlan, part: Part, last: Option<i64>, pace: Pace) -> Batches {
        let place = plan.clone();
        let mut rows = Arc::clone(&self).mentions(plan, None, pace, Arc::default(), part);
        let stream = try_stream! {
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                if let Some(end) = last {
                    self.check_end(&place, end).map_err(|error| self.at_plan(error, &place))?;
                }
                yield batch;
            }
        };
        stream.boxed()
    }

    /// Makes days that were read a part of the store, unless something is missing from them.
    async fn commit(&self, fill: Arc<Fill>, plan: &RequestPlan) {
        if self.scan.incomplete.load(Ordering::Relaxed) > 0 || self.degraded.load(Ordering::Relaxed) {
            return;
        }
        let ahead = self.config.connection.client().ahead();
        let stored = fill.commit(ahead).await.and_then(|counts| fill.from.store.note_ahead(ahead).map(|()| counts));
        let counts = match stored {
            Ok(counts) => counts,
            Err(error) => return self.note(plan, &error),
        };
        // A mismatch after a re-read is permanent: the service counts differently.
        let terms = terms(&fill.from, &self.config.connection, &fill.subject, self.query.begun);
        let agrees = |(day, count): &(Day, u64)| {
            !terms.had_settled(terms.now, *day) || fill.timeline.get(day).is_none_or(|expected| expected == count)
        };
        if let Some((day, count)) = counts.iter().find(|count| !agrees(count)) {
            let (expected, date) = (fill.timeline.get(day).copied().unwrap_or_default(), date_of(*day));
            let message = format!(
                "the service's timeline counts {expected} mentions on {date}, but {count} were read: stored days are not \
                 confirmed by their counts, and are read again at the age that the profile's [store] sets"
            );
            self.config.connection.client().log().note(&self.query.budget, plan.aid.clone(), message);
            self.distrust(&fill.from, &fill.subject, plan);
        }
    }

    /// Records that the timeline of a subject does not confirm its mentions.
    fn distrust(&self, from: &FromStore, subject: &Subject, plan: &RequestPlan) {
        if from.writes
            && let Err(error) = from.store.distrust(subject, self.config.connection.now())
        {
            self.note(plan, &error);
        }
    }

    /// Notes that the store was not used.
    fn note(&self, plan: &RequestPlan, error: &Error) {
        let client = self.config.connection.client();
        client.log().note(&self.query.budget, plan.aid.clone(), error.to_string());
    }
}

impl Fill {
    /// Adds a page, in the table's columns. `ahead`: time by which the service's clock is ahead of ours.
    pub(super) async fn add(&self, page: &RecordBatch, ahead: TimeDelta) {
        self.reading.advance();
        let filling = self.filling(ahead);
        // If the thread has failed, `commit` returns its error.
        filling.add(page.clone()).await;
    }

    fn filling(&self, ahead: TimeDelta) -> Arc<Filling> {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let Self { from, subject, days, begun, .. } = self;
            Arc::new(Filling::start(&from.store, subject.clone(), days, *begun + ahead))
        };
        Arc::clone(filling.get_or_insert_with(start))
    }

    async fn commit(&self, ahead: TimeDelta) -> Result<Vec<(Day, u64)>> {
        let filling = self.filling(ahead);
        self.filling.lock().unwrap_or_else(PoisonError::into_inner).take();
        match Arc::try_unwrap(filling) {
            Ok(filling) => filling.commit().await,
            Err(_) => Err(Error::new(ErrorKind::Store, "a page was still being written when its day was complete")),
        }
    }
}
