//! The Flight SQL server with a real client: the same results at the same cost as the library, and driver metadata.

pub(crate) mod access;
mod bombs;
mod bounded;
mod ends;
mod grammar;
mod hostile;
mod load;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UnionArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, UnionFields};
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    Any, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys,
    CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables,
    CommandGetXdbcTypeInfo, CommandStatementIngest, CommandStatementQuery, ProstMessageExt,
};
use arrow_flight::{FlightDescriptor, FlightInfo, IpcMessage};
use datafusion_saved_search::flight::{FlightServer, ServerSpec};
use datafusion_saved_search::host::{Auth, HostSpec, Upstream};
use datafusion_saved_search::simulator::{Corpus, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Profile, session};
use futures::TryStreamExt;
use prost::Message;
use tonic::Status;
use tonic::transport::Channel;

use crate::queries::{self, NOW};
use crate::support::{BIG, connect, corpus, each_async, now, rows};

pub(crate) type Client = FlightSqlServiceClient<Channel>;

/// An in-process server over a simulator.
pub(crate) struct Served {
    pub(crate) simulator: Simulator,
    pub(crate) connection: Arc<Connection>,
    pub(crate) server: FlightServer,
}

/// Settings of a loopback server without authentication.
pub(crate) fn open(upstream: Upstream) -> ServerSpec {
    ServerSpec {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        insecure: false,
        host: HostSpec::new(Auth::None, upstream),
    }
}

impl Served {
    pub(crate) async fn new() -> Self {
        Self::with(corpus(), Settings::default(), |_| {}).await
    }

    pub(crate) async fn with(corpus: Arc<Corpus>, settings: Settings, change: impl FnOnce(&mut ServerSpec)) -> Self {
        let clock = Clock::fixed(now());
        let simulator = Simulator::new(corpus, Settings { clock: clock.clone(), ..settings });
        let connection = connect(&simulator, clock, Profile::v4());
        let mut spec = open(Upstream::Own { connection: Arc::clone(&connection), named: Vec::new() });
        change(&mut spec);
        let server = FlightServer::start(spec).await.unwrap();
        Self { simulator, connection, server }
    }

    /// Starts a server over a service with the given response delay.
    pub(crate) async fn slow(delay: Duration, change: impl FnOnce(&mut ServerSpec)) -> Self {
        Self::with(corpus(), Settings { delay, ..Settings::default() }, change).await
    }

    pub(crate) async fn channel(&self) -> Channel {
        let address = format!("http://{}", self.server.address());
        Channel::from_shared(address).unwrap().connect().await.unwrap()
    }

    /// Connects a new client.
    pub(crate) async fn client(&self) -> Client {
        Client::new(self.channel().await)
    }

    /// Returns the output of a future and the number of requests that it caused.
    pub(crate) async fn cost<T>(&self, done: impl Future<Output = T>) -> (T, u64) {
        let before = self.simulator.requests();
        let done = done.await;
        (done, self.simulator.requests() - before)
    }
}

/// Returns the status of a failed call.
pub(crate) fn status(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => panic!("not a gRPC status: {other}"),
    }
}

pub(crate) async fn fetch(client: &mut Client, info: &FlightInfo) -> Result<Vec<RecordBatch>, Status> {
    let mut batches = Vec::new();
    for endpoint in &info.endpoint {
        let stream = client.do_get(endpoint.ticket.clone().unwrap()).await.map_err(status)?;
        batches.extend(stream.try_collect::<Vec<_>>().await.map_err(status)?);
    }
    Ok(batches)
}

pub(crate) async fn try_rows(client: &mut Client, sql: &str) -> Result<Vec<Vec<String>>, Status> {
    let info = client.execute(sql.to_owned(), None).await.map_err(status)?;
    Ok(rows(&fetch(client, &info).await?))
}

pub(crate) async fn all_rows(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    try_rows(client, sql).await.unwrap_or_else(|status| panic!("{sql}: {status}"))
}

pub(crate) async fn refusal(client: &mut Client, sql: &str) -> Status {
    try_rows(client, sql).await.expect_err(sql)
}

