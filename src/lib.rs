//! SQL over a read-only, rate-limited saved-search analytics API (V4), as DataFusion tables.
//!
//! ```text
//! SQL -> table (which filters can be pushed down) -> pushdown (Expr -> RequestPlan) -> exec (streams) -> client (pages) -> decode (batches) -> SQL
//!                 the profile declares what the service supports; all stages consult it
//! ```
//!
//! A session needs the service's address and an API key. In this example, a simulator replaces the service:
//!
//! ```
//! use std::sync::Arc;
//!
//! use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, Settings};
//! use datafusion_saved_search::{Clock, Connection, Secret, session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = "2026-07-01T12:00:00Z".parse()?;
//! let corpus = Corpus::generate(CorpusSpec { seed: 1, searches: 2, mentions: 500, now });
//! let settings = Settings { clock: Clock::fixed(now), ..Settings::default() };
//! let service = simulator::start("127.0.0.1:0".parse()?, Arc::new(corpus), settings).await?;
//!
//! let connection = Connection::builder(service.base_url(), Secret::new(simulator::KEY)?).build()?;
//! let context = session(&connection)?;
//! let query = "SELECT aid, count(*) FROM mentions WHERE duration = '365d' GROUP BY aid";
//! context.sql(query).await?.show().await?;
//! assert_eq!(service.requests(), 3);    // the list, and one for each saved search
//! # Ok(()) }
//! ```
//!
//! [`install`] adds the same tables, functions and optimizer rules to your own session. [`catalog`] and
//! [`SavedSearchFactory`] (`CREATE EXTERNAL TABLE … STORED AS SAVEDSEARCH`) alone return the same rows, but need more
//! requests. A query returns every mention in its time window exactly once, or an [`Error`]. [`plan_cost`] estimates the
//! cost of a query before it runs; [`spent`] and the table `system.requests` report it afterwards.
//!
//! The crate `datafusion` is re-exported so that versions match. Without default features the crate contains only the
//! tables; `flight` adds the Flight SQL server, `mcp` the server for agents, `ui` the page, `simulator` a service for tests, and `cli` everything that the
//! `savedsearch` program needs. Hidden modules are not part of the stable API.

mod boxed_future;
mod catalog;
#[doc(hidden)]
pub mod client;
mod clock;
#[doc(hidden)]
pub mod config;
mod connection;
#[doc(hidden)]
pub mod connections;
#[doc(hidden)]
pub mod decode;
#[cfg(feature = "distributed")]
pub mod distributed;
#[cfg(all(unix, feature = "flight", feature = "shell"))]
#[doc(hidden)]
pub mod embedded;
#[doc(hidden)]
pub mod engine_defects;
pub mod error;
mod exec;
mod files;
#[cfg(feature = "flight")]
pub mod flight;
mod functions;
#[cfg(feature = "flight")]
mod host;
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod memory;
mod numbers;
mod optimizer;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "probe")]
#[doc(hidden)]
pub mod probe;
#[doc(hidden)]
pub mod profile;
#[doc(hidden)]
pub mod profile_check;
mod pushdown;
#[doc(hidden)]
pub mod request;
#[cfg(feature = "flight")]
mod serving;
mod session;
#[cfg(all(unix, feature = "shell"))]
#[doc(hidden)]
pub mod shell;
#[cfg(feature = "simulator")]
pub mod simulator;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
mod sync;
mod table;
#[cfg(all(unix, feature = "ui"))]
pub mod ui;
#[cfg(feature = "store")]
mod verify;
#[cfg(feature = "wording")]
mod wording;

pub use catalog::{CATALOG, catalog};
pub use client::{Completeness, RetryPolicy, Secret};
pub use clock::Clock;
pub use config::{CountFromOverview, SessionSettings, StoreUse};
pub use connection::{Connection, ConnectionBuilder, UnknownField};
pub use datafusion;
pub use error::{Error, ErrorKind, Place};
pub use exec::{Cost, PlanCost, Spent, plan_cost, spent};
pub use profile::Profile;
pub use session::{install, now, session, session_config, session_of, sql};
#[cfg(feature = "store")]
pub use store::{Compacted, Erase, Erased, Holding, StoreStatistics};
#[cfg(feature = "store")]
pub use sync::{NewMentions, ReadMentions, SyncOptions, SyncStep, Synced, sync};
pub use table::SavedSearchFactory;
#[cfg(feature = "store")]
pub use verify::{DifferingDay, verify_counts};

/// Compiles the programs of the documentation as doctests.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
