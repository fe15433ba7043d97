//! Statements about catalogs, rewritten to SQL that the engine can plan.
//!
//! Clients use SQL that only PostgreSQL has: operators and functions with a schema, casts to names of relations and types,
//! arrays from subqueries. Each is replaced by SQL of the engine, or by a function of this crate. If a SELECT joins a table
//! without rows, its result is empty, and it is replaced by a SELECT with only its column names.

use std::collections::HashSet;

use datafusion::arrow::array::Array as _;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CastKind, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, JoinOperator, ObjectName, ObjectNamePart, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, Subscript, TableAlias, TableFactor,
    TimezoneInfo, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;

use super::super::column_names::column_name;
use super::super::dialect::{Names, edit};
use super::tables::{has_functions, has_kind, is_boolean, is_empty};
use super::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::error::{Error, ErrorKind};
use crate::functions::items;
use crate::session::syntax::{Editor, edit_expressions};
use crate::session::{call, parse_trees};

/// Maximum size in bytes of the values in a statement. A value counts once for each place of its parameter.
const VALUES: usize = 16 << 20;

/// Rewrites a query. `values` are those of its parameters: what is replaced may have had some of them, so none are left. Missing
/// values are NULL.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the statement is not a query, and [`ErrorKind::TooLarge`] if its values are too large.
pub(in crate::postgres) fn rewritten(mut parsed: Parsed, names: &Names, values: &[ScalarValue]) -> Result<Parsed> {
    let query = match &parsed {
        Parsed::Explain(_) => true,
        Parsed::Statement(statement) => matches!(statement.as_ref(), Statement::Query(_)),
        _ => false,
    };
    if !query {
        return Err(Error::new(ErrorKind::Unsupported, "only queries may read the system catalogs").into());
    }
    let mut rewriter = Rewriter { names, values, bytes: 0, refused: None };
    edit(&mut parsed, &mut rewriter);
    match rewriter.refused {
        Some(error) => Err(error.into()),
        None => Ok(parsed),
    }
}

struct Rewriter<'a> {
    names: &'a Names,
    values: &'a [ScalarValue],
    /// Bytes of the values that are in the statement.
    bytes: usize,
    /// The first error.
    refused: Option<Error>,
}

