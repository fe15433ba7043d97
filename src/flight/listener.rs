//! Connections as they come: each with a number of its own, and an end where it is not used.
//!
//! A connection is handed over once its first byte is there, so that whoever connects and is silent is not waited for.
//! [`Standing`](super::connection_limit::Standing) decides which ones stay. When a connection ends, what belongs to it is told.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use super::peer::{Caller, Peer};
use super::state::ServerState;

/// How long a connection may say nothing at its beginning.
const SILENT: Duration = Duration::from_secs(10);

/// A connection. What belongs to it ends with it.
pub(super) struct ClientStream {
    stream: TcpStream,
    caller: Caller,
    shared: Arc<ServerState>,
    /// Ends it, whatever is under way.
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Accepts connections until the token is cancelled.
pub(super) fn accept(
    listener: TcpListener,
    shared: Arc<ServerState>,
    closing: CancellationToken,
) -> impl Stream<Item = io::Result<ClientStream>> {
    let (ready, connections) = mpsc::channel(16);
    tokio::spawn(async move {
        let numbers = AtomicU64::new(0);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = closing.cancelled() => break,
            };
            let Ok((stream, address)) = accepted else {
                // No more files, as a rule: connections have to end first.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let peer = Peer(numbers.fetch_add(1, Ordering::Relaxed));
            let ended = shared.standing.come(peer, address.ip());
            let caller = Caller { peer, address: address.ip() };
            let (ready, shared, closing) = (ready.clone(), Arc::clone(&shared), closing.clone());
            tokio::spawn(async move {
                let mut connection = ClientStream { stream, caller, shared, ended: Box::pin(ended.cancelled_owned()) };
                let ClientStream { stream, ended, .. } = &mut connection;
                let speaks = async { timeout(SILENT, stream.peek(&mut [0])).await.is_ok_and(|read| read.is_ok()) };
                let speaks = tokio::select! {
                    speaks = speaks => speaks,
                    () = closing.cancelled() => false,
                    () = ended => false,
                };
                // A socket that cannot be told not to wait still works.
                let _ = connection.stream.set_nodelay(true);
                if speaks {
                    let _ = ready.send(Ok(connection)).await;
                }
            });
        }
    });
    unfold(connections, |mut connections| async { Some((connections.recv().await?, connections)) })
}

impl Connected for ClientStream {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.shared.standing.gone(self.caller.peer);
        self.shared.hung_up(self.caller.peer);
    }
}

impl ClientStream {
    /// The stream, while the connection has not been ended.
    fn stream(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        match self.ended.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::Error::new(io::ErrorKind::TimedOut, "the connection made room for others")),
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
