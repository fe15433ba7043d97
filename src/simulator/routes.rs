//! The two endpoints as HTTP sees them: keys, limits, errors and bodies.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, RawQuery, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};

use super::dataset::{SavedSearch, rfc3339};
use super::faults::Kind;
use super::query::{Invalid, Query};
use super::server::{Seen, Service, Sorting, Ties};
use super::spoil::{self, Unreachable};
use super::{KEY, OTHER_KEY};

const TEAMS: [(&str, &str); 2] = [("t-12", "Comms"), ("t-27", "Research")];

pub(super) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/v4/list", get(list))
        .route("/v4/search", get(search))
        .fallback(nowhere)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(&service), admit))
        .with_state(service)
}

/// An answer of refusal.
struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    field: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), field: None }
    }

    fn answer(self, service: &Service) -> Response {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(field) = self.field {
            error["field"] = Value::from(field);
        }
        answer(self.status, &json!({"error": error, "requestId": service.request_id()}).to_string())
    }
}

fn answer(status: StatusCode, body: &str) -> Response {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The number of a request, from 1.
#[derive(Debug, Clone, Copy)]
struct Number(u64);

/// Before a route: counts the request, waits the service delay, keeps the rate limit, and does what is to go wrong.
async fn admit(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let number = service.requests.fetch_add(1, Ordering::Relaxed) + 1;
    request.extensions_mut().insert(Number(number));
    let asked = parameters(request.uri().query());
    let aid = asked.iter().find(|(name, _)| name == "aid").map(|(_, aid)| aid.as_str());
    let kinds = service.faults(number, aid);
    let now = service.now(&kinds);
    for kind in &kinds {
        if let (Kind::Move(moved, count, place), Some(aid)) = (kind, aid) {
            let seed = service.settings.seed;
            service.moving.change(&service.corpus, aid, number, seed, (*moved, *count, *place), now);
        }
    }
    service.note(Seen {
        path: request.uri().path().trim_start_matches("/v4/").to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
    });
    if !service.settings.delay.is_zero() {
        tokio::time::sleep(service.settings.delay).await;
    }
    let key = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let response = match spoil::instead(&kinds, request.headers(), now) {
        Some(response) => response,
        None => answer_within_limit(&service, &key, request, next).await,
    };
    let mut response = spoil::body(&kinds, response).await;
    // The clock of the service, not the machine's: the end of a rate window is told by the same one.
    let date = httpdate::fmt_http_date(now.into());
    if let Ok(date) = HeaderValue::from_str(&date) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

async fn answer_within_limit(service: &Service, key: &[u8], request: Request, next: Next) -> Response {
    let Some(standing) = service.spend(key) else { return next.run(request).await };
    let mut response = if standing.over {
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many requests").answer(service)
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert("x-ratelimit-limit", standing.limit.into());
    headers.insert("x-ratelimit-remaining", standing.remaining.into());
    headers.insert("x-ratelimit-reset", standing.reset.into());
    if standing.over {
        headers.insert(RETRY_AFTER, standing.wait.into());
    }
    response
}

/// The team of a key.
fn team(headers: &HeaderMap) -> Result<usize, Refusal> {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match value.and_then(|value| value.strip_prefix("Bearer ")) {
        Some(KEY) => Ok(0),
        Some(OTHER_KEY) => Ok(1),
        _ => Err(Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", "missing or unknown API key")),
    }
}

async fn list(State(service): State<Arc<Service>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let team = match team(&headers) {
        Ok(team) => team,
        Err(refusal) => return refusal.answer(&service),
    };
    if let Some((name, _)) = parameters(query.as_deref()).into_iter().next() {
        let invalid = Invalid { message: "is no parameter of list".into(), field: name };
        return refuse_invalid(invalid).answer(&service);
    }
    let entry = |search: &SavedSearch, kind: &str| {
        let (id, name) = TEAMS[team];
        json!({
            "aid": search.aid,
            "name": search.name,
            "type": kind,
            "team": {"id": id, "name": name},
            "owner": search.personal.then_some("ana@example.com"),
            "query": search.query,
            "languages": ["en", "de"],
            "createdAt": rfc3339(search.created_at),
            "updatedAt": rfc3339(search.created_at),
        })
    };
    let own = || service.corpus.searches.iter().filter(move |search| search.team == team);
    let personal: Vec<_> = own().filter(|search| search.personal).map(|search| entry(search, "saved")).collect();
    let shared: Vec<_> = own().filter(|search| search.shared).map(|search| entry(search, "team")).collect();
    let recent = service.corpus.recent[team].iter();
    let recent: Vec<_> =
        recent.map(|(aid, query, at)| json!({"aid": aid, "query": query, "searchedAt": rfc3339(*at)})).collect();
    let body = json!({
        "data": {"savedSearches": personal, "teamSavedSearches": shared, "recentSearches": recent},
        "requestId": service.request_id(),
    });
    answer(StatusCode::OK, &body.to_string())
}

async fn search(
    State(service): State<Arc<Service>>,
    Extension(Number(number)): Extension<Number>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    match respond(&service, number, &headers, query.as_deref()) {
        Ok(body) => answer(StatusCode::OK, &body),
        Err(refusal) => refusal.answer(&service),
    }
}

fn respond(service: &Service, number: u64, headers: &HeaderMap, query: Option<&str>) -> Result<String, Refusal> {
    let team = team(headers)?;
    let asked = parameters(query);
    let aid = asked.iter().find(|(name, _)| name == "aid").map(|(_, aid)| aid.as_str());
    let kinds = service.faults(number, aid);
    let now = service.now(&kinds);
    let mut query = Query::parse(&asked, now, service.settings.largest_page).map_err(refuse_invalid)?;
    let unknown = || Refusal::new(StatusCode::NOT_FOUND, "not_found", format!("no saved search `{}`", query.aid));
    let (search, changes) = service.moving.at(&service.corpus, &query.aid, number).ok_or_else(unknown)?;
    if search.team != team {
        let message = format!("the key may not read saved search `{}`", query.aid);
        return Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", message));
    }
    spoil::question(&kinds, &mut query);
    let other = service.corpus.searches.iter().find(|other| other.team == team && other.aid != query.aid);
    let (search, changes) = match other {
        Some(other) if kinds.contains(&&Kind::OtherAid) => (Arc::clone(other), 0),
        _ => (search, changes),
    };
    let sorting = match service.settings.ties {
        _ if kinds.contains(&&Kind::SortIgnored) => Sorting::Ignored,
        Ties::Stable if !kinds.contains(&&Kind::Ties) => Sorting::Stable,
        _ => Sorting::Ties(number),
    };
    let selection = service.selection(&query, (&search, changes), sorting);
    let window = json!({
        "from": rfc3339(query.from),
        "to": rfc3339(query.to),
        "timezone": query.timezone.name(),
        "asOf": rfc3339(now),
    });
    let mut body = format!(
        "{{\"requestId\":{},\"search\":{},\"window\":{window},\"overview\":{}",
        Value::from(service.request_id()),
        json!({"aid": search.aid}),
        selection.overview,
    );
    if query.data_size > 0 {
        let page = spoil::page(&kinds, &query, selection.order.len()).map_err(|unreachable| {
            let (status, code) = match unreachable {
                Unreachable::BadRequest => (StatusCode::BAD_REQUEST, "validation_error"),
                Unreachable::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            };
            Refusal { field: Some("dataFrom".to_owned()), ..Refusal::new(status, code, "no page lies so far") }
        })?;
        let rows = &selection.order[page.rows];
        let items = rows.iter().map(|at| search.mentions[*at as usize].json()).collect();
        body.push_str(&format!(
            ",\"mentions\":{{\"total\":{},\"totalRelation\":\"eq\",\"from\":{},\"size\":{},\"items\":[{}]}}",
            Value::from(page.total),
            query.data_from,
            query.data_size,
            spoil::records(&kinds, items).join(","),
        ));
    }
    body.push('}');
    Ok(body)
}

fn refuse_invalid(Invalid { field, message }: Invalid) -> Refusal {
    Refusal { field: Some(field), ..Refusal::new(StatusCode::BAD_REQUEST, "validation_error", message) }
}

async fn nowhere(State(service): State<Arc<Service>>, uri: Uri) -> Response {
    Refusal::new(StatusCode::NOT_FOUND, "not_found", format!("no endpoint {}", uri.path())).answer(&service)
}

async fn no_method(State(service): State<Arc<Service>>) -> Response {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "the service is read-only").answer(&service)
}

fn parameters(query: Option<&str>) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}
