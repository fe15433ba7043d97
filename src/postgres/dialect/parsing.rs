//! Parsing as PostgreSQL does, and the syntax that its parser here does not know.

use std::borrow::Cow;

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
    let first = match parse(turn, &spaced(sql), PostgreSqlDialect {}) {
        Ok(parsed) => return writes_nothing(parsed),
        Err(error) => error,
    };
    if Error::find(&first).is_some() {
        return Err(first);
    }
    match without_unknown_syntax(sql)? {
        Some(known) => match parse(turn, &spaced(&known), PostgreSqlDialect {}) {
            Ok(parsed) => writes_nothing(parsed),
            Err(_) => Err(first),
        },
        None => parse(turn, sql, GenericDialect {}),
    }
}

/// A text without syntax that the parser does not know: `EXCLUDE NO OTHERS`, which is the default, `trim(LEADING FROM x)` and
/// `(TABLE t)`. `None` for a text that has none of it.
///
/// # Errors
/// What has another meaning, with the form to write.
fn without_unknown_syntax(sql: &str) -> Result<Option<String>> {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).with_unescape(false).tokenize() else {
        return Ok(None);
    };
    let tokens: Vec<Token> = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let word = |at: usize, expected: &str| match tokens.get(at) {
        Some(Token::Word(word)) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected),
        _ => false,
    };
    let unsupported = |line: &str, advice: &str| Err(Error::new(ErrorKind::Unsupported, line).advice(advice).into());
    let (mut text, mut changed, mut at) = (String::with_capacity(sql.len()), false, 0);
    while let Some(token) = tokens.get(at) {
        if word(at, "exclude") && word(at + 1, "no") && word(at + 2, "others") {
            (changed, at) = (true, at + 3);
            continue;
        }
        if word(at, "exclude") && (word(at + 1, "ties") || word(at + 1, "group") || word(at + 1, "current")) {
            let advice = "compute the excluded row apart, as in sum(x) OVER (…) - x";
            return unsupported("EXCLUDE in a window frame is not supported", advice);
        }
        if word(at, "between") && word(at + 1, "symmetric") {
            return unsupported("BETWEEN SYMMETRIC is not supported", "use BETWEEN least(a, b) AND greatest(a, b)");
        }
        if ["leading", "trailing", "both"].iter().any(|side| word(at, side)) && word(at + 1, "from") {
            text.push_str(&token.to_string());
            text.push_str(" ' ' FROM ");
            (changed, at) = (true, at + 2);
            continue;
        }
        if *token == Token::LParen && word(at + 1, "table") && matches!(tokens.get(at + 2), Some(Token::Word(_))) {
            text.push_str("(SELECT * FROM ");
            (changed, at) = (true, at + 2);
            continue;
        }
        text.push_str(&token.to_string());
        text.push(' ');
        at += 1;
    }
    Ok(changed.then_some(text))
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

/// The text with a blank between a comparison and the sign of a number: `a<-1`. PostgreSQL ends operators before a sign.
fn spaced(sql: &str) -> Cow<'_, str> {
    if !["<-", ">-", "=-", "<+", ">+", "=+"].iter().any(|pair| sql.contains(pair)) {
        return Cow::Borrowed(sql);
    }
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, sql).with_unescape(false).tokenize() else {
        return Cow::Borrowed(sql);
    };
    let mut text = String::with_capacity(sql.len() + 8);
    for token in tokens {
        match &token {
            Token::CustomBinaryOperator(operator) => match operator.strip_suffix(['-', '+']) {
                Some(comparison) if ["=", "<", ">", "<=", ">=", "<>"].contains(&comparison) => {
                    text.push_str(comparison);
                    text.push(' ');
                    text.push_str(&operator[comparison.len()..]);
                }
                _ => text.push_str(operator),
            },
            token => text.push_str(&token.to_string()),
        }
    }
    Cow::Owned(text)
}
