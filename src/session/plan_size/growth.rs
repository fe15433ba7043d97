//! Predictions for one operator: the size of its expressions once they are simplified, and the time to find their types.
//!
//! Both grow exponentially with the levels of nested expressions. They are computed from sizes and visits of parts, in one walk.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, Case, InList};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use super::too_large;
use crate::functions::TypeIn;

/// Expressions by which simplification may enlarge those of an operator.
const GROWTH: u64 = 40_000;
/// Expressions that the engine may visit more than once to find the types of those of an operator.
const VISITS: u64 = 1_000_000;

/// Rejects an operator whose expressions would grow too much when they are simplified.
pub(super) fn check_growth(plan: &LogicalPlan) -> Result<()> {
    let schema = merge_schema(&plan.inputs());
    let mut growth = 0_u64;
    plan.apply_expressions(|expr| {
        let size = Size::of(expr, &schema);
        growth = growth.saturating_add(size.simplified - size.now);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if growth <= GROWTH {
        return Ok(());
    }
    let message =
        format!("statement too complex: simplified, its expressions would have more than {GROWTH} further parts");
    let advice = "use and nest fewer coalesce, BETWEEN, IN and CASE, or compute the inner expressions in a subquery";
    Err(too_large(message, advice))
}

/// Rejects an operator with expressions whose types would take too long to find.
pub(super) fn check_visits(plan: &LogicalPlan) -> Result<()> {
    let mut again = 0_u64;
    plan.apply_expressions(|expr| {
        let visits = Visits::of(expr);
        again = again.saturating_add(visits.all - visits.once);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if again <= VISITS {
        return Ok(());
    }
    let advice = "nest fewer coalesce and CASE, or compute the inner expressions in a subquery";
    Err(too_large("statement too complex: its functions and CASE are nested too deeply".to_owned(), advice))
}

/// True for an expression whose parts the engine visits more than once to find its type. An operator without one has no further
/// [`Visits`].
pub(super) fn repeats_visits(expr: &Expr) -> bool {
    match expr {
        Expr::Case(_) => true,
        Expr::ScalarFunction(function) => duplicates(function.name()),
        _ => false,
    }
}

/// Number of expressions that the engine visits to find the type of an expression, and whether it can be NULL. It determines both
/// for the branches of a CASE, and asks each nested expression again: visits grow exponentially with the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Visits {
    /// If each expression were visited once.
    once: u64,
    all: u64,
}

impl Visits {
    fn of(expr: &Expr) -> Self {
        /// Visits of an argument that simplification puts into a condition and into a branch.
        const OF_COPIED: u64 = 5;
        /// Visits of a branch.
        const OF_BRANCH: u64 = 2;
        /// Visits of a CASE itself: it has conditions for each branch.
        const OF_CASE: u64 = 16;

        let mut visits = Self { once: 1, all: 1 };
        let mut add = |part: &Expr, times: u64| {
            let part = Self::of(part);
            visits.once = visits.once.saturating_add(part.once);
            visits.all = visits.all.saturating_add(part.all.saturating_mul(times));
        };
        match expr {
            Expr::Case(Case { expr, when_then_expr, else_expr }) => {
                expr.iter().for_each(|expr| add(expr, 1));
                for (when, then) in when_then_expr {
                    add(when, 1);
                    add(then, OF_BRANCH);
                }
                else_expr.iter().for_each(|expr| add(expr, OF_BRANCH));
                visits.all = visits.all.saturating_add(OF_CASE);
            }
            Expr::ScalarFunction(function) if duplicates(function.name()) => {
                function.args.iter().for_each(|arg| add(arg, OF_COPIED));
            }
            other => {
                // The closure never fails.
                let _ = other.apply_children(|part| {
                    add(part, 1);
                    Ok(TreeNodeRecursion::Continue)
                });
            }
        }
        visits
    }
}

/// Number of expressions in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    now: u64,
    /// Upper bound for when it is simplified.
    simplified: u64,
}

impl Size {
    /// Measures an expression over the columns of a schema.
    fn of(expr: &Expr, schema: &DFSchema) -> Self {
        let mut size = Self { now: 1, simplified: 1 };
        // AND, OR, NOT and IS TRUE around the branches of a CASE.
        let mut operators = 0;
        let mut add = |part: &Expr, copies: u64| {
            let part = Self::of(part, schema);
            size.now = size.now.saturating_add(part.now);
            // Copies are joined by operators.
            let joining = if copies > 1 { copies.saturating_mul(2) } else { 0 };
            let copied = part.simplified.saturating_mul(copies).saturating_add(joining);
            size.simplified = size.simplified.saturating_add(copied);
        };
        match expr {
            // Two comparisons.
            Expr::Between(Between { expr, low, high, .. }) => {
                add(expr, 2);
                add(low, 2);
                add(high, 2);
            }
            // A comparison for each value.
            Expr::InList(InList { expr, list, .. }) => {
                add(expr, count(list.len()).min(3));
                list.iter().for_each(|value| add(value, 1));
            }
            Expr::Case(case) => {
                let joined = joins_conditions(case, schema);
                operators = if joined { 8 * (count(case.when_then_expr.len()) + 1) } else { 0 };
                add_case(case, joined, &mut add);
            }
            // The comparison moves into the branches.
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq | Operator::NotEq, right })
                if matches!(
                    (&**left, &**right),
                    (Expr::Case(_), Expr::Literal(..)) | (Expr::Literal(..), Expr::Case(_))
                ) =>
            {
                for side in [left, right] {
                    match &**side {
                        Expr::Case(case) => {
                            operators = 8 * (count(case.when_then_expr.len()) + 1);
                            add_case(case, true, &mut add);
                        }
                        literal => add(literal, 1),
                    }
                }
            }
            // A range: from its start and before its end, or NULL.
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::IsDistinctFrom | Operator::IsNotDistinctFrom,
                right,
            }) => {
                add(left, 3);
                add(right, 3);
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                let copies = |expr: &Expr| if matches!(expr, Expr::ScalarFunction(_) | Expr::Cast(_)) { 2 } else { 1 };
                add(left, copies(left));
                add(right, copies(right));
            }
            Expr::ScalarFunction(function) => {
                let copies = if duplicates(function.name()) { 2 } else { 1 };
                function.args.iter().for_each(|arg| add(arg, copies));
            }
            other => {
                // The closure never fails.
                let _ = other.apply_children(|part| {
                    add(part, 1);
                    Ok(TreeNodeRecursion::Continue)
                });
            }
        }
        size.simplified = size.simplified.saturating_add(operators);
        size
    }
}

