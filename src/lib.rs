//! SQL over a read-only, rate-limited saved-search analytics API (V4), as DataFusion tables.
//!
//! ```text
//! SQL -> table (which filters can be pushed down) -> pushdown (Expr -> RequestPlan) -> exec (streams) -> client (pages) -> decode (batches) -> SQL
//!                 the profile declares what the service supports; all stages consult it
//! ```
//!
//! A session needs the service's address and an API key. In this example, a simulator replaces the service:
//!
#![cfg_attr(feature = "simulator", doc = "```")]
#![cfg_attr(not(feature = "simulator"), doc = "```ignore")]
//! use std::sync::Arc;
//!
//! use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, Settings};
//! use datafusion_saved_search::{Clock, Connection, Secret, session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::stopped("2026-07-01T12:00:00Z".parse()?);
//! let corpus = Corpus::generate(CorpusSpec { seed: 1, searches: 2, mentions: 500, now: clock.now() });
//! let settings = Settings { clock: clock.clone(), ..Settings::default() };
//! let service = simulator::start("127.0.0.1:0".parse()?, Arc::new(corpus), settings).await?;
//!
//! let connection = Connection::builder(service.base_url(), Secret::new(simulator::KEY)?).clock(clock).build()?;
//! let context = session(&connection)?;
//! let query = "SELECT aid, count(*) FROM mentions WHERE duration = '365d' GROUP BY aid";
//! context.sql(query).await?.show().await?;
//! assert_eq!(service.requests(), 3);    // the list, and one for each saved search
//! # Ok(()) }
//! ```
//!
//! [`install`] adds the same tables, functions and optimizer rules to your own session. [`catalog`] and
//! [`SavedSearchFactory`] (`CREATE EXTERNAL TABLE … STORED AS SAVEDSEARCH`) alone return the same rows, but need more
//! requests. A query returns every mention in its time window exactly once, or an [`Error`]. [`plan_cost`] estimates the
//! cost of a query before it runs; [`spent`] and the table `system.requests` report it afterwards.
//!
//! The crate `datafusion` is re-exported so that versions match. By default the crate contains only the tables. The feature `flight`
//! adds the Flight SQL server, `postgres` that for clients of PostgreSQL, `mcp` the server for agents, `ui` the page, `store` a local
//! copy of what was read, and `simulator` a service for tests. The program `savedsearch` is a crate of its own. Hidden modules are not
//! part of the stable API.

// Each server uses another part of what they share.
#![cfg_attr(
    all(feature = "host", not(all(feature = "flight", feature = "mcp", feature = "postgres", feature = "ui"))),
    allow(dead_code, unreachable_pub, unused_imports, reason = "a build with all servers has no unused code")
)]

mod boxed_future;
#[cfg(test)]
mod cases;
mod catalog;
mod circuit_breaker;
#[doc(hidden)]
pub mod client;
#[doc(hidden)]
pub mod config;
mod connection;
#[doc(hidden)]
pub mod connections;
#[doc(hidden)]
pub mod decode;
#[cfg(feature = "distributed")]
pub mod distributed;
#[cfg(all(unix, feature = "flight", feature = "shell"))]
#[doc(hidden)]
pub mod embedded;
#[doc(hidden)]
pub mod engine_defects;
pub mod error;
mod exec;
mod files;
#[cfg(feature = "flight")]
pub mod flight;
mod functions;
#[cfg(feature = "host")]
pub mod host;
pub mod http;
mod location;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod memory;
mod numbers;
mod optimizer;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "probe")]
#[doc(hidden)]
pub mod probe;
#[doc(hidden)]
pub mod profile;
#[doc(hidden)]
pub mod profile_check;
mod pushdown;
#[doc(hidden)]
pub mod request;
#[cfg(feature = "host")]
mod serving;
mod session;
#[cfg(all(unix, feature = "shell"))]
#[doc(hidden)]
pub mod shell;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
mod sync;
mod table;
#[cfg(all(unix, feature = "ui"))]
pub mod ui;
#[cfg(feature = "store")]
mod verify;
#[cfg(feature = "wording")]
mod wording;
mod words;

