//! Mentions from the store, and requests for those that it lacks.
//!
//! ```text
//! plan ─ coverage ─▶ all stored and fresh ─▶ files
//!             ├────▶ some stored ─ one timeline request ─▶ files of days whose numbers agree, requests for all others
//!             └────▶ too few to save a request ─▶ requests
//! ```
//!
//! Days that are requested completely are written to the store while their rows are returned, and those of a query that stops as
//! far as they are proven to be complete ([`stopped`]). If the store cannot be read or
//! written, the query does not fail: it adds a note, and requests the data from the service.

mod candidates;
mod checked;
mod declared_later;
mod divided;
mod file_columns;
mod files;
mod fill;
#[cfg(feature = "distributed")]
mod in_files;
mod stopped;
mod tail;
mod timeline;
mod together;
mod words;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use async_stream::try_stream;
use datafusion::error::Result as DataFusionResult;
use futures::{StreamExt, stream};

pub(crate) use self::candidates::can_confirm;
#[cfg(all(test, feature = "simulator"))]
pub(crate) use self::candidates::decisions;
#[cfg(feature = "shell")]
pub(super) use self::candidates::may_read;
use self::candidates::{Decided, direct, is_limited, subject_of, usable};
pub(super) use self::candidates::{Divisions, ExpectedUse, Size, expected, is_used, likely};
use self::divided::Divided;
pub(super) use self::files::StoredPart;
pub(super) use self::fill::{Fill, WindowPages};
#[cfg(feature = "distributed")]
pub(crate) use self::in_files::{FileScanOptions, InFiles};
use self::stopped::{FillWindow, IfDropped, recording_end};
use self::timeline::DailyCounts;
pub(super) use self::words::expected_indexes;
use super::read_options::ReadOptions;
use super::scan_config::ScanConfig;
use super::stream::{Batches, Driver};
use crate::client::Prefetch;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::pushdown::windows_between;
use crate::request::{PageRequest, RequestPlan};
use crate::store::{
    Division, Filters, FromStore, Region, Regions, Subject, blocking, days_of, is_full, overlap, start_of, unstored,
};

/// Windows as the service takes them, and their instants in microseconds since 1970.
type Windows = Vec<(String, Range<i64>)>;

impl Driver {
    /// The division of a plan; `None` if it has nothing to do with the store, or the store cannot be read.
    fn decided(&self, plan: &RequestPlan) -> Option<Arc<Decided>> {
        self.divisions.of(&self.config, usable(&self.config)?, plan).ok().flatten()
    }

    /// True if the mentions of a plan need no request.
    pub(super) fn is_stored(&self, plan: &RequestPlan) -> bool {
        self.decided(plan).is_some_and(|decided| decided.division.is_stored())
    }

    /// True if no mention of a plan comes from the store, and its windows are known: those of a relative period that is stored follow
    /// from its daily counts.
    pub(super) fn is_unstored(&self, plan: &RequestPlan) -> bool {
        let Some((from, decided)) = usable(&self.config).zip(self.decided(plan)) else { return true };
        let resolved = decided.relative && from.invests() && can_confirm(self.config.connection.profile());
        decided.division.stored.is_empty() && !resolved
    }

    /// The first request of a plan of which nothing is stored, if its days will be.
    pub(super) fn first_of_unstored(&self, plan: &RequestPlan) -> Option<RequestPlan> {
        let from = usable(&self.config).filter(|from| from.writes)?;
        let decided = self.decided(plan).filter(|decided| !decided.relative)?;
        let (_, windows) = self.windows_to_read(from, plan, &decided.span).ok()?;
        let (words, _) = windows.into_iter().next()?;
        Some(RequestPlan { duration: Some(words), ..plan.clone() })
    }

