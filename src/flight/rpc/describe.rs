//! Planning of commands: metadata rows, a planned query, or a statement that has already run.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow_flight::sql::{Command, CommandStatementQuery};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use prost::bytes::Bytes;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use super::super::command::{flight_status, name};
use super::super::results::Pending;
use super::super::{effects, info, metadata};
use super::Service;
use crate::host::planner::{Statement, bytes_of_plan, runnable};
use crate::host::sessions::Session;
use crate::host::type_compat::result_schema;

/// Outcome of planning a command.
pub(super) enum Described {
    /// Rows that are available without a query.
    Known(RecordBatch),
    /// A query that has not run yet.
    Query(Pending),
    /// A statement without rows; it has run if that was requested.
    Done,
}

impl Service {
    /// Runs work that may compute for long in the session's lane, limited to the statement time. It is aborted if the
    /// client disconnects.
    pub(super) async fn away<T: Send + 'static>(
        &self,
        session: &Session,
        work: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        let seconds = self.0.host.limits.statement_seconds;
        let lane = self.0.host.lanes.enter(&session.lane);
        // The session stays in its lane until the work has ended, which may be after the client has disconnected.
        let handle = lane.handle().clone();
        let work = AbortOnDropHandle::new(handle.spawn(async move {
            let _lane = lane;
            work.await
        }));
        let done = timeout(Duration::from_secs(seconds), work).await;
        let done = done.map_err(|_| Status::deadline_exceeded(format!("statement timed out after {seconds} s")))?;
        done.map_err(|_| Status::internal("internal error while running the statement"))?
    }

    /// Plans a command. With `run`, a statement without a result is executed.
    pub(super) async fn describe(
        &self,
        session: &Arc<Session>,
        command: Command,
        run: bool,
    ) -> Result<Described, Status> {
        match command {
            Command::CommandStatementQuery(CommandStatementQuery { query, transaction_id }) => {
                no_transaction(transaction_id.as_ref())?;
                let statement = self.statement(session, &query).await?;
                self.described(session, &statement, None, run).await
            }
            Command::CommandPreparedStatementQuery(command) => {
                let (prepared, session) = self.0.prepared.find(&command.prepared_statement_handle, session)?;
                let bound = prepared.bound();
                // Planned again, since its tables may have changed.
                let statement = self.statement(&session, &prepared.sql).await?;
                self.described(&session, &statement, bound, run).await
            }
            command => match known(session, command).await? {
                Ok(rows) => Ok(Described::Known(rows)),
                Err(command) => Err(Status::unimplemented(format!("{} is not supported for queries", name(&command)))),
            },
        }
    }

    pub(super) async fn describe_away(
        &self,
        session: &Arc<Session>,
        command: Command,
        run: bool,
    ) -> Result<Described, Status> {
        let (service, owner) = (self.clone(), Arc::clone(session));
        self.away(session, async move { service.describe(&owner, command, run).await }).await
    }

    pub(super) async fn described(
        &self,
        session: &Arc<Session>,
        statement: &Statement,
        bound: Option<Vec<Vec<ScalarValue>>>,
        run: bool,
    ) -> Result<Described, Status> {
        let failed = |error: DataFusionError| session.status(&error);
        if statement.effect {
            if run {
                effects::run(&self.0.host, session, statement, bound).await?;
            }
            return Ok(Described::Done);
        }
        // Without parameters, one empty set.
        let sets = bound.unwrap_or_else(|| vec![Vec::new()]);
        let plans = sets.into_iter().map(|set| statement.bind(set)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let first = match plans.first() {
            Some(plan) => Some(runnable(&session.context, plan.clone()).await.map_err(failed)?),
            None => None,
        };
        let held = self.0.host.hold("result", plans.iter().map(bytes_of_plan).sum())?;
        let schema =
            first.as_ref().map_or_else(|| Arc::clone(&statement.schema), |first| result_schema(&first.plan.schema()));
        Ok(Described::Query(Pending::new(plans, first, schema, held, &self.0.host.cancelled)))
    }

    pub(super) async fn statement(&self, session: &Session, sql: &str) -> Result<Statement, Status> {
        if sql.len() > self.0.host.limits.statement_bytes {
            let (has, most) = (sql.len(), self.0.host.limits.statement_bytes);
            return Err(Status::resource_exhausted(format!("statement too long: {has} bytes, the limit is {most}")));
        }
        tracing::debug!(principal = %session.principal.name, sql = session.redact(sql), "statement");
        Statement::of(&session.context, sql).await.map_err(|error| session.status(&error))
    }
}

/// Returns the rows of a metadata command, or any other command unchanged.
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

pub(super) fn no_transaction(id: Option<&Bytes>) -> Result<(), Status> {
    match id {
        Some(id) if !id.is_empty() => {
            Err(Status::invalid_argument("transactions are not supported: the service is read-only"))
        }
        _ => Ok(()),
    }
}
