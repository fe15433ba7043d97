//! Place and likely cause of an error in a statement, which the shell and all servers add to the message of the engine.
//!
//! Invariant: a suggestion is an existing name with a similar spelling, and the place is a position in the text at which the
//! name in the message is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::config::ExtensionOptions;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::config::SessionSettings;
use crate::error::{between, nearest, nearest_name, value_in_quotes};

/// 1-based line and column of an error.
pub(crate) fn place(error: &DataFusionError) -> Option<(usize, usize)> {
    let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    if let Some(start) = span.map(|span| span.start) {
        return Some((usize::try_from(start.line).ok()?, usize::try_from(start.column).ok()?));
    }
    // The parser reports its place in the message only: `… at Line: 1, Column: 8`.
    let text = error.to_string();
    let (_, rest) = text.rsplit_once(PLACE)?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((line.parse().ok()?, column.parse().ok()?))
}

const PLACE: &str = " at Line: ";

/// The parser's message without its place, which the marked line shows.
pub(crate) fn without_place(message: &str) -> &str {
    message.rsplit_once(PLACE).map_or(message, |(message, _)| message)
}

/// 1-based line and column at which a text has the name that a message calls unknown.
#[cfg(feature = "host")]
pub(crate) fn place_of_name(message: &str, text: &str) -> Option<(usize, usize)> {
    let kinds = ["unknown column `", "unknown table `", "unknown function `"];
    let name = kinds.into_iter().find_map(|kind| between(message, kind, "`"))?;
    let name = name.rsplit('.').next()?.trim_matches('"');
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().unwrap_or_default();
    let named = |token: &Token| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
    if let Some(start) = tokens.iter().find(|token| named(&token.token)).map(|token| token.span.start) {
        return Some((usize::try_from(start.line).ok()?, usize::try_from(start.column).ok()?));
    }
    if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    // A dialect may read as a name what this one does not, such as a typographic quote.
    let before = &text[..text.find(name)?];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    Some((before.matches('\n').count() + 1, before[start..].chars().count() + 1))
}

/// A message about an unknown column, with what a value is written in, if the text has the name as an operand to compare with or in
/// an IN list, or as the field of `date_trunc(DAY, t)`; or with the advice for the name of a result. It takes the place of the list
/// of columns for a field and a result, and if the name is in double quotes.
pub(crate) fn of_value(message: &str, text: &str) -> Option<String> {
    let (problem, advice) = message.split_once("; ")?;
    let name = problem.strip_prefix("unknown column `")?.strip_suffix('`')?;
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize().ok()?;
    let tokens: Vec<&Token> = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    if names_result(&tokens, name) {
        return Some(format!(
            "{problem}: `{name}` is the name of a result; write its expression, or HAVING for an aggregate"
        ));
    }
    if !advice.starts_with("available: ") {
        return None;
    }
    let quoted =
        |token: &Token| matches!(token, Token::Word(word) if word.quote_style == Some('"') && word.value == name);
    let is_value = |at: usize| quoted(tokens[at]) && is_compared(&tokens[..at]);
    if (0..tokens.len()).any(is_value) {
        return Some(format!("{problem}; {}", value_in_quotes(name)));
    }
    if let Some(function) = (0..tokens.len()).find_map(|at| function_of_field(&tokens, at, name)) {
        return Some(format!("{problem}; write {function}('{name}', t)"));
    }
    let plain = |at: usize| match tokens[at] {
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name) => {
            let is_value = is_compared(&tokens[..at]) && !matches!(tokens.get(at + 1), Some(Token::Period));
            is_value.then_some(&word.value)
        }
        _ => None,
    };
    let value = (0..tokens.len()).find_map(plain)?;
    Some(format!("{message}; for a text, write '{value}'"))
}

