use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use chrono::TimeDelta;
use rusqlite::Connection;
use tempfile::TempDir;

use super::sqlite::connect_alone;
use super::unused::Unused;
use super::*;
use crate::cases::each;
use crate::profile::ColumnType;
use crate::store::region::{DataFile, Day, Region, Rows, Subject};

const DAY: i64 = 86_400_000_000;

fn noon() -> DateTime<Utc> {
    "2026-07-01T12:00:00Z".parse().expect("valid instant")
}

fn owner() -> Owner {
    Owner { digest: "00ff".into(), records: "ids".into() }
}

fn columns(kinds: &[(&str, ColumnType)]) -> Vec<StoredColumn> {
    kinds.iter().map(|(name, kind)| StoredColumn { name: (*name).into(), kind: *kind, source: String::new() }).collect()
}

fn usual() -> Vec<StoredColumn> {
    columns(&[
        ("aid", ColumnType::Utf8),
        ("id", ColumnType::Utf8),
        ("published_at", ColumnType::Timestamp),
        ("tags", ColumnType::Utf8List),
        ("reach", ColumnType::Int64),
    ])
}

fn open_with(dir: &TempDir, columns: &[StoredColumn], access: Access, now: DateTime<Utc>) -> Result<Catalog> {
    Catalog::open(&dir.path().join("store"), &owner(), columns, "published_at", Clock::fixed(now), access)
}

fn open(dir: &TempDir) -> Catalog {
    open_with(dir, &usual(), Access::ReadWrite, noon()).expect("a catalog")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn subject(aid: &str, filters: &[(&str, &[&str])]) -> Subject {
    let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let filters: BTreeMap<_, _> = filters.iter().map(|(name, of)| ((*name).to_owned(), values(of))).collect();
    Subject { aid: aid.into(), filters: Filters(filters) }
}

/// A region with one file of this name, or none without mentions.
fn region(catalog: &Catalog, first: Day, counts: &[u64], name: &str) -> Region {
    let days = first..first + Day::try_from(counts.len()).expect("few days");
    let rows = counts.iter().sum();
    let times = (i64::from(days.start) * DAY + 1, i64::from(days.end) * DAY - 1);
    let (path, schema) = (format!("aid=a/{name}.parquet"), catalog.schema());
    let file =
        DataFile { path, rows, bytes: 100 * rows, footer: 7, times, schema, digest: String::new(), blocks: Vec::new() };
    let rows = (rows > 0).then(|| Rows { file: Arc::new(file), first: 0 });
    let counts = counts.to_vec();
    Region { id: None, days, counts, as_of: noon(), confirmed: noon(), sealed: false, rows, stamps: None }
}

fn ids(catalog: &Catalog, aid: &str) -> Vec<i64> {
    let regions = catalog.regions(aid).expect("regions");
    regions.iter().map(|(_, region)| region.id.expect("an id")).collect()
}

fn writer(catalog: &Catalog) -> MutexGuard<'_, Connection> {
    let Database::Sqlite(sqlite) = &catalog.database else { panic!("a file") };
    sqlite::lock(sqlite.writer.as_ref().expect("open for writing"))
}

/// Runs SQL as another program would.
fn tamper(dir: &TempDir, sql: &str) {
    let connection = Connection::open(dir.path().join("store").join(FILE)).expect("the file");
    connection.execute_batch(sql).expect("valid SQL");
}

fn value<T: rusqlite::types::FromSql>(dir: &TempDir, sql: &str) -> T {
    let connection = Connection::open(dir.path().join("store").join(FILE)).expect("the file");
    connection.query_row(sql, [], |row| row.get(0)).expect("a value")
}

#[test]
fn a_catalog_is_created_private_and_opened_again() {
    let dir = folder();
    let error = open_with(&dir, &usual(), Access::Read, noon()).expect_err("nothing to read");
    assert!(error.kind() == ErrorKind::Store && error.to_string().contains("no store in this folder"), "{error}");
    let catalog = open(&dir);
    assert_eq!((catalog.schema(), catalog.check().expect("sound"), ids(&catalog, "a")), (1, vec![], vec![]));
    assert_eq!(catalog.folder(&Filters::default()), dir.path().join("store/data/mentions"));
    assert_eq!(catalog.folder(&subject("a", &[("lang", &["de"])]).filters), catalog.data().join("mentions_filtered"));
    drop(catalog);
    #[cfg(unix)]
    for (path, mode) in [("", 0o700), ("data", 0o700), (FILE, 0o600)] {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(dir.path().join("store").join(path)).expect("exists");
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
    }
    let names = std::fs::read_dir(dir.path().join("store")).expect("a folder").count();
    assert_eq!(names, 2, "no temporary files remain");
    assert_eq!(value::<String>(&dir, "PRAGMA journal_mode"), "wal");
    let reader = open_with(&dir, &[], Access::Read, noon()).expect("a catalog");
    assert_eq!(reader.columns_of(1).expect("columns"), open(&dir).columns_of(1).expect("columns"));
    let error = reader.set_cursor("list", "x").expect_err("opened for reading");
    assert!(error.to_string().contains("read-only"), "{error}");
}

