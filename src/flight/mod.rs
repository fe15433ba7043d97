//! The Arrow Flight SQL server, which gives BI tools and drivers access to the same tables.
//!
//! ```text
//! RPC ─gate─▶ session ─command─▶ SQL ─planner─▶ plan ─▶ handles (a ticket)       GetFlightInfo: no requests to the service
//!                                                      │
//! DoGet ─────────────── ticket ────────────────────────┴─results─▶ record batches as the pages arrive
//! ```
//!
//! - `rpc` implements the RPCs, one file each; `state` holds their shared state.
//! - `command` parses client messages, `gate` finds the session of a call, `handles` stores prepared statements and pending
//!   results.
//! - `parameters` decodes bound values, `ingest` creates tables from rows that clients send.
//! - `metadata` and `info` answer metadata requests, `results` encodes rows, `status` errors; `server` starts and shuts down.
//!
//! Users, sessions, planning, limits and the running of statements are those of the module `host`.
//!
//! The server never writes to the service, never puts SQL into tickets, runs nothing in GetFlightInfo except statements
//! without a result, and reveals nothing about a principal's statements to another.
//!
//! Invariant: work for a client is owned by the stream that the client reads; dropping the stream cancels its requests.

mod command;
mod gate;
mod handles;
mod info;
mod ingest;
pub(crate) mod metadata;
mod options;
pub(crate) mod parameters;
mod results;
mod rpc;
mod server;
mod state;
mod status;

pub use self::server::{FlightServer, ServerSpec};
