//! Time for which the limits of the service kept requests of a query waiting.
//!
//! Requests of a query wait at the same time, and each of them records its own wait. The query has waited for the union of these
//! spans, not for their sum.
//!
//! Invariant: the parts that [`Waits::add`] returns add up to the length of the union.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The spans in which a query has waited, disjoint: the end of each by its begin.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<BTreeMap<Instant, Instant>>);

impl Waits {
    /// Adds the waits of a request. Returns how much of them is in no earlier wait.
    pub(super) fn add(&self, waits: &[Range<Instant>]) -> Duration {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.iter().filter(|wait| wait.start < wait.end).map(|wait| add(&mut known, wait.start, wait.end)).sum()
    }
}

fn add(known: &mut BTreeMap<Instant, Instant>, start: Instant, end: Instant) -> Duration {
    let touching = known.range(..=end).rev().take_while(|(_, until)| **until >= start);
    let touching: Vec<(Instant, Instant)> = touching.map(|(from, until)| (*from, *until)).collect();
    let (mut first, mut last, mut new) = (start, end, end - start);
    for (from, until) in touching {
        new = new.saturating_sub(until.min(end).saturating_duration_since(from.max(start)));
        (first, last) = (first.min(from), last.max(until));
        known.remove(&from);
    }
    known.insert(first, last);
    new
}

/// The time that a request has waited.
pub(super) fn length(waits: &[Range<Instant>]) -> Duration {
    waits.iter().map(|wait| wait.end.saturating_duration_since(wait.start)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_at_the_same_time_count_once() {
        let (waits, begin) = (Waits::default(), Instant::now());
        let wait = |from: u64, until: u64| {
            let at = |seconds| begin + Duration::from_secs(seconds);
            waits.add(&[at(from)..at(until)]).as_secs()
        };
        assert_eq!([wait(10, 20), wait(10, 20), wait(12, 18)], [10, 0, 0]);
        assert_eq!([wait(30, 40), wait(15, 35), wait(0, 5)], [10, 10, 5]);
        assert_eq!([wait(0, 60), wait(0, 60), wait(60, 61), wait(70, 70)], [25, 0, 1, 0]);
        assert_eq!(waits.0.into_inner().expect("no panic").len(), 1);
    }
}
