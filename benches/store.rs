//! The store: requests of a dashboard with and without it, the time of queries over its files, of planning, and of searches for
//! words.
//!
//! Run with `cargo bench --bench store`. Prints the figures, and fails if a goal is missed:
//!
//! - a refresh of a dashboard of 20 queries over 90 days takes at most one request for each saved search, and one for the
//!   list; none within the freshness;
//! - queries of stored mentions take at most 1.05 times what the engine takes over the same files, and 1.5 times what
//!   DuckDB takes over the same store. DuckDB is run if `--python` names a Python that has it (see
//!   `tests/clients/ducklake.py`);
//! - planning takes at most 20 ms, for one of 200 saved searches or all of them, over three years;
//! - a search for words with an index takes at most 50 ms, and 0.1 times as long as without one. It is compared with `ILIKE` of
//!   DuckDB as well, which has no goal: it looks for letters, not for words.
//!
//! `-- --mentions 5000000 --planned 5000000 --words 100000` sets the mentions of the queries, of the planning and of the searches
//! for words. The goals of the index are for 1,000,000 mentions, the number without `--words`.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod arguments;

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion_saved_search::client::{HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, receive};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Running, Settings, Simulator};
use datafusion_saved_search::{
    Clock, Connection, ErrorKind, Profile, Secret, SyncOptions, session, session_config, sync,
};
use futures::TryStreamExt;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tempfile::TempDir;

use arguments::argument;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Runs of which the median counts.
const RUNS: usize = 9;
/// Saved searches of the dashboard, of the planning, and of the searches for words.
const SEARCHES: [usize; 3] = [6, 200, 20];
/// Mentions in a page, where they are fetched to fill a store.
const PAGE: u64 = 1_000;

#[tokio::main]
async fn main() -> Result<()> {
    let mut missed = Vec::new();
    dashboard(&mut missed).await?;
    planning(argument("--planned", "100000").parse()?, &mut missed).await?;
    queries(argument("--mentions", "400000").parse()?, &mut missed).await?;
    words(argument("--words", "1000000").parse()?, &mut missed).await?;
    match missed.is_empty() {
        true => Ok(()),
        false => Err(missed.join("; ").into()),
    }
}

fn noon() -> Result<DateTime<Utc>> {
    Ok("2026-07-01T12:00:00Z".parse()?)
}

/// The service at a time, with pages of a size.
async fn serve(corpus: &Arc<Corpus>, now: DateTime<Utc>, page: u64) -> Result<Running> {
    let settings = Settings { clock: Clock::fixed(now), largest_page: Some(page), ..Settings::default() };
    Ok(simulator::start("127.0.0.1:0".parse()?, Arc::clone(corpus), settings).await?)
}

fn connect(service: &Running, now: DateTime<Utc>, page: u64, store: Option<&Path>) -> Result<Arc<Connection>> {
    let mut profile = Profile::v4();
    profile.page.max = page;
    let builder = Connection::builder(service.base_url(), Secret::new(KEY)?).clock(Clock::fixed(now)).profile(profile);
    Ok(match store {
        // The same store, although the address differs.
        Some(folder) => builder.store(folder).store_owner("bench").build()?,
        None => builder.build()?,
    })
}

