//! Resource bounds against short expensive statements, unauthenticated clients and password guessing. Each case once
//! crashed the server or blocked other clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, NullArray, RecordBatch};
use arrow_flight::FlightDescriptor;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{CommandStatementIngest, ProstMessageExt};
use arrow_flight::utils::batches_to_flight_data;
use bytes::Bytes;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::host::Auth;
use datafusion_saved_search::simulator::Settings;
use futures::TryStreamExt;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::access::users;
use super::hostile::Raw;
use super::load::Serve;
use super::{Client, Served, all_rows, refusal, status, try_rows};
use crate::binary::Simulate;
use crate::support::{LONGEST, corpus, each_async, rows};

/// Statements in which a number, or a few doublings, determine the memory taken or the time for which a thread is
/// blocked.
const LARGE: &[&str] = &[
    "SELECT lpad('x', n) FROM (VALUES (1099511627776)) t(n)",
    "SELECT lpad('x', 2147483647)",
    "SELECT rpad('x', 2147483647, 'é')",
    "SELECT repeat('x', 4294967296)",
    "SELECT repeat(arrow_cast('x', 'LargeUtf8'), 9223372036854775807)",
    "SELECT repeat('x', value * 0 + 2147483647) FROM generate_series(1, 1024)",
    "SELECT repeat('x', 2147483647), repeat('y', 2147483647), repeat('z', 2147483647)",
    "SELECT array_repeat(1, 4294967296)",
    "SELECT list_repeat(1, 2147483647)",
    "SELECT flatten(array_repeat([1, 2], 2147483647))",
    "SELECT array_resize([1], 2147483647)",
    "SELECT list_resize([1], 4294967296, 0)",
    "SELECT range(0, 2000000000)",
    "SELECT range(4294967296)",
    "SELECT generate_series(0, 4294967296)",
    "SELECT generate_series(DATE '2000-01-01', DATE '2000-01-02', INTERVAL '1 month -31 days')",
    "SELECT generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2001-01-01', INTERVAL '1 microsecond')",
    "SELECT range(0, 1000000) FROM generate_series(1, 1024)",
    "SELECT approx_percentile_cont(value, 0.5, 4294967295) FROM generate_series(1, 10)",
    "SELECT approx_percentile_cont(value, 0.5, 4294967295 - 1 + 2) FROM generate_series(1, 10)",
    "SELECT approx_percentile_cont_with_weight(value, 1, 0.5, 4294967296) FROM generate_series(1, 10)",
    "SELECT count(*) FROM (SELECT 1 a, 2 b) GROUP BY a, CUBE(a, b, a+1, b+1, a+2, b+2, a+3, b+3, a+4, b+4, a+5, b+5, a+6, b+6, a+7, b+7, a+8, b+8, a+9, b+9, a+10, b+10, a+11, b+11, a+12, b+12, a+13, b+13, a+14, b+14, a+15, b+15, a+16, b+16, a+17, b+17, a+18, b+18)",
    "SELECT count(*) FROM (SELECT 1 a) GROUP BY CUBE(a, a+1, a+2, a+3, a+4, a+5, a+6, a+7, a+8, a+9, a+10, a+11, a+12, a+13)",
    "SELECT count(*) FROM (SELECT 1 a) GROUP BY CUBE(a, a+1, a+2, a+3, a+4, a+5, a+6), CUBE(a+7, a+8, a+9, a+10, a+11, a+12, a+13)",
    "SELECT CAST(NULL AS INT[1000000][1000000])",
    "SELECT NULL::BIGINT[2147483647] FROM generate_series(1, 100)",
    "SELECT TRY_CAST([1] AS BIGINT[2147483647])",
    "SELECT arrow_cast(NULL, 'FixedSizeBinary(2147483647)')",
    "SELECT arrow_cast(NULL, 'FixedSizeBinary(2147483647)') FROM generate_series(1, 100)",
    "SELECT arrow_cast([1], 'FixedSizeList(2147483647 x Int64)')",
    "SELECT replace(repeat('x', 50000), 'x', repeat('y', 50000))",
    "SELECT regexp_replace(repeat('x', 50000), 'x', repeat('y', 50000), 'g')",
    "SELECT array_to_string(range(0, 8000), repeat('y', 60000))",
    "SELECT levenshtein(repeat('x', 60000), repeat('y', 60000))",
    "SELECT regexp_count('a', '\\w{100}' || value::text) FROM generate_series(1, 2000)",
    "SELECT 'a' ~ ('\\w{100}' || value::text) FROM generate_series(1, 2000)",
    "SELECT sum(length(t)) FROM (SELECT unnest(l) AS i, t FROM (SELECT array_agg(value) AS l, string_agg(repeat('x', 10000 + value % 2), '') AS t FROM generate_series(1, 1000)))",
    "SELECT count(DISTINCT t) FROM (SELECT unnest(unnest([l, l])) AS i, t FROM (SELECT array_agg(value) AS l, string_agg(repeat('x', 10000 + value % 2), '') AS t FROM generate_series(1, 1000)))",
    "SELECT max(t) FROM (SELECT string_agg(repeat('x', 10000 + value % 2), '') AS t FROM generate_series(1, 1000)) CROSS JOIN generate_series(1, 100000)",
    "SELECT count(DISTINCT a.t) FROM (SELECT 1 AS k, string_agg(repeat('x', 10000 + value % 2), '') AS t FROM generate_series(1, 1000)) a JOIN (SELECT value, value / value AS k FROM generate_series(1, 100000)) b ON a.k = b.k",
    "SELECT max(l) FROM (SELECT array_agg(value) OVER () AS l FROM generate_series(1, 100000))",
    "SELECT max(l) FROM (SELECT first_value(t) OVER (ORDER BY value ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM (SELECT value, CASE WHEN value = 1 THEN repeat('x', 100000) END AS t FROM generate_series(1, 100000)))",
];

