//! The instants at which the store first saw mentions: the column `first_seen`.
//!
//! ```text
//! days are read ─ ids of their mentions ─▶ rows that the store has of them ─▶ their `first_seen`, instead of the time of this read
//! ```
//!
//! A mention that the store does not have is first seen when it is read, by the service's clock: its `first_seen` is its `as_of`. One
//! that the store has keeps its instant, also if it moves to another day, or was read with other conditions before. Rows that were
//! written before there was such a column have NULL, and so have the rows that replace them, because nobody knows the instant. A
//! profile may have a column of this name itself; the store then has none.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;

use super::coverage::overlap;
use super::files::{self, FileWriter, Layout};
use super::region::{DataFile, Day, Region, Subject};
use super::{Store, only};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Origin, TableSpec};

/// Column with the instant by the service's clock at which the store first saw a mention.
pub(crate) const FIRST_SEEN: &str = "first_seen";

/// Id of a mention, and the instant at which it was first seen, in microseconds since 1970; `None` if that is not known.
type FirstSeen = (String, Option<i64>);

/// True if a store of these mentions has the column. Names differ in more than case for other programs.
pub(crate) fn has_first_seen(mentions: &TableSpec) -> bool {
    mentions
        .columns
        .iter()
        .all(|column| column.origin == Origin::FirstSeen || !column.name.eq_ignore_ascii_case(FIRST_SEEN))
}

/// Mentions that the store has already.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Their instants in microseconds since 1970, by id; `None` for those that are not known.
    known: HashMap<String, Option<i64>>,
    /// Set if mentions could not be read: it is not known of any other mention whether the store has it.
    unreadable: bool,
    /// Identities of the regions that have none of the mentions that were looked for.
    pub(super) without: HashSet<i64>,
}

impl Seen {
    /// True if the store has no mention that may be among those that were read.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty() && !self.unreadable
    }

    /// Adds what was read of some mentions.
    fn add_all(&mut self, found: Result<impl IntoIterator<Item = FirstSeen>>) {
        match found {
            Ok(found) => found.into_iter().for_each(|(id, at)| self.add(id, at)),
            Err(_) => self.unreadable = true,
        }
    }

    fn add(&mut self, id: String, at: Option<i64>) {
        let earliest = |known: &mut Option<i64>| *known = known.zip(at).map(|(known, at)| known.min(at));
        self.known.entry(id).and_modify(earliest).or_insert(at);
    }

    /// Returns mentions that were read, in the columns of a layout, with the instants of those that the store has; `None` if it has
    /// none of them.
    pub(super) fn applied(&self, store: &Store, layout: &Layout, rows: &RecordBatch) -> Result<Option<RecordBatch>> {
        let Some(at) = layout.first_seen.filter(|_| !self.is_empty()) else { return Ok(None) };
        let ids = store.keys(rows)?;
        let Some(read) = rows.column(at).as_primitive_opt::<TimestampMicrosecondType>() else { return Ok(None) };
        if !self.unreadable && !ids.iter().any(|id| self.known.contains_key(id)) {
            return Ok(None);
        }
        let first = ids.iter().enumerate().map(|(row, id)| {
            let read = read.is_valid(row).then(|| read.value(row));
            match self.known.get(id) {
                Some(known) => known.zip(read).map(|(known, read)| known.min(read)),
                None => read.filter(|_| !self.unreadable),
            }
        });
        let first: TimestampMicrosecondArray = first.collect();
        let mut columns = rows.columns().to_vec();
        columns[at] = Arc::new(first.with_timezone("UTC")) as ArrayRef;
        let rows = RecordBatch::try_new(rows.schema(), columns);
        rows.map(Some).map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
    }

    /// Writes a file of mentions that were read as [`applied`](Self::applied) returns them; `None` if the store has none of them.
    pub(super) fn written(
        &self,
        store: &Store,
        subject: &Subject,
        layout: &Layout,
        days: &Range<Day>,
        read: Vec<RecordBatch>,
    ) -> Result<Option<DataFile>> {
        let known = read.iter().map(|rows| self.applied(store, layout, rows)).collect::<Result<Vec<_>>>()?;
        if known.iter().all(Option::is_none) {
            return Ok(None);
        }
        let rows: Vec<RecordBatch> = known.into_iter().zip(read).map(|(known, read)| known.unwrap_or(read)).collect();
        FileWriter::of(store.catalog.storage(), &store.folder(subject), days, layout, &rows)
    }
}

