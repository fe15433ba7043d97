//! Indexes of the words of stored mentions: which rows of a file may match `match(text, '…')`.
//!
//! ```text
//! data/mentions/2026-06-01-….parquet   mentions
//! data/mentions/2026-06-01-….words     rows by word, of the columns that are indexed
//! ```
//!
//! An index belongs to one file of mentions, which never changes, and is removed with it. It has the digest of that file. A query
//! reads only the rows that it names, and evaluates the condition for them again. An index that is missing, damaged, or of
//! another file or version is not used: the query then reads all rows.
//!
//! Invariant: an index costs or saves time, and never decides rows.

mod file;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::DataType;

use self::file::{IndexFile, IndexWriter, Rows, SEGMENT};
use super::compaction::{Used, files_of};
use super::files::{self, corrupt, failed};
use super::region::{DataFile, Subject};
use super::storage::Storage;
use super::{AID, Store, blocking};
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::memory;
use crate::words::{Sought, Words};

/// Suffix of an index. Its file of mentions has the same name with [`DATA`].
const SUFFIX: &str = "words";
/// Suffix of a file of mentions.
const DATA: &str = "parquet";
/// Name in the catalog of the list of columns that are indexed.
const COLUMNS: &str = "indexed columns";
/// Columns that are indexed unless others are named, as far as there are such.
const USUAL: [&str; 2] = ["title", "text"];
/// Number of rows from which on a file has an index. Fewer are read as fast without.
const FEW: u64 = 256;
/// Number of ranges of rows of a file beyond which an index does not pay. With what is made of them, they take 1 MiB.
const RANGES: usize = 16 << 10;
/// Number of rows between two others that are read as well, because it costs less than to skip them.
const GAP: u64 = 16;

/// Result of indexing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Indexed {
    /// Number of files that were indexed.
    pub files: u64,
    /// Length of their indexes in bytes.
    pub bytes: u64,
    /// Number of indexes that were removed.
    pub removed: u64,
}

/// Rows of a file that may match, as far as an index tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Matching {
    /// Set if an index was looked up.
    pub(crate) indexed: bool,
    /// The rows, in order; `None`: all of them, because no index tells, or so many match that it does not pay.
    pub(crate) rows: Option<Vec<Range<u64>>>,
    /// Number of rows that are not read.
    pub(crate) skipped: u64,
}

/// Texts that a query is looking for in columns of mentions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Search {
    /// Keys in the text of a column.
    Words(String, Sought),
    /// All of them; at least one.
    All(Vec<Search>),
    /// One of them; at least one.
    Any(Vec<Search>),
}

impl Search {
    /// True if all its columns are among these.
    fn is_within(&self, columns: &[String]) -> bool {
        match self {
            Self::Words(column, _) => columns.contains(column),
            Self::All(parts) | Self::Any(parts) => parts.iter().all(|part| part.is_within(columns)),
        }
    }

    /// True if an index has the columns that tell which rows may match.
    fn is_told_by(&self, index: &IndexFile) -> bool {
        match self {
            Self::Words(column, _) => index.has(column),
            Self::All(parts) => parts.iter().any(|part| part.is_told_by(index)),
            Self::Any(parts) => parts.iter().all(|part| part.is_told_by(index)),
        }
    }

    /// Rows of a segment that may match; `None` if the index cannot tell.
    fn rows(&self, index: &mut IndexFile, segment: usize) -> io::Result<Option<Rows>> {
        match self {
            Self::Words(column, sought) => index.rows(column, sought, segment),
            Self::All(parts) => {
                let mut all: Option<Rows> = None;
                for part in parts {
                    if all.as_ref().is_some_and(Rows::is_empty) {
                        break;
                    }
                    let Some(mut rows) = part.rows(index, segment)? else { continue };
                    if let Some(others) = all.take() {
                        rows.keep(&others);
                    }
                    all = Some(rows);
                }
                Ok(all)
            }
            Self::Any(parts) => {
                let mut any = Rows::none();
                for part in parts {
                    match part.rows(index, segment)? {
                        Some(rows) => any.add(&rows),
                        None => return Ok(None),
                    }
                }
                Ok(Some(any))
            }
        }
    }
}

