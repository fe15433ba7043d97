//! PostgreSQL's meaning of SQL that the engine reads in another way.
//!
//! - `to_char`, `to_timestamp` and `to_date` take PostgreSQL's templates, such as `'YYYY-MM-DD HH24:MI:SS'`. The engine's
//!   formats, with `%`, stay what they are.
//! - `x AT TIME ZONE 'Europe/Berlin'` is the local time of an instant, and the instant of a local time.
//! - An interval can be multiplied by a number and divided by one.
//!
//! Sources: PostgreSQL documentation, "Data Type Formatting Functions", "Date/Time Functions and Operators".

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::types::{
    ArrowTimestampType, IntervalMonthDayNano, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, new_null_array};
use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use chrono::{DateTime, MappedLocalTime, Offset, TimeDelta, TimeZone as _};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;

use super::catalog::call;
use super::printed::{check_names, printed};
use super::report::Report;
use crate::session::syntax::{self, Editor};
use crate::session::{parse_expression, parse_trees};

/// Words of which one is in every statement that is translated.
const WORDS: [&str; 5] = ["to_char", "to_timestamp", "to_date", "interval", "zone"];
/// The engine's format of a whole number of microseconds.
const MICROSECONDS: &str = "Duration(Microsecond)";
/// The zone of instants.
const UTC: &str = "UTC";

/// Adds the functions that translated statements call.
pub(super) fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(TimeZone::new()));
}

/// Returns the statement in the engine's SQL. One that cannot be parsed stays, for the planner to explain.
///
/// # Errors
/// `0A000` for a template that has no counterpart.
pub(super) fn translated(sql: String) -> Result<String, Report> {
    let lower = sql.to_lowercase();
    if !WORDS.iter().any(|word| lower.contains(word)) {
        return Ok(sql);
    }
    let Ok(mut statements) = parse_trees(&sql, GenericDialect {}) else { return Ok(sql) };
    let (Some(mut statement), true) = (statements.pop(), statements.is_empty()) else { return Ok(sql) };
    let mut translator = Translator { changed: Ok(false) };
    syntax::edit(&mut statement, &mut translator);
    if !translator.changed? {
        return Ok(sql);
    }
    let named = check_names(&sql, &GenericDialect {});
    named.map_err(|error| Report::error("0A000", error.to_string()))?;
    Ok(printed(statement))
}

struct Translator {
    /// Set if anything has changed; the first error.
    changed: Result<bool, Report>,
}

impl Editor for Translator {
    fn post_visit_expr(&mut self, expr: &mut SqlExpr) {
        let Ok(changed) = &mut self.changed else { return };
        let new = match expr {
            SqlExpr::Function(function) => match template(function) {
                Ok(translated) => {
                    *changed |= translated;
                    None
                }
                Err(report) => {
                    self.changed = Err(report);
                    return;
                }
            },
            SqlExpr::AtTimeZone { timestamp, time_zone } => {
                Some(call(TimeZone::NAME, vec![time_zone.as_ref().clone(), timestamp.as_ref().clone()]))
            }
            SqlExpr::BinaryOp { left, op, right } => match op {
                BinaryOperator::Multiply => times(left, right, false).or_else(|| times(right, left, false)),
                BinaryOperator::Divide => times(left, right, true),
                _ => None,
            },
            _ => None,
        };
        if let Some(new) = new {
            *expr = new;
            *changed = true;
        }
    }
}

/// Translates the template of a function that has one. Returns false if nothing changed.
fn template(function: &mut Function) -> Result<bool, Report> {
    let name = function.name.to_string().to_lowercase();
    let parses = match name.as_str() {
        "to_char" => false,
        "to_timestamp" | "to_date" => true,
        _ => return Ok(false),
    };
    let FunctionArguments::List(list) = &mut function.args else { return Ok(false) };
    let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::Value(value)))] = list.args.as_mut_slice() else {
        return Ok(false);
    };
    let Value::SingleQuotedString(text) = &mut value.value else { return Ok(false) };
    if text.contains('%') {
        return Ok(false);
    }
    *text = format_of(text, parses).map_err(|pattern| {
        let line = format!(
            "{name}: `{pattern}` is not supported in a template; put text in double quotes, or use a format such as '%Y-%m-%d'"
        );
        Report::error("0A000", line)
    })?;
    Ok(true)
}

