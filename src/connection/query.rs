//! Queries, each with one owner.
//!
//! ```text
//! QueryContext: settings, share, caller, span, ─┬─▶ Query of one connection: budget, instants, responses, list
//!               numbers of requests             └─▶ Query of another
//! ```
//!
//! A statement is admitted when it starts (`exec/traced`): its owner becomes an extension of the configuration of its task, and all
//! of its scans find it there. Programs that execute a plan themselves admit nothing, and neither does the engine for the query of
//! `CREATE TABLE AS`. The engine gives such a plan nothing that belongs to one execution but the task context, so the owner of an
//! execution is looked up by the name of the plan and the identity of that context ([`ForeignRuns`]). Sessions from `install` have
//! one list of these owners. In other sessions each connection has its own, so a query of several connections has a budget for each.
//! Workers of a distributed query send no requests, and have no queries.
//!
//! Invariant: the scans of a plan that is executed in one task context share one owner, which no other execution has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

#[cfg(feature = "store")]
use chrono::TimeDelta;
use chrono::{DateTime, Utc};
use datafusion::execution::TaskContext;

use super::answers::SharedAnswer;
use super::{Connection, SavedSearches};
use crate::client::{Caller, QueryBudget, QueryCounts, QuerySpan, SentBefore};
use crate::config::SessionSettings;
#[cfg(feature = "store")]
use crate::error::Result;
use crate::request::RequestKey;
#[cfg(feature = "store")]
use crate::store::FromStore;

/// Owner of a query: what its scans share, whichever connections they read. An extension of the configuration of its task.
#[derive(Debug)]
pub(crate) struct QueryContext {
    /// Settings of the session at the start of the query.
    pub(crate) settings: SessionSettings,
    /// Id of the session, whose queries have one share unless a caller has.
    session: String,
    caller: Option<Arc<Caller>>,
    before: SentBefore,
    /// Requests sent and required, of all connections.
    counts: Arc<QueryCounts>,
    /// Span of its statement.
    statement: Option<Arc<QuerySpan>>,
    /// Span of a query whose statement has none.
    own_span: Mutex<Weak<QuerySpan>>,
    /// The query of each connection, from its first scan on.
    connections: Mutex<Vec<(Weak<Connection>, Arc<Query>)>>,
}

/// A query as far as one connection is concerned.
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
    pub(super) from_store: Option<FromStore>,
    /// Number of erasures in the store before the first request for a response that is kept there.
    #[cfg(feature = "store")]
    pub(super) erasures: OnceLock<Result<i64>>,
}

/// Owners of the queries of plans that were not admitted. An extension of the configuration of a session.
#[derive(Debug, Default)]
pub(crate) struct ForeignRuns(Mutex<Vec<ForeignRun>>);

/// An execution of a plan that was not admitted.
#[derive(Debug)]
struct ForeignRun {
    /// Name of the query that the plan was made for.
    plan: String,
    /// It lives as long as the execution does.
    task: Weak<TaskContext>,
    owner: Arc<QueryContext>,
}

impl QueryContext {
    /// Creates the owner of the query that a task runs. `statement` is the span of its statement, if there is one.
    pub(crate) fn new(task: &TaskContext, statement: Option<Arc<QuerySpan>>) -> Self {
        let config = task.session_config();
        let before = config.get_extension::<SentBefore>();
        Self {
            settings: SessionSettings::of(config.options()),
            session: task.session_id(),
            caller: config.get_extension::<Caller>(),
            before: before.map_or(SentBefore(0), |before| *before),
            counts: Arc::default(),
            statement,
            own_span: Mutex::default(),
            connections: Mutex::default(),
        }
    }

