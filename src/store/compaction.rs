//! Moves regions to fewer and larger files, in the order of saved search and time.
//!
//! ```text
//! files to merge ─ their regions in order ─▶ new files ─▶ one transaction: regions name their new rows
//! ```
//!
//! A merge reads its files and writes as much again. Readers of the old files are not disturbed, because these stay for the
//! grace period. Regions that another process replaces meanwhile stay replaced; their rows in the new file are then named by
//! a delete file. Adjacent regions of a month of the past become one. Filtered regions share files only with their own kind.
//!
//! Of the processes that share a store, the one with the lease merges. Its commit compares the lease, so that a process which was
//! stopped for longer than its lease moves nothing that the next one has read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use chrono::{DateTime, TimeDelta, Utc};

use super::catalog::{Change, FileColumn};
use super::coverage::{day_of, last_seen, settled_days};
use super::files::{FileReader, FileWriter, Layout, Size, corrupt};
use super::filling::{DAILY, blocking, month_of};
use super::index::Indexed;
use super::lease::{Leased, Work};
use super::region::{DataFile, Day, Region, Rows, Subject};
use super::{ATTEMPTS, Store, Written};
use crate::error::{Error, ErrorKind, Result};

/// Size from which on a file is not merged with others, in bytes.
const SMALL: u64 = 16 << 20;
/// Size at which a new file is complete, in bytes. A region stays in one file.
const ENOUGH: u64 = 48 << 20;
/// Number of small files that the end of a sync leaves as they are.
const FEW: usize = 8;
/// Size of the files that the end of a sync merges, in bytes.
const AT_ONCE: u64 = 64 << 20;
/// Size below which a file is tiny, in bytes.
const TINY: u64 = 256 << 10;
/// Number of tiny files that a query leaves as they are.
const MANY: usize = 64;
/// Size of the tiny files that a query merges, in bytes: this takes less than a second.
const ON_THE_WAY: u64 = 16 << 20;

/// Extent of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All files that are small, or of which a tenth of the rows is deleted.
    All,
    /// If more than a few files are small: the smallest, up to a size.
    Bounded,
    /// If many files are tiny: the smallest, up to a size.
    Tiny,
}

/// Result of a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Number of files that were merged.
    pub merged: u64,
    /// Number of files that were written instead.
    pub written: u64,
    /// Length of the files that were written, in bytes.
    pub bytes: u64,
    /// Number by which the stored parts of saved searches decreased.
    pub fewer: u64,
    /// Number of files that were deleted, because nothing has used them for a while.
    pub removed: u64,
    /// Files that were indexed.
    pub indexed: Indexed,
}

/// A file, and how much of it is in use.
#[derive(Debug, Clone)]
pub(super) struct Used {
    pub(super) file: Arc<DataFile>,
    pub(super) mentions: u64,
}

/// Saved searches, with their regions, that may share files.
pub(super) type Group = Vec<(Subject, Vec<Region>)>;

/// Tells which rows of a batch stay, in the columns of a layout.
pub(super) type Keep<'k> = &'k dyn Fn(&Layout, &RecordBatch) -> Result<BooleanArray>;

