//! Whatever clients may send: each has its code and its line, nothing is given away, and the server lives on.

use std::time::Duration;

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

use super::{Served, all_rows};
use crate::support::{corpus, knob, runner};

/// Messages as bytes, so that they need not be any.
#[derive(Debug, Clone, Copy, Default)]
struct Raw;

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

/// Calls a method with any bytes and reads what comes.
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
    let command = CommandStatementQuery { query: format!("SELECT '{}'", "x".repeat(10 << 20)), transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let refused = call(served.channel().await, "GetFlightInfo", descriptor.encode_to_vec().into()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("1048576 are allowed"), "{refused}");
    assert_eq!(all_rows(&mut served.client().await, "SELECT 1").await, [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_have_an_end() {
    let served = Served::new().await;
    let mut client = served.client().await;
    client.set_header("x-much", "y".repeat(100 << 10));
    client.execute("SELECT 1".to_owned(), None).await.expect_err("too large a header");
    assert_eq!(all_rows(&mut served.client().await, "SELECT 1").await, [["1"]]);
}

/// Messages that are none, or nearly some.
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
    // Some of them with a byte changed, or cut.
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

/// The message of a method with a payload inside, or the payload alone.
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
        (spec.limits.results, spec.limits.statements) = (100_000, 100_000);
        spec.limits.keep_alive_ms = 60_000;
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
            let answered = runtime.block_on(async {
                tokio::time::timeout(Duration::from_secs(20), call(channel.clone(), method, sent)).await
            });
            let answered = answered.map_err(|_| TestCaseError::fail(format!("{method}: no answer")))?;
            if let Err(status) = answered {
                // A message that is no protobuf is the transport's to refuse, and it says so.
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_says_so() {
    let served = Served::new().await;
    let mut client = FlightServiceClient::new(served.channel().await);
    for (action, told) in [
        ("BeginTransaction", "no transactions"),
        ("CreatePreparedSubstraitPlan", "Substrait"),
        ("Dance", "no action `Dance`"),
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
