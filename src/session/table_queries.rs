//! `TABLE t`, which is `SELECT * FROM t`, in the tokens of a text.
//!
//! The parser takes two tokens after the name and drops them (sqlparser's `parse_as_table`): `TABLE t LIMIT 1` returns all rows.
//! So the parser never sees a `TABLE` where a query begins. Where it sees one nevertheless, [`misread`](super::misread) refuses
//! the statement.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Replaces each `TABLE` that begins a query by `SELECT * FROM`.
pub(super) fn as_select(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens[*at].token)).collect();
    let at = |place: usize| words.get(place).map(|at| &tokens[*at].token);
    let mut queries = Vec::new();
    for (place, index) in words.iter().enumerate() {
        let before = place.checked_sub(1).and_then(at);
        if keyword(&tokens[*index].token) == Some(Keyword::TABLE) && may_begin(before) && is_named(place, at) {
            queries.push(*index);
        }
    }
    if queries.is_empty() {
        return tokens;
    }
    let mut rest = queries.into_iter().peekable();
    let select = |token: TokenWithSpan| {
        let word = |text: &str| Token::make_keyword(text);
        let space = Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
        [word("SELECT"), space.clone(), Token::Mul, space, word("FROM")]
            .map(|part| TokenWithSpan::new(part, token.span))
    };
    let replaced = tokens.into_iter().enumerate().flat_map(|(index, token)| match rest.next_if_eq(&index) {
        Some(_) => select(token).to_vec(),
        None => vec![token],
    });
    replaced.collect()
}

fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// True if a query may begin after this token.
fn may_begin(before: Option<&Token>) -> bool {
    match before {
        None | Some(Token::SemiColon | Token::LParen | Token::RParen) => true,
        Some(token) => matches!(
            keyword(token),
            Some(
                Keyword::ALL
                    | Keyword::ANALYZE
                    | Keyword::AS
                    | Keyword::DISTINCT
                    | Keyword::EXCEPT
                    | Keyword::EXPLAIN
                    | Keyword::FOR
                    | Keyword::INTERSECT
                    | Keyword::MINUS
                    | Keyword::NAME
                    | Keyword::UNION
                    | Keyword::VERBOSE
            )
        ),
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
