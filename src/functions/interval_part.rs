//! `interval_part(field, interval)`: a field of an interval, or of the difference of two times. The engine's `date_part` returns
//! totals: 190 minutes of `03:10:00`. As the SQL standard says, the minutes are those beside the hours: 10.
//!
//! The fields of days have no upper limit, and neither do hours of an interval that was written in hours. A year has 365.25
//! days and a month 30 in `epoch`, as in PostgreSQL.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::postgres::{Unit, intervals};

/// The function.
pub(crate) fn interval_part() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(IntervalPart { signature: Signature::any(2, Volatility::Immutable) }))
    });
    Arc::clone(&FUNCTION)
}

/// True for a field that the function computes.
pub(crate) fn has_interval_part(field: &str) -> bool {
    Part::named(field).is_some()
}

/// A field of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Unit(Unit),
    Quarter,
    Nanosecond,
    Epoch,
}

impl Part {
    fn named(field: &str) -> Option<Self> {
        let field = field.trim_matches(['\'', '"']).to_lowercase();
        Some(match field.as_str() {
            "epoch" => Self::Epoch,
            "qtr" | "quarter" => Self::Quarter,
            "nanosecond" | "nanoseconds" | "ns" => Self::Nanosecond,
            field => match Unit::named(field)? {
                // Of dates only.
                Unit::Week => return None,
                unit => Self::Unit(unit),
            },
        })
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Epoch => DataType::Float64,
            Self::Nanosecond => DataType::Int64,
            _ => DataType::Int32,
        }
    }

    fn of(self, interval: IntervalMonthDayNano) -> i64 {
        const MINUTE: i64 = 60_000_000_000;
        let (months, nanos) = (i64::from(interval.months), interval.nanoseconds);
        match self {
            Self::Unit(unit) => match unit {
                Unit::Millennium => months / 12_000,
                Unit::Century => months / 1_200,
                Unit::Decade => months / 120,
                Unit::Year => months / 12,
                Unit::Month => months % 12,
                Unit::Week => i64::from(interval.days) / 7,
                Unit::Day => i64::from(interval.days),
                Unit::Hour => nanos / (60 * MINUTE),
                Unit::Minute => nanos / MINUTE % 60,
                Unit::Second => nanos % MINUTE / 1_000_000_000,
                Unit::Millisecond => nanos % MINUTE / 1_000_000,
                Unit::Microsecond => nanos % MINUTE / 1_000,
            },
            Self::Quarter => months % 12 / 3 + 1,
            Self::Nanosecond => nanos % MINUTE,
            Self::Epoch => 0,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the result has double precision")]
fn epoch(interval: IntervalMonthDayNano) -> f64 {
    let years = f64::from(interval.months / 12) * 365.25;
    let days = years + f64::from(interval.months % 12) * 30.0 + f64::from(interval.days);
    // Whole seconds apart, so that their fraction stays exact.
    let (seconds, nanos) = (interval.nanoseconds / 1_000_000_000, interval.nanoseconds % 1_000_000_000);
    days * 86_400.0 + seconds as f64 + nanos as f64 / 1e9
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalPart {
    signature: Signature,
}

fn part_of(value: Option<&ScalarValue>) -> Result<Part> {
    match value.and_then(|value| value.try_as_str().flatten()).and_then(Part::named) {
        Some(part) => Ok(part),
        None => plan_err!("unknown field of an interval"),
    }
}

impl ScalarUDFImpl for IntervalPart {
    fn name(&self) -> &'static str {
        "interval_part"
    }

    // Displayed like the engine's, since names of results are derived from it.
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("date_part({})", args.join(",")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type depends on the field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let part = part_of(args.scalar_arguments.first().copied().flatten())?;
        let nullable = args.arg_fields.get(1).is_none_or(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), part.data_type(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(field), value] = args.args.as_slice() else {
            return plan_err!("interval_part takes a literal field and an interval");
        };
        let part = part_of(Some(field))?;
        let constant = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(if constant { 1 } else { args.number_rows })?;
        let values = cast(&intervals(&values)?, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let values = values.as_primitive::<IntervalMonthDayNanoType>();
        let parts: ArrayRef = match part {
            Part::Epoch => Arc::new(values.unary::<_, Float64Type>(epoch)),
            Part::Nanosecond => Arc::new(values.unary::<_, Int64Type>(|interval| part.of(interval))),
            _ => {
                let parts: PrimitiveArray<Int32Type> = values.try_unary(|interval| {
                    i32::try_from(part.of(interval))
                        .map_err(|_| ArrowError::ArithmeticOverflow("interval out of range".to_owned()))
                })?;
                Arc::new(parts)
            }
        };
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&parts, 0)?)),
            false => Ok(ColumnarValue::Array(parts)),
        }
    }
}
