//! Sockets, certificates, health, and an end that lets results under way come to theirs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use rustls::crypto::CryptoProvider;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic_health::server::HealthReporter;
use tower::util::MapResponseLayer;

use super::admin;
use super::auth::Auth;
use super::gate::GateLayer;
use super::lanes::Lanes;
use super::listener::accept;
use super::rpc::Service;
use super::sessions::{Sessions, Upstream};
use super::settings::Limits;
use super::state::ServerState;
use crate::error::{Error, ErrorKind, Result};

/// What is to be served, where, and to whom.
#[derive(Debug)]
pub struct ServerSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// How clients are told apart.
    pub auth: Auth,
    /// Certificates; none: in clear text.
    pub tls: Option<TlsSpec>,
    /// Whether credentials may travel in clear text beyond this machine.
    pub insecure: bool,
    /// Address of `/healthz` and `/metrics`; none: nowhere.
    pub operations: Option<SocketAddr>,
    /// What is allowed.
    pub limits: Limits,
    /// What the tables are over.
    pub upstream: Upstream,
}

/// The certificates of a server, as PEM texts.
pub struct TlsSpec {
    /// Its certificate, with those that vouch for it.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// Authorities, one of which must vouch for a client; none: clients need no certificate.
    pub client_authorities: Option<String>,
}

impl std::fmt::Debug for TlsSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsSpec").field("mutual", &self.client_authorities.is_some()).finish_non_exhaustive()
    }
}

