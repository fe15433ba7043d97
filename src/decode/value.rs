//! Converts a raw JSON value for a column: a value that fits exactly is taken, any other is a conflict.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::compute::kernels::cast_utils::string_to_datetime;
use chrono::Utc;
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ColumnType, instant_by};

/// Builder for the values of a column of a page.
#[derive(Debug)]
pub(super) enum ColumnBuilder {
    Utf8(StringBuilder),
    Json(StringBuilder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    Boolean(BooleanBuilder),
    /// With the pattern of timestamps in strings, if they have a form of their own.
    Timestamp(TimestampMicrosecondBuilder, Option<Arc<str>>),
    Utf8List(ListBuilder<StringBuilder>),
}

impl Clone for ColumnBuilder {
    /// An empty builder of the same type: the prototypes in a decoder are never filled.
    fn clone(&self) -> Self {
        let pattern = match self {
            Self::Timestamp(_, pattern) => pattern.clone(),
            _ => None,
        };
        let kind = match self {
            Self::Utf8(_) => ColumnType::Utf8,
            Self::Json(_) => ColumnType::Json,
            Self::Int64(_) => ColumnType::Int64,
            Self::Float64(_) => ColumnType::Float64,
            Self::Boolean(_) => ColumnType::Boolean,
            Self::Timestamp(..) => ColumnType::Timestamp,
            Self::Utf8List(_) => ColumnType::Utf8List,
        };
        Self::new(kind, pattern)
    }
}

/// Maximum number of items in a list; a longer one does not fit.
const ITEMS: usize = 100_000;

/// Result of appending a value to a column. On a conflict, NULL was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    Conflict,
}

impl ColumnBuilder {
    pub(super) fn new(kind: ColumnType, pattern: Option<Arc<str>>) -> Self {
        match kind {
            ColumnType::Utf8 => Self::Utf8(StringBuilder::new()),
            ColumnType::Json => Self::Json(StringBuilder::new()),
            ColumnType::Int64 => Self::Int64(Int64Builder::new()),
            ColumnType::Float64 => Self::Float64(Float64Builder::new()),
            ColumnType::Boolean => Self::Boolean(BooleanBuilder::new()),
            ColumnType::Timestamp => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone("UTC"), pattern),
            ColumnType::Utf8List => Self::Utf8List(ListBuilder::new(StringBuilder::new())),
        }
    }

    /// Appends a raw JSON value without surrounding white space.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for a string with an invalid escape, such as an unpaired surrogate.
    pub(super) fn append(&mut self, raw: &str) -> Result<Fit> {
        if raw == "null" {
            self.append_null();
            return Ok(Fit::Yes);
        }
        let fits = match self {
            Self::Utf8(builder) => scalar_text(raw)?.map(|text| builder.append_value(text)),
            Self::Json(builder) => {
                builder.append_value(raw);
                Some(())
            }
            Self::Int64(builder) => integer(&unquoted(raw)?).map(|value| builder.append_value(value)),
            Self::Float64(builder) => {
                let value = unquoted(raw)?.parse().ok().filter(|value: &f64| value.is_finite());
                value.map(|value| builder.append_value(value))
            }
            Self::Boolean(builder) => unquoted(raw)?.parse().ok().map(|value| builder.append_value(value)),
            Self::Timestamp(builder, None) => micros(raw)?.map(|value| builder.append_value(value)),
            Self::Timestamp(builder, Some(pattern)) => {
                instant_by(pattern, &unquoted(raw)?).map(|value| builder.append_value(value))
            }
            Self::Utf8List(builder) => texts(raw)?.map(|texts| {
                texts.iter().for_each(|text| builder.values().append_option(text.as_deref()));
                builder.append(true);
            }),
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

    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Utf8(builder) | Self::Json(builder) => Arc::new(builder.finish()),
            Self::Int64(builder) => Arc::new(builder.finish()),
            Self::Float64(builder) => Arc::new(builder.finish()),
            Self::Boolean(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder, _) => Arc::new(builder.finish()),
            Self::Utf8List(builder) => Arc::new(builder.finish()),
        }
    }

    /// Repeats a value in `count` rows; true if it fits.
    pub(super) fn repeat(mut self, raw: Option<&str>, count: usize) -> Result<(ArrayRef, bool)> {
        let mut fits = true;
        for _ in 0..count {
            fits &= self.append(raw.unwrap_or("null"))? == Fit::Yes;
        }
        Ok((self.finish(), fits))
    }
}

