//! `postgres_to_char(time, template)`: formats a time by a template of PostgreSQL, such as `'YYYY-MM-DD HH24:MI'`. The
//! engine's `to_char` would copy the template into its result.
//!
//! A time with a zone is written in the zone of its type, as every other function reads it: that of the session, or the one that
//! `AT TIME ZONE` gave it. Numbers have templates of their own (`number_template`). If a third argument is true, the number has
//! double precision, and not numeric, which the engine represents in the same way: it is rounded from its exact value, half to
//! even. Source: PostgreSQL documentation, "Data Type Formatting Functions".

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::temporal_conversions::timestamp_us_to_datetime;
use chrono::{Datelike, NaiveDateTime, Offset, TimeZone, Timelike};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::cast::has_double_column;
use super::number_template::{Digits, NumberTemplate};
use crate::error::{Error, ErrorKind};

/// See the module's documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PostgresToChar {
    signature: Signature,
}

impl PostgresToChar {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::user_defined(Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for PostgresToChar {
    fn name(&self) -> &str {
        "postgres_to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [value, _, rest @ ..] = given else { return plan_err!("to_char takes a time and a template") };
        if rest.len() > 1 {
            return plan_err!("to_char takes a time and a template");
        }
        let value = match value {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            other => other.clone(),
        };
        Ok([value, DataType::Utf8].into_iter().chain(rest.iter().map(|_| DataType::Boolean)).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given {
            [DataType::Timestamp(..), ..] => Ok(DataType::Utf8),
            [number, ..] if number.is_numeric() => Ok(DataType::Utf8),
            other => {
                let what = other.first().map(ToString::to_string).unwrap_or_default();
                let line = format!("to_char of {what} with a template of PostgreSQL is not supported");
                let advice = "use it for dates, times and numbers; for others use casts to text";
                Err(Error::new(ErrorKind::Unsupported, line).advice(advice).into())
            }
        }
    }

    fn simplify(&self, mut arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if let [value, _] = arguments.as_slice()
            && context.get_data_type(value)?.is_floating()
            && has_double_column(value, context)?
        {
            arguments.push(lit(true));
            return Ok(ExprSimplifyResult::Simplified(Self::udf().call(arguments)));
        }
        Ok(ExprSimplifyResult::Original(arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times, templates, rest @ ..] = arguments.args.as_slice() else {
            return plan_err!("to_char takes a time and a template");
        };
        let constant = matches!((times, templates), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { arguments.number_rows };
        let times = times.to_array(rows)?;
        if times.data_type().is_numeric() {
            let double = matches!(rest, [ColumnarValue::Scalar(ScalarValue::Boolean(Some(true)))]);
            let texts = numbers(&times, &templates.to_array(rows)?, double)?;
            return match constant {
                true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?)),
                false => Ok(ColumnarValue::Array(Arc::new(texts))),
            };
        }
        let zone = match times.data_type() {
            DataType::Timestamp(_, Some(zone)) => Some(zone.parse::<Zone>()?),
            _ => None,
        };
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let templates = cast(&templates.to_array(rows)?, &DataType::Utf8)?;
        let templates = templates.as_string::<i32>();
        let mut parsed: Option<(&str, Vec<Part>)> = None;
        let mut texts = StringBuilder::new();
        for row in 0..rows {
            if times.is_null(row) || templates.is_null(row) {
                texts.append_null();
                continue;
            }
            let template = templates.value(row);
            if parsed.as_ref().is_none_or(|(known, _)| *known != template) {
                parsed = Some((template, parts(template)?));
            }
            let Some(at) = timestamp_us_to_datetime(times.value(row)) else {
                return exec_err!("time beyond the calendar");
            };
            let at = Moment::new(at, zone);
            if let Some((_, parts)) = &parsed {
                parts.iter().for_each(|part| part.put(&mut texts, &at));
            }
            texts.append_value("");
        }
        let texts = texts.finish();
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?)),
            false => Ok(ColumnarValue::Array(Arc::new(texts))),
        }
    }
}

