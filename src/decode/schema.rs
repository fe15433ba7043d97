//! The Arrow schema of a table, from its columns in the profile.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};

use crate::profile::{ColumnType, TableSpec};

/// The schema of a table with all its columns, with instants in the zone of its session.
pub fn arrow_schema(table: &TableSpec) -> SchemaRef {
    let decoded = decoded_schema(table);
    let Some(zone) = &table.zone else { return decoded };
    let fields = decoded.fields().iter().map(|field| match field.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let shown = DataType::Timestamp(*unit, Some(Arc::clone(zone)));
            Arc::new(field.as_ref().clone().with_data_type(shown))
        }
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The schema of a table with all its columns as they are decoded and stored, with instants in UTC.
pub(crate) fn decoded_schema(table: &TableSpec) -> SchemaRef {
    let fields = table.columns.iter().map(|column| Field::new(&column.name, data_type(column.kind), column.nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns a column with another time zone, if its values are instants; they stay the same.
pub(crate) fn in_zone_of(column: &ArrayRef, kind: &DataType) -> ArrayRef {
    match (column.data_type(), kind) {
        (DataType::Timestamp(TimeUnit::Microsecond, Some(known)), DataType::Timestamp(_, Some(zone)))
            if known != zone =>
        {
            Arc::new(column.as_primitive::<TimestampMicrosecondType>().clone().with_timezone(Arc::clone(zone)))
        }
        _ => Arc::clone(column),
    }
}

/// The Arrow type of a column. Views and dictionaries are avoided, since not every Flight SQL driver reads them.
pub fn data_type(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::Utf8 | ColumnType::Json => DataType::Utf8,
        ColumnType::Int64 => DataType::Int64,
        ColumnType::Float64 => DataType::Float64,
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ColumnType::Utf8List => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
    }
}
