//! Statements parsed within limits.
//!
//! ```text
//! text ─▶ tokens: nesting, operators ─▶ parser, whose steps are counted ─▶ syntax tree
//! ```
//!
//! The parser tries one reading of a word or a parenthesis after another. Each level of nesting multiplies the attempts by
//! two to four, even in valid statements: `position(position(… , 'a'), 'a')` doubles them, and an error after twelve `CAST(`
//! is found only after minutes. The parser's own recursion limit restricts the depth, not the attempts. So attempts are
//! counted here, in the dialect, which the parser consults at every step; this needs no complete list of words. A limit on
//! nesting alone would have to be about six.
//!
//! Invariant: every statement of a client is parsed here.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::str::Chars;

use datafusion::error::{DataFusionError, Result};
use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ColumnOption, Expr, GranteesType, Ident, ObjectNamePart, Statement, UnaryOperator,
};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace};

use super::syntax::{self, Reader};
use super::tokens::{past_tables, table_queries, unread_forms};
use crate::error::{Error, ErrorKind};
use crate::memory;

/// Levels of brackets and of CASE.
const LEVELS: usize = 32;
/// Operators of a statement that fit on a thread's stack, with a margin: expressions are walked recursively, and a chain of
/// operators is as deep as it is long.
const OPERATORS: usize = 1_000;
/// Casts, calls, subqueries and the like within each other, and members of a row, whose comparison is as deep. Planning takes time
/// with the third power of their number: types and names are derived again at each level.
const DEPTH: usize = 100;
/// Queries of a statement: the syntax tree of each takes kilobytes, and is copied several times.
const QUERIES: usize = 1_000;
/// Joins of a statement, with set operations that are executed as joins: the engine's work grows with their third power.
const JOINS: usize = 100;
/// Bytes of a name with its qualifiers. The engine compares a name that it does not know with all names that it knows, in a time
/// that grows with the product of their lengths.
const NAME: usize = 512;
/// Words, values and signs of a text.
const TOKENS: usize = 250_000;
/// Bytes that the syntax tree takes for each of them, about.
const BYTES_OF_TOKEN: u64 = 512;
/// Steps of the parser for any statement.
const STEPS: u64 = 200_000;
/// Further steps for each byte.
const STEPS_PER_BYTE: u64 = 16;

/// Parses the statements of a text in the engine's SQL; empty ones are skipped.
///
/// # Errors
/// Errors of the parser; [`ErrorKind::TooLarge`] for a text that nests too deeply or would take too long.
pub(crate) fn parse_statements(sql: &str) -> Result<VecDeque<Parsed>> {
    parse_in(sql, GenericDialect {})
}

/// As [`parse_statements`], in a dialect.
///
/// # Errors
/// Those of [`parse_statements`].
pub(crate) fn parse_in(sql: &str, dialect: impl Dialect) -> Result<VecDeque<Parsed>> {
    tracing::trace!(bytes = sql.len(), "text parsed");
    let statements = limited(sql, dialect, |dialect| {
        DFParserBuilder::new(tokens(sql, dialect)?).with_dialect(dialect).build()?.parse_statements()
    })?;
    check_depth(&statements)?;
    Ok(statements)
}

/// Parses a text that is one expression in the engine's SQL. Whoever makes a statement of it calls [`check_depth`].
///
/// # Errors
/// Those of [`parse_statements`].
#[cfg(feature = "store")]
pub(super) fn parse_expression(sql: &str) -> Result<Expr> {
    let parsed = limited(sql, GenericDialect {}, |dialect| {
        DFParserBuilder::new(tokens(sql, dialect)?).with_dialect(dialect).build()?.parse_into_expr()
    })?;
    Ok(parsed.expr)
}

/// Refuses statements that are too deep to plan.
///
/// # Errors
/// [`ErrorKind::TooLarge`] for them.
pub(super) fn check_depth<'s>(statements: impl IntoIterator<Item = &'s Parsed>) -> Result<()> {
    let mut depth = Depth::default();
    statements.into_iter().for_each(|statement| syntax::read_statement(statement, &mut depth));
    depth.check()
}

/// A text as a literal of SQL.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Parses the statements of a text in a dialect into syntax trees.
///
/// # Errors
/// As [`parse_statements`].
pub(crate) fn parse_trees(sql: &str, dialect: impl Dialect) -> Result<Vec<Statement>> {
    limited(sql, dialect, |dialect| {
        let parsed = Parser::new(dialect).with_tokens_with_locations(tokens(sql, dialect)?).parse_statements();
        parsed.map_err(|error| DataFusionError::SQL(Box::new(error), None))
    })
}

/// The tokens that the parser reads.
fn tokens(sql: &str, dialect: &dyn Dialect) -> Result<Vec<TokenWithSpan>> {
    let mut tokens = Vec::new();
    let read = Tokenizer::new(dialect, sql).tokenize_with_location_into_buf(&mut tokens);
    read.map_err(|mut error| {
        if has_invalid_escape(sql, &error) {
            error.message = "Invalid escape in a text".to_owned();
        }
        if is_unterminated(&error.message) {
            // It begins behind the last token. The tokenizer names the end of the text for some.
            error.location = tokens.last().map_or(Location { line: 1, column: 1 }, |last| last.span.end);
        }
        DataFusionError::SQL(Box::new(ParserError::from(error)), None)
    })?;
    Ok(past_tables::as_calls(table_queries::as_select(literals(unread_forms::as_read(tokens))?)))
}

