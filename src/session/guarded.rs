//! Divisions in conditions that other conditions guard: `WHERE n <> 0 AND 10 / n > 2`.
//!
//! The engine may evaluate both conditions for a row, and then fails. In our sessions, a condition with a division is
//! computed only for rows that satisfy the other conditions on the same columns. All further conditions, such as those that
//! determine requests, stay where they are.
//!
//! Invariant: the result has the same rows. Only errors of rows that other conditions exclude disappear.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, cast, lit, when};

/// Returns the plan with guarded divisions.
///
/// # Errors
/// None in practice: conditions stay conditions.
pub(super) fn guarded(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Filter(filter) = node {
            found |= divides(&filter.predicate)?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Filter(mut filter) = node else { return Ok(Transformed::no(node)) };
        let (mut guards, mut divisions) = (Vec::new(), Vec::new());
        for condition in split_conjunction_owned(filter.predicate.clone()) {
            if divides(&condition)? { divisions.push(condition) } else { guards.push(condition) }
        }
        let below_guard = |division: Expr| -> Result<Expr> {
            let columns = division.column_refs();
            let about = |guard: &&Expr| {
                let of_guard = guard.column_refs();
                !of_guard.is_empty() && of_guard.is_subset(&columns)
            };
            match conjunction(guards.iter().filter(about).cloned()) {
                // As a number: the optimizer turns a CASE of truth values into AND and OR.
                Some(guard) => Ok(when(guard, cast(division, DataType::Int8)).end()?.eq(lit(1_i8))),
                None => Ok(division),
            }
        };
        let divisions = divisions.into_iter().map(below_guard).collect::<Result<Vec<_>>>()?;
        if let Some(predicate) = conjunction(guards.iter().cloned().chain(divisions)) {
            filter.predicate = predicate;
        }
        Ok(Transformed::yes(LogicalPlan::Filter(filter)))
    })
    .data()
}

/// True for an expression with a division by what may be zero. A subquery is computed in any case.
fn divides(expr: &Expr) -> Result<bool> {
    let subquery = expr.exists(|part| {
        Ok(matches!(part, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)))
    })?;
    let divides = expr.exists(|part| {
        Ok(match part {
            Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
                !matches!(right.as_ref(), Expr::Literal(..))
            }
            Expr::ScalarFunction(function) => ["postgres_divide", "postgres_modulo"].contains(&function.func.name()),
            _ => false,
        })
    })?;
    Ok(divides && !subquery)
}
