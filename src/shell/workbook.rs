//! Results as sheets of an Excel workbook: typed cells, real times, a frozen header.
//!
//! Rows are written to a temporary file as they arrive, and the workbook is assembled when its file is closed. If a result
//! is too long for one sheet, it continues on the next sheet.
//!
//! Invariant: a cell shows the value that the engine returned. Numbers that a numeric cell cannot hold exactly are text, and
//! so are identifiers.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::{NaiveDate, NaiveDateTime};
use rust_xlsxwriter::{Format, Workbook, Worksheet, XlsxError};

/// Rows of a sheet, the header included.
const ROWS: u32 = 1_048_576;
/// Columns of a sheet.
const COLUMNS: usize = 16_384;
/// Characters of a cell.
const CHARACTERS: usize = 32_767;
/// Digits that a number in a cell keeps, and the largest integer with as many.
const DIGITS: usize = 15;
const EXACT: i64 = 999_999_999_999_999;
/// Greatest width of a column in characters; texts may be much longer.
const WIDE: usize = 60;

/// Workbook that results of an output share.
#[derive(Clone)]
pub(super) struct Book(Arc<Mutex<Workbook>>);

impl Default for Book {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Workbook::new())))
    }
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book").finish_non_exhaustive()
    }
}

impl Book {
    /// Number of sheets.
    pub(super) fn sheets(&self) -> usize {
        self.book().worksheets().len()
    }

    /// Removes the sheets of an incomplete result.
    pub(super) fn truncate(&self, sheets: usize) {
        self.book().worksheets_mut().truncate(sheets);
    }

    /// Writes the workbook to a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn save(&self, file: &File) -> io::Result<()> {
        self.book().save_to_writer(file).map_err(io_error)
    }

    /// Writes the workbook to a stream, which cannot go back to fill in sizes.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn send(&self, mut stream: impl Write) -> io::Result<()> {
        let bytes = self.book().save_to_buffer().map_err(io_error)?;
        stream.write_all(&bytes)
    }

    fn book(&self) -> MutexGuard<'_, Workbook> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a result to sheets of a workbook.
pub(super) struct Sheets {
    book: Book,
    /// Number of the result in the workbook, from 1.
    result: usize,
    /// Position of the current sheet.
    at: usize,
    /// Sheets of the result.
    parts: usize,
    /// Next row of the current sheet.
    row: u32,
    /// Maximum number of rows of a sheet, the header included.
    most: u32,
    schema: SchemaRef,
    kinds: Vec<Kind>,
    widths: Vec<usize>,
    /// Values that were longer than a cell.
    cut: usize,
    header: Format,
}

/// Form of the cells of a column.
enum Kind {
    Integer,
    Float,
    Boolean,
    /// Instants of a zone, or local times if there is none, with their format.
    Time(Option<Tz>, Format),
    Date(Format),
    /// Texts, and all values without another form.
    Text,
}

impl Kind {
    fn of(name: &str, kind: &DataType) -> Result<Self, ArrowError> {
        let lower = name.to_lowercase();
        let identifies = lower == "id" || lower == "aid" || lower.ends_with("_id");
        let format = |form: &str| Format::new().set_num_format(form);
        Ok(match kind {
            _ if identifies => Self::Text,
            kind if kind.is_integer() => Self::Integer,
            kind if kind.is_floating() || kind.is_decimal() => Self::Float,
            DataType::Boolean => Self::Boolean,
            DataType::Timestamp(_, zone) => {
                let zone = zone.as_deref().map(str::parse::<Tz>).transpose()?;
                Self::Time(zone, format("yyyy-mm-dd hh:mm:ss"))
            }
            DataType::Date32 | DataType::Date64 => Self::Date(format("yyyy-mm-dd")),
            _ => Self::Text,
        })
    }
}

