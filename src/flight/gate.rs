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
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tower::{Layer, Service};

use super::auth::credentials;
use super::sessions::caller_of;
use super::state::ServerState;

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
                shared.metrics.called("refused".to_owned(), super::results::code_name(status.code()));
                Ok(status.into_http())
            };
            let call = caller.map(|caller| shared.standing.call(caller.peer).ok_or(()));
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
                    let limit = (method != "DoPut").then_some(shared.limits.statement_bytes.saturating_add(AROUND));
                    let credentials = credentials(&MetadataMap::from_headers(request.headers().clone()));
                    let found = match credentials {
                        Ok(credentials) => shared.sessions.find(credentials, caller).await,
                        Err(rejection) => Err(shared.sessions.rejected(rejection)),
                    };
                    match found {
                        Ok(session) => {
                            if let Some(caller) = caller.filter(|_| session.is_proven()) {
                                shared.standing.prove(caller.peer);
                            }
                            request.extensions_mut().insert(session);
                        }
                        Err(status) => return refused(status),
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
