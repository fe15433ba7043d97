//! Server setup (sockets, TLS, health checks) and graceful shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::StreamExt;
use futures::stream::pending;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Server;
use tonic_health::server::HealthReporter;
use tower::util::MapResponseLayer;

use super::gate::GateLayer;
use super::rpc::Service;
use super::state::ServerState;
use crate::error::{Error, ErrorKind, Result};
use crate::host::front::{Ends, QUIET, Upkeep, drained, start_upkeep};
use crate::host::listener::{End, accept};
use crate::host::reload::Reload;
use crate::host::spec::{HostSpec, check_exposure};
use crate::host::state::Host;
use crate::serving::{Acceptor, GRPC, Serving, TlsSpec, bind, encrypted};

/// Configuration of a [`FlightServer`].
#[derive(Debug)]
pub struct ServerSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Server certificate; `None` disables TLS.
    pub tls: Option<TlsSpec>,
    /// Set to allow credentials in clear text on a non-loopback address.
    pub insecure: bool,
    /// Users, limits, settings and connections, which fronts that are started beside it share.
    pub host: HostSpec,
}

impl ServerSpec {
    /// A server without TLS, which may listen on a loopback address only.
    pub fn new(listen: SocketAddr, host: HostSpec) -> Self {
        Self { listen, tls: None, insecure: false, host }
    }

    /// Checks the configuration before a server starts, without opening anything.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], as from [`FlightServer::start`].
    pub fn check(&self) -> Result<()> {
        check_exposure(self.listen, &self.host.auth, self.tls.is_some(), self.insecure)?;
        self.host.check()?;
        self.tls.iter().try_for_each(|tls| Acceptor::try_new(tls, GRPC).map(drop))
    }
}

/// A running Flight SQL server. [`FlightServer::shut_down`] stops it gracefully; dropping it stops it at once.
#[derive(Debug)]
pub struct FlightServer {
    address: SocketAddr,
    upkeep: Upkeep,
    shared: Arc<ServerState>,
    tls: Option<Acceptor>,
    health: HealthReporter,
    /// Closes the listener.
    closing: DropGuard,
    /// Tells clients to begin no further calls.
    leaving: DropGuard,
    /// Ends when the address is free again.
    listening: JoinHandle<()>,
    serving: Serving,
}

/// Interval and timeout of HTTP/2 keep-alive pings.
const PING: Duration = Duration::from_secs(10);
/// Time after the last query within which clients close what they have read.
const CLOSING: Duration = Duration::from_millis(500);

impl FlightServer {
    /// Starts a server without requests to the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid certificate or combination of settings, and [`ErrorKind::Unavailable`] for an address in
    /// use.
    pub async fn start(spec: ServerSpec) -> Result<Self> {
        let ServerSpec { listen, tls, insecure, host } = spec;
        check_exposure(listen, &host.auth, tls.is_some(), insecure)?;
        let (operations, limits) = (host.operations, host.limits.clone());
        let host = Arc::new(Host::start(host)?);
        let shared = Arc::new(ServerState::new(Arc::clone(&host)));

        let mut server = Server::builder()
            .http2_keepalive_interval(Some(PING))
            .http2_keepalive_timeout(Some(PING))
            .http2_max_header_list_size(limits.header_bytes)
            .max_concurrent_streams(limits.streams_per_connection)
            .layer(MapResponseLayer::new(limits_as_exhausted))
            .layer(GateLayer(Arc::clone(&shared)));
        let tls = tls.map(|tls| Acceptor::try_new(&tls, GRPC)).transpose()?;
        let (listener, address) = bind(listen).await?;

        let upkeep = start_upkeep(&shared, ServerState::sweep, operations).await?;

        let flight =
            FlightServiceServer::new(Service(Arc::clone(&shared))).max_decoding_message_size(limits.message_bytes);
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<FlightServiceServer<Service>>().await;
        let (closing, leaving) = (CancellationToken::new(), CancellationToken::new());
        let router = server.add_service(health_service).add_service(flight);
        let (incoming, listening) = accept(listener, host, closing.clone(), End::AtOnce);
        // Otherwise the end of the listener would end the connections.
        let incoming = incoming.chain(pending());
        let left = leaving.clone().cancelled_owned();
        let serving = match &tls {
            None => Serving::start(router.serve_with_incoming_shutdown(incoming, left)),
            Some(tls) => {
                let incoming = encrypted(incoming, tls.clone(), limits.connections);
                Serving::start(router.serve_with_incoming_shutdown(incoming, left))
            }
        };
        let (closing, leaving) = (closing.drop_guard(), leaving.drop_guard());
        Ok(Self { address, upkeep, shared, tls, health, closing, leaving, listening, serving })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of `/healthz` and `/metrics`.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.upkeep.operations
    }

    /// Handle that reads users, API keys and certificates again, without closing the server.
    pub fn reload(&self) -> Reload {
        Reload::new(Arc::clone(&self.shared.host), self.tls.clone())
    }

    /// State that the fronts of the server share.
    pub fn host(&self) -> &Arc<Host> {
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

    /// Shuts down: stops accepting connections and lets running queries finish for up to
    /// [`Limits::drain_seconds`](crate::host::Limits::drain_seconds).
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] if the server had already failed.
    pub async fn shut_down(self) -> Result<()> {
        self.shut_down_with(std::future::ready(())).await
    }

    /// As [`shut_down`](Self::shut_down), together with other fronts of its [host](Self::host), whose shutdown is `others`.
    /// `/healthz` and `/metrics` answer until all have ended.
    ///
    /// # Errors
    /// Those of [`shut_down`](Self::shut_down).
    pub async fn shut_down_with(self, others: impl Future<Output = ()> + Send) -> Result<()> {
        let Self { upkeep, shared, health, closing, leaving, listening, serving, .. } = self;
        let calls = Calls { host: &shared.host, leaving: Some(leaving), serving };
        let own = drain(&shared.host, &health, closing, listening, calls);
        let (ended, ()) = tokio::join!(own, others);
        drop(upkeep);
        ended
    }
}

async fn drain(
    host: &Host,
    health: &HealthReporter,
    closing: DropGuard,
    listening: JoinHandle<()>,
    mut calls: Calls<'_>,
) -> Result<()> {
    if calls.serving.has_failed() {
        return Err(failure("it had stopped before".to_owned()));
    }
    host.end();
    health.set_not_serving::<FlightServiceServer<Service>>().await;
    health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
    drop(closing);
    // A task that panicked has closed its listener too.
    let _ = listening.await;
    match drained(host, &mut calls, Some(QUIET)).await {
        Some(result) => result.map_err(failure),
        None => {
            calls.serving.abort();
            Ok(())
        }
    }
}

/// Calls of the clients that are connected. After the end of a query, its client may still close the statement: over HTTP/2, it
/// cannot once it was told to leave.
struct Calls<'h> {
    host: &'h Host,
    leaving: Option<DropGuard>,
    serving: Serving,
}

impl Ends for Calls<'_> {
    type Outcome = std::result::Result<(), String>;

    async fn ended(&mut self, patience: Duration) -> Option<Self::Outcome> {
        let begun = Instant::now();
        if self.leaving.is_some() {
            // If it takes longer, clients are told to leave nevertheless.
            let _ = timeout(patience, self.host.closing_calls(CLOSING)).await;
            self.leaving = None;
        }
        self.serving.ended(patience.saturating_sub(begun.elapsed())).await
    }
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