pub use catalog::{CATALOG, catalog};
pub use client::{Completeness, RetryPolicy, Secret};
pub use config::{CountFromOverview, EstimateBy, SessionSettings, StoreUse};
pub use connection::{Connection, ConnectionBuilder, UnknownField};
pub use datafusion;
pub use error::{Error, ErrorKind, Place};
pub use exec::{ByLastList, Cost, KnownTotals, PlanCost, Spent, plan_cost, spent};
pub use location::{CatalogUrl, Location};
pub use profile::Profile;
#[doc(inline)]
pub use savedsearch_clock::Clock;
#[cfg(feature = "simulator")]
#[doc(inline)]
pub use savedsearch_simulator as simulator;
pub use session::{install, now, session, session_config, session_of, sql};
#[cfg(feature = "store")]
pub use store::{
    Compacted, Erase, Erased, Export, Exported, Holding, Indexed, StoreStatistics, check_missing_store, has_store,
};
#[cfg(feature = "store")]
pub use sync::{
    Alert, Claim, CutStep, Due, NewMentions, ReadMentions, SyncOptions, SyncStep, Synced, Watch, Webhook, sync,
};
pub use table::SavedSearchFactory;
#[cfg(feature = "store")]
pub use verify::{DifferingDay, verify_counts};

/// Compiles the programs of the documentation as doctests.
#[cfg(all(doctest, feature = "postgres", feature = "simulator", feature = "store"))]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use ::http::{HeaderMap, StatusCode};
    use async_trait::async_trait;
    use serde_json::{Value, json};

    use super::*;
    use crate::cases::each_async;
    use crate::client::{HttpFailure, HttpRequest, HttpResponse, HttpService};

    /// Embedders keep them in the state of a program, and pass them to tasks.
    #[test]
    fn public_types_may_be_shared_by_threads() {
        fn shared<T: std::fmt::Debug + Send + Sync>() {}
        shared::<Connection>();
        shared::<ConnectionBuilder>();
        shared::<Secret>();
        shared::<Error>();
        shared::<PlanCost>();
        shared::<Spent>();
        shared::<HttpRequest>();
        shared::<HttpFailure>();
        shared::<SavedSearchFactory>();
        #[cfg(feature = "host")]
        shared::<host::HostSpec>();
        #[cfg(feature = "host")]
        shared::<host::Host>();
        #[cfg(feature = "store")]
        shared::<NewMentions>();
        #[cfg(feature = "simulator")]
        shared::<simulator::Simulator>();
    }

    /// A service with three mentions, of which a filter by language selects two or one. Counts its requests.
    #[derive(Debug, Default)]
    struct Service(AtomicU64);

    #[async_trait]
    impl HttpService for Service {
        async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let asked: HashMap<String, String> = request.url.query_pairs().into_owned().collect();
            let number = |name: &str| asked[name].parse::<usize>().expect("a number");
            let wanted = |language: &&str| asked.get("language").is_none_or(|asked| asked == language);
            let of: Vec<&str> = ["de", "de", "en"].into_iter().filter(wanted).collect();
            let named = |name: &str| of.iter().filter(|language| **language == name).count();
            let languages = ["de", "en"].into_iter().filter(|name| named(name) > 0);
            let languages: Vec<Value> = languages.map(|name| json!({ "name": name, "count": named(name) })).collect();
            let item = |row: usize| {
                json!({ "id": row.to_string(), "publishedAt": format!("2026-06-30T10:00:0{row}Z"), "language": of[row],
                    "source": { "name": "s" }, "sentiment": { "label": "neutral" } })
            };
            let (from, size) = (number("dataFrom"), number("dataSize"));
            let items: Vec<Value> = (from..(from + size).min(of.len())).map(item).collect();
            let body = json!({
                "search": { "aid": asked["aid"] },
                "window": { "timezone": asked["timezone"], "from": "2026-06-24T12:00:00Z", "to": "2026-07-01T12:00:00Z" },
                "overview": {
                    "totalMentions": of.len(),
                    "sentiment": { "positive": 0, "neutral": of.len(), "negative": 0, "unknown": 0 },
                    "languages": languages,
                    "countries": [],
                    "topSources": [{ "name": "s", "count": of.len() }],
                    "otherCount": 0,
                    "volume": [{ "start": "2026-06-30T00:00:00Z", "end": "2026-07-01T00:00:00Z", "count": of.len() }],
                },
                "mentions": { "total": of.len(), "from": from, "items": items },
            });
            let body = body.to_string();
            let wire_bytes = body.len() as u64;
            Ok(HttpResponse { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into(), wire_bytes })
        }
    }

    /// A count uses the totals, the timeline, lists and mentions of a response, and reads its body once.
    #[tokio::test]
    async fn an_overview_is_decoded_once() {
        let now = "2026-07-01T12:00:00Z".parse().expect("an instant");
        let service = Arc::new(Service::default());
        let connection = Connection::builder("http://once.test/v4", Secret::new("key").expect("a key"))
            .service(Arc::clone(&service) as Arc<dyn HttpService>)
            .clock(Clock::fixed(now))
            .build()
            .expect("a connection");
        let context = session(&connection).expect("a session");
        let cases = [
            ("SELECT count(*) FROM mentions WHERE aid = '1'", 1),
            ("SELECT count(*) FROM mentions WHERE aid = '1' AND language = 'de'", 1),
            ("SELECT language, count(*) FROM mentions WHERE aid = '1' GROUP BY 1", 2),
            ("SELECT published_at::date, count(*) FROM mentions WHERE aid = '1' GROUP BY 1", 1),
            ("SELECT total_mentions FROM overview WHERE aid = '1'", 1),
        ];
        each_async(cases, async |(sql, expected)| {
            let before = (service.0.load(Ordering::Relaxed), decode::passes());
            let batches = context.sql(sql).await.expect("a plan").collect().await.expect("rows");
            let after = (service.0.load(Ordering::Relaxed), decode::passes());
            let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
            assert_eq!((rows, after.0 - before.0, after.1 - before.1), (expected, 1, 1), "{sql}");
        })
        .await;
    }

    /// Stored days are divided once for EXPLAIN, and once for a query, whether its plan is admitted, estimated or run. Except by
    /// EXPLAIN, which the engine writes, the catalog is read on threads for such work.
    #[cfg(all(feature = "store", feature = "simulator"))]
    #[tokio::test]
    async fn stored_days_are_divided_once() {
        let now = "2026-07-01T12:00:00Z".parse().expect("an instant");
        let corpus = simulator::Corpus::generate(simulator::CorpusSpec { seed: 7, searches: 1, mentions: 300, now });
        let aid = corpus.searches[0].aid.clone();
        let settings = simulator::Settings { clock: Clock::fixed(now), ..simulator::Settings::default() };
        let address = "127.0.0.1:0".parse().expect("an address");
        let service = simulator::start(address, Arc::new(corpus), settings).await.expect("a service");
        let folder = tempfile::tempdir().expect("a folder");
        let connection = Connection::builder(service.base_url(), Secret::new(simulator::KEY).expect("a key"))
            .clock(Clock::fixed(now))
            .store(folder.path())
            .build()
            .expect("a connection");
        let context = session(&connection).expect("a session");
        let set = context.sql("SET savedsearch.freshness = '1h'").await.expect("a setting");
        set.collect().await.expect("it is set");
        for (until, requests) in [("11", true), ("11", false), ("21", true)] {
            let sql = format!(
                "SELECT id FROM mentions WHERE aid = '{aid}' AND published_at >= TIMESTAMP '2026-05-01T00:00:00Z' \
                 AND published_at < TIMESTAMP '2026-05-{until}T00:00:00Z'"
            );
            let store = connection.store().expect("a store");
            let (earlier, before) = (exec::decisions(store).len(), service.requests());
            let decided = || exec::decisions(store).split_off(earlier);
            let explained = context.sql(&format!("EXPLAIN {sql}")).await.expect("a plan");
            explained.collect().await.expect("lines");
            assert_eq!(decided().len(), 1, "EXPLAIN: {sql}");
            let plan = context.sql(&sql).await.expect("a plan").create_physical_plan().await.expect("operators");
            let admitted = decided();
            assert_eq!(admitted.len(), 2, "its admission: {sql}");
            assert_ne!(admitted.last(), Some(&std::thread::current().id()), "a thread of the runtime: {sql}");
            plan_cost(&plan);
            plan_cost(&plan);
            assert_eq!(decided(), admitted, "its cost, twice: {sql}");
            datafusion::physical_plan::collect(plan, context.task_ctx()).await.expect("rows");
            assert_eq!(decided(), admitted, "its run: {sql}");
            assert_eq!(service.requests() > before, requests, "{sql}");
        }
    }
}
