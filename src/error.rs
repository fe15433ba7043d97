//! What can go wrong, where it happened and what to do about it.
//!
//! Every failure of this crate is an [`Error`]: a [`ErrorKind`] that callers branch on, the place (table, aid, row,
//! attempt), a message and an advice, printed in one line. Inside DataFusion it travels as
//! [`DataFusionError::External`]; [`Error::find`] gets it back from under whatever context the engine put on top.
//!
//! Invariant: no message that leaves contains a secret. Texts that come from the service may repeat the key: they pass through
//! [`Secret::redact`](crate::client::Secret::redact) where an error leaves an operator or enters the log.

mod engine;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use datafusion::error::DataFusionError;

pub use self::engine::describe;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for callers that branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A profile that cannot be read or contradicts itself.
    Profile,
    /// The profile says something that this version does not honour yet.
    Unsupported,
    /// A setting, address, key file or option that makes no sense.
    Config,
    /// The query asks for what the service cannot be asked: a zone, a period, an open range.
    Query,
    /// No connection: name not found, refused, reset.
    Connect,
    /// The certificate or the TLS handshake failed. Never retried.
    Tls,
    /// The service answered with a redirect, which is never followed since it would carry the key along.
    Redirect,
    /// The key was refused (401).
    Unauthorized,
    /// The key may not read this saved search (403).
    Forbidden,
    /// No such saved search, or no such service at this address (404).
    NotFound,
    /// The service called the request invalid (400, 422).
    Rejected,
    /// Throttled for longer than the query may take (429).
    Throttled,
    /// What the key may spend is used up.
    Quota,
    /// Temporary failures (5xx) outlasted the bounded retries.
    Unavailable,
    /// A time-out of the connection, of a silent body, or of the query's deadline.
    Timeout,
    /// The answer is larger than the declared caps.
    TooLarge,
    /// The body is not what the profile calls an answer: no JSON, HTML, truncated.
    Malformed,
    /// The answer is well formed and contradicts the profile or the question.
    Contradiction,
    /// The mentions received are not all that the service announced.
    Incomplete,
    /// More mentions match than paging reaches, and they cannot be asked for in parts.
    TooDeep,
    /// The query needs more requests than it may issue.
    Budget,
    /// The query needs more memory than it may have.
    Memory,
    /// The files, terminal or stream that results go to.
    Output,
}

/// Where in the service an error happened. Every part is optional; what is known is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Table of the SQL surface.
    pub table: Option<String>,
    /// Saved search.
    pub aid: Option<String>,
    /// First row of the page, 0-based, whatever the profile counts from.
    pub row: Option<u64>,
}

/// A typed failure. See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    advice: Option<String>,
    place: Place,
    attempts: u32,
    elapsed: Duration,
    passing: bool,
}

