//! The two endpoints at the HTTP level: keys, limits, errors and bodies.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::header::{AUTHORIZATION, DATE, LINK, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{SecondsFormat, TimeDelta};

use super::dialect::{KeyForm, Throttled};
use super::fault_injection::{Counted, Kind};
use super::query::{Invalid, Query};
use super::render::{Found, Records, Refusal, answer};
use super::server::{Seen, Service, Sorting, Standing};
use super::spoil::{self, Unreachable};
use super::{KEY, OTHER_KEY};

/// Header of a simulator with a clock of its own, so that clients do not take its time for a wrong or an old one.
const SIMULATED_TIME: &str = "simulated-time";

pub(super) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/v4/list", get(list))
        .route("/v4/search", get(search))
        .fallback(nowhere)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(&service), admit))
        .with_state(service)
}

/// The part of a request that is known before its route handles it.
#[derive(Debug, Clone)]
struct Arrived {
    /// Its number, from 1.
    number: u64,
    parameters: Vec<(String, String)>,
    /// The faults that apply to it.
    kinds: Vec<Kind>,
}

/// Middleware before all routes: counts the request, waits for the configured delay, enforces the rate limit and
/// applies faults.
async fn admit(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let number = service.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let query = request.uri().query().unwrap_or_default();
    let parameters: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let aid = parameters.iter().find(|(name, _)| name == "aid").map(|(_, aid)| aid.as_str());
    let kinds = service.faults(number, aid);
    let now = service.now(&kinds);
    for kind in &kinds {
        if let (Kind::Move(moved, count, place), Some(aid)) = (kind, aid) {
            let seed = service.settings.seed;
            service.moving.change(&service.corpus, aid, number, seed, (*moved, *count, *place), now);
        }
    }
    service.note(Seen { path: request.uri().path().trim_start_matches("/v4/").to_owned(), query: query.to_owned() });
    request.extensions_mut().insert(Arrived { number, parameters, kinds: kinds.clone() });
    if !service.settings.delay.is_zero() {
        tokio::time::sleep(service.settings.delay).await;
    }
    let name = match service.settings.preset.dialect().key {
        KeyForm::Header(name) => name,
        KeyForm::Scheme(_) | KeyForm::Basic => AUTHORIZATION.as_str(),
    };
    let key = request.headers().get(name).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let response = match spoil::instead(service.settings.preset, &kinds, request.headers(), now) {
        Some(response) => response,
        None => answer_within_limit(&service, &key, request, next).await,
    };
    let mut response = spoil::body(&kinds, response).await;
    // By the service's clock, not the machine's, because the end of a rate limit window is reported by the same clock.
    let date = httpdate::fmt_http_date(now.into());
    if let Ok(date) = HeaderValue::from_str(&date) {
        if !service.settings.clock.is_system() && !kinds.iter().any(|kind| matches!(kind, Kind::Skew(_))) {
            response.headers_mut().insert(HeaderName::from_static(SIMULATED_TIME), date.clone());
        }
        response.headers_mut().insert(DATE, date);
    }
    response
}

async fn answer_within_limit(service: &Service, key: &[u8], request: Request, next: Next) -> Response {
    let Some(standing) = service.spend(key) else { return next.run(request).await };
    let form = service.settings.preset.dialect().throttled;
    let mut response = if standing.over {
        let (status, code) = match form {
            Throttled::Usual | Throttled::Text => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            Throttled::Forbidden => (StatusCode::FORBIDDEN, "rate_exceeded"),
            Throttled::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "slow_down"),
        };
        service.refuse(Refusal::new(status, code, "too many requests"))
    } else {
        next.run(request).await
    };
    tell(form, &standing, service, response.headers_mut());
    response
}

