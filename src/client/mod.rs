//! Talks HTTP to the service: keys, limits, retries and pages.
//!
//! ```text
//! RequestPlan ──pages──▶ PageRequest ──Client::fetch──▶ limiter ▶ attempt ▶ classify ▶ decode ──▶ rows
//!                                          ▲                                  │
//!                                          └──── retry (pure) decides ────────┘
//! ```
//!
//! An answer counts only once its decoder has accepted it, so that a truncated page is asked for again like a failed
//! one. The module refuses to follow redirects, to guess what a status means (the profile says), and to wait past a
//! query's deadline.
//!
//! Invariant: every request that leaves has passed the limiter of its key and the budget of its query.

mod auth;
mod budget;
mod circuit_breaker;
mod error_body;
mod http;
mod ledger;
mod log;
mod pages;
mod principal;
mod rate_limit;
mod recording;
mod retry;
mod single_flight;
mod sliding_window;

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::header::{AGE, CONTENT_TYPE, HeaderMap};
use ::http::{HeaderName, HeaderValue, StatusCode};
use chrono::TimeDelta;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

pub use self::auth::Secret;
pub use self::budget::{Completeness, Held, Memory, QueryBudget, Scan};
pub use self::http::{HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, Network, receive};
pub use self::log::{RequestLog, RequestRecord, Warning};
pub use self::pages::{Pace, Page, PageDecoder, PageFacts, read_pages};
pub use self::principal::{Allowance, Caller};
pub use self::recording::{Recorder, Replay};
pub use self::retry::RetryPolicy;

use self::auth::name_of;
use self::budget::parameters_text;
use self::circuit_breaker::Breaker;
use self::error_body::ErrorBody;
use self::ledger::Ledger;
use self::log::shortened;
use self::rate_limit::Limiter;
pub(crate) use self::retry::asked_wait;
use self::retry::{Cause, Decision, RetryState};
use self::single_flight::{Flight, InFlight};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Place, Result, one_line};
use crate::profile::{Profile, RateWindow, RequestedBy, ThrottleRule};
use crate::request::{Endpoint, PageRequest};

/// A client of one service with one key.
#[derive(Debug)]
pub struct Client {
    base_url: Url,
    header: (HeaderName, HeaderValue),
    key: Secret,
    profile: Arc<Profile>,
    service: Arc<dyn HttpService>,
    limiter: Arc<Limiter>,
    ledger: Option<Arc<Ledger>>,
    breaker: Arc<Breaker>,
    /// How far the service's clock is ahead of ours, in seconds, as its last answer told.
    ahead: AtomicI64,
    retry: RetryPolicy,
    clock: Clock,
    log: RequestLog,
    in_flight: InFlight<Result<Called, Unsent>>,
    /// Where requests run, where that is not where their queries do.
    requests: OnceLock<Handle>,
}

/// What an attempt came to.
enum Outcome<T> {
    Done(T),
    Again(Cause, Error),
    Failed(Error),
}

impl Client {
    /// A client. `service` is the seam to the network, [`Network`] for the real one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a key that cannot be sent.
    pub fn try_new(
        base_url: Url,
        key: Secret,
        profile: Arc<Profile>,
        service: Arc<dyn HttpService>,
        clock: Clock,
    ) -> Result<Self> {
        let header = key.header(&profile.auth)?;
        let limiter = Limiter::shared(key.digest(base_url.as_str().trim_end_matches('/')), &profile.budget);
        let retry = RetryPolicy::default();
        let breaker = Breaker::shared(key.digest(base_url.as_str().trim_end_matches('/')));
        Ok(Self {
            base_url,
            header,
            key,
            profile,
            service,
            limiter,
            ledger: None,
            breaker,
            ahead: AtomicI64::new(0),
            retry,
            clock,
            log: RequestLog::default(),
            in_flight: InFlight::default(),
            requests: OnceLock::new(),
        })
    }

    /// From now on requests run in the runtime of the caller, whichever one their queries run in.
    pub(crate) fn requests_run_here(&self) {
        self.requests.get_or_init(Handle::current);
    }

