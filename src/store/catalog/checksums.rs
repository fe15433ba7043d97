//! The checksums of files in the catalog, in a table that older versions of this program do not know.

use std::sync::{Arc, PoisonError};

use super::Catalog;
use super::sql::{Connection, SqlResult, values};
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

fn find(connection: &Connection<'_>, name: &str) -> SqlResult<Option<Sums>> {
    if !exists(connection)? {
        return Ok(None);
    }
    let sql = "SELECT length, blocks FROM savedsearch_checksum WHERE file = ?1";
    connection.first(sql, values![name], |row| Ok(Sums { length: row.get(0)?, blocks: row.get(1)? }))
}

/// True if the catalog has checksums.
pub(super) fn exists(connection: &Connection<'_>) -> SqlResult<bool> {
    connection.has_table("savedsearch_checksum")
}

/// Creates the table, if there is none.
pub(super) fn create(connection: &Connection<'_>) -> SqlResult<()> {
    connection.define(
        "CREATE TABLE IF NOT EXISTS savedsearch_checksum (file TEXT PRIMARY KEY, length INTEGER NOT NULL, blocks BLOB NOT NULL)",
    )
}

/// Records the checksums of a new file.
pub(super) fn add(connection: &Connection<'_>, file: &DataFile) -> SqlResult<()> {
    if file.blocks.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO savedsearch_checksum (file, length, blocks) VALUES (?1, ?2, ?3) \
               ON CONFLICT (file) DO UPDATE SET length = excluded.length, blocks = excluded.blocks";
    connection.execute(sql, values![file.path, file.bytes, file.blocks]).map(drop)
}

/// Removes the checksums of files that the catalog no longer has.
pub(super) fn remove_unused(connection: &Connection<'_>) -> SqlResult<()> {
    let sql = "DELETE FROM savedsearch_checksum WHERE file NOT IN (SELECT path FROM ducklake_data_file)";
    connection.execute(sql, values![]).map(drop)
}
