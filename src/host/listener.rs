//! Connection listener: numbers each connection and closes unused ones.
//!
//! A connection is passed to the server once its first byte has arrived, so that silent connections do not hold it up.
//! [`Standing`](super::connection_limit::Standing) decides which connections stay open. When a connection closes, its
//! sessions are closed too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::connection_limit::{Ended, Reason};
use super::peer::Caller;
use super::state::Host;

/// Time within which a new connection must send its first byte.
const SILENT: Duration = Duration::from_secs(10);

/// A client connection. Dropping it closes its sessions.
pub(crate) struct ClientStream {
    stream: TcpStream,
    caller: Caller,
    host: Arc<Host>,
    /// Resolves when the connection must be closed, regardless of running calls.
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: Ended,
    end: End,
}

/// End of a connection that must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Reading and writing fail.
    AtOnce,
    /// The owner of the stream reports the reason to the client, and closes the stream.
    ByOwner,
}

/// Accepts connections until the token is cancelled. The returned task ends when the address is free again.
pub(crate) fn accept(
    listener: TcpListener,
    host: Arc<Host>,
    closing: CancellationToken,
    end: End,
) -> (impl Stream<Item = io::Result<ClientStream>>, JoinHandle<()>) {
    let (ready, connections) = mpsc::channel(16);
    let listening = tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = closing.cancelled() => break,
            };
            let Ok((stream, address)) = accepted else {
                // Usually out of file descriptors: wait until connections close.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let caller = Caller::new(host.next_peer(), address.ip());
            let ended = host.standing.register(caller.peer, caller.address);
            let (ready, host, closing) = (ready.clone(), Arc::clone(&host), closing.clone());
            tokio::spawn(async move {
                let over = Box::pin(ended.wait_owned());
                let mut connection = ClientStream { stream, caller, host, over, ended, end };
                let ClientStream { stream, over, host, ended, .. } = &mut connection;
                let ended = async {
                    match end {
                        End::AtOnce => over.await,
                        End::ByOwner => host.standing.farewell(ended).await,
                    }
                };
                let speaks = async { timeout(SILENT, stream.peek(&mut [0])).await.is_ok_and(|read| read.is_ok()) };
                let speaks = tokio::select! {
                    speaks = speaks => speaks,
                    () = closing.cancelled() => false,
                    () = ended => false,
                };
                // The socket works without TCP_NODELAY as well.
                let _ = connection.stream.set_nodelay(true);
                if speaks {
                    let _ = ready.send(Ok(connection)).await;
                }
            });
        }
    });
    (unfold(connections, |mut connections| async { Some((connections.recv().await?, connections)) }), listening)
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.host.standing.gone(self.caller.peer);
        self.host.disconnected(self.caller.peer);
    }
}

impl ClientStream {
    /// Connection and address of the client.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    /// Returns the next byte without reading it.
    ///
    /// # Errors
    /// Errors of the network, or [`io::ErrorKind::UnexpectedEof`] if the client has closed the connection.
    pub(crate) async fn peek(&self) -> io::Result<u8> {
        let mut byte = [0];
        match self.stream.peek(&mut byte).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(byte[0]),
        }
    }

    /// Tells that the connection must be closed, and the reason.
    pub(crate) fn ended(&self) -> Ended {
        self.ended.clone()
    }

    /// The reason for closing the connection, in words.
    fn reason(&self) -> &'static str {
        match self.ended.reason() {
            Some(Reason::MadeRoom) | None => "connection closed to make room for others",
            Some(Reason::Idle) => "connection closed: it was idle for too long",
            Some(Reason::NoLogin) => "connection closed: no credentials were sent in time",
            Some(Reason::LoggedOut) => "connection closed: the users file has changed",
        }
    }

    /// Returns the stream unless the connection was closed.
    fn stream(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        if self.end != End::AtOnce {
            return Ok(Pin::new(&mut self.stream));
        }
        match self.over.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::Error::new(io::ErrorKind::TimedOut, self.reason())),
            Poll::Pending => Ok(Pin::new(&mut self.stream)),
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream(context)?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream(context)?.poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
