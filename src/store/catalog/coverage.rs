//! Regions: the days that were read, the time of the read, and the rows of a file with the mentions.
//!
//! A region is *whole* while its file is current and no other program has deleted rows of it. Other regions are ignored, and
//! are removed when their days are next replaced. Rows that lose their region are named by a delete file; a file without
//! regions ends.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Catalog;
use super::ducklake::{self, DELETED, Labels, Snapshot, Table, table_of, text_of};
use super::sql::{Connection, Row, SqlResult, instant, invalid, values};
use super::{checksums, erasures, recorded};
use crate::error::{Error, ErrorKind, Result};
use crate::request::CLOCK_SKEW;
use crate::store::coverage::start_of;
#[cfg(feature = "shared")]
use crate::store::lease::Work;
use crate::store::region::{DataFile, Day, Deletions, Filters, Region, Rows, Subject};
use crate::store::stamps::Stamp;
use crate::store::{date_of, files};

/// A row per region. The condition joins the files that are whole.
const REGIONS: &str = "\
    SELECT c.id, c.filters, c.from_day, c.to_day, c.counts, c.as_of, c.confirmed, c.sealed, \
           r.data_file_id, r.first_row, d.path, d.record_count, d.file_size_bytes, d.footer_size, f.first, f.last, \
           f.schema, f.digest \
    FROM savedsearch_coverage c LEFT JOIN savedsearch_region_file r ON r.region = c.id \
    LEFT JOIN savedsearch_file f ON f.data_file_id = r.data_file_id \
    LEFT JOIN ducklake_data_file d ON d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL \
        AND NOT EXISTS (SELECT 1 FROM ducklake_delete_file e \
                        WHERE e.data_file_id = d.data_file_id AND e.end_snapshot IS NULL \
                          AND e.delete_file_id NOT IN (SELECT delete_file_id FROM savedsearch_delete_file)) \
    WHERE c.aid = ?1 ORDER BY c.from_day, c.id";

/// A replacement of regions of a subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'c> {
    pub(crate) subject: &'c Subject,
    /// All regions that overlap the new ones.
    pub(crate) replaced: &'c [i64],
    pub(crate) with: &'c [Region],
    pub(crate) deletions: Option<&'c Deletions>,
}

impl Catalog {
    /// Returns the regions of a saved search, sorted by their first day.
    pub(crate) fn regions(&self, aid: &str) -> Result<Vec<(Filters, Region)>> {
        let stored = self.read(|connection| regions(connection, aid))?;
        Ok(stored.into_iter().filter(|stored| stored.whole).map(|stored| (stored.filters, stored.region)).collect())
    }

