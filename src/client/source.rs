//! Sources of responses.
//!
//! ```text
//! Client ─▶ single flight ─▶ Recorder ─▶ Limited: limiter, budget ─▶ InLedger ─▶ Live ─▶ HttpService
//!                        └─▶ Replay
//! ```
//!
//! An [`AnswerSource`] answers a [`Question`] once, or reports why it was not sent. Sources are stacked: a source that keeps
//! responses is above the source that sends requests, so that a kept response costs no request. Two questions are identical
//! if their [`RequestKey`]s are equal.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use datafusion::physical_plan::metrics::Count;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::budget::QueryBudget;
use super::http::{HttpFailure, HttpRequest, HttpResponse, HttpService};
use crate::error::{Error, ErrorKind, Phrase, Setting};
use crate::request::RequestKey;

/// Source of responses. Sends each question once, without retries.
pub trait AnswerSource: fmt::Debug + Send + Sync {
    /// Returns the response to a question. Dropping the future cancels the request.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>>;
}

/// A request to be answered, with what it may spend.
#[derive(Debug, Clone)]
pub struct Question {
    /// Identity of the request.
    pub key: RequestKey,
    /// HTTP request, including the header with the API key.
    pub request: HttpRequest,
    /// Budget of the request.
    pub(super) spending: Spending,
}

impl Question {
    /// Creates a question without limits, for a sender that counts its calls itself.
    #[cfg(feature = "probe")]
    pub(crate) fn unlimited(key: RequestKey, request: HttpRequest, patience: Duration) -> Self {
        let query = Arc::new(QueryBudget::new("-".to_owned(), u64::MAX, patience, patience));
        let places = Arc::new(Semaphore::new(1));
        Self {
            key,
            request,
            spending: Spending { query, places, units: 0, requests: Count::new(), sent: Arc::default() },
        }
    }
}

/// Source that calls a service at once, without limits.
#[derive(Debug, Clone)]
pub struct Direct(Arc<dyn HttpService>);

impl Direct {
    /// Creates a source for this service.
    pub fn new(service: Arc<dyn HttpService>) -> Self {
        Self(service)
    }
}

impl AnswerSource for Direct {
    fn ask(&self, Question { request, spending, .. }: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let service = Arc::clone(&self.0);
        async move {
            let answer = timeout_at(spending.query.deadline, service.call(request)).await.ok();
            Ok(Exchange { answer, waits: Vec::new() })
        }
        .boxed()
    }
}

/// Budget of a question: the requests of its query, the limits of the service, the permits of its scan, and time.
#[derive(Debug, Clone)]
pub(super) struct Spending {
    pub(super) query: Arc<QueryBudget>,
    pub(super) places: Arc<Semaphore>,
    /// Units of the declared limits that the request costs.
    pub(super) units: u64,
    /// Requests of its scan.
    pub(super) requests: Count,
    /// Set by a source that counts the request, when it is sent: what was spent on it stays spent.
    pub(super) sent: Arc<AtomicBool>,
}

/// Outcome of a question that was sent.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Response, or the reason why there is none; `None` if it did not arrive in time.
    pub answer: Option<Result<HttpResponse, HttpFailure>>,
    /// Spans in which the limits of the service delayed the question.
    pub waits: Vec<Range<Instant>>,
}

/// Reason why a question was not sent.
#[derive(Debug, Clone)]
pub enum Unsent {
    /// The query must not send it.
    Refused(Error),
    /// The source panicked or was cancelled.
    Panicked(String),
}

/// Error for a query whose deadline has passed.
pub(super) fn past_deadline(query: &QueryBudget) -> Error {
    let error = Error::new(ErrorKind::Timeout, "query deadline exceeded");
    match query.twice_the_deadline() {
        Some(seconds) => error.advice(Setting::QueryDeadline.to(seconds.to_string()).after("to allow more time: ")),
        None => error,
    }
}

/// Error for a wait that exceeds the query's deadline.
pub(super) fn too_long(wait: Duration) -> Error {
    let wait = in_words(wait);
    Error::new(
        ErrorKind::Throttled,
        format!("the rate limit requires a wait of {wait}, longer than the query may take"),
    )
    .advice(Phrase::from("try again after that time") + Setting::QueryDeadline.to("…").after(", or allow more time: "))
}

/// A wait in words, rounded up.
fn in_words(wait: Duration) -> String {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    match seconds {
        0..=600 => format!("{seconds} s"),
        601..=7_200 => format!("{} min", seconds.div_ceil(60)),
        7_201..=172_800 => format!("{} h", seconds.div_ceil(3_600)),
        172_801..=31_536_000 => format!("{} days", seconds.div_ceil(86_400)),
        _ => "more than a year".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_readable_units() {
        let cases =
            [(5, "5 s"), (3_600, "60 min"), (86_400, "24 h"), (2_592_000, "30 days"), (u64::MAX, "more than a year")];
        for (seconds, words) in cases {
            assert_eq!(in_words(Duration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn a_deadline_that_has_passed_is_to_be_set_to_twice_its_seconds() {
        let past = |seconds| {
            let limit = Duration::from_secs(seconds);
            past_deadline(&QueryBudget::new("q".to_owned(), 1, limit, limit)).to_string()
        };
        let advice = "query deadline exceeded; to allow more time: SET savedsearch.query_deadline = 1800";
        assert_eq!(past(900), advice);
        assert_eq!(past(QueryBudget::LONGEST_DEADLINE), "query deadline exceeded");
    }
}
