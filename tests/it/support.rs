//! A simulator and a session over it, and ways to ask them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::{HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, receive};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Running, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, ErrorKind, Profile, Secret, session};
use futures::TryStreamExt;

/// The instant at which the simulator's and the client's clocks stand.
pub(crate) fn now() -> DateTime<Utc> {
    "2026-07-01T12:00:00Z".parse().unwrap()
}

/// Saved search with the most mentions.
pub(crate) const BIG: &str = "183772";
/// Another one.
pub(crate) const OTHER: &str = "184889";
/// The key that the tests use, which must be shown nowhere.
pub(crate) const KEYS_SHOWN_NOWHERE: &str = KEY;

pub(crate) struct World {
    pub(crate) service: Running,
    pub(crate) context: SessionContext,
}

pub(crate) fn corpus() -> Arc<Corpus> {
    Arc::new(Corpus::generate(CorpusSpec { seed: 7, searches: 4, mentions: 2_000, now: now() }))
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() }, Profile::v4()).await
    }

    pub(crate) async fn with(corpus: Arc<Corpus>, settings: Settings, profile: Profile) -> Self {
        let clock = settings.clock.clone();
        let service = simulator::start("127.0.0.1:0".parse().unwrap(), corpus, settings).await.unwrap();
        let builder = Connection::builder(service.base_url(), Secret::new(KEY).unwrap());
        let connection = builder.profile(profile).clock(clock).build().unwrap();
        let context = session(&connection).unwrap();
        Self { service, context }
    }

    /// The rows of a query.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let batches = self.context.sql(sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        rows(&batches.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}")))
    }

    /// The rows of a query and the requests that it took.
    pub(crate) async fn cost(&self, sql: &str) -> (Vec<Vec<String>>, u64) {
        let before = self.service.requests();
        let rows = self.rows(sql).await;
        (rows, self.service.requests() - before)
    }
}

/// A simulator as a service of the client, without a network, so that time can be virtual.
#[derive(Debug)]
pub(crate) struct InProcess(pub(crate) Simulator, pub(crate) HttpLimits);

#[async_trait]
impl HttpService for InProcess {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let path = request.url[url::Position::BeforePath..].to_owned();
        let (parts, body) = self.0.get(&path, request.headers).await.into_parts();
        let body = body.map_err(|error| {
            let message = format!("the connection broke: {error}");
            HttpFailure { kind: ErrorKind::Connect, message, temporary: true }
        });
        receive(parts.status, parts.headers, body, self.1).await
    }
}

/// A connection to a simulator inside the process, under an address of its own.
pub(crate) fn connect(simulator: &Simulator, clock: Clock, profile: Profile) -> Arc<Connection> {
    // A limiter is shared by key and address.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let address = format!("http://process{}.test/v4", NUMBER.fetch_add(1, Ordering::Relaxed));
    let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
    let builder = Connection::builder(address, Secret::new(KEY).unwrap());
    builder.service(service).clock(clock).profile(profile).build().unwrap()
}

/// The requests that so many mentions take: a page has 100, each further one shares a row with the one before, and the last
/// one is not full, which shows the end.
pub(crate) fn pages(mentions: u64) -> u64 {
    mentions.div_ceil(99).max(1)
}

/// A number from the environment: how many cases of a test, or which.
pub(crate) fn knob(name: &str, default: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is not the program's business")]
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The cells of batches as texts.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let cells: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
        rows.extend((0..batch.num_rows()).map(|row| cells.iter().map(|c| c.value(row).to_string()).collect()));
    }
    rows
}
