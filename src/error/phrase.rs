//! Messages in which settings and options are values, so that each front (shell, page, driver …) names them in its own way.
//!
//! ```text
//! Phrase ─ Display ▶ in the library:  add a LIMIT, or raise the limit: SET savedsearch.max_requests = 40
//!        └ worded ─▶ in the page:     add a LIMIT, or raise the limit: “At most 40 requests”
//! ```
//!
//! Without a front, the words are those of SQL and of the library's functions, or in a process of the program its commands and options
//! (`tool`). Each front has one function from a [`Term`] to text. Fronts without SQL and options of the program, the page and the
//! driver, match all terms, so that a new one does not compile until they have words for it.
//!
//! Invariant: no code searches a message for a setting. `tests/it/layout.rs` fails if advice has a setting as plain text.

use std::fmt;
use std::ops::{Add, Range};

use super::tool::{Tool, of_process};

/// Declares the settings: name, form of the value in SQL, and description.
macro_rules! settings {
    ($($variant:ident = $name:literal, $form:ident, $about:literal;)*) => {
        /// Session setting; [`SessionSettings`](crate::SessionSettings) has the types, defaults and values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
        pub enum Setting {
            $(#[doc = concat!("`", $name, "`: ", $about, ".")] $variant,)*
        }

        impl Setting {
            /// All settings.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Name without the prefix.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Description.
            pub(crate) fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => $about,)*
                }
            }

            fn form(self) -> Form {
                match self {
                    $(Self::$variant => Form::$form,)*
                }
            }
        }
    };
}

/// Form of a value in SQL.
enum Form {
    Text,
    /// A number, or on and off.
    Bare,
}

settings! {
    MaxRequests = "max_requests", Bare, "maximum number of requests per query, retries included";
    CountFromOverview = "count_from_overview", Text, "when to count mentions from the overview: exact, always or never";
    Completeness = "completeness", Text, "when not all mentions can be received: strict (fail) or report (warn)";
    Partial = "partial", Bare, "skip saved searches that the service refuses (403, 404), with a warning";
    LossyText = "lossy_text", Bare, "replace invalid UTF-8 and escapes in strings";
    Timezone = "timezone", Text, "time zone of days, literals and requests; empty: UTC, and the profile's default";
    Store = "store", Text, "use of the connection's store: off, read, write or read-write";
    Freshness = "freshness", Text, "maximum age of stored data used without a request, such as '15m'";
    KeepDeleted = "keep_deleted", Bare, "keep mentions in the store that the service has deleted, in system.deleted_mentions";
    Estimate = "estimate", Text,
        "how costs are estimated: known (without a request) or ask (may request the list, and an overview per saved search)";
    Concurrency = "concurrency", Bare, "maximum number of requests in flight per scan";
    RequestTimeout = "request_timeout", Bare, "timeout of a single attempt, in seconds";
    QueryDeadline = "query_deadline", Bare, "deadline of a query's last response, in seconds";
}

impl Setting {
    /// Advice to set it to a value.
    pub fn to(self, value: impl Into<String>) -> Change {
        Change { value: Some(value.into()), ..self.any() }
    }

    /// Advice to set it to any value.
    pub fn any(self) -> Change {
        Change { lead: String::new(), setting: self, value: None, rest: String::new() }
    }

    /// The setting with this name, which has no prefix.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }

    /// A value as SQL has it.
    fn literal(self, value: &str) -> String {
        match self.form() {
            Form::Text => format!("'{value}'"),
            Form::Bare => value.to_owned(),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "savedsearch.{}", self.name())
    }
}

/// Advice to change a setting. Fronts without settings leave it out, together with `lead` and `rest`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
pub struct Change {
    /// Text before it, such as `, or raise the limit: `.
    pub lead: String,
    /// Setting.
    pub setting: Setting,
    /// Value without quotes.
    pub value: Option<String>,
    /// Text after it, such as ` bypasses the store`.
    pub rest: String,
}

