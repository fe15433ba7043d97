//! `postgres_cast(value, type)`: casts that have another result in the engine.
//!
//! | cast | engine | PostgreSQL |
//! | --- | --- | --- |
//! | number with a fraction to an integer, also in arrays | cut off | rounded: numeric half away from zero, double precision half to even |
//! | date, time, interval to an integer | a count of units | an error |
//! | time, interval, list, bytes, float to text | the engine's forms | `2026-05-01 12:00:00+00`, `{1,2}`, `\x01`, `1e+20` |
//! | text to a list | a list of one text | the items of `{a,b}` |
//! | text to interval | few forms | `1 day 04:05:06`, `1 year 2 mons`, `P1DT2H` |
//! | text to uuid, json | no such type | checked text, which clients receive with its type |
//! | list to a list of texts | the engine's forms | each item as PostgreSQL's text |
//! | text to numeric | cut to 10 digits after the point | all digits; here an error if 10 are too few |
//! | floating-point number to numeric | 10 digits after the point | 15 significant digits, 20 of them after the point here |
//!
//! The type `output` is text as clients receive it: `t` for true, while a cast to text gives `true`. `concat` takes such texts.
//!
//! If a third argument is true, the number was written as numeric, which the engine represents as double precision.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int64Array, IntervalMonthDayNanoArray, ListArray, StringBuilder,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

use super::array::items;
use super::interval::{intervals, read_interval};
use super::text::put_text;
use crate::functions::PROTOCOL_TYPE;

/// See the module's documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PostgresCast {
    signature: Signature,
}

/// A type that is cast to.
enum Target {
    Integer(DataType),
    Text,
    /// Text as it is sent to clients.
    Output,
    Json,
    Uuid,
    Interval,
    /// Numeric without a scale: [`NUMERIC`], the type of a number that is numeric already, or one for the digits of doubles.
    Numeric,
    List(DataType),
    /// A list of texts as they are sent to clients.
    OutputList,
}

impl Target {
    fn of(name: &str) -> Result<Self> {
        Ok(match name {
            "int2" => Self::Integer(DataType::Int16),
            "int4" => Self::Integer(DataType::Int32),
            "int8" => Self::Integer(DataType::Int64),
            "text" => Self::Text,
            "output" => Self::Output,
            "output[]" => Self::OutputList,
            "json" => Self::Json,
            "uuid" => Self::Uuid,
            "interval" => Self::Interval,
            "numeric" => Self::Numeric,
            name => match name.strip_suffix("[]").and_then(item_type) {
                Some(item) => Self::List(item),
                None => return plan_err!("casts to {name} are not supported"),
            },
        })
    }

    /// The type of the result of a cast from this type.
    fn data_type_from(&self, from: &DataType) -> DataType {
        match self {
            Self::Numeric if from.is_decimal() => from.clone(),
            Self::Numeric if from.is_floating() => DataType::Decimal128(38, 20),
            _ => self.data_type(),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Numeric => NUMERIC,
            Self::Integer(integer) => integer.clone(),
            Self::Text | Self::Output | Self::Json | Self::Uuid => DataType::Utf8,
            Self::OutputList => DataType::new_list(DataType::Utf8, true),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::List(item) => DataType::new_list(item.clone(), true),
        }
    }
}

/// Numeric without a scale, but that of floating-point numbers.
const NUMERIC: DataType = DataType::Decimal128(38, 10);

/// True for a cast of an array of numbers to one of integers, which rounds.
fn rounds(from: &DataType, item: &DataType) -> bool {
    item.is_integer() && item_of(from).is_some_and(|of| of.is_floating() || of.is_decimal())
}

/// The arrays with their items as integers.
fn lists_of_integers(values: &ArrayRef, item: &DataType, numeric: bool) -> Result<ArrayRef> {
    let Some(of) = item_of(values.data_type()) else { return internal_err!("expected a list") };
    let lists = strict(values, &DataType::new_list(of.clone(), true))?;
    let (_, offsets, numbers, nulls) = lists.as_list::<i32>().clone().into_parts();
    let numbers = integers(&numbers, item, numeric)?;
    let field = Arc::new(Field::new_list_field(item.clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, numbers, nulls)?))
}

