//! SQLite's errors in the user's terms, and those of values that differ from what was written.

use std::fmt;
use std::path::Path;

use rusqlite::ErrorCode;

use super::sql::SqlError;
use super::sqlite::PATIENCE;
use crate::error::{Error, ErrorKind, Phrase, Tool};
use crate::store::files::{full, is_disk_full};

/// Advice for a file with content that this program cannot have written.
pub(super) fn damaged_advice() -> Phrase {
    Phrase::from("run ") + Tool::VerifyStore + ", or remove the folder"
}

/// Describes a failed operation on a file.
pub(super) fn failure(path: &Path, error: &rusqlite::Error) -> Error {
    let of = |what: &str| Error::new(ErrorKind::Store, format!("{}: {what}", path.display()));
    let Some(code) = error.sqlite_error_code() else {
        return of(&format!("the store is damaged: {error}")).advice(damaged_advice());
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
        ErrorCode::DatabaseCorrupt => of("the store is damaged").advice(damaged_advice()),
        ErrorCode::SystemIoFailure => of(&format!("cannot be read or written: {error}")),
        // A missing table or column among them.
        _ => of(&format!("the store cannot be used: {error}")).advice(damaged_advice()),
    }
}

/// Describes values that this program cannot have written. `place`: the catalog.
pub(super) fn damaged(place: impl fmt::Display, error: &SqlError) -> Error {
    let what = match error {
        SqlError::Invalid(what) => format!(": {what}"),
        _ => String::new(),
    };
    Error::new(ErrorKind::Store, format!("{place}: the store is damaged{what}")).advice(damaged_advice())
}
