//! Erases mentions, so that nothing of them is left in the folder of the store.
//!
//! ```text
//! regions lose days or rows ─▶ files with such rows are written again ─▶ all files without regions are removed
//!                                                                   └─▶ responses are removed, the catalog is rewritten
//! ```
//!
//! No grace period applies: a query that was about to open a file fails. What the service still has is stored again when its
//! day is read next. Retention takes the first two steps only: the files that it replaces stay for the grace period.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::DataType;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::catalog::Change;
use super::compaction::{Compacted, Merging, Used, files_of};
use super::coverage::{day_of, start_of};
use super::files::{self, AID, Layout};
use super::region::{DataFile, Day, Deletions, Filters, Region, Subject};
use super::{ATTEMPTS, Store, Written};
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};

/// Beginning of the names of columns that identify an author.
const AUTHOR: &str = "author";

/// Mentions to be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Erase {
    /// Those with this text in a column whose name begins with `author`: an id, a handle or a name.
    Author(String),
    /// Those with this id.
    Id(String),
    /// Those of the days before a date, in UTC.
    Before(NaiveDate),
}

/// Numbers of erased mentions, days and files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erased {
    /// Number of mentions.
    pub mentions: u64,
    /// Number of mentions that the service had deleted, and that were kept.
    pub deleted: u64,
    /// Number of days of saved searches that have fewer mentions now, or are no longer stored.
    pub days: u64,
    /// Number of files that were written again without them.
    pub rewritten: u64,
    /// Number of files that were removed.
    pub removed: u64,
}

impl Erased {
    /// The sums of both numbers.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            mentions: self.mentions + other.mentions,
            deleted: self.deleted + other.deleted,
            days: self.days + other.days,
            rewritten: self.rewritten + other.rewritten,
            removed: self.removed + other.removed,
        }
    }
}

impl Store {
    /// Erases mentions of all saved searches, or of one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if a file cannot be read, written or removed, files have no column that tells, or another process keeps
    /// the catalog from being rewritten. What was done until then stays done; the call can be repeated.
    pub(crate) fn erase(
        &self,
        aid: Option<&str>,
        what: &Erase,
        now: DateTime<Utc>,
        settling: TimeDelta,
    ) -> Result<Erased> {
        // What other processes are reading or merging may have these mentions.
        self.catalog.begin_erasure()?;
        self.discard_lost()?;
        let mut erased = self.rewrite_without(aid, what, now, settling)?;
        let removed = self.remove_unused(None);
        // What can be erased is, whether all files could be removed or not.
        let purged = self.catalog.purge();
        erased.removed = removed?;
        purged.map(|()| erased)
    }

    /// Removes the days before a date, so that no query finds them. Replaced files stay for the grace period, so that queries of
    /// other processes do not fail.
    ///
    /// # Errors
    /// Those of [`erase`](Self::erase), but for those of rewriting the catalog.
    pub(crate) fn retain_from(&self, date: NaiveDate, now: DateTime<Utc>, settling: TimeDelta) -> Result<Erased> {
        let first = start_of(date.to_epoch_days());
        let mut is_older = self.deleted_files()?.iter().any(|file| file.times.0 < first);
        for aid in self.catalog.aids()? {
            is_older = is_older || self.regions(&aid)?.iter().any(|(_, region)| start_of(region.days.start) < first);
        }
        match is_older {
            true => self.rewrite_without(None, &Erase::Before(date), now, settling),
            false => Ok(Erased::default()),
        }
    }

