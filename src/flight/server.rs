//! Server setup (sockets, TLS, health checks) and graceful shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::{Stream, StreamExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Server;
use tonic_health::server::HealthReporter;
use tower::util::MapResponseLayer;

use super::gate::GateLayer;
use super::rpc::Service;
use super::state::ServerState;
use crate::config::SessionSettings;
#[cfg(feature = "distributed")]
use crate::distributed::Workers;
use crate::error::{Error, ErrorKind, Result};
use crate::host::auth::Auth;
use crate::host::listener::{ClientStream, End, accept};
use crate::host::reload::Reload;
use crate::host::sessions::Upstream;
use crate::host::settings::Limits;
use crate::host::state::{Host, HostSpec, check_exposure};
use crate::serving::{Acceptor, Serving, TlsSpec, operate};

/// Configuration of a [`FlightServer`].
#[derive(Debug)]
pub struct ServerSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Authentication mode.
    pub auth: Auth,
    /// Server certificate; `None` disables TLS.
    pub tls: Option<TlsSpec>,
    /// Set to allow credentials in clear text on a non-loopback address.
    pub insecure: bool,
    /// Address of `/healthz` and `/metrics`; `None` disables them.
    pub operations: Option<SocketAddr>,
    /// Resource limits.
    pub limits: Limits,
    /// Initial settings of sessions. Clients may change them.
    pub settings: SessionSettings,
    /// Connections behind the tables.
    pub upstream: Upstream,
    /// Workers that queries of stores are spread over; `None`: the server runs all queries itself.
    #[cfg(feature = "distributed")]
    pub workers: Option<Arc<Workers>>,
}

impl ServerSpec {
    /// Checks the configuration before a server starts, without opening anything.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], as from [`FlightServer::start`].
    pub fn check(&self) -> Result<()> {
        check_exposure(self.listen, &self.auth, self.tls.is_some(), self.insecure)?;
        self.limits.check()?;
        self.tls.iter().try_for_each(|tls| Acceptor::try_new(tls, ALPN).map(drop))
    }
}

