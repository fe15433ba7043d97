//! Decimals held against the number of digits of their type.
//!
//! The engine checks results of arithmetic and sums for 128 bits only. A result of 39 digits that fits is written as text without
//! its last digit, so that it is ten times too small.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, FieldRef};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::{Error, ErrorKind};

/// First words of the error of a decimal with too many digits.
pub(crate) const TOO_MANY_DIGITS: &str = "decimal out of range";

/// The function `precise_decimal(x)`: `x`, or an error if it has more digits than its type.
pub(crate) fn precise() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::new_from_impl(Precise { signature: Signature::any(1, Volatility::Immutable) }))
    });
    Arc::clone(&FUNCTION)
}

/// # Errors
/// [`ErrorKind::Query`] if a decimal has more digits than its type. Other values are not looked at.
pub(super) fn check_digits(values: &dyn Array) -> Result<()> {
    let fits = match values.data_type() {
        DataType::Decimal32(digits, _) => values.as_primitive::<Decimal32Type>().validate_decimal_precision(*digits),
        DataType::Decimal64(digits, _) => values.as_primitive::<Decimal64Type>().validate_decimal_precision(*digits),
        DataType::Decimal128(digits, _) => values.as_primitive::<Decimal128Type>().validate_decimal_precision(*digits),
        DataType::Decimal256(digits, _) => values.as_primitive::<Decimal256Type>().validate_decimal_precision(*digits),
        _ => Ok(()),
    };
    fits.map_err(|_| {
        let message = format!("{TOO_MANY_DIGITS}: a result has too many digits for {}", values.data_type());
        Error::new(ErrorKind::Query, message)
            .advice("cast to fewer digits after the point before computing, or to DOUBLE")
            .into()
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Precise {
    signature: Signature,
}

impl ScalarUDFImpl for Precise {
    fn name(&self) -> &'static str {
        "precise_decimal"
    }

    // Displayed like its argument, since names of results are derived from it.
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map_or_else(|| self.name().to_owned(), |value| value.schema_name().to_string()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [decimal] => Ok(decimal.clone()),
            _ => exec_err!("precise_decimal takes one argument"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else { return exec_err!("precise_decimal takes one argument") };
        match &value {
            ColumnarValue::Array(values) => check_digits(values)?,
            ColumnarValue::Scalar(value) => check_digits(&value.to_array()?)?,
        }
        Ok(value)
    }
}
