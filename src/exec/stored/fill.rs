//! Days that a query reads completely, and that become a part of the store.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow::array::AsArray;
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, TimeDelta, Utc};

use super::candidates::{is_limited, subject_of, terms};
use super::stopped::{FillWindow, runs, whole_days};
use super::timeline::DailyCounts;
use crate::client::is_round;
use crate::decode::Decoded;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::stream::Driver;
use crate::profile::Direction;
use crate::request::{CLOCK_SKEW, RequestPlan};
use crate::store::{Day, Filling, FromStore, Reading, Subject, blocking, date_of, day_of, days_of, start_of};

/// Days that are read into the store by one plan.
pub(in crate::exec) struct Fill {
    pub(super) from: FromStore,
    pub(super) subject: Subject,
    pub(super) days: Range<Day>,
    /// The daily counts of the service before.
    pub(super) timeline: Arc<DailyCounts>,
    /// Set if a page came from an older copy of the data than the first one.
    pub(super) older: AtomicBool,
    /// Set if a page has times without a zone.
    pub(super) assumed: AtomicBool,
    /// Set if mentions were read by the values of a filter, and not in the order of the window.
    by_value: AtomicBool,
    /// Column of the time of a mention.
    time: String,
    /// Numbers of mentions received so far.
    received: Mutex<DailyCounts>,
    /// The instants of windows that were read completely, in microseconds since 1970.
    complete: Mutex<Vec<Range<i64>>>,
    /// Set if one of them ended at a round number of mentions, and a part of it is not among them.
    capped: AtomicBool,
    /// Order of time in which mentions arrive, if it is known.
    order: Option<Direction>,
    /// The window in which the read stopped with an error.
    stopped: Mutex<Option<FillWindow>>,
    /// Instant up to which the data of the first page was complete.
    known_at: OnceLock<DateTime<Utc>>,
    /// Announces the read to other queries.
    reading: Arc<Reading>,
    /// Time of the first request, by our clock.
    pub(super) begun: DateTime<Utc>,
    /// Number of erasures in the store before that.
    erasures: Option<i64>,
    filling: Mutex<Option<Arc<Filling>>>,
}

/// Observations about the pages of one window so far. Windows may be read at the same time, and may share a day.
#[derive(Debug, Default)]
pub(in crate::exec) struct WindowPages(Mutex<Shown>);

#[derive(Debug, Default)]
struct Shown {
    totals: BTreeSet<u64>,
    /// Set once the timeline of a page adds up to its total.
    counted: bool,
    /// Mentions that came.
    mentions: u64,
    /// The first and the last of their days.
    days: Option<(Day, Day)>,
}

impl Driver {
    /// True if what queries read completely is stored.
    pub(super) fn fills(&self, from: &FromStore) -> bool {
        from.writes && !self.settings.lossy_text && !is_limited(&self.config)
    }

    /// The days of a range that are stored when they are read: those that have begun, because others change until they have.
    pub(super) fn days_to_store(&self, range: &Range<i64>) -> Range<Day> {
        let tomorrow = day_of((self.config.connection.now() + CLOCK_SKEW).timestamp_micros()) + 1;
        let days = days_of(range);
        days.start..days.end.min(tomorrow).max(days.start)
    }

    /// Begins to store the days of a range, and announces that; `None` if nothing is stored.
    pub(super) fn fill(
        &self,
        from: &FromStore,
        plan: &RequestPlan,
        range: &Range<i64>,
        timeline: &Arc<DailyCounts>,
    ) -> Option<Arc<Fill>> {
        let days = self.days_to_store(range);
        if !self.fills(from) || days.is_empty() {
            return None;
        }
        // A first page that was requested for an estimate may have waited since the query began.
        let begun = match self.outlook.get() {
            Some(_) => self.query.begun,
            None => self.config.connection.clock().now(),
        };
        let subject = subject_of(plan);
        let reading = from.store.in_flight().begin(&subject, &days, &self.config.query);
        let (from, timeline, filling) = (from.clone(), Arc::clone(timeline), Mutex::new(None));
        Some(Arc::new(Fill {
            from,
            subject,
            days,
            timeline,
            older: AtomicBool::new(false),
            assumed: AtomicBool::new(false),
            by_value: AtomicBool::new(false),
            time: self.config.spec.time.clone().unwrap_or_default(),
            received: Mutex::default(),
            complete: Mutex::default(),
            capped: AtomicBool::new(false),
            order: self.order_of_time(plan),
            stopped: Mutex::default(),
            known_at: OnceLock::new(),
            reading,
            begun,
            erasures: self.divisions.erasures(),
            filling,
        }))
    }

