//! The names that PostgreSQL gives the columns of a result: `count` for `count(*)`, `?column?` for `1 + 1`.
//!
//! Clients find values by these names, and a query may use them: `SELECT kind, count(*) … ORDER BY count`. The engine would
//! use the text of the expression.
//!
//! Source: PostgreSQL 15, `FigureColname` in `src/backend/parser/parse_target.c`.

use std::collections::HashSet;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, DataType as SqlType, Expr, Ident, OrderByKind, Query, SelectItem, SetExpr, Statement as Ast,
    TrimWhereField, Value,
};

use super::dialect::{edit, type_named};
use crate::session::syntax::{self, Editor};
use crate::session::{is_column, marked, normalized};

/// The name of an expression for which there is none.
const NO_NAME: &str = "?column?";

/// The name that PostgreSQL gives a column without one.
pub(super) fn column_name(expr: &Expr) -> String {
    match figured(expr) {
        Some(Figured::Strong(name) | Figured::Weak(name)) => name,
        None => NO_NAME.to_owned(),
    }
}

/// A name, and whether an expression around it keeps it.
enum Figured {
    /// That of a column or a function.
    Strong(String),
    /// That of a type, or of CASE: a cast or CASE around it has its own name.
    Weak(String),
}

fn figured(expr: &Expr) -> Option<Figured> {
    let strong = |name: &str| Some(Figured::Strong(name.to_owned()));
    match expr {
        Expr::Identifier(name) => Some(Figured::Strong(normalized(name))),
        Expr::CompoundIdentifier(path) => path.last().map(|name| Figured::Strong(normalized(name))),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(field) => Some(field),
                AccessExpr::Subscript(_) => None,
            });
            figured(field.unwrap_or(root))
        }
        Expr::Function(function) => {
            let name = function.name.0.last()?.as_ident()?;
            Some(Figured::Strong(normalized(name)))
        }
        Expr::Nested(expr) | Expr::Collate { expr, .. } => figured(expr),
        Expr::Cast { expr, data_type, .. } => kept(figured(expr), || name_of_type(data_type)),
        Expr::TypedString(typed) => Some(Figured::Weak(name_of_type(&typed.data_type))),
        Expr::Interval(_) => Some(Figured::Weak("interval".to_owned())),
        Expr::Case { else_result, .. } => kept(else_result.as_deref().and_then(figured), || "case".to_owned()),
        Expr::Subquery(query) => name_of_query(query),
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { shorthand: true, .. } => strong("substr"),
        Expr::Substring { .. } => strong("substring"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        _ => None,
    }
}

/// A name of an inner expression, unless it is weak.
fn kept(inner: Option<Figured>, own: impl FnOnce() -> String) -> Option<Figured> {
    match inner {
        Some(Figured::Strong(name)) => Some(Figured::Strong(name)),
        Some(Figured::Weak(_)) | None => Some(Figured::Weak(own())),
    }
}

fn name_of_type(data_type: &SqlType) -> String {
    match type_named(data_type) {
        Some(known) => known.name().trim_start_matches('_').to_owned(),
        None => data_type.to_string().to_lowercase(),
    }
}

/// The name of the first result of a query, which is the value of a subquery.
fn name_of_query(query: &Query) -> Option<Figured> {
    match first_select(&query.body)?.first()? {
        SelectItem::UnnamedExpr(expr) => Some(Figured::Strong(column_name(expr))),
        SelectItem::ExprWithAlias { alias, .. } => Some(Figured::Strong(normalized(alias))),
        _ => None,
    }
}

