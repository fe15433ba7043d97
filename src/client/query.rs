//! What one query may spend, and what it has spent.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::profile::Profile;
use crate::request::PageRequest;

/// The allowance of one query, shared by all its scans.
#[derive(Debug)]
pub struct QueryBudget {
    /// Names the query in `system.requests`.
    pub id: String,
    /// When it must have ended.
    pub deadline: Instant,
    /// Longest time for one attempt, from the first byte sent to the last received.
    pub request_timeout: Duration,
    max_requests: u64,
    /// Requests that the declared budget of the service allows before the deadline.
    possible: Option<u64>,
    issued: AtomicU64,
    /// Requests that scans have announced.
    planned: AtomicU64,
}

impl QueryBudget {
    /// An allowance that starts now.
    pub fn new(id: String, max_requests: u64, query_deadline: Duration, request_timeout: Duration) -> Self {
        let deadline = Instant::now() + query_deadline;
        let zero = AtomicU64::default;
        Self { id, deadline, request_timeout, max_requests, possible: None, issued: zero(), planned: zero() }
    }

    /// The same allowance, where the declared budget of the service allows no more than this before the deadline.
    #[must_use]
    pub fn with_possible(self, possible: Option<u64>) -> Self {
        Self { possible, ..self }
    }

    /// Takes one request out of the allowance.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where none is left.
    pub fn spend(&self) -> Result<()> {
        let taken = |issued| (issued < self.max_requests).then_some(issued + 1);
        match self.issued.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) {
            Ok(_) => Ok(()),
            Err(issued) => Err(self.exceeded(format!("the query has used its {issued} requests and needs more"))),
        }
    }

    /// Announces requests that a scan is going to issue, and refuses them where all that was announced together is too
    /// much.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] naming the need.
    pub fn require(&self, requests: u64) -> Result<()> {
        let needed = self.planned.fetch_add(requests, Ordering::Relaxed).saturating_add(requests);
        self.allow(needed)
    }

    /// Refuses a query that needs so many requests, where that is too much.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] naming the need.
    pub fn allow(&self, needed: u64) -> Result<()> {
        let message = format!("the query needs {needed} requests or more");
        if needed > self.max_requests {
            return Err(self.exceeded(message));
        }
        match self.possible {
            Some(possible) if needed > possible => Err(Error::new(
                ErrorKind::Budget,
                format!("{message}, the service's declared budget allows {possible} within savedsearch.query_deadline"),
            )
            .advice("narrow the query by aid or published_at, add a LIMIT, or allow more time")),
            _ => Ok(()),
        }
    }

    fn exceeded(&self, message: String) -> Error {
        let limit = self.max_requests;
        Error::new(ErrorKind::Budget, format!("{message}, savedsearch.max_requests allows {limit}")).advice(
            "narrow the query by aid or published_at, add a LIMIT, or raise it: SET savedsearch.max_requests = …",
        )
    }
}

/// One scan of a query: the allowance that it draws on, and what it has cost so far.
#[derive(Debug)]
pub struct Scan {
    /// The query's allowance.
    pub query: Arc<QueryBudget>,
    /// Places for its requests under way.
    pub(super) places: Arc<Semaphore>,
    /// Requests issued, retries included.
    pub requests: AtomicU64,
    /// Requests that had to be repeated.
    pub retries: AtomicU64,
    /// Bytes received on the wire.
    pub bytes: AtomicU64,
    /// Milliseconds spent waiting for the limiter and between attempts.
    pub wait_ms: AtomicU64,
    /// Rows that came more than once and were dropped.
    pub doubles: AtomicU64,
    /// Answers that were looked at for another reason and will be wanted as pages, by their parameters.
    kept: Mutex<HashMap<String, Bytes>>,
}

impl Scan {
    /// A scan that has cost nothing yet and keeps at most `concurrency` requests under way.
    pub fn new(query: Arc<QueryBudget>, concurrency: usize) -> Self {
        let zero = AtomicU64::default;
        let places = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            query,
            places,
            requests: zero(),
            retries: zero(),
            bytes: zero(),
            wait_ms: zero(),
            doubles: zero(),
            kept: Mutex::default(),
        }
    }

    /// Keeps an answer for the next one who asks for it.
    pub fn keep(&self, request: &PageRequest, profile: &Profile, body: Bytes) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(parameters_text(&request.parameters(profile)), body);
    }

    pub(super) fn take_kept(&self, parameters: &str) -> Option<Bytes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(parameters)
    }

    pub(super) fn count(&self, attempts: u32, bytes: u64, wait: Duration) {
        self.requests.fetch_add(attempts.into(), Ordering::Relaxed);
        self.retries.fetch_add(attempts.saturating_sub(1).into(), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wait_ms.fetch_add(wait.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Parameters as one text, decoded.
pub(super) fn parameters_text(parameters: &[(String, String)]) -> String {
    parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}
