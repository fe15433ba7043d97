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
//! - `effects` runs statements that change the session, `temporary` holds its tables, `parameters` decodes bound values.
//! - `metadata` and `info` answer metadata requests, `results` runs queries, `server` starts and shuts down.
//!
//! Users, sessions, planning and limits are those of the module `host`.
//!
//! The server never writes to the service, never puts SQL into tickets, runs nothing in GetFlightInfo except statements
//! without a result, and reveals nothing about a principal's statements to another.
//!
//! Invariant: work for a client is owned by the stream that the client reads; dropping the stream cancels its requests.

mod command;
mod effects;
mod gate;
mod handles;
mod info;
mod metadata;
mod options;
mod parameters;
mod results;
mod rpc;
mod server;
mod state;
mod temporary;

pub use self::server::{FlightServer, ServerSpec};
pub use crate::host::auth::{Auth, Users, hash_password};
pub use crate::host::sessions::{PassThrough, Upstream};
pub use crate::host::settings::{Limits, ServeDocument};
pub use crate::serving::TlsSpec;
