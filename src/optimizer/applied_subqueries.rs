//! Correlated subqueries that the engine cannot turn into joins, as an aggregate over a join.
//!
//! ```text
//! SELECT o.k, (SELECT count(*) FROM f WHERE f.v > o.v) FROM o
//!   ─▶ SELECT first_value(o.k), count(*) FILTER (WHERE present)
//!      FROM (SELECT o.*, row_number() AS row FROM o) LEFT JOIN (SELECT f.*, true AS present FROM f) ON f.v > o.v GROUP BY row
//! ```
//!
//! These are
//!
//! - an aggregate without GROUP BY whose rows are not chosen by `column = outer value` alone, or whose arguments or results have outer
//!   columns,
//! - such an aggregate whose result is an error for several rows, which must not be one for groups that no outer row has,
//! - such an aggregate in LATERAL, and a result that is computed from one: for an empty group, the engine has NULL for
//!   `count(*) IS NULL`,
//! - IN and EXISTS outside of WHERE with other comparisons than equality,
//! - a subquery with a subquery that refers to the outermost query: `NOT EXISTS (… NOT EXISTS (…))`, which is a division.
//!
//! The engine refuses some, returns wrong rows for others, and plans the last ones with columns that do not exist.
//!
//! The outer rows are read once. Their order of evaluation is not kept, as with any join.
//!
//! Invariant: a subquery that the engine turns into a join is left to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_aggregate::min_max::max_udaf;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Subquery, lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::{aggregate_of, as_outer, filtered, is_equality, lateral_of, map_subquery, subquery_of};
use crate::error::{Error, ErrorKind};
use crate::functions::OnlyValue;

/// See the module's documentation. Runs before `subqueries`, which gives the subqueries that move up their values.
#[derive(Debug)]
pub(super) struct AppliedSubqueries;

impl AnalyzerRule for AppliedSubqueries {
    fn name(&self) -> &str {
        "savedsearch_applied_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut applied = 0;
        let changed = plan.transform_down_with_subqueries(|plan| {
            if !has_hard(&plan)? {
                return Ok(Transformed::no(plan));
            }
            let before = applied;
            let with = match plan.clone() {
                LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                    let columns = input.schema().columns();
                    let (later, now): (Vec<_>, Vec<_>) =
                        split_conjunction_owned(predicate).into_iter().partition(|conjunct| is_hard(conjunct, true));
                    let input = filtered(Arc::unwrap_or_clone(input), now)?;
                    let (input, later) = without_subqueries(input, later, true, &mut applied)?;
                    let plan = LogicalPlanBuilder::from(filtered(input, later)?);
                    plan.project(columns.into_iter().map(Expr::Column))?.build()?
                }
                LogicalPlan::Projection(Projection { expr, input, .. }) => {
                    let (input, expr) = without_subqueries(Arc::unwrap_or_clone(input), expr, false, &mut applied)?;
                    LogicalPlan::Projection(Projection::try_new(expr, Arc::new(input))?)
                }
                LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, .. }) => {
                    let keys = group_expr.len();
                    let exprs = group_expr.into_iter().chain(aggr_expr).collect();
                    let (input, mut exprs) =
                        without_subqueries(Arc::unwrap_or_clone(input), exprs, false, &mut applied)?;
                    let aggregates = exprs.split_off(keys);
                    LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), exprs, aggregates)?)
                }
                LogicalPlan::Join(join) => match with_row_of(join, applied)? {
                    Some(plan) => {
                        applied += 1;
                        plan
                    }
                    None => return Ok(Transformed::no(plan)),
                },
                _ => return Ok(Transformed::no(plan)),
            };
            match applied > before {
                true => Ok(Transformed::yes(with)),
                false => Ok(Transformed::no(plan)),
            }
        })?;
        match changed.transformed {
            true => {
                changed.data.transform_up_with_subqueries(|plan| plan.recompute_schema().map(Transformed::yes)).data()
            }
            false => Ok(changed.data),
        }
    }
}

