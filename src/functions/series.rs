//! Series of times: `generate_series` and `range` with an interval.
//!
//! The engine ends a series without an error if its next value is a local time that clocks of the zone skip or show twice: a
//! calendar of March then has no April. It also takes a step with a negative part, such as a month less a day, for a step
//! backwards. As in PostgreSQL, each value here is the one before plus the step, and the direction is that of the step's length.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::types::{IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampNanosecondType};
use arrow::array::{
    Array, ArrayRef, AsArray, ListBuilder, RecordBatch, TimestampNanosecondArray, TimestampNanosecondBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{ArrowTimestampType, DataType, Field, FieldRef, IntervalUnit, Schema, TimeUnit};
use arrow::temporal_conversions::as_datetime;
use datafusion::catalog::{MemTable, TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::local_arithmetic::shift;
use crate::error::{Error, ErrorKind};

/// Maximum values of a series in FROM.
const ROWS: usize = 1_000_000;
/// Maximum values of a series in a list.
const ITEMS: usize = 8_192;

/// The function `times_in_steps(first, last, step)` for `generate_series` of instants in a zone, with the last value, or for
/// `range`, without it.
pub(crate) fn times_in_steps(with_last: bool) -> Arc<ScalarUDF> {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| {
        [false, true].map(|with_last| {
            let signature = Signature::any(3, Volatility::Immutable);
            Arc::new(ScalarUDF::new_from_impl(TimesInSteps { with_last, signature }))
        })
    });
    Arc::clone(&FUNCTIONS[usize::from(with_last)])
}

/// Replaces the table functions of the engine, which are still called if they are right.
pub(crate) fn with_series(functions: &mut HashMap<String, Arc<TableFunction>>) {
    for (name, with_last) in [("range", false), ("generate_series", true)] {
        if let Some(engine) = functions.remove(name) {
            let series = Series { engine, with_last };
            functions.insert(name.to_owned(), Arc::new(TableFunction::new(name.to_owned(), Arc::new(series))));
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimesInSteps {
    with_last: bool,
    signature: Signature,
}

impl ScalarUDFImpl for TimesInSteps {
    fn name(&self) -> &'static str {
        if self.with_last { "times_in_steps" } else { "times_in_steps_before" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Timestamp(_, zone), DataType::Timestamp(..), DataType::Interval(_)] => {
                Ok(DataType::List(Arc::new(Field::new_list_field(times(zone.clone()), true))))
            }
            _ => exec_err!("a series of times expects two instants and an interval"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = |args: &[ArrayRef]| {
            let [first, last, step] = args else {
                return exec_err!("a series of times expects two instants and an interval");
            };
            let zone = match first.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                other => return exec_err!("a series of times expects instants, not {other}"),
            };
            let tz = parsed(zone.as_ref())?;
            let (first, last) = (cast(first, &times(zone.clone()))?, cast(last, &times(zone.clone()))?);
            let step = cast(step, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let (first, last) =
                (first.as_primitive::<TimestampNanosecondType>(), last.as_primitive::<TimestampNanosecondType>());
            let step = step.as_primitive::<IntervalMonthDayNanoType>();
            let mut lists = ListBuilder::new(TimestampNanosecondBuilder::new().with_timezone_opt(zone));
            for row in 0..first.len() {
                if first.is_null(row) || last.is_null(row) || step.is_null(row) {
                    lists.append_null();
                    continue;
                }
                let ends = (first.value(row), last.value(row));
                lists.append_value(in_steps(ends, step.value(row), self.with_last, tz, ITEMS)?.into_iter().map(Some));
            }
            Ok(Arc::new(lists.finish()) as ArrayRef)
        };
        make_scalar_function(lists, Vec::new())(&args.args)
    }
}

#[derive(Debug)]
struct Series {
    engine: Arc<TableFunction>,
    with_last: bool,
}

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let Some(Times { ends, step, zone }) = Times::of(args.exprs()) else {
            return self.engine.create_table_provider_with_args(args);
        };
        let values = in_steps(ends, step, self.with_last, parsed(zone.as_ref())?, ROWS)?;
        let schema = Arc::new(Schema::new(vec![Field::new("value", times(zone.clone()), false)]));
        let values = TimestampNanosecondArray::from(values).with_timezone_opt(zone);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)])?;
        Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
    }
}

/// A series of times that the engine would end early, or not begin.
struct Times {
    /// First and last time, in nanoseconds since 1970.
    ends: (i64, i64),
    step: IntervalMonthDayNano,
    zone: Option<Arc<str>>,
}

impl Times {
    /// The series of these arguments; `None` for one that the engine returns completely.
    fn of(args: &[Expr]) -> Option<Self> {
        let value = |arg: &Expr| match arg {
            Expr::Literal(value, _) => Some(value.clone()),
            _ => None,
        };
        let [first, last, step] = args else { return None };
        let ScalarValue::IntervalMonthDayNano(Some(step)) = value(step)? else { return None };
        let (first, last) = (value(first)?, value(last)?);
        let zone = match first.data_type() {
            DataType::Timestamp(_, zone) => zone,
            DataType::Date32 => None,
            _ => return None,
        };
        let of_days = step.months != 0 || step.days != 0;
        let parts = [i64::from(step.months), i64::from(step.days), step.nanoseconds];
        let mixed = parts.iter().any(|part| *part < 0) && parts.iter().any(|part| *part > 0);
        if !mixed && (zone.is_none() || !of_days) {
            return None;
        }
        let nanoseconds = |of: ScalarValue| match of.cast_to(&times(zone.clone())).ok()? {
            ScalarValue::TimestampNanosecond(value, _) => value,
            _ => None,
        };
        Some(Self { ends: (nanoseconds(first)?, nanoseconds(last)?), step, zone })
    }
}

/// The times from the first to the last one, in nanoseconds since 1970.
fn in_steps(
    (first, last): (i64, i64),
    step: IntervalMonthDayNano,
    with_last: bool,
    zone: Tz,
    most: usize,
) -> Result<Vec<i64>> {
    const DAY: i128 = 86_400_000_000_000;
    let days = i128::from(step.months) * 30 + i128::from(step.days);
    let forward = match days * DAY + i128::from(step.nanoseconds) {
        0 => return plan_err!("the step of a series cannot be zero"),
        length => length > 0,
    };
    let mut values = Vec::new();
    let mut at = first;
    while (with_last && at == last) || (if forward { at < last } else { at > last }) {
        if values.len() == most {
            let message = format!("a series of times has more than {most} values");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .advice("use a longer step, or ends that are closer")
                .into());
        }
        values.push(at);
        let next = as_datetime::<TimestampNanosecondType>(at)
            .and_then(|at| shift(at, step, 1, &zone))
            .and_then(|at| TimestampNanosecondType::from_naive_datetime(at, None));
        match next {
            Some(next) => at = next,
            None => return exec_err!("a series of times goes beyond the representable range"),
        }
    }
    Ok(values)
}

/// The type of the times of a series.
fn times(zone: Option<Arc<str>>) -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, zone)
}

fn parsed(zone: Option<&Arc<str>>) -> Result<Tz> {
    Ok(Tz::from_str(zone.map_or("+00:00", AsRef::as_ref))?)
}
