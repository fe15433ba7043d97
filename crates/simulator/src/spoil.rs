//! Applies faults to requests, records and finished responses.

use std::io;
use std::io::Write;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::dataset::SavedSearch;
use super::dialect::Preset;
use super::fault_injection::{
    Beyond, Counted, ErrorBody, Kind, More, ReportedWindow, Sign, TimeForm, TotalForm, ZoneName,
};
use super::query::{Query, is_chosen};
use super::render::Refusal;

/// Count of pieces of a trickling body.
const PIECES: usize = 20;
/// Placeholders for a number that is valid JSON but fits no type, and for one that is not valid JSON.
const BIG: &str = "@big@";
const NAN: &str = "@nan@";

/// The rows of a page, and the total reported with it.
pub(super) struct Page {
    /// Range of positions in the sorted selection.
    pub(super) rows: std::ops::Range<usize>,
    pub(super) total: Option<i64>,
}

/// Reason for which a page is refused.
pub(super) enum Unreachable {
    BadRequest,
    NotFound,
    /// The page has too few records.
    Size(u64),
}

/// Changes a request as if the service had not understood it.
pub(super) fn question(kinds: &[Kind], query: &mut Query, now: DateTime<Utc>) {
    let hours = |hours: u64| i64::try_from(hours).ok().and_then(TimeDelta::try_hours).unwrap_or_default();
    let days = |days: u64| hours(days.saturating_mul(24));
    for kind in kinds {
        if let Some(ReportedWindow { as_asked, counts_asked }) = told(kind) {
            query.variant.echo_asked |= as_asked;
            query.variant.counts_asked |= counts_asked;
        }
        match kind {
            Kind::FiltersIgnored => query.filters.clear(),
            Kind::OtherWindow => {
                let length = query.to - query.from;
                (query.from, query.to) = (query.from - length, query.to - length);
            }
            Kind::FiltersWider => query.variant.wider_filters = true,
            Kind::FiltersSimilar(letters) => query.variant.similar_letters = Some(*letters),
            Kind::ZoneName(name) => query.said = renamed(&query.said, *name),
            Kind::Values(used) => query.filters.iter_mut().for_each(|(_, values)| used.of(values)),
            Kind::StartExcluded => query.variant.start_excluded = true,
            Kind::EndIncluded => query.variant.end_included = true,
            Kind::Nulls(nulls) => query.variant.nulls = Some(*nulls),
            Kind::OverviewUnfiltered => query.variant.overview_of_all = true,
            Kind::Overview(by) => query.variant.overview_off += by,
            Kind::Timeline(by) => query.variant.timeline_off += by,
            Kind::NoStarts => query.variant.no_starts = true,
            Kind::List(list, by) => query.variant.list_off = Some((*list, *by)),
            Kind::Partial(percent, _) => query.variant.left_out = *percent,
            Kind::OldCopy(age) => query.variant.copied_at = Some(now - hours(*age)),
            Kind::Estimated(moved, sign) => query.variant.estimated = Some((*moved, *sign)),
            Kind::NewestLast => query.variant.newest_last = true,
            Kind::Retention(kept, _) => query.from = query.from.max(now - days(*kept)),
            Kind::CutPeriod(most, _) => query.from = query.from.max(query.to - days(*most)),
            Kind::EndsEarly(by, _) => query.to = (query.to - hours(*by)).max(query.from),
            Kind::BeginsEarly(by, _) => query.from -= hours(*by),
            _ => {}
        }
    }
}

/// Returns the report of a window that a fault changes.
fn told(kind: &Kind) -> Option<ReportedWindow> {
    match kind {
        Kind::Retention(_, told) | Kind::CutPeriod(_, told) | Kind::EndsEarly(_, told) | Kind::BeginsEarly(_, told) => {
            Some(*told)
        }
        _ => None,
    }
}

/// Another name of a zone; those that have none are returned unchanged.
fn renamed(zone: &str, name: ZoneName) -> String {
    let other = match (zone, name) {
        ("UTC", ZoneName::Alias) => "Etc/UTC",
        ("UTC", ZoneName::Distance) => "+00:00",
        ("Asia/Kolkata", ZoneName::Alias) => "Asia/Calcutta",
        ("Asia/Kolkata", ZoneName::Distance) => "+05:30",
        ("Europe/Berlin", ZoneName::Alias) => "Arctic/Longyearbyen",
        ("America/New_York", ZoneName::Alias) => "US/Eastern",
        _ => zone,
    };
    other.to_owned()
}

