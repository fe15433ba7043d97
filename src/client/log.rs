//! Log of requests: the rows of `system.requests`, and running totals for a progress display.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};

use super::auth::Secret;
use super::budget::QueryBudget;
use super::redactor::Clean;
use crate::error::{Error, Phrase};
use crate::request::Endpoint;

/// Calls remembered; older ones are forgotten.
const REMEMBERED: usize = 10_000;

/// Longest string in a record, in bytes.
const TEXT: usize = 2_000;

/// A call: one request with its retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Caller that it served, if the session has one.
    pub caller: Option<Arc<str>>,
    /// Start of the first attempt.
    pub at: DateTime<Utc>,
    /// Query that it served.
    pub query: String,
    /// Endpoint.
    pub endpoint: String,
    /// Parameters as sent, decoded; long ones are shortened to their beginning and their length.
    pub parameters: Clean,
    /// Status of the last response; `None` if there was none.
    pub status: Option<u16>,
    /// Attempts, the first included.
    pub attempts: u32,
    /// Time for which the limits of the service delayed the call.
    pub wait: Duration,
    /// Time between failed attempts and the next ones.
    pub pause: Duration,
    /// Time from the first attempt to the last byte, waits and pauses included.
    pub elapsed: Duration,
    /// Bytes received on the wire.
    pub bytes: u64,
    /// Records received.
    pub rows: u64,
    /// Set if the last response came from an identical request of another scan.
    pub cached: bool,
    /// Requests allowed per window, according to the last response.
    pub rate_limit: Option<i64>,
    /// Requests left in the window, according to the last response.
    pub rate_remaining: Option<i64>,
    /// Error that the call ended with.
    pub error: Option<Clean>,
    /// Verdict on the scan, the count or the list, on its last call.
    pub verdict: Option<Clean>,
}

impl RequestRecord {
    /// The record of a call before its first attempt.
    pub(super) fn begin(query: &QueryBudget, at: DateTime<Utc>, endpoint: Endpoint, parameters: Clean) -> Self {
        Self {
            caller: query.caller.as_ref().map(|caller| Arc::clone(&caller.name)),
            at,
            query: query.id.clone(),
            endpoint: endpoint.to_string(),
            parameters,
            status: None,
            attempts: 0,
            wait: Duration::ZERO,
            pause: Duration::ZERO,
            elapsed: Duration::ZERO,
            bytes: 0,
            rows: 0,
            cached: false,
            rate_limit: None,
            rate_remaining: None,
            error: None,
            verdict: None,
        }
    }
}

/// Message about a query's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Set if rows are missing; otherwise the result is complete, but may not be what was intended.
    pub incomplete: bool,
    /// Caller that the query served, if the session has one.
    pub caller: Option<Arc<str>>,
    /// Query.
    pub query: String,
    /// Saved search.
    pub aid: Option<Clean>,
    /// Missing rows, or a note, in one line.
    pub message: Clean,
    /// As `message`, with its terms.
    pub(crate) line: Phrase,
    /// The first and the last day that a note is about, if it names them.
    pub(crate) days: Option<(NaiveDate, NaiveDate)>,
}

/// Calls of a connection and their totals.
#[derive(Debug)]
pub struct RequestLog {
    key: Secret,
    records: Mutex<VecDeque<RequestRecord>>,
    warnings: Mutex<VecDeque<Warning>>,
    /// Warnings and notes recorded so far.
    warned: AtomicU64,
    /// Calls recorded so far.
    added: AtomicU64,
    /// Requests sent, retries and those that nobody waited for included.
    pub requests: Arc<AtomicU64>,
    /// Pages received.
    pub pages: AtomicU64,
    /// Records received.
    pub rows: AtomicU64,
    /// Bytes received on the wire.
    pub bytes: AtomicU64,
}

impl RequestLog {
    /// Creates an empty log.
    pub(super) fn new(key: Secret) -> Self {
        let (records, warnings, requests, [warned, added, pages, rows, bytes]) = Default::default();
        Self { key, records, warnings, warned, added, requests, pages, rows, bytes }
    }

