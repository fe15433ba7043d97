//! Failures as gRPC statuses.

use tonic::{Code, Status};

use crate::host::failure::{self, Failure, Place};

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let code = match failure.code {
            failure::Code::Ok => Code::Ok,
            failure::Code::Cancelled => Code::Cancelled,
            failure::Code::InvalidArgument => Code::InvalidArgument,
            failure::Code::DeadlineExceeded => Code::DeadlineExceeded,
            failure::Code::NotFound => Code::NotFound,
            failure::Code::PermissionDenied => Code::PermissionDenied,
            failure::Code::ResourceExhausted => Code::ResourceExhausted,
            failure::Code::FailedPrecondition => Code::FailedPrecondition,
            failure::Code::Aborted => Code::Aborted,
            failure::Code::Unimplemented => Code::Unimplemented,
            failure::Code::Internal => Code::Internal,
            failure::Code::Unavailable => Code::Unavailable,
            failure::Code::Unauthenticated => Code::Unauthenticated,
        };
        match failure.place {
            Some(Place { line, column, .. }) => {
                Self::new(code, format!("{} (line {line}, column {column})", failure.message()))
            }
            None => Self::new(code, failure.message()),
        }
    }
}

/// Returns the name of a status code in metrics and logs.
pub(super) fn code_name(code: Code) -> &'static str {
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
