//! Sliding-window request counter: at most so many requests in so many seconds. Pure, with the time passed in.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::profile::RateWindow;

/// Units spent in each window, by the instants at which they were spent.
#[derive(Debug, Default)]
pub(super) struct SlidingWindows(Vec<(RateWindow, VecDeque<Instant>)>);

impl SlidingWindows {
    /// Creates windows in which nothing has been spent.
    pub(super) fn new(windows: impl IntoIterator<Item = RateWindow>) -> Self {
        Self(windows.into_iter().map(|window| (window, VecDeque::new())).collect())
    }

    /// Returns the earliest instant at which this many units may be spent; `None` if that is now.
    pub(super) fn free_at(&mut self, now: Instant, units: u64) -> Option<Instant> {
        let mut latest = None;
        for (window, starts) in &mut self.0 {
            let length = Duration::from_secs(window.seconds.into());
            while starts.front().is_some_and(|start| *start + length <= now) {
                starts.pop_front();
            }
            let over = (starts.len() as u64).saturating_add(units).saturating_sub(window.requests.into());
            if over > 0 {
                let last = usize::try_from(over - 1).unwrap_or(usize::MAX).min(starts.len().saturating_sub(1));
                // More units than the window ever has: never, and not before its length has passed.
                latest = latest.max(Some(starts.get(last).map_or(now, |start| *start) + length));
            }
        }
        latest
    }

    /// Spends units now.
    pub(super) fn spend(&mut self, now: Instant, units: u64) {
        for (_, starts) in &mut self.0 {
            starts.extend((0..units).map(|_| now));
        }
    }

    /// Takes back units that were spent at this instant. Those that have left a window are not taken from others.
    pub(super) fn give_back(&mut self, spent: Instant, units: u64) {
        for (_, starts) in &mut self.0 {
            let mut left = units;
            starts.retain(|start| {
                let is_own = *start == spent && left > 0;
                left -= u64::from(is_own);
                !is_own
            });
        }
    }

    /// True if this many units are more than a window ever has.
    pub(super) fn exceeded(&self, units: u64) -> bool {
        self.0.iter().any(|(window, _)| units > u64::from(window.requests))
    }

    /// Requests that may start before `until`; `None` if there are no windows.
    pub(super) fn possible(&self, now: Instant, until: Instant) -> Option<u64> {
        /// More requests than any query may issue.
        const MANY: usize = 1_000_000;
        let possible = self.0.iter().map(|(window, starts)| {
            let length = Duration::from_secs(window.seconds.into());
            let mut starts: Vec<Instant> = starts.iter().copied().filter(|start| *start + length > now).collect();
            let known = starts.len();
            while starts.len() - known < MANY {
                let earlier = starts.len().checked_sub(window.requests as usize).map(|at| starts[at] + length);
                let start = earlier.map_or(now, |free| free.max(now));
                if start > until {
                    break;
                }
                starts.push(start);
            }
            (starts.len() - known) as u64
        });
        possible.min()
    }

    /// Returns the windows with the units counted against each.
    pub(super) fn standing(&self, now: Instant) -> Vec<(RateWindow, u64)> {
        let counts = |(window, starts): &(RateWindow, VecDeque<Instant>)| {
            let length = Duration::from_secs(window.seconds.into());
            (*window, starts.iter().filter(|start| **start + length > now).count() as u64)
        };
        self.0.iter().map(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_given_back_to_the_request_that_spent_them() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut windows = SlidingWindows::new([RateWindow { requests: 2, seconds: 10 }]);
        windows.spend(now, 1);
        windows.spend(later(5), 1);
        windows.give_back(now, 1);
        windows.spend(later(6), 1);
        assert_eq!(windows.free_at(later(7), 1), Some(later(15)));
        assert_eq!(windows.free_at(later(15), 1), None);
        windows.give_back(later(5), 1);
        assert_eq!(windows.standing(later(15))[0].1, 1, "those that have left the window are not taken from others");
    }
}