    /// Returns the saved searches that have regions.
    pub(crate) fn aids(&self) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT aid FROM savedsearch_coverage ORDER BY aid";
        self.read(|connection| connection.rows(sql, values![], |row| row.get(0)))
    }

    /// Returns the number of current files of unfiltered mentions below a length in bytes.
    pub(crate) fn files_below(&self, bytes: u64) -> Result<u64> {
        let sql = "SELECT count(*) FROM ducklake_data_file WHERE table_id = ?1 AND end_snapshot IS NULL AND file_size_bytes < ?2";
        self.read(|connection| connection.row(sql, values![ducklake::MENTIONS.id, bytes], |row| row.get(0)))
    }

    /// Replaces regions of a subject as [`replace_all`](Self::replace_all) does. Returns whether it has.
    pub(crate) fn replace(
        &self,
        subject: &Subject,
        replaced: &[i64],
        with: &[Region],
        deletions: Option<&Deletions>,
    ) -> Result<bool> {
        let replaced = self.replace_all(&[Change { subject, replaced, with, deletions }])?;
        Ok(replaced.first().is_some_and(|done| *done))
    }

    /// Replaces regions of a subject by days that were read, as [`replace`](Self::replace) does. `erasures`: their number before the
    /// read.
    ///
    /// # Errors
    /// Those of [`replace_all`](Self::replace_all), and [`ErrorKind::Store`] if mentions were erased since.
    pub(crate) fn replace_by_read(
        &self,
        subject: &Subject,
        replaced: &[i64],
        with: &[Region],
        deletions: Option<&Deletions>,
        erasures: Option<i64>,
    ) -> Result<bool> {
        let replaced = self.replace_under(&[Change { subject, replaced, with, deletions }], false, erasures)?;
        Ok(replaced.first().is_some_and(|done| *done))
    }

    /// Replaces regions of different subjects by others in one transaction. Where the catalog has other regions of these days
    /// by now, or other deleted mentions, they stay as they are, and the result is false: the caller reads it again. A file
    /// that a new region shares with others stays. If nothing is replaced, none of the new files is added.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the catalog cannot be written, or regions contradict their files or each other.
    pub(crate) fn replace_all(&self, changes: &[Change<'_>]) -> Result<Vec<bool>> {
        self.replace_under(changes, false, None)
    }

    /// Replaces regions by the same ones in other files, as [`replace_all`](Self::replace_all) does. `erasures`: their number before the
    /// files were read.
    ///
    /// # Errors
    /// Those of [`replace_all`](Self::replace_all), and [`ErrorKind::Store`] if this process had the lease of the merging, and another
    /// one has taken it over, or if mentions were erased since.
    pub(crate) fn move_all(&self, changes: &[Change<'_>], erasures: i64) -> Result<Vec<bool>> {
        self.replace_under(changes, true, Some(erasures))
    }

    fn replace_under(&self, changes: &[Change<'_>], merges: bool, erasures: Option<i64>) -> Result<Vec<bool>> {
        for change in changes {
            validate(change.with)?;
        }
        // Rows of a change that is not made are in the file as well.
        let mut labels: HashMap<&str, Labels> = HashMap::new();
        for Change { subject, with, .. } in changes {
            for file in with.iter().filter_map(Region::file) {
                let of = labels.entry(&file.path).or_insert_with(|| Labels::of(subject));
                of.include(subject);
            }
        }
        self.write_settling(|transaction, deletes| {
            self.check_leases(transaction, changes, merges)?;
            if let Some(erasures) = erasures {
                erasures::check(transaction, erasures, merges)?;
            }
            let mut snapshot = Snapshot::begin(transaction, self.time_in(transaction)?)?;
            let (mut made, mut touched) = (Vec::with_capacity(changes.len()), BTreeSet::new());
            let mut ids: HashMap<&str, i64> = HashMap::new();
            let mut added: Vec<(PathBuf, u64)> = Vec::new();
            for Change { subject, replaced, with, deletions } in changes {
                let overlapping = overlapping(transaction, subject, with)?;
                let whole = overlapping.iter().filter(|stored| stored.whole);
                let known: BTreeSet<i64> = whole.filter_map(|stored| stored.region.id).collect();
                let unknown = match deletions {
                    Some(Deletions { known, .. }) => {
                        !deleted(transaction, &subject.aid)?.iter().map(|(id, ..)| id).eq(known)
                    }
                    None => false,
                };
                made.push(!unknown && known == replaced.iter().copied().collect());
                if made.last() != Some(&true) {
                    continue;
                }
                touched.extend(uncover(transaction, overlapping.iter().filter_map(|stored| stored.region.id))?);
                let table = table_of(&subject.filters);
                for region in *with {
                    let id = match region.file() {
                        None => None,
                        Some(file) => Some(match ids.get(file.path.as_str()) {
                            Some(id) => *id,
                            None => {
                                let labels = &labels[file.path.as_str()];
                                let id =
                                    self.id_of_file(transaction, &mut snapshot, table, labels, file, &mut added)?;
                                ids.insert(&file.path, id);
                                id
                            }
                        }),
                    };
                    touched.extend(id);
                    let commit = Stamp { snapshot: snapshot.id(), at: snapshot.at().timestamp_micros() };
                    cover(transaction, commit, subject, region, id)?;
                }
                if let Some(deletions) = deletions {
                    self.record_deletions(transaction, &mut snapshot, subject, deletions, &mut added)?;
                }
            }
            for file in touched {
                self.settle(transaction, &mut snapshot, file, deletes)?;
            }
            self.verify_added(transaction, &added)?;
            snapshot.finish(&message(changes, &made))?;
            Ok(made)
        })
    }

    /// Verifies the leases that this process has for changes.
    #[cfg(feature = "shared")]
    fn check_leases(&self, transaction: &Connection<'_>, changes: &[Change<'_>], merges: bool) -> SqlResult<()> {
        if merges {
            self.check_lease(transaction, &Work::Merge.name())?;
        }
        changes
            .iter()
            .try_for_each(|Change { subject, .. }| self.check_lease(transaction, &Work::Sync(&subject.aid).name()))
    }

    /// Verifies nothing, since stores of one machine have no leases.
    #[cfg(not(feature = "shared"))]
    fn check_leases(&self, _: &Connection<'_>, _: &[Change<'_>], _: bool) -> SqlResult<()> {
        Ok(())
    }

    /// Returns the id of a file, which is added to its table, and to `added` with its length, if the table does not have it.
    fn id_of_file(
        &self,
        transaction: &Connection<'_>,
        snapshot: &mut Snapshot<'_>,
        table: Table,
        labels: &Labels,
        file: &DataFile,
        added: &mut Vec<(PathBuf, u64)>,
    ) -> SqlResult<i64> {
        if let Some(id) = current_file(transaction, table.id, &file.path)? {
            return Ok(id);
        }
        let columns = super::columns::of(transaction, file.schema)?;
        let time = ducklake::time_column(&columns, &self.time);
        let id = snapshot.add_file(table, labels, file, time)?;
        name_file(transaction, id, file)?;
        added.push((self.data().join(table.name).join(&file.path), file.bytes));
        Ok(id)
    }

    /// Ends files of deleted mentions, and adds others, which `added` names with their lengths.
    fn record_deletions(
        &self,
        transaction: &Connection<'_>,
        snapshot: &mut Snapshot<'_>,
        subject: &Subject,
        deletions: &Deletions,
        added: &mut Vec<(PathBuf, u64)>,
    ) -> SqlResult<()> {
        for id in &deletions.ended {
            snapshot.end_file(*id)?;
            for table in ["savedsearch_deleted", "savedsearch_deleted_stamp"] {
                transaction.execute(&format!("DELETE FROM {table} WHERE data_file_id = ?1"), values![id])?;
            }
        }
        for (file, stamp) in &deletions.added {
            let columns = super::columns::of(transaction, file.schema)?;
            let time = ducklake::time_column(&columns, &self.time);
            let id = snapshot.add_file(DELETED, &Labels::of(subject), file, time)?;
            added.push((self.folder_of_deleted().join(&file.path), file.bytes));
            let sql = "INSERT INTO savedsearch_deleted (data_file_id, aid, schema, first, last, digest) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let DataFile { schema, times, digest, .. } = file;
            transaction.execute(sql, values![id, subject.aid, schema, times.0, times.1, digest])?;
            checksums::add(transaction, file)?;
            let commit = Stamp { snapshot: snapshot.id(), at: snapshot.at().timestamp_micros() };
            if let Some(Stamp { snapshot, at }) = stamp.map(|stamp| stamp.or(commit)) {
                let sql = "INSERT INTO savedsearch_deleted_stamp (data_file_id, snapshot, at) VALUES (?1, ?2, ?3)";
                transaction.execute(sql, values![id, snapshot, at])?;
            }
        }
        Ok(())
    }

    /// Returns the files with mentions of a saved search that the service no longer has, with their identities, in their
    /// order, and with the commits in which the mentions were deleted.
    pub(crate) fn deleted_files(&self, aid: &str) -> Result<Vec<(i64, DataFile, Option<Stamp>)>> {
        self.read(|connection| deleted(connection, aid))
    }

    /// Returns the saved searches of which deleted mentions are kept.
    pub(crate) fn aids_with_deleted(&self) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT aid FROM savedsearch_deleted ORDER BY aid";
        self.read(|connection| connection.rows(sql, values![], |row| row.get(0)))
    }

    /// Records that the numbers of regions were confirmed at an instant; those in `sealed` after all their days had
    /// settled. Regions that were replaced meanwhile are skipped. What was recorded at a time that has not come yet does not count: a clock
    /// was wrong then.
    pub(crate) fn confirm(&self, at: DateTime<Utc>, confirmed: &[i64], sealed: &[i64]) -> Result<()> {
        let latest = self.latest(at);
        self.write(|transaction| {
            let sql = "UPDATE savedsearch_coverage SET \
                       confirmed = CASE WHEN ?1 > confirmed OR confirmed > ?4 THEN ?1 ELSE confirmed END, \
                       sealed = CASE WHEN ?2 > sealed OR confirmed > ?4 THEN ?2 ELSE sealed END WHERE id = ?3";
            for (ids, seal) in [(confirmed, false), (sealed, true)] {
                for id in ids {
                    transaction.execute(sql, values![at.timestamp_micros(), seal, id, latest])?;
                }
            }
            Ok(())
        })
    }

    /// Records that regions were read again at an instant, with the same mentions. Those that were replaced meanwhile are skipped:
    /// another read of their days is stored.
    pub(crate) fn renew(&self, at: DateTime<Utc>, regions: &[i64]) -> Result<()> {
        let latest = self.latest(at);
        self.write(|transaction| {
            let sql = "UPDATE savedsearch_coverage SET as_of = CASE WHEN ?1 > as_of THEN ?1 ELSE as_of END, \
                       confirmed = CASE WHEN ?1 > confirmed OR confirmed > ?3 THEN ?1 ELSE confirmed END, \
                       sealed = CASE WHEN confirmed > ?3 THEN 0 ELSE sealed END WHERE id = ?2";
            for id in regions {
                transaction.execute(sql, values![at.timestamp_micros(), id, latest])?;
            }
            Ok(())
        })
    }

    /// Latest instant that may be recorded, in microseconds since 1970, if the service's clock shows this one.
    fn latest(&self, at: DateTime<Utc>) -> i64 {
        (at.max(self.clock.now()) + CLOCK_SKEW).timestamp_micros()
    }

    /// Writes current files that name deleted rows again. `paths`: those below [`Catalog::data`].
    pub(crate) fn rewrite_deletes(&self, paths: &[String]) -> Result<()> {
        self.write_settling(|transaction, deletes| {
            let mut snapshot = Snapshot::begin(transaction, self.time_in(transaction)?)?;
            let sql = "SELECT e.data_file_id FROM ducklake_delete_file e \
                       JOIN ducklake_table t ON t.table_id = e.table_id \
                       WHERE t.path || e.path = ?1 AND e.end_snapshot IS NULL";
            for path in paths {
                let file: Option<i64> = transaction.first(sql, values![path], |row| row.get(0))?;
                if let Some(file) = file {
                    snapshot.end_deletes(file)?;
                    self.settle(transaction, &mut snapshot, file, deletes)?;
                }
            }
            snapshot.finish("named deleted rows again")
        })
    }

    /// Returns the identities of regions that are not whole.
    pub(crate) fn broken(&self) -> Result<Vec<i64>> {
        let mut broken = Vec::new();
        for aid in self.aids()? {
            let stored = self.read(|connection| regions(connection, &aid))?;
            broken.extend(stored.iter().filter(|stored| !stored.whole).filter_map(|stored| stored.region.id));
        }
        Ok(broken)
    }

    /// Removes regions.
    pub(crate) fn discard(&self, ids: &[i64]) -> Result<()> {
        self.write_settling(|transaction, deletes| {
            let mut snapshot = Snapshot::begin(transaction, self.time_in(transaction)?)?;
            for file in uncover(transaction, ids.iter().copied())? {
                self.settle(transaction, &mut snapshot, file, deletes)?;
            }
            snapshot.finish("removed regions")
        })
    }

    /// Removes the regions, of all saved searches or of one, that end at or before a day, and the deleted mentions of the
    /// same time. Returns the number of the regions' mentions.
    pub(crate) fn forget(&self, aid: Option<&str>, before: Day) -> Result<u64> {
        self.write_settling(|transaction, deletes| {
            let sql = "SELECT id, counts FROM savedsearch_coverage \
                       WHERE to_day <= ?1 AND (CAST(?2 AS TEXT) IS NULL OR aid = CAST(?2 AS TEXT))";
            let ended = |row: &Row<'_>| Ok((row.get(0)?, counts(row, 1)?));
            let regions: Vec<(i64, Vec<u64>)> = transaction.rows(sql, values![before, aid], ended)?;
            let mut snapshot = Snapshot::begin(transaction, self.time_in(transaction)?)?;
            for file in uncover(transaction, regions.iter().map(|(id, _)| *id))? {
                self.settle(transaction, &mut snapshot, file, deletes)?;
            }
            let sql = "DELETE FROM savedsearch_deleted \
                       WHERE last < ?1 AND (CAST(?2 AS TEXT) IS NULL OR aid = CAST(?2 AS TEXT)) RETURNING data_file_id";
            for id in transaction.rows(sql, values![start_of(before), aid], |row| row.get::<i64>(0))? {
                snapshot.end_file(id)?;
                transaction.execute("DELETE FROM savedsearch_deleted_stamp WHERE data_file_id = ?1", values![id])?;
            }
            let mentions = regions.iter().flat_map(|(_, counts)| counts).sum();
            snapshot.finish(&format!("removed {mentions} mentions from before {}", date_of(before)))?;
            Ok(mentions)
        })
    }
}

