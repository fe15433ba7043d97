//! Runs statements one after another.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlannedStatement};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use futures::StreamExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinError;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::diagnostics::Mistake;
use super::estimate::estimate;
use super::output::Output;
use super::progress::Progress;
use super::report::{Report, counted};
use super::screen::{Rest, Shown};
use crate::catalog::CATALOG;
use crate::connection::Connection;
use crate::exec::{Spent, WindowRead, spent, windows};

/// Rows of the last result that are kept to be drawn: more make no chart.
const KEPT: usize = 10_000;

/// How long it is looked whether a result ends where no more of it is shown: what is there by then was asked for anyway.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// A session at a prompt.
pub struct Shell {
    context: SessionContext,
    /// Connections by name.
    connections: Vec<(String, Arc<Connection>)>,
    /// Position of the one that queries are about where they name none.
    chosen: usize,
    told_window: bool,
    estimates: Estimates,
    reports: Option<Reports>,
    last: Option<Kept>,
}

/// Whether statements are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Estimates {
    /// They are.
    None,
    /// Queries are not; what costs nothing takes effect, since statements behind it may need it.
    Script,
    /// Nothing takes effect.
    Alone,
}

/// What is said after each result.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reports {
    /// Whether it is said where the time went.
    pub(super) timing: bool,
}

/// The last result.
pub(super) struct Kept {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    /// Why it is not all there.
    pub(super) lacks: Option<&'static str>,
}

/// Why statements were not all run.
#[derive(Debug)]
pub enum Failure {
    /// A query or the service failed.
    Query(Mistake),
    /// The user interrupted.
    Cancelled,
    /// The reader of the results has gone, such as `head`. Nobody is left to tell.
    ReaderGone,
}

impl Failure {
    /// A failure with one line for people.
    pub(super) fn line(line: impl Into<String>) -> Self {
        Self::Query(Mistake::new(line))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            // What the writers say themselves, of results that are not as the format takes them.
            io::ErrorKind::Other => Self::line(error.to_string()),
            _ => Self::line(format!("cannot write the result: {error}")),
        }
    }
}

/// Why a statement ended early.
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

impl Shell {
    /// A shell over a session made by [`session`](crate::session()).
    pub fn new(context: SessionContext, connection: Arc<Connection>) -> Self {
        // Errors then say where in a statement they are.
        context.state_ref().write().config_mut().options_mut().sql_parser.collect_spans = true;
        let connections = vec![(CATALOG.to_owned(), connection)];
        Self {
            context,
            connections,
            chosen: 0,
            told_window: false,
            estimates: Estimates::None,
            reports: None,
            last: None,
        }
    }

    /// Tells what queries would cost instead of running them. Settings and views still take effect.
    #[must_use]
    pub fn estimating(self, estimates: bool) -> Self {
        Self { estimates: if estimates { Estimates::Script } else { Estimates::None }, ..self }
    }

    /// Knows these connections by name, each a catalog of the session; the one of [`Shell::new`] is among them.
    #[must_use]
    pub fn knowing(mut self, connections: Vec<(String, Arc<Connection>)>) -> Self {
        let chosen = connections.iter().position(|(_, other)| Arc::ptr_eq(other, self.connection()));
        if let Some(chosen) = chosen {
            (self.connections, self.chosen) = (connections, chosen);
        }
        self
    }

    pub(super) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Connections by name.
    pub(super) fn connections(&self) -> &[(String, Arc<Connection>)] {
        &self.connections
    }

