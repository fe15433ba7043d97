//! Streamable HTTP of the Model Context Protocol: admission, credentials, TLS and shutdown.
//!
//! Stateless: the protocol's sessions are not used, each request is authenticated separately, and an identifier of one user
//! is useless to another. Requests with an `Origin` header are refused, because only browsers send it. On a loopback
//! address, the name in `Host` must be a name of this machine, so that a web page cannot reach the server under a name of
//! its own (DNS rebinding).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::McpLimits;
use super::handler::Handler;
use crate::config::SessionSettings;
use crate::error::{Error, ErrorKind, Result};
use crate::host::auth::{Auth, credentials};
use crate::host::failure::{Code, Failure};
use crate::host::listener::{ClientStream, End, accept};
use crate::host::peer::Caller;
use crate::host::reload::Reload;
use crate::host::sessions::Upstream;
use crate::host::settings::Limits;
use crate::host::state::{Host, HostSpec, check_exposure};
use crate::serving::{Acceptor, TlsSpec, operate};

/// Path of the endpoint.
const PATH: &str = "/mcp";
/// Time limit of a TLS handshake, and of the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// Time within which the next part of a request's body must arrive.
const STALLED: Duration = Duration::from_secs(10);
/// Time limit of the whole body.
const BODY: Duration = Duration::from_secs(60);
/// Bytes of a request's headers.
const HEADER_BYTES: usize = 32 << 10;
/// Bytes that a message may have in addition to the statement in it.
const AROUND: usize = 1 << 20;
/// Interval between sweeps for idle sessions and connections.
const SWEEP: Duration = Duration::from_secs(5);
/// Time without running calls after which shutdown stops waiting for open connections.
const QUIET: Duration = Duration::from_secs(1);
/// Time that cancelled calls have to answer.
const LAST_WORDS: Duration = Duration::from_secs(2);

type Body = BoxBody<Bytes, Infallible>;

/// Configuration of an [`McpServer`].
#[derive(Debug)]
pub struct McpSpec {
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
    /// Settings of each call.
    pub settings: SessionSettings,
    /// Connections behind the tables.
    pub upstream: Upstream,
    /// Limits of calls.
    pub mcp: McpLimits,
}

/// A running MCP server. [`McpServer::shut_down`] stops it gracefully; dropping it stops it at once.
#[derive(Debug)]
pub struct McpServer {
    address: SocketAddr,
    operations: Option<SocketAddr>,
    host: Arc<Host>,
    /// Connections in service.
    tls: Option<Acceptor>,
    connections: TaskTracker,
    /// Cancelled at the end of a shutdown: closes connections at once.
    ending: DropGuard,
    closing: DropGuard,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl McpServer {
    /// Starts a server without requests to the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable address, an invalid certificate or an invalid combination of settings.
    pub async fn start(spec: McpSpec) -> Result<Self> {
        let McpSpec { listen, auth, tls, insecure, operations, limits, settings, upstream, mcp } = spec;
        let mcp = mcp.within(&settings);
        check_exposure(listen, &auth, tls.is_some(), insecure)?;
        let bad = |what: String| Error::new(ErrorKind::Config, what);
        let tls = tls.map(|tls| Acceptor::try_new(&tls, b"http/1.1")).transpose()?;
        let host = Arc::new(Host::start(HostSpec {
            auth,
            upstream,
            settings,
            limits,
            #[cfg(feature = "distributed")]
            workers: None,
        })?);
        let refused = |error| bad(format!("cannot listen on {listen}: {error}"));
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let mut tasks = Vec::new();
        let operations = match operations {
            Some(asked) => {
                let started = operate(asked, Arc::clone(&host)).await;
                let (address, task) = started.map_err(|error| bad(format!("cannot listen on {asked}: {error}")))?;
                tasks.push(task);
                Some(address)
            }
            None => None,
        };
        tasks.push(AbortOnDropHandle::new(tokio::spawn({
            let host = Arc::clone(&host);
            async move {
                loop {
                    sleep(SWEEP).await;
                    host.sweep();
                }
            }
        })));
        let (closing, ending) = (CancellationToken::new(), CancellationToken::new());
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_max_request_body_bytes(host.limits.statement_bytes.saturating_add(AROUND))
            .with_cancellation_token(ending.clone())
            .enforce_origin_validation();
        // Beyond loopback credentials are required, which such a page does not have, and the names of this machine are unknown.
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.ip().to_string()];
        let config = match address.ip().is_loopback() {
            true => config.with_allowed_hosts(names),
            false => config.disable_allowed_hosts(),
        };
        let handler = Handler::new(Arc::clone(&host), mcp, None);
        let protocol =
            StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(NeverSessionManager::default()), config);
        let endpoint = Endpoint { host: Arc::clone(&host), protocol };
        let connections = TaskTracker::new();
        let incoming = accept(listener, Arc::clone(&host), closing.clone(), End::AtOnce);
        tasks.push(AbortOnDropHandle::new(tokio::spawn({
            let (connections, closing, ending) = (connections.clone(), closing.clone(), ending.clone());
            let tls = tls.clone();
            async move {
                let mut incoming = pin!(incoming);
                while let Some(accepted) = incoming.next().await {
                    let Ok(stream) = accepted else { continue };
                    let (endpoint, tls, closing, ending) =
                        (endpoint.clone(), tls.clone(), closing.clone(), ending.clone());
                    connections.spawn(async move {
                        tokio::select! {
                            () = serve(stream, tls, endpoint, closing) => {}
                            () = ending.cancelled() => {}
                        }
                    });
                }
            }
        })));
        let (closing, ending) = (closing.drop_guard(), ending.drop_guard());
        Ok(Self { address, operations, host, tls, connections, ending, closing, _tasks: tasks })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of `/healthz` and `/metrics`.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.operations
    }

    /// Waits until the server has to be restarted, although it still answers, because too many threads do not respond to
    /// start more. Returns the reason.
    pub async fn worn_out(&self) -> Error {
        self.host.worn_out().await
    }

    /// Handle that reads users, API keys and certificates again, without closing the server.
    pub fn reload(&self) -> Reload {
        Reload::new(Arc::clone(&self.host), self.tls.clone())
    }

    /// Shuts down: stops accepting connections and lets running calls finish for up to [`Limits::drain_seconds`].
    pub async fn shut_down(self) {
        let Self { host, connections, ending, closing, .. } = self;
        host.end();
        drop(closing);
        connections.close();
        let drain = Duration::from_secs(host.limits.drain_seconds);
        // Connections without a running call are not waited for.
        tokio::select! {
            _ = timeout(drain, connections.wait()) => {}
            () = host.quiet(QUIET) => {}
        }
        // Clients are notified before their connections close.
        host.cancelled.cancel();
        let _ = timeout(LAST_WORDS, connections.wait()).await;
        drop(ending);
    }
}