/// True for the tokenizer's message about a text, a quoted name or a comment that does not end. Its error has no other sign of them.
pub(crate) fn is_unterminated(message: &str) -> bool {
    ["Unterminated", "before EOF.", "Unexpected EOF while in"].iter().any(|open| message.contains(open))
}

/// True if the tokenizer failed because the text ends within a token.
#[cfg(feature = "shell")]
pub(crate) fn ends_within_token(text: &str, error: &TokenizerError) -> bool {
    is_unterminated(&error.message) && !has_invalid_escape(text, error)
}

/// True if the error is an invalid escape in an `E'…'` with a closing quote. The tokenizer reports it as a missing quote.
fn has_invalid_escape(text: &str, error: &TokenizerError) -> bool {
    if error.message != "Unterminated encoded string literal" {
        return false;
    }
    let number = |from_one: u64| usize::try_from(from_one).unwrap_or(usize::MAX);
    let lines = text.split_inclusive('\n').skip(number(error.location.line).saturating_sub(1));
    // Behind `E'`.
    let mut inner = lines.flat_map(str::chars).skip(number(error.location.column).saturating_add(1)).peekable();
    while let Some(c) = inner.next() {
        match c {
            '\\' => _ = inner.next(),
            '\'' if inner.peek() == Some(&'\'') => _ = inner.next(),
            '\'' => return true,
            _ => {}
        }
    }
    false
}

/// True for a text, in whatever quotes.
pub(crate) fn is_text_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
    )
}

/// The tokens with literals as in the SQL standard (5.3), PostgreSQL and DuckDB: numbers without the underscores between their digits,
/// and texts in consecutive lines as one.
///
/// # Errors
/// [`ErrorKind::Query`] for what the parser would read as a literal and a name: `123abc`, and two texts in one line.
fn literals(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let is_text = |token: &Token| is_text_literal(token) || matches!(token, Token::HexStringLiteral(_));
    let is_number = |token: &Token| matches!(token, Token::Number(..));
    let mut found: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Position of the last token that is no blank, and whether blanks and the end of a line follow it.
    let (mut last, mut blank, mut line) = (None, true, false);
    // Options of files are pairs of texts: the open parentheses behind the word.
    let (mut is_options, mut options) = (false, 0_usize);
    for mut token in tokens {
        if let Token::Whitespace(space) = &token.token {
            line |= matches!(space, Whitespace::Newline | Whitespace::SingleLineComment { .. });
            blank = true;
            found.push(token);
            continue;
        }
        match &token.token {
            Token::LParen if is_options || options > 0 => options += 1,
            Token::RParen => options = options.saturating_sub(1),
            _ => {}
        }
        is_options = matches!(&token.token, Token::Word(word) if word.keyword == Keyword::OPTIONS);
        if let Token::Number(digits, _) = &mut token.token {
            digits.retain(|digit| digit != '_');
        }
        let before = last.and_then(|at: usize| found.get(at)).map_or(&Token::EOF, |token| &token.token);
        match (before, &token.token) {
            (Token::Number(..) | Token::HexStringLiteral(_), Token::Word(word)) if !blank => {
                let literal = before.to_string();
                let message = format!("`{literal}{}` is neither a number nor a name", word.value);
                let advice = match before {
                    Token::Number(digits, _) if is_period(digits, &word.value) => {
                        format!("put quotes around a period: '{digits}{}'", word.value)
                    }
                    _ => "put a space after a number, and double quotes around a name that begins with a digit"
                        .to_owned(),
                };
                return Err(Error::new(ErrorKind::Query, message).advice(advice).into());
            }
            (Token::SingleQuotedString(first), Token::SingleQuotedString(second)) if line && options == 0 => {
                let joined = Token::SingleQuotedString(format!("{first}{second}"));
                let at = last.unwrap_or_default();
                found.truncate(at + 1);
                found[at].token = joined;
                (blank, line) = (false, false);
                continue;
            }
            (before, after) if (is_text(before) || is_number(before)) && is_text(after) && options == 0 => {
                return Err(Error::new(ErrorKind::Query, format!("two literals in a row: {before} {after}"))
                    .advice("join texts with ||, and put AS before the name of a result")
                    .into());
            }
            _ => {}
        }
        (last, blank, line) = (Some(found.len()), false, false);
        found.push(token);
    }
    Ok(found)
}

/// True for what is probably a period, such as `5d`.
fn is_period(digits: &str, unit: &str) -> bool {
    const UNITS: [&str; 8] = ["s", "min", "h", "d", "w", "m", "mo", "y"];
    let whole = digits.bytes().all(|digit| digit.is_ascii_digit());
    whole && UNITS.into_iter().any(|known| unit.eq_ignore_ascii_case(known))
}

