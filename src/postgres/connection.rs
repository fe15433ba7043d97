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

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use futures::StreamExt;
use futures::stream::BoxStream;
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{BackendKeyData, ParameterStatus, SecretKey};
use postgres_types::Type;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::command::{Command, Copy, CopyFormat, parameter_count, split, words};
use super::dialect::Names;
use super::nested_arrays::refuse_nested_arrays;
use super::numbers::with_numeric;
use super::parameters::{arrow_type, decode};
use super::report::{Report, Severity};
use super::rows::{Copier, Layout, Rows};
use super::server::{Registered, Shared};
use super::settings::Settings;
use super::startup::{Started, crowded_out, end};
use super::types::{of_catalogs, parameter_type};
use super::wire::{Lost, Message, Wire};
use super::{catalog, dialect};
use crate::catalog::SCHEMA;
use crate::error::describe;
use crate::exec::Spent;
use crate::host::effects;
use crate::host::failure::{Code, Failure};
use crate::host::peer::Caller;
use crate::host::planner::{Statement, may_set};
use crate::host::running::{Pending, Reading};
use crate::host::sessions::Session;
use crate::host::shares::SessionMemory;
use crate::memory::{StatementMemory, within};
use crate::numbers::counted;
use crate::session::{check_text, time_zone};

/// Bytes that a message may have in addition to the statement in it.
const AROUND: usize = 1 << 20;
/// Portals of a connection.
const PORTALS: usize = 64;
/// The engine's setting of the time zone.
const ZONE: &str = "savedsearch.timezone";
/// The engine's name for it.
const ENGINE_ZONE: &str = "datafusion.execution.time_zone";

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
    /// Set once its types were sent to the client.
    described: bool,
    _held: Option<SessionMemory>,
}

/// A statement with its parameters, which runs in one go or in parts.
struct Portal {
    work: Work,
    layout: Layout,
    schema: SchemaRef,
    /// First word of the line that reports its end.
    tag: String,
    hold: Hold,
    /// Memory of its parameters.
    _held: Option<SessionMemory>,
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
    /// Done by the connection.
    Command(Command),
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
}

/// Estimated bytes of the columns of a result.
fn bytes_of_schema(schema: &Schema) -> usize {
    /// Bytes of a column besides its name.
    const COLUMN: usize = 256;
    schema.fields().iter().map(|field| COLUMN + field.name().len()).sum()
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
    /// Cancelled when the connection has to make room for others.
    ended: CancellationToken,
    registered: Registered,
    statements: HashMap<String, Prepared>,
    portals: HashMap<String, Portal>,
    status: TransactionStatus,
    /// Changes of settings in the current transaction, in their order.
    changes: Vec<Change>,
    savepoints: Vec<Savepoint>,
    /// Set after an error in the extended protocol, until Sync.
    skipping: bool,
    /// Cancelled by a cancel request for the current message.
    cancelled: CancellationToken,
}

