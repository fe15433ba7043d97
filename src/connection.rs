//! Connections: a service, a key and a profile, shared by all tables of a catalog.
//!
//! ```text
//! ConnectionBuilder ─▶ Connection ─┬─ client (limiter, retries, request log)
//!                                  ├─ profile
//!                                  └─ running queries: what all scans of a query share is in `query` and `answers`
//! ```

mod answers;
mod fields;
mod page;
mod query;
mod saved_searches;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
#[cfg(feature = "store")]
use std::time::Duration;

#[cfg(feature = "store")]
use chrono::TimeDelta;
use chrono::{DateTime, Utc};
use savedsearch_clock::Clock;
#[cfg(feature = "store")]
use tokio::time::Instant;

pub use self::fields::UnknownField;

use self::fields::Fields;
pub(crate) use self::page::facts_of;
pub(crate) use self::query::{ForeignRuns, Query, QueryContext};
pub(crate) use self::saved_searches::SavedSearches;
#[cfg(feature = "store")]
use crate::client::Caller;
use crate::client::{
    Client, ClientSpec, Exchanges, HttpLimits, HttpService, Network, RetryPolicy, Secret, parse_base_url,
};
use crate::config::state_folder;
#[cfg(feature = "store")]
use crate::config::{SessionSettings, StoreUse};
use crate::decode::Decoded;
use crate::error::Result;
#[cfg(feature = "store")]
use crate::error::{Error, ErrorKind};
#[cfg(feature = "store")]
use crate::location::{CatalogUrl, Location};
use crate::profile::Profile;
#[cfg(feature = "store")]
use crate::profile::{ColumnSpec, ColumnType, Origin};
use crate::request::FilterTerm;
#[cfg(feature = "store")]
use crate::store::{
    AS_OF, Compacted, Erase, Erased, Export, Exported, Extent, Filters, FromStore, Holding, Indexed, Owner, Store,
    StoreStatistics, is_full, unstored,
};

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
    #[cfg(feature = "store")]
    store: Option<Arc<Store>>,
    /// Reason why the store is not open, if its disk has no space: queries read everything from the service.
    #[cfg(feature = "store")]
    unopened: Option<Error>,
    /// Conditions of stored mentions that callers have used, by caller.
    #[cfg(feature = "store")]
    conditions: Mutex<HashMap<Arc<str>, HashSet<String>>>,
}

/// Builder of a [`Connection`].
#[derive(Debug)]
pub struct ConnectionBuilder {
    base_url: String,
    key: Secret,
    profile: Profile,
    service: Option<Arc<dyn HttpService>>,
    clock: Clock,
    retry: RetryPolicy,
    state: Option<PathBuf>,
    keeps_estimates: bool,
    shown_as: Option<String>,
    limits: HttpLimits,
    exchanges: Exchanges,
    #[cfg(feature = "store")]
    store: Option<StoreSpec>,
}

/// The store of a connection that is built.
#[cfg(feature = "store")]
#[derive(Debug)]
struct StoreSpec {
    location: Result<Location>,
    /// Its catalog if that is not in a file of the folder.
    catalog: Option<CatalogUrl>,
    /// Its owner if that is not the service and key.
    owner: Option<String>,
}

/// Saved searches of the last list.
#[derive(Debug)]
pub(crate) struct LastList {
    pub(crate) aids: Vec<String>,
    /// The time of the list if an earlier process has requested it.
    pub(crate) earlier: Option<DateTime<Utc>>,
}

/// Longest wait for reads that were dropped to store their complete days.
#[cfg(feature = "store")]
const SETTLING: Duration = Duration::from_secs(10);

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

