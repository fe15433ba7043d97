//! Creation of a catalog: complete under a temporary name, then renamed, so that no process sees a partial catalog.

use std::fs::File;
use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::sql::{Connection, SqlResult, values};
use super::{DUCKLAKE_VERSION, FILE, Owner, StoredColumn, VERSION, columns, ducklake, inaccessible, recorded, sqlite};
use crate::error::{Error, ErrorKind, Result};

/// Creates the file, unless another process created it first. Its folder exists.
pub(super) fn create(
    path: &Path,
    data: &str,
    owner: &Owner,
    columns: &[StoredColumn],
    now: DateTime<Utc>,
) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // SQLite would apply the journal of a file that was removed to the new one.
    let journal = path.with_file_name(format!("{FILE}-wal"));
    if journal.exists() && !path.exists() {
        let message = format!("{} is missing, but its journal is there", path.display());
        return Err(
            Error::new(ErrorKind::Store, message).advice(format!("restore it, or remove {}", journal.display()))
        );
    }
    // Temporary files are accessible by their owner only, and so are the journals that SQLite adds to a database.
    let file = tempfile::NamedTempFile::new_in(folder).map_err(|error| inaccessible(folder, &error))?;
    fill(file.path(), data, owner, columns, now).map_err(|error| sqlite::told(path, error))?;
    let named = file.as_file().sync_all().and_then(|()| match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => match File::open(folder) {
            Ok(folder) => folder.sync_all(),
            // Folders cannot be opened everywhere.
            Err(_) => Ok(()),
        },
    });
    named.map_err(|error| inaccessible(folder, &error))
}

fn fill(path: &Path, data: &str, owner: &Owner, columns: &[StoredColumn], now: DateTime<Utc>) -> SqlResult<()> {
    let mut connection = rusqlite::Connection::open(path)?;
    // A property of the file: readers never wait for a writer.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let transaction = connection.transaction()?;
    tables(&Connection::Sqlite(&transaction), data, owner, columns, now)?;
    transaction.commit()?;
    // Closing moves the journal into the file.
    Ok(connection.close().map_err(|(_, error)| error)?)
}

/// Writes the tables of an empty store, with the place of its files as DuckLake stores it.
pub(super) fn tables(
    connection: &Connection<'_>,
    data: &str,
    owner: &Owner,
    columns: &[StoredColumn],
    now: DateTime<Utc>,
) -> SqlResult<()> {
    connection.define(include_str!("ducklake.sql"))?;
    connection.define(include_str!("store.sql"))?;
    recorded::create(connection)?;
    connection.execute(
        "INSERT INTO savedsearch_store (version, owner, created_at) VALUES (?1, ?2, ?3)",
        values![VERSION, owner.text(), ducklake::timestamp(now)],
    )?;
    let metadata = [
        ("version", DUCKLAKE_VERSION),
        ("created_by", concat!("savedsearch ", env!("CARGO_PKG_VERSION"))),
        ("data_path", data),
        ("encrypted", "false"),
        // Small inserts of other programs go to files too, where `check` sees them.
        ("data_inlining_row_limit", "0"),
    ];
    for (key, value) in metadata {
        connection.execute("INSERT INTO ducklake_metadata (key, value) VALUES (?1, ?2)", values![key, value])?;
    }
    ducklake::create(connection, now)?;
    columns::create(connection, columns, now)
}