impl Change {
    /// Sets the text before it.
    #[must_use]
    pub fn after(self, lead: &str) -> Self {
        Self { lead: lead.to_owned(), ..self }
    }

    /// Sets the text after it.
    #[must_use]
    pub fn then(self, rest: &str) -> Self {
        Self { rest: rest.to_owned(), ..self }
    }

    /// Name and value, as in `savedsearch.max_requests = 40`.
    pub fn assignment(&self) -> String {
        let Self { setting, value, .. } = self;
        let value = value.as_deref().map(|value| format!(" = {}", setting.literal(value))).unwrap_or_default();
        format!("{setting}{value}")
    }

    /// The change in the words of a front, with the text before and after it.
    pub fn worded(&self, words: &str) -> String {
        format!("{}{words}{}", self.lead, self.rest)
    }
}

/// A part of a message that fronts word differently. `Display` has the words of SQL, and of the library or the program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
pub enum Term {
    /// Name of a setting.
    Setting(Setting),
    /// Advice to change a setting.
    Change(Change),
    /// List of the statements that a session accepts.
    Statements,
    /// Option with the address of the service.
    BaseUrl,
    /// Advice to read the key from a file.
    KeyFile,
    /// Option that permits sending the key in clear text.
    Insecure,
    /// Clause with the option that sets the limit of memory and temporary files.
    MemoryLimit,
    /// Option of the driver, by its full name.
    Option(String),
    /// Advice to run a statement as a query.
    AsQuery,
    /// Function of the library, or command of the program.
    Tool(Tool),
}

impl Term {
    /// Its kind, for programs.
    fn kind(&self) -> &'static str {
        match self {
            Self::Setting(_) => "setting",
            Self::Change(_) => "change",
            Self::Statements => "statements",
            Self::BaseUrl => "base_url",
            Self::KeyFile => "key_file",
            Self::Insecure => "insecure",
            Self::MemoryLimit => "memory_limit",
            Self::Option(_) => "option",
            Self::AsQuery => "as_query",
            Self::Tool(_) => "tool",
        }
    }

    /// Name of its setting or option, without the prefix.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Setting(setting) | Self::Change(Change { setting, .. }) => Some(setting.name()),
            Self::Option(name) => Some(name.strip_prefix("savedsearch.").unwrap_or(name)),
            Self::Statements
            | Self::BaseUrl
            | Self::KeyFile
            | Self::Insecure
            | Self::MemoryLimit
            | Self::AsQuery
            | Self::Tool(_) => None,
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Setting(setting) => return write!(f, "{setting}"),
            Self::Change(change) => return f.write_str(&change.worded(&format!("SET {}", change.assignment()))),
            Self::Option(name) => name.as_str(),
            Self::Statements => {
                "supported: queries, SET savedsearch.…, CREATE VIEW, CREATE TABLE … AS, DROP VIEW, DROP TABLE"
            }
            Self::BaseUrl => of_process("the base URL", "--base-url"),
            Self::KeyFile => of_process("read a file with `Secret::read`", "name a file with --api-key-file"),
            Self::Insecure => of_process("`ConnectionBuilder::insecure`", "--insecure"),
            Self::MemoryLimit => of_process(
                "; the session's `RuntimeEnv` sets the limit, `Limits::memory_mib` that of a server",
                "; the program's option --memory sets the limit",
            ),
            Self::AsQuery => "execute it as a query",
            Self::Tool(tool) => return write!(f, "{tool}"),
        };
        f.write_str(words)
    }
}

/// A message with its terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
pub struct Phrase {
    /// The message in the words of the process that made it.
    text: String,
    /// Terms in their order, each with the bytes of the text that are its words. A worker may have other words than its server.
    terms: Vec<(Range<usize>, Term)>,
}

