//! Correlated items of FROM, and scalar subqueries, that the engine refuses, rewritten to plans that it supports.
//!
//! | in a statement | rewritten to |
//! | --- | --- |
//! | `FROM t, unnest(t.list) AS u(x)` | the lists as a further column of `t`, then unnested |
//! | `FROM t, LATERAL (SELECT t.a + t.b AS x)` | `x` as a further column of `t` |
//! | `FROM t, LATERAL (VALUES (t.a), (t.b)) v(x)` | `t` for each number of a row, and the values of that row |
//! | LIMIT, windows and derived tables below `k = t.x` | as `keyed_subqueries` has them |
//! | `(SELECT x FROM … WHERE k = t.x ORDER BY s LIMIT 1)` | `first_value(x ORDER BY s)` |
//! | `(SELECT x FROM … WHERE k = t.x)`, if `k` is the key of the table | `first_value(x)` |
//! | `(SELECT x FROM … WHERE …)` | `only_value(first_value(x), count(*))`, an error for several rows |
//! | `(SELECT … FROM a JOIN b ON a.k = b.k AND b.v = t.x)` | `… ON a.k = b.k WHERE b.v = t.x` |
//! | `(SELECT t.a + 1 WHERE t.b > 0)` | `CASE WHEN t.b > 0 THEN t.a + 1 END` |
//!
//! Invariant: an item that does not have exactly one of the forms above stays as it is, and the engine refuses it.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Dependency, FunctionalDependence, NullHandling, Result};
use datafusion::functions_aggregate::count::{count, count_distinct};
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Case, Distinct, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery,
    Values, cast, col, lit, when,
};

use super::keyed_subqueries::{keyed, rows_of};
use crate::functions::OnlyValue;
use crate::optimizer::expressions::{
    all_columns, filtered, is_one_row, lateral_of, map_subquery, subquery_of, without_order,
};

/// Returns the plan with such items as the engine has them.
///
/// # Errors
/// Those of building a plan.
pub(in crate::session) fn lateral(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Subquery(_));
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(is_correlated(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|part| rewritten(part, &schema))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })?;
        node.transform_data(|node| match node {
            LogicalPlan::Join(join) => joined(join),
            // One row is different from all others, sorted, and the first one.
            LogicalPlan::Distinct(Distinct::All(input)) if is_one_row(&input) => {
                Ok(Transformed::yes(Arc::unwrap_or_clone(input)))
            }
            LogicalPlan::Limit(limit) if is_one_row(&limit.input) => match rows_of(&limit)? {
                Some((0, fetch)) if fetch != Some(0) => Ok(Transformed::yes(Arc::unwrap_or_clone(limit.input))),
                _ => Ok(Transformed::no(LogicalPlan::Limit(limit))),
            },
            LogicalPlan::Sort(sort) if is_one_row(&sort.input) => {
                Ok(Transformed::yes(Arc::unwrap_or_clone(sort.input)))
            }
            other => Ok(Transformed::no(other)),
        })
    })
    .data()
}

fn is_correlated(part: &Expr) -> bool {
    subquery_of(part).is_some_and(|subquery| !subquery.outer_ref_columns.is_empty())
}

/// The join without conditions on outer columns in its ON, which the engine does not move to the outer query. They are conditions
/// above an inner join.
fn joined(join: Join) -> Result<Transformed<LogicalPlan>> {
    let of_outer = join.filter.as_ref().is_some_and(Expr::contains_outer);
    if join.join_type != JoinType::Inner || !of_outer {
        return with_item(join);
    }
    let conditions = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
    let (moved, kept): (Vec<_>, Vec<_>) = conditions.into_iter().partition(Expr::contains_outer);
    let plan = with_item(Join { filter: conjunction(kept), ..join })?.data;
    Ok(Transformed::yes(filtered(plan, moved)?))
}

/// A join with an item of FROM that refers to the ones before it, in a form that the engine supports.
fn with_item(join: Join) -> Result<Transformed<LogicalPlan>> {
    let inner_or_left = matches!(join.join_type, JoinType::Inner | JoinType::Left) && join.on.is_empty();
    let rewritten = match lateral_of(&join.right).filter(|_| inner_or_left) {
        Some(Subquery { subquery, .. }) => match computed(&join, subquery)? {
            Some(plan) => return Ok(Transformed::yes(plan)),
            None => keyed(subquery)?,
        },
        None => None,
    };
    let Some(rewritten) = rewritten else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    let subquery = LogicalPlan::Subquery(subquery_with(rewritten));
    let right = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => LogicalPlanBuilder::from(subquery).alias(alias.alias.clone())?.build()?,
        _ => subquery,
    };
    Ok(Transformed::yes(LogicalPlan::Join(Join { right: Arc::new(right), ..join })))
}

