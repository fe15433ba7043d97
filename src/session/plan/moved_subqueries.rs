//! Subqueries in places in which the engine does not support them: within aggregates and their FILTER, in GROUP BY, in ORDER
//! BY, within windows, and in the condition of a join.
//!
//! ```text
//! Aggregate: sum(<subquery>)        Aggregate: sum(__subquery_1)
//!   input                      ─▶     Projection: input's columns, <subquery> AS __subquery_1
//!                                       input
//! ```
//!
//! A condition of an inner join becomes one above it. A condition of an outer join on the side that may be filled with NULL becomes
//! one of that side. In other conditions, a subquery becomes a column of the side that it refers to.
//!
//! Invariant: the rows stay the same. A projection adds a column, but no rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, Projection, Sort};

use crate::optimizer::expressions::{all_columns, filtered, subquery_of};

/// Returns the plan with such subqueries in projections.
///
/// # Errors
/// Those of building a plan.
pub(in crate::session) fn moved_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
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
    if matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_) | LogicalPlan::Join(_))
    {
        node.apply_expressions(|expr| {
            found |= contains_moved(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

fn contains_moved(expr: &Expr) -> bool {
    expr.exists(|part| Ok(is_moved(part))).expect("no step fails")
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
    if let LogicalPlan::Join(join) = node {
        return moved_conditions(join);
    }
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
    let hidden = |subquery: &Expr| !refers_only_to(subquery, input.schema());
    let (input, kept) = match input {
        // ORDER BY may name columns that are not in the result.
        LogicalPlan::Projection(Projection { expr, input, .. })
            if matches!(node, LogicalPlan::Sort(_)) && subqueries.iter().any(hidden) =>
        {
            (Arc::unwrap_or_clone(input), expr)
        }
        input => {
            let kept = all_columns(input.schema());
            (input, kept)
        }
    };
    let added = subqueries.into_iter().enumerate().map(|(at, subquery)| subquery.alias(name(at)));
    let input = LogicalPlanBuilder::from(input).project(kept.into_iter().chain(added))?.build()?;
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

fn moved_conditions(join: Join) -> Result<Transformed<LogicalPlan>> {
    let conditions = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
    let (moved, mut kept): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(contains_moved);
    if join.join_type == JoinType::Inner {
        let filter = conjunction(kept);
        return Ok(Transformed::yes(filtered(LogicalPlan::Join(Join { filter, ..join }), moved)?));
    }
    let columns = all_columns(&join.schema);
    // Conditions on the side that may be filled with NULL alone.
    let optional = match join.join_type {
        JoinType::Left => Some(1),
        JoinType::Right => Some(0),
        _ => None,
    };
    let mut sides = [join.left.as_ref().clone(), join.right.as_ref().clone()];
    let is_optional = |condition: &Expr| optional.is_some_and(|at| refers_only_to(condition, sides[at].schema()));
    let (of_optional, mixed): (Vec<Expr>, Vec<Expr>) = moved.into_iter().partition(is_optional);
    let schemas = sides.clone().map(|side| Arc::clone(side.schema()));
    if let Some(at) = optional {
        sides[at] = filtered(sides[at].clone(), of_optional)?;
    }
    // The values of others are columns of the side that they refer to.
    let mut added = [Vec::new(), Vec::new()];
    let mut number = 0;
    for condition in mixed {
        let condition = condition.transform_down(|part| {
            let side = schemas.iter().position(|schema| is_moved(&part) && refers_only_to(&part, schema));
            let Some(side) = side else { return Ok(Transformed::no(part)) };
            number += 1;
            let name = format!("__subquery_{number}");
            added[side].push(part.alias(&name));
            Ok(Transformed::new(Expr::Column(Column::new_unqualified(name)), true, TreeNodeRecursion::Jump))
        });
        kept.push(condition?.data);
    }
    if kept.iter().any(contains_moved) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let [left, right] = std::array::from_fn(|side| {
        let of_side = all_columns(&schemas[side]).into_iter().chain(std::mem::take(&mut added[side]));
        LogicalPlanBuilder::from(sides[side].clone()).project(of_side)?.build()
    });
    let (left, right, filter) = (Arc::new(left?), Arc::new(right?), conjunction(kept));
    let plan = LogicalPlan::Join(Join { left, right, filter, ..join }).recompute_schema()?;
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(columns)?.build()?))
}

/// True if all columns of an expression, and all that its subqueries refer to, are those of a schema.
fn refers_only_to(expr: &Expr, schema: &DFSchema) -> bool {
    let mut only = true;
    expr.apply(|part| {
        if let Expr::Column(column) = part {
            only &= schema.has_column(column);
        }
        if let Some(subquery) = subquery_of(part) {
            let is_of =
                |outer: &Expr| matches!(outer, Expr::OuterReferenceColumn(_, column) if schema.has_column(column));
            only &= subquery.outer_ref_columns.iter().all(is_of);
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("no step fails");
    only
}