/// The function to which the token at a position is passed as a field of a time, if it is this name: `DAY` in `date_trunc(DAY, t)`
/// and, as in BigQuery, in `date_trunc(t, DAY)`.
fn function_of_field(tokens: &[&Token], at: usize, name: &str) -> Option<&'static str> {
    const FUNCTIONS: [&str; 2] = ["date_trunc", "date_part"];
    let ends = matches!(tokens.get(at + 1), Some(Token::Comma | Token::RParen));
    if !ends || !PARTS.contains(&name) || !is_name(tokens[at], name) {
        return None;
    }
    let mut depth = 0_usize;
    for (before, token) in tokens[..at].iter().enumerate().rev() {
        match token {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            Token::SingleQuotedString(_) if depth == 0 => return None,
            Token::LParen => {
                let called = tokens[before.checked_sub(1)?];
                return FUNCTIONS.into_iter().find(|function| is_name(called, function));
            }
            _ => {}
        }
    }
    None
}

/// True if the text gives the name to a result, as in `count(*) AS n` and `count(*) n`.
fn names_result(tokens: &[&Token], name: &str) -> bool {
    (1..tokens.len()).any(|at| {
        let before = tokens[at - 1];
        let is_given = is_word(before, Keyword::AS) || *before == Token::RParen;
        let ends = tokens.get(at + 1).is_none_or(|&next| *next == Token::Comma || is_word(next, Keyword::FROM));
        is_given && ends && is_name(tokens[at], name)
    })
}

/// True for a name without quotes.
fn is_name(token: &Token, name: &str) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
        _ => false,
    }
}

fn is_word(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword)
}

/// True for an operator that compares with one operand.
fn is_comparison(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
        || [Keyword::LIKE, Keyword::ILIKE, Keyword::BETWEEN].into_iter().any(|keyword| is_word(token, keyword))
}

/// True if the token behind these is an operand to compare with, or in an IN list.
fn is_compared(before: &[&Token]) -> bool {
    let is_member = |token: &Token| {
        matches!(token, Token::Comma | Token::Number(..) | Token::SingleQuotedString(_) | Token::Minus)
            || matches!(token, Token::Word(word) if word.quote_style.is_some())
    };
    match before.split_last() {
        Some((&last, _)) if is_comparison(last) => true,
        // The list begins behind `IN (`.
        Some(_) => {
            let begins = before.iter().rposition(|&token| !is_member(token)).unwrap_or_default();
            matches!(before[begins], Token::LParen) && begins > 0 && is_word(before[begins - 1], Keyword::IN)
        }
        None => false,
    }
}

/// Advice on how a text is written: on a character of a word processor, on an operator or brackets of another language, or on a
/// keyword that a syntax error at `place` suggests is misspelt.
pub(crate) fn as_written(text: &str, message: &str, place: Option<(usize, usize)>) -> Option<String> {
    foreign(text)
        .or_else(|| elsewhere(text, message))
        .or_else(|| misspelt(text, place.filter(|_| message.starts_with("syntax error"))?))
}

/// Advice on what has another meaning here than in the language that it is of, if the message is about it.
fn elsewhere(text: &str, message: &str) -> Option<String> {
    let beside = |operator: &Token| conditions_beside(text, operator);
    if message.contains("array_has_any") && beside(&Token::Overlap) > 0 {
        return Some("&& compares lists; between conditions, write AND".to_owned());
    }
    // A text that is joined may be compared with a condition.
    if message.contains("cannot compare Boolean") && beside(&Token::StringConcat) > 1 {
        return Some("|| joins texts; between conditions, write OR".to_owned());
    }
    if message.starts_with("Cannot cast string '") || message.starts_with("invalid date '") {
        return cast_column(text, message).map(|name| format!("`{name}` has this value; TRY_CAST is NULL for it"));
    }
    let of_brackets = || name_in_brackets(text).or_else(|| list_and_item(message));
    (message.contains("found: [") || message.contains("List(")).then(of_brackets).flatten()
}