/// Unescapes a JSON string.
pub(super) fn unescape(raw: &str) -> Result<Cow<'_, str>> {
    let inner = &raw[1..raw.len() - 1];
    if !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw)
        .map(Cow::Owned)
        .map_err(|error| Error::new(ErrorKind::Malformed, format!("invalid escape in a string: {error}")))
}

/// The text of a string, a number or a boolean.
fn scalar_text(raw: &str) -> Result<Option<Cow<'_, str>>> {
    match raw.as_bytes()[0] {
        b'"' => unescape(raw).map(Some),
        b'{' | b'[' => Ok(None),
        _ => Ok(Some(Cow::Borrowed(raw))),
    }
}

/// The value without its quotes, if it has any.
fn unquoted(raw: &str) -> Result<Cow<'_, str>> {
    if raw.starts_with('"') { unescape(raw) } else { Ok(Cow::Borrowed(raw)) }
}

/// Parses an integer, also in a decimal notation that a float holds exactly.
fn integer(text: &str) -> Option<i64> {
    /// Integers below this are exact in a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let value: f64 = text.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "integral and within the exact range")]
    (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64)
}

/// Parses an instant as microseconds since 1970. Strings are RFC 3339, a local time (treated as UTC) or a date; numbers
/// count seconds, milliseconds or microseconds, distinguished by their size: any instant after March 1973 has one
/// reading.
fn micros(raw: &str) -> Result<Option<i64>> {
    /// The years from 0 to 9999, which all formats can represent.
    const SAYABLE: std::ops::Range<i64> = -62_167_219_200_000_000..253_402_300_800_000_000;
    Ok(any_micros(raw)?.filter(|micros| SAYABLE.contains(micros)))
}

fn any_micros(raw: &str) -> Result<Option<i64>> {
    let text = unquoted(raw)?;
    if let Some(number) = integer(&text) {
        let unit = match number.unsigned_abs() {
            0..100_000_000_000 => 1_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000,
            _ => 1,
        };
        return Ok(number.checked_mul(unit));
    }
    if let Ok(seconds) = text.parse::<f64>() {
        let micros = seconds * 1e6;
        #[expect(clippy::cast_possible_truncation, reason = "within the range of plausible instants, rounded")]
        return Ok((seconds.abs() < 1e11).then_some(micros.round() as i64));
    }
    Ok(string_to_datetime(&Utc, &text).ok().map(|at| at.timestamp_micros()))
}

/// The items of an array of scalars, as text.
fn texts(raw: &str) -> Result<Option<Vec<Option<Cow<'_, str>>>>> {
    if !raw.starts_with('[') {
        return Ok(None);
    }
    // Each item takes many times the memory of its text.
    if raw.bytes().filter(|byte| *byte == b',').count() > ITEMS {
        return Ok(None);
    }
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else { return Ok(None) };
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        if item.get() == "null" {
            texts.push(None);
        } else if let Some(text) = scalar_text(item.get())? {
            texts.push(Some(text));
        } else {
            return Ok(None);
        }
    }
    Ok(Some(texts))
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};

    use super::*;

    fn built(kind: ColumnType, raws: &[&str]) -> (ArrayRef, Vec<Fit>) {
        let mut builder = ColumnBuilder::new(kind, None);
        let fits = raws.iter().map(|raw| builder.append(raw).expect("valid escapes")).collect();
        (builder.finish(), fits)
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
        let half = ColumnBuilder::new(ColumnType::Utf8, None).append("\"\\ud800\"").expect_err("half a pair");
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

    #[test]
    fn lists_hold_scalars_only() {
        let (array, fits) = built(ColumnType::Utf8List, &["[\"a\", 1, null]", "[]", "\"a\"", "[[1]]"]);
        assert_eq!(array.as_list::<i32>().value(0).len(), 3);
        assert_eq!(fits, [Fit::Yes, Fit::Yes, Fit::Conflict, Fit::Conflict]);
    }
}
