//! Malformed and hostile messages: each is answered with a status, nothing is disclosed, and the server survives.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, CommandGetTables,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementSubstraitPlan, CommandStatementUpdate, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, HandshakeRequest, Ticket};
use bytes::{Buf, BufMut, Bytes};
use datafusion_saved_search::simulator::{KEY, Settings};
use futures::TryStreamExt;
use http::uri::PathAndQuery;
use proptest::prelude::*;
use prost::Message;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::load::Serve;
use super::{Served, all_rows, refusal};
use crate::binary::Simulate;
use crate::support::{LONGEST, corpus, each_async, knob, runner};

/// Codec for raw bytes, so that invalid messages can be sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Calls a method with arbitrary bytes and reads the response.
async fn call(channel: Channel, method: &str, bytes: Bytes) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel).max_encoding_message_size(usize::MAX);
    grpc.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let path = PathAndQuery::try_from(format!("/arrow.flight.protocol.FlightService/{method}")).unwrap();
    let messages = futures::stream::iter([bytes]);
    let answer = grpc.streaming(Request::new(messages), path, Raw).await?;
    answer.into_inner().try_collect::<Vec<Bytes>>().await.map(drop)
}

const METHODS: [&str; 9] = [
    "Handshake",
    "ListFlights",
    "GetFlightInfo",
    "PollFlightInfo",
    "GetSchema",
    "DoGet",
    "DoPut",
    "DoAction",
    "DoExchange",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_are_too_many() {
    let served = Served::new().await;
    let command = CommandStatementQuery { query: format!("SELECT '{}'", "x".repeat(100 << 20)), transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let message = Bytes::from(descriptor.encode_to_vec());
    let refused = call(served.channel().await, "GetFlightInfo", message).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let command = CommandStatementQuery { query: format!("SELECT '{}'", "x".repeat(3 << 19)), transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let refused = call(served.channel().await, "GetFlightInfo", descriptor.encode_to_vec().into()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("the limit is 1048576"), "{refused}");
    let command = CommandStatementQuery { query: format!("SELECT '{}'", "x".repeat(10 << 20)), transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let refused = call(served.channel().await, "GetFlightInfo", descriptor.encode_to_vec().into()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("the limit is 2097152"), "{refused}");
    assert_eq!(all_rows(&mut served.client().await, "SELECT 1").await, [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_have_an_end() {
    let served = Served::new().await;
    let mut client = served.client().await;
    client.set_header("x-much", "y".repeat(100 << 10));
    client.execute("SELECT 1".to_owned(), None).await.expect_err("the header is too large");
    assert_eq!(all_rows(&mut served.client().await, "SELECT 1").await, [["1"]]);
}

/// Random bytes, valid messages and damaged messages.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof!["\\PC{0,40}", Just("SELECT 1".to_owned()), Just("SET savedsearch.partial = on".to_owned())];
    let bytes = || proptest::collection::vec(any::<u8>(), 0..60);
    let command = (text, bytes()).prop_flat_map(|(text, bytes)| {
        let handle = Bytes::from(bytes);
        prop_oneof![
            Just(CommandStatementQuery { query: text.clone(), transaction_id: None }.as_any()),
            Just(CommandStatementQuery { query: text.clone(), transaction_id: Some(handle.clone()) }.as_any()),
            Just(CommandStatementUpdate { query: text.clone(), transaction_id: None }.as_any()),
            Just(CommandStatementSubstraitPlan::default().as_any()),
            Just(
                CommandStatementIngest { table: text.clone(), temporary: true, ..CommandStatementIngest::default() }
                    .as_any()
            ),
            Just(CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() }.as_any()),
            Just(CommandPreparedStatementUpdate { prepared_statement_handle: handle.clone() }.as_any()),
            Just(TicketStatementQuery { statement_handle: handle.clone() }.as_any()),
            Just(
                CommandGetTables { table_name_filter_pattern: Some(text.clone()), ..CommandGetTables::default() }
                    .as_any()
            ),
            Just(ActionCreatePreparedStatementRequest { query: text, transaction_id: None }.as_any()),
            Just(ActionClosePreparedStatementRequest { prepared_statement_handle: handle }.as_any()),
        ]
    });
    let command = command.prop_map(|any| any.encode_to_vec());
    // Some with one byte changed, or truncated.
    let hurt = (command.clone(), any::<prop::sample::Index>(), any::<u8>(), any::<bool>()).prop_map(
        |(mut message, at, byte, cut)| {
            let at = at.index(message.len());
            if cut {
                message.truncate(at)
            } else {
                message[at] = byte
            }
            message
        },
    );
    prop_oneof![bytes(), command, hurt]
}

/// Builds a method's message around a payload, or returns the payload alone.
fn message(method: &str, payload: Vec<u8>, bare: bool, body: Vec<u8>) -> Bytes {
    if bare {
        return payload.into();
    }
    let descriptor = FlightDescriptor::new_cmd(payload.clone());
    match method {
        "Handshake" => HandshakeRequest { protocol_version: 1, payload: payload.into() }.encode_to_vec(),
        "DoGet" => Ticket::new(payload).encode_to_vec(),
        "DoPut" | "DoExchange" => FlightData {
            flight_descriptor: Some(descriptor),
            data_header: body.clone().into(),
            app_metadata: Bytes::new(),
            data_body: body.into(),
        }
        .encode_to_vec(),
        "DoAction" => {
            let names = ["CreatePreparedStatement", "ClosePreparedStatement", "CancelQuery", "CancelFlightInfo"];
            let more =
                ["RenewFlightEndpoint", "SetSessionOptions", "GetSessionOptions", "BeginTransaction", "\u{7}none"];
            let all = [&names[..], &more[..]].concat();
            Action::new(all[body.len() % all.len()], payload).encode_to_vec()
        }
        _ => descriptor.encode_to_vec(),
    }
    .into()
}

#[test]
fn whatever_is_sent_has_a_code_and_leaves_the_server_alive() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let served = runtime.block_on(Served::with(corpus(), Settings::default(), |spec| {
        (spec.host.limits.results, spec.host.limits.statements) = (100_000, 100_000);
        spec.host.limits.keep_alive_ms = 60_000;
    }));
    let channel = runtime.block_on(served.channel());
    let cases = (
        proptest::sample::select(METHODS.to_vec()),
        payload(),
        any::<bool>(),
        proptest::collection::vec(any::<u8>(), 0..80),
    );
    let outcome =
        runner(knob("FLIGHT_CASES", 600), knob("FLIGHT_SEED", 1)).run(&cases, |(method, payload, bare, body)| {
            let sent = message(method, payload, bare, body);
            let answered =
                runtime.block_on(async { tokio::time::timeout(LONGEST, call(channel.clone(), method, sent)).await });
            let answered = answered.map_err(|_| TestCaseError::fail(format!("{method}: no response")))?;
            if let Err(status) = answered {
                // The transport itself rejects invalid protobuf, with INTERNAL.
                let garbled = status.code() == Code::Internal && status.message().contains("decode Protobuf");
                prop_assert!(
                    garbled || !matches!(status.code(), Code::Internal | Code::Unknown | Code::Unavailable),
                    "{method}: {status:?}"
                );
                prop_assert!(!status.message().contains('\n') && !format!("{status:?}").contains(KEY), "{status:?}");
            }
            Ok(())
        });
    outcome.unwrap_or_else(|failed| panic!("{failed}"));
    let alive = runtime.block_on(async { all_rows(&mut served.client().await, "SELECT 1").await });
    assert_eq!(alive, [["1"]]);
}

/// The declared uncompressed size of a buffer must not be trusted.
#[tokio::test(flavor = "multi_thread")]
async fn compressed_batches_are_refused_before_they_are_believed() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let prepared = client.prepare("SELECT $1".to_owned(), None).await.unwrap();
    drop(prepared);
    let batch =
        RecordBatch::try_from_iter([("a", Arc::new(StringArray::from(vec!["x".repeat(9_000)])) as ArrayRef)]).unwrap();
    for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let options = IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
        let command =
            CommandStatementIngest { table: "t".into(), temporary: true, ..CommandStatementIngest::default() };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let encoder = FlightDataEncoderBuilder::new().with_options(options).with_flight_descriptor(Some(descriptor));
        let messages: Vec<FlightData> =
            encoder.build(futures::stream::iter([Ok(batch.clone())])).try_collect().await.unwrap();
        let answers = client.do_put(futures::stream::iter(messages)).await.map(drop).map_err(super::status);
        assert_eq!(answers.unwrap_err().code(), Code::Unimplemented);
    }
}

/// Short statement whose tables expand to millions.
fn doubled(times: usize) -> String {
    let parts = (1..=times).map(|at| format!(", c{at} AS (SELECT a.a FROM c{0} a JOIN c{0} b ON a.a = b.a)", at - 1));
    format!("WITH c0 AS (SELECT 1 AS a){} SELECT count(*) FROM c{times}", parts.collect::<String>())
}

/// Runs the program as a process, whose threads have the stack size that such statements need.
#[tokio::test(flavor = "multi_thread")]
async fn statements_that_are_nested_deeply_end_nothing() {
    let service = Simulate::start(&["--searches", "1", "--mentions", "50"]);
    let served = Serve::start(&service.base_url, "v4");
    let mut client = served.client().await;
    let postgres = served.postgres().await;
    let chain = |many: usize, with: &str| format!("SELECT 1{}", with.repeat(many));
    assert_eq!(all_rows(&mut client, &chain(900, " + 1")).await, [["901"]]);
    let many = "SELECT 1 WHERE 1 = 1".to_owned() + &" OR 1 = 1".repeat(450);
    assert_eq!(all_rows(&mut client, &many).await, [["1"]]);
    assert_eq!(all_rows(&mut client, &nested_subqueries(8)).await, [["1"]]);
    let cases = [
        (chain(100_000, " + 1"), Code::ResourceExhausted),
        (chain(100_000, "||1"), Code::ResourceExhausted),
        (chain(20_000, " UNION ALL SELECT 1"), Code::ResourceExhausted),
        (format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)), Code::ResourceExhausted),
        (format!("SELECT {}1", "- ".repeat(30_000)), Code::ResourceExhausted),
        (chain(30_000, "::int"), Code::ResourceExhausted),
        (format!("SELECT 1 FROM t{}", ", t".repeat(30_000)), Code::ResourceExhausted),
        (doubled(22), Code::ResourceExhausted),
        (format!("SELECT {}1", "NOT ".repeat(30_000)), Code::ResourceExhausted),
        (chain(100_000, " IN(1)"), Code::ResourceExhausted),
        (chain(30_000, " ILIKE 1"), Code::ResourceExhausted),
        (format!("SELECT {}1", "INTERVAL ".repeat(30_000)), Code::ResourceExhausted),
        (format!("{}SELECT 1", "EXPLAIN ".repeat(30_000)), Code::ResourceExhausted),
        (format!("SELECT {}1{}", "[".repeat(30_000), "]".repeat(30_000)), Code::ResourceExhausted),
        (nested("cast(", " as int)", 48), Code::ResourceExhausted),
        // A syntax error behind nested calls, and calls that the parser reads twice.
        (nested("cast(", " as int)", 24).replace('1', "1 1"), Code::ResourceExhausted),
        (nested("position(", ", 'a')", 24), Code::ResourceExhausted),
        (nested("case when ", " then 1 end", 48), Code::ResourceExhausted),
        (nested("substring(", " from 1)", 60), Code::ResourceExhausted),
        (nested("coalesce(", ", 2)", 24).replace('1', "value") + SERIES, Code::ResourceExhausted),
        (nested("nvl(", ", 2)", 24).replace('1', "value") + SERIES, Code::ResourceExhausted),
        (nested("(", " between 1 and 2)::int", 24).replacen('1', "value", 1) + SERIES, Code::ResourceExhausted),
        (
            nested("case when ", " then value > 2 else value < 3 end", 24).replacen('1', "value > 1", 1) + SERIES,
            Code::ResourceExhausted,
        ),
        // The types of nested branches are asked for again at each level.
        (nested("coalesce(greatest(", ", 2), 2)", 10).replace('1', "value") + SERIES, Code::ResourceExhausted),
        (nested("nvl(- least(", ", 2), 2)", 10).replace('1', "value") + SERIES, Code::ResourceExhausted),
        (nested("coalesce(array_element([", "], 2), 2)", 10).replace('1', "value") + SERIES, Code::ResourceExhausted),
        (
            nested("case when value > 3 then abs(", ") else 2 end", 17).replace('1', "value") + SERIES,
            Code::ResourceExhausted,
        ),
        (
            nested("case when value > 3 then 2 else abs(", ") end", 17).replace('1', "value") + SERIES,
            Code::ResourceExhausted,
        ),
        (added(40), Code::ResourceExhausted),
        (nested_subqueries(9), Code::ResourceExhausted),
        (nested_subqueries(14), Code::ResourceExhausted),
    ];
    each_async(cases, async |(sql, code)| {
        let status = refusal(&mut client, &sql).await;
        assert_eq!(status.code(), code, "{}: {status}", &sql[..40]);
        // Each is read by another parser if it is copied, asks about catalogs, or names a zone.
        let zone = format!("{sql} -- zone");
        let catalog = format!("{sql} -- pg_class");
        for sql in
            [&sql, &zone, &catalog, &format!("COPY ({sql}) TO STDOUT"), &format!("SELECT E'\\'', 'zone', ({sql})")]
        {
            let error = postgres.simple_query(sql).await.expect_err(&sql[..40]);
            let error = error.as_db_error().unwrap_or_else(|| panic!("{}: {error:?}", &sql[..40]));
            assert!(["42601", "42000", "42P01", "54000"].contains(&error.code().code()), "{}: {error:?}", &sql[..40]);
        }
    })
    .await;
    let plain = postgres.simple_query("SELECT 1").await.unwrap();
    assert!(!plain.is_empty());
    assert_eq!(all_rows(&mut served.client().await, "SELECT 1").await, [["1"]]);
}

