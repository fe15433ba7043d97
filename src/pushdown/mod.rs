//! What of a query the service can be asked to do: expressions in, a plain plan out.
//!
//! ```text
//! conjuncts ─predicate, time_predicate─▶ values of columns, sets of instants ─window, plan─▶ PlannedScan ─sort─▶ order
//! ```
//!
//! Pure: no I/O, no runtime, no HTTP. [`can_claim`] says which conjuncts a scan takes on, [`PlannedScan`] decides what
//! is sent for them. A scan evaluates every conjunct itself as well, so that a service which ignores a filter, or
//! compares otherwise than SQL, cannot change an answer; what is sent only narrows what has to be read.
//!
//! Invariant: the requests of a plan cover every row that satisfies the conjuncts, within the default window where the
//! query bounds no time.

mod granularity;
mod interval_set;
mod plan;
mod planned;
mod predicate;
mod sort;
mod summary;
mod time_predicate;
mod window;

pub(crate) use plan::{Aids, ScanPlan};
pub(crate) use planned::PlannedScan;
pub(crate) use predicate::can_claim;
pub(crate) use predicate::{looks_at, looks_only_at};
pub(crate) use sort::{ServiceOrder, order_named, service_order};
pub(crate) use summary::{Summary, SummaryRows, Wanted, summarize};
pub(crate) use time_predicate::{days_of, earliest};
pub(crate) use window::CLOCK_SKEW;