/// True if the query of a request is longer than the service accepts.
pub(super) fn is_too_long(kinds: &[Kind], parameters: &[(String, String)]) -> bool {
    let length = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish().len();
    kinds.iter().any(|kind| matches!(kind, Kind::LongUrl(most) if length as u64 > *most))
}

/// Cuts the lists of saved searches, and adds the field that reports the rest. The second value is a `Link` header.
pub(super) fn list(kinds: &[Kind], body: String) -> (String, Option<&'static str>) {
    let (mut body, mut link) = (body, None);
    for kind in kinds {
        let Ok(mut value) = serde_json::from_str(&body) else { continue };
        match kind {
            Kind::ListPage(most, more) => {
                let all = cut(&mut value, usize::try_from(*most).unwrap_or(usize::MAX));
                match (more, value.as_object_mut()) {
                    (More::Link, _) => link = Some("<list?page=2>; rel=\"next\""),
                    (More::Total, Some(object)) => drop(object.insert("total".to_owned(), all.into())),
                    (More::Next, Some(object)) => drop(object.insert("next".to_owned(), "list?page=2".into())),
                    (More::Flag, Some(object)) => drop(object.insert("hasMore".to_owned(), true.into())),
                    // A bare array has no place for a field.
                    (_, None) => {}
                }
            }
            Kind::AidFraction => fractions(&mut value),
            _ => continue,
        }
        body = value.to_string();
    }
    (body, link)
}

/// Cuts all arrays of objects within a value. Returns the number of objects that they had.
fn cut(value: &mut Value, most: usize) -> usize {
    match value {
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            let all = items.len();
            items.truncate(most);
            all
        }
        Value::Object(fields) => fields.values_mut().map(|value| cut(value, most)).sum(),
        _ => 0,
    }
}

/// Writes the ids of saved searches as fractions.
fn fractions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(fractions),
        Value::Object(fields) => {
            for (name, value) in fields {
                let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
                match number.filter(|_| name == "aid") {
                    Some(number) => *value = number.into(),
                    None => fractions(value),
                }
            }
        }
        _ => {}
    }
}

/// The total of a page in the form of the fault.
pub(super) fn total(kinds: &[Kind], total: Option<i64>, first_page: bool) -> Value {
    let form = kinds.iter().find_map(|kind| if let Kind::TotalForm(form) = kind { Some(*form) } else { None });
    match (total, form) {
        (Some(total), Some(TotalForm::Text)) => total.to_string().into(),
        (Some(total), Some(TotalForm::Grouped)) => grouped(total).into(),
        (Some(total), Some(TotalForm::Fraction)) => json!(total as f64),
        (Some(_), Some(TotalForm::FirstPage)) if !first_page => Value::Null,
        (total, _) => total.into(),
    }
}

/// Writes a number with a separator every three digits.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The record with an id that is unique among those of its source only: its position among them.
pub(super) fn source_id(kinds: &[Kind], search: &SavedSearch, at: u32, record: String) -> String {
    if !kinds.contains(&Kind::SourceIds) {
        return record;
    }
    let (at, mentions) = (at as usize, &search.mentions);
    let source = &mentions[at].facts.source;
    let before = mentions[..at].iter().filter(|other| other.facts.source == *source).count();
    let Ok(mut value) = serde_json::from_str::<Value>(&record) else { return record };
    value["id"] = before.to_string().into();
    value.to_string()
}

/// Adds the field of a partial response to its body.
pub(super) fn signed(kinds: &[Kind], body: String) -> String {
    let sign = kinds.iter().find_map(|kind| if let Kind::Partial(_, sign) = kind { Some(*sign) } else { None });
    let field = match sign {
        None => return body,
        Some(Sign::TimedOut) => "\"timed_out\":true",
        Some(Sign::Errors) => "\"errors\":[{\"code\":\"SHARD_FAILED\",\"message\":\"shard 3 is unavailable\"}]",
        Some(Sign::Shards) => "\"_shards\":{\"total\":5,\"successful\":4,\"failed\":1}",
        Some(Sign::Status) => "\"status\":\"partial\"",
    };
    body.replacen('{', &format!("{{{field},"), 1)
}

