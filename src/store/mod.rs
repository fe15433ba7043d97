//! A local copy of mentions that were read, so that each is requested once.
//!
//! ```text
//! span ─ coverage ─▶ days from files, days to confirm, spans to read ─▶ exec
//!            ▲                                                   │ whole days
//!         catalog (SQLite, DuckLake tables) ◀─ filling ─ files (Parquet)
//! ```
//!
//! The unit is a [region](region::Region): days of a saved search, read completely. Its mentions are consecutive rows of a
//! file, which many regions may share. A region enters the catalog in one transaction, after its file is durable, and
//! replaces whole regions; so readers, writers and other programs see either the old days or the new days, even after a
//! crash. Files are never changed: [compaction] moves regions to other files. Beside each region are the commits in which its
//! mentions arrived and changed ([stamps]). Beside a file may be an [index] of its words.

mod access;
#[cfg(feature = "shared")]
mod bucket;
mod catalog;
mod changes;
mod checksums;
mod columns;
mod commit;
mod compaction;
mod coverage;
mod deleted;
mod erasure;
mod export;
mod files;
mod filling;
mod first_seen;
mod in_flight;
mod index;
mod lease;
mod maintenance;
#[cfg(feature = "shared")]
mod network;
mod opening;
mod past;
mod quota;
mod records;
mod region;
mod stamps;
mod statistics;
mod storage;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

pub use self::access::{check_missing_store, has_store};
#[cfg(all(feature = "distributed", feature = "shared"))]
pub(crate) use self::bucket::objects_of;
pub(crate) use self::catalog::{Catalog, Owner};
pub(crate) use self::changes::{Arrivals, Since};
pub(crate) use self::checksums::{CHANGED, Sums};
pub(crate) use self::columns::Columns;
pub use self::compaction::Compacted;
pub(crate) use self::compaction::Extent;
pub(crate) use self::coverage::{
    Division, Stored, Terms, day_of, days_of, divide, divide_for_timeline, overlap, span_of, start_of,
};
pub use self::erasure::{Erase, Erased};
pub use self::export::{Export, Exported};
pub(crate) use self::files::{AID, AS_OF, NO_SPACE, is_full, retyped, unreadable};
pub(crate) use self::filling::{Filling, blocking, month_of};
pub(crate) use self::first_seen::{FIRST_SEEN, has_first_seen};
pub(crate) use self::in_flight::{InFlight, Reading};
pub use self::index::Indexed;
pub(crate) use self::index::Search;
pub(crate) use self::lease::{Lease, Leased, Work};
pub use self::maintenance::Holding;
pub(crate) use self::maintenance::date_of;
pub(crate) use self::quota::Lengths;
pub(crate) use self::records::records_of;
pub(crate) use self::region::{DataFile, Day, Filters, Region, Subject};
use self::statistics::Counters;
pub use self::statistics::StoreStatistics;

use self::commit::Written;
use self::coverage::last_seen;
use self::files::{FILTERS, FileReader, Layout};
use crate::error::{Error, ErrorKind, Phrase, Result, Setting};
use crate::location::Location;
use crate::profile::{Origin, Scope};
use crate::request::{CLOCK_SKEW, RequestKey};

/// Name in the catalog of the time by which the service's clock is ahead of ours, in seconds.
const AHEAD: &str = "ahead";
/// Time without optional writes after another process has held the lock for long.
const PAUSE: Duration = Duration::from_secs(60);
/// Attempts to commit against other writers of the same days.
const ATTEMPTS: usize = 5;

