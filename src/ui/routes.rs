//! The files of the page, and the calls of its scripts.

use std::io::Read;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::access::{Access, Login};
use super::dashboards::Folder;
use super::query::{Question, budget, costs, costs_by_size, known_search, run, tables, told_of};
use super::results::Results;
use crate::config::SessionSettings;
use crate::error::Error;
use crate::host::failure::{Code, Failure};
use crate::host::http::received;
use crate::host::peer::Caller;
use crate::host::sessions::Session;
use crate::host::state::Host;
use crate::memory;
use crate::session::bytes_of_tokens;
use crate::shell::{ChartForm, ChartOptions, CsvDialect, CsvOptions, Format, KEYWORDS, OutputOptions, Words};

/// Bytes that a message may have in addition to the statement in it.
const AROUND: usize = 1 << 20;
/// Bytes of a login.
const LOGIN: usize = 16 << 10;
/// Header of a file with what it does not show, percent-encoded.
const NOTE: HeaderName = HeaderName::from_static("savedsearch-note");
/// Bytes of a file that are read at once.
const READ: usize = 256 << 10;

/// The files of the page: path, type and text.
const FILES: [(&str, &str, &str); 11] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/app.js", SCRIPT, include_str!("page/app.js")),
    ("/ask.js", SCRIPT, include_str!("page/ask.js")),
    ("/calls.js", SCRIPT, include_str!("page/calls.js")),
    ("/dashboards.js", SCRIPT, include_str!("page/dashboards.js")),
    ("/draw.js", SCRIPT, include_str!("page/draw.js")),
    ("/editor.js", SCRIPT, include_str!("page/editor.js")),
    ("/overview.js", SCRIPT, include_str!("page/overview.js")),
    ("/table.js", SCRIPT, include_str!("page/table.js")),
];
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Headers of every response. Scripts and styles come from files of the page alone; pictures are drawn here, or in the page.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// The page, for all connections.
#[derive(Clone)]
pub(super) struct Page {
    shared: Arc<Shared>,
    calls: Router,
}

struct Shared {
    host: Arc<Host>,
    access: Access,
    results: Arc<Results>,
    dashboards: Folder,
}

/// Session of a call.
type Own = Extension<Arc<Session>>;
type Server = State<Arc<Shared>>;

impl Page {
    pub(super) fn new(host: Arc<Host>, access: Access, dashboards: Folder) -> Self {
        let shared = Arc::new(Shared { host, access, results: Arc::default(), dashboards });
        let calls = Router::new()
            .route("/api/state", get(state))
            .route("/api/tables", get(list_tables))
            .route("/api/names", get(list_names))
            .route("/api/complete", post(complete))
            .route("/api/estimate", post(estimate))
            .route("/api/size", post(size))
            .route("/api/query", post(query))
            .route("/api/results/{id}/{name}", get(result))
            .route("/api/dashboards", get(list_dashboards))
            .route("/api/dashboards/{name}", get(dashboard))
            .route("/api/logout", post(log_out))
            .fallback(|| async { plain(StatusCode::NOT_FOUND, "there is nothing at this address") })
            .with_state(Arc::clone(&shared));
        Self { shared, calls }
    }

    /// Answers a request of a connection.
    pub(super) async fn answer(self, request: Request<Incoming>, caller: Caller) -> Response {
        let (head, body) = request.into_parts();
        let mut response = match self.shared.access.check(&head.method, head.uri.path(), &head.headers) {
            Ok(()) => self.admitted(head, body, caller).await,
            Err((status, line)) => plain(status, &line),
        };
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    async fn admitted(self, mut head: Parts, body: Incoming, caller: Caller) -> Response {
        let Self { shared, calls } = self;
        let path = head.uri.path();
        if head.method == Method::GET
            && let Some((_, kind, text)) = FILES.iter().find(|(known, ..)| *known == path)
        {
            return file(&shared.access, head.uri.query(), kind, text);
        }
        let Some(call) = shared.host.standing.call(caller.peer) else {
            let line = "too many concurrent calls before authentication";
            return plain(StatusCode::TOO_MANY_REQUESTS, line);
        };
        let log_in = head.method == Method::POST && path == "/api/login";
        let session = match log_in {
            true => None,
            false => match shared.access.session(&head.headers, caller).await {
                Ok(session) => Some(session),
                Err(failure) => return refused(&shared, &failure, shared.access.is_stale(&head.headers)),
            },
        };
        let (most, memory) = match &session {
            None => (LOGIN, None),
            Some(session) => (shared.host.limits.statement_bytes.saturating_add(AROUND), Some(session.received())),
        };
        let (body, memory) = match received(body, most, memory).await {
            Ok(received) => received,
            Err((status, line)) => return plain(status, &line),
        };
        let Some(session) = session else { return logged_in(&shared, &body, caller).await };
        shared.host.standing.log_in(caller.peer, &session.principal.name, session.is_proven());
        shared.host.metrics.called("Ui".to_owned(), Code::Ok.name());
        head.extensions.insert(session);
        let Ok(response) = calls.oneshot(Request::from_parts(head, Body::from(body))).await;
        // The call lasts until its response is sent.
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _ = (&call, &memory);
                frame
            }))
        })
    }
}

