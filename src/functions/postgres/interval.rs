//! Intervals as PostgreSQL reads and computes them: `1 day 04:05:06`, `1 year 2 mons`, `P1DT2H`, `1-2`, `@ 1 minute ago`.
//!
//! Months, days and microseconds are separate fields, as in the engine. A fraction of a month becomes days; a fraction of a
//! day becomes microseconds.
//!
//! Source: PostgreSQL documentation, "Interval Input" and "Date/Time Functions and Operators".

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, DurationMicrosecondType, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit};
use arrow::error::ArrowError;

/// Microseconds of an hour.
const HOUR: i64 = 3_600_000_000;
/// Microseconds of a day.
const DAY: i64 = 24 * HOUR;

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) months: i32,
    pub(crate) days: i32,
    pub(crate) micros: i64,
}

/// Reason why a text is not an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotASpan {
    Syntax,
    OutOfRange,
}

impl NotASpan {
    /// The line for a client.
    pub(crate) fn line(self, text: &str) -> String {
        match self {
            Self::Syntax => format!("invalid input syntax for type interval: \"{text}\""),
            Self::OutOfRange => format!("interval field value out of range: \"{text}\""),
        }
    }
}

/// A unit of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Millennium,
    Century,
    Decade,
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
}

impl Unit {
    /// The unit that a word means.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word.to_lowercase().as_str() {
            "mil" | "mils" | "millennium" | "millennia" | "millenniums" => Self::Millennium,
            "c" | "cent" | "century" | "centuries" => Self::Century,
            "dec" | "decs" | "decade" | "decades" => Self::Decade,
            "y" | "yr" | "yrs" | "year" | "years" => Self::Year,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "w" | "week" | "weeks" => Self::Week,
            "d" | "day" | "days" => Self::Day,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" | "millisecond" | "milliseconds" => {
                Self::Millisecond
            }
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" | "microsecond" | "microseconds" => {
                Self::Microsecond
            }
            _ => return None,
        })
    }
}

impl Span {
    /// The engine's value.
    ///
    /// # Errors
    /// [`NotASpan::OutOfRange`] beyond 292 years of hours.
    pub(crate) fn value(self) -> Result<IntervalMonthDayNano, NotASpan> {
        let nanoseconds = self.micros.checked_mul(1_000).ok_or(NotASpan::OutOfRange)?;
        Ok(IntervalMonthDayNano::new(self.months, self.days, nanoseconds))
    }

    pub(crate) fn of(value: IntervalMonthDayNano) -> Self {
        Self { months: value.months, days: value.days, micros: value.nanoseconds / 1_000 }
    }

    /// The parts of the unit and larger ones.
    pub(crate) fn cut(mut self, to: Unit) -> Self {
        match to {
            Unit::Year => self = Self { months: self.months / 12 * 12, ..Self::default() },
            Unit::Month => self = Self { months: self.months, ..Self::default() },
            Unit::Day => self.micros = 0,
            Unit::Hour => self.micros = self.micros / HOUR * HOUR,
            Unit::Minute => self.micros = self.micros / 60_000_000 * 60_000_000,
            _ => {}
        }
        self
    }

    /// Adds a number of a unit, with its fraction.
    fn add(&mut self, unit: Unit, whole: i64, fraction: f64) -> Result<(), NotASpan> {
        let small = |number: i64| i32::try_from(number).map_err(|_| NotASpan::OutOfRange);
        let mut months = |factor: i64| -> Result<(), NotASpan> {
            let whole = whole.checked_mul(factor).ok_or(NotASpan::OutOfRange)?;
            let sum = whole.checked_add(rounded(fraction * f64::from(small(factor)?))?).ok_or(NotASpan::OutOfRange)?;
            self.months = self.months.checked_add(small(sum)?).ok_or(NotASpan::OutOfRange)?;
            Ok(())
        };
        match unit {
            Unit::Millennium => months(12_000),
            Unit::Century => months(1_200),
            Unit::Decade => months(120),
            Unit::Year => months(12),
            Unit::Month => {
                self.months = self.months.checked_add(small(whole)?).ok_or(NotASpan::OutOfRange)?;
                self.add_days(fraction * 30.0)
            }
            Unit::Week => {
                let days = whole.checked_mul(7).ok_or(NotASpan::OutOfRange)?;
                self.days = self.days.checked_add(small(days)?).ok_or(NotASpan::OutOfRange)?;
                self.add_days(fraction * 7.0)
            }
            Unit::Day => {
                self.days = self.days.checked_add(small(whole)?).ok_or(NotASpan::OutOfRange)?;
                self.add_days(fraction)
            }
            Unit::Hour => self.add_micros(whole, fraction, HOUR),
            Unit::Minute => self.add_micros(whole, fraction, 60_000_000),
            Unit::Second => self.add_micros(whole, fraction, 1_000_000),
            Unit::Millisecond => self.add_micros(whole, fraction, 1_000),
            Unit::Microsecond => self.add_micros(whole, fraction, 1),
        }
    }

