//! Client of one service with one API key: repeats a request until its response is accepted, within limits and
//! deadlines.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use datafusion::error::DataFusionError;
use savedsearch_clock::Clock;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span};
use url::Url;

use super::attempt::Outcome;
use super::auth::{Secret, name_of};
use super::budget::{QueryBudget, Scan};
use super::circuit_breaker::{self, Breaker, Circuit};
use super::estimates::{self, Grounds, Total};
use super::http::{HttpRequest, HttpService};
use super::ledger::{self, Ledger};
use super::limits;
use super::live::Live;
use super::log::{RequestLog, RequestRecord};
use super::pages::Totals;
use super::rate_limit::Limiter;
use super::recording::Exchanges;
use super::redactor::Clean;
use super::retry::{Cause, Decision, RetryPolicy, RetryState};
use super::single_flight::SingleFlight;
use super::source::{AnswerSource, Exchange, Question, Spending, Unsent, too_long};
use super::trace;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::memory::inherited;
use crate::profile::{Profile, RateWindow, RequestedBy};
use crate::request::{Clocks, Endpoint, PageRequest, RequestKey, RequestPlan};

/// Parts that a client is built from.
#[derive(Debug)]
pub(crate) struct ClientSpec {
    pub(crate) base_url: Url,
    pub(crate) key: Secret,
    pub(crate) profile: Arc<Profile>,
    /// Access to the network.
    pub(crate) service: Arc<dyn HttpService>,
    pub(crate) clock: Clock,
    pub(crate) retry: RetryPolicy,
    /// Folder for the request counts of limits over more than an hour, if the profile declares such. All processes with
    /// the same folder count together.
    pub(crate) state_folder: Option<PathBuf>,
    /// Set if the grounds of estimates outlast the process, in the same folder.
    pub(crate) keeps_estimates: bool,
    /// Name that people are shown instead of the address.
    pub(crate) shown_as: Option<String>,
    pub(crate) exchanges: Exchanges,
}

/// Client of one service with one API key.
#[derive(Debug)]
pub struct Client {
    pub(super) base_url: Url,
    pub(super) shown_as: Option<String>,
    pub(super) key: Secret,
    pub(super) profile: Arc<Profile>,
    pub(super) source: Arc<dyn AnswerSource>,
    pub(super) limiter: Arc<Limiter>,
    ledger: Option<Arc<Ledger>>,
    breaker: Arc<Breaker>,
    /// Seconds by which the service's clock is ahead of ours, or behind it if negative, according to its last response.
    pub(super) skew: AtomicI64,
    /// Set if the last successful response had a time.
    pub(super) tells_time: AtomicBool,
    /// Set if the last successful response came from a simulator whose clock is not that of its machine.
    pub(super) simulated_time: AtomicBool,
    retry: RetryPolicy,
    pub(super) clock: Clock,
    pub(super) log: RequestLog,
    pub(super) in_flight: SingleFlight<RequestKey, Result<Exchange, Unsent>>,
    /// Totals that windows are expected to have.
    pub(super) totals: Totals,
    /// Knowledge of other processes; `None` if it is not kept.
    estimates: Option<Grounds>,
    /// Largest page size that the service was seen to refuse as too small, or as none that it accepts.
    refused_size: AtomicU64,
    /// Set if the service was seen to round offsets down to multiples of the page size.
    rounds_offsets: AtomicBool,
    /// Set once the service refused a single mention beside an overview.
    overview_alone: AtomicBool,
    /// Runtime for requests, if it is not that of their queries.
    requests: OnceLock<Handle>,
}

/// A response that was accepted.
pub(super) struct Fetched<T> {
    pub(super) value: T,
    /// The header that says that another page follows, if there is one.
    pub(super) more: Option<String>,
    /// Number of the call in the log; `None` if no call was made.
    pub(super) call: Option<u64>,
}

