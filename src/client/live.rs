//! Responses from the service itself. The lowest source: a question that arrives here is sent.
//!
//! Invariant: what is sent is counted at that instant, and the key is redacted in what comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::auth::Secret;
use super::http::{HttpResponse, HttpService};
use super::source::{AnswerSource, Exchange, Question, Spending, Unsent};

/// The service.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) service: Arc<dyn HttpService>,
    pub(super) key: Secret,
    /// Requests sent so far.
    pub(super) requests: Arc<AtomicU64>,
}

impl AnswerSource for Live {
    fn ask(&self, Question { request, spending, .. }: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let Self { service, key, requests } = self.clone();
        async move {
            let Spending { query, requests: of_scan, sent, .. } = spending;
            let limit = query.deadline.min(Instant::now() + query.request_timeout);
            // From here on it counts, whether somebody waits for the answer or not.
            sent.store(true, Ordering::Relaxed);
            requests.fetch_add(1, Ordering::Relaxed);
            of_scan.add(1);
            let answer = timeout_at(limit, service.call(request)).await.ok();
            let without_key =
                |response: HttpResponse| HttpResponse { body: key.redact_body(response.body), ..response };
            Ok(Exchange { answer: answer.map(|answer| answer.map(without_key)), waits: Vec::new() })
        }
        .boxed()
    }
}
