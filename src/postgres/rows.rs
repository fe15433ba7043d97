//! Rows as messages: each value in the format that the client asked for.
//!
//! A batch is first cast to a few types (`types`), so that each value is converted only once. Binary formats are those of
//! PostgreSQL's `…send` functions; texts are as `DateStyle = ISO`, `IntervalStyle = postgres` and `bytea_output = hex` print
//! them. `COPY` encodes the same values in its own row formats.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use bytes::{BufMut, Bytes, BytesMut};
use pgwire::messages::data::{FieldDescription, RowDescription};
use postgres_types::Type;

use super::catalog::function_name;
use super::command::{Copy, CopyFormat};
use super::types::{Column, columns, encodable, parameter_type};
use crate::functions::put_text;

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL's dates begin.
const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// Format of a result: its columns, in text or binary.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    columns: Vec<Column>,
    /// True for binary values, by column.
    binary: Vec<bool>,
}

impl Layout {
    /// Creates the layout of a result. `formats` has no code (all text), one for all columns, or one for each; `None` for another
    /// number.
    pub(super) fn new(schema: &arrow::datatypes::Schema, formats: &[i16]) -> Option<Self> {
        let columns = columns(schema);
        let binary = match formats {
            [] => vec![false; columns.len()],
            [one] => vec![*one == 1; columns.len()],
            each if each.len() == columns.len() => each.iter().map(|code| *code == 1).collect(),
            _ => return None,
        };
        Some(Self { columns, binary })
    }

    /// True for a statement without a result.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// True if both have the same number of columns and the same types.
    pub(super) fn fits(&self, other: &Self) -> bool {
        let types = |layout: &Self| layout.columns.iter().map(|column| column.postgres.clone()).collect::<Vec<_>>();
        types(self) == types(other)
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The description of the rows.
    pub(super) fn description(&self) -> RowDescription {
        let field = |(column, binary): (&Column, &bool)| {
            let Column { name, postgres, .. } = column;
            // A zero byte would end the name.
            let name = name.replace('\0', "");
            FieldDescription::new(name, 0, 0, postgres.oid(), column.size(), -1, (*binary).into())
        };
        RowDescription::new(self.columns.iter().zip(&self.binary).map(field).collect())
    }

    /// Prepares a batch of the result.
    ///
    /// # Errors
    /// Errors of casts.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<Rows, ArrowError> {
        Ok(Rows { columns: encodable(batch, &self.columns)?, binary: self.binary.clone(), rows: batch.num_rows() })
    }
}

/// Rows of one batch.
pub(super) struct Rows {
    columns: Vec<ArrayRef>,
    binary: Vec<bool>,
    rows: usize,
}