    /// Runs a request, or several, on a task of their own.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        requests: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        AbortOnDropHandle::new(match self.requests.get() {
            Some(runtime) => runtime.spawn(requests),
            None => tokio::spawn(requests),
        })
    }

    /// Names the key without telling it: equal keys of one host have equal names.
    pub fn key_name(&self) -> String {
        let host = self.base_url.host_str().unwrap_or_default();
        name_of(self.key.digest(host))
    }

    /// The same client with other bounds of trying again.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The same client, which keeps what the key spends over more than an hour in a file of this folder, where the profile
    /// declares such a limit. All processes that name the folder spend together.
    #[must_use]
    pub fn with_ledger(mut self, folder: &Path) -> Self {
        let identity = self.key.digest(self.base_url.as_str().trim_end_matches('/'));
        self.ledger = Ledger::of(folder, identity, &self.profile.budget).map(Arc::new);
        self
    }

    /// Whether the profile declares a limit that is to outlast the process.
    pub fn needs_ledger(&self) -> bool {
        self.profile.budget.windows.iter().any(|window| window.seconds > ledger::SHORT)
    }

    /// The declared limits, each with the requests that count against it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a ledger that cannot be read.
    pub fn standing(&self) -> Result<Vec<(RateWindow, u64)>> {
        let mut standing = self.limiter.standing();
        if let Some(ledger) = &self.ledger {
            standing.extend(ledger.standing(self.clock.now())?);
        }
        Ok(standing)
    }

    /// A text without the key, in whatever form it is there.
    pub fn redact(&self, text: &str) -> String {
        self.key.redact(text)
    }

    /// The profile that it goes by.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// The address of the service.
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// What was asked so far.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// How far the service's clock is ahead of ours, as its last good answer told; zero where it is not, or did not tell.
    pub fn ahead(&self) -> TimeDelta {
        TimeDelta::seconds(self.ahead.load(Ordering::Relaxed))
    }

    /// How long the limiter keeps all queries waiting; zero while it does not.
    pub fn throttled_for(&self) -> Duration {
        self.limiter.closed_for()
    }

    /// Requests that the profile's declared budget allows until then; `None` where it declares none.
    pub fn possible_until(&self, deadline: Instant) -> Option<u64> {
        let now = self.clock.now();
        // What cannot be read is told by the first request.
        let ledger = self.ledger.as_ref().and_then(|ledger| ledger.standing(now).ok());
        let left = ledger.into_iter().flatten().map(|(window, used)| u64::from(window.requests).saturating_sub(used));
        self.limiter.possible(deadline).into_iter().chain(left).min()
    }

    /// Asks for a page until `decode` accepts the answer. `decode` returns the value and the records in it.
    ///
    /// # Errors
    /// The last attempt's error, with the number of attempts, once trying again is pointless, out of bounds or past the
    /// deadline of the query.
    pub async fn fetch<T>(
        &self,
        scan: &Scan,
        request: &PageRequest,
        decode: impl Fn(&[u8]) -> Result<(T, u64)>,
    ) -> Result<T> {
        self.fetch_logged(scan, request, decode).await.map(|(value, _)| value)
    }

    /// The same, with the number of the call in the log; `None` where none was made.
    async fn fetch_logged<T>(
        &self,
        scan: &Scan,
        request: &PageRequest,
        decode: impl Fn(&[u8]) -> Result<(T, u64)>,
    ) -> Result<(T, Option<u64>)> {
        let query = scan.query.as_ref();
        let begun = Instant::now();
        let parameters = request.parameters(&self.profile);
        let asked = parameters_text(&parameters);
        if let Some(kept) = scan.take_kept(&asked) {
            let decoded = decode(&kept).map_err(|error| error.map_text(|text| self.key.redact(text)));
            return decoded.map(|(value, _)| (value, None));
        }
        let mut record = RequestRecord {
            at: self.clock.now(),
            caller: query.caller.as_ref().map(|caller| Arc::clone(&caller.name)),
            query: query.id.clone(),
            endpoint: request.plan.endpoint.to_string(),
            parameters: shortened(self.key.redact(&asked)),
            status: None,
            attempts: 0,
            wait: Duration::ZERO,
            elapsed: Duration::ZERO,
            bytes: 0,
            rows: 0,
            cached: false,
            rate_limit: None,
            rate_remaining: None,
            error: None,
            conclusion: None,
        };
        let url = self.url(request.plan.endpoint, &parameters);
        let place = Place {
            table: None,
            aid: request.plan.aid.clone(),
            row: request.plan.pages.is_some().then_some(request.row),
        };
        let question = circuit_breaker::question(request);
        let refused = |error: Error| error.at(place.clone()).map_text(|text| self.key.redact(text));
        self.breaker.admit(question).map_err(refused)?;
        let mut state = RetryState::default();
        let result = loop {
            match self.attempt(scan, &url, self.cost(request), &mut record, &decode).await {
                Outcome::Done(value) => {
                    if !record.cached {
                        self.breaker.succeeded(question);
                    }
                    break Ok(value);
                }
                Outcome::Failed(error) => {
                    // It answered, and had its reason.
                    if record.status.is_some() {
                        self.breaker.succeeded(question);
                    }
                    break Err(error);
                }
                Outcome::Again(cause, error) => {
                    let Decision::Wait(wait) = state.after(&self.retry, cause, rand::random()) else {
                        // Who waits for less than is usual says nothing about the service.
                        let impatient =
                            error.kind() == ErrorKind::Timeout && query.request_timeout < QueryBudget::USUAL_TIMEOUT;
                        if !matches!(cause, Cause::Throttled(_)) && !impatient {
                            self.breaker.failed(question);
                        }
                        break Err(error);
                    };
                    if let Cause::Throttled(_) = cause {
                        // The limiter keeps this request waiting along with all others of the key. Who shared the
                        // answer has been told about once.
                        if !record.cached {
                            self.limiter.throttled(wait);
                        }
                        if wait > query.deadline.saturating_duration_since(Instant::now()) {
                            let named = matches!(cause, Cause::Throttled(Some(named)) if !named.is_zero());
                            break Err(if named { too_long(wait) } else { error });
                        }
                    } else if wait > query.deadline.saturating_duration_since(Instant::now()) {
                        break Err(error);
                    } else {
                        record.wait += wait;
                        sleep(wait).await;
                    }
                }
            }
        };
        record.elapsed = begun.elapsed();
        let placed = |error: Error| error.after(record.attempts, record.elapsed).at(place);
        // An aid may repeat the key as well.
        let result = result.map_err(|error| placed(error).map_text(|text| self.key.redact(text)));
        scan.count(record.attempts, record.bytes, record.wait);
        record.error = result.as_ref().err().map(|error| shortened(error.to_string()));
        let call = self.log.add(record);
        result.map(|value| (value, Some(call)))
    }

    async fn attempt<T>(
        &self,
        scan: &Scan,
        url: &Url,
        units: u64,
        record: &mut RequestRecord,
        decode: &impl Fn(&[u8]) -> Result<(T, u64)>,
    ) -> Outcome<T> {
        let query = scan.query.as_ref();
        record.status = None;
        let Called { answer, wait } = loop {
            let Flight { outcome, shared } = self.in_flight.join(url, || self.send(scan, url, units));
            let outcome = match timeout_at(query.deadline, outcome.clone()).await {
                Ok(outcome) => outcome,
                // An own one ends by then, and says how.
                Err(_) if !shared => outcome.await,
                Err(_) => return Outcome::Failed(past_deadline()),
            };
            match outcome {
                // Its time has passed, not ours.
                Ok(Called { answer: None, .. }) if shared && Instant::now() < query.deadline => {}
                Ok(called) => {
                    record.cached = shared;
                    break called;
                }
                // What the other query may not spend, this one may.
                Err(_) if shared => {}
                Err(Unsent::Refused(error)) => return Outcome::Failed(error),
                Err(Unsent::Panicked(message)) => {
                    let message = format!("the HTTP service failed: {message}");
                    return Outcome::Failed(Error::new(ErrorKind::Connect, self.key.redact(&message)));
                }
            }
        };
        if !record.cached {
            record.wait += wait;
            record.attempts += 1;
            self.log.requests.fetch_add(1, Ordering::Relaxed);
        }
        match answer {
            None if query.deadline <= Instant::now() => Outcome::Failed(past_deadline()),
            None => {
                let seconds = query.request_timeout.as_secs_f64();
                let error = Error::new(ErrorKind::Timeout, format!("no whole answer within {seconds} s"))
                    .advice("SET savedsearch.request_timeout = … allows more time");
                Outcome::Again(Cause::Temporary, error)
            }
            Some(Err(HttpFailure { kind, message, temporary })) => {
                let error = Error::new(kind, self.key.redact(&message));
                let error = match kind {
                    ErrorKind::Connect => {
                        error.advice(format!("check that {} is the service's address", self.base_url))
                    }
                    ErrorKind::Tls => {
                        error.advice("the certificate must be vouched for by an authority of this machine")
                    }
                    _ => error,
                };
                if temporary { Outcome::Again(Cause::Temporary, error) } else { Outcome::Failed(error) }
            }
            Some(Ok(response)) => {
                record.status = Some(response.status.as_u16());
                if !record.cached {
                    record.bytes += response.wire_bytes;
                }
                self.judge(&response, record, decode)
            }
        }
    }

    /// Units of the declared windows that a request costs: one, and what the records cost that it asks for.
    fn cost(&self, request: &PageRequest) -> u64 {
        let records = match self.profile.mentions.requested_by {
            _ if request.plan.endpoint == Endpoint::List => 0,
            RequestedBy::Always => request.size.max(1),
            RequestedBy::Size | RequestedBy::Flag => request.size,
        };
        1 + self.profile.budget.cost_per_record.unwrap_or_default().saturating_mul(records)
    }

    /// Sends a request for a scan, on a task of its own: a consumer that pauses must not keep the place of a request that
    /// is never polled, and one that is busy with a page must not keep the next one from being asked for.
    fn send(&self, scan: &Scan, url: &Url, units: u64) -> BoxFuture<'static, Result<Called, Unsent>> {
        let headers = HeaderMap::from_iter([self.header.clone()]);
        let request = HttpRequest { url: url.clone(), headers };
        let (service, limiter) = (Arc::clone(&self.service), Arc::clone(&self.limiter));
        let ledger = self.ledger.clone().map(|ledger| (ledger, self.clock.clone()));
        let call = self.spawn(call(
            service,
            limiter,
            ledger,
            Arc::clone(&scan.query),
            Arc::clone(&scan.places),
            (request, units),
        ));
        async {
            match call.await {
                Ok(called) => called.map_err(Unsent::Refused),
                Err(error) => Err(Unsent::Panicked(error.to_string())),
            }
        }
        .boxed()
    }

    /// What an answer means.
    fn judge<T>(
        &self,
        response: &HttpResponse,
        record: &mut RequestRecord,
        decode: &impl Fn(&[u8]) -> Result<(T, u64)>,
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
                    // What it quotes of the answer may repeat the key.
                    let error = error.map_text(|text| self.key.redact(text));
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
        Error::new(kind, self.key.redact(&one_line(&message)))
    }

    fn url(&self, endpoint: Endpoint, parameters: &[(String, String)]) -> Url {
        let mut url = self.base_url.clone();
        let path = match endpoint {
            Endpoint::List => &self.profile.list.path,
            Endpoint::Search => &self.profile.search.path,
        };
        url.set_path(&format!("{}/{}", self.base_url.path().trim_end_matches('/'), path.trim_start_matches('/')));
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        url
    }
}

