//! Login throttling: one attempt at a time per connection, a bounded queue in front of the password checks, and a growing delay
//! after failures.
//!
//! ```text
//! attempt ─▶ turn of its connection ─▶ queue ─▶ one of the checks under way
//!                                       │ users who logged in from this address before, then this machine, then the rest;
//!                                       │ of these the address that was served least recently
//!                                       └ full: refused, in favor of addresses with fewer attempts
//! ```
//!
//! Checking a password takes memory and CPU time, and any client may request it. An attempt leaves the queue when its future
//! is dropped, which also happens when the client disconnects. Failures are reported with a delay, which grows with the
//! number of failures of the address or the user. Successful logins are never delayed, so an attacker who guesses passwords
//! cannot lock users out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::Instant;

use super::peer::{Caller, Peer};

/// Password checks under way at once.
const CHECKS: usize = 2;
/// Attempts in the queue.
const WAITING: usize = 512;
/// Attempts of one address in the queue.
const WAITING_OF_ADDRESS: usize = 256;

/// Delay after the first failure; doubles with each further one.
const FIRST: Duration = Duration::from_millis(100);
/// Maximum delay.
const LONGEST: Duration = Duration::from_secs(5);
/// Time after the last failure at which the count is reset.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Maximum number of addresses and users tracked; beyond that the oldest are forgotten.
const COUNTED: usize = 10_000;

/// Login attempts in progress and recent failures.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    under_way: Mutex<HashMap<Peer, Arc<tokio::sync::Mutex<()>>>>,
    failures: Mutex<HashMap<Who, (u32, Instant)>>,
    queue: Arc<Mutex<Queue>>,
}

/// Attempts that wait for a password check.
#[derive(Debug, Default)]
struct Queue {
    under_way: usize,
    waiting: Vec<Waiting>,
    /// Attempts so far.
    attempts: u64,
    /// Number of the attempt of each address that was checked last.
    served: HashMap<IpAddr, u64>,
    /// Users by the addresses from which they have logged in.
    proven: HashMap<(String, IpAddr), Instant>,
}

#[derive(Debug)]
struct Waiting {
    attempt: u64,
    address: Option<IpAddr>,
    rank: Rank,
    /// Dropped if the attempt is refused.
    turn: oneshot::Sender<Check>,
}

/// Order in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Proven,
    Local,
    Stranger,
}

/// A password check under way. The next one starts when it is dropped.
#[derive(Debug)]
pub(crate) struct Check(Arc<Mutex<Queue>>);

/// Removes an attempt that no longer waits.
struct Place {
    queue: Arc<Mutex<Queue>>,
    attempt: u64,
}

/// Address or user that a failure counts against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    Address(IpAddr),
    User(String),
}

impl Logins {
    /// Waits for the connection's turn; its other attempts wait until the returned guard is dropped.
    pub(crate) async fn turn(&self, caller: Option<Caller>) -> Option<OwnedMutexGuard<()>> {
        let caller = caller?;
        let turn = {
            let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            under_way.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(under_way.entry(caller.peer).or_default())
        };
        Some(turn.lock_owned().await)
    }

    /// Waits in the queue for a password check; `None` if the queue is full.
    pub(crate) async fn check(&self, user: &str, caller: Option<Caller>) -> Option<Check> {
        let address = caller.map(|caller| caller.address);
        let (turn, checked) = oneshot::channel();
        let place = {
            let mut queue = lock(&self.queue);
            let rank = queue.rank(user, address);
            if !queue.has_room(address) {
                return None;
            }
            queue.attempts += 1;
            let attempt = queue.attempts;
            queue.waiting.push(Waiting { attempt, address, rank, turn });
            Place { queue: Arc::clone(&self.queue), attempt }
        };
        next(&self.queue);
        let check = checked.await.ok();
        drop(place);
        check
    }

