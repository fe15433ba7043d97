//! Quotients and products of PostgreSQL's numeric.
//!
//! `numeric_divide(a, b)`: the engine cuts a quotient off at four digits more than the dividend has. PostgreSQL rounds it at
//! the digit that gives at least 16 significant ones. The result has that value, in a type of [`SCALE`] digits.
//!
//! `numeric_multiply(a, b)`: the digits of a product are those of both factors, which the engine refuses for two quotients.
//! Here, they are rounded to [`SCALE`], which has to leave 16 significant ones.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, i256};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Digits after the point of a quotient. PostgreSQL has more for numbers below 0.0001, and fewer above 1.
const SCALE: i8 = 20;
/// Message for a result that does not fit.
const OUT_OF_RANGE: &str = "value out of range for numeric: it needs more digits than 38, or than 20 after the point";
/// Significant digits of a quotient, at least.
const SIGNIFICANT: i32 = 16;

/// An operation on numeric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Numeric {
    Divide,
    Multiply,
}

/// The function of an operation.
pub(crate) fn numeric(operation: Numeric) -> Arc<ScalarUDF> {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| {
        [Numeric::Divide, Numeric::Multiply].map(|operation| {
            Arc::new(ScalarUDF::from(Arithmetic {
                operation,
                signature: Signature::user_defined(Volatility::Immutable),
            }))
        })
    });
    Arc::clone(&FUNCTIONS[operation as usize])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    operation: Numeric,
    signature: Signature,
}

/// The scale of a result.
fn scale_of(types: &[DataType]) -> Result<i8> {
    match types {
        [DataType::Decimal128(_, left), DataType::Decimal128(_, right)] => Ok(SCALE.max(*left).max(*right)),
        _ => plan_err!("expected two numbers of type numeric"),
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &'static str {
        match self.operation {
            Numeric::Divide => "numeric_divide",
            Numeric::Multiply => "numeric_multiply",
        }
    }

    // Displayed like the operator, since names of results are derived from it.
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let symbol = if self.operation == Numeric::Divide { '/' } else { '*' };
        Ok(match args {
            [left, right] => format!("{} {symbol} {}", left.schema_name(), right.schema_name()),
            _ => self.name().to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let numeric = |given: &DataType| match given {
            DataType::Decimal128(..) => Ok(given.clone()),
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                Ok(DataType::Decimal128(*precision, *scale))
            }
            DataType::Null => Ok(DataType::Decimal128(20, 0)),
            integer if integer.is_integer() => Ok(DataType::Decimal128(20, 0)),
            other => plan_err!("{} takes numbers, not {other}", self.name()),
        };
        match given {
            [_, _] => given.iter().map(numeric).collect(),
            _ => plan_err!("{} takes two numbers", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale_of(types)?))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let operands = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let [left, right] = operands.as_slice() else { return plan_err!("{} takes two numbers", self.name()) };
        let types = [left, right].map(|operand| operand.data_type().clone());
        let scale = scale_of(&types)?;
        let scales = types.map(|operand| match operand {
            DataType::Decimal128(_, scale) => i32::from(scale),
            _ => 0,
        });
        let [left, right] = [left, right].map(|operand| operand.as_primitive::<Decimal128Type>());
        let values = (0..rows).map(|row| {
            if left.is_null(row) || right.is_null(row) {
                return Ok(None);
            }
            let (left, right) = (left.value(row), right.value(row));
            let value = match self.operation {
                Numeric::Divide if right == 0 => return Err(ArrowError::DivideByZero),
                Numeric::Divide => quotient((left, scales[0]), (right, scales[1]), scale.into()),
                Numeric::Multiply => product((left, scales[0]), (right, scales[1]), scale.into()),
            };
            value.map(Some).ok_or_else(|| ArrowError::ArithmeticOverflow(OUT_OF_RANGE.to_owned()))
        });
        let values: Decimal128Array = values.collect::<Result<_, ArrowError>>()?;
        let values: ArrayRef = Arc::new(values.with_precision_and_scale(DECIMAL128_MAX_PRECISION, scale)?);
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)),
            false => Ok(ColumnarValue::Array(values)),
        }
    }
}

/// A number and its scale.
type Scaled = (i128, i32);

