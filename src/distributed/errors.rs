//! Errors on their way from workers to the server. The engine sends an error of this crate as its text, without its kind; and an
//! error of a statement, such as a limit, must not be taken for a failure of the worker that ran into it: the client would try again.
//!
//! ```text
//! worker: stage ─▶ error of this crate, as JSON ─ engine, other workers ─▶ server: the same error
//!                   └─ connection that fails ──────────────────────────▶ server: an error that names the worker
//! ```
//!
//! Invariant: what a worker sends as an error is the statement's own, except for its memory and the files that it reads. A worker
//! failed only if a call to it did.

use std::error::Error as StdError;
use std::iter::successors;
use std::sync::Arc;

use arrow_flight::error::FlightError;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::StreamExt;
use tonic::{Code, ConnectError, Status};

use crate::error::{Error, ErrorKind, Phrase, Tool, out_of_space};
use crate::optimizer::{Pass, PassThroughExec};
use crate::serving::cause;

/// Prefix of errors of this crate on the wire; JSON follows.
const TYPED: &str = "savedsearch error: ";
/// Maximum number of characters of each text of such an error: the engine sends it in a header.
const LENGTH: usize = 1_000;
/// Prefix of errors that name a worker. Identifies those about memory after another worker has relayed them as text.
const WORKER: &str = "worker ";
/// Advice for a query that lost a worker.
const AGAIN: &str = "retry the query: it will use the remaining workers, or the server alone";

/// Returns an operator with the rows of its input, whose errors keep their type on the wire.
pub(super) fn with_typed_errors(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(PassThroughExec::new(input, TypedErrors))
}

/// Encodes errors of this crate.
#[derive(Debug, Clone)]
struct TypedErrors;

impl Pass for TypedErrors {
    const NAME: &'static str = "TypedErrorsExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    fn rows(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        let schema = input.schema();
        Box::pin(RecordBatchStreamAdapter::new(schema, input.map(|batch| batch.map_err(encoded))))
    }
}

/// Returns an error as a worker sends it.
fn encoded(error: DataFusionError) -> DataFusionError {
    let own = Error::find(&error).cloned().or_else(|| decoded(&error)).or_else(|| out_of_space(&error));
    let short = |text: &str| text.chars().take(LENGTH).collect::<String>();
    match own.and_then(|own| serde_json::to_string(&own.map_text(short)).ok()) {
        Some(json) => DataFusionError::External(format!("{TYPED}{json}").into()),
        None => error,
    }
}

/// The error of this crate that a worker sent, whatever the operators that it passed have added to its text.
fn decoded(error: &DataFusionError) -> Option<Error> {
    let text = error.find_root().to_string();
    let (_, json) = text.split_once(TYPED)?;
    serde_json::Deserializer::from_str(json).into_iter().next()?.ok()
}

/// Returns the error of a call to a worker: that of the statement, or one that names the worker if it failed.
pub(super) fn of_worker(worker: &str, error: DataFusionError) -> DataFusionError {
    if Error::find(&error).is_some() {
        return error;
    }
    let own = |kind, what: &str| Error::new(kind, format!("{WORKER}{worker} {what}"));
    if let Some(sent) = decoded(&error) {
        return match sent.kind() {
            ErrorKind::Memory => own(ErrorKind::Memory, &format!("has too few resources: {sent}")).into(),
            _ => sent.into(),
        };
    }
    let own = match error.find_root() {
        DataFusionError::External(inner) => match inner.downcast_ref::<Status>() {
            Some(status) => own(ErrorKind::Worker, &of_status(status)).advice(AGAIN),
            None if inner.is::<FlightError>() => {
                own(ErrorKind::Worker, &format!("failed: its rows cannot be decoded: {inner}")).advice(AGAIN)
            }
            None => Error::new(ErrorKind::Query, inner.to_string()),
        },
        DataFusionError::ResourcesExhausted(text) if text.starts_with(WORKER) => return error,
        DataFusionError::ResourcesExhausted(text) => own(ErrorKind::Memory, &format!("has too little memory: {text}"))
            .advice(Phrase::from("narrow the query, or raise ") + Tool::WorkerMemory + " of the workers"),
        root @ (DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) | DataFusionError::ParquetError(_)) => {
            own(ErrorKind::Store, &format!("cannot read the store: {}", root.strip_backtrace())).advice(
                Phrase::from("check that the worker reads the same folder as the server; ")
                    + Tool::VerifyStore
                    + " checks the files",
            )
        }
        DataFusionError::Execution(text) if text.contains("waiting for the plan") => {
            own(ErrorKind::Worker, "did not receive its part of the query in time").advice(AGAIN)
        }
        DataFusionError::Execution(text) if text.contains("no store of this worker") => {
            own(ErrorKind::Store, "reads another store")
                .advice(Phrase::from("start it again, and name the store of the server ") + Tool::WorkerStores)
        }
        _ => return error,
    };
    own.into()
}

