//! `+`, `-`, `*` and the unary minus of integers by functions that check for overflow, and results of decimals with a check of their
//! digits. See [`functions`](crate::functions).
//!
//! An operator is not replaced if its operands cannot overflow: literals, columns of smaller types that were widened, and
//! results computed from them. The engine can then still simplify it.

use datafusion::arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::functions::{Arithmetic, TypeIn, checked_arithmetic, precise};

/// See the module's documentation. Runs once operands have the type of the result.
#[derive(Debug)]
pub(super) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "savedsearch_checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, schema| Ok(checked(expr, schema)), |plan| Ok(Transformed::no(plan)))
    }
}

fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(ref operation) if may_have_too_many_digits(operation, &expr, schema) => {
            Transformed::yes(precise().call(vec![expr]))
        }
        // The plan was analyzed before.
        Expr::ScalarFunction(call)
            if is_precise(&call)
                && matches!(call.args.as_slice(), [Expr::ScalarFunction(inner)] if is_precise(inner)) =>
        {
            Transformed::yes(call.args.into_iter().next().unwrap_or_else(|| lit(ScalarValue::Null)))
        }
        expr => checked_integers(expr, schema),
    }
}

fn is_precise(call: &ScalarFunction) -> bool {
    call.func.name() == precise().name()
}

/// True for arithmetic whose type has as many digits as there are: a smaller type has room for every result.
fn may_have_too_many_digits(operation: &BinaryExpr, expr: &Expr, schema: &DFSchema) -> bool {
    let is_arithmetic = matches!(
        operation.op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    );
    let widest = |data_type: &DataType| match data_type {
        DataType::Decimal32(digits, _) => *digits == DECIMAL32_MAX_PRECISION,
        DataType::Decimal64(digits, _) => *digits == DECIMAL64_MAX_PRECISION,
        DataType::Decimal128(digits, _) => *digits == DECIMAL128_MAX_PRECISION,
        DataType::Decimal256(digits, _) => *digits == DECIMAL256_MAX_PRECISION,
        _ => false,
    };
    is_arithmetic && expr.type_in(schema).is_ok_and(|data_type| widest(&data_type))
}

fn checked_integers(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let operation = match &expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Plus, .. }) => Arithmetic::Add,
        Expr::BinaryExpr(BinaryExpr { op: Operator::Minus, .. }) => Arithmetic::Subtract,
        Expr::BinaryExpr(BinaryExpr { op: Operator::Multiply, .. }) => Arithmetic::Multiply,
        Expr::Negative(_) => Arithmetic::Negate,
        _ => return Transformed::no(expr),
    };
    let Some(type_range) = expr.type_in(schema).ok().and_then(|data_type| range_of_type(&data_type)) else {
        return Transformed::no(expr);
    };
    if range(&expr, schema).is_some_and(|range| range.within(type_range)) {
        return Transformed::no(expr);
    }
    let operands = match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            let types = [&left, &right].map(|side| side.type_in(schema).ok());
            // Types that are not yet equal have an operator of their own, and a difference of dates is an integer too.
            let integers = types[0].as_ref().is_some_and(|operand| range_of_type(operand).is_some());
            if types[0] != types[1] || !integers {
                return Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, operator(operation), right)));
            }
            vec![*left, *right]
        }
        Expr::Negative(operand) => vec![*operand],
        other => return Transformed::no(other),
    };
    Transformed::yes(checked_arithmetic(operation).call(operands))
}

fn operator(operation: Arithmetic) -> Operator {
    match operation {
        Arithmetic::Add => Operator::Plus,
        Arithmetic::Subtract | Arithmetic::Negate => Operator::Minus,
        Arithmetic::Multiply => Operator::Multiply,
    }
}

/// Values between two integers.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: i128,
    high: i128,
}

impl Range {
    fn within(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// The values of an operation on two ranges; `None` beyond 128 bits.
    fn combined(self, operation: Operator, other: Self) -> Option<Self> {
        let apply = |one: i128, other: i128| match operation {
            Operator::Plus => one.checked_add(other),
            Operator::Minus => one.checked_sub(other),
            Operator::Multiply => one.checked_mul(other),
            _ => None,
        };
        let ends = [
            apply(self.low, other.low)?,
            apply(self.low, other.high)?,
            apply(self.high, other.low)?,
            apply(self.high, other.high)?,
        ];
        Some(Self { low: ends.into_iter().min()?, high: ends.into_iter().max()? })
    }
}

fn range_of_type(data_type: &DataType) -> Option<Range> {
    let (low, high) = match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    };
    Some(Range { low, high })
}

/// The values that an integer expression can have.
fn range(expr: &Expr, schema: &DFSchema) -> Option<Range> {
    let exactly = |value: i128| Some(Range { low: value, high: value });
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => exactly((*value).into()),
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => exactly((*value).into()),
        Expr::Literal(ScalarValue::UInt64(Some(value)), _) => exactly((*value).into()),
        Expr::Alias(alias) => range(&alias.expr, schema),
        Expr::Cast(cast) => {
            let whole = range_of_type(cast.field.data_type())?;
            // A cast of another type, or one that does not fit, has any value of the new one.
            Some(range(&cast.expr, schema).filter(|inner| inner.within(whole)).unwrap_or(whole))
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::Plus | Operator::Minus | Operator::Multiply),
            right,
        }) => range(left, schema)?.combined(*op, range(right, schema)?),
        Expr::Negative(operand) => {
            let Range { low, high } = range(operand, schema)?;
            Some(Range { low: -high, high: -low })
        }
        other => range_of_type(&other.type_in(schema).ok()?),
    }
}
