//! The store: queries with it agree with queries without it, at the fewest requests, while the service changes.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::{HttpFailure, HttpLimits, HttpResponse, HttpService};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, OTHER_KEY, SavedSearch, Settings, Simulator};
use datafusion_saved_search::{
    CatalogUrl, Clock, Connection, ConnectionBuilder, Erase, ErrorKind, Export, Profile, Secret, SyncOptions, session,
    sync, verify_counts,
};
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::binary::{err, savedsearch};
use crate::support::{
    Asked, BIG, InProcess, LONGEST, OTHER, Scripted, corpus, each_async, knob, now, rows, runner, text_knob,
};

/// A service, and a store of its mentions.
pub(crate) struct Shop {
    pub(crate) folder: TempDir,
    /// Path of the store, if it is not the folder.
    path: Option<PathBuf>,
    searches: Vec<SavedSearch>,
    profile: Profile,
    /// Number by which a store on a server is its own.
    number: u64,
}

/// The service at a time, with sessions that use the store and that do not.
pub(crate) struct Visit {
    pub(crate) simulator: Simulator,
    pub(crate) connection: Arc<Connection>,
    pub(crate) stored: SessionContext,
    pub(crate) plain: SessionContext,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::of(&corpus(), Profile::v4())
    }

    pub(crate) fn of(corpus: &Corpus, profile: Profile) -> Self {
        let searches = corpus.searches.iter().map(|search| search.as_ref().clone()).collect();
        Self { folder: TempDir::new().unwrap(), path: None, searches, profile, number: rand::random() }
    }

    /// Returns the service at a time, and new connections to it.
    pub(crate) fn at(&self, time: DateTime<Utc>) -> Visit {
        self.at_with(time, &[])
    }

    /// The same with faults of the service.
    fn at_with(&self, time: DateTime<Utc>, faults: &[&str]) -> Visit {
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let searches = self.searches.iter().map(|search| Arc::new(search.clone())).collect();
        let corpus = Corpus { searches, recent: [Vec::new(), Vec::new()] };
        let largest_page = Some(self.profile.page.max);
        let settings = Settings { clock: Clock::fixed(time), largest_page, faults, ..Settings::default() };
        let simulator = Simulator::new(Arc::new(corpus), settings);
        let connect = |address: &str| {
            let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
            let builder = Connection::builder(address, Secret::new(KEY).unwrap());
            builder.service(service).clock(Clock::fixed(time)).profile(self.profile.clone())
        };
        let builder = connect("http://stored.test/v4").store(self.path.as_deref().unwrap_or(self.folder.path()));
        let connection = self.shared(builder).build().unwrap();
        let stored = session(&connection).unwrap();
        let plain = session(&connect("http://plain.test/v4").build().unwrap()).unwrap();
        Visit { simulator, connection, stored, plain }
    }

    /// Puts the store to where `STORE_CATALOG` and `STORE_FILES` say, if they are set: a database of PostgreSQL, such as
    /// `postgres://me@localhost/tests`, and a bucket, such as `s3://tests`. Each store has a schema and a prefix of its own.
    fn shared(&self, builder: ConnectionBuilder) -> ConnectionBuilder {
        let builder = match text_knob("STORE_FILES") {
            Some(bucket) => builder.store(format!("{bucket}/{:x}", self.number)),
            None => builder,
        };
        match text_knob("STORE_CATALOG") {
            Some(database) => {
                let url = format!("{database}?schema=test_{:x}", self.number);
                builder.catalog(CatalogUrl::parse(&url, None).unwrap())
            }
            None => builder,
        }
    }

    pub(crate) fn search(&mut self, aid: &str) -> &mut SavedSearch {
        self.searches.iter_mut().find(|search| search.aid == aid).unwrap()
    }

    /// Removes the mention that was published last before a time, and returns its id.
    pub(crate) fn delete_before(&mut self, aid: &str, time: DateTime<Utc>) -> String {
        let mentions = &mut self.search(aid).mentions;
        let at = mentions.partition_point(|mention| mention.facts.published < time) - 1;
        mentions.remove(at).facts.id.to_string()
    }

    /// Adds a mention that was published at a time.
    pub(crate) fn arrive(&mut self, aid: &str, id: &str, time: DateTime<Utc>) {
        let mentions = &mut self.search(aid).mentions;
        let at = mentions.partition_point(|mention| mention.facts.published < time);
        let mut mention = mentions[at.min(mentions.len() - 1)].as_ref().clone();
        mention.facts.id = id.into();
        mention.facts.published = time;
        mentions.insert(at, Arc::new(mention));
    }
}

impl Visit {
    pub(crate) async fn set(&self, sql: &str) {
        self.stored.sql(sql).await.unwrap().collect().await.unwrap();
    }

    /// Runs a query with the store and without it, asserts that the rows agree, and returns the requests of the former.
    pub(crate) async fn cost(&self, sql: &str) -> u64 {
        let ask = async |context: &SessionContext| {
            let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let mut rows = rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")));
            if !sql.contains("ORDER BY") {
                rows.sort();
            }
            rows
        };
        let expected = ask(&self.plain).await;
        let before = self.simulator.requests();
        let actual = ask(&self.stored).await;
        let cost = self.simulator.requests() - before;
        assert_eq!(actual, expected, "{sql}");
        cost
    }

    pub(crate) async fn explain(&self, sql: &str) -> String {
        let plan = self.stored.sql(&format!("EXPLAIN {sql}")).await.unwrap().collect().await.unwrap();
        rows(&plan).concat().join("\n")
    }

    fn notes(&self) -> Vec<String> {
        self.connection.client().log().warnings().into_iter().map(|warning| warning.message.into()).collect()
    }
}

fn days(days: i64) -> TimeDelta {
    TimeDelta::days(days)
}

pub(crate) const QUARTER: &str =
    "published_at >= TIMESTAMP '2026-04-01T00:00:00Z' AND published_at < TIMESTAMP '2026-06-29T00:00:00Z'";

#[tokio::test]
async fn what_was_read_is_not_read_again() {
    let shop = Shop::new();
    let visit = shop.at(now());
    let all = format!("SELECT id, text, extra, tags, duration FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let first = visit.cost(&all).await;
    assert!(first > 5, "{first} {:?}", visit.notes());
    // The days up to the 28th of June had settled or not; those within three days are read again.
    let second = visit.cost(&all).await;
    assert!(second < first / 2, "{second} of {first}");
    visit.set("SET savedsearch.freshness = '1h'").await;
    let cases = [
        &all,
        &format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND {QUARTER}"),
        &format!("SELECT language, count(*) FROM mentions WHERE aid = '{BIG}' AND {QUARTER} GROUP BY language"),
        &format!(
            "SELECT id, reach FROM mentions WHERE aid = '{BIG}' AND {QUARTER} AND language = 'de' ORDER BY reach DESC, id LIMIT 7"
        ),
        &format!(
            "SELECT id, published_at FROM mentions WHERE aid = '{BIG}' AND {QUARTER} ORDER BY published_at DESC, id LIMIT 5"
        ),
        &format!("SELECT min(published_at), max(published_at) FROM mentions WHERE aid = '{BIG}' AND {QUARTER}"),
        &format!(
            "SELECT id, seq, url, text, indexed_at, likes, images, extra, duration, timezone FROM mentions WHERE aid = '{BIG}' AND {QUARTER} AND sentiment = 'negative' AND lower(title) LIKE '%a%'"
        ),
    ];
    each_async(cases, async |sql| {
        assert_eq!(visit.cost(sql).await, 0, "{sql}\n{}", visit.explain(sql).await);
    })
    .await;
}

#[tokio::test]
async fn late_arrivals_and_deletions_are_found_by_their_numbers() {
    let mut shop = Shop::new();
    let all = format!("SELECT id, published_at, title FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let visit = shop.at(now());
    visit.cost(&all).await;
    // Ten days later everything has settled: each day that was open is read once more.
    let settled = shop.at(now() + days(10));
    let again = settled.cost(&all).await;
    let least = settled.cost(&all).await;
    assert_eq!(least, 1, "{again}");
    let explained = settled.explain(&all).await;
    assert!(explained.contains("from the store: 89 days · to confirm: 1 request"), "{explained}");
    shop.arrive(BIG, "late", now() - days(50));
    let later = shop.at(now() + days(11));
    assert_eq!(later.cost(&all).await, 2);
    assert_eq!(later.cost(&all).await, 1);
    shop.delete_before(BIG, now() - days(40));
    let later = shop.at(now() + days(12));
    assert_eq!(later.cost(&all).await, 2);
    assert_eq!(later.cost(&all).await, 1);
}

#[tokio::test]
async fn a_mention_beside_equal_counts_that_is_not_stored_shows_that_others_are_counted() {
    let mut shop = Shop::new();
    let all = format!("SELECT id, published_at, title FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let settled = shop.at(now() + days(10));
    settled.cost(&all).await;
    assert_eq!(settled.cost(&all).await, 1);
    // The count of the day stays the same. The newest mention comes with the counts.
    let last = "2026-06-29T00:00:00Z".parse().unwrap();
    shop.delete_before(BIG, last);
    shop.arrive(BIG, "other", last - TimeDelta::seconds(1));
    let later = shop.at(now() + days(11));
    assert_eq!(later.cost(&all).await, 2);
    assert_eq!(later.cost(&all).await, 1);
}

/// The first pages of saved searches that are not read yet may show that the budget is too small.
#[tokio::test]
async fn no_request_is_repeated_because_of_the_budget() {
    let corpus = Corpus::generate(CorpusSpec { seed: 1, searches: 12, mentions: 20_000, now: now() });
    let text = include_str!("../../src/profile/builtin/v4.toml");
    let instants = text.replace("# relative_as = \"instants\"", "relative_as = \"instants\"");
    let by_instants = Profile::parse(&instants, "instants").unwrap();
    let period = "duration = '3d'";
    let range = "published_at >= '2026-06-28T15:00:00Z' AND published_at < '2026-06-30T11:00:00Z'";
    let cases = [
        (Profile::v4(), "0s", period),
        (Profile::v4(), "0s", range),
        (by_instants, "0s", period),
        // The daily counts are requested first.
        (Profile::v4(), "1h", period),
    ];
    Box::pin(each_async(cases, async |(profile, freshness, condition)| {
        let sql = format!("SELECT count(DISTINCT title) FROM mentions WHERE {condition}");
        let asked = async |max_requests: usize| {
            let shop = Shop::of(&corpus, profile.clone());
            let visit = shop.at(now());
            visit.set(&format!("SET savedsearch.freshness = '{freshness}'")).await;
            visit.set(&format!("SET savedsearch.max_requests = {max_requests}")).await;
            let answer = visit.stored.sql(&sql).await.unwrap().collect().await;
            answer.unwrap_or_else(|error| panic!("{max_requests} requests, {condition}: {error}"));
            let seen: Vec<String> = visit.simulator.take_seen().into_iter().map(|seen| seen.query).collect();
            let different: BTreeSet<&String> = seen.iter().collect();
            assert_eq!(different.len(), seen.len(), "{max_requests} requests, {condition}: {seen:?}");
            seen.len()
        };
        let needed = asked(500).await;
        for max_requests in (needed..2 * needed).step_by(4) {
            assert_eq!(asked(max_requests).await, needed, "{max_requests} requests, {condition}");
        }
    }))
    .await;
}

#[tokio::test]
async fn relative_periods_use_the_store() {
    let shop = Shop::new();
    let visit = shop.at(now());
    visit.set("SET savedsearch.freshness = '15m'").await;
    let sql = format!("SELECT id, duration FROM mentions WHERE aid = '{BIG}' AND duration = '90d'");
    let first = visit.cost(&sql).await;
    assert!(first > 5);
    assert_eq!(visit.cost(&sql).await, 0, "{}", visit.explain(&sql).await);
    let soon = shop.at(now() + TimeDelta::minutes(10));
    soon.set("SET savedsearch.freshness = '15m'").await;
    assert_eq!(soon.cost(&sql).await, 0);
    for table in ["overview", "volume", "breakdowns"] {
        let sql = format!(
            "SELECT * FROM {table} WHERE aid = '{OTHER}' AND {}",
            if table == "volume" { "duration = '30d'" } else { "duration = '7d'" }
        );
        assert!(soon.cost(&sql).await <= 1);
    }
}

#[tokio::test]
async fn days_that_are_missing_are_between_two_ranges() {
    let shop = Shop::new();
    let visit = shop.at(now());
    for (from, to) in [("2026-06-01", "2026-06-04"), ("2026-06-04", "2026-06-06"), ("2026-06-08", "2026-06-11")] {
        let window =
            format!("published_at >= TIMESTAMP '{from}T00:00:00Z' AND published_at < TIMESTAMP '{to}T00:00:00Z'");
        visit.cost(&format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {window}")).await;
    }
    let sql = "SELECT first_day, last_day, days, ranges FROM system.store";
    let stored = rows(&visit.stored.sql(sql).await.unwrap().collect().await.unwrap());
    let expected = ["2026-06-01", "2026-06-10", "8", "2026-06-01..2026-06-05, 2026-06-08..2026-06-10"];
    assert_eq!(stored, [expected.map(str::to_owned).to_vec()]);
    let holdings = visit.connection.holdings().unwrap();
    assert_eq!(holdings[0].ranges.iter().map(|range| (range.end - range.start).num_days()).sum::<i64>(), 8);
}

#[tokio::test]
async fn a_sync_fills_the_store_and_finds_what_changed() {
    let mut shop = Shop::new();
    let since = (now() - days(120)).date_naive();
    let visit = shop.at(now());
    let synced = sync(&visit.connection, &SyncOptions::since(since), |_| {}).await.unwrap();
    assert_eq!(synced.left, 0);
    let holdings = visit.connection.holdings().unwrap();
    assert!(holdings.iter().all(|holding| holding.days == 121), "{holdings:?}");
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    // Four days later the open days are read again, and all others are confirmed.
    shop.arrive(OTHER, "late", now() - days(60));
    let later = shop.at(now() + days(4));
    let mut steps = Vec::new();
    let again = sync(&later.connection, &SyncOptions::since(since), |step| steps.push(step.clone())).await.unwrap();
    assert!(again.requests < synced.requests, "{again:?} {synced:?}");
    later.set("SET savedsearch.freshness = '1h'").await;
    for search in &shop.searches {
        let sql = format!(
            "SELECT id, published_at FROM mentions WHERE aid = '{}' AND published_at >= TIMESTAMP '2026-03-10T00:00:00Z'",
            search.aid
        );
        if search.team == 0 {
            assert_eq!(later.cost(&sql).await, 0, "{}", later.explain(&sql).await);
        }
    }
    // A sync merges small files once there are more than eight.
    assert!(files_in(&shop) <= 8, "{}", files_in(&shop));
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
}

/// The service may no longer have them.
#[tokio::test]
async fn a_clock_that_is_ahead_removes_no_days_before_their_age() {
    let shop = Shop::new();
    let visit = shop.at(now());
    let mut options = SyncOptions::since((now() - days(60)).date_naive());
    options.aids.push(BIG.to_owned());
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    let first = || visit.connection.holdings().unwrap()[0].from;
    let before = first();
    let service = Arc::new(InProcess(visit.simulator.clone(), HttpLimits::default()));
    let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap()).service(service);
    let builder = builder.clock(Clock::fixed(now() + days(10))).profile(Profile::v4());
    let ahead = builder.store(shop.folder.path()).build().unwrap();
    for (retain, expected) in [(65, before), (55, (now() - days(55)).date_naive())] {
        options.retain = Some(retain);
        sync(&ahead, &options, |_| {}).await.unwrap();
        assert_eq!(first(), expected, "{retain} days");
    }
}

/// The days are in the store already, as they were before.
#[tokio::test]
async fn a_sync_that_cannot_store_days_again_is_an_error() {
    let shop = Shop::new();
    let options = SyncOptions::since((now() - days(60)).date_naive());
    sync(&shop.at(now()).connection, &options, |_| {}).await.unwrap();
    let later = shop.at(now() + days(1));
    // No file can be created there.
    let folder = shop.folder.path().join("data/mentions");
    let moved = folder.with_extension("moved");
    std::fs::rename(&folder, &moved).unwrap();
    std::fs::write(&folder, "").unwrap();
    for rescan in [false, true] {
        let mut options = options.clone();
        options.rescan = rescan;
        let error = sync(&later.connection, &options, |_| {}).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Store && error.to_string().contains(" could not be stored: "), "{error}");
    }
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&moved, &folder).unwrap();
    sync(&later.connection, &options, |_| {}).await.unwrap();
}

#[tokio::test]
async fn requests_of_other_queries_are_not_those_of_a_sync() {
    let (alone, shop) = (Shop::new(), Shop::new());
    let options = SyncOptions::since((now() - days(10)).date_naive());
    let expected = sync(&alone.at(now()).connection, &options, |_| {}).await.unwrap();
    let visit = shop.at(now());
    let other = async { visit.stored.sql("SELECT aid FROM saved_searches").await.unwrap().collect().await.unwrap() };
    let (synced, _) = tokio::join!(sync(&visit.connection, &options, |_| {}), other);
    assert_eq!(synced.unwrap(), expected);
}

/// Number of files of mentions that the catalog names.
fn files_in(shop: &Shop) -> u64 {
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    let sql = "SELECT count(*) FROM ducklake_data_file WHERE table_id = 1 AND end_snapshot IS NULL";
    catalog.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn tiny_files_of_queries_are_merged_on_the_way() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(10));
    let mut most = 0;
    for age in 1..120 {
        for aid in [BIG, OTHER] {
            let [from, to] = [age, age - 1].map(|age| (now() - days(age)).format("%Y-%m-%dT00:00:00Z").to_string());
            let day = format!("published_at >= TIMESTAMP '{from}' AND published_at < TIMESTAMP '{to}'");
            visit.cost(&format!("SELECT id, title FROM mentions WHERE aid = '{aid}' AND {day}")).await;
            most = most.max(files_in(&shop));
        }
    }
    // Replaced files stay for an hour.
    let written = data_files(&shop).iter().filter(|name| name.ends_with(".parquet")).count();
    assert!(written > 66 && most > 50 && most <= 64, "{written} files, {most} at a time");
    let quarter = format!("SELECT aid, id, title FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND {QUARTER}");
    visit.set("SET savedsearch.freshness = '1h'").await;
    visit.cost(&quarter).await;
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
}

