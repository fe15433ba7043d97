//! Connections: a service, a key and a profile, shared by all tables of a catalog.
//!
//! ```text
//! ConnectionBuilder ─▶ Connection ─┬─ client (limiter, retries, request log)
//!                                  ├─ profile
//!                                  └─ running queries: what all scans of a query share is in `query` and `answers`
//! ```

mod answers;
mod builder;
mod fields;
mod page;
mod query;
mod saved_searches;
#[cfg(feature = "store")]
mod stored;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};
use savedsearch_clock::Clock;

pub use self::builder::ConnectionBuilder;
pub use self::fields::UnknownField;

use self::fields::Fields;
pub(crate) use self::page::facts_of;
pub(crate) use self::query::{ForeignRuns, Query, QueryContext};
pub(crate) use self::saved_searches::SavedSearches;
use crate::client::{Client, Secret};
use crate::decode::Decoded;
#[cfg(feature = "store")]
use crate::error::Error;
use crate::profile::{Profile, TableKind, TableSpec};
use crate::request::FilterTerm;
#[cfg(feature = "store")]
use crate::store::Store;

/// A service, a key and a profile. Cheap to share; create one per key and process.
#[derive(Debug)]
pub struct Connection {
    client: Arc<Client>,
    clock: Clock,
    /// Queries that have begun here, for as long as they have owners.
    running: Mutex<Vec<Weak<Query>>>,
    /// Owners of queries in sessions that do not keep them.
    foreign_runs: ForeignRuns,
    fields: Mutex<Fields>,
    searches: Mutex<Option<Vec<(String, String)>>>,
    fan_out: Mutex<Option<Vec<String>>>,
    /// Numbers of values and of bytes of lists that the service used completely, by filter parameter.
    proven_values: Mutex<HashMap<String, Vec<(usize, usize)>>>,
    /// Names of filter parameters that the service was seen to combine in one request, in order.
    combined: Mutex<HashSet<Vec<String>>>,
    /// Values of mentions that were compared with those of lists, by column.
    seen_values: Mutex<HashMap<String, BTreeSet<String>>>,
    #[cfg(feature = "store")]
    store: Option<Arc<Store>>,
    /// Reason why the store is not open, if its disk has no space: queries read everything from the service.
    #[cfg(feature = "store")]
    unopened: Option<Error>,
    /// Conditions of stored mentions that callers have used, by caller.
    #[cfg(feature = "store")]
    conditions: Mutex<HashMap<Arc<str>, HashSet<String>>>,
}

/// Saved searches of the last list.
#[derive(Debug)]
pub(crate) struct LastList {
    pub(crate) aids: Vec<String>,
    /// The time of the list if an earlier process has requested it.
    pub(crate) earlier: Option<DateTime<Utc>>,
}

/// Values of a column that are kept.
const MOST_VALUES: usize = 10_000;

/// The difference between two values of which one was returned by [`Connection::in_their_case`], in words.
pub(crate) fn difference(value: &str, written: &str) -> &'static str {
    if value.trim() == written.trim() { "its spaces" } else { "case" }
}

/// The names of filter parameters, in order.
fn names_of(filters: &[FilterTerm]) -> Vec<String> {
    let mut names: Vec<String> = filters.iter().map(|term| term.parameter.clone()).collect();
    names.sort_unstable();
    names
}

/// The number of values of a filter, and their bytes.
fn extent(term: &FilterTerm) -> (usize, usize) {
    (term.values.len(), term.values.iter().map(String::len).sum())
}

impl Connection {
    /// Creates a builder for the service at `base_url`, such as `https://api.example.com/v4`.
    pub fn builder(base_url: impl Into<String>, key: Secret) -> ConnectionBuilder {
        ConnectionBuilder::new(base_url.into(), key)
    }

    /// Client, with its request log and limits.
    #[doc(hidden)]
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Profile of the service.
    pub fn profile(&self) -> &Arc<Profile> {
        self.client.profile()
    }

    /// Local clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Time that windows are computed from: the local time, or the service's if it is known to be ahead by more than a
    /// minute.
    pub fn now(&self) -> DateTime<Utc> {
        let ahead = self.client.ahead();
        let now = self.clock.now();
        if ahead.num_seconds() > 60 { now + ahead } else { now }
    }

