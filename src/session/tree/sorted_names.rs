//! Names within expressions of ORDER BY.
//!
//! A name alone is a result, as in `ORDER BY x`. Within an expression, as in `ORDER BY x + 1` or `ORDER BY t.x`, it is a
//! column of FROM. The engine prefers a result of that name, or reports the name as ambiguous. So during planning, such a
//! result gets a name with a mark. If FROM has no column of that name, the name refers to the result after all.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByKind, Query, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};

use super::output_names::marked;
use crate::session::nodes::{normalized, query_of, quoted};
use crate::session::syntax::{self, Editor};

/// See the module's documentation.
#[derive(Default)]
pub(in crate::session) struct SortedNames {
    /// Number of queries around the current place.
    depth: usize,
    /// Number of results that were renamed.
    pub(in crate::session) renamed: usize,
}

impl Editor for SortedNames {
    fn pre_visit_query(&mut self, query: &mut Query) {
        self.depth += 1;
        // Only a LIMIT makes the order of a subquery matter.
        if self.depth > 1 && query.limit_clause.is_none() {
            return;
        }
        let named = named_in_expressions(query);
        let SetExpr::Select(select) = query.body.as_mut() else { return };
        if named.is_empty() || select.distinct.is_some() {
            return;
        }
        let mut renamed: Vec<(String, Ident)> = Vec::new();
        let mut columns: Option<Vec<SelectItem>> = Some(Vec::new());
        for item in &mut select.projection {
            match item {
                SelectItem::ExprWithAlias { expr, alias } => {
                    let name = normalized(alias);
                    if named.contains(&name) && column_of(expr).as_ref() != Some(&name) {
                        self.renamed += 1;
                        let mark = quoted(&marked(&name, self.renamed));
                        let shown = Expr::Identifier(mark.clone());
                        columns.iter_mut().for_each(|columns| {
                            columns.push(SelectItem::ExprWithAlias { expr: shown.clone(), alias: quoted(&name) });
                        });
                        renamed.push((name, mark.clone()));
                        *alias = mark;
                    } else {
                        let plain = SelectItem::UnnamedExpr(Expr::Identifier(quoted(&name)));
                        columns.iter_mut().for_each(|columns| columns.push(plain.clone()));
                    }
                }
                SelectItem::UnnamedExpr(expr) => match (column_of(expr), &mut columns) {
                    (Some(name), Some(columns)) => {
                        columns.push(SelectItem::UnnamedExpr(Expr::Identifier(quoted(&name))));
                    }
                    _ => columns = None,
                },
                _ => columns = None,
            }
        }
        if renamed.is_empty() {
            return;
        }
        if let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order| &mut order.kind) {
            for key in keys {
                if let Expr::Identifier(name) = &key.expr
                    && let Some((_, mark)) = renamed.iter().find(|(known, _)| *known == normalized(name))
                {
                    key.expr = Expr::Identifier(mark.clone());
                }
            }
        }
        if self.depth > 1 {
            // Other queries look for the name.
            let Some(columns) = columns else { return };
            let alias = TableAlias { explicit: true, name: quoted("__sorted"), columns: Vec::new(), at: None };
            let inner = Box::new(query.clone());
            let relation = TableFactor::Derived { lateral: false, subquery: inner, alias: Some(alias), sample: None };
            *query = *query_of(columns, vec![TableWithJoins { relation, joins: Vec::new() }]);
        }
    }

    fn post_visit_query(&mut self, _query: &mut Query) {
        self.depth -= 1;
    }
}

/// Names of columns in sort keys that are expressions.
fn named_in_expressions(query: &Query) -> HashSet<String> {
    let mut names = HashSet::new();
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order| &order.kind) else { return names };
    for key in keys.iter().filter(|key| !matches!(key.expr, Expr::Identifier(_))) {
        syntax::expressions(&key.expr, &mut |expr| names.extend(column_of(expr)));
    }
    names
}

/// The name of an expression that is a column.
fn column_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(normalized(name)),
        Expr::CompoundIdentifier(path) => path.last().map(normalized),
        _ => None,
    }
}