impl Store {
    /// Indexes the words of columns in all files, from now on. Without columns, those that were named before, or the usual ones.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if there is no such column of texts; [`ErrorKind::Store`] if a file cannot be read or written.
    pub(crate) fn index(&self, columns: &[String]) -> Result<Indexed> {
        let texts = self.columns_of_texts();
        if let Some(unknown) = columns.iter().find(|column| !texts.contains(&column.as_str())) {
            let message = format!("mentions have no column of texts `{unknown}`");
            return Err(Error::new(ErrorKind::Query, message).advice(format!("available: {}", texts.join(", "))));
        }
        let mut wanted: Vec<String> = columns.to_vec();
        if wanted.is_empty() {
            wanted = self.indexed_columns()?;
        }
        if wanted.is_empty() {
            wanted = USUAL.iter().filter(|usual| texts.contains(usual)).map(|usual| (*usual).to_owned()).collect();
        }
        if wanted.is_empty() {
            let message = format!("mentions have no column `{}`", USUAL.join("` or `"));
            return Err(Error::new(ErrorKind::Query, message).advice(
                Phrase::from("name the columns ") + Tool::IndexColumns + format!("; available: {}", texts.join(", ")),
            ));
        }
        wanted.sort_unstable();
        wanted.dedup();
        self.catalog.set_cursor(COLUMNS, &serde_json::json!(wanted).to_string())?;
        self.write_indexes(true)
    }

    /// Removes all indexes, and keeps none from now on.
    pub(crate) fn remove_indexes(&self) -> Result<Indexed> {
        self.catalog.set_cursor(COLUMNS, "[]")?;
        let mut indexed = Indexed::default();
        let mut unremoved = None;
        self.for_each_file(|store, path, _| {
            match removed(store.catalog.storage(), &index_of(path)) {
                Ok(removed) => indexed.removed += u64::from(removed),
                // The others go nevertheless.
                Err(error) => unremoved = unremoved.take().or(Some(error)),
            }
            Ok(())
        })?;
        unremoved.map_or(Ok(indexed), Err)
    }

    /// Writes the indexes that are missing, if there are columns to index.
    pub(crate) fn update_indexes(&self) -> Result<Indexed> {
        self.write_indexes(false)
    }

    /// Writes the indexes that are missing, of another file or version, or lack a column. `thorough`: also those that are
    /// damaged, for which all are read.
    fn write_indexes(&self, thorough: bool) -> Result<Indexed> {
        let wanted = self.indexed_columns()?;
        let mut indexed = Indexed::default();
        if wanted.is_empty() {
            return Ok(indexed);
        }
        self.for_each_file(|store, path, file| {
            let readable = store.readable(file.schema)?;
            let columns: BTreeSet<&str> =
                wanted.iter().filter(|column| readable.contains(column)).map(String::as_str).collect();
            let is_there = |mut index: IndexFile| {
                columns.iter().all(|column| index.has(column)) && (!thorough || index.check().is_ok())
            };
            let storage = store.catalog.storage();
            // In a bucket, the others are requests.
            if columns.is_empty()
                || file.rows < FEW
                || IndexFile::open(storage, &index_of(path), file).is_ok_and(is_there)
            {
                return Ok(());
            }
            // A file that is lost or damaged is another command's concern.
            if !storage.length(path).is_ok_and(|length| length == file.bytes) {
                return Ok(());
            }
            if let Some(bytes) = store.write_index(path, file, &columns)? {
                indexed.files += 1;
                indexed.bytes += bytes;
            }
            Ok(())
        })?;
        Ok(indexed)
    }

    /// Looks up the rows of a file among these that may match, on a thread for work that waits for the disk.
    ///
    /// # Errors
    /// Those of [`memory::check`].
    pub(crate) async fn matching(
        self: &Arc<Self>,
        subject: Subject,
        file: Arc<DataFile>,
        search: &Arc<Search>,
        rows: Vec<Range<u64>>,
    ) -> Result<Matching> {
        let (store, search) = (Arc::clone(self), Arc::clone(search));
        let work = move || -> Result<Matching> {
            memory::check()?;
            let matching = store.looked_up(&subject, &file, &search, &rows).unwrap_or_default();
            // A statement that has ended meanwhile reads no rows either.
            memory::check()?;
            store.counters.skipped(matching.skipped);
            Ok(matching)
        };
        blocking(memory::inherited_work(work)).await
    }

