//! The server of a worker: it runs stages of spread queries over the files of its stores.
//!
//! It runs only plans that read files of its stores or rows of other workers. Clients must have a certificate of its
//! authorities; without TLS, it listens on a loopback address only.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_stream::stream;
use async_trait::async_trait;
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::plan_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::context::SessionState;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::prelude::SessionContext;
use datafusion_distributed::{
    DistributedExt, NetworkBoundaryExt, Worker, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse,
    WorkerQueryContext, WorkerSessionBuilder,
};
use futures::Stream;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::{Connected, TcpConnectInfo};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::Service;

use super::channels::{Channels, Connect};
use super::codec::OperatorCodec;
use super::errors::with_typed_errors;
use super::files::{StoresOnly, files_at, id_at, is_of_store};
use super::planner::read_options;
use super::version;
use super::workers::STORES;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::functions;
use crate::location::Location;
use crate::memory::STACK;
use crate::serving::{Acceptor, GRPC, Operated, Serving, TlsSpec, bind, encrypted, operate};
use crate::session::bounded_session;

/// Interval and timeout of HTTP/2 keep-alive pings.
const PING: Duration = Duration::from_secs(10);
/// Maximum number of TLS handshakes at the same time: connections of strangers that send nothing must not keep servers out. As many as
/// a server accepts connections.
const HANDSHAKES: usize = 800;
/// Time in which servers notice that a worker shuts down, before it takes no further work.
const NOTICE: Duration = Duration::from_secs(4);

/// Configuration of a [`WorkerServer`].
#[derive(Debug)]
pub struct WorkerSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Certificate of the worker, and the authorities of servers and other workers; `None` disables TLS.
    pub tls: Option<TlsSpec>,
    /// Set to accept plans from any client on an address that is not a loopback address.
    pub insecure: bool,
    /// Address of `/healthz` and `/metrics`; `None` disables them.
    pub operations: Option<SocketAddr>,
    /// Locations of the stores whose files may be read.
    pub stores: Vec<Location>,
    /// Memory of all queries, in MiB.
    pub memory_mib: usize,
    /// Time for which running queries may continue after a shutdown request.
    pub drain: Duration,
}

/// Threads that read files, with stacks as large as those of the others.
const BLOCKING: usize = 8;

/// Threads for computations.
#[derive(Debug)]
struct Computation(Option<Runtime>);

impl Computation {
    fn start() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.enable_all().thread_name("computation").thread_stack_size(STACK).max_blocking_threads(BLOCKING);
        builder.build().map(Some).map(Self)
    }
}

impl Drop for Computation {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs calls of the engine on separate threads: a long computation delays neither pings nor health checks.
#[derive(Debug, Clone)]
struct Apart<S> {
    calls: S,
    runtime: Handle,
}

impl<S: NamedService> NamedService for Apart<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Apart<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, std::result::Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        self.calls.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let check = request.uri().path().ends_with("/GetWorkerInfo");
        let call = self.calls.call(request);
        if check {
            return Box::pin(call);
        }
        let running = AbortOnDropHandle::new(self.runtime.spawn(call));
        Box::pin(async move {
            match running.await {
                Ok(response) => response,
                Err(error) => Ok(Status::internal(format!("the call failed: {error}")).into_http()),
            }
        })
    }
}

/// A running worker. [`WorkerServer::shut_down`] stops it gracefully; dropping it stops it at once.
#[derive(Debug)]
pub struct WorkerServer {
    address: SocketAddr,
    operations: Option<SocketAddr>,
    renewal: Renewal,
    standing: Arc<Standing>,
    health: HealthReporter,
    closing: DropGuard,
    serving: Serving,
    drain: Duration,
    _operating: Option<AbortOnDropHandle<()>>,
    _computation: Computation,
}

/// Handle that replaces the certificates of a running worker.
#[derive(Debug, Clone)]
pub struct Renewal {
    listener: Option<Acceptor>,
    channels: Arc<Channels>,
}

