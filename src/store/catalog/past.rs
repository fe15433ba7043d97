//! Files that were current at an earlier commit.

use super::Catalog;
use super::coverage::data_file;
use super::ducklake::{MENTIONS, timestamp};
use super::recorded::time_of;
use super::sql::{Connection, SqlResult, values};
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::store::changes::Since;
use crate::store::region::DataFile;

/// A file, and the path below [`Catalog::data`] of the file that named its deleted rows then.
pub(crate) type PastFile = (DataFile, Option<String>);

impl Catalog {
    /// Returns the files of unfiltered mentions that were current at a commit, in the order in which they were added.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the files of that commit are no longer kept, or if there is no such commit yet.
    pub(crate) fn files_at(&self, at: Since) -> Result<Vec<PastFile>> {
        let (found, earliest, latest) = self.read(|connection| {
            let sql = "SELECT min(snapshot_id), max(snapshot_id) FROM ducklake_snapshot";
            let (first, latest): (i64, i64) = connection.row(sql, values![], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let earliest = (first, time_of(connection, first)?);
            let snapshot = match at {
                Since::Snapshot(snapshot) => Some(snapshot).filter(|snapshot| (first..=latest).contains(snapshot)),
                Since::Instant(at) => {
                    let sql = "SELECT max(snapshot_id) FROM ducklake_snapshot WHERE snapshot_time <= ?1";
                    connection.row(sql, values![timestamp(at)], |row| row.get(0))?
                }
            };
            Ok((snapshot.map(|snapshot| files(connection, snapshot)).transpose()?, earliest, latest))
        })?;
        let Some(files) = found else {
            let (first, time) = earliest;
            let what = match at {
                Since::Snapshot(snapshot) if snapshot > latest => {
                    format!("the store has no such snapshot; the latest is {latest}")
                }
                _ => {
                    let time = chrono::DateTime::from_timestamp_micros(time).unwrap_or_default();
                    let time = time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
                    format!("the store has no version that old; the earliest is of {time} (snapshot {first})")
                }
            };
            return Err(Error::new(ErrorKind::Store, what)
                .advice(Phrase::from("name another one; ") + Tool::KeepVersions + " sets how long versions are kept"));
        };
        Ok(files)
    }
}

fn files(connection: &Connection<'_>, snapshot: i64) -> SqlResult<Vec<PastFile>> {
    let sql = "SELECT t.path || e.path, d.path, d.record_count, d.file_size_bytes, d.footer_size, f.first, f.last, f.schema, \
               f.digest FROM ducklake_data_file d JOIN savedsearch_file f ON f.data_file_id = d.data_file_id \
               JOIN ducklake_table t ON t.table_id = d.table_id \
               LEFT JOIN ducklake_delete_file e ON e.data_file_id = d.data_file_id AND e.begin_snapshot <= ?2 \
                    AND (e.end_snapshot IS NULL OR e.end_snapshot > ?2) \
               WHERE d.table_id = ?1 AND d.begin_snapshot <= ?2 AND (d.end_snapshot IS NULL OR d.end_snapshot > ?2) \
               ORDER BY d.data_file_id";
    connection.rows(sql, values![MENTIONS.id, snapshot], |row| {
        let path = row.get(1)?;
        Ok((data_file(row, 1, path)?, row.get(0)?))
    })
}