/// Patterns in any case, and their formats, empty if there is none. Longer ones first.
const NUMBERS: [(&str, &str); 20] = [
    ("sssss", ""),
    ("ssss", ""),
    ("iddd", ""),
    ("yyyy", "%Y"),
    ("yyy", ""),
    ("iyyy", "%G"),
    ("hh24", "%H"),
    ("hh12", "%I"),
    ("ddd", "%j"),
    ("yy", "%y"),
    ("mm", "%m"),
    ("dd", "%d"),
    ("hh", "%I"),
    ("mi", "%M"),
    ("ss", "%S"),
    ("ms", "%3f"),
    ("us", "%6f"),
    ("iw", "%V"),
    ("id", "%u"),
    ("q", "%q"),
];
/// Patterns in this case.
const NAMES: [(&str, &str); 6] = [("Mon", "%b"), ("Dy", "%a"), ("AM", "%p"), ("PM", "%p"), ("am", "%P"), ("pm", "%P")];
/// Patterns that PostgreSQL pads with spaces, unless `FM` is before them.
const PADDED_NAMES: [(&str, &str); 2] = [("Month", "%B"), ("Day", "%A")];

/// Returns the engine's format of a template, or the part that has none. `parses` tells that text is read with it.
fn format_of(template: &str, parses: bool) -> Result<String, String> {
    let mut format = String::new();
    let mut rest = template;
    while let Some(next) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').ok_or_else(|| rest.to_owned())?;
            format.push_str(text);
            rest = after;
            continue;
        }
        let fraction = rest.get(..3).filter(|part| parses && [".ms", ".us"].contains(&part.to_lowercase().as_str()));
        if let Some(fraction) = fraction {
            // Of any number of digits.
            format.push_str("%.f");
            rest = &rest[fraction.len()..];
            continue;
        }
        let (unpadded, pattern) = match rest.get(..2).filter(|part| part.eq_ignore_ascii_case("fm")) {
            Some(_) => (true, &rest[2..]),
            None => (false, rest),
        };
        let name = |(name, _): &&(&str, &str)| pattern.starts_with(name);
        let padded = PADDED_NAMES.iter().find(name);
        if let (Some((name, _)), false, false) = (padded, unpadded, parses) {
            return Err((*name).to_owned());
        }
        let number =
            |(name, _): &&(&str, &str)| pattern.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if let Some((name, named)) = padded.or_else(|| NAMES.iter().find(name)) {
            format.push_str(named);
            rest = &pattern[name.len()..];
        } else if let Some((name, number)) = NUMBERS.iter().find(number) {
            if number.is_empty() {
                return Err((*name).to_uppercase());
            }
            format.push_str(&if unpadded { number.replace('%', "%-") } else { (*number).to_owned() });
            rest = &pattern[name.len()..];
        } else if next.is_alphabetic() {
            return Err(rest.chars().take_while(|character| character.is_alphanumeric()).collect());
        } else {
            format.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    Ok(format)
}

/// Returns an interval that is multiplied by a number, or divided by one. `None` leaves the expression to the engine.
fn times(interval: &SqlExpr, number: &SqlExpr, divide: bool) -> Option<SqlExpr> {
    let interval = match interval {
        SqlExpr::Nested(inner) => inner,
        other => other,
    };
    let SqlExpr::Interval(written) = interval else { return None };
    let SqlExpr::Value(value) = written.value.as_ref() else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let unit = written.leading_field.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
    let text = format!("{text}{unit}");
    // Without a unit it is left, as a range such as YEAR TO MONTH.
    if written.last_field.is_some() || !text.contains(char::is_alphabetic) {
        return None;
    }
    let IntervalMonthDayNano { months, days, nanoseconds } = parse_interval_month_day_nano(&text).ok()?;
    if let (false, SqlExpr::Value(value)) = (divide, number)
        && let Value::Number(count, _) = &value.value
        && let Ok(count) = count.parse::<i32>()
    {
        let (months, days) = (months.checked_mul(count)?, days.checked_mul(count)?);
        let micros = (nanoseconds / 1_000).checked_mul(count.into())?;
        return expression(&format!("INTERVAL '{months} months {days} days {micros} microseconds'"));
    }
    // A month has no fixed length.
    if months != 0 {
        return None;
    }
    let micros = i64::from(days) * 86_400_000_000 + nanoseconds / 1_000;
    let number = printed(number.clone());
    let operator = if divide { '/' } else { '*' };
    expression(&format!(
        "arrow_cast(CAST(round(CAST({micros} AS DOUBLE) {operator} ({number})) AS BIGINT), '{MICROSECONDS}')"
    ))
}