/// A region as read.
pub(super) struct Stored {
    pub(super) filters: Filters,
    pub(super) region: Region,
    /// True if its file is as this program wrote it.
    pub(super) whole: bool,
}

/// Reads the regions of a saved search, sorted by their first day.
pub(super) fn regions(connection: &Connection<'_>, aid: &str) -> SqlResult<Vec<Stored>> {
    let mut files: HashMap<i64, Arc<DataFile>> = HashMap::new();
    connection.rows(REGIONS, values![aid], |row| {
        let mut of = region(row, row.get(0)?)?;
        let (named, path): (Option<i64>, Option<String>) = (row.get(8)?, row.get(10)?);
        match (named, path) {
            (None, _) => {}
            (Some(_), None) => of.whole = false,
            (Some(id), Some(path)) => {
                let file = match files.get(&id) {
                    Some(file) => Arc::clone(file),
                    None => Arc::new(data_file(row, 10, path)?),
                };
                files.insert(id, Arc::clone(&file));
                of.region.rows = Some(Rows { file, first: row.get(9)? });
            }
        }
        of.whole = of.whole && agrees(&of.region);
        Ok(of)
    })
}

/// Reads the regions of a subject that share a day with others.
fn overlapping(connection: &Connection<'_>, subject: &Subject, with: &[Region]) -> SqlResult<Vec<Stored>> {
    let stored = regions(connection, &subject.aid)?.into_iter();
    let same = stored.filter(|stored| stored.filters == subject.filters);
    Ok(same.filter(|stored| with.iter().any(|new| overlap(new, &stored.region))).collect())
}

