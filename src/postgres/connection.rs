//! A connection: its messages, its statements and its transaction status.
//!
//! ```text
//! Query: statements ─▶ each planned, bound, run to its end                            one ReadyForQuery for all
//! Parse ─▶ statement ─Bind─▶ portal ─Execute─▶ rows, as many as asked ─▶ suspended    ReadyForQuery at Sync
//! ```
//!
//! A suspended portal keeps its running query, which requests no further pages until it is read. While a query runs, the
//! connection is watched. If the client disconnects, the query and its requests are dropped. After an error in the extended
//! protocol, messages are skipped until Sync (PostgreSQL documentation, "Message Flow").
//!
//! `messages` acts on each message, `plans` makes portals of statements, `commands` carries out what is not for the engine,
//! `settings` are those of the connection, and `copies` sends rows of COPY and of cursors.

mod commands;
mod copies;
mod messages;
mod plans;
mod settings;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use futures::stream::BoxStream;
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::extendedquery::PortalSuspended;
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{BackendKeyData, ParameterStatus, SecretKey};
use postgres_types::Type;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::dialect::{self, Names};
use super::report::{Report, Severity};
use super::rows::{Layout, Rows};
use super::server::{Registered, Shared};
use super::settings::Settings;
use super::startup::{Started, closed, end};
use super::wire::{Lost, Message, Wire};
use crate::catalog::SCHEMA;
use crate::error::describe;
use crate::host::cached_plan::CachedPlan;
use crate::host::connection_limit::Ended;
use crate::host::effects;
use crate::host::failure::{Code, Failure};
use crate::host::peer::Caller;
use crate::host::planner::Statement;
use crate::host::running::{Pending, Reading};
use crate::host::sessions::Session;
use crate::host::shares::SessionMemory;
use crate::memory::{StatementMemory, within};
use crate::numbers::counted;
use crate::session::{literal, time_zone};
use crate::wording::window_note;

/// Bytes that a message may have in addition to the statement in it.
const AROUND: usize = 1 << 20;
/// Portals of a connection.
const PORTALS: usize = 64;
/// Statements of a message.
const STATEMENTS: usize = 10_000;
/// Savepoints of a transaction, and changes of settings in one.
const SAVEPOINTS: usize = 10_000;
const CHANGES: usize = 10_000;

/// Why a message is not done.
enum Stop {
    /// The statement has failed.
    Failed(Report),
    /// The connection is over.
    Lost(Lost),
}

impl Stop {
    /// The same, for a statement behind this many characters of a query.
    fn behind(self, characters: usize) -> Self {
        match self {
            Self::Failed(report) => Self::Failed(report.behind(characters)),
            lost => lost,
        }
    }
}

