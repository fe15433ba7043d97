//! Runs statements one after another.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use futures::StreamExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::estimate::estimate;
use super::mistakes::Mistake;
use super::output::Output;
use super::progress::Progress;
use super::report::Report;
use super::screen::Shown;
use crate::catalog::CATALOG;
use crate::connection::Connection;
use crate::exec::{FetchExec, spent, windows};
use crate::table::TableFunctions;

/// Rows of the last result that are kept to be drawn: more make no chart.
const KEPT: usize = 10_000;

/// A session at a prompt.
pub struct Shell {
    context: SessionContext,
    /// Connections by name.
    connections: Vec<(String, Arc<Connection>)>,
    /// Position of the one that queries are about where they name none.
    chosen: usize,
    told_window: bool,
    estimates: bool,
    reports: Option<Reports>,
    last: Option<Kept>,
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
    /// Whether it is all there.
    pub(super) whole: bool,
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
        Self { context, connections, chosen: 0, told_window: false, estimates: false, reports: None, last: None }
    }

    /// Tells what queries would cost instead of running them. Settings and views still take effect.
    #[must_use]
    pub fn estimating(self, estimates: bool) -> Self {
        Self { estimates, ..self }
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
        let functions = TableFunctions::new(self.connection());
        let state = self.context.state_ref();
        let mut state = state.write();
        state.config_mut().options_mut().catalog.default_catalog = name.to_owned();
        // The latest planner is asked first.
        state.register_relation_planner(Arc::new(functions)).map_err(|error| error.to_string())
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
            let result = tokio::select! {
                // Dropping the statement's future cancels its requests.
                result = Box::pin(self.run_one(statement, output)) => result,
                _ = interrupt.recv() => Err(Broken::Failed(Failure::Cancelled)),
                _ = terminate.recv() => Err(Broken::Failed(Failure::Cancelled)),
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

    /// Says what statements would cost.
    pub(super) async fn cost(&mut self, text: &str, output: &mut Output) -> Result<(), Failure> {
        let before = (std::mem::replace(&mut self.estimates, true), self.reports.take());
        let result = self.run(text, output).await;
        (self.estimates, self.reports) = before;
        result
    }

    async fn mistake(&self, error: &DataFusionError, text: &str) -> Failure {
        let Mistake { line, marked } = Mistake::of(error, text, &self.context).await;
        // The engine quotes values, and a value may repeat the key.
        let redact = |text: String| self.connection().client().redact(&text);
        Failure::Query(Mistake { line: redact(line), marked: marked.map(|lines| lines.map(redact)) })
    }

    async fn run_one(&mut self, statement: Statement, output: &mut Output) -> Result<Option<Report>, Broken> {
        let begun = Instant::now();
        let plan = self.context.state().statement_to_plan(statement).await?;
        let plan = match plan {
            // It would run its query: an empty table stands for what comes of it.
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) if self.estimates => {
                let plan = self.context.state().create_physical_plan(&table.input).await?;
                let empty = MemTable::try_new(plan.schema(), vec![Vec::new()])?;
                self.context.register_table(table.name, Arc::new(empty))?;
                write(&estimate(&plan)?, output)?;
                return Ok(None);
            }
            plan => plan,
        };
        let frame = self.context.execute_logical_plan(plan).await?;
        if frame.schema().fields().is_empty() {
            // SET and DDL have run, and have no result.
            if self.reports.is_some() {
                eprintln!("{}", console::style("done").for_stderr().dim());
            }
            return Ok(None);
        }
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        if self.estimates {
            write(&estimate(&plan)?, output)?;
            return Ok(None);
        }
        self.tell_window(&plan);
        let (planning, mut first) = (begun.elapsed(), None);
        let mut stream = execute_stream(Arc::clone(&plan), task)?;
        let warned = self.connection().client().log().warnings().len();
        let mut progress = Some(Progress::start(Arc::clone(self.connection())));
        let mut result = output.begin(stream.schema())?;
        let mut kept = Kept { schema: stream.schema(), batches: Vec::new(), whole: true };
        self.last = None;
        // On a task of its own: a computation that never pauses must not keep an interrupt from being seen.
        let (sender, mut batches) = tokio::sync::mpsc::channel(1);
        let reading = tokio::spawn(async move {
            while let Some(batch) = stream.next().await {
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        let reading = AbortOnDropHandle::new(reading);
        let mut wanted = ControlFlow::Continue(());
        while wanted.is_continue()
            && let Some(batch) = batches.recv().await
        {
            let batch = batch?;
            first = first.or_else(|| (batch.num_rows() > 0).then(|| begun.elapsed()));
            wanted = aside(progress.as_ref(), || result.write(&batch))?;
            if self.reports.is_some() {
                kept.add(batch);
            }
            if result.is_paging() {
                progress = None;
            }
        }
        if wanted.is_break() {
            // What nobody reads on costs nothing more.
            drop(reading);
            kept.whole = false;
        } else {
            // It ended, or it broke; what came of it is not whole then.
            reading.await.map_err(|error| {
                Broken::Failed(Failure::line(format!("the query failed in a way that nobody foresaw: {error}")))
            })?;
        }
        let elapsed = begun.elapsed();
        let shown = aside(progress.as_ref(), || result.finish())?;
        output.ended();
        drop(progress);
        self.last = Some(kept);
        for warning in self.connection().client().log().warnings().iter().skip(warned) {
            eprintln!("warning: this result is not whole: {}", warning.message);
        }
        let (spent, windows) = (spent(&plan), windows(&plan));
        Ok(Some(Report { shown, planning, first, elapsed, spent, windows }))
    }

    /// Tells once which window is read where the query bounds no time.
    fn tell_window(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        // After a result it is told anyway.
        if self.told_window || self.reports.is_some() {
            return;
        }
        if let Some(window) = default_window(plan) {
            eprintln!("note: no time is bounded: reading the profile's default window, {window}; see README, Time");
            self.told_window = true;
        }
    }
}

impl Kept {
    fn add(&mut self, batch: RecordBatch) {
        let rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        self.whole &= rows + batch.num_rows() <= KEPT;
        if self.whole {
            self.batches.push(batch);
        } else {
            self.batches.clear();
        }
    }
}

/// Prints something, with the line of the progress out of the way.
fn aside<T>(progress: Option<&Progress>, print: impl FnOnce() -> T) -> T {
    match progress {
        Some(progress) => progress.aside(print),
        None => print(),
    }
}

/// Writes a result that is there.
pub(super) fn write(batch: &RecordBatch, output: &mut Output) -> io::Result<Shown> {
    let mut result = output.begin(batch.schema())?;
    // It is all there: whether more is wanted makes no difference.
    let _ = result.write(batch)?;
    let shown = result.finish()?;
    output.ended();
    Ok(shown)
}

fn default_window(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let own = plan.downcast_ref::<FetchExec>().and_then(FetchExec::default_window).map(str::to_owned);
    own.or_else(|| plan.children().into_iter().find_map(default_window))
}

/// The statements of a text, empty ones left out.
fn statements(text: &str) -> Result<VecDeque<Statement>, DataFusionError> {
    DFParserBuilder::new(text).with_dialect(&GenericDialect {}).build()?.parse_statements()
}
