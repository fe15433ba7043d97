//! The commits in which mentions arrived in the store, and in which they last changed.
//!
//! ```text
//! a day is read ─ compared with what the store had, by id and contents ─▶ stamps of its mentions, beside its region
//! ```
//!
//! Each region of unfiltered mentions has the stamps of its rows, in their order. They belong to the mentions: whatever moves
//! rows to other files or regions moves their stamps as well, so that compaction changes nothing of them.
//!
//! A mention *arrives* if the store did not have it before. It *changes* if its day is read again with other values in any
//! column but `as_of` and `first_seen`, or if it moves to another day. Days whose file was lost or damaged count as days that the store did not
//! have, because nothing can be compared with them. If a day is read again with the same mentions, no file is written: its rows
//! and stamps stay, and the catalog records the time of the read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StringArray};
use arrow::row::{RowConverter, SortField};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::catalog::Catalog;
use super::coverage::is_credible;
use super::files::{self, AID, AS_OF};
use super::filling::NewRegion;
use super::first_seen::FIRST_SEEN;
use super::region::{Day, Filters, Region, Subject};
use super::{Readers, Store, only};
use crate::error::{Error, ErrorKind, Result};

/// Regions that are replaced together, and those that replace them.
pub(super) type Group<'r> = (Vec<&'r Region>, Vec<&'r Region>);

/// A commit: a snapshot of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Number of the snapshot.
    pub(crate) snapshot: i64,
    /// Time of the commit, in microseconds since 1970.
    pub(crate) at: i64,
}

/// Stamps of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamped {
    /// The commit that it arrived in.
    pub(crate) arrived: Stamp,
    /// The latest commit in which it arrived or changed.
    pub(crate) changed: Stamp,
}

/// Stamps of consecutive mentions, as runs of equal ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<(u64, Stamped)>);

impl Stamp {
    /// Before commits were recorded.
    pub(crate) const BEFORE: Self = Self { snapshot: 0, at: i64::MIN };
    /// The commit that is being made. It gets its number in the transaction.
    pub(crate) const NOW: Self = Self { snapshot: i64::MAX, at: i64::MAX };

    /// The commit that is being made, if this stands for it.
    pub(crate) fn or(self, now: Self) -> Self {
        if self == Self::NOW { now } else { self }
    }
}

impl Stamped {
    /// A mention that arrives now.
    const NEW: Self = Self { arrived: Stamp::NOW, changed: Stamp::NOW };
    /// A mention that was stored before commits were recorded.
    pub(crate) const BEFORE: Self = Self { arrived: Stamp::BEFORE, changed: Stamp::BEFORE };
}

impl Stamps {
    /// The same stamps for a number of mentions.
    pub(crate) fn same(rows: u64, stamped: Stamped) -> Self {
        let mut stamps = Self::default();
        stamps.push(rows, stamped);
        stamps
    }

    /// Adds mentions at the end.
    pub(crate) fn push(&mut self, rows: u64, stamped: Stamped) {
        match self.0.last_mut() {
            Some((before, last)) if *last == stamped => *before += rows,
            _ if rows > 0 => self.0.push((rows, stamped)),
            _ => {}
        }
    }

    /// Adds the mentions of others at the end.
    pub(crate) fn append(&mut self, other: &Self) {
        other.0.iter().for_each(|(rows, stamped)| self.push(*rows, *stamped));
    }

    /// Number of mentions.
    pub(crate) fn rows(&self) -> u64 {
        self.0.iter().map(|(rows, _)| rows).sum()
    }

