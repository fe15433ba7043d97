//! Variables of scripts and of the prompt: `:name` in a statement is replaced by the text that was set with `\set` or
//! `--variable`.
//!
//! As in psql, `:name` is replaced by the text itself, `:'name'` by a string with the text, and `:"name"` by a quoted name.
//! Nothing is replaced in quotes and comments, and `::` is a cast. A variable that is not set is an error, except in
//! brackets and braces, where `[a:b]` is a slice and `{a:b}` a struct.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::session::literal;

/// Variables by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables(BTreeMap<String, String>);

/// A text with its variables replaced.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// Each value in this text, and the variable in the typed one that it replaces: ranges of bytes, in order.
    #[cfg_attr(not(feature = "ui"), expect(dead_code, reason = "the page alone maps places back"))]
    values: Vec<(Range<usize>, Range<usize>)>,
}

/// Reason why variables cannot be inserted into a text.
#[derive(Debug)]
pub(crate) enum NotExpanded {
    /// A variable is not set.
    Unset {
        name: String,
        /// Number of characters before it in the text.
        #[cfg_attr(not(feature = "ui"), expect(dead_code, reason = "the page alone marks it"))]
        before: usize,
    },
    /// The expanded text would have more bytes than this limit.
    TooLong(usize),
}

impl fmt::Display for NotExpanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset { name, .. } => write!(f, "variable `{name}` is not set; use \\set {name} VALUE"),
            Self::TooLong(most) => write!(f, "statement too long with its variables: the limit is {most} bytes"),
        }
    }
}

/// Form in which a variable is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    String,
    Name,
}

impl Variables {
    /// Sets a variable.
    ///
    /// # Errors
    /// One line if the name is not one.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name_at(name) != name || name.is_empty() {
            return Err(format!("invalid variable name `{name}`: expected letters, digits and _"));
        }
        self.0.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Names and values, by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns a text with its variables replaced.
    ///
    /// # Errors
    /// One line naming a variable that is not set.
    pub(crate) fn expand(&self, text: &str) -> Result<String, String> {
        self.expanded(text, usize::MAX).map(|expanded| expanded.text).map_err(|reason| reason.to_string())
    }

    /// As [`expand`](Self::expand), with the places of the values. The expanded text has at most `most` bytes.
    ///
    /// # Errors
    /// A variable that is not set, or a text that would be too long.
    pub(crate) fn expanded(&self, text: &str, most: usize) -> Result<Expanded, NotExpanded> {
        let (mut shown, mut rest, mut depth) = (String::with_capacity(text.len()), text, 0_usize);
        let mut values = Vec::new();
        while let Some(c) = rest.chars().next() {
            let length = match c {
                '\'' | '"' | '`' => quoted(rest, c),
                '$' => dollar_quoted(rest),
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => comment(rest),
                ':' if rest.starts_with("::") || rest.starts_with(":=") => 2,
                ':' => {
                    if let Some((form, name, length)) = variable(rest) {
                        match self.0.get(name) {
                            Some(value) if shown.len().saturating_add(value.len()) > most => {
                                return Err(NotExpanded::TooLong(most));
                            }
                            Some(value) => {
                                let (from, typed) = (shown.len(), text.len() - rest.len());
                                shown.push_str(&form.of(value));
                                values.push((from..shown.len(), typed..typed + length));
                                rest = &rest[length..];
                                continue;
                            }
                            None if depth > 0 && form == Form::Text => {}
                            None => {
                                let before = text[..text.len() - rest.len()].chars().count();
                                return Err(NotExpanded::Unset { name: name.to_owned(), before });
                            }
                        }
                    }
                    1
                }
                _ => {
                    match c {
                        '[' | '{' => depth += 1,
                        ']' | '}' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    c.len_utf8()
                }
            };
            shown.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        Ok(Expanded { text: shown, values })
    }
}

#[cfg(feature = "ui")]
impl Expanded {
    /// Characters before a place in the typed text, by those before it in the expanded one. Within a value, the place is the
    /// variable.
    pub(crate) fn typed(&self, typed: &str, before: usize) -> usize {
        let at = self.text.char_indices().nth(before).map_or(self.text.len(), |(at, _)| at);
        let last = self.values.iter().rev().find(|(value, _)| at >= value.start);
        let at = match last {
            Some((value, variable)) if at >= value.end => at - value.end + variable.end,
            Some((_, variable)) => variable.start,
            None => at,
        };
        typed.get(..at).unwrap_or(typed).chars().count()
    }
}

impl Form {
    fn of(self, value: &str) -> String {
        match self {
            Self::Text => value.to_owned(),
            Self::String => literal(value),
            Self::Name => format!("\"{}\"", value.replace('"', "\"\"")),
        }
    }
}

/// The variable that a text begins with, and the length of its mention.
fn variable(text: &str) -> Option<(Form, &str, usize)> {
    let rest = &text[1..];
    let (form, quote) = match rest.chars().next()? {
        '\'' => (Form::String, "'"),
        '"' => (Form::Name, "\""),
        _ => (Form::Text, ""),
    };
    let name = name_at(&rest[quote.len()..]);
    let closed = rest[quote.len() + name.len()..].starts_with(quote);
    (!name.is_empty() && closed).then_some((form, name, 1 + 2 * quote.len() + name.len()))
}

/// The name that a text begins with; empty if there is none.
fn name_at(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &text[..end] }
}

