//! Searches for words: `match(text, query)` selects the rows that a naive search in the received texts selects, with and without
//! an index of words in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::TimeDelta;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::simulator::{Corpus, CorpusSpec};
use datafusion_saved_search::{Erase, Error, ErrorKind, Profile, SyncOptions, sync};

use crate::store::{Shop, Visit};
use crate::support::{BIG, World, each_async, now, rows};

/// Letters of the demo data with accents, and without.
const ACCENTS: [(&str, &str); 12] = [
    ("ß", "ss"),
    ("ä", "a"),
    ("ö", "o"),
    ("ü", "u"),
    ("àâáã", "a"),
    ("éèêë", "e"),
    ("íîï", "i"),
    ("óôõ", "o"),
    ("úùû", "u"),
    ("ñ", "n"),
    ("ç", "c"),
    ("œ", "œ"),
];

/// Words of a text of the demo data, by a rule that knows its letters.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in text.to_lowercase().chars() {
        match ACCENTS.iter().find(|(letters, _)| letters.contains(letter)) {
            Some((_, plain)) => words.last_mut().unwrap().push_str(plain),
            // Japanese is read letter by letter.
            None if ('\u{3041}'..='\u{9fff}').contains(&letter) && letter.is_alphanumeric() => {
                words.extend([letter.to_string(), String::new()]);
            }
            None if letter.is_alphanumeric() => words.last_mut().unwrap().push(letter),
            None => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// True if the words of a text contain these, one after another; a word that ends with `*` is a beginning.
fn has(text: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    let is = |(word, wanted): (&String, &&str)| match wanted.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == wanted,
    };
    text.windows(phrase.len()).any(|part| part.iter().zip(&phrase).all(is))
}

/// A condition over the words of a text.
type Condition = fn(&[String]) -> bool;