/// A file of the page. A token in the address becomes a cookie, and disappears from the address. A wrong one leaves `?stale` there, so
/// that the page can say why it asks for a token.
fn file(access: &Access, query: Option<&str>, kind: &'static str, text: &'static str) -> Response {
    let token = query.and_then(|query| url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token"));
    if kind == HTML
        && let Some((_, token)) = token
    {
        let mut response = StatusCode::SEE_OTHER.into_response();
        let headers = response.headers_mut();
        let cookie = access.cookie_of_url(&token);
        let stale = cookie.is_none() && access.form() == "token";
        headers.insert(header::LOCATION, HeaderValue::from_static(if stale { "/?stale" } else { "/" }));
        if let Some(cookie) = cookie {
            headers.insert(header::SET_COOKIE, cookie);
        }
        return response;
    }
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn logged_in(shared: &Shared, body: &Bytes, caller: Caller) -> Response {
    let login: Login = match parsed(body) {
        Ok(login) => login,
        Err(failure) => return refused(shared, &failure, false),
    };
    match shared.access.log_in(login, caller).await {
        Ok(cookie) => ([(header::SET_COOKIE, cookie)], json_of(&json!({}))).into_response(),
        Err(failure) => refused(shared, &failure, false),
    }
}

/// A refusal with the form of login that it needs, and whether the request has an old token.
fn refused(shared: &Shared, failure: &Failure, stale: bool) -> Response {
    shared.host.metrics.called("refused".to_owned(), failure.code.name());
    let mut told = told_of(failure);
    told["login"] = shared.access.form().into();
    told["stale"] = stale.into();
    (status_of(failure.code), json_of(&told)).into_response()
}

fn failed(failure: &Failure) -> Response {
    (status_of(failure.code), json_of(&told_of(failure))).into_response()
}

fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::InvalidArgument | Code::Unimplemented | Code::FailedPrecondition => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Unavailable | Code::Cancelled | Code::Aborted => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn plain(status: StatusCode, line: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{line}\n")).into_response()
}

fn json_of(value: &Value) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string())
}

/// Reads the body of a call.
///
/// # Errors
/// INVALID_ARGUMENT for anything else than the call takes.
fn parsed<T: DeserializeOwned>(body: &Bytes) -> Result<T, Failure> {
    let wrong = |error| Failure::new(Code::InvalidArgument, format!("the call cannot be read: {error}"));
    serde_json::from_slice(body).map_err(wrong)
}

fn answered<T: serde::Serialize>(answer: Result<T, Failure>) -> Response {
    let written = answer.and_then(|answer| {
        serde_json::to_value(answer).map_err(|error| Failure::new(Code::Internal, error.to_string()))
    });
    match written {
        Ok(value) => json_of(&value).into_response(),
        Err(failure) => failed(&failure),
    }
}

/// The user, the limits, the saved searches that are known, and the words that the editor colours.
async fn state(State(shared): Server, Extension(session): Own) -> Response {
    let (own, form, dashboards) = (Arc::clone(&session), shared.access.form(), shared.dashboards.path());
    // Reading the budget plans a query.
    let state = async move {
        let session = own;
        let mut words = session.context.state().aggregate_functions().keys().cloned().collect::<Vec<_>>();
        words.extend(session.context.state().scalar_functions().keys().cloned());
        words.extend(session.context.state().window_functions().keys().cloned());
        let profile = session.connections().iter().flat_map(|connection| connection.profile().dimensions());
        let profile = profile.map(|(name, value, evidence)| json!([name, value, evidence])).collect::<Vec<_>>();
        let settings = SessionSettings::of(session.context.state().config_options());
        Ok::<_, Failure>(json!({
            "max_requests": settings.max_requests,
            "now": session.connections().first().map(|connection| connection.now().to_rfc3339()),
            "timezone": if settings.timezone.is_empty() { "UTC" } else { settings.timezone.as_str() },
            "user": &*session.principal.name,
            "login": form,
            "version": env!("CARGO_PKG_VERSION"),
            "keywords": &KEYWORDS[..],
            "functions": words,
            "budget": budget(&session).await?,
            "search": known_search(&session).await?,
            "store": session.context.table_provider("system.store").await.is_ok(),
            "profile": profile,
            "dashboards": dashboards,
        }))
    };
    answered(shared.host.away(&session, state).await)
}

