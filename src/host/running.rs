//! Running queries: record batches as the pages arrive.
//!
//! ```text
//! task: plan ─▶ batches ─gathered─▶ parts ─encoded─▶ channel ─▶ the stream that the client reads, which owns the task
//! ```
//!
//! The task ends when the stream is dropped, the statement times out, the client stops reading, the query is cancelled,
//! or the server shuts down. Small batches that are ready at the same time are sent as one, and large ones in parts: the threads of
//! connections, which encode what they are sent, serve others between two parts.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use datafusion::prelude::SessionContext;
use futures::stream::{BoxStream, Fuse};
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::account::Account;
use super::failure::{Code, Failure};
use super::planner::{Runnable, Statement, runnable};
use super::sessions::Session;
use super::settings::Limits;
use super::shares::{SessionMemory, Share};
use super::state::{Abandoned, Admitted, Host, timed_out};
use super::type_compat::{bytes_of, result_schema, sent_batch};
#[cfg(feature = "flight")]
use crate::exec::notes;
use crate::exec::{Spent, WindowRead, in_parts, spent, start, statement_kind, windows};
use crate::memory::{StatementMemory, until_ended};
use crate::session::bytes_of_plan;

/// Minimum size, in bytes, of a batch that is sent alone: merging it with others would cost more than another message.
const GATHERED: usize = 1 << 18;
/// Time for which a batch waits for the user's share of memory.
const ROOM: Duration = Duration::from_secs(10);
/// Time after its deadline at which a statement that has not ended by itself is abandoned.
const GRACE: Duration = Duration::from_secs(1);

/// Maximum rows, and maximum bytes of the values, of a part of a result. A part is encoded without a pause.
pub(crate) const PART: usize = 8_192;
const PART_BYTES: u64 = 1 << 20;

/// Bytes of a plan that is ready to run, about: the engine copies the tables of functions of the session for it.
pub(crate) const READY: usize = 128 << 10;

/// A result that can be fetched.
pub(crate) struct Pending {
    /// Session in which the plans run: the client's, or another one with its limits.
    context: SessionContext,
    /// Plans to run in sequence, one for each parameter set.
    plans: Vec<LogicalPlan>,
    /// The first plan, for its cost.
    whole: Option<Arc<dyn ExecutionPlan>>,
    /// Executable form of the first plan, which was needed for the schema, with its memory until it runs.
    first: Mutex<Option<(Runnable, SessionMemory)>>,
    /// Schema of all batches.
    pub(crate) schema: SchemaRef,
    /// Cancels the query, whether it is running or still to be fetched.
    pub(crate) cancelled: CancellationToken,
    /// Cancels all queries of the host at the end of a shutdown.
    ending: CancellationToken,
    /// Digest of the statement's text.
    digest: String,
    /// Memory reserved for the plans.
    _held: SessionMemory,
}

/// A query that runs: its rows in parts, or what they were encoded as.
pub(crate) struct Reading<T = RecordBatch> {
    pub(crate) batches: BoxStream<'static, Result<T, Failure>>,
    /// Memory of the query, to which what the reader allocates and frees counts.
    pub(crate) memory: Arc<StatementMemory>,
}

impl Pending {
    /// Plans a statement of the session with its parameter sets, without requests to the service. Its cost is not known: a result that
    /// was fetched keeps no executable plan.
    ///
    /// # Errors
    /// Errors of planning; RESOURCE_EXHAUSTED if the pool is used up.
    pub(crate) async fn plan(
        host: &Host,
        session: &Session,
        statement: &Statement,
        sets: Vec<Vec<ScalarValue>>,
    ) -> Result<Self, Failure> {
        let pending = Self::plan_in(session.context.clone(), host, session, statement, sets).await?;
        Ok(Self { whole: None, ..pending })
    }

