//! Catalog of a store: its regions, their files, and what synchronization remembers, in a file of SQLite or in a schema of
//! PostgreSQL.
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
#[cfg(feature = "shared")]
mod circuit_breaker;
mod columns;
mod coverage;
mod create;
mod cursors;
mod ducklake;
mod erasures;
mod failure;
#[cfg(feature = "shared")]
mod lease;
mod owner;
mod past;
#[cfg(feature = "shared")]
mod postgres;
mod recorded;
mod settle;
mod sql;
mod sqlite;
#[cfg(test)]
mod tests;
#[cfg(feature = "shared")]
mod tls;
mod unused;

use std::collections::HashMap;
use std::fmt;
#[cfg(feature = "shared")]
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
#[cfg(feature = "shared")]
use std::sync::{MutexGuard, PoisonError};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use savedsearch_clock::Clock;

pub(crate) use self::columns::{FileColumn, StoredColumn};
pub(crate) use self::coverage::Change;
#[cfg(feature = "shared")]
pub(crate) use self::lease::LASTS;
use self::owner::Held;
pub(crate) use self::owner::Owner;
#[cfg(feature = "shared")]
use self::postgres::Postgres;
pub(crate) use self::recorded::Recorded;
use self::sql::{Connection, SqlResult, instant, values};
use self::sqlite::Sqlite;
pub(crate) use self::unused::BRIEFLY;
#[cfg(feature = "shared")]
use super::access::elsewhere;
use super::access::{has_catalog, inaccessible};
use super::checksums::Sums;
use super::region::Filters;
use super::storage::{self, Storage};
use crate::error::{Error, ErrorKind, Phrase, Result, Term, Tool};
use crate::files;
use crate::location::CatalogUrl;

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

/// Open catalog of a store.
#[derive(Debug)]
pub(crate) struct Catalog {
    database: Database,
    storage: Storage,
    owner: Owner,
    /// Version of the columns for new files.
    schema: i64,
    /// Name of the column that mentions are ordered by.
    time: String,
    clock: Clock,
    /// Checksums that were needed, by the names of files.
    sums: Mutex<HashMap<String, Arc<Sums>>>,
    /// Tokens of the leases that this process has, by their names.
    #[cfg(feature = "shared")]
    leases: Mutex<HashMap<String, i64>>,
}

