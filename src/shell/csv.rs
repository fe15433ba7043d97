//! Lines of CSV (RFC 4180). They are equal to those of the Arrow crate's writer, which formats each value through its own
//! string and takes several times as long. Here, texts, integers and instants are written directly, and other types by
//! Arrow's formatter.
//!
//! For spreadsheets, values are written differently, because a spreadsheet interprets a file as if its contents were typed:
//! `Style::excel`.

use std::fmt::Write as _;
use std::io::Write;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::{DateTime, Datelike, SecondsFormat, Timelike, Utc};
use memchr::{memchr, memchr3};

/// Form of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// Character between values.
    pub(super) separator: u8,
    /// Written for spreadsheets, as [`CsvDialect::Excel`](super::output::CsvDialect::Excel) describes.
    pub(super) excel: bool,
}

/// Byte order mark of UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();
/// Instants and local times for spreadsheets.
const LOCAL: &str = "%Y-%m-%d %H:%M:%S";
/// Digits of a number that spreadsheets keep.
const DIGITS: usize = 15;

/// Returns the lines of a batch without nested columns; with `header`, the first line has the column names.
///
/// # Errors
/// For values without a text, such as instants beyond the year 262,142.
pub(super) fn lines(batch: &RecordBatch, style: Style, header: bool) -> Result<Vec<u8>, ArrowError> {
    let options = FormatOptions::default();
    let options = match style.excel {
        true => options.with_timestamp_format(Some(LOCAL)).with_timestamp_tz_format(Some(LOCAL)),
        false => options,
    };
    let columns = batch.columns().iter().map(|column| Column::of(column, &options, style));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut lines = Lines { bytes: Vec::new(), begun: 0, style };
    if header {
        if style.excel {
            lines.bytes.extend_from_slice(MARK);
            lines.begun = MARK.len();
        }
        for (at, field) in batch.schema_ref().fields().iter().enumerate() {
            lines.begin_cell(at);
            lines.text(field.name().as_bytes());
        }
        lines.end(columns.len());
    }
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter().enumerate() {
            lines.begin_cell(at);
            column.write(row, &mut lines, &mut text)?;
        }
        lines.end(columns.len());
    }
    Ok(lines.bytes)
}

