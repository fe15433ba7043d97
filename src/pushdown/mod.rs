//! Pushdown: the part of a query that the service can evaluate. Expressions in, a plain plan out.
//!
//! ```text
//! conjuncts ─predicate, time_predicate─▶ values of columns, sets of instants ─window, plan─▶ PlannedScan ─sort─▶ order
//! ```
//!
//! Pure: no I/O, no runtime, no HTTP. [`can_claim`] selects the conjuncts that a scan accepts, [`PlannedScan`] decides which
//! parameters are sent for them. A scan also evaluates every conjunct itself, so the result stays the same if the service
//! ignores a filter, or compares differently from SQL. Parameters only reduce the rows to read.
//!
//! Invariant: the requests of a plan cover every row that satisfies the conjuncts, within the default window if the
//! query has no time filter.

mod counting;
mod granularity;
mod interval_set;
mod plan;
mod planned;
mod predicate;
mod sort;
mod summary;
mod time_predicate;
mod window;

pub(crate) use counting::{CountedWindow, Counting, EDGE_PAGE, Edge, counted_windows};
pub(crate) use plan::{Aids, ScanPlan, instant_of_day};
pub(crate) use planned::PlannedScan;
pub(crate) use predicate::can_claim;
pub(crate) use predicate::{looks_at, looks_only_at};
pub(crate) use sort::{ServiceOrder, opposite_order, order_named, service_order};
pub(crate) use summary::{Summary, SummaryRows, Wanted, summarize};
pub(crate) use time_predicate::{TimeColumn, days_of, earliest};
#[cfg(feature = "store")]
pub(crate) use window::windows_between;

pub(crate) use crate::request::CLOCK_SKEW;