/// Queries over all saved searches, which the store answers without a request.
const OVER_ALL: [&str; 9] = [
    "SELECT count(*) FROM mentions WHERE SINCE",
    "SELECT aid, id, title, tags, published_at FROM mentions WHERE SINCE",
    "SELECT aid, date_trunc('month', published_at) AS month, count(*), sum(reach) FROM mentions WHERE SINCE GROUP BY 1, 2",
    "SELECT id FROM mentions WHERE SINCE AND text LIKE '%recall%'",
    "SELECT id, published_at FROM mentions WHERE SINCE ORDER BY published_at DESC, id LIMIT 10",
    "SELECT id, published_at FROM mentions WHERE SINCE AND language = 'de' ORDER BY published_at DESC, id LIMIT 10",
    "SELECT id, published_at FROM mentions WHERE SINCE ORDER BY published_at, id",
    "SELECT id, reach FROM mentions WHERE SINCE ORDER BY reach DESC, id LIMIT 10",
    "SELECT aid, id FROM mentions WHERE SINCE AND published_at < TIMESTAMP '2026-06-11T13:37:00Z' AND reach > 1000",
];

#[tokio::test]
async fn files_are_merged_across_saved_searches_and_each_is_opened_once() {
    let shop = Shop::new();
    let since = (now() - days(100)).date_naive();
    let visit = shop.at(now());
    sync(&visit.connection, &SyncOptions::since(since), |_| {}).await.unwrap();
    visit.connection.compact_store().unwrap();
    assert_eq!(files_in(&shop), 1);
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    assert_eq!(visit.connection.compact_store().unwrap().merged, 0, "nothing is left to merge");
    visit.set("SET savedsearch.freshness = '1h'").await;
    // The list is stored as well.
    visit.cost("SELECT count(*) FROM mentions WHERE published_at >= TIMESTAMP '2026-06-01T00:00:00Z'").await;
    for sql in OVER_ALL {
        let sql = sql.replace("SINCE", "published_at >= TIMESTAMP '2026-03-25T00:00:00Z'");
        let before = visit.connection.store_statistics().unwrap().files;
        assert_eq!(visit.cost(&sql).await, 0, "{sql}");
        let opened = visit.connection.store_statistics().unwrap().files - before;
        // In order of time, days are read in tiers, each of which may open a file.
        assert!(opened <= 1 || sql.contains("ORDER BY published_at"), "{sql}: {opened}");
    }
}

/// True if a file below a folder has these bytes.
fn is_in(folder: &std::path::Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => is_in(&path, bytes),
        false => {
            let found = std::fs::read(&path).unwrap();
            let parquet = path.extension().is_some_and(|extension| extension == "parquet");
            // Contents of Parquet files are compressed.
            let texts = if parquet { texts_in(&path) } else { Vec::new() };
            [found, texts].iter().any(|all| all.windows(bytes.len()).any(|some| some == bytes))
        }
    })
}

/// The texts in a Parquet file.
fn texts_in(path: &std::path::Path) -> Vec<u8> {
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let file = std::fs::File::open(path).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    rows(&batches.collect::<Result<Vec<_>, _>>().unwrap()).concat().join("\n").into_bytes()
}

#[tokio::test]
async fn of_an_erased_author_nothing_is_left_in_the_folder() {
    let mut shop = Shop::new();
    let since = (now() - days(100)).date_naive();
    let visit = shop.at(now());
    let mut options = SyncOptions::since(since);
    options.keep_deleted = true;
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    visit.connection.compact_store().unwrap();
    let value =
        async |visit: &Visit, sql: &str| rows(&visit.stored.sql(sql).await.unwrap().collect().await.unwrap()).concat();
    let all = "published_at >= TIMESTAMP '2026-03-25T00:00:00Z'";
    let author = "SELECT author_handle FROM mentions WHERE SINCE AND author_handle IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1";
    let author = value(&visit, &author.replace("SINCE", all)).await.remove(0);
    let of_author = format!("SELECT aid, id FROM mentions WHERE {all} AND author_handle = '{author}' ORDER BY aid, id");
    let theirs = rows(&visit.stored.sql(&of_author).await.unwrap().collect().await.unwrap());
    // One of them is deleted at the service and kept here; another one is in a file of its own and in an earlier version.
    let aid = theirs[0][0].clone();
    let mentions = &mut shop.search(&aid).mentions;
    let at = mentions.iter().position(|mention| mention.facts.id.as_ref() == theirs[0][1].as_str()).unwrap();
    mentions.remove(at);
    let later = shop.at(now() + days(10));
    later.set("SET savedsearch.store = 'write'").await;
    later.set("SET savedsearch.keep_deleted = on").await;
    value(&later, &format!("SELECT id FROM mentions WHERE aid = '{aid}' AND {all}")).await;
    later.set("SET savedsearch.store = 'read-write'").await;
    value(&later, &format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {all} AND language = 'de'")).await;
    let kept = "SELECT count(*) FROM system.deleted_mentions";
    assert_eq!(value(&later, kept).await, ["1"]);
    assert!(is_in(shop.folder.path(), author.as_bytes()));

    let erased = later.connection.erase_stored(None, &Erase::Author(author.clone())).unwrap();
    assert!(erased.mentions >= theirs.len() as u64 - 1 && erased.rewritten > 0 && erased.removed > 0, "{erased:?}");
    assert_eq!(erased.deleted, 1);
    assert!(!is_in(shop.folder.path(), author.as_bytes()));
    assert_eq!(value(&later, kept).await, ["0"]);
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
    assert_eq!(later.connection.erase_stored(None, &Erase::Author(author.clone())).unwrap().mentions, 0);

    // The service has erased the author too: the counts of the days that are left are those that it has.
    for search in &mut shop.searches {
        search.mentions.retain(|mention| mention.facts.author.as_deref() != Some(author.as_str()));
    }
    let last = shop.at(now() + days(20));
    let sql = format!(
        "SELECT id, title FROM mentions WHERE aid = '{aid}' AND {all} AND published_at < TIMESTAMP '2026-06-20'"
    );
    assert_eq!(last.cost(&sql).await, 1, "{}", last.explain(&sql).await);

    // One mention, and the days before a date, which cut a month.
    let id = value(&last, &format!("SELECT max(id) FROM mentions WHERE aid = '{BIG}' AND {QUARTER}")).await.remove(0);
    let erased = last.connection.erase_stored(Some(BIG), &Erase::Id(id.clone())).unwrap();
    assert_eq!((erased.mentions, erased.days), (1, 1));
    assert!(!is_in(&shop.folder.path().join("data"), id.as_bytes()));
    let before = "2026-05-10".parse().unwrap();
    let mentions: u64 = last.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum();
    let erased = last.connection.erase_stored(None, &Erase::Before(before)).unwrap();
    let holdings = last.connection.holdings().unwrap();
    assert!(holdings.iter().all(|holding| holding.from >= before), "{holdings:?}");
    assert_eq!(holdings.iter().map(|holding| holding.mentions).sum::<u64>() + erased.mentions, mentions);
    assert_eq!(last.connection.verify_store().unwrap(), Vec::<String>::new());
    last.cost(&format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {all}")).await;
}

/// Mentions that arrive during an erasure may be among the erased ones.
#[tokio::test]
async fn what_was_requested_before_an_erasure_is_not_stored_after_it() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    let service = InProcess(visit.simulator.clone(), HttpLimits::default());
    let [asked, erased] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    let (telling, awaited) = (Arc::clone(&asked), Arc::clone(&erased));
    let service = Scripted::over(Duration::ZERO, service, move |service, asked| {
        let (telling, awaited) = (Arc::clone(&telling), Arc::clone(&awaited));
        async move {
            let answer = service.call(asked.request).await;
            telling.add_permits(1);
            // Until it is closed. Only a test that fails waits for this long.
            let _ = tokio::time::timeout(LONGEST, awaited.acquire()).await;
            answer
        }
    });
    let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap());
    let builder = builder.service(service).clock(Clock::fixed(now() + days(5)));
    let connection = builder.profile(Profile::v4()).store(shop.folder.path()).build().unwrap();
    let sql = format!(
        "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= TIMESTAMP '2026-06-01T00:00:00Z' \
         AND published_at < TIMESTAMP '2026-06-10T00:00:00Z'"
    );
    let ask = async || session(&connection).unwrap().sql(&sql).await.unwrap().collect().await.unwrap();
    let erase = async {
        asked.acquire().await.unwrap().forget();
        connection.erase_stored(None, &Erase::Id("none".to_owned())).unwrap();
        erased.close();
    };
    let (found, ()) = tokio::join!(ask(), erase);
    assert!(!rows(&found).is_empty());
    assert_eq!(connection.holdings().unwrap(), []);
    let notes = connection.client().log().warnings();
    assert!(notes.iter().any(|note| note.message.contains("has erased mentions")), "{notes:?}");
    assert_eq!(rows(&ask().await), rows(&found));
    assert_eq!(connection.holdings().unwrap().len(), 1);
}

