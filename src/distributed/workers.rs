//! The workers of a server: their addresses, and which of them can be used.
//!
//! ```text
//! URL ─ DNS ─▶ addresses ─ every second: version, stores, health ─▶ those that new queries use
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::prelude::SessionContext;
use datafusion_distributed::{ChannelResolver, GetWorkerInfoRequest, WorkerResolver};
use futures::future::join_all;
use savedsearch_clock::Clock;
use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use url::Url;

use super::channels::{Channels, Connect, at_address, shown};
use super::errors::of_status;
use super::planner::spread_session;
use super::version;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool, describe};
use crate::location::is_loopback_host;
use crate::serving::TlsSpec;

/// Time between two checks of a worker.
const EVERY: Duration = Duration::from_secs(1);
/// Time limit of a check.
const CHECK: Duration = Duration::from_secs(2);
/// Separator between the version of a worker and the ids of its stores, if it reports them.
pub(super) const STORES: &str = "; stores=";

/// Configuration of [`Workers`].
#[derive(Debug)]
pub struct WorkersSpec {
    /// URLs of workers, `http://HOST:PORT` or `https://HOST:PORT`. A host name with several addresses is a worker at each.
    pub urls: Vec<String>,
    /// The server's own certificate for workers, and the authorities of the workers' certificates; needed for `https`.
    pub tls: Option<TlsSpec>,
    /// Set to allow `http` beyond this machine.
    pub insecure: bool,
    /// Size of stored files in bytes that one partition reads. If a query fits into the server's own partitions, it runs on
    /// the server.
    pub partition_bytes: usize,
}

impl WorkersSpec {
    /// Size of stored files in bytes that one partition reads by default.
    pub const PARTITION_BYTES: usize = 16 << 20;

    /// Checks the URLs and certificates, without contacting a worker.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], as from [`Workers::start`].
    pub fn check(&self) -> Result<()> {
        let channels = Channels::new(self.tls.clone());
        self.urls()?.iter().try_for_each(|url| channels.channel(url).map(drop))
    }

    fn urls(&self) -> Result<Vec<Url>> {
        self.urls.iter().map(|url| worker_url(url, self.tls.is_some(), self.insecure)).collect()
    }
}

/// State of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerState {
    /// New queries use it.
    Healthy,
    /// It is shutting down: running queries may finish, new queries do not use it.
    Draining,
    /// It has another version than the server.
    OtherVersion,
    /// It does not respond.
    Unreachable,
}

impl WorkerState {
    /// The state as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Draining => "draining",
            Self::OtherVersion => "other version",
            Self::Unreachable => "unreachable",
        }
    }
}

/// Status of a worker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its URL, with an address instead of a host name.
    pub url: String,
    /// Its state.
    pub state: WorkerState,
    /// Its version; `None` if it never responded.
    pub version: Option<String>,
    /// Last response; `None` if it never responded.
    pub seen: Option<DateTime<Utc>>,
    /// Reason of the state, if it is not healthy.
    pub reason: Option<String>,
    /// Ids of its stores.
    stores: BTreeSet<String>,
}

/// The workers of a server.
#[derive(Debug)]
pub struct Workers {
    known: Arc<Known>,
    channels: Arc<Channels>,
    partition_bytes: usize,
    _checking: AbortOnDropHandle<()>,
}

/// The addresses of workers with their status.
#[derive(Debug, Default)]
struct Known(Mutex<BTreeMap<Url, WorkerStatus>>);

impl Workers {
    /// Checks all workers once, and then every second. Workers may be unreachable, even at the start.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable URL or certificate, and for `http` beyond this machine without permission.
    pub async fn start(spec: WorkersSpec) -> Result<Arc<Self>> {
        let urls = spec.urls()?;
        let WorkersSpec { tls, partition_bytes, .. } = spec;
        let channels = Arc::new(Channels::new(tls));
        // Reports unusable certificates now.
        urls.iter().try_for_each(|url| channels.channel(url).map(drop))?;
        let known = Arc::new(Known::default());
        check_all(&urls, &known, &channels).await;
        let checking = tokio::spawn({
            let (known, channels) = (Arc::clone(&known), Arc::clone(&channels));
            async move {
                loop {
                    sleep(EVERY).await;
                    check_all(&urls, &known, &channels).await;
                }
            }
        });
        let checking = AbortOnDropHandle::new(checking);
        Ok(Arc::new(Self { known, channels, partition_bytes: partition_bytes.max(1), _checking: checking }))
    }

