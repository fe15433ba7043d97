//! Floating-point numbers without a negative zero, and with one NaN.
//!
//! `-0.4` is rounded to `-0.0`. By IEEE 754 and the SQL standard, it equals 0. The engine compares the bits of numbers in
//! CASE, in NULLIF, in sort keys, in lists, in `count(DISTINCT …)` and in the partitions of windows, so that it is another number
//! there. NaN with a sign, which processors compute from `0 / 0`, would be the smallest number instead of the greatest.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function `positive_zero(x)` of a floating-point number of 32 or 64 bits.
pub(crate) fn positive_zero() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(PositiveZero { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PositiveZero {
    signature: Signature,
}

impl ScalarUDFImpl for PositiveZero {
    fn name(&self) -> &'static str {
        "positive_zero"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [number @ (DataType::Float32 | DataType::Float64)] => Ok(number.clone()),
            _ => exec_err!("positive_zero expects a floating-point number"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = super::field_of(self, &args)?;
        Ok(match args.arg_fields {
            [number] => Arc::new(field.as_ref().clone().with_metadata(number.metadata().clone())),
            _ => field,
        })
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        match inputs {
            [numbers] => Ok((*numbers).clone()),
            _ => exec_err!("positive_zero expects a floating-point number"),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs.first().map_or(SortProperties::Unordered, |numbers| numbers.sort_properties))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(ColumnarValue::Scalar(ScalarValue::Float64(number))) => {
                Ok(ColumnarValue::Scalar(ScalarValue::Float64(number.map(positive_double))))
            }
            Some(ColumnarValue::Scalar(ScalarValue::Float32(number))) => {
                Ok(ColumnarValue::Scalar(ScalarValue::Float32(number.map(positive_real))))
            }
            Some(ColumnarValue::Array(numbers)) => positive(&numbers).map(ColumnarValue::Array),
            _ => exec_err!("positive_zero expects a floating-point number"),
        }
    }
}

fn positive(numbers: &ArrayRef) -> Result<ArrayRef> {
    Ok(match numbers.data_type() {
        DataType::Float64 => Arc::new(numbers.as_primitive::<Float64Type>().unary::<_, Float64Type>(positive_double)),
        DataType::Float32 => Arc::new(numbers.as_primitive::<Float32Type>().unary::<_, Float32Type>(positive_real)),
        other => return exec_err!("positive_zero expects a floating-point number, not {other}"),
    })
}

fn positive_double(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number + 0.0 }
}

fn positive_real(number: f32) -> f32 {
    if number.is_nan() { f32::NAN } else { number + 0.0 }
}