    /// As [`matching`](Self::matching); `None` if no index tells, also because the statement has ended.
    fn looked_up(&self, subject: &Subject, file: &DataFile, search: &Search, rows: &[Range<u64>]) -> Option<Matching> {
        let mut index = self.index_for(subject, file, search)?;
        let (mut matching, mut all, mut left): (Vec<Range<u64>>, u64, u64) = (Vec::new(), 0, 0);
        let mut segment: Option<(u64, Rows)> = None;
        // It does not pay to skip the others.
        let too_many = Matching { indexed: true, ..Matching::default() };
        for rows in rows {
            // Rows between those that are used are not read.
            let own = matching.len();
            all += rows.end - rows.start;
            let mut start = rows.start;
            while start < rows.end {
                let number = start / SEGMENT;
                let (first, end) = (number * SEGMENT, rows.end.min((number + 1) * SEGMENT));
                let found = match segment.take().filter(|(of, _)| *of == number) {
                    Some((_, found)) => found,
                    None => search.rows(&mut index, usize::try_from(number).ok()?).ok()??,
                };
                let position = |at: u64| usize::try_from(at - first).ok();
                for row in found.within(position(start)?, position(end)?) {
                    if add(&mut matching, own, first + row as u64).is_none() {
                        return Some(too_many);
                    }
                }
                segment = Some((number, found));
                start = end;
            }
            left += matching[own..].iter().map(|rows| rows.end - rows.start).sum::<u64>();
        }
        if left > all / 2 {
            return Some(too_many);
        }
        Some(Matching { indexed: true, rows: Some(matching), skipped: all - left })
    }

    /// True if a file has an index that tells which rows may match.
    pub(crate) fn is_indexed(&self, subject: &Subject, file: &DataFile, search: &Search) -> bool {
        self.index_for(subject, file, search).is_some()
    }

    /// Opens the index of a file; `None` if it has none that tells which rows may match.
    fn index_for(&self, subject: &Subject, file: &DataFile, search: &Search) -> Option<IndexFile> {
        if !search.is_within(&self.readable(file.schema).ok()?) {
            return None;
        }
        let path = index_of(&self.folder(subject).join(&file.path));
        let index = IndexFile::open(self.catalog.storage(), &path, file).ok()?;
        search.is_told_by(&index).then_some(index)
    }

    /// Describes what is wrong with the index of a file of mentions; `None` if it has none, or nothing is wrong.
    pub(super) fn problem_of_index(&self, path: &Path, file: &DataFile) -> Option<String> {
        let index = index_of(path);
        match IndexFile::open(self.catalog.storage(), &index, file).and_then(|mut index| index.check()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(format!("{}: {error}", index.display())),
            Ok(()) => None,
        }
    }

    /// Columns whose texts may be indexed.
    fn columns_of_texts(&self) -> Vec<&str> {
        let fields = self.layout.schema.fields().iter();
        let texts = fields.filter(|field| field.data_type() == &DataType::Utf8 && field.name() != AID);
        texts.map(|field| field.name().as_str()).collect()
    }

    /// Columns that are indexed, as far as the profile still has them.
    fn indexed_columns(&self) -> Result<Vec<String>> {
        let Some(named) = self.catalog.cursor(COLUMNS)? else { return Ok(Vec::new()) };
        let mut named: Vec<String> = serde_json::from_str(&named).map_err(|_| {
            let message = format!("the store is damaged: invalid value of cursor `{COLUMNS}`");
            let advice = Phrase::from("name the columns ")
                + Tool::IndexColumns
                + ", or end indexing with "
                + Tool::RemoveIndexes;
            Error::new(ErrorKind::Store, message).advice(advice)
        })?;
        let texts = self.columns_of_texts();
        named.retain(|column| texts.contains(&column.as_str()));
        Ok(named)
    }

    /// Calls a function for each file of mentions in use, with its path.
    fn for_each_file(&self, mut of: impl FnMut(&Self, &Path, &DataFile) -> Result<()>) -> Result<()> {
        for subjects in self.sharing()? {
            let Some((any, _)) = subjects.first() else { continue };
            for Used { file, .. } in files_of(&subjects).into_values().flatten() {
                of(self, &self.folder(any).join(&file.path), &file)?;
            }
        }
        Ok(())
    }

