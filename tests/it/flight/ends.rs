//! Results that end early: clients that disconnect, cancel or stop reading, and limits.

use std::io::{Read, Write};
use std::time::Duration;

use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, Any, CommandStatementQuery, ProstMessageExt,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, FlightDescriptor, FlightInfo, RenewFlightEndpointRequest,
};
use chrono::{DateTime, Utc};
use datafusion_saved_search::flight::ServerSpec;
use datafusion_saved_search::simulator::Settings;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::{Client, Served, all_rows, fetch, refusal, status};
use crate::support::{ALONE, BIG, LONGEST, corpus, each, expect_closed, pages, settled};

/// Query that reads several pages in sequence.
fn long() -> String {
    format!(
        "SELECT * FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01' AND published_at < '2026-07-02'"
    )
}

const PAGE: Duration = Duration::from_millis(150);

/// Waits until no more requests are sent to the service: a query that went on would read all pages.
async fn is_quiet(served: &Served) {
    let sent = settled(|| served.simulator.requests()).await;
    let since: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    let mentions = &served.simulator.corpus().search(BIG).unwrap().mentions;
    let all = pages(mentions.iter().filter(|mention| mention.facts.published >= since).count() as u64);
    assert!(sent < all, "{sent} of {all} pages: the query went on to its end");
    let places = all_rows(&mut served.client().await, "SELECT 1").await;
    assert_eq!(places, [["1"]]);
}