impl Client {
    /// Creates a client.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the key cannot be sent, or if a state folder is needed and none is given.
    pub(crate) fn try_new(spec: ClientSpec) -> Result<Self> {
        let ClientSpec { base_url, key, profile, service, clock, retry, state_folder, keeps_estimates, .. } = spec;
        let (exchanges, shown_as) = (spec.exchanges, spec.shown_as);
        key.header(&profile.auth)?;
        let identity = key.digest(base_url.as_str().trim_end_matches('/'));
        let limiter = Limiter::shared(identity, &profile.budget);
        let kept_in = state_folder.as_deref().filter(|_| keeps_estimates);
        let estimates = kept_in.map(|folder| Grounds::read(folder, identity));
        let ledger = match state_folder {
            Some(folder) => Ledger::of(&folder, identity, &profile.budget).map(Arc::new),
            None if !ledger::is_needed(&profile.budget) => None,
            None => {
                return Err(Error::new(
                    ErrorKind::Config,
                    "the profile declares a limit over more than an hour, but there is no state folder to count \
                     requests in",
                )
                .advice("set XDG_STATE_HOME or HOME, or ConnectionBuilder::state_folder in a program"));
            }
        };
        let log = RequestLog::new(key.clone());
        let live = Live { service, key: key.clone(), requests: Arc::clone(&log.requests) };
        let limited = limits::over(Arc::new(live), &limiter, ledger.clone(), &clock);
        Ok(Self {
            base_url,
            shown_as,
            log,
            key,
            profile,
            source: exchanges.over(limited),
            limiter,
            ledger,
            breaker: Breaker::shared(identity),
            skew: AtomicI64::new(0),
            tells_time: AtomicBool::new(false),
            simulated_time: AtomicBool::new(false),
            retry,
            clock,
            in_flight: SingleFlight::default(),
            totals: Totals::default(),
            estimates,
            refused_size: AtomicU64::new(0),
            rounds_offsets: AtomicBool::new(false),
            overview_alone: AtomicBool::new(false),
            requests: OnceLock::new(),
        })
    }

    /// A client of the same service, with its limits, that sends requests by another profile.
    pub(crate) fn with_profile(&self, profile: Profile) -> Self {
        Self {
            base_url: self.base_url.clone(),
            shown_as: self.shown_as.clone(),
            log: RequestLog::new(self.key.clone()),
            key: self.key.clone(),
            profile: Arc::new(profile),
            source: Arc::clone(&self.source),
            limiter: Arc::clone(&self.limiter),
            ledger: self.ledger.clone(),
            breaker: Arc::clone(&self.breaker),
            skew: AtomicI64::new(self.skew.load(Ordering::Relaxed)),
            tells_time: AtomicBool::new(self.tells_time.load(Ordering::Relaxed)),
            simulated_time: AtomicBool::new(self.simulated_time.load(Ordering::Relaxed)),
            retry: self.retry,
            clock: self.clock.clone(),
            in_flight: SingleFlight::default(),
            totals: Totals::default(),
            estimates: None,
            refused_size: AtomicU64::new(0),
            rounds_offsets: AtomicBool::new(false),
            overview_alone: AtomicBool::new(false),
            requests: self.requests.clone(),
        }
    }

    /// Makes all further requests run on the caller's runtime, whichever one their queries run on.
    #[cfg(feature = "host")]
    pub(crate) fn requests_run_here(&self) {
        self.requests.get_or_init(Handle::current);
    }