/// Advice on a list that is compared with a value that may be an item of it.
fn list_and_item(message: &str) -> Option<String> {
    // The line of the text may follow.
    let types = message.split(" (line ").next()?;
    let (left, right) = match types.strip_prefix("cannot compare ") {
        Some(types) => types.split_once(" = ").or_else(|| types.split_once(" != "))?,
        None => types.strip_prefix("IN cannot compare ")?.split_once(" with ")?,
    };
    let item_of = |list: &str, item: &str| {
        let items = list.strip_prefix("List(").and_then(|list| list.strip_suffix(')'));
        items.is_some_and(|items| item.split(", ").all(|item| item == items))
    };
    (item_of(left, right) || item_of(right, left))
        .then(|| "to find an item of a list, write 'x' = ANY(list)".to_owned())
}

/// The column that has the value of a failed cast, if all casts of the text are of this column, or of other values.
fn cast_column(text: &str, message: &str) -> Option<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize().ok()?;
    let tokens: Vec<&Token> = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let has_value = |token: &&Token| match token {
        Token::SingleQuotedString(value) => message.contains(&format!("'{value}'")),
        _ => false,
    };
    // It may be cast without being written as a cast, such as by a comparison.
    if tokens.iter().any(has_value) {
        return None;
    }
    let mut columns = BTreeSet::new();
    for at in 0..tokens.len() {
        let operand = match tokens[at] {
            // Of the result of a cast.
            Token::DoubleColon if at > 1 && *tokens[at - 2] == Token::DoubleColon => continue,
            Token::DoubleColon if at > 0 => tokens[at - 1],
            word if is_word(word, Keyword::CAST) => {
                let end = at + tokens[at..].iter().position(|token| is_word(token, Keyword::AS))?;
                match tokens.get(at + 2..end)? {
                    [one] | [_, Token::Period, one] => *one,
                    _ => return None,
                }
            }
            _ => continue,
        };
        match operand {
            Token::Word(word) => {
                columns.insert(&word.value);
            }
            Token::SingleQuotedString(_) | Token::Number(..) => {}
            _ => return None,
        }
    }
    let mut columns = columns.into_iter();
    columns.next().filter(|_| columns.next().is_none()).cloned()
}

/// Number of sides, at most two, on which an operator of the text has a condition instead of a value.
fn conditions_beside(text: &str, operator: &Token) -> usize {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize().unwrap_or_default();
    let operators = (0..tokens.len()).filter(|at| tokens[*at] == *operator);
    let sides = operators.map(|at| {
        let before = compares(tokens[..at].iter().rev(), &Token::RParen, &Token::LParen);
        let behind = compares(tokens[at + 1..].iter(), &Token::LParen, &Token::RParen);
        usize::from(before) + usize::from(behind)
    });
    sides.max().unwrap_or_default()
}

/// True if tokens have a comparison before the end of the condition or value with which they begin.
fn compares<'t>(tokens: impl Iterator<Item = &'t Token>, opening: &Token, closing: &Token) -> bool {
    const ENDS: [Keyword; 13] = [
        Keyword::SELECT,
        Keyword::FROM,
        Keyword::ON,
        Keyword::WHERE,
        Keyword::AND,
        Keyword::OR,
        Keyword::WHEN,
        Keyword::THEN,
        Keyword::ELSE,
        Keyword::GROUP,
        Keyword::HAVING,
        Keyword::ORDER,
        Keyword::LIMIT,
    ];
    let mut depth = 0_usize;
    for token in tokens {
        let ends = *token == *closing
            || *token == Token::Comma
            || matches!(token, Token::Word(word) if ENDS.contains(&word.keyword));
        if depth == 0 && ends {
            return false;
        }
        if is_comparison(token) || is_word(token, Keyword::IN) || is_word(token, Keyword::IS) {
            return true;
        }
        if *token == *opening {
            depth += 1;
        } else if *token == *closing {
            depth -= 1;
        }
    }
    false
}

