//! Maintenance of a store: a summary of its contents, checks of its files, and removal of data that is no longer needed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::catalog::{BRIEFLY, Catalog};
use super::checksums::CHANGED;
use super::coverage::settled_days;
use super::region::{DataFile, Day, Deletions, Filters, Region, Subject};
use super::storage::{Found, Storage, unless_missing};
use super::{Store, files, index};
use crate::error::{Error, ErrorKind, Result, Tool};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

/// Age at which responses are removed.
const RESPONSES: TimeDelta = TimeDelta::days(30);
/// Time for which files that no region names stay, unless versions are kept for longer: queries that began before may still read
/// them.
const GRACE: TimeDelta = TimeDelta::hours(1);
/// Time for which files that the catalog does not know stay: a slow read names its files once it is complete.
const ABANDONED: TimeDelta = TimeDelta::days(1);
/// Files that are removed at a time while other processes wait to commit. In a bucket, each takes two requests.
const BETWEEN_COMMITS: usize = 16;

/// Remedy for a catalog that contradicts itself.
fn contradicts() -> String {
    format!("; {} over these days replaces what is stored", Tool::Rescan)
}

/// Remedy for a file of mentions.
fn damaged() -> String {
    format!("; restore it from a copy; or remove it and run {}, which drops its mentions", Tool::CompactStore)
}

/// Remedy for an index.
fn unused() -> String {
    format!("; it is not used; {} writes it again", Tool::IndexStore)
}

/// Content of a store for one saved search under the same filters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holding {
    /// Saved search.
    pub aid: String,
    /// The filters that were sent, as JSON; empty: none.
    pub filters: String,
    /// First day, in UTC.
    pub from: NaiveDate,
    /// Day after the last one. In [`SyncStep`](crate::SyncStep), [`CutStep`](crate::CutStep) and `system.store`, it is the last one.
    pub to: NaiveDate,
    /// Number of stored days between them.
    pub days: u64,
    /// The stored days as half-open ranges, in order. A day between two of them is not stored.
    pub ranges: Vec<Range<NaiveDate>>,
    /// Number of days that were read or confirmed after they had settled.
    pub sealed_days: u64,
    /// Number of mentions.
    pub mentions: u64,
    /// Number of files with its mentions, which they may share with others.
    pub files: u64,
    /// Size of its mentions in the files.
    pub bytes: u64,
    /// Size of its part of the indexes of words beside the files.
    pub index_bytes: u64,
    /// Earliest instant at which one of the days was last seen at the service.
    pub confirmed_at: DateTime<Utc>,
}

impl Store {
    /// Returns the saved searches of which days are stored.
    pub(crate) fn aids(&self) -> Result<Vec<String>> {
        self.catalog.aids()
    }

    /// Returns what the store has, in the order of aids and filters. `settling`: the time until a day has settled.
    pub(crate) fn holdings(&self, settling: TimeDelta) -> Result<Vec<Holding>> {
        let mut holdings: BTreeMap<Subject, Holding> = BTreeMap::new();
        let (mut files, mut named) = (HashSet::new(), BTreeMap::<Subject, u64>::new());
        // Regions share files.
        let storage = self.catalog.storage();
        let lengths = self.lengths()?;
        let mut indexes: HashMap<PathBuf, u64> = HashMap::new();
        for aid in self.catalog.aids()? {
            for (filters, region) in self.regions(&aid)?.iter() {
                let subject = Subject { aid: aid.clone(), filters: filters.clone() };
                if files.insert((subject.clone(), region.file().map(|file| file.path.clone()))) {
                    *named.entry(subject.clone()).or_insert(0) += u64::from(region.rows.is_some());
                }
                let index_bytes = region.file().map_or(0, |file| {
                    let path = self.folder(&subject).join(&file.path);
                    let length = |path: &PathBuf| index::bytes_of_index(storage, lengths.as_ref(), path);
                    let bytes = indexes.entry(path).or_insert_with_key(length);
                    file.share_of(*bytes, region.mentions())
                });
                let holding = holdings.entry(subject).or_insert_with_key(|subject| Holding::of(subject, region));
                holding.add(region, index_bytes, settling);
            }
        }
        for (subject, holding) in &mut holdings {
            holding.files = named.get(subject).copied().unwrap_or_default();
            holding.join_ranges();
        }
        Ok(holdings.into_values().collect())
    }