/// Queries, and the condition that each of them stands for, over the words of a text.
fn queries() -> [(&'static str, Condition); 12] {
    [
        ("recall", |text| has(text, "recall")),
        ("Acme RECALL", |text| has(text, "acme") && has(text, "recall")),
        ("recall OR Rückruf", |text| has(text, "recall") || has(text, "ruckruf")),
        ("acme -recall", |text| has(text, "acme") && !has(text, "recall")),
        ("\"acme one\"", |text| has(text, "acme one")),
        ("\"acme o*\" NOT (recall OR the)", |text| has(text, "acme o*") && !has(text, "recall") && !has(text, "the")),
        ("recal*", |text| has(text, "recal*")),
        ("ein OR une OR una", |text| ["ein", "une", "una"].iter().any(|word| has(text, word))),
        ("の", |text| has(text, "の")),
        ("-acme", |text| !has(text, "acme")),
        ("(acme OR battery) (one OR go)", |text| {
            (has(text, "acme") || has(text, "battery")) && (has(text, "one") || has(text, "go"))
        }),
        ("nowheretobefound", |_| false),
    ]
}

#[tokio::test]
async fn words_select_the_mentions_that_a_naive_search_selects() {
    let world = World::new().await;
    let from = format!("FROM mentions WHERE aid = '{BIG}' AND duration = '90d'");
    let all = world.rows(&format!("SELECT id, text {from} AND text IS NOT NULL")).await;
    let mut matched = 0;
    for (query, holds) in queries() {
        let right: BTreeSet<&str> =
            all.iter().filter(|row| holds(&words(&row[1]))).map(|row| row[0].as_str()).collect();
        let cases = [
            format!("match(text, '{query}')"),
            format!("text IS NOT NULL AND match(text, '{query}') IS TRUE"),
            format!("CASE WHEN match(text, '{query}') THEN 1 ELSE 0 END = 1"),
            format!("match(text || '', '{query}')"),
            format!("match_score(text, '{query}') > 0 OR (match(text, '{query}') AND '{query}' LIKE '-%')"),
        ];
        each_async(cases, async |condition| {
            let found = world.rows(&format!("SELECT id {from} AND ({condition})")).await;
            let found: BTreeSet<&str> = found.iter().map(|row| row[0].as_str()).collect();
            assert_eq!(found, right, "{condition}");
        })
        .await;
        matched += usize::from(!right.is_empty() && right.len() < all.len());
    }
    assert!(matched >= 5, "only {matched} queries select some of the mentions");
}

#[tokio::test]
async fn a_wrong_query_costs_no_request() {
    let world = World::new().await;
    for query in ["", "recall OR", "(recall", "re*call"] {
        let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '7d' AND match(text, '{query}')");
        let error = match world.context.sql(&sql).await {
            Ok(frame) => frame.collect().await.expect_err("a wrong query"),
            Err(error) => error,
        };
        let error = Error::find(&error).unwrap_or_else(|| panic!("{query}: {error}"));
        assert_eq!(error.kind(), ErrorKind::Query, "{query}: {error}");
        assert!(error.to_string().contains("at character "), "{query}: {error}");
    }
    assert_eq!(world.service.requests(), 0);
}

#[tokio::test]
async fn values_without_a_text_or_a_query_are_null() {
    let world = World::new().await;
    let sql = "SELECT match(t, q) AS m, match_score(t, q) > 0 AS s \
               FROM (VALUES ('a fire', 'fire'), (NULL, 'fire'), ('a fire', NULL), ('a fire', 'smoke')) AS v(t, q) \
               ORDER BY 1 NULLS LAST, 2 NULLS LAST";
    let rows = world.rows(sql).await;
    assert_eq!(rows, [["false", "false"], ["true", "true"], ["NULL", "NULL"], ["NULL", "NULL"]]);
}

#[tokio::test]
async fn a_search_is_a_table_with_scores() {
    let world = World::new().await;
    let from = format!("FROM mentions WHERE aid = '{BIG}' AND duration = '30d'");
    let score = "match_score(text, 'acme OR recall')";
    let right = format!("SELECT id, title, {score} {from} AND match(text, 'acme OR recall') ORDER BY 1");
    let right = world.rows(&right).await;
    assert!(!right.is_empty());
    for call in [
        format!("search('acme OR recall', '{BIG}', '30d')"),
        format!("search(query => 'acme OR recall', duration => '30d', aid => ['{BIG}'], column => 'text') AS s"),
    ] {
        assert_eq!(world.rows(&format!("SELECT id, title, score FROM {call} ORDER BY id")).await, right, "{call}");
    }
    let best = format!("SELECT score FROM search('acme OR recall', '{BIG}', '30d') ORDER BY score DESC LIMIT 1");
    let best = world.rows(&best).await[0][0].parse::<f64>().unwrap();
    assert_eq!(best, right.iter().map(|row| row[2].parse::<f64>().unwrap()).fold(0.0, f64::max));
    let cases = [
        ("SELECT id FROM search('acme', column => 'reach')", "no column of texts `reach`"),
        ("SELECT id FROM search('acme', column => 'colour')", "no column of texts `colour`"),
        ("SELECT id FROM search(aid => '1')", "missing argument `query`"),
        ("SELECT id FROM search", "missing argument `query`"),
        ("SELECT id FROM search('acme OR')", "at character 8"),
        (
            "SELECT id FROM search('acme', sort_by => 'reach_desc')",
            "search accepts query, aid, duration, timezone, column",
        ),
    ];
    each_async(cases, async |(statement, message)| {
        let error = match world.context.sql(statement).await {
            Ok(frame) => frame.collect().await.expect_err(statement),
            Err(error) => error,
        };
        assert!(error.to_string().contains(message), "{statement}: {error}");
    })
    .await;
}

/// A store of two saved searches, after a sync of two months.
async fn filled() -> (Shop, Visit) {
    let corpus = Corpus::generate(CorpusSpec { seed: 5, searches: 2, mentions: 3_000, now: now() });
    let shop = Shop::of(&corpus, Profile::v4());
    let visit = shop.at(now());
    let options = SyncOptions::since((now() - TimeDelta::days(60)).date_naive());
    sync(&visit.connection, &options, |_| {}).await.unwrap();
    visit.connection.compact_store().unwrap();
    visit.set("SET savedsearch.freshness = '1h'").await;
    (shop, visit)
}

async fn ask(context: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows = rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")));
    rows.sort();
    rows
}

/// Files of a store with a suffix.
fn files(shop: &Shop, suffix: &str) -> Vec<PathBuf> {
    let folder = shop.folder.path().join("data/mentions");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|found| found == suffix)).collect();
    files.sort();
    files
}

/// An index is used if fewer rows match than one in so many: it reads up to 16 rows between two that match, and pays if it
/// excludes half of them.
const PAYS: usize = 40;