/// Selects the rows of a page out of `len`. `counted` returns the number of mentions that a total counts.
pub(super) fn page(
    kinds: &[Kind],
    query: &Query,
    len: usize,
    counted: impl Fn(Counted) -> usize,
) -> Result<Page, Unreachable> {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (mut start, mut size) = (number(query.data_from), number(query.data_size));
    let count = |of: Counted| i64::try_from(counted(of)).unwrap_or(i64::MAX);
    let (mut total, mut reach) = (Some(count(Counted::Matching)), len);
    for kind in kinds {
        match kind {
            Kind::Depth(rows, Beyond::BadRequest) if start.saturating_add(size) > number(*rows) => {
                return Err(Unreachable::BadRequest);
            }
            Kind::Depth(rows, Beyond::NotFound) if start.saturating_add(size) > number(*rows) => {
                return Err(Unreachable::NotFound);
            }
            Kind::Depth(rows, Beyond::Empty) => reach = reach.min(number(*rows)),
            Kind::Depth(rows, Beyond::LastPage) => {
                reach = reach.min(number(*rows));
                if start >= reach {
                    start = reach.saturating_sub(size);
                }
            }
            Kind::LeastSize(least) if query.data_size < *least => return Err(Unreachable::Size(*least)),
            Kind::Aligned => start -= start % size.max(1),
            Kind::OffsetIgnored => start = 0,
            Kind::SizeIgnored => size = usize::MAX,
            Kind::Clamp(rows) | Kind::Short(rows) => size = size.min(number(*rows)),
            Kind::Empty => size = 0,
            Kind::Total(Counted::Matching, by) => total = total.map(|total| (total + by).max(0)),
            Kind::Total(of, by) => total = Some((count(*of) + by).max(0)),
            Kind::CapTotal(most) => total = total.map(|total| total.min(i64::try_from(*most).unwrap_or(i64::MAX))),
            Kind::NoTotal => total = None,
            _ => {}
        }
    }
    let start = start.min(reach);
    Ok(Page { rows: start..start.saturating_add(size).min(reach), total })
}

/// Applies faults to the records of a page.
pub(super) fn records(kinds: &[Kind], mut items: Vec<String>) -> Vec<String> {
    for kind in kinds {
        if let Kind::Hidden(percent) = kind {
            items.retain(|item| !is_hidden(item, *percent));
            continue;
        }
        if *kind == Kind::Twice {
            if let Some(older) = items.first().map(|item| older(item)) {
                items.insert(1, older);
            }
            continue;
        }
        for (row, item) in items.iter_mut().enumerate() {
            if let Ok(value) = serde_json::from_str(item)
                && let Some(changed) = record(kind, row, value)
            {
                *item = changed.to_string();
            }
        }
    }
    // Last, because other faults read the records as JSON.
    for item in &mut items {
        if item.contains(BIG) || item.contains(NAN) {
            *item = item.replace(&format!("\"{BIG}\""), "1e400").replace(&format!("\"{NAN}\""), "NaN");
        }
    }
    items
}

/// True for a share of the records, the same in every response.
fn is_hidden(item: &str, percent: u64) -> bool {
    let id = serde_json::from_str::<Value>(item).map(|value| value["id"].to_string()).unwrap_or_default();
    is_chosen(&id, percent)
}

/// Applies a fault to a record; `None` if it does not concern records.
fn record(kind: &Kind, row: usize, mut item: Value) -> Option<Value> {
    match kind {
        Kind::Missing(field) => drop(item.as_object_mut()?.remove(field)),
        Kind::Null(field) => item[field] = Value::Null,
        Kind::Rename(field, to) => {
            let value = item.as_object_mut()?.remove(field)?;
            item[to] = value;
        }
        Kind::Drift(field) => {
            item[field] = match item[field].take() {
                Value::Null => Value::Null,
                Value::Number(number) => json!([number]),
                other => json!({ "value": other }),
            }
        }
        Kind::Big(field) => item[field] = BIG.into(),
        Kind::Nan(field) if item[field].is_null() => item[field] = NAN.into(),
        Kind::Times(form) => {
            for field in ["publishedAt", "updatedAt"] {
                let at = item[field].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
                item[field] = at.map_or(Value::Null, |at| match form {
                    TimeForm::Mixed => written(at, row),
                    TimeForm::Compact => at.format("%Y%m%d%H%M%S").to_string().into(),
                    TimeForm::Date => at.format("%Y-%m-%d").to_string().into(),
                    TimeForm::Local => (at + TimeDelta::hours(9)).format("%Y-%m-%dT%H:%M:%S").to_string().into(),
                });
            }
        }
        Kind::Extra => item["future"] = json!({"row": row, "deep": {"a": [1, null]}}),
        _ => return None,
    }
    Some(item)
}

