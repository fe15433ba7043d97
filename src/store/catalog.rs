//! Catalog of a store: its regions, their files, and what synchronization remembers, in one SQLite file.
//!
//! ```text
//! replace ──▶ one transaction ──▶ savedsearch_*   coverage: days, counts, instants   ──▶ regions
//!                             └─▶ ducklake_*      snapshots, columns, files, bounds  ──▶ DuckDB and other readers
//! ```
//!
//! The `ducklake_*` tables are a DuckLake 1.0 catalog. Unfiltered regions are its table `mentions`. Regions of filtered
//! reads are `mentions_filtered`, so that no reader of `mentions` sees a mention twice. What the service has deleted is
//! in `mentions_deleted`, if it is kept. Other programs are expected to read only: a region is ignored once another
//! program has ended or changed one of its files.
//!
//! A file is part of the catalog only after the transaction that records it. It is written and synced before that
//! transaction. After the transaction that replaces it, it is kept for a grace period, because queries may still read it.
//!
//! Invariant: regions of a subject never overlap, and each row of a current file that this program wrote belongs to one
//! region or is named by a delete file.

mod check;
mod checksums;
mod columns;
mod coverage;
mod create;
mod ducklake;
mod failure;
mod recorded;
#[cfg(test)]
mod tests;
mod unused;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

pub(crate) use self::columns::{FileColumn, StoredColumn};
pub(crate) use self::coverage::Change;
use self::failure::{failure, instant};
pub(crate) use self::recorded::Recorded;
use super::access::{has_catalog, inaccessible};
use super::checksums::Sums;
use super::region::Filters;
use super::storage::Storage;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Phrase, Result, Term};
use crate::files;

/// Name of the file below the store's folder.
pub(super) const FILE: &str = "catalog.sqlite";
/// Version of our own tables. All others are refused.
const VERSION: i64 = 3;
/// Earlier version of our own tables, which is migrated.
const MIGRATED: i64 = 2;
/// Version of DuckLake's tables. All others are refused.
const DUCKLAKE_VERSION: &str = "1.0";
/// Responses that are kept.
const RESPONSES: i64 = 10_000;
/// Longest wait for a transaction of another process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Open catalog of a store.
#[derive(Debug)]
pub(crate) struct Catalog {
    path: PathBuf,
    storage: Storage,
    /// Reads never wait for a transaction that writes.
    reader: Mutex<Connection>,
    /// `None` if it is open for reading.
    writer: Option<Mutex<Connection>>,
    owner: Owner,
    /// Version of the columns for new files.
    schema: i64,
    /// Name of the column that mentions are ordered by.
    time: String,
    clock: Clock,
    /// Checksums that were needed, by the names of files.
    sums: Mutex<HashMap<String, Arc<Sums>>>,
}

/// The service and the key whose mentions a store holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Digest of base URL and key, in hexadecimal digits.
    pub(crate) digest: String,
}

impl Owner {
    fn holds(&self, connection: &Connection) -> rusqlite::Result<bool> {
        connection.query_row("SELECT owner = ?1 FROM savedsearch_store", [&self.digest], |row| row.get(0))
    }
}

/// Use of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing is written, and a missing store is an error.
    Read,
    /// A missing store is created.
    ReadWrite,
}

