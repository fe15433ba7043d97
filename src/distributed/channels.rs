//! Connections to workers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use http::HeaderMap;
use tokio::runtime::Handle;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use url::Url;

use super::errors::of_worker;
use crate::error::{Error, ErrorKind, Result};
use crate::serving::{TlsSpec, cause, install_crypto};

/// Time limit for connecting to a worker.
const CONNECT: Duration = Duration::from_secs(2);
/// Interval and timeout of HTTP/2 keep-alive pings: a worker that hangs is noticed after both.
const PING: Duration = Duration::from_secs(2);
/// Query parameter of a worker's URL with the name in its certificate, if the URL has an address instead.
const NAME: &str = "name";

/// Connections to workers, shared by all queries. An unused connection costs a ping now and then.
#[derive(Debug)]
pub(super) struct Channels {
    tls: RwLock<Option<TlsSpec>>,
    open: Mutex<HashMap<Url, Channel>>,
    /// Runtime of the connections. Queries run in others, which a long computation may occupy.
    runtime: Handle,
}

impl Channels {
    /// Connections of the calling runtime. With `tls`, both sides show certificates of its authorities.
    pub(super) fn new(tls: Option<TlsSpec>) -> Self {
        if tls.is_some() {
            install_crypto();
        }
        Self { tls: RwLock::new(tls), open: Mutex::default(), runtime: Handle::current() }
    }

    /// Returns the connection to a worker, which is established when it is used.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable URL or certificate.
    pub(super) fn channel(&self, url: &Url) -> Result<Channel> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = open.get(url) {
            return Ok(channel.clone());
        }
        let tls = self.tls.read().unwrap_or_else(PoisonError::into_inner);
        let channel = self.connection(url, tls.as_ref())?;
        open.insert(url.clone(), channel.clone());
        Ok(channel)
    }

    /// Replaces the certificates of all further connections. Queries that run keep theirs.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable certificate, or if there were none.
    pub(super) fn replace(&self, tls: TlsSpec) -> Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = self.tls.write().unwrap_or_else(PoisonError::into_inner);
        if own.is_none() {
            return Err(Error::new(ErrorKind::Config, "TLS can be switched on or off only by a restart"));
        }
        let renewed = open.keys().map(|url| self.connection(url, Some(&tls)).map(|channel| (url.clone(), channel)));
        let renewed = renewed.collect::<Result<HashMap<_, _>>>()?;
        *open = renewed;
        *own = Some(tls);
        Ok(())
    }

    fn connection(&self, url: &Url, tls: Option<&TlsSpec>) -> Result<Channel> {
        let wrong = |error: &dyn std::error::Error| {
            Error::new(ErrorKind::Config, format!("worker {}: {}", shown(url), cause(error)))
        };
        let mut endpoint = Channel::from_shared(shown(url))
            .map_err(|error| wrong(&error))?
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        if let Some(TlsSpec { certificate, key, client_authorities }) = tls {
            let mut config = ClientTlsConfig::new().identity(Identity::from_pem(certificate, key));
            if let Some(authorities) = client_authorities {
                config = config.ca_certificate(Certificate::from_pem(authorities));
            }
            if let Some((_, name)) = url.query_pairs().find(|(key, _)| key == NAME) {
                config = config.domain_name(name);
            }
            endpoint = endpoint.tls_config(config).map_err(|error| wrong(&error))?;
        }
        let _runtime = self.runtime.enter();
        Ok(endpoint.connect_lazy())
    }
}

/// Returns the URL of a worker with an address, whose certificate has the name of `url`.
pub(super) fn at_address(url: &Url, address: std::net::SocketAddr) -> Url {
    let mut at = url.clone();
    let name = url.host_str().unwrap_or_default().to_owned();
    if at.set_ip_host(address.ip()).is_ok() && url.scheme() == "https" {
        at.query_pairs_mut().append_pair(NAME, &name);
    }
    at
}

/// Returns the URL of a worker for messages, without the name in its certificate.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// Connections to workers, for the engine.
#[derive(Debug, Clone)]
pub(super) struct Connect(pub(super) Arc<Channels>);

#[async_trait]
impl ChannelResolver for Connect {
    async fn get_worker_client_for_url(&self, url: &Url) -> DataFusionResult<Box<dyn WorkerChannel>> {
        let channel = BoxCloneSyncChannel::new(self.0.channel(url)?);
        Ok(Box::new(Named { worker: shown(url), client: create_worker_client(channel) }))
    }
}

/// A connection whose errors name the worker.
struct Named {
    worker: String,
    client: Box<dyn WorkerChannel>,
}

#[async_trait]
impl WorkerChannel for Named {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        request: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> DataFusionResult<BoxStream<'static, DataFusionResult<WorkerToCoordinatorMsg>>> {
        let worker = self.worker.clone();
        let replies = self.client.coordinator_channel(headers, request, messages, metrics, context).await;
        let replies = replies.map_err(|error| of_worker(&self.worker, error))?;
        Ok(replies.map(move |reply| reply.map_err(|error| of_worker(&worker, error))).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> DataFusionResult<Vec<BoxStream<'static, DataFusionResult<RecordBatch>>>> {
        let partitions = self.client.execute_task(headers, request, metrics, context).await;
        let partitions = partitions.map_err(|error| of_worker(&self.worker, error))?;
        let named = partitions.into_iter().map(|rows| {
            let worker = self.worker.clone();
            rows.map(move |batch| batch.map_err(|error| of_worker(&worker, error))).boxed()
        });
        Ok(named.collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> DataFusionResult<GetWorkerInfoResponse> {
        self.client.get_worker_info(request).await.map_err(|error| of_worker(&self.worker, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_the_name_of_its_certificate_to_itself() {
        let url: Url = "https://workers.internal:50061".parse().expect("a URL");
        let at = at_address(&url, "10.0.0.7:50061".parse().expect("an address"));
        assert_eq!(shown(&at), "https://10.0.0.7:50061");
        assert_eq!(at.query(), Some("name=workers.internal"));
    }
}
