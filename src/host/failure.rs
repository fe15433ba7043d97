//! Failures as reported to clients: a code for programs and one line for users.
//!
//! Each front translates them into its protocol: a gRPC status, an SQLSTATE or plain text.

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::client::Clean;
use crate::error::{self, Error, ErrorKind, INVALID_PATTERN, Phrase, Term, describe, line_of, out_of_space, shortened};
use crate::functions::{OUT_OF_RANGE, TOO_MANY_DIGITS};
use crate::session::suggestion;
use crate::session::value_place::place_of_value;

/// Owner of the API key that requests are sent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOwner {
    /// The server: a client cannot fix a rejected key.
    Server,
    /// The client.
    Client,
}

/// Class of a failure, by which a client decides what to do. The values are those of gRPC that occur here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of gRPC")]
pub enum Code {
    Ok,
    Cancelled,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    Unimplemented,
    Internal,
    Unavailable,
    Unauthenticated,
}

impl Code {
    /// Name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Cancelled => "cancelled",
            Self::InvalidArgument => "invalid_argument",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::ResourceExhausted => "resource_exhausted",
            Self::FailedPrecondition => "failed_precondition",
            Self::Aborted => "aborted",
            Self::Unimplemented => "unimplemented",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Unauthenticated => "unauthenticated",
        }
    }
}

/// Origin of a failure, for protocols that distinguish more than [`Code`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This server: a limit, a login.
    Server,
    /// The end of this server.
    Shutdown,
    /// This crate's own errors.
    Own(ErrorKind),
    /// The text of a statement.
    Syntax,
    UnknownTable,
    UnknownColumn,
    UnknownFunction,
    /// A value for which an operation is not defined.
    DivisionByZero,
    OutOfRange,
    /// A text that is not of the type that it is cast to.
    InvalidText,
    /// A regular expression that cannot be compiled.
    InvalidPattern,
    /// A text that is not a date or a time.
    InvalidTime,
    /// A date or a time that does not exist.
    TimeOutOfRange,
    /// Several rows of a subquery that stands for a value.
    SeveralRows,
    /// Everything else of the SQL engine.
    Engine,
}

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Class.
    pub code: Code,
    pub(crate) origin: Origin,
    /// One line: what, where, and what to do. [`worded`](Self::worded) has it in a length that headers have.
    pub line: Phrase,
    /// Place at which the text of the statement is wrong, if that is known.
    pub place: Option<Place>,
    /// Advice, if there is any. It is the end of the line.
    pub advice: Option<Box<Phrase>>,
    /// Place in the service, as far as known.
    pub at: Option<Box<error::Place>>,
}

/// Place in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// 1-based line.
    pub line: usize,
    /// 1-based column.
    pub column: usize,
    /// Number of characters before it.
    pub before: usize,
}

impl Place {
    /// The place at a 1-based line and column; `None` if the text has none there.
    pub(crate) fn of(text: &str, (line, column): (usize, usize)) -> Option<Self> {
        let lines = text.split_inclusive('\n').take(line.checked_sub(1)?);
        let before = lines.map(|line| line.chars().count()).sum::<usize>() + column.checked_sub(1)?;
        (before <= text.chars().count()).then_some(Self { line, column, before })
    }

    /// The place after this many characters of a text.
    pub(crate) fn after(text: &str, before: usize) -> Self {
        let (mut line, mut column) = (1, 1);
        for c in text.chars().take(before) {
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        Self { line, column, before }
    }
}

impl Failure {
    /// Creates a failure of this server.
    pub fn new(code: Code, message: impl Into<Phrase>) -> Self {
        Self { code, origin: Origin::Server, line: message.into(), place: None, advice: None, at: None }
    }

    /// The failure of a statement that the end of this server cancels.
    pub(crate) fn shutdown() -> Self {
        let failure = Self::new(Code::Cancelled, "query cancelled: the server is shutting down");
        Self { origin: Origin::Shutdown, ..failure }
    }

