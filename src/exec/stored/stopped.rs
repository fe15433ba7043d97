//! Days that were read completely before a read stopped: at the end of its budget, because the service became unavailable, or
//! because nobody wants its rows any more.
//!
//! ```text
//! windows   [ complete ][ complete ][ stopped …          ][ not requested ]
//! days       ───────────────────────────────▶│ stored
//!            proven by their pages     as many received as the first response counts
//! ```
//!
//! A window whose pages ended is complete by their proof. Of the window in which the read stopped, the days that the read has passed
//! are complete as long as their mentions are as many as the first response counts, whose counts add up to an exact total. The total
//! must be the same in all pages: otherwise mentions that arrived may hide others that were missed. Windows are not made smaller for
//! this, because that would cost requests.
//!
//! Invariant: a day that nothing proves is not stored.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_stream::try_stream;
use chrono::{DateTime, Utc};
use datafusion::error::DataFusionError;
use futures::StreamExt;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::fill::{Fill, WindowPages};
use super::timeline::DailyCounts;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::answer::Answer;
use crate::exec::buckets::are_days;
use crate::exec::stream::{Batches, Driver};
use crate::numbers::counted;
use crate::profile::{Direction, Zone};
use crate::request::RequestPlan;
use crate::store::{Day, blocking, date_of, day_of, days_of, start_of};

/// A window of a read into the store.
#[derive(Clone)]
pub(super) struct FillWindow {
    /// Its plan.
    pub(super) plan: RequestPlan,
    /// The instants that it is read for, in microseconds since 1970.
    pub(super) instants: Range<i64>,
    /// Its first response, once it has arrived.
    pub(super) first: Arc<OnceLock<Answer>>,
    /// Observations about its pages.
    pub(super) pages: Arc<WindowPages>,
}

/// Passes the rows of a window on, and records that it is complete once they have ended, or that the read stopped in it: with an
/// error, or because the stream was dropped.
pub(super) fn recording_end(mut rows: Batches, fill: Arc<Fill>, window: FillWindow) -> Batches {
    let stream = try_stream! {
        let mut within = Within { fill, window: Some(window) };
        while let Some(batch) = rows.next().await {
            if batch.is_err() {
                within.stop();
            }
            yield batch?;
        }
        within.complete();
    };
    stream.boxed()
}

/// A window that is being read.
struct Within {
    fill: Arc<Fill>,
    /// `None` once its end is recorded.
    window: Option<FillWindow>,
}

impl Within {
    fn stop(&mut self) {
        if let Some(window) = self.window.take() {
            self.fill.note_stopped(window);
        }
    }