/// A try with a wrong key leaves an empty store, which the right key can use.
#[test]
fn a_store_belongs_to_the_first_owner_that_keeps_something() {
    let dir = folder();
    let store = dir.path().join("store");
    let wrong = Owner { digest: "1234".into(), records: String::new() };
    let opened = |access| Catalog::open(&store, &wrong, &usual(), "published_at", Clock::fixed(noon()), access);
    let (first, reader) = (opened(Access::ReadWrite).expect("created"), opened(Access::Read).expect("empty"));
    let right = open(&dir);
    assert_eq!(first.cursor("list").expect("still empty"), None);
    right.set_cursor("list", "x").expect("kept");
    for error in [
        first.cursor("list").expect_err("taken"),
        first.set_cursor("list", "y").expect_err("taken"),
        reader.cursor("list").expect_err("taken"),
    ] {
        assert!(error.to_string().contains("made with another address or key; check the base URL"), "{error}");
    }
    assert_eq!(right.cursor("list").expect("own"), Some("x".to_owned()));
}

/// A day of other records is not one of the owner's; without days, a store is free for any.
#[test]
fn a_store_has_the_records_of_its_owner() {
    let dir = folder();
    let store = dir.path().join("store");
    let others = Owner { records: "others".into(), ..owner() };
    let opened = |access| Catalog::open(&store, &others, &usual(), "published_at", Clock::fixed(noon()), access);
    let first = open(&dir);
    first.set_cursor("list", "x").expect("kept");
    opened(Access::ReadWrite).expect("no mentions").set_cursor("list", "y").expect("taken");
    assert_eq!(first.cursor("list").expect("no mentions"), Some("y".to_owned()));
    let empty = region(&first, 10, &[0, 0], "none");
    assert!(first.replace(&subject("a", &[]), &[], &[empty], None).expect("stored"));
    for access in [Access::Read, Access::ReadWrite] {
        let error = opened(access).expect_err("days of other records");
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("another place"), "{error}");
    }
    // An earlier version did not state the records of its store.
    tamper(&dir, "UPDATE savedsearch_store SET owner = '00ff'");
    opened(Access::ReadWrite).expect("its own").set_cursor("list", "z").expect("kept");
    assert!(first.cursor("list").is_err(), "the store is of the first that writes");
}

#[test]
fn catalogs_of_others_are_refused() {
    let dir = folder();
    open(&dir).set_cursor("list", "x").expect("kept");
    let store = dir.path().join("store");
    let other = Owner { digest: "1234".into(), records: String::new() };
    for access in [Access::Read, Access::ReadWrite] {
        let error = Catalog::open(&store, &other, &usual(), "published_at", Clock::fixed(noon()), access);
        let error = error.expect_err("another owner");
        let told = error.to_string().contains("made with another address or key");
        assert!(error.kind() == ErrorKind::Config && told, "{error}");
    }
    for (change, message) in [
        ("UPDATE ducklake_metadata SET value = '1.1' WHERE key = 'version'", "DuckLake version 1.1"),
        ("UPDATE savedsearch_store SET version = 4", "version 4 of the store"),
        ("DROP TABLE savedsearch_store", "not a savedsearch store"),
    ] {
        tamper(&dir, change);
        let error = open_with(&dir, &usual(), Access::Read, noon()).expect_err(message);
        assert!(error.kind() == ErrorKind::Store && error.to_string().contains(message), "{error}");
    }
    for content in ["", "no database, but text of some length, enough for the header of SQLite, which has 100 bytes……"]
    {
        std::fs::write(store.join(FILE), content).expect("written");
        let error = open_with(&dir, &usual(), Access::ReadWrite, noon()).expect_err("not a catalog");
        assert!(error.to_string().contains("not a savedsearch store"), "{error}");
        assert_eq!(std::fs::read_to_string(store.join(FILE)).expect("read"), content, "untouched");
    }
}

#[test]
fn regions_are_read_as_they_were_written() {
    let dir = folder();
    let catalog = open(&dir);
    let (all, german) = (subject("a", &[]), subject("a", &[("lang", &["de", "d\"e"])]));
    let mut month = region(&catalog, 20_000, &[3, 0, 12], "month");
    month.as_of = noon() + TimeDelta::microseconds(1);
    let empty = region(&catalog, 19_999, &[0], "none");
    assert!(catalog.replace(&all, &[], &[month.clone(), empty.clone()], None).expect("written"));
    assert!(catalog.replace(&german, &[], &[region(&catalog, 20_001, &[2], "german")], None).expect("written"));
    assert!(catalog.replace(&subject("b", &[]), &[], &[region(&catalog, 1, &[1], "b")], None).expect("written"));
    let read = catalog.regions("a").expect("regions");
    let known: Vec<_> =
        read.iter().map(|(filters, region)| (filters.clone(), Region { id: None, ..region.clone() })).collect();
    let filtered = region(&catalog, 20_001, &[2], "german");
    assert_eq!(known, [(all.filters.clone(), empty), (all.filters, month), (german.filters, filtered)]);
    assert_eq!(catalog.aids().expect("aids"), ["a", "b"]);
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
}