#[tokio::test]
async fn a_row_tells_when_it_was_read() {
    let shop = Shop::new();
    let sql = format!("SELECT DISTINCT as_of FROM mentions WHERE aid = '{BIG}' AND {QUARTER} ORDER BY as_of");
    let ask = async |visit: &Visit| rows(&visit.stored.sql(&sql).await.unwrap().collect().await.unwrap()).concat();
    let visit = shop.at(now() + days(5));
    assert_eq!(ask(&visit).await, ["2026-07-06T12:00:00Z"]);
    let later = shop.at(now() + days(6));
    assert_eq!(ask(&later).await, ["2026-07-06T12:00:00Z"], "nothing has changed");
    later.set("SET savedsearch.store = 'write'").await;
    assert_eq!(ask(&later).await, ["2026-07-07T12:00:00Z"]);
    let since = format!(
        "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND {QUARTER} AND as_of < TIMESTAMP '2026-07-07T00:00:00Z'"
    );
    assert_eq!(rows(&later.stored.sql(&since).await.unwrap().collect().await.unwrap()).concat(), ["0"]);
}

#[tokio::test]
async fn a_row_tells_when_its_mention_was_first_seen() {
    let mut shop = Shop::new();
    let of = |columns: &str, aid: &str| {
        format!("SELECT {columns} FROM mentions WHERE aid = '{aid}' AND {QUARTER} GROUP BY 1 ORDER BY 1")
    };
    let seen = async |visit: &Visit, aid: &str| {
        visit.set("SET savedsearch.store = 'read-write'").await;
        visit.set("SET savedsearch.freshness = '1h'").await;
        let sql = of("first_seen, count(*)", aid);
        // The first query confirms the stored days, and records that for the second one.
        visit.stored.sql(&sql).await.unwrap().collect().await.unwrap();
        let before = visit.simulator.requests();
        let seen = rows(&visit.stored.sql(&sql).await.unwrap().collect().await.unwrap());
        assert_eq!(visit.simulator.requests(), before, "all rows are stored");
        seen.into_iter().map(|row| (row[0].clone(), row[1].parse().unwrap())).collect::<Vec<(String, u64)>>()
    };
    let all = |aid: &str| format!("SELECT id, title FROM mentions WHERE aid = '{aid}' AND {QUARTER}");
    let at = |day: u32| format!("2026-07-{day:02}T12:00:00Z");
    let visit = shop.at(now() + days(5));
    let service = rows(&visit.stored.sql(&of("first_seen", BIG)).await.unwrap().collect().await.unwrap());
    assert_eq!(service, [["NULL"]], "these rows are not from the store");
    visit.cost(&all(BIG)).await;
    let first = seen(&visit, BIG).await;
    assert_eq!((first.len(), &first[0].0), (1, &at(6)));
    let count = first[0].1;
    // One arrives on a settled day, and one is deleted, so that their days are read again.
    shop.arrive(BIG, "late", now() - days(20) - TimeDelta::hours(3));
    shop.delete_before(BIG, now() - days(40));
    let later = shop.at(now() + days(6));
    assert!(later.cost(&all(BIG)).await > 1);
    let expected = [(at(6), count - 1), (at(7), 1)];
    assert_eq!(seen(&later, BIG).await, expected);
    // Also if all days are read again, and their rows are moved to other files.
    let last = shop.at(now() + days(7));
    last.set("SET savedsearch.store = 'write'").await;
    last.cost(&all(BIG)).await;
    assert_eq!(seen(&last, BIG).await, expected);
    last.connection.compact_store().unwrap();
    assert_eq!(seen(&last, BIG).await, expected);
    let kept = shop.at(now() + days(7));
    kept.connection.erase_stored(None, &Erase::Before("2026-04-10".parse().unwrap())).unwrap();
    kept.cost(&all(BIG)).await;
    let again: u64 = seen(&kept, BIG).await.iter().filter(|(time, _)| *time == at(8)).map(|(_, count)| count).sum();
    let removed =
        format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at < '2026-04-10' AND {QUARTER}");
    let removed = rows(&kept.plain.sql(&removed).await.unwrap().collect().await.unwrap()).concat();
    assert_eq!(removed, [again.to_string()], "days that were removed are seen for the first time again");
    assert_eq!(kept.connection.verify_store().unwrap(), Vec::<String>::new());
}

/// A read with a condition is the first one as well.
#[tokio::test]
async fn a_mention_that_was_read_with_a_condition_was_seen_then() {
    let shop = Shop::new();
    let of =
        |columns: &str, rest: &str| format!("SELECT {columns} FROM mentions WHERE aid = '{OTHER}' AND {QUARTER}{rest}");
    let english = " AND language = 'en'";
    shop.at(now() + days(5)).cost(&of("id, title", english)).await;
    let later = shop.at(now() + days(6));
    later.cost(&of("id, title", "")).await;
    later.set("SET savedsearch.freshness = '1h'").await;
    let sql = of("language = 'en' AS english, first_seen", " GROUP BY 1, 2 ORDER BY 1, 2");
    let found = rows(&later.stored.sql(&sql).await.unwrap().collect().await.unwrap());
    let of_english: Vec<&Vec<String>> = found.iter().filter(|row| row[0] == "true").collect();
    assert_eq!(of_english, [&["true", "2026-07-06T12:00:00Z"]]);
    assert!(
        found.iter().all(|row| row[0] == "true" || row[1] == "2026-07-07T12:00:00Z") && found.len() > 1,
        "{found:?}"
    );
}

