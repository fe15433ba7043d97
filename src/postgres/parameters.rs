//! Values of parameters: from the bytes of a Bind message to scalars of the engine.
//!
//! The type is the type that the client declared, or else the type in the description of the statement. Binary formats are
//! decoded by the crate `postgres-types`. Texts are cast by the engine, because its casts accept the text formats of
//! PostgreSQL.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};
use datafusion::arrow::array::{Array, ListArray, StringArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use postgres_types::{FromSql, Kind, Type};

use super::report::Report;
use crate::functions::{NotAnArray, complete_time, items, midnight_of, read_interval, without_zone};

/// Decodes one value. `number` counts parameters from 1, for errors. An instant in text that does not state its zone is in `zone`.
///
/// # Errors
/// 22P02 or 22P03 for a value that is not of its type, 0A000 for a type that is not supported.
pub(super) fn decode(
    value: Option<&Bytes>,
    binary: bool,
    postgres: &Type,
    number: usize,
    zone: &str,
) -> Result<ScalarValue, Report> {
    let data_type = arrow_type(postgres).ok_or_else(|| {
        Report::error("0A000", format!("parameter ${number} has type {}, which is not supported", postgres.name()))
    })?;
    let Some(bytes) = value else {
        return ScalarValue::try_from(&data_type).map_err(|error| Report::error("22000", error.to_string()));
    };
    if binary {
        let decoded = from_binary(bytes, postgres, &data_type);
        return decoded.map_err(|error| match error.downcast_ref::<NotAnArray>() {
            Some(NotAnArray::Nested) => Report::error("0A000", format!("parameter ${number}: {}", NotAnArray::Nested)),
            _ => {
                Report::error("22P03", format!("parameter ${number} is not a binary value of type {}", postgres.name()))
            }
        });
    }
    let wrong = || Report::error("22P02", format!("parameter ${number} is not a value of type {}", postgres.name()));
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Report::error("22021", format!("parameter ${number} is not valid UTF-8")))?;
    match (&data_type, items(text)) {
        (DataType::List(_), Err(error)) => {
            let code = if error == NotAnArray::Nested { "0A000" } else { "22P02" };
            Err(Report::error(code, format!("parameter ${number}: {}", error.line(text))))
        }
        _ => from_text(text, &data_type, zone).ok_or_else(wrong),
    }
}

/// The engine's type for a PostgreSQL type; `None` if there is none.
pub(super) fn arrow_type(postgres: &Type) -> Option<DataType> {
    if let Kind::Array(item) = postgres.kind() {
        return Some(DataType::new_list(arrow_type(item).filter(|item| !item.is_nested())?, true));
    }
    Some(match *postgres {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 | Type::OID => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        // The digits of an actual value decide.
        Type::NUMERIC => DataType::Decimal128(38, 10),
        Type::BYTEA => DataType::Binary,
        Type::DATE => DataType::Date32,
        Type::TIME => DataType::Time64(TimeUnit::Nanosecond),
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::CHAR | Type::UUID => {
            DataType::Utf8
        }
        Type::JSON | Type::JSONB | Type::XML => DataType::Utf8,
        _ => return None,
    })
}

/// As [`arrow_type`], with the instants of a session in `zone`.
pub(super) fn arrow_type_in(zone: &str, postgres: &Type) -> Option<DataType> {
    Some(match (arrow_type(postgres)?, postgres.kind()) {
        (DataType::List(_), Kind::Array(item)) => DataType::new_list(arrow_type_in(zone, item)?, true),
        (DataType::Timestamp(unit, Some(_)), _) => DataType::Timestamp(unit, Some(zone.into())),
        (other, _) => other,
    })
}