/// Parses an expression that was written here.
fn expression(sql: &str) -> Option<SqlExpr> {
    parse_expression(sql).ok()
}

/// `timezone(zone, time)`, the function behind `AT TIME ZONE`: a time with a zone becomes the local time in `zone`, one without
/// becomes the instant at which it is that time in `zone`. The former is replaced by a cast when a plan is optimized. The latter
/// is not: a cast fails for a time that the clocks pass twice or leave out, where PostgreSQL takes the standard time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeZone {
    signature: Signature,
}

impl TimeZone {
    const NAME: &str = "timezone";

    fn new() -> Self {
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
            DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
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
        let naive = DateTime::from_timestamp(time.div_euclid(second), 0).ok_or_else(beyond)?.naive_utc();
        let offset = match zone.offset_from_local_datetime(&naive) {
            MappedLocalTime::Single(offset) => offset,
            // When clocks are set back, the later one is the standard time.
            MappedLocalTime::Ambiguous(_, standard) => standard,
            // When they are set forward, the standard time is the one before.
            MappedLocalTime::None => {
                let before = naive.checked_sub_signed(TimeDelta::hours(3)).ok_or_else(beyond)?;
                zone.offset_from_local_datetime(&before).earliest().ok_or_else(beyond)?
            }
        };
        let ahead = i64::from(offset.fix().local_minus_utc()) * second;
        time.checked_sub(ahead).ok_or_else(beyond)
    };
    let instants: PrimitiveArray<T> = times.as_primitive::<T>().try_unary(instant)?;
    Ok(Arc::new(instants.with_timezone(UTC)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_translated() {
        for (sql, expected) in [
            ("SELECT to_char(t, 'YYYY-MM-DD\"T\"HH24:MI:SS.MS')", "SELECT to_char(t, '%Y-%m-%dT%H:%M:%S.%3f')"),
            ("SELECT to_char(t, 'FMMonth FMDD, yyyy Q')", "SELECT to_char(t, '%B %-d, %Y %q')"),
            ("SELECT to_char(t, '%Y')", "SELECT to_char(t, '%Y')"),
            (
                "SELECT TO_TIMESTAMP('x', 'YYYY-MM-DD HH24:MI:SS.US')",
                "SELECT TO_TIMESTAMP('x', '%Y-%m-%d %H:%M:%S%.f')",
            ),
            ("SELECT to_date('x', 'DD.MM.YY')", "SELECT to_date('x', '%d.%m.%y')"),
            ("SELECT t AT TIME ZONE 'Asia/Tokyo'", "SELECT timezone('Asia/Tokyo', t)"),
            ("SELECT 2 * interval '1 month 3 days'", "SELECT INTERVAL '2 months 6 days 0 microseconds'"),
            (
                "SELECT INTERVAL '5 minutes' * floor(x / 5)",
                "SELECT arrow_cast(CAST(round(CAST(300000000 AS DOUBLE) * (FLOOR(x / 5))) AS BIGINT), \
                 'Duration(Microsecond)')",
            ),
            ("SELECT INTERVAL '1 month' * x", "SELECT INTERVAL '1 month' * x"),
            ("SELECT INTERVAL", "SELECT INTERVAL"),
            ("SELECT a FROM t WHERE to_charm = 1", "SELECT a FROM t WHERE to_charm = 1"),
        ] {
            assert_eq!(translated(sql.to_owned()).expect(sql), expected);
        }
    }

    #[test]
    fn a_pattern_without_counterpart_is_refused() {
        for (template, part) in [("Month", "Month"), ("DDTH", "TH"), ("999D9", "D9"), ("YYYY \"open", "\"open")] {
            assert_eq!(format_of(template, false).expect_err(template), part);
        }
    }
}
