//! Intervals compared by their length. See [`functions`](crate::functions), `comparable_interval`.
//!
//! This applies wherever intervals are compared: by operators, IN, BETWEEN, CASE, NULLIF, GREATEST and LEAST, by min, max
//! and DISTINCT, as keys of joins, groups, partitions and sort orders, and with the rows of subqueries. The time between two
//! instants is compared with an interval as an interval; two such times are compared by the engine. Functions that compare the
//! items of an array and return some of them are refused for intervals.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, InList, InSubquery, ScalarFunction, Sort as SortExpr};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Between, BinaryExpr, Case, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Subquery, WindowFrameBound, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::{is_comparison, rewrite_expressions};
use crate::error::{Error, ErrorKind};
use crate::functions::{TypeIn, comparable_interval, has_interval};

/// Functions that compare the items of arrays, and return none of them.
const FINDERS: [&str; 5] = ["array_has", "array_has_all", "array_has_any", "array_position", "array_positions"];

/// Functions that compare the items of arrays or the keys of maps, and return some.
const PICKERS: [&str; 14] = [
    "array_distinct",
    "array_except",
    "array_intersect",
    "array_max",
    "array_min",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_sort",
    "array_union",
    "map_extract",
];

/// See the module's documentation. Runs once operands have one type.
#[derive(Debug)]
pub(super) struct IntervalComparison;

impl AnalyzerRule for IntervalComparison {
    fn name(&self) -> &str {
        "savedsearch_interval_comparison"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, in_expression, in_node)
    }
}

/// True for an interval, or an array or a row of some, that is not comparable yet.
fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    let done = matches!(expr, Expr::ScalarFunction(function) if function.func == comparable_interval());
    !done && expr.type_in(schema).is_ok_and(|of_expr| has_interval(&of_expr))
}

/// The expression in its comparable form.
fn comparable(expr: Expr) -> Expr {
    let expr = match expr {
        // The function takes the time between two instants as it is.
        Expr::Cast(Cast { expr, field })
            if matches!(field.data_type(), DataType::Interval(_)) && is_duration(&expr) =>
        {
            *expr
        }
        other => other,
    };
    comparable_interval().call(vec![expr])
}

/// True for the difference of two instants, if its type is known without the columns.
fn is_duration(expr: &Expr) -> bool {
    matches!(expr.type_in(&DFSchema::empty()), Ok(DataType::Duration(_)))
}

fn if_interval(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match is_interval(&expr, schema) {
        true => Transformed::yes(comparable(expr)),
        false => Transformed::no(expr),
    }
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(comparable(expr))
}

fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && is_interval(&left, schema) && is_interval(&right, schema) =>
        {
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: boxed(*left), op, right: boxed(*right) }))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_interval(&expr, schema) => {
            let (expr, low, high) = (boxed(*expr), boxed(*low), boxed(*high));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated }) if is_interval(&expr, schema) => {
            let list = list.into_iter().map(comparable).collect();
            Transformed::yes(Expr::InList(InList { expr: boxed(*expr), list, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_interval(&expr, schema) => {
            let input = subquery.subquery.as_ref().clone();
            let columns = input.schema().columns();
            let columns = columns.into_iter().map(|column| {
                let name = column.name.clone();
                comparable(Expr::Column(column)).alias(name)
            });
            let columns: Vec<Expr> = columns.collect();
            let compared = LogicalPlanBuilder::from(input).project(columns)?.build()?;
            let subquery = Subquery { subquery: Arc::new(compared), ..subquery };
            Transformed::yes(Expr::InSubquery(InSubquery { expr: boxed(*expr), subquery, negated }))
        }
        Expr::Case(Case { expr: Some(of), when_then_expr, else_expr }) if is_interval(&of, schema) => {
            let when_then_expr = when_then_expr.into_iter().map(|(when, then)| (boxed(*when), then)).collect();
            Transformed::yes(Expr::Case(Case { expr: Some(boxed(*of)), when_then_expr, else_expr }))
        }
        Expr::ScalarFunction(function) => return in_function(function, schema),
        Expr::AggregateFunction(mut function) => {
            let params = &mut function.params;
            let compares = params.distinct || matches!(function.func.name(), "min" | "max");
            let mut changed = if compares { all(&mut params.args, schema) } else { false };
            changed |= sorted(&mut params.order_by, schema);
            Transformed::new_transformed(Expr::AggregateFunction(function), changed)
        }
        Expr::WindowFunction(mut function) => {
            let compares = function.params.distinct || matches!(function.fun.name(), "min" | "max");
            let params = &mut function.params;
            let mut changed = if compares { all(&mut params.args, schema) } else { false };
            changed |= all(&mut params.partition_by, schema);
            // The ends of a frame that are a distance are added to the key.
            let distance = |bound: &WindowFrameBound| match bound {
                WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
                WindowFrameBound::CurrentRow => false,
            };
            let frame = &params.window_frame;
            if !distance(&frame.start_bound) && !distance(&frame.end_bound) {
                changed |= sorted(&mut params.order_by, schema);
            }
            Transformed::new_transformed(Expr::WindowFunction(function), changed)
        }
        other => Transformed::no(other),
    })
}

fn in_function(mut function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = function.name();
    let chooses = matches!(name, "nullif" | "greatest" | "least");
    let (finds, picks) = (FINDERS.contains(&name), PICKERS.contains(&name));
    if !(chooses || finds || picks) || !function.args.iter().any(|arg| is_interval(arg, schema)) {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    }
    if chooses {
        return chosen(function, schema).map(Transformed::yes);
    }
    if picks {
        let message = format!("{} does not compare intervals by their length", function.name());
        return Err(Error::new(ErrorKind::Query, message)
            .advice("unnest the array, and compare its items: SELECT … FROM unnest(…)")
            .into());
    }
    all(&mut function.args, schema);
    Ok(Transformed::yes(Expr::ScalarFunction(function)))
}

/// NULLIF, GREATEST or LEAST of intervals.
fn chosen(mut function: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    // What is compared is not what is returned: a month is as long as 30 days.
    let values = function.args.clone();
    function.args = function.args.into_iter().map(|arg| if_interval(arg, schema).data).collect();
    // Each value is written several times.
    let simple = |value: &Expr| {
        !value.is_volatile()
            && !value.exists(|part| Ok(matches!(part, Expr::Case(_) | Expr::ScalarSubquery(_)))).unwrap_or(true)
    };
    if !values.iter().all(simple) {
        return Ok(Expr::ScalarFunction(function));
    }
    let compared = function.args.clone();
    if let ("nullif", [left, right], [value, _]) = (function.name(), &*compared, &*values) {
        let equal = left.clone().eq(right.clone());
        return when(equal.is_not_true(), value.clone()).end();
    }
    let chosen = Expr::ScalarFunction(function);
    let pairs = compared
        .into_iter()
        .zip(values)
        .map(|(compared, value)| (Box::new(compared.eq(chosen.clone())), Box::new(value)));
    Ok(Expr::Case(Case { expr: None, when_then_expr: pairs.collect(), else_expr: None }))
}

/// Compares all of these expressions that are intervals. Returns true if there was one.
fn all(exprs: &mut [Expr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for expr in exprs.iter_mut().filter(|expr| is_interval(expr, schema)) {
        *expr = comparable(std::mem::take(expr));
        changed = true;
    }
    changed
}

fn sorted(keys: &mut [SortExpr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for key in keys.iter_mut().filter(|key| is_interval(&key.expr, schema)) {
        key.expr = comparable(std::mem::take(&mut key.expr));
        changed = true;
    }
    changed
}

/// Compares intervals that are keys of a node.
fn in_node(mut plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let changed = match &mut plan {
        LogicalPlan::Sort(sort) => sorted(&mut sort.expr, sort.input.schema()),
        LogicalPlan::Join(join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                if is_interval(left, join.left.schema()) && is_interval(right, join.right.schema()) {
                    *left = comparable(std::mem::take(left));
                    *right = comparable(std::mem::take(right));
                    changed = true;
                }
            }
            changed
        }
        LogicalPlan::Aggregate(aggregate) => {
            let schema = aggregate.input.schema();
            if !aggregate.group_expr.iter().any(|expr| is_interval(expr, schema)) {
                return Ok(Transformed::no(plan));
            }
            let names = NamePreserver::new_for_projection();
            for expr in aggregate.group_expr.iter_mut().filter(|expr| is_interval(expr, schema)) {
                let name = names.save(expr);
                *expr = name.restore(comparable(std::mem::take(expr)));
            }
            true
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let schema = Arc::clone(input.schema());
            let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
            if !columns.iter().any(|column| is_interval(column, &schema)) {
                return Ok(Transformed::no(plan));
            }
            let names = NamePreserver::new_for_projection();
            let columns = columns.into_iter().map(|column| {
                let name = names.save(&column);
                if_interval(column, &schema).update_data(|expr| name.restore(expr)).data
            });
            let compared =
                LogicalPlanBuilder::from(input.as_ref().clone()).project(columns.collect::<Vec<_>>())?.build()?;
            *input = Arc::new(compared);
            true
        }
        LogicalPlan::Distinct(Distinct::On(on)) => {
            let schema = on.input.schema();
            let sorts = on.sort_expr.as_mut().is_some_and(|keys| sorted(keys, schema));
            all(&mut on.on_expr, schema) | sorts
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(plan, changed))
}

#[cfg(test)]
mod tests {
    use datafusion::functions_nested::all_default_nested_functions;

    use super::{FINDERS, PICKERS};

    /// Functions that take the items of arrays as they are.
    const COMPARE_NOTHING: [&str; 38] = [
        "array_add",
        "array_any_value",
        "array_append",
        "array_avg",
        "array_compact",
        "array_concat",
        "array_dims",
        "array_distance",
        "array_element",
        "array_length",
        "array_ndims",
        "array_normalize",
        "array_pop_back",
        "array_pop_front",
        "array_prepend",
        "array_product",
        "array_repeat",
        "array_resize",
        "array_reverse",
        "array_scale",
        "array_slice",
        "array_subtract",
        "array_sum",
        "array_to_string",
        "arrays_zip",
        "cardinality",
        "cosine_distance",
        "empty",
        "flatten",
        "generate_series",
        "inner_product",
        "make_array",
        "map",
        "map_entries",
        "map_keys",
        "map_values",
        "range",
        "string_to_array",
    ];

    #[test]
    fn every_array_function_of_the_engine_is_listed() {
        let unknown: Vec<String> = all_default_nested_functions()
            .iter()
            .map(|function| function.name().to_owned())
            .filter(|name| ![&FINDERS[..], &PICKERS[..], &COMPARE_NOTHING[..]].concat().contains(&name.as_str()))
            .collect();
        assert!(unknown.is_empty(), "do these compare items? {unknown:?}");
    }
}