/// The database of a catalog.
#[derive(Debug)]
enum Database {
    Sqlite(Box<Sqlite>),
    #[cfg(feature = "shared")]
    Postgres(Box<Postgres>),
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
                    refuse_shared(dir)?;
                    create::create(&path, &data, owner, columns, clock.now())?;
                }
            }
            Access::Read if !has_catalog(dir)? => {
                return Err(Error::new(ErrorKind::Store, format!("{}: no store in this folder", dir.display()))
                    .advice(Phrase::from("fill one with ") + Tool::Sync + ", or correct the path"));
            }
            Access::Read => {}
        }
        let database = Database::Sqlite(Box::new(Sqlite::open(&path, access)?));
        let mut catalog = Self::of(database, Storage::of_folder(dir.join("data")), owner, time, clock);
        catalog.schema = match access {
            Access::Read => catalog.read(columns::current)?,
            Access::ReadWrite => {
                files::private_folder(&catalog.data()).map_err(|error| inaccessible(&catalog.data(), &error))?;
                catalog.adopt(&data, columns)?
            }
        };
        Ok(catalog)
    }

    /// A catalog whose version of the columns was not read yet.
    fn of(database: Database, storage: Storage, owner: &Owner, time: &str, clock: Clock) -> Self {
        Self {
            database,
            storage,
            owner: owner.clone(),
            schema: 0,
            time: time.to_owned(),
            clock,
            sums: Mutex::default(),
            #[cfg(feature = "shared")]
            leases: Mutex::default(),
        }
    }

    /// Refuses a catalog in PostgreSQL, which this build does not support.
    #[cfg(not(feature = "shared"))]
    pub(crate) fn open_shared(
        url: &CatalogUrl,
        _storage: Storage,
        _owner: &Owner,
        _columns: &[StoredColumn],
        _time: &str,
        _clock: Clock,
        _access: Access,
    ) -> Result<Self> {
        Err(not_built(url))
    }

    /// Opens the catalog in a schema of PostgreSQL, as [`open`](Self::open) does, of files in a storage.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`ErrorKind::Config`] if it is of other files.
    #[cfg(feature = "shared")]
    pub(crate) fn open_shared(
        url: &CatalogUrl,
        storage: Storage,
        owner: &Owner,
        columns: &[StoredColumn],
        time: &str,
        clock: Clock,
        access: Access,
    ) -> Result<Self> {
        let data = data_text(storage.data())?;
        if access == Access::ReadWrite {
            columns::validate(columns)?;
        }
        let create = |connection: &Connection<'_>| {
            create::tables(connection, &data, owner, columns, time_in(connection, &clock)?)
        };
        let postgres = Postgres::open(url, access, create)?;
        let mut catalog = Self::of(Database::Postgres(Box::new(postgres)), storage, owner, time, clock);
        let place = catalog.read(place)?;
        if place != data {
            return Err(Error::new(ErrorKind::Config, format!("{url}: the catalog is of the files in {place}"))
                .advice("use these files, or another schema for the catalog (?schema=… at the end of its address)"));
        }
        // Two catalogs of the same files would remove each other's.
        let (id, has_files): (String, bool) = catalog.read(|connection| {
            let sql = "SELECT id, EXISTS (SELECT 1 FROM ducklake_data_file WHERE end_snapshot IS NULL) FROM savedsearch_store";
            connection.row(sql, values![], |row| Ok((row.get(0)?, row.get(1)?)))
        })?;
        let claimed = catalog.storage.claim(&id, access == Access::ReadWrite, !has_files);
        let refused = |error: io::Error| {
            if has_files && error.kind() == io::ErrorKind::NotFound {
                return elsewhere(url, &data);
            }
            let refused = inaccessible(catalog.storage.data(), &error);
            // A bucket that does not answer, unlike one that refuses the credentials.
            let passes = matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::Other);
            if passes { refused.passing() } else { refused }
        };
        if !claimed.map_err(refused)? {
            return Err(Error::new(ErrorKind::Config, format!("{url}: the files in {data} belong to another catalog"))
                .advice("use that catalog, or another place for the files"));
        }
        catalog.schema = match access {
            Access::Read => catalog.read(columns::current)?,
            Access::ReadWrite => catalog.adopt(&data, columns)?,
        };
        Ok(catalog)
    }

    /// Returns a number that changes whenever any process has committed, another owner's as well.
    pub(crate) fn version(&self) -> Result<i64> {
        let of = |connection: &Connection<'_>, sql: &str| connection.row(sql, values![], |row| row.get(0));
        match &self.database {
            // SQLite counts commits of other connections; this one only reads.
            Database::Sqlite(_) => self.read(|connection| of(connection, "PRAGMA data_version")),
            // Other programs do not count their commits, but each is a snapshot.
            #[cfg(feature = "shared")]
            Database::Postgres(postgres) => postgres.read_alone(|connection| {
                of(
                    connection,
                    "SELECT commits + (SELECT max(snapshot_id) FROM ducklake_snapshot) FROM savedsearch_store",
                )
            }),
        }
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

    #[cfg(feature = "shared")]
    fn leases(&self) -> MutexGuard<'_, HashMap<String, i64>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the catalog is on a server: a commit may have succeeded although its answer was lost.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self.database, Database::Sqlite(_))
    }

    /// Storage of all files.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the kept response to a request, with the instant at which it was requested.
    pub(crate) fn answer(&self, key: &str) -> Result<Option<(Bytes, DateTime<Utc>)>> {
        self.read(|connection| {
            let sql = "SELECT body, as_of FROM savedsearch_answer WHERE key = ?1";
            connection.first(sql, values![key], |row| Ok((Bytes::from(row.get::<Vec<u8>>(0)?), instant(row, 1)?)))
        })
    }

    /// Returns the instant at which the kept response to a request was requested.
    pub(crate) fn answered_at(&self, key: &str) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT as_of FROM savedsearch_answer WHERE key = ?1";
        self.read(|connection| connection.first(sql, values![key], |row| instant(row, 0)))
    }

    /// Keeps a response, unless a later one is kept, or mentions were erased since it was requested: it may have them. `erasures`: the
    /// number of erasures before the request. If there are very many responses, the oldest are removed.
    pub(crate) fn keep_answer(&self, key: &str, body: &[u8], as_of: DateTime<Utc>, erasures: i64) -> Result<()> {
        self.write(|transaction| {
            if !erasures::is_still(transaction, erasures)? {
                return Ok(());
            }
            let sql = "INSERT INTO savedsearch_answer (key, body, as_of) VALUES (?1, ?2, ?3) ON CONFLICT (key) DO \
                       UPDATE SET body = excluded.body, as_of = excluded.as_of WHERE excluded.as_of >= savedsearch_answer.as_of";
            transaction.execute(sql, values![key, body, as_of.timestamp_micros()])?;
            let sql = "DELETE FROM savedsearch_answer WHERE as_of < (SELECT as_of FROM savedsearch_answer ORDER BY as_of \
                       DESC LIMIT 1 OFFSET ?1)";
            transaction.execute(sql, values![RESPONSES]).map(drop)
        })
    }

    /// Current time by which commits are dated.
    pub(crate) fn time(&self) -> Result<DateTime<Utc>> {
        self.read(|connection| self.time_in(connection))
    }

    /// As [`time`](Self::time), within a transaction.
    fn time_in(&self, connection: &Connection<'_>) -> SqlResult<DateTime<Utc>> {
        time_in(connection, &self.clock)
    }

    /// Current time of this machine.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Removes responses that were requested before an instant, and returns their number.
    pub(crate) fn forget_answers_before(&self, at: DateTime<Utc>) -> Result<u64> {
        let sql = "DELETE FROM savedsearch_answer WHERE as_of < ?1";
        self.write(|transaction| transaction.execute(sql, values![at.timestamp_micros()]))
    }

    /// Makes the columns and the place of the files those of this process. Returns the version of the columns.
    fn adopt(&self, data: &str, columns: &[StoredColumn]) -> Result<i64> {
        let (stored, place) = self.read(|connection| {
            let current = columns::current(connection)?;
            let unchanged = columns::equal(&columns::of(connection, current)?, columns);
            Ok((unchanged.then_some(current), place(connection)?))
        })?;
        match stored {
            Some(current) if place == data => Ok(current),
            _ => self.write(|transaction| {
                let sql = "UPDATE ducklake_metadata SET value = ?1 WHERE key = 'data_path' AND scope IS NULL";
                transaction.execute(sql, values![data])?;
                columns::adopt(transaction, columns, self.time_in(transaction)?)
            }),
        }
    }

    /// Reads in one transaction, so that several statements see the same state.
    fn read<T>(&self, query: impl Fn(&Connection<'_>) -> SqlResult<T>) -> Result<T> {
        let query =
            |connection: &Connection<'_>| match self.owner.held(connection)?.is_free(connection, &self.database)? {
                true => query(connection).map(Some),
                false => Ok(None),
            };
        match &self.database {
            Database::Sqlite(sqlite) => {
                self.own(sqlite.read(query).map_err(|error| sqlite::told(&sqlite.path, error))?)
            }
            #[cfg(feature = "shared")]
            Database::Postgres(postgres) => self.own(postgres.read(query)?),
        }
    }

    /// Writes in one transaction. Other processes wait for it to end, so that what it reads stays true. A transaction that the
    /// server has rolled back is repeated.
    fn write<T>(&self, change: impl Fn(&Connection<'_>) -> SqlResult<T>) -> Result<T> {
        let change = |connection: &Connection<'_>| {
            let held = self.owner.held(connection)?;
            if held != Held::Own {
                if !held.is_free(connection, &self.database)? {
                    return Ok(None);
                }
                connection.execute("UPDATE savedsearch_store SET owner = ?1", values![self.owner.text()])?;
            }
            change(connection).map(Some)
        };
        match &self.database {
            Database::Sqlite(sqlite) => {
                self.own(sqlite.write(change).map_err(|error| sqlite::told(&sqlite.path, error))?)
            }
            #[cfg(feature = "shared")]
            Database::Postgres(postgres) => self.own(postgres.write(change)?),
        }
    }

    /// The value, or an error if the store has none for this owner.
    fn own<T>(&self, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| {
            let error = format!("{}: the store was made with another address or key", self.database);
            let advice = Phrase::from("check ") + Term::BaseUrl + " and the key, or use another folder";
            Error::new(ErrorKind::Config, error).advice(advice)
        })
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(sqlite) => sqlite.path.display().fmt(f),
            #[cfg(feature = "shared")]
            Self::Postgres(postgres) => postgres.fmt(f),
        }
    }
}