    fn complete(&mut self) {
        if let Some(window) = self.window.take() {
            self.fill.note_complete(&window);
        }
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Stores the days that a read has received completely, if its stream is dropped.
pub(super) struct IfDropped(Option<(Arc<Driver>, Arc<Fill>, RequestPlan)>);

impl IfDropped {
    pub(super) fn new(driver: &Arc<Driver>, fill: Option<&Arc<Fill>>, plan: &RequestPlan) -> Self {
        Self(fill.map(|fill| (Arc::clone(driver), Arc::clone(fill), plan.clone())))
    }

    /// Leaves it to the stream to store its days.
    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for IfDropped {
    fn drop(&mut self) {
        let Some((driver, fill, plan)) = self.0.take() else { return };
        // Outside a runtime, nothing can be written any more.
        if let Ok(runtime) = Handle::try_current()
            && !fill.received().is_empty()
        {
            runtime.spawn(async move { driver.keep_dropped(fill, &plan).await });
        }
    }
}

/// Longest wait for the tasks of a stream that was dropped.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks at them.
const PAUSE: Duration = Duration::from_millis(10);

impl Driver {
    /// Stores the days that a read had received completely when it stopped with an error, and returns the error with what is
    /// stored.
    pub(super) async fn stopped(&self, fill: &Fill, plan: &RequestPlan, error: DataFusionError) -> DataFusionError {
        let Some(own) = Error::find(&error).filter(|own| is_stop(own.kind())) else { return error };
        let own = own.clone();
        let days = match self.commit_complete(fill).await {
            Ok(days) => days,
            Err(failed) => {
                self.note_unstored(plan, &failed);
                return error;
            }
        };
        match described(&days, &fill.days, &fill.subject.aid) {
            Some(stored) => own.and(&stored).into(),
            None if own.kind() == ErrorKind::Budget => {
                own.and(&format!("no day of {} was stored", fill.subject.aid)).into()
            }
            None => error,
        }
    }

    /// Stores the days that a read had received completely when its stream was dropped. The statement may have been cancelled, or have
    /// had enough at a LIMIT: only its caller knows which, and if the days are worth a note.
    async fn keep_dropped(&self, fill: Arc<Fill>, plan: &RequestPlan) {
        // A task that is ending may still add a page.
        let latest = Instant::now() + PATIENCE;
        while Arc::strong_count(&fill) > 1 {
            if Instant::now() >= latest {
                return;
            }
            sleep(PAUSE).await;
        }
        match self.commit_complete(&fill).await {
            Ok(days) => {
                let Some(stored) = described(&days, &fill.days, &fill.subject.aid) else { return };
                fill.from.store.in_flight().note_stored(self.config.connection.client().redact(&stored).into());
            }
            Err(error) => self.note_unstored(plan, &error),
        }
    }

    /// Makes the days that were read completely a part of the store, and returns them.
    async fn commit_complete(&self, fill: &Fill) -> Result<Vec<Range<Day>>> {
        let doubtful = self.scan.incomplete.load(Ordering::Relaxed) > 0 || self.degraded.load(Ordering::Relaxed);
        if doubtful || fill.older.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let received = fill.received();
        let mut days = whole_days(fill.complete());
        let ahead = self.config.connection.client().ahead();
        if let Some(window) = fill.stopped_in() {
            let counted = self.counted_days(fill, &window, &received, fill.begun + ahead);
            days.extend(counted.into_iter().flatten());
        }
        // The daily counts of the plan are those of another response.
        let agrees = |day: &Day| fill.timeline.get(day).is_none_or(|expected| count_of(&received, *day) == *expected);
        days.retain(|day| fill.days.contains(day) && agrees(day));
        let days = runs(&days);
        if days.is_empty() {
            return Ok(days);
        }
        let stored = fill.commit(ahead, Some(days)).await?;
        let store = Arc::clone(&fill.from.store);
        blocking(move || store.note_ahead(ahead)).await?;
        Ok(runs(&stored.into_iter().map(|(day, _)| day).collect()))
    }

    /// The days from the beginning of a window on that the read has passed, in the order of its pages, and of which as many mentions
    /// were received as its first response counts.
    fn counted_days(
        &self,
        fill: &Fill,
        window: &FillWindow,
        received: &DailyCounts,
        as_of: DateTime<Utc>,
    ) -> Option<Range<Day>> {
        let profile = self.config.connection.profile();
        let FillWindow { plan, instants, first, pages } = window;
        let sort = profile.sort.values.iter().find(|sort| Some(&sort.value) == plan.sort.as_ref());
        let by_time = sort.filter(|sort| Some(&sort.column) == profile.tables.mentions.time.as_ref())?;
        // The end of a window shows whether the values of its filters mean what they should, and times without a zone.
        if !plan.filters.is_empty() || fill.assumed.load(Ordering::Relaxed) || !fill.is_read_in_order(pages) {
            return None;
        }
        let timeline = self.timeline_in(first.get()?, as_of).ok()?.ok()?;
        // Longer buckets would show days without mentions.
        let end = timeline.window.as_ref().map_or(instants.end, |window| window.end);
        let buckets = timeline.counts.keys().map(|day| (start_of(*day), None)).collect();
        if !are_days(Zone::UTC, buckets, (None, Some(end))) {
            return None;
        }
        Some(counted_run(instants, by_time.direction, &timeline.counts, received))
    }
}

/// True for errors that end a read although nothing contradicts what was read.
fn is_stop(kind: ErrorKind) -> bool {
    use ErrorKind::{Budget, Connect, Quota, Throttled, Timeout, Unavailable};
    matches!(kind, Budget | Connect | Quota | Throttled | Timeout | Unavailable)
}

/// Returns the whole days within these instants, some of which follow each other.
pub(super) fn whole_days(mut instants: Vec<Range<i64>>) -> BTreeSet<Day> {
    instants.sort_unstable_by_key(|part| part.start);
    let mut joined: Vec<Range<i64>> = Vec::new();
    for part in instants {
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    joined.iter().flat_map(inner_days).collect()
}

/// Returns the days that lie within a span completely.
fn inner_days(span: &Range<i64>) -> Range<Day> {
    let (first, end) = (day_of(span.start), day_of(span.end));
    let first = if start_of(first) < span.start { first.saturating_add(1) } else { first };
    first..end.max(first)
}

/// Returns the days from one end of a window on that have as many mentions as expected, up to the day of the last mention that was
/// received, which may have more. The window is read from that end.
fn counted_run(
    instants: &Range<i64>,
    direction: Direction,
    expected: &DailyCounts,
    received: &DailyCounts,
) -> Range<Day> {
    let days = inner_days(instants);
    let lacks = |day: &Day| count_of(received, *day) != count_of(expected, *day);
    let of_window = days_of(instants);
    let reached = received.iter().filter(|(day, count)| **count > 0 && of_window.contains(day)).map(|(day, _)| *day);
    match direction {
        Direction::Asc => {
            let passed = days.start..reached.max().map_or(days.start, |last| last.clamp(days.start, days.end));
            passed.start..passed.clone().find(lacks).unwrap_or(passed.end)
        }
        Direction::Desc => {
            let passed = reached.min().map_or(days.end, |last| (last + 1).clamp(days.start, days.end))..days.end;
            passed.clone().rev().find(lacks).map_or(passed.start, |day| day + 1)..passed.end
        }
    }
}

/// The count of a day; a day without mentions may be missing.
fn count_of(counts: &DailyCounts, day: Day) -> u64 {
    counts.get(&day).copied().unwrap_or_default()
}

/// Returns days as ranges, in order of time.
pub(super) fn runs(days: &BTreeSet<Day>) -> Vec<Range<Day>> {
    let mut runs: Vec<Range<Day>> = Vec::new();
    for day in days {
        match runs.last_mut() {
            Some(last) if last.end == *day => last.end = day.saturating_add(1),
            _ => runs.push(*day..day.saturating_add(1)),
        }
    }
    runs
}

/// As in `the days of 183772 from 2026-05-01 to 2026-05-03 are stored`; `None` if no day is stored. `all`: the days that were to be
/// read.
fn described(days: &[Range<Day>], all: &Range<Day>, aid: &str) -> Option<String> {
    let number: u64 = days.iter().map(|days| days.len() as u64).sum();
    Some(match days {
        [] => return None,
        [days] if days == all => format!("all days of {aid} are stored"),
        [days] if number == 1 => format!("the day {} of {aid} is stored", date_of(days.start)),
        [days] => {
            let (first, last) = (date_of(days.start), date_of(days.end - 1));
            format!("the days of {aid} from {first} to {last} are stored")
        }
        _ => format!("of {aid}, {} are stored", counted(number, "day")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::span_of;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn days_of_windows_that_follow_each_other_are_whole() {
        let day = |day: Day| start_of(day);
        let noon = day(12) + 12 * HOUR;
        assert_eq!(runs(&whole_days(vec![noon..day(15), day(10)..noon])), vec![10..15; 1]);
        assert_eq!(runs(&whole_days(vec![day(10)..noon, noon + 1..day(15)])), [10..12, 13..15]);
        assert_eq!(inner_days(&span_of(&(3..9))), 3..9);
        assert!(inner_days(&(noon..noon + HOUR)).is_empty());
    }

    #[test]
    fn days_are_complete_as_far_as_their_mentions_are_those_that_were_counted() {
        let expected = DailyCounts::from([(10, 3), (12, 2), (13, 4)]);
        let received = DailyCounts::from([(10, 3), (12, 2), (13, 1)]);
        let run = |direction, received: &DailyCounts| counted_run(&span_of(&(10..15)), direction, &expected, received);
        assert_eq!(run(Direction::Asc, &received), 10..13);
        // The last day of a window that was read from its end on has no mentions.
        assert_eq!(run(Direction::Desc, &received), 14..15);
        // More than were counted are others.
        let more = DailyCounts::from([(10, 4), (11, 1)]);
        assert!(run(Direction::Asc, &more).is_empty());
        // The day that is being read may have later mentions, also if late ones have made up for them.
        assert!(run(Direction::Asc, &DailyCounts::from([(10, 3)])).is_empty());
        assert_eq!(run(Direction::Asc, &DailyCounts::from([(10, 3), (12, 2)])), 10..12);
        assert_eq!(run(Direction::Desc, &DailyCounts::from([(13, 4)])), 14..15);
        assert_eq!(run(Direction::Desc, &DailyCounts::from([(13, 4), (12, 1)])), 13..15);
        assert!(
            run(Direction::Asc, &DailyCounts::new()).is_empty() && run(Direction::Desc, &DailyCounts::new()).is_empty()
        );
    }

    #[test]
    fn what_is_stored_is_named_by_its_days() {
        let named = |days: &[Range<Day>]| described(days, &(0..90), "7").unwrap_or_default();
        assert_eq!(named(&[]), "");
        assert_eq!(named(&[0..30; 1]), "the days of 7 from 1970-01-01 to 1970-01-30 are stored");
        assert_eq!(named(&[60..90; 1]), "the days of 7 from 1970-03-02 to 1970-03-31 are stored");
        assert_eq!(named(&[10..20; 1]), "the days of 7 from 1970-01-11 to 1970-01-20 are stored");
        assert_eq!(named(&[89..90; 1]), "the day 1970-03-31 of 7 is stored");
        assert_eq!(named(&[0..90; 1]), "all days of 7 are stored");
        assert_eq!(named(&[0..10, 20..21]), "of 7, 11 days are stored");
    }
}
