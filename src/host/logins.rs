//! Login throttling: one attempt at a time per connection, with a growing delay after failures.
//!
//! Checking a password takes memory and CPU time, and anybody may request it. Each connection has one password checked
//! at a time. Failures are reported with a delay that grows with the number of failures of the address or the user.
//! Successful logins are never delayed, so that guessing does not lock anybody out: a login with the right password
//! waits for at most one check per connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::peer::{Caller, Peer};

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

    /// Records a successful attempt, which clears the user's failures.
    pub(crate) fn succeeded(&self, user: &str) {
        self.failures().remove(&Who::User(user.chars().take(100).collect()));
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<Who, (u32, Instant)>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
