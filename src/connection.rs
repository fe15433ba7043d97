//! A service, a key and a profile: what every table of one catalog shares.
//!
//! ```text
//! ConnectionBuilder ─▶ Connection ─┬─ client (limiter, retries, request log)
//!                                  ├─ profile
//!                                  └─ queries under way: one budget and one answer to each question for all scans of a query
//! ```

mod fields;
mod page;
mod saved_searches;

use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};

pub use self::fields::UnknownField;

use self::fields::Fields;
pub(crate) use self::saved_searches::SavedSearches;
use crate::client::{
    Caller, Client, ClientSpec, Exchanges, HttpLimits, HttpService, Network, QueryBudget, RetryPolicy, Scan, Secret,
    parse_base_url,
};
use crate::clock::Clock;
use crate::config::{SessionSettings, state_folder};
use crate::decode::Decoded;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Profile;
use crate::request::{PageRequest, RequestKey};

/// A service, a key and a profile. Cheap to share; make one a key and process.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    clock: Clock,
    queries: Mutex<Queries>,
    fields: Mutex<Fields>,
    searches: Mutex<Option<Vec<(String, String)>>>,
}

/// Makes a [`Connection`].
#[derive(Debug)]
pub struct ConnectionBuilder {
    base_url: String,
    key: Secret,
    profile: Profile,
    service: Option<Arc<dyn HttpService>>,
    clock: Clock,
    retry: RetryPolicy,
    state: Option<PathBuf>,
    limits: HttpLimits,
    exchanges: Exchanges,
}

/// A query under way.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) budget: Arc<QueryBudget>,
    /// When it began, by our clock.
    pub(crate) begun: DateTime<Utc>,
    /// The same, by the clock that windows go by.
    pub(crate) now: DateTime<Utc>,
    /// Answers without mentions: each is asked for once.
    answers: Mutex<HashMap<RequestKey, SharedAnswer>>,
    /// The list, once it was asked for.
    list: OnceLock<Arc<SavedSearches>>,
}

/// Queries that are remembered though nothing reads them at the moment.
const MANY: usize = 256;

/// Queries under way by their names, each with what runs it.
type Queries = HashMap<String, (Weak<Execution>, Arc<Query>)>;

/// What runs a query; it lives as long as the query does.
type Execution = dyn Any + Send + Sync;

/// An answer without mentions.
#[derive(Debug)]
enum SharedAnswer {
    /// Asked for, as long as somebody waits for it.
    Asked(WeakShared<BoxFuture<'static, Result<Bytes>>>),
    /// There.
    Given(Bytes),
}

impl ConnectionBuilder {
    /// Goes by this profile instead of the built-in `v4`.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sends requests through this service instead of the network: a proxy, or a test double. An answer that it keeps still spends
    /// rate limits and budgets.
    #[must_use]
    pub fn service(mut self, service: Arc<dyn HttpService>) -> Self {
        self.service = Some(service);
        self
    }

    /// Reads the time from this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Tries again within these bounds.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Keeps what is to outlast the process in this folder, instead of `savedsearch` in the user's state folder: what a key
    /// has spent, where the profile declares a limit over more than an hour.
    #[must_use]
    pub fn state_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Takes answers from somewhere else than the service, or writes them down.
    #[doc(hidden)]
    #[must_use]
    pub fn exchanges(mut self, exchanges: Exchanges) -> Self {
        self.exchanges = exchanges;
        self
    }

    /// Bounds HTTP exchanges: connecting, silence, and bytes of a body. No effect with [`service`](Self::service).
    #[must_use]
    pub fn http_limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sends the key in clear text where the address is no https one. Without this, only a service on this machine may be
    /// asked so.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.limits.insecure = true;
        self
    }

    /// The connection. No request is made.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an address or a key that cannot be used.
    pub fn build(self) -> Result<Arc<Connection>> {
        let Self { base_url, key, profile, service, clock, retry, state, limits, exchanges } = self;
        let base_url = parse_base_url(&base_url)?;
        let service = match service {
            Some(service) => service,
            None => Arc::new(Network::try_new(limits, &base_url)?),
        };
        let client = Client::try_new(ClientSpec {
            base_url,
            key,
            profile: Arc::new(profile),
            service,
            clock: clock.clone(),
            retry,
            state_folder: state.or_else(state_folder),
            exchanges,
        })?;
        let (queries, fields, searches) = Default::default();
        Ok(Arc::new(Connection { client, clock, queries, fields, searches }))
    }
}

impl Connection {
    /// Starts a connection to the service at `base_url`, such as `https://api.example.com/v4`.
    pub fn builder(base_url: impl Into<String>, key: Secret) -> ConnectionBuilder {
        ConnectionBuilder {
            base_url: base_url.into(),
            key,
            profile: Profile::v4(),
            service: None,
            clock: Clock::system(),
            retry: RetryPolicy::default(),
            state: None,
            limits: HttpLimits::default(),
            exchanges: Exchanges::Live,
        }
    }

    /// The client, its request log and its limits.
    #[doc(hidden)]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The profile that it goes by.
    pub fn profile(&self) -> &Arc<Profile> {
        self.client.profile()
    }

    /// Our own clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The time that windows are reckoned by: ours, or the service's where the two are known to differ by more than a
    /// minute and it is ahead.
    pub fn now(&self) -> DateTime<Utc> {
        let ahead = self.client.ahead();
        let now = self.clock.now();
        if ahead.num_seconds() > 60 { now + ahead } else { now }
    }