/// Counts the requests of a dashboard: without a store, when it is first shown, and when it is refreshed ten minutes later.
async fn dashboard(missed: &mut Vec<String>) -> Result<()> {
    let now = noon()?;
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 7, searches: SEARCHES[0], mentions: 6_000, now }));
    let aids: Vec<String> =
        corpus.searches.iter().filter(|search| search.team == 0).map(|search| search.aid.clone()).collect();
    let panels = panels(&aids);
    println!("dashboard of {} queries over 90 days of {} saved searches", panels.len(), aids.len());
    let folder = TempDir::new()?;
    let later = now + TimeDelta::minutes(10);
    let show = async |what: &str, now, store: Option<&Path>, freshness: &str| -> Result<u64> {
        let service = serve(&corpus, now, 100).await?;
        let connection = connect(&service, now, 100, store)?;
        for sql in &panels {
            let context = session(&connection)?;
            context.sql(&format!("SET savedsearch.freshness = '{freshness}'")).await?.collect().await?;
            context.sql(sql).await.map_err(|error| format!("{sql}: {error}"))?.collect().await?;
        }
        println!("  {what:<52} {:>6} requests", service.requests());
        Ok(service.requests())
    };
    show("without a store", now, None, "0s").await?;
    show("with a store, first shown", now, Some(folder.path()), "5m").await?;
    let refreshed = show("refreshed 10 minutes later, freshness 5m", later, Some(folder.path()), "5m").await?;
    let free = show("refreshed 10 minutes later, freshness 15m", later, Some(folder.path()), "15m").await?;
    if refreshed > aids.len() as u64 + 1 {
        missed.push(format!("a refresh takes {refreshed} requests for {} saved searches", aids.len()));
    }
    if free > 0 {
        missed.push(format!("a refresh within the freshness takes {free} requests"));
    }
    Ok(())
}

/// The queries of a dashboard: twelve over all saved searches, eight over one.
fn panels(aids: &[String]) -> Vec<String> {
    let since = "published_at >= TIMESTAMP '2026-04-02T00:00:00Z'";
    let all = [
        "SELECT aid, count(*) FROM mentions WHERE SINCE GROUP BY aid",
        "SELECT date_trunc('day', published_at), count(*) FROM mentions WHERE SINCE GROUP BY 1",
        "SELECT language, count(*) FROM mentions WHERE SINCE GROUP BY language",
        "SELECT sentiment, count(*) FROM mentions WHERE SINCE GROUP BY sentiment",
        "SELECT sum(reach) FROM mentions WHERE SINCE",
        "SELECT source, sum(reach) FROM mentions WHERE SINCE GROUP BY source ORDER BY 2 DESC LIMIT 10",
        "SELECT author_name, count(*) FROM mentions WHERE SINCE GROUP BY author_name ORDER BY 2 DESC LIMIT 10",
        "SELECT country, avg(engagement) FROM mentions WHERE SINCE GROUP BY country",
        "SELECT count(DISTINCT author_name) FROM mentions WHERE SINCE",
        "SELECT id, title, reach FROM mentions WHERE SINCE ORDER BY reach DESC, id LIMIT 20",
        "SELECT date_trunc('week', published_at), sum(engagement) FROM mentions WHERE SINCE GROUP BY 1",
        "SELECT count(*) FROM mentions WHERE SINCE AND text LIKE '%recall%'",
    ];
    let one = [
        "SELECT count(*) FROM mentions WHERE aid = AID AND SINCE",
        "SELECT date_trunc('day', published_at), sum(reach) FROM mentions WHERE aid = AID AND SINCE GROUP BY 1",
        "SELECT id, published_at, title FROM mentions WHERE aid = AID AND SINCE AND sentiment = 'negative'",
        "SELECT source, count(*) FROM mentions WHERE aid = AID AND SINCE GROUP BY source ORDER BY 2 DESC LIMIT 5",
    ];
    let of_all = all.iter().map(|sql| (*sql).to_owned());
    let of_one = one.iter().flat_map(|sql| aids.iter().take(2).map(|aid| sql.replace("AID", &format!("'{aid}'"))));
    of_all.chain(of_one).map(|sql| sql.replace("SINCE", since)).collect()
}

