//! The server for clients of PostgreSQL, with a real driver and with hand-written bytes: rows and costs, the extended
//! protocol, logins, catalogs, and how statements end.

mod exact;
mod forms;
mod hostile;
mod numbers;
mod semantics;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use datafusion_saved_search::client::HttpLimits;
use datafusion_saved_search::flight::{FlightServer, ServerSpec};
use datafusion_saved_search::host::{Auth, HostSpec, PassThrough, Upstream, Users, hash_password};
use datafusion_saved_search::postgres::{PostgresServer, PostgresSpec, scram_verifier, serve};
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, KEY, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Profile, session};
use futures::TryStreamExt;
use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage};

use crate::flight::open;
use crate::queries::{self, NOW};
use crate::support::{
    BIG, EventCounter, InProcess, LONGEST, OTHER, connect, corpus, each_async, now, pages, rows, settled,
};

/// A server over a simulator inside the process.
struct Served {
    simulator: Simulator,
    connection: Arc<Connection>,
    flight: FlightServer,
    postgres: PostgresServer,
}

async fn listen(flight: &FlightServer) -> PostgresServer {
    let spec = PostgresSpec { listen: "127.0.0.1:0".parse().unwrap(), tls: None, insecure: false };
    PostgresServer::start(spec, flight.host()).await.unwrap()
}

impl Served {
    async fn new() -> Self {
        Self::with(Settings::default(), |_| {}).await
    }

    async fn with(settings: Settings, change: impl FnOnce(&mut ServerSpec)) -> Self {
        Self::over(corpus(), settings, change).await
    }

    async fn over(corpus: Arc<Corpus>, settings: Settings, change: impl FnOnce(&mut ServerSpec)) -> Self {
        let clock = Clock::fixed(now());
        let simulator = Simulator::new(corpus, Settings { clock: clock.clone(), ..settings });
        let connection = connect(&simulator, clock, Profile::v4());
        let mut spec = open(Upstream::Own { connection: Arc::clone(&connection), named: Vec::new() });
        change(&mut spec);
        let flight = FlightServer::start(spec).await.unwrap();
        let postgres = listen(&flight).await;
        Self { simulator, connection, flight, postgres }
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        let address = self.postgres.address();
        config.host(address.ip().to_string()).port(address.port()).user("ada").dbname("savedsearch");
        config
    }

    async fn client(&self) -> Client {
        self.try_client(&self.config()).await.unwrap()
    }

    async fn try_client(&self, config: &Config) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Waits until the service has received more requests than these.
    async fn asks_after(&self, requests: u64) {
        while self.simulator.requests() <= requests {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns the output of a future and the number of requests that it caused.
    async fn cost<T>(&self, done: impl Future<Output = T>) -> (T, u64) {
        let before = self.simulator.requests();
        let done = done.await;
        (done, self.simulator.requests() - before)
    }
}

/// The message of a refusal.
fn message_of<T>(refused: Result<T, tokio_postgres::Error>) -> String {
    refused.err().and_then(|error| Some(error.as_db_error()?.message().to_owned())).unwrap_or_default()
}

/// The rows of a statement in the simple protocol; `None` for a missing value.
async fn texts(client: &Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()),
        _ => None,
    });
    rows.collect()
}

async fn text(client: &Client, sql: &str) -> String {
    texts(client, sql).await.concat().into_iter().flatten().collect::<Vec<_>>().join("|")
}

