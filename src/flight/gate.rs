//! Authentication of calls from their headers, before the body is read.
//!
//! ```text
//! headers ─▶ credentials ─▶ session ─▶ call, with the session in its extensions, and its body counted
//!                │ refused: answered at once, the body is not read
//!                └ handshake, which may carry credentials in its body: a limited part of it is read
//! ```
//!
//! Messages may be many megabytes long and a client may open many streams; unauthenticated clients must not be able to
//! use either. If a client is authenticated, bytes count against its user's share of the memory: those of an upload until they are
//! decoded, those of any other call until its response is sent, since the response may repeat them.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::Frame;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::server::{Connected, TlsConnectInfo};
use tonic::{Request as Call, Status};
use tower::{Layer, Service};

use super::rpc::{PATIENCE, late};
use super::state::ServerState;
use super::status::code_name;
use crate::host::auth::credentials;
use crate::host::listener::ClientStream;
use crate::host::peer::Caller;
use crate::host::sessions::Session;
use crate::host::shares::Received;
use crate::host::unread::discard_body;

/// Maximum size of a handshake's body, in bytes.
const HANDSHAKE: usize = 8 << 10;
/// Bytes that a body may have in addition to the statement in it.
const AROUND: usize = 1 << 20;
/// Bytes before each message: a flag, and the length of the message (gRPC over HTTP2, "Length-Prefixed-Message").
const PREFIX: usize = 5;

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
            let (limit, session) = match request.uri().path().strip_prefix("/arrow.flight.protocol.FlightService/") {
                // Health checks need no authentication, and their messages are small.
                None | Some("Handshake") => (Some(HANDSHAKE), None),
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
                            (limit, Some(session))
                        }
                        Err(failure) => return refused(failure.into()),
                    }
                }
            };
            if let Some(limit) = limit {
                request = request
                    .map(|body| Body::new(Limited::new(body, limit).map_err(move |error| too_long(error, limit))));
            }
            let mut held = None;
            if let Some(session) = session {
                let (memory, is_upload) = (Arc::new(Mutex::new(session.received())), limit.is_none());
                held = (!is_upload).then(|| Arc::clone(&memory));
                request = request.map(|body| Body::new(StreamBody::new(counted(body, memory, is_upload))));
                request.extensions_mut().insert(session);
            }
            let response = inner.call(request).await?;
            // The call lasts until its response is sent.
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _ = (&call, &held);
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

/// Passes a body on, and counts what is not decoded yet: of a body of several messages the last one begun, which tonic
/// gathers, otherwise all of it. Fails if the user's share of the memory is used up, or the next part arrives too late.
fn counted(
    body: Body,
    memory: Arc<Mutex<Received>>,
    is_upload: bool,
) -> impl Stream<Item = Result<Frame<Bytes>, Status>> + Send + 'static {
    let mut body = Unread(Some(body));
    async_stream::try_stream! {
        let (mut message, mut all) = (Message::default(), 0);
        while let Some(frame) = timeout(PATIENCE, body.frame()).await.map_err(|_| late())? {
            let frame = frame?;
            if let Some(part) = frame.data_ref() {
                all += part.len();
                let bytes = if is_upload { message.take(part) } else { all };
                let held = memory.lock().unwrap_or_else(PoisonError::into_inner).hold(bytes);
                held?;
            }
            yield frame;
        }
    }
}

/// A body; `None` once it has ended. If a call ends before it, the rest is dropped for a while: the stream would be reset, and many
/// clients lose the status of the call then.
struct Unread(Option<Body>);

impl Unread {
    async fn frame(&mut self) -> Option<Result<Frame<Bytes>, Status>> {
        let frame = self.0.as_mut()?.frame().await;
        if frame.is_none() {
            self.0 = None;
        }
        frame
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if let (Some(body), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(discard_body(body));
        }
    }
}

/// The message that a body has begun last.
#[derive(Debug, Default)]
struct Message {
    prefix: [u8; PREFIX],
    /// Bytes that have arrived, with those of the prefix.
    bytes: usize,
}

impl Message {
    /// Takes the next part of the body. Returns the bytes that are in memory until it is decoded. A complete message
    /// counts until the next one begins, because it may be in use until then.
    fn take(&mut self, mut part: &[u8]) -> usize {
        if self.bytes == self.end() && !part.is_empty() {
            self.bytes = 0;
        }
        let held = self.bytes + part.len();
        while !part.is_empty() {
            if self.bytes == self.end() {
                self.bytes = 0;
            }
            let (taken, rest) = part.split_at((self.end() - self.bytes).min(part.len()));
            let end = self.bytes + taken.len();
            if let Some(prefix) = self.prefix.get_mut(self.bytes..end) {
                prefix.copy_from_slice(taken);
            }
            (self.bytes, part) = (end, rest);
        }
        held
    }

    /// Bytes of the whole message, or of the prefix until that is complete.
    fn end(&self) -> usize {
        let [_, length @ ..] = self.prefix;
        if self.bytes < PREFIX { PREFIX } else { PREFIX + u32::from_be_bytes(length) as usize }
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{StreamExt, stream};
    use tonic::Code;

    use super::*;
    use crate::host::shares::Share;
    use crate::host::shares::tests::share_of_a_mebibyte;

    /// A message of so many bytes, with its prefix.
    fn message(bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).expect("a short message").to_be_bytes();
        [&[0_u8][..], &length, &vec![1; bytes]].concat()
    }

