//! Functions of PostgreSQL that the engine does not have, and operations that have another result in the engine.
//!
//! | function | |
//! | --- | --- |
//! | `age`, `justify_hours`, `justify_days`, `justify_interval` | intervals in months, days and time |
//! | `make_interval`, `make_timestamp`, `postgres_make_date` | values from their fields; the year -1 is 1 BC |
//! | `width_bucket` | number of a bucket, with buckets of equal width |
//! | `quote_literal`, `quote_nullable` | texts for SQL |
//! | `postgres_interval_multiply` | an interval times a number, with fractions of months and days |
//! | `postgres_divide`, `postgres_modulo` | of double precision, with an error for a division by zero |
//! | `postgres_round` | of double precision, half to even |
//!
//! Invariant: if an argument is NULL, the result is NULL, except for `quote_nullable`.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Float64Array, Int32Array, IntervalMonthDayNanoArray, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::can_cast_types;
use arrow::datatypes::{
    DataType, Date32Type, Field, FieldRef, Float64Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, TimeDelta};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions::math::round;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::cast::has_double_column;
use super::interval::{NotASpan, Span, intervals};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// A function: its name, the types of its arguments and of its result, and the computation.
#[derive(Debug)]
struct Listed {
    name: &'static str,
    takes: &'static [DataType],
    returns: DataType,
    compute: fn(&[ArrayRef]) -> Result<ArrayRef, ArrowError>,
}

static LISTED: [Listed; 14] = [
    Listed { name: "age", takes: &[TIMESTAMP, TIMESTAMP], returns: INTERVAL, compute: age },
    Listed { name: "justify_hours", takes: &[INTERVAL], returns: INTERVAL, compute: |of| justified(of, true, false) },
    Listed { name: "justify_days", takes: &[INTERVAL], returns: INTERVAL, compute: |of| justified(of, false, true) },
    Listed { name: "justify_interval", takes: &[INTERVAL], returns: INTERVAL, compute: |of| justified(of, true, true) },
    Listed {
        name: "make_interval",
        takes: &[
            DataType::Int64,
            DataType::Int64,
            DataType::Int64,
            DataType::Int64,
            DataType::Int64,
            DataType::Int64,
            DataType::Float64,
        ],
        returns: INTERVAL,
        compute: make_interval,
    },
    Listed {
        name: "postgres_make_date",
        takes: &[DataType::Int32, DataType::Int32, DataType::Int32],
        returns: DataType::Date32,
        compute: make_date,
    },
    Listed {
        name: "make_timestamp",
        takes: &[
            DataType::Int32,
            DataType::Int32,
            DataType::Int32,
            DataType::Int32,
            DataType::Int32,
            DataType::Float64,
        ],
        returns: TIMESTAMP,
        compute: make_timestamp,
    },
    Listed {
        name: "width_bucket",
        takes: &[DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int32],
        returns: DataType::Int32,
        compute: width_bucket,
    },
    Listed {
        name: "quote_literal",
        takes: &[DataType::Utf8],
        returns: DataType::Utf8,
        compute: |of| Ok(quoted(of, false)),
    },
    Listed {
        name: "quote_nullable",
        takes: &[DataType::Utf8],
        returns: DataType::Utf8,
        compute: |of| Ok(quoted(of, true)),
    },
    Listed {
        name: "postgres_interval_multiply",
        takes: &[INTERVAL, DataType::Float64],
        returns: INTERVAL,
        compute: |of| scaled(of, |part, factor| part * factor),
    },
    Listed {
        name: "postgres_interval_divide",
        takes: &[INTERVAL, DataType::Float64],
        returns: INTERVAL,
        compute: |of| {
            if of[1].as_primitive::<Float64Type>().iter().flatten().any(|divisor| divisor == 0.0) {
                return Err(ArrowError::DivideByZero);
            }
            scaled(of, |part, divisor| part / divisor)
        },
    },
    Listed {
        name: "postgres_divide",
        takes: &[DataType::Float64, DataType::Float64],
        returns: DataType::Float64,
        compute: |of| divided(of, |left, right| left / right),
    },
    Listed {
        name: "postgres_modulo",
        takes: &[DataType::Float64, DataType::Float64],
        returns: DataType::Float64,
        compute: |of| divided(of, |left, right| left % right),
    },
];

/// `postgres_round(value, numeric)`: double precision is rounded half to even, all other numbers half away from zero. The
/// second argument says that a number was written as numeric, which the engine has as double precision, unless a column is
/// of it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Round {
    signature: Signature,
}

