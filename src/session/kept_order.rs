//! The order of a derived table, a table of WITH or a view whose rows a statement returns as they come.
//!
//! `SELECT * FROM (SELECT … ORDER BY reach DESC) q LIMIT 10` is what tools make of a statement that they wrap. The standard leaves
//! its order open, and the engine removes a sort within FROM that has no LIMIT of its own, so that any ten rows would come.
//! PostgreSQL and DuckDB keep the sort. So do statements that neither group, join nor sort such rows here.

use std::borrow::Cow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Cte, Expr, GroupByExpr, Query, Select, SetExpr, TableFactor};

use super::syntax::{self, Reader};

/// The state to plan a statement with.
pub(super) fn with_kept_order<'a>(state: &'a SessionState, statement: &Statement) -> Cow<'a, SessionState> {
    let mut queries = Queries { state, number: 0, outermost: false, is_table: false };
    syntax::read_statement(statement, &mut queries);
    // A table may be a view, whose sort is the only one.
    if !(queries.outermost || (queries.is_table && queries.number == 1)) {
        return Cow::Borrowed(state);
    }
    let mut state = state.clone();
    state.config_mut().options_mut().sql_parser.enable_subquery_sort_elimination = false;
    Cow::Owned(state)
}

/// Looks at the outermost query of a statement.
struct Queries<'a> {
    state: &'a SessionState,
    number: usize,
    /// Set if the outermost query passes the rows of a sorted one on.
    outermost: bool,
    /// Set if it passes the rows of a table on that is not one of WITH.
    is_table: bool,
}

impl Reader for Queries<'_> {
    fn pre_visit_query(&mut self, query: &Query) {
        self.number += 1;
        if self.number > 1 {
            return;
        }
        let mut ctes: Vec<&Cte> = Vec::new();
        let mut inner = query;
        loop {
            ctes.extend(inner.with.iter().flat_map(|with| &with.cte_tables));
            let SetExpr::Select(select) = inner.body.as_ref() else { return };
            if inner.order_by.is_some() {
                // The outermost one is sorted in any case.
                self.outermost = !std::ptr::eq(inner, query) && inner.limit_clause.is_none();
                return;
            }
            if !self.passes_rows_on(select) || (inner.limit_clause.is_some() && !std::ptr::eq(inner, query)) {
                return;
            }
            inner = match select.from.first().map(|item| &item.relation) {
                Some(TableFactor::Derived { lateral: false, subquery, .. }) => subquery,
                Some(TableFactor::Table { name, args: None, .. }) => {
                    let name = name.to_string();
                    // Inner names go first, and a recursive table refers to itself.
                    let known = ctes.iter().rposition(|cte| cte.alias.name.value.eq_ignore_ascii_case(&name));
                    let Some(at) = known else {
                        self.is_table = true;
                        return;
                    };
                    let cte = ctes[at];
                    ctes.truncate(at);
                    &cte.query
                }
                _ => return,
            };
        }
    }
}

impl Queries<'_> {
    fn passes_rows_on(&self, select: &Select) -> bool {
        let [relation] = select.from.as_slice() else { return false };
        let groups = match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(keys, modifiers) => !keys.is_empty() || !modifiers.is_empty(),
        };
        let mut aggregates = false;
        syntax::expressions(&select.projection, &mut |part| {
            if let Expr::Function(function) = part {
                let name = function.name.to_string().to_lowercase();
                aggregates |= function.over.is_none() && self.state.aggregate_functions().contains_key(&name);
            }
        });
        relation.joins.is_empty() && !groups && !aggregates && select.having.is_none() && select.distinct.is_none()
    }
}
