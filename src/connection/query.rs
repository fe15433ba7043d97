//! Queries: what all scans of a query share.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

#[cfg(feature = "store")]
use chrono::TimeDelta;
use chrono::{DateTime, Utc};

use super::answers::SharedAnswer;
use super::{Connection, SavedSearches};
use crate::client::{Caller, QueryBudget, QueryCounts, QuerySpan, SentBefore};
use crate::config::SessionSettings;
use crate::request::RequestKey;
#[cfg(feature = "store")]
use crate::store::FromStore;

/// A running query.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) budget: Arc<QueryBudget>,
    /// Start of the query, by the local clock.
    pub(crate) begun: DateTime<Utc>,
    /// Start of the query, by the clock that time windows are computed from.
    pub(crate) now: DateTime<Utc>,
    /// Responses without mentions: each is requested once.
    pub(super) answers: Mutex<HashMap<RequestKey, SharedAnswer>>,
    /// List of saved searches, once it has been requested.
    pub(super) list: OnceLock<Arc<SavedSearches>>,
    /// Store of responses without mentions, and how it is used.
    #[cfg(feature = "store")]
    pub(super) kept: Option<FromStore>,
    /// Span of the query, if its statement has none.
    span: Mutex<Weak<QuerySpan>>,
}

impl Query {
    /// True if responses may come from a store, or remain in it.
    pub(crate) fn keeps_answers(&self) -> bool {
        #[cfg(feature = "store")]
        return self.kept.as_ref().is_some_and(|kept| kept.freshness > TimeDelta::zero());
        #[cfg(not(feature = "store"))]
        false
    }

    /// Returns the span that scans of the query belong to: that of its statement, or else one that lasts as long as a
    /// scan does. The query itself may be remembered for longer than it runs, so it does not hold the span.
    pub(crate) fn span(&self, statement: Option<Arc<QuerySpan>>) -> Arc<QuerySpan> {
        statement.unwrap_or_else(|| {
            let mut own = self.span.lock().unwrap_or_else(PoisonError::into_inner);
            own.upgrade().unwrap_or_else(|| {
                let span = QuerySpan::start(None);
                *own = Arc::downgrade(&span);
                span
            })
        })
    }
}

/// Maximum number of remembered queries that no scan reads any more.
const MANY: usize = 256;

/// Running queries by name, each with its execution.
pub(super) type Queries = HashMap<String, (Weak<Execution>, Arc<Query>)>;

/// Execution of a query; it lives as long as the query does.
type Execution = dyn Any + Send + Sync;

/// The counts of the queries of all connections, by name and execution, for as long as one of them knows the query.
static COUNTS: Mutex<Vec<(String, Weak<Execution>, WeakCounts)>> = Mutex::new(Vec::new());
type WeakCounts = Weak<QueryCounts>;

/// Returns the counts of a query, which all connections that it reads share.
fn counts_of(id: &str, execution: &Arc<Execution>) -> Arc<QueryCounts> {
    let this = Arc::downgrade(execution);
    let mut running = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    running.retain(|(.., counts)| counts.strong_count() > 0);
    let known = running.iter().find(|(known, run, _)| known == id && run.ptr_eq(&this));
    if let Some(counts) = known.and_then(|(.., counts)| counts.upgrade()) {
        return counts;
    }
    let counts = Arc::new(QueryCounts::default());
    running.push((id.to_owned(), this, Arc::downgrade(&counts)));
    counts
}

/// Returns the running query of this name and execution.
fn known_query(queries: &Queries, id: &str, execution: &Arc<Execution>) -> Option<Arc<Query>> {
    let (known, query) = queries.get(id)?;
    known.ptr_eq(&Arc::downgrade(execution)).then(|| Arc::clone(query))
}

impl Connection {
    /// Number of requests that the running queries have announced. They may turn out to need more.
    pub fn announced(&self) -> u64 {
        let queries = self.queries();
        let running = queries.values().filter(|(runs, _)| runs.strong_count() > 0);
        running.map(|(_, query)| query.budget.announced()).sum()
    }

    /// Returns the query of this name, which a session runs. All its scans share one budget and one response per request as
    /// long as `execution` lives. Running a plan again starts another query.
    pub(crate) fn query(
        &self,
        id: &str,
        session: &str,
        execution: &Arc<Execution>,
        settings: &SessionSettings,
        caller: Option<Arc<Caller>>,
        before: SentBefore,
    ) -> Arc<Query> {
        if let Some(query) = known_query(&self.queries(), id, execution) {
            return query;
        }
        let budget =
            QueryBudget::new(id.to_owned(), settings.max_requests, settings.query_deadline, settings.request_timeout)
                .after(before)
                .with_completeness(settings.completeness)
                .with_session(session)
                .with_caller(caller)
                .with_counts(counts_of(id, execution));
        // Before taking the lock: another process may hold the ledger.
        let possible = self.client.possible_until(budget.deadline);
        let mut queries = self.queries();
        // Another scan may have started the query in the meantime.
        if let Some(query) = known_query(&queries, id, execution) {
            return query;
        }
        // A long-lived execution may run many queries: those that no scan reads any more have ended.
        let crowded = queries.len() > MANY;
        queries.retain(|_, (runs, query)| runs.strong_count() > 0 && !(crowded && Arc::strong_count(query) == 1));
        let query = Query {
            budget: Arc::new(budget.with_possible(possible)),
            begun: self.clock.now(),
            now: self.now(),
            answers: Mutex::default(),
            list: OnceLock::new(),
            #[cfg(feature = "store")]
            kept: self.store_for(settings),
            span: Mutex::default(),
        };
        let query = Arc::new(query);
        queries.insert(id.to_owned(), (Arc::downgrade(execution), Arc::clone(&query)));
        drop(queries);
        #[cfg(feature = "store")]
        if let Some(note) = self.full_disk(settings) {
            self.client.log().note(&query.budget, None, note);
        }
        query
    }

    fn queries(&self) -> MutexGuard<'_, Queries> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
