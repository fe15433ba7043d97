//! Queries that are spread over workers: the rows and the requests of local ones, whatever happens to the workers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::prelude::SessionContext;
use datafusion_saved_search::distributed::{WorkerServer, WorkerSpec, Workers, WorkersSpec};
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, Preset};
use datafusion_saved_search::{Profile, SyncOptions, sync};

use crate::differential;
use crate::store::{QUARTER, Shop, Visit};
use crate::support::{BIG, corpus, knob, now, rows, runner};

/// Configuration of a worker on loopback.
fn worker(store: &Path) -> WorkerSpec {
    WorkerSpec {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        insecure: false,
        operations: None,
        stores: vec![store.to_owned()],
        memory_mib: 512,
        drain: Duration::from_secs(5),
    }
}

/// Workers at these addresses, for files of any size.
async fn workers(addresses: &[String]) -> Arc<Workers> {
    let spec = WorkersSpec { urls: addresses.to_vec(), tls: None, insecure: false, partition_bytes: 1 };
    Workers::start(spec).await.unwrap()
}

/// Two workers of a store, and the server's view of them.
struct Cluster {
    servers: Vec<WorkerServer>,
    workers: Arc<Workers>,
}

impl Cluster {
    async fn over(store: &Path) -> Self {
        let servers =
            [WorkerServer::start(worker(store)).await.unwrap(), WorkerServer::start(worker(store)).await.unwrap()];
        let addresses: Vec<String> = servers.iter().map(|server| format!("http://{}", server.address())).collect();
        Self { workers: workers(&addresses).await, servers: servers.into() }
    }

    /// A session whose plans are as parallel as on a larger machine.
    fn session(&self, local: &SessionContext) -> SessionContext {
        let context = self.workers.session(local);
        context.state_ref().write().config_mut().options_mut().execution.target_partitions = 3;
        context
    }
}

async fn ask(context: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows = rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")));
    if !sql.contains("ORDER BY 1") && !sql.contains("ORDER BY s") && !sql.contains("ORDER BY month") {
        rows.sort();
    }
    rows
}

async fn plan(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(&format!("EXPLAIN {sql}")).await.unwrap().collect().await.unwrap();
    rows(&plan).concat().join("\n")
}

/// Queries that are spread, with the time range as `{}`.
const SPREAD: [&str; 14] = [
    "SELECT language, count(*), sum(reach) FROM mentions WHERE {} GROUP BY language",
    "SELECT count(DISTINCT author_handle) FROM mentions WHERE {} AND aid = '183772'",
    "SELECT date_trunc('month', published_at) AS month, max(reach) FROM mentions WHERE {} GROUP BY month ORDER BY month",
    "SELECT source, round(avg(sentiment_score), 6) AS s FROM mentions WHERE {} GROUP BY source ORDER BY s DESC, source LIMIT 5",
    "SELECT a.id, b.id FROM mentions a JOIN mentions b ON a.author_handle = b.author_handle AND a.id < b.id \
     WHERE a.{} AND b.{} AND a.aid = '183772' AND b.aid = '184889' ORDER BY 1, 2",
    "SELECT language, count(*) FROM mentions WHERE {} GROUP BY ROLLUP (language)",
    "SELECT aid, count(*) FROM mentions WHERE {} AND text LIKE '%battery%' GROUP BY aid",
    "SELECT m.language, s.kind, count(*) FROM mentions m JOIN saved_searches s ON s.aid = m.aid \
     WHERE m.{} GROUP BY m.language, s.kind",
    "SELECT DISTINCT country FROM mentions WHERE {}",
    "SELECT reach + 1, id FROM mentions WHERE {} AND aid = '183772' AND reach > 10 ORDER BY 1 DESC, 2",
    "SELECT max(n) FROM (SELECT aid, language, count(DISTINCT id) AS n FROM mentions WHERE {} GROUP BY aid, language)",
    "SELECT language, count(DISTINCT id) FROM mentions WHERE {} AND duration = '90d' GROUP BY language",
    "SELECT aid, sum(likes) FROM mentions WHERE {} AND aid = '183772' GROUP BY aid \
     UNION ALL SELECT aid, sum(likes) FROM mentions WHERE {} AND aid = '184889' GROUP BY aid",
    "SELECT language, string_agg(id, ',' ORDER BY id) FROM mentions WHERE {} AND aid = '184889' GROUP BY language",
];

/// Writes a query of [`SPREAD`] over a quarter.
fn over_a_quarter(sql: &str) -> String {
    if sql.contains("duration") {
        return sql.replace("{} AND ", "");
    }
    let qualified = |table: &str| QUARTER.replace("published_at", &format!("{table}.published_at"));
    let sql = ["a", "b", "m"]
        .iter()
        .fold(sql.to_owned(), |sql, table| sql.replace(&format!("{table}.{{}}"), &qualified(table)));
    sql.replace("{}", QUARTER)
}

