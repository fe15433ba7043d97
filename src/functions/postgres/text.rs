//! Values as text: as PostgreSQL prints them with `DateStyle = ISO`, `IntervalStyle = postgres` and `bytea_output = hex`.

use std::fmt::Write;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    UInt32Type,
};
use arrow::temporal_conversions::{date32_to_datetime, timestamp_us_to_datetime};
use chrono::{Datelike, NaiveDateTime, Offset, TimeZone, Timelike};

/// Writes a value that is not missing. Instants are written in the time zone of their type.
pub(crate) fn put_text(out: &mut impl Write, column: &ArrayRef, row: usize) {
    // Writing to memory does not fail.
    let _ = match column.data_type() {
        DataType::Boolean => out.write_str(if column.as_boolean().value(row) { "t" } else { "f" }),
        DataType::Int16 => write!(out, "{}", column.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => write!(out, "{}", column.as_primitive::<Int32Type>().value(row)),
        DataType::UInt32 => write!(out, "{}", column.as_primitive::<UInt32Type>().value(row)),
        DataType::Int64 => write!(out, "{}", column.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => {
            let value = column.as_primitive::<Float32Type>().value(row);
            out.write_str(&float(&format!("{value:e}"), value.into(), 6))
        }
        DataType::Float64 => {
            let value = column.as_primitive::<Float64Type>().value(row);
            out.write_str(&float(&format!("{value:e}"), value, 15))
        }
        DataType::Decimal128(..) => out.write_str(&column.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Binary => {
            let _ = out.write_str("\\x");
            column.as_binary::<i32>().value(row).iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
        DataType::Date32 => match date32_to_datetime(column.as_primitive::<Date32Type>().value(row)) {
            Some(at) => put_date(out, at, ""),
            None => out.write_str("infinity"),
        },
        DataType::Time64(TimeUnit::Microsecond) => {
            put_clock(out, column.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            put_timestamp(out, column.as_primitive::<TimestampMicrosecondType>().value(row), zone.as_deref())
        }
        DataType::Interval(_) => out.write_str(&interval(column.as_primitive::<IntervalMonthDayNanoType>().value(row))),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let _ = out.write_char('{');
            for at in 0..items.len() {
                let _ = if at > 0 { out.write_char(',') } else { Ok(()) };
                if items.data_type().is_null() || items.is_null(at) {
                    let _ = out.write_str("NULL");
                    continue;
                }
                let mut item = String::new();
                put_text(&mut item, &items, at);
                put_item(out, &item);
            }
            out.write_char('}')
        }
        // A vector.
        DataType::LargeList(_) => {
            let items = column.as_list::<i64>().value(row);
            for at in 0..items.len() {
                let _ = if at > 0 { out.write_char(' ') } else { Ok(()) };
                put_text(out, &items, at);
            }
            Ok(())
        }
        _ => match column.as_string_opt::<i32>().map(|texts| texts.value(row)) {
            // PostgreSQL has no zero characters.
            Some(text) if text.contains('\0') => out.write_str(&text.replace('\0', "\u{fffd}")),
            Some(text) => out.write_str(text),
            None => Ok(()),
        },
    };
}

/// Writes an item of an array, in quotes if it would be misread without them.
fn put_item(out: &mut impl Write, item: &str) {
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_ascii_whitespace() || c == '\u{b}';
    if !item.is_empty() && !item.eq_ignore_ascii_case("null") && !item.contains(special) {
        let _ = out.write_str(item);
        return;
    }
    let _ = out.write_char('"');
    for c in item.chars() {
        let _ = if matches!(c, '"' | '\\') { out.write_char('\\') } else { Ok(()) };
        let _ = out.write_char(c);
    }
    let _ = out.write_char('"');
}

/// Writes a date, with what follows it before the era.
fn put_date(out: &mut impl Write, at: NaiveDateTime, rest: &str) -> std::fmt::Result {
    let year = at.year();
    let (shown, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    write!(out, "{shown:04}-{:02}-{:02}{rest}{era}", at.month(), at.day())
}

/// Writes an instant with the offset of its zone, or a local time.
fn put_timestamp(out: &mut impl Write, micros: i64, zone: Option<&str>) -> std::fmt::Result {
    let Some(at) = timestamp_us_to_datetime(micros) else { return out.write_str("infinity") };
    let zone = zone
        .map(|zone| zone.parse::<Tz>().map_or(0, |zone| zone.offset_from_utc_datetime(&at).fix().local_minus_utc()));
    let at = at.checked_add_signed(chrono::TimeDelta::seconds(zone.unwrap_or(0).into())).unwrap_or(at);
    let mut rest = " ".to_owned();
    let clock = i64::from(at.num_seconds_from_midnight()) * 1_000_000 + i64::from(at.nanosecond() / 1_000);
    put_clock(&mut rest, clock)?;
    if let Some(offset) = zone {
        let (sign, ahead) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
        write!(rest, "{sign}{:02}", ahead / 3_600)?;
        if ahead % 3_600 > 0 {
            write!(rest, ":{:02}", ahead / 60 % 60)?;
        }
        if ahead % 60 > 0 {
            write!(rest, ":{:02}", ahead % 60)?;
        }
    }
    put_date(out, at, &rest)
}

/// Writes microseconds since midnight as hours, minutes and seconds.
fn put_clock(out: &mut impl Write, micros: i64) -> std::fmt::Result {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    write!(out, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
    put_fraction(out, fraction)
}

fn put_fraction(out: &mut impl Write, micros: i64) -> std::fmt::Result {
    match micros {
        0 => Ok(()),
        micros => out.write_str(format!(".{micros:06}").trim_end_matches('0')),
    }
}

/// A number with the fewest digits that identify it, from its scientific form: as PostgreSQL, plain from 1e-4 to below the power of
/// ten of so many digits: 15 of double precision, 6 of single precision.
fn float(scientific: &str, value: f64, digits_of_type: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific.to_owned() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..digits_of_type).contains(&exponent) && value != 0.0 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let plain: String = digits.chars().filter(|digit| *digit != '.').collect();
    let point = usize::try_from(exponent + 1).unwrap_or(0);
    match (exponent, plain.len()) {
        (..0, _) => format!("{sign}0.{}{plain}", "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0))),
        (_, length) if length <= point => format!("{sign}{plain}{}", "0".repeat(point - length)),
        _ => format!("{sign}{}.{}", &plain[..point], &plain[point..]),
    }
}

/// An interval as `IntervalStyle = postgres` prints it.
fn interval(interval: IntervalMonthDayNano) -> String {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let mut parts = Vec::new();
    // After a negative part, a positive one has its sign.
    let mut negative = false;
    let mut part = |number: i32, noun: &str| {
        if number != 0 {
            let sign = if negative && number > 0 { "+" } else { "" };
            let plural = if number == 1 { "" } else { "s" };
            parts.push(format!("{sign}{number} {noun}{plural}"));
            negative = number < 0;
        }
    };
    part(years, "year");
    part(months, "mon");
    part(interval.days, "day");
    let micros = interval.nanoseconds / 1_000;
    if micros != 0 || parts.is_empty() {
        let sign = match () {
            () if micros < 0 => "-",
            () if negative => "+",
            () => "",
        };
        let whole = micros.unsigned_abs();
        let seconds = whole / 1_000_000;
        let mut clock = format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let _ = put_fraction(&mut clock, i64::try_from(whole % 1_000_000).unwrap_or(0));
        parts.push(clock);
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn numbers_are_printed_as_postgres_prints_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        each(cases, |(value, expected)| {
            assert_eq!(float(&format!("{value:e}"), value, 15), expected);
        });
        for (value, expected) in [(123_456.0_f32, "123456"), (1_234_567.0, "1.234567e+06"), (0.1, "0.1")] {
            assert_eq!(float(&format!("{value:e}"), value.into(), 6), expected);
        }
    }

    #[test]
    fn intervals_have_postgres_style() {
        let of = |months, days, nanoseconds| interval(IntervalMonthDayNano { months, days, nanoseconds });
        assert_eq!(of(14, -3, 3_661_500_000_000), "1 year 2 mons -3 days +01:01:01.5");
        assert_eq!(of(0, 0, 0), "00:00:00");
        assert_eq!(of(0, 1, 0), "1 day");
        assert_eq!(of(0, 0, -1_000_000_000), "-00:00:01");
    }

    #[test]
    fn items_of_arrays_are_quoted_if_needed() {
        let item = |text: &str| {
            let mut out = String::new();
            put_item(&mut out, text);
            out
        };
        assert_eq!(
            [item("a"), item(""), item("Null"), item("a b"), item("a\"\\")],
            ["a", "\"\"", "\"Null\"", "\"a b\"", "\"a\\\"\\\\\""]
        );
    }

    #[test]
    fn instants_have_the_offset_of_their_zone() {
        let text = |zone| {
            let mut out = String::new();
            // 2026-05-01 12:00:00.25 UTC
            put_timestamp(&mut out, 1_777_636_800_250_000, zone).expect("text");
            out
        };
        assert_eq!(text(None), "2026-05-01 12:00:00.25");
        assert_eq!(text(Some("UTC")), "2026-05-01 12:00:00.25+00");
        assert_eq!(text(Some("America/St_Johns")), "2026-05-01 09:30:00.25-02:30");
        assert_eq!(text(Some("+05:30")), "2026-05-01 17:30:00.25+05:30");
    }
}
