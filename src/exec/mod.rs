//! Carries plans out: one operator for every table.
//!
//! ```text
//! FetchExec (what is sent, filters, projection, order, fetch)
//!   └─ memory source, its rows the saved searches to ask for; NULL: those that the list names at run time
//! ```
//!
//! The plans of the requests are data below the operator, so that engines which slice or ship a plan slice and ship
//! them like any rows. [`FetchExec`] evaluates every filter itself on top of what the service was asked for.
//!
//! Invariant: the operator gives every row that the service has under the plan's filters, each once, in the order that
//! it declares, or an error. Dropping its stream ends the requests.

mod cost;
mod counters;
mod discover;
mod display;
mod drive;
mod fetch;
mod memory;
mod plans;
mod reader;
mod scanning;
mod spent;
mod split;
mod summary;

pub use cost::{Cost, PlanCost, plan_cost};
pub use fetch::FetchExec;
pub use spent::{Spent, Window, spent, windows};

pub(crate) use discover::possible;
pub(crate) use plans::source;
pub(crate) use scanning::{Scanning, WEIGHT, scan_schema};
