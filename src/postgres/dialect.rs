//! PostgreSQL's meaning of SQL that the engine understands differently.
//!
//! A statement is parsed as PostgreSQL parses it. If that parser fails, such as for the list `['a']`, the engine's parser is
//! used. The syntax tree is then translated:
//!
//! | syntax | translation |
//! | --- | --- |
//! | `to_char(t, 'YYYY-MM-DD')` | a function that takes PostgreSQL's templates; formats with `%` stay |
//! | `to_timestamp`, `to_date` with a template | the engine's, with its format |
//! | `t AT TIME ZONE 'Europe/Berlin'`, `LOCALTIMESTAMP` | the local time of an instant, or the instant of a local time |
//! | intervals in all forms, and computed with numbers and dates | `spans`, `operators` |
//! | functions, and functions in FROM | `functions`, `from_items` |
//! | `x = ANY (ARRAY[1, 2])` | `x IN (1, 2)` |
//! | `(a, b) OVERLAPS (c, d)`, `x ^@ y`, `~x` | comparisons, `starts_with`, a difference |
//! | `x::int`, `x::text`, `x::text[]`, `x::uuid`, `x::json` | a function (`functions/postgres/cast`) |
//! | `'{a,b}'::text[]`, `x = ANY ('{a,b}')` | an array |
//! | `a ^ b`, `\|/ a`, `\|\|/ a`, `@ a` | `power`, `sqrt`, `cbrt`, `abs` |
//! | `extract(second FROM t)` | includes the fraction; the results divide with a fraction |
//! | `a[0]`, `a[-1]` | NULL |
//! | `(a, b) = (c, d)` | comparisons of the members, with their three truth values |
//! | `x COLLATE "C"` | `x`: texts are compared by their bytes; other collations are refused |
//! | `current_user`, `current_database()` | their values |
//!
//! A parameter has the type that the client declares, or else the one that the statement casts it to (`typed_parameters`).
//!
//! Sources: PostgreSQL documentation, "Data Type Formatting Functions", "Date/Time Functions and Operators", "Row and Array
//! Comparisons", "Collation Support".

mod from_items;
mod functions;
mod json;
mod operators;
mod regexes;
mod spans;
mod typed_parameters;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::types::{
    ArrowTimestampType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, new_null_array};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array as SqlArray, ArrayElemTypeDef, BinaryOperator, CastKind, CharacterLength, DataType as SqlType,
    DateTimeField, ExactNumberInfo, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Select, SelectItem, Statement, Subscript, TableFactor, TimezoneInfo, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::dialect::{GenericDialect, PostgreSqlDialect};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use postgres_types::{Kind, Type};

use super::catalog::{known_operator, strip};
use super::column_names;
use super::report::Report;
use crate::error::{Error, ErrorKind};
use crate::functions::{NotAnArray, instant_of, items};
use crate::host::planner::parse;
use crate::session::syntax::{self, Editor};
use crate::session::{call, case_of, members, without_exponent};

/// The zone of instants.
const UTC: &str = "UTC";
/// The function of casts.
const CAST: &str = "postgres_cast";

/// Names of the session that a statement can ask for.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) user: String,
    pub(super) database: String,
    /// The schema of names without one.
    pub(super) schema: String,
    pub(super) zone: String,
    /// Time at which the server started.
    pub(super) started: DateTime<Utc>,
    /// Values of calls of functions of catalogs in the statement, by the text of the call.
    pub(super) constants: HashMap<String, SqlExpr>,
}

impl Names {
    #[cfg(test)]
    pub(super) fn of_tests() -> Self {
        let [user, database, schema, zone] = ["ada", "savedsearch", "v4", UTC].map(str::to_owned);
        Self { user, database, schema, zone, started: DateTime::UNIX_EPOCH, constants: HashMap::new() }
    }

    /// The value of a word or a function without arguments that is replaced by a name of the session.
    pub(super) fn of_word(&self, word: &str) -> Option<&str> {
        match word.to_lowercase().as_str() {
            "current_user" | "session_user" | "current_role" | "user" => Some(&self.user),
            "current_catalog" | "current_database" => Some(&self.database),
            "current_schema" => Some(&self.schema),
            _ => None,
        }
    }
}

/// Adds the functions that translated statements call.
pub(super) fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(TimeZone::new()));
    context.register_udf(ScalarUDF::from(json::Json::new()));
    if context.state_ref().write().register_expr_planner(Arc::new(operators::Operators)).is_err() {
        tracing::error!("the operators of PostgreSQL are not registered");
    }
}

/// Parses a statement.
///
/// # Errors
/// Errors of the parser, in the engine's words; errors of limits, and of statements that write.
pub(super) fn parsed(sql: &str) -> Result<Parsed> {
    let first = match parse(&spaced(sql), PostgreSqlDialect {}) {
        Ok(parsed) => return writes_nothing(parsed),
        Err(error) => error,
    };
    if Error::find(&first).is_some() {
        return Err(first);
    }
    match without_unknown_syntax(sql)? {
        Some(known) => match parse(&spaced(&known), PostgreSqlDialect {}) {
            Ok(parsed) => writes_nothing(parsed),
            Err(_) => Err(first),
        },
        None => parse(sql, GenericDialect {}),
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
            let line = "CREATE TABLE with columns is not supported: the service is read-only";
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

/// Visits the statement that is run or explained.
pub(super) fn edit(parsed: &mut Parsed, editor: &mut dyn Editor) {
    match parsed {
        Parsed::Statement(statement) => syntax::edit(statement.as_mut(), editor),
        Parsed::Explain(explain) => edit(&mut explain.statement, editor),
        _ => {}
    }
}

/// The types of the parameters of a statement about catalogs that are declared or cast to one, by their number.
pub(super) fn parameter_types(statement: &mut Parsed, declared: &[Option<Type>]) -> BTreeMap<usize, Type> {
    typed_parameters::types(statement, declared)
}

/// Translates a statement, with types that the client declared for parameters. Returns the types of all parameters that are
/// declared or cast to one, by their number.
///
/// # Errors
/// What PostgreSQL reads in a way that the engine cannot follow.
pub(super) fn translated(
    mut statement: Parsed,
    names: &Names,
    declared: &[Option<Type>],
    values: &[ScalarValue],
) -> Result<(Parsed, BTreeMap<usize, Type>), Report> {
    column_names::name_columns(&mut statement);
    translated_as_named(statement, names, declared, values)
}

fn translated_as_named(
    mut statement: Parsed,
    names: &Names,
    declared: &[Option<Type>],
    values: &[ScalarValue],
) -> Result<(Parsed, BTreeMap<usize, Type>), Report> {
    let types = typed_parameters::mark(&mut statement, declared);
    let mut translator = Translator { names, types: &types, refused: None };
    edit(&mut statement, &mut translator);
    if let Some(report) = translator.refused {
        return Err(report);
    }
    typed_parameters::unmark(&mut statement, values);
    Ok((statement, types))
}

struct Translator<'a> {
    names: &'a Names,
    /// Types of parameters.
    types: &'a BTreeMap<usize, Type>,
    /// The first error.
    refused: Option<Report>,
}

impl Editor for Translator<'_> {
    fn pre_visit_select(&mut self, select: &mut Select) {
        from_items::keep_value(select);
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                functions::rows_of_item(expr);
            }
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) {
        match factor {
            TableFactor::Table { args: Some(args), .. } => args.args.iter_mut().for_each(name_of_argument),
            TableFactor::Function { args, .. } => args.iter_mut().for_each(name_of_argument),
            _ => {}
        }
        from_items::translated(factor);
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) {
        if !self.names.constants.is_empty()
            && matches!(expr, SqlExpr::Function(_) | SqlExpr::Cast { .. })
            && let Some(constant) = self.names.constants.get(&expr.to_string())
        {
            *expr = constant.clone();
        }
        match expr {
            // The sign binds closer than a power.
            SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr: inner }
                if matches!(inner.as_ref(), SqlExpr::BinaryOp { op: BinaryOperator::PGExp, .. }) =>
            {
                let mut power = inner.as_ref().clone();
                let mut base = &mut power;
                while let SqlExpr::BinaryOp { left, op: BinaryOperator::PGExp, .. } = base {
                    base = left.as_mut();
                }
                *base = SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(base.clone()) };
                *expr = power;
            }
            SqlExpr::Exists { subquery, negated } => {
                if let Some(any) = from_items::any_item(subquery) {
                    *expr = if *negated { not(any) } else { any };
                }
            }
            // A shorter text is equal before it is cut and after.
            SqlExpr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                uncut(left, right);
                uncut(right, left);
            }
            _ => {}
        }
    }

    fn post_visit_expr(&mut self, expr: &mut SqlExpr) {
        if self.refused.is_some() {
            return;
        }
        match self.translate(expr) {
            Ok(None) => {}
            Ok(Some(new)) => match check_copies(&new, 1) {
                Ok(()) => *expr = new,
                Err(report) => self.refused = Some(report),
            },
            Err(report) => self.refused = Some(report),
        }
    }
}

