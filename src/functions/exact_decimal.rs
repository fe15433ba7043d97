//! Doubles as decimals.
//!
//! The engine multiplies a double by a power of ten, so that `1e20::decimal(38,10)` is 100000000000000001988.4624838656, and
//! `123456.789` beside a decimal with 15 digits after the point 123456.789000000012288. Here a double has the digits
//! that it is written with: the fewest that no other double has. Further digits are rounded half away from zero.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use arrow::error::ArrowError;
use datafusion::common::{Result, exec_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function `exact_decimal(x, decimal)` of a floating-point number, whose result has the type of its second argument.
pub(crate) fn exact_decimal() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(ExactDecimal { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactDecimal {
    signature: Signature,
}

impl ScalarUDFImpl for ExactDecimal {
    fn name(&self) -> &'static str {
        "exact_decimal"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [number, decimal @ DataType::Decimal128(..)] if number.is_floating() => Ok(decimal.clone()),
            _ => exec_err!("exact_decimal expects a floating-point number and a decimal"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        // The second argument is NULL, for its type.
        let nullable = args.arg_fields.first().is_none_or(|number| number.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let DataType::Decimal128(precision, scale) = *args.return_type() else {
            return exec_err!("exact_decimal expects a decimal");
        };
        let number: Vec<ColumnarValue> = args.args.into_iter().take(1).collect();
        let decimals = |args: &[ArrayRef]| match args {
            [numbers] => decimals(numbers, precision, scale),
            _ => exec_err!("exact_decimal expects one number"),
        };
        make_scalar_function(decimals, Vec::new())(&number)
    }
}

fn decimals(numbers: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef> {
    let numbers = cast(numbers, &DataType::Float64)?;
    let decimals: Decimal128Array = numbers.as_primitive::<Float64Type>().try_unary(|number| {
        decimal(number, precision, scale).ok_or_else(|| {
            ArrowError::CastError(format!("Cannot cast to Decimal128({precision}, {scale}). Overflowing on {number:?}"))
        })
    })?;
    Ok(Arc::new(decimals.with_precision_and_scale(precision, scale)?))
}

/// The digits that a finite double is written with, the fewest that no other double has, without its sign, and the exponent of the
/// first one.
pub(super) fn written_digits(number: f64) -> Option<(String, i32)> {
    let written = format!("{:e}", number.abs());
    let (mantissa, exponent) = written.split_once('e')?;
    Some((mantissa.replace('.', ""), exponent.parse().ok()?))
}

/// The unscaled value of a double as a decimal; `None` for one that does not fit.
fn decimal(number: f64, precision: u8, scale: i8) -> Option<i128> {
    if !number.is_finite() {
        return None;
    }
    let (digits, exponent) = written_digits(number)?;
    let shift = exponent + 1 - i32::try_from(digits.len()).ok()? + i32::from(scale);
    let digits = digits.parse::<i128>().ok()? * if number.is_sign_negative() { -1 } else { 1 };
    let power = |by: i32| 10_i128.checked_pow(by.unsigned_abs());
    let value = match shift {
        0.. => digits.checked_mul(if digits == 0 { 1 } else { power(shift)? })?,
        _ => match power(shift) {
            Some(unit) => {
                let (whole, rest) = (digits / unit, digits % unit);
                let up = rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
                whole + if up { digits.signum() } else { 0 }
            }
            None => 0,
        },
    };
    (value.unsigned_abs() < 10_u128.pow(precision.into())).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn doubles_have_the_digits_that_they_are_written_with() {
        let shown = |number: f64, scale: i8| decimal(number, 38, scale).map(|value| value.to_string());
        let cases = [
            (1e20, 10, "1000000000000000000000000000000"),
            (123_456.789, 15, "123456789000000000000"),
            (1.005, 2, "101"),
            (-1.005, 2, "-101"),
            (2.5, 0, "3"),
            (-2.5, 0, "-3"),
            (0.1 + 0.2, 20, "30000000000000004000"),
            (0.1 + 0.2, 10, "3000000000"),
            (1_764_273_489.123_456, 6, "1764273489123456"),
            (0.0, 10, "0"),
            (-0.0, 2, "0"),
            (1e-30, 2, "0"),
            (0.005, 2, "1"),
            (0.004_999, 2, "0"),
            (1_000_000_000_000_001.0, 2, "100000000000000100"),
            (9.999_999_999_999_999, 2, "1000"),
            (12_345_678_901_234.56, 2, "1234567890123456"),
        ];
        each(cases, |(number, scale, expected)| {
            assert_eq!(shown(number, scale).as_deref(), Some(expected), "{number} {scale}");
        });
        for (number, precision, scale) in
            [(1e37, 38, 10), (f64::NAN, 38, 10), (f64::INFINITY, 38, 0), (999.9, 3, 1), (1e300, 38, 0)]
        {
            assert_eq!(decimal(number, precision, scale), None, "{number}");
        }
    }
}
