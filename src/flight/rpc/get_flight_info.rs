//! GetFlightInfo, PollFlightInfo and GetSchema: the schema and the ticket of a command. Planning sends no requests to
//! the service.

use std::sync::Arc;
use std::time::SystemTime;

use arrow::datatypes::Schema;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::sql::Command;
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, IpcMessage, SchemaAsIpc, SchemaResult, Ticket};
use prost::bytes::Bytes;
use tonic::{Request, Status};

use super::super::command::described;
use super::super::gate::session_of;
use super::Service;
use super::describe::Described;
use super::ticket::{NOTHING, ticket};
use crate::host::running::Pending;
use crate::host::sessions::Session;

impl Service {
    pub(super) async fn info(&self, request: Request<FlightDescriptor>) -> Result<FlightInfo, Status> {
        let session = session_of(&request)?;
        let descriptor = request.into_inner();
        let command = described(&descriptor)?;
        // In the session's lane, with the schema's message and the place of the result among the others.
        let (service, owner) = (self.clone(), Arc::clone(&session));
        self.0.host.away(&session, async move { service.info_of(&owner, descriptor, command).await }).await
    }

    async fn info_of(
        &self,
        session: &Arc<Session>,
        descriptor: FlightDescriptor,
        command: Command,
    ) -> Result<FlightInfo, Status> {
        let mut metadata = Bytes::new();
        let (schema, ticket, kept) = match self.describe(session, command, true).await? {
            // The command itself serves as the ticket.
            Described::Known(rows) => (rows.schema(), descriptor.cmd.clone(), false),
            Described::Query(pending) => {
                let schema = Arc::clone(&pending.schema);
                metadata = notes_of(session, &pending);
                (schema, ticket(self.0.results.insert(session, *pending)?.into()), true)
            }
            Described::Done => (Arc::new(Schema::empty()), ticket(Bytes::from_static(NOTHING)), false),
        };
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket));
        let endpoint = if kept { endpoint.with_expiration_time(self.expiration()) } else { endpoint };
        let info = FlightInfo::new().with_descriptor(descriptor).with_endpoint(endpoint).with_app_metadata(metadata);
        info.try_with_schema(&schema).map_err(|error| Status::internal(error.to_string()))
    }

    /// Returns the expiration time of a result that is stored or renewed now.
    pub(super) fn expiration(&self) -> prost_types::Timestamp {
        #[expect(clippy::disallowed_methods, reason = "clients compare it with the wall clock")]
        let now = SystemTime::now();
        (now + self.0.host.limits.result_time()).into()
    }

    pub(super) async fn schema(&self, request: Request<FlightDescriptor>) -> Result<SchemaResult, Status> {
        let session = session_of(&request)?;
        let command = described(request.get_ref())?;
        let (service, owner) = (self.clone(), Arc::clone(&session));
        let described = async move {
            let schema = match service.describe(&owner, command, false).await? {
                Described::Known(rows) => rows.schema(),
                Described::Query(pending) => Arc::clone(&pending.schema),
                Described::Done => Arc::new(Schema::empty()),
            };
            Ok::<_, Status>(SchemaResult { schema: schema_bytes(&schema)? })
        };
        self.0.host.away(&session, described).await
    }
}

/// Notes that are known before a query runs, as JSON: `{"default_window":"7d","notes":["…"]}`; empty without any.
fn notes_of(session: &Session, pending: &Pending) -> Bytes {
    let (notes, default) = pending.planned_notes();
    if notes.is_empty() && default.is_none() {
        return Bytes::new();
    }
    let notes: Vec<String> = notes.iter().map(|note| String::from(session.redact(note))).collect();
    serde_json::json!({ "default_window": default, "notes": notes }).to_string().into()
}

pub(super) fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    message.map(|IpcMessage(bytes)| bytes).map_err(|error| Status::internal(error.to_string()))
}