    /// Returns the runs, with the positions of their mentions.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Range<u64>, Stamped)> {
        self.0.iter().scan(0, |next, (rows, stamped)| {
            let first = *next;
            *next += rows;
            Some((first..*next, *stamped))
        })
    }

    /// Returns the stamps of some of the mentions, by their positions.
    pub(crate) fn part(&self, rows: &Range<u64>) -> Self {
        let mut part = Self::default();
        for (run, stamped) in self.runs() {
            let (first, end) = (run.start.max(rows.start), run.end.min(rows.end));
            part.push(end.saturating_sub(first), stamped);
        }
        part
    }

    /// Returns the stamps of those mentions that stay.
    pub(crate) fn retained(&self, stays: impl IntoIterator<Item = bool>) -> Self {
        let mut stays = stays.into_iter();
        let mut retained = Self::default();
        for (rows, stamped) in &self.0 {
            let kept = (0..*rows).filter(|_| stays.next().unwrap_or(true)).count();
            retained.push(kept as u64, *stamped);
        }
        retained
    }

    /// Returns the stamps as the catalog keeps them. `now`: the commit that is being made.
    ///
    /// Variable-length integers: the number of commits; each with the differences to the one before, of its number and its time;
    /// then runs of a number of mentions and the positions of two commits, of which 0 means before commits were recorded.
    pub(crate) fn encode(&self, now: Stamp) -> Vec<u8> {
        let resolved = |stamp: Stamp| stamp.or(now);
        let mut commits: BTreeMap<i64, i64> = BTreeMap::new();
        for (_, Stamped { arrived, changed }) in &self.0 {
            let known = [*arrived, *changed].map(resolved).into_iter().filter(|stamp| *stamp != Stamp::BEFORE);
            commits.extend(known.map(|stamp| (stamp.snapshot, stamp.at)));
        }
        let mut bytes = Vec::new();
        write(&mut bytes, commits.len() as u64);
        let mut last = (0, 0);
        for (snapshot, at) in &commits {
            write(&mut bytes, zigzag(snapshot.wrapping_sub(last.0)));
            write(&mut bytes, zigzag(at.wrapping_sub(last.1)));
            last = (*snapshot, *at);
        }
        let places: HashMap<i64, u64> = commits.into_keys().zip(1..).collect();
        for (rows, Stamped { arrived, changed }) in &self.0 {
            write(&mut bytes, *rows);
            for stamp in [*arrived, *changed] {
                write(&mut bytes, places.get(&resolved(stamp).snapshot).copied().unwrap_or_default());
            }
        }
        bytes
    }

    /// Returns the stamps of their encoded form; `None` if it is damaged.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let count = read(bytes)?;
        let mut commits = vec![Stamp::BEFORE];
        let mut last = (0_i64, 0_i64);
        for _ in 0..count {
            last = (last.0.wrapping_add(unzigzag(read(bytes)?)), last.1.wrapping_add(unzigzag(read(bytes)?)));
            commits.push(Stamp { snapshot: last.0, at: last.1 });
        }
        let mut stamps = Self::default();
        while !bytes.is_empty() {
            let rows = read(bytes)?;
            let mut commit = || commits.get(usize::try_from(read(bytes)?).ok()?).copied();
            stamps.push(rows, Stamped { arrived: commit()?, changed: commit()? });
        }
        Some(stamps)
    }
}

/// Writes a number in groups of seven bits, the lowest first.
fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Numbers near zero become small ones, whatever their sign is.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Digest of a mention's values.
type Contents = [u8; 16];

/// A mention that the store had before.
struct Known {
    contents: Contents,
    /// Version of the columns of its file.
    version: i64,
    stamped: Stamped,
}

impl Region {
    /// Returns the region with these stamps; without any, its mentions were stored before commits were recorded.
    pub(super) fn stamped(&self, stamps: Option<Stamps>) -> Result<Self> {
        let stamps = stamps.unwrap_or_else(|| Stamps::same(self.mentions(), Stamped::BEFORE));
        if stamps.rows() != self.mentions() {
            return Err(Error::new(ErrorKind::Store, "the store is damaged: a day has commits of other mentions")
                .advice("remove its folder, or use another one"));
        }
        Ok(Self { stamps: Some(Arc::new(stamps)), ..self.clone() })
    }
}

