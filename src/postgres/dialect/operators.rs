//! Operators whose result depends on the types of their operands, which the syntax does not show.
//!
//! | operation | engine | PostgreSQL |
//! | --- | --- | --- |
//! | date + interval, date - interval | a date, without the hours | a timestamp |
//! | double precision / 0, % 0 | infinity, NaN | an error |
//! | real with a number of another type | computed with single precision | with double precision |
//! | `x || y` of a text and another value | the engine's form of the value | PostgreSQL's, as of `x::text` |
//! | time + 'text' | refused | the text is an interval |
//! | date - 'text', time - 'text' | refused | the text is a date or a time |
//! | array = 'text' | refused | the text is an array |

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::{Numeric, PostgresCast, TypeIn, listed_named, numeric, read_interval};
use crate::postgres::numbers::operation;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Operators;

fn call(name: &str, arguments: Vec<Expr>) -> Option<Expr> {
    Some(listed_named(name)?.call(arguments))
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

/// True for a type of operands that become texts before they are joined: not for arrays and bytes.
fn joins_as_text(data_type: &DataType) -> bool {
    !data_type.is_nested() && !data_type.is_binary()
}

/// True for a type to which PostgreSQL adds a literal text as an interval.
fn takes_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Interval(_))
}

/// True for a type whose difference to a literal text takes the text for a value of the type.
fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

/// A value as PostgreSQL's type of this name.
fn as_text(value: Expr, name: &str) -> Expr {
    PostgresCast::udf().call(vec![value, lit(name)])
}

/// The text of a literal.
fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// The interval that a literal text is.
fn interval_of(expr: &Expr) -> Option<ScalarValue> {
    let span = read_interval(text_of(expr)?, None).ok()?.value().ok()?;
    Some(ScalarValue::IntervalMonthDayNano(Some(span)))
}

/// The name of a type of arrays.
fn array_type(data_type: &DataType) -> Option<&'static str> {
    let DataType::List(item) = data_type else { return None };
    Some(match item.data_type() {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "text[]",
        DataType::Int64 => "int8[]",
        DataType::Int32 => "int4[]",
        DataType::Float64 => "float8[]",
        DataType::Boolean => "bool[]",
        DataType::Date32 => "date[]",
        _ => return None,
    })
}

fn compared(op: &BinaryOperator, left: Expr, right: Expr) -> Expr {
    match op {
        BinaryOperator::Eq => left.eq(right),
        BinaryOperator::NotEq => left.not_eq(right),
        BinaryOperator::Lt => left.lt(right),
        BinaryOperator::LtEq => left.lt_eq(right),
        BinaryOperator::Gt => left.gt(right),
        _ => left.gt_eq(right),
    }
}

/// Functions that compute operators.
const WRITTEN: [&str; 6] = [
    "numeric_divide",
    "numeric_multiply",
    "postgres_divide",
    "postgres_interval_divide",
    "postgres_interval_multiply",
    "postgres_modulo",
];

/// True for an expression of unsigned numbers, such as `row_number() OVER () * 10`: the engine's types of its parts are not final.
fn has_unsigned(expr: &Expr, schema: &DFSchema) -> bool {
    let mut unsigned = false;
    // The closure never fails.
    let _ = expr.apply(|part| {
        Ok(match part {
            // Its operands are parts as well. The type of each operator of a chain would take a walk through the rest.
            Expr::BinaryExpr(_) | Expr::Negative(_) => TreeNodeRecursion::Continue,
            // Operators as well: their types are numeric, double precision and interval.
            Expr::ScalarFunction(call) if WRITTEN.contains(&call.func.name()) => TreeNodeRecursion::Continue,
            part => {
                unsigned = part.type_in(schema).is_ok_and(|data_type| data_type.is_unsigned_integer());
                if unsigned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue }
            }
        })
    });
    unsigned
}

