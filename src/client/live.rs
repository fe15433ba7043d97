//! Responses from the service itself, within its limits and the budget of the query. All limits and the network are one source: a
//! request counts from the instant at which it is sent, so the guard of what it spends is committed just before.
//!
//! Invariant: every request that is sent has passed the limiter of its key and the budget of its query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use savedsearch_clock::Clock;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::auth::Secret;
use super::http::{HttpRequest, HttpResponse, HttpService};
use super::ledger::Ledger;
use super::rate_limit::Limiter;
use super::source::{AnswerSource, Exchange, Question, Spending, Unsent, past_deadline, too_long};
use super::spend_guard::SpendGuard;
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
        let Spending { query, places, units, requests: of_scan, sent } = spending;
        let Ok(Ok(_place)) = timeout_at(query.deadline, places.acquire()).await else {
            return Err(past_deadline(&query));
        };
        // A request that may not be spent must not take up a permit.
        query.check()?;
        let permit = match limiter.acquire(query.deadline, units, &query.share).await {
            Ok(permit) => permit,
            Err(Duration::ZERO) => return Err(past_deadline(&query)),
            Err(wait) => return Err(too_long(wait)),
        };
        let waits = permit.delays.clone();
        let spend = SpendGuard::spend(&query, &limiter, permit.admitted, units)?;
        if let Some(ledger) = ledger {
            // Another process may hold the lock.
            let recorded = spawn_blocking(move || ledger.spend(clock.now(), units)).await;
            let failed =
                |error| Error::new(ErrorKind::Config, format!("internal error in the request ledger: {error}"));
            recorded.map_err(failed).flatten()?;
        }
        let limit = query.deadline.min(Instant::now() + query.request_timeout);
        // From here on it counts, whether somebody waits for the answer or not.
        spend.commit();
        requests.fetch_add(1, Ordering::Relaxed);
        of_scan.add(1);
        sent.store(true, Ordering::Relaxed);
        let answer = timeout_at(limit, service.call(request)).await.ok();
        let without_key = |response: HttpResponse| HttpResponse { body: key.redact_body(response.body), ..response };
        Ok(Exchange { answer: answer.map(|answer| answer.map(without_key)), waits })
    }
}

#[cfg(test)]
mod tests {
    use ::http::{HeaderMap, StatusCode};
    use async_trait::async_trait;
    use bytes::Bytes;
    use datafusion::physical_plan::metrics::Count;
    use tokio::sync::Semaphore;

    use super::super::budget::QueryBudget;
    use super::super::http::HttpFailure;
    use super::super::principal::{Allowance, Caller};
    use super::*;
    use crate::profile::{Budget, Profile, RateWindow};

    /// Answers each request with an empty body.
    #[derive(Debug)]
    struct Empty;

    #[async_trait]
    impl HttpService for Empty {
        async fn call(&self, _: HttpRequest) -> Result<HttpResponse, HttpFailure> {
            Ok(HttpResponse { status: StatusCode::OK, headers: HeaderMap::new(), body: Bytes::new(), wire_bytes: 0 })
        }
    }

    /// Never answers.
    #[derive(Debug)]
    struct Silent;

    #[async_trait]
    impl HttpService for Silent {
        async fn call(&self, _: HttpRequest) -> Result<HttpResponse, HttpFailure> {
            std::future::pending().await
        }
    }

    /// A query of a caller, with a limit of the key that needs a ledger.
    struct World {
        live: Live,
        query: Arc<QueryBudget>,
        allowance: Arc<Allowance>,
        of_scan: Count,
        _folder: tempfile::TempDir,
    }

    impl World {
        /// `requests`: those that the query may send. The ledger allows one a day.
        fn new(requests: u64) -> Self {
            let folder = tempfile::tempdir().expect("temporary folder");
            let [minute, day] = [(9, 60), (1, 86_400)].map(|(requests, seconds)| RateWindow { requests, seconds });
            let budget = Budget { windows: vec![minute, day], ..Profile::v4().budget };
            let live = Live {
                service: Arc::new(Empty),
                key: Secret::new("key").expect("a key"),
                limiter: Limiter::new(&budget),
                ledger: Ledger::of(folder.path(), [7; 32], &budget).map(Arc::new),
                clock: Clock::system(),
                requests: Arc::default(),
            };
            let allowance = Arc::new(Allowance::new("ada", [minute]));
            let caller = Caller { name: "ada".into(), share: "ada".into(), allowance: Some(Arc::clone(&allowance)) };
            let seconds = Duration::from_secs(60);
            let query =
                QueryBudget::new("q".to_owned(), requests, seconds, seconds).with_caller(Some(Arc::new(caller)));
            Self { live, query: Arc::new(query), allowance, of_scan: Count::new(), _folder: folder }
        }

        fn call(&self) -> impl Future<Output = Result<Exchange>> + use<> {
            let request =
                HttpRequest { url: "http://service.test/list".parse().expect("an address"), headers: HeaderMap::new() };
            let (query, places, requests) =
                (Arc::clone(&self.query), Arc::new(Semaphore::new(1)), self.of_scan.clone());
            self.live.clone().call(request, Spending { query, places, units: 1, requests, sent: Arc::default() })
        }

        /// Requests counted against the caller's allowance, and units against the limiter's window.
        fn spent(&self) -> (u64, u64) {
            (self.allowance.standing()[0].1, self.live.limiter.standing()[0].1)
        }
    }

    #[tokio::test]
    async fn a_request_that_the_ledger_refuses_is_not_spent() {
        let world = World::new(2);
        world.call().await.expect("the only request of the day");
        assert_eq!(world.spent(), (1, 1));
        let error = world.call().await.expect_err("the ledger has none left");
        assert_eq!(error.kind(), ErrorKind::Quota);
        assert_eq!(world.spent(), (1, 1));
        world.query.check().expect("the query has one left");
        assert_eq!((world.live.requests.load(Ordering::Relaxed), world.of_scan.value()), (1, 1));
    }

    #[tokio::test]
    async fn a_request_that_was_sent_counts_although_nobody_waits_for_its_response() {
        let mut world = World::new(1);
        world.live.service = Arc::new(Silent);
        world.live.ledger = None;
        let mut call = Box::pin(world.call());
        assert!((&mut call).now_or_never().is_none(), "the service is silent");
        drop(call);
        assert_eq!((world.live.requests.load(Ordering::Relaxed), world.of_scan.value()), (1, 1));
        world.query.check().expect_err("the query has spent its request");
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_while_the_ledger_waits_is_not_spent() {
        let world = World::new(1);
        let ledger = world.live.ledger.as_ref().expect("a ledger");
        let locked = ledger.lock().expect("the lock");
        let mut call = Box::pin(world.call());
        assert!((&mut call).now_or_never().is_none(), "the ledger is locked");
        assert_eq!(world.spent(), (1, 1));
        world.query.check().expect_err("the query has spent its request");
        drop(call);
        assert_eq!(world.spent(), (0, 0));
        world.query.check().expect("the query has its request again");
        assert_eq!((world.live.requests.load(Ordering::Relaxed), world.of_scan.value()), (0, 0));
        drop(locked);
    }
}
