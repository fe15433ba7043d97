//! Execution: one operator for every table.
//!
//! ```text
//! FetchExec (saved searches, what is sent, filters, projection, order, fetch)
//! ```
//!
//! [`FetchExec`] is a leaf: the saved searches to request are in its plan, or it takes those that the list names at run time.
//! It evaluates every filter itself, in addition to what is sent to the service.
//!
//! Invariant: the operator returns every row that the service has under the plan's filters, each once, in the sort
//! order that it declares, or an error. Dropping its stream cancels the requests.

mod answer;
mod aside;
mod buckets;
mod combined_filters;
mod contradicted_filters;
mod cost;
mod count_evidence;
mod counters;
mod days_read;
mod display;
mod memory;
mod merging;
mod null_extremes;
mod opaque;
mod outlook;
mod page_converter;
mod partitions;
mod prune;
mod read_options;
mod requested_values;
mod requests;
mod scan_config;
mod scan_exec;
#[cfg(feature = "shell")]
mod sizes;
mod spelling;
mod stand_ins;
#[cfg(feature = "store")]
mod stored;
mod stream;
#[cfg(any(feature = "host", feature = "shell", feature = "store"))]
mod traced;
mod usage;
mod value_lists;
#[cfg(any(feature = "host", feature = "wording"))]
mod windows_read;

pub(crate) use aside::aside;
#[cfg(feature = "wording")]
pub(crate) use cost::ExpectedRequests;
#[cfg(feature = "distributed")]
pub(crate) use cost::reads_all;
pub use cost::{ByLastList, Cost, KnownTotals, PlanCost, plan_cost};
pub(crate) use cost::{least_requests, narrower_of};
pub(crate) use scan_exec::FetchExec;
#[cfg(feature = "shell")]
pub(crate) use sizes::Unsized;
#[cfg(feature = "store")]
pub(crate) use stored::can_confirm;
#[cfg(all(test, feature = "store", feature = "simulator"))]
pub(crate) use stored::decisions;
#[cfg(feature = "distributed")]
pub(crate) use stored::{FileScanOptions, InFiles};
#[cfg(feature = "host")]
pub(crate) use traced::in_parts;
#[cfg(any(feature = "host", feature = "shell", feature = "store"))]
pub(crate) use traced::start;
#[cfg(feature = "store")]
pub(crate) use traced::start_with_owner;
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) use traced::statement_kind;
#[cfg(feature = "store")]
pub(crate) use usage::unstored;
pub use usage::{Spent, spent};
#[cfg(feature = "flight")]
pub(crate) use windows_read::notes;
#[cfg(any(feature = "host", feature = "wording"))]
pub(crate) use windows_read::{WindowRead, windows};

#[cfg(feature = "store")]
pub(crate) use opaque::hidden_from_pruning;
pub(crate) use opaque::opaque;
pub(crate) use prune::possible;
pub(crate) use scan_config::{LateConditions, Mode, PlanNotes, ScanConfig, Slice, WEIGHT, scan_schema};
