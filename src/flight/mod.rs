//! The Arrow Flight SQL server: BI tools and drivers over the same tables.
//!
//! ```text
//! RPC ─command─▶ auth ─▶ session ─planner─▶ plan ─▶ handles (a ticket)           GetFlightInfo: nothing is asked of the service
//!                                                      │
//! DoGet ─────────────── ticket ────────────────────────┴─results─▶ record batches as the pages arrive
//! ```
//!
//! `rpc` has a file for each call, and `state` what they share. `command` reads what clients say, `auth` who they are; `sessions` is
//! what each may see and has set, `handles` what was prepared and what waits to be fetched, `planner` what SQL may do,
//! `complexity_limits` what it may be at most, `effects` what changes a session, `temporary` the tables that it makes, `parameters` what
//! is bound. `metadata` and `info` answer without a query, `results` is a query that runs, `type_compat` the types that every
//! client knows. `listener`, `connection_limit`, `gate`, `logins` and `lanes` admit connections, calls and work; `server` is
//! sockets and the end, `admin` health and metrics.
//!
//! The module refuses to write anything, to put SQL into tickets, to run anything in GetFlightInfo but statements without
//! a result, and to tell a principal about another one's statements.
//!
//! Invariant: what runs for a client is owned by the stream that it reads; when that is dropped, so are the requests.

mod admin;
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
pub use self::server::{FlightServer, ServerSpec, TlsSpec};
pub use self::sessions::{PassThrough, Upstream};
pub use self::settings::{Limits, ServeDocument};
