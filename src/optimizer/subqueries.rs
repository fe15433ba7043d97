//! Gives IN and EXISTS of subqueries the three truth values of SQL, wherever they are written.
//!
//! The engine turns them into joins. Most of the kinds below return wrong rows, and one is not supported:
//!
//! | expression | the engine | here |
//! | --- | --- | --- |
//! | IN or NOT IN anywhere but at the top of WHERE | false instead of NULL | a list of the values ([`InValues`]), read once |
//! | the same, correlated | the same | two scalar subqueries: is it among the values, and is NULL among them |
//! | NOT IN at the top of WHERE, of a constant or an expression | NULLs of the subquery are ignored | as anywhere else |
//! | IN and NOT IN at the top of WHERE, of NULLs without a type | NULLs are taken for values | false, and NOT EXISTS |
//! | IN of a constant in WHERE | its condition is pushed to the outer rows | EXISTS of an equal value |
//! | correlated NOT IN at the top of WHERE | NULLs of the correlated columns count as values | NOT EXISTS with tests for NULL |
//! | IN and EXISTS over an aggregate without GROUP BY, correlated | no row for an empty input | compared with the single value |
//! | EXISTS over ROLLUP and other sets with an empty one, correlated | the same | true |
//! | IN over such sets, correlated | the same | refused |
//! | EXISTS in the SELECT list | an error | a scalar subquery |
//! | EXISTS below OR over a join that is removed, since it adds no row | a panic: no column is left | EXISTS of a constant |
//! | EXISTS over LIMIT, DISTINCT and ORDER BY | an error, or a part is ignored | EXISTS without them |
//! | correlated GROUP BY and DISTINCT below `cast(column) = outer` | grouped by the column as well | refused, unless `session` has keys for it |
//! | correlated windows, OFFSET and LIMIT without keys, and in LATERAL ROLLUP and HAVING without GROUP BY | applied to all outer rows together | refused |
//! | a correlated scalar subquery with HAVING and without GROUP BY | HAVING is ignored for an empty input | CASE of two subqueries |
//! | a scalar subquery of a column without NULLs, which may have no row | taken for never NULL | its column may be NULL |
//! | a correlated `count(*) IS NULL`, and others that are constant | NULL for an empty input | not folded |
//!
//! Invariant: if an expression stays IN or EXISTS, it cannot be NULL, or it is at the top of WHERE or HAVING, where false
//! and NULL are the same.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ExprSchema, JoinType, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::min_max::max_udaf;
use datafusion::logical_expr::expr::{Exists, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Cast, Distinct, Expr, ExprSchemable, Filter, GroupingSet, Join, LogicalPlan, LogicalPlanBuilder,
    Subquery, lit, not_exists, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::{
    aggregate_of, as_outer, has_outer_condition, is_equality, is_one_row, lateral_of, subquery_of, without_order,
};
use crate::error::{Error, ErrorKind};
use crate::functions::{InValues, Opaque, TypeIn};

/// See the module's documentation. Runs after type coercion, which makes both sides of IN comparable.
#[derive(Debug)]
pub(super) struct Subqueries;

impl AnalyzerRule for Subqueries {
    fn name(&self) -> &str {
        "savedsearch_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        // Where such subqueries become joins, a list would be repeated for each row.
        let lists = config.optimizer.enable_physical_uncorrelated_scalar_subquery;
        plan.transform_up_with_subqueries(|plan| {
            if let LogicalPlan::Join(join) = &plan {
                let sides = [&join.left, &join.right].into_iter();
                sides.filter_map(|side| lateral_of(side)).try_for_each(|subquery| lost_rows(subquery, true))?;
            }
            if !has_subquery(&plan)? {
                return Ok(Transformed::no(plan));
            }
            match without_promise(plan)? {
                LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                    let site = Site { lists, in_filter: true, schema: Arc::clone(input.schema()) };
                    let conjuncts = split_conjunction_owned(predicate).into_iter().map(|conjunct| site.top(conjunct));
                    let predicate = conjunction(conjuncts.collect::<Result<Vec<_>>>()?).unwrap_or_else(|| lit(true));
                    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
                }
                plan => {
                    let site = Site { lists, in_filter: false, schema: Arc::new(merge_schema(&plan.inputs())) };
                    let names = NamePreserver::new(&plan);
                    plan.map_expressions(|expr| {
                        let name = names.save(&expr);
                        Ok(site.embedded(expr)?.update_data(|expr| name.restore(expr)))
                    })?
                    .map_data(LogicalPlan::recompute_schema)
                }
            }
        })
        .data()
    }
}

