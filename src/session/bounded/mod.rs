//! Limits on the memory and time of expressions, for sessions that run statements of untrusted clients.
//!
//! Some functions of the engine take a size, or multiply their inputs, and allocate the result before any memory pool is
//! consulted: `repeat('x', 2147483647)`, `array_resize([1], 2147483647)`, `a || a` forty times in a row. A failed allocation
//! ends the process, and with it the queries of all users. Others take time that multiplies their inputs, as
//! `levenshtein` does, and a statement is not ended within an evaluation.
//!
//! ```text
//! by name       functions in the registry are replaced, so that planners find the bounded ones
//! by syntax     struct literals, which a planner creates without looking up a function
//! by plan       functions that the planner creates itself, the operator `||` and types with sizes, in an analyzer rule
//! last          LIKE, `~` and similar operators become functions in an optimizer rule, once no other rule needs them
//! when called   the size of the result and the steps are computed from the arguments, and rejected beyond a limit; a
//!               statement that was ended fails here
//! in slices     what takes many steps, and functions that are not known to be bounded by their arguments: a few rows
//!               at a time, and the result is counted before the next ones
//! as it grows   aggregates that keep many of their values ask for memory before each batch
//! by table      aggregates and window functions of which nobody knows what they keep are refused
//! between       the repeated output of joins, UNNEST and window functions is estimated from their input
//! ```
//!
//! Invariant: a bounded function returns the same as the engine's, or
//! [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge).

mod accumulators;
mod aggregates;
mod demand;
mod function;
mod literals;
mod matching;
mod repeated;
mod rule;
mod time;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;

pub(super) use self::matching::with_functions;
#[cfg(feature = "distributed")]
pub(crate) use self::repeated::{BoundedInput, bounded_input, bounds_of};
pub(crate) use self::rule::check_sizes;

use self::accumulators::asking;
use self::aggregates::GROWING;
use self::demand::Calls;
use self::function::{Joined, bounded};
use self::literals::BoundedLiterals;
use self::repeated::BoundedRepetition;
use self::rule::BoundedExpressions;
use super::limited_conditions::stoppable;
use super::plan_size::with_plan_limits;
use crate::optimizer::last_filter_pushdown;

/// Returns the session with limits on the memory of its expressions.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the session has no rule that pushes filters down, or none that
/// simplifies expressions. None in practice of functions, which are replaced by others of the same name.
pub(crate) fn bounded_session(context: &SessionContext) -> Result<SessionContext> {
    let mut builder = with_plan_limits(SessionStateBuilder::new_from_existing(context.state()))?;
    builder.expr_planners().get_or_insert_default().insert(0, Arc::new(BoundedLiterals));
    let physical = &mut builder.physical_optimizers().get_or_insert_default().rules;
    let last = last_filter_pushdown(physical)?;
    physical.insert(last, Arc::new(BoundedRepetition));
    let context = SessionContext::new_with_state(builder.build());
    let functions: Vec<_> = context.state_ref().read().scalar_functions().values().cloned().collect();
    for function in functions {
        // Aliases of a function are registered with it.
        if let Some(bounded) = bounded(&function, Calls::ONE) {
            context.register_udf(bounded);
        }
    }
    let aggregates: Vec<_> = context.state_ref().read().aggregate_functions().values().cloned().collect();
    for function in aggregates.into_iter().filter(|function| GROWING.contains(&function.name())) {
        context.register_udaf(asking(&function));
    }
    // Workers look functions of a plan up by name.
    context.register_udf(Joined::new(1).into());
    matching::functions().chain([stoppable()]).for_each(|function| context.register_udf(function));
    context.add_analyzer_rule(Arc::new(BoundedExpressions));
    Ok(context)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    use datafusion::prelude::SessionConfig;

    use super::demand::{Growth, LINEAR};
    use super::*;

    #[test]
    fn a_session_without_a_filter_pushdown_is_refused() {
        let mut builder = SessionStateBuilder::new().with_default_features();
        let mut rules = builder.physical_optimizers().take().unwrap_or_default().rules;
        rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
        let state = builder.with_physical_optimizer_rules(rules).build();
        let refused = bounded_session(&SessionContext::new_with_state(state)).map(drop).expect_err("a rule is missing");
        assert!(refused.to_string().contains("FilterPushdown"), "{refused}");
    }

    /// Joins are recognized by the end of their names: one that the engine names in another way fails here.
    #[tokio::test]
    async fn all_joins_of_the_engine_have_names_that_end_alike() {
        let mut joins = BTreeSet::new();
        for (setting, value, join) in [
            ("prefer_hash_join", true, "JOIN b ON x = y"),
            ("prefer_hash_join", false, "JOIN b ON x = y"),
            ("enable_piecewise_merge_join", false, "JOIN b ON x < y"),
            ("enable_piecewise_merge_join", true, "JOIN b ON x < y"),
            ("prefer_hash_join", true, "CROSS JOIN b"),
        ] {
            let config = SessionConfig::new().with_target_partitions(4);
            let config = config.set_bool(&format!("datafusion.optimizer.{setting}"), value);
            let sql = format!("WITH a(x) AS (VALUES (1), (2)), b(y) AS (VALUES (1), (3)) SELECT * FROM a {join}");
            let frame = SessionContext::new_with_config(config).sql(&sql).await.expect("a statement");
            let plan = frame.create_physical_plan().await.expect("a plan");
            let mut names = Vec::new();
            plan.apply(|node| {
                if node.children().len() == 2 {
                    names.push(node.name().to_owned());
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .expect("all operators");
            assert!(!names.is_empty() && names.iter().all(|name| name.ends_with("JoinExec")), "{sql}: {names:?}");
            joins.extend(names);
        }
        assert_eq!(joins.len(), 5, "each of them is another join: {joins:?}");
    }

    /// The engine's full list. A function that is in no table is evaluated in slices, which is safe but slower: a new
    /// one fails here, so that a developer decides.
    #[test]
    fn every_function_of_the_engine_is_in_a_table_or_evaluated_in_slices() {
        let context = SessionContext::new();
        let functions: Vec<_> = context.state_ref().read().scalar_functions().values().cloned().collect();
        let names = |of: &dyn Fn(Option<Growth>) -> bool| -> BTreeSet<String> {
            let those = functions.iter().filter(|function| of(Growth::of_function(function)));
            those.map(|function| function.name().to_owned()).collect()
        };
        let expected = ["decode", "encode", "to_char"];
        assert_eq!(names(&|growth| growth == Some(Growth::Unknown)), BTreeSet::from(expected.map(str::to_owned)));
        assert_eq!(names(&|growth| growth == Some(Growth::Slow)), BTreeSet::new());
        // Recognized by their types, or over values of a fixed size.
        let unchanged = names(&|growth| growth.is_none());
        for name in
            ["abs", "chr", "date_bin", "date_part", "date_trunc", "get_field", "input_file_name", "log", "now", "power"]
        {
            assert!(unchanged.contains(name), "{name}");
        }
        let mut known = names(&|_| true);
        known.extend(crate::functions::all().iter().map(|function| function.name().to_owned()));
        let gone: Vec<_> = LINEAR.iter().filter(|name| !known.contains(**name)).collect();
        assert!(gone.is_empty(), "no longer in the engine: {gone:?}");
    }
}
