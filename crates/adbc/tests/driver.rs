//! The driver by its own interface, on demo data and against the simulator. `tests/clients/python_package.py` tests it through driver
//! managers.

#[path = "../../../benches/requests/queries.rs"]
mod queries;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adbc_core::error::{AdbcStatusCode, Error, Status};
use adbc_core::options::{InfoCode, ObjectDepth, OptionConnection, OptionDatabase, OptionStatement, OptionValue};
use adbc_core::{Connection as _, Database as _, Driver as _, Optionable, Statement as _};
use adbc_driver_savedsearch::{Connection, Database, Driver, Statement};
use arrow::array::{Array, AsArray, FixedSizeBinaryArray, RecordBatch, RecordBatchReader, StringArray, UnionArray};
use arrow::datatypes::{Field, Int16Type, Int64Type, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_saved_search::Clock;
use datafusion_saved_search::simulator::{self, KEY, Settings};
use tokio::runtime::Runtime;

use self::queries::{NOW, corpus, queries};

const WEEK: &str = "SELECT id, published_at FROM mentions WHERE aid = '183772'";

fn database(options: &[(&str, &str)]) -> Database {
    let options = [("savedsearch.now", NOW)].into_iter().chain(options.iter().copied());
    let options = options.map(|(name, value)| (OptionDatabase::from(name), OptionValue::from(value)));
    Driver.new_database_with_opts(options).expect("a database")
}

fn connection() -> Connection {
    database(&[]).new_connection().expect("a connection")
}

fn statement(connection: &mut Connection, sql: &str) -> Statement {
    let mut statement = connection.new_statement().expect("a statement");
    statement.set_sql_query(sql).expect("a text");
    statement
}

fn rows(reader: impl RecordBatchReader) -> Vec<RecordBatch> {
    reader.collect::<Result<_, _>>().expect("rows")
}

/// The values of rows as text.
fn cells(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>().expect("values");
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect()));
    }
    rows
}

