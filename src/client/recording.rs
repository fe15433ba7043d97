//! Recording of requests and responses in files: for bug reports, and for replay without a network.
//!
//! ```text
//! DIR/recording.json        start time, and base URL of the service
//! DIR/00001.json …          a request with its response, in order of arrival
//! ```
//!
//! No key is written: request headers are not recorded, and a key that a response repeats is redacted. Only their owner
//! can read the files.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::Url;

use super::auth::Secret;
use super::http::{HttpFailure, HttpResponse};
use super::source::{AnswerSource, Exchange, Question, Unsent};
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::request::RequestKey;

/// File with the metadata of the recording.
const HEAD: &str = "recording.json";
/// Response headers that matter to a client.
const KEPT: [&str; 4] = ["content-type", "date", "age", "retry-after"];

/// Metadata of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    base_url: String,
    begun: DateTime<Utc>,
}

/// A request with its response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedExchange {
    /// Path and query.
    question: String,
    /// Status; absent if there was no response.
    status: Option<u16>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// Body as text.
    #[serde(default)]
    body: Option<String>,
    /// Body in base64, if it is not valid UTF-8.
    #[serde(default)]
    bytes: Option<String>,
    #[serde(default)]
    wire_bytes: u64,
    /// Reason why there was no response.
    #[serde(default)]
    failure: Option<String>,
    /// Set if another attempt could have had one.
    #[serde(default)]
    temporary: bool,
}

fn bad(path: &Path, what: &str) -> Error {
    Error::new(ErrorKind::Config, format!("{}: {what}", path.display()))
}

/// Records requests with their responses. Attached to a source by [`Exchanges::over`].
#[derive(Debug, Clone)]
pub struct Recorder {
    key: Secret,
    folder: PathBuf,
    /// Number of the last file written, shared by all that write into the folder.
    number: Arc<AtomicU64>,
}

/// Source whose exchanges are recorded.
#[derive(Debug)]
struct Recorded {
    recorder: Recorder,
    source: Arc<dyn AnswerSource>,
}

/// Origin of a connection's responses.
#[derive(Debug, Clone, Default)]
pub enum Exchanges {
    /// The service.
    #[default]
    Live,
    /// The service, with each exchange recorded.
    Recorded(Recorder),
    /// A recording.
    Replayed(Arc<Replay>),
}

impl Exchanges {
    /// Returns the source of the responses; `live` is the service.
    pub fn over(&self, live: Arc<dyn AnswerSource>) -> Arc<dyn AnswerSource> {
        match self {
            Self::Live => live,
            Self::Recorded(recorder) => Arc::new(Recorded { recorder: recorder.clone(), source: live }),
            Self::Replayed(replay) => Arc::clone(replay) as Arc<dyn AnswerSource>,
        }
    }
}

impl Recorder {
    /// Starts a recording in a folder, which is created if missing and must be empty.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the folder cannot be written to, or is not empty.
    pub fn begin(key: Secret, folder: &Path, base_url: &str, begun: DateTime<Utc>) -> Result<Self> {
        let unwritable = |error: std::io::Error| bad(folder, &format!("cannot be written to: {error}"));
        std::fs::create_dir_all(folder).map_err(unwritable)?;
        if std::fs::read_dir(folder).map_err(unwritable)?.next().is_some() {
            return Err(bad(folder, "is not empty").advice("choose a new folder for the recording"));
        }
        let head = Head { base_url: key.redact(base_url), begun };
        let text = serde_json::to_string_pretty(&head).unwrap_or_default();
        files::create(&folder.join(HEAD), &text).map_err(unwritable)?;
        Ok(Self { key, folder: folder.to_owned(), number: Arc::default() })
    }

    fn write(&self, url: &Url, answer: &Result<HttpResponse, HttpFailure>) -> Result<(), HttpFailure> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.folder.join(format!("{number:05}.json"));
        let question = self.key.redact(&url[url::Position::BeforePath..]);
        let text = serde_json::to_string_pretty(&self.exchange(question, answer)).unwrap_or_default();
        files::create(&path, &text).map_err(|error| {
            let message = format!("cannot write the recording {}: {error}", path.display());
            HttpFailure { kind: ErrorKind::Config, message, temporary: false }
        })
    }

    /// Returns the request with its response as they are written, with the key redacted.
    fn exchange(&self, question: String, answer: &Result<HttpResponse, HttpFailure>) -> RecordedExchange {
        match answer {
            Ok(answer) => {
                let known =
                    |name: &str| KEPT.contains(&name) || name.contains("ratelimit") || name.contains("rate-limit");
                let headers = answer.headers.iter().filter(|(name, _)| known(name.as_str()));
                let headers = headers.filter_map(|(name, value)| {
                    Some((name.as_str().to_owned(), self.key.redact(value.to_str().ok()?)))
                });
                let text = std::str::from_utf8(&answer.body).ok().map(|text| self.key.redact(text));
                // Binary bodies cannot be redacted: one that may contain the key is omitted.
                let lossy = String::from_utf8_lossy(&answer.body);
                let clean = text.is_some() || self.key.redact(&lossy) == lossy;
                RecordedExchange {
                    question,
                    status: Some(answer.status.as_u16()),
                    headers: headers.collect(),
                    bytes: (text.is_none() && clean).then(|| BASE64_STANDARD.encode(&answer.body)),
                    body: text,
                    wire_bytes: answer.wire_bytes,
                    failure: None,
                    temporary: false,
                }
            }
            Err(failure) => RecordedExchange {
                question,
                status: None,
                headers: Vec::new(),
                body: None,
                bytes: None,
                wire_bytes: 0,
                failure: Some(self.key.redact(&failure.message)),
                temporary: failure.temporary,
            },
        }
    }
}

