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

mod array_of_rows;
mod arrays;
mod expressions;
mod from_items;
mod functions;
mod json;
mod operators;
mod parsing;
mod regexes;
mod rows;
mod spans;
mod templates;
mod time_zone;
mod times;
mod type_names;
mod typed_parameters;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as SqlType, DateTimeField, Expr as SqlExpr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query, Select, SelectItem, TableFactor, UnaryOperator,
    Value,
};
use postgres_types::{Kind, Type};

use self::arrays::{array_of, compared, is_written, subscripts};
use self::expressions::{cast_to, digits_of, joined, literal_of, not, number, pair, text, when, whole_number};
pub(super) use self::parsing::parsed;
use self::rows::{all_members, distinct, overlaps, rows};
use self::templates::{format_of, is_format, with_minutes};
use self::time_zone::TimeZone;
use self::times::{part_of, time_of, times_in_values};
pub(super) use self::type_names::type_named;
use self::type_names::{length_of, scale_of};
use super::catalog::{known_operator, strip};
use super::column_names;
use super::parameters::arrow_type_in;
use super::report::Report;
use crate::session::syntax::{self, Editor};
use crate::session::{call, like_of_many, members, too_many_copies, without_exponent};

/// The function of casts.
const CAST: &str = "postgres_cast";

/// Names of the session that a statement can ask for.
#[derive(Debug, Clone, PartialEq)]
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
        let [user, database, schema, zone] = ["ada", "savedsearch", "v4", "UTC"].map(str::to_owned);
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