fn number(connection: &mut Connection, sql: &str) -> i64 {
    let batches = rows(statement(connection, sql).execute().expect("a result"));
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn rows_arrive_and_their_requests_are_counted() {
    let mut connection = connection();
    let mut statement = statement(&mut connection, WEEK);
    assert_eq!(statement.execute_schema().expect("a schema").fields().len(), 2);
    let batches = rows(statement.execute().expect("a result"));
    let read: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let option = |name: &str| OptionStatement::Other(name.to_owned());
    let requests = statement.get_option_int(option("savedsearch.requests")).expect("a number");
    // Its connection has the same, also while the statement runs.
    let at = statement.get_option_int(option("savedsearch.statement")).expect("a number");
    let of_it = |part: &str| OptionConnection::Other(format!("savedsearch.statement.{at}.{part}"));
    assert_eq!(connection.get_option_int(of_it("requests")).expect("a number"), requests);
    for part in ["notes", "warnings"] {
        let known = statement.get_option_string(option(&format!("savedsearch.{part}"))).expect("lines");
        assert_eq!(connection.get_option_string(of_it(part)).expect("lines"), known, "{part}");
    }
    drop(statement);
    assert_eq!(connection.get_option_int(of_it("requests")).expect_err("it is gone").status, Status::NotFound);
    assert!(read > 99 && requests == read.div_ceil(99) as i64, "{read} rows in {requests} requests");
    let counted = number(&mut connection, "SELECT count(*) FROM mentions WHERE aid = '183772'");
    assert_eq!(counted, read as i64);
}

#[test]
fn notes_are_those_of_the_shell_before_and_after_a_run() {
    let mut connection = connection();
    let option = |name: &str| OptionStatement::Other(format!("savedsearch.{name}"));
    for estimate in ["true", "false"] {
        let sql = "SELECT name, mentions FROM breakdowns WHERE aid = '183772'";
        let mut breakdowns = statement(&mut connection, sql);
        breakdowns.set_option(option("estimate"), estimate.into()).expect("an option");
        rows(breakdowns.execute().expect("a result"));
        let notes = breakdowns.get_option_string(option("notes")).expect("notes");
        let starts = ["no time filter: reading the last 7 days", "breakdowns has rows of each dimension (source, "];
        assert_eq!(notes.lines().count(), starts.len(), "{notes}");
        assert!(notes.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{notes}");
    }
}

/// A service with the corpus of the benchmark of requests, and a database for it.
fn served(runtime: &Runtime) -> (simulator::Running, Database) {
    let settings = Settings { clock: Clock::fixed(NOW.parse().expect("an instant")), ..Settings::default() };
    let listen = "127.0.0.1:0".parse().expect("an address");
    let service = runtime.block_on(simulator::start(listen, corpus(), settings)).expect("a service");
    let options = [
        (OptionDatabase::Uri, service.base_url().into()),
        (OptionDatabase::Other("savedsearch.api_key".into()), KEY.into()),
    ];
    let database = Driver.new_database_with_opts(options).expect("a database");
    (service, database)
}

#[test]
fn requests_of_a_refused_query_are_counted() {
    let runtime = Runtime::new().expect("threads");
    let (service, database) = served(&runtime);
    let mut connection = database.new_connection().expect("a connection");
    let setting = OptionConnection::Other("savedsearch.max_requests".into());
    connection.set_option(setting, OptionValue::Int(2)).expect("a setting");
    // The list tells how many requests are needed.
    let mut statement = statement(&mut connection, "SELECT aid, count(*) FROM mentions GROUP BY aid");
    let error = statement.execute().err().expect("more than two requests are needed");
    assert!(error.message.contains("but savedsearch.max_requests allows 2;"), "{error}");
    let counted = statement.get_option_int(OptionStatement::Other("savedsearch.requests".into()));
    assert_eq!((service.requests(), counted.expect("a number")), (1, 1));
}

/// The queries of the benchmark of requests, each on a connection of its own: nothing is known from earlier ones.
#[test]
fn queries_send_the_smallest_number_of_requests() {
    let runtime = Runtime::new().expect("threads");
    let (service, database) = served(&runtime);
    let (now, corpus) = (NOW.parse().expect("an instant"), corpus());
    for query in queries(&corpus, now) {
        let mut connection = database.new_connection().expect("a connection");
        let mut statement = statement(&mut connection, &query.sql);
        let before = service.requests();
        let batches = rows(statement.execute().unwrap_or_else(|error| panic!("{}: {error}", query.name)));
        assert!(query.rows.are(&cells(&batches)), "{}: wrong rows", query.name);
        let counted = statement.get_option_int(OptionStatement::Other("savedsearch.requests".into()));
        let sent = (service.requests() - before, counted.expect("a number"));
        assert_eq!(sent, (query.least, query.least as i64), "{}", query.name);
    }
}

#[test]
fn parameters_are_bound_in_sets() {
    let mut connection = connection();
    let mut statement = statement(&mut connection, "SELECT ? AS aid, count(*) AS n FROM saved_searches WHERE aid = ?");
    assert_eq!(statement.get_parameter_schema().expect("parameters").fields().len(), 2);
    let aids: Arc<dyn Array> = Arc::new(StringArray::from(vec!["183772", "nobody"]));
    let sets = RecordBatch::try_from_iter([("0", Arc::clone(&aids)), ("1", aids)]).expect("sets");
    statement.bind(sets).expect("bound");
    let batches = rows(statement.execute().expect("a result"));
    let counts: Vec<i64> =
        batches.iter().flat_map(|batch| batch.column(1).as_primitive::<Int64Type>().values().to_vec()).collect();
    assert_eq!(counts, [1, 0]);
    let error = statement.execute().err().expect("no parameters are left");
    assert!(error.message.contains("expected 2, got 0"), "{error}");
}

/// Types would be missing as well.
#[test]
fn the_number_of_parameters_is_checked_first() {
    let mut connection = connection();
    let text: Arc<dyn Array> = Arc::new(StringArray::from(vec!["1"]));
    let one = RecordBatch::try_from_iter([("0", text)]).expect("a set");
    for (sql, takes) in [("SELECT ? + ?", 2), ("SELECT $1 + $1 + $2", 2), ("EXPLAIN SELECT ? + ?", 2), ("SELECT 1", 0)]
    {
        for given in [0, 1] {
            let mut wrong = statement(&mut connection, sql);
            if given == 1 {
                wrong.bind(one.clone()).expect("bound");
            }
            if given == takes {
                continue;
            }
            let error = wrong.execute().err().unwrap_or_else(|| panic!("{sql} was run with {given} parameters"));
            let expected = format!("wrong number of parameters: expected {takes}, got {given}");
            assert_eq!(error.message, expected, "{sql}");
        }
    }
}

#[test]
fn ids_are_bound_as_text() {
    let mut connection = connection();
    let mut statement = statement(&mut connection, "SELECT ? AS id, ? = '550e8400-e29b-41d4-a716-446655440000'");
    let id = 0x550e_8400_e29b_41d4_a716_4466_5544_0000_u128.to_be_bytes();
    let ids: Arc<dyn Array> = Arc::new(FixedSizeBinaryArray::try_from_iter([id].into_iter()).expect("ids"));
    let extension = HashMap::from([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())]);
    let field = |name: &str| Field::new(name, ids.data_type().clone(), true).with_metadata(extension.clone());
    let schema = Arc::new(Schema::new(vec![field("0"), field("1")]));
    statement.bind(RecordBatch::try_new(schema, vec![Arc::clone(&ids), ids]).expect("a set")).expect("bound");
    let found = cells(&rows(statement.execute().expect("a result")));
    assert_eq!(found, [["550e8400-e29b-41d4-a716-446655440000", "true"]]);
}

#[test]
fn a_budget_holds_for_all_parameter_sets_together() {
    let mut connection = connection();
    let setting = || OptionConnection::Other("savedsearch.max_requests".into());
    connection.set_option(setting(), OptionValue::Int(2)).expect("a setting");
    let sets = || {
        let aids: Arc<dyn Array> = Arc::new(StringArray::from(vec!["183772", "184889", "183772"]));
        RecordBatch::try_from_iter([("0", aids)]).expect("sets")
    };
    let counted = "SELECT count(*) FROM mentions WHERE aid = ?";
    let mut estimated = statement(&mut connection, counted);
    estimated.set_option(OptionStatement::Other("savedsearch.estimate".into()), "true".into()).expect("an option");
    estimated.bind(sets()).expect("bound");
    let costs = rows(estimated.execute().expect("costs"));
    assert_eq!(costs[0].column(3).as_primitive::<Int64Type>().values(), &[1, 1, 1, 3]);
    let noted = estimated.get_option_string(OptionStatement::Other("savedsearch.notes".into())).expect("notes");
    assert!(noted.starts_with("no time filter: reading the last 7 days"), "{noted}");
    let requests = |of: &Statement| of.get_option_int(OptionStatement::Other("savedsearch.requests".into())).ok();
    let refused = "3 parameter sets: the query needs at least 3 requests, but savedsearch.max_requests allows 2; ";
    let mut all = statement(&mut connection, counted);
    all.bind(sets()).expect("bound");
    let error = all.execute().err().expect("three requests are needed");
    assert!(error.message.starts_with(refused), "{error}");
    assert_eq!(requests(&all), Some(0));
    rows(statement(&mut connection, "CREATE VIEW counts AS SELECT aid FROM overview").execute().expect("a view"));
    let mut viewed = statement(&mut connection, "SELECT aid FROM counts WHERE aid = ?");
    viewed.bind(sets()).expect("bound");
    let error = viewed.execute().err().expect("three requests are needed");
    assert!(error.message.starts_with(refused), "{error}");
    let mut none = statement(&mut connection, "SELECT ? AS aid");
    none.bind(sets()).expect("bound");
    assert_eq!(cells(&rows(none.execute().expect("a result"))), [["183772"], ["184889"], ["183772"]]);
    let mut created = statement(&mut connection, "CREATE TABLE kept AS SELECT aid FROM saved_searches");
    assert!(rows(created.execute().expect("a table")).is_empty());
    assert_eq!(requests(&created), Some(1));
}

#[test]
fn a_statement_that_changes_the_session_takes_one_parameter_set() {
    let mut connection = connection();
    let aids: Arc<dyn Array> = Arc::new(StringArray::from(vec!["183772", "184889"]));
    let sets = RecordBatch::try_from_iter([("0", aids)]).expect("sets");
    let refused = "a statement that changes the session takes one parameter set, got 2; run it once for each set";
    for create in ["CREATE TEMPORARY TABLE", "CREATE OR REPLACE TABLE", "CREATE TABLE IF NOT EXISTS"] {
        let sql = format!("{create} n AS SELECT id FROM mentions WHERE aid = ?");
        for estimate in ["true", "false"] {
            let mut all = statement(&mut connection, &sql);
            all.set_option(OptionStatement::Other("savedsearch.estimate".into()), estimate.into()).expect("an option");
            all.bind(sets.clone()).expect("bound");
            let error = all.execute().err().unwrap_or_else(|| panic!("{sql} was run"));
            assert_eq!(error.message, refused, "{sql}");
            let requests = all.get_option_int(OptionStatement::Other("savedsearch.requests".into()));
            assert_eq!(requests.expect("a number"), 0, "{sql}");
        }
    }
    connection.get_table_schema(None, None, "n").expect_err("nothing was created");
    let mut one =
        statement(&mut connection, "CREATE TEMPORARY TABLE n AS SELECT aid FROM saved_searches WHERE aid = ?");
    one.bind(sets.slice(0, 1)).expect("bound");
    assert!(rows(one.execute().expect("a table")).is_empty());
    assert_eq!(number(&mut connection, "SELECT count(*) FROM n WHERE aid = '183772'"), 1);
}

/// The number of pages of a set is known once its first page has arrived.
#[test]
fn parameter_sets_that_need_more_than_expected_end_as_they_run() {
    let mut connection = connection();
    let option = || OptionStatement::Other("savedsearch.requests".into());
    let mut week = statement(&mut connection, WEEK);
    rows(week.execute().expect("a result"));
    let pages = week.get_option_int(option()).expect("a number");
    let setting = OptionConnection::Other("savedsearch.max_requests".into());
    connection.set_option(setting, OptionValue::Int(pages + 1)).expect("a setting");
    let mut twice = statement(&mut connection, "SELECT id, published_at FROM mentions WHERE aid = ?");
    let aids: Arc<dyn Array> = Arc::new(StringArray::from(vec!["183772", "183772"]));
    twice.bind(RecordBatch::try_from_iter([("0", aids)]).expect("sets")).expect("bound");
    let error = twice.execute().and_then(|reader| Ok(reader.collect::<Result<Vec<_>, _>>()?)).expect_err("too many");
    assert!(error.message.contains(&format!("parameter set 2, after {pages} requests: ")), "{error}");
    let limit = format!("but savedsearch.max_requests allows {}; 1 is left; ", pages + 1);
    assert!(error.message.contains(&limit), "{error}");
}

#[test]
fn metadata_has_every_depth_and_costs_no_request() {
    // Demo data of its own: other tests send requests at the same time.
    let mut connection =
        database(&[("savedsearch.now", "2026-07-02T12:00:00Z")]).new_connection().expect("a connection");
    for (depth, schemas, tables, columns) in [
        (ObjectDepth::Catalogs, false, false, false),
        (ObjectDepth::Schemas, true, false, false),
        (ObjectDepth::Tables, true, true, false),
        (ObjectDepth::All, true, true, true),
    ] {
        let reader = connection.get_objects(depth, Some("saved%"), Some("v_"), Some("mentions"), None, Some("aid"));
        let batches = rows(reader.expect("objects"));
        assert_eq!(batches[0].column(0).as_string::<i32>().value(0), "savedsearch");
        let lists = batches[0].column(1).as_list::<i32>();
        assert_eq!(lists.is_valid(0), schemas, "{depth:?}");
        let in_schemas = lists.values().as_struct();
        let listed = (in_schemas.len() == 1).then(|| in_schemas.column(1).as_list::<i32>());
        assert_eq!(listed.is_some_and(|tables| tables.is_valid(0)), tables, "{depth:?}");
        let found = listed.map(|tables| tables.values().as_struct()).filter(|tables| tables.len() == 1);
        let described = found.map(|tables| tables.column(2).as_list::<i32>()).filter(|columns| columns.is_valid(0));
        assert_eq!(described.map(|columns| columns.values().len()), columns.then_some(1), "{depth:?}");
    }
    let info =
        rows(connection.get_info(Some(HashSet::from([InfoCode::VendorName, InfoCode::Other(77)]))).expect("info"));
    assert_eq!(info[0].num_rows(), 1);
    assert_eq!(rows(connection.get_info(None).expect("info"))[0].num_rows(), 9);
    assert!(connection.get_table_schema(None, None, "mentions").expect("a schema").field_with_name("reach").is_ok());
    let unknown = connection.get_table_schema(None, Some("v4"), "nobody").expect_err("an unknown table");
    assert_eq!(unknown.status, Status::NotFound);
    let queried = statement(&mut connection, "SELECT * FROM nobody").execute().err().expect("an unknown table");
    assert_eq!(unknown.sqlstate, queried.sqlstate);
    let kind = |error: &Error| {
        let details = error.details.clone().unwrap_or_default();
        details.into_iter().find(|(name, _)| name == "savedsearch.kind").map(|(_, kind)| kind)
    };
    assert_eq!([kind(&unknown), kind(&queried)], [Some(b"unknown_table".to_vec()), Some(b"unknown_table".to_vec())]);
    assert_eq!(number(&mut connection, "SELECT count(*) FROM system.requests"), 0);
}

#[test]
fn statistics_are_the_rows_of_temporary_tables() {
    // Demo data of its own: other tests send requests at the same time.
    let mut connection =
        database(&[("savedsearch.now", "2026-07-03T12:00:00Z")]).new_connection().expect("a connection");
    let known = |connection: &Connection, table: Option<&str>| {
        rows(connection.get_statistics(None, Some("v_"), table, false).expect("statistics"))
    };
    assert_eq!(known(&connection, None).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    for sql in
        ["CREATE TABLE few AS SELECT 1 AS a UNION ALL SELECT 2", "CREATE TABLE nobody AS SELECT 1 AS a WHERE false"]
    {
        assert!(rows(statement(&mut connection, sql).execute().expect("a table")).is_empty());
    }
    for (pattern, expected) in
        [(None, vec![("few", 2), ("nobody", 0)]), (Some("f%"), vec![("few", 2)]), (Some("mentions"), vec![])]
    {
        let batches = known(&connection, pattern);
        let found: Vec<(String, i64)> = batches
            .iter()
            .flat_map(|batch| {
                assert_eq!(batch.num_rows(), usize::from(!expected.is_empty()));
                let schemas = batch.column(1).as_list::<i32>().values().as_struct().clone();
                let tables = schemas.column(1).as_list::<i32>().values().as_struct().clone();
                let (names, keys) = (tables.column(0).as_string::<i32>(), tables.column(2).as_primitive::<Int16Type>());
                assert!(keys.iter().all(|key| key == Some(6)), "the number of rows, in ADBC's list of statistics");
                let values = tables.column(3).as_any().downcast_ref::<UnionArray>().expect("values");
                let exact = tables.column(4).as_boolean();
                assert_eq!(exact.true_count(), 0, "none is approximate");
                let value = |row: usize| values.value(row).as_primitive::<Int64Type>().value(0);
                (0..tables.len()).map(|row| (names.value(row).to_owned(), value(row))).collect::<Vec<_>>()
            })
            .collect();
        let found: Vec<_> = found.iter().map(|(name, rows)| (name.as_str(), *rows)).collect();
        assert_eq!(found, expected, "{pattern:?}");
    }
    assert_eq!(number(&mut connection, "SELECT count(*) FROM system.requests"), 0);
}

#[test]
fn a_cancelled_statement_ends_and_the_next_one_runs() {
    let mut connection = connection();
    let mut slow =
        statement(&mut connection, "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b");
    let handle = slow.get_cancel_handle();
    let cancelling = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        handle.try_cancel().expect("cancelled");
    });
    let error = slow.execute().err().expect("it was cancelled");
    assert_eq!(error.status, Status::Cancelled, "{error}");
    cancelling.join().expect("a thread");
    slow.set_sql_query("SELECT 1").expect("a text");
    assert_eq!(rows(slow.execute().expect("a result"))[0].num_rows(), 1);
}

