//! `timezone(zone, time)`, which `time AT TIME ZONE zone` becomes.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::types::{
    ArrowTimestampType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, new_null_array};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use chrono::DateTime;
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility, cast};

use crate::functions::instant_of;

/// The zone of instants.
pub(super) const UTC: &str = "UTC";

/// `timezone(zone, time)`, the function behind `AT TIME ZONE`: a time with a zone becomes the local time in `zone`, one
/// without becomes the instant at which it is that time in `zone`. The former is replaced by a cast when a plan is
/// optimized. The latter is not: a cast fails for a time that a clock change repeats or skips; PostgreSQL uses the standard
/// time.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TimeZone {
    signature: Signature,
}

impl TimeZone {
    pub(super) const NAME: &str = "timezone";

    pub(super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TimeZone {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [_, time] = given else { return plan_err!("timezone takes a time zone and a time") };
        let time = match time {
            DataType::Timestamp(..) => time.clone(),
            // A date is an instant, its first one.
            _ => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        };
        Ok(vec![DataType::Utf8, time])
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given {
            [_, DataType::Timestamp(unit, Some(_))] => Ok(DataType::Timestamp(*unit, None)),
            [_, DataType::Timestamp(unit, None)] => Ok(DataType::Timestamp(*unit, Some(UTC.into()))),
            other => plan_err!("timezone takes a time zone and a time, not {other:?}"),
        }
    }

    fn simplify(&self, arguments: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(zone, _), time] = arguments.as_slice() else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        let (Some(Some(zone)), DataType::Timestamp(unit, known)) = (zone.try_as_str(), info.get_data_type(time)?)
        else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        if known.is_none() {
            return Ok(ExprSimplifyResult::Original(arguments));
        }
        let there = cast(time.clone(), DataType::Timestamp(unit, Some(zone.into())));
        Ok(ExprSimplifyResult::Simplified(to_local_time().call(vec![there])))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(zone), time] = arguments.args.as_slice() else {
            return plan_err!("AT TIME ZONE requires a constant time zone name: '…'");
        };
        let DataType::Timestamp(unit, None) = time.data_type() else {
            return plan_err!("AT TIME ZONE requires a constant time zone name: '…'");
        };
        let times = time.to_array(arguments.number_rows)?;
        let Some(zone) = zone.try_as_str().flatten() else {
            return Ok(ColumnarValue::Array(new_null_array(arguments.return_type(), times.len())));
        };
        let zone: Tz = zone.parse()?;
        let instants = match unit {
            TimeUnit::Second => instants::<TimestampSecondType>(&times, zone, 1),
            TimeUnit::Millisecond => instants::<TimestampMillisecondType>(&times, zone, 1_000),
            TimeUnit::Microsecond => instants::<TimestampMicrosecondType>(&times, zone, 1_000_000),
            TimeUnit::Nanosecond => instants::<TimestampNanosecondType>(&times, zone, 1_000_000_000),
        }?;
        match time {
            ColumnarValue::Scalar(_) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&instants, 0)?)),
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(instants)),
        }
    }
}

/// The instants at which it is these times in a zone.
fn instants<T: ArrowTimestampType>(times: &ArrayRef, zone: Tz, second: i64) -> Result<ArrayRef> {
    let beyond = || ArrowError::ComputeError("a time with a zone is beyond the representable range".to_owned());
    let instant = |time: i64| {
        let local = DateTime::from_timestamp(time.div_euclid(second), 0).ok_or_else(beyond)?.naive_utc();
        let ahead = (local - instant_of(local, &zone).ok_or_else(beyond)?).num_seconds() * second;
        time.checked_sub(ahead).ok_or_else(beyond)
    };
    let instants: PrimitiveArray<T> = times.as_primitive::<T>().try_unary(instant)?;
    Ok(Arc::new(instants.with_timezone(UTC)))
}