/// Stores of earlier versions have no such column, nor has one whose profile has a column of this name.
#[tokio::test]
async fn days_without_first_seen_have_null_and_cost_no_request() {
    let mut shop = Shop::new();
    let document = Profile::builtin_document("v4").unwrap();
    let own = document.replace("name = \"snippet\"", "name = \"first_seen\"");
    shop.profile = Profile::parse(&own, "own").unwrap();
    let visit = shop.at(now() + days(5));
    let of = |columns: &str| format!("SELECT {columns} FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    visit.cost(&of("id, first_seen")).await;
    visit.set("SET savedsearch.freshness = '1h'").await;
    assert_eq!(visit.cost(&of("id, first_seen")).await, 0, "the column of the profile");
    shop.profile = Profile::v4();
    let count = async |visit: &Visit| {
        visit.set("SET savedsearch.freshness = '1h'").await;
        let before = visit.simulator.requests();
        let sql = of("count(first_seen), count(*) > 100");
        let found = rows(&visit.stored.sql(&sql).await.unwrap().collect().await.unwrap()).concat();
        assert_eq!(visit.simulator.requests(), before);
        found
    };
    let upgraded = shop.at(now() + days(5));
    assert_eq!(count(&upgraded).await, ["0", "true"]);
    // Nobody knows when the mentions were first seen, also after their days were read again.
    shop.arrive(BIG, "late", now() - days(20));
    let later = shop.at(now() + days(5) + TimeDelta::minutes(10));
    later.set("SET savedsearch.store = 'write'").await;
    later.cost(&of("id, title")).await;
    later.set("SET savedsearch.store = 'read-write'").await;
    assert_eq!(count(&later).await, ["1", "true"]);
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
}

/// A month of the past is one region.
#[tokio::test]
async fn days_of_a_part_of_a_region_are_confirmed() {
    let mut profile = Profile::v4();
    profile.page.max = 10;
    let shop = Shop::of(&corpus(), profile.clone());
    let of = |from: &str, to: &str| {
        format!(
            "SELECT id, title FROM mentions WHERE aid = '{BIG}' AND published_at >= '{from}' AND published_at < '{to}'"
        )
    };
    shop.at(now()).cost(&of("2026-04-01", "2026-05-01")).await;
    let later = shop.at(now() + days(1));
    later.set("SET savedsearch.freshness = '15m'").await;
    for (from, to, cost) in [
        ("2026-04-10", "2026-04-20", 1),
        ("2026-04-12", "2026-04-15", 0),
        ("2026-04-08", "2026-04-22", 1),
        ("2026-04-09", "2026-04-21", 0),
        ("2026-04-01", "2026-05-01", 1),
        ("2026-04-05", "2026-04-30", 0),
    ] {
        assert_eq!(later.cost(&of(from, to)).await, cost, "{from} {to}");
    }
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
    // Without a freshness, nothing is divided.
    let other = Shop::of(&corpus(), profile);
    other.at(now()).cost(&of("2026-04-01", "2026-05-01")).await;
    assert_eq!(other.at(now() + days(1)).cost(&of("2026-04-10", "2026-04-20")).await, 1);
    let catalog = rusqlite::Connection::open(other.folder.path().join("catalog.sqlite")).unwrap();
    let regions: i64 = catalog.query_row("SELECT count(*) FROM savedsearch_coverage", [], |row| row.get(0)).unwrap();
    assert_eq!(regions, 1);
}

/// A month of the past is one region.
#[tokio::test]
async fn a_day_that_another_process_has_read_later_keeps_no_other_day_out() {
    let shop = Shop::new();
    let of = |from: &str, to: &str| {
        format!(
            "SELECT id, title FROM mentions WHERE aid = '{BIG}' AND published_at >= '{from}' AND published_at < '{to}'"
        )
    };
    let read = async |time: DateTime<Utc>, sql: String| {
        let visit = shop.at(time);
        visit.set("SET savedsearch.store = 'write'").await;
        visit.cost(&sql).await;
        assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    };
    let later = now() + TimeDelta::minutes(1);
    read(later, of("2026-04-10", "2026-04-11")).await;
    read(now(), of("2026-04-01", "2026-05-01")).await;
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    let sql = "SELECT as_of, sum(to_day - from_day) FROM savedsearch_coverage GROUP BY as_of ORDER BY as_of";
    let stored = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let stored: Vec<(i64, i64)> =
        catalog.prepare(sql).unwrap().query_map([], stored).unwrap().map(Result::unwrap).collect();
    assert_eq!(stored, [(now().timestamp_micros(), 29), (later.timestamp_micros(), 1)]);
    let visit = shop.at(later);
    visit.set("SET savedsearch.freshness = '1h'").await;
    assert_eq!(visit.cost(&of("2026-04-01", "2026-05-01")).await, 0);
}

/// Another reader of Parquet files, without the catalog, sees each stored mention once.
#[tokio::test]
async fn an_export_has_each_stored_mention_once() {
    let mut shop = Shop::new();
    let options = SyncOptions::since((now() - days(60)).date_naive());
    let visit = shop.at(now());
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    // Days with conditions, replaced rows, and deleted ones.
    let german = "SELECT id, title FROM mentions WHERE language = 'de' AND published_at >= '2026-03-01' AND published_at < '2026-04-01'";
    visit.cost(&format!("{german} AND aid = '{BIG}'")).await;
    shop.delete_before(BIG, now() - days(20));
    shop.arrive(BIG, "late", now() - days(10));
    let later = shop.at(now() + TimeDelta::minutes(10));
    sync(&later.connection, &options, |_| {}).await.unwrap();
    let target = shop.folder.path().join("exported/all");
    let exported = later.connection.export_store(&Export::default(), &target).unwrap();
    let other = SessionContext::new();
    other.register_parquet("exported", target.to_str().unwrap(), Default::default()).await.unwrap();
    let aids: Vec<String> = later.connection.holdings().unwrap().into_iter().map(|holding| holding.aid).collect();
    let all = |aid: &str, from: &str, to: &str| {
        format!("WHERE aid = '{aid}' AND published_at >= '{from}' AND published_at < '{to}' ORDER BY published_at, id")
    };
    let columns = "SELECT aid, id, title, text, reach, tags, extra, published_at FROM";
    let mut mentions = 0;
    for aid in aids.iter().collect::<BTreeSet<_>>() {
        let range = all(aid, "2026-05-02T00:00:00Z", "2026-07-02T00:00:00Z");
        let expected =
            rows(&later.plain.sql(&format!("{columns} mentions {range}")).await.unwrap().collect().await.unwrap());
        let found = rows(&other.sql(&format!("{columns} exported {range}")).await.unwrap().collect().await.unwrap());
        assert!(found == expected, "{aid}: {} instead of {}", found.len(), expected.len());
        mentions += found.len() as u64;
    }
    assert!(mentions > 0);
    assert_eq!((exported.mentions, exported.files), (mentions, 1));
    assert!(exported.conditional > 0 && exported.days > 60, "{exported:?}");
    // A part.
    let part = shop.folder.path().join("part");
    let mut what = Export::default();
    what.aids = vec![OTHER.to_owned()];
    what.since = Some("2026-05-10".parse().unwrap());
    what.before = Some("2026-06-05".parse().unwrap());
    let exported = later.connection.export_store(&what, &part).unwrap();
    let range = all(OTHER, "2026-05-10T00:00:00Z", "2026-06-05T00:00:00Z");
    let expected =
        rows(&later.plain.sql(&format!("{columns} mentions {range}")).await.unwrap().collect().await.unwrap());
    assert_eq!((exported.mentions, exported.days), (expected.len() as u64, 26));
    // Nothing is overwritten, and a failure leaves nothing.
    let error = later.connection.export_store(&what, &part).unwrap_err();
    assert!(error.to_string().ends_with("part is not empty; export to a new folder"), "{error}");
    what.aids = vec!["nope".to_owned()];
    let error = later.connection.export_store(&what, &shop.folder.path().join("none")).unwrap_err();
    assert!(error.to_string().contains("no day of saved search nope is stored; stored: "), "{error}");
    let left = std::fs::read_dir(shop.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        left.map(|name| name.to_string_lossy().into_owned()).all(|name| name != "none" && !name.starts_with(".export"))
    );
}

/// Names of the files below the data folder of a store.
fn data_files(shop: &Shop) -> BTreeSet<String> {
    let folder = shop.folder.path().join("data");
    let tables = std::fs::read_dir(folder).unwrap().map(|table| table.unwrap().path());
    let files = tables.flat_map(|table| std::fs::read_dir(table).unwrap()).map(|file| file.unwrap().path());
    files.map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn a_refresh_that_finds_nothing_new_writes_no_file() {
    let mut shop = Shop::new();
    let sql = format!(
        "SELECT id, title, reach, tags, extra FROM mentions WHERE aid = '{BIG}' AND published_at >= \
         TIMESTAMP '2026-04-01T00:00:00Z' AND published_at < TIMESTAMP '2026-07-01T12:00:00Z'"
    );
    let after = |minutes: i64| now() + TimeDelta::minutes(minutes);
    shop.at(now()).cost(&sql).await;
    let first = data_files(&shop);
    let again = shop.at(after(10));
    let cost = again.cost(&sql).await;
    assert!(cost > 0, "the open days are read again");
    assert_eq!(data_files(&shop), first);
    // The days are as fresh as if they had been written.
    let soon = shop.at(after(20));
    soon.set("SET savedsearch.freshness = '15m'").await;
    assert_eq!(soon.cost(&sql).await, 0);
    // A day that has changed is written, and no other one.
    shop.arrive(BIG, "new", after(-5));
    shop.at(after(30)).cost(&sql).await;
    let changed: Vec<String> = data_files(&shop).difference(&first).cloned().collect();
    let mentions = changed.iter().filter(|name| name.ends_with(".parquet"));
    assert_eq!(mentions.map(|name| &name[..10]).collect::<Vec<_>>(), ["2026-07-01"], "{changed:?}");
    // Days that have settled when they are read again with the same mentions need only a confirmation.
    let settled = data_files(&shop);
    shop.at(now() + days(5)).cost(&sql).await;
    let last = shop.at(now() + days(6));
    assert_eq!(last.cost(&sql).await, 1);
    assert_eq!(data_files(&shop), settled);
    assert_eq!(last.connection.verify_store().unwrap(), Vec::<String>::new());
    // What is asked for is written.
    last.set("SET savedsearch.store = 'write'").await;
    last.cost(&sql).await;
    assert!(data_files(&shop).len() > settled.len());
}

/// From a condition on the day, the engine concludes that the time is constant, and would leave out the sort.
#[tokio::test]
async fn stored_rows_of_one_day_are_sorted() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    let day = "SELECT published_at FROM mentions WHERE published_at::date = '2026-06-15'";
    let ask = async |sql: &str| rows(&visit.stored.sql(sql).await.unwrap().collect().await.unwrap()).concat();
    for searches in
        [format!("aid = '{BIG}'"), "aid IN (SELECT aid FROM saved_searches WHERE kind = 'saved')".to_owned()]
    {
        let mut all = ask(&format!("{day} AND {searches}")).await;
        all.sort_unstable();
        assert!(all.len() > 5, "{}", all.len());
        for rest in ["", " LIMIT 5"] {
            let asked = if rest.is_empty() { all.len() } else { 5 };
            let sql = format!("{day} AND {searches} ORDER BY published_at{rest}");
            assert_eq!(ask(&sql).await, all[..asked], "{sql}");
            let sql = format!("{day} AND {searches} ORDER BY published_at DESC{rest}");
            let expected: Vec<_> = all.iter().rev().take(asked).cloned().collect();
            assert_eq!(ask(&sql).await, expected, "{sql}");
        }
    }
}

/// Keeps the first page of a window until another page of it is requested, once it is armed.
struct FirstPages {
    armed: AtomicBool,
    further: Semaphore,
}

impl FirstPages {
    async fn pass(&self, service: &InProcess, asked: Asked) -> Result<HttpResponse, HttpFailure> {
        // An overview has one mention beside it.
        let page = asked.number("dataSize") > 1;
        let first = asked.text("dataFrom") == "0";
        let answer = service.call(asked.request).await;
        match (page && self.armed.load(Ordering::Relaxed)).then_some(first) {
            Some(true) => {
                // Only a test that fails waits for this long.
                let further = tokio::time::timeout(LONGEST, self.further.acquire()).await;
                further.expect("a page is requested together with the first one").unwrap().forget();
            }
            Some(false) => self.further.add_permits(1),
            None => {}
        }
        answer
    }
}

/// The daily counts that confirm stored days also count those between them.
#[tokio::test]
async fn pages_that_the_store_lacks_are_requested_together() {
    let mut profile = Profile::v4();
    profile.page.max = 20;
    let shop = Shop::of(&corpus(), profile.clone());
    let visit = shop.at(now() + days(5));
    let service = InProcess(visit.simulator.clone(), HttpLimits::default());
    let first_pages = Arc::new(FirstPages { armed: AtomicBool::new(false), further: Semaphore::new(0) });
    let kept = Arc::clone(&first_pages);
    let service = Scripted::over(Duration::ZERO, service, move |service, asked| {
        let kept = Arc::clone(&kept);
        async move { kept.pass(&service, asked).await }
    });
    let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap());
    let builder = builder.service(service).clock(Clock::fixed(now() + days(5)));
    let connection = builder.profile(profile).store(shop.folder.path()).build().unwrap();
    let context = session(&connection).unwrap();
    let ask = async |from: &str, to: &str| {
        let sql = format!(
            "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '{from}T00:00:00Z' AND published_at < '{to}T00:00:00Z'"
        );
        rows(&context.sql(&sql).await.unwrap().collect().await.unwrap()).concat().len()
    };
    let stored = ask("2026-04-01", "2026-05-01").await + ask("2026-06-01", "2026-06-29").await;
    first_pages.armed.store(true, Ordering::Relaxed);
    let all = ask("2026-04-01", "2026-06-29").await;
    assert!(all > stored + 60, "{stored} of {all}");
}

#[tokio::test]
async fn a_sync_reads_saved_searches_beside_each_other() {
    const AT_ONCE: usize = 3;
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    let service = InProcess(visit.simulator.clone(), HttpLimits::default());
    // The first request for each saved search is answered once those for all of them have arrived.
    let first = Arc::new((Mutex::new(HashSet::new()), tokio::sync::Barrier::new(AT_ONCE)));
    let service = Scripted::over(Duration::ZERO, service, move |service, asked| {
        let first = Arc::clone(&first);
        async move {
            let (aids, all) = first.as_ref();
            let is_first = aids.lock().unwrap().insert(asked.parameters["aid"].clone());
            if is_first {
                // Only a test that fails waits for this long.
                let all = tokio::time::timeout(LONGEST, all.wait()).await;
                all.expect("saved searches are requested beside each other");
            }
            service.call(asked.request).await
        }
    });
    let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap());
    let builder = builder.service(service).clock(Clock::fixed(now() + days(5))).profile(shop.profile.clone());
    let connection = builder.store(shop.folder.path()).build().unwrap();
    let mut options = SyncOptions::since((now() - days(90)).date_naive());
    options.aids = shop.searches.iter().take(AT_ONCE).map(|search| search.aid.clone()).collect();
    let mut steps = Vec::new();
    let before = visit.simulator.requests();
    let synced = sync(&connection, &options, |step| steps.push(step.clone())).await.unwrap();
    assert_eq!(synced.requests, visit.simulator.requests() - before);
    assert_eq!(synced.requests, steps.iter().map(|step| step.requests).sum::<u64>());
    assert_eq!(steps.last().unwrap().left, 0);
    assert!(connection.holdings().unwrap().iter().all(|holding| holding.days == 96));
    assert_eq!(connection.verify_store().unwrap(), Vec::<String>::new());
    // The same requests as one after another, which a limit makes of them.
    let alone = Shop::new();
    let visit = alone.at(now() + days(5));
    options.max_requests = Some(1_000);
    assert_eq!(sync(&visit.connection, &options, |_| {}).await.unwrap().requests, synced.requests);
}

/// Four days are open at noon: today and the three before.
#[tokio::test]
async fn days_that_had_settled_when_they_were_read_are_sealed_at_once() {
    let (shop, time) = (Shop::new(), now() + days(5));
    let visit = shop.at(time);
    let mut options = SyncOptions::since((time - days(20)).date_naive());
    options.aids = vec![BIG.to_owned()];
    for run in ["first", "second"] {
        sync(&visit.connection, &options, |_| {}).await.unwrap();
        let holdings = visit.connection.holdings().unwrap();
        let sealed: Vec<_> = holdings.iter().map(|holding| (holding.days, holding.sealed_days)).collect();
        assert_eq!(sealed, [(21, 17)], "{run}");
    }
}

#[tokio::test]
async fn a_sync_that_ends_at_its_limit_counts_the_same_steps_in_all_lines() {
    let mut options = SyncOptions::since((now() - days(90)).date_naive());
    options.aids = vec![BIG.to_owned()];
    let needed = sync(&Shop::new().at(now() + days(5)).connection, &options, |_| {}).await.unwrap().requests;
    let mut begun = 0;
    for most in [needed / 3, needed / 2, needed - 2, needed - 1] {
        let shop = Shop::new();
        options.max_requests = Some(most);
        let mut steps = Vec::new();
        let connection = shop.at(now() + days(5)).connection;
        let synced = sync(&connection, &options, |step| steps.push(step.clone())).await.unwrap();
        let left = steps.last().map_or(synced.left, |step| step.left);
        assert_eq!(synced.left, left, "{most}: {steps:?}, {synced:?}");
        if let Some(cut) = &synced.cut {
            begun += 1;
            assert!(cut.aid == BIG && steps.iter().all(|step| step.to < cut.from || step.from > cut.to), "{cut:?}");
        }
    }
    assert!(begun > 0);
}

#[tokio::test]
async fn filtered_days_serve_the_same_and_narrower_filters() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    let of = |filter: &str| format!("SELECT id, language FROM mentions WHERE aid = '{BIG}' AND {QUARTER} AND {filter}");
    assert!(visit.cost(&of("language IN ('de', 'en')")).await > 1);
    assert_eq!(visit.cost(&of("language IN ('en', 'de')")).await, 0);
    assert_eq!(visit.cost(&of("language = 'de'")).await, 0);
    assert_eq!(visit.cost(&of("language = 'de' AND sentiment = 'negative'")).await, 0);
    assert!(visit.cost(&of("language IN ('de', 'fr')")).await > 0);
    assert!(visit.cost(&of("sentiment = 'negative'")).await > 0);
    assert!(visit.cost(&of("true")).await > 1);
    // All mentions serve every filter.
    assert_eq!(visit.cost(&of("sentiment = 'positive' AND language = 'fr'")).await, 0);
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn casts_that_change_the_order_of_instants_skip_no_stored_row() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    let all = format!("FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    assert!(visit.cost(&format!("SELECT id, text, indexed_at, reach, sentiment_score {all}")).await > 1);
    let mut some = 0;
    let cases = [
        "published_at::time < '06:00'",
        "published_at::time > '18:00:00'",
        "published_at::time BETWEEN '06:00' AND '12:00'",
        "published_at::timestamp::time < '06:00' OR published_at::time >= '22:00'",
        "published_at::time IN ('06:00:00', '07:00:00')",
        "try_cast(published_at AS time) < '06:00'",
        "indexed_at::time < '06:00'",
        "reach::boolean = false",
        "(reach - 5000)::boolean",
        "reach::text < '3'",
        "sentiment_score::int = 0",
        "published_at::date = '2026-05-20'",
        "published_at::timestamp(0) > '2026-05-20'",
        "published_at::timestamp(3) <= '2026-05-20'",
        "arrow_cast(published_at, 'Timestamp(s)') > '2026-05-20'",
    ];
    each_async(cases, async |condition| {
        let sql = format!("SELECT id {all} AND ({condition})");
        assert_eq!(visit.cost(&sql).await, 0, "{sql}");
        some += usize::from(!visit.stored.sql(&sql).await.unwrap().collect().await.unwrap().is_empty());
    })
    .await;
    assert!(some > 8, "{some}");
    // Without the engine's casts: hours of the corpus.
    let found = visit.stored.sql(&format!("SELECT count(*) {all} AND published_at::time < '06:00'")).await.unwrap();
    let search = shop.searches.iter().find(|search| search.aid == BIG).unwrap();
    let [from, to] = ["2026-04-01T00:00:00Z", "2026-06-29T00:00:00Z"].map(|at| at.parse::<DateTime<Utc>>().unwrap());
    let times = search.mentions.iter().map(|mention| mention.facts.published);
    let early = times.filter(|at| from <= *at && *at < to && at.hour() < 6);
    assert_eq!(rows(&found.collect().await.unwrap()), [[early.count().to_string()]]);
}