impl Connection {
    pub(super) fn new(
        started: Started,
        shared: Arc<Shared>,
        caller: Caller,
        closing: CancellationToken,
        ended: CancellationToken,
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
            savepoints: Vec::new(),
            skipping: false,
            cancelled: CancellationToken::new(),
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
                () = self.ended.cancelled() => return Err(crowded_out()),
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
        let set =
            format!("SET datafusion.catalog.default_catalog = '{}'", self.settings.database().replace('\'', "''"));
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

    async fn act(&mut self, message: Message) -> Result<(), Stop> {
        match message {
            Message::Query(text) => {
                self.shared.host.allow_length(&text)?;
                let statements = self.on_text(text.clone(), |text| Ok(split(text))).await?;
                if statements.is_empty() {
                    self.wire.send(Reply::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
                }
                let mut at = 0;
                for sql in statements {
                    let begin = text[at..].find(&sql).map_or(at, |from| at + from);
                    at = if text[begin..].starts_with(&sql) { begin + sql.len() } else { begin };
                    let prepared = self.prepare(sql, Vec::new()).await;
                    let prepared = prepared.map_err(|stop| stop.behind(text[..begin].chars().count()))?;
                    if !prepared.parameters.is_empty() {
                        return Err(Report::error("42P02", "there is no parameter $1").into());
                    }
                    let mut portal = self.bind(&prepared, Vec::new(), &[]).await?;
                    if !portal.layout.is_empty() {
                        self.wire.send(Reply::RowDescription(portal.layout.description())).await?;
                    }
                    self.execute(&mut portal, 0).await?;
                }
                Ok(())
            }
            Message::Parse { name, sql, types } => self.parse(name, &sql, &types).await,
            Message::Bind { portal, statement, formats, values, results } => {
                let prepared = self.statements.remove(&statement).ok_or_else(|| unknown_statement(&statement))?;
                let bound = self.bind_values(&prepared, &formats, &values, &results).await;
                self.statements.insert(statement, prepared);
                let bound = bound?;
                if !portal.is_empty() && self.portals.contains_key(&portal) {
                    return Err(Report::error("42P03", format!("portal \"{portal}\" already exists")).into());
                }
                // The one without a name replaces another.
                if !portal.is_empty() && self.portals.len() >= PORTALS {
                    let line = format!("too many portals: the connection is limited to {PORTALS}; close some");
                    return Err(Report::error("53400", line).into());
                }
                self.portals.insert(portal, bound);
                Ok(self.wire.send(Reply::BindComplete(BindComplete::new())).await?)
            }
            Message::DescribeStatement(name) => {
                let prepared = self.statements.get_mut(&name).ok_or_else(|| unknown_statement(&name))?;
                prepared.described = true;
                let types = prepared.parameters.iter().map(Type::oid).collect();
                let layout = Layout::new(&prepared.schema, &[]);
                self.wire.send(Reply::ParameterDescription(ParameterDescription::new(types))).await?;
                self.describe(layout.as_ref()).await
            }
            Message::DescribePortal(name) => {
                let portal = self.portals.get(&name).ok_or_else(|| unknown_portal(&name))?;
                let layout = portal.layout.clone();
                self.describe(Some(&layout)).await
            }
            Message::Execute { portal: name, rows } => {
                let mut portal = self.portals.remove(&name).ok_or_else(|| unknown_portal(&name))?;
                self.execute(&mut portal, rows).await?;
                self.portals.insert(name, portal);
                Ok(())
            }
            Message::CloseStatement(name) => {
                self.statements.remove(&name);
                Ok(self.wire.send(Reply::CloseComplete(CloseComplete::new())).await?)
            }
            Message::ClosePortal(name) => {
                self.portals.remove(&name);
                Ok(self.wire.send(Reply::CloseComplete(CloseComplete::new())).await?)
            }
            Message::Flush => Ok(self.wire.flush().await?),
            Message::Password(_) => {
                Err(Lost::Reported(Report::new(Severity::Fatal, "08P01", "unexpected password")).into())
            }
            Message::Copy | Message::Sync | Message::Terminate => Ok(()),
        }
    }

    async fn describe(&mut self, layout: Option<&Layout>) -> Result<(), Stop> {
        let reply = match layout.filter(|layout| !layout.is_empty()) {
            Some(layout) => Reply::RowDescription(layout.description()),
            None => Reply::NoData(NoData::new()),
        };
        Ok(self.wire.send(reply).await?)
    }

    async fn parse(&mut self, name: String, sql: &str, types: &[u32]) -> Result<(), Stop> {
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(Report::error("42P05", format!("prepared statement \"{name}\" already exists")).into());
        }
        let most = self.shared.host.limits.statements;
        // The one without a name replaces another.
        if !name.is_empty() && self.statements.len() >= most {
            let line = format!("too many prepared statements: the session is limited to {most}; close some");
            return Err(Report::error("53400", line).into());
        }
        self.shared.host.allow_length(sql)?;
        let mut statements = self.on_text(sql.to_owned(), |text| Ok(split(text))).await?;
        if statements.len() > 1 {
            let line = "cannot insert multiple commands into a prepared statement";
            return Err(Report::error("42601", line).into());
        }
        let declared = types.iter().map(|oid| match oid {
            0 => Ok(None),
            oid => {
                let known = Type::from_oid(*oid);
                let known =
                    known.ok_or_else(|| Report::error("42704", format!("type with OID {oid} does not exist")))?;
                Ok(Some(known).filter(|known| *known != Type::UNKNOWN))
            }
        });
        let declared = declared.collect::<Result<Vec<_>, Report>>()?;
        let mut prepared = self.prepare(statements.pop().unwrap_or_default(), declared).await?;
        let bytes = sql.len() + name.len() + bytes_of_schema(&prepared.schema);
        prepared._held = Some(self.shared.host.hold(&self.session, "prepared statement", bytes)?);
        self.statements.insert(name, prepared);
        Ok(self.wire.send(Reply::ParseComplete(ParseComplete::new())).await?)
    }

    /// Plans a statement for its parameters and its result.
    async fn prepare(&mut self, sql: String, declared: Vec<Option<Type>>) -> Result<Prepared, Stop> {
        let read = |text: &str| check_text(text, &PostgreSqlDialect {}).map(|_| Command::of(text));
        let command = self.on_text(sql.clone(), read).await?;
        self.may_run(&command)?;
        let empty = || Arc::new(Schema::empty());
        let (schema, parameters) = match &command {
            _ if sql.is_empty() => (empty(), Vec::new()),
            Command::Statement => {
                let planned = self.plan(sql.clone(), declared.clone(), Vec::new()).await?;
                let found: Vec<Type> = match planned.context {
                    Some(_) => vec![Type::TEXT; parameter_count(&sql)],
                    None => {
                        let fields = planned.statement.parameters.fields().iter();
                        fields.map(|field| parameter_type(field.data_type())).collect()
                    }
                };
                let known = |number: usize| planned.types.get(&number).cloned();
                let parameters = (1..).zip(found).map(|(number, found)| known(number).unwrap_or(found)).collect();
                (Arc::clone(&planned.statement.schema), parameters)
            }
            Command::Show(name) if self.settings.get(name).is_some() || name == "all" => (shown(name), Vec::new()),
            Command::Fetch { cursor, skip: false, .. } => (self.schema_of(cursor), Vec::new()),
            Command::Show(name) => {
                let planned = self.plan(sql.clone(), Vec::new(), Vec::new()).await?;
                (value_alone(planned.statement, name)?.schema, Vec::new())
            }
            _ => (empty(), Vec::new()),
        };
        Ok(Prepared { sql, command, parameters, schema, described: false, _held: None })
    }

    /// Reads a text of statements: in the session's lane if it is long, since this thread serves other connections as well.
    async fn on_text<T: Send + 'static>(
        &mut self,
        text: String,
        read: impl FnOnce(&str) -> datafusion::error::Result<T> + Send + 'static,
    ) -> Result<T, Stop> {
        /// Bytes of a text that is read at once.
        const SHORT: usize = 16 << 10;
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        if text.len() <= SHORT {
            return Ok(read(&text).map_err(|error| session.failure(&error))?);
        }
        let own = Arc::clone(&session);
        let work = async move { read(&text).map_err(|error| own.failure(&error)) };
        self.unless_cancelled(host.away(&session, work)).await
    }

