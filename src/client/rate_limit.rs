//! One limiter per key: bounds the requests in flight and decides when the next one may start.
//!
//! [`LimitState`] is the policy, pure, with the time passed in: additive increase and multiplicative decrease of the
//! concurrency, a gate that stays closed for as long as the service asked to wait, declared windows, and turns among waiting
//! requests. [`Limiter`] makes callers wait. All queries of the process that use the same key at the same service share one
//! limiter.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::ledger::SHORT;
use super::sliding_window::SlidingWindows;
use crate::profile::{Budget, RateWindow};

/// Rate-limit policy. Times are monotonic.
#[derive(Debug)]
pub(super) struct LimitState {
    most: usize,
    allowed: f64,
    under_way: usize,
    closed_until: Option<Instant>,
    windows: SlidingWindows,
    turns: FairQueue,
}

/// Queue of waiting requests: start-time fair queueing (Goyal, Vin, Cheng 1996). Each share is served as if all
/// shares were served one unit at a time; a share that soon comes back is not treated as new.
#[derive(Debug, Default)]
struct FairQueue {
    /// Start of the last admitted request, in units served to a share.
    clock: u64,
    shares: HashMap<Arc<str>, Share>,
    /// Tickets issued so far.
    tickets: u64,
}

/// Waiting requests of one share.
#[derive(Debug, Default)]
struct Share {
    /// Tickets of the waiting requests, oldest first.
    tickets: VecDeque<u64>,
    /// Start of its next request, on the same clock.
    start: u64,
}

/// Decision on whether a request may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may start, and is counted as in flight.
    Go,
    /// It may not start before this instant.
    NotBefore(Instant),
    /// It may not start before its turn comes and another request has ended.
    Full,
}

impl FairQueue {
    fn enter(&mut self, share: &Arc<str>) -> u64 {
        self.tickets += 1;
        let known = self.shares.entry(Arc::clone(share)).or_default();
        if known.tickets.is_empty() {
            known.start = known.start.max(self.clock);
        }
        known.tickets.push_back(self.tickets);
        self.tickets
    }

    fn leave(&mut self, share: &Arc<str>, ticket: u64) {
        if let Some(known) = self.shares.get_mut(share) {
            known.tickets.retain(|other| *other != ticket);
        }
        // A share that is ahead of the clock is remembered until all others have caught up.
        let clock = self.clock;
        self.shares.retain(|_, share| !share.tickets.is_empty() || share.start > clock);
    }

    /// Ticket of the request whose turn it is.
    fn next(&self) -> Option<u64> {
        let first = |share: &Share| Some((share.start, *share.tickets.front()?));
        self.shares.values().filter_map(first).min().map(|(_, ticket)| ticket)
    }

    /// Records that a request of `share` took its turn, at a cost of `units`.
    fn taken(&mut self, share: &Arc<str>, units: u64) {
        if let Some(known) = self.shares.get_mut(share) {
            self.clock = self.clock.max(known.start);
            known.start += units;
        }
    }
}