#[test]
fn after_a_cancel_no_rows_follow() {
    let mut connection = connection();
    let mut statement = statement(&mut connection, "SELECT 1");
    let mut reader = statement.execute().expect("a result");
    statement.get_cancel_handle().try_cancel().expect("cancelled");
    let error = reader.next().expect("a failure").expect_err("it was cancelled");
    assert!(error.to_string().contains("the query was cancelled"), "{error}");
    assert!(reader.next().is_none());
    let kind = statement.get_option_string(OptionStatement::Other("savedsearch.error.kind".into()));
    assert_eq!(kind.expect("a kind"), "cancelled");
    let mut reader = statement.execute().expect("a result");
    assert_eq!(reader.next().expect("rows").expect("rows").num_rows(), 1);
    assert!(reader.next().is_none());
    statement.get_cancel_handle().try_cancel().expect("cancelled");
    assert!(reader.next().is_none(), "all rows were read before");
}

#[test]
fn a_failure_has_the_same_class_in_a_call_and_in_a_stream() {
    let mut connection = connection();
    let mut ends = |aids: &[&str]| {
        let aids: Arc<dyn Array> = Arc::new(StringArray::from(aids.to_vec()));
        let mut statement = statement(&mut connection, "SELECT id FROM mentions WHERE aid = ?");
        statement.bind(RecordBatch::try_from_iter([("0", aids)]).expect("sets")).expect("bound");
        let called = statement.execute().map(|reader| reader.filter_map(Result::err).count());
        let part = |name: &str| {
            let option = OptionStatement::Other(format!("savedsearch.error.{name}"));
            statement.get_option_string(option).expect(name)
        };
        (called, ["status", "sqlstate", "kind"].map(part))
    };
    let (called, class) = ends(&["nope"]);
    assert_eq!(called.expect_err("there is no such saved search").status, Status::NotFound);
    assert_eq!(class, [AdbcStatusCode::from(Status::NotFound).to_string().as_str(), "42704", "not_found"]);
    let (streamed, same) = ends(&["183772", "nope"]);
    assert_eq!((streamed.expect("the first rows"), same), (1, class));
}