impl Editor for Rewriter<'_> {
    fn pre_visit_query(&mut self, query: &mut Query) {
        if empty_body(&mut query.body) {
            // Positions and names in ORDER BY may refer to columns that were removed.
            query.order_by = None;
        }
        query.locks.clear();
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection.iter_mut().for_each(|item| edit_expressions(item, &mut counted));
        }
        distinct_names(&mut query.body);
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) {
        match factor {
            // A table here.
            TableFactor::Table { name, args, .. } if last_name(name) == "pg_get_keywords" => *args = None,
            TableFactor::Table { name, args: Some(args), alias, .. } => {
                strip(name);
                let function = last_name(name);
                // A function in the place of a table has one row.
                if !["generate_series", "unnest"].contains(&function.as_str()) {
                    let arguments = FunctionArguments::List(FunctionArgumentList {
                        duplicate_treatment: None,
                        args: args.args.clone(),
                        clauses: Vec::new(),
                    });
                    let name = Ident::with_quote('"', function.as_str());
                    if let Some(query) = row_of(&function, arguments) {
                        let alias = alias
                            .clone()
                            .or_else(|| Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None }));
                        *factor = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
                    }
                }
            }
            TableFactor::Function { name, .. } => strip(name),
            _ => {}
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) {
        match expr {
            // Of kinds of types that do not exist: recursive subqueries about them need not be supported.
            Expr::Case { operand: None, conditions, else_result, .. } => {
                conditions.retain(|branch| !is_recursive(&branch.result) || !is_of_missing_kind(&branch.condition));
                if conditions.is_empty() {
                    *expr = else_result.take().map_or_else(null, Expr::Nested);
                }
            }
            // Subqueries without rows, before their own expressions are visited.
            Expr::Subquery(query) if reads_empty(&query.body) => *expr = null(),
            Expr::Subquery(query) => one_row(query),
            // Options of relations, of which there are none.
            Expr::Function(function) if unnests(function) => *expr = null(),
            Expr::Exists { subquery, negated } if reads_empty(&subquery.body) => {
                *expr = Expr::value(Value::Boolean(*negated));
            }
            // Clients split the search path by functions that the engine does not have.
            Expr::InSubquery { expr: inner, subquery, negated } if subquery.to_string().contains("search_path") => {
                let list = vec![Expr::value(Value::SingleQuotedString(self.names.schema.clone()))];
                *expr = Expr::InList { expr: inner.clone(), list, negated: *negated };
            }
            Expr::InSubquery { subquery, negated, .. } if reads_empty(&subquery.body) => {
                *expr = Expr::value(Value::Boolean(*negated));
            }
            _ => {}
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Value(value) => {
                if let Value::Placeholder(name) = &value.value {
                    let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
                    let value = number.and_then(|number| self.values.get(number.checked_sub(1)?));
                    self.bytes = self.bytes.saturating_add(value.map_or(0, bytes_of_literal));
                    let fits = self.bytes <= VALUES;
                    if !fits {
                        self.refused.get_or_insert_with(|| {
                            let message = "the values of the parameters are too large for a query of the catalogs";
                            Error::new(ErrorKind::TooLarge, message).advice("use fewer or shorter values")
                        });
                    }
                    *expr = value.filter(|_| fits).map_or_else(null, literal_of);
                }
            }
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => self.array_of_text(right),
            Expr::Collate { expr: inner, .. } => *expr = inner.as_ref().clone(),
            Expr::BinaryOp { left, op, right } => {
                boolean(left, right);
                boolean(right, left);
                if let BinaryOperator::PGCustomBinaryOperator(names) = op
                    && let Some(known) = names.last().and_then(|name| known_operator(name))
                {
                    *op = known;
                }
            }
            Expr::Function(function) => {
                strip(&mut function.name);
                let named = matches!(function.args, FunctionArguments::None).then(|| function.name.to_string());
                if let Some(literal) = named.and_then(|name| self.literal(&name)) {
                    *expr = literal;
                } else if let Some(replaced) = replaced_function(function) {
                    *expr = replaced;
                }
            }
            // No row was ever changed.
            Expr::CompoundIdentifier(names) if names.last().is_some_and(|name| is_system_column(&name.value)) => {
                *expr = Expr::value(Value::Number("0".to_owned(), false));
            }
            Expr::Identifier(name) if is_system_column(&name.value) => {
                *expr = Expr::value(Value::Number("0".to_owned(), false));
            }
            Expr::Identifier(name) if name.quote_style.is_none() => {
                if let Some(literal) = self.literal(&name.value) {
                    *expr = literal;
                }
            }
            // A field of a composite value, such as `(keys).n`.
            Expr::CompoundFieldAccess { root, access_chain } => {
                count_from_one(root, access_chain);
                if let [AccessExpr::Dot(Expr::Identifier(field))] = access_chain.as_slice() {
                    let field = Expr::value(Value::SingleQuotedString(field.value.clone()));
                    *expr = call("get_field", vec![root.as_ref().clone(), field]);
                }
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                escape_by_backslash(pattern, escape_char);
            }
            Expr::Cast { expr: inner, data_type, .. } => {
                if matches!(data_type, SqlType::Array(_)) {
                    self.array_of_text(inner);
                }
                if let Some(replaced) = replaced_cast(inner, data_type) {
                    *expr = replaced;
                }
            }
            _ => {}
        }
    }
}

impl Rewriter<'_> {
    /// The value of a word that is a function without arguments.
    fn literal(&self, word: &str) -> Option<Expr> {
        let text = self.names.of_word(word).filter(|_| !word.eq_ignore_ascii_case("current_database"))?;
        Some(Expr::value(Value::SingleQuotedString(text.to_owned())))
    }

    /// Replaces the text of an array, such as '{r,v}', by an array.
    fn array_of_text(&mut self, expr: &mut Expr) {
        if let Expr::Value(value) = expr
            && let Value::SingleQuotedString(text) = &value.value
        {
            match items(text) {
                Ok(items) => {
                    let item = |item: Option<String>| {
                        item.map_or_else(null, |item| Expr::value(Value::SingleQuotedString(item)))
                    };
                    *expr = Expr::Array(Array { elem: items.into_iter().map(item).collect(), named: true });
                }
                Err(error) => {
                    self.refused.get_or_insert(Error::new(ErrorKind::Unsupported, error.line(text)));
                }
            }
        }
    }
}