    /// True if one response is expected to bring the stored mentions of a plan up to date, so that counting them costs as much
    /// as the request for their count, and saves those of the queries that follow.
    pub(super) fn refreshes(&self, plan: &RequestPlan, count: &PageRequest) -> bool {
        let Some(from) = usable(&self.config).filter(|from| from.invests()) else { return false };
        let Some(decided) = self.decided(plan) else { return false };
        let Decided { subject, relative, regions, division, confirmed_by, .. } = decided.as_ref();
        let connection = &self.config.connection;
        !relative
            && division.read.len() == 1
            && !from.has_answer(&count.key(connection.profile()), connection.now())
            && !direct(&self.config, plan, division, 0)
            && self.tail_request(from, plan, division, confirmed_by, subject, regions).is_some()
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
        prefetch: Prefetch,
    ) -> Option<Batches> {
        let from = usable(&self.config)?.clone();
        let (driver, plan) = (Arc::clone(self), plan.clone());
        if let Some(caller) = &self.query.budget.caller {
            self.config.connection.note_conditions(caller, &subject_of(&plan).filters);
        }
        let stream = try_stream! {
            let divided = driver.divided_alone(&from, &plan).await.map_err(|error| driver.at_plan(error, &plan))?;
            let Some(divided) = divided else {
                let read = ReadOptions::default();
                let mut rows = Arc::clone(&driver).mentions(plan, asked, prefetch, Arc::default(), read);
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
                return;
            };
            let page = if driver.config.summary().is_some() { u64::MAX } else { plan.pages.map_or(1, |pages| pages.size) };
            let Divided { division, confirming, .. } = &divided;
            let saved = division.mentions().div_ceil(page).saturating_sub(*confirming);
            from.store.counters().divided(division.stored_days(), division.read_days(), saved);
            driver.note_declared_later(&from, &plan, &division.stored).await;
            for mut rows in driver.segments(&from, &plan, divided, prefetch)? {
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
            }
        };
        Some(stream.boxed())
    }

    /// Returns the instants of a plan that the store lacks, as far as they are known without a request.
    fn missing(&self, plan: &RequestPlan) -> Option<Vec<Range<i64>>> {
        Some(self.decided(plan)?.apart().read.clone())
    }

    /// True if a plan is the last of a query that reads up to the service's current time.
    fn ends_open(&self, plan: &RequestPlan) -> bool {
        self.config.plan.ends_open && plan.duration.as_deref() == self.requests.windows().next_back()
    }

    /// Returns the regions of a division whose files are complete, and true if those of all are. Notes the rest, whose days are
    /// requested.
    async fn sound(&self, from: &FromStore, plan: &RequestPlan, decided: &Decided) -> (Regions, bool) {
        let Decided { subject, span, regions, .. } = decided;
        let (store, aid, days) = (Arc::clone(&from.store), subject.aid.clone(), days_of(span));
        let regions: Vec<_> = regions.iter().filter(|(_, region)| overlap(&region.days, &days)).cloned().collect();
        let checked = blocking(move || {
            let file_of = |(filters, region): &(Filters, Arc<Region>)| {
                let subject = Subject { aid: aid.clone(), filters: filters.clone() };
                region.file().map(|file| (store.folder(&subject).join(&file.path), file.bytes))
            };
            // Regions share files.
            let files: BTreeSet<_> = regions.iter().filter_map(file_of).collect();
            let (lost, unknown) = match store.lost(&files) {
                Ok(lost) => (lost, None),
                Err(error) => (files, Some(error)),
            };
            let missing = lost.first().map(|(path, _)| {
                let message = format!("{} is missing or damaged: requesting its days again", path.display());
                Error::new(ErrorKind::Store, message).advice(Phrase::from(Tool::VerifyStore) + " lists such files")
            });
            let sound = regions.into_iter().filter(|region| file_of(region).is_none_or(|file| !lost.contains(&file)));
            Ok((sound.collect::<Vec<_>>(), unknown.or(missing)))
        });
        let (sound, failed) = match checked.await {
            Ok(checked) => checked,
            Err(error) => {
                self.note(plan, &error);
                return (Regions::default(), false);
            }
        };
        let all = failed.is_none();
        if let Some(error) = failed {
            self.note(plan, &error);
        }
        (Arc::new(sound), all)
    }

