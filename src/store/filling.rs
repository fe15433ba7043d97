//! Writes the rows that a query reads into the store, in a task of its own: files while rows arrive, and regions once all
//! rows have arrived, or once those of some days have and no others follow.
//!
//! Each page is written by work of its own on a thread for blocking work, and no thread is held while the task waits for pages: a
//! query whose rows nobody reads may wait for long. So the number of reads at a time is limited by no number of threads.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::filter_record_batch;
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinError, JoinHandle};

use super::coverage::{day_of, overlap, span_of};
use super::files::{self, AID, AS_OF, FILTERS, FileWriter, Layout, Size};
use super::first_seen::Seen;
use super::region::{DataFile, Day, Region, Rows, Subject};
use super::{FromStore, Regions, Store};
use crate::error::{Error, ErrorKind, Result};

/// Pages that wait for the writing task.
const WAITING: usize = 4;
/// Files that one read writes at the same time, beside the one of all small regions.
const OPEN: usize = 8;
/// Mentions that one read keeps in memory for the file of all small regions.
const BUFFERED: usize = 8_192;
/// Days before today that are a region each; earlier ones share one with their month.
pub(crate) const DAILY: Day = 35;

/// Days of a subject that are being read into the store.
///
/// Nothing is stored unless [`commit`](Self::commit) is called: dropping this removes what was written.
#[derive(Debug)]
pub(crate) struct Filling {
    store: Arc<Store>,
    subject: Subject,
    as_of: DateTime<Utc>,
    keeps_deleted: bool,
    settling: TimeDelta,
    /// Number of erasures before the read.
    erasures: Option<i64>,
    pages: Sender<Arriving>,
    writing: JoinHandle<Result<ReadDays>>,
}

/// A message to the writing task.
#[derive(Debug)]
enum Arriving {
    /// A page of mentions.
    Page(RecordBatch),
    /// The end of the read, with the days whose mentions have all arrived, in order of time; `None`: all days.
    End(Option<Vec<Range<Day>>>),
}

/// Days that were read into files.
#[derive(Debug, Default)]
pub(crate) struct ReadDays {
    pub(crate) new_regions: Vec<NewRegion>,
    /// Identities of stored regions that have none of their mentions.
    pub(crate) without: HashSet<i64>,
}

/// Days that become a region.
#[derive(Debug)]
pub(crate) struct NewRegion {
    pub(crate) days: Range<Day>,
    pub(crate) counts: Vec<u64>,
    /// Mentions that are in no file yet, if they are few.
    buffered: Vec<RecordBatch>,
    /// Files of this region, if it has many mentions.
    files: Vec<DataFile>,
    /// The stored region that has the same mentions, whose rows stay.
    pub(crate) unchanged: Option<i64>,
    /// Position of its mentions in the file of small regions.
    first: Option<u64>,
    /// The final place of its mentions.
    rows: Option<Rows>,
    /// Latest time so far, and whether all times were in order.
    last: i64,
    in_order: bool,
}

impl Filling {
    /// Begins to store these whole days. `as_of`: instant by the service's clock at which their first page was
    /// requested. `erasures`: their number before the query sent a request; `None`: none can have begun.
    pub(crate) fn start(
        from: &FromStore,
        subject: Subject,
        days: &Range<Day>,
        as_of: DateTime<Utc>,
        erasures: Option<i64>,
    ) -> Self {
        let (pages, arriving) = channel(WAITING);
        let writer = Writer::new(from, &subject, days, as_of);
        let writing = tokio::spawn(written(writer, arriving));
        let FromStore { store, keeps_deleted, settling, .. } = from;
        let (store, keeps_deleted, settling) = (Arc::clone(store), *keeps_deleted, *settling);
        Self { store, subject, as_of, keeps_deleted, settling, erasures, pages, writing }
    }

