//! Converts a raw JSON value for a column: a value that fits exactly is taken, any other is a conflict.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::compute::kernels::cast_utils::string_to_datetime;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::json::{Json, Raw};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ColumnSpec, ColumnType, Instant, Zone, completed_instant, instant_by, message_instant};

/// A column of a page, before its values are known.
#[derive(Debug)]
pub(super) struct Column {
    kind: ColumnType,
    /// Set for identifiers.
    identifies: bool,
    form: InstantForm,
    /// Words that mean NULL.
    nulls: Arc<[String]>,
    /// Rows, and size in bytes of the texts, of the last page. The next builder has room for as many.
    last: [AtomicUsize; 2],
}

impl Column {
    pub(super) fn new(kind: ColumnType, form: InstantForm) -> Self {
        Self { kind, identifies: false, form, nulls: Arc::default(), last: Default::default() }
    }

    /// Sets the words that mean NULL.
    pub(super) fn with_nulls(self, nulls: &Arc<[String]>) -> Self {
        Self { nulls: Arc::clone(nulls), ..self }
    }

    /// True if a value is a word for NULL.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for a string with an invalid escape.
    pub(super) fn is_null_word(&self, raw: Raw<'_>) -> Result<bool> {
        if self.nulls.is_empty() || matches!(raw.first(), b'{' | b'[') {
            return Ok(false);
        }
        let text = raw.unquoted()?;
        Ok(self.nulls.iter().any(|word| *word == *text))
    }

    /// Sets whether the values are identifiers.
    pub(super) fn identifying(self, identifies: bool) -> Self {
        Self { identifies, ..self }
    }

