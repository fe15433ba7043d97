//! A query that runs for a client: batches as the pages arrive, signs of life while they do not, and an end in any case.
//!
//! ```text
//! a task: plan ─▶ batches ─gathered─▶ channel ─▶ the stream that the client reads, which owns the task
//! ```
//!
//! The task ends when the stream is dropped, when the statement's time is over, when the client leaves the result unread,
//! when the query is cancelled, and when the server ends. Small batches that are there at the same time are sent as one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::utils::batches_to_flight_data;
use async_stream::try_stream;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use futures::stream::{BoxStream, Fuse};
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Status};

use super::command::flight_status;
use super::lanes::InLane;
use super::metrics::Metrics;
use super::planner::{Runnable, runnable};
use super::sessions::{Busy, Session};
use super::settings::Limits;
use super::type_compat::{bytes_of, sent_batch};
use crate::exec::spent;

/// Bytes of a batch that no more is added to. Clients refuse messages of more than 4 MiB.
const GATHERED: usize = 1 << 20;
/// How much later than its time a statement is given up that does not end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// A result that waits to be fetched.
#[derive(Debug)]
pub(super) struct Pending {
    /// What is run, one after another: one plan for each set of parameters.
    plans: Vec<LogicalPlan>,
    /// The first of them, as it was planned when the schema was told.
    first: Mutex<Option<Runnable>>,
    /// What every batch is sent with.
    pub(super) schema: SchemaRef,
    /// Ends it, now or when it is fetched.
    pub(super) cancelled: CancellationToken,
    /// The memory of its plans.
    _held: MemoryReservation,
}

/// What a running query has cost so far; told in the log and in the metrics at its end, whatever that is.
struct Account {
    query: String,
    session: Arc<Session>,
    metrics: Arc<Metrics>,
    begun: Instant,
    rows: u64,
    bytes: u64,
    plan: Option<Arc<dyn ExecutionPlan>>,
    requests: u64,
    /// `None`: the client has gone.
    end: Option<Code>,
    _busy: Busy,
    _places: [OwnedSemaphorePermit; 2],
    _lane: Arc<InLane>,
}

impl Pending {
    /// A result of these plans, the first of which is planned already.
    pub(super) fn new(
        plans: Vec<LogicalPlan>,
        first: Option<Runnable>,
        schema: SchemaRef,
        held: MemoryReservation,
        server: &CancellationToken,
    ) -> Self {
        Self { plans, first: Mutex::new(first), schema, cancelled: server.child_token(), _held: held }
    }

    /// Runs it.
    ///
    /// # Errors
    /// CANCELLED for what was cancelled before.
    pub(super) fn run(
        self: Arc<Self>,
        session: Arc<Session>,
        places: [OwnedSemaphorePermit; 2],
        metrics: Arc<Metrics>,
        limits: &Limits,
        lane: Arc<InLane>,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        if self.cancelled.is_cancelled() {
            return Err(Status::cancelled("the query was cancelled"));
        }
        let (sender, mut batches) = mpsc::channel(1);
        let (schema, keep_alive) = (Arc::clone(&self.schema), Duration::from_millis(limits.keep_alive_ms));
        metrics.queries_running.inc();
        let account = Account {
            query: String::new(),
            metrics,
            begun: Instant::now(),
            rows: 0,
            bytes: 0,
            plan: None,
            requests: 0,
            end: None,
            _busy: session.busy(),
            _places: places,
            _lane: Arc::clone(&lane),
            session,
        };
        let task = AbortOnDropHandle::new(lane.handle().spawn(drive(self, account, sender, limits.clone())));
        let sign_of_life = empty_message(&schema)?;
        let stream = try_stream! {
            while let Some(batch) = batches.recv().await {
                yield batch;
            }
            // It has ended; whether that was well is known to the task.
            let panicked = |_| Status::internal("internal error while running the query");
            task.await.map_err(panicked).flatten().map_err(|status| FlightError::Tonic(Box::new(status)))?;
        };
        // A computation that never pauses cannot be ended, nor end itself; its client need not wait for that.
        let seconds = limits.statement_seconds;
        let late = Instant::now() + Duration::from_secs(seconds) + GRACE;
        let mut encoded = FlightDataEncoderBuilder::new().with_schema(schema).build(stream.boxed());
        let alive = try_stream! {
            loop {
                match timeout_at((Instant::now() + keep_alive).min(late), encoded.try_next()).await {
                    Ok(message) => match message.map_err(flight_status)? {
                        Some(message) => yield message,
                        None => break,
                    },
                    Err(_) if Instant::now() >= late => Err(too_late(seconds))?,
                    Err(_) => yield sign_of_life.clone(),
                }
            }
        };
        Ok(alive.boxed())
    }
}

