//! Stored mentions that the service has deleted since. They are kept if the session requests it.
//!
//! A mention counts as deleted if its stored day is read again without it, and no other stored day has it; a changed time
//! may have moved it to another day. If a deleted mention is read again, it no longer counts as deleted.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, TimestampMicrosecondArray};
use chrono::{DateTime, Utc};

use super::coverage::day_of;
use super::files::{self, FileWriter, Layout};
use super::region::{DataFile, Day, Deletions, Region, Subject};
use super::stamps::{Group, Stamp};
use super::{Readers, Store, Written, only, opened};
use crate::error::{Error, ErrorKind, Result};

impl Store {
    /// Computes how the deleted mentions of a saved search change when regions are replaced. `known`: all its regions. Without
    /// ids, no mention is known to be deleted.
    pub(super) fn deletions(
        &self,
        subject: &Subject,
        known: &[Region],
        groups: &[Group<'_>],
        as_of: DateTime<Utc>,
        keeps: bool,
        written: &mut Written,
    ) -> Result<Deletions> {
        let before = self.catalog.deleted_files(&subject.aid)?;
        let mut deletions = Deletions { known: before.iter().map(|(id, ..)| *id).collect(), ..Deletions::default() };
        let Some(id) = self.id.as_deref().filter(|_| keeps || !before.is_empty()) else { return Ok(deletions) };
        let mut present: HashSet<String> = HashSet::new();
        present.extend(self.ids(subject, groups.iter().flat_map(|(_, new)| new).copied(), id)?);
        for (file_id, file, stamp) in before {
            // Files that cannot be read, or have other ids, stay as they are.
            if !self.readable(file.schema)?.iter().any(|column| column == id) {
                continue;
            }
            let Ok(rows) = self.read_deleted(&file) else { continue };
            let absent = rows.iter().map(|rows| self.deleted.without(rows, &present)).collect::<Result<Vec<_>>>()?;
            let left: usize = absent.iter().map(RecordBatch::num_rows).sum();
            if file.rows > left as u64 {
                deletions.ended.push(file_id);
                deletions.added.extend(self.write_deleted(&absent, written)?.map(|file| (file, stamp)));
            }
        }
        if keeps {
            let missing = self.missing(subject, known, groups, present)?;
            let rows = missing.iter().map(|rows| self.as_deleted(rows, as_of)).collect::<Result<Vec<_>>>()?;
            deletions.added.extend(self.write_deleted(&rows, written)?.map(|file| (file, Some(Stamp::NOW))));
        }
        Ok(deletions)
    }

    /// Returns the mentions of replaced days that are neither `present` there now, nor in any other region.
    fn missing(
        &self,
        subject: &Subject,
        known: &[Region],
        groups: &[Group<'_>],
        mut present: HashSet<String>,
    ) -> Result<Vec<RecordBatch>> {
        let (mut missing, mut readers) = (Vec::new(), Readers::new());
        for (old, new) in groups {
            let replaced = |day: Day| new.iter().any(|region| region.days.contains(&day));
            for region in old {
                // What cannot be read is dropped with its region.
                for stays in region.parts(|day| !replaced(day)) {
                    present.extend(
                        self.ids(subject, [&stays], self.id.as_deref().unwrap_or_default()).into_iter().flatten(),
                    );
                }
                for gone in region.parts(replaced) {
                    for rows in self.read(&mut readers, subject, &gone).into_iter().flatten() {
                        let rows = self.layout.without(&rows, &present)?;
                        missing.extend((rows.num_rows() > 0).then_some(rows));
                    }
                }
            }
        }
        if missing.is_empty() {
            return Ok(missing);
        }
        let replaced: HashSet<Option<i64>> = groups.iter().flat_map(|(old, _)| old).map(|region| region.id).collect();
        let others = known.iter().filter(|region| !replaced.contains(&region.id));
        let id = self.id.as_deref().unwrap_or_default();
        for region in others {
            present.extend(self.ids(subject, [region], id).into_iter().flatten());
        }
        missing.iter().map(|rows| self.layout.without(rows, &present)).collect()
    }

    /// Returns the ids of the mentions of regions. Each file is opened once.
    fn ids<'r>(
        &self,
        subject: &Subject,
        regions: impl IntoIterator<Item = &'r Region>,
        id: &str,
    ) -> Result<Vec<String>> {
        let mut rows: BTreeMap<&str, (&DataFile, Vec<Range<u64>>)> = BTreeMap::new();
        for region in regions {
            if let Some(file) = region.file() {
                rows.entry(&file.path).or_insert_with(|| (file, Vec::new())).1.push(region.rows_of(&region.days));
            }
        }
        let mut ids = Vec::new();
        for (path, (file, mut rows)) in rows {
            rows.sort_unstable_by_key(|rows| rows.start);
            ids.extend(files::ids(&self.catalog, &self.folder(subject).join(path), file, &rows, id)?);
        }
        Ok(ids)
    }

    /// Returns mentions in the columns of deleted ones.
    fn as_deleted(&self, rows: &RecordBatch, at: DateTime<Utc>) -> Result<RecordBatch> {
        let arranged = self.deleted.arrange(rows)?;
        let mut columns = arranged.columns().to_vec();
        columns.pop();
        let deleted_at = TimestampMicrosecondArray::from_value(at.timestamp_micros(), rows.num_rows());
        columns.push(Arc::new(deleted_at.with_timezone("UTC")) as ArrayRef);
        RecordBatch::try_new(arranged.schema(), columns)
            .map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
    }

    pub(super) fn write_deleted(&self, rows: &[RecordBatch], written: &mut Written) -> Result<Option<DataFile>> {
        let times = rows.iter().map(|rows| self.deleted.times(rows)).collect::<Result<Vec<_>>>()?.concat();
        let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return Ok(None) };
        let days = day_of(*first)..day_of(*last).saturating_add(1);
        let folder = self.catalog.folder_of_deleted();
        let file = FileWriter::of(self.catalog.storage(), &folder, &days, &self.deleted, rows)?;
        written.files.extend(file.iter().map(|file| folder.join(&file.path)));
        Ok(file)
    }

