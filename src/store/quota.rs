//! A limit of the size of a store: its oldest days are removed, of all saved searches alike.
//!
//! ```text
//! size of files > quota ─▶ files are merged ─ still larger ─▶ the first day that fits is recorded ─▶ days before it are removed
//! ```
//!
//! Counted are the files of mentions and of deleted mentions, and the indexes beside them. The catalog is not, and neither are
//! files that were replaced and stay for the grace period. A day has the part of a file that its mentions have, as if all had the
//! same size.
//!
//! The first day that fits is recorded before days are removed. A synchronization does not read the days before it, because it
//! would remove them again. The record holds for its quota only: with another one, they are read.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::compaction::Extent;
use super::coverage::day_of;
use super::erasure::Erased;
use super::maintenance::date_of;
use super::region::Day;
use super::{Store, index};
use crate::error::{Error, ErrorKind, Result};

/// Name in the catalog of a quota, and of the first day that fits it.
const QUOTA: &str = "quota";

/// Lengths of the files of a store, listed once, because that takes requests to a bucket. Files that are written later are not among
/// them: those of mentions have their lengths in the catalog, and indexes are counted at the end of a synchronization.
#[derive(Debug)]
pub(crate) struct Lengths(Option<HashMap<PathBuf, u64>>);

/// Sizes of files, in bytes.
#[derive(Debug, Default)]
struct Sizes {
    total: u64,
    /// Of the mentions of each day.
    days: BTreeMap<Day, u64>,
}

impl Store {
    /// Removes the oldest days until the files have at most this size, in bytes. Replaced files stay for the grace period.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the newest day alone is larger, and those of [`retain_from`](Self::retain_from).
    pub(crate) fn fit(&self, quota: u64, now: DateTime<Utc>, settling: TimeDelta) -> Result<Erased> {
        let current = || self.sizes(&self.listed()?);
        let (mut erased, mut sizes) = (Erased::default(), current()?);
        if sizes.total > quota {
            // Small files, and rows that no region has, cost no day.
            self.merge_small(now, settling, Extent::All)?;
            // The next removal takes a file that stays, and a synchronization notes it.
            let _ = self.sweep(now);
            sizes = current()?;
        }
        while let Some(first) = sizes.first_that_fits(quota) {
            let (Some((oldest, _)), Some((newest, _))) = (sizes.days.first_key_value(), sizes.days.last_key_value())
            else {
                break;
            };
            let first = date_of(first.max(oldest + 1));
            if first > date_of(*newest) {
                let what = format!("the mentions of {} alone are larger than the quota of the store", date_of(*newest));
                return Err(Error::new(ErrorKind::Store, what).advice("set a larger quota"));
            }
            self.catalog.set_cursor(QUOTA, &format!("{quota} {first}"))?;
            erased = erased.and(self.retain_from(first, now, settling)?);
            sizes = current()?;
        }
        Ok(erased)
    }

    /// The first day that fits a quota, as recorded when older ones were removed; `None` if no day was.
    pub(crate) fn kept_from(&self, quota: u64) -> Result<Option<NaiveDate>> {
        let recorded = self.catalog.cursor(QUOTA)?;
        let recorded = recorded.as_deref().and_then(|recorded| recorded.split_once(' '));
        let of_quota = recorded.filter(|(of, _)| of.parse::<u64>() == Ok(quota));
        Ok(of_quota.and_then(|(_, first)| first.parse().ok()))
    }

    /// Lists the lengths of files.
    pub(crate) fn listed(&self) -> Result<Lengths> {
        self.lengths().map(Lengths)
    }

    /// The first day that fits a quota at present; `None` if all do. Sends no request to a bucket.
    pub(crate) fn first_that_fits(&self, quota: u64, lengths: &Lengths) -> Result<Option<Day>> {
        Ok(self.sizes(lengths)?.first_that_fits(quota))
    }

    fn sizes(&self, Lengths(lengths): &Lengths) -> Result<Sizes> {
        let (mut files, mut days) = (HashMap::<PathBuf, u64>::new(), BTreeMap::<Day, u64>::new());
        for aid in self.catalog.aids()? {
            for (filters, region) in self.regions(&aid)?.iter() {
                let Some(file) = region.file() else { continue };
                let path = self.catalog.folder(filters).join(&file.path);
                let with_index =
                    |path: &PathBuf| file.bytes + index::bytes_of_index(self.catalog.storage(), lengths.as_ref(), path);
                let bytes = *files.entry(path).or_insert_with_key(with_index);
                // A day without mentions needs no space.
                for (day, mentions) in region.days.clone().zip(&region.counts).filter(|(_, mentions)| **mentions > 0) {
                    *days.entry(day).or_default() += file.share_of(bytes, *mentions);
                }
            }
        }
        let folder = self.catalog.folder_of_deleted();
        for file in self.deleted_files()? {
            // What is left of it after a removal is counted again.
            *days.entry(day_of(file.times.0)).or_default() += file.bytes;
            files.insert(folder.join(&file.path), file.bytes);
        }
        Ok(Sizes { total: files.values().sum(), days })
    }
}

impl Sizes {
    /// The first day of the latest ones that have at most this size together, or the latest one; `None` if all files have.
    fn first_that_fits(&self, quota: u64) -> Option<Day> {
        if self.total <= quota {
            return None;
        }
        let (mut kept, mut first) = (0_u64, None);
        for (day, bytes) in self.days.iter().rev() {
            kept = kept.saturating_add(*bytes);
            if kept > quota && first.is_some() {
                break;
            }
            first = Some(*day);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_days_fit() {
        let sizes = |total: u64| Sizes { total, days: [(1, 30), (2, 40), (5, 20), (6, 10)].into() };
        let cases =
            [(100, None), (99, Some(2)), (70, Some(2)), (69, Some(5)), (30, Some(5)), (29, Some(6)), (3, Some(6))];
        for (quota, expected) in cases {
            assert_eq!(sizes(100).first_that_fits(quota), expected, "{quota}");
        }
        // Rows without a region count as well.
        assert_eq!(sizes(110).first_that_fits(100), Some(1));
        assert_eq!(Sizes::default().first_that_fits(0), None);
    }
}