impl Store {
    /// Merges small files. Nothing is indexed or removed. If mentions are erased meanwhile, it begins anew.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if files cannot be read or written. What was merged stays merged.
    pub(crate) fn merge_small(&self, now: DateTime<Utc>, settling: TimeDelta, extent: Extent) -> Result<Compacted> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let erasures = self.catalog.erasures()?;
            let has_erased = || self.catalog.erasures().is_ok_and(|later| later != erasures);
            match self.try_merge_small(now, settling, extent, erasures) {
                Err(error) if error.may_pass() && attempts < ATTEMPTS && has_erased() => {}
                done => return done,
            }
        }
    }

    /// As [`merge_small`](Self::merge_small), with the number of erasures so far.
    fn try_merge_small(
        &self,
        now: DateTime<Utc>,
        settling: TimeDelta,
        extent: Extent,
        erasures: i64,
    ) -> Result<Compacted> {
        let mut compacted = Compacted::default();
        if extent == Extent::All {
            self.discard_lost()?;
        }
        let today = day_of(now.timestamp_micros());
        let merging = Merging { store: self, today, settling, erasures };
        for subjects in self.sharing()? {
            for (version, files) in files_of(&subjects) {
                let Some((any, _)) = subjects.first() else { continue };
                let chosen = chosen_intact(files, extent, |files| self.intact(any, files))?;
                if let Some(layout) = self.layout_of(any, version)?.filter(|_| !chosen.is_empty()) {
                    merging.merge(&subjects, &chosen, &layout, None, &mut compacted)?;
                }
            }
        }
        Ok(compacted)
    }

    /// Merges tiny files if there are many of them, so that a store which only queries fill does not consist of them. Of the processes
    /// that share a store, one at a time merges.
    pub(super) async fn merge_tiny(self: &Arc<Self>, now: DateTime<Utc>, settling: TimeDelta) -> Result<()> {
        let store = Arc::clone(self);
        let tiny = blocking(move || store.catalog.files_below(TINY)).await?;
        if tiny <= MANY as u64 {
            return Ok(());
        }
        let Leased::Here(lease) = self.lease(&Work::Merge).await? else { return Ok(()) };
        let store = Arc::clone(self);
        let work = move || -> Result<()> {
            // Of queries that end together, one merges.
            let Ok(_merging) = store.merging.try_lock() else { return Ok(()) };
            store.merge_small(now, settling, Extent::Tiny)?;
            let swept = store.sweep(now);
            store.update_indexes()?;
            swept.map(drop)
        };
        // The lease is renewed for as long as the work goes on, even if nobody waits for it any longer.
        let (lease, merged) = blocking(move || Ok((lease, work()))).await?;
        lease.release().await;
        merged
    }

    /// Returns all regions in the order of saved search and time, in groups that may share files.
    pub(super) fn sharing(&self) -> Result<Vec<Group>> {
        let mut subjects: BTreeMap<Subject, Vec<Region>> = BTreeMap::new();
        for aid in self.catalog.aids()? {
            for (filters, region) in self.catalog.regions(&aid)? {
                subjects.entry(Subject { aid: aid.clone(), filters }).or_default().push(region);
            }
        }
        let (filtered, all): (Vec<_>, Vec<_>) = subjects.into_iter().partition(|(of, _)| !of.filters.is_empty());
        Ok([all].into_iter().chain(filtered.into_iter().map(|subject| vec![subject])).collect())
    }

    /// Returns those files of a saved search that are there and have their lengths.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if that cannot be determined.
    pub(super) fn intact(&self, subject: &Subject, files: Vec<Used>) -> Result<Vec<Used>> {
        let folder = self.folder(subject);
        let place = |used: &Used| (folder.join(&used.file.path), used.file.bytes);
        let lost = self.lost(&files.iter().map(place).collect())?;
        Ok(files.into_iter().filter(|used| !lost.contains(&place(used))).collect())
    }

    /// The columns of files of a version; `None` if today's time column is not among them.
    pub(super) fn layout_of(&self, subject: &Subject, version: i64) -> Result<Option<Layout>> {
        let own = (!subject.filters.is_empty()).then(FileColumn::filters);
        let columns: Vec<FileColumn> = self.catalog.columns_of(version)?.into_iter().chain(own).collect();
        Ok(Layout::try_new(version, &columns, &self.time, self.id.as_deref()).ok())
    }
}

/// Returns the files of regions by version of their columns and by path.
pub(super) fn files_of(subjects: &[(Subject, Vec<Region>)]) -> BTreeMap<i64, Vec<Used>> {
    let mut versions: BTreeMap<i64, BTreeMap<&str, Used>> = BTreeMap::new();
    for region in subjects.iter().flat_map(|(_, regions)| regions) {
        let Some(file) = region.file() else { continue };
        let files = versions.entry(file.schema).or_default();
        let used = files.entry(&file.path).or_insert_with(|| Used { file: Arc::clone(file), mentions: 0 });
        used.mentions += region.mentions();
    }
    versions.into_iter().map(|(version, files)| (version, files.into_values().collect())).collect()
}

/// Returns the files to merge, by path, all of which are intact. Only those that are chosen are looked for, because each is a request
/// to a bucket. If some of them are not intact, it is chosen among the others.
fn chosen_intact(
    mut files: Vec<Used>,
    extent: Extent,
    intact: impl Fn(Vec<Used>) -> Result<Vec<Used>>,
) -> Result<HashMap<String, Arc<DataFile>>> {
    loop {
        let chosen = chosen(files.clone(), extent);
        let mut lost: HashSet<String> = chosen.iter().map(|used| used.file.path.clone()).collect();
        let found: HashMap<String, Arc<DataFile>> =
            intact(chosen)?.into_iter().map(|used| (used.file.path.clone(), used.file)).collect();
        lost.retain(|path| !found.contains_key(path));
        if lost.is_empty() {
            return Ok(found);
        }
        files.retain(|used| !lost.contains(&used.file.path));
    }
}