/// Upper bound of the bytes that the tokens of a text take. Between two signs there are at most two tokens: a number and a word. Each
/// token has a character.
pub(crate) fn bytes_of_tokens(text: &str) -> u64 {
    let signs = text.bytes().filter(|byte| !byte.is_ascii_alphanumeric()).count();
    let tokens = (3 * signs + 2).min(text.chars().count());
    (tokens as u64).saturating_mul(size_of::<TokenWithSpan>() as u64)
}

/// Asks for room for the tokens of a text before they are made. A short one needs none: a thread has the tokens of one text at a time,
/// and statements that free memory are read when memory is short as well.
fn room_for_tokens(text: &str) -> Result<Option<memory::Room>> {
    /// Bytes of a short text.
    const SHORT: usize = 4 << 10;
    Ok((text.len() > SHORT).then(|| memory::room(bytes_of_tokens(text))).transpose()?)
}

/// Rejects a text that nests too deeply or has too many tokens, before it is parsed: even dropping a deep syntax tree recurses.
/// `dialect` is the one that it is parsed with. Returns the number of tokens.
///
/// # Errors
/// [`ErrorKind::TooLarge`] with what to write instead.
pub(crate) fn check_text(sql: &str, dialect: &dyn Dialect) -> Result<usize> {
    let _room = room_for_tokens(sql)?;
    // The parser reports invalid tokens.
    let tokens = Tokenizer::new(dialect, sql).tokenize().unwrap_or_default();
    let (mut brackets, mut cases, mut deepest, mut operators, mut joins, mut queries) = (0_usize, 0_usize, 0, 0, 0, 0);
    let mut names = Names::default();
    for token in &tokens {
        names.read(token);
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => brackets += 1,
            Token::RParen | Token::RBracket | Token::RBrace => brackets = brackets.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::CASE => cases += 1,
            // It ends a CASE, never a bracket: it may be a name.
            Token::Word(word) if word.keyword == Keyword::END => cases = cases.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(brackets + cases);
        operators += usize::from(is_operator(token));
        joins += usize::from(is_join(token));
        queries += usize::from(matches!(token, Token::Word(word) if word.keyword == Keyword::SELECT));
    }
    if deepest > LEVELS {
        return Err(Error::new(ErrorKind::TooLarge, "the statement is nested too deeply").into());
    }
    if names.longest > NAME {
        let what = format!("name too long: {} bytes with its qualifiers, the limit is {NAME}", names.longest);
        let advice = "double quotes enclose names, single quotes values; name long results with AS";
        return Err(Error::new(ErrorKind::TooLarge, what).advice(advice).into());
    }
    let words = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).count();
    if words > TOKENS {
        let what = format!("statement too long: {words} words, values and signs, the limit is {TOKENS}");
        return Err(Error::new(ErrorKind::TooLarge, what).advice("load the values into a temporary table").into());
    }
    if joins > JOINS {
        let what = format!("statement too complex: {joins} joins, EXCEPT and INTERSECT, the limit is {JOINS}");
        return Err(Error::new(ErrorKind::TooLarge, what).advice("split the query with a temporary table").into());
    }
    if queries > QUERIES {
        let what = format!("statement too complex: {queries} times SELECT, the limit is {QUERIES}");
        return Err(Error::new(ErrorKind::TooLarge, what).advice("use VALUES for rows of constants").into());
    }
    if operators > OPERATORS {
        let what = format!("statement too complex: {operators} operators, the limit is {OPERATORS}");
        let error = Error::new(ErrorKind::TooLarge, what);
        return Err(error.advice("use IN (…) instead of many ORs, or load the values into a temporary table").into());
    }
    Ok(words)
}

/// Lengths of names, in bytes.
#[derive(Default)]
struct Names {
    /// The longest one, with its qualifiers.
    longest: usize,
    /// The name that is being read.
    name: usize,
    /// Set behind its last period.
    goes_on: bool,
}

impl Names {
    fn read(&mut self, token: &Token) {
        match token {
            Token::Whitespace(_) => {}
            Token::Period => (self.name, self.goes_on) = (self.name + 1, true),
            Token::Word(word) => {
                self.name = word.value.len() + if self.goes_on { self.name } else { 0 };
                self.longest = self.longest.max(self.name);
                self.goes_on = false;
            }
            _ => (self.name, self.goes_on) = (0, false),
        }
    }
}

fn is_join(token: &Token) -> bool {
    use Keyword::{APPLY, EXCEPT, INTERSECT, JOIN, MINUS, STRAIGHT_JOIN};
    let Token::Word(word) = token else { return false };
    matches!(word.keyword, JOIN | STRAIGHT_JOIN | APPLY | EXCEPT | INTERSECT | MINUS)
}

