//! A service, a key and a profile: what every table of one catalog shares.
//!
//! ```text
//! ConnectionBuilder ─▶ Connection ─┬─ client (limiter, retries, request log)
//!                                  ├─ profile
//!                                  └─ queries under way: one budget and one answer to each question for all scans of a query
//! ```

mod fields;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};

pub use self::fields::UnknownField;

use self::fields::Fields;
use crate::client::{
    Caller, Client, HttpLimits, HttpService, Network, Page, PageDecoder, PageFacts, QueryBudget, RetryPolicy, Scan,
    Secret, parse_base_url,
};
use crate::clock::Clock;
use crate::config::{SessionSettings, state_folder};
use crate::decode::{Decoded, Decoder};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Profile, TableSpec};
use crate::request::PageRequest;

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
}

/// A query under way.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) budget: Arc<QueryBudget>,
    /// Answers without mentions, by their endpoints and parameters: each is asked for once.
    answers: Mutex<HashMap<String, Answer>>,
}

/// Queries that are remembered though nothing reads them at the moment.
const MANY: usize = 256;

/// Queries under way by their names, each with what runs it.
type Queries = HashMap<String, (Weak<Execution>, Arc<Query>)>;

/// What runs a query; it lives as long as the query does.
type Execution = dyn Any + Send + Sync;

/// An answer without mentions.
#[derive(Debug)]
enum Answer {
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

    /// Talks through this service instead of the network: a cache, a recording, a script of faults.
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
        let Self { base_url, key, profile, service, clock, retry, state, limits } = self;
        let base_url = parse_base_url(&base_url)?;
        let service = match service {
            Some(service) => service,
            None => Arc::new(Network::try_new(limits, &base_url)?),
        };
        let client = Client::try_new(base_url, key, Arc::new(profile), service, clock.clone())?.with_retry(retry);
        let client = match state.or_else(state_folder) {
            Some(folder) => client.with_ledger(&folder),
            None if !client.needs_ledger() => client,
            None => {
                return Err(Error::new(ErrorKind::Config, "there is no folder to keep what the key spends in")
                    .advice("set XDG_STATE_HOME, or HOME"));
            }
        };
        let (queries, fields, searches) = Default::default();
        Ok(Arc::new(Connection { client, clock, queries, fields, searches }))
    }
}

