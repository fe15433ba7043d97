//! The plan of a prepared statement, made once for the settings and the tables of its session.
//!
//! A logical plan depends on the text of a statement, and on the settings and the tables of its session. It does not depend on
//! the instant: `now()` and relative periods are evaluated when the plan is optimized, which is done at each execution.
//!
//! Not cached are
//!
//! - plans that change the session;
//! - plans that read tables of the session, whose rows they would keep after a DROP;
//! - plans that read rows of a function, such as `generate_series` and `changes`: the planner evaluates its arguments, which may
//!   contain the instant;
//! - large plans, and any plan once the sessions of the user keep a quarter of their share of the memory, so that plans do not take
//!   the place of what cannot be made again.
//!
//! Invariant: planning the statement again would give the cached plan.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;

use super::planner::Statement;
use super::sessions::Session;
use super::shares::SessionMemory;
use super::state::Host;
use crate::catalog::table_changes;
use crate::session::bytes_of_plan;
use crate::table::is_read_only;

/// Bytes of the largest plan that is cached.
const LARGEST: usize = 256 << 10;
/// Bytes of the settings of a session, which a plan may be the last one to have.
const SETTINGS: usize = 8 << 10;

/// Settings and tables of a session at one time. Taken before a statement is planned: a change meanwhile makes its plan outdated.
#[derive(Debug)]
pub(crate) struct Basis {
    /// Those of the session itself, which copies them before it changes one.
    settings: Arc<ConfigOptions>,
    /// Number of changes of its tables; `None` if they are not counted.
    tables: Option<u64>,
}

/// A statement with its plan.
#[derive(Debug)]
pub(crate) struct CachedPlan<K> {
    statement: Arc<Statement>,
    basis: Basis,
    /// The rest that the plan depends on.
    key: K,
    _held: SessionMemory,
}

impl Basis {
    pub(crate) fn of(context: &SessionContext) -> Self {
        let settings = Arc::clone(context.state_ref().read().config_options());
        Self { settings, tables: table_changes(context) }
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings) && self.tables.is_some() && self.tables == other.tables
    }
}

impl<K: PartialEq> CachedPlan<K> {
    /// Caches the plan of a statement; `None` if it has to be planned again each time, or if there is no memory for it.
    pub(crate) fn new(
        host: &Host,
        session: &Session,
        statement: &Arc<Statement>,
        basis: Basis,
        key: K,
    ) -> Option<Self> {
        let bytes = bytes_of_plan(&statement.plan);
        if statement.effect || bytes > LARGEST || !session.share.has_room() || !reads_built_in_tables(&statement.plan) {
            return None;
        }
        let held = host.hold(session, "prepared statement", bytes + SETTINGS).ok()?;
        Some(Self { statement: Arc::clone(statement), basis, key, _held: held })
    }

    /// The statement, if its plan is not outdated.
    pub(crate) fn statement(&self, basis: &Basis, key: &K) -> Option<Arc<Statement>> {
        (self.basis.is(basis) && self.key == *key).then(|| Arc::clone(&self.statement))
    }
}

/// True for a plan that reads no tables but those of the service and of schema `system`.
fn reads_built_in_tables(plan: &LogicalPlan) -> bool {
    let mut only = true;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            only &= source_as_provider(&scan.source).is_ok_and(|table| is_read_only(&table));
        }
        Ok(if only { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    visited.is_ok() && only
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each_async;
    use crate::host::effects;

    async fn cached(host: &Host, session: &Session, sql: &str) -> Option<CachedPlan<u8>> {
        let basis = Basis::of(&session.context);
        let statement = host.statement(session, sql).await.unwrap_or_else(|failure| panic!("{sql}: {failure:?}"));
        CachedPlan::new(host, session, &Arc::new(statement), basis, 1)
    }

    async fn run(host: &Host, session: &Arc<Session>, sql: &str) {
        let statement = host.statement(session, sql).await.unwrap_or_else(|failure| panic!("{sql}: {failure:?}"));
        let done = effects::run(host, session, &statement, None).await;
        done.unwrap_or_else(|failure| panic!("{sql}: {failure:?}"));
    }

    #[tokio::test]
    async fn a_plan_holds_until_a_setting_or_a_table_changes() {
        let (host, session) = Host::of_tests().await;
        let now = || Basis::of(&session.context);
        let cases = [
            "SET savedsearch.max_requests = 7",
            "SET datafusion.execution.time_zone = 'Asia/Tokyo'",
            "RESET savedsearch.max_requests",
            "CREATE VIEW named AS SELECT aid, name FROM saved_searches",
            "CREATE OR REPLACE VIEW named AS SELECT name, aid FROM saved_searches",
            "CREATE TABLE own AS SELECT 1 AS a",
            "DROP TABLE own",
            "DROP VIEW named",
        ];
        each_async(cases, async |change| {
            let sql = "SELECT name FROM saved_searches WHERE aid IN (SELECT aid FROM overview WHERE duration = $1)";
            let plan = cached(&host, &session, sql).await.expect("cached");
            assert!(plan.statement(&now(), &1).is_some() && plan.statement(&now(), &1).is_some(), "before {change}");
            assert!(plan.statement(&now(), &2).is_none(), "another key");
            run(&host, &session, change).await;
            assert!(plan.statement(&now(), &1).is_none(), "after {change}");
        })
        .await;
    }

    #[tokio::test]
    async fn plans_that_depend_on_more_are_not_cached() {
        let (host, session) = Host::of_tests().await;
        run(&host, &session, "CREATE TABLE own AS SELECT 1 AS a").await;
        run(&host, &session, "CREATE VIEW seen AS SELECT a FROM own").await;
        run(&host, &session, "CREATE VIEW named AS SELECT name FROM saved_searches").await;
        let cases = [
            ("SELECT 1", true),
            ("SELECT now()", true),
            ("SELECT count(*) FROM mentions WHERE published_at > now() - INTERVAL '1 day'", true),
            ("SELECT id FROM mentions(aid => $1, duration => '7d')", true),
            ("SELECT * FROM named", true),
            ("SELECT count(*) FROM system.requests", true),
            ("SELECT * FROM own", false),
            ("SELECT * FROM seen", false),
            ("SELECT aid FROM saved_searches WHERE 1 IN (SELECT a FROM own)", false),
            ("SELECT * FROM generate_series(1, 3)", false),
            ("SELECT aid, (SELECT max(value) FROM generate_series(1, 3)) AS n FROM saved_searches", false),
            ("SET savedsearch.max_requests = 7", false),
            ("CREATE TABLE other AS SELECT 1 AS a", false),
        ];
        each_async(cases, async |(sql, is_cached)| {
            assert_eq!(cached(&host, &session, sql).await.is_some(), is_cached, "{sql}");
        })
        .await;
        let large = format!("SELECT '{}' AS t", "x".repeat(LARGEST));
        assert!(cached(&host, &session, &large).await.is_none(), "a large plan");
        let held = host.hold(&session, "view", session.share.kib << 8).expect("a quarter");
        assert!(cached(&host, &session, "SELECT 1").await.is_none(), "little memory is left");
        drop(held);
        assert!(cached(&host, &session, "SELECT 1").await.is_some());
    }
}