fn from_text(text: &str, data_type: &DataType, zone: &str) -> Option<ScalarValue> {
    let is_time = matches!(data_type, DataType::Timestamp(..) | DataType::Date32);
    let complete = if is_time { complete_time(text) } else { None };
    let text = complete.as_deref().unwrap_or(text);
    match data_type {
        DataType::Timestamp(unit, Some(_)) => {
            let there = DataType::Timestamp(*unit, Some(zone.into()));
            let instant = |text: &str| {
                let at = ScalarValue::from(text).cast_to(&there).and_then(|at| at.cast_to(data_type));
                at.ok().filter(|value| !value.is_null())
            };
            // A date with a zone is its midnight there.
            instant(midnight_of(text).as_deref().unwrap_or(text.trim()))
        }
        // A zone is ignored, and so is the time of a date.
        DataType::Timestamp(_, None) | DataType::Date32 => {
            let local = without_zone(text).unwrap_or(text.trim());
            let time = DataType::Timestamp(TimeUnit::Microsecond, None);
            let at = match (data_type, local.contains(':')) {
                (DataType::Date32, true) => ScalarValue::from(local).cast_to(&time),
                _ => Ok(ScalarValue::from(local)),
            };
            at.and_then(|at| at.cast_to(data_type)).ok().filter(|value| !value.is_null())
        }
        DataType::Interval(_) => {
            let span = read_interval(text, None).ok()?.value().ok()?;
            Some(ScalarValue::IntervalMonthDayNano(Some(span)))
        }
        DataType::Utf8 => Some(ScalarValue::from(text)),
        DataType::Boolean => {
            // Unambiguous beginnings count as well.
            let text = text.trim().to_lowercase();
            let is = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
            let yes = is("true", 1) || is("yes", 1) || is("on", 2) || text == "1";
            let no = is("false", 1) || is("no", 1) || is("off", 2) || text == "0";
            (yes || no).then_some(ScalarValue::Boolean(Some(yes)))
        }
        DataType::Decimal128(..) => decimal(text.trim()),
        DataType::Binary => {
            let digits = text.strip_prefix("\\x")?;
            let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
            Some(ScalarValue::Binary(Some(bytes)))
        }
        DataType::List(item) => {
            let items = items(text).ok()?;
            if is_cast(item.data_type()) {
                return cast_together(&items, item);
            }
            let items = items.into_iter().map(|text| match text {
                Some(text) => from_text(&text, item.data_type(), zone),
                None => ScalarValue::try_from(item.data_type()).ok(),
            });
            list(items.collect::<Option<Vec<_>>>()?, item.data_type())
        }
        data_type => ScalarValue::from(text.trim()).cast_to(data_type).ok().filter(|value| !value.is_null()),
    }
}

/// True for types whose texts are cast by the engine alone.
fn is_cast(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating()
}

/// An array of the numbers in texts, cast in one step: a cast of each one would take arrays of one item. `None` if one of them is
/// not a number.
fn cast_together(texts: &[Option<String>], item: &FieldRef) -> Option<ScalarValue> {
    let texts: StringArray = texts.iter().map(|text| text.as_deref().map(str::trim)).collect();
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let values = cast_with_options(&texts, item.data_type(), &options).ok()?;
    if values.null_count() != texts.null_count() {
        return None;
    }
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let list =
        ListArray::try_new(Arc::new(Field::new_list_field(item.data_type().clone(), true)), offsets, values, None);
    Some(ScalarValue::List(Arc::new(list.ok()?)))
}

fn from_binary(
    bytes: &[u8],
    postgres: &Type,
    data_type: &DataType,
) -> Result<ScalarValue, Box<dyn Error + Sync + Send>> {
    fn read<'a, T: FromSql<'a>>(postgres: &Type, bytes: &'a [u8]) -> Result<T, Box<dyn Error + Sync + Send>> {
        T::from_sql(postgres, bytes)
    }
    if let (Kind::Array(item), DataType::List(field)) = (postgres.kind(), data_type) {
        let items = array(bytes)?;
        let items = items.into_iter().map(|value| match value {
            Some(bytes) => from_binary(bytes, item, field.data_type()),
            None => Ok(ScalarValue::try_from(field.data_type())?),
        });
        let items = items.collect::<Result<Vec<_>, _>>()?;
        return list(items, field.data_type()).ok_or_else(|| "not numbers of at most 38 digits".into());
    }
    Ok(match *postgres {
        Type::BOOL => ScalarValue::Boolean(Some(read(postgres, bytes)?)),
        Type::INT2 => ScalarValue::Int16(Some(read(postgres, bytes)?)),
        Type::INT4 => ScalarValue::Int32(Some(read(postgres, bytes)?)),
        Type::INT8 => ScalarValue::Int64(Some(read(postgres, bytes)?)),
        Type::OID => ScalarValue::Int64(Some(read::<u32>(postgres, bytes)?.into())),
        Type::FLOAT4 => ScalarValue::Float32(Some(read(postgres, bytes)?)),
        Type::FLOAT8 => ScalarValue::Float64(Some(read(postgres, bytes)?)),
        Type::NUMERIC => numeric(bytes).and_then(|text| decimal(&text)).ok_or("not a number of at most 38 digits")?,
        Type::BYTEA => ScalarValue::Binary(Some(bytes.to_vec())),
        Type::DATE => {
            let date: NaiveDate = read(postgres, bytes)?;
            ScalarValue::Date32(Some(i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days())?))
        }
        Type::TIME => {
            let time: NaiveTime = read(postgres, bytes)?;
            // As the engine's type TIME.
            let nanos = i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond());
            ScalarValue::Time64Nanosecond(Some(nanos))
        }
        Type::TIMESTAMP => {
            let at: NaiveDateTime = read(postgres, bytes)?;
            ScalarValue::TimestampMicrosecond(Some(at.and_utc().timestamp_micros()), None)
        }
        Type::TIMESTAMPTZ => {
            let at: DateTime<Utc> = read(postgres, bytes)?;
            ScalarValue::TimestampMicrosecond(Some(at.timestamp_micros()), Some(Arc::from("UTC")))
        }
        Type::INTERVAL => {
            let (micros, rest) = bytes.split_first_chunk::<8>().ok_or("too short")?;
            let (days, rest) = rest.split_first_chunk::<4>().ok_or("too short")?;
            let months = rest.try_into()?;
            let nanoseconds = i64::from_be_bytes(*micros).checked_mul(1_000).ok_or("too long")?;
            ScalarValue::new_interval_mdn(i32::from_be_bytes(months), i32::from_be_bytes(*days), nanoseconds)
        }
        Type::UUID => {
            let bytes: [u8; 16] = bytes.try_into()?;
            let digits = data_encoding::HEXLOWER.encode(&bytes);
            let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
            ScalarValue::from(parts.join("-"))
        }
        // A version comes before the text.
        Type::JSONB => ScalarValue::from(std::str::from_utf8(bytes.strip_prefix(&[1]).ok_or("not version 1")?)?),
        _ => ScalarValue::from(std::str::from_utf8(bytes)?),
    })
}

