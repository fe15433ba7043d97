//! What queries cost in requests, against the least that could answer them rightly.
//!
//! Run with `cargo bench --bench requests` (or `cargo test --bench requests`, which builds faster and asks the same).
//! A fixed simulated corpus answers 24 named queries; each row is checked against the corpus itself, each cost against
//! the least there could be, whose reasoning stands beside it. Fails when the sums differ or any row is wrong.
//!
//! The least that could answer is reckoned like this. A page holds 100 mentions at most, so that n mentions take
//! max(1, ⌈n/99⌉) requests: pages share a row, without which a mention that is deleted meanwhile takes another one along
//! unseen, and the last one is not full, without which nothing shows that it is the last; an answer of the service is about one saved search and one window; nothing but the list tells
//! which saved searches there are; nobody remembers an earlier query.
#![expect(clippy::print_stdout, reason = "the bench prints what it counted")]

mod queries;

use std::error::Error;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_saved_search::simulator::{self, KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Secret, session};

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

    println!("{:<44} {:>6} {:>6} {:>9} {:>9}  rows", "query", "asked", "least", "bytes", "mentions");
    let (mut asked, mut least, mut wrong) = (0, 0, Vec::new());
    for query in queries(&corpus, now) {
        // A session of its own: nothing is remembered.
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
            wrong.push(query.name);
        }
        asked += spent;
        least += query.least;
    }
    println!("{:<44} {asked:>6} {least:>6}  ratio {:.2}", "sum", asked as f64 / least as f64);
    if !wrong.is_empty() {
        return Err(format!("wrong rows: {}", wrong.join(", ")).into());
    }
    if asked > least {
        return Err(format!("{asked} requests were issued where {least} could do").into());
    }
    Ok(())
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