/// Expressions in the translation of one expression.
const EXPRESSIONS: usize = 200_000;

/// Rejects an expression that is too large to stand `copies` times in a translation: nested copies grow exponentially.
fn check_copies(expr: &SqlExpr, copies: usize) -> Result<(), Report> {
    let most = EXPRESSIONS / copies.max(1);
    if syntax::count_expressions(expr, most + 1) <= most {
        return Ok(());
    }
    let line = "statement too complex: expressions are nested too deeply: compute the inner ones in a subquery";
    Err(Report::error("54001", line))
}

/// An error for what is not supported.
fn unsupported(line: impl Into<String>) -> Report {
    Report::error("0A000", line)
}

fn name_of_argument(argument: &mut FunctionArg) {
    if let FunctionArg::ExprNamed { name: SqlExpr::Identifier(name), arg, operator } = argument {
        *argument = FunctionArg::Named { name: name.clone(), arg: arg.clone(), operator: operator.clone() };
    }
}

impl Translator<'_> {
    /// Returns what stands in the place of an expression, whose parts are translated already.
    fn translate(&mut self, expr: &mut SqlExpr) -> Result<Option<SqlExpr>, Report> {
        Ok(match expr {
            SqlExpr::Function(function) => {
                strip(&mut function.name);
                if let FunctionArguments::List(list) = &mut function.args {
                    list.args.iter_mut().for_each(name_of_argument);
                }
                match self.session_name(&SqlExpr::Function(function.clone())) {
                    Some(value) => Some(text(value)),
                    None => self.function(function)?,
                }
            }
            SqlExpr::Identifier(_) => self.session_name(expr).map(text),
            SqlExpr::AtTimeZone { timestamp, time_zone } => {
                Some(call(TimeZone::NAME, vec![time_zone.as_ref().clone(), timestamp.as_ref().clone()]))
            }
            SqlExpr::BinaryOp { left, op, right } => binary(left, op, right)?,
            SqlExpr::UnaryOp { op, expr } => {
                let double = |expr: &SqlExpr| cast_to(expr.clone(), SqlType::DoublePrecision);
                match op {
                    UnaryOperator::PGSquareRoot => Some(call("sqrt", vec![double(expr)])),
                    UnaryOperator::PGCubeRoot => Some(call("cbrt", vec![double(expr)])),
                    UnaryOperator::PGAbs => Some(call("abs", vec![expr.as_ref().clone()])),
                    UnaryOperator::Minus => spans::negated(expr)?,
                    UnaryOperator::BitwiseNot => {
                        let one_less = pair(expr.as_ref().clone(), BinaryOperator::Plus, number("1"));
                        Some(SqlExpr::Nested(Box::new(SqlExpr::UnaryOp {
                            op: UnaryOperator::Minus,
                            expr: Box::new(one_less),
                        })))
                    }
                    _ => None,
                }
            }
            SqlExpr::Interval(interval) => spans::translated(interval)?,
            SqlExpr::IsNull(inner) => all_members(inner, SqlExpr::IsNull),
            SqlExpr::IsNotNull(inner) => all_members(inner, SqlExpr::IsNotNull),
            SqlExpr::IsDistinctFrom(left, right) => distinct(left, right)?.map(not),
            SqlExpr::IsNotDistinctFrom(left, right) => distinct(left, right)?,
            SqlExpr::InList { expr, list, negated } if members(expr).is_some() => {
                check_copies(expr, list.len())?;
                let mut equal = Vec::new();
                for item in list {
                    equal.push(
                        rows(expr, &BinaryOperator::Eq, item)?
                            .ok_or_else(|| unsupported("a row can only be in a list of rows"))?,
                    );
                }
                let any = joined(equal, &BinaryOperator::Or);
                any.map(|any| if *negated { not(any) } else { any })
            }
            SqlExpr::Between { expr, negated, low, high } if members(expr).is_some() => {
                let low = rows(expr, &BinaryOperator::GtEq, low)?;
                let high = rows(expr, &BinaryOperator::LtEq, high)?;
                let both = low.zip(high).map(|(low, high)| pair(low, BinaryOperator::And, high));
                both.map(|both| if *negated { not(both) } else { both })
            }
            // Of a type that only the other side decides.
            SqlExpr::AnyOp { left, compare_op, right, .. } => compared(left, compare_op, right, false)?,
            SqlExpr::AllOp { left, compare_op, right } => compared(left, compare_op, right, true)?,
            SqlExpr::Collate { expr, collation } => match bytewise(collation) {
                true => Some(expr.as_ref().clone()),
                false => {
                    let line = format!("collation {collation} is not supported: texts are compared by their bytes");
                    return Err(unsupported(line + ", as COLLATE \"C\" says"));
                }
            },
            SqlExpr::Substring { expr, substring_from: Some(pattern), substring_for: None, .. }
                if literal_of(pattern).is_some() =>
            {
                Some(functions::first_match(expr, pattern))
            }
            // The engine takes an integer of one size.
            SqlExpr::Substring { substring_from, substring_for, .. } => {
                for place in [substring_from, substring_for].into_iter().flatten() {
                    if typed_parameters::number_of(place).is_some() && literal_of(place).is_none() {
                        **place = cast_to(place.as_ref().clone(), SqlType::BigInt(None));
                    }
                }
                None
            }
            SqlExpr::Extract { field, expr, .. } => part_of(&field.to_string(), expr, true, field),
            SqlExpr::CompoundFieldAccess { root, access_chain } => subscripts(root, access_chain)?,
            SqlExpr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
                match literal_of(expr).map(|text| time_of(&text, data_type)).transpose()?.flatten() {
                    Some(time) => Some(time),
                    None => self.cast(expr, data_type)?,
                }
            }
            SqlExpr::TypedString(typed) => match typed.value.clone().into_string() {
                Some(text) => time_of(&text, &typed.data_type)?,
                None => None,
            },
            _ => None,
        })
    }

    /// The value of an expression that asks for a name of the session.
    fn session_name(&self, expr: &SqlExpr) -> Option<&str> {
        let word = match expr {
            SqlExpr::Identifier(word) if word.quote_style.is_none() && !word.value.eq_ignore_ascii_case("user") => {
                word.value.to_lowercase()
            }
            SqlExpr::Function(function) => {
                let none = match &function.args {
                    FunctionArguments::None => true,
                    FunctionArguments::List(list) => list.args.is_empty(),
                    FunctionArguments::Subquery(_) => false,
                };
                let name = function.name.to_string().to_lowercase();
                let name = name.trim_start_matches("pg_catalog.").to_owned();
                if !none {
                    return None;
                }
                name
            }
            _ => return None,
        };
        // A database's name is asked for by a function only.
        if word == "current_database" && matches!(expr, SqlExpr::Identifier(_)) {
            return None;
        }
        self.names.of_word(&word)
    }

    fn function(&self, function: &mut Function) -> Result<Option<SqlExpr>, Report> {
        let name = function.name.to_string().to_lowercase();
        if let (FunctionArguments::None, "localtimestamp") = (&function.args, name.as_str()) {
            return Ok(Some(call(TimeZone::NAME, vec![text(&self.names.zone), call("now", Vec::new())])));
        }
        if let Some(translated) = functions::translated(&name, function)? {
            return Ok(Some(translated));
        }
        let FunctionArguments::List(list) = &mut function.args else { return Ok(None) };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(first)), FunctionArg::Unnamed(FunctionArgExpr::Expr(second))] =
            list.args.as_mut_slice()
        else {
            return Ok(None);
        };
        let literal = literal_of(second);
        // The engine's formats stay what they are.
        let of_engine = literal.as_deref().is_some_and(is_format);
        match name.as_str() {
            "to_char" if !of_engine => function.name = ObjectName::from(vec![Ident::new("postgres_to_char")]),
            "to_timestamp" | "to_date" if !of_engine => match literal {
                Some(template) => {
                    let format = format_of(&template).map_err(|pattern| {
                        unsupported(format!(
                            "{name}: `{pattern}` is not supported in a template; put text in double quotes, or use a format \
                             such as '%Y-%m-%d'"
                        ))
                    })?;
                    let (complete, format) = with_minutes(first, &format);
                    (*first, *second) = (complete, text(&format));
                }
                None => return Err(unsupported(format!("{name}: a template that is no literal is not supported"))),
            },
            "date_part" => {
                if let Some(part) = literal_of(first) {
                    return Ok(part_of(&part, second, false, &DateTimeField::NoDateTime));
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// Translates a cast.
    fn cast(&mut self, inner: &SqlExpr, data_type: &mut SqlType) -> Result<Option<SqlExpr>, Report> {
        if let SqlType::Custom(name, _) = data_type {
            strip(name);
        }
        let Some(postgres) = type_named(data_type) else {
            return match data_type {
                SqlType::JSONB => Err(unsupported("jsonb is not supported: use json")),
                SqlType::Array(_) => Err(unsupported(format!("casts to {data_type} are not supported"))),
                _ => Ok(None),
            };
        };
        if typed_parameters::marked(inner).is_some_and(|marked| marked == postgres) && scale_of(data_type).is_none() {
            return Ok(Some(inner.clone()));
        }
        // Of this type, not of another one that is cast.
        let parameter = typed_parameters::number_of(inner)
            .is_some_and(|number| self.types.get(&number).is_none_or(|known| *known == postgres));
        let constant = literal_of(inner);
        let named = |name: &str| Ok(Some(call(CAST, vec![inner.clone(), text(name)])));
        match postgres {
            Type::INT2 | Type::INT4 | Type::INT8 if constant.is_none() && whole_number(inner).is_none() => {
                let mut arguments = vec![inner.clone(), text(postgres.name())];
                if is_numeric(inner) {
                    arguments.push(SqlExpr::value(Value::Boolean(true)));
                }
                Ok(Some(call(CAST, arguments)))
            }
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => {
                let length = length_of(data_type);
                if postgres == Type::BPCHAR && length != Some(1) {
                    let line =
                        format!("{data_type} is not supported: it pads texts with blanks; use varchar(n) or text");
                    return Err(unsupported(line));
                }
                *data_type = SqlType::Text;
                let whole = match constant.is_some() || parameter {
                    true => cast_to(inner.clone(), SqlType::Text),
                    false => call(CAST, vec![inner.clone(), text("text")]),
                };
                Ok(Some(match length {
                    Some(length) => call("left", vec![whole, number(&length.to_string())]),
                    None => whole,
                }))
            }
            Type::INTERVAL => match (&constant, parameter) {
                (Some(words), _) => spans::literal(words, None).map(Some),
                (None, true) => Ok(None),
                (None, false) => named("interval"),
            },
            Type::UUID | Type::JSON => named(postgres.name()),
            Type::BYTEA if parameter => Ok(Some(inner.clone())),
            Type::BYTEA => match constant.as_deref().map(|text| text.strip_prefix("\\x")) {
                Some(Some(digits)) => Ok(Some(SqlExpr::value(Value::HexStringLiteral(digits.to_owned())))),
                Some(None) if !constant.iter().any(|text| text.contains('\\')) => {
                    let bytes = constant.as_deref().unwrap_or_default().as_bytes();
                    let digits = data_encoding::HEXLOWER.encode(bytes);
                    Ok(Some(SqlExpr::value(Value::HexStringLiteral(digits))))
                }
                _ => Err(unsupported("casts to bytea are supported for literals like '\\x0a0b' only")),
            },
            // Without a scale a number keeps its digits.
            Type::NUMERIC if scale_of(data_type).is_none() => match constant.clone().or_else(|| digits_of(inner)) {
                _ if parameter => Ok(Some(inner.clone())),
                Some(number) => Ok(without_exponent(number.trim()).and_then(|digits| {
                    let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                    let to = format!("Decimal128(38, {scale})");
                    (scale <= 37).then(|| call("arrow_cast", vec![text(&digits), text(&to)]))
                })),
                None => Ok(None),
            },
            _ => match postgres.kind() {
                Kind::Array(_) if parameter => Ok(Some(inner.clone())),
                Kind::Array(item) => match (constant, inner) {
                    (Some(literal), _) => Ok(Some(array_of(&literal, Some(data_type))?)),
                    (None, SqlExpr::Array(array)) if *item != Type::TEXT || array.elem.iter().all(is_written) => {
                        Ok(None)
                    }
                    (None, _) if typed_parameters::of_integers(inner) => Ok(None),
                    (None, _) => named(&format!("{}[]", item.name())),
                },
                _ => Ok(None),
            },
        }
    }
}

/// A date or a time that PostgreSQL reads in another way than the engine: words such as `today`, and digits.
///
/// # Errors
/// Texts that the engine would complete.
fn time_of(literal: &str, data_type: &SqlType) -> Result<Option<SqlExpr>, Report> {
    let Some(known) = type_named(data_type) else { return Ok(None) };
    let word = literal.trim().to_lowercase();
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let invalid = |name: &str| Report::error("22007", format!("invalid input syntax for type {name}: \"{literal}\""));
    let day = |days: i64| {
        let today = call("current_date", Vec::new());
        match days {
            0 => today,
            1.. => pair(today, BinaryOperator::Plus, number(&days.to_string())),
            _ => pair(today, BinaryOperator::Minus, number(&days.abs().to_string())),
        }
    };
    let to = |expr: SqlExpr| Some(cast_to(expr, data_type.clone()));
    Ok(match known {
        Type::DATE | Type::TIMESTAMP | Type::TIMESTAMPTZ => match word.as_str() {
            "today" => to(day(0)),
            "tomorrow" => to(day(1)),
            "yesterday" => to(day(-1)),
            "now" => to(call("now", Vec::new())),
            "epoch" => {
                to(text("1970-01-01 00:00:00Z")).filter(|_| known == Type::TIMESTAMPTZ).or(to(text("1970-01-01")))
            }
            _ if word.split('-').count() == 2 && word.replace('-', "").bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(invalid(if known == Type::DATE { "date" } else { "timestamp" }));
            }
            _ if known != Type::TIMESTAMPTZ => without_offset(literal).and_then(|local| to(text(local))),
            _ => None,
        },
        Type::TIME if word == "now" => to(call("now", Vec::new())),
        Type::TIME if digits => match word.len() {
            4 => to(text(&format!("{}:{}:00", &word[..2], &word[2..]))),
            6 => to(text(&format!("{}:{}:{}", &word[..2], &word[2..4], &word[4..]))),
            _ => return Err(invalid("time")),
        },
        _ => None,
    })
}

/// A local time without the offset that is written after it, which PostgreSQL ignores; `None` if there is none.
pub(super) fn without_offset(literal: &str) -> Option<&str> {
    let time = literal.find(':')?;
    let offset = time + literal[time..].find(['+', '-', 'Z', 'z'])?;
    let digits = literal[offset + 1..].trim_end();
    digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b':').then(|| literal[..offset].trim_end())
}