    /// As [`plan`](Self::plan), for a statement of another context.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan).
    pub(crate) async fn plan_in(
        context: SessionContext,
        host: &Host,
        session: &Session,
        statement: &Statement,
        sets: Vec<Vec<ScalarValue>>,
    ) -> Result<Self, Failure> {
        let failed = |error: DataFusionError| session.failure(&error);
        let bytes = statement.bytes_of_bound(&sets).map_err(failed)?;
        let turn = session.share.planning_with(bytes, sets.iter().map(Vec::len).sum()).await;
        let mut held = host.hold(session, "result", bytes)?;
        let plans = statement.bind_all(&turn, sets).map_err(failed)?;
        let first = match plans.first() {
            Some(plan) => Some(runnable(&turn, &context, plan.clone()).await.map_err(failed)?),
            None => None,
        };
        drop(turn);
        // Constants that planning has computed are kept until the query has run.
        let computed = first.as_ref().map_or(0, |first| first.bytes.saturating_sub(bytes));
        held.grow(computed).map_err(Failure::own)?;
        let schema =
            first.as_ref().map_or_else(|| Arc::clone(&statement.schema), |first| result_schema(&first.plan.schema()));
        let ready = |first| Ok::<_, Failure>((first, host.hold(session, "result", READY)?));
        let cancelled = host.cancelled.child_token();
        let whole = first.as_ref().map(|first| Arc::clone(&first.plan));
        Ok(Self {
            context,
            plans,
            whole,
            first: Mutex::new(first.map(ready).transpose()?),
            schema,
            cancelled,
            ending: host.cancelled.clone(),
            digest: statement.digest.clone(),
            _held: held,
        })
    }

    /// The first plan, before the engine has changed it.
    pub(crate) fn logical(&self) -> Option<&LogicalPlan> {
        self.plans.first()
    }

    /// Name of the query in `system.requests`, before it runs.
    pub(crate) fn query(&self) -> Option<String> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().map(|(first, _)| first.query.clone())
    }

    /// Notes about what the query reads that are known before it runs, and the default window if that is read.
    #[cfg(feature = "flight")]
    pub(crate) fn planned_notes(&self) -> (Vec<String>, Option<String>) {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((first, _)) = first.as_ref() else { return (Vec::new(), None) };
        let default = windows(&first.plan).into_iter().find(|window| window.default).map(|window| window.words);
        let mut found: Vec<String> = Vec::new();
        for note in notes(&first.plan) {
            if !found.contains(&note) {
                found.push(note);
            }
        }
        (found, default)
    }

    /// Cost of the query so far.
    pub(crate) fn spent(&self) -> Spent {
        self.whole.as_ref().map(spent).unwrap_or_default()
    }

    /// Windows that the query reads.
    pub(crate) fn windows(&self) -> Vec<WindowRead> {
        self.whole.as_ref().map(windows).unwrap_or_default()
    }

    /// Starts the query and returns its batches. Dropping them ends the query.
    ///
    /// # Errors
    /// CANCELLED if the query was cancelled before it was fetched, RESOURCE_EXHAUSTED if too many queries are running, or memory
    /// is short.
    pub(crate) fn run(self: Arc<Self>, session: Arc<Session>, host: &Host) -> Result<Reading, Failure> {
        self.start(session, host, None, PART, Ok)
    }

    /// As [`run`](Self::run), for rows that are encoded in the lane of the statement, at most `most` at once. A batch without rows
    /// is encoded as well.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    #[cfg(feature = "ui")]
    pub(crate) fn run_encoded<T: Send + 'static>(
        self: Arc<Self>,
        session: Arc<Session>,
        host: &Host,
        most: usize,
        encode: impl FnMut(RecordBatch) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Reading<T>, Failure> {
        self.start(session, host, None, most, encode)
    }

    /// As [`run`](Self::run), for a client that fetches rows in parts: a batch is computed when it is asked for.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub(crate) fn run_in_parts(self: Arc<Self>, session: Arc<Session>, host: &Host) -> Result<Reading, Failure> {
        debug_assert!(self.plans.len() <= 1, "a portal has one set of parameters");
        self.start(session, host, Some(Wanted::default()), PART, Ok)
    }

    /// Starts the query. `wanted` counts the parts that were asked for; without it, they are computed ahead.
    fn start<T: Send + 'static>(
        self: Arc<Self>,
        session: Arc<Session>,
        host: &Host,
        wanted: Option<Wanted>,
        most: usize,
        encode: impl FnMut(RecordBatch) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Reading<T>, Failure> {
        if self.cancelled.is_cancelled() {
            return Err(query_cancelled(&self.ending));
        }
        let (sender, mut batches) = mpsc::channel(1);
        let limits = &host.limits;
        let Admitted { memory, lane } = host.admit_now(&session)?;
        let unread = Unread { share: Arc::clone(&session.share), own: Arc::default() };
        let account = Account::open(host, session, Arc::clone(&lane))?;
        let (cancelled, ending) = (self.cancelled.clone(), self.ending.clone());
        let sending = Sending { sender, wanted: wanted.clone(), most, encode };
        let task = drive(self, account, sending, limits.clone(), unread, Arc::clone(&memory));
        let task = AbortOnDropHandle::new(lane.handle().spawn(task));
        let seconds = limits.statement_seconds;
        let late = Instant::now() + Duration::from_secs(seconds) + GRACE;
        let mut abandoned = Abandoned::new(&memory);
        let stream = try_stream! {
            // A computation that does not pause ends when it next calls `memory::check`; its client must not have to wait.
            loop {
                if let Some(wanted) = &wanted {
                    wanted.0.add_permits(1);
                }
                let next = tokio::select! {
                    next = timeout_at(late, batches.recv()) => next.map_err(|_| too_late(seconds)),
                    // The task ends by itself, unless it computes without a pause.
                    () = async { cancelled.cancelled().await; sleep(GRACE).await } => Err(query_cancelled(&ending)),
                }?;
                let Some((part, held)) = next else { break };
                // Encoding a part takes a while: others of the thread come first.
                yield_now().await;
                yield part;
                // The client has taken the part if it asks for the next one.
                drop(held);
            }
            // The task has ended; its result says if it succeeded.
            let panicked = |_| Failure::new(Code::Internal, "internal error while running the query");
            let done = task.await;
            abandoned.done();
            done.map_err(panicked).flatten()?;
        };
        Ok(Reading { batches: stream.boxed(), memory })
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("plans", &self.plans.len()).finish_non_exhaustive()
    }
}