impl Rows {
    /// Encodes the rest as this layout says, which has the same types.
    pub(super) fn encode_as(&mut self, layout: &Layout) {
        self.binary.clone_from(&layout.binary);
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Writes the number of columns and the values of a row.
    pub(super) fn put(&self, out: &mut BytesMut, row: usize) {
        out.put_i16(i16::try_from(self.columns.len()).unwrap_or(i16::MAX));
        for (column, binary) in self.columns.iter().zip(&self.binary) {
            put_value(out, column, row, *binary);
        }
    }
}

/// Writes a value with its length, or -1 if it is missing.
fn put_value(out: &mut BytesMut, column: &ArrayRef, row: usize, binary: bool) {
    if column.is_null(row) {
        out.put_i32(-1);
        return;
    }
    let start = out.len();
    out.put_i32(0);
    if binary {
        put_binary(out, column, row)
    } else {
        put_printed(out, column, row)
    }
    let length = i32::try_from(out.len() - start - 4).unwrap_or(i32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes the text of a value that is not missing.
fn put_printed(out: &mut BytesMut, column: &ArrayRef, row: usize) {
    match column.data_type() {
        // A function of the catalogs, by its identifier.
        DataType::UInt64 => {
            let oid = column.as_primitive::<UInt64Type>().value(row);
            out.put_slice(function_name(oid).as_bytes());
        }
        DataType::FixedSizeBinary(_) => {
            let digits = data_encoding::HEXLOWER.encode(column.as_fixed_size_binary().value(row));
            let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| digits.get(group).unwrap_or_default());
            out.put_slice(groups.join("-").as_bytes());
        }
        _ => put_text(out, column, row),
    }
}

fn put_binary(out: &mut BytesMut, column: &ArrayRef, row: usize) {
    match column.data_type() {
        DataType::Boolean => out.put_u8(column.as_boolean().value(row).into()),
        DataType::Int16 => out.put_i16(column.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => out.put_i32(column.as_primitive::<Int32Type>().value(row)),
        DataType::UInt32 => out.put_u32(column.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt64 => {
            out.put_u32(u32::try_from(column.as_primitive::<UInt64Type>().value(row)).unwrap_or(0));
        }
        DataType::Int64 => out.put_i64(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => out.put_f32(column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => out.put_f64(column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => put_numeric(out, column.as_primitive::<Decimal128Type>().value(row), *scale),
        DataType::Binary => out.put_slice(column.as_binary::<i32>().value(row)),
        DataType::Date32 => {
            out.put_i32(column.as_primitive::<Date32Type>().value(row).saturating_sub(EPOCH_DAYS));
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            out.put_i64(column.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            out.put_i64(column.as_primitive::<TimestampMicrosecondType>().value(row).saturating_sub(EPOCH_MICROS));
        }
        DataType::Interval(_) => {
            let interval = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
            out.put_i64(interval.nanoseconds.div_euclid(1_000));
            out.put_i32(interval.days);
            out.put_i32(interval.months);
        }
        DataType::List(item) => {
            let identifiers = *item.data_type() == DataType::UInt32;
            let item = if identifiers { Type::OID } else { parameter_type(item.data_type()) };
            put_array(out, &item, 1, &column.as_list::<i32>().value(row));
        }
        DataType::LargeList(item) => {
            let item = if *item.data_type() == DataType::Int16 { Type::INT2 } else { Type::OID };
            put_array(out, &item, 0, &column.as_list::<i64>().value(row));
        }
        DataType::FixedSizeBinary(_) => out.put_slice(column.as_fixed_size_binary().value(row)),
        _ => put_text(out, column, row),
    }
}

/// Writes an array in the binary format, with the place of its first item.
fn put_array(out: &mut BytesMut, item: &Type, first: i32, items: &ArrayRef) {
    out.put_i32((!items.is_empty()).into());
    out.put_i32((items.null_count() > 0).into());
    out.put_u32(item.oid());
    if !items.is_empty() {
        out.put_i32(i32::try_from(items.len()).unwrap_or(i32::MAX));
        out.put_i32(first);
        (0..items.len()).for_each(|at| put_value(out, items, at, true));
    }
}

/// A decimal as groups of four digits: their number, the weight of the first, sign, digits after the point, and the groups.
fn put_numeric(out: &mut BytesMut, value: i128, scale: i8) {
    let scale = usize::from(scale.unsigned_abs());
    let digits = value.unsigned_abs().to_string();
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole = format!("{whole:0>width$}", width = whole.len().div_ceil(4) * 4);
    let fraction = format!("{fraction:0<width$}", width = fraction.len().div_ceil(4) * 4);
    let mut weight = i16::try_from(whole.len() / 4).unwrap_or(i16::MAX) - 1;
    let all = format!("{whole}{fraction}");
    let mut groups: Vec<i16> = all
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0')))
        .collect();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    weight -= i16::try_from(leading).unwrap_or(0);
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    out.put_i16(i16::try_from(groups.len()).unwrap_or(i16::MAX));
    out.put_i16(weight);
    out.put_u16(if value < 0 { 0x4000 } else { 0 });
    out.put_u16(u16::try_from(scale).unwrap_or(u16::MAX));
    groups.into_iter().for_each(|group| out.put_i16(group));
}

/// Writes the rows of a copy.
pub(super) struct Copier {
    layout: Layout,
    copy: Copy,
}

impl Copier {
    /// Creates a writer for results of this schema.
    pub(super) fn new(schema: &arrow::datatypes::Schema, copy: Copy) -> Option<Self> {
        let code = i16::from(copy.format == CopyFormat::Binary);
        Some(Self { layout: Layout::new(schema, &[code])?, copy })
    }

    /// The format code of all columns.
    pub(super) fn code(&self) -> i16 {
        i16::from(self.copy.format == CopyFormat::Binary)
    }

    /// Number of columns.
    pub(super) fn columns(&self) -> usize {
        self.layout.len()
    }

    /// Bytes before the rows.
    pub(super) fn head(&self) -> Bytes {
        match self.copy.format {
            CopyFormat::Binary => Bytes::from_static(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"),
            _ if !self.copy.header => Bytes::new(),
            _ => {
                let mut out = BytesMut::new();
                for (at, column) in self.layout.columns.iter().enumerate() {
                    self.put_separator(&mut out, at);
                    self.put_field(&mut out, column.name.as_bytes());
                }
                out.put_u8(b'\n');
                out.freeze()
            }
        }
    }

    /// Bytes after the rows.
    pub(super) fn tail(&self) -> Bytes {
        match self.copy.format {
            CopyFormat::Binary => Bytes::from_static(&[0xff, 0xff]),
            _ => Bytes::new(),
        }
    }

    /// Encodes the rows of a batch, each on its own.
    ///
    /// # Errors
    /// Errors of casts.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<impl Iterator<Item = Bytes>, ArrowError> {
        let rows = self.layout.rows(batch)?;
        Ok((0..rows.len()).map(move |row| self.row(&rows, row)))
    }

    fn row(&self, rows: &Rows, row: usize) -> Bytes {
        if self.copy.format == CopyFormat::Binary {
            let mut out = BytesMut::new();
            rows.put(&mut out, row);
            return out.freeze();
        }
        let mut out = BytesMut::new();
        for (at, column) in rows.columns.iter().enumerate() {
            self.put_separator(&mut out, at);
            if column.is_null(row) {
                let default = if self.copy.format == CopyFormat::Csv { "" } else { "\\N" };
                out.put_slice(self.copy.null.as_deref().unwrap_or(default).as_bytes());
                continue;
            }
            let mut value = BytesMut::new();
            put_printed(&mut value, column, row);
            self.put_field(&mut out, &value);
        }
        out.put_u8(b'\n');
        out.freeze()
    }

    fn delimiter(&self) -> char {
        self.copy.delimiter.unwrap_or(if self.copy.format == CopyFormat::Csv { ',' } else { '\t' })
    }

    fn put_separator(&self, out: &mut BytesMut, at: usize) {
        if at > 0 {
            out.put_slice(self.delimiter().encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn put_field(&self, out: &mut BytesMut, value: &[u8]) {
        let delimiter = self.delimiter();
        let is_delimiter = |byte: &u8| u32::from(*byte) == u32::from(delimiter);
        if self.copy.format == CopyFormat::Csv {
            let null = self.copy.null.as_deref().unwrap_or_default();
            let special = |byte: &u8| matches!(byte, b'"' | b'\n' | b'\r') || is_delimiter(byte);
            // Quotes distinguish a text that looks like a missing value; `\.` alone would end the copy.
            if value != null.as_bytes() && value != b"\\." && !value.iter().any(special) {
                out.put_slice(value);
                return;
            }
            out.put_u8(b'"');
            for byte in value {
                if *byte == b'"' {
                    out.put_u8(b'"');
                }
                out.put_u8(*byte);
            }
            out.put_u8(b'"');
            return;
        }
        for byte in value {
            match byte {
                b'\\' => out.put_slice(b"\\\\"),
                b'\n' => out.put_slice(b"\\n"),
                b'\r' => out.put_slice(b"\\r"),
                b'\t' => out.put_slice(b"\\t"),
                0x08 => out.put_slice(b"\\b"),
                0x0b => out.put_slice(b"\\v"),
                0x0c => out.put_slice(b"\\f"),
                byte if is_delimiter(byte) => {
                    out.put_u8(b'\\');
                    out.put_u8(*byte);
                }
                byte => out.put_u8(*byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_groups_of_four_digits() {
        let numeric = |value, scale| {
            let mut out = BytesMut::new();
            put_numeric(&mut out, value, scale);
            out.chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect::<Vec<_>>()
        };
        assert_eq!(numeric(0, 0), [0, 0, 0, 0]);
        assert_eq!(numeric(12_345, 0), [2, 1, 0, 0, 1, 2_345]);
        assert_eq!(numeric(-15, 1), [2, 0, 0x4000, 1, 1, 5_000]);
        assert_eq!(numeric(5, 6), [1, -2, 0, 6, 500]);
        assert_eq!(numeric(10_000, 0), [1, 1, 0, 0, 1]);
    }
}