#[test]
fn a_replacement_that_missed_another_changes_nothing() {
    let dir = folder();
    let (one, other) = (open(&dir), open(&dir));
    let all = subject("a", &[]);
    assert!(one.replace(&all, &[], &[region(&one, 10, &[1, 2], "first")], None).expect("written"));
    let first = ids(&other, "a");
    assert!(
        !other.replace(&all, &[], &[region(&other, 11, &[5], "late")], None).expect("read"),
        "unaware of the first"
    );
    assert!(
        other
            .replace(&all, &first, &[region(&other, 10, &[1], "again"), region(&other, 11, &[3], "b")], None)
            .expect("ok")
    );
    assert!(!one.replace(&all, &first, &[region(&one, 10, &[9, 9], "late")], None).expect("read"), "the first is gone");
    assert!(
        one.replace(&all, &[], &[region(&one, 12, &[1], "next"), region(&one, 5, &[1; 5], "before")], None)
            .expect("ok")
    );
    // A filtered read of the same days is another subject.
    assert!(one.replace(&subject("a", &[("lang", &["de"])]), &[], &[region(&one, 11, &[1], "de")], None).expect("ok"));
    let days: Vec<_> = one.regions("a").expect("regions").into_iter().map(|(_, region)| region.days).collect();
    assert_eq!(days, [5..10, 10..11, 11..12, 11..12, 12..13]);
    assert_eq!(one.check().expect("checked"), Vec::<String>::new());

    for wrong in [
        vec![region(&one, 20, &[1, 1], "x"), region(&one, 21, &[1], "y")],
        vec![Region { counts: vec![2], ..region(&one, 20, &[1], "x") }],
        vec![Region { days: 20..22, ..region(&one, 20, &[1], "x") }],
        vec![Region { days: 20..20, counts: vec![], ..region(&one, 20, &[0], "x") }],
    ] {
        assert!(one.replace(&all, &[], &wrong, None).is_err(), "{wrong:?}");
    }
}

/// Regions of one file: of its rows, as many as each has mentions, in this order.
fn sharing(mut regions: Vec<Region>, path: &str) -> Vec<Region> {
    let rows = regions.iter().map(Region::mentions).sum();
    let any = regions.iter().find_map(Region::file).expect("mentions");
    let file = Arc::new(DataFile { path: path.into(), rows, ..any.as_ref().clone() });
    let mut first = 0;
    for region in &mut regions {
        if region.rows.is_some() {
            region.rows = Some(Rows { file: Arc::clone(&file), first });
            first += region.mentions();
        }
    }
    regions
}

#[test]
fn regions_share_a_file_and_leave_it_one_by_one() {
    let dir = folder();
    let catalog = open(&dir);
    let (a, b) = (subject("a", &[]), subject("b", &[]));
    let all = sharing(
        vec![region(&catalog, 10, &[3, 4], ""), region(&catalog, 12, &[0], ""), region(&catalog, 10, &[5], "")],
        "shared.parquet",
    );
    let changes = [
        Change { subject: &a, replaced: &[], with: &all[..2], deletions: None },
        Change { subject: &b, replaced: &[], with: &all[2..], deletions: None },
    ];
    assert_eq!(catalog.replace_all(&changes).expect("written"), [true, true]);
    let read = |aid: &str| {
        let regions = catalog.regions(aid).expect("regions").into_iter();
        regions.map(|(_, region)| Region { id: None, ..region }).collect::<Vec<_>>()
    };
    assert_eq!((read("a"), read("b")), (all[..2].to_vec(), all[2..].to_vec()));
    let bounds = "SELECT min_value || ' ' || max_value FROM ducklake_file_column_stats WHERE column_id = 3";
    assert_eq!(value::<String>(&dir, bounds), "a b");
    assert_eq!(value::<i64>(&dir, "SELECT count(*) FROM ducklake_data_file"), 1);
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());

    // The second day of one is read again: its four rows are deleted, and the first day stays where it is.
    let day = all[0].part(10..11);
    let (first, again) = (day.clone(), region(&catalog, 11, &[9], "again"));
    assert!(catalog.replace(&a, &ids(&catalog, "a")[..1], &[day, again.clone()], None).expect("written"));
    assert_eq!(read("a"), [first, again, all[1].clone()]);
    let deleted = "SELECT group_concat(delete_count || ' ' || begin_snapshot || ' ' || coalesce(end_snapshot, '-'), ', ') \
                   FROM ducklake_delete_file";
    assert_eq!(value::<String>(&dir, deleted), "4 3 -");
    let place = dir.path().join("store/data/mentions");
    let path: String = value(&dir, "SELECT path FROM ducklake_delete_file");
    assert!(place.join(&path).exists());
    assert_eq!(catalog.delete_files().expect("files").len(), 1);
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());

    // The other search leaves the file, and then the last region does.
    assert_eq!(catalog.forget(Some("b"), 20).expect("written"), 5);
    assert_eq!(value::<String>(&dir, deleted), "4 3 4, 9 4 -");
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
    assert_eq!(catalog.forget(Some("a"), 11).expect("written"), 3);
    assert_eq!(value::<String>(&dir, deleted), "4 3 4, 9 4 5");
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
    let unused = catalog.unused_files(Some(noon() + TimeDelta::days(1))).expect("files");
    assert_eq!((unused.files.len(), unused.deletes.len()), (1, 2));
    catalog.removed_files(&unused).expect("written");
    assert_eq!(catalog.unused_files(None).expect("files"), Unused::default());
    assert_eq!(value::<i64>(&dir, "SELECT count(*) FROM savedsearch_file"), 1);
    assert_eq!(value::<i64>(&dir, "SELECT count(*) FROM savedsearch_delete_file"), 0);
}

