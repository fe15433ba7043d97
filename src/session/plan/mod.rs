//! Rewrites of the logical plan of a statement, before it is optimized: what the engine cannot run, or would answer with another type,
//! in another order, or for rows that a condition excludes.
//!
//! `session/statement` calls them in order. Rules that may be applied again and again are in `optimizer`.

pub(super) mod common_types;
pub(super) mod described;
pub(super) mod guarded;
pub(super) mod kept_order;
pub(super) mod keyed_subqueries;
pub(super) mod lateral;
pub(super) mod moved_subqueries;
pub(super) mod series_names;
pub(super) mod signed_numbers;
