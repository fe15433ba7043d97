//! Starts and ends the service, and keeps what requests share: counters, limits and recent selections.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::dataset::{Corpus, SavedSearch};
use super::overview::overview;
use super::query::Query;
use super::routes::router;
use crate::clock::Clock;

/// Selections kept, so that the pages of one scan are selected and ordered once.
const SELECTIONS: usize = 32;

/// How the service behaves.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The service's clock: ends relative windows.
    pub clock: Clock,
    /// Time before every answer.
    pub delay: Duration,
    /// Requests allowed to each key.
    pub rate_limit: Option<RateLimit>,
    /// The order of equal keys.
    pub ties: Ties,
}

/// So many requests in any span of so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests.
    pub requests: u32,
    /// Length of the span.
    pub window: Duration,
}

/// The order of mentions with equal keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ties {
    /// The same in every answer.
    #[default]
    Stable,
    /// Another in every answer, as between replicas.
    Unstable,
}

/// A request as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `list` or `search`.
    pub path: String,
    /// Query string, still encoded.
    pub query: String,
}

/// A service that accepts requests until it is dropped or shut down.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    service: Arc<Service>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL to give to a client.
    pub fn base_url(&self) -> String {
        format!("http://{}/v4", self.address)
    }

    /// The corpus that it serves.
    pub fn corpus(&self) -> &Corpus {
        &self.service.corpus
    }

    /// Requests received so far.
    pub fn requests(&self) -> u64 {
        self.service.requests.load(Ordering::Relaxed)
    }

    /// The requests received since the last call, oldest first.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.service.seen.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }

    /// Stops accepting, lets requests under way end, and waits for that.
    ///
    /// # Errors
    /// The error that the server ended with.
    pub async fn shut_down(mut self) -> std::io::Result<()> {
        if let Some(stop) = self.stop.take() {
            // It fails only where the server has ended already.
            let _ = stop.send(());
        }
        (&mut self.task).await.map_err(std::io::Error::other)?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a service over `corpus`; port 0 picks a free one.
///
/// # Errors
/// Where the address cannot be listened on.
pub async fn start(listen: SocketAddr, corpus: Arc<Corpus>, settings: Settings) -> std::io::Result<Running> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let service = Arc::new(Service {
        corpus,
        settings,
        requests: AtomicU64::new(0),
        seen: Mutex::default(),
        spent: Mutex::default(),
        selections: Mutex::default(),
    });
    let app = router(Arc::clone(&service));
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async {
            // A dropped sender means that the service is dropped, which ends it too.
            let _ = stopped.await;
        };
        axum::serve(listener, app).with_graceful_shutdown(stopped).await
    });
    Ok(Running { address, service, stop: Some(stop), task })
}

/// What requests share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) corpus: Arc<Corpus>,
    pub(super) settings: Settings,
    pub(super) requests: AtomicU64,
    seen: Mutex<VecDeque<Seen>>,
    spent: Mutex<HashMap<Vec<u8>, VecDeque<Instant>>>,
    selections: Mutex<Selections>,
}

/// Selections by their query, without its page, and the order of ties.
type Selections = HashMap<(Query, Option<u64>), Arc<Selection>>;

/// The mentions of a query, in order, and their overview.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) order: Vec<u32>,
    pub(super) overview: String,
}

/// How a key stands with its limit after a request.
pub(super) struct Standing {
    pub(super) over: bool,
    pub(super) limit: u32,
    pub(super) remaining: u32,
    /// Seconds since 1970.
    pub(super) reset: u64,
    /// Seconds.
    pub(super) wait: u64,
}

impl Service {
    pub(super) fn request_id(&self) -> String {
        format!("req-{}", self.requests.load(Ordering::Relaxed))
    }

    /// Remembers a request; the last 10,000 are kept.
    pub(super) fn note(&self, seen: Seen) {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == 10_000 {
            all.pop_front();
        }
        all.push_back(seen);
    }

    /// Counts a request against the limit of its key; `None` where there is no limit. Refused requests do not count.
    pub(super) fn spend(&self, key: &[u8]) -> Option<Standing> {
        let RateLimit { requests, window } = self.settings.rate_limit?;
        let now = Instant::now();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let starts = spent.entry(key.to_vec()).or_default();
        while starts.front().is_some_and(|start| *start + window <= now) {
            starts.pop_front();
        }
        let over = starts.len() >= requests as usize;
        if !over {
            starts.push_back(now);
        }
        let wait = starts.front().map_or(Duration::ZERO, |start| (*start + window).saturating_duration_since(now));
        let wait = wait.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX);
        let epoch = u64::try_from(self.settings.clock.now().timestamp()).unwrap_or_default();
        let remaining = requests - u32::try_from(starts.len()).unwrap_or(requests).min(requests);
        Some(Standing { over, limit: requests, remaining, reset: epoch.saturating_add(wait), wait })
    }

    /// The mentions of a query; pages of one query share the work.
    pub(super) fn selection(&self, query: &Query, search: &SavedSearch, shuffle: Option<u64>) -> Arc<Selection> {
        let key = (Query { data_from: 0, data_size: 0, ..query.clone() }, shuffle);
        if let Some(known) = self.selections.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Arc::clone(known);
        }
        let mut order = query.matching(search);
        let overview = overview(query, search, &order);
        query.sort(search, &mut order, shuffle);
        let selection = Arc::new(Selection { order, overview });
        let mut selections = self.selections.lock().unwrap_or_else(PoisonError::into_inner);
        if selections.len() >= SELECTIONS {
            selections.clear();
        }
        selections.insert(key, Arc::clone(&selection));
        selection
    }
}