/// Advice on the first name in brackets, which SQL Server writes for a name, and which is a list of one item here.
pub(crate) fn name_in_brackets(text: &str) -> Option<String> {
    const BEFORE: [Keyword; 10] = [
        Keyword::SELECT,
        Keyword::DISTINCT,
        Keyword::FROM,
        Keyword::JOIN,
        Keyword::WHERE,
        Keyword::ON,
        Keyword::AND,
        Keyword::OR,
        Keyword::NOT,
        Keyword::BY,
    ];
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize().ok()?;
    let tokens: Vec<Token> = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    // Commas within parentheses and brackets are between arguments and items.
    let mut depth = 0_usize;
    for parts in tokens.windows(4) {
        match &parts[0] {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = match &parts[0] {
            Token::Word(word) => BEFORE.contains(&word.keyword),
            Token::Comma => depth == 0,
            other => *other == Token::Period,
        };
        if let (true, [_, Token::LBracket, Token::Word(name), Token::RBracket]) = (begins, parts) {
            return Some(format!("brackets make a list: for the name, write {name} instead of [{name}]"));
        }
    }
    None
}

/// The last word as far as a place that is no keyword, but nearly one that begins a clause.
fn misspelt(text: &str, place: (usize, usize)) -> Option<String> {
    const CLAUSES: [&str; 24] = [
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "OFFSET",
        "JOIN",
        "INNER",
        "OUTER",
        "LEFT",
        "RIGHT",
        "CROSS",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "DISTINCT",
        "BETWEEN",
        "VALUES",
        "EXPLAIN",
        "DESCRIBE",
        "INTERVAL",
        "CREATE",
    ];
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().ok()?;
    let until =
        |token: &TokenWithSpan| (token.span.start.line, token.span.start.column) <= (place.0 as u64, place.1 as u64);
    let words = tokens.iter().take_while(|token| until(token)).filter_map(|token| match &token.token {
        Token::Word(word) if word.keyword == Keyword::NoKeyword && word.quote_style.is_none() => {
            Some(word.value.as_str())
        }
        _ => None,
    });
    let near = |word: &str| {
        /// A letter more than the longest of them has. The comparison takes quadratic time.
        const LONGEST: usize = 10;
        let upper = Some(word).filter(|word| word.len() <= LONGEST)?.to_uppercase();
        let meant = CLAUSES.into_iter().find(|clause| strsim::damerau_levenshtein(&upper, clause) == 1)?;
        Some(format!("did you mean {meant} instead of {word}?"))
    };
    words.filter_map(near).last()
}

/// Advice on the first character outside quotes that text editors put in the place of one of SQL.
fn foreign(text: &str) -> Option<String> {
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None => {
                let (name, meant) = match c {
                    '‘' | '’' | '‚' | '‛' | '´' => ("a typographic quote", "'"),
                    '“' | '”' | '„' | '«' | '»' => ("a typographic quote", "\" around a name, ' around a text"),
                    '–' | '—' | '−' => ("a dash", "-"),
                    '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{200b}' | '\u{feff}' => ("an invisible space", "a space"),
                    _ => continue,
                };
                let shown = if meant == "a space" { String::new() } else { format!(" {c}") };
                return Some(format!("the statement has {name}{shown}; write {meant}"));
            }
        }
    }
    None
}

/// Functions of other databases that are named like the part of a time that they return.
const PARTS: [&str; 8] = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];

