//! Types: the PostgreSQL type for each Arrow type, and the few Arrow types that are encoded.
//!
//! | Arrow | PostgreSQL |
//! | --- | --- |
//! | Boolean | bool |
//! | Int8, UInt8, Int16 · UInt16, Int32 · UInt32, Int64 | int2 · int4 · int8 |
//! | UInt64, Decimal128 | numeric |
//! | Float32, Float64 | float4, float8 |
//! | Utf8, Null, and all other types | text |
//! | Binary, FixedSizeBinary | bytea |
//! | Date32, Date64 · Time32, Time64 | date · time |
//! | Timestamp without, with a time zone | timestamp, timestamptz |
//! | Duration, Interval | interval |
//! | List of the types above | array |
//! | Struct, Map, Union, and lists of them | json |
//! | Utf8 that was cast to one of them | uuid, json |

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, RecordBatch, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use postgres_types::Type;

use crate::functions::{PROTOCOL_TYPE, intervals};

/// A type that only PostgreSQL's own catalogs have. Numbers to the engine.
#[derive(Debug, Clone, Copy)]
pub(super) enum CatalogType {
    /// An object identifier.
    Oid,
    /// A list of numbers of columns, or of flags, with places from 0.
    Int2Vector,
    /// A list of object identifiers, with places from 0.
    OidVector,
    /// An array of object identifiers.
    Oids,
    /// A function by its identifier, whose text is its name.
    Function,
}

impl CatalogType {
    const ALL: [Self; 5] = [Self::Oid, Self::Int2Vector, Self::OidVector, Self::Oids, Self::Function];

    fn postgres(self) -> Type {
        match self {
            Self::Oid => Type::OID,
            Self::Int2Vector => Type::INT2_VECTOR,
            Self::OidVector => Type::OID_VECTOR,
            Self::Oids => Type::OID_ARRAY,
            Self::Function => Type::REGPROC,
        }
    }

    /// Type that values are cast to before they are encoded. Large lists represent vectors, and large numbers represent
    /// functions.
    fn arrow(self) -> DataType {
        let items = |item| DataType::LargeList(Arc::new(Field::new("item", item, true)));
        match self {
            Self::Oid => DataType::UInt32,
            Self::Int2Vector => items(DataType::Int16),
            Self::OidVector => items(DataType::UInt32),
            Self::Oids => DataType::new_list(DataType::UInt32, true),
            Self::Function => DataType::UInt64,
        }
    }

    /// Marks a field of a catalog.
    pub(super) fn mark(self, field: Field) -> Field {
        field.with_metadata(HashMap::from([(PROTOCOL_TYPE.to_owned(), self.postgres().name().to_owned())]))
    }

    /// Returns the mark of a field. A cast keeps the mark, but has another type.
    fn of(field: &Field) -> Option<Self> {
        let name = field.metadata().get(PROTOCOL_TYPE)?;
        let fits = |kind: &Self| match (kind, field.data_type()) {
            (Self::Oid | Self::Function, data_type) => *data_type == DataType::Int64,
            (_, DataType::List(item)) => *item.data_type() == DataType::Int64,
            _ => false,
        };
        Self::ALL.into_iter().find(|kind| kind.postgres().name() == name).filter(fits)
    }
}

/// A column on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Type that values are cast to before they are encoded.
    pub(super) arrow: DataType,
    pub(super) postgres: Type,
}

impl Column {
    fn of(field: &Field) -> Self {
        let marked = CatalogType::of(field).map(|kind| (kind.arrow(), kind.postgres())).or_else(|| text_type(field));
        let (arrow, postgres) = marked.unwrap_or_else(|| sent(field.data_type()));
        Self { name: field.name().clone(), arrow, postgres }
    }