    /// The order of time in which the mentions of a plan arrive.
    fn order_of_time(&self, plan: &RequestPlan) -> Option<Direction> {
        let profile = self.config.connection.profile();
        let sort = profile.sort.values.iter().find(|sort| Some(&sort.value) == plan.sort.as_ref())?;
        (Some(&sort.column) == profile.tables.mentions.time.as_ref()).then_some(sort.direction)
    }

    /// Makes days that were read a part of the store, unless something is missing from them.
    pub(super) async fn commit(&self, fill: Arc<Fill>, plan: &RequestPlan) {
        if !self.try_commit(fill, plan).await {
            self.counters.unstored.add(1);
        }
    }

    /// As [`commit`](Self::commit). Returns true if all days are stored.
    async fn try_commit(&self, fill: Arc<Fill>, plan: &RequestPlan) -> bool {
        if self.scan.incomplete.load(Ordering::Relaxed) > 0 || self.degraded.load(Ordering::Relaxed) {
            return false;
        }
        if fill.older.load(Ordering::Relaxed) {
            let message = "the pages come from copies of the data of different age: their days are not stored";
            self.note(plan, &Error::new(ErrorKind::Contradiction, message));
            return false;
        }
        let ahead = self.config.connection.client().ahead();
        let shown = fill.shown();
        let all = shown.is_none();
        if !all {
            let message = "the read ended at a round number of mentions, which may be a limit of the service: days from its last \
                           mention on are not stored";
            self.config.connection.client().log().note(&self.query.budget, plan.aid.clone(), message);
        }
        if shown.as_ref().is_some_and(Vec::is_empty) {
            return false;
        }
        let counts = match fill.commit(ahead, shown).await {
            Ok(counts) => counts,
            Err(error) => {
                self.note_unstored(plan, &error);
                return false;
            }
        };
        let store = Arc::clone(&fill.from.store);
        if let Err(error) = blocking(move || store.note_ahead(ahead)).await {
            self.note(plan, &error);
        }
        self.compare_counts(&fill, &counts, plan).await;
        if all {
            self.compare_shown(&fill, plan).await;
        }
        all
    }

    /// Looks in the days that were read for the mentions that had come along with their counts, and that they lacked before. If one is
    /// still missing, such mentions tell nothing about stored days, and the counts alone confirm them.
    async fn compare_shown(&self, fill: &Fill, plan: &RequestPlan) {
        let lacking = self.divisions.lacking(&fill.subject, &fill.days);
        if lacking.is_empty() {
            return;
        }
        let (store, subject, now) = (Arc::clone(&fill.from.store), fill.subject.clone(), self.config.connection.now());
        let missing = blocking(move || {
            let regions = store.regions(&subject.aid)?;
            for (day, id) in lacking {
                let mut of_subject = regions.iter().filter(|(filters, _)| *filters == subject.filters);
                let Some((_, region)) = of_subject.find(|(_, region)| region.days.contains(&day)) else { continue };
                if !store.has_mention(&subject, region, day, &id)? {
                    store.disregard_shown(&subject, now)?;
                    return Ok(Some((day, id)));
                }
            }
            Ok(None)
        });
        match missing.await {
            Ok(None) => {}
            Ok(Some((day, id))) => {
                let message = format!(
                    "mention {id} of {} came along with the daily counts, but not with the mentions of that day: stored days are \
                     compared with the counts alone",
                    date_of(day)
                );
                self.config.connection.client().log().note(&self.query.budget, plan.aid.clone(), message);
            }
            Err(error) => self.note(plan, &error),
        }
    }