/// The values of a column.
enum Column<'a> {
    Text(&'a StringArray),
    Integer(&'a Int64Array),
    Boolean(&'a BooleanArray),
    /// Microseconds since 1970, shown in UTC.
    Instant(&'a TimestampMicrosecondArray),
    /// Fractions for a spreadsheet. `exact` ones keep all digits; floating-point numbers, which are inexact anyway, stay numbers.
    Fraction {
        values: ArrayFormatter<'a>,
        exact: bool,
    },
    Other(ArrayFormatter<'a>),
}

impl<'a> Column<'a> {
    fn of(column: &'a ArrayRef, options: &FormatOptions<'a>, style: Style) -> Result<Self, ArrowError> {
        let kind = column.data_type();
        Ok(match kind {
            _ if style.excel && (kind.is_floating() || kind.is_decimal()) => {
                let values = ArrayFormatter::try_new(column.as_ref(), options)?;
                Self::Fraction { values, exact: kind.is_decimal() }
            }
            DataType::Utf8 => Self::Text(column.as_string()),
            DataType::Int64 => Self::Integer(column.as_primitive::<Int64Type>()),
            DataType::Boolean => Self::Boolean(column.as_boolean()),
            DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == "UTC" && !style.excel => {
                Self::Instant(column.as_primitive::<TimestampMicrosecondType>())
            }
            _ => Self::Other(ArrayFormatter::try_new(column.as_ref(), options)?),
        })
    }

    /// Writes a value; NULL is empty. `text` is a buffer.
    fn write(&self, row: usize, lines: &mut Lines, text: &mut String) -> Result<(), ArrowError> {
        match self {
            Self::Text(values) if values.is_valid(row) => lines.value(values.value(row)),
            Self::Integer(values) if values.is_valid(row) => match lines.style.excel {
                true => {
                    text.clear();
                    write!(text, "{}", values.value(row)).map_err(|error| ArrowError::CastError(error.to_string()))?;
                    lines.number(text);
                }
                false => write!(lines.bytes, "{}", values.value(row))?,
            },
            Self::Boolean(values) if values.is_valid(row) => write!(lines.bytes, "{}", values.value(row))?,
            Self::Instant(values) if values.is_valid(row) => lines.instant(values.value(row))?,
            Self::Fraction { values, exact } => {
                text.clear();
                values.value(row).write(text)?;
                let cut = *exact && !keeps_digits(text);
                // With a semicolon, spreadsheets expect a decimal comma.
                if lines.style.separator == b';' {
                    *text = text.replacen('.', ",", 1);
                }
                if cut { lines.formula(text) } else { lines.text(text.as_bytes()) }
            }
            Self::Other(values) => {
                text.clear();
                values.value(row).write(text)?;
                lines.value(text);
            }
            _ => {}
        }
        Ok(())
    }
}

/// True for digits with a sign or a decimal point.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(unsigned),
    }
}

/// True for a number that a spreadsheet shows as it is. It would drop a plus, zeros at the begin, and digits at the end.
fn keeps_digits(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let fraction = fraction.trim_end_matches('0');
    let significant = match whole {
        "" | "0" => fraction.trim_start_matches('0').len(),
        _ => whole.len() + fraction.len(),
    };
    let padded = whole.len() > 1 && whole.starts_with('0');
    significant <= DIGITS && !padded && !unsigned.starts_with('+')
}

/// Lines under construction.
struct Lines {
    bytes: Vec<u8>,
    /// Start of the current line.
    begun: usize,
    style: Style,
}

impl Lines {
    fn begin_cell(&mut self, at: usize) {
        if at > 0 {
            self.bytes.push(self.style.separator);
        }
    }

    /// Ends a line of this many cells.
    fn end(&mut self, cells: usize) {
        // An empty line would be no row.
        if cells == 1 && self.bytes.len() == self.begun {
            self.bytes.extend_from_slice(b"\"\"");
        }
        self.bytes.extend_from_slice(if self.style.excel { b"\r\n" } else { b"\n" });
        self.begun = self.bytes.len();
    }

    /// Writes a value that is a text, or looks like one.
    fn value(&mut self, value: &str) {
        match value.chars().next() {
            _ if !self.style.excel => self.text(value.as_bytes()),
            Some('0'..='9' | '-' | '+') if is_number(value) => self.number(value),
            // A number is shown as typed. Whatever else begins like a formula would be computed.
            Some('=' | '@' | '\t' | '\r' | '+' | '-') if value.parse::<f64>().is_err() => {
                self.text(format!("'{value}").as_bytes());
            }
            _ => self.text(value.as_bytes()),
        }
    }

    /// Writes a number for a spreadsheet: as a text if it would lose digits.
    fn number(&mut self, number: &str) {
        match keeps_digits(number) {
            true => self.text(number.as_bytes()),
            false => self.formula(number),
        }
    }

    /// Writes a text as a formula, which a spreadsheet does not take for a number.
    fn formula(&mut self, text: &str) {
        self.text(format!("=\"{text}\"").as_bytes());
    }

    /// Writes a text, in quotes if it needs them.
    fn text(&mut self, text: &[u8]) {
        if memchr3(b'"', b'\n', b'\r', text).is_none() && memchr(self.style.separator, text).is_none() {
            self.bytes.extend_from_slice(text);
            return;
        }
        self.bytes.push(b'"');
        let mut rest = text;
        while let Some(quote) = memchr(b'"', rest) {
            self.bytes.extend_from_slice(&rest[..=quote]);
            self.bytes.push(b'"');
            rest = &rest[quote + 1..];
        }
        self.bytes.extend_from_slice(rest);
        self.bytes.push(b'"');
    }

    /// Writes an instant, in microseconds since 1970, in RFC 3339.
    fn instant(&mut self, micros: i64) -> Result<(), ArrowError> {
        let Some(at) = DateTime::<Utc>::from_timestamp_micros(micros) else {
            return Err(ArrowError::CastError(format!("timestamp out of range: {micros} microseconds since 1970")));
        };
        let Some(year) = u32::try_from(at.year()).ok().filter(|year| *year <= 9_999) else {
            write!(self.bytes, "{}", at.to_rfc3339_opts(SecondsFormat::AutoSi, true))?;
            return Ok(());
        };
        let mut text = *b"0000-00-00T00:00:00.000000";
        let mut number = |end: usize, digits: usize, mut number: u32| {
            for place in text[end - digits..end].iter_mut().rev() {
                // A digit always fits.
                *place += u8::try_from(number % 10).unwrap_or_default();
                number /= 10;
            }
        };
        let fraction = at.timestamp_subsec_micros();
        for (end, digits, value) in [
            (4, 4, year),
            (7, 2, at.month()),
            (10, 2, at.day()),
            (13, 2, at.hour()),
            (16, 2, at.minute()),
            (19, 2, at.second()),
            (26, 6, fraction),
        ] {
            number(end, digits, value);
        }
        let length = match fraction {
            0 => 19,
            _ if fraction.is_multiple_of(1_000) => 23,
            _ => 26,
        };
        self.bytes.extend_from_slice(&text[..length]);
        self.bytes.push(b'Z');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, Float64Array, StringViewArray};
    use arrow::csv::WriterBuilder;
    use proptest::prelude::*;

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
            .expect("columns of one length")
    }

    fn by_arrow(batch: &RecordBatch, separator: u8, header: bool) -> String {
        let mut writer = WriterBuilder::new().with_header(header).with_delimiter(separator).build(Vec::new());
        writer.write(batch).expect("written");
        String::from_utf8(writer.into_inner()).expect("text")
    }

    fn ours(batch: &RecordBatch, separator: u8, header: bool) -> String {
        let style = Style { separator, excel: false };
        String::from_utf8(lines(batch, style, header).expect("written")).expect("text")
    }

    proptest! {
        #[test]
        fn lines_equal_those_of_the_arrow_writer(
            rows in prop::collection::vec(
                (
                    prop::option::of("[a,;\"\n\r\té漢 ]{0,12}"),
                    prop::option::of(any::<i64>()),
                    prop::option::of(any::<bool>()),
                    prop::option::of(-70_000_000_000_000_000..260_000_000_000_000_000_i64),
                    prop::option::of(any::<f64>()),
                ),
                0..20,
            ),
            single: bool,
            header: bool,
            separator in prop::sample::select(vec![b',', b'\t', b';']),
        ) {
            let texts: StringArray = rows.iter().map(|row| row.0.as_deref()).collect();
            let views: StringViewArray = rows.iter().map(|row| row.0.as_deref()).collect();
            let instants: TimestampMicrosecondArray = rows.iter().map(|row| row.3).collect();
            let whole: TimestampMicrosecondArray =
                rows.iter().map(|row| row.3.map(|micros| micros / 1_000_000_000 * 1_000_000_000)).collect();
            let mut columns: Vec<(&str, ArrayRef)> = vec![("a text", Arc::new(texts))];
            if !single {
                columns.extend([
                    ("a \"number\"", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()) as ArrayRef),
                    ("flag", Arc::new(rows.iter().map(|row| row.2).collect::<BooleanArray>())),
                    ("at", Arc::new(instants.clone().with_timezone("UTC"))),
                    ("whole", Arc::new(whole.with_timezone("UTC"))),
                    ("local", Arc::new(instants.clone().with_timezone("Europe/Berlin"))),
                    ("zoneless", Arc::new(instants)),
                    ("score, from 0", Arc::new(rows.iter().map(|row| row.4).collect::<Float64Array>())),
                    ("view", Arc::new(views)),
                ]);
            }
            let batch = batch(columns);
            prop_assert_eq!(ours(&batch, separator, header), by_arrow(&batch, separator, header));
        }
    }

    #[test]
    fn an_instant_beyond_the_calendar_is_an_error() {
        let column = TimestampMicrosecondArray::from(vec![i64::MAX]).with_timezone("UTC");
        let style = Style { separator: b',', excel: false };
        lines(&batch(vec![("at", Arc::new(column))]), style, false).expect_err("no such year");
    }

    #[test]
    fn a_spreadsheet_shows_what_was_written() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            Some("9007199254740993"),
            Some("007"),
            Some("=1+1"),
            Some("-0.5"),
            Some("- a; \"b\""),
            None,
        ]));
        let numbers: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(9_007_199_254_740_993), Some(0), Some(-7), None, Some(12), Some(1)]));
        let scores: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(1.5), Some(-0.47), None, Some(2.0), Some(1e300), Some(0.0)]));
        let times = TimestampMicrosecondArray::from(vec![Some(1_782_900_000_123_456); 6]);
        let (zoned, local): (ArrayRef, ArrayRef) =
            (Arc::new(times.clone().with_timezone("Europe/Berlin")), Arc::new(times));
        let batch = batch(vec![("id", texts), ("n", numbers), ("score", scores), ("at", zoned), ("utc", local)]);
        let text = lines(&batch, Style { separator: b';', excel: true }, true).expect("written");
        let text = String::from_utf8(text).expect("text");
        let at = "2026-07-01 12:00:00;2026-07-01 10:00:00\r\n";
        let rows = [
            "\u{feff}id;n;score;at;utc\r\n".to_owned(),
            format!("\"=\"\"9007199254740993\"\"\";\"=\"\"9007199254740993\"\"\";1,5;{at}"),
            format!("\"=\"\"007\"\"\";0;-0,47;{at}"),
            format!("'=1+1;-7;;{at}"),
            format!("-0.5;;2,0;{at}"),
            format!("\"'- a; \"\"b\"\"\";12;1e300;{at}"),
            format!(";1;0,0;{at}"),
        ];
        assert_eq!(text, rows.concat());
    }

    #[test]
    fn a_spreadsheet_keeps_all_digits_of_decimals_and_of_texts() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            "-9007199254740993",
            "-0.5",
            "+4915112345678901",
            "0.1234567890123456789",
            "-007",
            "0.000000000000000001",
        ]));
        let decimals = [Some(12_345_678_901_234_567_890), Some(150), None, Some(-1), Some(0), Some(10_000_000_000)];
        let decimals = Decimal128Array::from(decimals.to_vec()).with_precision_and_scale(38, 10).expect("a scale");
        let floats: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(1.0 / 3.0), Some(1.5), Some(-1.0), None, Some(1e300), Some(0.0)]));
        let batch = batch(vec![("text", texts), ("decimal", Arc::new(decimals)), ("float", floats)]);
        let written = |separator| {
            let text = lines(&batch, Style { separator, excel: true }, true).expect("written");
            String::from_utf8(text).expect("text")
        };
        let rows = [
            "\u{feff}text,decimal,float\r\n",
            "\"=\"\"-9007199254740993\"\"\",\"=\"\"1234567890.1234567890\"\"\",0.3333333333333333\r\n",
            "-0.5,0.0000000150,1.5\r\n",
            "\"=\"\"+4915112345678901\"\"\",,-1.0\r\n",
            "\"=\"\"0.1234567890123456789\"\"\",-0.0000000001,\r\n",
            "\"=\"\"-007\"\"\",0.0000000000,1e300\r\n",
            "0.000000000000000001,1.0000000000,0.0\r\n",
        ];
        assert_eq!(written(b','), rows.concat());
        assert!(written(b';').contains(";\"=\"\"1234567890,1234567890\"\"\";0,3333333333333333\r\n"));
    }
}
