//! Single flight: identical requests in flight are sent once.
//!
//! The first caller sends the request; others that make the same one while it is in flight get the same response, which each
//! of them checks and decodes for itself. If no caller waits for the request any more, it is cancelled.
//!
//! Invariant: a response is shared only with callers that asked before it arrived. Later callers send a new request.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};

/// The requests of one client in flight, by identity `K`. `T` is the outcome of a request.
#[derive(Debug)]
pub(super) struct SingleFlight<K, T: Clone>(Mutex<HashMap<K, WeakShared<BoxFuture<'static, T>>>>);

/// A request in flight.
pub(super) struct Flight<T: Clone> {
    /// Its outcome.
    pub(super) outcome: Shared<BoxFuture<'static, T>>,
    /// Set if another caller sent it.
    pub(super) shared: bool,
}

impl<K, T: Clone> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, T: Clone + Send + 'static> SingleFlight<K, T> {
    /// Joins the request in flight with this identity, or sends one with `send`.
    pub(super) fn join(&self, key: &K, send: impl FnOnce() -> BoxFuture<'static, T>) -> Flight<T> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A future that has completed, or that nobody waits for, no longer counts.
        let under_way = |flight: &WeakShared<_>| flight.upgrade().filter(|flight: &Shared<_>| flight.peek().is_none());
        if let Some(outcome) = flights.get(key).and_then(under_way) {
            return Flight { outcome, shared: true };
        }
        flights.retain(|_, flight| under_way(flight).is_some());
        let outcome = send().shared();
        flights.extend(outcome.downgrade().map(|flight| (key.clone(), flight)));
        Flight { outcome, shared: false }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn equal_requests_are_sent_once_while_under_way_and_again_afterwards() {
        let flights = SingleFlight::default();
        let sent = Arc::new(AtomicU64::new(0));

        let ask = || {
            let sent = Arc::clone(&sent);
            flights.join(&"list", || async move { sent.fetch_add(1, Ordering::Relaxed) }.boxed())
        };
        let (first, second) = (ask(), ask());
        assert_eq!((first.shared, second.shared), (false, true));
        assert_eq!((second.outcome.await, first.outcome.await), (0, 0));
        assert_eq!(ask().outcome.await, 1);
        drop(ask());
        let again = ask();
        assert!(!again.shared, "nobody waits for the last one");
        assert_eq!(again.outcome.await, 2);
    }
}
