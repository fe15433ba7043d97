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
//! - `command` recognizes kinds of statements, `settings` has PostgreSQL's settings, `catalog` answers metadata queries.
//! - `dialect` translates PostgreSQL's SQL to the engine's, `column_names` names its results.
//! - `typed_plan` changes plans: `numbers` gives numbers PostgreSQL's types, and `typed_times` times its meaning.
//! - `nested_arrays` refuses arrays of arrays.
//! - `types` maps types, `rows` encodes results, `parameters` decodes bound values, `report` encodes errors and notices.
//!
//! Sessions, users, budgets, planning and limits are those of the module `host`, shared with the other fronts of a server.
//!
//! Protocol: PostgreSQL documentation, "Frontend/Backend Protocol", version 3.0.

mod catalog;
mod column_names;
mod command;
mod connection;
mod dialect;
mod nested_arrays;
mod numbers;
mod parameters;
mod report;
mod rows;
mod server;
mod settings;
mod startup;
mod typed_plan;
mod typed_times;
mod types;
mod wire;

pub use self::server::{PostgresServer, PostgresSpec, serve};
pub use self::startup::scram_verifier;
