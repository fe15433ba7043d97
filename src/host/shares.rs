//! Shares of users in what statements take: memory of operators, of results that were not read and of what sessions keep, and turns
//! for planning. So no user's statements are refused because of another's.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use datafusion::error::Result as EngineResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::sleep;

use super::failure::Failure;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::statements::CountedPool;
use crate::session::PlanningTurn;

/// Received bytes of a call, or of a connection of PostgreSQL, that do not count.
const UNCOUNTED: usize = 64 << 10;
/// Statements of a user that are parsed or planned at the same time: as half of the processors can, within 2 and 4. Each takes a thread,
/// and the memory of its constants, which nothing reserves.
static PLANNING: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(2, |processors| (processors.get() / 2).clamp(2, 4)));
/// Bytes of a large text or plan. A user has one turn for those: planning them takes a thousand times as much memory.
const LARGE: usize = 128 << 10;
/// Bytes that a parameter counts as in addition to its text: planning one takes 27 KiB of memory.
const PARAMETER: usize = 32;
/// Statements of a user that look for a turn when one has ended. The others look at intervals: if each turn that ends woke hundreds of
/// them, that would cost more than to plan a short statement.
const NEXT: usize = 16;
const LOOK: Duration = Duration::from_millis(50);
/// KiB that a user may keep before the service has accepted the key. Beyond them, the limit of all such users applies as well.
const LITTLE: usize = 256;

/// The shares of all users.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Memory of all statements, in MiB.
    memory_mib: usize,
    /// Temporary files and caches, which the shares have in common.
    common: Arc<RuntimeEnv>,
    /// Memory of what sessions keep before the service has accepted their keys, in KiB. Anybody can invent a thousand keys.
    strangers: Arc<Semaphore>,
    users: Mutex<HashMap<Arc<str>, Weak<Share>>>,
}

/// The share of one user, over all sessions.
pub(crate) struct Share {
    /// Memory of results that were not read, in KiB.
    pub(crate) unread: Arc<Semaphore>,
    /// All of it.
    pub(crate) kib: usize,
    /// Memory of what sessions keep, in KiB.
    kept: Arc<Semaphore>,
    /// The part of it that counts as [`Shares::strangers`]; `None` if the user needs no key, or the service has accepted it.
    of_strangers: Mutex<Option<OwnedSemaphorePermit>>,
    /// The engine's environment of the user's statements: operators reserve their memory in its pool.
    pub(crate) runtime: Arc<RuntimeEnv>,
    turns: PlanningTurns,
    /// For a session that is made.
    opening: Semaphore,
}

/// Turns for planning. A turn that ends belongs to nobody until a task that runs takes it. If it were handed to a waiting task, it
/// would be lost while the threads of that task's lane compute.
#[derive(Debug)]
struct PlanningTurns {
    free: Semaphore,
    /// For a large statement, which takes one of the others as well.
    large: Semaphore,
    ended: Notify,
    /// For those that are notified when a turn ends: small statements, and large ones.
    next: [Semaphore; 2],
}

impl PlanningTurns {
    fn new() -> Self {
        let next = [(); 2].map(|()| Semaphore::new(NEXT));
        Self { free: Semaphore::new(*PLANNING), large: Semaphore::new(1), ended: Notify::new(), next }
    }

    fn begin(&self, is_large: bool) -> Option<PlanningTurn<'_>> {
        let large = if is_large { Some(self.large.try_acquire().ok()?) } else { None };
        let permit = self.free.try_acquire().ok()?;
        Some(PlanningTurn::bounded(permit, large, &self.ended))
    }
}

/// Memory that a session keeps: a prepared statement, a view, a temporary table. Dropping it gives the memory back.
#[derive(Debug)]
pub(crate) struct SessionMemory {
    what: &'static str,
    bytes: usize,
    share: Arc<Share>,
    permit: Option<OwnedSemaphorePermit>,
    /// KiB of it that were counted as [`Shares::strangers`].
    of_strangers: usize,
    pool: MemoryReservation,
}

/// Bytes that a client has sent and that are not decoded yet. Beyond the first 64 KiB, they count against the share of
/// the user. Dropping it gives the memory back.
#[derive(Debug)]
pub(crate) struct Received {
    share: Arc<Share>,
    counted: Option<SessionMemory>,
}