const SERIES: &str = " FROM generate_series(1, 3)";

/// A call around itself.
fn nested(open: &str, close: &str, levels: usize) -> String {
    format!("SELECT {}1{}", open.repeat(levels), close.repeat(levels))
}

/// A filter that doubles with each of the projections that it passes.
fn added(levels: usize) -> String {
    let steps = (1..=levels).map(|at| format!(", c{at} AS (SELECT value + value AS value FROM c{})", at - 1));
    let steps: String = steps.collect();
    format!("WITH c0 AS (SELECT value FROM generate_series(1, 3)){steps} SELECT * FROM c{levels} WHERE value > 1")
}

/// Subqueries in expressions, one in the other.
fn nested_subqueries(levels: usize) -> String {
    format!("SELECT {}1{}", "(SELECT ".repeat(levels), ")".repeat(levels))
}

/// A computation that never yields does not block other clients and is abandoned at its deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_computation_without_a_pause_keeps_nobody_waiting() {
    let served = Served::with(corpus(), Settings::default(), |spec| {
        (spec.host.limits.statement_seconds, spec.host.operations) = (2, Some("127.0.0.1:0".parse().unwrap()));
    })
    .await;
    let busy =
        "SELECT count(*) FROM generate_series(1, 10000) a(v), generate_series(1, 10000) b(v) WHERE a.v * b.v = 7";
    let computing = (0..3).map(|_| async {
        let mut client = served.client().await;
        refusal(&mut client, busy).await.code()
    });
    let computing = futures::future::join_all(computing);
    let watching = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let operations = served.server.operations().unwrap();
        let health = tokio::task::spawn_blocking(move || super::ends::get(operations, "/healthz").0);
        tokio::time::timeout(LONGEST, health).await.expect("a response").unwrap()
    };
    let (codes, health) = tokio::join!(computing, watching);
    assert_eq!((codes, health), (vec![Code::DeadlineExceeded; 3], 200));
}

