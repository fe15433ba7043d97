//! Words of texts, and queries for words: the predicate `match(text, 'recall OR "battery fire" -test')`.
//!
//! ```text
//! text ──▶ folded: NFKD ─▶ no accents ─▶ no case ─▶ NFC ──▶ words, in order ──┐
//! query ─▶ tree of words and phrases, folded in the same way ─────────────────┴▶ does it match, and how well
//!              └▶ sought keys ─▶ an index of words (`store`) ─▶ rows that may match
//! ```
//!
//! One tokenizer serves texts, queries and the index, so that they agree about what a word is. The rows are decided by
//! [`Query::matches`] alone; an index only names rows that may match.

mod query;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use self::query::Query;
#[cfg(feature = "store")]
pub(crate) use self::query::Sought;
pub(crate) use self::text::Words;
#[cfg(feature = "store")]
pub(crate) use self::text::rules;

/// Name of the predicate in SQL.
pub(crate) const MATCH: &str = "match";
/// Name of the function in SQL that returns the score of a text.
pub(crate) const MATCH_SCORE: &str = "match_score";
