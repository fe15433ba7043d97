//! Errors: what failed, where, and what to do about it.
//!
//! Every failure of this crate is an [`Error`]: an [`ErrorKind`] that callers branch on, a place (table, aid, row,
//! attempts), a message and advice, displayed on one line. Inside DataFusion it travels as
//! [`DataFusionError::External`]; [`Error::find`] recovers it from under any context that the engine added. An error of kind
//! [`ErrorKind::Memory`] travels as [`DataFusionError::ResourcesExhausted`], which has only its text.
//!
//! Invariant: no error leaves the crate with a secret in its text. Text received from the service may repeat the key,
//! so it passes through [`Secret::redact`](crate::client::Secret::redact) when an error leaves an operator or enters
//! the log.

mod engine;
mod mistyped;
pub(crate) mod notice;
mod phrase;
mod synonyms;
mod tool;

use std::error::Error as StdError;
use std::fmt;
use std::iter::successors;
use std::time::Duration;

use datafusion::error::DataFusionError;

#[cfg(feature = "host")]
pub(crate) use self::engine::INVALID_PATTERN;
#[cfg(feature = "host")]
pub(crate) use self::engine::out_of_space;
pub(crate) use self::engine::own_or_query;
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) use self::engine::value_in_quotes;
pub use self::engine::{describe, line_of};
pub use self::phrase::{Change, Phrase, Setting, Term};
pub use self::tool::{Tool, use_words_of_program};

/// Advice for a statement that needs more memory, or more space for temporary files, than there is. A client of a server reads it as
/// well as the user of the shell.
pub(crate) fn memory_advice() -> Phrase {
    Phrase::from("select fewer rows or columns, or aggregate") + Term::MemoryLimit
}

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Category of a failure, for callers that branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum ErrorKind {
    /// The profile cannot be parsed or contradicts itself.
    Profile,
    /// The profile declares something that this version does not support yet.
    Unsupported,
    /// Invalid setting, address, key file or option.
    Config,
    /// The query needs something that the service does not offer: a time zone, a period, an open-ended range.
    Query,
    /// No connection: name not resolved, refused or reset.
    Connect,
    /// The certificate or the TLS handshake failed. Never retried.
    Tls,
    /// The service responded with a redirect. Redirects are never followed, because the key would travel along.
    Redirect,
    /// The key was rejected (401).
    Unauthorized,
    /// The key may not read this saved search (403).
    Forbidden,
    /// No such saved search, or no such service at this address (404).
    NotFound,
    /// The service rejected the request as invalid (400, 422).
    Rejected,
    /// Throttled for longer than the query's deadline allows (429).
    Throttled,
    /// The quota of the key is used up.
    Quota,
    /// Temporary failures (5xx) persisted through all retries, or an address to listen on is in use.
    Unavailable,
    /// Timeout of the connection, of a stalled body, or of the query's deadline.
    Timeout,
    /// The response is larger than the configured limits.
    TooLarge,
    /// The body is not a valid response under the profile: not JSON, HTML, truncated.
    Malformed,
    /// The response is well-formed but contradicts the profile or the request.
    Contradiction,
    /// The received mentions are not all that the service reported.
    Incomplete,
    /// More mentions match than paging can reach, and the window cannot be split.
    TooDeep,
    /// The query needs more requests than it is allowed.
    Budget,
    /// The query needs more memory, or space for temporary files, than it is allowed.
    Memory,
    /// The file, terminal or stream that receives the results failed.
    Output,
    /// The local store cannot be read or written.
    Store,
    /// A worker of a distributed query failed or cannot be reached.
    Worker,
}

impl ErrorKind {
    /// Name, for programs without this type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Unsupported => "unsupported",
            Self::Config => "config",
            Self::Query => "query",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Redirect => "redirect",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Rejected => "rejected",
            Self::Throttled => "throttled",
            Self::Quota => "quota",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::Contradiction => "contradiction",
            Self::Incomplete => "incomplete",
            Self::TooDeep => "too_deep",
            Self::Budget => "budget",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Store => "store",
            Self::Worker => "worker",
        }
    }

    /// True if an error of this kind ends by itself: the service or the network recovers, or a limit is renewed.
    fn may_pass(self) -> bool {
        matches!(self, Self::Connect | Self::Throttled | Self::Quota | Self::Unavailable | Self::Timeout)
    }
}

