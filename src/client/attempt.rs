//! A single attempt at a request: sends it, or joins an identical one in flight, and classifies the response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::advice;
use super::budget::Scan;
use super::fetch::Client;
use super::http::HttpFailure;
use super::log::RequestRecord;
use super::retry::Cause;
use super::single_flight::Flight;
use super::source::{Exchange, Question, Unsent, past_deadline};
use super::waits::length;
use crate::error::{Error, ErrorKind, Result, Setting};

/// Outcome of an attempt.
pub(super) enum Outcome<T> {
    /// The value, and the header that says that another page follows, if there is one.
    Done(T, Option<String>),
    Again(Cause, Error),
    Failed(Error),
}

impl Client {
    /// Makes one attempt, or shares the response of an identical request in flight.
    pub(super) async fn attempt<T>(
        &self,
        scan: &Scan,
        question: &Question,
        record: &mut RequestRecord,
        decode: &impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Outcome<T> {
        let query = scan.query.as_ref();
        record.status = None;
        let (mut own, sent) = (question.clone(), Arc::<AtomicBool>::default());
        own.spending.sent = Arc::clone(&sent);
        let Exchange { answer, waits } = loop {
            let Flight { outcome, shared } = self.in_flight.join(&question.key, || self.send(own.clone()));
            let outcome = match timeout_at(query.deadline, outcome.clone()).await {
                Ok(outcome) => outcome,
                // Our own request ends by the deadline too, with a more specific error.
                Err(_) if !shared => outcome.await,
                Err(_) => return Outcome::Failed(past_deadline(query)),
            };
            match outcome {
                // The other query's deadline has passed, not ours.
                Ok(Exchange { answer: None, .. }) if shared && Instant::now() < query.deadline => {}
                Ok(called) => {
                    record.cached = shared;
                    break called;
                }
                // The other query's budget is used up; ours may not be.
                Err(_) if shared => {}
                Err(Unsent::Refused(error)) => return Outcome::Failed(error),
                Err(Unsent::Panicked(message)) => {
                    let message = format!("internal error in the HTTP client: {message}");
                    return Outcome::Failed(Error::new(ErrorKind::Connect, message));
                }
            }
        };
        if !record.cached {
            record.wait += length(&waits);
            scan.waited(&waits);
            record.attempts += 1;
            // A replayed request is not sent.
            if !sent.load(Ordering::Relaxed) {
                self.log.requests.fetch_add(1, Ordering::Relaxed);
                scan.requests.add(1);
            }
        }
        match answer {
            None if query.deadline <= Instant::now() => Outcome::Failed(past_deadline(query)),
            None => {
                let seconds = query.request_timeout.as_secs_f64();
                let error = Error::new(ErrorKind::Timeout, format!("no complete response within {seconds} s"))
                    .advice(Setting::RequestTimeout.to("…").after("to allow more time: "));
                Outcome::Again(Cause::Temporary, error)
            }
            Some(Err(HttpFailure { kind, message, temporary })) => {
                let advice = advice::for_connection(kind, &message, &self.base_url);
                let error = Error::new(kind, message);
                let error = advice.into_iter().fold(error, Error::advice);
                match temporary {
                    true => Outcome::Again(Cause::Temporary, error.passing()),
                    false => Outcome::Failed(error.lasting()),
                }
            }
            Some(Ok(response)) => {
                record.status = Some(response.status.as_u16());
                if !record.cached {
                    record.bytes += response.wire_bytes;
                }
                self.classify(&response, record, decode)
            }
        }
    }

    /// Sends the request on a task of its own. Otherwise a paused consumer would hold the permit of a request that is
    /// never polled, and a consumer busy with one page would delay the request for the next.
    fn send(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let call = self.spawn(self.source.ask(question));
        async { call.await.unwrap_or_else(|error| Err(Unsent::Panicked(error.to_string()))) }.boxed()
    }
}
