//! Operators that the engine does not have, or whose result does not fit the type that the engine gives it.
//!
//! - On arrays, `a && b` is `array_has_any(a, b)`, and `a @> b` and `b <@ a` are `array_has_all(a, b)`.
//! - `->`, `->>`, and in PostgreSQL's dialect `#>`, `#>>` and `?`, read JSON text.
//! - The difference of two times has days, as the interval that it is added to.
//! - An interval times a number, or divided by one, is an interval. Fractions of months and days are days and hours, as in
//!   PostgreSQL.
//! - A length, or what is computed from it, may be the position of an item: `a[cardinality(a) - 1]`.
//! - A date plus or minus an interval with a time is a time: the engine drops the hours.
//! - The difference of two unsigned integers, such as two row numbers, is a signed integer.

use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::datetime::date_part;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, GetFieldAccess, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::{Membership, PostgresCast, TypeIn, corrected, json_operator, listed_named};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Operators;

impl ExprPlanner for Operators {
    fn plan_field_access(
        &self,
        mut expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        if let GetFieldAccess::ListIndex { key } = &mut expr.field_access
            && key.type_in(schema).is_ok_and(|of_key| of_key.is_unsigned_integer() || of_key.is_decimal())
        {
            **key = cast(key.as_ref().clone(), DataType::Int64);
        }
        Ok(PlannerResult::Original(expr))
    }

    /// The engine's planner would take its own function.
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(corrected(date_part()).call(args)))
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_array = |side: &Expr| side.type_in(schema).is_ok_and(|data_type| data_type.is_list());
        match expr.op {
            BinaryOperator::PGOverlap => {
                Ok(PlannerResult::Planned(Membership::Any.udf().call(vec![expr.left, expr.right])))
            }
            BinaryOperator::AtArrow if is_array(&expr.left) && is_array(&expr.right) => {
                Ok(PlannerResult::Planned(Membership::All.udf().call(vec![expr.left, expr.right])))
            }
            BinaryOperator::ArrowAt if is_array(&expr.left) && is_array(&expr.right) => {
                Ok(PlannerResult::Planned(Membership::All.udf().call(vec![expr.right, expr.left])))
            }
            BinaryOperator::Minus => {
                let unsigned =
                    |side: &Expr| side.type_in(schema).is_ok_and(|data_type| data_type.is_unsigned_integer());
                // A chain has its last operand on the right: its type is known without a walk.
                if unsigned(&expr.right) && unsigned(&expr.left) {
                    let [left, right] = [expr.left, expr.right].map(|side| cast(side, DataType::Int64));
                    return Ok(PlannerResult::Planned(left - right));
                }
                Ok(PlannerResult::Original(with_time(with_days(expr, schema), schema)))
            }
            BinaryOperator::Plus => Ok(PlannerResult::Original(with_time(with_days(expr, schema), schema))),
            BinaryOperator::Multiply | BinaryOperator::Divide => Ok(match interval_product(&expr, schema) {
                Some(interval) => PlannerResult::Planned(interval),
                None => PlannerResult::Original(expr),
            }),
            _ => Ok(match json_operator(&expr.op, &expr.left, &expr.right) {
                Some(call) => PlannerResult::Planned(call),
                None => PlannerResult::Original(expr),
            }),
        }
    }
}

/// The sum or difference of an interval and a difference of times as that of two intervals.
fn with_days(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    // The type on the right first: that on the left takes a walk through the chain of operators before this one.
    let right = expr.right.type_in(schema);
    if !matches!(right, Ok(DataType::Interval(_) | DataType::Duration(_))) {
        return expr;
    }
    let types = [expr.left.type_in(schema), right];
    if let [Ok(left @ DataType::Duration(_)), Ok(DataType::Interval(_))] = &types {
        expr.left = as_interval(expr.left, left);
    } else if let [Ok(DataType::Interval(_)), Ok(right @ DataType::Duration(_))] = &types {
        expr.right = as_interval(expr.right, right);
    }
    expr
}

/// The sum or difference of a date and an interval that may have a time, as that of a time.
fn with_time(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_date = |side: &Expr| matches!(side.type_in(schema), Ok(DataType::Date32 | DataType::Date64));
    let has_time = |side: &Expr| match side {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds != 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => false,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => interval.milliseconds != 0,
        side => matches!(side.type_in(schema), Ok(DataType::Interval(_))),
    };
    let time = || DataType::Timestamp(TimeUnit::Nanosecond, None);
    if has_time(&expr.right) && is_date(&expr.left) {
        expr.left = cast(expr.left, time());
    } else if expr.op == BinaryOperator::Plus && is_date(&expr.right) && has_time(&expr.left) {
        expr.right = cast(expr.right, time());
    }
    expr
}

/// An interval or a difference of times as an interval, with days.
fn as_interval(expr: Expr, data_type: &DataType) -> Expr {
    match data_type {
        DataType::Duration(_) => PostgresCast::udf().call(vec![expr, lit("interval")]),
        _ => cast(expr, DataType::Interval(IntervalUnit::MonthDayNano)),
    }
}

/// The function that computes an interval times a number, or divided by one; `None` for other operands.
fn interval_product(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    // That of a parameter is not known yet.
    let is_interval = |side: &DataType| matches!(side, DataType::Interval(_) | DataType::Duration(_));
    let (left, right) = (&expr.left, &expr.right);
    let types = [left, right].map(|side| side.type_in(schema).unwrap_or(DataType::Null));
    let [of_left, of_right] = &types;
    let (name, (of_interval, interval), (of_number, number)) = match expr.op {
        BinaryOperator::Divide => ("postgres_interval_divide", (of_left, left), (of_right, right)),
        _ if is_interval(of_left) => ("postgres_interval_multiply", (of_left, left), (of_right, right)),
        _ => ("postgres_interval_multiply", (of_right, right), (of_left, left)),
    };
    if !is_interval(of_interval) || !(of_number.is_numeric() || of_number.is_null()) {
        return None;
    }
    let interval = as_interval(interval.clone(), of_interval);
    Some(listed_named(name)?.call(vec![interval, cast(number.clone(), DataType::Float64)]))
}