    /// Bytes of a value for RowDescription; -1 if they vary.
    pub(super) fn size(&self) -> i16 {
        match self.arrow {
            DataType::Boolean => 1,
            DataType::Int16 => 2,
            DataType::Int32 | DataType::UInt32 | DataType::Float32 | DataType::Date32 => 4,
            DataType::Int64 | DataType::Float64 | DataType::Time64(_) | DataType::Timestamp(..) => 8,
            DataType::Interval(_) => 16,
            _ => -1,
        }
    }
}

/// Returns the type of a text that was cast to one: the functions of casts mark it.
fn text_type(field: &Field) -> Option<(DataType, Type)> {
    match (field.metadata().get(PROTOCOL_TYPE)?.as_str(), field.data_type()) {
        ("uuid", DataType::Utf8) => Some((DataType::FixedSizeBinary(16), Type::UUID)),
        ("json", DataType::Utf8) => Some((DataType::Utf8, Type::JSON)),
        _ => None,
    }
}

/// Returns the columns of a result.
pub(super) fn columns(schema: &Schema) -> Vec<Column> {
    schema.fields().iter().map(|field| Column::of(field)).collect()
}

/// The schema of a result of the catalogs, in which lists of numbers are those of identifiers: the types of columns and keys, which
/// clients aggregate.
pub(super) fn of_catalogs(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::List(item) if *item.data_type() == DataType::Int64 && CatalogType::of(field).is_none() => {
            Arc::new(CatalogType::Oids.mark(field.as_ref().clone()))
        }
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Fields>()))
}

/// Returns the PostgreSQL type of a parameter.
pub(super) fn parameter_type(data_type: &DataType) -> Type {
    sent(data_type).1
}

fn sent(data_type: &DataType) -> (DataType, Type) {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let (arrow, postgres) = sent(item.data_type());
            match array_of(&postgres).filter(|_| !arrow.is_nested()) {
                Some(array) => (DataType::List(Arc::new(Field::new("item", arrow, true))), array),
                None => (DataType::Utf8, Type::JSON),
            }
        }
        DataType::Boolean => (DataType::Boolean, Type::BOOL),
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => (DataType::Int16, Type::INT2),
        DataType::UInt16 | DataType::Int32 => (DataType::Int32, Type::INT4),
        DataType::UInt32 | DataType::Int64 => (DataType::Int64, Type::INT8),
        DataType::UInt64 => (DataType::Decimal128(20, 0), Type::NUMERIC),
        DataType::Decimal128(precision, scale) if *scale >= 0 => {
            (DataType::Decimal128(*precision, *scale), Type::NUMERIC)
        }
        DataType::Float16 | DataType::Float32 => (DataType::Float32, Type::FLOAT4),
        DataType::Float64 => (DataType::Float64, Type::FLOAT8),
        DataType::Binary | DataType::FixedSizeBinary(_) => (DataType::Binary, Type::BYTEA),
        DataType::Date32 | DataType::Date64 => (DataType::Date32, Type::DATE),
        DataType::Time32(_) | DataType::Time64(_) => (DataType::Time64(TimeUnit::Microsecond), Type::TIME),
        DataType::Timestamp(_, None) => (DataType::Timestamp(TimeUnit::Microsecond, None), Type::TIMESTAMP),
        DataType::Timestamp(_, zone) => (DataType::Timestamp(TimeUnit::Microsecond, zone.clone()), Type::TIMESTAMPTZ),
        DataType::Duration(_) | DataType::Interval(_) => {
            (DataType::Interval(IntervalUnit::MonthDayNano), Type::INTERVAL)
        }
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => (DataType::Utf8, Type::JSON),
        _ => (DataType::Utf8, Type::TEXT),
    }
}

