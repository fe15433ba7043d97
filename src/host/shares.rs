//! Shares of users in the memory of a server: results that they have not read, and what their sessions keep between statements.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use crate::error::{Error, ErrorKind, Result};

/// Received bytes of a call, or of a connection of PostgreSQL, that do not count.
const UNCOUNTED: usize = 64 << 10;

/// The shares of all users.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Memory of a share, in KiB.
    kib: usize,
    users: Mutex<HashMap<Arc<str>, Weak<Share>>>,
}

/// The share of one user, over all sessions.
#[derive(Debug)]
pub(crate) struct Share {
    /// Memory of results that were not read, in KiB.
    pub(crate) unread: Arc<Semaphore>,
    /// All of it.
    pub(crate) kib: usize,
    /// Memory of what sessions keep, in KiB.
    kept: Arc<Semaphore>,
}

/// Memory that a session keeps: a prepared statement, a view, a temporary table. Dropping it gives the memory back.
#[derive(Debug)]
pub(crate) struct SessionMemory {
    what: &'static str,
    bytes: usize,
    share: Arc<Share>,
    permit: Option<OwnedSemaphorePermit>,
    pool: MemoryReservation,
}

/// Bytes that a client has sent and that are not decoded yet. Beyond the first 64 KiB, they count against the share of
/// the user. Dropping it gives the memory back.
#[derive(Debug)]
pub(crate) struct Received {
    share: Arc<Share>,
    pool: Arc<dyn MemoryPool>,
    counted: Option<SessionMemory>,
}

impl Shares {
    /// Shares of a quarter of the memory.
    pub(crate) fn new(memory_mib: usize) -> Self {
        Self { kib: (memory_mib << 8).clamp(1, Semaphore::MAX_PERMITS), users: Mutex::default() }
    }

    /// The share of a user.
    pub(crate) fn of(&self, user: &Arc<str>) -> Arc<Share> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = users.get(user).and_then(Weak::upgrade) {
            return share;
        }
        users.retain(|_, share| share.strong_count() > 0);
        let [unread, kept] = [(); 2].map(|()| Arc::new(Semaphore::new(self.kib)));
        let share = Arc::new(Share { unread, kib: self.kib, kept });
        users.insert(Arc::clone(user), Arc::downgrade(&share));
        share
    }
}

impl Share {
    /// Reserves memory for something that a session keeps.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if the user's share, or the memory of the server, is used up.
    pub(crate) fn keep(
        self: &Arc<Self>,
        pool: &Arc<dyn MemoryPool>,
        what: &'static str,
        bytes: usize,
    ) -> Result<SessionMemory> {
        let pool = MemoryConsumer::new(what).register(pool);
        let mut kept = SessionMemory { what, bytes: 0, share: Arc::clone(self), permit: None, pool };
        kept.grow(bytes)?;
        Ok(kept)
    }
}

impl SessionMemory {
    /// Reserves more memory.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if the user's share, or the memory of the server, is used up.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        let kib = |bytes: usize| u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        let all = self.bytes.saturating_add(bytes);
        let permit = Arc::clone(&self.share.kept).try_acquire_many_owned(kib(all) - kib(self.bytes));
        let permit = permit.map_err(|_| {
            let (what, mib) = (self.what, self.share.kib >> 10);
            Error::new(ErrorKind::Memory, format!("not enough memory for the {what}: the user is limited to {mib} MiB"))
                .advice("close statements, or drop tables and views")
        })?;
        self.pool.try_grow(bytes).map_err(|_| {
            Error::new(ErrorKind::Memory, format!("not enough memory for the {}", self.what))
                .advice("close statements, or drop tables and views")
        })?;
        match &mut self.permit {
            Some(all) => all.merge(permit),
            none => *none = Some(permit),
        }
        self.bytes = all;
        Ok(())
    }
}

impl Received {
    pub(crate) fn new(share: &Arc<Share>, pool: &Arc<dyn MemoryPool>) -> Self {
        Self { share: Arc::clone(share), pool: Arc::clone(pool), counted: None }
    }

    /// Counts so many bytes from now on, in place of those before.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the user's share, or the memory of the server, is used up.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        let beyond = bytes.saturating_sub(UNCOUNTED);
        let held = match &mut self.counted {
            Some(counted) if counted.bytes <= beyond => counted.grow(beyond - counted.bytes),
            _ => {
                self.counted = None;
                match beyond {
                    0 => Ok(()),
                    _ => self.share.keep(&self.pool, "message", beyond).map(|counted| self.counted = Some(counted)),
                }
            }
        };
        held.map_err(Failure::own)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::UnboundedMemoryPool;

    use super::*;
    use crate::host::failure::Code;

    #[test]
    fn what_one_user_keeps_is_limited_and_others_have_their_own_share() {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let shares = Shares::new(4);
        let [one, other] = ["one", "other"].map(|user| shares.of(&user.into()));
        let mut kept = one.keep(&pool, "table", 100).expect("100 bytes");
        for _ in 0..1_023 {
            kept.grow(1_024).expect("within 1 MiB");
        }
        let full = kept.grow(1_024).expect_err("more than 1 MiB");
        assert_eq!(full.kind(), ErrorKind::Memory);
        assert!(full.message().contains("limited to 1 MiB"), "{full}");
        assert!(shares.of(&"one".into()).keep(&pool, "view", 1).is_err(), "the same share");
        other.keep(&pool, "view", 1 << 20).expect("another share");
        drop(kept);
        one.keep(&pool, "view", 1 << 20).expect("given back");
    }

    #[test]
    fn what_a_client_has_sent_counts_until_it_is_decoded() {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let share = Shares::new(4).of(&"one".into());
        let mut received = Received::new(&share, &pool);
        for (units, counted) in [(1, 0), (2, 1), (5, 4), (3, 2), (17, 16), (0, 0), (9, 8)] {
            received.hold(units * UNCOUNTED).expect("within 1 MiB");
            assert_eq!(pool.reserved(), counted * UNCOUNTED);
        }
        let refused = received.hold(17 * UNCOUNTED + 1).expect_err("more than 1 MiB");
        assert_eq!((refused.code, refused.sqlstate()), (Code::ResourceExhausted, "53200"));
        assert!(refused.message.contains("message: the user is limited to 1 MiB"), "{}", refused.message);
        drop(received);
        assert_eq!(pool.reserved(), 0);
        share.keep(&pool, "view", 1 << 20).expect("given back");
    }
}
