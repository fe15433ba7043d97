//! Converts a raw JSON value for a column: a value that fits exactly is taken, any other is a conflict.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::compute::kernels::cast_utils::string_to_datetime;
use chrono::{NaiveDate, Utc};

use super::json::{Json, Raw};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ColumnType, instant_by};

/// A column of a page, before its values are known.
#[derive(Debug)]
pub(super) struct Column {
    kind: ColumnType,
    /// Pattern of timestamps in strings, for a format of their own.
    pattern: Option<Arc<str>>,
    /// Rows, and size in bytes of the texts, of the last page. The next builder has room for as many.
    last: [AtomicUsize; 2],
}

impl Column {
    pub(super) fn new(kind: ColumnType, pattern: Option<Arc<str>>) -> Self {
        Self { kind, pattern, last: Default::default() }
    }

    pub(super) fn builder(&self) -> ColumnBuilder {
        let [rows, bytes] = self.last.each_ref().map(|last| last.load(Ordering::Relaxed));
        match self.kind {
            ColumnType::Utf8 => ColumnBuilder::Utf8(StringBuilder::with_capacity(rows, bytes)),
            ColumnType::Json => ColumnBuilder::Json(StringBuilder::with_capacity(rows, bytes)),
            ColumnType::Int64 => ColumnBuilder::Int64(Int64Builder::with_capacity(rows)),
            ColumnType::Float64 => ColumnBuilder::Float64(Float64Builder::with_capacity(rows)),
            ColumnType::Boolean => ColumnBuilder::Boolean(BooleanBuilder::with_capacity(rows)),
            ColumnType::Timestamp => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone("UTC");
                ColumnBuilder::Timestamp(builder, self.pattern.clone())
            }
            ColumnType::Utf8List => {
                ColumnBuilder::Utf8List(ListBuilder::with_capacity(StringBuilder::with_capacity(rows, bytes), rows))
            }
        }
    }

    /// Returns the values of a builder.
    pub(super) fn finish(&self, builder: &mut ColumnBuilder) -> ArrayRef {
        let (array, bytes): (ArrayRef, usize) = match builder {
            ColumnBuilder::Utf8(builder) | ColumnBuilder::Json(builder) => {
                let array = builder.finish();
                let bytes = array.value_data().len();
                (Arc::new(array), bytes)
            }
            ColumnBuilder::Int64(builder) => (Arc::new(builder.finish()), 0),
            ColumnBuilder::Float64(builder) => (Arc::new(builder.finish()), 0),
            ColumnBuilder::Boolean(builder) => (Arc::new(builder.finish()), 0),
            ColumnBuilder::Timestamp(builder, _) => (Arc::new(builder.finish()), 0),
            ColumnBuilder::Utf8List(builder) => {
                let bytes = builder.values().values_slice().len();
                (Arc::new(builder.finish()), bytes)
            }
        };
        for (last, now) in self.last.iter().zip([array.len(), bytes]) {
            last.store(now, Ordering::Relaxed);
        }
        array
    }

    /// Repeats a value in `count` rows; true if it fits.
    ///
    /// # Errors
    /// As [`ColumnBuilder::append`]; [`ErrorKind::TooLarge`] for more than a gigabyte.
    pub(super) fn repeat(&self, raw: Option<Raw<'_>>, count: usize) -> Result<(ArrayRef, bool)> {
        if raw.is_some_and(|raw| raw.text.len().saturating_mul(count) > MOST_REPEATED) {
            let message =
                format!("a value of the whole response, repeated in {count} rows, takes more than a gigabyte");
            return Err(Error::new(ErrorKind::TooLarge, message).advice("select only the columns that you need"));
        }
        let (mut builder, mut fits, mut buffer) = (self.builder(), true, Vec::new());
        for _ in 0..count {
            match raw {
                Some(raw) => fits &= builder.append(raw, &mut buffer)? == Fit::Yes,
                None => builder.append_null(),
            }
        }
        Ok((self.finish(&mut builder), fits))
    }
}

/// Builder for the values of a column of a page.
#[derive(Debug)]
pub(super) enum ColumnBuilder {
    Utf8(StringBuilder),
    Json(StringBuilder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    Boolean(BooleanBuilder),
    /// With the pattern of timestamps in strings, for a format of their own.
    Timestamp(TimestampMicrosecondBuilder, Option<Arc<str>>),
    Utf8List(ListBuilder<StringBuilder>),
}

/// Maximum size in bytes of a repeated value in all rows of a page.
const MOST_REPEATED: usize = 1 << 30;

/// Maximum number of items in a list; a longer one does not fit.
const ITEMS: usize = 100_000;

/// Result of appending a value to a column. On a conflict, NULL was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    Conflict,
}