/// The [`name`](ErrorKind::name).
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Place in the service at which an error happened. Every part is optional; known parts are printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct Place {
    /// SQL table.
    pub table: Option<String>,
    /// Saved search.
    pub aid: Option<String>,
    /// First row of the page, 0-based regardless of how the profile counts.
    pub row: Option<u64>,
}

/// Typed error of this crate. See the module documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
struct Inner {
    kind: ErrorKind,
    message: Phrase,
    advice: Option<Phrase>,
    place: Place,
    attempts: u32,
    elapsed: Duration,
    passing: bool,
}

impl Error {
    /// Creates an error without a place. `message` is lowercase, without a full stop. One of kind
    /// [`Connect`](ErrorKind::Connect), [`Throttled`](ErrorKind::Throttled), [`Quota`](ErrorKind::Quota),
    /// [`Unavailable`](ErrorKind::Unavailable) or [`Timeout`](ErrorKind::Timeout) is [`passing`](Self::passing).
    pub fn new(kind: ErrorKind, message: impl Into<Phrase>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            advice: None,
            place: Place::default(),
            attempts: 0,
            elapsed: Duration::ZERO,
            passing: kind.may_pass(),
        }))
    }

    /// Adds advice: what the user can do about the error. Write settings and options as values, since fronts name them differently.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<Phrase>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// Adds a clause to the description of the failure.
    #[cfg(feature = "store")]
    #[must_use]
    pub(crate) fn and(mut self, clause: &str) -> Self {
        self.0.message = std::mem::take(&mut self.0.message) + format!("; {clause}");
        self
    }

    /// Marks the error as transient: the same request may succeed later.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.0.passing = true;
        self
    }

    /// Marks the error as lasting, although others of its kind are transient.
    #[must_use]
    pub(crate) fn lasting(mut self) -> Self {
        self.0.passing = false;
        self
    }

    /// True if the same request may succeed later: after a failure of the network or the service, or a limit that is renewed, and
    /// after a state of the data or a store that others change.
    pub fn may_pass(&self) -> bool {
        self.0.passing
    }

    /// Adds the place, as far as known. Parts that an inner layer has set are kept.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        let known = &mut self.0.place;
        known.table = known.table.take().or(place.table);
        known.aid = known.aid.take().or(place.aid);
        known.row = known.row.take().or(place.row);
        self
    }

    /// Adds the number of attempts and the time they took.
    #[must_use]
    pub fn after(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    /// Applies `change` to all text of the error, for example to redact it.
    #[must_use]
    pub fn map_text(mut self, change: impl Fn(&str) -> String) -> Self {
        self.0.message = self.0.message.map(&change);
        self.0.advice = self.0.advice.map(|advice| advice.map(&change));
        let place = &mut self.0.place;
        for text in [&mut place.aid, &mut place.table].into_iter().flatten() {
            *text = change(text);
        }
        self
    }

    /// Description of the failure, without place and advice.
    pub fn message(&self) -> &str {
        self.0.message.as_str()
    }

    /// As [`message`](Self::message), with its terms.
    pub fn description(&self) -> &Phrase {
        &self.0.message
    }

    /// Advice, with its terms, if there is any.
    pub fn remedy(&self) -> Option<&Phrase> {
        self.0.advice.as_ref()
    }

    /// Place, description and advice in one line, with their terms. `Display` has the line in the words of SQL and of the library.
    pub fn line(&self) -> Phrase {
        let Inner { message, advice, place, attempts, elapsed, .. } = self.0.as_ref();
        let mut at = String::new();
        if let Some(table) = &place.table {
            at.push_str(&format!("{}: ", shown(table)));
        }
        if let Some(aid) = &place.aid {
            at.push_str(&format!("aid {}: ", shown(aid)));
        }
        if let Some(row) = place.row {
            at.push_str(&format!("page at row {row}: "));
        }
        let mut line = Phrase::from(at) + shown_phrase(message);
        if *attempts > 1 {
            line = line + format!(" (after {attempts} attempts in {:.1} s)", elapsed.as_secs_f64());
        }
        match advice {
            Some(advice) => line.advised(shown_phrase(advice)),
            None => line,
        }
    }

    /// Category to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Place of the failure, as far as known.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Attempts made before giving up; 0 if none was made.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Finds this crate's error inside an engine error, through contexts, sharing and Arrow's wrapping. `None` for errors of the engine
    /// itself, and for those of kind [`ErrorKind::Memory`], which arrive as [`DataFusionError::ResourcesExhausted`].
    pub fn find(error: &DataFusionError) -> Option<&Self> {
        chain(error).find_map(|error| error.downcast_ref::<Self>())
    }
}

