//! Mentions from the store, and requests for those that it lacks.
//!
//! ```text
//! plan ─ coverage ─▶ all stored and fresh ─▶ files
//!             ├────▶ some stored ─ one timeline request ─▶ files of days whose numbers agree, requests for all others
//!             └────▶ too few to save a request ─▶ requests
//! ```
//!
//! Days that are requested completely are written to the store while their rows are returned. If the store cannot be read or
//! written, the query does not fail: it adds a note, and requests the data from the service.

mod candidates;
mod checked;
mod files;
mod fill;
#[cfg(feature = "distributed")]
mod in_files;
mod tail;
mod timeline;
mod together;

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use async_stream::try_stream;
use chrono::TimeDelta;
use datafusion::error::Result as DataFusionResult;
use futures::{StreamExt, stream};

pub(crate) use self::candidates::can_confirm;
use self::candidates::{Candidates, Timelines, candidates, direct, is_limited, subject_of, usable};
pub(super) use self::candidates::{StoreUse, expected};
pub(super) use self::files::StoredPart;
pub(super) use self::fill::Fill;
#[cfg(feature = "distributed")]
pub(crate) use self::in_files::{InFiles, Readers};
use self::tail::{Received, Tail};
use self::timeline::{DailyCounts, Expected, Timeline, is_refused};
use super::part::Part;
use super::scan_config::ScanConfig;
use super::stand_ins::{Unproved, WindowTotal};
use super::stream::{Batches, Driver};
use crate::client::Pace;
use crate::error::{Error, ErrorKind, Result};
use crate::pushdown::windows_between;
use crate::request::{PageRequest, RequestPlan};
use crate::store::{
    Division, Filters, FromStore, Region, Regions, Subject, Terms, days_of, divide, divide_for_timeline, overlap,
    span_of, start_of,
};

/// A plan divided between the store and the service.
struct Divided {
    division: Division,
    /// The instants that belong to the window, in microseconds since 1970.
    span: Range<i64>,
    /// The daily counts of the service, as far as they are known.
    timeline: DailyCounts,
    /// Number of requests for these counts.
    confirming: u64,
    /// The mentions at the end of the span, if they were received with the daily counts.
    tail: Option<Tail>,
}

impl Divided {
    /// A plan of which nothing comes from the store, after this number of requests for daily counts.
    fn unstored(span: Range<i64>, confirming: u64) -> Self {
        let division = Division { stored: Vec::new(), read: vec![span.clone()] };
        Self { division, span, timeline: DailyCounts::default(), confirming, tail: None }
    }
}

/// Runs work that waits for the disk, or for a lock, on a thread of its own.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let ended = |error| Error::new(ErrorKind::Store, format!("the store could not be used: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(ended)?
}

/// Windows as the service takes them, and their instants in microseconds since 1970.
type Windows = Vec<(String, Range<i64>)>;

impl Driver {
    /// True if the mentions of a plan need no request.
    pub(super) fn is_stored(&self, plan: &RequestPlan) -> bool {
        let Some(from) = usable(&self.config) else { return false };
        let found = candidates(&self.config, from, plan, self.query.begun).ok().flatten();
        found.is_some_and(|Candidates { subject, terms, span, regions, .. }| {
            divide(&span, &subject.filters, &regions, &terms).is_stored()
        })
    }

    /// True if no mention of a plan comes from the store.
    pub(super) fn is_unstored(&self, plan: &RequestPlan) -> bool {
        let Some(from) = usable(&self.config) else { return true };
        let found = candidates(&self.config, from, plan, self.query.begun).ok().flatten();
        found.is_none_or(|Candidates { subject, terms, span, regions, .. }| {
            let (division, _) = divide_for_timeline(&span, &subject.filters, &regions, &terms);
            division.stored.is_empty()
        })
    }

    /// The first request of a plan of which nothing is stored, if its days will be.
    pub(super) fn first_of_unstored(&self, plan: &RequestPlan) -> Option<RequestPlan> {
        let from = usable(&self.config).filter(|from| from.writes)?;
        let found = candidates(&self.config, from, plan, self.query.begun).ok().flatten()?;
        let Candidates { span, relative: false, .. } = found else { return None };
        let (_, windows) = self.windows_to_read(from, plan, &span).ok()?;
        let (words, _) = windows.into_iter().next()?;
        Some(RequestPlan { duration: Some(words), ..plan.clone() })
    }

