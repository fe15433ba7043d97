//! SQL over a read-only, rate-limited saved-search analytics API (V4), as DataFusion tables.
//!
//! ```text
//! SQL -> table (what may be pushed?) -> pushdown (Expr -> RequestPlan) -> exec (streams) -> client (pages) -> decode (batches) -> SQL
//!                 profile says what the service promises; everyone asks it, nobody guesses
//! ```
//!
//! Three lines add the tables to a session of yours:
//!
//! ```no_run
//! # use datafusion::prelude::SessionContext;
//! # use datafusion_saved_search::{Connection, Secret, catalog};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let context = SessionContext::new();
//! let key = Secret::new("<API_KEY>")?;
//! let connection = Connection::builder("https://api.example.com/v4", key).build()?;
//! context.register_catalog("savedsearch", catalog(&connection)?);
//! # Ok(()) }
//! ```
//!
//! [`session()`] makes a session with the defaults that cost the fewest requests. A query gives every mention of its
//! window, each once, or an [`Error`]; what it costs stands in EXPLAIN before, and in `system.requests` after.
//! `ARCHITECTURE.md` in the repository says how the parts fit.

pub mod catalog;
pub mod client;
pub mod clock;
pub mod config;
pub mod connection;
pub mod connections;
pub mod decode;
pub mod error;
pub mod exec;
mod files;
pub mod flight;
pub mod optimizer;
pub mod probe;
pub mod profile;
pub mod pushdown;
pub mod request;
pub mod session;
pub mod shell;
pub mod simulator;
pub mod table;

pub use catalog::catalog;
pub use client::Secret;
pub use clock::Clock;
pub use connection::{Connection, ConnectionBuilder};
pub use error::{Error, ErrorKind};
pub use profile::Profile;
pub use session::{session, session_config, session_with};
