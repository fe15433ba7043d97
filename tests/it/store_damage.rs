//! A store with damaged and lost files: no query returns other values, no copy of rows makes them permanent, and each remedy works.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use datafusion_saved_search::simulator::{Corpus, CorpusSpec};
use datafusion_saved_search::{Connection, Erase, Error, Profile, SyncOptions, sync};

use crate::store::{Shop, Visit};
use crate::support::{now, rows};

/// Two saved searches with few mentions.
fn shop() -> (Shop, Vec<String>) {
    let corpus = Corpus::generate(CorpusSpec { seed: 3, searches: 2, mentions: 400, now: now() });
    let own = corpus.searches.iter().filter(|search| search.team == 0);
    let searches = own.map(|search| search.aid.clone()).collect();
    (Shop::of(&corpus, Profile::v4()), searches)
}

fn days(days: i64) -> TimeDelta {
    TimeDelta::days(days)
}

async fn fill(visit: &Visit, since: DateTime<Utc>, change: impl Fn(&mut SyncOptions)) -> Result<(), Error> {
    let mut options = SyncOptions::since(since.date_naive());
    change(&mut options);
    sync(&visit.connection, &options, |_| {}).await.map(drop)
}

/// Current files of a table.
fn files(shop: &Shop, table: &str) -> Vec<PathBuf> {
    let sql = "SELECT d.path FROM ducklake_data_file d JOIN ducklake_table t USING (table_id) \
               WHERE t.table_name = ?1 AND d.end_snapshot IS NULL ORDER BY 1";
    let catalog = catalog(shop);
    let mut statement = catalog.prepare(sql).unwrap();
    let names = statement.query_map([table], |row| row.get::<_, String>(0)).unwrap();
    names.map(|name| shop.folder.path().join("data").join(table).join(name.unwrap())).collect()
}

fn catalog(shop: &Shop) -> rusqlite::Connection {
    rusqlite::Connection::open(shop.folder.path().join("catalog.sqlite")).unwrap()
}