/// A store of one service and key.
#[derive(Debug)]
pub(crate) struct Store {
    /// Location of the files, as an absolute path if it is a folder.
    location: Location,
    catalog: Arc<Catalog>,
    /// Reason why nothing is written, if the folder cannot be.
    unwritable: Option<Error>,
    /// Of files of all mentions.
    layout: Layout,
    /// Of files of mentions that match filters.
    filtered: Layout,
    /// Of files of deleted mentions.
    deleted: Layout,
    /// Name of the time column.
    time: String,
    /// Name of the id column, if mentions have ids.
    id: Option<String>,
    /// Columns of the catalog that are not the profile's: those of a store that is only read may be of another profile.
    differing: HashSet<String>,
    cached: Mutex<Cached>,
    counters: Counters,
    /// Files without checksums that this process has compared with their digests.
    checked: Mutex<HashSet<String>>,
    /// Held while a query merges tiny files.
    merging: Mutex<()>,
    in_flight: InFlight,
    /// Seconds by which the service's clock was last seen to be ahead of ours.
    ahead: AtomicI64,
    /// Time until which nothing optional is written, because another process holds the lock.
    busy: Mutex<Option<Instant>>,
}

/// A store, and how queries of a session use it.
#[derive(Debug, Clone)]
pub(crate) struct FromStore {
    pub(crate) store: Arc<Store>,
    /// Set if queries take rows and responses from the store.
    pub(crate) reads: bool,
    /// Set if what queries read completely is stored.
    pub(crate) writes: bool,
    /// Set if mentions that the service has deleted are kept.
    pub(crate) keeps_deleted: bool,
    /// Age up to which stored rows and responses need no confirmation.
    pub(crate) freshness: TimeDelta,
    /// Time after its end for which a day changes.
    pub(crate) settling: TimeDelta,
}

impl FromStore {
    /// Version of the catalog, which [`regions`](Self::regions) and [`distrusted`](Self::distrusted) take; `None` if queries take no rows
    /// from the store.
    pub(crate) fn version(&self) -> Result<Option<i64>> {
        self.reads.then(|| self.store.catalog.version()).transpose()
    }

    /// Regions that may answer a query for a saved search, in a version of the catalog.
    pub(crate) fn regions(&self, version: Option<i64>, aid: &str) -> Result<Regions> {
        version.map_or_else(|| Ok(Regions::default()), |version| self.store.regions_in(version, aid))
    }

    /// Latest instant at which the service's timeline did not agree with the mentions of a subject, in a version of the catalog.
    pub(crate) fn distrusted(&self, version: Option<i64>, subject: &Subject) -> Option<DateTime<Utc>> {
        self.store.distrusted_in(version?, subject).ok().flatten()
    }

    /// Number of erasures so far, in a version of the catalog.
    pub(crate) fn erasures(&self, version: Option<i64>) -> Result<i64> {
        let version = version.map_or_else(|| self.store.catalog.version(), Ok)?;
        self.store.erasures_in(version)
    }

    /// Returns the stored response to a request, with the instant by the service's clock at which it was requested, if it is
    /// fresh.
    pub(crate) async fn answer(&self, key: &RequestKey, now: DateTime<Utc>) -> Result<Option<(Bytes, DateTime<Utc>)>> {
        if !self.reads_answers() {
            return Ok(None);
        }
        let (catalog, name) = (Arc::clone(&self.store.catalog), name_of(key));
        let kept = blocking(move || catalog.answer(&name)).await?;
        Ok(kept.filter(|(_, as_of)| self.is_fresh(*as_of, now)))
    }

    /// True if the response to a request is stored and fresh. Its body is not read.
    pub(crate) fn has_answer(&self, key: &RequestKey, now: DateTime<Utc>) -> bool {
        let as_of = || self.store.catalog.answered_at(&name_of(key)).ok().flatten();
        self.reads_answers() && as_of().is_some_and(|as_of| self.is_fresh(as_of, now))
    }

    /// True if queries store what saves requests of later ones.
    pub(crate) fn invests(&self) -> bool {
        self.writes && self.freshness > TimeDelta::zero()
    }

    /// True if queries take responses from the store.
    fn reads_answers(&self) -> bool {
        self.reads && self.freshness > TimeDelta::zero()
    }

    /// True if a response that was requested at this instant by the service's clock may be used now.
    fn is_fresh(&self, as_of: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let now = now.max(now + self.store.ahead());
        as_of > now - self.freshness && as_of <= now + CLOCK_SKEW
    }
}

/// Days of a region whose counts the service's timeline has confirmed.
#[derive(Debug, Clone)]
pub(crate) struct ConfirmedPart {
    pub(crate) region: Arc<Region>,
    /// The days, within those of the region.
    pub(crate) days: Range<Day>,
    /// Set if the days had settled by then.
    pub(crate) settled: bool,
}