/// Returns the files to merge.
fn chosen(mut files: Vec<Used>, extent: Extent) -> Vec<Used> {
    let deleted = |used: &Used| (used.file.rows - used.mentions) * 10 >= used.file.rows;
    let size = |used: &Used| used.file.share(used.mentions);
    files.retain(|used| size(used) < SMALL || deleted(used));
    match extent {
        // One file without deleted rows is as good as it can be.
        Extent::All if files.len() == 1 => files.retain(deleted),
        Extent::All => {}
        Extent::Bounded => smallest(&mut files, FEW, AT_ONCE),
        Extent::Tiny => {
            files.retain(|used| size(used) < TINY);
            smallest(&mut files, MANY, ON_THE_WAY);
        }
    }
    files
}

/// Leaves the smallest files, up to a size in bytes; none if there are only a few.
fn smallest(files: &mut Vec<Used>, few: usize, bytes: u64) {
    let size = |used: &Used| used.file.share(used.mentions);
    files.sort_by_key(size);
    let (mut sum, are_few) = (0, files.len() <= few);
    files.retain(|used| {
        sum += size(used);
        !are_few && sum <= bytes
    });
}

/// Moves regions of a store.
pub(super) struct Merging<'s> {
    pub(super) store: &'s Store,
    pub(super) today: Day,
    /// Time for which a day changes after its end.
    pub(super) settling: TimeDelta,
    /// Number of erasures before the regions were listed.
    pub(super) erasures: i64,
}

