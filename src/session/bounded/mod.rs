//! Bounds of what a short expression may make: for sessions whose statements come from others.
//!
//! The engine has functions that take a size, or multiply their inputs, and that take the memory for the result before any
//! pool is asked: `repeat('x', 2147483647)`, `array_resize([1], 2147483647)`, `a || a` forty times over. Memory that
//! cannot be had ends the process, and with it everybody's queries.
//!
//! ```text
//! by name       functions of the registry are replaced, so that a planner finds the bounded ones
//! by syntax     literals of structs, which a planner makes without looking for a function
//! by plan       those that the planner makes itself, the operator `||` and types with sizes, in an analyzer rule
//! when called   how much the result takes is reckoned from the arguments, and refused beyond a bound
//! between       what joins, UNNEST and window functions write more than once is reckoned from their input
//! ```
//!
//! Invariant: a bounded function gives what the engine's gives, or [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge).

mod demand;
mod function;
mod literals;
mod repeated;
mod rule;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;

pub(crate) use self::rule::check_sizes;

use self::function::bounded;
use self::literals::BoundedLiterals;
use self::repeated::BoundedRepetition;
use self::rule::BoundedExpressions;

/// The session with bounds on what its statements make.
///
/// # Errors
/// None in practice: functions are replaced by ones of the same names.
pub(crate) fn bounded_session(context: &SessionContext) -> Result<SessionContext> {
    let mut builder = SessionStateBuilder::new_from_existing(context.state());
    builder.expr_planners().get_or_insert_default().insert(0, Arc::new(BoundedLiterals));
    if let Some(physical) = builder.physical_optimizers() {
        // Before filters refer to the nodes of a plan, which must not be replaced afterwards.
        let last = physical.rules.iter().rposition(|rule| rule.name().starts_with("FilterPushdown"));
        physical.rules.insert(last.unwrap_or(physical.rules.len()), Arc::new(BoundedRepetition));
    }
    let context = SessionContext::new_with_state(builder.build());
    let functions: Vec<_> = context.state_ref().read().scalar_functions().values().cloned().collect();
    for function in functions {
        // Other names of a function come along with it.
        if let Some(bounded) = bounded(&function, 1) {
            context.register_udf(bounded);
        }
    }
    context.add_analyzer_rule(Arc::new(BoundedExpressions));
    Ok(context)
}
