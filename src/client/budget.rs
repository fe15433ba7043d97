//! Budget of one query: the requests, time and memory that it may spend and has spent.

mod scan;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

pub use self::scan::Scan;
use super::principal::{Allowance, Caller};
use super::waits::Waits;
use crate::error::{Error, ErrorKind, Phrase, Result, Setting};
use crate::numbers::counted;

/// Behaviour if not all mentions can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Completeness {
    /// The query fails.
    #[default]
    Strict,
    /// The query returns the rows received; a warning reports what is missing.
    Report,
}

impl Completeness {
    /// Returns the value as written in the setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Report => "report",
        }
    }
}

/// Memory accounting for a query.
pub trait Memory: std::fmt::Debug + Send + Sync {
    /// Reserves more memory.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if the limit would be exceeded.
    fn grow(&self, bytes: usize) -> Result<()>;
    /// Releases memory.
    fn shrink(&self, bytes: usize);
}

/// Memory reservation, released on drop.
#[derive(Debug, Default)]
pub struct Held(Option<(Arc<dyn Memory>, usize)>);

impl Held {
    /// Changes the size of the reservation. Does nothing without a [`Memory`] to account to.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if the limit would be exceeded.
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

/// Requests that earlier queries of a run have sent, whose limit holds for all of them together. An extension of the session's
/// configuration.
#[derive(Debug, Clone, Copy)]
pub struct SentBefore(pub u64);

/// Changes of a query by which it needs fewer requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Narrower {
    /// Conditions on `aid`: several saved searches are read.
    pub(crate) aid: bool,
    /// Conditions on `published_at`; on `duration` if a table has no such column.
    pub(crate) published_at: bool,
    /// A LIMIT: rows are returned as they are read, and there is none.
    pub(crate) limit: bool,
}

impl Default for Narrower {
    /// All of them, for queries that are not known.
    fn default() -> Self {
        Self { aid: true, published_at: true, limit: true }
    }
}

impl Narrower {
    /// The changes of a query with two scans.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            aid: self.aid || other.aid,
            published_at: self.published_at && other.published_at,
            limit: self.limit || other.limit,
        }
    }

    /// Advice, with these words about a LIMIT.
    fn advice(self, limit: &str) -> String {
        let aid = if self.aid { "aid or " } else { "" };
        let time = if self.published_at { "published_at" } else { "duration" };
        format!("narrow the query by {aid}{time}{}", if self.limit { limit } else { "" })
    }
}

/// Budget of one query, shared by all its scans.
#[derive(Debug)]
pub struct QueryBudget {
    /// Name of the query in `system.requests`.
    pub id: String,
    /// Instant by which the last response must have arrived. Local computation is not limited.
    pub deadline: Instant,
    /// Time from the start of the query to its deadline.
    query_deadline: Duration,
    /// Longest time for one attempt, from the first byte sent to the last byte received.
    pub request_timeout: Duration,
    /// Behaviour if not all mentions can be read.
    pub completeness: Completeness,
    /// Caller that the query runs for.
    pub caller: Option<Arc<Caller>>,
    /// Share that its requests count towards when several queries wait at the limiter: that of its caller or its session, or one of
    /// its own.
    pub(super) share: Arc<str>,
    max_requests: u64,
    /// Requests that earlier queries of the run have taken from the limit.
    before: u64,
    /// Requests that the service's declared budget allows before the deadline.
    possible: Option<u64>,
    narrower: OnceLock<Narrower>,
    /// Times that the service throttled its requests since it last answered one. Those in flight together count once.
    throttled: AtomicU32,
    counts: Arc<QueryCounts>,
}

/// Requests of a query: of all its connections, which share its budget.
#[derive(Debug, Default)]
pub struct QueryCounts {
    issued: AtomicU64,
    /// Requests that scans require.
    required: AtomicU64,
    /// Requests for lists of saved searches, which no scan requires: all of them share one list.
    listed: AtomicU64,
    /// Rows in the responses, those that pages share included.
    rows: AtomicU64,
    waits: Waits,
}

impl QueryBudget {
    /// Default time limit of an attempt.
    pub const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

    /// Longest query deadline, in seconds: thirty days. A longer one is a mistake and is cut to this.
    pub const LONGEST_DEADLINE: u64 = 30 * 86_400;

    /// Creates a budget whose time starts now.
    pub fn new(id: String, max_requests: u64, query_deadline: Duration, request_timeout: Duration) -> Self {
        let longest = Duration::from_secs(Self::LONGEST_DEADLINE);
        let (query_deadline, request_timeout) = (query_deadline.min(longest), request_timeout.min(longest));
        let deadline = Instant::now() + query_deadline;
        let completeness = Completeness::Strict;
        let share = id.as_str().into();
        Self {
            id,
            deadline,
            query_deadline,
            request_timeout,
            completeness,
            caller: None,
            share,
            max_requests,
            before: 0,
            possible: None,
            narrower: OnceLock::new(),
            throttled: AtomicU32::new(0),
            counts: Arc::default(),
        }
    }