/// Fetches the rows of a metadata command.
pub(crate) async fn told(client: &mut Client, command: impl ProstMessageExt) -> RecordBatch {
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let info = client.inner_mut().get_flight_info(descriptor.clone()).await.unwrap().into_inner();
    let schema = client.inner_mut().get_schema(descriptor).await.unwrap().into_inner();
    assert_eq!(schema.schema, info.schema);
    let batches = fetch(client, &info).await.unwrap();
    let schema = Schema::try_from(IpcMessage(info.schema)).unwrap();
    assert!(batches.iter().all(|batch| batch.schema().as_ref() == &schema));
    batches.into_iter().next().unwrap_or_else(|| RecordBatch::new_empty(Arc::new(schema)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_the_rows_that_the_library_gives_at_the_same_cost() {
    let corpus = queries::corpus();
    let settings = Settings { clock: Clock::fixed(NOW.parse().unwrap()), ..Settings::default() };
    let simulator = Simulator::new(corpus, settings.clone());
    let connection = connect(&simulator, settings.clock, Profile::v4());
    let upstream = Upstream::Own { connection: Arc::clone(&connection), named: Vec::new() };
    let server = FlightServer::start(open(upstream)).await.unwrap();
    let served = Served { simulator, connection, server };
    let mut client = served.client().await;
    let context = session(&served.connection).unwrap();
    for query in queries::queries(served.simulator.corpus(), NOW.parse().unwrap()) {
        let own = async { rows(&context.sql(&query.sql).await.unwrap().collect().await.unwrap()) };
        let (own, cost) = served.cost(own).await;
        let (got, cost_served) = served.cost(all_rows(&mut client, &query.sql)).await;
        assert!(query.rows.are(&got), "{}: {got:?}", query.sql);
        assert_eq!((got.len(), cost_served), (own.len(), cost), "{}", query.sql);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tools_ask_before_a_query_costs_nothing() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let any_table = || CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: None,
        table_types: Vec::new(),
        include_schema: true,
    };
    let asked = async {
        assert_eq!(rows(&[told(&mut client, CommandGetCatalogs {}).await]), [["savedsearch"]]);
        let schemas = CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: Some("v%".into()) };
        assert_eq!(rows(&[told(&mut client, schemas).await]), [["savedsearch", "v4"]]);
        assert_eq!(
            rows(&[told(&mut client, CommandGetTableTypes {}).await]).concat(),
            ["LOCAL TEMPORARY", "TABLE", "VIEW"]
        );

        // The names that tools use for table types.
        for types in [vec!["TABLE"], vec!["base table"], vec!["table", "LOCAL TEMPORARY"]] {
            let types = types.into_iter().map(str::to_owned).collect();
            let tables = told(&mut client, CommandGetTables { table_types: types, ..any_table() }).await;
            let names: Vec<String> = rows(&[tables]).into_iter().map(|row| row[2].clone()).collect();
            assert_eq!(names, ["breakdowns", "mentions", "overview", "recent_searches", "saved_searches", "volume"]);
        }
        let all = told(&mut client, any_table()).await;
        assert_eq!(all.num_rows(), 11);
        let nobody = CommandGetTables { catalog: Some("other".into()), ..any_table() };
        assert_eq!(told(&mut client, nobody).await.num_rows(), 0);
        let one = CommandGetTables { table_name_filter_pattern: Some("men_ions".into()), ..any_table() };
        let one = told(&mut client, one).await;
        let binary = one.column(4).as_any().downcast_ref::<arrow::array::BinaryArray>().unwrap();
        let schema = Schema::try_from(IpcMessage(binary.value(0).to_vec().into())).unwrap();
        assert_eq!(schema.field(1).name(), "id");

        let key = |table: &str| CommandGetPrimaryKeys { catalog: None, db_schema: None, table: table.into() };
        let columns = |batch: RecordBatch| rows(&[batch]).into_iter().map(|row| row[3].clone()).collect::<Vec<_>>();
        assert_eq!(columns(told(&mut client, key("mentions")).await), ["aid", "id"]);
        assert_eq!(columns(told(&mut client, key("nothing")).await), [""; 0]);
        let (catalog, db_schema, table) = (None, None, "mentions".to_owned());
        let imported = CommandGetImportedKeys { catalog: None, db_schema: None, table: table.clone() };
        assert_eq!(told(&mut client, imported).await.num_columns(), 13);
        told(&mut client, CommandGetExportedKeys { catalog, db_schema, table }).await;
        told(&mut client, CommandGetCrossReference::default()).await;
        assert!(told(&mut client, CommandGetSqlInfo { info: Vec::new() }).await.num_rows() > 80);
        told(&mut client, CommandGetXdbcTypeInfo { data_type: None }).await;

        let cases = [
            "SELECT * FROM mentions LIMIT 0",
            "SELECT * FROM (SELECT * FROM mentions) AS probe WHERE 1=0",
            "SELECT * FROM overview WHERE false",
            "SELECT table_name FROM information_schema.tables",
            "SELECT 1",
            "SHOW TABLES",
            "EXPLAIN SELECT count(*) FROM mentions",
        ];
        each_async(cases, async |sql| {
            let info = client.execute(sql.to_owned(), None).await.unwrap();
            let schema = Schema::try_from(IpcMessage(info.schema.clone())).unwrap();
            assert!(!schema.fields().is_empty(), "{sql}");
            fetch(&mut client, &info).await.unwrap();
            client.prepare(sql.to_owned(), None).await.unwrap();
        })
        .await;
        // A query is planned, not run.
        client.execute(format!("SELECT * FROM mentions WHERE aid = '{BIG}'"), None).await.unwrap();
        client.prepare("SELECT * FROM mentions".to_owned(), None).await.unwrap();
    };
    assert_eq!(served.cost(asked).await.1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_info_of_a_query_has_the_notes_that_are_known_before_it_runs() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let cases = [
        ("SELECT 1".to_owned(), None),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '7d'"), None),
        (
            format!("SELECT id FROM mentions WHERE aid = '{BIG}'"),
            Some(serde_json::json!({ "default_window": "7d", "notes": [] })),
        ),
        (
            format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at = '2026-06-20'"),
            Some(serde_json::json!({
                "default_window": null,
                "notes": [
                    "the conditions on published_at leave one instant, midnight of 2026-06-20; for the whole day, use \
                     published_at::date = '2026-06-20'"
                ],
            })),
        ),
    ];
    let asked = each_async(cases, async |(sql, notes)| {
        let info = client.execute(sql, None).await.unwrap();
        let metadata = (!info.app_metadata.is_empty())
            .then(|| serde_json::from_slice::<serde_json::Value>(&info.app_metadata).unwrap());
        assert_eq!(metadata, notes);
    });
    assert_eq!(served.cost(asked).await.1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_tables_begin_with_those_of_the_service() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let rows = all_rows(&mut client, "SHOW TABLES").await;
    let names: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(names[..3], ["breakdowns", "mentions", "overview"]);
    assert_eq!(rows.last().unwrap()[1], "information_schema");
    let rows = all_rows(&mut client, "SHOW TABLES FROM v4 LIKE 'm%'").await;
    assert_eq!(rows.iter().map(|row| row[2].as_str()).collect::<Vec<_>>(), ["mentions"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_the_same_wherever_it_is_told() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let cases = [
        format!("SELECT * FROM mentions WHERE aid = '{BIG}' LIMIT 3"),
        format!(
            "SELECT source, count(*), max(published_at), NULL AS nothing FROM mentions WHERE aid = '{BIG}' GROUP BY 1"
        ),
        "SELECT arrow_cast(name, 'Utf8View') AS view, arrow_cast(name, 'Dictionary(Int32, Utf8)') AS dictionary, \
         arrow_cast([1], 'LargeList(Int64)') AS list FROM saved_searches"
            .to_owned(),
        "EXPLAIN SELECT 1".to_owned(),
        "SELECT 1 WHERE false".to_owned(),
    ];
    each_async(cases, async |sql| {
        let command = CommandStatementQuery { query: sql.clone(), transaction_id: None };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let told = client.inner_mut().get_schema(descriptor.clone()).await.unwrap().into_inner().schema;
        let info = client.inner_mut().get_flight_info(descriptor.clone()).await.unwrap().into_inner();
        let poll = client.inner_mut().poll_flight_info(descriptor).await.unwrap().into_inner();
        assert!(poll.flight_descriptor.is_none(), "the poll is complete");
        assert_eq!((&told, &poll.info.unwrap().schema), (&info.schema, &info.schema), "{sql}");
        assert_eq!(info.endpoint.len(), 1);
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let text = String::from_utf8_lossy(&ticket.ticket).into_owned();
        assert!(!text.to_uppercase().contains("SELECT"), "the ticket contains SQL: {text}");
        let first = client.inner_mut().do_get(ticket).await.unwrap().into_inner().message().await.unwrap().unwrap();
        // The same message without its length prefix.
        let inside = info.schema.windows(first.data_header.len()).any(|part| part == first.data_header);
        assert!(inside, "{sql}");
        let schema = Schema::try_from(IpcMessage(info.schema)).unwrap();
        let shown = format!("{schema:?}");
        assert!(!["View", "Large", "Dictionary"].iter().any(|word| shown.contains(word)), "{shown}");
        let prepared = client.prepare(sql, None).await.unwrap();
        assert_eq!(prepared.dataset_schema().unwrap(), &schema);
    })
    .await;
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_bound_by_position_whatever_they_are_called() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let sql = "SELECT ? AS a, count(*) AS n FROM mentions WHERE aid = ? AND published_at >= ? AND reach > ? LIMIT ?";
    let prepared = client.prepare(sql.to_owned(), None).await.unwrap();
    let told = prepared.parameter_schema().unwrap();
    let types: Vec<String> = told.fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(types[..2], ["Utf8", "Utf8"]);
    assert!(types[2].starts_with("Timestamp") && types[3..] == ["Int64", "Int64"], "{types:?}");
    assert!(told.fields().iter().all(|field| field.is_nullable()));
    let names: Vec<&str> =
        prepared.dataset_schema().unwrap().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["a", "n"]);

    // The same statement twice with different values, including a NULL.
    let mut prepared = client.prepare("SELECT $2 AS who, $1 AS n, upper($2) AS loud".to_owned(), None).await.unwrap();
    for (number, who, expected) in [(7, Some("ada"), ["ada", "7", "ADA"]), (8, None, ["NULL", "8", "NULL"])] {
        let columns = [("whatever", Arc::new(Int64Array::from(vec![number])) as ArrayRef), ("param_0", texts(&[who]))];
        prepared.set_parameters(RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        let info = prepared.execute().await.unwrap();
        let batches = fetch(&mut client, &info).await.unwrap();
        assert_eq!(rows(&batches), [expected]);
        assert_eq!(Schema::try_from(IpcMessage(info.schema)).unwrap(), *batches[0].schema());
    }

    // Several sets: their rows in sequence.
    let sql = "SELECT aid, count(*) AS n FROM mentions WHERE aid = ? GROUP BY aid";
    let mut prepared = client.prepare(sql.to_owned(), None).await.unwrap();
    let sets = RecordBatch::try_from_iter([("0", texts(&[Some("184889"), Some(BIG), Some("186006")]))]).unwrap();
    prepared.set_parameters(sets).unwrap();
    let info = prepared.execute().await.unwrap();
    let found: Vec<String> =
        rows(&fetch(&mut client, &info).await.unwrap()).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(found, ["184889", BIG, "186006"]);

    // In a dense union, as some drivers send them.
    let union =
        UnionFields::try_new([0, 1], [Field::new("s", DataType::Utf8, true), Field::new("i", DataType::Int32, true)])
            .unwrap();
    let children: Vec<ArrayRef> = vec![texts(&[Some(BIG)]), Arc::new(Int32Array::from(vec![1]))];
    let union = |kind: i8| -> ArrayRef {
        let (kinds, offsets) = (ScalarBuffer::from(vec![kind]), ScalarBuffer::from(vec![0]));
        Arc::new(UnionArray::try_new(union.clone(), kinds, Some(offsets), children.clone()).unwrap())
    };
    let mut prepared =
        client.prepare("SELECT aid FROM mentions WHERE aid = $1 LIMIT $2".to_owned(), None).await.unwrap();
    let set = [("param_0", union(0)), ("param_1", union(1))];
    prepared.set_parameters(RecordBatch::try_from_iter(set).unwrap()).unwrap();
    let info = prepared.execute().await.unwrap();
    assert_eq!(rows(&fetch(&mut client, &info).await.unwrap()), [[BIG]]);

    // Too few, and too many.
    let mut prepared = client.prepare("SELECT $1 + 1".to_owned(), None).await.unwrap();
    let refused = status(prepared.execute().await.unwrap_err());
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().contains("expected 1, got 0"), "{refused}");
    prepared
        .set_parameters(RecordBatch::try_from_iter([("a", texts(&[None])), ("b", texts(&[None]))]).unwrap())
        .unwrap();
    assert!(status(prepared.execute().await.unwrap_err()).message().contains("got 2"));
    for wrong in ["SELECT $2", "SELECT $x", "SELECT ?, $1"] {
        let refused = client.prepare(wrong.to_owned(), None).await.unwrap_err();
        assert!(refused.to_string().contains("parameters must be"), "{wrong}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_follows_its_values_and_its_views() {
    let served = Served::new().await;
    let mut client = served.client().await;
    all_rows(&mut client, "CREATE VIEW seen AS SELECT 'old' AS a, aid FROM saved_searches").await;
    let sql = "SELECT a, $1 AS b FROM seen LIMIT 1";
    let mut prepared = client.prepare(sql.to_owned(), None).await.unwrap();
    let sets: [(ArrayRef, &str); 2] = [(Arc::new(Int64Array::from(vec![7])), "7"), (texts(&[Some("x")]), "x")];
    for (set, shown) in &sets {
        let b = RecordBatch::try_from_iter([("b", Arc::clone(set))]).unwrap();
        for _ in 0..2 {
            prepared.set_parameters(b.clone()).unwrap();
            let info = prepared.execute().await.unwrap();
            let batches = fetch(&mut client, &info).await.unwrap();
            assert_eq!(batches[0].schema().field(1).data_type(), set.data_type(), "{shown}");
            assert_eq!(rows(&batches), [["old", *shown]]);
        }
    }
    all_rows(&mut client, "DROP VIEW seen").await;
    all_rows(&mut client, "CREATE VIEW seen AS SELECT 'new' AS a, aid FROM saved_searches").await;
    let info = prepared.execute().await.unwrap();
    assert_eq!(rows(&fetch(&mut client, &info).await.unwrap()), [["new", "x"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_value_asks_for_what_the_value_written_out_asks_for() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let written =
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND language = 'en' ORDER BY published_at DESC LIMIT 3");
    let (expected, cost) = served.cost(all_rows(&mut client, &written)).await;
    for sql in [
        "SELECT id FROM mentions WHERE aid = ? AND language = ? ORDER BY published_at DESC LIMIT 3",
        "SELECT id FROM mentions(aid => ?) WHERE language = ? ORDER BY published_at DESC LIMIT 3",
    ] {
        let bound = async {
            let mut prepared = client.prepare(sql.to_owned(), None).await.unwrap();
            let set = [("a", texts(&[Some(BIG)])), ("b", texts(&[Some("en")]))];
            prepared.set_parameters(RecordBatch::try_from_iter(set).unwrap()).unwrap();
            let info = prepared.execute().await.unwrap();
            rows(&fetch(&mut client, &info).await.unwrap())
        };
        assert_eq!(served.cost(bound).await, (expected.clone(), cost), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_its_own_settings_views_and_tables_and_changes_nothing_else() {
    let served = Served::new().await;
    let (mut ada, mut bob) = (served.client().await, served.client().await);
    // In all the ways in which drivers send statements without a result.
    assert!(all_rows(&mut ada, "SET savedsearch.max_requests = 7").await.is_empty());
    assert_eq!(
        ada.execute_update("CREATE VIEW names AS SELECT name FROM saved_searches".to_owned(), None).await.unwrap(),
        0
    );
    let mut prepared =
        ada.prepare("CREATE TEMPORARY TABLE mine AS SELECT aid FROM saved_searches".to_owned(), None).await.unwrap();
    assert!(prepared.dataset_schema().unwrap().fields().is_empty());
    assert_eq!(prepared.execute_update().await.unwrap(), 0);
    all_rows(&mut ada, "SET TIME ZONE = 'Europe/Berlin'").await;

    assert_eq!(all_rows(&mut ada, "SHOW savedsearch.max_requests").await, [["savedsearch.max_requests", "7"]]);
    assert_eq!(all_rows(&mut bob, "SHOW savedsearch.max_requests").await, [["savedsearch.max_requests", "1000"]]);
    // RESET restores the session's default.
    all_rows(&mut ada, "RESET datafusion.execution.time_zone").await;
    let zone = all_rows(&mut ada, "SHOW datafusion.execution.time_zone").await;
    assert_eq!(zone, [["datafusion.execution.time_zone", "UTC"]]);
    // A prepared statement uses the current tables.
    all_rows(&mut ada, "CREATE TABLE changing AS SELECT 1 AS a").await;
    let mut before = ada.prepare("SELECT * FROM changing".to_owned(), None).await.unwrap();
    all_rows(&mut ada, "CREATE OR REPLACE TABLE changing AS SELECT 'two' AS b").await;
    let info = before.execute().await.unwrap();
    assert_eq!(rows(&fetch(&mut ada, &info).await.unwrap()), [["two"]]);
    all_rows(&mut ada, "DROP TABLE changing").await;
    assert_eq!(status(before.execute().await.unwrap_err()).code(), tonic::Code::InvalidArgument);
    assert_eq!(all_rows(&mut ada, "SELECT count(*) FROM names n JOIN mine ON true").await, [["49"]]);
    assert_eq!(refusal(&mut bob, "SELECT * FROM mine").await.code(), tonic::Code::InvalidArgument);
    let kinds =
        |rows: Vec<Vec<String>>| rows.into_iter().map(|row| format!("{} {}", row[2], row[3])).collect::<Vec<_>>();
    let tables = CommandGetTables { table_name_filter_pattern: Some("m%".into()), ..CommandGetTables::default() };
    let found = kinds(rows(&[told(&mut ada, tables.clone()).await]));
    assert_eq!(found, ["mentions TABLE", "mine LOCAL TEMPORARY"]);
    assert_eq!(kinds(rows(&[told(&mut bob, tables).await])), ["mentions TABLE"]);

    // An existing table costs no requests.
    let (_, cost) =
        served.cost(all_rows(&mut ada, "CREATE TABLE IF NOT EXISTS mine AS SELECT aid FROM mentions")).await;
    assert_eq!(cost, 0);
    let (status, cost) = served.cost(refusal(&mut ada, "CREATE TABLE mine AS SELECT aid FROM mentions")).await;
    assert!(status.message().contains("table `mine` already exists") && cost == 0, "{status}");
    all_rows(&mut ada, "DROP TABLE mine").await;
    all_rows(&mut ada, "DROP VIEW names").await;
    refusal(&mut ada, "SELECT * FROM mine").await;

    let cases = [
        ("COPY mentions TO '/tmp/mentions.csv'", tonic::Code::Unimplemented),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", tonic::Code::Unimplemented),
        ("CREATE EXTERNAL TABLE t(a INT) STORED AS PARQUET LOCATION '/tmp/'", tonic::Code::Unimplemented),
        ("INSERT INTO mentions SELECT * FROM mentions", tonic::Code::Unimplemented),
        ("EXPLAIN ANALYZE INSERT INTO saved_searches SELECT * FROM saved_searches", tonic::Code::Unimplemented),
        ("DELETE FROM mentions", tonic::Code::Unimplemented),
        ("UPDATE saved_searches SET name = 'x'", tonic::Code::Unimplemented),
        ("CREATE SCHEMA s", tonic::Code::Unimplemented),
        ("CREATE DATABASE d", tonic::Code::Unimplemented),
        ("DROP SCHEMA v4", tonic::Code::Unimplemented),
        ("DROP TABLE mentions", tonic::Code::InvalidArgument),
        ("SET TIME ZONE = 'garbage'", tonic::Code::InvalidArgument),
        ("CREATE OR REPLACE TABLE system.requests AS SELECT 1 AS a", tonic::Code::InvalidArgument),
        ("CREATE OR REPLACE TABLE mentions AS SELECT aid FROM saved_searches", tonic::Code::InvalidArgument),
        ("CREATE TABLE twice AS SELECT aid, aid FROM saved_searches", tonic::Code::InvalidArgument),
        ("CREATE OR REPLACE TABLE mentions AS SELECT 1 AS a", tonic::Code::InvalidArgument),
        ("SET datafusion.runtime.memory_limit = '1T'", tonic::Code::Unimplemented),
        ("SET datafusion.execution.target_partitions = 9999", tonic::Code::Unimplemented),
        ("SET savedsearch.max_requests = 'many'", tonic::Code::InvalidArgument),
        ("SET savedsearch.estimate = 'ask'", tonic::Code::Unimplemented),
        ("SELECT * FROM '/etc/passwd'", tonic::Code::InvalidArgument),
        ("PREPARE p AS SELECT 1", tonic::Code::Unimplemented),
        ("BEGIN", tonic::Code::Unimplemented),
        ("SELEC 1", tonic::Code::InvalidArgument),
        ("", tonic::Code::InvalidArgument),
        ("SELECT 1; SELECT 2", tonic::Code::InvalidArgument),
        ("SELECT nothing FROM mentions", tonic::Code::InvalidArgument),
    ];
    each_async(cases, async |(sql, code)| {
        let (refused, cost) = served.cost(refusal(&mut ada, sql)).await;
        assert_eq!((refused.code(), cost), (code, 0), "{sql}: {refused}");
        assert!(!refused.message().contains('\n') && !refused.message().is_empty(), "{sql}: {refused}");
        if code == tonic::Code::Unimplemented {
            let refused = ada.prepare(sql.to_owned(), None).await.map(drop).map_err(self::status);
            assert_eq!(refused.unwrap_err().code(), code, "{sql}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_was_meant_and_where() {
    let served = Served::new().await;
    let mut client = served.client().await;
    for (sql, message, place) in [
        ("SELECT autor FROM mentions", "unknown column `autor`; did you mean author_name?", "(line 1, column 8)"),
        ("SELECT 1\n  FROM mention", "unknown table `mention`; did you mean mentions?", "(line 2, column 8)"),
        ("SELECT 'é', cuont(*) FROM mentions", "unknown function `cuont`; did you mean count?", "(line 1, column 13)"),
    ] {
        let (refused, cost) = served.cost(refusal(&mut client, sql)).await;
        let told = refused.message();
        assert!(told.contains(message) && told.ends_with(place) && cost == 0, "{sql}: {told}");
        let refused = client.prepare(sql.to_owned(), None).await.map(drop).map_err(status).expect_err(sql);
        assert!(refused.message().ends_with(place), "{sql}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_can_be_brought_along_for_the_session_and_for_nothing_else() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let batch =
        RecordBatch::try_from_iter([("aid", texts(&[Some(BIG), Some("x")])), ("owner", texts(&[Some("me"), None]))])
            .unwrap();
    let ingest = |temporary: bool, replace: bool| CommandStatementIngest {
        table: "owners".into(),
        temporary,
        table_definition_options: replace
            .then_some(arrow_flight::sql::TableDefinitionOptions { if_not_exist: 1, if_exists: 3 }),
        ..CommandStatementIngest::default()
    };
    let stream = || futures::stream::iter([Ok(batch.clone())]);
    let refused = client.execute_ingest(ingest(false, false), stream()).await.unwrap_err();
    assert_eq!(status(refused).code(), tonic::Code::Unimplemented);
    assert_eq!(client.execute_ingest(ingest(true, false), stream()).await.unwrap(), 2);
    let refused = client.execute_ingest(ingest(true, false), stream()).await.unwrap_err();
    assert_eq!(status(refused).code(), tonic::Code::AlreadyExists);
    assert_eq!(client.execute_ingest(ingest(true, true), stream()).await.unwrap(), 2);
    let sql = "SELECT DISTINCT owner FROM owners JOIN mentions USING (aid)";
    assert_eq!(all_rows(&mut client, sql).await, [["me"]]);
    refusal(&mut served.client().await, "SELECT * FROM owners").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_catalogs_and_options_choose_among_them() {
    let (one, two) =
        (Simulator::new(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() }), corpus());
    let two = Simulator::new(two, Settings { clock: Clock::fixed(now()), ..Settings::default() });
    let connections =
        [connect(&one, Clock::fixed(now()), Profile::v4()), connect(&two, Clock::fixed(now()), Profile::v4())];
    let named = ["one", "two"].into_iter().zip(connections.clone()).map(|(name, c)| (name.to_owned(), c)).collect();
    let [connection, _] = connections;
    let server = FlightServer::start(open(Upstream::Own { connection: Arc::clone(&connection), named })).await.unwrap();
    let served = Served { simulator: one, connection, server };
    let mut client = served.client().await;
    let catalogs = rows(&[told(&mut client, CommandGetCatalogs {}).await]).concat();
    assert_eq!(catalogs, ["one", "savedsearch", "two"]);
    let (_, cost) = served.cost(all_rows(&mut client, "SELECT * FROM two.v4.saved_searches")).await;
    assert_eq!((cost, two.requests()), (0, 1));
    access::set_option(&mut client, "catalog", "two").await.expect("an existing catalog");
    assert_eq!(access::set_option(&mut client, "catalog", "three").await, Err(2));
    assert_eq!(access::set_option(&mut client, "datafusion.catalog.default_catalog", "one").await, Err(1));
    access::set_option(&mut client, "savedsearch.max_requests", "12").await.expect("a setting");
    let (_, cost) = served.cost(all_rows(&mut client, "SELECT * FROM saved_searches")).await;
    assert_eq!((cost, two.requests()), (0, 2));
    let options = access::options(&mut client).await;
    assert_eq!((options["catalog"].as_str(), options["schema"].as_str()), ("two", "v4"));
    assert_eq!(options["savedsearch.max_requests"], "12");
    // A zone is checked as SET checks it, and an option without a value has the session's default again.
    assert_eq!(access::set_option(&mut client, "datafusion.execution.time_zone", "Nowhere/Land").await, Err(2));
    for name in ["savedsearch.max_requests", "datafusion.execution.time_zone", "catalog"] {
        access::erase_option(&mut client, name).await.expect(name);
    }
    let options = access::options(&mut client).await;
    let catalog = options["catalog"].as_str();
    assert_eq!((catalog, options["datafusion.execution.time_zone"].as_str()), ("savedsearch", "UTC"));
    assert_ne!(options["savedsearch.max_requests"], "12");
}

/// The calls of the JDBC driver, in order, for one query and the table tree (Arrow 18, taken from its sources).
#[tokio::test(flavor = "multi_thread")]
async fn the_sequence_of_the_jdbc_driver_is_answered() {
    let served = Served::new().await;
    let mut client = served.client().await;
    client.handshake("any", "thing").await.unwrap();
    assert!(client.token().is_some());
    access::set_option(&mut client, "catalog", "savedsearch").await.expect("the catalog");
    told(&mut client, CommandGetSqlInfo { info: Vec::new() }).await;
    for command in [
        Command::CommandGetCatalogs(CommandGetCatalogs {}),
        Command::CommandGetDbSchemas(CommandGetDbSchemas {
            catalog: Some("savedsearch".into()),
            db_schema_filter_pattern: Some("%".into()),
        }),
        Command::CommandGetTableTypes(CommandGetTableTypes {}),
    ] {
        let any: Any = command.into_any();
        let descriptor = FlightDescriptor::new_cmd(any.encode_to_vec());
        let request = access::with_token(&client, descriptor);
        let info = client.inner_mut().get_flight_info(request).await.unwrap().into_inner();
        assert!(!fetch(&mut client, &info).await.unwrap().is_empty());
    }
    let mut prepared = client.prepare("SELECT name FROM saved_searches WHERE aid = ?".to_owned(), None).await.unwrap();
    assert_eq!(prepared.dataset_schema().unwrap().fields().len(), 1);
    prepared.set_parameters(RecordBatch::try_from_iter([("0", texts(&[Some(BIG)]))]).unwrap()).unwrap();
    let info = prepared.execute().await.unwrap();
    let names = fetch(&mut client, &info).await.unwrap();
    assert_eq!(rows(&names), [["Acme – brand"]]);
    prepared.close().await.unwrap();
    // For an update without parameters the driver binds a batch without columns.
    let mut prepared =
        client.prepare("CREATE VIEW names AS SELECT name FROM saved_searches".to_owned(), None).await.unwrap();
    let options = RecordBatchOptions::new().with_row_count(Some(0));
    let nothing = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap();
    prepared.set_parameters(nothing).unwrap();
    assert_eq!(prepared.execute_update().await.unwrap(), 0);
    assert!(!all_rows(&mut client, "SELECT * FROM names").await.is_empty());
    access::close_session(&mut client).await.unwrap();
    assert_eq!(refusal(&mut client, "SELECT 1").await.code(), tonic::Code::Unauthenticated);
}