/// True for tokens that make an expression or a list of queries deeper.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::APPLY
                | Keyword::AT
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::DIV
                | Keyword::EXCEPT
                | Keyword::EXPLAIN
                | Keyword::ILIKE
                | Keyword::IN
                | Keyword::INTERSECT
                | Keyword::INTERVAL
                | Keyword::IS
                | Keyword::JOIN
                | Keyword::LIKE
                | Keyword::MATCH
                | Keyword::MATCH_RECOGNIZE
                | Keyword::MEMBER
                | Keyword::MINUS
                | Keyword::NOT
                | Keyword::NOTNULL
                | Keyword::OPERATOR
                | Keyword::OR
                | Keyword::OVERLAPS
                | Keyword::PIVOT
                | Keyword::REGEXP
                | Keyword::RLIKE
                | Keyword::SIMILAR
                | Keyword::STRAIGHT_JOIN
                | Keyword::UNION
                | Keyword::UNPIVOT
                | Keyword::WHEN
                | Keyword::XOR
        ),
        Token::Whitespace(_) | Token::Comma | Token::Period | Token::LParen | Token::RParen | Token::EOF => false,
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::SemiColon => false,
        _ => true,
    }
}

/// Depth of the expressions of statements.
#[derive(Default)]
struct Depth {
    level: usize,
    deepest: usize,
    /// Members of the longest row.
    members: usize,
}

impl Depth {
    /// # Errors
    /// [`ErrorKind::TooLarge`] for expressions that are too deep to plan.
    fn check(&self) -> Result<()> {
        if self.members > DEPTH {
            let what = format!("statement too complex: a row of {} values, the limit is {DEPTH}", self.members);
            return Err(Error::new(ErrorKind::TooLarge, what).advice("compare the values one by one").into());
        }
        if self.deepest <= DEPTH {
            return Ok(());
        }
        let what = format!("statement too complex: more than {DEPTH} casts, calls or subqueries within each other");
        let advice = "use functions of several arguments, or compute parts in a subquery in FROM";
        Err(Error::new(ErrorKind::TooLarge, what).advice(advice).into())
    }

    /// False for operators whose chains are planned fast.
    fn counts(expr: &Expr) -> bool {
        use BinaryOperator::{
            And, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, Plus, StringConcat,
        };
        match expr {
            Expr::BinaryOp { op, .. } => !matches!(
                op,
                And | Or
                    | Eq
                    | NotEq
                    | Lt
                    | LtEq
                    | Gt
                    | GtEq
                    | Plus
                    | Minus
                    | Multiply
                    | Divide
                    | Modulo
                    | StringConcat
            ),
            Expr::Nested(_) | Expr::UnaryOp { .. } => false,
            _ => true,
        }
    }
}