async fn code(client: &Client, sql: &str) -> (String, String) {
    let error = client.simple_query(sql).await.expect_err(sql);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error}"));
    (error.code().code().to_owned(), error.message().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_was_meant_and_where() {
    let served = Served::new().await;
    let client = served.client().await;
    each_async(
        [
            ("SELECT autor FROM mentions", "unknown column `autor`; did you mean author_name?", 8),
            ("SELECT 1 FROM mention", "unknown table `mention`; did you mean mentions?", 15),
            ("SELECT 'é', cuont(*) FROM mentions", "unknown function `cuont`; did you mean count?", 13),
            ("SELECT 1; SELECT autor FROM mentions", "did you mean author_name?", 18),
            ("SELECT 1; COPY ( SELECT 'é', autor FROM mentions) TO STDOUT", "did you mean author_name?", 30),
            ("SELECT a FROM mentions WHERE title = ‘x’", "the statement has a typographic quote ‘; write '", 38),
        ],
        async |(sql, message, place)| {
            let error = client.simple_query(sql).await.expect_err(sql);
            let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error}"));
            assert!(error.message().contains(message), "{sql}: {}", error.message());
            let position = match error.position() {
                Some(tokio_postgres::error::ErrorPosition::Original(position)) => Some(*position),
                _ => None,
            };
            assert_eq!(position, Some(place), "{sql}: {}", error.message());
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_the_rows_that_the_library_gives_at_the_same_cost() {
    let settings = Settings { clock: Clock::fixed(NOW.parse().unwrap()), ..Settings::default() };
    let simulator = Simulator::new(queries::corpus(), settings.clone());
    let connection = connect(&simulator, settings.clock, Profile::v4());
    let flight = FlightServer::start(open(Upstream::Own { connection: Arc::clone(&connection), named: Vec::new() }));
    let flight = flight.await.unwrap();
    let postgres = listen(&flight).await;
    let served = Served { simulator, connection, flight, postgres };
    let client = served.client().await;
    let context = session(&served.connection).unwrap();
    for query in queries::queries(served.simulator.corpus(), NOW.parse().unwrap()) {
        let own = async { rows(&context.sql(&query.sql).await.unwrap().collect().await.unwrap()) };
        let (own, cost) = served.cost(own).await;
        let (got, cost_served) = served.cost(texts(&client, &query.sql)).await;
        assert_eq!((got.len(), cost_served), (own.len(), cost), "{}", query.sql);
        let (described, cost_described) = served.cost(client.prepare(&query.sql)).await;
        assert_eq!(cost_described, 0, "{}", query.sql);
        let (prepared, cost_prepared) =
            served.cost(async { client.query(&described.unwrap(), &[]).await.unwrap() }).await;
        assert_eq!((prepared.len(), cost_prepared), (own.len(), cost), "{}", query.sql);
        // Instants and lists are printed differently; numbers are the same texts. Without ORDER BY, rows have no order.
        let numbers = |rows: Vec<Option<String>>| {
            let mut numbers: Vec<String> =
                rows.into_iter().flatten().filter(|text| text.parse::<i64>().is_ok()).collect();
            numbers.sort();
            numbers
        };
        let own = own.into_iter().flatten().map(Some).collect();
        assert_eq!(numbers(got.concat()), numbers(own), "{}", query.sql);
    }
}

/// Counts the texts that the parser reads, and the statements that the engine plans.
#[tokio::test]
async fn a_simple_query_is_parsed_and_planned_once() {
    let served = Served::new().await;
    let client = served.client().await;
    let mentions = format!("SELECT title FROM mentions WHERE aid = '{BIG}' AND duration = '1d'");
    let cases = [
        ("SELECT 1", 1),
        ("SELECT count(*) FROM saved_searches; SELECT 2", 2),
        (mentions.as_str(), 1),
        ("SELECT relname FROM pg_class LIMIT 1", 1),
    ];
    assert_eq!(text(&client, "SELECT 1").await, "1");
    for module in ["session::parse", "session::statement"] {
        let counter = EventCounter::of(module);
        let _watched = tracing::subscriber::set_default(counter.clone());
        each_async(cases, async |(sql, expected)| {
            let before = counter.events();
            client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            assert_eq!(counter.events() - before, expected, "{module}: {sql}");
        })
        .await;
    }
}

/// Runs on one thread, on which the events are counted.
#[tokio::test]
async fn each_statement_of_a_text_is_planned_once() {
    let served = Served::new().await;
    let client = served.client().await;
    assert_eq!(text(&client, "SELECT 1").await, "1");
    let plans = EventCounter::of("host::sessions");
    let _watched = tracing::subscriber::set_default(plans.clone());
    let cursor = "BEGIN; DECLARE c CURSOR FOR SELECT aid FROM saved_searches; FETCH 1 FROM c; COMMIT";
    let cases = [
        ("SELECT 1", 1),
        ("SELECT count(*) FROM saved_searches; SELECT 2", 2),
        ("CREATE TABLE kept AS SELECT 1 AS a; SELECT a FROM kept", 2),
        ("SHOW savedsearch.max_requests", 1),
        ("SELECT relname FROM pg_class LIMIT 1", 1),
        (cursor, 1),
        ("BEGIN; COMMIT", 0),
    ];
    each_async(cases, async |(sql, planned)| {
        let before = plans.events();
        client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(plans.events() - before, planned, "{sql}");
    })
    .await;
    // A statement about a table of the session is planned again when it is bound.
    let statement = client.prepare("SELECT count(*) FROM kept").await.unwrap();
    client.batch_execute("DROP TABLE kept; CREATE TABLE kept AS SELECT 3 AS a").await.unwrap();
    let before = plans.events();
    assert_eq!(client.query_one(&statement, &[]).await.unwrap().get::<_, i64>(0), 1);
    assert_eq!(plans.events() - before, 1);
}

/// Runs on one thread, on which the events are counted.
#[tokio::test]
async fn a_prepared_statement_is_planned_once_until_a_setting_or_a_table_changes() {
    let served = Served::new().await;
    let client = served.client().await;
    assert_eq!(text(&client, "SELECT 1").await, "1");
    let plans = EventCounter::of("host::sessions");
    let _watched = tracing::subscriber::set_default(plans.clone());
    let named = client.prepare("SELECT name FROM saved_searches WHERE aid = $1").await.unwrap();
    let run = async |aid: &str| {
        let before = plans.events();
        let rows = client.query(&named, &[&aid]).await.unwrap().len();
        (rows, plans.events() - before)
    };
    assert_eq!(run(BIG).await, (1, 1), "the type of the parameter was open until it was planned");
    assert_eq!([run(BIG).await, run(OTHER).await, run("none").await], [(1, 0), (1, 0), (0, 0)]);
    let cases = [
        "SET savedsearch.max_requests = 77",
        "SET TIME ZONE 'Asia/Tokyo'",
        "RESET savedsearch.max_requests",
        "CREATE TABLE own AS SELECT 1 AS a",
        "DROP TABLE own",
        "CREATE VIEW seen AS SELECT 1 AS a",
        "DISCARD TEMP",
    ];
    each_async(cases, async |change| {
        client.batch_execute(change).await.unwrap_or_else(|error| panic!("{change}: {error:?}"));
        assert_eq!([run(BIG).await, run(BIG).await], [(1, 1), (1, 0)], "after {change}");
    })
    .await;
    // Without parameters, the plan of Parse is that of Bind.
    let listed = client.prepare("SELECT aid FROM saved_searches").await.unwrap();
    let before = plans.events();
    for _ in 0..2 {
        assert!(!client.query(&listed, &[]).await.unwrap().is_empty());
    }
    assert_eq!(plans.events(), before);
    // Functions of catalogs have values in the plan.
    let own = client.prepare("SELECT current_setting('timezone') AS zone, aid FROM saved_searches").await.unwrap();
    let before = plans.events();
    for _ in 0..2 {
        client.query(&own, &[]).await.unwrap();
    }
    assert!(plans.events() - before >= 2);
}

/// The same text, sent anew, is never taken from a plan that was made before.
#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_returns_what_its_text_returns_now() {
    let served = Served::new().await;
    let client = served.client().await;
    client.batch_execute("CREATE VIEW seen AS SELECT 'old' AS a; CREATE TABLE own AS SELECT 'old' AS a").await.unwrap();
    let texts_of = [
        "SELECT extract(epoch FROM timestamptz '2026-05-01 00:00:00')::bigint::text AS t",
        "SELECT a FROM seen",
        "SELECT a FROM own",
        "SELECT min(aid) AS a FROM saved_searches",
    ];
    let mut prepared = Vec::new();
    for sql in texts_of {
        prepared.push(client.prepare(sql).await.unwrap());
    }
    let now = async || {
        let mut found = Vec::new();
        for (statement, sql) in prepared.iter().zip(texts_of) {
            let value: String = client.query_one(statement, &[]).await.unwrap().get(0);
            assert_eq!(value, text(&client, sql).await, "{sql}");
            found.push(value);
        }
        found
    };
    let mut known = vec![now().await];
    for change in [
        "SET TIME ZONE 'Asia/Tokyo'",
        "DROP VIEW seen; CREATE VIEW seen AS SELECT 'new' AS a",
        "DROP TABLE own; CREATE TABLE own AS SELECT 'new' AS a",
    ] {
        client.batch_execute(change).await.unwrap_or_else(|error| panic!("{change}: {error:?}"));
        let found = now().await;
        assert!(!known.contains(&found), "{change} changes a result");
        known.push(found);
    }
    // The instant is that of the execution, in whole seconds.
    let instant = client.prepare("SELECT now() AS at FROM saved_searches LIMIT 1").await.unwrap();
    let first: DateTime<Utc> = client.query_one(&instant, &[]).await.unwrap().get(0);
    sleep(Duration::from_millis(1_100)).await;
    let second: DateTime<Utc> = client.query_one(&instant, &[]).await.unwrap().get(0);
    assert!(second > first, "{first} {second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_arrive_exactly_in_both_formats() {
    let served = Served::new().await;
    let client = served.client().await;
    let sql = "SELECT true, arrow_cast(-7, 'Int16'), 2147483647::int, 9007199254740993, 1.5::real, 0.1::double, \
               arrow_cast(-12.50, 'Decimal128(10, 2)'), 'a b', arrow_cast('ab', 'Binary'), DATE '1999-12-31', \
               TIMESTAMP '2026-05-01T12:00:00.25', arrow_cast('2026-05-01T12:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))'), \
               INTERVAL '1 month 2 days 3 hours', ['x', NULL, 'y z'], [1, 2], named_struct('a', 1), NULL, \
               arrow_cast(18446744073709551615, 'UInt64')";
    let printed = text(&client, sql).await;
    assert_eq!(
        printed,
        "t|-7|2147483647|9007199254740993|1.5|0.1|-12.50|a b|\\x6162|1999-12-31|2026-05-01 12:00:00.25|\
         2026-05-01 12:00:00+00|1 mon 2 days 03:00:00|{x,NULL,\"y z\"}|{1,2}|{\"a\":1}|18446744073709551615"
    );
    let row = client.query_one(sql, &[]).await.unwrap();
    assert!(row.get::<_, bool>(0));
    assert_eq!(
        (row.get::<_, i16>(1), row.get::<_, i32>(2), row.get::<_, i64>(3)),
        (-7, i32::MAX, 9_007_199_254_740_993)
    );
    assert_eq!((row.get::<_, f32>(4), row.get::<_, f64>(5), row.get::<_, &str>(7)), (1.5, 0.1, "a b"));
    assert_eq!(row.get::<_, &[u8]>(8), b"ab");
    assert_eq!(row.get::<_, NaiveDate>(9).to_string(), "1999-12-31");
    assert_eq!(row.get::<_, chrono::NaiveDateTime>(10).to_string(), "2026-05-01 12:00:00.250");
    assert_eq!(row.get::<_, DateTime<Utc>>(11).to_string(), "2026-05-01 12:00:00 UTC");
    assert_eq!(row.get::<_, Vec<Option<String>>>(13), [Some("x".to_owned()), None, Some("y z".to_owned())]);
    assert_eq!(row.get::<_, Vec<i64>>(14), [1, 2]);
    assert_eq!(row.get::<_, Option<&str>>(16), None);
    let types: Vec<&str> = row.columns().iter().map(|column| column.type_().name()).collect();
    let expected = [
        "bool",
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "numeric",
        "text",
        "bytea",
        "date",
        "timestamp",
        "timestamptz",
        "interval",
        "_text",
        "_int8",
        "json",
        "text",
        "numeric",
    ];
    assert_eq!(types, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_have_types_and_reach_the_service() {
    let served = Served::new().await;
    let client = served.client().await;
    let since: DateTime<Utc> = now() - Duration::from_secs(3 * 86_400);
    let sql = "SELECT count(*) FROM mentions WHERE aid = $1 AND published_at >= $2";
    let statement = client.prepare(sql).await.unwrap();
    let types: Vec<&str> = statement.params().iter().map(|known| known.name()).collect();
    assert_eq!(types, ["text", "timestamptz"]);
    let (counted, cost) = served.cost(client.query_one(&statement, &[&BIG, &since])).await;
    let literal =
        format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= '{}'", since.to_rfc3339());
    let (expected, expected_cost) = served.cost(text(&client, &literal)).await;
    assert_eq!((counted.unwrap().get::<_, i64>(0).to_string(), cost), (expected, expected_cost));
    // Several at once, in both orders, on one connection.
    let named = client.prepare("SELECT name FROM saved_searches WHERE aid = $1").await.unwrap();
    let (first, second) = tokio::join!(client.query(&named, &[&BIG]), client.query(&named, &[&OTHER]));
    assert_eq!((first.unwrap().len(), second.unwrap().len()), (1, 1), "a search of two users is one row");
    let limited = client.query("SELECT id FROM mentions WHERE aid = $1 LIMIT $2", &[&BIG, &3_i64]).await.unwrap();
    assert_eq!(limited.len(), 3);
    let error = client.query(&statement, &[&BIG]).await;
    assert!(error.is_err(), "too few parameters");
    let none = client.query_one("SELECT $1::text IS NULL", &[&None::<&str>]).await.unwrap();
    assert!(none.get::<_, bool>(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_postgresql_writes_differently_is_translated() {
    let served = Served::new().await;
    let client = served.client().await;
    each_async([
        ("to_char(timestamptz '2026-05-01 10:00:00Z', 'YYYY-MM-DD HH24:MI')", "2026-05-01 10:00"),
        ("to_timestamp('2026-05-01 10:00:00.25', 'YYYY-MM-DD HH24:MI:SS.US')", "2026-05-01 10:00:00.25+00"),
        ("to_date('01.05.2026', 'DD.MM.YYYY')", "2026-05-01"),
        ("timestamptz '2026-05-01 22:30:00Z' AT TIME ZONE 'Europe/Berlin'", "2026-05-02 00:30:00"),
        ("timestamp '2026-05-02 00:30:00' AT TIME ZONE 'Europe/Berlin'", "2026-05-01 22:30:00+00"),
        (
            "date_trunc('day', timestamptz '2026-05-01 22:30:00Z' AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'Europe/Berlin'",
            "2026-05-01 22:00:00+00",
        ),
        (
            "date_trunc('hour', timestamptz '2026-10-25 00:30:00Z' AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'Europe/Berlin'",
            "2026-10-25 01:00:00+00",
        ),
        ("timestamp '2026-03-29 02:30:00' AT TIME ZONE 'Europe/Berlin'", "2026-03-29 01:30:00+00"),
        ("timestamptz '2026-05-01 22:30:00Z' + INTERVAL '5 minutes' * floor(2.5)", "2026-05-01 22:40:00+00"),
        ("timestamptz '2026-05-01 22:30:00Z' - 2 * interval '1 month'", "2026-03-01 22:30:00+00"),
        ("timestamptz '2026-05-01 22:30:00Z' - interval '1 hour' / 2", "2026-05-01 22:00:00+00"),
    ], async |(sql, expected)| {
        assert_eq!(text(&client, &format!("SELECT {sql}")).await, expected, "{sql}");
    })
    .await;
    // A condition in PostgreSQL's words reaches the service.
    let early = "SELECT count(*) FROM (VALUES (timestamp '2026-05-01 05:59:59'), (timestamp '2026-05-01 06:00:00')) AS v(t) WHERE t::time < $1";
    let six = chrono::NaiveTime::from_hms_opt(6, 0, 0).unwrap();
    assert_eq!(client.query_one(early, &[&six]).await.unwrap().get::<_, i64>(0), 1);
    let since = now() - chrono::TimeDelta::days(3);
    let count = |time: String| format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= {time}");
    let plain = count(format!("'{}'", since.format("%Y-%m-%dT%H:%M:%SZ")));
    let words = format!("TO_TIMESTAMP('{}', 'YYYY-MM-DD HH24:MI:SS.US')", since.format("%Y-%m-%d %H:%M:%S%.6f"));
    let (plain, words) = (served.cost(text(&client, &plain)).await, served.cost(text(&client, &count(words))).await);
    assert_eq!(plain, words);
}

/// Statements of Grafana's macros and Metabase's questions, and the same as a person would write them.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_window_is_a_notice() {
    let served = Served::new().await;
    let (client, mut connection) = served.config().connect(NoTls).await.unwrap();
    let (sender, mut told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notice(notice) = message {
                sender.send((notice.severity().to_owned(), notice.message().to_owned())).unwrap();
            }
        }
    });
    let note = "no time filter: reading the last 7 days; add `published_at >= …` or `duration = '…'` to change this";
    for (statement, expected) in [
        ("SELECT count(*) FROM mentions", Some(note)),
        ("SELECT count(*) FROM mentions WHERE duration = '7d'", None),
        ("SET client_min_messages = warning", None),
        ("SELECT count(*) FROM mentions", None),
    ] {
        client.simple_query(statement).await.unwrap();
        // Notices come before the end of their statement.
        let told = told.try_recv().ok();
        assert_eq!(told, expected.map(|note| ("NOTICE".to_owned(), note.to_owned())), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboards_pay_what_the_plain_statement_costs() {
    let served = Served::new().await;
    let client = served.client().await;
    let (from, to) = (now() - chrono::TimeDelta::days(20), now() - chrono::TimeDelta::days(2));
    let [from, to] = [from, to].map(|at| at.format("%Y-%m-%dT00:00:00Z").to_string());
    let plain = |group: &str| {
        let range = format!("published_at >= '{from}' AND published_at < '{to}'");
        format!("SELECT {group}, count(*) FROM mentions WHERE aid = '{BIG}' AND {range} GROUP BY 1 ORDER BY 1")
    };
    let metabase = |group: &str| {
        format!(
            "-- Metabase:: userID: 1 queryType: MBQL queryHash: 0a1b\n\
             SELECT {group} AS \"grouped\", COUNT(*) AS \"count\" FROM \"v4\".\"mentions\" \
             WHERE (\"v4\".\"mentions\".\"aid\" = '{BIG}') \
             AND \"v4\".\"mentions\".\"published_at\" >= timestamp with time zone '{from}' \
             AND \"v4\".\"mentions\".\"published_at\" < timestamp with time zone '{to}' \
             GROUP BY {group} ORDER BY {group} ASC LIMIT 1048575"
        )
    };
    let grafana = |group: &str| {
        format!(
            "SELECT {group} AS \"time\", count(*) AS \"value\" FROM v4.mentions WHERE aid IN ('{BIG}') \
             AND published_at BETWEEN '{from}' AND timestamptz '{to}' - interval '1 microsecond' GROUP BY time ORDER BY time"
        )
    };
    let column = "\"v4\".\"mentions\".\"published_at\"";
    let berlin = "at time zone 'Europe/Berlin'";
    let grafana_day = "floor(extract(epoch from published_at)/86400)*86400";
    each_async(
        [
            (metabase(&format!("DATE_TRUNC('day', {column})")), plain("date_trunc('day', published_at)")),
            (metabase(&format!("CAST({column} AS date)")), plain("published_at::date")),
            (
                metabase(&format!("DATE_TRUNC('month', ({column}::timestamptz {berlin}))")),
                plain("to_local_time(date_trunc('month', published_at AT TIME ZONE 'Europe/Berlin'))"),
            ),
            (metabase("\"v4\".\"mentions\".\"source\""), plain("source")),
            (grafana(grafana_day), plain("extract(epoch from date_trunc('day', published_at))")),
            (grafana("date_trunc('week', published_at)"), plain("date_trunc('week', published_at)")),
        ],
        async |(asked, plain)| {
            let (rows, cost) = served.cost(texts(&client, &asked)).await;
            let (expected, expected_cost) = served.cost(texts(&client, &plain)).await;
            assert!(!rows.is_empty() && rows == expected, "{asked}\n{rows:?}\n{expected:?}");
            assert_eq!(cost, expected_cost, "{asked}");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_that_is_not_read_requests_no_pages() {
    let spec = CorpusSpec { seed: 7, searches: 1, mentions: 20_000, now: now() };
    let served = Served::over(Arc::new(Corpus::generate(spec)), Settings::default(), |_| {}).await;
    let mut client = served.client().await;
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    let whole = served.cost(texts(&client, &sql)).await.1;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind(&sql, &[]).await.unwrap();
    let few = async {
        let rows = transaction.query_portal(&portal, 5).await.unwrap();
        sleep(Duration::from_millis(500)).await;
        rows.len()
    };
    let (few, cost) = served.cost(few).await;
    // Some pages are read ahead.
    assert!(few == 5 && cost < whole / 3, "{cost} of {whole}");
    let more = transaction.query_portal(&portal, 7).await.unwrap();
    assert_eq!(more.len(), 7);
    let rest = transaction.query_portal(&portal, 0).await.unwrap();
    assert!(rest.len() > 100);
    transaction.commit().await.unwrap();
    // The same with a cursor of SQL.
    let all = texts(&client, &sql).await.len();
    client.batch_execute(&format!("BEGIN; DECLARE c CURSOR FOR {sql}")).await.unwrap();
    assert_eq!(texts(&client, "FETCH 10 FROM c").await.len(), 10);
    assert_eq!(texts(&client, "MOVE 5 FROM c").await.len(), 0);
    assert_eq!(texts(&client, "FETCH ALL FROM c").await.len(), all - 15);
    client.batch_execute("CLOSE c; COMMIT").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_request_or_a_client_that_leaves_ends_the_requests() {
    let delay = Settings { delay: Duration::from_secs(1), ..Settings::default() };
    let served = Served::with(delay, |_| {}).await;
    let client = served.client().await;
    let sql = format!("SELECT * FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    let token = client.cancel_token();
    let (failed, ()) = tokio::join!(client.simple_query(&sql), async {
        served.asks_after(0).await;
        token.cancel_query(NoTls).await.unwrap();
    });
    let error = failed.expect_err("cancelled");
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
    assert_eq!(text(&client, "SELECT 1").await, "1", "the connection goes on");
    let mentions = served.simulator.corpus().search(BIG).unwrap().mentions.len() as u64;
    let quiet = async |before: u64| {
        let sent = settled(|| served.simulator.requests()).await - before;
        assert!(sent < pages(mentions), "{sent} requests for {mentions} mentions");
    };
    quiet(0).await;
    let (left, connection) = served.config().connect(NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let begun = served.simulator.requests();
    let reading = tokio::spawn({
        let sql = sql.clone();
        async move { left.simple_query(&sql).await.map(drop) }
    });
    served.asks_after(begun).await;
    connection.abort();
    reading.abort();
    quiet(begun).await;
    // A limit that the client sets itself.
    client.batch_execute("SET statement_timeout = '150ms'").await.unwrap();
    assert_eq!(code(&client, &sql).await.0, "57014");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_statement_includes_that_of_its_plan() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let values = (0..500).map(|number| format!("'{number}'")).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND source IN ({values})");
    let statement = client.prepare(&sql).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("SET statement_timeout = '1ms'").await.unwrap();
    // The statement is planned; its portal needs an optimized plan, and nothing runs yet.
    let error = transaction.bind(&statement, &[]).await.err().unwrap();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_prove_their_password_and_nothing_tells_who_exists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let [ada, bob] = [scram_verifier("swordfish"), hash_password("opensesame").unwrap()];
    // sha256sum of `a-token`.
    let zoe = "1f6076e3a47ba1ded08025ffe06e57af217c14f9407f33fba50f99b1c7019387";
    let of = |name: &str, key: &str, value: &str| format!("[users.{name}]\n{key} = {value}\n");
    let entries = [
        of("ada", "scram_sha_256", &format!("\"{ada}\"")),
        of("bob", "password_hash", &format!("\"{bob}\"")),
        of("zoe", "token_sha256", &format!("[\"{zoe}\"]")),
    ];
    std::fs::write(&path, entries.concat()).unwrap();
    let served =
        Served::with(Settings::default(), |spec| spec.host.auth = Auth::Users(Users::read(&path).unwrap())).await;
    let log_in = async |user: &str, password: &str| {
        let mut config = served.config();
        config.user(user).password(password);
        served.try_client(&config).await
    };
    for (user, password) in [("ada", "swordfish"), ("bob", "opensesame"), ("zoe", "a-token")] {
        let client = log_in(user, password).await.unwrap();
        assert_eq!(text(&client, "SELECT current_user").await, user);
    }
    let mut told = Vec::new();
    for (user, password) in [("ada", "wrong"), ("bob", "wrong"), ("zoe", "wrong"), ("eve", "wrong"), ("ada", "")] {
        let error = log_in(user, password).await.expect_err(user);
        if let Some(error) = error.as_db_error() {
            told.push((error.severity().to_owned(), error.code().clone(), error.message().to_owned()));
        }
    }
    assert!(told.len() >= 3 && told.iter().all(|one| *one == told[0]), "{told:?}");
    assert_eq!(told[0].1, SqlState::INVALID_PASSWORD);
    assert_eq!(served.simulator.requests(), 0);
    std::fs::write(&path, "[users.ada]\nscram_sha_256 = \"SCRAM-SHA-256$1:x$y\"\n").unwrap();
    let error = Users::read(&path).expect_err("not a verifier").to_string();
    assert!(error.contains("`postgres::scram_verifier`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_is_logged_out_is_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let [before, after] = ["swordfish", "opensesame"].map(scram_verifier);
    let one = |name: &str, verifier: &str| format!("[users.{name}]\nscram_sha_256 = \"{verifier}\"\n");
    std::fs::write(&path, ["ada", "bob", "eve", "zoe"].map(|name| one(name, &before)).concat()).unwrap();
    let delay = Settings { delay: Duration::from_secs(1), ..Settings::default() };
    let served = Served::with(delay, |spec| spec.host.auth = Auth::Users(Users::read(&path).unwrap())).await;
    let open = async |user: &str| {
        let mut config = served.config();
        config.user(user).password("swordfish");
        let (client, connection) = config.connect(NoTls).await.unwrap();
        (client, tokio::spawn(connection))
    };
    let [(_ada, ada), (bob, _bob), (_eve, eve), (zoe, _zoe)] =
        [open("ada").await, open("bob").await, open("eve").await, open("zoe").await];
    let sql = format!("SELECT * FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    let (running, ()) = tokio::join!(code(&zoe, &sql), async {
        served.asks_after(0).await;
        // The password of one is another, two are gone.
        std::fs::write(&path, [one("ada", &after), one("bob", &before)].concat()).unwrap();
        served.postgres.reload().run(None).await.unwrap();
    });
    let mut told = vec![running];
    for connection in [ada, eve] {
        let error = connection.await.unwrap().expect_err("closed");
        let error = error.as_db_error().unwrap_or_else(|| panic!("{error}"));
        told.push((error.code().code().to_owned(), error.message().to_owned()));
    }
    let expected = ("28000".to_owned(), "logged out: the users file has changed; connect again".to_owned());
    assert_eq!(told, vec![expected; 3]);
    assert_eq!(text(&bob, "SELECT 1").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_told_that_it_was_idle() {
    let served = Served::with(Settings::default(), |spec| spec.host.limits.session_idle_seconds = 1).await;
    let (_client, connection) = served.config().connect(NoTls).await.unwrap();
    let error = connection.await.expect_err("closed");
    let error = error.as_db_error().unwrap_or_else(|| panic!("{error}"));
    assert_eq!((error.code().code(), error.severity()), ("57P05", "FATAL"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_the_key_if_keys_are_passed_through() {
    let clock = Clock::fixed(now());
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), ..Settings::default() });
    let service = Arc::new(InProcess(simulator, HttpLimits::default()));
    let keys = PassThrough::new(move |key| {
        let builder = Connection::builder("http://passed.test/v4", key).profile(Profile::v4());
        builder.service(Arc::clone(&service) as _).clock(clock.clone()).build()
    });
    let mut spec = open(Upstream::PassThrough(keys));
    spec.host.auth = Auth::PassThrough;
    let flight = FlightServer::start(spec).await.unwrap();
    let postgres = listen(&flight).await;
    let log_in = async |password: &str| {
        let mut config = Config::new();
        config.host("127.0.0.1").port(postgres.address().port()).user("any").dbname("savedsearch").password(password);
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    };
    let own = log_in(KEY).await;
    assert!(!texts(&own, "SELECT aid FROM saved_searches").await.is_empty());
    let other = log_in("not-a-key").await;
    let (sqlstate, message) = code(&other, "SELECT aid FROM saved_searches").await;
    assert_eq!(sqlstate, "28000");
    assert!(!message.contains("not-a-key"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_codes_and_transactions_a_status() {
    let served = Served::new().await;
    let client = served.client().await;
    each_async(
        [
            ("SELEC 1", "42601"),
            ("SELECT nope FROM mentions", "42703"),
            ("SELECT * FROM nope", "42P01"),
            ("INSERT INTO mentions VALUES (1)", "0A000"),
            ("COPY mentions FROM STDIN", "0A000"),
            ("SET nothing = 1", "42704"),
            ("SET client_encoding = 'LATIN1'", "22023"),
            ("SET datafusion.execution.target_partitions = '64'", "42704"),
            ("SELECT $1", "42P02"),
            ("DEALLOCATE nope", "26000"),
            ("FETCH 1 FROM nope", "34000"),
            ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
            ("LISTEN x", "0A000"),
        ],
        async |(sql, expected)| {
            assert_eq!(code(&client, sql).await.0, expected, "{sql}");
        },
    )
    .await;
    client.batch_execute("BEGIN").await.unwrap();
    code(&client, "SELECT nope FROM mentions").await;
    assert_eq!(code(&client, "SELECT 1").await.0, "25P02");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(text(&client, "SELECT 1; SELECT 2").await, "1|2");
    client.batch_execute("; ;-- nothing\n").await.unwrap();
    // What follows an error in one message is not run.
    let (before, _) = (served.simulator.requests(), code(&client, "SELECT nope; SELECT * FROM mentions").await);
    assert_eq!(served.simulator.requests(), before);
    client.batch_execute("SET savedsearch.max_requests = '1'").await.unwrap();
    assert_eq!(
        code(&client, &format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '365d'")).await.0,
        "53400"
    );
    client.batch_execute("RESET savedsearch.max_requests").await.unwrap();
    client.batch_execute("CREATE VIEW few AS SELECT aid FROM saved_searches; DROP VIEW few").await.unwrap();
    assert_eq!(text(&client, "SHOW server_encoding").await, "UTF8");
    client.batch_execute("SET TIME ZONE 'Europe/Berlin'").await.unwrap();
    assert_eq!(text(&client, "SHOW timezone").await, "Europe/Berlin");
    client.batch_execute("DISCARD ALL").await.unwrap();
    assert_eq!(text(&client, "SHOW timezone").await, "UTC");
    let mut config = served.config();
    config.dbname("elsewhere");
    let error = served.try_client(&config).await.expect_err("unknown database");
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_DATABASE));
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_have_three_formats() {
    let served = Served::new().await;
    let client = served.client().await;
    let copy = async |sql: &str| {
        let parts: Vec<bytes::Bytes> = client.copy_out(sql).await.unwrap().try_collect().await.unwrap();
        parts.concat()
    };
    let rows = "SELECT * FROM (VALUES (1, 'a'), (2, NULL), (3, 'x\ty\"z'), (4, '')) AS t(n, s) ORDER BY n";
    let text = copy(&format!("COPY ({rows}) TO STDOUT")).await;
    assert_eq!(String::from_utf8(text).unwrap(), "1\ta\n2\t\\N\n3\tx\\ty\"z\n4\t\n");
    let csv = copy(&format!("COPY ({rows}) TO STDOUT WITH (FORMAT csv, HEADER)")).await;
    assert_eq!(String::from_utf8(csv).unwrap(), "n,s\n1,a\n2,\n3,\"x\ty\"\"z\"\n4,\"\"\n");
    let quoted = copy("COPY (SELECT 1 AS \"a\"\"b\") TO STDOUT").await;
    assert_eq!(String::from_utf8(quoted).unwrap(), "1\n");
    let quoted = copy("COPY (SELECT 'é''' AS \"a\"\"b\", '\\' AS c) TO STDOUT (FORMAT csv, HEADER)").await;
    assert_eq!(String::from_utf8(quoted).unwrap(), "\"a\"\"b\",c\né',\\\n");
    let binary = copy("COPY (SELECT 258 AS n) TO STDOUT (FORMAT binary)").await;
    let expected =
        [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".as_slice(), &[0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2, 255, 255]];
    assert_eq!(binary, expected.concat());
    // DuckDB reads tables in this way, and sends only some of its conditions.
    for unbounded in [
        "COPY (SELECT \"published_at\" FROM v4.mentions) TO STDOUT (FORMAT \"binary\")",
        "COPY mentions TO STDOUT (FORMAT binary)",
    ] {
        let refused = served.cost(async { message_of(client.copy_out(unbounded).await.map(drop)) }).await;
        assert!(refused.0.contains("no condition on published_at arrived") && refused.1 == 0, "{refused:?}");
    }
    let (copied, cost) = served
        .cost(copy(&format!("COPY (SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '365d') TO STDOUT")))
        .await;
    let (selected, cost_selected) = served
        .cost(texts(&client, &format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '365d'")))
        .await;
    assert_eq!((copied.iter().filter(|byte| **byte == b'\n').count(), cost), (selected.len(), cost_selected));
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogs_answer_what_clients_ask_without_a_request() {
    let served = Served::new().await;
    let client = served.client().await;
    let asked = async {
        for sql in include_str!("catalogs.sql").split("\n;;\n").filter(|sql| !sql.trim().is_empty()) {
            // Drivers ask in the extended protocol too.
            client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {:?}", error.as_db_error()));
            let statement =
                client.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {:?}", error.as_db_error()));
            assert!(!statement.columns().is_empty(), "{sql}");
        }
        let tables = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                      WHERE n.nspname = 'v4' AND c.relkind = 'r' ORDER BY 1";
        assert_eq!(text(&client, tables).await, "breakdowns|mentions|overview|recent_searches|saved_searches|volume");
        let key = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'mentions'::regclass";
        assert_eq!(text(&client, key).await, "PRIMARY KEY (aid, id)");
        // As psqlODBC asks: items of vectors are counted from 0.
        let columns = "SELECT ta.attname FROM pg_attribute ta, pg_attribute ia, pg_index i \
                       WHERE i.indrelid = 'mentions'::regclass AND i.indisprimary = 't' AND ia.attrelid = i.indexrelid \
                       AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum-1] ORDER BY ia.attnum";
        assert_eq!(text(&client, columns).await, "aid|id");
        let keys = "SELECT indkey, indclass FROM pg_index WHERE indrelid = 'mentions'::regclass";
        let keys = client.prepare(keys).await.expect("a statement");
        assert_eq!([keys.columns()[0].type_().name(), keys.columns()[1].type_().name()], ["int2vector", "oidvector"]);
        let key = "SELECT indkey FROM pg_index WHERE indrelid = 'mentions'::regclass";
        assert_eq!(text(&client, key).await, "1 2");
        let column = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute \
                      WHERE attrelid = 'v4.mentions'::regclass AND attname = 'published_at'";
        assert_eq!(text(&client, column).await, "timestamp with time zone");
        let types =
            "SELECT data_type FROM information_schema.columns WHERE table_name = 'mentions' AND column_name = 'tags'";
        assert_eq!(text(&client, types).await, "ARRAY");
        assert!(text(&client, "SELECT version()").await.starts_with("PostgreSQL 15.0 (savedsearch "));
        assert_eq!(
            text(&client, "SELECT current_database(), current_schema, current_user").await,
            "savedsearch|v4|ada"
        );
        client.batch_execute("CREATE VIEW mine AS SELECT aid FROM saved_searches").await.unwrap();
        assert_eq!(text(&client, "SELECT viewname FROM pg_views WHERE schemaname = 'v4'").await, "mine");
    };
    assert_eq!(served.cost(asked).await.1, 0);
    // Views of one session are not those of another.
    let other = served.client().await;
    assert_eq!(text(&other, "SELECT viewname FROM pg_views WHERE schemaname = 'v4'").await, "");
}

/// Sends bytes and returns what is answered until it has the expected text, or the server closes the connection. If no text is
/// expected, the server may also be silent.
async fn raw(served: &Served, bytes: &[u8], expected: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(served.postgres.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let goes_on = |answer: &[u8]| expected.is_empty() || !String::from_utf8_lossy(answer).contains(expected);
    let read = async { while goes_on(&answer) && stream.read_buf(&mut answer).await.is_ok_and(|read| read > 0) {} };
    let _ = timeout(if expected.is_empty() { Duration::from_millis(500) } else { LONGEST }, read).await;
    answer
}

fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let body: Vec<u8> = parameters
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat())
        .collect();
    let length = u32::try_from(body.len() + 9).unwrap();
    [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes(), &body, b"\0"].concat()
}

fn message(kind: u8, length: i32, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_are_refused_and_the_server_goes_on() {
    let served = Served::new().await;
    let begin = startup(&[("user", "ada")]);
    let shown = |answer: &[u8]| String::from_utf8_lossy(answer).into_owned();
    each_async(
        [
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), ""),
            (vec![0, 0, 0, 8, 0, 2, 0, 0], "0A000"),
            (vec![0xff; 64], ""),
            (vec![0, 0, 0, 4, 0, 3, 0, 0], "08P01"),
            (startup(&[]), "28000"),
            (startup(&[("user", "ada"), ("replication", "true")]), "0A000"),
            ([begin.clone(), message(b'Q', 3, b"")].concat(), "08P01"),
            ([begin.clone(), message(b'Q', -1, b"")].concat(), "08P01"),
            ([begin.clone(), message(b'Q', i32::MAX, b"")].concat(), "54000"),
            ([begin.clone(), message(b'Q', 8, b"abcd")].concat(), "08P01"),
            ([begin.clone(), message(b'Q', 7, b"\xff\xfe\0")].concat(), "22021"),
            ([begin.clone(), message(b'P', 8, b"\0\0\xff\xff")].concat(), "08P01"),
            ([begin.clone(), message(b'B', 14, b"\0\0\0\0\0\x01\x7f\xff\xff\xff")].concat(), "08P01"),
            ([begin.clone(), message(b'B', 12, b"\0\0\0\0\xff\xff\0\0")].concat(), "08P01"),
            ([begin.clone(), message(b'E', 5, b"\0")].concat(), "08P01"),
            ([begin.clone(), message(b'D', 6, b"X\0")].concat(), "08P01"),
            ([begin.clone(), message(b'?', 4, b"")].concat(), "08P01"),
            ([begin.clone(), message(b'p', 5, b"\0")].concat(), "08P01"),
            // A limit of rows that no memory could hold.
            ([begin.clone(), message(b'E', 9, b"\0\x7f\xff\xff\xff"), message(b'S', 4, b"")].concat(), "34000"),
        ],
        async |(bytes, expected)| {
            let answer = shown(&raw(&served, &bytes, expected).await);
            assert!(answer.contains(expected), "{bytes:?}: {answer:?}");
        },
    )
    .await;
    // Without TLS it says so, and a client may go on; bytes behind the request are not taken for encrypted ones.
    let request = [&[0, 0, 0, 8, 4, 210, 22, 47][..], &begin].concat();
    let refused = raw(&served, &request, "server_version").await;
    assert_eq!(refused.first(), Some(&b'N'));
    assert!(shown(&refused).contains("server_version"));
    // Keys of nobody cancel nothing.
    let cancel = [&[0, 0, 0, 16, 4, 210, 22, 46][..], &[1; 8]].concat();
    assert_eq!(raw(&served, &cancel, "").await, b"");
    assert_eq!(text(&served.client().await, "SELECT 1").await, "1");
}

/// The response of `/healthz`; an error if nothing listens.
async fn health(operations: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(operations).await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    let mut told = String::new();
    stream.read_to_string(&mut told).await?;
    Ok(told)
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_until_the_last_front_has_ended() {
    let delay = Settings { delay: Duration::from_secs(1), ..Settings::default() };
    let served = Served::with(delay, |spec| spec.host.operations = Some("127.0.0.1:0".parse().unwrap())).await;
    let client = served.client().await;
    let operations = served.flight.operations().unwrap();
    let Served { flight, postgres, simulator, .. } = served;
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    let reading = tokio::spawn(async move { texts(&client, &sql).await.len() });
    while simulator.requests() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let ending = tokio::spawn(flight.shut_down_with(postgres.shut_down()));
    // Flight SQL has nothing to wait for.
    let told = loop {
        let told = health(operations).await;
        if reading.is_finished() || !told.as_ref().is_ok_and(|told| told.starts_with("HTTP/1.1 200")) {
            break told;
        }
        sleep(Duration::from_millis(10)).await;
    };
    assert!(!reading.is_finished(), "the query has ended too early for this test");
    assert!(told.as_ref().is_ok_and(|told| told.starts_with("HTTP/1.1 503")), "{told:?}");
    assert!(reading.await.unwrap() > 100);
    ending.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_served_without_flight_sql() {
    let clock = Clock::fixed(now());
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), ..Settings::default() });
    let connection = connect(&simulator, clock, Profile::v4());
    let mut host = HostSpec::new(Auth::None, Upstream::Own { connection, named: Vec::new() });
    host.operations = Some("127.0.0.1:0".parse().unwrap());
    let spec = PostgresSpec { listen: "127.0.0.1:0".parse().unwrap(), tls: None, insecure: false };
    let server = serve(spec, host).await.unwrap();
    let mut config = Config::new();
    config.host("127.0.0.1").port(server.address().port()).user("me").dbname("savedsearch");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(text(&client, "SELECT count(*) > 0 FROM saved_searches").await, "t");
    assert!(simulator.requests() > 0);
    let operations = server.operations().unwrap();
    let told = health(operations).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200") && told.ends_with("ok\n"), "{told}");
    server.shut_down().await;
    assert!(client.simple_query("SELECT 1").await.is_err(), "an idle connection is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once_and_a_shutdown_that_waits_for_them() {
    let delay = Settings { delay: Duration::from_millis(20), ..Settings::default() };
    let served = Served::with(delay, |_| {}).await;
    let one = async || {
        let client = served.client().await;
        let sql = format!("SELECT id FROM mentions WHERE aid = '{OTHER}' LIMIT 20");
        texts(&client, &sql).await.len()
    };
    let all = join_all((0..200).map(|_| one())).await;
    assert!(all.iter().all(|count| *count == all[0]), "{all:?}");
    let client = served.client().await;
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    let idle = served.client().await;
    // Pages beyond the limits of the others may be on their way.
    let begun = settled(|| served.simulator.requests()).await;
    let Served { flight, postgres, simulator, .. } = served;
    let (rows, ()) = tokio::join!(texts(&client, &sql), async {
        while simulator.requests() == begun {
            sleep(Duration::from_millis(10)).await;
        }
        tokio::join!(postgres.shut_down(), async { flight.shut_down().await.unwrap() });
    });
    assert!(rows.len() > 100);
    let error = idle.simple_query("SELECT 1").await.expect_err("closed");
    assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
}