/// Of a move of many regions, those that another process has replaced meanwhile stay replaced.
#[test]
fn a_move_skips_what_was_replaced_meanwhile() {
    let dir = folder();
    let catalog = open(&dir);
    let (a, b) = (subject("a", &[]), subject("b", &[]));
    for (of, name) in [(&a, "a"), (&b, "b")] {
        assert!(catalog.replace(of, &[], &[region(&catalog, 10, &[2], name)], None).expect("written"));
    }
    let (old_a, old_b) = (ids(&catalog, "a"), ids(&catalog, "b"));
    let moved = sharing(vec![region(&catalog, 10, &[2], "x"), region(&catalog, 10, &[2], "x")], "moved.parquet");
    assert!(catalog.replace(&a, &old_a, &[region(&catalog, 10, &[7], "late")], None).expect("written"));
    let changes = [
        Change { subject: &a, replaced: &old_a, with: &moved[..1], deletions: None },
        Change { subject: &b, replaced: &old_b, with: &moved[1..], deletions: None },
    ];
    assert_eq!(catalog.replace_all(&changes).expect("written"), [false, true]);
    let path = |aid: &str| catalog.regions(aid).expect("regions")[0].1.file().expect("a file").path.clone();
    assert_eq!((path("a").as_str(), path("b").as_str()), ("aid=a/late.parquet", "moved.parquet"));
    assert_eq!(value::<i64>(&dir, "SELECT delete_count FROM ducklake_delete_file"), 2);
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
    // Nothing is added by a move of which nothing is left.
    let again = sharing(vec![region(&catalog, 10, &[2], "x")], "unused.parquet");
    assert!(!catalog.replace(&a, &old_a, &again, None).expect("read"));
    assert_eq!(value::<i64>(&dir, "SELECT count(*) FROM ducklake_data_file WHERE path = 'unused.parquet'"), 0);
}

/// The tables of a store of version 2: each region has files of its own.
fn to_version_2(dir: &TempDir) {
    tamper(
        dir,
        "CREATE TABLE earlier (
             region INTEGER NOT NULL, data_file_id INTEGER NOT NULL UNIQUE, schema INTEGER NOT NULL,
             first INTEGER NOT NULL, last INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (region, data_file_id)
         );
         INSERT INTO earlier SELECT r.region, f.data_file_id, f.schema, f.first, f.last, f.digest
             FROM savedsearch_region_file r JOIN savedsearch_file f ON f.data_file_id = r.data_file_id;
         DROP TABLE savedsearch_region_file;
         DROP TABLE savedsearch_file;
         DROP TABLE savedsearch_delete_file;
         DROP INDEX savedsearch_deletes_of;
         ALTER TABLE earlier RENAME TO savedsearch_region_file;
         INSERT INTO ducklake_partition_info VALUES (4, 1, 1, NULL);
         INSERT INTO ducklake_partition_column VALUES (4, 1, 0, 3, 'identity');
         INSERT INTO ducklake_file_partition_value SELECT data_file_id, table_id, 0, 'a' FROM ducklake_data_file;
         UPDATE savedsearch_store SET version = 2;",
    );
}

#[test]
fn a_store_of_the_version_before_is_read_and_migrated() {
    let dir = folder();
    let catalog = open(&dir);
    let all = [region(&catalog, 10, &[2, 3], "x"), region(&catalog, 12, &[0], ""), region(&catalog, 13, &[1], "y")];
    assert!(catalog.replace(&subject("a", &[]), &[], &all, None).expect("written"));
    drop(catalog);
    to_version_2(&dir);
    let read = |catalog: &Catalog| {
        let regions = catalog.regions("a").expect("regions").into_iter();
        regions.map(|(_, region)| Region { id: None, ..region }).collect::<Vec<_>>()
    };
    let reader = open_with(&dir, &[], Access::Read, noon()).expect("a catalog");
    assert_eq!(read(&reader), all);
    drop(reader);
    assert_eq!(value::<i64>(&dir, "SELECT version FROM savedsearch_store"), 2, "a reader changes nothing");
    let catalog = open(&dir);
    assert_eq!(read(&catalog), all);
    assert_eq!(value::<i64>(&dir, "SELECT version FROM savedsearch_store"), 3);
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
    assert!(catalog.replace(&subject("a", &[]), &ids(&catalog, "a")[..1], &[all[0].part(11..12)], None).expect("ok"));
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());

    // The order of the rows of several files is unknown: such a region is read again.
    to_version_2(&dir);
    tamper(&dir, "UPDATE savedsearch_region_file SET region = (SELECT max(id) FROM savedsearch_coverage)");
    assert_eq!(read(&open_with(&dir, &[], Access::Read, noon()).expect("a catalog")).len(), 1, "one without mentions");
    let catalog = open(&dir);
    assert_eq!(read(&catalog).len(), 1);
}

#[test]
fn numbers_are_confirmed_and_sealed() {
    let dir = folder();
    let catalog = open_with(&dir, &usual(), Access::ReadWrite, noon() + TimeDelta::hours(2)).expect("a catalog");
    let regions = [region(&catalog, 10, &[1], "x"), region(&catalog, 11, &[0], ""), region(&catalog, 12, &[1], "y")];
    assert!(catalog.replace(&subject("a", &[]), &[], &regions, None).expect("written"));
    let later = noon() + TimeDelta::hours(1);
    let known = ids(&catalog, "a");
    catalog.confirm(later, &[known[0], 77], &[known[1]]).expect("written");
    catalog.confirm(noon(), &known[..1], &[]).expect("written");
    let states = |catalog: &Catalog| {
        let regions = catalog.regions("a").expect("regions").into_iter();
        regions.map(|(_, region)| (region.confirmed, region.sealed)).collect::<Vec<_>>()
    };
    assert_eq!(states(&catalog), [(later, false), (later, true), (noon(), false)]);
    // From a clock that was ahead once.
    catalog.confirm(noon() + TimeDelta::days(30), &known, &known).expect("written");
    assert!(states(&catalog).iter().all(|(confirmed, sealed)| *confirmed == noon() + TimeDelta::days(30) && *sealed));
    let last = later + TimeDelta::hours(1);
    catalog.confirm(last, &known[..2], &known[..1]).expect("written");
    catalog.renew(last, &known[2..]).expect("written");
    assert_eq!(states(&catalog), [(last, true), (last, false), (last, false)]);
}