impl Shares {
    /// Each share has a quarter of the memory for unread results, a quarter for what sessions keep, and half of the memory for all
    /// that operators reserve. Users whose keys the service has not accepted yet keep an eighth of the memory together.
    pub(crate) fn new(memory_mib: usize, common: Arc<RuntimeEnv>) -> Self {
        let strangers = Arc::new(Semaphore::new(memory_mib.saturating_mul(1 << 7).clamp(1, Semaphore::MAX_PERMITS)));
        Self { memory_mib, common, strangers, users: Mutex::default() }
    }

    /// The share of a user.
    ///
    /// # Errors
    /// None in practice: errors of a runtime with the settings of the one in common.
    pub(crate) fn of(&self, user: &Arc<str>) -> EngineResult<Arc<Share>> {
        self.found(user, true)
    }

    /// As [`of`](Self::of), for the holder of a key that the service has to accept.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub(crate) fn of_stranger(&self, user: &Arc<str>) -> EngineResult<Arc<Share>> {
        self.found(user, false)
    }

    fn found(&self, user: &Arc<str>, is_known: bool) -> EngineResult<Arc<Share>> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = users.get(user).and_then(Weak::upgrade) {
            return Ok(share);
        }
        users.retain(|_, share| share.strong_count() > 0);
        let kib = self.memory_mib.saturating_mul(1 << 8).clamp(1, Semaphore::MAX_PERMITS);
        let [unread, kept] = [(); 2].map(|()| Arc::new(Semaphore::new(kib)));
        let pool = Arc::new(CountedPool::new(self.memory_mib.saturating_mul(1 << 20)));
        let runtime = RuntimeEnvBuilder::from_runtime_env(&self.common).with_memory_pool(pool).build_arc()?;
        let turns = PlanningTurns::new();
        // None of them yet. The semaphore is never closed.
        let nothing = || Arc::clone(&self.strangers).try_acquire_many_owned(0).ok();
        let of_strangers = Mutex::new(if is_known { None } else { nothing() });
        let share = Arc::new(Share { unread, kib, kept, of_strangers, runtime, turns, opening: Semaphore::new(1) });
        users.insert(Arc::clone(user), Arc::downgrade(&share));
        Ok(share)
    }
}

impl Share {
    /// Reserves memory for something that a session keeps.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if the user's share, or the memory of the server, is used up.
    pub(crate) fn keep(self: &Arc<Self>, what: &'static str, bytes: usize) -> Result<SessionMemory> {
        let pool = MemoryConsumer::new(what).register(self.pool());
        let share = Arc::clone(self);
        let mut kept = SessionMemory { what, bytes: 0, share, permit: None, of_strangers: 0, pool };
        kept.grow(bytes)?;
        Ok(kept)
    }

    /// The pool in which the user's operators reserve their memory.
    pub(crate) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.runtime.memory_pool
    }

    /// Waits until the user may parse or plan another statement, whose text or plan has this many bytes. The turn ends when it is
    /// dropped. A holder must not ask for another turn.
    pub(crate) async fn planning(&self, bytes: usize) -> PlanningTurn<'_> {
        let is_large = bytes > LARGE;
        let mut place = None;
        loop {
            // Before the look, so that a turn that ends after it is not missed.
            let ended = self.turns.ended.notified();
            if let Some(turn) = self.turns.begin(is_large) {
                return turn;
            }
            place = place.or_else(|| self.turns.next[usize::from(is_large)].try_acquire().ok());
            match place {
                Some(_) => ended.await,
                None => sleep(LOOK).await,
            }
        }
    }

    /// As [`planning`](Self::planning), for a text, in which parameters count more than what is written.
    pub(crate) async fn planning_of(&self, text: &str) -> PlanningTurn<'_> {
        let parameters = text.bytes().filter(|byte| matches!(byte, b'$' | b'?')).count();
        self.planning_with(text.len(), parameters).await
    }

    /// As [`planning`](Self::planning), with so many parameters.
    pub(crate) async fn planning_with(&self, bytes: usize, parameters: usize) -> PlanningTurn<'_> {
        self.planning(bytes.saturating_add(parameters.saturating_mul(PARAMETER))).await
    }

    /// Waits until the user may open another session: one is made at a time, so that calls of others come between them.
    pub(crate) async fn opening(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.opening.acquire().await.ok()
    }

    /// Notes that the service has accepted the user's key: the limit of all users without such a key no longer applies.
    pub(crate) fn accept(&self) {
        drop(self.of_strangers().take());
    }

    fn of_strangers(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.of_strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while sessions keep less than a quarter of it.
    pub(crate) fn has_room(&self) -> bool {
        self.kept.available_permits() > self.kib - self.kib / 4
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
        let more = kib(all) - kib(self.bytes);
        let permit = Arc::clone(&self.share.kept).try_acquire_many_owned(more);
        let permit = permit.map_err(|_| {
            let (what, mib) = (self.what, self.share.kib >> 10);
            Error::new(ErrorKind::Memory, format!("not enough memory for the {what}: the user is limited to {mib} MiB"))
                .advice("fetch results, close statements, or drop tables and views")
        })?;
        let mut strangers = self.share.of_strangers();
        let keeps_much = self.share.kib - self.share.kept.available_permits() > LITTLE;
        let of_strangers = strangers.as_ref().filter(|_| keeps_much).map(|known| Arc::clone(known.semaphore()));
        let of_strangers = of_strangers.map(|all| all.try_acquire_many_owned(more)).transpose().map_err(|_| {
            let what = self.what;
            let message = format!("not enough memory for the {what}: the service has not accepted the API key yet");
            Error::new(ErrorKind::Memory, message).advice("run a query that reads from the service first")
        })?;
        self.pool.try_grow(bytes).map_err(|_| {
            Error::new(ErrorKind::Memory, format!("not enough memory for the {}", self.what))
                .advice("fetch results, close statements, or drop tables and views")
        })?;
        if let Some((known, more)) = strangers.as_mut().zip(of_strangers) {
            self.of_strangers += more.num_permits();
            known.merge(more);
        }
        match &mut self.permit {
            Some(all) => all.merge(permit),
            none => *none = Some(permit),
        }
        self.bytes = all;
        Ok(())
    }
}