/// Name of a subject's timeline in the catalog.
fn timeline_of(subject: &Subject) -> String {
    format!("timeline of {} {}", subject.aid, subject.filters.to_json())
}

/// Name in the catalog of what the mentions beside a subject's timeline tell.
fn shown_of(subject: &Subject) -> String {
    format!("{}: mentions", timeline_of(subject))
}

/// Name of a request in the catalog.
fn name_of(key: &RequestKey) -> String {
    format!("{}?{key}", key.path())
}

/// Findings in a version of the catalog.
#[derive(Debug, Default)]
struct Cached {
    version: i64,
    /// By aid.
    regions: HashMap<String, Regions>,
    /// Results of [`Store::distrusted`].
    distrusted: HashMap<Subject, Option<DateTime<Utc>>>,
    /// Number of erasures.
    erasures: Option<i64>,
}

impl Cached {
    /// The findings in a version. Those in others are dropped.
    fn of(&mut self, version: i64) -> &mut Self {
        if self.version != version {
            *self = Self { version, ..Self::default() };
        }
        self
    }
}

/// Readers of files that regions share, by path. Each goes on where it has stopped.
type Readers = HashMap<String, FileReader>;

/// Regions of a saved search, with their filters, in order of time.
pub(crate) type Regions = Arc<Vec<(Filters, Arc<Region>)>>;

impl Store {
    /// Reason why the folder cannot be written, if it cannot.
    pub(crate) fn unwritable(&self) -> Option<&Error> {
        self.unwritable.as_ref()
    }

    /// The error for its disk if that has no space.
    pub(crate) fn no_space(&self) -> Error {
        let data = self.catalog.data();
        files::full(data.parent().unwrap_or(&data))
    }

    /// The folder of the store, after a try to create files in it. A catalog that another process has open can be opened for writing
    /// without that.
    ///
    /// # Errors
    /// The reason why nothing can be written.
    pub(crate) fn writable_root(&self) -> Result<PathBuf> {
        if let Some(reason) = &self.unwritable {
            return Err(reason.clone());
        }
        let folders = [self.root(), self.data()];
        let refused = match &self.location {
            Location::Folder(_) => folders.iter().find_map(|folder| files::refusal(folder)),
            // A bucket has no folders: its first object tells.
            Location::Bucket(_) => None,
        };
        match refused {
            Some(reason) => Err(reason),
            None => Ok(self.root()),
        }
    }

    /// The reads into the store that are in flight in this process.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Counters of the use by queries of this process.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Checksums of the file with a name; `None` if they are not known.
    pub(crate) fn sums(&self, name: &str) -> Result<Option<Arc<Sums>>> {
        self.catalog.sums(name)
    }