impl Catalog {
    /// Opens the catalog in a folder. `columns` begin with `aid`; `time` is the name of the timestamp that mentions are
    /// ordered by. For reading, the stored columns apply, whatever `columns` are.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it is of another owner; [`ErrorKind::Store`] if the file is damaged, of another program or later
    /// version, or not accessible.
    pub(crate) fn open(
        dir: &Path,
        owner: &Owner,
        columns: &[StoredColumn],
        time: &str,
        clock: Clock,
        access: Access,
    ) -> Result<Self> {
        let path = dir.join(FILE);
        let data = data_path(dir)?;
        match access {
            Access::ReadWrite => {
                columns::validate(columns)?;
                files::private_folder(dir).map_err(|error| inaccessible(dir, &error))?;
                if !has_catalog(dir)? {
                    create::create(&path, &data, owner, columns, clock.now())?;
                }
            }
            Access::Read if !has_catalog(dir)? => {
                return Err(Error::new(ErrorKind::Store, format!("{}: no store in this folder", dir.display()))
                    .advice("fill one with savedsearch sync, or correct the path"));
            }
            Access::Read => {}
        }
        let connect = |access| connect(&path, access).map_err(|error| failure(&path, &error));
        let mut writer = (access == Access::ReadWrite).then(|| connect(access)).transpose()?;
        let reader = connect(Access::Read)?;
        if let Some(writer) = &mut writer {
            let ready = migrate(writer).and_then(|()| recorded::begin(writer)).and_then(|()| checksums::create(writer));
            ready.map_err(|error| failure(&path, &error))?;
        }
        verify(&path, &reader, access)?;
        let mut catalog = Self {
            storage: Storage::of_folder(dir.join("data")),
            path,
            reader: Mutex::new(reader),
            writer: writer.map(Mutex::new),
            owner: owner.clone(),
            schema: 0,
            time: time.to_owned(),
            clock,
            sums: Mutex::default(),
        };
        catalog.schema = match access {
            Access::Read => catalog.read(columns::current)?,
            Access::ReadWrite => {
                files::private_folder(&catalog.data()).map_err(|error| inaccessible(&catalog.data(), &error))?;
                catalog.adopt(&data, columns)?
            }
        };
        Ok(catalog)
    }

    /// Returns a number that changes whenever any process has committed.
    pub(crate) fn version(&self) -> Result<u32> {
        // SQLite counts commits of other connections; this one only reads.
        self.read(|connection| connection.query_row("PRAGMA data_version", [], |row| row.get(0)))
    }

    /// Version of the columns for new files.
    pub(crate) fn schema(&self) -> i64 {
        self.schema
    }

    /// Returns the columns of a version.
    pub(crate) fn columns_of(&self, schema: i64) -> Result<Vec<FileColumn>> {
        self.read(|connection| columns::of(connection, schema))
    }

    /// Folder of the files of regions with these filters, which their paths are relative to.
    pub(crate) fn folder(&self, filters: &Filters) -> PathBuf {
        self.data().join(Self::table(filters))
    }