/// True if the translation of a statement with parameters of these types depends on their values.
pub(super) fn depends_on_values(types: &BTreeMap<usize, Type>) -> bool {
    typed_parameters::depends_on_values(types)
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
    typed_parameters::unmark(&mut statement, values, &names.zone);
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
    fn pre_visit_query(&mut self, query: &mut Query) {
        times_in_values(query);
        if rows::counts_missing_rows(query) {
            let line =
                "count(t.*) beside an outer join is not supported: count a column of the table that is never NULL";
            self.refused.get_or_insert_with(|| unsupported(line));
        }
    }

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

/// Rejects an expression that is too large to stand `copies` times in a translation: nested copies grow exponentially, and a list
/// may be long.
fn check_copies(expr: &SqlExpr, copies: usize) -> Result<(), Report> {
    let advice = "load the items of a long list into a temporary table, and compute nested expressions in a subquery";
    match too_many_copies(copies, |most| syntax::count_expressions(expr, most)) {
        Some(line) => Err(Report::error("54001", format!("{line}: {advice}"))),
        None => Ok(()),
    }
}

/// An error for what is not supported.
fn unsupported(line: impl Into<String>) -> Report {
    Report::error("0A000", line)
}

/// A cast to text, and to its length if the type has one. `padded`: the type is `char(n)`; `plain`: the engine's own cast has the
/// same result.
fn text_of(inner: &SqlExpr, data_type: &mut SqlType, padded: bool, plain: bool) -> Result<SqlExpr, Report> {
    let length = length_of(data_type);
    if padded && length != Some(1) {
        let line = format!("{data_type} is not supported: it pads texts with blanks; use varchar(n) or text");
        return Err(unsupported(line));
    }
    *data_type = SqlType::Text;
    let whole = match plain {
        true => cast_to(inner.clone(), SqlType::Text),
        false => call(CAST, vec![inner.clone(), text("text")]),
    };
    Ok(match length {
        Some(length) => call("left", vec![whole, number(&length.to_string())]),
        None => whole,
    })
}

/// The bytes that a literal is.
fn bytes_of(literal: Option<&str>) -> Result<SqlExpr, Report> {
    let digits = match literal.map(|text| (text, text.strip_prefix("\\x"))) {
        Some((_, Some(digits))) => digits.to_owned(),
        Some((text, None)) if !text.contains('\\') => data_encoding::HEXLOWER.encode(text.as_bytes()),
        _ => return Err(unsupported("casts to bytea are supported for literals like '\\x0a0b' only")),
    };
    Ok(SqlExpr::value(Value::HexStringLiteral(digits)))
}

fn unary(op: &UnaryOperator, expr: &SqlExpr) -> Result<Option<SqlExpr>, Report> {
    let double = || cast_to(expr.clone(), SqlType::DoublePrecision);
    Ok(match op {
        UnaryOperator::PGSquareRoot => Some(call("sqrt", vec![double()])),
        UnaryOperator::PGCubeRoot => Some(call("cbrt", vec![double()])),
        UnaryOperator::PGAbs => Some(call("abs", vec![expr.clone()])),
        UnaryOperator::Minus => spans::negated(expr)?,
        UnaryOperator::BitwiseNot => {
            let one_less = Box::new(pair(expr.clone(), BinaryOperator::Plus, number("1")));
            let op = UnaryOperator::Minus;
            Some(SqlExpr::Nested(Box::new(SqlExpr::UnaryOp { op, expr: one_less })))
        }
        _ => None,
    })
}

/// A row compared with each of a list of rows.
fn in_rows(row: &SqlExpr, list: &[SqlExpr]) -> Result<Option<SqlExpr>, Report> {
    check_copies(row, list.len())?;
    let mut equal = Vec::new();
    for item in list {
        let compared = rows(row, &BinaryOperator::Eq, item)?;
        equal.push(compared.ok_or_else(|| unsupported("a row can only be in a list of rows"))?);
    }
    Ok(joined(equal, &BinaryOperator::Or))
}

fn name_of_argument(argument: &mut FunctionArg) {
    if let FunctionArg::ExprNamed { name: SqlExpr::Identifier(name), arg, operator } = argument {
        *argument = FunctionArg::Named { name: name.clone(), arg: arg.clone(), operator: operator.clone() };
    }
}

/// The expression whose texts are compared in the order of a collation, which has to be that of their bytes.
fn collated(expr: &SqlExpr, collation: &ObjectName) -> Result<SqlExpr, Report> {
    if bytewise(collation) {
        return Ok(expr.clone());
    }
    let line = format!("collation {collation} is not supported: texts are compared by their bytes");
    Err(unsupported(line + ", as COLLATE \"C\" says"))
}

/// Gives a place in a text the size of an integer that the engine takes, if it is a parameter.
fn widen_place(place: &mut SqlExpr) {
    if typed_parameters::number_of(place).is_some() && literal_of(place).is_none() {
        *place = cast_to(place.clone(), SqlType::BigInt(None));
    }
}

impl Translator<'_> {
    /// Returns what stands in the place of an expression, whose parts are translated already.
    fn translate(&mut self, expr: &mut SqlExpr) -> Result<Option<SqlExpr>, Report> {
        if let Some((left, compare_op, right, all)) = like_of_many(expr) {
            let written = compared(left, &compare_op, right, all)?;
            let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
            let compared = match all {
                true => SqlExpr::AllOp { left, compare_op, right },
                false => SqlExpr::AnyOp { left, compare_op, right, is_some: false },
            };
            return Ok(Some(written.unwrap_or(compared)));
        }
        Ok(match expr {
            SqlExpr::Function(function) => self.called(function)?,
            SqlExpr::QualifiedWildcard(name, _) => {
                return Err(unsupported(format!("{name}.* is not supported as a value: name a column of the row")));
            }
            // A bit string in PostgreSQL, and no number before its version 16.
            SqlExpr::Value(value) if matches!(value.value, Value::HexStringLiteral(_)) => {
                return Err(unsupported(
                    "literals such as 0x1F and X'1F' are not supported: write numbers in decimal, and bytes as '\\x1f'::bytea",
                ));
            }
            SqlExpr::Value(value) if matches!(value.value, Value::SingleQuotedByteStringLiteral(_)) => {
                return Err(unsupported(
                    "bit strings such as B'101' are not supported: write texts as '101', and numbers as 5",
                ));
            }
            SqlExpr::Identifier(_) => self.session_name(expr).map(text),
            SqlExpr::AtTimeZone { timestamp, time_zone } => {
                Some(call(TimeZone::NAME, vec![time_zone.as_ref().clone(), timestamp.as_ref().clone()]))
            }
            SqlExpr::BinaryOp { left, op, right } => binary(left, op, right)?,
            SqlExpr::UnaryOp { op, expr } => unary(op, expr)?,
            SqlExpr::Interval(interval) => spans::translated(interval)?,
            SqlExpr::IsNull(inner) => all_members(inner, SqlExpr::IsNull),
            SqlExpr::IsNotNull(inner) => all_members(inner, SqlExpr::IsNotNull),
            SqlExpr::IsDistinctFrom(left, right) => distinct(left, right)?.map(not),
            SqlExpr::IsNotDistinctFrom(left, right) => distinct(left, right)?,
            SqlExpr::InList { expr, list, negated } if members(expr).is_some() => {
                let any = in_rows(expr, list)?;
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
            SqlExpr::Collate { expr, collation } => Some(collated(expr, collation)?),
            SqlExpr::Substring { expr, substring_from: Some(pattern), substring_for: None, .. }
                if literal_of(pattern).is_some() =>
            {
                Some(functions::first_match(expr, pattern))
            }
            SqlExpr::Substring { substring_from, substring_for, .. } => {
                [substring_from, substring_for].into_iter().flatten().for_each(|place| widen_place(place));
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
            "to_char" if !of_engine => {
                let double = literal_of(first).is_none() && !is_numeric(first);
                function.name = ObjectName::from(vec![Ident::new("postgres_to_char")]);
                if double {
                    let double = SqlExpr::value(Value::Boolean(true));
                    list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(double)));
                }
            }
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

    /// Translates a call, or replaces it by a name of the session.
    fn called(&self, function: &mut Function) -> Result<Option<SqlExpr>, Report> {
        strip(&mut function.name);
        if let FunctionArguments::List(list) = &mut function.args {
            list.args.iter_mut().for_each(name_of_argument);
        }
        match self.session_name(&SqlExpr::Function(function.clone())) {
            Some(value) => Ok(Some(text(value))),
            None => self.function(function),
        }
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
                text_of(inner, data_type, postgres == Type::BPCHAR, constant.is_some() || parameter).map(Some)
            }
            Type::INTERVAL => match (&constant, parameter) {
                (Some(words), _) => spans::literal(words, None).map(Some),
                (None, true) => Ok(None),
                (None, false) => named("interval"),
            },
            Type::UUID | Type::JSON => named(postgres.name()),
            Type::BYTEA if parameter => Ok(Some(inner.clone())),
            Type::BYTEA => bytes_of(constant.as_deref()).map(Some),
            // Without a scale a number keeps its digits.
            Type::NUMERIC if scale_of(data_type).is_none() => match constant.clone().or_else(|| digits_of(inner)) {
                _ if parameter => Ok(Some(inner.clone())),
                Some(number) => Ok(without_exponent(number.trim()).and_then(|digits| {
                    let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                    let to = format!("Decimal128(38, {scale})");
                    (scale <= 37).then(|| call("arrow_cast", vec![text(&digits), text(&to)]))
                })),
                None => named("numeric"),
            },
            _ => match postgres.kind() {
                Kind::Array(_) if parameter => Ok(Some(inner.clone())),
                Kind::Array(item) => match (constant, inner) {
                    (Some(literal), _) => Ok(Some(array_of(&literal, Some(data_type))?)),
                    (None, SqlExpr::Array(array)) if keeps_items(item, &array.elem) => Ok(None),
                    (None, _) if typed_parameters::of_integers(inner) => Ok(None),
                    (None, _) => Ok(Some(self.array(inner, item, &postgres))),
                },
                _ => Ok(None),
            },
        }
    }

    /// A cast to an array of a type, by the function of casts.
    fn array(&self, inner: &SqlExpr, item: &Type, array: &Type) -> SqlExpr {
        let mut arguments = vec![inner.clone(), text(&format!("{}[]", item.name()))];
        if [Type::INT2, Type::INT4, Type::INT8].contains(item) && is_numeric(inner) {
            arguments.push(SqlExpr::value(Value::Boolean(true)));
        }
        let of_session = arrow_type_in(&self.names.zone, array).filter(|_| *item == Type::TIMESTAMPTZ);
        let array = call(CAST, arguments);
        match of_session {
            Some(of_session) => call("arrow_cast", vec![array, text(&of_session.to_string())]),
            None => array,
        }
    }
}

/// True if the engine's cast of an array to one of this type gives the items that PostgreSQL has. Fractions are rounded to integers
/// there, and cut here.
fn keeps_items(to: &Type, items: &[SqlExpr]) -> bool {
    match *to {
        Type::TEXT => items.iter().all(is_written),
        Type::INT2 | Type::INT4 | Type::INT8 => {
            items.iter().all(|item| whole_number(item).is_some() || is_written(item))
        }
        _ => true,
    }
}

/// Functions of integers whose result is of double precision, with all their names. A test holds them against the engine's full
/// list.
const DOUBLES: [&str; 49] = [
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
    "covar",
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
    "quantile_cont",
    "radians",
    "rand",
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

/// True for an expression of numbers that PostgreSQL computes as numeric, unless a column in it has double precision: nothing in it
/// makes a double of other numbers.
fn is_numeric(expr: &SqlExpr) -> bool {
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

fn binary(left: &mut SqlExpr, op: &mut BinaryOperator, right: &mut SqlExpr) -> Result<Option<SqlExpr>, Report> {
    use BinaryOperator::{
        Arrow, ArrowAt, AtArrow, BitwiseXor, Custom, HashArrow, HashLongArrow, LongArrow, Overlaps,
        PGCustomBinaryOperator, PGExp, PGOverlap, PGStartsWith, Question, StringConcat,
    };
    regexes::of_operator(op, right);
    let of_rows =
        matches!(left, SqlExpr::Tuple(_) | SqlExpr::Function(_) | SqlExpr::Nested(_)) && members(left).is_some();
    Ok(match op {
        StringConcat if [&*left, &*right].iter().all(|side| typed_parameters::is_open(side)) => {
            let text = |side: &SqlExpr| cast_to(side.clone(), SqlType::Text);
            Some(pair(text(left), StringConcat, text(right)))
        }
        // An array, if the other side is one: nothing is appended.
        StringConcat if is_null(right) && has_own_type(left) => {
            check_copies(left, 2)?;
            Some(pair(left.clone(), StringConcat, when(SqlExpr::value(Value::Boolean(false)), left.clone())))
        }
        StringConcat if is_null(left) && has_own_type(right) => {
            check_copies(right, 2)?;
            Some(pair(when(SqlExpr::value(Value::Boolean(false)), right.clone()), StringConcat, right.clone()))
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
        // The engine does not find the types of these parameters.
        Arrow | LongArrow | HashArrow | HashLongArrow | Question => {
            for side in [left, right] {
                if typed_parameters::is_open(side) {
                    *side = cast_to(side.clone(), SqlType::Text);
                }
            }
            None
        }
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

fn is_null(expr: &SqlExpr) -> bool {
    match expr {
        SqlExpr::Value(value) => matches!(value.value, Value::Null),
        SqlExpr::Nested(inner) => is_null(inner),
        _ => false,
    }
}

/// True for an expression other than a literal and a parameter, which have the type of the other side.
fn has_own_type(expr: &SqlExpr) -> bool {
    !is_null(expr) && literal_of(expr).is_none() && !typed_parameters::is_open(expr)
}

fn power(left: &SqlExpr, right: &SqlExpr) -> SqlExpr {
    let double = |side: &SqlExpr| cast_to(side.clone(), SqlType::DoublePrecision);
    call("power", vec![double(left), double(right)])
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

/// Drops the length of a cast to text if the other side is a shorter literal.
fn uncut(cut: &mut SqlExpr, literal: &SqlExpr) {
    if let (SqlExpr::Cast { data_type, .. }, Some(literal)) = (cut, literal_of(literal))
        && type_named(data_type) == Some(Type::VARCHAR)
        && length_of(data_type).is_some_and(|length| (literal.chars().count() as u64) < length)
    {
        *data_type = SqlType::Text;
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions::math;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::cases::each;
    use crate::session::PlanningTurn;

    /// A new function of the engine fails here, so that a developer determines the precision of its result.
    #[test]
    fn each_function_of_the_engine_makes_doubles_of_integers_or_not() {
        // The variance of integers is numeric in PostgreSQL.
        const OTHERS: [&str; 42] = [
            "abs",
            "any_value",
            "approx_distinct",
            "approx_median",
            "approx_percentile_cont",
            "approx_percentile_cont_with_weight",
            "array_agg",
            "avg",
            "bit_and",
            "bit_or",
            "bit_xor",
            "bool_and",
            "bool_or",
            "ceil",
            "count",
            "dense_rank",
            "factorial",
            "first_value",
            "floor",
            "gcd",
            "grouping",
            "isnan",
            "iszero",
            "lag",
            "last_value",
            "lcm",
            "lead",
            "max",
            "min",
            "nanvl",
            "nth_value",
            "ntile",
            "rank",
            "regr_count",
            "round",
            "row_number",
            "signum",
            "string_agg",
            "sum",
            "trunc",
            "var",
            "var_pop",
        ];
        let state = SessionContext::new().state();
        let scalar = math::functions();
        let scalar = scalar.iter().map(|function| (function.name(), function.aliases()));
        let aggregates = state.aggregate_functions().values().map(|function| (function.name(), function.aliases()));
        let windows = state.window_functions().values().map(|function| (function.name(), function.aliases()));
        for (name, aliases) in scalar.chain(aggregates).chain(windows) {
            let is_double = DOUBLES.contains(&name);
            assert_ne!(is_double, OTHERS.contains(&name), "{name}");
            for alias in aliases {
                assert_eq!(DOUBLES.contains(&alias.as_str()), is_double, "{alias}, another name of {name}");
            }
        }
    }

    fn read(sql: &str) -> Result<(String, BTreeMap<usize, Type>), Report> {
        let parsed = parsed(&PlanningTurn::unbounded(), sql).expect(sql);
        let (statement, types) = translated_as_named(parsed, &Names::of_tests(), &[], &[])?;
        Ok((statement.to_string(), types))
    }

    #[test]
    fn statements_are_translated() {
        let cases = [
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
            (
                "SELECT '{1,-2.25,NULL}'::numeric[], '{NULL}'::numeric[]",
                "SELECT arrow_cast(ARRAY['1', '-2.25', NULL], 'List(Decimal128(38, 2))'), CAST(ARRAY[NULL] AS NUMERIC[])",
            ),
            ("SELECT x = ANY('{1,2}'), x <> ALL('{}')", "SELECT ((x = '1') OR (x = '2')), true"),
            ("SELECT x COLLATE \"C\", y COLLATE pg_catalog.\"default\"", "SELECT x, y"),
            ("SELECT -2 ^ 2 * 3", "SELECT power(CAST(-2 AS DOUBLE PRECISION), CAST(2 AS DOUBLE PRECISION)) * 3"),
            ("SELECT 'a' || 1 + 2 = b", "SELECT 'a' || 1 + 2 = b"),
            ("SELECT $1->>'a', x->>$2", "SELECT CAST($1 AS TEXT) ->> 'a', x ->> CAST($2 AS TEXT)"),
            ("SELECT a || NULL, 'a' || NULL", "SELECT (a || CASE WHEN false THEN a END), 'a' || NULL"),
            (
                "SELECT row_to_json(row(1, (2, a)))",
                "SELECT postgres_json(named_struct('f1', 1, 'f2', named_struct('f1', 2, 'f2', a)))",
            ),
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
        ];
        each(cases, |(sql, expected)| {
            assert_eq!(read(sql).expect(sql).0, expected);
        });
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
        let cases = [
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
            ("SELECT 0x1F", "in decimal"),
            ("SELECT a + X'1F'", "in decimal"),
            ("SELECT json_build_object(a, b)", "keys"),
            ("SELECT interval '1 foo'", "invalid input syntax"),
            ("SELECT (a, b) OVERLAPS (c, d, e)", "two rows of two"),
            ("SELECT regexp_replace(a, 'l*', '-', 'g')", "at least one character"),
        ];
        each(cases, |(sql, part)| {
            let report = read(sql).expect_err(sql);
            let line = report.fields().into_iter().find(|(field, _)| *field == b'M').expect("a line").1;
            assert!(line.contains(part), "{sql}: {line}");
        });
        let nested = |open: &str, inner: &str, close: &str, levels: usize| {
            read(&format!("SELECT {}{inner}{}", open.repeat(levels), close.repeat(levels)))
        };
        for nested in [
            nested("((b, c) OVERLAPS (d, ", "e", "))::int", 9),
            nested("((", "a", ", 2) IN ((1, 2), (3, 4), (5, 6)))::int", 10),
            nested("((", "a", ", 2) < (1, 2))::int", 10),
            nested("(", "a", " || NULL)", 12),
            nested("(NULL || ", "a", ")", 12),
            nested("date_trunc('hour', ", "a", ", 'Asia/Tokyo')", 10),
            nested("array_lower(ARRAY[", "a", "], 1)", 10),
        ] {
            let report = nested.expect_err("too large");
            assert!(report.fields().iter().any(|(_, text)| text.starts_with("statement too complex")), "{report:?}");
        }
        // Compound expressions with a few dozen items, or with many if they are not copied.
        let texts = "coalesce(a, '') || ' ' || coalesce(b, '') || ' ' || coalesce(c, '') || ' ' || coalesce(d, '')";
        let day = "date_trunc('day', coalesce(a, b) - interval '1 day')";
        for sql in [
            format!("SELECT ({texts}) LIKE ANY (ARRAY[{}'x'])", "'%x%', ".repeat(200)),
            format!("SELECT ({texts}) = ANY (ARRAY[{}'x'])", "'x', ".repeat(20_000)),
            format!("SELECT ({day}, {day}) OVERLAPS ({day}, {day})"),
        ] {
            read(&sql).expect("a right statement");
        }
        let list = |items: usize| format!("'{{{}a}}'", "a,".repeat(items - 1));
        for sql in [
            format!("SELECT {}::text[]", list(300_000)),
            format!("SELECT a = ANY ({})", list(300_000)),
            format!("SELECT a <> ALL ({}::text[])", list(300_000)),
        ] {
            let report = read(&sql).expect_err("too large");
            let fields = report.fields();
            let line = &fields.iter().find(|(field, _)| *field == b'M').expect("a line").1;
            assert!(line.contains("more than 200000 parts: load the items of a long list"), "{line}");
            assert!(fields.contains(&(b'C', "54001".to_owned())), "{fields:?}");
        }
        read(&format!("SELECT {}::text[]", list(150_000))).expect("a long array");
    }
}
