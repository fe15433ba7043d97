//! Regions of a store: days of mentions that were read completely, as plain values.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::stamps::{Stamp, Stamps};
use crate::request::FilterTerm;

/// A day in UTC, counted from 1970-01-01.
pub(crate) type Day = i32;

/// The mentions that a region is a part of: those of one saved search that match what the service was asked to filter by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subject {
    /// Saved search.
    pub(crate) aid: String,
    /// The filters that were sent.
    pub(crate) filters: Filters,
}

/// Filters in normal form: values by parameter, any of which matches; both sorted, none twice. Empty: all mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Filters(pub(crate) BTreeMap<String, Vec<String>>);

/// Consecutive days of a subject that were read completely, in one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    /// Identity in the catalog; `None` before it is written.
    pub(crate) id: Option<i64>,
    /// The days, half-open.
    pub(crate) days: Range<Day>,
    /// Number of mentions of each day.
    pub(crate) counts: Vec<u64>,
    /// Instant by the service's clock at which the first page was requested.
    pub(crate) as_of: DateTime<Utc>,
    /// Latest instant at which the service was seen to have these mentions: `as_of`, or when their numbers were confirmed.
    pub(crate) confirmed: DateTime<Utc>,
    /// Set once a timeline confirmed the numbers after all days had settled.
    pub(crate) sealed: bool,
    /// The place of the mentions; `None` if there are none.
    pub(crate) rows: Option<Rows>,
    /// The commits of the mentions; `None` if they were not read from the catalog, or if there are filters.
    pub(crate) stamps: Option<Arc<Stamps>>,
}

/// Consecutive rows of a file: the mentions of a region, in order of time. Regions may share a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) file: Arc<DataFile>,
    /// Position of the first one in the file.
    pub(crate) first: u64,
}

/// A Parquet file of mentions: those of each region follow each other, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataFile {
    /// Path below the data folder of its table, with `/` between its parts.
    pub(crate) path: String,
    /// Number of rows, at least 1. Those that no region names are no longer mentions.
    pub(crate) rows: u64,
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// Length of the Parquet footer in bytes, without its length and magic number.
    pub(crate) footer: u64,
    /// First and last instant of the time column, in microseconds since 1970.
    pub(crate) times: (i64, i64),
    /// Version of the columns that it was written with.
    pub(crate) schema: i64,
    /// SHA-256 digest of its contents, in hexadecimal digits.
    pub(crate) digest: String,
    /// Checksums of its blocks, as [`Sums`](super::Sums) has them, if it was written just now; empty for files of the catalog.
    pub(crate) blocks: Vec<u8>,
}

/// Changes of the mentions that the store keeps after the service has deleted them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deletions {
    /// Identities of the files with deleted mentions of the saved search before the changes.
    pub(crate) known: Vec<i64>,
    /// Those of them that are replaced, because mentions in them have come back.
    pub(crate) ended: Vec<i64>,
    /// New files, with the commit in which the mentions were deleted; `None`: it was not recorded.
    pub(crate) added: Vec<(DataFile, Option<Stamp>)>,
}

impl Region {
    /// Number of mentions of a day; `None` if the region does not have it.
    pub(crate) fn count_of(&self, day: Day) -> Option<u64> {
        self.counts.get(usize::try_from(day - self.days.start).ok()?).copied()
    }

    /// Number of mentions.
    pub(crate) fn mentions(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The file with the mentions; `None` if there are none.
    pub(crate) fn file(&self) -> Option<&Arc<DataFile>> {
        self.rows.as_ref().map(|rows| &rows.file)
    }

    /// Size of the mentions in their file, in bytes, as if all its rows had the same size.
    pub(crate) fn bytes(&self) -> u64 {
        self.file().map_or(0, |file| file.share(self.mentions()))
    }

    /// Positions in the file of the mentions of some days; empty if there are none.
    pub(crate) fn rows_of(&self, days: &Range<Day>) -> Range<u64> {
        let first = self.rows.as_ref().map_or(0, |rows| rows.first);
        let until = |day: Day| {
            let days = usize::try_from(day - self.days.start).unwrap_or_default();
            first + self.counts.iter().take(days).sum::<u64>()
        };
        until(days.start)..until(days.end)
    }

    /// Returns the region of some of its days. The mentions stay where they are.
    pub(crate) fn part(&self, days: Range<Day>) -> Self {
        let positions = self.rows_of(&days);
        let counts: Vec<u64> = days.clone().filter_map(|day| self.count_of(day)).collect();
        let rows = self.rows.as_ref().filter(|_| !positions.is_empty());
        let rows = rows.map(|rows| Rows { file: Arc::clone(&rows.file), first: positions.start });
        let first = self.rows.as_ref().map_or(0, |rows| rows.first);
        let within = positions.start - first..positions.end - first;
        let stamps = self.stamps.as_ref().map(|stamps| Arc::new(stamps.part(&within)));
        Self { id: None, days, counts, rows, stamps, ..*self }
    }

    /// Returns the regions of the days that stay.
    pub(crate) fn parts(&self, stays: impl Fn(Day) -> bool) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut day = self.days.start;
        while day < self.days.end {
            let run = (day..self.days.end).take_while(|day| stays(*day)).count();
            let end = day + Day::try_from(run).unwrap_or(1);
            if day < end {
                parts.push(self.part(day..end));
            }
            day = end + 1;
        }
        parts
    }
}

impl DataFile {
    /// Size of some of its rows in bytes, as if all had the same size.
    pub(crate) fn share(&self, rows: u64) -> u64 {
        self.share_of(self.bytes, rows)
    }

    /// Part of a size that belongs to some of its rows, as if all had the same part.
    pub(crate) fn share_of(&self, bytes: u64, rows: u64) -> u64 {
        let bytes = u128::from(bytes) * u128::from(rows) / u128::from(self.rows.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl Filters {
    /// Returns the normal form of sent filters.
    pub(crate) fn of(sent: &[FilterTerm]) -> Self {
        let mut filters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for FilterTerm { parameter, values } in sent {
            let known = filters.entry(parameter.clone()).or_default();
            known.extend(values.iter().cloned());
            known.sort_unstable();
            known.dedup();
        }
        Self(filters)
    }

    /// Returns the filters as they are sent.
    pub(crate) fn to_terms(&self) -> Vec<FilterTerm> {
        let term = |(parameter, values): (&String, &Vec<String>)| FilterTerm {
            parameter: parameter.clone(),
            values: values.clone(),
        };
        self.0.iter().map(term).collect()
    }

    /// True if all mentions that match `other` match these filters: a region of these serves a query for `other`.
    pub(crate) fn cover(&self, other: &Self) -> bool {
        self.0.iter().all(|(parameter, values)| {
            other.0.get(parameter).is_some_and(|narrower| narrower.iter().all(|value| values.contains(value)))
        })
    }

    /// The filters as a JSON object.
    pub(crate) fn to_json(&self) -> String {
        serde_json::json!(self.0).to_string()
    }

    /// True if all mentions match.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