fn skipped(visit: &Visit) -> u64 {
    visit.connection.store_statistics().unwrap().rows_skipped
}

#[tokio::test]
async fn an_index_changes_no_rows() {
    let (shop, visit) = filled().await;
    assert!(files(&shop, "words").is_empty());
    let columns = ["text".to_owned(), "title".to_owned()];
    let indexed = visit.connection.index_store(&columns).unwrap();
    assert!(indexed.files > 0 && indexed.bytes > 0, "{indexed:?}");
    assert_eq!(files(&shop, "words").len() as u64, indexed.files);
    assert_eq!(visit.connection.index_store(&[]).unwrap().files, 0, "nothing is left to index");
    let since = (now() - TimeDelta::days(40)).format("%Y-%m-%dT06:00:00Z");
    let from = format!("FROM mentions WHERE published_at >= TIMESTAMP '{since}'");
    // The same mentions, without a store.
    let held = format!("CREATE TABLE held AS SELECT aid, id, title, text, reach, published_at {from}");
    ask(&visit.plain, &held).await;
    let all = ask(&visit.plain, "SELECT aid, id, text FROM held WHERE text IS NOT NULL").await;
    let texts: Vec<Vec<String>> = all.iter().map(|row| words(&row[2])).collect();
    let selected = |holds: &dyn Fn(&[String]) -> bool| -> Vec<Vec<String>> {
        all.iter().zip(&texts).filter(|(_, text)| holds(text)).map(|(row, _)| row[..2].to_vec()).collect()
    };
    // A word that few texts have, and the one after it.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &texts {
        for word in text.iter().collect::<BTreeSet<_>>() {
            *counts.entry(word).or_default() += 1;
        }
    }
    let plain = |word: &String| word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let pairs = texts.iter().flat_map(|text| text.windows(2)).filter(|pair| pair.iter().all(plain));
    let rare = pairs.min_by_key(|pair| counts[pair[0].as_str()]).unwrap();
    assert!(counts[rare[0].as_str()] * PAYS < all.len(), "all words are frequent");
    let phrase = rare.join(" ");
    for phrase in [&phrase, &format!("{}*", &phrase[..phrase.len() - 1])] {
        let (right, before) = (selected(&|text| has(text, phrase)), skipped(&visit));
        let sql = format!("SELECT aid, id {from} AND match(text, '\"{phrase}\"')");
        assert_eq!(ask(&visit.stored, &sql).await, right, "{phrase}");
        assert!(!right.is_empty() && skipped(&visit) > before, "the index was not used for {phrase}");
    }
    for (query, holds) in queries() {
        let (right, before) = (selected(&holds), skipped(&visit));
        let condition = format!("match(text, '{query}')");
        assert_eq!(ask(&visit.stored, &format!("SELECT aid, id {from} AND {condition}")).await, right, "{query}");
        // The index finds no more than the texts that match.
        if right.len() * PAYS < all.len() && ["recall", "recal*", "の", "nowheretobefound"].contains(&query) {
            assert!(skipped(&visit) > before, "the index was not used for {query}");
        }
        let cases = [
            format!("(match(title, '{query}') OR {condition})"),
            format!("(title LIKE '%a%' OR {condition})"),
            format!("{condition} AND reach > 1000"),
            format!("{condition} AND match(title, 'acme')"),
            format!("NOT {condition}"),
            format!("{condition} IS NULL"),
            format!("match(title || ' ' || text, '{query}')"),
            format!("{condition} AND aid = '{}'", all[0][0]),
        ];
        each_async(cases, async |condition| {
            let columns = format!("aid, id, title, match_score(text, '{query}')");
            for order in ["", "ORDER BY published_at DESC, aid, id LIMIT 7"] {
                let stored = format!("SELECT {columns} {from} AND {condition} {order}");
                let plain = format!("SELECT {columns} FROM held WHERE {condition} {order}");
                assert_eq!(ask(&visit.stored, &stored).await, ask(&visit.plain, &plain).await, "{stored}");
            }
        })
        .await;
    }
    let before = skipped(&visit);
    let used = || visit.connection.store_statistics().unwrap().files;
    let opened = used();
    let nothing = format!("SELECT id {from} AND match(text, 'nowheretobefound')");
    assert!(ask(&visit.stored, &nothing).await.is_empty());
    assert!(skipped(&visit) - before >= all.len() as u64, "the index was not used");
    // Files in which nothing matches are neither opened nor counted.
    let (excluding, opened) = (used() - opened, used());
    ask(&visit.stored, &format!("SELECT id {from} AND text LIKE '%nowheretobefound%'")).await;
    assert!(excluding < used() - opened, "files were counted that the index excludes");
}

