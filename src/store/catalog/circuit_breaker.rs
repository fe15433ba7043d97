//! Circuit breaker of a catalog on a server: while the server is gone, reads fail at once instead of repeating their transactions.
//!
//! ```text
//! closed ─ a transaction was repeated in vain ─▶ open, for a while ─▶ one read tries, once ─▶ closed, or open for twice as long
//!    ▲                                                   │
//!    └── a transaction that writes has succeeded ◀───────┘
//! ```
//!
//! A query reads the catalog many times, and can go on without it. Transactions that write are few, and some have to succeed soon, such
//! as the renewal of a lease: they are always tried and repeated.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::circuit_breaker::{Admission, CircuitBreaker, Policy};
use crate::error::{Error, Result};
use crate::store::PAUSE;

/// Time for which a circuit is open at first. A server that restarts is back soon.
const SHORTEST: Duration = Duration::from_secs(1);

/// Policy of the circuit: a transaction that fails has been repeated for a while.
static POLICY: Policy = Policy { failures: 1, first: SHORTEST, longest: PAUSE, trial: Some(PAUSE) };

/// Circuit of one server.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug)]
struct State {
    circuit: CircuitBreaker,
    /// The error that has opened it, which reads have while it is open.
    error: Option<Error>,
}

impl Default for State {
    fn default() -> Self {
        Self { circuit: CircuitBreaker::new(&POLICY), error: None }
    }
}

/// Ways in which a transaction may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Try {
    /// It is repeated for a while.
    Repeatedly,
    /// It finds out whether the server is back.
    Once,
}

impl Breaker {
    /// Returns how a read may be tried.
    ///
    /// # Errors
    /// The one that has opened the circuit, while it is open.
    pub(super) fn admit(&self, now: Instant) -> Result<Try> {
        let mut state = self.state();
        match (state.circuit.admit(now), &state.error) {
            (Admission::Open(_), Some(error)) => Err(error.clone()),
            (Admission::Trial, _) => Ok(Try::Once),
            (Admission::Closed | Admission::Open(_), _) => Ok(Try::Repeatedly),
        }
    }

    /// Records that the server could not be reached.
    pub(super) fn failed(&self, now: Instant, error: &Error) {
        let mut state = self.state();
        state.circuit.failed(now);
        state.error = Some(error.clone());
    }

    /// Records that the server has answered.
    pub(super) fn answered(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn reads_fail_at_once_after_a_server_was_gone_until_one_gets_an_answer() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.admit(now), Ok(Try::Repeatedly));
        let gone = Error::new(ErrorKind::Store, "the catalog cannot be reached").passing();
        breaker.failed(now, &gone);
        let error = breaker.admit(now + SHORTEST / 2).expect_err("open");
        assert!(error.may_pass() && error.to_string() == gone.to_string(), "{error}");
        assert_eq!(breaker.admit(now + SHORTEST), Ok(Try::Once), "one tries");
        breaker.admit(now + SHORTEST * 2).expect_err("the others wait for its result");
        assert_eq!(breaker.admit(now + SHORTEST + PAUSE), Ok(Try::Once), "it has had no result");
        breaker.answered();
        assert_eq!(breaker.admit(now), Ok(Try::Repeatedly));
    }

    #[test]
    fn each_try_in_vain_doubles_the_time_until_the_next_one() {
        let (breaker, mut now) = (Breaker::default(), Instant::now());
        let gone = Error::new(ErrorKind::Store, "the catalog cannot be reached").passing();
        // Those that were reading when the server went are one failure.
        (0..5).for_each(|_| breaker.failed(now, &gone));
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let pause = Duration::from_secs(seconds);
            breaker.admit(now + pause / 2).expect_err("open");
            now += pause;
            assert_eq!(breaker.admit(now), Ok(Try::Once), "after {seconds} s");
            breaker.failed(now, &gone);
        }
        breaker.answered();
        breaker.failed(now, &gone);
        assert_eq!(breaker.admit(now + SHORTEST), Ok(Try::Once), "it begins anew");
    }
}
