//! `/healthz` and `/metrics`, on an address of their own.
//!
//! Everybody who reaches the address may ask: connections are few, answer one request each, and end in time.

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
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::state::ServerState;

/// Connections at the same time.
const CONNECTIONS: usize = 32;
/// How long a connection may last.
const LASTS: Duration = Duration::from_secs(5);
/// How long the headers of a request may take.
const HEADERS: Duration = Duration::from_secs(1);
/// Bytes of a request.
const REQUEST: usize = 16 << 10;

/// Serves health and metrics until what is returned is dropped. Gives the address.
///
/// # Errors
/// Those of listening.
pub(super) async fn start(
    address: SocketAddr,
    shared: Arc<ServerState>,
) -> std::io::Result<(SocketAddr, AbortOnDropHandle<()>)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let router: Router =
        Router::new().route("/healthz", get(health)).route("/metrics", get(metrics)).with_state(shared);
    let serving = tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            // Those that find no place wait for it with the system.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                // No more files, as a rule: connections have to end first.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let _place = place;
                let mut http = http1::Builder::new();
                http.keep_alive(false).max_buf_size(REQUEST).timer(TokioTimer::new()).header_read_timeout(HEADERS);
                // What went wrong with a connection is known to whoever has the other end.
                let _ = timeout(LASTS, http.serve_connection(TokioIo::new(stream), service)).await;
            });
        }
    });
    Ok((address, AbortOnDropHandle::new(serving)))
}

async fn health(State(shared): State<Arc<ServerState>>) -> Response {
    if shared.ending() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the server is ending\n").into_response();
    }
    "ok\n".into_response()
}

async fn metrics(State(shared): State<Arc<ServerState>>) -> Response {
    match shared.metrics_text() {
        Ok(text) => {
            let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, format)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
