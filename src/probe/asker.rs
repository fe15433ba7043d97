//! Asks a service, one GET at a time, and remembers what was asked and what it looked like.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use crate::client::{AnswerSource, HttpRequest, Question, Secret, Unsent, asked_wait};
use crate::error::{Error, ErrorKind, Result, one_line};
use crate::profile::{Auth, Evidence, Profile, ResetFormat, Throttle};
use crate::request::RequestKey;

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time before a call that failed is made once more.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest time that a service may ask to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A parameter with its value.
pub(super) type Pair = (String, String);

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    /// The body, where it is JSON.
    pub(super) body: Option<Value>,
    /// The body as text, without the key.
    pub(super) text: String,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Endpoint and parameters, without the key.
    pub question: String,
    /// Status; `None` where there was no answer.
    pub status: Option<u16>,
}

/// Asks within a number of calls.
#[derive(Debug)]
pub(super) struct Asker {
    source: Arc<dyn AnswerSource>,
    base_url: Url,
    key: Secret,
    auth: Auth,
    left: u64,
    pub(super) calls: Vec<Call>,
}

impl Asker {
    pub(super) fn new(source: Arc<dyn AnswerSource>, base_url: Url, key: Secret, calls: u64) -> Self {
        let auth = Auth { evidence: Evidence::Assumed, header: "Authorization".into(), format: "Bearer {key}".into() };
        Self { source, base_url, key, auth, left: calls, calls: Vec::new() }
    }

    /// Sends the key in another form from now on.
    pub(super) fn send_key(&mut self, header: &str, format: &str) {
        self.auth = Auth { evidence: Evidence::Assumed, header: header.into(), format: format.into() };
    }