/// The text of a literal.
fn literal_of(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text.clone()),
            Value::DollarQuotedString(quoted) => Some(quoted.value.clone()),
            _ => None,
        },
        SqlExpr::Nested(inner) => literal_of(inner),
        _ => None,
    }
}

/// The digits of a number, with its sign.
fn digits_of(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            digits_of(expr).filter(|digits| !digits.starts_with('-')).map(|digits| format!("-{digits}"))
        }
        SqlExpr::Nested(inner) => digits_of(inner),
        _ => None,
    }
}

fn whole_number(expr: &SqlExpr) -> Option<i64> {
    digits_of(expr)?.parse().ok()
}

/// True for an expression of numbers that PostgreSQL computes as numeric, unless a column in it has double precision: nothing in it
/// makes a double of other numbers.
fn is_numeric(expr: &SqlExpr) -> bool {
    /// Functions of integers whose result is of double precision.
    const DOUBLES: [&str; 46] = [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "corr",
        "cos",
        "cosh",
        "cot",
        "covar_pop",
        "covar_samp",
        "cume_dist",
        "date_part",
        "degrees",
        "exp",
        "ln",
        "log",
        "log10",
        "log2",
        "median",
        "percent_rank",
        "percentile_cont",
        "pi",
        "pow",
        "power",
        "radians",
        "random",
        "regr_avgx",
        "regr_avgy",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "sin",
        "sinh",
        "sqrt",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "tan",
        "tanh",
    ];
    if literal_of(expr).is_some() {
        return false;
    }
    let mut doubles = false;
    syntax::expressions(expr, &mut |part| {
        doubles |= match part {
            SqlExpr::Cast { data_type, .. } => {
                type_named(data_type).is_some_and(|to| [Type::FLOAT4, Type::FLOAT8].contains(&to))
            }
            SqlExpr::Function(function) => DOUBLES.contains(&function.name.to_string().to_lowercase().as_str()),
            // Their columns are not seen.
            SqlExpr::Subquery(_) => true,
            _ => false,
        };
    });
    !doubles
}