/// Operators of a subquery that compute, filter and name columns, outer ones first, and their input.
fn computing(subquery: &LogicalPlan) -> (Vec<&LogicalPlan>, &LogicalPlan) {
    let (mut path, mut node) = (Vec::new(), subquery);
    loop {
        let input = match node {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            _ => return (path, node),
        };
        path.push(node);
        node = input;
    }
}

/// A join with what a subquery computes from its left side: from lists, from one row, or from rows that are written out.
fn computed(join: &Join, subquery: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let (path, base) = computing(subquery);
    let always = join.filter.as_ref().is_none_or(|filter| *filter == lit(true));
    let filtered = !always || path.iter().any(|node| matches!(node, LogicalPlan::Filter(_)));
    // A row that does not meet the conditions is one of NULLs.
    let or_nulls = filtered && join.join_type == JoinType::Left;
    if or_nulls && !has_one_row(base) {
        return Ok(None);
    }
    let Some((plan, columns)) = base_columns(join, base)? else { return Ok(None) };
    let left = join.left.schema();
    let Some((mut columns, mut conditions)) = columns_along(path, base, columns, left)? else { return Ok(None) };
    if or_nulls {
        conditions.extend(condition_of_join(join, &columns)?);
        if conditions.iter().chain(&columns).any(Expr::is_volatile) {
            return Ok(None);
        }
        if let Some(condition) = conjunction(std::mem::take(&mut conditions)) {
            let met = columns.into_iter().map(|column| when(condition.clone(), column).end());
            columns = met.collect::<Result<_>>()?;
        }
    }
    let named = join.right.schema().iter().zip(columns);
    let named = named.map(|((qualifier, field), expr)| expr.alias_qualified(qualifier.cloned(), field.name()));
    let plan = match conjunction(conditions) {
        Some(condition) => plan.filter(condition)?,
        None => plan,
    };
    let plan = plan.project(all_columns(left).into_iter().chain(named))?;
    Ok(Some(match &join.filter {
        Some(filter) if !always && !or_nulls => plan.filter(filter.clone())?.build()?,
        _ => plan.build()?,
    }))
}

/// The left side of a join with what the base of a subquery computes from it, and the columns of that; `None` for another base.
fn base_columns(join: &Join, base: &LogicalPlan) -> Result<Option<(LogicalPlanBuilder, Vec<Expr>)>> {
    let left = join.left.schema();
    Ok(Some(match base {
        LogicalPlan::Unnest(unnest) => {
            let LogicalPlan::Projection(Projection { expr: lists, input, .. }) = unnest.input.as_ref() else {
                return Ok(None);
            };
            if !has_one_row(input) || !unnest.struct_type_columns.is_empty() {
                return Ok(None);
            }
            let lists = lists.iter().map(|list| of_outer(list, left)).collect::<Result<Option<Vec<_>>>>()?;
            let Some(lists) = lists else { return Ok(None) };
            let mut options = unnest.options.clone();
            if join.join_type == JoinType::Left {
                options.null_handling = NullHandling::PreserveAndExpandEmpty;
            }
            let plan = LogicalPlanBuilder::from(join.left.as_ref().clone())
                .project(all_columns(left).into_iter().chain(lists))?
                .unnest_columns_with_options(unnest.exec_columns.clone(), options)?;
            (plan, all_columns(&unnest.schema))
        }
        LogicalPlan::Values(Values { schema, values }) => {
            let row =
                |row: &Vec<Expr>| row.iter().map(|value| of_outer(value, left)).collect::<Result<Option<Vec<_>>>>();
            let rows = values.iter().map(row).collect::<Result<Option<Vec<_>>>>()?;
            let Some(rows) = rows else { return Ok(None) };
            // The left side is read once.
            let numbers = (0..rows.len() as i64).map(|number| vec![lit(number)]).collect();
            let numbers = LogicalPlanBuilder::values(numbers)?.project([col("column1").alias(NUMBER)])?.build()?;
            let plan = LogicalPlanBuilder::from(join.left.as_ref().clone()).cross_join(numbers)?;
            let mut columns = Vec::new();
            for (at, field) in schema.fields().iter().enumerate() {
                let values = rows.iter().enumerate().map(|(number, row)| {
                    (Box::new(lit(number as i64)), Box::new(cast(row[at].clone(), field.data_type().clone())))
                });
                let number = Box::new(Expr::Column(Column::new_unqualified(NUMBER)));
                columns.push(Expr::Case(Case::new(Some(number), values.collect(), None)));
            }
            (plan, columns)
        }
        _ if has_one_row(base) => (LogicalPlanBuilder::from(join.left.as_ref().clone()), Vec::new()),
        _ => return Ok(None),
    }))
}