impl From<Report> for Stop {
    fn from(report: Report) -> Self {
        Self::Failed(report)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

/// A prepared statement.
struct Prepared {
    sql: String,
    command: Command,
    parameters: Vec<Type>,
    /// Result; without columns if there is none.
    schema: SchemaRef,
    /// See [`Portal::tag`].
    tag: String,
    /// Set once its types were sent to the client.
    described: bool,
    plan: Option<CachedPlan<PlanKey>>,
    _held: Option<SessionMemory>,
}

/// Names and types that a plan depends on, besides the text and the session of the engine.
#[derive(PartialEq)]
struct PlanKey {
    names: Names,
    /// Types of parameters that are known.
    types: Vec<Option<Type>>,
}

/// A statement with its parameters, which runs in one go or in parts.
struct Portal {
    work: Work,
    layout: Layout,
    schema: SchemaRef,
    /// First word of the line that reports its end.
    tag: String,
    hold: Hold,
    /// Memory of its parameters, and of the session of the catalogs.
    _held: SessionMemory,
}

/// Life of a portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// As long as its transaction.
    Transaction,
    /// Beyond it, once it is committed.
    Declared,
    /// As long as the connection.
    Kept,
}

enum Work {
    /// No statement at all.
    Empty,
    /// Done by the connection. `sql` is the client's text.
    Command {
        command: Command,
        sql: String,
    },
    /// Changes the session.
    Effect {
        statement: Box<Statement>,
        values: Vec<ScalarValue>,
    },
    /// Rows to come.
    Query(Arc<Pending>),
    Rows(Box<Running>),
    Done,
}

/// A query that runs.
struct Running {
    batches: BoxStream<'static, Result<RecordBatch, Failure>>,
    /// Memory of the query, to which what is done with its rows counts.
    memory: Arc<StatementMemory>,
    /// The current batch, and the next row of it.
    rest: Option<(Rows, usize)>,
    pending: Arc<Pending>,
    /// Name of the query in the log of requests.
    query: Option<String>,
    /// Instant at which it is stopped, if the client has set a limit.
    deadline: Option<Instant>,
}

/// A planned statement.
struct Planned {
    statement: Statement,
    /// That of the catalogs, for a statement about them.
    context: Option<SessionContext>,
    /// Types of parameters that are declared, or cast to one, by their number.
    types: BTreeMap<usize, Type>,
    /// Set if values are in the plan: those of parameters, or of functions of catalogs.
    has_values: bool,
}

/// A change of a setting in a transaction.
struct Change {
    name: String,
    /// Value before it.
    before: Option<String>,
    /// Undone at the end of the transaction; others only by a rollback.
    local: bool,
    _held: SessionMemory,
}

/// A savepoint of a transaction.
struct Savepoint {
    name: String,
    /// Which of the changes before it were local.
    local: Vec<bool>,
    /// Savepoints of this name with the same changes before them: some drivers set one before each statement, and release none.
    count: usize,
    _held: SessionMemory,
}

/// See the module's documentation.
pub(super) struct Connection {
    wire: Wire,
    session: Arc<Session>,
    settings: Settings,
    shared: Arc<Shared>,
    caller: Caller,
    /// Cancelled when the server shuts down.
    closing: CancellationToken,
    /// Tells that the connection must be closed.
    ended: Ended,
    registered: Registered,
    statements: HashMap<String, Prepared>,
    portals: HashMap<String, Portal>,
    status: TransactionStatus,
    /// Changes of settings in the current transaction, in their order.
    changes: Vec<Change>,
    savepoints: Vec<Savepoint>,
    /// The client's text of the command in progress. The engine may plan another one for it.
    command_text: Option<String>,
    /// Set after an error in the extended protocol, until Sync.
    skipping: bool,
    /// Cancelled by a cancel request for the current message.
    cancelled: CancellationToken,
    /// End of the time of the current statement, if the client limits it.
    deadline: Option<Instant>,
}

impl Connection {
    pub(super) fn new(
        started: Started,
        shared: Arc<Shared>,
        caller: Caller,
        closing: CancellationToken,
        ended: Ended,
    ) -> Self {
        let Started { wire, session, settings } = started;
        let registered = Registered::new(Arc::clone(&shared));
        Self {
            wire,
            session,
            settings,
            shared,
            caller,
            closing,
            ended,
            registered,
            statements: HashMap::new(),
            portals: HashMap::new(),
            status: TransactionStatus::Idle,
            changes: Vec::new(),
            command_text: None,
            savepoints: Vec::new(),
            skipping: false,
            cancelled: CancellationToken::new(),
            deadline: None,
        }
    }

    /// Serves the client until it disconnects, or the server shuts down.
    pub(super) async fn serve(mut self) {
        if let Err(lost) = self.converse().await {
            end(&mut self.wire, lost).await;
        }
    }