impl ScalarUDFImpl for Round {
    fn name(&self) -> &str {
        "postgres_round"
    }

    // Displayed like the engine's, since names of results are derived from it.
    fn display_name(&self, arguments: &[Expr]) -> Result<String> {
        self.schema_name(arguments)
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(match arguments {
            [value, ..] => format!("round({})", value.schema_name()),
            [] => "round()".to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [value, _] => {
                let field: FieldRef = Arc::new(Field::new("value", value.clone(), true));
                let fields = fields_with_udf(&[field], round().as_ref())?;
                Ok(fields.iter().map(|field| field.data_type().clone()).chain([DataType::Boolean]).collect())
            }
            _ => plan_err!("wrong types of arguments for `round`"),
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        plan_err!("the field has the type")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let arguments = ReturnFieldArgs {
            arg_fields: &arguments.arg_fields[..1],
            scalar_arguments: &arguments.scalar_arguments[..1],
        };
        round().return_field_from_args(arguments)
    }

    fn simplify(&self, arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [value, Expr::Literal(ScalarValue::Boolean(Some(numeric)), _)] = arguments.as_slice() else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        let even = context.get_data_type(value)?.is_floating() && (!numeric || has_double_column(value, context)?);
        match (even, numeric) {
            (false, _) => Ok(ExprSimplifyResult::Simplified(round().call(vec![value.clone()]))),
            (true, true) => {
                let name = listed().into_iter().find(|function| function.name() == self.name());
                let call = name.map(|function| function.call(vec![value.clone(), lit(false)]));
                Ok(call.map_or(ExprSimplifyResult::Original(arguments), ExprSimplifyResult::Simplified))
            }
            (true, false) => Ok(ExprSimplifyResult::Original(arguments)),
        }
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let numeric = matches!(arguments.args.get(1), Some(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true)))));
        let value = arguments.args[0].clone();
        if numeric || value.data_type() != DataType::Float64 {
            arguments.args.truncate(1);
            arguments.arg_fields.truncate(1);
            return round().invoke_with_args(arguments);
        }
        let constant = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(arguments.number_rows)?;
        let rounded = values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even);
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&rounded, 0)?)),
            false => Ok(ColumnarValue::Array(Arc::new(rounded))),
        }
    }
}

/// All functions of this file.
pub(crate) fn listed() -> Vec<Arc<ScalarUDF>> {
    static FUNCTIONS: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
        (0..LISTED.len())
            .map(|at| {
                Arc::new(ScalarUDF::from(Postgres { at, signature: Signature::user_defined(Volatility::Immutable) }))
            })
            .chain([Arc::new(ScalarUDF::from(Round { signature: Signature::user_defined(Volatility::Immutable) }))])
            .collect()
    });
    FUNCTIONS.clone()
}

/// The function of this name.
pub(crate) fn listed_named(name: &str) -> Option<Arc<ScalarUDF>> {
    listed().into_iter().find(|function| function.name() == name)
}

/// A function by its place in the list.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Postgres {
    at: usize,
    signature: Signature,
}

