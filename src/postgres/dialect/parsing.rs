//! Parsing as PostgreSQL does, and the syntax of PostgreSQL that is refused by name.

use datafusion::error::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::{GenericDialect, PostgreSqlDialect};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, ErrorKind};
use crate::host::planner::parse;
use crate::session::{PlanningTurn, not_supported};

/// Parses a statement.
///
/// # Errors
/// Errors of the parser, in the engine's words; errors of limits, and of statements that write.
pub(in crate::postgres) fn parsed(turn: &PlanningTurn<'_>, sql: &str) -> Result<Parsed> {
    match parse(turn, sql, PostgreSqlDialect {}) {
        Ok(parsed) => writes_nothing(parsed),
        Err(error) if Error::find(&error).is_some() => Err(error),
        Err(_) => {
            check_known(sql)?;
            parse(turn, sql, GenericDialect {})
        }
    }
}

/// Refuses the clauses that the engine does not have, in a text that could not be parsed. In one that could, these words are names.
///
/// # Errors
/// [`ErrorKind::Unsupported`] with the form to write.
fn check_known(sql: &str) -> Result<(), Error> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().unwrap_or_default();
    let tokens: Vec<Token> = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let is = |token: &Token, expected: &str| match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected),
        _ => false,
    };
    let unsupported = |line: &str, advice: &str| Err(Error::new(ErrorKind::Unsupported, line).advice(advice));
    for pair in tokens.windows(2) {
        let [first, second] = pair else { continue };
        if is(first, "exclude") && ["ties", "group", "current"].iter().any(|word| is(second, word)) {
            let advice = "compute the excluded row apart, as in sum(x) OVER (…) - x";
            return unsupported("EXCLUDE in a window frame is not supported", advice);
        }
        if is(first, "between") && is(second, "symmetric") {
            return unsupported("BETWEEN SYMMETRIC is not supported", "use BETWEEN least(a, b) AND greatest(a, b)");
        }
    }
    Ok(())
}

/// Refuses tables with columns of their own, which clients create to fill them.
fn writes_nothing(parsed: Parsed) -> Result<Parsed> {
    match &parsed {
        Parsed::Statement(statement) if matches!(statement.as_ref(), Statement::CreateTable(table) if table.query.is_none()) =>
        {
            let line = not_supported("CREATE TABLE with columns is");
            Err(Error::new(ErrorKind::Unsupported, line)
                .advice("use CREATE TABLE … AS SELECT … for a temporary table")
                .into())
        }
        _ => Ok(parsed),
    }
}
