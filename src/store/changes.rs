//! Mentions that arrived in the store, changed or were deleted since a commit.
//!
//! Each mention comes once, as it is now: as *deleted* if the service no longer has it, else as *arrived* if it has arrived
//! since then, else as *changed*. Of deleted mentions, those that the store keeps are known. Days that were removed from the
//! store are not listed; if they are read again, their mentions arrive again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, SecondsFormat, Utc};

use super::catalog::Recorded;
use super::files::{self, FILTERS};
use super::region::{DataFile, Region, Rows};
use super::stamps::{Stamp, Stamped};
use super::{Store, only, opened};
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};

/// The commit after which changes are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Since {
    /// The snapshot with this number.
    Snapshot(i64),
    /// The last commit until this instant.
    Instant(DateTime<Utc>),
}

/// Mentions that arrived after a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrivals {
    /// Number of those that were passed on.
    pub(crate) mentions: u64,
    /// Number of those that arrived later.
    pub(crate) left: u64,
    /// Snapshot until which they were passed on.
    pub(crate) until: i64,
    /// Set if commits after the first snapshot were not recorded, so that mentions of which the commit is unknown were passed on
    /// as well.
    pub(crate) repeats: bool,
}

/// Kinds of changes.
const ARRIVED: &str = "arrived";
const CHANGED: &str = "changed";
const DELETED: &str = "deleted";

/// A change of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    kind: &'static str,
    commit: Stamp,
    /// The commit that the mention arrived in; `None` if it is not known.
    arrived: Option<Stamp>,
}

/// Changes of the mentions of some regions, by the path of their file: regions share files.
#[derive(Default)]
struct Changed {
    files: BTreeMap<String, ChangedRows>,
}

/// Changes of the mentions of a file.
struct ChangedRows {
    file: Arc<DataFile>,
    /// Positions of rows that have the same change.
    runs: Vec<(Range<u64>, Change)>,
}

impl Changed {
    /// Adds those mentions of a region that have a change.
    fn add(&mut self, region: &Region, change_of: impl Fn(Stamped) -> Option<Change>) {
        let Some(Rows { file, first }) = &region.rows else { return };
        let runs = region.stamps.iter().flat_map(|stamps| stamps.runs());
        let runs = runs.filter_map(|(run, stamped)| Some((first + run.start..first + run.end, change_of(stamped)?)));
        let mut runs = runs.peekable();
        if runs.peek().is_some() {
            let new = || ChangedRows { file: Arc::clone(file), runs: Vec::new() };
            self.files.entry(file.path.clone()).or_insert_with(new).runs.extend(runs);
        }
    }
}

impl Since {
    /// True for a commit after this one.
    fn is_before(self, stamp: Stamp) -> bool {
        match self {
            Self::Snapshot(snapshot) => stamp.snapshot > snapshot,
            Self::Instant(at) => stamp.at > at.timestamp_micros(),
        }
    }

    fn change_of(self, stamped: Stamped) -> Option<Change> {
        let Stamped { arrived, changed } = stamped;
        let known = (arrived != Stamp::BEFORE).then_some(arrived);
        if self.is_before(arrived) {
            return Some(Change { kind: ARRIVED, commit: arrived, arrived: known });
        }
        self.is_before(changed).then_some(Change { kind: CHANGED, commit: changed, arrived: known })
    }
}