/// Replaces EXISTS, which the engine knows in conditions only, by a count.
fn counted(expr: &mut Expr) {
    let Expr::Exists { subquery, negated } = expr else { return };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return };
    let plain = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if !plain || select.having.is_some() || select.distinct.is_some() || subquery.limit_clause.is_some() {
        return;
    }
    let one = Expr::value(Value::Number("1".to_owned(), false));
    select.projection = vec![SelectItem::UnnamedExpr(call("count", vec![one.clone()]))];
    subquery.order_by = None;
    let (left, right) = (Box::new(Expr::Subquery(subquery.clone())), Box::new(one));
    let op = if *negated { BinaryOperator::Lt } else { BinaryOperator::GtEq };
    *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
}

/// True for a subquery WITH RECURSIVE.
fn is_recursive(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_recursive(inner),
        Expr::Subquery(query) => query.with.as_ref().is_some_and(|with| with.recursive),
        _ => false,
    }
}

/// True for a condition such as `typtype = 'd'`, if there are no types of this kind.
fn is_of_missing_kind(condition: &Expr) -> bool {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return false };
    let named = match left.as_ref() {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    };
    let kind = match right.as_ref() {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(kind) => Some(kind),
            _ => None,
        },
        _ => None,
    };
    named.is_some_and(|name| name.value.eq_ignore_ascii_case("typtype")) && kind.is_some_and(|kind| !has_kind(kind))
}

/// True for a column that PostgreSQL has in every table.
fn is_system_column(name: &str) -> bool {
    ["cmax", "cmin", "tableoid", "xmax", "xmin"].contains(&name.to_lowercase().as_str())
}

/// `SELECT function(…) AS function`.
fn row_of(function: &str, arguments: FunctionArguments) -> Option<Box<Query>> {
    let Statement::Query(mut query) = parse_trees("SELECT f()", PostgreSqlDialect {}).ok()?.pop()? else { return None };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let mut item = call(function, Vec::new());
    if let Expr::Function(call) = &mut item {
        call.args = arguments;
    }
    select.projection = vec![SelectItem::ExprWithAlias { expr: item, alias: Ident::with_quote('"', function) }];
    Some(query)
}

/// True for an array of the items of another one: `ARRAY(SELECT … FROM unnest(…))`.
fn unnests(function: &Function) -> bool {
    match &function.args {
        FunctionArguments::Subquery(query) => query.to_string().to_lowercase().contains("unnest("),
        _ => false,
    }
}

/// Limits a scalar subquery to one row, which the engine must know before it runs.
fn one_row(query: &mut Query) {
    query.order_by = None;
    if let SetExpr::Select(select) = query.body.as_mut()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
        && let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
            select.projection.as_mut_slice()
        && !is_aggregate(item)
    {
        *item = call("min", vec![item.clone()]);
    }
}

/// True for an aggregate, or an expression of one; those of subqueries do not count.
fn is_aggregate(expr: &Expr) -> bool {
    const AGGREGATES: [&str; 8] = ["count", "sum", "max", "min", "avg", "array_agg", "string_agg", "bool_or"];
    match expr {
        Expr::Function(function) => {
            let inside = match &function.args {
                FunctionArguments::List(list) => list.args.iter().any(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => is_aggregate(expr),
                    _ => false,
                }),
                _ => false,
            };
            inside || AGGREGATES.contains(&last_name(&function.name).as_str())
        }
        Expr::Cast { expr, .. } | Expr::Nested(expr) | Expr::Collate { expr, .. } => is_aggregate(expr),
        Expr::BinaryOp { left, right, .. } => is_aggregate(left) || is_aggregate(right),
        _ => false,
    }
}

/// The last part of a name in lower case.
fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map_or_else(String::new, |name| name.value.to_lowercase())
}

/// Bytes of a value as a literal: an item of a list is an expression.
fn bytes_of_literal(value: &ScalarValue) -> usize {
    let items = if let ScalarValue::List(list) = value { list.values().len() } else { 0 };
    value.size().saturating_add(items.saturating_mul(size_of::<Expr>()))
}

