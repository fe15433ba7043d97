//! Rewrites and checks of the syntax tree of a statement, before the engine plans it: names, clauses and forms that the engine refuses,
//! or reads differently from the SQL standard and PostgreSQL.
//!
//! `session/statement` calls them in order. They visit the tree with `session/syntax`, and make its nodes with `session/nodes`.

pub(super) mod ambiguous_names;
pub(super) mod distinct_keys;
pub(super) mod exact_numbers;
pub(super) mod ignored_clauses;
pub(super) mod listings;
pub(super) mod merged_columns;
pub(super) mod misread;
pub(super) mod nested_names;
pub(super) mod output_names;
pub(super) mod own_names;
pub(super) mod quantified;
pub(super) mod recursive_types;
pub(super) mod repeated_random;
pub(super) mod search_names;
pub(super) mod sorted_names;
pub(super) mod sorted_positions;
pub(super) mod window_constants;