/// Statement that doubles a string or a list `times` times by subqueries.
fn doubled(times: usize, twice: &str, first: &str) -> String {
    let steps = (1..=times).map(|step| format!(", c{step} AS (SELECT {twice} AS a FROM c{})", step - 1));
    format!("WITH c0 AS (SELECT {first} AS a){} SELECT * FROM c{times}", steps.collect::<String>())
}

/// Runs the program as a process, since an unbounded allocation would abort the test.
#[tokio::test(flavor = "multi_thread")]
async fn sizes_that_statements_choose_end_nothing() {
    let service = Simulate::start(&["--searches", "1", "--mentions", "50"]);
    let served = Serve::start(&service.base_url, "v4");
    let mut client = served.client().await;
    let postgres = served.postgres().await;
    assert_eq!(all_rows(&mut client, "SELECT 1").await, [["1"]]);
    let before = served.peak();
    let doublings = [
        doubled(40, "a || a", "'x'"),
        doubled(40, "a || a", "arrow_cast('x', 'LargeUtf8')"),
        doubled(40, "concat(a, a)", "'x'"),
        doubled(40, "concat_ws(a, a, a)", "'x'"),
        doubled(40, "[a, a]", "1"),
        doubled(40, "struct(a, a)", "1"),
        doubled(40, "named_struct('l', a, 'r', a)", "1"),
        doubled(40, "{'l': a, 'r': a}", "1"),
        doubled(40, "array_concat(a, a)", "[1]"),
        doubled(40, "overlay(a placing a from 1 for 0)", "'x'"),
        "SELECT regexp_replace(repeat('a', 30000 + value * 0), 'a|' || repeat('b', 30000), repeat('c', 500000), 'g') \
         FROM generate_series(1, 1)"
            .to_owned(),
        "SELECT array_to_string([range(0, 8000 + value * 0)], repeat('x', 900000 + value * 0)) FROM generate_series(1, 1)"
            .to_owned(),
        format!("SELECT concat_ws(repeat('x', 60000){})", ", ''".repeat(1_000)),
        "SELECT a.t FROM (VALUES ('x')) a(t) WHERE EXISTS (SELECT 1 FROM (VALUES ('y')) b(p) WHERE a.t ~ b.p)".to_owned(),
        format!("SELECT arrow_cast(NULL, '{}Utf8{}')", "List(".repeat(50_000), ")".repeat(50_000)),
        doubled(40, "a || a", "repeat('x', n) AS a FROM (VALUES (1), (2)) t(n) WHERE n")
            .replace("WHERE n AS a", "WHERE n > 0"),
    ];
    for sql in LARGE.iter().map(|sql| (*sql).to_owned()).chain(doublings) {
        let shown: String = sql.chars().take(90).collect();
        let refused = tokio::time::timeout(LONGEST, try_rows(&mut client, &sql)).await;
        let refused = refused.unwrap_or_else(|_| panic!("{shown}: no answer"));
        let status = refused.expect_err(&shown);
        assert_eq!(status.code(), Code::ResourceExhausted, "{shown}: {status}");
        let refused = tokio::time::timeout(LONGEST, postgres.simple_query(&sql)).await;
        let refused = match refused.unwrap_or_else(|_| panic!("{shown}: no answer")) {
            // PostgreSQL's front has no lists in lists.
            Err(refused) if format!("{refused:?}").contains("arrays of arrays") => continue,
            Err(refused) => refused,
            // Lists in lists are one list there, whose rows are within the limits.
            Ok(_) if sql.contains("unnest(unnest(") => continue,
            Ok(rows) => panic!("{shown}: {rows:?}"),
        };
        let code = refused.code().map_or("none", |code| code.code());
        assert!(["53200", "53400", "54000"].contains(&code), "{shown}: {code}: {refused:?}");
    }
    // Numbers that do not determine a size are accepted, however large.
    let cases = [
        "SELECT ntile(4294967296) OVER () FROM generate_series(1, 3)",
        "SELECT lag(value, 4294967296) OVER () FROM generate_series(1, 3)",
        "SELECT value, max(value) FROM generate_series(1, 3) GROUP BY value ORDER BY max(value) DESC LIMIT 4294967296",
        "SELECT DISTINCT value FROM generate_series(1, 3) ORDER BY value LIMIT 4294967296",
        "SELECT sum(value) OVER (ROWS BETWEEN 4294967296 PRECEDING AND CURRENT ROW) FROM generate_series(1, 3)",
    ];
    each_async(cases, async |sql| {
        assert_eq!(all_rows(&mut client, sql).await.len(), 3, "{sql}");
    })
    .await;
    assert_eq!(all_rows(&mut served.client().await, "SELECT 1").await, [["1"]]);
    let grown = served.peak() - before;
    assert!(grown < 1_024, "memory grew by {grown} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_bounded_gives_what_the_engine_gives() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let plain = SessionContext::new();
    let cases = [
        "repeat('ab', 3), lpad('x', 5), rpad('x', 5, 'yz'), repeat(t, n), lpad(t, n, '-'), rpad(t, 2)",
        "array_repeat(n, 3), array_repeat([1, 2], 2), array_resize([1, 2], 4, 0), array_resize([n], 1)",
        "range(5), range(1, n), range(1, 10, 3), generate_series(3, 1, -1), generate_series(n)",
        "range(DATE '2026-01-01', DATE '2026-03-01', INTERVAL '1 month')",
        "generate_series(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-02', INTERVAL '6 hours')",
        "replace(t, 'a', 'bb'), regexp_replace(t, 'b+', '<$0>', 'g'), array_to_string([1, NULL, n], ',', '*')",
        "concat(t, n, NULL), concat_ws('-', t, NULL, 'z'), t || '!' || t, 'x' || NULL, t || n::text, n || t",
        "[1, 2] || [3], [n] || 4, make_array(n, 1), array_append([1], n), array_prepend(n, [1]), array_concat([1], [n])",
        "levenshtein(t, 'abc'), regexp_like(t, '^a'), regexp_count(t, 'a'), regexp_match(t, '(a)(b*)'), t ~ 'a.c'",
        "arrow_cast(n, 'Int32'), arrow_cast(t, 'LargeUtf8'), arrow_cast(NULL, 'FixedSizeBinary(4)'), n::text || t",
        "approx_percentile_cont(n, 0.5) OVER (), count(*) OVER (PARTITION BY t || 'x')",
    ];
    each_async(cases, async |expressions| {
        let sql = format!("SELECT {expressions} FROM (VALUES ('abc', 2), ('', 0), (NULL, 5), ('aab', NULL)) v(t, n)");
        let expected =
            rows(&plain.sql(&sql).await.unwrap().collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")));
        assert_eq!(all_rows(&mut client, &sql).await, expected, "{sql}");
    })
    .await;
    let percentile = "SELECT approx_percentile_cont(value, 0.5, 200), approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY value) FROM generate_series(1, 9)";
    let expected = rows(&plain.sql(percentile).await.unwrap().collect().await.unwrap());
    assert_eq!(all_rows(&mut client, percentile).await, expected);
    let named = all_rows(&mut client, "DESCRIBE (SELECT 'a' || 'b', concat('a', 'b'))").await;
    assert_eq!(named.len(), 2, "{named:?}");
    // The replacements keep the names of the functions, and return NULL if these do.
    let cases = [
        "SELECT t || u, count(*) FROM (VALUES ('a', 'b'), ('a', 'c')) v(t, u) GROUP BY ROLLUP(t || u) ORDER BY 1 NULLS LAST",
        "SELECT k, count(*) FROM (SELECT 'a' || 'b' AS k UNION ALL SELECT 'ab' AS k) GROUP BY k",
        "SELECT approx_percentile_cont(value, 1), approx_percentile_cont(value, 1 - 0.05) FROM generate_series(1, 9)",
        "SELECT array_to_string([[1, 2], [3, NULL]], ',', '*'), overlay('abc' placing 'x' from 2), struct('a', 1)",
        "SELECT unnest(l), unnest(unnest(m)), t FROM (VALUES ([1, 2], [[1], [2, 3]], 'a'), ([], [[]], 'b'), (NULL, NULL, 'c')) v(l, m, t)",
        "SELECT a.t, b.t FROM (VALUES ('a', 1), ('b', 2)) a(t, k) LEFT JOIN (VALUES ('c', 1), ('d', 1)) b(t, k) ON a.k = b.k ORDER BY 1, 2",
        "SELECT k, array_agg(t) OVER (PARTITION BY k ORDER BY t), string_agg(t, ',') OVER (PARTITION BY k), lag(t) OVER (ORDER BY t), \
         max(t) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) \
         FROM (VALUES ('a', 1), ('b', 2), ('c', 1), (NULL, NULL), ('d', NULL)) v(t, k) ORDER BY k, t",
        "SELECT {'a': 1, 'b': 'x'}, struct(1 AS a, 2 AS b), named_struct('a', 1)",
    ];
    each_async(cases, async |sql| {
        let expected = rows(&plain.sql(sql).await.unwrap().collect().await.unwrap());
        assert_eq!(all_rows(&mut client, sql).await, expected, "{sql}");
    })
    .await;
    let grouped = "SELECT count(*) FROM (SELECT 1 a, 2 b, 3 c) GROUP BY CUBE(a, b, c)";
    assert_eq!(all_rows(&mut client, grouped).await.len(), 8);
}

/// Calls a method with a message that never ends.
async fn call_without_an_end(channel: Channel, method: &str) -> Status {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path = PathAndQuery::try_from(format!("/arrow.flight.protocol.FlightService/{method}")).unwrap();
    let messages = futures::stream::pending::<Bytes>();
    let answer = tokio::time::timeout(LONGEST, grpc.streaming(Request::new(messages), path, Raw)).await;
    match answer.expect("a response before the message ends") {
        Err(status) => status,
        Ok(answer) => answer.into_inner().try_collect::<Vec<Bytes>>().await.expect_err("refused"),
    }
}

async fn for_users() -> Served {
    Served::with(corpus(), Settings::default(), |spec| spec.host.auth = Auth::Users(users())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_before_their_messages_are_taken_in() {
    let served = for_users().await;
    for method in
        ["GetFlightInfo", "PollFlightInfo", "GetSchema", "DoGet", "DoPut", "DoAction", "DoExchange", "ListFlights"]
    {
        let status = call_without_an_end(served.channel().await, method).await;
        assert_eq!(status.code(), Code::Unauthenticated, "{method}: {status}");
    }
    // A handshake may carry credentials in its body, whose size is limited.
    let mut grpc = Grpc::new(served.channel().await).max_encoding_message_size(usize::MAX);
    grpc.ready().await.unwrap();
    let path = PathAndQuery::from_static("/arrow.flight.protocol.FlightService/Handshake");
    let messages = futures::stream::iter([Bytes::from(vec![0; 10 << 20])]);
    let refused = grpc.streaming(Request::new(messages), path, Raw).await.map(drop).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_stand_there_keep_nobody_out() {
    let served = for_users().await;
    let address = served.server.address();
    // More than the limit of unauthenticated connections: the oldest are closed.
    let mut strangers: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"P").unwrap();
            stream
        })
        .collect();
    let mut client = FlightSqlServiceClient::new(served.channel().await);
    client.handshake("ada", "swordfish").await.unwrap();
    assert_eq!(all_rows(&mut client, "SELECT 1").await, [["1"]]);
    let first = &mut strangers[0];
    first.set_read_timeout(Some(LONGEST)).unwrap();
    // Skips the server's preface and waits for the connection to close.
    let closed = loop {
        match first.read(&mut [0; 1_024]) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
        }
    };
    assert!(closed, "the oldest unauthenticated connection is still open");
    assert_eq!(all_rows(&mut client, "SELECT 1").await, [["1"]], "the authenticated connection stays open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_so_many_calls_at_a_time() {
    let served = Served::with(corpus(), Settings::default(), |spec| spec.host.limits.streams_per_connection = 2).await;
    let channel = served.channel().await;
    let held: Vec<_> = (0..2)
        .map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move { call_without_an_end(channel, "Handshake").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut client = Client::new(channel.clone());
    let third = tokio::time::timeout(Duration::from_secs(1), try_rows(&mut client, "SELECT 1")).await;
    assert!(third.is_err(), "a third call was answered");
    held.into_iter().for_each(|call| call.abort());
    let third = tokio::time::timeout(LONGEST, try_rows(&mut client, "SELECT 1")).await;
    assert_eq!(third.unwrap().unwrap(), [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessers_keep_nobody_out() {
    let served = for_users().await;
    let guessing: Vec<_> = (0..150)
        .map(|number| {
            let address = format!("http://{}", served.server.address());
            tokio::spawn(async move {
                let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
                let mut client = FlightSqlServiceClient::new(channel);
                let user = if number % 2 == 0 { "ada" } else { "nobody" };
                let mut wrong = 0_u64;
                loop {
                    let guess = format!("guess {number} {wrong}");
                    client.handshake(user, &guess).await.expect_err("a wrong password");
                    wrong += 1;
                    // On a closed connection the call fails without waiting.
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..2 {
        let mut client = FlightSqlServiceClient::new(served.channel().await);
        let known = tokio::time::timeout(LONGEST, client.handshake("ada", "swordfish")).await;
        known.expect("a login in time").expect("the right password is accepted");
        assert_eq!(all_rows(&mut client, "SELECT 1").await, [["1"]]);
    }
    guessing.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_computes_for_long_holds_up_nobody_else() {
    let served = Served::with(corpus(), Settings::default(), |spec| spec.host.limits.statement_seconds = 600).await;
    let mut busy = Vec::new();
    let one = served.channel().await;
    for _ in 0..4 {
        // All in one session.
        let mut client = Client::new(one.clone());
        busy.push(tokio::spawn(async move {
            let sql = "SELECT count(*) FROM generate_series(1, 30000) a(v), generate_series(1, 30000) b(v) WHERE a.v * b.v = 7";
            try_rows(&mut client, sql).await
        }));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..3 {
        let mut client = served.client().await;
        let answer = tokio::time::timeout(LONGEST, try_rows(&mut client, "SELECT count(*) FROM mentions"));
        assert_eq!(answer.await.expect("a response while others compute").unwrap().len(), 1);
    }
    busy.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_leaves_behind_is_counted() {
    let small = |spec: &mut datafusion_saved_search::flight::ServerSpec| spec.host.limits.memory_mib = 32;
    let text = |number: usize| format!("SELECT {number} AS n, '{}' AS t", "x".repeat(900_000));
    let (mut prepared, mut views, mut pending) = (0, 0, 0);
    let served = Served::with(corpus(), Settings::default(), small).await;
    let mut client = served.client().await;
    let mut kept = Vec::new();
    let refused = loop {
        match client.prepare(text(prepared), None).await {
            Ok(statement) => kept.push(statement),
            Err(error) => break status(error),
        }
        prepared += 1;
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let served = Served::with(corpus(), Settings::default(), small).await;
    let mut client = served.client().await;
    let refused = loop {
        match try_rows(&mut client, &format!("CREATE VIEW v{views} AS {}", text(views))).await {
            Ok(_) => views += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // Dropping a view releases its memory.
    try_rows(&mut client, "DROP VIEW v0").await.unwrap();
    try_rows(&mut client, &format!("CREATE VIEW v0 AS {}", text(0))).await.unwrap();
    let served = Served::with(corpus(), Settings::default(), small).await;
    let mut client = served.client().await;
    let refused = loop {
        match client.execute(text(pending), None).await {
            Ok(_) => pending += 1,
            Err(error) => break status(error),
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    for (what, count) in [("statements", prepared), ("views", views), ("results", pending)] {
        assert!((4..60).contains(&count), "{count} {what} of 0.9 MB fitted into 32 MiB");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_values_are_rows() {
    let served = Served::new().await;
    let mut client = served.client().await;
    for (number, fits) in [(1_000, true), (1 << 40, false)] {
        let nothing: ArrayRef = Arc::new(NullArray::new(number));
        let batch = RecordBatch::try_from_iter([("nothing", nothing)]).unwrap();
        let command =
            CommandStatementIngest { table: "t".into(), temporary: true, ..CommandStatementIngest::default() };
        let mut messages = batches_to_flight_data(&batch.schema(), vec![batch.clone()]).unwrap();
        messages[0].flight_descriptor = Some(FlightDescriptor::new_cmd(command.as_any().encode_to_vec()));
        let taken = client.do_put(futures::stream::iter(messages)).await;
        let taken = match taken {
            Ok(answers) => answers.try_collect::<Vec<_>>().await.map(drop),
            Err(error) => Err(status(error)),
        };
        assert_eq!(taken.is_ok(), fits, "{taken:?}");
    }
    assert_eq!(refusal(&mut client, "SELECT * FROM nowhere").await.code(), Code::InvalidArgument);
}
