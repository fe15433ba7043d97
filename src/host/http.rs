//! Listener of HTTP/1.1: admission, TLS, one connection after another, and shutdown. The server answers the requests.

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
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
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::{Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::front::{QUIET, Upkeep, start_upkeep};
use super::in_service::InService;
use super::listener::{ClientStream, End};
use super::peer::Caller;
use super::reload::Reload;
use super::shares::Received;
use super::state::Host;
use super::unread::discard_body;
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
    upkeep: Option<Upkeep>,
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
        let unread = Duration::from_secs(host.limits.unread_seconds);
        let served = move |stream, closing| serve(stream, acceptor.clone(), Arc::clone(&answer), unread, closing);
        let connections = InService::start(listener, Arc::clone(&host), End::AtOnce, ending, served);
        HttpServer { url, address, host, tls, connections, upkeep: None }
    }
}

impl HttpServer {
    /// Makes it the only server of its host: removes expired sessions, and serves `/healthz` and `/metrics` if `asked` is an
    /// address.
    ///
    /// # Errors
    /// Those of [`bind`].
    pub(crate) async fn alone(mut self, asked: Option<SocketAddr>) -> Result<Self> {
        self.upkeep = Some(start_upkeep(&self.host, |host| drop(host.sweep()), asked).await?);
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
        self.upkeep.as_ref().and_then(|upkeep| upkeep.operations)
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
async fn serve(
    stream: ClientStream,
    tls: Option<Acceptor>,
    answer: Answer,
    unread: Duration,
    closing: CancellationToken,
) {
    let caller = stream.caller();
    match tls {
        None => speak(WhileRead::new(stream, unread), caller, answer, closing).await,
        // Errors concern only the client, which sees them itself.
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HEADERS, tls.accept(stream)).await {
                speak(WhileRead::new(stream, unread), caller, answer, closing).await;
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

/// A stream whose writing fails once the client has read nothing of what is to be sent for a while. A response without anything to
/// send may take as long as it likes.
struct WhileRead<S> {
    stream: S,
    most: Duration,
    /// Runs while the client has to read.
    late: Option<Pin<Box<Sleep>>>,
}

impl<S> WhileRead<S> {
    fn new(stream: S, most: Duration) -> Self {
        Self { stream, most, late: None }
    }

    /// The outcome of writing, or an error if it waits for too long.
    fn in_time<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.late = None;
            return written;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(self.most)));
        late.as_mut().poll(context).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WhileRead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WhileRead<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(shut, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.in_time(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
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
        while let Some(frame) = timeout(STALLED, body.frame()).await.map_err(|_| (late(STALLED), None::<B>))? {
            let broken = |error: B::Error| (StatusCode::BAD_REQUEST, format!("cannot read the request: {error}"));
            let frame = frame.map_err(|error| (broken(error), None::<B>))?;
            let part = frame.into_data().unwrap_or_default();
            let bytes = all.len() + part.len();
            let refused = match bytes > most {
                true => {
                    let line = format!("the body of the request is too long: the limit is {most} bytes");
                    Some((StatusCode::PAYLOAD_TOO_LARGE, line))
                }
                false => memory
                    .as_mut()
                    .and_then(|memory| memory.hold(bytes).err())
                    .map(|failure| (StatusCode::TOO_MANY_REQUESTS, failure.message())),
            };
            if let Some(refused) = refused {
                drop((all, memory));
                return Err((refused, Some(body)));
            }
            all.extend_from_slice(&part);
        }
        Ok((all.freeze(), memory))
    };
    let (refused, rest) = match timeout(BODY, receive).await {
        Ok(Ok(whole)) => return Ok(whole),
        Ok(Err(refused)) => refused,
        Err(_) => return Err(late(BODY)),
    };
    if let Some(rest) = rest {
        // A client reads no response before it has sent its request.
        discard_body(rest).await;
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{StreamExt, stream};
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

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

    #[tokio::test]
    async fn a_body_that_is_refused_is_read_to_its_end() {
        let read = AtomicUsize::new(0);
        let part = |_| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b'x'; 1 << 10])))
        };
        let body = StreamBody::new(stream::iter(0..100).map(part));
        let (status, line) = received(body, 10 << 10, None).await.expect_err("100 KiB");
        assert!(status == StatusCode::PAYLOAD_TOO_LARGE && line.contains("too long"), "{line}");
        assert_eq!(read.into_inner(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_becomes_too_long_at_the_end_of_its_time_is_too_long() {
        let parts = stream::unfold(0, |at: usize| async move {
            sleep(Duration::from_secs(8)).await;
            let bytes = if at < 6 { 1 } else { 1 << 10 };
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b'x'; bytes]))), at + 1))
        });
        let (status, line) = received(StreamBody::new(parts.boxed()), 100, None).await.expect_err("1 KiB");
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{line}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_ends_if_the_client_stops_reading_and_not_if_there_is_nothing_to_send() {
        let (mut client, server) = duplex(64);
        let mut server = WhileRead::new(server, Duration::from_secs(10));
        let reading = tokio::spawn(async move {
            // Slower than the limit for all of it, but never idle for that long.
            for _ in 0..16 {
                sleep(Duration::from_secs(9)).await;
                client.read_exact(&mut [0; 64]).await.expect("a part");
            }
            client
        });
        server.write_all(&[0; 16 * 64]).await.expect("the client reads");
        let client = reading.await.expect("the client");
        sleep(Duration::from_secs(600)).await;
        server.write_all(&[0; 64]).await.expect("there is room");
        let late = server.write_all(&[0; 1]).await.expect_err("nobody reads");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }
}
