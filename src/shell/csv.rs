//! Lines of CSV (RFC 4180). They equal those of the Arrow crate's writer, which formats each value through a string of its own and
//! takes several times as long; here, texts, integers and instants are written at once, and other types by its formatter.

use std::io::Write;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::{DateTime, Datelike, SecondsFormat, Timelike, Utc};
use memchr::{memchr, memchr3};

/// Returns the lines of a batch without nested columns; with `header`, the first line has the column names.
///
/// # Errors
/// For values without a text, such as instants beyond the year 262,142.
pub(super) fn lines(batch: &RecordBatch, separator: u8, header: bool) -> Result<Vec<u8>, ArrowError> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(|column| Column::of(column, &options));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut lines = Lines { bytes: Vec::new(), begun: 0, separator };
    if header {
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
    Other(ArrayFormatter<'a>),
}

impl<'a> Column<'a> {
    fn of(column: &'a ArrayRef, options: &FormatOptions<'a>) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Utf8 => Self::Text(column.as_string()),
            DataType::Int64 => Self::Integer(column.as_primitive::<Int64Type>()),
            DataType::Boolean => Self::Boolean(column.as_boolean()),
            DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == "UTC" => {
                Self::Instant(column.as_primitive::<TimestampMicrosecondType>())
            }
            _ => Self::Other(ArrayFormatter::try_new(column.as_ref(), options)?),
        })
    }

    /// Writes a value; NULL is empty. `text` is a buffer.
    fn write(&self, row: usize, lines: &mut Lines, text: &mut String) -> Result<(), ArrowError> {
        match self {
            Self::Text(values) if values.is_valid(row) => lines.text(values.value(row).as_bytes()),
            Self::Integer(values) if values.is_valid(row) => write!(lines.bytes, "{}", values.value(row))?,
            Self::Boolean(values) if values.is_valid(row) => write!(lines.bytes, "{}", values.value(row))?,
            Self::Instant(values) if values.is_valid(row) => lines.instant(values.value(row))?,
            Self::Other(values) => {
                text.clear();
                values.value(row).write(text)?;
                lines.text(text.as_bytes());
            }
            _ => {}
        }
        Ok(())
    }
}

/// Lines under construction.
struct Lines {
    bytes: Vec<u8>,
    /// Start of the current line.
    begun: usize,
    separator: u8,
}

impl Lines {
    fn begin_cell(&mut self, at: usize) {
        if at > 0 {
            self.bytes.push(self.separator);
        }
    }

    /// Ends a line of this many cells.
    fn end(&mut self, cells: usize) {
        // An empty line would be no row.
        if cells == 1 && self.bytes.len() == self.begun {
            self.bytes.extend_from_slice(b"\"\"");
        }
        self.bytes.push(b'\n');
        self.begun = self.bytes.len();
    }

    /// Writes a text, in quotes if it needs them.
    fn text(&mut self, text: &[u8]) {
        if memchr3(b'"', b'\n', b'\r', text).is_none() && memchr(self.separator, text).is_none() {
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

    use arrow::array::{Float64Array, StringViewArray};
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
        String::from_utf8(lines(batch, separator, header).expect("written")).expect("text")
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
        lines(&batch(vec![("at", Arc::new(column))]), b',', false).expect_err("no such year");
    }
}
