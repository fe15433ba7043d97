//! The HTTP transport interface, for connections that use a custom transport such as a proxy or a fault injector.
//!
//! [`ConnectionBuilder::service`](crate::ConnectionBuilder::service) takes an [`HttpService`]; [`Network`] is the
//! default implementation and can be wrapped. With the feature `simulator`, a simulator is one as well: tests need no socket, and
//! can run in virtual time.

#[cfg(feature = "simulator")]
use async_trait::async_trait;
#[cfg(feature = "simulator")]
use futures::TryStreamExt;
#[cfg(feature = "simulator")]
use savedsearch_simulator::Simulator;
#[cfg(feature = "simulator")]
use url::Position;

pub use crate::client::{HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, Network, receive};
#[cfg(feature = "simulator")]
use crate::error::ErrorKind;

/// Calls the simulator within the process. Only the path and the query of the URL are used. A body that breaks off is a failure that may
/// pass, as over the network; the limits are the default ones.
#[cfg(feature = "simulator")]
#[async_trait]
impl HttpService for Simulator {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let path = request.url[Position::BeforePath..].to_owned();
        let (parts, body) = self.get(&path, request.headers).await.into_parts();
        let body = body.map_err(|error| HttpFailure {
            kind: ErrorKind::Connect,
            message: format!("the connection broke: {error}"),
            temporary: true,
        });
        receive(parts.status, parts.headers, body, HttpLimits::default()).await
    }
}