/// A value in SQL.
pub(super) fn literal_of(value: &ScalarValue) -> Expr {
    if value.is_null() {
        return null();
    }
    if let ScalarValue::List(list) = value {
        let items = ScalarValue::convert_array_to_scalar_vec(list.as_ref()).unwrap_or_default();
        let elem = items.into_iter().flatten().flatten().map(|item| literal_of(&item)).collect();
        return Expr::Array(Array { elem, named: true });
    }
    if value.data_type().is_temporal()
        && let Ok(ScalarValue::Utf8(Some(text))) = value.cast_to(&DataType::Utf8)
    {
        return Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
            data_type: SqlType::Timestamp(None, TimezoneInfo::WithTimeZone),
            array: false,
            format: None,
        };
    }
    let text = value.to_string();
    Expr::value(match value {
        ScalarValue::Boolean(Some(value)) => Value::Boolean(*value),
        value if value.data_type().is_numeric() => Value::Number(text, false),
        _ => Value::SingleQuotedString(text),
    })
}

fn null() -> Expr {
    Expr::value(Value::Null)
}

/// Removes the schema of a function.
pub(in crate::postgres) fn strip(name: &mut ObjectName) {
    if name.0.len() > 1 && is_named(&name.0[0], PG_CATALOG)
        || name.0.len() > 1 && is_named(&name.0[0], INFORMATION_SCHEMA)
    {
        name.0.remove(0);
    }
}

fn is_named(part: &ObjectNamePart, name: &str) -> bool {
    part.as_ident().is_some_and(|ident| ident.value.eq_ignore_ascii_case(name))
}

/// The operator of this name.
pub(in crate::postgres) fn known_operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        ">" => BinaryOperator::Gt,
        "<=" => BinaryOperator::LtEq,
        ">=" => BinaryOperator::GtEq,
        "||" => BinaryOperator::StringConcat,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        _ => return None,
    })
}

fn replaced_function(function: &mut Function) -> Option<Expr> {
    let name = function.name.to_string().to_lowercase();
    match (&mut function.args, name.as_str()) {
        // ARRAY(SELECT …)
        (FunctionArguments::Subquery(query), "array") => {
            let mut query = query.as_ref().clone();
            query.order_by = None;
            if let SetExpr::Select(select) = query.body.as_mut()
                && let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
                    select.projection.as_mut_slice()
            {
                *item = call("array_agg", vec![item.clone()]);
            }
            Some(Expr::Subquery(Box::new(query)))
        }
        // Places of the items of an array.
        (FunctionArguments::List(list), "generate_subscripts") => {
            let array = list.args.first().and_then(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(array)) => Some(array.clone()),
                _ => None,
            })?;
            let length = call("array_length", vec![array]);
            let one = Expr::value(Value::Number("1".to_owned(), false));
            Some(call("unnest", vec![call("generate_series", vec![one, length])]))
        }
        // Items of an array with their places.
        (FunctionArguments::List(list), "_pg_expandarray") => {
            function.name = ObjectName::from(vec![Ident::new("pg_expandarray")]);
            let list = list.clone();
            function.args = FunctionArguments::List(list);
            Some(call("unnest", vec![Expr::Function(function.clone())]))
        }
        _ => None,
    }
}

/// Shifts the place of an item of a vector: PostgreSQL counts those of `int2vector` and `oidvector` from 0, unlike arrays.
fn count_from_one(root: &Expr, chain: &mut [AccessExpr]) {
    const VECTORS: [&str; 5] = ["indkey", "indclass", "indcollation", "indoption", "proargtypes"];
    let mut name = column_name(root);
    for access in chain {
        match access {
            AccessExpr::Dot(field) => name = column_name(field),
            AccessExpr::Subscript(Subscript::Index { index }) if VECTORS.contains(&name.as_str()) => {
                let (left, one) = (Box::new(index.clone()), Expr::value(Value::Number("1".to_owned(), false)));
                *index =
                    Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Plus, right: Box::new(one) }));
                return;
            }
            AccessExpr::Subscript(_) => return,
        }
    }
}