/// A request that was sent: its answer, `None` where there was none in time, and the wait before it.
#[derive(Debug, Clone)]
struct Called {
    answer: Option<Result<HttpResponse, HttpFailure>>,
    wait: Duration,
}

/// Why a request was not sent.
#[derive(Debug, Clone)]
enum Unsent {
    /// The query that asked for it may not.
    Refused(Error),
    /// The task ended early.
    Panicked(String),
}

/// Waits for a place in the scan and at the limiter, takes the request out of the budget, and sends it.
async fn call(
    service: Arc<dyn HttpService>,
    limiter: Arc<Limiter>,
    ledger: Option<(Arc<Ledger>, Clock)>,
    query: Arc<QueryBudget>,
    places: Arc<Semaphore>,
    (request, units): (HttpRequest, u64),
) -> Result<Called> {
    let begun = Instant::now();
    let Ok(Ok(_place)) = timeout_at(query.deadline, places.acquire()).await else { return Err(past_deadline()) };
    // What may not be spent takes nobody's place.
    query.check()?;
    let _permit = match limiter.acquire(query.deadline, units, &query.share).await {
        Ok(permit) => permit,
        Err(Duration::ZERO) => return Err(past_deadline()),
        Err(wait) => return Err(too_long(wait)),
    };
    let wait = begun.elapsed();
    query.spend().inspect_err(|_| limiter.give_back(units))?;
    if let Some((ledger, clock)) = ledger {
        // Another process may hold the file.
        let spent = spawn_blocking(move || ledger.spend(clock.now(), units)).await;
        let spent =
            spent.map_err(|error| Error::new(ErrorKind::Config, format!("the ledger failed: {error}"))).flatten();
        spent.inspect_err(|_| {
            query.take_back();
            limiter.give_back(units);
        })?;
    }
    let limit = query.deadline.min(Instant::now() + query.request_timeout);
    Ok(Called { answer: timeout_at(limit, service.call(request)).await.ok(), wait })
}

