//! Mentions that arrived in the store, changed or were deleted since a commit.
//!
//! Each mention comes once, as it is now: as *deleted* if the service no longer has it, else as *arrived* if it has arrived
//! since then, else as *changed*. Of deleted mentions, those that the store keeps are known. Days that were removed from the
//! store are not listed; if they are read again, their mentions arrive again.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, SecondsFormat, Utc};

use super::catalog::Recorded;
use super::files::{self, FILTERS};
use super::region::{DataFile, Region};
use super::stamps::{Stamp, Stamped};
use super::{Store, only};
use crate::error::{Error, ErrorKind, Result};

/// The commit after which changes are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Since {
    /// The snapshot with this number.
    Snapshot(i64),
    /// The last commit until this instant.
    Instant(DateTime<Utc>),
}

/// Kinds of changes.
const ARRIVED: &str = "arrived";
const CHANGED: &str = "changed";
const DELETED: &str = "deleted";

/// A change of a mention, and its commit.
type Change = (&'static str, Stamp);

impl Since {
    /// True for a commit after this one.
    fn is_before(self, stamp: Stamp) -> bool {
        match self {
            Self::Snapshot(snapshot) => stamp.snapshot > snapshot,
            Self::Instant(at) => stamp.at > at.timestamp_micros(),
        }
    }

    fn change_of(self, stamped: Stamped) -> Option<Change> {
        if self.is_before(stamped.arrived) {
            return Some((ARRIVED, stamped.arrived));
        }
        self.is_before(stamped.changed).then_some((CHANGED, stamped.changed))
    }
}

impl Store {
    /// Columns of [`changes`](Self::changes): those of the files, the kind of the change, and the time and number of the commit.
    pub(crate) fn changes_schema(&self) -> SchemaRef {
        let own = [
            Field::new("change", DataType::Utf8, false),
            Field::new("changed_at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
            Field::new("snapshot", DataType::Int64, false),
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
                .advice("open it for writing once, for example with `savedsearch sync`"));
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

    /// Passes the mentions that changed since a commit on in batches of [`changes_schema`](Self::changes_schema), until the
    /// caller returns false. `aid`: of one saved search.
    ///
    /// # Errors
    /// Those of [`check_since`](Self::check_since), and of files that cannot be read.
    pub(crate) fn changes(
        &self,
        aid: Option<&str>,
        since: Since,
        mut take: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<()> {
        self.check_since(since)?;
        let schema = self.changes_schema();
        for aid in self.catalog.all_aids()?.into_iter().filter(|of| aid.is_none_or(|aid| aid == of)) {
            let (regions, deleted) = self.catalog.history(&aid)?;
            let mut batches = |rows: &RecordBatch, changes: &[Change]| take(with_changes(&schema, rows, changes)?);
            for region in &regions {
                if !self.read_changed(region, |stamped| since.change_of(stamped), &mut batches)? {
                    return Ok(());
                }
            }
            for (file, stamp) in deleted.iter().filter(|(_, stamp)| since.is_before(*stamp)) {
                if !self.read_gone(file, *stamp, &mut batches)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the snapshot that a cursor names.
    pub(crate) fn cursor(&self, name: &str) -> Result<Option<i64>> {
        let damaged =
            |_| Error::new(ErrorKind::Store, format!("the store is damaged: invalid value of cursor `{name}`"));
        self.catalog.cursor(name)?.map(|snapshot| snapshot.parse().map_err(damaged)).transpose()
    }

    /// Sets a cursor to a snapshot.
    pub(crate) fn set_cursor(&self, name: &str, snapshot: i64) -> Result<()> {
        self.catalog.set_cursor(name, &snapshot.to_string())
    }

    /// Number of the latest snapshot.
    pub(crate) fn latest_snapshot(&self) -> Result<i64> {
        Ok(self.catalog.recorded()?.map_or(0, |recorded| recorded.latest))
    }

    /// Passes the mentions that arrived after a snapshot and until another one on in batches, in the columns of
    /// the files. If commits after the first snapshot were not recorded, mentions of which the commit is unknown are
    /// passed on as well. Returns whether that was so.
    ///
    /// # Errors
    /// Those of files that cannot be read.
    pub(crate) fn arrivals(
        &self,
        aids: &[String],
        snapshots: &Range<i64>,
        mut take: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<bool> {
        let recorded = self.catalog.recorded()?;
        let lost = recorded.is_none_or(|recorded| recorded.after.snapshot > snapshots.start);
        let change_of = |Stamped { arrived, .. }: Stamped| {
            let is_new = arrived.snapshot > snapshots.start && arrived.snapshot <= snapshots.end;
            (is_new || (lost && arrived == Stamp::BEFORE)).then_some((ARRIVED, arrived))
        };
        for aid in self.catalog.all_aids()?.into_iter().filter(|aid| aids.is_empty() || aids.contains(aid)) {
            let (regions, _) = self.catalog.history(&aid)?;
            for region in &regions {
                self.read_changed(region, change_of, &mut |rows: &RecordBatch, _: &[Change]| {
                    take(rows.clone())?;
                    Ok(true)
                })?;
            }
        }
        Ok(lost)
    }

    /// Reads those mentions of a region that have a change. Returns whether the caller wants more.
    fn read_changed(
        &self,
        region: &Region,
        change_of: impl Fn(Stamped) -> Option<Change>,
        take: &mut impl FnMut(&RecordBatch, &[Change]) -> Result<bool>,
    ) -> Result<bool> {
        let Some(rows) = &region.rows else { return Ok(true) };
        let mut changes: Vec<Change> = Vec::new();
        let mut positions: Vec<Range<u64>> = Vec::new();
        for (run, stamped) in region.stamps.iter().flat_map(|stamps| stamps.runs()) {
            if let Some(change) = change_of(stamped) {
                changes.extend(run.clone().map(|_| change));
                let run = rows.first + run.start..rows.first + run.end;
                match positions.last_mut().filter(|last| last.end == run.start) {
                    Some(last) => last.end = run.end,
                    None => positions.push(run),
                }
            }
        }
        if positions.is_empty() {
            return Ok(true);
        }
        let mut readable = self.readable(rows.file.schema)?;
        readable.push(FILTERS.to_owned());
        let folder = self.catalog.folder(&super::Filters::default());
        let mut left = changes.as_slice();
        files::read_rows(&folder.join(&rows.file.path), &rows.file, &positions, |batch| {
            let batch = self.layout.arrange(&only(&batch, &readable)?)?;
            let (of_batch, rest) = left.split_at(batch.num_rows().min(left.len()));
            left = rest;
            take(&batch, of_batch)
        })
    }

    /// Reads deleted mentions of a file. Returns whether the caller wants more.
    fn read_gone(
        &self,
        file: &DataFile,
        stamp: Stamp,
        take: &mut impl FnMut(&RecordBatch, &[Change]) -> Result<bool>,
    ) -> Result<bool> {
        for batch in self.read_deleted(file)? {
            let batch = self.layout.arrange(&batch)?;
            if !take(&batch, &vec![(DELETED, stamp); batch.num_rows()])? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Adds the columns of changes to mentions.
fn with_changes(schema: &SchemaRef, rows: &RecordBatch, changes: &[Change]) -> Result<RecordBatch> {
    let kinds: StringArray = changes.iter().map(|(kind, _)| Some(*kind)).collect();
    let times: TimestampMicrosecondArray = changes.iter().map(|(_, stamp)| Some(stamp.at)).collect();
    let snapshots: Int64Array = changes.iter().map(|(_, stamp)| Some(stamp.snapshot)).collect();
    let own: [ArrayRef; 3] = [Arc::new(kinds), Arc::new(times.with_timezone("UTC")), Arc::new(snapshots)];
    let columns = rows.columns().iter().cloned().chain(own);
    RecordBatch::try_new(Arc::clone(schema), columns.collect())
        .map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
}