/// Returns the identity of a current file.
fn current_file(connection: &Connection<'_>, table: i64, path: &str) -> SqlResult<Option<i64>> {
    let sql = "SELECT data_file_id FROM ducklake_data_file WHERE table_id = ?1 AND path = ?2 AND end_snapshot IS NULL";
    connection.first(sql, values![table, path], |row| row.get(0))
}

/// Records what DuckLake does not know of a file.
fn name_file(connection: &Connection<'_>, id: i64, file: &DataFile) -> SqlResult<()> {
    let sql = "INSERT INTO savedsearch_file (data_file_id, schema, first, last, digest) VALUES (?1, ?2, ?3, ?4, ?5)";
    let DataFile { schema, times, digest, .. } = file;
    connection.execute(sql, values![id, schema, times.0, times.1, digest])?;
    checksums::add(connection, file)
}

/// Reads the current files of deleted mentions of a saved search.
pub(super) fn deleted(connection: &Connection<'_>, aid: &str) -> SqlResult<Vec<(i64, DataFile, Option<Stamp>)>> {
    let (commit, commits) = match recorded::exists(connection)? {
        true => ("t.snapshot, t.at", "LEFT JOIN savedsearch_deleted_stamp t ON t.data_file_id = s.data_file_id"),
        false => ("NULL, NULL", ""),
    };
    let sql = format!(
        "SELECT s.data_file_id, d.path, d.record_count, d.file_size_bytes, d.footer_size, s.first, s.last, s.schema, \
                s.digest, {commit} \
         FROM savedsearch_deleted s \
         JOIN ducklake_data_file d ON d.data_file_id = s.data_file_id AND d.end_snapshot IS NULL {commits} \
         WHERE s.aid = ?1 ORDER BY s.data_file_id"
    );
    let file = |row: &Row<'_>| {
        let (snapshot, at): (Option<i64>, Option<i64>) = (row.get(9)?, row.get(10)?);
        let stamp = snapshot.zip(at).map(|(snapshot, at)| Stamp { snapshot, at });
        Ok((row.get(0)?, data_file(row, 1, row.get(1)?)?, stamp))
    };
    connection.rows(&sql, values![aid], file)
}

