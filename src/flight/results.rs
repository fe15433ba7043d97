//! Results as Flight messages: the batches of a running query, and empty ones while none arrive.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::utils::batches_to_flight_data;
use async_stream::try_stream;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tokio::time::timeout;
use tonic::Status;

use super::command::flight_status;
use crate::host::running::{Pending, Reading};
use crate::host::sessions::Session;
use crate::host::state::Host;
use crate::memory::within;

/// Starts a query and returns its stream of messages.
///
/// # Errors
/// Those of [`Pending::run`].
pub(super) fn messages(
    pending: Arc<Pending>,
    session: Arc<Session>,
    host: &Host,
) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
    let (schema, keep_alive) = (Arc::clone(&pending.schema), Duration::from_millis(host.limits.keep_alive_ms));
    let Reading { batches, memory } = pending.run(session, host)?;
    let batches = batches.map_err(|failure| FlightError::Tonic(Box::new(failure.into())));
    let sign_of_life = empty_message(&schema)?;
    let mut encoded = FlightDataEncoderBuilder::new().with_schema(schema).build(batches);
    let alive = try_stream! {
        loop {
            match timeout(keep_alive, within(&memory, encoded.try_next())).await {
                Ok(message) => match message.map_err(flight_status)? {
                    Some(message) => {
                        // The transport frees it.
                        memory.hand_over(message.data_header.len() + message.data_body.len());
                        yield message;
                    }
                    None => break,
                },
                Err(_) => yield sign_of_life.clone(),
            }
        }
    };
    Ok(alive.boxed())
}

/// Encodes an empty batch, which the batch encoder would skip.
fn empty_message(schema: &SchemaRef) -> Result<FlightData, Status> {
    let messages = batches_to_flight_data(schema, vec![RecordBatch::new_empty(Arc::clone(schema))]);
    let last = messages.ok().and_then(|mut messages| messages.pop());
    last.ok_or_else(|| Status::internal("cannot encode an empty batch"))
}