/// The results of the SELECT that names the columns of a query.
fn first_select(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// Names the columns of a statement, of its CTEs and of its derived tables.
pub(super) fn name_columns(statement: &mut Parsed) {
    // Other statements, such as CREATE VIEW, keep the names.
    let shows = matches!(statement, Parsed::Statement(statement) if matches!(statement.as_ref(), Ast::Query(_)));
    edit(statement, &mut Namer { around: Vec::new(), shows });
}

struct Namer {
    /// For each query around the current place, the number of its expressions around it.
    around: Vec<usize>,
    /// Set if the names of the statement's results are only shown.
    shows: bool,
}

impl Editor for Namer {
    fn pre_visit_query(&mut self, query: &mut Query) {
        // Only an ORDER BY can refer to the names of a subquery in an expression.
        let is_value = self.around.last().is_some_and(|expressions| *expressions > 0);
        sort_by_results(query);
        let (sorted, inside) = names_in_order(query);
        let may_name = |name: &str| !inside.contains(name) && (!is_value || sorted.contains(name));
        let shown = self.shows && self.around.is_empty();
        name_items(&mut query.body, &may_name, shown);
        self.around.push(0);
    }

    fn post_visit_query(&mut self, _query: &mut Query) {
        self.around.pop();
    }

    fn pre_visit_expr(&mut self, _expr: &mut Expr) {
        if let Some(expressions) = self.around.last_mut() {
            *expressions += 1;
        }
    }

    fn post_visit_expr(&mut self, _expr: &mut Expr) {
        if let Some(expressions) = self.around.last_mut() {
            *expressions -= 1;
        }
    }
}

/// Number of the first mark of these names; other rewrites count theirs from 1.
const MARKS: usize = 1_000_000;

/// Names the results of a query that have no name, if `may_name` allows it. `shown`: other names get a mark, so that nothing refers to
/// them.
fn name_items(body: &mut SetExpr, may_name: &dyn Fn(&str) -> bool, shown: bool) {
    match body {
        SetExpr::Select(select) => {
            // There, the engine takes a name for a result, but PostgreSQL takes it for a column.
            let mut columns = HashSet::new();
            for condition in select.having.iter().chain(&select.qualify) {
                add_columns(condition, &mut columns);
            }
            for (at, item) in select.projection.iter_mut().enumerate() {
                let SelectItem::UnnamedExpr(expr) = item else { continue };
                if is_column(expr) && !matches!(expr, Expr::Identifier(word) if is_word(word)) {
                    continue;
                }
                let mut name = column_name(expr);
                let may_have = may_name(&name) && !columns.contains(&name);
                if !may_have && shown {
                    name = marked(&name, MARKS + at);
                }
                if may_have || shown {
                    let expr = std::mem::replace(expr, Expr::value(Value::Null));
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
                }
            }
        }
        SetExpr::SetOperation { left, .. } => name_items(left, may_name, shown),
        // A query in parentheses is visited itself.
        _ => {}
    }
}

/// True for words that are values rather than columns, such as `current_date`.
fn is_word(word: &Ident) -> bool {
    const WORDS: [&str; 4] = ["user", "session_user", "localtime", "localtimestamp"];
    let name = normalized(word);
    word.quote_style.is_none() && (name.starts_with("current_") || WORDS.contains(&name.as_str()))
}

/// The names that stand alone in ORDER BY, which are those of results, and those in its expressions, which are columns of the
/// input.
fn names_in_order(query: &Query) -> (HashSet<String>, HashSet<String>) {
    let (mut alone, mut inside) = (HashSet::new(), HashSet::new());
    if let Some(OrderByKind::Expressions(sorts)) = query.order_by.as_ref().map(|order| &order.kind) {
        for sort in sorts {
            match &sort.expr {
                Expr::Identifier(name) => {
                    alone.insert(normalized(name));
                }
                expr => add_columns(expr, &mut inside),
            }
        }
    }
    (alone, inside)
}

/// Replaces names that stand alone in ORDER BY by the results that they name, if expressions beside them use columns of these names:
/// `SELECT x::int … ORDER BY x + 1, x`.
fn sort_by_results(query: &mut Query) {
    let (alone, inside) = names_in_order(query);
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let Some(OrderByKind::Expressions(sorts)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    for sort in sorts {
        let Expr::Identifier(name) = &sort.expr else { continue };
        let name = normalized(name);
        if !alone.contains(&name) || !inside.contains(&name) {
            continue;
        }
        let mut named = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) if column_name(expr) == name => Some(expr),
            SelectItem::ExprWithAlias { expr, alias } if normalized(alias) == name => Some(expr),
            _ => None,
        });
        if let (Some(expr), None) = (named.next(), named.next())
            && !is_column(expr)
        {
            sort.expr = expr.clone();
        }
    }
}

fn add_columns(expr: &Expr, columns: &mut HashSet<String>) {
    syntax::expressions(expr, &mut |expr| match expr {
        Expr::Identifier(name) => {
            columns.insert(normalized(name));
        }
        Expr::CompoundIdentifier(path) => columns.extend(path.last().map(normalized)),
        _ => {}
    });
}