fn has_subquery(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(subquery_of(part).is_some()))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The node with scalar subqueries whose column may be NULL, except for those that always have a row. The engine would take a value that
/// cannot be NULL, also one that it computes while planning, for the value of a subquery without rows.
fn without_promise(plan: LogicalPlan) -> Result<LogicalPlan> {
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let expr = expr.transform_up(|part| match part {
            Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, spans })
                if !has_row(&subquery) && !Opaque::hides_first(&subquery) =>
            {
                let (relation, field) = subquery.schema().qualified_field(0);
                let value = Opaque::nullable(Expr::Column(Column::from((relation, field))));
                let value = value.alias_qualified(relation.cloned(), field.name());
                let plan = LogicalPlanBuilder::from(Arc::clone(&subquery)).project(vec![value])?.build()?;
                let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans };
                Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
            }
            Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, spans })
                if !outer_ref_columns.is_empty() && has_row(&subquery) =>
            {
                let subquery = Arc::new(unfolded(Arc::unwrap_or_clone(subquery))?);
                Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, spans })))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(expr.update_data(|expr| name.restore(expr)))
    })
    .data()
}

/// A subquery with one row whose expressions of the aggregate's results are not folded to constants, such as `count(*) IS NULL`.
/// For an empty input, the engine computes such an expression from the aggregate's results, but a constant becomes NULL. It has no
/// derived tables either, through which the engine loses the row.
fn unfolded(plan: LogicalPlan) -> Result<LogicalPlan> {
    let Some((exprs, aggregate)) = over_aggregate(&plan)? else { return Ok(plan) };
    let schema = aggregate.schema();
    let exprs = exprs.into_iter().zip(plan.schema().iter()).map(|(expr, (relation, field))| {
        let expr = match expr {
            Expr::Column(column) => Expr::Column(column),
            computed => computed
                .transform_up(|part| match part {
                    Expr::Column(column) if !schema.nullable(&column)? => {
                        Ok(Transformed::yes(Opaque::nullable(Expr::Column(column))))
                    }
                    other => Ok(Transformed::no(other)),
                })
                .data()?,
        };
        Ok(expr.alias_qualified(relation.cloned(), field.name()))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(Arc::clone(&aggregate)).project(exprs)?.build()
}

/// The columns of a subquery as expressions of its aggregate's results, and the aggregate; `None` if there is a condition in
/// between.
fn over_aggregate(plan: &LogicalPlan) -> Result<Option<(Vec<Expr>, Arc<LogicalPlan>)>> {
    let projection = match plan {
        LogicalPlan::SubqueryAlias(alias) => return over_aggregate(&alias.input),
        LogicalPlan::Sort(sort) => return over_aggregate(&sort.input),
        LogicalPlan::Projection(projection) => projection,
        _ => return Ok(None),
    };
    let exprs = projection.expr.iter().cloned().map(Expr::unalias);
    if matches!(projection.input.as_ref(), LogicalPlan::Aggregate(_)) {
        return Ok(Some((exprs.collect(), Arc::clone(&projection.input))));
    }
    let Some((inner, aggregate)) = over_aggregate(&projection.input)? else { return Ok(None) };
    let schema = projection.input.schema();
    let exprs = exprs.map(|expr| {
        expr.transform(|part| match part {
            Expr::Column(column) => {
                Ok(Transformed::new(inner[schema.index_of_column(&column)?].clone(), true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()
    });
    Ok(Some((exprs.collect::<Result<_>>()?, aggregate)))
}

/// The node that an expression belongs to.
struct Site {
    /// Uncorrelated scalar subqueries are computed once, before the rows.
    lists: bool,
    /// The node is a WHERE or HAVING clause, where EXISTS may stay.
    in_filter: bool,
    /// Columns that the expression can refer to.
    schema: DFSchemaRef,
}

impl Site {
    /// Rewrites a conjunct of WHERE, for which false and NULL are the same.
    fn top(&self, conjunct: Expr) -> Result<Expr> {
        match conjunct {
            Expr::Not(inner) => match *inner {
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    self.top_in(without_distinct(InSubquery { expr, subquery, negated: !negated })?)
                }
                Expr::Exists(Exists { subquery, negated }) => exists(Exists { subquery, negated: !negated }),
                inner => self.embedded(Expr::Not(inner.into())).data(),
            },
            Expr::InSubquery(within) => self.top_in(without_distinct(within)?),
            Expr::Exists(these) => exists(these),
            other => self.embedded(other).data(),
        }
    }

    fn top_in(&self, within: InSubquery) -> Result<Expr> {
        let correlated = !within.subquery.outer_ref_columns.is_empty();
        if correlated && has_grand_total(&within.subquery.subquery) {
            return Err(unsupported_sets());
        }
        // The engine's anti join sees no NULL in a column without a type, all of whose values are NULL.
        if within.subquery.subquery.schema().fields().iter().all(|field| field.data_type().is_null()) {
            let InSubquery { subquery, negated, .. } = within;
            return if negated { exists(Exists { subquery, negated }) } else { Ok(lit(false)) };
        }
        if let Some(found) = self.equal_to_constant(&within, true)? {
            return Ok(found);
        }
        // The engine's anti join respects NULLs if its only key is a column.
        let joins = !within.negated || matches!(*within.expr, Expr::Column(_)) || !self.may_be_null(&within)?;
        match (correlated, joins) {
            (false, true) => return Ok(Expr::InSubquery(within)),
            (false, false) => return self.value_of_in(within),
            (true, _) if is_one_row(&within.subquery.subquery) => return equals_the_row(within),
            (true, _) if !within.negated => return Ok(Expr::InSubquery(within)),
            (true, _) => {}
        }
        let InSubquery { expr, subquery, .. } = within;
        let plan = LogicalPlan::clone(&subquery.subquery);
        let value = only_column(&plan)?;
        let outer = self.as_outer(*expr)?;
        let among = value.clone().eq(outer.clone()).or(value.is_null()).or(outer.is_null());
        Ok(not_exists(Arc::new(LogicalPlanBuilder::from(plan).filter(among)?.build()?)))
    }

    /// Rewrites an expression whose value matters, NULL included.
    fn embedded(&self, expr: Expr) -> Result<Transformed<Expr>> {
        expr.transform_up(|expr| match expr {
            Expr::InSubquery(within) => self.value_of_in(without_distinct(within)?).map(Transformed::yes),
            Expr::ScalarSubquery(subquery) => {
                if !subquery.outer_ref_columns.is_empty() && has_grand_total(&subquery.subquery) {
                    return Err(unsupported_sets());
                }
                lost_rows(&subquery, false)?;
                let expr = with_having(subquery)?;
                let changed = !matches!(expr, Expr::ScalarSubquery(_));
                Ok(Transformed::new(expr, changed, TreeNodeRecursion::Continue))
            }
            Expr::Exists(these) => {
                let negated = these.negated;
                let expr = exists(these)?;
                let Expr::Exists(Exists { subquery, .. }) = expr else { return Ok(Transformed::yes(expr)) };
                if self.in_filter {
                    let subquery = of_constant(subquery)?;
                    return Ok(Transformed::yes(Expr::Exists(Exists { subquery, negated })));
                }
                let found = any_row(&subquery)?;
                Ok(Transformed::yes(if negated { found.is_null() } else { found.is_not_null() }))
            }
            other => Ok(Transformed::no(other)),
        })
    }

    fn value_of_in(&self, within: InSubquery) -> Result<Expr> {
        let correlated = !within.subquery.outer_ref_columns.is_empty();
        if correlated && has_grand_total(&within.subquery.subquery) {
            return Err(unsupported_sets());
        }
        if is_one_row(&within.subquery.subquery) {
            return equals_the_row(within);
        }
        if let Some(found) = self.equal_to_constant(&within, false)? {
            return Ok(found);
        }
        if self.in_filter && !correlated && !self.may_be_null(&within)? {
            return Ok(Expr::InSubquery(within));
        }
        let InSubquery { expr, subquery, negated } = within;
        let plan = LogicalPlan::clone(&subquery.subquery);
        let value = only_column(&plan)?;
        let found = if self.lists && !correlated {
            let values = LogicalPlanBuilder::from(plan).distinct()?;
            let values = values.aggregate(Vec::<Expr>::new(), vec![aggregate_of(array_agg_udaf(), value)])?.build()?;
            Expr::ScalarFunction(ScalarFunction::new_udf(InValues::udf(), vec![*expr, scalar(values)]))
        } else {
            let outer = self.as_outer((*expr).clone())?;
            let equal = LogicalPlanBuilder::from(plan.clone()).filter(value.clone().eq(outer))?.build()?;
            let equal = scalar(largest(equal, lit(1_i64))?);
            // 2 if NULL is among the values, 1 if there are others only, NULL if there are none.
            let kind = when(value.is_null(), lit(2_i64)).otherwise(lit(1_i64))?;
            let kind = scalar(largest(plan, kind)?);
            let unknown = kind.clone().eq(lit(2_i64)).or(expr.is_null().and(kind.is_not_null()));
            when(equal.is_not_null(), lit(true)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(false))?
        };
        Ok(if negated { Expr::Not(found.into()) } else { found })
    }

    /// IN of a constant in WHERE as EXISTS of an equal value; `None` elsewhere, or if the result may be NULL where that matters. As
    /// the key of a join, the engine would push the constant's condition to the outer rows. `top`: false and NULL are the same.
    fn equal_to_constant(&self, within: &InSubquery, top: bool) -> Result<Option<Expr>> {
        let InSubquery { expr, subquery, negated } = within;
        let one_row = !subquery.outer_ref_columns.is_empty() && is_one_row(&subquery.subquery);
        let constant = expr.column_refs().is_empty() && !expr.is_volatile() && !is_of_other_queries(expr)?;
        if !constant || one_row || !self.in_filter || ((*negated || !top) && self.may_be_null(within)?) {
            return Ok(None);
        }
        let plan = LogicalPlan::clone(&subquery.subquery);
        let equal = only_column(&plan)?.eq(expr.as_ref().clone());
        let plan = LogicalPlanBuilder::from(plan).filter(equal)?.build()?;
        let subquery = Subquery { subquery: Arc::new(plan), ..subquery.clone() };
        Ok(Some(Expr::Exists(Exists { subquery, negated: *negated })))
    }

    fn may_be_null(&self, within: &InSubquery) -> Result<bool> {
        let values = within.subquery.subquery.schema();
        Ok(values.fields().iter().any(|field| field.is_nullable()) || within.expr.nullable(self.schema.as_ref())?)
    }

    /// The expression as the subquery sees it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if it refers to a query further outside, or has a subquery of its own.
    fn as_outer(&self, expr: Expr) -> Result<Expr> {
        if is_of_other_queries(&expr)? || expr.is_volatile() {
            let error = "this operand of IN with a subquery is not supported here";
            let advice = "compute it in a subquery of FROM first, or write the condition as a join";
            return Err(Error::new(ErrorKind::Unsupported, error).advice(advice).into());
        }
        as_outer(expr, &self.schema)
    }
}

/// EXISTS, unless the subquery has one row for any input and the engine would lose that row.
fn exists(these: Exists) -> Result<Expr> {
    let Exists { subquery, negated } = these;
    let Some(plan) = without_order(&subquery.subquery) else { return Ok(lit(negated)) };
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, ..subquery };
    lost_rows(&subquery, false)?;
    let these = Exists { subquery, negated };
    let plan = &these.subquery.subquery;
    let total = has_grand_total(plan);
    if these.subquery.outer_ref_columns.is_empty() || !(total || is_one_row(plan)) {
        return Ok(Expr::Exists(these));
    }
    if total && matches!(having(plan), Ok(Some(_)) | Err(_)) {
        return Err(unsupported_sets());
    }
    let found = match having(&these.subquery.subquery)? {
        Some(condition) => scalar(condition).is_true(),
        None => lit(true),
    };
    Ok(if these.negated { Expr::Not(found.into()) } else { found })
}

/// A subquery of which only the number of rows matters, with a constant in each row. A correlated one stays as it is: its columns
/// are compared.
fn of_constant(subquery: Subquery) -> Result<Subquery> {
    if !subquery.outer_ref_columns.is_empty() {
        return Ok(subquery);
    }
    let rows = LogicalPlanBuilder::from(LogicalPlan::clone(&subquery.subquery)).project([lit(true)])?.build()?;
    Ok(Subquery { subquery: Arc::new(rows), ..subquery })
}

/// IN without ORDER BY and DISTINCT in its subquery, which do not decide which values there are.
///
/// # Errors
/// Those of [`lost_rows`].
fn without_distinct(within: InSubquery) -> Result<InSubquery> {
    let InSubquery { expr, subquery, negated } = within;
    let mut node = &subquery.subquery;
    loop {
        node = match node.as_ref() {
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            _ => break,
        }
    }
    let subquery = Subquery { subquery: Arc::clone(node), ..subquery.clone() };
    lost_rows(&subquery, false)?;
    Ok(InSubquery { expr, subquery, negated })
}

/// True if an expression refers to a query further outside, or has a subquery.
fn is_of_other_queries(expr: &Expr) -> Result<bool> {
    expr.exists(|part| Ok(matches!(part, Expr::OuterReferenceColumn(..)) || subquery_of(part).is_some()))
}

/// Refuses a correlated subquery if the engine would apply one of its operators to the rows of all outer rows together.
///
/// # Errors
/// [`ErrorKind::Unsupported`], naming the operator.
fn lost_rows(subquery: &Subquery, lateral: bool) -> Result<()> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(());
    }
    let mut lost = None;
    subquery.subquery.apply(|node| {
        let of_inputs = node.inputs().iter().any(|input| !input.all_out_ref_exprs().is_empty());
        if !of_inputs && !matches!(node, LogicalPlan::Join(join) if has_outer_condition(join)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        let of_extended = |join: &Join| match join.join_type {
            JoinType::Inner => false,
            _ if has_outer_condition(join) => true,
            JoinType::Left => !join.right.all_out_ref_exprs().is_empty(),
            JoinType::Right => !join.left.all_out_ref_exprs().is_empty(),
            // EXCEPT and INTERSECT as well. The engine would compare the column of the other side.
            JoinType::LeftSemi | JoinType::LeftAnti => !join.right.all_out_ref_exprs().is_empty(),
            JoinType::RightSemi | JoinType::RightAnti => !join.left.all_out_ref_exprs().is_empty(),
            JoinType::Full | JoinType::LeftMark | JoinType::RightMark => true,
        };
        let of_sets = |aggregate: &Aggregate| matches!(aggregate.group_expr[..], [Expr::GroupingSet(_)]);
        let found = match node {
            LogicalPlan::Window(_) => Some("a window function"),
            LogicalPlan::Limit(_) => Some("LIMIT or OFFSET"),
            LogicalPlan::Sort(sort) if sort.fetch.is_some() => Some("LIMIT or OFFSET"),
            LogicalPlan::Distinct(Distinct::On(_)) => Some("DISTINCT ON"),
            LogicalPlan::Aggregate(aggregate) if is_one_row(&aggregate.input) => Some("an aggregate of an aggregate"),
            LogicalPlan::Join(join) if of_extended(join) => Some(
                "a condition on the outer query in or below an outer join, or on the right of EXCEPT or INTERSECT,",
            ),
            LogicalPlan::SubqueryAlias(alias) if !is_one_row(&alias.input) => {
                Some("a derived table that refers to the outer query")
            }
            LogicalPlan::Distinct(Distinct::All(input)) if !is_by_equality(input, lateral) => Some(UNEQUAL),
            LogicalPlan::Aggregate(aggregate)
                if !aggregate.group_expr.is_empty() && !is_by_equality(&aggregate.input, lateral) =>
            {
                Some(UNEQUAL)
            }
            LogicalPlan::Aggregate(aggregate) if lateral && of_sets(aggregate) => Some("ROLLUP, CUBE or GROUPING SETS"),
            LogicalPlan::Filter(filter) if lateral && is_one_row(&filter.input) => Some("HAVING without GROUP BY"),
            _ => None,
        };
        lost = lost.or(found);
        Ok(if lost.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    let Some(lost) = lost else { return Ok(()) };
    let error = format!("{lost} in a correlated subquery is not supported here");
    let advice = "compute it in a subquery of FROM for all values of the outer columns, with PARTITION BY or GROUP BY, and join it";
    Err(Error::new(ErrorKind::Unsupported, error).advice(advice).into())
}

const UNEQUAL: &str = "DISTINCT or GROUP BY below a comparison with the outer query other than `column = value`";

/// True if all comparisons with the outer query are of a column that is equal to a value. Unless `strictly`, the engine refuses what
/// it cannot group by, and only casts of a column to a type with fewer values are to be found.
fn is_by_equality(plan: &LogicalPlan, strictly: bool) -> bool {
    let unequal = plan.exists(|node| match node {
        LogicalPlan::Filter(filter) => Ok(split_conjunction(&filter.predicate).into_iter().any(|conjunct| {
            let unequal = match strictly {
                true => !is_equality(conjunct),
                false => is_narrowed_equality(conjunct, filter.input.schema()),
            };
            conjunct.contains_outer() && unequal
        })),
        LogicalPlan::Join(join) => Ok(join.filter.as_ref().is_some_and(Expr::contains_outer)),
        _ => Ok(false),
    });
    !unequal.unwrap_or(true)
}

/// True for a cast of an inner column to a type with fewer values, if it is equal to an outer value.
fn is_narrowed_equality(condition: &Expr, schema: &DFSchema) -> bool {
    let mut narrowed = false;
    let without_casts = condition.clone().transform_up(|part| match part {
        Expr::Cast(Cast { expr, field }) if matches!(*expr, Expr::Column(_)) => {
            narrowed |= !widens(&expr.type_in(schema)?, field.data_type());
            Ok(Transformed::yes(*expr))
        }
        other => Ok(Transformed::no(other)),
    });
    // A column of an unknown type may be any.
    without_casts.map_or(true, |plain| narrowed && is_equality(&plain.data))
}

/// True if a cast keeps different values different.
fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Timestamp};
    match (from, to) {
        (from, to) if from.is_string() => to.is_string(),
        (from, to) if from.is_integer() && to.is_integer() => from.primitive_width() <= to.primitive_width(),
        (from, to) if from.is_integer() => to.is_floating() || to.is_decimal(),
        (DataType::Float32, DataType::Float64) => true,
        (from, to) if from.is_decimal() && to.is_decimal() => decimal_scale(from) <= decimal_scale(to),
        (Date32, Timestamp(..)) => true,
        (Timestamp(from, _), Timestamp(to, _)) => from <= to,
        (from, to) => from == to,
    }
}

fn decimal_scale(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

/// A correlated scalar subquery with HAVING and without GROUP BY, whose row the engine would keep for an empty input.
fn with_having(subquery: Subquery) -> Result<Expr> {
    let correlated = !subquery.outer_ref_columns.is_empty() && is_one_row(&subquery.subquery);
    let condition = if correlated { having(&subquery.subquery)? } else { None };
    match condition {
        Some(condition) => {
            let value = scalar(unfolded(without_having(&subquery.subquery)?)?);
            when(scalar(condition).is_true(), value).end()
        }
        None => Ok(Expr::ScalarSubquery(subquery)),
    }
}

/// `x IN (SELECT count(*) …)` as `x = (SELECT count(*) …)`.
fn equals_the_row(InSubquery { expr, subquery, negated }: InSubquery) -> Result<Expr> {
    let expr = *expr;
    let found = match having(&subquery.subquery)? {
        Some(condition) => {
            let value = scalar(without_having(&subquery.subquery)?);
            scalar(condition).is_true().and(expr.eq(value))
        }
        None => expr.eq(Expr::ScalarSubquery(subquery)),
    };
    Ok(if negated { Expr::Not(found.into()) } else { found })
}

/// True for a subquery that has exactly one row for any input.
fn has_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(_) => false,
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Projection(node) => has_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_row(&node.input),
        LogicalPlan::Sort(node) => node.fetch != Some(0) && has_row(&node.input),
        plan => is_one_row(plan),
    }
}

/// True for an aggregate by grouping sets with an empty one, whose row exists for an empty input too.
fn has_grand_total(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => has_grand_total(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_grand_total(&node.input),
        LogicalPlan::Filter(node) => has_grand_total(&node.input),
        LogicalPlan::Sort(node) => has_grand_total(&node.input),
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.iter().any(|sets| match sets {
            Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_)) => true,
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
            _ => false,
        }),
        _ => false,
    }
}

fn unsupported_sets() -> DataFusionError {
    let error = "ROLLUP, CUBE and grouping sets in a correlated subquery are not supported here";
    Error::new(ErrorKind::Unsupported, error).advice("write the subquery as a table of FROM, and join it").into()
}

/// The condition of HAVING, as the only column of a row; `None` without HAVING.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a condition that is not directly above the aggregate.
fn having(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut node = plan;
    loop {
        node = match node {
            LogicalPlan::Projection(inner) => &inner.input,
            LogicalPlan::SubqueryAlias(inner) => &inner.input,
            LogicalPlan::Sort(inner) => &inner.input,
            LogicalPlan::Filter(Filter { predicate, input, .. }) if matches!(**input, LogicalPlan::Aggregate(_)) => {
                let condition =
                    LogicalPlanBuilder::from(Arc::clone(input)).project(vec![predicate.clone()])?.build()?;
                return Ok(Some(unfolded(condition)?));
            }
            LogicalPlan::Filter(_) => {
                let error = "a condition on the result of an aggregate in a correlated subquery is not supported here";
                return Err(Error::new(ErrorKind::Unsupported, error).advice("write the condition as HAVING").into());
            }
            _ => return Ok(None),
        }
    }
}

/// The subquery without its HAVING.
fn without_having(plan: &LogicalPlan) -> Result<LogicalPlan> {
    plan.clone()
        .transform_down(|node| match node {
            LogicalPlan::Filter(Filter { input, .. }) if matches!(*input, LogicalPlan::Aggregate(_)) => {
                Ok(Transformed::new(Arc::unwrap_or_clone(input), true, TreeNodeRecursion::Stop))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()
}

/// A scalar subquery that is NULL if and only if the subquery has no rows.
fn any_row(subquery: &Subquery) -> Result<Expr> {
    let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
    // One row is enough; with a correlated subquery, the limit would apply to all rows together.
    let plan = if subquery.outer_ref_columns.is_empty() { plan.limit(0, Some(1))? } else { plan };
    Ok(scalar(largest(plan.build()?, lit(1_i64))?))
}

fn largest(plan: LogicalPlan, value: Expr) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), vec![aggregate_of(max_udaf(), value)])?.build()
}

fn scalar(plan: LogicalPlan) -> Expr {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Default::default() })
}

fn only_column(plan: &LogicalPlan) -> Result<Expr> {
    match plan.schema().iter().next() {
        Some(field) => Ok(Expr::Column(Column::from(field))),
        None => Err(Error::new(ErrorKind::Query, "the subquery of IN selects no column").into()),
    }
}
