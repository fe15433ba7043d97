//! The RPCs of Flight, for Flight SQL's commands.
//!
//! GetFlightInfo plans, and gives a ticket; DoGet runs. Nothing is asked of the service in between. Statements without a
//! result are an exception: they run in GetFlightInfo, once, since clients do not always fetch what comes of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{
    ActionCancelQueryResult, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, Command,
    CommandStatementQuery, DoPutPreparedStatementResult, DoPutUpdateResult, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoResult, CancelStatus, Criteria, Empty, FlightData, FlightDescriptor,
    FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse, IpcMessage, PollInfo, PutResult, SchemaAsIpc,
    SchemaResult, Ticket,
};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use prost::Message;
use prost::bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Request, Response, Status, Streaming};

use super::auth::{Credentials, credentials, handshake_credentials};
use super::command::{Act, act, action_types, described, flight_status, name, parse};
use super::connection_limit::Standing;
use super::handles::Store;
use super::lanes::Lanes;
use super::listener::Peer;
use super::metrics::Metrics;
use super::options::{CloseSessionResult, CloseSessionStatus, options, set_options};
use super::planner::{Statement, runnable};
use super::results::{Pending, code_name};
use super::sessions::{Session, Sessions, caller_of, session_of};
use super::settings::Limits;
use super::type_compat::result_schema;
use super::{effects, info, metadata, parameters, planner};

/// What all calls share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) sessions: Sessions,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    /// The connections that are there.
    pub(super) standing: Arc<Standing>,
    /// Ends whatever runs.
    pub(super) cancelled: CancellationToken,
    /// Where statements are planned and run, away from the threads that serve sockets: what computes for long must not
    /// keep them from being heard.
    lanes: Lanes,
    ending: AtomicBool,
    prepared: Store<Prepared>,
    results: Store<Pending>,
    streams: Arc<Semaphore>,
}

/// A prepared statement, and what is bound to it.
#[derive(Debug)]
struct Prepared {
    sql: String,
    bound: Mutex<Option<Bound>>,
    _held: MemoryReservation,
}

/// Sets of parameters, in the memory that queries share.
#[derive(Debug)]
struct Bound {
    sets: Vec<Vec<ScalarValue>>,
    _held: MemoryReservation,
}

impl Shared {
    pub(super) fn new(sessions: Sessions, limits: Limits, lanes: Lanes) -> Self {
        let prepared = Store::new("prepared statement", limits.statements, limits.session_idle(), false);
        let results = Store::new("result", limits.results, limits.result_time(), true);
        let streams = Arc::new(Semaphore::new(limits.streams));
        let (cancelled, metrics, ending) = (CancellationToken::new(), Metrics::new(), AtomicBool::new(false));
        let standing = Arc::new(Standing::new(limits.connections, limits.session_idle()));
        Self { sessions, limits, metrics, standing, cancelled, lanes, ending, prepared, results, streams }
    }

    /// Forgets what nobody has used for long, and what sessions have left behind.
    pub(super) fn sweep(&self) {
        self.standing.sweep();
        let open = self.sessions.sweep();
        self.prepared.sweep(&open);
        self.results.sweep(&open);
    }

    /// Places for what runs for a session.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where there are none.
    pub(super) fn places(&self, session: &Session) -> Result<[OwnedSemaphorePermit; 2], Status> {
        let place = |places: &Arc<Semaphore>, whose: &str, most: usize| {
            let place = Arc::clone(places).try_acquire_owned();
            place.map_err(|_| {
                Status::resource_exhausted(format!("{whose} has its {most} results under way: read them first"))
            })
        };
        let Limits { streams, streams_per_session, .. } = self.limits;
        Ok([place(&session.streams, "the session", streams_per_session)?, place(&self.streams, "the server", streams)?])
    }

    /// A connection has ended, and the sessions that it had.
    pub(super) fn hung_up(&self, peer: Peer) {
        self.sessions.hung_up(peer);
    }

    /// Waits until nothing has run for some time.
    pub(super) async fn quiet(&self, time: Duration) {
        let mut since = Instant::now();
        while since.elapsed() < time {
            sleep(Duration::from_millis(50)).await;
            if self.streams.available_permits() < self.limits.streams {
                since = Instant::now();
            }
        }
    }