    /// The fields of records that were seen in `extra`, by table and place.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner).unknown()
    }

    /// The saved searches of the last list, aids with their names. No request is made: `None` until a query asked for it.
    pub fn known_searches(&self) -> Option<Vec<(String, String)>> {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests that the queries under way have announced. More may turn out to be needed.
    pub fn announced(&self) -> u64 {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = queries.values().filter(|(runs, _)| runs.strong_count() > 0);
        under_way.map(|(_, query)| query.budget.announced()).sum()
    }

    /// Takes note of the fields of a page of what was `asked` for. Gives the columns whose fields came in all records
    /// before, and in none of late.
    pub(crate) fn note_fields(&self, table: &str, asked: u64, page: &Decoded) -> Vec<String> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner).note(table, asked, page, self.clock.now())
    }

    /// The query of this name: one budget and one answer to each question for all its scans, as long as `execution`
    /// lives. A plan that is run again is another query.
    pub(crate) fn query(
        &self,
        id: &str,
        execution: &Arc<Execution>,
        settings: &SessionSettings,
        caller: Option<Arc<Caller>>,
    ) -> Arc<Query> {
        let budget =
            QueryBudget::new(id.to_owned(), settings.max_requests, settings.query_deadline, settings.request_timeout)
                .with_completeness(settings.completeness)
                .with_caller(caller);
        // Before the lock: another process may keep the ledger.
        let possible = self.client.possible_until(budget.deadline);
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        // Many queries may be run by one that lives on: those that no scan reads any more are of the past.
        let crowded = queries.len() > MANY;
        queries.retain(|_, (runs, query)| runs.strong_count() > 0 && !(crowded && Arc::strong_count(query) == 1));
        if let Some((known, query)) = queries.get(id)
            && known.ptr_eq(&Arc::downgrade(execution))
        {
            return Arc::clone(query);
        }
        let query = Query {
            budget: Arc::new(budget.with_possible(possible)),
            begun: self.clock.now(),
            now: self.now(),
            answers: Mutex::default(),
            list: OnceLock::new(),
        };
        let query = Arc::new(query);
        queries.insert(id.to_owned(), (Arc::downgrade(execution), Arc::clone(&query)));
        query
    }

    /// The answer of the list. All scans of a query share one request.
    pub(crate) async fn list(self: &Arc<Self>, query: &Query, scan: &Arc<Scan>) -> Result<Arc<SavedSearches>> {
        if let Some(list) = query.list.get() {
            return Ok(Arc::clone(list));
        }
        let profile = Arc::clone(self.profile());
        let decode = move |body: &Bytes| {
            let list = SavedSearches::decode(&profile, body.clone())?;
            let rows = list.rows;
            Ok((list, rows))
        };
        let list = Arc::new(self.answer(query, scan, PageRequest::list(), decode).await?);
        self.note_searches(&list);
        Ok(Arc::clone(query.list.get_or_init(|| list)))
    }

    /// Takes note of the names in a list, where it has some: no query hangs on them.
    fn note_searches(&self, list: &SavedSearches) {
        if let Some(names) = &list.names {
            *self.searches.lock().unwrap_or_else(PoisonError::into_inner) = Some(names.clone());
        }
    }

    /// The answer to a request without mentions. All scans of a query share one request; each decodes for itself what it
    /// takes of the answer. `decode` gives the value and the number of records in an answer that can be believed.
    pub(crate) async fn answer<T: Send + 'static>(
        self: &Arc<Self>,
        query: &Query,
        scan: &Arc<Scan>,
        request: PageRequest,
        decode: impl Fn(&Bytes) -> Result<(T, u64)> + Send + Sync + 'static,
    ) -> Result<T> {
        let key = request.key(self.profile());
        let decode = Arc::new(decode);
        // What comes of the answer where it is this call that asks.
        let decoded: Arc<Mutex<Option<T>>> = Arc::default();
        let asked = {
            let mut answers = query.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = match answers.get(&key) {
                // It is decoded below, where nobody waits for the lock.
                Some(SharedAnswer::Given(body)) => Some(futures::future::ready(Ok(body.clone())).boxed().shared()),
                Some(SharedAnswer::Asked(asked)) => asked.upgrade(),
                None => None,
            };
            known.unwrap_or_else(|| {
                let (connection, scan) = (Arc::clone(self), Arc::clone(scan));
                let (decode, decoded) = (Arc::clone(&decode), Arc::clone(&decoded));
                // On a task of its own: scans that wait for it must not depend on who asked first being polled.
                let asking = self.client.spawn(async move {
                    let keep = |body: &Bytes| {
                        let (value, rows) = decode(body)?;
                        *decoded.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                        Ok((body.clone(), rows))
                    };
                    connection.client.fetch(&scan, &request, keep).await
                });
                let failed = |error| Error::new(ErrorKind::Connect, format!("the request ended early: {error}"));
                let asked = asking.map(move |answer| answer.map_err(failed).flatten()).boxed().shared();
                answers.extend(asked.downgrade().map(|asked| (key.clone(), SharedAnswer::Asked(asked))));
                asked
            })
        };
        let body = asked.await?;
        query.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(key, SharedAnswer::Given(body.clone()));
        let own = decoded.lock().unwrap_or_else(PoisonError::into_inner).take();
        own.map_or_else(|| decode(&body).map(|(value, _)| value), Ok)
    }

    /// The aids that a query without one asks for: each once, in the order of the list.
    pub(crate) async fn listed_aids(self: &Arc<Self>, query: &Query, scan: &Arc<Scan>) -> Result<Vec<String>> {
        if !self.profile().tables.saved_searches.sections.iter().any(|section| section.fan_out) {
            return Err(Error::new(ErrorKind::Query, "the profile names no section of the list to ask for")
                .advice("add a predicate on aid, or set fan_out = true on a section of saved_searches"));
        }
        Ok(self.list(query, scan).await?.fan_out())
    }
}
