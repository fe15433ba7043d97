//! Responses from the service itself, within its limits and the budget of the query.
//!
//! Invariant: every request that is sent has passed the limiter of its key and the budget of its query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::auth::Secret;
use super::http::{HttpRequest, HttpResponse, HttpService};
use super::ledger::Ledger;
use super::rate_limit::Limiter;
use super::source::{AnswerSource, Exchange, Question, Spending, Unsent, past_deadline, too_long};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};

/// The service and its limits.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) service: Arc<dyn HttpService>,
    pub(super) key: Secret,
    pub(super) limiter: Arc<Limiter>,
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) clock: Clock,
    /// Requests sent so far.
    pub(super) requests: Arc<AtomicU64>,
}

impl AnswerSource for Live {
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let live = self.clone();
        async move { live.call(question.request, question.spending).await.map_err(Unsent::Refused) }.boxed()
    }
}

impl Live {
    /// Waits for a permit of the scan and of the limiter, spends a request of the budget, and sends it.
    async fn call(self, request: HttpRequest, spending: Spending) -> Result<Exchange> {
        let Self { service, key, limiter, ledger, clock, requests } = self;
        let Spending { query, places, units, sent } = spending;
        let Ok(Ok(_place)) = timeout_at(query.deadline, places.acquire()).await else { return Err(past_deadline()) };
        // A request that may not be spent must not take up a permit.
        query.check()?;
        let permit = match limiter.acquire(query.deadline, units, &query.share).await {
            Ok(permit) => permit,
            Err(Duration::ZERO) => return Err(past_deadline()),
            Err(wait) => return Err(too_long(wait)),
        };
        let wait = permit.delayed;
        query.spend().inspect_err(|_| limiter.give_back(units))?;
        if let Some(ledger) = ledger {
            // Another process may hold the lock.
            let spent = spawn_blocking(move || ledger.spend(clock.now(), units)).await;
            let spent = spent
                .map_err(|error| {
                    Error::new(ErrorKind::Config, format!("internal error in the request ledger: {error}"))
                })
                .flatten();
            spent.inspect_err(|_| {
                query.take_back();
                limiter.give_back(units);
            })?;
        }
        let limit = query.deadline.min(Instant::now() + query.request_timeout);
        // From here on it counts, whether somebody waits for the answer or not.
        requests.fetch_add(1, Ordering::Relaxed);
        sent.store(true, Ordering::Relaxed);
        let answer = timeout_at(limit, service.call(request)).await.ok();
        let without_key = |response: HttpResponse| HttpResponse { body: key.redact_body(response.body), ..response };
        Ok(Exchange { answer: answer.map(|answer| answer.map(without_key)), wait })
    }
}
