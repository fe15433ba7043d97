//! Streamable HTTP of the Model Context Protocol: the endpoint and its credentials.
//!
//! Stateless: the protocol's sessions are not used, each request is authenticated separately, and an identifier of one user
//! is useless to another. Requests with an `Origin` header are refused, because only browsers send it, except for the
//! server's own on a loopback address. There, the name in `Host` must be a name of this machine, so that a web page cannot
//! reach the server under a name of its own (DNS rebinding).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures::FutureExt;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use super::McpLimits;
use super::handler::Handler;
use crate::error::Result;
use crate::host::auth::credentials;
use crate::host::failure::{Code, Failure};
use crate::host::http::{Answer, Bound, HttpServer, names_of, received};
use crate::host::peer::Caller;
use crate::host::spec::{HostSpec, check_exposure};
use crate::host::state::Host;
use crate::serving::TlsSpec;

/// Path of the endpoint.
const PATH: &str = "/mcp";
/// Bytes that a message may have in addition to the statement in it.
const AROUND: usize = 1 << 20;
/// Bytes of the id and of the method of a message, which its answer repeats.
const REPEATED: usize = 1_000;

/// Configuration of [`serve_http`].
#[derive(Debug)]
pub struct McpSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Server certificate; `None` disables TLS.
    pub tls: Option<TlsSpec>,
    /// Set to allow credentials in clear text on a non-loopback address.
    pub insecure: bool,
    /// Limits of calls.
    pub mcp: McpLimits,
    /// Users, limits and connections, and the settings of each call.
    pub host: HostSpec,
}

impl McpSpec {
    /// A server with the default limits of calls and without TLS, which may listen on a loopback address only.
    pub fn new(listen: SocketAddr, host: HostSpec) -> Self {
        Self { listen, tls: None, insecure: false, mcp: McpLimits::default(), host }
    }
}

/// Serves MCP over streamable HTTP, without requests to the service.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid certificate or combination of settings, and
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for an address in use.
pub async fn serve_http(spec: McpSpec) -> Result<HttpServer> {
    let McpSpec { listen, tls, insecure, mcp, host } = spec;
    let mcp = mcp.within(&host.settings);
    check_exposure(listen, &host.auth, tls.is_some(), insecure)?;
    let operations = host.operations;
    let host = Arc::new(Host::start(host)?);
    let bound = Bound::new(listen, tls.as_ref(), Arc::clone(&host)).await?;
    let address = bound.address();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(host.limits.statement_bytes.saturating_add(AROUND))
        .with_cancellation_token(bound.ending())
        .enforce_origin_validation();
    // Beyond loopback credentials are required, which such a page does not have, and the names of this machine are unknown.
    let scheme = if tls.is_some() { "https" } else { "http" };
    let config = match names_of(address) {
        Some(names) => {
            let origin = |name: &String| match name.contains(':') {
                true => format!("{scheme}://[{name}]:{}", address.port()),
                false => format!("{scheme}://{name}:{}", address.port()),
            };
            config.with_allowed_origins(names.iter().map(origin)).with_allowed_hosts(names)
        }
        None => config.disable_allowed_hosts(),
    };
    let handler = Handler::new(Arc::clone(&host), mcp, None, None);
    let protocol =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(NeverSessionManager::default()), config);
    let endpoint = Endpoint { host, protocol };
    let url = format!("{scheme}://{address}{PATH}");
    let answer: Answer = Arc::new(move |request, caller| {
        let endpoint = endpoint.clone();
        async move { endpoint.answer(request, caller).await }.boxed()
    });
    bound.serve(url, answer).alone(operations).await
}

/// The endpoint of the protocol behind the credentials of each request.
#[derive(Clone)]
struct Endpoint {
    host: Arc<Host>,
    protocol: StreamableHttpService<Handler, NeverSessionManager>,
}

impl Endpoint {
    async fn answer(&self, mut request: Request<Incoming>, caller: Caller) -> Response {
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
        let (most, memory) = (host.limits.statement_bytes.saturating_add(AROUND), session.received());
        request.extensions_mut().insert(session);
        let (head, body) = request.into_parts();
        let (body, memory) = match received(body, most, Some(memory)).await {
            Ok(received) => received,
            Err((status, line)) => return plain(status, line),
        };
        if let Some(refused) = too_long_to_repeat(&body) {
            return refused;
        }
        let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
        let is_message = head.method == Method::POST && head.headers.get(header::CONTENT_TYPE).is_some_and(is_json);
        let response = protocol.handle(Request::from_parts(head, Full::new(body.clone()))).await;
        // The library answers a body that is no message as one of another content type.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_message {
            return malformed(&body).unwrap_or_else(|| no_message("not a message of the protocol"));
        }
        // The call lasts until its response is sent.
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _ = (&call, &memory);
                frame
            }))
        })
    }
}

/// The response to a body that is no message of JSON-RPC (JSON-RPC 2.0, section 5.1); `None` if it may be one.
fn malformed(body: &[u8]) -> Option<Response> {
    match serde_json::from_slice::<Value>(body) {
        Err(error) => Some(rpc_error(-32700, &format!("not JSON: {error}"))),
        Ok(Value::Array(_)) => Some(no_message("batches are not supported: send each message on its own")),
        Ok(Value::Object(_)) => None,
        Ok(_) => Some(no_message("a message is an object")),
    }
}

/// The response to a message whose id or method is too long to be repeated; `None` for another one.
fn too_long_to_repeat(body: &[u8]) -> Option<Response> {
    // Most messages are shorter than that.
    if body.len() <= REPEATED {
        return None;
    }
    let Ok(Value::Object(message)) = serde_json::from_slice::<Value>(body) else { return None };
    ["id", "method"].into_iter().find_map(|name| {
        let bytes = match message.get(name)? {
            Value::String(text) => text.len(),
            other => other.to_string().len(),
        };
        (bytes > REPEATED).then(|| no_message(&format!("the {name} has {bytes} bytes; the limit is {REPEATED}")))
    })
}

fn no_message(why: &str) -> Response {
    rpc_error(-32600, why)
}

/// An error of JSON-RPC that belongs to no request.
fn rpc_error(code: i32, message: &str) -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refused(failure: Failure) -> Response {
    let message = failure.message();
    match failure.code {
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

fn plain(status: StatusCode, line: String) -> Response {
    let mut response = Response::new(Body::from(format!("{line}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