/// An error of the engine, and those in it.
fn chain(error: &DataFusionError) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = error;
    successors(Some(first), |&error| inner(error))
}

/// The error in an error.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    // `source()` of both wrappers skips the wrapped value itself, so they are unwrapped here.
    match error.downcast_ref::<DataFusionError>() {
        Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
        Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
        Some(DataFusionError::Collection(inner)) => inner.first().map(|e| e as _),
        _ => error.source(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line().as_str())
    }
}

impl StdError for Error {}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error.kind() {
            // The engine and embedders already handle this variant. It has only a text, so its words suit all fronts.
            ErrorKind::Memory => DataFusionError::ResourcesExhausted(error.line().worded(|term| match term {
                Term::Change(change) => change.worded(&change.assignment()),
                other => other.to_string(),
            })),
            _ => DataFusionError::External(Box::new(error)),
        }
    }
}

/// Maximum length of a message in characters: Flight sends it percent-encoded in a header, and clients limit headers to a
/// few KiB.
const MOST: usize = 1_000;

/// A message for a client. A long one, which may repeat a part of the statement, loses its middle: the advice is at its end.
#[cfg_attr(not(any(feature = "host", feature = "wording")), allow(dead_code, reason = "fronts have clients"))]
pub(crate) fn shortened(message: String) -> String {
    const CUT: &str = " … ";
    const END: usize = MOST / 4;
    let length = if message.len() <= MOST { 0 } else { message.chars().count() };
    let at = |characters: usize| message.char_indices().nth(characters).map(|(at, _)| at);
    match (length > MOST).then(|| at(MOST - END - CUT.chars().count()).zip(at(length - END))).flatten() {
        Some((begin, end)) => format!("{}{CUT}{}", &message[..begin], &message[end..]),
        None => message,
    }
}

/// Text on one line, truncated to a readable length.
fn shown(text: &str) -> String {
    // Bounds the work on long text. White space collapses, but rarely by more than a factor of four.
    let part: String = text.chars().take(4 * MOST).collect();
    let line = one_line(&part);
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", &line[..at]),
        None => line,
    }
}

/// The phrase on one line, its text truncated to a readable length.
fn shown_phrase(phrase: &Phrase) -> Phrase {
    if phrase.is_plain() {
        return shown(phrase.as_str()).into();
    }
    phrase.map(|text| {
        // A space beside a term stays.
        let space = |is| if is { " " } else { "" };
        let (begins, ends) = (text.starts_with(' '), text.ends_with(' ') && !text.trim().is_empty());
        format!("{}{}{}", space(begins), shown(text), space(ends))
    })
}

/// Known name nearest to `name`, ignoring case. At most a third of the characters may differ, or one in a short name.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    /// Longer names are not typos, and the comparison takes quadratic time.
    const LONGEST: usize = 200;
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    let length = lower.chars().count();
    // A third of a short name makes another name: `nope` is not a misspelt `type`.
    let most = match name.chars().count() {
        ..3 => 0,
        length => (length / 3).max(1),
    };
    // Names whose lengths differ by more are farther apart. They are not compared: the name of a result may be its whole text.
    let known = known.into_iter().map(|known| (known.to_lowercase(), known));
    let similar = known.filter(|(known, _)| known.chars().count().abs_diff(length) <= most);
    let near = similar.map(|(lowered, known)| (strsim::damerau_levenshtein(&lower, &lowered), known));
    let near = near.filter(|(distance, known)| *distance <= most && *known != name);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Returns the name that was probably meant: the nearest one by spelling, otherwise one that has a similar word, such as
/// `author_name` for `autor`, or a word that begins so, such as `language` for `lang`.
pub fn nearest_name<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    /// Shorter words prove nothing.
    const WORD: usize = 3;
    if let Some(near) = nearest(name, known.iter().copied()) {
        return Some(near);
    }
    let lower = name.to_lowercase();
    if lower.chars().count() < WORD {
        return None;
    }
    let similar = |word: &str| word.len() > WORD && (word == lower || nearest(&lower, [word]).is_some());
    let begins = |word: &str| word.starts_with(&lower);
    let with = |fits: &dyn Fn(&str) -> bool| {
        let fits =
            known.iter().copied().filter(|known| *known != name && known.to_lowercase().split(['_', '.']).any(fits));
        let fits: Vec<&str> = fits.collect();
        // The name of something stands for it.
        let named = fits.iter().copied().find(|known| known.ends_with("_name"));
        named.or_else(|| fits.into_iter().min_by_key(|known| known.len()))
    };
    with(&similar).or_else(|| with(&begins))
}

