//! Runs SQL statements one after another, and reports on each.

mod printed;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlannedStatement};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

pub(super) use self::printed::write;
use self::printed::{Printed, print_result};
use super::chart::Covered;
use super::commands::TABLES;
use super::origin::{Days, DaysZone, has_order};
use super::output::Output;
use super::progress::Progress;
use super::statement::used;
use super::variables::Variables;
use crate::catalog::{CATALOG, SCHEMA};
use crate::client::{Client, QuerySpan};
use crate::config::{EstimateBy, SessionSettings};
use crate::connection::Connection;
#[cfg(feature = "host")]
use crate::error::Error;
use crate::exec::{Spent, Unsized, WindowRead, aside, spent, start, statement_kind, windows};
use crate::memory::inherited;
#[cfg(feature = "host")]
use crate::memory::statements::{Statements, refuse_other_limits, with_memory_of};
#[cfg(feature = "host")]
use crate::memory::until_ended;
use crate::numbers::counted;
use crate::profile::Zone;
#[cfg(feature = "host")]
use crate::session::bounded_session;
use crate::session::suggestion::name_in_brackets;
use crate::session::{
    Headers, PlanningTurn, begin_here, follow_time_zone, parse_statements, plan_statement, refuse_changes,
    refuse_writes,
};
use crate::wording::{Mistake, Report, estimate, window_note};

/// Runs statements in a session and prints their results.
pub struct Shell {
    context: SessionContext,
    /// Connections by name.
    connections: Vec<(String, Arc<Connection>)>,
    /// Position of the current connection, which unqualified table names belong to.
    current: usize,
    /// The note on the default window is printed once.
    noted_window: bool,
    quiet: bool,
    estimates: Estimating,
    reports: Option<Reports>,
    last: Option<LastResult>,
    variables: Variables,
    /// Limits the memory of statements.
    #[cfg(feature = "host")]
    statements: Option<Statements>,
}

/// Mode of estimating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Estimating {
    /// Statements run.
    None,
    /// Queries are estimated; settings and views take effect, since later statements may need them.
    Script,
    /// Statements are estimated and nothing takes effect.
    Alone,
}

/// Options of the line after each result.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reports {
    /// Adds planning time and time to the first row.
    pub(super) timing: bool,
}

/// The last result.
pub(super) struct LastResult {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    /// Reason why rows are missing.
    pub(super) lacks: Option<&'static str>,
    /// Span of time that the rows cover, if it is known.
    pub(super) covered: Option<Covered>,
}

/// Reason why a script or line ended early.
#[derive(Debug)]
pub enum Failure {
    /// A query or the service failed.
    Query(Mistake),
    /// A signal cancelled the statement.
    Cancelled {
        /// Number of the signal, such as 2 for SIGINT.
        signal: i32,
        /// Requests sent by the statement until then.
        requests: u64,
    },
    /// The reader of stdout, such as `head`, has ended; nothing more can be printed.
    ReaderGone,
}

impl Failure {
    /// A failure that is not about a place in a statement.
    pub(super) fn line(line: impl Into<String>) -> Self {
        Self::Query(Mistake::new(line))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            // Raised by the writers themselves, for results that a format cannot represent.
            io::ErrorKind::Other => Self::line(error.to_string()),
            _ => Self::line(format!("cannot write the result: {error}")),
        }
    }
}

/// Reason why a statement ended early.
enum Broken {
    Engine(DataFusionError),
    Failed(Failure),
}

