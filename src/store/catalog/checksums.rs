//! The checksums of files in the catalog, in a table that older versions of this program do not know.

use std::sync::{Arc, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use super::Catalog;
use crate::error::Result;
use crate::store::checksums::Sums;
use crate::store::region::DataFile;

/// Files whose checksums are in memory at most. Those of a file of 48 MB are 12 kB.
const KNOWN: usize = 1_024;

impl Catalog {
    /// Returns the checksums of the file with a name, which is never given twice; `None` if the catalog has none.
    pub(crate) fn sums(&self, name: &str) -> Result<Option<Arc<Sums>>> {
        let known = || self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sums) = known().get(name) {
            return Ok(Some(Arc::clone(sums)));
        }
        let Some(sums) = self.read(|connection| find(connection, name))?.map(Arc::new) else { return Ok(None) };
        let mut known = known();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(name.to_owned(), Arc::clone(&sums));
        Ok(Some(sums))
    }
}

fn find(connection: &Connection, name: &str) -> rusqlite::Result<Option<Sums>> {
    if !exists(connection)? {
        return Ok(None);
    }
    let sql = "SELECT length, blocks FROM savedsearch_checksum WHERE file = ?1";
    connection.query_row(sql, [name], |row| Ok(Sums { length: row.get(0)?, blocks: row.get(1)? })).optional()
}

fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'savedsearch_checksum'";
    connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)? == 1))
}

/// Creates the table, if there is none.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    if super::version_of(connection)? != Some(super::VERSION) || exists(connection)? {
        return Ok(());
    }
    // Another process may create it at the same time.
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS savedsearch_checksum (file TEXT PRIMARY KEY, length INTEGER NOT NULL, blocks BLOB NOT NULL)",
    )
}

/// Records the checksums of a new file.
pub(super) fn add(connection: &Connection, file: &DataFile) -> rusqlite::Result<()> {
    if file.blocks.is_empty() {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO savedsearch_checksum (file, length, blocks) VALUES (?1, ?2, ?3)";
    connection.execute(sql, params![file.path, file.bytes, file.blocks]).map(drop)
}

/// Removes the checksums of files that the catalog no longer has.
pub(super) fn remove_unused(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM savedsearch_checksum WHERE file NOT IN (SELECT path FROM ducklake_data_file)";
    connection.execute(sql, []).map(drop)
}