#[test]
fn old_days_are_forgotten() {
    let dir = folder();
    let catalog = open(&dir);
    for aid in ["a", "b"] {
        let regions =
            [region(&catalog, 10, &[1, 2], &format!("{aid}1")), region(&catalog, 12, &[4], &format!("{aid}2"))];
        assert!(catalog.replace(&subject(aid, &[]), &[], &regions, None).expect("written"));
    }
    assert!(
        catalog.replace(&subject("b", &[("l", &["x"])]), &[], &[region(&catalog, 1, &[8], "f")], None).expect("ok")
    );
    assert_eq!(catalog.forget(None, 11).expect("written"), 8, "only what ends by then");
    assert_eq!(catalog.forget(Some("b"), 12).expect("written"), 3);
    assert_eq!((ids(&catalog, "a").len(), ids(&catalog, "b").len()), (2, 1));
    assert_eq!(catalog.forget(None, 100).expect("written"), 11);
    assert_eq!(catalog.aids().expect("aids"), Vec::<String>::new());
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
    assert_eq!(catalog.unused_files(Some(noon() + TimeDelta::days(1))).expect("files").files.len(), 5);
}

#[test]
fn files_are_unused_after_the_grace_period_and_then_removed_with_their_versions() {
    let dir = folder();
    let all = subject("a", &[]);
    let hours = |hours| noon() + TimeDelta::hours(hours);
    for (hour, name) in [(0, "first"), (1, "second"), (2, "third")] {
        let catalog = open_with(&dir, &usual(), Access::ReadWrite, hours(hour)).expect("a catalog");
        let known = ids(&catalog, "a");
        assert!(catalog.replace(&all, &known, &[region(&catalog, 10, &[1], name)], None).expect("written"));
    }
    let catalog = open(&dir);
    assert_eq!(catalog.unused_files(Some(hours(1))).expect("files"), Unused::default(), "replaced at that instant");
    assert_eq!(catalog.unused_files(None).expect("files").files.len(), 2, "whenever they were replaced");
    let unused = catalog.unused_files(Some(hours(2))).expect("files");
    assert_eq!(unused.files, [(0, "mentions/aid=a/first.parquet".to_owned())]);
    assert_eq!(catalog.unused_files(Some(hours(3))).expect("files").files.len(), 2);
    let removed = Unused { files: vec![(0, String::new()), (2, String::new())], deletes: Vec::new() };
    catalog.removed_files(&removed).expect("written");
    assert_eq!(catalog.unused_files(Some(hours(3))).expect("files").files.len(), 1, "a current file is not removed");
    assert_eq!(value::<i64>(&dir, "SELECT min(snapshot_id) FROM ducklake_snapshot"), 3, "those with the file are gone");
    assert_eq!(value::<i64>(&dir, "SELECT count(*) FROM ducklake_file_column_stats WHERE data_file_id = 0"), 0);
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
}

#[test]
fn nothing_that_was_read_before_an_erasure_is_committed_after_it() {
    let dir = folder();
    let catalog = open(&dir);
    let all = subject("a", &[]);
    let read = [region(&catalog, 10, &[2], "read")];
    let before = catalog.erasures().expect("a number");
    catalog.begin_erasure().expect("written");
    let error = catalog.replace_by_read(&all, &[], &read, None, Some(before)).expect_err("read before");
    assert!(error.may_pass() && error.to_string().contains("has erased mentions"), "{error}");
    let after = catalog.erasures().expect("a number");
    assert!(catalog.replace_by_read(&all, &[], &read, None, Some(after)).expect("written"));
    // Neither is what was copied from other files.
    catalog.begin_erasure().expect("written");
    let (replaced, copied) = (ids(&catalog, "a"), [region(&catalog, 10, &[2], "copied")]);
    let change = Change { subject: &all, replaced: &replaced, with: &copied, deletions: None };
    let error = catalog.move_all(&[change], after).expect_err("copied before");
    assert!(error.may_pass() && error.to_string().contains("they are not replaced"), "{error}");
    let known = catalog.known_files().expect("files");
    assert_eq!(known, [format!("mentions/{}", read[0].file().expect("a file").path)].into());
    let now = catalog.erasures().expect("a number");
    assert_eq!(catalog.move_all(&[change], now).expect("written"), [true]);
    // Nor is a response.
    catalog.keep_answer("key", b"before", noon(), after).expect("not kept");
    assert_eq!(catalog.answer("key").expect("read"), None);
    catalog.keep_answer("key", b"after", noon(), now).expect("written");
    assert_eq!(catalog.answer("key").expect("read"), Some((Bytes::from_static(b"after"), noon())));
}