/// Times the planning of queries of a store with three years of many saved searches.
async fn planning(mentions: usize, missed: &mut Vec<String>) -> Result<()> {
    let now = noon()?;
    let mut corpus = Corpus::generate(CorpusSpec { seed: 8, searches: SEARCHES[1], mentions, now });
    // Over three years.
    for search in &mut corpus.searches {
        let search = Arc::make_mut(search);
        let first = search.mentions.first().map_or(now, |mention| mention.facts.published);
        let stretch = TimeDelta::days(3 * 365).as_seconds_f64() / (now - first).as_seconds_f64().max(1.0);
        for mention in &mut search.mentions {
            let mention = Arc::make_mut(mention);
            let ago = (now - mention.facts.published).as_seconds_f64() * stretch;
            mention.facts.published = now - TimeDelta::from_std(Duration::from_secs_f64(ago))?;
        }
    }
    let aids: Vec<String> =
        corpus.searches.iter().filter(|search| search.team == 0).map(|search| search.aid.clone()).collect();
    let service = serve(&Arc::new(corpus), now, PAGE).await?;
    let folder = TempDir::new()?;
    let connection = connect(&service, now, PAGE, Some(folder.path()))?;
    let since = (now - TimeDelta::days(3 * 365)).date_naive();
    let begun = Instant::now();
    sync(&connection, &SyncOptions::since(since), |_| {}).await?;
    let holdings = connection.holdings()?;
    let (stored, files) = (
        holdings.iter().map(|holding| holding.mentions).sum::<u64>(),
        holdings.iter().map(|holding| holding.files).sum::<u64>(),
    );
    println!(
        "planning: {stored} mentions of {} saved searches in {files} files (filled in {:.0?})",
        aids.len(),
        begun.elapsed()
    );
    let list: Vec<String> = aids.iter().map(|aid| format!("'{aid}'")).collect();
    let since = "published_at >= TIMESTAMP '2023-07-05T00:00:00Z' AND published_at < TIMESTAMP '2026-07-01T00:00:00Z'";
    for (what, aids) in [("one saved search", &list[..1]), ("all of them", &list[..])] {
        let sql = format!("SELECT sum(reach) FROM mentions WHERE aid IN ({}) AND {since}", aids.join(", "));
        let context = fresh(&connect(&service, now, PAGE, Some(folder.path()))?).await?;
        let begun = Instant::now();
        plan(&context, &sql).await?;
        let first = begun.elapsed();
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let begun = Instant::now();
            plan(&context, &sql).await?;
            times.push(begun.elapsed());
        }
        let median = median(&mut times);
        println!("  {what:<20} first {first:>9.1?}   then {median:>9.1?}");
        if median > Duration::from_millis(20) {
            missed.push(format!("planning a query of {what} takes {median:.1?}; the goal is 20 ms"));
        }
    }
    Ok(())
}

/// Plans a query as EXPLAIN does: with its expected use of the store.
async fn plan(context: &SessionContext, sql: &str) -> Result<()> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    datafusion_saved_search::plan_cost(&plan);
    Ok(())
}

