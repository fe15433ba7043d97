//! Circuit breaker of a catalog on a server: while the server is gone, reads fail at once instead of repeating their transactions.
//!
//! ```text
//! closed ─ a transaction was repeated in vain ─▶ open, for a while ─▶ one read tries, once ─▶ closed, or open again
//!    ▲                                                   │
//!    └── a transaction that writes has succeeded ◀───────┘
//! ```
//!
//! A query reads the catalog many times, and can go on without it. Transactions that write are few, and some have to succeed soon, such
//! as the renewal of a lease: they are always tried and repeated.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::store::PAUSE;

/// Circuit of one server. Times are monotonic.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<Option<Open>>);

/// An open circuit.
#[derive(Debug)]
struct Open {
    /// Instant until which reads fail at once.
    until: Instant,
    /// Their error.
    error: Error,
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
        match &mut *self.open() {
            None => Ok(Try::Repeatedly),
            Some(Open { until, error }) if now < *until => Err(error.clone()),
            // The others wait for its result.
            Some(Open { until, .. }) => {
                *until = now + PAUSE;
                Ok(Try::Once)
            }
        }
    }

    /// Records that the server could not be reached.
    pub(super) fn failed(&self, now: Instant, error: &Error) {
        *self.open() = Some(Open { until: now + PAUSE, error: error.clone() });
    }

    /// Records that the server has answered.
    pub(super) fn answered(&self) {
        *self.open() = None;
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
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
        let error = breaker.admit(now + PAUSE / 2).expect_err("open");
        assert!(error.may_pass() && error.to_string() == gone.to_string(), "{error}");
        assert_eq!(breaker.admit(now + PAUSE), Ok(Try::Once), "one tries");
        breaker.admit(now + PAUSE).expect_err("the others wait for its result");
        breaker.failed(now + PAUSE, &gone);
        breaker.admit(now + PAUSE * 3 / 2).expect_err("open again");
        breaker.answered();
        assert_eq!(breaker.admit(now), Ok(Try::Repeatedly));
    }
}
