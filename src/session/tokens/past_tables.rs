//! `mentions AT (VERSION => 12)` and `mentions FOR SYSTEM_TIME AS OF '2026-11-01'`, which are `mentions_as_of(…)`, in the tokens of
//! a text.
//!
//! The parser reads these clauses in dialects of other engines only. There, it takes a name such as `at` behind a table for a clause,
//! and the engine ignores the clause. So the parser never sees one. What is not exactly such a clause stays as it is: a syntax error.

use std::ops::Range;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::table_queries::{is_space, keyword};

/// The table with earlier versions.
const TABLE: &str = "mentions";
/// The table function that has them.
const FUNCTION: &str = "mentions_as_of";

/// A clause behind a name, as positions of tokens.
struct Clause {
    /// The name, which is the last one of a path.
    name: usize,
    /// The version.
    version: Range<usize>,
    /// The first token behind the clause.
    end: usize,
}

/// Replaces each table with such a clause by a call.
pub(in crate::session) fn as_calls(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens[*at].token)).collect();
    let clauses: Vec<Clause> = (0..words.len()).filter_map(|place| clause(&tokens, &words[place..])).collect();
    if clauses.is_empty() {
        return tokens;
    }
    let mut calls = Vec::with_capacity(tokens.len());
    let mut next = 0;
    for Clause { name, version, end } in clauses {
        // One within the version of another stays.
        if name < next {
            continue;
        }
        calls.extend_from_slice(&tokens[next..name]);
        let span = tokens[name].span;
        let own = [Token::make_word(FUNCTION, None), Token::LParen];
        calls.extend(own.map(|token| TokenWithSpan::new(token, span)));
        calls.extend_from_slice(&tokens[version]);
        calls.push(TokenWithSpan::new(Token::RParen, span));
        next = end;
    }
    calls.extend_from_slice(&tokens[next..]);
    calls
}

/// The clause behind a name. `words`: positions of the tokens from the name on that are not space.
fn clause(tokens: &[TokenWithSpan], words: &[usize]) -> Option<Clause> {
    let at = |place: usize| words.get(place).map(|at| &tokens[*at].token);
    let word = |place: usize| at(place).and_then(keyword);
    let Some(Token::Word(table)) = at(0) else { return None };
    let is_named = match table.quote_style {
        Some(_) => table.value == TABLE,
        None => table.value.eq_ignore_ascii_case(TABLE),
    };
    if !is_named {
        return None;
    }
    // The last token of the version, and of the clause.
    let (last, end) = match (word(1), word(2)) {
        (Some(Keyword::AT), _) if at(2) == Some(&Token::LParen) && at(4) == Some(&Token::RArrow) => {
            let close = closing(at, 2)?;
            let is_number = close == 6 && matches!(at(5), Some(Token::Number(..)));
            let is_parameter = close == 6 && matches!(at(5), Some(Token::Placeholder(_)));
            let fits = match word(3)? {
                Keyword::VERSION => is_number || is_parameter,
                Keyword::TIMESTAMP => close > 5 && !is_number,
                _ => false,
            };
            (fits.then_some(close - 1)?, close)
        }
        (Some(Keyword::FOR), Some(Keyword::SYSTEM_TIME))
            if [word(3), word(4)] == [Some(Keyword::AS), Some(Keyword::OF)] =>
        {
            let last = match at(5)? {
                Token::LParen => closing(at, 5)?,
                Token::SingleQuotedString(_) | Token::Placeholder(_) => 5,
                _ if word(5) == Some(Keyword::TIMESTAMP) && matches!(at(6), Some(Token::SingleQuotedString(_))) => 6,
                _ => return None,
            };
            (last, last)
        }
        _ => return None,
    };
    let place = |place: usize| words.get(place).copied();
    Some(Clause { name: place(0)?, version: place(5)?..place(last)? + 1, end: place(end)? + 1 })
}

/// The place of the parenthesis that closes the one at a place.
fn closing<'t>(at: impl Fn(usize) -> Option<&'t Token>, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for place in open.. {
        match at(place)? {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Some(place),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::as_calls;
    use crate::cases::each;

    #[test]
    fn only_clauses_are_rewritten() {
        let rewritten = |sql: &str| {
            let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().expect("tokens");
            as_calls(tokens).iter().map(|token| token.token.to_string()).collect::<String>()
        };
        let cases = [
            ("SELECT 1 FROM mentions AT (VERSION => 12) m", "SELECT 1 FROM mentions_as_of(12) m"),
            ("SELECT 1 FROM a.v4.Mentions at(version=>$1)", "SELECT 1 FROM a.v4.mentions_as_of($1)"),
            (
                "FROM mentions AT (TIMESTAMP => now() - INTERVAL '1 day') WHERE a",
                "FROM mentions_as_of(now() - INTERVAL '1 day') WHERE a",
            ),
            ("FROM \"mentions\" FOR SYSTEM_TIME AS OF '2026-11-01'", "FROM mentions_as_of('2026-11-01')"),
            (
                "FROM mentions FOR SYSTEM_TIME AS OF TIMESTAMP '2026-11-01' a JOIN mentions b ON a.id = b.id",
                "FROM mentions_as_of(TIMESTAMP '2026-11-01') a JOIN mentions b ON a.id = b.id",
            ),
            ("FROM mentions FOR SYSTEM_TIME AS OF (now() - x(1)), t", "FROM mentions_as_of((now() - x(1))), t"),
            (
                "FROM mentions AT (VERSION => 1) a, mentions AT (VERSION => 2) b",
                "FROM mentions_as_of(1) a, mentions_as_of(2) b",
            ),
        ];
        each(cases, |(sql, expected)| {
            assert_eq!(rewritten(sql), expected);
        });
        let others = [
            "SELECT mentions at FROM t",
            "FROM mentions AT",
            "FROM mentions AT (VERSION => )",
            "FROM mentions AT (VERSION => '12')",
            "FROM mentions AT (TIMESTAMP => 12)",
            "FROM mentions AT (VERSION => 12",
            "FROM mentions AT (OFFSET => 12)",
            "FROM mentions FOR UPDATE",
            "FROM mentions FOR SYSTEM_TIME AS OF 12",
            "FROM overview AT (VERSION => 12)",
            "FROM \"Mentions\" AT (VERSION => 12)",
            "SELECT 'mentions AT (VERSION => 12)'",
        ];
        each(others, |other| {
            assert_eq!(rewritten(other), other);
        });
    }
}