    /// Calls that may still be made.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// An answer; `None` where no call is left. Temporary trouble is no evidence: a call that fails, or is answered with a
    /// status of 5xx, is made once more, and a throttled one after a wait.
    ///
    /// # Errors
    /// The failure of a call that fails twice.
    pub(super) async fn ask(&mut self, path: &str, parameters: &[Pair]) -> Result<Option<Reply>> {
        /// Waits for a service that throttles, and failures, that a question is worth.
        const WAITS: u32 = 5;
        const FAILURES: u32 = 2;
        let (mut failed, mut waits, mut failures) = (None, 0, 0);
        while waits < WAITS && failures < FAILURES {
            if self.left == 0 {
                return failed.map_or(Ok(None), Err);
            }
            self.left -= 1;
            let mut url = self.base_url.clone();
            url.set_path(&format!("{}/{path}", self.base_url.path().trim_end_matches('/')));
            if !parameters.is_empty() {
                url.query_pairs_mut().extend_pairs(parameters);
            }
            let said: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let question = self.key.redact(format!("{path} {}", said.join(" ")).trim_end());
            let key = RequestKey::new(path, parameters.to_vec());
            let request = HttpRequest { url, headers: HeaderMap::from_iter([self.key.header(&self.auth)?]) };
            match self.source.ask(Question::unlimited(key, request, PATIENCE)).await.map(|exchange| exchange.answer) {
                Ok(Some(Ok(answer))) => {
                    let status = answer.status.as_u16();
                    self.calls.push(Call { question, status: Some(status) });
                    let text = self.key.redact(&String::from_utf8_lossy(&answer.body));
                    if is_throttling(status, &answer.headers, &text) && self.left > 0 {
                        waits += 1;
                        sleep(wait(&answer.headers)?).await;
                        continue;
                    }
                    if status >= 500 && failures + 1 < FAILURES && self.left > 0 {
                        failures += 1;
                        sleep(PAUSE).await;
                        continue;
                    }
                    // Its words may be sent back as candidates.
                    let body = serde_json::from_str(&text).ok();
                    return Ok(Some(Reply { status, headers: answer.headers, body, text }));
                }
                Ok(Some(Err(failure))) => {
                    self.calls.push(Call { question, status: None });
                    failures += 1;
                    failed = Some(Error::new(failure.kind, self.key.redact(&failure.message)));
                }
                Ok(None) => {
                    self.calls.push(Call { question, status: None });
                    failures += 1;
                    let message = format!("no answer within {} s", PATIENCE.as_secs());
                    failed = Some(Error::new(ErrorKind::Timeout, message));
                }
                Err(Unsent::Refused(error)) => return Err(error),
                Err(Unsent::Panicked(message)) => return Err(Error::new(ErrorKind::Connect, message)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                Err(Error::new(ErrorKind::Throttled, "the service throttles every call").advice("probe again later"))
            }
        }
    }
}

/// Whether an answer says that too much was asked: by its status, or in words beside one of those that keys get.
fn is_throttling(status: u16, headers: &HeaderMap, text: &str) -> bool {
    let says = |word: &str| text.to_ascii_lowercase().contains(word);
    let words = ["rate limit", "ratelimit", "rate_limit", "too many requests", "throttl", "quota", "slow down"];
    let named = headers.contains_key(http::header::RETRY_AFTER) || words.into_iter().any(says);
    status == 429 || (matches!(status, 401 | 403 | 503) && named)
}

/// How the end of a rate window is written: as seconds since 1970 or from now, or as an instant.
pub(super) fn reset_format(text: &str) -> ResetFormat {
    match text.parse::<i64>() {
        Ok(1_000_000_000..) => ResetFormat::EpochS,
        Ok(_) => ResetFormat::Seconds,
        Err(_) => ResetFormat::Iso,
    }
}

/// How long a throttled call is to wait: what the service asks for, else a while.
fn wait(headers: &HeaderMap) -> Result<Duration> {
    let usual = Profile::v4().throttle;
    let reset = usual.reset.as_deref().and_then(|name| headers.get(name)?.to_str().ok()).unwrap_or_default();
    let throttle = Throttle { reset_format: reset_format(reset.trim()), ..usual };
    let wait = asked_wait(&throttle, headers).unwrap_or(Duration::from_secs(10));
    if wait > LONGEST_WAIT {
        let message = format!("the service asks to wait {} s", wait.as_secs());
        return Err(Error::new(ErrorKind::Throttled, message).advice("probe again then"));
    }
    Ok(wait)
}

impl Reply {
    /// When the service answered, by its own clock, in microseconds since 1970.
    pub(super) fn date(&self) -> Option<i64> {
        let date = self.headers.get(http::header::DATE)?.to_str().ok()?;
        let date = httpdate::parse_http_date(date).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(date.as_micros()).ok()
    }

    /// The first line of a body, for people.
    pub(super) fn line(&self) -> String {
        let line: String = one_line(&self.text).chars().take(160).collect();
        format!("status {}: {line}", self.status)
    }

    /// What a refusal says to people: its message, or the body.
    pub(super) fn message(&self) -> String {
        let Some(body) = &self.body else { return self.text.clone() };
        super::refusal::message(body).unwrap_or_else(|| self.text.clone())
    }

    /// Whether it refuses the question: by its status, without JSON, or with words and nothing that could be counted.
    pub(super) fn is_refusal(&self) -> bool {
        let Some(body) = &self.body else { return true };
        let leaves = super::shape::leaves(body);
        let counts = leaves.iter().any(|(path, value)| {
            let status =
                path.last().is_some_and(|name| ["status", "code"].contains(&super::vocabulary::plain(name).as_str()));
            value.is_array() || (value.is_number() && !status)
        });
        let sentence = leaves.iter().any(|(_, value)| value.as_str().is_some_and(|text| text.contains(' ')));
        !(200..300).contains(&self.status) || (sentence && !counts)
    }

    /// Where a word stands by itself in the text.
    pub(super) fn mentions(&self, word: &str) -> Option<usize> {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let places = self.text.match_indices(word).map(|(at, _)| at);
        places.into_iter().find(|at| {
            let before = self.text[..*at].chars().next_back();
            let after = self.text[at + word.len()..].chars().next();
            !before.is_some_and(part) && !after.is_some_and(part)
        })
    }
}