    /// Name of the folder of these files, in the folder of all files.
    pub(crate) fn table(filters: &Filters) -> &'static str {
        ducklake::table_of(filters).name
    }

    /// Folder of the files of deleted mentions, which their paths are relative to.
    pub(crate) fn folder_of_deleted(&self) -> PathBuf {
        self.data().join(ducklake::DELETED.name)
    }

    /// Names of the folders of all tables, in the folder of all files.
    pub(crate) fn folders() -> impl Iterator<Item = &'static str> {
        ducklake::TABLES.into_iter().map(|table| table.name)
    }

    /// Folder of all files.
    pub(crate) fn data(&self) -> PathBuf {
        self.storage.data().to_path_buf()
    }

    /// Storage of all files.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the kept response to a request, with the instant at which it was requested.
    pub(crate) fn answer(&self, key: &str) -> Result<Option<(Bytes, DateTime<Utc>)>> {
        self.read(|connection| {
            let sql = "SELECT body, as_of FROM savedsearch_answer WHERE key = ?1";
            connection
                .query_row(sql, [key], |row| Ok((Bytes::from(row.get::<_, Vec<u8>>(0)?), instant(row, 1)?)))
                .optional()
        })
    }

    /// Returns the instant at which the kept response to a request was requested.
    pub(crate) fn answered_at(&self, key: &str) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT as_of FROM savedsearch_answer WHERE key = ?1";
        self.read(|connection| connection.query_row(sql, [key], |row| instant(row, 0)).optional())
    }

    /// Keeps a response, unless a later one is kept. If there are very many, the oldest are removed.
    pub(crate) fn keep_answer(&self, key: &str, body: &[u8], as_of: DateTime<Utc>) -> Result<()> {
        self.write(|transaction| {
            let sql = "INSERT INTO savedsearch_answer (key, body, as_of) VALUES (?1, ?2, ?3) ON CONFLICT (key) DO \
                       UPDATE SET body = excluded.body, as_of = excluded.as_of WHERE excluded.as_of >= as_of";
            transaction.execute(sql, params![key, body, as_of.timestamp_micros()])?;
            let sql = "DELETE FROM savedsearch_answer WHERE as_of < (SELECT as_of FROM savedsearch_answer ORDER BY as_of \
                       DESC LIMIT 1 OFFSET ?1)";
            transaction.execute(sql, [RESPONSES]).map(drop)
        })
    }

    /// Current time of this machine.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Removes responses that were requested before an instant, and returns their number.
    pub(crate) fn forget_answers_before(&self, at: DateTime<Utc>) -> Result<u64> {
        let sql = "DELETE FROM savedsearch_answer WHERE as_of < ?1";
        let removed = self.write(|transaction| transaction.execute(sql, [at.timestamp_micros()]))?;
        Ok(removed as u64)
    }

    /// Returns the value of a cursor.
    pub(crate) fn cursor(&self, name: &str) -> Result<Option<String>> {
        let sql = "SELECT value FROM savedsearch_cursor WHERE name = ?1";
        self.read(|connection| connection.query_row(sql, [name], |row| row.get(0)).optional())
    }

    /// Sets the value of a cursor.
    pub(crate) fn set_cursor(&self, name: &str, value: &str) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO savedsearch_cursor (name, value) VALUES (?1, ?2)";
        self.write(|transaction| transaction.execute(sql, [name, value]).map(drop))
    }

    /// Makes the columns and the place of the files those of this process. Returns the version of the columns.
    fn adopt(&self, data: &str, columns: &[StoredColumn]) -> Result<i64> {
        let (stored, place) = self.read(|connection| {
            let current = columns::current(connection)?;
            let unchanged = columns::equal(&columns::of(connection, current)?, columns);
            let sql = "SELECT value FROM ducklake_metadata WHERE key = 'data_path' AND scope IS NULL";
            Ok((unchanged.then_some(current), connection.query_row(sql, [], |row| row.get::<_, String>(0))?))
        })?;
        match stored {
            Some(current) if place == data => Ok(current),
            _ => self.write(|transaction| {
                let sql = "UPDATE ducklake_metadata SET value = ?1 WHERE key = 'data_path' AND scope IS NULL";
                transaction.execute(sql, [data])?;
                columns::adopt(transaction, columns, self.clock.now())
            }),
        }
    }

    /// Reads in one transaction, so that several statements see the same state.
    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = lock(&self.reader);
        let value = connection.transaction_with_behavior(TransactionBehavior::Deferred).and_then(|transaction| {
            match self.owner.holds(&transaction)? || holds_nothing(&transaction)? {
                true => query(&transaction).map(Some),
                false => Ok(None),
            }
        });
        self.own(value)
    }

    /// Writes in one transaction. Other processes wait for it to end, so that what it reads stays true.
    fn write<T>(&self, change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let Some(writer) = &self.writer else {
            return Err(Error::new(
                ErrorKind::Store,
                format!("{}: cannot be written: the store was opened read-only", self.path.display()),
            ));
        };
        let mut connection = lock(writer);
        let committed = connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
            if !self.owner.holds(&transaction)? {
                if !holds_nothing(&transaction)? {
                    return Ok(None);
                }
                transaction.execute("UPDATE savedsearch_store SET owner = ?1", [&self.owner.digest])?;
            }
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(Some(value))
        });
        self.own(committed)
    }

    /// The value, or an error if the store has none for this owner.
    fn own<T>(&self, value: rusqlite::Result<Option<T>>) -> Result<T> {
        value.map_err(|error| failure(&self.path, &error))?.ok_or_else(|| {
            let error = format!("{}: the store was made with another address or key", self.path.display());
            let advice = Phrase::from("check ") + Term::BaseUrl + " and the key, or use another folder";
            Error::new(ErrorKind::Config, error).advice(advice)
        })
    }
}

/// True for a store that nothing was ever kept in, or from which all was removed: it is free for any owner.
fn holds_nothing(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM savedsearch_coverage) AND NOT EXISTS (SELECT 1 FROM savedsearch_region_file) \
               AND NOT EXISTS (SELECT 1 FROM savedsearch_deleted) AND NOT EXISTS (SELECT 1 FROM savedsearch_answer) \
               AND NOT EXISTS (SELECT 1 FROM savedsearch_cursor)";
    connection.query_row(sql, [], |row| row.get(0))
}

