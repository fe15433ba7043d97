//! Functions of the engine that return another value than their definition for some arguments, or stop the program.
//!
//! | function | the engine | here |
//! | --- | --- | --- |
//! | `date_bin` of instants | counts nanoseconds: NULL if time and origin are 292 years apart | exact |
//! | `date_part('epoch', …)` | adds seconds and their fraction as doubles, off by a microsecond | the nearest double of up to 2^53 units |
//! | `date_part('year', …)` compared | NULL for years that the type of the time does not have | true or false |
//! | `date_trunc` of one instant before 1970 | rounds milliseconds and microseconds up | rounds down |
//! | `date_trunc` to minutes in a zone | minutes of UTC, from which clocks of the zone were seconds apart | minutes of the zone |
//! | `greatest`, `least` of arrays and rows | NULL is the smallest member | NULL is the greatest member, as in PostgreSQL |
//! | `lpad`, `rpad` | a negative length of a column stops the program | an empty text |
//! | `regexp_like`, `regexp_match` | take NULL for no flags | NULL, as in PostgreSQL |
//! | `regexp_match` | leaves out groups that took no part in the match | NULL, as in PostgreSQL |
//! | `to_char` of a duration | ignores the format | refused |
//!
//! Invariant: types, names and orders are those of the engine's function.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, make_comparator};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{SortOptions, cast, is_null, nullif};
use arrow::datatypes::{DataType, FieldRef, Int64Type, TimeUnit};
use chrono::{DateTime, Offset, TimeZone};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping,
};

use super::matched_groups::matched_groups;
use super::wrapper::wrapped_methods;
use crate::error::{Error, ErrorKind};

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;