impl Store {
    /// Returns what the store has of mentions of a subject that were read: those of these days, with any conditions, and those that
    /// move there from other days. The mentions are in memory, or in files.
    pub(super) fn seen<'r>(
        &self,
        subject: &Subject,
        days: &[Range<Day>],
        buffered: impl Iterator<Item = &'r RecordBatch>,
        files: impl Iterator<Item = &'r DataFile>,
    ) -> Result<Seen> {
        let mut seen = Seen::default();
        if self.layout.first_seen.is_none() {
            return Ok(seen);
        }
        let known = self.regions(&subject.aid)?;
        let is_read = |region: &Region| days.iter().any(|days| overlap(days, &region.days));
        let (here, elsewhere): (Vec<_>, Vec<_>) = known.iter().partition(|(_, region)| is_read(region));
        for (filters, region) in here {
            let of = Subject { aid: subject.aid.clone(), filters: filters.clone() };
            seen.add_all(self.first_seen_of(&of, region));
        }
        // As in the stamps: a mention that merely matches a condition on another day is not looked for.
        let is_searched = |region: &Region| subject.filters.is_empty() && region.file().is_some();
        let mut elsewhere =
            elsewhere.into_iter().filter(|(filters, region)| filters.is_empty() && is_searched(region)).peekable();
        let (Some(id), Some(_)) = (self.id.as_deref(), elsewhere.peek()) else { return Ok(seen) };
        let mut ids: HashSet<String> = HashSet::new();
        for rows in buffered {
            ids.extend(self.keys(rows)?);
        }
        for file in files {
            let (path, all) = (self.folder(subject).join(&file.path), 0..file.rows);
            ids.extend(files::ids(&self.catalog, &path, file, slice::from_ref(&all), id)?);
        }
        if ids.iter().all(|id| seen.known.contains_key(id)) {
            return Ok(seen);
        }
        for (_, region) in elsewhere {
            self.look_into(&mut seen, subject, region, &ids, id);
        }
        Ok(seen)
    }

    /// Adds those mentions of a region of other days that were read.
    fn look_into(&self, seen: &mut Seen, subject: &Subject, region: &Region, ids: &HashSet<String>, id: &str) {
        let Some(file) = region.file() else { return };
        let path = self.folder(subject).join(&file.path);
        let rows = region.rows_of(&region.days);
        let Ok(found) = files::row_ids(&self.catalog, &path, file, slice::from_ref(&rows), id) else {
            seen.unreadable = true;
            return;
        };
        if !found.iter().flatten().any(|id| ids.contains(id)) {
            seen.without.extend(region.id);
            return;
        }
        let found = self.first_seen_of(subject, region);
        seen.add_all(found.map(|found| found.into_iter().filter(|(id, _)| ids.contains(id))));
    }

    /// Returns the ids of the mentions of a region, and the instants at which they were first seen.
    fn first_seen_of(&self, subject: &Subject, region: &Region) -> Result<Vec<FirstSeen>> {
        let Some(file) = region.file() else { return Ok(Vec::new()) };
        self.check_old(&self.folder(subject).join(&file.path), file)?;
        let rows = region.rows_of(&region.days);
        if let Some(id) = self.id.as_deref()
            && let Some(found) = self.instants(subject, file, &rows, Some(&[id, FIRST_SEEN]))?
        {
            return Ok(found);
        }
        Ok(self.instants(subject, file, &rows, None)?.unwrap_or_default())
    }

    /// Reads ids and instants of some rows. `columns`: the ones that are read; `None`: all, by which mentions without ids are known.
    /// The result is `None` if there are such mentions and not all columns were read.
    fn instants(
        &self,
        subject: &Subject,
        file: &DataFile,
        rows: &Range<u64>,
        columns: Option<&[&str]>,
    ) -> Result<Option<Vec<FirstSeen>>> {
        let (readable, path) = (self.readable(file.schema)?, self.folder(subject).join(&file.path));
        let mut found = Vec::new();
        for batch in files::read_columns(&self.catalog, &path, file, slice::from_ref(rows), columns)? {
            let batch = self.layout.arrange(&only(&batch?, &readable)?)?;
            let lacks_ids = self.layout.id.is_none_or(|id| batch.column(id).null_count() > 0);
            if lacks_ids && columns.is_some() {
                return Ok(None);
            }
            let at = self.layout.first_seen.map(|at| batch.column(at));
            let at = at.and_then(|at| at.as_primitive_opt::<TimestampMicrosecondType>());
            let at = |row: usize| at.filter(|at| at.is_valid(row)).map(|at| at.value(row));
            found.extend(self.keys(&batch)?.into_iter().enumerate().map(|(row, id)| (id, at(row))));
        }
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_instant_counts_unless_one_is_unknown() {
        let mut seen = Seen::default();
        for (id, at) in [("a", Some(3)), ("a", Some(2)), ("a", Some(5)), ("b", Some(1)), ("b", None), ("b", Some(4))] {
            seen.add(id.to_owned(), at);
        }
        assert_eq!((seen.known["a"], seen.known["b"]), (Some(2), None));
    }
}
