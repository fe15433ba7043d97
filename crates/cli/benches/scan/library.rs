//! Scans inside this process.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::session;
use datafusion_saved_search::simulator::KEY;
use futures::{StreamExt, TryStreamExt};
use reqwest::Client;

use super::service::Service;
use super::{AID, CONCURRENCY, Figure, Goal, PAIRS, Result, WINDOW, download, median, pages, plain_client};

/// Columns of a typical report.
const SEVEN: &str = "id, published_at, source, title, author_name, sentiment, reach";

/// `mentions` in pages of `page` for memory.
pub(crate) async fn measure(mentions: usize, page: usize) -> Result<Vec<Figure>> {
    let mut figures = wall_time().await?;
    figures.extend(processor_time().await?);
    figures.extend(memory(mentions, page).await?);
    Ok(figures)
}

/// Wall time of paired runs, time to the first rows, and planning.
async fn wall_time() -> Result<Vec<Figure>> {
    const MENTIONS: usize = 10_000;
    let service = Service::start(MENTIONS, 20, 100)?;
    let context = session(&service.connection()?)?;
    let client = plain_client();
    let url = &service.base_url;
    download(&client, pages(url, MENTIONS, 100)).await?;
    scan(&context, "*", MENTIONS).await?;
    let (mut walls, mut firsts) = (Vec::new(), Vec::new());
    println!("{MENTIONS} mentions, 100 per page, 20 ms delay, {CONCURRENCY} requests at once");
    for pair in 0..PAIRS {
        let begun = Instant::now();
        let bytes = download(&client, pages(url, MENTIONS, 100)).await?;
        let bare = begun.elapsed();
        let begun = Instant::now();
        scan(&context, "*", MENTIONS).await?;
        let ours = begun.elapsed();
        walls.push(ours.as_secs_f64() / bare.as_secs_f64());
        // Windows that were not read before. Of a known one, the program requests further pages together with the first, and the
        // simulator answers sooner.
        let fresh = |text: &str, second: usize| text.replace("T12:00:00Z", &format!("T12:00:{second:02}Z"));
        let page = pages(url, MENTIONS, 100).take(1).map(|url| fresh(&url, 2 * pair + 1));
        let begun = Instant::now();
        download(&client, page).await?;
        let one = begun.elapsed();
        let sql = fresh(&query("*"), 2 * pair + 2);
        let begun = Instant::now();
        let mut batches = context.sql(&sql).await?.execute_stream().await?;
        batches.next().await.ok_or("no rows")??;
        firsts.push(begun.elapsed().as_secs_f64() / one.as_secs_f64());
        println!("  download {bare:.0?} ({} KB)   SELECT * {ours:.0?}", bytes / 1_000);
    }
    let planned = planning(&context, &query("*")).await?;
    // The engine alone: the same columns and conditions, over a table in memory.
    let engine = SessionContext::new();
    let schema = Arc::new(context.table("mentions").await?.schema().as_arrow().clone());
    engine.register_table("mentions", Arc::new(MemTable::try_new(schema, vec![Vec::new()])?))?;
    let alone = planning(&engine, &query("*")).await?;
    Ok(vec![
        Figure::new("wall time of SELECT * / a plain download", median(walls), Goal::AtMost(1.10)),
        Figure::new("time to the first rows / one request", median(firsts), Goal::AtMost(1.10)),
        Figure::new("milliseconds to plan a query", planned, Goal::AtMost(1.0)),
        Figure::new("milliseconds of the engine to plan it over a table in memory", alone, Goal::None),
    ])
}

/// Median time of planning a query, in milliseconds.
async fn planning(context: &SessionContext, sql: &str) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        context.sql(sql).await?.create_physical_plan().await?;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(median(times))
}