    /// Whether the server is told to end.
    pub(super) fn ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// The server is told to end.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// The metrics as text.
    ///
    /// # Errors
    /// None in practice: writing to a text does not fail.
    pub(super) fn metrics_text(&self) -> Result<String, std::fmt::Error> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.metrics.sessions.set(count(self.sessions.len()));
        self.metrics.statements.set(count(self.prepared.len()));
        self.metrics.results.set(count(self.results.len()));
        self.metrics.connections.set(count(self.standing.len()));
        self.metrics.text(&self.sessions.connections())
    }
}

/// The Flight service.
#[derive(Debug, Clone)]
pub(super) struct Service(pub(super) Arc<Shared>);

/// The handle of a result without rows: that of a statement that has run already.
const NOTHING: &[u8] = b"nothing";

/// How long a client may take for a message that it is to send.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is put into a ticket or told about a command.
enum Described {
    /// Rows that are known without a query.
    Known(RecordBatch),
    /// A query, not run yet.
    Query(Pending),
    /// A statement that has run.
    Done,
}

impl Service {
    /// Does what may compute for long, for no longer than a statement may take. A client that goes ends it.
    async fn away<T: Send + 'static>(
        &self,
        session: &Session,
        work: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        let seconds = self.0.limits.statement_seconds;
        let lane = self.0.lanes.enter(&session.lane);
        // The session is in its lane until the work has ended, which may be later than the client has gone.
        let handle = lane.handle().clone();
        let work = AbortOnDropHandle::new(handle.spawn(async move {
            let _lane = lane;
            work.await
        }));
        let done = timeout(Duration::from_secs(seconds), work).await;
        let done = done.map_err(|_| Status::deadline_exceeded(format!("the statement took its {seconds} s")))?;
        done.map_err(|_| Status::internal("the statement failed in a way that nobody foresaw"))?
    }

    /// What a command comes to. `run`: whether a statement without a result is to be run.
    async fn describe(&self, session: &Arc<Session>, command: Command, run: bool) -> Result<Described, Status> {
        match command {
            Command::CommandStatementQuery(CommandStatementQuery { query, transaction_id }) => {
                no_transaction(transaction_id.as_ref())?;
                let statement = self.statement(session, &query).await?;
                self.described(session, &statement, None, run).await
            }
            Command::CommandPreparedStatementQuery(command) => {
                let (prepared, session) = self.0.prepared.find(&command.prepared_statement_handle, session)?;
                let bound = prepared.bound();
                // Again: its tables may be others by now.
                let statement = self.statement(&session, &prepared.sql).await?;
                self.described(&session, &statement, bound, run).await
            }
            command => match known(session, command).await? {
                Ok(rows) => Ok(Described::Known(rows)),
                Err(command) => Err(Status::unimplemented(format!("{} gives no rows here", name(&command)))),
            },
        }
    }

    async fn describe_away(&self, session: &Arc<Session>, command: Command, run: bool) -> Result<Described, Status> {
        let (service, owner) = (self.clone(), Arc::clone(session));
        self.away(session, async move { service.describe(&owner, command, run).await }).await
    }

    async fn described(
        &self,
        session: &Arc<Session>,
        statement: &Statement,
        bound: Option<Vec<Vec<ScalarValue>>>,
        run: bool,
    ) -> Result<Described, Status> {
        let failed = |error: DataFusionError| session.status(&error);
        if statement.effect {
            if run {
                effects::run(&self.0, session, statement, bound).await?;
            }
            return Ok(Described::Done);
        }
        // Without parameters there is one set, the empty one.
        let sets = bound.unwrap_or_else(|| vec![Vec::new()]);
        let plans = sets.into_iter().map(|set| statement.bind(set)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let first = match plans.first() {
            Some(plan) => Some(runnable(session, plan.clone()).await.map_err(failed)?),
            None => None,
        };
        let held = self.hold("result", plans.iter().map(planner::bytes_of_plan).sum())?;
        let schema =
            first.as_ref().map_or_else(|| Arc::clone(&statement.schema), |first| result_schema(&first.plan.schema()));
        Ok(Described::Query(Pending::new(plans, first, schema, held, &self.0.cancelled)))
    }

    async fn statement(&self, session: &Session, sql: &str) -> Result<Statement, Status> {
        if sql.len() > self.0.limits.statement_bytes {
            let (has, most) = (sql.len(), self.0.limits.statement_bytes);
            return Err(Status::resource_exhausted(format!("the statement has {has} bytes, {most} are allowed")));
        }
        tracing::debug!(principal = %session.principal.name, sql = session.redact(sql), "statement");
        Statement::of(session, sql).await.map_err(|error| session.status(&error))
    }

    /// Runs a statement that was sent for what it changes.
    async fn update(
        &self,
        session: Arc<Session>,
        sql: String,
        bound: Option<Vec<Vec<ScalarValue>>>,
    ) -> Result<i64, Status> {
        let (service, caller) = (self.clone(), Arc::clone(&session));
        self.away(&caller, async move {
            let statement = service.statement(&session, &sql).await?;
            if !statement.effect {
                return Err(Status::invalid_argument("the statement has a result: fetch it, it changes nothing"));
            }
            effects::run(&service.0, &session, &statement, bound).await.map(|()| 0)
        })
        .await
    }

    async fn info(&self, request: Request<FlightDescriptor>) -> Result<FlightInfo, Status> {
        let session = session_of(&request)?;
        let descriptor = request.into_inner();
        let command = described(&descriptor)?;
        let (schema, ticket, kept) = match self.describe_away(&session, command, true).await? {
            // The command itself says all that is to be known.
            Described::Known(rows) => (rows.schema(), descriptor.cmd.clone(), false),
            Described::Query(pending) => {
                let schema = Arc::clone(&pending.schema);
                (schema, ticket(self.0.results.insert(&session, pending)?.into()), true)
            }
            Described::Done => (Arc::new(Schema::empty()), ticket(Bytes::from_static(NOTHING)), false),
        };
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket));
        let endpoint = if kept { endpoint.with_expiration_time(self.expiration()) } else { endpoint };
        let info = FlightInfo::new().with_descriptor(descriptor).with_endpoint(endpoint);
        info.try_with_schema(&schema).map_err(|error| Status::internal(error.to_string()))
    }

    /// When what is kept now will be forgotten.
    fn expiration(&self) -> prost_types::Timestamp {
        #[expect(clippy::disallowed_methods, reason = "clients compare it with their own clocks")]
        let now = SystemTime::now();
        (now + self.0.limits.result_time()).into()
    }

    async fn fetch(&self, session: Arc<Session>, ticket: Ticket) -> Result<Answers<FlightData>, Status> {
        match parse(&ticket.ticket)? {
            Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) if statement_handle == NOTHING => {
                Ok(sent(RecordBatch::new_empty(Arc::new(Schema::empty()))))
            }
            Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) => {
                let (pending, session) = self.0.results.find(&statement_handle, &session)?;
                let handle = String::from_utf8_lossy(&statement_handle).into_owned();
                self.run(session, pending, Some(handle))
            }
            // Some clients take the command for the ticket.
            command => match self.describe_away(&session, command, true).await? {
                Described::Known(rows) => Ok(sent(rows)),
                Described::Query(pending) => self.run(session, Arc::new(pending), None),
                Described::Done => Ok(sent(RecordBatch::new_empty(Arc::new(Schema::empty())))),
            },
        }
    }

    fn run(
        &self,
        session: Arc<Session>,
        pending: Arc<Pending>,
        handle: Option<String>,
    ) -> Result<Answers<FlightData>, Status> {
        let Shared { limits, metrics, .. } = self.0.as_ref();
        let places = self.0.places(&session)?;
        if let Some(handle) = handle {
            self.0.results.done(&handle);
        }
        let lane = self.0.lanes.enter(&session.lane);
        pending.run(session, places, Arc::clone(metrics), limits, lane)
    }

    async fn prepare(
        &self,
        session: &Arc<Session>,
        request: ActionCreatePreparedStatementRequest,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        no_transaction(request.transaction_id.as_ref())?;
        let (service, owner, sql) = (self.clone(), Arc::clone(session), request.query.clone());
        let statement = self.away(session, async move { service.statement(&owner, &sql).await }).await?;
        // Clients take an empty text for a statement without a result, and without parameters.
        let schema = |schema: &SchemaRef| {
            if schema.fields().is_empty() { Ok(Bytes::new()) } else { schema_bytes(schema) }
        };
        let (dataset_schema, parameter_schema) = (schema(&statement.schema)?, schema(&statement.parameters)?);
        let held = self.hold("prepared statement", request.query.len())?;
        let prepared = Prepared { sql: request.query, bound: Mutex::default(), _held: held };
        let handle = self.0.prepared.insert(session, prepared)?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle.into(),
            dataset_schema,
            parameter_schema,
        })
    }

    async fn put(&self, session: Arc<Session>, mut messages: Streaming<FlightData>) -> Result<Bytes, Status> {
        let first = timeout(PATIENCE, messages.message()).await.map_err(|_| late())??;
        let first = first.ok_or_else(|| Status::invalid_argument("nothing was sent"))?;
        let descriptor = first.flight_descriptor.clone();
        let command =
            described(&descriptor.ok_or_else(|| Status::invalid_argument("the first message has no command"))?)?;
        let messages = stream::iter([Ok(first)]).chain(messages);
        let updated = |record_count| DoPutUpdateResult { record_count }.encode_to_vec().into();
        match command {
            Command::CommandStatementUpdate(update) => {
                no_transaction(update.transaction_id.as_ref())?;
                self.update(session, update.query, None).await.map(updated)
            }
            Command::CommandPreparedStatementUpdate(update) => {
                let (prepared, session) = self.0.prepared.find(&update.prepared_statement_handle, &session)?;
                let bound = self.parameters(messages).await?.map(|bound| bound.sets).or_else(|| prepared.bound());
                self.update(session, prepared.sql.clone(), bound).await.map(updated)
            }
            Command::CommandPreparedStatementQuery(query) => {
                let handle = query.prepared_statement_handle;
                let (prepared, _) = self.0.prepared.find(&handle, &session)?;
                let bound = self.parameters(messages).await?;
                *prepared.bound.lock().unwrap_or_else(PoisonError::into_inner) = bound;
                // The handle stays; clients that take another one from here take the same.
                Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) }.encode_to_vec().into())
            }
            Command::CommandStatementIngest(ingest) => {
                no_transaction(ingest.transaction_id.as_ref())?;
                effects::ingest(&self.0, &session, ingest, timely(messages)).await.map(updated)
            }
            command => Err(Status::unimplemented(format!("{} cannot be put here", name(&command)))),
        }
    }

    async fn parameters(
        &self,
        messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
    ) -> Result<Option<Bound>, Status> {
        // On a task of its own: what a client sends may be anything, and must not end its connection.
        let most = self.0.limits.parameter_rows;
        let reading = AbortOnDropHandle::new(tokio::spawn(parameters::read(timely(messages), most)));
        let read = reading.await.map_err(|_| Status::invalid_argument("the parameters cannot be read"))??;
        let Some((sets, bytes)) = read else { return Ok(None) };
        let held = self.hold("bound parameters", usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(Some(Bound { sets, _held: held }))
    }

    /// Memory for what a session leaves here, of that which all queries share.
    fn hold(&self, what: &str, bytes: usize) -> Result<MemoryReservation, Status> {
        let held = MemoryConsumer::new(what).register(self.0.sessions.pool());
        let grown = held.try_grow(bytes);
        grown.map_err(|_| Status::resource_exhausted(format!("no memory for the {what}: close some statements")))?;
        Ok(held)
    }

    async fn act(&self, session: Arc<Session>, action: &Action) -> Result<Option<Bytes>, Status> {
        let bytes = |message: Vec<u8>| Some(Bytes::from(message));
        Ok(match act(action)? {
            Act::Prepare(request) => bytes(self.prepare(&session, request).await?.as_any().encode_to_vec()),
            Act::ClosePrepared(request) => {
                self.0.prepared.remove(&request.prepared_statement_handle, &session);
                None
            }
            Act::CancelQuery(request) => {
                let info = FlightInfo::decode(request.info.as_ref())
                    .map_err(|_| Status::invalid_argument("the query's description cannot be read"))?;
                // Its numbers are those of Flight's own action.
                let result = self.cancel(&session, &info)? as i32;
                bytes(ActionCancelQueryResult { result }.as_any().encode_to_vec())
            }
            Act::CancelInfo(request) => {
                let info = request.info.ok_or_else(|| Status::invalid_argument("the query is not described"))?;
                bytes(CancelFlightInfoResult::new(self.cancel(&session, &info)?).encode_to_vec())
            }
            Act::Renew(request) => {
                let endpoint = request.endpoint.ok_or_else(|| Status::invalid_argument("there is no endpoint"))?;
                let handle = ticket_handle(&endpoint)
                    .ok_or_else(|| Status::invalid_argument("the endpoint has no ticket of a result"))?;
                self.0.results.find(&handle, &session)?;
                bytes(endpoint.with_expiration_time(self.expiration()).encode_to_vec())
            }
            Act::SetOptions(request) => bytes(set_options(&session, request).await.encode_to_vec()),
            Act::Options => bytes(options(&session).encode_to_vec()),
            Act::CloseSession => {
                self.0.sessions.close(&session);
                self.0.sweep();
                bytes(CloseSessionResult { status: CloseSessionStatus::Closed as i32 }.encode_to_vec())
            }
        })
    }

    fn cancel(&self, session: &Session, info: &FlightInfo) -> Result<CancelStatus, Status> {
        let handles: Vec<Bytes> = info.endpoint.iter().filter_map(ticket_handle).collect();
        if handles.is_empty() {
            return Ok(CancelStatus::NotCancellable);
        }
        for handle in handles {
            let (pending, _) = self.0.results.find(&handle, session)?;
            pending.cancelled.cancel();
        }
        Ok(CancelStatus::Cancelled)
    }

    /// Notes how a call ended.
    fn called<T>(&self, kind: String, result: Result<T, Status>) -> Result<T, Status> {
        let code = result.as_ref().err().map_or(Code::Ok, Status::code);
        self.0.metrics.called(kind, code_name(code));
        if let Err(status) = &result {
            tracing::debug!(code = code_name(code), message = status.message(), "refused");
        }
        result
    }
}

