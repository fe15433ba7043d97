//! The MCP server, through hand-written lines of JSON: what each tool answers and costs, what is refused, who is
//! let in, and how a call ends.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use datafusion_saved_search::client::HttpLimits;
use datafusion_saved_search::config::SessionSettings;
use datafusion_saved_search::host::{Auth, HostSpec, HttpServer, Limits, PassThrough, TlsSpec, Upstream};
use datafusion_saved_search::mcp::{McpLimits, McpSpec, ProfileTools, StdioSpec, serve_http, serve_streams};
use datafusion_saved_search::simulator::{KEY, Preset, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Profile, Secret, session};
use futures::future::join_all;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::io::{ReadHalf, WriteHalf, duplex, split};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::binary::savedsearch;
use crate::flight::access::{Authority, users};
use crate::queries::{self, NOW};
use crate::support::{
    ALONE, BIG, InProcess, LONGEST, OTHER, connect, corpus, each_async, expect_closed, now, pages_of_90_days, rows,
    settled,
};

/// A simulator and a connection to it inside the process.
struct Service {
    simulator: Simulator,
    connection: Arc<Connection>,
}

impl Service {
    fn new(settings: Settings) -> Self {
        let clock = Clock::fixed(now());
        let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), ..settings });
        let connection = connect(&simulator, clock, Profile::v4());
        Self { simulator, connection }
    }

    fn upstream(&self) -> Upstream {
        Upstream::Own { connection: Arc::clone(&self.connection), named: Vec::new() }
    }

    fn stdio(&self, mcp: McpLimits) -> StdioSpec {
        StdioSpec {
            upstream: self.upstream(),
            settings: SessionSettings::default(),
            limits: Limits::default(),
            mcp,
            profiles: None,
        }
    }

    async fn agent(&self) -> Agent {
        Agent::start(self.stdio(McpLimits::default())).await
    }
}

/// A client on streams inside the process.
struct Agent {
    to: WriteHalf<DuplexStream>,
    from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    asked: i64,
    served: JoinHandle<datafusion_saved_search::error::Result<()>>,
    /// Ends the server when it is dropped or sent.
    end: oneshot::Sender<()>,
}

impl Agent {
    async fn start(spec: StdioSpec) -> Self {
        let (own, other) = duplex(1 << 16);
        let (read, write) = split(other);
        let (end, ended) = oneshot::channel();
        let served = tokio::spawn(async move {
            let ended = async {
                if ended.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            serve_streams(spec, read, write, ended).await
        });
        let (from, to) = split(own);
        let mut agent = Self { to, from: BufReader::new(from).lines(), asked: 0, served, end };
        let capabilities = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = agent.ask("initialize", capabilities).await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "savedsearch", "{answer}");
        agent.tell("notifications/initialized", json!({})).await;
        agent
    }

    async fn send(&mut self, message: Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request and returns its number.
    async fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.asked += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params })).await;
        self.asked
    }

    async fn answer(&mut self) -> Value {
        let line = timeout(LONGEST, self.from.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.expect("an answer")).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let number = self.begin(method, params).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], number, "{answer}");
        answer
    }

    /// Calls a tool. Returns its text, as an error if the call failed.
    async fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        text_of(&answer["result"])
    }

    async fn query(&mut self, sql: &str) -> Result<String, String> {
        self.call("query", json!({ "sql": sql })).await
    }
}

/// The text of a result, as an error if the call failed.
fn text_of(result: &Value) -> Result<String, String> {
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned();
    assert!(!text.contains(KEY), "{text}");
    if result["isError"] == json!(true) { Err(text) } else { Ok(text) }
}

