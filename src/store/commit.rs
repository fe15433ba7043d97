//! Commits days that were read: they replace the regions whose days they share.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::coverage::{is_credible, overlap};
use super::filling::{NewRegion, ReadDays};
use super::region::{DataFile, Day, Region, Subject};
use super::storage::Storage;
use super::{ATTEMPTS, Catalog, Store};
use crate::error::{Error, ErrorKind, Result};

impl Store {
    /// Makes days that were read completely a part of the store. Days that it has from a later read stay, and so do the rows of
    /// days whose mentions have not changed. `keeps_deleted`: set to keep the mentions of replaced days that are missing now. `erasures`:
    /// their number before the read.
    pub(super) fn commit(
        &self,
        subject: &Subject,
        ReadDays { new_regions, without }: ReadDays,
        as_of: DateTime<Utc>,
        keeps_deleted: bool,
        erasures: Option<i64>,
    ) -> Result<()> {
        let (unchanged, new_regions): (Vec<NewRegion>, Vec<NewRegion>) =
            new_regions.into_iter().partition(|region| region.unchanged.is_some());
        let unchanged: Vec<i64> = unchanged.iter().filter_map(|region| region.unchanged).collect();
        if !unchanged.is_empty() {
            self.catalog.renew(as_of, &unchanged)?;
        }
        if new_regions.is_empty() {
            return Ok(());
        }
        let new: Vec<Region> = new_regions.into_iter().map(|region| region.region(as_of)).collect();
        let done = self.try_commit(subject, &new, &without, as_of, keeps_deleted, erasures);
        if done.is_err() && self.catalog.is_shared() {
            // The server may have committed: files that it does not name are removed later.
            return done.map(drop);
        }
        let used = done.as_ref().map_or(&[][..], Vec::as_slice);
        let unused = new.iter().filter_map(Region::file).filter(|file| !used.contains(&file.path));
        let unused: BTreeMap<&str, &DataFile> = unused.map(|file| (file.path.as_str(), file.as_ref())).collect();
        self.remove(subject, unused.into_values());
        done.map(|_| ())
    }

    /// Returns the paths of the files that became a part of the store. `without`: identities of regions that have none of the mentions.
    fn try_commit(
        &self,
        subject: &Subject,
        read: &[Region],
        without: &HashSet<i64>,
        as_of: DateTime<Utc>,
        keeps_deleted: bool,
        erasures: Option<i64>,
    ) -> Result<Vec<String>> {
        for _ in 0..ATTEMPTS {
            let known = self.catalog.regions(&subject.aid)?.into_iter();
            let mut known: Vec<Region> =
                known.filter(|(filters, _)| *filters == subject.filters).map(|(_, region)| region).collect();
            // Days that the store has from a later read stay. They keep no other day of the same region out.
            let now = self.catalog.now() + self.ahead();
            let is_later = |region: &&Region| region.as_of > as_of && is_credible(region, now);
            let later: Vec<Range<Day>> = known.iter().filter(is_later).map(|region| region.days.clone()).collect();
            let stays = |day: Day| !later.iter().any(|days| days.contains(&day));
            let new: Vec<Region> = read.iter().flat_map(|region| region.parts(stays)).collect();
            if subject.filters.is_empty() {
                let is_replaced = |old: &&mut Region| new.iter().any(|new| overlap(&old.days, &new.days));
                for region in known.iter_mut().filter(is_replaced) {
                    // One that another process has replaced meanwhile is refused below.
                    *region = self.catalog.with_stamps(region)?.unwrap_or_else(|| region.clone());
                }
            }
            let groups = together(&known, &new);
            let replaced: Vec<i64> =
                groups.iter().flat_map(|(old, _)| old.iter().filter_map(|region| region.id)).collect();
            let mut written = Written::to(&self.catalog);
            let Some(stamps) = self.stamps_of(subject, &known, &groups, without)? else { continue };
            let stamped = |region: &Region| {
                let stamps = stamps.get(&region.days.start).map(Arc::clone);
                Region { stamps, ..region.clone() }
            };
            let mut with: Vec<Region> = Vec::new();
            for (old, new) in &groups {
                let stays = |day: Day| !new.iter().any(|new| new.days.contains(&day));
                with.extend(old.iter().flat_map(|region| region.parts(stays)));
                with.extend(new.iter().copied().map(&stamped));
            }
            let deletions = match subject.filters.is_empty() {
                true => Some(self.deletions(subject, &known, &groups, as_of, keeps_deleted, &mut written)?),
                // A mention that is missing there may have changed.
                false => None,
            };
            if self.catalog.replace_by_read(subject, &replaced, &with, deletions.as_ref(), erasures)? {
                written.keep();
                return Ok(with.iter().filter_map(Region::file).map(|file| file.path.clone()).collect());
            }
        }
        Err(Error::new(ErrorKind::Store, "other processes kept writing the same days to the store")
            .advice("run the query again"))
    }
}

/// Files that were written for a commit. They are removed unless the commit succeeds. If its outcome may be unknown, they stay, and
/// are removed with other unnamed files.
#[derive(Debug)]
pub(super) struct Written {
    storage: Storage,
    pub(super) files: Vec<PathBuf>,
    /// True if a commit that fails has changed nothing.
    certain: bool,
}

impl Written {
    /// None yet.
    pub(super) fn to(catalog: &Catalog) -> Self {
        Self { storage: catalog.storage().clone(), files: Vec::new(), certain: !catalog.is_shared() }
    }

    /// Keeps them, since the commit has succeeded.
    pub(super) fn keep(mut self) {
        self.files.clear();
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        for file in self.files.iter().filter(|_| self.certain) {
            // A file that stays behind is removed by `sync` and `store compact` later.
            let _ = self.storage.remove(file);
        }
    }
}

/// Groups new regions with the known ones whose days they share: each group has all that overlap, and nothing else.
fn together<'r>(known: &'r [Region], new: &'r [Region]) -> Vec<(Vec<&'r Region>, Vec<&'r Region>)> {
    let mut groups: Vec<(Vec<&Region>, Vec<&Region>)> = Vec::new();
    // Both are in order of time, and none overlaps another of its kind.
    for region in new {
        let old: Vec<&Region> = known.iter().filter(|known| overlap(&known.days, &region.days)).collect();
        let shares = |(group, _): &(Vec<&Region>, Vec<&Region>)| {
            old.iter().any(|region| group.iter().any(|other| other.days == region.days))
        };
        match groups.last_mut().filter(|group| shares(group)) {
            Some((group, same)) => {
                group.extend(
                    old.into_iter()
                        .filter(|region| !group.iter().any(|other| other.days == region.days))
                        .collect::<Vec<_>>(),
                );
                same.push(region);
            }
            None => groups.push((old, vec![region])),
        }
    }
    groups
}