    /// Removes mentions from regions, and writes the files that have such rows again without them. If another process changes them, or
    /// begins an erasure, that is repeated for what is left.
    fn rewrite_without(
        &self,
        aid: Option<&str>,
        what: &Erase,
        now: DateTime<Utc>,
        settling: TimeDelta,
    ) -> Result<Erased> {
        let mut erased = Erased::default();
        let before = self.counts(aid)?;
        let values = self.values_of(what)?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.try_rewrite_without(aid, what, &values, (now, settling), &mut erased) {
                Err(error) if error.may_pass() && attempts < ATTEMPTS => {}
                done => {
                    done?;
                    break;
                }
            }
        }
        let after = self.counts(aid)?;
        for (key, mentions) in &before {
            let left = after.get(key);
            erased.mentions += mentions - left.copied().unwrap_or_default().min(*mentions);
            erased.days += u64::from(left != Some(mentions));
        }
        Ok(erased)
    }

    /// As [`rewrite_without`](Self::rewrite_without), once. `values`: those by which conditions may name what is erased. Adds the numbers
    /// of files and of deleted mentions.
    fn try_rewrite_without(
        &self,
        aid: Option<&str>,
        what: &Erase,
        values: &BTreeSet<String>,
        (now, settling): (DateTime<Utc>, TimeDelta),
        erased: &mut Erased,
    ) -> Result<()> {
        self.discard_unreadable(values)?;
        if let Erase::Before(date) = what {
            self.cut(aid, date.to_epoch_days())?;
        }
        let (today, erasures) = (day_of(now.timestamp_micros()), self.catalog.erasures()?);
        let merging = Merging { store: self, today, settling, erasures };
        for subjects in self.sharing()? {
            let Some((any, _)) = subjects.first() else { continue };
            for (version, files) in files_of(&subjects) {
                let Some(layout) = self.layout_of(any, version)? else { continue };
                let keep = |layout: &Layout, batch: &RecordBatch| match what {
                    // Regions have lost these days.
                    Erase::Before(_) => Ok(BooleanArray::from(vec![true; batch.num_rows()])),
                    _ => layout.not_matching(batch, aid, what),
                };
                let chosen = match what {
                    Erase::Before(_) => {
                        let cut = files.into_iter().filter(|used| used.mentions < used.file.rows);
                        self.intact(any, cut.collect())?
                    }
                    // Rows without a region count as well.
                    _ => {
                        let matching = |used: Used| {
                            let matches = self.matches(any, &used.file, &layout, aid, what);
                            matches.map(|matches| matches.then_some(used))
                        };
                        files.into_iter().map(matching).filter_map(Result::transpose).collect::<Result<_>>()?
                    }
                };
                let chosen: HashMap<String, Arc<DataFile>> =
                    chosen.into_iter().map(|used| (used.file.path.clone(), used.file)).collect();
                if !chosen.is_empty() {
                    let mut compacted = Compacted::default();
                    if !merging.merge(&subjects, &chosen, &layout, Some(&keep), &mut compacted)? {
                        return Err(busy());
                    }
                    erased.rewritten += compacted.merged;
                }
            }
        }
        erased.deleted += self.erase_deleted(aid, what)?;
        Ok(())
    }

    /// Number of mentions of each stored day.
    fn counts(&self, aid: Option<&str>) -> Result<BTreeMap<(String, Filters, Day), u64>> {
        let mut counts = BTreeMap::new();
        for of in self.catalog.aids()?.into_iter().filter(|of| aid.is_none_or(|aid| aid == of)) {
            for (filters, region) in self.catalog.regions(&of)? {
                let days = region.days.clone().zip(region.counts.iter().copied());
                counts.extend(days.map(|(day, count)| ((of.clone(), filters.clone(), day), count)));
            }
        }
        Ok(counts)
    }

    /// Returns the values by which conditions may name what is erased: the given one, and of an author also all others in the
    /// columns that identify an author.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if no mention has the given value, but some have one that differs by case or a leading `@`; those of
    /// files that cannot be read.
    fn values_of(&self, what: &Erase) -> Result<BTreeSet<String>> {
        let author = match what {
            Erase::Before(_) => return Ok(BTreeSet::new()),
            Erase::Id(id) => return Ok([id.clone()].into()),
            Erase::Author(author) => author,
        };
        let (mut values, mut similar) = (BTreeSet::new(), BTreeSet::new());
        let mut add = |layout: &Layout, batch: &RecordBatch| -> Result<()> {
            let compared = layout.compared(what);
            let failed = |error: arrow::error::ArrowError| Error::new(ErrorKind::Store, error.to_string());
            let columns = compared.iter().map(|at| files::texts(batch.column(*at)).map_err(failed));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            for (row, stays) in layout.not_matching(batch, None, what)?.values().iter().enumerate() {
                let of_row = columns.iter().filter(|column| column.is_valid(row)).map(|column| column.value(row));
                match stays {
                    false => values.extend(of_row.map(str::to_owned)),
                    true => similar.extend(of_row.filter(|value| are_similar(value, author)).map(str::to_owned)),
                }
            }
            Ok(())
        };
        for subjects in self.sharing()? {
            let Some((any, _)) = subjects.first() else { continue };
            for (version, used) in files_of(&subjects) {
                let Some(layout) = self.layout_of(any, version)? else { continue };
                let compared = layout.compared(what).into_iter().map(|at| layout.schema.field(at).name().as_str());
                let columns: Vec<&str> = [AID].into_iter().chain(compared).collect();
                for Used { file, .. } in used {
                    files::find(&self.catalog, &self.folder(any).join(&file.path), &file, &columns, |batch| {
                        add(&layout, &layout.arrange(&batch)?).map(|()| false)
                    })?;
                }
            }
        }
        for file in self.deleted_files()? {
            for rows in self.read_deleted(&file)? {
                add(self.deleted_layout(), &rows)?;
            }
        }
        if values.is_empty() && !similar.is_empty() {
            let similar: Vec<String> = similar.iter().map(|value| format!("`{value}`")).collect();
            let what = format!("no stored mention by author `{author}`; similar: {}", similar.join(", "));
            return Err(Error::new(ErrorKind::Query, what).advice("name the author as it is stored"));
        }
        values.insert(author.clone());
        Ok(values)
    }

    /// Removes regions that cannot be written again: those that are not whole, those of a profile with another time column, and
    /// those whose conditions have one of these values.
    fn discard_unreadable(&self, values: &BTreeSet<String>) -> Result<()> {
        let mut ids = self.catalog.broken()?;
        for (subject, regions) in self.sharing()?.into_iter().flatten() {
            let named = subject.filters.0.values().flatten().any(|value| values.contains(value));
            for region in regions {
                let readable = match region.file() {
                    Some(file) => self.layout_of(&subject, file.schema)?.is_some(),
                    None => true,
                };
                ids.extend(region.id.filter(|_| named || !readable));
            }
        }
        self.catalog.discard(&ids)
    }

    /// Removes all days before one.
    fn cut(&self, aid: Option<&str>, before: Day) -> Result<()> {
        self.catalog.forget(aid, before)?;
        let mut cut: Vec<(Subject, Vec<i64>, Vec<Region>)> = Vec::new();
        for (subject, regions) in self.sharing()?.into_iter().flatten() {
            if aid.is_some_and(|aid| aid != subject.aid) {
                continue;
            }
            let begun: Vec<Region> = regions
                .iter()
                .filter(|region| region.days.start < before)
                .map(|region| match subject.filters.is_empty() {
                    true => self.catalog.with_stamps(region)?.ok_or_else(busy),
                    false => Ok(region.clone()),
                })
                .collect::<Result<_>>()?;
            let ids = begun.iter().filter_map(|region| region.id).collect();
            let left: Vec<Region> = begun.iter().map(|region| region.part(before..region.days.end)).collect();
            if !left.is_empty() {
                cut.push((subject, ids, left));
            }
        }
        let changes = cut.iter().map(|(subject, replaced, with)| Change { subject, replaced, with, deletions: None });
        match self.catalog.replace_all(&changes.collect::<Vec<_>>())?.iter().all(|done| *done) {
            true => Ok(()),
            false => Err(busy()),
        }
    }

    /// True if a file has a row to be erased, whether a region has it or not.
    fn matches(
        &self,
        subject: &Subject,
        file: &DataFile,
        layout: &Layout,
        aid: Option<&str>,
        what: &Erase,
    ) -> Result<bool> {
        if layout.compared(what).is_empty() {
            let message = format!("{}: stored with an earlier profile, which has no such column", file.path);
            return Err(Error::new(ErrorKind::Store, message).advice(
                Phrase::from("erase its days with ") + Tool::EraseBefore + ", or read them again with " + Tool::Rescan,
            ));
        }
        let compared = layout.compared(what).into_iter().map(|at| layout.schema.field(at).name().as_str());
        let columns: Vec<&str> = [AID].into_iter().chain(compared).collect();
        let path = self.folder(subject).join(&file.path);
        // Damage could hide a mention.
        self.check_old(&path, file)?;
        files::find(&self.catalog, &path, file, &columns, |batch| {
            let batch = layout.arrange(&batch)?;
            Ok(layout.without_matching(&batch, aid, what)?.num_rows() < batch.num_rows())
        })
    }

    /// Erases mentions that the service had deleted. Returns their number.
    fn erase_deleted(&self, aid: Option<&str>, what: &Erase) -> Result<u64> {
        let mut erased = 0;
        for of in self.catalog.aids_with_deleted()?.into_iter().filter(|of| aid.is_none_or(|aid| aid == of)) {
            let subject = Subject { aid: of, filters: Filters::default() };
            let files = self.catalog.deleted_files(&subject.aid)?;
            let mut written = Written::to(&self.catalog);
            let known = files.iter().map(|(id, ..)| *id).collect();
            let mut deletions = Deletions { known, ..Deletions::default() };
            for (id, file, stamp) in files {
                let rows = self.read_deleted(&file)?;
                let left = rows.iter().map(|rows| self.deleted_layout().without_matching(rows, aid, what));
                let left = left.collect::<Result<Vec<_>>>()?;
                let kept = left.iter().map(|rows| rows.num_rows() as u64).sum::<u64>();
                if kept < file.rows {
                    erased += file.rows - kept;
                    deletions.ended.push(id);
                    deletions.added.extend(self.write_deleted(&left, &mut written)?.map(|file| (file, stamp)));
                }
            }
            if !deletions.ended.is_empty() {
                if !self.catalog.replace(&subject, &[], &[], Some(&deletions))? {
                    return Err(busy());
                }
                written.keep();
            }
        }
        Ok(erased)
    }
}

