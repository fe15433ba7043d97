//! Operators whose result depends on the types of their operands, which the syntax does not show.
//!
//! | operation | engine | PostgreSQL |
//! | --- | --- | --- |
//! | date + interval, date - interval | a date, without the hours | a timestamp |
//! | interval * number, interval / number | refused, or without a fraction | an interval |
//! | double precision / 0, % 0 | infinity, NaN | an error |

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::listed_named;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Operators;

fn call(name: &str, arguments: Vec<Expr>) -> Option<Expr> {
    Some(listed_named(name)?.call(arguments))
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_null()
}

/// True for a number that is not zero.
fn is_divisor(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(Some(number))) => number != 0.0,
            _ => false,
        },
        _ => false,
    }
}

fn planned(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    // That of a parameter is not known yet.
    let type_of = |side: &Expr| side.get_type(schema).unwrap_or(DataType::Null);
    let (left, right) = (type_of(&expr.left), type_of(&expr.right));
    let double = |side: &Expr| cast(side.clone(), DataType::Float64);
    let at_midnight = |side: &Expr| cast(side.clone(), DataType::Timestamp(TimeUnit::Microsecond, None));
    let span = |side: &Expr, data_type: &DataType| match data_type {
        DataType::Interval(IntervalUnit::MonthDayNano) => side.clone(),
        _ => cast(side.clone(), DataType::Interval(IntervalUnit::MonthDayNano)),
    };
    match &expr.op {
        Plus | Minus if left == DataType::Date32 && matches!(right, DataType::Interval(_)) => {
            let time = at_midnight(&expr.left);
            Some(if expr.op == Plus { time + expr.right.clone() } else { time - expr.right.clone() })
        }
        Plus if matches!(left, DataType::Interval(_)) && right == DataType::Date32 => {
            Some(at_midnight(&expr.right) + expr.left.clone())
        }
        Multiply if is_interval(&left) && is_number(&right) => {
            call("postgres_interval_multiply", vec![span(&expr.left, &left), double(&expr.right)])
        }
        Multiply if is_number(&left) && is_interval(&right) => {
            call("postgres_interval_multiply", vec![span(&expr.right, &right), double(&expr.left)])
        }
        Divide if is_interval(&left) && is_number(&right) => {
            call("postgres_interval_divide", vec![span(&expr.left, &left), double(&expr.right)])
        }
        Divide | Modulo
            if (left.is_floating() || right.is_floating())
                && left.is_numeric()
                && right.is_numeric()
                && !is_divisor(&expr.right) =>
        {
            let name = if expr.op == Divide { "postgres_divide" } else { "postgres_modulo" };
            call(name, vec![double(&expr.left), double(&expr.right)])
        }
        _ => None,
    }
}

impl ExprPlanner for Operators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        Ok(match planned(&expr, schema) {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(expr),
        })
    }
}