impl Error {
    /// An error without a place. `message` is lowercase, without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            advice: None,
            place: Place::default(),
            attempts: 0,
            elapsed: Duration::ZERO,
            passing: false,
        }))
    }

    /// Says what to do about it.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// Says that the same question may be answered well another time.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.0.passing = true;
        self
    }

    /// Whether the same question may be answered well another time.
    pub fn may_pass(&self) -> bool {
        self.0.passing
    }

    /// Adds what is known of the place; what an inner layer said stays.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        let known = &mut self.0.place;
        known.table = known.table.take().or(place.table);
        known.aid = known.aid.take().or(place.aid);
        known.row = known.row.take().or(place.row);
        self
    }

    /// Adds the number of attempts made and the time they took.
    #[must_use]
    pub fn after(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    /// The same error with its texts changed, such as redacted.
    #[must_use]
    pub fn map_text(mut self, change: impl Fn(&str) -> String) -> Self {
        self.0.message = change(&self.0.message);
        self.0.advice = self.0.advice.as_deref().map(&change);
        let place = &mut self.0.place;
        for text in [&mut place.aid, &mut place.table].into_iter().flatten() {
            *text = change(text);
        }
        self
    }

    /// What happened, without place and advice.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The kind, to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where it happened, as far as known.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Attempts made before giving up; 0 where none was made.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// The error of ours inside an error of the engine, through contexts, sharing and Arrow's wrapping.
    pub fn find(error: &DataFusionError) -> Option<&Self> {
        let mut next: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            // `source()` of these wrappers skips the wrapped value itself, so they are opened by hand.
            next = match error.downcast_ref::<DataFusionError>() {
                Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
                Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
                Some(DataFusionError::Collection(inner)) => inner.first().map(|e| e as _),
                _ => error.source(),
            };
        }
        None
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, advice, place, attempts, elapsed, .. } = self.0.as_ref();
        if let Some(table) = &place.table {
            write!(f, "{table}: ")?;
        }
        if let Some(aid) = &place.aid {
            write!(f, "aid {}: ", shown(aid))?;
        }
        if let Some(row) = place.row {
            write!(f, "page at row {row}: ")?;
        }
        write!(f, "{}", shown(message))?;
        if *attempts > 1 {
            write!(f, " (after {attempts} attempts in {:.1} s)", elapsed.as_secs_f64())?;
        }
        match advice {
            Some(advice) => write!(f, "; {}", one_line(advice)),
            None => Ok(()),
        }
    }
}

impl StdError for Error {}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error.kind() {
            // The engine knows this one, and so do those who embed it.
            ErrorKind::Memory => DataFusionError::ResourcesExhausted(error.to_string()),
            _ => DataFusionError::External(Box::new(error)),
        }
    }
}

/// A text on one line, cut where nobody would read on.
fn shown(text: &str) -> String {
    const MOST: usize = 1_000;
    // White space is little of it.
    let part: String = text.chars().take(4 * MOST).collect();
    let line = one_line(&part);
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", &line[..at]),
        None => line,
    }
}

/// The name that is nearest to another, whatever the case, if one is near: a third of it may be wrong, and two letters of a
/// short one.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    /// Longer names are no slips of the pen, and comparing takes time with the square of their length.
    const LONGEST: usize = 200;
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    let near = known.into_iter().map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known));
    let most = (name.chars().count() / 3).max(2);
    let near = near.filter(|(distance, known)| *distance <= most && *known != name);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// A text on one line: control characters and runs of white space become a space.
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_what_how_often_and_what_to_do_in_one_line() {
        let error = Error::new(ErrorKind::Unavailable, "service answered 503:\n busy")
            .advice("try again later")
            .after(4, Duration::from_millis(1500))
            .at(Place { aid: Some("7".into()), row: Some(200), ..Place::default() })
            .at(Place { table: Some("mentions".into()), aid: Some("outer".into()), row: None });
        assert_eq!(
            error.to_string(),
            "mentions: aid 7: page at row 200: service answered 503: busy (after 4 attempts in 1.5 s); try again later"
        );
    }

    #[test]
    fn what_is_near_is_found_and_what_is_not_is_not() {
        let known = ["mentions", "overview", "saved_searches", "volume"];
        assert_eq!(nearest("mentons", known), Some("mentions"));
        assert_eq!(nearest("SavedSearches", known), Some("saved_searches"));
        assert_eq!(nearest("Volume", known), Some("volume"), "case matters to the one who asks");
        assert_eq!(nearest("customers", known), None);
        assert_eq!(nearest("mentions", known), None, "it is the name itself");
        assert_eq!(nearest(&"mentions".repeat(100_000), known), None, "nobody types that");
    }

    #[test]
    fn is_found_under_the_engines_wrapping() {
        let error = DataFusionError::from(Error::new(ErrorKind::Throttled, "wait"));
        let wrapped = DataFusionError::ArrowError(
            Box::new(arrow::error::ArrowError::ExternalError(Box::new(error.context("scan")))),
            None,
        );
        assert_eq!(Error::find(&wrapped).map(Error::kind), Some(ErrorKind::Throttled));
        assert!(Error::find(&DataFusionError::Plan("no".into())).is_none());
    }
}
