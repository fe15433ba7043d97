//! Intervals in the form in which the engine compares them correctly.
//!
//! The engine compares months, then days, then nanoseconds, so that 25 hours are less than a day. As in PostgreSQL, a day
//! has 24 hours and a month 30 days. [`comparable_interval`] turns an interval into days and a remainder of less than a day.
//! Equal intervals then have the same form, and the engine orders intervals by their length. A negative interval has
//! negative days and a positive remainder. Intervals within arrays and rows are turned likewise.

use std::sync::{Arc, LazyLock};

use arrow::array::types::{
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType, IntervalDayTime,
    IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalYearMonthType,
};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeListArray, LargeListArray, ListArray, PrimitiveArray,
    StructArray,
};
use arrow::datatypes::{DataType, FieldRef, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The type of the comparable form.
const COMPARABLE: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;
/// Days of a month.
const MONTH: i128 = 30;

/// The function `comparable_interval(x)` of an interval or a duration.
pub(crate) fn comparable_interval() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Comparable { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Comparable {
    signature: Signature,
}

impl ScalarUDFImpl for Comparable {
    fn name(&self) -> &'static str {
        "comparable_interval"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Duration(_)] => Ok(COMPARABLE),
            [other] if has_interval(other) => Ok(comparable_type(other)),
            _ => exec_err!("comparable_interval expects an interval"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [interval] = args.args.as_slice() else { return exec_err!("comparable_interval expects an interval") };
        let comparable = comparable(&interval.to_array(1)?)?;
        Ok(match interval {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&comparable, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(comparable),
        })
    }
}

/// True for the type of intervals, and of arrays and rows that contain some.
pub(crate) fn has_interval(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(_) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_interval(item.data_type())
        }
        DataType::Struct(members) => members.iter().any(|member| has_interval(member.data_type())),
        _ => false,
    }
}

/// The type of values of such a type in their comparable form.
fn comparable_type(data_type: &DataType) -> DataType {
    let field = |field: &FieldRef| {
        let of_field = comparable_type(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(of_field))
    };
    match data_type {
        DataType::Interval(_) => COMPARABLE,
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(members) => DataType::Struct(members.iter().map(field).collect()),
        other => other.clone(),
    }
}

fn comparable(intervals: &ArrayRef) -> Result<ArrayRef> {
    match (intervals.data_type(), comparable_type(intervals.data_type())) {
        (DataType::List(_), DataType::List(item)) => {
            let (_, offsets, values, nulls) = intervals.as_list::<i32>().clone().into_parts();
            Ok(Arc::new(ListArray::try_new(item, offsets, comparable(&values)?, nulls)?))
        }
        (DataType::LargeList(_), DataType::LargeList(item)) => {
            let (_, offsets, values, nulls) = intervals.as_list::<i64>().clone().into_parts();
            Ok(Arc::new(LargeListArray::try_new(item, offsets, comparable(&values)?, nulls)?))
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, size)) => {
            let (_, _, values, nulls) = intervals.as_fixed_size_list().clone().into_parts();
            Ok(Arc::new(FixedSizeListArray::try_new(item, size, comparable(&values)?, nulls)?))
        }
        (DataType::Struct(_), DataType::Struct(members)) => {
            let (_, columns, nulls) = intervals.as_struct().clone().into_parts();
            let each = |column: &ArrayRef| match has_interval(column.data_type()) {
                true => comparable(column),
                false => Ok(Arc::clone(column)),
            };
            let columns = columns.iter().map(each).collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new(members, columns, nulls)?))
        }
        (DataType::Interval(_) | DataType::Duration(_), _) => comparable_lengths(intervals),
        _ => Ok(Arc::clone(intervals)),
    }
}

fn comparable_lengths(intervals: &ArrayRef) -> Result<ArrayRef> {
    let duration = |unit: i128| move |value: i64| normal(i128::from(value) * unit);
    Ok(match intervals.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            mapped::<IntervalMonthDayNanoType>(intervals, |IntervalMonthDayNano { months, days, nanoseconds }| {
                normal((i128::from(months) * MONTH + i128::from(days)) * DAY + i128::from(nanoseconds))
            })?
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            mapped::<IntervalDayTimeType>(intervals, |IntervalDayTime { days, milliseconds }| {
                normal(i128::from(days) * DAY + i128::from(milliseconds) * 1_000_000)
            })?
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            mapped::<IntervalYearMonthType>(intervals, |months| normal(i128::from(months) * MONTH * DAY))?
        }
        DataType::Duration(TimeUnit::Second) => mapped::<DurationSecondType>(intervals, duration(1_000_000_000))?,
        DataType::Duration(TimeUnit::Millisecond) => mapped::<DurationMillisecondType>(intervals, duration(1_000_000))?,
        DataType::Duration(TimeUnit::Microsecond) => mapped::<DurationMicrosecondType>(intervals, duration(1_000))?,
        DataType::Duration(TimeUnit::Nanosecond) => mapped::<DurationNanosecondType>(intervals, duration(1))?,
        other => return exec_err!("comparable_interval expects an interval, not {other}"),
    })
}

fn mapped<T: ArrowPrimitiveType>(
    intervals: &ArrayRef,
    each: impl Fn(T::Native) -> Result<IntervalMonthDayNano, ArrowError>,
) -> Result<ArrayRef> {
    let mapped: PrimitiveArray<IntervalMonthDayNanoType> = intervals.as_primitive::<T>().try_unary(each)?;
    Ok(Arc::new(mapped))
}

/// The comparable form of an interval of this many nanoseconds.
fn normal(nanoseconds: i128) -> Result<IntervalMonthDayNano, ArrowError> {
    let (days, rest) = (nanoseconds.div_euclid(DAY), nanoseconds.rem_euclid(DAY));
    match (i32::try_from(days), i64::try_from(rest)) {
        (Ok(days), Ok(rest)) => Ok(IntervalMonthDayNano::new(0, days, rest)),
        _ => Err(ArrowError::ComputeError("an interval is too long to be compared".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lengths_are_the_same_and_the_order_is_that_of_lengths() {
        let hours = |hours: i64| IntervalMonthDayNano::new(0, 0, hours * 3_600_000_000_000);
        // From the shortest to the longest, with equal ones in one group.
        let groups = [
            vec![hours(-25)],
            vec![IntervalMonthDayNano::new(0, -1, 0), hours(-24)],
            vec![hours(-1)],
            vec![hours(0)],
            vec![hours(23)],
            vec![IntervalMonthDayNano::new(0, 1, 0), hours(24), IntervalMonthDayNano::new(0, 2, -86_400_000_000_000)],
            vec![hours(25)],
            vec![IntervalMonthDayNano::new(1, 0, 0), IntervalMonthDayNano::new(0, 30, 0), hours(720)],
            vec![IntervalMonthDayNano::new(0, 31, 0)],
        ];
        let comparable: Vec<Vec<IntervalMonthDayNano>> = groups
            .iter()
            .map(|group| {
                let array: ArrayRef = Arc::new(PrimitiveArray::<IntervalMonthDayNanoType>::from(group.clone()));
                comparable(&array).expect("short").as_primitive::<IntervalMonthDayNanoType>().values().to_vec()
            })
            .collect();
        for group in &comparable {
            assert!(group.windows(2).all(|pair| pair[0] == pair[1]), "{group:?}");
        }
        assert!(comparable.windows(2).all(|pair| pair[0][0] < pair[1][0]), "{comparable:?}");
    }
}