impl ColumnBuilder {
    /// Reads the next value and appends it; returns it if it does not fit. The usual forms of values are converted as they are
    /// read; [`append`](Self::append) converts all others.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the text is not valid JSON.
    #[inline]
    pub(super) fn read<'t>(&mut self, json: &mut Json<'t>, buffer: &mut Vec<u8>) -> Result<Option<Raw<'t>>> {
        match (json.peek()?, &mut *self) {
            (b'n', _) if json.null() => {
                self.append_null();
                return Ok(None);
            }
            (b'"', Self::Utf8(builder)) => {
                builder.append_value(json.characters(buffer)?);
                return Ok(None);
            }
            (b'-' | b'0'..=b'9', Self::Int64(builder)) => {
                if let Some(number) = json.short_integer() {
                    builder.append_value(number);
                    return Ok(None);
                }
            }
            (b'"', Self::Timestamp(builder, None)) => {
                if let Some(micros) = json.string_of(|text: &[u8; 20]| utc(text)) {
                    builder.append_value(micros);
                    return Ok(None);
                }
            }
            (b'[', Self::Utf8List(builder)) if json.empty_array() => {
                builder.append(true);
                return Ok(None);
            }
            _ => {}
        }
        let raw = json.value()?;
        Ok(match self.append(raw, buffer)? {
            Fit::Yes => None,
            Fit::Conflict => Some(raw),
        })
    }

    /// Appends a value. `buffer`: memory for strings with escape sequences, which is used again for each of them.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for a string with an invalid escape, such as an unpaired surrogate.
    pub(super) fn append(&mut self, raw: Raw<'_>, buffer: &mut Vec<u8>) -> Result<Fit> {
        if raw.is_null() {
            self.append_null();
            return Ok(Fit::Yes);
        }
        let fits = match self {
            Self::Utf8(builder) => append_text(builder, raw, buffer)?,
            Self::Json(builder) => {
                builder.append_value(raw.text);
                Some(())
            }
            Self::Int64(builder) => integer(&raw.unquoted()?).map(|value| builder.append_value(value)),
            Self::Float64(builder) => {
                let value = raw.unquoted()?.parse().ok().filter(|value: &f64| value.is_finite());
                value.map(|value| builder.append_value(value))
            }
            Self::Boolean(builder) => raw.unquoted()?.parse().ok().map(|value| builder.append_value(value)),
            Self::Timestamp(builder, None) => micros(raw)?.map(|value| builder.append_value(value)),
            Self::Timestamp(builder, Some(pattern)) => {
                instant_by(pattern, &raw.unquoted()?).map(|value| builder.append_value(value))
            }
            Self::Utf8List(builder) => append_list(builder, raw)?,
        };
        if fits.is_none() {
            self.append_null();
            return Ok(Fit::Conflict);
        }
        Ok(Fit::Yes)
    }

    pub(super) fn append_null(&mut self) {
        match self {
            Self::Utf8(builder) | Self::Json(builder) => builder.append_null(),
            Self::Int64(builder) => builder.append_null(),
            Self::Float64(builder) => builder.append_null(),
            Self::Boolean(builder) => builder.append_null(),
            Self::Timestamp(builder, _) => builder.append_null(),
            Self::Utf8List(builder) => builder.append_null(),
        }
    }

    /// Appends a string as it is: a label, or the JSON of `extra`.
    pub(super) fn append_text(&mut self, text: &str) {
        if let Self::Utf8(builder) | Self::Json(builder) = self {
            builder.append_value(text);
        }
    }

    /// Appends a position, counted from 1.
    pub(super) fn append_rank(&mut self, rank: i64) {
        if let Self::Int64(builder) = self {
            builder.append_value(rank);
        }
    }
}

/// Parses an integer, also in a decimal notation whose value is exactly an integer.
fn integer(text: &str) -> Option<i64> {
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits, and the power of ten that they are multiplied with.
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let power = i64::from(exponent) - i64::try_from(fraction.len()).ok()? + zeros;
    if significant.trim_start_matches('0').is_empty() {
        return Some(0);
    }
    let power = u32::try_from(power).ok()?;
    let value = significant.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(power)?)?;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// Parses an instant as microseconds since 1970. Strings are RFC 3339, a local time (treated as UTC) or a date; numbers
