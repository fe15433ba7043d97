//! Spread queries of a store: their time on workers against one process, on equal cores, and the bytes between them.
//!
//! Run with `cargo bench --bench distributed`. Fills a store, then runs 20 aggregations and joins in one process of two
//! threads, with one worker process of two threads, and with two of one thread each. Prints the figures, and fails if workers
//! take more than 1.15 times the time of one process, or any rows differ. One process is the faster of two: this program without
//! workers, and the engine over the same files.
//!
//! `-- --mentions 5000000` sets the mentions, `-- --runs 5` the runs of which the median counts.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod arguments;

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion_saved_search::distributed::{Workers, WorkersSpec};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Profile, Secret, SyncOptions, session, session_config, sync};
use tempfile::TempDir;

use arguments::number;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Cores of each contestant.
const CORES: usize = 2;
/// Mentions in a page, where they are fetched to fill the store.
const PAGE: u64 = 1_000;
/// Size of files in bytes that one partition reads, so that small stores are spread as well.
const PARTITION: usize = 1 << 20;

const SINCE: &str =
    "published_at >= TIMESTAMP '2026-01-10T00:00:00Z' AND published_at < TIMESTAMP '2026-06-25T00:00:00Z'";

/// The queries; `WITHIN` stands for the time range.
const QUERIES: [&str; 20] = [
    "SELECT language, sum(reach), avg(engagement) FROM mentions WHERE WITHIN GROUP BY language ORDER BY 1",
    "SELECT author_name, sum(reach) AS total FROM mentions WHERE WITHIN GROUP BY author_name ORDER BY total DESC, 1 LIMIT 20",
    "SELECT count(DISTINCT author_handle) FROM mentions WHERE WITHIN",
    "SELECT date_trunc('day', published_at), max(reach) FROM mentions WHERE WITHIN GROUP BY 1 ORDER BY 1",
    "SELECT aid, source, sum(likes), sum(shares) FROM mentions WHERE WITHIN GROUP BY aid, source ORDER BY 1, 2",
    "SELECT country, min(published_at), max(published_at) FROM mentions WHERE WITHIN AND reach > 100 GROUP BY country ORDER BY 1",
    "SELECT sum(length(text)) FROM mentions WHERE WITHIN AND text LIKE '%recall%'",
    "SELECT sentiment, language, sum(engagement) FROM mentions WHERE WITHIN GROUP BY sentiment, language ORDER BY 1, 2",
    "SELECT date_trunc('week', published_at) AS week, count(DISTINCT source) FROM mentions WHERE WITHIN GROUP BY week ORDER BY 1",
    "SELECT author_handle, count(DISTINCT aid) AS n, max(reach) FROM mentions WHERE WITHIN GROUP BY author_handle ORDER BY n DESC, 3 DESC, 1 LIMIT 10",
    "SELECT substr(title, 1, 1), sum(reach) FROM mentions WHERE WITHIN GROUP BY 1 ORDER BY 1",
    "SELECT language, stddev(reach) > 0 FROM mentions WHERE WITHIN GROUP BY language ORDER BY 1",
    "SELECT source, sum(reach) FILTER (WHERE sentiment = 'negative') FROM mentions WHERE WITHIN GROUP BY source ORDER BY 1",
    "SELECT extract(hour FROM published_at), sum(views) FROM mentions WHERE WITHIN GROUP BY 1 ORDER BY 1",
    "SELECT aid, max(n) FROM (SELECT aid, author_handle, sum(likes) AS n FROM mentions WHERE WITHIN GROUP BY aid, author_handle) GROUP BY aid ORDER BY 1",
    "SELECT a.language, sum(a.reach) FROM (SELECT * FROM mentions WHERE WITHIN) a JOIN (SELECT author_handle FROM mentions WHERE WITHIN AND reach > 90000 GROUP BY author_handle) b ON a.author_handle = b.author_handle GROUP BY a.language ORDER BY 1",
    "SELECT source, sum(likes) FROM mentions WHERE WITHIN AND country IN (SELECT DISTINCT country FROM mentions WHERE WITHIN AND reach > 99000) GROUP BY source ORDER BY 1",
    "SELECT day, sum(total) FROM (SELECT date_trunc('day', published_at) AS day, author_handle, sum(reach) AS total FROM mentions WHERE WITHIN GROUP BY 1, 2) GROUP BY day ORDER BY 1",
    "SELECT b.aid, count(DISTINCT a.id) FROM (SELECT * FROM mentions WHERE WITHIN) a JOIN (SELECT aid, max(reach) AS most FROM mentions WHERE WITHIN GROUP BY aid) b ON a.aid = b.aid AND a.reach = b.most GROUP BY b.aid ORDER BY 1",
    "SELECT type, platform, sum(comments) FROM mentions WHERE WITHIN GROUP BY CUBE (type, platform) ORDER BY 1, 2",
];

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(CORES).enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<()> {
    let now: DateTime<Utc> = "2026-07-01T12:00:00Z".parse()?;
    let mentions = number("--mentions", 200_000)?;
    let runs = number("--runs", 3)?;
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 11, searches: 8, mentions, now }));
    let clock = Clock::fixed(now);
    let settings = Settings { clock: clock.clone(), largest_page: Some(PAGE), ..Settings::default() };
    let service = simulator::start("127.0.0.1:0".parse()?, corpus, settings).await?;
    let folder = TempDir::new()?;
    let mut profile = Profile::v4();
    profile.page.max = PAGE;
    let builder = Connection::builder(service.base_url(), Secret::new(KEY)?).clock(clock).profile(profile);
    let connection = builder.store(folder.path()).build()?;
    let begun = Instant::now();
    sync(&connection, &SyncOptions::since("2026-01-01".parse()?), |_| {}).await?;
    let (rows, bytes) = connection
        .holdings()?
        .iter()
        .fold((0, 0), |(rows, bytes), holding| (rows + holding.mentions, bytes + holding.bytes));
    println!(
        "{rows} mentions in {} MB of files (filled in {:.0?}), median of {runs}, in milliseconds",
        bytes >> 20,
        begun.elapsed()
    );

    let local = own(&connection, CORES).await?;
    let config = session_config().with_create_default_catalog_and_schema(true).with_target_partitions(CORES);
    let engine = SessionContext::new_with_config(config.with_batch_size(8_192));
    let files = folder.path().join("data/mentions");
    engine.register_parquet("mentions", files.to_str().ok_or("not UTF-8")?, ParquetReadOptions::default()).await?;
    let mut sums = vec![("one process", Duration::ZERO), ("the engine over its files", Duration::ZERO)];
    let mut answers = Vec::new();
    for sql in QUERIES {
        let (answer, time) = median(&local, sql, runs).await?;
        let files = median(&engine, sql, runs).await?.1;
        println!("  {:>9.1}  engine {:>9.1}  {sql}", milliseconds(time), milliseconds(files));
        sums[0].1 += time;
        sums[1].1 += files;
        answers.push(answer);
    }
    let mut wrong = Vec::new();
    for count in [1, 2] {
        let processes = (0..count).map(|_| Process::start(folder.path(), CORES / count)).collect::<Result<Vec<_>>>()?;
        let urls = processes.iter().map(|process| format!("http://{}", process.address)).collect();
        let spec = WorkersSpec { urls, tls: None, insecure: false, partition_bytes: PARTITION };
        let workers = Workers::start(spec).await?;
        let context = workers.session(&own(&connection, CORES).await?);
        let before = sent(&processes)?;
        let mut sum = Duration::ZERO;
        for (sql, expected) in QUERIES.into_iter().zip(&answers) {
            let plan = context.sql(&within(sql)).await?.create_physical_plan().await?;
            if plan.name() != "SpreadExec" {
                return Err(format!("not spread: {sql}").into());
            }
            let (answer, time) = median(&context, sql, runs).await?;
            println!("  {:>9.1}  workers {count}  {sql}", milliseconds(time));
            sum += time;
            if answer != *expected {
                wrong.push(sql);
            }
        }
        let wire = sent(&processes)? - before;
        println!("  workers: {count}; sent {:.1} MB for {} queries", wire as f64 / 1e6, QUERIES.len() * (runs + 1));
        sums.push((if count == 1 { "one worker" } else { "two workers" }, sum));
    }
    let spread = Workers::start(WorkersSpec {
        urls: vec!["http://127.0.0.1:9".to_owned()],
        tls: None,
        insecure: false,
        partition_bytes: WorkersSpec::PARTITION_BYTES,
    });
    let spread = spread.await?.session(&local);
    let small = "SELECT id, title FROM mentions WHERE aid = '183772' ORDER BY published_at DESC LIMIT 10";
    let [alone, with] = [planned(&local, small).await?, planned(&spread, small).await?];
    println!("  planning of a small query: {alone:.0?} on one machine, {with:.0?} where workers are configured");
    let one = sums[0].1.as_secs_f64();
    let mut missed = Vec::new();
    for (what, sum) in &sums {
        let ratio = sum.as_secs_f64() / one;
        println!("  {what:<28} {:>9.1}  ratio {ratio:.2}", milliseconds(*sum));
        if what.contains("worker") && ratio > 1.15 {
            missed.push(format!("{what}: {ratio:.2} times the time of one process; the goal is 1.15"));
        }
    }
    missed.extend(wrong.iter().map(|sql| format!("wrong rows: {sql}")));
    match missed.is_empty() {
        true => Ok(()),
        false => Err(missed.join("; ").into()),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Median time of planning a query.
async fn planned(context: &SessionContext, sql: &str) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        context.sql(sql).await?.create_physical_plan().await?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// A session that takes everything from the store, in this many partitions.
async fn own(connection: &Arc<Connection>, partitions: usize) -> Result<SessionContext> {
    let context = session(connection)?;
    context.sql("SET savedsearch.freshness = '1d'").await?.collect().await?;
    context.state_ref().write().config_mut().options_mut().execution.target_partitions = partitions;
    Ok(context)
}

fn within(sql: &str) -> String {
    sql.replace("WITHIN", SINCE)
}

/// Runs a query. Returns its rows and the median of its times; the first run, which opens files, does not count.
async fn median(context: &SessionContext, sql: &str, runs: usize) -> Result<(String, Duration)> {
    let (mut times, mut rows) = (Vec::new(), Vec::<RecordBatch>::new());
    for run in 0..=runs {
        let begun = Instant::now();
        rows = context.sql(&within(sql)).await?.collect().await.map_err(|error| format!("{sql}: {error}"))?;
        times.extend((run > 0).then(|| begun.elapsed()));
    }
    times.sort_unstable();
    // The last digits of sums of fractions depend on the order of additions.
    let text = pretty_format_batches(&rows)?.to_string();
    let text = text
        .split_whitespace()
        .map(|word| word.parse::<f64>().map_or_else(|_| word.to_owned(), |number| format!("{number:.6e}")));
    Ok((text.filter(|word| !word.starts_with('+')).collect::<Vec<_>>().join(" "), times[times.len() / 2]))
}

/// A worker process.
struct Process {
    child: Child,
    address: String,
    operations: String,
}

impl Process {
    fn start(store: &Path, threads: usize) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_savedsearch"))
            .env("TOKIO_WORKER_THREADS", threads.to_string())
            .arg("--store")
            .arg(store)
            .args(["worker", "--listen", "127.0.0.1:0", "--operations", "127.0.0.1:0", "--log", "error"])
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        let mut after = |beginning: &str| -> Result<String> {
            let line = lines.next().ok_or("the worker ended")??;
            Ok(line.strip_prefix(beginning).ok_or(line.clone())?.to_owned())
        };
        let operations = after("health and metrics on ")?;
        let address = after("listening on ")?;
        Ok(Self { child, address, operations })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes that workers have sent so far.
fn sent(processes: &[Process]) -> Result<u64> {
    let mut sum = 0;
    for process in processes {
        let mut stream = TcpStream::connect(&process.operations)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: worker\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let line = text.lines().find(|line| line.starts_with("savedsearch_worker_sent_bytes_total "));
        sum += line.and_then(|line| line.split(' ').nth(1)).ok_or("no such metric")?.parse::<u64>()?;
    }
    Ok(sum)
}
