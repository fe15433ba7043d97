//! Memory of statements, counted when it is allocated.
//!
//! ```text
//! allocator of the program ─▶ bytes of the process ─▶ room: what would exceed the limit is refused before it is allocated
//!                          └▶ bytes of a thread    ─▶ before and after each poll of a task ─▶ its StatementMemory
//! ```
//!
//! The engine's memory pool counts only what operators register. Plans, values of functions, results on their way to a
//! socket and the buffers of a protocol are not registered. An allocator counts all of them, but does not know which
//! statement allocates. So each poll of a task is charged to its statement: the bytes that the thread has allocated since
//! the poll began, less those that it has freed. Tasks that the engine spawns, and requests to the service, count for the
//! statement that spawned them. An allocator that stores the owner of each block was rejected: it adds a header to each
//! allocation, and copies each block that grows.
//!
//! The library installs no allocator. A program that installs one passes its counts to [`count_with`]. Without counts,
//! nothing is limited.
//!
//! Invariant: a thread charges one statement at a time.

#[cfg(feature = "host")]
pub(crate) mod statements;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Result, memory_advice};

/// Counts of an allocator.
#[derive(Debug, Clone, Copy)]
pub struct Counters {
    /// Bytes that the process has allocated and not freed.
    pub allocated: fn() -> u64,
    /// Bytes that the calling thread has allocated, less those that it has freed. Negative if it frees memory that other
    /// threads have allocated.
    pub of_thread: fn() -> i64,
}

/// Bytes of the stack of a thread that plans or runs statements, whose expressions are processed recursively. They are addresses:
/// memory is used as a stack grows. A program without optimization needs several times as much.
pub const STACK: usize = if cfg!(debug_assertions) { 64 << 20 } else { 16 << 20 };

static COUNTERS: OnceLock<Counters> = OnceLock::new();
/// Bytes that the process may allocate.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Bytes that are about to be allocated.
static EXPECTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Charge>> = const { RefCell::new(None) };
    /// Bytes of this thread at which [`check`] fails.
    static CEILING: Cell<i64> = const { Cell::new(i64::MAX) };
    /// Bytes that were asked for in small amounts, since the last look at the memory of the process.
    static SMALL: Cell<u64> = const { Cell::new(0) };
}

/// Counts memory from now on, with the counts of the program's allocator. Further calls have no effect.
pub fn count_with(counters: Counters) {
    if COUNTERS.set(counters).is_ok() {
        // Another tracer belongs to the program: tasks of the engine are not charged then.
        let _ = set_join_set_tracer(&Inherited);
    }
}

/// Bytes that the process has allocated; `None` if they are not counted.
pub(crate) fn allocated() -> Option<u64> {
    COUNTERS.get().map(|counters| (counters.allocated)())
}

/// Limits the bytes of the process for [`room`]. The last call decides.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have limits"))]
pub(crate) fn limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Reason why a statement was ended.
#[derive(Debug, Clone, Copy)]
enum Ended {
    /// It held so many bytes when memory was short.
    Memory(u64),
    /// Nobody waits for it.
    Abandoned,
}

/// Memory of one statement, over all its tasks.
#[derive(Debug, Default)]
pub(crate) struct StatementMemory {
    bytes: AtomicI64,
    copies: Mutex<Copies>,
    ended: CancellationToken,
    /// Reason why it was ended.
    why: OnceLock<Ended>,
}