/// True if there is a store in a schema of PostgreSQL.
///
/// # Errors
/// [`ErrorKind::Store`] if that cannot be determined.
#[cfg(feature = "shared")]
pub(super) fn has_shared(url: &CatalogUrl) -> Result<bool> {
    Postgres::exists(url)
}

/// Refuses a catalog in PostgreSQL, which this build does not support.
#[cfg(not(feature = "shared"))]
pub(super) fn has_shared(url: &CatalogUrl) -> Result<bool> {
    Err(not_built(url))
}

#[cfg(not(feature = "shared"))]
fn not_built(url: &CatalogUrl) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{url}: this build has no catalogs in PostgreSQL"))
        .advice("build with the feature `shared`")
}

/// The time by which commits are dated: that of the server, which all machines share, unless this process was given another time.
fn time_in(connection: &Connection<'_>, clock: &Clock) -> SqlResult<DateTime<Utc>> {
    let server = if clock.is_system() { connection.server_time()? } else { None };
    Ok(server.unwrap_or_else(|| clock.now()))
}

/// Refuses a folder whose files belong to a catalog in PostgreSQL: they would be unknown files, which are removed.
fn refuse_shared(dir: &Path) -> Result<()> {
    match dir.join(storage::CLAIM).try_exists().map_err(|error| inaccessible(dir, &error))? {
        false => Ok(()),
        true => {
            Err(Error::new(ErrorKind::Config, format!("{}: the catalog of this store is in PostgreSQL", dir.display()))
                .advice("name it as well, or use another folder"))
        }
    }
}

/// Place of the files as the catalog has it.
fn place(connection: &Connection<'_>) -> SqlResult<String> {
    let sql = "SELECT value FROM ducklake_metadata WHERE key = 'data_path' AND scope IS NULL";
    connection.row(sql, values![], |row| row.get(0))
}

/// Absolute path of the data folder as DuckLake stores it. A relative one would be relative to the reader's folder.
fn data_path(dir: &Path) -> Result<String> {
    let data = std::path::absolute(dir.join("data")).map_err(|error| inaccessible(dir, &error))?;
    data_text(&data)
}

/// Path of the data folder as DuckLake stores it.
fn data_text(data: &Path) -> Result<String> {
    match data.to_str() {
        Some(data) => Ok(format!("{data}/")),
        None => Err(Error::new(ErrorKind::Store, format!("{}: the path is not valid UTF-8", data.display()))
            .advice("use another folder")),
    }
}