    /// Runs one or more requests on a task of their own, within the current span.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        requests: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        let requests = inherited(requests.in_current_span());
        AbortOnDropHandle::new(match self.requests.get() {
            Some(runtime) => runtime.spawn(requests),
            None => tokio::spawn(requests),
        })
    }

    /// Name of the key that does not reveal it: equal keys of one host have equal names.
    pub fn key_name(&self) -> String {
        let host = self.base_url.host_str().unwrap_or_default();
        name_of(self.key.digest(host))
    }

    /// Reads the key again from its source, such as its file. Returns true if the key has changed; the new key is sent from
    /// now on.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it cannot be read; the old one is kept.
    pub async fn renew_key(&self) -> Result<bool> {
        let key = self.key.clone();
        let renewed = spawn_blocking(move || key.renew(key.renewals())).await;
        renewed.map_err(|error| Error::new(ErrorKind::Config, format!("cannot read the API key again: {error}")))?
    }

    /// Returns the declared limits with the requests counted against each.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the ledger cannot be read.
    pub fn standing(&self) -> Result<Vec<(RateWindow, u64)>> {
        let mut standing = self.limiter.standing();
        if let Some(ledger) = &self.ledger {
            standing.extend(ledger.standing(self.clock.now())?);
        }
        Ok(standing)
    }

    /// Redacts every form of the key in a text.
    pub fn redact(&self, text: &str) -> Clean {
        self.key.redact(text)
    }

    /// Redacts every form of the keys of several clients in a text.
    #[cfg(any(feature = "host", feature = "shell"))]
    pub(crate) fn redact_all<'c>(clients: impl IntoIterator<Item = &'c Arc<Self>>, text: &str) -> Clean {
        Clean::of(text, clients.into_iter().map(|client| &client.key))
    }

    /// Redacts the key in a query's error: responses that it quotes may repeat the key.
    pub(crate) fn redacted(&self, error: DataFusionError) -> DataFusionError {
        // Redacted before anything is cut for display: a cut could leave a part of the key that is no longer
        // recognized.
        if let Some(own) = Error::find(&error) {
            let clean = own.clone().map_text(|text| self.key.redact(text).into());
            return if clean == *own { error } else { clean.into() };
        }
        let text = error.to_string();
        if self.key.is_in(&text) { DataFusionError::Execution(self.key.redact(&text).into()) } else { error }
    }

    /// Profile of the service.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Base URL of the service.
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// Name under which people are shown the address of the service.
    pub fn address(&self) -> &str {
        self.shown_as.as_deref().unwrap_or(self.base_url.as_str())
    }

    /// Digest of the service's address and the key, which reveals neither.
    #[cfg(feature = "store")]
    pub(crate) fn identity(&self) -> String {
        let service = self.base_url.as_str().trim_end_matches('/');
        data_encoding::HEXLOWER.encode(&self.key.digest(service))
    }

    /// Expects a window to have this many mentions, so that its pages are requested together.
    #[cfg(any(feature = "shell", feature = "store"))]
    pub(crate) fn expect(&self, plan: RequestPlan, mentions: u64) {
        self.note_total(&plan, mentions);
    }

    /// Remembers the number of mentions of the window of a plan.
    pub(super) fn note_total(&self, plan: &RequestPlan, mentions: u64) {
        let (window, total) = self.total_of(plan, mentions);
        self.totals.expect(window, total);
    }

    /// Remembers the number of mentions that an overview states for the window of a plan. For estimates only.
    pub(crate) fn note_count(&self, plan: &RequestPlan, mentions: u64) {
        let (window, total) = self.total_of(plan, mentions);
        self.totals.count(window, total);
    }

    /// The total of the window of a plan that now has this many mentions.
    fn total_of(&self, plan: &RequestPlan, mentions: u64) -> (RequestKey, Total) {
        let window = PageRequest::overview(plan.clone()).key(&self.profile);
        (window, Total { at: self.clock.now(), mentions, span: self.instants_of(plan) })
    }

    /// The instants of the window of a plan; of a relative period, those if it were requested now.
    fn instants_of(&self, plan: &RequestPlan) -> Option<estimates::WindowInstants> {
        let (words, window) = (plan.duration.as_deref()?, &self.profile.window);
        let relative = || {
            let now = self.clock.now();
            Some((now.checked_sub_signed(window.length_of(words)?)?, now))
        };
        let (from, to) = window.span_of(words, plan.zone(&self.profile)).or_else(relative)?;
        let rest = RequestPlan { duration: None, timezone: None, ..plan.clone() };
        Some(estimates::WindowInstants::new(&PageRequest::overview(rest).key(&self.profile), from, to))
    }

    /// The number of mentions that the window of a plan had when it was last read or counted, if known. It may be outdated.
    pub(crate) fn expected_total(&self, plan: RequestPlan) -> Option<u64> {
        self.totals.last(&PageRequest::overview(plan).key(&self.profile))
    }

    /// As [`expected_total`](Self::expected_total), by this process or an earlier one, with the time at which an earlier process
    /// knew it. For estimates only.
    pub(crate) fn estimated_total(&self, plan: RequestPlan) -> Option<(u64, Option<DateTime<Utc>>)> {
        let window = PageRequest::overview(plan).key(&self.profile);
        let own = self.totals.known(&window).map(|mentions| (mentions, None));
        let earlier = || self.estimates.as_ref()?.earlier_total(&window);
        own.or_else(|| earlier().map(|Total { at, mentions, .. }| (mentions, Some(at))))
    }

    /// As [`estimated_total`](Self::estimated_total), by this process alone. For estimates only.
    #[cfg(feature = "shell")]
    pub(crate) fn own_total(&self, plan: RequestPlan) -> Option<u64> {
        self.totals.known(&PageRequest::overview(plan).key(&self.profile))
    }

    /// The smallest known total of a window that contains the window of a plan, so that this one has hardly more mentions; and the
    /// time at which an earlier process knew it. For estimates only.
    #[cfg(feature = "store")]
    pub(crate) fn estimated_limit(&self, plan: &RequestPlan) -> Option<(u64, Option<DateTime<Utc>>)> {
        let within = self.instants_of(plan)?;
        let own = self.totals.limit(&within).map(|total| (total.mentions, None));
        let earlier = self.estimates.as_ref().and_then(|estimates| estimates.earlier_limit(&within));
        let earlier = earlier.map(|total| (total.mentions, Some(total.at)));
        own.into_iter().chain(earlier).min_by_key(|(mentions, _)| *mentions)
    }

    /// Rows of a page of this size, as far as the service was seen to return them. For estimates only.
    pub(crate) fn likely_page(&self, size: u64) -> u64 {
        let page = self.totals.page(size);
        match self.estimates.as_ref().map_or(0, Grounds::earlier_page) {
            smaller if page == size && smaller > 0 => size.min(smaller),
            _ => page,
        }
    }

    /// Notes the saved searches that a query reads if it names none.
    pub(crate) fn note_list(&self, aids: Vec<String>) {
        if let Some(estimates) = &self.estimates {
            estimates.note_list(aids, self.clock.now());
            self.totals.note_change();
        }
    }

    /// The saved searches of the last list of an earlier process, and the time of that list. For estimates only.
    pub(crate) fn earlier_list(&self) -> Option<(Vec<String>, DateTime<Utc>)> {
        self.estimates.as_ref()?.earlier_list()
    }

    /// Writes the grounds of estimates for other processes, if they have changed and the connection
    /// [keeps them](crate::ConnectionBuilder::keep_estimates).
    pub fn write_estimates(&self) {
        if let Some(estimates) = &self.estimates
            && let Some((totals, smaller_page)) = self.totals.take_changed()
        {
            estimates.write(totals, smaller_page);
        }
    }

    /// The reason for which what other processes know was ignored, once.
    pub fn take_estimates_problem(&self) -> Option<String> {
        self.estimates.as_ref()?.take_problem()
    }

    /// Log of the requests made so far.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// Time by which the service's clock is ahead of ours, according to its last successful response; zero if it is not
    /// ahead or not known.
    pub fn ahead(&self) -> TimeDelta {
        TimeDelta::seconds(self.skew.load(Ordering::Relaxed).max(0))
    }

    /// Current time by the service's clock, according to its last successful response; by our clock if it has sent none.
    pub(crate) fn time_of_service(&self) -> DateTime<Utc> {
        let skew = TimeDelta::try_seconds(self.skew.load(Ordering::Relaxed)).unwrap_or_default();
        let now = self.clock.now();
        now.checked_add_signed(skew).unwrap_or(now)
    }

    /// Current time by this machine's clock, and by the service's. A simulator may have a time of its own, which counts as ours.
    pub(crate) fn clocks(&self) -> Clocks {
        let service = self.time_of_service();
        let ours = if self.simulated_time.load(Ordering::Relaxed) { service } else { self.clock.now() };
        Clocks { ours, service }
    }

    /// Instant in microseconds since 1970 before which no response to a relative period can have mentions. `None` for another period,
    /// and if the service does not send its time.
    pub(crate) fn earliest(&self, words: &str) -> Option<i64> {
        /// A period may begin with the day, in any zone.
        const WHOLE_DAY: TimeDelta = TimeDelta::hours(24 + 14);
        let length = self.profile.window.length_of(words).filter(|_| self.tells_time.load(Ordering::Relaxed))?;
        // Months have different lengths.
        Some((self.time_of_service() - length - length / 10 - WHOLE_DAY).timestamp_micros())
    }

    /// Smallest page size for this many rows that the service accepts, as far as is known.
    pub(crate) fn page_size(&self, rows: u64) -> u64 {
        let accepted = self.profile.page.accepted(rows);
        let refused = accepted <= self.refused_size.load(Ordering::Relaxed);
        if refused { self.profile.page.max.max(accepted) } else { accepted }
    }

    /// Returns the size to request instead if a page was refused, perhaps because of its size.
    pub(super) fn larger_size(&self, error: &Error, size: u64) -> Option<u64> {
        let largest = self.profile.page.max;
        let named = error.kind() == ErrorKind::Rejected && error.message().contains(&self.profile.page.parameter);
        (named && (1..largest).contains(&size)).then_some(largest)
    }

    /// Records that the service refuses pages of this size and accepts larger ones.
    pub(super) fn note_refused_size(&self, size: u64) {
        self.refused_size.fetch_max(size, Ordering::Relaxed);
    }

    /// True if the service was seen to round offsets down to multiples of the page size.
    pub(super) fn rounds_offsets(&self) -> bool {
        self.rounds_offsets.load(Ordering::Relaxed)
    }

    /// Records that the service rounds offsets down to multiples of the page size.
    pub(super) fn note_rounded_offsets(&self) {
        self.rounds_offsets.store(true, Ordering::Relaxed);
    }

    /// Time for which the limiter keeps all queries waiting; zero if it does not.
    pub fn throttled_for(&self) -> Duration {
        self.limiter.closed_for()
    }

    /// Requests that the profile's declared budget allows before the deadline; `None` if it declares none.
    pub fn possible_until(&self, deadline: Instant) -> Option<u64> {
        let now = self.clock.now();
        // A ledger that cannot be read is reported by the first request.
        let ledger = self.ledger.as_ref().and_then(|ledger| ledger.standing(now).ok());
        let left = ledger.into_iter().flatten().map(|(window, used)| u64::from(window.requests).saturating_sub(used));
        self.limiter.possible(deadline).into_iter().chain(left).min()
    }

    /// Requests a page until `decode` accepts the response. `decode` returns the value and its record count.
    ///
    /// # Errors
    /// The error of the last attempt, with the number of attempts, once another one would be pointless, one too many,
    /// or past the query's deadline.
    pub(crate) async fn fetch<T>(
        &self,
        scan: &Scan,
        request: &PageRequest,
        decode: impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Result<T> {
        self.fetch_logged(scan, request, decode).await.map(|fetched| fetched.value)
    }

    /// Same as [`Self::fetch`], with what else is known of the call.
    pub(super) async fn fetch_logged<T>(
        &self,
        scan: &Scan,
        request: &PageRequest,
        decode: impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Result<Fetched<T>> {
        let key = request.key(&self.profile);
        if let Some(kept) = scan.take_kept(&key) {
            return decode(&kept).map(|(value, _)| Fetched { value, more: None, call: None });
        }
        let span = trace::request(scan.span(), &scan.query.id, request.plan.endpoint);
        let mut call = self.call(scan, request, key.clone(), &decode, &span).instrument(span.clone()).await;
        if let Err(error) = &call
            && self.refuses_mention(request, error)
        {
            self.overview_alone.store(true, Ordering::Relaxed);
            call = self.call(scan, request, key, &decode, &span).instrument(span.clone()).await;
        }
        call.inspect_err(|error| trace::refused(&span, error.kind()))
    }

    /// Makes a call, with the attempts that it takes.
    async fn call<T>(
        &self,
        scan: &Scan,
        request: &PageRequest,
        key: RequestKey,
        decode: impl Fn(&Bytes) -> Result<(T, u64)>,
        span: &Span,
    ) -> Result<Fetched<T>> {
        let query = scan.query.as_ref();
        let begun = Instant::now();
        let parameters = self.log.clean(&key.to_string());
        let mut record = RequestRecord::begin(query, self.clock.now(), request.plan.endpoint, parameters);
        let place = Place {
            table: None,
            aid: request.plan.aid.clone(),
            row: request.plan.pages.is_some().then_some(request.row),
        };
        let circuit = circuit_breaker::circuit(request);
        self.breaker.admit(circuit).map_err(|error| error.at(place.clone()))?;
        // Before the header: a key that is renewed in between is not asked for again.
        let renewals = self.key.renewals();
        let header = self.key.header(&self.profile.auth)?;
        let question = Question {
            request: HttpRequest { url: self.url(request, &key), headers: HeaderMap::from_iter([header]) },
            key,
            spending: Spending {
                query: Arc::clone(&scan.query),
                places: Arc::clone(&scan.places),
                units: self.cost(request),
                requests: scan.requests.clone(),
                sent: Arc::default(),
            },
        };
        let result = self.until_accepted(scan, circuit, (question, renewals), &mut record, &decode).await;
        record.elapsed = begun.elapsed();
        let result = result.map_err(|error| error.after(record.attempts, record.elapsed).at(place));
        scan.count(record.attempts, record.bytes);
        query.received(record.rows);
        record.error = result.as_ref().err().map(|error| self.log.clean_error(error));
        trace::answered(span, &record);
        let call = self.log.add(record);
        result.map(|(value, more)| Fetched { value, more, call: Some(call) })
    }

    /// Makes attempts until one is accepted, or another one would be pointless. The question has the key after so many renewals.
    /// Returns the value, and the header that says that another page follows.
    async fn until_accepted<T>(
        &self,
        scan: &Scan,
        circuit: Circuit,
        (mut question, mut renewals): (Question, u64),
        record: &mut RequestRecord,
        decode: &impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Result<(T, Option<String>)> {
        let (mut state, mut last, mut renewed) = (RetryState::default(), None, false);
        loop {
            match self.attempt(scan, &question, record, decode).await {
                Outcome::Done(value, more) => {
                    scan.query.note_answered();
                    if !record.cached {
                        self.breaker.succeeded(circuit);
                    }
                    return Ok((value, more));
                }
                // The key may have expired: it is read again, once.
                Outcome::Failed(error) if error.kind() == ErrorKind::Unauthorized && !renewed => {
                    renewed = true;
                    match self.other_key(renewals).await {
                        Some(header) => question.request.headers = HeaderMap::from_iter([header]),
                        None => return Err(error),
                    }
                    renewals = self.key.renewals();
                }
                Outcome::Failed(error) => {
                    // The service responded: it is healthy, though the request failed.
                    if record.status.is_some() {
                        self.breaker.succeeded(circuit);
                    }
                    return Err(error);
                }
                // A response that is refused for the same reason twice does not pass.
                Outcome::Again(Cause::Unusable, error)
                    if error.kind() != ErrorKind::Incomplete && last.as_deref() == Some(error.message()) =>
                {
                    self.breaker.failed(circuit);
                    return Err(error);
                }
                Outcome::Again(cause, error) => {
                    // A 401 may be about the key, though it names a wait.
                    if !renewed && self.may_be_about_key(cause, record) {
                        renewed = true;
                        if let Some(header) = self.other_key(renewals).await {
                            question.request.headers = HeaderMap::from_iter([header]);
                            renewals = self.key.renewals();
                            continue;
                        }
                    }
                    last = (cause == Cause::Unusable).then(|| error.message().to_owned());
                    self.pause(scan.query.as_ref(), circuit, &mut state, record, cause, error).await?;
                }
            }
        }
    }

    /// True for throttling with 401 that the profile does not declare.
    fn may_be_about_key(&self, cause: Cause, record: &RequestRecord) -> bool {
        let declared = self.profile.throttle.when.iter().any(|rule| rule.status == 401);
        matches!(cause, Cause::Throttled(_)) && record.status == Some(401) && !declared
    }

    /// Reads the key again, unless it was renewed after this number of renewals. Returns the header of another key; `None` if there is
    /// none.
    async fn other_key(&self, renewals: u64) -> Option<(HeaderName, HeaderValue)> {
        let key = self.key.clone();
        let renewed = spawn_blocking(move || key.renew(renewals)).await;
        let header = self.key.header(&self.profile.auth);
        header.ok().filter(|_| matches!(renewed, Ok(Ok(true))))
    }

    /// Waits before another attempt, if there is to be one.
    ///
    /// # Errors
    /// That of the last attempt, or that the wait is too long.
    async fn pause(
        &self,
        query: &QueryBudget,
        circuit: Circuit,
        state: &mut RetryState,
        record: &mut RequestRecord,
        cause: Cause,
        error: Error,
    ) -> Result<()> {
        let Decision::Wait(wait) = state.after(&self.retry, cause, query.throttled(), rand::random()) else {
            // A time limit below the default says nothing about the service.
            let impatient = error.kind() == ErrorKind::Timeout && query.request_timeout < QueryBudget::USUAL_TIMEOUT;
            if !matches!(cause, Cause::Throttled(_)) && !impatient {
                self.breaker.failed(circuit);
            }
            return Err(error);
        };
        let is_late = wait > query.deadline.saturating_duration_since(Instant::now());
        if let Cause::Throttled(named) = cause {
            // The limiter keeps this request waiting along with all others of the key. A shared response was reported to it by
            // the attempt that sent the request.
            if !record.cached && self.limiter.throttled(wait) {
                query.note_throttled();
            }
            return match named {
                Some(named) if is_late && !named.is_zero() => Err(too_long(wait)),
                _ if is_late => Err(error),
                _ => Ok(()),
            };
        }
        if is_late {
            return Err(error);
        }
        record.pause += wait;
        sleep(wait).await;
        Ok(())
    }

    /// Units of the declared windows that a request costs: one, plus the cost of the records that it asks for.
    fn cost(&self, request: &PageRequest) -> u64 {
        let records = match self.profile.mentions.requested_by {
            _ if request.plan.endpoint == Endpoint::List => 0,
            RequestedBy::Always => request.size.max(1),
            RequestedBy::Size | RequestedBy::Flag => request.size,
        };
        1 + self.profile.budget.cost_per_record.unwrap_or_default().saturating_mul(records)
    }

    /// Mentions that come along with an overview.
    pub(crate) fn beside_overview(&self) -> u64 {
        if self.overview_alone.load(Ordering::Relaxed) { 0 } else { self.profile.beside_overview() }
    }

    /// True if the service refuses the page size of an overview, with which a mention was requested.
    fn refuses_mention(&self, request: &PageRequest, error: &Error) -> bool {
        let beside = request.plan.endpoint == Endpoint::Search && request.plan.pages.is_none();
        let named = error.kind() == ErrorKind::Rejected && error.message().contains(&self.profile.page.parameter);
        beside && named && self.beside_overview() > 0
    }

    fn url(&self, request: &PageRequest, key: &RequestKey) -> Url {
        let mut url = self.base_url.clone();
        url.set_path(&format!("{}/{}", self.base_url.path().trim_end_matches('/'), key.path()));
        if !key.parameters().is_empty() {
            let alone = request.plan.pages.is_none() && self.overview_alone.load(Ordering::Relaxed);
            let sent =
                key.parameters().iter().map(|(name, value)| match alone && *name == self.profile.page.parameter {
                    true => (name.as_str(), "0"),
                    false => (name.as_str(), value.as_str()),
                });
            url.query_pairs_mut().extend_pairs(sent);
        }
        url
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.write_estimates();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{HttpLimits, Network};

    /// Text cut for display must neither contain a part of the key nor hide the key from redaction.
    #[test]
    fn the_key_is_taken_out_before_a_text_is_cut() {
        let (base_url, secret) = (Url::parse("http://localhost/v4").expect("valid URL"), "a-key-of-many-letters");
        let spec = ClientSpec {
            service: Arc::new(Network::try_new(HttpLimits::default(), &base_url).expect("network is set up")),
            base_url,
            key: Secret::new(secret).expect("valid key"),
            profile: Arc::new(Profile::v4()),
            clock: Clock::system(),
            retry: RetryPolicy::default(),
            state_folder: None,
            keeps_estimates: false,
            shown_as: None,
            exchanges: Exchanges::Live,
        };
        let client = Client::try_new(spec).expect("client is built");
        for before in [0, 985, 990, 1_500] {
            let error = Error::new(ErrorKind::Contradiction, format!("{}{secret}", "x".repeat(before)));
            let shown = [
                client.log.clean_error(&error).to_string(),
                client.redacted(error.clone().into()).to_string(),
                format!("{:?}", client.redacted(error.into())),
            ];
            for text in shown {
                assert!(!text.contains("a-key") && !text.contains("letters"), "{before}: {text}");
            }
        }
    }
}