    /// Times that the service throttled requests since it last answered one.
    pub(super) fn throttled(&self) -> u32 {
        self.throttled.load(Ordering::Relaxed)
    }

    /// Records that the service throttled a request.
    pub(super) fn note_throttled(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the service answered a request.
    pub(super) fn note_answered(&self) {
        self.throttled.store(0, Ordering::Relaxed);
    }

    /// Seconds of a deadline twice as long; `None` if it would be longer than the longest.
    pub(super) fn twice_the_deadline(&self) -> Option<u64> {
        let seconds = self.query_deadline.as_secs().max(1).saturating_mul(2);
        (seconds <= Self::LONGEST_DEADLINE).then_some(seconds)
    }

    /// Sets what errors advise against an excess. The first plan of the query decides.
    pub(crate) fn narrow_by(&self, narrower: Narrower) {
        self.narrower.get_or_init(|| narrower);
    }

    /// Counts its requests together with those of other connections.
    #[must_use]
    pub fn with_counts(self, counts: Arc<QueryCounts>) -> Self {
        Self { counts, ..self }
    }

    /// Sets the behaviour if not all mentions can be read.
    #[must_use]
    pub fn with_completeness(self, completeness: Completeness) -> Self {
        Self { completeness, ..self }
    }

    /// Sets the session. Its queries have one share.
    #[must_use]
    pub fn with_session(self, id: &str) -> Self {
        Self { share: id.into(), ..self }
    }

    /// Sets the caller. Queries of all its sessions have one share, and its own allowance limits them as well.
    #[must_use]
    pub fn with_caller(self, caller: Option<Arc<Caller>>) -> Self {
        let share = caller.as_ref().map_or(self.share, |caller| Arc::clone(&caller.share));
        Self { caller, share, ..self }
    }

    /// Takes from the limit what earlier queries of the run have sent.
    #[must_use]
    pub fn after(self, SentBefore(before): SentBefore) -> Self {
        Self { max_requests: self.max_requests.saturating_sub(before), before, ..self }
    }

    /// Sets the requests that the service's declared budget allows before the deadline.
    #[must_use]
    pub fn with_possible(self, possible: Option<u64>) -> Self {
        Self { possible, ..self }
    }

    /// Spends one request, of the query and of its caller's allowance, and returns the instant. Requests are spent by a
    /// [`SpendGuard`](super::spend_guard::SpendGuard), which gives them back if they are not sent.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] if none is left.
    pub(super) fn spend(&self) -> Result<Instant> {
        let taken = |issued| (issued < self.max_requests).then_some(issued + 1);
        match self.counts.issued.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) {
            Ok(_) => {
                let spent = self.allowance().map_or_else(|| Ok(Instant::now()), Allowance::spend);
                spent.inspect_err(|_| self.uncount())
            }
            Err(issued) => Err(self.used_up(issued)),
        }
    }

    /// Gives back a request that was spent at this instant but not sent.
    pub(super) fn give_back(&self, spent: Instant) {
        self.uncount();
        if let Some(allowance) = self.allowance() {
            allowance.give_back(spent);
        }
    }

    fn uncount(&self) {
        self.counts.issued.fetch_sub(1, Ordering::Relaxed);
    }

    /// Checks that a request is left to spend.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] if none is left.
    pub(super) fn check(&self) -> Result<()> {
        let issued = self.counts.issued.load(Ordering::Relaxed);
        if issued >= self.max_requests {
            return Err(self.used_up(issued));
        }
        self.allowance().map_or(Ok(()), |allowance| allowance.allow(1))
    }

    /// True if this many requests are left to spend.
    pub(super) fn has_left(&self, requests: u64) -> bool {
        self.counts.issued.load(Ordering::Relaxed).saturating_add(requests) <= self.max_requests
    }

    /// Requests that scans have required so far, and those for lists.
    pub fn required(&self) -> u64 {
        self.counts.required.load(Ordering::Relaxed).saturating_add(self.listed())
    }

    /// Requests for lists of saved searches so far.
    pub(crate) fn listed(&self) -> u64 {
        self.counts.listed.load(Ordering::Relaxed)
    }