    /// Returns the owner of the query for which a task executes a scan of this connection: the one that was admitted, or else that of
    /// a foreign run. `plan` is the name of the query that the scan was planned for.
    pub(crate) fn of(task: &Arc<TaskContext>, connection: &Connection, plan: &str) -> Arc<Self> {
        let config = task.session_config();
        if let Some(admitted) = config.get_extension::<Self>() {
            return admitted;
        }
        match config.get_extension::<ForeignRuns>() {
            Some(runs) => runs.owner(plan, task),
            None => connection.foreign_runs.owner(plan, task),
        }
    }

    /// Returns the query of a connection, which begins with its first scan. `name` identifies it in `system.requests`.
    pub(crate) fn at(&self, connection: &Arc<Connection>, name: &str) -> Arc<Query> {
        let this = Arc::downgrade(connection);
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, query)) = connections.iter().find(|(known, _)| known.ptr_eq(&this)) {
            return Arc::clone(query);
        }
        // Another process may hold the ledger. Only scans of this query wait for it here.
        let query = connection.begin(self, name);
        connections.push((this, Arc::clone(&query)));
        query
    }

    /// Aids that a query without an aid reads, by the list that this query has requested of a connection; `None` if it has requested
    /// none.
    #[cfg(feature = "store")]
    pub(crate) fn listed(&self, connection: &Arc<Connection>) -> Option<Vec<String>> {
        let this = Arc::downgrade(connection);
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, query) = connections.iter().find(|(known, _)| known.ptr_eq(&this))?;
        query.list.get().map(|list| list.fan_out())
    }

    /// Returns the span that its scans belong to: that of its statement, or else one that lasts as long as a scan does. The owner of
    /// a foreign run may be remembered for longer than it runs, so it does not hold that span.
    pub(crate) fn span(&self) -> Arc<QuerySpan> {
        if let Some(statement) = &self.statement {
            return Arc::clone(statement);
        }
        let mut own = self.own_span.lock().unwrap_or_else(PoisonError::into_inner);
        own.upgrade().unwrap_or_else(|| {
            let span = QuerySpan::start(None);
            *own = Arc::downgrade(&span);
            span
        })
    }

    /// True if a scan has a query of it.
    fn is_read(&self) -> bool {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.iter().any(|(_, query)| Arc::strong_count(query) > 1)
    }
}

impl Query {
    /// True if responses may come from a store, or remain in it.
    pub(crate) fn keeps_answers(&self) -> bool {
        #[cfg(feature = "store")]
        return self.from_store.as_ref().is_some_and(|from| from.freshness > TimeDelta::zero());
        #[cfg(not(feature = "store"))]
        false
    }
}

impl ForeignRuns {
    /// Maximum number of remembered runs that no scan reads any more, although their task contexts live.
    const MANY: usize = 256;

    /// Returns the owner of the query for which a task executes a plan. It is forgotten once the task context is dropped.
    fn owner(&self, plan: &str, task: &Arc<TaskContext>) -> Arc<QueryContext> {
        let this = Arc::downgrade(task);
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.iter().find(|run| run.plan == plan && run.task.ptr_eq(&this)) {
            return Arc::clone(&run.owner);
        }
        // A program may execute many plans in one task context: those that no scan reads any more have ended.
        let crowded = runs.len() > Self::MANY;
        runs.retain(|run| run.task.strong_count() > 0 && !(crowded && run.is_idle()));
        let owner = Arc::new(QueryContext::new(task, None));
        runs.push(ForeignRun { plan: plan.to_owned(), task: this, owner: Arc::clone(&owner) });
        owner
    }
}

impl ForeignRun {
    /// True if no scan uses its owner, or is about to.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.owner) == 1 && !self.owner.is_read()
    }
}