    /// Lengths of all files in bytes, if each would be a request of its own; `None` if not.
    pub(super) fn lengths(&self) -> Result<Option<HashMap<PathBuf, u64>>> {
        let storage = self.catalog.storage();
        storage.lengths().map_err(|error| files::failed("list", storage.data(), &error))
    }

    /// Compares the catalog with the files. Returns the problems in words, each with its remedy; none if there are none.
    pub(crate) fn verify(&self) -> Result<Vec<String>> {
        let mut problems = self.catalog.check()?;
        let mut files: BTreeMap<PathBuf, Arc<DataFile>> = BTreeMap::new();
        for aid in self.catalog.aids()? {
            for (filters, region) in self.catalog.regions(&aid)? {
                let folder = self.catalog.folder(&filters);
                files.extend(region.file().map(|file| (folder.join(&file.path), Arc::clone(file))));
                if filters.is_empty() {
                    problems.extend(self.catalog.with_stamps(&region).err().map(|error| format!("aid {aid}: {error}")));
                }
            }
        }
        problems.iter_mut().for_each(|problem| problem.push_str(&contradicts()));
        let deleted = self.catalog.folder_of_deleted();
        files.extend(self.deleted_files()?.into_iter().map(|file| (deleted.join(&file.path), Arc::new(file))));
        let wrong = |path: &Path, bytes, digest: &str, remedy: &str| {
            problem_of(self.catalog.storage(), path, bytes, digest).map(|problem| format!("{problem}{remedy}"))
        };
        let remedy = damaged();
        problems.extend(files.iter().filter_map(|(path, file)| wrong(path, file.bytes, &file.digest, &remedy)));
        let remedy = format!("; {} writes it again", Tool::CompactStore);
        let (data, deletes) = (self.catalog.data(), self.catalog.delete_files()?);
        let deletes =
            deletes.iter().filter_map(|(path, bytes, digest)| wrong(&data.join(path), *bytes, digest, &remedy));
        problems.extend(deletes);
        let indexes = files.iter().filter_map(|(path, file)| self.problem_of_index(path, file));
        problems.extend(indexes.map(|problem| format!("{problem}{}", unused())));
        Ok(problems)
    }

    /// Removes regions and deleted mentions from the catalog whose files are missing or have another length, and writes such files
    /// again that name deleted rows.
    pub(super) fn discard_lost(&self) -> Result<()> {
        let place = |folder: &Path, file: &DataFile| (folder.join(&file.path), file.bytes);
        let mut named = Vec::new();
        for (subject, regions) in self.sharing()?.into_iter().flatten() {
            let folder = self.folder(&subject);
            named.extend(regions.iter().filter_map(|region| Some((region.id?, place(&folder, region.file()?)))));
        }
        self.catalog.discard(&self.of_lost(named)?)?;
        let folder = self.catalog.folder_of_deleted();
        for aid in self.catalog.aids_with_deleted()? {
            let files = self.catalog.deleted_files(&aid)?;
            let known = files.iter().map(|(id, ..)| *id).collect();
            let mut deletions = Deletions { known, ..Deletions::default() };
            let named = files.iter().map(|(id, file, _)| (*id, place(&folder, file))).collect();
            deletions.ended.extend(self.of_lost(named)?);
            // If another process changes them meanwhile, they stay.
            self.catalog.replace(&Subject { aid, filters: Filters::default() }, &[], &[], Some(&deletions))?;
        }
        let (data, mut deletes) = (self.catalog.data(), self.catalog.delete_files()?);
        let storage = self.catalog.storage();
        deletes.retain(|(path, bytes, digest)| problem_of(storage, &data.join(path), *bytes, digest).is_some());
        self.catalog.rewrite_deletes(&deletes.into_iter().map(|(path, ..)| path).collect::<Vec<_>>())
    }

    /// Returns the identifiers beside those files, each with its length in bytes, that are missing or have another length.
    fn of_lost(&self, named: Vec<(i64, (PathBuf, u64))>) -> Result<Vec<i64>> {
        let lost = self.lost(&named.iter().map(|(_, file)| file.clone()).collect())?;
        Ok(named.into_iter().filter(|(_, file)| lost.contains(file)).map(|(id, _)| id).collect())
    }