    /// True if one response is expected to bring the stored mentions of a plan up to date, so that counting them costs as much
    /// as the request for their count, and saves those of the queries that follow.
    pub(super) fn refreshes(&self, plan: &RequestPlan, count: &PageRequest) -> bool {
        let invests = |from: &&FromStore| from.writes && from.freshness > TimeDelta::zero();
        let Some(from) = usable(&self.config).filter(invests) else { return false };
        let found = candidates(&self.config, from, plan, self.query.begun).ok().flatten();
        let Some(Candidates { subject, terms, span, relative, regions }) = found else { return false };
        let (division, confirmed_by) = divide_for_timeline(&span, &subject.filters, &regions, &terms);
        let connection = &self.config.connection;
        !relative
            && division.read.len() == 1
            && !from.has_answer(&count.key(connection.profile()), connection.now())
            && !direct(&self.config, plan, &division, 0)
            && self.tail_request(from, plan, &division, &confirmed_by, &subject, &regions).is_some()
    }

    /// Number of plans that take at least one request.
    pub(super) fn to_request(&self, plans: &[RequestPlan]) -> usize {
        let Self { config, requests, .. } = self;
        let Some(from) = &config.from_store else { return plans.len() };
        let (profile, now) = (config.connection.profile(), config.connection.now());
        let kept = |plan: &RequestPlan| {
            let asked = RequestPlan { timezone: requests.sent().timezone.clone(), ..plan.clone() };
            from.has_answer(&PageRequest::overview(asked).key(profile), now)
        };
        let stored = |plan: &RequestPlan| {
            let (Some(aid), Some(window)) = (&plan.aid, &plan.duration) else { return false };
            self.is_stored(&requests.in_window(aid, window))
        };
        plans.iter().filter(|plan| !stored(plan) && !kept(plan)).count()
    }

    /// Returns the mentions of one plan, from the store as far as it has them; `None` if the scan uses no store.
    pub(super) fn stored_first(
        self: &Arc<Self>,
        plan: &RequestPlan,
        asked: Option<u64>,
        pace: Pace,
    ) -> Option<Batches> {
        let from = usable(&self.config)?.clone();
        let (driver, plan) = (Arc::clone(self), plan.clone());
        if let Some(caller) = &self.query.budget.caller {
            self.config.connection.note_conditions(caller, &subject_of(&plan).filters);
        }
        let stream = try_stream! {
            let divided = driver.divided_alone(&from, &plan).await.map_err(|error| driver.at_plan(error, &plan))?;
            let Some(divided) = divided else {
                let mut rows = Arc::clone(&driver).mentions(plan, asked, pace, Arc::default(), Part::default());
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
                return;
            };
            let page = if driver.config.summary().is_some() { u64::MAX } else { plan.pages.map_or(1, |pages| pages.size) };
            let Divided { division, confirming, .. } = &divided;
            let saved = division.mentions().div_ceil(page).saturating_sub(*confirming);
            from.store.counters().divided(division.stored_days(), division.read_days(), saved);
            for mut rows in driver.segments(&from, &plan, divided, pace)? {
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
            }
        };
        Some(stream.boxed())
    }

    /// Divides a plan like [`divided`](Self::divided), after reads of its days by other queries have ended.
    async fn divided_alone(self: &Arc<Self>, from: &FromStore, plan: &RequestPlan) -> Result<Option<Divided>> {
        // A query with a limit may need less than what others read.
        if !from.writes || is_limited(&self.config) {
            return self.divided(from, plan).await;
        }
        let (in_flight, deadline) = (from.store.in_flight(), self.query.budget.deadline);
        if let Some(missing) = self.missing(from, plan) {
            in_flight.wait(&subject_of(plan), &missing, &self.config.query, deadline).await;
        }
        let divided = self.divided(from, plan).await?;
        if let Some(Divided { division, tail: None, .. }) = &divided
            && in_flight.wait(&subject_of(plan), &division.read, &self.config.query, deadline).await
        {
            // Now the store has them.
            return self.divided(from, plan).await;
        }
        Ok(divided)
    }