/// Describes a failed call, after the name of the worker.
pub(super) fn of_status(status: &Status) -> String {
    let first = StdError::source(status);
    let refused = successors(first, |&error| error.source()).any(|error| error.is::<ConnectError>());
    let message = match status.message() {
        "" => status.code().description(),
        message => message,
    };
    match first {
        Some(source) if refused => format!("cannot be reached: {}", cause(source)),
        // An open connection: its end is described in terms of HTTP/2 and TLS.
        Some(source) => {
            tracing::debug!(cause = cause(source).as_str(), "connection to a worker");
            "does not respond".to_owned()
        }
        None if status.code() == Code::Unavailable => format!("cannot be reached: {message}"),
        None => format!("failed: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use arrow::error::ArrowError;

    use super::*;
    use crate::cases::each;

    /// Returns an error as the engine passes it on: its text alone.
    fn sent(error: &DataFusionError) -> DataFusionError {
        match error {
            DataFusionError::External(inner) => DataFusionError::External(inner.to_string().into()),
            error => DataFusionError::Execution(error.to_string()),
        }
    }

    #[test]
    fn an_error_of_the_statement_keeps_its_kind_over_workers() {
        let kinds = [ErrorKind::TooLarge, ErrorKind::Query, ErrorKind::Unsupported, ErrorKind::TooDeep];
        each(kinds, |kind| {
            let own = Error::new(kind, "regexp_replace would produce 90917079 bytes per batch").advice("select less");
            let within = ArrowError::ExternalError(Box::new(DataFusionError::from(own.clone())));
            let error = DataFusionError::ArrowError(Box::new(within), None).context("evaluating");
            let once_more = || DataFusionError::from(own.clone());
            let once = of_worker("http://a:1", sent(&encoded(error)));
            assert_eq!(Error::find(&once), Some(&own));
            let twice = of_worker("http://b:2", sent(&encoded(once)));
            assert_eq!(Error::find(&twice), Some(&own));
            // Operators may add to the text.
            let context = DataFusionError::Execution(format!("{} in a task", encoded(once_more())));
            assert_eq!(Error::find(&of_worker("http://a:1", context)), Some(&own));
            // A part that the same worker ran comes as text, too.
            let local = sent(&encoded(once_more()));
            assert_eq!(Error::find(&of_worker("http://a:1", sent(&encoded(local)))), Some(&own));
        });
    }

    #[test]
    fn an_error_without_a_type_is_the_statements() {
        let error = of_worker("http://a:1", DataFusionError::External("no such zone: Mars".into()));
        let own = Error::find(&error).expect("typed");
        assert_eq!((own.kind(), own.to_string().as_str()), (ErrorKind::Query, "no such zone: Mars"));
        let division = of_worker("http://a:1", DataFusionError::Execution("division by zero".to_owned()));
        assert!(Error::find(&division).is_none() && !division.to_string().contains("worker"), "{division}");
    }

    #[test]
    fn a_failed_worker_is_named() {
        let cases = [
            (Status::unavailable("connection refused"), "worker http://a:1 cannot be reached: connection refused"),
            (Status::internal("it panicked"), "worker http://a:1 failed: it panicked"),
            (Status::unknown(""), "worker http://a:1 failed: Unknown error"),
            // As the connection reports its end.
            (
                Status::from_error(Box::new(io::Error::from(io::ErrorKind::BrokenPipe))),
                "worker http://a:1 does not respond; retry the query",
            ),
        ];
        each(cases, |(status, expected)| {
            let error = of_worker("http://a:1", DataFusionError::External(Box::new(status)));
            let own = Error::find(&error).expect("typed");
            assert_eq!(own.kind(), ErrorKind::Worker);
            assert!(own.to_string().starts_with(expected), "{own}");
            // Over another worker.
            let relayed = of_worker("http://b:2", sent(&encoded(error)));
            let relayed = Error::find(&relayed).expect("typed");
            assert_eq!(relayed.kind(), ErrorKind::Worker);
            assert!(relayed.to_string().starts_with(expected), "{relayed}");
        });
    }

    #[test]
    fn a_worker_without_resources_is_named_once() {
        let full = || DataFusionError::IoError(io::Error::from(io::ErrorKind::StorageFull));
        let pool = || DataFusionError::ResourcesExhausted("Failed to allocate additional 8.0 KB".to_owned());
        for error in [of_worker("http://a:1", sent(&encoded(full()))), of_worker("http://a:1", pool())] {
            let DataFusionError::ResourcesExhausted(text) = &error else { panic!("{error}") };
            assert!(text.starts_with("worker http://a:1 has too "), "{text}");
            let text = text.clone();
            let relayed = of_worker("http://b:2", error);
            assert!(matches!(&relayed, DataFusionError::ResourcesExhausted(same) if *same == text), "{relayed}");
        }
    }

    #[test]
    fn advice_on_workers_has_the_words_of_the_process() {
        let read = DataFusionError::ResourcesExhausted("Failed to allocate".to_owned());
        let other = DataFusionError::Execution("no store of this worker has it".to_owned());
        let damaged = DataFusionError::IoError(io::Error::from(io::ErrorKind::NotFound));
        let cases = [
            (read, "raise `WorkerSpec::memory_mib` of the workers"),
            (other, "name the store of the server in `WorkerSpec::stores`"),
            (damaged, "`Connection::verify_store` checks the files"),
        ];
        each(cases, |(error, advice)| {
            let told = of_worker("http://a:1", error).to_string();
            assert!(told.contains(advice), "{told}");
        });
    }

    #[test]
    fn long_texts_are_cut() {
        let error = Error::new(ErrorKind::TooLarge, "ä".repeat(300_000));
        let sent = encoded(DataFusionError::External(Box::new(error))).to_string();
        assert!(sent.len() < 3_000, "{}", sent.len());
    }
}