/// The type of the items of an array.
fn item_type(name: &str) -> Option<DataType> {
    Some(match name {
        "text" | "varchar" | "bpchar" | "name" | "uuid" | "json" => DataType::Utf8,
        "int2" => DataType::Int16,
        "int4" => DataType::Int32,
        "int8" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "numeric" => NUMERIC,
        "bool" => DataType::Boolean,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Nanosecond),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "interval" => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => return None,
    })
}

fn name_of(arguments: &[Option<&ScalarValue>]) -> Result<Target> {
    match arguments.get(1).copied().flatten().and_then(|name| name.try_as_str().flatten()) {
        Some(name) => Target::of(name),
        None => plan_err!("postgres_cast takes a value and the name of a type"),
    }
}

impl PostgresCast {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::user_defined(Volatility::Stable) }))
    }
}

impl ScalarUDFImpl for PostgresCast {
    fn name(&self) -> &str {
        "postgres_cast"
    }

    // Not displayed for conversions that a statement does not show.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        if let [value, Expr::Literal(name, _)] = arguments
            && name.try_as_str().flatten().is_some_and(|name| name.starts_with("output"))
        {
            return Ok(value.schema_name().to_string());
        }
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
        Ok(format!("{}({})", self.name(), arguments.join(",")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let plain = |given: &DataType| match given {
            DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
            DataType::Dictionary(_, value) => value.as_ref().clone(),
            other => other.clone(),
        };
        Ok(given.iter().map(plain).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type depends on the name")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let target = name_of(arguments.scalar_arguments)?;
        let from = arguments.arg_fields.first().map_or(&DataType::Null, |from| from.data_type());
        check(&target, from)?;
        let field = Field::new(self.name(), target.data_type_from(from), true);
        let marked = match target {
            Target::Json => "json",
            Target::Uuid => "uuid",
            _ => return Ok(Arc::new(field)),
        };
        Ok(Arc::new(field.with_metadata(HashMap::from([(PROTOCOL_TYPE.to_owned(), marked.to_owned())]))))
    }

    fn simplify(&self, mut arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [value, Expr::Literal(name, _), ..] = arguments.as_slice() else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        let target = Target::of(name.try_as_str().flatten().unwrap_or_default())?;
        let from = context.get_data_type(value)?;
        let as_cast = match &target {
            Target::Integer(_) => {
                from.is_integer() || from.is_string() || matches!(from, DataType::Boolean | DataType::Null)
            }
            Target::Text => {
                from.is_integer()
                    || from.is_string()
                    || from.is_decimal()
                    || matches!(from, DataType::Boolean | DataType::Null | DataType::Date32)
            }
            Target::Output => {
                from.is_integer()
                    || from.is_string()
                    || from.is_decimal()
                    || matches!(from, DataType::Null | DataType::Date32)
            }
            Target::OutputList => {
                from.is_null() || item_of(&from).is_some_and(|item| item.is_string() || item.is_null())
            }
            Target::List(DataType::Utf8) => {
                from.is_null()
                    || item_of(&from).is_some_and(|item| item.is_string() || item.is_integer() || item.is_null())
            }
            Target::List(item) => (from.is_nested() && !rounds(&from, item)) || from.is_null(),
            Target::Interval => matches!(from, DataType::Interval(_) | DataType::Null),
            Target::Numeric => from.is_integer() || from.is_decimal() || from.is_null(),
            Target::Json | Target::Uuid => false,
        };
        if as_cast {
            return Ok(ExprSimplifyResult::Simplified(cast(value.clone(), target.data_type_from(&from))));
        }
        check(&target, &from)?;
        // A column of double precision makes all of an expression so.
        let floating = from.is_floating() || item_of(&from).is_some_and(DataType::is_floating);
        if arguments.len() == 3 && floating && has_double_column(value, context)? {
            arguments.pop();
            let function = Self::udf();
            return Ok(ExprSimplifyResult::Simplified(function.call(arguments)));
        }
        Ok(ExprSimplifyResult::Original(arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, ColumnarValue::Scalar(name), rest @ ..] = arguments.args.as_slice() else {
            return plan_err!("postgres_cast takes a value and the name of a type");
        };
        let target = Target::of(name.try_as_str().flatten().unwrap_or_default())?;
        let numeric = matches!(rest, [ColumnarValue::Scalar(ScalarValue::Boolean(Some(true)))]);
        let constant = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(if constant { 1 } else { arguments.number_rows })?;
        // A constant NULL without a type: its array does not report NULLs.
        let values =
            if values.data_type().is_null() { arrow::compute::cast(&values, &DataType::Utf8)? } else { values };
        check(&target, values.data_type())?;
        let zone = arguments.config_options.execution.time_zone.as_deref().unwrap_or("UTC");
        let array = match target {
            Target::Integer(integer) => integers(&values, &integer, numeric)?,
            Target::Text => texts(&values, zone, false)?,
            Target::Output => texts(&values, zone, true)?,
            Target::List(DataType::Utf8) | Target::OutputList if item_of(values.data_type()).is_some() => {
                lists_of_texts(&values, zone, matches!(target, Target::OutputList))?
            }
            Target::OutputList => strict(&values, &target.data_type())?,
            Target::Json => checked(
                &values,
                |text| match serde_json::from_str::<serde::de::IgnoredAny>(text) {
                    Ok(_) => Some(text.to_owned()),
                    Err(_) => None,
                },
                "json",
            )?,
            Target::Uuid => checked(&values, uuid, "uuid")?,
            Target::Interval if values.data_type().is_string() => spans(&values)?,
            Target::Interval => strict(&intervals(&values)?, &target.data_type())?,
            Target::Numeric => numerics(&values)?,
            Target::List(item) if rounds(values.data_type(), &item) => lists_of_integers(&values, &item, numeric)?,
            Target::List(item) if values.data_type().is_nested() => strict(&values, &DataType::new_list(item, true))?,
            Target::List(item) => lists(&values, &item)?,
        };
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            false => Ok(ColumnarValue::Array(array)),
        }
    }
}

/// Checks that PostgreSQL has a cast.
fn check(target: &Target, from: &DataType) -> Result<()> {
    let ok = match target {
        Target::Integer(_) => {
            from.is_numeric() || from.is_string() || matches!(from, DataType::Boolean | DataType::Null)
        }
        Target::Text | Target::Output => !matches!(from, DataType::Union(..)),
        Target::OutputList => from.is_nested() || from.is_null(),
        Target::Json | Target::Uuid => from.is_string() || from.is_null(),
        Target::Interval => {
            from.is_string()
                || matches!(from, DataType::Interval(_) | DataType::Duration(_) | DataType::Time64(_) | DataType::Null)
        }
        Target::Numeric => from.is_string() || from.is_numeric() || from.is_null(),
        Target::List(_) => from.is_string() || from.is_nested() || from.is_null(),
    };
    if ok { Ok(()) } else { plan_err!("cannot cast {from} to {}", target.data_type()) }
}

/// True if an expression has a column of double precision, except for averages, which PostgreSQL has as numeric.
pub(super) fn has_double_column(expr: &Expr, context: &SimplifyContext) -> Result<bool> {
    let mut found = false;
    expr.apply(|part| {
        if let Expr::Column(column) = part {
            // A part that the optimizer computes once was looked at before.
            let known = column.name.starts_with("avg(") || column.name.starts_with("__common_expr");
            let data_type = context.get_data_type(part)?;
            let floating = data_type.is_floating() || item_of(&data_type).is_some_and(DataType::is_floating);
            found |= floating && !known;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn strict(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(values, to, &CastOptions { safe: false, ..CastOptions::default() })
}

fn integers(values: &ArrayRef, to: &DataType, numeric: bool) -> Result<ArrayRef> {
    let beyond = || ArrowError::ArithmeticOverflow("value out of range for an integer".to_owned());
    let wide: ArrayRef = match values.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let values = strict(values, &DataType::Float64)?;
            let round = |value: f64| {
                let rounded = if numeric { value.round() } else { value.round_ties_even() };
                // From -2^63 to below 2^63.
                #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
                (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
                    .contains(&rounded)
                    .then_some(rounded as i64)
                    .ok_or_else(beyond)
            };
            let rounded: Int64Array = values.as_primitive::<Float64Type>().try_unary(round)?;
            Arc::new(rounded)
        }
        DataType::Decimal128(_, scale) if *scale > 0 => {
            let unit = 10_i128.checked_pow(scale.unsigned_abs().into()).ok_or_else(beyond)?;
            let round = |value: i128| {
                let (whole, rest) = (value / unit, value % unit);
                let away = if rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2) { value.signum() } else { 0 };
                i64::try_from(whole + away).map_err(|_| beyond())
            };
            let rounded: Int64Array = values.as_primitive::<Decimal128Type>().try_unary(round)?;
            Arc::new(rounded)
        }
        _ => Arc::clone(values),
    };
    let out = cast_with_options(&wide, to, &CastOptions { safe: true, ..CastOptions::default() })?;
    // What does not fit has become NULL.
    if out.null_count() > wide.null_count() && !wide.data_type().is_string() {
        return Err(beyond().into());
    }
    Ok(if wide.data_type().is_string() { strict(&wide, to)? } else { out })
}

/// Texts and numbers as numeric. Doubles have 15 significant digits, as in PostgreSQL, and numbers of single precision six.
fn numerics(values: &ArrayRef) -> Result<ArrayRef> {
    let from = values.data_type().clone();
    let (texts, rounds): (Vec<Option<String>>, bool) = match &from {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let single = from != DataType::Float64;
            let values = strict(values, &DataType::Float64)?;
            let written = |value| if single { format!("{value:.5e}") } else { format!("{value:.14e}") };
            (values.as_primitive::<Float64Type>().iter().map(|value| value.map(written)).collect(), true)
        }
        from if from.is_string() => {
            let values = strict(values, &DataType::Utf8)?;
            (values.as_string::<i32>().iter().map(|text| text.map(|text| text.trim().to_owned())).collect(), false)
        }
        from if from.is_decimal() => return Ok(Arc::clone(values)),
        _ => return Ok(strict(values, &NUMERIC)?),
    };
    let to = Target::Numeric.data_type_from(&from);
    let DataType::Decimal128(_, scale) = to else { return internal_err!("expected a decimal") };
    let read = |text: &String| {
        let number = Written::of(text);
        if number.is_none() && !rounds {
            return Err(invalid(format!("invalid input syntax for type numeric: \"{text}\"")));
        }
        number.and_then(|number| number.at_scale(scale, rounds)).ok_or_else(|| {
            let line = format!(
                "{text} does not fit numeric, which has {scale} digits after the point here: cast to numeric(38, n)"
            );
            DataFusionError::from(ArrowError::ArithmeticOverflow(line))
        })
    };
    let numbers = texts.iter().map(|text| text.as_ref().map(read).transpose());
    let numbers: Decimal128Array = numbers.collect::<Result<_>>()?;
    Ok(Arc::new(numbers.with_data_type(to)))
}

/// A number as it is written: its digits as an integer, and how many of them are after the point.
struct Written {
    /// `None` if it has too many digits.
    value: Option<i128>,
    scale: i64,
}

impl Written {
    /// Reads a number; `None` for another text, such as `inf`.
    fn of(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
            None => (text, 0),
        };
        let (sign, digits) = match mantissa.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let short = all.trim_end_matches('0');
        let dropped = i64::try_from(all.len() - short.len()).ok()?;
        let value = if short.is_empty() { Some(0) } else { short.parse::<i128>().ok() };
        let scale = i64::try_from(fraction.len()).ok()? - dropped - i64::from(exponent);
        Some(Self { value: value.map(|value| value * sign), scale: if value == Some(0) { 0 } else { scale } })
    }

    /// The number with this many digits after the point. `None` if it is too large, or has more digits and is not to be rounded.
    fn at_scale(&self, scale: i8, rounds: bool) -> Option<i128> {
        let (value, shift) = (self.value?, i64::from(scale) - self.scale);
        let unit = 10_i128.checked_pow(u32::try_from(shift.abs()).ok()?);
        let number = match shift {
            0.. => value.checked_mul(unit?)?,
            _ if !rounds => return None,
            _ => unit.map_or(0, |unit| {
                let away = (value % unit).unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
                value / unit + if away { value.signum() } else { 0 }
            }),
        };
        (number.unsigned_abs() < 10_u128.pow(38)).then_some(number)
    }
}

/// The type that values are printed as.
fn printable(from: &DataType, zone: &str) -> Option<DataType> {
    Some(match from {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())),
        DataType::Duration(_) | DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            DataType::new_list(printable(item.data_type(), zone)?, true)
        }
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => return None,
        other => other.clone(),
    })
}