/// A file that is complete, but not part of the store yet, looks like one that a process has left behind.
#[test]
fn a_commit_names_no_file_that_was_removed_as_unknown() {
    let dir = folder();
    let catalog = open(&dir);
    let all = subject("a", &[]);
    let place = |region: &Region| catalog.data().join("mentions").join(&region.file().expect("a file").path);
    let [lost, kept] = [(10, "lost"), (20, "kept")].map(|(first, name)| {
        let region = region(&catalog, first, &[2], name);
        std::fs::create_dir_all(place(&region).parent().expect("a folder")).expect("created");
        std::fs::write(place(&region), [0_u8; 200]).expect("written");
        region
    });
    catalog.announce_removal().expect("written");
    let removed = catalog.remove_between_commits(|known| {
        assert!(known.is_empty());
        u64::from(std::fs::remove_file(place(&lost)).is_ok())
    });
    assert_eq!(removed.expect("removed"), 1);
    let commit = |region: &Region| catalog.replace(&all, &[], std::slice::from_ref(region), None);
    let error = commit(&lost).expect_err("its file is gone");
    let told = error.to_string();
    assert!(error.may_pass() && told.contains("removed by another process before it was stored"), "{told}");
    assert_eq!(catalog.known_files().expect("files").len(), 0);
    assert!(commit(&kept).expect("written"));
    let known = catalog.known_files().expect("files");
    assert_eq!(known, [format!("mentions/{}", kept.file().expect("a file").path)].into());
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
    // Long after the last removal, files are not looked for.
    tamper(&dir, "UPDATE savedsearch_cursor SET value = value - 200000");
    assert!(commit(&lost).expect("written"));
}

/// Versions are selected by their time.
#[test]
fn a_commit_is_never_dated_before_the_one_before() {
    let dir = folder();
    let all = subject("a", &[]);
    let hours = |hours| noon() + TimeDelta::hours(hours);
    let mut dates = Vec::new();
    for (day, hour) in [(1, 3), (2, 1), (3, 4)] {
        let catalog = open_with(&dir, &usual(), Access::ReadWrite, hours(hour)).expect("a catalog");
        assert!(catalog.replace(&all, &[], &[region(&catalog, day, &[2], &format!("f{day}"))], None).expect("written"));
        dates.push(value::<String>(&dir, "SELECT max(snapshot_time) FROM ducklake_snapshot"));
        let latest = "SELECT snapshot_time FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1";
        assert_eq!(dates.last(), Some(&value::<String>(&dir, latest)));
    }
    assert_eq!(dates, [3, 3, 4].map(|hour| ducklake::timestamp(hours(hour))));
}

