//! Queries for words.
//!
//! ```text
//! either  = all { OR all }
//! all     = part { [AND] part }
//! part    = [ - | NOT ] ( word | word* | "phrase" | ( either ) )
//! ```
//!
//! `AND`, `OR` and `NOT` are operators in capitals, words otherwise. AND binds more strongly than OR. A word with separators
//! within, such as `wi-fi`, is a phrase. Quotation marks of other languages, fullwidth signs and dashes are accepted in place of
//! `"`, `(`, `)`, `*` and `-`, because texts are pasted from other programs.

use std::iter::Peekable;
use std::str::CharIndices;

use super::text::{Words, is_within_word};
#[cfg(feature = "store")]
use super::text::{is_single, key_of, pair_of};
use crate::error::{Error, ErrorKind, Result};
use crate::memory;

/// Maximum number of bytes of a query.
const BYTES: usize = 4_096;
/// Maximum number of words in a query.
const WORDS: usize = 256;
/// Maximum number of parentheses within each other.
const DEPTH: usize = 16;
/// Positions in a text between two checks that the statement goes on.
const CHECKED: usize = 1 << 13;
/// Number of occurrences of a word at which further ones count little for the score, as `k1` of BM25.
const SATURATION: f64 = 1.2;
/// Part of the score that depends on the length of a text, as `b` of BM25.
const LENGTH: f64 = 0.75;
/// Number of words of a text that is neither short nor long. A constant, so that a score does not depend on other texts.
const USUAL: f64 = 40.0;

/// A query for words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Phrase(Phrase),
}

/// Words that follow each other.
#[derive(Debug, Clone, PartialEq)]
struct Phrase {
    /// At least one.
    words: Vec<String>,
    /// Set if the last word is the beginning of one.
    open: bool,
}

/// Keys in an index of words: only texts that have them can match a query.
#[cfg(feature = "store")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sought {
    /// The key.
    Key(String),
    /// One of the keys with this beginning.
    Beginning(String),
    /// All of them; at least one.
    All(Vec<Sought>),
    /// One of them; at least one.
    Any(Vec<Sought>),
}

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] naming the place for another text; [`ErrorKind::TooLarge`] for a longer one.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text.len() > BYTES {
            let message = format!("a search query of {} bytes is too long (limit {BYTES})", text.len());
            return Err(Error::new(ErrorKind::TooLarge, message).advice("use several calls of match"));
        }
        let mut parser = Parser { text, rest: text.char_indices().peekable(), words: 0, depth: 0 };
        let node = parser.either()?;
        match parser.rest.peek().copied() {
            None => Ok(Self(node)),
            Some((at, _)) => Err(parser.wrong(at, "`)` without `(`")),
        }
    }

    /// True if a text with these words matches.
    ///
    /// # Errors
    /// Those of [`memory::check`].
    pub(crate) fn matches(&self, words: &Words) -> Result<bool> {
        self.0.matches(words)
    }

    /// The score of a text with these words: how often it has the words of the query, with less weight for each further
    /// occurrence and for long texts. Zero if the text does not match.
    ///
    /// # Errors
    /// Those of [`memory::check`].
    pub(crate) fn score(&self, words: &Words) -> Result<f64> {
        if self.matches(words)? { self.0.score(words) } else { Ok(0.0) }
    }

    /// The keys by which an index finds the texts that may match; `None` if it cannot.
    #[cfg(feature = "store")]
    pub(crate) fn sought(&self) -> Option<Sought> {
        self.0.sought()
    }
}

impl Node {
    fn matches(&self, words: &Words) -> Result<bool> {
        // All of several hold unless one does not, and one of several holds if it does.
        let (nodes, decisive) = match self {
            Self::All(nodes) => (nodes, false),
            Self::Any(nodes) => (nodes, true),
            Self::Not(node) => return Ok(!node.matches(words)?),
            Self::Phrase(phrase) => return Ok(phrase.count(words, 1)? > 0),
        };
        for node in nodes {
            if node.matches(words)? == decisive {
                return Ok(decisive);
            }
        }
        Ok(!decisive)
    }

    fn score(&self, words: &Words) -> Result<f64> {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().map(|node| node.score(words)).sum(),
            Self::Not(_) => Ok(0.0),
            Self::Phrase(phrase) => {
                let (found, length) = (phrase.count(words, usize::MAX)? as f64, words.len() as f64);
                let weight = SATURATION * (1.0 - LENGTH + LENGTH * length / USUAL);
                Ok(found * (SATURATION + 1.0) / (found + weight))
            }
        }
    }

    #[cfg(feature = "store")]
    fn sought(&self) -> Option<Sought> {
        match self {
            Self::All(nodes) => Sought::all(nodes.iter().filter_map(Self::sought).collect()),
            Self::Any(nodes) => Some(Sought::any(nodes.iter().map(Self::sought).collect::<Option<_>>()?)),
            Self::Not(_) => None,
            Self::Phrase(phrase) => phrase.sought(),
        }
    }
}

