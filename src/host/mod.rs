//! What the fronts of a server share: who may ask, what a statement may do and use, where it runs, and what is counted.
//!
//! ```text
//! connection ─listener─▶ credentials ─auth, logins─▶ session ─planner─▶ plan ─lanes─▶ rows ─account─▶ log, metrics
//! ```
//!
//! - `listener` accepts connections, `connection_limit` decides which stay open, `peer` numbers them.
//! - `auth` verifies credentials, `logins` slows guessing down, `sessions` holds the state of each client.
//! - `planner` plans and restricts SQL, `complexity_limits` bounds it, `type_compat` maps types to those that every client
//!   supports.
//! - `lanes` keeps long computations apart, `account` follows a query to its end, `metrics` counts, `status` words errors.
//! - `settings` has the limits and the `[serve]` table of the configuration file; `state` holds all of it.
//!
//! Errors are gRPC statuses, which have a code for programs and a line for people; a front words them for its protocol.

pub(crate) mod account;
pub(crate) mod auth;
mod complexity_limits;
mod connection_limit;
pub(crate) mod lanes;
pub(crate) mod listener;
mod logins;
pub(crate) mod metrics;
pub(crate) mod peer;
pub(crate) mod planner;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod type_compat;
