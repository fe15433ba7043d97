//! Tables and functions of an embedder, beside those of the connections.
//!
//! ```text
//! a client logs in ─▶ session with the tables of connections ─▶ register ─▶ tables become read-only, functions bounded ─▶ statements
//! ```
//!
//! Each session registers them anew, since a session has catalogs and functions of its own. What it registers may be shared: providers
//! are cheap to clone.
//!
//! Invariant: no statement of a client changes, replaces or drops what was registered, whichever provider it has.

use std::fmt;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use super::auth::Principal;
use super::temporary::for_each;
use crate::catalog::serve;
use crate::table::ServedTable;

type Register = dyn Fn(&SessionContext, &str) -> Result<()> + Send + Sync;

/// Function that registers tables, views and functions of the embedder in each session of a server; by default none. See
/// [`HostSpec::with_tables`](super::HostSpec::with_tables).
#[derive(Clone, Default)]
pub struct OwnTables(Option<Arc<Register>>);

impl OwnTables {
    /// Creates it from a function that takes the session, before any client uses it, and the name of its user.
    pub fn new(register: impl Fn(&SessionContext, &str) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(register)))
    }

    /// Registers them in a session.
    ///
    /// # Errors
    /// Those of the function, and of [`serve`].
    pub(super) fn register(&self, context: &SessionContext, principal: &Principal) -> Result<()> {
        match &self.0 {
            Some(register) => serve(context, |context| register(context, &principal.name)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for OwnTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnTables").field(&self.0.is_some()).finish()
    }
}

/// Names of an embedder's tables that are in catalogs of their own: catalog, schema and table.
///
/// # Errors
/// Errors of looking up a table.
#[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "one server lists them in words"))]
pub(crate) async fn in_other_catalogs(context: &SessionContext) -> Result<Vec<[String; 3]>> {
    let default = context.state_ref().read().config_options().catalog.default_catalog.clone();
    let mut found = Vec::new();
    for_each(context, |[catalog, schema], name, table| {
        if *catalog != default && table.downcast_ref::<ServedTable>().is_some() {
            found.push([catalog.clone(), schema.clone(), name.to_owned()]);
        }
        Ok(())
    })
    .await?;
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
    use datafusion::datasource::{MemTable, ViewTable};
    use datafusion::logical_expr::LogicalPlanBuilder;

    use super::*;
    use crate::cases::each_async;
    use crate::host::auth::{Auth, Credentials};
    use crate::host::failure::{Code, Failure};
    use crate::host::sessions::{Session, Upstream};
    use crate::host::spec::HostSpec;
    use crate::host::state::Host;
    use crate::host::{effects, planner};

    fn numbers() -> Arc<MemTable> {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", column)]).expect("a batch");
        Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).expect("a table"))
    }

    /// A catalog that all sessions share.
    fn shared() -> Arc<MemoryCatalogProvider> {
        let (catalog, schema) = (MemoryCatalogProvider::new(), MemorySchemaProvider::new());
        schema.register_table("brands".to_owned(), numbers()).expect("registered");
        catalog.register_schema("public", Arc::new(schema)).expect("registered");
        Arc::new(catalog)
    }

    fn host(tables: impl Fn(&SessionContext, &str) -> Result<()> + Send + Sync + 'static) -> Host {
        let key = crate::client::Secret::new("key").expect("a key");
        let connection = crate::connection::Connection::builder("http://127.0.0.1:9/v4", key);
        let upstream = Upstream::Own { connection: connection.build().expect("a connection"), named: Vec::new() };
        Host::start(HostSpec::new(Auth::None, upstream).with_tables(tables)).expect("a host")
    }

    async fn run(host: &Host, session: &Arc<Session>, sql: &str) -> Result<usize, Failure> {
        let statement = host.statement(session, sql).await?;
        if statement.effect {
            return effects::run(host, session, &statement, None).await.map(|()| 0);
        }
        let turn = session.share.planning(1).await;
        let failed = |error| session.failure(&error);
        let plan = planner::runnable(&turn, &session.context, statement.plan.clone()).await.map_err(failed)?;
        drop(turn);
        let batches = datafusion::physical_plan::collect(plan.plan, plan.task).await.map_err(failed)?;
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    }

    /// Registers a table and a view of the session, and a catalog that sessions share.
    fn all(context: &SessionContext, catalog: &Arc<MemoryCatalogProvider>) -> Result<()> {
        context.register_table("own", numbers())?;
        let table = datafusion::datasource::provider_as_source(numbers());
        let plan = LogicalPlanBuilder::scan("numbers", table, None)?.limit(0, Some(2))?.build()?;
        context.register_table("two", Arc::new(ViewTable::new(plan, None)))?;
        context.register_catalog("shared", Arc::clone(catalog) as Arc<dyn CatalogProvider>);
        Ok(())
    }

    #[tokio::test]
    async fn clients_read_the_tables_of_an_embedder_and_change_nothing() {
        let catalog = shared();
        let registered = Arc::clone(&catalog);
        let host = host(move |context, user| {
            assert_eq!(user, "anonymous");
            all(context, &registered)
        });
        let session = host.sessions.find(Credentials::None, None).await.expect("a session");
        let cases = [
            ("SELECT * FROM own", Some(3)),
            ("SELECT * FROM two", Some(2)),
            ("SELECT * FROM shared.public.brands", Some(3)),
            ("SELECT * FROM own JOIN shared.public.brands b ON own.n = b.n", Some(3)),
            ("SELECT * FROM information_schema.tables WHERE table_name IN ('own', 'two', 'brands')", Some(3)),
            ("DROP TABLE own", None),
            ("DROP VIEW two", None),
            ("DROP TABLE shared.public.brands", None),
            ("CREATE OR REPLACE TABLE own AS SELECT 1 AS n", None),
            ("CREATE OR REPLACE VIEW own AS SELECT 1 AS n", None),
            ("CREATE OR REPLACE VIEW two AS SELECT 1 AS n", None),
            ("CREATE OR REPLACE TABLE shared.public.brands AS SELECT 1 AS n", None),
            ("CREATE TABLE shared.public.mine AS SELECT 1 AS n", None),
            ("CREATE VIEW shared.public.mine AS SELECT 1 AS n", None),
            ("CREATE SCHEMA shared.mine", None),
            ("INSERT INTO own VALUES (4)", None),
            ("DELETE FROM shared.public.brands", None),
            ("EXPLAIN ANALYZE INSERT INTO own VALUES (4)", None),
            ("CREATE TABLE mine AS SELECT n FROM own", Some(0)),
            ("SELECT * FROM mine", Some(3)),
            ("DROP TABLE mine", Some(0)),
            ("SELECT * FROM own", Some(3)),
        ];
        each_async(cases, async |(sql, expected)| {
            let found = run(&host, &session, sql).await;
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{sql}: {found:?}");
            assert!(!matches!(&found, Err(failure) if failure.code == Code::Internal), "{found:?}");
        })
        .await;
        effects::discard(&session).await.expect("only what the session has made is dropped");
        assert_eq!(run(&host, &session, "SELECT * FROM two").await.ok(), Some(2));
        let schema = catalog.schema("public").expect("a schema");
        assert_eq!(schema.table_names(), ["brands"]);
        let others = in_other_catalogs(&session.context).await.expect("names");
        assert_eq!(others, [["shared", "public", "brands"].map(str::to_owned)]);
    }

    #[tokio::test]
    async fn a_catalog_cannot_take_the_place_of_a_connection() {
        let replacing = host(|context, _| {
            context.register_catalog(crate::catalog::CATALOG, shared() as Arc<dyn CatalogProvider>);
            Ok(())
        });
        let key = crate::client::Secret::new("other").expect("a key");
        let other = crate::connection::Connection::builder("http://127.0.0.1:9/v4", key).build().expect("a connection");
        let connected = host(move |context, _| {
            context.register_catalog("other", crate::catalog::catalog(&other)?);
            Ok(())
        });
        let twice = host(|context, _| context.register_table("mentions", numbers()).map(drop));
        let cases = [(replacing, "replaces one of a connection"), (connected, "`named`"), (twice, "already exists")];
        each_async(cases, async |(host, expected)| {
            let refused = host.sessions.find(Credentials::None, None).await.expect_err("no session");
            assert!(refused.message().contains(expected), "{}", refused.message());
        })
        .await;
    }
}
