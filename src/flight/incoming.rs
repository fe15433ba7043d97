//! Connections as they come: each with a number of its own, and none that says nothing.
//!
//! A connection is handed over once its first byte is there, so that whoever connects and is silent is not waited for. When it
//! ends, what belongs to it is told.

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
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

use super::service::Shared;

/// How long a connection may say nothing at its beginning.
const SILENT: Duration = Duration::from_secs(10);
/// Connections that may say nothing at the same time.
const AWAITED: usize = 1_024;

/// The number of a connection, among the extensions of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer(pub(super) u64);

/// A connection. What belongs to it ends with it.
pub(super) struct Connection {
    stream: TcpStream,
    peer: Peer,
    shared: Arc<Shared>,
}

/// Accepts connections until the token is cancelled.
pub(super) fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    closing: CancellationToken,
) -> impl Stream<Item = io::Result<Connection>> {
    let (ready, connections) = mpsc::channel(16);
    tokio::spawn(async move {
        let (awaited, numbers) = (Arc::new(Semaphore::new(AWAITED)), AtomicU64::new(0));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = closing.cancelled() => break,
            };
            let Ok((stream, _)) = accepted else {
                // No more files, as a rule: connections have to end first.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let peer = Peer(numbers.fetch_add(1, Ordering::Relaxed));
            let Ok(place) = Arc::clone(&awaited).try_acquire_owned() else { continue };
            let (ready, shared, closing) = (ready.clone(), Arc::clone(&shared), closing.clone());
            tokio::spawn(async move {
                let _place = place;
                let speaks = async { timeout(SILENT, stream.peek(&mut [0])).await.is_ok_and(|read| read.is_ok()) };
                let speaks = tokio::select! {
                    speaks = speaks => speaks,
                    () = closing.cancelled() => false,
                };
                // A socket that cannot be told not to wait still works.
                let _ = stream.set_nodelay(true);
                if speaks {
                    let _ = ready.send(Ok(Connection { stream, peer, shared })).await;
                }
            });
        }
    });
    unfold(connections, |mut connections| async { Some((connections.recv().await?, connections)) })
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.hung_up(self.peer);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