    /// The connection that queries are about where they name none.
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connections[self.chosen].1
    }

    /// Its name.
    pub(super) fn connection_name(&self) -> &str {
        &self.connections[self.chosen].0
    }

    /// Asks another connection from now on.
    ///
    /// # Errors
    /// One line where there is none of this name.
    pub(super) fn choose(&mut self, name: &str) -> Result<(), String> {
        let Some(at) = self.connections.iter().position(|(known, _)| known == name) else {
            let names: Vec<&str> = self.connections.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!("there is no connection {name}; there are {}", names.join(", ")));
        };
        self.chosen = at;
        let state = self.context.state_ref();
        let mut state = state.write();
        state.config_mut().options_mut().catalog.default_catalog = name.to_owned();
        Ok(())
    }

    /// Says what a result came to.
    pub(super) fn report(&mut self, reports: Reports) {
        self.reports = Some(reports);
    }

    /// The last result.
    pub(super) fn last(&self) -> Option<&Kept> {
        self.last.as_ref()
    }

    /// Runs the statements of a text in order, until one fails or the user interrupts.
    ///
    /// # Errors
    /// [`Failure`], with a line for people.
    pub async fn run(&mut self, text: &str, output: &mut Output) -> Result<(), Failure> {
        let statements = match statements(text) {
            Ok(statements) => statements,
            Err(error) => return Err(self.mistake(&error, text).await),
        };
        for statement in statements {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut hang_up = signal(SignalKind::hangup())?;
            let result = tokio::select! {
                // Dropping the statement's future cancels its requests.
                result = Box::pin(self.run_one(statement, output)) => result,
                _ = interrupt.recv() => Err(Broken::Failed(Failure::Cancelled)),
                _ = terminate.recv() => Err(Broken::Failed(Failure::Cancelled)),
                _ = hang_up.recv() => Err(Broken::Failed(Failure::Cancelled)),
            };
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

    /// Says what a query would cost, and changes nothing.
    pub(super) async fn cost(&mut self, text: &str, output: &mut Output) -> Result<(), Failure> {
        let before = (std::mem::replace(&mut self.estimates, Estimates::Alone), self.reports.take());
        let result = self.run(text, output).await;
        (self.estimates, self.reports) = before;
        result
    }

    async fn mistake(&self, error: &DataFusionError, text: &str) -> Failure {
        let Mistake { line, marked } = Mistake::of(error, text, &self.context).await;
        Failure::Query(Mistake {
            line: self.redact(line),
            marked: marked.map(|lines| lines.map(|line| self.redact(line))),
        })
    }

    /// The engine quotes values, and a value may repeat a key.
    pub(super) fn redact(&self, text: String) -> String {
        self.connections.iter().fold(text, |text, (_, connection)| connection.client().redact(&text))
    }

    async fn run_one(&mut self, statement: Statement, output: &mut Output) -> Result<Option<Report>, Broken> {
        let begun = Instant::now();
        let plan = self.context.state().statement_to_plan(statement).await?;
        if self.estimates != Estimates::None && self.estimate(&plan, output).await? {
            return Ok(None);
        }
        let at_once = matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Statement(_));
        let before = self.standing();
        let progress = Progress::start(self.connections.iter().map(|(_, to)| Arc::clone(to)).collect());
        let read = self.windows_of_input(&plan).await?;
        let context = self.context.clone();
        let executing = tokio::spawn(async move { context.execute_logical_plan(plan).await });
        let frame = AbortOnDropHandle::new(executing).await.map_err(unforeseen)??;
        if frame.schema().fields().is_empty() {
            if !at_once {
                return Err(Broken::Failed(Failure::line("a query without columns has nothing to show: name some")));
            }
            drop(progress);
            return Ok(Some(self.report_of_effect(begun, &before, read)));
        }
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        if self.estimates != Estimates::None {
            tell_cost(&plan, output)?;
            return Ok(None);
        }
        self.tell_window(&plan);
        let planning = begun.elapsed();
        self.last = None;
        let printed = print_result(&plan, task, begun, progress, self.reports.is_some(), output).await?;
        let Printed { shown, first, elapsed, kept } = printed;
        self.last = Some(kept);
        self.warn(&before);
        if self.reports.is_none() && shown.hidden > 0 {
            let columns = counted(shown.hidden as u64, "column");
            eprintln!("note: {columns} left out for want of room: a wider terminal, or --format csv, shows all");
        }
        let (spent, windows, warned) = (spent(&plan), windows(&plan), self.standing().warned() > before.warned());
        Ok(Some(Report { shown: Some(shown), planning, first, elapsed, spent, windows, warned }))
    }

    /// The windows of what a table is made of, which is read when the table is made.
    async fn windows_of_input(&mut self, plan: &LogicalPlan) -> Result<Vec<WindowRead>, Broken> {
        let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) = plan else { return Ok(Vec::new()) };
        let input = self.context.state().create_physical_plan(&table.input).await?;
        self.tell_window(&input);
        Ok(windows(&input))
    }

    /// What SET and DDL came to, which have run and have no result.
    fn report_of_effect(&mut self, begun: Instant, before: &Standing, windows: Vec<WindowRead>) -> Report {
        let after = self.standing();
        self.warn(before);
        let spent = Spent { requests: after.requests() - before.requests(), ..Spent::default() };
        let (elapsed, warned) = (begun.elapsed(), after.warned() > before.warned());
        Report { shown: None, planning: elapsed, first: None, elapsed, spent, windows, warned }
    }

    /// Prints what a statement would cost that has its effect at once, or says that it has none; `false` for a query.
    async fn estimate(&mut self, plan: &LogicalPlan, output: &mut Output) -> Result<bool, Broken> {
        let alone = self.estimates == Estimates::Alone;
        match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => {
                let input = self.context.state().create_physical_plan(&table.input).await?;
                if !alone {
                    // It would run its query: an empty table stands for what comes of it, for the statements behind.
                    let empty = MemTable::try_new(input.schema(), vec![Vec::new()])?;
                    self.context.register_table(table.name.clone(), Arc::new(empty))?;
                }
                tell_cost(&input, output)?;
                Ok(true)
            }
            LogicalPlan::Dml(_) | LogicalPlan::Copy(_) if alone => {
                for input in plan.inputs() {
                    let input = self.context.state().create_physical_plan(input).await?;
                    tell_cost(&input, output)?;
                }
                Ok(true)
            }
            LogicalPlan::Statement(statement) if alone && matches!(statement, PlannedStatement::Execute(_)) => {
                Err(Broken::Failed(Failure::line("\\cost does not look into prepared statements: give it the query")))
            }
            LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) if alone => {
                Err(Broken::Failed(Failure::line("\\cost takes a query: this takes effect without a request")))
            }
            _ => Ok(false),
        }
    }

    /// What the connections have done by now.
    fn standing(&self) -> Standing {
        let logs = self.connections.iter().map(|(_, connection)| connection.client().log());
        Standing(logs.map(|log| (log.requests.load(Ordering::Relaxed), log.warned())).collect())
    }

    /// Prints what was warned of since.
    fn warn(&self, before: &Standing) {
        for ((_, connection), (_, warned)) in self.connections.iter().zip(&before.0) {
            let log = connection.client().log();
            let new = usize::try_from(log.warned() - warned).unwrap_or(usize::MAX);
            let warnings = log.warnings();
            for warning in &warnings[warnings.len().saturating_sub(new)..] {
                match warning.incomplete {
                    true => eprintln!("warning: this result is not whole: {}", warning.message),
                    false => eprintln!("note: {}", warning.message),
                }
            }
        }
    }

    /// Tells once which window is read where the query bounds no time.
    fn tell_window(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        // After a result it is told anyway.
        if self.told_window || self.reports.is_some() {
            return;
        }
        if let Some(WindowRead { words, .. }) = windows(plan).iter().find(|window| window.default) {
            eprintln!("note: no time is bounded: reading the profile's default window, {words}; see README, Time");
            self.told_window = true;
        }
    }
}