    /// Compares the numbers of mentions that were read with the timeline.
    async fn compare_counts(&self, fill: &Fill, counts: &[(Day, u64)], plan: &RequestPlan) {
        let (store, subject) = (Arc::clone(&fill.from.store), fill.subject.clone());
        let distrusted = blocking(move || store.distrusted(&subject)).await.ok().flatten();
        let terms = terms(&fill.from, &self.config.connection, || distrusted, self.query.begun);
        let agrees = |(day, count): &(Day, u64)| {
            !terms.had_settled(terms.now, *day) || fill.timeline.get(day).is_none_or(|expected| expected == count)
        };
        if let Some((day, count)) = counts.iter().find(|count| !agrees(count)) {
            let (expected, date) = (fill.timeline.get(day).copied().unwrap_or_default(), date_of(*day));
            // The day may have changed after it was counted. If the count has not changed, the service counts differently.
            match self.count_again(plan, &fill.subject.filters, *day).await {
                Ok(Some(again)) if again == expected => {}
                Ok(_) => return,
                Err(error) if error.kind() == ErrorKind::Budget => return,
                Err(error) => return self.note(plan, &error),
            }
            let message = format!(
                "the service's timeline counts {expected} mentions on {date}, but {count} were read: counts cannot \
                 confirm stored days, which are read again at the age set in the profile's [store]"
            );
            self.config.connection.client().log().note(&self.query.budget, plan.aid.clone(), message);
            self.distrust(&fill.from, &fill.subject, plan).await;
        }
    }

    /// Records that the timeline of a subject does not confirm its mentions.
    pub(super) async fn distrust(&self, from: &FromStore, subject: &Subject, plan: &RequestPlan) {
        if !from.writes {
            return;
        }
        let (store, subject, now) = (Arc::clone(&from.store), subject.clone(), self.config.connection.now());
        if let Err(error) = blocking(move || store.distrust(&subject, now)).await {
            self.note(plan, &error);
        }
    }
}

impl Fill {
    /// Adds a page of a window, in the table's columns. `ahead`: time by which the service's clock is ahead of ours.
    pub(in crate::exec) async fn add(&self, page: &Decoded, ahead: TimeDelta, of: &WindowPages) {
        self.reading.note_page();
        /// Clocks of copies differ by so much.
        const SKEW: TimeDelta = TimeDelta::minutes(1);
        if let Some(as_of) = page.echo.as_of() {
            let first = self.known_at.get_or_init(|| as_of);
            self.older.fetch_or(*first - as_of > SKEW, Ordering::Relaxed);
        }
        self.assumed.fetch_or(page.assumed.is_some(), Ordering::Relaxed);
        of.see(page.total, page.beside.timeline);
        let filling = self.filling(ahead, page.echo.as_of());
        // If it has failed, `commit` returns its error.
        filling.add(page.batch.clone()).await;
        // Only then: if the stream is dropped meanwhile, mentions that are not counted keep their day out of the store.
        if let Some(times) = page.batch.column_by_name(&self.time)
            && let Some(times) = times.as_primitive_opt::<TimestampMicrosecondType>()
        {
            let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
            // Most pages are in order of time.
            for of_day in times.values().chunk_by(|one, next| day_of(*one) == day_of(*next)) {
                let (day, mentions) = (day_of(of_day[0]), of_day.len() as u64);
                *received.entry(day).or_default() += mentions;
                of.count(day, mentions);
            }
        }
    }