impl Prepared {
    fn bound(&self) -> Option<Vec<Vec<ScalarValue>>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|bound| bound.sets.clone())
    }
}

/// The rows of a command that needs no query; otherwise the command.
async fn known(session: &Session, command: Command) -> Result<Result<RecordBatch, Command>, Status> {
    let context = &session.context;
    let failed = |error: DataFusionError| session.status(&error);
    Ok(Ok(match command {
        Command::CommandGetCatalogs(command) => metadata::catalogs(context, command).map_err(failed)?,
        Command::CommandGetDbSchemas(command) => metadata::schemas(context, command).map_err(failed)?,
        Command::CommandGetTables(command) => metadata::tables(context, command).await.map_err(failed)?,
        Command::CommandGetTableTypes(command) => metadata::table_types(command).map_err(failed)?,
        Command::CommandGetPrimaryKeys(command) => metadata::primary_keys(context, command).await.map_err(failed)?,
        Command::CommandGetImportedKeys(_)
        | Command::CommandGetExportedKeys(_)
        | Command::CommandGetCrossReference(_) => metadata::foreign_keys(),
        Command::CommandGetSqlInfo(command) => info::sql_info(command).map_err(flight_status)?,
        Command::CommandGetXdbcTypeInfo(command) => info::type_info(command).map_err(flight_status)?,
        other => return Ok(Err(other)),
    }))
}