impl ScalarUDFImpl for Postgres {
    fn name(&self) -> &str {
        LISTED[self.at].name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let Listed { name, takes, .. } = &LISTED[self.at];
        let fits = given.len() == takes.len()
            && given.iter().zip(*takes).all(|(given, takes)| {
                // A text is of any type, a number is not.
                let alike = given.is_null()
                    || given.is_string()
                    || given.is_temporal() == takes.is_temporal() && !(takes.is_string());
                alike && can_cast_types(given, takes)
            });
        match fits {
            // The engine has the difference of two times as a duration, whose cast to an interval has no days.
            true => {
                let keeps =
                    |given: &DataType, takes: &DataType| matches!(given, DataType::Duration(_)) && *takes == INTERVAL;
                let pairs = given.iter().zip(*takes);
                Ok(pairs.map(|(given, takes)| (if keeps(given, takes) { given } else { takes }).clone()).collect())
            }
            false => plan_err!("wrong types of arguments for `{name}`"),
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(LISTED[self.at].returns.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { arguments.number_rows };
        let array = |argument: &ColumnarValue| -> Result<ArrayRef> { Ok(intervals(&argument.to_array(rows)?)?) };
        let arrays = arguments.args.iter().map(array).collect::<Result<Vec<_>>>()?;
        let result = (LISTED[self.at].compute)(&arrays)?;
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

fn beyond(error: NotASpan) -> ArrowError {
    let line = match error {
        NotASpan::Syntax => "invalid interval",
        NotASpan::OutOfRange => "interval out of range",
    };
    ArrowError::ArithmeticOverflow(line.to_owned())
}

/// The values of each row, if none is NULL.
fn each_row<T>(
    arrays: &[ArrayRef],
    mut value: impl FnMut(usize) -> Result<T, ArrowError>,
) -> Result<Vec<Option<T>>, ArrowError> {
    let rows = arrays.first().map_or(0, |array| array.len());
    (0..rows)
        .map(|row| match arrays.iter().any(|array| array.is_null(row)) {
            true => Ok(None),
            false => value(row).map(Some),
        })
        .collect()
}

fn age(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let [later, earlier] = [0, 1].map(|at| arrays[at].as_primitive::<TimestampMicrosecondType>());
    let spans = each_row(arrays, |row| {
        let [later, earlier] = [later, earlier].map(|times| DateTime::from_timestamp_micros(times.value(row)));
        let out_of_range = || ArrowError::ArithmeticOverflow("timestamp out of range".to_owned());
        let (later, earlier) = later.zip(earlier).ok_or_else(out_of_range)?;
        between(later.naive_utc(), earlier.naive_utc()).value().map_err(beyond)
    })?;
    Ok(Arc::new(IntervalMonthDayNanoArray::from(spans)))
}

/// The difference of two times in months, days and time, all of one sign.
fn between(one: NaiveDateTime, other: NaiveDateTime) -> Span {
    let negative = one < other;
    let (from, to) = if negative { (one, other) } else { (other, one) };
    let months = (to.year() - from.year()) * 12 + i32::try_from(to.month()).unwrap_or(0)
        - i32::try_from(from.month()).unwrap_or(0);
    let days = i64::from(to.day()) - i64::from(from.day());
    let time = to.time().signed_duration_since(from.time()).num_microseconds().unwrap_or(0);
    let (mut months, mut days, mut micros) = (months, days, time);
    if micros < 0 {
        (days, micros) = (days - 1, micros + 86_400_000_000);
    }
    if days < 0 {
        // Of the month of the earlier time.
        let first = NaiveDate::from_ymd_opt(from.year(), from.month(), 1);
        let length = first.and_then(|first| Some((first.checked_add_months(Months::new(1))? - first).num_days()));
        (months, days) = (months - 1, days + length.unwrap_or(30));
    }
    let sign = if negative { -1 } else { 1 };
    Span { months: sign * months, days: sign * i32::try_from(days).unwrap_or(0), micros: i64::from(sign) * micros }
}

fn justified(arrays: &[ArrayRef], hours: bool, months: bool) -> Result<ArrayRef, ArrowError> {
    let spans = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let spans = spans.try_unary::<_, IntervalMonthDayNanoType, _>(|span: IntervalMonthDayNano| {
        let span = Span::of(span).justified(hours, months).ok_or(NotASpan::OutOfRange);
        span.and_then(Span::value).map_err(beyond)
    })?;
    Ok(Arc::new(spans))
}

fn make_interval(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let number = |at: usize, row: usize| arrays[at].as_primitive::<Int64Type>().value(row);
    let spans = each_row(arrays, |row| {
        let sum = |parts: &[(i64, i64)]| {
            parts.iter().try_fold(0_i64, |sum, (number, factor)| sum.checked_add(number.checked_mul(*factor)?))
        };
        let small = |number: Option<i64>| number.and_then(|number| i32::try_from(number).ok());
        let months = small(sum(&[(number(0, row), 12), (number(1, row), 1)]));
        let days = small(sum(&[(number(2, row), 7), (number(3, row), 1)]));
        let micros = sum(&[(number(4, row), 3_600_000_000), (number(5, row), 60_000_000)]);
        let seconds = Span { months: 0, days: 0, micros: 1_000_000 };
        let number = arrays[6].as_primitive::<Float64Type>().value(row);
        let seconds = seconds.scaled(|part| part * number).map_err(beyond)?;
        let span = months.zip(days).zip(micros).and_then(|((months, days), micros)| {
            Some(Span { months, days, micros: micros.checked_add(seconds.micros)? })
        });
        span.ok_or(NotASpan::OutOfRange).and_then(Span::value).map_err(beyond)
    })?;
    Ok(Arc::new(IntervalMonthDayNanoArray::from(spans)))
}

/// The year of the calendar that has a year 0: -1 is 1 BC, as PostgreSQL counts. `None` for 0.
fn astronomical(year: i32) -> Option<i32> {
    match year {
        0 => None,
        1.. => Some(year),
        _ => year.checked_add(1),
    }
}

/// The date of a year, a month and a day, which stand in a row of the first three arrays.
fn date_of(arrays: &[ArrayRef], row: usize) -> Result<NaiveDate, ArrowError> {
    let [year, month, day] = [0, 1, 2].map(|at| arrays[at].as_primitive::<Int32Type>().value(row));
    let date = astronomical(year).zip(u32::try_from(month).ok()).zip(u32::try_from(day).ok());
    let date = date.and_then(|((year, month), day)| NaiveDate::from_ymd_opt(year, month, day));
    date.ok_or_else(|| ArrowError::ParseError(format!("date field value out of range: {year}-{month:02}-{day:02}")))
}

fn make_date(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let dates = each_row(arrays, |row| Ok(Date32Type::from_naive_date(date_of(arrays, row)?)))?;
    Ok(Arc::new(Date32Array::from(dates)))
}

fn make_timestamp(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let times = each_row(arrays, |row| {
        let field = |at: usize| arrays[at].as_primitive::<Int32Type>().value(row);
        let second = arrays[5].as_primitive::<Float64Type>().value(row);
        let wrong = || ArrowError::ParseError("date field value out of range".to_owned());
        let small = |at: usize| u32::try_from(field(at)).map_err(|_| wrong());
        let midnight = date_of(arrays, row)?.and_hms_opt(small(3)?, small(4)?, 0).ok_or_else(wrong)?;
        if !(0.0..=60.0).contains(&second) {
            return Err(wrong());
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most a minute")]
        let time = midnight.checked_add_signed(TimeDelta::microseconds((second * 1e6).round() as i64));
        Ok(time.ok_or_else(wrong)?.and_utc().timestamp_micros())
    })?;
    Ok(Arc::new(TimestampMicrosecondArray::from(times)))
}

fn width_bucket(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let buckets = each_row(arrays, |row| {
        let [value, low, high] = [0, 1, 2].map(|at| arrays[at].as_primitive::<Float64Type>().value(row));
        let count = arrays[3].as_primitive::<Int32Type>().value(row);
        let wrong = |line: &str| Err(ArrowError::InvalidArgumentError(line.to_owned()));
        if count <= 0 {
            return wrong("count must be greater than zero");
        }
        if value.is_nan() || !low.is_finite() || !high.is_finite() {
            return wrong("operand, lower bound, and upper bound cannot be NaN or infinite");
        }
        if low == high {
            return wrong("lower bound cannot equal upper bound");
        }
        let (value, low, high) = if low < high { (value, low, high) } else { (-value, -low, -high) };
        Ok(if value < low {
            0
        } else if value >= high {
            count.saturating_add(1)
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "less than the number of buckets")]
            let bucket = (f64::from(count) * (value - low) / (high - low)).floor() as i32;
            bucket.min(count - 1) + 1
        })
    })?;
    Ok(Arc::new(Int32Array::from(buckets)))
}

fn quoted(arrays: &[ArrayRef], of_null: bool) -> ArrayRef {
    let quoted = arrays[0].as_string::<i32>().iter().map(|text| match text {
        Some(text) => {
            let doubled = text.replace('\'', "''");
            Some(match doubled.contains('\\') {
                true => format!("E'{}'", doubled.replace('\\', "\\\\")),
                false => format!("'{doubled}'"),
            })
        }
        None => of_null.then(|| "NULL".to_owned()),
    });
    Arc::new(quoted.collect::<StringArray>())
}

fn scaled(arrays: &[ArrayRef], scale: fn(f64, f64) -> f64) -> Result<ArrayRef, ArrowError> {
    let spans = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let numbers = arrays[1].as_primitive::<Float64Type>();
    let spans = each_row(arrays, |row| {
        let number = numbers.value(row);
        Span::of(spans.value(row)).scaled(|part| scale(part, number)).and_then(Span::value).map_err(beyond)
    })?;
    Ok(Arc::new(IntervalMonthDayNanoArray::from(spans)))
}

fn divided(arrays: &[ArrayRef], quotient: fn(f64, f64) -> f64) -> Result<ArrayRef, ArrowError> {
    let [left, right] = [0, 1].map(|at| arrays[at].as_primitive::<Float64Type>());
    let quotients = each_row(arrays, |row| match right.value(row) {
        0.0 => Err(ArrowError::DivideByZero),
        divisor => Ok(quotient(left.value(row), divisor)),
    })?;
    Ok(Arc::new(Float64Array::from(quotients)))
}
