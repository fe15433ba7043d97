//! Handle stores: prepared statements and pending results behind random handles, each owned by a principal.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;

use crate::host::sessions::Session;

/// Values by handle. A handle is a random 128-bit number, so that it can be neither guessed nor decoded.
#[derive(Debug)]
pub(super) struct Store<T> {
    /// Name of a value in error messages.
    what: &'static str,
    /// Maximum number of values per session.
    most: usize,
    /// Maximum number of values in all.
    in_all: usize,
    /// Time for which an unused value is kept.
    kept: Duration,
    /// If set, a value not used for [`LAPSED`] may be evicted for another.
    lapse: bool,
    entries: Mutex<HashMap<String, Entry<T>>>,
}

#[derive(Debug)]
struct Entry<T> {
    session: Arc<Session>,
    value: Arc<T>,
    used: Instant,
    /// Set once the value is not expected to be used again; it may then be evicted.
    done: bool,
}

/// Time without use after which a value may be evicted.
const LAPSED: Duration = Duration::from_secs(60);

impl<T> Store<T> {
    pub(super) fn new(what: &'static str, most: usize, in_all: usize, kept: Duration, lapse: bool) -> Self {
        Self { what, most, in_all, kept, lapse, entries: Mutex::default() }
    }

    /// Stores a value and returns its handle. At the session's limit, evicts the least recently used evictable value. At the limit of
    /// all, evicts one of the user with the most values.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if none can be evicted.
    pub(super) fn insert(&self, session: &Arc<Session>, value: impl Into<Arc<T>>) -> Result<String, Status> {
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
                let line = format!("too many {what}s: the session is limited to {most}; close some");
                return Err(Status::resource_exhausted(line));
            };
            entries.remove(&handle);
        } else if entries.len() >= self.in_all {
            evict(&mut entries);
        }
        let handle = format!("{:032x}", rand::random::<u128>());
        let (session, value) = (Arc::clone(session), value.into());
        entries.insert(handle.clone(), Entry { session, value, used: Instant::now(), done: false });
        Ok(handle)
    }

    /// Returns the value behind a handle, with its session.
    ///
    /// # Errors
    /// NOT_FOUND, with the same message for another principal's handle and an unknown one.
    pub(super) fn find(&self, handle: &[u8], caller: &Session) -> Result<(Arc<T>, Arc<Session>), Status> {
        let mut entries = self.entries();
        let entry = std::str::from_utf8(handle).ok().and_then(|handle| entries.get_mut(handle));
        let entry = entry.filter(|entry| entry.session.principal.name == caller.principal.name);
        let entry = entry.ok_or_else(|| {
            Status::not_found(format!("unknown {}: it may have been closed or have expired", self.what))
        })?;
        entry.used = Instant::now();
        Ok((Arc::clone(&entry.value), Arc::clone(&entry.session)))
    }

    /// Marks a value as evictable. It remains available until evicted.
    pub(super) fn done(&self, handle: &str) {
        if let Some(entry) = self.entries().get_mut(handle) {
            entry.done = true;
        }
    }

    /// Removes a value if it belongs to the caller.
    pub(super) fn remove(&self, handle: &[u8], caller: &Session) {
        let Ok(handle) = std::str::from_utf8(handle) else { return };
        let mut entries = self.entries();
        if entries.get(handle).is_some_and(|entry| entry.session.principal.name == caller.principal.name) {
            entries.remove(handle);
        }
    }

    /// Removes values that have expired or whose session is not among `open`.
    pub(super) fn sweep(&self, open: &[Arc<Session>]) {
        let open: HashSet<*const Session> = open.iter().map(Arc::as_ptr).collect();
        self.entries()
            .retain(|_, entry| entry.used.elapsed() < self.kept && open.contains(&Arc::as_ptr(&entry.session)));
    }

    /// Returns the number of stored values.
    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evicts the least recently used value of the user with the most values; those that are not expected to be used again first.
fn evict<T>(entries: &mut HashMap<String, Entry<T>>) {
    let mut of_user: HashMap<Arc<str>, usize> = HashMap::new();
    entries.values().for_each(|entry| *of_user.entry(Arc::clone(&entry.session.principal.name)).or_default() += 1);
    let Some((user, _)) = of_user.into_iter().max_by_key(|(_, count)| *count) else { return };
    let theirs = entries.iter().filter(|(_, entry)| entry.session.principal.name == user);
    let oldest = theirs.min_by_key(|(_, entry)| (!entry.done, entry.used)).map(|(handle, _)| handle.clone());
    oldest.and_then(|handle| entries.remove(&handle));
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::host::state::Host;

    #[tokio::test]
    async fn at_the_limit_of_all_the_oldest_make_room_and_are_unknown_afterwards() {
        let (_host, session) = Host::of_tests().await;
        let store = Store::<u8>::new("result", 10, 2, Duration::from_secs(600), true);
        let insert = async |value: u8| {
            // Another instant.
            tokio::time::sleep(Duration::from_millis(2)).await;
            store.insert(&session, value).expect("a handle")
        };
        let find = |handle: &str| store.find(handle.as_bytes(), &session).map(|(value, _)| *value);
        let (first, done) = (insert(1).await, insert(2).await);
        store.done(&done);
        let third = insert(3).await;
        let gone = find(&done).expect_err("evicted");
        let told = "unknown result: it may have been closed or have expired";
        assert_eq!((gone.code(), gone.message()), (Code::NotFound, told));
        let fourth = insert(4).await;
        assert_eq!(find(&first).expect_err("evicted").code(), Code::NotFound);
        assert_eq!([find(&third), find(&fourth)].map(|found| found.expect("kept")), [3, 4]);
    }
}
