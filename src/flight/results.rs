//! Running queries: streams batches as pages arrive, and keep-alive messages while none do.
//!
//! ```text
//! task: plan ─▶ batches ─gathered─▶ channel ─▶ the stream that the client reads, which owns the task
//! ```
//!
//! The task ends when the stream is dropped, the statement times out, the client stops reading, the query is cancelled,
//! or the server shuts down. Small batches that are ready at the same time are sent as one.

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
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream};
use futures::stream::{BoxStream, Fuse};
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Status};

use super::command::flight_status;
use crate::exec::{in_span, statement_kind};
use crate::host::account::Account;
use crate::host::planner::{Runnable, runnable};
use crate::host::sessions::Session;
use crate::host::settings::Limits;
use crate::host::state::Host;
use crate::host::type_compat::sent_batch;

/// Size in bytes from which a batch is not merged with further ones. Clients refuse messages of more than 4 MiB.
const GATHERED: usize = 1 << 20;
/// Time after its deadline at which a statement that has not ended by itself is abandoned.
const GRACE: Duration = Duration::from_secs(1);

/// A result that can be fetched.
#[derive(Debug)]
pub(super) struct Pending {
    /// Plans to run in sequence, one for each parameter set.
    plans: Vec<LogicalPlan>,
    /// Executable form of the first plan, which was needed for the schema.
    first: Mutex<Option<Runnable>>,
    /// Schema of all batches sent.
    pub(super) schema: SchemaRef,
    /// Cancels the query, whether it is running or still to be fetched.
    pub(super) cancelled: CancellationToken,
    /// Memory reserved for the plans.
    _held: MemoryReservation,
}

impl Pending {
    /// Creates a result from plans; `first` is the executable form of the first one.
    pub(super) fn new(
        plans: Vec<LogicalPlan>,
        first: Option<Runnable>,
        schema: SchemaRef,
        held: MemoryReservation,
        server: &CancellationToken,
    ) -> Self {
        Self { plans, first: Mutex::new(first), schema, cancelled: server.child_token(), _held: held }
    }

    /// Starts the query and returns its stream of messages.
    ///
    /// # Errors
    /// CANCELLED if the query was cancelled before it was fetched.
    pub(super) fn run(
        self: Arc<Self>,
        session: Arc<Session>,
        host: &Host,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        if self.cancelled.is_cancelled() {
            return Err(Status::cancelled("query cancelled"));
        }
        let (sender, mut batches) = mpsc::channel(1);
        let (schema, keep_alive) = (Arc::clone(&self.schema), Duration::from_millis(host.limits.keep_alive_ms));
        let limits = &host.limits;
        let lane = host.lanes.enter(&session.lane);
        let account = Account::open(host, session, Arc::clone(&lane))?;
        let task = AbortOnDropHandle::new(lane.handle().spawn(drive(self, account, sender, limits.clone())));
        let sign_of_life = empty_message(&schema)?;
        let stream = try_stream! {
            while let Some(batch) = batches.recv().await {
                yield batch;
            }
            // The task has ended; its result tells success from failure.
            let panicked = |_| Status::internal("internal error while running the query");
            task.await.map_err(panicked).flatten().map_err(|status| FlightError::Tonic(Box::new(status)))?;
        };
        // A computation that never yields cannot be cancelled; its client must not have to wait for it.
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
    Status::deadline_exceeded(format!("statement timed out after {seconds} s: narrow the query"))
}

/// Encodes an empty batch, which the batch encoder would skip.
fn empty_message(schema: &SchemaRef) -> Result<FlightData, Status> {
    let messages = batches_to_flight_data(schema, vec![RecordBatch::new_empty(Arc::clone(schema))]);
    let last = messages.ok().and_then(|mut messages| messages.pop());
    last.ok_or_else(|| Status::internal("cannot encode an empty batch"))
}

/// Runs a query until its result is sent, it times out or it is cancelled.
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
        () = cancelled.cancelled() => Err(Status::cancelled("query cancelled, or server shutting down")),
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
        let kind = statement_kind(plan);
        let Runnable { plan, task, query } = match first.take() {
            Some(planned) => planned,
            None => runnable(&session.context, plan.clone()).await.map_err(failed)?,
        };
        let span = account.begin(kind, query, &plan);
        let mut stream = execute_stream(plan, in_span(task, &span)).map_err(failed)?.fuse();
        while let Some(batch) = gather(&mut stream).await.map_err(failed)? {
            let batch = sent_batch(&batch, &pending.schema).map_err(|error| failed(error.into()))?;
            account.add(&batch);
            if account.bytes > limits.result_bytes {
                let line = format!("result larger than {} bytes: select fewer rows or columns", limits.result_bytes);
                return Err(Status::resource_exhausted(line));
            }
            // A client that stops reading does not announce it.
            match timeout(Duration::from_secs(limits.unread_seconds), sender.send(batch)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Status::cancelled("the client disconnected")),
                Err(_) => {
                    let line = format!("the client did not read the result for {} s", limits.unread_seconds);
                    return Err(Status::deadline_exceeded(line));
                }
            }
        }
    }
    Ok(())
}

/// Returns the next batch, merged with those that are ready already.
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
