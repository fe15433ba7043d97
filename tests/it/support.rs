//! A simulator with a session over it, and helpers to query them.

#[path = "../../src/cases.rs"]
mod cases;
mod scripted;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::{HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, receive};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Preset, Running, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, session};
use futures::TryStreamExt;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::net::TcpStream;
use tokio::time::sleep;

pub(crate) use self::cases::{each, each_async};
pub(crate) use self::scripted::{Answer, Asked, Scripted, ok, status};

/// The folder of the repository. The manifest of these tests is that of `crates/cli`.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The time of the simulator's and the client's fixed clocks.
pub(crate) fn now() -> DateTime<Utc> {
    "2026-07-01T12:00:00Z".parse().unwrap()
}

/// Address of a server whose port has to be closed at the end, see [`expect_closed`], or free for the next one. On the address of
/// the other tests, one of them may have got the port in the meantime.
pub(crate) const ALONE: &str = "127.0.0.2:0";

/// Fails if connections to `address` are still accepted. A program that another test starts may hold the sockets of this process
/// for a moment, so a connection that succeeds is tried again.
pub(crate) async fn expect_closed(address: SocketAddr) {
    for _ in 0..1_000 {
        if TcpStream::connect(address).await.is_err() {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("{address} still accepts connections");
}

/// Longest wait of a test for something that takes no time on a machine with nothing else to do; only failing tests reach it.
pub(crate) const LONGEST: Duration = Duration::from_secs(300);

/// Waits until no request has been counted for a while, and returns their number. Requests that were sent before a query ended may
/// be counted later. If a query goes on, this waits for its end, so its requests are in the number.
pub(crate) async fn settled(requests: impl Fn() -> u64) -> u64 {
    /// Longer than the services of these tests take for a response.
    const QUIET: Duration = Duration::from_secs(2);
    loop {
        let counted = requests();
        sleep(QUIET).await;
        if requests() == counted {
            return counted;
        }
    }
}

/// The saved search with the most mentions.
pub(crate) const BIG: &str = "183772";
/// Another saved search.
pub(crate) const OTHER: &str = "184889";

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

    /// Returns the rows of a query.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let batches = self.context.sql(sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        rows(&batches.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}")))
    }

    /// Returns the rows of a query and the count of requests that it took.
    pub(crate) async fn cost(&self, sql: &str) -> (Vec<Vec<String>>, u64) {
        let before = self.service.requests();
        let rows = self.rows(sql).await;
        (rows, self.service.requests() - before)
    }
}

/// A simulator as an HTTP service of the client, without a network, so that time can be virtual.
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

/// Connects to a simulator inside the process under a unique address.
pub(crate) fn connect(simulator: &Simulator, clock: Clock, profile: Profile) -> Arc<Connection> {
    // Connections with the same key and address share a rate limiter.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let address = format!("http://process{}.test/v4", NUMBER.fetch_add(1, Ordering::Relaxed));
    let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
    let builder = Connection::builder(address, Secret::new(KEY).unwrap());
    builder.service(service).clock(clock).profile(profile).build().unwrap()
}