impl Sheets {
    /// Begins a result.
    ///
    /// # Errors
    /// It has more columns than a sheet; a temporary file cannot be created.
    pub(super) fn begin(book: Book, result: usize, schema: SchemaRef) -> io::Result<Self> {
        if schema.fields().len() > COLUMNS {
            return Err(io::Error::other(format!("an xlsx sheet has at most {COLUMNS} columns; select fewer")));
        }
        let kinds = schema.fields().iter().map(|field| Kind::of(field.name(), field.data_type()));
        let kinds = kinds.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let widths = schema.fields().iter().map(|field| field.name().chars().count()).collect();
        let header = Format::new().set_bold();
        let (at, parts, row, cut) = (0, 0, 0, 0);
        let mut sheets = Self { book, result, at, parts, row, most: ROWS, schema, kinds, widths, cut, header };
        sheets.add()?;
        Ok(sheets)
    }

    /// Adds a sheet with the header.
    fn add(&mut self) -> io::Result<()> {
        self.parts += 1;
        let name = match self.parts {
            1 => format!("Result {}", self.result),
            part => format!("Result {} part {part}", self.result),
        };
        // The library would panic if it cannot create its own.
        tempfile::tempfile()?;
        let mut book = self.book.book();
        self.at = book.worksheets().len();
        let sheet = book.add_worksheet_with_constant_memory();
        sheet.set_name(name).map_err(io_error)?;
        sheet.set_freeze_panes(1, 0).map_err(io_error)?;
        for (column, field) in (0..).zip(self.schema.fields()) {
            let (name, _) = cell(field.name());
            sheet.write_string_with_format(0, column, name, &self.header).map_err(io_error)?;
        }
        self.row = 1;
        Ok(())
    }

    /// Writes rows.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            if self.row == self.most {
                self.add()?;
            }
            let room = (self.most - self.row) as usize;
            let part = batch.slice(from, room.min(batch.num_rows() - from));
            from += part.num_rows();
            self.write_part(&part)?;
        }
        Ok(())
    }

    /// Writes rows that fit the current sheet. A sheet is written row by row.
    fn write_part(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let columns = batch.columns().iter().zip(&self.kinds).map(|(column, kind)| Cells::of(column, kind));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let options = FormatOptions::default();
        let texts = columns.iter().map(|cells| match cells {
            Cells::Texts(values) => ArrayFormatter::try_new(values.as_ref(), &options).map(Some),
            _ => Ok(None),
        });
        let texts = texts.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let mut book = self.book.book();
        let sheet = book.worksheet_from_index(self.at).map_err(io_error)?;
        for row in 0..batch.num_rows() {
            for (at, (cells, texts)) in columns.iter().zip(&texts).enumerate() {
                let column = u16::try_from(at).map_err(io::Error::other)?;
                let (width, cut) = match texts {
                    Some(texts) => write_text(sheet, (self.row, column), texts, row).map_err(io_error)?,
                    None => (cells.write(sheet, (self.row, column), row).map_err(io_error)?, false),
                };
                self.widths[at] = self.widths[at].max(width);
                self.cut += usize::from(cut);
            }
            self.row += 1;
        }
        Ok(())
    }

    /// Completes the result. Returns the number of values that were cut.
    ///
    /// # Errors
    /// The sheet cannot be completed.
    pub(super) fn finish(self) -> io::Result<usize> {
        let mut book = self.book.book();
        let sheet = book.worksheet_from_index(self.at).map_err(io_error)?;
        for (column, width) in (0..).zip(&self.widths) {
            sheet.set_column_width(column, width.clamp(&8, &WIDE).saturating_add(2) as f64).map_err(io_error)?;
        }
        let last = u16::try_from(self.widths.len().saturating_sub(1)).map_err(io::Error::other)?;
        if self.row > 1 {
            sheet.autofilter(0, 0, self.row - 1, last).map_err(io_error)?;
        }
        Ok(self.cut)
    }
}

