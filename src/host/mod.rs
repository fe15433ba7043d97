//! Parts shared by the Flight SQL, PostgreSQL and MCP servers and the page: authentication, sessions, statement limits, execution, accounting.
//!
//! A server is started with a [`HostSpec`]. Others can be started beside it, over its [`Host`]. None needs another one.
//!
//! ```text
//! connection ─listener─▶ credentials ─auth, logins─▶ session ─planner─▶ plan ─lanes─▶ rows ─account─▶ log, metrics
//! ```
//!
//! - `http` listens for HTTP. `listener` accepts connections, `in_service` serves them, `connection_limit` decides which stay
//!   open, `peer` numbers them. `front` keeps a host in order, and drains the queries of a front.
//! - `auth` verifies credentials, `scram` proofs of passwords, `logins` slows guessing down, `sessions` holds the state of each client,
//!   and `open_sessions` their number.
//! - `planner` plans and restricts SQL, `complexity_limits` bounds it, `type_compat` maps types to those that every client
//!   supports.
//! - `lanes` separates long computations, `running` is a query that runs in a lane, `account` records it until its end,
//!   `metrics` counts, and `failure` is an error as a client sees it.
//! - `cached_plan` keeps the plan of a prepared statement.
//! - `shares` divides the memory, and the turns for planning, among the users.
//! - `unread` drops what clients send after they were refused.
//! - `effects` runs statements that change a session, `temporary` holds its tables, `own_tables` has those of an embedder.
//! - `settings` has the limits and the `[serve]` table of the configuration file, `spec` what a server starts with; `state` holds
//!   the state that all calls share.

pub(crate) mod account;
pub(crate) mod auth;
pub(crate) mod cached_plan;
pub(crate) mod complexity_limits;
pub(crate) mod connection_limit;
pub(crate) mod effects;
pub(crate) mod failure;
pub(crate) mod front;
pub(crate) mod http;
pub(crate) mod in_service;
pub(crate) mod lanes;
pub(crate) mod listener;
mod logins;
pub(crate) mod metrics;
mod open_sessions;
pub(crate) mod own_tables;
pub(crate) mod peer;
pub(crate) mod planner;
pub(crate) mod reload;
pub(crate) mod running;
pub(crate) mod scram;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod shares;
pub(crate) mod spec;
pub(crate) mod state;
pub(crate) mod temporary;
pub(crate) mod type_compat;
pub(crate) mod unread;

pub use self::auth::{Auth, Users, hash_password};
pub use self::http::HttpServer;
pub use self::own_tables::OwnTables;
pub use self::reload::Reload;
pub use self::sessions::{PassThrough, Upstream};
pub use self::settings::{Limits, ServeDocument};
pub use self::spec::HostSpec;
pub use self::state::Host;
pub use crate::serving::{TlsSpec, cannot_listen};