/// The type of arrays with these items.
fn array_of(item: &Type) -> Option<Type> {
    Some(match *item {
        Type::BOOL => Type::BOOL_ARRAY,
        Type::INT2 => Type::INT2_ARRAY,
        Type::INT4 => Type::INT4_ARRAY,
        Type::INT8 => Type::INT8_ARRAY,
        Type::NUMERIC => Type::NUMERIC_ARRAY,
        Type::FLOAT4 => Type::FLOAT4_ARRAY,
        Type::FLOAT8 => Type::FLOAT8_ARRAY,
        Type::BYTEA => Type::BYTEA_ARRAY,
        Type::DATE => Type::DATE_ARRAY,
        Type::TIME => Type::TIME_ARRAY,
        Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
        Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
        Type::INTERVAL => Type::INTERVAL_ARRAY,
        Type::TEXT => Type::TEXT_ARRAY,
        Type::UUID => Type::UUID_ARRAY,
        Type::JSON => Type::JSON_ARRAY,
        _ => return None,
    })
}

/// Casts a batch to the types that are encoded.
///
/// # Errors
/// Errors of casts, such as a number that does not fit.
pub(super) fn encodable(batch: &RecordBatch, columns: &[Column]) -> Result<Vec<ArrayRef>, ArrowError> {
    let cast = |(array, column): (&ArrayRef, &Column)| match column.postgres {
        Type::UUID => uuids(array),
        Type::JSON if *array.data_type() != DataType::Utf8 => json(array),
        _ if *array.data_type() == column.arrow => Ok(Arc::clone(array)),
        Type::INTERVAL => cast(&intervals(array)?, &column.arrow),
        _ => cast(array, &column.arrow),
    };
    batch.columns().iter().zip(columns).map(cast).collect()
}

/// Writes each value as JSON, with the members that are missing.
pub(super) fn json(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    const NAME: &str = "v";
    let batch = RecordBatch::try_from_iter([(NAME, Arc::clone(array))])?;
    let mut lines = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    lines.write(&batch)?;
    lines.finish()?;
    let lines = String::from_utf8(lines.into_inner()).map_err(|error| ArrowError::JsonError(error.to_string()))?;
    let mut texts = StringBuilder::new();
    for (row, line) in lines.lines().enumerate() {
        let value = line.strip_prefix("{\"v\":").and_then(|line| line.strip_suffix('}'));
        texts.append_option(value.filter(|_| array.is_valid(row)));
    }
    Ok(Arc::new(texts.finish()))
}

/// Reads the identifiers of 16 bytes in texts that were checked.
fn uuids(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let texts = cast(array, &DataType::Utf8)?;
    let bytes = texts.as_string::<i32>().iter().map(|text| {
        let digits = text?.replace('-', "");
        data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()
    });
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int8Array, ListArray, StructArray, UInt64Array};
    use arrow::datatypes::{Decimal128Type, Int16Type, Int32Type};

    use super::*;

    #[test]
    fn columns_are_cast_to_types_that_are_encoded_and_nested_ones_to_json() {
        let points: ArrayRef = Arc::new(StructArray::from(vec![(
            Arc::new(Field::new("x", DataType::Int8, true)),
            Arc::new(Int8Array::from(vec![Some(1), None])) as ArrayRef,
        )]));
        let lists: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None]), None]));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("small", Arc::new(Int8Array::from(vec![Some(-1), None])) as ArrayRef, true),
            ("large", Arc::new(UInt64Array::from(vec![u64::MAX, 0])) as ArrayRef, true),
            ("point", points, true),
            ("list", lists, true),
        ])
        .expect("a batch");
        let columns = columns(&batch.schema());
        let types: Vec<Type> = columns.iter().map(|column| column.postgres.clone()).collect();
        assert_eq!(types, [Type::INT2, Type::NUMERIC, Type::JSON, Type::INT4_ARRAY]);
        let cast = encodable(&batch, &columns).expect("cast");
        assert_eq!(cast[0].as_primitive::<Int16Type>().value(0), -1);
        assert_eq!(cast[1].as_primitive::<Decimal128Type>().value(0), u64::MAX.into());
        assert_eq!(cast[2].as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["{\"x\":1}", "{\"x\":null}"]);
        assert!(cast[3].is_null(1));
    }
}
