//! Helpers for message streams: responses, and requests with a timeout per message.

use std::time::Duration;

use arrow_flight::FlightData;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use tokio::time::timeout;
use tonic::Status;

/// Time within which a client must send its next message.
pub(in crate::flight) const PATIENCE: Duration = Duration::from_secs(60);

/// Response stream of a call.
pub(super) type Answers<T> = BoxStream<'static, Result<T, Status>>;

pub(super) fn one<T: Send + 'static>(value: T) -> Answers<T> {
    stream::iter([Ok(value)]).boxed()
}

/// Fails a stream if a message does not arrive within [`PATIENCE`].
pub(super) fn timely(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    async_stream::try_stream! {
        let mut messages = std::pin::pin!(messages);
        while let Some(message) = timeout(PATIENCE, messages.next()).await.map_err(|_| late())? {
            yield message?;
        }
    }
}

pub(in crate::flight) fn late() -> Status {
    Status::deadline_exceeded(format!("no message received for {} s", PATIENCE.as_secs()))
}
