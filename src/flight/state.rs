//! State shared by all calls: sessions, prepared statements, results and their limits.

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
use crate::serving::Operated;

/// State shared by all calls.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) sessions: Sessions,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    /// Open connections.
    pub(super) standing: Arc<Standing>,
    /// Cancels all running queries and statements.
    pub(super) cancelled: CancellationToken,
    /// Threads that plan and run statements, separate from those that serve sockets, which a long computation would
    /// block.
    pub(super) lanes: Lanes,
    ending: AtomicBool,
    pub(super) prepared: Store<Prepared>,
    pub(super) results: Store<Pending>,
    streams: Arc<Semaphore>,
}

impl ServerState {
    pub(super) fn new(sessions: Sessions, limits: Limits, lanes: Lanes, metrics: Arc<Metrics>) -> Self {
        let prepared = Store::new("prepared statement", limits.statements, limits.session_idle(), false);
        let results = Store::new("result", limits.results, limits.result_time(), true);
        let streams = Arc::new(Semaphore::new(limits.streams));
        let (cancelled, ending) = (CancellationToken::new(), AtomicBool::new(false));
        let standing = Standing::new(limits.connections, limits.session_idle(), metrics.rejected("no_login"));
        let standing = Arc::new(standing);
        Self { sessions, limits, metrics, standing, cancelled, lanes, ending, prepared, results, streams }
    }

    /// Removes expired connections, sessions, statements and results.
    pub(super) fn sweep(&self) {
        self.standing.sweep();
        let open = self.sessions.sweep();
        self.prepared.sweep(&open);
        self.results.sweep(&open);
    }

    /// Acquires the permits for a running query of a session.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the session or the server has too many running queries.
    pub(super) fn places(&self, session: &Session) -> Result<[OwnedSemaphorePermit; 2], Status> {
        let place = |places: &Arc<Semaphore>, whose: &str, most: usize| {
            let place = Arc::clone(places).try_acquire_owned();
            place.map_err(|_| {
                let line = format!("too many running queries: {whose} is limited to {most}; finish reading some first");
                Status::resource_exhausted(line)
            })
        };
        let Limits { streams, streams_per_session, .. } = self.limits;
        Ok([place(&session.streams, "the session", streams_per_session)?, place(&self.streams, "the server", streams)?])
    }

    /// Closes the sessions of a closed connection.
    pub(super) fn hung_up(&self, peer: Peer) {
        self.sessions.hung_up(peer);
    }

    /// Waits until no query has run for `time`.
    pub(super) async fn quiet(&self, time: Duration) {
        let mut since = Instant::now();
        while since.elapsed() < time {
            sleep(Duration::from_millis(50)).await;
            if self.streams.available_permits() < self.limits.streams {
                since = Instant::now();
            }
        }
    }

    /// True once shutdown has been requested.
    pub(super) fn ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Marks the server as shutting down.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Reserves memory in the shared pool for a stored object.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the pool is used up.
    pub(super) fn hold(&self, what: &str, bytes: usize) -> Result<MemoryReservation, Status> {
        let held = MemoryConsumer::new(what).register(self.sessions.pool());
        let grown = held.try_grow(bytes);
        grown.map_err(|_| {
            Status::resource_exhausted(format!("not enough memory for the {what}: close some statements"))
        })?;
        Ok(held)
    }
}

/// A prepared statement with its bound parameters.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) sql: String,
    bound: Mutex<Option<Bound>>,
    _held: MemoryReservation,
}

/// Bound parameter sets with their memory reservation.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) sets: Vec<Vec<ScalarValue>>,
    _held: MemoryReservation,
}

impl Prepared {
    pub(super) fn new(sql: String, held: MemoryReservation) -> Self {
        Self { sql, bound: Mutex::default(), _held: held }
    }

    /// Returns the bound parameter sets.
    pub(super) fn bound(&self) -> Option<Vec<Vec<ScalarValue>>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|bound| bound.sets.clone())
    }

    /// Replaces the bound parameter sets.
    pub(super) fn bind(&self, bound: Option<Bound>) {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = bound;
    }
}

impl Bound {
    pub(super) fn new(sets: Vec<Vec<ScalarValue>>, held: MemoryReservation) -> Self {
        Self { sets, _held: held }
    }
}

impl Operated for ServerState {
    fn is_ending(&self) -> bool {
        self.ending()
    }

    fn metrics_text(&self) -> Result<String, std::fmt::Error> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.metrics.sessions.set(count(self.sessions.len()));
        self.metrics.statements.set(count(self.prepared.len()));
        self.metrics.results.set(count(self.results.len()));
        self.metrics.connections.set(count(self.standing.len()));
        #[cfg(feature = "distributed")]
        self.metrics.set_workers(self.sessions.workers());
        self.metrics.text(&self.sessions.connections())
    }
}
