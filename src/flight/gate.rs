//! Authentication of calls from their headers, before the body is read.
//!
//! ```text
//! headers ─▶ credentials ─▶ session ─▶ call, with the session in its extensions
//!                │ refused: answered at once, the body is not read
//!                └ handshake, which may carry credentials in its body: a limited part of it is read
//! ```
//!
//! Messages may be many megabytes long and a client may open many streams; unauthenticated clients must not be able to
//! use either.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use tonic::body::Body;
use tonic::transport::server::{Connected, TlsConnectInfo};
use tonic::{Request as Call, Status};
use tower::{Layer, Service};

use super::state::ServerState;
use super::status::code_name;
use crate::host::auth::credentials;
use crate::host::listener::ClientStream;
use crate::host::peer::Caller;
use crate::host::sessions::Session;

/// Maximum size of a handshake's body, in bytes.
const HANDSHAKE: usize = 64 << 10;
/// Bytes that a body may have in addition to the statement in it.
const AROUND: usize = 1 << 20;

/// Tower layer that wraps a service in a [`Gate`].
#[derive(Clone)]
pub(super) struct GateLayer(pub(super) Arc<ServerState>);

/// Service that authenticates calls before passing them on; see the module documentation.
#[derive(Clone)]
pub(super) struct Gate<S> {
    inner: S,
    shared: Arc<ServerState>,
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, shared: Arc::clone(&self.0) }
    }
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // `poll_ready` was called on this instance; the clone left in its place is not ready yet.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let shared = Arc::clone(&self.shared);
        async move {
            let caller = caller_of(request.extensions());
            let refused = |status: Status| {
                shared.host.metrics.called("refused".to_owned(), code_name(status.code()));
                Ok(status.into_http())
            };
            let call = caller.map(|caller| shared.host.standing.call(caller.peer).ok_or(()));
            let Ok(call) = call.transpose() else {
                return refused(Status::resource_exhausted(
                    "too many concurrent calls before authentication: wait for the login to complete",
                ));
            };
            let limit = match request.uri().path().strip_prefix("/arrow.flight.protocol.FlightService/") {
                // Health checks need no authentication, and their messages are small.
                None | Some("Handshake") => Some(HANDSHAKE),
                Some(method) => {
                    // Messages with rows have their own size limit; all others contain at most a statement.
                    let limit =
                        (method != "DoPut").then_some(shared.host.limits.statement_bytes.saturating_add(AROUND));
                    let credentials = credentials(request.headers());
                    let found = match credentials {
                        Ok(credentials) => shared.host.sessions.find(credentials, caller).await,
                        Err(rejection) => Err(shared.host.sessions.rejected(rejection)),
                    };
                    match found {
                        Ok(session) => {
                            if let Some(caller) = caller {
                                shared.host.standing.log_in(caller.peer, &session.principal.name, session.is_proven());
                            }
                            request.extensions_mut().insert(session);
                        }
                        Err(failure) => return refused(failure.into()),
                    }
                    limit
                }
            };
            if let Some(limit) = limit {
                request = request
                    .map(|body| Body::new(Limited::new(body, limit).map_err(move |error| too_long(error, limit))));
            }
            let response = inner.call(request).await?;
            // The call lasts until its response is sent.
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _ = &call;
                    frame
                }))
            }))
        }
        .boxed()
    }
}

fn too_long(error: Box<dyn std::error::Error + Send + Sync>, limit: usize) -> Status {
    match error.downcast::<Status>() {
        Ok(status) => *status,
        Err(_) => Status::resource_exhausted(format!("message too long: the limit is {limit} bytes")),
    }
}

/// Returns the caller of a request, from its extensions.
pub(super) fn caller_of(extensions: &http::Extensions) -> Option<Caller> {
    let inside = extensions.get::<TlsConnectInfo<Caller>>().map(TlsConnectInfo::get_ref);
    extensions.get::<Caller>().or(inside).copied()
}

/// Returns the session of a call, as set by [`Gate`].
///
/// # Errors
/// UNAUTHENTICATED for a call that did not pass the gate.
pub(super) fn session_of<T>(request: &Call<T>) -> Result<Arc<Session>, Status> {
    let session = request.extensions().get::<Arc<Session>>();
    session.cloned().ok_or_else(|| Status::unauthenticated("log in first"))
}

impl Connected for ClientStream {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller()
    }
}
