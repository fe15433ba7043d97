//! Connections of a listener in service, one task each, until they close or the server shuts down.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::front::{Ends, drained};
use super::listener::{ClientStream, End, accept};
use super::state::Host;

/// See the module's documentation. [`drain`](Self::drain) ends it gracefully; dropping it closes the connections at once.
#[derive(Debug)]
pub(crate) struct InService {
    host: Arc<Host>,
    connections: TaskTracker,
    /// Cancelled at the end of a shutdown: closes connections at once.
    ending: DropGuard,
    closing: DropGuard,
    /// Ends when the address is free again.
    listening: JoinHandle<()>,
    _accepting: AbortOnDropHandle<()>,
}

impl InService {
    /// Accepts connections. `serve` serves one until it closes, or until its running call after the cancellation of the token
    /// that it gets. `ending` is cancelled at the end.
    pub(crate) fn start<S: Future<Output = ()> + Send + 'static>(
        listener: TcpListener,
        host: Arc<Host>,
        end: End,
        ending: CancellationToken,
        serve: impl Fn(ClientStream, CancellationToken) -> S + Send + 'static,
    ) -> Self {
        let (closing, connections) = (CancellationToken::new(), TaskTracker::new());
        let (incoming, listening) = accept(listener, Arc::clone(&host), closing.clone(), end);
        let accepting = AbortOnDropHandle::new(tokio::spawn({
            let (connections, closing, ending) = (connections.clone(), closing.clone(), ending.clone());
            async move {
                let mut incoming = pin!(incoming);
                while let Some(accepted) = incoming.next().await {
                    let Ok(stream) = accepted else { continue };
                    let (served, ending) = (serve(stream, closing.clone()), ending.clone());
                    connections.spawn(async move {
                        tokio::select! {
                            () = served => {}
                            () = ending.cancelled() => {}
                        }
                    });
                }
            }
        }));
        let (closing, ending) = (closing.drop_guard(), ending.drop_guard());
        Self { host, connections, ending, closing, listening, _accepting: accepting }
    }

    /// Shuts down: stops accepting connections, and waits for those in service as [`drained`] does.
    pub(crate) async fn drain(self, quiet: Option<Duration>) {
        let Self { host, mut connections, ending, closing, listening, .. } = self;
        host.end();
        drop(closing);
        // A task that panicked has closed its listener too.
        let _ = listening.await;
        connections.close();
        drained(&host, &mut connections, quiet).await;
        drop(ending);
    }
}

impl Ends for TaskTracker {
    type Outcome = ();

    async fn ended(&mut self, patience: Duration) -> Option<()> {
        timeout(patience, self.wait()).await.ok()
    }
}
