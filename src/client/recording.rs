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

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use super::auth::Secret;
use super::http::{HttpFailure, HttpRequest, HttpResponse, HttpService};
use crate::error::{Error, ErrorKind, Result};
use crate::files;

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
struct Exchange {
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

/// A service that writes down what another one is asked and answers.
#[derive(Debug)]
pub struct Recorder {
    service: Arc<dyn HttpService>,
    key: Secret,
    folder: PathBuf,
    number: AtomicU64,
}

impl Recorder {
    /// Writes into a folder, which is made, and must be empty if it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where the folder cannot be written to, or holds something.
    pub fn begin(
        service: Arc<dyn HttpService>,
        key: Secret,
        folder: &Path,
        base_url: &str,
        begun: DateTime<Utc>,
    ) -> Result<Self> {
        let unwritable = |error: std::io::Error| bad(folder, &format!("cannot be written to: {error}"));
        std::fs::create_dir_all(folder).map_err(unwritable)?;
        if std::fs::read_dir(folder).map_err(unwritable)?.next().is_some() {
            return Err(bad(folder, "is not empty").advice("name a new folder for the recording"));
        }
        let head = Head { base_url: key.redact(base_url), begun };
        let text = serde_json::to_string_pretty(&head).unwrap_or_default();
        files::create(&folder.join(HEAD), &text).map_err(unwritable)?;
        Ok(Self { service, key, folder: folder.to_owned(), number: AtomicU64::new(0) })
    }

    fn write(&self, exchange: &Exchange) -> Result<(), HttpFailure> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.folder.join(format!("{number:05}.json"));
        let text = serde_json::to_string_pretty(exchange).unwrap_or_default();
        files::create(&path, &text).map_err(|error| {
            let message = format!("the recording {} cannot be written: {error}", path.display());
            HttpFailure { kind: ErrorKind::Config, message, temporary: false }
        })
    }
}

#[async_trait]
impl HttpService for Recorder {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let question = self.key.redact(&question(&request));
        let answer = self.service.call(request).await;
        let exchange = match &answer {
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
                Exchange {
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
            Err(failure) => Exchange {
                question,
                status: None,
                headers: Vec::new(),
                body: None,
                bytes: None,
                wire_bytes: 0,
                failure: Some(self.key.redact(&failure.message)),
                temporary: failure.temporary,
            },
        };
        self.write(&exchange)?;
        answer
    }
}

/// Path and query of a request, which tell its question.
fn question(request: &HttpRequest) -> String {
    request.url[url::Position::BeforePath..].to_owned()
}

/// A service that answers from a recording, each question as it was answered: in turn where it was asked several times, and
/// the last time over again.
#[derive(Debug)]
pub struct Replay {
    head: Head,
    answers: Mutex<HashMap<String, VecDeque<Exchange>>>,
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
        let head = serde_json::from_str(&text(&path)?).map_err(|error| parsed(&path, error))?;
        let files = std::fs::read_dir(folder).map_err(|error| bad(folder, &format!("cannot be read: {error}")))?;
        // Whatever else is there is none of ours.
        let ours = |path: &PathBuf| {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            path.extension().is_some_and(|end| end == "json") && stem.bytes().all(|byte| byte.is_ascii_digit())
        };
        let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).filter(ours).collect();
        files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
        let mut answers: HashMap<String, VecDeque<Exchange>> = HashMap::new();
        for path in files {
            let exchange: Exchange = serde_json::from_str(&text(&path)?).map_err(|error| parsed(&path, error))?;
            answers.entry(exchange.question.clone()).or_default().push_back(exchange);
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

#[async_trait]
impl HttpService for Replay {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let question = question(&request);
        let failure = |message: String| HttpFailure { kind: ErrorKind::Connect, message, temporary: false };
        let exchange = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = answers.get_mut(&question);
            known.and_then(|known| if known.len() > 1 { known.pop_front() } else { known.front().cloned() })
        };
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
