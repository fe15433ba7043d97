//! Counts the HTTP requests of queries and compares them with the minimum that can answer each query correctly.
//!
//! Run with `cargo bench --bench requests` (or `cargo test --bench requests`, which builds faster and sends the same
//! requests). A fixed simulated corpus serves 24 named queries. All rows are checked against the corpus, and each cost
//! against its minimum, which a comment at the query derives. Fails if the sum exceeds the minimum or any row is wrong.
//!
//! The minimum assumes that a page has at most 100 mentions, so that n mentions take max(1, ⌈n/99⌉) requests:
//! consecutive pages share a row, because otherwise a mention deleted between two requests silently hides another one,
//! and the last page is not full, because otherwise nothing proves that it is the last. A response of the service
//! covers one saved search and one window. Only the list names the saved searches. Nothing is cached between queries.
//!
//! All queries run twice: on one machine, and in a session that spreads queries over workers.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod queries;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_saved_search::distributed::{WorkerServer, WorkerSpec, Workers, WorkersSpec};
use datafusion_saved_search::simulator::{self, KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Location, Secret, session};

use self::queries::{NOW, corpus, queries};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let now: DateTime<Utc> = NOW.parse()?;
    let corpus = corpus();
    let clock = Clock::fixed(now);
    let settings = Settings { clock: clock.clone(), ..Settings::default() };
    let service = simulator::start("127.0.0.1:0".parse()?, Arc::clone(&corpus), settings).await?;
    let connection = Connection::builder(service.base_url(), Secret::new(KEY)?).clock(clock).build()?;

    let folder = tempfile::TempDir::new()?;
    std::fs::create_dir(folder.path().join("data"))?;
    let mut servers = Vec::new();
    for _ in 0..2 {
        servers.push(WorkerServer::start(worker(folder.path())?).await?);
    }
    let urls = servers.iter().map(|server| format!("http://{}", server.address())).collect();
    let workers = Workers::start(WorkersSpec { urls, tls: None, insecure: false, partition_bytes: 1 }).await?;

    println!("{:<44} {:>6} {:>6} {:>9} {:>9}  rows", "query", "sent", "min", "bytes", "mentions");
    let (mut asked, mut least, mut wrong) = (0, 0, Vec::new());
    for query in queries(&corpus, now) {
        // A separate session each: nothing is cached.
        let context = workers.session(&session(&connection)?);
        let before = service.requests();
        let batches = context.sql(&query.sql).await.map_err(|e| format!("{}: {e}", query.name))?.collect().await;
        let batches = batches.map_err(|error| format!("{} with workers: {error}", query.name))?;
        if !query.rows.are(&cells(&batches)?) || service.requests() - before != query.least {
            wrong.push(format!("{} with workers, at {} requests", query.name, service.requests() - before));
        }
        let context = session(&connection)?;
        let before = (service.requests(), connection.client().log().records().len());
        let batches = context.sql(&query.sql).await.map_err(|e| format!("{}: {e}", query.name))?.collect().await;
        let batches = batches.map_err(|error| format!("{}: {error}", query.name))?;
        let spent = service.requests() - before.0;
        let records = connection.client().log().records().split_off(before.1);
        let bytes: u64 = records.iter().map(|record| record.bytes).sum();
        let mentions: u64 = records.iter().filter(|r| r.endpoint == "search").map(|record| record.rows).sum();
        let right = query.rows.are(&cells(&batches)?);
        println!(
            "{:<44} {spent:>6} {:>6} {bytes:>9} {mentions:>9}  {}",
            query.name,
            query.least,
            if right { "right" } else { "WRONG" }
        );
        if !right {
            wrong.push(query.name.to_owned());
        }
        asked += spent;
        least += query.least;
    }
    println!("{:<44} {asked:>6} {least:>6}  ratio {:.2}", "sum", asked as f64 / least as f64);
    if !wrong.is_empty() {
        return Err(format!("wrong rows: {}", wrong.join(", ")).into());
    }
    if asked > least {
        return Err(format!("{asked} requests sent, the minimum is {least}").into());
    }
    Ok(())
}

/// A worker on loopback.
fn worker(store: &Path) -> Result<WorkerSpec> {
    Ok(WorkerSpec {
        listen: "127.0.0.1:0".parse()?,
        tls: None,
        insecure: false,
        operations: None,
        stores: vec![Location::Folder(store.to_owned())],
        memory_mib: 256,
        drain: Duration::ZERO,
    })
}

fn cells(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect()));
    }
    Ok(rows)
}