/// Texts of values, joined.
fn joined(expr: &RawBinaryExpr, left: &DataType, right: &DataType) -> Expr {
    let printed = |side: &Expr, data_type: &DataType| match data_type.is_string() || data_type.is_null() {
        true => side.clone(),
        false => as_text(side.clone(), "text"),
    };
    let (left, right) = (Box::new(printed(&expr.left, left)), Box::new(printed(&expr.right, right)));
    Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
}

/// An operation with double precision, in PostgreSQL's form if it has one.
fn in_double(op: &BinaryOperator, left: Expr, right: Expr, schema: &DFSchema) -> Option<Expr> {
    let of_doubles = RawBinaryExpr { op: op.clone(), left: left.clone(), right: right.clone() };
    planned(&of_doubles, schema).or_else(|| {
        let op = match op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            _ => return Some(compared(op, left, right)),
        };
        Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
    })
}

fn planned(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus, StringConcat};
    // That of a parameter is not known yet.
    let type_of = |side: &Expr| side.type_in(schema).unwrap_or(DataType::Null);
    let (left, right) = (type_of(&expr.left), type_of(&expr.right));
    let double = |side: &Expr| cast(side.clone(), DataType::Float64);
    let at_midnight = |side: &Expr| cast(side.clone(), DataType::Timestamp(TimeUnit::Microsecond, None));
    match &expr.op {
        StringConcat if [&left, &right].iter().all(|side| joins_as_text(side)) => {
            (!left.is_string() || !right.is_string()).then(|| joined(expr, &left, &right))
        }
        Plus if takes_interval(&left) && interval_of(&expr.right).is_some() => {
            Some(expr.left.clone() + lit(interval_of(&expr.right)?))
        }
        Plus if takes_interval(&right) && interval_of(&expr.left).is_some() => {
            Some(expr.right.clone() + lit(interval_of(&expr.left)?))
        }
        Minus if is_time(&left) && text_of(&expr.right).is_some() => {
            Some(expr.left.clone() - cast(expr.right.clone(), left))
        }
        Minus if is_time(&right) && text_of(&expr.left).is_some() => {
            Some(cast(expr.left.clone(), right) - expr.right.clone())
        }
        Eq | NotEq | Lt | LtEq | Gt | GtEq if text_of(&expr.right).is_some() && array_type(&left).is_some() => {
            let array = as_text(expr.right.clone(), array_type(&left)?);
            Some(compared(&expr.op, expr.left.clone(), array))
        }
        Eq | NotEq | Lt | LtEq | Gt | GtEq if text_of(&expr.left).is_some() && array_type(&right).is_some() => {
            let array = as_text(expr.left.clone(), array_type(&right)?);
            Some(compared(&expr.op, array, expr.right.clone()))
        }
        Plus | Minus if left == DataType::Date32 && matches!(right, DataType::Interval(_)) => {
            let time = at_midnight(&expr.left);
            Some(if expr.op == Plus { time + expr.right.clone() } else { time - expr.right.clone() })
        }
        Plus if matches!(left, DataType::Interval(_)) && right == DataType::Date32 => {
            Some(at_midnight(&expr.right) + expr.left.clone())
        }
        Plus | Minus | Multiply | Divide | Modulo | Eq | NotEq | Lt | LtEq | Gt | GtEq
            if (left == DataType::Float32) != (right == DataType::Float32)
                && left.is_numeric()
                && right.is_numeric() =>
        {
            let double =
                |side: &Expr, of: &DataType| if *of == DataType::Float32 { double(side) } else { side.clone() };
            in_double(&expr.op, double(&expr.left, &left), double(&expr.right, &right), schema)
        }
        Divide | Multiply if has_unsigned(&expr.left, schema) || has_unsigned(&expr.right, schema) => None,
        Divide if operation(&left, Operator::Divide, &right).is_some() => {
            Some(numeric(Numeric::Divide).call(vec![expr.left.clone(), expr.right.clone()]))
        }
        Multiply if operation(&left, Operator::Multiply, &right).is_some() => {
            Some(numeric(Numeric::Multiply).call(vec![expr.left.clone(), expr.right.clone()]))
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