/// An array of items. Numbers get the digits after the point that the longest of them has; `None` if one then has more than 38 digits.
fn list(mut items: Vec<ScalarValue>, item: &DataType) -> Option<ScalarValue> {
    let scales = items.iter().filter_map(|item| match item {
        ScalarValue::Decimal128(Some(_), _, scale) => Some(*scale),
        _ => None,
    });
    let item = match scales.max() {
        Some(common) => {
            for item in &mut items {
                if let ScalarValue::Decimal128(value, _, scale) = item {
                    *item = ScalarValue::Decimal128(rescaled(*value, *scale, common)?, 38, common);
                }
            }
            DataType::Decimal128(38, common)
        }
        None => item.clone(),
    };
    Some(ScalarValue::List(ScalarValue::new_list_nullable(&items, &item)))
}

/// A number with more digits after the point; `None` if it then has more than 38 digits. A missing one stays missing.
fn rescaled(value: Option<i128>, scale: i8, to: i8) -> Option<Option<i128>> {
    let Some(value) = value else { return Some(None) };
    let factor = 10_i128.checked_pow(u32::try_from(to.checked_sub(scale)?).ok()?)?;
    let value = value.checked_mul(factor)?;
    (value.unsigned_abs() < 10_u128.pow(38)).then_some(Some(value))
}

/// The values of a one-dimensional array in its binary form, whose first index is 1.
fn array(bytes: &[u8]) -> Result<Vec<Option<&[u8]>>, NotAnArray> {
    use NotAnArray::{Malformed, Nested};
    fn number<'a>(bytes: &mut &'a [u8]) -> Result<i32, NotAnArray> {
        let (number, rest): (&'a [u8; 4], &'a [u8]) = bytes.split_first_chunk().ok_or(Malformed)?;
        *bytes = rest;
        Ok(i32::from_be_bytes(*number))
    }
    let mut rest = bytes;
    let [dimensions, _has_missing, _type] = [number(&mut rest)?, number(&mut rest)?, number(&mut rest)?];
    if dimensions == 0 {
        return Ok(Vec::new());
    }
    if dimensions != 1 {
        return Err(Nested);
    }
    let [length, first] = [number(&mut rest)?, number(&mut rest)?];
    if first != 1 {
        return Err(Nested);
    }
    let mut values = Vec::new();
    for _ in 0..length {
        values.push(match number(&mut rest)? {
            -1 => None,
            length => {
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                let (value, after) = rest.split_at_checked(length).ok_or(Malformed)?;
                rest = after;
                Some(value)
            }
        });
    }
    if rest.is_empty() { Ok(values) } else { Err(Malformed) }
}

