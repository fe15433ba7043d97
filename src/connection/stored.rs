//! The store of a connection: its content, its maintenance, and its use by queries.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use super::Connection;
use crate::client::Caller;
use crate::config::{SessionSettings, StoreUse};
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::store::{
    Compacted, Erase, Erased, Export, Exported, Extent, Filters, FromStore, Holding, Indexed, Store, StoreStatistics,
    is_full, unstored,
};

/// Longest wait for reads that were dropped to store their complete days.
const SETTLING: Duration = Duration::from_secs(10);

impl Connection {
    /// The store, if the connection has one.
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    /// Folder of the store, or the reason why nothing can be written to it; `None` without a store.
    pub fn store_folder(&self) -> Option<Result<PathBuf>> {
        match &self.unopened {
            Some(full) => Some(Err(full.clone())),
            None => self.store.as_ref().map(|store| store.writable_root()),
        }
    }

    /// Content of the store, in the order of aids and filters. Sends no request.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if it cannot be read, [`ErrorKind::Config`] if the connection has none.
    pub fn holdings(&self) -> Result<Vec<Holding>> {
        self.some_store()?.holdings(self.profile().store.settle.length())
    }

    /// As [`holdings`](Self::holdings), for one of several who share the connection: the conditions are those that the caller has
    /// sent to this process.
    ///
    /// # Errors
    /// Those of [`holdings`](Self::holdings).
    pub(crate) fn holdings_of(&self, caller: &Caller) -> Result<Vec<Holding>> {
        let mut holdings = self.holdings()?;
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let own = conditions.get(&caller.name);
        holdings.retain(|holding| holding.filters.is_empty() || own.is_some_and(|own| own.contains(&holding.filters)));
        Ok(holdings)
    }

    /// Notes that a caller has used conditions of stored mentions. A caller with very many sees some of them only.
    pub(crate) fn note_conditions(&self, caller: &Caller, filters: &Filters) {
        const MANY: usize = 10_000;
        if filters.is_empty() {
            return;
        }
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let own = conditions.entry(Arc::clone(&caller.name)).or_default();
        if own.len() < MANY {
            own.insert(filters.to_json());
        }
    }

    /// Use of the store by queries of this process; `None` without a store.
    pub fn store_statistics(&self) -> Option<StoreStatistics> {
        self.store.as_ref().map(|store| store.counters().totals())
    }

    /// Compares the store's catalog with its files. Returns the problems in words; empty if there are no problems.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings).
    pub fn verify_store(&self) -> Result<Vec<String>> {
        self.some_store()?.verify()
    }

    /// Merges small files of the store, indexes files that lack an index, and removes files that are no longer used.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings), and [`ErrorKind::Store`] if a file cannot be read, written or removed. What was done until then
    /// stays done, and a file that stays keeps no other from being indexed or removed.
    pub fn compact_store(&self) -> Result<Compacted> {
        let (store, now) = (self.some_store()?, self.now());
        let merged = store.merge_small(now, self.profile().store.settle.length(), Extent::All)?;
        let (removed, indexed) = (store.sweep(now), store.update_indexes());
        Ok(Compacted { removed: removed?, indexed: indexed?, ..merged })
    }

    /// Indexes the words of columns of stored mentions, from now on, so that conditions with `match` read less. Without columns,
    /// those that were named before, or else `title` and `text`.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if there is no such column of texts; [`ErrorKind::Store`] if a file cannot be read or written.
    pub fn index_store(&self, columns: &[String]) -> Result<Indexed> {
        self.some_store()?.index(columns)
    }

    /// Removes the indexes of words from the store, and keeps none from now on.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings).
    pub fn remove_indexes(&self) -> Result<Indexed> {
        self.some_store()?.remove_indexes()
    }

    /// Erases stored mentions, of one saved search or of all, so that nothing of them is left in the store's folder. Mentions that
    /// the service still has are stored again when their day is read next.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if a file cannot be read or written, or if another process is using the store; the call can be
    /// repeated.
    pub fn erase_stored(&self, aid: Option<&str>, what: &Erase) -> Result<Erased> {
        self.some_store()?.erase(aid, what, self.now(), self.profile().store.settle.length())
    }

    /// Writes stored mentions to Parquet files in a new folder, in the order of saved search and time. The folder appears when it is
    /// complete.
    ///
    /// # Errors
    /// [`ErrorKind::Output`] if the folder has files; [`ErrorKind::Query`] if no day of a named saved search is stored;
    /// [`ErrorKind::Store`] if a file cannot be read or written.
    pub fn export_store(&self, what: &Export, folder: &Path) -> Result<Exported> {
        self.some_store()?.export(what, folder)
    }

    /// Keeps the files of the store that are replaced from now on for a number of days, so that their mentions can be read as of an
    /// earlier time; 0: for an hour.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings), and [`ErrorKind::Store`] if the store cannot be written.
    pub fn keep_versions(&self, days: u32) -> Result<()> {
        self.some_store()?.keep_versions(days)
    }

    pub(crate) fn some_store(&self) -> Result<&Arc<Store>> {
        let missing =
            || Error::new(ErrorKind::Config, "no store configured").advice(Phrase::from("use ") + Tool::OpenStore);
        self.store.as_ref().ok_or_else(|| self.unopened.clone().unwrap_or_else(missing))
    }

    /// The note of a query whose result is not stored because the disk has no space since the store was opened.
    pub(super) fn full_disk(&self, settings: &SessionSettings) -> Option<Phrase> {
        let writes = matches!(settings.store, StoreUse::Write | StoreUse::ReadWrite);
        let unwritable = self.store.as_ref().and_then(|store| store.unwritable()).filter(|error| is_full(error));
        match (&self.unopened, unwritable) {
            (Some(full), _) if settings.store != StoreUse::Off => Some(unstored(full, "off")),
            (None, Some(full)) if writes => Some(unstored(full, "read")),
            _ => None,
        }
    }

    /// The store and how queries of a session use it; `None` if they do not.
    pub(crate) fn store_for(&self, settings: &SessionSettings) -> Option<FromStore> {
        let store = Arc::clone(self.store.as_ref()?);
        let freshness = TimeDelta::from_std(settings.freshness).unwrap_or(TimeDelta::MAX);
        let (reads, writes) = match settings.store {
            StoreUse::Off => return None,
            StoreUse::Read => (true, false),
            StoreUse::Write => (false, true),
            StoreUse::ReadWrite => (true, true),
        };
        let writes = writes && store.unwritable().is_none();
        let (keeps_deleted, settling) = (settings.keep_deleted, self.profile().store.settle.length());
        Some(FromStore { store, reads, writes, keeps_deleted, freshness, settling })
    }

    /// Waits until the days that stopped queries had read completely are stored, for ten seconds at most. Returns what was stored
    /// since the last call, such as `the days of 7 from 2026-05-01 to 2026-05-03 are stored`.
    ///
    /// These days are written in the background, and are lost if the process ends before that.
    pub async fn settle_store(&self) -> Vec<String> {
        let Some(store) = &self.store else { return Vec::new() };
        store.in_flight().settle(None, Instant::now() + SETTLING).await;
        store.in_flight().take_stored()
    }

    /// As [`Self::settle_store`], for a query beside which others may run.
    #[cfg(all(unix, feature = "flight", feature = "shell"))]
    pub(crate) async fn settle_query(&self, query: &str) {
        if let Some(store) = &self.store {
            store.in_flight().settle(Some(query), Instant::now() + SETTLING).await;
        }
    }
}