impl Drop for SessionMemory {
    fn drop(&mut self) {
        if let Some(known) = self.share.of_strangers().as_mut() {
            drop(known.split(self.of_strangers));
        }
    }
}

impl Received {
    pub(crate) fn new(share: &Arc<Share>) -> Self {
        Self { share: Arc::clone(share), counted: None }
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
                    _ => self.share.keep("message", beyond).map(|counted| self.counted = Some(counted)),
                }
            }
        };
        held.map_err(Failure::own)
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("kib", &self.kib).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;
    use crate::host::failure::Code;

    /// The share of a user, of 1 MiB.
    pub(crate) fn share_of_a_mebibyte() -> Arc<Share> {
        Shares::new(4, Arc::default()).of(&"one".into()).expect("a share")
    }

    #[tokio::test]
    async fn a_user_plans_a_few_statements_at_a_time_and_others_theirs() {
        let shares = Shares::new(4, Arc::default());
        let [one, other] = ["one", "other"].map(|user| shares.of(&user.into()).expect("a share"));
        let mut held = join_all((0..*PLANNING).map(|_| one.planning(1))).await;
        assert!(one.planning(1).now_or_never().is_none(), "all turns are taken");
        assert!(other.planning(1).now_or_never().is_some(), "another user");
        held.truncate(*PLANNING - 2);
        let large = one.planning(LARGE + 1).now_or_never().expect("two have ended");
        assert!(one.planning(LARGE + 1).now_or_never().is_none(), "one large statement at a time");
        assert!(other.planning(LARGE + 1).now_or_never().is_some(), "another user");
        assert!(one.planning(LARGE).now_or_never().is_some(), "one that is not large");
        drop(large);
        assert!(one.planning(LARGE + 1).now_or_never().is_some(), "the large one has ended");
    }

    #[tokio::test]
    async fn a_statement_with_many_parameters_is_large() {
        let shares = Shares::new(4, Arc::default());
        let one = shares.of(&"one".into()).expect("a share");
        for (form, parameters) in [("($1),", 12_000), ("?,", 5_000)] {
            let text = form.repeat(parameters);
            assert!(text.len() <= LARGE, "as a text, it is not large");
            let large = one.planning_of(&text).now_or_never().expect("a turn");
            assert!(one.planning_of(&text).now_or_never().is_none(), "{form}: one at a time");
            assert!(one.planning_with(1, parameters).now_or_never().is_none(), "{form}: its values");
            assert!(one.planning_of("SELECT $1").now_or_never().is_some(), "a short one");
            drop(large);
        }
    }

    #[tokio::test]
    async fn all_who_wait_for_a_turn_get_one() {
        const WAITING: usize = 10 * NEXT;
        let share = share_of_a_mebibyte();
        let held = join_all((0..*PLANNING).map(|_| share.planning(1))).await;
        let waiting: Vec<_> = (0..WAITING)
            .map(|_| {
                let share = Arc::clone(&share);
                tokio::spawn(async move { drop(share.planning(1).await) })
            })
            .collect();
        while share.turns.next[0].available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        drop(held);
        for waiting in waiting {
            waiting.await.expect("a turn");
        }
        assert_eq!(share.turns.next[0].available_permits(), NEXT);
    }

    #[test]
    fn more_memory_than_can_be_addressed_is_all_of_it() {
        let share = Shares::new(1 << (usize::BITS - 8), Arc::default()).of(&"one".into()).expect("a share");
        assert_eq!(share.kib, Semaphore::MAX_PERMITS);
    }

    #[test]
    fn what_one_user_keeps_is_limited_and_others_have_their_own_share() {
        let shares = Shares::new(4, Arc::default());
        let [one, other] = ["one", "other"].map(|user| shares.of(&user.into()).expect("a share"));
        let mut kept = one.keep("table", 100).expect("100 bytes");
        for _ in 0..1_023 {
            kept.grow(1_024).expect("within 1 MiB");
        }
        let full = kept.grow(1_024).expect_err("more than 1 MiB");
        assert_eq!(full.kind(), ErrorKind::Memory);
        assert!(full.message().contains("limited to 1 MiB"), "{full}");
        assert!(shares.of(&"one".into()).expect("a share").keep("view", 1).is_err(), "the same share");
        other.keep("view", 1 << 20).expect("another share");
        drop(kept);
        one.keep("view", 1 << 20).expect("given back");
    }

    #[test]
    fn those_whose_keys_were_not_accepted_share_an_eighth() {
        let shares = Shares::new(64, Arc::default());
        let [one, other] = ["one", "other"].map(|user| shares.of_stranger(&user.into()).expect("a share"));
        let kept = one.keep("table", 8 << 20).expect("an eighth of 64 MiB");
        let refused = other.keep("table", 1 << 20).expect_err("nothing is left");
        assert!(refused.message().contains("has not accepted the API key yet"), "{refused}");
        let little = other.keep("result", 200 << 10).expect("little");
        shares.of(&"known".into()).expect("a share").keep("table", 16 << 20).expect("a share of its own");
        other.accept();
        shares.of_stranger(&"other".into()).expect("a share").keep("table", 1 << 20).expect("a known user");
        drop((kept, little));
        let kept = one.keep("table", 8 << 20).expect("given back");
        // What was kept before the key was accepted is that of a known user afterwards, and is given back once.
        one.accept();
        let third = shares.of_stranger(&"third".into()).expect("a share");
        let _all = third.keep("table", 8 << 20).expect("an eighth of 64 MiB");
        drop(kept);
        third.keep("table", 1 << 20).expect_err("nothing is left");
    }

    #[test]
    fn what_the_pool_refuses_does_not_count_for_others() {
        let shares = Shares::new(64, Arc::default());
        let [one, other] = ["one", "other"].map(|user| shares.of_stranger(&user.into()).expect("a share"));
        let mut kept = one.keep("table", 1 << 20).expect("1 MiB");
        let sort = MemoryConsumer::new("sort").register(one.pool());
        sort.try_grow(30 << 20).expect("the pool has 32 MiB");
        kept.grow(2 << 20).expect_err("the pool is full");
        other.keep("table", 7 << 20).expect("the rest of an eighth of 64 MiB");
    }

    #[test]
    fn what_a_client_has_sent_counts_until_it_is_decoded() {
        let share = share_of_a_mebibyte();
        let mut received = Received::new(&share);
        for (units, counted) in [(1, 0), (2, 1), (5, 4), (3, 2), (17, 16), (0, 0), (9, 8)] {
            received.hold(units * UNCOUNTED).expect("within 1 MiB");
            assert_eq!(share.pool().reserved(), counted * UNCOUNTED);
        }
        let refused = received.hold(17 * UNCOUNTED + 1).expect_err("more than 1 MiB");
        assert_eq!((refused.code, refused.sqlstate()), (Code::ResourceExhausted, "53200"));
        assert!(refused.message().contains("message: the user is limited to 1 MiB"), "{}", refused.message());
        drop(received);
        assert_eq!(share.pool().reserved(), 0);
        share.keep("view", 1 << 20).expect("given back");
    }
}
