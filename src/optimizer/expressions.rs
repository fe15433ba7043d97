//! Expressions of plans, for rules of analysis: rewrites of all of them, and those that several rules make.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, BinaryExpr, Expr, FetchType, Join, LogicalPlan, LogicalPlanBuilder, Operator, SkipType,
    Subquery,
};

use crate::error::{Error, ErrorKind};

/// Expressions that a rule may make of one.
const EXPRESSIONS: usize = 200_000;
/// Parts of an expression that may be compared with each row of a long list.
const SIMPLE: usize = 16;
/// Parts of parts that the copies of a larger expression may have: planning needs time for each of them.
const WORK: usize = 500_000;

/// Calls `each` with every expression of a plan and of its subqueries, inner ones first, and with the columns that it may use.
/// Columns of results keep their names.
///
/// # Errors
/// Those of `each`, and [`ErrorKind::TooLarge`] if copies of copies grow too much.
pub(super) fn rewrite_expressions(
    plan: LogicalPlan,
    each: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
    node: impl Fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    rewrite(plan, each, node, true)
}

/// As [`rewrite_expressions`], but without those of grouping sets: the engine finds a cast there by its name.
pub(super) fn rewrite_values(
    plan: LogicalPlan,
    each: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    rewrite(plan, each, |plan| Ok(Transformed::no(plan)), false)
}

fn rewrite(
    plan: LogicalPlan,
    each: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
    node: impl Fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
    sets: bool,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let changed = plan.map_expressions(|expr| {
            if !sets && matches!(expr, Expr::GroupingSet(_)) {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let expr = expr.transform_up(|expr| {
                let changed = each(expr, &schema)?;
                if changed.transformed {
                    check_copies(&changed.data, 1)?;
                }
                Ok(changed)
            })?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })?;
        let changed = changed.transform_data(&node)?;
        if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    })
    .map(|transformed| transformed.data)
}