/// The input with the values of those subqueries as further columns that are hard for the engine and can be applied here, and the
/// expressions over it. `filter`: the expressions are conjuncts of WHERE or HAVING.
fn without_subqueries(
    mut input: LogicalPlan,
    exprs: Vec<Expr>,
    filter: bool,
    applied: &mut usize,
) -> Result<(LogicalPlan, Vec<Expr>)> {
    let exprs = exprs.into_iter().map(|expr| {
        let name = NamePreserver::new_for_projection().save(&expr);
        let top = filter && is_top(&expr);
        let expr = expr.transform_up(|part| {
            let kind = match &part {
                Expr::ScalarSubquery(_) => Kind::Scalar,
                Expr::Exists(Exists { negated, .. }) => Kind::Exists { negated: *negated },
                Expr::InSubquery(InSubquery { expr, negated, .. }) => {
                    Kind::In { operand: expr.as_ref().clone(), negated: *negated }
                }
                _ => return Ok(Transformed::no(part)),
            };
            let subquery = subquery_of(&part).filter(|_| is_hard_part(&part, filter, top));
            let with =
                subquery.map(|subquery| kind.applied(&input, &subquery.subquery, *applied)).transpose()?.flatten();
            let Some((with, mut values)) = with else {
                return match subquery.is_some_and(refers_beyond) {
                    true => Err(beyond()),
                    false => Ok(Transformed::no(part)),
                };
            };
            *applied += 1;
            input = with;
            Ok(Transformed::yes(values.remove(0)))
        })?;
        Ok(expr.update_data(|expr| name.restore(expr)).data)
    });
    let exprs = exprs.collect::<Result<_>>()?;
    Ok((input, exprs))
}

/// A join with LATERAL of an aggregate without GROUP BY, as the outer rows with the aggregate's row; `None` for other joins.
fn with_row_of(join: Join, applied: usize) -> Result<Option<LogicalPlan>> {
    let Some(subquery) = lateral_of(&join.right) else { return Ok(None) };
    if !join.on.is_empty() || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Ok(None);
    }
    let Some(Results { values, condition: None, aggregate }) = over_aggregate(&subquery.subquery)? else {
        return Ok(None);
    };
    let (with, values) = match is_hard_aggregate(&subquery.subquery) {
        true => match Kind::Scalar.applied(&join.left, &subquery.subquery, applied)? {
            Some(applied) => applied,
            None => return Ok(None),
        },
        // The engine joins the aggregate, but computes nothing from it for an empty group.
        false => {
            let columns = aggregate.schema.columns();
            let named = |at| Column::new_unqualified(format!("__value_{applied}_{at}"));
            let plain =
                columns.iter().enumerate().map(|(at, column)| Expr::Column(column.clone()).alias(named(at).name));
            let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(aggregate.clone())).project(plain)?.build()?;
            let right = LogicalPlan::Subquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() });
            let left = LogicalPlan::clone(&join.left);
            let plan = LogicalPlanBuilder::from(left).join_on(right, JoinType::Left, [lit(true)])?.build()?;
            let by = columns.into_iter().enumerate().map(|(at, column)| (column, Expr::Column(named(at)))).collect();
            (plan, values.into_iter().map(|value| replaced(value, &by)).collect::<Result<Vec<_>>>()?)
        }
    };
    let names = join.right.schema().columns();
    let by = names.iter().cloned().zip(values.clone()).collect();
    let condition = join.filter.map(|filter| replaced(filter, &by)).transpose()?;
    let shown = |value: Expr| match &condition {
        Some(condition) if join.join_type == JoinType::Left => when(condition.clone(), value).end(),
        _ => Ok(value),
    };
    let values = values
        .into_iter()
        .zip(names)
        .map(|(value, name)| shown(value).map(|value| value.alias_qualified(name.relation, name.name)));
    let columns = join.left.schema().columns().into_iter().map(|column| Ok(Expr::Column(column))).chain(values);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let chosen = condition.clone().filter(|_| join.join_type == JoinType::Inner);
    LogicalPlanBuilder::from(filtered(with, Vec::from_iter(chosen))?).project(columns)?.build().map(Some)
}

/// Question that is asked of the rows of a subquery.
enum Kind {
    Scalar,
    Exists { negated: bool },
    In { operand: Expr, negated: bool },
}

/// The rows of a subquery and what they become.
struct Parts {
    /// The rows, which refer to no other query.
    rows: LogicalPlan,
    /// The conditions on them that refer to outer rows.
    conditions: Vec<Expr>,
    /// Aggregates over the rows that meet the conditions.
    aggregates: Vec<Expr>,
    /// The values, over the aggregates' columns.
    values: Vec<Expr>,
    /// The columns of the aggregates.
    columns: Vec<Column>,
}