/// Replaces 't' and 'f' by what they mean next to a column that is true or false.
fn boolean(column: &Expr, literal: &mut Expr) {
    let name = match column {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(names) => match names.last() {
            Some(name) => name,
            None => return,
        },
        _ => return,
    };
    if let Expr::Value(value) = literal
        && let Value::SingleQuotedString(text) = &value.value
        && is_boolean(&name.value.to_lowercase())
    {
        let yes = text.starts_with(['t', 'T', 'y', '1']);
        *literal = Expr::value(Value::Boolean(yes));
    }
}

/// Writes a pattern with the only escape character that the engine has.
fn escape_by_backslash(pattern: &mut Expr, escape: &mut Option<datafusion::sql::sqlparser::ast::ValueWithSpan>) {
    let Some(Value::SingleQuotedString(character)) = escape.as_ref().map(|escape| &escape.value) else { return };
    let literal = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    if !character.is_empty() && character != "\\" {
        let doubled = call("replace", vec![pattern.clone(), literal("\\"), literal("\\\\")]);
        *pattern = call("replace", vec![doubled, literal(character), literal("\\")]);
        *escape = None;
    }
}

fn replaced_cast(inner: &Expr, data_type: &mut SqlType) -> Option<Expr> {
    let name = match data_type {
        SqlType::Custom(name, _) => name.0.last()?.as_ident()?.value.to_lowercase(),
        SqlType::Regclass => "regclass".to_owned(),
        SqlType::Text => "text".to_owned(),
        SqlType::Array(_) => {
            // Lists have their type already.
            let name = data_type.to_string().to_lowercase();
            return (name.contains("pg_catalog") || name.starts_with("reg") || name.starts_with("oid"))
                .then(|| inner.clone());
        }
        _ => return None,
    };
    let literal =
        matches!(inner, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::Null));
    let inner = inner.clone();
    Some(match name.as_str() {
        "regclass" if literal => call("to_regclass", vec![inner]),
        "regclass" => call("pg_relation_name", vec![inner]),
        "regtype" if literal => call("to_regtype", vec![inner]),
        "regtype" => call("format_type", vec![inner, null()]),
        "regnamespace" if literal => call("to_regnamespace", vec![inner]),
        "regnamespace" => call("pg_namespace_name", vec![inner]),
        "regproc" | "regprocedure" if literal => call("to_regproc", vec![inner]),
        "regrole" => call("pg_get_userbyid", vec![inner]),
        "oid" | "xid" | "cid" | "int4" | "int2" | "int8" | "integer" => {
            *data_type = SqlType::BigInt(None);
            return None;
        }
        "regproc" | "regprocedure" | "text" if has_functions(&column_name(&inner)) => call("pg_proc_name", vec![inner]),
        "regproc" | "regprocedure" | "name" | "text" | "char" | "bpchar" | "varchar" | "cstring"
        | "information_schema" => {
            *data_type = SqlType::Text;
            return None;
        }
        "int2vector" | "oidvector" | "anyarray" | "unknown" => inner,
        "bool" => {
            *data_type = SqlType::Boolean;
            return None;
        }
        _ => return None,
    })
}

/// True if a query has no rows because a table that it joins has none, and it does not count them.
fn reads_empty(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => selects_empty(select),
        SetExpr::Query(query) => reads_empty(&query.body),
        SetExpr::SetOperation { left, right, .. } => reads_empty(left) && reads_empty(right),
        _ => false,
    }
}

fn selects_empty(select: &Select) -> bool {
    let grouped = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if !keys.is_empty());
    let counts = !grouped && select.projection.iter().any(is_counted);
    if !counts && select.selection.as_ref().is_some_and(is_never) {
        return true;
    }
    !counts
        && select.from.iter().any(|table| {
            let joined = table.joins.iter().filter(|join| {
                matches!(
                    join.join_operator,
                    JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
                )
            });
            // With an outer join that keeps the other side, the first table does not decide.
            let keeps_right = table.joins.iter().any(|join| {
                matches!(
                    join.join_operator,
                    JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
                )
            });
            !keeps_right && std::iter::once(&table.relation).chain(joined.map(|join| &join.relation)).any(has_no_rows)
        })
}

