//! The listener for clients of PostgreSQL: connections, cancel requests and shutdown.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::connection::Connection;
use super::startup::start;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::flight::FlightServer;
use crate::host::auth::Auth;
use crate::host::listener::{End, accept};
use crate::host::reload::Reload;
use crate::host::state::{Host, check_exposure};
use crate::serving::{Acceptor, TlsSpec};

/// Time that cancelled queries have to tell their clients.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Configuration of a [`PostgresServer`].
#[derive(Debug)]
pub struct PostgresSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Server certificate; `None` disables TLS. With a certificate, clients that do not encrypt are refused.
    pub tls: Option<TlsSpec>,
    /// Set to allow passwords in clear text on a non-loopback address.
    pub insecure: bool,
}

impl PostgresSpec {
    /// Checks that the listener would not expose credentials or data.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the option to use.
    pub fn check(&self, auth: &Auth) -> Result<()> {
        check_exposure(self.listen, auth, self.tls.is_some(), self.insecure)
    }
}

/// A running listener for clients of PostgreSQL, with the sessions, users, budgets and limits of a [`FlightServer`].
///
/// Shut it down before that server. Dropping it closes its connections.
#[derive(Debug)]
pub struct PostgresServer {
    address: SocketAddr,
    host: Arc<Host>,
    tls: Option<Acceptor>,
    connections: TaskTracker,
    ending: DropGuard,
    closing: DropGuard,
    /// Ends when the address is free again.
    listening: JoinHandle<()>,
    _accepting: AbortOnDropHandle<()>,
}

/// State that connections share.
pub(super) struct Shared {
    pub(super) host: Arc<Host>,
    pub(super) tls: Option<Acceptor>,
    pub(super) running: Running,
    pub(super) started: DateTime<Utc>,
}

impl PostgresServer {
    /// Starts to listen, without requests to the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable address or an invalid certificate.
    pub async fn start(spec: PostgresSpec, server: &FlightServer) -> Result<Self> {
        let PostgresSpec { listen, tls, insecure } = spec;
        let host = Arc::clone(server.host());
        check_exposure(listen, host.sessions.auth(), tls.is_some(), insecure)?;
        let bad = |what: String| Error::new(ErrorKind::Config, what);
        let tls = tls.map(|tls| Acceptor::try_new(&tls, b"postgresql")).transpose()?;
        let refused = |error| bad(format!("cannot listen on {listen}: {error}"));
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (closing, ending) = (CancellationToken::new(), CancellationToken::new());
        let connections = TaskTracker::new();
        let shared = Arc::new(Shared {
            host: Arc::clone(&host),
            tls: tls.clone(),
            running: Running::default(),
            started: Clock::system().now(),
        });
        let (incoming, listening) = accept(listener, Arc::clone(&host), closing.clone(), End::ByOwner);
        let accepting = AbortOnDropHandle::new(tokio::spawn({
            let (connections, closing, ending) = (connections.clone(), closing.clone(), ending.clone());
            async move {
                let mut incoming = pin!(incoming);
                while let Some(accepted) = incoming.next().await {
                    let Ok(stream) = accepted else { continue };
                    let (shared, closing, ending) = (Arc::clone(&shared), closing.clone(), ending.clone());
                    connections.spawn(async move {
                        let (caller, ended) = (stream.caller(), stream.ended());
                        let served = async {
                            if let Some(started) = start(stream, &shared, &ended).await {
                                Connection::new(started, Arc::clone(&shared), caller, closing, ended.clone())
                                    .serve()
                                    .await;
                            }
                        };
                        tokio::select! {
                            () = served => {}
                            () = ending.cancelled() => {}
                            () = shared.host.standing.farewell(&ended) => {}
                        }
                    });
                }
            }
        }));
        let (closing, ending) = (closing.drop_guard(), ending.drop_guard());
        Ok(Self { address, host, tls, connections, ending, closing, listening, _accepting: accepting })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Handle that reads users, API keys and certificates again; to be [combined](Reload::and) with that of the [`FlightServer`].
    pub fn reload(&self) -> Reload {
        Reload::new(Arc::clone(&self.host), self.tls.clone())
    }

    /// Shuts down: closes idle connections, and lets running statements finish for up to
    /// [`Limits::drain_seconds`](crate::flight::Limits::drain_seconds).
    pub async fn shut_down(self) {
        let Self { host, connections, ending, closing, listening, .. } = self;
        host.end();
        drop(closing);
        // A task that panicked has closed its listener too.
        let _ = listening.await;
        connections.close();
        if timeout(Duration::from_secs(host.limits.drain_seconds), connections.wait()).await.is_err() {
            host.cancelled.cancel();
            let _ = timeout(LAST_WORDS, connections.wait()).await;
        }
        drop(ending);
    }
}

/// Statements that cancel requests can end, by the number of their connection.
#[derive(Default)]
pub(super) struct Running(Mutex<HashMap<i32, Entry>>);

struct Entry {
    secret: [u8; 4],
    /// Cancels the running statement.
    statement: Option<CancellationToken>,
}

/// A connection's entry, removed on drop.
pub(super) struct Registered {
    shared: Arc<Shared>,
    pub(super) pid: i32,
    pub(super) secret: i32,
}

impl Running {
    /// Cancels the statement that runs on a connection, if the secret is right.
    pub(super) fn cancel(&self, pid: i32, secret: &[u8]) {
        if let Some(entry) = self.entries().get(&pid)
            && bool::from(entry.secret.as_slice().ct_eq(secret))
            && let Some(statement) = &entry.statement
        {
            statement.cancel();
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<i32, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registered {
    /// Registers a connection under a random number and secret.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let secret: i32 = rand::random();
        let mut entries = shared.running.entries();
        let pid = loop {
            let pid = rand::random::<i32>() & i32::MAX;
            if pid != 0 && !entries.contains_key(&pid) {
                break pid;
            }
        };
        entries.insert(pid, Entry { secret: secret.to_be_bytes(), statement: None });
        drop(entries);
        Self { shared, pid, secret }
    }

    /// Names the token that a cancel request cancels from now on.
    pub(super) fn run(&self, statement: Option<CancellationToken>) {
        if let Some(entry) = self.shared.running.entries().get_mut(&self.pid) {
            entry.statement = statement;
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.shared.running.entries().remove(&self.pid);
    }
}
