//! Recording of requests and responses in files: for bug reports, and for replay without a network.
//!
//! ```text
//! DIR/recording.json        start time, and base URL of the service
//! DIR/00001.json …          a request with its response, in order of arrival
//! ```
//!
//! No key is written: of the request headers, only that of the key is recorded, without the key, and a key that a response
//! repeats is redacted. Only their owner can read the files.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
use super::redactor::Clean;
use super::source::{AnswerSource, Exchange, Question, Unsent};
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::request::RequestKey;

/// File with the metadata of the recording.
const HEAD: &str = "recording.json";

/// True for a response header that is recorded: not for credentials of the service, and not for headers of the connection and of the
/// encoding, which a recorded body does not have.
fn is_recorded(name: &str) -> bool {
    const OMITTED: [&str; 8] = [
        "connection",
        "content-encoding",
        "content-length",
        "keep-alive",
        "location",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    const SECRET: [&str; 9] =
        ["auth", "authorization", "cookie", "cookie2", "credential", "csrf", "secret", "session", "token"];
    // The form of a key, and the place of a next page.
    let needed = name == "www-authenticate" || name.split('-').any(|word| word == "next" || word == "continuation");
    let secret = name.split(['-', '_']).any(|word| SECRET.contains(&word));
    needed || !(secret || OMITTED.contains(&name))
}

/// Metadata of a recording. What is written has [`Clean`] texts; what is read has any.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head<Text = String> {
    base_url: Text,
    begun: DateTime<Utc>,
}