/// Functions of other databases, with the form to write here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["weekday", "dayofweek"], "date_part('dow', t)"),
    (&["dayofyear"], "date_part('doy', t)"),
    (&["weekofyear", "isoweek"], "date_part('week', t)"),
    (&["datediff", "date_diff", "timestampdiff"], "a::date - b::date, or date_part('epoch', a - b)"),
    (&["dateadd", "date_add", "adddate", "timestampadd", "date_sub"], "t + INTERVAL '1 day'"),
    (
        &["strftime", "format_date", "format_datetime", "format_timestamp", "formatdatetime", "time_format"],
        "to_char(t, '%Y-%m-%d')",
    ),
    (
        &["str_to_date", "strptime", "parse_date", "parse_datetime", "parse_timestamp", "parsedatetime"],
        "to_timestamp(text, '%d/%m/%Y %H:%M')",
    ),
    (&["date", "todate"], "t::date"),
    (&["datetime", "todatetime"], "t::timestamp"),
    (&["dayname", "monthname"], "to_char(t, '%A') or to_char(t, '%B')"),
    (&["curdate", "today"], "current_date"),
    (
        &["timestamp_trunc", "datetime_trunc", "tostartofhour", "tostartofday", "tostartofweek", "tostartofmonth"],
        "date_trunc('day', t)",
    ),
    (&["unix_timestamp", "tounixtimestamp"], "date_part('epoch', t)"),
    (&["if", "iif", "iff", "decode"], "CASE WHEN … THEN … ELSE … END"),
    (&["group_concat", "listagg", "wm_concat"], "string_agg(x, ',')"),
    (&["len", "datalength"], "length(x)"),
    (&["isnull", "zeroifnull"], "coalesce(x, y)"),
    (&["getdate", "sysdate", "getutcdate", "current_datetime", "systimestamp"], "now()"),
    (&["charindex", "locate"], "strpos(text, part)"),
    (&["countif", "count_if", "sumif"], "count(*) FILTER (WHERE …)"),
    (&["convert", "to_varchar", "to_string", "tostring", "cstr"], "cast(x AS varchar)"),
    (&["safe_cast", "try_convert", "try_to_number"], "try_cast(x AS double)"),
    (&["approx_count_distinct"], "approx_distinct(x)"),
    (&["safe_divide", "div0"], "a / nullif(b, 0)"),
    (&["array_size", "size", "array_count"], "cardinality(x)"),
    (&["regexp_extract", "regexp_substr"], "regexp_match(x, '…')[1]"),
    (&["split", "str_split", "string_split"], "string_to_array(x, ',')"),
    (&["json_value", "json_extract", "json_extract_scalar", "json_query", "get_json_object"], "x->>'key'"),
    (&["lcase", "ucase"], "lower(x) or upper(x)"),
    (&["mid", "substring_index"], "substr(x, 1, 3)"),
    (&["mod"], "a % b"),
    (&["sign"], "signum(x)"),
    (&["truncate"], "trunc(x)"),
    (&["has"], "array_has(list, x)"),
    (&["percentile_approx", "approx_percentile", "approx_quantile"], "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"),
    (&["newid", "generate_uuid", "gen_random_uuid"], "uuid()"),
];

/// Advice for an unknown table, setting or function; `tables` says what lists the tables. The engine itself suggests columns, and our own errors settings and zones.
pub(crate) async fn suggestion(line: &str, context: &SessionContext, tables: Option<&str>) -> Option<String> {
    let did_you_mean = |name: &str| format!("did you mean {name}?");
    let with_prefix = |key: &str| {
        let full = format!("savedsearch.{key}");
        SessionSettings::default().entries().into_iter().map(|entry| entry.key).find(|known| *known == full)
    };
    if let Some(key) = between(line, "unknown setting `", "`").or_else(|| between(line, "config namespace \"", "\"")) {
        return with_prefix(key).map(|known| did_you_mean(&known));
    }
    if let Some(key) = between(line, "'", "' is not a variable which can be viewed with 'SHOW'") {
        return with_prefix(key).map(|known| format!("write SHOW {known}"));
    }
    if let Some(name) = between(line, "unknown function `", "`") {
        let lower = name.to_lowercase();
        if PARTS.contains(&lower.as_str()) {
            return Some(format!("write date_part('{lower}', t)"));
        }
        if let Some((_, form)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&lower.as_str())) {
            return Some(format!("write {form}"));
        }
        let state = context.state();
        let known = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        if state.window_functions().contains_key(&lower) {
            return Some(format!("{lower} is a window function: write {lower}(…) OVER (ORDER BY …)"));
        }
        let known: Vec<&str> = known.chain(state.window_functions().keys()).map(String::as_str).collect();
        // Of several names that are equally near, one of the same letters is meant: `coutn` is `count`, not `cot`.
        let letters = |name: &str| {
            let mut letters: Vec<char> = name.to_lowercase().chars().collect();
            letters.sort_unstable();
            letters
        };
        let same = known.iter().find(|known| letters(known) == letters(name)).copied();
        return same.or_else(|| nearest(name, known)).map(did_you_mean);
    }
    let name = between(line, "unknown table `", "`")?;
    let name = name.rsplit('.').next()?;
    let known = tables_of(context).await;
    let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    match nearest_name(name, &known) {
        Some(near) => Some(did_you_mean(near)),
        None => tables.map(str::to_owned),
    }
}

