//! Circuit breaker: temporarily stops requests that have failed repeatedly.
//!
//! There is one circuit for each API key and question: the endpoint, the saved search, the filters, and whether mentions are
//! requested. It is closed until several calls in a row have failed, retries included. Then it is open for a while, during
//! which such calls fail at once; after that, one call may try. If one question fails, such as an aid that no server
//! accepts, all others can still be sent, and no user sees the errors of another. [`State`] is the policy, pure, with the
//! time passed in; all clients of the process that use the same key share one [`Breaker`].

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::request::PageRequest;

/// Consecutive failed calls, retries included, that open a circuit.
const FAILURES: u32 = 3;
/// Time for which a circuit is open at first; it doubles with each further failure.
const FIRST: Duration = Duration::from_secs(5);
/// Longest time for which a circuit is open.
const LONGEST: Duration = Duration::from_secs(60);
/// Failing questions remembered; beyond that, those with no open circuit are forgotten.
const QUESTIONS: usize = 1_000;

/// Hash of what makes questions fail together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Circuit(u64);

/// Returns the circuit of a request.
pub(super) fn circuit(request: &PageRequest) -> Circuit {
    let mut hasher = DefaultHasher::new();
    let plan = request.plan.as_ref();
    (plan.endpoint, &plan.aid, &plan.filters, plan.pages.is_some()).hash(&mut hasher);
    Circuit(hasher.finish())
}

/// Policy of one circuit. Times are monotonic.
#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Instant until which calls fail at once, and the length of that period.
    open: Option<(Instant, Duration)>,
    /// Set while a trial call is in flight.
    trying: bool,
}

impl State {
    /// Returns `None` if a call may be made, otherwise how long to wait.
    fn admit(&mut self, now: Instant) -> Option<Duration> {
        let (until, length) = self.open?;
        if now < until {
            return Some(until - now);
        }
        // This call is the trial; the others wait for its result.
        self.open = Some((now + length, length));
        self.trying = true;
        None
    }

    fn failed(&mut self, now: Instant) {
        let tried = std::mem::take(&mut self.trying);
        // Calls that were in flight when the circuit opened add no information.
        if !tried && self.open.is_some_and(|(until, _)| now < until) {
            return;
        }
        self.failures += 1;
        if self.failures >= FAILURES {
            let length = self.open.map_or(FIRST, |(_, length)| (length * 2).min(LONGEST));
            self.open = Some((now + length, length));
        }
    }
}

/// Circuits of one API key, shared by all clients that use it.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<HashMap<Circuit, State>>);

impl Breaker {
    /// Returns the breaker of the key with this digest.
    pub(super) fn shared(key: [u8; 32]) -> Arc<Self> {
        static SHARED: OnceLock<Mutex<HashMap<[u8; 32], Weak<Breaker>>>> = OnceLock::new();
        let mut shared = SHARED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|_, breaker| breaker.strong_count() > 0);
        if let Some(breaker) = shared.get(&key).and_then(Weak::upgrade) {
            return breaker;
        }
        let breaker = Arc::new(Self::default());
        shared.insert(key, Arc::downgrade(&breaker));
        breaker
    }

    /// Checks that a call may be made.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] while the circuit is open.
    pub(super) fn admit(&self, circuit: Circuit) -> Result<()> {
        let mut states = self.states();
        let Some(state) = states.get_mut(&circuit) else { return Ok(()) };
        let Some(wait) = state.admit(Instant::now()) else { return Ok(()) };
        let message = format!("circuit breaker open: the last {} calls like this one failed", state.failures);
        Err(Error::new(ErrorKind::Unavailable, message)
            .advice(format!("next attempt in {} s", wait.as_secs_f64().ceil())))
    }

    /// Records a call that got a response: a success, or a rejection caused by the question itself.
    pub(super) fn succeeded(&self, circuit: Circuit) {
        self.states().remove(&circuit);
    }

    /// Records a call that was given up.
    pub(super) fn failed(&self, circuit: Circuit) {
        let (now, mut states) = (Instant::now(), self.states());
        if states.len() >= QUESTIONS {
            states.retain(|_, state| state.open.is_some_and(|(until, _)| now < until));
        }
        if states.len() < QUESTIONS || states.contains_key(&circuit) {
            states.entry(circuit).or_default().failed(now);
        }
    }

    fn states(&self) -> MutexGuard<'_, HashMap<Circuit, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_failures_tries_once_and_closes_when_all_is_well() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut state = State::default();
        (1..FAILURES).for_each(|_| state.failed(now));
        assert_eq!(state.admit(now), None);
        state.failed(now);
        state.failed(now);
        assert_eq!(state.admit(later(1)), Some(Duration::from_secs(4)), "calls that were in flight change nothing");
        assert_eq!(state.admit(later(5)), None, "one may try");
        assert_eq!(state.admit(later(6)), Some(Duration::from_secs(4)), "the others wait");
        state.failed(later(6));
        assert_eq!(state.admit(later(7)), Some(Duration::from_secs(9)), "twice as long");
        assert_eq!(state.admit(later(16)), None);
    }

    #[test]
    fn a_question_that_fails_keeps_nobody_from_asking_another() {
        let (breaker, bad, good) = (Breaker::default(), Circuit(1), Circuit(2));
        (0..FAILURES).for_each(|_| breaker.failed(bad));
        let error = breaker.admit(bad).expect_err("open");
        assert!(
            error.to_string().contains("circuit breaker open") && error.to_string().contains("next attempt in 5 s")
        );
        breaker.admit(good).expect("other circuits stay closed");
        breaker.succeeded(bad);
        breaker.admit(bad).expect("closed again");
    }

    #[test]
    fn many_failing_questions_take_bounded_memory() {
        let breaker = Breaker::default();
        (0..10_000).for_each(|number| breaker.failed(Circuit(number)));
        assert!(breaker.states().len() <= QUESTIONS);
    }
}
