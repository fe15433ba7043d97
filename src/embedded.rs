//! Statements in the process of their client: what a driver needs beside its own protocol.
//!
//! ```text
//! text ─prepare▶ Prepared ─run, with parameters▶ Rows (schema, batches as the pages arrive)
//!                        └─estimate▶ the cost, without a request
//! ```
//!
//! Statements are those of the servers: queries, settings, views and temporary tables. Memory and time are the program's own, so only
//! the settings of the session limit them.
//!
//! Invariants: dropping [`Rows`] ends the requests of its query. The setting `max_requests` holds for all parameter sets of a run
//! together: sets that are known to need more are refused before the first request.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ScalarValue, TableReference};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{CreateMemoryTable, DdlStatement, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::client::{Client, QueryBudget, QuerySpan, SentBefore};
use crate::config::SessionSettings;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, one_line};
use crate::exec::{least_requests, notes, spent, start, statement_kind, windows};
pub use crate::flight::metadata::{TABLE, TEMPORARY, VIEW, kind_named};
use crate::flight::metadata::{key, kind};
use crate::flight::parameters::{plain, without_extensions};
pub use crate::host::failure::{Code, Failure};
use crate::host::failure::{KeyOwner, Origin};
use crate::host::planner::{self, Runnable, Statement, check_setting};
use crate::host::running::gather;
use crate::host::temporary::for_each;
use crate::host::type_compat::{result_schema, sent_batch, table_schema};
use crate::session::{PlanningTurn, follow_time_zone, refuse_writes, session_of, syntax};
use crate::shell::{ChartOptions, chart_svg};
use crate::table::ApiTable;
use crate::wording::{estimate_all, window_note};

/// Batches that wait for the reader: the next one is read while the last one is processed.
const AHEAD: usize = 2;

/// A session, with settings, views and temporary tables of its own.
pub struct Session {
    context: SessionContext,
    connections: Vec<Arc<Connection>>,
}

/// A planned statement.
#[derive(Debug)]
pub struct Prepared(Statement);

/// A table as metadata calls describe it.
#[derive(Debug, Clone)]
pub struct TableInfo {
    /// Catalog: the name of a connection.
    pub catalog: String,
    /// Schema within the catalog.
    pub schema: String,
    /// Name.
    pub name: String,
    /// [`TABLE`], [`VIEW`] or [`TEMPORARY`].
    pub kind: &'static str,
    /// Columns, with the types that results have.
    pub columns: SchemaRef,
    /// Columns that identify a row; empty if none are known to.
    pub key: Vec<String>,
}

/// The rows of a statement, as they arrive.
pub struct Rows {
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch, Failure>>,
    /// Ends the query when it is dropped.
    _reading: Option<AbortOnDropHandle<()>>,
}

/// Cost of a statement, while it runs and after its rows are gone.
#[derive(Clone)]
pub struct Account {
    queries: Arc<Mutex<Queries>>,
    connections: Vec<Arc<Connection>>,
}

/// Queries by the name that they have in the log, with their plans.
type Queries = Vec<(String, Arc<dyn ExecutionPlan>)>;

impl Session {
    /// Creates a session over the tables of `connection`, with `named` ones as further catalogs. No request is sent.
    ///
    /// # Errors
    /// None in practice: errors of registering tables.
    pub fn open(connection: &Arc<Connection>, named: &[(String, Arc<Connection>)]) -> Result<Self, Failure> {
        let clients = || [connection].into_iter().chain(named.iter().map(|(_, other)| other)).map(|of| of.client());
        let failed =
            |error: DataFusionError| Failure::of(&error, KeyOwner::Client, |text| Client::redact_all(clients(), text));
        let context = session_of(connection, named).map_err(failed)?;
        // Lets errors name their place in the statement.
        context.state_ref().write().config_mut().options_mut().sql_parser.collect_spans = true;
        let mut connections = vec![Arc::clone(connection)];
        connections
            .extend(named.iter().map(|(_, other)| other).filter(|other| !Arc::ptr_eq(other, connection)).cloned());
        Ok(Self { context, connections })
    }

    /// Changes a setting, such as `savedsearch.max_requests`.
    ///
    /// # Errors
    /// An unknown setting or an invalid value.
    pub async fn set(&self, name: &str, value: &str) -> Result<(), Failure> {
        check_setting(name, value).map_err(|error| self.failure(&error))?;
        let set = self.context.state_ref().write().config_mut().options_mut().set(name, value);
        set.map_err(|error| self.failure(&error))?;
        if name == "savedsearch.timezone" {
            follow_time_zone(&self.context).await.map_err(|error| self.failure(&error))?;
        }
        Ok(())
    }

