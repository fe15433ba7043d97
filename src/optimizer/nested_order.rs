//! The order of arrays and rows with NULL, which is the greatest member, as in PostgreSQL and DuckDB.
//!
//! The engine's operators, and its `max` and `min` of rows, take it for the smallest one. Its sorts put it where they put rows whose key
//! is NULL, but below a limit, and where they merge the values of an aggregate, they compare as the operators do. So all sorts are by
//! a [key](nested_key) of bytes.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::{
    AggregateUDF, Between, BinaryExpr, Distinct, DistinctOn, Expr, LogicalPlan, Operator, Sort, SortExpr,
    WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::functions::{NestedExtreme, NestedOrder as Order, TypeIn, nested_key};

/// See the module's documentation. Runs after type coercion, when both sides of a comparison have one type.
#[derive(Debug)]
pub(super) struct NestedOrder;

impl AnalyzerRule for NestedOrder {
    fn name(&self) -> &str {
        "savedsearch_nested_order"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, schema| Ok(ordered(expr, schema)), |plan| Ok(sorted(plan)))
    }
}

fn ordered(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match order(op) {
            Some(order) if is_nested(&left, schema) && is_nested(&right, schema) => {
                Transformed::yes(order.udf().call(vec![*left, *right]))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::Between(Between { expr, negated, low, high }) if is_nested(&expr, schema) => {
            let from = Order::AtLeast.udf().call(vec![expr.as_ref().clone(), *low]);
            let within = from.and(Order::AtMost.udf().call(vec![*expr, *high]));
            Transformed::yes(if negated { !within } else { within })
        }
        Expr::WindowFunction(mut function) => {
            let mut changed = with_keys(&mut function.params.order_by, schema);
            if let WindowFunctionDefinition::AggregateUDF(called) = &mut function.fun {
                changed |= with_extreme(called, &function.params.args, schema);
            }
            Transformed::new_transformed(Expr::WindowFunction(function), changed)
        }
        Expr::AggregateFunction(mut function) => {
            let keys = &mut function.params.order_by;
            let mut changed = match function.params.distinct {
                true => with_keys_of_distinct(keys, schema),
                false => with_keys(keys, schema),
            };
            changed |= with_extreme(&mut function.func, &function.params.args, schema);
            Transformed::new_transformed(Expr::AggregateFunction(function), changed)
        }
        other => Transformed::no(other),
    }
}

/// Replaces `max` and `min` of arrays and rows. Returns whether the function is one of them.
fn with_extreme(called: &mut Arc<AggregateUDF>, args: &[Expr], schema: &DFSchema) -> bool {
    match (NestedExtreme::instead_of(called.name()), args) {
        (Some(extreme), [value]) if is_nested(value, schema) => {
            *called = extreme.udaf();
            true
        }
        _ => false,
    }
}

fn sorted(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
            let changed = with_keys(&mut expr, input.schema());
            Transformed::new_transformed(LogicalPlan::Sort(Sort { expr, input, fetch }), changed)
        }
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            let changed = with_keys_of_groups(&mut distinct);
            Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(distinct)), changed)
        }
        other => Transformed::no(other),
    }
}

/// As [`with_keys`], for DISTINCT ON. It begins with the keys of its groups, which become the new keys: they are the same groups.
fn with_keys_of_groups(distinct: &mut DistinctOn) -> bool {
    let DistinctOn { on_expr, sort_expr: Some(keys), input, .. } = distinct else { return false };
    let changed = with_keys(keys, input.schema());
    let is_key = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.func == nested_key());
    for (group, key) in on_expr.iter_mut().zip(keys.iter()) {
        if has_key(group, input.schema()) && is_key(&key.expr) {
            *group = key.expr.clone();
        }
    }
    changed
}

fn order(op: Operator) -> Option<Order> {
    match op {
        Operator::Lt => Some(Order::Less),
        Operator::LtEq => Some(Order::AtMost),
        Operator::Gt => Some(Order::Greater),
        Operator::GtEq => Some(Order::AtLeast),
        _ => None,
    }
}

fn is_nested(expr: &Expr, schema: &dyn ExprSchema) -> bool {
    expr.type_in(schema).is_ok_and(|data_type| {
        matches!(
            data_type,
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Struct(_)
        )
    })
}

/// True for an expression whose values are sorted by their [`nested_key`].
fn has_key(expr: &Expr, schema: &dyn ExprSchema) -> bool {
    let views = |data_type: &DataType| {
        matches!(data_type, DataType::ListView(_) | DataType::LargeListView(_) | DataType::Map(..))
    };
    is_nested(expr, schema) || expr.type_in(schema).is_ok_and(|data_type| views(&data_type))
}

/// Sorts by keys of arrays, rows and maps instead of the values themselves. Returns whether there are such values.
fn with_keys(keys: &mut [SortExpr], schema: &dyn ExprSchema) -> bool {
    let mut changed = false;
    for key in keys.iter_mut().filter(|key| has_key(&key.expr, schema)) {
        key.expr = nested_key().call(vec![std::mem::take(&mut key.expr)]);
        changed = true;
    }
    changed
}

/// As [`with_keys`], for an aggregate of distinct values. The engine sorts them by their own order alone, in which NULL is on the end
/// of rows whose key is NULL; it refuses another key.
fn with_keys_of_distinct(keys: &mut [SortExpr], schema: &dyn ExprSchema) -> bool {
    let on_its_end = keys.iter().all(|key| key.asc != key.nulls_first);
    !on_its_end && with_keys(keys, schema)
}