    /// Adds mentions, in the columns of the table. Those of other days are ignored. Returns whether the task still writes:
    /// if not, [`commit`](Self::commit) returns its error.
    pub(crate) async fn add(&self, page: RecordBatch) -> bool {
        self.pages.send(Arriving::Page(page)).await.is_ok()
    }

    /// Makes days a part of the store, after all their mentions have been added: those in `complete`, which are disjoint and in
    /// order of time; `None`: all of them. Returns the number of mentions of each.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if they cannot be written. The store then is as before.
    pub(crate) async fn commit(self, complete: Option<Vec<Range<Day>>>) -> Result<Vec<(Day, u64)>> {
        let Self { store, subject, as_of, keeps_deleted, settling, erasures, pages, writing } = self;
        // If the task has failed, its error follows.
        let _ = pages.send(Arriving::End(complete)).await;
        let read = writing.await.map_err(aborted)??;
        let counts = read
            .new_regions
            .iter()
            .flat_map(|new_region| new_region.days.clone().zip(new_region.counts.iter().copied()))
            .collect();
        let merging = Arc::clone(&store);
        blocking(move || store.commit(&subject, read, as_of, keeps_deleted, erasures)).await?;
        // The days are stored, whether files can be merged or not.
        let _ = merging.merge_tiny(as_of, settling).await;
        Ok(counts)
    }
}

/// Writes pages as they arrive.
async fn written(mut writer: Writer, mut arriving: Receiver<Arriving>) -> Result<ReadDays> {
    while let Some(message) = arriving.recv().await {
        match message {
            Arriving::Page(page) => {
                writer = blocking(move || {
                    writer.add(&page)?;
                    Ok(writer)
                })
                .await?;
            }
            Arriving::End(complete) => return blocking(move || writer.finish(complete.as_deref())).await,
        }
    }
    // The read has ended early: dropping the writer removes its files.
    blocking(move || {
        drop(writer);
        Ok(ReadDays::default())
    })
    .await
}

/// Runs work that waits for the disk, or for a lock, on a thread for such work.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(aborted)?
}

fn aborted(error: JoinError) -> Error {
    Error::new(ErrorKind::Store, format!("the store could not be used: {error}"))
}

/// Divides days into regions: whole months of the past, and single days.
pub(crate) fn days_of_regions(days: &Range<Day>, today: Day) -> Vec<Range<Day>> {
    let mut regions = Vec::new();
    let mut day = days.start;
    while day < days.end {
        let month = month_of(day);
        let end = if month.start >= days.start && month.end <= days.end && month.end <= today - DAILY {
            month.end
        } else {
            day + 1
        };
        regions.push(day..end);
        day = end;
    }
    regions
}

/// Returns the days of the month of a day.
pub(crate) fn month_of(day: Day) -> Range<Day> {
    let date = NaiveDate::from_epoch_days(day).unwrap_or_default();
    let first = date.with_day(1).unwrap_or(date);
    let next = first + chrono::Months::new(1);
    first.to_epoch_days()..next.to_epoch_days()
}

/// Writes the files of one read.
struct Writer {
    store: Arc<Store>,
    subject: Subject,
    layout: Layout,
    as_of: DateTime<Utc>,
    /// Set if stored rows stay where the same mentions were read again.
    renews: bool,
    /// By their first day.
    new_regions: BTreeMap<Day, NewRegion>,
    /// Files being written, by the first day of their region, the latest used last.
    open: Vec<(Day, FileWriter)>,
    /// Number of buffered mentions.
    buffered: usize,
}

impl Writer {
    fn new(from: &FromStore, subject: &Subject, days: &Range<Day>, as_of: DateTime<Utc>) -> Self {
        let FromStore { store, reads, .. } = from;
        let today = day_of(as_of.timestamp_micros());
        let new_regions = days_of_regions(days, today).into_iter().map(|days| (days.start, NewRegion::of(days)));
        Self {
            store: Arc::clone(store),
            subject: subject.clone(),
            layout: store.layout(subject).clone(),
            as_of,
            renews: *reads,
            new_regions: new_regions.collect(),
            open: Vec::new(),
            buffered: 0,
        }
    }

