//! What all calls to the server share: sessions, statements behind handles, results under way, and their bounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::common::ScalarValue;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::connection_limit::Standing;
use super::handles::Store;
use super::lanes::Lanes;
use super::metrics::Metrics;
use super::peer::Peer;
use super::results::Pending;
use super::sessions::{Session, Sessions};
use super::settings::Limits;

/// What all calls share.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) sessions: Sessions,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    /// The connections that are there.
    pub(super) standing: Arc<Standing>,
    /// Ends whatever runs.
    pub(super) cancelled: CancellationToken,
    /// Where statements are planned and run, away from the threads that serve sockets: what computes for long must not
    /// keep them from being heard.
    pub(super) lanes: Lanes,
    ending: AtomicBool,
    pub(super) prepared: Store<Prepared>,
    pub(super) results: Store<Pending>,
    streams: Arc<Semaphore>,
}

impl ServerState {
    pub(super) fn new(sessions: Sessions, limits: Limits, lanes: Lanes) -> Self {
        let prepared = Store::new("prepared statement", limits.statements, limits.session_idle(), false);
        let results = Store::new("result", limits.results, limits.result_time(), true);
        let streams = Arc::new(Semaphore::new(limits.streams));
        let (cancelled, metrics, ending) = (CancellationToken::new(), Metrics::new(), AtomicBool::new(false));
        let standing = Arc::new(Standing::new(limits.connections, limits.session_idle()));
        Self { sessions, limits, metrics, standing, cancelled, lanes, ending, prepared, results, streams }
    }

    /// Forgets what nobody has used for long, and what sessions have left behind.
    pub(super) fn sweep(&self) {
        self.standing.sweep();
        let open = self.sessions.sweep();
        self.prepared.sweep(&open);
        self.results.sweep(&open);
    }

    /// Places for what runs for a session.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where there are none.
    pub(super) fn places(&self, session: &Session) -> Result<[OwnedSemaphorePermit; 2], Status> {
        let place = |places: &Arc<Semaphore>, whose: &str, most: usize| {
            let place = Arc::clone(places).try_acquire_owned();
            place.map_err(|_| {
                Status::resource_exhausted(format!("{whose} has its {most} results under way: read them first"))
            })
        };
        let Limits { streams, streams_per_session, .. } = self.limits;
        Ok([place(&session.streams, "the session", streams_per_session)?, place(&self.streams, "the server", streams)?])
    }

    /// A connection has ended, and the sessions that it had.
    pub(super) fn hung_up(&self, peer: Peer) {
        self.sessions.hung_up(peer);
    }

    /// Waits until nothing has run for some time.
    pub(super) async fn quiet(&self, time: Duration) {
        let mut since = Instant::now();
        while since.elapsed() < time {
            sleep(Duration::from_millis(50)).await;
            if self.streams.available_permits() < self.limits.streams {
                since = Instant::now();
            }
        }
    }

    /// Whether the server is told to end.
    pub(super) fn ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// The server is told to end.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// The metrics as text.
    ///
    /// # Errors
    /// None in practice: writing to a text does not fail.
    pub(super) fn metrics_text(&self) -> Result<String, std::fmt::Error> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.metrics.sessions.set(count(self.sessions.len()));
        self.metrics.statements.set(count(self.prepared.len()));
        self.metrics.results.set(count(self.results.len()));
        self.metrics.connections.set(count(self.standing.len()));
        self.metrics.text(&self.sessions.connections())
    }

    /// Memory for what a session leaves here, of that which all queries share.
    pub(super) fn hold(&self, what: &str, bytes: usize) -> Result<MemoryReservation, Status> {
        let held = MemoryConsumer::new(what).register(self.sessions.pool());
        let grown = held.try_grow(bytes);
        grown.map_err(|_| Status::resource_exhausted(format!("no memory for the {what}: close some statements")))?;
        Ok(held)
    }
}

/// A prepared statement, and what is bound to it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) sql: String,
    bound: Mutex<Option<Bound>>,
    _held: MemoryReservation,
}

/// Sets of parameters, in the memory that queries share.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) sets: Vec<Vec<ScalarValue>>,
    _held: MemoryReservation,
}

impl Prepared {
    pub(super) fn new(sql: String, held: MemoryReservation) -> Self {
        Self { sql, bound: Mutex::default(), _held: held }
    }

    /// The sets of parameters that are bound to it.
    pub(super) fn bound(&self) -> Option<Vec<Vec<ScalarValue>>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|bound| bound.sets.clone())
    }

    /// Binds others.
    pub(super) fn bind(&self, bound: Option<Bound>) {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = bound;
    }
}

impl Bound {
    pub(super) fn new(sets: Vec<Vec<ScalarValue>>, held: MemoryReservation) -> Self {
        Self { sets, _held: held }
    }
}
