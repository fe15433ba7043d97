//! The time of synchronizations of a store, compared with that of their requests.
//!
//! Run with `cargo bench --bench sync`. Prints the figures, and fails if a synchronization takes more than 1.2 times as long as its
//! requests, as many at once as the key may have in flight: requests × delay / concurrency. The first one fills an empty store, and the
//! second one brings it up to date a day later.
//!
//! `-- --searches 20 --delay-ms 20` sets the number of saved searches and the delay of the service.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod arguments;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Profile, Secret, SyncOptions, sync};
use tempfile::TempDir;

use arguments::argument;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Largest ratio of the time to that of the requests.
const GOAL: f64 = 1.2;
/// Mentions for each saved search.
const MENTIONS: usize = 100;

#[tokio::main]
async fn main() -> Result<()> {
    let searches: usize = argument("--searches", "200").parse()?;
    let delay = Duration::from_millis(argument("--delay-ms", "100").parse()?);
    let now: DateTime<Utc> = "2026-07-01T12:00:00Z".parse()?;
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 11, searches, mentions: MENTIONS * searches, now }));
    let folder = TempDir::new()?;
    println!("synchronization of 60 days, {} ms a request", delay.as_millis());
    println!("  searches requests  seconds    ratio");
    let mut missed = Vec::new();
    for (what, now) in [("an empty store", now), ("a day later", now + TimeDelta::days(1))] {
        let ratio = synchronized(&corpus, folder.path(), now, delay, what).await?;
        if ratio > GOAL {
            missed.push(format!("{what}: {ratio:.2} times as long as the requests; the goal is {GOAL}"));
        }
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(missed.join("; ").into()),
    }
}

/// Brings a store up to date at a time. Returns the ratio of the time to that of the requests.
async fn synchronized(
    corpus: &Arc<Corpus>,
    store: &Path,
    now: DateTime<Utc>,
    delay: Duration,
    what: &str,
) -> Result<f64> {
    let settings = Settings { clock: Clock::fixed(now), delay, ..Settings::default() };
    let service = simulator::start("127.0.0.1:0".parse()?, Arc::clone(corpus), settings).await?;
    let profile = Profile::v4();
    let at_once = profile.budget.concurrency;
    let builder = Connection::builder(service.base_url(), Secret::new(KEY)?).clock(Clock::fixed(now)).profile(profile);
    // The same store, although the address differs.
    let connection = builder.store(store).store_owner("bench").build()?;
    let options = SyncOptions::since((now - TimeDelta::days(60)).date_naive());
    let begun = Instant::now();
    let synced = sync(&connection, &options, |_| {}).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let ratio = seconds / (synced.requests as f64 * delay.as_secs_f64() / at_once as f64);
    println!("  {:>8} {:>8} {seconds:>8.1} {ratio:>8.2}  {what}", synced.searches, synced.requests);
    Ok(ratio)
}