fn query_cancelled(ending: &CancellationToken) -> Failure {
    match ending.is_cancelled() {
        true => Failure::shutdown(),
        false => Failure::new(Code::Cancelled, "query cancelled"),
    }
}

fn too_late(seconds: u64) -> Failure {
    let late = timed_out(seconds);
    Failure::new(late.code, late.line + ": narrow the query")
}

/// Runs a query until its result is sent, it times out or it is cancelled.
async fn drive<T: Send + 'static>(
    pending: Arc<Pending>,
    mut account: Account,
    sending: Sending<T, impl FnMut(RecordBatch) -> Result<T, Failure>>,
    limits: Limits,
    unread: Unread,
    memory: Arc<StatementMemory>,
) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_secs(limits.statement_seconds);
    let (cancelled, ending) = (pending.cancelled.clone(), pending.ending.clone());
    let sent = timeout_at(deadline, send(pending, &mut account, sending, &limits, &unread));
    let result = tokio::select! {
        sent = until_ended(&memory, sent) => match sent {
            Ok(sent) => sent.unwrap_or_else(|_| Err(too_late(limits.statement_seconds))),
            Err(error) => Err(Failure::own(error)),
        },
        () = cancelled.cancelled() => Err(query_cancelled(&ending)),
    };
    account.end = Some(result.as_ref().err().map_or(Code::Ok, |failure| failure.code));
    result
}

async fn send<T: Send + 'static>(
    pending: Arc<Pending>,
    account: &mut Account,
    mut sending: Sending<T, impl FnMut(RecordBatch) -> Result<T, Failure>>,
    limits: &Limits,
    unread: &Unread,
) -> Result<(), Failure> {
    let waits = sending.wanted.is_some();
    let session = Arc::clone(&account.session);
    let failed = |error: DataFusionError| session.failure(&error);
    let mut first = pending.first.lock().unwrap_or_else(PoisonError::into_inner).take();
    for plan in &pending.plans {
        let kind = statement_kind(plan);
        let Runnable { plan, task, query, .. } = match first.take() {
            Some((planned, _)) => planned,
            None => {
                let turn = session.share.planning(bytes_of_plan(plan)).await;
                runnable(&turn, &pending.context, plan.clone()).await.map_err(failed)?
            }
        };
        let span = account.begin(kind, query, &pending.digest, &plan);
        let task = if waits { in_parts(task) } else { task };
        let mut stream = start(&plan, task, Some(&span)).map_err(failed)?.fuse();
        loop {
            unread.room().await?;
            sending.asked(limits).await?;
            let next = if waits { stream.try_next().await } else { gather(&mut stream).await };
            let Some(batch) = next.map_err(failed)? else { break };
            let batch = sent_batch(&batch, &pending.schema).map_err(|error| failed(error.into()))?;
            account.add(&batch);
            if account.bytes > limits.result_bytes {
                let line = format!("result larger than {} bytes: select fewer rows or columns", limits.result_bytes);
                return Err(Failure::new(Code::ResourceExhausted, line));
            }
            let held = Arc::new(unread.hold(batch.get_array_memory_size()).await?);
            let at_once = rows_of_part(&batch, sending.most);
            // A batch without rows is one part: it was asked for.
            for from in (0..batch.num_rows().max(1)).step_by(at_once) {
                if from > 0 {
                    sending.asked(limits).await?;
                }
                let rows = batch.slice(from, at_once.min(batch.num_rows() - from));
                sending.send(rows, &held, limits).await?;
            }
        }
    }
    Ok(())
}

