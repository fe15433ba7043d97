//! A scan of a query, and what it has cost so far.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use datafusion::physical_plan::metrics::Count;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::Span;

use super::{Held, Memory, QueryBudget};
use crate::client::trace::{self, QuerySpan};
use crate::client::verdict::Verdicts;
use crate::error::Result;
use crate::request::RequestKey;

/// One scan of a query: the budget that it draws on and its cost so far.
#[derive(Debug)]
pub struct Scan {
    /// Budget of the query.
    pub query: Arc<QueryBudget>,
    /// Permits for its requests in flight.
    pub(in crate::client) places: Arc<Semaphore>,
    /// Requests issued, retries included. Each counts as it is sent, whether somebody waits for its response or not.
    pub(in crate::client) requests: Count,
    /// Retries issued.
    pub retries: AtomicU64,
    /// Bytes received on the wire.
    pub bytes: AtomicU64,
    /// Milliseconds in which limits of the service delayed its requests, without those counted by other requests of the query.
    pub wait_ms: AtomicU64,
    /// Pages received.
    pub pages: AtomicU64,
    /// Rows received more than once and dropped, not counting the rows that pages share.
    pub doubles: AtomicU64,
    /// Rows received in several versions.
    pub edited: AtomicU64,
    /// Pages re-read because others did not link.
    pub repaired: AtomicU64,
    /// Passes over a window after the first one.
    pub passes: AtomicU64,
    /// Windows that were cut.
    pub cuts: AtomicU64,
    /// Windows that were not read completely.
    pub incomplete: AtomicU64,
    /// Rows returned, after filters of the query.
    pub returned: AtomicU64,
    /// Verdicts on what was read.
    pub verdicts: Arc<Mutex<Verdicts>>,
    /// Rows that paging was found to reach; 0 if not found yet.
    depth: AtomicU64,
    memory: Option<Arc<dyn Memory>>,
    /// Responses already received for another purpose, to be used as pages.
    kept: Mutex<HashMap<RequestKey, Bytes>>,
    span: Span,
    /// Span of the query, which ends no earlier than this one.
    within: Option<Arc<QuerySpan>>,
}

impl Scan {
    /// Creates a scan without cost so far that keeps at most `concurrency` requests in flight.
    pub fn new(query: Arc<QueryBudget>, concurrency: usize) -> Self {
        let zero = AtomicU64::default;
        let places = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            query,
            places,
            requests: Count::new(),
            retries: zero(),
            bytes: zero(),
            wait_ms: zero(),
            pages: zero(),
            doubles: zero(),
            edited: zero(),
            repaired: zero(),
            passes: zero(),
            cuts: zero(),
            incomplete: zero(),
            returned: zero(),
            verdicts: Arc::default(),
            depth: zero(),
            memory: None,
            kept: Mutex::default(),
            span: Span::none(),
            within: None,
        }
    }

    /// Sets the memory accounting.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<dyn Memory>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Starts the span of the scan, within that of its query.
    #[must_use]
    pub(crate) fn within(mut self, query: Arc<QuerySpan>, table: &str) -> Self {
        self.span = query.scan(&self.query.id, table);
        self.within = Some(query);
        self
    }

    /// Span of the scan; disabled if none was started.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Marks the scan as failed in its span.
    pub(crate) fn failed(&self) {
        trace::failed(&self.span);
    }

    /// Reserves memory.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`](crate::error::ErrorKind::Memory) if the limit would be exceeded.
    pub fn hold(&self, bytes: usize) -> Result<Held> {
        let mut held = Held(self.memory.clone().map(|memory| (memory, 0)));
        held.resize(bytes)?;
        Ok(held)
    }

    /// Counts into these verdicts.
    #[must_use]
    pub(crate) fn with_verdicts(mut self, verdicts: Arc<Mutex<Verdicts>>) -> Self {
        self.verdicts = verdicts;
        self
    }

    /// Counts its requests here.
    #[must_use]
    pub(crate) fn with_requests(mut self, requests: Count) -> Self {
        self.requests = requests;
        self
    }

    /// Records a verdict on what was read.
    pub(crate) fn judged(&self, verdict: String) {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).add(verdict);
    }

    /// Number of rows that paging was found to reach.
    pub(in crate::client) fn depth(&self) -> Option<u64> {
        Some(self.depth.load(Ordering::Relaxed)).filter(|depth| *depth > 0)
    }

    pub(in crate::client) fn reached(&self, depth: Option<u64>) {
        if let Some(depth) = depth {
            self.depth.store(depth, Ordering::Relaxed);
        }
    }

    /// Keeps a response for the next request with this key.
    pub fn keep(&self, key: RequestKey, body: Bytes) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, body);
    }

    pub(in crate::client) fn take_kept(&self, key: &RequestKey) -> Option<Bytes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    /// Counts a call that ended after so many attempts, whose requests are counted already.
    pub(in crate::client) fn count(&self, attempts: u32, bytes: u64) {
        self.retries.fetch_add(attempts.saturating_sub(1).into(), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts the waits of a request for limits of the service.
    pub(in crate::client) fn waited(&self, waits: &[Range<Instant>]) {
        let new = self.query.counts.waits.add(waits);
        self.wait_ms.fetch_add(trace::millis(new), Ordering::Relaxed);
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        let requests = self.requests.value() as u64;
        self.span.record("requests", requests);
        for (field, counter) in [
            ("retries", &self.retries),
            ("pages", &self.pages),
            ("rows", &self.returned),
            ("bytes", &self.bytes),
            ("wait_ms", &self.wait_ms),
        ] {
            self.span.record(field, counter.load(Ordering::Relaxed));
        }
        if let Some(query) = &self.within {
            query.spent(requests);
        }
    }
}
