//! State shared by all calls: that of the host, prepared statements and results.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::ScalarValue;

use super::handles::Store;
use crate::host::running::Pending;
use crate::host::shares::SessionMemory;
use crate::host::state::Host;
use crate::serving::{Operated, Trouble};

/// State shared by all calls.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) host: Arc<Host>,
    pub(super) prepared: Store<Prepared>,
    pub(super) results: Store<Pending>,
}

impl ServerState {
    pub(super) fn new(host: Arc<Host>) -> Self {
        let limits = &host.limits;
        let prepared = Store::new("prepared statement", limits.statements, limits.session_idle(), false);
        let results = Store::new("result", limits.results, limits.result_time(), true);
        Self { host, prepared, results }
    }

    /// Removes expired connections, sessions, statements and results.
    pub(super) fn sweep(&self) {
        let open = self.host.sweep();
        self.prepared.sweep(&open);
        self.results.sweep(&open);
    }
}

/// A prepared statement with its bound parameters.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) sql: String,
    bound: Mutex<Option<Bound>>,
    _held: SessionMemory,
}

/// Bound parameter sets with their memory reservation.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) sets: Vec<Vec<ScalarValue>>,
    _held: SessionMemory,
}

impl Prepared {
    pub(super) fn new(sql: String, held: SessionMemory) -> Self {
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
    pub(super) fn new(sets: Vec<Vec<ScalarValue>>, held: SessionMemory) -> Self {
        Self { sets, _held: held }
    }
}

impl Operated for ServerState {
    fn is_ending(&self) -> bool {
        self.host.is_ending()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.host.trouble()
    }

    fn metrics_text(&self) -> Result<String, std::fmt::Error> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.host.metrics.statements.set(count(self.prepared.len()));
        self.host.metrics.results.set(count(self.results.len()));
        self.host.metrics_text()
    }
}