/// A number of floating point in decimal digits, as many as the template has and the type keeps, half to even.
fn digits_of_double(value: f64, scale: usize, single: bool) -> String {
    let kept = if single { 6 } else { 15 };
    let whole = format!("{:.0}", value.abs()).len();
    let scale = if whole >= kept { 0 } else { scale.min(kept - whole) };
    format!("{value:.scale$}")
}

/// Numbers in the form of their templates. `double`: those of floating point are rounded as such.
fn numbers(values: &ArrayRef, templates: &ArrayRef, double: bool) -> Result<StringArray> {
    let digits = cast(values, &DataType::Utf8)?;
    // Those of fractions may have an exponent.
    let fractions = match values.data_type().is_floating() {
        true => Some(cast(values, &DataType::Float64)?),
        false => None,
    };
    let templates = cast(templates, &DataType::Utf8)?;
    let (digits, templates) = (digits.as_string::<i32>(), templates.as_string::<i32>());
    let mut parsed: Option<(&str, NumberTemplate)> = None;
    let mut texts = StringBuilder::new();
    for row in 0..values.len() {
        if digits.is_null(row) || templates.is_null(row) {
            texts.append_null();
            continue;
        }
        let template = templates.value(row);
        if parsed.as_ref().is_none_or(|(known, _)| *known != template) {
            parsed = Some((template, NumberTemplate::read(template)?));
        }
        let text = match (&fractions, &parsed) {
            (Some(fractions), Some((_, template))) if double => {
                let value = fractions.as_primitive::<Float64Type>().value(row);
                digits_of_double(value, template.scale(), *values.data_type() == DataType::Float32)
            }
            (Some(fractions), _) => fractions.as_primitive::<Float64Type>().value(row).to_string(),
            (None, _) => digits.value(row).to_owned(),
        };
        let Some(number) = Digits::read(&text) else {
            return exec_err!("to_char: {text} has no digits");
        };
        texts.append_option(parsed.as_ref().map(|(_, template)| template.text(&number)));
    }
    Ok(texts.finish())
}

/// A local time with what is known of its zone.
struct Moment {
    at: NaiveDateTime,
    /// Abbreviation, and seconds ahead of UTC.
    zone: Option<(String, i32)>,
}

impl Moment {
    /// `at` is in UTC if there is a zone.
    fn new(at: NaiveDateTime, zone: Option<Zone>) -> Self {
        let Some(Zone { offsets, names }) = zone else { return Self { at, zone: None } };
        let there = offsets.from_utc_datetime(&at);
        let ahead = there.offset().fix().local_minus_utc();
        let abbreviation = match names {
            Some(names) => names.from_utc_datetime(&at).format("%Z").to_string(),
            None => there.format("%Z").to_string(),
        };
        Self { at: there.naive_local(), zone: Some((abbreviation, ahead)) }
    }
}

/// A time zone: arrow's, which may be an offset, and the named one, which has abbreviations.
#[derive(Debug, Clone, Copy)]
struct Zone {
    offsets: Tz,
    names: Option<chrono_tz::Tz>,
}

impl FromStr for Zone {
    type Err = ArrowError;

    fn from_str(name: &str) -> Result<Self, ArrowError> {
        Ok(Self { offsets: name.parse()?, names: name.parse().ok() })
    }
}

/// Upper, lower or mixed case, as the pattern was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Lower,
    Title,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Pattern {
        /// In lower case.
        name: &'static str,
        case: Case,
        /// Without zeros or blanks.
        bare: bool,
        /// Set if a name is not filled with blanks.
        plain: bool,
        /// Ordinal suffix, in this case.
        ordinal: Option<Case>,
    },
}