#[test]
fn changed_columns_are_a_new_version_and_keep_their_ids() {
    let dir = folder();
    let first = open(&dir);
    let id = |catalog: &Catalog, schema, name: &str| {
        let columns = catalog.columns_of(schema).expect("columns");
        columns.into_iter().find(|column| column.name == name).map(|column| column.id)
    };
    assert_eq!(first.columns_of(1).expect("columns")[3].element(), Some(7), "after aid, id, published_at and tags");
    let mut changed = usual();
    changed.retain(|column| column.name != "tags");
    changed[3].kind = ColumnType::Float64;
    changed.push(StoredColumn { name: "extra".into(), kind: ColumnType::Json, source: String::new() });
    let second = open_with(&dir, &changed, Access::ReadWrite, noon()).expect("a catalog");
    assert_eq!((first.schema(), second.schema()), (1, 2));
    assert_eq!(id(&second, 2, "tags"), None);
    assert_eq!(id(&second, 2, "published_at"), id(&second, 1, "published_at"));
    assert_eq!(
        (id(&second, 1, "reach"), id(&second, 2, "reach"), id(&second, 2, "extra")),
        (Some(8), Some(9), Some(10))
    );
    // The first process goes on with its own columns.
    assert!(first.replace(&subject("a", &[]), &[], &[region(&first, 10, &[1], "old")], None).expect("written"));
    assert_eq!(second.regions("a").expect("regions")[0].1.file().map_or(0, |file| file.schema), 1);
    changed.reverse();
    changed.rotate_right(1);
    let reordered = open_with(&dir, &changed, Access::ReadWrite, noon()).expect("a catalog");
    assert_eq!(reordered.schema(), 2, "the order does not matter");
    let third = open(&dir);
    assert_eq!(third.schema(), 3);
    assert_eq!((id(&third, 3, "tags"), id(&third, 3, "reach")), (Some(6), Some(8)), "former columns are back");
    assert_eq!(open_with(&dir, &changed, Access::Read, noon()).expect("a catalog").schema(), 3);
    let current = "SELECT group_concat(column_name || ':' || column_type || ':' || column_id, ' ') FROM \
                   (SELECT * FROM ducklake_column WHERE table_id = 2 AND end_snapshot IS NULL ORDER BY column_order)";
    assert_eq!(
        value::<String>(&dir, current),
        "aid:varchar:3 id:varchar:4 published_at:timestamptz:5 tags:list:6 element:varchar:7 reach:int64:8 \
         filters:varchar:1"
    );
    assert_eq!(value::<i64>(&dir, "SELECT max(schema_version) FROM ducklake_snapshot"), 3);
    assert_eq!(third.check().expect("checked"), Vec::<String>::new());

    for (wrong, message) in [
        (columns(&[("id", ColumnType::Utf8)]), "first column"),
        (columns(&[("aid", ColumnType::Utf8), ("Filters", ColumnType::Utf8)]), "reserved by the store"),
        (columns(&[("aid", ColumnType::Utf8), ("x", ColumnType::Utf8), ("x", ColumnType::Int64)]), "the same name"),
    ] {
        let error = open_with(&dir, &wrong, Access::ReadWrite, noon()).expect_err(message);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn processes_see_each_others_commits() {
    let dir = folder();
    let (one, other) = (open(&dir), open(&dir));
    let version = |catalog: &Catalog| catalog.version().expect("a version");
    let before = (version(&one), version(&other));
    assert_eq!(before, (version(&one), version(&other)), "nothing has changed");
    assert!(one.replace(&subject("a", &[]), &[], &[region(&one, 10, &[1], "x")], None).expect("written"));
    assert_ne!(version(&one), before.0);
    assert_ne!(version(&other), before.1);
    assert_eq!(ids(&one, "a"), ids(&other, "a"));

    other.set_cursor("list", "7").expect("written");
    other.set_cursor("list", "8").expect("written");
    assert_eq!(one.cursor("list").expect("read").as_deref(), Some("8"));
    assert_eq!(one.cursor("other").expect("read"), None);
    let (early, late) = (noon(), noon() + TimeDelta::hours(1));
    other.keep_answer("key", b"late", late, 0).expect("written");
    other.keep_answer("key", b"early", early, 0).expect("ignored");
    assert_eq!(one.answer("key").expect("read"), Some((Bytes::from_static(b"late"), late)));
    assert_eq!(one.answered_at("key").expect("read"), Some(late));
    assert_eq!(one.answer("none").expect("read"), None);
    assert_eq!(one.answered_at("none").expect("read"), None);
    assert_eq!(one.forget_answers_before(late).expect("none"), 0);
    assert_eq!(one.forget_answers_before(late + TimeDelta::hours(1)).expect("one"), 1);
    assert_eq!(other.answer("key").expect("read"), None);
}

/// Statements stay prepared.
#[test]
fn statements_follow_the_tables_that_other_programs_change() {
    let dir = folder();
    let catalog = open(&dir);
    let is_recorded = || catalog.recorded().expect("readable").is_some();
    let at = "SELECT first, first_at, latest FROM savedsearch_recorded";
    for _ in 0..3 {
        assert!(is_recorded());
        tamper(&dir, &format!("CREATE TABLE kept AS {at}; DROP TABLE savedsearch_recorded"));
        assert!(!is_recorded());
        catalog.set_cursor("list", "x").expect("written");
        tamper(&dir, "ALTER TABLE kept RENAME TO savedsearch_recorded");
    }
    assert_eq!(catalog.cursor("list").expect("readable"), Some("x".to_owned()));
}

#[test]
fn threads_that_write_at_once_take_turns() {
    let dir = Arc::new(folder());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let dir = Arc::clone(&dir);
            std::thread::spawn(move || {
                let catalog = open(&dir);
                for day in 0..25 {
                    let region = region(&catalog, day, &[1], &format!("{thread}-{day}"));
                    let aid = format!("{}", thread % 2);
                    // Two threads write the same days: one of them has to read again.
                    while !catalog
                        .replace(&subject(&aid, &[]), &at(&catalog, &aid, day), std::slice::from_ref(&region), None)
                        .expect("ok")
                    {}
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    let catalog = open(&dir);
    assert_eq!((ids(&catalog, "0").len(), ids(&catalog, "1").len()), (25, 25));
    assert_eq!(catalog.check().expect("checked"), Vec::<String>::new());
    assert_eq!(value::<i64>(&dir, "SELECT count(*) FROM ducklake_snapshot"), 102);
    assert_eq!(catalog.unused_files(Some(noon() + TimeDelta::days(1))).expect("files").files.len(), 50);

    fn at(catalog: &Catalog, aid: &str, day: Day) -> Vec<i64> {
        let regions = catalog.regions(aid).expect("regions");
        regions.iter().filter(|(_, region)| region.days.contains(&day)).filter_map(|(_, region)| region.id).collect()
    }
}

#[test]
fn what_other_programs_change_is_found_and_not_used() {
    let dir = folder();
    let catalog = open(&dir);
    let all = subject("a", &[]);
    let regions: Vec<Region> = (0..4).map(|day| region(&catalog, day, &[2], &format!("f{day}"))).collect();
    assert!(catalog.replace(&all, &[], &regions, None).expect("written"));
    tamper(
        &dir,
        "UPDATE ducklake_data_file SET end_snapshot = 3 WHERE data_file_id = 0;
         INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, data_file_id) VALUES (9, 1, 3, 1);
         UPDATE ducklake_data_file SET record_count = 3 WHERE data_file_id = 2;
         INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path) VALUES (8, 1, 3, 'other');
         INSERT INTO ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_1', 1);",
    );
    let problems = catalog.check().expect("checked");
    let cases = [
        "aid a from 1970-01-01: file aid=a/f0.parquet was removed by another program",
        "file aid=a/f1.parquet: another program deleted rows",
        "file aid=a/f2.parquet: 3 rows, of which regions have 2 and 0 are deleted",
        "file other belongs to no region",
        "table 1: another program may keep rows in ducklake_inlined_data_1_1",
    ];
    each(cases, |problem| {
        assert!(problems.iter().any(|found| found == problem), "{problem}: {problems:#?}");
    });
    assert_eq!(problems.len(), 5, "{problems:#?}");
    let usable = ids(&catalog, "a");
    assert_eq!(usable.len(), 2, "two regions are still whole");
    // They give way to new regions without being named.
    let again: Vec<Region> = (0..4).map(|day| region(&catalog, day, &[2], &format!("g{day}"))).collect();
    assert!(catalog.replace(&all, &usable, &again, None).expect("written"));
    assert_eq!(ids(&catalog, "a").len(), 4);

    tamper(
        &dir,
        "UPDATE savedsearch_coverage SET counts = '1,1' WHERE from_day = 0;
         UPDATE savedsearch_coverage SET to_day = 3 WHERE from_day = 1;
         UPDATE savedsearch_coverage SET filters = '{\"l\":[\"x\"]}' WHERE from_day = 0;
         UPDATE ducklake_table_stats SET record_count = 1;
         INSERT INTO savedsearch_coverage SELECT 99, 'c', '{}', 7, 8, '2', as_of, confirmed, 0, snapshot
             FROM savedsearch_coverage WHERE from_day = 0;
         DELETE FROM savedsearch_coverage WHERE from_day = 3;",
    );
    let problems = catalog.check().expect("checked").join("\n");
    let cases = [
        "aid a from 1970-01-01: invalid daily counts",
        "regions from 1970-01-02 and 1970-01-03 overlap",
        "mentions without a file",
        " of table 1 has a region of aid a with filters {\"l\":[\"x\"]}",
        "table 1: row count lower than the rows in files",
        "which does not exist",
    ];
    each(cases, |problem| {
        assert!(problems.contains(problem), "{problem}: {problems}");
    });
    tamper(&dir, "UPDATE savedsearch_coverage SET filters = 'x'");
    let error = catalog.regions("a").expect_err("damaged");
    assert!(error.to_string().contains("damaged") && error.to_string().contains("Connection::verify_store"), "{error}");
}

#[test]
fn a_full_device_and_a_lock_are_errors() {
    let dir = folder();
    let catalog = open(&dir);
    writer(&catalog).pragma_update(None, "max_page_count", 1).expect("set");
    let error = catalog.keep_answer("key", &[7; 1_000_000], noon(), 0).expect_err("full");
    let place = dir.path().join("store");
    assert_eq!(
        error.to_string(),
        format!("cannot write to {}: no space left on the disk; free space", place.display())
    );
    assert_eq!(catalog.answer("key").expect("readable"), None);

    let other = open(&dir);
    let holder = Connection::open(dir.path().join("store").join(FILE)).expect("the file");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    writer(&other).busy_timeout(Duration::from_millis(20)).expect("set");
    let error = other.set_cursor("list", "7").expect_err("locked");
    assert!(error.may_pass() && error.to_string().contains("locked by another process"), "{error}");
    assert_eq!(other.cursor("list").expect("readable"), None);
}

#[test]
fn a_moved_store_has_its_new_place_after_writing() {
    let dir = folder();
    drop(open(&dir));
    let place = "SELECT value FROM ducklake_metadata WHERE key = 'data_path'";
    let old = dir.path().join("store/data/");
    assert_eq!(value::<String>(&dir, place), old.to_str().expect("UTF-8"));
    tamper(&dir, "UPDATE ducklake_metadata SET value = '/elsewhere/' WHERE key = 'data_path'");
    drop(open_with(&dir, &usual(), Access::Read, noon()).expect("readable"));
    assert_eq!(value::<String>(&dir, place), "/elsewhere/");
    drop(open(&dir));
    assert_eq!(value::<String>(&dir, place), old.to_str().expect("UTF-8"));
}

#[test]
fn bounds_only_widen() {
    let dir = folder();
    let catalog = open(&dir);
    let all = subject("b", &[]);
    let at = |first, last, name: &str| {
        let mut region = region(&catalog, 10, &[1], name);
        let times = (first, last);
        region.rows = region.rows.map(|rows| {
            let file = DataFile { times, ..rows.file.as_ref().clone() };
            Rows { file: Arc::new(file), ..rows }
        });
        region
    };
    let bounds = "SELECT min_value || ' ' || max_value FROM ducklake_table_column_stats WHERE column_id = 5";
    assert!(catalog.replace(&all, &[], &[at(0, DAY, "x")], None).expect("written"));
    assert_eq!(value::<String>(&dir, bounds), "1970-01-01 00:00:00.000000+00 1970-01-02 00:00:00.000000+00");
    assert!(catalog.replace(&all, &ids(&catalog, "b"), &[at(1, 2, "y")], None).expect("written"));
    assert!(catalog.replace(&all, &ids(&catalog, "b"), &[at(-1, 2, "z")], None).expect("written"));
    assert_eq!(value::<String>(&dir, bounds), "1969-12-31 23:59:59.999999+00 1970-01-02 00:00:00.000000+00");
    let counted = "SELECT record_count || ' ' || next_row_id || ' ' || file_size_bytes FROM ducklake_table_stats";
    assert_eq!(value::<String>(&dir, counted), "3 3 300", "gross, as DuckDB counts");

    let bounded = "SELECT group_concat(column_id, ' ') FROM ducklake_table_column_stats";
    assert_eq!(value::<String>(&dir, bounded), "3 5");
    assert!(catalog.replace(&all, &ids(&catalog, "b"), &[at(i64::MIN, 0, "w")], None).expect("written"));
    assert_eq!(value::<String>(&dir, bounded), "3", "nothing is known of a file");
    assert!(catalog.replace(&all, &ids(&catalog, "b"), &[at(0, 1, "v")], None).expect("written"));
    assert_eq!(value::<String>(&dir, bounded), "3", "readers of older versions need to see that file");
    let files = "SELECT group_concat(data_file_id, ' ') FROM ducklake_file_column_stats WHERE column_id = 5";
    assert_eq!(value::<String>(&dir, files), "0 1 2 4");
}

#[test]
fn a_complete_file_is_readable_if_nothing_can_be_created() {
    let dir = folder();
    let store = dir.path().join("st?re #1%20");
    let open = |access| Catalog::open(&store, &owner(), &usual(), "published_at", Clock::fixed(noon()), access);
    let catalog = open(Access::ReadWrite).expect("a catalog");
    catalog.set_cursor("list", "7").expect("written");
    assert!(connect_alone(&store.join(FILE)).is_none(), "the journal has a commit");
    drop(catalog);
    let alone = connect_alone(&store.join(FILE)).expect("no journal").expect("opened");
    assert_eq!(alone.query_row("SELECT value FROM savedsearch_cursor", [], |row| row.get(0)), Ok("7".to_owned()));
}