impl Phrase {
    /// Number of positions at which a text with these words has the phrase; not more than `most` are looked for.
    fn count(&self, words: &Words, most: usize) -> Result<usize> {
        let places = (words.len() + 1).saturating_sub(self.words.len());
        let mut count = 0;
        for place in 0..places {
            if place % CHECKED == CHECKED - 1 {
                memory::check()?;
            }
            count += usize::from(self.is_at(place, words));
            if count == most {
                break;
            }
        }
        Ok(count)
    }

    /// True if a text with these words has the phrase at a position.
    fn is_at(&self, place: usize, words: &Words) -> bool {
        let last = self.words.len() - 1;
        self.words.iter().enumerate().all(|(at, wanted)| {
            let word = words.at(place + at);
            if self.open && at == last { word.starts_with(wanted.as_str()) } else { word == wanted }
        })
    }

    #[cfg(feature = "store")]
    fn sought(&self) -> Option<Sought> {
        let last = self.words.len() - 1;
        let mut keys = Vec::with_capacity(self.words.len());
        let (mut pair, mut before) = (String::new(), None);
        for (at, word) in self.words.iter().enumerate() {
            let single = is_single(word);
            match before {
                Some(before) if single => keys.push(Sought::Key(pair_of(&mut pair, before, word).to_owned())),
                // The pair has both.
                _ if single && self.words.get(at + 1).is_some_and(|next| is_single(next)) => {}
                _ if self.open && at == last && !single => keys.push(Sought::Beginning(key_of(word).to_owned())),
                _ => keys.push(Sought::Key(key_of(word).to_owned())),
            }
            before = single.then_some(word.as_str());
        }
        Sought::all(keys)
    }
}

#[cfg(feature = "store")]
impl Sought {
    fn all(mut keys: Vec<Self>) -> Option<Self> {
        match keys.len() {
            0 | 1 => keys.pop(),
            _ => Some(Self::All(keys)),
        }
    }

    /// One of these; at least one. Each key of an index begins with one of the beginnings at most, so that it is read once.
    fn any(mut keys: Vec<Self>) -> Self {
        let beginnings = keys.iter().filter_map(|key| match key {
            Self::Beginning(beginning) => Some(beginning.clone()),
            _ => None,
        });
        let mut beginnings: Vec<String> = beginnings.collect();
        // Those with the same beginning follow it.
        beginnings.sort_unstable();
        beginnings.dedup_by(|next, before| next.starts_with(before.as_str()));
        keys.retain(|key| match key {
            Self::Key(key) | Self::Beginning(key) => {
                !beginnings.iter().any(|beginning| key.starts_with(beginning.as_str()))
            }
            Self::All(_) | Self::Any(_) => true,
        });
        keys.extend(beginnings.into_iter().map(Self::Beginning));
        if keys.len() == 1 { keys.remove(0) } else { Self::Any(keys) }
    }
}

/// An operator that is written as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    And,
    Or,
    Not,
}

struct Parser<'q> {
    text: &'q str,
    rest: Peekable<CharIndices<'q>>,
    /// Number of words so far.
    words: usize,
    /// Number of open parentheses.
    depth: usize,
}