/// Reads a file from the columns of a row that begin with its path: rows, bytes, footer, first and last time, schema, digest.
pub(super) fn data_file(row: &Row<'_>, path_at: usize, path: String) -> SqlResult<DataFile> {
    Ok(DataFile {
        path,
        rows: row.get(path_at + 1)?,
        bytes: row.get(path_at + 2)?,
        footer: row.get(path_at + 3)?,
        times: (row.get(path_at + 4)?, row.get(path_at + 5)?),
        schema: row.get(path_at + 6)?,
        digest: row.get(path_at + 7)?,
        blocks: Vec::new(),
    })
}

/// Reads a region without the place of its mentions.
fn region(row: &Row<'_>, id: i64) -> SqlResult<Stored> {
    let filters: String = row.get(1)?;
    let filters = Filters(serde_json::from_str(&filters).map_err(|error| invalid(1, error))?);
    let region = Region {
        id: Some(id),
        days: row.get(2)?..row.get(3)?,
        counts: counts(row, 4)?,
        as_of: instant(row, 5)?,
        confirmed: instant(row, 6)?,
        sealed: row.get(7)?,
        rows: None,
        stamps: None,
    };
    Ok(Stored { filters, region, whole: true })
}

/// Reads the numbers of days.
pub(super) fn counts(row: &Row<'_>, column: usize) -> SqlResult<Vec<u64>> {
    let text: String = row.get(column)?;
    text.split(',').map(|count| count.parse().map_err(|error| invalid(column, error))).collect()
}