    /// In a failed transaction, only its end is accepted.
    fn may_run(&self, command: &Command) -> Result<(), Report> {
        let ends = matches!(command, Command::Commit | Command::Rollback | Command::RollbackTo(_));
        match self.status {
            TransactionStatus::Error if !ends => Err(Report::error(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            _ => Ok(()),
        }
    }

    /// Plans a statement, in the context that has its tables. `types` are declared ones of parameters, and `values` theirs
    /// if they are bound.
    async fn plan(&mut self, sql: String, types: Vec<Option<Type>>, values: Vec<ScalarValue>) -> Result<Planned, Stop> {
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        let names = Names {
            user: self.settings.user().to_owned(),
            database: self.settings.database().to_owned(),
            schema: self.session.context.state_ref().read().config_options().catalog.default_schema.clone(),
            zone: self.settings.get("timezone").unwrap_or_default(),
            started: self.shared.started,
            constants: HashMap::new(),
        };
        let all = self.settings.all();
        tracing::debug!(principal = %session.principal.name, sql = session.redact(&sql), "statement");
        let planned = async move {
            let failed = |error| session.failure(&error);
            let mut parsed = match dialect::parsed(&sql) {
                Ok(parsed) => parsed,
                Err(error) => return Err(session.failure_in(&error, &sql).await),
            };
            let calls = match catalog::meant(&parsed) {
                Ok(catalog::Meant::Service { calls }) => calls,
                Ok(catalog::Meant::Catalogs) => {
                    let types = dialect::parameter_types(&mut parsed, &types);
                    let parsed = catalog::rewritten(parsed, &names, &values).map_err(failed)?;
                    let context = catalog::context(&session, &names, &all, &parsed).await.map_err(failed)?;
                    let statement = Statement::of_parsed(&context, parsed, &[], Ok).await.map_err(failed)?;
                    let schema = of_catalogs(&statement.schema);
                    let statement = Statement { schema, ..statement };
                    return Ok(Ok(Planned { statement, context: Some(context), types }));
                }
                Err(report) => return Ok(Err(report)),
            };
            let mut names = names;
            if !calls.is_empty() {
                names.constants = catalog::constants(&session, &names, &all, calls).await.map_err(failed)?;
            }
            let (parsed, types) = match dialect::translated(parsed, &names, &types, &values) {
                Ok(translated) => translated,
                Err(report) => return Ok(Err(report)),
            };
            let known = (1..=types.keys().max().copied().unwrap_or(0)).map(|number| types.get(&number));
            let known: Vec<_> = known.map(|known| known.and_then(arrow_type)).collect();
            let in_postgres = |plan| {
                refuse_nested_arrays(&plan)?;
                with_numeric(plan)
            };
            let statement = host.statement_of(&session, &sql, parsed, &known, in_postgres).await?;
            Ok(Ok(Planned { statement, context: None, types }))
        };
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        let limit = self.settings.statement_timeout().unwrap_or(Duration::MAX);
        let planned = self.unless_cancelled(host.away::<Result<Planned, Report>, Failure>(&session, planned));
        Ok(timeout(limit, planned).await.map_err(|_| timed_out())???)
    }

    /// Waits for work of a statement, unless it is cancelled or the client disconnects.
    async fn unless_cancelled<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Stop> {
        tokio::select! {
            done = work => Ok(done?),
            () = self.cancelled.cancelled() => Err(cancelled().into()),
            () = self.wire.gone() => Err(Lost::Gone.into()),
        }
    }

    async fn bind_values(
        &mut self,
        prepared: &Prepared,
        formats: &[i16],
        values: &[Option<Bytes>],
        results: &[i16],
    ) -> Result<Portal, Stop> {
        let (needs, has) = (prepared.parameters.len(), values.len());
        if needs != has {
            let line = format!("bind message supplies {has} parameters, but the statement requires {needs}");
            return Err(Report::error("08P01", line).into());
        }
        let zone = self.settings.get("timezone").unwrap_or_default();
        let binary = |at: usize| match formats {
            [] => Some(false),
            [one] => Some(*one == 1),
            each if each.len() == has => Some(each[at] == 1),
            _ => None,
        };
        let wrong = || Report::error("08P01", "bind message has a wrong number of parameter formats");
        let mut bound = Vec::new();
        for (at, (value, postgres)) in values.iter().zip(&prepared.parameters).enumerate() {
            bound.push(decode(value.as_ref(), binary(at).ok_or_else(wrong)?, postgres, at + 1, &zone)?);
        }
        let bytes = values.iter().flatten().map(Bytes::len).sum();
        let held = self.shared.host.hold(&self.session, "bound parameters", bytes)?;
        let portal = self.bind(prepared, bound, results).await?;
        // Tables may have changed since, and the types of parameters may decide.
        let told = Layout::new(&prepared.schema, &[]).filter(|_| prepared.described);
        if told.is_some_and(|told| !told.fits(&portal.layout)) {
            return Err(changed_type().into());
        }
        Ok(Portal { _held: Some(held), ..portal })
    }

    async fn bind(&mut self, prepared: &Prepared, values: Vec<ScalarValue>, formats: &[i16]) -> Result<Portal, Stop> {
        let Prepared { sql, command, .. } = prepared;
        self.may_run(command)?;
        let engine = match command {
            _ if sql.is_empty() => None,
            Command::Statement => Some(()),
            Command::Show(name) if self.settings.get(name).is_none() && name != "all" => Some(()),
            _ => None,
        };
        let (work, schema) = match engine {
            None if sql.is_empty() => (Work::Empty, Arc::new(Schema::empty())),
            None if let Command::Fetch { cursor, skip: false, .. } = command => {
                (Work::Command(command.clone()), self.schema_of(cursor))
            }
            None => (Work::Command(command.clone()), Arc::clone(&prepared.schema)),
            Some(()) => {
                let types = prepared.parameters.iter().cloned().map(Some).collect();
                // Again, since tables and settings of the session may have changed.
                let Planned { statement, context, .. } = self.plan(sql.clone(), types, values.clone()).await?;
                let statement = match command {
                    Command::Show(name) => value_alone(statement, name)?,
                    _ => statement,
                };
                // Those of a statement about catalogs are in its text now.
                let values = if context.is_some() { Vec::new() } else { values };
                if statement.effect {
                    (Work::Effect { statement: Box::new(statement), values }, Arc::new(Schema::empty()))
                } else {
                    let catalogs = context.is_some();
                    let pending = self.pending(statement, context, values).await?;
                    let schema = if catalogs { of_catalogs(&pending.schema) } else { Arc::clone(&pending.schema) };
                    (Work::Query(Arc::new(pending)), schema)
                }
            }
        };
        let layout = Layout::new(&schema, formats).ok_or_else(|| {
            let (has, needs) = (formats.len(), schema.fields().len());
            Report::error("08P01", format!("bind message has {has} result formats but query has {needs} columns"))
        })?;
        Ok(Portal { work, layout, schema, tag: tag(sql), hold: Hold::Transaction, _held: None })
    }

    /// Schema of the rows of a cursor; empty if there is none of this name.
    fn schema_of(&self, cursor: &str) -> SchemaRef {
        self.portals.get(cursor).map_or_else(|| Arc::new(Schema::empty()), |portal| Arc::clone(&portal.schema))
    }

    async fn pending(
        &mut self,
        statement: Statement,
        context: Option<SessionContext>,
        values: Vec<ScalarValue>,
    ) -> Result<Pending, Stop> {
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        let planned = async move {
            let context = context.unwrap_or_else(|| session.context.clone());
            Pending::plan_in(context, &host, &session, &statement, vec![values]).await
        };
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        self.unless_cancelled(host.away::<_, Failure>(&session, planned)).await
    }

    /// Runs a portal, for at most so many rows; 0: all of them.
    async fn execute(&mut self, portal: &mut Portal, most: usize) -> Result<(), Stop> {
        match std::mem::replace(&mut portal.work, Work::Done) {
            Work::Empty => {
                portal.work = Work::Empty;
                Ok(self.wire.send(Reply::EmptyQueryResponse(EmptyQueryResponse::new())).await?)
            }
            Work::Command(Command::Fetch { cursor, rows, skip }) => {
                self.fetch(cursor, rows, (!skip).then(|| portal.layout.clone())).await
            }
            Work::Command(command) => Box::pin(self.command(command)).await,
            Work::Effect { statement, values } => {
                let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
                let applied = async move { effects::run(&host, &session, &statement, Some(vec![values])).await };
                let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
                let limit = self.settings.statement_timeout().unwrap_or(Duration::MAX);
                let applied = self.unless_cancelled(host.away::<_, Failure>(&session, applied));
                timeout(limit, applied).await.map_err(|_| timed_out())??;
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
        let deadline = self.settings.statement_timeout().map(|limit| Instant::now() + limit);
        Ok(Box::new(Running { batches, memory, rest: None, pending: Arc::clone(pending), query, deadline }))
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
        self.notices(running.query.take(), running.pending.spent()).await?;
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
            () = self.wire.gone() => Err(Lost::Gone.into()),
        }
    }

    /// Tells what was noted while a query ran, and what it cost if the client wants to know.
    async fn notices(&mut self, query: Option<String>, spent: Spent) -> Result<(), Stop> {
        let Some(query) = query else { return Ok(()) };
        for warning in self.session.warnings(&query) {
            let message = self.session.redact(&warning.message);
            let report = match warning.incomplete {
                true => Report::new(Severity::Warning, "01000", format!("incomplete result: {message}")),
                false => Report::new(Severity::Notice, "00000", message),
            };
            self.wire.report(&report).await?;
        }
        if self.settings.tells_costs() {
            let line = counted(spent.requests, "request");
            self.wire.report(&Report::new(Severity::Info, "00000", line)).await?;
        }
        Ok(())
    }

    async fn complete(&mut self, tag: &str) -> Result<(), Stop> {
        Ok(self.wire.send(Reply::CommandComplete(CommandComplete::new(tag.to_owned()))).await?)
    }

    /// Does what is not for the engine.
    async fn command(&mut self, command: Command) -> Result<(), Stop> {
        match command {
            Command::Begin => {
                if self.status == TransactionStatus::Transaction {
                    self.warn("25001", "there is already a transaction in progress").await?;
                }
                self.status = TransactionStatus::Transaction;
                self.complete("BEGIN").await
            }
            Command::Commit | Command::Rollback => {
                if self.status == TransactionStatus::Idle {
                    self.warn("25P01", "there is no transaction in progress").await?;
                }
                let failed = self.status == TransactionStatus::Error;
                self.status = TransactionStatus::Idle;
                self.savepoints.clear();
                let commits = matches!(command, Command::Commit) && !failed;
                for portal in self.portals.values_mut().filter(|portal| commits && portal.hold == Hold::Declared) {
                    portal.hold = Hold::Kept;
                }
                self.drop_portals();
                self.undo(commits).await?;
                self.complete(if commits { "COMMIT" } else { "ROLLBACK" }).await
            }
            Command::Savepoint(name) => {
                self.check_in_transaction("SAVEPOINT")?;
                let local: Vec<bool> = self.changes.iter().map(|change| change.local).collect();
                let bytes = size_of::<Savepoint>() + name.len() + local.len();
                let held = self.shared.host.hold(&self.session, "savepoint", bytes)?;
                self.savepoints.push(Savepoint { name, local, _held: held });
                self.complete("SAVEPOINT").await
            }
            Command::Release(name) => {
                self.check_in_transaction("RELEASE SAVEPOINT")?;
                let at = self.savepoint(&name)?;
                self.savepoints.truncate(at);
                self.complete("RELEASE").await
            }
            Command::RollbackTo(name) => {
                self.check_in_transaction("ROLLBACK TO SAVEPOINT")?;
                let at = self.savepoint(&name)?;
                // The savepoint stays.
                self.savepoints.truncate(at + 1);
                let before = self.savepoints[at].local.clone();
                let later = self.changes.split_off(before.len().min(self.changes.len()));
                self.changes.iter_mut().zip(before).for_each(|(change, local)| change.local = local);
                for Change { name, before, .. } in later.into_iter().rev() {
                    self.set(&name, before.as_deref()).await?;
                }
                self.status = TransactionStatus::Transaction;
                self.complete("ROLLBACK").await
            }
            Command::Nothing(tag) => self.complete(tag).await,
            Command::Set { name, value, local } => {
                if local && self.status == TransactionStatus::Idle {
                    self.warn("25P01", "SET LOCAL can only be used in transaction blocks").await?;
                } else {
                    let change = self.change(&name, local)?;
                    self.set(&name, value.as_deref()).await?;
                    self.note(change);
                }
                self.complete("SET").await
            }
            Command::Reset(name) => {
                match name {
                    Some(name) => {
                        let change = self.change(&name, false)?;
                        self.set(&name, None).await?;
                        self.note(change);
                    }
                    None => self.reset().await?,
                }
                self.complete("RESET").await
            }
            Command::Show(name) => self.show(&name).await,
            Command::Copy(copy) => self.copy(copy).await,
            Command::Declare { cursor, sql, hold } => {
                let alone = self.status == TransactionStatus::Idle;
                if alone && !hold {
                    let line = "DECLARE CURSOR can only be used in transaction blocks";
                    return Err(Report::error("25P01", line).into());
                }
                if self.portals.contains_key(&cursor) {
                    return Err(Report::error("42P03", format!("cursor \"{cursor}\" already exists")).into());
                }
                if self.portals.len() >= PORTALS {
                    let line = format!("too many cursors: the connection is limited to {PORTALS}; close some");
                    return Err(Report::error("53400", line).into());
                }
                let prepared = self.prepare(sql, Vec::new()).await?;
                if !matches!(prepared.command, Command::Statement) || !prepared.parameters.is_empty() {
                    return Err(Report::error("42601", "DECLARE CURSOR does not support parameters").into());
                }
                let portal = self.bind(&prepared, Vec::new(), &[]).await?;
                let hold = match hold {
                    true if alone => Hold::Kept,
                    true => Hold::Declared,
                    false => Hold::Transaction,
                };
                self.portals.insert(cursor, Portal { hold, ..portal });
                self.complete("DECLARE CURSOR").await
            }
            Command::CloseCursor(cursor) => {
                match cursor {
                    Some(cursor) => {
                        self.portals.remove(&cursor).ok_or_else(|| unknown_cursor(&cursor))?;
                    }
                    None => self.portals.clear(),
                }
                self.complete("CLOSE CURSOR").await
            }
            Command::Deallocate(name) => {
                let tag = match name {
                    Some(name) => {
                        self.statements.remove(&name).ok_or_else(|| unknown_statement(&name))?;
                        "DEALLOCATE"
                    }
                    None => {
                        self.statements.clear();
                        "DEALLOCATE ALL"
                    }
                };
                self.complete(tag).await
            }
            Command::DiscardAll => {
                self.statements.clear();
                self.portals.clear();
                self.discard().await?;
                self.reset().await?;
                self.complete("DISCARD ALL").await
            }
            Command::DiscardTemporary => {
                self.discard().await?;
                self.complete("DISCARD TEMP").await
            }
            Command::Refused(line) => Err(Report::error("0A000", line).into()),
            Command::Malformed(line) => Err(Report::error("42601", line).into()),
            // Planned or read, and not a command.
            Command::Statement | Command::Fetch { .. } => Ok(()),
        }
    }

    /// Drops the temporary tables of the session.
    async fn discard(&mut self) -> Result<(), Stop> {
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        let discarded = async move { effects::discard(&session).await };
        let session = Arc::clone(&self.session);
        self.unless_cancelled(host.away_to_free::<_, Failure>(&session, discarded)).await
    }

    fn check_in_transaction(&self, what: &str) -> Result<(), Stop> {
        match self.status {
            TransactionStatus::Idle => {
                Err(Report::error("25P01", format!("{what} can only be used in transaction blocks")).into())
            }
            _ => Ok(()),
        }
    }

    /// Place of the last savepoint of a name.
    fn savepoint(&self, name: &str) -> Result<usize, Stop> {
        let at = self.savepoints.iter().rposition(|savepoint| savepoint.name == name);
        at.ok_or_else(|| Report::error("3B001", format!("savepoint \"{name}\" does not exist")).into())
    }

    async fn warn(&mut self, sqlstate: &'static str, line: &str) -> Result<(), Stop> {
        Ok(self.wire.report(&Report::new(Severity::Warning, sqlstate, line)).await?)
    }

    /// Changes a setting of the connection, or of the engine's session; `None` restores its default.
    async fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Stop> {
        let name = if [ZONE, ENGINE_ZONE].contains(&name) { "timezone" } else { name };
        if may_set(name) {
            return self.set_in_engine(name, value).await;
        }
        let mut value = value.map(str::to_owned);
        if name == "timezone" && value.is_some() {
            self.set_in_engine(ZONE, value.as_deref()).await?;
            value = Some(time_zone(&self.session.context));
        }
        if name.eq_ignore_ascii_case("search_path") {
            self.use_path(value.as_deref()).await?;
        }
        if let Some((name, value)) = self.settings.set(name, value.as_deref())? {
            self.wire.send(Reply::ParameterStatus(ParameterStatus::new(name, value))).await?;
        }
        if name == "timezone" && value.is_none() { self.use_zone().await } else { Ok(()) }
    }

    /// A change of a setting that is about to be made in a transaction.
    ///
    /// # Errors
    /// 53200 if its former value does not fit into the user's share of the memory.
    fn change(&self, name: &str, local: bool) -> Result<Option<Change>, Stop> {
        if self.status == TransactionStatus::Idle {
            return Ok(None);
        }
        let before = match may_set(name) {
            true => {
                let state = self.session.context.state_ref();
                let entries = state.read().config_options().entries();
                let Some(entry) = entries.into_iter().find(|entry| entry.key == name) else { return Ok(None) };
                entry.value
            }
            false => self.settings.get(name),
        };
        let bytes = size_of::<Change>() + name.len() + before.as_ref().map_or(0, String::len);
        let held = self.shared.host.hold(&self.session, "setting of a transaction", bytes)?;
        Ok(Some(Change { name: name.to_owned(), before, local, _held: held }))
    }

    /// Notes a change that was made.
    fn note(&mut self, change: Option<Change>) {
        let Some(change) = change else { return };
        if !change.local {
            // The new value outlives the transaction.
            let same = self.changes.iter_mut().filter(|known| known.name == change.name);
            same.for_each(|known| known.local = false);
        }
        self.changes.push(change);
    }

    /// Undoes the changes of settings that end with the transaction, the last one first.
    async fn undo(&mut self, commits: bool) -> Result<(), Stop> {
        for Change { name, before, local, .. } in std::mem::take(&mut self.changes).into_iter().rev() {
            if local || !commits {
                self.set(&name, before.as_deref()).await?;
            }
        }
        Ok(())
    }

    async fn set_in_engine(&mut self, name: &str, value: Option<&str>) -> Result<(), Stop> {
        // RESET restores the value of the startup message.
        let first = self.settings.of_engine().iter().rev().find(|(known, _)| known == name);
        let first = first.map(|(_, value)| value.clone());
        let value = value.or(first.as_deref());
        let sql = match value {
            Some(value) => format!("SET {name} = '{}'", value.replace('\'', "''")),
            None => format!("RESET {name}"),
        };
        let Planned { statement, .. } = self.plan(sql, Vec::new(), Vec::new()).await?;
        Ok(effects::run(&self.shared.host, &self.session, &statement, None).await?)
    }

    /// Makes the connection's time zone that of the engine.
    async fn use_zone(&mut self) -> Result<(), Stop> {
        let zone = self.settings.get("timezone").filter(|zone| zone != "UTC");
        self.set_in_engine(ZONE, zone.as_deref()).await
    }

    /// Makes the first schema of a search path that exists the one of names without a schema. If a part has no effect, the
    /// client gets a warning.
    async fn use_path(&mut self, path: Option<&str>) -> Result<(), Stop> {
        let first = self.settings.first_value("search_path");
        let path = path.or(first.as_deref()).unwrap_or(SCHEMA);
        let catalog = self.session.context.catalog(self.settings.database());
        let known = catalog.map(|catalog| catalog.schema_names()).unwrap_or_default();
        let names = path.split(',').map(|name| name.trim().trim_matches(['"', '\'']).to_owned());
        let (found, missing): (Vec<String>, Vec<String>) = names
            .filter(|name| !["", "$user", "pg_catalog", "information_schema"].contains(&name.as_str()))
            .partition(|name| known.contains(name));
        let schema = found.first().map_or(SCHEMA, String::as_str);
        let without_effect: Vec<&str> = missing.iter().chain(found.iter().skip(1)).map(String::as_str).collect();
        let set = format!("SET datafusion.catalog.default_schema = '{}'", schema.replace('\'', "''"));
        let set = self.session.context.sql(&set).await;
        set.map_err(|error| Report::error("3F000", describe(&error)))?;
        if !without_effect.is_empty() {
            let line = format!(
                "search_path: {} has no effect; names without a schema are those of {schema}",
                without_effect.join(", ")
            );
            self.warn("01000", &line).await?;
        }
        Ok(())
    }

    async fn reset(&mut self) -> Result<(), Stop> {
        for (name, value) in self.settings.reset() {
            self.wire.send(Reply::ParameterStatus(ParameterStatus::new(name, value))).await?;
        }
        effects::reset_settings(&self.session)?;
        self.use_path(None).await?;
        self.changes.clear();
        self.begin_engine().await?;
        self.use_zone().await
    }

    async fn show(&mut self, name: &str) -> Result<(), Stop> {
        let all = match name {
            "all" => self.settings.all(),
            name => vec![(name.to_owned(), self.settings.get(name).unwrap_or_default())],
        };
        let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let schema = shown(name);
        let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as _;
        let columns = match name {
            "all" => vec![texts(names.clone()), texts(values), texts(vec![String::new(); names.len()])],
            _ => vec![texts(values)],
        };
        let failed = |error: arrow::error::ArrowError| Report::error("XX000", error.to_string());
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(failed)?;
        if let Some(layout) = Layout::new(&schema, &[]) {
            let rows = layout.rows(&batch).map_err(failed)?;
            for row in 0..rows.len() {
                self.wire.send_row(&rows, row).await?;
            }
        }
        self.complete("SHOW").await
    }

    async fn copy(&mut self, copy: Copy) -> Result<(), Stop> {
        let Planned { statement, context, .. } = self.plan(copy.sql.clone(), Vec::new(), Vec::new()).await?;
        if statement.effect || !statement.parameters.fields().is_empty() {
            return Err(Report::error("42601", "COPY does not support parameters").into());
        }
        let pending = Arc::new(self.pending(statement, context, Vec::new()).await?);
        // A client that reads a table in this way, such as DuckDB, compares the column itself, and shows no notice.
        if copy.format == CopyFormat::Binary
            && let Some(time) =
                pending.windows().into_iter().filter(|window| window.default).find_map(|window| window.time)
            && pending.schema.column_with_name(&time).is_some()
        {
            let line = format!(
                "no condition on {time} arrived, so that only the default window would be copied; compare {time} itself with \
                 instants, since the client may not send conditions on functions of it"
            );
            return Err(Report::error("0A000", line).into());
        }
        let copier = Copier::new(&pending.schema, copy).ok_or_else(|| Report::error("XX000", "no layout"))?;
        let running = self.start(&pending, false)?;
        let memory = Arc::clone(&running.memory);
        within(&memory, Box::pin(self.copy_rows(running, &copier))).await
    }

    async fn copy_rows(&mut self, mut running: Box<Running>, copier: &Copier) -> Result<(), Stop> {
        let (code, columns) = (copier.code(), copier.columns());
        let count = i16::try_from(columns).unwrap_or(i16::MAX);
        let response = CopyOutResponse::new(i8::try_from(code).unwrap_or(0), count, vec![code; columns]);
        self.wire.send(Reply::CopyOutResponse(response)).await?;
        let mut head = copier.head();
        let mut sent = 0_u64;
        while let Some(batch) = self.batch(&mut running).await? {
            let rows = copier.rows(&batch).map_err(|error| Report::error("22000", error.to_string()))?;
            for row in rows {
                // What comes before the rows is in one message with the first one.
                let row = if head.is_empty() { row } else { [std::mem::take(&mut head), row].concat().into() };
                self.wire.send(Reply::CopyData(CopyData::new(row))).await?;
                sent += 1;
            }
        }
        for rest in [head, copier.tail()] {
            if !rest.is_empty() {
                self.wire.send(Reply::CopyData(CopyData::new(rest))).await?;
            }
        }
        self.wire.send(Reply::CopyDone(CopyDone::new())).await?;
        self.notices(running.query.take(), running.pending.spent()).await?;
        self.complete(&format!("COPY {sent}")).await
    }

    /// Sends the next rows of a cursor in a layout, or skips them without one; 0: all that are left.
    async fn fetch(&mut self, cursor: String, most: usize, layout: Option<Layout>) -> Result<(), Stop> {
        let mut portal = self.portals.remove(&cursor).ok_or_else(|| unknown_cursor(&cursor))?;
        if layout.as_ref().is_some_and(|layout| !layout.fits(&portal.layout)) {
            return Err(changed_type().into());
        }
        let mut running = match std::mem::replace(&mut portal.work, Work::Done) {
            Work::Query(pending) => Some(self.start(&pending, most > 0)?),
            Work::Rows(running) => Some(running),
            _ => None,
        };
        if let (Some(Running { rest: Some((rows, _)), .. }), Some(layout)) = (running.as_deref_mut(), &layout) {
            rows.encode_as(layout);
        }
        let memory = running.as_ref().map_or_else(Arc::default, |running| Arc::clone(&running.memory));
        let fetched = self.fetch_rows(&mut running, most, &portal.layout, layout.as_ref());
        let sent = within(&memory, Box::pin(fetched)).await?;
        portal.work = running.map_or(Work::Done, Work::Rows);
        self.portals.insert(cursor, portal);
        self.complete(&format!("{} {sent}", if layout.is_some() { "FETCH" } else { "MOVE" })).await
    }

    /// Sends rows of a running query in a layout, or skips them without one. Returns their number; `running` is `None` after the
    /// last one.
    async fn fetch_rows(
        &mut self,
        running: &mut Option<Box<Running>>,
        most: usize,
        own: &Layout,
        layout: Option<&Layout>,
    ) -> Result<usize, Stop> {
        let mut sent = 0;
        while let Some(current) = running {
            if most > 0 && sent == most {
                break;
            }
            match &mut current.rest {
                Some((rows, next)) if *next < rows.len() => {
                    if layout.is_some() {
                        self.wire.send_row(rows, *next).await?;
                    }
                    *next += 1;
                    sent += 1;
                }
                _ => match self.batch(current).await? {
                    Some(batch) => {
                        let rows = layout.unwrap_or(own).rows(&batch);
                        let rows = rows.map_err(|error| Report::error("22000", error.to_string()))?;
                        current.rest = Some((rows, 0));
                    }
                    None => {
                        self.notices(current.query.take(), current.pending.spent()).await?;
                        *running = None;
                    }
                },
            }
        }
        Ok(sent)
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

/// SHOW of one setting of the engine or of the session returns the value alone, in a column named like the setting, as
/// in PostgreSQL. Other statements, such as SHOW TABLES, stay as they are.
fn value_alone(statement: Statement, setting: &str) -> Result<Statement, Report> {
    let columns = statement.schema.fields().iter().map(|field| field.name().as_str());
    if !columns.eq(["name", "value"]) {
        return Ok(statement);
    }
    let value = Expr::from(statement.plan.schema().qualified_field(1)).alias(setting);
    let plan = LogicalPlanBuilder::from(statement.plan).project([value]).and_then(LogicalPlanBuilder::build);
    let plan = plan.map_err(|error| Report::error("XX000", describe(&error)))?;
    Ok(Statement { plan, schema: shown(setting), ..statement })
}

/// Tag that reports the end of a statement to a client, without the number of rows.
fn tag(sql: &str) -> String {
    let mut words = words(sql).into_iter().map(|word| word.to_uppercase());
    let first = words.next().unwrap_or_default();
    match first.as_str() {
        "EXPLAIN" | "SHOW" | "SET" | "RESET" => first,
        "DESCRIBE" | "DESC" => "SHOW".to_owned(),
        "CREATE" | "DROP" => {
            let what = words.find(|word| matches!(word.as_str(), "TABLE" | "VIEW"));
            format!("{first} {}", what.unwrap_or_default())
        }
        _ => "SELECT".to_owned(),
    }
}