    /// Returns the rows of a divided plan, part by part in the order of the scan.
    fn segments(
        self: &Arc<Self>,
        from: &FromStore,
        plan: &RequestPlan,
        divided: Divided,
        prefetch: Prefetch,
    ) -> DataFusionResult<Vec<Batches>> {
        let ScanConfig { spec, mode, .. } = self.config.as_ref();
        let Divided { division, span, timeline, tail, .. } = divided;
        let (span, timeline) = (&span, &Arc::new(timeline));
        let order = mode.order();
        let by_time = order.is_some_and(|order| spec.time.as_ref() == Some(&order.column));
        let Division { stored, read } = division;
        let reads = read.into_iter().map(|range| {
            let start = range.start;
            let rows = Arc::clone(self).remainder(from, plan, range, span.end, timeline, prefetch)?;
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
                segments.push((start, self.files(from, vec![part])?));
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
                None => segments.push((i64::MIN, self.files(from, vec![part])?)),
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
        prefetch: Prefetch,
    ) -> Result<Batches> {
        let prefetch = if is_limited(&self.config) { Prefetch::OnDemand } else { prefetch };
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
            // Windows follow each other in order of time, but in no other order.
            let sequential = by_time || windows.len() == 1;
            // Declared before the rows, so that it is dropped after them. Merged windows are read at the same time.
            let mut if_dropped = IfDropped::new(&self, fill.as_ref().filter(|_| sequential), &plan);
            let open = self.ends_open(&plan) && range.end == end;
            let mut parts: Vec<Batches> = Vec::with_capacity(windows.len());
            for (words, instants) in windows {
                let within = range.start.max(instants.start)..range.end.min(instants.end);
                // Rows end there, although more may be requested.
                let last = (open && instants.end == wanted.end).then_some(range.end);
                let (label, fill) = (plan.named_window().map(str::to_owned), fill.clone());
                let asked = RequestPlan { duration: Some(words), ..plan.clone() };
                // Days that are not over may have more.
                let counted = days_of(&instants).filter_map(|day| timeline.get(&day)).sum();
                if counted > 0 {
                    self.config.connection.client().expect(asked.clone(), counted);
                }
                let window = FillWindow { plan: asked, instants, first: Arc::default(), pages: Arc::default() };
                let first = fill.is_some().then(|| Arc::clone(&window.first));
                let pages = Arc::clone(&window.pages);
                let within = Some(within);
                let read = ReadOptions { within, label, first, fill: fill.clone(), pages, ..ReadOptions::default() };
                let rows = Arc::clone(&self).window(window.plan.clone(), read, last, prefetch);
                parts.push(match fill {
                    Some(fill) => recording_end(rows, fill, window),
                    None => rows,
                });
            }
            let mut rows = match sequential {
                true => stream::iter(parts).flatten().boxed(),
                false => self.merged(parts)?,
            };
            let mut stopped = None;
            while let Some(batch) = rows.next().await {
                match batch {
                    Ok(batch) => yield batch,
                    Err(error) => {
                        stopped = Some(error);
                        break;
                    }
                }
            }
            drop(rows);
            if_dropped.disarm();
            match (fill, stopped) {
                (Some(fill), None) => self.commit(fill, &plan).await,
                // Merged windows are still being read.
                (Some(fill), Some(error)) if sequential => Err(self.stopped(&fill, &plan, error).await)?,
                (_, Some(error)) => Err(error)?,
                (None, None) => {}
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
    fn window(self: Arc<Self>, plan: RequestPlan, read: ReadOptions, last: Option<i64>, prefetch: Prefetch) -> Batches {
        let place = plan.clone();
        let mut rows = Arc::clone(&self).mentions(plan, None, prefetch, Arc::default(), read);
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
        let line = if is_full(error) { unstored(error, "read") } else { error.line() };
        client.log().note(&self.query.budget, plan.aid.clone(), line);
    }

    /// Notes that the mentions of a plan were not stored.
    fn note_unstored(&self, plan: &RequestPlan, error: &Error) {
        let client = self.config.connection.client();
        client.log().note(&self.query.budget, plan.aid.clone(), unstored(error, "read"));
    }
}
