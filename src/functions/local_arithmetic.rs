//! An instant plus or minus an interval, by the clocks of the instant's zone.
//!
//! The engine fails if the sum is a local time that clocks of the zone skip or show twice, so that one mention in the night of
//! a clock change ends the query. As in PostgreSQL, a sum whose local time is skipped is as much later as the clocks are set
//! forward, and the later of two instants is taken.

use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::types::{
    ArrowTimestampType, IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::compute::kernels::arity::try_binary;
use arrow::datatypes::{DataType, FieldRef, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;
use arrow::temporal_conversions::as_datetime;
use chrono::{MappedLocalTime, Months, NaiveDateTime, Offset, TimeDelta, TimeZone};
use datafusion::common::{Result, exec_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function `plus_interval(instant, interval)`.
pub(crate) fn plus_interval() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| LocalArithmetic::udf("plus_interval", 1));
    Arc::clone(&FUNCTION)
}

/// The function `minus_interval(instant, interval)`.
pub(crate) fn minus_interval() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| LocalArithmetic::udf("minus_interval", -1));
    Arc::clone(&FUNCTION)
}

/// The instant, in UTC, at which clocks of a zone show a local time. Of two instants, the later one: it is in standard time. A
/// local time that the clocks skip is read as if they had not been set forward yet. `None` beyond the representable range.
pub(crate) fn instant_of(local: NaiveDateTime, zone: &impl TimeZone) -> Option<NaiveDateTime> {
    let offset = match zone.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(offset) | MappedLocalTime::Ambiguous(_, offset) => offset,
        MappedLocalTime::None => {
            let before = local.checked_sub_signed(TimeDelta::hours(3))?;
            zone.offset_from_local_datetime(&before).earliest()?
        }
    };
    local.checked_sub_offset(offset.fix())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LocalArithmetic {
    name: &'static str,
    /// 1 for a sum, -1 for a difference.
    sign: i32,
    signature: Signature,
}

impl LocalArithmetic {
    fn udf(name: &'static str, sign: i32) -> Arc<ScalarUDF> {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { name, sign, signature }))
    }
}

impl ScalarUDFImpl for LocalArithmetic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [instant @ DataType::Timestamp(_, Some(_)), DataType::Interval(_)] => Ok(instant.clone()),
            _ => exec_err!("{} expects an instant and an interval", self.name),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let sums = |args: &[ArrayRef]| {
            let [instants, intervals] = args else {
                return exec_err!("{} expects an instant and an interval", self.name);
            };
            let intervals = cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let intervals = intervals.as_primitive();
            let DataType::Timestamp(unit, Some(zone)) = instants.data_type() else {
                return exec_err!("{} expects an instant, not {}", self.name, instants.data_type());
            };
            match unit {
                TimeUnit::Second => shifted::<TimestampSecondType>(instants, intervals, self.sign, zone),
                TimeUnit::Millisecond => shifted::<TimestampMillisecondType>(instants, intervals, self.sign, zone),
                TimeUnit::Microsecond => shifted::<TimestampMicrosecondType>(instants, intervals, self.sign, zone),
                TimeUnit::Nanosecond => shifted::<TimestampNanosecondType>(instants, intervals, self.sign, zone),
            }
        };
        make_scalar_function(sums, Vec::new())(&args.args)
    }
}

fn shifted<T: ArrowTimestampType>(
    instants: &ArrayRef,
    intervals: &PrimitiveArray<IntervalMonthDayNanoType>,
    sign: i32,
    zone: &Arc<str>,
) -> Result<ArrayRef> {
    let tz: Tz = zone.parse()?;
    let shifted: PrimitiveArray<T> = try_binary(instants.as_primitive::<T>(), intervals, |instant, interval| {
        as_datetime::<T>(instant)
            .and_then(|instant| shift(instant, interval, sign, &tz))
            .and_then(|instant| T::from_naive_datetime(instant, None))
            .ok_or_else(|| ArrowError::ComputeError("a time is beyond the representable range".to_owned()))
    })?;
    Ok(Arc::new(shifted.with_timezone(Arc::clone(zone))))
}

/// Shifts an instant in UTC by the months and days of an interval on the clocks of a zone, and then by the rest of it.
pub(super) fn shift(
    instant: NaiveDateTime,
    interval: IntervalMonthDayNano,
    sign: i32,
    zone: &Tz,
) -> Option<NaiveDateTime> {
    let (months, days) = (interval.months.checked_mul(sign)?, interval.days.checked_mul(sign)?);
    let nanoseconds = interval.nanoseconds.checked_mul(i64::from(sign))?;
    let instant = if months == 0 && days == 0 {
        instant
    } else {
        let local = zone.from_utc_datetime(&instant).naive_local();
        instant_of(add(local, IntervalMonthDayNano::new(months, days, 0))?, zone)?
    };
    instant.checked_add_signed(TimeDelta::nanoseconds(nanoseconds))
}

/// Adds the months, the days and the rest of an interval to a local time.
pub(super) fn add(local: NaiveDateTime, interval: IntervalMonthDayNano) -> Option<NaiveDateTime> {
    let count = Months::new(interval.months.unsigned_abs());
    let local = if interval.months < 0 { local.checked_sub_months(count) } else { local.checked_add_months(count) }?;
    let local = local.checked_add_signed(TimeDelta::days(i64::from(interval.days)))?;
    local.checked_add_signed(TimeDelta::nanoseconds(interval.nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    /// Sums that PostgreSQL 15 has in the zone Europe/Berlin.
    #[test]
    fn clocks_that_are_set_forward_or_back() {
        let zone: Tz = "Europe/Berlin".parse().expect("a zone");
        let day = IntervalMonthDayNano::new(0, 1, 0);
        let cases = [
            ("2026-03-28T01:30:00", day, 1, "2026-03-29T01:30:00"),
            ("2026-03-28T12:00:00", day, 1, "2026-03-29T11:00:00"),
            ("2026-03-30T00:30:00", day, -1, "2026-03-29T01:30:00"),
            ("2026-10-24T00:30:00", day, 1, "2026-10-25T01:30:00"),
            ("2026-10-26T01:30:00", day, -1, "2026-10-25T01:30:00"),
            ("2026-03-28T12:00:00", IntervalMonthDayNano::new(0, 0, 86_400_000_000_000), 1, "2026-03-29T12:00:00"),
            ("2026-01-31T12:00:00", IntervalMonthDayNano::new(1, 0, 0), 1, "2026-02-28T12:00:00"),
            ("2026-02-28T01:30:00", IntervalMonthDayNano::new(1, 1, 3_600_000_000_000), 1, "2026-03-29T02:30:00"),
        ];
        each(cases, |(instant, interval, sign, expected)| {
            let shifted = shift(instant.parse().expect(instant), interval, sign, &zone).expect(instant);
            assert_eq!(shifted, expected.parse::<NaiveDateTime>().expect(expected), "{instant} {interval:?} × {sign}");
        });
    }
}