/// Values of a column.
enum Cells<'k> {
    Integers(ArrayRef),
    Floats(ArrayRef),
    /// Decimal numbers, as texts.
    Decimals(ArrayRef),
    Booleans(ArrayRef),
    Times(ArrayRef, Option<Tz>, &'k Format),
    Dates(ArrayRef, &'k Format),
    Texts(ArrayRef),
}

impl<'k> Cells<'k> {
    fn of(column: &ArrayRef, kind: &'k Kind) -> Result<Self, ArrowError> {
        Ok(match kind {
            // Unsigned integers beyond 64 bits with a sign do not occur in our tables; they are written as texts.
            Kind::Integer => match cast(column, &DataType::Int64) {
                Ok(numbers) if numbers.null_count() == column.null_count() => Self::Integers(numbers),
                _ => Self::Texts(Arc::clone(column)),
            },
            Kind::Float if column.data_type().is_decimal() => Self::Decimals(cast(column, &DataType::Utf8)?),
            Kind::Float => Self::Floats(cast(column, &DataType::Float64)?),
            Kind::Boolean => Self::Booleans(Arc::clone(column)),
            Kind::Time(zone, format) => {
                let of_column = match column.data_type() {
                    DataType::Timestamp(_, zone) => zone.clone(),
                    _ => None,
                };
                Self::Times(cast(column, &DataType::Timestamp(TimeUnit::Microsecond, of_column))?, *zone, format)
            }
            Kind::Date(format) => Self::Dates(cast(column, &DataType::Date32)?, format),
            Kind::Text => Self::Texts(Arc::clone(column)),
        })
    }

    /// Writes a value that is not a text. Returns its width.
    fn write(&self, sheet: &mut Worksheet, at: (u32, u16), row: usize) -> Result<usize, XlsxError> {
        let (line, column) = at;
        match self {
            Self::Integers(values) if values.is_valid(row) => {
                let value = values.as_primitive::<Int64Type>().value(row);
                if value.abs() <= EXACT {
                    sheet.write_number(line, column, value as f64)?;
                } else {
                    sheet.write_string(line, column, value.to_string())?;
                }
                Ok(value.to_string().len())
            }
            Self::Floats(values) if values.is_valid(row) => {
                let value = values.as_primitive::<Float64Type>().value(row);
                if value.is_finite() {
                    sheet.write_number(line, column, value)?;
                } else {
                    sheet.write_string(line, column, value.to_string())?;
                }
                Ok(12)
            }
            Self::Decimals(values) if values.is_valid(row) => {
                let text = values.as_string::<i32>().value(row);
                match text.parse::<f64>() {
                    Ok(value) if significant(text) <= DIGITS => sheet.write_number(line, column, value)?,
                    _ => sheet.write_string(line, column, text)?,
                };
                Ok(text.len())
            }
            Self::Booleans(values) if values.is_valid(row) => {
                sheet.write_boolean(line, column, values.as_boolean().value(row))?;
                Ok(5)
            }
            Self::Times(values, zone, format) if values.is_valid(row) => {
                let values = values.as_primitive::<TimestampMicrosecondType>();
                let local = match zone {
                    Some(zone) => values.value_as_datetime_with_tz(row, *zone).map(|at| at.naive_local()),
                    None => values.value_as_datetime(row),
                };
                match local.and_then(serial) {
                    Some(days) => {
                        sheet.write_number_with_format(line, column, days, format)?;
                    }
                    None => {
                        sheet.write_string(line, column, local.map_or_else(String::new, |at| at.to_string()))?;
                    }
                }
                Ok(19)
            }
            Self::Dates(values, format) if values.is_valid(row) => {
                let date = values.as_primitive::<Date32Type>().value_as_date(row);
                match date.and_then(|date| serial(date.into())) {
                    Some(days) => {
                        sheet.write_number_with_format(line, column, days, format)?;
                    }
                    None => {
                        sheet.write_string(line, column, date.map_or_else(String::new, |date| date.to_string()))?;
                    }
                }
                Ok(10)
            }
            // NULL is an empty cell.
            _ => Ok(0),
        }
    }
}

/// Number of digits from the first one that is not zero.
fn significant(number: &str) -> usize {
    number.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count()
}

/// Writes a text. Returns its width, and `true` if it was cut. NULL, which the formatter shows as nothing, is an empty cell.
fn write_text(
    sheet: &mut Worksheet,
    (line, column): (u32, u16),
    texts: &ArrayFormatter<'_>,
    row: usize,
) -> Result<(usize, bool), XlsxError> {
    let text = texts.value(row).try_to_string().map_err(|error| XlsxError::ParameterError(error.to_string()))?;
    if text.is_empty() {
        return Ok((0, false));
    }
    let (text, cut) = cell(&text);
    sheet.write_string(line, column, text)?;
    Ok((text.lines().map(|line| line.chars().count()).max().unwrap_or_default(), cut))
}

/// A text that fits a cell, and `true` if it was cut. A sheet counts characters beyond the first plane twice.
fn cell(text: &str) -> (&str, bool) {
    if text.len() <= CHARACTERS {
        return (text, false);
    }
    let mut left = CHARACTERS;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return (&text[..at], true),
        }
    }
    (text, false)
}