#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers end statements"))]
impl StatementMemory {
    /// Bytes that it holds, as of the last poll of each of its tasks.
    pub(crate) fn bytes(&self) -> u64 {
        // What others have allocated for it may be freed by it.
        u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Counts bytes that its tasks have allocated and others will free.
    pub(crate) fn hand_over(&self, bytes: usize) {
        self.bytes.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Ends the statement for its memory when it next requests some, calls [`check`] or pauses.
    pub(crate) fn end(&self) {
        self.end_for(Ended::Memory(self.bytes()));
    }

    /// Ends the statement, for which nobody waits any longer.
    pub(crate) fn abandon(&self) {
        self.end_for(Ended::Abandoned);
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_for(&self, why: Ended) {
        let _ = self.why.set(why);
        self.ended.cancel();
    }

    /// True if the statement was ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Fails if the statement was ended.
    fn check(&self) -> Result<()> {
        match self.why.get() {
            None => Ok(()),
            Some(Ended::Memory(bytes)) => {
                let held = bytes >> 20;
                let message = format!("memory is used up: this statement held {held} MiB and was ended");
                Err(Error::new(ErrorKind::Memory, message).advice(memory_advice()))
            }
            Some(Ended::Abandoned) => {
                Err(Error::new(ErrorKind::Timeout, "nobody waits for the statement any longer").lasting())
            }
        }
    }
}

/// Room for copies of what a statement holds, while some of its tasks may make them. Together they copy it once at most.
#[derive(Debug, Default)]
struct Copies {
    rooms: Vec<Room>,
    /// Polls that may make copies.
    polls: usize,
}

impl Copies {
    fn bytes(&self) -> u64 {
        self.rooms.iter().map(|room| room.0).sum()
    }
}

/// Fails if the current statement was ended. Code that computes or allocates much between two pauses of its task calls it.
///
/// # Errors
/// [`ErrorKind::Memory`], or [`ErrorKind::Timeout`] if nobody waits for the statement; [`ErrorKind::TooLarge`] above a [`Ceiling`].
pub(crate) fn check() -> Result<()> {
    let Some(counters) = COUNTERS.get() else { return Ok(()) };
    let now = (counters.of_thread)();
    if now > CEILING.get() {
        let message = "the statement takes too much memory in one step of its planning";
        return Err(Error::new(ErrorKind::TooLarge, message).advice("use fewer or shorter constant values"));
    }
    CURRENT.with_borrow_mut(|current| match current {
        Some(charge) => {
            charge.settle(now);
            charge.memory.check()
        }
        None => Ok(()),
    })
}

/// Guard: until it is dropped, [`check`] fails on this thread if the thread has taken more than some bytes since it was made. It is
/// for code that does not pause, and whose memory nothing else limits.
#[derive(Debug)]
#[must_use = "there is a limit until it is dropped"]
pub(crate) struct Ceiling(i64);

impl Ceiling {
    /// Sets the limit, unless a lower one is set.
    pub(crate) fn of(bytes: i64) -> Self {
        let outer = CEILING.get();
        if let Some(counters) = COUNTERS.get() {
            CEILING.set(outer.min((counters.of_thread)().saturating_add(bytes)));
        }
        Self(outer)
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        CEILING.set(self.0);
    }
}

/// Bytes that are about to be allocated, until it is dropped.
#[derive(Debug)]
#[must_use = "the bytes are expected until it is dropped"]
pub(crate) struct Room(u64);

/// Asks for room for some bytes before they are allocated.
///
/// # Errors
/// [`ErrorKind::Memory`] if the process would exceed its limit, or the current statement was ended.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have limits"))]
pub(crate) fn room(bytes: u64) -> Result<Room> {
    check()?;
    reserved(bytes)
}

/// As [`room`], for a statement that was checked just now.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have limits"))]
fn reserved(bytes: u64) -> Result<Room> {
    /// Fewer bytes are not worth the question, unless they add up.
    const FEW: u64 = 256 << 10;
    let small = if bytes < FEW { SMALL.get() + bytes } else { 0 };
    SMALL.set(if small < FEW { small } else { 0 });
    let Some(allocated) = Some(bytes.max(small)).filter(|bytes| *bytes >= FEW).and_then(|_| allocated()) else {
        return Ok(Room(0));
    };
    let expected = EXPECTED.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    let room = Room(bytes);
    let limit = LIMIT.load(Ordering::Relaxed);
    // What others may need does not refuse a statement that needs little.
    let expected = if bytes <= limit / 64 { bytes } else { expected };
    if allocated.saturating_add(expected) <= limit {
        return Ok(room);
    }
    let message = format!("not enough memory for another {} MiB: statements use the rest of it", (bytes >> 20).max(1));
    Err(Error::new(ErrorKind::Memory, message).advice("try again later, or select fewer rows or columns"))
}

/// Asks for room for the result of a function, and until the end of the poll for what may be made of it: an aggregate copies it, and
/// what the statement holds as well, when that grows.
///
/// # Errors
/// Those of [`room`].
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have limits"))]
pub(crate) fn room_for_result(bytes: u64) -> Result<Room> {
    let result = room(bytes)?;
    if result.0 > 0 {
        reserved_for_copies(bytes)?;
    }
    Ok(result)
}

/// Asks for room for some bytes, and for a copy of what the statement holds, until the end of the poll: an operator keeps the bytes
/// in memory that doubles while it grows.
///
/// # Errors
/// Those of [`room`].
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have limits"))]
pub(crate) fn room_for_copies(bytes: u64) -> Result<()> {
    check()?;
    reserved_for_copies(bytes)
}

/// As [`room_for_copies`], for a statement that was checked just now.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have limits"))]
fn reserved_for_copies(bytes: u64) -> Result<()> {
    let Some(memory) = current() else { return reserved(bytes).map(drop) };
    let needed = bytes.saturating_add(memory.bytes());
    let more = reserved(needed.saturating_sub(memory.copies().bytes()))?;
    CURRENT.with_borrow_mut(|current| current.iter_mut().for_each(Charge::begin_copies));
    if more.0 > 0 {
        memory.copies().rooms.push(more);
    }
    Ok(())
}

impl Drop for Room {
    fn drop(&mut self) {
        EXPECTED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// A statement that a thread charges, and the thread's bytes when it was last charged.
struct Charge {
    memory: Arc<StatementMemory>,
    since: i64,
    /// Set if the poll may copy what the statement holds.
    copies: bool,
}

impl Charge {
    fn begin_copies(&mut self) {
        if !std::mem::replace(&mut self.copies, true) {
            self.memory.copies().polls += 1;
        }
    }

    fn settle(&mut self, now: i64) {
        self.memory.bytes.fetch_add(now.wrapping_sub(self.since), Ordering::Relaxed);
        self.since = now;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.copies {
            let mut copies = self.memory.copies();
            copies.polls -= 1;
            if copies.polls == 0 {
                copies.rooms.clear();
            }
        }
    }
}

/// Guard: what the thread allocates is charged to a statement until it is dropped. What was charged before is charged again
/// afterwards.
struct Entered {
    counters: Counters,
    outer: Option<Charge>,
}

impl Entered {
    fn new(memory: &Arc<StatementMemory>) -> Option<Self> {
        let counters = *COUNTERS.get()?;
        let now = (counters.of_thread)();
        let outer = CURRENT.with_borrow_mut(|current| {
            current.iter_mut().for_each(|outer| outer.settle(now));
            current.replace(Charge { memory: Arc::clone(memory), since: now, copies: false })
        });
        Some(Self { counters, outer })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let now = (self.counters.of_thread)();
        CURRENT.with_borrow_mut(|current| {
            current.iter_mut().for_each(|charge| charge.settle(now));
            if let Some(outer) = &mut self.outer {
                outer.since = now;
            }
            *current = self.outer.take();
        });
    }
}

fn current() -> Option<Arc<StatementMemory>> {
    CURRENT.with_borrow(|current| current.as_ref().map(|charge| Arc::clone(&charge.memory)))
}

/// Charges a task to a statement.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have statements"))]
pub(crate) async fn within<F: Future>(memory: &Arc<StatementMemory>, task: F) -> F::Output {
    let mut task = pin!(task);
    poll_fn(|context| {
        let _entered = Entered::new(memory);
        task.as_mut().poll(context)
    })
    .await
}

/// As [`within`], until the statement is ended.
///
/// # Errors
/// [`ErrorKind::Memory`] if the statement was ended.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers have statements"))]
pub(crate) async fn until_ended<F: Future>(memory: &Arc<StatementMemory>, task: F) -> Result<F::Output> {
    let mut ended = pin!(memory.ended.cancelled());
    let mut task = pin!(task);
    poll_fn(|context| {
        if ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(memory.check().map(|()| None));
        }
        let _entered = Entered::new(memory);
        task.as_mut().poll(context).map(|done| Ok(Some(done)))
    })
    .await?
    // An ended statement has a reason.
    .ok_or_else(|| Error::new(ErrorKind::Memory, "the statement was ended"))
}

/// Charges a task that is about to be spawned to the statement that spawns it, if there is one.
pub(crate) fn inherited<F: Future>(task: F) -> impl Future<Output = F::Output> {
    let of = current();
    async move {
        match of {
            Some(memory) => within(&memory, task).await,
            None => task.await,
        }
    }
}

/// Charges work on another thread to the statement that starts it, if there is one.
#[cfg(feature = "store")]
pub(crate) fn inherited_work<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let of = current();
    move || {
        let _entered = of.as_ref().and_then(Entered::new);
        work()
    }
}

/// Charges the tasks that the engine spawns to the statement that spawned them.
struct Inherited;

impl JoinSetTracer for Inherited {
    fn trace_future(&self, task: BoxFuture<'static, Box<dyn Any + Send>>) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match current() {
            Some(memory) => Box::pin(async move { within(&memory, task).await }),
            None => task,
        }
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        match current() {
            Some(memory) => Box::new(move || {
                let _entered = Entered::new(&memory);
                work()
            }),
            None => work,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;

    thread_local! {
        static THREAD: Cell<i64> = const { Cell::new(0) };
    }

    fn allocate(bytes: i64) {
        THREAD.set(THREAD.get() + bytes);
    }

    /// Counts what tests say that they allocate.
    pub(crate) fn counted() {
        count_with(Counters { allocated: || 0, of_thread: || THREAD.get() });
    }

    #[tokio::test]
    async fn polls_of_several_statements_on_one_thread_are_charged_apart() {
        counted();
        let [one, other] = [Arc::new(StatementMemory::default()), Arc::new(StatementMemory::default())];
        let work = |of: &Arc<StatementMemory>, bytes: i64| {
            let of = Arc::clone(of);
            async move {
                within(&of, async {
                    allocate(bytes);
                    yield_now().await;
                    allocate(bytes);
                    // A statement that plans another one.
                    let inner = Arc::new(StatementMemory::default());
                    within(&inner, async { allocate(1_000_000) }).await;
                    assert_eq!(inner.bytes(), 1_000_000);
                    allocate(-1);
                })
                .await;
            }
        };
        allocate(7);
        tokio::join!(work(&one, 100), work(&other, 20));
        allocate(7);
        assert_eq!([one.bytes(), other.bytes()], [199, 39]);
        one.hand_over(150);
        assert_eq!(one.bytes(), 49);
        one.hand_over(150);
        assert_eq!(one.bytes(), 0, "others allocated what it has freed");
    }

    #[tokio::test]
    async fn spawned_tasks_count_to_the_statement_that_spawned_them() {
        counted();
        let memory = Arc::new(StatementMemory::default());
        within(&memory, async {
            let engine = datafusion::common::runtime::SpawnedTask::spawn(async { allocate(10) });
            let own = tokio::spawn(inherited(async { allocate(5) }));
            engine.join().await.expect("the engine's task");
            own.await.expect("our task");
        })
        .await;
        tokio::spawn(inherited(async { allocate(1_000) })).await.expect("a task of nobody");
        assert_eq!(memory.bytes(), 15);
    }

    #[cfg(feature = "store")]
    #[tokio::test]
    async fn work_on_another_thread_counts_to_the_statement_that_starts_it_and_ends_with_it() {
        counted();
        let memory = Arc::new(StatementMemory::default());
        within(&memory, async {
            let work = || {
                let work = inherited_work(|| {
                    allocate(10);
                    check().is_ok()
                });
                std::thread::spawn(work).join().expect("work")
            };
            assert!(work());
            memory.end();
            assert!(!work(), "the statement was ended");
        })
        .await;
        assert_eq!(memory.bytes(), 20);
        assert!(std::thread::spawn(inherited_work(|| check().is_ok())).join().expect("work of nobody"));
    }

    #[test]
    fn code_that_takes_more_than_its_ceiling_fails_at_its_next_check() {
        counted();
        let outer = Ceiling::of(100);
        allocate(60);
        check().expect("below the ceiling");
        let inner = Ceiling::of(1_000);
        allocate(60);
        assert_eq!(check().expect_err("above the outer ceiling").kind(), ErrorKind::TooLarge);
        drop(inner);
        check().expect_err("the outer ceiling is still there");
        drop(outer);
        check().expect("no ceiling");
    }

    #[tokio::test]
    async fn polls_of_a_statement_share_the_room_for_copies() {
        counted();
        let memory = Arc::new(StatementMemory::default());
        within(&memory, async {
            allocate(64 << 20);
            room_for_copies(1 << 20).expect("room");
            let other = Arc::clone(&memory);
            let other = std::thread::spawn(move || {
                futures::executor::block_on(within(&other, async { room_for_copies(1 << 20).expect("room") }));
            });
            other.join().expect("the other poll");
            assert_eq!(memory.copies().bytes(), 65 << 20);
        })
        .await;
        assert_eq!(memory.copies().bytes(), 0);
    }

    #[tokio::test]
    async fn a_statement_that_was_ended_fails_where_it_asks_and_when_it_pauses() {
        counted();
        let memory = Arc::new(StatementMemory::default());
        let asked = within(&memory, async {
            allocate(64 << 20);
            room(1).expect("it was not ended").0
        });
        assert_eq!(asked.await, 0);
        memory.end();
        let refused = within(&memory, async { room(1).expect_err("it was ended") }).await;
        assert_eq!(refused.kind(), ErrorKind::Memory);
        assert!(refused.message().contains("held 64 MiB"), "{refused}");
        let advice = "select fewer rows or columns, or aggregate; the session's `RuntimeEnv` sets the limit, `Limits::memory_mib` that \
                      of a server";
        assert_eq!(refused.remedy().map(|advice| advice.as_str()), Some(advice));
        let ended = until_ended(&memory, std::future::pending::<()>()).await.expect_err("it was ended");
        assert_eq!(ended.kind(), ErrorKind::Memory);
    }
}