    /// Returns those of these files, each with its length in bytes, that are missing or have another length.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if that cannot be determined.
    pub(crate) fn lost(&self, files: &BTreeSet<(PathBuf, u64)>) -> Result<BTreeSet<(PathBuf, u64)>> {
        let paths: Vec<&Path> = files.iter().map(|(path, _)| path.as_path()).collect();
        let storage = self.catalog.storage();
        let lengths =
            storage.lengths_of(&paths, None).map_err(|error| files::failed("read", storage.data(), &error))?;
        let lost = files.iter().zip(lengths).filter(|((_, bytes), length)| *length != Some(*bytes));
        Ok(lost.map(|(file, _)| file.clone()).collect())
    }

    /// Verifies that a file without checksums is as it was written, because its rows may be copied. Files never change, so that
    /// each is read once.
    pub(super) fn check_old(&self, path: &Path, file: &DataFile) -> Result<()> {
        let checked = || self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if !file.blocks.is_empty() || checked().contains(&file.path) || self.catalog.sums(&file.path)?.is_some() {
            return Ok(());
        }
        if let Some(problem) = problem_of(self.catalog.storage(), path, file.bytes, &file.digest) {
            return Err(Error::new(ErrorKind::Store, problem).advice(files::unreadable()));
        }
        checked().insert(file.path.clone());
        Ok(())
    }

    /// Removes responses that are old, and files that nothing has named for a while. Returns the number of files.
    ///
    /// # Errors
    /// Those of [`remove_unused`](Self::remove_unused).
    pub(crate) fn sweep(&self, now: DateTime<Utc>) -> Result<u64> {
        self.catalog.forget_answers_before(now - RESPONSES)?;
        // Snapshots have the time of the catalog, and files about the same.
        let now = self.catalog.time()?;
        let kept = self.kept_versions()?.max(GRACE);
        self.remove_unused(Some((now - kept, now - ABANDONED)))
    }

    /// Removes files that no region names: those that were replaced before an instant, and those that the catalog does not
    /// know and were last written before another one; all of them if no instants are given. Returns their number.
    ///
    /// # Errors
    /// The first error of a file that could not be removed, after all others were. The catalog keeps such files, so that a later call
    /// removes them.
    pub(super) fn remove_unused(&self, before: Option<(DateTime<Utc>, DateTime<Utc>)>) -> Result<u64> {
        let (storage, data) = (self.catalog.storage(), self.catalog.data());
        let mut removal = Removal::default();
        let mut unused = self.catalog.unused_files(before.map(|(replaced, _)| replaced))?;
        for named in [&mut unused.files, &mut unused.deletes] {
            named.retain(|(_, path)| removal.remove(storage, &data.join(path)));
        }
        self.catalog.removed_files(&unused)?;
        // Of processes that ended while they wrote, or that have not named them yet.
        let found = Catalog::folders().map(|table| storage.list(table)).collect::<io::Result<Vec<_>>>();
        let found = found.map_err(|error| files::failed("list", &data, &error))?;
        let is_old = |found: &Found| {
            before.is_none_or(|(_, abandoned)| found.written.is_some_and(|written| written < abandoned))
        };
        let below = |known: &HashSet<String>| known.iter().map(|path| data.join(path)).collect::<HashSet<PathBuf>>();
        let known = below(&self.catalog.known_files()?);
        let unknown = found.into_iter().flatten().filter(|found| is_old(found) && !is_known(&known, &found.path));
        let unknown: Vec<PathBuf> = unknown.map(|found| found.path).collect();
        if !unknown.is_empty() {
            self.catalog.announce_removal()?;
        }
        let mut left = unknown.as_slice();
        while !left.is_empty() {
            let (step, examined) = self.catalog.remove_between_commits(|known| {
                let (known, begun) = (below(known), Instant::now());
                let (mut step, mut examined) = (Removal::default(), 0);
                for path in left.iter().take(BETWEEN_COMMITS).take_while(|_| begun.elapsed() < BRIEFLY) {
                    if !is_known(&known, path) {
                        step.remove(storage, path);
                    }
                    examined += 1;
                }
                (step, examined)
            })?;
            removal.add(step);
            // At least one: the first is removed at once.
            left = &left[examined..];
        }
        removal.end()
    }
}

/// Removed files, and the first error of one that could not be removed.
#[derive(Debug, Default)]
struct Removal {
    removed: u64,
    failed: Option<Error>,
}

impl Removal {
    /// Removes a file and its index. Returns whether it is gone.
    fn remove(&mut self, storage: &Storage, path: &Path) -> bool {
        match remove_own(storage, path) {
            Ok(found) => {
                self.removed += u64::from(found);
                true
            }
            Err(error) => {
                self.failed.get_or_insert_with(|| files::failed("remove", path, &error));
                false
            }
        }
    }

