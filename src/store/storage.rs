//! Storage of a store's files of mentions, deleted rows and words: all of them are read, written, listed and removed here.
//!
//! ```text
//! create ─▶ NewFile, under a name of its own ─▶ publish: durable, with its final name ─▶ open, by the final name
//! ```
//!
//! The files are in a folder, or are objects of a bucket whose paths begin with its address, such as
//! `s3://bucket/prefix/data/mentions/….parquet`. In a folder, a file is synced, renamed, and its folder synced. An object is
//! written to a temporary file first.
//!
//! Invariant: a file that has its final name is complete and durable, and never changes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
#[cfg(feature = "shared")]
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

#[cfg(feature = "shared")]
use super::bucket::{Bucket, Object};
#[cfg(feature = "shared")]
use super::catalog::Catalog;
use crate::files::{create_empty, private_folder};

/// Name of the file with the id of a catalog in PostgreSQL, beside the data folder.
pub(super) const CLAIM: &str = "catalog-id";
/// Suffix of a file that is being written.
const PARTIAL: &str = "partial";
/// Suffix of files that may be written again.
#[cfg(feature = "shared")]
const REPLACED: &str = "words";

/// Storage of the files below the data folder of a store. Paths of files begin with that of the data folder.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    data: PathBuf,
    /// The bucket that has the files; `None` if they are in a folder.
    #[cfg(feature = "shared")]
    bucket: Option<Arc<Bucket>>,
}

/// A file that is read.
#[derive(Debug)]
pub(crate) enum OpenFile {
    Local(File),
    #[cfg(feature = "shared")]
    Object(Object),
}

/// A file that is being written. Dropping it before it is published removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    /// Its path while it is written; `None` once it is published, and for objects.
    partial: Option<PathBuf>,
    path: PathBuf,
    #[cfg(feature = "shared")]
    bucket: Option<Arc<Bucket>>,
}

/// A file that was found in a folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Length in bytes.
    #[cfg(feature = "shared")]
    pub(crate) length: u64,
    /// Time of the last write; `None` if it is not known.
    pub(crate) written: Option<DateTime<Utc>>,
}

impl Storage {
    /// Storage in a folder of this machine.
    pub(crate) fn of_folder(data: PathBuf) -> Self {
        Self {
            data,
            #[cfg(feature = "shared")]
            bucket: None,
        }
    }

    /// Storage in a bucket.
    #[cfg(feature = "shared")]
    pub(crate) fn of_bucket(bucket: Bucket) -> Self {
        Self { data: bucket.data(), bucket: Some(Arc::new(bucket)) }
    }

    /// Path of the folder of all files.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The bucket that has the files; `None` if they are in a folder.
    #[cfg(feature = "shared")]
    pub(crate) fn bucket(&self) -> Option<&Arc<Bucket>> {
        self.bucket.as_ref()
    }

    /// Makes the files those of a catalog in PostgreSQL, if they may be written and are of none. `is_new`: set if the catalog names no
    /// file. Returns false if they are of another one.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if they are of none, and may not be written or the catalog is not new.
    #[cfg(feature = "shared")]
    pub(crate) fn claim(&self, id: &str, may_write: bool, is_new: bool) -> io::Result<bool> {
        let folder = self.data.parent().unwrap_or(&self.data);
        let path = folder.join(CLAIM);
        if let Some(bucket) = &self.bucket {
            return Ok(bucket.claim(&path, id, may_write, is_new)?.trim() == id);
        }
        // A catalog in the folder has these files.
        if folder.join(super::catalog::FILE).try_exists()? {
            return Ok(false);
        }
        if may_write && is_new && !path.try_exists()? {
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
    pub(crate) fn open(&self, path: &Path) -> io::Result<OpenFile> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            return bucket.read(path).map(OpenFile::Object);
        }
        File::open(path).map(OpenFile::Local)
    }