/// The part of a scan's line in a plan that tells of indexes.
async fn indexes_in_plan(visit: &Visit, sql: &str) -> Option<String> {
    let plan = ask(&visit.stored, &format!("EXPLAIN {sql}")).await.concat().concat();
    assert!(plan.contains("store=from the store: "), "{plan}");
    let (_, after) = plan.split_once(", words=")?;
    Some(after.split(", ").next().unwrap().to_owned())
}

#[tokio::test]
async fn a_plan_says_which_files_have_an_index() {
    let (shop, visit) = filled().await;
    let days = |days| (now() - TimeDelta::days(days)).format("%Y-%m-%dT00:00:00Z");
    let sql = |since: i64, condition: &str| {
        let since = days(since);
        format!(
            "SELECT id, title FROM mentions WHERE aid = '{BIG}' AND published_at >= TIMESTAMP '{since}' AND {condition}"
        )
    };
    let recall = "match(text, 'recall')";
    let none = indexes_in_plan(&visit, &sql(55, recall)).await.unwrap();
    assert!(none.starts_with("no index of ") && !none.contains('·'), "{none}");
    visit.connection.index_store(&["text".to_owned()]).unwrap();
    let all = none.strip_prefix("no ").unwrap().to_owned();
    for (condition, right) in [
        (recall, Some(&all)),
        ("match(text, 'recall') AND reach > 10", Some(&all)),
        ("match(text, 'recall') AND match(title, 'recall')", Some(&all)),
        // Columns without an index.
        ("match(title, 'recall')", Some(&none)),
        ("(match(text, 'recall') OR match(title, 'recall'))", Some(&none)),
        // Conditions that no index answers.
        ("match(text, '-recall')", None),
        ("match(title || text, 'recall')", None),
        ("text LIKE '%recall%'", None),
    ] {
        assert_eq!(indexes_in_plan(&visit, &sql(55, condition)).await.as_ref(), right, "{condition}");
    }
    // A query stores days without indexing them.
    let earlier = format!("{} AND published_at < TIMESTAMP '{}'", sql(80, "true"), days(60));
    ask(&visit.stored, &earlier).await;
    let mixed = indexes_in_plan(&visit, &sql(75, recall)).await.unwrap();
    assert!(mixed.starts_with(&format!("{all} · no index of ")), "{mixed}");
    for index in files(&shop, "words") {
        std::fs::write(index, "damaged").unwrap();
    }
    assert_eq!(indexes_in_plan(&visit, &sql(55, recall)).await.unwrap(), none);
}

#[tokio::test]
async fn an_analyzed_plan_counts_what_an_index_has_saved() {
    let (shop, visit) = filled().await;
    let since = (now() - TimeDelta::days(55)).format("%Y-%m-%dT00:00:00Z");
    let analyzed = |condition: &str| {
        format!("EXPLAIN ANALYZE SELECT id FROM mentions WHERE published_at >= TIMESTAMP '{since}' AND {condition}")
    };
    let nothing = "match(text, 'nowheretobefound')";
    let text = ask(&visit.stored, &analyzed(nothing)).await.concat().concat();
    assert!(text.contains("files_looked_up=0") && text.contains("rows_skipped=0"), "{text}");
    visit.connection.index_store(&[]).unwrap();
    let indexed = files(&shop, "words").len();
    let text = ask(&visit.stored, &analyzed(nothing)).await.concat().concat();
    assert!(text.contains(&format!("files_looked_up={indexed}")), "{text}");
    assert!(!text.contains("rows_skipped=0") && text.contains("mentions_from_store=0"), "{text}");
    // An index that does not pay was looked up as well.
    let text = ask(&visit.stored, &analyzed("match(text, 'a* OR e* OR t*')")).await.concat().concat();
    assert!(text.contains(&format!("files_looked_up={indexed}")) && text.contains("rows_skipped=0"), "{text}");
    let text = ask(&visit.stored, &analyzed("text LIKE '%nowheretobefound%'")).await.concat().concat();
    assert!(text.contains("files_looked_up=0") && text.contains("rows_skipped=0"), "{text}");
}