impl Catalog {
    /// Returns a region of the catalog with the stamps of its mentions; `None` if another process has replaced it.
    pub(super) fn with_stamps(&self, region: &Region) -> Result<Option<Region>> {
        let stamps = self.stamps(region.id.unwrap_or_default())?;
        stamps.map(|stamps| region.stamped(stamps)).transpose()
    }
}

impl Store {
    /// Returns the stamps of the mentions of new regions, by their first days; `None` if another process has replaced regions.
    /// The replaced regions have stamps. `known`: all regions of the saved search; `without`: identities of those that have none of
    /// the mentions.
    pub(super) fn stamps_of(
        &self,
        subject: &Subject,
        known: &[Region],
        groups: &[Group<'_>],
        without: &HashSet<i64>,
    ) -> Result<Option<BTreeMap<Day, Arc<Stamps>>>> {
        let mut stamps = BTreeMap::new();
        if !subject.filters.is_empty() {
            return Ok(Some(stamps));
        }
        let new: Vec<&Region> = groups.iter().flat_map(|(_, new)| new).copied().collect();
        let is_new = |day: Day| new.iter().any(|region| region.days.contains(&day));
        let old: Vec<Region> = groups.iter().flat_map(|(old, _)| old).flat_map(|region| region.parts(is_new)).collect();
        let before = self.known_mentions(subject, &old)?;
        let mut versions: Vec<i64> = before.values().map(|known| known.version).collect();
        versions.sort_unstable();
        versions.dedup();
        let compared: HashMap<i64, Vec<String>> =
            versions.into_iter().map(|version| Ok((version, self.compared(version)?))).collect::<Result<_>>()?;
        // Mentions that the replaced days did not have, by id.
        let mut arriving: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        let mut all: Vec<Vec<Stamped>> = Vec::with_capacity(new.len());
        let mut readers = Readers::new();
        for (at, region) in new.iter().enumerate() {
            let mut rows: Vec<Stamped> = Vec::new();
            for batch in self.read(&mut readers, subject, region)? {
                let ids = self.keys(&batch)?;
                let contents = compared
                    .iter()
                    .map(|(version, columns)| Ok((*version, contents(&batch, columns)?)))
                    .collect::<Result<HashMap<_, _>>>()?;
                for (row, id) in ids.into_iter().enumerate() {
                    let stamped = match before.get(&id) {
                        Some(known) if contents[&known.version][row] == known.contents => known.stamped,
                        Some(known) => Stamped { changed: Stamp::NOW, ..known.stamped },
                        None => {
                            arriving.entry(id).or_default().push((at, rows.len()));
                            Stamped::NEW
                        }
                    };
                    rows.push(stamped);
                }
            }
            all.push(rows);
        }
        let replaced: Vec<Option<i64>> = groups.iter().flat_map(|(old, _)| old).map(|region| region.id).collect();
        let staying = groups.iter().flat_map(|(old, _)| old).flat_map(|region| region.parts(|day| !is_new(day)));
        let has_some = |region: &&Region| region.id.is_none_or(|id| !without.contains(&id));
        let others = known.iter().filter(|region| !replaced.contains(&region.id)).filter(has_some).cloned();
        if !self.mark_moved(subject, staying.chain(others), arriving, &mut all)? {
            return Ok(None);
        }
        for (region, rows) in new.iter().zip(all) {
            let mut of = Stamps::default();
            rows.into_iter().for_each(|stamped| of.push(1, stamped));
            stamps.insert(region.days.start, Arc::new(of));
        }
        Ok(Some(stamps))
    }

    /// Marks the arriving mentions that another day has as moved. `arriving`: their places in `all`, by id. Returns false if another
    /// process has replaced one of the regions.
    fn mark_moved(
        &self,
        subject: &Subject,
        regions: impl Iterator<Item = Region>,
        mut arriving: HashMap<String, Vec<(usize, usize)>>,
        all: &mut [Vec<Stamped>],
    ) -> Result<bool> {
        for region in regions {
            let Some(id) = self.id.as_deref().filter(|_| !arriving.is_empty()) else { break };
            let Some(file) = region.file() else { continue };
            let path = self.folder(subject).join(&file.path);
            let rows = region.rows_of(&region.days);
            // What cannot be read is not in the store.
            let Ok(ids) = files::row_ids(&self.catalog, &path, file, std::slice::from_ref(&rows), id) else {
                continue;
            };
            if !ids.iter().flatten().any(|id| arriving.contains_key(id)) {
                continue;
            }
            let stamps = match &region.stamps {
                Some(stamps) => Arc::clone(stamps),
                None => match self.catalog.with_stamps(&region)? {
                    Some(region) => region.stamps.unwrap_or_default(),
                    None => return Ok(false),
                },
            };
            let stamps: Vec<Stamped> = stamps.runs().flat_map(|(run, stamped)| run.map(move |_| stamped)).collect();
            for (id, stamped) in ids.iter().zip(&stamps) {
                for (at, row) in id.as_ref().and_then(|id| arriving.remove(id)).into_iter().flatten() {
                    all[at][row] = Stamped { changed: Stamp::NOW, ..*stamped };
                }
            }
        }
        Ok(true)
    }

    /// Reads mentions that are about to be replaced, by id.
    fn known_mentions(&self, subject: &Subject, regions: &[Region]) -> Result<HashMap<String, Known>> {
        let (mut known, mut readers) = (HashMap::new(), Readers::new());
        for region in regions {
            let (Some(file), Some(stamps)) = (region.file(), &region.stamps) else { continue };
            let version = file.schema;
            let compared = self.compared(version)?;
            // What cannot be read is not in the store.
            let Ok(batches) = self.read(&mut readers, subject, region) else { continue };
            let mut stamps = stamps.runs().flat_map(|(run, stamped)| run.map(move |_| stamped));
            for batch in batches {
                let rows = self.keys(&batch)?.into_iter().zip(contents(&batch, &compared)?);
                for ((id, contents), stamped) in rows.zip(&mut stamps) {
                    known.insert(id, Known { contents, version, stamped });
                }
            }
        }
        Ok(known)
    }

    /// Returns the stored region of days that were read again at an instant, if it has as many mentions of each day, in the columns
    /// of today. `known`: all regions of the saved search.
    pub(super) fn same_counts<'r>(
        &self,
        subject: &Subject,
        known: &'r [(Filters, Arc<Region>)],
        read: &NewRegion,
        as_of: DateTime<Utc>,
    ) -> Option<&'r Region> {
        let same = |(filters, region): &&(Filters, Arc<Region>)| {
            *filters == subject.filters && region.days == read.days && region.counts == read.counts
        };
        let (_, region) = known.iter().find(same)?;
        let now = self.catalog.now() + self.ahead();
        let is_of_today = region.file().is_some_and(|file| file.schema == self.catalog.schema());
        (is_of_today && region.as_of <= as_of && is_credible(region, now)).then_some(region.as_ref())
    }

    /// True if a region has these mentions, with the same values in all columns but `as_of`.
    pub(super) fn has_same(&self, subject: &Subject, region: &Region, rows: &[RecordBatch]) -> bool {
        let digests = |batches: &[RecordBatch]| -> Result<Vec<Contents>> {
            let columns = self.compared(self.catalog.schema())?;
            let mut digests = Vec::new();
            for batch in batches {
                digests.extend(contents(batch, &columns)?);
            }
            digests.sort_unstable();
            Ok(digests)
        };
        let stored = self.read(&mut Readers::new(), subject, region).and_then(|stored| digests(&stored));
        // What cannot be read is replaced.
        stored.ok().zip(digests(rows).ok()).is_some_and(|(stored, read)| stored == read)
    }

    /// Names of the columns by which a mention of a file of this version is compared with one of today.
    fn compared(&self, version: i64) -> Result<Vec<String>> {
        let mut names = self.readable(version)?;
        if version != self.catalog.schema() {
            // What belongs to no column depends on all columns.
            let rest = self.catalog.columns_of(version)?;
            let rest = rest.iter().filter(|column| column.source.starts_with("Extra")).map(|column| &column.name);
            let rest: Vec<&String> = rest.collect();
            names.retain(|name| !rest.contains(&name));
        }
        // Times of reads. A column `first_seen` of the profile is one of the mentions.
        let own = if self.layout.first_seen.is_some() { FIRST_SEEN } else { AS_OF };
        names.retain(|name| ![AID, AS_OF, own].contains(&name.as_str()));
        Ok(names)
    }

    /// Returns the ids of mentions. One without an id is known by its values.
    pub(super) fn keys(&self, batch: &RecordBatch) -> Result<Vec<String>> {
        let failed = |error: arrow::error::ArrowError| Error::new(ErrorKind::Store, error.to_string());
        let ids = match self.layout.id {
            Some(id) => files::texts(batch.column(id)).map_err(failed)?,
            None => StringArray::new_null(batch.num_rows()),
        };
        if ids.null_count() == 0 {
            return Ok(ids.iter().flatten().map(str::to_owned).collect());
        }
        let contents = contents(batch, &self.compared(self.catalog.schema())?)?;
        let key = |(id, contents): (Option<&str>, Contents)| match id {
            Some(id) => id.to_owned(),
            None => format!("\0{:032x}", u128::from_le_bytes(contents)),
        };
        Ok(ids.iter().zip(contents).map(key).collect())
    }
}

