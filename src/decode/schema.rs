//! The Arrow schema of a table, from its columns in the profile.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::profile::{ColumnType, TableSpec};

/// The schema of a table with all its columns.
pub fn arrow_schema(table: &TableSpec) -> SchemaRef {
    let fields = table.columns.iter().map(|column| Field::new(&column.name, data_type(column.kind), column.nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
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