    /// The writer of the days, which begins with the first page. `known_at`: the instant up to which that page's data was complete.
    fn filling(&self, ahead: TimeDelta, known_at: Option<DateTime<Utc>>) -> Arc<Filling> {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let Self { from, subject, days, begun, erasures, .. } = self;
            let as_of = *begun + ahead;
            let as_of = known_at.map_or(as_of, |known_at| known_at.min(as_of));
            Arc::new(Filling::start(from, subject.clone(), days, as_of, *erasures))
        };
        Arc::clone(filling.get_or_insert_with(start))
    }

    /// Records that mentions are read by the values of a filter.
    pub(in crate::exec) fn note_by_value(&self) {
        self.by_value.store(true, Ordering::Relaxed);
    }

    /// True if the pages of a window followed each other, with the same total.
    pub(super) fn is_read_in_order(&self, pages: &WindowPages) -> bool {
        !self.by_value.load(Ordering::Relaxed) && pages.shown().totals.len() <= 1
    }

    /// Records that a window was read completely. If its pages may be those of a limit, the days from the last mention on are not
    /// complete, unless the timeline counts them.
    pub(super) fn note_complete(&self, window: &FillWindow) {
        let shown = window.pages.shown();
        let capped = self.timeline.is_empty() && shown.may_be_capped();
        let complete = match capped {
            true => shown.before_last(&window.instants, self.order),
            false => window.instants.clone(),
        };
        self.capped.fetch_or(capped, Ordering::Relaxed);
        if complete.start < complete.end {
            self.complete.lock().unwrap_or_else(PoisonError::into_inner).push(complete);
        }
    }

    /// The days that windows show completely, if that is not all of them.
    fn shown(&self) -> Option<Vec<Range<Day>>> {
        let capped = self.capped.load(Ordering::Relaxed);
        capped.then(|| runs(&whole_days(self.complete()).into_iter().filter(|day| self.days.contains(day)).collect()))
    }

    /// The instants of the windows that were read completely, in microseconds since 1970.
    pub(super) fn complete(&self) -> Vec<Range<i64>> {
        self.complete.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that the read stopped in a window.
    pub(super) fn note_stopped(&self, window: FillWindow) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(window);
    }

    /// The window in which the read stopped, if it did.
    pub(super) fn stopped_in(&self) -> Option<FillWindow> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Numbers of mentions received so far.
    pub(super) fn received(&self) -> DailyCounts {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the days in `complete` a part of the store, or all of them. Returns the number of mentions of each.
    pub(super) async fn commit(&self, ahead: TimeDelta, complete: Option<Vec<Range<Day>>>) -> Result<Vec<(Day, u64)>> {
        let filling = self.filling(ahead, None);
        self.filling.lock().unwrap_or_else(PoisonError::into_inner).take();
        match Arc::try_unwrap(filling) {
            Ok(filling) => filling.commit(complete).await,
            Err(_) => Err(Error::new(ErrorKind::Store, "a page was still being written when its day was complete")),
        }
    }
}

impl WindowPages {
    /// Takes the total of a page, and the sum of its timeline.
    fn see(&self, total: Option<u64>, timeline: Option<u64>) {
        let mut shown = self.shown();
        shown.totals.extend(total);
        shown.counted |= total.is_some() && timeline == total;
    }

    /// Counts mentions of a day.
    fn count(&self, day: Day, mentions: u64) {
        let mut shown = self.shown();
        shown.mentions += mentions;
        shown.days = Some(shown.days.map_or((day, day), |(first, last)| (first.min(day), last.max(day))));
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// True if as many mentions came as the total says, and that is a number to which services limit totals, which no timeline
    /// confirms.
    fn may_be_capped(&self) -> bool {
        !self.counted && self.totals.last() == Some(&self.mentions) && is_round(self.mentions)
    }

    /// The instants of a window that were read before the day of the last mention, in this order.
    fn before_last(&self, window: &Range<i64>, order: Option<Direction>) -> Range<i64> {
        match (order, self.days) {
            // What is requested may be wider than the window.
            (Some(Direction::Asc), Some((_, last))) => window.start..start_of(last).min(window.end),
            (Some(Direction::Desc), Some((first, _))) => {
                start_of(first.saturating_add(1)).max(window.start)..window.end
            }
            _ => window.start..window.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::span_of;

    #[test]
    fn a_window_is_judged_by_its_own_pages() {
        let pages = |total: u64, counts: &[(Day, u64)]| {
            let pages = WindowPages::default();
            pages.see(Some(total), None);
            counts.iter().for_each(|(day, mentions)| pages.count(*day, *mentions));
            pages
        };
        // Two windows that share the day 12, which begins elsewhere in the zone of the service.
        let (first, second) = (pages(130, &[(10, 100), (12, 30)]), pages(300, &[(12, 100), (13, 200)]));
        assert!(!first.shown().may_be_capped() && second.shown().may_be_capped());
        let before = |order| second.shown().before_last(&span_of(&(12..20)), order);
        assert_eq!(before(Some(Direction::Asc)), span_of(&(12..13)));
        assert_eq!(before(Some(Direction::Desc)), span_of(&(13..20)));
        assert!(before(None).is_empty());
        second.see(Some(300), Some(300));
        assert!(!second.shown().may_be_capped(), "the timeline counts as many");
    }
}