impl From<DataFusionError> for Broken {
    fn from(error: DataFusionError) -> Self {
        Self::Engine(error)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// The span of time from the first of these windows of a plan to the last; `None` if it is unknown. The days of a result without
/// times are those of the query's zone; UTC if its name is empty.
pub(crate) fn covered(
    connection: &Connection,
    plan: &LogicalPlan,
    windows: &[WindowRead],
    zone: &str,
) -> Option<Covered> {
    let now = connection.now();
    let window = &connection.profile().window;
    let span = |read: &WindowRead| {
        let zone = read.timezone.as_deref().and_then(|zone| zone.parse().ok()).unwrap_or(Zone::UTC);
        window.span_of(&read.words, zone).or_else(|| Some((now - window.length_of(&read.words)?, now)))
    };
    let spans = windows.iter().map(span).collect::<Option<Vec<_>>>()?;
    let (from, to) = (spans.iter().map(|span| span.0).min()?, spans.iter().map(|span| span.1).max()?);
    let days = Days::of(plan, windows);
    let zone = match days.zone {
        DaysZone::Known(zone) => Some(zone),
        DaysZone::Unknown => None,
        DaysZone::NoDays => Some(Zone::meant(zone).unwrap_or(Zone::UTC)),
    };
    Some(Covered { from, to: to.min(now), zone, shifted: days.shifted, ordered: has_order(plan) })
}

impl Shell {
    /// A shell over a session made by [`session`](crate::session()).
    pub fn new(context: SessionContext, connection: Arc<Connection>) -> Self {
        // Lets errors name their place in the statement.
        context.state_ref().write().config_mut().options_mut().sql_parser.collect_spans = true;
        begin_here(&context);
        let connections = vec![(CATALOG.to_owned(), connection)];
        Self {
            context,
            connections,
            current: 0,
            noted_window: false,
            quiet: false,
            estimates: Estimating::None,
            reports: None,
            last: None,
            variables: Variables::default(),
            #[cfg(feature = "host")]
            statements: None,
        }
    }

    /// As [`new`](Self::new), with limits on the memory of statements and functions, as in a server that has so many MiB. Statements
    /// cannot change them. The program must count its memory ([`count_with`](crate::memory::count_with)).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the session lacks rules of the engine; I/O errors of starting a
    /// thread.
    #[cfg(feature = "host")]
    pub fn with_memory(
        context: &SessionContext,
        connection: Arc<Connection>,
        mib: usize,
    ) -> Result<Self, DataFusionError> {
        let limited = bounded_session(&with_memory_of(context, mib)?)?;
        let statements = Statements::start((mib as u64).saturating_mul(1 << 20))?;
        Ok(Self { statements: Some(statements), ..Self::new(limited, connection) })
    }

    /// Prints the cost of queries instead of running them. Settings and views still take effect.
    #[must_use]
    pub fn estimating(self, estimates: bool) -> Self {
        Self { estimates: if estimates { Estimating::Script } else { Estimating::None }, ..self }
    }

    /// Prints results, errors and warnings of incomplete results only: no notes, greetings, progress or summaries.
    #[must_use]
    pub fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Adds connections by name, each a catalog of the session; the one of [`Shell::new`] must be among them.
    #[must_use]
    pub fn knowing(mut self, connections: Vec<(String, Arc<Connection>)>) -> Self {
        let current = connections.iter().position(|(_, other)| Arc::ptr_eq(other, self.connection()));
        if let Some(current) = current {
            (self.connections, self.current) = (connections, current);
        }
        self
    }

    /// Sets a variable of scripts and of the prompt, which statements use as `:name`.
    ///
    /// # Errors
    /// One line if the name is not one.
    pub fn set_variable(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.variables.set(name, value)
    }

    pub(super) fn variables(&mut self) -> &mut Variables {
        &mut self.variables
    }

    pub(super) fn context(&self) -> &SessionContext {
        &self.context
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Connections by name.
    pub(super) fn connections(&self) -> &[(String, Arc<Connection>)] {
        &self.connections
    }

    /// The current connection, which unqualified table names belong to.
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connections[self.current].1
    }

    /// Name of the current connection.
    pub(super) fn connection_name(&self) -> &str {
        &self.connections[self.current].0
    }

    /// Makes another connection the current one.
    ///
    /// # Errors
    /// One line if no connection has this name.
    pub(super) fn choose(&mut self, name: &str) -> Result<(), String> {
        let Some(at) = self.connections.iter().position(|(known, _)| known == name) else {
            let names: Vec<&str> = self.connections.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!("unknown connection `{name}`; available: {}", names.join(", ")));
        };
        self.current = at;
        let state = self.context.state_ref();
        let mut state = state.write();
        state.config_mut().options_mut().catalog.default_catalog = name.to_owned();
        Ok(())
    }

    /// Makes the connection of a USE statement the current one. Its default schema is the one with the tables of the service.
    fn use_connection(&mut self, name: &str) -> Result<(), String> {
        let connection = name.strip_suffix(SCHEMA).map_or(name, |name| name.trim_end_matches('.'));
        match connection {
            "" => Ok(()),
            "system" | "information_schema" => {
                let table = if connection == "system" { "requests" } else { "tables" };
                Err(format!("USE expects a connection; to choose a schema, qualify the table, as in {name}.{table}"))
            }
            connection => self.choose(connection),
        }
    }

    /// Prints a summary after each result.
    pub(super) fn report(&mut self, reports: Reports) {
        self.reports = Some(reports);
    }

    /// The last result.
    pub(super) fn last(&self) -> Option<&LastResult> {
        self.last.as_ref()
    }

    /// Runs the statements of a text in order, until one fails or a signal cancels it.
    ///
    /// # Errors
    /// [`Failure`], with a line for people.
    pub async fn run(&mut self, text: &str, output: &mut Output) -> Result<(), Failure> {
        let statements = match parse_statements(text) {
            Ok(statements) => statements,
            Err(error) => return Err(self.mistake(&error, text).await),
        };
        for statement in statements {
            let before = self.counters();
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut hang_up = signal(SignalKind::hangup())?;
            let result = tokio::select! {
                // Dropping the statement's future cancels its requests.
                result = Box::pin(self.run_within_limits(statement, output)) => result,
                _ = interrupt.recv() => Err(self.cancelled(SignalKind::interrupt(), &before)),
                _ = terminate.recv() => Err(self.cancelled(SignalKind::terminate(), &before)),
                _ = hang_up.recv() => Err(self.cancelled(SignalKind::hangup(), &before)),
            };
            #[cfg(feature = "store")]
            if let Err(Broken::Failed(Failure::Cancelled { .. })) = &result {
                // What was read completely is stored. A second signal ends the wait.
                let stored = tokio::select! {
                    stored = self.settle_store() => stored,
                    _ = interrupt.recv() => Vec::new(),
                    _ = terminate.recv() => Vec::new(),
                    _ = hang_up.recv() => Vec::new(),
                };
                self.warn(&before);
                stored.iter().for_each(|stored| self.note(&format!("note: stopped: {stored}")));
            }
            for (_, connection) in &self.connections {
                connection.client().write_estimates();
            }
            match result {
                Ok(report) => {
                    if let Some((report, reports)) = report.zip(self.reports) {
                        eprintln!("{}", console::style(report.line(reports.timing)).for_stderr().dim());
                    }
                }
                Err(Broken::Failed(failure)) => return Err(failure),
                Err(Broken::Engine(error)) => return Err(self.mistake(&error, text).await),
            }
        }
        Ok(())
    }

    fn cancelled(&self, signal: SignalKind, before: &Counters) -> Broken {
        let requests = self.counters().requests() - before.requests();
        Broken::Failed(Failure::Cancelled { signal: signal.as_raw_value(), requests })
    }

    /// Prints the cost of a query, and changes nothing.
    pub(super) async fn cost(&mut self, text: &str, output: &mut Output) -> Result<(), Failure> {
        let before = (std::mem::replace(&mut self.estimates, Estimating::Alone), self.reports.take());
        let result = self.run(text, output).await;
        (self.estimates, self.reports) = before;
        result
    }

    async fn mistake(&self, error: &DataFusionError, text: &str) -> Failure {
        Failure::Query(Mistake::of(error, text, &self.context, TABLES).await.map_text(|text| self.redact(text)))
    }

    /// Removes API keys from a text: the engine quotes values, and a value may contain a key.
    pub(super) fn redact(&self, text: String) -> String {
        Client::redact_all(self.connections.iter().map(|(_, connection)| connection.client()), &text).into()
    }

    /// Runs a statement within the limits of the memory, if there are any.
    async fn run_within_limits(&mut self, statement: Statement, output: &mut Output) -> Result<Option<Report>, Broken> {
        #[cfg(feature = "host")]
        if let Some(statements) = &self.statements {
            let memory = statements.register(&"shell".into());
            let ended = Box::pin(until_ended(&memory, self.run_one(statement, output))).await;
            #[cfg(feature = "store")]
            if ended.is_err() {
                // What was read completely is stored.
                self.settle_store().await;
            }
            return ended.map_err(|error: Error| Broken::Engine(error.into())).flatten();
        }
        self.run_one(statement, output).await
    }

    async fn run_one(&mut self, statement: Statement, output: &mut Output) -> Result<Option<Report>, Broken> {
        let begun = Instant::now();
        if let Some(name) = used(&statement) {
            self.use_connection(&name).map_err(|line| Broken::Failed(Failure::line(line)))?;
            return Ok(Some(self.report_of_effect(begun, &self.counters(), Vec::new())));
        }
        let (plan, headers) = self.planned(statement).await?;
        if self.estimates != Estimating::None && self.estimate(&plan, output).await? {
            return Ok(None);
        }
        let at_once = matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Statement(_));
        let kind = statement_kind(&plan);
        let before = self.counters();
        let progress = self.progress();
        let read = self.windows_of_input(&plan).await?;
        let context = self.context.clone();
        let executing = tokio::spawn(inherited(async move { context.execute_logical_plan(plan).await }));
        let executed = AbortOnDropHandle::new(executing).await;
        #[cfg(feature = "store")]
        self.settle_store().await;
        let frame = executed.map_err(internal)??;
        if frame.schema().fields().is_empty() {
            if !at_once {
                return Err(Broken::Failed(Failure::line("the query selects no columns")));
            }
            drop(progress);
            follow_time_zone(&self.context).await?;
            return Ok(Some(self.report_of_effect(begun, &before, read)));
        }
        let task = Arc::new(frame.task_ctx());
        let logical = Arc::new(frame.logical_plan().clone());
        let plan = frame.create_physical_plan().await?;
        if self.estimates != Estimating::None {
            drop(progress);
            self.write_cost(&plan, output).await?;
            return Ok(None);
        }
        self.note_window(&plan);
        let state = self.context.state();
        let zone = SessionSettings::zone(state.config_options());
        let covered = covered(self.connection(), &logical, &windows(&plan), &zone);
        output.show_times_in(zone);
        output.cover(covered);
        let planning = begun.elapsed();
        output.check_next()?;
        self.last = None;
        let span = QuerySpan::start(Some(kind));
        let printed = match start(&plan, task, Some(&span)) {
            Ok(stream) => print_result(stream, &headers, begun, progress, output).await,
            Err(error) => Err(error.into()),
        };
        span.ended_with(&printed, printed.as_ref().map_or(0, |printed| printed.shown.rows as u64));
        // A LIMIT above a join has stopped reads. The process may end after this statement.
        #[cfg(feature = "store")]
        self.settle_store().await;
        let Printed { shown, first, elapsed, kept } = printed?;
        self.last = Some(LastResult { covered, ..kept });
        let warned = self.warn(&before);
        if self.reports.is_none() && !self.quiet && shown.hidden > 0 {
            let columns = counted(shown.hidden as u64, "column");
            eprintln!("note: {columns} hidden: terminal too narrow; use \\x or --format csv to see all");
        }
        let (spent, windows) = (spent(&plan), windows(&plan));
        output.count_rows(shown.rows);
        if spent.requests > 0 || !windows.is_empty() {
            output.count_requests(spent.requests);
        }
        if warned || spent.incomplete > 0 {
            output.lacks_rows();
        }
        Ok(Some(Report { shown: Some(shown), planning, first, elapsed, spent, windows, warned }))
    }