#[test]
fn a_base_url_is_checked_before_the_key() {
    for (url, expected) in [
        ("nonsense", "invalid base URL `nonsense`: the scheme is missing; "),
        ("ftp://127.0.0.1/v4", "invalid base URL `ftp://127.0.0.1/v4`: not an HTTP URL"),
        ("http://127.0.0.1/v4?a=b", "must not contain a query"),
    ] {
        let error = Driver.new_database_with_opts([(OptionDatabase::Uri, url.into())]).err().expect(url);
        assert!(error.message.contains(expected), "{error}");
    }
    let error = Driver.new_database_with_opts([(OptionDatabase::Uri, "http://127.0.0.1/v4".into())]).err();
    let error = error.expect("there is no key");
    assert!(error.message.starts_with("no API key; "), "{error}");
}

#[test]
fn a_key_without_an_address_is_an_error() {
    for (option, value) in [("savedsearch.api_key", KEY), ("savedsearch.api_key_command", "echo demo-key-comms")] {
        let error = Driver.new_database_with_opts([(OptionDatabase::from(option), value.into())]).err().expect(option);
        let advice = "set uri to the base URL of the service, ending in /v4";
        assert_eq!(error.message, format!("{option} requires uri; {advice}"));
        assert_eq!(error.status, Status::InvalidArguments);
    }
}