    fn body(parts: impl Stream<Item = Vec<u8>> + Send + 'static) -> Body {
        Body::new(StreamBody::new(parts.map(|part| Ok::<_, Status>(Frame::data(Bytes::from(part))))))
    }

    /// A counter in a share of 1 MiB, and the share.
    fn memory() -> (Arc<Mutex<Received>>, Arc<Share>) {
        let share = share_of_a_mebibyte();
        (Arc::new(Mutex::new(Received::new(&share))), share)
    }

    /// Bytes that count after each part of a body.
    async fn counts(parts: Vec<Vec<u8>>, several: bool) -> Vec<usize> {
        let (memory, share) = memory();
        let mut parts = pin!(counted(body(stream::iter(parts)), memory, several));
        let mut counts = Vec::new();
        while let Some(part) = parts.next().await {
            assert!(part.is_ok(), "{part:?}");
            counts.push(share.pool().reserved());
        }
        assert_eq!(share.pool().reserved(), 0, "the body has ended");
        counts
    }

    #[test]
    fn messages_end_where_their_prefixes_say() {
        let sent = [message(3), message(0), message(2)].concat();
        let held = |size: usize| {
            let mut message = Message::default();
            let held: Vec<usize> = sent.chunks(size).map(|part| message.take(part)).collect();
            (held, message.take(&[]))
        };
        let alone = vec![1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(held(1), (alone, 7));
        assert_eq!(held(3), (vec![3, 6, 9, 4, 7, 5, 7], 7));
        assert_eq!(held(20), (vec![20], 7));
    }

    #[tokio::test]
    async fn a_message_counts_until_the_next_one_begins() {
        let parts = |bytes: &[u8]| bytes.chunks(70_000).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let two = parts(&[message(200_000), message(300_000 - 10)].concat());
        let beyond = |held: usize| held.saturating_sub(64 << 10);
        // The third part ends the first message, and has 9,995 bytes of the second.
        let expected = [70_000, 140_000, 210_000, 79_995, 149_995, 219_995, 289_995, 299_995];
        assert_eq!(counts(two.clone(), true).await, expected.map(beyond));
        let expected = [70_000, 140_000, 210_000, 280_000, 350_000, 420_000, 490_000, 500_000];
        assert_eq!(counts(two, false).await, expected.map(beyond));
        let one_by_one = vec![message(100_000), message(1), message(100_000), message(0)];
        assert_eq!(counts(one_by_one, true).await, [100_005, 0, 100_005, 0].map(beyond));
    }

    #[tokio::test]
    async fn a_question_counts_until_its_response_is_sent() {
        let (memory, share) = memory();
        let response = Arc::clone(&memory);
        let parts: Vec<_> = counted(body(stream::iter([message(200_000)])), memory, false).collect().await;
        assert!(parts.iter().all(Result::is_ok));
        assert_eq!(share.pool().reserved(), 200_005 - (64 << 10));
        drop(response);
        assert_eq!(share.pool().reserved(), 0);
    }

    #[tokio::test]
    async fn a_call_ends_where_the_share_of_its_user_does() {
        let (memory, share) = memory();
        let announced = [&[0_u8][..], &(63_u32 << 20).to_be_bytes()].concat();
        let parts = stream::iter([announced]).chain(stream::repeat(vec![1; 64 << 10]));
        // The error is the last item; 1 MiB counts, and 64 KiB do not.
        let parts: Vec<_> = counted(body(parts), memory, true).collect().await;
        let (last, passed) = parts.split_last().expect("parts");
        assert_eq!(passed.len(), 17);
        assert!(passed.iter().all(Result::is_ok));
        assert_eq!(last.as_ref().expect_err("refused").code(), Code::ResourceExhausted);
        assert_eq!(share.pool().reserved(), 0);
    }

    #[tokio::test]
    async fn the_rest_of_a_body_is_dropped_after_its_call_has_ended() {
        let read = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&read);
        let parts = stream::iter(0..100).map(move |_| {
            counts.fetch_add(1, Ordering::Relaxed);
            vec![1; 1 << 10]
        });
        let limited = Body::new(Limited::new(body(parts), 10 << 10).map_err(|error| too_long(error, 10 << 10)));
        let answered: Vec<_> = counted(limited, memory().0, false).collect().await;
        let refused = answered.last().expect("an error").as_ref().expect_err("100 KiB");
        assert_eq!(refused.code(), Code::ResourceExhausted);
        while read.load(Ordering::Relaxed) < 100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_go_on_ends() {
        let (memory, share) = memory();
        let mut begun = message(200_000);
        begun.truncate(100_000);
        let parts: Vec<_> = counted(body(stream::iter([begun]).chain(stream::pending())), memory, true).collect().await;
        assert_eq!(parts.len(), 2);
        assert!(parts[0].is_ok());
        assert_eq!(parts[1].as_ref().expect_err("late").code(), Code::DeadlineExceeded);
        assert_eq!(share.pool().reserved(), 0);
    }
}