fn too_late(seconds: u64) -> Status {
    Status::deadline_exceeded(format!("the statement took its {seconds} s: narrow it, or ask for less at once"))
}

/// An empty batch, which the encoder of batches leaves out.
fn empty_message(schema: &SchemaRef) -> Result<FlightData, Status> {
    let messages = batches_to_flight_data(schema, vec![RecordBatch::new_empty(Arc::clone(schema))]);
    let last = messages.ok().and_then(|mut messages| messages.pop());
    last.ok_or_else(|| Status::internal("an empty batch cannot be written"))
}

/// Runs a result until it is sent, or until something ends it.
async fn drive(
    pending: Arc<Pending>,
    mut account: Account,
    sender: mpsc::Sender<RecordBatch>,
    limits: Limits,
) -> Result<(), Status> {
    let deadline = Instant::now() + Duration::from_secs(limits.statement_seconds);
    let cancelled = pending.cancelled.clone();
    let sent = timeout_at(deadline, send(pending, &mut account, sender, &limits));
    let result = tokio::select! {
        sent = sent => sent.unwrap_or_else(|_| Err(too_late(limits.statement_seconds))),
        () = cancelled.cancelled() => Err(Status::cancelled("the query was cancelled, or the server is ending")),
    };
    account.end = Some(result.as_ref().err().map_or(Code::Ok, Status::code));
    result
}

async fn send(
    pending: Arc<Pending>,
    account: &mut Account,
    sender: mpsc::Sender<RecordBatch>,
    limits: &Limits,
) -> Result<(), Status> {
    let session = Arc::clone(&account.session);
    let failed = |error: DataFusionError| session.status(&error);
    let mut first = pending.first.lock().unwrap_or_else(PoisonError::into_inner).take();
    for plan in &pending.plans {
        let Runnable { plan, task, query } = match first.take() {
            Some(planned) => planned,
            None => runnable(&session, plan.clone()).await.map_err(failed)?,
        };
        account.begin(query, &plan);
        let mut stream = execute_stream(plan, task).map_err(failed)?.fuse();
        while let Some(batch) = gather(&mut stream).await.map_err(failed)? {
            let batch = sent_batch(&batch, &pending.schema).map_err(|error| failed(error.into()))?;
            account.rows += batch.num_rows() as u64;
            account.bytes += bytes_of(&batch);
            if account.bytes > limits.result_bytes {
                let line =
                    format!("the result has more than {} bytes: ask for fewer rows or columns", limits.result_bytes);
                return Err(Status::resource_exhausted(line));
            }
            // Whoever reads no more does not say so.
            match timeout(Duration::from_secs(limits.unread_seconds), sender.send(batch)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Status::cancelled("the client has gone")),
                Err(_) => {
                    let line = format!("the result was left unread for {} s", limits.unread_seconds);
                    return Err(Status::deadline_exceeded(line));
                }
            }
        }
    }
    Ok(())
}

/// The next batch, with those that are there already.
async fn gather(stream: &mut Fuse<SendableRecordBatchStream>) -> Result<Option<RecordBatch>, DataFusionError> {
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

impl Account {
    /// Another plan begins.
    fn begin(&mut self, query: String, plan: &Arc<dyn ExecutionPlan>) {
        tracing::info!(query, principal = %self.session.principal.name, "query");
        self.settle();
        self.query = query;
        self.plan = Some(Arc::clone(plan));
    }

    /// Counts what the plan has asked of the service.
    fn settle(&mut self) {
        self.requests += self.plan.take().map_or(0, |plan| spent(&plan).requests);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.settle();
        let Self { query, session, metrics, begun, rows, bytes, requests, end, .. } = self;
        let outcome = end.map_or("gone", code_name);
        if *end == Some(Code::Ok) && *requests > 0 {
            session.prove();
        }
        metrics.ended(outcome, *rows, *bytes, *requests, begun.elapsed());
        let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(query, principal = %session.principal.name, outcome, rows, bytes, requests, elapsed_ms, "query ended");
    }
}

/// A code as metrics and logs name it.
pub(super) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}