fn texts(values: &ArrayRef, zone: &str, output: bool) -> Result<ArrayRef> {
    let zone = if zone.parse::<Tz>().is_ok() { zone } else { "UTC" };
    let Some(plain) = printable(values.data_type(), zone) else { return Ok(strict(values, &DataType::Utf8)?) };
    let boolean = plain == DataType::Boolean && !output;
    let values = strict(&intervals(values)?, &plain)?;
    let mut texts = StringBuilder::new();
    for row in 0..values.len() {
        match values.is_null(row) {
            true => texts.append_null(),
            false if boolean => texts.append_value(if values.as_boolean().value(row) { "true" } else { "false" }),
            false => {
                put_text(&mut texts, &values, row);
                texts.append_value("");
            }
        }
    }
    Ok(Arc::new(texts.finish()))
}

/// The type of the items of a list.
fn item_of(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

/// The lists with their items as texts.
fn lists_of_texts(values: &ArrayRef, zone: &str, output: bool) -> Result<ArrayRef> {
    let Some(item) = item_of(values.data_type()) else { return internal_err!("expected a list") };
    if item.is_nested() || item.is_null() {
        return Ok(strict(values, &DataType::new_list(DataType::Utf8, true))?);
    }
    let lists = strict(values, &DataType::new_list(item.clone(), true))?;
    let lists = lists.as_list::<i32>();
    let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let items = texts(lists.values(), zone, output)?;
    Ok(Arc::new(ListArray::try_new(field, lists.offsets().clone(), items, lists.nulls().cloned())?))
}

/// Texts that were read, in the form that PostgreSQL prints them.
fn checked(values: &ArrayRef, read: impl Fn(&str) -> Option<String>, name: &str) -> Result<ArrayRef> {
    let values = strict(values, &DataType::Utf8)?;
    let mut texts = StringBuilder::new();
    for text in values.as_string::<i32>() {
        texts.append_option(match text {
            Some(text) => {
                Some(read(text).ok_or_else(|| invalid(format!("invalid input syntax for type {name}: \"{text}\"")))?)
            }
            None => None,
        });
    }
    Ok(Arc::new(texts.finish()))
}

fn invalid(line: String) -> DataFusionError {
    ArrowError::ParseError(line).into()
}

/// An identifier in its usual form: 32 digits in any groups of four.
fn uuid(text: &str) -> Option<String> {
    let text = text.trim();
    let inner = text.strip_prefix('{').map_or(Some(text), |inner| inner.strip_suffix('}'))?;
    let mut digits = String::new();
    for c in inner.chars() {
        match c {
            '-' if !digits.is_empty() && digits.len().is_multiple_of(4) => {}
            c if c.is_ascii_hexdigit() => digits.push(c.to_ascii_lowercase()),
            _ => return None,
        }
    }
    (digits.len() == 32 && !inner.ends_with('-'))
        .then(|| [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

fn spans(values: &ArrayRef) -> Result<ArrayRef> {
    let values = strict(values, &DataType::Utf8)?;
    let spans = values.as_string::<i32>().iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        let span = read_interval(text, None).and_then(super::interval::Span::value);
        span.map(Some).map_err(|error| invalid(error.line(text)))
    });
    let spans: IntervalMonthDayNanoArray = spans.collect::<Result<_>>()?;
    Ok(Arc::new(spans))
}

fn lists(values: &ArrayRef, item: &DataType) -> Result<ArrayRef> {
    let values = strict(values, &DataType::Utf8)?;
    let mut lists = arrow::array::ListBuilder::new(StringBuilder::new());
    for text in values.as_string::<i32>() {
        match text {
            Some(text) => lists.append_value(items(text).map_err(|error| invalid(error.line(text)))?),
            None => lists.append_null(),
        }
    }
    let lists = lists.finish();
    if *item == NUMERIC {
        // A digit that does not fit is an error, as for one number.
        let (_, offsets, texts, nulls) = lists.into_parts();
        let field = Arc::new(Field::new_list_field(NUMERIC, true));
        return Ok(Arc::new(ListArray::try_new(field, offsets, numerics(&texts)?, nulls)?));
    }
    let lists: ArrayRef = Arc::new(lists);
    Ok(strict(&lists, &DataType::new_list(item.clone(), true))?)
}
