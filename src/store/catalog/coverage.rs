//! Regions: the days that were read, the time of the read, and the files with the mentions.
//!
//! A region is *whole* while all its files are current and no program has deleted rows of them. Other regions are ignored,
//! and are removed when their days are next replaced.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};
use rusqlite::{Connection, Row, params};

use super::Catalog;
use super::ducklake::{self, DELETED, Snapshot, table_of, text_of};
use super::failure::{instant, invalid};
use crate::error::{Error, ErrorKind, Result};
use crate::store::coverage::start_of;
use crate::store::region::{DataFile, Day, Deletions, Filters, Region, Subject};

/// A row per file of each region, and one for a region without files. The condition joins the files that are whole.
const REGIONS: &str = "\
    SELECT c.id, c.filters, c.from_day, c.to_day, c.counts, c.as_of, c.confirmed, c.sealed, \
           r.data_file_id, d.path, d.record_count, d.file_size_bytes, d.footer_size, r.first, r.last, r.schema, r.digest \
    FROM savedsearch_coverage c LEFT JOIN savedsearch_region_file r ON r.region = c.id \
    LEFT JOIN ducklake_data_file d ON d.data_file_id = r.data_file_id AND d.end_snapshot IS NULL \
        AND NOT EXISTS (SELECT 1 FROM ducklake_delete_file e \
                        WHERE e.data_file_id = d.data_file_id AND e.end_snapshot IS NULL) \
    WHERE c.aid = ?1 ORDER BY c.from_day, c.id, r.data_file_id";

impl Catalog {
    /// Returns the regions of a saved search, sorted by their first day.
    pub(crate) fn regions(&self, aid: &str) -> Result<Vec<(Filters, Region)>> {
        let stored = self.read(|connection| regions(connection, aid))?;
        Ok(stored.into_iter().filter(|stored| stored.whole).map(|stored| (stored.filters, stored.region)).collect())
    }

    /// Returns the saved searches that have regions.
    pub(crate) fn aids(&self) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT aid FROM savedsearch_coverage ORDER BY aid";
        self.read(|connection| connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect())
    }

    /// Replaces regions of a subject by others in one transaction. `replaced` are all regions that overlap the new
    /// ones. If the catalog has others by now, or other deleted mentions, it stays as it is, and the result is false: the
    /// caller reads it again. A file that a new region shares with a replaced one stays.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the catalog cannot be written, or regions contradict their files or each other.
    pub(crate) fn replace(
        &self,
        subject: &Subject,
        replaced: &[i64],
        with: &[Region],
        deletions: Option<&Deletions>,
    ) -> Result<bool> {
        validate(with)?;
        self.write(|transaction| {
            let stored = regions(transaction, &subject.aid)?.into_iter();
            let overlapping: Vec<Stored> = stored
                .filter(|stored| stored.filters == subject.filters)
                .filter(|stored| with.iter().any(|new| overlap(new, &stored.region)))
                .collect();
            let known: BTreeSet<Option<i64>> =
                overlapping.iter().filter(|stored| stored.whole).map(|stored| stored.region.id).collect();
            if known != replaced.iter().copied().map(Some).collect() {
                return Ok(false);
            }
            if let Some(Deletions { known, .. }) = deletions
                && !deleted(transaction, &subject.aid)?.iter().map(|(id, _)| id).eq(known)
            {
                return Ok(false);
            }
            let mut snapshot = Snapshot::begin(transaction)?;
            let mut kept = BTreeMap::new();
            for (id, path) in uncover(transaction, overlapping.iter().filter_map(|stored| stored.region.id))? {
                match with.iter().flat_map(|new| &new.files).any(|file| Some(&file.path) == path.as_ref()) {
                    true => drop(kept.insert(path, id)),
                    false => snapshot.end_file(id)?,
                }
            }
            for region in with {
                let mut files = Vec::with_capacity(region.files.len());
                for file in &region.files {
                    let id = match kept.remove(&Some(file.path.clone())) {
                        Some(id) => id,
                        None => {
                            let columns = super::columns::of(transaction, file.schema)?;
                            let time = ducklake::time_column(&columns, &self.time);
                            snapshot.add_file(table_of(&subject.filters), subject, file, time)?
                        }
                    };
                    files.push((id, file));
                }
                cover(transaction, snapshot.id(), subject, region, &files)?;
            }
            for id in deletions.iter().flat_map(|deletions| &deletions.ended) {
                snapshot.end_file(*id)?;
                transaction.execute("DELETE FROM savedsearch_deleted WHERE data_file_id = ?1", [id])?;
            }
            for file in deletions.iter().flat_map(|deletions| &deletions.added) {
                let columns = super::columns::of(transaction, file.schema)?;
                let id = snapshot.add_file(DELETED, subject, file, ducklake::time_column(&columns, &self.time))?;
                let sql = "INSERT INTO savedsearch_deleted (data_file_id, aid, schema, first, last, digest) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let DataFile { schema, times, digest, .. } = file;
                transaction.execute(sql, params![id, subject.aid, schema, times.0, times.1, digest])?;
            }
            snapshot.finish(self.clock.now(), &message(subject, with))?;
            Ok(true)
        })
    }

    /// Returns the files with mentions of a saved search that the service no longer has, with their identities, in their
    /// order.
    pub(crate) fn deleted_files(&self, aid: &str) -> Result<Vec<(i64, DataFile)>> {
        self.read(|connection| deleted(connection, aid))
    }

    /// Returns the saved searches of which deleted mentions are kept.
    pub(crate) fn aids_with_deleted(&self) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT aid FROM savedsearch_deleted ORDER BY aid";
        self.read(|connection| connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect())
    }

    /// Records that the numbers of regions were confirmed at an instant; those in `sealed` after all their days had
    /// settled. Regions that were replaced meanwhile are skipped.
    pub(crate) fn confirm(&self, at: DateTime<Utc>, confirmed: &[i64], sealed: &[i64]) -> Result<()> {
        self.write(|transaction| {
            let sql = "UPDATE savedsearch_coverage SET confirmed = max(confirmed, ?1), sealed = max(sealed, ?2) \
                       WHERE id = ?3";
            let mut statement = transaction.prepare(sql)?;
            for (ids, seal) in [(confirmed, false), (sealed, true)] {
                for id in ids {
                    statement.execute(params![at.timestamp_micros(), seal, id])?;
                }
            }
            Ok(())
        })
    }

    /// Removes the regions, of all saved searches or of one, that end at or before a day, and the deleted mentions of the
    /// same time. Returns the number of the regions' mentions.
    pub(crate) fn forget(&self, aid: Option<&str>, before: Day) -> Result<u64> {
        self.write(|transaction| {
            let sql = "SELECT id, counts FROM savedsearch_coverage WHERE to_day <= ?1 AND (?2 IS NULL OR aid = ?2)";
            let ended = |row: &Row<'_>| Ok((row.get(0)?, counts(row, 1)?));
            let regions: Vec<(i64, Vec<u64>)> =
                transaction.prepare(sql)?.query_map(params![before, aid], ended)?.collect::<Result<_, _>>()?;
            let mut snapshot = Snapshot::begin(transaction)?;
            for (id, _) in uncover(transaction, regions.iter().map(|(id, _)| *id))? {
                snapshot.end_file(id)?;
            }
            let sql =
                "DELETE FROM savedsearch_deleted WHERE last < ?1 AND (?2 IS NULL OR aid = ?2) RETURNING data_file_id";
            let mut forget = transaction.prepare(sql)?;
            for id in forget.query_map(params![start_of(before), aid], |row| row.get::<_, i64>(0))? {
                snapshot.end_file(id?)?;
            }
            let mentions = regions.iter().flat_map(|(_, counts)| counts).sum();
            snapshot.finish(self.clock.now(), &format!("removed {mentions} mentions from before {}", date(before)))?;
            Ok(mentions)
        })
    }
}

