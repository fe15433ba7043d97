//! Limits of a key, as layers over the source that sends requests.
//!
//! ```text
//! Limited: a place of the scan, a permit of the limiter, a request of the query ─▶ InLedger: an entry in a file ─▶ Live
//! ```
//!
//! Each layer takes what it needs before it asks the next one, and gives it back when it is dropped. A request that was not sent
//! leaves no trace but in the ledger, whose file other processes read.
//!
//! Invariant: every request that is sent has passed the limiter of its key and the budget of its query.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use savedsearch_clock::Clock;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use super::ledger::Ledger;
use super::rate_limit::Limiter;
use super::source::{AnswerSource, Exchange, Question, Spending, Unsent, past_deadline, too_long};
use super::spend_guard::SpendGuard;
use crate::error::{Error, ErrorKind};

/// Returns a source within the limits of a key: those of its limiter, and those that outlast the process.
pub(super) fn over(
    source: Arc<dyn AnswerSource>,
    limiter: &Arc<Limiter>,
    ledger: Option<Arc<Ledger>>,
    clock: &Clock,
) -> Arc<dyn AnswerSource> {
    let source: Arc<dyn AnswerSource> = match ledger {
        Some(ledger) => Arc::new(InLedger { source, ledger, clock: clock.clone() }),
        None => source,
    };
    Arc::new(Limited { source, limiter: Arc::clone(limiter) })
}

/// Source whose questions wait for their turn, and are spent.
#[derive(Debug, Clone)]
struct Limited {
    source: Arc<dyn AnswerSource>,
    limiter: Arc<Limiter>,
}

impl AnswerSource for Limited {
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        self.clone().within(question).boxed()
    }
}

impl Limited {
    /// Waits for a permit of the scan and of the limiter, spends a request of the budget, and asks.
    async fn within(self, question: Question) -> Result<Exchange, Unsent> {
        let Self { source, limiter } = self;
        let Spending { query, places, units, sent, .. } = question.spending.clone();
        let Ok(Ok(_place)) = timeout_at(query.deadline, places.acquire()).await else {
            return Err(Unsent::Refused(past_deadline(&query)));
        };
        // A request that may not be spent must not take up a permit.
        query.check().map_err(Unsent::Refused)?;
        let permit = match limiter.acquire(query.deadline, units, &query.share).await {
            Ok(permit) => permit,
            Err(Duration::ZERO) => return Err(Unsent::Refused(past_deadline(&query))),
            Err(wait) => return Err(Unsent::Refused(too_long(wait))),
        };
        let _spent = SpendGuard::spend(&query, &limiter, permit.admitted, units, sent).map_err(Unsent::Refused)?;
        let Exchange { answer, waits } = source.ask(question).await?;
        Ok(Exchange { answer, waits: permit.delays.iter().cloned().chain(waits).collect() })
    }
}

/// Source whose questions are recorded in a ledger.
#[derive(Debug, Clone)]
struct InLedger {
    source: Arc<dyn AnswerSource>,
    ledger: Arc<Ledger>,
    clock: Clock,
}

impl AnswerSource for InLedger {
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let Self { source, ledger, clock } = self.clone();
        async move {
            let units = question.spending.units;
            // Another process may hold the lock.
            let recorded = spawn_blocking(move || ledger.spend(clock.now(), units)).await;
            let failed =
                |error| Error::new(ErrorKind::Config, format!("internal error in the request ledger: {error}"));
            recorded.map_err(failed).flatten().map_err(Unsent::Refused)?;
            source.ask(question).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use ::http::{HeaderMap, StatusCode};
    use async_trait::async_trait;
    use bytes::Bytes;
    use datafusion::physical_plan::metrics::Count;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::client::auth::Secret;
    use crate::client::budget::QueryBudget;
    use crate::client::http::{HttpFailure, HttpRequest, HttpResponse, HttpService};
    use crate::client::live::Live;
    use crate::client::principal::{Allowance, Caller};
    use crate::profile::{Budget, Profile, RateWindow};
    use crate::request::PageRequest;

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
        source: Arc<dyn AnswerSource>,
        limiter: Arc<Limiter>,
        ledger: Option<Arc<Ledger>>,
        /// Requests sent so far.
        requests: Arc<AtomicU64>,
        query: Arc<QueryBudget>,
        allowance: Arc<Allowance>,
        of_scan: Count,
        _folder: tempfile::TempDir,
    }

