//! Selection of the statements that may start, and of the statement that is ended when the memory of the server is used up.
//!
//! ```text
//! start:       below 3/4 of the memory, or if the user's statements hold next to nothing, below all of it
//!                                      ─▶ starts            otherwise it waits for 5 s, and is refused
//! every 20 ms: a user above 3/4        ─▶ the largest statement of that user ends
//!              all above the memory    ─▶ the largest statement of all ends
//! ```
//!
//! The statements of one user therefore never keep statements of others from starting. A statement that is to end stops when
//! it next requests memory or pauses ([`memory`](super)). Until then, its memory counts as free, so that no second statement is
//! ended for the same memory. The alternative was to end the statement that requests memory at the limit. It was rejected,
//! because that is usually a small statement.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use datafusion::error::Result as EngineResult;
#[cfg(all(unix, feature = "shell"))]
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
#[cfg(all(unix, feature = "shell"))]
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
#[cfg(all(unix, feature = "shell"))]
use datafusion::logical_expr::{LogicalPlan, Statement as Utility};
#[cfg(all(unix, feature = "shell"))]
use datafusion::prelude::SessionContext;
use tokio::time::{Instant, sleep};

use super::{StatementMemory, allocated, room};
use crate::error::{Error, ErrorKind, Result};

/// Interval between looks at the memory while statements run.
const INTERVAL: Duration = Duration::from_millis(20);
/// Time for which a statement waits for memory before it starts.
const WAITS: Duration = Duration::from_secs(5);
/// Bytes of temporary files for each byte of memory.
pub(crate) const SPILLED: u64 = 8;

/// The statements of a server, and the memory that they share.
#[derive(Debug)]
pub(crate) struct Statements(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Bytes of the process when the server started.
    at_start: u64,
    /// Bytes that may be allocated beyond those.
    limit: u64,
    running: Mutex<Vec<(Arc<str>, Weak<StatementMemory>)>>,
    watch: OnceLock<Thread>,
}

impl Statements {
    /// Starts to watch the memory of the process, of which statements may take so many bytes.
    ///
    /// # Errors
    /// I/O errors of starting a thread.
    pub(crate) fn start(limit: u64) -> std::io::Result<Self> {
        let at_start = allocated().unwrap_or(0);
        super::limit(at_start.saturating_add(limit));
        let shared = Arc::new(Shared { at_start, limit, running: Mutex::default(), watch: OnceLock::new() });
        let watched = Arc::downgrade(&shared);
        let watch = thread::Builder::new().name("memory".to_owned()).spawn(move || watch(&watched))?;
        let _ = shared.watch.set(watch.thread().clone());
        Ok(Self(shared))
    }

    /// Registers a statement of a user. If memory is short, waits for some of it.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if the memory of the server is in use.
    pub(crate) async fn admit(&self, user: &Arc<str>) -> Result<Arc<StatementMemory>> {
        let since = Instant::now();
        loop {
            match self.admit_now(user) {
                Err(_) if since.elapsed() < WAITS => sleep(INTERVAL).await,
                admitted => return admitted,
            }
        }
    }

    /// As [`admit`](Self::admit), without waiting.
    ///
    /// # Errors
    /// Those of [`admit`](Self::admit).
    pub(crate) fn admit_now(&self, user: &Arc<str>) -> Result<Arc<StatementMemory>> {
        let Self(shared) = self;
        let most = if shared.held_by(user) > little(shared.limit) { shared.limit / 4 * 3 } else { shared.limit };
        if let Some(used) = shared.used().filter(|used| *used > most) {
            let [used, limit] = [used, shared.limit].map(|bytes| bytes >> 20);
            let message = format!("memory is in use: {used} of {limit} MiB");
            return Err(Error::new(ErrorKind::Memory, message).advice("try again in a moment"));
        }
        Ok(self.register(user))
    }

    /// Registers a statement that frees memory, or takes none: it starts in any case.
    pub(crate) fn register(&self, user: &Arc<str>) -> Arc<StatementMemory> {
        let Self(shared) = self;
        let statement = Arc::new(StatementMemory::default());
        let was_empty = {
            let mut running = shared.running();
            let was_empty = running.is_empty();
            running.push((Arc::clone(user), Arc::downgrade(&statement)));
            was_empty
        };
        if was_empty {
            shared.watch.get().map(Thread::unpark);
        }
        statement
    }