    /// Replaces the certificates of the server for its workers. Queries that run keep their connections.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable certificate, or if the workers are used without certificates.
    pub fn renew_certificates(&self, tls: TlsSpec) -> Result<()> {
        self.channels.replace(tls)
    }

    /// Returns the status of each worker, by URL.
    pub fn status(&self) -> Vec<WorkerStatus> {
        self.known.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns a session like this one, whose queries of stores are spread over the workers.
    pub fn session(self: &Arc<Self>, context: &SessionContext) -> SessionContext {
        spread_session(context, self)
    }

    /// See [`WorkersSpec::partition_bytes`].
    pub(super) fn partition_bytes(&self) -> usize {
        self.partition_bytes
    }

    /// Connections to the workers, for the engine.
    pub(super) fn connections(&self) -> Connect {
        Connect(Arc::clone(&self.channels))
    }

    /// URLs of the healthy workers that have all of these stores.
    pub(super) fn with_stores(&self, stores: &BTreeSet<String>) -> Vec<Url> {
        let known = self.known.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usable =
            known.iter().filter(|(_, status)| status.state == WorkerState::Healthy && stores.is_subset(&status.stores));
        usable.map(|(url, _)| url.clone()).collect()
    }
}

/// The workers of a query.
#[derive(Debug, Clone)]
pub(super) struct Chosen(pub(super) Vec<Url>);

impl WorkerResolver for Chosen {
    fn get_urls(&self) -> DataFusionResult<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// Reads the URL of a worker.
fn worker_url(text: &str, secure: bool, insecure: bool) -> Result<Url> {
    let refuse = |what: &str, advice: Phrase| {
        Err(Error::new(ErrorKind::Config, format!("worker `{text}`: {what}")).advice(advice))
    };
    let form = || Phrase::from("write http://HOST:PORT, or https://HOST:PORT with certificates");
    let Ok(url) = Url::parse(text) else { return refuse("invalid URL", form()) };
    let Some(host) = url.host_str() else { return refuse("no host", form()) };
    let local = is_loopback_host(host);
    match url.scheme() {
        _ if !url.username().is_empty()
            || url.password().is_some()
            || !matches!(url.path(), "" | "/")
            || url.query().is_some()
            || url.fragment().is_some() =>
        {
            refuse("only a host and a port are expected", form())
        }
        "https" if secure => Ok(url),
        "https" => refuse("https needs certificates", Phrase::from("set ") + Tool::WorkersTls),
        "http" if secure => refuse("http would not use the certificates", "write https://…".into()),
        "http" if local || insecure => Ok(url),
        "http" => refuse(
            "mentions would be sent over the network in clear text, and anybody could send plans to the worker",
            Phrase::from("use https with ")
                + Tool::WorkersTls
                + ", or "
                + Tool::ServerInsecure
                + " in a closed network",
        ),
        _ => refuse("neither http nor https", form()),
    }
}

/// Checks the workers at all addresses of these URLs.
async fn check_all(urls: &[Url], known: &Known, channels: &Arc<Channels>) {
    let mut found = BTreeMap::new();
    for (url, addresses) in join_all(urls.iter().map(addresses)).await {
        match addresses {
            Ok(addresses) => found.extend(addresses.into_iter().map(|at| (at, None))),
            Err(reason) => drop(found.insert(url.clone(), Some(reason))),
        }
    }
    let before = known.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let checks = found.into_iter().map(|(url, unknown)| async {
        let status = match unknown {
            Some(reason) => Err((WorkerState::Unreachable, reason)),
            None => check(&url, channels).await,
        };
        let last = before.get(&url);
        let status = match status {
            Ok((version, stores)) => WorkerStatus {
                url: shown(&url),
                state: WorkerState::Healthy,
                version: Some(version),
                seen: Some(Clock::system().now()),
                reason: None,
                stores,
            },
            Err((state, reason)) => WorkerStatus {
                url: shown(&url),
                state,
                version: last.and_then(|last| last.version.clone()),
                seen: last.and_then(|last| last.seen),
                reason: Some(reason),
                stores: BTreeSet::new(),
            },
        };
        if last.map(|last| last.state) != Some(status.state) {
            let (state, reason) = (status.state.name(), status.reason.as_deref().unwrap_or_default());
            match status.state {
                WorkerState::Healthy | WorkerState::Draining => {
                    tracing::info!(worker = %status.url, state, reason, "worker");
                }
                WorkerState::OtherVersion | WorkerState::Unreachable => {
                    tracing::warn!(worker = %status.url, state, reason, "worker");
                }
            }
        }
        (url, status)
    });
    let checked = join_all(checks).await.into_iter().collect();
    *known.0.lock().unwrap_or_else(PoisonError::into_inner) = checked;
}

/// Returns the workers at the addresses of a URL; a reason if it has none.
async fn addresses(url: &Url) -> (&Url, std::result::Result<Vec<Url>, String>) {
    let port = url.port_or_known_default().unwrap_or(443);
    let Some(url::Host::Domain(name)) = url.host() else { return (url, Ok(vec![url.clone()])) };
    let found = match timeout(CHECK, lookup_host((name, port))).await {
        Ok(Ok(addresses)) => addresses.map(|address| at_address(url, address)).collect::<BTreeSet<_>>(),
        Ok(Err(error)) => return (url, Err(format!("{name} cannot be resolved: {error}"))),
        Err(_) => return (url, Err(format!("{name} cannot be resolved in time"))),
    };
    (url, Ok(found.into_iter().collect()))
}

/// Checks a worker. Returns its version, and the ids of its stores.
async fn check(
    url: &Url,
    channels: &Arc<Channels>,
) -> std::result::Result<(String, BTreeSet<String>), (WorkerState, String)> {
    let unreachable = |reason: String| (WorkerState::Unreachable, reason);
    let answers = async {
        let channel = channels.channel(url).map_err(|error| unreachable(error.to_string()))?;
        let mut worker = Connect(Arc::clone(channels)).get_worker_client_for_url(url).await;
        let worker = worker.as_mut().map_err(|error| unreachable(reason(error)))?;
        let info = worker.get_worker_info(GetWorkerInfoRequest {}).await;
        let info = info.map_err(|error| unreachable(reason(&error)))?;
        let health = HealthClient::new(channel).check(HealthCheckRequest::default()).await;
        let health = health.map_err(|status| unreachable(of_status(&status)))?.into_inner();
        Ok((info.version, health.status() == ServingStatus::Serving))
    };
    let (reported, serving) = match timeout(CHECK, answers).await {
        Ok(answers) => answers?,
        Err(_) => return Err(unreachable(format!("no response within {} seconds", CHECK.as_secs()))),
    };
    let (theirs, stores) = reported.split_once(STORES).unwrap_or((&reported, ""));
    if theirs != version() {
        return Err((WorkerState::OtherVersion, format!("worker version {theirs}, server version {}", version())));
    }
    if !serving {
        return Err((WorkerState::Draining, "shutting down".to_owned()));
    }
    Ok((theirs.to_owned(), stores.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()))
}

/// Returns the message of an error, without what to do about a query.
fn reason(error: &DataFusionError) -> String {
    Error::find(error).map_or_else(|| describe(error), |error| error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn urls_of_workers_are_local_or_secure() {
        for (url, secure, insecure) in [
            ("http://127.0.0.1:1", false, false),
            ("http://localhost:1", false, false),
            ("https://workers.internal:1", true, false),
            ("http://workers.internal:1", false, true),
        ] {
            worker_url(url, secure, insecure).expect(url);
        }
        let cases = [
            ("workers", false, false, "invalid URL"),
            ("http://workers.internal:1", false, false, "clear text"),
            ("https://workers.internal:1", false, true, "needs certificates"),
            ("http://127.0.0.1:1", true, false, "would not use the certificates"),
            ("ftp://127.0.0.1:1", false, false, "neither http nor https"),
            ("http://user@127.0.0.1:1", false, false, "only a host and a port"),
            ("http://127.0.0.1:1/v4", false, false, "only a host and a port"),
            ("http://127.0.0.1:1#x", false, false, "only a host and a port"),
        ];
        each(cases, |(url, secure, insecure, why)| {
            let error = worker_url(url, secure, insecure).expect_err(url).to_string();
            assert!(error.contains(why), "{error}");
        });
    }
}