/// The columns of a subquery and its conditions, by the columns of its base. `path`: the operators above the base, outermost first.
fn columns_along(
    path: Vec<&LogicalPlan>,
    base: &LogicalPlan,
    mut columns: Vec<Expr>,
    left: &DFSchema,
) -> Result<Option<(Vec<Expr>, Vec<Expr>)>> {
    let (mut schema, mut conditions) = (Arc::clone(base.schema()), Vec::new());
    let outermost = path.len().saturating_sub(1);
    for (at, node) in path.into_iter().rev().enumerate() {
        if let LogicalPlan::SubqueryAlias(_) = node {
            schema = Arc::clone(node.schema());
            continue;
        }
        let expressions = node.expressions();
        // Its value would be computed for each use.
        if at < outermost && expressions.iter().any(Expr::is_volatile) {
            return Ok(None);
        }
        let mut known = true;
        let mut replace = |part: Expr| {
            let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
            let Some(at) = schema.maybe_index_of_column(column) else {
                known = false;
                return Ok(Transformed::no(part));
            };
            Ok(Transformed::new(columns[at].clone(), true, TreeNodeRecursion::Jump))
        };
        let mut replaced = Vec::new();
        for expr in expressions {
            let inner = expr.unalias().transform_down(&mut replace)?.data;
            let Some(expr) = of_outer(&inner, left)? else { return Ok(None) };
            replaced.push(expr);
        }
        if !known {
            return Ok(None);
        }
        match node {
            LogicalPlan::Filter(_) => conditions.append(&mut replaced),
            _ => (columns, schema) = (replaced, Arc::clone(node.schema())),
        }
    }
    Ok(Some((columns, conditions)))
}

/// The condition of a join, by the columns of its right side.
fn condition_of_join(join: &Join, columns: &[Expr]) -> Result<Option<Expr>> {
    let names = join.right.schema().columns();
    let replaced = join.filter.clone().map(|filter| {
        filter.transform_up(|part| {
            let at = part.try_as_col().and_then(|column| names.iter().position(|name| name == column));
            Ok(match at {
                Some(at) => Transformed::yes(columns[at].clone()),
                None => Transformed::no(part),
            })
        })
    });
    Ok(replaced.transpose()?.map(|filter| filter.data))
}

fn has_one_row(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row)
}

/// The expression over the columns of the outer query; `None` if it has one of a query further out.
fn of_outer(expr: &Expr, outer: &DFSchema) -> Result<Option<Expr>> {
    let mut known = true;
    let replaced = expr.clone().transform_up(|part| match part {
        Expr::OuterReferenceColumn(_, column) => {
            known &= outer.has_column(&column);
            Ok(Transformed::yes(Expr::Column(column)))
        }
        part => Ok(Transformed::no(part)),
    });
    Ok(Some(replaced?.data).filter(|_| known))
}

/// Name of a row's number.
const NUMBER: &str = "__number";

/// A correlated subquery whose rows are chosen by keys, and a scalar one as an aggregate or an expression. `outer`: the columns
/// around it.
fn rewritten(expr: Expr, outer: &DFSchema) -> Result<Transformed<Expr>> {
    if !is_correlated(&expr) {
        return Ok(Transformed::no(expr));
    }
    let Expr::ScalarSubquery(Subquery { subquery: plan, .. }) = &expr else {
        let exists = matches!(expr, Expr::Exists(_));
        return map_subquery(expr, |subquery| {
            let asked = if exists { without_order(&subquery.subquery) } else { None };
            Ok(match keyed(asked.as_ref().unwrap_or(&subquery.subquery))? {
                Some(plan) => Transformed::yes(subquery_with(plan)),
                None => Transformed::no(subquery),
            })
        });
    };
    if let Some(value) = computed_value(plan)? {
        return Ok(match of_outer(&value, outer)? {
            Some(value) => Transformed::yes(value),
            None => Transformed::no(expr),
        });
    }
    let first = match plan.as_ref() {
        LogicalPlan::Limit(limit) if rows_of(limit)? == Some((0, Some(1))) => first_row(&limit.input)?,
        _ => None,
    };
    let plan = match first {
        Some(first) => Some(first),
        None => match keyed(plan)? {
            Some(keyed) => Some(only_row(&keyed)?.unwrap_or(keyed)),
            None => only_row(plan)?,
        },
    };
    Ok(match plan {
        Some(plan) => Transformed::yes(Expr::ScalarSubquery(subquery_with(plan))),
        None => Transformed::no(expr),
    })
}

fn subquery_with(plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Default::default() }
}

/// The value of a subquery without FROM, over the outer columns.
fn computed_value(plan: &LogicalPlan) -> Result<Option<Expr>> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = plan else { return Ok(None) };
    let ([value], (path, base)) = (expr.as_slice(), computing(input)) else { return Ok(None) };
    let value = value.clone().unalias();
    Ok(match path.as_slice() {
        _ if !has_one_row(base) => None,
        [] => Some(value),
        [LogicalPlan::Filter(filter)] => Some(when(filter.predicate.clone(), value).end()?),
        _ => None,
    })
}

