//! Errors and notices in PostgreSQL's form: a severity, an SQLSTATE and one line.
//!
//! Codes: PostgreSQL documentation, appendix "PostgreSQL Error Codes".

use crate::error::ErrorKind;
use crate::host::failure::{Code, Failure, Origin};

/// Severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// The statement has failed.
    Error,
    /// The connection ends.
    Fatal,
    Warning,
    Notice,
    Info,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
            Self::Info => "INFO",
        }
    }
}

/// An error or a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) severity: Severity,
    sqlstate: &'static str,
    message: String,
    /// Code in metrics.
    pub(super) code: Code,
    /// Number of characters of the query before the place of the error.
    before: Option<usize>,
}

impl Report {
    pub(super) fn new(severity: Severity, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { severity, sqlstate, message: message.into(), code: Code::InvalidArgument, before: None }
    }

    /// An error of a statement.
    pub(super) fn error(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, sqlstate, message)
    }

    /// The same, as the end of the connection.
    pub(super) fn fatal(self) -> Self {
        Self { severity: Severity::Fatal, ..self }
    }

    /// The same, for a statement behind this many characters of a query.
    pub(super) fn behind(self, characters: usize) -> Self {
        Self { before: self.before.map(|before| before + characters), ..self }
    }

    /// The fields of the message: severity, also for programs, code, line, and the place in the query.
    pub(super) fn fields(&self) -> Vec<(u8, String)> {
        let Self { severity, sqlstate, message, before, .. } = self;
        let severity = severity.name().to_owned();
        let place = before.map(|before| (b'P', (before + 1).to_string()));
        let fields =
            [(b'S', severity.clone()), (b'V', severity), (b'C', (*sqlstate).to_owned()), (b'M', message.clone())];
        fields.into_iter().chain(place).collect()
    }
}

impl From<Failure> for Report {
    fn from(failure: Failure) -> Self {
        let before = failure.place.map(|place| place.before);
        Self { code: failure.code, before, ..Self::error(sqlstate(&failure), failure.message) }
    }
}

fn sqlstate(failure: &Failure) -> &'static str {
    match failure.origin {
        Origin::Syntax => "42601",
        Origin::UnknownTable => "42P01",
        Origin::UnknownColumn => "42703",
        Origin::UnknownFunction => "42883",
        Origin::Own(kind) => of_kind(kind),
        Origin::DivisionByZero => "22012",
        Origin::OutOfRange => "22003",
        Origin::InvalidText => "22P02",
        Origin::Server | Origin::Engine => match failure.code {
            Code::Ok => "00000",
            Code::Cancelled | Code::DeadlineExceeded => "57014",
            Code::InvalidArgument => "42000",
            Code::NotFound => "42704",
            Code::PermissionDenied => "42501",
            Code::ResourceExhausted => "53000",
            Code::FailedPrecondition => "55000",
            Code::Aborted => "40001",
            Code::Unimplemented => "0A000",
            Code::Internal => "XX000",
            Code::Unavailable => "58000",
            Code::Unauthenticated => "28P01",
        },
    }
}

/// The code of each kind of error. Class 58 is "errors external to PostgreSQL itself".
fn of_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Query | ErrorKind::Rejected => "42000",
        ErrorKind::Config => "22023",
        ErrorKind::Unsupported => "0A000",
        ErrorKind::Profile | ErrorKind::Contradiction => "55000",
        ErrorKind::Unauthorized => "28000",
        ErrorKind::Forbidden => "42501",
        ErrorKind::NotFound => "42704",
        ErrorKind::Connect | ErrorKind::Tls | ErrorKind::Redirect => "08001",
        ErrorKind::Unavailable | ErrorKind::Malformed | ErrorKind::Worker => "58000",
        ErrorKind::Timeout => "57014",
        ErrorKind::Throttled | ErrorKind::Quota | ErrorKind::Budget => "53400",
        ErrorKind::Memory => "53200",
        ErrorKind::TooLarge | ErrorKind::TooDeep => "54000",
        // The data changed while it was read: a client may try again.
        ErrorKind::Incomplete => "40001",
        ErrorKind::Output | ErrorKind::Store => "58030",
    }
}