/// Adds the parts of a CASE. If its conditions are joined by AND and OR, each branch repeats those of the branches before it.
fn add_case(case: &Case, joined: bool, add: &mut impl FnMut(&Expr, u64)) {
    let copies = if joined { count(case.when_then_expr.len()).saturating_add(1) } else { 1 };
    case.expr.iter().for_each(|expr| add(expr, copies));
    for (when, then) in &case.when_then_expr {
        add(when, copies);
        add(then, 1);
    }
    case.else_expr.iter().for_each(|expr| add(expr, 1));
}

/// True if a CASE may become an expression of AND and OR: a truth value of few branches, or of few that are true or false.
fn joins_conditions(case: &Case, schema: &DFSchema) -> bool {
    let branches = &case.when_then_expr;
    let few = branches.len() < 3 || branches.iter().all(|(_, then)| matches!(**then, Expr::Literal(..)));
    few && branches.first().is_some_and(|(_, then)| {
        // The type of nested branches is that of the first one in them.
        let mut then = then;
        while let Expr::Case(Case { when_then_expr, .. }) = &**then
            && let Some((_, inner)) = when_then_expr.first()
        {
            then = inner;
        }
        then.type_in(schema).map_or(true, |of| matches!(of, DataType::Boolean | DataType::Null))
    })
}

fn count(parts: usize) -> u64 {
    u64::try_from(parts).unwrap_or(u64::MAX)
}