/// The rows of a text, without its header and summary.
fn rows_of(text: &str) -> Vec<Vec<String>> {
    let (table, _) = text.split_once("\n\n").unwrap();
    table.lines().skip(1).map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_protocol_lists_tools_and_resources() {
    let mut agent = Service::new(Settings::default()).agent().await;
    let tools = agent.ask("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_tables", "describe", "estimate", "query", "budget"]);
    for tool in &tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
    let resources = agent.ask("resources/list", json!({})).await;
    let resources = resources["result"]["resources"].as_array().unwrap().clone();
    assert_eq!(resources.len(), 5);
    for resource in resources {
        let read = agent.ask("resources/read", json!({ "uri": resource["uri"] })).await;
        let content = &read["result"]["contents"][0];
        assert_eq!((&content["uri"], &content["mimeType"]), (&resource["uri"], &resource["mimeType"]));
        assert!(content["text"].as_str().unwrap().len() > 1_000, "{read}");
    }
    let unknown = agent.ask("resources/read", json!({ "uri": "file:///etc/passwd" })).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("unknown resource"), "{unknown}");
    let unknown = agent.ask("tools/call", json!({ "name": "drop_table", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let wrong = agent.call("query", json!({ "sql": "SELECT 1", "limit": 3 })).await.unwrap_err();
    assert!(wrong.starts_with("invalid arguments of `query`: unknown field `limit`"), "{wrong}");
    agent.to.shutdown().await.unwrap();
    timeout(LONGEST, agent.served).await.unwrap().unwrap().unwrap();
}

/// An agent with the vendor's documentation probes the service, completes the profile, checks it and writes it.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_completes_the_profile_of_a_service() {
    const REQUESTS: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let service = Service::new(Settings { preset: Preset::Flags, ..Settings::default() });
    let inside = Arc::new(InProcess(service.simulator.clone(), HttpLimits::default()));
    let address = "http://agent.test/v4";
    let tools = ProfileTools::new(
        folder.path().to_owned(),
        address.parse().unwrap(),
        Secret::new(KEY).unwrap(),
        inside,
        REQUESTS,
        move |profile, service| {
            let builder = Connection::builder(address, Secret::new(KEY).unwrap()).profile(profile).service(service);
            builder.clock(Clock::fixed(now())).build()
        },
    );
    let spec = StdioSpec { profiles: Some(tools), ..service.stdio(McpLimits::default()) };
    let mut agent = Agent::start(spec).await;
    let listed = agent.ask("tools/list", json!({})).await;
    let listed = listed["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<_> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[5..], ["probe", "profile_schema", "profile_check", "profile_write"]);
    let writes = listed.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == false);
    assert_eq!(writes.map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), ["profile_write"]);

    let schema = agent.call("profile_schema", json!({})).await.unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["window"].is_object(), "{schema}");
    assert_eq!(service.simulator.requests(), 0);

    let example = format!("curl -H 'Authorization: Bearer {KEY}' '{address}/search?aid={BIG}&duration=30d'");
    let asked = json!({ "example": example, "facts": ["dataSize at most 50"], "max_requests": 25 });
    let text = agent.call("probe", asked).await.unwrap();
    let (report, profile) = text.split_once("\nProfile:\n\n").unwrap();
    assert!(report.contains("your facts") && report.contains("Capabilities:"), "{report}");
    let sent = service.simulator.requests();
    assert!(sent <= 25 && report.contains(&format!("Sent {sent} requests.")), "{sent}: {report}");

    let wrong = agent.call("profile_check", json!({ "profile": "name = 1" })).await.unwrap_err();
    assert!(wrong.contains("name"), "{wrong}");
    let checked = agent.call("profile_check", json!({ "profile": profile })).await.unwrap();
    assert!(checked.starts_with("valid profile `probed`; not compared"), "{checked}");
    assert_eq!(service.simulator.requests(), sent, "syntax needs no request");
    let checked = agent.call("profile_check", json!({ "profile": profile, "max_requests": 30 })).await.unwrap();
    let spent = service.simulator.requests() - sent;
    assert!(checked.contains("list: ok, ") && checked.ends_with(&format!("{spent} requests sent\n")), "{checked}");

    let named = |name: &str, profile: &str| json!({ "name": name, "profile": profile });
    let path = folder.path().join("mine.toml");
    for _ in 0..2 {
        let written = agent.call("profile_write", named("mine", profile)).await.unwrap();
        assert!(written.contains("mine.toml") && written.contains("`ConnectionBuilder::profile`"), "{written}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), profile);
    }
    std::fs::write(folder.path().join("other.toml"), "kept").unwrap();
    let with_key = profile.replacen("name = \"probed\"", &format!("name = \"{KEY}\""), 1);
    for (name, profile, what) in [
        ("other", profile, "was not written by this server"),
        ("../mine", profile, "invalid name"),
        ("mine", "nonsense", "expected `=`"),
        ("key", &with_key, "contains the API key"),
    ] {
        let refused = agent.call("profile_write", named(name, profile)).await.unwrap_err();
        assert!(refused.contains(what), "{name}: {refused}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("other.toml")).unwrap(), "kept");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);

    // All calls together are bounded.
    let ended = async |agent: &mut Agent| match agent.call("probe", json!({ "max_requests": 25 })).await {
        Ok(_) => false,
        Err(text) => text.contains("no requests left for probes and checks"),
    };
    while !ended(&mut agent).await {}
    assert_eq!(service.simulator.requests(), REQUESTS);
    let refused = agent.call("profile_check", json!({ "profile": profile, "max_requests": 5 })).await.unwrap_err();
    assert!(refused.contains("no requests left for probes and checks"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_asks_before_a_query_costs_nothing() {
    let service = Service::new(Settings::default());
    let mut agent = service.agent().await;
    let tables = agent.call("list_tables", json!({})).await.unwrap();
    assert!(tables.starts_with("table|a row is|requests\n"), "{tables}");
    assert!(tables.contains("\nmentions|a mention of a saved search|1 per page of mentions\n"), "{tables}");
    assert!(tables.contains("a query reads the last 7 days"), "{tables}");
    let columns = agent.call("describe", json!({ "table": "mentions" })).await.unwrap();
    assert!(columns.starts_with("column|type|key|pushed down\n"), "{columns}");
    assert!(columns.contains("\npublished_at|timestamptz||ranges: time window; ORDER BY"), "{columns}");
    assert!(!columns.contains('\\'), "commands of the shell: {columns}");
    agent.call("describe", json!({ "table": "system.requests" })).await.unwrap();
    let unknown = agent.call("describe", json!({ "table": "no\nsuch" })).await.unwrap_err();
    assert_eq!(unknown, "unknown table `no such`; list_tables shows the tables");
    let estimate = agent.call("estimate", json!({ "sql": "SELECT id FROM mentions" })).await.unwrap();
    assert!(estimate.contains("The query needs at least 1 request"), "{estimate}");
    let exact = format!("SELECT total_mentions FROM overview WHERE aid = '{BIG}'");
    let estimate = agent.call("estimate", json!({ "sql": exact })).await.unwrap();
    assert!(
        estimate.contains("The query needs 1 request: call `query` with max_requests of at least 1."),
        "{estimate}"
    );
    let budget = agent.call("budget", json!({})).await.unwrap();
    assert!(budget.contains("A query may send 20 requests (max_requests; at most 100)"), "{budget}");
    let explain = agent.query("EXPLAIN SELECT upper(title) FROM mentions").await.unwrap();
    assert!(explain.contains("FetchExec") && explain.contains("\n  "), "{explain}");
    agent.query("SHOW TABLES").await.unwrap();
    assert_eq!(service.simulator.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_sends_what_the_library_sends() {
    let settings = Settings { clock: Clock::fixed(NOW.parse().unwrap()), ..Settings::default() };
    let simulator = Simulator::new(queries::corpus(), settings.clone());
    let connection = connect(&simulator, settings.clock, Profile::v4());
    let service = Service { simulator, connection };
    let most = McpLimits { max_requests: 1_000, max_rows: 100_000, text_bytes: 64 << 20 };
    let mut agent = Agent::start(service.stdio(most)).await;
    let context = session(&service.connection).unwrap();
    for query in queries::queries(service.simulator.corpus(), NOW.parse().unwrap()) {
        let before = service.simulator.requests();
        let own = rows(&context.sql(&query.sql).await.unwrap().collect().await.unwrap());
        let between = service.simulator.requests();
        let arguments = json!({ "sql": query.sql, "max_requests": 1_000, "max_rows": 100_000 });
        let got = agent.call("query", arguments).await.unwrap_or_else(|text| panic!("{}: {text}", query.sql));
        let spent = service.simulator.requests() - between;
        assert_eq!((rows_of(&got).len(), spent), (own.len(), between - before), "{}\n{got}", query.sql);
        assert!(spent == 0 || got.contains(&format!("· {spent} request")), "{}\n{got}", query.sql);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_costs_too_much_is_refused_with_what_costs_less() {
    let service = Service::new(Settings::default());
    let mut agent = service.agent().await;
    agent.query("SELECT aid, name FROM saved_searches").await.unwrap();
    let listed = service.simulator.requests();
    let wide = "SELECT id, title FROM mentions WHERE duration = '30d'";
    let refused = agent.call("query", json!({ "sql": wide, "max_requests": 3 })).await.unwrap_err();
    let first = "Refused before the first request: the query needs at least 5 requests, and max_requests is 3.";
    assert!(refused.starts_with(first), "{refused}");
    assert!(
        refused.ends_with("max_requests of at least 5 (at most 100 here). `budget` shows what is left.\n"),
        "{refused}"
    );
    assert_eq!(service.simulator.requests(), listed, "nothing is spent");

    // Each suggestion runs as it is written, within the requests it names, if those are exact.
    let forms: Vec<(bool, u64, &str)> = refused
        .lines()
        .filter_map(|line| {
            let (cost, sql) = line.split_once("): ")?;
            let (number, _) = cost.split_once(" (")?;
            let (number, exact) = match number.strip_prefix("at least ") {
                Some(number) => (number.split(',').next()?, false),
                None => (number, true),
            };
            Some((exact, number.parse().ok()?, sql))
        })
        .collect();
    assert_eq!(forms.len(), 3, "{refused}");
    for (exact, number, sql) in forms {
        assert!(number < 5 || exact, "{sql}");
        let before = service.simulator.requests();
        let arguments = json!({ "sql": sql, "max_requests": 100, "max_rows": 1_000 });
        let done = agent.call("query", arguments).await;
        let spent = service.simulator.requests() - before;
        assert!(spent >= number && (!exact || spent == number), "{number} requests, {spent} sent: {sql}\n{done:?}");
    }

    // A larger number is taken at its word, up to that of the server.
    let arguments = json!({ "sql": "SELECT count(*) FROM mentions WHERE title LIKE '%a%'", "max_requests": 101 });
    let beyond = agent.call("query", arguments).await.unwrap_err();
    assert!(beyond.contains("this server allows at most 100"), "{beyond}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_end_at_the_limit_if_it_is_found_late() {
    let service = Service::new(Settings::default());
    let mut agent = service.agent().await;
    // A filter of its own: the pages that it takes are known only from the first answer.
    let all = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '90d' AND title LIKE '%a%'");
    let refused = agent.call("query", json!({ "sql": all, "max_requests": 2 })).await.unwrap_err();
    assert!(refused.contains("but max_requests allows 2"), "{refused}");
    assert!(!refused.contains("SET ") && !refused.contains("savedsearch."), "{refused}");
    assert!(refused.contains("\nmentions|"), "the estimate: {refused}");
    assert!(service.simulator.requests() <= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_complete_or_refused() {
    let service = Service::new(Settings::default());
    let mut agent = service.agent().await;
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '90d'");
    let refused = agent.call("query", json!({ "sql": all, "max_rows": 7 })).await.unwrap_err();
    assert!(
        refused.starts_with("Refused after 1 request: the result has more than 7 rows (max_rows). First rows only"),
        "{refused}"
    );
    assert_eq!(service.simulator.requests(), 1, "one page shows it");
    let seven = agent.call("query", json!({ "sql": format!("{all} LIMIT 7"), "max_rows": 7 })).await.unwrap();
    assert_eq!(rows_of(&seven).len(), 7);
    let long = "SELECT value, repeat('x', 400) FROM generate_series(1, 300)";
    let refused = agent.call("query", json!({ "sql": long, "max_rows": 1_000 })).await.unwrap_err();
    assert!(refused.contains("longer than 64 KiB of text after 16"), "{refused}");
    assert!(refused.len() < 4_000, "a refusal is short");
    let cut = agent.query("SELECT repeat('y', 600) AS a, 'b|c' AS b").await.unwrap();
    assert!(cut.contains(&format!("\n{}…|b\\|c\n", "y".repeat(500))), "{cut}");
    assert!(cut.contains("note: 1 value cut after 500 characters"), "{cut}");
    let day = agent.query(&format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}'")).await.unwrap();
    assert!(day.contains("note: no time filter: reading the last 7 days"), "{day}");
    assert!(day.contains("window 7d (default) · complete"), "{day}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_queries_run() {
    let service = Service::new(Settings::default());
    let mut agent = service.agent().await;
    let refused = [
        ("INSERT INTO mentions SELECT * FROM mentions", "INSERT is not supported: the service is read-only"),
        ("COPY (SELECT 1) TO '/tmp/out.csv'", "COPY is not supported"),
        ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", "CREATE EXTERNAL TABLE is not supported"),
        ("DELETE FROM mentions", "DELETE is not supported"),
        ("SET savedsearch.max_requests = 100000", "only queries are supported"),
        ("RESET savedsearch.max_requests", "only queries are supported"),
        ("CREATE VIEW v AS SELECT 1", "only queries are supported"),
        ("CREATE TABLE t AS SELECT 1", "only queries are supported"),
        ("DROP VIEW v", "only queries are supported"),
        ("EXPLAIN ANALYZE INSERT INTO mentions SELECT * FROM mentions", "not supported"),
        ("PREPARE p AS SELECT 1", "not supported"),
        ("SELECT 1; SELECT 2", "expected exactly one statement"),
        ("SELECT $1", "parameters are not supported"),
        ("SELECT * FROM '/etc/passwd'", "unknown table"),
        ("SELECT titel FROM mentions", "did you mean"),
        ("SELECT * FROM mention", "did you mean mentions?"),
        ("SELECT * FROM xyzzy", "list_tables shows the tables"),
        ("SELEC 1", "SELEC"),
    ];
    each_async(refused, async |(sql, told)| {
        let text = agent.query(sql).await.expect_err(sql);
        assert!(text.contains(told), "{sql}: {text}");
        assert!(!text.contains("\\d"), "{text}");
        let estimate = agent.call("estimate", json!({ "sql": sql })).await.expect_err(sql);
        assert!(estimate.contains(told), "{sql}: {estimate}");
    })
    .await;
    // Beyond what a statement may take.
    let nested = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    agent.query(&nested).await.expect_err("too deep");
    agent.query(&format!("SELECT '{}'", "x".repeat(2 << 20))).await.expect_err("too long");
    agent.query("SELECT length(repeat('x', 2147483647))").await.expect_err("too large");
    assert_eq!(service.simulator.requests(), 0);
    assert_eq!(rows_of(&agent.query("SELECT 1").await.unwrap()), [["1"]], "the server goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_sends_no_further_request() {
    let service = Service::new(Settings { delay: Duration::from_secs(1), ..Settings::default() });
    let all = pages_of_90_days(&service.simulator);
    let mut agent = service.agent().await;
    let slow = json!({ "sql": format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '90d' AND title LIKE '%a%'") });
    let number = agent.begin("tools/call", json!({ "name": "query", "arguments": slow })).await;
    while service.simulator.requests() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    agent.tell("notifications/cancelled", json!({ "requestId": number, "reason": "enough" })).await;
    let other = agent.query("SELECT 1").await.unwrap();
    assert_eq!(rows_of(&other), [["1"]], "its answer is dropped, the next one is not");
    let spent = settled(|| service.simulator.requests()).await;
    assert!(spent < all, "{spent} of {all} pages");

    // Once the server has ended, nothing runs on for a client that closed its side.
    agent.begin("tools/call", json!({ "name": "query", "arguments": slow })).await;
    while service.simulator.requests() == spent {
        sleep(Duration::from_millis(10)).await;
    }
    agent.to.shutdown().await.unwrap();
    timeout(LONGEST, agent.served).await.unwrap().unwrap().unwrap();
    let spent = service.simulator.requests();
    assert_eq!(settled(|| service.simulator.requests()).await, spent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_server_while_a_query_runs() {
    let service = Service::new(Settings { delay: 2 * LONGEST, ..Settings::default() });
    let mut agent = service.agent().await;
    agent.begin("tools/call", json!({ "name": "query", "arguments": { "sql": "SELECT * FROM saved_searches" } })).await;
    while service.simulator.requests() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    agent.end.send(()).unwrap();
    timeout(LONGEST, agent.served).await.expect("ended").unwrap().unwrap();
}

/// A server on a port.
async fn listening(service: &Service, change: impl FnOnce(&mut McpSpec)) -> HttpServer {
    let mut spec = McpSpec {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        insecure: false,
        mcp: McpLimits::default(),
        host: HostSpec::new(Auth::None, service.upstream()),
    };
    change(&mut spec);
    serve_http(spec).await.unwrap()
}

/// Sends a hand-written HTTP request and returns the status and the whole response.
async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let mut fields: BTreeMap<&str, &str> = BTreeMap::from([
        ("accept", "application/json, text/event-stream"),
        ("connection", "close"),
        ("content-type", "application/json"),
        ("host", "localhost"),
    ]);
    fields.extend(headers.iter().copied());
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("{line} HTTP/1.1\r\n{fields}content-length: {}\r\n\r\n{body}", body.len());
    // A server that refuses a request need not read all of it.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut response = Vec::new();
    let _ = timeout(LONGEST, stream.read_to_end(&mut response)).await.unwrap();
    let response = String::from_utf8_lossy(&response).into_owned();
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, response)
}

fn message(tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The result of a call in an event stream.
fn result_of(response: &str) -> Result<String, String> {
    let data = response.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| data.contains("\"result\""));
    let answer: Value = serde_json::from_str(data.unwrap_or_else(|| panic!("no result: {response}"))).unwrap();
    text_of(&answer["result"])
}

async fn post(server: &HttpServer, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    exchange(&mut stream, "POST /mcp", headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_are_known_are_answered_over_http() {
    let service = Service::new(Settings::default());
    let server = listening(&service, |spec| spec.host.auth = Auth::Users(users())).await;
    let list = message("query", json!({ "sql": "SELECT aid FROM saved_searches" }));
    let own = message("query", json!({ "sql": "SELECT count(*) FROM system.requests" }));
    for refused in [&[] as &[_], &[("authorization", "Bearer wrong")], &[("authorization", "Basic YWRhOndyb25n")]] {
        let (status, response) = post(&server, refused, &list).await;
        assert_eq!(status, 401, "{response}");
        assert!(response.to_lowercase().contains("www-authenticate: bearer"), "{response}");
        assert!(!response.contains("wrong\n") && !response.contains("YWRh"), "{response}");
    }
    assert_eq!(service.simulator.requests(), 0);
    let bob = [("authorization", "Bearer bobs-token")];
    let ada = [("authorization", "Basic YWRhOnN3b3JkZmlzaA==")];
    let (status, response) = post(&server, &bob, &list).await;
    assert_eq!((status, rows_of(&result_of(&response).unwrap()).len()), (200, 7));
    let (_, response) = post(&server, &[("x-api-key", "bobs-token")], &own).await;
    assert_eq!(rows_of(&result_of(&response).unwrap()), [["1"]], "his own request");
    let (_, response) = post(&server, &ada, &own).await;
    assert_eq!(rows_of(&result_of(&response).unwrap()), [["0"]], "not his");
    // The budget of bob is 3 requests, of which one is spent.
    let all = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '90d' AND title LIKE '%a%'");
    let (_, response) = post(&server, &bob, &message("query", json!({ "sql": all }))).await;
    let refused = result_of(&response).unwrap_err();
    assert!(refused.contains("budget"), "{refused}");
    assert!(service.simulator.requests() <= 3);
    let (_, response) = post(&server, &ada, &message("query", json!({ "sql": all }))).await;
    result_of(&response).unwrap();
    server.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_repeat_only_a_part_of_a_long_name() {
    let service = Service::new(Settings::default());
    let server = listening(&service, |_| {}).await;
    let long = "x".repeat(500_000);
    let ping = |id: Value, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method }).to_string();
    let read = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": long } });
    let cases = [
        (ping(json!(long), "ping"), "the id has 500000 bytes; the limit is 1000"),
        (ping(json!(1), &long), "the method has 500000 bytes; the limit is 1000"),
        (message(&long, json!({})), "unknown tool `xxx"),
        (message("query", json!({ "sql": "SELECT 1", long.as_str(): 1 })), "unknown field `xxx"),
        (read.to_string(), "unknown resource `xxx"),
    ];
    for (body, expected) in cases {
        let (_, response) = post(&server, &[], &body).await;
        assert!(response.contains(expected) && response.len() < 5_000, "{expected}: {} bytes", response.len());
    }
    let (status, response) = post(&server, &[], &ping(json!("x".repeat(1_000)), "ping")).await;
    assert!(status == 200 && response.contains("\"result\""), "{response}");
    server.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_may_bring_its_own_key() {
    let clock = Clock::fixed(now());
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), ..Settings::default() });
    let of = simulator.clone();
    let keys = PassThrough::new(move |key| {
        let service = Arc::new(InProcess(of.clone(), HttpLimits::default()));
        Connection::builder("http://keys.test/v4", key).service(service).clock(clock.clone()).build()
    });
    let service = Service { connection: connect(&simulator, Clock::fixed(now()), Profile::v4()), simulator };
    let server = listening(&service, |spec| {
        spec.host.auth = Auth::PassThrough;
        spec.host.upstream = Upstream::PassThrough(keys);
    })
    .await;
    let list = message("query", json!({ "sql": "SELECT aid FROM saved_searches" }));
    assert_eq!(post(&server, &[], &list).await.0, 401);
    let (status, response) = post(&server, &[("x-api-key", KEY)], &list).await;
    assert_eq!((status, rows_of(&result_of(&response).unwrap()).len()), (200, 7));
    let (status, response) = post(&server, &[("x-api-key", "not-a-key")], &list).await;
    let refused = result_of(&response).unwrap_err();
    assert!(status == 200 && !refused.contains("not-a-key"), "{refused}");
    server.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_browser_and_other_hosts_are_refused() {
    let service = Service::new(Settings::default());
    let server = listening(&service, |spec| spec.host.operations = Some("127.0.0.1:0".parse().unwrap())).await;
    let list = message("query", json!({ "sql": "SELECT aid FROM saved_searches" }));
    let cases: [(&[(&str, &str)], u16); 6] = [
        (&[("origin", "https://evil.example")], 403),
        (&[("origin", "null")], 403),
        (&[("host", "evil.example")], 403),
        (&[("accept", "text/html")], 406),
        (&[("content-type", "text/plain")], 415),
        (&[], 200),
    ];
    each_async(cases, async |(headers, expected)| {
        let (status, response) = post(&server, headers, &list).await;
        assert_eq!(status, expected, "{headers:?}: {response}");
    })
    .await;
    let long = message("query", json!({ "sql": format!("SELECT '{}'", "x".repeat(4 << 20)) }));
    let (status, response) = post(&server, &[], &long).await;
    assert!(status == 413 || response.is_empty(), "{status} {response}");
    let cases = [
        ("{ not JSON", -32700),
        ("", -32700),
        ("\"x\"", -32600),
        ("5", -32600),
        ("{\"foo\":1}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        (&format!("[{list}]"), -32600),
    ];
    each_async(cases, async |(body, code)| {
        let (status, response) = post(&server, &[], body).await;
        let error = response.find("{\"").map_or("", |at| &response[at..=response.rfind('}').unwrap()]);
        let error: Value = serde_json::from_str(error).unwrap_or_else(|error| panic!("{body}: {error}: {response}"));
        assert_eq!((status, &error["error"]["code"]), (400, &json!(code)), "{body}: {response}");
        assert_eq!(post(&server, &[("content-type", "text/plain")], body).await.0, 415, "{body}");
    })
    .await;
    // Pages of the server itself, under each name of this machine.
    let port = server.address().port();
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        let (origin, host) = (format!("http://{name}:{port}"), format!("{name}:{port}"));
        for headers in [&[("origin", origin.as_str())][..], &[("origin", &origin), ("host", &host)]] {
            let tools = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
            let (status, response) = post(&server, headers, &tools).await;
            assert_eq!(status, 200, "{headers:?}: {response}");
        }
        let other = format!("http://{name}:1");
        assert_eq!(post(&server, &[("origin", &other)], &list).await.0, 403, "{other}");
    }
    for (line, expected) in
        [("GET /mcp", 405), ("DELETE /mcp", 405), ("GET /", 404), ("GET /.well-known/oauth-protected-resource", 404)]
    {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let (status, response) = exchange(&mut stream, line, &[], "").await;
        assert_eq!(status, expected, "{line}: {response}");
    }
    let mut stream = TcpStream::connect(server.operations().unwrap()).await.unwrap();
    let (status, response) = exchange(&mut stream, "GET /metrics", &[], "").await;
    assert_eq!(status, 200);
    assert!(response.contains("savedsearch_calls_total{kind=\"Mcp\",code=\"ok\"}"), "{response}");
    assert!(response.contains("savedsearch_queries_total{outcome=\"ok\"} 1"), "{response}");
    assert_eq!(service.simulator.requests(), 1, "that of the only call that was let in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_closes_ends_its_query() {
    let service = Service::new(Settings { delay: Duration::from_secs(1), ..Settings::default() });
    let server = listening(&service, |_| {}).await;
    let all = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '90d' AND title LIKE '%a%'");
    let body = message("query", json!({ "sql": all }));
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json";
    stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    while service.simulator.requests() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    drop(stream);
    let (spent, all) = (settled(|| service.simulator.requests()).await, pages_of_90_days(&service.simulator));
    assert!(spent < all, "{spent} of {all} pages");
    server.shut_down().await;
}

/// A body that stops arriving is given up, and does not keep its connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_arrive_is_given_up() {
    let service = Service::new(Settings::default());
    let server = listening(&service, |_| {}).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                content-type: application/json\r\ncontent-length: 200\r\n\r\n{\"jsonrpc\"";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    let read = timeout(LONGEST, stream.read_to_end(&mut response)).await;
    let response = String::from_utf8_lossy(&response);
    assert!(read.is_ok() && response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(response.contains("not received within 10 s"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_lets_a_query_finish() {
    let service = Service::new(Settings { delay: Duration::from_millis(700), ..Settings::default() });
    let server = listening(&service, |spec| spec.listen = ALONE.parse().unwrap()).await;
    let address = server.address();
    let running = tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let body = message("query", json!({ "sql": "SELECT aid FROM saved_searches" }));
        exchange(&mut stream, "POST /mcp", &[], &body).await
    });
    while service.simulator.requests() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    server.shut_down().await;
    let (status, response) = running.await.unwrap();
    assert_eq!((status, rows_of(&result_of(&response).unwrap()).len()), (200, 7));
    expect_closed(address).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_asked_for_over_http() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.vouch();
    let service = Service::new(Settings::default());
    let server = listening(&service, |spec| {
        let client_authorities = Some(authority.certificate.clone());
        spec.tls = Some(TlsSpec { certificate, key, client_authorities });
    })
    .await;
    let connect = async |trusted: &Authority, identity: Option<(String, String)>| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.certificate.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
            }
        };
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream =
            TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| error.to_string())?;
        let (status, response) =
            exchange(&mut stream, "POST /mcp", &[], &message("query", json!({ "sql": "SELECT 1" }))).await;
        if status == 200 { Ok(rows_of(&result_of(&response).unwrap())) } else { Err(format!("{status}")) }
    };
    assert_eq!(connect(&authority, Some(authority.vouch())).await.unwrap(), [["1"]]);
    connect(&stranger, Some(authority.vouch())).await.expect_err("untrusted server certificate");
    connect(&authority, Some(stranger.vouch())).await.expect_err("untrusted client certificate");
    connect(&authority, None).await.expect_err("no client certificate");
    post(&server, &[], "").await.0.checked_sub(0).filter(|status| *status == 0).expect("clear text is not answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_are_answered_or_told_to_wait() {
    let service = Service::new(Settings::default());
    let server = listening(&service, |spec| spec.host.limits.streams_per_session = 8).await;
    let count =
        message("query", json!({ "sql": format!("SELECT count(*) FROM mentions WHERE aid IN ('{BIG}', '{OTHER}')") }));
    let calls = (0..200).map(|_| post(&server, &[], &count));
    let (mut answered, mut busy) = (0, 0);
    for (status, response) in join_all(calls).await {
        assert_eq!(status, 200, "{response}");
        match result_of(&response) {
            Ok(_) => answered += 1,
            Err(text) => {
                assert!(text.starts_with("too many running queries"), "{text}");
                busy += 1;
            }
        }
    }
    assert!(answered > 0, "{answered} answered, {busy} busy");
    let (_, response) = post(&server, &[], &count).await;
    result_of(&response).expect("places are free again");
    server.shut_down().await;
}

#[tokio::test]
async fn a_server_that_would_let_in_anybody_does_not_start() {
    let service = Service::new(Settings::default());
    let spec = |listen: &str, auth| McpSpec {
        listen: listen.parse().unwrap(),
        tls: None,
        insecure: false,
        mcp: McpLimits::default(),
        host: HostSpec::new(auth, service.upstream()),
    };
    for (spec, told) in [
        (spec("0.0.0.0:0", Auth::None), "may only listen on a loopback address"),
        (spec("0.0.0.0:0", Auth::Users(users())), "clear text"),
        (spec("127.0.0.1:0", Auth::PassThrough), "needs Upstream::PassThrough"),
    ] {
        let error = serve_http(spec).await.expect_err(told).to_string();
        assert!(error.contains(told), "{error}");
    }
}

/// Sends messages to the program and returns its answers, its messages and its status.
fn spoken(options: &[&str], messages: &[Value]) -> (Vec<Value>, String, std::process::ExitStatus) {
    let mut child =
        savedsearch(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = Vec::new();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
        if message.get("id").is_some() {
            let line = lines.next().unwrap().unwrap();
            answers.push(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}")));
        }
    }
    drop(stdin);
    for line in lines.map_while(Result::ok) {
        let _: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"));
    }
    let output = child.wait_with_output().unwrap();
    (answers, String::from_utf8(output.stderr).unwrap(), output.status)
}

fn greeting() -> [Value; 2] {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ]
}

#[test]
fn the_page_shows_what_the_program_answers() {
    let call = |number: i64, arguments: Value| {
        let params = json!({ "name": "query", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params })
    };
    let [first, second] = greeting();
    let messages = [
        first,
        second,
        call(1, json!({ "sql": "SELECT aid, name FROM saved_searches ORDER BY aid LIMIT 2" })),
        call(2, json!({ "sql": "SELECT id FROM mentions WHERE duration = '30d'", "max_requests": 2 })),
    ];
    // Everything is logged: nothing but answers may be on stdout.
    let (answers, told, status) = spoken(&["--now", NOW, "mcp", "--log", "trace"], &messages);
    assert!(status.success(), "{told}");
    assert!(told.contains("using built-in demo data") && told.contains("TRACE"), "{told}");
    assert!(!told.contains("demo-key"), "the key is in the log");
    let page = include_str!("../../docs/mcp.md");
    let result = text_of(&answers[1]["result"]).unwrap();
    let (before, rest) = result.split_once(" rows · ").unwrap();
    let (_, after) = rest.split_once(" ms · ").unwrap();
    let shown = format!("```text\n{before} rows · 41 ms · {after}```");
    assert!(page.contains(&shown), "{shown}");
    let shown = format!("```text\n{}```", text_of(&answers[2]["result"]).unwrap_err());
    assert!(page.contains(&shown), "{shown}");
}

#[test]
fn the_program_ends_with_its_client() {
    let (answers, _, status) = spoken(&["-q", "mcp"], &[]);
    assert!(answers.is_empty() && status.success());
    let (answers, told, status) = spoken(&["-q", "mcp"], &greeting());
    assert!(answers.len() == 1 && status.success(), "{told}");
    assert_eq!(told, "");
    let (_, told, status) = spoken(&["mcp", "--auth", "users"], &[]);
    assert_eq!(status.code(), Some(2));
    assert!(told.contains("--auth requires --listen"), "{told}");
}
