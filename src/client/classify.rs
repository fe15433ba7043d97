//! What an answer means: a value, a reason to try again, or a failure. The profile says which statuses and codes are which.

use ::http::StatusCode;
use ::http::header::{AGE, CONTENT_TYPE, HeaderMap};
use bytes::Bytes;
use std::sync::atomic::Ordering;

use super::attempt::Outcome;
use super::error_body::ErrorBody;
use super::fetch::Client;
use super::http::HttpResponse;
use super::log::RequestRecord;
use super::retry::{self, Cause};
use crate::error::{Error, ErrorKind, Result, one_line};
use crate::profile::ThrottleRule;

impl Client {
    /// What an answer to an attempt means.
    pub(super) fn classify<T>(
        &self,
        response: &HttpResponse,
        record: &mut RequestRecord,
        decode: &impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Outcome<T> {
        let HttpResponse { status, headers, body, .. } = response;
        // An error that takes more than this says nothing that anybody reads.
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
        // An error inside a success has the status that its code stands for.
        let stated = status;
        let inside = status.is_success() && said != ErrorBody::default();
        let status = if inside { &self.profile.error.status_of(said.code.as_deref()) } else { status };
        let fits = |rules: &[ThrottleRule]| {
            rules.iter().any(|rule| {
                [status, stated].iter().any(|s| s.as_u16() == rule.status)
                    && (rule.code.is_none() || rule.code == said.code)
            })
        };
        if fits(&self.profile.throttle.quota) {
            let error = self.refusal(ErrorKind::Quota, *stated, &said);
            return Outcome::Failed(error.advice("what the key may spend is used up; ask again when it is renewed"));
        }
        if fits(&self.profile.throttle.when) {
            let wait = retry::named_wait(&self.profile.throttle, headers, now);
            let error = self.refusal(ErrorKind::Throttled, *stated, &said).advice("try again later, or ask for less");
            return Outcome::Again(Cause::Throttled(wait), error);
        }
        if let Some(wait) = retry::exhausted(&self.profile.throttle, headers, now) {
            self.limiter.close(wait);
        }
        if status.is_success() {
            let accepted = html(headers, body).map_or_else(|| decode(body), Err);
            return match accepted {
                Ok((value, rows)) => {
                    if !record.cached {
                        self.limiter.answered();
                        // What a cache has kept tells its own time, and a year is no skew.
                        let date = retry::server_date(headers).filter(|_| !headers.contains_key(AGE));
                        let ahead = date.map(|date| (date - now).num_seconds()).filter(|ahead| *ahead < 366 * 86_400);
                        self.ahead.store(ahead.unwrap_or_default().max(0), Ordering::Relaxed);
                    }
                    record.rows += rows;
                    Outcome::Done(value)
                }
                Err(error) => {
                    // An error in place of the answer that the status promised.
                    let said = match body.len() {
                        0..=ERROR_BYTES => ErrorBody::read(&self.profile, &self.key, body),
                        _ => ErrorBody::default(),
                    };
                    if error.kind() == ErrorKind::Contradiction && said.is_error() {
                        let error = self.refusal(ErrorKind::Unavailable, *status, &said).advice("try again later");
                        return Outcome::Again(Cause::Temporary, error);
                    }
                    match error.kind() {
                        ErrorKind::Malformed => Outcome::Again(Cause::Temporary, error),
                        _ if error.may_pass() => Outcome::Again(Cause::Temporary, error),
                        _ => Outcome::Failed(error),
                    }
                }
            };
        }
        let kind = match status.as_u16() {
            300..=399 => ErrorKind::Redirect,
            401 => ErrorKind::Unauthorized,
            403 => ErrorKind::Forbidden,
            404 => ErrorKind::NotFound,
            500..=599 => ErrorKind::Unavailable,
            _ => ErrorKind::Rejected,
        };
        let error = self.refusal(kind, *stated, &said);
        match kind {
            ErrorKind::Unavailable => {
                // RFC 9110, 10.2.3 names the header for these first.
                let wait = retry::retry_after(&self.profile.throttle, headers, now);
                Outcome::Again(Cause::Unavailable(wait.unwrap_or_default()), error.advice("try again later"))
            }
            ErrorKind::Redirect => Outcome::Failed(error.advice("redirects are not followed: give the final address")),
            ErrorKind::Unauthorized => Outcome::Failed(error.advice("check the API key and the profile's [auth]")),
            ErrorKind::Forbidden => Outcome::Failed(error.advice("this key may not read it; see saved_searches")),
            ErrorKind::NotFound => {
                Outcome::Failed(error.advice(format!("check the aid, and that {} is the address", self.base_url)))
            }
            _ => Outcome::Failed(error),
        }
    }

    fn refusal(&self, kind: ErrorKind, status: StatusCode, said: &ErrorBody) -> Error {
        let mut message = format!("the service answered {status}");
        if let Some(code) = &said.code {
            message.push_str(&format!(" {code}"));
        }
        if let Some(field) = &said.field {
            message.push_str(&format!(" about `{field}`"));
        }
        if let Some(text) = &said.message {
            message.push_str(": ");
            message.push_str(text);
        }
        Error::new(kind, one_line(&message))
    }
}

/// An answer that is a page for people, by its type or its first byte.
fn html(headers: &HeaderMap, body: &[u8]) -> Option<Error> {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    (declared.starts_with("text/html") || first == Some(&b'<')).then(|| {
        Error::new(ErrorKind::Malformed, "the answer is a web page, not JSON")
            .advice("check the base URL, and for a proxy or a login page in between")
    })
}