    fn add_days(&mut self, days: f64) -> Result<(), NotASpan> {
        let whole = rounded(days.trunc())?;
        let whole = i32::try_from(whole).map_err(|_| NotASpan::OutOfRange)?;
        self.days = self.days.checked_add(whole).ok_or(NotASpan::OutOfRange)?;
        self.add_micros(0, days.fract(), DAY)
    }

    #[expect(clippy::cast_precision_loss, reason = "units have few digits")]
    fn add_micros(&mut self, whole: i64, fraction: f64, unit: i64) -> Result<(), NotASpan> {
        let micros = whole.checked_mul(unit).and_then(|micros| micros.checked_add(self.micros));
        let micros = micros.ok_or(NotASpan::OutOfRange)?;
        self.micros = micros.checked_add(rounded(fraction * unit as f64)?).ok_or(NotASpan::OutOfRange)?;
        Ok(())
    }

    /// The same with the other sign.
    ///
    /// # Errors
    /// [`NotASpan::OutOfRange`].
    pub(crate) fn negated(self) -> Result<Self, NotASpan> {
        let (Some(months), Some(days), Some(micros)) =
            (self.months.checked_neg(), self.days.checked_neg(), self.micros.checked_neg())
        else {
            return Err(NotASpan::OutOfRange);
        };
        Ok(Self { months, days, micros })
    }

    /// The parts, multiplied with a number or divided by it. What is less than a month becomes days, what is less than a day
    /// microseconds.
    #[expect(clippy::cast_precision_loss, reason = "PostgreSQL computes with double precision")]
    pub(crate) fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Self, NotASpan> {
        let (months, days) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let small = |number: f64| i32::try_from(rounded(number.trunc())?).map_err(|_| NotASpan::OutOfRange);
        let (whole_months, whole_days) = (small(months)?, small(days)?);
        // Rounded to microseconds, so that a third of three months is a month.
        let tidy = |days: f64| (days * 86_400_000_000.0).round_ties_even() / 86_400_000_000.0;
        let of_months = tidy((months - f64::from(whole_months)) * 30.0);
        let of_days = tidy(days - f64::from(whole_days) + of_months - of_months.trunc());
        let days = whole_days.checked_add(small(of_months)?).and_then(|days| days.checked_add(small(of_days).ok()?));
        let micros = rounded(scale(self.micros as f64) + of_days.fract() * DAY as f64)?;
        Ok(Self { months: whole_months, days: days.ok_or(NotASpan::OutOfRange)?, micros })
    }

    /// 24 hours as days, and with `months` 30 days as months; of one sign if both.
    pub(crate) fn justified(self, hours: bool, months: bool) -> Option<Self> {
        let Self { months: mut m, days: mut d, micros: mut t } = self;
        if hours {
            d = d.checked_add(i32::try_from(t / DAY).ok()?)?;
            t %= DAY;
        }
        if months {
            m = m.checked_add(d / 30)?;
            d %= 30;
        }
        if months && hours {
            if m > 0 && (d < 0 || (d == 0 && t < 0)) {
                (m, d) = (m - 1, d + 30);
            } else if m < 0 && (d > 0 || (d == 0 && t > 0)) {
                (m, d) = (m + 1, d - 30);
            }
        } else if months {
            if m > 0 && d < 0 {
                (m, d) = (m - 1, d + 30);
            } else if m < 0 && d > 0 {
                (m, d) = (m + 1, d - 30);
            }
        }
        if hours {
            if d > 0 && t < 0 {
                (d, t) = (d - 1, t + DAY);
            } else if d < 0 && t > 0 {
                (d, t) = (d + 1, t - DAY);
            }
        }
        Some(Self { months: m, days: d, micros: t })
    }
}

/// Intervals of durations, which are differences of times: in days of 24 hours, and the rest.
///
/// # Errors
/// Errors of casts.
pub(crate) fn intervals(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !matches!(values.data_type(), DataType::Duration(_)) {
        return Ok(Arc::clone(values));
    }
    let micros = cast(values, &DataType::Duration(TimeUnit::Microsecond))?;
    let intervals: IntervalMonthDayNanoArray =
        micros.as_primitive::<DurationMicrosecondType>().try_unary::<_, IntervalMonthDayNanoType, _>(|micros| {
            let days = i32::try_from(micros / DAY);
            let days = days.map_err(|_| ArrowError::ArithmeticOverflow("interval out of range".to_owned()))?;
            Ok::<_, ArrowError>(IntervalMonthDayNano::new(0, days, micros % DAY * 1_000))
        })?;
    Ok(Arc::new(intervals))
}