    /// Bytes that the server has allocated since its start; `None` if they are not counted.
    pub(crate) fn used(&self) -> Option<u64> {
        self.0.used()
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        // The thread holds no reference, and ends once it looks.
        self.0.watch.get().map(Thread::unpark);
    }
}

impl Shared {
    fn used(&self) -> Option<u64> {
        allocated().map(|bytes| bytes.saturating_sub(self.at_start))
    }

    fn running(&self) -> MutexGuard<'_, Vec<(Arc<str>, Weak<StatementMemory>)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that the statements of a user hold.
    fn held_by(&self, user: &str) -> u64 {
        let running = self.running();
        let own = running.iter().filter(|(other, _)| **other == *user);
        own.filter_map(|(_, statement)| Some(statement.upgrade()?.bytes())).sum()
    }

    /// Ends a statement if memory is short. Returns false if none runs.
    fn look(&self) -> bool {
        let running: Vec<(Arc<str>, Arc<StatementMemory>)> = {
            let mut running = self.running();
            let of =
                |(user, statement): &(Arc<str>, Weak<StatementMemory>)| Some((Arc::clone(user), statement.upgrade()?));
            let going = running.iter().filter_map(of).collect();
            // Only then: one that ends meanwhile would stay, and the next one would not wake the thread.
            running.retain(|(_, statement)| statement.strong_count() > 0);
            going
        };
        let Some(used) = self.used().filter(|_| !running.is_empty()) else { return false };
        let holds = running.iter().map(|(user, statement)| Holds {
            user,
            bytes: statement.bytes(),
            ended: statement.is_ended(),
        });
        if let Some(largest) = largest(self.limit, used, &holds.collect::<Vec<_>>()) {
            let (user, statement) = &running[largest];
            statement.end();
            tracing::warn!(principal = %user, bytes = statement.bytes(), used, "memory is used up: a statement was ended");
        }
        true
    }
}

fn watch(shared: &Weak<Shared>) {
    loop {
        let runs = match shared.upgrade() {
            Some(shared) => shared.look(),
            None => return,
        };
        if runs { thread::sleep(INTERVAL) } else { thread::park() }
    }
}

/// Bytes that are next to nothing of the memory.
fn little(limit: u64) -> u64 {
    limit / 64
}

/// Bytes that a statement holds.
#[derive(Debug, Clone, Copy)]
struct Holds<'a> {
    user: &'a str,
    bytes: u64,
    /// It was ended, and has not freed its memory yet.
    ended: bool,
}