    /// Value of a setting as text; `None` if there is no such setting.
    pub fn setting(&self, name: &str) -> Option<String> {
        let entries = self.context.state_ref().read().config_options().entries();
        entries.into_iter().find(|entry| entry.key == name)?.value
    }

    /// Names of the session settings.
    pub fn settings() -> Vec<String> {
        use datafusion::common::config::ExtensionOptions;
        SessionSettings::default().entries().into_iter().map(|entry| entry.key).collect()
    }

    /// True if the name is that of a session setting.
    pub fn is_setting(name: &str) -> bool {
        Self::settings().iter().any(|known| known == name)
    }

    /// Makes a catalog that of names without one.
    ///
    /// # Errors
    /// An unknown catalog.
    pub fn use_catalog(&self, name: &str) -> Result<(), Failure> {
        let known = self.schemas().into_iter().map(|(catalog, _)| catalog);
        let name = known_name("catalog", name, &known.collect::<Vec<_>>())?;
        self.context.state_ref().write().config_mut().options_mut().catalog.default_catalog = name;
        Ok(())
    }

    /// Makes a schema of the current catalog that of names without one.
    ///
    /// # Errors
    /// An unknown schema.
    pub fn use_schema(&self, name: &str) -> Result<(), Failure> {
        let (current, _) = self.current();
        let mut catalogs = self.schemas().into_iter();
        let known = catalogs.find(|(catalog, _)| *catalog == current).map(|(_, schemas)| schemas);
        let name = known_name("schema", name, &known.unwrap_or_default())?;
        self.context.state_ref().write().config_mut().options_mut().catalog.default_schema = name;
        Ok(())
    }

    /// Catalog that unqualified names belong to, and its schema.
    pub fn current(&self) -> (String, String) {
        let state = self.context.state_ref();
        let state = state.read();
        let catalog = &state.config_options().catalog;
        (catalog.default_catalog.clone(), catalog.default_schema.clone())
    }

    /// Plans a statement for parameter sets of these types; `None` if they are not known. Sends no request.
    ///
    /// # Errors
    /// A wrong number of parameters; those of planning, and statements that write.
    pub async fn prepare(&self, sql: &str, types: Option<&[DataType]>) -> Result<Prepared, Failure> {
        let known = types.unwrap_or_default();
        match Box::pin(Statement::of_typed(&PlanningTurn::unbounded(), &self.context, sql, known)).await {
            Ok(statement) => Ok(Prepared(statement)),
            Err(error) => {
                // A statement without all its parameters lacks their types as well.
                if let (Some(types), Some(takes)) = (types, parameters_of(sql)) {
                    planner::check_number(takes, types.len()).map_err(Failure::own)?;
                }
                Err(self.failure(&error).in_text(&error, sql, &self.context).await)
            }
        }
    }

    /// Estimates the cost of a query, or of the query that creates a table, for all parameter sets together. Sends no request.
    ///
    /// # Errors
    /// Those of planning.
    pub async fn estimate(
        &self,
        prepared: &Prepared,
        sets: Vec<Vec<ScalarValue>>,
        account: &Account,
    ) -> Result<RecordBatch, Failure> {
        let failed = |error: DataFusionError| self.failure(&error);
        let mut plans = Vec::with_capacity(sets.len());
        for plan in prepared.0.bind_all(&PlanningTurn::unbounded(), sets).map_err(failed)? {
            let query = match plan {
                LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => Arc::unwrap_or_clone(table.input),
                _ if prepared.0.effect => {
                    let error = Error::new(ErrorKind::Query, "this statement sends no request");
                    return Err(Failure::own(error.advice("estimate a query")));
                }
                query => query,
            };
            let Runnable { plan, query, .. } = runnable(&self.context, query).await.map_err(failed)?;
            account.begin(query, &plan);
            plans.push(plan);
        }
        estimate_all(&plans).map_err(failed)
    }

    /// Columns of the result with a parameter set, whose values may have other types than the statement lets expect. Sends no
    /// request.
    ///
    /// # Errors
    /// Those of planning.
    pub async fn result_schema(&self, prepared: &Prepared, set: Vec<ScalarValue>) -> Result<SchemaRef, Failure> {
        let failed = |error: DataFusionError| self.failure(&error);
        let plan = prepared.0.bind(&PlanningTurn::unbounded(), set).map_err(failed)?;
        if prepared.0.effect {
            return Ok(Arc::clone(&prepared.0.schema));
        }
        Ok(result_schema(&runnable(&self.context, plan).await.map_err(failed)?.plan.schema()))
    }

