//! Classification of responses: a value, a reason to retry, or a failure. The profile says which statuses and codes
//! mean what.

use ::http::StatusCode;
use ::http::header::{AGE, CONTENT_TYPE, HeaderMap};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::advice;
use super::attempt::Outcome;
use super::error_body::{self, ErrorBody};
use super::fetch::Client;
use super::headers::with_headers;
use super::http::{HttpResponse, SIMULATED_TIME};
use super::log::RequestRecord;
use super::retry::{self, Cause};
use crate::error::notice::{Notice, words};
use crate::error::{Error, ErrorKind, Phrase, Result, Setting, one_line};
use crate::profile::{Pointer, ThrottleRule, Trust};
use crate::request::Endpoint;

/// Age of a response in a cache, beyond which it does not tell the newest mentions.
const STALE: Duration = Duration::from_secs(15 * 60);

/// Bytes of an error body that are read. A longer one contains nothing worth reading.
const ERROR_BYTES: usize = 256 << 10;

/// A response apart from its data.
struct Heard<'r> {
    /// Status that it has.
    stated: StatusCode,
    /// Status that it is treated as: an error inside a success has the one that its code maps to.
    status: StatusCode,
    /// True for an error inside a success.
    inside: bool,
    said: ErrorBody,
    headers: &'r HeaderMap,
    now: DateTime<Utc>,
}

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

    /// The body of a response as decoders read it: that of a search has the headers that the profile reads beside it. Their
    /// values become rows as those of the body do, and are searched for the key as well.
    fn with_headers(&self, record: &RequestRecord, headers: &HeaderMap, body: &Bytes) -> Bytes {
        let names = &self.profile.search.headers;
        match names.is_empty() || record.endpoint != Endpoint::Search.to_string() {
            true => body.clone(),
            false => self.key.redact_body(with_headers(names, headers, body)),
        }
    }

    /// Classifies the response to an attempt.
    pub(super) fn classify<T>(
        &self,
        response: &HttpResponse,
        record: &mut RequestRecord,
        decode: &impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Outcome<T> {
        let HttpResponse { status: stated, headers, body, .. } = response;
        let said = if (stated.is_success() && !self.profile.error.inside_success)
            || (!stated.is_success() && body.len() > ERROR_BYTES)
        {
            ErrorBody::default()
        } else {
            ErrorBody::read(&self.profile, &self.key, body)
        };
        record.rate_limit = retry::number(headers, self.profile.throttle.limit.as_deref());
        record.rate_remaining = retry::number(headers, self.profile.throttle.remaining.as_deref());
        let inside = stated.is_success() && said.is_failure();
        let is_mapped = said.code.as_ref().is_some_and(|code| self.profile.error.statuses.contains_key(code));
        let is_about = |message: &String| error_body::is_about(message, &record.parameters);
        let status = match inside {
            true if !is_mapped && said.message.as_ref().is_some_and(is_about) => StatusCode::BAD_REQUEST,
            true => self.profile.error.status_of(said.code.as_deref()),
            false => *stated,
        };
        let heard = Heard { stated: *stated, status, inside, said, headers, now: self.clock.now() };
        if let Some(outcome) = self.limited(&heard).or_else(|| self.unready(&heard, record)) {
            return outcome;
        }
        match heard.status.is_success() {
            true => self.accept(&heard, body, record, decode),
            false => self.refused(&heard, record),
        }
    }

    /// A response that a limit of the service explains.
    fn limited<T>(&self, heard: &Heard<'_>) -> Option<Outcome<T>> {
        let Heard { stated, status, said, headers, now, .. } = heard;
        let throttle = &self.profile.throttle;
        let fits = |rules: &[ThrottleRule]| {
            rules.iter().any(|rule| {
                [status, stated].iter().any(|s| s.as_u16() == rule.status)
                    && (rule.code.is_none() || rule.code == said.code)
            })
        };
        let wait = retry::named_wait(throttle, headers, *now);
        let is_quota = match fits(&throttle.when) {
            true => is_quota(said, wait),
            false => *status == StatusCode::FORBIDDEN && wait.is_none() && names_quota(said),
        };
        if is_quota || fits(&throttle.quota) {
            let error = self.refusal(ErrorKind::Quota, *stated, said);
            return Some(Outcome::Failed(
                error.advice("the quota of the API key is used up; retry when it is renewed"),
            ));
        }
        if fits(&throttle.when) {
            let error =
                self.refusal(ErrorKind::Throttled, *stated, said).advice("try again later, or narrow the query");
            return Some(Outcome::Again(Cause::Throttled(wait), error));
        }
        let exhausted = retry::exhausted(throttle, headers, *now);
        if let Some(wait) = exhausted {
            self.limiter.close(wait);
        }
        if matches!(*status, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED)
            && let Some(wait) =
                retry::retry_after(throttle, headers, *now).or(exhausted.filter(|_| *status == StatusCode::FORBIDDEN))
        {
            // A limit beside that of the rate: what is forbidden for good, and a wrong key, name no wait.
            let error = self.refusal(ErrorKind::Throttled, *stated, said).advice("try again later");
            return Some(Outcome::Again(Cause::Throttled(Some(wait)), error));
        }
        None
    }

    /// A response that is not the result yet, or no longer.
    fn unready<T>(&self, heard: &Heard<'_>, record: &RequestRecord) -> Option<Outcome<T>> {
        let Heard { stated, status, said, headers, now, .. } = heard;
        if *status == StatusCode::ACCEPTED {
            // The result is not ready (RFC 9110, section 15.3.3), whatever the body looks like.
            let wait = retry::retry_after(&self.profile.throttle, headers, *now).unwrap_or_default();
            let error = self.refusal(ErrorKind::Unavailable, *stated, said).advice("try again later");
            return Some(Outcome::Again(Cause::Unavailable(wait), error));
        }
        if *status == StatusCode::NO_CONTENT {
            let error = Error::new(
                ErrorKind::Malformed,
                "the response is 204 (no content), which does not say that there are no rows",
            );
            return Some(Outcome::Again(Cause::Unusable, error.advice("try again later").passing()));
        }
        if status.is_success()
            && !record.cached
            && let Some(age) = retry::age(headers).filter(|age| *age > STALE)
        {
            let minutes = age.as_secs() / 60;
            let error = Error::new(
                ErrorKind::Unavailable,
                format!("the response comes from a cache and is {minutes} min old (header `age`)"),
            )
            .advice("try again later, or use an address without the cache");
            return Some(Outcome::Again(Cause::Temporary, error));
        }
        None
    }

    /// A success, if its decoder accepts it and nothing else contradicts it.
    fn accept<T>(
        &self,
        heard: &Heard<'_>,
        body: &Bytes,
        record: &mut RequestRecord,
        decode: &impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Outcome<T> {
        let Heard { status, headers, now, .. } = heard;
        let whole = self.with_headers(record, headers, body);
        let accepted = html(headers, body).map_or_else(|| decode(&whole), Err);
        let accepted = accepted.and_then(|(value, rows)| match self.continues(record, headers, rows) {
            Some(error) => Err(error),
            None => self.exceeds(record, headers, &whole).map_or(Ok((value, rows)), Err),
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
        match accepted {
            Ok((value, rows)) => {
                if !record.cached {
                    self.limiter.answered();
                    // The date of a cached response is that of its caching, and a difference of a year is not clock skew.
                    let date = retry::server_date(headers).filter(|_| !headers.contains_key(AGE));
                    let skew = date.map(|date| (date - *now).num_seconds()).filter(|skew| *skew < 366 * 86_400);
                    self.skew.store(skew.unwrap_or_default(), Ordering::Relaxed);
                    self.tells_time.store(skew.is_some(), Ordering::Relaxed);
                    self.simulated_time.store(headers.contains_key(SIMULATED_TIME), Ordering::Relaxed);
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
        }
    }

    /// A response with the status of an error.
    fn refused<T>(&self, heard: &Heard<'_>, record: &RequestRecord) -> Outcome<T> {
        let Heard { stated, status, inside, said, headers, now } = heard;
        let kind = match status.as_u16() {
            300..=399 => ErrorKind::Redirect,
            401 => ErrorKind::Unauthorized,
            403 | 451 => ErrorKind::Forbidden,
            404 | 410 => ErrorKind::NotFound,
            // RFC 9110, section 15.5.9, and RFC 8470, section 5.2: the same request may be sent again.
            408 | 425 | 500..=599 => ErrorKind::Unavailable,
            _ => ErrorKind::Rejected,
        };
        let error = self.refusal(kind, *stated, said);
        match kind {
            ErrorKind::Unavailable => {
                // RFC 9110, section 10.2.3, names Retry-After for these responses first.
                let cause = match retry::retry_after(&self.profile.throttle, headers, *now) {
                    None if *inside => self.cause_of(said),
                    wait => Cause::Unavailable(wait.unwrap_or_default()),
                };
                Outcome::Again(cause, error.advice("try again later"))
            }
            ErrorKind::Redirect => {
                Outcome::Failed(error.advice("redirects are not followed; use the final URL as the base URL"))
            }
            ErrorKind::Unauthorized => Outcome::Failed(error.advice("check the API key and the profile's [auth]")),
            ErrorKind::Forbidden if record.endpoint == Endpoint::List.to_string() => {
                Outcome::Failed(error.advice("this key may not read the list of saved searches"))
            }
            ErrorKind::Forbidden => Outcome::Failed(error.advice(
                Phrase::from("this key may not read this saved search now, even if saved_searches lists it")
                    + Setting::Partial.to("on").after("; ").then(" continues without it"),
            )),
            ErrorKind::NotFound => {
                let has_aid = record.endpoint != Endpoint::List.to_string();
                Outcome::Failed(error.advice(advice::for_not_found(&self.base_url, has_aid, self.shown_as.as_deref())))
            }
            _ if *status == StatusCode::URI_TOO_LONG || status.as_u16() == 431 => Outcome::Failed(error.advice(
                "the values of the query's filters are too long to be sent; set a lower [filters] longest in the profile",
            )),
            _ => Outcome::Failed(error),
        }
    }

    fn refusal(&self, kind: ErrorKind, status: StatusCode, said: &ErrorBody) -> Error {
        let mut message = format!("the service answered {status}");
        let repeats = |code: &&String| says_the_same(code, status.canonical_reason().unwrap_or_default());
        if let Some(code) = said.code.as_ref().filter(|code| !repeats(code) && code.as_str() != status.as_str()) {
            message.push_str(&format!(" {code}"));
        }
        if let Some(field) = &said.field {
            message.push_str(&format!(" (parameter `{field}`)"));
        }
        if let Some(text) = said.message.as_ref().filter(|text| !repeats(text)) {
            message.push_str(": ");
            message.push_str(text);
        }
        Error::new(kind, one_line(&message))
    }
}

/// Words of an error.
fn words_of(said: &ErrorBody) -> Vec<String> {
    said.code.iter().chain(&said.message).flat_map(|text| words(text)).collect()
}

/// True for an error that says that a quota is used up, rather than that of one saved search.
fn names_quota(said: &ErrorBody) -> bool {
    const USED_UP: [&str; 8] = ["consumed", "depleted", "exceeded", "exceeds", "exhausted", "left", "reached", "used"];
    let said = words_of(said);
    let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
    let of_search = has(&["aid"])
        || said.windows(2).any(|pair| pair[0] == "saved" && (pair[1] == "search" || pair[1] == "searches"));
    has(&["quota", "quotas"]) && has(&USED_UP) && !of_search
}

/// True for an error of throttling that is about a used-up quota of a month, a day or a plan, rather than a rate. A short wait is one
/// for a rate.
fn is_quota(said: &ErrorBody, wait: Option<Duration>) -> bool {
    /// Longest wait for a rate.
    const LONGEST: Duration = Duration::from_secs(3_600);
    const QUOTAS: [&str; 7] = ["allowance", "credit", "credits", "daily", "monthly", "quota", "quotas"];
    const PLANS: [&str; 3] = ["billing", "plan", "subscription"];
    /// Words of quotas that outweigh those of a rate.
    const LONG: [&str; 2] = ["daily", "monthly"];
    const MOMENTS: [&str; 6] = ["burst", "concurrent", "minute", "minutes", "second", "seconds"];
    const RATES: [&str; 5] = ["many", "rate", "ratelimit", "slow", "throttled"];
    let said = words_of(said);
    let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
    let names = (has(&QUOTAS) || has(&PLANS)) && (!has(&RATES) || has(&LONG));
    names && !has(&MOMENTS) && wait.is_none_or(|wait| wait > LONGEST)
}

/// True for two names of the same, such as `not_found` and `Not Found`.
fn says_the_same(one: &str, other: &str) -> bool {
    let letters = |text: &str| {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    let one = letters(one);
    !one.is_empty() && one == letters(other)
}

/// The header or the status that says that a response is a part of the result, if there is one: `X-Partial-Results: true`,
/// `X-Complete: false`, `X-Shards-Failed: 2`, a `Warning` (RFC 7234, section 5.5) whose text says so, 206 without headers that place
/// its rows among all.
fn partial_by_headers(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    let places = |name: &str| name == "content-range" || name == "link" || name.contains("total");
    if status == StatusCode::PARTIAL_CONTENT && !texts(headers).any(|(name, _)| places(name)) {
        return Some("the status is 206 Partial Content".to_owned());
    }
    let (name, value) = texts(headers).find(|(name, value)| reports_a_part(name, value))?;
    Some(format!("the header `{name}` says {value}"))
}

/// True if a header says that a result is a part. No profile can declare that a header means something else, so these are few.
fn reports_a_part(name: &str, value: &str) -> bool {
    // `X-Search-Incomplete`, `X-Results-Complete`
    const OF_RESULT: [&str; 7] = ["data", "is", "query", "response", "result", "results", "search"];
    const PARTIAL: [&str; 7] = ["degraded", "failed", "incomplete", "partial", "timed out", "timeout", "truncated"];
    let words = name.strip_prefix("x-").unwrap_or(name).split('-');
    let words: Vec<&str> = words.filter(|word| !OF_RESULT.contains(word)).collect();
    let text = value.trim().trim_matches('"').to_ascii_lowercase();
    match words.as_slice() {
        ["degraded" | "incomplete" | "partial" | "sampled" | "truncated"]
        | ["partial", "content"]
        | ["degraded" | "partial", "mode"] => ["true", "1", "yes", "y"].contains(&text.as_str()),
        // `X-Timeout: 1` is a duration.
        ["timedout" | "timeout"] | ["time" | "timed", "out"] => text == "true",
        ["complete"] => ["false", "0", "no", "n"].contains(&text.as_str()),
        ["shards", "failed"] | ["failed", "shards"] => text.parse::<u64>().is_ok_and(|failed| failed > 0),
        ["coverage"] => {
            let (share, whole) = text.strip_suffix('%').map_or((&*text, 1.0), |percent| (percent, 100.0));
            share.trim_end().parse::<f64>().is_ok_and(|share| share > 0.0 && share < whole)
        }
        // `X-Search-Status: partial`; a status of something else has another word.
        ["state" | "status"] => PARTIAL.contains(&text.replace(['_', '-'], " ").as_str()),
        // The text of a warning (RFC 7234, section 5.5) is quoted.
        ["warning" | "warnings"] => is_stale(&text) || Notice::of(&value.replace('"', " ")) == Notice::Partial,
        _ => false,
    }
}

/// True for a warning of a cache whose response is older than it should be: that it is stale, could not be confirmed, or was served
/// without a connection to the service, or after a day that the cache chose.
fn is_stale(text: &str) -> bool {
    let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
    ["110", "111", "112", "113"].contains(&code) && !rest.trim_start().starts_with(|first: char| first.is_ascii_digit())
}

/// The reason why a list of this many entries continues, if its headers name one: that there is another page, or a higher
/// total.
fn more_by_headers(headers: &HeaderMap, rows: u64) -> Option<String> {
    let higher = texts(headers).find_map(|(name, value)| {
        let counts = name.contains("total")
            && !["limit", "rate", "quota", "time", "page"].iter().any(|other| name.contains(other));
        let total = match name {
            "content-range" => value.rsplit_once('/').map(|(_, total)| total),
            _ => (counts || counts_entries(name)).then_some(value),
        };
        if let Some(total) = total.and_then(|total| total.trim().parse::<u64>().ok()).filter(|total| *total > rows) {
            return Some(format!("the header `{name}` says {total}, and {rows} entries were received"));
        }
        let pages = (name.contains("total") && name.contains("pages")) || counts_pages(name);
        // Some services count the entries of the page: `X-Page-Count: 17`.
        let entries = |number: u64| number == rows && name.ends_with("page-count");
        let several = pages && value.trim().parse().is_ok_and(|pages| pages > 1 && !entries(pages));
        let truncated = matches!(name, "truncated" | "x-truncated")
            && ["true", "1", "yes"].contains(&&*value.trim().to_ascii_lowercase());
        (several || truncated || continues_in_json(name, value, rows))
            .then(|| format!("the header `{name}` says that there is another page"))
    });
    higher.or_else(|| next_page(headers)).or_else(|| cursor_in(headers))
}

/// True for the name of a header with the number of entries, of a list or of its page: `Pagination-Count`, `X-Result-Count`.
fn counts_entries(name: &str) -> bool {
    const ENTRIES: [&str; 21] = [
        "count",
        "elements",
        "entries",
        "found",
        "item",
        "items",
        "list",
        "num",
        "number",
        "objects",
        "paging",
        "pagination",
        "record",
        "records",
        "result",
        "results",
        "rows",
        "saved",
        "search",
        "searches",
        "total",
    ];
    let mut words = name.strip_prefix("x-").unwrap_or(name).split('-');
    words.clone().all(|word| ENTRIES.contains(&word))
        && words.any(|word| ["count", "found", "num", "number", "total"].contains(&word))
}

/// True for the name of a header with the number of pages: `X-Page-Count`, `X-Pages`.
fn counts_pages(name: &str) -> bool {
    let words: Vec<&str> = name.strip_prefix("x-").unwrap_or(name).split('-').collect();
    matches!(
        words.as_slice(),
        ["pages"]
            | ["page", "count" | "total"]
            | ["pages" | "last", "count" | "page" | "total"]
            | ["pagination" | "paging", "pages"]
            | ["pagination" | "paging", "page", "count"]
    )
}

/// True if a header about the pages of a list has an object that says that there is another one: `X-Pagination: {"total_pages": 3}`.
fn continues_in_json(name: &str, value: &str, rows: u64) -> bool {
    const ABOUT: [&str; 8] = ["list", "meta", "metadata", "page", "pages", "paging", "pagination", "result"];
    if !value.starts_with('{') || !name.split('-').any(|word| ABOUT.contains(&word)) {
        return false;
    }
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(value) else { return false };
    members.iter().any(|(name, value)| {
        let name: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphabetic).collect();
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        match name.as_str() {
            "count" | "total" | "totalcount" | "totalelements" | "totalentries" | "totalitems" | "totalrecords"
            | "totalresults" => number.is_some_and(|number| number > rows),
            "lastpage" | "pagecount" | "pages" | "totalpages" => number.is_some_and(|number| number > 1),
            "hasmore" | "hasnext" | "hasnextpage" => value.as_bool() == Some(true),
            _ if name.starts_with("next") => match value {
                serde_json::Value::Null | serde_json::Value::Bool(false) => false,
                serde_json::Value::String(text) => !is_nothing(text),
                _ => number != Some(0),
            },
            _ => false,
        }
    })
}

/// The header with a place in a list that was requested without one, unless another one counts no more than the list has: `X-Cursor`.
fn cursor_in(headers: &HeaderMap) -> Option<String> {
    if total_in(headers).is_some() {
        return None;
    }
    texts(headers).find_map(|(name, value)| {
        let words: Vec<&str> = name.strip_prefix("x-")?.split('-').collect();
        let place = matches!(
            words.as_slice(),
            ["cursor" | "marker"]
                | ["page" | "paging" | "pagination" | "scroll", "cursor" | "marker" | "token"]
                | ["scroll", "id"]
        );
        (place && !is_nothing(value)).then(|| format!("the header `{name}` names a place in the list"))
    })
}

/// True for a value that names no place in a list.
fn is_nothing(value: &str) -> bool {
    ["", "0", "-1", "end", "false", "n", "no", "none", "null"].contains(&&*value.trim().to_ascii_lowercase())
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
        let links = name == "link" && value.split(';').any(has_next_relation);
        let words: Vec<&str> = name.split('-').collect();
        let has = |word: &str| words.contains(&word);
        let json: String = value.to_ascii_lowercase().split_ascii_whitespace().collect();
        let goes_on = (has("next") && (has("page") || has("cursor") || has("token")))
            || has("continuation")
            || (has("has") && (has("more") || has("next")));
        let more = (goes_on && !is_nothing(value))
            || ["\"hasnext\":true", "\"hasnextpage\":true", "\"hasmore\":true"].iter().any(|sign| json.contains(sign));
        match links {
            true => Some(format!("the header `{name}` has a link to a next page")),
            false => more.then(|| format!("the header `{name}` says that there is another page")),
        }
    })
}

/// True for the parameter of a link to a next page (RFC 8288): `rel="next"`, also among others.
fn has_next_relation(parameter: &str) -> bool {
    // The next link may follow it.
    let parameter = parameter.split(',').next().unwrap_or_default();
    let Some((name, relations)) = parameter.split_once('=') else { return false };
    let mut relations = relations.trim().trim_matches('"').split_ascii_whitespace();
    name.trim().eq_ignore_ascii_case("rel") && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
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

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;
    use ::http::header::HeaderName;

    use super::*;
    use crate::cases::each;

    fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_code_that_repeats_the_status_is_the_same() {
        for (code, reason, same) in [
            ("unauthorized", "Unauthorized", true),
            ("NOT_FOUND", "Not Found", true),
            ("tooManyRequests", "Too Many Requests", true),
            ("rate_limited", "Too Many Requests", false),
            ("busy", "", false),
            ("--", "", false),
        ] {
            assert_eq!(says_the_same(code, reason), same, "{code}");
        }
    }

    #[test]
    fn a_quota_is_told_from_a_rate_and_from_that_of_one_saved_search() {
        let said = |text: &str| ErrorBody { message: Some(text.to_owned()), ..ErrorBody::default() };
        let cases = [
            ("quota of your plan used up", true),
            ("Monthly quota exceeded: too many requests", true),
            ("daily rate limit reached", true),
            ("Your plan allows no more searches", true),
            ("Rate limit quota violation", false),
            ("RATE_QUOTA_EXCEEDED", false),
            ("The rate of your plan is exceeded", false),
            ("quota of requests per minute exceeded", false),
        ];
        each(cases, |(text, quota)| assert_eq!(is_quota(&said(text), None), quota, "{text}"));
        let cases = [
            ("QUOTA_EXCEEDED: no searches left", true),
            ("your quota is exhausted", true),
            ("this saved search exceeds its quota", false),
            ("the quota of aid 7 is exceeded", false),
            ("quotas are managed by your administrator", false),
        ];
        each(cases, |(text, quota)| assert_eq!(names_quota(&said(text)), quota, "{text}"));
    }

    #[test]
    fn headers_report_a_part_in_many_words() {
        let cases = [
            ("warning", "299 - \"Result incomplete: 2 of 5 shards failed\""),
            ("x-partial-results", "yes"),
            ("x-partial-content", "true"),
            ("x-incomplete", "1"),
            ("x-truncated", "true"),
            ("x-timed-out", "True"),
            ("x-degraded", "true"),
            ("x-complete", "false"),
            ("x-results-complete", "no"),
            ("x-shards-failed", "2"),
            ("x-coverage", "0.75"),
            ("x-coverage", "75%"),
            ("x-sampled", "true"),
            ("x-warning", "results truncated"),
            ("x-failed-shards", "1"),
            ("x-timeout", "true"),
            ("x-search-incomplete", "true"),
            ("truncated", "true"),
            ("warning", "199 - \"partial results\""),
            ("x-warning", "some sources unavailable"),
            ("warning", "110 cache \"Response is Stale\""),
            ("warning", "110"),
            ("warning", "112 - \"Disconnected Operation\""),
            ("x-search-status", "partial"),
            ("x-data-status", "degraded"),
            ("x-degraded-mode", "1"),
            ("x-result-state", "TIMED_OUT"),
        ];
        each(cases, |header| {
            assert!(partial_by_headers(StatusCode::OK, &headers(&[header])).is_some(), "{header:?}");
        });
        let cases = [
            ("warning", "299 - \"this version will be unavailable soon\""),
            ("x-partial-results", "false"),
            ("x-truncated", "0"),
            ("x-complete", "true"),
            ("x-shards-failed", "0"),
            ("x-missing-sources", "none"),
            ("x-error-count", "0"),
            ("x-coverage", "1.0"),
            ("x-sampling-level", "FULL"),
            ("x-sampling", "1"),
            ("x-b3-sampled", "1"),
            ("x-datadog-sampling-priority", "1"),
            ("x-cloud-trace-context", "105445aa7843bc8bf206b12000100000/1;o=1"),
            ("x-amzn-trace-id", "Root=1;Sampled=1"),
            ("x-ratelimit-limit-reached", "true"),
            ("x-cache-status", "PARTIAL"),
            ("x-request-timeout", "1"),
            ("x-timeout", "1"),
            ("x-xss-protection", "1; mode=block"),
            ("x-allow-partial", "true"),
            ("x-status", "200"),
            ("x-warning", "this version will be unavailable soon"),
            ("etag", "\"partial\""),
            ("x-shards-skipped", "3"),
            ("x-excluded-sources", "spam.com"),
            ("x-failed-login-attempts", "1"),
            ("x-partial-content-supported", "true"),
            ("x-error-reporting", "true"),
            ("x-limit-reached", "true"),
            ("x-dropped-events", "5"),
            ("x-missing-sources", "-"),
            ("x-warning", "Your profile is incomplete"),
            ("warning", "214 proxy \"Transformation Applied\""),
            ("warning", "299 - \"Deprecated API: this version ends soon\""),
            ("x-degraded-mode", "0"),
            ("x-search-status", "complete"),
            ("x-account-status", "partial"),
        ];
        each(cases, |header| {
            assert_eq!(partial_by_headers(StatusCode::OK, &headers(&[header])), None, "{header:?}");
        });
    }

    #[test]
    fn headers_say_in_many_words_that_a_list_continues() {
        let cases = [
            ("link", "</list?page=2>; REL=\"NEXT\""),
            ("link", "</list?page=1>; rel=prev, </list?page=3>; rel = next"),
            ("x-total-count", "12"),
            ("content-range", "items 0-4/12"),
            ("x-pagination", r#"{"total":12,"total_pages":3,"page":1,"next_page":2}"#),
            ("x-pagination", r#"{"TotalCount":5,"TotalPages":1,"HasNext":true}"#),
            ("x-pagination", r#"{"total":"12"}"#),
            ("pagination-count", "12"),
            ("x-result-count", "12"),
            ("x-page-count", "3"),
            ("x-cursor", "abc"),
            ("x-page-token", "abc"),
            ("x-next-cursor", "abc"),
            ("x-truncated", "true"),
        ];
        each(cases, |header| {
            assert!(more_by_headers(&headers(&[header]), 5).is_some(), "{header:?}");
        });
        let cases = [
            &[("link", "</list>; rel=\"prev\"; title=\"next\"")][..],
            &[("x-cursor", "abc"), ("x-total-count", "5")],
            &[("x-pagination", r#"{"total":5,"total_pages":1,"page":1,"next_page":null}"#)],
            &[("pagination-count", "5"), ("x-page-count", "1"), ("x-page-size", "100")],
            &[("x-page-count", "5")],
            &[("x-pagination", r#"{"next":"null"}"#)],
            &[("x-pagination", r#"{"next":""}"#)],
            &[("x-has-more", "no")],
            &[("x-ratelimit-total", "900"), ("x-hits", "900"), ("x-request-count", "900"), ("x-cache-hits", "7")],
            &[("x-cursor", ""), ("x-truncated", "false"), ("x-app-usage", r#"{"count":28,"total":25}"#)],
        ];
        each(cases, |of| {
            assert_eq!(more_by_headers(&headers(of), 5), None, "{of:?}");
        });
    }
}
