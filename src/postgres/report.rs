//! Errors and notices in PostgreSQL's form: a severity, an SQLSTATE and one line.
//!
//! Codes: PostgreSQL documentation, appendix "PostgreSQL Error Codes".

use crate::error::shortened;
use crate::host::failure::{Code, Failure};

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
        let message = match severity {
            Severity::Error | Severity::Fatal => shortened(message.into()),
            Severity::Warning | Severity::Notice | Severity::Info => message.into(),
        };
        Self { severity, sqlstate, message, code: Code::InvalidArgument, before: None }
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
        Self { code: failure.code, before, ..Self::error(failure.sqlstate(), failure.message()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_repeat_only_a_part_of_a_long_text() {
        let message = format!("malformed array literal: \"{}\"", "a".repeat(300_000));
        for report in [Report::error("22P02", message.clone()), Report::error("22P02", message).fatal()] {
            let fields = report.fields();
            let line = &fields.iter().find(|(field, _)| *field == b'M').expect("a line").1;
            assert!(line.starts_with("malformed array literal: \"aaa") && line.chars().count() <= 1_000, "{line}");
        }
    }
}