impl Reader for Depth {
    fn pre_visit_expr(&mut self, expr: &Expr) {
        self.level += usize::from(Self::counts(expr));
        self.deepest = self.deepest.max(self.level);
        if let Expr::Tuple(members) = expr {
            self.members = self.members.max(members.len());
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) {
        self.level -= usize::from(Self::counts(expr));
    }
}

/// Parses a text with a dialect that counts the steps.
fn limited<T>(sql: &str, dialect: impl Dialect, parse: impl FnOnce(&dyn Dialect) -> Result<T>) -> Result<T> {
    let tokens = check_text(sql, &dialect)?;
    let _room = memory::room(BYTES_OF_TOKEN.saturating_mul(tokens as u64))?;
    let steps = STEPS.saturating_add(STEPS_PER_BYTE.saturating_mul(sql.len() as u64));
    let dialect = Counted { inner: dialect, left: Cell::new(steps) };
    catch_unwind(AssertUnwindSafe(|| parse(&dialect))).unwrap_or_else(|payload| {
        match payload.downcast::<TooManySteps>() {
            Ok(_) => Err(Error::new(ErrorKind::TooLarge, "statement too complex to parse")
                .advice("nest fewer calls; a syntax error inside nested calls has the same effect")
                .into()),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Payload with which the parser is left. An error would not do: the parser answers errors with its next attempt.
struct TooManySteps;

/// Dialect that counts how often the parser consults it.
#[derive(Debug)]
struct Counted<D> {
    inner: D,
    /// Steps until the parser is stopped.
    left: Cell<u64>,
}

/// Words that the parser keeps for clauses of other dialects. In PostgreSQL, they are names of results.
const NAMES_OF_RESULTS: [Keyword; 7] = [
    Keyword::CLUSTER,
    Keyword::DISTRIBUTE,
    Keyword::EXCLUDE,
    Keyword::EXPLAIN,
    Keyword::SORT,
    Keyword::TOP,
    Keyword::VIEW,
];
/// As [`NAMES_OF_RESULTS`], for names of tables.
const NAMES_OF_TABLES: [Keyword; 13] = [
    Keyword::CLUSTER,
    Keyword::CONNECT,
    Keyword::DISTRIBUTE,
    Keyword::EXPLAIN,
    Keyword::FORMAT,
    Keyword::GLOBAL,
    Keyword::OUTPUT,
    Keyword::SAMPLE,
    Keyword::SETTINGS,
    Keyword::SORT,
    Keyword::START,
    Keyword::TOP,
    Keyword::VIEW,
];

impl<D: Dialect> Counted<D> {
    /// True for the SQL of PostgreSQL clients.
    fn is_postgres(&self) -> bool {
        TypeId::of::<D>() == TypeId::of::<PostgreSqlDialect>()
    }
}

/// True for operators without a precedence of their own, in all dialects.
fn is_other_operator(token: &Token) -> bool {
    matches!(
        token,
        Token::Arrow
            | Token::LongArrow
            | Token::HashArrow
            | Token::HashLongArrow
            | Token::StringConcat
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
    )
}

/// True for `=`, `<` and the like.
fn is_comparison(token: &Token) -> bool {
    use Token::{DoubleEq, Eq, Gt, GtEq, Lt, LtEq, Neq, Spaceship};
    [Eq, DoubleEq, Neq, Lt, LtEq, Gt, GtEq, Spaceship].contains(token)
}

/// True for operators on bits. In PostgreSQL, `^` is not one of them.
fn is_bitwise(token: &Token) -> bool {
    matches!(token, Token::Ampersand | Token::Pipe | Token::Caret | Token::Sharp | Token::ShiftLeft | Token::ShiftRight)
}

impl<D> Counted<D> {
    fn step(&self) -> &D {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            // No panic: the hook that reports panics is not called.
            None => resume_unwind(Box::new(TooManySteps)),
        }
        &self.inner
    }
}

/// Delegates methods without arguments.
macro_rules! delegate {
    ($($flag:ident)*) => {
        $(fn $flag(&self) -> bool {
            self.step().$flag()
        })*
    };
}

#[warn(clippy::missing_trait_methods)] // Every method delegates, or has a reason not to.
impl<D: Dialect> Dialect for Counted<D> {
    delegate! {
        supports_string_literal_backslash_escape ignores_wildcard_escapes supports_unicode_string_literal
        supports_filter_during_aggregation supports_window_clause_named_window_reference
        supports_within_after_array_aggregation supports_partition_by_after_order_by supports_array_join_syntax
        supports_group_by_expr supports_group_by_with_modifier supports_left_associative_joins_without_parens
        supports_outer_join_operator supports_cross_join_constraint supports_connect_by supports_execute_immediate
        supports_match_recognize supports_in_empty_list supports_start_transaction_modifier
        supports_end_transaction_modifier supports_named_fn_args_with_eq_operator
        supports_named_fn_args_with_colon_operator supports_named_fn_args_with_assignment_operator
        supports_named_fn_args_with_rarrow_operator supports_named_fn_args_with_expr_name supports_numeric_prefix
        supports_window_function_null_treatment_arg supports_dictionary_syntax
        support_map_literal_syntax supports_lambda_functions supports_parenthesized_set_variables
        supports_comma_separated_set_assignments supports_update_order_by supports_select_wildcard_except
        convert_type_before_value supports_triple_quoted_string supports_trailing_commas supports_limit_comma
        supports_string_literal_concatenation supports_string_literal_concatenation_with_newline
        supports_projection_trailing_commas supports_from_trailing_commas supports_column_definition_trailing_commas
        supports_object_name_double_dot_notation supports_struct_literal supports_empty_projections
        supports_select_expr_star supports_from_first_select supports_from_first_insert supports_pipe_operator
        supports_user_host_grantee supports_select_wildcard_exclude supports_select_exclude
        supports_create_table_multi_schema_info_sources supports_select_modifiers describe_requires_table_keyword
        allow_extract_custom allow_extract_single_quotes supports_extract_comma_syntax supports_subquery_as_function_arg
        supports_create_view_comment_syntax supports_array_typedef_without_element_type
        supports_parens_around_table_factor supports_values_as_table_factor supports_dollar_placeholder
        supports_dollar_as_money_prefix supports_create_index_with_clause require_interval_qualifier
        supports_explain_with_utility_options supports_asc_desc_in_column_definition supports_factorial_operator
        supports_bitwise_shift_operators supports_nested_comments supports_multiline_comment_hints
        supports_eq_alias_assignment supports_try_convert supports_bang_not_operator supports_listen_notify
        supports_load_data supports_load_extension supports_top_before_distinct supports_boolean_literals
        supports_show_like_before_in supports_comment_on supports_create_table_select supports_partiql
        supports_constraint_keyword_without_name supports_key_column_option supports_table_sample_before_alias
        supports_insert_set supports_insert_table_function supports_insert_table_query supports_insert_format
        supports_insert_table_alias supports_set_stmt_without_operator supports_table_versioning
        supports_string_escape_constant supports_table_hints requires_single_line_comment_whitespace
        supports_array_typedef_with_brackets supports_geometric_types supports_order_by_all supports_set_names
        supports_space_separated_column_options supports_alter_column_type_using
        supports_comma_separated_drop_column_list supports_notnull_operator supports_data_type_signed_suffix
        supports_interval_options supports_create_table_like_parenthesized supports_semantic_view_table_factor
        supports_quote_delimited_string supports_comment_optimizer_hint supports_double_ampersand_operator
        supports_binary_kw_as_cast supports_select_wildcard_replace supports_select_wildcard_ilike
        supports_select_wildcard_rename supports_select_wildcard_with_alias supports_optimize_table supports_install
        supports_detach supports_prewhere supports_with_fill supports_limit_by supports_interpolate supports_settings
        supports_select_format supports_comma_separated_trim supports_cte_without_as
        supports_select_item_multi_column_alias supports_xml_expressions supports_create_table_using
        supports_long_type_as_bigint supports_map_literal_with_angle_brackets
    }

    fn dialect(&self) -> TypeId {
        self.step().dialect()
    }

    fn supports_match_against(&self) -> bool {
        // `match(text, query)` is a function. MySQL's MATCH … AGAINST has no meaning here.
        false
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        // See `literals`.
        true
    }

    // The tokenizer reads characters with the following ones, once each.

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.inner.is_delimited_identifier_start(ch)
    }

    fn is_nested_delimited_identifier_start(&self, ch: char) -> bool {
        self.inner.is_nested_delimited_identifier_start(ch)
    }

    fn peek_nested_delimited_identifier_quotes(&self, chars: Peekable<Chars<'_>>) -> Option<(char, Option<char>)> {
        self.inner.peek_nested_delimited_identifier_quotes(chars)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.inner.identifier_quote_style(identifier)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.inner.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.inner.is_identifier_part(ch)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        self.inner.is_custom_operator_part(ch)
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        // Prefix operators bind weaker than `+`: `@ -5 + 1` is 4.
        let op = match &parser.peek_token_ref().token {
            Token::Tilde => UnaryOperator::BitwiseNot,
            Token::AtSign if self.is_postgres() => UnaryOperator::PGAbs,
            Token::PGSquareRoot if self.is_postgres() => UnaryOperator::PGSquareRoot,
            Token::PGCubeRoot if self.is_postgres() => UnaryOperator::PGCubeRoot,
            _ => return self.step().parse_prefix(parser),
        };
        self.step();
        parser.advance_token();
        let operand = parser.parse_subexpr(self.prec_value(Precedence::PgOther));
        Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        self.step().parse_infix(parser, expr, precedence)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        self.step().get_next_precedence(parser)
    }

    fn get_next_precedence_default(&self, parser: &Parser<'_>) -> Result<u8, ParserError> {
        // All other operators bind alike, weaker than `+` and stronger than comparisons.
        if is_other_operator(&parser.peek_token_ref().token)
            || (!self.is_postgres() && is_bitwise(&parser.peek_token_ref().token))
        {
            return Ok(self.prec_value(Precedence::PgOther));
        }
        // An operator of other dialects.
        if self.is_postgres()
            && matches!(&parser.peek_token_ref().token, Token::Word(word) if word.keyword == Keyword::MATCH)
        {
            return Ok(self.prec_unknown());
        }
        let precedence = self.step().get_next_precedence_default(parser)?;
        let own = |of: Precedence| precedence == self.inner.prec_value(of);
        Ok(match () {
            () if self.is_postgres() => precedence,
            () if is_comparison(&parser.peek_token_ref().token) => self.prec_value(Precedence::Eq),
            () if parser.peek_token_ref().token == Token::Colon && precedence > 0 => self.prec_value(Precedence::Colon),
            () if own(Precedence::Like) => self.prec_value(Precedence::Like),
            () if own(Precedence::PgOther) => self.prec_value(Precedence::PgOther),
            () => precedence,
        })
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        self.step().parse_statement(parser)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        self.step().parse_column_option(parser)
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        // The order of PostgreSQL, which DuckDB shares.
        match prec {
            Precedence::Eq if !self.is_postgres() => self.step().prec_value(Precedence::Like),
            Precedence::Like if !self.is_postgres() => self.step().prec_value(Precedence::Between),
            Precedence::PgOther if !self.is_postgres() => self.step().prec_value(Precedence::Pipe),
            // Subscripts have operators, and end at a colon.
            Precedence::Colon => self.step().prec_value(Precedence::Pipe) - 1,
            prec => self.step().prec_value(prec),
        }
    }

    fn prec_unknown(&self) -> u8 {
        self.step().prec_unknown()
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.step().is_reserved_for_identifier(keyword)
    }

    fn get_reserved_keywords_for_select_item_operator(&self) -> &[Keyword] {
        self.step().get_reserved_keywords_for_select_item_operator()
    }

    fn get_reserved_grantees_types(&self) -> &[GranteesType] {
        self.step().get_reserved_grantees_types()
    }

    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.step().is_column_alias(keyword, parser)
    }

    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.is_postgres() && NAMES_OF_RESULTS.contains(keyword)
            || self.step().is_select_item_alias(explicit, keyword, parser)
    }

    fn is_table_factor(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.step().is_table_factor(keyword, parser)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.step().is_table_alias(keyword, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.is_postgres() && NAMES_OF_TABLES.contains(keyword)
            || self.step().is_table_factor_alias(explicit, keyword, parser)
    }

    fn is_identifier_generating_function_name(&self, ident: &Ident, parts: &[ObjectNamePart]) -> bool {
        self.step().is_identifier_generating_function_name(ident, parts)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;

    use super::*;
    use crate::cases::each;

    fn nested(open: &str, inner: &str, close: &str, levels: usize) -> String {
        format!("SELECT {}{inner}{}", open.repeat(levels), close.repeat(levels))
    }

    /// Steps would not end otherwise: this test has no time limit of its own.
    #[test]
    fn texts_that_the_parser_reads_again_and_again_are_refused() {
        let constructs = [
            ("cast(", " as int)"),
            ("try_cast(", " as int)"),
            ("substring(", " from 1 for 2)"),
            ("position(", ", 'a')"),
            ("position(", " in 'a')"),
            ("overlay(", " placing 'a' from 1)"),
            ("ceil(", " to day)"),
            ("not(", ")"),
            ("array(", ")"),
            ("f(a := ", ")"),
            ("case(", " when 1 then 1 end)"),
            ("case when ", " then 1 end"),
            ("interval ", ""),
            ("f(", ")"),
            ("{fn f(", ")}"),
        ];
        let read = move || {
            for (open, close) in constructs {
                let sql = nested(open, "1 1", close, 24);
                let _ = parse_statements(&sql);
                let _ = parse_trees(&sql, PostgreSqlDialect {});
            }
        };
        // As in the program: a debug build takes more than a test has.
        let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(read);
        thread.expect("a thread").join().expect("no panic");
        let cases = [
            (nested("cast(", "1", " as int)", 48), "nested too deeply"),
            (nested("case when ", "1", " then 1 end", 48), "nested too deeply"),
            (nested("- ", "1", "", 2_000), "2000 operators"),
            (nested("1 except select ", "1", "", 200), "200 joins"),
            (format!("SELECT 1{}", ", (select 1)".repeat(1_000)), "1001 times SELECT"),
            (nested("", "1", "::text", 150), "more than 100 casts, calls or subqueries within each other"),
            (nested("", "now()", " at time zone 'UTC'", 150), "more than 100"),
            (nested("", "'{}'", "->'a'", 150), "more than 100"),
            (nested("cast(1 as table(end ", "", "", 48), "nested too deeply"),
            (nested("(end ", "1", "", 48), "nested too deeply"),
            (format!("SELECT ({}1) < ANY (SELECT 1)", "1, ".repeat(100)), "a row of 101 values"),
        ];
        each(cases, |(sql, what)| {
            let error = parse_statements(&sql).expect_err("too complex");
            let error = Error::find(&error).expect("an error of this crate");
            assert!(error.kind() == ErrorKind::TooLarge && error.to_string().contains(what), "{what}: {error}");
        });
        for (open, close) in [("a = 1 or ", ""), ("f(a) || ", ""), ("", " + (select 1)")] {
            parse_statements(&nested(open, "b", close, 400)).expect("a long chain of other operators");
        }
    }

    /// The engine compares an unknown name with all that it knows, in a time that grows with the product of their lengths.
    #[test]
    fn a_long_name_is_refused_by_its_length() {
        let long = "x".repeat(200_000);
        let many = "x.".repeat(100_000);
        let cases = [
            format!("SELECT \"{long}\" FROM mentions"),
            format!("SELECT {long} FROM mentions"),
            format!("SELECT 1 FROM mentions AS m WHERE m.`{long}` = 1"),
            format!("SELECT * FROM \"{long}\""),
            format!("SELECT {long}(1)"),
            format!("SELECT {many}x(1)"),
            format!("SELECT {}x(1)", many.replace('.', " . ")),
            format!("SET \"{long}\" = 1"),
        ];
        each(cases, |sql| {
            for parsed in [
                parse_statements(&sql).map(drop),
                parse_trees(&sql, GenericDialect {}).map(drop),
                check_text(&sql, &GenericDialect {}).map(drop),
            ] {
                let error = parsed.expect_err("too long");
                let error = Error::find(&error).expect("an error of this crate");
                assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
                assert!(error.to_string().contains("name too long") && error.to_string().len() < 300, "{error}");
            }
        });
        let within = format!("SELECT {0}.{0}, \"{0}.{0}\", '{long}', {0} FROM {0}", "x".repeat(250));
        parse_statements(&within).expect("names of usual lengths, and a long value");
    }

    /// The parser's full list: words that make a tree deeper with each repetition must count as operators.
    #[test]
    fn every_word_that_deepens_the_tree_counts() {
        const TIMES: usize = 30;
        let depth = |parsed: &[Statement]| {
            let (mut level, mut deepest) = (0_usize, 0);
            for byte in format!("{parsed:?}").bytes() {
                match byte {
                    b'{' | b'(' | b'[' => level += 1,
                    b'}' | b')' | b']' => level = level.saturating_sub(1),
                    _ => {}
                }
                deepest = deepest.max(level);
            }
            deepest
        };
        for word in ALL_KEYWORDS {
            let texts = [
                format!("SELECT a{}", format!(" {word} a").repeat(TIMES)),
                format!("SELECT a{}", format!(" {word}").repeat(TIMES)),
                format!("SELECT a{}", format!(" {word} ('a')").repeat(TIMES)),
                format!("SELECT 1{}", format!(" {word} SELECT 1").repeat(TIMES)),
                format!("SELECT * FROM t{}", format!(" {word} t").repeat(TIMES)),
            ];
            for text in texts {
                let tokens = Tokenizer::new(&GenericDialect {}, &text).tokenize().expect("tokens");
                let counted = tokens.iter().filter(|token| is_operator(token)).count() >= TIMES;
                if !counted && let Ok(parsed) = Parser::parse_sql(&GenericDialect {}, &text) {
                    assert!(depth(&parsed) < TIMES, "{word}: {text}");
                }
            }
        }
    }

    #[test]
    fn the_tokens_of_a_text_take_no_more_than_is_asked_for() {
        let texts = ["", "SELECT 1", "((((", "a+-b", "1,2,3", "→→→", "1e5x", "''''", "a.\"b\".c", "$1::t", "/**/--\n;"];
        for text in texts {
            let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().unwrap_or_default();
            let bytes = (tokens.len() * size_of::<TokenWithSpan>()) as u64;
            assert!(bytes <= bytes_of_tokens(text), "{text}: {}", tokens.len());
        }
        // The text is one token, and its characters have several bytes.
        let text = format!("SELECT '{}'", "検索".repeat(50_000));
        assert!(bytes_of_tokens(&text) < 10 << 20, "{}", bytes_of_tokens(&text));
    }

    /// Every kind of token that may lack its end. An upgrade of the parser that changes a message fails here.
    #[test]
    fn what_does_not_end_is_recognized_by_its_message() {
        let message = |dialect: &dyn Dialect, text: &str| {
            let error = Tokenizer::new(dialect, text).tokenize().expect_err(text);
            error.message
        };
        let (generic, postgres) = (GenericDialect {}, PostgreSqlDialect {});
        let texts = ["'x", "N'x", "E'x", "E'x\\'", "U&'x", "X'4", "B'1", "$$x", "$$x$", "$t$x", "$t$x$$"];
        let others = ["\"x", "U&\"x", "/* x", "/*", "/* /* x */"];
        for text in texts.into_iter().chain(others) {
            for message in [message(&generic, text), message(&postgres, text)] {
                assert!(is_unterminated(&message), "{text}: {message}");
            }
        }
        for text in ["`x", "R'x", "R\"x", "R'''x", "Q'[x", "NQ'[x'"] {
            let message = message(&generic, text);
            assert!(is_unterminated(&message), "{text}: {message}");
        }
        for ended in ["U&'\\zz'", "Q' x'", "NQ'\tx'"] {
            let message = message(&generic, ended);
            assert!(!is_unterminated(&message), "{ended}: {message}");
        }
    }

    #[test]
    fn an_invalid_escape_is_no_missing_quote() {
        let of = |text: &str| {
            let error = Tokenizer::new(&GenericDialect {}, text).tokenize().expect_err(text);
            has_invalid_escape(text, &error)
        };
        let closed = ["E'\\uzz'", "SELECT 1,\n  e'é'' \\' \\xff' AS a", "E'\\0'", "E'\\U00110000'; SELECT '"];
        let open = ["E'x", "SELECT 'é',\n E'\\'", "E'\\uzz", "E'x''", "E'\\"];
        let others = ["'x", "\"x", "U&'\\zz'", "$$x"];
        for (texts, expected) in [(&closed[..], true), (&open[..], false), (&others[..], false)] {
            texts.iter().for_each(|text| assert_eq!(of(text), expected, "{text}"));
        }
        let error = parse_statements("SELECT E'\\uzz'").expect_err("no character");
        assert!(error.to_string().contains("Invalid escape in a text at Line: 1, Column: 8"), "{error}");
    }

    #[test]
    fn match_is_a_function_in_all_dialects() {
        for condition in ["match(a, 'b')", "NOT match(t.a || ' ' || b, $1)", "match(lower(a), 'b') AND c"] {
            let sql = format!("SELECT match(a, 'b') FROM t WHERE {condition}");
            for parsed in [parse_trees(&sql, GenericDialect {}), parse_trees(&sql, PostgreSqlDialect {})] {
                let parsed = parsed.unwrap_or_else(|error| panic!("{sql}: {error}"));
                assert_eq!(format!("{}", parsed[0]), sql);
                assert!(!format!("{parsed:?}").contains("MatchAgainst"), "{sql}");
            }
        }
    }

    #[test]
    fn usual_statements_are_far_from_the_limits() {
        let many = format!("SELECT * FROM t WHERE x IN ({}1)", "1, ".repeat(100_000));
        let wide = format!("SELECT {}1", "coalesce(round(cast(a AS double), 2), 0) AS b, ".repeat(2_000));
        let deep = nested("(", "a + 1", ")", 30);
        let mixed = nested("coalesce(round(cast(", "a", " AS int), 2), 0)", 4);
        let read = move || {
            for sql in [many, wide, deep, mixed] {
                assert_eq!(parse_statements(&sql).expect("a statement").len(), 1);
                assert_eq!(parse_trees(&sql, PostgreSqlDialect {}).expect("a statement").len(), 1);
            }
        };
        let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(read);
        thread.expect("a thread").join().expect("no panic");
    }
}