    /// Divides a plan. `None` if it is requested as it is, because that takes no more requests, and nothing is stored.
    async fn divided(self: &Arc<Self>, from: &FromStore, plan: &RequestPlan) -> Result<Option<Divided>> {
        let Self { config, .. } = self.as_ref();
        let profile = config.connection.profile();
        let found = match candidates(config, from, plan, self.query.begun) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.note(plan, &error);
                return Ok(None);
            }
        };
        let Candidates { subject, terms, span, relative, regions } = found;
        let filters = &subject.filters;
        let regions = self.sound(from, plan, &subject.aid, &span, regions).await;
        let (mut division, confirmed_by) = divide_for_timeline(&span, filters, &regions, &terms);
        let timeline = DailyCounts::default();
        if division.is_stored() {
            return Ok(Some(Divided { division, span, timeline, confirming: 0, tail: None }));
        }
        let timelines = Timelines::of(config, from, plan, &division, &confirmed_by, relative)?;
        let confirming = timelines.requests();
        // A relative period ends at an instant that only the service knows, and days are stored completely.
        let tail = match confirming > 0 && !relative {
            true => self.tail_request(from, plan, &division, &confirmed_by, &subject, &regions),
            false => None,
        };
        // What reads the tail confirms as well.
        let apart = confirming - u64::from(tail.is_some());
        let (limited, direct) = (is_limited(config), direct(config, plan, &division, apart));
        if relative {
            // The service resolves it.
            let invests = from.writes && from.freshness > TimeDelta::zero() && !limited;
            if !can_confirm(profile) || (direct && !invests) {
                return Ok(None);
            }
            let words = plan.duration.as_deref().unwrap_or_default();
            let timeline = match self.timeline(plan, &confirmed_by, words).await {
                Err(error) if is_refused(error.kind()) => {
                    self.note(plan, &error);
                    None
                }
                timeline => timeline?.ok(),
            };
            let Some(Timeline { window: Some(span), counts, as_of }) = timeline else { return Ok(None) };
            let (division, by) = divide_for_timeline(&span, filters, &regions, &terms);
            if by != confirmed_by && division.to_confirm().is_some() {
                return Ok(None);
            }
            let expected = Expected { asked: span.clone(), counts, as_of, filters: confirmed_by };
            let timeline = expected.whole(filters);
            let division = self.confirmed(from, terms, plan, division, &span, expected).await;
            return Ok(Some(Divided { division, span, timeline, confirming, tail: None }));
        }
        if direct {
            // Everything is read, and kept.
            return Ok((from.writes && !limited).then(|| Divided::unstored(span, 0)));
        }
        let Some(days) = division.to_confirm() else {
            return Ok(Some(Divided { division, span, timeline, confirming, tail: None }));
        };
        let Received { tail, timeline: received } = match tail {
            Some(request) => self.read_tail(from, plan, request).await?,
            None => Received::default(),
        };
        let mut counts = Vec::new();
        match received {
            Some(timeline) => counts.push(Ok(timeline)),
            None => {
                for words in &timelines.windows {
                    let timeline = match self.timeline(plan, &confirmed_by, words).await {
                        Ok(timeline) => timeline,
                        // It may answer the next query, and says nothing about the stored days.
                        Err(error) if is_refused(error.kind()) => {
                            self.note(plan, &error);
                            return Ok(Some(Divided::unstored(span, confirming)));
                        }
                        Err(error) => return Err(error),
                    };
                    let proves = timeline.is_ok();
                    counts.push(timeline);
                    if !proves {
                        break;
                    }
                }
            }
        }
        let asked = span_of(&days);
        let contradiction = match counts.last() {
            Some(Err(Unproved::Contradictory)) => Some("differ from its total and confirm no stored days".to_owned()),
            Some(Err(Unproved::NoCounts(Some(WindowTotal { total, from, to })))) => {
                // All days of the window are stored.
                let of_days =
                    division.read.is_empty() && division.stored.iter().all(|part| part.filters == confirmed_by);
                let same = asked == (from.timestamp_micros()..to.timestamp_micros());
                let stored = division.mentions();
                (of_days && same && *total != stored)
                    .then(|| format!("are missing, and its total of {total} is not that of the stored days, {stored}"))
            }
            _ => None,
        };
        let expected = match Expected::of(asked, confirmed_by, counts) {
            Ok(expected) => expected,
            Err(_) if let Some(what) = contradiction => {
                let message = format!("the daily counts of the service {what}: reading them");
                let error = Error::new(ErrorKind::Contradiction, message);
                self.note(
                    plan,
                    &error.advice("set trust = \"advisory\" in [counts] of the profile if they always differ"),
                );
                return Ok(Some(Divided::unstored(span, confirming)));
            }
            Err(_) => {
                let proved = |(of, region): &(Filters, Arc<Region>)| {
                    of == &subject.filters && (region.sealed || region.confirmed > region.as_of)
                };
                if regions.iter().any(proved) {
                    // They did before: this response alone says nothing about the stored days.
                    return Ok(Some(Divided::unstored(span, confirming)));
                }
                // The counts prove nothing, and are not expected to soon.
                self.distrust(from, &subject, plan).await;
                let terms = Terms { rescan: Some(profile.store.rescan.length()), ..terms };
                let division = divide(&span, filters, &regions, &terms);
                return Ok(Some(Divided { division, span, timeline, confirming, tail: None }));
            }
        };
        let timeline = expected.whole(filters);
        let tail = tail.filter(|tail| tail.is_last_of(&mut division));
        let division = self.confirmed(from, terms, plan, division, &span, expected).await;
        Ok(Some(Divided { division, span, timeline, confirming, tail }))
    }

    /// Returns the instants of a plan that the store lacks, as far as they are known without a request.
    fn missing(&self, from: &FromStore, plan: &RequestPlan) -> Option<Vec<Range<i64>>> {
        let found = candidates(&self.config, from, plan, self.query.begun).ok().flatten()?;
        let Candidates { subject, terms, span, regions, .. } = found;
        Some(divide(&span, &subject.filters, &regions, &terms).read)
    }

    /// True if a plan is the last of a query that reads up to the service's current time.
    fn ends_open(&self, plan: &RequestPlan) -> bool {
        self.config.plan.ends_open && plan.duration.as_deref() == self.requests.windows().next_back()
    }

    /// Returns the regions of a span whose files are complete, and notes the rest, whose days are requested.
    async fn sound(
        &self,
        from: &FromStore,
        plan: &RequestPlan,
        aid: &str,
        span: &Range<i64>,
        regions: Regions,
    ) -> Regions {
        let (store, aid, days) = (Arc::clone(&from.store), aid.to_owned(), days_of(span));
        let regions: Vec<_> = regions.iter().filter(|(_, region)| overlap(&region.days, &days)).cloned().collect();
        let checked = blocking(move || {
            let (mut sound, mut missing) = (Vec::with_capacity(regions.len()), None);
            // Regions share files.
            let mut complete: HashMap<PathBuf, bool> = HashMap::new();
            for (filters, region) in regions {
                let Some(file) = region.file() else {
                    sound.push((filters, region));
                    continue;
                };
                let path = store.folder(&Subject { aid: aid.clone(), filters: filters.clone() }).join(&file.path);
                let found = || path.metadata().is_ok_and(|found| found.len() == file.bytes);
                match *complete.entry(path.clone()).or_insert_with(found) {
                    false => missing = Some(path),
                    true => sound.push((filters, region)),
                }
            }
            Ok((sound, missing))
        });
        let (sound, missing) = match checked.await {
            Ok(checked) => checked,
            Err(error) => {
                self.note(plan, &error);
                return Regions::default();
            }
        };
        if let Some(path) = missing {
            let message = format!("{} is missing or damaged: requesting its days again", path.display());
            let advice = "`savedsearch store verify` lists such files";
            self.note(plan, &Error::new(ErrorKind::Store, message).advice(advice));
        }
        Arc::new(sound)
    }

    /// Returns the rows of a divided plan, part by part in the order of the scan.
    fn segments(
        self: &Arc<Self>,
        from: &FromStore,
        plan: &RequestPlan,
        divided: Divided,
        pace: Pace,
    ) -> DataFusionResult<Vec<Batches>> {
        let ScanConfig { spec, mode, .. } = self.config.as_ref();
        let Divided { division, span, timeline, tail, .. } = divided;
        let (span, timeline) = (&span, &Arc::new(timeline));
        let order = mode.order();
        let by_time = order.is_some_and(|order| spec.time.as_ref() == Some(&order.column));
        let Division { stored, read } = division;
        let reads = read.into_iter().map(|range| {
            let start = range.start;
            let rows = Arc::clone(self).remainder(from, plan, range, span.end, timeline, pace)?;
            Ok((start, rows))
        });
        let mut reads: Vec<(i64, Batches)> = reads.collect::<Result<_>>().map_err(|error| self.at_plan(error, plan))?;
        reads.extend(tail.map(|tail| (tail.start, stream::iter(tail.rows.into_iter().map(Ok)).boxed())));
        let mut segments: Vec<(i64, Batches)> = Vec::new();
        if by_time {
            // Parts follow each other, so that a reader that has enough opens no more files.
            for part in stored {
                let start = start_of(part.days.start);
                let part = StoredPart { plan: plan.clone(), stored: vec![part], span: span.clone() };
                segments.push((start, self.files(from, &[part])?));
            }
            segments.extend(reads);
            segments.sort_by_key(|(start, _)| *start);
            if order.is_some_and(|order| order.options.descending) {
                segments.reverse();
            }
        } else {
            let part = StoredPart { plan: plan.clone(), stored, span: span.clone() };
            match self.together.get() {
                _ if part.stored.is_empty() => {}
                Some(together) => together.lock().unwrap_or_else(PoisonError::into_inner).push(part),
                None => segments.push((i64::MIN, self.files(from, &[part])?)),
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
        let pace = if is_limited(&self.config) { Pace::OnDemand } else { pace };
        let (wanted, mut windows) = self.windows_to_read(from, plan, &range)?;
        let order = self.config.mode.order();
        if order.is_some_and(|order| order.options.descending) {
            windows.reverse();
        }
        let by_time = order.is_none_or(|order| self.config.spec.time.as_ref() == Some(&order.column));
        let (from, plan, timeline) = (from.clone(), plan.clone(), Arc::clone(timeline));
        let stream = try_stream! {
            // Announced once the rows are asked for: a reader that never starts keeps nobody waiting.
            let fill = self.fill(&from, &plan, &range, &timeline);
            let open = self.ends_open(&plan) && range.end == end;
            let parts = windows.into_iter().map(|(words, instants)| {
                let within = range.start.max(instants.start)..range.end.min(instants.end);
                // Rows end there, although more may be requested.
                let last = (open && instants.end == wanted.end).then_some(range.end);
                let (label, fill) = (plan.named_window().map(str::to_owned), fill.clone());
                let part = Part { within: Some(within), label, fill, ..Part::default() };
                let asked = RequestPlan { duration: Some(words), ..plan.clone() };
                // Days that are not over may have more.
                let counted = days_of(&instants).filter_map(|day| timeline.get(&day)).sum();
                if counted > 0 {
                    self.config.connection.client().expect(asked.clone(), counted);
                }
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

    /// The instants that are requested for a range of a plan, and their windows: whole days if they are stored.
    fn windows_to_read(
        &self,
        from: &FromStore,
        plan: &RequestPlan,
        range: &Range<i64>,
    ) -> Result<(Range<i64>, Windows)> {
        let profile = self.config.connection.profile();
        let days = self.days_to_store(range);
        let wanted = match self.fills(from) && !days.is_empty() {
            true => range.start.min(start_of(days.start))..range.end.max(start_of(days.end)),
            false => range.clone(),
        };
        let windows = windows_between(&profile.window, wanted.clone(), plan.zone(profile))?;
        Ok((wanted, windows))
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

    /// Notes that the store was not used.
    fn note(&self, plan: &RequestPlan, error: &Error) {
        let client = self.config.connection.client();
        client.log().note(&self.query.budget, plan.aid.clone(), error.to_string());
    }
}