/// Length of a quoted text. A doubled quote ends one and begins the next.
fn quoted(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

/// Length of a text between `$tag$` and `$tag$`; of the sign alone if it begins none.
fn dollar_quoted(text: &str) -> usize {
    let Some(end) = text[1..].find('$').map(|end| end + 2) else { return 1 };
    let tag = &text[..end];
    match name_at(&tag[1..end - 1]).len() + 2 == end {
        true => text[end..].find(tag).map_or(text.len(), |close| end + close + end),
        false => 1,
    }
}

/// Length of a comment, which may contain others.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn variables_are_replaced_outside_of_quotes_and_comments() {
        let mut variables = Variables::default();
        for (name, value) in [("days", "7"), ("brand", "O'Neill"), ("table", "a \"b\"")] {
            variables.set(name, value).expect("a name");
        }
        let cases = [
            ("SELECT :days, :'brand', :\"table\"", "SELECT 7, 'O''Neill', \"a \"\"b\"\"\""),
            ("SELECT ':days', \":days\", `:days`, $$:days$$, $a$:days$a$", ""),
            (
                "SELECT 1::days -- :days\n/* :days /* x */ :days */ + :days",
                "SELECT 1::days -- :days\n/* :days /* x */ :days */ + 7",
            ),
            ("SELECT a[1:2], a[x:y], {'a':b}, '日本':: text, $1", ""),
            ("INTERVAL ':days' + INTERVAL '1' /* open :days", ""),
            ("SELECT 'open :days", ""),
        ];
        each(cases, |(text, expected)| {
            let expected = if expected.is_empty() { text } else { expected };
            assert_eq!(variables.expand(text).as_deref(), Ok(expected), "{text}");
        });
        assert_eq!(variables.expand("a[:days:3]").as_deref(), Ok("a[7:3]"));
    }

    #[cfg(feature = "ui")]
    #[test]
    fn places_are_those_of_the_typed_text() {
        let mut variables = Variables::default();
        for (name, value) in [("long", "réseau social"), ("none", "")] {
            variables.set(name, value).expect("a name");
        }
        let typed = "SELECT :'long', é, :none x, :'long' y";
        let expanded = variables.expanded(typed, 100).expect("all are set");
        assert_eq!(expanded.text, "SELECT 'réseau social', é,  x, 'réseau social' y");
        let place = |part: &str, after: usize| {
            let before = expanded.text[..expanded.text.find(part).expect("it is there")].chars().count() + after;
            typed.chars().skip(expanded.typed(typed, before)).collect::<String>()
        };
        let cases = [
            ("SELECT", 0, typed),
            ("'réseau", 0, ":'long', é, :none x, :'long' y"),
            ("social", 2, ":'long', é, :none x, :'long' y"),
            (", é", 0, ", é, :none x, :'long' y"),
            ("é,  x", 0, "é, :none x, :'long' y"),
            (" x, '", 0, " x, :'long' y"),
            ("' y", 1, " y"),
            (" y", 2, ""),
        ];
        each(cases, |(part, after, expected)| {
            assert_eq!(place(part, after), expected, "{part}");
        });
    }

    #[cfg(feature = "ui")]
    #[test]
    fn a_variable_that_is_not_set_has_a_place() {
        let mut variables = Variables::default();
        variables.set("a", "a long value").expect("a name");
        let unset = variables.expanded("é :a ':b' :'b'", usize::MAX).expect_err("one is not set");
        assert!(matches!(&unset, NotExpanded::Unset { name, before: 10 } if name == "b"), "{unset}");
    }

    #[test]
    fn a_text_that_becomes_too_long_is_refused_before_it_is_made() {
        let mut variables = Variables::default();
        variables.set("long", &"x".repeat(1 << 20)).expect("a name");
        let text = ":long ".repeat(100_000);
        let error = variables.expanded(&text, 4 << 20).expect_err("100 GB");
        assert_eq!(error.to_string(), "statement too long with its variables: the limit is 4194304 bytes");
        variables.expanded(":long :long", 4 << 20).expect("2 MiB");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        for text in ["SELECT :from", "WHERE a = :'from'", "{'a': :\"from\"}"] {
            let wrong = Variables::default().expand(text).expect_err(text);
            assert_eq!(wrong, "variable `from` is not set; use \\set from VALUE");
        }
        for name in ["", "1a", "a b", "a-b"] {
            Variables::default().set(name, "x").expect_err(name);
        }
    }
}
