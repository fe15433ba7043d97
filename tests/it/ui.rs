//! The page, spoken to as a browser does: who is answered, what a call costs, rows equal to the shell's, and how a query ends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use datafusion_saved_search::flight::{FlightServer, ServerSpec};
use datafusion_saved_search::host::{Auth, HostSpec, HttpServer, Upstream};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Settings, Simulator};
use datafusion_saved_search::ui::{PageSpec, serve, serve_beside};
use datafusion_saved_search::{Clock, Connection, Profile, session};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::binary::savedsearch;
use crate::flight::access::users;
use crate::queries::{self, NOW};
use crate::support::{
    ALONE, BIG, EventCounter, LONGEST, OTHER, connect, corpus, expect_closed, now, pages_of_90_days, rows, settled,
};

/// A simulator inside the process, and the page over it.
struct Served {
    simulator: Simulator,
    server: HttpServer,
    cookie: String,
}

/// A response.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// The cookie that it sets.
    fn cookie(&self) -> String {
        self.header("set-cookie").unwrap_or_else(|| panic!("{self:?}")).split(';').next().unwrap().to_owned()
    }
}

fn specs(upstream: Upstream) -> (PageSpec, HostSpec) {
    let page = PageSpec { listen: "127.0.0.1:0".parse().unwrap(), tls: None, insecure: false, dashboards: None };
    (page, HostSpec::new(Auth::None, upstream))
}

fn own(connection: &Arc<Connection>) -> Upstream {
    Upstream::Own { connection: Arc::clone(connection), named: Vec::new() }
}

impl Served {
    async fn with(corpus: Arc<Corpus>, settings: Settings, change: impl FnOnce(&mut PageSpec, &mut HostSpec)) -> Self {
        let clock = settings.clock.clone();
        let simulator = Simulator::new(corpus, settings);
        let connection = connect(&simulator, clock, Profile::v4());
        let (mut page, mut host) = specs(own(&connection));
        change(&mut page, &mut host);
        let server = serve(page, host).await.unwrap();
        let cookie = match server.url().split_once("/?") {
            Some((_, query)) => send(server.address(), "GET", &format!("/?{query}"), &[], "").await.cookie(),
            None => String::new(),
        };
        Self { simulator, server, cookie }
    }

    async fn new(settings: Settings) -> Self {
        Self::with(corpus(), Settings { clock: Clock::fixed(now()), ..settings }, |_, _| {}).await
    }

    async fn get(&self, path: &str) -> Reply {
        send(self.server.address(), "GET", path, &[("cookie", &self.cookie)], "").await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        post(self.server.address(), path, &self.cookie, body).await
    }

    async fn query(&self, sql: &str) -> Answer {
        self.ask(&json!({ "sql": sql })).await
    }

    async fn ask(&self, question: &Value) -> Answer {
        let reply = self.post("/api/query", question).await;
        assert_eq!(reply.status, 200, "{question}: {reply:?}");
        assert!(!reply.body.contains(KEY));
        Answer::of(&reply.body)
    }

    async fn cost(&self, sql: &str) -> Value {
        self.post("/api/estimate", &json!({ "sql": sql })).await.json()
    }
}

/// The lines of a query.
#[derive(Debug)]
struct Answer {
    columns: Vec<String>,
    rows: Vec<Value>,
    last: Value,
}

impl Answer {
    fn of(body: &str) -> Self {
        let mut lines = body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let head = lines.next().unwrap();
        let columns = head["columns"].as_array().unwrap_or_else(|| panic!("{head}")).iter();
        let columns = columns.map(|column| column["name"].as_str().unwrap().to_owned()).collect();
        let (rows, told): (Vec<_>, Vec<_>) = lines.partition(Value::is_array);
        Self { columns, rows, last: told.last().unwrap().clone() }
    }
}

async fn post(address: SocketAddr, path: &str, cookie: &str, body: &Value) -> Reply {
    let origin = format!("http://{address}");
    let headers = [("cookie", cookie), ("origin", &origin), ("content-type", "application/json")];
    send(address, "POST", path, &headers, &body.to_string()).await
}

/// Sends a request and returns the whole response.
async fn send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut stream = begin(address, method, path, headers, body).await;
    let mut response = Vec::new();
    timeout(LONGEST, stream.read_to_end(&mut response)).await.unwrap().unwrap();
    let end = response.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(response[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = &response[end + 4..];
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { joined(body) } else { body.to_vec() };
    Reply { status, head, body: String::from_utf8_lossy(&body).into_owned() }
}

async fn begin(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let host = address.to_string();
    let mut fields = BTreeMap::from([("host", host.as_str()), ("connection", "close")]);
    fields.extend(headers.iter().copied());
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("{method} {path} HTTP/1.1\r\n{fields}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The parts of a chunked body together.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        all.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
    all
}

const FILES: [&str; 11] = [
    "/",
    "/page.css",
    "/icon.svg",
    "/app.js",
    "/ask.js",
    "/calls.js",
    "/dashboards.js",
    "/draw.js",
    "/editor.js",
    "/overview.js",
    "/table.js",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_a_few_files_that_allow_nothing_from_elsewhere() {
    let served = Served::new(Settings::default()).await;
    let mut lines = 0;
    for path in FILES {
        // The files contain nothing of anybody.
        let reply = send(served.server.address(), "GET", path, &[], "").await;
        assert_eq!(reply.status, 200, "{path}");
        let policy = reply.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        lines += reply.body.lines().count();
        for unsafe_ in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
            assert!(!reply.body.contains(unsafe_), "{path}: {unsafe_}");
        }
        let places = reply.body.match_indices("http").map(|(at, _)| &reply.body[at..]);
        let elsewhere = places.filter(|text| text.starts_with("http://") || text.starts_with("https://"));
        assert!(elsewhere.clone().all(|text| text.starts_with("http://www.w3.org/2000/svg")), "{path}");
    }
    assert!(lines <= 2_500, "{lines}");
    let page = send(served.server.address(), "GET", "/", &[], "").await.body;
    assert!(!page.contains("style=") && !page.contains("<style") && !page.contains(" on"), "inline code");
    assert!(page.matches("<script").count() == 1 && page.contains("<script type=\"module\" src=\"app.js\"></script>"));
}

/// Red, green, blue and opacity of a colour of the style sheet: `#1b2330`, `rgb(10 108 116 / .18)`.
fn colour(text: &str) -> [f64; 4] {
    if let Some(hex) = text.strip_prefix('#') {
        let part = |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        return [part(0), part(2), part(4), 1.0];
    }
    let inner = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')')).unwrap();
    let parts: Vec<f64> = inner.replace('/', "").split_whitespace().map(|part| part.parse().unwrap()).collect();
    parts.try_into().unwrap()
}