/// The function with corrected results, if it needs any.
pub(crate) fn corrected(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let by = match function.name() {
        "date_bin" => Correction::Bins,
        "date_part" => Correction::Epoch,
        "date_trunc" => Correction::Truncation,
        "greatest" => Correction::Order { largest: true },
        "least" => Correction::Order { largest: false },
        "lpad" | "rpad" => Correction::Length,
        "regexp_like" => Correction::Flags,
        "regexp_match" => Correction::Groups,
        "to_char" => Correction::Durations,
        _ => return function,
    };
    Arc::new(ScalarUDF::new_from_impl(Corrected { inner: function, by }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Correction {
    Bins,
    Epoch,
    Truncation,
    Order {
        /// The largest value is the result, not the smallest one.
        largest: bool,
    },
    Length,
    Flags,
    Groups,
    Durations,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Corrected {
    inner: Arc<ScalarUDF>,
    by: Correction,
}

impl Corrected {
    fn function(&self) -> &Arc<dyn ScalarUDFImpl> {
        self.inner.inner()
    }

    /// The result of a function whose third argument are flags: NULL if they are.
    fn with_flags(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows_of(&args);
        let Some(flags) = args.args.get(2) else { return self.function().invoke_with_args(args) };
        let absent = is_null(flags.to_array(rows)?.as_ref())?;
        if absent.true_count() == 0 {
            return self.function().invoke_with_args(args);
        }
        let given = args.args.clone();
        let matched = self.function().invoke_with_args(args)?.to_array(rows)?;
        returned(nullif(&matched, &absent)?, &given)
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl ScalarUDFImpl for Corrected {
    wrapped_methods!();

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.function().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { inner, by: self.by }))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if self.by == Correction::Durations {
            check_value(&args)?;
        }
        self.function().return_field_from_args(args)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let corrected = match self.by {
            Correction::Bins => bins(&args)?,
            Correction::Epoch => epoch(&args)?,
            Correction::Truncation => truncated(&args)?,
            Correction::Order { largest } => extreme(&args, largest)?,
            Correction::Flags => return self.with_flags(args),
            Correction::Groups => {
                let groups = matched_groups(&args, rows_of(&args))?;
                groups.map(|groups| returned(groups, &args.args)).transpose()?
            }
            Correction::Length => {
                if let Some(length) = args.args.get_mut(1) {
                    *length = at_least_zero(length)?;
                }
                None
            }
            Correction::Durations => None,
        };
        match corrected {
            Some(corrected) => Ok(corrected),
            None => self.function().invoke_with_args(args),
        }
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.function().simplify(args, context)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function().output_ordering(inputs)
    }
}

/// Refuses a duration, whose format would be ignored.
fn check_value(args: &ReturnFieldArgs<'_>) -> Result<()> {
    match args.arg_fields.first().map(|field| field.data_type()) {
        Some(DataType::Duration(_)) => {
            Err(Error::new(ErrorKind::Unsupported, "to_char of a duration is not supported")
                .advice("cast it to text, or write its parts, as in date_part('hour', t)")
                .into())
        }
        _ => Ok(()),
    }
}

/// Nanoseconds of a unit of time.
fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Instants as they are stored, with their unit; `None` for values of another type.
fn instants(values: &ArrayRef) -> Option<(Vec<Option<i64>>, TimeUnit)> {
    let DataType::Timestamp(unit, _) = values.data_type() else { return None };
    let stored = match unit {
        TimeUnit::Second => values.as_primitive::<TimestampSecondType>().iter().collect(),
        TimeUnit::Millisecond => values.as_primitive::<TimestampMillisecondType>().iter().collect(),
        TimeUnit::Microsecond => values.as_primitive::<TimestampMicrosecondType>().iter().collect(),
        TimeUnit::Nanosecond => values.as_primitive::<TimestampNanosecondType>().iter().collect(),
    };
    Some((stored, *unit))
}

/// The result of rows that are all the same if the arguments are scalars.
fn returned(values: ArrayRef, args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let scalar = args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    Ok(match scalar && !values.is_empty() {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
        false => ColumnarValue::Array(values),
    })
}

fn rows_of(args: &ScalarFunctionArgs) -> usize {
    let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    if scalar { 1 } else { args.number_rows }
}

/// `date_bin` of instants by a stride without months; `None` for other arguments.
fn bins(args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
    let (rows, values) = (rows_of(args), &args.args);
    let [ColumnarValue::Scalar(stride), source, origin @ ..] = values.as_slice() else { return Ok(None) };
    let stride = match stride {
        ScalarValue::IntervalMonthDayNano(Some(stride)) if stride.months == 0 => {
            i128::from(stride.days) * DAY + i128::from(stride.nanoseconds)
        }
        ScalarValue::IntervalDayTime(Some(stride)) => {
            i128::from(stride.days) * DAY + i128::from(stride.milliseconds) * 1_000_000
        }
        _ => return Ok(None),
    };
    if stride <= 0 {
        return Err(Error::new(ErrorKind::Query, "the stride of date_bin must be longer than zero").into());
    }
    let Some((source, unit)) = instants(&source.to_array(rows)?) else { return Ok(None) };
    let origin = match origin {
        [] => (vec![Some(0); rows], unit),
        [origin, ..] => match instants(&origin.to_array(rows)?) {
            Some(origin) => origin,
            None => return Ok(None),
        },
    };
    let step = nanoseconds(unit);
    let bin = |(source, origin_at): (Option<i64>, Option<i64>)| {
        let (Some(source), Some(origin_at)) = (source, origin_at) else { return Ok(None) };
        let origin = i128::from(origin_at) * nanoseconds(origin.1);
        let start = origin + (i128::from(source) * step - origin).div_euclid(stride) * stride;
        i64::try_from(start.div_euclid(step)).map(Some).map_err(|_| {
            Error::new(ErrorKind::Query, "date_bin: the bin begins before the first instant that can be represented")
        })
    };
    let bins = source.into_iter().zip(origin.0.iter().copied()).map(bin);
    let bins: Int64Array = bins.collect::<std::result::Result<_, Error>>()?;
    let bins = cast(&bins, args.return_field.data_type())?;
    returned(bins, values).map(Some)
}

/// Seconds since 1970 of instants; `None` for other parts, and for values that are no instants.
fn epoch(args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
    /// Numbers from here on have no exact double.
    const EXACT: u64 = 1 << 53;
    let [ColumnarValue::Scalar(part), times] = args.args.as_slice() else { return Ok(None) };
    let part = part.try_as_str().flatten().unwrap_or_default();
    let is_epoch = part.trim_matches(['\'', '"']).eq_ignore_ascii_case("epoch");
    if !is_epoch || *args.return_field.data_type() != DataType::Float64 {
        return Ok(None);
    }
    let Some((times, unit)) = instants(&times.to_array(rows_of(args))?) else { return Ok(None) };
    let per_second = i64::try_from(nanoseconds(TimeUnit::Second) / nanoseconds(unit)).unwrap_or(1);
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is wanted")]
    let seconds = |at: i64| match at.unsigned_abs() < EXACT {
        true => at as f64 / per_second as f64,
        false => at.div_euclid(per_second) as f64 + at.rem_euclid(per_second) as f64 / per_second as f64,
    };
    let seconds: Float64Array = times.into_iter().map(|at| at.map(seconds)).collect();
    returned(Arc::new(seconds), &args.args).map(Some)
}

/// `date_trunc` of instants to minutes of a zone, and of one instant to milliseconds or microseconds; `None` for other units and
/// values.
fn truncated(args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
    let [ColumnarValue::Scalar(to), time] = args.args.as_slice() else { return Ok(None) };
    let step = match (to.try_as_str().flatten().map(str::to_lowercase).as_deref(), time) {
        (Some("minute"), _) => return minutes(args, time),
        (Some("millisecond"), ColumnarValue::Scalar(_)) => nanoseconds(TimeUnit::Millisecond),
        (Some("microsecond"), ColumnarValue::Scalar(_)) => nanoseconds(TimeUnit::Microsecond),
        _ => return Ok(None),
    };
    let Some((times, unit)) = instants(&time.to_array(1)?) else { return Ok(None) };
    let step = i64::try_from(step / nanoseconds(unit)).unwrap_or(1).max(1);
    truncated_by(args, times, |at| Some(at.rem_euclid(step)))
}

/// Instants truncated to minutes that clocks of their zone show, such as those of Berlin before 1893, which were 53 minutes and 28
/// seconds ahead of UTC; `None` for values without such a zone.
fn minutes(args: &ScalarFunctionArgs, time: &ColumnarValue) -> Result<Option<ColumnarValue>> {
    let zone = match time.data_type() {
        DataType::Timestamp(_, Some(zone)) if !["UTC", "Z", "+00:00"].contains(&zone.as_ref()) => zone,
        _ => return Ok(None),
    };
    let zone: Tz = zone.parse()?;
    let Some((times, unit)) = instants(&time.to_array(rows_of(args))?) else { return Ok(None) };
    let per_second = i64::try_from(nanoseconds(TimeUnit::Second) / nanoseconds(unit)).unwrap_or(1);
    truncated_by(args, times, |at| {
        let seconds = at.div_euclid(per_second);
        let instant = DateTime::from_timestamp(seconds, 0)?.naive_utc();
        let offset = i64::from(zone.offset_from_utc_datetime(&instant).fix().local_minus_utc());
        Some((seconds + offset).rem_euclid(60) * per_second + at.rem_euclid(per_second))
    })
}

/// Instants less their distance from the start of their step.
///
/// # Errors
/// [`ErrorKind::Query`] near the first instant that can be represented, below which there is none.
fn truncated_by(
    args: &ScalarFunctionArgs,
    times: Vec<Option<i64>>,
    distance: impl Fn(i64) -> Option<i64>,
) -> Result<Option<ColumnarValue>> {
    let down = |at: i64| {
        let out_of_range =
            || Error::new(ErrorKind::Query, "date_trunc: the result is before the first possible instant");
        distance(at).and_then(|distance| at.checked_sub(distance)).ok_or_else(out_of_range)
    };
    let times = times.into_iter().map(|at| at.map(down).transpose());
    let times: Int64Array = times.collect::<std::result::Result<_, Error>>()?;
    returned(cast(&times, args.return_field.data_type())?, &args.args).map(Some)
}

/// The largest or smallest of several arrays or rows that are not NULL; `None` for other values.
fn extreme(args: &ScalarFunctionArgs, largest: bool) -> Result<Option<ColumnarValue>> {
    if !args.return_field.data_type().is_nested() {
        return Ok(None);
    }
    let rows = rows_of(args);
    let values = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
    let mut values = values.into_iter();
    let Some(mut found) = values.next() else { return Ok(None) };
    for next in values {
        let compare = make_comparator(&found, &next, SortOptions { descending: false, nulls_first: false })?;
        let keeps = BooleanBuffer::collect_bool(rows, |row| match compare(row, row) {
            _ if found.is_null(row) => false,
            _ if next.is_null(row) => true,
            order if largest => order.is_ge(),
            order => order.is_le(),
        });
        found = zip(&BooleanArray::new(keeps, None), &found, &next)?;
    }
    returned(found, &args.args).map(Some)
}

/// A length in characters, of which there are none if it is negative.
fn at_least_zero(length: &ColumnarValue) -> Result<ColumnarValue> {
    let ColumnarValue::Array(lengths) = length else { return Ok(length.clone()) };
    let lengths = cast(lengths, &DataType::Int64)?;
    let lengths: Int64Array = lengths.as_primitive::<Int64Type>().unary(|length| length.max(0));
    Ok(ColumnarValue::Array(Arc::new(lengths)))
}