/// Number of parts that a client has asked for.
#[derive(Clone)]
struct Wanted(Arc<Semaphore>);

impl Default for Wanted {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

/// The way of rows to the client.
struct Sending<T, E> {
    sender: mpsc::Sender<(T, Arc<Held>)>,
    wanted: Option<Wanted>,
    /// Maximum rows of a part.
    most: usize,
    encode: E,
}

impl<T, E: FnMut(RecordBatch) -> Result<T, Failure>> Sending<T, E> {
    /// Waits until the client has asked for another part, if it has to.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED if it does not ask in time.
    async fn asked(&mut self, limits: &Limits) -> Result<(), Failure> {
        let Some(Wanted(wanted)) = &self.wanted else { return Ok(()) };
        let asked = timeout(Duration::from_secs(limits.unread_seconds), wanted.acquire()).await;
        // The semaphore is never closed.
        if let Ok(permit) = asked.map_err(|_| not_read(limits))? {
            permit.forget();
        }
        Ok(())
    }

    /// Encodes rows and sends them.
    ///
    /// # Errors
    /// Those of encoding; CANCELLED or DEADLINE_EXCEEDED if the client is gone, or does not read.
    async fn send(&mut self, rows: RecordBatch, held: &Arc<Held>, limits: &Limits) -> Result<(), Failure> {
        let part = (self.encode)(rows)?;
        // A client that stops reading does not announce it.
        let patience = Duration::from_secs(limits.unread_seconds);
        match timeout(patience, self.sender.send((part, Arc::clone(held)))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Failure::new(Code::Cancelled, "the client disconnected")),
            Err(_) => Err(not_read(limits)),
        }
    }
}

fn not_read(limits: &Limits) -> Failure {
    let line = format!("the client did not read the result for {} s", limits.unread_seconds);
    Failure::new(Code::DeadlineExceeded, line)
}

/// Rows of a batch that are sent in one part: fewer if they are long.
pub(crate) fn rows_of_part(batch: &RecordBatch, most: usize) -> usize {
    let row = (bytes_of(batch) / (batch.num_rows() as u64).max(1)).max(1);
    usize::try_from(PART_BYTES / row).unwrap_or(most).clamp(1, most)
}

/// Memory for batches on their way to the client.
struct Unread {
    share: Arc<Share>,
    /// One reference for each batch of this query.
    own: Arc<()>,
}

/// Memory of a batch on its way to the client.
struct Held {
    _share: OwnedSemaphorePermit,
    _pool: MemoryReservation,
    _own: Arc<()>,
}

impl Unread {
    /// Waits until the user's share has room for anything: the next batch is not computed before.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the user leaves too much unread.
    async fn room(&self) -> Result<(), Failure> {
        timeout(ROOM, self.share.unread.acquire()).await.map(drop).map_err(|_| self.full())
    }

    /// Counts the bytes of a batch. If the share has no room, it waits, unless it is large and others have the room.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the user leaves too much unread.
    async fn hold(&self, bytes: usize) -> Result<Held, Failure> {
        /// Bytes of a batch that may wait, which are not counted meanwhile.
        const WAITS: usize = 8 << 20;
        // A batch that is larger than the share is sent alone.
        let kib = u32::try_from(bytes.div_ceil(1 << 10).clamp(1, self.share.kib)).unwrap_or(u32::MAX);
        let share = match Arc::clone(&self.share.unread).try_acquire_many_owned(kib) {
            Ok(share) => share,
            Err(_) if bytes <= WAITS || Arc::strong_count(&self.own) > 1 => {
                let room = timeout(ROOM, Arc::clone(&self.share.unread).acquire_many_owned(kib)).await;
                room.map_err(|_| self.full())?.map_err(|_| self.full())?
            }
            Err(_) => return Err(self.full()),
        };
        let pool = MemoryConsumer::new("unread result").register(self.share.pool());
        // It is there already; other statements get less.
        pool.grow(bytes);
        Ok(Held { _share: share, _pool: pool, _own: Arc::clone(&self.own) })
    }

    fn full(&self) -> Failure {
        let line = format!("results that were not read take {} MiB: read or close some of them", self.share.kib >> 10);
        Failure::new(Code::ResourceExhausted, line)
    }
}