/// A region as read.
struct Stored {
    filters: Filters,
    region: Region,
    /// True if all its files are as this program wrote them.
    whole: bool,
}

/// Reads the regions of a saved search, sorted by their first day.
fn regions(connection: &Connection, aid: &str) -> rusqlite::Result<Vec<Stored>> {
    let mut statement = connection.prepare(REGIONS)?;
    let mut rows = statement.query([aid])?;
    let mut stored: Vec<Stored> = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        if stored.last().is_none_or(|last| last.region.id != Some(id)) {
            stored.push(region(row, id)?);
        }
        let Some(last) = stored.last_mut() else { continue };
        let (named, path): (Option<i64>, Option<String>) = (row.get(8)?, row.get(9)?);
        match (named, path) {
            (None, _) => {}
            (Some(_), None) => last.whole = false,
            (Some(_), Some(path)) => last.region.files.push(data_file(row, 9, path)?),
        }
    }
    for Stored { region, whole, .. } in &mut stored {
        *whole = *whole && agrees(region);
    }
    Ok(stored)
}

/// Reads the current files of deleted mentions of a saved search.
fn deleted(connection: &Connection, aid: &str) -> rusqlite::Result<Vec<(i64, DataFile)>> {
    let sql = "SELECT s.data_file_id, d.path, d.record_count, d.file_size_bytes, d.footer_size, s.first, s.last, s.schema, \
                      s.digest \
               FROM savedsearch_deleted s \
               JOIN ducklake_data_file d ON d.data_file_id = s.data_file_id AND d.end_snapshot IS NULL \
               WHERE s.aid = ?1 ORDER BY s.data_file_id";
    let file = |row: &Row<'_>| Ok((row.get(0)?, data_file(row, 1, row.get(1)?)?));
    connection.prepare(sql)?.query_map([aid], file)?.collect()
}

/// Reads a file from the columns of a row that begin with its path: rows, bytes, footer, first and last time, schema, digest.
fn data_file(row: &Row<'_>, path_at: usize, path: String) -> rusqlite::Result<DataFile> {
    Ok(DataFile {
        path,
        rows: row.get(path_at + 1)?,
        bytes: row.get(path_at + 2)?,
        footer: row.get(path_at + 3)?,
        times: (row.get(path_at + 4)?, row.get(path_at + 5)?),
        schema: row.get(path_at + 6)?,
        digest: row.get(path_at + 7)?,
    })
}

