//! Conversion of errors to gRPC statuses: a code for programs and a one-line message for people.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use tonic::{Code, Status};

use crate::error::{Error, ErrorKind, describe};

/// Maximum length of a message in characters: it is sent percent-encoded in a header, and clients limit headers to a
/// few KiB.
const SHOWN: usize = 1_000;

/// Owner of the API key that requests are sent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOwner {
    /// The server: a client cannot fix a rejected key.
    Server,
    /// The client.
    Client,
}

/// Converts an error to a status. `redact` removes API keys from the message.
pub(crate) fn status(error: &DataFusionError, owner: KeyOwner, redact: impl Fn(&str) -> String) -> Status {
    let line: String = redact(&describe(error)).chars().take(SHOWN).collect();
    Status::new(code(error, owner), line)
}

fn code(error: &DataFusionError, owner: KeyOwner) -> Code {
    if let Some(own) = Error::find(error) {
        return code_of(own.kind(), owner);
    }
    match error.find_root() {
        DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => Code::InvalidArgument,
        DataFusionError::NotImplemented(_) => Code::Unimplemented,
        DataFusionError::ResourcesExhausted(_) => Code::ResourceExhausted,
        DataFusionError::Configuration(_) => Code::InvalidArgument,
        // Evaluation errors, such as a division by zero or an invalid number.
        DataFusionError::Execution(_) => Code::InvalidArgument,
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::NotYetImplemented(_) => Code::Unimplemented,
            ArrowError::MemoryError(_) => Code::ResourceExhausted,
            ArrowError::IoError(..) | ArrowError::ExternalError(_) => Code::Internal,
            _ => Code::InvalidArgument,
        },
        _ => Code::Internal,
    }
}

fn code_of(kind: ErrorKind, owner: KeyOwner) -> Code {
    match kind {
        ErrorKind::Query | ErrorKind::Config | ErrorKind::Rejected => Code::InvalidArgument,
        ErrorKind::Unsupported => Code::Unimplemented,
        ErrorKind::Unauthorized if owner == KeyOwner::Client => Code::Unauthenticated,
        // UNAUTHENTICATED would make clients log in again, which does not help.
        ErrorKind::Unauthorized | ErrorKind::Profile | ErrorKind::Contradiction => Code::FailedPrecondition,
        ErrorKind::Forbidden => Code::PermissionDenied,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Connect
        | ErrorKind::Tls
        | ErrorKind::Redirect
        | ErrorKind::Unavailable
        | ErrorKind::Malformed
        | ErrorKind::Worker => Code::Unavailable,
        ErrorKind::Timeout => Code::DeadlineExceeded,
        ErrorKind::Throttled
        | ErrorKind::Quota
        | ErrorKind::Budget
        | ErrorKind::Memory
        | ErrorKind::TooLarge
        | ErrorKind::TooDeep => Code::ResourceExhausted,
        // The data changed while it was read: the client may retry.
        ErrorKind::Incomplete => Code::Aborted,
        ErrorKind::Output | ErrorKind::Store => Code::Internal,
    }
}

/// Returns the name of a status code in metrics and logs.
pub(crate) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_key_is_the_clients_matter_only_where_it_is_its_own() {
        let refused = DataFusionError::from(Error::new(ErrorKind::Unauthorized, "the service answered 401"));
        let of = |owner| status(&refused, owner, str::to_owned).code();
        assert_eq!(of(KeyOwner::Client), Code::Unauthenticated);
        assert_eq!(of(KeyOwner::Server), Code::FailedPrecondition);
    }

    #[test]
    fn messages_are_redacted_single_lines_of_a_length_that_headers_have() {
        let error = DataFusionError::Plan(format!("no\n table hush {}", "x".repeat(9_000)));
        let status = status(&error, KeyOwner::Server, |text| text.replace("hush", "…"));
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with("no table … xxx"), "{}", status.message());
        assert_eq!(status.message().chars().count(), SHOWN);
    }
}