/// A panic while the lock was held has rolled its transaction back.
fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the file, which exists.
fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let connection = match access {
        Access::Read => Connection::open_with_flags(path, READ),
        Access::ReadWrite => {
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        }
    }?;
    connection.busy_timeout(PATIENCE)?;
    let readable = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    match (access, readable) {
        (Access::Read, Err(error)) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            return connect_alone(path).ok_or(error)?;
        }
        (Access::Read, readable) => readable?,
        (Access::ReadWrite, readable) => {
            readable?;
            // A commit survives a power failure: the files that it replaces are deleted once it is durable.
            connection.pragma_update(None, "synchronous", "FULL")?;
        }
    }
    Ok(connection)
}

const READ: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Opens the file without its journal, which SQLite cannot create on a read-only file system. None if there is one: the
/// file is complete without it only after the last process that wrote has closed it.
fn connect_alone(path: &Path) -> Option<rusqlite::Result<Connection>> {
    let journal = path.with_file_name(format!("{FILE}-wal"));
    if journal.metadata().is_ok_and(|journal| journal.len() > 0) {
        return None;
    }
    let path = std::path::absolute(path).ok()?;
    let path = path.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let address = format!("file:{path}?immutable=1");
    Some(Connection::open_with_flags(address, READ | OpenFlags::SQLITE_OPEN_URI))
}

/// Version of our own tables, if they are there.
fn version_of(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('savedsearch_store', 'ducklake_metadata')";
    match connection.query_row(sql, [], |row| row.get::<_, i64>(0))? {
        2 => connection.query_row("SELECT version FROM savedsearch_store", [], |row| row.get(0)).optional(),
        _ => Ok(None),
    }
}

/// Brings tables of an earlier version to this one, in one transaction.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if version_of(connection)? != Some(MIGRATED) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it.
    if version_of(&transaction)? == Some(MIGRATED) {
        transaction.execute_batch(include_str!("catalog/migrate.sql"))?;
    }
    transaction.commit()
}

/// Verifies that the file is a catalog of this version, or can be read as one.
fn verify(path: &Path, connection: &Connection, access: Access) -> Result<()> {
    let failure = |error: rusqlite::Error| failure(path, &error);
    let refused = |what: String, advice: &str| {
        Err(Error::new(ErrorKind::Store, format!("{}: {what}", path.display())).advice(advice))
    };
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('savedsearch_store', 'ducklake_metadata')";
    if connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(failure)? != 2 {
        return refused("not a savedsearch store".into(), "use another folder");
    }
    let sql = "SELECT version, (SELECT value FROM ducklake_metadata WHERE key = 'version' AND scope IS NULL) \
               FROM savedsearch_store";
    let (version, ducklake): (i64, String) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failure)?;
    match version {
        MIGRATED if access == Access::Read => {
            connection.execute_batch(include_str!("catalog/readable.sql")).map_err(failure)?;
        }
        ..VERSION => {
            let what = format!("version {version} of the store; this program supports version {VERSION}");
            return refused(what, "remove the folder, or use another one");
        }
        VERSION => {}
        _ => {
            let what = format!("version {version} of the store; this program supports version {VERSION}");
            return refused(what, "update this program, or use another folder");
        }
    }
    if ducklake != DUCKLAKE_VERSION {
        let what = format!("DuckLake version {ducklake}; this program supports version {DUCKLAKE_VERSION}");
        return refused(what, "another program has upgraded the catalog; update this program, or use another folder");
    }
    Ok(())
}

/// Absolute path of the data folder as DuckLake stores it. A relative one would be relative to the reader's folder.
fn data_path(dir: &Path) -> Result<String> {
    let data = std::path::absolute(dir.join("data")).map_err(|error| inaccessible(dir, &error))?;
    match data.to_str() {
        Some(data) => Ok(format!("{data}/")),
        None => Err(Error::new(ErrorKind::Store, format!("{}: the path is not valid UTF-8", dir.display()))
            .advice("use another folder")),
    }
}
