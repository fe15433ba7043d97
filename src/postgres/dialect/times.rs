//! Dates and times: words such as `today`, offsets that PostgreSQL ignores, and parts (`extract`).

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, DateTimeField, ExactNumberInfo, Expr as SqlExpr, Query, SetExpr, TimezoneInfo,
};
use postgres_types::Type;

use super::super::report::Report;
use super::expressions::{cast_to, digits_of, literal_of, number, pair, text};
use super::time_zone::{TimeZone, UTC};
use super::type_names::type_named;
use crate::functions::{complete_time, midnight_of, without_zone};
use crate::session::{call, syntax};

/// A date or a time that PostgreSQL reads in another way than the engine: words such as `today`, and digits.
///
/// # Errors
/// Texts that the engine would complete.
pub(super) fn time_of(literal: &str, data_type: &SqlType) -> Result<Option<SqlExpr>, Report> {
    let Some(known) = type_named(data_type) else { return Ok(None) };
    let word = literal.trim().to_lowercase();
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let invalid = |name: &str| Report::error("22007", format!("invalid input syntax for type {name}: \"{literal}\""));
    let day = |days: i64| {
        let today = call("current_date", Vec::new());
        match days {
            0 => today,
            1.. => pair(today, BinaryOperator::Plus, number(&days.to_string())),
            _ => pair(today, BinaryOperator::Minus, number(&days.abs().to_string())),
        }
    };
    let to = |expr: SqlExpr| Some(cast_to(expr, data_type.clone()));
    Ok(match known {
        Type::DATE | Type::TIMESTAMP | Type::TIMESTAMPTZ => match word.as_str() {
            "today" => to(day(0)),
            "tomorrow" => to(day(1)),
            "yesterday" => to(day(-1)),
            "now" => to(call("now", Vec::new())),
            "epoch" => {
                to(text("1970-01-01 00:00:00Z")).filter(|_| known == Type::TIMESTAMPTZ).or(to(text("1970-01-01")))
            }
            _ if word.split('-').count() == 2 && word.replace('-', "").bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(invalid(if known == Type::DATE { "date" } else { "timestamp" }));
            }
            _ if known != Type::TIMESTAMPTZ => without_zone(literal)
                .and_then(|local| to(text(&complete_time(local).unwrap_or_else(|| local.to_owned())))),
            _ => midnight_of(literal).and_then(|midnight| to(text(&midnight))),
        },
        Type::TIME if word == "now" => to(call("now", Vec::new())),
        Type::TIME if digits => match word.len() {
            4 => to(text(&format!("{}:{}:00", &word[..2], &word[2..]))),
            6 => to(text(&format!("{}:{}:{}", &word[..2], &word[2..4], &word[4..]))),
            _ => return Err(invalid("time")),
        },
        // The engine would read nanoseconds.
        Type::TIME if word.parse::<i64>().is_ok() => return Err(invalid("time")),
        _ => None,
    })
}

/// Casts literal texts of VALUES beside a date or a time to its type, and all items beside an instant to instants: the engine would
/// refuse the texts, and make times without a zone of dates and instants.
pub(super) fn times_in_values(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let columns = values.rows.iter().map(|row| row.content.len()).max().unwrap_or(0);
    for at in 0..columns {
        let types: Vec<Type> =
            values.rows.iter().filter_map(|row| row.content.get(at)).filter_map(written_type).collect();
        let known = [Type::TIMESTAMPTZ, Type::TIMESTAMP, Type::DATE].into_iter().find(|known| types.contains(known));
        let Some(known) = known else { continue };
        let is_instant = known == Type::TIMESTAMPTZ;
        let to = match known {
            Type::DATE => SqlType::Date,
            _ => SqlType::Timestamp(None, if is_instant { TimezoneInfo::Tz } else { TimezoneInfo::None }),
        };
        for item in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            if literal_of(item).is_some() {
                *item = cast_to(item.clone(), to.clone());
            } else if is_instant && written_type(item) != Some(Type::TIMESTAMPTZ) && digits_of(item).is_none() {
                *item = cast_to(SqlExpr::Nested(Box::new(item.clone())), to.clone());
            }
        }
    }
}

/// True for an expression that is written as an instant.
fn is_instant(expr: &SqlExpr) -> bool {
    let of_type = |data_type: &SqlType| type_named(data_type) == Some(Type::TIMESTAMPTZ);
    match expr {
        SqlExpr::Cast { data_type, .. } => of_type(data_type),
        SqlExpr::TypedString(typed) => of_type(&typed.data_type),
        SqlExpr::Nested(inner) => is_instant(inner),
        SqlExpr::Function(function) => {
            let now = ["now", "current_timestamp", "transaction_timestamp", "statement_timestamp", "clock_timestamp"];
            now.contains(&function.name.to_string().to_lowercase().as_str())
        }
        _ => false,
    }
}

