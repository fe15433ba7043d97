//! Who may come in, told from the headers of a call before its body is read.
//!
//! ```text
//! headers ─▶ credentials ─▶ session ─▶ the call, with its session among its extensions
//!                │ refused: answered at once, nothing of the body is taken in
//!                └ a handshake, which brings credentials in its body: a few bytes of it
//! ```
//!
//! A message may have many megabytes, and a client may open many streams: none of that is for those who have not shown who
//! they are.

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

/// Bytes of a handshake's body.
const HANDSHAKE: usize = 64 << 10;
/// Bytes of a body around the statement in it.
const AROUND: usize = 1 << 20;

/// Puts a [`Gate`] before a service.
#[derive(Clone)]
pub(super) struct GateLayer(pub(super) Arc<ServerState>);

/// See the module's documentation.
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
        // The one that is ready is called; its clone has to become so.
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
                    "too many calls at once before the login: wait for its answer",
                ));
            };
            let limit = match request.uri().path().strip_prefix("/arrow.flight.protocol.FlightService/") {
                // Health is for everybody, and its messages are small.
                None | Some("Handshake") => Some(HANDSHAKE),
                Some(method) => {
                    // Rows come in messages of a size that has a limit of its own; all others hold a statement at most.
                    let limit = (method != "DoPut").then_some(shared.limits.statement_bytes.saturating_add(AROUND));
                    let credentials = credentials(&MetadataMap::from_headers(request.headers().clone()));
                    let found = match credentials {
                        Ok(credentials) => shared.sessions.find(credentials, caller).await,
                        Err(status) => Err(status),
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
            // The call lasts until the last of its answer is sent.
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
        Err(_) => Status::resource_exhausted(format!("a message is too long: {limit} are allowed")),
    }
}
