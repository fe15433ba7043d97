//! Command `worker`: runs parts of queries for a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use datafusion_saved_search::distributed::{TlsSpec, WorkerServer, WorkerSpec};

use crate::access::{certificates, check_distinct, warn_of_expiry, warn_of_exposed};
use crate::connect::store_locations;
use crate::serve::{LogArguments, log};
use crate::telemetry::Telemetry;
use crate::{Arguments, Ending, Exit, memory};

/// Run parts of a server's queries on another machine, over the files of the server's store
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A worker reads the folder of the store, or its bucket, and nothing else. It has no API key, and
sends no request to the service.

Examples:
  savedsearch --store /srv/mentions worker
  savedsearch --store /srv/mentions worker --listen 0.0.0.0:50061 \\
      --tls-cert worker.pem --tls-key worker.key --client-ca ca.pem
  savedsearch --store /srv/mentions serve --worker https://worker1:50061 \\
      --worker-cert server.pem --worker-key server.key --worker-ca ca.pem"
)]
pub(crate) struct WorkerArguments {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", env = "SAVEDSEARCH_WORKER_LISTEN", default_value = "127.0.0.1:50061")]
    listen: SocketAddr,
    /// Certificate chain of the worker (PEM), for servers and other workers
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_TLS_CERT", requires_all = ["tls_key", "client_ca"])]
    tls_cert: Option<PathBuf>,
    /// Private key of the worker (PEM)
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_TLS_KEY", requires_all = ["tls_cert", "client_ca"])]
    tls_key: Option<PathBuf>,
    /// Certificate authorities of the servers and of the other workers (PEM)
    #[arg(long, value_name = "FILE", env = "SAVEDSEARCH_CLIENT_CA", requires_all = ["tls_cert", "tls_key"])]
    client_ca: Option<PathBuf>,
    /// Address of /healthz and /metrics
    #[arg(long, value_name = "ADDRESS", env = "SAVEDSEARCH_OPERATIONS")]
    operations: Option<SocketAddr>,
    /// Memory of all queries, in MiB
    #[arg(long, value_name = "N", default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    memory_mib: u32,
    /// Seconds for which running queries may continue after a shutdown request
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(..=86_400))]
    drain_seconds: u32,
    #[command(flatten)]
    log: LogArguments,
}

/// Runs a worker until a signal shuts it down.
pub(crate) async fn run(arguments: &Arguments, worker: &WorkerArguments) -> Result<(), Exit> {
    memory::count();
    worker.log.begin();
    let telemetry = Telemetry::start(Some(log(&worker.log, worker.log.filter())?))?;
    let ran = Box::pin(listen(arguments, worker)).await;
    telemetry.end().await;
    ran
}

impl WorkerArguments {
    /// Reads the certificates.
    fn tls(&self) -> Result<Option<TlsSpec>, Exit> {
        match (&self.tls_cert, &self.tls_key, &self.client_ca) {
            (Some(certificate), Some(key), authorities) => {
                certificates(certificate, key, authorities.as_ref()).map(Some)
            }
            _ => Ok(None),
        }
    }
}

async fn listen(arguments: &Arguments, worker: &WorkerArguments) -> Result<(), Exit> {
    check_distinct(&[("--listen", Some(worker.listen)), ("--operations", worker.operations)])?;
    let spec = WorkerSpec {
        listen: worker.listen,
        tls: worker.tls()?,
        insecure: arguments.insecure,
        operations: worker.operations,
        stores: store_locations(arguments)?,
        memory_mib: worker.memory_mib as usize,
        drain: Duration::from_secs(worker.drain_seconds.into()),
    };
    warn_of_exposed(worker.tls_key.as_slice());
    warn_of_expiry(spec.tls.as_ref());
    // Before the line that announces the worker.
    let mut ending = Ending::of_server()?;
    let mut server = WorkerServer::start(spec).await?;
    let (address, operations) = (server.address(), server.operations());
    let renewal = server.renewal();
    let renew = || {
        warn_of_exposed(worker.tls_key.as_slice());
        let tls = worker.tls()?;
        warn_of_expiry(tls.as_ref());
        let has_any = tls.is_some();
        renewal.run(tls).map(|()| has_any).map_err(Exit::from)
    };
    let reload = async || match renew() {
        Ok(true) => tracing::info!("reloaded certificates"),
        Ok(false) => tracing::info!("nothing to reload: the worker has no certificates"),
        Err(Exit(_, reason)) => {
            let reason = reason.unwrap_or_default();
            tracing::error!(reason, "reload failed: the worker keeps its certificates");
        }
    };
    let reason = ending.end_or_failure(address, operations, server.failed(), std::future::pending(), reload).await?;
    ending.drained(reason, server.shut_down(), || {}).await
}
