//! Several results with the same name, which SQL allows and the engine refuses.
//!
//! `SELECT published_at::date, published_at`, `SELECT *, aid` and `SELECT 1, 1` are planned with unique names: a mark and a
//! number are added to the name of each further column. [`shown_name`] removes them when a result leaves the session. If
//! names must stay unique (keys of JSON objects, columns of Parquet files and of data frames), [`unique_names`] numbers
//! them: `aid`, `aid_1`.
//!
//! Names inside a statement keep their meaning: if two different results have the same name, it is ambiguous in ORDER BY,
//! and a query around the subquery cannot refer to either of them.
//!
//! Columns of a new table or view, and of results that programs read, are called as people read them: `1` instead of the
//! engine's `Int64(1)` ([`with_named_columns`], `with_named_results`).

use std::collections::{HashMap, HashSet};

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Statement as Ast, Value,
    VisitMut,
};

use crate::error::{Error, ErrorKind, one_line};
use crate::session::nodes::{case_of, is_column, normalized, quoted, result_of};
use crate::session::syntax::{self, Editor, Reader, edit_expressions};

/// Separates a name from the number that makes it unique. No identifier that users write has this control character.
const MARK: char = '\u{1f}';

/// The name of a result, as it is shown.
pub(crate) fn shown_name(name: &str) -> &str {
    match name.rsplit_once(MARK) {
        Some((shown, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => shown,
        _ => name,
    }
}

/// A name with a mark that makes it unique.
pub(crate) fn marked(name: &str, number: usize) -> String {
    format!("{name}{MARK}{number}")
}

/// True for a text with a name that is not shown.
pub(in crate::session) fn is_marked(text: &str) -> bool {
    text.contains(MARK)
}

/// Names as they are shown, with `_1`, `_2`, … after those that occurred before.
pub(crate) fn unique_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let shown: Vec<&str> = names.into_iter().map(shown_name).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let first: HashSet<&str> = shown.iter().copied().collect();
    let unique = shown.iter().map(|name| {
        let mut unique = (*name).to_owned();
        let mut number = 0;
        while taken.contains(&unique) || (number > 0 && first.contains(unique.as_str())) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        taken.insert(unique.clone());
        unique
    });
    unique.collect()
}

/// Gives each result of the SELECTs of a statement a name of its own. `*` must have been expanded.
pub(in crate::session) struct DistinctNames {
    /// Number of queries around the current place.
    depth: usize,
    /// Number of names that were made unique.
    pub(in crate::session) renamed: usize,
    pub(in crate::session) error: Option<Error>,
}

impl DistinctNames {
    pub(in crate::session) fn new() -> Self {
        Self { depth: 0, renamed: 0, error: None }
    }

    fn select(&mut self, select: &mut Select) {
        let names: Vec<Option<String>> = select.projection.iter().map(name_of).collect();
        let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            groups.entry(name.as_deref().unwrap_or_default()).or_default().push(at);
        }
        for (name, items) in groups {
            if name.is_empty() || items.len() < 2 {
                continue;
            }
            let differ = differ(items.iter().map(|at| &select.projection[*at]));
            let mut named = false;
            for at in items {
                let keeps = is_plain_column(&select.projection[at]) && !named && !(differ && self.depth > 1);
                named |= keeps;
                if !keeps {
                    self.renamed += 1;
                    let alias = quoted(&marked(name, self.renamed));
                    rename(&mut select.projection[at], alias);
                }
            }
        }
    }
}

impl Editor for DistinctNames {
    fn pre_visit_query(&mut self, query: &mut Query) {
        self.depth += 1;
        let SetExpr::Select(select) = query.body.as_ref() else { return };
        let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order_by| &order_by.kind) else {
            return;
        };
        for key in keys {
            let Expr::Identifier(key) = &key.expr else { continue };
            let named = select.projection.iter().filter(|item| name_of(item).as_deref() == Some(&normalized(key)));
            if differ(named) {
                let message = format!("ORDER BY `{}` is ambiguous: several results have this name", key.value);
                let advice = "give the results different names with AS, or use their position";
                self.error = Some(Error::new(ErrorKind::Query, message).advice(advice));
            }
        }
    }

    fn post_visit_query(&mut self, _query: &mut Query) {
        self.depth -= 1;
    }

    fn pre_visit_select(&mut self, select: &mut Select) {
        self.select(select);
    }
}