    /// Formats an error with the key redacted, before anything is cut for display.
    pub(super) fn clean_error(&self, error: &Error) -> Clean {
        self.clean(&error.clone().map_text(|text| self.key.redact(text).into()).to_string())
    }

    /// Redacts the key in a string and shortens it for the log.
    pub(super) fn clean(&self, text: &str) -> Clean {
        self.key.redact(text).shortened(TEXT)
    }

    /// Records a call and returns its number.
    pub(crate) fn add(&self, record: RequestRecord) -> u64 {
        if record.error.is_none() {
            self.pages.fetch_add(1, Ordering::Relaxed);
        }
        self.rows.fetch_add(record.rows, Ordering::Relaxed);
        self.bytes.fetch_add(record.bytes, Ordering::Relaxed);
        tracing::debug!(
            query = record.query,
            endpoint = record.endpoint,
            parameters = record.parameters.as_str(),
            status = record.status,
            attempts = record.attempts,
            bytes = record.bytes,
            rows = record.rows,
            error = record.error.as_deref(),
            "request"
        );
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() == REMEMBERED {
            records.pop_front();
        }
        records.push_back(record);
        self.added.fetch_add(1, Ordering::Relaxed)
    }

    /// Sets the verdict of a call, if it is still remembered.
    pub(crate) fn judge(&self, call: u64, verdict: &str) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let first = self.added.load(Ordering::Relaxed) - records.len() as u64;
        let at = call.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(record) = at.and_then(|at| records.get_mut(at)) {
            record.verdict = Some(self.clean(verdict));
        }
    }

    /// Sets the verdict of the last call of a query with these parameters, if it is still remembered.
    pub(crate) fn judge_last(&self, query: &QueryBudget, parameters: &str, verdict: &str) {
        let parameters = self.clean(parameters);
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_query = records.iter_mut().rev().filter(|record| record.query == query.id);
        if let Some(record) = of_query.find(|record| record.parameters == parameters) {
            record.verdict = Some(self.clean(verdict));
        }
    }

    /// Records a warning that a query's result is incomplete.
    pub(crate) fn warn(&self, query: &QueryBudget, error: &Error) {
        let aid = error.place().aid.as_deref().map(|aid| self.clean(aid));
        let line = error.clone().map_text(|text| self.key.redact(text).into()).line();
        self.tell(query, aid, line, true, None);
    }

    /// Records a note for the author of a query whose result is complete, once: the note of several saved searches names none.
    pub(crate) fn note(&self, query: &QueryBudget, aid: Option<String>, note: impl Into<Phrase>) {
        let aid = aid.map(|aid| self.clean(&aid));
        let line = note.into().map(|text| self.key.redact(text).into());
        if !self.repeats(query, aid.as_ref(), &line) {
            self.tell(query, aid, line, false, None);
        }
    }

    /// Records a note about days, as [`note`](Self::note) does: the note of several saved searches has the days of all. `words` returns
    /// its text for the first and the last day.
    #[cfg(feature = "store")]
    pub(crate) fn note_days(
        &self,
        query: &QueryBudget,
        aid: Option<String>,
        days: (NaiveDate, NaiveDate),
        words: impl Fn(NaiveDate, NaiveDate) -> Phrase,
    ) {
        let aid = aid.map(|aid| self.clean(&aid));
        let line = |(first, last): (NaiveDate, NaiveDate)| words(first, last).map(|text| self.key.redact(text).into());
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&mut Warning| {
            known.query == query.id && known.days.is_some_and(|days| known.line == line(days)) && !known.incomplete
        };
        let Some(known) = warnings.iter_mut().rev().find(same) else {
            drop(warnings);
            return self.tell(query, aid, line(days), false, Some(days));
        };
        let (first, last) = known.days.unwrap_or(days);
        let all = (first.min(days.0), last.max(days.1));
        if known.aid != aid {
            known.aid = None;
        }
        (known.days, known.line) = (Some(all), line(all));
        known.message = self.clean(known.line.as_str());
    }

    /// True for a note that a query has already. If the two are about different saved searches, it then names none.
    fn repeats(&self, query: &QueryBudget, aid: Option<&Clean>, line: &Phrase) -> bool {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&mut Warning| !known.incomplete && known.query == query.id && known.line == *line;
        let Some(known) = warnings.iter_mut().rev().find(same) else { return false };
        if known.aid.as_ref() != aid {
            known.aid = None;
        }
        true
    }

    fn tell(
        &self,
        query: &QueryBudget,
        aid: Option<Clean>,
        line: Phrase,
        incomplete: bool,
        days: Option<(NaiveDate, NaiveDate)>,
    ) {
        let message = self.clean(line.as_str());
        if incomplete {
            tracing::warn!(query = query.id, error = message.as_str(), "incomplete");
        } else {
            tracing::info!(query = query.id, message = message.as_str(), "note");
        }
        let caller = query.caller.as_ref().map(|caller| Arc::clone(&caller.name));
        let query = query.id.clone();
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() == REMEMBERED {
            warnings.pop_front();
        }
        warnings.push_back(Warning { incomplete, caller, query, aid, message, line, days });
        self.warned.fetch_add(1, Ordering::Relaxed);
    }

    /// Warnings and notes recorded so far.
    pub fn warned(&self) -> u64 {
        self.warned.load(Ordering::Relaxed)
    }

    /// Warnings and notes that are remembered, oldest first.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Calls that are remembered, oldest first.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_each_note_once() {
        let log = RequestLog::new(Secret::new("hush").expect("a key"));
        let query = |id: &str| QueryBudget::new(id.to_owned(), 1, Duration::from_secs(1), Duration::from_secs(1));
        let note = |id: &str, aid: &str, message: &str| log.note(&query(id), Some(aid.to_owned()), message.to_owned());
        note("a", "7", "the disk is full");
        note("a", "7", "a file is missing");
        note("b", "7", "the disk is full");
        note("a", "8", "the disk is full");
        note("b", "7", "the disk is full");
        let notes = log.warnings();
        let notes: Vec<_> =
            notes.iter().map(|note| (note.query.as_str(), note.aid.as_deref(), &*note.message)).collect();
        let expected = [
            ("a", None, "the disk is full"),
            ("a", Some("7"), "a file is missing"),
            ("b", Some("7"), "the disk is full"),
        ];
        assert_eq!(notes, expected);
        assert_eq!(log.warned(), 3);
    }

    #[cfg(feature = "store")]
    #[test]
    fn a_note_about_days_has_those_of_all_saved_searches() {
        let log = RequestLog::new(Secret::new("hush").expect("a key"));
        let query = |id: &str| QueryBudget::new(id.to_owned(), 1, Duration::from_secs(1), Duration::from_secs(1));
        let day = |day: u32| NaiveDate::from_ymd_opt(2026, 6, day).expect("a date");
        let note = |id: &str, aid: &str, column: &str, first: u32, last: u32| {
            let words = |first: NaiveDate, last: NaiveDate| Phrase::from(format!("no {column} from {first} to {last}"));
            log.note_days(&query(id), Some(aid.to_owned()), (day(first), day(last)), words);
        };
        note("a", "7", "tone", 4, 6);
        note("a", "7", "place", 1, 9);
        note("b", "7", "tone", 4, 6);
        note("a", "8", "tone", 2, 5);
        note("a", "9", "tone", 3, 8);
        note("b", "7", "tone", 4, 6);
        let notes = log.warnings();
        let notes: Vec<_> =
            notes.iter().map(|note| (note.query.as_str(), note.aid.as_deref(), &*note.message)).collect();
        let expected = [
            ("a", None, "no tone from 2026-06-02 to 2026-06-08"),
            ("a", Some("7"), "no place from 2026-06-01 to 2026-06-09"),
            ("b", Some("7"), "no tone from 2026-06-04 to 2026-06-06"),
        ];
        assert_eq!(notes, expected);
        assert_eq!(log.warned(), 3);
    }
}