/// The quotient as PostgreSQL rounds it, with this scale; `None` if it does not fit.
fn quotient(left: Scaled, right: Scaled, scale: i32) -> Option<i128> {
    let rounded = digits_of_quotient(left, right).max(left.1).max(right.1).clamp(0, scale);
    let shift = rounded + right.1 - left.1;
    let (mut dividend, mut divisor) = (i256::from_i128(left.0), i256::from_i128(right.0));
    match shift {
        0.. => dividend = dividend.checked_mul(power(shift)?)?,
        _ => divisor = divisor.checked_mul(power(-shift)?)?,
    }
    fitting(divided(dividend, divisor)?.checked_mul(power(scale - rounded)?)?)
}

/// The product, rounded to a scale; `None` if it does not fit, or if fewer than [`SIGNIFICANT`] of its digits are left.
fn product(left: Scaled, right: Scaled, scale: i32) -> Option<i128> {
    let whole = i256::from_i128(left.0).checked_mul(i256::from_i128(right.0))?;
    let shift = left.1 + right.1 - scale;
    let product = match shift {
        1.. => divided(whole, power(shift)?)?,
        _ => whole.checked_mul(power(-shift)?)?,
    };
    let exact = shift <= 0 || product.checked_mul(power(shift)?)? == whole;
    let enough = product.wrapping_abs() >= power(SIGNIFICANT - 1)?;
    fitting(product).filter(|_| exact || enough)
}

/// Rounds half away from zero.
fn divided(dividend: i256, divisor: i256) -> Option<i256> {
    let (quotient, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
    let up = rest.wrapping_abs() >= divisor.wrapping_abs().checked_sub(rest.wrapping_abs())?;
    let away = if dividend.is_negative() == divisor.is_negative() { i256::ONE } else { i256::MINUS_ONE };
    if up { quotient.checked_add(away) } else { Some(quotient) }
}

fn power(exponent: i32) -> Option<i256> {
    i256::from_i128(10).checked_pow(u32::try_from(exponent).ok()?)
}

fn fitting(value: i256) -> Option<i128> {
    let value = value.to_i128()?;
    (value.unsigned_abs() < 10_u128.pow(DECIMAL128_MAX_PRECISION.into())).then_some(value)
}

/// Digits after the point with which PostgreSQL computes a quotient (`select_div_scale`).
fn digits_of_quotient(left: Scaled, right: Scaled) -> i32 {
    let ((left_weight, left_digit), (right_weight, right_digit)) = (first_digit(left), first_digit(right));
    let weight = left_weight - right_weight - i32::from(left_digit <= right_digit);
    SIGNIFICANT - 4 * weight
}

/// The power of 10,000 of the first digit to that base, and the digit.
fn first_digit((value, scale): Scaled) -> (i32, u32) {
    let digits = value.unsigned_abs().to_string();
    if value == 0 {
        return (0, 0);
    }
    let exponent = i32::try_from(digits.len()).unwrap_or(i32::MAX) - 1 - scale;
    let weight = exponent.div_euclid(4);
    let length = usize::try_from(exponent.rem_euclid(4)).unwrap_or(0) + 1;
    let first: String = digits.chars().chain("000".chars()).take(length).collect();
    (weight, first.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    /// Values of PostgreSQL 15.
    #[test]
    fn quotients_have_the_digits_of_postgresql() {
        let cases = [
            ((1, 0), (7, 0), "0.14285714285714285714"),
            ((10, 0), (3, 0), "3.3333333333333333"),
            ((100_000, 0), (3, 0), "33333.333333333333"),
            ((-2, 0), (3, 0), "-0.66666666666666666667"),
            ((200, 2), (3, 0), "0.66666666666666666667"),
            ((123_456_789_012, 0), (7, 0), "17636684144.57142857"),
            ((1, 0), (8, 0), "0.12500000000000000000"),
            ((0, 0), (3, 0), "0.00000000000000000000"),
        ];
        each(cases, |(left, right, expected)| {
            let value = quotient(left, right, SCALE.into()).expect("a quotient");
            let shown = format!("{:0>22}", value.unsigned_abs());
            let (whole, fraction) = shown.split_at(shown.len() - 20);
            let sign = if value < 0 { "-" } else { "" };
            let shown = format!("{sign}{}.{fraction}", whole.trim_start_matches('0').parse().unwrap_or(0_i64));
            assert_eq!(shown.trim_end_matches('0'), expected.trim_end_matches('0'), "{left:?} / {right:?}");
        });
        assert_eq!(quotient((i128::MAX, 0), (1, 0), 20), None);
        assert_eq!(product((15, 1), (15, 1), 20), Some(225 * 10_i128.pow(18)));
    }
}