/// Text on one line: control characters and runs of white space become one space.
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The part of a text between two others.
pub(crate) fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

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

    /// The kinds of failures that end without a change of the query, the profile, the key or the settings.
    #[test]
    fn an_error_of_the_network_or_of_a_limit_may_pass() {
        let cases = [
            (ErrorKind::Connect, true),
            (ErrorKind::Throttled, true),
            (ErrorKind::Quota, true),
            (ErrorKind::Unavailable, true),
            (ErrorKind::Timeout, true),
            (ErrorKind::Tls, false),
            (ErrorKind::Unauthorized, false),
            (ErrorKind::NotFound, false),
            (ErrorKind::Malformed, false),
            (ErrorKind::Contradiction, false),
            (ErrorKind::Budget, false),
            (ErrorKind::Store, false),
        ];
        each(cases, |(kind, passes)| {
            let error = Error::new(kind, "failed");
            assert_eq!(error.may_pass(), passes, "{kind}");
            assert!(error.clone().passing().may_pass() && !error.lasting().may_pass(), "{kind}");
        });
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = "x".repeat(300_000);
        let place = Place { table: Some(long.clone()), aid: Some(long.clone()), row: None };
        let error = Error::new(ErrorKind::Query, long.clone()).advice(long).at(place).to_string();
        assert!(error.chars().count() < 4_100, "{}", error.len());
        let message = shortened(format!("unknown column `{}`; did you mean aid?", "é".repeat(300_000)));
        assert_eq!(message.chars().count(), 1_000);
        assert!(message.starts_with("unknown column `é") && message.ends_with("é`; did you mean aid?"), "{message}");
        assert!(message.contains("é … é"), "{message}");
        for whole in ["é".repeat(1_000), String::new()] {
            assert_eq!(shortened(whole.clone()), whole);
        }
    }

    #[test]
    fn what_is_near_is_found_and_what_is_not_is_not() {
        let known = ["mentions", "overview", "saved_searches", "volume"];
        assert_eq!(nearest("mentons", known), Some("mentions"));
        assert_eq!(nearest("SavedSearches", known), Some("saved_searches"));
        assert_eq!(nearest("Volume", known), Some("volume"), "only the case differs");
        assert_eq!(nearest("customers", known), None);
        assert_eq!(nearest("nope", ["type", "name"]), None, "half of it is different");
        assert_eq!(nearest("titel", ["title"]), Some("title"));
        assert_eq!(nearest("id", ["as", "ID"]), Some("ID"));
        assert_eq!(nearest("mentions", known), None, "identical names are not suggested");
        assert_eq!(nearest(&"mentions".repeat(100_000), known), None, "too long to be a typo");
        // A comparison with one of these would take a gigabyte.
        let results: Vec<String> = (0..9).map(|number| format!("{number}{}", "mentions".repeat(100_000))).collect();
        let known = results.iter().map(String::as_str).chain(["mentions"]);
        assert_eq!(nearest(&"mentons".repeat(20), known.clone()), None);
        assert_eq!(nearest("mentons", known), Some("mentions"), "beside results without a name");
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

    #[test]
    fn a_name_is_guessed_by_its_words() {
        let known = [
            "id",
            "type",
            "author_id",
            "author_name",
            "author_followers",
            "language",
            "published_at",
            "reach",
            "system.requests",
        ];
        let cases = [
            ("autor", Some("author_name")),
            ("author", Some("author_name")),
            ("followers", Some("author_followers")),
            ("folowers", Some("author_followers")),
            ("lang", Some("language")),
            ("published", Some("published_at")),
            ("reech", Some("reach")),
            ("nope", None),
            ("colour", None),
            ("x", None),
            ("requests", Some("system.requests")),
        ];
        each(cases, |(typed, meant)| {
            assert_eq!(nearest_name(typed, &known), meant, "{typed}");
        });
    }
}
