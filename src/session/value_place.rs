//! Place of a literal that cannot be cast. The engine's error has its value, but no place.
//!
//! Invariant: a place is returned only if the text has one literal with this value.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::between;

/// Texts before and behind the value in messages about casts: those of the engine, and those of PostgreSQL.
const MESSAGES: [(&str, &str); 5] = [
    ("Cannot cast string '", "' to value of "),
    ("Can't cast value ", " to type "),
    ("invalid date '", "'; expected "),
    ("invalid timestamp '", "'; expected "),
    (": \"", "\""),
];

/// Beginning of the messages of PostgreSQL.
const OF_POSTGRES: &str = "invalid input syntax for type ";

/// 1-based line and column of the literal that a message calls invalid.
pub(crate) fn place_of_value(message: &str, text: &str) -> Option<(usize, usize)> {
    let is_about = |before: &str| message.starts_with(if before == ": \"" { OF_POSTGRES } else { before });
    let (before, behind) = MESSAGES.into_iter().find(|(before, _)| is_about(before))?;
    let value = between(message, before, behind)?;
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().ok()?;
    let mut places = tokens.iter().filter(|token| match &token.token {
        Token::SingleQuotedString(literal) | Token::Number(literal, _) => literal == value,
        _ => false,
    });
    let start = places.next().filter(|_| places.next().is_none())?.span.start;
    Some((usize::try_from(start.line).ok()?, usize::try_from(start.column).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn a_literal_that_cannot_be_cast_has_its_place() {
        let string = "Cannot cast string 'x' to value of Int32 type";
        let cases = [
            (string, "SELECT CAST('x' AS int)", Some((1, 13))),
            (string, "SELECT 'y',\n  'x'::int", Some((2, 3))),
            ("Cannot cast string 'it's' to value of Int32 type", "SELECT 'it''s'::int", Some((1, 8))),
            ("Can't cast value 300 to type Int8", "SELECT 300::tinyint", Some((1, 8))),
            (
                "invalid date '2026-02-30'; expected a day of the calendar, such as '2026-05-01'",
                "SELECT 1\nWHERE '2026-02-30'::date > '2026-05-01'",
                Some((2, 7)),
            ),
            (
                "invalid timestamp 'soon'; expected a form such as '2026-05-01' or '2026-05-01T12:00:00Z'",
                "SELECT timestamp 'soon'",
                Some((1, 18)),
            ),
            ("invalid input syntax for type integer: \"x\"", "SELECT 'x'::int", Some((1, 8))),
            // A value of a row, or one of several literals.
            (string, "SELECT title::int FROM mentions", None),
            (string, "SELECT 'x', 'x'::int", None),
            ("division by zero", "SELECT 'division by zero', 1 / 0", None),
            (string, "SELECT 'x", None),
        ];
        each(cases, |(message, text, place)| assert_eq!(place_of_value(message, text), place, "{text}"));
    }
}