#[tokio::test]
async fn a_damaged_index_costs_time_and_no_rows() {
    let (shop, visit) = filled().await;
    visit.connection.index_store(&[]).unwrap();
    let since = (now() - TimeDelta::days(40)).format("%Y-%m-%dT00:00:00Z");
    let sql = format!(
        "SELECT aid, id FROM mentions WHERE published_at >= TIMESTAMP '{since}' AND match(text, 'recal* OR one')"
    );
    let right = ask(&visit.plain, &sql).await;
    assert!(!right.is_empty());
    let index = files(&shop, "words").remove(0);
    let whole = std::fs::read(&index).unwrap();
    let end = whole.len();
    let flips = (0..end).step_by(end / 40).chain(end - 24..end).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    });
    let others = [Vec::new(), whole[..end / 2].to_vec(), whole[1..].to_vec(), b"words".repeat(9)];
    for (case, bytes) in flips.chain(others).enumerate() {
        std::fs::write(&index, bytes).unwrap();
        assert_eq!(ask(&visit.stored, &sql).await, right, "case {case}");
        let problems = visit.connection.verify_store().unwrap();
        assert!(matches!(&problems[..], [one] if one.contains("index_store")), "case {case}: {problems:?}");
    }
    assert_eq!(visit.connection.index_store(&[]).unwrap().files, 1);
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    assert_eq!(std::fs::read(&index).unwrap(), whole);
    assert_eq!(ask(&visit.stored, &sql).await, right);
}

#[tokio::test]
async fn an_index_goes_with_its_file() {
    let (shop, visit) = filled().await;
    visit.connection.index_store(&["text".to_owned()]).unwrap();
    let before = files(&shop, "words");
    let author =
        ask(&visit.plain, "SELECT min(author_handle) FROM mentions WHERE duration = '30d'").await[0][0].clone();
    let erased = visit.connection.erase_stored(None, &Erase::Author(author)).unwrap();
    assert!(erased.mentions > 0 && erased.rewritten > 0, "{erased:?}");
    for index in files(&shop, "words") {
        assert!(index.with_extension("parquet").exists(), "{}", index.display());
    }
    assert!(before.iter().any(|index| !index.exists()), "words of an erased mention are left");
    // What is written from now on is indexed as well.
    assert!(visit.connection.compact_store().unwrap().indexed.files > 0);
    assert_eq!(files(&shop, "words").len(), files(&shop, "parquet").len());
    assert_eq!(visit.connection.verify_store().unwrap(), Vec::<String>::new());
    // Those that nobody knows are removed, and those of files in use stay.
    let foreign = before[0].with_file_name("2026-01-01-0.words");
    std::fs::copy(&files(&shop, "words")[0], &foreign).unwrap();
    visit.connection.erase_stored(None, &Erase::Id("none".to_owned())).unwrap();
    assert!(!foreign.exists());
    assert_eq!(files(&shop, "words").len(), files(&shop, "parquet").len());
    let removed = visit.connection.remove_indexes().unwrap().removed;
    assert!(removed > 0 && files(&shop, "words").is_empty());
    visit.connection.compact_store().unwrap();
    assert!(files(&shop, "words").is_empty());
}

#[tokio::test]
async fn the_size_of_indexes_is_shown() {
    let (shop, visit) = filled().await;
    let sizes = "SELECT sum(bytes), sum(index_bytes), count(*) FROM system.store";
    let sizes = async || -> Vec<u64> {
        ask(&visit.stored, sizes).await.concat().iter().map(|size| size.parse().unwrap()).collect()
    };
    let before = sizes().await;
    assert_eq!(before[1], 0);
    let indexed = visit.connection.index_store(&[]).unwrap();
    let length: u64 = files(&shop, "words").iter().map(|index| index.metadata().unwrap().len()).sum();
    assert_eq!(indexed.bytes, length);
    let after = sizes().await;
    assert_eq!((after[0], after[2]), (before[0], before[2]));
    // Each saved search has a part of the file, rounded down for each of its regions.
    assert!(after[1] <= length && after[1] * 10 > length * 9, "{after:?} of {length}");
    visit.connection.remove_indexes().unwrap();
    assert_eq!(sizes().await, before);
}