/// count seconds, milliseconds or microseconds, distinguished by their size: any instant after March 1973 has one
/// reading.
fn micros(raw: Raw<'_>) -> Result<Option<i64>> {
    /// The years from 0 to 9999, which all formats can represent.
    const REPRESENTABLE: std::ops::Range<i64> = -62_167_219_200_000_000..253_402_300_800_000_000;
    let text = raw.unquoted()?;
    let micros = utc(text.as_bytes()).or_else(|| any_micros(&text));
    Ok(micros.filter(|micros| REPRESENTABLE.contains(micros)))
}

/// Reads the usual form, `2026-01-31T12:00:00Z` with or without milliseconds; `None` for any other.
#[inline]
fn utc(text: &[u8]) -> Option<i64> {
    let (text, end) = text.split_first_chunk::<19>()?;
    let millis = match end {
        b"Z" => 0,
        [b'.', a, b, c, b'Z'] => i64::from(digit(*a)? * 100 + digit(*b)? * 10 + digit(*c)?),
        _ => return None,
    };
    if [text[4], text[7], text[10], text[13], text[16]] != *b"--T::" {
        return None;
    }
    let pair = |at: usize| Some(digit(text[at])? * 10 + digit(text[at + 1])?);
    let (year, month, day) = (pair(0)? * 100 + pair(2)?, pair(5)?, pair(8)?);
    let (hour, minute, second) = (pair(11)?, pair(14)?, pair(17)?);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = i64::from(date.to_epoch_days());
    let seconds = days * 86_400 + i64::from(hour * 3_600 + minute * 60 + second);
    Some(seconds * 1_000_000 + millis * 1_000)
}

/// The value of a decimal digit.
#[inline]
fn digit(byte: u8) -> Option<u32> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(u32::from(digit))
}

fn any_micros(text: &str) -> Option<i64> {
    if let Some(number) = integer(text) {
        let unit = match number.unsigned_abs() {
            0..100_000_000_000 => 1_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000,
            _ => 1,
        };
        return number.checked_mul(unit);
    }
    if let Ok(seconds) = text.parse::<f64>() {
        let micros = seconds * 1e6;
        #[expect(clippy::cast_possible_truncation, reason = "within the range of plausible instants, rounded")]
        return (seconds.abs() < 1e11).then_some(micros.round() as i64);
    }
    string_to_datetime(&Utc, text).ok().map(|at| at.timestamp_micros())
}

/// Appends the text of a scalar; `None`, and nothing is appended, for anything else.
#[inline]
fn append_text(builder: &mut StringBuilder, raw: Raw<'_>, buffer: &mut Vec<u8>) -> Result<Option<()>> {
    match raw.first() {
        b'{' | b'[' => return Ok(None),
        b'"' => builder.append_value(raw.characters(buffer)?),
        _ => builder.append_value(raw.text),
    }
    Ok(Some(()))
}