/// A time as Excel counts it, in days; `None` before March 1900, when its calendar has a day too many, and after 9999.
fn serial(at: NaiveDateTime) -> Option<f64> {
    let first = NaiveDate::from_ymd_opt(1899, 12, 30)?.and_hms_opt(0, 0, 0)?;
    let (from, until) = (NaiveDate::from_ymd_opt(1900, 3, 1)?, NaiveDate::from_ymd_opt(9999, 12, 31)?);
    if at.date() < from || at.date() > until {
        return None;
    }
    let milliseconds = (at - first).num_milliseconds() as f64;
    Some(milliseconds / 86_400_000.0)
}

fn io_error(error: XlsxError) -> io::Error {
    match error {
        XlsxError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn a_result_that_is_longer_than_a_sheet_continues_on_the_next_one() {
        let batch = |numbers: &[i64]| {
            let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
            RecordBatch::try_from_iter([("n", numbers)]).expect("a batch")
        };
        let book = Book::default();
        let begun = Sheets::begin(book.clone(), 2, batch(&[]).schema()).expect("sheets");
        // A header and two rows.
        let mut sheets = Sheets { most: 3, ..begun };
        let names = || book.book().worksheets().iter().map(Worksheet::name).collect::<Vec<_>>();
        sheets.write(&batch(&[1, 2])).expect("rows");
        assert_eq!(names(), ["Result 2"], "a full sheet");
        sheets.write(&batch(&[3, 4, 5])).expect("rows");
        assert_eq!(names(), ["Result 2", "Result 2 part 2", "Result 2 part 3"]);
        assert_eq!((sheets.row, sheets.finish().expect("an end")), (2, 0));
        let mut file = Vec::new();
        book.send(&mut file).expect("a workbook");
        assert!(file.starts_with(b"PK"));
    }

    #[test]
    fn times_are_days_since_1899() {
        let at = |text: &str| text.parse::<NaiveDateTime>().expect("a time");
        assert_eq!(serial(at("2026-07-01T12:00:00")), Some(46_204.5));
        assert_eq!(serial(at("1900-03-01T00:00:00")), Some(61.0));
        assert_eq!(serial(at("1900-02-28T00:00:00")), None);
        assert_eq!(serial(at("9999-12-31T23:59:59")).map(f64::floor), Some(2_958_465.0));
    }

    #[test]
    fn digits_count_from_the_first_that_is_not_zero() {
        assert_eq!(["0.00", "-0.0120", "1234.5", "12345678901234567891"].map(significant), [0, 3, 5, 20]);
    }

    #[test]
    fn a_text_is_cut_where_a_cell_ends() {
        assert_eq!(cell("short"), ("short", false));
        let long = "ä".repeat(40_000);
        let (shown, cut) = cell(&long);
        assert_eq!((shown.chars().count(), cut), (CHARACTERS, true));
        let emojis = "😀".repeat(20_000);
        assert_eq!(cell(&emojis).0.chars().count(), CHARACTERS / 2);
    }
}