impl LimitState {
    /// Creates the state with the full concurrency of the profile.
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            most: budget.concurrency,
            allowed: budget.concurrency as f64,
            under_way: 0,
            closed_until: None,
            // The ledger has the longer windows.
            windows: SlidingWindows::new(budget.windows.iter().copied().filter(|window| window.seconds <= SHORT)),
            turns: FairQueue::default(),
        }
    }

    /// Adds a waiting request of `share` and returns its ticket.
    pub(super) fn enter(&mut self, share: &Arc<str>) -> u64 {
        self.turns.enter(share)
    }

    /// Removes a waiting request of `share`.
    pub(super) fn leave(&mut self, share: &Arc<str>, ticket: u64) {
        self.turns.leave(share, ticket);
    }

    /// Ticket of the request whose turn it is.
    pub(super) fn next(&self) -> Option<u64> {
        self.turns.next()
    }

    /// Requests a permit for a waiting request that costs this many units of the windows. The windows of a profile
    /// always have room for one page.
    pub(super) fn admit(&mut self, now: Instant, units: u64, share: &Arc<str>, ticket: u64) -> Admission {
        if let Some(until) = self.closed_until
            && until > now
        {
            return Admission::NotBefore(until);
        }
        if self.under_way as f64 >= self.allowed.floor().max(1.0) || self.next() != Some(ticket) {
            return Admission::Full;
        }
        if let Some(free) = self.windows.free_at(now, units) {
            return Admission::NotBefore(free);
        }
        self.windows.spend(now, units);
        self.under_way += 1;
        self.turns.taken(share, units);
        Admission::Go
    }

    /// Gives back the units of a request that was admitted at this instant but not sent.
    pub(super) fn give_back(&mut self, admitted: Instant, units: u64) {
        self.windows.give_back(admitted, units);
    }

    /// Requests that the declared windows allow to start before `until`; `None` if none is declared.
    pub(super) fn possible(&self, now: Instant, until: Instant) -> Option<u64> {
        self.windows.possible(now, until)
    }

    /// Returns the declared windows with the requests counted against each.
    pub(super) fn standing(&self, now: Instant) -> Vec<(RateWindow, u64)> {
        self.windows.standing(now)
    }

    /// Records that a request ended, successfully or not.
    pub(super) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Records a response: adds about one permit per round of responses.
    pub(super) fn answered(&mut self) {
        self.allowed = (self.allowed + 1.0 / self.allowed).min(self.most as f64);
    }

    /// Records throttling: halves the permits and closes the gate for as long as the service asked. Returns false for a request that
    /// was sent before the gate was closed.
    pub(super) fn throttled(&mut self, now: Instant, quiet: Duration) -> bool {
        let was_open = self.closed_until.is_none_or(|until| until <= now);
        self.allowed = (self.allowed / 2.0).max(1.0);
        self.close(now, quiet);
        was_open
    }

    /// Closes the gate for `quiet`, but no longer than an hour: then a request may find out whether the service
    /// still insists.
    pub(super) fn close(&mut self, now: Instant, quiet: Duration) {
        let until = now + quiet.min(Duration::from_secs(3_600));
        self.closed_until = self.closed_until.max(Some(until));
    }
}

/// Makes callers wait as the policy decides.
#[derive(Debug)]
pub(super) struct Limiter {
    state: Mutex<LimitState>,
    /// Waiting requests by ticket. One of them is woken at a time.
    waiting: Mutex<HashMap<u64, Arc<Notify>>>,
}

/// Permit for a request in flight, returned on drop.
#[derive(Debug)]
pub(super) struct Permit {
    limiter: Arc<Limiter>,
    /// Instant at which the request was admitted.
    pub(super) admitted: Instant,
    /// Spans in which the limits of the service delayed the request. Waiting for other requests of this process is not
    /// part of them.
    pub(super) delays: Vec<Range<Instant>>,
}

/// Waiting request, removed from the queue on drop.
struct Queued<'l> {
    limiter: &'l Limiter,
    share: &'l Arc<str>,
    ticket: u64,
    woken: Arc<Notify>,
}

