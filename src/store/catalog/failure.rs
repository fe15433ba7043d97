//! SQLite's errors in the user's terms, and checks of values of a row, which may differ from what was written.

use std::error::Error as StdError;
use std::path::Path;

use chrono::{DateTime, Utc};
use rusqlite::types::Type;
use rusqlite::{ErrorCode, Row};

use super::PATIENCE;
use crate::error::{Error, ErrorKind};
use crate::store::files::{full, is_disk_full};

/// Advice for a file with content that this program cannot have written.
pub(super) const DAMAGED: &str = "run savedsearch store verify, or remove the folder";

/// Describes a failed operation on a file.
pub(super) fn failure(path: &Path, error: &rusqlite::Error) -> Error {
    if let rusqlite::Error::ToSqlConversionFailure(cause) = error
        && let Some(cause) = cause.downcast_ref::<Error>()
    {
        return cause.clone();
    }
    let of = |what: &str| Error::new(ErrorKind::Store, format!("{}: {what}", path.display()));
    let Some(code) = error.sqlite_error_code() else {
        return of(&format!("the store is damaged: {error}")).advice(DAMAGED);
    };
    let folder = path.parent().unwrap_or(path);
    match code {
        ErrorCode::DiskFull => full(folder),
        // SQLite does not name the cause if it cannot extend or create a file beside the database.
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen if is_disk_full(folder) => full(folder),
        ErrorCode::ReadOnly => of("cannot be written: read-only").advice("check the permissions of file and folder"),
        ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            of(&format!("cannot be opened: {error}")).advice("check the permissions of file and folder")
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            of(&format!("catalog locked by another process (waited {} s)", PATIENCE.as_secs()))
                .advice("retry, or stop that process")
                .passing()
        }
        ErrorCode::NotADatabase => {
            of("not a savedsearch store, or damaged").advice("use another folder, or remove this one")
        }
        ErrorCode::DatabaseCorrupt => of("the store is damaged").advice(DAMAGED),
        ErrorCode::SystemIoFailure => of(&format!("cannot be read or written: {error}")),
        // A missing table or column among them.
        _ => of(&format!("the store cannot be used: {error}")).advice(DAMAGED),
    }
}

/// An error of this program, by which a transaction ends.
pub(super) fn caused(error: Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

/// The value of a column that is not what this program writes.
pub(super) fn invalid(column: usize, error: impl Into<Box<dyn StdError + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

/// Reads an instant, which is stored in microseconds since 1970.
pub(super) fn instant(row: &Row<'_>, column: usize) -> rusqlite::Result<DateTime<Utc>> {
    DateTime::from_timestamp_micros(row.get(column)?).ok_or_else(|| invalid(column, "not an instant"))
}