/// Waits until the service has received so many requests.
async fn asked(served: &Served, requests: u64) {
    let waited = async {
        while served.simulator.requests() < requests {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONGEST, waited).await.expect("requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_takes_its_requests_along_at_any_stage() {
    // One request at a time, so that skipped requests are visible.
    let slow = async || {
        let served = Served::slow(PAGE, |_| {}).await;
        let mut client = served.client().await;
        all_rows(&mut client, "SET savedsearch.concurrency = 1").await;
        (served, client)
    };
    // While a table is created in GetFlightInfo.
    let (served, mut client) = slow().await;
    let making = tokio::spawn(async move { client.execute(format!("CREATE TABLE t AS {}", long()), None).await });
    asked(&served, 2).await;
    making.abort();
    is_quiet(&served).await;

    // Before the first row.
    let (served, mut client) = slow().await;
    let info = client.execute(long(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let reading = tokio::spawn(async move { client.do_get(ticket).await.unwrap().try_collect::<Vec<_>>().await });
    asked(&served, 1).await;
    reading.abort();
    is_quiet(&served).await;

    // In the middle, by dropping the stream while the connection stays open.
    let (served, mut client) = slow().await;
    let info = client.execute(long(), None).await.unwrap();
    let mut stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    asked(&served, 3).await;
    drop(stream);
    is_quiet(&served).await;
}

async fn cancelled(cancel: impl AsyncFnOnce(&mut Client, FlightInfo)) {
    let served = Served::slow(PAGE, |_| {}).await;
    let mut client = served.client().await;
    all_rows(&mut client, "SET savedsearch.concurrency = 1").await;
    let info = client.execute(long(), None).await.unwrap();
    let mut stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    asked(&served, 2).await;
    cancel(&mut client, info.clone()).await;
    let ended = async {
        loop {
            match stream.next().await.expect("an error") {
                Ok(_) => {}
                Err(error) => break status(error),
            }
        }
    };
    assert_eq!(ended.await.code(), Code::Cancelled);
    is_quiet(&served).await;
    assert_eq!(fetch(&mut client, &info).await.unwrap_err().code(), Code::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_cancelled_by_either_action() {
    cancelled(async |client, info| {
        let action = Action::new("CancelFlightInfo", CancelFlightInfoRequest::new(info).encode_to_vec());
        let answer = client.inner_mut().do_action(action).await.unwrap().into_inner().message().await.unwrap().unwrap();
        assert_eq!(CancelFlightInfoResult::decode(answer.body).unwrap().status, 1);
    })
    .await;
    cancelled(async |client, info| {
        let request = ActionCancelQueryRequest { info: info.encode_to_vec().into() };
        let action = Action::new("CancelQuery", request.as_any().encode_to_vec());
        let answer = client.inner_mut().do_action(action).await.unwrap().into_inner().message().await.unwrap().unwrap();
        let answer: ActionCancelQueryResult = Any::decode(answer.body).unwrap().unpack().unwrap().unwrap();
        assert_eq!(answer.result, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_can_be_fetched_again_and_kept_for_longer() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let info = client.execute("SELECT name FROM saved_searches ORDER BY aid".to_owned(), None).await.unwrap();
    let first = fetch(&mut client, &info).await.unwrap();
    let endpoint = info.endpoint[0].clone();
    assert!(endpoint.expiration_time.is_some());
    let renew = RenewFlightEndpointRequest { endpoint: Some(endpoint) };
    let action = Action::new("RenewFlightEndpoint", renew.encode_to_vec());
    client.inner_mut().do_action(action).await.unwrap().into_inner().message().await.unwrap().unwrap();
    assert_eq!(fetch(&mut client, &info).await.unwrap(), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_filled_with_empty_batches() {
    let served = Served::slow(Duration::from_millis(400), |spec| spec.host.limits.keep_alive_ms = 50).await;
    let mut client = served.client().await;
    let info = client.execute(format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1"), None).await.unwrap();
    let batches = fetch(&mut client, &info).await.unwrap();
    assert!(batches.iter().filter(|batch| batch.num_rows() == 0).count() >= 2, "{}", batches.len());
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
}

/// Status of a query on a server with the given limits.
async fn limited(change: impl FnOnce(&mut datafusion_saved_search::host::Limits), sql: &str) -> Status {
    let served = Served::slow(Duration::from_millis(40), |spec| change(&mut spec.host.limits)).await;
    refusal(&mut served.client().await, sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_limit_has_its_code_and_its_line() {
    let cases = [
        (
            limited(|limits| limits.statement_bytes = 9, "SELECT 10000").await,
            Code::ResourceExhausted,
            "12 bytes, the limit is 9",
        ),
        (limited(|limits| limits.result_bytes = 999, &long()).await, Code::ResourceExhausted, "larger than 999 bytes"),
        (limited(|limits| limits.statement_seconds = 0, &long()).await, Code::DeadlineExceeded, "timed out after 0 s"),
        (
            limited(|limits| limits.streams = 0, "SELECT 1").await,
            Code::ResourceExhausted,
            "running queries: the server is limited to 0",
        ),
        (
            limited(|limits| limits.streams_per_session = 0, "SELECT 1").await,
            Code::ResourceExhausted,
            "running queries: the session is limited to 0",
        ),
        (
            limited(|limits| limits.results = 0, "SELECT 1").await,
            Code::ResourceExhausted,
            "too many results: the session is limited to 0",
        ),
        (
            limited(|limits| limits.sessions = 0, "SELECT 1").await,
            Code::ResourceExhausted,
            "too many sessions: the server is limited to 0",
        ),
        (
            limited(|limits| limits.temporary_bytes = 99, &format!("CREATE TABLE t AS {}", long())).await,
            Code::ResourceExhausted,
            "exceed 99 bytes",
        ),
        (
            limited(|limits| limits.memory_mib = 0, &format!("SELECT * FROM ({}) ORDER BY text", long())).await,
            Code::ResourceExhausted,
            "memory",
        ),
    ];
    each(cases, |(status, code, told)| {
        assert_eq!(status.code(), code, "{told}: {status}");
        assert!(status.message().contains(told) && !status.message().contains('\n'), "{told}: {status}");
    });
    // A session can reuse what it has released.
    let served = Served::with(corpus(), Settings::default(), |spec| spec.host.limits.temporary_bytes = 20_000).await;
    let mut client = served.client().await;
    let table = |name: &str| format!("CREATE TABLE {name} AS SELECT repeat('x', 20) AS a FROM generate_series(1, 600)");
    for _ in 0..4 {
        all_rows(&mut client, &table("one")).await;
        let refused = refusal(&mut client, &table("two")).await;
        assert!(refused.message().contains("exceed 20000 bytes"), "{refused}");
        all_rows(&mut client, "DROP TABLE one").await;
    }
    let served = Served::with(corpus(), Settings::default(), |spec| spec.host.limits.statements = 1).await;
    let mut client = served.client().await;
    let first = client.prepare("SELECT 1".to_owned(), None).await.unwrap();
    let refused = client.prepare("SELECT 2".to_owned(), None).await.unwrap_err().to_string();
    assert!(refused.contains("too many prepared statements: the session is limited to 1"), "{refused}");
    first.close().await.unwrap();
    client.prepare("SELECT 2".to_owned(), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_no_more_loses_its_result_and_its_place() {
    let served = Served::with(corpus(), Settings::default(), |spec| {
        // Long enough for another query to be refused meanwhile.
        (spec.host.limits.unread_seconds, spec.host.limits.streams) = (10, 1);
    })
    .await;
    let mut client = served.client().await;
    // More than all buffers between server and client hold.
    let sql = "SELECT repeat(repeat('x', 1000), 100) AS a FROM generate_series(1, 2000)";
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    let mut stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    assert_eq!(refusal(&mut served.client().await, "SELECT 1").await.code(), Code::ResourceExhausted);
    let other = async {
        let mut client = served.client().await;
        while super::try_rows(&mut client, "SELECT 1").await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(LONGEST, other).await.expect("the permit is released");
    let ended = loop {
        match stream.next().await.expect("an error") {
            Ok(_) => {}
            Err(error) => break status(error),
        }
    };
    assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended}");
    assert!(ended.message().contains("did not read the result"), "{ended}");
}

async fn codes(fault: &str, sql: &str) -> Status {
    let settings = Settings { faults: vec![fault.parse().unwrap()], ..Settings::default() };
    let served = Served::with(corpus(), settings, |_| {}).await;
    let mut client = served.client().await;
    all_rows(&mut client, "SET savedsearch.query_deadline = 2").await;
    refusal(&mut client, sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_service_does_wrong_has_its_code() {
    let one = format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1");
    for (fault, code) in [
        ("500", Code::Unavailable),
        ("429:retry-after=600", Code::ResourceExhausted),
        ("401", Code::FailedPrecondition),
    ] {
        let status = codes(fault, &one).await;
        assert_eq!(status.code(), code, "{fault}: {status}");
    }
    let served = Served::new().await;
    let mut client = served.client().await;
    for (sql, code) in [
        ("SELECT id FROM mentions WHERE aid = '000'", Code::NotFound),
        ("SELECT 1 / (aid::bigint - aid::bigint) FROM saved_searches", Code::InvalidArgument),
        ("SELECT * FROM mentions WHERE published_at < '2026-01-01'", Code::InvalidArgument),
    ] {
        let status = refusal(&mut client, sql).await;
        assert_eq!(status.code(), code, "{sql}: {status}");
    }
    all_rows(&mut client, "SET savedsearch.max_requests = 1").await;
    assert_eq!(refusal(&mut client, &long()).await.code(), Code::ResourceExhausted);
}

pub(super) fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    (text[9..12].parse().unwrap(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics_are_told_and_the_end_waits_for_those_who_read() {
    let change = |spec: &mut ServerSpec| {
        (spec.listen, spec.host.operations) = (ALONE.parse().unwrap(), Some("127.0.0.1:0".parse().unwrap()));
    };
    let served = Served::slow(PAGE, change).await;
    let operations = served.server.operations().unwrap();
    let mut client = served.client().await;
    let (first, requests) = served.cost(all_rows(&mut client, &long())).await;
    refusal(&mut client, "SELECT nothing").await;
    assert_eq!(get(operations, "/healthz").0, 200);
    let (code, text) = get(operations, "/metrics");
    assert_eq!(code, 200);
    let cases = [
        format!("savedsearch_rows_total {}", first.len()),
        format!("savedsearch_query_requests_total {requests}"),
        format!("savedsearch_upstream_requests {requests}"),
        "savedsearch_queries_total{outcome=\"ok\"} 1".to_owned(),
        "savedsearch_calls_total{kind=\"CommandStatementQuery\",code=\"invalid_argument\"} 1".to_owned(),
        "savedsearch_sessions 1".to_owned(),
        "savedsearch_queries_running 0".to_owned(),
        "savedsearch_logins_rejected_total{reason=\"no_login\"} 0".to_owned(),
        format!("savedsearch_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
    ];
    each(cases, |line| {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    });
    // The dashboard asks for nothing else.
    let dashboard = include_str!("../../../packaging/grafana-dashboard.json");
    let names: std::collections::BTreeSet<&str> = dashboard
        .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .filter(|name| name.starts_with("savedsearch_"))
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let family = ["_total", "_bucket", "_info"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(text.contains(&format!("# TYPE {family} ")), "{name}\n{text}");
    }
    let mut health = HealthClient::new(served.channel().await);
    let service = "arrow.flight.protocol.FlightService".to_owned();
    let answer = health.check(HealthCheckRequest { service }).await.unwrap().into_inner();
    assert_eq!(answer.status, 1, "serving");

    // A running query finishes; new connections are refused.
    let info = client.execute(long(), None).await.unwrap();
    let stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    let address = served.server.address();
    let ending = tokio::spawn(served.server.shut_down());
    let rest: Vec<_> = stream.try_collect().await.unwrap();
    assert_eq!(rest.iter().map(|batch| batch.num_rows()).sum::<usize>(), first.len());
    ending.await.unwrap().unwrap();
    expect_closed(address).await;
}

/// A client closes its statement after the last row of a query that the shutdown has waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_close_its_statement_after_the_last_query() {
    let served = Served::slow(PAGE, |_| {}).await;
    let mut client = served.client().await;
    let mut prepared = client.prepare(long(), None).await.unwrap();
    let info = prepared.execute().await.unwrap();
    let mut stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    let address = served.server.address();
    let ending = tokio::spawn(served.server.shut_down());
    stream.try_collect::<Vec<_>>().await.unwrap();
    prepared.close().await.unwrap();
    ending.await.unwrap().unwrap();
    expect_closed(address).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_requests_wait_is_counted() {
    let settings = Settings { faults: vec!["429:retry-after=1@1".parse().unwrap()], ..Settings::default() };
    let served =
        Served::with(corpus(), settings, |spec| spec.host.operations = Some("127.0.0.1:0".parse().unwrap())).await;
    let operations = served.server.operations().unwrap();
    let waited = || {
        let (_, text) = get(operations, "/metrics");
        let found = text.lines().find_map(|line| line.strip_prefix("savedsearch_throttle_wait_seconds_total "));
        found.unwrap_or_else(|| panic!("{text}")).parse::<f64>().unwrap()
    };
    assert!(waited() < 0.001);
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1");
    assert_eq!(all_rows(&mut served.client().await, &sql).await.len(), 1);
    let waited = waited();
    assert!((0.5..60.0).contains(&waited), "{waited}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_comes_too_late_is_told() {
    let served = Served::slow(Duration::from_secs(5), |spec| spec.host.limits.drain_seconds = 0).await;
    let mut client = served.client().await;
    let info = client.execute(long(), None).await.unwrap();
    let stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    asked(&served, 1).await;
    let ending = tokio::spawn(served.server.shut_down());
    let ended = status(stream.try_collect::<Vec<_>>().await.unwrap_err());
    assert_eq!(ended.code(), Code::Cancelled, "{ended}");
    ending.await.unwrap().unwrap();
}

/// Many clients of one key: a short query does not have to wait until a long one has finished.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_query_has_its_turn_beside_a_long_one() {
    let settings = Settings { delay: PAGE, ..Settings::default() };
    let served = Served::with(crate::queries::corpus(), settings, |_| {}).await;
    let mut greedy = served.client().await;
    let mut modest = served.client().await;
    all_rows(&mut greedy, "SET savedsearch.concurrency = 16").await;
    let info = greedy.execute(long(), None).await.unwrap();
    let mut stream = greedy.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    let reading = tokio::spawn(async move { stream.try_collect::<Vec<_>>().await });
    // Sixteen requests of the long query are queued; without fair scheduling all of them would be sent first.
    let (_, meanwhile) =
        served.cost(all_rows(&mut modest, &format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1"))).await;
    assert!(meanwhile <= 12, "{meanwhile} requests were sent meanwhile");
    assert!(!reading.is_finished(), "the long query is still running");
    reading.await.unwrap().unwrap();
}

/// A dashboard that retries while the service is down is not locked out.
#[tokio::test(flavor = "multi_thread")]
async fn results_that_failed_make_room_for_others() {
    let settings = Settings { faults: vec!["500@1-".parse().unwrap()], ..Settings::default() };
    let served = Served::with(corpus(), settings, |spec| spec.host.limits.results = 2).await;
    let mut client = served.client().await;
    all_rows(&mut client, "SET savedsearch.query_deadline = 1").await;
    for _ in 0..4 {
        let refused = refusal(&mut client, &format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1")).await;
        assert_ne!(refused.code(), Code::ResourceExhausted, "{refused}");
    }
    assert_eq!(all_rows(&mut client, "SELECT 1").await, [["1"]]);
}

/// A command can be sent as a ticket, without GetFlightInfo.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_does_for_a_ticket() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let command = CommandStatementQuery { query: "SELECT 42".to_owned(), transaction_id: None };
    let ticket = arrow_flight::Ticket::new(command.as_any().encode_to_vec());
    let stream = client.do_get(ticket).await.unwrap();
    assert_eq!(stream.try_collect::<Vec<_>>().await.unwrap()[0].num_rows(), 1);
    let info = client.inner_mut().get_flight_info(FlightDescriptor::new_path(vec!["a".into()])).await.unwrap_err();
    assert_eq!(info.code(), Code::InvalidArgument);
}