impl Parser<'_> {
    fn either(&mut self) -> Result<Node> {
        let mut nodes = vec![self.all()?];
        while self.takes(Operator::Or) {
            nodes.push(self.all()?);
        }
        Ok(only(nodes, Node::Any))
    }

    fn all(&mut self) -> Result<Node> {
        let mut nodes = vec![self.part()?];
        loop {
            let joined = self.takes(Operator::And);
            let ends = match self.ahead() {
                None | Some((_, ')')) => true,
                Some((at, _)) => self.operator(at) == Some(Operator::Or),
            };
            if ends && !joined {
                return Ok(only(nodes, Node::All));
            }
            nodes.push(self.part()?);
        }
    }

    fn part(&mut self) -> Result<Node> {
        if let Some((at, '-')) = self.ahead() {
            self.rest.next();
            if self.rest.peek().is_none_or(|(_, character)| character.is_whitespace()) {
                return Err(self.wrong(at, "`-` without a word right after it"));
            }
            return Ok(Node::Not(Box::new(self.operand()?)));
        }
        match self.takes(Operator::Not) {
            true => Ok(Node::Not(Box::new(self.operand()?))),
            false => self.operand(),
        }
    }

    fn operand(&mut self) -> Result<Node> {
        match self.ahead() {
            None => Err(self.wrong(self.text.len(), "a word is missing")),
            Some((at, ')')) => Err(self.wrong(at, "a word is missing")),
            Some((at, '-')) => Err(self.wrong(at, "a second negation")),
            Some((at, '(')) => self.within(at),
            Some((at, '"')) => self.quoted(at),
            Some((at, _)) if self.operator(at).is_some() => Err(self.wrong(at, "an operator in place of a word")),
            Some((at, _)) => self.word(at),
        }
    }

    /// Parses a query in parentheses, which begins here.
    fn within(&mut self, at: usize) -> Result<Node> {
        self.rest.next();
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.wrong(at, &format!("more than {DEPTH} parentheses within each other")));
        }
        let node = self.either()?;
        self.depth -= 1;
        match self.ahead() {
            Some((_, ')')) => self.rest.next(),
            _ => return Err(self.wrong(at, "`(` without `)`")),
        };
        Ok(node)
    }

    /// Parses a phrase in quotation marks, which begins here.
    fn quoted(&mut self, at: usize) -> Result<Node> {
        self.rest.next();
        let start = self.rest.peek().map_or(self.text.len(), |(at, _)| *at);
        match self.rest.by_ref().find(|(_, character)| plain(*character) == '"') {
            Some((end, _)) => self.phrase(start, end),
            None => Err(self.wrong(at, "a quotation mark without a second one")),
        }
    }

    /// Parses a word, which begins here.
    fn word(&mut self, start: usize) -> Result<Node> {
        let end = self.end_of_word(start);
        while self.rest.next_if(|(at, _)| *at < end).is_some() {}
        self.phrase(start, end)
    }

    /// Reads the words between two places.
    fn phrase(&mut self, start: usize, end: usize) -> Result<Node> {
        let text = &self.text[start..end];
        let cut = text.trim_end().strip_suffix(['*', '＊']);
        let mut words = Words::default();
        words.read(cut.unwrap_or(text))?;
        let words: Vec<String> = words.iter().map(str::to_owned).collect();
        if words.is_empty() {
            return Err(self.wrong(start, &format!("`{text}` has no letters or digits")));
        }
        let ends_with_word = cut.and_then(|cut| cut.chars().next_back()).is_none_or(is_within_word);
        if cut.unwrap_or(text).contains(['*', '＊']) || !ends_with_word {
            return Err(self.wrong(start, &format!("`*` in `{text}` is not at the end of a word")));
        }
        self.words += words.len();
        if self.words > WORDS {
            let message = format!("a search query has more than {WORDS} words");
            return Err(Error::new(ErrorKind::TooLarge, message).advice("use several calls of match"));
        }
        Ok(Node::Phrase(Phrase { words, open: cut.is_some() }))
    }

    /// The next character that is no space, and its place.
    fn ahead(&mut self) -> Option<(usize, char)> {
        while self.rest.next_if(|(_, character)| character.is_whitespace()).is_some() {}
        self.rest.peek().map(|(at, character)| (*at, plain(*character)))
    }

    /// Takes an operator if it is next.
    fn takes(&mut self, operator: Operator) -> bool {
        let Some((start, _)) = self.ahead() else { return false };
        let found = self.operator(start) == Some(operator);
        let end = if found { self.end_of_word(start) } else { start };
        while self.rest.next_if(|(at, _)| *at < end).is_some() {}
        found
    }

    /// The operator that begins at a place.
    fn operator(&self, start: usize) -> Option<Operator> {
        match &self.text[start..self.end_of_word(start)] {
            "AND" => Some(Operator::And),
            "OR" => Some(Operator::Or),
            "NOT" => Some(Operator::Not),
            _ => None,
        }
    }

    /// The end of the word that begins at a place.
    fn end_of_word(&self, start: usize) -> usize {
        let ends = |character: char| character.is_whitespace() || matches!(plain(character), '(' | ')' | '"');
        self.text[start..].find(ends).map_or(self.text.len(), |length| start + length)
    }

    fn wrong(&self, at: usize, what: &str) -> Error {
        let place = self.text[..at].chars().count() + 1;
        let message = format!("invalid search query: {what}, at character {place}");
        Error::new(ErrorKind::Query, message)
            .advice("use words, OR, \"phrases\", -word, parentheses and the beginning of a word, such as batter*")
    }
}

/// The only one of some nodes, or all of them as one.
fn only(mut nodes: Vec<Node>, several: fn(Vec<Node>) -> Node) -> Node {
    match nodes.len() {
        1 => nodes.remove(0),
        _ => several(nodes),
    }
}

/// The sign of the query language that another sign stands for.
fn plain(character: char) -> char {
    match character {
        '“' | '”' | '„' | '«' | '»' | '＂' => '"',
        '（' => '(',
        '）' => ')',
        '－' | '–' | '—' | '−' => '-',
        other => other,
    }
}