/// Sets the headers that report the rate limit state of a key.
fn tell(form: Throttled, standing: &Standing, service: &Service, headers: &mut HeaderMap) {
    let wait = TimeDelta::try_seconds(i64::try_from(standing.wait).unwrap_or(i64::MAX)).unwrap_or_default();
    let until = service.settings.clock.now() + wait;
    let mut set = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    match form {
        Throttled::Usual => {
            set("x-ratelimit-limit", standing.limit.to_string());
            set("x-ratelimit-remaining", standing.remaining.to_string());
            set("x-ratelimit-reset", standing.reset.to_string());
        }
        Throttled::Forbidden => {
            set("x-rate-limit-limit", standing.limit.to_string());
            set("x-rate-limit-remaining", standing.remaining.to_string());
            set("x-rate-limit-reset", standing.wait.to_string());
        }
        Throttled::Text => set("ratelimit-reset", until.to_rfc3339_opts(SecondsFormat::Secs, true)),
        Throttled::Unavailable => {}
    }
    match form {
        Throttled::Usual if standing.over => set(RETRY_AFTER.as_str(), standing.wait.to_string()),
        Throttled::Unavailable if standing.over => set(RETRY_AFTER.as_str(), httpdate::fmt_http_date(until.into())),
        _ => {}
    }
}

/// Authenticates the request: returns the team of its key.
fn team(service: &Service, headers: &HeaderMap) -> Result<usize, Refusal> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let authorization = value(AUTHORIZATION.as_str());
    let key = match service.settings.preset.dialect().key {
        KeyForm::Scheme(word) => {
            authorization.and_then(|value| value.strip_prefix(word)?.strip_prefix(' ')).map(str::to_owned)
        }
        KeyForm::Header(name) => value(name).map(str::to_owned),
        KeyForm::Basic => {
            let user = authorization.and_then(|value| STANDARD.decode(value.strip_prefix("Basic ")?).ok());
            let user = user.and_then(|user| String::from_utf8(user).ok());
            user.and_then(|user| Some(user.strip_suffix(':')?.to_owned()))
        }
    };
    match key.as_deref() {
        Some(KEY) => Ok(0),
        Some(OTHER_KEY) => Ok(1),
        _ => Err(Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", "missing or unknown API key")),
    }
}

async fn list(
    State(service): State<Arc<Service>>,
    Extension(Arrived { parameters, kinds, .. }): Extension<Arrived>,
    headers: HeaderMap,
) -> Response {
    let team = match team(&service, &headers) {
        Ok(team) => team,
        Err(refusal) => return service.refuse(refusal),
    };
    let preset = service.settings.preset;
    if let Some((name, _)) = parameters.into_iter().next().filter(|_| preset.dialect().strict) {
        return service.refuse(invalid(Invalid { message: "is not a parameter of list".into(), field: name }));
    }
    let (body, link) = spoil::list(&kinds, preset.list(&service.corpus, team, &service.request_id()));
    let mut response = answer(StatusCode::OK, body);
    if let Some(link) = link {
        response.headers_mut().insert(LINK, HeaderValue::from_static(link));
    }
    response
}

async fn search(
    State(service): State<Arc<Service>>,
    Extension(arrived): Extension<Arrived>,
    headers: HeaderMap,
) -> Response {
    match respond(&service, &arrived, &headers) {
        Ok(body) => {
            let wait =
                arrived.kinds.iter().find_map(|kind| if let Kind::Accepted(wait) = kind { Some(wait) } else { None });
            let status = if wait.is_some() { StatusCode::ACCEPTED } else { StatusCode::OK };
            let mut response = answer(status, spoil::signed(&arrived.kinds, body));
            if let Some(wait) = wait {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*wait));
            }
            response
        }
        Err(refusal) => service.refuse(refusal),
    }
}