impl ConnectionBuilder {
    /// Sets the profile. Default: the built-in `v4`.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sends requests through this service instead of the network: a proxy, or a test double. A response that it caches
    /// still counts against rate limits and budgets.
    #[must_use]
    pub fn service(mut self, service: Arc<dyn HttpService>) -> Self {
        self.service = Some(service);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the limits of retries.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets what people are shown instead of the base URL, such as `built-in demo data`, whose address says nothing to them.
    #[must_use]
    pub fn shown_as(mut self, name: impl Into<String>) -> Self {
        self.shown_as = Some(name.into());
        self
    }

    /// Sets the folder for state that outlives the process, instead of `savedsearch` in the user's state folder. It
    /// records the usage of a key if the profile declares a limit over more than an hour.
    #[must_use]
    pub fn state_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Keeps the last list of saved searches and the numbers of mentions of windows in the folder for state, so that other
    /// processes estimate by them. They are written when the connection is closed.
    #[must_use]
    pub fn keep_estimates(mut self) -> Self {
        self.keeps_estimates = true;
        self
    }

    /// Sets the source of responses: the service, with or without recording, or a replay.
    #[doc(hidden)]
    #[must_use]
    pub fn exchanges(mut self, exchanges: Exchanges) -> Self {
        self.exchanges = exchanges;
        self
    }

    /// Keeps what queries read in this folder, so that it is requested once. It is created if it is missing. Several
    /// processes may share it.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.store = Some(StoreSpec { location: Location::parse(folder.into()), catalog: None, owner: None });
        self
    }

    /// As [`store`](Self::store), at a location that was parsed before.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn store_at(mut self, location: Location) -> Self {
        self.store = Some(StoreSpec { location: Ok(location), catalog: None, owner: None });
        self
    }

    /// Names the catalog of the store, in PostgreSQL, so that processes on several machines share it. No effect without a store.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn catalog(mut self, url: CatalogUrl) -> Self {
        self.store = self.store.map(|spec| StoreSpec { catalog: Some(url), ..spec });
        self
    }

    /// Names the owner of the store, for a service whose address differs from run to run.
    #[cfg(feature = "store")]
    #[doc(hidden)]
    #[must_use]
    pub fn store_owner(mut self, owner: impl Into<String>) -> Self {
        self.store = self.store.map(|spec| StoreSpec { owner: Some(owner.into()), ..spec });
        self
    }

    /// Sets the limits of HTTP exchanges: connecting, silence, and body size. No effect with
    /// [`service`](Self::service).
    #[must_use]
    pub fn http_limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows sending the key in clear text to an address that is not https. Without this, only a service on this
    /// machine may be reached without https.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.limits.insecure = true;
        self
    }

    /// Builds the connection. No request is made.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid address or key, or a store that was made with another
    /// address or key; [`ErrorKind::Store`](crate::ErrorKind::Store) for a store that cannot be opened.
    pub fn build(self) -> Result<Arc<Connection>> {
        #[cfg(feature = "store")]
        let stored = self.store;
        let Self { base_url, key, profile, service, clock, retry, state, keeps_estimates, limits, .. } = self;
        let (exchanges, shown_as) = (self.exchanges, self.shown_as);
        let base_url = parse_base_url(&base_url)?;
        let service = match service {
            Some(service) => service,
            None => Arc::new(Network::try_new(limits, &base_url)?),
        };
        #[cfg(feature = "store")]
        let profile = if stored.is_some() { with_as_of(profile) } else { profile };
        let client = Client::try_new(ClientSpec {
            base_url,
            key,
            profile: Arc::new(profile),
            service,
            clock: clock.clone(),
            retry,
            state_folder: state.or_else(state_folder),
            keeps_estimates,
            shown_as,
            exchanges,
        })?;
        #[cfg(feature = "store")]
        let (store, unopened) = match stored {
            Some(StoreSpec { location, catalog, owner }) => {
                let mentions = &client.profile().tables.mentions;
                let owner = Owner { digest: owner.unwrap_or_else(|| client.identity()) };
                match Store::open(&location?, catalog.as_ref(), &owner, mentions, &clock) {
                    Ok(store) => (Some(store), None),
                    Err(full) if is_full(&full) => (None, Some(full)),
                    Err(error) => return Err(error),
                }
            }
            None => (None, None),
        };
        let (running, foreign_runs, fields, searches, fan_out, proven_values, combined) = Default::default();
        Ok(Arc::new(Connection {
            client: Arc::new(client),
            clock,
            running,
            foreign_runs,
            fields,
            searches,
            fan_out,
            proven_values,
            combined,
            #[cfg(feature = "store")]
            store,
            #[cfg(feature = "store")]
            unopened,
            #[cfg(feature = "store")]
            conditions: Mutex::default(),
        }))
    }
}