async fn list_tables(State(shared): Server, Extension(session): Own) -> Response {
    let own = Arc::clone(&session);
    answered(shared.host.away(&session, async move { tables(&own).await }).await)
}

/// Aids of the last list, with their names. Sends no request.
async fn list_names(Extension(session): Own) -> Response {
    let connection = session.connections().first();
    answered(Ok(connection.and_then(|connection| connection.known_searches()).unwrap_or_default()))
}

/// Text before and behind the cursor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    before: String,
    after: String,
}

/// Completions of the word before the cursor, and the length of what they replace in UTF-16 code units.
async fn complete(State(shared): Server, Extension(session): Own, body: Bytes) -> Response {
    let (host, own) = (Arc::clone(&shared.host), Arc::clone(&session));
    let work = async move {
        let Typed { before, after } = parsed(&body)?;
        let text = format!("{before} {after}");
        host.allow_length(&text)?;
        let Some(connection) = own.connections().first() else { return Ok(json!({ "words": [] })) };
        let known = connection.known_searches().unwrap_or_default();
        let words = Words::of(&own.context, connection, known, Vec::new()).await;
        let _turn = own.share.planning(text.len()).await;
        let _room = memory::room(bytes_of_tokens(&text)).map_err(Failure::own)?;
        let (start, found) = words.complete(&before, &after);
        let found = found.iter().take(60).map(|word| json!([word.shown, word.chosen])).collect::<Vec<_>>();
        Ok::<_, Failure>(json!({ "replaces": before[start..].encode_utf16().count(), "words": found }))
    };
    answered(shared.host.away(&session, work).await)
}

async fn estimate(State(shared): Server, Extension(session): Own, body: Bytes) -> Response {
    let (host, own) = (Arc::clone(&shared.host), Arc::clone(&session));
    let work = async move { costs(&host, &own, parsed(&body)?).await };
    answered(shared.host.away(&session, work).await)
}

/// As [`estimate`], with the numbers of mentions that it lacks: the only call beside [`query`] that sends requests.
async fn size(State(shared): Server, Extension(session): Own, body: Bytes) -> Response {
    let (host, own) = (Arc::clone(&shared.host), Arc::clone(&session));
    let work = async move { costs_by_size(&host, &own, parsed(&body)?).await };
    answered(shared.host.away(&session, work).await)
}

async fn query(State(shared): Server, Extension(session): Own, body: Bytes) -> Response {
    let question: Question = match parsed(&body) {
        Ok(question) => question,
        Err(failure) => return failed(&failure),
    };
    match run(Arc::clone(&shared.host), session, Arc::clone(&shared.results), question).await {
        Ok(lines) => {
            let body = Body::from_stream(lines.map(Ok::<_, std::convert::Infallible>));
            ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
        }
        Err(failure) => failed(&failure),
    }
}

/// Options of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawn {
    #[serde(default)]
    form: ChartForm,
    title: Option<String>,
    width: Option<u32>,
    height: Option<u32>,
    #[serde(default)]
    dialect: CsvDialect,
    separator: Option<String>,
    /// Set if the file is to be saved, not shown.
    #[serde(default)]
    save: bool,
}