impl AnswerSource for Recorded {
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let (recorder, url) = (self.recorder.clone(), question.request.url.clone());
        let asked = self.source.ask(question);
        async move {
            let exchange = asked.await?;
            if let Some(answer) = &exchange.answer
                && let Err(failure) = recorder.write(&url, answer)
            {
                return Ok(Exchange { answer: Some(Err(failure)), ..exchange });
            }
            Ok(exchange)
        }
        .boxed()
    }
}

/// Replays a recording. A request that was recorded several times gets the responses in turn, and then the last one
/// again and again.
#[derive(Debug)]
pub struct Replay {
    head: Head,
    answers: Mutex<HashMap<RequestKey, VecDeque<RecordedExchange>>>,
}

impl Replay {
    /// Reads a recording.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the folder contains no recording, or a file of it is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        let text =
            |path: &Path| std::fs::read_to_string(path).map_err(|error| bad(path, &format!("cannot be read: {error}")));
        let parsed =
            |path: &Path, error: serde_json::Error| bad(path, &format!("not a valid part of a recording: {error}"));
        let path = folder.join(HEAD);
        let head: Head = serde_json::from_str(&text(&path)?).map_err(|error| parsed(&path, error))?;
        let files = std::fs::read_dir(folder).map_err(|error| bad(folder, &format!("cannot be read: {error}")))?;
        // Other files in the folder are ignored.
        let ours = |path: &PathBuf| {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            path.extension().is_some_and(|end| end == "json") && stem.bytes().all(|byte| byte.is_ascii_digit())
        };
        let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).filter(ours).collect();
        files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
        let base_path = Url::parse(&head.base_url).map(|url| url.path().to_owned()).unwrap_or_default();
        let mut answers: HashMap<RequestKey, VecDeque<RecordedExchange>> = HashMap::new();
        for path in files {
            let exchange: RecordedExchange =
                serde_json::from_str(&text(&path)?).map_err(|error| parsed(&path, error))?;
            answers.entry(key_of(&exchange.question, &base_path)).or_default().push_back(exchange);
        }
        Ok(Self { head, answers: Mutex::new(answers) })
    }

    /// Base URL of the recorded service.
    pub fn base_url(&self) -> &str {
        &self.head.base_url
    }

    /// Start of the recording: periods that end now are requested as of this time.
    pub fn begun(&self) -> DateTime<Utc> {
        self.head.begun
    }
}

impl AnswerSource for Replay {
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let answer = self.answer(&question);
        async move { Ok(Exchange { answer: Some(answer), wait: Duration::ZERO }) }.boxed()
    }
}

impl Replay {
    fn answer(&self, question: &Question) -> Result<HttpResponse, HttpFailure> {
        let failure = |message: String| HttpFailure { kind: ErrorKind::Connect, message, temporary: false };
        let exchange = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = answers.get_mut(&question.key);
            known.and_then(|known| if known.len() > 1 { known.pop_front() } else { known.front().cloned() })
        };
        let question = &question.request.url[url::Position::BeforePath..];
        let Some(exchange) = exchange else {
            return Err(failure(format!(
                "the recording has no response to {question}: windows that end now differ between runs; use dates"
            )));
        };
        let Some(status) = exchange.status else {
            let failed = failure(exchange.failure.unwrap_or_else(|| "there was no response".to_owned()));
            return Err(HttpFailure { temporary: exchange.temporary, ..failed });
        };
        let damaged = || failure(format!("the recorded response to {question} is damaged"));
        let body = match (exchange.body, exchange.bytes) {
            (Some(text), _) => Bytes::from(text),
            (None, Some(bytes)) => Bytes::from(BASE64_STANDARD.decode(bytes).map_err(|_| damaged())?),
            (None, None) => Bytes::new(),
        };
        let headers = exchange
            .headers
            .iter()
            .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::from_str(value).ok()?)));
        let headers: HeaderMap = headers.collect();
        let status = StatusCode::from_u16(status).map_err(|_| damaged())?;
        Ok(HttpResponse { status, headers, body, wire_bytes: exchange.wire_bytes })
    }
}

/// Returns the identity of a request that is written as path and query; the path of the base URL is stripped.
fn key_of(question: &str, base_path: &str) -> RequestKey {
    let (path, query) = question.split_once('?').unwrap_or((question, ""));
    let path = path.strip_prefix(base_path.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/');
    let path = percent_decode_str(path).decode_utf8_lossy();
    RequestKey::new(&path, url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}
