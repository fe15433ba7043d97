//! Lingering close: what a client still sends after it was refused is read and dropped.
//!
//! A connection that is closed while input arrives is reset, and the client may lose the error before it has read it. So input is
//! dropped for a while first. It takes no memory; its bytes and the time are limited.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Bytes that are dropped; a client that sends more may lose the error.
const BYTES: usize = 64 << 20;
/// Bytes of a part of a body, at most: those of a frame of HTTP/2 (RFC 9113, section 4.2).
const PART: usize = 16 << 10;
/// Time after which a client that still sends may lose the error.
const TIME: Duration = Duration::from_secs(5);

/// Ends the output of a connection, and drops its input until the client closes it, or the limits are reached.
pub(crate) async fn close(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    // With TLS, the end is a message, and waits for a client that reads nothing.
    let closed = async {
        if socket.shutdown().await.is_ok() {
            discard(socket).await;
        }
    };
    let _ = timeout(TIME, closed).await;
}

/// Drops the input of a connection until the client closes it, or the limits are reached.
async fn discard(socket: &mut (impl AsyncRead + Unpin)) {
    let dropped = async {
        let (mut part, mut left) = (vec![0; PART], BYTES);
        while left > 0 {
            match socket.read(&mut part).await {
                Ok(bytes @ 1..) => left = left.saturating_sub(bytes),
                Ok(0) | Err(_) => return,
            }
        }
    };
    let _ = timeout(TIME, dropped).await;
}

/// Drops the rest of a body, within the limits.
pub(crate) async fn discard_body(mut body: impl Body<Data = Bytes> + Unpin) {
    let dropped = async {
        let mut left = BYTES;
        while left > 0
            && let Some(frame) = body.frame().await
        {
            // A body with a limit has an error in place of each further part.
            let bytes = frame.as_ref().map_or(PART, |frame| frame.data_ref().map_or(0, Buf::remaining));
            left = left.saturating_sub(bytes);
        }
    };
    let _ = timeout(TIME, dropped).await;
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::io::duplex;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn input_is_dropped_until_it_ends_or_for_a_while() {
        let (mut client, mut server) = duplex(1 << 10);
        let sent = tokio::spawn(async move {
            client.write_all(&[1; 100 << 10]).await.expect("read to its end");
            client
        });
        let begun = Instant::now();
        discard(&mut server).await;
        assert!(begun.elapsed() >= TIME, "the client keeps the connection open");
        drop(sent.await.expect("sent"));
        let closed = Instant::now();
        discard(&mut server).await;
        assert!(closed.elapsed() < TIME, "the client has closed it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_dropped_until_it_ends_or_is_too_long() {
        let part = || Ok::<_, std::io::Error>(Frame::data(Bytes::from(vec![1; 1 << 20])));
        let begun = Instant::now();
        discard_body(StreamBody::new(stream::iter([part(), part()]))).await;
        discard_body(StreamBody::new(stream::repeat_with(part).boxed())).await;
        let broken = stream::repeat_with(|| Err::<Frame<Bytes>, _>(std::io::Error::other("too long")));
        discard_body(StreamBody::new(broken.boxed())).await;
        assert!(begun.elapsed() < TIME);
        discard_body(StreamBody::new(stream::iter([part()]).chain(stream::pending()).boxed())).await;
        assert!(begun.elapsed() >= TIME);
    }
}
