//! Circuit breaker: temporarily stops requests that have failed repeatedly.
//!
//! There is one circuit for each API key and question: the endpoint, the saved search, the filters, and whether mentions are
//! requested. It is closed until several calls in a row have failed, retries included. Then it is open for a while, during
//! which such calls fail at once; after that, one call may try. If one question fails, such as an aid that no server
//! accepts, all others can still be sent, and no user sees the errors of another. All clients of the process that use the same
//! key share one [`Breaker`].

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::circuit_breaker::{Admission, CircuitBreaker, Policy};
use crate::error::{Error, ErrorKind, Result};
use crate::request::PageRequest;

/// Policy of a circuit. A failed call has been repeated in vain.
static POLICY: Policy =
    Policy { failures: 3, first: Duration::from_secs(5), longest: Duration::from_secs(60), trial: None };
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

/// Circuits of one API key, shared by all clients that use it.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<HashMap<Circuit, CircuitBreaker>>);

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
        let mut circuits = self.circuits();
        let Some(breaker) = circuits.get_mut(&circuit) else { return Ok(()) };
        let Admission::Open(wait) = breaker.admit(Instant::now().into_std()) else { return Ok(()) };
        let message = format!("circuit breaker open: the last {} calls like this one failed", breaker.failures());
        Err(Error::new(ErrorKind::Unavailable, message)
            .advice(format!("next attempt in {} s", wait.as_secs_f64().ceil())))
    }

    /// Records a call that got a response: a success, or a rejection caused by the question itself.
    pub(super) fn succeeded(&self, circuit: Circuit) {
        self.circuits().remove(&circuit);
    }

    /// Records a call that was given up.
    pub(super) fn failed(&self, circuit: Circuit) {
        let (now, mut circuits) = (Instant::now().into_std(), self.circuits());
        if circuits.len() >= QUESTIONS {
            circuits.retain(|_, breaker| breaker.is_open(now));
        }
        if circuits.len() < QUESTIONS || circuits.contains_key(&circuit) {
            circuits.entry(circuit).or_insert_with(|| CircuitBreaker::new(&POLICY)).failed(now);
        }
    }

    fn circuits(&self) -> MutexGuard<'_, HashMap<Circuit, CircuitBreaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_fails_keeps_nobody_from_asking_another() {
        let (breaker, bad, good) = (Breaker::default(), Circuit(1), Circuit(2));
        (0..POLICY.failures).for_each(|_| breaker.failed(bad));
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
        assert!(breaker.circuits().len() <= QUESTIONS);
    }
}