    fn add(&mut self, page: &RecordBatch) -> Result<()> {
        let page = self.layout.arrange(page)?;
        let page = self.labelled(&page)?;
        let times = self.layout.times(&page)?.to_vec();
        let mut begin = 0;
        while begin < times.len() {
            let new_region = |time: i64| {
                let day = day_of(time);
                let (first, new_region) = self.new_regions.range(..=day).next_back()?;
                new_region.days.contains(&day).then_some(*first)
            };
            let first = new_region(times[begin]);
            let rows = times[begin..].iter().take_while(|time| new_region(**time) == first).count();
            if let Some(first) = first {
                self.write(first, &page.slice(begin, rows), &times[begin..begin + rows])?;
            }
            begin += rows;
        }
        Ok(())
    }

    /// Returns a page with the columns that are the same for all its mentions.
    fn labelled(&self, page: &RecordBatch) -> Result<RecordBatch> {
        let text = |text: &str| Arc::new(StringArray::from(vec![text; page.num_rows()])) as ArrayRef;
        let as_of = || {
            let as_of = TimestampMicrosecondArray::from_value(self.as_of.timestamp_micros(), page.num_rows());
            Arc::new(as_of.with_timezone("UTC")) as ArrayRef
        };
        let columns = page.schema_ref().fields().iter().zip(page.columns()).enumerate();
        let columns = columns.map(|(at, (field, column))| match field.name().as_str() {
            AID => text(&self.subject.aid),
            FILTERS => text(&self.subject.filters.to_json()),
            AS_OF => as_of(),
            // Until it is known whether the store has it already.
            _ if self.layout.first_seen == Some(at) => as_of(),
            _ => Arc::clone(column),
        });
        RecordBatch::try_new(page.schema(), columns.collect())
            .map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
    }

    /// Keeps mentions of a new region in memory, or writes them to its file if it has one.
    fn write(&mut self, first: Day, rows: &RecordBatch, times: &[i64]) -> Result<()> {
        let Some(new_region) = self.new_regions.get_mut(&first) else { return Ok(()) };
        new_region.count(times);
        if !new_region.files.is_empty() || self.open.iter().any(|(day, _)| *day == first) {
            return self.append(first, rows);
        }
        new_region.buffered.push(rows.clone());
        self.buffered += rows.num_rows();
        while self.buffered > BUFFERED {
            let mentions =
                |new_region: &NewRegion| new_region.buffered.iter().map(RecordBatch::num_rows).sum::<usize>();
            let Some((first, largest)) = self.new_regions.iter_mut().max_by_key(|(_, new_region)| mentions(new_region))
            else {
                break;
            };
            let (first, rows) = (*first, std::mem::take(&mut largest.buffered));
            for rows in rows {
                self.buffered -= rows.num_rows();
                self.append(first, &rows)?;
            }
        }
        Ok(())
    }

    /// Writes mentions to the file of their region.
    fn append(&mut self, first: Day, rows: &RecordBatch) -> Result<()> {
        let file = match self.open.iter().position(|(day, _)| *day == first) {
            Some(at) => self.open.remove(at).1,
            None => {
                if self.open.len() >= OPEN {
                    let (day, oldest) = self.open.remove(0);
                    let file = oldest.finish()?;
                    self.new_regions.entry(day).and_modify(|new_region| new_region.files.push(file));
                }
                let (storage, folder) = (self.store.catalog.storage(), self.store.folder(&self.subject));
                FileWriter::create(storage, &folder, first, &self.layout, Size::Large)?
            }
        };
        self.open.push((first, file));
        if let Some((_, file)) = self.open.last_mut() {
            file.write(rows)?;
        }
        Ok(())
    }

