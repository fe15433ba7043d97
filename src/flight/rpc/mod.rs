//! The Flight RPCs for Flight SQL commands, one file each.
//!
//! GetFlightInfo plans a query and returns a ticket; DoGet runs it. No requests are sent to the service before DoGet.
//! Statements without a result are an exception: they run once, in GetFlightInfo, since clients do not always fetch
//! their empty result.

mod describe;
mod do_action;
mod do_get;
mod do_put;
mod get_flight_info;
mod handshake;
mod service;
mod stream;
mod ticket;

pub(super) use self::stream::{PATIENCE, late};

use std::sync::Arc;

use super::state::ServerState;

/// Implementation of the Flight service.
#[derive(Debug, Clone)]
pub(super) struct Service(pub(super) Arc<ServerState>);
