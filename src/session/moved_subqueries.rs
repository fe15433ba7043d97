//! Subqueries in places in which the engine does not support them: within aggregates and their FILTER, in GROUP BY, in ORDER
//! BY, and within windows.
//!
//! ```text
//! Aggregate: sum(<subquery>)        Aggregate: sum(__subquery_1)
//!   input                      ─▶     Projection: input's columns, <subquery> AS __subquery_1
//!                                       input
//! ```
//!
//! Invariant: the rows stay the same. A projection adds a column, but no rows.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Sort};

/// Returns the plan with such subqueries in projections.
///
/// # Errors
/// Those of building a plan.
pub(super) fn moved_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= has_subquery(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| if has_subquery(&node)? { moved(node) } else { Ok(Transformed::no(node)) })
        .data()
}

fn has_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    if matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_)) {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(is_moved(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// True for a subquery that the engine computes in a projection only. One that looks at no row is computed anywhere.
fn is_moved(part: &Expr) -> bool {
    match part {
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        Expr::Exists(_) | Expr::InSubquery(_) => true,
        _ => false,
    }
}

fn moved(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut subqueries: Vec<Expr> = Vec::new();
    let names = NamePreserver::new(&node);
    let name = |at: usize| format!("__subquery_{}", at + 1);
    let columns = all_columns(node.schema());
    let changed = node.map_expressions(|expr| {
        let saved = names.save(&expr);
        let expr = expr.transform_down(|part| {
            if !is_moved(&part) {
                return Ok(Transformed::no(part));
            }
            let at = subqueries.iter().position(|known| *known == part).unwrap_or_else(|| {
                subqueries.push(part);
                subqueries.len() - 1
            });
            let column = Expr::Column(Column::new_unqualified(name(at)));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })?;
        Ok(expr.update_data(|expr| saved.restore(expr)))
    })?;
    let node = changed.data;
    let Some(input) = node.inputs().first().map(|input| (*input).clone()) else { return Ok(Transformed::no(node)) };
    let of_input = all_columns(input.schema());
    let added = subqueries.into_iter().enumerate().map(|(at, subquery)| subquery.alias(name(at)));
    let input = LogicalPlanBuilder::from(input).project(of_input.into_iter().chain(added))?.build()?;
    let node = match node {
        LogicalPlan::Sort(sort) => LogicalPlan::Sort(Sort { input: input.into(), ..sort }),
        node => node.with_new_exprs(node.expressions(), vec![input])?,
    };
    match node {
        LogicalPlan::Aggregate(_) => Ok(Transformed::yes(node)),
        // Their output has the columns of their input.
        node => Ok(Transformed::yes(LogicalPlanBuilder::from(node).project(columns)?.build()?)),
    }
}

fn all_columns(schema: &DFSchema) -> Vec<Expr> {
    schema.iter().map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name()))).collect()
}