    /// Returns the files of deleted mentions of all saved searches.
    pub(crate) fn deleted_files(&self) -> Result<Vec<DataFile>> {
        let mut all = Vec::new();
        for aid in self.catalog.aids_with_deleted()? {
            all.extend(self.catalog.deleted_files(&aid)?.into_iter().map(|(_, file, _)| file));
        }
        Ok(all)
    }

    /// Reads a file of deleted mentions, in the columns of [`Self::deleted_layout`].
    pub(crate) fn read_deleted(&self, file: &DataFile) -> Result<Vec<RecordBatch>> {
        self.deleted_rows(file)?.collect()
    }

    /// Opens a file of deleted mentions, and returns them as [`read_deleted`](Self::read_deleted), batch by batch.
    pub(super) fn deleted_rows(
        &self,
        file: &DataFile,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let mut readable = self.readable(file.schema)?;
        readable.extend(self.deleted.schema.fields().last().map(|field| field.name().clone()));
        let path = self.catalog.folder_of_deleted().join(&file.path);
        self.check_old(&path, file)?;
        let rows = files::read_rows(&self.catalog, &path, file, std::slice::from_ref(&(0..file.rows)))?;
        let layout = self.deleted.clone();
        Ok(rows.map(move |batch| layout.arrange(&only(&batch?, &readable)?)))
    }

    /// All deleted mentions, file by file. A file is opened when the one before has been read.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the catalog cannot be read; those of files are items.
    pub(crate) fn deleted(self: &Arc<Self>) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let store = Arc::clone(self);
        Ok(self.deleted_files()?.into_iter().flat_map(move |file| opened(store.deleted_rows(&file))))
    }

    /// Columns of deleted mentions: those of files, and the instant at which each was first missing.
    pub(crate) fn deleted_layout(&self) -> &Layout {
        &self.deleted
    }
}

impl Layout {
    /// Returns the mentions of a batch whose ids are not among these.
    fn without(&self, batch: &RecordBatch, ids: &HashSet<String>) -> Result<RecordBatch> {
        let Some(id) = self.id else { return Ok(batch.clone()) };
        let failed = |error: arrow::error::ArrowError| Error::new(ErrorKind::Store, error.to_string());
        let texts = files::texts(batch.column(id)).map_err(failed)?;
        let absent: BooleanArray = texts.iter().map(|id| id.map(|id| !ids.contains(id))).collect();
        arrow::compute::filter_record_batch(batch, &absent).map_err(failed)
    }
}