/// True for a condition that no row of the catalogs meets: there are no foreign keys.
fn is_never(condition: &Expr) -> bool {
    match condition {
        Expr::Nested(inner) => is_never(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => is_never(left) || is_never(right),
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let is_f = |expr: &Expr| matches!(expr, Expr::Value(value) if value.value == Value::SingleQuotedString("f".to_owned()));
            column_name(left) == "contype" && is_f(right) || column_name(right) == "contype" && is_f(left)
        }
        _ => false,
    }
}

fn is_counted(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } if is_aggregate(expr))
}

fn has_no_rows(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: None, .. } => {
            let parts: Option<Vec<String>> =
                name.0.iter().map(|part| Some(part.as_ident()?.value.to_lowercase())).collect();
            match parts.as_deref() {
                Some([name]) => is_empty(None, name),
                Some([.., schema, name]) => is_empty(Some(schema), name),
                _ => false,
            }
        }
        TableFactor::Derived { subquery, .. } => reads_empty(&subquery.body),
        _ => false,
    }
}

/// Replaces what has no rows by its column names alone. Returns true if nothing else is left.
fn empty_body(body: &mut SetExpr) -> bool {
    match body {
        SetExpr::Select(select) if selects_empty(select) => {
            let items = std::mem::take(&mut select.projection);
            select.projection = items
                .into_iter()
                .map(|item| {
                    let name = match &item {
                        SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                        SelectItem::UnnamedExpr(expr) => column_name(expr),
                        other => other.to_string(),
                    };
                    let text = Expr::Cast {
                        kind: CastKind::Cast,
                        expr: Box::new(null()),
                        data_type: SqlType::Text,
                        array: false,
                        format: None,
                    };
                    SelectItem::ExprWithAlias { expr: text, alias: Ident::with_quote('"', name) }
                })
                .collect();
            select.from.clear();
            select.selection = Some(Expr::value(Value::Boolean(false)));
            select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
            select.having = None;
            select.sort_by.clear();
            select.distinct = None;
            true
        }
        SetExpr::SetOperation { left, right, .. } => {
            let [left, right] = [empty_body(left), empty_body(right)];
            left && right
        }
        _ => false,
    }
}

