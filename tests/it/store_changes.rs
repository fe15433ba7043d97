//! Changes of the store since a snapshot or an instant, commands that get new mentions, and the retention of days.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Running, SavedSearch, Settings};
use datafusion_saved_search::{
    Claim, Clock, Connection, Erase, Error, ErrorKind, NewMentions, Profile, Secret, SyncOptions, Watch, session, sync,
};
use futures::StreamExt;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::binary::{err, savedsearch};
use crate::store::{Shop, Visit};
use crate::support::{ALONE, BIG, LONGEST, OTHER, each_async, knob, now, rows, runner};

fn days(days: i64) -> TimeDelta {
    TimeDelta::days(days)
}

/// Rows of a query of the store, which sends no request.
async fn ask(visit: &Visit, sql: &str) -> Vec<Vec<String>> {
    let before = visit.simulator.requests();
    let frame = datafusion_saved_search::sql(&visit.stored, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")));
    assert_eq!(visit.simulator.requests(), before, "{sql}");
    rows
}

async fn failure(visit: &Visit, sql: &str) -> Error {
    let error = match visit.stored.sql(sql).await {
        Ok(frame) => frame.collect().await.expect_err(sql),
        Err(error) => error,
    };
    Error::find(&error).unwrap_or_else(|| panic!("{sql}: {error}")).clone()
}

/// Changes by id.
async fn changes(visit: &Visit, arguments: &str) -> BTreeMap<String, String> {
    let sql = format!("SELECT id, change FROM changes({arguments})");
    let found = ask(visit, &sql).await;
    let changes: BTreeMap<_, _> = found.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(changes.len(), found.len(), "each mention once: {found:?}");
    changes
}

/// Number of the latest snapshot.
fn snapshot(shop: &Shop) -> i64 {
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    catalog.query_row("SELECT max(snapshot_id) FROM ducklake_snapshot", [], |row| row.get(0)).unwrap()
}

/// Reads all days of a saved search again, and keeps what was deleted.
async fn rescan(visit: &Visit, aid: &str, since: DateTime<Utc>) {
    let mut options = SyncOptions::since(since.date_naive());
    options.aids.push(aid.to_owned());
    (options.rescan, options.keep_deleted) = (true, true);
    sync(&visit.connection, &options, |_| {}).await.unwrap();
}

/// Mentions of a saved search since an instant, by id, with a value that edits change.
fn mentions(shop: &mut Shop, aid: &str, since: DateTime<Utc>) -> BTreeMap<String, (DateTime<Utc>, Option<i64>)> {
    let since = since.date_naive().and_hms_opt(0, 0, 0).unwrap().and_utc();
    let of = |search: &mut SavedSearch| {
        let recent = search.mentions.iter().filter(|mention| mention.facts.published >= since);
        recent.map(|mention| (mention.facts.id.to_string(), (mention.facts.published, mention.facts.reach))).collect()
    };
    of(shop.search(aid))
}

/// Another reach of the last mention before a time.
fn edit_before(shop: &mut Shop, aid: &str, time: DateTime<Utc>) {
    let mentions = &mut shop.search(aid).mentions;
    let at = mentions.partition_point(|mention| mention.facts.published < time).saturating_sub(1);
    if let Some(mention) = mentions.get_mut(at) {
        let facts = &mut Arc::make_mut(mention).facts;
        facts.reach = Some(facts.reach.unwrap_or_default() + 1);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Arrive(i64),
    Delete(i64),
    Edit(i64),
    Move(i64, i64),
    /// The last deleted mention is there again.
    Return,
    Sync,
    Compact,
}

/// Age of the first day.
const WINDOW: i64 = 25;

async fn replay(steps: &[Step]) {
    let corpus = Corpus::generate(CorpusSpec { seed: 3, searches: 2, mentions: 300, now: now() });
    let mut profile = Profile::v4();
    profile.page.max = 20;
    let mut shop = Shop::of(&corpus, profile);
    let searches: Vec<String> = corpus.searches.iter().map(|search| search.aid.clone()).collect();
    let aid = searches[0].clone();
    let since = now() - days(WINDOW);
    let mut time = now();
    let mut number = 0;
    let mut deleted: Option<(String, DateTime<Utc>)> = None;
    // What the service had at each synchronization, and the number of the synchronization of each last change.
    let mut before: BTreeMap<String, (DateTime<Utc>, Option<i64>)> = BTreeMap::new();
    let [mut arrived, mut changed, mut gone]: [BTreeMap<String, usize>; 3] = Default::default();
    let mut synced: Vec<(i64, DateTime<Utc>)> = Vec::new();
    let within = |age: i64| time_of(now(), age);
    for step in steps.iter().chain([&Step::Sync]) {
        time += TimeDelta::minutes(7);
        match *step {
            Step::Arrive(age) => {
                number += 1;
                shop.arrive(&aid, &format!("9{number:018}"), within(age));
            }
            Step::Delete(age) => {
                if shop.search(&aid).mentions.first().is_some_and(|first| first.facts.published < within(age)) {
                    let id = shop.delete_before(&aid, within(age));
                    deleted = Some((id, within(age)));
                }
            }
            Step::Edit(age) => edit_before(&mut shop, &aid, within(age)),
            Step::Move(from, to) => {
                let all = mentions(&mut shop, &aid, since);
                if all.values().any(|(published, _)| *published < within(from)) {
                    let id = shop.delete_before(&aid, within(from));
                    shop.arrive(&aid, &id, within(to));
                }
            }
            Step::Return => {
                if let Some((id, at)) = deleted.take() {
                    shop.arrive(&aid, &id, at);
                }
            }
            Step::Compact => drop(shop.at(time).connection.compact_store().unwrap()),
            Step::Sync => {
                rescan(&shop.at(time), &aid, since).await;
                let found = mentions(&mut shop, &aid, since);
                let round = synced.len();
                for (id, values) in &found {
                    match before.get(id) {
                        None => drop(arrived.insert(id.clone(), round)),
                        Some(old) if old != values => drop(changed.insert(id.clone(), round)),
                        Some(_) => {}
                    }
                    gone.remove(id);
                }
                for id in before.keys().filter(|id| !found.contains_key(*id)) {
                    gone.insert(id.clone(), round);
                }
                before = found;
                synced.push((snapshot(&shop), time));
            }
        }
    }
    let visit = shop.at(time);
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    for (round, (snapshot, at)) in synced.iter().enumerate() {
        let later = |of: &BTreeMap<String, usize>, id: &String| of.get(id).is_some_and(|change| *change > round);
        let mut expected = BTreeMap::new();
        for id in before.keys() {
            if later(&arrived, id) {
                expected.insert(id.clone(), "arrived".to_owned());
            } else if later(&changed, id) {
                expected.insert(id.clone(), "changed".to_owned());
            }
        }
        expected.extend(gone.keys().filter(|id| later(&gone, id)).map(|id| (id.clone(), "deleted".to_owned())));
        assert_eq!(changes(&visit, &format!("since => {snapshot}")).await, expected, "round {round}");
        let instant = format!("since => '{}', aid => {aid}", at.format("%Y-%m-%dT%H:%M:%SZ"));
        assert_eq!(changes(&visit, &instant).await, expected, "round {round}");
        let other = format!("since => {snapshot}, aid => '{}'", searches[1]);
        assert_eq!(changes(&visit, &other).await, BTreeMap::new());
    }
    // All that the store has arrived at some time.
    let all = changes(&visit, "since => 0").await;
    let present: Vec<&String> = all.iter().filter(|(_, change)| *change == "arrived").map(|(id, _)| id).collect();
    assert_eq!(present, before.keys().collect::<Vec<_>>());
    // Whatever happened to a mention since, its row has the time of the synchronization that found it.
    let first_seen = ask(&visit, "SELECT id, first_seen FROM changes(since => 0) WHERE change = 'arrived'").await;
    let first_seen: BTreeMap<String, String> =
        first_seen.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let at = |id: &String| synced[arrived[id]].1.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let expected: BTreeMap<String, String> = before.keys().map(|id| (id.clone(), at(id))).collect();
    assert_eq!(first_seen, expected);
}

fn time_of(now: DateTime<Utc>, age: i64) -> DateTime<Utc> {
    now - days(age) - TimeDelta::minutes(13)
}

#[test]
fn changes_since_any_snapshot_are_those_of_the_service() {
    let age = || 0..WINDOW;
    let step = prop_oneof![
        2 => age().prop_map(Step::Arrive),
        2 => age().prop_map(Step::Delete),
        2 => age().prop_map(Step::Edit),
        1 => (age(), age()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => Just(Step::Return),
        4 => Just(Step::Sync),
        1 => Just(Step::Compact),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let histories = prop::collection::vec(step, 4..24);
    let result = runner(knob("CHANGE_HISTORIES", 12), knob("CHANGE_SEED", 1)).run(&histories, |steps| {
        runtime.block_on(replay(&steps));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// More readers than a runtime has threads for blocking work. What they keep must not be what the store is written with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_nobody_reads_keep_no_threads() {
    let corpus = Corpus::generate(CorpusSpec { seed: 5, searches: 6, mentions: 900, now: now() });
    let shop = Shop::of(&corpus, Profile::v4());
    let visit = shop.at(now());
    sync(&visit.connection, &SyncOptions::since((now() - days(20)).date_naive()), |_| {}).await.unwrap();
    visit.set("SET savedsearch.freshness = '1h'").await;
    let changes = visit.stored.sql("SELECT id FROM changes(since => 0)").await.unwrap();
    let all = changes.clone().collect().await.unwrap();
    assert!(all.len() > 4, "only {} batches", all.len());
    let mut unread = Vec::new();
    for _ in 0..520 {
        let mut rows = changes.clone().execute_stream().await.unwrap();
        let begun = rows.next().await.unwrap().unwrap().num_rows();
        unread.push((rows, begun));
    }
    let (aid, from, to) = (&corpus.searches[0].aid, now() - days(60), now() - days(40));
    let sql = format!(
        "SELECT id FROM mentions WHERE aid = '{aid}' AND published_at >= TIMESTAMP '{}' AND published_at < TIMESTAMP '{}'",
        from.format("%Y-%m-%dT00:00:00Z"),
        to.format("%Y-%m-%dT00:00:00Z")
    );
    let read = async { rows(&visit.stored.sql(&sql).await.unwrap().collect().await.unwrap()) };
    let read = tokio::time::timeout(LONGEST, read).await.expect("the store is not written");
    assert!(!read.is_empty());
    assert_eq!(ask(&visit, &sql).await.len(), read.len(), "the days are stored");
    let (mut one, mut listed) = unread.pop().unwrap();
    while let Some(batch) = one.next().await {
        listed += batch.unwrap().num_rows();
    }
    let right = all.iter().map(|batch| batch.num_rows()).sum::<usize>();
    assert_eq!(listed, right, "a reader that goes on has all rows");
}

#[tokio::test]
async fn changes_have_the_columns_of_mentions_and_their_commit() {
    let mut shop = Shop::new();
    let since = now() - days(WINDOW);
    rescan(&shop.at(now()), BIG, since).await;
    let first = snapshot(&shop);
    shop.arrive(BIG, "77", now() - days(3));
    let gone = shop.delete_before(BIG, now() - days(4));
    edit_before(&mut shop, BIG, now() - days(6));
    let later = shop.at(now() + TimeDelta::minutes(10));
    rescan(&later, BIG, since).await;
    let found = ask(&later, "SELECT * FROM changes(since => now())").await;
    assert_eq!(found, Vec::<Vec<String>>::new());
    let sql = "SELECT aid, id, change, changed_at, snapshot, arrived_at, published_at \
               FROM changes(since => now() - INTERVAL '5 minutes')";
    let much_later = shop.at(now() + TimeDelta::minutes(12));
    let found = ask(&much_later, &format!("{sql} ORDER BY change")).await;
    let snapshot = snapshot(&shop);
    assert!(snapshot > first);
    let at = "2026-07-01T12:10:00Z";
    let snapshot = snapshot.to_string();
    assert_eq!(found[0], [BIG, "77", "arrived", at, &snapshot, at, "2026-06-28T12:00:00Z"]);
    assert_eq!(found[1][2..6], ["changed", at, &snapshot, "2026-07-01T12:00:00Z"]);
    assert_eq!(found[2][..6], [BIG, &gone, "deleted", at, &snapshot, "NULL"]);
    assert_eq!(found.len(), 3);
    // As in the table.
    let columns = "SELECT title, text, reach, tags, extra, as_of FROM";
    let listed = ask(&later, &format!("{columns} changes(since => {first}) WHERE id = '77'")).await;
    later.set("SET savedsearch.freshness = '1h'").await;
    let sql = format!("{columns} mentions WHERE aid = '{BIG}' AND id = '77' AND published_at >= '2026-06-20'");
    assert_eq!(ask(&later, &sql).await, listed);
    // In the zone of the session, as other instants.
    later.set("SET timezone = 'Europe/Berlin'").await;
    let local = ask(&later, "SELECT changed_at FROM changes(since => '2026-07-01 14:05:00') LIMIT 1").await;
    assert_eq!(local, [["2026-07-01T14:10:00+02:00"]]);
    assert_eq!(changes(&later, "since => '2026-07-01 14:10:00'").await, BTreeMap::new());
}

#[tokio::test]
async fn calls_that_cannot_be_answered_say_what_to_do() {
    let shop = Shop::new();
    let visit = shop.at(now());
    rescan(&visit, BIG, now() - days(WINDOW)).await;
    let latest = snapshot(&shop);
    let cases = [
        ("(since => 'yesterday')", ErrorKind::Query, "since must be an instant"),
        ("(since => -1)", ErrorKind::Query, "since must be an instant"),
        ("(since => 0, aid => [])", ErrorKind::Query, "aid must be a saved search"),
        ("(since => 0, aid => NULL)", ErrorKind::Query, "aid must be a saved search"),
        ("(aid => '1')", ErrorKind::Query, "use changes(since =>"),
        ("", ErrorKind::Query, "use changes(since =>"),
        ("(since => 1000)", ErrorKind::Store, &format!("the latest is {latest}")),
    ];
    each_async(cases, async |(arguments, kind, part)| {
        let error = failure(&visit, &format!("SELECT * FROM changes{arguments}")).await;
        assert_eq!(error.kind(), kind, "{arguments}: {error}");
        assert!(error.to_string().contains(part), "{arguments}: {error}");
    })
    .await;
    let error = visit.stored.sql("SELECT * FROM changes(since => 1, duration => '7d')").await.unwrap_err();
    assert!(error.to_string().contains("changes accepts since, aid"), "{error}");
    let tables = ask(&visit, "SELECT table_name FROM information_schema.tables WHERE table_name = 'changes'").await;
    assert_eq!(tables, Vec::<Vec<String>>::new());
    // Without a store.
    let error = visit.plain.sql("SELECT * FROM changes(since => 1)").await.unwrap_err();
    let error = Error::find(&error).unwrap();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("no store configured; use `ConnectionBuilder::store`"), "{error}");
}

/// Changes before commits were recorded, and those of a program that does not record them, are unknown.
#[tokio::test]
async fn changes_before_the_earliest_known_commit_are_an_error_that_names_it() {
    let mut shop = Shop::new();
    let since = now() - days(WINDOW);
    rescan(&shop.at(now()), BIG, since).await;
    let tamper = |sql: &str| {
        let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
        catalog.execute_batch(sql).unwrap();
    };
    tamper("DROP TABLE savedsearch_recorded; DROP TABLE savedsearch_stamps; DROP TABLE savedsearch_deleted_stamp");
    let first = snapshot(&shop);
    let visit = shop.at(now() + TimeDelta::minutes(10));
    for since in [format!("{}", first - 1), "'2026-07-01T11:00:00Z'".to_owned()] {
        let error = failure(&visit, &format!("SELECT * FROM changes(since => {since})")).await;
        assert_eq!(error.kind(), ErrorKind::Store);
        let expected = format!(
            "changes of the store are known only since 2026-07-01T12:00:00Z (snapshot {first}); \
             use changes(since => '2026-07-01T12:00:00Z'), or a later instant"
        );
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(changes(&visit, "since => '2026-07-01T12:00:00Z'").await, BTreeMap::new());
    assert_eq!(changes(&visit, &format!("since => {first}")).await, BTreeMap::new());
    shop.arrive(BIG, "77", now() - days(3));
    edit_before(&mut shop, BIG, now() - days(5));
    let later = shop.at(now() + TimeDelta::minutes(20));
    rescan(&later, BIG, since).await;
    let found = changes(&later, &format!("since => {first}")).await;
    assert_eq!(found.values().collect::<Vec<_>>().len(), 2, "{found:?}");
    assert_eq!(found.get("77").map(String::as_str), Some("arrived"));
    // A commit of another program.
    let known = snapshot(&shop);
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    let sql = "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, '2026-07-01 12:30:00.5+00', schema_version, next_catalog_id, \
               next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1";
    catalog.execute(sql, []).unwrap();
    drop(catalog);
    let expected = format!("known only since 2026-07-01T12:30:00.500Z (snapshot {})", known + 1);
    let sql = format!("SELECT * FROM changes(since => {known})");
    let error = failure(&later, &sql).await.to_string();
    assert!(error.contains(&expected), "{error}");
    shop.arrive(BIG, "78", now() - days(3));
    let last = shop.at(now() + TimeDelta::minutes(40));
    rescan(&last, BIG, since).await;
    let error = failure(&last, &sql).await.to_string();
    assert!(error.contains(&expected), "{error}");
    let found = changes(&last, &format!("since => {}", known + 1)).await;
    assert_eq!(found, [("78".to_owned(), "arrived".to_owned())].into());
    assert_eq!(last.connection.verify_store().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_was_erased_is_not_listed_and_arrives_again_when_it_is_read() {
    let mut shop = Shop::new();
    let since = now() - days(WINDOW);
    rescan(&shop.at(now()), BIG, since).await;
    let first = snapshot(&shop);
    for (id, age) in [("77", 3), ("78", 3), ("79", 20)] {
        shop.arrive(BIG, id, now() - days(age));
    }
    let gone = shop.delete_before(BIG, now() - days(20));
    let later = shop.at(now() + TimeDelta::minutes(10));
    rescan(&later, BIG, since).await;
    let ids = async |visit: &Visit, since: i64| {
        let found = changes(visit, &format!("since => {since}")).await;
        found.into_keys().collect::<BTreeSet<String>>()
    };
    let of = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(ids(&later, first).await, of(&["77", "78", "79", &gone]));
    later.connection.erase_stored(None, &Erase::Id("77".to_owned())).unwrap();
    assert_eq!(ids(&later, first).await, of(&["78", "79", &gone]));
    later.connection.erase_stored(None, &Erase::Id(gone.clone())).unwrap();
    assert_eq!(ids(&later, first).await, of(&["78", "79"]));
    // A part of a month.
    later.connection.erase_stored(None, &Erase::Before((now() - days(10)).date_naive())).unwrap();
    assert_eq!(ids(&later, first).await, of(&["78"]));
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
    let erased = snapshot(&shop);
    let before: BTreeSet<String> = mentions(&mut shop, BIG, since)
        .into_iter()
        .filter(|(_, (published, _))| published.date_naive() < (now() - days(10)).date_naive())
        .map(|(id, _)| id)
        .collect();
    let last = shop.at(now() + TimeDelta::minutes(20));
    rescan(&last, BIG, since).await;
    let mut again = before.clone();
    again.insert("77".to_owned());
    assert_eq!(ids(&last, erased).await, again);
    assert!(changes(&last, &format!("since => {erased}")).await.values().all(|change| change == "arrived"));
}

/// A service at an address that stays, while its mentions change.
struct Service {
    running: Option<Running>,
    address: SocketAddr,
    time: DateTime<Utc>,
    searches: Vec<SavedSearch>,
}

impl Service {
    async fn start() -> Self {
        let time = Clock::system().now();
        let corpus = Corpus::generate(CorpusSpec { seed: 5, searches: 2, mentions: 400, now: time });
        // Those that the key may read.
        let own = corpus.searches.iter().filter(|search| search.team == 0);
        let searches = own.map(|search| search.as_ref().clone()).collect();
        let mut service = Self { running: None, address: ALONE.parse().unwrap(), time, searches };
        service.restart().await;
        service
    }

    async fn restart(&mut self) {
        self.running = None;
        let searches = self.searches.iter().cloned().map(Arc::new).collect();
        let corpus = Arc::new(Corpus { searches, recent: [Vec::new(), Vec::new()] });
        for _ in 0..5_000 {
            match simulator::start(self.address, Arc::clone(&corpus), Settings::default()).await {
                Ok(running) => {
                    let url = running.base_url();
                    self.address = url.trim_start_matches("http://").split('/').next().unwrap().parse().unwrap();
                    self.running = Some(running);
                    return;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        panic!("{} is not free", self.address);
    }

    fn requests(&self) -> u64 {
        self.running.as_ref().unwrap().requests()
    }

    /// Ids of the mentions on the days of a sync.
    fn ids(&self, since: DateTime<Utc>) -> BTreeSet<String> {
        let first = since.date_naive();
        let recent = self.searches.iter().flat_map(|search| &search.mentions);
        let recent = recent.filter(|mention| mention.facts.published.date_naive() >= first);
        recent.map(|mention| mention.facts.id.to_string()).collect()
    }

    fn sync(&self, store: &Path, rest: &[&str]) -> Command {
        let url = self.running.as_ref().unwrap().base_url();
        let aids: Vec<&str> = self.searches.iter().flat_map(|search| ["--aid", search.aid.as_str()]).collect();
        let options = ["--base-url", &url, "--store", store.to_str().unwrap(), "sync"];
        let mut command = savedsearch(&[&options[..], &aids, rest].concat());
        command.env("SAVEDSEARCH_API_KEY", KEY).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Ids of mentions in a file of lines of JSON. Lines that are cut have none.
fn handed(file: &Path) -> Vec<String> {
    ids_of(&std::fs::read_to_string(file).unwrap_or_default())
}

fn ids_of(text: &str) -> Vec<String> {
    let objects = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    objects.filter_map(|object| object["id"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_gets_new_mentions_until_it_has_succeeded() {
    let mut service = Service::start().await;
    let folder = TempDir::new().unwrap();
    let (store, file) = (folder.path().join("store"), folder.path().join("new.ndjson"));
    let since = service.time - days(20);
    let date = since.date_naive().to_string();
    let append = format!("cat >> '{}'; test ! -e '{}'", file.display(), folder.path().join("fails").display());
    let run = |service: &Service, command: &str| {
        let before = service.requests();
        let output = service.sync(&store, &["--since", &date, "--on-new", command]).output().unwrap();
        (output.status.code(), err(&output), service.requests() - before)
    };
    // Without a command, the same requests.
    let plain = service.sync(&folder.path().join("plain"), &["--since", &date]).output().unwrap();
    assert!(plain.status.success());
    let cost = service.requests();
    std::fs::write(folder.path().join("fails"), "").unwrap();
    let (status, lines, requests) = run(&service, &append);
    assert_eq!((status, requests), (Some(1), cost), "{lines}");
    let all = service.ids(since);
    let expected = format!("new mentions: {}; the command failed (exit status: 1)", all.len());
    assert!(lines.contains(&expected) && lines.contains("\nerror: the command failed"), "{lines}");
    assert_eq!(handed(&file).into_iter().collect::<BTreeSet<_>>(), all);
    // All of them again, each once.
    std::fs::remove_file(folder.path().join("fails")).unwrap();
    std::fs::remove_file(&file).unwrap();
    let (status, lines, _) = run(&service, &append);
    assert_eq!(status, Some(0), "{lines}");
    let first = handed(&file);
    assert_eq!((first.len(), first.into_iter().collect::<BTreeSet<_>>()), (all.len(), all.clone()));
    // Nothing is new: the command does not run.
    let (status, lines, _) = run(&service, &append);
    assert_eq!(status, Some(0));
    assert!(lines.contains(" · new mentions: 0"), "{lines}");
    assert_eq!(handed(&file).len(), all.len());
    // One arrives, and another is edited.
    std::fs::remove_file(&file).unwrap();
    let recent = service.time - TimeDelta::hours(30);
    let mentions = &mut service.searches[0].mentions;
    let at = mentions.partition_point(|mention| mention.facts.published < recent);
    let mut new = mentions[at - 1].as_ref().clone();
    (new.facts.id, new.facts.published) = ("9000000000000000001".into(), recent);
    Arc::make_mut(&mut mentions[at - 1]).facts.reach = Some(123_456);
    mentions.insert(at, Arc::new(new));
    service.restart().await;
    let (status, lines, _) = run(&service, &append);
    assert_eq!(status, Some(0), "{lines}");
    assert_eq!(handed(&file), ["9000000000000000001"], "{lines}");
    // A command that does not read its input has all the same succeeded, and another command has a cursor of its own.
    let (status, lines, _) = run(&service, "exec true");
    assert_eq!(status, Some(0), "{lines}");
    assert!(lines.contains("new mentions: 0"), "{lines}");
}

/// The variable is that of an option which cannot be combined with the one that is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_given_wins_over_the_variable_of_a_webhook() {
    let (service, folder, receiver) = (Service::start().await, TempDir::new().unwrap(), Receiver::start());
    let (store, file) = (folder.path().join("store"), folder.path().join("new.ndjson"));
    let date = (service.time - days(20)).date_naive().to_string();
    let append = format!("cat >> '{}'", file.display());
    for webhook in [receiver.url.as_str(), "not a URL"] {
        let mut command = service.sync(&store, &["--since", &date, "--on-new", &append]);
        let output = command.env("SAVEDSEARCH_WEBHOOK", webhook).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{webhook}: {}", err(&output));
    }
    assert!(!handed(&file).is_empty() && receiver.take().is_empty());
    let both = service.sync(&store, &["--on-new", &append, "--webhook", &receiver.url]).output().unwrap();
    assert_eq!(both.status.code(), Some(2), "{}", err(&both));
}

/// A server that accepts new mentions, or refuses them with a status.
struct Receiver {
    url: String,
    /// Status of the next responses.
    status: Arc<Mutex<&'static str>>,
    /// Head and body of each request.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind(ALONE).unwrap();
        let url = format!("http://{}/hook?token=s3cr3t", listener.local_addr().unwrap());
        let receiver = Self { url, status: Arc::new(Mutex::new("204 No Content")), requests: Arc::default() };
        let (status, requests) = (Arc::clone(&receiver.status), Arc::clone(&receiver.requests));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut head, mut length) = (String::new(), 0);
                while !head.ends_with("\r\n\r\n") {
                    let mut line = String::new();
                    assert!(stream.read_line(&mut line).unwrap() > 0, "{head}");
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    head.push_str(&line);
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                requests.lock().unwrap().push((head, String::from_utf8(body).unwrap()));
                let status = *status.lock().unwrap();
                let rest = "Location: /elsewhere\r\nContent-Length: 0\r\nConnection: close";
                write!(stream.get_mut(), "HTTP/1.1 {status}\r\n{rest}\r\n\r\n").unwrap();
            }
        });
        receiver
    }

    fn answer(&self, status: &'static str) {
        *self.status.lock().unwrap() = status;
    }

    /// Requests since the last call.
    fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_gets_new_mentions_until_it_has_accepted_them() {
    let mut service = Service::start().await;
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("store");
    let since = service.time - days(20);
    let date = since.date_naive().to_string();
    let receiver = Receiver::start();
    let run = |service: &Service| {
        let output = service.sync(&store, &["--since", &date, "--webhook", &receiver.url]).output().unwrap();
        assert!(!err(&output).contains("s3cr3t"), "{}", err(&output));
        (output.status.code(), err(&output), receiver.take())
    };
    let all = service.ids(since);
    receiver.answer("503 Service Unavailable");
    let (status, lines, requests) = run(&service);
    let what = "the webhook at 127.0.0.2 answered 503 Service Unavailable";
    let left = format!("{what}; mentions left for the next synchronization: {}\n", all.len());
    assert_eq!((status, requests.len()), (Some(1), 1), "{lines}");
    assert!(lines.contains(&format!(" · new mentions: {}; {left}", all.len())), "{lines}");
    assert!(lines.ends_with(&format!("error: {left}")), "{lines}");
    // All of them again, each once.
    receiver.answer("204 No Content");
    let (status, lines, requests) = run(&service);
    assert_eq!(status, Some(0), "{lines}");
    assert!(lines.ends_with(&format!(" · new mentions: {}\n", all.len())), "{lines}");
    let sent: Vec<String> = requests.iter().flat_map(|(_, body)| ids_of(body)).collect();
    assert_eq!((sent.len(), sent.into_iter().collect::<BTreeSet<_>>()), (all.len(), all));
    for (head, body) in &requests {
        assert!(head.starts_with("POST /hook?token=s3cr3t HTTP/1.1\r\n"), "{head}");
        assert!(head.to_lowercase().contains("content-type: application/x-ndjson\r\n"), "{head}");
        assert!(body.len() <= 1 << 20 && body.ends_with('\n'));
    }
    // Nothing is new: nothing is sent.
    let (status, lines, requests) = run(&service);
    assert_eq!((status, requests.len()), (Some(0), 0), "{lines}");
    // One arrives. A redirect is not followed.
    let recent = service.time - TimeDelta::hours(30);
    let mentions = &mut service.searches[0].mentions;
    let at = mentions.partition_point(|mention| mention.facts.published < recent);
    let mut new = mentions[at - 1].as_ref().clone();
    (new.facts.id, new.facts.published) = ("9000000000000000001".into(), recent);
    mentions.insert(at, Arc::new(new));
    service.restart().await;
    receiver.answer("307 Temporary Redirect");
    let (status, lines, requests) = run(&service);
    assert_eq!((status, requests.len()), (Some(1), 1), "{lines}");
    let advice = "use the URL that it redirects to, because redirects are not followed; mentions left for the next";
    assert!(lines.contains(advice), "{lines}");
    receiver.answer("200 OK");
    let (status, lines, requests) = run(&service);
    assert_eq!((status, requests.len()), (Some(0), 1), "{lines}");
    assert_eq!(ids_of(&requests[0].1), ["9000000000000000001"]);
    // The store does not have the URL.
    for file in std::fs::read_dir(&store).unwrap().map(|file| file.unwrap().path()).filter(|file| file.is_file()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"s3cr3t"), "{}", file.display());
    }
}

#[tokio::test]
async fn new_mentions_are_read_in_parts_in_the_order_of_their_commits() {
    let shop = Shop::new();
    let visit = shop.at(now());
    let begin = |consumer: &str| NewMentions::begin(&visit.connection, consumer, &[]).unwrap();
    let [parts, whole] = ["in parts", "as a whole"].map(begin);
    let mut options = SyncOptions::since((now() - days(40)).date_naive());
    options.aids = vec![BIG.to_owned(), OTHER.to_owned()];
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    let mut all = 0;
    let read = whole.read(|batch| {
        all += batch.num_rows() as u64;
        Ok(())
    });
    let read = read.unwrap();
    let stored: u64 = visit.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum();
    assert_eq!((read.mentions, read.left, all), (stored, 0, stored));
    let (mut had, mut ends, mut first) = (0, Vec::new(), None);
    loop {
        let mut rows = 0;
        let mut take = |batch: arrow::array::RecordBatch| -> Result<(), Error> {
            rows += batch.num_rows() as u64;
            Ok(())
        };
        // Until the cursor advances, the same part is read again.
        let read = parts.read_some(1, &mut take).unwrap();
        assert_eq!(parts.read_some(1, &mut take).unwrap(), read);
        assert_eq!((rows, read.left), (2 * read.mentions, all - had - read.mentions));
        had += read.mentions;
        ends.push(read.until);
        first.get_or_insert(read);
        parts.advance(&read).unwrap();
        if read.left == 0 {
            break;
        }
    }
    assert!(had == all && ends.len() > 1 && ends.is_sorted_by(|one, next| one < next), "{had} of {all}: {ends:?}");
    // Another process of the same consumer begins, or ends late.
    begin("in parts").advance(&first.unwrap()).unwrap();
    assert_eq!(parts.read(|_| Ok(())).unwrap().mentions, 0);
}

/// The consumer reads between the parts of a synchronization, and while another program has ended a file, whose days are read again.
#[tokio::test]
async fn a_consumer_that_reads_while_days_are_missing_gets_their_mentions_later() {
    let shop = Shop::new();
    let visit = shop.at(now());
    let consumer = NewMentions::begin(&visit.connection, "a consumer", &[]).unwrap();
    let mut had: Vec<(String, String)> = Vec::new();
    let mut read = || {
        let read = consumer.read(|batch| {
            let [aid, id] = ["aid", "id"].map(|name| batch.schema().index_of(name).unwrap());
            had.extend(rows(&[batch]).into_iter().map(|row| (row[aid].clone(), row[id].clone())));
            Ok(())
        });
        let read = read.unwrap();
        consumer.advance(&read).unwrap();
        read.mentions
    };
    let first = (now() - days(60)).date_naive();
    let mut parts = Vec::new();
    for (aids, since) in [
        (vec![BIG], (now() - days(10)).date_naive()),
        (vec![BIG], first),
        // The days of the parts before are no longer stored.
        (vec![OTHER], first),
        (vec![BIG, OTHER], first),
    ] {
        let mut options = SyncOptions::since(since);
        options.aids = aids.into_iter().map(str::to_owned).collect();
        sync(&visit.connection, &options, |_| {}).await.unwrap();
        parts.push(read());
        if parts.len() == 2 {
            let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
            let sql = "UPDATE ducklake_data_file SET end_snapshot = (SELECT max(snapshot_id) FROM ducklake_snapshot) \
                       WHERE end_snapshot IS NULL";
            assert!(catalog.execute(sql, []).unwrap() > 0);
            assert_eq!(read(), 0);
        }
    }
    assert_eq!(read(), 0);
    assert!(parts.iter().all(|mentions| *mentions > 0) && parts[3] == parts[0] + parts[1], "{parts:?}");
    let stored: u64 = visit.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum();
    assert_eq!((stored, parts[2] + parts[3]), (mentions_from(&visit, first).await, stored));
    assert_eq!(had.len() as u64, stored + parts[3], "those of the days that were read twice come twice");
    let all: BTreeSet<&(String, String)> = had.iter().collect();
    assert_eq!(all.len() as u64, stored);
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_loses_no_mention_wherever_the_sync_is_killed() {
    let service = Service::start().await;
    let folder = TempDir::new().unwrap();
    let (store, files) = (folder.path().join("store"), folder.path().join("new"));
    std::fs::create_dir(&files).unwrap();
    let since = service.time - days(60);
    let date = since.date_naive().to_string();
    // The command of a process that was killed may have written a part of a line.
    let write = format!("sleep 0.05; cat > '{}'/$$; sleep 0.05", files.display());
    for kill in 0..knob("STORE_KILLS", 12) {
        let mut child = service.sync(&store, &["--quiet", "--since", &date, "--on-new", &write]);
        let mut child = child.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(60 + kill * 61 % 700)).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let last = service.sync(&store, &["--since", &date, "--on-new", &write]).output().unwrap();
    assert!(last.status.success(), "{}", err(&last));
    let files = std::fs::read_dir(&files).unwrap().map(|file| file.unwrap().path());
    assert_eq!(files.flat_map(|file| handed(&file)).collect::<BTreeSet<_>>(), service.ids(since));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watching_sync_prints_one_line_a_round_and_ends_with_its_command() {
    let service = Service::start().await;
    let folder = TempDir::new().unwrap();
    let date = (service.time - days(10)).date_naive().to_string();
    let stopped = |lines: &mut dyn BufRead, child: &mut std::process::Child| {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        (child.wait().unwrap().code(), rest)
    };
    let options = ["--since", &date, "--watch", "1s", "--on-new", "cat > /dev/null"];
    let mut child = service.sync(&folder.path().join("store"), &options).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut rounds = Vec::new();
    while rounds.len() < 3 {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "{rounds:?}");
        // A round that takes more than a few seconds also shows its progress.
        let is_progress = line.ends_with(" page\n") || line.ends_with(" pages\n");
        if (!rounds.is_empty() && !is_progress) || line.starts_with("up to date: ") {
            rounds.push(line);
        }
    }
    let searches = format!("up to date: {} saved searches · ", service.searches.len());
    assert!(rounds.iter().all(|line| line.starts_with(&searches)), "{rounds:?}");
    assert!(rounds[1..].iter().all(|line| line.ends_with(" · new mentions: 0\n")), "{rounds:?}");
    let (status, rest) = stopped(&mut lines, &mut child);
    assert_eq!(status, Some(130), "{rest}");
    // While the command runs.
    let marker = folder.path().join("runs");
    let command = format!("touch '{}'; exec sleep 600", marker.display());
    let options = ["--since", &date, "--on-new", &command];
    let mut child = service.sync(&folder.path().join("other"), &options).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !marker.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (status, rest) = stopped(&mut lines, &mut child);
    assert_eq!(status, Some(130), "{rest}");
    assert!(rest.ends_with("error: stopped; the next run hands these mentions to the command again\n"), "{rest}");
}

#[tokio::test]
async fn days_older_than_their_retention_are_removed_and_read_from_the_service() {
    let shop = Shop::new();
    let old = format!(
        "SELECT id, title FROM mentions WHERE aid = '{OTHER}' AND published_at >= '2026-05-05' AND published_at < '2026-05-20'"
    );
    let first = (now() - days(30)).date_naive();
    let mut options = SyncOptions::since((now() - days(60)).date_naive());
    options.aids = vec![BIG.to_owned(), OTHER.to_owned()];
    let visit = shop.at(now());
    let all = sync(&visit.connection, &options, |_| {}).await.unwrap();
    assert_eq!(all.removed, Default::default());
    options.retain = Some(30);
    let snapshot = snapshot(&shop);
    let later = shop.at(now() + TimeDelta::minutes(5));
    let kept: u64 = mentions_from(&later, first).await;
    let synced = sync(&later.connection, &options, |_| {}).await.unwrap();
    let holdings = later.connection.holdings().unwrap();
    assert!(holdings.len() == 2 && holdings.iter().all(|holding| holding.from == first), "{holdings:?}");
    assert_eq!(holdings.iter().map(|holding| holding.mentions).sum::<u64>(), kept);
    assert!(synced.removed.mentions > 0 && synced.removed.days > 0, "{synced:?}");
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
    assert!(!changes(&later, &format!("since => {snapshot}")).await.values().any(|change| change == "deleted"));
    // Older days are not read by a sync: it costs what it costs from the first day on that stays.
    let (one, other) = (Shop::new(), Shop::new());
    let retaining = sync(&one.at(now()).connection, &options, |_| {}).await.unwrap();
    let mut from = SyncOptions::since(first);
    from.aids.clone_from(&options.aids);
    let from = sync(&other.at(now()).connection, &from, |_| {}).await.unwrap();
    assert_eq!((retaining.requests, retaining.removed), (from.requests, Default::default()));
    assert!(from.requests < all.requests);
    // A query reads them from the service, as without a store.
    let before = later.simulator.requests();
    rows(&later.plain.sql(&old).await.unwrap().collect().await.unwrap());
    let cost = later.simulator.requests() - before;
    assert_eq!(later.cost(&old).await, cost);
    // They are stored until the next sync; the files that had them are deleted when no query can be reading them.
    let last = shop.at(now() + TimeDelta::hours(3));
    assert!(sync(&last.connection, &options, |_| {}).await.unwrap().removed.days > 0);
    let end = shop.at(now() + TimeDelta::hours(6));
    assert_eq!(sync(&end.connection, &options, |_| {}).await.unwrap().removed, Default::default());
    assert_eq!(end.connection.verify_store().unwrap(), Vec::<String>::new());
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    let earliest: i64 = catalog.query_row("SELECT min(first) FROM savedsearch_file", [], |row| row.get(0)).unwrap();
    assert!(DateTime::from_timestamp_micros(earliest).unwrap().date_naive() >= first);
    let files: i64 = catalog.query_row("SELECT count(*) FROM ducklake_data_file", [], |row| row.get(0)).unwrap();
    let parquet = std::fs::read_dir(shop.folder.path().join("data/mentions")).unwrap();
    let parquet =
        parquet.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|name| name == "parquet"));
    assert_eq!(parquet.count() as i64, files);
}

/// Number of stored mentions from a day on.
async fn mentions_from(visit: &Visit, first: chrono::NaiveDate) -> u64 {
    let searches = format!("aid IN ('{BIG}', '{OTHER}')");
    let sql =
        format!("SELECT count(*) FROM (SELECT id, title FROM mentions WHERE {searches} AND published_at >= '{first}')");
    rows(&visit.plain.sql(&sql).await.unwrap().collect().await.unwrap())[0][0].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_names_the_retention_of_its_store() {
    let service = Service::start().await;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    let url = service.running.as_ref().unwrap().base_url();
    let config = folder.path().join("connections.toml");
    let with = |settings: &str, rest: &[&str]| {
        let text = format!("[connections.mine]\nbase_url = \"{url}\"\napi_key_file = \"key\"\n{settings}\n");
        std::fs::write(&config, text).unwrap();
        let aids: Vec<&str> = service.searches.iter().flat_map(|search| ["--aid", search.aid.as_str()]).collect();
        let mut command = savedsearch(&[&["--config", config.to_str().unwrap(), "sync"], &aids[..], rest].concat());
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output.status.code(), err(&output))
    };
    let first = |retain: i64| (service.time - days(retain)).date_naive();
    let stored = || {
        let builder = Connection::builder(url.clone(), Secret::new(KEY).unwrap()).store(folder.path().join("store"));
        let holdings = builder.build().unwrap().holdings().unwrap();
        holdings.iter().map(|holding| holding.from).min().unwrap()
    };
    let since = first(40).to_string();
    let (status, lines) = with("store = \"store\"", &["--since", &since]);
    assert_eq!((status, stored()), (Some(0), first(40)), "{lines}");
    let (status, lines) = with("store = \"store\"\nretain = \"20d\"", &["--since", &since]);
    assert_eq!((status, stored()), (Some(0), first(20)), "{lines}");
    assert!(lines.contains(" · removed because of their age: "), "{lines}");
    let (status, lines) = with("store = \"store\"\nretain = \"20d\"", &["--since", &since, "--retain", "10d"]);
    assert_eq!((status, stored()), (Some(0), first(10)), "{lines}");
    for (settings, expected) in [
        ("retain = \"20d\"", "connection `mine`: retain needs a store"),
        ("store = \"store\"\nretain = \"20\"", "connection `mine`: invalid retain `20`: expected a number of days"),
        ("store = \"store\"\nretain = \"0d\"", "connection `mine`: invalid retain `0d`"),
        ("quota = \"20GB\"", "connection `mine`: quota needs a store"),
        ("store = \"store\"\nquota = \"20\"", "connection `mine`: invalid quota `20`: expected a size, such as 500MB"),
        ("store = \"store\"\nquota = \"0GB\"", "connection `mine`: invalid quota `0GB`"),
    ] {
        let (status, lines) = with(settings, &[]);
        assert!(lines.contains(expected) && status != Some(0), "{lines}");
    }
    let context = session(&Connection::builder(url.clone(), Secret::new(KEY).unwrap()).build().unwrap()).unwrap();
    assert!(context.sql("SELECT * FROM changes(since => 1)").await.is_err());
}

/// Size of the current files of mentions by the catalog.
fn bytes_in(shop: &Shop) -> u64 {
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    let sql = "SELECT sum(file_size_bytes) FROM ducklake_data_file WHERE end_snapshot IS NULL";
    catalog.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_oldest_days_of_a_store_above_its_quota_are_removed_and_not_read_again() {
    let shop = Shop::new();
    let mut options = SyncOptions::since((now() - days(60)).date_naive());
    options.aids = vec![BIG.to_owned(), OTHER.to_owned()];
    let visit = shop.at(now());
    let all = sync(&visit.connection, &options, |_| {}).await.unwrap();
    visit.connection.compact_store().unwrap();
    let quota = bytes_in(&shop) / 2;
    options.quota = Some(quota);
    let synced = sync(&shop.at(now() + TimeDelta::minutes(5)).connection, &options, |_| {}).await.unwrap();
    assert!(synced.over_quota.mentions > 0 && bytes_in(&shop) <= quota, "{synced:?} {}", bytes_in(&shop));
    let first = synced.kept_from.unwrap();
    let later = shop.at(now() + TimeDelta::minutes(10));
    let stored: u64 = later.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum();
    assert_eq!(stored, mentions_from(&later, first).await, "the same days of all saved searches");
    assert!(stored > 0 && later.connection.holdings().unwrap().iter().all(|holding| holding.from >= first));
    assert_eq!(later.connection.verify_store().unwrap(), Vec::<String>::new());
    // The removed days are not read again, unless the quota is another one.
    let again = sync(&later.connection, &options, |_| {}).await.unwrap();
    assert_eq!((again.over_quota, again.kept_from), (Default::default(), Some(first)));
    assert_eq!(later.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum::<u64>(), stored);
    options.quota = None;
    sync(&later.connection, &options, |_| {}).await.unwrap();
    assert!(later.connection.holdings().unwrap().iter().map(|holding| holding.mentions).sum::<u64>() > stored);
    // An empty store is filled with the latest days only.
    let other = Shop::new();
    options.since = (now() - days(170)).date_naive();
    options.quota = Some(quota);
    let filled = sync(&other.at(now()).connection, &options, |_| {}).await.unwrap();
    assert!(filled.requests < all.requests * 2 && bytes_in(&other) <= quota, "{filled:?} {all:?}");
    // What cannot be kept is said.
    options.quota = Some(1);
    let error = sync(&other.at(now()).connection, &options, |_| {}).await.unwrap_err();
    assert!(error.to_string().contains(" alone are larger than the quota of the store; set a larger quota"), "{error}");
    options.oldest_first = true;
    let error = sync(&other.at(now()).connection, &options, |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}

#[tokio::test]
async fn a_watch_rule_has_one_alert_for_each_day_on_which_its_condition_holds() {
    let mut shop = Shop::new();
    let mut options = SyncOptions::since((now() - days(60)).date_naive());
    options.aids = vec![BIG.to_owned(), OTHER.to_owned()];
    let rule = async |visit: &Visit| {
        let aids = [BIG.to_owned()];
        Watch::begin(&visit.connection, "surge", &aids, "count > 3 * weekday_mean AND count >= 100").await.unwrap()
    };
    let visit = shop.at(now());
    let empty = rule(&visit).await.due().await.unwrap();
    assert_eq!((empty.alerts.len(), empty.unstored), (0, vec![BIG.to_owned()]));
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    let usual = rule(&visit).await.due().await.unwrap();
    assert_eq!((usual.alerts.len(), usual.unstored.len(), usual.undecided.len()), (0, 0, 0));
    let surge = |shop: &mut Shop, day: &str| {
        for number in 0..200 {
            let at = format!("{day}T11:00:00Z").parse::<DateTime<Utc>>().unwrap() - TimeDelta::minutes(number);
            shop.arrive(BIG, &format!("{day}-{number}"), at);
        }
    };
    surge(&mut shop, "2026-07-01");
    let later = shop.at(now() + TimeDelta::minutes(10));
    sync(&later.connection, &options, |_| {}).await.unwrap();
    let due = rule(&later).await.due().await.unwrap();
    let [alert] = due.alerts.as_slice() else { panic!("{due:?}") };
    let count = async |from: DateTime<Utc>| {
        let instants = [from, from + days(1)].map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        let [from, to] = instants;
        let of_day = format!("aid = '{BIG}' AND published_at >= '{from}' AND published_at < '{to}'");
        let sql = format!("SELECT count(*) FROM (SELECT id, title FROM mentions WHERE {of_day})");
        rows(&later.plain.sql(&sql).await.unwrap().collect().await.unwrap())[0][0].parse::<u64>().unwrap()
    };
    let today: DateTime<Utc> = "2026-07-01T00:00:00Z".parse().unwrap();
    let mut before = Vec::new();
    for weeks in 1..=8 {
        before.push(count(today - days(7 * weeks)).await);
    }
    let mean = before.iter().sum::<u64>() as f64 / 8.0;
    assert_eq!((alert.aid.as_str(), alert.day, alert.count), (BIG, today.date_naive(), count(today).await));
    assert_eq!(alert.weekday_mean, Some(mean), "{before:?}");
    let line: serde_json::Value = serde_json::from_str(&alert.to_line()).unwrap();
    assert!(line["rule"] == "surge" && line["day"] == "2026-07-01", "{line}");
    // It is due until it is recorded, for any process.
    assert_eq!(rule(&shop.at(now() + TimeDelta::minutes(11))).await.due().await.unwrap(), due);
    rule(&later).await.record(alert).unwrap();
    let recorded = rule(&later).await.due().await.unwrap();
    assert!(recorded.alerts.is_empty());
    rule(&later).await.finish(&recorded).unwrap();
    let next = shop.at(now() + days(1));
    sync(&next.connection, &options, |_| {}).await.unwrap();
    let due = rule(&next).await.due().await.unwrap();
    assert!(due.alerts.is_empty());
    rule(&next).await.finish(&due).unwrap();
    // No process runs for two weeks.
    surge(&mut shop, "2026-07-04");
    let last = shop.at(now() + days(15));
    sync(&last.connection, &options, |_| {}).await.unwrap();
    let due = rule(&last).await.due().await.unwrap();
    assert_eq!(due.alerts.iter().map(|alert| alert.day.to_string()).collect::<Vec<_>>(), ["2026-07-04"]);
    // Too few days before.
    let few = Shop::new();
    let visit = few.at(now());
    options.since = (now() - days(5)).date_naive();
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    let watch = Watch::begin(&visit.connection, "surge", &[], "count > 3 * weekday_mean").await.unwrap();
    let undecided = watch.due().await.unwrap();
    assert_eq!((undecided.alerts.len(), undecided.undecided.len()), (0, 2), "{undecided:?}");
    for (when, expected) in [
        ("count + 1", "expected a condition, found a value of type Int64; use the columns aid, day, count"),
        ("counts > 1", "invalid condition of watch rule `wrong`: "),
        ("count > 1; DROP TABLE mentions", "invalid condition of watch rule `wrong`: "),
        ("rank() OVER (ORDER BY count DESC) = 1", "a condition has one value for each row"),
        ("count = (SELECT count(*) FROM saved_searches)", "a condition has one value for each row"),
        ("random() < 0.5", "a condition has one value for each row"),
        ("count > $1", "invalid condition of watch rule `wrong`: "),
        ("", "invalid condition of watch rule `wrong`: "),
    ] {
        let error = Watch::begin(&visit.connection, "wrong", &[], when).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains(expected), "{when}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_reach_the_receivers_of_their_rules_until_they_are_accepted() {
    let service = Service::start().await;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    let (alerts, fails) = (folder.path().join("alerts"), folder.path().join("fails"));
    let url = service.running.as_ref().unwrap().base_url();
    let config = folder.path().join("connections.toml");
    let receiver = Receiver::start();
    let connection = format!("[connections.mine]\nbase_url = \"{url}\"\napi_key_file = \"key\"\n");
    let command = format!("cat >> '{}'; test ! -e '{}'", alerts.display(), fails.display());
    let rules = format!(
        "store = \"store\"\n[connections.mine.watch.by_command]\nwhen = \"count >= 0\"\ncommand = \"{command}\"\n\
         [connections.mine.watch.by_webhook]\nwhen = \"count >= 0\"\nwebhook_env = \"ALERTS\"\n"
    );
    let aids: Vec<&str> = service.searches.iter().flat_map(|search| ["--aid", search.aid.as_str()]).collect();
    let run = |settings: &str| {
        std::fs::write(&config, format!("{connection}{settings}")).unwrap();
        let options = ["--config", config.to_str().unwrap(), "sync", "--since", "2d"];
        let mut command = savedsearch(&[&options[..], &aids].concat());
        let output = command.env("ALERTS", &receiver.url).stdin(Stdio::null()).output().unwrap();
        assert!(!err(&output).contains("s3cr3t"), "{}", err(&output));
        (output.status.code(), err(&output), receiver.take())
    };
    let windows = |text: &str| -> Vec<(String, String)> {
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.map(|line| (line["aid"].to_string(), line["day"].to_string())).collect()
    };
    std::fs::write(&fails, "").unwrap();
    receiver.answer("503 Service Unavailable");
    let (status, lines, requests) = run(&rules);
    assert_eq!((status, requests.len()), (Some(1), 1), "{lines}");
    let what = "error: an alert of watch rule `by_command` was not accepted: the command failed (exit status: 1)";
    assert!(lines.contains(what), "{lines}");
    assert_eq!(windows(&std::fs::read_to_string(&alerts).unwrap()).len(), 1, "the first one that fails is the last");
    // Again, each once.
    std::fs::remove_file(&fails).unwrap();
    std::fs::remove_file(&alerts).unwrap();
    receiver.answer("204 No Content");
    let (status, lines, requests) = run(&rules);
    assert_eq!(status, Some(0), "{lines}");
    let by_command = windows(&std::fs::read_to_string(&alerts).unwrap());
    let mut by_webhook: Vec<_> = requests.iter().flat_map(|(_, body)| windows(body)).collect();
    assert!(by_command.len() >= service.searches.len() && by_command == by_webhook, "{by_command:?} {by_webhook:?}");
    assert!(lines.contains("\nalert: by_command: "), "{lines}");
    // A day is not due twice; another one may have begun.
    let (status, lines, requests) = run(&rules);
    assert_eq!(status, Some(0), "{lines}");
    by_webhook.extend(requests.iter().flat_map(|(_, body)| windows(body)));
    for windows in [by_webhook, windows(&std::fs::read_to_string(&alerts).unwrap())] {
        assert_eq!(windows.iter().collect::<BTreeSet<_>>().len(), windows.len(), "{windows:?}");
    }
    for (settings, expected) in [
        ("[connections.mine.watch.a]\nwhen = \"true\"\ncommand = \"true\"", "`mine`: watch needs a store"),
        (
            "store = \"store\"\n[connections.mine.watch.a]\nwhen = \"true\"",
            "`mine`: watch.a: expected one of command, webhook",
        ),
        (
            "store = \"store\"\n[connections.mine.watch.a]\nwhen = \"true\"\nwebhook_env = \"NOT_SET\"",
            "`mine`: watch.a: environment variable NOT_SET is not set",
        ),
        (
            "store = \"store\"\n[connections.mine.watch.a]\nwhen = \"counts > 1\"\ncommand = \"true\"",
            "invalid condition of watch rule `a`",
        ),
    ] {
        let (status, lines, _) = run(settings);
        assert!(lines.contains(expected) && status == Some(2), "{lines}");
    }
}

/// Two processes examine the same days before either has recorded anything.
#[tokio::test]
async fn an_alert_is_claimed_by_one_process_and_no_record_of_another_is_lost() {
    let shop = Shop::new();
    let mut options = SyncOptions::since((now() - days(5)).date_naive());
    options.aids = vec![BIG.to_owned(), OTHER.to_owned()];
    let [visit, other] = [shop.at(now()), shop.at(now())];
    let one = Watch::begin(&visit.connection, "all", &[], "count >= 0").await.unwrap();
    let two = Watch::begin(&other.connection, "all", &[], "count >= 0").await.unwrap();
    one.due().await.unwrap();
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    let (due, same) = (one.due().await.unwrap(), two.due().await.unwrap());
    assert!(due.alerts.len() == 2 && due == same, "{due:?}");
    let [first, second] = due.alerts.as_slice() else { panic!("{due:?}") };
    assert_eq!(one.claim(first).unwrap(), Claim::Here);
    assert_eq!((two.claim(first).unwrap(), one.claim(first).unwrap()), (Claim::Elsewhere, Claim::Here));
    assert_eq!((two.claim(second).unwrap(), one.claim(second).unwrap()), (Claim::Here, Claim::Elsewhere));
    // The receiver of the first one fails.
    one.release().unwrap();
    assert_eq!((two.claim(first).unwrap(), one.claim(second).unwrap()), (Claim::Here, Claim::Elsewhere));
    two.record(first).unwrap();
    two.record(second).unwrap();
    assert_eq!([first, second].map(|alert| one.claim(alert).unwrap()), [Claim::Delivered; 2]);
    assert!(one.due().await.unwrap().alerts.is_empty());
}

/// Another process delivers the alert of one that has ended.
#[tokio::test]
async fn a_claim_ends_after_some_minutes() {
    let shop = Shop::new();
    let mut options = SyncOptions::since((now() - days(5)).date_naive());
    options.aids = vec![BIG.to_owned()];
    let [visit, other] = [shop.at(now()), shop.at(now())];
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    let one = Watch::begin(&visit.connection, "all", &[], "count >= 0").await.unwrap();
    let two = Watch::begin(&other.connection, "all", &[], "count >= 0").await.unwrap();
    let due = one.due().await.unwrap();
    assert_eq!(one.claim(&due.alerts[0]).unwrap(), Claim::Here);
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    let sql = "UPDATE savedsearch_cursor SET value = json_set(value, '$.claims[0].ends', json_extract(value, '$.claims[0].ends') - ?1) \
               WHERE value LIKE '%holder%'";
    for (earlier, claimed) in [(240, Claim::Elsewhere), (61, Claim::Here)] {
        assert_eq!(catalog.execute(sql, [earlier]).unwrap(), 1);
        assert_eq!(two.claim(&due.alerts[0]).unwrap(), claimed, "{earlier} s earlier");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_run_the_same_rule_hand_each_alert_over_once() {
    let service = Service::start().await;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    let (alerts, config) = (folder.path().join("alerts"), folder.path().join("connections.toml"));
    let url = service.running.as_ref().unwrap().base_url();
    let command = format!("sleep 0.3; cat >> '{}'; sleep 0.3", alerts.display());
    let connection = format!("[connections.mine]\nbase_url = \"{url}\"\napi_key_file = \"key\"\nstore = \"store\"\n");
    let rule = format!("[connections.mine.watch.all]\nwhen = \"count >= 0\"\ncommand = \"{command}\"\n");
    let aids: Vec<&str> = service.searches.iter().flat_map(|search| ["--aid", search.aid.as_str()]).collect();
    let options = ["--config", config.to_str().unwrap(), "sync", "--since", "2d"];
    // The first one fills the store, without a rule.
    for (text, number) in [(connection.clone(), 1), (connection + &rule, 3)] {
        std::fs::write(&config, text).unwrap();
        let run = || {
            let mut command = savedsearch(&[&options[..], &aids].concat());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let processes: Vec<std::process::Child> = (0..number).map(|_| run()).collect();
        for process in processes {
            let output = process.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", err(&output));
        }
    }
    let text = std::fs::read_to_string(&alerts).unwrap();
    let lines: BTreeSet<&str> = text.lines().collect();
    assert!(lines.len() >= service.searches.len() && lines.len() == text.lines().count(), "{text}");
}

#[tokio::test]
async fn earlier_versions_are_read_as_long_as_they_are_kept() {
    let mut shop = Shop::new();
    let mut options = SyncOptions::since((now() - days(40)).date_naive());
    options.aids = vec![BIG.to_owned(), OTHER.to_owned()];
    let of = |table: &str| {
        format!(
            "SELECT m.aid, m.id, m.title, m.reach, m.tags, m.extra FROM {table} m WHERE m.aid IN ('{BIG}', '{OTHER}') AND \
             m.published_at >= '2026-05-25' ORDER BY m.aid, m.published_at, m.id"
        )
    };
    let of_service =
        async |visit: &Visit| rows(&visit.plain.sql(&of("mentions")).await.unwrap().collect().await.unwrap());
    let first = shop.at(now());
    sync(&first.connection, &options, |_| {}).await.unwrap();
    first.connection.keep_versions(30).unwrap();
    let (before, version) = (of_service(&first).await, snapshot(&shop));
    shop.delete_before(BIG, now() - days(20));
    shop.arrive(BIG, "late", now() - days(10));
    let second = shop.at(now() + TimeDelta::minutes(10));
    sync(&second.connection, &options, |_| {}).await.unwrap();
    second.connection.compact_store().unwrap();
    let after = of_service(&second).await;
    assert!(before != after && !before.is_empty());
    let third = shop.at(now() + days(1));
    rescan(&third, BIG, now() - days(30)).await;
    third.connection.compact_store().unwrap();
    let read = async |table: &str| ask(&third, &of(table)).await;
    for (table, expected) in [
        (format!("mentions_as_of({version})"), &before),
        (format!("mentions_as_of(at => {version}, aid => ['{BIG}', '{OTHER}'])"), &before),
        ("mentions_as_of('2026-07-01T12:05:00Z')".to_owned(), &before),
        (format!("mentions AT (VERSION => {version})"), &before),
        ("mentions AT (TIMESTAMP => '2026-07-01 12:05:00')".to_owned(), &before),
        ("v4.mentions FOR SYSTEM_TIME AS OF '2026-07-01T12:10:00Z'".to_owned(), &after),
        ("mentions FOR SYSTEM_TIME AS OF (now() - INTERVAL '2 hours')".to_owned(), &after),
    ] {
        let found = read(&table).await;
        assert!(&found == expected, "{table}: {} instead of {}", found.len(), expected.len());
    }
    let one: Vec<_> = before.iter().filter(|row| row[0] == OTHER).cloned().collect();
    assert!(read(&format!("mentions_as_of({version}, aid => '{OTHER}')")).await == one);
    for (call, kind, part) in [
        ("mentions_as_of()", ErrorKind::Query, "use mentions_as_of('2026-11-01T00:00:00Z')"),
        ("mentions_as_of('yesterday')", ErrorKind::Query, "mentions_as_of: at must be an instant"),
        ("mentions_as_of(1, aid => NULL)", ErrorKind::Query, "mentions_as_of: aid must be a saved search"),
        ("mentions_as_of(1000)", ErrorKind::Store, "the store has no such snapshot; the latest is"),
        (
            "mentions_as_of('2020-01-01')",
            ErrorKind::Store,
            "the store has no version that old; the earliest is of 2026-07-01T",
        ),
    ] {
        let error = failure(&third, &format!("SELECT * FROM {call}")).await;
        assert!(error.kind() == kind && error.to_string().contains(part), "{call}: {error}");
    }
    let error = third.plain.sql("SELECT * FROM mentions_as_of(1)").await.unwrap_err();
    assert_eq!(Error::find(&error).unwrap().kind(), ErrorKind::Config);
    // As long as versions are kept.
    let kept = shop.at(now() + days(20));
    kept.connection.compact_store().unwrap();
    assert!(ask(&kept, &of(&format!("mentions_as_of({version})"))).await == before);
    kept.connection.keep_versions(0).unwrap();
    let last = shop.at(now() + days(21));
    last.connection.compact_store().unwrap();
    let error = failure(&last, &format!("SELECT * FROM mentions_as_of({version})")).await;
    assert!(error.to_string().contains("the store has no version that old; the earliest is of "), "{error}");
    assert_eq!(last.connection.verify_store().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn each_file_is_read_once_for_all_saved_searches() {
    let shop = Shop::new();
    let visit = shop.at(now());
    sync(&visit.connection, &SyncOptions::since((now() - days(60)).date_naive()), |_| {}).await.unwrap();
    visit.connection.compact_store().unwrap();
    let files = |visit: &Visit| visit.connection.store_statistics().unwrap().files;
    let before = files(&visit);
    let found = ask(&visit, "SELECT count(*), count(DISTINCT aid), count(DISTINCT id) FROM changes(since => 0)").await;
    assert_eq!(files(&visit) - before, 1);
    let stored = visit.connection.holdings().unwrap();
    let mentions: u64 = stored.iter().map(|holding| holding.mentions).sum();
    assert_eq!(found[0][..2], [mentions.to_string(), stored.len().to_string()]);
    let aids: Vec<&str> = stored.iter().map(|holding| holding.aid.as_str()).collect();
    let two =
        format!("SELECT DISTINCT aid FROM changes(since => '0', aid => ['{}', '{}']) ORDER BY aid", aids[0], aids[1]);
    assert_eq!(ask(&visit, &two).await.concat(), aids[..2]);
}

#[tokio::test]
async fn arguments_may_be_parameters() {
    let shop = Shop::new();
    let visit = shop.at(now());
    sync(&visit.connection, &SyncOptions::since((now() - days(10)).date_naive()), |_| {}).await.unwrap();
    let count = async |sql: &str| ask(&visit, sql).await.concat().remove(0);
    let all = count("SELECT count(*) FROM changes(since => 0)").await;
    let of_one = count(&format!("SELECT count(*) FROM changes(since => 0, aid => '{BIG}')")).await;
    assert_ne!(all, of_one);
    visit.set("PREPARE since AS SELECT count(*) FROM changes(since => $1)").await;
    visit.set("PREPARE of AS SELECT count(*) FROM changes($1, aid => $2)").await;
    let cases = [
        ("EXECUTE since(0)".to_owned(), all.as_str()),
        ("EXECUTE since('0')".to_owned(), all.as_str()),
        ("EXECUTE since('2026-06-01')".to_owned(), all.as_str()),
        ("EXECUTE since('2030-06-20 14:00+02:00')".to_owned(), "0"),
        (format!("EXECUTE of(0, '{BIG}')"), of_one.as_str()),
        ("SELECT count(*) FROM changes(since => '2030-06-20T14:00Z')".to_owned(), "0"),
        ("SELECT count(*) FROM changes(since => '2026-06-20 14:00+02')".to_owned(), all.as_str()),
    ];
    each_async(cases, async |(sql, expected)| {
        assert_eq!(count(&sql).await, expected, "{sql}");
    })
    .await;
    for (sql, expected) in [
        ("EXECUTE since('soon')", "since must be an instant"),
        ("EXECUTE since(NULL)", "since must be an instant"),
        ("EXECUTE of(0, NULL)", "aid must be a saved search"),
    ] {
        let error = failure(&visit, sql).await.to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    for (prepared, call) in [
        ("mentions($1, duration => $2)", format!("EXECUTE call('{BIG}', '7d')")),
        ("volume(aid => $1)", format!("EXECUTE call('{BIG}')")),
    ] {
        visit.set(&format!("PREPARE call AS SELECT count(*) FROM {prepared}")).await;
        let rows = rows(&visit.stored.sql(&call).await.unwrap().collect().await.unwrap());
        assert_ne!(rows[0][0], "0", "{prepared}");
        visit.set("DEALLOCATE call").await;
    }
}