    /// Creates a failure of this server from an error without API keys.
    pub fn own(error: Error) -> Self {
        Self {
            code: code_of(error.kind(), KeyOwner::Server),
            origin: Origin::Own(error.kind()),
            line: error.line(),
            place: None,
            advice: error.remedy().cloned().map(Box::new),
            at: Some(Box::new(error.place().clone())),
        }
    }

    /// Converts an error. `redact` removes API keys from the message.
    pub(crate) fn of(error: &DataFusionError, owner: KeyOwner, redact: impl Fn(&str) -> Clean) -> Self {
        if let (None, Some(own)) = (Error::find(error), out_of_space(error)) {
            return Self::of(&DataFusionError::External(Box::new(own)), owner, redact);
        }
        let own = Error::find(error);
        // A text that is cut first may have a part of a key.
        let clean = |phrase: &Phrase| phrase.map(|text| redact(text).into());
        Self {
            code: code(error, owner),
            origin: origin(error),
            line: clean(&line_of(error)),
            place: None,
            advice: own.and_then(Error::remedy).map(|advice| Box::new(clean(advice))),
            at: own.map(|own| Box::new(own.place().clone())),
        }
    }

    /// The failure with a text before its message.
    pub(crate) fn led_by(self, lead: &str) -> Self {
        Self { line: Phrase::from(lead) + self.line, ..self }
    }

    /// The message in the words of SQL, and of the library or the program.
    pub fn message(&self) -> String {
        self.worded(Term::to_string)
    }

    /// The message in the words of a front.
    pub fn worded(&self, by: impl Fn(&Term) -> String) -> String {
        shortened(self.line.worded(by))
    }

    /// The advice in the words of a front.
    pub fn advice_worded(&self, by: impl Fn(&Term) -> String) -> Option<String> {
        self.advice.as_ref().map(|advice| shortened(advice.worded(by)))
    }

    /// Adds to the failure of a statement what was probably meant, and its place in the text.
    pub(crate) async fn in_text(self, error: &DataFusionError, text: &str, context: &SessionContext) -> Self {
        let whole = self.message();
        let place = suggestion::place(error).or_else(|| suggestion::place_of_name(&whole, text));
        let place = place.or_else(|| place_of_value(&whole, text));
        let message = suggestion::without_place(&whole);
        let of_value = suggestion::of_value(message, text);
        let message = of_value.as_deref().unwrap_or(message);
        let advice = match suggestion::as_written(text, message, suggestion::place(error)) {
            Some(advice) => Some(advice),
            None => suggestion::suggestion(message, context, None).await,
        };
        // The engine's messages have no terms, and only they are changed.
        let line = match &advice {
            Some(advice) => format!("{message}; {advice}").into(),
            None if message == whole => self.line,
            None => message.into(),
        };
        let advice = advice.map(|advice| Box::new(advice.into())).or(self.advice);
        Self { line, place: place.and_then(|place| Place::of(text, place)), advice, ..self }
    }

    /// Category, for clients that branch on it: that of the crate's own error, or what is wrong with the statement.
    pub fn kind(&self) -> &'static str {
        match self.origin {
            Origin::Own(kind) => kind.name(),
            Origin::Server | Origin::Shutdown => self.code.name(),
            Origin::Syntax => "syntax",
            Origin::UnknownTable => "unknown_table",
            Origin::UnknownColumn => "unknown_column",
            Origin::UnknownFunction => "unknown_function",
            Origin::DivisionByZero => "division_by_zero",
            Origin::OutOfRange => "out_of_range",
            Origin::InvalidText => "invalid_text",
            Origin::InvalidPattern => "invalid_regular_expression",
            Origin::InvalidTime => "invalid_time",
            Origin::TimeOutOfRange => "time_out_of_range",
            Origin::SeveralRows => "several_rows",
            Origin::Engine => "engine",
        }
    }

