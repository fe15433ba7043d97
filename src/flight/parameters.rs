//! Record batches that clients send: parameter sets, bound by position, and rows to ingest.
//!
//! Parameter names are ignored: clients use "0", "$1" or "param_0". Some clients send parameters in a dense union.
//! Compressed batches are rejected: the decoder allocates by their declared length before decompressing, and no known
//! driver sends them.

use arrow::ipc::{MessageHeader, root_as_message};
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use datafusion::common::ScalarValue;
use futures::{Stream, TryStreamExt};
use tonic::Status;

use super::command::flight_status;
use crate::host::type_compat::bytes_of;

/// Maximum size of all parameter sets of a statement, in bytes.
const BYTES: u64 = 16 << 20;

/// Decodes the record batches that a client sends.
pub(super) fn batches(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> FlightRecordBatchStream {
    // The command may come in a separate message without data.
    let filled = messages.try_filter(|data| std::future::ready(!data.data_header.is_empty()));
    let plain = filled.and_then(|data| std::future::ready(uncompressed(&data).map(|()| data)));
    FlightRecordBatchStream::new_from_flight_data(plain.map_err(Into::into))
}

/// Rejects compressed batches.
fn uncompressed(data: &FlightData) -> Result<(), Status> {
    let message = root_as_message(&data.data_header);
    let message = message.map_err(|_| Status::invalid_argument("invalid Arrow data"))?;
    let compression = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch().and_then(|batch| batch.compression()),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|batch| batch.data()).and_then(|batch| batch.compression())
        }
        _ => None,
    };
    match compression {
        Some(_) => Err(Status::unimplemented("compressed batches are not supported")),
        None => Ok(()),
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
    let mut batches = batches(messages);
    let (mut sets, mut bytes) = (None::<Vec<_>>, 0);
    while let Some(batch) = batches.try_next().await.map_err(flight_status)? {
        if batch.num_columns() == 0 {
            continue;
        }
        let sets = sets.get_or_insert_default();
        bytes += bytes_of(&batch);
        if sets.len() + batch.num_rows() > most || bytes > BYTES {
            let line = format!("too many parameters: the limit is {most} sets and {BYTES} bytes");
            return Err(Status::resource_exhausted(line));
        }
        for row in 0..batch.num_rows() {
            let set = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, row).map(plain));
            let set = set.collect::<Result<Vec<_>, _>>();
            sets.push(set.map_err(|error| Status::invalid_argument(format!("invalid parameter: {error}")))?);
        }
    }
    Ok(sets.map(|sets| (sets, bytes)))
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
