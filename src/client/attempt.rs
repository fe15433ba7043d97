//! One attempt at a question: it is sent once however many ask it at the same time, and its answer is classified.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::budget::Scan;
use super::fetch::Client;
use super::http::HttpFailure;
use super::log::RequestRecord;
use super::retry::Cause;
use super::single_flight::Flight;
use super::source::{Exchange, Question, Unsent, past_deadline};
use crate::error::{Error, ErrorKind, Result};

/// What an attempt came to.
pub(super) enum Outcome<T> {
    Done(T),
    Again(Cause, Error),
    Failed(Error),
}

impl Client {
    /// Makes one attempt, or shares that of somebody who asks the same.
    pub(super) async fn attempt<T>(
        &self,
        scan: &Scan,
        question: &Question,
        record: &mut RequestRecord,
        decode: &impl Fn(&Bytes) -> Result<(T, u64)>,
    ) -> Outcome<T> {
        let query = scan.query.as_ref();
        record.status = None;
        let Exchange { answer, wait } = loop {
            let Flight { outcome, shared } = self.in_flight.join(&question.key, || self.send(question.clone()));
            let outcome = match timeout_at(query.deadline, outcome.clone()).await {
                Ok(outcome) => outcome,
                // An own one ends by then, and says how.
                Err(_) if !shared => outcome.await,
                Err(_) => return Outcome::Failed(past_deadline()),
            };
            match outcome {
                // Its time has passed, not ours.
                Ok(Exchange { answer: None, .. }) if shared && Instant::now() < query.deadline => {}
                Ok(called) => {
                    record.cached = shared;
                    break called;
                }
                // What the other query may not spend, this one may.
                Err(_) if shared => {}
                Err(Unsent::Refused(error)) => return Outcome::Failed(error),
                Err(Unsent::Panicked(message)) => {
                    let message = format!("the HTTP service failed: {message}");
                    return Outcome::Failed(Error::new(ErrorKind::Connect, message));
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
                let error = Error::new(kind, message);
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
                self.classify(&response, record, decode)
            }
        }
    }

    /// Sends a question on a task of its own: a consumer that pauses must not keep the place of a request that is never
    /// polled, and one that is busy with a page must not keep the next one from being asked for.
    fn send(&self, question: Question) -> BoxFuture<'static, Result<Exchange, Unsent>> {
        let call = self.spawn(self.source.ask(question));
        async { call.await.unwrap_or_else(|error| Err(Unsent::Panicked(error.to_string()))) }.boxed()
    }
}
