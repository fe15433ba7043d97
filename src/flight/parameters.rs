//! What clients send as record batches: sets of parameters, bound by position, and rows to bring along.
//!
//! Names of parameters say nothing: clients call them "0", "$1" or "param_0". Some send them in a dense union. Compressed
//! batches are refused: their lengths are believed before they are seen, and no driver sends any.

use arrow::ipc::{MessageHeader, root_as_message};
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use datafusion::common::ScalarValue;
use futures::{Stream, TryStreamExt};
use tonic::Status;

use super::command::flight_status;
use super::type_compat::bytes_of;

/// Bytes of all sets of parameters together.
const BYTES: u64 = 16 << 20;

/// The batches that a client sends.
pub(super) fn batches(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> FlightRecordBatchStream {
    // The command may come in a message of its own.
    let filled = messages.try_filter(|data| std::future::ready(!data.data_header.is_empty()));
    let plain = filled.and_then(|data| std::future::ready(uncompressed(&data).map(|()| data)));
    FlightRecordBatchStream::new_from_flight_data(plain.map_err(Into::into))
}

/// Refuses what would have to be decompressed.
fn uncompressed(data: &FlightData) -> Result<(), Status> {
    let message = root_as_message(&data.data_header);
    let message = message.map_err(|_| Status::invalid_argument("what was sent is no Arrow data"))?;
    let compression = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch().and_then(|batch| batch.compression()),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|batch| batch.data()).and_then(|batch| batch.compression())
        }
        _ => None,
    };
    match compression {
        Some(_) => Err(Status::unimplemented("compressed batches are not taken")),
        None => Ok(()),
    }
}

/// The sets of parameters that a client sends, and their bytes; `None` where it binds nothing. Drivers that bind nothing send a batch without
/// columns.
///
/// # Errors
/// INVALID_ARGUMENT for what is no Arrow data, RESOURCE_EXHAUSTED for more than `most` sets.
pub(super) async fn read(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
    most: usize,
) -> Result<Option<(Vec<Vec<ScalarValue>>, u64)>, Status> {
    let mut batches = batches(messages);
    let (mut sets, mut bytes) = (None::<Vec<_>>, 0);
    while let Some(batch) = batches.try_next().await.map_err(flight_status)? {
        if batch.num_columns() == 0 {
            continue;
        }
        let sets = sets.get_or_insert_default();
        bytes += bytes_of(&batch);
        if sets.len() + batch.num_rows() > most || bytes > BYTES {
            return Err(Status::resource_exhausted(format!("more than {most} sets of parameters, or {BYTES} bytes")));
        }
        for row in 0..batch.num_rows() {
            let set = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, row).map(plain));
            let set = set.collect::<Result<Vec<_>, _>>();
            sets.push(set.map_err(|error| Status::invalid_argument(format!("a parameter cannot be read: {error}")))?);
        }
    }
    Ok(sets.map(|sets| (sets, bytes)))
}

/// The value inside a union or a dictionary.
fn plain(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Union(Some((_, value)), ..) => plain(*value),
        ScalarValue::Union(None, ..) => ScalarValue::Null,
        ScalarValue::Dictionary(_, value) => plain(*value),
        value => value,
    }
}