#[tokio::test]
async fn only_complete_reads_are_stored() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    let of = |rest: &str| format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER} {rest}");
    visit.cost(&of("ORDER BY published_at, id LIMIT 150")).await;
    visit.stored.sql(&of("LIMIT 150")).await.unwrap().collect().await.unwrap();
    visit.set("SET savedsearch.lossy_text = on").await;
    visit.cost(&of("")).await;
    visit.set("SET savedsearch.lossy_text = off").await;
    visit.set("SET savedsearch.store = 'read'").await;
    visit.cost(&of("")).await;
    assert_eq!(visit.connection.holdings().unwrap(), []);
    visit.set("SET savedsearch.store = 'read-write'").await;
    visit.cost(&of("")).await;
    assert_eq!(visit.connection.holdings().unwrap().len(), 1);
    visit.set("SET savedsearch.store = 'off'").await;
    assert!(visit.cost(&of("")).await > 1);
}

/// A request that is repeated after a failure counts, so that the last page is beyond the budget.
#[tokio::test]
async fn a_query_that_stops_at_its_budget_keeps_the_days_that_it_has_read() {
    let mut profile = Profile::v4();
    profile.page.max = 20;
    let (shop, other) = (Shop::of(&corpus(), profile.clone()), Shop::of(&corpus(), profile));
    let all = format!("SELECT id, title FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let honest = other.at(now() + days(5));
    let found = rows(&honest.stored.sql(&all).await.unwrap().collect().await.unwrap()).len() as u64;
    let needed = honest.simulator.requests();
    assert!(needed > 20, "{needed}");
    let visit = shop.at_with(now() + days(5), &["503@4"]);
    visit.set("SET savedsearch.freshness = '1h'").await;
    visit.set(&format!("SET savedsearch.max_requests = {needed}")).await;
    let error = visit.stored.sql(&all).await.unwrap().collect().await.unwrap_err();
    let error = datafusion_saved_search::Error::find(&error).unwrap_or_else(|| panic!("{error}")).to_string();
    assert_eq!(visit.simulator.requests(), needed, "{error}");
    assert!(
        error.contains(&format!("allows {needed}; the days of {BIG} from 20")) && error.contains(" to 2026-06-"),
        "{error}"
    );
    let stored: u64 = visit.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum();
    assert!(stored > found / 2 && stored < found, "{stored} of {found}");
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    // The rest, in pages that share a mention.
    visit.set("SET savedsearch.max_requests = 1000").await;
    assert_eq!(visit.cost(&all).await, (found - stored).div_ceil(19));
    assert_eq!(visit.cost(&all).await, 0);
}

/// As a statement that is cancelled does. The oracle is the corpus.
#[tokio::test]
async fn a_query_whose_rows_are_dropped_keeps_the_days_that_it_has_read() {
    let mut profile = Profile::v4();
    profile.page.max = 20;
    let shop = Shop::of(&corpus(), profile);
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    let all = format!("SELECT id, title FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let mut rows = visit.stored.sql(&all).await.unwrap().execute_stream().await.unwrap();
    let mut received = 0;
    while received < 150 {
        received += futures::StreamExt::next(&mut rows).await.unwrap().unwrap().num_rows() as u64;
    }
    drop(rows);
    let told = visit.connection.settle_store().await;
    let holdings = visit.connection.holdings().unwrap();
    let stored: u64 = holdings.iter().map(|holding| holding.mentions).sum();
    assert!(stored > 100, "{stored} of {received}: {told:?} {:?}", visit.notes());
    assert!(told.len() == 1 && told[0].starts_with(&format!("the days of {BIG} from ")), "{told:?}");
    assert_eq!(visit.connection.settle_store().await, Vec::<String>::new(), "told once");
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    // What is stored is right, and the rest is read.
    let [from, to] = ["2026-04-01T00:00:00Z", "2026-06-29T00:00:00Z"].map(|at| at.parse::<DateTime<Utc>>().unwrap());
    let search = shop.searches.iter().find(|search| search.aid == BIG).unwrap();
    let times = search.mentions.iter().map(|mention| mention.facts.published);
    let found = times.filter(|at| from <= *at && *at < to).count() as u64;
    assert!(stored < found, "{stored} of {found}");
    let cost = visit.cost(&all).await;
    assert!(0 < cost && cost <= (found - stored).div_ceil(19), "{cost}: {stored} of {found}");
    assert_eq!(visit.cost(&all).await, 0);
    // A filter is proven at the end of a read.
    let german = format!("{all} AND language = 'de'");
    let other = Shop::of(&corpus(), Profile::v4());
    let visit = other.at(now() + days(5));
    let mut rows = visit.stored.sql(&german).await.unwrap().execute_stream().await.unwrap();
    futures::StreamExt::next(&mut rows).await.unwrap().unwrap();
    drop(rows);
    visit.connection.settle_store().await;
    let holdings = visit.connection.holdings().unwrap();
    assert!(holdings.iter().all(|holding| holding.filters.is_empty()), "{holdings:?}");
}

/// A limit above a join is not one of the scan, so the reader stops in the middle of a window.
#[tokio::test]
async fn a_limit_above_a_join_stores_the_days_that_were_read_without_a_note() {
    let mut profile = Profile::v4();
    profile.page.max = 20;
    let shop = Shop::of(&corpus(), profile);
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    let joined = format!(
        "SELECT m.id, s.name FROM mentions m JOIN saved_searches s ON s.aid = m.aid WHERE m.aid = '{BIG}' AND {} LIMIT 150",
        QUARTER.replace("published_at", "m.published_at")
    );
    let rows = visit.stored.sql(&joined).await.unwrap().collect().await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 150);
    visit.connection.settle_store().await;
    let stored: u64 = visit.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum();
    assert!(stored > 0, "{:?}", visit.notes());
    assert!(
        visit.notes().iter().all(|note| !note.contains("stored") && !note.contains("stopped")),
        "{:?}",
        visit.notes()
    );
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
}

/// The meaning of a filter is proven at the end of a read.
#[tokio::test]
async fn days_that_nothing_proves_are_not_kept_when_a_query_stops() {
    let mut profile = Profile::v4();
    profile.page.max = 6;
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER} AND language = 'de'");
    let other = Shop::of(&corpus(), profile.clone());
    let honest = other.at(now() + days(5));
    honest.stored.sql(&all).await.unwrap().collect().await.unwrap();
    let needed = honest.simulator.requests();
    assert!(needed > 12, "{needed}");
    let shop = Shop::of(&corpus(), profile);
    let visit = shop.at_with(now() + days(5), &["503@4"]);
    visit.set(&format!("SET savedsearch.max_requests = {needed}")).await;
    let error = visit.stored.sql(&all).await.unwrap().collect().await.unwrap_err();
    let error = datafusion_saved_search::Error::find(&error).unwrap_or_else(|| panic!("{error}")).to_string();
    assert!(error.contains(&format!("allows {needed}; no day of {BIG} was stored")), "{error}");
    assert_eq!((visit.connection.holdings().unwrap(), visit.simulator.requests()), (Vec::new(), needed));
}

#[tokio::test]
async fn a_store_belongs_to_one_service_and_key() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    let other = || {
        let other = Connection::builder("http://stored.test/v4", Secret::new("another-key").unwrap());
        other.insecure().store(shop.folder.path()).build()
    };
    // An empty store is free, such as one that a wrong key has left behind.
    assert!(other().is_ok());
    visit.cost(&format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER}")).await;
    let error = other().unwrap_err().to_string();
    assert!(error.contains("catalog.sqlite") && error.contains("another"), "{error}");
}

/// Output of a sync over HTTP, with a key that the service does not know, and then with one that it knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_sync_with_a_wrong_key_leaves_the_store_to_the_right_one() {
    let now = Clock::system().now();
    let corpus = Corpus::generate(CorpusSpec { seed: 5, searches: 3, mentions: 900, now });
    let service = simulator::start("127.0.0.1:0".parse().unwrap(), corpus.into(), Settings::default()).await.unwrap();
    let folder = TempDir::new().unwrap();
    let arguments =
        ["--base-url", &service.base_url(), "--store", folder.path().to_str().unwrap(), "sync", "--since", "90d"];
    let sync = |key: &str| {
        let output = savedsearch(&arguments).env("SAVEDSEARCH_API_KEY", key).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), err(&output))
    };
    let (code, told) = sync("a-key-with-a-typo");
    assert!(code == Some(1) && told.contains("401") && folder.path().join("catalog.sqlite").exists(), "{told}");
    let (code, told) = sync(KEY);
    assert!(code == Some(0) && told.contains("up to date: "), "{told}");
    // From its first stored day on, it is the store of this key: another one is a mistake of the configuration.
    let (code, told) = sync(OTHER_KEY);
    assert!(
        code == Some(2) && told.contains("made with another address or key; check --base-url and the key"),
        "{told}"
    );
}

/// A file in place of the folder: as root, every folder can be read.
#[test]
fn a_store_that_cannot_be_opened_is_not_called_missing() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let begin = format!("cannot open the store in {}: ", file.display());
    let commands: [&[&str]; 4] =
        [&["store", "status"], &["store", "verify"], &["sync"], &["sql", "--set", "store=read", "-c", "SELECT 1"]];
    for command in commands {
        let arguments = [&["--now", "2026-07-01T12:00:00Z", "--store", file.to_str().unwrap()], command].concat();
        let output = savedsearch(&arguments).stdin(Stdio::null()).output().unwrap();
        let told = err(&output);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
        assert!(told.contains(&begin) && told.contains("; use another folder"), "{command:?}: {told}");
        assert!(!told.contains("SET ") && !told.contains("no store"), "{command:?}: {told}");
    }
}