/// A server that accepts calls. It ends with [`FlightServer::shut_down`], which lets results come to their end, or when
/// it is dropped.
#[derive(Debug)]
pub struct FlightServer {
    address: SocketAddr,
    operations: Option<SocketAddr>,
    shared: Arc<ServerState>,
    health: HealthReporter,
    closing: DropGuard,
    serving: JoinHandle<std::result::Result<(), tonic::transport::Error>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// How often what is idle is looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// For how long nothing runs before the end is not waited for any longer.
const QUIET: Duration = Duration::from_secs(1);
/// How often a silent connection is asked whether anybody is there, and how long the answer may take.
const PING: Duration = Duration::from_secs(10);

impl FlightServer {
    /// Starts a server. Nothing is asked of the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an address, a certificate or a combination that cannot be used.
    pub async fn start(spec: ServerSpec) -> Result<Self> {
        spec.check()?;
        spec.limits.check()?;
        let ServerSpec { listen, auth, tls, operations, limits, upstream, .. } = spec;
        let bad = |what: String| Error::new(ErrorKind::Config, what);
        let pool = Arc::new(FairSpillPool::new(limits.memory_mib << 20));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc();
        let runtime = runtime.map_err(|error| bad(format!("the engine cannot be started: {error}")))?;
        let sessions = Sessions::new(auth, upstream, limits.clone(), runtime);
        let lanes = Lanes::start().map_err(|error| bad(format!("the engine cannot be started: {error}")))?;
        let shared = Arc::new(ServerState::new(sessions, limits.clone(), lanes));

        let mut server = Server::builder()
            .http2_keepalive_interval(Some(PING))
            .http2_keepalive_timeout(Some(PING))
            .http2_max_header_list_size(limits.header_bytes)
            .max_concurrent_streams(limits.streams_per_connection)
            .layer(MapResponseLayer::new(limits_as_exhausted))
            .layer(GateLayer(Arc::clone(&shared)));
        if let Some(TlsSpec { certificate, key, client_authorities }) = tls {
            // The transport takes that of the process. An error means that the process has chosen one meanwhile.
            if CryptoProvider::get_default().is_none() {
                let _ = rustls::crypto::ring::default_provider().install_default();
            }
            let mut config = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
            if let Some(authorities) = client_authorities {
                config = config.client_ca_root(Certificate::from_pem(authorities));
            }
            server = server
                .tls_config(config)
                .map_err(|error| bad(format!("the certificate cannot be used: {}", told(&error))))?;
        }
        let refused = |error| bad(format!("cannot listen on {listen}: {error}"));
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;

        let (operations, mut tasks) = match operations {
            Some(asked) => {
                let started = admin::start(asked, Arc::clone(&shared)).await;
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
        let incoming = accept(listener, Arc::clone(&shared), closing.clone());
        let serving = router.serve_with_incoming_shutdown(incoming, closing.clone().cancelled_owned());
        let serving = tokio::spawn(serving);
        Ok(Self { address, operations, shared, health, closing: closing.drop_guard(), serving, _tasks: tasks })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of `/healthz` and `/metrics`.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.operations
    }

    /// Waits until the server ends by itself, which it does not unless something is wrong. Gives what was.
    pub async fn failed(&mut self) -> Error {
        let what = match (&mut self.serving).await {
            Ok(Ok(())) => "it has ended".to_owned(),
            Ok(Err(error)) => told(&error),
            Err(error) => error.to_string(),
        };
        failure(what)
    }

    /// Accepts nothing more, lets results under way come to their end for as long as the limits say, and ends.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] for a server that had failed before.
    pub async fn shut_down(self) -> Result<()> {
        let Self { shared, health, closing, mut serving, .. } = self;
        shared.end();
        health.set_not_serving::<FlightServiceServer<Service>>().await;
        health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
        drop(closing);
        let drain = Duration::from_secs(shared.limits.drain_seconds);
        // Who has a connection and reads nothing is not waited for.
        let mut ended = tokio::select! {
            ended = timeout(drain, &mut serving) => ended,
            () = shared.quiet(QUIET) => timeout(Duration::ZERO, &mut serving).await,
        };
        if ended.is_err() {
            // Clients are told why before their connections end.
            shared.cancelled.cancel();
            ended = timeout(Duration::from_secs(2), &mut serving).await;
        }
        match ended {
            Ok(Ok(result)) => result.map_err(|error| failure(told(&error))),
            Ok(Err(error)) => Err(failure(error.to_string())),
            Err(_) => {
                serving.abort();
                Ok(())
            }
        }
    }
}

impl ServerSpec {
    /// Refuses what would let in anybody, or show credentials to anybody.
    fn check(&self) -> Result<()> {
        let refuse = |what: &str, advice: &str| Err(Error::new(ErrorKind::Config, what).advice(advice));
        let local = self.listen.ip().is_loopback();
        match (&self.auth, local) {
            (Auth::None, false) => refuse(
                "without authentication the server listens on this machine alone",
                "choose --auth users or pass-through",
            ),
            (_, false) if self.tls.is_none() && !self.insecure => refuse(
                "credentials would travel in clear text beyond this machine",
                "give --tls-cert and --tls-key, or --insecure where something in between encrypts",
            ),
            (Auth::PassThrough, _) if !matches!(self.upstream, Upstream::PassThrough(_)) => {
                refuse("clients bring keys, and the server has one", "connect with the keys of clients")
            }
            (Auth::None | Auth::Users(_), _) if matches!(self.upstream, Upstream::PassThrough(_)) => {
                refuse("the server has no key of its own", "give it one, or choose --auth pass-through")
            }
            _ => Ok(()),
        }
    }
}

/// A message beyond the limit of its length is out of range for tonic, and a used-up limit for everybody else.
fn limits_as_exhausted<B>(mut response: http::Response<B>) -> http::Response<B> {
    const STATUS: &str = "grpc-status";
    let (out_of_range, exhausted) = ("11", http::HeaderValue::from_static("8"));
    if response.headers().get(STATUS).is_some_and(|status| status == out_of_range) {
        response.headers_mut().insert(STATUS, exhausted);
    }
    response
}

fn failure(what: String) -> Error {
    Error::new(ErrorKind::Connect, format!("the server has failed: {what}"))
}

/// An error of the transport with its cause, which it keeps to itself.
fn told(error: &tonic::transport::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