fn text(text: &str) -> SqlExpr {
    SqlExpr::value(Value::SingleQuotedString(text.to_owned()))
}

fn number(digits: &str) -> SqlExpr {
    SqlExpr::value(Value::Number(digits.to_owned(), false))
}

fn cast_to(expr: SqlExpr, data_type: SqlType) -> SqlExpr {
    SqlExpr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn not(expr: SqlExpr) -> SqlExpr {
    SqlExpr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }
}

fn pair(left: SqlExpr, op: BinaryOperator, right: SqlExpr) -> SqlExpr {
    SqlExpr::Nested(Box::new(SqlExpr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

/// Joins conditions into a tree of little depth.
fn joined(mut conditions: Vec<SqlExpr>, op: &BinaryOperator) -> Option<SqlExpr> {
    if conditions.len() <= 1 {
        return conditions.pop();
    }
    let rest = conditions.split_off(conditions.len() / 2);
    let (left, right) = (joined(conditions, op)?, joined(rest, op)?);
    Some(pair(left, op.clone(), right))
}

fn all_members(expr: &SqlExpr, is: fn(Box<SqlExpr>) -> SqlExpr) -> Option<SqlExpr> {
    let each = members(expr)?.into_iter().map(|member| is(Box::new(member))).collect();
    joined(each, &BinaryOperator::And)
}

/// The members of two rows of the same length; `None` if not both are rows.
fn both_members(left: &SqlExpr, right: &SqlExpr) -> Result<Option<Vec<(SqlExpr, SqlExpr)>>, Report> {
    let (Some(left), Some(right)) = (members(left), members(right)) else { return Ok(None) };
    if left.len() != right.len() {
        return Err(Report::error("42601", "unequal number of entries in row expressions"));
    }
    Ok(Some(left.into_iter().zip(right).collect()))
}

/// `left IS NOT DISTINCT FROM right` for rows.
fn distinct(left: &SqlExpr, right: &SqlExpr) -> Result<Option<SqlExpr>, Report> {
    let Some(members) = both_members(left, right)? else { return Ok(None) };
    let same = members
        .into_iter()
        .map(|(a, b)| SqlExpr::Nested(Box::new(SqlExpr::IsNotDistinctFrom(Box::new(a), Box::new(b)))));
    Ok(joined(same.collect(), &BinaryOperator::And))
}

/// A comparison of two rows, member by member.
fn rows(left: &SqlExpr, op: &BinaryOperator, right: &SqlExpr) -> Result<Option<SqlExpr>, Report> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let Some(members) = both_members(left, right)? else { return Ok(None) };
    let each = |op: &BinaryOperator| members.iter().map(|(a, b)| pair(a.clone(), op.clone(), b.clone())).collect();
    let strict = match op {
        Eq => return Ok(joined(each(&Eq), &And)),
        NotEq => return Ok(joined(each(&NotEq), &Or)),
        Lt | LtEq => Lt,
        Gt | GtEq => Gt,
        other => return Err(unsupported(format!("rows cannot be compared by {other}"))),
    };
    // The first members that differ decide.
    let mut found: Option<SqlExpr> = None;
    for (a, b) in members.into_iter().rev() {
        found = Some(match found {
            None => pair(a, op.clone(), b),
            Some(rest) => {
                let less = pair(a.clone(), strict.clone(), b.clone());
                pair(less, Or, pair(pair(a, Eq, b), And, rest))
            }
        });
    }
    Ok(found)
}

fn binary(left: &mut SqlExpr, op: &mut BinaryOperator, right: &mut SqlExpr) -> Result<Option<SqlExpr>, Report> {
    use BinaryOperator::{
        ArrowAt, AtArrow, BitwiseXor, Custom, Overlaps, PGCustomBinaryOperator, PGExp, PGOverlap, PGStartsWith,
        StringConcat,
    };
    regexes::of_operator(op, right);
    let of_rows =
        matches!(left, SqlExpr::Tuple(_) | SqlExpr::Function(_) | SqlExpr::Nested(_)) && members(left).is_some();
    Ok(match op {
        StringConcat if [&*left, &*right].iter().all(|side| typed_parameters::is_open(side)) => {
            let text = |side: &SqlExpr| cast_to(side.clone(), SqlType::Text);
            Some(pair(text(left), StringConcat, text(right)))
        }
        PGStartsWith => Some(call("starts_with", vec![left.clone(), right.clone()])),
        Overlaps => Some(overlaps(left, right)?),
        PGExp => Some(power(left, right)),
        // Read by the engine's parser, which gives it the precedence of another operator.
        BitwiseXor => {
            if [&*left, &*right].iter().any(|side| matches!(side, SqlExpr::BinaryOp { .. } | SqlExpr::UnaryOp { .. })) {
                return Err(unsupported(
                    "`^` between other operators is not supported in this statement: use power(a, b)",
                ));
            }
            Some(power(left, right))
        }
        PGCustomBinaryOperator(names) => match names.last().and_then(|name| known_operator(name)) {
            Some(known) => {
                *op = known;
                return binary(left, op, right);
            }
            None => return Err(unsupported(format!("operator {} is not supported", names.join(".")))),
        },
        Custom(name) => return Err(unsupported(format!("operator {name} is not supported"))),
        AtArrow | ArrowAt | PGOverlap => {
            for side in [left, right] {
                if let Some(literal) = literal_of(side).filter(|text| text.trim().starts_with('{')) {
                    *side = array_of(&literal, None)?;
                }
            }
            None
        }
        op if of_rows => rows(left, op, right)?,
        _ => None,
    })
}

/// `(start, end) OVERLAPS (start, end)`: periods with their start, without their end. An end may be the length of the period.
fn overlaps(left: &SqlExpr, right: &SqlExpr) -> Result<SqlExpr, Report> {
    /// Times that a member stands in the result, at most.
    const COPIES: usize = 64;
    use BinaryOperator::{And, Eq, Gt, GtEq, Or, Plus};
    let period = |side: &SqlExpr| match members(side).as_deref() {
        Some([start, end]) => {
            let length = matches!(end, SqlExpr::Interval(_))
                || matches!(end, SqlExpr::Cast { data_type: SqlType::Interval { .. }, .. });
            let end = if length { pair(start.clone(), Plus, end.clone()) } else { end.clone() };
            // In this order; without an end if one of the two is missing.
            let later = call("greatest", vec![start.clone(), end.clone()]);
            let known = pair(
                SqlExpr::IsNotNull(Box::new(SqlExpr::Nested(Box::new(start.clone())))),
                And,
                SqlExpr::IsNotNull(Box::new(SqlExpr::Nested(Box::new(end.clone())))),
            );
            Ok((call("least", vec![start.clone(), end]), when(known, later)))
        }
        _ => Err(Report::error("42601", "OVERLAPS takes two rows of two: (start, end) OVERLAPS (start, end)")),
    };
    check_copies(left, COPIES)?;
    check_copies(right, COPIES)?;
    let ((start, end), (other_start, other_end)) = (period(left)?, period(right)?);
    let pair = |left: &SqlExpr, op: BinaryOperator, right: &SqlExpr| pair(left.clone(), op, right.clone());
    let begins_within = |start: &SqlExpr, end: &SqlExpr, other_start: &SqlExpr, other_end: &SqlExpr| {
        let after = pair(&pair(start, GtEq, other_end), And, &pair(end, GtEq, other_end));
        pair(&pair(start, Gt, other_start), And, &not(after))
    };
    let together = pair(
        &pair(&start, Eq, &other_start),
        And,
        &pair(&pair(&end, Eq, &end), And, &pair(&other_end, Eq, &other_end)),
    );
    let either = pair(
        &begins_within(&start, &end, &other_start, &other_end),
        Or,
        &begins_within(&other_start, &other_end, &start, &end),
    );
    Ok(pair(&either, Or, &together))
}

/// `CASE WHEN condition THEN result END`.
fn when(condition: SqlExpr, result: SqlExpr) -> SqlExpr {
    case_of(vec![(condition, result)], None)
}

/// True for an item whose text is the one that was written.
fn is_written(item: &SqlExpr) -> bool {
    literal_of(item).is_some() || matches!(item, SqlExpr::Value(value) if !matches!(value.value, Value::Number(..)))
}

/// The items of an array that is written as one.
fn written_items(expr: &SqlExpr) -> Option<&[SqlExpr]> {
    match expr {
        SqlExpr::Array(array) => Some(&array.elem),
        SqlExpr::Nested(inner) => written_items(inner),
        SqlExpr::Cast { expr, data_type: SqlType::Array(_), .. } => written_items(expr),
        SqlExpr::Function(Function { name, args: FunctionArguments::List(list), .. }) if name.to_string() == CAST => {
            match list.args.first() {
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(array @ SqlExpr::Array(_)))) => written_items(array),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A comparison with any or all items of an array that is written as a text or item by item; `None` for another array.
fn compared(left: &SqlExpr, op: &BinaryOperator, right: &SqlExpr, all: bool) -> Result<Option<SqlExpr>, Report> {
    if let Some(items) =
        written_items(right).filter(|items| !items.iter().any(|item| matches!(item, SqlExpr::Array(_))))
    {
        check_copies(left, items.len())?;
        let in_list = |negated| SqlExpr::InList { expr: Box::new(left.clone()), list: items.to_vec(), negated };
        return Ok(Some(match (op, all) {
            _ if items.is_empty() => SqlExpr::value(Value::Boolean(all)),
            (BinaryOperator::Eq, false) => in_list(false),
            (BinaryOperator::NotEq, true) => in_list(true),
            _ => {
                let each = items.iter().map(|item| pair(left.clone(), op.clone(), item.clone())).collect();
                let joint = if all { BinaryOperator::And } else { BinaryOperator::Or };
                joined(each, &joint).unwrap_or_else(|| SqlExpr::value(Value::Boolean(all)))
            }
        }));
    }
    let Some(literal) = literal_of(right) else { return Ok(None) };
    let items = read_items(&literal)?;
    check_copies(left, items.len())?;
    let each = items.into_iter().map(|item| {
        pair(left.clone(), op.clone(), item.map_or_else(|| SqlExpr::value(Value::Null), |item| text(&item)))
    });
    let joint = if all { BinaryOperator::And } else { BinaryOperator::Or };
    Ok(joined(each.collect(), &joint).or_else(|| Some(SqlExpr::value(Value::Boolean(all)))))
}

/// The items of an array in its text form.
fn read_items(literal: &str) -> Result<Vec<Option<String>>, Report> {
    items(literal).map_err(|error| {
        let code = if error == NotAnArray::Nested { "0A000" } else { "22P02" };
        Report::error(code, error.line(literal))
    })
}

fn power(left: &SqlExpr, right: &SqlExpr) -> SqlExpr {
    let double = |side: &SqlExpr| cast_to(side.clone(), SqlType::DoublePrecision);
    call("power", vec![double(left), double(right)])
}

/// An array of the items of a literal, which are of the type if there is one.
fn array_of(literal: &str, to: Option<&SqlType>) -> Result<SqlExpr, Report> {
    let items = read_items(literal)?;
    let elem = items.iter().map(|item| item.as_ref().map_or_else(|| SqlExpr::value(Value::Null), |item| text(item)));
    let array = SqlExpr::Array(SqlArray { elem: elem.collect(), named: true });
    let to =
        to.cloned().unwrap_or_else(|| SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(SqlType::Text), None)));
    // Empty ones and those of missing items have no type of their own.
    Ok(cast_to(array, plain_array(to)))
}

/// The type with items that the engine knows.
fn plain_array(data_type: SqlType) -> SqlType {
    match data_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, length)) => {
            let texts = matches!(type_named(&item), Some(Type::UUID | Type::JSON | Type::NAME | Type::BPCHAR));
            SqlType::Array(ArrayElemTypeDef::SquareBracket(if texts { Box::new(SqlType::Text) } else { item }, length))
        }
        other => other,
    }
}

