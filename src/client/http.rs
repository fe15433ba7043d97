//! Access to the network, in one place.
//!
//! All callers go through an [`HttpService`]; proxies, test doubles and scripted faults wrap or replace it. The real
//! one is [`Network`]: reqwest with rustls, no redirects, timeouts, and size limits on the body that are enforced while
//! it streams, before and after decompression.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZstdDecoder};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt};
use http::header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING};
use http::{HeaderMap, StatusCode};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use tokio_util::io::StreamReader;
use url::Url;

use crate::error::{Error, ErrorKind, Phrase, Result, Term};
use crate::location::is_loopback;

/// Header of a simulator with a clock of its own, such as a stopped one: its time is not to be compared with ours. A service beyond
/// this machine is none.
pub(super) const SIMULATED_TIME: &str = "simulated-time";

/// A GET request.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// Full URL, including the query.
    pub url: Url,
    /// Headers; sensitive ones are marked as such.
    pub headers: HeaderMap,
}

impl HttpRequest {
    /// Creates a request, for tests of a service.
    pub fn new(url: Url, headers: HeaderMap) -> Self {
        Self { url, headers }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GET {}", self.url)
    }
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, decompressed.
    pub body: Bytes,
    /// Bytes of the body on the wire.
    pub wire_bytes: u64,
}

/// Reason why there is no complete response.
#[derive(Debug, Clone)]
pub struct HttpFailure {
    /// Kind of error that the caller will see.
    pub kind: ErrorKind,
    /// One-line description, without secrets.
    pub message: String,
    /// Set if another attempt may succeed.
    pub temporary: bool,
}

/// The message.
impl fmt::Display for HttpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HttpFailure {}

/// HTTP transport: one GET request, one complete response.
#[async_trait]
pub trait HttpService: fmt::Debug + Send + Sync {
    /// Sends the request once. Never retries, never follows a redirect. Dropping the future cancels the request.
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure>;
}

/// A service to which a limited number of requests is sent; further ones fail without being sent.
#[derive(Debug)]
pub struct LimitedService {
    service: Arc<dyn HttpService>,
    left: AtomicU64,
    /// Message of the failure of a further request.
    refusal: &'static str,
}

impl LimitedService {
    /// Limits the requests to a service. `refusal`: the message of the failure of a further one.
    pub fn new(service: Arc<dyn HttpService>, requests: u64, refusal: &'static str) -> Self {
        Self { service, left: AtomicU64::new(requests), refusal }
    }

    /// Number of requests that are left.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl HttpService for LimitedService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => self.service.call(request).await,
            Err(_) => Err(HttpFailure { kind: ErrorKind::Budget, message: self.refusal.to_owned(), temporary: false }),
        }
    }
}

/// Limits of a single HTTP exchange.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Longest time to connect, TLS included.
    pub connect: Duration,
    /// Longest pause between two chunks of a body.
    pub idle: Duration,
    /// Largest size of a body on the wire, in bytes. Beyond it: [`ErrorKind::TooLarge`].
    pub wire_bytes: u64,
    /// Largest size of a body after decompression, in bytes. Beyond it: [`ErrorKind::TooLarge`].
    pub body_bytes: u64,
    /// Set to allow sending the key in clear text beyond this machine. Anyone on the network path can then read it.
    pub insecure: bool,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            wire_bytes: 32 << 20,
            body_bytes: 128 << 20,
            insecure: false,
        }
    }
}

impl HttpLimits {
    /// Sets whether the key may be sent in clear text beyond this machine.
    #[must_use]
    pub fn insecure(self, allowed: bool) -> Self {
        Self { insecure: allowed, ..self }
    }
}

/// [`HttpService`] over the network: reqwest with rustls.
#[derive(Debug)]
pub struct Network {
    client: reqwest::Client,
    limits: HttpLimits,
    /// True for a service on this machine.
    loopback: bool,
}

