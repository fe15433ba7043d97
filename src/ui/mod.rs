//! The page: queries, charts and dashboards in a browser, over the sessions, users, budgets and limits of the servers.
//!
//! ```text
//! HTTP ─access: host, origin, cookie─▶ session ─▶ routes ─▶ query (cost, rows) ─▶ rows as lines of JSON ─▶ page/*.js
//!                                                     ├──▶ results (what was read, for files and charts: no request)
//!                                                     └──▶ dashboards (files in a folder)
//! ```
//!
//! - `access` decides who is answered, `routes` what: the files of the page, and the calls that its scripts make.
//! - `query` plans, estimates and runs; `results` keeps the rows of the last queries in files, for charts and downloads.
//! - `page/` has the page itself: HTML, CSS and ES modules, as they are sent. They load nothing from elsewhere, and insert what
//!   third parties wrote as text.
//!
//! Invariant: nothing but `query::run` sends a request to the service, and `query::costs_by_size` those that a button announces. A
//! query whose reader leaves or stops reading sends no more of them.

mod access;
mod dashboards;
mod query;
mod results;
mod routes;
mod server;

pub use self::server::{PageSpec, serve, serve_beside};