/// The nearest integer, half to even.
fn rounded(number: f64) -> Result<i64, NotASpan> {
    let number = number.round_ties_even();
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    (-9.2e18..9.2e18).contains(&number).then_some(number as i64).ok_or(NotASpan::OutOfRange)
}

/// Reads an interval. `fields` are the units that follow the literal, as in `interval '1:30' minute to second`.
///
/// # Errors
/// [`NotASpan`].
pub(crate) fn read_interval(text: &str, fields: Option<(Unit, Unit)>) -> Result<Span, NotASpan> {
    let text = text.trim();
    let span = match text.strip_prefix(['P', 'p']) {
        Some(designated) => read_designated(designated)?,
        None => read_words(text, fields)?,
    };
    Ok(fields.map_or(span, |(_, last)| span.cut(last)))
}

/// A number with its sign: the whole part, and the fraction with the same sign. Also its text.
fn split_number(text: &str) -> Option<(i64, f64, bool)> {
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
    Some(if negative { (-whole, -fraction, true) } else { (whole, fraction, false) })
}

/// PostgreSQL's and SQL's forms.
fn read_words(text: &str, fields: Option<(Unit, Unit)>) -> Result<Span, NotASpan> {
    let mut parts = parts_of(text)?;
    let mut span = Span::default();
    let ago = matches!(parts.last(), Some(Part::Word(word)) if word.eq_ignore_ascii_case("ago"));
    if ago {
        parts.pop();
    }
    if parts.is_empty() {
        return Err(NotASpan::Syntax);
    }
    let mut used: Vec<Unit> = Vec::new();
    let mut mark = |units: &[Unit]| match units.iter().any(|unit| used.contains(unit)) {
        true => Err(NotASpan::Syntax),
        false => {
            used.extend(units);
            Ok(())
        }
    };
    // Backwards: a unit is that of the number before it.
    let mut unit: Option<Unit> = None;
    let mut after_time = false;
    while let Some(part) = parts.pop() {
        match part {
            Part::Word(word) => {
                if unit.replace(Unit::named(&word).ok_or(NotASpan::Syntax)?).is_some() {
                    return Err(NotASpan::Syntax);
                }
            }
            Part::Time(time) => {
                if unit.is_some() {
                    return Err(NotASpan::Syntax);
                }
                mark(&[Unit::Hour, Unit::Minute, Unit::Second])?;
                let minutes = matches!(fields, Some((Unit::Minute, Unit::Second)));
                read_time(&time, minutes, &mut span)?;
                after_time = true;
            }
            Part::YearMonth(years, months) => {
                if unit.is_some() {
                    return Err(NotASpan::Syntax);
                }
                mark(&[Unit::Year, Unit::Month])?;
                let negative = years.starts_with('-');
                let (years, _, _) = split_number(&years).ok_or(NotASpan::Syntax)?;
                let (months, _, _) =
                    split_number(&months).filter(|(months, ..)| *months < 12).ok_or(NotASpan::Syntax)?;
                span.add(Unit::Year, years, 0.0)?;
                span.add(Unit::Month, if negative { -months } else { months }, 0.0)?;
                after_time = false;
            }
            Part::Number(number) => {
                let of = match unit.take() {
                    Some(unit) => unit,
                    None if after_time => Unit::Day,
                    None => fields.map_or(Unit::Second, |(_, last)| last),
                };
                mark(&[of])?;
                let (whole, fraction, _) = split_number(&number).ok_or(NotASpan::Syntax)?;
                span.add(of, whole, fraction)?;
                // As in `1 2 hours`.
                after_time = of == Unit::Hour;
            }
        }
    }
    match (unit, ago) {
        (Some(_), _) => Err(NotASpan::Syntax),
        (None, true) => span.negated(),
        (None, false) => Ok(span),
    }
}

enum Part {
    Number(String),
    Word(String),
    Time(String),
    YearMonth(String, String),
}