/// True if names differ only by case or a leading `@`.
fn are_similar(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.strip_prefix('@').unwrap_or(name).to_lowercase();
    plain(one) == plain(other)
}

fn busy() -> Error {
    Error::new(ErrorKind::Store, "another process is writing to the store").advice("run the command again").passing()
}

impl Layout {
    /// Positions of the columns that tell whether a mention is to be erased.
    fn compared(&self, what: &Erase) -> BTreeSet<usize> {
        match what {
            Erase::Id(_) => self.id.into_iter().collect(),
            Erase::Before(_) => [self.time].into(),
            Erase::Author(_) => {
                let fields = self.schema.fields().iter().enumerate();
                let named = fields.filter(|(_, field)| field.name().starts_with(AUTHOR));
                named.filter(|(_, field)| *field.data_type() == DataType::Utf8).map(|(at, _)| at).collect()
            }
        }
    }

    /// Returns the rows of a batch that are not to be erased.
    fn without_matching(&self, batch: &RecordBatch, aid: Option<&str>, what: &Erase) -> Result<RecordBatch> {
        let kept = self.not_matching(batch, aid, what)?;
        filter_record_batch(batch, &kept).map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
    }

    /// Tells which rows of a batch are not to be erased.
    fn not_matching(&self, batch: &RecordBatch, aid: Option<&str>, what: &Erase) -> Result<BooleanArray> {
        let failed = |error: arrow::error::ArrowError| Error::new(ErrorKind::Store, error.to_string());
        let texts = |column: &ArrayRef| -> Result<StringArray> { files::texts(column).map_err(failed) };
        let mut matching = vec![false; batch.num_rows()];
        match what {
            Erase::Before(date) => {
                let before = start_of(date.to_epoch_days());
                matching = self.times(batch)?.iter().map(|time| *time < before).collect();
            }
            Erase::Author(text) | Erase::Id(text) => {
                for at in self.compared(what) {
                    for (matches, value) in matching.iter_mut().zip(&texts(batch.column(at))?) {
                        *matches |= value == Some(text.as_str());
                    }
                }
            }
        }
        // `aid` is the first column.
        if let (Some(aid), Some(column)) = (aid, batch.columns().first()) {
            for (matches, of) in matching.iter_mut().zip(&texts(column)?) {
                *matches &= of == Some(aid);
            }
        }
        Ok(matching.into_iter().map(|matches| !matches).collect::<Vec<bool>>().into())
    }
}
