//! Export of stored mentions as Parquet files, for programs that do not read the catalog.
//!
//! ```text
//! regions without conditions, in order ─▶ files in a folder beside the target ─ all complete ─▶ renamed to the target
//! ```
//!
//! Each mention comes once, as the store has it: rows that were replaced stay out, and so do days that were read with conditions,
//! whose mentions may be a part of a day only. The target appears when it is complete.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use arrow::array::RecordBatch;
use chrono::NaiveDate;

use super::files::{FileWriter, Size, failed};
use super::region::{Day, Subject};
use super::storage::Storage;
use super::{Readers, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::files::private_folder;

/// Length from which on a file is complete, in bytes.
const ENOUGH: u64 = 256 << 20;

/// Mentions to be exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Export {
    /// Saved searches; empty: all.
    pub aids: Vec<String>,
    /// First day, in UTC; `None`: the first one that is stored.
    pub since: Option<NaiveDate>,
    /// Day after the last one, in UTC; `None`: the one after the last one that is stored.
    pub before: Option<NaiveDate>,
}

/// Numbers of exported mentions, days and files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Number of mentions.
    pub mentions: u64,
    /// Number of days of saved searches.
    pub days: u64,
    /// Number of files.
    pub files: u64,
    /// Length of the files, in bytes.
    pub bytes: u64,
    /// Number of days of saved searches that were not exported, because they were read with conditions.
    pub conditional: u64,
}

impl Store {
    /// Writes stored mentions to Parquet files in a new folder, in the order of saved search and time, in the columns of today.
    ///
    /// # Errors
    /// [`ErrorKind::Output`] if the folder has files; [`ErrorKind::Query`] if no day of a named saved search is stored;
    /// [`ErrorKind::Store`] if a file cannot be read or written.
    pub(crate) fn export(&self, what: &Export, target: &Path) -> Result<Exported> {
        let stored = self.catalog.aids()?;
        if let Some(missing) = what.aids.iter().find(|aid| !stored.contains(aid)) {
            let error = Error::new(ErrorKind::Query, format!("no day of saved search {missing} is stored"));
            return Err(error.advice(format!("stored: {}", stored.join(", "))));
        }
        let taken = || match fs::read_dir(target) {
            Ok(mut entries) => Ok(entries.next().is_some()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("write to", target, &error)),
        };
        if taken()? {
            let error = Error::new(ErrorKind::Output, format!("{} is not empty", target.display()));
            return Err(error.advice("export to a new folder"));
        }
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        private_folder(parent).map_err(|error| failed("write to", parent, &error))?;
        let folder = tempfile::Builder::new().prefix(".export-").tempdir_in(parent);
        let folder = folder.map_err(|error| failed("write to", parent, &error))?;
        let exported = self.export_to(what, &stored, folder.path())?;
        fs::rename(folder.path(), target).map_err(|error| failed("write", target, &error))?;
        Ok(exported)
    }

    fn export_to(&self, what: &Export, stored: &[String], folder: &Path) -> Result<Exported> {
        let day = |date: Option<NaiveDate>, otherwise: Day| date.map_or(otherwise, |date| date.to_epoch_days());
        let wanted: Range<Day> = day(what.since, Day::MIN)..day(what.before, Day::MAX);
        let storage = Storage::of_folder(folder.to_owned());
        let mut output = Output { store: self, storage, file: None, exported: Exported::default() };
        for aid in stored.iter().filter(|aid| what.aids.is_empty() || what.aids.contains(aid)) {
            let mut readers = Readers::new();
            for (filters, region) in self.regions(aid)?.iter() {
                let days = region.days.start.max(wanted.start)..region.days.end.min(wanted.end);
                if days.is_empty() {
                    continue;
                }
                let count = days.len() as u64;
                if !filters.is_empty() {
                    output.exported.conditional += count;
                    continue;
                }
                output.exported.days += count;
                let subject = Subject { aid: aid.clone(), filters: filters.clone() };
                for batch in self.read(&mut readers, &subject, &region.part(days))? {
                    output.write(&batch)?;
                }
                output.complete(ENOUGH)?;
            }
        }
        output.complete(0)?;
        Ok(output.exported)
    }
}

/// The files of an export.
struct Output<'s> {
    store: &'s Store,
    /// The folder of the files, which is on this machine.
    storage: Storage,
    /// The file that is being written.
    file: Option<FileWriter>,
    exported: Exported,
}

impl Output<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let name = format!("mentions-{:05}.parquet", self.exported.files + 1);
                self.file.insert(FileWriter::named(
                    &self.storage,
                    self.storage.data(),
                    name,
                    &self.store.layout,
                    Size::Large,
                )?)
            }
        };
        self.exported.mentions += batch.num_rows() as u64;
        file.write(batch)
    }

    /// Completes the file that is being written, if it has a length.
    fn complete(&mut self, enough: u64) -> Result<()> {
        if let Some(file) = self.file.take_if(|file| file.bytes() >= enough) {
            self.exported.bytes += file.finish()?.bytes;
            self.exported.files += 1;
        }
        Ok(())
    }
}