    /// Writes the index of a file. Returns its length in bytes; `None` if another process has removed the file or all indexes
    /// meanwhile.
    fn write_index(&self, path: &Path, file: &DataFile, columns: &BTreeSet<&str>) -> Result<Option<u64>> {
        let (storage, index) = (self.catalog.storage(), index_of(path));
        let unwritten = |error: io::Error| failed("write", &index, &error);
        self.check_old(path, file)?;
        let mut writer = IndexWriter::create(storage, &index, file).map_err(unwritten)?;
        let mut words = Words::default();
        for column in columns {
            writer.begin(column);
            files::find(&self.catalog, path, file, &[*column], |batch| {
                let texts = batch.columns().first().map(files::texts).transpose();
                let texts = texts.map_err(|error| corrupt(path, &error))?;
                for row in 0..batch.num_rows() {
                    let text = texts.as_ref().filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row));
                    let words = match text {
                        Some(text) => {
                            words.read(text)?;
                            Some(&words)
                        }
                        None => None,
                    };
                    writer.push(words).map_err(unwritten)?;
                }
                Ok(false)
            })?;
            writer.end().map_err(unwritten)?;
        }
        let bytes = writer.finish().map_err(unwritten)?;
        // Another process may have erased mentions meanwhile: nothing of them may stay.
        let wanted = self.indexed_columns();
        let stays = storage.length(path).is_ok() && wanted.as_ref().is_ok_and(|columns| !columns.is_empty());
        if !stays {
            removed(storage, &index)?;
        }
        wanted.map(|_| stays.then_some(bytes))
    }
}

/// Adds a row, which follows those before, to ranges of rows from a position on; `None` if there are too many ranges.
fn add(ranges: &mut Vec<Range<u64>>, from: usize, row: u64) -> Option<()> {
    match ranges[from..].last_mut().filter(|last| row <= last.end + GAP) {
        Some(last) => last.end = row + 1,
        None => {
            if ranges.len() >= RANGES {
                return None;
            }
            ranges.push(row..row + 1);
        }
    }
    Some(())
}

/// Path of the index of a file of mentions.
fn index_of(data: &Path) -> PathBuf {
    data.with_extension(SUFFIX)
}

/// Path of the file of mentions whose index this is; `None` for other files.
pub(super) fn data_of(index: &Path) -> Option<PathBuf> {
    (index.extension()? == SUFFIX).then(|| index.with_extension(DATA))
}

/// Length in bytes of the index of a file of mentions; zero if it has none. `known`: the lengths of all files, if they were listed.
pub(super) fn bytes_of_index(storage: &Storage, known: Option<&HashMap<PathBuf, u64>>, data: &Path) -> u64 {
    let index = index_of(data);
    let length = match known {
        Some(known) => known.get(&index).copied(),
        None => storage.length(&index).ok(),
    };
    length.unwrap_or_default()
}

/// Removes an index. Returns whether there was one.
fn removed(storage: &Storage, index: &Path) -> Result<bool> {
    match storage.remove(index) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("remove", index, &error)),
    }
}

/// Removes the index of a file of mentions that was removed.
pub(super) fn remove_beside(storage: &Storage, data: &Path) {
    if data.extension().is_some_and(|extension| extension == DATA) {
        // Most files have none; one that stays behind is removed with other unnamed files.
        let _ = storage.remove(&index_of(data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_rows_are_joined_and_bounded() {
        let mut ranges = Vec::new();
        for row in [3, 4, 20, 21, 40] {
            add(&mut ranges, 0, row).expect("few ranges");
        }
        assert_eq!(ranges, [3..22, 40..41]);
        add(&mut ranges, 2, 41).expect("few ranges");
        assert_eq!(ranges, [3..22, 40..41, 41..42], "rows of another part of the file are apart");
        let mut row = 41;
        while ranges.len() < 1 << 14 {
            row += 20;
            add(&mut ranges, 0, row).expect("few ranges");
        }
        assert_eq!(add(&mut ranges, 0, row + 1), Some(()), "the last range grows");
        assert_eq!(add(&mut ranges, 0, row + 40), None, "there are too many ranges");
    }
}
