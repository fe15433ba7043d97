//! Maintenance of a store: a summary of its contents, checks of its files, and removal of data that is no longer needed.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use super::catalog::Catalog;
use super::coverage::day_of;
use super::filling::{DAILY, month_of};
use super::region::{DataFile, Day, Filters, Region, Subject};
use super::{Store, Written, files};
use crate::error::Result;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

/// Age at which responses are removed.
const RESPONSES: TimeDelta = TimeDelta::days(30);
/// Time for which files that no region names stay: queries that began before may still read them.
const GRACE: TimeDelta = TimeDelta::hours(1);
/// Time for which files that the catalog does not know stay: a slow read names its files once it is complete.
const ABANDONED: TimeDelta = TimeDelta::days(1);

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
    /// Day after the last one.
    pub to: NaiveDate,
    /// Number of stored days between them.
    pub days: u64,
    /// Number of days whose numbers were confirmed after they had settled.
    pub sealed_days: u64,
    /// Number of mentions.
    pub mentions: u64,
    /// Number of files.
    pub files: u64,
    /// Length of the files.
    pub bytes: u64,
    /// Earliest instant at which one of the days was last seen at the service.
    pub confirmed_at: DateTime<Utc>,
}

impl Store {
    /// Returns the saved searches of which days are stored.
    pub(crate) fn aids(&self) -> Result<Vec<String>> {
        self.catalog.aids()
    }

    /// Returns what the store has, in the order of aids and filters.
    pub(crate) fn holdings(&self) -> Result<Vec<Holding>> {
        let mut holdings: BTreeMap<Subject, Holding> = BTreeMap::new();
        for aid in self.catalog.aids()? {
            for (filters, region) in self.regions(&aid)?.iter() {
                let subject = Subject { aid: aid.clone(), filters: filters.clone() };
                holdings.entry(subject).or_insert_with_key(|subject| Holding::of(subject, region)).add(region);
            }
        }
        Ok(holdings.into_values().collect())
    }

    /// Compares the catalog with the files. Returns the problems in words; none if there are none.
    pub(crate) fn verify(&self) -> Result<Vec<String>> {
        let mut problems = self.catalog.check()?;
        for aid in self.catalog.aids()? {
            for (filters, region) in self.catalog.regions(&aid)? {
                let subject = Subject { aid: aid.clone(), filters };
                let folder = self.folder(&subject);
                problems.extend(region.files.iter().filter_map(|file| problem_of(&folder, file)));
            }
        }
        let folder = self.catalog.folder_of_deleted();
        problems.extend(self.deleted_files()?.iter().filter_map(|file| problem_of(&folder, file)));
        Ok(problems)
    }

    /// Merges days of the past into months, and removes files that nothing names any more. Returns the number of regions
    /// that became fewer, and of files that were removed.
    pub(crate) fn compact(&self, now: DateTime<Utc>, settling: TimeDelta) -> Result<(u64, u64)> {
        let today = day_of(now.timestamp_micros());
        self.catalog.forget_answers_before(now - RESPONSES)?;
        let mut fewer = 0;
        for aid in self.catalog.aids()? {
            let mut subjects: BTreeMap<Filters, Vec<Region>> = BTreeMap::new();
            for (filters, region) in self.catalog.regions(&aid)? {
                subjects.entry(filters).or_default().push(region);
            }
            for (filters, regions) in subjects {
                let subject = Subject { aid: aid.clone(), filters };
                // A region that had not settled would have the others read again with it.
                let settled = |region: &Region| {
                    region.sealed || day_of((region.as_of - settling).timestamp_micros()) >= region.days.end
                };
                let regions: Vec<Region> = regions.into_iter().filter(settled).collect();
                for group in months(&regions, today) {
                    let all: Vec<&Region> = group.iter().collect();
                    let ids: Vec<i64> = group.iter().filter_map(|region| region.id).collect();
                    let mut written = Written::default();
                    let Some(merged) = self.merged(&subject, &all, &[], &mut written)? else { continue };
                    let merged = Region { sealed: group.iter().all(|region| region.sealed), ..merged };
                    // If another process wrote these days, they are merged next time.
                    if self.catalog.replace(&subject, &ids, std::slice::from_ref(&merged), None)? {
                        written.keep();
                        fewer += group.len() as u64 - 1;
                    }
                }
            }
        }
        Ok((fewer, self.sweep()?))
    }

    /// Removes days that end at or before a day. Returns the number of their mentions.
    pub(crate) fn forget(&self, aid: Option<&str>, before: Day) -> Result<u64> {
        self.catalog.forget(aid, before)
    }