/// Rows of a query that sends no request.
async fn ask(visit: &Visit, sql: &str) -> Result<Vec<Vec<String>>, Error> {
    let own = |error: &datafusion::error::DataFusionError| {
        Error::find(error).unwrap_or_else(|| panic!("{sql}: {error}")).clone()
    };
    let frame = visit.stored.sql(sql).await.map_err(|error| own(&error))?;
    let mut rows = rows(&frame.collect().await.map_err(|error| own(&error))?);
    rows.sort();
    Ok(rows)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

fn problems(connection: &Connection) -> Vec<String> {
    connection.verify_store().unwrap()
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[tokio::test]
async fn a_byte_that_changes_in_a_file_is_an_error_or_makes_no_difference() {
    let (shop, _) = shop();
    let since = now() - days(60);
    let visit = shop.at(now());
    fill(&visit, since, |_| {}).await.unwrap();
    visit.connection.compact_store().unwrap();
    let mentions = format!(
        "SELECT aid, id, title, text, reach, published_at, tags FROM mentions WHERE published_at >= TIMESTAMP '{}'",
        since.format("%Y-%m-%dT00:00:00Z")
    );
    let queries =
        [mentions.as_str(), "SELECT aid, id, title, text, reach, published_at, tags FROM changes(since => 0)"];
    let mut expected = Vec::new();
    visit.set("SET savedsearch.freshness = '1h'").await;
    for sql in queries {
        expected.push(ask(&visit, sql).await.unwrap());
        assert!(!expected[0].is_empty());
    }
    let [file]: [PathBuf; 1] = files(&shop, "mentions").try_into().unwrap();
    let length = std::fs::read(&file).unwrap().len();
    let mut errors = 0;
    for at in (0..length).step_by(length / 30).chain([length - 1, length - 6, length - 20, length - 200]) {
        flip(&file, at);
        // A session of its own keeps no footers.
        let visit = shop.at(now());
        visit.set("SET savedsearch.freshness = '1h'").await;
        for (sql, expected) in queries.iter().zip(&expected) {
            match ask(&visit, sql).await {
                Ok(found) => assert!(found == *expected, "byte {at}: other rows"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains(name(&file)) && error.contains("verify_store"), "byte {at}: {error}");
                    errors += 1;
                }
            }
        }
        assert_eq!(visit.simulator.requests(), 0);
        flip(&file, at);
    }
    assert!(errors > 40, "{errors}");
    assert_eq!(problems(&visit.connection), Vec::<String>::new());
}

#[tokio::test]
async fn damaged_rows_are_not_copied() {
    let (shop, searches) = shop();
    let since = now() - days(60);
    let visit = shop.at(now());
    for aid in &searches {
        fill(&visit, since, |options| options.aids.push(aid.clone())).await.unwrap();
    }
    let all = format!(
        "SELECT aid, id, title FROM mentions WHERE published_at >= TIMESTAMP '{}'",
        since.format("%Y-%m-%dT00:00:00Z")
    );
    visit.set("SET savedsearch.freshness = '1h'").await;
    let expected = ask(&visit, &all).await.unwrap();
    let before = files(&shop, "mentions");
    assert!(before.len() > 1);
    let author = Erase::Author("nobody".to_owned());
    for with_checksums in [true, false] {
        if !with_checksums {
            // As an earlier version wrote them.
            catalog(&shop).execute("DELETE FROM savedsearch_checksum", []).unwrap();
        }
        let visit = shop.at(now());
        let length = std::fs::read(&before[0]).unwrap().len();
        for at in [5, length / 3, length / 2, length - 3] {
            flip(&before[0], at);
            let error = visit.connection.compact_store().unwrap_err().to_string();
            assert!(error.contains(name(&before[0])) && error.contains("verify_store"), "{error}");
            let [problem]: [String; 1] = problems(&visit.connection).try_into().unwrap();
            assert!(problem.contains(name(&before[0])) && problem.contains("`Connection::compact_store`"), "{problem}");
            flip(&before[0], at);
        }
        flip(&before[0], length / 2);
        let erased = visit.connection.erase_stored(None, &author);
        assert!(erased.unwrap_err().to_string().contains(name(&before[0])));
        assert_eq!(files(&shop, "mentions"), before);
        flip(&before[0], length / 2);
    }
    // As `verify` says.
    std::fs::remove_file(&before[0]).unwrap();
    let visit = shop.at(now());
    visit.connection.compact_store().unwrap();
    assert_eq!(problems(&visit.connection), Vec::<String>::new());
    fill(&visit, since, |_| {}).await.unwrap();
    visit.set("SET savedsearch.freshness = '1h'").await;
    assert!(ask(&visit, &all).await.unwrap() == expected);
}

#[tokio::test]
async fn what_is_lost_is_dropped_and_hinders_no_command() {
    let (mut shop, searches) = shop();
    let since = now() - days(60);
    let visit = shop.at(now());
    fill(&visit, since, |options| options.keep_deleted = true).await.unwrap();
    let german = format!(
        "SELECT id, title FROM mentions WHERE aid = '{}' AND language = 'de' AND published_at >= TIMESTAMP '2026-03-01T00:00:00Z' AND published_at < TIMESTAMP '2026-05-01T00:00:00Z'",
        searches[0]
    );
    visit.cost(&german).await;
    shop.delete_before(&searches[0], now() - days(10));
    let visit = shop.at(now() + days(5));
    fill(&visit, since, |options| options.keep_deleted = true).await.unwrap();
    for table in ["mentions_filtered", "mentions_deleted"] {
        let lost = files(&shop, table);
        assert!(!lost.is_empty(), "{table}");
        lost.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        let found = problems(&visit.connection);
        assert!(
            !found.is_empty() && found.iter().all(|problem| problem.contains("`Connection::compact_store`")),
            "{found:?}"
        );
        // A synchronization drops nothing.
        fill(&visit, now(), |_| {}).await.unwrap();
        assert_eq!(problems(&visit.connection), found);
        visit.connection.compact_store().unwrap();
        assert_eq!(problems(&visit.connection), Vec::<String>::new(), "{table}");
    }
    visit.cost(&german).await;
    // Erasing goes on without what is lost.
    let author = "SELECT author_handle FROM mentions WHERE author_handle IS NOT NULL AND published_at >= TIMESTAMP '2026-06-01T00:00:00Z' GROUP BY 1 ORDER BY count(*) DESC LIMIT 1";
    visit.set("SET savedsearch.freshness = '30d'").await;
    let author = ask(&visit, author).await.unwrap().concat().remove(0);
    let similar = format!("@{}", author.to_uppercase());
    let error = visit.connection.erase_stored(None, &Erase::Author(similar)).unwrap_err().to_string();
    assert!(error.contains(&format!("`{author}`")), "{error}");
    let lost = files(&shop, "mentions");
    std::fs::remove_file(&lost[0]).unwrap();
    visit.connection.erase_stored(Some(&searches[1]), &Erase::Author(author.clone())).unwrap();
    visit.connection.erase_stored(None, &Erase::Author(author)).unwrap();
    assert_eq!(problems(&visit.connection), Vec::<String>::new());
    let all = "SELECT aid, id FROM mentions WHERE published_at >= TIMESTAMP '2026-05-20T00:00:00Z'";
    visit.set("SET savedsearch.freshness = '0s'").await;
    visit.cost(all).await;
}

#[tokio::test]
async fn a_file_with_other_rows_than_in_the_catalog_is_named_and_replaced() {
    let (shop, _) = shop();
    let since = now() - days(40);
    let visit = shop.at(now());
    fill(&visit, since, |_| {}).await.unwrap();
    visit.connection.compact_store().unwrap();
    let [file]: [PathBuf; 1] = files(&shop, "mentions").try_into().unwrap();
    catalog(&shop)
        .execute("UPDATE ducklake_data_file SET record_count = record_count + 1 WHERE end_snapshot IS NULL", [])
        .unwrap();
    let visit = shop.at(now());
    visit.set("SET savedsearch.freshness = '1h'").await;
    let some = "SELECT id FROM mentions WHERE published_at >= TIMESTAMP '2026-06-20T00:00:00Z'";
    let error = ask(&visit, some).await.unwrap_err().to_string();
    assert!(error.contains(name(&file)) && error.contains("verify_store"), "{error}");
    let found = problems(&visit.connection);
    assert!(!found.is_empty() && found.iter().all(|problem| problem.contains("`SyncOptions::rescan`")), "{found:?}");
    fill(&visit, since, |options| options.rescan = true).await.unwrap();
    assert_eq!(problems(&visit.connection), Vec::<String>::new());
    visit.cost(some).await;
}

#[tokio::test]
async fn files_that_another_program_has_added_stay() {
    let (shop, searches) = shop();
    let since = now() - days(40);
    let visit = shop.at(now());
    fill(&visit, since, |_| {}).await.unwrap();
    let all = "SELECT id FROM mentions WHERE published_at >= TIMESTAMP '2026-06-20T00:00:00Z'";
    visit.set("SET savedsearch.freshness = '1h'").await;
    let expected = ask(&visit, all).await.unwrap();
    let file = files(&shop, "mentions").remove(0);
    for (id, table, folder) in [(1001, 1, "mentions"), (1002, 2, "mentions_filtered"), (1003, 3, "mentions_deleted")] {
        let added = shop.folder.path().join("data").join(folder).join("added.parquet");
        std::fs::create_dir_all(added.parent().unwrap()).unwrap();
        std::fs::copy(&file, added).unwrap();
        let sql = "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, \
                   file_format, record_count, file_size_bytes, footer_size, row_id_start) \
                   SELECT ?1, ?2, begin_snapshot, 'added.parquet', 1, file_format, record_count, file_size_bytes, \
                   footer_size, 100000 FROM ducklake_data_file WHERE path = ?3";
        assert_eq!(catalog(&shop).execute(sql, rusqlite::params![id, table, name(&file)]).unwrap(), 1);
    }
    let stays = |what: &str| {
        for table in ["mentions", "mentions_filtered", "mentions_deleted"] {
            let added = files(&shop, table).into_iter().find(|file| name(file) == "added.parquet");
            assert!(added.is_some_and(|added| added.exists()), "{what}: {table}");
        }
    };
    fill(&visit, since, |options| options.rescan = true).await.unwrap();
    stays("`SyncOptions::rescan`");
    visit.connection.compact_store().unwrap();
    stays("`Connection::compact_store`");
    assert_eq!(ask(&visit, all).await.unwrap(), expected);
    visit.connection.erase_stored(Some(&searches[0]), &Erase::Id("none".to_owned())).unwrap();
    visit.connection.erase_stored(None, &Erase::Before((now() - days(20)).date_naive())).unwrap();
    stays("store forget");
}