/// A session that takes everything from the store.
async fn fresh(connection: &Arc<Connection>) -> Result<SessionContext> {
    let context = session(connection)?;
    context.sql("SET savedsearch.freshness = '1d'").await?.collect().await?;
    Ok(context)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Times queries of the store, of the engine over its files, and of DuckDB over the store.
async fn queries(mentions: usize, missed: &mut Vec<String>) -> Result<()> {
    let now = noon()?;
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 9, searches: 1, mentions, now }));
    let aid = corpus.searches[0].aid.clone();
    let service = serve(&corpus, now, PAGE).await?;
    let folder = TempDir::new()?;
    let connection = connect(&service, now, PAGE, Some(folder.path()))?;
    let mut options = SyncOptions::since("2026-01-01".parse()?);
    options.aids.push(aid.clone());
    let begun = Instant::now();
    sync(&connection, &options, |_| {}).await?;
    let stored: u64 = connection.holdings()?.iter().map(|holding| holding.mentions).sum();
    println!(
        "queries of {stored} stored mentions (filled in {:.0?}), median of {RUNS}, in milliseconds",
        begun.elapsed()
    );
    let ours = fresh(&connection).await?;
    let plain = SessionContext::new_with_config(session_config().with_create_default_catalog_and_schema(true));
    let files = folder.path().join("data/mentions");
    plain.register_parquet("mentions", files.to_str().ok_or("not UTF-8")?, ParquetReadOptions::default()).await?;
    let within = format!(
        "aid = '{aid}' AND published_at >= TIMESTAMP '2026-01-10T00:00:00Z' AND published_at < TIMESTAMP '2026-06-25T00:00:00Z'"
    );
    let queries = [
        "SELECT sum(reach), avg(engagement), max(published_at) FROM mentions WHERE WITHIN",
        "SELECT author_name, sum(reach) AS total FROM mentions WHERE WITHIN GROUP BY author_name ORDER BY total DESC, author_name LIMIT 20",
        "SELECT source, sum(engagement) FROM mentions WHERE WITHIN GROUP BY source ORDER BY source",
        "SELECT count(*) AS found, sum(length(text)) AS length FROM mentions WHERE WITHIN AND text LIKE '%recall%'",
        "SELECT id, title, reach FROM mentions WHERE WITHIN ORDER BY reach DESC, id LIMIT 50",
        "SELECT id, published_at, title FROM mentions WHERE WITHIN ORDER BY published_at DESC LIMIT 20",
        "SELECT count(DISTINCT author_name) FROM mentions WHERE WITHIN AND language = 'de' AND reach > 100",
    ];
    let requests = service.requests();
    let (mut sums, mut duck) = ([Duration::ZERO; 2], Vec::new());
    for sql in queries {
        let sql = sql.replace("WITHIN", &within);
        let mut times = [Vec::new(), Vec::new()];
        for run in 0..=RUNS {
            for (context, times) in [&ours, &plain].into_iter().zip(&mut times) {
                let begun = Instant::now();
                context.sql(&sql).await?.collect().await?;
                // The first run opens files and fills caches.
                times.extend((run > 0).then(|| begun.elapsed()));
            }
        }
        let medians = times.each_mut().map(|times| median(times));
        println!("  {:>8.1} {:>8.1}  {}", milliseconds(medians[0]), milliseconds(medians[1]), &sql[..60]);
        sums = [sums[0] + medians[0], sums[1] + medians[1]];
        duck.push(sql);
    }
    if service.requests() > requests {
        missed.push(format!("queries of the store sent {} requests", service.requests() - requests));
    }
    let ratio = sums[0].as_secs_f64() / sums[1].as_secs_f64();
    println!(
        "  sum {:.1} of the store, {:.1} of the engine over its files: ratio {ratio:.2} (goal 1.05)",
        milliseconds(sums[0]),
        milliseconds(sums[1])
    );
    if ratio > 1.05 {
        missed.push(format!("queries of the store take {ratio:.2} times those over its files; the goal is 1.05"));
    }
    let python = argument("--python", "");
    if !python.is_empty() {
        let theirs = duckdb(&python, folder.path(), &duck)?;
        let ratio = milliseconds(sums[0]) / theirs;
        println!("  sum {theirs:.1} of DuckDB: ratio {ratio:.2} (goal 1.5)");
        if ratio > 1.5 {
            missed.push(format!("queries of the store take {ratio:.2} times those of DuckDB; the goal is 1.5"));
        }
    }
    Ok(())
}

/// Sum of the medians of DuckDB's times for the same queries, in milliseconds.
fn duckdb(python: &str, store: &Path, queries: &[String]) -> Result<f64> {
    let program = "import sys, time, ducklake\n\
        connection = ducklake.attach(sys.argv[1])\n\
        connection.execute(\"SET threads = \" + sys.argv[2])\n\
        total = 0\n\
        for sql in sys.argv[4:]:\n    \
            times = []\n    \
            for run in range(int(sys.argv[3]) + 1):\n        \
                begun = time.perf_counter()\n        \
                connection.execute(sql).fetchall()\n        \
                times.append(time.perf_counter() - begun)\n    \
            total += sorted(times[1:])[len(times[1:]) // 2] * 1000\n\
        print(total)";
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let queries = queries.iter().map(|sql| sql.replace("FROM mentions", "FROM store.mentions"));
    let output = Command::new(python)
        .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients"))
        .args(["-c", program])
        .arg(store)
        .args([threads.to_string(), RUNS.to_string()])
        .args(queries)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("DuckDB: {}", String::from_utf8_lossy(&output.stderr)).into())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Number of words that texts are made of.