/// Requests and warnings of each connection.
struct Standing(Vec<(u64, u64)>);

impl Standing {
    fn requests(&self) -> u64 {
        self.0.iter().map(|(requests, _)| requests).sum()
    }

    fn warned(&self) -> u64 {
        self.0.iter().map(|(_, warned)| warned).sum()
    }
}

fn unforeseen(error: JoinError) -> Broken {
    Broken::Failed(Failure::line(format!("internal error while running the query: {error}")))
}

impl Kept {
    fn add(&mut self, batch: RecordBatch) {
        let rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        if rows + batch.num_rows() > KEPT {
            self.lacks = Some("was too long to be kept");
            self.batches.clear();
        }
        if self.lacks.is_none() {
            self.batches.push(batch);
        }
    }
}

/// Writes what a plan would cost.
fn tell_cost(plan: &Arc<dyn ExecutionPlan>, output: &mut Output) -> Result<(), Broken> {
    let cost = estimate(plan)?;
    write(&cost.schema(), &[cost], output)?;
    Ok(())
}

/// Writes a result that is there.
pub(super) fn write(schema: &SchemaRef, batches: &[RecordBatch], output: &mut Output) -> io::Result<Shown> {
    let mut result = output.begin(Arc::clone(schema))?;
    for batch in batches {
        // It is all there: whether more is wanted makes no difference.
        let _ = result.write(batch)?;
    }
    let shown = result.finish()?;
    output.ended();
    Ok(shown)
}

