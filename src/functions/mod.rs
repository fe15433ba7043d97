//! Scalar functions that stand in for operations that the engine computes differently from the SQL standard.
//!
//! Rules of `optimizer` put them in the place of such operations; users see their names in EXPLAIN only. Each file has one
//! function, with the operation that it replaces and the reason.
//!
//! Invariant: a function returns what the standard requires, or an error. It never returns another value.

mod in_values;
mod opaque;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use self::in_values::InValues;
pub(crate) use self::opaque::Opaque;

/// Returns all functions, for the registry of a session, by which plans that travel find them.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    vec![InValues::udf(), Opaque::udf()]
}
