//! DoPut: statements that change the session, parameters of prepared statements, and rows to ingest.

use std::sync::Arc;

use arrow_flight::FlightData;
use arrow_flight::sql::{Command, DoPutPreparedStatementResult, DoPutUpdateResult};
use datafusion::common::ScalarValue;
use futures::{Stream, StreamExt, stream};
use prost::Message;
use prost::bytes::Bytes;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Status, Streaming};

use super::super::command::{described, name};
use super::super::state::Bound;
use super::super::{ingest, parameters};
use super::Service;
use super::describe::no_transaction;
use super::stream::{PATIENCE, late, timely};
use crate::host::effects;
use crate::host::sessions::Session;

impl Service {
    pub(super) async fn put(
        &self,
        session: Arc<Session>,
        mut messages: Streaming<FlightData>,
    ) -> Result<Bytes, Status> {
        let first = timeout(PATIENCE, messages.message()).await.map_err(|_| late())??;
        let first = first.ok_or_else(|| Status::invalid_argument("no message received"))?;
        // A stream without a message does not keep its session from being closed.
        let _busy = session.busy();
        let descriptor = first.flight_descriptor.clone();
        let command =
            described(&descriptor.ok_or_else(|| Status::invalid_argument("the first message carries no command"))?)?;
        let messages = stream::iter([Ok(first)]).chain(messages);
        let updated = |record_count| DoPutUpdateResult { record_count }.encode_to_vec().into();
        match command {
            Command::CommandStatementUpdate(update) => {
                no_transaction(update.transaction_id.as_ref())?;
                self.update(session, update.query, None).await.map(updated)
            }
            Command::CommandPreparedStatementUpdate(update) => {
                let (prepared, session) = self.0.prepared.find(&update.prepared_statement_handle, &session)?;
                let bound =
                    self.parameters(&session, messages).await?.map(|bound| bound.sets).or_else(|| prepared.bound());
                self.update(session, prepared.sql.clone(), bound).await.map(updated)
            }
            Command::CommandPreparedStatementQuery(query) => {
                let handle = query.prepared_statement_handle;
                let (prepared, _) = self.0.prepared.find(&handle, &session)?;
                let bound = self.parameters(&session, messages).await?;
                prepared.bind(bound);
                // Clients may continue with the handle returned here; it is the same one.
                Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) }.encode_to_vec().into())
            }
            Command::CommandStatementIngest(ingest) => {
                no_transaction(ingest.transaction_id.as_ref())?;
                ingest::ingest(&self.0.host, &session, ingest, timely(messages)).await.map(updated)
            }
            command => Err(Status::unimplemented(format!("{} is not supported in DoPut", name(&command)))),
        }
    }

    async fn parameters(
        &self,
        session: &Session,
        messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
    ) -> Result<Option<Bound>, Status> {
        // In a separate task, so that a panic caused by malformed data does not close the connection.
        let most = self.0.host.limits.parameter_rows;
        let reading = AbortOnDropHandle::new(tokio::spawn(parameters::read(timely(messages), most)));
        let read = reading.await.map_err(|_| Status::invalid_argument("malformed parameters"))??;
        let Some((sets, bytes)) = read else { return Ok(None) };
        let held = self.0.host.hold(session, "bound parameters", usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(Some(Bound::new(sets, held)))
    }

    /// Runs a statement that the client sent as an update.
    async fn update(
        &self,
        session: Arc<Session>,
        sql: String,
        bound: Option<Vec<Vec<ScalarValue>>>,
    ) -> Result<i64, Status> {
        let (service, caller) = (self.clone(), Arc::clone(&session));
        self.0
            .host
            .away(&caller, async move {
                let statement = service.0.host.statement(&session, &sql).await?;
                if !statement.effect {
                    return Err(Status::invalid_argument(
                        "the statement returns rows: run it as a query, not as an update",
                    ));
                }
                effects::run(&service.0.host, &session, &statement, bound).await?;
                Ok(0)
            })
            .await
    }
}