/// The type of an expression that is written as a date, or as a time with one.
fn written_type(expr: &SqlExpr) -> Option<Type> {
    let of_day = |data_type: &SqlType| {
        type_named(data_type).filter(|known| [Type::DATE, Type::TIMESTAMP, Type::TIMESTAMPTZ].contains(known))
    };
    match expr {
        SqlExpr::Cast { data_type, .. } => of_day(data_type),
        SqlExpr::TypedString(typed) => of_day(&typed.data_type),
        SqlExpr::Nested(inner) => written_type(inner),
        SqlExpr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, right } => {
            let left = written_type(left)?;
            match right.as_ref() {
                SqlExpr::Interval(_) => Some(if left == Type::DATE { Type::TIMESTAMP } else { left }),
                days => digits_of(days).map(|_| left).filter(|left| *left == Type::DATE),
            }
        }
        SqlExpr::Function(function) if function.name.to_string().eq_ignore_ascii_case("current_date") => {
            Some(Type::DATE)
        }
        other => is_instant(other).then_some(Type::TIMESTAMPTZ),
    }
}

/// The arguments of `generate_series`, in which dates are instants, or local times beside one: PostgreSQL has no series of dates.
/// `None` if an argument has a date in it, and its type shows only in the plan.
pub(super) fn series_without_dates(mut arguments: Vec<SqlExpr>) -> Option<Vec<SqlExpr>> {
    let [first, last, _] = arguments.as_slice() else { return Some(arguments) };
    let mut has_date = false;
    for end in [first, last] {
        syntax::expressions(end, &mut |part| has_date |= written_type(part) == Some(Type::DATE));
    }
    if !has_date {
        return Some(arguments);
    }
    let type_of = |end: &SqlExpr| written_type(end).or_else(|| literal_of(end).map(|_| Type::UNKNOWN));
    let types = [type_of(first)?, type_of(last)?];
    let is_local = types.contains(&Type::TIMESTAMP) && !types.contains(&Type::TIMESTAMPTZ);
    let zone = if is_local { TimezoneInfo::None } else { TimezoneInfo::Tz };
    for (end, known) in arguments.iter_mut().zip(&types) {
        if *known != Type::TIMESTAMPTZ {
            let inner = SqlExpr::Nested(Box::new(end.clone()));
            let inner = if literal_of(end).is_some() { end.clone() } else { inner };
            *end = cast_to(inner, SqlType::Timestamp(None, zone));
        }
    }
    Some(arguments)
}

/// A part of a time as a number that can have a fraction: numeric for EXTRACT, double precision for `date_part`.
pub(super) fn part_of(part: &str, time: &SqlExpr, exact: bool, field: &DateTimeField) -> Option<SqlExpr> {
    let part = part.to_lowercase();
    let unit = |unit: &str| call("date_part", vec![text(unit), time.clone()]);
    let decimal =
        |expr, digits, scale| cast_to(expr, SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, scale)));
    let micros = || unit("microsecond");
    let scaled = match part.as_str() {
        "second" | "seconds" | "sec" | "secs" => Some(("0.000001", 6)),
        "millisecond" | "milliseconds" | "msec" | "msecs" => Some(("0.001", 3)),
        "timezone" | "timezone_hour" | "timezone_minute" => return Some(offset_of_zone(&part, time, exact)),
        "century" => return Some(of_years(time, exact, 100)),
        "millennium" => return Some(of_years(time, exact, 1_000)),
        "decade" => return Some(of_years(time, exact, 10)),
        // Of double precision already, and of words that the engine does not know.
        "epoch" => return None,
        _ if *field == DateTimeField::NoDateTime && exact => return None,
        _ => None,
    };
    Some(match (scaled, exact) {
        (Some((factor, scale)), true) => {
            let product = pair(decimal(micros(), 10, 0), BinaryOperator::Multiply, decimal(text(factor), 7, scale));
            decimal(product, 11, scale)
        }
        (Some((factor, _)), false) => {
            let divisor = if factor == "0.001" { "1000" } else { "1000000" };
            let double = |expr| cast_to(expr, SqlType::DoublePrecision);
            pair(double(micros()), BinaryOperator::Divide, double(number(divisor)))
        }
        (None, true) => decimal(unit(&part), 10, 0),
        (None, false) => cast_to(unit(&part), SqlType::DoublePrecision),
    })
}

/// The offset of the session's zone at an instant: its local time, taken for one of UTC, minus the instant.
fn offset_of_zone(part: &str, time: &SqlExpr, exact: bool) -> SqlExpr {
    let local = cast_to(time.clone(), SqlType::Timestamp(None, TimezoneInfo::None));
    let epoch = |time: SqlExpr| call("date_part", vec![text("epoch"), time]);
    let seconds = pair(epoch(call(TimeZone::NAME, vec![text(UTC), local])), BinaryOperator::Minus, epoch(time.clone()));
    let whole = |expr: SqlExpr, divisor: &str| call("trunc", vec![pair(expr, BinaryOperator::Divide, number(divisor))]);
    let value = match part {
        "timezone_hour" => whole(seconds, "3600.0"),
        "timezone_minute" => whole(pair(seconds, BinaryOperator::Modulo, number("3600.0")), "60.0"),
        _ => seconds,
    };
    match exact {
        true => cast_to(value, SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))),
        false => value,
    }
}

/// The decade, century or millennium, which intervals have as well.
fn of_years(time: &SqlExpr, exact: bool, years: u16) -> SqlExpr {
    let spans = call("postgres_years", vec![number(&years.to_string()), time.clone()]);
    match exact {
        true => cast_to(spans, SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))),
        false => spans,
    }
}
