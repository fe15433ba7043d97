//! Planning of commands: metadata rows, a planned query, or a statement that has already run.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow_flight::sql::{Command, CommandStatementQuery};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use prost::bytes::Bytes;
use tonic::Status;

use super::super::command::{flight_status, name};
use super::super::{info, metadata};
use super::Service;
use crate::host::effects;
use crate::host::planner::Statement;
use crate::host::running::Pending;
use crate::host::sessions::Session;
use crate::session::not_supported;

/// Outcome of planning a command.
pub(super) enum Described {
    /// Rows that are available without a query.
    Known(RecordBatch),
    /// A query that has not run yet.
    Query(Box<Pending>),
    /// A statement without rows; it has run if that was requested.
    Done,
}

impl Service {
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
                let statement = self.0.host.statement(session, &query).await?;
                self.described(session, &statement, None, run).await
            }
            Command::CommandPreparedStatementQuery(command) => {
                let (prepared, session) = self.0.prepared.find(&command.prepared_statement_handle, session)?;
                let bound = prepared.bound();
                let statement = prepared.statement(&self.0.host, &session).await?;
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
        self.0.host.away(session, async move { service.describe(&owner, command, run).await }).await
    }

    pub(super) async fn described(
        &self,
        session: &Arc<Session>,
        statement: &Statement,
        bound: Option<Vec<Vec<ScalarValue>>>,
        run: bool,
    ) -> Result<Described, Status> {
        if statement.effect {
            if run {
                effects::run(&self.0.host, session, statement, bound).await?;
            }
            return Ok(Described::Done);
        }
        // Without parameters, one empty set.
        let sets = bound.unwrap_or_else(|| vec![Vec::new()]);
        Ok(Described::Query(Box::new(Pending::plan(&self.0.host, session, statement, sets).await?)))
    }
}

/// Returns the rows of a metadata command, or any other command unchanged.
async fn known(session: &Session, command: Command) -> Result<Result<RecordBatch, Command>, Status> {
    let context = &session.context;
    let failed = |error: DataFusionError| Status::from(session.failure(&error));
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
        Some(id) if !id.is_empty() => Err(Status::invalid_argument(not_supported("transactions are"))),
        _ => Ok(()),
    }
}
