//! The end of a synchronization: small files are merged, others indexed and removed, and the oldest days of a store above its quota
//! are removed.
//!
//! ```text
//! lease of merging ─▶ merge ─▶ remove unused files ─▶ index ─▶ quota
//!       └─ another process keeps it ─▶ remove unused files ─▶ index ─▶ a note
//! ```
//!
//! Without the lease, nothing is merged, and no day is removed because of the quota: files that are not merged take more space than they
//! need, so that too many days would be removed.

use std::sync::Arc;
use std::time::Duration;

use chrono::NaiveDate;
use tokio::time::{Instant, sleep};

use super::Synced;
use crate::connection::Connection;
use crate::error::{Phrase, Result};
use crate::store::{Extent, Lease, Leased, Store, Work, blocking};

/// Longest wait for another process that merges files. A query does that in about a second, and a synchronization in a few.
const LONGEST: Duration = Duration::from_secs(30);
/// First and longest pause until the lease is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];

/// Keeps the files of a store few, indexed and within its quota, after a synchronization.
pub(super) async fn keep_up(
    connection: &Arc<Connection>,
    quota: Option<u64>,
    since: NaiveDate,
    mut synced: Synced,
) -> Result<Synced> {
    let lease = lease_of_merging(connection.some_store()?).await?;
    if lease.is_none() {
        let what = "another process is still merging files";
        synced.unmerged = Some(Phrase::from(match quota {
            None => what.to_owned(),
            Some(_) => format!("{what}; the next synchronization applies the quota"),
        }));
    }
    let connection = Arc::clone(connection);
    // The lease is renewed for as long as the work goes on, even if nobody waits for it any longer.
    let work = move || {
        let maintained = maintain(&connection, quota, since, synced);
        Ok((lease, maintained))
    };
    let (lease, maintained) = blocking(work).await?;
    if let Some(lease) = lease {
        lease.release().await;
    }
    maintained
}

/// The first day that a quota keeps, if it is after the first day that is synchronized.
pub(super) fn kept_from(connection: &Connection, quota: u64, since: NaiveDate) -> Result<Option<NaiveDate>> {
    Ok(connection.some_store()?.kept_from(quota)?.filter(|kept| *kept > since))
}

/// Takes the lease of merging, after a wait for the process that has it; `None` if that one keeps it for longer.
async fn lease_of_merging(store: &Arc<Store>) -> Result<Option<Lease>> {
    let (begun, [mut pause, longest]) = (Instant::now(), PAUSES);
    loop {
        match store.lease(&Work::Merge).await? {
            Leased::Here(lease) => return Ok(Some(lease)),
            Leased::Elsewhere if begun.elapsed() >= LONGEST => return Ok(None),
            Leased::Elsewhere => sleep(pause).await,
        }
        pause = (pause * 2).min(longest);
    }
}

/// Merges small files unless another process does, indexes those that have no index, and removes the oldest days of a store above its
/// quota.
fn maintain(connection: &Connection, quota: Option<u64>, since: NaiveDate, mut synced: Synced) -> Result<Synced> {
    let (store, settling) = (connection.some_store()?, connection.profile().store.settle.length());
    let merges = synced.unmerged.is_none();
    let merged = match merges {
        true => store.merge_small(connection.now(), settling, Extent::Bounded).map(drop),
        false => Ok(()),
    };
    // Everything is stored, and the next synchronization tries again to remove files.
    synced.unremoved = store.sweep(connection.now()).err().map(|error| error.line());
    // Queries read files without an index as well.
    synced.unindexed = store.update_indexes().err().map(|error| error.line());
    merged?;
    let Some(quota) = quota else { return Ok(synced) };
    if merges {
        synced.over_quota = store.fit(quota, connection.now(), settling)?;
        if synced.over_quota.rewritten > 0 {
            synced.unindexed = store.update_indexes().err().map(|error| error.line());
        }
    }
    synced.kept_from = kept_from(connection, quota, since)?;
    Ok(synced)
}