/// True for functions that are simplified to an expression with two copies of an argument.
fn duplicates(function: &str) -> bool {
    matches!(function, "coalesce" | "nvl")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::functions::expr_fn::{abs, coalesce, nvl};
    use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
    use datafusion::logical_expr::{cast, col, lit, when};
    use datafusion::optimizer::simplify_expressions::ExprSimplifier;
    use datafusion::prelude::SessionContext;

    use super::*;

    fn nested(times: usize, level: impl Fn(Expr) -> Expr) -> Expr {
        (0..times).fold(col("x"), |inner, _| level(inner))
    }

    #[test]
    fn the_predicted_size_is_at_least_the_simplified_one() {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let schema = Arc::new(DFSchema::try_from(schema).expect("a schema"));
        let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&schema)).build());
        let int = |expr: Expr| cast(expr, DataType::Int64);
        let levels: [(&str, &dyn Fn(Expr) -> Expr); 6] = [
            ("coalesce", &|inner| coalesce(vec![inner, lit(2_i64)])),
            ("nvl", &|inner| nvl(inner, lit(2_i64))),
            ("between", &|inner| int(inner.between(lit(1_i64), lit(2_i64)))),
            ("not between", &|inner| int(inner.not_between(lit(1_i64), lit(2_i64)))),
            ("in", &|inner| int(inner.in_list(vec![lit(1_i64), lit(2_i64)], false))),
            ("case", &|inner| {
                let mut case = when(inner.gt(lit(1_i64)), col("x").gt(lit(3_i64)));
                int(case.otherwise(col("x").lt(lit(1_i64))).expect("a CASE"))
            }),
        ];
        for (name, level) in levels {
            for times in [1, 2, 5] {
                let expr = nested(times, level);
                let predicted = Size::of(&expr, &schema).simplified;
                let simplified = simplifier.simplify(expr).expect("simplified");
                let size = Size::of(&simplified, &schema).now;
                assert!(size <= predicted, "{name} {times} times: {size} expressions, {predicted} predicted");
            }
        }
    }

    #[test]
    fn visits_of_types_grow_with_the_levels_of_functions_and_branches() {
        let again = |expr: Expr| {
            let visits = Visits::of(&expr);
            visits.all - visits.once
        };
        let of_coalesce = |inner| coalesce(vec![abs(inner), lit(2_i64)]);
        let of_case = |inner| when(col("x").gt(lit(1_i64)), abs(inner)).otherwise(lit(2_i64)).expect("a CASE");
        assert!(again(nested(7, of_coalesce)) <= VISITS && again(nested(9, of_coalesce)) > VISITS);
        assert!(again(nested(14, of_case)) <= VISITS && again(nested(17, of_case)) > VISITS);
        assert_eq!(again(nested(500, abs)), 0);
        let of_nvl = |inner| nvl(inner, lit(2_i64));
        let levels: [(&dyn Fn(Expr) -> Expr, bool); 4] =
            [(&of_coalesce, true), (&of_case, true), (&of_nvl, true), (&abs, false)];
        for (level, repeats) in levels {
            assert_eq!(repeats_visits(&level(col("x"))), repeats);
            assert_eq!(again(level(abs(col("x")))) > 0, repeats);
        }
    }

    /// The engine's full list: a function that begins to repeat its arguments fails here.
    #[test]
    fn no_other_function_repeats_its_arguments() {
        let context = SessionContext::new();
        let functions: Vec<_> = context.state_ref().read().scalar_functions().values().cloned().collect();
        let marks = |expr: &Expr, name: &str| {
            let mut marks = 0;
            let _ = expr.apply(|part| {
                marks += usize::from(matches!(part, Expr::Column(column) if column.name == name));
                Ok(TreeNodeRecursion::Continue)
            });
            marks
        };
        assert!(functions.len() > 150);
        for function in functions {
            let examples = function.signature().type_signature.get_example_types();
            let counts: BTreeSet<usize> = examples.iter().map(Vec::len).chain([2]).collect();
            for arguments in counts {
                let args: Vec<Expr> = (0..arguments).map(|at| col(format!("a{at}"))).collect();
                // A function may take another number of arguments, which its signature does not show.
                let simplified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    function.simplify(args, &SimplifyContext::builder().build())
                }));
                let Ok(Ok(ExprSimplifyResult::Simplified(expr))) = simplified else { continue };
                let most = (0..arguments).map(|at| marks(&expr, &format!("a{at}"))).max().unwrap_or_default();
                assert!(most <= if duplicates(function.name()) { 2 } else { 1 }, "{}: {expr}", function.name());
            }
        }
    }
}