impl Merging<'_> {
    /// Writes the regions of these files to new ones, with all their rows or those to keep. Returns false if another process has
    /// replaced some of them meanwhile.
    pub(super) fn merge(
        &self,
        subjects: &[(Subject, Vec<Region>)],
        chosen: &HashMap<String, Arc<DataFile>>,
        layout: &Layout,
        keep: Option<Keep<'_>>,
        compacted: &mut Compacted,
    ) -> Result<bool> {
        let mut written = Written::to(&self.store.catalog);
        let Some((any, _)) = subjects.first() else { return Ok(true) };
        let folder = self.store.folder(any);
        for file in chosen.values() {
            self.store.check_old(&folder.join(&file.path), file)?;
        }
        let mut readers: HashMap<&str, FileReader> = HashMap::new();
        let mut output: Option<FileWriter> = None;
        // Regions of the file that is being written have no file yet.
        let mut moved: Vec<Moved<'_>> = Vec::new();
        let mut complete: Vec<Moved<'_>> = Vec::new();
        let rows: u64 = chosen.values().map(|file| file.rows).sum();
        let size = Size::of(usize::try_from(rows).unwrap_or(usize::MAX));
        for (subject, regions) in subjects {
            let mut last: Option<Day> = None;
            for region in regions {
                let Some((path, file)) = region.file().and_then(|file| chosen.get_key_value(&file.path)) else {
                    // A region without mentions is a part of those beside it.
                    let joins = region.rows.is_none()
                        && last == Some(region.days.start)
                        && moved.last_mut().is_some_and(|moved| moved.join(region, self));
                    last = joins.then_some(region.days.end);
                    continue;
                };
                if output.as_ref().is_some_and(|output| output.bytes() >= ENOUGH) {
                    self.complete(&folder, &mut output, &mut moved, &mut complete, &mut written, compacted)?;
                    last = None;
                }
                let writer = match &mut output {
                    Some(writer) => writer,
                    None => {
                        let storage = self.store.catalog.storage();
                        output.insert(FileWriter::create(storage, &folder, region.days.start, layout, size)?)
                    }
                };
                let first = writer.rows();
                let reader =
                    readers.entry(path.as_str()).or_insert_with(|| FileReader::new(&self.store.catalog, &folder, file));
                let region = self.copy(subject, region, reader, writer, layout, keep)?;
                if reader.is_at_end() {
                    readers.remove(path.as_str());
                }
                let joins =
                    last == Some(region.days.start) && moved.last_mut().is_some_and(|moved| moved.join(&region, self));
                last = Some(region.days.end);
                if !joins {
                    moved.push(Moved { subject, ids: region.id.into_iter().collect(), first, region });
                }
            }
        }
        self.complete(&folder, &mut output, &mut moved, &mut complete, &mut written, compacted)?;
        let mut changes: BTreeMap<&Subject, (Vec<i64>, Vec<Region>)> = BTreeMap::new();
        for Moved { subject, ids, region, .. } in complete {
            let (replaced, with) = changes.entry(subject).or_default();
            compacted.fewer += (ids.len() as u64).saturating_sub(1);
            replaced.extend(ids);
            with.push(region);
        }
        let changes =
            changes.iter().map(|(subject, (replaced, with))| Change { subject, replaced, with, deletions: None });
        let made = self.store.catalog.move_all(&changes.collect::<Vec<_>>(), self.erasures)?;
        if made.contains(&true) {
            written.keep();
        }
        compacted.merged += chosen.len() as u64;
        Ok(!made.contains(&false))
    }

    /// Copies the rows of a region, or those to keep, and returns it with their counts and stamps.
    fn copy(
        &self,
        subject: &Subject,
        region: &Region,
        reader: &mut FileReader,
        writer: &mut FileWriter,
        layout: &Layout,
        keep: Option<Keep<'_>>,
    ) -> Result<Region> {
        let mut region = match subject.filters.is_empty() {
            // Of one that another process has replaced, nothing is written.
            true => self.store.catalog.with_stamps(region)?.unwrap_or_else(|| region.clone()),
            false => region.clone(),
        };
        let (first, mut counts) = (writer.rows(), vec![0; region.counts.len()]);
        let mut stays: Vec<bool> = Vec::new();
        reader.read(&region.rows_of(&region.days), |batch| {
            let batch = layout.arrange(&batch)?;
            let batch = match keep {
                Some(keep) => {
                    let kept = keep(layout, &batch)?;
                    stays.extend(kept.values());
                    filter_record_batch(&batch, &kept)
                        .map_err(|error| Error::new(ErrorKind::Store, error.to_string()))?
                }
                None => batch,
            };
            for time in layout.times(&batch)? {
                if let Some(count) = counts.get_mut((day_of(*time) - region.days.start) as usize) {
                    *count += 1;
                }
            }
            writer.write(&batch)
        })?;
        if counts.iter().sum::<u64>() != writer.rows() - first {
            let what = "it has mentions of days that the catalog does not list for it";
            return Err(corrupt(reader.path(), &what));
        }
        region.counts = counts;
        region.stamps = region.stamps.map(|stamps| Arc::new(stamps.retained(stays)));
        Ok(region)
    }

    /// Completes the file that is being written, and gives it to its regions.
    fn complete<'s>(
        &self,
        folder: &Path,
        output: &mut Option<FileWriter>,
        moved: &mut Vec<Moved<'s>>,
        complete: &mut Vec<Moved<'s>>,
        written: &mut Written,
        compacted: &mut Compacted,
    ) -> Result<()> {
        let Some(output) = output.take() else { return Ok(()) };
        let file = match output.rows() {
            0 => None,
            _ => Some(Arc::new(output.finish()?)),
        };
        if let Some(file) = &file {
            written.files.push(folder.join(&file.path));
            compacted.written += 1;
            compacted.bytes += file.bytes;
        }
        for mut moved in mem::take(moved) {
            let file = file.as_ref().filter(|_| moved.region.mentions() > 0);
            moved.region.rows = file.map(|file| Rows { file: Arc::clone(file), first: moved.first });
            complete.push(moved);
        }
        Ok(())
    }

    /// True if a region is of the past, and was read or confirmed after its days had settled.
    fn is_over(&self, region: &Region) -> bool {
        settled_days(region, self.settling) == region.days.len() as u64
    }
}

/// Regions that become one, in another file.
struct Moved<'s> {
    subject: &'s Subject,
    ids: Vec<i64>,
    first: u64,
    region: Region,
}

