//! Leases of a store that processes on several machines share: one of them at a time synchronizes a saved search.
//!
//! ```text
//! lease ─▶ renewed in a task ─▶ commits compare its token ─▶ release
//!              └─ the process ends or stops ─▶ it ends ─▶ another process takes it, with another token
//! ```
//!
//! A store in a folder, with its catalog beside it, has no leases: its processes share one disk, and each stores what it reads.

use std::sync::Arc;
#[cfg(feature = "shared")]
use std::time::Duration;

#[cfg(feature = "shared")]
use tokio::runtime::Handle;
#[cfg(feature = "shared")]
use tokio::task::JoinHandle;

use super::Store;
#[cfg(feature = "shared")]
use super::filling::blocking;
use crate::error::Result;

/// Work of which one process at a time does a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work<'w> {
    /// The synchronization of a saved search.
    Sync(&'w str),
    /// The merging of files.
    Merge,
}

/// Result of the try to take a lease.
#[derive(Debug)]
pub(crate) enum Leased {
    /// This process may do the work, until it releases the lease.
    Here(Lease),
    /// Another process is doing it.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "stores of one machine have no leases"))]
    Elsewhere,
}

/// A lease. Dropping it within a runtime ends it soon; otherwise it ends by itself.
#[derive(Debug)]
pub(crate) struct Lease {
    #[cfg(feature = "shared")]
    held: Option<Held>,
}

#[cfg(feature = "shared")]
#[derive(Debug)]
struct Held {
    store: Arc<Store>,
    name: String,
    token: i64,
    renewing: JoinHandle<()>,
    /// Set if the server is told that it ends.
    ended: bool,
}

impl Work<'_> {
    /// Name in the catalog, which messages have as well.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Sync(aid) => format!("synchronization of {aid}"),
            Self::Merge => "merging of files".to_owned(),
        }
    }
}

#[cfg(not(feature = "shared"))]
impl Store {
    /// Takes a lease, of which this build has none.
    #[expect(clippy::unused_async, reason = "other builds ask the server")]
    pub(crate) async fn lease(self: &Arc<Self>, work: &Work<'_>) -> Result<Leased> {
        drop(work.name());
        Ok(Leased::Here(Lease {}))
    }
}

#[cfg(not(feature = "shared"))]
impl Lease {
    /// Releases nothing.
    #[expect(clippy::unused_async, reason = "other builds tell the server")]
    pub(crate) async fn release(self) {}
}

/// Interval in which a lease is renewed: a third of the time that it lasts.
#[cfg(feature = "shared")]
const RENEWAL: Duration = Duration::from_secs(super::catalog::LASTS.unsigned_abs() / 3);

#[cfg(feature = "shared")]
impl Store {
    /// Takes the lease of some work, unless another process has it.
    pub(crate) async fn lease(self: &Arc<Self>, work: &Work<'_>) -> Result<Leased> {
        if !self.catalog.is_shared() {
            return Ok(Leased::Here(Lease { held: None }));
        }
        let (store, name, holder) = (Arc::clone(self), work.name(), format!("{:032x}", rand::random::<u128>()));
        // If nobody waits for the result any more, it is dropped, and with it the lease.
        let taken = blocking(move || {
            let token = store.catalog.take_lease(&name, &holder)?;
            Ok(token.map(|token| Held::new(store, name, token)))
        });
        Ok(taken.await?.map_or(Leased::Elsewhere, |held| Leased::Here(Lease { held: Some(held) })))
    }
}

#[cfg(feature = "shared")]
impl Held {
    /// A lease that was taken, which is renewed from now on by the runtime of this thread.
    fn new(store: Arc<Store>, name: String, token: i64) -> Self {
        let renewing = {
            let (store, name) = (Arc::clone(&store), name.clone());
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(RENEWAL).await;
                    let (store, name) = (Arc::clone(&store), name.clone());
                    // A failure may pass before the lease ends. If it does end, commits find out.
                    if let Ok(false) = blocking(move || store.catalog.renew_lease(&name, token)).await {
                        return;
                    }
                }
            })
        };
        Self { store, name, token, renewing, ended: false }
    }

    /// Work that ends the lease. If the server cannot be reached, it ends by itself.
    fn ending(&mut self) -> impl FnOnce() -> Result<()> + Send + 'static + use<> {
        self.ended = true;
        self.renewing.abort();
        let (store, name, token) = (Arc::clone(&self.store), self.name.clone(), self.token);
        move || store.catalog.end_lease(&name, token)
    }
}

#[cfg(feature = "shared")]
impl Lease {
    /// Ends the lease, so that other processes need not wait.
    pub(crate) async fn release(mut self) {
        let Some(mut held) = self.held.take() else { return };
        let _ = blocking(held.ending()).await;
    }
}

#[cfg(feature = "shared")]
impl Drop for Held {
    fn drop(&mut self) {
        // Commits do not depend on it any more, whether the server can be told or not.
        self.store.catalog.forget_lease(&self.name, self.token);
        self.renewing.abort();
        if let (false, Ok(runtime)) = (self.ended, Handle::try_current()) {
            // Nobody waits for it.
            drop(runtime.spawn_blocking(self.ending()));
        }
    }
}