/// State of a worker for health checks and metrics.
#[derive(Debug)]
struct Standing {
    ending: AtomicBool,
    traffic: Arc<Traffic>,
    runtime: Arc<RuntimeEnv>,
}

/// Bytes on the wire, connections and stages since the start.
#[derive(Debug, Default)]
struct Traffic {
    received: AtomicU64,
    sent: AtomicU64,
    connections: AtomicU64,
    stages: AtomicU64,
}

impl Operated for Standing {
    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    fn metrics_text(&self) -> std::result::Result<String, std::fmt::Error> {
        use prometheus_client::encoding::text::encode;
        use prometheus_client::metrics::counter::ConstCounter;
        use prometheus_client::metrics::gauge::ConstGauge;
        let mut registry = prometheus_client::registry::Registry::with_prefix("savedsearch_worker");
        let Traffic { received, sent, connections, stages } = self.traffic.as_ref();
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let memory = i64::try_from(self.runtime.memory_pool.reserved()).unwrap_or(i64::MAX);
        registry.register("received_bytes", "Bytes received from servers and workers", ConstCounter::new(of(received)));
        registry.register("sent_bytes", "Bytes sent to servers and workers", ConstCounter::new(of(sent)));
        registry.register("stages", "Parts of queries received", ConstCounter::new(of(stages)));
        let connections = i64::try_from(of(connections)).unwrap_or(i64::MAX);
        registry.register("connections", "Open connections", ConstGauge::new(connections));
        registry.register("memory_bytes", "Memory of running queries", ConstGauge::new(memory));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl WorkerServer {
    /// Starts a worker.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable certificate or combination of settings; [`ErrorKind::Unavailable`] for an address in
    /// use; [`ErrorKind::Store`] for a folder that cannot be read.
    pub async fn start(spec: WorkerSpec) -> Result<Self> {
        spec.check()?;
        let WorkerSpec { listen, tls, operations, stores, memory_mib, drain, .. } = spec;
        let bad = |what: String| Error::new(ErrorKind::Config, what);
        let mut files = BTreeMap::new();
        for location in &stores {
            files.insert(id_at(location)?, files_at(location)?);
        }
        let ids: Vec<&str> = files.keys().map(String::as_str).collect();
        let version = format!("{}{STORES}{}", version(), ids.join(","));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(memory_mib.saturating_mul(1 << 20))))
            .with_object_store_registry(Arc::new(StoresOnly(files)))
            .build_arc()
            .map_err(|error| bad(format!("cannot start the query engine: {error}")))?;
        let mut server = Server::builder()
            .http2_keepalive_interval(Some(PING))
            .http2_keepalive_timeout(Some(PING))
            .tcp_nodelay(true);
        let encryption = tls.as_ref().map(|tls| Acceptor::try_new(tls, GRPC)).transpose()?;
        let traffic = Arc::new(Traffic::default());
        let channels = Arc::new(Channels::new(tls));
        let renewal = Renewal { listener: encryption.clone(), channels: Arc::clone(&channels) };
        let sessions = Sessions { channels, traffic: Arc::clone(&traffic) };
        let worker =
            Worker::from_session_builder(sessions).with_runtime_env(Arc::clone(&runtime)).with_version(version);
        let (listener, address) = bind(listen).await?;
        let standing = Arc::new(Standing { ending: AtomicBool::new(false), traffic: Arc::clone(&traffic), runtime });
        let (operations, operating) = match operations {
            Some(asked) => {
                let (address, task) = operate(asked, Arc::clone(&standing)).await?;
                (Some(address), Some(task))
            }
            None => (None, None),
        };
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_service_status("", ServingStatus::Serving).await;
        let closing = CancellationToken::new();
        let computation = Computation::start();
        let computation = computation.map_err(|error| bad(format!("cannot start the query engine: {error}")))?;
        let runtime = computation.0.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone());
        let calls = Apart { calls: worker.into_worker_server(), runtime };
        let router = server.add_service(health_service).add_service(calls);
        let incoming = accept(listener, traffic, closing.clone());
        let closed = closing.clone().cancelled_owned();
        let serving = match encryption {
            None => Serving::start(router.serve_with_incoming_shutdown(incoming, closed)),
            Some(tls) => {
                Serving::start(router.serve_with_incoming_shutdown(encrypted(incoming, tls, HANDSHAKES), closed))
            }
        };
        let closing = closing.drop_guard();
        Ok(Self {
            address,
            operations,
            renewal,
            standing,
            health,
            closing,
            serving,
            drain,
            _operating: operating,
            _computation: computation,
        })
    }

    /// Returns the address that the worker listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of `/healthz` and `/metrics`.
    pub fn operations(&self) -> Option<SocketAddr> {
        self.operations
    }

    /// Handle that replaces the certificates without closing the worker.
    pub fn renewal(&self) -> Renewal {
        self.renewal.clone()
    }

    /// Waits until the worker stops because of a failure, and returns the error. Does not return otherwise, or twice.
    pub async fn failed(&mut self) -> Error {
        failure(self.serving.failed().await)
    }

    /// Shuts down: asks servers to send no further queries, and lets running queries continue for up to
    /// [`WorkerSpec::drain`].
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the worker had already failed.
    pub async fn shut_down(self) -> Result<()> {
        let Self { standing, health, closing, mut serving, drain, _computation, .. } = self;
        if serving.has_failed() {
            return Err(failure("it had stopped before".to_owned()));
        }
        standing.ending.store(true, Ordering::Relaxed);
        health.set_service_status("", ServingStatus::NotServing).await;
        if standing.traffic.connections.load(Ordering::Relaxed) > 0 {
            sleep(NOTICE).await;
        }
        drop(closing);
        match serving.ended(drain).await {
            Some(result) => result.map_err(failure),
            None => {
                serving.abort();
                Ok(())
            }
        }
    }
}

