//! A server for clients of PostgreSQL: psql, JDBC, ODBC, and the tools that build on them.
//!
//! ```text
//! connection ─startup─▶ session ─wire─▶ message ─command─▶ a statement for the engine ─▶ rows ─▶ messages
//!                                          │                or about system catalogs ─catalog─▶ rows
//!                                          └ done here: transactions, settings, cursors, cancel requests
//! ```
//!
//! - `server` accepts connections, `startup` logs clients in, `wire` reads and writes messages.
//! - `connection` follows the protocol: simple and extended queries, portals, copies.
//! - `command` recognizes statements, `settings` holds those that PostgreSQL has, `catalog` answers questions about tables.
//! - `dialect` translates what PostgreSQL writes differently from the engine; `printed` writes what was parsed.
//! - `types` maps types, `rows` encodes results, `parameters` decodes bound values, `report` words errors.
//!
//! Sessions, users, budgets, planning and limits are those of the module `host`, shared with the Flight SQL server.
//!
//! Protocol: PostgreSQL documentation, "Frontend/Backend Protocol", version 3.0.

mod catalog;
mod command;
mod connection;
mod dialect;
mod parameters;
mod printed;
mod report;
mod rows;
mod server;
mod settings;
mod startup;
mod types;
mod wire;

pub use self::server::{PostgresServer, PostgresSpec};
pub use crate::host::scram::scram_verifier;