/// Appends the items of an array of scalars, as text; `None`, and nothing is appended, for anything else.
fn append_list(builder: &mut ListBuilder<StringBuilder>, raw: Raw<'_>) -> Result<Option<()>> {
    if raw.first() != b'[' {
        return Ok(None);
    }
    // Appended items cannot be removed from the builder.
    let (mut items, mut first, mut count) = (Json::new(raw.text), true, 0);
    items.enter();
    while items.item(&mut first)? {
        let item = items.value()?;
        count += 1;
        // Each item takes many times the memory of its text.
        if count > ITEMS || matches!(item.first(), b'{' | b'[') {
            return Ok(None);
        }
        item.unquoted()?;
    }
    let (mut items, mut first) = (Json::new(raw.text), true);
    items.enter();
    while items.item(&mut first)? {
        let item = items.value()?;
        match item.is_null() {
            true => builder.values().append_null(),
            false => builder.values().append_value(item.unquoted()?),
        }
    }
    builder.append(true);
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
    use proptest::prelude::*;

    use super::*;

    fn built(kind: ColumnType, raws: &[&str]) -> (ArrayRef, Vec<Fit>) {
        let column = Column::new(kind, None);
        let mut builder = column.builder();
        let fits =
            raws.iter().map(|raw| builder.append(Raw::of(raw), &mut Vec::new()).expect("valid escapes")).collect();
        (column.finish(&mut builder), fits)
    }

    #[test]
    fn integers_are_exact_or_a_conflict() {
        let raws = ["9007199254740993", "\"-5\"", "3.0", "1e3", "-0.33", "1e400", "9223372036854775808", "true", "[1]"];
        let (array, fits) = built(ColumnType::Int64, &raws);
        let values: Vec<_> = array.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(values[..4], [Some(9_007_199_254_740_993), Some(-5), Some(3), Some(1000)]);
        assert_eq!(values[4..], [None; 5]);
        assert_eq!(fits[4..], [Fit::Conflict; 5]);
    }

    #[test]
    fn integers_are_never_rounded() {
        for (text, value) in [
            ("4503599627370497.3", None),
            ("0.99999999999999999999", None),
            ("9007199254740993.0", Some(9_007_199_254_740_993)),
            ("-9.223372036854775808e18", Some(i64::MIN)),
            ("9.223372036854775808e18", None),
            ("1e18", Some(1_000_000_000_000_000_000)),
            ("120e-1", Some(12)),
            ("125e-1", None),
            ("0e400", Some(0)),
            ("-0.0", Some(0)),
            ("1e99999999999", None),
            ("1e30", None),
            (".", None),
            ("e5", None),
            ("1.2.3", None),
            ("inf", None),
        ] {
            assert_eq!(integer(text), value, "{text}");
        }
    }

    #[test]
    fn floats_are_finite_or_a_conflict() {
        let (array, fits) = built(ColumnType::Float64, &["-0.41", "\"2\"", "1e400", "\"NaN\"", "null"]);
        let values: Vec<_> = array.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(values, [Some(-0.41), Some(2.0), None, None, None]);
        assert_eq!(fits, [Fit::Yes, Fit::Yes, Fit::Conflict, Fit::Conflict, Fit::Yes]);
    }

    #[test]
    fn texts_keep_numbers_as_they_were_written() {
        let (array, fits) = built(ColumnType::Utf8, &["\"a\\n\\u00e9\"", "90071992547409931234", "1.50", "true", "{}"]);
        let values: Vec<_> = array.as_string::<i32>().iter().collect();
        assert_eq!(values, [Some("a\né"), Some("90071992547409931234"), Some("1.50"), Some("true"), None]);
        assert_eq!(fits[4], Fit::Conflict);
        let mut builder = Column::new(ColumnType::Utf8, None).builder();
        let half = builder.append(Raw::of("\"\\ud800\""), &mut Vec::new()).expect_err("half a pair");
        assert_eq!(half.kind(), ErrorKind::Malformed);
    }

    #[test]
    fn instants_come_in_many_forms() {
        let raws = [
            "\"2026-03-29T00:00:00+01:00\"",
            "\"2026-03-28T23:00:00\"",
            "1774738800",
            "1774738800000",
            "1774738800000000",
            "\"1774738800\"",
            "1774738800.5",
            "\"soon\"",
        ];
        let (array, fits) = built(ColumnType::Timestamp, &raws);
        let values: Vec<_> = array.as_primitive::<TimestampMicrosecondType>().iter().collect();
        let at = 1_774_738_800_000_000;
        assert_eq!(values[..6], [Some(at); 6]);
        assert_eq!(values[6..], [Some(at + 500_000), None]);
        assert_eq!(fits[7], Fit::Conflict);
        // Values that not every format can represent.
        let raws = [
            "9223372036854775807",
            "-9223372036854775808",
            "8210266876799999999",
            "\"+12026-01-01T00:00:00Z\"",
            "1e300",
        ];
        let (array, fits) = built(ColumnType::Timestamp, &raws);
        assert_eq!((array.null_count(), fits), (raws.len(), vec![Fit::Conflict; raws.len()]));
    }

    proptest! {
        #[test]
        fn the_usual_form_is_read_as_the_general_parser_reads_it(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{3})?Z",
        ) {
            if let Some(micros) = utc(text.as_bytes()) {
                prop_assert_eq!(Some(micros), any_micros(&text), "{}", text);
            }
        }
    }

    #[test]
    fn lists_hold_scalars_only() {
        let (array, fits) = built(ColumnType::Utf8List, &["[\"a\", 1, null]", "[]", "\"a\"", "[[1]]"]);
        assert_eq!(array.as_list::<i32>().value(0).len(), 3);
        assert_eq!(fits, [Fit::Yes, Fit::Yes, Fit::Conflict, Fit::Conflict]);
    }
}
