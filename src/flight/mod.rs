//! The Arrow Flight SQL server, which gives BI tools and drivers access to the same tables.
//!
//! ```text
//! RPC ─command─▶ auth ─▶ session ─planner─▶ plan ─▶ handles (a ticket)       GetFlightInfo: no requests to the service
//!                                                      │
//! DoGet ─────────────── ticket ────────────────────────┴─results─▶ record batches as the pages arrive
//! ```
//!
//! - `rpc` implements the RPCs, one file each; `state` holds their shared state.
//! - `command` parses client messages, `auth` verifies credentials, `sessions` holds per-client state, `handles` stores
//!   prepared statements and pending results.
//! - `planner` plans and restricts SQL, `complexity_limits` bounds it, `effects` runs statements that change the
//!   session, `temporary` holds its tables, `parameters` decodes bound values.
//! - `metadata` and `info` answer metadata requests, `results` runs queries, `type_compat` maps types to those that
//!   every client supports.
//! - `listener`, `connection_limit`, `gate`, `logins` and `lanes` control the admission of connections, calls and work;
//!   `server` starts and shuts down.
//!
//! The server never writes to the service, never puts SQL into tickets, runs nothing in GetFlightInfo except statements
//! without a result, and reveals nothing about a principal's statements to another.
//!
//! Invariant: work for a client is owned by the stream that the client reads; dropping the stream cancels its requests.

mod auth;
mod command;
mod complexity_limits;
mod connection_limit;
mod effects;
mod gate;
mod handles;
mod info;
mod lanes;
mod listener;
mod logins;
mod metadata;
mod metrics;
mod options;
mod parameters;
mod peer;
mod planner;
mod results;
mod rpc;
mod server;
mod sessions;
mod settings;
mod state;
mod status;
mod temporary;
mod type_compat;

pub use self::auth::{Auth, Users, hash_password};
pub use self::server::{FlightServer, ServerSpec};
pub use self::sessions::{PassThrough, Upstream};
pub use self::settings::{Limits, ServeDocument};
pub use crate::serving::TlsSpec;
