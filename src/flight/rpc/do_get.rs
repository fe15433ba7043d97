//! DoGet: runs the query of a ticket and streams its rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{Command, TicketStatementQuery};
use arrow_flight::{FlightData, Ticket};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::yield_now;
use tonic::Status;

use super::super::command::{flight_status, parse};
use super::super::results::messages;
use super::Service;
use super::describe::Described;
use super::stream::Answers;
use super::ticket::NOTHING;
use crate::host::running::{PART, Pending, rows_of_part};
use crate::host::sessions::Session;

impl Service {
    pub(super) async fn fetch(&self, session: Arc<Session>, ticket: Ticket) -> Result<Answers<FlightData>, Status> {
        match parse(&ticket.ticket)? {
            Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) if statement_handle == NOTHING => {
                Ok(sent(RecordBatch::new_empty(Arc::new(Schema::empty()))))
            }
            Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) => {
                let (pending, session) = self.0.results.find(&statement_handle, &session)?;
                let handle = String::from_utf8_lossy(&statement_handle).into_owned();
                self.run(session, pending, Some(handle))
            }
            // Some clients send the command as the ticket.
            command => match self.describe_away(&session, command, true).await? {
                Described::Known(rows) => {
                    let held = self.0.host.hold(&session, "response", rows.get_array_memory_size())?;
                    let messages = sent(rows).map(move |message| {
                        let _ = &held;
                        message
                    });
                    Ok(messages.boxed())
                }
                Described::Query(pending) => self.run(session, Arc::from(pending), None),
                Described::Done => Ok(sent(RecordBatch::new_empty(Arc::new(Schema::empty())))),
            },
        }
    }

    pub(super) fn run(
        &self,
        session: Arc<Session>,
        pending: Arc<Pending>,
        handle: Option<String>,
    ) -> Result<Answers<FlightData>, Status> {
        let running = messages(pending, session, &self.0.host)?;
        if let Some(handle) = handle {
            self.0.results.done(&handle);
        }
        Ok(running)
    }
}

/// Encodes a single batch as a stream, in parts: others of the thread come between them.
fn sent(batch: RecordBatch) -> Answers<FlightData> {
    let (schema, rows) = (batch.schema(), rows_of_part(&batch, PART));
    let parts = (0..batch.num_rows().max(1)).step_by(rows);
    let parts: Vec<_> = parts.map(|from| batch.slice(from, rows.min(batch.num_rows() - from))).collect();
    let parts = stream::iter(parts).then(|part| async move {
        yield_now().await;
        Ok::<_, FlightError>(part)
    });
    FlightDataEncoderBuilder::new().with_schema(schema).build(parts).map_err(flight_status).boxed()
}