/// Returns the profile with a column of mentions for the instant at which they were read.
#[cfg(feature = "store")]
fn with_as_of(mut profile: Profile) -> Profile {
    let mentions = &mut profile.tables.mentions;
    if mentions.column(AS_OF).is_none() {
        mentions.columns.push(ColumnSpec::new(AS_OF, ColumnType::Timestamp, Origin::AsOf).nullable());
    }
    profile
}

impl Connection {
    /// Creates a builder for the service at `base_url`, such as `https://api.example.com/v4`.
    pub fn builder(base_url: impl Into<String>, key: Secret) -> ConnectionBuilder {
        ConnectionBuilder {
            base_url: base_url.into(),
            key,
            profile: Profile::v4(),
            service: None,
            clock: Clock::system(),
            retry: RetryPolicy::default(),
            state: None,
            keeps_estimates: false,
            shown_as: None,
            limits: HttpLimits::default(),
            exchanges: Exchanges::Live,
            #[cfg(feature = "store")]
            store: None,
        }
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

    /// Aids that a query without an aid read according to the last list; `None` until a query has requested it.
    pub(crate) fn last_fan_out(&self) -> Option<Vec<String>> {
        self.fan_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same for estimates: without a list of this process, the last one of an earlier process.
    pub(crate) fn estimated_fan_out(&self) -> Option<LastList> {
        let own = self.last_fan_out().map(|aids| LastList { aids, earlier: None });
        own.or_else(|| self.client.earlier_list().map(|(aids, at)| LastList { aids, earlier: Some(at) }))
    }

    /// The store, if the connection has one.
    #[cfg(feature = "store")]
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    /// Folder of the store, or the reason why nothing can be written to it; `None` without a store.
    #[cfg(feature = "store")]
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
    #[cfg(feature = "store")]
    pub fn holdings(&self) -> Result<Vec<Holding>> {
        self.some_store()?.holdings(self.profile().store.settle.length())
    }

    /// As [`holdings`](Self::holdings), for one of several who share the connection: the conditions are those that the caller has
    /// sent to this process.
    ///
    /// # Errors
    /// Those of [`holdings`](Self::holdings).
    #[cfg(feature = "store")]
    pub(crate) fn holdings_of(&self, caller: &Caller) -> Result<Vec<Holding>> {
        let mut holdings = self.holdings()?;
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let own = conditions.get(&caller.name);
        holdings.retain(|holding| holding.filters.is_empty() || own.is_some_and(|own| own.contains(&holding.filters)));
        Ok(holdings)
    }

    /// Notes that a caller has used conditions of stored mentions. A caller with very many sees some of them only.
    #[cfg(feature = "store")]
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
    #[cfg(feature = "store")]
    pub fn store_statistics(&self) -> Option<StoreStatistics> {
        self.store.as_ref().map(|store| store.counters().totals())
    }

    /// Compares the store's catalog with its files. Returns the problems in words; empty if there are no problems.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings).
    #[cfg(feature = "store")]
    pub fn verify_store(&self) -> Result<Vec<String>> {
        self.some_store()?.verify()
    }

    /// Merges small files of the store, and removes files that are no longer used.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings).
    #[cfg(feature = "store")]
    pub fn compact_store(&self) -> Result<Compacted> {
        let store = self.some_store()?;
        let compacted = store.compact(self.now(), self.profile().store.settle.length(), Extent::All)?;
        Ok(Compacted { indexed: store.update_indexes()?, ..compacted })
    }

    /// Indexes the words of columns of stored mentions, from now on, so that conditions with `match` read less. Without columns,
    /// those that were named before, or else `title` and `text`.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if there is no such column of texts; [`ErrorKind::Store`] if a file cannot be read or written.
    #[cfg(feature = "store")]
    pub fn index_store(&self, columns: &[String]) -> Result<Indexed> {
        self.some_store()?.index(columns)
    }

    /// Removes the indexes of words from the store, and keeps none from now on.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings).
    #[cfg(feature = "store")]
    pub fn remove_indexes(&self) -> Result<Indexed> {
        self.some_store()?.remove_indexes()
    }

    /// Erases stored mentions, of one saved search or of all, so that nothing of them is left in the store's folder. Mentions that
    /// the service still has are stored again when their day is read next.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if a file cannot be read or written, or if another process is using the store; the call can be
    /// repeated.
    #[cfg(feature = "store")]
    pub fn erase_stored(&self, aid: Option<&str>, what: &Erase) -> Result<Erased> {
        self.some_store()?.erase(aid, what, self.now(), self.profile().store.settle.length())
    }

    /// Writes stored mentions to Parquet files in a new folder, in the order of saved search and time. The folder appears when it is
    /// complete.
    ///
    /// # Errors
    /// [`ErrorKind::Output`] if the folder has files; [`ErrorKind::Query`] if no day of a named saved search is stored;
    /// [`ErrorKind::Store`] if a file cannot be read or written.
    #[cfg(feature = "store")]
    pub fn export_store(&self, what: &Export, folder: &std::path::Path) -> Result<Exported> {
        self.some_store()?.export(what, folder)
    }

    /// Keeps the files of the store that are replaced from now on for a number of days, so that their mentions can be read as of an
    /// earlier time; 0: for an hour.
    ///
    /// # Errors
    /// As [`holdings`](Self::holdings), and [`ErrorKind::Store`] if the store cannot be written.
    #[cfg(feature = "store")]
    pub fn keep_versions(&self, days: u32) -> Result<()> {
        self.some_store()?.keep_versions(days)
    }

    #[cfg(feature = "store")]
    pub(crate) fn some_store(&self) -> Result<&Arc<Store>> {
        let missing =
            || Error::new(ErrorKind::Config, "no store configured").advice("use --store DIR or SAVEDSEARCH_STORE");
        self.store.as_ref().ok_or_else(|| self.unopened.clone().unwrap_or_else(missing))
    }

    /// The note of a query whose result is not stored because the disk has no space since the store was opened.
    #[cfg(feature = "store")]
    fn full_disk(&self, settings: &SessionSettings) -> Option<crate::error::Phrase> {
        let writes = matches!(settings.store, StoreUse::Write | StoreUse::ReadWrite);
        let unwritable = self.store.as_ref().and_then(|store| store.unwritable()).filter(|error| is_full(error));
        match (&self.unopened, unwritable) {
            (Some(full), _) if settings.store != StoreUse::Off => Some(unstored(full, "off")),
            (None, Some(full)) if writes => Some(unstored(full, "read")),
            _ => None,
        }
    }

    /// The store and how queries of a session use it; `None` if they do not.
    #[cfg(feature = "store")]
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

    /// Waits until the days that stopped queries had read completely are stored, for a few seconds at most. Returns what was stored
    /// since the last call, such as `the days of 7 from 2026-05-01 to 2026-05-03 are stored`.
    #[cfg(feature = "store")]
    #[doc(hidden)]
    pub async fn settle_store(&self) -> Vec<String> {
        let Some(store) = &self.store else { return Vec::new() };
        store.in_flight().settle(None, Instant::now() + SETTLING).await;
        store.in_flight().take_stored()
    }

    /// As [`Self::settle_store`], for a query beside which others may run.
    #[cfg(all(unix, feature = "store", feature = "flight", feature = "shell"))]
    pub(crate) async fn settle_query(&self, query: &str) {
        if let Some(store) = &self.store {
            store.in_flight().settle(Some(query), Instant::now() + SETTLING).await;
        }
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
        fields.note_values(filtered, &page.batch);
        fields.note_values(compared, &page.batch);
        fields.note(table, asked, page, self.clock.now())
    }

    /// A value of a column of mentions as the service writes it, if it differs only in case from a value that is not known.
    pub(crate) fn in_its_case(&self, column: &str, value: &str) -> Option<String> {
        let fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<&str> = fields.values(column).chain(self.profile().named_values(column)).collect();
        let written = known.iter().find(|known| known.to_lowercase() == value.to_lowercase());
        written.filter(|_| !known.contains(&value)).map(|written| (*written).to_owned())
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