    pub(super) fn builder(&self) -> ColumnBuilder {
        let [rows, bytes] = self.last.each_ref().map(|last| last.load(Ordering::Relaxed));
        match self.kind {
            ColumnType::Utf8 if self.identifies => ColumnBuilder::Id(StringBuilder::with_capacity(rows, bytes)),
            ColumnType::Utf8 => ColumnBuilder::Utf8(StringBuilder::with_capacity(rows, bytes)),
            ColumnType::Json => ColumnBuilder::Json(StringBuilder::with_capacity(rows, bytes)),
            ColumnType::Int64 => ColumnBuilder::Int64(Int64Builder::with_capacity(rows)),
            ColumnType::Float64 => ColumnBuilder::Float64(Float64Builder::with_capacity(rows)),
            ColumnType::Boolean => ColumnBuilder::Boolean(BooleanBuilder::with_capacity(rows)),
            ColumnType::Timestamp => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone("UTC");
                ColumnBuilder::Timestamp(builder, Instants { form: self.form.clone(), ..Instants::default() })
            }
            ColumnType::Utf8List => {
                ColumnBuilder::Utf8List(ListBuilder::with_capacity(StringBuilder::with_capacity(rows, bytes), rows))
            }
        }
    }

    /// Returns the values of a builder.
    pub(super) fn finish(&self, builder: &mut ColumnBuilder) -> ArrayRef {
        let (array, bytes): (ArrayRef, usize) = match builder {
            ColumnBuilder::Utf8(builder) | ColumnBuilder::Id(builder) | ColumnBuilder::Json(builder) => {
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
    /// Identifiers: a number in whatever notation is one identifier.
    Id(StringBuilder),
    Json(StringBuilder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder, Instants),
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
            (b'"', Self::Utf8(builder) | Self::Id(builder)) => {
                builder.append_value(json.characters(buffer)?);
                return Ok(None);
            }
            (b'-' | b'0'..=b'9', Self::Int64(builder)) => {
                if let Some(number) = json.short_integer() {
                    builder.append_value(number);
                    return Ok(None);
                }
            }
            (b'"', Self::Timestamp(builder, Instants { form: InstantForm { pattern: None, .. }, .. })) => {
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
                builder.append_value(raw.json());
                Some(())
            }
            Self::Id(builder) => match raw.first() {
                b'-' | b'0'..=b'9' => {
                    let number = integer(raw.text).map(|number| number.to_string());
                    builder.append_value(number.as_deref().unwrap_or(raw.text));
                    Some(())
                }
                _ => append_text(builder, raw, buffer)?,
            },
            Self::Int64(builder) => integer_in(raw)?.map(|value| builder.append_value(value)),
            Self::Float64(builder) => {
                // Without a negative zero.
                let value =
                    raw.unquoted()?.parse().ok().map(|value: f64| value + 0.0).filter(|value| value.is_finite());
                value.map(|value| builder.append_value(value))
            }
            Self::Boolean(builder) => raw.unquoted()?.parse().ok().map(|value| builder.append_value(value)),
            Self::Timestamp(builder, instants) => {
                instants.read(&raw.unquoted()?).map(|value| builder.append_value(value))
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
            Self::Utf8(builder) | Self::Id(builder) | Self::Json(builder) => builder.append_null(),
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

/// Returns the integer of a number, or of a text that [`integer_of`] can read.
pub(super) fn integer_in(raw: Raw<'_>) -> Result<Option<i64>> {
    Ok(if raw.first() == b'"' { integer_of(&raw.unquoted()?) } else { integer(raw.text) })
}

/// Parses an integer as [`integer`] does, also with separators of thousands: `1,234`, `1 234`, `1'234`, `1_234`. `None` for `1.234`
/// and `1.000`, which mean one thing or a thousand by the country.
pub(super) fn integer_of(text: &str) -> Option<i64> {
    const SEPARATORS: [char; 7] = [',', ' ', '_', '\'', '\u{a0}', '\u{202f}', '\u{2019}'];
    let digits = text.strip_prefix('-').unwrap_or(text);
    if let Some((first, groups)) = digits.split_once('.')
        && (1..4).contains(&first.len())
        && !first.starts_with('0')
        && groups.split('.').all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return None;
    }
    let Some(separator) = digits.chars().find(|character| SEPARATORS.contains(character)) else { return integer(text) };
    let mut groups = digits.split(separator);
    let first = groups.next().filter(|first| (1..4).contains(&first.len()))?;
    let number = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    if !number(first) || !groups.all(|group| group.len() == 3 && number(group)) {
        return None;
    }
    integer(&text.replace(separator, ""))
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

/// Form of the instants of a column.
#[derive(Debug, Clone, Default)]
pub(super) struct InstantForm {
    /// Pattern of strings, for a format of their own.
    pub(super) pattern: Option<Arc<str>>,
    /// Zone of instants that have none. Absent: UTC, as an assumption.
    pub(super) zone: Option<Zone>,
    /// Other zones that they may be of.
    pub(super) other_zones: Arc<[Zone]>,
}

impl InstantForm {
    pub(super) fn of(column: &ColumnSpec) -> Self {
        let other_zones = Arc::clone(&column.other_zones);
        Self { pattern: column.pattern.clone(), zone: column.zone, other_zones }
    }
}

/// Reader of the instants of a column.
#[derive(Debug, Default)]
pub(super) struct Instants {
    form: InstantForm,
    /// First and last of the instants that are UTC as an assumption.
    pub(super) assumed: Option<(i64, i64)>,
    /// Number of instants that are days without a time.
    pub(super) days: usize,
    /// A time that is another instant in each of the zones that it may be of.
    pub(super) ambiguous: Option<String>,
}

/// The years from 0 to 9999, which all formats can represent, in microseconds since 1970.
const REPRESENTABLE: std::ops::Range<i64> = -62_167_219_200_000_000..253_402_300_800_000_000;

impl Instants {
    pub(super) fn of(form: InstantForm) -> Self {
        Self { form, ..Self::default() }
    }

    /// Parses an instant as microseconds since 1970. Strings are RFC 3339, a local time or a date; numbers count seconds,
    /// milliseconds or microseconds, distinguished by their size: any instant after March 1973 has one reading. Numbers of 8, 12,
    /// 14 and 17 digits that are a date of the calendar are that: as a count, they would be years apart from now.
    pub(super) fn read(&mut self, text: &str) -> Option<i64> {
        let known = match &self.form.pattern {
            Some(pattern) => instant_by(pattern, text)?,
            None => match utc(text.as_bytes()) {
                Some(micros) => Instant::Zoned(micros),
                None => any_instant(text)?,
            },
        };
        let (local, day) = match known {
            Instant::Zoned(micros) => return Some(micros).filter(|micros| REPRESENTABLE.contains(micros)),
            Instant::Local(micros) => (micros, false),
            Instant::Day(micros) => (micros, true),
        };
        if !REPRESENTABLE.contains(&local) {
            return None;
        }
        self.days += usize::from(day);
        let Some(zone) = self.form.zone else {
            let (first, last) = self.assumed.unwrap_or((local, local));
            self.assumed = Some((first.min(local), last.max(local)));
            return Some(local);
        };
        let wanted = DateTime::from_timestamp_micros(local)?.naive_utc();
        // Of the two instants of an hour that is repeated, the first; a time that the clock skips is read an hour later.
        let of = |zone: Zone| {
            zone.instants(wanted).earliest().or_else(|| {
                zone.instants(wanted - TimeDelta::hours(1)).earliest().map(|before| before + TimeDelta::hours(1))
            })
        };
        let instant = of(zone);
        if self.form.other_zones.iter().any(|other| of(*other) != instant) {
            self.ambiguous.get_or_insert_with(|| text.to_owned());
            return None;
        }
        instant.map(|instant| instant.timestamp_micros())
    }
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

/// Parses an instant in any form but the usual one.
fn any_instant(text: &str) -> Option<Instant> {
    if let Some(instant) = compact(text) {
        return Some(instant);
    }
    if let Some(number) = integer(text) {
        let unit = match number.unsigned_abs() {
            0..100_000_000_000 => 1_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000,
            _ => 1,
        };
        return number.checked_mul(unit).map(Instant::Zoned);
    }
    if let Ok(seconds) = text.parse::<f64>() {
        let micros = seconds * 1e6;
        #[expect(clippy::cast_possible_truncation, reason = "within the range of plausible instants, rounded")]
        return (seconds.abs() < 1e11).then_some(Instant::Zoned(micros.round() as i64));
    }
    if let Some(micros) = message_instant(text) {
        return Some(Instant::Zoned(micros));
    }
    let text = &*completed_instant(text);
    let micros = string_to_datetime(&Utc, text).ok()?.timestamp_micros();
    Some(match text.get(10..) {
        None | Some("") => Instant::Day(micros),
        // After the `T` or the blank, a letter or a sign begins a zone.
        Some(time) if time.char_indices().any(|(at, c)| at > 0 && (c.is_alphabetic() || matches!(c, '+' | '-'))) => {
            Instant::Zoned(micros)
        }
        Some(_) => Instant::Local(micros),
    })
}

/// Parses a date and time of the calendar that is written without separators: `20261124`, `202611241012`, `20261124101213`,
/// `20261124101213500`, and the basic format of ISO 8601, `20261124T101213Z`.
fn compact(text: &str) -> Option<Instant> {
    /// Years that a time may have, so that a count of seconds is not taken for one.
    const YEARS: std::ops::Range<i32> = 1900..2200;
    let whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (digits, zone) = match text.split_once('T') {
        Some((date, time)) if date.len() == 8 => {
            let end = time.find(|c: char| !c.is_ascii_digit()).unwrap_or(time.len());
            let (time, zone) = time.split_at(end);
            (format!("{date}{time}"), zone)
        }
        Some(_) => return None,
        None => (text.to_owned(), ""),
    };
    let lengths: &[usize] = if text.contains('T') { &[12, 14] } else { &[8, 12, 14, 17] };
    if !lengths.contains(&digits.len()) || !whole(&digits) {
        return None;
    }
    let number = |from: usize, to: usize| digits.get(from..to).map_or(Some(0), |part| part.parse::<u32>().ok());
    let year = i32::try_from(number(0, 4)?).ok().filter(|year| YEARS.contains(year))?;
    let date = NaiveDate::from_ymd_opt(year, number(4, 6)?, number(6, 8)?)?;
    let second = if digits.len() > 12 { number(12, 14)? } else { 0 };
    let milli = if digits.len() > 14 { number(14, 17)? } else { 0 };
    let (hour, minute) = if digits.len() > 8 { (number(8, 10)?, number(10, 12)?) } else { (0, 0) };
    let micros = date.and_hms_milli_opt(hour, minute, second, milli)?.and_utc().timestamp_micros();
    let zone = zone.replace(':', "");
    Some(match (zone.as_str(), digits.len()) {
        ("", 8) => Instant::Day(micros),
        ("", _) => Instant::Local(micros),
        ("Z", _) => Instant::Zoned(micros),
        (offset, _) => {
            let (sign, offset) = offset.split_at_checked(1).filter(|(sign, _)| *sign == "+" || *sign == "-")?;
            let part = |from: usize, to: usize| offset.get(from..to).map_or(Some(0), |part| part.parse::<i64>().ok());
            let minutes = (offset.len() == 4 || offset.len() == 2).then_some(part(0, 2)? * 60 + part(2, 4)?)?;
            let east = if sign == "+" { minutes } else { -minutes };
            Instant::Zoned(micros - east * 60_000_000)
        }
    })
}

/// Parses the instant of a day and a time of day in fields of their own.
pub(super) fn joined(instants: &mut Instants, day: &str, time: &str) -> Option<i64> {
    if instants.form.pattern.is_some() {
        return instants.read(&format!("{day} {time}"));
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number has lost the zeros that it begins with.
    let time = if digits(time) {
        format!("{time:0>width$}", width = if time.len() > 4 { 6 } else { 4 })
    } else {
        time.to_owned()
    };
    if digits(day) && digits(&time) {
        return instants.read(&format!("{day}{time}"));
    }
    let time = if time.len() == 5 && time.contains(':') { time + ":00" } else { time };
    instants.read(&format!("{day}T{time}"))
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
    use crate::cases::each;

    fn built(kind: ColumnType, raws: &[&str]) -> (ArrayRef, Vec<Fit>) {
        let column = Column::new(kind, InstantForm::default());
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
        let cases = [
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
        ];
        each(cases, |(text, value)| {
            assert_eq!(integer(text), value, "{text}");
        });
    }

    #[test]
    fn separators_of_thousands_are_read_and_nothing_else_is() {
        let cases = [
            ("1,234", Some(1_234)),
            ("-12 345 678", Some(-12_345_678)),
            ("999", Some(999)),
            ("1\u{202f}234", Some(1_234)),
            ("450.0", Some(450)),
            ("1,23", None),
            ("1.000", None),
            ("12.345.678", None),
            ("0.000", Some(0)),
            ("1234,567", None),
            ("1,234,56", None),
            ("1,234 567", None),
            (",123", None),
            ("1,234.5", None),
            ("1.234", None),
        ];
        each(cases, |(text, value)| {
            assert_eq!(integer_of(text), value, "{text}");
        });
    }

    #[test]
    fn floats_are_finite_or_a_conflict() {
        let (array, fits) = built(ColumnType::Float64, &["-0.41", "\"2\"", "1e400", "\"NaN\"", "null"]);
        let values: Vec<_> = array.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(values, [Some(-0.41), Some(2.0), None, None, None]);
        assert_eq!(fits, [Fit::Yes, Fit::Yes, Fit::Conflict, Fit::Conflict, Fit::Yes]);
    }

    #[test]
    fn an_identifier_is_one_in_whatever_notation() {
        let column = Column::new(ColumnType::Utf8, InstantForm::default()).identifying(true);
        let mut builder = column.builder();
        for raw in ["183000.0", "1.83e5", "\"183000\"", "183000", "1.5", "\"183000.0\""] {
            builder.append(Raw::of(raw), &mut Vec::new()).expect("valid");
        }
        let array = column.finish(&mut builder);
        let values: Vec<_> = array.as_string::<i32>().iter().flatten().collect();
        assert_eq!(values, ["183000", "183000", "183000", "183000", "1.5", "183000.0"]);
    }

    #[test]
    fn texts_keep_numbers_as_they_were_written() {
        let (array, fits) = built(ColumnType::Utf8, &["\"a\\n\\u00e9\"", "90071992547409931234", "1.50", "true", "{}"]);
        let values: Vec<_> = array.as_string::<i32>().iter().collect();
        assert_eq!(values, [Some("a\né"), Some("90071992547409931234"), Some("1.50"), Some("true"), None]);
        assert_eq!(fits[4], Fit::Conflict);
        let mut builder = Column::new(ColumnType::Utf8, InstantForm::default()).builder();
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
        let raws = [
            "\"2026-11-20T10:00:00Z\"",
            "\"2026-11-20 10:00:00 UTC\"",
            "\"Fri, 20 Nov 2026 10:00:00 GMT\"",
            "\"20 Nov 2026 05:00 EST\"",
        ];
        let (array, fits) = built(ColumnType::Timestamp, &raws);
        let values: Vec<_> = array.as_primitive::<TimestampMicrosecondType>().iter().collect();
        assert!(values[0].is_some() && values.iter().all(|value| *value == values[0]), "{values:?} {fits:?}");
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
    fn dates_without_separators_are_no_counts() {
        let read = |text: &str| {
            let micros = Instants::default().read(text);
            micros.and_then(DateTime::from_timestamp_micros).map(|at| at.to_rfc3339())
        };
        let cases = [
            ("20261124101213", "2026-11-24T10:12:13+00:00"),
            ("20261124", "2026-11-24T00:00:00+00:00"),
            ("202611241012", "2026-11-24T10:12:00+00:00"),
            ("20261124101213500", "2026-11-24T10:12:13.500+00:00"),
            ("20261124T101213Z", "2026-11-24T10:12:13+00:00"),
            ("20261124T101213+0530", "2026-11-24T04:42:13+00:00"),
            ("20261124T1012", "2026-11-24T10:12:00+00:00"),
            ("2026-11-24T10:12Z", "2026-11-24T10:12:00+00:00"),
            ("2026-11-24T10:12+05:30", "2026-11-24T04:42:00+00:00"),
            ("2026-11-24T10:12", "2026-11-24T10:12:00+00:00"),
            ("2026-11-24T10:12:13,500Z", "2026-11-24T10:12:13.500+00:00"),
            ("2026-11-24T10:12:13+01:00[Europe/Berlin]", "2026-11-24T09:12:13+00:00"),
            // Counts.
            ("1774738800", "2026-03-28T23:00:00+00:00"),
            ("20261324", "1970-08-23T12:08:44+00:00"),
        ];
        each(cases, |(text, at)| {
            assert_eq!(read(text).as_deref(), Some(at), "{text}");
        });
    }

    #[test]
    fn times_without_a_zone_are_those_of_the_declared_one() {
        let zone = "Europe/Berlin".parse().expect("a zone");
        let mut instants = Instants::of(InstantForm { zone: Some(zone), ..InstantForm::default() });
        let mut read =
            |text: &str| instants.read(text).and_then(DateTime::from_timestamp_micros).map(|at| at.to_rfc3339());
        let cases = [
            ("2026-11-24T10:12:13", "2026-11-24T09:12:13+00:00"),
            ("2026-06-24 10:12:13", "2026-06-24T08:12:13+00:00"),
            ("2026-11-24T10:12:13Z", "2026-11-24T10:12:13+00:00"),
            ("2026-11-24", "2026-11-23T23:00:00+00:00"),
            ("20261124101213", "2026-11-24T09:12:13+00:00"),
            ("1774738800", "2026-03-28T23:00:00+00:00"),
            // Repeated, and skipped.
            ("2026-10-25T02:30:00", "2026-10-25T00:30:00+00:00"),
            ("2026-03-29T02:30:00", "2026-03-29T01:30:00+00:00"),
        ];
        each(cases, |(text, at)| {
            assert_eq!(read(text).as_deref(), Some(at), "{text}");
        });
        assert_eq!(instants.assumed, None);
        // One of several zones.
        let other_zones: [Zone; 2] = ["+02:00", "Europe/Paris"].map(|zone| zone.parse().expect("a zone"));
        let other_zones: Arc<[Zone]> = Arc::from(other_zones);
        let mut instants = Instants::of(InstantForm { zone: Some(zone), other_zones, ..InstantForm::default() });
        assert_eq!(instants.read("2026-06-24 10:12:13"), Some(1_782_288_733_000_000));
        assert_eq!(
            (instants.read("2026-11-24T10:12:13Z"), instants.ambiguous.clone()),
            (Some(1_795_515_133_000_000), None)
        );
        assert_eq!(instants.read("2026-11-24T10:12:13"), None);
        assert_eq!(instants.ambiguous.as_deref(), Some("2026-11-24T10:12:13"));
        let mut instants = Instants::default();
        for text in ["2026-11-24T10:12:13", "2026-11-24T10:12:13Z", "2026-11-25"] {
            instants.read(text).expect("an instant");
        }
        let (first, last) = instants.assumed.expect("two are assumed to be UTC");
        assert_eq!(((last - first) / 1_000_000, instants.days), (13 * 3_600 + 47 * 60 + 47, 1));
    }

    #[test]
    fn a_day_and_a_time_are_joined() {
        let read = |day: &str, time: &str| {
            joined(&mut Instants::default(), day, time)
                .and_then(DateTime::from_timestamp_micros)
                .map(|at| at.to_rfc3339())
        };
        for (day, time) in [
            ("2026-11-24", "09:12:13"),
            ("20261124", "091213"),
            ("20261124", "91213"),
            ("2026-11-24", "10:12:13+01:00"),
        ] {
            assert_eq!(read(day, time).as_deref(), Some("2026-11-24T09:12:13+00:00"), "{day} {time}");
        }
        assert_eq!(read("2026-11-24", "09:12").as_deref(), Some("2026-11-24T09:12:00+00:00"));
        assert_eq!(read("2026-11-24", "soon"), None);
    }

    proptest! {
        #[test]
        fn the_usual_form_is_read_as_the_general_parser_reads_it(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{3})?Z",
        ) {
            if let Some(micros) = utc(text.as_bytes()) {
                prop_assert_eq!(Some(Instant::Zoned(micros)), any_instant(&text), "{}", text);
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