impl Renewal {
    /// Replaces the certificates, also for connections to other workers. Open connections keep those that they began with.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid certificate or key, or if TLS would be switched on or off, which requires a restart.
    pub fn run(&self, tls: Option<TlsSpec>) -> Result<()> {
        match (&self.listener, tls) {
            (None, None) => Ok(()),
            (Some(listener), Some(tls)) => {
                check_authorities(&tls)?;
                let replace = listener.prepared(&tls)?;
                self.channels.replace(tls)?;
                replace();
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::Config, "TLS can be switched on or off only by a restart")),
        }
    }
}

/// Rejects certificates without authorities for those of clients.
fn check_authorities(tls: &TlsSpec) -> Result<()> {
    match tls.client_authorities {
        None => Err(Error::new(ErrorKind::Config, "anybody could send plans to the worker").advice(
            Phrase::from("set ")
                + Tool::ClientAuthorities
                + " to the authority of the servers' and workers' certificates",
        )),
        Some(_) => Ok(()),
    }
}

impl WorkerSpec {
    /// Rejects configurations that are open to the network.
    fn check(&self) -> Result<()> {
        let refuse = |what: &str, advice: Phrase| Err(Error::new(ErrorKind::Config, what).advice(advice));
        match &self.tls {
            _ if self.stores.is_empty() => refuse(
                "a worker needs a store",
                Phrase::from("name the folder that the server uses ") + Tool::WorkerStores,
            ),
            Some(tls) => check_authorities(tls),
            None if !self.listen.ip().is_loopback() && !self.insecure => refuse(
                "without certificates the worker may only listen on a loopback address",
                Phrase::from("set ") + Tool::WorkerTls + ", or " + Tool::ServerInsecure + " in a closed network",
            ),
            _ => Ok(()),
        }
    }
}

fn failure(what: String) -> Error {
    Error::new(ErrorKind::Worker, format!("the worker failed: {what}"))
}

/// Creates the session of a part of a query.
struct Sessions {
    channels: Arc<Channels>,
    traffic: Arc<Traffic>,
}