/// As [`DistinctNames`], for results that the engine gives one name although they are written in different ways: subqueries,
/// and what differs by a cast alone. Every result that is not a column gets a name, and casts are wrapped so that they are
/// seen in names: casts to one type in one way.
#[derive(Default)]
pub(in crate::session) struct EveryName {
    named: usize,
    /// Types that were cast to.
    types: Vec<DataType>,
}

impl EveryName {
    fn wrap(&mut self, part: &mut impl VisitMut) {
        edit_expressions(part, &mut |expr| {
            let Expr::Cast { data_type, .. } = &*expr else { return };
            let at = self.types.iter().position(|known| known == data_type).unwrap_or_else(|| {
                self.types.push(data_type.clone());
                self.types.len() - 1
            });
            // The expression stands in it once: copies of nested casts would grow exponentially.
            let number = Expr::value(Value::Number(at.to_string(), false));
            *expr = case_of(vec![(Expr::IsNotNull(Box::new(number)), expr.clone())], None);
        });
    }
}

impl Editor for EveryName {
    fn pre_visit_query(&mut self, query: &mut Query) {
        if let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
            keys.iter_mut().for_each(|key| self.wrap(&mut key.expr));
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) {
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.iter_mut().for_each(|key| self.wrap(key));
        }
        select.having.iter_mut().chain(&mut select.qualify).for_each(|condition| self.wrap(condition));
        for item in &mut select.projection {
            let column = is_plain_column(item);
            if let SelectItem::UnnamedExpr(expr) = item {
                let name = name_of_expr(expr);
                self.wrap(expr);
                if !column {
                    self.named += 1;
                    rename(item, quoted(&marked(&name, self.named)));
                }
            } else if let SelectItem::ExprWithAlias { expr, .. } = item {
                self.wrap(expr);
            }
        }
    }
}

/// True for a statement that groups by a column and a cast of it, which the engine's optimizer takes for one.
pub(in crate::session) fn groups_by_casts(statement: &Statement) -> bool {
    let mut groups = Groups(false);
    syntax::read_statement(statement, &mut groups);
    groups.0
}

struct Groups(bool);

impl Reader for Groups {
    fn pre_visit_select(&mut self, select: &Select) {
        let GroupByExpr::Expressions(keys, _) = &select.group_by else { return };
        if keys.is_empty() {
            return;
        }
        let exprs: Vec<&Expr> = select.projection.iter().filter_map(result_of).chain(keys).collect();
        let casts = exprs.iter().filter(|expr| matches!(expr, Expr::Cast { .. }));
        self.0 |= casts
            .clone()
            .any(|cast| exprs.iter().any(|other| cast != other && name_of_expr(cast) == name_of_expr(other)));
    }
}

/// The name that a result would have; `None` for `*`.
fn name_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(name_of_expr(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(normalized(alias)),
        _ => None,
    }
}

fn name_of_expr(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => normalized(name),
        Expr::CompoundIdentifier(path) => path.last().map(normalized).unwrap_or_default(),
        // The engine ignores casts in names.
        Expr::Cast { expr, .. } | Expr::Nested(expr) => name_of_expr(expr),
        other => other.to_string(),
    }
}

fn is_plain_column(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(expr) if is_column(expr))
}

/// True if results are not all the same expression. A column alone is the same as the qualified one of its name.
fn differ<'i>(items: impl Iterator<Item = &'i SelectItem>) -> bool {
    let mut exprs: Vec<&Expr> = items.filter_map(result_of).collect();
    let compound = exprs.iter().position(|expr| matches!(expr, Expr::CompoundIdentifier(_)));
    if let Some(compound) = compound {
        exprs.swap(0, compound);
    }
    let Some((first, others)) = exprs.split_first() else { return false };
    let same = |other: &Expr| match (first, other) {
        (Expr::CompoundIdentifier(path), Expr::Identifier(name)) => {
            path.last().map(normalized) == Some(normalized(name))
        }
        (Expr::CompoundIdentifier(one), Expr::CompoundIdentifier(other)) => {
            let parts = |path: &[Ident]| path.iter().rev().map(normalized).collect::<Vec<_>>();
            parts(one).iter().zip(parts(other)).all(|(one, other)| *one == other)
        }
        (one, other) => *one == other,
    };
    !others.iter().all(|other| same(other))
}