    /// Fields of records that were seen in `extra`, by table and pointer.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner).unknown()
    }

    /// Saved searches of the last list: aids with their names. No request is made; `None` until a query has requested
    /// the list.
    pub fn known_searches(&self) -> Option<Vec<(String, String)>> {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Aids that a query without an aid read according to the last list, of whichever query; `None` until one has requested it. For
    /// estimates only.
    pub(crate) fn last_fan_out(&self) -> Option<Vec<String>> {
        self.fan_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same for estimates: without a list of this process, the last one of an earlier process.
    pub(crate) fn estimated_fan_out(&self) -> Option<LastList> {
        let own = self.last_fan_out().map(|aids| LastList { aids, earlier: None });
        own.or_else(|| self.client.earlier_list().map(|(aids, at)| LastList { aids, earlier: Some(at) }))
    }

    /// Records the fields of a page; `asked` is a hash of its request. Returns the columns whose fields used to be in all
    /// records and are in none of the latest. Remembers values of the columns that are `compared`, or that the service filters by.
    pub(crate) fn note_fields<'c>(
        &self,
        table: &str,
        asked: u64,
        page: &Decoded,
        compared: impl Iterator<Item = &'c String>,
    ) -> Vec<String> {
        let filtered = self.profile().filters.parameters.iter().map(|parameter| &parameter.column);
        let mut fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        fields.note_values(table, filtered, &page.batch);
        fields.note_values(table, compared, &page.batch);
        fields.note(table, asked, page, self.clock.now())
    }

    /// Remembers values of the columns that a query compares, of rows that come in one response.
    pub(crate) fn note_compared<'c>(
        &self,
        table: &str,
        compared: impl Iterator<Item = &'c String>,
        rows: &RecordBatch,
    ) {
        let mut fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        fields.note_values(table, compared, rows);
    }

    /// The values of a column that differ only in case, or in spaces at their ends, from one that the service writes, each with that
    /// one. Values that the service writes are left out.
    pub(crate) fn in_their_case<'v>(
        &self,
        table: &TableSpec,
        column: &str,
        values: &'v BTreeSet<String>,
    ) -> Vec<(&'v str, String)> {
        let folded = |text: &str| text.trim().to_lowercase();
        let (named, seen) = match table.kind {
            TableKind::Mentions => (self.profile().named_values(column), self.seen_values(column)),
            _ => (Vec::new(), BTreeSet::new()),
        };
        let fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        let known = fields.values(&table.name, column).chain(named).chain(seen.iter().map(String::as_str));
        let known: BTreeSet<&str> = known.collect();
        let written: HashMap<String, &str> = known.iter().map(|known| (folded(known), *known)).collect();
        let other = values.iter().filter(|value| !known.contains(value.as_str()));
        other.filter_map(|value| Some((value.as_str(), (*written.get(&folded(value))?).to_owned()))).collect()
    }

    /// True if the service was seen to use a list of at least as many values and bytes completely, or if there is only one value.
    pub(crate) fn is_proven(&self, term: &FilterTerm) -> bool {
        let proven = self.proven_values.lock().unwrap_or_else(PoisonError::into_inner);
        let (values, bytes) = extent(term);
        let covers = |known: &(usize, usize)| known.0 >= values && known.1 >= bytes;
        values <= 1 || proven.get(&term.parameter).is_some_and(|known| known.iter().any(covers))
    }

    /// Records that the service was seen to use a list completely.
    pub(crate) fn note_proven(&self, term: &FilterTerm) {
        let mut proven = self.proven_values.lock().unwrap_or_else(PoisonError::into_inner);
        let (values, bytes) = extent(term);
        let known = proven.entry(term.parameter.clone()).or_default();
        known.retain(|known| known.0 > values || known.1 > bytes);
        known.push((values, bytes));
    }

    /// Values of a column that mentions of a page were seen to have.
    pub(crate) fn seen_values(&self, column: &str) -> BTreeSet<String> {
        let seen = self.seen_values.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(column).cloned().unwrap_or_default()
    }

    /// Records values that the mentions of a page have in a column.
    pub(crate) fn note_values(&self, column: &str, values: Vec<String>) {
        let mut seen = self.seen_values.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.entry(column.to_owned()).or_default();
        // A column with more values has no list of all of them.
        let room = MOST_VALUES.saturating_sub(known.len());
        known.extend(values.into_iter().take(room));
    }

    /// True if the service was seen to combine these filters in one request.
    pub(crate) fn combines(&self, filters: &[FilterTerm]) -> bool {
        self.combined.lock().unwrap_or_else(PoisonError::into_inner).contains(&names_of(filters))
    }

    /// Records that the service was seen to combine these filters in one request.
    pub(crate) fn note_combined(&self, filters: &[FilterTerm]) {
        if filters.len() > 1 {
            self.combined.lock().unwrap_or_else(PoisonError::into_inner).insert(names_of(filters));
        }
    }
}