    async fn converse(&mut self) -> Result<(), Lost> {
        dialect::register(&self.session.context);
        self.use_database().await?;
        self.begin_zone().await?;
        let path = self.settings.get("search_path").filter(|path| path != SCHEMA);
        if let Some(path) = path {
            self.use_path(Some(&path)).await.map_err(ended)?;
        }
        self.begin_engine().await.map_err(ended)?;
        self.shared.host.standing.log_in(self.caller.peer, &self.session.principal.name, self.session.is_proven());
        for (name, value) in self.settings.announcements() {
            self.wire.send(Reply::ParameterStatus(ParameterStatus::new(name, value))).await?;
        }
        let Registered { pid, secret, .. } = self.registered;
        self.wire.send(Reply::BackendKeyData(BackendKeyData::new(pid, SecretKey::I32(secret)))).await?;
        self.ready().await?;
        let most = self.shared.host.limits.statement_bytes.saturating_add(AROUND);
        loop {
            let message = tokio::select! {
                message = self.wire.next(most) => message?,
                reason = self.ended.wait() => return Err(closed(reason)),
                () = self.closing.cancelled(), if self.portals.values().all(|portal| portal.hold == Hold::Kept) => {
                    let line = "terminating connection: the server is shutting down";
                    return Err(Lost::Reported(Report::new(Severity::Fatal, "57P01", line)));
                }
            };
            let Some(message) = message else { return Ok(()) };
            if matches!(message, Message::Terminate) {
                return Ok(());
            }
            self.answer(message).await?;
        }
    }

    /// Makes the catalog that the client connected to the default of its session.
    async fn use_database(&mut self) -> Result<(), Lost> {
        if self.settings.database() == crate::catalog::CATALOG {
            return Ok(());
        }
        let set = format!("SET datafusion.catalog.default_catalog = {}", literal(self.settings.database()));
        let set = self.session.context.sql(&set).await;
        set.map(drop).map_err(|error| Lost::Reported(Report::new(Severity::Fatal, "3D000", describe(&error))))
    }

    /// Makes the time zone of the startup message that of the engine. Drivers send that of their machine: one that is not known
    /// here is told to be UTC.
    async fn begin_zone(&mut self) -> Result<(), Lost> {
        if self.settings.get("timezone").is_none_or(|zone| zone == "UTC") {
            return Ok(());
        }
        match self.use_zone().await {
            Ok(()) => {
                let zone = time_zone(&self.session.context);
                self.settings.begin_with("timezone", &zone).map_err(Lost::Reported)
            }
            Err(Stop::Lost(lost)) => Err(lost),
            Err(Stop::Failed(_)) => self.settings.begin_with("timezone", "UTC").map_err(Lost::Reported),
        }
    }

    /// Sets the settings of the engine's session that the startup message had.
    async fn begin_engine(&mut self) -> Result<(), Stop> {
        for (name, value) in self.settings.of_engine().to_vec() {
            self.set_in_engine(&name, Some(&value)).await?;
        }
        Ok(())
    }

    /// Answers one message.
    async fn answer(&mut self, message: Message) -> Result<(), Lost> {
        let simple = matches!(message, Message::Query(_));
        let kind = match message {
            Message::Query(_) => Some("PostgresQuery"),
            Message::Parse { .. } => Some("PostgresParse"),
            Message::Execute { .. } => Some("PostgresExecute"),
            _ => None,
        };
        if matches!(message, Message::Sync) {
            self.skipping = false;
            if self.status == TransactionStatus::Idle {
                // Portals last as long as the transaction.
                self.drop_portals();
            }
            return self.ready().await;
        }
        if self.skipping {
            return Ok(());
        }
        let host = Arc::clone(&self.shared.host);
        let _call = host.standing.call(self.caller.peer);
        let _busy = self.session.busy();
        self.cancelled = CancellationToken::new();
        self.registered.run(Some(self.cancelled.clone()));
        self.begin_time();
        let done = Box::pin(self.act(message)).await;
        self.registered.run(None);
        host.standing.log_in(self.caller.peer, &self.session.principal.name, self.session.is_proven());
        let code = match &done {
            Ok(()) => Code::Ok,
            Err(Stop::Failed(report)) => report.code,
            Err(Stop::Lost(_)) => Code::Cancelled,
        };
        if let Some(kind) = kind {
            host.metrics.called(kind.to_owned(), code.name());
        }
        match done {
            Ok(()) => {}
            Err(Stop::Lost(lost)) => return Err(lost),
            Err(Stop::Failed(report)) => {
                if self.status == TransactionStatus::Transaction {
                    self.status = TransactionStatus::Error;
                }
                self.drop_portals();
                self.wire.report(&report).await?;
                self.skipping = !simple;
                // A client may wait for it before it sends Sync.
                self.wire.flush().await?;
            }
        }
        if simple { self.ready().await } else { Ok(()) }
    }