/// Patterns, longer ones first.
const PATTERNS: [&str; 53] = [
    "y,yyy", "sssss", "month", "ssss", "a.d.", "b.c.", "a.m.", "p.m.", "hh24", "hh12", "iyyy", "yyyy", "iddd", "day",
    "ddd", "iyy", "yyy", "mon", "tzh", "tzm", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "ad", "am", "bc", "cc", "dd",
    "dy", "hh", "id", "iw", "iy", "mi", "mm", "ms", "of", "pm", "rm", "ss", "tz", "us", "ww", "yy", "d", "i", "j", "q",
    "w", "y",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// Names that may be written like `Month`, beside all upper and all lower case.
const TITLES: [&str; 4] = ["month", "mon", "day", "dy"];

/// Returns the pattern that a text begins with.
fn pattern(text: &str) -> Option<(&'static str, Case)> {
    PATTERNS.iter().find_map(|name| {
        let written = text.get(..name.len())?;
        let title = || name[..1].to_uppercase() + &name[1..];
        let case = match written {
            written if written == *name => Case::Lower,
            written if written == name.to_uppercase() => Case::Upper,
            written if TITLES.contains(name) && written == title() => Case::Title,
            _ => return None,
        };
        Some((*name, case))
    })
}

/// Cuts a template into its parts.
fn parts(template: &str) -> Result<Vec<Part>> {
    let refused = |part: &str| {
        let line = format!("to_char: `{part}` is not supported in a template");
        Err(Error::new(ErrorKind::Unsupported, line).advice("put text in double quotes").into())
    };
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(next) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next() {
                    Some((at, '"')) => break at + 1,
                    Some((_, '\\')) => text.extend(characters.next().map(|(_, escaped)| escaped)),
                    Some((_, character)) => text.push(character),
                    None => break quoted.len(),
                }
            };
            rest = &quoted[end..];
            continue;
        }
        let bare = rest.starts_with("FM") || rest.starts_with("fm");
        // Names are always those of the C locale.
        let localized = rest.starts_with("TM") || rest.starts_with("tm");
        let after = if bare || localized { &rest[2..] } else { rest };
        match pattern(after) {
            Some((name, case)) => {
                rest = &after[name.len()..];
                let ordinal = match rest.get(..2) {
                    Some("TH") => Some(Case::Upper),
                    Some("th") => Some(Case::Lower),
                    _ => None,
                };
                // Numbers as words are not written by PostgreSQL either.
                if ordinal.is_some() || rest.starts_with("SP") {
                    rest = &rest[2..];
                }
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                let plain = bare || (localized && name != "rm");
                parts.push(Part::Pattern { name, case, bare, plain, ordinal });
            }
            None if bare || localized => return refused(&rest[..2]),
            // It matters only for text that is read.
            None if rest.starts_with("FX") || rest.starts_with("fx") => rest = &rest[2..],
            // The engine's formats are read before this.
            None if next == '%' && rest[1..].starts_with(|c: char| c.is_alphabetic()) => return refused("%"),
            None if next == '\\' && rest[1..].starts_with('"') => {
                text.push('"');
                rest = &rest[2..];
            }
            None => {
                text.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

impl Part {
    fn put(&self, out: &mut impl Write, moment: &Moment) {
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::Pattern { name, case, bare, plain, ordinal } => match value(name, *case, moment) {
                Value::Number(number, width) => {
                    let sign = if number < 0 { "-" } else { "" };
                    let width = if *bare { 0 } else { width };
                    let digits = format!("{sign}{:0width$}", number.unsigned_abs());
                    with_ordinal(digits, number, *ordinal)
                }
                Value::Digits(digits) => {
                    let number = digits.replace(',', "").parse().unwrap_or(0);
                    with_ordinal(digits, number, *ordinal)
                }
                Value::Name(name, width) => {
                    let name = match case {
                        Case::Upper => name.to_uppercase(),
                        Case::Lower => name.to_lowercase(),
                        Case::Title => name,
                    };
                    let width = if *plain { 0 } else { width };
                    format!("{name:width$}")
                }
            },
        };
        // Writing to memory does not fail.
        let _ = out.write_str(&text);
    }
}

enum Value {
    /// With its width, filled with zeros.
    Number(i64, usize),
    Digits(String),
    /// With its width, filled with blanks.
    Name(String, usize),
}

fn with_ordinal(digits: String, number: i64, ordinal: Option<Case>) -> String {
    let Some(case) = ordinal else { return digits };
    let suffix = match (number.unsigned_abs() % 100, number.unsigned_abs() % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    digits + &if case == Case::Upper { suffix.to_uppercase() } else { suffix.to_owned() }
}

fn value(pattern: &str, case: Case, moment: &Moment) -> Value {
    use Value::{Digits, Name, Number};
    let Moment { at, zone } = moment;
    // Years before the first count backwards.
    let era = |year: i32| i64::from(if year > 0 { year } else { 1 - year });
    let (year, week_year) = (era(at.year()), era(at.iso_week().year()));
    let hour12 = i64::from((at.hour() + 11) % 12 + 1);
    let micros = i64::from(at.nanosecond() % 1_000_000_000 / 1_000);
    let weekday = at.weekday().num_days_from_sunday() as usize;
    let month = at.month0() as usize;
    let ordinal = i64::from(at.ordinal());
    let dotted = |text: &str| text.chars().flat_map(|c| [c, '.']).collect::<String>();
    let half = if at.hour() < 12 { "am" } else { "pm" };
    let of_era = if at.year() > 0 { "ad" } else { "bc" };
    let offset = zone.as_ref().map(|(_, ahead)| *ahead);
    let hours = |ahead: i32| format!("{}{:02}", if ahead < 0 { '-' } else { '+' }, ahead.unsigned_abs() / 3_600);
    let minutes = |ahead: i32| i64::from(ahead.unsigned_abs() / 60 % 60);
    match pattern {
        "yyyy" => Number(year, 4),
        "yyy" => Number(year % 1_000, 3),
        "yy" => Number(year % 100, 2),
        "y" => Number(year % 10, 1),
        "y,yyy" => Digits(format!("{},{:03}", year / 1_000, year % 1_000)),
        "iyyy" => Number(week_year, 4),
        "iyy" => Number(week_year % 1_000, 3),
        "iy" => Number(week_year % 100, 2),
        "i" => Number(week_year % 10, 1),
        "cc" => Number((year + 99) / 100 * if at.year() > 0 { 1 } else { -1 }, 2),
        "q" => Number(i64::from(at.month0() / 3 + 1), 1),
        "mm" => Number(i64::from(at.month()), 2),
        "month" => Name(MONTHS[month].to_owned(), 9),
        "mon" => Name(MONTHS[month][..3].to_owned(), 0),
        "rm" => Name(ROMAN[month].to_owned(), 4),
        "ww" => Number((ordinal - 1) / 7 + 1, 2),
        "iw" => Number(i64::from(at.iso_week().week()), 2),
        "w" => Number(i64::from((at.day() - 1) / 7 + 1), 1),
        "ddd" => Number(ordinal, 3),
        // Days since the Monday of the first week.
        "iddd" => Number(i64::from((at.iso_week().week() - 1) * 7 + at.weekday().number_from_monday()), 3),
        "dd" => Number(i64::from(at.day()), 2),
        "d" => Number(i64::from(at.weekday().number_from_sunday()), 1),
        "id" => Number(i64::from(at.weekday().number_from_monday()), 1),
        "day" => Name(DAYS[weekday].to_owned(), 9),
        "dy" => Name(DAYS[weekday][..3].to_owned(), 0),
        "j" => Number(i64::from(at.num_days_from_ce()) + 1_721_425, 1),
        "hh24" => Number(i64::from(at.hour()), 2),
        "hh" | "hh12" => Number(hour12, 2),
        "mi" => Number(i64::from(at.minute()), 2),
        "ss" => Number(i64::from(at.second()), 2),
        "ssss" | "sssss" => Number(i64::from(at.num_seconds_from_midnight()), 1),
        "ms" | "ff3" => Digits(format!("{:03}", micros / 1_000)),
        "us" | "ff6" => Digits(format!("{micros:06}")),
        "ff1" => Digits(format!("{}", micros / 100_000)),
        "ff2" => Digits(format!("{:02}", micros / 10_000)),
        "ff4" => Digits(format!("{:04}", micros / 100)),
        "ff5" => Digits(format!("{:05}", micros / 10)),
        "am" | "pm" => Name(half.to_owned(), 0),
        "a.m." | "p.m." => Name(dotted(half), 0),
        "ad" | "bc" => Name(of_era.to_owned(), 0),
        "a.d." | "b.c." => Name(dotted(of_era), 0),
        "tz" => match (zone, case) {
            (Some((name, _)), Case::Lower) => Name(name.to_lowercase(), 0),
            (Some((name, _)), _) => Name(name.clone(), 0),
            (None, _) => Name(String::new(), 0),
        },
        "tzh" => Digits(offset.map_or_else(|| "+00".to_owned(), hours)),
        "tzm" => Number(offset.map_or(0, minutes), 2),
        "of" => Digits(match offset {
            Some(ahead) if minutes(ahead) > 0 => format!("{}:{:02}", hours(ahead), minutes(ahead)),
            Some(ahead) => hours(ahead),
            None => "+00".to_owned(),
        }),
        _ => Name(String::new(), 0),
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;
    use crate::cases::each;

    /// Expected texts were printed by PostgreSQL 15.
    #[test]
    fn times_are_printed_as_postgres_prints_them() {
        let at =
            NaiveDate::from_ymd_opt(2026, 11, 5).and_then(|day| day.and_hms_milli_opt(13, 4, 5, 678)).expect("a time");
        let text = |template: &str, zone: Option<&str>| {
            let moment = Moment::new(at, zone.map(|zone| zone.parse().expect("a zone")));
            let mut out = String::new();
            parts(template).expect(template).iter().for_each(|part| part.put(&mut out, &moment));
            out
        };
        let cases = [
            ("YYYY-MM-DD\"T\"HH24:MI:SS.MS", "2026-11-05T13:04:05.678"),
            ("Month DD, YYYY HH12:MI:SS AM", "November  05, 2026 01:04:05 PM"),
            ("Day DY D DDD Q WW IW ID CC J", "Thursday  THU 5 309 4 45 45 4 21 2461350"),
            ("FMMonth FMDDth TZ \"quoted\" Mon mon MON", "November 5th  quoted Nov nov NOV"),
            ("RM W SSSS MS US FF3 Y,YYY IYYY BC a.m. YYY Y", "XI   1 47045 678 678000 678 2,026 2026 AD p.m. 026 6"),
            ("FMDD.FMMM. DDTH", "5.11. 05TH"),
            ("[TMMonth][TMDay][TMmon][TMDy][TMRM][TMDD]", "[November][Thursday][nov][Thu][XI  ][05]"),
            ("SSSP FXYYYY TMMonth \\\"Y D\" MIDDLE \"", "05 2026 November \"6 5 MIDDLE "),
            (
                "FMMS FMHH24 FMRM| FMDay| dAY Day day DAY mONTH pm Pm P.M. iddd",
                "678 13 XI| Thursday| 5A6 Thursday  thursday  THURSDAY  mONTH pm Pm P.M. 312",
            ),
        ];
        each(cases, |(template, expected)| {
            assert_eq!(text(template, None), expected, "{template}");
        });
        assert_eq!(text("HH24:MI TZ OF TZH TZM", Some("Asia/Kolkata")), "18:34 IST +05:30 +05 30");
        assert_eq!(text("HH24 TZ", Some("UTC")), "13 UTC");
        for refused in ["%Y", "FM-"] {
            assert!(parts(refused).is_err(), "{refused}");
        }
    }
}