const WORDS: f64 = 200_000.0;
/// Shift of the frequency of words: the word of rank *r* is as frequent as 1 / (*r* + shift) (Mandelbrot 1953).
const SHIFT: f64 = 2.7;

/// A service whose mentions have texts with the frequencies of words of a language. The texts of the simulator have few words.
#[derive(Debug)]
struct Worded(Simulator);

#[async_trait]
impl HttpService for Worded {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpFailure> {
        let failed = |message: String| HttpFailure { kind: ErrorKind::Connect, message, temporary: false };
        let path = request.url[url::Position::BeforePath..].to_owned();
        let (parts, body) = self.0.get(&path, request.headers).await.into_parts();
        let body = body.map_err(|error| failed(error.to_string()));
        let response = receive(parts.status, parts.headers, body, HttpLimits::default()).await?;
        let mut answer: Value = serde_json::from_slice(&response.body).map_err(|error| failed(error.to_string()))?;
        reword(&mut answer);
        Ok(HttpResponse { body: answer.to_string().into(), ..response })
    }
}

/// Replaces the texts of mentions in a response.
fn reword(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(reword),
        Value::Object(members) => {
            let id: Option<u64> = members.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
            match (id, members.get_mut("text")) {
                (Some(id), Some(text)) => *text = Value::from(text_of(id)),
                _ => members.values_mut().for_each(reword),
            }
        }
        _ => {}
    }
}

/// The text of a mention: 8 to 71 words.
fn text_of(id: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(id);
    let words = rng.random_range(8..72);
    let mut text = String::with_capacity(6 * words);
    for at in 0..words {
        text.push_str(if at == 0 { "" } else { " " });
        // The inverse of the sum of the frequencies up to a rank.
        let share: f64 = rng.random();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank of a word")]
        let rank = (SHIFT * (1.0 + WORDS / SHIFT).powf(share) - SHIFT) as usize;
        text.push_str(&word(rank));
    }
    text
}

/// The word of a rank, from zero: one syllable for each digit of a number to the base 100, the lowest first.
fn word(rank: usize) -> String {
    const CONSONANTS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";
    const VOWELS: &[u8; 5] = b"aeiou";
    let (mut word, mut rest) = (String::new(), rank + 1);
    while rest > 0 {
        word.extend([CONSONANTS[rest % 100 / 5], VOWELS[rest % 5]].map(char::from));
        rest /= 100;
    }
    word
}