    fn add(&mut self, step: Self) {
        self.removed += step.removed;
        self.failed = self.failed.take().or(step.failed);
    }

    /// Number of files that were removed, if all could be.
    fn end(self) -> Result<u64> {
        self.failed.map_or(Ok(self.removed), Err)
    }
}

/// True if a file, or the one whose index it is, is among those that the catalog knows.
fn is_known(known: &HashSet<PathBuf>, path: &Path) -> bool {
    known.contains(path) || index::data_of(path).is_some_and(|data| known.contains(&data))
}

impl Holding {
    fn of(subject: &Subject, region: &Region) -> Self {
        let Subject { aid, filters } = subject;
        let filters = if filters.is_empty() { String::new() } else { filters.to_json() };
        Self {
            aid: aid.clone(),
            filters,
            from: date_of(region.days.start),
            to: date_of(region.days.end),
            days: 0,
            ranges: Vec::new(),
            sealed_days: 0,
            mentions: 0,
            files: 0,
            bytes: 0,
            index_bytes: 0,
            confirmed_at: region.confirmed,
        }
    }

    /// Adds a region, and its part of an index in bytes.
    fn add(&mut self, region: &Region, index_bytes: u64, settling: TimeDelta) {
        self.from = self.from.min(date_of(region.days.start));
        self.to = self.to.max(date_of(region.days.end));
        self.days += region.days.len() as u64;
        self.ranges.push(date_of(region.days.start)..date_of(region.days.end));
        self.sealed_days += settled_days(region, settling);
        self.mentions += region.mentions();
        self.bytes += region.bytes();
        self.index_bytes += index_bytes;
        self.confirmed_at = self.confirmed_at.min(region.confirmed);
    }

    /// Makes one range of those that follow each other.
    fn join_ranges(&mut self) {
        self.ranges.sort_by_key(|range| range.start);
        self.ranges.dedup_by(|next, before| {
            let joined = next.start <= before.end;
            if joined {
                before.end = before.end.max(next.end);
            }
            joined
        });
    }
}

/// Returns a day as a date.
pub(crate) fn date_of(day: Day) -> NaiveDate {
    NaiveDate::from_epoch_days(day).unwrap_or_default()
}

/// Describes what is wrong with a file.
fn problem_of(storage: &Storage, path: &Path, length: u64, digest: &str) -> Option<String> {
    let problem = match storage.length(path) {
        Err(error) => Some(error.to_string()),
        Ok(bytes) if bytes != length => Some(format!("has {bytes} bytes instead of {length}")),
        Ok(_) => match files::digest_of(storage, path) {
            Err(error) => Some(error.to_string()),
            Ok(found) => (found != digest).then(|| CHANGED.to_owned()),
        },
    };
    problem.map(|problem| format!("{}: {problem}", path.display()))
}