impl Moved<'_> {
    /// Adds a region that follows, unless they have to stay apart. A region that had not settled would have the others read
    /// again with it.
    fn join(&mut self, next: &Region, merging: &Merging<'_>) -> bool {
        let month = month_of(self.region.days.start);
        let past = month.end <= merging.today - DAILY;
        if !past || !month.contains(&next.days.start) || !merging.is_over(&self.region) || !merging.is_over(next) {
            return false;
        }
        // One without stamps was replaced by another process meanwhile. The catalog refuses it, and it must not contradict itself before.
        if next.mentions() > 0 && self.region.stamps.is_some() != next.stamps.is_some() {
            return false;
        }
        // One that was confirmed at a time that has not come yet would pass this on to the days that it joins.
        let now = merging.store.catalog.now() + merging.store.ahead();
        if [&self.region, next].iter().any(|region| last_seen(region, now).0 != region.confirmed) {
            return false;
        }
        // What was confirmed after it had settled is as good as read then.
        let seen = |region: &Region| if region.sealed { region.confirmed } else { region.as_of };
        self.ids.extend(next.id);
        let stamps = self.region.stamps.as_ref().map(|stamps| {
            let mut joined = stamps.as_ref().clone();
            next.stamps.iter().for_each(|stamps| joined.append(stamps));
            Arc::new(joined)
        });
        self.region = Region {
            id: None,
            days: self.region.days.start..next.days.end,
            counts: self.region.counts.iter().chain(&next.counts).copied().collect(),
            as_of: seen(&self.region).min(seen(next)),
            confirmed: self.region.confirmed.min(next.confirmed),
            sealed: self.region.sealed && next.sealed,
            rows: None,
            stamps,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use savedsearch_clock::Clock;

    use super::*;
    use crate::location::Location;
    use crate::profile::Profile;
    use crate::store::catalog::Owner;
    use crate::store::region::Filters;
    use crate::store::stamps::{Stamped, Stamps};

    #[test]
    fn files_are_looked_for_once_they_are_chosen() {
        let used = |path: String, bytes: u64| {
            let (digest, blocks) = (String::new(), Vec::new());
            let file = DataFile { path, rows: 10, bytes, footer: 0, times: (0, 0), schema: 1, digest, blocks };
            Used { file: Arc::new(file), mentions: 10 }
        };
        let looked = Cell::new(0);
        let choose = |small: usize, lost: &[&str]| {
            let large = (0..100).map(|at| used(format!("large {at}"), SMALL));
            let files = large.chain((0..small).map(|at| used(format!("small {at}"), 1_000))).collect();
            let chosen = chosen_intact(files, Extent::Bounded, |mut files| {
                looked.set(looked.get() + files.len());
                files.retain(|used| !lost.contains(&used.file.path.as_str()));
                Ok(files)
            });
            (chosen.expect("files").len(), looked.take())
        };
        assert_eq!(choose(FEW, &[]), (0, 0), "a few small files stay");
        assert_eq!(choose(FEW + 2, &[]), (FEW + 2, FEW + 2));
        assert_eq!(choose(FEW + 2, &["small 3"]), (FEW + 1, 2 * FEW + 3), "the others are chosen again");
        assert_eq!(choose(FEW + 1, &["small 3"]), (0, FEW + 1), "only a few are left");
    }

    #[test]
    fn a_region_that_was_replaced_meanwhile_is_joined_with_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let noon: DateTime<Utc> = "2026-07-01T12:00:00Z".parse().expect("an instant");
        let (owner, profile) = (Owner { digest: "00ff".into(), records: String::new() }, Profile::v4());
        let location = Location::Folder(folder.path().to_owned());
        let store =
            Store::open(&location, None, &owner, &profile.tables.mentions, &Clock::fixed(noon)).expect("a store");
        let today = day_of(noon.timestamp_micros());
        let merging = Merging { store: &store, today, settling: TimeDelta::days(3), erasures: 0 };
        let subject = Subject { aid: "7".into(), filters: Filters::default() };
        let month = month_of(today - 100);
        let region = |days: std::ops::Range<Day>, mentions: u64, is_known: bool| {
            let stamps = is_known.then(|| Arc::new(Stamps::same(mentions, Stamped::BEFORE)));
            let mut counts = vec![0; days.len()];
            counts[0] = mentions;
            Region { id: Some(1), days, counts, as_of: noon, confirmed: noon, sealed: true, rows: None, stamps }
        };
        let (first, next) = (month.start..month.start + 2, month.start + 2..month.end);
        for (one, other, is_joined) in [
            (region(first.clone(), 5, true), region(next.clone(), 4, true), true),
            (region(first.clone(), 5, true), region(next.clone(), 4, false), false),
            (region(first.clone(), 5, false), region(next.clone(), 4, true), false),
            // One without mentions has no stamps.
            (region(first.clone(), 5, true), region(next.clone(), 0, false), true),
        ] {
            let mut moved = Moved { subject: &subject, ids: vec![1], first: 0, region: one };
            assert_eq!(moved.join(&other, &merging), is_joined, "{other:?}");
            let stamped = moved.region.stamps.as_ref().map(|stamps| stamps.rows());
            assert!(stamped.is_none_or(|stamped| stamped == moved.region.mentions()), "{:?}", moved.region);
        }
    }
}
