//! Positions in ORDER BY of grouped queries.
//!
//! `ORDER BY 2` is a result. In a query with aggregates, the engine takes the name of that result for a column, and refuses
//! it unless the result is an aggregate, a key of GROUP BY or has an alias. So such a position is replaced by the expression
//! of the result, which the engine finds again among the results. After SELECT DISTINCT it finds none: there, an expression is
//! replaced by the position of the result, and the sort moves to a query around the SELECT unless the result has a name.

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderByKind, Query, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, Value,
    WildcardAdditionalOptions,
};

use crate::session::nodes::{is_column, query_of, quoted, result_of};
use crate::session::syntax::Editor;

/// See the module's documentation.
#[derive(Default)]
pub(in crate::session) struct SortedPositions {
    /// Number of positions that were replaced.
    pub(in crate::session) replaced: usize,
}

impl Editor for SortedPositions {
    fn pre_visit_query(&mut self, query: &mut Query) {
        let SetExpr::Select(select) = query.body.as_ref() else { return };
        let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order| &mut order.kind) else {
            return;
        };
        // Positions behind `*` are not known.
        let items: Option<Vec<&Expr>> = select.projection.iter().map(result_of).collect();
        let Some(items) = items else { return };
        let is_named = |at: usize| {
            matches!(select.projection.get(at), None | Some(SelectItem::ExprWithAlias { .. }))
                || items.get(at).is_some_and(|item| is_column(item))
        };
        if matches!(select.distinct, Some(Distinct::Distinct)) {
            for key in keys.iter_mut().filter(|key| position(&key.expr).is_none()) {
                if let Some(at) = items.iter().position(|item| **item == key.expr) {
                    self.replaced += usize::from(!is_column(&key.expr));
                    key.expr = Expr::value(Value::Number((at + 1).to_string(), false));
                }
            }
        }
        let unnamed = keys.iter().filter(|key| position(&key.expr).is_some_and(|at| !is_named(at))).count();
        if unnamed == 0 {
            return;
        }
        self.replaced += unnamed;
        if matches!(select.distinct, Some(Distinct::Distinct)) {
            in_query_around(query);
            return;
        }
        for key in keys {
            if let Some(at) = position(&key.expr).filter(|at| !is_named(*at)) {
                // A number in parentheses is not a position.
                key.expr = Expr::Nested(Box::new(items[at].clone()));
            }
        }
    }
}

/// The place of a result among the others, from zero.
fn position(key: &Expr) -> Option<usize> {
    let Expr::Value(value) = key else { return None };
    let Value::Number(number, _) = &value.value else { return None };
    number.parse::<usize>().ok()?.checked_sub(1)
}

/// Moves the sort and the limit of a query to a query around it.
fn in_query_around(query: &mut Query) {
    let (order_by, limit_clause) = (query.order_by.take(), query.limit_clause.take());
    let (with, fetch) = (query.with.take(), query.fetch.take());
    let alias = TableAlias { explicit: true, name: quoted("__distinct"), columns: Vec::new(), at: None };
    let subquery = Box::new(query.clone());
    let relation = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
    let all = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
    let around = query_of(all, vec![TableWithJoins { relation, joins: Vec::new() }]);
    *query = Query { with, order_by, limit_clause, fetch, ..*around };
}