/// An expression of the outer query, as its subquery refers to it.
///
/// # Errors
/// Those of the engine for a column that `schema` does not have.
pub(super) fn as_outer(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    expr.transform(|part| match part {
        Expr::Column(column) => {
            let field = schema.field_from_column(&column)?;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// The rows of a plan that meet all conditions.
pub(crate) fn filtered(plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(conditions) {
        Some(condition) => LogicalPlanBuilder::from(plan).filter(condition)?.build(),
        None => Ok(plan),
    }
}

/// All columns of a schema, in their order.
pub(crate) fn all_columns(schema: &DFSchema) -> Vec<Expr> {
    schema.columns().into_iter().map(Expr::Column).collect()
}

/// The subquery of a LATERAL item of FROM.
pub(crate) fn lateral_of(plan: &LogicalPlan) -> Option<&Subquery> {
    match plan {
        LogicalPlan::Subquery(subquery) => Some(subquery),
        LogicalPlan::SubqueryAlias(alias) => lateral_of(&alias.input),
        _ => None,
    }
}

/// True for an inner column that is equal to an outer value. The engine groups by the column, so an expression would not do.
pub(crate) fn is_equality(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let outer = |side: &Expr| side.contains_outer() && side.column_refs().is_empty();
    match (left.as_ref(), right.as_ref()) {
        (Expr::Column(_), other) | (other, Expr::Column(_)) => outer(other),
        _ => false,
    }
}

/// The subquery that an expression is.
pub(crate) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(Exists { subquery, .. }) | Expr::InSubquery(InSubquery { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// True for an expression with a subquery.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    let is_one = |part: &Expr| subquery_of(part).is_some() || matches!(part, Expr::SetComparison(_));
    expr.exists(|part| Ok(is_one(part))).unwrap_or(true)
}

/// The subquery of EXISTS without ORDER BY, DISTINCT and LIMIT, which do not decide whether it has a row; `None` if it has none.
pub(crate) fn without_order(plan: &LogicalPlan) -> Option<LogicalPlan> {
    let mut node = plan;
    loop {
        node = match node {
            LogicalPlan::Distinct(distinct) => distinct.input(),
            LogicalPlan::Sort(sort) if sort.fetch != Some(0) => &sort.input,
            LogicalPlan::Limit(limit) => match (limit.get_skip_type(), limit.get_fetch_type()) {
                (Ok(SkipType::Literal(_)), Ok(FetchType::Literal(Some(0)))) => return None,
                (Ok(SkipType::Literal(0)), Ok(FetchType::Literal(_))) => &limit.input,
                _ => return Some(node.clone()),
            },
            LogicalPlan::Projection(projection)
                if matches!(
                    projection.input.as_ref(),
                    LogicalPlan::Distinct(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_)
                ) =>
            {
                &projection.input
            }
            other => return Some(other.clone()),
        }
    }
}

/// True for a subquery with at most one row, which it has for an empty input too: an aggregate without GROUP BY, with or
/// without HAVING.
pub(crate) fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => is_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => is_one_row(&node.input),
        LogicalPlan::Filter(node) => is_one_row(&node.input),
        LogicalPlan::Sort(node) => is_one_row(&node.input),
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        _ => false,
    }
}

/// True for a join whose ON refers to an outer query.
pub(crate) fn has_outer_condition(join: &Join) -> bool {
    let of_key = |(left, right): &(Expr, Expr)| left.contains_outer() || right.contains_outer();
    join.filter.as_ref().is_some_and(Expr::contains_outer) || join.on.iter().any(of_key)
}

/// Calls `map` with the subquery that an expression is, if it is one.
///
/// # Errors
/// Those of `map`.
pub(crate) fn map_subquery(
    expr: Expr,
    map: impl FnOnce(Subquery) -> Result<Transformed<Subquery>>,
) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarSubquery(subquery) => Ok(map(subquery)?.update_data(Expr::ScalarSubquery)),
        Expr::Exists(Exists { subquery, negated }) => {
            Ok(map(subquery)?.update_data(|subquery| Expr::Exists(Exists { subquery, negated })))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Ok(map(subquery)?.update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// An aggregate function of one value.
pub(super) fn aggregate_of(function: Arc<AggregateUDF>, value: Expr) -> Expr {
    Expr::AggregateFunction(AggregateFunction::new_udf(function, vec![value], false, None, vec![], None))
}

/// Rejects an expression that would be too large with so many copies. A rule checks the expressions that it copies, since nested
/// copies grow exponentially.
///
/// # Errors
/// [`ErrorKind::TooLarge`] with what to write instead.
pub(super) fn check_copies(expr: &Expr, copies: usize) -> Result<()> {
    let parts_of = |most: usize| {
        let mut parts = 0_usize;
        // The closure never fails.
        let _ = expr.apply(|_| {
            parts += 1;
            Ok(if parts >= most { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        parts
    };
    let Some(message) = too_many_copies(copies, parts_of) else { return Ok(()) };
    let advice = "compare with fewer rows, nest fewer comparisons of rows, or compute inner comparisons in a subquery";
    Err(Error::new(ErrorKind::TooLarge, message).advice(advice).into())
}

/// The message about an expression that is too large to be written out so often; `None` if it is not. `parts_of` counts its parts,
/// as far as a number.
pub(crate) fn too_many_copies(copies: usize, parts_of: impl FnOnce(usize) -> usize) -> Option<String> {
    let parts = parts_of(EXPRESSIONS / copies.max(1) + 1);
    let is_compound = copies > 1 && parts > SIMPLE;
    let most = if is_compound { WORK / parts } else { EXPRESSIONS };
    let exceeded = if is_compound { most.max(parts) } else { most };
    let message = || format!("statement too complex: written out, an expression has more than {exceeded} parts");
    (parts.saturating_mul(copies) > most).then(message)
}

/// True for an operator that compares two values.
pub(super) fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn the_larger_an_expression_the_fewer_copies_it_may_have() {
        let cases = [(1, 200_000), (16, 12_500), (20, 1_250), (88, 64), (500, 2), (200_000, 1)];
        each(cases, |(parts, most)| {
            let refused = |copies| too_many_copies(copies, |counted: usize| counted.min(parts)).is_some();
            assert_eq!((refused(most), refused(most + 1)), (false, true), "{parts}");
        });
        let told = too_many_copies(2, |most| most).expect("too many");
        assert!(told.ends_with("has more than 100001 parts"), "{told}");
    }
}
