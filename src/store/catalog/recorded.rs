//! The commits of mentions, and since when they are recorded.
//!
//! A store of an older version has commits that nobody recorded, and an older version may still write to it. Each snapshot
//! therefore names the one before it: if that is another than the last one recorded, the record begins again.

use chrono::{DateTime, NaiveDateTime, Utc};

use super::Catalog;
use super::coverage::{deleted, regions};
use super::sql::{Connection, SqlResult, invalid, values};
use crate::error::Result;
use crate::store::region::{DataFile, Region};
use crate::store::stamps::{Stamp, Stamps};

/// Commits that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// The commit after which all are recorded; [`Stamp::BEFORE`] if all of the store are.
    pub(crate) after: Stamp,
    /// Number of the latest snapshot.
    pub(crate) latest: i64,
}

/// Mentions of a saved search with their commits: whole unfiltered regions, and files of deleted mentions of which the commit is
/// known.
pub(crate) type History = (Vec<Region>, Vec<(DataFile, Stamp)>);

impl Catalog {
    /// Returns since when commits are recorded; `None` if they are not: the store was never opened for writing by this version.
    pub(crate) fn recorded(&self) -> Result<Option<Recorded>> {
        self.read(recorded)
    }

    /// Returns the commits of the mentions of a region, if they are recorded; `None` if there is no such region.
    pub(crate) fn stamps(&self, region: i64) -> Result<Option<Option<Stamps>>> {
        self.read(|connection| {
            let sql = "SELECT count(*) FROM savedsearch_coverage WHERE id = ?1";
            if connection.row(sql, values![region], |row| row.get::<i64>(0))? == 0 {
                return Ok(None);
            }
            if exists(connection)? { stamps(connection, region).map(Some) } else { Ok(Some(None)) }
        })
    }

    /// Returns the mentions of a saved search with their commits, as of one instant.
    pub(crate) fn history(&self, aid: &str) -> Result<History> {
        let (regions, deleted) = self.read(|connection| {
            let mut whole = Vec::new();
            for stored in regions(connection, aid)?.into_iter().filter(|stored| stored.whole) {
                if let (true, Some(id)) = (stored.filters.is_empty(), stored.region.id) {
                    whole.push((stored.region, stamps(connection, id)?));
                }
            }
            Ok((whole, deleted(connection, aid)?))
        })?;
        let regions = regions.into_iter().map(|(region, stamps)| region.stamped(stamps)).collect::<Result<_>>()?;
        let deleted = deleted.into_iter().filter_map(|(_, file, stamp)| Some((file, stamp?)));
        Ok((regions, deleted.collect()))
    }

    /// Returns the saved searches of which mentions or deleted mentions are stored.
    pub(crate) fn all_aids(&self) -> Result<Vec<String>> {
        let sql = "SELECT aid FROM savedsearch_coverage UNION SELECT aid FROM savedsearch_deleted ORDER BY aid";
        self.read(|connection| connection.rows(sql, values![], |row| row.get(0)))
    }
}

/// True if commits are recorded.
pub(super) fn exists(connection: &Connection<'_>) -> SqlResult<bool> {
    connection.has_table("savedsearch_recorded")
}

/// Begins to record the commits of a new store.
pub(super) fn create(connection: &Connection<'_>) -> SqlResult<()> {
    connection.define(include_str!("stamps.sql"))?;
    let Stamp { snapshot, at } = Stamp::BEFORE;
    let sql = "INSERT INTO savedsearch_recorded (first, first_at, latest) VALUES (?1, ?2, ?1)";
    connection.execute(sql, values![snapshot, at]).map(drop)
}

/// Begins to record the commits of a store of an older version.
pub(super) fn begin(connection: &Connection<'_>) -> SqlResult<()> {
    create(connection)?;
    let Stamp { snapshot, at } = latest(connection)?;
    let sql = "UPDATE savedsearch_recorded SET first = ?1, first_at = ?2, latest = ?1";
    connection.execute(sql, values![snapshot, at]).map(drop)
}

/// Records that a snapshot follows another one. If that is not the last one recorded, the record begins after it.
pub(super) fn follow(connection: &Connection<'_>, before: i64, snapshot: i64) -> SqlResult<()> {
    let sql = "UPDATE savedsearch_recorded SET latest = ?1 WHERE latest = ?2";
    if connection.execute(sql, values![snapshot, before])? > 0 {
        return Ok(());
    }
    let at = time_of(connection, before)?;
    let sql = "UPDATE savedsearch_recorded SET first = ?1, first_at = ?2, latest = ?3";
    connection.execute(sql, values![before, at, snapshot])?;
    let sql = "DELETE FROM savedsearch_stamps WHERE region NOT IN (SELECT id FROM savedsearch_coverage)";
    connection.execute(sql, values![])?;
    let sql = "DELETE FROM savedsearch_deleted_stamp \
               WHERE data_file_id NOT IN (SELECT data_file_id FROM savedsearch_deleted)";
    connection.execute(sql, values![]).map(drop)
}

fn recorded(connection: &Connection<'_>) -> SqlResult<Option<Recorded>> {
    if !exists(connection)? {
        return Ok(None);
    }
    let last = latest(connection)?;
    let sql = "SELECT first, first_at, latest FROM savedsearch_recorded";
    connection.row(sql, values![], |row| {
        let after = match row.get::<i64>(2)? == last.snapshot {
            true => Stamp { snapshot: row.get(0)?, at: row.get(1)? },
            false => last,
        };
        Ok(Some(Recorded { after, latest: last.snapshot }))
    })
}

fn stamps(connection: &Connection<'_>, region: i64) -> SqlResult<Option<Stamps>> {
    let sql = "SELECT stamps FROM savedsearch_stamps WHERE region = ?1";
    let encoded: Option<Vec<u8>> = connection.first(sql, values![region], |row| row.get(0))?;
    encoded.map(|bytes| Stamps::decode(&bytes).ok_or_else(|| invalid(0, "invalid commits of mentions"))).transpose()
}

/// Returns the latest snapshot.
fn latest(connection: &Connection<'_>) -> SqlResult<Stamp> {
    let sql = "SELECT max(snapshot_id) FROM ducklake_snapshot";
    let snapshot = connection.row(sql, values![], |row| row.get(0))?;
    Ok(Stamp { snapshot, at: time_of(connection, snapshot)? })
}

/// Time of a snapshot in microseconds since 1970.
pub(super) fn time_of(connection: &Connection<'_>, snapshot: i64) -> SqlResult<i64> {
    let sql = "SELECT snapshot_time FROM ducklake_snapshot WHERE snapshot_id = ?1";
    let text: String = connection.row(sql, values![snapshot], |row| row.get(0))?;
    instant_of(&text).map(|at| at.timestamp_micros()).ok_or_else(|| invalid(0, "not an instant"))
}

/// Parses the text of an instant in UTC, of any precision, as DuckDB and this program write it.
pub(super) fn instant_of(text: &str) -> Option<DateTime<Utc>> {
    let local = text.strip_suffix("+00").or_else(|| text.strip_suffix("+00:00")).or_else(|| text.strip_suffix('Z'));
    let local = NaiveDateTime::parse_from_str(local.unwrap_or(text), "%Y-%m-%d %H:%M:%S%.f").ok()?;
    Some(local.and_utc())
}
