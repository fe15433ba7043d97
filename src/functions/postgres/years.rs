//! `postgres_years(length, time)`: the decade, century or millennium of a time, or the number of them in an interval.
//!
//! Centuries and millennia of times begin with the year 1, and there is none with the number 0. Those of intervals are whole ones,
//! as other fields of intervals are. Source: PostgreSQL documentation, "EXTRACT, date_part".

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::{DataType, Float64Type, Int32Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::interval::intervals;

/// See the module's documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Years {
    signature: Signature,
}

impl Years {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::user_defined(Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for Years {
    fn name(&self) -> &'static str {
        "postgres_years"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let time = match given {
            [_, DataType::Null] => DataType::Timestamp(TimeUnit::Microsecond, None),
            [
                _,
                time @ (DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
                | DataType::Interval(_)
                | DataType::Duration(_)),
            ] => time.clone(),
            _ => return plan_err!("wrong types of arguments for `extract`: it takes a date, a time or an interval"),
        };
        Ok(vec![DataType::Int32, time])
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(ScalarValue::Int32(Some(length @ (10 | 100 | 1_000)))), time] =
            arguments.args.as_slice()
        else {
            return plan_err!("postgres_years takes 10, 100 or 1000, and a time");
        };
        let constant = matches!(time, ColumnarValue::Scalar(_));
        let times = time.to_array(if constant { 1 } else { arguments.number_rows })?;
        let spans = spans_of(&times, *length)?;
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&spans, 0)?)),
            false => Ok(ColumnarValue::Array(Arc::new(spans))),
        }
    }
}

fn spans_of(times: &ArrayRef, length: i32) -> Result<Float64Array> {
    if matches!(times.data_type(), DataType::Interval(_) | DataType::Duration(_)) {
        let spans = cast(&intervals(times)?, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let spans = spans.as_primitive::<IntervalMonthDayNanoType>();
        return Ok(spans.unary::<_, Float64Type>(|span| f64::from(span.months / 12 / length)));
    }
    let years = date_part(times, DatePart::Year)?;
    Ok(years.as_primitive::<Int32Type>().unary::<_, Float64Type>(|year| f64::from(span_of(year, length))))
}

/// The span of years of this length that has a year of the calendar with a year 0.
fn span_of(year: i32, length: i32) -> i32 {
    match year {
        _ if length == 10 => year.div_euclid(10),
        1.. => year.saturating_add(length - 1) / length,
        _ => -(length.saturating_sub(year) / length),
    }
}

#[cfg(test)]
mod tests {
    use super::span_of;
    use crate::cases::each;

    /// Values of PostgreSQL 15, for 2026, 2000, 2001, 1 BC, 100 BC and 101 BC.
    #[test]
    fn spans_of_years_are_those_of_postgresql() {
        let cases = [
            (2026, [202, 21, 3]),
            (2000, [200, 20, 2]),
            (2001, [200, 21, 3]),
            (0, [0, -1, -1]),
            (-99, [-10, -1, -1]),
            (-100, [-10, -2, -1]),
        ];
        each(cases, |(year, expected)| {
            assert_eq!([10, 100, 1_000].map(|length| span_of(year, length)), expected, "{year}");
        });
    }
}
