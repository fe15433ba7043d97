//! Overhead of a scan: its wall time compared with a plain download of the same pages, and the memory of a large one.
//!
//! Run with `cargo bench --bench scan`. Prints the ratios of paired runs, and fails if a goal is missed: wall time at
//! most 1.10 times that of the plain loop, and at most 64 MiB above an idle session while the results of a million
//! mentions are discarded. The service is a simulator in a separate process. `cargo bench --bench scan -- --mentions
//! 10000000 --page 1000` streams more mentions in larger pages.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod service;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::prelude::SessionContext;
use datafusion_saved_search::session;
use datafusion_saved_search::simulator::KEY;
use futures::{StreamExt, TryStreamExt, stream};

use self::service::Service;

const WINDOW: &str = "2026-01-01T00:00:00Z..2026-07-01T12:00:00Z";
const AID: &str = "183772";
const CONCURRENCY: usize = 4;
const PAIRS: usize = 9;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let large = usize::try_from(argument("--mentions", 1_000_000)?)?;
    let page = argument("--page", 100)?;

    let ratio = wall_time().await?;
    let above_idle = peak_memory(large, page).await?;
    if ratio > 1.10 {
        return Err(format!("a scan takes {ratio:.2} times a bare loop; the goal is 1.10").into());
    }
    if above_idle > 64.0 {
        return Err(format!("a scan of {large} mentions takes {above_idle:.0} MiB; the goal is 64").into());
    }
    Ok(())
}

/// Parses the numeric argument after `name` on the command line.
fn argument(name: &str, default: u64) -> Result<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    Ok(arguments.next().map_or(Ok(default), |number| number.parse())?)
}

/// Median of the wall time ratios of paired runs.
async fn wall_time() -> Result<f64> {
    let service = Service::start(10_000, 20, 100)?;
    let context = session(&service.connection()?)?;
    let client = reqwest::Client::builder().build()?;
    bare_loop(&client, &service.base_url).await?;
    scan(&context, 10_000).await?;
    let mut ratios = Vec::new();
    println!("10,000 mentions, 100 per page, 20 ms delay, {CONCURRENCY} concurrent requests");
    for _ in 0..PAIRS {
        let begun = Instant::now();
        let bytes = bare_loop(&client, &service.base_url).await?;
        let bare = begun.elapsed();
        let begun = Instant::now();
        scan(&context, 10_000).await?;
        let ours = begun.elapsed();
        let ratio = ours.as_secs_f64() / bare.as_secs_f64();
        println!("  bare loop {bare:.0?} ({} KB)   SELECT * {ours:.0?}   ratio {ratio:.3}", bytes / 1_000);
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!(
        "  median ratio {median:.3} (goal 1.10; first page of a scan comes alone, to learn the total: 27/26 = 1.04)"
    );
    Ok(median)
}

/// Downloads the same pages without decoding them; their addresses are known in advance.
async fn bare_loop(client: &reqwest::Client, base_url: &str) -> Result<usize> {
    // As in a scan: each page shares a row with the previous one, and the last one is not full.
    let pages = (0..102).map(|page| {
        let url = format!(
            "{base_url}/search?aid={AID}&duration={WINDOW}&timezone=UTC&sortBy=date_asc&dataFrom={}&dataSize=100",
            page * 99
        );
        async { client.get(url).bearer_auth(KEY).send().await?.error_for_status()?.bytes().await }
    });
    let sizes = stream::iter(pages).buffered(CONCURRENCY).map_ok(|body| body.len());
    Ok(sizes.try_fold(0, |sum, size| async move { Ok(sum + size) }).await?)
}

async fn scan(context: &SessionContext, expected: usize) -> Result<()> {
    context.sql("SET savedsearch.max_requests = 1000000").await?;
    context.sql("SET savedsearch.query_deadline = 36000").await?;
    let sql = format!("SELECT * FROM mentions WHERE aid = '{AID}' AND duration = '{WINDOW}'");
    let batches = context.sql(&sql).await?.execute_stream().await?;
    let rows = batches.try_fold(0, |sum, batch| async move { Ok(sum + batch.num_rows()) }).await?;
    if rows == expected { Ok(()) } else { Err(format!("{rows} rows instead of {expected}").into()) }
}

/// Peak memory in MiB above an idle session while the results of a scan of `mentions` are discarded.
async fn peak_memory(mentions: usize, page: u64) -> Result<f64> {
    // A small scan first, because code, pools and allocator caches belong to the idle session.
    let small = Service::start(1_000, 0, page)?;
    scan(&session(&small.connection()?)?, 1_000).await?;
    drop(small);
    let service = Service::start(mentions, 0, page)?;
    let context = session(&service.connection()?)?;
    let peak = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let idle = resident()?;
    let watch = tokio::spawn({
        let peak = Arc::clone(&peak);
        async move {
            loop {
                peak.fetch_max(resident().unwrap_or(0), std::sync::atomic::Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    let begun = Instant::now();
    scan(&context, mentions).await?;
    watch.abort();
    let peak = peak.load(std::sync::atomic::Ordering::Relaxed);
    let above = peak.saturating_sub(idle) as f64 / 1024.0;
    println!("{mentions} mentions streamed and discarded in {:.0?}", begun.elapsed());
    println!("  idle {} MiB, peak {} MiB, {above:.1} MiB above idle (goal 64)", idle / 1024, peak / 1024);
    Ok(above)
}

/// Resident memory of this process in KiB.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
