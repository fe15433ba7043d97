//! `TABLE t`, which is `SELECT * FROM t`, in the tokens of a text.
//!
//! The parser takes two tokens after the name and drops them (sqlparser's `parse_as_table`): `TABLE t LIMIT 1` returns all rows.
//! So the parser never sees a `TABLE` where a query begins. If it sees one nevertheless, [`misread`](crate::session::tree::misread) refuses
//! the statement.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Replaces each `TABLE` that begins a query by `SELECT * FROM`.
pub(in crate::session) fn as_select(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens[*at].token)).collect();
    let at = |place: usize| words.get(place).map(|at| &tokens[*at].token);
    let mut queries = Vec::new();
    for (place, index) in words.iter().enumerate() {
        let before = |by: usize| place.checked_sub(by).and_then(at);
        if keyword(&tokens[*index].token) == Some(Keyword::TABLE) && may_begin(before) && is_named(place, at) {
            queries.push(*index);
        }
    }
    if queries.is_empty() {
        return tokens;
    }
    let mut rest = queries.into_iter().peekable();
    let select = |token: TokenWithSpan| {
        let word = Token::make_keyword;
        let space = Token::Whitespace(Whitespace::Space);
        [word("SELECT"), space.clone(), Token::Mul, space, word("FROM")]
            .map(|part| TokenWithSpan::new(part, token.span))
    };
    let replaced = tokens.into_iter().enumerate().flat_map(|(index, token)| match rest.next_if_eq(&index) {
        Some(_) => select(token).to_vec(),
        None => vec![token],
    });
    replaced.collect()
}

/// True for blanks and comments.
pub(in crate::session) fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

/// The keyword that a token is, unless it is quoted.
pub(in crate::session) fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// True if a query may begin at a place. `before`: the tokens before it, from 1 on.
fn may_begin<'t>(before: impl Fn(usize) -> Option<&'t Token>) -> bool {
    let word = |by: usize| before(by).and_then(keyword);
    match before(1) {
        None | Some(Token::SemiColon | Token::LParen | Token::RParen) => true,
        Some(_) if word(2) == Some(Keyword::FORMAT) => true,
        Some(_) => match word(1) {
            Some(Keyword::ANALYZE | Keyword::VERBOSE) => [word(2), word(3)].contains(&Some(Keyword::EXPLAIN)),
            Some(
                Keyword::ALL
                | Keyword::AS
                | Keyword::DISTINCT
                | Keyword::EXCEPT
                | Keyword::EXPLAIN
                | Keyword::FOR
                | Keyword::INTERSECT
                | Keyword::MINUS
                | Keyword::NAME
                | Keyword::UNION,
            ) => true,
            _ => false,
        },
    }
}

/// True if a name follows the word at this place, and what may follow a query after it. `table` may also be the name of a column.
fn is_named<'t>(place: usize, at: impl Fn(usize) -> Option<&'t Token>) -> bool {
    let mut next = place + 1;
    loop {
        if !matches!(at(next), Some(Token::Word(_))) {
            return false;
        }
        next += 1;
        if at(next) != Some(&Token::Period) {
            break;
        }
        next += 1;
    }
    match at(next) {
        None | Some(Token::EOF | Token::SemiColon | Token::RParen) => true,
        Some(token) => matches!(
            keyword(token),
            Some(
                Keyword::EXCEPT
                    | Keyword::FETCH
                    | Keyword::FOR
                    | Keyword::INTERSECT
                    | Keyword::LIMIT
                    | Keyword::MINUS
                    | Keyword::OFFSET
                    | Keyword::ORDER
                    | Keyword::UNION
            )
        ),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::as_select;
    use crate::cases::each;

    #[test]
    fn only_queries_are_rewritten() {
        let rewritten = |sql: &str| {
            let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().expect("tokens");
            as_select(tokens).iter().map(|token| token.token.to_string()).collect::<String>()
        };
        let cases = [
            ("TABLE t", "SELECT * FROM t"),
            ("table a.\"b\" LIMIT 1;", "SELECT * FROM a.\"b\" LIMIT 1;"),
            ("EXPLAIN TABLE t ORDER BY 1", "EXPLAIN SELECT * FROM t ORDER BY 1"),
            ("EXPLAIN ANALYZE VERBOSE TABLE t", "EXPLAIN ANALYZE VERBOSE SELECT * FROM t"),
            ("EXPLAIN FORMAT INDENT TABLE t", "EXPLAIN FORMAT INDENT SELECT * FROM t"),
            ("SELECT 1 UNION ALL TABLE t", "SELECT 1 UNION ALL SELECT * FROM t"),
            (
                "WITH a AS (TABLE t) TABLE a EXCEPT TABLE t",
                "WITH a AS (SELECT * FROM t) SELECT * FROM a EXCEPT SELECT * FROM t",
            ),
            ("CREATE VIEW v AS TABLE t", "CREATE VIEW v AS SELECT * FROM t"),
        ];
        each(cases, |(sql, expected)| {
            assert_eq!(rewritten(sql), expected);
        });
        let cases = [
            "CREATE TABLE t AS SELECT 1",
            "DROP TABLE t",
            "SELECT 1 AS table FROM t",
            "SELECT (table IS NULL), count(table) FROM t",
            "SELECT 'TABLE t'",
            "TABLE t WHERE a = 1",
            "SHOW CREATE TABLE t",
            "ANALYZE TABLE t",
        ];
        each(cases, |other| {
            assert_eq!(rewritten(other), other);
        });
    }
}
