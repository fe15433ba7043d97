//! A service, a key and a profile: what every table of one catalog shares.
//!
//! ```text
//! ConnectionBuilder ─▶ Connection ─┬─ client (limiter, retries, request log)
//!                                  ├─ profile
//!                                  └─ queries under way: one budget and one list of aids for all scans of a query
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow::array::{Array, AsArray};
use tokio::sync::OnceCell;

use crate::client::{
    Client, HttpLimits, HttpService, Network, Page, PageDecoder, PageFacts, QueryBudget, RetryPolicy, Scan, Secret,
    parse_base_url,
};
use crate::clock::Clock;
use crate::config::SessionSettings;
use crate::decode::{Decoded, Decoder};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Profile, TableSpec};
use crate::request::{PageRequest, RequestPlan};

/// A service, a key and a profile. Cheap to share; make one a key and process.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    clock: Clock,
    queries: Mutex<HashMap<String, Weak<Query>>>,
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
}

/// A query under way.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) budget: Arc<QueryBudget>,
    aids: OnceCell<Vec<String>>,
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

    /// The connection. No request is made.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an address or a key that cannot be used.
    pub fn build(self) -> Result<Arc<Connection>> {
        let Self { base_url, key, profile, service, clock, retry } = self;
        let base_url = parse_base_url(&base_url)?;
        let service = match service {
            Some(service) => service,
            None => Arc::new(Network::try_new(HttpLimits::default(), &base_url)?),
        };
        let client = Client::try_new(base_url, key, Arc::new(profile), service, clock.clone())?.with_retry(retry);
        Ok(Arc::new(Connection { client, clock, queries: Mutex::default() }))
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

    /// The clock that windows are reckoned by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The query of this id: one budget for all its scans, kept as long as one of them lives.
    pub(crate) fn query(&self, id: &str, settings: &SessionSettings) -> Arc<Query> {
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(query) = queries.get(id).and_then(Weak::upgrade) {
            return query;
        }
        queries.retain(|_, query| query.strong_count() > 0);
        let budget =
            QueryBudget::new(id.to_owned(), settings.max_requests, settings.query_deadline, settings.request_timeout);
        let query = Arc::new(Query { budget: Arc::new(budget), aids: OnceCell::new() });
        queries.insert(id.to_owned(), Arc::downgrade(&query));
        query
    }

    /// The aids that a query without one asks for: each once, in the order of the list. One request a query.
    pub(crate) async fn listed_aids<'q>(&self, query: &'q Query, scan: &Scan) -> Result<&'q Vec<String>> {
        query.aids.get_or_try_init(|| self.list_aids(scan)).await
    }

    async fn list_aids(&self, scan: &Scan) -> Result<Vec<String>> {
        let table = &self.profile().tables.saved_searches;
        let sections = table.sections.iter().filter(|section| section.fan_out).cloned().collect::<Vec<_>>();
        if sections.is_empty() {
            return Err(Error::new(ErrorKind::Query, "the profile names no section of the list to ask for")
                .advice("add a predicate on aid, or set fan_out = true on a section of saved_searches"));
        }
        let table = Arc::new(TableSpec { sections, ..table.clone() });
        let aid = table.columns.iter().position(|column| column.name == "aid");
        let aid = aid.ok_or_else(|| Error::new(ErrorKind::Profile, "the list has no column `aid`"))?;
        let decoder = Decoder::new(Arc::clone(self.profile()), table, &[aid]);
        let request = PageRequest { plan: Arc::new(RequestPlan::list()), row: 0, size: 0, frozen: None };
        let decode = |body: &[u8]| {
            let Decoded { batch, .. } = decoder.decode(&request, body)?;
            let rows = batch.num_rows() as u64;
            Ok((batch, rows))
        };
        let batch = self.client.fetch(scan, &request, decode).await?;
        let mut aids: Vec<String> = Vec::new();
        let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8)
            .map_err(|error| Error::new(ErrorKind::Profile, format!("aids are no texts: {error}")))?;
        let texts = column.as_string::<i32>();
        for row in (0..texts.len()).filter(|row| texts.is_valid(*row)) {
            if !aids.iter().any(|aid| aid == texts.value(row)) {
                aids.push(texts.value(row).to_owned());
            }
        }
        Ok(aids)
    }
}

impl Page for Decoded {
    fn ids(&self) -> Option<&[u64]> {
        self.ids.as_deref()
    }

    fn retain(self, keep: &[bool]) -> Self {
        let mask = keep.to_vec().into();
        // The mask has a flag a row, which is all that filtering asks for.
        let batch = arrow::compute::filter_record_batch(&self.batch, &mask).expect("one flag a row");
        Self { batch, ..self }
    }
}

impl PageDecoder for Decoder {
    type Page = Decoded;

    fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<(Decoded, PageFacts)> {
        let decoded = Self::decode(self, request, body)?;
        let facts = PageFacts { rows: decoded.batch.num_rows() as u64, total: decoded.total, window: decoded.window };
        Ok((decoded, facts))
    }
}