/// The base URL, checked (seed section 4).
///
/// # Errors
/// [`ErrorKind::Config`] for what is no HTTP address, or has credentials, a query or a fragment.
pub fn parse_base_url(text: &str) -> Result<Url> {
    let bad = |why: &str| {
        Error::new(ErrorKind::Config, format!("`{}` is no base URL: {why}", without_credentials(text)))
            .advice("expected http(s)://host/…/v4")
    };
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad("it is no HTTP address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("credentials do not belong into an address"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(url)
}

/// The text without what may hold a key: all before an `@`, the query and the fragment.
fn without_credentials(text: &str) -> String {
    let scheme = text.split_once("://").map(|(scheme, _)| format!("{scheme}://")).unwrap_or_default();
    match text.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}<redacted>@{host}"),
        None => text.to_owned(),
    }
    .split(['?', '#'])
    .next()
    .unwrap_or_default()
    .to_owned()
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

fn past_deadline() -> Error {
    Error::new(ErrorKind::Timeout, "the query's deadline has passed")
        .advice("SET savedsearch.query_deadline = … allows more time")
}

fn too_long(wait: Duration) -> Error {
    let seconds = wait.as_secs_f64().ceil();
    Error::new(ErrorKind::Throttled, format!("the service asks to wait {seconds} s, longer than the query may take"))
        .advice("try again then, or allow more time: SET savedsearch.query_deadline = …")
}