impl Connection {
    /// Begins a query here.
    fn begin(&self, owner: &QueryContext, name: &str) -> Arc<Query> {
        let settings = &owner.settings;
        let budget =
            QueryBudget::new(name.to_owned(), settings.max_requests, settings.query_deadline, settings.request_timeout)
                .after(owner.before)
                .with_completeness(settings.completeness)
                .with_session(&owner.session)
                .with_caller(owner.caller.clone())
                .with_counts(Arc::clone(&owner.counts));
        let possible = self.client.possible_until(budget.deadline);
        let query = Arc::new(Query {
            budget: Arc::new(budget.with_possible(possible)),
            begun: self.clock.now(),
            now: self.now(),
            answers: Mutex::default(),
            list: OnceLock::new(),
            #[cfg(feature = "store")]
            from_store: self.store_for(settings),
            #[cfg(feature = "store")]
            erasures: OnceLock::new(),
        });
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|query| query.strong_count() > 0);
        running.push(Arc::downgrade(&query));
        drop(running);
        #[cfg(feature = "store")]
        if let Some(note) = self.full_disk(settings) {
            self.client.log().note(&query.budget, None, note);
        }
        query
    }

    /// Number of requests that the running queries are known to require. They may turn out to need more.
    pub fn required_requests(&self) -> u64 {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // A query that only its owner has does not run: the owner of a foreign run is remembered until the next one.
        let read = running.iter().filter(|query| query.strong_count() > 1).filter_map(Weak::upgrade);
        read.map(|query| query.budget.required()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Secret;

    fn connection() -> Arc<Connection> {
        let key = Secret::new("key").expect("a key");
        Connection::builder("http://localhost/v4", key).build().expect("a connection")
    }

    fn same<T>(one: &Arc<T>, other: &Arc<T>) -> bool {
        Arc::ptr_eq(one, other)
    }

    #[test]
    fn a_query_of_several_connections_has_one_budget_and_a_list_for_each() {
        let (mine, theirs) = (connection(), connection());
        let owner = QueryContext::new(&TaskContext::default(), None);
        let (at_mine, at_theirs) = (owner.at(&mine, "q"), owner.at(&theirs, "q"));
        assert!(same(&at_mine, &owner.at(&mine, "q")) && !same(&at_mine, &at_theirs));
        at_mine.budget.require(2).expect("two requests");
        at_theirs.budget.require(3).expect("three more");
        assert_eq!((at_mine.budget.required(), at_theirs.budget.required()), (5, 5));
    }

    #[test]
    fn a_plan_that_others_execute_has_an_owner_for_each_task_context() {
        let (runs, connection) = (ForeignRuns::default(), connection());
        let [task, other] = [(); 2].map(|()| Arc::new(TaskContext::default()));
        let owner = runs.owner("plan", &task);
        assert!(same(&owner, &runs.owner("plan", &task)), "another scan of it");
        assert!(!same(&owner, &runs.owner("plan", &other)), "it runs again");
        assert!(!same(&owner, &runs.owner("another", &task)), "another plan in its task context");
        // Without a list of the session, the connection has one.
        let found = QueryContext::of(&task, &connection, "plan");
        assert!(same(&found, &QueryContext::of(&task, &connection, "plan")) && !same(&owner, &found));
    }

    #[test]
    fn a_run_is_forgotten_once_it_has_ended() {
        let (runs, connection) = (ForeignRuns::default(), connection());
        let task = Arc::new(TaskContext::default());
        let ended = Arc::downgrade(&runs.owner("plan", &task));
        drop(task);
        let task = Arc::new(TaskContext::default());
        let read = runs.owner("read", &task).at(&connection, "read");
        assert!(ended.upgrade().is_none(), "its task context was dropped");
        // In a task context that lives on, it is one of many.
        for plan in 0..=ForeignRuns::MANY {
            runs.owner(&plan.to_string(), &task);
        }
        assert!(runs.0.lock().expect("no panic").len() < 3);
        assert!(same(&read, &runs.owner("read", &task).at(&connection, "read")), "a scan reads it");
        assert_eq!(connection.required_requests(), 0);
        read.budget.require(4).expect("four requests");
        assert_eq!(connection.required_requests(), 4);
        drop(read);
        assert_eq!(connection.required_requests(), 0, "no scan reads it");
    }
}