/// Adds a region, with the identity of its file, in a commit.
fn cover(
    connection: &Connection<'_>,
    commit: Stamp,
    subject: &Subject,
    region: &Region,
    file: Option<i64>,
) -> SqlResult<()> {
    let counts: Vec<String> = region.counts.iter().map(u64::to_string).collect();
    let sql = "INSERT INTO savedsearch_coverage (aid, filters, from_day, to_day, counts, as_of, confirmed, sealed, \
               snapshot) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING id";
    let id: i64 = connection.row(
        sql,
        values![
            subject.aid,
            text_of(&subject.filters),
            region.days.start,
            region.days.end,
            counts.join(","),
            region.as_of.timestamp_micros(),
            region.confirmed.timestamp_micros(),
            region.sealed,
            commit.snapshot,
        ],
        |row| row.get(0),
    )?;
    if let (Some(file), Some(rows)) = (file, &region.rows) {
        let sql = "INSERT INTO savedsearch_region_file (region, data_file_id, first_row) VALUES (?1, ?2, ?3)";
        connection.execute(sql, values![id, file, rows.first])?;
        if let Some(stamps) = &region.stamps {
            let sql = "INSERT INTO savedsearch_stamps (region, stamps) VALUES (?1, ?2)";
            connection.execute(sql, values![id, stamps.encode(commit)])?;
        }
    }
    Ok(())
}