impl Phrase {
    /// The message in the words of SQL, and of the library or the program.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The message in the words of a front.
    pub fn worded(&self, by: impl Fn(&Term) -> String) -> String {
        let pieces = self.pieces().into_iter();
        pieces.fold(String::new(), |line, (text, term)| line + text + &term.map(&by).unwrap_or_default())
    }

    /// Each term with the text before it, then the text after the last term.
    pub fn pieces(&self) -> Vec<(&str, Option<&Term>)> {
        let mut from = 0;
        let mut pieces = Vec::with_capacity(self.terms.len() + 1);
        for (at, term) in &self.terms {
            pieces.push((self.text.get(from..at.start).unwrap_or_default(), Some(term)));
            from = at.end;
        }
        pieces.push((self.text.get(from..).unwrap_or_default(), None));
        pieces
    }

    /// The pieces as JSON, for programs with their own words: a string is text, an object is a term with its words in a front.
    pub fn json(&self, by: impl Fn(&Term) -> String) -> String {
        let term = |term: &Term| {
            let lead = if let Term::Change(change) = term { change.lead.as_str() } else { "" };
            serde_json::json!({ "lead": lead, "name": term.name(), "term": term.kind(), "words": by(term) })
        };
        let pieces = self.pieces().into_iter();
        let pieces = pieces.flat_map(|(text, behind)| [Some(text.into()), behind.map(&term)]).flatten();
        serde_json::Value::from_iter(pieces).to_string()
    }

    /// True if any term fits.
    pub fn has(&self, fits: impl Fn(&Term) -> bool) -> bool {
        self.terms.iter().any(|(_, term)| fits(term))
    }

    /// True if there are no terms: the message is the same in all fronts.
    pub fn is_plain(&self) -> bool {
        self.terms.is_empty()
    }

