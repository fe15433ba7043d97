//! Services of tests: a script answers each request, or alters the answer of another service.

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion_saved_search::client::{HttpFailure, HttpRequest, HttpResponse, HttpService};
use datafusion_saved_search::{Clock, Connection, ErrorKind, Profile, Secret};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use super::now;

/// A request, as the service sees it.
#[derive(Clone)]
pub(crate) struct Asked {
    /// Number of the request, from 1.
    pub(crate) number: u64,
    /// Number of requests that have arrived so far, of which some may be answered later.
    pub(crate) arrived: u64,
    pub(crate) list: bool,
    pub(crate) key: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) request: HttpRequest,
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        self.request.url.path()
    }

    /// A parameter; empty if it was not sent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// A parameter as a number; 0 if it was not sent.
    pub(crate) fn number(&self, name: &str) -> usize {
        self.text(name).parse().unwrap_or_default()
    }

    /// True if the requested period, `from..to`, has a mention.
    pub(crate) fn covers(&self, mention: &Value) -> bool {
        let instant = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let at = instant(mention["publishedAt"].as_str().unwrap());
        let ends = self.text("duration").split_once("..");
        ends.is_none_or(|(from, to)| instant(from) <= at && at < instant(to))
    }
}

/// A response, or none.
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    /// `None`: the connection breaks.
    body: Option<String>,
}

impl Answer {
    /// A response with this body, whatever its format.
    pub(crate) fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: Some(body.into()) }
    }

    /// A connection that breaks.
    pub(crate) fn broken() -> Self {
        Self { status: 0, headers: Vec::new(), body: None }
    }

    /// The response with a header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn response(self) -> Result<HttpResponse, HttpFailure> {
        let Some(body) = self.body else {
            let message = "the connection broke".to_owned();
            return Err(HttpFailure { kind: ErrorKind::Connect, message, temporary: true });
        };
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let (status, wire_bytes) = (StatusCode::from_u16(self.status).unwrap(), body.len() as u64);
        Ok(HttpResponse { status, headers, body: body.into(), wire_bytes })
    }
}

/// A response with status 200.
pub(crate) fn ok(body: &Value) -> Answer {
    status(200, body)
}

/// A response with a JSON body.
pub(crate) fn status(status: u16, body: &Value) -> Answer {
    Answer::text(status, body.to_string())
}

type Script = Box<dyn Fn(Asked) -> BoxFuture<'static, Result<HttpResponse, HttpFailure>> + Send + Sync>;

/// A service that answers as its script says.
pub(crate) struct Scripted {
    script: Script,
    delay: Duration,
    requests: AtomicU64,
    seen: Mutex<Vec<BTreeMap<String, String>>>,
}

impl Scripted {
    /// Answers each request at once.
    pub(crate) fn new(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Self::delayed(Duration::ZERO, script)
    }

    /// Answers each request after this time, so that requests are in flight together.
    pub(crate) fn delayed(delay: Duration, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Self::of(delay, move |asked| ready(script(&asked).response()).boxed())
    }

    /// Changes the responses of another service.
    pub(crate) fn altered(
        service: impl HttpService + 'static,
        alter: impl Fn(&mut HttpResponse) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let alter = Arc::new(alter);
        Self::over(Duration::ZERO, service, move |service, asked| {
            let alter = Arc::clone(&alter);
            async move {
                let mut response = service.call(asked.request).await?;
                alter(&mut response);
                Ok(response)
            }
        })
    }

    /// Stands before another service: `call` passes a request on, or not.
    pub(crate) fn over<S: HttpService + 'static, F>(
        delay: Duration,
        service: S,
        call: impl Fn(Arc<S>, Asked) -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = Result<HttpResponse, HttpFailure>> + Send + 'static,
    {
        let service = Arc::new(service);
        Self::of(delay, move |asked| call(Arc::clone(&service), asked).boxed())
    }

    fn of(
        delay: Duration,
        script: impl Fn(Asked) -> BoxFuture<'static, Result<HttpResponse, HttpFailure>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { script: Box::new(script), delay, requests: AtomicU64::new(0), seen: Mutex::default() })
    }

    /// A connection to the service, at an address of its own: those with the same key and address share a rate limiter.
    pub(crate) fn connect(self: &Arc<Self>, key: Secret, profile: Profile) -> Arc<Connection> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let address = format!("http://scripted{}.test/v4", NUMBER.fetch_add(1, Ordering::Relaxed));
        let service = Arc::clone(self) as Arc<dyn HttpService>;
        let builder = Connection::builder(address, key).service(service);
        builder.clock(Clock::fixed(now())).profile(profile).build().unwrap()
    }

    /// Number of requests that have arrived.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Parameters of the requests, in the order in which they arrived.
    pub(crate) fn seen(&self) -> Vec<BTreeMap<String, String>> {
        self.seen.lock().unwrap().clone()
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

#[async_trait]
impl HttpService for Scripted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let parameters: BTreeMap<_, _> = request.url.query_pairs().into_owned().collect();
        self.seen.lock().unwrap().push(parameters.clone());
        if !self.delay.is_zero() {
            sleep(self.delay).await;
        }
        let key = request.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let key = key.trim_start_matches("Bearer ").to_owned();
        let list = request.url.path().ends_with("/list");
        (self.script)(Asked { number, arrived: self.requests(), list, key, parameters, request }).await
    }
}