/// Messages that come, each in time.
fn timely(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    async_stream::try_stream! {
        let mut messages = std::pin::pin!(messages);
        while let Some(message) = timeout(PATIENCE, messages.next()).await.map_err(|_| late())? {
            yield message?;
        }
    }
}

fn late() -> Status {
    Status::deadline_exceeded(format!("nothing was sent for {} s", PATIENCE.as_secs()))
}

fn ticket(statement_handle: Bytes) -> Bytes {
    TicketStatementQuery { statement_handle }.as_any().encode_to_vec().into()
}

/// The handle in the ticket of an endpoint, where it is one of a result.
fn ticket_handle(endpoint: &FlightEndpoint) -> Option<Bytes> {
    let any = Any::decode(endpoint.ticket.as_ref()?.ticket.as_ref()).ok()?;
    Some(any.unpack::<TicketStatementQuery>().ok()??.statement_handle)
}

fn no_transaction(id: Option<&Bytes>) -> Result<(), Status> {
    match id {
        Some(id) if !id.is_empty() => {
            Err(Status::invalid_argument("there are no transactions: the service is read-only"))
        }
        _ => Ok(()),
    }
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    message.map(|IpcMessage(bytes)| bytes).map_err(|error| Status::internal(error.to_string()))
}

/// One batch as a stream.
fn sent(batch: RecordBatch) -> Answers<FlightData> {
    let encoded = FlightDataEncoderBuilder::new().with_schema(batch.schema()).build(stream::iter([Ok(batch)]));
    encoded.map_err(flight_status).boxed()
}