fn rename(item: &mut SelectItem, alias: Ident) {
    let expr = match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
        _ => return,
    };
    *item = SelectItem::ExprWithAlias { expr, alias };
}

/// The header of an expression without a name; `None` for a column, which has one.
pub(in crate::session) fn header_of(expr: &Expr) -> Option<String> {
    (!is_column(expr)).then(|| one_line(&expr.to_string()))
}

/// `CREATE TABLE` and `CREATE VIEW` of a query with columns that are called as their headers would be.
pub(in crate::session) fn with_named_columns(mut statement: Statement) -> Statement {
    let Statement::Statement(ast) = &mut statement else { return statement };
    let query = match ast.as_mut() {
        Ast::CreateTable(table) if table.columns.is_empty() => table.query.as_mut(),
        Ast::CreateView(view) if view.columns.is_empty() => Some(&mut view.query),
        _ => None,
    };
    if let Some(query) = query {
        name_results(query);
    }
    statement
}

/// A query whose results are called as their headers would be: data frames have `1 + 1` instead of the engine's
/// `Int64(1) + Int64(1)`.
#[cfg(feature = "host")]
pub(crate) fn with_named_results(mut statement: Statement) -> Statement {
    if let Statement::Statement(ast) = &mut statement
        && let Ast::Query(query) = ast.as_mut()
    {
        name_results(query);
    }
    statement
}

fn name_results(query: &mut Query) {
    let mut body = Some(query.body.as_mut());
    while let Some(part) = body {
        body = match part {
            SetExpr::Select(select) => {
                select.projection.iter_mut().for_each(name_item);
                None
            }
            SetExpr::Query(query) => Some(query.body.as_mut()),
            SetExpr::SetOperation { left, .. } => Some(left),
            _ => None,
        };
    }
}

fn name_item(item: &mut SelectItem) {
    let SelectItem::UnnamedExpr(expr) = item else { return };
    // A function that returns a structure may become several columns.
    let is_list = matches!(expr, Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("unnest"));
    if let Some(header) = header_of(expr).filter(|_| !is_list) {
        rename(item, quoted(&header));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::parse_statements;

    #[test]
    fn names_are_numbered_if_they_must_be_unique() {
        let names = ["aid", "aid\u{1f}1", "aid_1", "aid\u{1f}2", "n", "1\u{1f}3", "1\u{1f}4"];
        assert_eq!(unique_names(names), ["aid", "aid_2", "aid_1", "aid_3", "n", "1", "1_1"]);
        assert_eq!(names.map(shown_name), ["aid", "aid", "aid_1", "aid", "n", "1", "1"]);
        assert_eq!(shown_name("a\u{1f}b"), "a\u{1f}b");
    }

    #[test]
    fn columns_of_a_new_table_are_called_as_their_headers() {
        for (sql, named) in [
            ("CREATE TABLE t AS SELECT 1, a, b AS c", "CREATE TABLE t AS SELECT 1 AS \"1\", a, b AS c"),
            ("CREATE VIEW v AS SELECT 'x' UNION SELECT 2", "CREATE VIEW v AS SELECT 'x' AS \"'x'\" UNION SELECT 2"),
            ("CREATE VIEW v (a) AS SELECT 1", "CREATE VIEW v (a) AS SELECT 1"),
            ("SELECT 1", "SELECT 1"),
        ] {
            let statement = parse_statements(sql).expect("SQL").pop_front().expect("a statement");
            assert_eq!(with_named_columns(statement).to_string(), named);
        }
    }

    #[cfg(feature = "host")]
    #[test]
    fn results_of_programs_are_called_as_their_headers() {
        for (sql, named) in [
            ("SELECT 1 + 1, a, b AS c, unnest(d)", "SELECT 1 + 1 AS \"1 + 1\", a, b AS c, unnest(d)"),
            ("(SELECT 'x') UNION SELECT 2 ORDER BY 1", "(SELECT 'x' AS \"'x'\") UNION SELECT 2 ORDER BY 1"),
            ("CREATE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 1"),
        ] {
            let statement = parse_statements(sql).expect("SQL").pop_front().expect("a statement");
            assert_eq!(with_named_results(statement).to_string(), named);
        }
    }
}
