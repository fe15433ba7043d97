//! Correlated items of FROM, and scalar subqueries, that the engine refuses, rewritten to plans that it supports.
//!
//! | in a statement | rewritten to |
//! | --- | --- |
//! | `FROM t, unnest(t.list) AS u(x)` | the lists as a further column of `t`, then unnested |
//! | `FROM t, LATERAL (SELECT t.a + t.b AS x)` | `x` as a further column of `t` |
//! | `FROM t, LATERAL (VALUES (t.a), (t.b)) v(x)` | `t` for each number of a row, and the values of that row |
//! | `LATERAL (SELECT … WHERE k = t.x ORDER BY s LIMIT n)` | `row_number() OVER (PARTITION BY k ORDER BY s) <= n` |
//! | `(SELECT x FROM … WHERE k = t.x ORDER BY s LIMIT 1)` | `first_value(x ORDER BY s)` |
//! | `(SELECT x FROM … WHERE k = t.x)`, if `k` is the key of the table | `first_value(x)` |
//! | `(SELECT x FROM … WHERE …)` | `only_value(first_value(x), count(*))`, an error for several rows |
//! | `(SELECT t.a + 1 WHERE t.b > 0)` | `CASE WHEN t.b > 0 THEN t.a + 1 END` |
//!
//! Invariant: an item that does not have exactly one of the forms above stays as it is, and the engine refuses it.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Dependency, FunctionalDependence, NullHandling, Result};
use datafusion::functions_aggregate::count::{count, count_distinct};
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Case, Distinct, Expr, ExprFunctionExt, FetchType, Join, JoinType, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, SkipType, SortExpr, Subquery, Values, cast, col, lit, when,
};

use crate::functions::OnlyValue;

/// Returns the plan with such items as the engine has them.
///
/// # Errors
/// Those of building a plan.
pub(super) fn lateral(plan: LogicalPlan) -> Result<LogicalPlan> {
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
            let expr = expr.transform_up(|part| first_of_each(part, &schema))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })?;
        node.transform_data(|node| match node {
            LogicalPlan::Join(join) => joined(join),
            other => Ok(Transformed::no(other)),
        })
    })
    .data()
}

fn is_correlated(part: &Expr) -> bool {
    matches!(part, Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty())
}

fn joined(join: Join) -> Result<Transformed<LogicalPlan>> {
    let inner_or_left = matches!(join.join_type, JoinType::Inner | JoinType::Left) && join.on.is_empty();
    let rewritten = match subquery_of(&join.right).filter(|_| inner_or_left) {
        Some(subquery) => match computed(&join, subquery)? {
            Some(plan) => return Ok(Transformed::yes(plan)),
            None => first_rows(subquery)?,
        },
        None => None,
    };
    let Some(rewritten) = rewritten else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    let outer_ref_columns = rewritten.all_out_ref_exprs();
    let subquery =
        LogicalPlan::Subquery(Subquery { subquery: Arc::new(rewritten), outer_ref_columns, spans: Default::default() });
    let right = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => LogicalPlanBuilder::from(subquery).alias(alias.alias.clone())?.build()?,
        _ => subquery,
    };
    Ok(Transformed::yes(LogicalPlan::Join(Join { right: Arc::new(right), ..join })))
}

