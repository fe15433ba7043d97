//! Record batches that clients send: parameter sets, bound by position, and rows to ingest.
//!
//! Parameter names are ignored: clients use "0", "$1" or "param_0". Some clients send parameters in a dense union. Extension types
//! for which SQL has other types are read as those.
//! Compressed batches are rejected: the decoder allocates by their declared length before decompressing, and no known
//! driver sends them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::ipc::{MessageHeader, root_as_message};
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use datafusion::common::ScalarValue;
use futures::{Stream, TryStreamExt};
use tokio::task::yield_now;
use tonic::Status;

use super::command::flight_status;
use crate::host::failure::Failure;
use crate::host::type_compat::bytes_of;
use crate::memory;

/// Maximum size of all parameter sets of a statement, in bytes.
const BYTES: u64 = 16 << 20;
/// Maximum size of their values in bytes, each counted on its own: NULL needs no bytes in Arrow, and many rows may share a value.
const VALUES: u64 = 64 << 20;

/// Decodes the record batches that a client sends.
pub(super) fn batches(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> FlightRecordBatchStream {
    // The command may come in a separate message without data.
    let filled = messages.try_filter(|data| std::future::ready(!data.data_header.is_empty()));
    let plain = filled.and_then(|data| std::future::ready(checked(&data).map(|()| data)));
    FlightRecordBatchStream::new_from_flight_data(plain.map_err(Into::into))
}

/// Rejects compressed batches, and batches in which columns share bytes of the message. Each column is validated separately, so a
/// short message with many columns over the same bytes could keep a thread busy for hours.
fn checked(data: &FlightData) -> Result<(), Status> {
    let message = root_as_message(&data.data_header);
    let message = message.map_err(|_| Status::invalid_argument("invalid Arrow data"))?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|batch| batch.data()),
        _ => None,
    };
    let Some(batch) = batch else { return Ok(()) };
    if batch.compression().is_some() {
        return Err(Status::unimplemented("compressed batches are not supported"));
    }
    let buffers = batch.buffers().into_iter().flatten();
    let lengths = buffers.map(|buffer| u64::try_from(buffer.length()).unwrap_or(u64::MAX));
    match lengths.fold(0, u64::saturating_add) > data.data_body.len() as u64 {
        true => Err(Status::invalid_argument("invalid Arrow data: the columns are longer than the message")),
        false => Ok(()),
    }
}

/// Reads the parameter sets that a client sends, with their size in bytes; `None` if it binds nothing. Drivers that
/// bind nothing send a batch without columns.
///
/// # Errors
/// INVALID_ARGUMENT for invalid Arrow data, RESOURCE_EXHAUSTED for more than `most` sets.
pub(super) async fn read(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
    most: usize,
) -> Result<Option<(Vec<Vec<ScalarValue>>, u64)>, Status> {
    /// Bytes of a value without its text.
    const SLOT: usize = size_of::<ScalarValue>();
    /// Values after which others of the thread come first.
    const TURN: usize = 1_000;
    let (mut batches, mut until_pause) = (batches(messages), TURN);
    let (mut sets, mut bytes, mut values) = (None::<Vec<_>>, 0, 0_u64);
    let too_many = || {
        let line = format!("too many parameters: the limit is {most} sets and {BYTES} bytes");
        Status::resource_exhausted(line)
    };
    let wrong = |error: &dyn std::fmt::Display| Status::invalid_argument(format!("invalid parameter: {error}"));
    while let Some(batch) = batches.try_next().await.map_err(flight_status)? {
        if batch.num_columns() == 0 {
            continue;
        }
        let sets = sets.get_or_insert_default();
        bytes += bytes_of(&batch);
        let slots = (batch.num_rows() as u64).saturating_mul(batch.num_columns() as u64).saturating_mul(SLOT as u64);
        values = values.saturating_add(slots);
        if sets.len().saturating_add(batch.num_rows()) > most || bytes > BYTES || values > VALUES {
            return Err(too_many());
        }
        let _room = memory::room(slots).map_err(Failure::own)?;
        let batch = without_extensions(&batch).map_err(|error| wrong(&error))?;
        for row in 0..batch.num_rows() {
            let mut set = Vec::with_capacity(batch.num_columns());
            for column in batch.columns() {
                let value = ScalarValue::try_from_array(column, row).map(plain).map_err(|error| wrong(&error))?;
                // Lists share the memory of the batch.
                if !value.data_type().is_nested() {
                    values = values.saturating_add(value.size().saturating_sub(SLOT) as u64);
                }
                if values > VALUES {
                    return Err(too_many());
                }
                set.push(value);
                until_pause -= 1;
                if until_pause == 0 {
                    until_pause = TURN;
                    yield_now().await;
                }
            }
            sets.push(set);
        }
    }
    Ok(sets.map(|sets| (sets, bytes.max(values))))
}