/// Names the columns of a SELECT that have no name of their own as PostgreSQL does, and duplicates by their number: the engine
/// does not allow them.
fn distinct_names(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            // `t.*` has a column for each name of `t`.
            let whole = select.projection.iter().filter_map(|item| match item {
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    Some(last_name(name))
                }
                _ => None,
            });
            let whole: HashSet<String> = whole.collect();
            let mut taken = HashSet::new();
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) = item
                    && let [table, column] = names.as_slice()
                    && whole.contains(&table.value.to_lowercase())
                {
                    let alias = Ident::with_quote('"', format!("{}_1", column.value));
                    *item = SelectItem::ExprWithAlias { expr: Expr::CompoundIdentifier(names.clone()), alias };
                }
                let name = match item {
                    SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                    SelectItem::UnnamedExpr(expr) => column_name(expr),
                    _ => continue,
                };
                let mut unique = name.clone();
                let mut number = 1;
                while !taken.insert(unique.clone()) {
                    number += 1;
                    unique = format!("{name}_{number}");
                }
                let alias = Ident::with_quote('"', unique.clone());
                match item {
                    SelectItem::ExprWithAlias { alias: given, .. } if unique != name => *given = alias,
                    // Words such as current_user become literals.
                    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(_))
                        if unique == name && !is_system_column(&name) => {}
                    SelectItem::UnnamedExpr(Expr::Identifier(word))
                        if unique == name && !word.value.starts_with("current_") && !is_system_column(&name) => {}
                    SelectItem::UnnamedExpr(expr) => *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias },
                    _ => {}
                }
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            distinct_names(left);
            distinct_names(right);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::dialect::parsed;
    use super::*;
    use crate::cases::each;
    use crate::session::PlanningTurn;

    #[test]
    fn what_only_postgres_has_is_replaced() {
        let names = Names::of_tests();
        let rewritten = |sql: &str, names, values: &[ScalarValue]| {
            rewritten(parsed(&PlanningTurn::unbounded(), sql)?, names, values).map(|statement| statement.to_string())
        };
        let cases = [
            ("SELECT 'mentions'::regclass", "SELECT to_regclass('mentions') AS \"regclass\""),
            (
                "SELECT c.oid::pg_catalog.regclass FROM pg_class c",
                "SELECT pg_relation_name(c.oid) AS \"oid\" FROM pg_class c",
            ),
            ("SELECT pg_catalog.version()", "SELECT version() AS \"version\""),
            (
                "SELECT 1 FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(a)$' COLLATE pg_catalog.default",
                "SELECT 1 AS \"?column?\" FROM pg_class WHERE relname ~ '^(a)$'",
            ),
            (
                "SELECT 1 FROM pg_class WHERE relname = ANY('{\"a,b\",c}'::text[])",
                "SELECT 1 AS \"?column?\" FROM pg_class WHERE relname = ANY(ARRAY['a,b', 'c']::TEXT[])",
            ),
            (
                "SELECT tgname, 1 FROM pg_trigger t JOIN pg_class c ON true ORDER BY 1",
                "SELECT CAST(NULL AS TEXT) AS \"tgname\", CAST(NULL AS TEXT) AS \"?column?\" WHERE false",
            ),
            (
                "SELECT i.indkey[n - 1], indkey[0], conkey[1] FROM i",
                "SELECT i.indkey[(n - 1 + 1)] AS \"indkey\", indkey[(0 + 1)] AS \"indkey_2\", \
                 conkey[1] AS \"conkey\" FROM i",
            ),
            (
                "SELECT * FROM current_schema()",
                "SELECT * FROM (SELECT current_schema() AS \"current_schema\") AS \"current_schema\"",
            ),
            ("SELECT typreceive::text FROM pg_type", "SELECT pg_proc_name(typreceive) AS \"typreceive\" FROM pg_type"),
            (
                "SELECT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = n.oid), n.xmin FROM pg_namespace n",
                "SELECT ((SELECT count(1) AS \"count\" FROM pg_class c WHERE c.oid = n.oid) >= 1) AS \"?column?\", 0 AS \"xmin\" \
                 FROM pg_namespace n",
            ),
            (
                "SELECT unnest((SELECT array_agg(1))) AS a FROM pg_constraint fk WHERE fk.contype = 'f'",
                "SELECT CAST(NULL AS TEXT) AS \"a\" WHERE false",
            ),
            ("SELECT count(*) FROM pg_trigger", "SELECT count(*) AS \"count\" FROM pg_trigger"),
            (
                "SELECT (SELECT adbin FROM pg_attrdef d WHERE d.adnum = a.attnum) FROM pg_attribute a",
                "SELECT NULL AS \"adbin\" FROM pg_attribute a",
            ),
            (
                "SELECT current_user, NULL, NULL",
                "SELECT 'ada' AS \"current_user\", NULL AS \"?column?\", NULL AS \"?column?_2\"",
            ),
        ];
        each(cases, |(sql, expected)| {
            assert_eq!(rewritten(sql, &names, &[]).expect(sql), expected);
        });
        let values = [ScalarValue::from("it's"), ScalarValue::from(7_i64)];
        let bound =
            rewritten("SELECT 1 FROM pg_class WHERE relname = $1 AND oid = $2 AND relkind = $3", &names, &values);
        let expected = "SELECT 1 AS \"?column?\" FROM pg_class WHERE relname = 'it''s' AND oid = 7 AND relkind = NULL";
        assert_eq!(bound.expect("rewritten"), expected);
        let many = format!("SELECT 1 FROM pg_class WHERE relname IN ({}$1)", "$1, ".repeat(30));
        let refused = rewritten(&many, &names, &[ScalarValue::from("x".repeat(1 << 20))]).expect_err("31 MiB");
        assert_eq!(Error::find(&refused).map(Error::kind), Some(ErrorKind::TooLarge), "{refused}");
        assert!(rewritten("CREATE VIEW v AS SELECT * FROM pg_class", &names, &[]).is_err());
        assert!(rewritten("SELECT 1 FROM (pg_class", &names, &[]).is_err());
        assert!(rewritten("SELECT 1 FROM pg_class WHERE relname = ANY('{a')", &names, &[]).is_err());
    }
}
