//! Streams of messages: those that answer, and those that come in time.

use std::time::Duration;

use arrow_flight::FlightData;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use tokio::time::timeout;
use tonic::Status;

/// How long a client may take for a message that it is to send.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What a call answers with.
pub(super) type Answers<T> = BoxStream<'static, Result<T, Status>>;

pub(super) fn one<T: Send + 'static>(value: T) -> Answers<T> {
    stream::iter([Ok(value)]).boxed()
}

/// Messages that come, each in time.
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

pub(super) fn late() -> Status {
    Status::deadline_exceeded(format!("nothing was sent for {} s", PATIENCE.as_secs()))
}
