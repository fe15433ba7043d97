//! Starts and stops the service, and holds the state that requests share: counters, rate limits, mutations and recent
//! selections.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response};
use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;
use futures::stream::BoxStream;
use savedsearch_clock::Clock;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::ServiceExt;

use super::dataset::{Corpus, Mention, SavedSearch};
use super::dialect::Preset;
use super::fault_injection::{Fault, Kind};
use super::mutation::Moving;
use super::overview::overview;
use super::query::Query;
use super::render::Refusal;
use super::routes::router;

/// Maximum of cached selections, so that the pages of one scan are selected and sorted once.
const SELECTIONS: usize = 32;

/// The behaviour of the service.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The service's clock; relative windows end at its time.
    pub clock: Clock,
    /// Delay before every response.
    pub delay: Duration,
    /// Rate limit of each key.
    pub rate_limit: Option<RateLimit>,
    /// Injected faults.
    pub faults: Vec<Fault>,
    /// Seed of random faults: equal seeds give equal faults.
    pub seed: u64,
    /// Overrides the dialect's maximum page size.
    pub largest_page: Option<u64>,
    /// The dialect of the service.
    pub preset: Preset,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            delay: Duration::ZERO,
            rate_limit: None,
            faults: Vec::new(),
            seed: 0,
            largest_page: None,
            preset: Preset::V4,
        }
    }
}

/// A rate limit: at most `requests` in any span of length `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Maximum of requests.
    pub requests: u32,
    /// Length of the span.
    pub window: Duration,
}

/// A request as received by the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `list` or `search`.
    pub path: String,
    /// Query string, still encoded.
    pub query: String,
}

/// A service inside the process, called without a network. [`start`] serves one on an address.
#[derive(Debug, Clone)]
pub struct Simulator {
    service: Arc<Service>,
    router: Router,
}

impl Simulator {
    /// Creates a service over `corpus`.
    pub fn new(corpus: Arc<Corpus>, settings: Settings) -> Self {
        let service = Arc::new(Service {
            corpus,
            settings,
            requests: AtomicU64::new(0),
            seen: Mutex::default(),
            spent: Mutex::default(),
            selections: Mutex::default(),
            moving: Moving::default(),
        });
        Self { router: router(Arc::clone(&service)), service }
    }

    /// Responds to a GET of a path with its query, such as `/v4/list`, as it would over a connection: status and
    /// headers first, then the body in pieces.
    pub async fn get(&self, path: &str, headers: HeaderMap) -> Response<BoxStream<'static, io::Result<Bytes>>> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().unwrap_or_default();
        *request.headers_mut() = headers;
        let response = self.router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        response.map(|body| body.into_data_stream().map(|piece| piece.map_err(io::Error::other)).boxed())
    }

    /// The initial corpus.
    pub fn corpus(&self) -> &Corpus {
        &self.service.corpus
    }

    /// Count of requests received so far.
    pub fn requests(&self) -> u64 {
        self.service.requests.load(Ordering::Relaxed)
    }

    /// Takes the requests received since the last call, oldest first.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.service.seen.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }

    /// The mentions of a saved search as of the response to this request, by time of publication.
    pub fn alive(&self, aid: &str, request: u64) -> Vec<Arc<Mention>> {
        let state = self.service.moving.at(&self.service.corpus, aid, request);
        state.map(|(search, _)| search.mentions.clone()).unwrap_or_default()
    }
}

/// A service that accepts requests until it is shut down or dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    simulator: Simulator,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<io::Result<()>>,
}

impl Deref for Running {
    type Target = Simulator;

    fn deref(&self) -> &Simulator {
        &self.simulator
    }
}

impl Running {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for clients.
    pub fn base_url(&self) -> String {
        format!("http://{}/v4", self.address)
    }