/// Searches for words: their names, the query of `match`, and a condition for DuckDB on the same letters.
fn searches() -> [(&'static str, String, String); 7] {
    let like = |letters: &str| format!("text ILIKE '%{letters}%'");
    let [often, also, usual, other, rare, rarer] = [20, 200, 1_000, 2_000, 10_000, 50_000].map(word);
    let long = word(30_000);
    let beginning = &long[..4];
    [
        ("a word of 1 in 15,000 mentions", rarer.clone(), like(&rarer)),
        ("a word of 1 in 3,000", rare.clone(), like(&rare)),
        ("a word of 1 in 300", usual.clone(), like(&usual)),
        ("two words", format!("{often} {other}"), format!("{} AND {}", like(&often), like(&other))),
        ("a phrase", format!("\"{often} {also}\""), like(&format!("{often} {also}"))),
        (
            "a word or a beginning",
            format!("{other} OR {beginning}*"),
            format!("({} OR {})", like(&other), like(&format!(" {beginning}"))),
        ),
        (
            "a word without another",
            format!("{other} -{often}"),
            format!("{} AND text NOT ILIKE '%{often}%'", like(&other)),
        ),
    ]
}

/// Times searches for words without an index, with one, and as conditions of DuckDB.
async fn words(mentions: usize, missed: &mut Vec<String>) -> Result<()> {
    let now = noon()?;
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 10, searches: SEARCHES[2], mentions, now }));
    let clock = Clock::fixed(now);
    let settings = Settings { clock: clock.clone(), largest_page: Some(PAGE), ..Settings::default() };
    let service = Simulator::new(corpus, settings);
    let folder = TempDir::new()?;
    let mut profile = Profile::v4();
    profile.page.max = PAGE;
    let builder = Connection::builder("http://words.test/v4", Secret::new(KEY)?).clock(clock).profile(profile);
    let builder = builder.service(Arc::new(Worded(service.clone())));
    let connection = builder.store(folder.path()).store_owner("bench").build()?;
    let begun = Instant::now();
    sync(&connection, &SyncOptions::since("2026-01-01".parse()?), |_| {}).await?;
    connection.compact_store()?;
    let filled = begun.elapsed();
    let context = fresh(&connection).await?;
    let within = "published_at >= TIMESTAMP '2026-04-01T00:00:00Z' AND published_at < TIMESTAMP '2026-07-01T00:00:00Z'";
    let asked = |condition: &str| {
        format!("SELECT count(*) AS found, sum(length(title)) AS length FROM mentions WHERE {within} AND {condition}")
    };
    let searches = searches();
    let queries = searches.each_ref().map(|(_, query, _)| asked(&format!("match(text, '{query}')")));
    let mut scans = Vec::new();
    for sql in &queries {
        scans.push(found(&context, sql).await?);
    }
    let requests = service.requests();
    let begun = Instant::now();
    connection.index_store(&["text".to_owned()])?;
    let indexed = begun.elapsed();
    let sizes = connection.holdings()?.iter().fold((0, 0, 0), |(mentions, bytes, index), holding| {
        (mentions + holding.mentions, bytes + holding.bytes, index + holding.index_bytes)
    });
    let (stored, bytes, index_bytes) = sizes;
    println!(
        "searches of {stored} stored mentions for words (filled in {filled:.0?}, indexed in {indexed:.1?}), median of {RUNS}, in \
         milliseconds"
    );
    println!(
        "  size of the index {:.1} MB, of the files {:.1} MB: ratio {:.2}",
        index_bytes as f64 / 1e6,
        bytes as f64 / 1e6,
        index_bytes as f64 / bytes.max(1) as f64
    );
    println!("  with index  without    ratio    DuckDB  search");
    let python = argument("--python", "");
    for (((name, query, like), sql), (rows, scan)) in searches.iter().zip(&queries).zip(&scans) {
        let (same, time) = found(&context, sql).await?;
        if same != *rows {
            missed.push(format!("the index changes the result of {query}: {same} instead of {rows}"));
        }
        let duck = match python.as_str() {
            "" => "-".to_owned(),
            python => format!("{:.1}", duckdb(python, folder.path(), &[asked(like)])?),
        };
        let ratio = time.as_secs_f64() / scan.as_secs_f64();
        println!("  {:>10.1} {:>8.1} {ratio:>8.3} {duck:>9}  {name}: {query}", milliseconds(time), milliseconds(*scan));
        if ratio > 0.1 {
            missed.push(format!("with an index, {name} takes {ratio:.2} times as long as without; the goal is 0.1"));
        }
        if time > Duration::from_millis(50) {
            missed.push(format!("with an index, {name} takes {time:.1?}; the goal is 50 ms"));
        }
    }
    if service.requests() > requests {
        missed.push(format!("searches for words sent {} requests", service.requests() - requests));
    }
    Ok(())
}

/// The rows of a query in words, and the median of its times. The first run opens files and fills caches.
async fn found(context: &SessionContext, sql: &str) -> Result<(String, Duration)> {
    let (mut rows, mut times) = (String::new(), Vec::new());
    for run in 0..=RUNS {
        let begun = Instant::now();
        let batches = context.sql(sql).await?.collect().await?;
        times.extend((run > 0).then(|| begun.elapsed()));
        rows = pretty_format_batches(&batches)?.to_string();
    }
    Ok((rows, median(&mut times)))
}
