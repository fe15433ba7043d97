//! `/healthz` and `/metrics`, on an address of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::service::Shared;

/// Serves health and metrics until what is returned is dropped. Gives the address.
///
/// # Errors
/// Those of listening.
pub(super) async fn start(
    address: SocketAddr,
    shared: Arc<Shared>,
) -> std::io::Result<(SocketAddr, AbortOnDropHandle<()>)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/healthz", get(health)).route("/metrics", get(metrics)).with_state(shared);
    let serving = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "health and metrics have ended");
        }
    });
    Ok((address, AbortOnDropHandle::new(serving)))
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    if shared.ending() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the server is ending\n").into_response();
    }
    "ok\n".into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    match shared.metrics_text() {
        Ok(text) => {
            let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, format)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