fn one<T: Send + 'static>(value: T) -> Answers<T> {
    stream::iter([Ok(value)]).boxed()
}

/// What a call answers with.
type Answers<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;
    type DoExchangeStream = Answers<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let caller = caller_of(request.extensions());
        let answer = async {
            let mut given = credentials(request.metadata())?;
            // Whoever has a header may send no message at all.
            if matches!(given, Credentials::None)
                && let Some(message) = timeout(PATIENCE, request.into_inner().message()).await.map_err(|_| late())??
            {
                given = handshake_credentials(&message.payload).unwrap_or(Credentials::None);
            }
            let (token, proven) = self.0.sessions.log_in(&given, caller).await?;
            if let Some(caller) = caller.filter(|_| proven) {
                self.0.standing.prove(caller.peer);
            }
            let response = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
            let mut response = Response::new(one(response));
            let bearer = format!("Bearer {token}").parse().map_err(|_| Status::internal("the token is no header"))?;
            response.metadata_mut().insert("authorization", bearer);
            Ok(response)
        };
        self.called("Handshake".to_owned(), answer.await)
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        session_of(&request)?;
        Ok(Response::new(stream::empty().boxed()))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let kind = described(request.get_ref()).map_or_else(|_| "GetFlightInfo".to_owned(), |command| name(&command));
        self.called(kind, self.info(request).await.map(Response::new))
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        // It is complete at once: what takes time is left to DoGet.
        let info = self.info(request).await;
        self.called("PollFlightInfo".to_owned(), info.map(|info| Response::new(PollInfo::new().with_info(info))))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let answer = async {
            let session = session_of(&request)?;
            let schema = match self.describe_away(&session, described(request.get_ref())?, false).await? {
                Described::Known(rows) => rows.schema(),
                Described::Query(pending) => Arc::clone(&pending.schema),
                Described::Done => Arc::new(Schema::empty()),
            };
            Ok(Response::new(SchemaResult { schema: schema_bytes(&schema)? }))
        };
        self.called("GetSchema".to_owned(), answer.await)
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let answer = async {
            let session = session_of(&request)?;
            Ok(Response::new(self.fetch(session, request.into_inner()).await?))
        };
        self.called("DoGet".to_owned(), answer.await)
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let answer = async {
            let session = session_of(&request)?;
            let _busy = session.busy();
            let app_metadata = self.put(session, request.into_inner()).await?;
            Ok(Response::new(one(PutResult { app_metadata })))
        };
        self.called("DoPut".to_owned(), answer.await)
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let known =
            action_types().into_iter().map(|action| action.r#type).find(|name| *name == request.get_ref().r#type);
        let answer = async {
            let session = session_of(&request)?;
            let answer = self.act(session, request.get_ref()).await?;
            let answer = answer.map(|body| Ok(arrow_flight::Result { body }));
            Ok(Response::new(stream::iter(answer).boxed()))
        };
        self.called(known.unwrap_or_else(|| "DoAction".to_owned()), answer.await)
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Ok(Response::new(stream::iter(action_types().into_iter().map(Ok)).boxed()))
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.called("DoExchange".to_owned(), Err(Status::unimplemented("nothing is exchanged here: send SQL")))
    }
}
