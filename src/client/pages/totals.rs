//! Expected totals of windows, by which the first pages of a window are requested together.
//!
//! A total is remembered when a window is read, or derived from daily counts. It may be outdated: only full pages that it covers
//! are requested early, and the first page shows whether they are needed.
//!
//! Invariant: expected totals decide when a page is requested, never what a result contains.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::request::RequestKey;

/// Maximum number of remembered windows; more than a dashboard has.
const MOST: usize = 1_000;

/// Expected totals, by the request for the overview of their window.
#[derive(Debug, Default)]
pub(in crate::client) struct Totals {
    totals: Mutex<HashMap<RequestKey, u64>>,
    /// Set once a page was smaller than requested although more rows follow: then early pages would not fit the first one.
    useless: AtomicBool,
}

impl Totals {
    /// Remembers a total.
    pub(in crate::client) fn expect(&self, window: RequestKey, total: u64) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        if totals.len() >= MOST && !totals.contains_key(&window) {
            // All windows have to be read once more.
            totals.clear();
        }
        totals.insert(window, total);
    }

    /// The expected total of a window, if any.
    pub(in crate::client) fn of(&self, window: &RequestKey) -> Option<u64> {
        if self.useless.load(Ordering::Relaxed) {
            return None;
        }
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).get(window).copied()
    }

    /// Expects nothing from now on, because the service returns smaller pages than requested.
    pub(in crate::client) fn give_up(&self) {
        self.useless.store(true, Ordering::Relaxed);
    }
}
