//! Spans of queries, scans and requests, for subscribers of `tracing`.
//!
//! ```text
//! query (info) ─▶ scan (debug) ─▶ request (debug), with its retries
//! ```
//!
//! Parents are explicit, not those of the current thread: scans and requests run on tasks of their own, on the runtime that
//! the engine or the server chooses. A span without a subscriber costs one comparison.
//!
//! Invariant: fields are numbers, statuses, and names that this crate or the profile gives. No SQL, saved search,
//! address, parameter, key or error message is in a span.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tracing::Span;
use tracing::field::{Empty, debug};

use super::log::RequestRecord;
use crate::error::ErrorKind;
use crate::request::Endpoint;

/// Value of the field `otel.status_code` of spans that failed.
const FAILED: &str = "ERROR";

/// Span of a query. It ends when the last holder drops it.
#[derive(Debug)]
pub(crate) struct QuerySpan {
    span: Span,
    /// Set once the name of the query is recorded.
    named: AtomicBool,
    /// Requests sent by the scans that have ended.
    requests: AtomicU64,
}

impl QuerySpan {
    /// Starts the span of a query. `statement` is the kind of its statement, if known.
    pub(crate) fn start(statement: Option<&'static str>) -> Arc<Self> {
        let span = tracing::info_span!(
            "query",
            query = Empty,
            statement = statement,
            requests = Empty,
            rows = Empty,
            status = Empty,
            otel.status_code = Empty
        );
        Arc::new(Self { span, named: AtomicBool::new(false), requests: AtomicU64::new(0) })
    }

    /// Records the status and the number of rows returned.
    #[cfg(any(feature = "host", feature = "shell"))]
    pub(crate) fn ended(&self, status: &'static str, rows: u64) {
        self.span.record("status", status);
        self.span.record("rows", rows);
        // If a client disconnects or cancels, that is not a failure.
        if !matches!(status, "ok" | "cancelled" | "gone") {
            self.span.record("otel.status_code", FAILED);
        }
    }

    /// As [`Self::ended`], for a statement that is not an account of a server.
    #[cfg(any(feature = "host", feature = "shell"))]
    pub(crate) fn ended_with<T, E>(&self, result: &Result<T, E>, rows: u64) {
        self.ended(if result.is_ok() { "ok" } else { "error" }, rows);
    }

    /// Starts the span of a scan of `table`. `query` is the name of the query in `system.requests`.
    pub(super) fn scan(&self, query: &str, table: &str) -> Span {
        if !self.named.swap(true, Ordering::Relaxed) {
            self.span.record("query", query);
        }
        tracing::debug_span!(
            parent: &self.span,
            "scan",
            query = query,
            table = table,
            searches = Empty,
            requests = Empty,
            retries = Empty,
            pages = Empty,
            rows = Empty,
            bytes = Empty,
            wait_ms = Empty,
            otel.status_code = Empty
        )
    }

    /// Adds the requests of a scan that has ended.
    pub(super) fn spent(&self, requests: u64) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
    }
}

impl Drop for QuerySpan {
    fn drop(&mut self) {
        self.span.record("requests", self.requests.load(Ordering::Relaxed));
    }
}

/// Starts the span of a request of a scan.
pub(super) fn request(scan: &Span, query: &str, endpoint: Endpoint) -> Span {
    tracing::debug_span!(
        parent: scan,
        "request",
        otel.kind = "client",
        query = query,
        endpoint = %endpoint,
        status = Empty,
        attempts = Empty,
        wait_ms = Empty,
        pause_ms = Empty,
        bytes = Empty,
        rows = Empty,
        shared = Empty,
        error = Empty,
        otel.status_code = Empty
    )
}

/// Records the outcome of a request.
pub(super) fn answered(request: &Span, record: &RequestRecord) {
    request.record("status", record.status);
    request.record("attempts", record.attempts);
    request.record("wait_ms", millis(record.wait));
    request.record("pause_ms", millis(record.pause));
    request.record("bytes", record.bytes);
    request.record("rows", record.rows);
    request.record("shared", record.cached);
}

/// Records that a request failed.
pub(super) fn refused(request: &Span, kind: ErrorKind) {
    request.record("error", debug(kind));
    failed(request);
}

/// Marks a span as failed.
pub(super) fn failed(span: &Span) {
    span.record("otel.status_code", FAILED);
}

/// Whole milliseconds of a time.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
