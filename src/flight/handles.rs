//! What was prepared, and what waits to be fetched: values behind random handles, each its principal's.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;

use super::sessions::Session;

/// Values by their handles. A handle is a random number of 128 bits and says nothing.
#[derive(Debug)]
pub(super) struct Store<T> {
    /// What a value is called in errors.
    what: &'static str,
    /// Values that a session may have.
    most: usize,
    /// How long a value is kept without being used.
    kept: Duration,
    /// Whether a value that nobody has asked for in a minute makes room for another.
    lapse: bool,
    entries: Mutex<HashMap<String, Entry<T>>>,
}

#[derive(Debug)]
struct Entry<T> {
    session: Arc<Session>,
    value: Arc<T>,
    used: Instant,
    /// Whether nobody is expected to ask for it again.
    done: bool,
}

/// After which time a value that nobody has asked for is not expected to be asked for.
const LAPSED: Duration = Duration::from_secs(60);

impl<T> Store<T> {
    pub(super) fn new(what: &'static str, most: usize, kept: Duration, lapse: bool) -> Self {
        Self { what, most, kept, lapse, entries: Mutex::default() }
    }

    /// Keeps a value and gives its handle. Where a session has all it may, the oldest that nobody waits for makes room.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where there is none.
    pub(super) fn insert(&self, session: &Arc<Session>, value: T) -> Result<String, Status> {
        let mut entries = self.entries();
        let own = entries.iter().filter(|(_, entry)| Arc::ptr_eq(&entry.session, session));
        let (mut count, mut oldest) = (0, None::<(Instant, String)>);
        for (handle, entry) in own {
            count += 1;
            let forgotten = entry.done || (self.lapse && entry.used.elapsed() > LAPSED);
            if forgotten && oldest.as_ref().is_none_or(|(used, _)| entry.used < *used) {
                oldest = Some((entry.used, handle.clone()));
            }
        }
        if count >= self.most {
            let Some((_, handle)) = oldest else {
                let Self { what, most, .. } = self;
                return Err(Status::resource_exhausted(format!("the session has its {most} {what}s: close some")));
            };
            entries.remove(&handle);
        }
        let handle = format!("{:032x}", rand::random::<u128>());
        let (session, value) = (Arc::clone(session), Arc::new(value));
        entries.insert(handle.clone(), Entry { session, value, used: Instant::now(), done: false });
        Ok(handle)
    }

    /// The value behind a handle, with its session.
    ///
    /// # Errors
    /// NOT_FOUND, for another principal's handle as for one that never was.
    pub(super) fn find(&self, handle: &[u8], caller: &Session) -> Result<(Arc<T>, Arc<Session>), Status> {
        let mut entries = self.entries();
        let entry = std::str::from_utf8(handle).ok().and_then(|handle| entries.get_mut(handle));
        let entry = entry.filter(|entry| entry.session.principal.name == caller.principal.name);
        let entry = entry.ok_or_else(|| {
            Status::not_found(format!("there is no such {}: it was closed, has expired, or never was", self.what))
        })?;
        entry.used = Instant::now();
        Ok((Arc::clone(&entry.value), Arc::clone(&entry.session)))
    }

    /// Nobody is expected to ask for it again, though somebody may.
    pub(super) fn done(&self, handle: &str) {
        if let Some(entry) = self.entries().get_mut(handle) {
            entry.done = true;
        }
    }

    /// Forgets a value, if it is the caller's.
    pub(super) fn remove(&self, handle: &[u8], caller: &Session) {
        let Ok(handle) = std::str::from_utf8(handle) else { return };
        let mut entries = self.entries();
        if entries.get(handle).is_some_and(|entry| entry.session.principal.name == caller.principal.name) {
            entries.remove(handle);
        }
    }

    /// Forgets what was not used for long, and what belongs to other sessions than these.
    pub(super) fn sweep(&self, open: &[Arc<Session>]) {
        let open: HashSet<*const Session> = open.iter().map(Arc::as_ptr).collect();
        self.entries()
            .retain(|_, entry| entry.used.elapsed() < self.kept && open.contains(&Arc::as_ptr(&entry.session)));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