/// Writes an instant in one of the forms that services use.
fn written(at: DateTime<Utc>, row: usize) -> Value {
    let offset = chrono::FixedOffset::east_opt(7_200);
    match (row % 4, offset) {
        (0, Some(offset)) => at.with_timezone(&offset).to_rfc3339_opts(SecondsFormat::Secs, false).into(),
        (1, _) => at.timestamp().into(),
        (2, _) => at.timestamp_millis().into(),
        _ => at.naive_utc().format("%Y-%m-%dT%H:%M:%S").to_string().into(),
    }
}

/// The record as of the day before.
fn older(item: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(item) else { return item.to_owned() };
    if let Some(at) = value["updatedAt"].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok()) {
        value["updatedAt"] = (at - TimeDelta::days(1)).to_rfc3339_opts(SecondsFormat::Secs, true).into();
    }
    value["text"] = "an older version".into();
    value.to_string()
}

/// The response of a fault that replaces any other.
pub(super) fn instead(preset: Preset, kinds: &[Kind], headers: &HeaderMap, now: DateTime<Utc>) -> Option<Response> {
    kinds.iter().find_map(|kind| match kind {
        Kind::Status { status, retry_after, reset, code, body } => {
            let code = code.as_deref().unwrap_or("fault");
            let unknown = StatusCode::INTERNAL_SERVER_ERROR;
            let status = StatusCode::from_u16(*status).unwrap_or(unknown);
            let key = headers.get(AUTHORIZATION).and_then(|key| key.to_str().ok()).unwrap_or_default();
            let error = |message: String| preset.refuse(Refusal::new(status, code, message), "req-fault");
            let mut response = match body {
                ErrorBody::Json => error("a fault".to_owned()),
                ErrorBody::Echo => error(format!("not with `{key}`")),
                ErrorBody::Text => with("text/plain", "slow down".to_owned()),
                ErrorBody::Html => with("text/html", "<html><body>no</body></html>".to_owned()),
                ErrorBody::Empty => with("text/plain", String::new()),
            };
            *response.status_mut() = status;
            for (name, value) in [(RETRY_AFTER.as_str(), retry_after), ("x-ratelimit-reset", reset)] {
                if let Some(value) = value.as_deref().map(|value| moment(value, now))
                    && let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(&value))
                {
                    response.headers_mut().insert(name, value);
                }
            }
            Some(response)
        }
        Kind::Redirect(to) => {
            let mut response = with("text/plain", String::new());
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(LOCATION, HeaderValue::from_str(to).ok()?);
            Some(response)
        }
        Kind::Html => Some(with("text/html", "<!doctype html><title>Sign in</title>".to_owned())),
        Kind::ErrorBody => {
            let key = headers.get(AUTHORIZATION).and_then(|key| key.to_str().ok()).unwrap_or_default();
            let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", format!("{key} broke"));
            let mut response = preset.refuse(refusal, "req-fault");
            *response.status_mut() = StatusCode::OK;
            Some(response)
        }
        Kind::Bomb(mib) => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            for _ in 0..*mib {
                // Writing to a vector cannot fail.
                let _ = packed.write_all(&vec![b' '; 1 << 20]);
            }
            let mut response = with_bytes(json_type(), packed.finish().unwrap_or_default());
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            Some(response)
        }
        Kind::Giant(mib) => {
            let head =
                stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"{\"mentions\":{\"items\":[{\"text\":\""))]);
            let text = Bytes::from(vec![b'x'; 1 << 20]);
            let text = stream::iter((0..*mib).map(move |_| Ok(text.clone())));
            Some(streamed(head.chain(text)))
        }
        Kind::Deep(levels) => {
            let levels = usize::try_from(*levels).unwrap_or(usize::MAX).min(10 << 20);
            Some(with(
                json_type(),
                format!("{{\"mentions\":{{\"items\":{}{}}}}}", "[".repeat(levels), "]".repeat(levels)),
            ))
        }
        _ => None,
    })
}