/// A colour that is drawn over another one.
fn over([red, green, blue, opacity]: [f64; 4], below: [f64; 4]) -> [f64; 4] {
    let mixed = |above: f64, below: f64| above * opacity + below * (1.0 - opacity);
    [mixed(red, below[0]), mixed(green, below[1]), mixed(blue, below[2]), 1.0]
}

/// Contrast of two colours, as WCAG 2 defines it.
fn contrast(one: [f64; 4], other: [f64; 4]) -> f64 {
    let linear = |value: f64| match value / 255.0 {
        value if value <= 0.040_45 => value / 12.92,
        value => ((value + 0.055) / 1.055).powf(2.4),
    };
    let luminance =
        |[red, green, blue, _]: [f64; 4]| 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn texts_fields_and_pictures_have_contrast_in_light_and_dark() {
    const GROUNDS: [&str; 5] = ["ground", "panel", "raised", "soft", "bad-soft"];
    const CODE: [&str; 7] = ["ink", "pale", "keyword", "string", "digit", "function", "bad"];
    const TEXTS: [&str; 2] = ["accent", "warn"];
    const DRAWN: [&str; 4] = ["edge", "positive", "neutral", "negative"];
    /// Lines that separate, the text of the main button, and the ground of selected code.
    const OTHERS: [&str; 3] = ["line", "on-accent", "chosen"];
    let sheet = include_str!("../../src/ui/page/page.css");
    let declared: BTreeMap<&str, [[f64; 4]; 2]> = sheet
        .lines()
        .filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("--")?.split_once(": light-dark(")?;
            let (light, dark) = value.strip_suffix(");")?.split_once(", ")?;
            Some((name, [colour(light), colour(dark)]))
        })
        .collect();
    let texts = || CODE.iter().chain(&TEXTS);
    let mut known: Vec<_> = GROUNDS.iter().chain(texts()).chain(&DRAWN).chain(&OTHERS).copied().collect();
    known.sort_unstable();
    assert_eq!(declared.keys().copied().collect::<Vec<_>>(), known, "each colour of the sheet is checked below");
    for (scheme, name) in ["light", "dark"].into_iter().enumerate() {
        let of = |name: &str| declared[name][scheme];
        let check = |one: &str, other: &str, least: f64| {
            let found = contrast(of(one), of(other));
            assert!(found >= least, "{name}: {one} on {other} has a contrast of {found:.2}");
        };
        for ground in GROUNDS {
            texts().for_each(|text| check(text, ground, 4.5));
        }
        check("on-accent", "accent", 4.5);
        for ground in ["ground", "panel"] {
            DRAWN.iter().for_each(|drawn| check(drawn, ground, 3.0));
        }
        // Days of the calendar.
        check("accent", "line", 3.0);
        for code in CODE {
            // The text area is over its coloured text.
            let selected = |name: &str| over(of("chosen"), of(name));
            let found = contrast(selected(code), selected("panel"));
            assert!(found >= 4.5, "{name}: {code}, selected, has a contrast of {found:.2}");
        }
    }
    // No text and no ground has another colour.
    let declarations = sheet.split(['{', '}', ';']).filter_map(|part| part.trim().split_once(": "));
    for (property, value) in declarations {
        let name = value.strip_prefix("var(--").and_then(|value| value.strip_suffix(')'));
        let fine = match (property, name) {
            ("color", Some(name)) => name == "on-accent" || texts().any(|text| *text == name),
            ("color", None) => ["inherit", "transparent"].contains(&value),
            ("background", Some(name)) => ["accent", "chosen"].contains(&name) || GROUNDS.contains(&name),
            // Nothing is written on what is behind a dialog, and on the frame of a picture.
            ("background", None) => ["none", "rgb(0 0 0 / .45)", "light-dark(#ffffff, #191919)"].contains(&value),
            _ => true,
        };
        assert!(fine, "{property}: {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_the_url_becomes_a_cookie_without_which_nothing_is_answered() {
    let served = Served::new(Settings::default()).await;
    let address = served.server.address();
    let (_, token) = served.server.url().split_once("?token=").unwrap();
    assert!(token.len() >= 43, "256 bits");
    let opened = send(address, "GET", &format!("/?token={token}"), &[], "").await;
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
    let cookie = opened.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let wrong = send(address, "GET", "/?token=wrong", &[], "").await;
    assert_eq!((wrong.status, wrong.header("location"), wrong.header("set-cookie")), (303, Some("/?stale"), None));
    let name = served.cookie.split('=').next().unwrap();
    for cookie in ["", &format!("{name}="), &format!("{name}=wrong"), "other=x", &format!("{name}x={token}")] {
        for path in ["/api/state", "/api/tables", "/api/names", "/api/dashboards", "/api/results/1/rows.csv"] {
            let reply = send(address, "GET", path, &[("cookie", cookie)], "").await;
            assert_eq!((reply.status, &reply.json()["login"]), (401, &json!("token")), "{cookie} {path}");
            assert_eq!(reply.json()["stale"], json!(cookie == format!("{name}=wrong")), "{cookie} {path}");
        }
        for path in ["/api/query", "/api/estimate", "/api/size", "/api/complete", "/api/logout"] {
            assert_eq!(post(address, path, cookie, &json!({ "sql": "SELECT 1" })).await.status, 401, "{cookie}");
        }
    }
    // Entered instead of opened.
    let entered = post(address, "/api/login", "", &json!({ "secret": token })).await;
    assert_eq!((entered.status, entered.cookie()), (200, served.cookie.clone()));
    assert_eq!(post(address, "/api/login", "", &json!({ "secret": "wrong" })).await.status, 401);
    let state = served.get("/api/state").await;
    assert_eq!((state.status, &state.json()["login"]), (200, &json!("token")));
    assert_eq!(state.json()["search"], json!(null), "none is known without a request");
    assert_eq!(served.get("/api/nothing").await.status, 404);
    assert_eq!(served.simulator.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_are_refused() {
    let served = Served::new(Settings::default()).await;
    let address = served.server.address();
    let own = format!("http://{address}");
    let rebound =
        [("cookie", served.cookie.as_str()), ("host", "evil.example:8484"), ("origin", "http://evil.example:8484")];
    for path in ["/", "/app.js", "/api/state"] {
        assert_eq!(send(address, "GET", path, &rebound, "").await.status, 403, "a name of its own: {path}");
    }
    let sql = json!({ "sql": "SELECT aid FROM saved_searches" }).to_string();
    let port = address.port();
    for headers in [
        &rebound[1..] as &[_],
        &[("origin", "http://evil.example")],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1:1")],
        &[("origin", &format!("http://localhost:{port}"))],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", &own)],
        &[("sec-fetch-site", "none")],
        &[],
    ] {
        let headers = [&[("cookie", served.cookie.as_str())], headers].concat();
        let reply = send(address, "POST", "/api/query", &headers, &sql).await;
        assert_eq!(reply.status, 403, "{headers:?}");
        assert_eq!(send(address, "DELETE", "/api/state", &headers, "").await.status, 403, "{headers:?}");
    }
    for (path, status) in [("/", 200), ("/api/state", 403), ("/api/results/1/rows.csv", 403)] {
        let headers = [("cookie", served.cookie.as_str()), ("sec-fetch-site", "cross-site")];
        assert_eq!(send(address, "GET", path, &headers, "").await.status, status, "{path}");
    }
    assert_eq!(served.simulator.requests(), 0);
    for (host, origin) in [
        (address.to_string(), own.clone()),
        (format!("localhost:{port}"), format!("http://localhost:{port}")),
        ("LOCALHOST".to_owned(), "https://localhost".to_owned()),
        (format!("[::1]:{port}"), format!("http://[::1]:{port}")),
    ] {
        let headers = [("cookie", served.cookie.as_str()), ("host", &host), ("origin", &origin)];
        assert_eq!(send(address, "POST", "/api/query", &headers, &sql).await.status, 200, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_sends_what_the_library_sends_and_its_cost_is_known_before() {
    let settings = Settings { clock: Clock::fixed(NOW.parse().unwrap()), ..Settings::default() };
    let served = Served::with(queries::corpus(), settings.clone(), |_, _| {}).await;
    let connection = connect(&served.simulator, settings.clock, Profile::v4());
    let context = session(&connection).unwrap();
    for query in queries::queries(served.simulator.corpus(), NOW.parse().unwrap()) {
        let before = served.simulator.requests();
        let costs = served.cost(&query.sql).await;
        assert_eq!(served.simulator.requests(), before, "an estimate costs nothing: {}", query.sql);
        let expected = rows(&context.sql(&query.sql).await.unwrap().collect().await.unwrap());
        let between = served.simulator.requests();
        let answer = served.query(&query.sql).await;
        let spent = served.simulator.requests() - between;
        let end = &answer.last["end"];
        assert_eq!((answer.rows.len(), spent), (expected.len(), between - before), "{}\n{end}", query.sql);
        assert_eq!((&end["rows"], &end["requests"]), (&json!(expected.len()), &json!(spent)), "{}", query.sql);
        let least = costs["at_least"].as_u64().unwrap_or_else(|| panic!("{}: {costs}", query.sql));
        assert!(least <= spent && (costs["exact"] == json!(false) || least == spent), "{}: {costs}", query.sql);
    }
}

/// The first query of the page.
#[tokio::test(flavor = "multi_thread")]
async fn days_by_sentiment_cost_a_request_for_each_sentiment() {
    let served = Served::new(Settings::default()).await;
    let window = format!("FROM mentions WHERE aid = '{BIG}' AND duration = '30d'");
    let of = |sentiment: &str| {
        format!(
            "SELECT date_trunc('day', published_at) AS day, '{sentiment}' AS sentiment, count(*) AS mentions\n\
             {window} AND sentiment = '{sentiment}' GROUP BY 1"
        )
    };
    let counted = ["positive", "neutral", "negative"].map(of).join("\nUNION ALL\n");
    let counted = format!("-- Mentions a day by sentiment\n{counted}\nORDER BY 1");
    let cost = served.cost(&counted).await;
    let known = [&cost["at_least"], &cost["exact"], &cost["unknown"]];
    assert_eq!(known, [&json!(3), &json!(true), &json!(0)], "{cost}");
    assert_eq!(served.simulator.requests(), 0);
    let sorted = |answer: Answer| {
        let mut rows: Vec<String> = answer.rows.iter().map(Value::to_string).collect();
        rows.sort();
        rows
    };
    let days = sorted(served.query(&counted).await);
    assert_eq!(served.simulator.requests(), 3);
    let read = format!(
        "SELECT date_trunc('day', published_at), sentiment, count(*) {window} \
         AND sentiment IN ('positive', 'neutral', 'negative') GROUP BY 1, 2"
    );
    assert!(days.len() > 30);
    assert_eq!(days, sorted(served.query(&read).await));
    assert!(served.simulator.requests() > 4, "the mentions were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_estimate_lacks_is_requested_on_demand() {
    let served = Served::new(Settings::default()).await;
    let sql = format!("SELECT title FROM mentions WHERE aid = '{BIG}' AND duration = '30d'");
    let before = served.cost(&sql).await;
    assert_eq!([&before["unknown"], &before["likely"]], [&json!(1), &Value::Null], "{before}");
    assert_eq!(served.simulator.requests(), 0);
    let found = served.post("/api/size", &json!({ "sql": sql })).await.json();
    assert_eq!(served.simulator.requests(), 1);
    assert_eq!(found["unknown"], json!(0), "{found}");
    // What is known costs nothing more.
    assert_eq!(served.post("/api/size", &json!({ "sql": sql })).await.json(), found);
    assert_eq!(served.simulator.requests(), 1);
    let spent = served.query(&sql).await.last["end"]["requests"].clone();
    assert_eq!(found["likely"], spent, "{found}");
    // A window with fewer mentions than a page.
    let hour = "published_at >= '2026-06-30T11:00:00Z' AND published_at < '2026-06-30T12:00:00Z'";
    let hour = format!("SELECT title FROM mentions WHERE aid = '{BIG}' AND {hour}");
    assert_eq!(served.cost(&hour).await["unknown"], json!(1));
    let found = served.post("/api/size", &json!({ "sql": hour })).await.json();
    assert_eq!([&found["requests"], &found["likely"]], [&json!("about 1"), &json!(1)], "{found}");
    // Nothing is asked for where nothing is missing, or where the saved searches are not known.
    for sql in ["SELECT 1", "SELECT name FROM saved_searches", "SELECT title FROM mentions WHERE duration = '30d'"] {
        assert_eq!(served.cost(sql).await["unknown"], json!(0), "{sql}");
    }
    let wrong = served.post("/api/size", &json!({ "sql": "SELECT titel FROM mentions" })).await;
    assert_eq!((wrong.status, &wrong.json()["error"]["place"]["column"]), (422, &json!(8)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_likely_cost_of_a_join_with_the_list_is_what_it_spends() {
    let served = Served::new(Settings::default()).await;
    served.query("SELECT aid FROM saved_searches").await;
    for (columns, table) in [("s.name, count(*) AS n", "mentions"), ("s.name, o.total_mentions", "overview")] {
        let grouped = if table == "mentions" { "GROUP BY 1" } else { "" };
        let joined = format!("saved_searches s JOIN {table} o ON s.aid = o.aid WHERE o.duration = '7d'");
        let sql = format!("SELECT {columns} FROM {joined} {grouped}");
        let cost = served.cost(&sql).await;
        let spent = served.query(&sql).await.last["end"]["requests"].clone();
        assert!(spent.as_u64() > Some(2) && cost["likely"] == spent, "{sql}: {spent} were sent: {cost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_those_of_the_shell() {
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let service = simulator::start("127.0.0.1:0".parse().unwrap(), corpus(), settings).await.unwrap();
    let key = datafusion_saved_search::Secret::new(KEY).unwrap();
    let connection = Connection::builder(service.base_url(), key).build().unwrap();
    let (page, host) = specs(own(&connection));
    let server = serve(page, host).await.unwrap();
    let (_, query) = server.url().split_once("/?").unwrap();
    let cookie = send(server.address(), "GET", &format!("/?{query}"), &[], "").await.cookie();
    let week = format!("aid = '{BIG}' AND duration = '2026-06-01T00:00:00Z..2026-06-08T00:00:00Z'");
    for sql in [
        format!("SELECT * FROM mentions WHERE {week}"),
        format!("SELECT extra, tags, published_at::date AS d, reach / 7.0 AS r FROM mentions WHERE {week}"),
        "SELECT * FROM saved_searches".to_owned(),
        format!("SELECT * FROM overview WHERE {week}"),
        "SELECT 1 AS a, NULL AS b, true AS c, 'x\"\\\n\u{2028}</script>' AS d, 1e300 AS e, interval '1 day' AS f"
            .to_owned(),
    ] {
        let shell = savedsearch(&["--base-url", &service.base_url(), "-q", "sql", "--format", "json", "-c", &sql])
            .env("SAVEDSEARCH_API_KEY", KEY)
            .output()
            .unwrap();
        let expected: Vec<Value> = serde_json::from_slice(&shell.stdout)
            .unwrap_or_else(|error| panic!("{sql}: {error}: {}", String::from_utf8_lossy(&shell.stderr)));
        let answer = Answer::of(&post(server.address(), "/api/query", &cookie, &json!({ "sql": sql })).await.body);
        let named = |row: &Value| -> Value {
            let pairs = answer.columns.iter().cloned().zip(row.as_array().unwrap().iter().cloned());
            Value::Object(pairs.collect())
        };
        let got: Vec<Value> = answer.rows.iter().map(named).collect();
        assert!(!got.is_empty() && got == expected, "{sql}\n{got:?}\n{expected:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_have_a_place_and_advice_and_cost_nothing() {
    let served = Served::new(Settings::default()).await;
    for (sql, told, place) in [
        ("SELECT titel\nFROM mentions", "did you mean", Some((1, 8))),
        ("SELECT title\nFROM mention", "did you mean mentions?", Some((2, 6))),
        ("SELECT 1,\n  )", "", Some((2, 3))),
        ("SELECT count(*),\n  title FROM mentions", "must be in GROUP BY", Some((2, 3))),
        ("SELECT\n  aid FROM mentions a JOIN mentions b ON a.id = b.id", "is ambiguous", Some((2, 3))),
        ("SELEC 1", "", Some((1, 1))),
        ("INSERT INTO mentions SELECT * FROM mentions", "read-only; only queries run here", None),
        ("SET savedsearch.max_requests = 5", "only queries run here", None),
        ("CREATE TABLE t AS SELECT 1", "only queries run here", None),
        ("SELECT 1; SELECT 2", "exactly one statement", None),
        ("SELECT $1", "write parameters as :name", None),
        ("SELECT :x", "parameter `x` is not set", Some((1, 8))),
    ] {
        for path in ["/api/estimate", "/api/query"] {
            let reply = served.post(path, &json!({ "sql": sql })).await;
            let error = &reply.json()["error"];
            assert_eq!(reply.status, 422, "{sql}: {reply:?}");
            assert!(error["message"].as_str().unwrap().contains(told), "{sql}: {error}");
            let found = error["place"].as_object().map(|place| (place["line"].as_u64(), place["column"].as_u64()));
            let expected = place.map(|(line, column)| (Some(line), Some(column)));
            if expected.is_some() {
                assert_eq!(found, expected, "{sql}: {error}");
            }
        }
    }
    for body in ["", "{", "[]", "{\"sql\":1}", "{\"sql\":\"SELECT 1\",\"more\":1}"] {
        let headers = [("cookie", served.cookie.as_str()), ("sec-fetch-site", "same-origin")];
        assert_eq!(send(served.server.address(), "POST", "/api/query", &headers, body).await.status, 422, "{body}");
    }
    let settings = json!({ "sql": "SELECT 1", "settings": { "max_requests": "many" } });
    let refused = served.post("/api/query", &settings).await;
    assert!(refused.status == 422 && refused.body.contains("for “At most”"), "{refused:?}");
    assert_eq!(served.simulator.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_settings_and_completion_are_those_of_the_shell() {
    let served = Served::new(Settings::default()).await;
    let sql = "SELECT :'name' AS a, :number + 1 AS b";
    let answer = served.ask(&json!({ "sql": sql, "variables": { "name": "O'Neil", "number": "41" } })).await;
    assert_eq!(answer.rows, [json!(["O'Neil", 42])]);
    // The place of a mistake is that of the typed text, also behind a value and within one.
    for (sql, value, place) in [
        ("SELECT :'x' AS a,\n  titel FROM mentions WHERE title = :'x'", "a\nlong value", (2, 3)),
        ("SELECT 1 AS a, :x FROM mentions", "titel", (1, 16)),
        ("SELECT :'x', titel FROM mentions", "é", (1, 14)),
    ] {
        let wrong = served.post("/api/estimate", &json!({ "sql": sql, "variables": { "x": value } })).await;
        let found = wrong.json()["error"]["place"].clone();
        assert_eq!((&found["line"], &found["column"]), (&json!(place.0), &json!(place.1)), "{sql}: {wrong:?}");
    }
    let wide = "SELECT id FROM mentions WHERE duration = '90d' AND title LIKE '%a%'";
    let few = served.post("/api/query", &json!({ "sql": wide, "settings": { "max_requests": "2" } })).await;
    assert!(few.body.contains("“At most” allows 2") && few.body.contains("raise the limit: “At most"), "{few:?}");
    assert!(!few.body.contains("SET "), "{few:?}");
    assert!(served.simulator.requests() <= 2);
    let (before, ask) = (served.simulator.requests(), json!({ "sql": wide, "settings": { "estimate": "ask" } }));
    let refused = served.post("/api/estimate", &ask).await;
    assert!(refused.body.contains("is supported in the shell only"), "{refused:?}");
    assert_eq!(served.simulator.requests(), before);
    let zone = "SELECT timestamp '2026-07-01 00:00:00'::timestamptz AS t";
    let berlin = served.ask(&json!({ "sql": zone, "settings": { "timezone": "Europe/Berlin" } })).await;
    assert_eq!(berlin.rows, [json!(["2026-07-01T00:00:00+02:00"])]);
    assert_eq!(served.query(zone).await.rows, [json!(["2026-07-01T00:00:00Z"])], "the session is as before");
    let typed = json!({ "before": "SELECT 'é' FROM sav", "after": "" });
    let words = served.post("/api/complete", &typed).await.json();
    assert_eq!((&words["replaces"], &words["words"][0][1]), (&json!(3), &json!("saved_searches")), "{words}");
    let long = served.post("/api/complete", &json!({ "before": "x".repeat(1 << 20), "after": "" })).await;
    assert!(long.status == 429 && long.body.contains("statement too long"), "{}", long.body);
    served.query("SELECT aid FROM saved_searches").await;
    let known = served.get("/api/state").await.json()["search"].clone();
    let named = served.query("SELECT aid FROM saved_searches WHERE name <> ''").await.rows;
    assert!(named.contains(&json!([known])), "{known}");
    let before = format!("SELECT * FROM mentions WHERE aid = '{}", &BIG[..3]);
    let words = served.post("/api/complete", &json!({ "before": before, "after": "" })).await.json();
    assert!(words["words"][0][1].as_str().unwrap().starts_with(BIG), "{words}");
    // Two saved searches have the typed part of a name: each can be chosen, by its aid.
    let acme = json!({ "before": "SELECT * FROM mentions WHERE aid = 'acm", "after": "" });
    let words = served.post("/api/complete", &acme).await.json();
    let acme = served.query("SELECT aid, name FROM saved_searches WHERE name LIKE 'Acme%'").await.rows;
    let part = |row: &Value, at: usize| row[at].as_str().unwrap().to_owned();
    let pairs = |row: &Value| json!([format!("{}  {}", part(row, 0), part(row, 1)), format!("{}'", part(row, 0))]);
    assert_eq!((acme.len(), &words["words"]), (2, &acme.iter().map(pairs).collect::<Value>()), "{words}");
    let tables = served.get("/api/tables").await.json();
    let names: Vec<_> = tables.as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"mentions") && names.contains(&"system.budget"), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_ends_the_requests() {
    let served = Served::new(Settings { delay: Duration::from_secs(1), ..Settings::default() }).await;
    let sql = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '90d' AND title LIKE '%a%'");
    let origin = format!("http://{}", served.server.address());
    let headers = [("cookie", served.cookie.as_str()), ("origin", &origin)];
    let body = json!({ "sql": sql }).to_string();
    let stream = begin(served.server.address(), "POST", "/api/query", &headers, &body).await;
    while served.simulator.requests() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    drop(stream);
    let (spent, all) = (settled(|| served.simulator.requests()).await, pages_of_90_days(&served.simulator));
    assert!(spent < all, "{spent} of {all} pages");
    assert_eq!(served.query("SELECT 1").await.rows, [json!([1])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_does_not_read_stops_the_paging() {
    let many = Corpus::generate(CorpusSpec { seed: 7, searches: 1, mentions: 40_000, now: now() });
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let served = Served::with(Arc::new(many), settings, |_, _| {}).await;
    // Rows that are larger than what sockets hold.
    let sql = format!("SELECT *, repeat(text, 20) AS long FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    let origin = format!("http://{}", served.server.address());
    let headers = [("cookie", served.cookie.as_str()), ("origin", &origin)];
    let body = json!({ "sql": sql }).to_string();
    let mut stream = begin(served.server.address(), "POST", "/api/query", &headers, &body).await;
    let mut part = [0; 64];
    stream.read_exact(&mut part).await.unwrap();
    let mut spent = 0;
    while spent == 0 || served.simulator.requests() > spent {
        spent = served.simulator.requests();
        sleep(Duration::from_secs(1)).await;
    }
    assert!(spent < 300, "{spent} of about 400 pages although nobody reads");
    drop(stream);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_charts_of_a_result_need_no_request() {
    let served = Served::new(Settings::default()).await;
    let sql = format!("SELECT source, count(*) AS n FROM mentions WHERE aid = '{BIG}' GROUP BY source ORDER BY n DESC");
    let answer = served.query(&sql).await;
    let result = answer.last["end"]["result"].as_str().unwrap().to_owned();
    let file = async |name: &str| served.get(&format!("/api/results/{result}/{name}")).await;
    let csv = file("rows.csv?save=true").await;
    assert!(csv.header("content-disposition").unwrap().contains("savedsearch.csv"));
    let lines: Vec<_> = answer.rows.iter().map(|row| format!("{},{}", row[0].as_str().unwrap(), row[1])).collect();
    assert_eq!(csv.body.lines().collect::<Vec<_>>(), [&["source,n".to_owned()], &lines[..]].concat());
    let excel = file("rows.csv?dialect=excel&separator=%3B&save=true").await;
    assert!(excel.body.starts_with("\u{feff}source;n\r\n"), "{}", excel.body);
    for options in ["dialect=calc", "separator=x", "separator=%22"] {
        assert_eq!(file(&format!("rows.csv?{options}")).await.status, 400, "{options}");
    }
    for (name, begins) in [("rows.parquet", "PAR1"), ("rows.xlsx", "PK"), ("chart.png", "\u{fffd}PNG")] {
        let reply = file(name).await;
        assert!(reply.status == 200 && reply.body.starts_with(begins), "{name}: {}", reply.head);
    }
    let svg = file("chart.svg?form=bars&title=Sources").await;
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    assert!(svg.body.contains("<svg") && svg.body.contains("Sources") && svg.body.contains(", UTC<"), "{}", svg.body);
    let narrow = file("chart.svg?form=bars&width=340").await.body;
    assert!(narrow.contains(" width=\"340\" "), "{narrow}");
    assert_eq!(file("chart.svg?form=lines").await.status, 422, "names have no places");
    assert_eq!(file("chart.svg?form=pie").await.status, 400);
    assert_eq!(file("rows.exe").await.status, 404);
    assert_eq!(file("kept").await.status, 204);
    for name in ["rows.csv", "kept"] {
        assert_eq!(served.get(&format!("/api/results/0/{name}")).await.status, 404, "{name}");
    }
    let window = "duration = '2026-06-01T00:00:00Z..2026-06-08T00:00:00Z'";
    let times = json!({
        "sql": format!("SELECT published_at, reach FROM mentions WHERE aid = '{BIG}' AND {window}"),
        "settings": { "timezone": "Asia/Tokyo" },
    });
    let answer = served.ask(&times).await;
    let berlin = format!(
        "SELECT (published_at AT TIME ZONE 'Europe/Berlin')::date AS day, sentiment, count(*) AS n FROM mentions \
         WHERE aid = '{BIG}' AND {window} GROUP BY 1, 2"
    );
    let days = served.query(&berlin).await.last["end"]["result"].as_str().unwrap().to_owned();
    let spent = served.simulator.requests();
    let svg = served.get(&format!("/api/results/{days}/chart.svg")).await.body;
    assert!(svg.contains(">day (Europe/Berlin)<") && !svg.contains("UTC"), "{svg}");
    let hours = served.get(&format!("/api/results/{days}/chart.svg?form=heatmap")).await;
    assert!(hours.status == 422 && hours.body.contains("day has days without hours"), "{hours:?}");
    assert!(answer.rows.iter().all(|row| row[0].as_str().unwrap().ends_with("+09:00")), "{:?}", answer.rows.first());
    let result = answer.last["end"]["result"].as_str().unwrap().to_owned();
    for (form, part) in [("auto", "<svg"), ("points", "<circle"), ("heatmap", "<title>Sun 23:00: ")] {
        let svg = served.get(&format!("/api/results/{result}/chart.svg?form={form}")).await;
        assert_eq!(svg.status, 200, "{form}: {}", svg.body);
        assert!(
            svg.body.contains("1 Jun to 8 Jun 2026, Asia/Tokyo") && svg.body.contains(part),
            "{form}: {}",
            svg.body
        );
        let png = served.get(&format!("/api/results/{result}/chart.png?form={form}")).await;
        assert!(png.status == 200 && png.body.starts_with("\u{fffd}PNG"), "{form}: {}", png.head);
    }
    // A letter that no font has: whoever asked hears of it.
    let letters = served.query("SELECT 'a\u{378}' AS kind, 1 AS n UNION ALL SELECT 'b', 2").await;
    let letters = letters.last["end"]["result"].as_str().unwrap().to_owned();
    let png = served.get(&format!("/api/results/{letters}/chart.png")).await;
    assert!(png.header("savedsearch-note").is_some_and(|note| note.contains("no%20font") && note.contains("%CD%B8")));
    assert_eq!(served.get(&format!("/api/results/{letters}/chart.svg")).await.header("savedsearch-note"), None);
    let texts = served.query("SELECT 'a' AS a, 'b' AS b").await.last["end"]["result"].as_str().unwrap().to_owned();
    let undrawn = served.get(&format!("/api/results/{texts}/chart.svg")).await;
    assert!(undrawn.status == 422 && undrawn.body.contains("b is text; a chart needs numbers after"), "{undrawn:?}");
    assert_eq!(served.simulator.requests(), spent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_sent_takes_the_place_of_a_query() {
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let served = Served::with(corpus(), settings, |_, host| host.limits.streams_per_session = 1).await;
    // More than sockets hold.
    let answer = served.query("SELECT repeat('x', 1000) AS t FROM generate_series(1, 32000)").await;
    let path = format!("/api/results/{}/rows.csv", answer.last["end"]["result"].as_str().unwrap());
    let headers = [("cookie", served.cookie.as_str())];
    let mut stream = begin(served.server.address(), "GET", &path, &headers, "").await;
    stream.read_exact(&mut [0; 64]).await.unwrap();
    let refused = served.get(&path).await;
    assert_eq!(refused.status, 429);
    assert!(refused.body.contains("too many running queries: the session is limited to 1"), "{}", refused.body);
    drop(stream);
    while served.get(&path).await.status == 429 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(served.get(&path).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_third_parties_wrote_stays_text() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{2028}";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.ndjson");
    let records: String = (0..3)
        .map(|n| {
            let named = json!({ "name": hostile, "handle": hostile });
            let record = json!({ "aid": "7", "id": format!("{n}{hostile}"), "publishedAt": "2026-06-30T12:00:00Z",
                "title": hostile, "text": hostile, "source": named, "author": named, "url": "javascript:alert(1)" });
            format!("{record}\n")
        })
        .collect();
    std::fs::write(&file, records).unwrap();
    let named = json!([{ "aid": "7", "name": hostile, "query": hostile }]);
    std::fs::write(folder.path().join("saved_searches.json"), named.to_string()).unwrap();
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let served = Served::with(Arc::new(Corpus::load(&file).unwrap()), settings, |_, _| {}).await;
    let reply = served.post("/api/query", &json!({ "sql": "SELECT * FROM mentions WHERE aid = '7'" })).await;
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(Answer::of(&reply.body).rows.len(), 3, "{reply:?}");
    let named = served.query("SELECT name FROM saved_searches").await;
    assert_eq!(named.rows, [json!([hostile])]);
    let words = json!({ "before": "SELECT * FROM mentions WHERE aid = '", "after": "" });
    let words = served.post("/api/complete", &words).await;
    assert_eq!((words.header("content-type"), &words.json()["words"][0][1]), (Some("application/json"), &json!("7'")));
    let sql = format!("SELECT '{hostile}' AS \"{hostile}\", 1 AS n UNION ALL SELECT 'b', 2");
    let answer = served.query(&sql).await;
    let result = answer.last["end"]["result"].as_str().unwrap();
    let svg = served.get(&format!("/api/results/{result}/chart.svg")).await;
    assert!(svg.status == 200 && !svg.body.contains("<script") && !svg.body.contains("<img"), "{}", svg.body);
    assert_eq!(svg.header("content-security-policy").map(|policy| policy.contains("script-src 'self'")), Some(true));
    let wrong = served.post("/api/query", &json!({ "sql": format!("SELECT \"{hostile}\"") })).await;
    assert_eq!(wrong.header("content-type"), Some("application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn users_log_in_and_do_not_see_each_others_results() {
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let served = Served::with(corpus(), settings, |_, host| host.auth = Auth::Users(users())).await;
    let address = served.server.address();
    assert!(!served.server.url().contains("token"), "{}", served.server.url());
    let none = served.get("/api/state").await;
    assert_eq!((none.status, &none.json()["login"]), (401, &json!("password")));
    for login in [json!({ "name": "ada", "secret": "wrong" }), json!({ "secret": "wrong" }), json!({ "name": "ada" })] {
        let refused = post(address, "/api/login", "", &login).await;
        assert!(matches!(refused.status, 401 | 422) && refused.header("set-cookie").is_none(), "{refused:?}");
    }
    let ada = post(address, "/api/login", "", &json!({ "name": "ada", "secret": "swordfish" })).await.cookie();
    let bob = post(address, "/api/login", "", &json!({ "secret": "bobs-token" })).await.cookie();
    let get = async |path: &str, cookie: &str| send(address, "GET", path, &[("cookie", cookie)], "").await;
    assert_eq!(get("/api/state", &ada).await.json()["user"], "ada");
    assert_eq!(get("/api/state", &bob).await.json()["user"], "bob");
    let asked = post(address, "/api/query", &ada, &json!({ "sql": "SELECT aid, name FROM saved_searches" })).await;
    let answer = Answer::of(&asked.body);
    let file = format!("/api/results/{}/rows.csv", answer.last["end"]["result"].as_str().unwrap());
    assert_eq!((get(&file, &ada).await.status, get(&file, &bob).await.status), (200, 404));
    // His budget is 3 requests an hour; hers is the key's.
    let free = json!({ "sql": "SELECT 1" });
    let allowance =
        async |cookie: &str| post(address, "/api/estimate", cookie, &free).await.json()["allowance"].clone();
    assert_eq!([allowance(&ada).await, allowance(&bob).await], [Value::Null, json!(3)]);
    let own = json!({ "sql": "SELECT count(*) FROM system.requests" });
    assert_eq!(Answer::of(&post(address, "/api/query", &bob, &own).await.body).rows, [json!([0])]);
    let wide = json!({ "sql": format!("SELECT aid, total_mentions FROM overview WHERE aid IN ('{BIG}', '{OTHER}')") });
    for _ in 0..2 {
        post(address, "/api/query", &bob, &wide).await;
    }
    let spent = served.simulator.requests();
    assert!(spent <= 4, "{spent}");
    assert_eq!(post(address, "/api/logout", &ada, &json!({})).await.status, 200);
    assert_eq!(get("/api/state", &ada).await.status, 401, "the cookie is worth nothing now");
    assert_eq!(get("/api/state", &bob).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tabs_at_once_are_answered() {
    let served = Served::new(Settings::default()).await;
    let tab = async |number: usize| {
        let reply = served.post("/api/query", &json!({ "sql": format!("SELECT {number} AS n") })).await;
        (reply.status, reply.body.contains(&format!("\n[{number}]\n")))
    };
    assert!(join_all((0..50).map(tab)).await.into_iter().all(|answer| answer == (200, true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboards_are_files_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let text = "title = \"Brand <b>\"\nrefresh = \"15m\"\n[[queries]]\ntitle = \"a\"\nsql = \"SELECT 1 AS n\"\nchart = \"number\"\n";
    std::fs::write(folder.path().join("brand.toml"), text).unwrap();
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let dashboards = Some(folder.path().to_owned());
    let served = Served::with(corpus(), settings, |page, _| page.dashboards = dashboards).await;
    let state = served.get("/api/state").await.json();
    assert_eq!(state["dashboards"], json!(folder.path().to_str().unwrap()), "where to put others");
    let listed = served.get("/api/dashboards").await.json();
    assert_eq!(listed, json!([{ "name": "brand", "title": "Brand <b>", "error": null }]));
    let read = served.get("/api/dashboards/brand").await.json();
    assert_eq!((&read["refresh_seconds"], &read["queries"][0]["chart"]), (&json!(900), &json!("number")));
    for name in ["none", "..%2Fbrand", "%2Fetc%2Fpasswd", "brand.toml"] {
        assert_eq!(served.get(&format!("/api/dashboards/{name}")).await.status, 404, "{name}");
    }
    // A mistake that is made while it runs is shown.
    std::fs::write(folder.path().join("new.toml"), "title = 1\n").unwrap();
    let listed = served.get("/api/dashboards").await.json();
    assert!(listed[1]["error"].as_str().unwrap().contains("new.toml: line 1"), "{listed}");
    assert_eq!(served.get("/api/dashboards/new").await.status, 422);
    let (mut page, host) = specs(own(&connect(&served.simulator, Clock::fixed(now()), Profile::v4())));
    page.dashboards = Some(folder.path().to_owned());
    let refused = serve(page, host).await.expect_err("an invalid dashboard").to_string();
    assert!(refused.contains("new.toml"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_beside_a_server_has_its_users_and_ends_with_it() {
    let simulator = Simulator::new(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() });
    let connection = connect(&simulator, Clock::fixed(now()), Profile::v4());
    let mut host = HostSpec::new(Auth::Users(users()), own(&connection));
    host.limits.drain_seconds = 1;
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = FlightServer::start(ServerSpec { listen, tls: None, insecure: false, host }).await.unwrap();
    let page = || PageSpec { listen: ALONE.parse().unwrap(), tls: None, insecure: false, dashboards: None };
    let ui = serve_beside(page(), server.host()).await.unwrap();
    let login = json!({ "name": "ada", "secret": "swordfish" });
    let cookie = post(ui.address(), "/api/login", "", &login).await.cookie();
    let reply = post(ui.address(), "/api/query", &cookie, &json!({ "sql": "SELECT 1 AS n" })).await;
    assert_eq!(Answer::of(&reply.body).rows, [json!([1])]);
    let address = ui.address();
    let exposed = PageSpec { listen: "0.0.0.0:0".parse().unwrap(), ..page() };
    let refused = serve_beside(exposed, server.host()).await.expect_err("passwords in clear text").to_string();
    assert!(refused.contains("clear text"), "{refused}");
    tokio::join!(ui.shut_down(), server.shut_down()).1.unwrap();
    expect_closed(address).await;
}

#[test]
fn mistakes_in_dashboards_are_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let query = |title: &str, sql: &str| format!("[[queries]]\ntitle = \"{title}\"\nsql = \"{sql}\"\n");
    let queries = [query("Right", "SELECT title FROM mentions"), query("Wrong", "SELECT titel FROM mentions")].concat();
    std::fs::write(folder.path().join("brand.toml"), format!("title = \"Brand\"\n{queries}")).unwrap();
    std::fs::write(folder.path().join(".brand.toml"), "no dashboard").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("gone.toml")).unwrap();
    let command = ["ui", folder.path().to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut child = savedsearch(&command).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let told: Vec<String> = lines.take_while(|line| !line.starts_with("page on ")).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let told: Vec<&String> = told.iter().filter(|line| line.contains(".toml")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("brand.toml: Wrong: line 1, column 8: ") && told[0].contains("WARN"), "{told:?}");
    assert!(told[1].contains("gone.toml: cannot be read"), "{told:?}");
}

/// Runs on one thread, on which the events are counted.
#[tokio::test]
async fn queries_of_dashboards_that_cannot_be_checked_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = "title = \"Brand\"\n[[queries]]\ntitle = \"a\"\nsql = \"SELECT 1 AS n\"\n";
    std::fs::write(folder.path().join("brand.toml"), text).unwrap();
    let simulator = Simulator::new(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() });
    let told = EventCounter::of("ui::server");
    let start = async |sessions: usize| {
        let (mut page, mut host) = specs(own(&connect(&simulator, Clock::fixed(now()), Profile::v4())));
        page.dashboards = Some(folder.path().to_owned());
        host.limits.sessions = sessions;
        let before = told.events();
        drop(serve(page, host).await.unwrap());
        told.events() - before
    };
    // The event is registered before it is watched.
    assert_eq!(start(0).await, 0);
    let _watched = tracing::subscriber::set_default(told.clone());
    assert_eq!((start(1).await, start(0).await), (0, 1));
}

#[test]
fn the_program_prints_the_address_of_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for command in [
        &["ui", folder, "--listen", "127.0.0.1:0"] as &[_],
        &["serve", "--listen", "127.0.0.1:0", "--ui", "127.0.0.1:0", "--dashboards", folder],
    ] {
        let mut child = savedsearch(command).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("page on ")).unwrap();
        let url = line.trim_start_matches("page on http://").to_owned();
        lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("listening on ")).unwrap();
        let (address, query) = url.split_once("/?").unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let reply = runtime.block_on(send(address.parse().unwrap(), "GET", &format!("/?{query}"), &[], ""));
        assert_eq!(reply.status, 303, "{command:?}");
        let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        assert!(child.wait().unwrap().success(), "{command:?}");
    }
    let refused = savedsearch(&["ui", "--listen", "0.0.0.0:0"]).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let refused = savedsearch(&["serve", "--dashboards", folder]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