    /// Waits until the days that a statement read completely are stored. Returns what was stored of reads that were stopped.
    #[cfg(feature = "store")]
    async fn settle_store(&self) -> Vec<String> {
        futures::future::join_all(self.connections.iter().map(|(_, to)| to.settle_store())).await.concat()
    }

    /// Windows of the query behind CREATE TABLE AS, which runs when the table is made.
    async fn windows_of_input(&mut self, plan: &LogicalPlan) -> Result<Vec<WindowRead>, Broken> {
        let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) = plan else { return Ok(Vec::new()) };
        let input = self.context.state().create_physical_plan(&table.input).await?;
        self.note_window(&input);
        Ok(windows(&input))
    }

    /// Summary of SET and DDL, which have no result.
    fn report_of_effect(&mut self, begun: Instant, before: &Counters, windows: Vec<WindowRead>) -> Report {
        let after = self.counters();
        let warned = self.warn(before);
        let spent = Spent { requests: after.requests() - before.requests(), ..Spent::default() };
        let elapsed = begun.elapsed();
        Report { shown: None, planning: elapsed, first: None, elapsed, spent, windows, warned }
    }

    /// Plans a statement, unless it must not run.
    async fn planned(&mut self, statement: Statement) -> Result<(LogicalPlan, Headers), Broken> {
        let state = self.context.state();
        let zone = SessionSettings::zone(state.config_options());
        if !zone.is_empty() && state.config_options().execution.time_zone.as_ref() != Some(&zone) {
            // From the command line.
            follow_time_zone(&self.context).await?;
        }
        refuse_changes(&statement, &self.context).await?;
        let headers = Headers::of(&statement);
        let in_brackets = name_in_brackets(&statement.to_string());
        let plan = plan_statement(&PlanningTurn::unbounded(), &self.context.state(), statement).await?;
        if let Some(advice) = in_brackets {
            self.note(&format!("note: {advice}"));
        }
        refuse_writes(&plan, &self.context).await?;
        #[cfg(feature = "host")]
        if self.statements.is_some() {
            refuse_other_limits(&plan).map_err(DataFusionError::from)?;
        }
        Ok((plan, headers))
    }

    /// Estimates a statement that is not a query. Returns `false` for a query, and for statements that are to take effect.
    async fn estimate(&mut self, plan: &LogicalPlan, output: &mut Output) -> Result<bool, Broken> {
        let alone = self.estimates == Estimating::Alone;
        match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => {
                let input = self.context.state().create_physical_plan(&table.input).await?;
                if !alone {
                    // Creating it would run its query. An empty table lets later statements be planned.
                    let empty = MemTable::try_new(input.schema(), vec![Vec::new()])?;
                    self.context.register_table(table.name.clone(), Arc::new(empty))?;
                }
                self.write_cost(&input, output).await?;
                Ok(true)
            }
            LogicalPlan::Dml(_) | LogicalPlan::Copy(_) if alone => {
                for input in plan.inputs() {
                    let input = self.context.state().create_physical_plan(input).await?;
                    self.write_cost(&input, output).await?;
                }
                Ok(true)
            }
            LogicalPlan::Statement(statement) if alone && matches!(statement, PlannedStatement::Execute(_)) => {
                Err(Broken::Failed(Failure::line("\\cost does not support prepared statements; pass the query itself")))
            }
            LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) if alone => {
                Err(Broken::Failed(Failure::line("\\cost takes a query; this statement sends no request")))
            }
            _ => Ok(false),
        }
    }

    /// Writes the estimated cost of a plan. Asks the service for what is unknown if the setting allows it, and says so before;
    /// otherwise it says how to ask.
    async fn write_cost(&self, plan: &Arc<dyn ExecutionPlan>, output: &mut Output) -> Result<(), Broken> {
        for problem in self.connections.iter().filter_map(|(_, to)| to.client().take_estimates_problem()) {
            self.note(&format!("note: {problem}"));
        }
        let asks = SessionSettings::of(self.context.state().config_options()).estimate == EstimateBy::Ask;
        if asks {
            for connection in Unsized::of(plan).lists {
                self.note("note: estimating: 1 request for the list of saved searches");
                let _progress = self.progress();
                Box::pin(self.list(&connection)).await?;
            }
            let sizes = Unsized::of(plan);
            if sizes.requests() > 0 {
                let requests = counted(sizes.requests(), "request");
                self.note(&format!("note: estimating: {requests} for the numbers of mentions"));
                let _progress = self.progress();
                Box::pin(sizes.count(self.context.task_ctx())).await?;
            }
        } else if !Unsized::never_known(plan).is_empty() {
            self.note(&self.way_to_ask(&Unsized::of(plan)));
        }
        let cost = aside(plan, estimate).await.map_err(DataFusionError::from)??;
        write(&cost.schema(), &[cost], output)?;
        Ok(())
    }

    /// Note on an estimate without sizes: how to have them requested, and what that takes.
    fn way_to_ask(&self, sizes: &Unsized<'_>) -> String {
        let way = match self.estimates {
            Estimating::Alone => "SET savedsearch.estimate = 'ask'",
            _ => "--estimate=ask",
        };
        let lists = || counted(sizes.lists.len() as u64, "request");
        let lacks = "the estimate lacks numbers of mentions";
        match (sizes.lists.is_empty(), sizes.counts_listed) {
            (true, _) => format!("note: {lacks}; {way} may request them: {}", counted(sizes.requests(), "request")),
            (false, true) => {
                let takes = format!("{} for the list, then 1 for each saved search and window", lists());
                format!("note: {lacks}; {way} may request them: {takes}")
            }
            (false, false) => {
                let lacks = "the estimate lacks the number of saved searches";
                format!("note: {lacks}; {way} may request the list: {}", lists())
            }
        }
    }

    /// Shows the activity of the connections from now on.
    fn progress(&self) -> Progress {
        Progress::start(self.connections.iter().map(|(_, to)| Arc::clone(to)).collect(), self.quiet)
    }

    fn note(&self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }

    /// Requests the list of saved searches of a connection.
    async fn list(&self, connection: &Arc<Connection>) -> Result<(), Broken> {
        let name = self.connections.iter().find(|(_, known)| Arc::ptr_eq(known, connection));
        let catalog = name.map_or(CATALOG, |(name, _)| name.as_str());
        let table = TableReference::full(catalog, SCHEMA, "saved_searches");
        self.context.table(table).await?.select_columns(&["aid"])?.collect().await?;
        Ok(())
    }

    /// Current counters of the connections.
    fn counters(&self) -> Counters {
        let logs = self.connections.iter().map(|(_, connection)| connection.client().log());
        Counters(logs.map(|log| (log.requests.load(Ordering::Relaxed), log.warned())).collect())
    }

    /// Prints warnings and notes added since. Returns true if a warning concerns missing rows.
    fn warn(&self, before: &Counters) -> bool {
        let mut incomplete = false;
        for ((_, connection), (_, warned)) in self.connections.iter().zip(&before.0) {
            let log = connection.client().log();
            let new = usize::try_from(log.warned() - warned).unwrap_or(usize::MAX);
            let warnings = log.warnings();
            for warning in &warnings[warnings.len().saturating_sub(new)..] {
                incomplete |= warning.incomplete;
                match warning.incomplete {
                    true => eprintln!("warning: incomplete result: {}", warning.message),
                    false if self.quiet => {}
                    false => eprintln!("note: {}", warning.message),
                }
            }
        }
        incomplete
    }

    /// Prints a note once if a query has no time filter and reads the default window.
    fn note_window(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        // The summary after a result names the window anyway.
        if self.noted_window || self.quiet || self.reports.is_some() {
            return;
        }
        if let Some(note) = window_note(&windows(plan)) {
            eprintln!("note: {note}");
            self.noted_window = true;
        }
    }
}

