//! Use of a store by the queries of a process.

use std::sync::atomic::{AtomicU64, Ordering};

/// Totals since the store was opened by this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStatistics {
    /// Days whose mentions were taken from files, once per scan.
    pub days_from_store: u64,
    /// Days whose mentions were requested by queries that use the store, whole or in part.
    pub days_requested: u64,
    /// Files that were opened, once per scan.
    pub files: u64,
    /// Size of the stored mentions of scans in their files, in bytes.
    pub bytes: u64,
    /// Rows of files that were not read because an index of words excluded them, once per scan.
    pub rows_skipped: u64,
    /// Stored responses without mentions that were used.
    pub responses: u64,
    /// Requests that would have been sent without the store, if pages are full.
    pub requests_saved: u64,
}

/// The totals, as they are counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    days_from_store: AtomicU64,
    days_requested: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    rows_skipped: AtomicU64,
    responses: AtomicU64,
    requests_saved: AtomicU64,
}

impl Counters {
    /// Counts the days of a scan, and the requests that it saves.
    pub(crate) fn divided(&self, from_store: u64, requested: u64, saved: u64) {
        self.days_from_store.fetch_add(from_store, Ordering::Relaxed);
        self.days_requested.fetch_add(requested, Ordering::Relaxed);
        self.requests_saved.fetch_add(saved, Ordering::Relaxed);
    }

    /// Counts files that a scan opens, and the size of their rows that it uses.
    pub(crate) fn opened(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts rows of a file that an index excludes from a scan.
    pub(crate) fn skipped(&self, rows: u64) {
        self.rows_skipped.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts a stored response that is used.
    pub(crate) fn answered(&self) {
        self.responses.fetch_add(1, Ordering::Relaxed);
        self.requests_saved.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> StoreStatistics {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreStatistics {
            days_from_store: of(&self.days_from_store),
            days_requested: of(&self.days_requested),
            files: of(&self.files),
            bytes: of(&self.bytes),
            rows_skipped: of(&self.rows_skipped),
            responses: of(&self.responses),
            requests_saved: of(&self.requests_saved),
        }
    }
}