impl Store {
    /// Columns of [`changes`](Self::changes): those of the files, the kind of the change, the time and number of the commit, and the
    /// time of the commit that the mention arrived in.
    pub(crate) fn changes_schema(&self) -> SchemaRef {
        let instant = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let own = [
            Field::new("change", DataType::Utf8, false),
            Field::new("changed_at", instant(), false),
            Field::new("snapshot", DataType::Int64, false),
            Field::new("arrived_at", instant(), true),
        ];
        let fields = self.layout.schema.fields().iter().cloned().chain(own.map(Arc::new));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Verifies that all changes since a commit are known.
    ///
    /// # Errors
    /// [`ErrorKind::Store`], with the earliest commit that can be named, if some are not; or if there is no such commit yet.
    pub(crate) fn check_since(&self, since: Since) -> Result<()> {
        let Some(Recorded { after, latest }) = self.catalog.recorded()? else {
            return Err(Error::new(ErrorKind::Store, "the store does not record its changes yet")
                .advice(Phrase::from("open it for writing once, for example with ") + Tool::Sync));
        };
        let (known, is_made) = match since {
            Since::Snapshot(snapshot) => (snapshot >= after.snapshot, snapshot <= latest),
            Since::Instant(at) => (at.timestamp_micros() >= after.at, true),
        };
        if !is_made {
            return Err(Error::new(
                ErrorKind::Store,
                format!("the store has no such snapshot; the latest is {latest}"),
            )
            .advice("use an instant, or the number of an earlier snapshot"));
        }
        if known {
            return Ok(());
        }
        let at = DateTime::from_timestamp_micros(after.at).unwrap_or_default();
        let at = at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let what = format!("changes of the store are known only since {at} (snapshot {})", after.snapshot);
        Err(Error::new(ErrorKind::Store, what).advice(format!("use changes(since => '{at}'), or a later instant")))
    }

    /// The mentions that changed since a commit, in batches of [`changes_schema`](Self::changes_schema). `aids`: of these saved
    /// searches; empty: of all. Each file is read once, and opened when the one before has been read.
    ///
    /// # Errors
    /// Those of [`check_since`](Self::check_since); those of files that cannot be read are items.
    pub(crate) fn changes(
        self: &Arc<Self>,
        aids: &[String],
        since: Since,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        self.check_since(since)?;
        let (mut changed, mut gone) = (Changed::default(), Vec::new());
        for aid in self.selected(aids)? {
            let (regions, deleted) = self.catalog.history(&aid)?;
            regions.iter().for_each(|region| changed.add(region, |stamped| since.change_of(stamped)));
            gone.extend(deleted.into_iter().filter(|(_, stamp)| since.is_before(*stamp)));
        }
        let (schema, store) = (self.changes_schema(), Arc::clone(self));
        let changed = changed.files.into_values().flat_map(move |rows| opened(store.changed_rows(rows)));
        let store = Arc::clone(self);
        let gone = gone.into_iter().flat_map(move |(file, stamp)| opened(store.gone_rows(&file, stamp)));
        Ok(changed.chain(gone).map(move |rows| {
            let (rows, changes) = rows?;
            with_changes(&schema, &rows, &changes)
        }))
    }

    /// Those of these saved searches that the store has; all if none are given.
    fn selected(&self, aids: &[String]) -> Result<Vec<String>> {
        let mut all = self.catalog.all_aids()?;
        all.retain(|aid| aids.is_empty() || aids.contains(aid));
        Ok(all)
    }

    /// Returns the snapshot that a cursor names.
    pub(crate) fn cursor(&self, name: &str) -> Result<Option<i64>> {
        let damaged =
            |_| Error::new(ErrorKind::Store, format!("the store is damaged: invalid value of cursor `{name}`"));
        self.catalog.cursor(name)?.map(|snapshot| snapshot.parse().map_err(damaged)).transpose()
    }

    /// Creates a cursor at a snapshot, unless there is one.
    pub(crate) fn begin_cursor(&self, name: &str, snapshot: i64) -> Result<()> {
        self.catalog.change_cursor(name, |value, _| Ok((value.is_none().then(|| snapshot.to_string()), ())))
    }

    /// Moves a cursor to a later snapshot. It never moves back, because another process may have gone further.
    pub(crate) fn advance_cursor(&self, name: &str, snapshot: i64) -> Result<()> {
        self.catalog.change_cursor(name, |value, _| {
            let is_later = value.and_then(|at| at.parse::<i64>().ok()).is_none_or(|at| at < snapshot);
            Ok((is_later.then(|| snapshot.to_string()), ()))
        })
    }

    /// Number of the latest snapshot.
    pub(crate) fn latest_snapshot(&self) -> Result<i64> {
        Ok(self.catalog.recorded()?.map_or(0, |recorded| recorded.latest))
    }

    /// Passes the mentions that arrived after a snapshot and until another one on in batches, in the columns of
    /// the files. It ends early, with the commit in which there are `enough` mentions, the earliest first. If commits after the
    /// first snapshot were not recorded, mentions of which the commit is unknown come with those of the first recorded one.
    ///
    /// # Errors
    /// Those of files that cannot be read.
    pub(crate) fn arrivals(
        &self,
        aids: &[String],
        snapshots: &Range<i64>,
        enough: u64,
        mut take: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<Arrivals> {
        let recorded = self.catalog.recorded()?;
        let lost = recorded.is_none_or(|recorded| recorded.after.snapshot > snapshots.start);
        let change_of = |Stamped { arrived, .. }: Stamped| {
            let is_new = arrived.snapshot > snapshots.start && arrived.snapshot <= snapshots.end;
            let is_passed_on = is_new || (lost && arrived == Stamp::BEFORE);
            is_passed_on.then_some(Change { kind: ARRIVED, commit: arrived, arrived: Some(arrived) })
        };
        let mut changed = Changed::default();
        for aid in self.selected(aids)? {
            let (regions, _) = self.catalog.history(&aid)?;
            regions.iter().for_each(|region| changed.add(region, change_of));
        }
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for (run, change) in changed.files.values().flat_map(|rows| &rows.runs) {
            *counts.entry(change.commit.snapshot).or_default() += run.end - run.start;
        }
        let mut found = 0;
        let last = counts.iter().find(|(_, rows)| {
            found += **rows;
            found >= enough
        });
        let unrecorded = recorded.map_or(snapshots.end, |recorded| recorded.after.snapshot);
        // Of commits after the last one that was wanted, nothing was looked for.
        let until = last.map_or(snapshots.end, |(snapshot, _)| (*snapshot).max(unrecorded).min(snapshots.end));
        for mut rows in changed.files.into_values() {
            rows.runs.retain(|(_, change)| change.commit.snapshot <= until);
            if rows.runs.is_empty() {
                continue;
            }
            for batch in self.changed_rows(rows)? {
                take(batch?.0)?;
            }
        }
        let mentions = counts.range(..=until).map(|(_, rows)| rows).sum();
        let left = counts.range(until + 1..).map(|(_, rows)| rows).sum();
        Ok(Arrivals { mentions, left, until, repeats: lost })
    }

    /// Opens a file, and returns those of its mentions that have a change, with it, in batches.
    fn changed_rows(
        &self,
        ChangedRows { file, mut runs }: ChangedRows,
    ) -> Result<impl Iterator<Item = Result<(RecordBatch, Vec<Change>)>> + Send + use<>> {
        runs.sort_unstable_by_key(|(run, _)| run.start);
        let mut positions: Vec<Range<u64>> = Vec::new();
        for (run, _) in &runs {
            match positions.last_mut().filter(|last| last.end == run.start) {
                Some(last) => last.end = run.end,
                None => positions.push(run.clone()),
            }
        }
        let mut readable = self.readable(file.schema)?;
        readable.push(FILTERS.to_owned());
        self.counters.opened(1, file.share(positions.iter().map(|rows| rows.end - rows.start).sum()));
        let path = self.catalog.folder(&super::Filters::default()).join(&file.path);
        let mut changes = runs.into_iter().flat_map(|(run, change)| run.map(move |_| change));
        let layout = self.layout.clone();
        Ok(files::read_rows(&self.catalog, &path, &file, &positions)?.map(move |batch| {
            let batch = layout.arrange(&only(&batch?, &readable)?)?;
            let changes: Vec<Change> = changes.by_ref().take(batch.num_rows()).collect();
            Ok((batch, changes))
        }))
    }

    /// Opens a file of deleted mentions, and returns them in batches.
    fn gone_rows(
        &self,
        file: &DataFile,
        stamp: Stamp,
    ) -> Result<impl Iterator<Item = Result<(RecordBatch, Vec<Change>)>> + Send + use<>> {
        let layout = self.layout.clone();
        Ok(self.deleted_rows(file)?.map(move |batch| {
            let batch = layout.arrange(&batch?)?;
            let changes = vec![Change { kind: DELETED, commit: stamp, arrived: None }; batch.num_rows()];
            Ok((batch, changes))
        }))
    }
}

/// Adds the columns of changes to mentions.
fn with_changes(schema: &SchemaRef, rows: &RecordBatch, changes: &[Change]) -> Result<RecordBatch> {
    let kinds: StringArray = changes.iter().map(|change| Some(change.kind)).collect();
    let times: TimestampMicrosecondArray = changes.iter().map(|change| Some(change.commit.at)).collect();
    let snapshots: Int64Array = changes.iter().map(|change| Some(change.commit.snapshot)).collect();
    let arrived: TimestampMicrosecondArray = changes.iter().map(|change| Some(change.arrived?.at)).collect();
    let (times, arrived) = (times.with_timezone("UTC"), arrived.with_timezone("UTC"));
    let own: [ArrayRef; 4] = [Arc::new(kinds), Arc::new(times), Arc::new(snapshots), Arc::new(arrived)];
    let columns = rows.columns().iter().cloned().chain(own);
    RecordBatch::try_new(Arc::clone(schema), columns.collect())
        .map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
}
