//! Attempts to log in: one at a time for each connection, and slower with each failure.
//!
//! Checking a password takes memory and a processor for a while, and everybody may ask for it. A connection has one checked at a
//! time; wrong answers are given late, the later the more of them an address or a user has had. Right ones
//! are never held back, so that guessers keep nobody out: whoever knows the password waits for one check of each connection
//! at most.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::peer::{Caller, Peer};

/// How late the first wrong answer is; twice as late after each further one.
const FIRST: Duration = Duration::from_millis(100);
/// How late at most.
const LONGEST: Duration = Duration::from_secs(5);
/// How long a failure counts.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Addresses and users whose failures are counted. Beyond that those that are oldest are forgotten.
const COUNTED: usize = 10_000;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Logins {
    under_way: Mutex<HashMap<Peer, Arc<tokio::sync::Mutex<()>>>>,
    failures: Mutex<HashMap<Who, (u32, Instant)>>,
}

/// Whom a failure counts against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    Address(IpAddr),
    User(String),
}

impl Logins {
    /// The turn of a connection; its other attempts wait until what is returned is dropped.
    pub(super) async fn turn(&self, caller: Option<Caller>) -> Option<OwnedMutexGuard<()>> {
        let caller = caller?;
        let turn = {
            let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            under_way.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(under_way.entry(caller.peer).or_default())
        };
        Some(turn.lock_owned().await)
    }

    /// An attempt has failed. Gives how late its answer is to be.
    pub(super) fn failed(&self, user: &str, caller: Option<Caller>) -> Duration {
        let (now, mut failures) = (Instant::now(), self.failures());
        failures.retain(|_, (_, last)| now.duration_since(*last) < REMEMBERED);
        // A name may be as long as a header.
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

    /// An attempt has succeeded: the user's failures were somebody's slips.
    pub(super) fn succeeded(&self, user: &str) {
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