/// A result that was sent before, as a file: `chart.svg`, `rows.csv`. `kept` is empty, and is there while files are. Sends no
/// request.
async fn result(
    State(shared): Server,
    Extension(session): Own,
    Path((id, name)): Path<(String, String)>,
    Query(drawn): Query<Drawn>,
) -> Response {
    let Some(kept) = shared.results.find(&session.principal.name, &id) else {
        return plain(StatusCode::NOT_FOUND, "this result is no longer kept; run the query again");
    };
    if name == "kept" {
        return StatusCode::NO_CONTENT.into_response();
    }
    let kinds: [(&str, Format, &str); 7] = [
        ("csv", Format::Csv, "text/csv; charset=utf-8"),
        ("json", Format::Json, "application/json"),
        ("ndjson", Format::Ndjson, "application/x-ndjson"),
        ("xlsx", Format::Xlsx, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("parquet", Format::Parquet, "application/vnd.apache.parquet"),
        ("svg", Format::Svg, "image/svg+xml"),
        ("png", Format::Png, "image/png"),
    ];
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let Some((extension, format, kind)) = kinds.into_iter().find(|(known, ..)| extension == Some(*known)) else {
        return plain(StatusCode::NOT_FOUND, "unknown format: csv, json, ndjson, xlsx, parquet, svg and png are known");
    };
    let Drawn { form, title, width, height, dialect, separator, save } = drawn;
    let separator = match separator.as_deref().map(CsvOptions::separator_of).transpose() {
        Ok(separator) => separator,
        Err(line) => return plain(StatusCode::BAD_REQUEST, &line),
    };
    let side = |pixels: u32| pixels.clamp(200, 4_000);
    let width = width.map(side);
    let charts = ChartOptions { size: width.zip(height.map(side)), width, title, form };
    let options = OutputOptions { charts, csv: CsvOptions { dialect, separator } };
    // A file takes a place as a running query does, until it is sent.
    let places = match shared.host.places(&session) {
        Ok(places) => places,
        Err(failure) => return failed(&failure),
    };
    let work = async move {
        let wrong = |error: std::io::Error| match error.downcast::<Error>() {
            Ok(own) => Failure::own(own),
            Err(error) => Failure::new(Code::InvalidArgument, error.to_string()),
        };
        let folder = tempfile::tempdir().map_err(wrong)?;
        let path = folder.path().join("result");
        let notes = kept.write(format, &path, options).map_err(wrong)?;
        // The file stays readable without its name.
        let file = std::fs::File::open(&path).map_err(wrong)?;
        Ok::<_, Failure>((file, notes))
    };
    match shared.host.away(&session, work).await {
        Ok((file, notes)) => {
            let content = content(file).map(move |part| {
                let _ = &places;
                part
            });
            let mut response = (HeaderMap::new(), Body::from_stream(content)).into_response();
            let notes = utf8_percent_encode(&notes.join("; "), NON_ALPHANUMERIC).to_string();
            if let Some(notes) = HeaderValue::from_str(&notes).ok().filter(|notes| !notes.is_empty()) {
                response.headers_mut().insert(NOTE, notes);
            }
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            let saved = HeaderValue::from_str(&format!("attachment; filename=\"savedsearch.{extension}\""));
            if let (true, Ok(saved)) = (save, saved) {
                response.headers_mut().insert(header::CONTENT_DISPOSITION, saved);
            }
            response
        }
        Err(failure) => failed(&failure),
    }
}

/// The content of a file, read in a thread that may wait.
fn content(file: std::fs::File) -> impl futures::Stream<Item = std::io::Result<Bytes>> {
    futures::stream::try_unfold(file, |mut file| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut part = vec![0; READ];
            let length = file.read(&mut part)?;
            part.truncate(length);
            Ok::<_, std::io::Error>((Bytes::from(part), file))
        });
        let (part, file) = read.await.map_err(std::io::Error::other)??;
        Ok((!part.is_empty()).then_some((part, file)))
    })
}

async fn list_dashboards(State(shared): Server) -> Response {
    answered(aside(move || shared.dashboards.entries()).await)
}

/// Reads files, which may be on a slow disk.
async fn aside<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let ended = |error: tokio::task::JoinError| Failure::new(Code::Internal, error.to_string());
    tokio::task::spawn_blocking(read).await.map_err(ended)
}

async fn dashboard(State(shared): Server, Path(name): Path<String>) -> Response {
    let missing = Failure::new(Code::NotFound, format!("there is no dashboard `{name}`"));
    let read = aside(move || shared.dashboards.read(&name).map_err(Failure::own)).await;
    answered(read.flatten().and_then(|found| found.ok_or(missing)))
}

/// Ends a login. A token of the URL stays valid for other browsers.
async fn log_out(State(shared): Server, Extension(session): Own) -> Response {
    if shared.access.form() != "token" {
        shared.host.sessions.close(&session);
    }
    ([(header::SET_COOKIE, shared.access.no_cookie())], json_of(&json!({}))).into_response()
}