    /// Schema of the files.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.layout.schema
    }

    fn layout(&self, subject: &Subject) -> &Layout {
        if subject.filters.is_empty() { &self.layout } else { &self.filtered }
    }

    /// Folder of a subject's files.
    pub(crate) fn folder(&self, subject: &Subject) -> PathBuf {
        self.catalog.folder(&subject.filters)
    }

    /// Location of the files.
    #[cfg(feature = "distributed")]
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The objects of the bucket that has the files; `None` if they are in a folder.
    #[cfg(feature = "shared")]
    pub(crate) fn objects(&self) -> Option<&Arc<dyn object_store::ObjectStore>> {
        self.catalog.storage().bucket().map(|bucket| bucket.objects())
    }

    /// True if processes on several machines may use the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.catalog.is_shared()
    }

    /// Name of a subject's file in the bucket; `None` if it is in a folder.
    pub(crate) fn key(&self, subject: &Subject, file: &DataFile) -> Result<Option<String>> {
        let path = self.folder(subject).join(&file.path);
        self.catalog.storage().key(&path).map_err(|error| files::failed("read", &path, &error))
    }

    /// Path or address of a file by its name in the bucket, or by its absolute path without the first slash.
    pub(crate) fn shown(&self, name: &str) -> String {
        self.catalog.storage().shown(name)
    }

    /// Path of a subject's file below the data folder of the store, with `/`.
    #[cfg(feature = "distributed")]
    pub(crate) fn path_below_data(&self, subject: &Subject, file: &DataFile) -> String {
        format!("{}/{}", Catalog::table(&subject.filters), file.path)
    }

    /// The folder of the store.
    pub(crate) fn root(&self) -> PathBuf {
        self.catalog.data().parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// The data folder of the store.
    pub(crate) fn data(&self) -> PathBuf {
        self.catalog.data()
    }

    /// Regions of a saved search.
    pub(crate) fn regions(&self, aid: &str) -> Result<Regions> {
        self.regions_in(self.catalog.version()?, aid)
    }

    /// Regions of a saved search, in a version of the catalog that was just read.
    fn regions_in(&self, version: i64, aid: &str) -> Result<Regions> {
        if let Some(regions) = self.cached().of(version).regions.get(aid) {
            return Ok(Arc::clone(regions));
        }
        let regions = self.catalog.regions(aid)?;
        let regions: Regions =
            Arc::new(regions.into_iter().map(|(filters, region)| (filters, Arc::new(region))).collect());
        let mut cached = self.cached();
        if cached.version == version {
            cached.regions.insert(aid.to_owned(), Arc::clone(&regions));
        }
        Ok(regions)
    }

    /// Number of erasures, in a version of the catalog that was just read.
    fn erasures_in(&self, version: i64) -> Result<i64> {
        if let Some(erasures) = self.cached().of(version).erasures {
            return Ok(erasures);
        }
        let erasures = self.catalog.erasures()?;
        let mut cached = self.cached();
        if cached.version == version {
            cached.erasures = Some(erasures);
        }
        Ok(erasures)
    }

    /// Findings in the catalog. Nobody waits for it while a catalog on a server answers.
    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Text that is kept under a name.
    pub(crate) fn state(&self, name: &str) -> Result<Option<String>> {
        self.catalog.cursor(name)
    }

    /// Changes the text that is kept under a name in one transaction, by what it is and the time in seconds since 1970. `change`
    /// returns the new text, `None` to keep the old one.
    ///
    /// # Errors
    /// Those of `change`; [`ErrorKind::Store`] if the store cannot be written.
    pub(crate) fn change_state<T>(
        &self,
        name: &str,
        change: impl Fn(Option<String>, i64) -> Result<(Option<String>, T)>,
    ) -> Result<T> {
        self.catalog.change_cursor(name, change)
    }

    /// Time by which the service's clock was last seen to be ahead of ours.
    pub(crate) fn ahead(&self) -> TimeDelta {
        TimeDelta::seconds(self.ahead.load(Ordering::Relaxed))
    }

    /// Remembers the time by which the service's clock is ahead of ours, for processes that have no response yet.
    pub(crate) fn note_ahead(&self, ahead: TimeDelta) -> Result<()> {
        let ahead = ahead.num_seconds();
        if self.ahead.swap(ahead, Ordering::Relaxed) == ahead {
            return Ok(());
        }
        self.catalog.set_cursor(AHEAD, &ahead.to_string())
    }

    /// Records that the counts of regions were confirmed at an instant, of `sealed` ones after they had settled.
    pub(crate) fn confirm(&self, at: DateTime<Utc>, confirmed: &[i64], sealed: &[i64]) -> Result<()> {
        if confirmed.is_empty() && sealed.is_empty() {
            return Ok(());
        }
        self.optionally(|| self.catalog.confirm(at, confirmed, sealed))
    }

    /// Records that the counts of parts of regions were confirmed at an instant. Each becomes a region of its own, so that the rest
    /// of its days keeps its age. The rows stay where they are. Compaction joins regions of a month again.
    pub(crate) fn confirm_parts(&self, subject: &Subject, at: DateTime<Utc>, parts: &[ConfirmedPart]) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        self.optionally(|| {
            for ConfirmedPart { region, days, settled } in parts {
                let region = match subject.filters.is_empty() {
                    true => self.catalog.with_stamps(region)?,
                    false => Some(region.as_ref().clone()),
                };
                // If another process has replaced it, its days are confirmed when they are used next.
                let Some(region) = region else { continue };
                let (seen, sealed) = last_seen(&region, at.max(self.catalog.now()));
                let confirmed =
                    Region { confirmed: seen.max(at), sealed: sealed || *settled, ..region.part(days.clone()) };
                let (before, after) = (region.days.start..days.start, days.end..region.days.end);
                let with = [region.part(before), confirmed, region.part(after)];
                let with: Vec<Region> = with.into_iter().filter(|part| !part.days.is_empty()).collect();
                self.catalog.replace(subject, region.id.as_slice(), &with, None)?;
            }
            Ok(())
        })
    }

    /// Writes what saves requests later. After another process has held the lock for long, nothing is written for a while,
    /// so that queries do not wait again.
    fn optionally(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let busy = || self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if busy().is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let written = write();
        if written.as_ref().is_err_and(|error| error.may_pass()) {
            *busy() = Some(Instant::now() + PAUSE);
        }
        written
    }

    /// True if a region has a mention with this id. It is looked for in this day first.
    pub(crate) fn has_mention(&self, subject: &Subject, region: &Region, day: Day, id: &str) -> Result<bool> {
        let (Some(file), Some(column)) = (region.file(), &self.id) else { return Ok(false) };
        let path = self.folder(subject).join(&file.path);
        for days in [day..day + 1, region.days.clone()] {
            let rows = region.rows_of(&days);
            let ids = files::ids(&self.catalog, &path, file, std::slice::from_ref(&rows), column)?;
            if ids.iter().any(|known| known == id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Number of mentions of a region within a range of instants, in microseconds since 1970.
    pub(crate) fn count_within(&self, subject: &Subject, region: &Region, within: &Range<i64>) -> Result<u64> {
        let days = days_of(within);
        let days = days.start.max(region.days.start)..days.end.min(region.days.end);
        match region.file() {
            Some(file) if days.start < days.end => {
                let path = self.folder(subject).join(&file.path);
                files::count_within(&self.catalog, &path, file, &region.rows_of(&days), &self.time, within)
            }
            _ => Ok(0),
        }
    }

    /// Reads mentions of a region that are compared with others, in the columns of today.
    fn read(&self, readers: &mut Readers, subject: &Subject, region: &Region) -> Result<Vec<RecordBatch>> {
        let Some(file) = region.file() else { return Ok(Vec::new()) };
        self.check_old(&self.folder(subject).join(&file.path), file)?;
        let mut readable = self.readable(file.schema)?;
        readable.push(FILTERS.to_owned());
        let mut batches = Vec::new();
        let new = || FileReader::new(&self.catalog, &self.folder(subject), file);
        let reader = readers.entry(file.path.clone()).or_insert_with(new);
        reader.read(&region.rows_of(&region.days), |batch| {
            batches.push(self.layout(subject).arrange(&only(&batch, &readable)?)?);
            Ok(())
        })?;
        Ok(batches)
    }

    /// Returns what is wrong with the first of these regions whose file cannot be opened, or contradicts the catalog.
    pub(crate) fn first_unreadable<'r>(
        &self,
        regions: impl Iterator<Item = (&'r Filters, &'r Region)>,
    ) -> Option<Error> {
        let mut paths = HashSet::new();
        for (filters, region) in regions {
            let Some(file) = region.file() else { continue };
            let path = self.catalog.folder(filters).join(&file.path);
            if paths.insert(path.clone())
                && let Err(error) = files::check(&self.catalog, &path, file)
            {
                return Some(error);
            }
        }
        None
    }

    /// Removes files that no region names.
    fn remove<'f>(&self, subject: &Subject, files: impl IntoIterator<Item = &'f DataFile>) {
        for file in files {
            // A file that stays behind is removed by `sync` and `store compact` later.
            let _ = maintenance::remove_own(self.catalog.storage(), &self.folder(subject).join(&file.path));
        }
    }

    /// Records that the service's timeline does not agree with the mentions of a subject.
    pub(crate) fn distrust(&self, subject: &Subject, at: DateTime<Utc>) -> Result<()> {
        self.optionally(|| self.catalog.set_cursor(&timeline_of(subject), &at.timestamp_micros().to_string()))
    }

    /// Latest instant at which the service's timeline did not agree with the mentions of a subject.
    pub(crate) fn distrusted(&self, subject: &Subject) -> Result<Option<DateTime<Utc>>> {
        self.distrusted_in(self.catalog.version()?, subject)
    }

    /// As [`distrusted`](Self::distrusted), in a version of the catalog that was just read.
    fn distrusted_in(&self, version: i64, subject: &Subject) -> Result<Option<DateTime<Utc>>> {
        if let Some(at) = self.cached().of(version).distrusted.get(subject) {
            return Ok(*at);
        }
        let at = self.catalog.cursor(&timeline_of(subject))?;
        let at = at.and_then(|at| DateTime::from_timestamp_micros(at.parse().ok()?));
        let mut cached = self.cached();
        if cached.version == version {
            cached.distrusted.insert(subject.clone(), at);
        }
        Ok(at)
    }

    /// Records that a read of a day lacked a mention that had come along with its count: such mentions tell nothing about the days of a
    /// subject.
    pub(crate) fn disregard_shown(&self, subject: &Subject, at: DateTime<Utc>) -> Result<()> {
        self.optionally(|| self.catalog.set_cursor(&shown_of(subject), &at.timestamp_micros().to_string()))
    }

    /// Latest instant at which that was recorded.
    pub(crate) fn disregarded_shown(&self, subject: &Subject) -> Result<Option<DateTime<Utc>>> {
        let at = self.catalog.cursor(&shown_of(subject))?;
        Ok(at.and_then(|at| DateTime::from_timestamp_micros(at.parse().ok()?)))
    }

    /// Stores a response without mentions, as of the instant by the service's clock at which it was requested. `erasures`: their number
    /// before the request; after a further one, the response is not stored.
    pub(crate) async fn keep_answer(
        self: &Arc<Self>,
        key: &RequestKey,
        body: &Bytes,
        as_of: DateTime<Utc>,
        erasures: i64,
    ) -> Result<()> {
        let (store, name, body) = (Arc::clone(self), name_of(key), body.clone());
        blocking(move || store.optionally(|| store.catalog.keep_answer(&name, &body, as_of, erasures))).await
    }
}

