//! State shared by all calls: that of the host, prepared statements and results.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::ScalarValue;

use super::handles::Store;
use crate::host::cached_plan::{Basis, CachedPlan};
use crate::host::failure::Failure;
use crate::host::planner::Statement;
use crate::host::running::{Pending, READY};
use crate::host::sessions::Session;
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
        // Those of all users take a quarter of the memory at most.
        let results_in_all = (limits.memory_bytes() / 4 / READY).max(1);
        let prepared = Store::new("prepared statement", limits.statements, usize::MAX, limits.session_idle(), false);
        let results = Store::new("result", limits.results, results_in_all, limits.result_time(), true);
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
    plan: Mutex<Option<CachedPlan<()>>>,
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
        Self { sql, plan: Mutex::default(), bound: Mutex::default(), _held: held }
    }

    /// Returns the statement with the plan of an earlier call, or plans it if that is outdated. Sends no request.
    ///
    /// # Errors
    /// Errors of planning.
    pub(super) async fn statement(&self, host: &Host, session: &Session) -> Result<Arc<Statement>, Failure> {
        let basis = Basis::of(&session.context);
        // An outdated plan frees its memory before another one is made.
        let known = {
            let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            let known = plan.as_ref().and_then(|plan| plan.statement(&basis, &()));
            if known.is_none() {
                *plan = None;
            }
            known
        };
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = Arc::new(host.statement(session, &self.sql).await?);
        let plan = CachedPlan::new(host, session, &statement, basis, ());
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        Ok(statement)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::effects;

    #[tokio::test]
    async fn a_prepared_statement_is_planned_once_until_something_changes() {
        let (host, session) = Host::of_tests().await;
        let held = || host.hold(&session, "prepared statement", 1).expect("memory");
        let prepared = Prepared::new("SELECT aid FROM mentions WHERE published_at > $1 LIMIT $2".to_owned(), held());
        let planned = async || prepared.statement(&host, &session).await.expect("planned");
        let first = planned().await;
        assert!(Arc::ptr_eq(&first, &planned().await), "the second call plans nothing");
        for change in ["SET savedsearch.timezone = 'Asia/Tokyo'", "CREATE TABLE own AS SELECT 1 AS a", "DROP TABLE own"]
        {
            let before = planned().await;
            let statement = host.statement(&session, change).await.expect("planned");
            effects::run(&host, &session, &statement, None).await.expect("done");
            let after = planned().await;
            assert!(!Arc::ptr_eq(&before, &after), "planned again after {change}");
            assert!(Arc::ptr_eq(&after, &planned().await), "and once only");
        }
        let own = Prepared::new("SET savedsearch.max_requests = 5".to_owned(), held());
        let [one, two] = [own.statement(&host, &session).await, own.statement(&host, &session).await];
        assert!(!Arc::ptr_eq(&one.expect("planned"), &two.expect("planned")), "a change of the session");
    }
}