#[async_trait]
impl WorkerSessionBuilder for Sessions {
    async fn build_session_state(&self, asked: WorkerQueryContext) -> DataFusionResult<SessionState> {
        self.traffic.stages.fetch_add(1, Ordering::Relaxed);
        let WorkerQueryContext { mut builder, headers } = asked;
        let options = read_options(&headers)?;
        if let Some(config) = builder.config().as_mut() {
            for (key, value) in options {
                config.options_mut().set(&key, &value)?;
            }
        }
        // Plans name them.
        builder.scalar_functions().get_or_insert_default().extend(functions::all());
        builder.aggregate_functions().get_or_insert_default().extend(functions::aggregates());
        let state = builder
            .with_distributed_channel_resolver(Connect(Arc::clone(&self.channels)))
            .with_distributed_user_codec(OperatorCodec)
            .with_distributed_worker_plan_rewrite_handler(checked)
            .build();
        // The same limits on the memory of expressions as on the server.
        Ok(bounded_session(&SessionContext::new_with_state(state))?.state())
    }
}

/// Refuses plans that read anything but files of stores and rows of other workers. The errors of all others keep their type.
fn checked(event: WorkerPlanRewriteEvent<'_>) -> DataFusionResult<WorkerPlanRewriteEventResponse> {
    event.plan.apply(|node| {
        let writes = node.is::<DataSinkExec>();
        let refused = writes || (node.children().is_empty() && !is_harmless(node) && !is_readable(node));
        match refused {
            true => plan_err!("a worker does not run {}", node.name()),
            false => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    Ok(WorkerPlanRewriteEventResponse::new(with_typed_errors(event.plan)))
}

/// True for leaves that have no rows, or those of other workers.
fn is_harmless(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<EmptyExec>() || node.is::<PlaceholderRowExec>() || node.is_network_boundary()
}

/// True for sources that a worker may read.
fn is_readable(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<DataSourceExec>().is_some_and(|source| {
        let source = source.data_source();
        source.downcast_ref::<MemorySourceConfig>().is_some()
            || source.downcast_ref::<FileScanConfig>().is_some_and(|files| is_of_store(&files.object_store_url))
    })
}

/// Accepts connections until the token is cancelled.
fn accept(
    listener: TcpListener,
    traffic: Arc<Traffic>,
    closing: CancellationToken,
) -> impl Stream<Item = io::Result<Counted>> {
    stream! {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = closing.cancelled() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    yield Ok(Counted::new(stream, &traffic));
                }
                // Usually out of file descriptors: wait until connections close.
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

/// A connection whose bytes are counted.
#[derive(Debug)]
struct Counted {
    stream: TcpStream,
    traffic: Arc<Traffic>,
}

impl Counted {
    fn new(stream: TcpStream, traffic: &Arc<Traffic>) -> Self {
        traffic.connections.fetch_add(1, Ordering::Relaxed);
        Self { stream, traffic: Arc::clone(traffic) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.traffic.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connected for Counted {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.traffic.received.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.traffic.sent.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.traffic.sent.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::distributed::spread_exec::FetchedExec;

    #[test]
    fn a_plan_reads_files_of_stores_only() {
        let schema = Arc::new(Schema::empty());
        let scan = |url: &str| -> Arc<dyn ExecutionPlan> {
            let url = ObjectStoreUrl::parse(url).expect("a URL");
            let source = Arc::new(ParquetSource::new(Arc::clone(&schema)));
            DataSourceExec::from_data_source(FileScanConfigBuilder::new(url, source).build())
        };
        let config = SessionConfig::new();
        let check = |plan| checked(WorkerPlanRewriteEvent { plan, session_config: &config }).map(drop);
        check(scan("savedsearch-store://a")).expect("a store");
        check(Arc::new(EmptyExec::new(Arc::clone(&schema)))).expect("nothing");
        for url in ["file:///", "s3://savedsearch-store"] {
            check(scan(url)).expect_err(url);
        }
        check(Arc::new(FetchedExec::new("overview", Arc::clone(&schema)))).expect_err("an operator of the server");
    }
}