/// The text of a numeric of groups of four digits; `None` if it is not a number, or has more digits than a decimal.
fn numeric(bytes: &[u8]) -> Option<String> {
    let mut words = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight, sign, scale) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let weight = i32::from(weight.cast_signed());
    let groups: Vec<u16> = words.collect();
    if groups.len() != usize::from(count) || !bytes.len().is_multiple_of(2) || groups.iter().any(|group| *group > 9_999)
    {
        return None;
    }
    let mut text = match sign {
        0 => String::new(),
        0x4000 => "-".to_owned(),
        _ => return None,
    };
    let group = |at: i32| usize::try_from(weight - at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    // A decimal has 38 digits: more groups cannot fit.
    if weight > 9 || scale > 38 {
        return None;
    }
    if weight < 0 {
        text.push('0');
    }
    (0..=weight).rev().for_each(|at| text.push_str(&format!("{:04}", group(at))));
    if scale > 0 {
        let digits: String = (1..=i32::from(scale).div_euclid(4) + 1).map(|at| format!("{:04}", group(-at))).collect();
        text.push('.');
        text.push_str(&digits[..usize::from(scale)]);
    }
    Some(text)
}

/// A number such as `-1.50` or `2e3`; `None` if it has more than 38 digits.
fn decimal(text: &str) -> Option<ScalarValue> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let zeros = usize::try_from(scale.checked_neg()?).unwrap_or(0);
    if !(-38..=38).contains(&scale) || fraction.starts_with(['+', '-']) {
        return None;
    }
    let number: i128 = format!("{whole}{fraction}{}", "0".repeat(zeros)).parse().ok()?;
    (number.unsigned_abs() < 10_u128.pow(38))
        .then(|| ScalarValue::Decimal128(Some(number), 38, i8::try_from(scale.max(0)).unwrap_or(i8::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn texts_become_values_of_their_type() {
        let text = |text: &str, postgres: &Type| {
            decode(Some(&Bytes::copy_from_slice(text.as_bytes())), false, postgres, 1, "UTC")
        };
        assert_eq!(text("12", &Type::INT4), Ok(ScalarValue::Int32(Some(12))));
        assert_eq!(text("t", &Type::BOOL), Ok(ScalarValue::Boolean(Some(true))));
        assert_eq!(text("of", &Type::BOOL), Ok(ScalarValue::Boolean(Some(false))));
        assert_eq!(text("-1.50", &Type::NUMERIC), Ok(ScalarValue::Decimal128(Some(-150), 38, 2)));
        assert_eq!(text("\\x00ff", &Type::BYTEA), Ok(ScalarValue::Binary(Some(vec![0, 255]))));
        assert_eq!(text("2026-05-01", &Type::DATE), Ok(ScalarValue::Date32(Some(20_574))));
        // As drivers write days and times of a zone.
        let cases = [
            ("2026-05-01 +02", "2026-05-01", Type::DATE),
            ("2026-05-01Z", "2026-05-01", Type::DATE),
            ("2026-05-01 Europe/Berlin", "2026-05-01", Type::DATE),
            ("2026-05-01+02", "2026-05-01 00:00:00", Type::TIMESTAMP),
            ("2026-05-01+2", "2026-05-01 00:00:00+02:00", Type::TIMESTAMPTZ),
            ("2026-05-01 00:30:00+02", "2026-05-01", Type::DATE),
            ("2026-05-01 00:30:00+02", "2026-05-01 00:30:00", Type::TIMESTAMP),
            ("2026-05-01 +02", "2026-05-01 00:00:00+02:00", Type::TIMESTAMPTZ),
            ("2026-05-01", "2026-05-01 00:00:00+00", Type::TIMESTAMPTZ),
            ("2026-05-01 10:00", "2026-05-01 10:00:00+00", Type::TIMESTAMPTZ),
            ("2026-05-01T10:00+02", "2026-05-01 08:00:00+00", Type::TIMESTAMPTZ),
            ("2026-05-01T10:00", "2026-05-01 10:00:00", Type::TIMESTAMP),
            ("2026-05-01 10:00", "2026-05-01", Type::DATE),
            ("1 day 02:00:00", "P1DT2H", Type::INTERVAL),
            ("02:30:00", "2 hours 30 minutes", Type::INTERVAL),
        ];
        each(cases, |(driver, plain, postgres)| {
            assert!(text(driver, &postgres).is_ok(), "{driver}");
            assert_eq!(text(driver, &postgres), text(plain, &postgres), "{driver}");
        });
        let list = text("{a,\"b \\\"c\\\"\",NULL,\"null\"}", &Type::TEXT_ARRAY).expect("a list");
        assert_eq!(list.to_string(), "[a, b \"c\", , null]");
        let many = format!("{{{} , NULL, -7}}", vec!["12"; 240_000].join(","));
        let Ok(ScalarValue::List(list)) = text(&many, &Type::INT4_ARRAY) else { panic!("an array") };
        let last = ScalarValue::try_from_array(&list.value(0), 240_001).expect("the last item");
        assert_eq!((list.value(0).len(), list.value(0).null_count(), last), (240_002, 1, ScalarValue::Int32(Some(-7))));
        assert_eq!(text("{ 1.5 ,2}", &Type::FLOAT8_ARRAY).expect("an array").to_string(), "[1.5, 2.0]");
        // Numbers keep their value if others have more digits after the point.
        let numbers = [
            ("{1.5,2}", "[1.5, 2.0]"),
            ("{NULL,1,2.25}", "[, 1.00, 2.25]"),
            ("{1e3,0.000000000001}", "[1000.000000000000, 0.000000000001]"),
            ("{12345678901234567890123456789012345678}", "[12345678901234567890123456789012345678]"),
            ("{NULL}", "[]"),
            ("{}", "[]"),
        ];
        each(numbers, |(numbers, right)| {
            assert_eq!(text(numbers, &Type::NUMERIC_ARRAY).expect("an array").to_string(), right, "{numbers}");
        });
        let cases = [
            ("x", Type::INT4),
            ("{12345678901234567890123456789012345678,0.1}", Type::NUMERIC_ARRAY),
            ("{1,NaN}", Type::NUMERIC_ARRAY),
            ("{1,x}", Type::INT4_ARRAY),
            ("{1,\"\"}", Type::FLOAT8_ARRAY),
            ("{40000}", Type::INT2_ARRAY),
            ("{2026-05-01,infinity}", Type::TIMESTAMP_ARRAY),
            ("o", Type::BOOL),
            ("{{a}}", Type::TEXT_ARRAY),
            ("soon", Type::TIMESTAMPTZ),
            ("2026-05-01 x", Type::DATE),
            ("2026-05-01 BC", Type::DATE),
        ];
        each(cases, |(wrong, postgres)| {
            assert!(text(wrong, &postgres).is_err(), "{wrong}");
        });
        assert!(text("(1,2)", &Type::POINT).is_err());
    }

    #[test]
    fn binary_values_are_decoded_and_malformed_ones_refused() {
        let binary =
            |bytes: &[u8], postgres: &Type| decode(Some(&Bytes::copy_from_slice(bytes)), true, postgres, 1, "UTC");
        assert_eq!(binary(&[0, 0, 0, 7], &Type::INT4), Ok(ScalarValue::Int32(Some(7))));
        assert_eq!(
            binary(&[0, 0, 0, 0, 0, 0, 0, 0], &Type::DATE).map(|_| ()),
            Err(Report::error("22P03", "parameter $1 is not a binary value of type date"))
        );
        assert_eq!(binary(&[0, 0, 0, 1], &Type::DATE), Ok(ScalarValue::Date32(Some(10_958))));
        let numeric = [0, 2, 0, 0, 0x40, 0, 0, 1, 0, 1, 0x13, 0x88];
        assert_eq!(binary(&numeric, &Type::NUMERIC), Ok(ScalarValue::Decimal128(Some(-15), 38, 1)));
        let list =
            [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 9, 255, 255, 255, 255];
        assert_eq!(binary(&list, &Type::INT4_ARRAY).expect("a list").to_string(), "[9, ]");
        assert!(binary(&list[..20], &Type::INT4_ARRAY).is_err());
        // 1.5 and 2, and a missing number.
        let half = [0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0x13, 0x88];
        let whole = [0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
        let mut numbers = vec![0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 6, 0xa4, 0, 0, 0, 3, 0, 0, 0, 1];
        numbers.extend([255, 255, 255, 255, 0, 0, 0, 10].iter().chain(&whole).chain(&[0, 0, 0, 12]).chain(&half));
        assert_eq!(binary(&numbers, &Type::NUMERIC_ARRAY).expect("a list").to_string(), "[, 2.0, 1.5]");
        let refused = |bytes: &[u8]| binary(bytes, &Type::INT4_ARRAY).map(|_| ()).expect_err("an array with bounds");
        let bounds = "parameter $1: arrays of arrays and arrays with bounds are not supported";
        let from_zero = [&list[..19], &[0][..], &list[20..]].concat();
        assert_eq!(refused(&from_zero), Report::error("0A000", bounds));
        assert_eq!(refused(&[&[0, 0, 0, 2][..], &list[4..]].concat()), Report::error("0A000", bounds));
        assert!(binary(&[1, 2, 3], &Type::UUID).is_err());
        assert_eq!(decode(None, true, &Type::INT8, 1, "UTC"), Ok(ScalarValue::Int64(None)));
    }
}