/// Clients cannot create metric labels.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_the_names_that_the_server_gives() {
    let served =
        Served::with(corpus(), Settings::default(), |spec| spec.host.operations = Some("127.0.0.1:0".parse().unwrap()))
            .await;
    for number in 0..20 {
        let any = arrow_flight::sql::Any { type_url: format!("type.example.com/Command{number}"), value: Bytes::new() };
        let descriptor = FlightDescriptor::new_cmd(any.encode_to_vec());
        let client = &mut FlightServiceClient::new(served.channel().await);
        assert_eq!(client.get_flight_info(descriptor).await.unwrap_err().code(), Code::Unimplemented);
    }
    let (_, text) = super::ends::get(served.server.operations().unwrap(), "/metrics");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("savedsearch_calls_total")).collect();
    assert_eq!(lines, ["savedsearch_calls_total{kind=\"unknown command\",code=\"unimplemented\"} 20"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_says_so() {
    let served = Served::new().await;
    let mut client = FlightServiceClient::new(served.channel().await);
    for (action, told) in [
        ("BeginTransaction", "transactions are not supported"),
        ("CreatePreparedSubstraitPlan", "Substrait"),
        ("Dance", "unknown action `Dance`"),
    ] {
        let refused = client.do_action(Action::new(action, Vec::new())).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
        assert!(refused.message().contains(told), "{refused}");
    }
    let actions: Vec<_> =
        client.list_actions(arrow_flight::Empty {}).await.unwrap().into_inner().try_collect().await.unwrap();
    assert!(actions.iter().any(|action| action.r#type == "CloseSession") && actions.len() == 8);
    let plan = FlightDescriptor::new_cmd(CommandStatementSubstraitPlan::default().as_any().encode_to_vec());
    assert_eq!(client.get_flight_info(plan).await.unwrap_err().code(), Code::Unimplemented);
    let flights = client.list_flights(arrow_flight::Criteria::default()).await.unwrap().into_inner();
    assert!(flights.try_collect::<Vec<_>>().await.unwrap().is_empty());
}
