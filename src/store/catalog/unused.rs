//! Files that no region names: those that were replaced, which queries that began before may still read, and those that the catalog does
//! not know, because a process has left them behind or has not committed them yet.
//!
//! Invariant: a commit does not name a file that was removed as unknown. Removals are between commits, and those that follow verify that
//! their new files are there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::cursors::{cursor, set_cursor};
use super::ducklake::{FILTERED, FILTERS_ID, table_ids, timestamp};
use super::sql::{Connection, Row, SqlError, SqlResult, values};
use super::{Catalog, Database};
use crate::error::{Error, ErrorKind, Result};
use crate::store::files;

/// Name of the cursor with the time at which files were last removed that the catalog did not know, in seconds since 1970.
const REMOVED: &str = "unknown files removed";
/// Time in seconds after such a removal for which commits verify their files. A read that takes longer is not expected.
const VERIFIED: i64 = 2 * 86_400;

/// Time for which a transaction that writes may use files: other writers wait, and a server ends one without statements after 60 s.
pub(crate) const BRIEFLY: Duration = Duration::from_secs(30);

/// Files that no region names, or whose deleted rows another file names by now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unused {
    /// Files of mentions: ids, and paths below [`Catalog::data`].
    pub(crate) files: Vec<(i64, String)>,
    /// Files that name deleted rows.
    pub(crate) deletes: Vec<(i64, String)>,
}

impl Catalog {
    /// Returns the files that were replaced or forgotten, before an instant if one is given.
    pub(crate) fn unused_files(&self, before: Option<DateTime<Utc>>) -> Result<Unused> {
        let before = before.map(timestamp);
        let age = if before.is_some() { "s.snapshot_time < ?1" } else { "true" };
        // A removed snapshot was older than those that remain.
        let sql = |table: &str, id: &str, rest: &str| {
            format!(
                "SELECT d.{id}, t.path || d.path FROM {table} d JOIN ducklake_table t ON t.table_id = d.table_id \
                 LEFT JOIN ducklake_snapshot s ON s.snapshot_id = d.end_snapshot \
                 WHERE d.table_id IN ({}) AND d.end_snapshot IS NOT NULL AND d.path_is_relative \
                   AND (s.snapshot_id IS NULL OR {age}) {rest} ORDER BY d.{id}",
                table_ids()
            )
        };
        let named = "AND NOT EXISTS (SELECT 1 FROM savedsearch_region_file r WHERE r.data_file_id = d.data_file_id)";
        self.read(|connection| {
            let found = |sql: String| -> SqlResult<Vec<(i64, String)>> {
                let file = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
                match &before {
                    Some(before) => connection.rows(&sql, values![before], file),
                    None => connection.rows(&sql, values![], file),
                }
            };
            Ok(Unused {
                files: found(sql("ducklake_data_file", "data_file_id", named))?,
                deletes: found(sql("ducklake_delete_file", "delete_file_id", ""))?,
            })
        })
    }

    /// Removes files from the catalog that the caller has deleted, and with them the snapshots that had them: no reader
    /// can select a version with missing mentions.
    pub(crate) fn removed_files(&self, unused: &Unused) -> Result<()> {
        self.write(|transaction| {
            let mut oldest: Option<i64> = None;
            for (ids, table, id, others) in [
                (
                    &unused.files,
                    "ducklake_data_file",
                    "data_file_id",
                    &["ducklake_file_column_stats", "ducklake_file_partition_value", "savedsearch_file"][..],
                ),
                (&unused.deletes, "ducklake_delete_file", "delete_file_id", &["savedsearch_delete_file"][..]),
            ] {
                let sql =
                    format!("DELETE FROM {table} WHERE {id} = ?1 AND end_snapshot IS NOT NULL RETURNING end_snapshot");
                for (file, _) in ids {
                    for end in transaction.rows(&sql, values![file], |row| row.get::<i64>(0))? {
                        oldest = oldest.max(Some(end));
                        for table in others {
                            transaction.execute(&format!("DELETE FROM {table} WHERE {id} = ?1"), values![file])?;
                        }
                    }
                }
            }
            super::checksums::remove_unused(transaction)?;
            for table in ["ducklake_snapshot", "ducklake_snapshot_changes"] {
                transaction.execute(&format!("DELETE FROM {table} WHERE snapshot_id < ?1"), values![oldest])?;
            }
            Ok(())
        })
    }

