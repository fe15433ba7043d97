//! Bounds of what a short expression may make: for sessions whose statements come from others.
//!
//! The engine has functions that take a size, or multiply their inputs, and that take the memory for the result before any
//! pool is asked: `repeat('x', 2147483647)`, `array_resize([1], 2147483647)`, `a || a` forty times over. Memory that
//! cannot be had ends the process, and with it everybody's queries.
//!
//! ```text
//! by name       functions of the registry are replaced, so that a planner finds the bounded ones
//! by plan       those that the planner makes itself, the operator `||` and types with sizes, in an analyzer rule
//! when called   how much the result takes is reckoned from the arguments, and refused beyond a bound
//! ```
//!
//! Invariant: a bounded function gives what the engine's gives, or [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge).

mod demand;
mod function;
mod rule;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::prelude::SessionContext;

pub(crate) use self::rule::check_sizes;

use self::function::bounded;
use self::rule::BoundedExpressions;

/// Bounds the expressions of a session.
///
/// # Errors
/// None in practice: functions are replaced by ones of the same names.
pub(crate) fn bound_expressions(context: &SessionContext) -> Result<()> {
    let functions: Vec<_> = context.state_ref().read().scalar_functions().values().cloned().collect();
    for function in functions {
        // Other names of a function come along with it.
        if let Some(bounded) = bounded(&function, 1) {
            context.register_udf(bounded);
        }
    }
    context.add_analyzer_rule(Arc::new(BoundedExpressions));
    Ok(())
}