/// True for a collation that compares bytes, which is how the engine compares texts. The default one does so too.
fn bytewise(collation: &ObjectName) -> bool {
    let parts: Vec<&str> =
        collation.0.iter().filter_map(|part| part.as_ident()).map(|name| name.value.as_str()).collect();
    match parts.as_slice() {
        [name] | ["pg_catalog", name] => ["C", "POSIX", "ucs_basic", "default", "C.utf8", "C.UTF-8"].contains(name),
        _ => false,
    }
}

/// A part of a time as a number that can have a fraction: numeric for EXTRACT, double precision for `date_part`.
fn part_of(part: &str, time: &SqlExpr, exact: bool, field: &DateTimeField) -> Option<SqlExpr> {
    let part = part.to_lowercase();
    let unit = |unit: &str| call("date_part", vec![text(unit), time.clone()]);
    let decimal =
        |expr, digits, scale| cast_to(expr, SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, scale)));
    let micros = || unit("microsecond");
    let scaled = match part.as_str() {
        "second" | "seconds" | "sec" | "secs" => Some(("0.000001", 6)),
        "millisecond" | "milliseconds" | "msec" | "msecs" => Some(("0.001", 3)),
        "timezone" | "timezone_hour" | "timezone_minute" => return Some(offset_of_zone(&part, time, exact)),
        "century" => return Some(of_years(time, exact, 100)),
        "millennium" => return Some(of_years(time, exact, 1_000)),
        "decade" => {
            let years = call("floor", vec![pair(unit("year"), BinaryOperator::Divide, number("10.0"))]);
            return Some(if exact { decimal(years, 10, 0) } else { years });
        }
        // Of double precision already, and of words that the engine does not know.
        "epoch" => return None,
        _ if *field == DateTimeField::NoDateTime && exact => return None,
        _ => None,
    };
    Some(match (scaled, exact) {
        (Some((factor, scale)), true) => {
            let product = pair(decimal(micros(), 10, 0), BinaryOperator::Multiply, decimal(text(factor), 7, scale));
            decimal(product, 11, scale)
        }
        (Some((factor, _)), false) => {
            let divisor = if factor == "0.001" { "1000" } else { "1000000" };
            let double = |expr| cast_to(expr, SqlType::DoublePrecision);
            pair(double(micros()), BinaryOperator::Divide, double(number(divisor)))
        }
        (None, true) => decimal(unit(&part), 10, 0),
        (None, false) => cast_to(unit(&part), SqlType::DoublePrecision),
    })
}

