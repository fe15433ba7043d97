//! A catalog in a file of SQLite, the embedded default. Several processes of one machine share it by SQLite's locks.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use super::failure::failure;
use super::sql::{self, SqlError, SqlResult};
use super::{Access, DUCKLAKE_VERSION, FILE, MIGRATED, VERSION, checksums, recorded};
use crate::error::{Error, ErrorKind, Result};

/// Longest wait for a transaction of another process.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Statements that a connection keeps prepared: more than one transaction repeats for each of its regions and files.
const PREPARED: usize = 64;

/// Open file of a catalog.
#[derive(Debug)]
pub(super) struct Sqlite {
    pub(super) path: PathBuf,
    /// Reads never wait for a transaction that writes.
    reader: Mutex<Connection>,
    /// `None` if it is open for reading.
    pub(super) writer: Option<Mutex<Connection>>,
}

impl Sqlite {
    /// Opens the file, which exists.
    pub(super) fn open(path: &Path, access: Access) -> Result<Self> {
        let connect = |access| connect(path, access).map_err(|error| failure(path, &error));
        let mut writer = (access == Access::ReadWrite).then(|| connect(access)).transpose()?;
        let reader = connect(Access::Read)?;
        if let Some(writer) = &mut writer {
            let ready = migrate(writer).map_err(SqlError::from).and_then(|()| begin(writer));
            ready.map_err(|error| told(path, error))?;
        }
        verify(path, &reader, access)?;
        Ok(Self { path: path.to_owned(), reader: Mutex::new(reader), writer: writer.map(Mutex::new) })
    }

    /// Reads in one transaction, so that several statements see the same state.
    pub(super) fn read<T>(&self, query: impl FnOnce(&sql::Connection<'_>) -> SqlResult<T>) -> SqlResult<T> {
        let mut connection = lock(&self.reader);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
        query(&sql::Connection::Sqlite(&transaction))
    }

    /// Writes in one transaction, unless the result is `None`. Other processes wait for it to end, so that what it reads stays true.
    pub(super) fn write<T>(
        &self,
        change: impl FnOnce(&sql::Connection<'_>) -> SqlResult<Option<T>>,
    ) -> SqlResult<Option<T>> {
        let Some(writer) = &self.writer else {
            let message = format!("{}: cannot be written: the store was opened read-only", self.path.display());
            return Err(SqlError::Own(Error::new(ErrorKind::Store, message)));
        };
        let mut connection = lock(writer);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = change(&sql::Connection::Sqlite(&transaction))?;
        if value.is_some() {
            transaction.commit()?;
        }
        Ok(value)
    }

    /// Overwrites what the file no longer has.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if another process is using the catalog, so that its journal has to stay.
    pub(super) fn purge(&self) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let connection = lock(writer);
        let emptied = connection
            .execute_batch("VACUUM")
            .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0)));
        match emptied.map_err(|error| failure(&self.path, &error))? {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Store,
                "another process is using the store, so its journal could not be emptied",
            )
            .advice("stop that process, and run the command again")),
        }
    }
}

/// The error of a statement in the user's terms.
pub(super) fn told(path: &Path, error: SqlError) -> Error {
    match error {
        SqlError::Own(error) => error,
        SqlError::Sqlite(error) => failure(path, &error),
        error => super::failure::damaged(path.display(), &error),
    }
}

/// A panic while the lock was held has rolled its transaction back.
pub(super) fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to record what older versions of this program did not.
fn begin(writer: &mut Connection) -> SqlResult<()> {
    if version_of(writer)? != Some(VERSION) {
        return Ok(());
    }
    let transaction = writer.transaction_with_behavior(TransactionBehavior::Deferred)?;
    let is_complete = {
        let connection = sql::Connection::Sqlite(&transaction);
        recorded::exists(&connection)? && checksums::exists(&connection)?
    };
    drop(transaction);
    if is_complete {
        return Ok(());
    }
    let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let connection = sql::Connection::Sqlite(&transaction);
    // Another process may have done it.
    if !recorded::exists(&connection)? {
        recorded::begin(&connection)?;
    }
    checksums::create(&connection)?;
    Ok(transaction.commit()?)
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
    connection.set_prepared_statement_cache_capacity(PREPARED);
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
pub(super) fn connect_alone(path: &Path) -> Option<rusqlite::Result<Connection>> {
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
        transaction.execute_batch(include_str!("migrate.sql"))?;
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
            connection.execute_batch(include_str!("readable.sql")).map_err(failure)?;
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