/// MB of JSON for each second of processor time of this process, receiving included.
async fn processor_time() -> Result<Vec<Figure>> {
    const MENTIONS: usize = 400_000;
    const PAGE: usize = 1_000;
    let service = Service::start(MENTIONS, 0, PAGE as u64)?;
    let context = session(&service.connection()?)?;
    let client = plain_client();
    let begun = processor()?;
    let bytes = download(&client, pages(&service.base_url, MENTIONS, PAGE)).await? as f64;
    let received = bytes / 1e6 / (processor()? - begun);
    let parsed = tape(&client, pages(&service.base_url, MENTIONS, PAGE).next().ok_or("no page")?).await?;
    let both = (1.0 / received + 1.0 / parsed).recip();
    let mut figures = vec![
        Figure::new("MB/s of JSON a core, download without decoding", received, Goal::None),
        Figure::new("MB/s of JSON a core, simd-json's tape, which has no columns", parsed, Goal::None),
        Figure::new("MB/s of JSON a core, download and tape", both, Goal::None),
    ];
    for (columns, what, least) in [("*", "SELECT *", 600.0), (SEVEN, "seven columns", 900.0)] {
        scan(&context, columns, MENTIONS).await?;
        let begun = processor()?;
        scan(&context, columns, MENTIONS).await?;
        let speed = bytes / 1e6 / (processor()? - begun);
        figures.push(Figure::new(format!("MB/s of JSON a core, {what} to Arrow"), speed, Goal::AtLeast(least)));
    }
    Ok(figures)
}

/// MB of JSON for each second of processor time in which simd-json finds the values of a page.
async fn tape(client: &Client, page: String) -> Result<f64> {
    const TIMES: usize = 300;
    let body = client.get(page).bearer_auth(KEY).send().await?.error_for_status()?.bytes().await?;
    let (mut copy, mut buffers) = (body.to_vec(), simd_json::Buffers::new(body.len()));
    let begun = processor()?;
    for _ in 0..TIMES {
        // The parser writes into its input.
        copy.copy_from_slice(&body);
        black_box(simd_json::to_tape_with_buffers(&mut copy, &mut buffers)?);
    }
    Ok((body.len() * TIMES) as f64 / 1e6 / (processor()? - begun))
}

/// Peak memory above an idle session while the results of a scan of `mentions` are discarded.
async fn memory(mentions: usize, page: usize) -> Result<Vec<Figure>> {
    // A small scan first, because code, pools and allocator caches belong to the idle session.
    let small = Service::start(1_000, 0, page as u64)?;
    scan(&session(&small.connection()?)?, "*", 1_000).await?;
    drop(small);
    let service = Service::start(mentions, 0, page as u64)?;
    let context = session(&service.connection()?)?;
    let peak = Arc::new(AtomicU64::new(0));
    let idle = resident()?;
    let watch = tokio::spawn({
        let peak = Arc::clone(&peak);
        async move {
            loop {
                peak.fetch_max(resident().unwrap_or(0), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    let begun = Instant::now();
    scan(&context, "*", mentions).await?;
    watch.abort();
    println!("{mentions} mentions streamed and discarded in {:.0?}", begun.elapsed());
    let above = peak.load(Ordering::Relaxed).saturating_sub(idle) as f64 / 1024.0;
    Ok(vec![
        Figure::new("MiB of an idle session in this process", idle as f64 / 1024.0, Goal::None),
        Figure::new(format!("MiB above idle while {mentions} mentions stream"), above, Goal::AtMost(48.0)),
    ])
}

fn query(columns: &str) -> String {
    format!("SELECT {columns} FROM mentions WHERE aid = '{AID}' AND duration = '{WINDOW}'")
}

async fn scan(context: &SessionContext, columns: &str, expected: usize) -> Result<()> {
    context.sql("SET savedsearch.max_requests = 1000000").await?;
    context.sql("SET savedsearch.query_deadline = 36000").await?;
    let batches = context.sql(&query(columns)).await?.execute_stream().await?;
    let rows = batches.try_fold(0, |sum, batch| async move { Ok(sum + batch.num_rows()) }).await?;
    if rows == expected { Ok(()) } else { Err(format!("{rows} rows instead of {expected}").into()) }
}

/// Resident memory of this process in KiB.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Processor time of this process in seconds, of all threads, user and system (proc_pid_stat(5), fields 14 and 15).
fn processor() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').ok_or("no name")?;
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(ticks.sum::<std::result::Result<u32, _>>()? as f64 / 100.0)
}