    /// Removes files that no region has named for a while.
    fn sweep(&self) -> Result<u64> {
        // Snapshots and files have the time of this machine.
        let now = self.catalog.now();
        let data = self.catalog.data();
        let unused = self.catalog.unused_files(Some(now - GRACE))?;
        let mut removed = 0;
        for (_, path) in &unused {
            removed += u64::from(remove_below(&data, &data.join(path)));
        }
        self.catalog.removed_files(&unused.iter().map(|(id, _)| *id).collect::<Vec<_>>())?;
        // Of processes that ended while they wrote.
        let mut named: HashSet<std::path::PathBuf> = HashSet::new();
        for aid in self.catalog.aids()? {
            for (filters, region) in self.catalog.regions(&aid)? {
                let folder = self.folder(&Subject { aid: aid.clone(), filters });
                named.extend(region.files.iter().map(|file| folder.join(&file.path)));
            }
        }
        let deleted = self.catalog.folder_of_deleted();
        named.extend(self.deleted_files()?.iter().map(|file| deleted.join(&file.path)));
        named.extend(self.catalog.unused_files(None)?.into_iter().map(|(_, path)| data.join(path)));
        for table in Catalog::folders() {
            for folder in entries(&data.join(table)) {
                for file in entries(&folder) {
                    let old = fs::metadata(&file).and_then(|file| file.modified());
                    let old = old.is_ok_and(|at| DateTime::<Utc>::from(at) < now - ABANDONED);
                    if old && !named.contains(&file) {
                        removed += u64::from(remove_below(&data, &file));
                    }
                }
            }
        }
        Ok(removed)
    }
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
            sealed_days: 0,
            mentions: 0,
            files: 0,
            bytes: 0,
            confirmed_at: region.confirmed,
        }
    }

    fn add(&mut self, region: &Region) {
        self.from = self.from.min(date_of(region.days.start));
        self.to = self.to.max(date_of(region.days.end));
        self.days += region.days.len() as u64;
        self.sealed_days += if region.sealed { region.days.len() as u64 } else { 0 };
        self.mentions += region.counts.iter().sum::<u64>();
        self.files += region.files.len() as u64;
        self.bytes += region.files.iter().map(|file| file.bytes).sum::<u64>();
        self.confirmed_at = self.confirmed_at.min(region.confirmed);
    }
}

/// Returns a day as a date.
pub(crate) fn date_of(day: Day) -> NaiveDate {
    NaiveDate::from_epoch_days(day).unwrap_or_default()
}

/// Groups of adjacent regions of months of the past that could be one.
fn months(regions: &[Region], today: Day) -> Vec<Vec<Region>> {
    let mut groups: Vec<Vec<Region>> = Vec::new();
    for region in regions {
        let month = month_of(region.days.start);
        if month.end > today - DAILY {
            continue;
        }
        let joins = |group: &&mut Vec<Region>| {
            group.last().is_some_and(|last| last.days.end == region.days.start && month.contains(&last.days.start))
        };
        match groups.last_mut().filter(joins) {
            Some(group) => group.push(region.clone()),
            None => groups.push(vec![region.clone()]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Describes what is wrong with a file in a folder.
fn problem_of(folder: &Path, file: &DataFile) -> Option<String> {
    let path = folder.join(&file.path);
    let problem = match fs::metadata(&path).map(|metadata| metadata.len()) {
        Err(error) => Some(error.to_string()),
        Ok(bytes) if bytes != file.bytes => Some(format!("has {bytes} bytes instead of {}", file.bytes)),
        Ok(_) => match files::digest_of(&path) {
            Err(error) => Some(error.to_string()),
            Ok(digest) => (digest != file.digest).then(|| "its contents have changed since it was written".to_owned()),
        },
    };
    problem.map(|problem| format!("{}: {problem}", path.display()))
}

/// Removes a file of the store. One behind a link to another folder, or of a path that leads out of the store, is not the store's
/// and stays.
pub(super) fn remove_below(data: &Path, file: &Path) -> bool {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let within = folder.zip(data.canonicalize().ok()).is_some_and(|(folder, data)| folder.starts_with(data));
    within && fs::remove_file(file).is_ok()
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_behind_a_link_stays() {
        let (store, foreign) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let data = store.path();
        fs::create_dir(data.join("aid=1")).expect("a folder");
        std::os::unix::fs::symlink(foreign.path(), data.join("aid=2")).expect("a link");
        for file in [data.join("aid=1/a.parquet"), foreign.path().join("a.parquet")] {
            fs::write(file, "x").expect("written");
        }
        assert!(remove_below(data, &data.join("aid=1/a.parquet")));
        assert!(!remove_below(data, &data.join("aid=2/a.parquet")));
        assert!(!remove_below(data, &data.join("../foreign/a.parquet")));
        assert!(foreign.path().join("a.parquet").exists());
    }
}
