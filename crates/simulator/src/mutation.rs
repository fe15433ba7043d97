//! A corpus that changes while it is read, with the state as of every request as a test oracle.
//!
//! Time is counted in requests: a change happens before the response to the request with its number. All states are
//! kept, so that tests can look up which mentions existed at any of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::dataset::{Corpus, Mention, SavedSearch};
use super::fault_injection::{Moved, Whereabouts};
use super::story::Setting;

/// The states of changed saved searches, by aid.
#[derive(Debug, Default)]
pub(super) struct Moving(Mutex<HashMap<String, States>>);

/// The states of a saved search, each with the number of the request that it precedes.
type States = Vec<(u64, Arc<SavedSearch>)>;

impl Moving {
    /// Returns a saved search as of this request, and the number of changes to it so far.
    pub(super) fn at(&self, corpus: &Corpus, aid: &str, request: u64) -> Option<(Arc<SavedSearch>, usize)> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let states = states.get(aid).map(Vec::as_slice).unwrap_or_default();
        let past = states.partition_point(|(since, _)| *since <= request);
        let state = past.checked_sub(1).map(|last| Arc::clone(&states[last].1));
        Some((state.or_else(|| corpus.search(aid).cloned())?, past))
    }

    /// Changes a saved search before the response to this request. Arriving mentions were published before `now`.
    pub(super) fn change(
        &self,
        corpus: &Corpus,
        aid: &str,
        request: u64,
        seed: u64,
        (moved, count, place): (Moved, u64, Whereabouts),
        now: DateTime<Utc>,
    ) {
        let Some((state, changes)) = self.at(corpus, aid, request) else { return };
        let mut search = state.as_ref().clone();
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ request.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ changes as u64);
        let setting = Arc::new(Setting::new(&search.name, now));
        for n in 0..count {
            let len = search.mentions.len();
            let tenth = (len / 10).max(1).min(len);
            let range = match place {
                Whereabouts::Start => 0..tenth,
                Whereabouts::End => len - tenth..len,
                Whereabouts::Any => 0..len,
            };
            let chosen = if range.is_empty() { None } else { Some(rng.random_range(range)) };
            match (moved, chosen) {
                (Moved::Delete, Some(at)) => drop(search.mentions.remove(at)),
                (Moved::Edit, Some(at)) => search.mentions[at] = Arc::new(search.mentions[at].edited()),
                (Moved::Arrive, chosen) => {
                    // Published between its neighbours, or after all of them.
                    let newest = place == Whereabouts::End || chosen.is_none();
                    let published = chosen.map_or(now, |at| search.mentions[at].facts.published);
                    let published = if newest { now - TimeDelta::seconds(1) } else { published };
                    let id = format!("9{request:06}{changes:05}{n:04}");
                    let mention = Mention::arrived(id.into(), published, rng.random(), Arc::clone(&setting));
                    let at = search.mentions.partition_point(|other| other.facts.published <= published);
                    search.mentions.insert(at, Arc::new(mention));
                }
                (Moved::Delete | Moved::Edit, None) => {}
            }
        }
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.entry(aid.to_owned()).or_default().push((request, Arc::new(search)));
    }
}