    fn finish(mut self, complete: Option<&[Range<Day>]>) -> Result<ReadDays> {
        for (day, file) in std::mem::take(&mut self.open) {
            let file = file.finish()?;
            self.new_regions.entry(day).and_modify(|new_region| new_region.files.push(file));
        }
        if let Some(complete) = complete {
            self.retain(complete)?;
        }
        let seen = self.seen()?;
        let (storage, folder) = (self.store.catalog.storage(), self.store.folder(&self.subject));
        let known = match self.renews {
            true => self.store.regions(&self.subject.aid)?,
            false => Regions::default(),
        };
        let mut small: Option<FileWriter> = None;
        for new_region in self.new_regions.values_mut() {
            if new_region.files.len() > 1 || (!new_region.files.is_empty() && !new_region.in_order) {
                let mut batches = Vec::new();
                for file in &new_region.files {
                    let stored = files::read(&self.store.catalog, &folder.join(&file.path), file)?;
                    batches.extend(stored.iter().map(|batch| self.layout.arrange(batch)).collect::<Result<Vec<_>>>()?);
                }
                let sorted = FileWriter::of(storage, &folder, &new_region.days, &self.layout, &batches)?;
                self.store.remove(&self.subject, &new_region.files);
                new_region.files = sorted.into_iter().collect();
            }
            let same = self.store.same_counts(&self.subject, &known, new_region, self.as_of);
            if let [file] = new_region.files.as_slice()
                && (same.is_some() || !seen.is_empty())
            {
                let read = files::read(&self.store.catalog, &folder.join(&file.path), file)?;
                let read: Vec<_> = read.iter().map(|batch| self.layout.arrange(batch)).collect::<Result<_>>()?;
                if let Some(region) = same.filter(|region| self.store.has_same(&self.subject, region, &read)) {
                    self.store.remove(&self.subject, &new_region.files);
                    new_region.files.clear();
                    new_region.unchanged = region.id;
                    continue;
                }
                if let Some(file) = seen.written(&self.store, &self.subject, &self.layout, &new_region.days, read)? {
                    self.store.remove(&self.subject, &new_region.files);
                    new_region.files = vec![file];
                }
            }
            let rows = match std::mem::take(&mut new_region.buffered) {
                buffered if buffered.is_empty() => continue,
                buffered => self.layout.sorted(&buffered)?,
            };
            if let Some(region) = same
                && self.store.has_same(&self.subject, region, std::slice::from_ref(&rows))
            {
                new_region.unchanged = region.id;
                continue;
            }
            let rows = seen.applied(&self.store, &self.layout, &rows)?.unwrap_or(rows);
            let file = match &mut small {
                Some(file) => file,
                None => small.insert(FileWriter::create(
                    storage,
                    &folder,
                    new_region.days.start,
                    &self.layout,
                    Size::Small,
                )?),
            };
            new_region.first = Some(file.rows());
            file.write(&rows)?;
        }
        let small = small.map(FileWriter::finish).transpose()?.map(Arc::new);
        let mut new_regions: Vec<NewRegion> = std::mem::take(&mut self.new_regions).into_values().collect();
        for new_region in &mut new_regions {
            new_region.rows = match (new_region.first, &small) {
                (Some(first), Some(file)) => Some(Rows { file: Arc::clone(file), first }),
                _ => new_region.files.pop().map(|file| Rows { file: Arc::new(file), first: 0 }),
            };
        }
        Ok(ReadDays { new_regions, without: seen.without })
    }

    /// Returns what the store has of the mentions already.
    fn seen(&self) -> Result<Seen> {
        let new = || self.new_regions.values();
        let days: Vec<Range<Day>> = new().map(|new_region| new_region.days.clone()).collect();
        let (buffered, files) = (new().flat_map(|new| &new.buffered), new().flat_map(|new| &new.files));
        self.store.seen(&self.subject, &days, buffered, files)
    }