    /// Stops accepting connections and waits until the requests in flight have ended.
    ///
    /// # Errors
    /// The error that the server ended with, if any.
    pub async fn shut_down(mut self) -> io::Result<()> {
        if let Some(stop) = self.stop.take() {
            // Fails only if the server has already ended.
            let _ = stop.send(());
        }
        (&mut self.task).await.map_err(io::Error::other)?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a service over `corpus`; port 0 selects a free one.
///
/// # Errors
/// If listening on the address fails.
pub async fn start(listen: SocketAddr, corpus: Arc<Corpus>, settings: Settings) -> io::Result<Running> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let simulator = Simulator::new(corpus, settings);
    let app = simulator.router.clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async {
            // A dropped sender means that the service was dropped, which ends it too.
            let _ = stopped.await;
        };
        axum::serve(listener, app).with_graceful_shutdown(stopped).await
    });
    Ok(Running { address, simulator, stop: Some(stop), task })
}

/// State shared by all requests.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) corpus: Arc<Corpus>,
    pub(super) settings: Settings,
    pub(super) requests: AtomicU64,
    seen: Mutex<VecDeque<Seen>>,
    spent: Mutex<HashMap<Vec<u8>, VecDeque<Instant>>>,
    selections: Mutex<Selections>,
    pub(super) moving: Moving,
}

/// Selections by query (without its page), count of changes to the saved search, and sort order.
type Selections = HashMap<(Query, usize, Sorting), Arc<Selection>>;

/// Sorting of the rows of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sorting {
    /// As requested.
    Stable,
    /// As requested, with equal keys in an order specific to this request.
    Ties(u64),
    /// Unsorted.
    Ignored,
}

/// The mentions of a query, sorted, and their overview.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) order: Vec<u32>,
    pub(super) overview: String,
}

/// The state of a key's rate limit after a request.
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
    /// The faults that apply to a request.
    pub(super) fn faults(&self, request: u64, aid: Option<&str>) -> Vec<Kind> {
        let Settings { faults, seed, .. } = &self.settings;
        faults.iter().filter(|fault| fault.happens(*seed, request, aid)).map(|fault| fault.kind.clone()).collect()
    }

    /// The time by the service's own clock, including injected skew.
    pub(super) fn now(&self, kinds: &[Kind]) -> DateTime<Utc> {
        let skew = |kind: &Kind| if let Kind::Skew(seconds) = kind { TimeDelta::try_seconds(*seconds) } else { None };
        kinds.iter().filter_map(skew).fold(self.settings.clock.now(), |now, skew| now + skew)
    }

    /// Builds an error response.
    pub(super) fn refuse(&self, refusal: Refusal) -> Response<Body> {
        self.settings.preset.refuse(refusal, &self.request_id())
    }

    pub(super) fn request_id(&self) -> String {
        format!("req-{}", self.requests.load(Ordering::Relaxed))
    }

    /// Records a request; the last 10,000 are kept.
    pub(super) fn note(&self, seen: Seen) {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == 10_000 {
            all.pop_front();
        }
        all.push_back(seen);
    }

    /// Counts a request against the rate limit of its key; `None` without a limit. Refused requests do not count.
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

    /// The mentions of a query, cached so that its pages share the work.
    pub(super) fn selection(
        &self,
        query: &Query,
        (search, changes): (&SavedSearch, usize),
        sorting: Sorting,
    ) -> Arc<Selection> {
        let query = Query { data_from: 0, data_size: 0, aid: search.aid.clone(), ..query.clone() };
        let key = (query.clone(), changes, sorting);
        if let Some(known) = self.selections.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Arc::clone(known);
        }
        let mut order = query.matching(search);
        let mut counted = query.counted();
        if query.variant.overview_of_all {
            counted.filters.clear();
        }
        let overview = if counted == query {
            overview(&query, search, &order)
        } else {
            overview(&counted, search, &counted.matching(search))
        };
        match sorting {
            Sorting::Stable => query.sort(search, &mut order, None),
            Sorting::Ties(shuffle) => query.sort(search, &mut order, Some(shuffle)),
            Sorting::Ignored => Query::shuffle(search, &mut order),
        }
        let selection = Arc::new(Selection { order, overview });
        let mut selections = self.selections.lock().unwrap_or_else(PoisonError::into_inner);
        if selections.len() >= SELECTIONS {
            selections.clear();
        }
        selections.insert(key, Arc::clone(&selection));
        selection
    }
}