impl Limiter {
    /// Creates a limiter that is not shared.
    pub(super) fn new(budget: &Budget) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(LimitState::new(budget)), waiting: Mutex::default() })
    }

    /// Returns the limiter that this process shares for a key at a service.
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

    /// Waits for a permit for a request of `share` that costs this many units. Returns `Err(wait)` at once if there is
    /// none before `deadline`; zero if that has passed.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        deadline: Instant,
        units: u64,
        share: &Arc<str>,
    ) -> Result<Permit, Duration> {
        let queued = self.enter(share);
        let mut delays = Vec::new();
        loop {
            let now = Instant::now();
            if now >= deadline {
                return Err(Duration::ZERO);
            }
            let admission = self.state().admit(now, units, share, queued.ticket);
            match admission {
                Admission::Go => return Ok(Permit { limiter: Arc::clone(self), admitted: now, delays }),
                Admission::NotBefore(at) if at > deadline => return Err(at - now),
                Admission::NotBefore(at) => {
                    // Another request may give its units back before that.
                    drop(timeout_at(at, queued.woken.notified()).await);
                    delays.push(now..Instant::now());
                }
                // Past the deadline, the next iteration reports it.
                Admission::Full => drop(timeout_at(deadline, queued.woken.notified()).await),
            }
        }
    }

    fn enter<'l>(&'l self, share: &'l Arc<str>) -> Queued<'l> {
        let (ticket, woken) = (self.state().enter(share), Arc::new(Notify::new()));
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(ticket, Arc::clone(&woken));
        Queued { limiter: self, share, ticket, woken }
    }

    /// Wakes the request whose turn it is. If it is not waiting yet, the notification is kept.
    fn wake(&self) {
        let next = self.state().next();
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(woken) = next.and_then(|ticket| waiting.get(&ticket)) {
            woken.notify_one();
        }
    }

    /// See [`LimitState::give_back`].
    pub(super) fn give_back(&self, admitted: Instant, units: u64) {
        self.state().give_back(admitted, units);
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
        self.wake();
    }

    /// See [`LimitState::throttled`].
    pub(super) fn throttled(&self, quiet: Duration) -> bool {
        self.state().throttled(Instant::now(), quiet)
    }

    /// See [`LimitState::close`].
    pub(super) fn close(&self, quiet: Duration) {
        self.state().close(Instant::now(), quiet);
    }

    /// Time for which the gate stays closed, or a declared window keeps requests waiting; zero if they may start.
    pub(super) fn closed_for(&self) -> Duration {
        let (now, mut state) = (Instant::now(), self.state());
        let full = state.next().and_then(|_| state.windows.free_at(now, 1));
        state.closed_until.max(full).map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    fn state(&self) -> MutexGuard<'_, LimitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.state().ended();
        self.limiter.wake();
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.limiter.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.ticket);
        self.limiter.state().leave(self.share, self.ticket);
        // The next request may have its turn now, and there may be a permit.
        self.limiter.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::waits::length;
    use crate::profile::Profile;

    fn budget(concurrency: usize, windows: &[(u32, u32)]) -> Budget {
        let windows = windows.iter().map(|(requests, seconds)| RateWindow { requests: *requests, seconds: *seconds });
        Budget { concurrency, windows: windows.collect(), ..Profile::v4().budget }
    }

    fn me() -> Arc<str> {
        "me".into()
    }

    /// Requests a permit as the only waiting request.
    fn go(state: &mut LimitState, now: Instant, units: u64) -> Admission {
        let ticket = state.enter(&me());
        let admission = state.admit(now, units, &me(), ticket);
        state.leave(&me(), ticket);
        admission
    }

    #[test]
    fn throttling_halves_the_places_and_answers_bring_them_back() {
        let now = Instant::now();
        let mut state = LimitState::new(&budget(4, &[]));
        let places = |state: &mut LimitState, now| {
            let mut count = 0;
            while go(state, now, 1) == Admission::Go {
                count += 1;
            }
            (0..count).for_each(|_| state.ended());
            count
        };
        assert_eq!(places(&mut state, now), 4);
        state.throttled(now, Duration::from_secs(5));
        assert_eq!(go(&mut state, now, 1), Admission::NotBefore(now + Duration::from_secs(5)));
        let later = now + Duration::from_secs(5);
        assert_eq!(places(&mut state, later), 2);
        (0..20).for_each(|_| state.answered());
        assert_eq!(places(&mut state, later), 4);
    }

    #[test]
    fn a_declared_window_is_kept() {
        let now = Instant::now();
        let mut state = LimitState::new(&budget(9, &[(2, 10)]));
        assert_eq!(go(&mut state, now, 1), Admission::Go);
        assert_eq!(go(&mut state, now + Duration::from_secs(3), 1), Admission::Go);
        let next = now + Duration::from_secs(10);
        assert_eq!(go(&mut state, now + Duration::from_secs(4), 1), Admission::NotBefore(next));
        assert_eq!(go(&mut state, next, 1), Admission::Go);
    }

    #[test]
    fn units_that_records_cost_are_kept_in_the_windows() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut state = LimitState::new(&budget(9, &[(10, 60)]));
        assert_eq!(go(&mut state, now, 4), Admission::Go);
        assert_eq!(go(&mut state, later(5), 4), Admission::Go);
        assert_eq!(go(&mut state, later(6), 2), Admission::Go);
        assert_eq!(go(&mut state, later(7), 5), Admission::NotBefore(later(65)), "the first four units are not enough");
        assert_eq!(go(&mut state, later(60), 4), Admission::Go);
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
        let first = limiter.acquire(deadline, 1, &me()).await.expect("permit granted");
        let waiting = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { limiter.acquire(deadline, 1, &me()).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.expect("task finished").expect("permit granted");
    }

    #[tokio::test(start_paused = true)]
    async fn only_limits_of_the_service_count_as_delays() {
        let limiter = Limiter::new(&budget(1, &[(1, 7)]));
        let deadline = Instant::now() + Duration::from_secs(60);
        let first = limiter.acquire(deadline, 1, &me()).await.expect("permit granted");
        assert!(first.delays.is_empty());
        let waiting = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { limiter.acquire(deadline, 1, &me()).await.map(|permit| length(&permit.delays)) }
        });
        // The first request takes five seconds; for the two that follow the window is full.
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(first);
        let delayed = waiting.await.expect("task finished").expect("permit granted");
        assert_eq!(delayed, Duration::from_secs(2));
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
        assert_eq!(go(&mut state, now, 1), Admission::Go);
        assert_eq!(state.possible(now, later(9)), Some(2));
    }

    /// Order in which requests are admitted if each client makes its next request as soon as it was served.
    fn turns(clients: &[(&str, usize)], rounds: usize) -> String {
        let now = Instant::now();
        let mut state = LimitState::new(&budget(1, &[]));
        let mut waiting: Vec<(Arc<str>, u64)> = Vec::new();
        for (share, requests) in clients {
            let share: Arc<str> = (*share).into();
            waiting.extend((0..*requests).map(|_| (Arc::clone(&share), state.enter(&share))));
        }
        let mut served = String::new();
        for _ in 0..rounds {
            let at = waiting.iter().position(|(share, ticket)| state.admit(now, 1, share, *ticket) == Admission::Go);
            let (share, ticket) = waiting.remove(at.expect("a request has its turn"));
            state.leave(&share, ticket);
            state.ended();
            served.push_str(&share);
            // The client comes back at once, before all others ask.
            waiting.insert(0, (Arc::clone(&share), state.enter(&share)));
        }
        served
    }

    #[test]
    fn those_who_wait_take_turns_whatever_each_of_them_wants() {
        assert_eq!(turns(&[("g", 50), ("m", 2)], 8), "gmgmgmgm");
        // Also if each has a single request at a time, and has just been served.
        assert_eq!(turns(&[("a", 1), ("b", 1), ("c", 1)], 9), "abcabcabc");
    }

    #[test]
    fn who_was_away_has_no_credit_and_who_was_just_served_has_a_debt() {
        let now = Instant::now();
        let mut state = LimitState::new(&budget(9, &[]));
        let (old, new): (Arc<str>, Arc<str>) = ("old".into(), "new".into());
        for _ in 0..3 {
            let ticket = state.enter(&old);
            assert_eq!(state.admit(now, 1, &old, ticket), Admission::Go);
            state.leave(&old, ticket);
        }
        let (first, other) = (state.enter(&old), state.enter(&new));
        assert_eq!(state.next(), Some(other), "the new one, though it came later");
        assert_eq!(state.admit(now, 1, &new, other), Admission::Go);
        state.leave(&new, other);
        assert_eq!(state.next(), Some(first), "it has waited long enough");
        state.leave(&old, first);
        assert_eq!(state.turns.shares.len(), 2, "debts are remembered");
        state.turns.clock = 3;
        state.leave(&old, first);
        assert!(state.turns.shares.is_empty(), "until all others have caught up");
    }
}
