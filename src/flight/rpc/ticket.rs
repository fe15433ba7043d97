//! Tickets: handles of results, in the message that clients send back.

use arrow_flight::FlightEndpoint;
use arrow_flight::sql::{Any, ProstMessageExt, TicketStatementQuery};
use prost::Message;
use prost::bytes::Bytes;

/// The handle of a result without rows: that of a statement that has run already.
pub(super) const NOTHING: &[u8] = b"nothing";

pub(super) fn ticket(statement_handle: Bytes) -> Bytes {
    TicketStatementQuery { statement_handle }.as_any().encode_to_vec().into()
}

/// The handle in the ticket of an endpoint, where it is one of a result.
pub(super) fn ticket_handle(endpoint: &FlightEndpoint) -> Option<Bytes> {
    let any = Any::decode(endpoint.ticket.as_ref()?.ticket.as_ref()).ok()?;
    Some(any.unpack::<TicketStatementQuery>().ok()??.statement_handle)
}