fn parts_of(text: &str) -> Result<Vec<Part>, NotASpan> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(parts) };
        let length = |accepted: &dyn Fn(char) -> bool| rest.find(|c| !accepted(c)).unwrap_or(rest.len());
        let end = if first == '@' {
            1
        } else if first.is_ascii_alphabetic() {
            let end = length(&|c| c.is_ascii_alphabetic());
            parts.push(Part::Word(rest[..end].to_owned()));
            end
        } else if first.is_ascii_digit() || ['-', '+', '.'].contains(&first) {
            // Blanks may follow a sign: `1 month - 1 day`.
            let signed = rest.strip_prefix(['-', '+']).map_or(rest, str::trim_start);
            let sign = if signed.len() < rest.len() { &rest[..1] } else { "" };
            let length =
                signed.find(|c: char| !(c.is_ascii_digit() || [':', '.', '-'].contains(&c))).unwrap_or(signed.len());
            let body = &signed[..length];
            parts.push(match body.split_once('-') {
                _ if body.contains(':') => Part::Time(format!("{sign}{body}")),
                Some((years, months)) => Part::YearMonth(format!("{sign}{years}"), months.to_owned()),
                None => Part::Number(format!("{sign}{body}")),
            });
            rest.len() - signed.len() + length
        } else {
            return Err(NotASpan::Syntax);
        };
        rest = &rest[end..];
    }
}

/// Adds hours, minutes and seconds: `04:05:06.5`, `04:05`; `05:06` as minutes and seconds with `minutes`, or with a fraction.
fn read_time(time: &str, minutes: bool, span: &mut Span) -> Result<(), NotASpan> {
    let negative = time.starts_with('-');
    let parts: Vec<&str> = time.trim_start_matches(['-', '+']).split(':').collect();
    let (hours, minute, second) = match parts.as_slice() {
        [minute, second] if minutes || second.contains('.') => ("0", *minute, *second),
        [hours, minute] => (*hours, *minute, "0"),
        [hours, minute, second] => (*hours, *minute, *second),
        _ => return Err(NotASpan::Syntax),
    };
    let plain = |text: &str| split_number(text).filter(|_| !text.contains('.')).ok_or(NotASpan::Syntax);
    let (hours, ..) = plain(hours)?;
    let (minute, ..) = plain(minute)?;
    let (second, fraction, _) = split_number(second).ok_or(NotASpan::Syntax)?;
    if minute > 59 || second > 59 {
        return Err(NotASpan::OutOfRange);
    }
    let sign = if negative { -1 } else { 1 };
    span.add(Unit::Hour, sign * hours, 0.0)?;
    span.add(Unit::Minute, sign * minute, 0.0)?;
    span.add(Unit::Second, sign * second, if negative { -fraction } else { fraction })
}

/// ISO 8601 after its `P`: `1Y2M3DT4H5M6S`, `1W`, `0001-02-03T04:05:06`.
fn read_designated(text: &str) -> Result<Span, NotASpan> {
    let mut span = Span::default();
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) if !time.is_empty() => (date, Some(time)),
        Some(_) => return Err(NotASpan::Syntax),
        None => (text, None),
    };
    if date.is_empty() && time.is_none() {
        return Err(NotASpan::Syntax);
    }
    let lettered = |part: &str| part.contains(|c: char| c.is_ascii_alphabetic());
    if !date.is_empty() && !lettered(date) {
        let numbers: Vec<&str> = date.split('-').collect();
        let units = [Unit::Year, Unit::Month, Unit::Day];
        if numbers.len() > units.len() {
            return Err(NotASpan::Syntax);
        }
        for (number, unit) in numbers.into_iter().zip(units) {
            let (whole, fraction, _) = split_number(number).ok_or(NotASpan::Syntax)?;
            span.add(unit, whole, fraction)?;
        }
    } else {
        designated(
            date,
            |letter| match letter.to_ascii_uppercase() {
                'Y' => Some(Unit::Year),
                'M' => Some(Unit::Month),
                'W' => Some(Unit::Week),
                'D' => Some(Unit::Day),
                _ => None,
            },
            &mut span,
        )?;
    }
    match time {
        Some(time) if !lettered(time) && time.contains(':') => read_time(time, false, &mut span)?,
        Some(time) => designated(
            time,
            |letter| match letter.to_ascii_uppercase() {
                'H' => Some(Unit::Hour),
                'M' => Some(Unit::Minute),
                'S' => Some(Unit::Second),
                _ => None,
            },
            &mut span,
        )?,
        None => {}
    }
    Ok(span)
}