/// Removes a file of the store, and its index. Returns false if the file was missing.
///
/// # Errors
/// Those of a file that stays, such as one behind a link to another folder, or of a path that leads out of the store: it is not the
/// store's.
pub(super) fn remove_own(storage: &Storage, file: &Path) -> io::Result<bool> {
    let removed = match unless_missing(storage.has(file))? {
        None => return Ok(false),
        Some(false) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not in the folder of the store")),
        Some(true) => storage.remove(file),
    };
    // Only then: whoever writes an index looks afterwards for its file.
    index::remove_beside(storage, file);
    Ok(unless_missing(removed)?.is_some())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use savedsearch_clock::Clock;

    use super::*;
    use crate::location::Location;
    use crate::profile::Profile;
    use crate::store::Owner;
    use crate::store::coverage::start_of;
    use crate::store::region::Rows;

    #[test]
    fn a_file_behind_a_link_stays() {
        let (store, foreign) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let (data, storage) = (store.path(), Storage::of_folder(store.path().to_owned()));
        fs::create_dir(data.join("aid=1")).expect("a folder");
        std::os::unix::fs::symlink(foreign.path(), data.join("aid=2")).expect("a link");
        for file in [data.join("aid=1/a.parquet"), foreign.path().join("a.parquet")] {
            fs::write(file, "x").expect("written");
        }
        assert!(remove_own(&storage, &data.join("aid=1/a.parquet")).expect("removed"));
        assert!(!remove_own(&storage, &data.join("aid=1/a.parquet")).expect("missing"));
        assert!(!remove_own(&storage, &data.join("aid=3/a.parquet")).expect("its folder is missing"));
        for path in ["aid=2/a.parquet", "../a.parquet"] {
            let error = remove_own(&storage, &data.join(path)).expect_err("not the store's");
            assert_eq!(error.to_string(), "it is not in the folder of the store", "{path}");
        }
        assert!(foreign.path().join("a.parquet").exists());
    }

    /// An index is written by one process, while another one removes the file.
    #[test]
    fn no_index_stays_without_its_file() {
        let store = tempfile::tempdir().expect("a folder");
        let storage = Storage::of_folder(store.path().to_owned());
        for round in 0..3_000 {
            let (file, index) = (store.path().join("a.parquet"), store.path().join("a.words"));
            fs::write(&file, "x").expect("written");
            let both = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    both.wait();
                    fs::write(&index, "x").expect("written");
                    if !file.exists() {
                        let _ = fs::remove_file(&index);
                    }
                });
                both.wait();
                assert!(remove_own(&storage, &file).expect("removed"));
            });
            assert!(!index.exists(), "round {round}");
        }
    }

    #[test]
    fn an_index_goes_even_if_its_file_stays() {
        let store = tempfile::tempdir().expect("a folder");
        let (file, index) = (store.path().join("a.parquet"), store.path().join("a.words"));
        // A folder is not removed as a file.
        fs::create_dir(&file).expect("a folder");
        fs::write(&index, "x").expect("written");
        remove_own(&Storage::of_folder(store.path().to_owned()), &file).expect_err("a folder");
        assert!(file.exists() && !index.exists());
    }

    /// A region of two mentions in a file of this name.
    fn region(store: &Store, day: Day, name: &str) -> Region {
        let times = (start_of(day) + 1, start_of(day) + 2);
        let (path, schema) = (format!("{name}.parquet"), store.catalog.schema());
        let (rows, bytes, footer, digest) = (2, 200, 7, String::new());
        let file = DataFile { path, rows, bytes, footer, times, schema, digest, blocks: Vec::new() };
        let rows = Some(Rows { file: Arc::new(file), first: 0 });
        let (as_of, confirmed) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
        Region { id: None, days: day..day + 1, counts: vec![2], as_of, confirmed, sealed: false, rows, stamps: None }
    }

    /// Only what is gone is forgotten: an erasure that reports success has left nothing.
    #[test]
    fn a_file_that_cannot_be_removed_is_an_error_and_stays_in_the_catalog() {
        let dir = tempfile::tempdir().expect("a folder");
        let (owner, profile) = (Owner { digest: "00ff".into(), records: String::new() }, Profile::v4());
        let place = Location::Folder(dir.path().join("store"));
        let now = DateTime::from_timestamp(1_782_000_000, 0).expect("an instant");
        let store = Store::open(&place, None, &owner, &profile.tables.mentions, &Clock::fixed(now)).expect("a store");
        let subject = Subject { aid: "a".into(), filters: Filters::default() };
        let regions = [(10, "kept"), (11, "gone")].map(|(day, name)| region(&store, day, name));
        let folder = store.folder(&subject);
        let [kept, gone] = ["kept.parquet", "gone.parquet"].map(|name| folder.join(name));
        // A folder is not removed as a file.
        fs::create_dir_all(&kept).expect("a folder");
        fs::write(&gone, "x").expect("written");
        assert!(store.catalog.replace(&subject, &[], &regions, None).expect("written"));
        let ids: Vec<i64> = store.regions("a").expect("regions").iter().filter_map(|(_, region)| region.id).collect();
        store.catalog.discard(&ids).expect("removed");

        let error = store.remove_unused(None).expect_err("a file stays");
        assert!(error.to_string().contains("cannot remove") && error.to_string().contains("kept.parquet"), "{error}");
        assert!(kept.exists() && !gone.exists(), "all others are removed");
        let left = store.catalog.unused_files(None).expect("files").files;
        let left: Vec<&str> = left.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(left, ["mentions/kept.parquet"]);

        fs::remove_dir(&kept).expect("removed");
        fs::write(&kept, "x").expect("written");
        assert_eq!(store.remove_unused(None).expect("removed"), 1);
        assert!(!kept.exists() && store.catalog.unused_files(None).expect("files").files.is_empty());
    }
}
