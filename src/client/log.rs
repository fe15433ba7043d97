//! What was asked of the service: the rows of `system.requests`, and running totals for a progress display.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::auth::Secret;
use super::budget::QueryBudget;
use crate::error::Error;

/// Calls remembered; older ones are forgotten.
const REMEMBERED: usize = 10_000;

/// Bytes of a text in a record.
const TEXT: usize = 2_000;

/// A text as it is remembered: its beginning, and how long it was, where it is long.
fn shortened(text: String) -> String {
    match text.len() {
        ..=TEXT => text,
        long => format!("{} … ({long} bytes)", &text[..text.floor_char_boundary(TEXT)]),
    }
}

/// A call: one request with its retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Whom it served, where sessions say so.
    pub caller: Option<Arc<str>>,
    /// When the first attempt began.
    pub at: DateTime<Utc>,
    /// Query that it served.
    pub query: String,
    /// Endpoint.
    pub endpoint: String,
    /// Parameters as they were sent, decoded; the beginning of long ones, with their length.
    pub parameters: String,
    /// Status of the last answer; `None` where there was none.
    pub status: Option<u16>,
    /// Attempts, the first included.
    pub attempts: u32,
    /// Time spent waiting for the limiter and between attempts.
    pub wait: Duration,
    /// Time from the first attempt to the last byte, waits included.
    pub elapsed: Duration,
    /// Bytes received on the wire.
    pub bytes: u64,
    /// Records received.
    pub rows: u64,
    /// Whether the last answer came from an equal request of somebody else.
    pub cached: bool,
    /// Requests allowed in a window, as the last answer told.
    pub rate_limit: Option<i64>,
    /// Requests left in the window, as the last answer told.
    pub rate_remaining: Option<i64>,
    /// The error that the call ended with.
    pub error: Option<String>,
    /// What reading the mentions came to, on the last call for them.
    pub conclusion: Option<String>,
}

/// What a query was told beside its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Whether rows are missing; otherwise the result is whole, and may not be what was meant.
    pub incomplete: bool,
    /// Whom it was for, where sessions say so.
    pub caller: Option<Arc<str>>,
    /// Query.
    pub query: String,
    /// Saved search.
    pub aid: Option<String>,
    /// What is missing, or to be known, in one line.
    pub message: String,
}

/// The calls of a connection and their totals. What enters it has the key taken out here, and nowhere before.
#[derive(Debug)]
pub struct RequestLog {
    key: Secret,
    records: Mutex<VecDeque<RequestRecord>>,
    warnings: Mutex<VecDeque<Warning>>,
    /// Warnings given so far.
    warned: AtomicU64,
    /// Calls added so far.
    added: AtomicU64,
    /// Requests issued, retries included.
    pub requests: AtomicU64,
    /// Pages received.
    pub pages: AtomicU64,
    /// Records received.
    pub rows: AtomicU64,
    /// Bytes received on the wire.
    pub bytes: AtomicU64,
}

impl RequestLog {
    /// A log of nothing yet.
    pub(super) fn new(key: Secret) -> Self {
        let (records, warnings, [warned, added, requests, pages, rows, bytes]) = Default::default();
        Self { key, records, warnings, warned, added, requests, pages, rows, bytes }
    }

    /// An error as a text without the key, which is taken out before anything is cut for people.
    pub(super) fn clean_error(&self, error: &Error) -> String {
        error.clone().map_text(|text| self.key.redact(text)).to_string()
    }

    /// A text as it is remembered: without the key, and its beginning where it is long.
    fn clean(&self, text: &str) -> String {
        shortened(self.key.redact(text))
    }

    /// Remembers a call. Gives its number.
    pub(crate) fn add(&self, mut record: RequestRecord) -> u64 {
        record.parameters = self.clean(&record.parameters);
        record.error = record.error.map(|error| self.clean(&error));
        if record.error.is_none() {
            self.pages.fetch_add(1, Ordering::Relaxed);
        }
        self.rows.fetch_add(record.rows, Ordering::Relaxed);
        self.bytes.fetch_add(record.bytes, Ordering::Relaxed);
        tracing::debug!(
            query = record.query,
            endpoint = record.endpoint,
            parameters = record.parameters,
            status = record.status,
            attempts = record.attempts,
            bytes = record.bytes,
            rows = record.rows,
            error = record.error,
            "request"
        );
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() == REMEMBERED {
            records.pop_front();
        }
        records.push_back(record);
        self.added.fetch_add(1, Ordering::Relaxed)
    }

    /// Says of a call, if it is still remembered, what reading came to with it.
    pub(crate) fn conclude(&self, call: u64, conclusion: String) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let first = self.added.load(Ordering::Relaxed) - records.len() as u64;
        let at = call.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(record) = at.and_then(|at| records.get_mut(at)) {
            record.conclusion = Some(conclusion);
        }
    }

    /// Remembers what a query lacks.
    pub(crate) fn warn(&self, query: &QueryBudget, error: &Error) {
        self.tell(query, error.place().aid.clone(), self.clean_error(error), true);
    }

    /// Remembers what the author of a query should know about its result, which is whole.
    pub(crate) fn note(&self, query: &QueryBudget, aid: Option<String>, message: String) {
        self.tell(query, aid, message, false);
    }

    fn tell(&self, query: &QueryBudget, aid: Option<String>, message: String, incomplete: bool) {
        let (aid, message) = (aid.map(|aid| self.clean(&aid)), self.clean(&message));
        if incomplete {
            tracing::warn!(query = query.id, error = message, "incomplete");
        } else {
            tracing::info!(query = query.id, message, "note");
        }
        let caller = query.caller.as_ref().map(|caller| Arc::clone(&caller.name));
        let query = query.id.clone();
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() == REMEMBERED {
            warnings.pop_front();
        }
        warnings.push_back(Warning { incomplete, caller, query, aid, message });
        self.warned.fetch_add(1, Ordering::Relaxed);
    }

    /// Warnings given so far.
    pub fn warned(&self) -> u64 {
        self.warned.load(Ordering::Relaxed)
    }

    /// What queries lacked, oldest first.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The calls remembered, oldest first.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
