//! Divisions and functions in conditions that other conditions guard: `WHERE n <> 0 AND 10 / n > 2`, `CASE WHEN n <= 0 OR ln(n) > 2
//! THEN …`.
//!
//! The engine may evaluate both conditions for a row, and then fails. In our sessions, a condition that may fail is
//! computed only for rows for which the other conditions on the same columns leave the result open. All further conditions, such as
//! those that determine requests, stay where they are.
//!
//! Invariant: the result has the same rows and values. Only errors of rows that other conditions exclude disappear.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_binary, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, binary_expr, cast, lit, when};

use crate::functions::has_domain;
use crate::optimizer::expressions::has_subquery;

/// Returns the plan with guarded conditions.
///
/// # Errors
/// None in practice: conditions stay conditions.
pub(in crate::session) fn guarded(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= may_fail(expr)?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    if !found {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Filter(mut filter) => {
            let conditions = split_conjunction_owned(filter.predicate.clone());
            let conditions = conditions.into_iter().map(guarded_within).collect::<Result<Vec<_>>>()?;
            if let Some(predicate) = conjunction(open_ones(conditions, Operator::And, true)?) {
                filter.predicate = predicate;
            }
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        // Its equalities are keys.
        LogicalPlan::Join(_) => Ok(Transformed::no(node)),
        node => {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                if !may_fail(&expr)? {
                    return Ok(Transformed::no(expr));
                }
                let name = names.save(&expr);
                Ok(Transformed::yes(name.restore(guarded_within(expr)?)))
            })
        }
    })
    .data()
}

/// The expression with guarded parts in its conjunctions and disjunctions.
fn guarded_within(expr: Expr) -> Result<Expr> {
    if !may_fail(&expr)? {
        return Ok(expr);
    }
    expr.transform_down(|part| {
        let Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) = &part else {
            return Ok(Transformed::no(part));
        };
        let op = *op;
        let parts: Vec<Expr> = split_binary(&part, op).into_iter().cloned().collect();
        let parts = parts.into_iter().map(guarded_within).collect::<Result<Vec<_>>>()?;
        let whole = open_ones(parts, op, false)?.into_iter().reduce(|left, right| binary_expr(left, op, right));
        Ok(Transformed::new(whole.unwrap_or(part), true, TreeNodeRecursion::Jump))
    })
    .data()
}

/// The parts of a conjunction or disjunction, those that may fail computed only if the other parts about the same columns leave
/// the result open; `where_true`: or not true. The others come first.
fn open_ones(parts: Vec<Expr>, op: Operator, where_true: bool) -> Result<Vec<Expr>> {
    let (mut guards, mut failing) = (Vec::new(), Vec::new());
    for part in parts {
        if may_fail(&part)? { failing.push(part) } else { guards.push(part) }
    }
    let below_guard = |expr: Expr| -> Result<Expr> {
        let columns = expr.column_refs();
        let about = |guard: &&Expr| {
            let of_guard = guard.column_refs();
            let repeatable = !guard.is_volatile() && !has_subquery(guard);
            repeatable && !of_guard.is_empty() && of_guard.is_subset(&columns)
        };
        let guard = guards.iter().filter(about).cloned().reduce(|left, right| binary_expr(left, op, right));
        let Some(guard) = guard else { return Ok(expr) };
        let open = match op {
            _ if where_true => guard,
            Operator::Or => guard.is_not_true(),
            _ => guard.is_not_false(),
        };
        // As a number: the optimizer turns a CASE of truth values into AND and OR.
        Ok(when(open, cast(expr, DataType::Int8)).end()?.eq(lit(1_i8)))
    };
    let failing = failing.into_iter().map(below_guard).collect::<Result<Vec<_>>>()?;
    guards.extend(failing);
    Ok(guards)
}

/// True for an expression with a division by what may be zero, or a function without a value for some arguments. A subquery is
/// computed in any case.
fn may_fail(expr: &Expr) -> Result<bool> {
    let fails = expr.exists(|part| {
        Ok(match part {
            Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
                !matches!(right.as_ref(), Expr::Literal(..))
            }
            Expr::ScalarFunction(function) => {
                let name = function.func.name();
                ["postgres_divide", "postgres_modulo"].contains(&name) || has_domain(name)
            }
            _ => false,
        })
    })?;
    Ok(fails && !has_subquery(expr))
}
