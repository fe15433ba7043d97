//! Rows of a file that no region has: a delete file names them. A file of which no region has a row ends.
//!
//! ```text
//! transaction ─ needs delete files ─▶ rolled back ─▶ they are written ─▶ transaction, which names them
//! ```
//!
//! While a transaction writes, all other writers wait, and an object of a bucket may take long to write. So the transaction finds out
//! which delete files it needs, and is repeated once they are written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use super::Catalog;
use super::coverage::counts;
use super::ducklake::{self, Snapshot};
use super::sql::{Connection, Row, SqlError, SqlResult, values};
use crate::error::{Error, ErrorKind, Result};
use crate::store::past::without;
use crate::store::region::DataFile;
use crate::store::{ATTEMPTS, files};

/// Table, path, rows and deleted rows of a current file, and true if another program may have deleted them.
type CurrentFile = (i64, String, u64, Option<u64>, bool);

/// Delete files that a transaction may name.
#[derive(Debug, Default)]
pub(super) struct Deletes {
    written: HashMap<Unnamed, DataFile>,
    /// Those of them that the transaction names, with their lengths.
    named: RefCell<Vec<(PathBuf, u64)>>,
    /// Those that the transaction needs beside them.
    lacking: RefCell<Vec<Unnamed>>,
    /// Set if the transaction writes what it needs, because other writers have changed it again and again.
    at_once: bool,
}

/// Rows of a file that no region has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Unnamed {
    table: i64,
    /// Path of the file below the folder of the table.
    file: String,
    rows: Vec<Range<u64>>,
}

impl Unnamed {
    /// Folder of the file and of its delete file.
    fn folder(&self, catalog: &Catalog) -> PathBuf {
        let table = ducklake::TABLES.into_iter().find(|table| table.id == self.table);
        catalog.data().join(table.map_or("", |table| table.name))
    }

    fn write(&self, catalog: &Catalog) -> Result<DataFile> {
        files::write_deletes(catalog.storage(), &self.folder(catalog), &self.file, &self.rows)
    }
}

impl Deletes {
    /// Returns the delete file of some rows; `None` if the transaction will be repeated with it.
    fn of(&self, catalog: &Catalog, unnamed: Unnamed) -> SqlResult<Option<DataFile>> {
        if let Some(file) = self.written.get(&unnamed) {
            self.named.borrow_mut().push((unnamed.folder(catalog).join(&file.path), file.bytes));
            return Ok(Some(file.clone()));
        }
        if self.at_once {
            return unnamed.write(catalog).map(Some).map_err(SqlError::Own);
        }
        self.lacking.borrow_mut().push(unnamed);
        Ok(None)
    }
}

impl Catalog {
    /// Writes in one transaction, as [`write`](Self::write) does, that [settles](Self::settle) files.
    pub(super) fn write_settling<T>(&self, change: impl Fn(&Connection<'_>, &Deletes) -> SqlResult<T>) -> Result<T> {
        let mut deletes = Deletes::default();
        for _ in 1..ATTEMPTS {
            let lacking: RefCell<Vec<Unnamed>> = RefCell::default();
            let done = self.write(|transaction| {
                lacking.borrow_mut().clear();
                let value = self.changed(transaction, &deletes, &change)?;
                match deletes.lacking.take() {
                    none if none.is_empty() => Ok(value),
                    some => {
                        *lacking.borrow_mut() = some;
                        // It rolls the transaction back, and is not returned.
                        Err(SqlError::Own(Error::new(ErrorKind::Store, "internal error: delete files are missing")))
                    }
                }
            });
            let lacking = lacking.into_inner();
            if lacking.is_empty() {
                return done;
            }
            for unnamed in lacking {
                let file = unnamed.write(self)?;
                deletes.written.insert(unnamed, file);
            }
        }
        // Delete files that are not named are removed with other unknown files.
        deletes.at_once = true;
        self.write(|transaction| self.changed(transaction, &deletes, &change))
    }

    /// Runs a change, and verifies that the delete files are there which it names.
    fn changed<T>(
        &self,
        transaction: &Connection<'_>,
        deletes: &Deletes,
        change: &impl Fn(&Connection<'_>, &Deletes) -> SqlResult<T>,
    ) -> SqlResult<T> {
        // The server may have interrupted it before.
        deletes.named.borrow_mut().clear();
        deletes.lacking.borrow_mut().clear();
        let value = change(transaction, deletes)?;
        self.verify_added(transaction, &deletes.named.take())?;
        Ok(value)
    }

    /// Names the rows of a file that no region has in a delete file, and ends a file of which no region has a row.
    pub(super) fn settle(
        &self,
        transaction: &Connection<'_>,
        snapshot: &mut Snapshot<'_>,
        file: i64,
        deletes: &Deletes,
    ) -> SqlResult<()> {
        let sql = "SELECT d.table_id, d.path, d.record_count, e.delete_count, s.delete_file_id IS NULL \
                   FROM ducklake_data_file d \
                   LEFT JOIN ducklake_delete_file e ON e.data_file_id = d.data_file_id AND e.end_snapshot IS NULL \
                   LEFT JOIN savedsearch_delete_file s ON s.delete_file_id = e.delete_file_id \
                   WHERE d.data_file_id = ?1 AND d.end_snapshot IS NULL";
        let current = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
        let current: Option<CurrentFile> = transaction.first(sql, values![file], current)?;
        // Another program may have ended it.
        let Some((table, path, rows, deleted, foreign)) = current else { return Ok(()) };
        let sql = "SELECT r.first_row, c.counts FROM savedsearch_region_file r JOIN savedsearch_coverage c ON c.id = r.region \
                   WHERE r.data_file_id = ?1 ORDER BY r.first_row";
        let named = |row: &Row<'_>| {
            let first: u64 = row.get(0)?;
            Ok(first..first + counts(row, 1)?.iter().sum::<u64>())
        };
        let named: Vec<Range<u64>> = transaction.rows(sql, values![file], named)?;
        if named.is_empty() {
            return snapshot.end_file(file);
        }
        let unnamed = Unnamed { table, file: path, rows: without(&named, rows) };
        let count: u64 = unnamed.rows.iter().map(|rows| rows.end - rows.start).sum();
        if count == deleted.unwrap_or_default() || (deleted.is_some() && foreign) {
            return Ok(());
        }
        let Some(deletes) = deletes.of(self, unnamed)? else { return Ok(()) };
        let id = snapshot.delete_rows(table, file, &deletes)?;
        let sql = "INSERT INTO savedsearch_delete_file (delete_file_id, digest) VALUES (?1, ?2)";
        transaction.execute(sql, values![id, deletes.digest]).map(drop)
    }
}
