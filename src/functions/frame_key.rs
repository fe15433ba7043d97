//! `frame_key(instant, distance, …)`: the local time of an instant, by which a window with a frame by RANGE is sorted.
//!
//! The engine adds days and months to the local time of an instant. If the sum is a local time that clocks skip or show twice, it
//! takes the end of the partition instead, for that row and all that follow. Local times themselves can be added to and compared,
//! and have the order of their instants, except near a change of clocks. There, this function is an error.

use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::types::{
    ArrowTimestampType, IntervalMonthDayNano, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use arrow::temporal_conversions::as_datetime;
use chrono::{MappedLocalTime, NaiveDateTime, TimeZone};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::local_arithmetic::{add, shift};
use crate::error::{Error, ErrorKind};

/// The function. Its distances are those of the bounds of the frame, negative ones towards the past.
pub(crate) fn frame_key() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(FrameKey { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FrameKey {
    signature: Signature,
}

impl ScalarUDFImpl for FrameKey {
    fn name(&self) -> &'static str {
        "frame_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Timestamp(unit, Some(_)), ..] => Ok(DataType::Timestamp(*unit, None)),
            _ => exec_err!("frame_key expects an instant"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [instants, distances @ ..] = args.args.as_slice() else { return exec_err!("frame_key expects an instant") };
        let distance = |arg: &ColumnarValue| match arg {
            ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(distance))) => Ok(*distance),
            _ => exec_err!("frame_key expects distances"),
        };
        let distances = distances.iter().map(distance).collect::<Result<Vec<_>>>()?;
        let array = instants.to_array(1)?;
        let DataType::Timestamp(unit, Some(zone)) = array.data_type() else {
            return exec_err!("frame_key expects an instant, not {}", array.data_type());
        };
        let keys = match unit {
            TimeUnit::Second => keys::<TimestampSecondType>(&array, &distances, zone),
            TimeUnit::Millisecond => keys::<TimestampMillisecondType>(&array, &distances, zone),
            TimeUnit::Microsecond => keys::<TimestampMicrosecondType>(&array, &distances, zone),
            TimeUnit::Nanosecond => keys::<TimestampNanosecondType>(&array, &distances, zone),
        }?;
        Ok(match instants {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&keys, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(keys),
        })
    }
}

fn keys<T: ArrowTimestampType>(
    instants: &ArrayRef,
    distances: &[IntervalMonthDayNano],
    zone: &Arc<str>,
) -> Result<ArrayRef> {
    let tz: Tz = zone.parse()?;
    let near = |instant: i64| {
        let local = as_datetime::<T>(instant).map(|instant| tz.from_utc_datetime(&instant).naive_local());
        let local = local.map_or_else(|| instant.to_string(), |local| local.to_string());
        let message = format!("a frame by RANGE with days or months meets a change of clocks in {zone}, from {local}");
        Error::new(ErrorKind::Unsupported, message).advice(
            "write hours, as in INTERVAL '24 hours', or sort by local times, as in ORDER BY published_at::timestamp",
        )
    };
    let keys: PrimitiveArray<T> = instants.as_primitive::<T>().try_unary(|instant| {
        let key = as_datetime::<T>(instant).and_then(|instant| key(instant, distances, &tz));
        key.and_then(|key| T::from_naive_datetime(key, None)).ok_or_else(|| near(instant))
    })?;
    Ok(Arc::new(keys))
}

/// The local time of an instant in UTC; `None` if clocks show it twice, or if they skip the sum of it and a distance, show the sum
/// twice, or show another time at the sum.
fn key(instant: NaiveDateTime, distances: &[IntervalMonthDayNano], zone: &Tz) -> Option<NaiveDateTime> {
    let shown = |instant: NaiveDateTime| {
        let local = zone.from_utc_datetime(&instant).naive_local();
        let once = matches!(zone.offset_from_local_datetime(&local), MappedLocalTime::Single(_));
        once.then_some(local)
    };
    let local = shown(instant)?;
    let fits = |distance: &IntervalMonthDayNano| {
        let there = shift(instant, *distance, 1, zone).and_then(shown);
        there.is_some() && there == add(local, *distance)
    };
    distances.iter().all(fits).then_some(local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn local_times_are_keys_except_near_a_change_of_clocks() {
        let zone: Tz = "Europe/Berlin".parse().expect("a zone");
        let (day, month) = (IntervalMonthDayNano::new(0, 1, 0), IntervalMonthDayNano::new(1, 0, 0));
        let back = IntervalMonthDayNano::new(0, -1, 0);
        let hour = IntervalMonthDayNano::new(0, 1, 3_600_000_000_000);
        let cases = [
            ("2026-03-28T12:00:00", day, Some("2026-03-28T13:00:00")),
            ("2026-03-28T01:30:00", day, None),
            ("2026-03-30T00:30:00", back, None),
            ("2026-10-24T00:30:00", day, None),
            ("2026-10-24T01:30:00", day, Some("2026-10-24T03:30:00")),
            ("2026-10-25T00:30:00", day, None),
            ("2026-10-26T01:30:00", back, None),
            ("2026-01-31T12:00:00", month, Some("2026-01-31T13:00:00")),
            // An hour before the change on the next day, and an hour after it.
            ("2026-03-28T00:30:00", hour, None),
            ("2026-03-27T00:30:00", hour, Some("2026-03-27T01:30:00")),
        ];
        each(cases, |(instant, distance, right)| {
            let found = key(instant.parse().expect(instant), &[distance], &zone);
            assert_eq!(found, right.map(|right| right.parse().expect(right)), "{instant} {distance:?}");
        });
    }
}
