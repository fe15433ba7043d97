//! Text for people in which settings and options are values, so that each front words them in its own way.
//!
//! ```text
//! Phrase ─ Display ▶ as SQL words it:   add a LIMIT, or raise the limit: SET savedsearch.max_requests = 40
//!        └ worded ─▶ as the page does:  add a LIMIT, or raise the limit: “At most 40 requests”
//! ```
//!
//! Each front has one function from a [`Term`] to text, which is a match of all of them.
//!
//! Invariant: no code looks for a setting in a text. `tests/it/layout.rs` fails for advice with a setting that is plain text.

use std::fmt;
use std::ops::Add;

/// Declares the settings that advice can name.
macro_rules! settings {
    ($($(#[$about:meta])* $variant:ident = $name:literal,)*) => {
        /// Session setting; [`SessionSettings`](crate::SessionSettings) has the values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
        pub enum Setting {
            $($(#[$about])* $variant,)*
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
        }
    };
}

settings! {
    /// Requests per query.
    MaxRequests = "max_requests",
    /// Counts from the overview.
    CountFromOverview = "count_from_overview",
    /// Failure or warning if rows are missing.
    Completeness = "completeness",
    /// Saved searches that may be missing.
    Partial = "partial",
    /// Replacement of invalid characters.
    LossyText = "lossy_text",
    /// Time zone.
    Timezone = "timezone",
    /// Use of the store.
    Store = "store",
    /// Age of stored data.
    Freshness = "freshness",
    /// Mentions that the service has deleted.
    KeepDeleted = "keep_deleted",
    /// Requests of estimates.
    Estimate = "estimate",
    /// Requests in flight.
    Concurrency = "concurrency",
    /// Timeout of an attempt.
    RequestTimeout = "request_timeout",
    /// Deadline of a query.
    QueryDeadline = "query_deadline",
}

impl Setting {
    /// Advice to set it to a value.
    pub fn to(self, value: impl Into<String>) -> Change {
        Change { value: Some(value.into()), ..self.any() }
    }

    /// Advice to set it, which leaves the value open.
    pub fn any(self) -> Change {
        Change { lead: String::new(), setting: self, value: None, rest: String::new() }
    }

    /// The setting with this name, which has no prefix.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }

    /// A value as SQL has it.
    fn literal(self, value: &str) -> String {
        match self {
            Self::CountFromOverview
            | Self::Completeness
            | Self::Timezone
            | Self::Store
            | Self::Freshness
            | Self::Estimate => format!("'{value}'"),
            Self::MaxRequests
            | Self::Partial
            | Self::LossyText
            | Self::KeepDeleted
            | Self::Concurrency
            | Self::RequestTimeout
            | Self::QueryDeadline => value.to_owned(),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "savedsearch.{}", self.name())
    }
}

/// Advice to change a setting. A front without settings leaves it out, with the text around it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
pub struct Change {
    /// Text that leads to it, such as `, or raise the limit: `.
    pub lead: String,
    /// Setting.
    pub setting: Setting,
    /// Value without quotes.
    pub value: Option<String>,
    /// Text that follows it, such as ` bypasses the store`.
    pub rest: String,
}

impl Change {
    /// Adds the text that leads to it.
    #[must_use]
    pub fn after(self, lead: &str) -> Self {
        Self { lead: lead.to_owned(), ..self }
    }

    /// Adds the text that follows it.
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

    /// The words of a front for the change, with the text around it.
    pub fn worded(&self, words: &str) -> String {
        format!("{}{words}{}", self.lead, self.rest)
    }
}

/// A part of a text that fronts word differently. Its `Display` is how SQL and the command line word it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
pub enum Term {
    /// Name of a setting.
    Setting(Setting),
    /// Advice to change a setting.
    Change(Change),
    /// Statements that run in a session.
    Statements,
    /// The address of the service.
    BaseUrl,
    /// Advice to name a file that has the key.
    KeyFile,
    /// Permission to send the key in clear text.
    Insecure,
    /// The same permission in a Rust program, after that in a file.
    InsecureInRust,
    /// Clause about the limit of memory.
    MemoryLimit,
    /// Option of the driver, by its full name.
    Option(String),
    /// Advice to run a statement as a query.
    AsQuery,
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
            Self::InsecureInRust => "insecure_in_rust",
            Self::MemoryLimit => "memory_limit",
            Self::Option(_) => "option",
            Self::AsQuery => "as_query",
        }
    }

    /// Name of the setting or option that it is about, without the prefix.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Setting(setting) | Self::Change(Change { setting, .. }) => Some(setting.name()),
            Self::Option(name) => Some(name.strip_prefix("savedsearch.").unwrap_or(name)),
            Self::Statements
            | Self::BaseUrl
            | Self::KeyFile
            | Self::Insecure
            | Self::InsecureInRust
            | Self::MemoryLimit
            | Self::AsQuery => None,
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
            Self::BaseUrl => "--base-url",
            Self::KeyFile => "name a file with --api-key-file",
            Self::Insecure => "--insecure",
            Self::InsecureInRust => ", ConnectionBuilder::insecure in a program",
            Self::MemoryLimit => "; the program's option --memory sets the limit",
            Self::AsQuery => "execute it as a query",
        };
        f.write_str(words)
    }
}

