//! Where answers come from.
//!
//! ```text
//! Client ─▶ single flight ─▶ Recorder ─▶ Live: limiter, ledger, budget ─▶ HttpService
//!                        └─▶ Replay
//! ```
//!
//! An [`AnswerSource`] answers a [`Question`] once, or says why it was not sent. Sources stack: what keeps answers stands above
//! what spends requests, so that an answer that is there costs none. Questions are the same where their
//! [`RequestKey`]s are.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::budget::QueryBudget;
use super::http::{HttpFailure, HttpRequest, HttpResponse, HttpService};
use crate::error::{Error, ErrorKind};
use crate::request::RequestKey;

/// Answers questions, each once: nothing is tried again here.
pub trait AnswerSource: fmt::Debug + Send + Sync {
    /// The answer to a question. Dropping the future cancels what is under way.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>>;
}

/// A question on its way to an answer.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its identity.
    pub key: RequestKey,
    /// The request, with the header that holds the key of the service.
    pub request: HttpRequest,
    /// What it may spend.
    pub(super) spending: Spending,
}

impl Question {
    /// A question that nothing limits: each of its sender's calls is counted elsewhere.
    #[cfg(feature = "probe")]
    pub(crate) fn unlimited(key: RequestKey, request: HttpRequest, patience: Duration) -> Self {
        let query = Arc::new(QueryBudget::new("-".to_owned(), u64::MAX, patience, patience));
        Self { key, request, spending: Spending { query, places: Arc::new(Semaphore::new(1)), units: 0 } }
    }
}

/// A service that is asked at once, however much that spends.
#[derive(Debug, Clone)]
pub struct Direct(Arc<dyn HttpService>);

impl Direct {
    /// Asks this service.
    pub fn new(service: Arc<dyn HttpService>) -> Self {
        Self(service)
    }
}

impl AnswerSource for Direct {
    fn ask(&self, Question { request, spending, .. }: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let service = Arc::clone(&self.0);
        async move {
            let answer = timeout_at(spending.query.deadline, service.call(request)).await.ok();
            Ok(Exchange { answer, wait: Duration::ZERO })
        }
        .boxed()
    }
}

/// What a question may spend: requests of its query and of the service's limits, a place among those of its scan, and time.
#[derive(Debug, Clone)]
pub(super) struct Spending {
    pub(super) query: Arc<QueryBudget>,
    pub(super) places: Arc<Semaphore>,
    /// Units of the declared limits that it costs.
    pub(super) units: u64,
}

/// A question with its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The answer, or why there is none; `None`: it did not come in time.
    pub answer: Option<Result<HttpResponse, HttpFailure>>,
    /// The wait before the question was sent.
    pub wait: Duration,
}

/// Why a question was not sent.
#[derive(Debug, Clone)]
pub enum Unsent {
    /// The query that asks may not.
    Refused(Error),
    /// The source ended early.
    Panicked(String),
}

/// The end of a query's time.
pub(super) fn past_deadline() -> Error {
    Error::new(ErrorKind::Timeout, "the query's deadline has passed")
        .advice("SET savedsearch.query_deadline = … allows more time")
}

/// A wait that outlasts the query.
pub(super) fn too_long(wait: Duration) -> Error {
    let seconds = wait.as_secs_f64().ceil();
    Error::new(ErrorKind::Throttled, format!("the service asks to wait {seconds} s, longer than the query may take"))
        .advice("try again then, or allow more time: SET savedsearch.query_deadline = …")
}
