//! Failures as ADBC has them: a status, an SQLSTATE, one line, and the parts of it as details for programs.

use std::ffi::c_char;

use adbc_core::error::{Error, Status};
use datafusion_saved_search::embedded::{Code, Failure};

/// Converts a failure.
pub(crate) fn failed(failure: &Failure) -> Error {
    let mut sqlstate = [0; 5];
    for (place, byte) in sqlstate.iter_mut().zip(failure.sqlstate().bytes()) {
        *place = c_char::from_ne_bytes([byte]);
    }
    let details = details(failure).into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes()));
    Error {
        message: failure.message.clone(),
        status: match failure.kind() {
            // A folder or file that the user named, not a defect.
            "store" | "output" => Status::IO,
            _ => status(failure.code),
        },
        vendor_code: 0,
        sqlstate,
        details: Some(details.collect()),
    }
}

/// Converts an error of the library.
pub(crate) fn own(error: datafusion_saved_search::Error) -> Error {
    failed(&Failure::own(error))
}

/// An error of a wrong call: a line, with what to do.
pub(crate) fn wrong(message: impl Into<String>) -> Error {
    of_use(message, Status::InvalidArguments, *b"22023")
}

/// An error of something that the driver does not do.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    of_use(message, Status::NotImplemented, *b"0A000")
}

fn of_use(message: impl Into<String>, status: Status, sqlstate: [u8; 5]) -> Error {
    Error {
        sqlstate: sqlstate.map(|byte| c_char::from_ne_bytes([byte])),
        details: Some(vec![("savedsearch.kind".to_owned(), b"usage".to_vec())]),
        ..Error::with_message_and_status(message, status)
    }
}

/// Parts of a failure by name: `kind`, and as far as known `advice`, `table`, `aid` and `row` in the service, and `line` and `column`
/// in the statement.
pub(crate) fn details(failure: &Failure) -> Vec<(&'static str, String)> {
    let at = failure.at.as_deref();
    let parts = [
        ("savedsearch.kind", Some(failure.kind().to_owned())),
        ("savedsearch.advice", failure.advice.as_deref().map(str::to_owned)),
        ("savedsearch.table", at.and_then(|at| at.table.clone())),
        ("savedsearch.aid", at.and_then(|at| at.aid.clone())),
        ("savedsearch.row", at.and_then(|at| at.row).map(|row| row.to_string())),
        ("savedsearch.line", failure.place.map(|place| place.line.to_string())),
        ("savedsearch.column", failure.place.map(|place| place.column.to_string())),
    ];
    parts.into_iter().filter_map(|(name, part)| Some((name, part?))).collect()
}

fn status(code: Code) -> Status {
    match code {
        Code::Ok => Status::Ok,
        Code::Cancelled => Status::Cancelled,
        Code::InvalidArgument => Status::InvalidArguments,
        Code::DeadlineExceeded => Status::Timeout,
        Code::NotFound => Status::NotFound,
        Code::PermissionDenied => Status::Unauthorized,
        Code::FailedPrecondition => Status::InvalidState,
        Code::Unimplemented => Status::NotImplemented,
        Code::Internal => Status::Internal,
        // The service, or what it grants: trying again later may succeed.
        Code::ResourceExhausted | Code::Aborted | Code::Unavailable => Status::IO,
        Code::Unauthenticated => Status::Unauthenticated,
    }
}
