//! `/healthz` and `/metrics`, served on a separate address.
//!
//! The endpoints need no authentication, so their resources are bounded: few connections, one request each, short
//! timeouts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::bind::bind;
use crate::error::Result;

/// A server that reports its health and metrics.
pub(crate) trait Operated: Send + Sync + 'static {
    /// True once the server is shutting down.
    fn is_ending(&self) -> bool;

    /// Reason for which the server does not answer as usual; `None` if it does.
    fn trouble(&self) -> Option<Trouble> {
        None
    }

    /// Returns the metrics in the OpenMetrics text format.
    fn metrics_text(&self) -> Result<String, std::fmt::Error>;
}

/// State of a server that does not answer as usual.
pub(crate) enum Trouble {
    /// It still answers.
    Degraded(String),
    /// It does not answer, and has to be restarted.
    Down(String),
}

/// Maximum number of concurrent connections.
const CONNECTIONS: usize = 32;
/// Maximum lifetime of a connection.
const LASTS: Duration = Duration::from_secs(5);
/// Time limit for reading the request headers.
const HEADERS: Duration = Duration::from_secs(1);
/// Maximum size of a request in bytes.
const REQUEST: usize = 16 << 10;

/// Serves health and metrics until the returned task handle is dropped. Returns the bound address.
///
/// # Errors
/// Those of [`bind`].
pub(crate) async fn operate<S: Operated>(
    address: SocketAddr,
    server: Arc<S>,
) -> Result<(SocketAddr, AbortOnDropHandle<()>)> {
    let (listener, address) = bind(address).await?;
    let router: Router =
        Router::new().route("/healthz", get(health::<S>)).route("/metrics", get(metrics::<S>)).with_state(server);
    let serving = tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            // Further connections wait in the listen backlog.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                // Usually out of file descriptors: wait until connections close.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let _place = place;
                let mut http = http1::Builder::new();
                http.keep_alive(false).max_buf_size(REQUEST).timer(TokioTimer::new()).header_read_timeout(HEADERS);
                // Errors concern only the client, which sees them itself.
                let _ = timeout(LASTS, http.serve_connection(TokioIo::new(stream), service)).await;
            });
        }
    });
    Ok((address, AbortOnDropHandle::new(serving)))
}

async fn health<S: Operated>(State(server): State<Arc<S>>) -> Response {
    if server.is_ending() {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response();
    }
    match server.trouble() {
        None => "ok\n".into_response(),
        Some(Trouble::Degraded(line)) => format!("degraded: {line}\n").into_response(),
        Some(Trouble::Down(line)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{line}\n")).into_response(),
    }
}

async fn metrics<S: Operated>(State(server): State<Arc<S>>) -> Response {
    match server.metrics_text() {
        Ok(text) => {
            let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, format)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