/// A running Flight SQL server. [`FlightServer::shut_down`] stops it gracefully; dropping it stops it at once.
#[derive(Debug)]
pub struct FlightServer {
    address: SocketAddr,
    operations: Option<SocketAddr>,
    shared: Arc<ServerState>,
    tls: Option<Acceptor>,
    health: HealthReporter,
    closing: DropGuard,
    /// Ends when the address is free again.
    listening: JoinHandle<()>,
    serving: Serving,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// Interval between sweeps for idle sessions, statements, results and connections.
const SWEEP: Duration = Duration::from_secs(5);
/// Time without running queries after which shutdown stops waiting for open connections.
const QUIET: Duration = Duration::from_secs(1);
/// Protocol of Flight inside TLS.
const ALPN: &[u8] = b"h2";
/// Time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Interval and timeout of HTTP/2 keep-alive pings.
const PING: Duration = Duration::from_secs(10);

impl FlightServer {
    /// Starts a server without requests to the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable address, an invalid certificate or an invalid combination of settings.
    pub async fn start(spec: ServerSpec) -> Result<Self> {
        check_exposure(spec.listen, &spec.auth, spec.tls.is_some(), spec.insecure)?;
        #[cfg(feature = "distributed")]
        let workers = spec.workers;
        let ServerSpec { listen, auth, tls, operations, limits, settings, upstream, .. } = spec;
        let bad = |what: String| Error::new(ErrorKind::Config, what);
        let host = Arc::new(Host::start(HostSpec {
            auth,
            upstream,
            settings,
            limits: limits.clone(),
            #[cfg(feature = "distributed")]
            workers,
        })?);
        let shared = Arc::new(ServerState::new(Arc::clone(&host)));

        let mut server = Server::builder()
            .http2_keepalive_interval(Some(PING))
            .http2_keepalive_timeout(Some(PING))
            .http2_max_header_list_size(limits.header_bytes)
            .max_concurrent_streams(limits.streams_per_connection)
            .layer(MapResponseLayer::new(limits_as_exhausted))
            .layer(GateLayer(Arc::clone(&shared)));
        let tls = tls.map(|tls| Acceptor::try_new(&tls, ALPN)).transpose()?;
        let refused = |error| bad(format!("cannot listen on {listen}: {error}"));
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;

        let (operations, mut tasks) = match operations {
            Some(asked) => {
                let started = operate(asked, Arc::clone(&shared)).await;
                let (address, task) = started.map_err(|error| bad(format!("cannot listen on {asked}: {error}")))?;
                (Some(address), vec![task])
            }
            None => (None, Vec::new()),
        };
        tasks.push(AbortOnDropHandle::new(tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                loop {
                    sleep(SWEEP).await;
                    shared.sweep();
                }
            }
        })));

        let flight =
            FlightServiceServer::new(Service(Arc::clone(&shared))).max_decoding_message_size(limits.message_bytes);
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<FlightServiceServer<Service>>().await;
        let closing = CancellationToken::new();
        let router = server.add_service(health_service).add_service(flight);
        let (incoming, listening) = accept(listener, host, closing.clone(), End::AtOnce);
        let closed = closing.clone().cancelled_owned();
        let serving = match &tls {
            None => Serving::start(router.serve_with_incoming_shutdown(incoming, closed)),
            Some(tls) => {
                let incoming = encrypted(incoming, tls.clone(), limits.connections);
                Serving::start(router.serve_with_incoming_shutdown(incoming, closed))
            }
        };
        Ok(Self {
            address,
            operations,
            shared,
            tls,
            health,
            closing: closing.drop_guard(),
            listening,
            serving,
            _tasks: tasks,
        })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of `/healthz` and `/metrics`.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.operations
    }

    /// Handle that reads users, API keys and certificates again, without closing the server.
    pub fn reload(&self) -> Reload {
        Reload::new(Arc::clone(&self.shared.host), self.tls.clone())
    }

    /// State that the fronts of the server share.
    #[cfg(feature = "postgres")]
    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.shared.host
    }

    /// Waits until the server stops because of a failure, and returns the error. Does not return otherwise, or twice.
    pub async fn failed(&mut self) -> Error {
        failure(self.serving.failed().await)
    }

    /// Waits until the server has to be restarted, although it still answers, because too many threads do not respond to
    /// start more. Returns the reason.
    pub fn worn_out(&self) -> impl Future<Output = Error> + Send + 'static {
        let host = Arc::clone(&self.shared.host);
        async move { host.worn_out().await }
    }

    /// Shuts down: stops accepting connections and lets running queries finish for up to [`Limits::drain_seconds`].
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] if the server had already failed.
    pub async fn shut_down(self) -> Result<()> {
        let Self { shared, health, closing, listening, mut serving, .. } = self;
        if serving.has_failed() {
            return Err(failure("it had stopped before".to_owned()));
        }
        shared.host.end();
        health.set_not_serving::<FlightServiceServer<Service>>().await;
        health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
        drop(closing);
        // A task that panicked has closed its listener too.
        let _ = listening.await;
        let drain = Duration::from_secs(shared.host.limits.drain_seconds);
        // Connections without a running query are not waited for.
        let mut ended = tokio::select! {
            ended = serving.ended(drain) => ended,
            () = shared.host.quiet(QUIET) => serving.ended(Duration::ZERO).await,
        };
        if ended.is_none() {
            // Clients receive a status before their connections close.
            shared.host.cancelled.cancel();
            ended = serving.ended(Duration::from_secs(2)).await;
        }
        match ended {
            Some(result) => result.map_err(failure),
            None => {
                serving.abort();
                Ok(())
            }
        }
    }
}

/// Encrypts connections, up to `most` at a time. Those that fail, or take too long, are dropped.
fn encrypted(
    incoming: impl Stream<Item = io::Result<ClientStream>> + Send + 'static,
    tls: Acceptor,
    most: usize,
) -> impl Stream<Item = io::Result<TlsStream<ClientStream>>> + Send + 'static {
    let encrypt = move |stream: io::Result<ClientStream>| {
        let tls = tls.clone();
        async move { timeout(HANDSHAKE, tls.accept(stream.ok()?)).await.ok()?.ok() }
    };
    incoming.map(encrypt).buffer_unordered(most).filter_map(|stream| std::future::ready(stream.map(Ok)))
}

/// Replaces OUT_OF_RANGE, which tonic returns for messages that are too long, by the customary RESOURCE_EXHAUSTED.
fn limits_as_exhausted<B>(mut response: http::Response<B>) -> http::Response<B> {
    const STATUS: &str = "grpc-status";
    let (out_of_range, exhausted) = ("11", http::HeaderValue::from_static("8"));
    if response.headers().get(STATUS).is_some_and(|status| status == out_of_range) {
        response.headers_mut().insert(STATUS, exhausted);
    }
    response
}

fn failure(what: String) -> Error {
    Error::new(ErrorKind::Connect, format!("server failed: {what}"))
}