    impl World {
        /// `requests`: those that the query may send. The ledger allows one a day.
        fn new(requests: u64) -> Self {
            Self::of(Arc::new(Empty), requests, true)
        }

        fn of(service: Arc<dyn HttpService>, requests: u64, has_ledger: bool) -> Self {
            let folder = tempfile::tempdir().expect("temporary folder");
            let [minute, day] = [(9, 60), (1, 86_400)].map(|(requests, seconds)| RateWindow { requests, seconds });
            let budget = Budget { windows: vec![minute, day], ..Profile::v4().budget };
            let key = Secret::new("key").expect("a key");
            let sent = Arc::<AtomicU64>::default();
            let live = Arc::new(Live { service, key, requests: Arc::clone(&sent) });
            let limiter = Limiter::new(&budget);
            let ledger = Ledger::of(folder.path(), [7; 32], &budget).filter(|_| has_ledger).map(Arc::new);
            let source = over(live, &limiter, ledger.clone(), &Clock::system());
            let allowance = Arc::new(Allowance::new("ada", [minute]));
            let caller = Caller { name: "ada".into(), share: "ada".into(), allowance: Some(Arc::clone(&allowance)) };
            let seconds = Duration::from_secs(60);
            let query =
                QueryBudget::new("q".to_owned(), requests, seconds, seconds).with_caller(Some(Arc::new(caller)));
            Self {
                source,
                limiter,
                ledger,
                requests: sent,
                query: Arc::new(query),
                allowance,
                of_scan: Count::new(),
                _folder: folder,
            }
        }

        fn call(&self) -> BoxFuture<'static, Result<Exchange, Unsent>> {
            let request =
                HttpRequest { url: "http://service.test/list".parse().expect("an address"), headers: HeaderMap::new() };
            let (query, places, requests) =
                (Arc::clone(&self.query), Arc::new(Semaphore::new(1)), self.of_scan.clone());
            let spending = Spending { query, places, units: 1, requests, sent: Arc::default() };
            self.source.ask(Question { key: PageRequest::list().key(&Profile::v4()), request, spending })
        }

        /// Requests that were sent, and those of them that the scan counts.
        fn sent(&self) -> (u64, usize) {
            (self.requests.load(Ordering::Relaxed), self.of_scan.value())
        }

        /// Requests counted against the caller's allowance, and units against the limiter's window.
        fn spent(&self) -> (u64, u64) {
            (self.allowance.standing()[0].1, self.limiter.standing()[0].1)
        }
    }

    #[tokio::test]
    async fn a_request_that_the_ledger_refuses_is_not_spent() {
        let world = World::new(2);
        world.call().await.expect("the only request of the day");
        assert_eq!(world.spent(), (1, 1));
        let refused = world.call().await.expect_err("the ledger has none left");
        assert!(matches!(refused, Unsent::Refused(error) if error.kind() == ErrorKind::Quota));
        assert_eq!(world.spent(), (1, 1));
        world.query.check().expect("the query has one left");
        assert_eq!(world.sent(), (1, 1));
    }

    #[tokio::test]
    async fn a_request_that_was_sent_counts_although_nobody_waits_for_its_response() {
        let world = World::of(Arc::new(Silent), 1, false);
        let mut call = world.call();
        assert!((&mut call).now_or_never().is_none(), "the service is silent");
        drop(call);
        assert_eq!(world.sent(), (1, 1));
        world.query.check().expect_err("the query has spent its request");
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_while_the_ledger_waits_is_not_spent() {
        let world = World::new(1);
        let ledger = world.ledger.as_ref().expect("a ledger");
        let locked = ledger.lock().expect("the lock");
        let mut call = world.call();
        assert!((&mut call).now_or_never().is_none(), "the ledger is locked");
        assert_eq!(world.spent(), (1, 1));
        world.query.check().expect_err("the query has spent its request");
        drop(call);
        assert_eq!(world.spent(), (0, 0));
        world.query.check().expect("the query has its request again");
        assert_eq!(world.sent(), (0, 0));
        drop(locked);
    }
}
