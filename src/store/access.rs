//! Access to a store's folder, before it is open: its errors have advice that helps without a session.
//!
//! Invariant: a store that cannot be seen is an error, and never taken for one that is missing.

use std::io;
use std::path::Path;

#[cfg(feature = "shared")]
use super::bucket::Bucket;
use super::catalog;
use super::files::{NO_SPACE, has_no_space, is_full, probe};
use super::storage::Storage;
use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "shared")]
use crate::files::private_folder;
use crate::location::{CatalogUrl, Location};

/// True if there is a store at a location, or in its catalog in PostgreSQL.
///
/// # Errors
/// [`ErrorKind::Store`] if that cannot be determined, such as for a folder that the user may not read.
#[doc(hidden)]
pub fn has_store(location: &Location, catalog: Option<&CatalogUrl>) -> Result<bool> {
    match catalog {
        Some(url) => catalog::has_shared(url),
        None => match location {
            Location::Folder(folder) => has_catalog(folder),
            Location::Bucket(_) => Err(without_catalog(location)),
        },
    }
}

/// Checks that a missing store could be created, without creating it: a file without a name is written to the folder, or to the
/// nearest one above it that exists. Returns the reason if the disk lacks space, so that connections would do without a store.
///
/// # Errors
/// [`ErrorKind::Store`] if nothing can be written there for another reason, which connections refuse.
#[doc(hidden)]
pub fn check_missing_store(location: &Location) -> Result<Option<Error>> {
    /// Size in bytes that an empty store does not exceed.
    const EMPTY: usize = 512 << 10;
    let Location::Folder(folder) = location else { return Ok(None) };
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    match probe(existing, EMPTY).map_err(|error| inaccessible(folder, &error)) {
        Err(full) if is_full(&full) => Ok(Some(full)),
        other => other.map(|()| None),
    }
}

/// True if there is a catalog in a folder.
pub(super) fn has_catalog(folder: &Path) -> Result<bool> {
    folder.join(catalog::FILE).try_exists().map_err(|error| inaccessible(folder, &error))
}

/// Storage at a location.
///
/// # Errors
/// [`ErrorKind::Config`] for credentials that cannot be used; [`ErrorKind::Store`] for a folder that cannot be created.
#[cfg(feature = "shared")]
pub(super) fn storage_of(location: &Location) -> Result<Storage> {
    match location {
        Location::Folder(folder) => {
            let data = folder.join("data");
            match private_folder(&data) {
                // A store on a read-only medium answers queries.
                Err(error) if !data.is_dir() => Err(inaccessible(folder, &error)),
                _ => Ok(Storage::of_folder(data)),
            }
        }
        Location::Bucket(address) => Bucket::open(address).map(Storage::of_bucket),
    }
}

/// Refuses a bucket, which this build does not support.
#[cfg(not(feature = "shared"))]
pub(super) fn storage_of(location: &Location) -> Result<Storage> {
    match location {
        Location::Folder(folder) => Ok(Storage::of_folder(folder.join("data"))),
        Location::Bucket(_) => {
            let message = format!("{location}: this build has no stores in object storage");
            Err(Error::new(ErrorKind::Unsupported, message).advice("use a folder, or build with the feature `shared`"))
        }
    }
}

/// Error for a store in object storage without a catalog in PostgreSQL.
pub(super) fn without_catalog(location: &Location) -> Error {
    let message = format!("{location}: a store in object storage needs a catalog in PostgreSQL");
    Error::new(ErrorKind::Unsupported, message).advice(
        "set SAVEDSEARCH_CATALOG, or `catalog` of the connection, to its address, such as postgres://user@host/database",
    )
}

/// Error for a place without the files that a catalog names: a machine that took it for that of the others would drop their files from
/// the catalog.
#[cfg(feature = "shared")]
pub(super) fn elsewhere(url: &CatalogUrl, data: &str) -> Error {
    let what = format!("{url}: the files of this catalog are not in {data} as this machine sees it");
    Error::new(ErrorKind::Config, what).advice(
        "check the folder, or the endpoint and the account; if the files are lost, use another schema for the catalog",
    )
}

/// Error for a folder in which no store can be opened or created.
pub(super) fn inaccessible(folder: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        _ if has_no_space(error) => "free space, or use another folder",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "check the permissions of the folder, or use another one"
        }
        _ => "use another folder",
    };
    let cause = match error.raw_os_error() {
        _ if has_no_space(error) => NO_SPACE.to_owned(),
        Some(_) => error.to_string(),
        // An error about a temporary file has its name in the text, and no code of the system.
        None => error.kind().to_string(),
    };
    Error::new(ErrorKind::Store, format!("cannot open the store in {}: {cause}", folder.display())).advice(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn advice_on_a_folder_needs_no_session() {
        let permissions = "check the permissions of the folder, or use another one";
        let cases = [
            (io::ErrorKind::PermissionDenied, permissions),
            (io::ErrorKind::ReadOnlyFilesystem, permissions),
            (io::ErrorKind::NotADirectory, "use another folder"),
        ];
        each(cases, |(kind, advice)| {
            let told = inaccessible(Path::new("a"), &kind.into()).to_string();
            assert_eq!(told, format!("cannot open the store in a: {kind}; {advice}"));
        });
        let full = inaccessible(Path::new("a"), &io::ErrorKind::StorageFull.into()).to_string();
        assert_eq!(full, "cannot open the store in a: no space left on the disk; free space, or use another folder");
    }

    /// A file stands for a folder that the user may not read, which a test that runs as root can.
    #[test]
    fn a_store_that_cannot_be_seen_is_not_a_missing_one() {
        let folder = tempfile::tempdir().expect("temporary folder");
        assert!(!has_catalog(folder.path()).expect("readable"));
        assert!(!has_catalog(&folder.path().join("none")).expect("missing"));
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        has_catalog(&file).expect_err("not a folder");
        std::fs::write(folder.path().join(catalog::FILE), "").expect("written");
        assert!(has_catalog(folder.path()).expect("readable"));
    }

    #[test]
    fn no_temporary_file_is_named() {
        let folder = Path::new("/nonexistent/folder");
        let error = tempfile::NamedTempFile::new_in(folder).expect_err("missing");
        let told = inaccessible(folder, &error).to_string();
        assert!(told.starts_with("cannot open the store in /nonexistent/folder: ") && !told.contains(".tmp"), "{told}");
    }
}
