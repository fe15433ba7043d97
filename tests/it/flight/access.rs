//! Authentication, authorization and session options.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::Action;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use datafusion_saved_search::client::Secret;
use datafusion_saved_search::flight::{FlightServer, ServerSpec};
use datafusion_saved_search::host::{Auth, PassThrough, TlsSpec, Upstream, Users, hash_password};
use datafusion_saved_search::simulator::{KEY, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Profile};
use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use sha2::{Digest, Sha256};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, IntoRequest, Request, Status};

use super::{Client, Served, all_rows, open, refusal, try_rows};
use crate::support::{BIG, InProcess, LONGEST, OTHER, corpus, each_async, now};

/// Adds the client's token to a request that the client has no method for.
pub(super) fn with_token<T>(client: &Client, message: T) -> Request<T> {
    let mut request = message.into_request();
    if let Some(token) = client.token() {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    request
}

async fn act(client: &mut Client, action: &str, body: Vec<u8>) -> Result<Vec<u8>, Status> {
    let request = with_token(client, Action::new(action, body));
    let mut answers = client.inner_mut().do_action(request).await?.into_inner();
    Ok(answers.message().await?.map(|answer| answer.body.to_vec()).unwrap_or_default())
}

/// Encodes a length-delimited protobuf field by hand, so that the test shares no code with the server.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 128);
    [&[number << 3 | 2, length][..], content].concat()
}

/// Sets a string option; on failure returns the error value.
pub(super) async fn set_option(client: &mut Client, name: &str, value: &str) -> Result<(), u8> {
    let entry = [field(1, name.as_bytes()), field(2, &field(1, value.as_bytes()))].concat();
    let answer = act(client, "SetSessionOptions", field(1, &entry)).await.unwrap();
    // The last byte is the value of the only error, if any.
    answer.last().map_or(Ok(()), |reason| Err(*reason))
}

/// Restores the default of an option; on failure returns the error value.
pub(super) async fn erase_option(client: &mut Client, name: &str) -> Result<(), u8> {
    let entry = [field(1, name.as_bytes()), field(2, &[])].concat();
    let answer = act(client, "SetSessionOptions", field(1, &entry)).await.unwrap();
    answer.last().map_or(Ok(()), |reason| Err(*reason))
}