    /// An account for a run.
    pub fn account(&self) -> Account {
        Account { queries: Arc::default(), connections: self.connections.clone() }
    }

    /// Runs a statement once for each set of parameters, of which one without parameters has one empty set. The rows of all sets
    /// follow each other. A statement that changes the session takes one set, and has run when this returns. `account` receives the
    /// cost.
    ///
    /// # Errors
    /// Those of planning, and of a statement that changes the session.
    pub async fn run(
        self: &Arc<Self>,
        prepared: &Prepared,
        sets: Vec<Vec<ScalarValue>>,
        cancelled: CancellationToken,
        account: Account,
    ) -> Result<Rows, Failure> {
        let failed = |error: DataFusionError| self.failure(&error);
        let plans = prepared.0.bind_all(&PlanningTurn::unbounded(), sets).map_err(failed)?;
        let (sender, batches) = mpsc::channel(AHEAD);
        if prepared.0.effect {
            for plan in plans {
                Box::pin(self.apply(plan, &account)).await.map_err(failed)?;
            }
            let schema = Arc::new(Schema::empty());
            return Ok(Rows { schema, batches, _reading: None });
        }
        let mut plans = plans.into_iter();
        let first = match plans.next() {
            Some(plan) => {
                let first = runnable(&self.context, plan).await.map_err(failed)?;
                self.check_budget(&first, plans.as_slice()).await?;
                Some(first)
            }
            None => None,
        };
        let schema =
            first.as_ref().map_or_else(|| Arc::clone(&prepared.0.schema), |first| result_schema(&first.plan.schema()));
        let (session, of_rows) = (Arc::clone(self), Arc::clone(&schema));
        let reading = async move {
            let ended = tokio::select! {
                biased;
                () = cancelled.cancelled() => Err(stopped()),
                ended = session.read(first, plans, &of_rows, &account, &sender) => ended,
            };
            if let Err(failure) = ended {
                // Fails only if nobody reads any more.
                let _ = sender.send(Err(failure)).await;
            }
        };
        let reading = Some(AbortOnDropHandle::new(tokio::spawn(reading)));
        Ok(Rows { schema, batches, _reading: reading })
    }

    /// Refuses the plans of parameter sets that together need more requests than `max_requests` allows. With a store, their sum is
    /// no minimum, since a set takes what an earlier one has stored; nothing that was read is lost then if the budget ends them.
    async fn check_budget(&self, first: &Runnable, others: &[LogicalPlan]) -> Result<(), Failure> {
        let settings = SessionSettings::of(self.context.state().config_options());
        // All sets have the same tables.
        if !others.first().is_some_and(reads_service) || self.shares_stored(&settings) {
            return Ok(());
        }
        let mut needed = least_requests(&first.plan);
        // The plans of the other sets are not kept: they would take memory, and would be old when their turn comes.
        for plan in others {
            let planned = runnable(&self.context, plan.clone()).await.map_err(|error| self.failure(&error))?;
            needed = needed.saturating_add(least_requests(&planned.plan));
        }
        let SessionSettings { max_requests, query_deadline, request_timeout, .. } = settings;
        let allowed = QueryBudget::new(String::new(), max_requests, query_deadline, request_timeout).allow(needed);
        let sets = others.len() + 1;
        allowed.map_err(|error| Failure::own(error).led_by(&format!("{sets} parameter sets: ")))
    }

    /// True if queries take from a store what earlier ones have stored.
    #[cfg(feature = "store")]
    fn shares_stored(&self, settings: &SessionSettings) -> bool {
        let mut stores = self.connections.iter().filter_map(|connection| connection.store_for(settings));
        stores.any(|store| store.reads && store.writes)
    }

    #[cfg(not(feature = "store"))]
    fn shares_stored(&self, _settings: &SessionSettings) -> bool {
        false
    }

    /// The session with what the earlier parameter sets have left of `max_requests`.
    fn limited(&self, account: &Account) -> SessionContext {
        let mut state = self.context.state();
        state.config_mut().set_extension(Arc::new(SentBefore(account.requests())));
        SessionContext::new_with_state(state)
    }

