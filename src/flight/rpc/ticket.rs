//! Tickets: result handles wrapped in the message that clients send back.

use arrow_flight::FlightEndpoint;
use arrow_flight::sql::{Any, ProstMessageExt, TicketStatementQuery};
use prost::Message;
use prost::bytes::Bytes;

/// Handle of the empty result of a statement that has already run.
pub(super) const NOTHING: &[u8] = b"nothing";

pub(super) fn ticket(statement_handle: Bytes) -> Bytes {
    TicketStatementQuery { statement_handle }.as_any().encode_to_vec().into()
}

/// Returns the result handle in an endpoint's ticket; `None` for other tickets.
pub(super) fn ticket_handle(endpoint: &FlightEndpoint) -> Option<Bytes> {
    let any = Any::decode(endpoint.ticket.as_ref()?.ticket.as_ref()).ok()?;
    Some(any.unpack::<TicketStatementQuery>().ok()??.statement_handle)
}
