//! `rounded_time(time, microseconds)`: a time rounded to a multiple of this many microseconds.
//!
//! The engine drops the digits that a type such as `timestamp(0)` does not have, and those of a time before 1970 in the other
//! direction. The SQL standard leaves this to the implementation; PostgreSQL and DuckDB round. As there, a half is rounded away from
//! the beginning of 2000.

use std::sync::{Arc, LazyLock};

use arrow::array::types::TimestampMicrosecondType;
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The beginning of 2000, in microseconds since 1970.
const BEGINNING: i64 = 946_684_800_000_000;

/// The function.
pub(crate) fn rounded_time() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(RoundedTime { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RoundedTime {
    signature: Signature,
}

impl ScalarUDFImpl for RoundedTime {
    fn name(&self) -> &'static str {
        "rounded_time"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Timestamp(_, zone), _] => Ok(DataType::Timestamp(TimeUnit::Microsecond, zone.clone())),
            _ => exec_err!("rounded_time expects a timestamp and a number"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times, ColumnarValue::Scalar(ScalarValue::Int64(Some(step @ 1..)))] = args.args.as_slice() else {
            return exec_err!("rounded_time expects a timestamp and a number");
        };
        let rounded = rounded(&times.to_array(1)?, *step, args.return_field.data_type())?;
        Ok(match times {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&rounded, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(rounded),
        })
    }
}

fn rounded(times: &ArrayRef, step: i64, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let times = cast(times, to)?;
    let out_of_range = || ArrowError::ComputeError("timestamp out of range".to_owned());
    let round = |time: i64| {
        let (time, step) = (i128::from(time) - i128::from(BEGINNING), i128::from(step));
        let steps = (time.abs() + step / 2) / step * time.signum();
        i64::try_from(steps * step + i128::from(BEGINNING)).map_err(|_| out_of_range())
    };
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let rounded: PrimitiveArray<TimestampMicrosecondType> = times.try_unary(round)?;
    Ok(Arc::new(rounded.with_data_type(to.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_rounded_away_from_2000() {
        let at = |text: &str| text.parse::<chrono::DateTime<chrono::Utc>>().expect("an instant").timestamp_micros();
        let times =
            ["2026-06-30T23:59:59.7Z", "2026-07-01T12:00:00.5Z", "1969-12-31T23:59:59.5Z", "1969-12-31T23:59:58.6Z"];
        let right = ["2026-07-01T00:00:00Z", "2026-07-01T12:00:01Z", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"];
        let array: ArrayRef = Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from_iter_values(times.map(at)));
        let rounded = rounded(&array, 1_000_000, &DataType::Timestamp(TimeUnit::Microsecond, None)).expect("in range");
        assert_eq!(rounded.as_primitive::<TimestampMicrosecondType>().values().to_vec(), right.map(at));
    }
}
