//! `start_of_day(date)`: the instant at which a date begins in the zone of the session, which PostgreSQL takes for a date where a
//! function has a form for `timestamp with time zone`. A cast of the engine would fail for a midnight that clocks of the zone skip.
//!
//! The instant is in UTC. The rule `local_times` gives it the zone of the session.

use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::DateTime;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::local_arithmetic::instant_of;

/// The zone of the result.
const UTC: &str = "UTC";

/// The function.
pub(crate) fn start_of_day() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::exact(vec![DataType::Date32], Volatility::Stable);
        Arc::new(ScalarUDF::new_from_impl(StartOfDay { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct StartOfDay {
    signature: Signature,
}

impl ScalarUDFImpl for StartOfDay {
    fn name(&self) -> &'static str {
        "start_of_day"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [dates] = arguments.args.as_slice() else { return plan_err!("start_of_day takes a date") };
        let zone = arguments.config_options.execution.time_zone.as_deref().filter(|zone| !zone.is_empty());
        let zone: Tz = zone.unwrap_or(UTC).parse()?;
        let constant = matches!(dates, ColumnarValue::Scalar(_));
        let dates = dates.to_array(if constant { 1 } else { arguments.number_rows })?;
        let start = |day: i32| {
            let midnight = DateTime::from_timestamp(i64::from(day) * 86_400, 0);
            let instant = midnight.and_then(|midnight| instant_of(midnight.naive_utc(), &zone));
            let instant = instant.map(|instant| instant.and_utc().timestamp_micros());
            instant.ok_or_else(|| ArrowError::ComputeError("a date is beyond the representable range".to_owned()))
        };
        let starts: TimestampMicrosecondArray =
            dates.as_primitive::<Date32Type>().try_unary::<_, TimestampMicrosecondType, _>(start)?;
        let starts = starts.with_timezone(UTC);
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&starts, 0)?)),
            false => Ok(ColumnarValue::Array(Arc::new(starts))),
        }
    }
}