    /// Applies `change` to all text between the terms.
    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        self.pieces().into_iter().fold(Self::default(), |phrase, (text, term)| {
            let phrase = phrase + change(text);
            match term {
                Some(term) => phrase + term.clone(),
                None => phrase,
            }
        })
    }

    /// The message, followed by advice.
    #[must_use]
    pub fn advised(mut self, mut advice: Self) -> Self {
        match advice.terms.first_mut() {
            // The separator is left out together with the change.
            Some((Range { start: 0, end }, Term::Change(change))) => {
                const LEAD: &str = "; ";
                change.lead.insert_str(0, LEAD);
                advice.text.insert_str(0, LEAD);
                *end += LEAD.len();
                advice.terms.iter_mut().skip(1).for_each(|(at, _)| *at = shifted(at, LEAD.len()));
            }
            _ => self.text.push_str("; "),
        }
        self + advice
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T: Into<String>> From<T> for Phrase {
    fn from(text: T) -> Self {
        Self { text: text.into(), terms: Vec::new() }
    }
}

impl From<Term> for Phrase {
    fn from(term: Term) -> Self {
        let text = term.to_string();
        Self { terms: vec![(0..text.len(), term)], text }
    }
}

impl From<Tool> for Phrase {
    fn from(tool: Tool) -> Self {
        Term::Tool(tool).into()
    }
}

impl From<Setting> for Phrase {
    fn from(setting: Setting) -> Self {
        Term::Setting(setting).into()
    }
}

impl From<Change> for Phrase {
    fn from(change: Change) -> Self {
        Term::Change(change).into()
    }
}

impl<T: Into<Phrase>> Add<T> for Phrase {
    type Output = Self;

    fn add(mut self, behind: T) -> Self {
        let (behind, from) = (behind.into(), self.text.len());
        self.text.push_str(&behind.text);
        self.terms.extend(behind.terms.into_iter().map(|(at, term)| (shifted(&at, from), term)));
        self
    }
}

/// Bytes that are further behind.
fn shifted(at: &Range<usize>, by: usize) -> Range<usize> {
    at.start.saturating_add(by)..at.end.saturating_add(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    /// Every term in a process that has chosen no words, which is one of an embedder.
    #[test]
    fn the_library_words_advice_as_its_own_functions_and_settings() {
        let cases = [
            (Term::Setting(Setting::MaxRequests), "savedsearch.max_requests"),
            (Term::Change(Setting::MaxRequests.to("50")), "SET savedsearch.max_requests = 50"),
            (Term::Change(Setting::Store.to("off")), "SET savedsearch.store = 'off'"),
            (
                Term::Statements,
                "supported: queries, SET savedsearch.…, CREATE VIEW, CREATE TABLE … AS, DROP VIEW, DROP TABLE",
            ),
            (Term::BaseUrl, "the base URL"),
            (Term::KeyFile, "read a file with `Secret::read`"),
            (Term::Insecure, "`ConnectionBuilder::insecure`"),
            (Term::MemoryLimit, "; the session's `RuntimeEnv` sets the limit, `Limits::memory_mib` that of a server"),
            (Term::Option("savedsearch.store".to_owned()), "savedsearch.store"),
            (Term::AsQuery, "execute it as a query"),
            (Term::Tool(Tool::VerifyStore), "`Connection::verify_store`"),
        ];
        each(cases, |(term, words)| {
            assert_eq!(term.to_string(), words);
            let phrase = Phrase::from("é ") + term.clone() + "; end";
            assert_eq!(phrase.as_str(), format!("é {words}; end"));
            assert_eq!(phrase.worded(|_| "ü".to_owned()), "é ü; end", "the words of another front");
        });
    }

    /// A worker of the program answers a server that is embedded.
    #[test]
    fn a_phrase_of_another_process_is_worded_anew() {
        let text = "`savedsearch store verify` lists such files".to_owned();
        let phrase = Phrase { text, terms: vec![(0..26, Term::Tool(Tool::VerifyStore))] };
        assert_eq!(phrase.worded(Term::to_string), "`Connection::verify_store` lists such files");
    }

    fn phrase() -> Phrase {
        Phrase::from("needs 9, but ").add(Setting::MaxRequests).add(" allows 2").advised(
            Phrase::from("add a LIMIT") + Setting::MaxRequests.to("40").after(", or raise the limit: ").then(" for it"),
        )
    }

    #[test]
    fn a_front_words_the_terms_and_nothing_else() {
        let sql = "needs 9, but savedsearch.max_requests allows 2; add a LIMIT, or raise the limit: \
                   SET savedsearch.max_requests = 40 for it";
        let phrase = phrase();
        assert_eq!(phrase.to_string(), sql);
        assert_eq!(phrase.worded(Term::to_string), sql);
        let without = |term: &Term| match term {
            Term::Setting(setting) => format!("<{}>", setting.name()),
            _ => String::new(),
        };
        assert_eq!(phrase.worded(without), "needs 9, but <max_requests> allows 2; add a LIMIT");
        let loud = phrase.map(str::to_uppercase);
        assert_eq!(loud.worded(without), "NEEDS 9, BUT <max_requests> ALLOWS 2; ADD A LIMIT");
        let alone = Phrase::from("full").advised(Setting::Store.to("off").then(" bypasses the store").into());
        assert_eq!(alone.to_string(), "full; SET savedsearch.store = 'off' bypasses the store");
        assert_eq!(alone.worded(without), "full");
        let json = r#"["full",{"lead":"; ","name":"store","term":"change","words":"leave it out"},""]"#;
        let found: serde_json::Value = alone.json(|_| "leave it out".to_owned()).parse().expect("JSON");
        assert_eq!(found, json.parse::<serde_json::Value>().expect("JSON"));
        let cut = Phrase {
            text: "é".to_owned(),
            terms: vec![(1..1, Term::BaseUrl), (usize::MAX..usize::MAX, Term::BaseUrl)],
        };
        assert_eq!(cut.worded(without), "", "places that are none");
    }
}
