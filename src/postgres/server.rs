//! The listener for clients of PostgreSQL: connections, cancel requests and shutdown.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use savedsearch_clock::Clock;
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::startup::start;
use crate::error::Result;
use crate::host::auth::Auth;
use crate::host::front::{Upkeep, start_upkeep};
use crate::host::in_service::InService;
use crate::host::listener::{ClientStream, End};
use crate::host::reload::Reload;
use crate::host::spec::{HostSpec, check_exposure};
use crate::host::state::Host;
use crate::serving::{Acceptor, TlsSpec, bind};

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
    /// A server without TLS, which may listen on a loopback address only.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, tls: None, insecure: false }
    }

    /// Checks that the listener would not expose credentials or data.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the option to use.
    pub fn check(&self, auth: &Auth) -> Result<()> {
        check_exposure(self.listen, auth, self.tls.is_some(), self.insecure)
    }
}

/// Serves clients of PostgreSQL alone, without requests to the service.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid certificate or combination of settings, and
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for an address in use.
pub async fn serve(spec: PostgresSpec, host: HostSpec) -> Result<PostgresServer> {
    spec.check(&host.auth)?;
    let operations = host.operations;
    let host = Arc::new(Host::start(host)?);
    let server = PostgresServer::start(spec, &host).await?;
    let upkeep = start_upkeep(&host, |host| drop(host.sweep()), operations).await?;
    Ok(PostgresServer { upkeep: Some(upkeep), ..server })
}

/// A running listener for clients of PostgreSQL, alone or beside other fronts of a host, with its sessions, users, budgets and
/// limits.
///
/// Beside another front, shut it down before the one whose host it has, or with it (`shut_down_with` of that front). Dropping it closes
/// its connections.
#[derive(Debug)]
pub struct PostgresServer {
    address: SocketAddr,
    host: Arc<Host>,
    tls: Option<Acceptor>,
    connections: InService,
    /// Set if it is the first front of its host.
    upkeep: Option<Upkeep>,
}

/// State that connections share.
pub(super) struct Shared {
    pub(super) host: Arc<Host>,
    pub(super) tls: Option<Acceptor>,
    pub(super) running: Running,
    pub(super) started: DateTime<Utc>,
}

impl PostgresServer {
    /// Starts to listen beside other fronts of a host, without requests to the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid certificate, and
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for an address in use.
    pub async fn start(spec: PostgresSpec, host: &Arc<Host>) -> Result<Self> {
        let PostgresSpec { listen, tls, insecure } = spec;
        let host = Arc::clone(host);
        check_exposure(listen, host.sessions.auth(), tls.is_some(), insecure)?;
        let tls = tls.map(|tls| Acceptor::try_new(&tls, b"postgresql")).transpose()?;
        let (listener, address) = bind(listen).await?;
        let shared = Arc::new(Shared {
            host: Arc::clone(&host),
            tls: tls.clone(),
            running: Running::default(),
            started: Clock::system().now(),
        });
        let served = move |stream: ClientStream, closing| {
            let shared = Arc::clone(&shared);
            async move {
                let (caller, ended) = (stream.caller(), stream.ended());
                let served = async {
                    if let Some(started) = start(stream, &shared, &ended).await {
                        Connection::new(started, Arc::clone(&shared), caller, closing, ended.clone()).serve().await;
                    }
                };
                tokio::select! {
                    () = served => {}
                    () = shared.host.standing.farewell(&ended) => {}
                }
            }
        };
        let ending = CancellationToken::new();
        let connections = InService::start(listener, Arc::clone(&host), End::ByOwner, ending, served);
        Ok(Self { address, host, tls, connections, upkeep: None })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of `/healthz` and `/metrics`; `None` beside the front that serves them.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.upkeep.as_ref().and_then(|upkeep| upkeep.operations)
    }

    /// State that the fronts of the server share.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Handle that reads users, API keys and certificates again; to be [combined](Reload::and) with those of other fronts.
    pub fn reload(&self) -> Reload {
        Reload::new(Arc::clone(&self.host), self.tls.clone())
    }

    /// Shuts down: closes idle connections, and lets running statements finish for up to
    /// [`Limits::drain_seconds`](crate::host::Limits::drain_seconds).
    pub async fn shut_down(self) {
        self.shut_down_with(std::future::ready(())).await;
    }

    /// As [`shut_down`](Self::shut_down), together with other fronts of its [host](Self::host), whose shutdown is `others`.
    /// `/healthz` and `/metrics` answer until all have ended.
    pub async fn shut_down_with(self, others: impl Future<Output = ()> + Send) {
        let Self { connections, upkeep, .. } = self;
        tokio::join!(connections.drain(None), others);
        drop(upkeep);
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