/// Runs a query. Asserts that its error, if any, is typed.
pub(crate) async fn ask(context: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>, Error> {
    let result = match context.sql(sql).await {
        Ok(frame) => frame.collect().await,
        Err(error) => Err(error),
    };
    result
        .map(|batches| rows(&batches))
        .map_err(|error| Error::find(&error).unwrap_or_else(|| panic!("untyped error: {error}")).clone())
}

/// A service inside the process in virtual time, with optional faults, and a session over it.
pub(crate) struct Virtual {
    pub(crate) simulator: Simulator,
    pub(crate) connection: Arc<Connection>,
    pub(crate) context: SessionContext,
}

impl Virtual {
    /// `faults` use the syntax of the simulator's command line; the clock of `settings` is replaced.
    pub(crate) fn new(corpus: Arc<Corpus>, faults: &[impl AsRef<str>], settings: Settings, profile: Profile) -> Self {
        let faults =
            faults.iter().map(|text| text.as_ref().parse().unwrap_or_else(|error| panic!("{error}"))).collect();
        let clock = Clock::starting_at(now());
        let simulator = Simulator::new(corpus, Settings { clock: clock.clone(), faults, ..settings });
        let connection = connect(&simulator, clock, profile);
        let context = session(&connection).unwrap();
        Self { simulator, connection, context }
    }

    /// Runs a query. Asserts that it ends in time and that neither the log nor the error contains the key.
    pub(crate) async fn ask(&self, sql: &str) -> Result<Vec<Vec<String>>, Error> {
        /// Longer than any query may take.
        const TOO_LONG: Duration = Duration::from_secs(1_000);
        let result = match self.context.sql(sql).await {
            Ok(frame) => {
                tokio::time::timeout(TOO_LONG, frame.collect()).await.unwrap_or_else(|_| panic!("{sql}: timed out"))
            }
            Err(error) => Err(error),
        };
        for record in self.connection.client().log().records() {
            assert!(!format!("{record:?}").contains(KEY), "the log contains the key: {record:?}");
        }
        result.map(|batches| rows(&batches)).map_err(|error| {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(KEY), "the error contains the key: {shown}");
            Error::find(&error).unwrap_or_else(|| panic!("{sql}: untyped error: {error}")).clone()
        })
    }

    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.ask(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub(crate) async fn error(&self, sql: &str) -> Error {
        self.ask(sql).await.expect_err(sql)
    }
}

/// Converts a value of the V4 dialect to another dialect.
pub(crate) fn written(preset: Preset, column: &str, value: &str) -> String {
    match (preset, column, value) {
        (Preset::Flags, "sentiment", "positive") => "1".to_owned(),
        (Preset::Flags, "sentiment", "neutral") => "0".to_owned(),
        (Preset::Flags, "sentiment", "negative") => "-1".to_owned(),
        (Preset::Pages, "sentiment", value) => value.to_uppercase(),
        (Preset::Names, "sentiment", value) => value.chars().take(3).collect(),
        (Preset::Names, "id", value) => format!("m-{value}"),
        _ => value.to_owned(),
    }
}

/// Converts SQL for the V4 dialect to another dialect.
pub(crate) fn worded(preset: Preset, sql: String) -> String {
    let sql = ["positive", "neutral", "negative"].into_iter().fold(sql, |sql, label| {
        let value = written(preset, "sentiment", label);
        let value = if preset == Preset::Flags { value } else { format!("'{value}'") };
        sql.replace(&format!("'{label}'"), &value)
    });
    if preset == Preset::Flags { sql.replace("upper(m.id)", "m.id * 2").replace("upper(id)", "id") } else { sql }
}

/// Counts the events that a module of the library emits on the threads that watch it, and in lanes on their behalf.
#[derive(Clone)]
pub(crate) struct EventCounter {
    module: &'static str,
    events: Arc<AtomicU64>,
}

impl EventCounter {
    /// Creates a counter for a module: the last part of its path.
    ///
    /// An event has to be emitted once before it is watched: registered at the same time as events of tests in other threads, it
    /// could be taken for one that nobody watches.
    pub(crate) fn of(module: &'static str) -> Self {
        Self { module, events: Arc::default() }
    }

    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

impl tracing::Subscriber for EventCounter {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().ends_with(self.module)
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// A test runner with this many generated cases, the same for the same seed.
pub(crate) fn runner(cases: u64, seed: u64) -> TestRunner {
    let cases = cases.try_into().unwrap();
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Requests needed for this many mentions: a page has 100, each page shares a row with the previous one, and the last
/// page is not full, which proves the end.
pub(crate) fn pages(mentions: u64) -> u64 {
    mentions.div_ceil(99).max(1)
}

/// Requests needed for the mentions of [`BIG`] in the last 90 days.
pub(crate) fn pages_of_90_days(simulator: &Simulator) -> u64 {
    let since = now() - chrono::TimeDelta::days(90);
    let mentions = &simulator.corpus().search(BIG).unwrap().mentions;
    pages(mentions.iter().filter(|mention| mention.facts.published >= since).count() as u64)
}

/// Reads a number from the environment, such as the count of cases of a test.
pub(crate) fn knob(name: &str, default: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the program does not read the settings of tests")]
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Reads a text from the environment, such as the address of a server that a test may use.
pub(crate) fn text_knob(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the program does not read the settings of tests")]
    std::env::var(name).ok()
}

/// Formats the cells of batches as strings.
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