/// Serves one connection until it closes, or the running response after `closing` has ended.
async fn serve(stream: ClientStream, tls: Option<Acceptor>, endpoint: Endpoint, closing: CancellationToken) {
    let caller = stream.caller();
    match tls {
        None => speak(stream, caller, endpoint, closing).await,
        // Errors concern only the client, which sees them itself.
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HEADERS, tls.accept(stream)).await {
                speak(stream, caller, endpoint, closing).await;
            }
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    caller: Caller,
    endpoint: Endpoint,
    closing: CancellationToken,
) {
    let service = service_fn(move |request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(endpoint.answer(request, caller).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = serving.as_mut() => return,
        () = closing.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// The endpoint of the protocol behind the credentials of each request.
#[derive(Clone)]
struct Endpoint {
    host: Arc<Host>,
    protocol: StreamableHttpService<Handler, NeverSessionManager>,
}

impl Endpoint {
    async fn answer(&self, mut request: Request<Incoming>, caller: Caller) -> Response<Body> {
        let Self { host, protocol } = self;
        // Before credentials: clients look for an authorization server under other paths, and take 401 for a yes.
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, format!("the endpoint is {PATH}"));
        }
        let Some(call) = host.standing.call(caller.peer) else {
            return plain(StatusCode::TOO_MANY_REQUESTS, "too many concurrent calls before authentication".to_owned());
        };
        let session = match credentials(request.headers()) {
            Ok(given) => host.sessions.find_shared(given, Some(caller)).await,
            Err(rejection) => Err(host.sessions.rejected(rejection)),
        };
        let session = match session {
            Ok(session) => session,
            Err(failure) => {
                host.metrics.called("refused".to_owned(), failure.code.name());
                return refused(failure);
            }
        };
        host.standing.log_in(caller.peer, &session.principal.name, session.is_proven());
        host.metrics.called("Mcp".to_owned(), Code::Ok.name());
        request.extensions_mut().insert(session);
        let (head, body) = request.into_parts();
        let body = match received(body, host.limits.statement_bytes.saturating_add(AROUND)).await {
            Ok(body) => Full::new(body),
            Err((status, line)) => return plain(status, line),
        };
        let response = protocol.handle(Request::from_parts(head, body)).await;
        // The call lasts until its response is sent.
        response.map(|body| {
            body.map_frame(move |frame| {
                let _ = &call;
                frame
            })
            .boxed()
        })
    }
}

/// Receives the body of a request. A client that sends no part of it for a while, or takes long for all of it, would keep its
/// place for as long as it likes.
async fn received(body: Incoming, most: usize) -> Result<Bytes, (StatusCode, String)> {
    let late = |time: Duration| {
        (StatusCode::REQUEST_TIMEOUT, format!("the body of the request was not received within {} s", time.as_secs()))
    };
    let receive = async {
        let (mut body, mut all) = (body, BytesMut::new());
        while let Some(frame) = timeout(STALLED, body.frame()).await.map_err(|_| late(STALLED))? {
            let frame =
                frame.map_err(|error| (StatusCode::BAD_REQUEST, format!("cannot read the request: {error}")))?;
            let part = frame.into_data().unwrap_or_default();
            if all.len() + part.len() > most {
                let line = format!("the body of the request is too long: the limit is {most} bytes");
                return Err((StatusCode::PAYLOAD_TOO_LARGE, line));
            }
            all.extend_from_slice(&part);
        }
        Ok(all.freeze())
    };
    timeout(BODY, receive).await.map_err(|_| late(BODY))?
}

fn refused(failure: Failure) -> Response<Body> {
    let Failure { code, message, .. } = failure;
    match code {
        Code::Unauthenticated => {
            let mut response = plain(StatusCode::UNAUTHORIZED, message);
            let scheme = HeaderValue::from_static("Bearer realm=\"savedsearch\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
            response
        }
        Code::ResourceExhausted => plain(StatusCode::TOO_MANY_REQUESTS, message),
        _ => plain(StatusCode::INTERNAL_SERVER_ERROR, message),
    }
}

fn plain(status: StatusCode, line: String) -> Response<Body> {
    let mut response = Response::new(Full::from(format!("{line}\n")).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