/// Adds numbers with a letter each.
fn designated(text: &str, unit: impl Fn(char) -> Option<Unit>, span: &mut Span) -> Result<(), NotASpan> {
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or(NotASpan::Syntax)?;
        let letter = rest[at..].chars().next().and_then(&unit).ok_or(NotASpan::Syntax)?;
        let (whole, fraction, _) = split_number(&rest[..at]).ok_or(NotASpan::Syntax)?;
        span.add(letter, whole, fraction)?;
        rest = &rest[at + 1..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn span(months: i32, days: i32, micros: i64) -> Span {
        Span { months, days, micros }
    }

    /// Each was read by PostgreSQL 15.
    #[test]
    fn intervals_are_read_as_postgres_reads_them() {
        let second = 1_000_000;
        let cases = [
            ("04:05:06", span(0, 0, 14_706 * second)),
            ("1 day 04:05:06", span(0, 1, 14_706 * second)),
            ("1 12:59:10", span(0, 1, 46_750 * second)),
            ("1 year 2 mons", span(14, 0, 0)),
            ("1-2", span(14, 0, 0)),
            ("-1-2", span(-14, 0, 0)),
            ("P1DT2H", span(0, 1, 2 * HOUR)),
            ("P1Y2M3DT4H5M6S", span(14, 3, 14_706 * second)),
            ("P0001-02-03T04:05:06", span(14, 3, 14_706 * second)),
            ("P2W", span(0, 14, 0)),
            ("P1", span(12, 0, 0)),
            ("@ 1 minute ago", span(0, 0, -60 * second)),
            ("-1 day -02:03:04", span(0, -1, -7_384 * second)),
            ("-1 day 02:03:04", span(0, -1, 7_384 * second)),
            ("1.5 days", span(0, 1, 12 * HOUR)),
            ("1.5 months", span(1, 15, 0)),
            ("1.5 weeks", span(0, 10, 12 * HOUR)),
            ("1.5 years", span(18, 0, 0)),
            ("2 w 3 d", span(0, 17, 0)),
            ("1d2h3m4.5s", span(0, 1, 7_384_500_000)),
            ("5", span(0, 0, 5 * second)),
            ("1 c", span(1_200, 0, 0)),
            ("05:06.5", span(0, 0, 306_500_000)),
            ("250 ms", span(0, 0, 250_000)),
            ("1 month - 1 day", span(1, -1, 0)),
            ("- 1 day + 02:03:04", span(0, -1, 7_384 * second)),
        ];
        each(cases, |(text, expected)| {
            assert_eq!(read_interval(text, None), Ok(expected), "{text}");
        });
        each(["", "foo", "1 foo", "day", "1 day 2 days", "P", "PT", "1 day ago ago", "1:2:3:4", "--1 day"], |text| {
            assert_eq!(read_interval(text, None), Err(NotASpan::Syntax), "{text}");
        });
        assert_eq!(read_interval("9999999999 days", None), Err(NotASpan::OutOfRange));
    }

    #[test]
    fn fields_give_numbers_their_unit() {
        let fields = |first, last| Some((first, last));
        let second = 1_000_000;
        assert_eq!(read_interval("1:30", fields(Unit::Minute, Unit::Second)), Ok(span(0, 0, 90 * second)));
        assert_eq!(read_interval("90", fields(Unit::Minute, Unit::Minute)), Ok(span(0, 0, 5_400 * second)));
        assert_eq!(read_interval("3 days 2 hours", fields(Unit::Day, Unit::Day)), Ok(span(0, 3, 0)));
        assert_eq!(read_interval("1 2", fields(Unit::Day, Unit::Hour)), Ok(span(0, 1, 2 * HOUR)));
        assert_eq!(read_interval("1-2", fields(Unit::Year, Unit::Month)), Ok(span(14, 0, 0)));
    }

    #[test]
    fn products_and_justified_intervals_are_those_of_postgres() {
        assert_eq!(span(1, 0, 0).scaled(|part| part * 1.5), Ok(span(1, 15, 0)));
        assert_eq!(span(0, 1, 0).scaled(|part| part * 0.5), Ok(span(0, 0, 12 * HOUR)));
        assert_eq!(span(0, 0, HOUR).scaled(|part| part * 48.0), Ok(span(0, 0, 48 * HOUR)));
        assert_eq!(span(1, 0, 0).scaled(|part| part / 3.0), Ok(span(0, 10, 0)));
        assert_eq!(span(49, 0, 0).scaled(|part| part / 49.0), Ok(span(1, 0, 0)));
        assert_eq!(span(0, 0, 27 * HOUR).justified(true, false), Some(span(0, 1, 3 * HOUR)));
        assert_eq!(span(0, 35, 0).justified(false, true), Some(span(1, 5, 0)));
        assert_eq!(span(1, 0, -HOUR).justified(true, true), Some(span(0, 29, 23 * HOUR)));
    }
}