    /// Drops the portals of the transaction.
    fn drop_portals(&mut self) {
        self.portals.retain(|_, portal| portal.hold == Hold::Kept);
    }

    async fn ready(&mut self) -> Result<(), Lost> {
        self.wire.send(Reply::ReadyForQuery(ReadyForQuery::new(self.status))).await?;
        self.wire.flush().await
    }

    /// Begins the time of a statement.
    fn begin_time(&mut self) {
        self.deadline = self.settings.statement_timeout().map(|limit| Instant::now() + limit);
    }

    /// Runs a portal, for at most so many rows; 0: all of them.
    async fn execute(&mut self, portal: &mut Portal, most: usize) -> Result<(), Stop> {
        match std::mem::replace(&mut portal.work, Work::Done) {
            Work::Empty => {
                portal.work = Work::Empty;
                Ok(self.wire.send(Reply::EmptyQueryResponse(EmptyQueryResponse::new())).await?)
            }
            Work::Command { command: Command::Fetch { cursor, rows, skip }, .. } => {
                self.fetch(cursor, rows, (!skip).then(|| portal.layout.clone())).await
            }
            Work::Command { command, sql } => {
                self.command_text = Some(sql);
                let done = Box::pin(self.command(command)).await;
                self.command_text = None;
                done
            }
            Work::Effect { statement, values } => {
                let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
                let applied = async move { effects::run(&host, &session, &statement, Some(vec![values])).await };
                let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
                self.in_time(host.away::<_, Failure>(&session, applied)).await?;
                self.complete(&portal.tag).await
            }
            Work::Query(pending) => {
                let running = self.start(&pending, most > 0)?;
                self.read(portal, running, most).await
            }
            Work::Rows(running) => self.read(portal, running, most).await,
            Work::Done if portal.tag == "SELECT" => self.complete("SELECT 0").await,
            Work::Done => self.complete(&portal.tag).await,
        }
    }

    /// Starts a query whose rows the client fetches `in_parts`, or all at once.
    fn start(&self, pending: &Arc<Pending>, in_parts: bool) -> Result<Box<Running>, Stop> {
        let query = pending.query();
        let (session, shared) = (Arc::clone(&self.session), Arc::clone(pending));
        let Reading { batches, memory } = match in_parts {
            true => shared.run_in_parts(session, &self.shared.host)?,
            false => shared.run(session, &self.shared.host)?,
        };
        let (pending, deadline) = (Arc::clone(pending), self.deadline);
        Ok(Box::new(Running { batches, memory, rest: None, pending, query, deadline }))
    }

    /// Sends rows of a running query until enough are sent, or all.
    async fn read(&mut self, portal: &mut Portal, running: Box<Running>, most: usize) -> Result<(), Stop> {
        let memory = Arc::clone(&running.memory);
        within(&memory, Box::pin(self.send_rows(portal, running, most))).await
    }

