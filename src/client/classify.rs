//! Classification of responses: a value, a reason to retry, or a failure. The profile says which statuses and codes
//! mean what.

use ::http::StatusCode;
use ::http::header::{AGE, CONTENT_TYPE, HeaderMap};
use bytes::Bytes;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::advice;
use super::attempt::Outcome;
use super::error_body::{self, ErrorBody};
use super::fetch::Client;
use super::http::HttpResponse;
use super::log::RequestRecord;
use super::retry::{self, Cause};
use crate::error::{Error, ErrorKind, Result, one_line};
use crate::profile::{Pointer, ThrottleRule, Trust};
use crate::request::Endpoint;

/// Age of a response in a cache, beyond which it does not tell the newest mentions.
const STALE: Duration = Duration::from_secs(15 * 60);

impl Client {
    /// Cause of a failure that a successful response reports. What a code means that the profile does not map is not known: if
    /// it comes again, it does not pass.
    fn cause_of(&self, said: &ErrorBody) -> Cause {
        let mapped = said.code.as_ref().is_some_and(|code| self.profile.error.statuses.contains_key(code));
        if mapped { Cause::Temporary } else { Cause::Unusable }
    }

    /// Returns the error that a successful response reports in an object of its own, and its cause.
    fn error_beside_data(&self, status: StatusCode, body: &[u8]) -> Option<(Cause, Error)> {
        if self.profile.error.inside_success || !error_body::may_report_error(&self.profile, body) {
            return None;
        }
        let said = ErrorBody::read(&self.profile, &self.key, body);
        said.is_failure().then(|| {
            let error = self.refusal(ErrorKind::Unavailable, status, &said).advice("try again later");
            (self.cause_of(&said), error)
        })
    }

    /// Returns the error for a list whose headers say that it continues, unless the profile says how it is paged.
    fn continues(&self, record: &RequestRecord, headers: &HeaderMap, rows: u64) -> Option<Error> {
        if record.endpoint != Endpoint::List.to_string() || self.profile.list.pages.is_some() {
            return None;
        }
        let sign = match record.status {
            Some(206) => "the status is 206 Partial Content".to_owned(),
            _ => more_by_headers(headers, rows)?,
        };
        let message = format!("the list of saved searches continues: {sign}");
        Some(Error::new(ErrorKind::Incomplete, message).advice(
            "declare how the list is paged in the profile: [list] pages = { parameter = \"…\", unit = \"row\" }",
        ))
    }

    /// Returns the error for a search whose exact total is smaller than the one in a header.
    fn exceeds(&self, record: &RequestRecord, headers: &HeaderMap, body: &[u8]) -> Option<Error> {
        let spec = &self.profile.total;
        if record.endpoint != Endpoint::Search.to_string() || spec.trust != Trust::Exact {
            return None;
        }
        let (name, told) = total_in(headers)?;
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let at = |pointer: &Pointer| pointer.member_of(&body);
        let exact = |relation: &serde_json::Value| relation.as_str().is_none_or(|word| word == "eq" || word == "exact");
        if !spec.relation.as_ref().and_then(at).is_none_or(exact) {
            return None;
        }
        let total = at(spec.at.as_ref()?)?.as_u64().filter(|total| *total < told)?;
        let message = format!("the header `{name}` says {told}, and the response has a total of {total}");
        Some(Error::new(ErrorKind::Contradiction, message).advice(
            "one of them counts other mentions: set trust = \"advisory\" in [total] of the profile to rely on neither",
        ))
    }