/// The columns of a batch in types of SQL: an `arrow.uuid` is text, and an `arrow.bool8` a boolean.
///
/// # Errors
/// None in practice: errors of casts.
pub(crate) fn without_extensions(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    if schema.fields().iter().all(|field| field.extension_type_name().is_none()) {
        return Ok(batch.clone());
    }
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| in_sql_type(field, column));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let fields = schema.fields().iter().zip(&columns);
    let fields = fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)
}

fn in_sql_type(field: &Field, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match (field.extension_type_name(), column.data_type()) {
        (Some("arrow.uuid"), DataType::FixedSizeBinary(16)) => {
            let ids = column.as_fixed_size_binary().iter().map(|id| id.map(uuid_text));
            Ok(Arc::new(ids.collect::<StringArray>()))
        }
        (Some("arrow.bool8"), DataType::Int8) => cast(column, &DataType::Boolean),
        _ => Ok(Arc::clone(column)),
    }
}

/// The text of a UUID: groups of 8, 4, 4, 4 and 12 hexadecimal digits (RFC 9562).
fn uuid_text(id: &[u8]) -> String {
    let number = id.iter().fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    let digits = format!("{number:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Unwraps a value from a union or a dictionary.
pub(crate) fn plain(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Union(Some((_, value)), ..) => plain(*value),
        ScalarValue::Union(None, ..) => ScalarValue::Null,
        ScalarValue::Dictionary(_, value) => plain(*value),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::{
        BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int8Array, Int32Array, Int64Array, NullArray,
    };
    use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
    use futures::{StreamExt, stream};
    use tonic::Code;

    use super::*;

    fn batch_of(columns: Vec<ArrayRef>) -> RecordBatch {
        let names = (0..).map(|number: usize| number.to_string());
        RecordBatch::try_from_iter(names.zip(columns)).expect("a batch")
    }

    fn sent(batch: RecordBatch) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
        let encoder = FlightDataEncoderBuilder::new().with_dictionary_handling(DictionaryHandling::Resend);
        encoder.build(stream::iter([Ok(batch)])).map(|message| message.map_err(Status::from))
    }

    #[tokio::test]
    async fn values_count_as_often_as_they_are_there() {
        let nulls: ArrayRef = Arc::new(NullArray::new(1_000));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
        let repeated = DictionaryArray::new(Int32Array::from(vec![0; 1_000]), text);
        for columns in [vec![nulls; 2_000], vec![Arc::new(repeated) as ArrayRef]] {
            let refused = read(sent(batch_of(columns)), 1_000).await.expect_err("128 MB and 1 GB of values");
            assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        }
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 1_000]));
        let (sets, bytes) = read(sent(batch_of(vec![numbers; 20])), 1_000).await.expect("values").expect("sets");
        assert_eq!((sets.len(), sets[999].len()), (1_000, 20));
        assert!(bytes >= (20_000 * size_of::<ScalarValue>()) as u64, "{bytes}");
    }

    #[tokio::test]
    async fn columns_that_share_bytes_are_refused() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 1_000]));
        let mut messages: Vec<_> = sent(batch_of(vec![numbers; 2])).collect().await;
        let mut rows = messages.pop().expect("messages").expect("rows");
        checked(&rows).expect("each column has its own bytes");
        // Half of the body: room for one of the two columns.
        rows.data_body = rows.data_body.slice(..rows.data_body.len() / 2);
        let refused = checked(&rows).expect_err("the columns overlap, or one is cut off");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }

    #[test]
    fn extension_types_are_read_as_types_of_sql() {
        let id = *b"\x55\x0e\x84\x00\xe2\x9b\x41\xd4\xa7\x16\x44\x66\x55\x44\x00\x00";
        let ids = FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(id), None].into_iter(), 16).expect("ids");
        let flags = Int8Array::from(vec![Some(1), Some(0)]);
        let columns: [(&str, ArrayRef); 3] =
            [("arrow.uuid", Arc::new(ids.clone())), ("arrow.bool8", Arc::new(flags)), ("", Arc::new(ids))];
        let fields = columns.iter().map(|(extension, column)| {
            let metadata = HashMap::from([("ARROW:extension:name".to_owned(), (*extension).to_owned())]);
            let field = Field::new("x", column.data_type().clone(), true);
            if extension.is_empty() { field } else { field.with_metadata(metadata) }
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let given =
            RecordBatch::try_new(schema, columns.into_iter().map(|(_, column)| column).collect()).expect("rows");
        let read = without_extensions(&given).expect("rows");
        let texts = StringArray::from(vec![Some("550e8400-e29b-41d4-a716-446655440000"), None]);
        assert_eq!(read.column(0).as_string::<i32>(), &texts);
        assert_eq!(read.column(1).as_boolean(), &BooleanArray::from(vec![true, false]));
        assert_eq!(read.column(2), given.column(2), "other bytes stay");
    }
}
