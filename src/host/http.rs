//! Listener of HTTP/1.1: admission, TLS, one connection after another, and shutdown. The server answers the requests.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::front::{Kept, QUIET, keep};
use super::in_service::InService;
use super::listener::{ClientStream, End};
use super::peer::Caller;
use super::reload::Reload;
use super::shares::Received;
use super::state::Host;
use crate::error::{Error, Result};
use crate::serving::{Acceptor, TlsSpec, bind};

/// Time limit of a TLS handshake, and of the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// Time within which the next part of a request's body must arrive.
const STALLED: Duration = Duration::from_secs(10);
/// Time limit of the whole body.
const BODY: Duration = Duration::from_secs(60);
/// Bytes of a request's headers.
const HEADER_BYTES: usize = 32 << 10;

/// Answers a request of a connection.
pub(crate) type Answer = Arc<dyn Fn(Request<Incoming>, Caller) -> BoxFuture<'static, Response> + Send + Sync>;

/// A listener that has an address, and answers nothing yet.
pub(crate) struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Acceptor>,
    host: Arc<Host>,
    ending: CancellationToken,
}

/// A running server. [`HttpServer::shut_down`] stops it gracefully; dropping it stops it at once.
#[derive(Debug)]
pub struct HttpServer {
    url: String,
    address: SocketAddr,
    host: Arc<Host>,
    tls: Option<Acceptor>,
    connections: InService,
    /// Set if it is the only front of its host.
    kept: Option<Kept>,
}

impl Bound {
    /// Binds an address; port 0 picks a free one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid certificate; those of [`bind`].
    pub(crate) async fn new(listen: SocketAddr, tls: Option<&TlsSpec>, host: Arc<Host>) -> Result<Self> {
        let tls = tls.map(|tls| Acceptor::try_new(tls, b"http/1.1")).transpose()?;
        let (listener, address) = bind(listen).await?;
        Ok(Self { listener, address, tls, host, ending: CancellationToken::new() })
    }

    /// The address that clients connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Token that is cancelled at the end of a shutdown.
    pub(crate) fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    /// Serves connections; `url` is what people open or clients are configured with.
    pub(crate) fn serve(self, url: String, answer: Answer) -> HttpServer {
        let Self { listener, address, tls, host, ending } = self;
        let acceptor = tls.clone();
        let served = move |stream, closing| serve(stream, acceptor.clone(), Arc::clone(&answer), closing);
        let connections = InService::start(listener, Arc::clone(&host), End::AtOnce, ending, served);
        HttpServer { url, address, host, tls, connections, kept: None }
    }
}

impl HttpServer {
    /// Makes it the only server of its host: removes expired sessions, and serves `/healthz` and `/metrics` if `asked` is an
    /// address.
    ///
    /// # Errors
    /// Those of [`bind`].
    pub(crate) async fn alone(mut self, asked: Option<SocketAddr>) -> Result<Self> {
        self.kept = Some(keep(&self.host, |host| drop(host.sweep()), asked).await?);
        Ok(self)
    }

    /// Returns the URL to open or to configure clients with. That of the page contains the token if there are no users.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of `/healthz` and `/metrics`.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.kept.as_ref().and_then(|kept| kept.operations)
    }

    /// State that the server shares with other fronts.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Waits until the server has to be restarted, although it still answers: so many threads do not respond that no more are
    /// started. Returns the reason.
    pub async fn worn_out(&self) -> Error {
        self.host.worn_out().await
    }

    /// Handle that reads users, API keys and certificates again, without closing the server.
    pub fn reload(&self) -> Reload {
        Reload::new(Arc::clone(&self.host), self.tls.clone())
    }

    /// Shuts down: stops accepting connections and lets running calls finish for up to [`Limits::drain_seconds`].
    ///
    /// [`Limits::drain_seconds`]: super::settings::Limits::drain_seconds
    pub async fn shut_down(self) {
        self.connections.drain(Some(QUIET)).await;
    }
}

/// Names by which requests to a loopback address may call this machine; `None` beyond loopback, where they are unknown. A web page
/// that reaches the server under a name of its own (DNS rebinding) uses another one.
pub(crate) fn names_of(address: SocketAddr) -> Option<[String; 4]> {
    let names = || ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.ip().to_string()];
    address.ip().is_loopback().then(names)
}

/// Serves one connection until it closes, or the running response after `closing` has ended.
async fn serve(stream: ClientStream, tls: Option<Acceptor>, answer: Answer, closing: CancellationToken) {
    let caller = stream.caller();
    match tls {
        None => speak(stream, caller, answer, closing).await,
        // Errors concern only the client, which sees them itself.
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HEADERS, tls.accept(stream)).await {
                speak(stream, caller, answer, closing).await;
            }
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    caller: Caller,
    answer: Answer,
    closing: CancellationToken,
) {
    let service = service_fn(move |request| {
        let answered = answer(request, caller);
        async move { Ok::<_, Infallible>(answered.await) }
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

/// Receives the body of a request. A client that sends no part of it for a while, or takes long for all of it, would keep its
/// place for as long as it likes. If the user is known, the body counts against the user's share until the returned [`Received`] is
/// dropped. Keep it to the end of the call.
///
/// # Errors
/// Status and line for a body that is late, broken, longer than `most` bytes, or does not fit into the share.
pub(crate) async fn received<B>(
    body: B,
    most: usize,
    mut memory: Option<Received>,
) -> Result<(Bytes, Option<Received>), (StatusCode, String)>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
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
            if let Some(memory) = &mut memory {
                let held = memory.hold(all.len() + part.len());
                held.map_err(|failure| (StatusCode::TOO_MANY_REQUESTS, failure.message()))?;
            }
            all.extend_from_slice(&part);
        }
        Ok((all.freeze(), memory))
    };
    timeout(BODY, receive).await.map_err(|_| late(BODY))?
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;
    use crate::host::shares::tests::share_of_a_mebibyte;

    #[tokio::test]
    async fn a_body_counts_until_its_call_has_ended() {
        let share = share_of_a_mebibyte();
        let body = Full::new(Bytes::from(vec![b'x'; 200 << 10]));
        let (body, memory) = received(body, 1 << 20, Some(Received::new(&share))).await.expect("a body");
        assert_eq!((body.len(), share.pool().reserved()), (200 << 10, 136 << 10));
        drop(memory);
        assert_eq!(share.pool().reserved(), 0);
    }
}