/// Removes regions. Returns the identities of their files.
fn uncover(connection: &Connection<'_>, regions: impl Iterator<Item = i64>) -> SqlResult<Vec<i64>> {
    let sql = "DELETE FROM savedsearch_region_file WHERE region = ?1 RETURNING data_file_id";
    let mut files: BTreeSet<i64> = BTreeSet::new();
    for region in regions {
        files.extend(connection.rows(sql, values![region], |row| row.get::<i64>(0))?);
        connection.execute("DELETE FROM savedsearch_coverage WHERE id = ?1", values![region])?;
        connection.execute("DELETE FROM savedsearch_stamps WHERE region = ?1", values![region])?;
    }
    Ok(files.into_iter().collect())
}

/// Rejects regions that contradict their files or each other.
fn validate(regions: &[Region]) -> Result<()> {
    let wrong =
        |what: &str| Err(Error::new(ErrorKind::Store, format!("internal error: {what}")).advice(files::unreadable()));
    if let Some(region) = regions.iter().find(|region| !agrees(region)) {
        let path = region.file().map_or("none", |file| file.path.as_str());
        return wrong(&format!("a region from {} contradicts its file, {path}", date_of(region.days.start)));
    }
    let mut days: Vec<_> = regions.iter().map(|region| region.days.clone()).collect();
    days.sort_unstable_by_key(|days| days.start);
    match days.windows(2).all(|pair| pair[0].end <= pair[1].start) {
        true => Ok(()),
        false => wrong("regions overlap"),
    }
}

/// True if a region has a number for each of its days, and as many rows in a file.
fn agrees(region: &Region) -> bool {
    let days = i64::from(region.days.end) - i64::from(region.days.start);
    let mentions = region.mentions();
    days > 0
        && usize::try_from(days) == Ok(region.counts.len())
        && match &region.rows {
            None => mentions == 0,
            Some(Rows { file, first }) => mentions > 0 && first + mentions <= file.rows,
        }
        && region.stamps.as_ref().is_none_or(|stamps| stamps.rows() == mentions)
}

fn overlap(one: &Region, other: &Region) -> bool {
    one.days.start < other.days.end && other.days.start < one.days.end
}

/// Describes a replacement for users who list the snapshots.
fn message(changes: &[Change<'_>], made: &[bool]) -> String {
    let made = || changes.iter().zip(made).filter(|(_, made)| **made).map(|(change, _)| change);
    let regions = || made().flat_map(|change| change.with);
    let mentions: u64 = regions().map(Region::mentions).sum();
    let days = || regions().map(|region| &region.days);
    let (Some(first), Some(end)) = (days().map(|days| days.start).min(), days().map(|days| days.end).max()) else {
        return String::new();
    };
    let aids: BTreeSet<&str> = made().map(|change| change.subject.aid.as_str()).collect();
    let of = match (aids.len(), aids.first()) {
        (1, Some(aid)) => (*aid).to_owned(),
        (several, _) => format!("{several} saved searches"),
    };
    let filtered = if made().all(|change| change.subject.filters.is_empty()) { "" } else { ", filtered" };
    format!("{mentions} mentions of {of}, {} to {}{filtered}", date_of(first), date_of(end - 1))
}