impl Connection {
    /// Starts a connection to the service at `base_url`, which ends with `v4` (seed section 4).
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
        }
    }

    /// The client, its request log and its limits.
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
        // Before the lock: another process may keep the ledger.
        let deadline = tokio::time::Instant::now() + settings.query_deadline;
        let possible = self.client.possible_until(deadline);
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        // Many queries may be run by one that lives on: those that no scan reads any more are of the past.
        let crowded = queries.len() > MANY;
        queries.retain(|_, (runs, query)| runs.strong_count() > 0 && !(crowded && Arc::strong_count(query) == 1));
        if let Some((known, query)) = queries.get(id)
            && known.ptr_eq(&Arc::downgrade(execution))
        {
            return Arc::clone(query);
        }
        let budget =
            QueryBudget::new(id.to_owned(), settings.max_requests, settings.query_deadline, settings.request_timeout)
                .with_completeness(settings.completeness)
                .with_caller(caller);
        let query = Arc::new(Query { budget: Arc::new(budget.with_possible(possible)), answers: Mutex::default() });
        queries.insert(id.to_owned(), (Arc::downgrade(execution), Arc::clone(&query)));
        query
    }

    /// The answer of the list. All scans of a query share one request.
    pub(crate) async fn list(self: &Arc<Self>, query: &Query, scan: &Arc<Scan>) -> Result<Bytes> {
        let decoder = self.aids_of(self.profile().tables.saved_searches.clone())?.of_table();
        let request = PageRequest::list();
        let accept = move |body: &[u8]| Ok(decoder.decode(&PageRequest::list(), body)?.batch.num_rows() as u64);
        let body = self.answer(query, scan, request, accept).await?;
        self.note_searches(&body);
        Ok(body)
    }

    /// Takes note of the names in a list, where it has some: no query hangs on them.
    fn note_searches(&self, body: &[u8]) {
        let list = &self.profile().tables.saved_searches;
        let place = |name: &str| list.columns.iter().position(|column| column.name == name);
        let (Some(aid), Some(name)) = (place("aid"), place("name")) else { return };
        let decoder = Decoder::new(Arc::clone(self.profile()), Arc::new(list.clone()), &[aid, name]);
        let Ok(Decoded { batch, .. }) = decoder.decode(&PageRequest::list(), body) else { return };
        let texts = |at: usize| arrow::compute::cast(batch.column(at), &DataType::Utf8);
        let (Ok(aids), Ok(names)) = (texts(0), texts(1)) else { return };
        let pairs = aids.as_string::<i32>().iter().zip(names.as_string::<i32>());
        let mut known = HashSet::new();
        let found = pairs.filter_map(|(aid, name)| Some((aid?.to_owned(), name.unwrap_or_default().to_owned())));
        let found = found.filter(|(aid, _)| known.insert(aid.clone())).collect();
        *self.searches.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }

    /// The answer to a request without mentions. All scans of a query share one request. `accept` gives the number of
    /// records in an answer that can be believed.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        query: &Query,
        scan: &Arc<Scan>,
        request: PageRequest,
        accept: impl Fn(&[u8]) -> Result<u64> + Send + Sync + 'static,
    ) -> Result<Bytes> {
        let key = format!("{} {:?}", request.plan.endpoint, request.parameters(self.profile()));
        let asked = {
            let mut answers = query.answers.lock().unwrap_or_else(PoisonError::into_inner);
            match answers.get(&key) {
                Some(Answer::Given(body)) => return Ok(body.clone()),
                Some(Answer::Asked(asked)) => asked.upgrade(),
                None => None,
            }
            .unwrap_or_else(|| {
                let (connection, scan) = (Arc::clone(self), Arc::clone(scan));
                // On a task of its own: scans that wait for it must not depend on who asked first being polled.
                let asking = self.client.spawn(async move {
                    let keep = |body: &[u8]| Ok((Bytes::copy_from_slice(body), accept(body)?));
                    connection.client.fetch(&scan, &request, keep).await
                });
                let failed = |error| Error::new(ErrorKind::Connect, format!("the request ended early: {error}"));
                let asked = asking.map(move |answer| answer.map_err(failed).flatten()).boxed().shared();
                answers.extend(asked.downgrade().map(|asked| (key.clone(), Answer::Asked(asked))));
                asked
            })
        };
        let body = asked.await?;
        let mut answers = query.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(key, Answer::Given(body.clone()));
        Ok(body)
    }

    /// The aids that a query without one asks for: each once, in the order of the list.
    pub(crate) async fn listed_aids(self: &Arc<Self>, query: &Query, scan: &Arc<Scan>) -> Result<Vec<String>> {
        let table = &self.profile().tables.saved_searches;
        let sections = table.sections.iter().filter(|section| section.fan_out).cloned().collect::<Vec<_>>();
        if sections.is_empty() {
            return Err(Error::new(ErrorKind::Query, "the profile names no section of the list to ask for")
                .advice("add a predicate on aid, or set fan_out = true on a section of saved_searches"));
        }
        let decoder = self.aids_of(TableSpec { sections, ..table.clone() })?;
        let batch = decoder.decode(&PageRequest::list(), &self.list(query, scan).await?)?.batch;
        let column = arrow::compute::cast(batch.column(0), &DataType::Utf8)
            .map_err(|error| Error::new(ErrorKind::Profile, format!("aids are no texts: {error}")))?;
        let mut known = HashSet::new();
        let aids = column.as_string::<i32>().iter().flatten().filter(|aid| known.insert(*aid));
        Ok(aids.map(str::to_owned).collect())
    }

    fn aids_of(&self, list: TableSpec) -> Result<Decoder> {
        let aid = list.columns.iter().position(|column| column.name == "aid");
        let aid = aid.ok_or_else(|| Error::new(ErrorKind::Profile, "the list has no column `aid`"))?;
        Ok(Decoder::new(Arc::clone(self.profile()), Arc::new(list), &[aid]))
    }
}

impl Page for Decoded {
    fn ids(&self) -> Option<&[u64]> {
        self.ids.as_deref()
    }

    fn times(&self) -> Option<&[i64]> {
        self.times.as_deref()
    }

    fn versions(&self) -> Option<&[i64]> {
        self.versions.as_deref()
    }

    fn bytes(&self) -> usize {
        self.batch.get_array_memory_size()
    }

    fn retain(self, keep: &[bool]) -> Self {
        // Mostly it is the first or the last row that goes, which costs nothing.
        let first = keep.iter().position(|keep| *keep).unwrap_or(keep.len());
        let end = keep.iter().rposition(|keep| *keep).map_or(first, |last| last + 1);
        let part = self.batch.slice(first, end - first);
        let kept = &keep[first..end];
        let batch = if kept.contains(&false) {
            // The mask has a flag a row, which is all that filtering asks for.
            arrow::compute::filter_record_batch(&part, &kept.to_vec().into()).expect("one flag a row")
        } else {
            part
        };
        Self { batch, ids: None, times: None, versions: None, ..self }
    }

    fn last_row(&self) -> Self {
        let rows = self.batch.num_rows();
        let batch = self.batch.slice(rows.saturating_sub(1), rows.min(1));
        let Self { total, hint, counted, window, .. } = *self;
        Self {
            batch,
            total,
            hint,
            counted,
            window,
            ids: None,
            times: None,
            versions: None,
            conflicts: 0,
            mended: 0,
            unnamed: 0,
            records: 0,
            present: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl PageDecoder for Decoder {
    type Page = Decoded;

    fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<(Decoded, PageFacts)> {
        let decoded = Self::decode(self, request, body)?;
        let Decoded { total, hint, counted, window, .. } = decoded;
        let facts = PageFacts { rows: decoded.batch.num_rows() as u64, total, hint, counted, window };
        Ok((decoded, facts))
    }
}
