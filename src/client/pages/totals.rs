//! Expected totals of windows, by which the first pages of a window are requested together, and costs are estimated.
//!
//! A total is remembered when a window is read, or derived from daily counts. It may be outdated: only full pages that it covers
//! are requested early, and the first page shows whether they are needed.
//!
//! Invariant: expected totals decide when a page is requested, never what a result contains.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::client::estimates::Total;
#[cfg(feature = "store")]
use crate::client::estimates::WindowInstants;
use crate::request::RequestKey;

/// Maximum number of remembered windows; more than a dashboard has.
const MOST: usize = 1_000;

/// Expected totals, by the request for the overview of their window.
#[derive(Debug, Default)]
pub(in crate::client) struct Totals {
    totals: Mutex<HashMap<RequestKey, Total>>,
    /// Totals of overviews. They serve estimates alone: no page is requested because of them.
    counted: Mutex<HashMap<RequestKey, Total>>,
    /// Set if a total was remembered since they were last taken.
    changed: AtomicBool,
    /// Rows of the largest page that was smaller than requested although more rows followed, 0 if there was none. Early pages
    /// would not fit such a page, so that none are requested.
    smaller: AtomicU64,
}

impl Totals {
    /// Remembers a total.
    pub(in crate::client) fn expect(&self, window: RequestKey, total: Total) {
        self.insert(&self.totals, window, total);
    }

    /// Remembers a total of an overview.
    pub(in crate::client) fn count(&self, window: RequestKey, total: Total) {
        self.insert(&self.counted, window, total);
    }

    fn insert(&self, into: &Mutex<HashMap<RequestKey, Total>>, window: RequestKey, total: Total) {
        let mut totals = into.lock().unwrap_or_else(PoisonError::into_inner);
        if totals.len() >= MOST && !totals.contains_key(&window) {
            // All windows have to be read once more.
            totals.clear();
        }
        totals.insert(window, total);
        drop(totals);
        self.changed.store(true, Ordering::Relaxed);
    }

    /// The totals of windows that were read, and of those that were counted.
    fn all(&self) -> [MutexGuard<'_, HashMap<RequestKey, Total>>; 2] {
        [&self.totals, &self.counted].map(|totals| totals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The total that a window had when it was last read or counted.
    pub(in crate::client) fn last(&self, window: &RequestKey) -> Option<u64> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).get(window).map(|total| total.mentions)
    }

    /// The total that a window had when it was last read or counted, by a page or by an overview. For estimates only.
    pub(in crate::client) fn known(&self, window: &RequestKey) -> Option<u64> {
        let all = self.all();
        let known = all.iter().filter_map(|totals| totals.get(window));
        known.max_by_key(|total| total.at).map(|total| total.mentions)
    }

    /// The smallest of the totals of windows that contain another one. For estimates only.
    #[cfg(feature = "store")]
    pub(in crate::client) fn limit(&self, within: &WindowInstants) -> Option<Total> {
        Total::least_of(self.all().iter().flat_map(|totals| totals.values()), within)
    }

    /// All totals, and the rows of the largest page that was smaller than requested, if a total was remembered since the last
    /// call.
    pub(in crate::client) fn take_changed(&self) -> Option<(Vec<(RequestKey, Total)>, u64)> {
        if !self.changed.swap(false, Ordering::Relaxed) {
            return None;
        }
        let all = self.all();
        let totals = all.iter().flat_map(|totals| totals.iter());
        let totals = totals.map(|(window, total)| (window.clone(), total.clone())).collect();
        Some((totals, self.smaller.load(Ordering::Relaxed)))
    }

    /// Makes the next call of [`take_changed`](Self::take_changed) return all totals.
    pub(in crate::client) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// The total by which the first pages of a window are requested together, if any.
    pub(in crate::client) fn of(&self, window: &RequestKey) -> Option<u64> {
        if self.smaller.load(Ordering::Relaxed) > 0 { None } else { self.last(window) }
    }

    /// Records that the service returned a page of this many rows although more were requested, and exist.
    pub(in crate::client) fn note_smaller(&self, rows: u64) {
        self.smaller.fetch_max(rows.max(1), Ordering::Relaxed);
    }

    /// Rows of a page of this size, as far as the service was seen to return them.
    pub(in crate::client) fn page(&self, size: u64) -> u64 {
        match self.smaller.load(Ordering::Relaxed) {
            0 => size,
            smaller => size.min(smaller),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_known_although_pages_are_smaller_than_requested() {
        let (totals, window) = (Totals::default(), RequestKey::new("search", Vec::new()));
        let at = "2026-07-01T12:00:00Z".parse().expect("valid instant");
        let total = |mentions: u64| Total { at, mentions, span: None };
        totals.expect(window.clone(), total(500));
        assert_eq!((totals.of(&window), totals.page(100)), (Some(500), 100));
        totals.note_smaller(3);
        totals.note_smaller(40);
        assert_eq!((totals.of(&window), totals.last(&window), totals.page(100)), (None, Some(500), 40));
        assert_eq!(totals.page(10), 10);
        assert_eq!(totals.take_changed(), Some((vec![(window.clone(), total(500))], 40)));
        assert_eq!(totals.take_changed(), None);
        // A count is known to estimates, and requests no page.
        let other = RequestKey::new("other", Vec::new());
        totals.count(other.clone(), total(7));
        assert_eq!((totals.of(&other), totals.last(&other), totals.known(&other)), (None, None, Some(7)));
        assert_eq!(totals.known(&window), Some(500));
        assert_eq!(totals.take_changed().map(|(totals, _)| totals.len()), Some(2));
    }
}
