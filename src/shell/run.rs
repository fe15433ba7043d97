//! Runs statements one after another.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use futures::StreamExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

use super::estimate::estimate;
use super::output::Output;
use super::progress::Progress;
use crate::connection::Connection;
use crate::error::describe;
use crate::exec::FetchExec;

/// A session at a prompt.
pub struct Shell {
    context: SessionContext,
    connection: Arc<Connection>,
    told_window: bool,
    estimates: bool,
}

/// Why statements were not all run.
#[derive(Debug)]
pub enum Failure {
    /// A query or the service failed; one line for people.
    Query(String),
    /// The user interrupted.
    Cancelled,
    /// The reader of the results has gone, such as `head`. Nobody is left to tell.
    ReaderGone,
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::Query(describe(&error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Query(format!("cannot write the result: {error}")),
        }
    }
}

impl Shell {
    /// A shell over a session made by [`session`](crate::session()).
    pub fn new(context: SessionContext, connection: Arc<Connection>) -> Self {
        Self { context, connection, told_window: false, estimates: false }
    }

    /// Tells what queries would cost instead of running them. Settings and views still take effect.
    #[must_use]
    pub fn estimating(self, estimates: bool) -> Self {
        Self { estimates, ..self }
    }

    /// Runs the statements of a text in order, until one fails or the user interrupts.
    ///
    /// # Errors
    /// [`Failure`], with a line for people.
    pub async fn run(&mut self, text: &str, output: &mut Output) -> Result<(), Failure> {
        for statement in statements(text)? {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            tokio::select! {
                // Dropping the statement's future cancels its requests.
                result = Box::pin(self.run_one(statement, output)) => result.map_err(|failure| self.redacted(failure))?,
                _ = interrupt.recv() => return Err(Failure::Cancelled),
                _ = terminate.recv() => return Err(Failure::Cancelled),
            }
        }
        Ok(())
    }

    /// The engine quotes values, and a value may repeat the key.
    fn redacted(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Query(line) => Failure::Query(self.connection.client().redact(&line)),
            other => other,
        }
    }

    async fn run_one(&mut self, statement: Statement, output: &mut Output) -> Result<(), Failure> {
        let plan = self.context.state().statement_to_plan(statement).await?;
        let plan = match plan {
            // It would run its query: an empty table stands for what comes of it.
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) if self.estimates => {
                let plan = self.context.state().create_physical_plan(&table.input).await?;
                let empty = MemTable::try_new(plan.schema(), vec![Vec::new()])?;
                self.context.register_table(table.name, Arc::new(empty))?;
                return Ok(write(&estimate(&plan)?, output)?);
            }
            plan => plan,
        };
        let frame = self.context.execute_logical_plan(plan).await?;
        if frame.schema().fields().is_empty() {
            // SET and DDL have run, and have no result.
            return Ok(());
        }
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        if self.estimates {
            return Ok(write(&estimate(&plan)?, output)?);
        }
        self.tell_window(&plan);
        let mut stream = execute_stream(plan, task)?;
        let warned = self.connection.client().log().warnings().len();
        let progress = Progress::start(Arc::clone(&self.connection));
        let mut result = output.begin(stream.schema())?;
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
        while let Some(batch) = batches.recv().await {
            let batch = batch?;
            progress.aside(|| result.write(&batch))?;
        }
        // It ended, or it broke; what came of it is not whole then.
        reading
            .await
            .map_err(|error| Failure::Query(format!("the query failed in a way that nobody foresaw: {error}")))?;
        progress.aside(|| result.finish())?;
        for warning in self.connection.client().log().warnings().iter().skip(warned) {
            eprintln!("warning: this result is not whole: {}", warning.message);
        }
        Ok(())
    }

    /// Tells once which window is read where the query bounds no time.
    fn tell_window(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if self.told_window {
            return;
        }
        if let Some(window) = default_window(plan) {
            eprintln!("note: no time is bounded: reading the profile's default window, {window}; see README, Time");
            self.told_window = true;
        }
    }
}

fn write(batch: &RecordBatch, output: &mut Output) -> io::Result<()> {
    let mut result = output.begin(batch.schema())?;
    result.write(batch)?;
    result.finish()
}

fn default_window(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let own = plan.downcast_ref::<FetchExec>().and_then(FetchExec::default_window).map(str::to_owned);
    own.or_else(|| plan.children().into_iter().find_map(default_window))
}

/// The statements of a text, empty ones left out.
fn statements(text: &str) -> Result<VecDeque<Statement>, DataFusionError> {
    DFParserBuilder::new(text).with_dialect(&GenericDialect {}).build()?.parse_statements()
}