/// The offset of the session's zone at an instant: its local time, taken for one of UTC, minus the instant.
fn offset_of_zone(part: &str, time: &SqlExpr, exact: bool) -> SqlExpr {
    let local = cast_to(time.clone(), SqlType::Timestamp(None, TimezoneInfo::None));
    let epoch = |time: SqlExpr| call("date_part", vec![text("epoch"), time]);
    let seconds = pair(epoch(call(TimeZone::NAME, vec![text(UTC), local])), BinaryOperator::Minus, epoch(time.clone()));
    let whole = |expr: SqlExpr, divisor: &str| call("trunc", vec![pair(expr, BinaryOperator::Divide, number(divisor))]);
    let value = match part {
        "timezone_hour" => whole(seconds, "3600.0"),
        "timezone_minute" => whole(pair(seconds, BinaryOperator::Modulo, number("3600.0")), "60.0"),
        _ => seconds,
    };
    match exact {
        true => cast_to(value, SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))),
        false => value,
    }
}

/// The number of spans of years, which begin with the year one.
fn of_years(time: &SqlExpr, exact: bool, years: u16) -> SqlExpr {
    let year = call("date_part", vec![text("year"), time.clone()]);
    let spans = pair(year, BinaryOperator::Divide, number(&format!("{years}.0")));
    let spans = call("ceil", vec![spans]);
    match exact {
        true => cast_to(spans, SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))),
        false => spans,
    }
}

/// Subscripts count from one: there is nothing at zero and below.
fn subscripts(root: &SqlExpr, chain: &mut [AccessExpr]) -> Result<Option<SqlExpr>, Report> {
    let mut outside = Vec::new();
    for access in chain.iter_mut() {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) if literal_of(index).is_none() => {
                match whole_number(index) {
                    Some(1..) => {}
                    Some(_) => {
                        outside.push(SqlExpr::value(Value::Boolean(false)));
                        *index = number("1");
                    }
                    None => outside.push(pair(index.clone(), BinaryOperator::GtEq, number("1"))),
                }
            }
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                for bound in [&*lower_bound, &*upper_bound].into_iter().flatten() {
                    if whole_number(bound).is_none() {
                        return Err(unsupported("bounds of slices that are no literals are not supported"));
                    }
                }
                let least = |bound: &Option<SqlExpr>| bound.as_ref().and_then(whole_number);
                if least(lower_bound).is_some_and(|at| at < 1) {
                    *lower_bound = Some(number("1"));
                }
                // No items at all.
                if least(upper_bound).is_some_and(|at| at < 1) {
                    (*lower_bound, *upper_bound) = (Some(number("2")), Some(number("1")));
                }
                // The engine requires both; beyond the last item there is nothing.
                lower_bound.get_or_insert_with(|| number("1"));
                upper_bound.get_or_insert_with(|| number(&i32::MAX.to_string()));
            }
            _ => {}
        }
    }
    Ok(joined(outside, &BinaryOperator::And).map(|inside| {
        when(inside, SqlExpr::CompoundFieldAccess { root: Box::new(root.clone()), access_chain: chain.to_vec() })
    }))
}

/// Drops the length of a cast to text if the other side is a shorter literal.
fn uncut(cut: &mut SqlExpr, literal: &SqlExpr) {
    if let (SqlExpr::Cast { data_type, .. }, Some(literal)) = (cut, literal_of(literal))
        && type_named(data_type) == Some(Type::VARCHAR)
        && length_of(data_type).is_some_and(|length| (literal.chars().count() as u64) < length)
    {
        *data_type = SqlType::Text;
    }
}

/// The length of a type of texts.
fn length_of(data_type: &SqlType) -> Option<u64> {
    match data_type {
        SqlType::Varchar(length) | SqlType::CharVarying(length) | SqlType::CharacterVarying(length) => match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => None,
        },
        SqlType::Char(length) | SqlType::Character(length) => match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => Some(1),
        },
        _ => None,
    }
}

/// The scale of a numeric type that has one.
fn scale_of(data_type: &SqlType) -> Option<i64> {
    match data_type {
        SqlType::Numeric(info) | SqlType::Decimal(info) | SqlType::Dec(info) => match info {
            ExactNumberInfo::None => None,
            ExactNumberInfo::Precision(_) => Some(0),
            ExactNumberInfo::PrecisionAndScale(_, scale) => Some(*scale),
        },
        _ => None,
    }
}

