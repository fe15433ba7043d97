//! What one query may spend, and what it has spent: requests, time and memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::principal::{Allowance, Caller};
use crate::error::{Error, ErrorKind, Result};
use crate::request::RequestKey;

/// What happens where not all mentions can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Completeness {
    /// The query ends in an error.
    #[default]
    Strict,
    /// The query gives what came; what is missing is a warning.
    Report,
}

impl Completeness {
    /// The value as it is set.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Report => "report",
        }
    }
}

/// What counts the memory of a query, and refuses what is too much.
pub trait Memory: std::fmt::Debug + Send + Sync {
    /// Takes more.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] where there is no more.
    fn grow(&self, bytes: usize) -> Result<()>;
    /// Gives back.
    fn shrink(&self, bytes: usize);
}

/// Memory that is held until this is dropped.
#[derive(Debug, Default)]
pub struct Held(Option<(Arc<dyn Memory>, usize)>);

impl Held {
    /// Holds so much from now on. What was never counted anywhere is not counted.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] where there is no more.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        let Some((memory, held)) = &mut self.0 else { return Ok(()) };
        if bytes > *held {
            memory.grow(bytes - *held)?;
        } else {
            memory.shrink(*held - bytes);
        }
        *held = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some((memory, held)) = &self.0 {
            memory.shrink(*held);
        }
    }
}

/// The allowance of one query, shared by all its scans.
#[derive(Debug)]
pub struct QueryBudget {
    /// Names the query in `system.requests`.
    pub id: String,
    /// When it must have ended.
    pub deadline: Instant,
    /// The time that it was given.
    query_deadline: Duration,
    /// Longest time for one attempt, from the first byte sent to the last received.
    pub request_timeout: Duration,
    /// What happens where not all mentions can be had.
    pub completeness: Completeness,
    /// Whom it is for.
    pub caller: Option<Arc<Caller>>,
    /// Whom its requests count as where several wait for a place at the limiter.
    pub(super) share: Arc<str>,
    max_requests: u64,
    /// Requests that the declared budget of the service allows before the deadline.
    possible: Option<u64>,
    issued: AtomicU64,
    /// Requests that scans have announced.
    planned: AtomicU64,
}

impl QueryBudget {
    /// The time for an attempt that is given where nobody says otherwise.
    pub const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

    /// Seconds that a query may be given, thirty days: longer waits are mistakes.
    pub const LONGEST_DEADLINE: u64 = 30 * 86_400;

    /// An allowance that starts now.
    pub fn new(id: String, max_requests: u64, query_deadline: Duration, request_timeout: Duration) -> Self {
        let longest = Duration::from_secs(Self::LONGEST_DEADLINE);
        let (query_deadline, request_timeout) = (query_deadline.min(longest), request_timeout.min(longest));
        let deadline = Instant::now() + query_deadline;
        let zero = AtomicU64::default;
        let completeness = Completeness::Strict;
        // The part of the name before the instant is the session's.
        let share = id.split('-').next().unwrap_or_default().into();
        Self {
            id,
            deadline,
            query_deadline,
            request_timeout,
            completeness,
            caller: None,
            share,
            max_requests,
            possible: None,
            issued: zero(),
            planned: zero(),
        }
    }

    /// The same allowance, with another answer to what is missing.
    #[must_use]
    pub fn with_completeness(self, completeness: Completeness) -> Self {
        Self { completeness, ..self }
    }

