//! Circuit breaker: calls that have failed repeatedly fail at once for a while.
//!
//! ```text
//! closed ─ some failures in a row ─▶ open, for a while ─▶ one call tries ─▶ closed, or open for longer
//! ```
//!
//! The policy is pure, with the time passed in. The client has a circuit for each key and question (`client/circuit_breaker`), and the
//! catalog of a store has one for its server (`store/catalog/circuit_breaker`). A circuit that a call closes is made anew.

use std::time::{Duration, Instant};

/// Policy of a circuit.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Consecutive failures that open it; 1 at least.
    pub(crate) failures: u32,
    /// Time for which it is open at first; it doubles with each further failure.
    pub(crate) first: Duration,
    /// Longest time for which it is open.
    pub(crate) longest: Duration,
    /// Time after which another call tries if a trial has had no result; `None`: as long as the circuit was open before it.
    pub(crate) trial: Option<Duration>,
}

/// Decision on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The circuit is closed: the call is made.
    Closed,
    /// The call is made to find out if calls succeed again. The others wait for its result.
    Trial,
    /// The call fails at once. The next trial is after this time.
    Open(Duration),
}

/// One circuit. Times are monotonic.
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    policy: &'static Policy,
    failures: u32,
    /// Instant until which calls fail at once, and the length of that period.
    open: Option<(Instant, Duration)>,
    /// Set while a trial call is in flight.
    trying: bool,
}

impl CircuitBreaker {
    /// A closed circuit.
    pub(crate) fn new(policy: &'static Policy) -> Self {
        Self { policy, failures: 0, open: None, trying: false }
    }

    /// Decides on a call.
    pub(crate) fn admit(&mut self, now: Instant) -> Admission {
        let Some((until, length)) = self.open else { return Admission::Closed };
        if now < until {
            return Admission::Open(until - now);
        }
        // This call is the trial.
        self.open = Some((now + self.policy.trial.unwrap_or(length), length));
        self.trying = true;
        Admission::Trial
    }

    /// Records a call that failed.
    pub(crate) fn failed(&mut self, now: Instant) {
        let tried = std::mem::take(&mut self.trying);
        // Calls that were in flight when the circuit opened add no information.
        if !tried && self.is_open(now) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.policy.failures {
            let length = self.open.map_or(self.policy.first, |(_, length)| (length * 2).min(self.policy.longest));
            self.open = Some((now + length, length));
        }
    }

    /// True while calls fail at once.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.open.is_some_and(|(until, _)| now < until)
    }

    /// Number of failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static POLICY: Policy =
        Policy { failures: 3, first: Duration::from_secs(5), longest: Duration::from_secs(12), trial: None };

    #[test]
    fn opens_after_failures_tries_once_and_is_open_for_longer_after_each() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let open = |seconds| Admission::Open(Duration::from_secs(seconds));
        let mut circuit = CircuitBreaker::new(&POLICY);
        (1..POLICY.failures).for_each(|_| circuit.failed(now));
        assert_eq!(circuit.admit(now), Admission::Closed);
        circuit.failed(now);
        circuit.failed(now);
        assert_eq!(circuit.failures(), 3);
        assert_eq!(circuit.admit(later(1)), open(4), "calls that were in flight change nothing");
        assert!(circuit.is_open(later(4)) && !circuit.is_open(later(5)));
        assert_eq!(circuit.admit(later(5)), Admission::Trial, "one may try");
        assert_eq!(circuit.admit(later(6)), open(4), "the others wait");
        circuit.failed(later(6));
        assert_eq!(circuit.admit(later(7)), open(9), "twice as long");
        assert_eq!(circuit.admit(later(16)), Admission::Trial);
        circuit.failed(later(16));
        assert_eq!(circuit.admit(later(16)), open(12), "no longer than that");
    }

    #[test]
    fn a_trial_without_a_result_is_followed_by_another_one() {
        static PATIENT: Policy = Policy {
            failures: 1,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            trial: Some(Duration::from_secs(60)),
        };
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut circuit = CircuitBreaker::new(&PATIENT);
        circuit.failed(now);
        assert_eq!(circuit.admit(later(1)), Admission::Trial);
        assert_eq!(circuit.admit(later(2)), Admission::Open(Duration::from_secs(59)), "the others wait for its result");
        assert_eq!(circuit.admit(later(61)), Admission::Trial);
        circuit.failed(later(61));
        assert_eq!(circuit.admit(later(62)), Admission::Open(Duration::from_secs(1)), "twice as long as before");
    }
}