/// Returns the next batch, merged with those that are ready already.
pub(crate) async fn gather(
    stream: &mut Fuse<SendableRecordBatchStream>,
) -> Result<Option<RecordBatch>, DataFusionError> {
    let Some(first) = stream.try_next().await? else { return Ok(None) };
    let mut bytes = first.get_array_memory_size();
    let mut batches = vec![first];
    while bytes < GATHERED {
        match stream.try_next().now_or_never() {
            Some(Ok(Some(batch))) => {
                bytes += batch.get_array_memory_size();
                batches.push(batch);
            }
            Some(Err(error)) => return Err(error),
            Some(Ok(None)) | None => break,
        }
    }
    match <[RecordBatch; 1]>::try_from(batches) {
        Ok([only]) => Ok(Some(only)),
        Err(several) => Ok(Some(concat_batches(&several[0].schema(), &several)?)),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, StringArray};

    use super::*;

    #[tokio::test]
    async fn a_result_counts_its_executable_plan_until_it_is_fetched() {
        let (host, session) = Host::of_tests().await;
        let statement = host.statement(&session, "SELECT 1").await.expect("planned");
        let pending = Pending::plan(&host, &session, &statement, vec![Vec::new()]).await.expect("a result");
        assert!(session.share.pool().reserved() > READY);
        let pending = Arc::new(pending);
        let reading = Arc::clone(&pending).run(Arc::clone(&session), &host).expect("a query");
        assert_eq!(reading.batches.try_collect::<Vec<_>>().await.expect("rows").len(), 1);
        assert!(session.share.pool().reserved() < READY, "it can be fetched again");
        drop(pending);
        assert_eq!(session.share.pool().reserved(), 0);
    }

    async fn pending_of(host: &Host, session: &Arc<Session>, sql: &str) -> Arc<Pending> {
        let statement = host.statement(session, sql).await.expect("planned");
        Arc::new(Pending::plan(host, session, &statement, vec![Vec::new()]).await.expect("a result"))
    }

    #[tokio::test]
    async fn a_large_batch_leaves_in_parts_and_others_come_between_them() {
        let (host, session) = Host::of_tests().await;
        // One that is the same in all rows would be refused.
        let sql = "SELECT repeat('x', 400000 + x % 2) AS text FROM generate_series(1, 8) t(x)";
        for waits in [false, true] {
            let pending = pending_of(&host, &session, sql).await;
            let reading = match waits {
                true => pending.run_in_parts(Arc::clone(&session), &host),
                false => pending.run(Arc::clone(&session), &host),
            };
            let mut batches = reading.expect("a query").batches;
            let (mut rows, mut parts) = (0, 0);
            while let Some(batch) = batches.try_next().await.expect("rows") {
                assert!(batch.num_rows() <= 2, "{} rows of 400 kB at once", batch.num_rows());
                (rows, parts) = (rows + batch.num_rows(), parts + 1);
            }
            assert!(rows == 8 && parts >= 4, "{rows} rows in {parts} parts");
        }
    }

    #[cfg(feature = "ui")]
    #[tokio::test]
    async fn rows_are_encoded_by_a_thread_of_their_lane() {
        let (host, session) = Host::of_tests().await;
        let pending = pending_of(&host, &session, "SELECT * FROM generate_series(1, 3000)").await;
        let encode = |rows: RecordBatch| Ok((rows.num_rows(), std::thread::current().name().map(str::to_owned)));
        let reading = pending.run_encoded(Arc::clone(&session), &host, 1_000, encode).expect("a query");
        let parts = reading.batches.try_collect::<Vec<_>>().await.expect("rows");
        assert_eq!(parts.iter().map(|(rows, _)| rows).sum::<usize>(), 3_000);
        for (rows, thread) in parts {
            assert!(rows <= 1_000 && thread.as_deref() == Some("execution"), "{rows} rows, {thread:?}");
        }
    }

    #[test]
    fn long_rows_are_sent_in_small_parts() {
        for (bytes, expected) in [(1, 1_000), (100 << 10, 10), (2 << 20, 1)] {
            let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(bytes); 3]));
            let rows = rows_of_part(&RecordBatch::try_from_iter([("t", texts)]).expect("a batch"), 1_000);
            assert_eq!(rows, expected, "{bytes} bytes");
        }
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        assert_eq!(rows_of_part(&RecordBatch::try_from_iter([("t", none)]).expect("a batch"), 1_000), 1_000);
    }
}
