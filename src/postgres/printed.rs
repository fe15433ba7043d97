//! Parsed SQL as text again, with the same meaning.
//!
//! The parser's own printer guesses if quotes inside a literal are already escaped: it prints `'\'' OR true --'` as
//! `'\' OR true --'`, which is another statement. Literals with quotes are therefore written in the unambiguous form `E'…'`.
//! There is no such form for names, so names with quotes are refused.

use std::fmt::Display;

use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan, VisitMut};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, ErrorKind};
use crate::session::syntax::{self, Editor};

/// Returns the text of a parsed statement, or of a part of it.
pub(super) fn printed(mut parsed: impl VisitMut + Display) -> String {
    syntax::edit(&mut parsed, &mut Quotes);
    parsed.to_string()
}

/// Checks the names of a statement that is parsed in a dialect and printed.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a name with its quote in it.
pub(super) fn check_names(sql: &str, dialect: &dyn Dialect) -> Result<(), Error> {
    let tokens = Tokenizer::new(dialect, sql).tokenize().unwrap_or_default();
    let quoted = |token: &Token| match token {
        Token::Word(word) => word.quote_style.is_some_and(|quote| word.value.contains(quote)),
        _ => false,
    };
    if tokens.iter().any(quoted) {
        let line = "names with a quote in them are not supported in this statement";
        return Err(Error::new(ErrorKind::Unsupported, line));
    }
    Ok(())
}

struct Quotes;

impl Editor for Quotes {
    fn visit_value(&mut self, value: &mut ValueWithSpan) {
        if let Value::SingleQuotedString(text) = &mut value.value
            && text.contains('\'')
        {
            value.value = Value::EscapedStringLiteral(std::mem::take(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::{GenericDialect, PostgreSqlDialect};
    use datafusion::sql::sqlparser::parser::Parser;
    use proptest::prelude::*;

    use super::*;

    /// The only literal of `SELECT …`.
    fn literal(dialect: &dyn Dialect, sql: &str) -> Option<String> {
        let tokens = Tokenizer::new(dialect, sql).tokenize().ok()?;
        let texts = tokens.into_iter().filter_map(|token| match token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Some(text),
            _ => None,
        });
        let texts: Vec<String> = texts.collect();
        <[String; 1]>::try_from(texts).ok().map(|[text]| text)
    }

    proptest! {
        #[test]
        fn literals_keep_their_text(text in "[a'\\\\\"\n\t%é -]{0,12}") {
            let dialects: [&dyn Dialect; 2] = [&PostgreSqlDialect {}, &GenericDialect {}];
            for dialect in dialects {
                let sql = format!("SELECT '{}'", text.replace('\'', "''"));
                let statement = Parser::parse_sql(dialect, &sql).expect("a statement").remove(0);
                let again = printed(statement);
                prop_assert_eq!(literal(&GenericDialect {}, &again), Some(text.clone()), "{}", again);
                Parser::parse_sql(&GenericDialect {}, &again).expect("a statement");
            }
        }
    }

    #[test]
    fn names_with_quotes_are_refused() {
        let check = |sql| check_names(sql, &PostgreSqlDialect {});
        check("SELECT id AS \"a b\", 'it''s \"quoted\"' FROM mentions").expect("plain names");
        check("SELECT id AS \"a\"\"b\" FROM mentions").expect_err("a quote");
        check_names("SELECT id AS `a\\``b` FROM mentions", &GenericDialect {}).expect_err("a quote");
    }
}
