//! One limiter a key: how many requests may be under way, and when the next may start.
//!
//! [`LimitState`] is the policy, pure and given the time: additive increase and multiplicative decrease of the
//! concurrency, a gate that stays closed while the service asked for quiet, declared windows, and turns among those who
//! wait. [`Limiter`] makes the callers wait for it; all queries of the process that use one key at one service share one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ledger::SHORT;
use super::windows::Windows;
use crate::profile::{Budget, RateWindow};

/// The policy. Times are monotonic.
#[derive(Debug)]
pub(super) struct LimitState {
    most: usize,
    allowed: f64,
    under_way: usize,
    closed_until: Option<Instant>,
    windows: Windows,
    /// Who waits for a place.
    waiting: HashMap<Arc<str>, Waiting>,
}

/// One of those who wait for a place.
#[derive(Debug, Default)]
struct Waiting {
    /// Requests of his that wait.
    requests: usize,
    /// Units that he was given, counted from what the least served had when he came.
    served: u64,
}

/// Whether a request may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may; it is counted as under way.
    Go,
    /// Not before this instant.
    NotBefore(Instant),
    /// Not before another one ends, or has its turn.
    Full,
}

impl LimitState {
    /// Starts at the full concurrency of the profile.
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            most: budget.concurrency,
            allowed: budget.concurrency as f64,
            under_way: 0,
            closed_until: None,
            // The longer ones are a ledger's.
            windows: Windows::new(budget.windows.iter().copied().filter(|window| window.seconds <= SHORT)),
            waiting: HashMap::new(),
        }
    }

    /// A request of `share` begins to wait. Who comes anew has what the least served has: neither credit for the time
    /// before, nor a debt.
    pub(super) fn enter(&mut self, share: &Arc<str>) {
        let least = self.waiting.values().map(|waiting| waiting.served).min().unwrap_or_default();
        let waiting = self.waiting.entry(Arc::clone(share)).or_insert(Waiting { requests: 0, served: least });
        waiting.requests += 1;
    }

    /// A request of `share` waits no longer.
    pub(super) fn leave(&mut self, share: &Arc<str>) {
        if let Some(waiting) = self.waiting.get_mut(share) {
            waiting.requests -= 1;
            if waiting.requests == 0 {
                self.waiting.remove(share);
            }
        }
    }

    /// Asks for a place for a request that waits, at a cost of so many units of the windows; a profile's windows have room
    /// for a page. Among several who wait, the least served has the next turn.
    pub(super) fn admit(&mut self, now: Instant, units: u64, share: &Arc<str>) -> Admission {
        if let Some(until) = self.closed_until
            && until > now
        {
            return Admission::NotBefore(until);
        }
        if self.under_way as f64 >= self.allowed.floor().max(1.0) {
            return Admission::Full;
        }
        if let Some(free) = self.windows.free_at(now, units) {
            return Admission::NotBefore(free);
        }
        let served = self.waiting.get(share).map_or(0, |waiting| waiting.served);
        if self.waiting.values().any(|waiting| waiting.served < served) {
            return Admission::Full;
        }
        self.windows.spend(now, units);
        self.under_way += 1;
        if let Some(waiting) = self.waiting.get_mut(share) {
            waiting.served += units;
        }
        Admission::Go
    }

    /// Requests that may start until then, as far as declared windows say; `None`: none is declared.
    pub(super) fn possible(&self, now: Instant, until: Instant) -> Option<u64> {
        self.windows.possible(now, until)
    }

    /// The declared windows, each with the requests that count against it.
    pub(super) fn standing(&self, now: Instant) -> Vec<(RateWindow, u64)> {
        self.windows.standing(now)
    }

    /// A request ended, however it did.
    pub(super) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// A request was answered: about one more place a round of answers.
    pub(super) fn answered(&mut self) {
        self.allowed = (self.allowed + 1.0 / self.allowed).min(self.most as f64);
    }

    /// A request was throttled: half the places, and quiet for as long as the service asked.
    pub(super) fn throttled(&mut self, now: Instant, quiet: Duration) {
        self.allowed = (self.allowed / 2.0).max(1.0);
        self.close(now, quiet);
    }

    /// No request before `quiet` has passed. After an hour one may look whether the service still means it.
    pub(super) fn close(&mut self, now: Instant, quiet: Duration) {
        let until = now + quiet.min(Duration::from_secs(3_600));
        self.closed_until = self.closed_until.max(Some(until));
    }
}