    /// SQLSTATE (PostgreSQL documentation, appendix "PostgreSQL Error Codes").
    pub fn sqlstate(&self) -> &'static str {
        match self.origin {
            Origin::Syntax => "42601",
            Origin::UnknownTable => "42P01",
            Origin::UnknownColumn => "42703",
            Origin::UnknownFunction => "42883",
            Origin::Own(kind) => sqlstate_of(kind),
            Origin::Shutdown => "57P01",
            Origin::DivisionByZero => "22012",
            Origin::OutOfRange => "22003",
            Origin::InvalidText => "22P02",
            Origin::InvalidPattern => "2201B",
            Origin::InvalidTime => "22007",
            Origin::TimeOutOfRange => "22008",
            Origin::SeveralRows => "21000",
            Origin::Server | Origin::Engine => match self.code {
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
}

/// The SQLSTATE of each kind of error. Class 58 is "errors external to PostgreSQL itself".
fn sqlstate_of(kind: ErrorKind) -> &'static str {
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

fn origin(error: &DataFusionError) -> Origin {
    if let Some(own) = Error::find(error) {
        return match own.kind() {
            ErrorKind::Query if own.message().starts_with(OUT_OF_RANGE) => Origin::OutOfRange,
            ErrorKind::Query if own.message().starts_with(TOO_MANY_DIGITS) => Origin::OutOfRange,
            kind => Origin::Own(kind),
        };
    }
    match error.find_root() {
        DataFusionError::SQL(..) => Origin::Syntax,
        // Our own errors about memory have this variant as well.
        DataFusionError::ResourcesExhausted(_) => Origin::Own(ErrorKind::Memory),
        _ if is_pattern_error(error) => Origin::InvalidPattern,
        DataFusionError::SchemaError(error, _) if matches!(**error, SchemaError::FieldNotFound { .. }) => {
            Origin::UnknownColumn
        }
        DataFusionError::Plan(_) => match describe(error) {
            line if line.starts_with("unknown table") => Origin::UnknownTable,
            line if line.starts_with("unknown function") || line.starts_with("wrong types of arguments for") => {
                Origin::UnknownFunction
            }
            _ => Origin::Engine,
        },
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::DivideByZero => Origin::DivisionByZero,
            ArrowError::ArithmeticOverflow(_) => Origin::OutOfRange,
            ArrowError::CastError(line) | ArrowError::ParseError(line) => origin_of_cast(line),
            _ => Origin::Engine,
        },
        DataFusionError::Execution(line) if line == "Scalar subquery returned more than one row" => Origin::SeveralRows,
        _ => Origin::Engine,
    }
}

fn is_pattern_error(error: &DataFusionError) -> bool {
    describe(error).starts_with(INVALID_PATTERN)
}

/// Origin of an error of a cast, from the engine's message.
fn origin_of_cast(line: &str) -> Origin {
    if line.starts_with("Can't cast value") {
        return Origin::OutOfRange;
    }
    if line.starts_with("date field value out of range") {
        return Origin::TimeOutOfRange;
    }
    if line.starts_with("invalid input syntax for type time:") {
        return Origin::InvalidTime;
    }
    let value = line.split('\'').nth(1).unwrap_or_default();
    let is_time = line.starts_with("Error parsing timestamp from")
        || ["Date", "Time"].iter().any(|kind| line.contains(&format!("' to value of {kind}")));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let date = value.split([' ', 'T']).next().unwrap_or_default();
    if is_time {
        let exists = date.split('-').count() != 3 || !date.split('-').all(digits);
        return if exists { Origin::InvalidTime } else { Origin::TimeOutOfRange };
    }
    let number = value.trim().trim_start_matches(['-', '+']);
    if digits(number) && line.contains("' to value of ") { Origin::OutOfRange } else { Origin::InvalidText }
}

fn code(error: &DataFusionError, owner: KeyOwner) -> Code {
    if let Some(own) = Error::find(error) {
        return code_of(own.kind(), owner);
    }
    match error.find_root() {
        _ if is_pattern_error(error) => Code::InvalidArgument,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Secret;
    use crate::error::Setting;

    #[test]
    fn fronts_word_the_settings_of_a_failure() {
        let message = Phrase::from("needs 9 of hush-hush-hush-hush, but ") + Setting::MaxRequests + " allows 2";
        let advice = Phrase::from("add a LIMIT") + Setting::MaxRequests.to("40").after(", or raise the limit: ");
        let error = DataFusionError::from(Error::new(ErrorKind::Budget, message).advice(advice));
        let key = Secret::new("hush-hush-hush-hush").expect("a key");
        let failure = Failure::of(&error, KeyOwner::Server, |text| key.redact(text)).led_by("set 2: ");
        let sql = "set 2: needs 9 of <redacted>, but savedsearch.max_requests allows 2; add a LIMIT, or raise the limit: \
                   SET savedsearch.max_requests = 40";
        assert_eq!(failure.message(), sql);
        let shortly = |term: &Term| if let Term::Setting(setting) = term { setting.name() } else { "" }.to_owned();
        assert_eq!(failure.worded(shortly), "set 2: needs 9 of <redacted>, but max_requests allows 2; add a LIMIT");
        assert_eq!(failure.advice_worded(shortly).as_deref(), Some("add a LIMIT"));
        let plain = Failure::own(Error::new(ErrorKind::Query, "no").advice("SET it"));
        assert_eq!(plain.worded(shortly), "no; SET it");
        assert_eq!(plain.advice_worded(shortly).as_deref(), Some("SET it"));
    }

    #[test]
    fn a_refused_key_is_the_clients_matter_only_if_it_is_its_own() {
        let refused = DataFusionError::from(Error::new(ErrorKind::Unauthorized, "the service answered 401"));
        let key = Secret::new("hush").expect("a key");
        let of = |owner| Failure::of(&refused, owner, |text| key.redact(text)).code;
        assert_eq!(of(KeyOwner::Client), Code::Unauthenticated);
        assert_eq!(of(KeyOwner::Server), Code::FailedPrecondition);
    }

    #[test]
    fn messages_are_redacted_single_lines_of_a_length_that_headers_have() {
        let error = DataFusionError::Plan(format!("no\n table hush {}", "x".repeat(9_000)));
        let key = Secret::new("hush").expect("a key");
        let failure = Failure::of(&error, KeyOwner::Server, |text| key.redact(text));
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(failure.message().starts_with("no table <redacted> xxx"), "{}", failure.message());
        assert_eq!(failure.message().chars().count(), 1_000);
        for failure in [
            Failure::new(Code::NotFound, "x".repeat(9_000)),
            Failure::own(Error::new(ErrorKind::Query, "no").advice("x".repeat(9_000))),
        ] {
            assert!(failure.message().chars().count() <= 1_000, "{}", failure.message());
            assert!(failure.advice_worded(Term::to_string).is_none_or(|advice| advice.chars().count() <= 1_000));
        }
    }

    #[test]
    fn temporary_files_without_space_are_a_matter_of_resources() {
        let text =
            "The used disk space during the spilling process has exceeded the allowable limit of 16.0 GB. Please";
        let error = ArrowError::from(std::io::Error::other(text));
        let key = Secret::new("hush").expect("a key");
        let failure = Failure::of(&DataFusionError::from(error), KeyOwner::Server, |text| key.redact(text));
        assert_eq!((failure.code, failure.sqlstate(), failure.kind()), (Code::ResourceExhausted, "53200", "memory"));
        let (message, advice) = (failure.message(), failure.advice_worded(Term::to_string).expect("advice"));
        assert!(message.contains("16.0 GB") && message.ends_with(&advice), "{message}");
    }
}
