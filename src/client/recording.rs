//! What was asked and answered, in files: for reports of what went wrong, and to answer from without a network.
//!
//! ```text
//! DIR/recording.json        when it began, and the address of the service
//! DIR/00001.json …          a question with its answer, in the order in which they came
//! ```
//!
//! No key is written: not in a header, which is not kept, and not where an answer repeats it. The files are their owner's alone.

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

/// File about the recording as a whole.
const HEAD: &str = "recording.json";
/// Headers of answers that mean something to a client.
const KEPT: [&str; 4] = ["content-type", "date", "age", "retry-after"];

/// What is known of a recording as a whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    base_url: String,
    begun: DateTime<Utc>,
}

/// A question with its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedExchange {
    /// Path and query.
    question: String,
    /// The status; absent where there was no answer.
    status: Option<u16>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The body as text.
    #[serde(default)]
    body: Option<String>,
    /// The body in base64, where it is no text.
    #[serde(default)]
    bytes: Option<String>,
    #[serde(default)]
    wire_bytes: u64,
    /// Why there was no answer.
    #[serde(default)]
    failure: Option<String>,
    /// Whether another attempt could have had one.
    #[serde(default)]
    temporary: bool,
}

fn bad(path: &Path, what: &str) -> Error {
    Error::new(ErrorKind::Config, format!("{}: {what}", path.display()))
}

/// Writes down what is asked and answered. Answers come through [`Exchanges::over`].
#[derive(Debug, Clone)]
pub struct Recorder {
    key: Secret,
    folder: PathBuf,
    /// The last one written; all who write into the folder share it.
    number: Arc<AtomicU64>,
}

/// A source whose exchanges are written down.
#[derive(Debug)]
struct Recorded {
    recorder: Recorder,
    source: Arc<dyn AnswerSource>,
}

/// Where the answers of a connection come from.
#[derive(Debug, Clone, Default)]
pub enum Exchanges {
    /// From the service.
    #[default]
    Live,
    /// From the service, and each is written down.
    Recorded(Recorder),
    /// From what was written down.
    Replayed(Arc<Replay>),
}

impl Exchanges {
    /// The source that answers, where `live` asks the service.
    pub fn over(&self, live: Arc<dyn AnswerSource>) -> Arc<dyn AnswerSource> {
        match self {
            Self::Live => live,
            Self::Recorded(recorder) => Arc::new(Recorded { recorder: recorder.clone(), source: live }),
            Self::Replayed(replay) => Arc::clone(replay) as Arc<dyn AnswerSource>,
        }
    }
}

impl Recorder {
    /// Writes into a folder, which is made, and must be empty if it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where the folder cannot be written to, or holds something.
    pub fn begin(key: Secret, folder: &Path, base_url: &str, begun: DateTime<Utc>) -> Result<Self> {
        let unwritable = |error: std::io::Error| bad(folder, &format!("cannot be written to: {error}"));
        std::fs::create_dir_all(folder).map_err(unwritable)?;
        if std::fs::read_dir(folder).map_err(unwritable)?.next().is_some() {
            return Err(bad(folder, "is not empty").advice("name a new folder for the recording"));
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
            let message = format!("the recording {} cannot be written: {error}", path.display());
            HttpFailure { kind: ErrorKind::Config, message, temporary: false }
        })
    }

    /// The question with its answer as they are written, without the key.
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
                // Of what is no text nothing can be taken out: what may have the key in it is left out whole.
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

/// Answers from a recording, each question as it was answered: in turn where it was asked several times, and
/// the last time over again.
#[derive(Debug)]
pub struct Replay {
    head: Head,
    answers: Mutex<HashMap<RequestKey, VecDeque<RecordedExchange>>>,
}

impl Replay {
    /// Reads a recording.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where there is none in the folder, or a file of it is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        let text =
            |path: &Path| std::fs::read_to_string(path).map_err(|error| bad(path, &format!("cannot be read: {error}")));
        let parsed = |path: &Path, error: serde_json::Error| bad(path, &format!("is no part of a recording: {error}"));
        let path = folder.join(HEAD);
        let head: Head = serde_json::from_str(&text(&path)?).map_err(|error| parsed(&path, error))?;
        let files = std::fs::read_dir(folder).map_err(|error| bad(folder, &format!("cannot be read: {error}")))?;
        // Whatever else is there is none of ours.
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

    /// The address of the service that was recorded.
    pub fn base_url(&self) -> &str {
        &self.head.base_url
    }

    /// When the recording began: periods that end now are asked for as of then.
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
                "the recording has no answer to {question}: periods that end now are others each time"
            )));
        };
        let Some(status) = exchange.status else {
            let failed = failure(exchange.failure.unwrap_or_else(|| "there was no answer".to_owned()));
            return Err(HttpFailure { temporary: exchange.temporary, ..failed });
        };
        let damaged = || failure(format!("the recorded answer to {question} is damaged"));
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

/// The identity of a question that is written as path and query; the base URL has a path of its own.
fn key_of(question: &str, base_path: &str) -> RequestKey {
    let (path, query) = question.split_once('?').unwrap_or((question, ""));
    let path = path.strip_prefix(base_path.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/');
    let path = percent_decode_str(path).decode_utf8_lossy();
    RequestKey::new(&path, url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}