impl Kind {
    /// The outer rows with further columns, and the values of the subquery over them: one, or the columns of an aggregate's row.
    /// `None` if the subquery has another shape.
    fn applied(
        self,
        outer: &LogicalPlan,
        subquery: &LogicalPlan,
        number: usize,
    ) -> Result<Option<(LogicalPlan, Vec<Expr>)>> {
        let Some(parts) = self.parts(subquery, outer.schema())? else { return Ok(None) };
        let outer_columns = outer.schema().columns();
        let known = |column: &Column| outer.schema().has_column(column) || parts.rows.schema().has_column(column);
        let exprs = || parts.conditions.iter().chain(&parts.aggregates).chain(&parts.values);
        let mut free = BTreeSet::new();
        exprs().try_for_each(|expr| add_free(expr, &DFSchema::empty(), &mut free))?;
        if !free.iter().all(known) || !free_columns(&parts.rows)?.is_empty() || exprs().any(Expr::is_volatile) {
            return Ok(None);
        }
        // The rows have names that no other relation has.
        let names: BTreeMap<Column, Column> = parts
            .rows
            .schema()
            .columns()
            .into_iter()
            .enumerate()
            .map(|(at, column)| (column, Column::new_unqualified(format!("__inner_{number}_{at}"))))
            .collect();
        let present = format!("__present_{number}");
        let inner = names.iter().map(|(column, name)| Expr::Column(column.clone()).alias(&name.name));
        let inner = LogicalPlanBuilder::from(parts.rows).project(inner.chain([lit(true).alias(&present)]))?.build()?;
        let within = |exprs: Vec<Expr>| exprs.into_iter().map(|expr| within(expr, &names)).collect::<Result<Vec<_>>>();

        let numbered = LogicalPlanBuilder::from(outer.clone()).window([row_number()])?.build()?;
        let row = Expr::Column(numbered.schema().columns().pop().expect("the window's column"));
        let row_name = format!("__row_{number}");
        let columns = outer_columns.iter().cloned().map(Expr::Column).chain([row.alias(&row_name)]);
        let numbered = LogicalPlanBuilder::from(numbered).project(columns)?;

        let (later, on): (Vec<_>, Vec<_>) =
            within(parts.conditions)?.into_iter().partition(|condition| !subqueries(condition).is_empty());
        let on = if on.is_empty() { vec![lit(true)] } else { on };
        let mut joined = numbered.join_on(inner, JoinType::Left, on)?.build()?;
        let mut matches = Expr::Column(Column::new_unqualified(&present)).is_true();
        if !later.is_empty() {
            let name = format!("__matches_{number}");
            matches = later.into_iter().fold(matches, Expr::and);
            let columns = joined.schema().columns().into_iter().map(Expr::Column).chain([matches.alias(&name)]);
            joined = LogicalPlanBuilder::from(joined).project(columns)?.build()?;
            matches = Expr::Column(Column::new_unqualified(name)).is_true();
        }

        let first = outer_columns.iter().enumerate().map(|(at, column)| {
            aggregate_of(first_value_udaf(), Expr::Column(column.clone())).alias(format!("__first_{number}_{at}"))
        });
        let aggregates = within(parts.aggregates)?.into_iter().enumerate();
        let aggregates = aggregates
            .map(|(at, expr)| only_rows(expr, &matches).map(|expr| expr.alias(format!("__value_{number}_{at}"))));
        let aggregates = first.map(Ok).chain(aggregates).collect::<Result<Vec<_>>>()?;
        let grouped = LogicalPlanBuilder::from(joined)
            .aggregate([Expr::Column(Column::new_unqualified(row_name))], aggregates)?;
        let columns = outer_columns.iter().enumerate().map(|(at, column)| {
            let first = Expr::Column(Column::new_unqualified(format!("__first_{number}_{at}")));
            first.alias_qualified(column.relation.clone(), &column.name)
        });
        let values =
            (0..parts.columns.len()).map(|at| Expr::Column(Column::new_unqualified(format!("__value_{number}_{at}"))));
        let with = grouped.project(columns.chain(values.clone()))?.build()?;
        let by = parts.columns.into_iter().zip(values).collect();
        let values = parts.values.into_iter().map(|value| replaced(value, &by)).collect::<Result<_>>()?;
        Ok(Some((with, within(values)?)))
    }