#[tokio::test(flavor = "multi_thread")]
async fn spread_queries_have_the_rows_and_the_requests_of_local_ones() {
    let corpus = corpus();
    let (here, there) = (Shop::of(&corpus, Profile::v4()), Shop::of(&corpus, Profile::v4()));
    let (mut spread, mut steps) = (0, Vec::new());
    // Half a store at first, then all of it, then later the rest; the last time nothing is requested.
    for (day, freshness) in [(0, "0s"), (0, "0s"), (1, "0s"), (1, "2h")] {
        let (local, visit) =
            (here.at(now() + chrono::TimeDelta::days(day)), there.at(now() + chrono::TimeDelta::days(day)));
        if steps.is_empty() {
            for visit in [&local, &visit] {
                let mut options = SyncOptions::since("2026-05-10".parse().unwrap());
                options.aids = vec![BIG.to_owned()];
                sync(&visit.connection, &options, |_| {}).await.unwrap();
            }
        }
        let cluster = Cluster::over(there.folder.path()).await;
        let context = cluster.session(&visit.stored);
        for context in [&local.stored, &context] {
            ask(context, &format!("SET savedsearch.freshness = '{freshness}'")).await;
        }
        let mut requests = [0, 0];
        for sql in SPREAD.map(over_a_quarter) {
            let before = [local.simulator.requests(), visit.simulator.requests()];
            let explained = plan(&context, &sql).await;
            assert_eq!(visit.simulator.requests(), before[1], "planning requests nothing: {sql}");
            spread += usize::from(explained.contains("SpreadExec"));
            let expected = ask(&local.stored, &sql).await;
            assert_eq!(ask(&context, &sql).await, expected, "{sql}\n{explained}");
            let cost = [local.simulator.requests() - before[0], visit.simulator.requests() - before[1]];
            assert_eq!(cost[0], cost[1], "{sql}\n{explained}\n{}", plan(&local.stored, &sql).await);
            requests = [requests[0] + cost[0], requests[1] + cost[1]];
        }
        steps.push(requests[1]);
    }
    assert!(spread > 2 * SPREAD.len(), "{spread} plans were spread");
    assert_eq!(steps.last(), Some(&0), "{steps:?}");
}

/// The store of a small service, its workers and a session.
async fn generated(seed: u64) -> (Shop, Arc<Corpus>, Visit, Cluster) {
    let Corpus { searches, .. } = Corpus::generate(CorpusSpec { seed, searches: 4, mentions: 600, now: now() });
    let corpus = Arc::new(Corpus { searches, recent: [Vec::new(), Vec::new()] });
    let shop = Shop::of(&corpus, Profile::v4());
    let visit = shop.at(now());
    sync(&visit.connection, &SyncOptions::since("2026-03-01".parse().unwrap()), |_| {}).await.unwrap();
    let cluster = Cluster::over(shop.folder.path()).await;
    (shop, corpus, visit, cluster)
}

#[test]
fn generated_queries_that_are_spread_agree_with_a_plain_table() {
    let (cases, seed) = (knob("DISTRIBUTED_CASES", 400), knob("DIFFERENTIAL_SEED", rand::random()));
    println!("DIFFERENTIAL_SEED={seed} DISTRIBUTED_CASES={cases}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (_shop, corpus, visit, cluster) = runtime.block_on(generated(seed));
    let oracle = differential::oracle(&corpus, Preset::V4);
    let sessions = [cluster.session(&visit.stored), cluster.session(&visit.stored)];
    // One brings the store up to date before each query, the other has it at hand.
    runtime.block_on(ask(&sessions[1], "SET savedsearch.freshness = '1h'"));
    let spread = std::sync::atomic::AtomicU64::new(0);
    let compare = |mut query: differential::Query| {
        query.session %= sessions.len();
        runtime.block_on(async {
            let plan = sessions[query.session].sql(&format!("EXPLAIN {}", query.sql())).await;
            if let Ok(plan) = plan.map(|plan| plan.collect())
                && let Ok(plan) = plan.await
                && rows(&plan).concat().concat().contains("SpreadExec")
            {
                spread.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            differential::compare(&sessions, &oracle, &query).await
        })
    };
    runner(cases, seed)
        .run(&differential::query(), compare)
        .unwrap_or_else(|error| panic!("DIFFERENTIAL_SEED={seed}\n{error}"));
    let spread = spread.into_inner();
    println!("{spread} of {cases} queries were spread");
    assert!(spread * 10 > cases, "{spread} of {cases} queries were spread");
    drop(cluster.servers);
}