#[tokio::test]
async fn an_index_that_stays_is_an_error() {
    let (shop, visit) = filled().await;
    visit.connection.index_store(&[]).unwrap();
    let indexes = files(&shop, "words");
    assert!(!indexes.is_empty());
    // A folder is not removed as a file.
    std::fs::remove_file(&indexes[0]).unwrap();
    std::fs::create_dir(&indexes[0]).unwrap();
    let error = visit.connection.remove_indexes().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(error.to_string().contains(&indexes[0].display().to_string()), "{error}");
    assert_eq!(files(&shop, "words"), indexes[..1], "the others are removed");
}

#[tokio::test]
async fn days_are_synchronized_even_if_their_words_cannot_be_indexed() {
    let (shop, visit) = filled().await;
    visit.connection.index_store(&[]).unwrap();
    let index = files(&shop, "words").remove(0);
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let options = SyncOptions::since((now() - TimeDelta::days(60)).date_naive());
    let synced = sync(&visit.connection, &options, |_| {}).await.unwrap();
    assert_eq!(synced.left, 0);
    assert!(synced.unindexed.is_some_and(|reason| reason.as_str().contains(&index.display().to_string())));
    std::fs::remove_dir(&index).unwrap();
    assert_eq!(sync(&visit.connection, &options, |_| {}).await.unwrap().unindexed, None);
    assert!(index.is_file());
}

#[tokio::test]
async fn files_are_indexed_even_if_one_that_is_no_longer_used_stays() {
    let (shop, visit) = filled().await;
    visit.connection.index_store(&[]).unwrap();
    let indexes = files(&shop, "words");
    assert!(!indexes.is_empty());
    indexes.iter().for_each(|index| std::fs::remove_file(index).unwrap());
    let is_replaced = |file: &PathBuf| !indexes.contains(&file.with_extension("words"));
    let replaced = files(&shop, "parquet").into_iter().find(is_replaced).expect("a file that was replaced");
    // A folder is not removed as a file.
    std::fs::remove_file(&replaced).unwrap();
    std::fs::create_dir(&replaced).unwrap();
    let later = shop.at(now() + TimeDelta::hours(2));
    let error = later.connection.compact_store().unwrap_err();
    assert!(error.to_string().contains(replaced.file_name().unwrap().to_str().unwrap()), "{error}");
    assert_eq!(files(&shop, "words"), indexes);
    std::fs::remove_dir(&replaced).unwrap();
    later.connection.compact_store().unwrap();
}

#[tokio::test]
async fn a_damaged_list_of_indexed_columns_is_an_error() {
    let (shop, visit) = filled().await;
    visit.connection.index_store(&["text".to_owned()]).unwrap();
    let catalog = rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap();
    let sql = "UPDATE savedsearch_cursor SET value = '[text' WHERE name = 'indexed columns'";
    assert_eq!(catalog.execute(sql, []).unwrap(), 1);
    let error = visit.connection.index_store(&[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(error.to_string().contains("indexed columns") && error.to_string().contains("index_store"), "{error}");
    visit.connection.index_store(&["title".to_owned()]).unwrap();
    visit.connection.index_store(&[]).unwrap();
}

/// Indexes are removed while they are being written.
#[tokio::test]
async fn nothing_is_indexed_after_indexing_has_ended() {
    let (shop, visit) = filled().await;
    for _ in 0..4 {
        let connection = Arc::clone(&visit.connection);
        let indexing = std::thread::spawn(move || connection.index_store(&["text".to_owned()]));
        while files(&shop, "words").is_empty() && !indexing.is_finished() {
            std::thread::yield_now();
        }
        visit.connection.remove_indexes().unwrap();
        indexing.join().unwrap().unwrap();
        assert_eq!(files(&shop, "words"), Vec::<PathBuf>::new());
    }
}

#[tokio::test]
async fn only_columns_of_texts_are_indexed() {
    let (_shop, visit) = filled().await;
    for column in ["reach", "colour", "aid"] {
        let error = visit.connection.index_store(&[column.to_owned()]).expect_err(column);
        assert_eq!(error.kind(), ErrorKind::Query, "{error}");
        assert!(error.to_string().contains(&format!("`{column}`")) && error.to_string().contains("title"), "{error}");
    }
}
