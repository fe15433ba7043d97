//! Execution: one operator for every table.
//!
//! ```text
//! FetchExec (what is sent, filters, projection, order, fetch)
//!   └─ memory source, one row per saved search to request; NULL: those that the list names at run time
//! ```
//!
//! The request plans are rows below the operator. If an engine slices or ships a plan, it slices and ships them like any
//! other rows. [`FetchExec`] evaluates every filter itself, in addition to what is sent to the service.
//!
//! Invariant: the operator returns every row that the service has under the plan's filters, each once, in the sort
//! order that it declares, or an error. Dropping its stream cancels the requests.

mod aid_rows;
mod buckets;
mod cost;
mod count_evidence;
mod counters;
mod display;
mod memory;
mod null_extremes;
mod opaque;
mod outlook;
mod part;
mod partitions;
mod prune;
mod reader;
mod requested_values;
mod requests;
mod scan_config;
mod scan_exec;
#[cfg(feature = "shell")]
mod sizes;
mod stand_ins;
#[cfg(feature = "store")]
mod stored;
mod stream;
#[cfg(any(feature = "flight", feature = "shell"))]
mod traced;
mod usage;
mod value_lists;
#[cfg(feature = "wording")]
mod windows_read;

#[cfg(feature = "wording")]
pub(crate) use cost::ExpectedRequests;
pub(crate) use cost::least_requests;
#[cfg(feature = "distributed")]
pub(crate) use cost::reads_all;
pub use cost::{Cost, PlanCost, plan_cost};
pub(crate) use scan_exec::FetchExec;
#[cfg(feature = "shell")]
pub(crate) use sizes::Unsized;
#[cfg(feature = "store")]
pub(crate) use stored::can_confirm;
#[cfg(feature = "distributed")]
pub(crate) use stored::{InFiles, Readers};
#[cfg(feature = "postgres")]
pub(crate) use traced::in_parts;
#[cfg(any(feature = "flight", feature = "shell"))]
pub(crate) use traced::{in_span, statement_kind};
pub use usage::{Spent, spent};
#[cfg(feature = "wording")]
pub(crate) use windows_read::{WindowRead, windows};

pub(crate) use aid_rows::source;
#[cfg(feature = "store")]
pub(crate) use opaque::hidden_from_pruning;
pub(crate) use opaque::opaque;
pub(crate) use prune::possible;
pub(crate) use scan_config::{LateConditions, Mode, PlanNotes, ScanConfig, Slice, WEIGHT, scan_schema};