/// Returns the digest of each row of some columns.
fn contents(batch: &RecordBatch, names: &[String]) -> Result<Vec<Contents>> {
    let failed = |error: arrow::error::ArrowError| Error::new(ErrorKind::Store, error.to_string());
    let batch = only(batch, names)?;
    if batch.num_columns() == 0 {
        return Ok(vec![Contents::default(); batch.num_rows()]);
    }
    let fields = batch.columns().iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields).and_then(|converter| converter.convert_columns(batch.columns()));
    let digest = |row: arrow::row::Row<'_>| {
        let mut contents = Contents::default();
        contents.copy_from_slice(&Sha256::digest(row.data())[..16]);
        contents
    };
    Ok(rows.map_err(failed)?.iter().map(digest).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn commit(number: i64) -> Stamp {
        match number {
            0 => Stamp::BEFORE,
            9 => Stamp::NOW,
            number => Stamp { snapshot: number, at: 1_000_000 * number - 3_000_000 },
        }
    }

    proptest! {
        #[test]
        fn stamps_are_read_as_they_were_written(
            rows in prop::collection::vec((0..10_i64, 0..10_i64), 0..40), from in 0..40_usize, length in 0..40_usize,
        ) {
            let rows: Vec<Stamped> =
                rows.into_iter().map(|(arrived, changed)| Stamped { arrived: commit(arrived), changed: commit(changed) }).collect();
            let of = |rows: &[Stamped]| {
                let mut stamps = Stamps::default();
                rows.iter().for_each(|stamped| stamps.push(1, *stamped));
                stamps
            };
            let stamps = of(&rows);
            prop_assert_eq!(stamps.rows(), rows.len() as u64);
            let now = Stamp { snapshot: 70_000, at: 1_790_000_000_000_000 };
            let resolved = |stamp: Stamp| stamp.or(now);
            let expected: Vec<Stamped> = rows
                .iter()
                .map(|row| Stamped { arrived: resolved(row.arrived), changed: resolved(row.changed) })
                .collect();
            prop_assert_eq!(Stamps::decode(&stamps.encode(now)), Some(of(&expected)));
            let first = from.min(rows.len());
            let end = (first + length).min(rows.len());
            prop_assert_eq!(stamps.part(&(first as u64..end as u64)), of(&rows[first..end]));
            let odd: Vec<Stamped> = rows.iter().skip(1).step_by(2).copied().collect();
            prop_assert_eq!(stamps.retained((0..).map(|row| row % 2 == 1)), of(&odd));
            let mut twice = of(&rows[..first]);
            twice.append(&of(&rows[first..]));
            prop_assert_eq!(twice, stamps);
        }
    }
}