    /// The same allowance, for somebody who may spend no more than his own.
    #[must_use]
    pub fn with_caller(self, caller: Option<Arc<Caller>>) -> Self {
        let share = caller.as_ref().map_or(self.share, |caller| Arc::clone(&caller.share));
        Self { caller, share, ..self }
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
            Ok(_) => self.allowance().map_or(Ok(()), Allowance::spend).inspect_err(|_| self.take_back()),
            Err(issued) => Err(self.used_up(issued)),
        }
    }

    /// A request that was taken out of the allowance is not sent.
    pub(super) fn take_back(&self) {
        self.issued.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a request could be taken out of the allowance now.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where none is left.
    pub(super) fn check(&self) -> Result<()> {
        let issued = self.issued.load(Ordering::Relaxed);
        if issued >= self.max_requests {
            return Err(self.used_up(issued));
        }
        self.allowance().map_or(Ok(()), |allowance| allowance.allow(1))
    }

    /// Requests that scans have announced so far.
    pub fn announced(&self) -> u64 {
        self.planned.load(Ordering::Relaxed)
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
            return Err(self.exceeded(message, needed));
        }
        match self.possible {
            Some(possible) if needed > possible => Err(Error::new(
                ErrorKind::Budget,
                format!("{message}, the service's declared budget allows {possible} within savedsearch.query_deadline"),
            )
            .advice(self.more_time(needed, possible))),
            // What it has issued is spent already.
            _ => {
                let left = needed.saturating_sub(self.issued.load(Ordering::Relaxed));
                self.allowance().map_or(Ok(()), |allowance| allowance.allow(left))
            }
        }
    }

    fn allowance(&self) -> Option<&Allowance> {
        self.caller.as_ref()?.allowance.as_deref()
    }

    fn used_up(&self, issued: u64) -> Error {
        self.exceeded(format!("the query has used its {issued} requests and needs more"), issued)
    }

    /// `least` is what it needs in any case; how many more pages there are nobody may know yet.
    fn exceeded(&self, message: String, least: u64) -> Error {
        let limit = self.max_requests;
        Error::new(ErrorKind::Budget, format!("{message}, savedsearch.max_requests allows {limit}")).advice(format!(
            "narrow the query by aid or published_at, add a LIMIT, or raise it: SET savedsearch.max_requests = {}",
            round(least.saturating_mul(4)),
        ))
    }

    /// What to do where the declared budget gives too little in the time that there is.
    fn more_time(&self, needed: u64, possible: u64) -> String {
        let narrower = "narrow the query by aid or published_at, or add a LIMIT";
        let seconds = self.query_deadline.as_secs().saturating_mul(needed).checked_div(possible);
        let seconds = seconds.map(|seconds| seconds.saturating_add(1));
        match seconds.filter(|seconds| *seconds <= Self::LONGEST_DEADLINE) {
            Some(seconds) => format!("{narrower}, or allow more time: SET savedsearch.query_deadline = {seconds}"),
            None => narrower.to_owned(),
        }
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
    /// Pages received.
    pub pages: AtomicU64,
    /// Rows that came more than once and were dropped, those that pages share apart.
    pub doubles: AtomicU64,
    /// Rows that came in several versions.
    pub edited: AtomicU64,
    /// Pages that were read since others did not hang together.
    pub repaired: AtomicU64,
    /// Passes over a window after the first one.
    pub passes: AtomicU64,
    /// Windows that were cut.
    pub cuts: AtomicU64,
    /// Windows of which not all came.
    pub incomplete: AtomicU64,
    /// Rows that paging was found to reach; 0: not found yet.
    depth: AtomicU64,
    memory: Option<Arc<dyn Memory>>,
    /// Answers that were looked at for another reason and will be wanted as pages.
    kept: Mutex<HashMap<RequestKey, Bytes>>,
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
            pages: zero(),
            doubles: zero(),
            edited: zero(),
            repaired: zero(),
            passes: zero(),
            cuts: zero(),
            incomplete: zero(),
            depth: zero(),
            memory: None,
            kept: Mutex::default(),
        }
    }

    /// The same scan, its memory counted.
    #[must_use]
    pub fn with_memory(self, memory: Arc<dyn Memory>) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Holds memory.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] where there is no more.
    pub fn hold(&self, bytes: usize) -> Result<Held> {
        let mut held = Held(self.memory.clone().map(|memory| (memory, 0)));
        held.resize(bytes)?;
        Ok(held)
    }

    /// The depth that the service was found to have.
    pub(super) fn depth(&self) -> Option<u64> {
        Some(self.depth.load(Ordering::Relaxed)).filter(|depth| *depth > 0)
    }

    pub(super) fn reached(&self, depth: Option<u64>) {
        if let Some(depth) = depth {
            self.depth.store(depth, Ordering::Relaxed);
        }
    }

    /// Keeps an answer for the next one who asks for it.
    pub fn keep(&self, key: RequestKey, body: Bytes) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, body);
    }

    pub(super) fn take_kept(&self, key: &RequestKey) -> Option<Bytes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    pub(super) fn count(&self, attempts: u32, bytes: u64, wait: Duration) {
        self.requests.fetch_add(attempts.into(), Ordering::Relaxed);
        self.retries.fetch_add(attempts.saturating_sub(1).into(), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wait_ms.fetch_add(wait.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// The number, or the next one that is round.
fn round(number: u64) -> u64 {
    let mut step = 1_u64;
    loop {
        let round = [1, 2, 5].into_iter().map(|digit| step.saturating_mul(digit)).find(|round| *round >= number);
        match round {
            Some(round) => return round,
            None => step = step.saturating_mul(10),
        }
    }
}