/// See the module's documentation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "distributed", derive(serde::Deserialize, serde::Serialize))]
pub struct Phrase {
    /// The text as SQL words it.
    text: String,
    /// Terms, each with its place in the text, in their order.
    terms: Vec<(usize, Term)>,
}

impl Phrase {
    /// The text as SQL words it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text with its terms as a front words them.
    pub fn worded(&self, by: impl Fn(&Term) -> String) -> String {
        let pieces = self.pieces().into_iter();
        pieces.fold(String::new(), |line, (text, term)| line + text + &term.map(&by).unwrap_or_default())
    }

    /// The text before each term, with the term, and that after the last one.
    pub fn pieces(&self) -> Vec<(&str, Option<&Term>)> {
        let mut from = 0;
        let mut pieces = Vec::with_capacity(self.terms.len() + 1);
        for (at, term) in &self.terms {
            pieces.push((self.text.get(from..*at).unwrap_or_default(), Some(term)));
            from = at.saturating_add(term.to_string().len());
        }
        pieces.push((self.text.get(from..).unwrap_or_default(), None));
        pieces
    }

    /// The pieces as JSON, for programs with words of their own: texts, and terms with the words of a front.
    pub fn json(&self, by: impl Fn(&Term) -> String) -> String {
        let term = |term: &Term| {
            let lead = if let Term::Change(change) = term { change.lead.as_str() } else { "" };
            serde_json::json!({ "lead": lead, "name": term.name(), "term": term.kind(), "words": by(term) })
        };
        let pieces = self.pieces().into_iter();
        let pieces = pieces.flat_map(|(text, behind)| [Some(text.into()), behind.map(&term)]).flatten();
        serde_json::Value::from_iter(pieces).to_string()
    }

    /// True if a term fits.
    pub fn has(&self, fits: impl Fn(&Term) -> bool) -> bool {
        self.terms.iter().any(|(_, term)| fits(term))
    }

    /// True if every front words the text alike.
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

    /// The text with advice behind it.
    #[must_use]
    pub fn advised(mut self, mut advice: Self) -> Self {
        match advice.terms.first_mut() {
            // It is left out with what leads to it.
            Some((0, Term::Change(change))) => {
                const LEAD: &str = "; ";
                change.lead.insert_str(0, LEAD);
                advice.text.insert_str(0, LEAD);
                advice.terms.iter_mut().skip(1).for_each(|(at, _)| *at += LEAD.len());
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
        Self { text: term.to_string(), terms: vec![(0, term)] }
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
        self.terms.extend(behind.terms.into_iter().map(|(at, term)| (from + at, term)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let cut = Phrase { text: "é".to_owned(), terms: vec![(1, Term::BaseUrl), (usize::MAX, Term::BaseUrl)] };
        assert_eq!(cut.worded(without), "", "places that are none");
    }
}