    /// Classifies the response to an attempt.
    pub(super) fn classify<T>(
        &self,
        response: &HttpResponse,
        record: &mut RequestRecord,
        decode: &impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Outcome<T> {
        let HttpResponse { status, headers, body, .. } = response;
        // A longer error body contains nothing worth reading.
        const ERROR_BYTES: usize = 256 << 10;
        let said = if (status.is_success() && !self.profile.error.inside_success)
            || (!status.is_success() && body.len() > ERROR_BYTES)
        {
            ErrorBody::default()
        } else {
            ErrorBody::read(&self.profile, &self.key, body)
        };
        record.rate_limit = retry::number(headers, self.profile.throttle.limit.as_deref());
        record.rate_remaining = retry::number(headers, self.profile.throttle.remaining.as_deref());
        let now = self.clock.now();
        // An error inside a success is treated as the status that its code maps to.
        let stated = status;
        let inside = status.is_success() && said.is_failure();
        let status = if inside { &self.profile.error.status_of(said.code.as_deref()) } else { status };
        let fits = |rules: &[ThrottleRule]| {
            rules.iter().any(|rule| {
                [status, stated].iter().any(|s| s.as_u16() == rule.status)
                    && (rule.code.is_none() || rule.code == said.code)
            })
        };
        if fits(&self.profile.throttle.quota) {
            let error = self.refusal(ErrorKind::Quota, *stated, &said);
            return Outcome::Failed(error.advice("the quota of the API key is used up; retry when it is renewed"));
        }
        if fits(&self.profile.throttle.when) {
            let wait = retry::named_wait(&self.profile.throttle, headers, now);
            let error =
                self.refusal(ErrorKind::Throttled, *stated, &said).advice("try again later, or narrow the query");
            return Outcome::Again(Cause::Throttled(wait), error);
        }
        let exhausted = retry::exhausted(&self.profile.throttle, headers, now);
        if let Some(wait) = exhausted {
            self.limiter.close(wait);
        }
        if *status == StatusCode::FORBIDDEN
            && let Some(wait) = retry::retry_after(&self.profile.throttle, headers, now).or(exhausted)
        {
            // A limit beside that of the rate: what is forbidden for good names no wait.
            let error = self.refusal(ErrorKind::Throttled, *stated, &said).advice("try again later");
            return Outcome::Again(Cause::Throttled(Some(wait)), error);
        }
        if *status == StatusCode::ACCEPTED {
            // The result is not ready (RFC 9110, section 15.3.3), whatever the body looks like.
            let wait = retry::retry_after(&self.profile.throttle, headers, now).unwrap_or_default();
            let error = self.refusal(ErrorKind::Unavailable, *stated, &said).advice("try again later");
            return Outcome::Again(Cause::Unavailable(wait), error);
        }
        if *status == StatusCode::NO_CONTENT {
            let error = Error::new(
                ErrorKind::Malformed,
                "the response is 204 (no content), which does not say that there are no rows",
            );
            return Outcome::Again(Cause::Unusable, error.advice("try again later"));
        }
        if status.is_success()
            && !record.cached
            && let Some(age) = retry::age(headers).filter(|age| *age > STALE)
        {
            let minutes = age.as_secs() / 60;
            let error = Error::new(
                ErrorKind::Unavailable,
                format!("the response comes from a cache and is {minutes} min old (header `age`)"),
            );
            return Outcome::Again(
                Cause::Temporary,
                error.advice("try again later, or use an address without the cache"),
            );
        }
        if status.is_success() {
            let accepted = html(headers, body).map_or_else(|| decode(body), Err);
            let accepted = accepted.and_then(|(value, rows)| match self.continues(record, headers, rows) {
                Some(error) => Err(error),
                None => self.exceeds(record, headers, body).map_or(Ok((value, rows)), Err),
            });
            if accepted.is_ok()
                && let Some(sign) = partial_by_headers(*status, headers)
            {
                let error = Error::new(ErrorKind::Unavailable, format!("the response is a part of the result: {sign}"));
                return Outcome::Again(Cause::Temporary, error.advice("try again later"));
            }
            // The data beside an error may be a part of the result.
            if accepted.is_ok()
                && let Some((cause, error)) = self.error_beside_data(*status, body)
            {
                return Outcome::Again(cause, error);
            }
            return match accepted {
                Ok((value, rows)) => {
                    if !record.cached {
                        self.limiter.answered();
                        // The date of a cached response is that of its caching, and a difference of a year is not clock
                        // skew.
                        let date = retry::server_date(headers).filter(|_| !headers.contains_key(AGE));
                        let skew = date.map(|date| (date - now).num_seconds()).filter(|skew| *skew < 366 * 86_400);
                        self.skew.store(skew.unwrap_or_default(), Ordering::Relaxed);
                        self.tells_time.store(skew.is_some(), Ordering::Relaxed);
                    }
                    record.rows += rows;
                    Outcome::Done(value, next_page(headers))
                }
                Err(error) => {
                    // The body may be an error despite the success status.
                    let said = match body.len() {
                        0..=ERROR_BYTES => ErrorBody::read(&self.profile, &self.key, body),
                        _ => ErrorBody::default(),
                    };
                    if error.kind() == ErrorKind::Contradiction && said.is_error() {
                        let error = self.refusal(ErrorKind::Unavailable, *status, &said).advice("try again later");
                        return Outcome::Again(self.cause_of(&said), error);
                    }
                    match error.kind() {
                        ErrorKind::Malformed => Outcome::Again(Cause::Unusable, error),
                        _ if error.may_pass() => Outcome::Again(Cause::Unusable, error),
                        _ => Outcome::Failed(error),
                    }
                }
            };
        }
        let kind = match status.as_u16() {
            300..=399 => ErrorKind::Redirect,
            401 => ErrorKind::Unauthorized,
            403 | 451 => ErrorKind::Forbidden,
            404 | 410 => ErrorKind::NotFound,
            // RFC 9110, section 15.5.9, and RFC 8470, section 5.2: the same request may be sent again.
            408 | 425 | 500..=599 => ErrorKind::Unavailable,
            _ => ErrorKind::Rejected,
        };
        let error = self.refusal(kind, *stated, &said);
        match kind {
            ErrorKind::Unavailable => {
                // RFC 9110, section 10.2.3, names Retry-After for these responses first.
                let cause = match retry::retry_after(&self.profile.throttle, headers, now) {
                    None if inside => self.cause_of(&said),
                    wait => Cause::Unavailable(wait.unwrap_or_default()),
                };
                Outcome::Again(cause, error.advice("try again later"))
            }
            ErrorKind::Redirect => {
                Outcome::Failed(error.advice("redirects are not followed; use the final URL as the base URL"))
            }
            ErrorKind::Unauthorized => Outcome::Failed(error.advice("check the API key and the profile's [auth]")),
            ErrorKind::Forbidden => Outcome::Failed(
                error.advice("this key may not read this saved search; saved_searches lists those that it may read"),
            ),
            ErrorKind::NotFound => Outcome::Failed(error.advice(advice::for_not_found(&self.base_url))),
            _ if *status == StatusCode::URI_TOO_LONG || status.as_u16() == 431 => Outcome::Failed(error.advice(
                "the values of the query's filters are too long to be sent; set a lower [filters] longest in the profile",
            )),
            _ => Outcome::Failed(error),
        }
    }

    fn refusal(&self, kind: ErrorKind, status: StatusCode, said: &ErrorBody) -> Error {
        let mut message = format!("the service answered {status}");
        if let Some(code) = &said.code {
            message.push_str(&format!(" {code}"));
        }
        if let Some(field) = &said.field {
            message.push_str(&format!(" (parameter `{field}`)"));
        }
        if let Some(text) = &said.message {
            message.push_str(": ");
            message.push_str(text);
        }
        Error::new(kind, one_line(&message))
    }
}

/// The header or the status that says that a response is a part of the result, if there is one: `X-Partial-Results: true`, a
/// `Warning` (RFC 7234, section 5.5) whose text says so, 206 without headers that place its rows among all.
fn partial_by_headers(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    const SIGNS: [&str; 4] = ["partial result", "incomplete", "truncated", "timed out"];
    let places = |name: &str| name == "content-range" || name == "link" || name.contains("total");
    if status == StatusCode::PARTIAL_CONTENT && !texts(headers).any(|(name, _)| places(name)) {
        return Some("the status is 206 Partial Content".to_owned());
    }
    let says = |text: &str| SIGNS.iter().any(|sign| text.to_lowercase().contains(sign));
    if let Some((_, warning)) = texts(headers).find(|(name, value)| *name == "warning" && says(value)) {
        return Some(format!("the header `warning` says {warning}"));
    }
    texts(headers).filter(|(name, _)| name.starts_with("x-")).find_map(|(name, value)| {
        let mut words = name.split('-');
        let partial = words.any(|word| matches!(word, "partial" | "incomplete" | "timedout"));
        let value = value.trim();
        let affirmed = ["true", "1", "yes"].iter().any(|yes| value.eq_ignore_ascii_case(yes));
        (partial && affirmed).then(|| format!("the header `{name}` says {value}"))
    })
}

/// The reason why a list of this many entries continues, if its headers name one: that there is another page, or a higher
/// total.
fn more_by_headers(headers: &HeaderMap, rows: u64) -> Option<String> {
    let higher = texts(headers).find_map(|(name, value)| {
        let counts = name.contains("total")
            && !["limit", "rate", "quota", "time", "page"].iter().any(|other| name.contains(other));
        let total = match name {
            "content-range" => value.rsplit_once('/').map(|(_, total)| total),
            _ => counts.then_some(value),
        };
        if let Some(total) = total.and_then(|total| total.trim().parse::<u64>().ok()).filter(|total| *total > rows) {
            return Some(format!("the header `{name}` says {total}, and {rows} entries were received"));
        }
        let pages = name.contains("total") && name.contains("pages");
        let several = pages && value.trim().parse::<u64>().is_ok_and(|pages| pages > 1);
        several.then(|| format!("the header `{name}` says that there is another page"))
    });
    higher.or_else(|| next_page(headers))
}

/// The header with the number of all mentions, such as `X-Total-Count` or `Content-Range: items 0-49/300`, and the number.
fn total_in(headers: &HeaderMap) -> Option<(&str, u64)> {
    /// Parts of the names of such headers. Others count pages, or requests.
    const PARTS: [&str; 10] =
        ["x", "total", "count", "results", "items", "records", "hits", "mentions", "rows", "pagination"];
    texts(headers).find_map(|(name, value)| {
        let of_name = name.contains("total") && name.split('-').all(|part| PARTS.contains(&part));
        let total = match name {
            "content-range" if !value.starts_with("bytes") => value.rsplit_once('/').map(|(_, total)| total),
            _ => of_name.then_some(value),
        };
        Some((name, total?.trim().parse().ok()?))
    })
}

/// The header that says that another page follows, if there is one: a link to it (RFC 8288), its cursor, or a flag.
fn next_page(headers: &HeaderMap) -> Option<String> {
    texts(headers).find_map(|(name, value)| {
        let links = name == "link"
            && value.split(';').map(str::trim).any(|part| {
                let relation = part.split(',').next().unwrap_or_default().trim();
                let relation =
                    relation.strip_prefix("rel").map(|rest| rest.trim_start_matches([' ', '=']).trim_matches('"'));
                relation
                    .is_some_and(|names| names.split_ascii_whitespace().any(|name| name.eq_ignore_ascii_case("next")))
            });
        let words: Vec<&str> = name.split('-').collect();
        let has = |word: &str| words.contains(&word);
        let nothing = ["", "0", "null", "none", "false"].contains(&value.trim().to_ascii_lowercase().as_str());
        let json: String = value.to_ascii_lowercase().split_ascii_whitespace().collect();
        let goes_on = (has("next") && (has("page") || has("cursor") || has("token")))
            || has("continuation")
            || (has("has") && (has("more") || has("next")));
        let more = (goes_on && !nothing)
            || ["\"hasnext\":true", "\"hasnextpage\":true", "\"hasmore\":true"].iter().any(|sign| json.contains(sign));
        match links {
            true => Some(format!("the header `{name}` has a link to a next page")),
            false => more.then(|| format!("the header `{name}` says that there is another page")),
        }
    })
}

/// The headers whose values are texts.
fn texts(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
}

/// Error for a response that is a web page, recognized by its content type or first byte. JSON under the content type of a web
/// page, which is the default of some languages, is JSON.
fn html(headers: &HeaderMap, body: &[u8]) -> Option<Error> {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let json = matches!(first, Some(b'{' | b'['));
    ((declared.starts_with("text/html") && !json) || first == Some(&b'<')).then(|| {
        Error::new(ErrorKind::Malformed, "the response is a web page, not JSON")
            .advice("check the base URL; a proxy or a login page may be in between")
    })
}