/// Returns the tables of the current catalog, with their names: unqualified in the default schema.
pub(crate) async fn tables_of(context: &SessionContext) -> Vec<(String, Arc<dyn TableProvider>)> {
    let state = context.state();
    let default = &state.config().options().catalog;
    let mut found = Vec::new();
    let Some(catalog) = context.catalog(&default.default_catalog) else { return found };
    for schema_name in catalog.schema_names() {
        let Some(schema) = catalog.schema(&schema_name) else { continue };
        for table_name in schema.table_names() {
            // A table that was dropped meanwhile is skipped.
            if let Ok(Some(table)) = schema.table(&table_name).await {
                let own = schema_name == default.default_schema;
                found.push((if own { table_name } else { format!("{schema_name}.{table_name}") }, table));
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| (one.contains('.'), one).cmp(&(other.contains('.'), other)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn characters_of_word_processors_are_named() {
        for (text, told) in [
            ("SELECT 1 WHERE a = ‘x’", "the statement has a typographic quote ‘; write '"),
            ("SELECT “a” FROM t", "the statement has a typographic quote “; write \" around a name, ' around a text"),
            ("SELECT 2 – 1", "the statement has a dash –; write -"),
            ("SELECT\u{a0}1", "the statement has an invisible space; write a space"),
        ] {
            assert_eq!(foreign(text).as_deref(), Some(told));
        }
        for text in ["SELECT 'it’s', \"„\" FROM t", "SELECT 'a''b’'", "SELECT 1"] {
            assert_eq!(foreign(text), None, "{text}");
        }
    }

    #[test]
    fn the_only_column_that_is_cast_is_named() {
        let message = "Cannot cast string 'abc' to value of Int64 type";
        for text in [
            "SELECT CAST(title AS bigint) FROM m",
            "SELECT m.title::bigint FROM m WHERE published_at >= '2026-05-01'::date",
            "SELECT cast(m.title AS text), title::text::bigint FROM m",
        ] {
            let told = Some("`title` has this value; TRY_CAST is NULL for it");
            assert_eq!(as_written(text, message, None).as_deref(), told, "{text}");
        }
        for text in [
            "SELECT CAST(title AS bigint), url::bigint FROM m",
            "SELECT CAST(lower(title) AS bigint) FROM m",
            "SELECT (title || 'x')::bigint FROM m",
            "SELECT 'abc'::bigint, title::bigint FROM m",
            "SELECT title::bigint FROM m WHERE published_at >= 'abc'",
            "SELECT 1 FROM m WHERE title = 5",
        ] {
            assert_eq!(as_written(text, message, None), None, "{text}");
        }
    }

    #[test]
    fn a_value_in_double_quotes_is_named() {
        let hint = Some("unknown column `positive`; double quotes enclose names; for a value write 'positive'");
        let cases = [
            ("SELECT 1 FROM m WHERE sentiment = \"positive\"", hint),
            ("SELECT 1 FROM m WHERE sentiment <> \"positive\" OR a = 1", hint),
            ("SELECT 1 FROM m WHERE sentiment IN ('neutral', \"negative\", \"positive\")", hint),
            ("SELECT 1 FROM m WHERE sentiment NOT IN (\"positive\")", hint),
            ("SELECT 1 FROM m WHERE sentiment LIKE \"positive\"", hint),
            // Here it can only be a name.
            ("SELECT \"positive\" FROM m", None),
            ("SELECT 1 FROM m WHERE \"positive\" = 'x'", None),
            ("SELECT positive FROM m", None),
            ("SELECT 1 FROM m WHERE positive = 'x'", None),
            ("SELECT 1 FROM m WHERE sentiment = positive.x", None),
            ("SELECT 1 FROM m WHERE sentiment = m.\"positive\"", None),
            ("SELECT count(\"positive\") FROM m", None),
        ];
        each(cases, |(text, told)| {
            let message = "unknown column `positive`; available: id, aid";
            assert_eq!(of_value(message, text).as_deref(), told, "{text}");
        });
        let message = "unknown column `positive`; available: id, aid";
        let listed = |value| Some(format!("{message}; for a text, write '{value}'"));
        assert_eq!(of_value(message, "SELECT 1 FROM m WHERE sentiment = positive"), listed("positive"));
        assert_eq!(of_value(message, "SELECT 1 FROM m WHERE sentiment IN (Positive, neutral)"), listed("Positive"));
        assert_eq!(of_value("unknown column `tag`; did you mean tags?", "SELECT 1 WHERE a = \"tag\""), None);
    }

    #[test]
    fn a_field_without_quotes_is_named() {
        let message = "unknown column `day`; available: aid, published_at";
        let told = |function: &str| Some(format!("unknown column `day`; write {function}('day', t)"));
        let cases = [
            ("SELECT date_trunc(DAY, published_at)", told("date_trunc")),
            ("SELECT DATE_TRUNC(published_at, DAY)", told("date_trunc")),
            ("SELECT date_trunc(date(published_at, 'x'), day), 1", told("date_trunc")),
            ("SELECT sum(1), date_part(day, max(t))", told("date_part")),
            // The first argument is the field already.
            ("SELECT date_trunc('day', day)", None),
            ("SELECT date_trunc('day', t), day", None),
            ("SELECT date_trunc('day', day + t)", None),
            ("SELECT max(day)", None),
            ("SELECT day", None),
            ("SELECT date_trunc(\"day\", t)", None),
        ];
        each(cases, |(text, told)| assert_eq!(of_value(message, text), told, "{text}"));
        assert_eq!(of_value("unknown column `nope`; available: aid", "SELECT date_trunc(nope, t)"), None);
    }

    #[test]
    fn the_name_of_a_result_is_named() {
        let told = "unknown column `n`: `n` is the name of a result; write its expression, or HAVING for an aggregate";
        for message in ["unknown column `n`; available: id, aid", "unknown column `n`; did you mean m?"] {
            for text in [
                "SELECT count(*) AS n FROM m WHERE n > 3",
                "SELECT count(*) n FROM m WHERE n > 3",
                "SELECT reach AS N, n / 2 FROM m",
                "SELECT reach / 2 AS n, id FROM m WHERE n > 3",
            ] {
                assert_eq!(of_value(message, text).as_deref(), Some(told), "{text}");
            }
            for text in [
                "SELECT id FROM m AS n WHERE n > 3",
                "SELECT cast(a AS n) FROM m",
                "SELECT count(*) AS \"n\" FROM m",
                "SELECT n FROM m",
            ] {
                assert_eq!(of_value(message, text), None, "{text}");
            }
        }
    }

    #[test]
    fn operators_and_brackets_of_other_languages_are_named() {
        let list = "`array_has_any` takes an array, such as ARRAY['a', 'b']";
        let and = Some("&& compares lists; between conditions, write AND");
        let or = Some("|| joins texts; between conditions, write OR");
        let title = Some("brackets make a list: for the name, write title instead of [title]");
        let item = Some("to find an item of a list, write 'x' = ANY(list)");
        let cases = [
            ("SELECT 1 FROM m WHERE aid = 1 && reach = 5", list, and),
            ("SELECT array_has_any(reach, 1), '&&' FROM m", list, None),
            ("SELECT 1 FROM m WHERE reach > 5 || language = 'en'", "cannot compare Boolean = Utf8", or),
            ("SELECT 1 FROM m WHERE (reach > 5) && (aid = '1')", list, and),
            ("SELECT 1 FROM m WHERE aid = '1' AND hashtags && 5", list, None),
            ("SELECT 1 FROM m WHERE (reach > 5) = language", "cannot compare Boolean = Utf8", None),
            ("SELECT 1 FROM m WHERE aid = '1' AND (reach > 5) = title || 'x'", "cannot compare Boolean = Utf8", None),
            ("SELECT title || 'x' FROM m WHERE (reach > 5) = language", "cannot compare Boolean = Utf8", None),
            ("SELECT 1 FROM m WHERE [title] = 'x'", "cannot compare List(Utf8) = Int64", title),
            ("SELECT m.[title] FROM m", "syntax error: Expected: an identifier or a '*' after '.', found: [", title),
            ("SELECT hashtags[1] = 1 FROM m", "cannot compare List(Utf8) = Int64", None),
            ("SELECT 1 FROM m WHERE hashtags = 'x'", "cannot compare List(Utf8) = Utf8", item),
            ("SELECT 1\nFROM m WHERE 'x' <> hashtags", "cannot compare Utf8 != List(Utf8) (line 2)", item),
            ("SELECT 1 FROM m WHERE hashtags IN ('x', 'y')", "IN cannot compare List(Utf8) with Utf8, Utf8", item),
            ("SELECT 1 FROM m WHERE hashtags > 'x'", "cannot compare List(Utf8) > Utf8", None),
        ];
        each(cases, |(text, message, told)| assert_eq!(as_written(text, message, None).as_deref(), told, "{text}"));
    }

    #[test]
    fn a_name_in_brackets_is_told_from_other_lists() {
        for text in ["SELECT [title] FROM m", "SELECT f(a, b), [title] FROM m", "SELECT 1 FROM (SELECT [title] FROM m)"]
        {
            assert!(name_in_brackets(text).is_some(), "{text}");
        }
        for text in [
            "SELECT [title, text] FROM m",
            "SELECT f(a, [title])",
            "SELECT [[a], [b]]",
            "SELECT tags[i], ARRAY[a]",
            "SELECT ['a']",
        ] {
            assert_eq!(name_in_brackets(text), None, "{text}");
        }
    }

    #[test]
    fn a_misspelt_keyword_is_named() {
        let cases = [
            ("SELCT 1", 1, Some("did you mean SELECT instead of SELCT?")),
            ("SELECT aid FORM mentions", 17, Some("did you mean FROM instead of FORM?")),
            ("SELECT aid FROM mentions WEHRE aid = '1'", 32, Some("did you mean WHERE instead of WEHRE?")),
            ("SELECT aid FROM mentions GRUOP BY 1", 32, Some("did you mean GROUP instead of GRUOP?")),
            ("SELECT aid FROM mentions )", 26, None),
            ("SELECT \"Form\" FROM t )", 22, None),
        ];
        each(cases, |(text, column, told)| {
            assert_eq!(as_written(text, "syntax error: x", Some((1, column))).as_deref(), told, "{text}");
            assert_eq!(as_written(text, "unknown column", Some((1, column))), None);
        });
    }

    #[cfg(feature = "host")]
    #[test]
    fn a_name_is_found_in_the_text() {
        let cases = [
            ("unknown column `autor`; available: a", "SELECT id,\n  Autor FROM mentions", Some((2, 3))),
            ("unknown column `m.autor`", "SELECT 'autor', m.\"autor\" FROM m", Some((1, 19))),
            ("unknown table `mention`", "SELECT 1 FROM v4.mention", Some((1, 18))),
            ("unknown column `b`", "SELECT 'b'", None),
            ("unknown column `‘é’`", "SELECT 1\nWHERE a = ‘é’", Some((2, 11))),
            ("division by zero", "SELECT 1 / 0", None),
        ];
        each(cases, |(message, text, place)| {
            assert_eq!(place_of_name(message, text), place, "{text}");
        });
    }
}
