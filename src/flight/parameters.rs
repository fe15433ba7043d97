//! What is bound to a statement: batches that a client sends, each row a set of parameters, by position.
//!
//! Names say nothing: clients call them "0", "$1" or "param_0". Some send them in a dense union.

use arrow::array::RecordBatch;
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use datafusion::common::ScalarValue;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use tonic::Status;

use super::command::flight_status;

/// The batches that a client sends.
pub(super) fn batches(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> BoxStream<'static, Result<RecordBatch, Status>> {
    // The command may come in a message of its own.
    let filled = messages.try_filter(|data| std::future::ready(!data.data_header.is_empty()));
    FlightRecordBatchStream::new_from_flight_data(filled.map_err(Into::into)).map_err(flight_status).boxed()
}

/// The sets of parameters that a client sends; `None` where it sends no batch.
///
/// # Errors
/// INVALID_ARGUMENT for what is no Arrow data, RESOURCE_EXHAUSTED for more than `most` sets.
pub(super) async fn read(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
    most: usize,
) -> Result<Option<Vec<Vec<ScalarValue>>>, Status> {
    let mut batches = batches(messages);
    let mut sets: Option<Vec<_>> = None;
    while let Some(batch) = batches.try_next().await? {
        let sets = sets.get_or_insert_default();
        if sets.len() + batch.num_rows() > most {
            return Err(Status::resource_exhausted(format!("more than {most} sets of parameters")));
        }
        for row in 0..batch.num_rows() {
            let set = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, row).map(plain));
            let set = set.collect::<Result<Vec<_>, _>>();
            sets.push(set.map_err(|error| Status::invalid_argument(format!("a parameter cannot be read: {error}")))?);
        }
    }
    Ok(sets)
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