    /// The parts of a subquery that this kind can be computed from.
    fn parts(self, plan: &LogicalPlan, outer: &DFSchema) -> Result<Option<Parts>> {
        if let Some(Results { mut values, condition, aggregate }) = over_aggregate(plan)? {
            let condition = condition.map(Expr::is_true);
            let values = match self {
                Self::Scalar => {
                    let chosen = |value| match &condition {
                        Some(condition) => when(condition.clone(), value).end(),
                        None => Ok(value),
                    };
                    values.into_iter().map(chosen).collect::<Result<_>>()?
                }
                Self::Exists { negated } => vec![negated_if(negated, condition.unwrap_or(lit(true)))],
                Self::In { operand, negated } => {
                    let equal = as_outer(operand, outer)?.eq(values.remove(0));
                    vec![negated_if(
                        negated,
                        condition.into_iter().fold(equal, |equal, condition| condition.and(equal)),
                    )]
                }
            };
            let (rows, conditions) = without_conditions(&aggregate.input)?;
            let columns = aggregate.schema.columns();
            return Ok(Some(Parts { rows, conditions, aggregates: aggregate.aggr_expr.clone(), values, columns }));
        }
        let Some((mut values, input)) = over_rows(plan)? else { return Ok(None) };
        let found = Column::new_unqualified("__found");
        let value = Expr::Column(found.clone());
        let (value, found_value) = match self {
            Self::Exists { negated } => (negated_if(negated, value.is_not_null()), lit(1_i64)),
            Self::In { operand, negated } if values.len() == 1 && subqueries(&operand).is_empty() => {
                // 2 if one is equal, 1 if equality is unknown for one, 0 if there are others only.
                let equal = as_outer(operand, outer)?.eq(values.remove(0));
                let mut kind = when(equal.clone().is_true(), lit(2_i64)).when(equal.is_null(), lit(1_i64));
                let value = when(value.clone().eq(lit(2_i64)), lit(true))
                    .when(value.eq(lit(1_i64)), lit(ScalarValue::Boolean(None)))
                    .otherwise(lit(false))?;
                (negated_if(negated, value), kind.otherwise(lit(0_i64))?)
            }
            Self::Scalar | Self::In { .. } => return Ok(None),
        };
        let (rows, conditions) = without_conditions(&input)?;
        let aggregates = vec![aggregate_of(max_udaf(), found_value)];
        Ok(Some(Parts { rows, conditions, aggregates, values: vec![value], columns: vec![found] }))
    }
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

/// True if a node has a subquery that the engine cannot turn into a join.
fn has_hard(plan: &LogicalPlan) -> Result<bool> {
    if let LogicalPlan::Join(join) = plan {
        let Some(subquery) = lateral_of(&join.right) else { return Ok(false) };
        // For an empty group, the engine has NULL for an expression that is never NULL.
        let computes = over_aggregate(&subquery.subquery)?
            .is_some_and(|results| results.values.iter().any(|value| !matches!(value, Expr::Column(_))));
        return Ok(computes || is_hard_aggregate(&subquery.subquery));
    }
    let filter = matches!(plan, LogicalPlan::Filter(_));
    let mut found = false;
    plan.apply_expressions(|expr| {
        let parts = if filter { split_conjunction(expr) } else { vec![expr] };
        found |= parts.into_iter().any(|part| is_hard(part, filter));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// True if an expression has a subquery that the engine cannot turn into a join. `filter`: it is a conjunct of WHERE or HAVING.
fn is_hard(expr: &Expr, filter: bool) -> bool {
    let top = filter && is_top(expr);
    expr.exists(|part| Ok(is_hard_part(part, filter, top))).unwrap_or(false)
}

/// True for a conjunct that is IN or EXISTS as a whole, which becomes a join of its own.
fn is_top(conjunct: &Expr) -> bool {
    match conjunct {
        Expr::Not(inner) => is_top(inner),
        conjunct => matches!(conjunct, Expr::Exists(_) | Expr::InSubquery(_)),
    }
}

/// The same for a subquery: `filter` and `top` tell what becomes of IN and EXISTS, which are scalar subqueries in other places.
fn is_hard_part(part: &Expr, filter: bool, top: bool) -> bool {
    let Some(subquery) = subquery_of(part) else { return false };
    if refers_beyond(subquery) || is_hard_aggregate(&subquery.subquery) {
        return true;
    }
    let joins = match part {
        Expr::Exists(_) => filter,
        Expr::InSubquery(_) => top,
        _ => true,
    };
    let conditions = || {
        Ok::<_, DataFusionError>(match over_rows(&subquery.subquery)? {
            Some((_, rows)) => without_conditions(&rows)?.1,
            None => vec![],
        })
    };
    !joins && conditions().is_ok_and(|conditions| !conditions.iter().all(is_equality))
}

/// True for an aggregate without GROUP BY that the engine does not put above a join.
fn is_hard_aggregate(plan: &LogicalPlan) -> bool {
    let Ok(Some(Results { values, condition, aggregate })) = over_aggregate(plan) else { return false };
    let Ok((_, conditions)) = without_conditions(&aggregate.input) else { return false };
    !conditions.is_empty() && has_late_condition(plan)
        || values.iter().any(has_only_value)
        || aggregate.aggr_expr.iter().chain(&values).chain(&condition).any(Expr::contains_outer)
        || !conditions.iter().all(is_equality)
}

/// True for a value that is an error for several rows. The engine would compute it for groups that no outer row has.
fn has_only_value(value: &Expr) -> bool {
    let only = |part: &Expr| Ok(matches!(part, Expr::ScalarFunction(call) if OnlyValue::is(&call.func)));
    value.exists(only).unwrap_or(false)
}

/// True for a condition on the result of an aggregate that is not its HAVING.
fn has_late_condition(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => has_late_condition(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_late_condition(&node.input),
        LogicalPlan::Filter(node) => !matches!(node.input.as_ref(), LogicalPlan::Aggregate(_)),
        _ => false,
    }
}

/// True if a subquery within the subquery refers to a query outside of both.
fn refers_beyond(subquery: &Subquery) -> bool {
    let beyond = |node: &LogicalPlan| {
        let schema = merge_schema(&node.inputs());
        let mut found = false;
        node.apply_expressions(|expr| {
            for inner in subqueries(expr) {
                found |= free_columns(&inner.subquery)?.iter().any(|column| !schema.has_column(column));
            }
            found |= expr.exists(|part| Ok(matches!(part, Expr::InSubquery(inner) if inner.expr.contains_outer())))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    };
    subquery.subquery.exists(beyond).unwrap_or(false)
}

fn beyond() -> DataFusionError {
    let error = "a subquery here refers to a query outside of the one around it, which is not supported at this place";
    Error::new(ErrorKind::Unsupported, error).advice("write the inner subquery as a join of the query around it").into()
}

/// Results of a subquery over an aggregate without GROUP BY, over the columns of the aggregate.
struct Results<'p> {
    values: Vec<Expr>,
    /// HAVING, and further conditions on the results.
    condition: Option<Expr>,
    aggregate: &'p Aggregate,
}

/// The results of a subquery, if it is over an aggregate without GROUP BY.
fn over_aggregate(plan: &LogicalPlan) -> Result<Option<Results<'_>>> {
    let input = match plan {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            let values = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
            return Ok(Some(Results { values, condition: None, aggregate }));
        }
        LogicalPlan::SubqueryAlias(node) => &node.input,
        LogicalPlan::Projection(node) => &node.input,
        LogicalPlan::Filter(node) => &node.input,
        _ => return Ok(None),
    };
    let Some(Results { values, condition, aggregate }) = over_aggregate(input)? else { return Ok(None) };
    let names = input.schema().columns().into_iter().zip(values.iter().cloned()).collect();
    Ok(Some(match plan {
        LogicalPlan::Projection(node) => {
            let values = node.expr.iter().map(|expr| replaced(expr.clone().unalias(), &names));
            Results { values: values.collect::<Result<_>>()?, condition, aggregate }
        }
        LogicalPlan::Filter(node) => {
            let condition = condition.into_iter().fold(replaced(node.predicate.clone(), &names)?, Expr::and);
            Results { values, condition: Some(condition), aggregate }
        }
        _ => Results { values, condition, aggregate },
    }))
}

/// The values of a subquery over the columns of its rows, and the rows, without what decides neither which values there are nor
/// whether there is one.
fn over_rows(plan: &LogicalPlan) -> Result<Option<(Vec<Expr>, Arc<LogicalPlan>)>> {
    Ok(match plan {
        LogicalPlan::Projection(node) => {
            let (names, rows) = match over_rows(&node.input)? {
                Some((values, rows)) => (node.input.schema().columns().into_iter().zip(values).collect(), rows),
                None => (BTreeMap::new(), Arc::clone(&node.input)),
            };
            let values = node.expr.iter().map(|expr| replaced(expr.clone().unalias(), &names));
            Some((values.collect::<Result<_>>()?, rows))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => over_rows(input)?,
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => over_rows(&sort.input)?,
        _ => None,
    })
}

/// The rows without the conditions at their top that refer to other queries, and the conditions.
fn without_conditions(plan: &LogicalPlan) -> Result<(LogicalPlan, Vec<Expr>)> {
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan else { return Ok((plan.clone(), vec![])) };
    let (rows, mut conditions) = without_conditions(input)?;
    let mut own = vec![];
    for conjunct in split_conjunction(predicate) {
        let mut free = BTreeSet::new();
        add_free(conjunct, input.schema(), &mut free)?;
        if free.is_empty() { &mut own } else { &mut conditions }.push(conjunct.clone());
    }
    Ok((filtered(rows, own)?, conditions))
}

/// The columns of other queries that a plan refers to, those of its subqueries included.
fn free_columns(plan: &LogicalPlan) -> Result<BTreeSet<Column>> {
    let mut free = BTreeSet::new();
    plan.apply(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            add_free(expr, &schema, &mut free)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(free)
}

/// Adds the columns of other queries that an expression over this schema refers to.
fn add_free(expr: &Expr, schema: &DFSchema, free: &mut BTreeSet<Column>) -> Result<()> {
    expr.apply(|part| {
        if let Expr::OuterReferenceColumn(_, column) = part {
            free.insert(column.clone());
        }
        if let Some(subquery) = subquery_of(part) {
            free.extend(free_columns(&subquery.subquery)?.into_iter().filter(|column| !schema.has_column(column)));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The subqueries in an expression, without those within them.
fn subqueries(expr: &Expr) -> Vec<&Subquery> {
    let mut found = vec![];
    expr.apply(|part| {
        found.extend(subquery_of(part));
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("no step fails");
    found
}

/// An expression of a subquery as one over the join of both: outer columns are columns now, and inner ones have other names.
fn within(expr: Expr, names: &BTreeMap<Column, Column>) -> Result<Expr> {
    expr.transform_up(|part| match part {
        Expr::Column(column) => Ok(Transformed::yes(Expr::Column(names.get(&column).cloned().unwrap_or(column)))),
        Expr::OuterReferenceColumn(_, column) => Ok(Transformed::yes(Expr::Column(column))),
        other => renamed_subquery(other, names),
    })
    .data()
}

/// The expression, whose subquery refers to the inner rows by their new names.
fn renamed_subquery(expr: Expr, names: &BTreeMap<Column, Column>) -> Result<Transformed<Expr>> {
    map_subquery(expr, |Subquery { subquery, spans, .. }| {
        let plan = renamed_outer(Arc::unwrap_or_clone(subquery), names)?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        Ok(Transformed::yes(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans }))
    })
}

/// The plan of a subquery whose outer columns have other names, unless a query between has a column of that name.
fn renamed_outer(plan: LogicalPlan, names: &BTreeMap<Column, Column>) -> Result<LogicalPlan> {
    plan.transform_up(|node| {
        let schema = merge_schema(&node.inputs());
        let further = names.iter().filter(|(column, _)| !schema.has_column(column));
        let further: BTreeMap<_, _> = further.map(|(column, name)| (column.clone(), name.clone())).collect();
        node.map_expressions(|expr| {
            expr.transform_up(|part| match part {
                Expr::OuterReferenceColumn(field, column) => {
                    let name = names.get(&column).cloned().unwrap_or(column);
                    Ok(Transformed::yes(Expr::OuterReferenceColumn(field, name)))
                }
                other => renamed_subquery(other, &further),
            })
        })
    })
    .data()
}

/// The expression with other expressions for its columns.
fn replaced(expr: Expr, by: &BTreeMap<Column, Expr>) -> Result<Expr> {
    expr.transform_up(|part| match part {
        Expr::Column(column) => match by.get(&column) {
            Some(other) => Ok(Transformed::new(other.clone(), true, TreeNodeRecursion::Jump)),
            None => Ok(Transformed::no(Expr::Column(column))),
        },
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// The aggregate of those rows only that meet a condition.
fn only_rows(aggregate: Expr, condition: &Expr) -> Result<Expr> {
    aggregate
        .transform(|part| match part {
            Expr::AggregateFunction(mut function) => {
                let filter = function.params.filter.take();
                let filter = filter.into_iter().fold(condition.clone(), |both, filter| both.and(*filter));
                function.params.filter = Some(Box::new(filter));
                Ok(Transformed::new(Expr::AggregateFunction(function), true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()
}
