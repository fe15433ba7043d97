//! Queries that are spread over workers: the rows and the requests of local ones, whatever happens to the workers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion_distributed::Worker;
use datafusion_saved_search::client::HttpLimits;
use datafusion_saved_search::distributed::{TlsSpec, WorkerServer, WorkerSpec, WorkerState, Workers, WorkersSpec};
use datafusion_saved_search::error::Error;
use datafusion_saved_search::flight::FlightServer;
use datafusion_saved_search::host::Upstream;
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, KEY, Preset, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, ErrorKind, Location, Profile, Secret, SyncOptions, session, sync};
use rand::RngExt;
use rand::seq::IndexedRandom;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::binary::savedsearch;
use crate::differential;
use crate::flight::access::Authority;
use crate::flight::{Client, all_rows, open, refusal};
use crate::pages::page;
use crate::store::{QUARTER, Shop, Visit};
use crate::support::{BIG, InProcess, LONGEST, corpus, each, knob, now, rows, runner};

/// Configuration of a worker on loopback.
fn worker(store: &Path) -> WorkerSpec {
    WorkerSpec {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        insecure: false,
        operations: None,
        stores: vec![Location::Folder(store.to_owned())],
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
    for (day, freshness) in [(0, "0s"), (1, "0s"), (1, "2h")] {
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
    assert!(spread > SPREAD.len(), "{spread} plans were spread");
    // The list, at most.
    assert!(steps.last() <= Some(&1), "{steps:?}");
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
    let (cases, seed) = (knob("DISTRIBUTED_CASES", 150), knob("DIFFERENTIAL_SEED", rand::random()));
    println!("DIFFERENTIAL_SEED={seed} DISTRIBUTED_CASES={cases}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (_shop, corpus, visit, cluster) = runtime.block_on(generated(seed));
    let oracle = differential::oracle(&corpus, Preset::V4);
    let sessions = [cluster.session(&visit.stored), cluster.session(&visit.stored)];
    // One brings the store up to date before each query, the other has it at hand.
    runtime.block_on(ask(&sessions[1], "SET savedsearch.freshness = '1h'"));
    let spread = AtomicU64::new(0);
    let compare = |mut query: differential::Query| {
        query.session = usize::from(query.session == 0);
        runtime.block_on(async {
            let plan = sessions[query.session].sql(&format!("EXPLAIN {}", query.sql())).await;
            if let Ok(plan) = plan.map(|plan| plan.collect())
                && let Ok(plan) = plan.await
                && rows(&plan).concat().concat().contains("SpreadExec")
            {
                spread.fetch_add(1, Ordering::Relaxed);
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

/// A query whose stages run on workers.
const COUNTS: &str = "SELECT language, count(DISTINCT author_handle), max(reach) FROM mentions \
     WHERE published_at >= '2026-04-01' AND published_at < '2026-06-29' GROUP BY language ORDER BY 1";

/// A store that needs no request, with its session.
async fn filled() -> (Shop, Visit) {
    let shop = Shop::of(&corpus(), Profile::v4());
    let visit = shop.at(now());
    sync(&visit.connection, &SyncOptions::since("2026-04-01".parse().unwrap()), |_| {}).await.unwrap();
    visit.set("SET savedsearch.freshness = '1h'").await;
    (shop, visit)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_not_spread_names_the_reason() {
    let (shop, visit) = filled().await;
    let cluster = Cluster::over(shop.folder.path()).await;
    let context = cluster.session(&visit.stored);
    let joined = over_a_quarter(SPREAD[4]);
    let spread = plan(&context, &joined).await;
    assert!(spread.contains("SpreadExec: workers=2") && !spread.contains("on the server alone"), "{spread}");
    // The second side would be requested first, although the first one may have no rows.
    ask(&context, "SET savedsearch.freshness = '0s'").await;
    let alone = plan(&context, &joined).await;
    assert!(alone.contains("\nruns on the server alone: it may not need all mentions"), "{alone}");
    assert!(!alone.contains("SpreadExec"), "{alone}");
    let urls = cluster.servers.iter().map(|server| format!("http://{}", server.address())).collect();
    let large = WorkersSpec { urls, tls: None, insecure: false, partition_bytes: 1 << 30 };
    let context = Workers::start(large).await.unwrap().session(&visit.stored);
    let small = plan(&context, COUNTS).await;
    assert!(small.contains("\nruns on the server alone: it reads little of the store"), "{small}");
    let other = plan(&context, "SELECT 1").await;
    assert!(!other.contains("on the server alone"), "{other}");
}

/// Forms that plans for workers cannot have, or had wrong rows for.
#[tokio::test(flavor = "multi_thread")]
async fn concatenations_windows_of_texts_and_scalar_subqueries_are_spread_or_run_on_the_server() {
    let (shop, visit) = filled().await;
    let cluster = Cluster::over(shop.folder.path()).await;
    let context = cluster.session(&visit.stored);
    for sql in [
        "SELECT language || '-' || source AS pair, count(DISTINCT id) FROM mentions WHERE {} GROUP BY 1 ORDER BY 1",
        "SELECT id, lag(title) OVER (PARTITION BY aid ORDER BY published_at, id), \
         first_value(language || '') OVER (PARTITION BY source ORDER BY published_at DESC, id) \
         FROM mentions WHERE {} ORDER BY id",
        "SELECT language, count(DISTINCT id) FROM mentions \
         WHERE {} AND reach > (SELECT avg(reach) FROM mentions WHERE {}) GROUP BY 1 ORDER BY 1",
    ] {
        let sql = over_a_quarter(sql);
        let explained = plan(&context, &sql).await;
        let (spread, alone) = (explained.contains("SpreadExec"), explained.contains("\nruns on the server alone: "));
        assert!(spread != alone, "{sql}\n{explained}");
        let expected = ask(&visit.stored, &sql).await;
        assert!(expected.len() > 1, "{sql}");
        assert_eq!(ask(&context, &sql).await, expected, "{sql}\n{explained}");
    }
}

/// Runs a query that may fail because of a worker.
async fn attempt(context: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>, Error> {
    let rows_of = async { context.sql(sql).await?.collect().await };
    match rows_of.await {
        Ok(batches) => Ok(rows(&batches)),
        Err(error) => Err(match (Error::find(&error), error.find_root()) {
            (Some(own), _) => own.clone(),
            (None, DataFusionError::ResourcesExhausted(text)) => Error::new(ErrorKind::Memory, text),
            _ => panic!("an untyped error: {error}"),
        }),
    }
}

/// Waits until this many workers are in a state.
async fn reached(workers: &Workers, state: WorkerState, count: usize) {
    for _ in 0..3_000 {
        if workers.status().iter().filter(|worker| worker.state == state).count() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", workers.status());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_help_is_not_used_or_named() {
    let (shop, visit) = filled().await;
    let store = shop.folder.path();
    let expected = ask(&visit.stored, COUNTS).await;
    // Without memory, without files, and with another store.
    let poor = WorkerServer::start(WorkerSpec { memory_mib: 0, ..worker(store) }).await.unwrap();
    let [empty, foreign] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    for folder in [&empty, &foreign] {
        std::fs::create_dir(folder.path().join("data")).unwrap();
    }
    std::fs::copy(store.join("store-id"), empty.path().join("store-id")).unwrap();
    let blind = WorkerServer::start(worker(empty.path())).await.unwrap();
    let foreign = WorkerServer::start(worker(foreign.path())).await.unwrap();
    let run = async |server: &WorkerServer| {
        let address = format!("http://{}", server.address());
        let workers = workers(std::slice::from_ref(&address)).await;
        let spread = plan(&workers.session(&visit.stored), COUNTS).await.contains("SpreadExec");
        (spread, attempt(&workers.session(&visit.stored), COUNTS).await, address)
    };
    let (spread, failed, address) = run(&poor).await;
    let error = failed.expect_err("no memory");
    assert!(spread && error.kind() == ErrorKind::Memory && error.to_string().contains(&address), "{error}");
    let (spread, failed, address) = run(&blind).await;
    let error = failed.expect_err("no files");
    assert!(spread && error.kind() == ErrorKind::Store && error.to_string().contains(&address), "{error}");
    let (spread, answer, _) = run(&foreign).await;
    assert!(!spread);
    assert_eq!(answer.unwrap(), expected);

    // Another version, and nobody.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("http://{}", listener.local_addr().unwrap());
    let old = Worker::default().with_version("savedsearch 0.0.1; stores=").into_worker_server();
    let (_, health) = tonic_health::server::health_reporter();
    let incoming = async_stream::stream! { loop { yield listener.accept().await.map(|(stream, _)| stream); } };
    let serving =
        tonic::transport::Server::builder().add_service(health).add_service(old).serve_with_incoming(incoming);
    let _serving = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(serving));
    let gone = "http://127.0.0.1:9".to_owned();
    let known = workers(&[other, gone]).await;
    let mut states: Vec<_> = known.status().into_iter().map(|worker| (worker.state, worker.reason.unwrap())).collect();
    states.sort_by_key(|(state, _)| state.name());
    assert_eq!(states[0].0, WorkerState::OtherVersion);
    assert!(states[0].1.contains("0.0.1"), "{}", states[0].1);
    assert_eq!(states[1].0, WorkerState::Unreachable);
    let context = known.session(&visit.stored);
    assert!(!plan(&context, COUNTS).await.contains("SpreadExec"));
    assert_eq!(ask(&context, COUNTS).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_shuts_down_ends_its_queries_first() {
    let (shop, visit) = filled().await;
    let Cluster { mut servers, workers } = Cluster::over(shop.folder.path()).await;
    let context = workers.session(&visit.stored);
    let expected = ask(&visit.stored, COUNTS).await;
    let stopping = tokio::spawn(servers.pop().unwrap().shut_down());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(7) {
        assert_eq!(attempt(&context, COUNTS).await.unwrap(), expected);
    }
    stopping.await.unwrap().unwrap();
    reached(&workers, WorkerState::Healthy, 1).await;
}

/// A worker in a process of its own.
struct Process {
    store: String,
    address: String,
    child: Child,
}

impl Process {
    fn start(store: &str, listen: &str) -> Self {
        let mut child = savedsearch(&["--store", store, "worker", "--listen", listen, "--drain-seconds", "5"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line =
            lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("listening on"))).unwrap().unwrap();
        // Its log goes on.
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.trim_start_matches("listening on ").to_owned();
        Self { store: store.to_owned(), address, child }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill -{name}");
    }

    /// Starts it again at the same address.
    fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let (store, address) = (self.store.clone(), self.address.clone());
        *self = Self::start(&store, &address);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn queries_survive_workers_that_die_hang_and_return() {
    let queries = knob("DISTRIBUTED_FAULTS", 40);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (shop, visit) = runtime.block_on(filled());
    let expected = runtime.block_on(ask(&visit.stored, COUNTS));
    let store = shop.folder.path().to_str().unwrap();
    let processes: Vec<Mutex<Process>> = (0..2).map(|_| Mutex::new(Process::start(store, "127.0.0.1:0"))).collect();
    let addresses: Vec<String> =
        processes.iter().map(|process| format!("http://{}", process.lock().unwrap().address)).collect();
    let workers = runtime.block_on(workers(&addresses));
    let context = workers.session(&visit.stored);
    runtime.block_on(reached(&workers, WorkerState::Healthy, 2));
    assert!(runtime.block_on(plan(&context, COUNTS)).contains("SpreadExec: workers=2"));
    let (done, answers, failures) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = rand::rng();
            while !done.load(Ordering::Relaxed) {
                let mut process = processes.choose(&mut random).unwrap().lock().unwrap();
                match random.random_range(0..4) {
                    0 => {
                        let _ = process.child.kill();
                        std::thread::sleep(Duration::from_millis(random.random_range(0..2_000)));
                    }
                    1 => {
                        process.signal("STOP");
                        std::thread::sleep(Duration::from_millis(random.random_range(100..6_000)));
                        process.signal("CONT");
                    }
                    2 => process.signal("TERM"),
                    _ => std::thread::sleep(Duration::from_millis(random.random_range(0..1_000))),
                }
                if random.random_bool(0.5) {
                    process.restart();
                }
                drop(process);
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        for number in 0..queries {
            let begun = Instant::now();
            match runtime.block_on(attempt(&context, COUNTS)) {
                Ok(rows) => {
                    assert_eq!(rows, expected, "query {number}");
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Worker, "{error}");
                    let named = addresses.iter().any(|address| error.to_string().contains(address));
                    assert!(named, "the worker is named: {error}");
                    failures.lock().unwrap().push(error.to_string());
                }
            }
            assert!(begun.elapsed() < LONGEST, "query {number} took {:?}", begun.elapsed());
            std::thread::sleep(Duration::from_millis(100));
        }
        done.store(true, Ordering::Relaxed);
    });
    let failures = failures.into_inner().unwrap();
    println!("{} answers, {} failures: {:?}", answers.load(Ordering::Relaxed), failures.len(), failures.last());
    assert!(answers.into_inner() > queries / 10, "{failures:#?}");
    // All is well again, and then nobody is left.
    processes.iter().for_each(|process| process.lock().unwrap().restart());
    runtime.block_on(reached(&workers, WorkerState::Healthy, 2));
    assert_eq!(runtime.block_on(attempt(&context, COUNTS)).unwrap(), expected);
    drop(processes);
    runtime.block_on(reached(&workers, WorkerState::Unreachable, 2));
    assert!(!runtime.block_on(plan(&context, COUNTS)).contains("SpreadExec"));
    assert_eq!(runtime.block_on(attempt(&context, COUNTS)).unwrap(), expected);
}

/// Passes connections on, and keeps what goes to the worker.
async fn listened(to: String) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, heard) = (format!("http://{}", listener.local_addr().unwrap()), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let worker = TcpStream::connect(&to).await.unwrap();
            let ((mut from, mut back), (mut answer, mut on)) = (client.into_split(), worker.into_split());
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 << 10];
                while let Ok(read @ 1..) = from.read(&mut bytes).await {
                    kept.lock().unwrap().extend_from_slice(&bytes[..read]);
                    if on.write_all(&bytes[..read]).await.is_err() {
                        break;
                    }
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut answer, &mut back).await });
        }
    });
    (address, heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_hear_neither_keys_nor_the_service() {
    let (shop, visit) = filled().await;
    let server = WorkerServer::start(worker(shop.folder.path())).await.unwrap();
    let (address, heard) = listened(server.address().to_string()).await;
    let known = workers(&[address]).await;
    let context = known.session(&visit.stored);
    visit.set("SET savedsearch.freshness = '0s'").await;
    let joined = "SELECT s.name, count(DISTINCT m.id) FROM mentions m JOIN saved_searches s ON s.aid = m.aid \
                  WHERE m.published_at >= '2026-04-01' AND m.published_at < '2026-06-29' AND m.aid = '183772' GROUP BY s.name";
    for sql in [COUNTS, joined] {
        let mut expected = ask(&visit.plain, sql).await;
        let mut answer = ask(&context, sql).await;
        expected.sort();
        answer.sort();
        assert_eq!(answer, expected, "{sql}");
    }
    let heard = heard.lock().unwrap().clone();
    let contains = |text: &str| heard.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(contains("parquet"), "plans were sent");
    each([KEY, "stored.test", "/v4", "authorization", shop.folder.path().to_str().unwrap()], |secret| {
        assert!(!contains(secret), "{secret}");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_and_servers_show_certificates() {
    let (shop, visit) = filled().await;
    let (authority, stranger) = (Authority::new(), Authority::new());
    let tls = |of: &Authority, trusted: &Authority| {
        let (certificate, key) = of.vouch();
        TlsSpec { certificate, key, client_authorities: Some(trusted.certificate.clone()) }
    };
    let mut servers = Vec::new();
    for _ in 0..2 {
        let spec = WorkerSpec { tls: Some(tls(&authority, &authority)), ..worker(shop.folder.path()) };
        servers.push(WorkerServer::start(spec).await.unwrap());
    }
    let urls: Vec<String> =
        servers.iter().map(|server| format!("https://localhost:{}", server.address().port())).collect();
    let start = async |tls: Option<TlsSpec>| {
        Workers::start(WorkersSpec { urls: urls.clone(), tls, insecure: true, partition_bytes: 1 }).await
    };
    let known = start(Some(tls(&authority, &authority))).await.unwrap();
    // `localhost` may be an IPv6 address as well, at which nobody listens.
    let healthy = |known: &Workers| known.status().iter().filter(|worker| worker.state == WorkerState::Healthy).count();
    assert_eq!(healthy(&known), 2, "{:?}", known.status());
    let context = known.session(&visit.stored);
    assert!(plan(&context, COUNTS).await.contains("SpreadExec: workers=2"));
    assert_eq!(ask(&context, COUNTS).await, ask(&visit.stored, COUNTS).await);
    for (of, trusted) in [(&stranger, &authority), (&authority, &stranger)] {
        assert_eq!(healthy(&start(Some(tls(of, trusted))).await.unwrap()), 0);
    }
    let error = start(None).await.expect_err("no certificates").to_string();
    assert!(error.contains("https needs certificates"), "{error}");
    let clear = servers.iter().map(|server| format!("http://{}", server.address())).collect::<Vec<_>>();
    let clear = WorkersSpec { urls: clear, tls: None, insecure: true, partition_bytes: 1 };
    assert_eq!(healthy(&Workers::start(clear).await.unwrap()), 0);

    let refused = async |spec: WorkerSpec| WorkerServer::start(spec).await.expect_err("refused").to_string();
    let spec = || worker(shop.folder.path());
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let error = refused(WorkerSpec { listen: everywhere, ..spec() }).await;
    assert!(error.contains("may only listen on a loopback address"), "{error}");
    let anybody = TlsSpec { client_authorities: None, ..tls(&authority, &authority) };
    let error = refused(WorkerSpec { tls: Some(anybody), ..spec() }).await;
    assert!(error.contains("anybody could send plans"), "{error}");
    let error = refused(WorkerSpec { stores: Vec::new(), ..spec() }).await;
    assert!(error.contains("a worker needs a store"), "{error}");
    assert!(
        refused(WorkerSpec { stores: vec![Location::Folder("/nonexistent".into())], ..spec() })
            .await
            .contains("/nonexistent")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_and_their_server_replace_certificates_while_they_run() {
    let (shop, visit) = filled().await;
    let (old, new) = (Authority::new(), Authority::new());
    let tls = |of: &Authority| {
        let (certificate, key) = of.vouch();
        TlsSpec { certificate, key, client_authorities: Some(of.certificate.clone()) }
    };
    let mut servers = Vec::new();
    for _ in 0..2 {
        let spec = WorkerSpec { tls: Some(tls(&old)), ..worker(shop.folder.path()) };
        servers.push(WorkerServer::start(spec).await.unwrap());
    }
    let urls: Vec<String> =
        servers.iter().map(|server| format!("https://localhost:{}", server.address().port())).collect();
    let start = async |of: &Authority| {
        let spec = WorkersSpec { urls: urls.clone(), tls: Some(tls(of)), insecure: false, partition_bytes: 1 };
        Workers::start(spec).await.unwrap()
    };
    let healthy = |known: &Workers| known.status().iter().filter(|worker| worker.state == WorkerState::Healthy).count();
    let known = start(&old).await;
    assert_eq!((healthy(&known), healthy(&*start(&new).await)), (2, 0), "{:?}", known.status());
    // What cannot be used changes nothing.
    let wrong = TlsSpec { key: "no key".to_owned(), ..tls(&new) };
    let error = servers[0].renewal().run(Some(wrong.clone())).unwrap_err().to_string();
    assert!(error.contains("invalid certificate or key"), "{error}");
    let anybody = TlsSpec { client_authorities: None, ..tls(&new) };
    assert!(servers[0].renewal().run(Some(anybody)).unwrap_err().to_string().contains("anybody could send plans"));
    assert!(servers[0].renewal().run(None).unwrap_err().to_string().contains("only by a restart"));
    known.renew_certificates(wrong).unwrap_err();
    assert_eq!(healthy(&*start(&old).await), 2);
    for server in &servers {
        server.renewal().run(Some(tls(&new))).unwrap();
    }
    assert_eq!((healthy(&*start(&old).await), healthy(&*start(&new).await)), (0, 2));
    // Rows move between the workers as well.
    known.renew_certificates(tls(&new)).unwrap();
    reached(&known, WorkerState::Healthy, 2).await;
    let context = known.session(&visit.stored);
    assert!(plan(&context, COUNTS).await.contains("SpreadExec: workers=2"));
    assert_eq!(ask(&context, COUNTS).await, ask(&visit.stored, COUNTS).await);
    let clear = WorkerServer::start(worker(shop.folder.path())).await.unwrap().renewal();
    assert!(clear.run(Some(tls(&new))).is_err() && clear.run(None).is_ok());
}

/// They have a few seconds for a handshake.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_send_nothing_keep_no_server_from_a_worker() {
    let (shop, _visit) = filled().await;
    let authority = Authority::new();
    let tls = || {
        let (certificate, key) = authority.vouch();
        TlsSpec { certificate, key, client_authorities: Some(authority.certificate.clone()) }
    };
    let server = WorkerServer::start(WorkerSpec { tls: Some(tls()), ..worker(shop.folder.path()) }).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(server.address()).await.unwrap());
    }
    let urls = vec![format!("https://localhost:{}", server.address().port())];
    let known = Workers::start(WorkersSpec { urls, tls: Some(tls()), insecure: false, partition_bytes: 1 });
    let known = known.await.unwrap();
    assert_eq!(known.status()[0].state, WorkerState::Healthy, "{:?}", known.status());
    for stream in &silent {
        let read = stream.try_read(&mut [0]).expect_err("open");
        assert_eq!(read.kind(), std::io::ErrorKind::WouldBlock, "the worker did not have to wait for them");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_server_see_no_difference() {
    let (shop, visit) = filled().await;
    let cluster = Cluster::over(shop.folder.path()).await;
    let mut spec = open(Upstream::Own { connection: Arc::clone(&visit.connection), named: Vec::new() });
    spec.host.workers = Some(Arc::clone(&cluster.workers));
    spec.host.settings.freshness = Duration::from_secs(3_600);
    let server = FlightServer::start(spec).await.unwrap();
    let channel = tonic::transport::Channel::from_shared(format!("http://{}", server.address())).unwrap();
    let mut client = Client::new(channel.connect().await.unwrap());
    let before = visit.simulator.requests();
    assert_eq!(all_rows(&mut client, COUNTS).await, ask(&visit.stored, COUNTS).await);
    let explained = all_rows(&mut client, &format!("EXPLAIN {COUNTS}")).await.concat().join("\n");
    assert!(explained.contains("SpreadExec: workers=2") && explained.contains("NetworkShuffleExec"), "{explained}");
    let analyzed = all_rows(&mut client, &format!("EXPLAIN ANALYZE {COUNTS}")).await.concat().join("\n");
    assert!(analyzed.contains("SpreadExec"), "{analyzed}");
    // Workers find words without an index.
    visit.connection.index_store(&[]).unwrap();
    let words = COUNTS.replace("GROUP BY", "AND match(text, 'recall OR acme') GROUP BY");
    assert_eq!(all_rows(&mut client, &words).await, ask(&visit.stored, &words).await);
    let explained = all_rows(&mut client, &format!("EXPLAIN {words}")).await.concat().join("\n");
    assert!(
        explained.contains("SpreadExec") && explained.contains("words=no index: workers read all files"),
        "{explained}"
    );
    assert!(!explained.contains("words=index"), "{explained}");
    // A function of this server's own, in its session's time zone.
    all_rows(&mut client, "SET datafusion.execution.time_zone = 'Asia/Tokyo'").await;
    let by_day = "SELECT arrow_cast(date_trunc('day', published_at AT TIME ZONE 'Asia/Tokyo'), 'Utf8') AS day, repeat(max(id), 2) \
                  FROM mentions WHERE published_at >= '2026-04-01T00:00:00Z' AND published_at < '2026-06-29T00:00:00Z' \
                  GROUP BY day ORDER BY 1";
    visit.set("SET datafusion.execution.time_zone = 'Asia/Tokyo'").await;
    assert_eq!(all_rows(&mut client, by_day).await, ask(&visit.stored, by_day).await);
    let joined = "SELECT language, max(title || 'x'), to_char(max(published_at), '%Y') FROM mentions WHERE published_at >= '2026-04-01T00:00:00Z' \
                  AND published_at < '2026-06-29T00:00:00Z' GROUP BY language ORDER BY 1 NULLS LAST";
    assert_eq!(all_rows(&mut client, joined).await, ask(&visit.stored, joined).await);
    let workers =
        all_rows(&mut client, "SELECT state, version IS NOT NULL, seen_at IS NOT NULL, reason FROM system.workers")
            .await;
    assert_eq!(workers, [["healthy", "true", "true", "NULL"], ["healthy", "true", "true", "NULL"]]);
    // Few rows, and a division by zero, which is an error of the query.
    let small =
        all_rows(&mut client, "EXPLAIN SELECT id FROM mentions WHERE aid = '183772' LIMIT 3").await.concat().join("");
    assert!(!small.contains("SpreadExec"), "{small}");
    let wrong = "SELECT language, sum(1 / (reach - reach)) FROM mentions WHERE published_at >= '2026-04-01T00:00:00Z' \
                 AND published_at < '2026-06-29T00:00:00Z' GROUP BY language";
    let status = refusal(&mut client, wrong).await;
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
    // A limit on the memory of an expression is of the statement as well: another try would end in the same way.
    let large = "SELECT language, max(length(regexp_replace(repeat(text, 4000), '(a|e|i)+(b|c)*', 'x', 'g'))) FROM mentions \
                 WHERE published_at >= '2026-04-01T00:00:00Z' AND published_at < '2026-06-29T00:00:00Z' GROUP BY language";
    let explained = all_rows(&mut client, &format!("EXPLAIN {large}")).await.concat().join("\n");
    assert!(explained.contains("SpreadExec: workers=2"), "{explained}");
    let status = refusal(&mut client, large).await;
    assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("bytes") && !status.message().contains("worker"), "{status}");
    // The list, once.
    assert!(visit.simulator.requests() <= before + 1);
    server.shut_down().await.unwrap();
}

/// The shell blocks of docs/workers.md.
fn blocks() -> Vec<String> {
    let page = page("docs/workers.md").text;
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "```sh" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A script with all of its processes.
struct Running(Child);

impl Running {
    fn start(folder: &Path, script: &str) -> Self {
        use std::os::unix::process::CommandExt;
        let bin = Path::new(env!("CARGO_BIN_EXE_savedsearch")).parent().unwrap();
        let script = format!("export PATH='{}':\"$PATH\"\n{script}", bin.display());
        let mut bash = Command::new("bash");
        bash.args(["-euc", &script]).current_dir(folder).env("XDG_CONFIG_HOME", "/nonexistent");
        for name in ["BASE_URL", "API_KEY", "PROFILE", "CONFIG", "STORE"] {
            bash.env_remove(format!("SAVEDSEARCH_{name}"));
        }
        Self(bash.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

/// Asks a server for the states of its workers, once it runs, until all are healthy: they may start after it.
async fn states_at(port: u16) -> Vec<Vec<String>> {
    let channel = tonic::transport::Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
    let mut states = Vec::new();
    for _ in 0..3_000 {
        if let Ok(channel) = channel.connect().await {
            states = all_rows(&mut Client::new(channel), "SELECT DISTINCT state FROM system.workers").await;
        }
        if states == [["healthy"]] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_workers_works_by_copying_its_lines() {
    let [trial, certificates, worker, server] = <[String; 4]>::try_from(blocks()).unwrap();
    let folder = TempDir::new().unwrap();
    let ports: Vec<(&str, u16)> = ["8080", "50061", "50062", "50051"].map(|port| (port, free_port())).into();
    let port = |name: &str| ports.iter().find(|(port, _)| *port == name).unwrap().1;
    let trial = ports.iter().fold(trial, |trial, (from, to)| trial.replace(&format!(":{from}"), &format!(":{to}")));
    let running = Running::start(folder.path(), &trial);
    assert_eq!(states_at(port("50051")).await, [["healthy"]]);
    let page = page("docs/workers.md").text;
    let explain = page.lines().find(|line| line.starts_with("EXPLAIN ")).unwrap();
    let channel = tonic::transport::Channel::from_shared(format!("http://127.0.0.1:{}", port("50051"))).unwrap();
    let plan = all_rows(&mut Client::new(channel.connect().await.unwrap()), explain).await;
    assert!(plan.iter().flatten().any(|part| part.contains("SpreadExec")), "nothing is spread: {plan:?}");
    drop(running);

    // With certificates; all hosts are this one.
    let here = |script: &str| script.replace("worker1", "localhost");
    let made = Command::new("bash").args(["-euc", &here(&certificates)]).current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let store = folder.path().join("mentions");
    let (first, front) = (free_port(), free_port());
    let worker = here(&worker).replace("0.0.0.0:50061", &format!("127.0.0.1:{first}"));
    let worker = worker.replace("/srv/mentions", store.to_str().unwrap());
    let _worker = Running::start(folder.path(), &worker);
    let server = here(&server)
        .replace("--worker https://worker2:50061", "")
        .replace(":50061", &format!(":{first}"))
        .replace("--auth users --users-file users.toml", &format!("--listen 127.0.0.1:{front}"))
        .replace("https://api.example.com/v4", "http://127.0.0.1:9/v4")
        .replace("/srv/mentions", folder.path().join("other").to_str().unwrap());
    let _server = Running::start(folder.path(), &format!("export SAVEDSEARCH_API_KEY=key\n{server}"));
    let mut states = states_at(front).await;
    for _ in 0..20 {
        if states.contains(&vec!["healthy".to_owned()]) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        states = states_at(front).await;
    }
    panic!("no healthy worker: {states:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_gone_stops_the_requests() {
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 3, searches: 2, mentions: 3_000, now: now() }));
    let clock = Clock::fixed(now());
    let settings = Settings { clock: clock.clone(), delay: Duration::from_millis(40), ..Settings::default() };
    let simulator = Simulator::new(Arc::clone(&corpus), settings);
    let folder = TempDir::new().unwrap();
    let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap());
    let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
    let connection = builder.service(service).clock(clock).store(folder.path()).build().unwrap();
    let aid = corpus.searches[0].aid.clone();
    let mut options = SyncOptions::since("2026-06-20".parse().unwrap());
    options.aids.push(aid.clone());
    sync(&connection, &options, |_| {}).await.unwrap();
    let cluster = Cluster::over(folder.path()).await;
    let context = cluster.session(&session(&connection).unwrap());
    let sql = format!(
        "SELECT count(DISTINCT author_handle) FROM mentions WHERE aid = '{aid}' AND published_at >= '2025-07-01'"
    );
    assert!(plan(&context, &sql).await.contains("SpreadExec"));
    let before = simulator.requests();
    let reading = tokio::spawn({
        let (context, sql) = (context.clone(), sql.clone());
        async move { context.sql(&sql).await.unwrap().collect().await }
    });
    while simulator.requests() < before + 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    reading.abort();
    assert!(reading.await.unwrap_err().is_cancelled());
    let begun = simulator.requests();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(simulator.requests() <= begun + 4, "{} requests after the reader had gone", simulator.requests() - begun);
    // The whole query takes more.
    ask(&context, &sql).await;
    assert!(simulator.requests() > begun + 10, "{} requests", simulator.requests() - begun);
}