    /// Sends the batches of the plans, one plan after another.
    async fn read(
        &self,
        first: Option<Runnable>,
        plans: impl Iterator<Item = LogicalPlan> + Send,
        schema: &SchemaRef,
        account: &Account,
        sender: &mpsc::Sender<Result<RecordBatch, Failure>>,
    ) -> Result<(), Failure> {
        if let Some(planned) = first {
            Box::pin(self.read_one(planned, schema, account, sender)).await?;
        }
        for (set, plan) in (2..).zip(plans) {
            let sent = account.requests();
            let read = async {
                let planned = runnable(&self.limited(account), plan).await;
                let planned = planned.map_err(|error| self.failure(&error))?;
                Box::pin(self.read_one(planned, schema, account, sender)).await
            };
            // Its budget is what the earlier sets have left.
            read.await.map_err(|failure: Failure| match failure.kind() {
                "budget" => failure.led_by(&format!("parameter set {set}, after {sent} requests: ")),
                _ => failure,
            })?;
        }
        Ok(())
    }

    async fn read_one(
        &self,
        planned: Runnable,
        schema: &SchemaRef,
        account: &Account,
        sender: &mpsc::Sender<Result<RecordBatch, Failure>>,
    ) -> Result<(), Failure> {
        let failed = |error: DataFusionError| self.failure(&error);
        let Runnable { plan, task, query, .. } = planned;
        account.begin(query.clone(), &plan);
        let span = QuerySpan::start(Some("query"));
        let mut rows = 0;
        let read = async {
            let mut stream = start(&plan, task, Some(&span)).map_err(failed)?.fuse();
            while let Some(batch) = gather(&mut stream).await.map_err(failed)? {
                rows += batch.num_rows() as u64;
                let batch = sent_batch(&batch, schema).map_err(|error| failed(error.into()))?;
                if sender.send(Ok(batch)).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        let read: Result<(), Failure> = read.await;
        span.ended_with(&read, rows);
        #[cfg(feature = "store")]
        self.settle(&query).await;
        read
    }

    /// Waits until the days that a query read completely are stored: a LIMIT above a join stops reads, and the process may end after
    /// the query.
    #[cfg(feature = "store")]
    async fn settle(&self, query: &str) {
        for connection in &self.connections {
            connection.settle_query(query).await;
        }
    }

    /// Runs a statement that changes the session.
    async fn apply(&self, plan: LogicalPlan, account: &Account) -> Result<(), DataFusionError> {
        refuse_writes(&plan, &self.context).await?;
        let plan = match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => self.with_rows(table, account).await?,
            plan => plan,
        };
        let (sets, kind) = (matches!(plan, LogicalPlan::Statement(_)), statement_kind(&plan));
        let span = QuerySpan::start(Some(kind));
        let ran = async { self.context.execute_logical_plan(plan).await?.collect().await };
        let ran = ran.await;
        span.ended_with(&ran, 0);
        ran?;
        if sets {
            follow_time_zone(&self.context).await?;
        }
        Ok(())
    }

    /// Reads the rows of a table that is created, unless it exists and stays.
    async fn with_rows(&self, mut table: CreateMemoryTable, account: &Account) -> Result<LogicalPlan, DataFusionError> {
        if table.or_replace || !self.context.table_exist(table.name.clone())? {
            let query = Arc::unwrap_or_clone(table.input);
            let schema = Arc::clone(query.schema().inner());
            let Runnable { plan, task, query, .. } = runnable(&self.context, query).await?;
            account.begin(query.clone(), &plan);
            let read = async { start(&plan, task, None)?.try_collect().await };
            let batches: Result<Vec<RecordBatch>, DataFusionError> = read.await;
            #[cfg(feature = "store")]
            self.settle(&query).await;
            let rows = self.context.read_table(Arc::new(MemTable::try_new(schema, vec![batches?])?))?;
            table.input = Arc::new(rows.into_unoptimized_plan());
        }
        Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
    }

    /// Catalogs with their schemas.
    pub fn schemas(&self) -> Vec<(String, Vec<String>)> {
        let mut names = self.context.catalog_names();
        names.sort();
        let schemas = |name: &str| {
            let mut schemas = self.context.catalog(name).map(|catalog| catalog.schema_names()).unwrap_or_default();
            schemas.sort();
            schemas
        };
        names.into_iter().map(|name| (name.clone(), schemas(&name))).collect()
    }

    /// All tables. Sends no request.
    ///
    /// # Errors
    /// Errors of looking up a table.
    pub async fn tables(&self) -> Result<Vec<TableInfo>, Failure> {
        let mut tables = Vec::new();
        let found = for_each(&self.context, |[catalog, schema], name, table| {
            let columns = Arc::new(table_schema(&table.schema()));
            let key = key(table.constraints()).into_iter().map(|at| columns.field(at).name().clone()).collect();
            let (catalog, schema, name) = (catalog.clone(), schema.clone(), name.to_owned());
            tables.push(TableInfo { catalog, schema, name, kind: kind(table), columns, key });
            Ok(())
        });
        found.await.map_err(|error| self.failure(&error))?;
        tables.sort_by(|a, b| (&a.catalog, &a.schema, &a.name).cmp(&(&b.catalog, &b.schema, &b.name)));
        Ok(tables)
    }

    /// Number of rows of a temporary table.
    ///
    /// # Errors
    /// A table that was dropped meanwhile; errors of the engine.
    pub async fn count(&self, table: &TableInfo) -> Result<i64, Failure> {
        let TableInfo { catalog, schema, name, .. } = table;
        let place = TableReference::full(catalog.as_str(), schema.as_str(), name.as_str());
        let counted = async { self.context.table(place).await?.count().await };
        let rows = Box::pin(counted).await.map_err(|error| self.failure(&error))?;
        i64::try_from(rows).map_err(|error| Failure::new(Code::Internal, error.to_string()))
    }

    /// Columns of a table. Sends no request.
    ///
    /// # Errors
    /// An unknown table.
    pub async fn table_schema(
        &self,
        catalog: Option<&str>,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Schema, Failure> {
        let (own_catalog, own_schema) = self.current();
        let place = (catalog.unwrap_or(&own_catalog), schema.unwrap_or(&own_schema));
        let table = TableReference::full(place.0, place.1, name);
        match self.context.table_provider(table).await {
            Ok(table) => Ok(table_schema(&table.schema())),
            Err(_) => {
                let message = format!("unknown table `{}.{}.{name}`", place.0, place.1);
                Err(Failure { origin: Origin::UnknownTable, ..Failure::new(Code::NotFound, message) })
            }
        }
    }

    fn failure(&self, error: &DataFusionError) -> Failure {
        let clients = || self.connections.iter().map(|connection| connection.client());
        Failure::of(error, KeyOwner::Client, |text| Client::redact_all(clients(), text))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("current", &self.current()).finish_non_exhaustive()
    }
}

impl Prepared {
    /// Parameters in order.
    pub fn parameters(&self) -> &SchemaRef {
        &self.0.parameters
    }

    /// Columns of the result; none for a statement that changes the session.
    pub fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    /// True for a statement that changes the session and has no result.
    pub fn is_effect(&self) -> bool {
        self.0.effect
    }
}

impl Rows {
    /// Columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// The failure of the query, after which there are no further batches.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, Failure>> {
        self.batches.recv().await
    }

    /// Fails if the task that reads the rows has panicked, which must not look like the end of the result.
    ///
    /// # Errors
    /// An internal error.
    pub async fn ended(self) -> Result<(), Failure> {
        match self._reading {
            Some(reading) => {
                reading.await.map_err(|error| Failure::new(Code::Internal, format!("internal error: {error}")))
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Account {
    fn begin(&self, query: String, plan: &Arc<dyn ExecutionPlan>) {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).push((query, Arc::clone(plan)));
    }

    /// Requests sent until now.
    pub fn requests(&self) -> u64 {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        queries.iter().map(|(_, plan)| spent(plan).requests).sum()
    }

    /// Notes of one line each: the default window, what may not be intended, and why counts or stored mentions were not used.
    pub fn notes(&self) -> Vec<String> {
        let clean = |note: String| {
            let clients = self.connections.iter().map(|connection| connection.client());
            String::from(Client::redact_all(clients, &note))
        };
        let of_plan = |plan: &Arc<dyn ExecutionPlan>| window_note(&windows(plan)).into_iter().chain(notes(plan));
        let mut found: Vec<String> = {
            let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
            queries.iter().flat_map(|(_, plan)| of_plan(plan)).map(clean).collect()
        };
        found.extend(self.logged(false));
        let mut known = HashSet::new();
        found.iter().map(|note| one_line(note)).filter(|note| known.insert(note.clone())).collect()
    }

    /// Warnings about missing rows, a line each.
    pub fn warnings(&self) -> Vec<String> {
        self.logged(true)
    }

    /// Messages about the queries in the logs of the connections: warnings about missing rows, or notes.
    fn logged(&self, incomplete: bool) -> Vec<String> {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.connections.iter().flat_map(|connection| connection.client().log().warnings());
        let own = all.filter(|warning| queries.iter().any(|(query, _)| *query == warning.query));
        own.filter(|warning| warning.incomplete == incomplete).map(|warning| warning.message.into()).collect()
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

/// A name that is among the known ones.
fn known_name(what: &str, name: &str, known: &[String]) -> Result<String, Failure> {
    if known.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let error = Error::new(ErrorKind::NotFound, format!("unknown {what} `{name}`"));
    Err(Failure::own(error.advice(format!("available: {}", known.join(", ")))))
}

/// Draws rows as an SVG picture, as the shell does.
///
/// # Errors
/// Rows of which no chart can be drawn.
pub fn chart(schema: &SchemaRef, rows: &[RecordBatch], title: Option<String>) -> Result<String, Failure> {
    let charts = ChartOptions { title, ..ChartOptions::default() };
    chart_svg(schema, rows, &charts).map_err(|line| Failure::own(Error::new(ErrorKind::Query, line)))
}

/// The failure of a query that was cancelled.
pub fn stopped() -> Failure {
    Failure::new(Code::Cancelled, "the query was cancelled")
}

/// True for a statement with parameters.
pub fn takes_parameters(sql: &str) -> bool {
    parameters_of(sql).is_some_and(|number| number > 0)
}

/// Number of parameters of a statement; `None` if its text is wrong.
fn parameters_of(sql: &str) -> Option<usize> {
    let mut parsed = planner::parse(&PlanningTurn::unbounded(), sql, GenericDialect {}).ok()?;
    while let Parsed::Explain(explain) = parsed {
        parsed = *explain.statement;
    }
    let mut names = HashSet::new();
    if let Parsed::Statement(statement) = &parsed {
        syntax::expressions(statement.as_ref(), &mut |expression| {
            names.extend(planner::parameter(expression).map(|(name, _)| name.to_owned()));
        });
    }
    Some(names.len())
}

/// True for a plan with a table of a service, which may send requests.
fn reads_service(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            // The plan of a view is not visited.
            found |= ApiTable::of(scan).is_some() || scan.source.get_logical_plan().is_some();
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_err() || found
}

/// An executable plan.
async fn runnable(context: &SessionContext, plan: LogicalPlan) -> Result<Runnable, DataFusionError> {
    Box::pin(planner::runnable(&PlanningTurn::unbounded(), context, plan)).await
}

/// Rows that a client binds, with their columns in types of SQL.
///
/// # Errors
/// None in practice: errors of casts.
pub fn bindable(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    without_extensions(batch)
}

/// The parameter sets of a batch, a set per row.
///
/// # Errors
/// Types that have no values.
pub fn sets_of(batch: &RecordBatch) -> Result<Vec<Vec<ScalarValue>>, Failure> {
    let value = |column: &dyn Array, row: usize| {
        let failed = |error| Failure::new(Code::InvalidArgument, format!("invalid parameter: {error}"));
        ScalarValue::try_from_array(column, row).map(plain).map_err(failed)
    };
    (0..batch.num_rows()).map(|row| batch.columns().iter().map(|column| value(column, row)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Secret;

    #[tokio::test]
    async fn tables_of_a_service_are_found_in_subqueries_views_and_calls() {
        // Planning sends no request, so no service is needed.
        let key = Secret::new("key").expect("a key");
        let connection = Connection::builder("http://127.0.0.1:9/v4", key).build().expect("a connection");
        let session = Arc::new(Session::open(&connection, &[]).expect("a session"));
        let view = session.prepare("CREATE VIEW acme AS SELECT aid FROM saved_searches", None).await.expect("a view");
        let run = session.run(&view, vec![Vec::new()], CancellationToken::new(), session.account());
        Box::pin(run).await.expect("the view is created");
        for (sql, expected) in [
            ("SELECT ? AS n", false),
            ("SELECT * FROM generate_series(1, 3) AS s(n) WHERE n = ?", false),
            ("SELECT count(*) FROM system.requests WHERE query = ?", false),
            ("SELECT count(*) FROM mentions WHERE aid = ?", true),
            ("SELECT count(*) FROM mentions(aid => ?)", true),
            ("SELECT 1 WHERE EXISTS (SELECT aid FROM saved_searches WHERE aid = ?)", true),
            ("SELECT aid FROM acme WHERE aid = ?", true),
        ] {
            let Prepared(statement) = session.prepare(sql, None).await.expect(sql);
            assert_eq!(reads_service(&statement.plan), expected, "{sql}");
        }
    }
}