/// A request with its response. What is written has [`Clean`] texts; what is read has any.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedExchange<Text = String> {
    /// Path and query.
    question: Text,
    /// Header with the key, which is redacted; absent in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Text>,
    /// Status; absent if there was no response.
    status: Option<u16>,
    #[serde(default)]
    headers: Vec<(String, Text)>,
    /// Body as text.
    #[serde(default)]
    body: Option<Text>,
    /// Body in base64, if it is not valid UTF-8.
    #[serde(default)]
    bytes: Option<String>,
    #[serde(default)]
    wire_bytes: u64,
    /// Reason why there was no response.
    #[serde(default)]
    failure: Option<Text>,
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

    fn write(
        &self,
        url: &Url,
        key: Option<Clean>,
        answer: &Result<HttpResponse, HttpFailure>,
    ) -> Result<(), HttpFailure> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.folder.join(format!("{number:05}.json"));
        let question = self.key.redact(&url[url::Position::BeforePath..]);
        let exchange = RecordedExchange { key, ..self.exchange(question, answer) };
        let text = serde_json::to_string_pretty(&exchange).unwrap_or_default();
        files::create(&path, &text).map_err(|error| {
            let message = format!("cannot write the recording {}: {error}", path.display());
            HttpFailure { kind: ErrorKind::Config, message, temporary: false }
        })
    }

    /// Returns the request with its response as they are written, with the key redacted.
    fn exchange(&self, question: Clean, answer: &Result<HttpResponse, HttpFailure>) -> RecordedExchange<Clean> {
        match answer {
            Ok(answer) => {
                let headers = answer.headers.iter().filter(|(name, _)| is_recorded(name.as_str()));
                let headers = headers.filter_map(|(name, value)| {
                    Some((name.as_str().to_owned(), self.key.redact(value.to_str().ok()?)))
                });
                let text = std::str::from_utf8(&answer.body).ok().map(|text| self.key.redact(text));
                // Binary bodies cannot be redacted: one that may contain the key is omitted.
                let lossy = String::from_utf8_lossy(&answer.body);
                let clean = text.is_some() || !self.key.is_in(&lossy);
                RecordedExchange {
                    question,
                    key: None,
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
                key: None,
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
        // The key is the only sensitive header.
        let sent = question.request.headers.iter().find(|(_, value)| value.is_sensitive());
        let key = sent.and_then(|(name, value)| Some(recorder.key.redact(value.to_str().ok()?).of_header(name)));
        let asked = self.source.ask(question);
        async move {
            let exchange = asked.await?;
            if let Some(answer) = &exchange.answer
                && let Err(failure) = recorder.write(&url, key, answer)
            {
                return Ok(Exchange { answer: Some(Err(failure)), ..exchange });
            }
            Ok(exchange)
        }
        .boxed()
    }
}

/// A request of a recording with its response.
#[cfg(feature = "probe")]
#[derive(Debug, Clone)]
pub(crate) struct RecordedAnswer {
    /// Path below the base URL, and parameters.
    pub(crate) path: String,
    pub(crate) parameters: Vec<(String, String)>,
    /// Header with the key, which is redacted, if it was recorded.
    pub(crate) key: Option<String>,
    pub(crate) response: Result<HttpResponse, HttpFailure>,
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
        let (head, exchanges) = read(folder)?;
        let base_path = path_of(&head.base_url);
        let mut answers: HashMap<RequestKey, VecDeque<RecordedExchange>> = HashMap::new();
        for exchange in exchanges {
            let (path, parameters) = parts_of(&exchange.question, &base_path);
            answers.entry(RequestKey::new(&path, parameters)).or_default().push_back(exchange);
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
        async move { Ok(Exchange { answer: Some(answer), waits: Vec::new() }) }.boxed()
    }
}

impl Replay {
    fn answer(&self, question: &Question) -> Result<HttpResponse, HttpFailure> {
        let exchange = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = answers.get_mut(&question.key);
            known.and_then(|known| if known.len() > 1 { known.pop_front() } else { known.front().cloned() })
        };
        let question = &question.request.url[url::Position::BeforePath..];
        match exchange {
            Some(exchange) => exchange.response(),
            None => Err(no_connection(format!(
                "the recording has no response to {question}: windows that end now differ between runs; use dates"
            ))),
        }
    }

    /// All requests of a recording in a folder, in order, with their responses.
    ///
    /// # Errors
    /// As [`Self::read`].
    #[cfg(feature = "probe")]
    pub(crate) fn all(folder: &Path) -> Result<Vec<RecordedAnswer>> {
        let (head, exchanges) = read(folder)?;
        let base_path = path_of(&head.base_url);
        let answers = exchanges.into_iter().map(|exchange| {
            let (path, parameters) = parts_of(&exchange.question, &base_path);
            RecordedAnswer { path, parameters, key: exchange.key.clone(), response: exchange.response() }
        });
        Ok(answers.collect())
    }
}

fn no_connection(message: String) -> HttpFailure {
    HttpFailure { kind: ErrorKind::Connect, message, temporary: false }
}

impl RecordedExchange {
    fn response(self) -> Result<HttpResponse, HttpFailure> {
        let Some(status) = self.status else {
            let failed = no_connection(self.failure.unwrap_or_else(|| "there was no response".to_owned()));
            return Err(HttpFailure { temporary: self.temporary, ..failed });
        };
        let damaged = || no_connection(format!("the recorded response to {} is damaged", self.question));
        let body = match (self.body, self.bytes) {
            (Some(text), _) => Bytes::from(text),
            (None, Some(bytes)) => Bytes::from(BASE64_STANDARD.decode(bytes).map_err(|_| damaged())?),
            (None, None) => Bytes::new(),
        };
        let headers = self
            .headers
            .iter()
            .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::from_str(value).ok()?)));
        let headers: HeaderMap = headers.collect();
        let status = StatusCode::from_u16(status).map_err(|_| damaged())?;
        Ok(HttpResponse { status, headers, body, wire_bytes: self.wire_bytes })
    }
}

/// Reads the metadata and the requests of a recording, in order.
fn read(folder: &Path) -> Result<(Head, Vec<RecordedExchange>)> {
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
    let exchange = |path: PathBuf| serde_json::from_str(&text(&path)?).map_err(|error| parsed(&path, error));
    let exchanges: Result<Vec<RecordedExchange>> = files.into_iter().map(exchange).collect();
    Ok((head, exchanges?))
}

/// The path of a base URL.
fn path_of(base_url: &str) -> String {
    Url::parse(base_url).map(|url| url.path().to_owned()).unwrap_or_default()
}

/// The path below that of the base URL, and the parameters, of a request that is written as path and query.
fn parts_of(question: &str, base_path: &str) -> (String, Vec<(String, String)>) {
    let (path, query) = question.split_once('?').unwrap_or((question, ""));
    let path = path.strip_prefix(base_path.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/');
    let path = percent_decode_str(path).decode_utf8_lossy().into_owned();
    (path, url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}