/// Returns the session's string options.
pub(super) async fn options(client: &mut Client) -> HashMap<String, String> {
    #[derive(Clone, PartialEq, Message)]
    struct Text {
        #[prost(string, tag = "1")]
        text: String,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Options {
        #[prost(map = "string, message", tag = "1")]
        options: HashMap<String, Text>,
    }
    let answer = act(client, "GetSessionOptions", Vec::new()).await.unwrap();
    let options = Options::decode(answer.as_slice()).unwrap().options;
    options.into_iter().map(|(name, value)| (name, value.text)).collect()
}

pub(super) async fn close_session(client: &mut Client) -> Result<(), Status> {
    // CloseSessionResult { status: CLOSED }
    act(client, "CloseSession", Vec::new()).await.map(|answer| assert_eq!(answer, [8, 1]))
}

fn hex(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

pub(crate) fn users() -> Users {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.toml");
    let text = format!(
        "[users.ada]\npassword_hash = \"{}\"\n[users.bob]\ntoken_sha256 = [\"{}\"]\n\
         budget = [{{ requests = 3, seconds = 3600 }}]\n",
        hash_password("swordfish").unwrap(),
        hex("bobs-token")
    );
    std::fs::write(&file, text).unwrap();
    Users::read(&file).unwrap()
}

async fn for_users() -> Served {
    Served::with(corpus(), Settings::default(), |spec| spec.host.auth = Auth::Users(users())).await
}

async fn with_header(served: &Served, name: &'static str, value: &str) -> Client {
    let mut client = served.client().await;
    client.set_header(name, value);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_logs_out_those_who_are_gone_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.toml");
    let write = |names: &[&str]| {
        let entries = names.iter().map(|name| format!("[users.{name}]\ntoken_sha256 = [\"{}\"]\n", hex(name)));
        std::fs::write(&file, entries.collect::<String>()).unwrap();
    };
    write(&["ada", "bob"]);
    let change = |spec: &mut ServerSpec| spec.host.auth = Auth::Users(Users::read(&file).unwrap());
    let served = Served::with(corpus(), Settings::default(), change).await;
    let mut ada = with_header(&served, "authorization", "Bearer ada").await;
    let mut bob = with_header(&served, "authorization", "Bearer bob").await;
    for client in [&mut ada, &mut bob] {
        assert_eq!(all_rows(client, "SELECT 1").await, [["1"]]);
    }
    write(&["ada", "eve"]);
    let reload = served.server.reload();
    reload.run(None).await.unwrap();
    assert_eq!(all_rows(&mut ada, "SELECT 1").await, [["1"]]);
    let mut eve = with_header(&served, "authorization", "Bearer eve").await;
    assert_eq!(all_rows(&mut eve, "SELECT 1").await, [["1"]]);
    // The connection is closed, and a new one is refused.
    let mut status = refusal(&mut bob, "SELECT 1").await;
    for _ in 0..5 {
        if status.code() != Code::Unauthenticated {
            status = refusal(&mut bob, "SELECT 1").await;
        }
    }
    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
    std::fs::write(&file, "nonsense").unwrap();
    assert!(reload.run(None).await.is_err());
    assert_eq!(all_rows(&mut ada, "SELECT 1").await, [["1"]], "the users stay as they are");
    let tls = TlsSpec { certificate: String::new(), key: String::new(), client_authorities: None };
    let error = reload.run(Some(&tls)).await.unwrap_err().to_string();
    assert!(error.contains("TLS can be switched on or off only by a restart"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_come_in_by_whatever_their_driver_sends_and_nobody_else_does() {
    let served = for_users().await;
    // A handshake with a header and no message, as the Go driver sends it.
    let mut raw = FlightServiceClient::new(served.channel().await);
    let mut request = Request::new(futures::stream::empty());
    let basic = format!("Basic {}", BASE64_STANDARD_NO_PAD.encode("ada:swordfish"));
    request.metadata_mut().insert("authorization", basic.parse().unwrap());
    let answer = raw.handshake(request).await.unwrap();
    let bearer = answer.metadata().get("authorization").unwrap().to_str().unwrap().to_owned();
    assert!(answer.into_inner().message().await.unwrap().is_some(), "one response");

    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("authorization", &basic),
        ("authorization", "Bearer bobs-token"),
        ("x-api-key", "bobs-token"),
    ] {
        let mut client = with_header(&served, name, value).await;
        assert_eq!(all_rows(&mut client, "SELECT 1").await, [["1"]], "{name}");
    }
    let wrong = format!("Basic {}", BASE64_STANDARD_NO_PAD.encode("ada:sword"));
    let mut lines = Vec::new();
    let cases = [
        ("authorization", wrong.as_str()),
        ("authorization", "Bearer None"),
        ("authorization", "Bearer sst_forged"),
        ("authorization", "Bearer ada"),
        ("authorization", "nonsense"),
        ("x-api-key", "adas-token"),
        ("x-nothing", "at all"),
    ];
    each_async(cases, async |(name, value)| {
        let status = refusal(&mut with_header(&served, name, value).await, "SELECT 1").await;
        assert_eq!(status.code(), Code::Unauthenticated, "{value}: {status}");
        lines.push(status.message().to_owned());
        let mut client = with_header(&served, name, value).await;
        let action = client.prepare("SELECT 1".to_owned(), None).await;
        assert_eq!(action.map(drop).map_err(super::status).unwrap_err().code(), Code::Unauthenticated, "{value}");
    })
    .await;
    let told = lines.join("\n");
    assert!(
        !told.contains("swordf") && !told.contains("YWRh") && !told.contains("forged") && !told.contains(KEY),
        "{told}"
    );
    assert_eq!(served.simulator.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_logins_are_counted_by_reason() {
    let served = Served::with(corpus(), Settings::default(), |spec| {
        (spec.host.auth, spec.host.operations) = (Auth::Users(users()), Some("127.0.0.1:0".parse().unwrap()));
    })
    .await;
    let wrong = format!("Basic {}", BASE64_STANDARD_NO_PAD.encode("ada:sword"));
    for (name, value) in [
        ("authorization", wrong.as_str()),
        ("authorization", "Bearer sst_forged"),
        ("x-api-key", "adas-token"),
        ("authorization", "nonsense"),
        ("x-nothing", "at all"),
    ] {
        refusal(&mut with_header(&served, name, value).await, "SELECT 1").await;
    }
    served.client().await.handshake("ada", "sword").await.unwrap_err();
    served.client().await.handshake("ada", "swordfish").await.unwrap();
    let (_, text) = super::ends::get(served.server.operations().unwrap(), "/metrics");
    for (reason, count) in
        [("wrong_password", 2), ("unknown_token", 2), ("malformed", 1), ("no_credentials", 1), ("no_login", 0)]
    {
        let line = format!("savedsearch_logins_rejected_total{{reason=\"{reason}\"}} {count}");
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends_with_its_session_and_with_time() {
    let served = Served::with(corpus(), Settings::default(), |spec| {
        spec.host.auth = Auth::Users(users());
        // Long enough for a query after a login.
        spec.host.limits.session_idle_seconds = 5;
    })
    .await;
    let mut client = served.client().await;
    client.handshake("ada", "swordfish").await.unwrap();
    all_rows(&mut client, "SELECT 1").await;
    tokio::time::sleep(Duration::from_millis(5_200)).await;
    let expired = refusal(&mut client, "SELECT 1").await;
    assert_eq!(expired.code(), Code::Unauthenticated);
    assert!(expired.message().contains("log in again"), "{expired}");
    client.clear_token();
    client.handshake("ada", "swordfish").await.unwrap();
    close_session(&mut client).await.unwrap();
    assert_eq!(refusal(&mut client, "SELECT 1").await.code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_has_prepared_is_not_there_for_another() {
    let served = for_users().await;
    let mut ada = served.client().await;
    ada.handshake("ada", "swordfish").await.unwrap();
    let mut bob = with_header(&served, "x-api-key", "bobs-token").await;
    let info = ada.execute("SELECT 'private'".to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let theirs = bob.do_get(ticket.clone()).await.map(drop).map_err(super::status).unwrap_err();
    let mut forged = ticket.clone();
    let last = forged.ticket.len() - 1;
    forged.ticket = forged
        .ticket
        .iter()
        .enumerate()
        .map(|(at, byte)| if at == last { byte ^ 1 } else { *byte })
        .collect::<Vec<_>>()
        .into();
    let nobodys = ada.do_get(forged).await.map(drop).map_err(super::status).unwrap_err();
    // Must be indistinguishable.
    assert_eq!((theirs.code(), theirs.message()), (Code::NotFound, nobodys.message()));
    assert_eq!(nobodys.code(), Code::NotFound);

    let mut prepared_by_ada = ada.prepare("SELECT 'private' AS a".to_owned(), None).await.unwrap();
    let own = prepared_by_ada.execute().await.unwrap();
    let descriptor = own.flight_descriptor.clone().unwrap();
    let refused = with_header(&served, "x-api-key", "bobs-token").await;
    let mut refused_client = refused;
    let mut request = descriptor.into_request();
    request.metadata_mut().insert("x-api-key", "bobs-token".parse().unwrap());
    let refused = refused_client.inner_mut().get_flight_info(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");

    // The requests of others are not shown either.
    all_rows(&mut ada, &format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1")).await;
    assert_eq!(all_rows(&mut ada, "SELECT count(*) FROM system.requests").await, [["1"]]);
    assert_eq!(all_rows(&mut bob, "SELECT count(*) FROM system.requests").await, [["0"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_spends_no_more_than_his_budget_in_all_sessions() {
    let served = for_users().await;
    let one = format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1");
    for _ in 0..2 {
        all_rows(&mut with_header(&served, "x-api-key", "bobs-token").await, &one).await;
    }
    let mut bob = with_header(&served, "x-api-key", "bobs-token").await;
    let several = format!("SELECT id FROM mentions WHERE aid IN ('{BIG}', '{OTHER}')");
    let left = "SELECT used, remaining FROM system.budget WHERE source = 'caller'";
    assert_eq!(all_rows(&mut bob, left).await, [["2", "1"]]);
    let (status, cost) = served.cost(refusal(&mut bob, &several)).await;
    assert_eq!((status.code(), cost), (Code::ResourceExhausted, 0), "{status}");
    assert!(status.message().contains("bob: the query needs at least 2 requests"), "{status}");
    all_rows(&mut bob, &one).await;
    let status = refusal(&mut bob, &one).await;
    assert!(status.message().contains("retry in"), "{status}");
    // Other users have their own budget.
    let mut ada = served.client().await;
    ada.handshake("ada", "swordfish").await.unwrap();
    all_rows(&mut ada, &one).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_passes_its_own_key_through() {
    let clock = Clock::fixed(now());
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), ..Settings::default() });
    let service = Arc::new(InProcess(simulator.clone(), Default::default()));
    let connect = move |key: Secret| {
        let builder = Connection::builder("http://passed.test/v4", key).profile(Profile::v4());
        builder.service(Arc::clone(&service) as _).clock(clock.clone()).build()
    };
    let mut spec = open(Upstream::PassThrough(PassThrough::new(connect)));
    spec.host.auth = Auth::PassThrough;
    let server = FlightServer::start(spec).await.unwrap();
    let address = format!("http://{}", server.address());
    let client =
        async || FlightSqlServiceClient::new(Channel::from_shared(address.clone()).unwrap().connect().await.unwrap());

    let mut comms = client().await;
    comms.handshake("whoever", KEY).await.unwrap();
    let theirs = all_rows(&mut comms, "SELECT aid FROM saved_searches").await;
    let mut research = client().await;
    research.set_header("authorization", "Bearer demo-key-research");
    let others = all_rows(&mut research, "SELECT aid FROM saved_searches").await;
    assert!(!theirs.is_empty() && !others.is_empty() && theirs != others);
    assert_eq!(all_rows(&mut research, "SELECT count(*) FROM system.requests").await, [["1"]]);

    // A key is not checked with the service until a query uses it.
    let before = simulator.requests();
    let mut wrong = client().await;
    wrong.handshake("whoever", "canary-wrong-key").await.unwrap();
    all_rows(&mut wrong, "SELECT 1").await;
    assert_eq!(simulator.requests(), before);
    let refused = refusal(&mut wrong, "SELECT * FROM saved_searches").await;
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    assert!(!format!("{refused:?}").contains("canary"), "{refused:?}");
    // A session token is not an API key, and an expired one is never sent to the service.
    let token = comms.token().cloned().unwrap();
    let mut again = client().await;
    again.set_header("authorization", format!("Bearer {token}"));
    assert!(!all_rows(&mut again, "SELECT aid FROM saved_searches").await.is_empty());
    let before = simulator.requests();
    let mut old = client().await;
    old.set_header("authorization", "Bearer sst_that_was_ours_once");
    assert_eq!(refusal(&mut old, "SELECT * FROM saved_searches").await.code(), Code::Unauthenticated);
    let mut raw = FlightServiceClient::new(Channel::from_shared(address.clone()).unwrap().connect().await.unwrap());
    let mut request = Request::new(futures::stream::empty());
    request.metadata_mut().insert("authorization", "Bearer sst_that_was_ours_once".parse().unwrap());
    assert_eq!(raw.handshake(request).await.map(drop).unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(simulator.requests(), before);

    let mut nobody = client().await;
    let refused = refusal(&mut nobody, "SELECT 1").await;
    assert!(refused.code() == Code::Unauthenticated && refused.message().contains("API key"), "{refused}");
}

/// A closed connection leaves nothing to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_connection_ends_with_it() {
    let served = Served::with(corpus(), Settings::default(), |spec| {
        (spec.host.limits.sessions, spec.host.operations) = (3, Some("127.0.0.1:0".parse().unwrap()));
    })
    .await;
    for _ in 0..12 {
        let mut client = served.client().await;
        all_rows(&mut client, "CREATE TABLE secret AS SELECT 42 AS a").await;
        drop(client);
        let operations = served.server.operations().unwrap();
        let ended = async {
            while !super::ends::get(operations, "/metrics").1.contains("savedsearch_sessions 0") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONGEST, ended).await.expect("the session ends");
    }
}

/// Clients with made-up keys must not evict sessions with valid keys.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_nobody_has_found_right_make_room() {
    let clock = Clock::fixed(now());
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), ..Settings::default() });
    let service = Arc::new(InProcess(simulator, Default::default()));
    let connect = move |key: Secret| {
        let builder = Connection::builder("http://junk.test/v4", key).profile(Profile::v4());
        builder.service(Arc::clone(&service) as _).clock(clock.clone()).build()
    };
    for read in ["SELECT aid FROM saved_searches", "CREATE TABLE kept AS SELECT aid FROM saved_searches"] {
        let mut spec = open(Upstream::PassThrough(PassThrough::new(connect.clone())));
        (spec.host.auth, spec.host.limits.sessions) = (Auth::PassThrough, 4);
        let server = FlightServer::start(spec).await.unwrap();
        let address = format!("http://{}", server.address());
        let client = async || {
            FlightSqlServiceClient::new(Channel::from_shared(address.clone()).unwrap().connect().await.unwrap())
        };
        let mut right = client().await;
        right.handshake("whoever", KEY).await.unwrap();
        all_rows(&mut right, "SET savedsearch.max_requests = 7").await;
        all_rows(&mut right, read).await;
        for number in 0..20 {
            client().await.handshake("whoever", &format!("made-up-{number}")).await.unwrap();
        }
        let kept = all_rows(&mut right, "SHOW savedsearch.max_requests").await;
        assert_eq!(kept, [["savedsearch.max_requests", "7"]], "{read}");
    }
}

/// Users with many sessions do not lock out one with none, even if they use them all the time.
#[tokio::test(flavor = "multi_thread")]
async fn those_with_most_sessions_make_room_for_others() {
    let served = Served::with(corpus(), Settings::default(), |spec| {
        (spec.host.auth, spec.host.limits.sessions) = (Auth::Users(users()), 6);
    })
    .await;
    let log_in = async || {
        let mut client = served.client().await;
        client.handshake("ada", "swordfish").await.map(|_| client)
    };
    let mut greedy = Vec::new();
    for _ in 0..6 {
        greedy.push(log_in().await.unwrap());
    }
    let mut other = with_header(&served, "authorization", "Bearer bobs-token").await;
    assert_eq!(all_rows(&mut other, "SELECT 1").await, [["1"]], "one of six makes room");
    let refused = log_in().await.map(drop).expect_err("the others are ada's own, and in use");
    assert!(refused.to_string().contains("too many sessions"), "{refused}");
}

/// A certificate authority for tests.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { certificate: issuer.pem(), issuer }
    }

    pub(crate) fn vouch(&self) -> (String, String) {
        self.vouch_until((4096, 1, 1))
    }

    /// A certificate that ends with the beginning of a day, and its key.
    pub(crate) fn vouch_until(&self, end: (i32, u8, u8)) -> (String, String) {
        self.vouch_between((1975, 1, 1), end)
    }

    /// A certificate that is valid from the beginning of a day to that of another, and its key.
    pub(crate) fn vouch_between(&self, begin: (i32, u8, u8), end: (i32, u8, u8)) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(begin.0, begin.1, begin.2);
        params.not_after = date_time_ymd(end.0, end.1, end.2);
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_asked_for_on_either_side() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.vouch();
    let served = Served::with(corpus(), Settings::default(), |spec| {
        let client_authorities = Some(authority.certificate.clone());
        spec.tls = Some(TlsSpec { certificate, key, client_authorities });
    })
    .await;
    let connect = async |trusted: &Authority, identity: Option<(String, String)>| {
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trusted.certificate)).domain_name("localhost");
        if let Some((certificate, key)) = identity {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        let endpoint = Endpoint::from_shared(format!("https://{}", served.server.address())).unwrap();
        let channel = endpoint.tls_config(tls).unwrap().connect().await.map_err(|error| error.to_string())?;
        try_rows(&mut Client::new(channel), "SELECT 1").await.map_err(|status| status.to_string())
    };
    assert_eq!(connect(&authority, Some(authority.vouch())).await.unwrap(), [["1"]]);
    connect(&stranger, Some(authority.vouch())).await.expect_err("untrusted server certificate");
    connect(&authority, Some(stranger.vouch())).await.expect_err("untrusted client certificate");
    connect(&authority, None).await.expect_err("no client certificate");
    let plain = Endpoint::from_shared(format!("http://{}", served.server.address())).unwrap().connect().await;
    if let Ok(channel) = plain {
        try_rows(&mut Client::new(channel), "SELECT 1").await.expect_err("clear text");
    }
    // Other certificates, without a restart.
    let (certificate, key) = stranger.vouch();
    let client_authorities = Some(authority.certificate.clone());
    let tls = TlsSpec { certificate, key, client_authorities };
    served.server.reload().run(Some(&tls)).await.unwrap();
    assert_eq!(connect(&stranger, Some(authority.vouch())).await.unwrap(), [["1"]]);
    connect(&authority, Some(authority.vouch())).await.expect_err("the certificate of before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_would_show_credentials_or_let_in_anybody_does_not_start() {
    let served = Served::new().await;
    let own = || open(Upstream::Own { connection: Arc::clone(&served.connection), named: Vec::new() });
    let keys = || Upstream::PassThrough(PassThrough::new(|_| unreachable!("no client connects")));
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let mut specs = Vec::new();
    let mut spec = own();
    spec.listen = everywhere;
    specs.push((spec, "may only listen on a loopback address"));
    let mut spec = own();
    (spec.listen, spec.host.auth) = (everywhere, Auth::Users(users()));
    specs.push((spec, "clear text"));
    let mut spec = own();
    spec.host.auth = Auth::PassThrough;
    specs.push((spec, "needs Upstream::PassThrough"));
    specs.push((open(keys()), "no API key"));
    let mut spec = own();
    let text = || "not a certificate".to_owned();
    spec.tls = Some(TlsSpec { certificate: text(), key: text(), client_authorities: None });
    specs.push((spec, "invalid certificate or key"));
    let mut spec = own();
    spec.listen = served.server.address();
    specs.push((spec, "cannot listen on"));
    for (spec, told) in specs {
        let error = FlightServer::start(spec).await.expect_err(told).to_string();
        assert!(error.contains(told), "{error}");
    }
}