    /// Counts a request for a list of saved searches.
    pub(crate) fn count_list(&self) {
        self.counts.listed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts requests that a scan requires, and fails if all that were required exceed the budget.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`], naming the requests needed.
    pub fn require(&self, requests: u64) -> Result<()> {
        self.counts.required.fetch_add(requests, Ordering::Relaxed);
        self.allow(self.required())
    }

    /// Fails if a query that needs this many requests would exceed the budget.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`], naming the requests needed.
    pub fn allow(&self, needed: u64) -> Result<()> {
        let message = format!("the query needs at least {needed} requests");
        if needed > self.max_requests {
            return Err(self.exceeded(message, needed));
        }
        match self.possible {
            Some(possible) if needed > possible => {
                let message = format!("{message}, but the service's declared budget allows {possible} within ");
                Err(Error::new(ErrorKind::Budget, Phrase::from(message) + Setting::QueryDeadline)
                    .advice(self.more_time(needed, possible)))
            }
            // The requests issued so far are already spent from the allowance.
            _ => {
                let left = needed.saturating_sub(self.counts.issued.load(Ordering::Relaxed));
                self.allowance().map_or(Ok(()), |allowance| allowance.allow(left))
            }
        }
    }

    fn allowance(&self) -> Option<&Allowance> {
        self.caller.as_ref()?.allowance.as_deref()
    }

    /// Counts the rows of a response.
    pub(super) fn received(&self, rows: u64) {
        self.counts.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn used_up(&self, issued: u64) -> Error {
        let rows = self.counts.rows.load(Ordering::Relaxed);
        let read = if rows == 0 { String::new() } else { format!(", received {}", counted(rows, "row")) };
        self.exceeded(format!("the query has issued {issued} requests{read} and needs more"), issued)
    }

    /// `least` is the number of requests needed in any case; how many more pages follow may not be known yet.
    fn exceeded(&self, message: String, least: u64) -> Error {
        let Self { max_requests: left, before, .. } = *self;
        let limit = match (before, left) {
            (0, _) => left.to_string(),
            (_, 1) => format!("{}; 1 is left", before.saturating_add(1)),
            _ => format!("{}; {left} are left", before.saturating_add(left)),
        };
        let message = Phrase::from(format!("{message}, but ")) + Setting::MaxRequests + format!(" allows {limit}");
        let enough = round(least.saturating_add(before).saturating_mul(4)).to_string();
        Error::new(ErrorKind::Budget, message).advice(
            Phrase::from(self.narrower(", add a LIMIT"))
                + Setting::MaxRequests.to(enough).after(", or raise the limit: "),
        )
    }

    fn narrower(&self, limit: &str) -> String {
        self.narrower.get().copied().unwrap_or_default().advice(limit)
    }

    /// Advice if the declared budget allows too few requests before the deadline.
    fn more_time(&self, needed: u64, possible: u64) -> Phrase {
        let narrower = self.narrower(", or add a LIMIT");
        let seconds = self.query_deadline.as_secs().saturating_mul(needed).checked_div(possible);
        let seconds = seconds.map(|seconds| seconds.saturating_add(1));
        match seconds.filter(|seconds| *seconds <= Self::LONGEST_DEADLINE) {
            Some(seconds) => {
                let longer = Setting::QueryDeadline.to(seconds.to_string());
                Phrase::from(narrower) + longer.after(", or allow more time: ")
            }
            None => narrower.into(),
        }
    }
}

/// Rounds up to the next 1, 2 or 5 times a power of ten.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_the_share_of_their_caller_or_their_session() {
        let query = || QueryBudget::new("a-1".to_owned(), 1, Duration::from_secs(1), Duration::from_secs(1));
        let caller = Arc::new(Caller { name: "ada".into(), share: "users".into(), allowance: None });
        assert_eq!(&*query().share, "a-1");
        assert_eq!(&*query().with_session("a-b").with_caller(None).share, "a-b");
        assert_eq!(&*query().with_session("a-b").with_caller(Some(caller)).share, "users");
    }

    #[test]
    fn an_excess_advises_only_what_the_query_can_use() {
        let advice = |narrower: Option<Narrower>| {
            let query = QueryBudget::new("q".to_owned(), 1, Duration::from_secs(1), Duration::from_secs(1));
            if let Some(narrower) = narrower {
                query.narrow_by(narrower);
            }
            let error = query.allow(2).expect_err("more than one").to_string();
            error.split("; ").nth(1).and_then(|advice| advice.split(", or raise").next()).map(str::to_owned)
        };
        let mentions = Narrower { aid: false, published_at: true, limit: true };
        let counts = Narrower { aid: true, published_at: false, limit: false };
        for (narrower, expected) in [
            (None, "narrow the query by aid or published_at, add a LIMIT"),
            (Some(mentions), "narrow the query by published_at, add a LIMIT"),
            (Some(counts), "narrow the query by aid or duration"),
            (Some(mentions.with(counts)), "narrow the query by aid or duration, add a LIMIT"),
        ] {
            assert_eq!(advice(narrower).as_deref(), Some(expected));
        }
    }
}
