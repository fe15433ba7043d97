//! Conversion to types that every client supports.
//!
//! View types, large variants, dictionaries and run-end encoding are internal to the engine; drivers reject them (JDBC,
//! Grafana) or display them incorrectly. The marks that make names unique within the engine are removed. All result columns
//! are declared nullable, so that the schema does not depend on the bound parameters.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::functions::PROTOCOL_TYPE;
use crate::session::shown_name;

/// Returns the schema that a result is sent with.
pub(crate) fn result_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let kept = field.metadata().iter().filter(|(key, _)| *key == PROTOCOL_TYPE);
        let kept = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        Arc::new(Field::new(shown_name(field.name()), sent(field.data_type()), true).with_metadata(kept))
    });
    Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()))
}

/// Returns the schema with types that share no values between rows.
pub(crate) fn plain_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_data_type(sent(field.data_type())));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// Returns the schema that a table is described with.
pub(crate) fn table_schema(schema: &Schema) -> Schema {
    Schema::new(fields(schema.fields()))
}

/// Converts a batch to the schema that it is sent with.
///
/// # Errors
/// Strings of more than 2 GiB in one batch; values of a further set of parameters that the type of the first cannot represent.
pub(crate) fn sent_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            // Otherwise a value that does not fit would be NULL.
            false => {
                cast_with_options(column, field.data_type(), &CastOptions { safe: false, ..CastOptions::default() })
            }
        }
    });
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_, _>>()?, &options)
}

/// Returns the size of a batch's values in bytes, at least one per row, since rows without values cost work too.
/// Shared buffers count once per batch.
pub(crate) fn bytes_of(batch: &RecordBatch) -> u64 {
    let of =
        |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size());
    batch.columns().iter().map(of).sum::<usize>().max(batch.num_rows()) as u64
}

fn fields(fields: &Fields) -> Fields {
    fields.iter().map(inner).collect()
}

fn inner(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), sent(field.data_type()), field.is_nullable()))
}

/// Returns the type that replaces another on the wire.
fn sent(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            DataType::List(inner(item))
        }
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Struct(children) => DataType::Struct(fields(children)),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        DataType::Dictionary(_, value) => sent(value),
        DataType::RunEndEncoded(_, values) => sent(values.data_type()),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Float16 => DataType::Float32,
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, DictionaryArray, Int32Array, StringArray, StringViewArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn views_and_dictionaries_become_plain_texts() {
        let dictionary: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("view", Arc::new(StringViewArray::from(vec!["x", "y", "z"]))),
            ("dictionary", Arc::new(dictionary)),
            ("number", Arc::new(Int32Array::from(vec![1, 2, 3]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let schema = result_schema(&batch.schema());
        let sent = sent_batch(&batch, &schema).expect("cast");
        assert_eq!(sent.schema(), schema);
        assert!(schema.fields().iter().all(|field| field.is_nullable()));
        assert_eq!(sent.column(0).as_string::<i32>(), &StringArray::from(vec!["x", "y", "z"]));
        assert_eq!(sent.column(1).as_string::<i32>(), &StringArray::from(vec!["a", "b", "a"]));
    }

    #[test]
    fn a_value_that_the_type_of_the_first_set_cannot_represent_is_an_error() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let of = |text: &str| {
            let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
            sent_batch(&RecordBatch::try_from_iter([("x", text)]).expect("a batch"), &schema)
        };
        assert!(of("7").is_ok());
        of("b").expect_err("NULL would be another value");
    }

    #[test]
    fn nested_types_are_sent_plainly_too() {
        let item = Arc::new(Field::new("item", DataType::Utf8View, true));
        let list = DataType::LargeList(Arc::new(Field::new(
            "item",
            DataType::Struct(vec![Field::new("a", DataType::LargeList(item), false)].into()),
            true,
        )));
        let shown = sent(&list).to_string();
        assert!(!shown.contains("Large") && !shown.contains("View"), "{shown}");
    }
}
