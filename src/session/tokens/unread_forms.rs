//! Forms that the parser does not read, as forms that it reads, in the tokens of a text: `trim(LEADING FROM x)`, `EXCLUDE NO OTHERS`
//! in a window frame, which is the default, and a comparison before a sign, as in `a<-1`.
//!
//! The parser refuses the first two, and takes `<-` for an operator in PostgreSQL's dialect, where operators end before a sign. Each
//! form is recognized by its words and their neighbours, so that names such as `exclude` and `leading` stay names.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::table_queries::{is_space, keyword};

/// Replaces each such form.
pub(in crate::session) fn as_read(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens[*at].token)).collect();
    let changes: Vec<(usize, Change)> = (0..words.len()).filter_map(|place| change(&tokens, &words, place)).collect();
    if changes.is_empty() {
        return tokens;
    }
    let mut rest = changes.into_iter().peekable();
    let mut read = Vec::with_capacity(tokens.len() + 8);
    for (index, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        match rest.next_if(|(at, _)| *at == index) {
            None => read.push(token),
            Some((_, Change::Removed)) => {}
            Some((_, Change::Blank)) => {
                read.push(token);
                read.push(TokenWithSpan::new(Token::SingleQuotedString(" ".to_owned()), span));
            }
            Some((_, Change::Split(parts))) => {
                read.extend(parts.map(|part| TokenWithSpan::new(part, span)));
            }
        }
    }
    read
}

/// Change of a token.
enum Change {
    Removed,
    /// A text with a blank follows it: the character that is trimmed.
    Blank,
    /// Two operators.
    Split([Token; 2]),
}

/// The token that changes at a place, and its change. `words`: positions of the tokens that are not space.
fn change(tokens: &[TokenWithSpan], words: &[usize], place: usize) -> Option<(usize, Change)> {
    let index = *words.get(place)?;
    let token = |place: Option<usize>| place.and_then(|place| words.get(place)).map(|at| &tokens[*at].token);
    let word = |place: Option<usize>| token(place).and_then(keyword);
    let (before, after) = (|by| word(place.checked_sub(by)), |by| word(place.checked_add(by)));
    let is_excluded = |first: usize| {
        let at = |by: usize| word(first.checked_add(by));
        let names = [at(0), at(1)] == [Some(Keyword::EXCLUDE), Some(Keyword::NO)];
        let others =
            matches!(token(Some(first + 2)), Some(Token::Word(word)) if word.value.eq_ignore_ascii_case("others"));
        let frame = word(first.checked_sub(1));
        names && others && matches!(frame, Some(Keyword::PRECEDING | Keyword::FOLLOWING | Keyword::ROW))
    };
    match &tokens[index].token {
        Token::CustomBinaryOperator(operator) => Some((index, Change::Split(comparison_and_sign(operator)?))),
        Token::Word(_) if (0..3).any(|by| place.checked_sub(by).is_some_and(is_excluded)) => {
            Some((index, Change::Removed))
        }
        Token::Word(_) => {
            let side = matches!(after(0)?, Keyword::LEADING | Keyword::TRAILING | Keyword::BOTH);
            let is_trim = before(2) == Some(Keyword::TRIM) && token(place.checked_sub(1)) == Some(&Token::LParen);
            (side && is_trim && after(1) == Some(Keyword::FROM)).then_some((index, Change::Blank))
        }
        _ => None,
    }
}

/// The two operators of `<-` and the like.
fn comparison_and_sign(operator: &str) -> Option<[Token; 2]> {
    let comparison = match operator.strip_suffix(['-', '+'])? {
        "=" => Token::Eq,
        "<" => Token::Lt,
        ">" => Token::Gt,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "<>" => Token::Neq,
        _ => return None,
    };
    Some([comparison, if operator.ends_with('-') { Token::Minus } else { Token::Plus }])
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::as_read;
    use crate::cases::each;

    fn read(sql: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().expect("tokens");
        as_read(tokens).iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn only_these_forms_are_rewritten() {
        let cases = [
            ("SELECT trim(LEADING FROM x)", "SELECT trim(LEADING' ' FROM x)"),
            ("SELECT TRIM ( both\nfrom x)", "SELECT TRIM ( both' '\nfrom x)"),
            ("(ORDER BY b ROWS 1 PRECEDING EXCLUDE NO OTHERS)", "(ORDER BY b ROWS 1 PRECEDING   )"),
            (
                "(ROWS BETWEEN 1 PRECEDING AND CURRENT ROW exclude no others)",
                "(ROWS BETWEEN 1 PRECEDING AND CURRENT ROW   )",
            ),
            ("a<-1 AND b>=+2 OR c<>-d", "a<-1 AND b>=+2 OR c<>-d"),
        ];
        each(cases, |(sql, expected)| {
            assert_eq!(read(sql), expected);
        });
        let others = [
            "SELECT leading FROM t",
            "SELECT substring(leading FROM 2)",
            "SELECT trim(leading 'x' FROM y), trim(x), 'trim(both FROM x)'",
            "SELECT trim(\"both\" FROM x)",
            "SELECT exclude no, others FROM t",
            "(ROWS 1 PRECEDING EXCLUDE TIES)",
            "SELECT a -> 'b', a ~- b",
        ];
        each(others, |other| {
            assert_eq!(read(other), other);
        });
    }

    #[test]
    fn a_comparison_ends_before_a_sign() {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, "a<-1").tokenize_with_location().expect("tokens");
        let tokens = as_read(tokens);
        let shown: Vec<_> = tokens.iter().map(|token| token.token.to_string()).collect();
        assert_eq!(shown, ["a", "<", "-", "1"]);
        // Places of errors and of parameters are those of the text.
        assert_eq!(tokens[3].span.start.column, 4);
    }
}