/// PostgreSQL's type of this name; `None` for one that is left to the engine.
pub(super) fn type_named(data_type: &SqlType) -> Option<Type> {
    Some(match data_type {
        SqlType::Bool | SqlType::Boolean => Type::BOOL,
        SqlType::Int2(None) | SqlType::SmallInt(None) => Type::INT2,
        SqlType::Int(None) | SqlType::Int4(None) | SqlType::Integer(None) => Type::INT4,
        SqlType::Int8(None) | SqlType::BigInt(None) => Type::INT8,
        SqlType::Real | SqlType::Float4 => Type::FLOAT4,
        SqlType::Float8 | SqlType::DoublePrecision | SqlType::Double(_) => Type::FLOAT8,
        SqlType::Float(ExactNumberInfo::Precision(..25)) => Type::FLOAT4,
        SqlType::Float(_) => Type::FLOAT8,
        SqlType::Numeric(_) | SqlType::Decimal(_) | SqlType::Dec(_) => Type::NUMERIC,
        SqlType::Text | SqlType::String(None) => Type::TEXT,
        SqlType::Varchar(_) | SqlType::CharVarying(_) | SqlType::CharacterVarying(_) => Type::VARCHAR,
        SqlType::Char(_) | SqlType::Character(_) => Type::BPCHAR,
        SqlType::Bytea => Type::BYTEA,
        SqlType::Date => Type::DATE,
        SqlType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => Type::TIME,
        SqlType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => Type::TIMESTAMP,
        SqlType::Timestamp(_, _) => Type::TIMESTAMPTZ,
        SqlType::Interval { .. } => Type::INTERVAL,
        SqlType::Uuid => Type::UUID,
        SqlType::JSON => Type::JSON,
        SqlType::Custom(name, arguments) if arguments.is_empty() => {
            match name.0.last()?.as_ident()?.value.to_lowercase().as_str() {
                "name" => Type::NAME,
                "bpchar" => return None,
                "timestamptz" => Type::TIMESTAMPTZ,
                "int2" => Type::INT2,
                "int4" => Type::INT4,
                "int8" => Type::INT8,
                "float4" => Type::FLOAT4,
                "float8" => Type::FLOAT8,
                "bool" => Type::BOOL,
                "text" => Type::TEXT,
                "varchar" => Type::VARCHAR,
                _ => return None,
            }
        }
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => match type_named(item)? {
            Type::BOOL => Type::BOOL_ARRAY,
            Type::INT2 => Type::INT2_ARRAY,
            Type::INT4 => Type::INT4_ARRAY,
            Type::INT8 => Type::INT8_ARRAY,
            Type::FLOAT4 => Type::FLOAT4_ARRAY,
            Type::FLOAT8 => Type::FLOAT8_ARRAY,
            Type::NUMERIC => Type::NUMERIC_ARRAY,
            Type::TEXT => Type::TEXT_ARRAY,
            Type::VARCHAR => Type::VARCHAR_ARRAY,
            Type::NAME => Type::NAME_ARRAY,
            Type::DATE => Type::DATE_ARRAY,
            Type::TIME => Type::TIME_ARRAY,
            Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
            Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
            Type::INTERVAL => Type::INTERVAL_ARRAY,
            Type::UUID => Type::UUID_ARRAY,
            Type::JSON => Type::JSON_ARRAY,
            _ => return None,
        },
        _ => return None,
    })
}

/// Patterns in any case, and their formats, empty if there is none. Longer ones first.
const NUMBERS: [(&str, &str); 20] = [
    ("sssss", ""),
    ("ssss", ""),
    ("iddd", ""),
    ("yyyy", "%Y"),
    ("yyy", ""),
    ("iyyy", "%G"),
    ("hh24", "%H"),
    ("hh12", "%I"),
    ("ddd", "%j"),
    ("yy", "%y"),
    ("mm", "%m"),
    ("dd", "%d"),
    ("hh", "%I"),
    ("mi", "%M"),
    ("ss", "%S"),
    ("ms", "%3f"),
    ("us", "%6f"),
    ("iw", "%V"),
    ("id", "%u"),
    ("q", "%q"),
];
/// Patterns in this case.
const NAMES: [(&str, &str); 8] = [
    ("Month", "%B"),
    ("Day", "%A"),
    ("Mon", "%b"),
    ("Dy", "%a"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("am", "%P"),
    ("pm", "%P"),
];

/// True for a format of the engine, such as `%Y-%m-%d`. In a template, a percent sign stands for itself.
fn is_format(text: &str) -> bool {
    let parts = text.split('%').skip(1);
    parts
        .into_iter()
        .any(|part| part.starts_with(|c: char| c.is_ascii_alphabetic() || ['-', '.', '3', '6', '9'].contains(&c)))
}

/// Returns the engine's format of a template that text is read with, or the part that has none.
fn format_of(template: &str) -> Result<String, String> {
    let mut format = String::new();
    let mut rest = template;
    while let Some(next) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').ok_or_else(|| rest.to_owned())?;
            format.push_str(text);
            rest = after;
            continue;
        }
        if let Some(fraction) = rest.get(..3).filter(|part| [".ms", ".us"].contains(&part.to_lowercase().as_str())) {
            // Of any number of digits.
            format.push_str("%.f");
            rest = &rest[fraction.len()..];
            continue;
        }
        let (unpadded, pattern) = match rest.get(..2).filter(|part| part.eq_ignore_ascii_case("fm")) {
            Some(_) => (true, &rest[2..]),
            None => (false, rest),
        };
        let number =
            |(name, _): &&(&str, &str)| pattern.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if let Some((name, named)) = NAMES.iter().find(|(name, _)| pattern.starts_with(name)) {
            format.push_str(named);
            rest = &pattern[name.len()..];
        } else if let Some((name, number)) = NUMBERS.iter().find(number) {
            if number.is_empty() {
                return Err((*name).to_uppercase());
            }
            format.push_str(&if unpadded { number.replace('%', "%-") } else { (*number).to_owned() });
            rest = &pattern[name.len()..];
        } else if next.is_alphabetic() {
            return Err(rest.chars().take_while(|character| character.is_alphanumeric()).collect());
        } else {
            format.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    Ok(format)
}

/// A text and its format with the minutes, and the half of the day, that PostgreSQL adds to an hour: the engine ignores a time
/// without them.
fn with_minutes(text: &SqlExpr, format: &str) -> (SqlExpr, String) {
    let has = |parts: [&str; 2]| parts.iter().any(|part| format.contains(part));
    let (of_half, of_day) = (has(["%I", "%-I"]), has(["%H", "%-H"]));
    let mut added = (String::new(), String::new());
    if (of_half || of_day) && !has(["%M", "%-M"]) {
        added = (added.0 + " 00", added.1 + " %M");
    }
    if of_half && !has(["%p", "%P"]) {
        added = (added.0 + " AM", added.1 + " %p");
    }
    match added.0.is_empty() {
        true => (text.clone(), format.to_owned()),
        false => {
            let literal = SqlExpr::value(Value::SingleQuotedString(added.0));
            (pair(text.clone(), BinaryOperator::StringConcat, literal), format.to_owned() + &added.1)
        }
    }
}

/// `timezone(zone, time)`, the function behind `AT TIME ZONE`: a time with a zone becomes the local time in `zone`, one
/// without becomes the instant at which it is that time in `zone`. The former is replaced by a cast when a plan is
/// optimized. The latter is not: a cast fails for a time that a clock change repeats or skips; PostgreSQL uses the standard
/// time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeZone {
    signature: Signature,
}

impl TimeZone {
    const NAME: &str = "timezone";

    fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TimeZone {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [_, time] = given else { return plan_err!("timezone takes a time zone and a time") };
        let time = match time {
            DataType::Timestamp(..) => time.clone(),
            // A date is an instant, its first one.
            _ => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        };
        Ok(vec![DataType::Utf8, time])
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given {
            [_, DataType::Timestamp(unit, Some(_))] => Ok(DataType::Timestamp(*unit, None)),
            [_, DataType::Timestamp(unit, None)] => Ok(DataType::Timestamp(*unit, Some(UTC.into()))),
            other => plan_err!("timezone takes a time zone and a time, not {other:?}"),
        }
    }

    fn simplify(&self, arguments: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(zone, _), time] = arguments.as_slice() else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        let (Some(Some(zone)), DataType::Timestamp(unit, known)) = (zone.try_as_str(), info.get_data_type(time)?)
        else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        if known.is_none() {
            return Ok(ExprSimplifyResult::Original(arguments));
        }
        let there = cast(time.clone(), DataType::Timestamp(unit, Some(zone.into())));
        Ok(ExprSimplifyResult::Simplified(to_local_time().call(vec![there])))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(zone), time] = arguments.args.as_slice() else {
            return plan_err!("AT TIME ZONE requires a constant time zone name: '…'");
        };
        let DataType::Timestamp(unit, None) = time.data_type() else {
            return plan_err!("AT TIME ZONE requires a constant time zone name: '…'");
        };
        let times = time.to_array(arguments.number_rows)?;
        let Some(zone) = zone.try_as_str().flatten() else {
            return Ok(ColumnarValue::Array(new_null_array(arguments.return_type(), times.len())));
        };
        let zone: Tz = zone.parse()?;
        let instants = match unit {
            TimeUnit::Second => instants::<TimestampSecondType>(&times, zone, 1),
            TimeUnit::Millisecond => instants::<TimestampMillisecondType>(&times, zone, 1_000),
            TimeUnit::Microsecond => instants::<TimestampMicrosecondType>(&times, zone, 1_000_000),
            TimeUnit::Nanosecond => instants::<TimestampNanosecondType>(&times, zone, 1_000_000_000),
        }?;
        match time {
            ColumnarValue::Scalar(_) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&instants, 0)?)),
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(instants)),
        }
    }
}

