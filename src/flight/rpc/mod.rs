//! The RPCs of Flight, for Flight SQL's commands: one file for each.
//!
//! GetFlightInfo plans, and gives a ticket; DoGet runs. Nothing is asked of the service in between. Statements without a
//! result are an exception: they run in GetFlightInfo, once, since clients do not always fetch what comes of them.

mod describe;
mod do_action;
mod do_get;
mod do_put;
mod get_flight_info;
mod handshake;
mod service;
mod stream;
mod ticket;

use std::sync::Arc;

use super::state::ServerState;

/// The Flight service.
#[derive(Debug, Clone)]
pub(super) struct Service(pub(super) Arc<ServerState>);