    /// Length of a file in bytes.
    pub(crate) fn length(&self, path: &Path) -> io::Result<u64> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            return bucket.length(path);
        }
        path.metadata().map(|found| found.len())
    }

    /// Lengths of files in bytes, in their order; `None` for a missing one. `longest`: longest wait for all of them, if it is another
    /// than that for a file.
    pub(crate) fn lengths_of(&self, paths: &[&Path], longest: Option<Duration>) -> io::Result<Vec<Option<u64>>> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            return bucket.lengths_of(paths, longest);
        }
        let _ = longest;
        paths.iter().map(|path| unless_missing(self.length(path))).collect()
    }

    /// Creates a file. Its name is random, or it replaces another one when it is published.
    pub(crate) fn create(&self, path: &Path) -> io::Result<NewFile> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            let (file, bucket) = (tempfile::tempfile()?, Some(Arc::clone(bucket)));
            return Ok(NewFile { file, partial: None, path: path.to_owned(), bucket });
        }
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        // Two processes may index the same file.
        let partial = path.with_extension(format!("{:08x}.{PARTIAL}", rand::random::<u32>()));
        Ok(NewFile {
            file: create_empty(&partial)?,
            partial: Some(partial),
            path: path.to_owned(),
            #[cfg(feature = "shared")]
            bucket: None,
        })
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            return bucket.remove(path);
        }
        fs::remove_file(path)
    }

    /// Returns whether a file is one of the store: neither behind a link to another folder, nor at a path that leads out of the store.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if its folder is missing; others if that cannot be determined.
    pub(crate) fn has(&self, path: &Path) -> io::Result<bool> {
        #[cfg(feature = "shared")]
        if self.bucket.is_some() {
            // Buckets have no links, and names of objects no `..`.
            return Ok(path.starts_with(&self.data));
        }
        let folder = path.parent().unwrap_or(path).canonicalize()?;
        Ok(folder.starts_with(self.data.canonicalize()?))
    }

    /// Returns the files of a table, in all its folders.
    ///
    /// # Errors
    /// Those of a folder that cannot be read: its files may be there. Folders and files that are removed meanwhile are left out.
    pub(crate) fn list(&self, table: &str) -> io::Result<Vec<Found>> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            return bucket.list(&self.data.join(table));
        }
        let (mut found, mut folders) = (Vec::new(), vec![self.data.join(table)]);
        while let Some(folder) = folders.pop() {
            let Some(entries) = unless_missing(fs::read_dir(&folder))? else { continue };
            for entry in entries {
                let path = entry?.path();
                let Some(metadata) = unless_missing(fs::symlink_metadata(&path))? else { continue };
                if metadata.is_dir() {
                    folders.push(path);
                } else {
                    let written = metadata.modified().ok().map(DateTime::<Utc>::from);
                    found.push(Found {
                        path,
                        #[cfg(feature = "shared")]
                        length: metadata.len(),
                        written,
                    });
                }
            }
        }
        Ok(found)
    }

    /// Lengths of all files in bytes, if each would be a request of its own; `None` if not.
    pub(crate) fn lengths(&self) -> io::Result<Option<HashMap<PathBuf, u64>>> {
        #[cfg(feature = "shared")]
        if self.bucket.is_some() {
            let found = Catalog::folders().map(|table| self.list(table)).collect::<io::Result<Vec<_>>>()?;
            return Ok(Some(found.into_iter().flatten().map(|found| (found.path, found.length)).collect()));
        }
        Ok(None)
    }

    /// Name of a file in its bucket; `None` if it is in a folder.
    pub(crate) fn key(&self, path: &Path) -> io::Result<Option<String>> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            return bucket.key(path).map(|key| Some(key.to_string()));
        }
        let _ = path;
        Ok(None)
    }

    /// Path or address of a file by its name in the bucket, or by its absolute path without the first slash.
    pub(crate) fn shown(&self, name: &str) -> String {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            return bucket.shown(name);
        }
        format!("/{name}")
    }
}

/// The result for a file or a folder; `None` if it is missing.
pub(super) fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl OpenFile {
    /// Length in bytes.
    pub(crate) fn length(&self) -> io::Result<u64> {
        match self {
            Self::Local(file) => file.metadata().map(|found| found.len()),
            #[cfg(feature = "shared")]
            Self::Object(object) => Ok(object.length()),
        }
    }

    /// Reads bytes from a position on.
    pub(crate) fn read_exact_at(&self, start: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Local(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(start))?;
                file.read_exact(into)
            }
            #[cfg(feature = "shared")]
            Self::Object(object) => object.read_exact_at(start, into),
        }
    }
}

impl NewFile {
    /// Makes the file durable under its final name.
    pub(crate) fn publish(&mut self) -> io::Result<()> {
        #[cfg(feature = "shared")]
        if let Some(bucket) = &self.bucket {
            let mut bytes = Vec::new();
            self.file.rewind()?;
            self.file.read_to_end(&mut bytes)?;
            let replaces = self.path.extension().is_some_and(|suffix| suffix == REPLACED);
            return bucket.write(&self.path, bytes, replaces);
        }
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