fn json_type() -> &'static str {
    "application/json"
}

fn with(kind: &'static str, body: String) -> Response {
    with_bytes(kind, body.into_bytes())
}

fn with_bytes(kind: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn streamed(body: impl stream::Stream<Item = io::Result<Bytes>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(json_type()));
    response
}

/// Replaces `date+7`, `iso+7`, `epoch+7` and `millis+7` with the instant seven seconds from now; other texts are returned
/// unchanged.
fn moment(text: &str, now: DateTime<Utc>) -> String {
    let Some((form, seconds)) = text.split_once('+') else { return text.to_owned() };
    let Some(at) = seconds.parse().ok().and_then(TimeDelta::try_seconds).map(|wait| now + wait) else {
        return text.to_owned();
    };
    match form {
        "date" => httpdate::fmt_http_date(at.into()),
        "iso" => at.to_rfc3339_opts(SecondsFormat::Secs, true),
        "epoch" => at.timestamp().to_string(),
        "millis" => at.timestamp_millis().to_string(),
        _ => text.to_owned(),
    }
}

/// Applies faults to the body of a response.
pub(super) async fn body(kinds: &[Kind], response: Response) -> Response {
    let spoils = |kind: &&Kind| {
        matches!(
            kind,
            Kind::Truncated(_)
                | Kind::Reset(_)
                | Kind::Trickle(_)
                | Kind::Stall
                | Kind::Utf8
                | Kind::Escape
                | Kind::Surrogate
                | Kind::GzipMembers(_)
        )
    };
    let kinds: Vec<&Kind> = kinds.iter().filter(spoils).collect();
    if kinds.is_empty() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let mut body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default().to_vec();
    parts.headers.remove(CONTENT_LENGTH);
    let mut pieces: Option<(usize, Duration, End)> = None;
    for kind in kinds {
        let share = |percent: u64| body.len() * usize::try_from(percent).unwrap_or(100) / 100;
        match kind {
            Kind::Truncated(percent) => body.truncate(share(*percent)),
            Kind::Reset(percent) => {
                body.truncate(share(*percent));
                pieces = Some((1, Duration::ZERO, End::Broken));
            }
            Kind::Trickle(ms) => pieces = Some((PIECES, Duration::from_millis(*ms), End::Whole)),
            Kind::Stall => {
                body.truncate(share(50));
                pieces = Some((1, Duration::ZERO, End::Never));
            }
            Kind::Utf8 => into_text(&mut body, b"\xff"),
            Kind::Escape => into_text(&mut body, b"\\q"),
            Kind::Surrogate => into_text(&mut body, b"\\ud83d "),
            Kind::GzipMembers(count) => {
                let size = body.len().div_ceil(usize::try_from(*count).unwrap_or(1).max(1)).max(1);
                body = body.chunks(size).flat_map(packed).collect();
                parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            _ => {}
        }
    }
    let Some((count, pause, end)) = pieces else { return Response::from_parts(parts, Body::from(body)) };
    let size = body.len().div_ceil(count).max(1);
    let chunks: Vec<_> = body.chunks(size).map(Bytes::copy_from_slice).collect();
    let chunks = stream::iter(chunks).then(move |chunk| async move {
        tokio::time::sleep(pause).await;
        Ok(chunk)
    });
    let end = stream::once(async move {
        match end {
            End::Never => std::future::pending().await,
            End::Broken => Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke"))),
            End::Whole => None,
        }
    });
    Response::from_parts(parts, Body::from_stream(chunks.chain(end.filter_map(|end| async { end }))))
}

/// Compresses bytes to one member of a gzip body.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to a vector cannot fail.
    let _ = packed.write_all(bytes);
    packed.finish().unwrap_or_default()
}

/// The end of a body that is sent in pieces.
#[derive(Clone, Copy)]
enum End {
    Whole,
    Broken,
    Never,
}

/// Inserts bytes into the first `text` of a record, or else into the first string.
fn into_text(body: &mut Vec<u8>, bytes: &[u8]) {
    let find = |what: &[u8]| body.windows(what.len()).position(|window| window == what).map(|at| at + what.len());
    if let Some(at) = find(b"\"text\":\"").or_else(|| find(b":\"")) {
        body.splice(at..at, bytes.iter().copied());
    }
}