fn subquery_of(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Subquery(subquery) => Some(&subquery.subquery),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some(&subquery.subquery),
            _ => None,
        },
        _ => None,
    }
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
    if filtered && join.join_type == JoinType::Left {
        return Ok(None);
    }
    let left = join.left.schema();
    let of_left = all_columns(left);
    let (plan, columns) = match base {
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
                .project(of_left.iter().cloned().chain(lists))?
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
    };
    // The columns of the subquery, by those of its input.
    let (mut schema, mut columns, mut conditions) = (Arc::clone(base.schema()), columns, Vec::new());
    for (at, node) in path.into_iter().rev().enumerate() {
        if let LogicalPlan::SubqueryAlias(_) = node {
            schema = Arc::clone(node.schema());
            continue;
        }
        let expressions = node.expressions();
        // Its value would be computed for each use.
        if at > 0 && expressions.iter().any(Expr::is_volatile) {
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
    let named = join.right.schema().iter().zip(columns);
    let named = named.map(|((qualifier, field), expr)| expr.alias_qualified(qualifier.cloned(), field.name()));
    let plan = match conjunction(conditions) {
        Some(condition) => plan.filter(condition)?,
        None => plan,
    };
    let plan = plan.project(of_left.into_iter().chain(named))?;
    Ok(Some(match &join.filter {
        Some(filter) if !always => plan.filter(filter.clone())?.build()?,
        _ => plan.build()?,
    }))
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

/// The first rows of a subquery by its ORDER BY, for each value of what the outer query is compared with.
fn first_rows(subquery: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Limit(limit) = subquery else { return Ok(None) };
    let Some((skip, fetch)) = rows_of(limit)? else { return Ok(None) };
    let mut path = Vec::new();
    let mut node = limit.input.as_ref();
    let (condition, input) = loop {
        match node {
            LogicalPlan::Projection(projection) => {
                path.push(node);
                node = &projection.input;
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                path.push(node);
                node = &sort.input;
            }
            LogicalPlan::Filter(filter) => break (&filter.predicate, &filter.input),
            _ => return Ok(None),
        }
    };
    if !input.all_out_ref_exprs().is_empty() {
        return Ok(None);
    }
    let (mut compared, mut rest) = (Vec::new(), Vec::new());
    for part in split_conjunction_owned(condition.clone()) {
        match part {
            part if !part.contains_outer() => rest.push(part),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                let sides = if left.contains_outer() { [right, left] } else { [left, right] };
                let [here, outer] = sides;
                if here.contains_outer() || outer.any_column_refs() {
                    return Ok(None);
                }
                compared.push((*here, *outer));
            }
            _ => return Ok(None),
        }
    }
    if compared.is_empty() {
        return Ok(None);
    }
    let key = |at: usize| Expr::Column(Column::new_unqualified(format!("__key_{}", at + 1)));
    let keys: Vec<Expr> = (0..compared.len()).map(key).collect();
    let mut plan = LogicalPlanBuilder::from(input.as_ref().clone());
    if let Some(rest) = conjunction(rest) {
        plan = plan.filter(rest)?;
    }
    let with_keys = compared.iter().enumerate().map(|(at, (here, _))| here.clone().alias(format!("__key_{}", at + 1)));
    plan = plan.project(all_columns(input.schema()).into_iter().chain(with_keys))?;
    let mut numbered = false;
    for node in path.into_iter().rev() {
        plan = match node {
            LogicalPlan::Projection(projection) => {
                let number = numbered.then(|| Expr::Column(Column::new_unqualified(NUMBER)));
                plan.project(projection.expr.iter().cloned().chain(keys.iter().cloned()).chain(number))?
            }
            LogicalPlan::Sort(sort) if !numbered => {
                numbered = true;
                plan.window(vec![number(keys.clone(), sort.expr.clone())?])?
            }
            _ => return Ok(None),
        };
    }
    if !numbered {
        plan = plan.window(vec![number(keys.clone(), Vec::new())?])?;
    }
    let at = || Expr::Column(Column::new_unqualified(NUMBER));
    plan = plan.filter(at().gt(lit(skip)).and(at().lt_eq(lit(skip.saturating_add(fetch)))))?;
    let same = compared.into_iter().enumerate().map(|(at, (_, outer))| key(at).eq(outer));
    if let Some(same) = conjunction(same) {
        plan = plan.filter(same)?;
    }
    Ok(Some(plan.project(all_columns(subquery.schema()))?.build()?))
}

/// Name of a row's number.
const NUMBER: &str = "__number";

fn number(keys: Vec<Expr>, order: Vec<SortExpr>) -> Result<Expr> {
    let number = row_number().partition_by(keys);
    // A window without an order is not one with an empty order.
    let number = if order.is_empty() { number } else { number.order_by(order) };
    Ok(number.build()?.alias(NUMBER))
}

/// Rows that are skipped, and the number of those that are kept; `None` without literals.
fn rows_of(limit: &Limit) -> Result<Option<(u64, u64)>> {
    Ok(match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(skip), FetchType::Literal(Some(fetch))) => Some((skip as u64, fetch as u64)),
        _ => None,
    })
}

/// A correlated scalar subquery of the first row, or of the only one, as an aggregate or an expression. `outer`: the columns around
/// it.
fn first_of_each(expr: Expr, outer: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(expr));
    }
    if let Some(value) = computed_value(&subquery.subquery)? {
        return Ok(match of_outer(&value, outer)? {
            Some(value) => Transformed::yes(value),
            None => Transformed::no(expr),
        });
    }
    let plan = match subquery.subquery.as_ref() {
        LogicalPlan::Limit(limit) => match rows_of(limit)? {
            Some((0, 1)) => first_row(&limit.input)?,
            _ => None,
        },
        plan => only_row(plan)?,
    };
    let Some(plan) = plan else { return Ok(Transformed::no(expr)) };
    let outer_ref_columns = plan.all_out_ref_exprs();
    let rewritten = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Default::default() };
    Ok(Transformed::yes(Expr::ScalarSubquery(rewritten)))
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

fn all_columns(schema: &DFSchema) -> Vec<Expr> {
    schema.iter().map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name()))).collect()
}