#[tokio::test]
async fn a_broken_store_does_not_break_queries() {
    let shop = Shop::new();
    let all = format!("SELECT id, title FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let visit = shop.at(now() + days(5));
    visit.cost(&all).await;
    assert_eq!(visit.cost(&all).await, 1);
    let folder = shop.folder.path().join("data/mentions");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let largest = files.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let bytes = std::fs::read(largest).unwrap();
    // A file that is cut or missing: its days are requested and stored again.
    std::fs::write(largest, &bytes[..bytes.len() / 2]).unwrap();
    let visit = shop.at(now() + days(5));
    assert_eq!(visit.connection.verify_store().unwrap().len(), 1);
    assert!(visit.cost(&all).await > 1);
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    assert_eq!(visit.cost(&all).await, 1);
    // A file of the right length with other content.
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    for file in files {
        std::fs::write(&file, vec![7; file.metadata().unwrap().len().try_into().unwrap()]).unwrap();
    }
    let error = visit.stored.sql(&all).await.unwrap().collect().await.unwrap_err();
    let error = datafusion_saved_search::Error::find(&error).unwrap_or_else(|| panic!("{error}")).to_string();
    assert!(error.contains("SET savedsearch.store = 'off'"), "{error}");
    // As the message says.
    visit.set("SET savedsearch.store = 'off'").await;
    visit.cost(&all).await;
    visit.set("SET savedsearch.store = 'write'").await;
    visit.cost(&all).await;
    visit.set("SET savedsearch.store = 'read-write'").await;
    assert_eq!(visit.cost(&all).await, 1);
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_changed_profile_keeps_what_was_read() {
    let mut shop = Shop::new();
    let sql = |columns: &str| format!("SELECT {columns} FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let fewer = Profile::parse(
        &Profile::builtin_document("v4")
            .unwrap()
            .replace("    { name = \"platform\", type = \"utf8\", at = \"/source/platform\" },\n", ""),
        "fewer",
    );
    shop.profile = fewer.unwrap();
    let visit = shop.at(now() + days(5));
    visit.cost(&sql("id, extra")).await;
    shop.profile = Profile::v4();
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    assert_eq!(visit.cost(&sql("id, title")).await, 0);
    assert_eq!(visit.notes(), Vec::<String>::new());
    // Files that were written before the column was declared lack it, and have its field in `extra`.
    let before = visit.simulator.requests();
    let of_store = sql("count(*) > 100, count(platform), count(*) FILTER (WHERE extra LIKE '%platform%') > 100");
    let found = rows(&visit.stored.sql(&of_store).await.unwrap().collect().await.unwrap()).concat();
    assert_eq!((found, visit.simulator.requests() - before), (["true", "0", "true"].map(String::from).to_vec(), 0));
    let notes = visit.notes();
    let end = DateTime::parse_from_rfc3339("2026-06-29T00:00:00Z").unwrap();
    let published = shop.search(BIG).mentions.iter().map(|mention| mention.facts.published);
    let last = published.filter(|published| *published < end).max().unwrap().date_naive();
    let beginning = format!(
        "column `platform` is NULL in days that were stored before the profile had it (2026-04-01 to {last}); "
    );
    assert!(notes.len() == 1 && notes[0].starts_with(&beginning), "{notes:?}");
    assert!(notes[0].contains("savedsearch.store = 'write' reads them again"), "{notes:?}");
    assert!(visit.explain(&of_store).await.contains(" · without the column platform: "), "it is planned");
    assert!(!visit.explain(&sql("id, title")).await.contains("without the column"), "others have all columns");
    // So has a group, with the same note.
    let grouped = format!("{} GROUP BY platform ORDER BY platform", sql("platform, sum(reach) > 0"));
    let found = rows(&visit.stored.sql(&grouped).await.unwrap().collect().await.unwrap());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(visit.notes().len() == 2 && visit.notes()[1].starts_with(&beginning), "{:?}", visit.notes());
    // NULL decides no rows, so these days are requested.
    assert!(visit.cost(&format!("{} AND platform IS NOT NULL", sql("id"))).await > 1);
    assert_eq!(visit.cost(&sql("id, platform, extra")).await, 0);
}

#[tokio::test]
async fn days_that_lack_a_column_are_read_again_if_that_is_asked_for() {
    let mut shop = Shop::new();
    let document = Profile::builtin_document("v4").unwrap();
    let fewer = document.replace("    { name = \"platform\", type = \"utf8\", at = \"/source/platform\" },\n", "");
    shop.profile = Profile::parse(&fewer, "fewer").unwrap();
    let sql = format!("SELECT id, platform, extra FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    shop.at(now() + days(5)).cost(&sql.replace("platform, ", "")).await;
    shop.profile = Profile::v4();
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.store = 'write'").await;
    assert!(visit.cost(&sql).await > 1);
    visit.set("SET savedsearch.store = 'read-write'").await;
    visit.set("SET savedsearch.freshness = '1h'").await;
    assert_eq!(visit.cost(&sql).await, 0);
    assert_eq!(visit.notes(), Vec::<String>::new());
    // A column that may not be NULL is read.
    let required = document.replace(
        "{ name = \"platform\", type = \"utf8\", at = \"/source/platform\" }",
        "{ name = \"code\", type = \"utf8\", null = false, at = \"/id\" }",
    );
    assert_ne!(required, document);
    shop.profile = Profile::parse(&required, "required").unwrap();
    let other = shop.at(now() + days(5));
    other.set("SET savedsearch.freshness = '1h'").await;
    assert!(other.cost(&sql.replace("platform, extra", "code")).await > 1);
}

/// A step of a history of a service and its store.
#[derive(Debug, Clone)]
enum Step {
    /// Time passes, in hours.
    Pass(i64),
    /// A mention arrives that was published this many days ago.
    Arrive(usize, i64),
    /// The last mention before this many days ago is deleted.
    Delete(usize, i64),
    /// A query of a form, over a window of days that ends some days ago, with a freshness of zero.
    Ask(usize, usize, i64, i64),
    Sync(i64),
    Compact,
    Forget(i64),
    /// Everything is read and stored again.
    Rewrite(usize, i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..90_i64).prop_map(Step::Pass),
        3 => (0..2_usize, 0..40_i64).prop_map(|(of, age)| Step::Arrive(of, age)),
        2 => (0..2_usize, 0..40_i64).prop_map(|(of, age)| Step::Delete(of, age)),
        8 => (0..2_usize, 0..FORMS.len(), 1..45_i64, 0..20_i64).prop_map(|(of, form, length, end)| Step::Ask(of, form, length, end)),
        1 => (1..45_i64).prop_map(Step::Sync),
        1 => Just(Step::Compact),
        1 => (5..40_i64).prop_map(Step::Forget),
        1 => (0..2_usize, 1..45_i64).prop_map(|(of, length)| Step::Rewrite(of, length)),
    ]
}

/// Queries, with `AID`, `FROM` and `TO`, or `PERIOD`.
const FORMS: [&str; 12] = [
    "SELECT id, published_at FROM mentions WHERE aid = AID AND published_at >= FROM AND published_at < TO ORDER BY published_at DESC, id",
    "SELECT id, duration FROM mentions WHERE aid = AID AND duration = PERIOD ORDER BY published_at, id LIMIT 30",
    "SELECT id, published_at, title FROM mentions WHERE aid = AID AND published_at >= FROM AND published_at < TO",
    "SELECT id, extra FROM mentions WHERE aid = AID AND duration = PERIOD",
    "SELECT id, duration FROM mentions WHERE aid = AID AND published_at >= FROM AND reach > 100",
    "SELECT id FROM mentions WHERE aid = AID AND published_at >= FROM AND published_at < TO AND language = 'en'",
    "SELECT count(*) FROM mentions WHERE aid = AID AND published_at >= FROM AND published_at < TO",
    "SELECT language, count(*) FROM mentions WHERE aid = AID AND published_at >= FROM AND published_at < TO AND reach > 50 GROUP BY language",
    "SELECT id, published_at FROM mentions WHERE aid = AID AND published_at >= FROM ORDER BY published_at DESC, id LIMIT 7",
    "SELECT id, reach FROM mentions WHERE aid = AID AND published_at >= FROM AND published_at < TO ORDER BY reach DESC, id",
    "SELECT a.id FROM mentions a JOIN mentions b ON a.id = b.id WHERE a.aid = AID AND b.aid = AID AND a.published_at >= FROM AND b.published_at >= FROM",
    "SELECT min(published_at), max(published_at), count(DISTINCT id) FROM mentions WHERE aid = AID AND published_at >= FROM AND published_at < TO",
];

/// Replays a history, and compares the answers with and without the store. Days with arrivals and days with deletions are
/// apart: numbers cannot reveal changes of a day that cancel out.
async fn replay(steps: &[Step], short_windows: bool, keeps_deleted: bool) {
    let corpus = Corpus::generate(CorpusSpec { seed: 3, searches: 2, mentions: 160, now: now() });
    let mut profile = Profile::v4();
    profile.page.max = 6;
    if short_windows {
        profile.window.longest = Some("20d".to_owned().try_into().unwrap());
    }
    let mut shop = Shop::of(&corpus, profile);
    let aids: Vec<String> = shop.searches.iter().take(2).map(|search| search.aid.clone()).collect();
    let mut time = now();
    let mut number = 0;
    let day_of = |time: DateTime<Utc>| time.timestamp().div_euclid(86_400);
    for step in steps {
        let visit = shop.at(time);
        visit.set(&format!("SET savedsearch.keep_deleted = {keeps_deleted}")).await;
        match *step {
            Step::Pass(hours) => time += TimeDelta::hours(hours),
            Step::Arrive(of, age) => {
                let at = time - days(age) - TimeDelta::minutes(7);
                if day_of(at) % 2 == 0 {
                    number += 1;
                    shop.arrive(&aids[of], &format!("late-{number}"), at);
                }
            }
            Step::Delete(of, age) => {
                let mentions = &mut shop.search(&aids[of]).mentions;
                let before = time - days(age);
                let last = mentions.partition_point(|mention| mention.facts.published < before).checked_sub(1);
                if let Some(at) = last.filter(|at| day_of(mentions[*at].facts.published) % 2 == 1) {
                    mentions.remove(at);
                }
            }
            Step::Ask(of, form, length, end) => {
                let instant = |at: DateTime<Utc>| format!("TIMESTAMP '{}'", at.format("%Y-%m-%dT%H:%M:%SZ"));
                let to = time - days(end);
                let sql = FORMS[form]
                    .replace("AID", &format!("'{}'", aids[of]))
                    .replace("FROM AND", &format!("{} AND", instant(to - days(length))))
                    .replace("= FROM", &format!("= {}", instant(to - days(length))))
                    .replace("< TO", &format!("< {}", instant(to)))
                    .replace("PERIOD", &format!("'{}d'", length.min(if short_windows { 20 } else { length })));
                let cost = visit.cost(&sql).await;
                let asked = visit.simulator.requests();
                assert!(asked >= cost);
            }
            Step::Sync(length) => {
                let since = (time - days(length)).date_naive();
                sync(&visit.connection, &SyncOptions::since(since), |_| {}).await.unwrap();
            }
            Step::Compact => drop(visit.connection.compact_store().unwrap()),
            Step::Forget(age) => {
                let before = Erase::Before((time - days(age)).date_naive());
                visit.connection.erase_stored(None, &before).unwrap();
            }
            Step::Rewrite(of, length) => {
                visit.set("SET savedsearch.store = 'write'").await;
                let sql = FORMS[3]
                    .replace("AID", &format!("'{}'", aids[of]))
                    .replace("PERIOD", &format!("'{}d'", length.min(if short_windows { 20 } else { length })));
                visit.cost(&sql).await;
            }
        }
        let problems = visit.connection.verify_store().unwrap();
        assert!(problems.is_empty(), "{problems:?}");
    }
}

/// Number of histories.
const HISTORIES: u64 = 40;

#[test]
fn histories_of_a_service_agree_with_its_store() {
    let cases = knob("STORE_HISTORIES", HISTORIES);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seed = knob("STORE_SEED", 1);
    let histories = (prop::collection::vec(step(), 4..16), any::<bool>(), any::<bool>());
    let result = runner(cases, seed).run(&histories, |(steps, short_windows, keeps_deleted)| {
        runtime.block_on(replay(&steps, short_windows, keeps_deleted));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_is_killed_at_any_point_goes_on_where_it_was() {
    let kills = knob("STORE_KILLS", 12);
    let now = Clock::system().now();
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 5, searches: 3, mentions: 900, now }));
    let settings = Settings { delay: Duration::from_millis(3), ..Settings::default() };
    let service = simulator::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&corpus), settings).await.unwrap();
    let folder = TempDir::new().unwrap();
    let since = (now - days(100)).date_naive().to_string();
    let store = folder.path().to_str().unwrap();
    let arguments = ["--base-url", &service.base_url(), "--store", store, "--quiet", "sync", "--since", &since];
    let connect = |with: bool| {
        let builder = Connection::builder(service.base_url(), Secret::new(KEY).unwrap());
        if with { builder.store(folder.path()) } else { builder }.build().unwrap()
    };
    let mut stored = BTreeSet::new();
    for kill in 0..kills {
        let mut child = savedsearch(&arguments).env("SAVEDSEARCH_API_KEY", KEY).stderr(Stdio::null()).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(30 + kill * 37 % 400)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let connection = connect(true);
        assert_eq!(connection.verify_store().unwrap(), Vec::<String>::new());
        stored.insert(connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum::<u64>());
    }
    println!("mentions after each kill: {stored:?}");
    let sync = savedsearch(&arguments).env("SAVEDSEARCH_API_KEY", KEY).output().unwrap();
    assert!(sync.status.success(), "{}", String::from_utf8_lossy(&sync.stderr));
    let context = session(&connect(true)).unwrap();
    let plain = session(&connect(false)).unwrap();
    let sql = format!(
        "SELECT aid, id, title FROM mentions WHERE published_at >= TIMESTAMP '{since}T00:00:00Z' ORDER BY aid, id"
    );
    let ask = async |context: &SessionContext| rows(&context.sql(&sql).await.unwrap().collect().await.unwrap());
    assert_eq!(ask(&context).await, ask(&plain).await);
    assert_eq!(connect(true).verify_store().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn an_answer_is_no_staler_than_its_freshness() {
    let mut shop = Shop::new();
    let list = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '60d'");
    let overview = format!("SELECT total_mentions FROM overview WHERE aid = '{BIG}' AND duration = '60d'");
    let minutes = |minutes| now() + TimeDelta::minutes(minutes);
    let visit = async |shop: &Shop, at| {
        let visit = shop.at(at);
        visit.set("SET savedsearch.freshness = '15m'").await;
        visit
    };
    let count = async |visit: &Visit| rows(&visit.stored.sql(&list).await.unwrap().collect().await.unwrap()).len();
    let first = count(&visit(&shop, minutes(0)).await).await;
    visit(&shop, minutes(16)).await.stored.sql(&overview).await.unwrap().collect().await.unwrap();
    shop.arrive(BIG, "late", now() - days(30));
    // What the overview of minute 16 confirms is not newer than that.
    assert_eq!(count(&visit(&shop, minutes(30)).await).await, first);
    assert_eq!(count(&visit(&shop, minutes(32)).await).await, first + 1);
}

#[tokio::test]
async fn a_mention_that_changes_its_day_comes_once() {
    for (before, after) in [(20, 6), (6, 20)] {
        let mut shop = Shop::new();
        let visit = shop.at(now() + days(10));
        let all = format!("SELECT id, published_at FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
        visit.cost(&all).await;
        let id = shop.delete_before(BIG, now() - days(before));
        shop.arrive(BIG, &id, now() - days(after));
        let later = shop.at(now() + days(10) + TimeDelta::minutes(5));
        // Some days are fresher than others.
        let some = format!(
            "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= TIMESTAMP '2026-06-01T00:00:00Z' AND published_at < TIMESTAMP '2026-06-16T00:00:00Z'"
        );
        later.set("SET savedsearch.store = 'write'").await;
        later.cost(&some).await;
        let last = shop.at(now() + days(10) + TimeDelta::minutes(10));
        last.set("SET savedsearch.freshness = '6m'").await;
        assert!(last.cost(&all).await > 0);
    }
}

#[tokio::test]
async fn rows_that_a_query_has_only_with_a_warning_are_not_stored() {
    let shop = Shop::new();
    let all = format!("SELECT id, reach FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let visit = shop.at_with(now() + days(5), &["missing:field=reach@3-"]);
    visit.set("SET savedsearch.completeness = 'report'").await;
    visit.stored.sql(&all).await.unwrap().collect().await.unwrap();
    assert_eq!(visit.connection.holdings().unwrap(), []);
}

#[tokio::test]
async fn a_column_of_another_place_is_another_column() {
    let mut shop = Shop::new();
    let sql = format!("SELECT id, snippet, published_at FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let document = Profile::builtin_document("v4").unwrap();
    let visit = shop.at(now() + days(5));
    visit.cost(&sql).await;
    shop.profile = Profile::parse(&document.replace("at = \"/snippet\"", "at = \"/title\""), "changed").unwrap();
    let changed = shop.at(now() + days(5));
    changed.set("SET savedsearch.freshness = '1h'").await;
    assert!(changed.cost(&sql).await > 1);
    assert_eq!(changed.cost(&sql).await, 0);
    // Names that the store needs itself.
    let own = document.replace("name = \"snippet\"", "name = \"as_of\"");
    let service = Connection::builder("https://stored.test/v4", Secret::new(KEY).unwrap());
    let error = service
        .profile(Profile::parse(&own, "own").unwrap())
        .store(TempDir::new().unwrap().path())
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("`as_of`"), "{error}");
}

/// A day that was read from another place, or by another id, says nothing about the mentions of the profile.
#[tokio::test]
async fn a_store_has_the_mentions_of_one_definition() {
    let shop = Shop::new();
    shop.at(now() + days(5)).cost(&format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER}")).await;
    let open = |profile: Profile| {
        let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap()).insecure();
        builder.profile(profile).store(shop.folder.path()).build()
    };
    let document = Profile::builtin_document("v4").unwrap();
    let changed = |from: &str, to: &str| {
        assert!(document.contains(from), "{from}");
        Profile::parse(&document.replacen(from, to, 1), "changed").unwrap()
    };
    let mut other_id = Profile::v4();
    other_id.tables.mentions.id = Some("url".into());
    let others = [
        changed(r#"{ at = "/mentions/items" }"#, r#"{ at = "/mentions/others" }"#),
        changed(r#"version = "updated_at""#, r#"version = "indexed_at""#),
        changed(r#"path = "search""#, r#"path = "search/all""#),
        other_id,
    ];
    for profile in others {
        let error = open(profile).unwrap_err().to_string();
        assert!(error.contains("filled with a profile") && error.contains("[tables.mentions]"), "{error}");
    }
    assert!(open(changed("max = 100", "max = 50")).is_ok());
    assert!(open(Profile::v4()).is_ok());
}

#[tokio::test]
async fn a_column_with_other_keys_is_another_column() {
    const PATTERN: &str = r#"at = "/indexedAt", pattern = "%Y-%m-%dT%H:%M:%S%.fZ""#;
    let document = Profile::builtin_document("v4").unwrap().replace(r#"at = "/indexedAt""#, PATTERN);
    let zone = format!(r#"{PATTERN}, zone = "Asia/Tokyo""#);
    let changes = [
        ("id, sentiment", r#"at = "/sentiment/label""#, r#"at = "/sentiment/label", nulls = ["neutral"]"#),
        ("id, url", r#"at = "/url""#, r#"at = "/url", joined_with = ["/id"]"#),
        ("id, indexed_at", PATTERN, zone.as_str()),
        // Rows were deduplicated by the former id, whether it is selected or not.
        ("id", r#"at = "/id""#, r#"at = "/id", joined_with = ["/publishedAt"]"#),
        ("title", r#"at = "/id""#, r#"at = "/id", joined_with = ["/publishedAt"]"#),
    ];
    for (columns, from, to) in changes {
        assert!(document.contains(from), "{from}");
        let mut shop = Shop::of(&corpus(), Profile::parse(&document, "former").unwrap());
        let sql = |range: &str| format!("SELECT {columns} FROM mentions WHERE aid = '{BIG}' AND {range}");
        shop.at(now() + days(5)).cost(&sql(QUARTER)).await;
        shop.profile = Profile::parse(&document.replacen(from, to, 1), "changed").unwrap();
        let changed = shop.at(now() + days(5));
        changed.set("SET savedsearch.freshness = '1h'").await;
        // A few days are read by the new definition; the others must not come from the store by the former one.
        changed.cost(&sql("published_at >= '2026-06-10' AND published_at < '2026-06-12'")).await;
        assert!(changed.cost(&sql(QUARTER)).await > 1, "{to}");
        assert_eq!(changed.cost(&sql(QUARTER)).await, 0, "{to}");
    }
}

#[tokio::test]
async fn a_store_may_be_named_by_any_path() {
    let mut shop = Shop::new();
    let inner = shop.folder.path().join("a b%20c").join("..").join("späße");
    shop.path = Some(inner);
    let visit = shop.at(now() + days(5));
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    std::fs::create_dir(shop.folder.path().join("a b%20c")).unwrap_or_default();
    visit.cost(&all).await;
    assert_eq!(visit.cost(&all).await, 1);
}

#[tokio::test]
async fn deleted_mentions_are_kept_if_wanted() {
    let mut shop = Shop::new();
    let all = format!("SELECT id, published_at, title FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let kept = "SELECT id, deleted_at FROM system.deleted_mentions ORDER BY id";
    let ask = async |visit: &Visit| rows(&visit.stored.sql(kept).await.unwrap().collect().await.unwrap());
    let visit = shop.at(now() + days(10));
    visit.set("SET savedsearch.keep_deleted = on").await;
    visit.cost(&all).await;
    // One mention is deleted, and another changes its day: that one is still there.
    let gone = shop.delete_before(BIG, now() - days(40));
    let moved = shop.delete_before(BIG, now() - days(30));
    shop.arrive(BIG, &moved, now() - days(20));
    let later = shop.at(now() + days(11));
    later.set("SET savedsearch.keep_deleted = on").await;
    later.cost(&all).await;
    assert_eq!(ask(&later).await, [vec![gone.clone(), "2026-07-12T12:00:00Z".to_owned()]]);
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
    // What is deleted without the setting is not kept, and what comes back is no longer deleted.
    shop.delete_before(BIG, now() - days(50));
    shop.arrive(BIG, &gone, now() - days(40));
    let last = shop.at(now() + days(12));
    last.cost(&all).await;
    assert_eq!(ask(&last).await, Vec::<Vec<String>>::new());
    // A filtered read does not show whether a mention is deleted.
    last.set("SET savedsearch.keep_deleted = on").await;
    let german = format!("{all} AND language = 'de'");
    last.set("SET savedsearch.store = 'write'").await;
    last.cost(&german).await;
    last.cost(&german).await;
    assert_eq!(ask(&last).await, Vec::<Vec<String>>::new());
    let erased = last.connection.erase_stored(None, &Erase::Before((now() + days(20)).date_naive())).unwrap();
    assert!(erased.mentions > 0);
    assert_eq!(last.connection.holdings().unwrap(), []);
    assert_eq!(last.connection.verify_store().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_day_that_is_read_again_leaves_the_others_as_they_are() {
    let mut shop = Shop::new();
    let sql = |columns: &str| format!("SELECT {columns} FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let document = Profile::builtin_document("v4").unwrap();
    let platform = "    { name = \"platform\", type = \"utf8\", at = \"/source/platform\" },\n";
    shop.profile = Profile::parse(&document.replace(platform, ""), "fewer").unwrap();
    let visit = shop.at(now() + days(60));
    visit.cost(&sql("id, title")).await;
    // The profile has a new column. A day of a month that was stored without it has another mention.
    shop.profile = Profile::v4();
    shop.arrive(BIG, "late", now() - days(50));
    let later = shop.at(now() + days(60));
    assert_eq!(later.cost(&sql("id, title")).await, 2);
    assert_eq!(later.cost(&sql("id, title")).await, 1, "the rest of the month is still stored");
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
    later.set("SET savedsearch.store = 'write'").await;
    assert!(later.cost(&sql("id, platform")).await > 1);
    later.set("SET savedsearch.store = 'read-write'").await;
    assert_eq!(later.cost(&sql("id, platform")).await, 1);
}

/// A process that opened it for reading would write nothing for as long as it runs.
#[tokio::test]
async fn a_store_whose_catalog_is_locked_is_an_error_that_may_pass() {
    let shop = Shop::new();
    drop(shop.at(now()));
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    catalog.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Without a change of the catalog, no lock is needed.
    drop(shop.at(now()));
    let document = Profile::builtin_document("v4").unwrap();
    let platform = "    { name = \"platform\", type = \"utf8\", at = \"/source/platform\" },\n";
    let fewer = Profile::parse(&document.replace(platform, ""), "fewer").unwrap();
    let open = || {
        let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap()).insecure();
        builder.profile(fewer.clone()).store(shop.folder.path()).build()
    };
    let error = open().unwrap_err();
    let told = error.to_string();
    assert!(error.may_pass() && told.contains("catalog locked by another process (waited 10 s); retry"), "{told}");
    catalog.execute_batch("ROLLBACK").unwrap();
    assert!(open().unwrap().store_folder().unwrap().is_ok());
}

#[tokio::test]
async fn changed_contents_are_found() {
    let mut shop = Shop::new();
    let all = format!("SELECT id, title FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let visit = shop.at(now() + days(5));
    visit.cost(&all).await;
    let folder = shop.folder.path().join("data/mentions");
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let problems = visit.connection.verify_store().unwrap();
    assert!(problems.len() == 1 && problems[0].contains("contents have changed"), "{problems:?}");
    // Counts that differ from the service's.
    let before = visit.simulator.requests();
    assert_eq!(verify_counts(&visit.connection).await.unwrap(), []);
    assert_eq!(visit.simulator.requests() - before, 1);
    shop.arrive(BIG, "late", now() - days(50));
    let later = shop.at(now() + days(5));
    let differing = verify_counts(&later.connection).await.unwrap();
    let texts: Vec<String> = differing.iter().map(ToString::to_string).collect();
    let expected = format!(
        "aid {BIG}, 2026-05-12: {} mentions stored, {} at the service",
        differing[0].stored,
        differing[0].stored + 1
    );
    assert_eq!(texts, [expected]);
}

#[tokio::test]
async fn estimates_know_the_store() {
    let shop = Shop::new();
    let visit = shop.at(now() + days(5));
    let since = (now() - days(30)).date_naive();
    sync(&visit.connection, &SyncOptions::since(since), |_| {}).await.unwrap();
    visit.set("SET savedsearch.freshness = '1h'").await;
    // The list of the last query names the saved searches.
    let all = "SELECT id FROM mentions WHERE published_at >= TIMESTAMP '2026-06-02T00:00:00Z' \
               AND published_at < TIMESTAMP '2026-06-20T00:00:00Z'";
    visit.cost(all).await;
    let explained = visit.explain(all).await;
    assert!(explained.contains("days, according to the last list"), "{explained}");
    let plan = visit.stored.sql(all).await.unwrap().create_physical_plan().await.unwrap();
    let cost = datafusion_saved_search::plan_cost(&plan);
    let expected = cost.scans[0].by_last_list.clone().unwrap();
    assert_eq!((expected.at_least, expected.exact, visit.cost(all).await), (0, true, 0));
    // A stored timeline confirms without a request.
    let one = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let later = shop.at(now() + days(5) + TimeDelta::minutes(70));
    later.set("SET savedsearch.freshness = '1h'").await;
    let used = later.connection.store_statistics().unwrap();
    assert_eq!((used.days_from_store, used.requests_saved), (0, 0));
    later.cost(&one).await;
    let used = later.connection.store_statistics().unwrap();
    assert!(used.days_from_store > 0 && used.requests_saved > 0 && used.bytes > 0, "{used:?}");
}

#[tokio::test]
async fn estimates_count_what_the_store_lacks() {
    let mut profile = Profile::v4();
    profile.page.max = 20;
    let shop = Shop::of(&corpus(), profile);
    let between = |from: &str, to: &str| {
        format!(
            "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '{from}T00:00:00Z' \
             AND published_at < '{to}T00:00:00Z'"
        )
    };
    let likely = async |visit: &Visit, sql: &str| {
        let plan = visit.stored.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        datafusion_saved_search::plan_cost(&plan).scans[0].likely
    };
    let visit = shop.at(now() + days(5));
    assert_eq!(likely(&visit, &between("2026-04-01", "2026-06-29")).await, None, "nothing is known");
    visit.cost(&between("2026-04-01", "2026-06-10")).await;
    // Another process, which knows nothing but the store.
    let visit = shop.at(now() + days(5));
    visit.set("SET savedsearch.freshness = '1h'").await;
    let half_year = between("2026-01-01", "2026-06-29");
    assert_eq!(likely(&visit, &half_year).await, None, "70 of 179 days show too little");
    let year = format!("SELECT total_mentions FROM overview WHERE aid = '{BIG}' AND duration = '365d'");
    visit.stored.sql(&year).await.unwrap().collect().await.unwrap();
    assert_eq!(likely(&visit, &half_year).await, None, "the total of a longer window is no more than a limit");
    let all = between("2026-04-01", "2026-06-29");
    let expected = likely(&visit, &all).await.unwrap_or_default();
    let sent = visit.cost(&all).await;
    assert!(sent > 4 && expected.abs_diff(sent) <= sent / 2, "{sent} instead of about {expected}");
    // All days are stored, and later they are confirmed.
    assert_eq!(likely(&visit, &all).await, Some(0));
    let confirmed = shop.at(now() + days(9));
    assert_eq!((likely(&confirmed, &all).await, confirmed.cost(&all).await), (Some(1), 1));
}

#[tokio::test]
async fn a_refresh_takes_one_request() {
    // Few mentions a day, so that the open days fit into a page.
    let corpus = Corpus::generate(CorpusSpec { seed: 3, searches: 2, mentions: 900, now: now() });
    for order in ["", " ORDER BY published_at, id", " ORDER BY published_at DESC, id"] {
        let mut shop = Shop::of(&corpus, Profile::v4());
        let aid = shop.searches[0].aid.clone();
        let all = |rest: &str| format!("SELECT id, published_at FROM mentions WHERE aid = '{aid}' AND {rest}{order}");
        let since = all("published_at >= TIMESTAMP '2026-03-01T00:00:00Z'");
        let visit = shop.at(now());
        visit.cost(&since).await;
        // One response confirms the settled days, and has the mentions of the open ones.
        assert_eq!(visit.cost(&since).await, 1, "{order}");
        shop.arrive(&aid, "new", now() - TimeDelta::minutes(5));
        shop.arrive(&aid, "open", now() - days(2));
        let visit = shop.at(now() + TimeDelta::minutes(10));
        assert_eq!(visit.cost(&since).await, 1, "{order}");
        visit.set("SET savedsearch.freshness = '15m'").await;
        let recent = all("duration = '90d'");
        visit.cost(&recent).await;
        let soon = shop.at(now() + TimeDelta::minutes(30));
        soon.set("SET savedsearch.freshness = '15m'").await;
        // The service resolves a relative period first.
        assert_eq!(soon.cost(&recent).await, 2, "{order}");
        // A late arrival is read as well.
        shop.arrive(&aid, "late", now() - days(30));
        assert_eq!(shop.at(now() + TimeDelta::minutes(40)).cost(&since).await, 2, "{order}");
        let visit = shop.at(now() + TimeDelta::minutes(50));
        let mut options = SyncOptions::since((now() - days(60)).date_naive());
        options.aids.push(aid);
        assert_eq!(sync(&visit.connection, &options, |_| {}).await.unwrap().requests, 1);
    }
}

#[tokio::test]
async fn a_mention_that_moves_within_its_month_is_not_deleted() {
    for order in ["", " ORDER BY published_at", " ORDER BY published_at DESC"] {
        for (from, to) in [(40, 45), (45, 40)] {
            let mut shop = Shop::new();
            let all = format!("SELECT id, published_at FROM mentions WHERE aid = '{BIG}' AND {QUARTER}{order}");
            let visit = shop.at(now() + days(70));
            visit.set("SET savedsearch.keep_deleted = on").await;
            visit.stored.sql(&all).await.unwrap().collect().await.unwrap();
            let id = shop.delete_before(BIG, now() - days(from));
            shop.arrive(BIG, &id, now() - days(to));
            let later = shop.at(now() + days(71));
            later.set("SET savedsearch.keep_deleted = on").await;
            later.stored.sql(&all).await.unwrap().collect().await.unwrap();
            let deleted = later.stored.sql("SELECT id FROM system.deleted_mentions").await.unwrap();
            assert_eq!(rows(&deleted.collect().await.unwrap()), Vec::<Vec<String>>::new(), "{order} {from} {to}");
            assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn mentions_beyond_our_clock_are_an_error_and_not_missing() {
    let folder = TempDir::new().unwrap();
    let settings = Settings { clock: Clock::fixed(now() + TimeDelta::minutes(30)), ..Settings::default() };
    let simulator = Simulator::new(corpus(), settings);
    let service = Arc::new(InProcess(simulator, HttpLimits::default()));
    let builder = Connection::builder("http://ahead.test/v4", Secret::new(KEY).unwrap());
    let connection = builder.service(service).clock(Clock::fixed(now())).store(folder.path()).build().unwrap();
    let context = session(&connection).unwrap();
    let sql =
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= TIMESTAMP '2026-06-01T00:00:00Z'");
    let error = context.sql(&sql).await.unwrap().collect().await.unwrap_err().to_string();
    assert!(error.contains("30 minutes ahead"), "{error}");
    // Now the service's clock is known.
    context.sql(&sql).await.unwrap().collect().await.unwrap();
}

#[tokio::test]
async fn stored_rows_are_divided_over_cores_and_joined_from_the_smaller_side() {
    let visit = Shop::new().at(now());
    let range = "aid = '183772' AND published_at >= '2026-06-01' AND published_at < '2026-06-20'";
    visit.cost(&format!("SELECT id FROM mentions WHERE {range}")).await;
    for context in [&visit.stored, &visit.plain] {
        context.state_ref().write().config_mut().options_mut().execution.target_partitions = 4;
    }
    let grouped = format!("SELECT date_trunc('day', published_at), max(reach) FROM mentions WHERE {range} GROUP BY 1");
    let joined = format!(
        "SELECT a.language, count(*) FROM (SELECT * FROM mentions WHERE {range}) a \
         JOIN (SELECT author_handle FROM mentions WHERE {range} AND reach > 100 GROUP BY author_handle) b \
         ON a.author_handle = b.author_handle GROUP BY a.language"
    );
    // A limit ends the aggregate early: its scan must not be read ahead by several cores.
    let limited = format!("SELECT DISTINCT language FROM mentions WHERE {range} LIMIT 1");
    let plan = async |context: &SessionContext, sql: &str| {
        let plan = context.sql(&format!("EXPLAIN {sql}")).await.unwrap().collect().await.unwrap();
        rows(&plan).concat().join("\n")
    };
    let divided = "RoundRobinBatch(4), input_partitions=1";
    assert!(plan(&visit.stored, &grouped).await.contains(divided));
    assert!(!plan(&visit.plain, &grouped).await.contains(divided), "requests are not divided");
    assert!(!plan(&visit.stored, &limited).await.contains(divided));
    for context in [&visit.stored, &visit.plain] {
        let text = plan(context, &joined).await;
        // The first input of a hash join is kept in memory.
        let join = &text[text.find("HashJoinExec").expect("a hash join")..];
        let scans: Vec<&str> = join.lines().filter(|line| line.contains("FetchExec")).collect();
        assert!(scans[0].contains("author_handle, reach") || scans[0].contains("author_handle]"), "{text}");
    }
    for sql in [&grouped, &joined] {
        assert_eq!(visit.cost(sql).await, 1, "{sql}: one request confirms the days");
    }
    visit.stored.sql(&limited).await.unwrap().collect().await.unwrap();
}

/// A service that no longer keeps old mentions says so by the window of its response: what is stored stays.
#[tokio::test]
async fn a_response_that_does_not_cover_stored_days_replaces_none_of_them() {
    let shop = Shop::new();
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let read = async |visit: &Visit, sql: &str| match visit.stored.sql(sql).await.unwrap().collect().await {
        Ok(batches) => Ok(rows(&batches).len()),
        Err(error) => Err(error.to_string()),
    };
    let all = read(&shop.at(now()), &sql).await.unwrap();
    let later = now() + days(30);
    let error = read(&shop.at_with(later, &["retention:days=2"]), &sql).await.expect_err("nothing is covered");
    assert!(error.contains("covers nothing of it"), "{error}");
    let visit = shop.at(later);
    visit.set("SET savedsearch.freshness = '60d'").await;
    assert_eq!((read(&visit, &sql).await, visit.simulator.requests()), (Ok(all), 0));
}

#[tokio::test]
async fn stored_days_are_read_if_counts_contradict_each_other() {
    let mut shop = Shop::new();
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    shop.at(now()).cost(&all).await;
    // Long after the day has settled.
    shop.arrive(BIG, "late", "2026-05-05T12:00:00Z".parse().unwrap());
    let visit = shop.at_with(now() + days(10), &["overview:by=-10"]);
    visit.cost(&all).await;
    assert!(visit.notes().iter().any(|note| note.contains("differ from its total")), "{:?}", visit.notes());
}

/// Without a timeline, the total alone shows that stored days have other mentions now.
#[tokio::test]
async fn stored_days_are_read_if_the_total_of_their_window_differs() {
    for deleted in [false, true] {
        let mut shop = Shop::new();
        let of_week = |what: &str| {
            format!(
                "SELECT {what} FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-05-01' AND published_at < '2026-05-08'"
            )
        };
        shop.at(now()).cost(&of_week("id, title")).await;
        // Long after the day has settled.
        let at: DateTime<Utc> = "2026-05-05T12:00:00Z".parse().unwrap();
        match deleted {
            true => drop(shop.delete_before(BIG, at)),
            false => shop.arrive(BIG, "late", at),
        }
        let visit = shop.at_with(now() + days(10), &["no-starts"]);
        let right = rows(&visit.plain.sql(&of_week("id")).await.unwrap().collect().await.unwrap());
        let sorted = |mut rows: Vec<Vec<String>>| {
            rows.sort();
            rows
        };
        let seen = rows(&visit.stored.sql(&of_week("id")).await.unwrap().collect().await.unwrap());
        assert_eq!(sorted(seen), sorted(right), "deleted: {deleted}");
        assert!(visit.notes().iter().any(|note| note.contains("not that of the stored days")), "{:?}", visit.notes());
    }
}

#[tokio::test]
async fn an_old_copy_of_the_data_replaces_no_stored_day() {
    let mut shop = Shop::new();
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {QUARTER}");
    let mention: DateTime<Utc> = "2026-06-20T12:00:00Z".parse().unwrap();
    shop.arrive(BIG, "late", mention + days(5));
    shop.at(now() + days(5)).cost(&all).await;
    let present = shop.search(BIG).mentions.clone();
    shop.search(BIG).mentions.retain(|mention| &*mention.facts.id != "late");
    let copy = shop.at_with(now() + days(6), &["old-copy:hours=100"]);
    let seen = rows(&copy.stored.sql(&all).await.unwrap().collect().await.unwrap());
    assert!(seen.contains(&vec!["late".to_owned()]), "the store has it from a later read");
    shop.search(BIG).mentions = present;
    let visit = shop.at(now() + days(6));
    visit.set("SET savedsearch.freshness = '60d'").await;
    assert_eq!(visit.cost(&all).await, 0);
}

/// The newest days are read together with the counts that confirm the days before: they have to agree with these counts.
#[tokio::test]
async fn the_newest_days_are_not_taken_from_a_page_that_lacks_mentions() {
    let shop = Shop::new();
    let visit = shop.at(now());
    let of = |to: &str| {
        format!(
            "SELECT count(*), count(DISTINCT id) FROM (SELECT id, title FROM mentions WHERE aid = '{OTHER}' AND published_at >= \
             '2026-04-01' AND published_at < '{to}')"
        )
    };
    visit.cost(&of("2026-06-28")).await;
    let right = rows(&visit.plain.sql(&of("2026-07-01")).await.unwrap().collect().await.unwrap());
    let hides = shop.at_with(now(), &["hidden:percent=50"]);
    if let Ok(batches) = hides.stored.sql(&of("2026-07-01")).await.unwrap().collect().await {
        assert_eq!(rows(&batches), right);
    }
    let honest = shop.at(now());
    honest.set("SET savedsearch.freshness = '1h'").await;
    assert_eq!(rows(&honest.stored.sql(&of("2026-07-01")).await.unwrap().collect().await.unwrap()), right);
}

#[tokio::test]
async fn a_period_longer_than_time_is_an_error() {
    let visit = Shop::new().at(now());
    let sql = format!("SELECT id FROM mentions WHERE aid = '{OTHER}' AND duration = '99999999d'");
    for sql in [format!("EXPLAIN {sql}"), sql] {
        // Refused by the service, or by us.
        if let Ok(frame) = visit.stored.sql(&sql).await {
            let _ = frame.collect().await;
        }
    }
}

#[tokio::test]
async fn a_sync_of_the_future_is_refused() {
    let visit = Shop::new().at(now());
    let options = SyncOptions::since((now() + days(1)).date_naive());
    let error = sync(&visit.connection, &options, |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("2026-07-02 is in the future: today is 2026-07-01"), "{error}");
}

#[test]
fn several_saved_searches_in_one_option_are_told_apart_in_the_advice() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().to_str().unwrap();
    let arguments =
        ["--now", "2026-07-01T12:00:00Z", "--store", store, "sync", "--since", "2d", "--aid", "183772,184889"];
    let output = savedsearch(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("repeat --aid for each saved search: --aid 183772 --aid 184889"), "{}", err(&output));
}

#[test]
fn blank_options_of_a_sync_are_refused() {
    for (option, expected) in
        [("--on-new", "expected a command"), ("--webhook", "expected a URL"), ("--aid", "expected a saved search")]
    {
        for value in ["", " "] {
            let output = savedsearch(&["--store", "none", "sync", option, value]).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{option}");
            assert!(err(&output).contains(expected), "{}", err(&output));
        }
    }
}
