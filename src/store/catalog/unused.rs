//! Files that no region names any more. Queries that began before may still read them.

use chrono::{DateTime, Utc};
use rusqlite::params;

use super::Catalog;
use super::ducklake::{table_ids, timestamp};
use crate::error::Result;

impl Catalog {
    /// Returns the files that were replaced or forgotten, before an instant if one is given: ids, and paths below
    /// [`Catalog::data`].
    pub(crate) fn unused_files(&self, before: Option<DateTime<Utc>>) -> Result<Vec<(i64, String)>> {
        // A removed snapshot was older than those that remain.
        let sql = format!(
            "SELECT d.data_file_id, t.path || d.path \
             FROM ducklake_data_file d JOIN ducklake_table t ON t.table_id = d.table_id \
             LEFT JOIN ducklake_snapshot s ON s.snapshot_id = d.end_snapshot \
             WHERE d.table_id IN ({}) AND d.end_snapshot IS NOT NULL AND d.path_is_relative \
               AND (s.snapshot_id IS NULL OR ?1 IS NULL OR s.snapshot_time < ?1) \
               AND NOT EXISTS (SELECT 1 FROM savedsearch_region_file r WHERE r.data_file_id = d.data_file_id) \
             ORDER BY d.data_file_id",
            table_ids()
        );
        self.read(|connection| {
            let row = params![before.map(timestamp)];
            connection.prepare(&sql)?.query_map(row, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// Removes files from the catalog that the caller has deleted, and with them the snapshots that had them: no reader
    /// can select a version with missing mentions.
    pub(crate) fn removed_files(&self, ids: &[i64]) -> Result<()> {
        self.write(|transaction| {
            let mut oldest: Option<i64> = None;
            let sql = "DELETE FROM ducklake_data_file WHERE data_file_id = ?1 AND end_snapshot IS NOT NULL \
                       RETURNING end_snapshot";
            let mut remove = transaction.prepare(sql)?;
            for id in ids {
                for end in remove.query_map([id], |row| row.get(0))? {
                    oldest = oldest.max(Some(end?));
                    for table in ["ducklake_file_column_stats", "ducklake_file_partition_value"] {
                        transaction.execute(&format!("DELETE FROM {table} WHERE data_file_id = ?1"), [id])?;
                    }
                }
            }
            for table in ["ducklake_snapshot", "ducklake_snapshot_changes"] {
                transaction.execute(&format!("DELETE FROM {table} WHERE snapshot_id < ?1"), [oldest])?;
            }
            Ok(())
        })
    }
}