/// The note of a query whose result could not be stored. `setting`: the value of `savedsearch.store` that avoids the attempt.
pub(crate) fn unstored(error: &Error, setting: &str) -> Phrase {
    let set = Setting::Store.to(setting);
    match error.remedy() {
        Some(free) if is_full(error) => {
            error.description().clone() + ", so the result is not stored; " + free.clone() + set.after(", or ")
        }
        Some(_) => error.line(),
        None => error.line() + set.after("; ").then(" avoids this"),
    }
}

/// True if a column depends on the mention alone, and not on the request.
pub(crate) fn is_stored(origin: &Origin) -> bool {
    match origin {
        Origin::Aid | Origin::Extra | Origin::AsOf | Origin::FirstSeen | Origin::Field(_, Scope::Record) => true,
        Origin::Duration
        | Origin::Timezone
        | Origin::Section
        | Origin::Kinds
        | Origin::Rank
        | Origin::Field(_, Scope::Answer) => false,
    }
}

/// The batches of a file, or the error for which it could not be opened.
fn opened<T>(rows: Result<impl Iterator<Item = Result<T>>>) -> impl Iterator<Item = Result<T>> {
    let (rows, failed) = match rows {
        Ok(rows) => (Some(rows), None),
        Err(error) => (None, Some(Err(error))),
    };
    rows.into_iter().flatten().chain(failed)
}

/// Returns a batch with only these columns.
fn only(batch: &RecordBatch, names: &[String]) -> Result<RecordBatch> {
    let columns = batch.schema_ref().fields().iter().enumerate();
    let kept: Vec<usize> = columns.filter(|(_, field)| names.contains(field.name())).map(|(at, _)| at).collect();
    batch.project(&kept).map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
}
