//! Tables of WITH in a subquery that have the name of one outside.
//!
//! ```text
//! WITH t AS (…) SELECT … FROM t, (WITH t AS (SELECT …) SELECT x FROM t) q
//!   ─▶ WITH t AS (…) SELECT … FROM t, (WITH t__1 AS (SELECT …) SELECT x FROM t__1 AS t) q
//! ```
//!
//! The inner one hides the outer one. The engine refuses the second name.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, TableAlias, TableFactor};

use crate::session::nodes::normalized;
use crate::session::syntax::{self, Editor};

/// The statement, in which no table of WITH has the name of one around it.
pub(in crate::session) fn with_different_names(mut statement: Statement) -> Statement {
    syntax::edit_statement(&mut statement, &mut Names::default());
    statement
}

/// Names of the tables of WITH around a query.
#[derive(Default)]
struct Names {
    /// Those of each query around, outer ones first.
    around: Vec<Vec<String>>,
    given: usize,
}

impl Editor for Names {
    fn pre_visit_query(&mut self, query: &mut Query) {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.around.push(tables.map(|table| normalized(&table.alias.name)).collect());
    }

    fn post_visit_query(&mut self, query: &mut Query) {
        let own = self.around.pop().unwrap_or_default();
        for (at, name) in own.into_iter().enumerate() {
            if !self.around.iter().flatten().any(|other| *other == name) {
                continue;
            }
            self.given += 1;
            let to = Ident::with_quote('"', format!("{name}__{}", self.given));
            let mut references = References { name, to: &to };
            let Some(mut with) = query.with.take() else { continue };
            with.cte_tables[at].alias.name = to.clone();
            // A table is known to those after it, and to itself if it is recursive.
            let first = if with.recursive { at } else { at + 1 };
            with.cte_tables[first..].iter_mut().for_each(|table| syntax::edit(&mut table.query, &mut references));
            syntax::edit(query, &mut references);
            query.with = Some(with);
        }
    }
}

/// Gives a table another name wherever it is read, and its own one as an alias.
struct References<'a> {
    name: String,
    to: &'a Ident,
}

impl Editor for References<'_> {
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
        let [part] = name.0.as_slice() else { return };
        let Some(written) = part.as_ident().filter(|written| normalized(written) == self.name) else { return };
        let own = written.clone();
        alias.get_or_insert_with(|| TableAlias { explicit: true, name: own, columns: Vec::new(), at: None });
        *name = ObjectName::from(vec![self.to.clone()]);
    }
}
