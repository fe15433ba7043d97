//! Lets a service alone that fails again and again.
//!
//! Closed until some calls in a row were given up, retries and all; then open for a while, in which calls fail at once;
//! then one call may look whether the service is well. [`State`] is the policy, pure and given the time; all clients of
//! the process that ask one service share a [`Breaker`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use crate::error::{Error, ErrorKind, Result};

/// Calls in a row that are given up before the service is let alone.
const FAILURES: u32 = 3;
/// How long it is let alone at first; twice as long after each look that fails.
const FIRST: Duration = Duration::from_secs(5);
/// How long at most.
const LONGEST: Duration = Duration::from_secs(60);

/// The policy. Times are monotonic.
#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Until when calls fail at once, and how long that was for.
    open: Option<(Instant, Duration)>,
    last: String,
}

impl State {
    /// Whether a call may be made; otherwise how long to wait.
    fn admit(&mut self, now: Instant) -> Option<Duration> {
        let (until, length) = self.open?;
        if now < until {
            return Some(until - now);
        }
        // This one looks; the others wait for what it finds.
        self.open = Some((now + length, length));
        None
    }

    fn succeeded(&mut self) {
        (self.failures, self.open) = (0, None);
    }

    fn failed(&mut self, now: Instant, error: String) {
        self.failures += 1;
        self.last = error;
        if self.failures >= FAILURES {
            let length = self.open.map_or(FIRST, |(_, length)| (length * 2).min(LONGEST));
            self.open = Some((now + length, length));
        }
    }
}

/// Shared by all who ask one service.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

impl Breaker {
    /// The breaker of the service at this address.
    pub(super) fn shared(base_url: &Url) -> Arc<Self> {
        static SHARED: OnceLock<Mutex<HashMap<String, Weak<Breaker>>>> = OnceLock::new();
        let mut shared = SHARED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|_, breaker| breaker.strong_count() > 0);
        let service = base_url.origin().ascii_serialization();
        if let Some(breaker) = shared.get(&service).and_then(Weak::upgrade) {
            return breaker;
        }
        let breaker = Arc::new(Self::default());
        shared.insert(service, Arc::downgrade(&breaker));
        breaker
    }

    /// Whether a call may be made.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] while the service is let alone.
    pub(super) fn admit(&self) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(wait) = state.admit(Instant::now()) else { return Ok(()) };
        let (failures, last) = (state.failures, &state.last);
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("the service failed {failures} times in a row, the last time like this: {last}"),
        )
        .advice(format!("it is let alone for another {} s; then try again", wait.as_secs_f64().ceil())))
    }

    /// A call was answered, well or by a refusal that has its reason in the question.
    pub(super) fn succeeded(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).succeeded();
    }

    /// A call was given up.
    pub(super) fn failed(&self, error: &Error) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed(Instant::now(), error.message().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_failures_looks_once_and_closes_when_all_is_well() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut state = State::default();
        (1..FAILURES).for_each(|_| state.failed(now, String::new()));
        assert_eq!(state.admit(now), None);
        state.succeeded();
        (0..FAILURES).for_each(|_| state.failed(now, String::new()));
        assert_eq!(state.admit(later(1)), Some(Duration::from_secs(4)));
        assert_eq!(state.admit(later(5)), None, "one may look");
        assert_eq!(state.admit(later(6)), Some(Duration::from_secs(4)), "the others wait");
        state.failed(later(6), String::new());
        assert_eq!(state.admit(later(7)), Some(Duration::from_secs(9)), "twice as long");
        assert_eq!(state.admit(later(16)), None);
        state.succeeded();
        assert_eq!(state.admit(later(16)), None);
        assert_eq!(state.admit(later(16)), None);
    }
}