/// The instants at which it is these times in a zone.
fn instants<T: ArrowTimestampType>(times: &ArrayRef, zone: Tz, second: i64) -> Result<ArrayRef> {
    let beyond = || ArrowError::ComputeError("a time with a zone is beyond the representable range".to_owned());
    let instant = |time: i64| {
        let local = DateTime::from_timestamp(time.div_euclid(second), 0).ok_or_else(beyond)?.naive_utc();
        let ahead = (local - instant_of(local, &zone).ok_or_else(beyond)?).num_seconds() * second;
        time.checked_sub(ahead).ok_or_else(beyond)
    };
    let instants: PrimitiveArray<T> = times.as_primitive::<T>().try_unary(instant)?;
    Ok(Arc::new(instants.with_timezone(UTC)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Result<(String, BTreeMap<usize, Type>), Report> {
        let (statement, types) = translated_as_named(parsed(sql).expect(sql), &Names::of_tests(), &[], &[])?;
        Ok((statement.to_string(), types))
    }

    #[test]
    fn statements_are_translated() {
        for (sql, expected) in [
            ("SELECT to_char(t, 'YYYY')", "SELECT postgres_to_char(t, 'YYYY')"),
            ("SELECT to_char(t, $1)", "SELECT postgres_to_char(t, $1)"),
            ("SELECT to_char(t, '%Y')", "SELECT to_char(t, '%Y')"),
            (
                "SELECT TO_TIMESTAMP('x', 'YYYY-MM-DD HH24:MI:SS.US')",
                "SELECT TO_TIMESTAMP('x', '%Y-%m-%d %H:%M:%S%.f')",
            ),
            ("SELECT to_date('x', 'DD.MM.YY')", "SELECT to_date('x', '%d.%m.%y')"),
            ("SELECT t AT TIME ZONE 'Asia/Tokyo'", "SELECT timezone('Asia/Tokyo', t)"),
            ("SELECT interval '1 month 04:05'", "SELECT INTERVAL '1 months 0 days 14700000000 microseconds'"),
            ("SELECT -interval '1 day 1:00'", "SELECT INTERVAL '0 months -1 days -3600000000 microseconds'"),
            ("SELECT 'P1D'::interval", "SELECT INTERVAL '0 months 1 days 0 microseconds'"),
            (
                "SELECT * FROM unnest(a) x, generate_series(1, 3) g",
                "SELECT * FROM UNNEST(a) x (x), generate_series(1, 3) g (g)",
            ),
            (
                "SELECT generate_series(1, 3), a = ANY (ARRAY[1, 2])",
                "SELECT unnest(generate_series(1, 3)), a IN (1, 2)",
            ),
            ("SELECT a FROM t WHERE to_charm = 1", "SELECT a FROM t WHERE to_charm = 1"),
            ("SELECT a<-1, ['x']", "SELECT a < -1, ['x']"),
            ("SELECT * FROM (TABLE t) q", "SELECT * FROM (SELECT * FROM t) q"),
            (
                "SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING EXCLUDE NO OTHERS) FROM t",
                "SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING) FROM t",
            ),
            ("SELECT a<-1 + 2", "SELECT a < -1 + 2"),
            ("SELECT '{en,\"d e\",NULL}'::text[]", "SELECT CAST(ARRAY['en', 'd e', NULL] AS TEXT[])"),
            ("SELECT x = ANY('{1,2}'), x <> ALL('{}')", "SELECT ((x = '1') OR (x = '2')), true"),
            ("SELECT x COLLATE \"C\", y COLLATE pg_catalog.\"default\"", "SELECT x, y"),
            ("SELECT -2 ^ 2 * 3", "SELECT power(CAST(-2 AS DOUBLE PRECISION), CAST(2 AS DOUBLE PRECISION)) * 3"),
            ("SELECT 'a' || 1 + 2 = b", "SELECT 'a' || 1 + 2 = b"),
            ("SELECT (a, b) = (1, 2)", "SELECT ((a = 1) AND (b = 2))"),
            ("SELECT (a, b) < (1, 2)", "SELECT ((a < 1) OR ((a = 1) AND (b < 2)))"),
            ("SELECT (a, b) IN ((1, 2), (3, 4))", "SELECT (((a = 1) AND (b = 2)) OR ((a = 3) AND (b = 4)))"),
            ("SELECT a[-1], a[2]", "SELECT CASE WHEN false THEN a[1] END, a[2]"),
            ("SELECT current_user, \"current_user\" FROM m", "SELECT 'ada', \"current_user\" FROM m"),
            (
                "SELECT x::varchar(3), y::varchar(9) = 'ab'",
                "SELECT left(postgres_cast(x, 'text'), 3), postgres_cast(y, 'text') = 'ab'",
            ),
            ("SELECT 1.50::numeric", "SELECT arrow_cast('1.50', 'Decimal128(38, 2)')"),
            ("SELECT t.x::int, 1::int, x FROM t", "SELECT postgres_cast(t.x, 'int4', true), 1::INT, x FROM t"),
        ] {
            assert_eq!(read(sql).expect(sql).0, expected);
        }
    }

    #[test]
    fn parameters_have_the_types_of_their_casts() {
        let (_, types) =
            read("SELECT $1::int, CAST($2 AS timestamp), $3::text[], ($4)::uuid, $5::numeric, $6").expect("types");
        let expected = [Type::INT4, Type::TIMESTAMP, Type::TEXT_ARRAY, Type::UUID, Type::NUMERIC];
        assert_eq!(types, (1..).zip(expected).collect());
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        for (sql, part) in [
            ("SELECT to_date(x, y)", "no literal"),
            ("SELECT to_date('x', 'DDTH')", "`TH`"),
            ("SELECT x COLLATE \"de_DE\"", "collation"),
            ("SELECT '{{a}}'::text[]", "arrays of arrays"),
            ("SELECT '{a'::text[]", "malformed"),
            ("SELECT x::jsonb", "jsonb"),
            ("SELECT x::char(3)", "blanks"),
            ("SELECT (a, b) = (1, 2, 3)", "unequal"),
            ("SELECT a -|- b", "operator"),
            ("SELECT nextval('x')", "row_number()"),
            ("SELECT json_build_object(a, b)", "keys"),
            ("SELECT interval '1 foo'", "invalid input syntax"),
            ("SELECT (a, b) OVERLAPS (c, d, e)", "two rows of two"),
        ] {
            let report = read(sql).expect_err(sql);
            let line = report.fields().into_iter().find(|(field, _)| *field == b'M').expect("a line").1;
            assert!(line.contains(part), "{sql}: {line}");
        }
        let nested = |open: &str, inner: &str, close: &str, levels: usize| {
            read(&format!("SELECT {}{inner}{}", open.repeat(levels), close.repeat(levels)))
        };
        for nested in [
            nested("((b, c) OVERLAPS (d, ", "e", "))::int", 9),
            nested("((", "a", ", 2) IN ((1, 2), (3, 4), (5, 6)))::int", 10),
        ] {
            let report = nested.expect_err("too large");
            assert!(report.fields().iter().any(|(_, text)| text.contains("nested too deeply")), "{report:?}");
        }
    }
}