impl Network {
    /// Creates a client that follows no redirects and verifies certificates. Proxies are taken from the usual
    /// environment variables, except for a service on this machine.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the service is beyond this machine and without TLS, unless that is allowed, and if TLS
    /// cannot be set up.
    pub fn try_new(limits: HttpLimits, base_url: &Url) -> Result<Self> {
        let loopback = is_loopback(base_url);
        if base_url.scheme() == "http" && !loopback && !limits.insecure {
            let host = base_url.host_str().unwrap_or_default();
            return Err(Error::new(ErrorKind::Config, format!("the API key would be sent to {host} in clear text"))
                .advice(
                    Phrase::from("use an https URL, or ")
                        + Term::Insecure
                        + " on a network that you trust (insecure = true in a file)",
                ));
        }
        let builder = reqwest::Client::builder();
        // The process chooses its own crypto provider; if it has none, ring serves this client only.
        let builder = match CryptoProvider::get_default() {
            Some(_) => builder,
            None => builder.tls_backend_preconfigured(tls_config(loopback && base_url.scheme() == "http")?),
        };
        let client = if loopback { builder.no_proxy() } else { builder }
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(limits.connect)
            .user_agent(concat!("savedsearch/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error::new(ErrorKind::Config, format!("cannot set up HTTP: {}", chain(&error))))?;
        Ok(Self { client, limits, loopback })
    }

    /// Sends a body by POST, once, within a time for the whole exchange. The body of the response is not read.
    #[cfg(feature = "store")]
    pub(crate) async fn post(
        &self,
        url: Url,
        media_type: &'static str,
        body: Vec<u8>,
        longest: Duration,
    ) -> Result<StatusCode, HttpFailure> {
        let request = self.client.post(url).header(http::header::CONTENT_TYPE, media_type).timeout(longest);
        let sent = request.body(body).send().await;
        sent.map(|response| response.status()).map_err(|error| failure(&error.without_url()))
    }
}

/// TLS configuration with ring that trusts the certificate authorities of this machine. If TLS is `unused`, it trusts none:
/// reading them takes several milliseconds.
fn tls_config(unused: bool) -> Result<ClientConfig> {
    let failed = |error: rustls::Error| Error::new(ErrorKind::Config, format!("cannot set up TLS: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(failed)?;
    let builder = match unused {
        true => builder.with_root_certificates(RootCertStore::empty()),
        false => builder.with_platform_verifier().map_err(failed)?,
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[async_trait]
impl HttpService for Network {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let response = self
            .client
            .get(request.url)
            .headers(request.headers)
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, "zstd, br, gzip")
            // RFC 9111, section 5.2.1.4: caches ask the service whether their response is still the right one.
            .header(CACHE_CONTROL, "no-cache")
            .send()
            .await
            .map_err(|error| failure(&error))?;
        let (status, mut headers) = (response.status(), response.headers().clone());
        if !self.loopback {
            headers.remove(SIMULATED_TIME);
        }
        let body = response.bytes_stream().map_err(|error| failure(&error));
        receive(status, headers, body, self.limits).await
    }
}

/// Receives a response and decompresses its body within the size limits, which are enforced while it streams. For
/// custom services.
///
/// # Errors
/// The failure that the body ends with, [`ErrorKind::TooLarge`] beyond a limit, [`ErrorKind::Timeout`] for a body that
/// stalls, and [`ErrorKind::Malformed`] for one that cannot be decompressed.
pub async fn receive(
    status: StatusCode,
    headers: HeaderMap,
    body: impl Stream<Item = Result<Bytes, HttpFailure>> + Send,
    limits: HttpLimits,
) -> Result<HttpResponse, HttpFailure> {
    let encoding = headers
        .get(CONTENT_ENCODING)
        .map_or(Ok("identity"), |value| value.to_str())
        .unwrap_or("unreadable")
        .to_ascii_lowercase();
    let mut wire_bytes = 0;
    let cap = limits.wire_bytes;
    let wire = body.map(|chunk| {
        let chunk = chunk?;
        wire_bytes += chunk.len() as u64;
        if wire_bytes > cap { Err(too_large("on the wire", cap)) } else { Ok(chunk) }
    });
    let wire = Box::pin(wire);
    let body = match encoding.as_str() {
        "identity" | "" => collect(wire, limits).await?,
        compressed => {
            let reader = StreamReader::new(wire.map_err(|failure| io::Error::other(Carried(failure))));
            // A body may be joined from several compressed members (RFC 1952, section 2.2; RFC 8878, section 3.1).
            let decoded: Pin<Box<dyn AsyncRead + Send + '_>> = match compressed {
                "gzip" | "x-gzip" => {
                    let mut decoder = GzipDecoder::new(reader);
                    decoder.multiple_members(true);
                    Box::pin(decoder)
                }
                "br" => Box::pin(BrotliDecoder::new(reader)),
                "zstd" => {
                    let mut decoder = ZstdDecoder::new(reader);
                    decoder.multiple_members(true);
                    Box::pin(decoder)
                }
                other => {
                    return Err(HttpFailure {
                        kind: ErrorKind::Malformed,
                        message: format!("unsupported content encoding `{other}`"),
                        temporary: false,
                    });
                }
            };
            decompress(decoded, limits).await?
        }
    };
    Ok(HttpResponse { status, headers, body, wire_bytes })
}

/// Receives a body that is not compressed. Chunks are joined when all have arrived: the memory of a body that is reserved early
/// is new to the process each time, and page faults cost more than all copies.
async fn collect(
    mut wire: impl Stream<Item = Result<Bytes, HttpFailure>> + Unpin,
    limits: HttpLimits,
) -> Result<Bytes, HttpFailure> {
    /// Smaller chunks are joined at once, so that their number is bounded.
    const CHUNK: usize = 4 << 10;
    /// A body of this size in one chunk is not copied. A smaller one is, because a chunk keeps the whole buffer of its connection
    /// in memory, and small bodies may be kept for long.
    const ALONE: usize = 64 << 10;
    let (mut chunks, mut small, mut length) = (Vec::new(), BytesMut::new(), 0);
    while let Some(chunk) = timeout(limits.idle, wire.next()).await.map_err(|_| stalled(limits))? {
        let chunk = chunk?;
        length += chunk.len();
        if length as u64 > limits.body_bytes {
            return Err(too_large("after decompression", limits.body_bytes));
        }
        if chunk.len() < CHUNK {
            small.extend_from_slice(&chunk);
        } else {
            chunks.extend((!small.is_empty()).then(|| small.split().freeze()));
            chunks.push(chunk);
        }
    }
    chunks.extend((!small.is_empty()).then(|| small.freeze()));
    if let [whole] = &chunks[..]
        && length >= ALONE
    {
        return Ok(whole.clone());
    }
    let mut body = BytesMut::with_capacity(length);
    chunks.iter().for_each(|chunk| body.extend_from_slice(chunk));
    Ok(body.freeze())
}

/// Reads a decompressed body to its end.
async fn decompress(reader: impl AsyncRead, limits: HttpLimits) -> Result<Bytes, HttpFailure> {
    /// Room for the next read.
    const ROOM: usize = 16 << 10;
    let cap = limits.body_bytes;
    let mut reader = std::pin::pin!(reader.take(cap + 1));
    let mut body = BytesMut::with_capacity(64 << 10);
    loop {
        let read = timeout(limits.idle, reader.read_buf(&mut body)).await.map_err(|_| stalled(limits))?;
        match read {
            Ok(0) if body.len() as u64 > cap => return Err(too_large("after decompression", cap)),
            Ok(0) => return Ok(body.freeze()),
            Ok(_) => body.reserve(ROOM),
            Err(error) => {
                return Err(match error.downcast::<Carried>() {
                    Ok(Carried(failure)) => failure,
                    Err(error) => HttpFailure {
                        kind: ErrorKind::Malformed,
                        message: format!("cannot decompress the response body: {error}"),
                        temporary: true,
                    },
                });
            }
        }
    }
}

/// A failure wrapped in an `io::Error`.
#[derive(Debug)]
struct Carried(HttpFailure);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Carried {}

fn stalled(limits: HttpLimits) -> HttpFailure {
    HttpFailure {
        kind: ErrorKind::Timeout,
        message: format!("no data received for {} s", limits.idle.as_secs()),
        temporary: true,
    }
}

fn too_large(place: &str, cap: u64) -> HttpFailure {
    HttpFailure {
        kind: ErrorKind::TooLarge,
        message: format!("the response body exceeds {} MiB {place}", cap >> 20),
        temporary: false,
    }
}

fn failure(error: &reqwest::Error) -> HttpFailure {
    // The URL is omitted: the error's place identifies the request, and the query string is long.
    let message = chain(error);
    let tls = of_tls(error) || message.contains("certificate");
    let (kind, temporary) = match () {
        () if error.is_timeout() => (ErrorKind::Timeout, true),
        () if error.is_connect() && tls => (ErrorKind::Tls, false),
        () if error.is_connect() => (ErrorKind::Connect, true),
        () if error.is_builder() => (ErrorKind::Config, false),
        () => (ErrorKind::Connect, true),
    };
    let what = match kind {
        ErrorKind::Timeout => "request timed out",
        ErrorKind::Tls => "TLS connection failed",
        ErrorKind::Config => "cannot send this request",
        _ if error.is_connect() => "connection failed",
        _ => "connection lost",
    };
    HttpFailure { kind, message: format!("{what}: {message}"), temporary }
}

/// True if TLS failed, rather than the connection below it.
fn of_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    // An error wrapped in an I/O error is not among its sources.
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<rustls::Error>() || wrapped.is_some_and(|wrapped| of_tls(wrapped)) || error.source().is_some_and(of_tls)
}

/// Joins the causes of an error, without the URL that reqwest repeats.
fn chain(error: &dyn std::error::Error) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    // Names of the client's layers, which mean nothing to a user.
    causes.retain(|cause| !cause.starts_with("client error (") && !cause.starts_with("error resolving DNS"));
    causes.dedup();
    if causes.is_empty() { error.to_string() } else { causes.join(": ") }
}
