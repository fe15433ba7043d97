//! Numbers of which digits after the point are rounded or cut.
//!
//! The engine multiplies a double by a power of ten, so that `round(1.005, 2)` is 1 and `trunc(4.35, 2)` is 4.34. Here a double has
//! the digits that it is written with, as `numeric` has in PostgreSQL, and halves are rounded away from zero.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::exact_decimal::written_digits;

/// Treatment of the digits that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DigitsKept {
    Rounded,
    Cut,
}

impl DigitsKept {
    /// The one of a function of the engine.
    #[cfg_attr(
        not(feature = "postgres"),
        allow(dead_code, reason = "the PostgreSQL front replaces the engine's functions")
    )]
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "round" => Some(Self::Rounded),
            "trunc" => Some(Self::Cut),
            _ => None,
        }
    }

    /// The function of a double and a number of digits after the point, which may be negative.
    pub(crate) fn udf(self) -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![DataType::Float64, DataType::Int64], Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Function { kept: self, signature }))
    }

    /// The number with so many digits after the point.
    fn of(self, number: f64, places: i64) -> f64 {
        if !number.is_finite() || number == 0.0 {
            return number;
        }
        let Some((digits, exponent)) = written_digits(number) else { return number };
        // Digits that are kept.
        let kept = i64::from(exponent).saturating_add(1).saturating_add(places);
        let Ok(count) = usize::try_from(kept) else { return 0.0 };
        if count >= digits.len() {
            return number;
        }
        let up = self == Self::Rounded && digits.as_bytes()[count] >= b'5';
        let whole = digits[..count].parse::<u64>().unwrap_or_default() + u64::from(up);
        let result = format!("{whole}e{}", -places).parse::<f64>().unwrap_or(number);
        if whole == 0 { 0.0 } else { result.copysign(number) }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    kept: DigitsKept,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &'static str {
        match self.kept {
            DigitsKept::Rounded => "rounded_digits",
            DigitsKept::Cut => "cut_digits",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kept = self.kept;
        let of = move |args: &[ArrayRef]| {
            let [numbers, places] = args else { return exec_err!("expected a number and a number of digits") };
            let pairs = numbers.as_primitive::<Float64Type>().iter().zip(places.as_primitive::<Int64Type>());
            let results = pairs.map(|(number, places)| Some(kept.of(number?, places?)));
            Ok(Arc::new(results.collect::<Float64Array>()) as ArrayRef)
        };
        make_scalar_function(of, Vec::new())(&args.args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn digits_are_those_that_a_number_is_written_with() {
        // Values of PostgreSQL 15.
        let cases = [
            (1.005, 2, 1.01, 1.0),
            (10.235, 2, 10.24, 10.23),
            (4.35, 2, 4.35, 4.35),
            (1.15, 1, 1.2, 1.1),
            (-2.5, 0, -3.0, -2.0),
            (1234.5, -2, 1200.0, 1200.0),
            (1250.0, -2, 1300.0, 1200.0),
            (0.004, 2, 0.0, 0.0),
            (0.005, 2, 0.01, 0.0),
            (9.999, 2, 10.0, 9.99),
            (55.0, -2, 100.0, 0.0),
            (5.0, -2, 0.0, 0.0),
            (1e20, 3, 1e20, 1e20),
        ];
        each(cases, |(number, places, rounded, cut)| {
            assert_eq!(DigitsKept::Rounded.of(number, places), rounded, "round({number}, {places})");
            assert_eq!(DigitsKept::Cut.of(number, places), cut, "trunc({number}, {places})");
        });
    }
}