/// The value of the first row of a plan, if that is not a row of groups.
fn first_row(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let (value, sort) = match plan {
        LogicalPlan::Projection(projection) => match (projection.expr.as_slice(), projection.input.as_ref()) {
            ([value], LogicalPlan::Sort(sort)) => (value.clone(), Some(sort)),
            _ => (single_column(plan)?, None),
        },
        LogicalPlan::Sort(sort) => (single_column(&sort.input)?, Some(sort)),
        _ => return Ok(None),
    };
    let (input, order) = match sort {
        Some(sort) => (sort.input.as_ref(), sort.expr.clone()),
        None => (plan, Vec::new()),
    };
    if has_groups(input) {
        return Ok(None);
    }
    let first = first_value(value.unalias(), order).alias(FIRST);
    // Conditions are above the rows, rather than below the columns that ORDER BY names.
    let (first, input) = match input {
        LogicalPlan::Projection(Projection { expr, input: rows, .. }) if !expr.iter().any(Expr::is_volatile) => {
            let columns = input.schema().columns();
            let replaced = first.transform(|part| {
                let at = part.try_as_col().and_then(|column| columns.iter().position(|known| known == column));
                Ok(match at {
                    Some(at) => Transformed::new(expr[at].clone().unalias(), true, TreeNodeRecursion::Jump),
                    None => Transformed::no(part),
                })
            });
            (replaced?.data, rows.as_ref())
        }
        input => (first, input),
    };
    LogicalPlanBuilder::from(input.clone()).aggregate(Vec::<Expr>::new(), vec![first])?.build().map(Some)
}

/// The value of the only row of a plan, or of its only different one.
fn only_row(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let (plan, distinct) = match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => (input.as_ref(), true),
        plan => (plan, false),
    };
    let (input, value) = match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) if expr.len() == 1 => (input.as_ref(), expr[0].clone()),
        LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => (plan, single_column(plan)?),
        _ => return Ok(None),
    };
    // The engine knows that an aggregate has one row.
    let one_row = matches!(computing(input).1, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty());
    if one_row || has_groups(input) {
        return Ok(None);
    }
    let value = value.unalias();
    let first = first_value(value.clone(), Vec::new()).alias(FIRST);
    let aggregate = |aggregates| LogicalPlanBuilder::from(input.clone()).aggregate(Vec::<Expr>::new(), aggregates);
    if finds_key(input) {
        return aggregate(vec![first])?.build().map(Some);
    }
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let (counts, rows) = match distinct {
        false => (vec![count(lit(1_i64)).alias(ROWS)], column(ROWS)),
        true => {
            let nulls = count(when(value.clone().is_null(), lit(1_i64)).end()?).alias(NULLS);
            let null = when(column(NULLS).gt(lit(0_i64)), lit(1_i64)).otherwise(lit(0_i64))?;
            (vec![count_distinct(value).alias(ROWS), nulls], column(ROWS) + null)
        }
    };
    let only = Expr::ScalarFunction(ScalarFunction::new_udf(OnlyValue::udf(), vec![column(FIRST), rows]));
    aggregate([vec![first], counts].concat())?.project([only.alias(VALUE)])?.build().map(Some)
}

/// Names of columns of the aggregates.
const FIRST: &str = "__first";
const ROWS: &str = "__rows";
const NULLS: &str = "__nulls";
const VALUE: &str = "__value";

/// True if rows of a plan are groups or a selection of rows, rather than rows of its relations that meet conditions.
fn has_groups(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Limit(_) | LogicalPlan::Window(_) => true,
        LogicalPlan::SubqueryAlias(_) => false,
        plan => plan.inputs().into_iter().any(has_groups),
    }
}

/// True if conditions compare the whole key of a table with one value each.
fn finds_key(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let table = match filter.input.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
        other => other,
    };
    if !matches!(table, LogicalPlan::TableScan(_)) {
        return false;
    }
    let schema = filter.input.schema();
    let fixed = split_conjunction(&filter.predicate).into_iter().filter_map(|part| match part {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), value) | (value, Expr::Column(column)) if !value.any_column_refs() => {
                schema.maybe_index_of_column(column)
            }
            _ => None,
        },
        _ => None,
    });
    let fixed: Vec<usize> = fixed.collect();
    let is_key = |key: &FunctionalDependence| {
        key.mode == Dependency::Single && !key.nullable && key.source_indices.iter().all(|at| fixed.contains(at))
    };
    schema.functional_dependencies().iter().any(is_key)
}

fn single_column(plan: &LogicalPlan) -> Result<Expr> {
    let (qualifier, field) = plan.schema().qualified_field(0);
    Ok(Expr::Column(Column::new(qualifier.cloned(), field.name())))
}