/// The statements of a text, empty ones left out.
fn statements(text: &str) -> Result<VecDeque<Statement>, DataFusionError> {
    DFParserBuilder::new(text).with_dialect(&GenericDialect {}).build()?.parse_statements()
}

/// What came of printing a result.
struct Printed {
    shown: Shown,
    /// The time to the first row.
    first: Option<Duration>,
    /// The whole time, printing apart.
    elapsed: Duration,
    kept: Kept,
}

/// Reads a result and prints it as it comes, as far as somebody reads on. `keep`: whether its rows are kept to be drawn.
async fn print_result(
    plan: &Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    begun: Instant,
    progress: Progress,
    keep: bool,
    output: &mut Output,
) -> Result<Printed, Broken> {
    let mut progress = Some(progress);
    let mut stream = execute_stream(Arc::clone(plan), task)?;
    let mut result = output.begin(stream.schema())?;
    let mut kept = Kept { schema: stream.schema(), batches: Vec::new(), lacks: None };
    // On a task of its own: a computation that never pauses must not keep an interrupt from being seen.
    let (sender, mut batches) = tokio::sync::mpsc::channel(1);
    let reading = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(batch) = stream.next().await {
            if sender.send(batch).await.is_err() {
                break;
            }
        }
    }));
    let (mut first, mut printing, mut rest) = (None, Duration::ZERO, Rest::Nothing);
    while rest == Rest::Nothing
        && let Some(batch) = batches.recv().await
    {
        let batch = batch?;
        first = first.or_else(|| (batch.num_rows() > 0).then(|| begun.elapsed()));
        if result.would_print(&batch) {
            progress = None;
        }
        let printed = Instant::now();
        rest = result.write(&batch)?;
        printing += printed.elapsed();
        if keep {
            kept.add(batch);
        }
    }
    let soon = Instant::now() + ON_ITS_WAY;
    while matches!(rest, Rest::Unknown | Rest::Left) {
        // What is on its way is looked at.
        rest = match timeout_at(soon, batches.recv()).await {
            Ok(None) => Rest::Nothing,
            Ok(Some(Ok(batch))) if batch.num_rows() == 0 => continue,
            Ok(Some(Ok(_))) if rest == Rest::Unknown => Rest::Some,
            _ => break,
        };
    }
    if rest == Rest::Nothing {
        // It ended, or it broke; what came of it is not whole then.
        reading.await.map_err(unforeseen)?;
    } else {
        // What nobody reads on costs nothing more.
        drop(reading);
        kept.lacks.get_or_insert("was not read to its end");
    }
    let elapsed = begun.elapsed().saturating_sub(printing);
    drop(progress);
    let shown = Shown { rest, ..result.finish()? };
    output.ended();
    Ok(Printed { shown, first, elapsed, kept })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Secret;
    use crate::session::session;

    #[tokio::test]
    async fn two_windows_of_one_scan_are_two() {
        // Nothing is asked, so nobody has to answer.
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
