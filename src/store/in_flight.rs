//! Days that queries of this process are reading into the store, so that other queries wait for them instead of requesting
//! them as well.
//!
//! A query waits only for a read that makes progress, because a read may never end if its client has stopped reading.
//!
//! A read whose rows nobody wants any more stores its complete days afterwards. Only the one who stopped it can tell an interrupt from
//! a LIMIT, so the lines on what is stored wait here until they are taken.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::coverage::{days_of, overlap};
use super::region::{Day, Subject};

/// Time without a page after which a read is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks at a read that is waited for.
const PAUSE: Duration = Duration::from_millis(20);

/// Lines on what dropped reads have stored that wait to be taken; servers never take them.
const LINES: usize = 100;

/// The reads in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    reads: Mutex<Vec<Weak<Reading>>>,
    /// Days that dropped reads have stored, oldest first, such as `the days of 7 from 2026-05-01 to 2026-05-03 are stored`.
    stored: Mutex<VecDeque<String>>,
}

/// A read in flight; it has ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Reading {
    subject: Subject,
    days: Range<Day>,
    query: String,
    /// Time of the last page.
    last: Mutex<Instant>,
}

impl InFlight {
    /// Announces a read of days by a query.
    pub(crate) fn begin(&self, subject: &Subject, days: &Range<Day>, query: &str) -> Arc<Reading> {
        let last = Mutex::new(Instant::now());
        let reading = Arc::new(Reading { subject: subject.clone(), days: days.clone(), query: query.to_owned(), last });
        let mut all = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|reading| reading.strong_count() > 0);
        all.push(Arc::downgrade(&reading));
        reading
    }

    /// Waits until no other query reads days of these spans, in microseconds since 1970, or until the deadline. Returns whether
    /// one did. Two parts of the same query never wait for each other: the one may not go on before the other does.
    pub(crate) async fn wait(&self, subject: &Subject, spans: &[Range<i64>], query: &str, deadline: Instant) -> bool {
        let days: Vec<Range<Day>> = spans.iter().map(days_of).collect();
        let mut waited = false;
        while self.is_read(subject, &days, query) && Instant::now() < deadline {
            waited = true;
            sleep(PAUSE).await;
        }
        waited
    }

    /// Waits until all reads have ended, or those of a query, or until the deadline.
    pub(crate) async fn settle(&self, query: Option<&str>, deadline: Instant) {
        let under_way = || {
            let all = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().filter_map(Weak::upgrade).any(|reading| query.is_none_or(|query| reading.query == query))
        };
        while under_way() && Instant::now() < deadline {
            sleep(PAUSE).await;
        }
    }

    /// Records what a read has stored after its rows were dropped.
    pub(crate) fn note_stored(&self, line: String) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.len() == LINES {
            stored.pop_front();
        }
        stored.push_back(line);
    }

    /// Returns what dropped reads have stored since the last call.
    pub(crate) fn take_stored(&self) -> Vec<String> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    fn is_read(&self, subject: &Subject, days: &[Range<Day>], query: &str) -> bool {
        let all = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).any(|reading| {
            reading.query != query
                && reading.subject.aid == subject.aid
                && reading.subject.filters.cover(&subject.filters)
                && days.iter().any(|days| overlap(days, &reading.days))
                && reading.makes_progress()
        })
    }
}

impl Reading {
    /// Notes that a page was received.
    pub(crate) fn note_page(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn makes_progress(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::super::region::Filters;
    use super::*;

    fn subject(aid: &str) -> Subject {
        Subject { aid: aid.to_owned(), filters: Filters::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_waits_for_others_as_long_as_they_make_progress() {
        let in_flight = InFlight::default();
        let (from, to) = (0, super::super::coverage::start_of(3));
        let span = vec![from..to; 1];
        let reading = in_flight.begin(&subject("7"), &(2..9), "first");
        let later = Instant::now() + Duration::from_secs(60);
        assert!(!in_flight.wait(&subject("7"), &span, "first", later).await, "a part of the same query");
        assert!(!in_flight.wait(&subject("8"), &span, "second", later).await);
        assert!(!in_flight.wait(&subject("7"), &span[..0], "second", later).await);
        let begun = Instant::now();
        assert!(in_flight.wait(&subject("7"), &span, "second", begun + PAUSE).await);
        assert!(begun.elapsed() < PATIENCE, "the deadline ends the wait");
        // It never ends, and is not waited for any longer.
        assert!(in_flight.wait(&subject("7"), &span, "second", later).await);
        assert!(begun.elapsed() >= PATIENCE);
        reading.note_page();
        let now = Instant::now();
        in_flight.settle(Some("second"), now + PATIENCE).await;
        assert_eq!(now.elapsed(), Duration::ZERO, "the read is another query's");
        in_flight.settle(Some("first"), now + PATIENCE).await;
        assert!(now.elapsed() >= PATIENCE, "the read has not ended");
        let now = Instant::now();
        in_flight.settle(None, now + PATIENCE).await;
        assert!(now.elapsed() >= PATIENCE, "the read has not ended");
        drop(reading);
        assert!(!in_flight.wait(&subject("7"), &span, "second", later).await);
        let now = Instant::now();
        in_flight.settle(None, now + PATIENCE).await;
        assert_eq!(now.elapsed(), Duration::ZERO);
    }

    #[test]
    fn what_was_stored_is_told_once() {
        let in_flight = InFlight::default();
        for number in 0..=LINES {
            in_flight.note_stored(number.to_string());
        }
        let taken = in_flight.take_stored();
        assert_eq!((taken.len(), taken[0].as_str()), (LINES, "1"), "the latest are remembered");
        assert!(in_flight.take_stored().is_empty());
    }
}