    /// Removes all days but these, and their mentions. Of a region that has several of their ranges, the longest one stays.
    fn retain(&mut self, complete: &[Range<Day>]) -> Result<()> {
        let Self { store, subject, layout, new_regions, .. } = self;
        let folder = store.folder(subject);
        new_regions.retain(|_, new_region| {
            let stays = complete.iter().any(|days| overlap(days, &new_region.days));
            if !stays {
                store.remove(subject, &new_region.files);
            }
            stays
        });
        for new_region in new_regions.values_mut() {
            // A region has days that follow each other.
            let parts = complete.iter().filter(|days| overlap(days, &new_region.days));
            let parts = parts.map(|days| days.start.max(new_region.days.start)..days.end.min(new_region.days.end));
            let Some(days) = parts.max_by_key(ExactSizeIterator::len) else { continue };
            if days == new_region.days {
                continue;
            }
            let mut rows = Vec::new();
            for file in &new_region.files {
                for batch in files::read(&store.catalog, &folder.join(&file.path), file)? {
                    rows.push(within(layout, &layout.arrange(&batch)?, &days)?);
                }
            }
            for batch in &new_region.buffered {
                rows.push(within(layout, batch, &days)?);
            }
            rows.retain(|batch| batch.num_rows() > 0);
            store.remove(subject, &new_region.files);
            new_region.files.clear();
            new_region.buffered.clear();
            if rows.iter().map(RecordBatch::num_rows).sum::<usize>() > BUFFERED {
                new_region.files.extend(FileWriter::of(store.catalog.storage(), &folder, &days, layout, &rows)?);
                new_region.in_order = true;
            } else {
                new_region.buffered = rows;
            }
            let first = (days.start - new_region.days.start) as usize;
            new_region.counts = new_region.counts[first..first + days.len()].to_vec();
            new_region.days = days;
        }
        Ok(())
    }
}

/// Returns the mentions of some days.
fn within(layout: &Layout, batch: &RecordBatch, days: &Range<Day>) -> Result<RecordBatch> {
    let span = span_of(days);
    let belongs: Vec<bool> = layout.times(batch)?.iter().map(|time| span.contains(time)).collect();
    filter_record_batch(batch, &belongs.into()).map_err(|error| Error::new(ErrorKind::Store, error.to_string()))
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Only after an error: `finish` takes the new regions.
        let written: Vec<DataFile> =
            self.new_regions.values_mut().flat_map(|new_region| new_region.files.drain(..)).collect();
        self.store.remove(&self.subject, &written);
    }
}

impl NewRegion {
    fn of(days: Range<Day>) -> Self {
        let counts = vec![0; days.len()];
        let (buffered, files) = (Vec::new(), Vec::new());
        let (unchanged, first, rows) = (None, None, None);
        Self { days, counts, buffered, files, unchanged, first, rows, last: i64::MIN, in_order: true }
    }

    fn count(&mut self, times: &[i64]) {
        for time in times {
            if let Some(count) = self.counts.get_mut((day_of(*time) - self.days.start) as usize) {
                *count += 1;
            }
            self.in_order &= self.last <= *time;
            self.last = self.last.max(*time);
        }
    }

    /// Returns the region of these days.
    pub(crate) fn region(self, as_of: DateTime<Utc>) -> Region {
        let Self { days, counts, rows, .. } = self;
        Region { id: None, days, counts, as_of, confirmed: as_of, sealed: false, rows, stamps: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse::<NaiveDate>().expect("a date").to_epoch_days()
    }

    #[test]
    fn whole_months_of_the_past_are_a_region() {
        let regions = days_of_regions(&(day("2026-01-30")..day("2026-04-02")), day("2026-04-20"));
        let first: Vec<Range<Day>> = regions.iter().take(3).cloned().collect();
        let expected = ["2026-01-30", "2026-01-31", "2026-02-01", "2026-03-01"].map(day);
        assert_eq!(first, [expected[0]..expected[1], expected[1]..expected[2], expected[2]..expected[3]]);
        // March ends less than 35 days ago.
        assert_eq!(regions.len(), 3 + 31 + 1);
        assert!(regions.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}