/// Reads a region without its files.
fn region(row: &Row<'_>, id: i64) -> rusqlite::Result<Stored> {
    let filters: String = row.get(1)?;
    let filters = Filters(serde_json::from_str(&filters).map_err(|error| invalid(1, error))?);
    let region = Region {
        id: Some(id),
        days: row.get(2)?..row.get(3)?,
        counts: counts(row, 4)?,
        as_of: instant(row, 5)?,
        confirmed: instant(row, 6)?,
        sealed: row.get(7)?,
        files: Vec::new(),
    };
    Ok(Stored { filters, region, whole: true })
}

/// Reads the numbers of days.
fn counts(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u64>> {
    let text: String = row.get(column)?;
    text.split(',').map(|count| count.parse().map_err(|error| invalid(column, error))).collect()
}

/// Adds a region with its files, whose ids are known.
fn cover(
    connection: &Connection,
    snapshot: i64,
    subject: &Subject,
    region: &Region,
    files: &[(i64, &DataFile)],
) -> rusqlite::Result<()> {
    let counts: Vec<String> = region.counts.iter().map(u64::to_string).collect();
    let sql = "INSERT INTO savedsearch_coverage (aid, filters, from_day, to_day, counts, as_of, confirmed, sealed, \
               snapshot) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.execute(
        sql,
        params![
            subject.aid,
            text_of(&subject.filters),
            region.days.start,
            region.days.end,
            counts.join(","),
            region.as_of.timestamp_micros(),
            region.confirmed.timestamp_micros(),
            region.sealed,
            snapshot,
        ],
    )?;
    let id = connection.last_insert_rowid();
    for (file, DataFile { times, schema, digest, .. }) in files {
        let sql = "INSERT INTO savedsearch_region_file (region, data_file_id, schema, first, last, digest) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.execute(sql, params![id, file, schema, times.0, times.1, digest])?;
    }
    Ok(())
}

/// Removes regions. Returns their files, with the paths of those that the catalog still has.
fn uncover(
    connection: &Connection,
    regions: impl Iterator<Item = i64>,
) -> rusqlite::Result<Vec<(i64, Option<String>)>> {
    let sql = "SELECT r.data_file_id, d.path FROM savedsearch_region_file r \
               LEFT JOIN ducklake_data_file d ON d.data_file_id = r.data_file_id AND d.end_snapshot IS NULL \
               WHERE r.region = ?1";
    let mut named = connection.prepare(sql)?;
    let mut files = Vec::new();
    for region in regions {
        for file in named.query_map([region], |row| Ok((row.get(0)?, row.get(1)?)))? {
            files.push(file?);
        }
        connection.execute("DELETE FROM savedsearch_region_file WHERE region = ?1", [region])?;
        connection.execute("DELETE FROM savedsearch_coverage WHERE id = ?1", [region])?;
    }
    Ok(files)
}

/// Rejects regions that contradict their files or each other.
fn validate(regions: &[Region]) -> Result<()> {
    let wrong = |what: &str| Err(Error::new(ErrorKind::Store, format!("internal error: {what}")));
    if !regions.iter().all(agrees) {
        return wrong("a region contradicts its files");
    }
    let mut days: Vec<_> = regions.iter().map(|region| region.days.clone()).collect();
    days.sort_unstable_by_key(|days| days.start);
    match days.windows(2).all(|pair| pair[0].end <= pair[1].start) {
        true => Ok(()),
        false => wrong("regions overlap"),
    }
}

/// True if a region has a number for each of its days, and files with as many mentions.
fn agrees(region: &Region) -> bool {
    let days = i64::from(region.days.end) - i64::from(region.days.start);
    let rows: u64 = region.files.iter().map(|file| file.rows).sum();
    days > 0
        && usize::try_from(days) == Ok(region.counts.len())
        && region.files.iter().all(|file| file.rows > 0)
        && region.counts.iter().sum::<u64>() == rows
}

fn overlap(one: &Region, other: &Region) -> bool {
    one.days.start < other.days.end && other.days.start < one.days.end
}

/// Describes a replacement for users who list the snapshots.
fn message(subject: &Subject, regions: &[Region]) -> String {
    let mentions: u64 = regions.iter().flat_map(|region| &region.counts).sum();
    let days = regions.iter().map(|region| &region.days);
    let (Some(first), Some(end)) = (days.clone().map(|days| days.start).min(), days.map(|days| days.end).max()) else {
        return String::new();
    };
    let filtered = if subject.filters.is_empty() { "" } else { ", filtered" };
    format!("{mentions} mentions of {}, {} to {}{filtered}", subject.aid, date(first), date(end - 1))
}

fn date(day: Day) -> NaiveDate {
    DateTime::from_timestamp(i64::from(day) * 86_400, 0).map(|at| at.date_naive()).unwrap_or_default()
}
