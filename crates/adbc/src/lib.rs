//! ADBC driver: the tables of a saved-search service for every program with an ADBC driver manager (Python, R, Go, DuckDB and
//! more), in its own process, without a server.
//!
//! ```text
//! driver manager ─C─▶ Driver ─▶ Database (target: a service and its key) ─▶ Connection (session) ─▶ Statement ─▶ Reader
//!                                                                                                       │ runtime (threads)
//!                                                                                                       ▼
//!                                                                         datafusion_saved_search::embedded
//! ```
//!
//! Statements are those of the servers: queries, settings, views and temporary tables; the service is read-only. Metadata calls and
//! planning send no request. Databases with the same address and key share a connection to the service, and so its rate limit;
//! settings, budgets and views belong to a connection of the driver manager.
//!
//! Panics end a statement with an error. The crate has no unsafe code of its own; the exported functions come from `adbc_ffi`.
//!
//! Invariant: dropping a result, or cancelling its statement, ends its requests.

mod connection;
mod database;
mod error;
mod info;
mod objects;
mod reader;
mod runtime;
mod statement;
mod statistics;
mod target;

pub use connection::Connection;
pub use database::{Database, Driver};
pub use statement::Statement;

/// Functions that driver managers call.
mod exported {
    use crate::Driver;

    adbc_ffi::export_driver!(AdbcDriverSavedsearchInit, Driver);
}