#[test]
fn current_catalog_and_schema_are_those_that_exist() {
    let mut connection = connection();
    for (option, name, line) in [
        (OptionConnection::CurrentCatalog, "nowhere", "unknown catalog `nowhere`; available: savedsearch"),
        (OptionConnection::CurrentCatalog, "", "unknown catalog ``; available: savedsearch"),
        (OptionConnection::CurrentSchema, "nowhere", "unknown schema `nowhere`; available: system, v4"),
    ] {
        let error = connection.set_option(option, name.into()).expect_err(line);
        assert_eq!((error.message.as_str(), error.status), (line, Status::NotFound));
    }
    for (option, name) in
        [(OptionConnection::CurrentCatalog, "savedsearch"), (OptionConnection::CurrentSchema, "system")]
    {
        connection.set_option(option.clone(), name.into()).expect(name);
        assert_eq!(connection.get_option_string(option).expect("a value"), name);
    }
    let counted = "SELECT count(*) FROM requests WHERE false";
    assert_eq!(number(&mut connection, counted), 0, "names without a schema are those of `system`");
}

#[test]
fn settings_belong_to_a_connection_and_writes_are_refused() {
    let database = database(&[("savedsearch.max_requests", "3")]);
    let mut one = database.new_connection().expect("a connection");
    let other = database.new_connection().expect("a connection");
    let setting = || OptionConnection::Other("savedsearch.max_requests".into());
    one.set_option(setting(), OptionValue::Int(7)).expect("a setting");
    assert_eq!([&one, &other].map(|of| of.get_option_string(setting()).expect("a value")), ["7", "3"]);
    let error =
        statement(&mut one, "SELECT id FROM mentions WHERE duration = '365d'").execute().err().expect("too many");
    assert_eq!(error.status, Status::IO, "{error}");
    let details = error.details.expect("details");
    let detail =
        |name: &str| details.iter().find(|(known, _)| known == name).map(|(_, text)| String::from_utf8_lossy(text));
    assert_eq!(detail("savedsearch.kind").as_deref(), Some("budget"));
    assert!(error.message.ends_with(detail("savedsearch.advice").expect("advice").as_ref()), "{}", error.message);
    for sql in ["INSERT INTO mentions VALUES (1)", "DROP TABLE mentions", "CREATE OR REPLACE VIEW mentions AS SELECT 1"]
    {
        let error = statement(&mut one, sql).execute().err().unwrap_or_else(|| panic!("{sql} was run"));
        assert!(error.message.contains("read-only"), "{sql}: {error}");
    }
    let refused = one.set_option(OptionConnection::AutoCommit, OptionValue::from(false)).expect_err("no transactions");
    assert_eq!(refused.status, Status::NotImplemented);
}