fn respond(service: &Service, arrived: &Arrived, headers: &HeaderMap) -> Result<String, Refusal> {
    let Arrived { number, parameters, kinds } = arrived;
    let preset = service.settings.preset;
    let dialect = preset.dialect();
    let team = team(service, headers)?;
    if spoil::is_too_long(kinds, parameters) {
        return Err(Refusal::new(StatusCode::URI_TOO_LONG, "uri_too_long", "the query is too long"));
    }
    // Read after the delay.
    let now = service.now(kinds);
    let mut query = Query::parse(parameters, now, dialect, service.settings.largest_page).map_err(invalid)?;
    let unknown = || Refusal::new(StatusCode::NOT_FOUND, "not_found", format!("no saved search `{}`", query.aid));
    let (search, changes) = service.moving.at(&service.corpus, &query.aid, *number).ok_or_else(unknown)?;
    if search.team != team {
        let message = format!("the key may not read saved search `{}`", query.aid);
        return Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", message));
    }
    query.label(|value| preset.labels(value, &search));
    spoil::question(kinds, &mut query, now);
    if kinds.iter().any(|kind| matches!(kind, Kind::Accepted(_))) {
        // Not ready: nothing is found yet.
        query.to = query.from;
    }
    let other = service.corpus.searches.iter().find(|other| other.team == team && other.aid != query.aid);
    let (search, changes) = match other {
        Some(other) if kinds.contains(&Kind::OtherAid) => (Arc::clone(other), 0),
        _ => (search, changes),
    };
    let sorting = match () {
        () if kinds.contains(&Kind::SortIgnored) => Sorting::Ignored,
        () if kinds.contains(&Kind::Ties) => Sorting::Ties(*number),
        () => Sorting::Stable,
    };
    let selection = service.selection(&query, (&search, changes), sorting);
    let page = (query.data_size > 0).then(|| -> Result<Records, Refusal> {
        let depth = dialect.depth.map(|(rows, beyond)| Kind::Depth(rows, beyond));
        let kinds: Vec<Kind> = depth.into_iter().chain(kinds.iter().cloned()).collect();
        let counted = |of: Counted| match of {
            Counted::Matching if !query.variant.counts_asked => selection.order.len(),
            Counted::Matching => query.counted().matching(&search).len(),
            Counted::Unfiltered => Query { filters: Vec::new(), ..query.counted() }.matching(&search).len(),
            Counted::All => search.mentions.len(),
        };
        let page = spoil::page(&kinds, &query, selection.order.len(), counted).map_err(|unreachable| {
            let (bad, beyond) = (StatusCode::BAD_REQUEST, "page out of range".to_owned());
            let (status, code, field, message) = match unreachable {
                Unreachable::BadRequest => (bad, "validation_error", "dataFrom", beyond),
                Unreachable::NotFound => (StatusCode::NOT_FOUND, "not_found", "dataFrom", beyond),
                Unreachable::Size(least) => (bad, "validation_error", "dataSize", format!("at least {least}")),
            };
            Refusal { field: Some(field.to_owned()), ..Refusal::new(status, code, message) }
        })?;
        let rows = &selection.order[page.rows];
        let record =
            |at: &u32| preset.record(spoil::source_id(&kinds, &search, *at, search.mentions[*at as usize].json()));
        let total = page.total.map(|total| preset.reported(total));
        let items = spoil::records(&kinds, rows.iter().map(record).collect());
        Ok(Records { total: spoil::total(&kinds, total, query.data_from == 0), items })
    });
    Ok(preset.search(&Found {
        request_id: service.request_id(),
        aid: &search.aid,
        query: &query,
        now,
        overview: &selection.overview,
        page: page.transpose()?,
    }))
}

fn invalid(Invalid { field, message }: Invalid) -> Refusal {
    Refusal { field: Some(field), ..Refusal::new(StatusCode::BAD_REQUEST, "validation_error", message) }
}

async fn nowhere(State(service): State<Arc<Service>>, uri: Uri) -> Response {
    service.refuse(Refusal::new(StatusCode::NOT_FOUND, "not_found", format!("no endpoint {}", uri.path())))
}

async fn no_method(State(service): State<Arc<Service>>) -> Response {
    service.refuse(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "the service is read-only"))
}