    /// Records a failed attempt. Returns the delay before it is reported.
    pub(crate) fn failed(&self, user: &str, caller: Option<Caller>) -> Duration {
        let (now, mut failures) = (Instant::now(), self.failures());
        failures.retain(|_, (_, last)| now.duration_since(*last) < REMEMBERED);
        // Bounds memory: a name may be as long as a header.
        let user = user.chars().take(100).collect();
        let whose = [Some(Who::User(user)), caller.map(|caller| Who::Address(caller.address))];
        let mut most = 0;
        for who in whose.into_iter().flatten() {
            if failures.len() >= COUNTED && !failures.contains_key(&who) {
                let oldest = failures.iter().min_by_key(|(_, (_, last))| *last).map(|(who, _)| who.clone());
                oldest.map(|oldest| failures.remove(&oldest));
            }
            let (count, last) = failures.entry(who).or_insert((0, now));
            (*count, *last) = (count.saturating_add(1), now);
            most = most.max(*count);
        }
        FIRST.saturating_mul(1 << most.saturating_sub(1).min(16)).min(LONGEST)
    }

    /// Records a successful attempt, which clears the user's failures. From now on, the user comes first at this address.
    pub(crate) fn succeeded(&self, user: &str, caller: Option<Caller>) {
        self.failures().remove(&Who::User(user.chars().take(100).collect()));
        let Some(caller) = caller else { return };
        let proven = &mut lock(&self.queue).proven;
        if proven.len() >= COUNTED {
            let oldest = proven.iter().min_by_key(|(_, since)| **since).map(|(who, _)| who.clone());
            oldest.map(|oldest| proven.remove(&oldest));
        }
        proven.insert((user.to_owned(), caller.address), Instant::now());
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<Who, (u32, Instant)>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn rank(&self, user: &str, address: Option<IpAddr>) -> Rank {
        match address {
            Some(address) if self.proven.contains_key(&(user.to_owned(), address)) => Rank::Proven,
            Some(address) if !address.is_loopback() => Rank::Stranger,
            _ => Rank::Local,
        }
    }

    /// True if an attempt of an address may wait. If the queue is full, the last attempt of the address with most of them is
    /// refused instead.
    fn has_room(&mut self, address: Option<IpAddr>) -> bool {
        let mut of_address: HashMap<Option<IpAddr>, usize> = HashMap::new();
        self.waiting.iter().for_each(|waiting| *of_address.entry(waiting.address).or_default() += 1);
        let own = of_address.get(&address).copied().unwrap_or_default();
        if own >= WAITING_OF_ADDRESS {
            return false;
        }
        if self.waiting.len() < WAITING {
            return true;
        }
        let most = of_address.into_iter().max_by_key(|(_, count)| *count);
        let Some((most, _)) = most.filter(|(_, count)| *count > own + 1) else { return false };
        if let Some(last) = self.waiting.iter().rposition(|waiting| waiting.address == most) {
            self.waiting.remove(last);
        }
        true
    }

    /// Takes the attempt whose turn it is.
    fn take(&mut self) -> Option<Waiting> {
        if self.under_way >= CHECKS {
            return None;
        }
        let served = |waiting: &Waiting| waiting.address.and_then(|address| self.served.get(&address)).copied();
        let order = |waiting: &Waiting| (waiting.rank, served(waiting), waiting.attempt);
        let (at, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| order(waiting))?;
        let taken = self.waiting.remove(at);
        self.under_way += 1;
        if self.waiting.is_empty() {
            self.served.clear();
        } else if let Some(address) = taken.address {
            self.served.insert(address, taken.attempt);
        }
        Some(taken)
    }
}

/// Starts the checks for which there is room.
fn next(queue: &Arc<Mutex<Queue>>) {
    loop {
        // The guard must have been released: if no client takes a check, it is dropped, which locks the queue.
        let Some(taken) = lock(queue).take() else { return };
        let _ = taken.turn.send(Check(Arc::clone(queue)));
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Check {
    fn drop(&mut self) {
        lock(&self.0).under_way -= 1;
        next(&self.0);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.queue).waiting.retain(|waiting| waiting.attempt != self.attempt);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn proven_users_come_first_and_addresses_take_turns() {
        let logins = Logins::default();
        let mut under_way = logins.check("x", caller(1, 1)).await;
        let _other = logins.check("x", caller(1, 1)).await;
        assert!(under_way.is_some());
        logins.succeeded("ada", caller(9, 1));
        let mut waiting = Vec::new();
        for (user, last) in [("x", 1), ("x", 1), ("x", 2), ("ada", 1), ("ada", 3)] {
            let mut attempt = Box::pin(logins.check(user, caller(u64::from(last), last)));
            assert!(attempt.as_mut().now_or_never().is_none());
            waiting.push(Some(attempt));
        }
        let mut order = Vec::new();
        while order.len() < waiting.len() {
            // One check ends, and one begins.
            drop(under_way.take());
            let mut begun = waiting.iter_mut().enumerate().filter_map(|(number, place)| {
                let check = place.as_mut()?.as_mut().now_or_never()?;
                *place = None;
                Some((number, check))
            });
            let (number, check) = begun.next().expect("a check");
            assert!(begun.next().is_none(), "one at a time");
            order.push(number);
            under_way = check;
        }
        assert_eq!(order[0], 3, "proven at this address: {order:?}");
        let at = |number| order.iter().position(|found| *found == number);
        assert!(at(2) < at(1) && at(4) < at(1), "each address once before the second attempt of one: {order:?}");
    }

    #[tokio::test]
    async fn the_queue_is_bounded_by_address_and_those_who_leave_leave_it() {
        let logins = Logins::default();
        let _busy = [logins.check("x", caller(1, 1)).await, logins.check("x", caller(1, 1)).await];
        let mut waiting = Vec::new();
        for last in 1..=10 {
            for _ in 0..WAITING_OF_ADDRESS + 10 {
                let mut attempt = Box::pin(logins.check("x", caller(1, last)));
                match attempt.as_mut().now_or_never() {
                    None => waiting.push(attempt),
                    Some(refused) => assert!(refused.is_none()),
                }
            }
        }
        assert_eq!(lock(&logins.queue).waiting.len(), WAITING);
        let mut other = Box::pin(logins.check("x", caller(2, 99)));
        assert!(other.as_mut().now_or_never().is_none(), "an address with none gets a place");
        assert_eq!(lock(&logins.queue).waiting.len(), WAITING);
        drop(waiting);
        assert_eq!(lock(&logins.queue).waiting.len(), 1);
    }

    fn caller(peer: u64, last: u8) -> Option<Caller> {
        Some(Caller { peer: Peer(peer), address: IpAddr::from([10, 0, 0, last]) })
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_answered_later_and_later_by_address_and_by_user() {
        let logins = Logins::default();
        assert_eq!(logins.failed("ada", caller(1, 1)), FIRST);
        assert_eq!(logins.failed("bob", caller(2, 1)), FIRST * 2, "the same address");
        assert_eq!(logins.failed("ada", caller(3, 2)), FIRST * 2, "the same user");
        assert_eq!(logins.failed("eve", caller(4, 3)), FIRST);
        for _ in 0..100 {
            logins.failed("ada", caller(1, 1));
        }
        assert_eq!(logins.failed("ada", caller(9, 9)), LONGEST);
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(logins.failed("ada", caller(9, 9)), FIRST);
        for number in 0..20_000 {
            logins.failed(&format!("user {number}"), None);
        }
        assert!(logins.failures().len() <= COUNTED);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_one_attempt_at_a_time() {
        let logins = Logins::default();
        let first = logins.turn(caller(1, 1)).await;
        assert!(tokio::time::timeout(LONGEST, logins.turn(caller(1, 1))).await.is_err());
        assert!(logins.turn(caller(2, 1)).await.is_some(), "another connection");
        drop(first);
        assert!(logins.turn(caller(1, 1)).await.is_some());
    }
}