/// The statement that has to end, of those that share `limit` bytes of which `used` are in use; `None` if there is room, or if
/// no statement holds as much as is worth ending it.
fn largest(limit: u64, used: u64, statements: &[Holds<'_>]) -> Option<usize> {
    let mut of_user: HashMap<&str, u64> = HashMap::new();
    let going = || statements.iter().enumerate().filter(|(_, statement)| !statement.ended);
    let little = little(limit);
    going().for_each(|(_, statement)| *of_user.entry(statement.user).or_default() += statement.bytes);
    let largest_of = |counts: &dyn Fn(&str) -> bool| {
        let counted = going().filter(|(_, statement)| counts(statement.user) && statement.bytes > little);
        counted.max_by_key(|(_, statement)| statement.bytes).map(|(at, _)| at)
    };
    let over = of_user.iter().filter(|(_, bytes)| **bytes > limit / 4 * 3).max_by_key(|(_, bytes)| **bytes);
    if let Some((user, _)) = over {
        return largest_of(&|other| other == *user);
    }
    let ending: u64 = statements.iter().filter(|statement| statement.ended).map(|statement| statement.bytes).sum();
    (used.saturating_sub(ending) > limit).then(|| largest_of(&|_| true)).flatten()
}

/// A copy of a session whose operators share a [`CountedPool`] of so many MiB, and have temporary files of [`SPILLED`] times that.
///
/// # Errors
/// I/O errors of temporary files.
#[cfg(all(unix, feature = "shell"))]
pub(crate) fn with_memory_of(context: &SessionContext, mib: usize) -> EngineResult<SessionContext> {
    let pool = Arc::new(CountedPool::new(mib.saturating_mul(1 << 20)));
    let runtime = RuntimeEnvBuilder::from_runtime_env(&context.runtime_env()).with_memory_pool(pool);
    let runtime = runtime.with_max_temp_directory_size((mib as u64).saturating_mul(SPILLED << 20)).build_arc()?;
    let state = SessionStateBuilder::from(context.state()).with_runtime_env(runtime).build();
    Ok(SessionContext::new_with_state(state))
}

/// Refuses a statement that would undo [`with_memory_of`]. Every such setting does: for it, the engine replaces the pool or the limit
/// of temporary files, or enlarges a cache.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for SET and RESET of `datafusion.runtime.…`.
#[cfg(all(unix, feature = "shell"))]
pub(crate) fn refuse_other_limits(plan: &LogicalPlan) -> Result<()> {
    let variable = match plan {
        LogicalPlan::Statement(Utility::SetVariable(set)) => &set.variable,
        LogicalPlan::Statement(Utility::ResetVariable(reset)) => &reset.variable,
        _ => return Ok(()),
    };
    if !variable.starts_with("datafusion.runtime.") {
        return Ok(());
    }
    let message = format!("{variable} cannot be changed: --memory limits memory and temporary files");
    let advice = "start the program with another --memory; TMPDIR sets the folder of temporary files";
    Err(Error::new(ErrorKind::Unsupported, message).advice(advice))
}

/// The pool of the operators that reserve what they hold, and spill or fail when it is used up. A statement that was ended gets
/// no more of it, and neither does one that asks for more than the process has left.
#[derive(Debug)]
pub(crate) struct CountedPool(FairSpillPool);

impl CountedPool {
    /// A pool for the statements that share `limit` bytes: half of them. The other half is for what no operator reserves.
    pub(crate) fn new(limit: usize) -> Self {
        Self(FairSpillPool::new(limit / 2))
    }
}

impl std::fmt::Display for CountedPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl MemoryPool for CountedPool {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.0.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.0.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.0.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.0.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> EngineResult<()> {
        let _room = room(additional as u64)?;
        self.0.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.0.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.0.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    #[cfg(all(unix, feature = "shell"))]
    use datafusion::logical_expr::{ResetVariable, SetVariable};

    use super::*;

    fn holds(user: &str, bytes: u64) -> Holds<'_> {
        Holds { user, bytes, ended: false }
    }

    #[test]
    fn the_largest_statement_ends_and_no_second_one_before_it_has_freed_its_memory() {
        let mut statements = [holds("a", 300), holds("b", 500), holds("c", 200)];
        assert_eq!(largest(1_000, 1_000, &statements), None);
        assert_eq!(largest(1_000, 1_001, &statements), Some(1));
        statements[1].ended = true;
        assert_eq!(largest(1_000, 1_001, &statements), None);
        assert_eq!(largest(1_000, 1_600, &statements), Some(0), "others need more than it will free");
        assert_eq!(largest(1_000, 5_000, &[holds("a", 10)]), None, "it would free next to nothing");
    }

    #[test]
    fn a_user_has_a_share_that_leaves_room_for_others() {
        let mut statements = [holds("many", 300), holds("many", 310), holds("many", 160), holds("one", 100)];
        assert_eq!(largest(1_000, 870, &statements), Some(1), "the largest of the user who has more than the share");
        statements[1].ended = true;
        assert_eq!(largest(1_000, 870, &statements), None);
        let statements = [holds("one", 700), holds("many", 300), holds("many", 300), holds("many", 200)];
        assert_eq!(largest(2_000, 2_001, &statements), Some(0));
    }

    /// The engine's full list of these settings.
    #[cfg(all(unix, feature = "shell"))]
    #[test]
    fn limits_of_the_command_line_cannot_be_changed() {
        let refused = |statement: Utility| refuse_other_limits(&LogicalPlan::Statement(statement)).is_err();
        let set = |variable: &str, value: &str| {
            refused(Utility::SetVariable(SetVariable { variable: variable.to_owned(), value: value.to_owned() }))
        };
        let reset = |variable: &str| refused(Utility::ResetVariable(ResetVariable { variable: variable.to_owned() }));
        let entries = RuntimeEnvBuilder::new().entries();
        assert!(entries.iter().any(|entry| entry.key == "datafusion.runtime.memory_limit"));
        for entry in entries {
            assert!(set(&entry.key, "1G") && set(&entry.key, "DEFAULT") && reset(&entry.key), "{}", entry.key);
        }
        for other in ["datafusion.execution.batch_size", "savedsearch.max_requests"] {
            assert!(!set(other, "1") && !reset(other), "{other}");
        }
    }
}