    /// Removes all responses that are kept, and what the service was last seen to have of filtered mentions; then overwrites
    /// what the file of the catalog no longer has.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if another process is using the catalog, so that its journal has to stay.
    pub(crate) fn purge(&self) -> Result<()> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM savedsearch_answer", values![])?;
            // The bounds of a table never narrow, and may have the values of removed conditions.
            let sql = "DELETE FROM ducklake_table_column_stats WHERE table_id = ?1 AND column_id = ?2";
            transaction.execute(sql, values![FILTERED.id, FILTERS_ID])?;
            let sql = "DELETE FROM savedsearch_cursor WHERE name LIKE 'timeline of %' AND name NOT LIKE '%{}'";
            transaction.execute(sql, values![]).map(drop)
        })?;
        match &self.database {
            Database::Sqlite(sqlite) => sqlite.purge(),
            #[cfg(feature = "shared")]
            Database::Postgres(postgres) => postgres.purge(),
        }
    }

    /// Returns the paths of all files that the catalog knows, below [`Catalog::data`].
    pub(crate) fn known_files(&self) -> Result<HashSet<String>> {
        self.read(known)
    }

    /// Announces that files will be removed which the catalog does not know: a process may be about to commit one of them.
    pub(crate) fn announce_removal(&self) -> Result<()> {
        self.write(|transaction| set_cursor(transaction, REMOVED, &transaction.seconds()?.to_string()))
    }

    /// Removes files while no process commits. `remove` gets the paths of all files that the catalog knows, below [`Catalog::data`].
    /// Returns what it returns. It is called again if the server has interrupted the transaction, and takes [`BRIEFLY`] at most.
    pub(crate) fn remove_between_commits<T>(&self, remove: impl Fn(&HashSet<String>) -> T) -> Result<T> {
        self.write(|transaction| Ok(remove(&known(transaction)?)))
    }

    /// Verifies within a commit that new files, each with its length in bytes, are there, if some were removed lately that the catalog
    /// did not know.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if one is missing.
    pub(super) fn verify_added(&self, connection: &Connection<'_>, added: &[(PathBuf, u64)]) -> SqlResult<()> {
        if added.is_empty() {
            return Ok(());
        }
        // A value that this program cannot have written is no reason to trust.
        let removed = cursor(connection, REMOVED)?.map(|at| at.parse::<i64>().unwrap_or(i64::MAX));
        let Some(at) = removed else { return Ok(()) };
        if connection.seconds()?.saturating_sub(at) > VERIFIED {
            return Ok(());
        }
        let paths: Vec<&Path> = added.iter().map(|(path, _)| path.as_path()).collect();
        let lengths = self.storage().lengths_of(&paths, Some(BRIEFLY));
        let lengths = lengths.map_err(|error| SqlError::Own(files::failed("read", self.storage().data(), &error)))?;
        match added.iter().zip(lengths).find(|((_, bytes), length)| *length != Some(*bytes)) {
            None => Ok(()),
            Some(((path, _), _)) => {
                let what = format!("{}: removed by another process before it was stored", path.display());
                Err(SqlError::Own(Error::new(ErrorKind::Store, what).advice("run the query again").passing()))
            }
        }
    }

    /// Returns the current files that name deleted rows: paths below [`Catalog::data`], lengths and digests.
    pub(crate) fn delete_files(&self) -> Result<Vec<(String, u64, String)>> {
        let sql = "SELECT t.path || d.path, d.file_size_bytes, s.digest FROM savedsearch_delete_file s \
                   JOIN ducklake_delete_file d ON d.delete_file_id = s.delete_file_id AND d.end_snapshot IS NULL \
                   JOIN ducklake_table t ON t.table_id = d.table_id ORDER BY 1";
        let file = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        self.read(|connection| connection.rows(sql, values![], file))
    }
}

fn known(connection: &Connection<'_>) -> SqlResult<HashSet<String>> {
    let sql = "SELECT t.path || d.path FROM ducklake_data_file d JOIN ducklake_table t ON t.table_id = d.table_id \
               UNION ALL \
               SELECT t.path || d.path FROM ducklake_delete_file d JOIN ducklake_table t ON t.table_id = d.table_id";
    Ok(connection.rows(sql, values![], |row| row.get(0))?.into_iter().collect())
}
