//! Access to a store's folder, before it is open: its errors have advice that helps without a session.
//!
//! Invariant: a store that cannot be seen is an error, and never taken for one that is missing.

use std::io;
use std::path::Path;

use super::catalog;
use super::files::{NO_SPACE, has_no_space};
use crate::error::{Error, ErrorKind, Result};
use crate::location::{CatalogUrl, Location};

/// True if there is a store at a location, or in its catalog in PostgreSQL.
///
/// # Errors
/// [`ErrorKind::Store`] if that cannot be determined, such as for a folder that the user may not read.
#[doc(hidden)]
pub fn has_store(location: &Location, catalog: Option<&CatalogUrl>) -> Result<bool> {
    match catalog {
        Some(url) => catalog::has_shared(url),
        None => has_catalog(folder_of(location)?),
    }
}

/// True if there is a catalog in a folder.
pub(super) fn has_catalog(folder: &Path) -> Result<bool> {
    folder.join(catalog::FILE).try_exists().map_err(|error| inaccessible(folder, &error))
}

/// The folder of a store.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for an address of object storage.
pub(crate) fn folder_of(location: &Location) -> Result<&Path> {
    match location {
        Location::Folder(folder) => Ok(folder),
        Location::Bucket(address) => {
            Err(Error::new(ErrorKind::Unsupported, format!("{address}: this version keeps stores in folders only"))
                .advice("use a folder"))
        }
    }
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