/// Makes callers wait for the policy.
#[derive(Debug)]
pub(super) struct Limiter {
    state: Mutex<LimitState>,
    /// A request ended, or waits no longer.
    changed: Notify,
}

/// A place among the requests under way; given back on drop.
#[derive(Debug)]
pub(super) struct Permit(Arc<Limiter>);

/// A request among those that wait; it leaves on drop.
struct Queued<'l> {
    limiter: &'l Limiter,
    share: &'l Arc<str>,
}

impl Limiter {
    /// A limiter of its own.
    pub(super) fn new(budget: &Budget) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(LimitState::new(budget)), changed: Notify::new() })
    }

    /// The limiter that this process shares for a key at a service.
    pub(super) fn shared(identity: [u8; 32], budget: &Budget) -> Arc<Self> {
        // A profile that declares another budget gets a limiter of its own.
        type Registry = Mutex<HashMap<([u8; 32], String), Weak<Limiter>>>;
        let identity = (identity, format!("{budget:?}"));
        static SHARED: OnceLock<Registry> = OnceLock::new();
        let mut shared = SHARED.get_or_init(Registry::default).lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|_, limiter| limiter.strong_count() > 0);
        if let Some(limiter) = shared.get(&identity).and_then(Weak::upgrade) {
            return limiter;
        }
        let limiter = Self::new(budget);
        shared.insert(identity, Arc::downgrade(&limiter));
        limiter
    }

    /// Waits for a place for a request of `share`, at a cost of so many units. `Err(wait)` at once where it cannot be had
    /// before `deadline`; zero where that has passed.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        deadline: Instant,
        units: u64,
        share: &Arc<str>,
    ) -> Result<Permit, Duration> {
        self.state().enter(share);
        let _queued = Queued { limiter: self, share };
        loop {
            // Registered before the state is asked, so that no change is missed in between.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            if now >= deadline {
                return Err(Duration::ZERO);
            }
            let admission = self.state().admit(now, units, share);
            match admission {
                Admission::Go => return Ok(Permit(Arc::clone(self))),
                Admission::NotBefore(at) if at > deadline => return Err(at - now),
                Admission::NotBefore(at) => sleep_until(at).await,
                // Past the deadline the next round says so.
                Admission::Full => drop(timeout_at(deadline, changed).await),
            }
        }
    }

    /// See [`LimitState::possible`].
    pub(super) fn possible(&self, until: Instant) -> Option<u64> {
        self.state().possible(Instant::now(), until)
    }

    /// See [`LimitState::standing`].
    pub(super) fn standing(&self) -> Vec<(RateWindow, u64)> {
        self.state().standing(Instant::now())
    }

    /// See [`LimitState::answered`].
    pub(super) fn answered(&self) {
        self.state().answered();
    }

    /// See [`LimitState::throttled`].
    pub(super) fn throttled(&self, quiet: Duration) {
        self.state().throttled(Instant::now(), quiet);
    }

    /// See [`LimitState::close`].
    pub(super) fn close(&self, quiet: Duration) {
        self.state().close(Instant::now(), quiet);
    }

    /// How long the gate stays closed; zero while it is open.
    pub(super) fn closed_for(&self) -> Duration {
        self.state().closed_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    fn state(&self) -> MutexGuard<'_, LimitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.state().ended();
        // All of them look again: one alone might be cancelled, or have to wait for the gate, and leave the place unused.
        self.0.changed.notify_waiters();
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.limiter.state().leave(self.share);
        // It may be the next one's turn now.
        self.limiter.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn budget(concurrency: usize, windows: &[(u32, u32)]) -> Budget {
        let windows = windows.iter().map(|(requests, seconds)| RateWindow { requests: *requests, seconds: *seconds });
        Budget { concurrency, windows: windows.collect(), ..Profile::v4().budget }
    }

    fn me() -> Arc<str> {
        "me".into()
    }

    #[test]
    fn throttling_halves_the_places_and_answers_bring_them_back() {
        let now = Instant::now();
        let mut state = LimitState::new(&budget(4, &[]));
        let places = |state: &mut LimitState, now| {
            let mut count = 0;
            while state.admit(now, 1, &me()) == Admission::Go {
                count += 1;
            }
            (0..count).for_each(|_| state.ended());
            count
        };
        assert_eq!(places(&mut state, now), 4);
        state.throttled(now, Duration::from_secs(5));
        assert_eq!(state.admit(now, 1, &me()), Admission::NotBefore(now + Duration::from_secs(5)));
        let later = now + Duration::from_secs(5);
        assert_eq!(places(&mut state, later), 2);
        (0..20).for_each(|_| state.answered());
        assert_eq!(places(&mut state, later), 4);
    }

    #[test]
    fn a_declared_window_is_kept() {
        let now = Instant::now();
        let mut state = LimitState::new(&budget(9, &[(2, 10)]));
        assert_eq!(state.admit(now, 1, &me()), Admission::Go);
        assert_eq!(state.admit(now + Duration::from_secs(3), 1, &me()), Admission::Go);
        let next = now + Duration::from_secs(10);
        assert_eq!(state.admit(now + Duration::from_secs(4), 1, &me()), Admission::NotBefore(next));
        assert_eq!(state.admit(next, 1, &me()), Admission::Go);
    }

    #[test]
    fn units_that_records_cost_are_kept_in_the_windows() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut state = LimitState::new(&budget(9, &[(10, 60)]));
        assert_eq!(state.admit(now, 4, &me()), Admission::Go);
        assert_eq!(state.admit(later(5), 4, &me()), Admission::Go);
        assert_eq!(state.admit(later(6), 2, &me()), Admission::Go);
        assert_eq!(state.admit(later(7), 5, &me()), Admission::NotBefore(later(65)), "the first four are not enough");
        assert_eq!(state.admit(later(60), 4, &me()), Admission::Go);
        assert_eq!(state.standing(later(60))[0].1, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_deadline_is_told_at_once() {
        let limiter = Limiter::new(&budget(1, &[]));
        limiter.throttled(Duration::from_secs(3600));
        let deadline = Instant::now() + Duration::from_secs(60);
        assert_eq!(limiter.acquire(deadline, 1, &me()).await.expect_err("too long"), Duration::from_secs(3600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_handed_on_when_a_request_ends() {
        let limiter = Limiter::new(&budget(1, &[]));
        let deadline = Instant::now() + Duration::from_secs(60);
        let first = limiter.acquire(deadline, 1, &me()).await.expect("a place");
        let waiting = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { limiter.acquire(deadline, 1, &me()).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.expect("joined").expect("a place");
    }

    #[test]
    fn what_declared_windows_allow_before_a_deadline_is_known_at_once() {
        let mut budget = Profile::v4().budget;
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(LimitState::new(&budget).possible(now, later(60)), None);
        budget.windows = vec![RateWindow { requests: 3, seconds: 10 }, RateWindow { requests: 30, seconds: 600 }];
        let mut state = LimitState::new(&budget);
        assert_eq!(state.possible(now, later(9)), Some(3));
        assert_eq!(state.possible(now, later(10)), Some(6));
        assert_eq!(state.possible(now, later(599)), Some(30));
        assert_eq!(state.admit(now, 1, &me()), Admission::Go);
        assert_eq!(state.possible(now, later(9)), Some(2));
    }

    #[test]
    fn those_who_wait_take_turns_whatever_each_of_them_wants() {
        let now = Instant::now();
        let mut state = LimitState::new(&budget(1, &[]));
        let (greedy, modest): (Arc<str>, Arc<str>) = ("greedy".into(), "modest".into());
        (0..50).for_each(|_| state.enter(&greedy));
        let mut turns = Vec::new();
        for turn in 0..8 {
            if turn == 3 {
                state.enter(&modest);
                state.enter(&modest);
            }
            // The greedy one always asks first.
            let mut next = None;
            for share in [&greedy, &modest] {
                if next.is_none() && state.waiting.contains_key(share) && state.admit(now, 1, share) == Admission::Go {
                    next = Some(Arc::clone(share));
                }
            }
            let next = next.expect("somebody's turn");
            state.leave(&next);
            state.ended();
            turns.push(next.chars().next().expect("a letter"));
        }
        assert_eq!(turns.into_iter().collect::<String>(), "ggggmgmg");
        assert_eq!(state.waiting.len(), 1);
    }
}
