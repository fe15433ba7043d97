//! DoAction: prepared statements, cancellation, renewal of results, and session options.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow_flight::sql::{
    ActionCancelQueryResult, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, ProstMessageExt,
};
use arrow_flight::{Action, CancelFlightInfoResult, CancelStatus, FlightInfo};
use prost::Message;
use prost::bytes::Bytes;
use tonic::Status;

use super::super::command::{Act, act};
use super::super::options::{CloseSessionResult, CloseSessionStatus, options, set_options};
use super::super::state::Prepared;
use super::Service;
use super::describe::no_transaction;
use super::get_flight_info::schema_bytes;
use super::ticket::ticket_handle;
use crate::host::sessions::Session;

impl Service {
    pub(super) async fn act(&self, session: Arc<Session>, action: &Action) -> Result<Option<Bytes>, Status> {
        let bytes = |message: Vec<u8>| Some(Bytes::from(message));
        Ok(match act(action)? {
            Act::Prepare(request) => bytes(self.prepare(&session, request).await?.as_any().encode_to_vec()),
            Act::ClosePrepared(request) => {
                self.0.prepared.remove(&request.prepared_statement_handle, &session);
                None
            }
            Act::CancelQuery(request) => {
                let info = FlightInfo::decode(request.info.as_ref())
                    .map_err(|_| Status::invalid_argument("malformed FlightInfo"))?;
                // The enum values equal those of Flight's own CancelFlightInfo.
                let result = self.cancel(&session, &info)? as i32;
                bytes(ActionCancelQueryResult { result }.as_any().encode_to_vec())
            }
            Act::CancelInfo(request) => {
                let info = request.info.ok_or_else(|| Status::invalid_argument("missing FlightInfo"))?;
                bytes(CancelFlightInfoResult::new(self.cancel(&session, &info)?).encode_to_vec())
            }
            Act::Renew(request) => {
                let endpoint = request.endpoint.ok_or_else(|| Status::invalid_argument("missing endpoint"))?;
                let handle = ticket_handle(&endpoint)
                    .ok_or_else(|| Status::invalid_argument("the endpoint's ticket is not a result ticket"))?;
                self.0.results.find(&handle, &session)?;
                bytes(endpoint.with_expiration_time(self.expiration()).encode_to_vec())
            }
            Act::SetOptions(request) => bytes(set_options(&self.0.host, &session, request).await.encode_to_vec()),
            Act::Options => bytes(options(&session).encode_to_vec()),
            Act::CloseSession => {
                self.0.host.sessions.close(&session);
                self.0.sweep();
                bytes(CloseSessionResult { status: CloseSessionStatus::Closed as i32 }.encode_to_vec())
            }
        })
    }

    fn cancel(&self, session: &Session, info: &FlightInfo) -> Result<CancelStatus, Status> {
        let handles: Vec<Bytes> = info.endpoint.iter().filter_map(ticket_handle).collect();
        if handles.is_empty() {
            return Ok(CancelStatus::NotCancellable);
        }
        for handle in handles {
            let (pending, _) = self.0.results.find(&handle, session)?;
            pending.cancelled.cancel();
        }
        Ok(CancelStatus::Cancelled)
    }

    async fn prepare(
        &self,
        session: &Arc<Session>,
        request: ActionCreatePreparedStatementRequest,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        no_transaction(request.transaction_id.as_ref())?;
        self.0.host.allow_length(&request.query)?;
        let held = self.0.host.hold(session, "prepared statement", request.query.len())?;
        let prepared = Arc::new(Prepared::new(request.query, held));
        let (service, owner, planned) = (self.clone(), Arc::clone(session), Arc::clone(&prepared));
        let work = async move { planned.statement(&service.0.host, &owner).await };
        let statement = self.0.host.away(session, work).await?;
        // Clients expect empty bytes for a statement without a result, or without parameters.
        let schema = |schema: &SchemaRef| {
            if schema.fields().is_empty() { Ok(Bytes::new()) } else { schema_bytes(schema) }
        };
        let (dataset_schema, parameter_schema) = (schema(&statement.schema)?, schema(&statement.parameters)?);
        let handle = self.0.prepared.insert(session, prepared)?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle.into(),
            dataset_schema,
            parameter_schema,
        })
    }
}