    async fn send_rows(&mut self, portal: &mut Portal, mut running: Box<Running>, most: usize) -> Result<(), Stop> {
        let mut sent = 0;
        loop {
            if let Some((rows, next)) = &mut running.rest {
                while *next < rows.len() && (most == 0 || sent < most) {
                    self.wire.send_row(rows, *next).await?;
                    *next += 1;
                    sent += 1;
                }
                if *next < rows.len() {
                    portal.work = Work::Rows(running);
                    return Ok(self.wire.send(Reply::PortalSuspended(PortalSuspended::new())).await?);
                }
            }
            running.rest = None;
            let Some(batch) = self.batch(&mut running).await? else { break };
            let rows = portal.layout.rows(&batch).map_err(|error| Report::error("22000", error.to_string()))?;
            running.rest = Some((rows, 0));
        }
        self.notices(running.query.take(), &running.pending).await?;
        let rows = if portal.tag == "SELECT" { format!("SELECT {sent}") } else { portal.tag.clone() };
        self.complete(&rows).await
    }

    /// The next batch of a running query.
    async fn batch(&mut self, running: &mut Running) -> Result<Option<RecordBatch>, Stop> {
        let far = Duration::from_secs(self.shared.host.limits.statement_seconds.saturating_add(60));
        let deadline = running.deadline.unwrap_or_else(|| Instant::now() + far);
        tokio::select! {
            batch = timeout_at(deadline, running.batches.next()) => match batch {
                Ok(batch) => Ok(batch.transpose()?),
                Err(_) => Err(timed_out().into()),
            },
            () = self.cancelled.cancelled() => Err(cancelled().into()),
            reason = self.ended.wait() => Err(closed(reason).into()),
            () = self.wire.gone() => Err(Lost::Gone.into()),
        }
    }

    /// Tells the default window that a query has read and what was noted while it ran, and what it cost if the client wants to
    /// know. A client may do without notices, but not without a warning of missing rows.
    async fn notices(&mut self, query: Option<String>, pending: &Pending) -> Result<(), Stop> {
        let Some(query) = query else { return Ok(()) };
        let notice = |line: String| Report::new(Severity::Notice, "00000", line);
        let window = window_note(&pending.windows()).map(notice);
        let noted = self.session.warnings(&query).into_iter().map(|warning| match warning.incomplete {
            true => Report::new(Severity::Warning, "01000", format!("incomplete result: {}", warning.message)),
            false => notice(warning.message.into()),
        });
        let told: Vec<Report> = window.into_iter().chain(noted).collect();
        for report in told.iter().filter(|told| told.severity != Severity::Notice || self.settings.tells_notices()) {
            self.wire.report(report).await?;
        }
        if self.settings.tells_costs() {
            let line = counted(pending.spent().requests, "request");
            self.wire.report(&Report::new(Severity::Info, "00000", line)).await?;
        }
        Ok(())
    }

    async fn complete(&mut self, tag: &str) -> Result<(), Stop> {
        Ok(self.wire.send(Reply::CommandComplete(CommandComplete::new(tag.to_owned()))).await?)
    }
}

/// The end of a connection that could not begin.
fn ended(stop: Stop) -> Lost {
    match stop {
        Stop::Lost(lost) => lost,
        Stop::Failed(report) => Lost::Reported(report.fatal()),
    }
}

fn cancelled() -> Report {
    Report::error("57014", "canceling statement due to user request")
}

fn timed_out() -> Report {
    Report::error("57014", "canceling statement due to statement timeout")
}

fn changed_type() -> Report {
    Report::error("0A000", "cached plan must not change result type")
}

fn unknown_statement(name: &str) -> Report {
    Report::error("26000", format!("prepared statement \"{name}\" does not exist"))
}

fn unknown_portal(name: &str) -> Report {
    Report::error("34000", format!("portal \"{name}\" does not exist"))
}

fn unknown_cursor(name: &str) -> Report {
    Report::error("34000", format!("cursor \"{name}\" does not exist"))
}

/// The result of SHOW.
fn shown(name: &str) -> SchemaRef {
    let names = if name == "all" { vec!["name", "setting", "description"] } else { vec![name] };
    Arc::new(Schema::new(names.into_iter().map(|name| Field::new(name, DataType::Utf8, true)).collect::<Vec<_>>()))
}
