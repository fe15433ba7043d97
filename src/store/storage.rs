//! Storage of a store's files of mentions, deleted rows and words: all of them are read, written, listed and removed here.
//!
//! ```text
//! create ─▶ NewFile, under a name of its own ─▶ publish: synced, renamed, folder synced ─▶ open, by the final name
//! ```
//!
//! Invariant: a file that has its final name is complete and durable, and never changes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::files::{create_empty, private_folder};

/// Name of the file with the id of a catalog in PostgreSQL, beside the data folder.
pub(super) const CLAIM: &str = "catalog-id";
/// Suffix of a file that is being written.
const PARTIAL: &str = "partial";

/// Storage of the files below the data folder of a store. Paths of files begin with that of the data folder.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    data: PathBuf,
}

/// A file that is being written. Dropping it before it is published removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    /// Its path while it is written; `None` once it is published.
    partial: Option<PathBuf>,
    path: PathBuf,
}

/// A file that was found in a folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Time of the last write; `None` if it is not known.
    pub(crate) written: Option<DateTime<Utc>>,
}

impl Storage {
    /// Storage in a folder of this machine.
    pub(crate) fn of_folder(data: PathBuf) -> Self {
        Self { data }
    }

    /// Path of the folder of all files.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Makes the files those of a catalog in PostgreSQL, if they may be written and are of none. Returns false if they are of another
    /// one.
    #[cfg(feature = "shared")]
    pub(crate) fn claim(&self, id: &str, may_write: bool) -> io::Result<bool> {
        let folder = self.data.parent().unwrap_or(&self.data);
        let path = folder.join(CLAIM);
        // A catalog in the folder has these files.
        if folder.join(super::catalog::FILE).try_exists()? {
            return Ok(false);
        }
        if may_write && !path.try_exists()? {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(id.as_bytes())?;
            file.as_file().sync_all()?;
            match file.persist_noclobber(&path) {
                // Another process was first.
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
                named => drop(named.map_err(|error| error.error)?),
            }
        }
        Ok(fs::read_to_string(&path)?.trim() == id)
    }

    /// Opens a file for reading.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        File::open(path)
    }

    /// Length of a file in bytes.
    pub(crate) fn length(&self, path: &Path) -> io::Result<u64> {
        path.metadata().map(|found| found.len())
    }

    /// Creates a file. Its name is random, or it replaces another one when it is published.
    pub(crate) fn create(&self, path: &Path) -> io::Result<NewFile> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        // Two processes may index the same file.
        let partial = path.with_extension(format!("{:08x}.{PARTIAL}", rand::random::<u32>()));
        Ok(NewFile { file: create_empty(&partial)?, partial: Some(partial), path: path.to_owned() })
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// True if a file is one of the store: neither behind a link to another folder, nor at a path that leads out of the store.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        folder.zip(self.data.canonicalize().ok()).is_some_and(|(folder, data)| folder.starts_with(data))
    }

    /// Returns the files of a table, in all its folders. What cannot be read is left out.
    pub(crate) fn list(&self, table: &str) -> Vec<Found> {
        let (mut found, mut folders) = (Vec::new(), vec![self.data.join(table)]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
                if metadata.is_dir() {
                    folders.push(path);
                } else {
                    found.push(Found { path, written: metadata.modified().ok().map(DateTime::<Utc>::from) });
                }
            }
        }
        found
    }
}

impl NewFile {
    /// Makes the file durable under its final name.
    pub(crate) fn publish(&mut self) -> io::Result<()> {
        let Some(partial) = &self.partial else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(partial, &self.path)?;
        self.partial = None;
        // The name is durable only once the folder is synced.
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // A file that stays behind is removed with other unnamed files.
            let _ = fs::remove_file(partial);
        }
    }
}