/// Requests and warnings of each connection.
struct Counters(Vec<(u64, u64)>);

impl Counters {
    fn requests(&self) -> u64 {
        self.0.iter().map(|(requests, _)| requests).sum()
    }
}

fn internal(error: JoinError) -> Broken {
    Broken::Failed(Failure::line(format!("internal error: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Secret;
    use crate::session::session;

    #[tokio::test]
    async fn two_windows_of_one_scan_are_two() {
        // Planning sends no request, so no service is needed.
        let key = Secret::new("key").expect("a key");
        let connection = Connection::builder("http://127.0.0.1:9/v4", key).build().expect("a connection");
        let context = session(&connection).expect("a session");
        let week =
            |day: u32| format!("(published_at >= '2026-06-{day:02}' AND published_at < '2026-06-{:02}')", day + 7);
        let sql = format!("SELECT id FROM mentions WHERE aid = '7' AND ({} OR {})", week(1), week(20));
        let plan = context.sql(&sql).await.expect("SQL").create_physical_plan().await.expect("a plan");
        let read: Vec<String> = windows(&plan).into_iter().map(|window| window.words).collect();
        assert_eq!(read, ["2026-06-01T00:00:00Z..2026-06-08T00:00:00Z", "2026-06-20T00:00:00Z..2026-06-27T00:00:00Z"]);
    }
}
