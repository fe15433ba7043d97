//! Unqualified columns of WHERE that several relations have.
//!
//! The engine refuses them, except if WHERE also has the same column of each relation, as in `a.y > 0 AND b.y > 0 AND y = 4`. It
//! then takes `y` for the key of a join with USING, and compares that of the first relation.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{Expr, JoinConstraint, Query, Select, TableFactor, TableWithJoins};

use super::merged_columns::constraint_of;
use super::nodes::normalized;
use super::syntax::{self, Reader};
use crate::error::{Error, ErrorKind};

/// The error for an ambiguous column of WHERE.
pub(super) fn ambiguous_name(select: &Select) -> Option<Error> {
    let mut names = Names::default();
    syntax::read(select.selection.as_ref()?, &mut names);
    let mut relations = Relations::default();
    select.from.iter().for_each(|item| relations.read(item));
    if relations.natural {
        return None;
    }
    names.alone.iter().filter(|name| !relations.merged.contains(*name)).find_map(|name| {
        let of =
            names.qualified.iter().filter(|(relation, column)| column == name && relations.names.contains(relation));
        let of: Vec<String> = of.map(|(relation, column)| format!("{relation}.{column}")).collect();
        (of.len() > 1).then(|| {
            let error = Error::new(ErrorKind::Query, format!("column `{name}` is ambiguous"));
            error.advice(format!("write {}", of.join(" or ")))
        })
    })
}

/// Columns of an expression, without those of its subqueries.
#[derive(Default)]
struct Names {
    alone: BTreeSet<String>,
    /// Relation and column.
    qualified: BTreeSet<(String, String)>,
    /// Number of subqueries around the node.
    depth: usize,
}

impl Reader for Names {
    fn pre_visit_query(&mut self, _query: &Query) {
        self.depth += 1;
    }

    fn post_visit_query(&mut self, _query: &Query) {
        self.depth -= 1;
    }

    fn pre_visit_expr(&mut self, expr: &Expr) {
        match expr {
            _ if self.depth > 0 => {}
            Expr::Identifier(name) => {
                self.alone.insert(normalized(name));
            }
            Expr::CompoundIdentifier(parts) => {
                if let [.., relation, column] = parts.as_slice() {
                    self.qualified.insert((normalized(relation), normalized(column)));
                }
            }
            _ => {}
        }
    }
}

/// Names of the relations of FROM, and of the columns that joins merge.
#[derive(Default)]
struct Relations {
    names: BTreeSet<String>,
    merged: BTreeSet<String>,
    /// Set if there is a NATURAL join, which merges columns that only the tables name.
    natural: bool,
}

impl Relations {
    fn read(&mut self, item: &TableWithJoins) {
        self.factor(&item.relation);
        for join in &item.joins {
            self.factor(&join.relation);
            match constraint_of(&join.join_operator) {
                Some((_, JoinConstraint::Using(columns))) => {
                    let last = columns.iter().filter_map(|column| column.0.last()?.as_ident());
                    self.merged.extend(last.map(normalized));
                }
                Some((_, JoinConstraint::Natural)) => self.natural = true,
                _ => {}
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, .. } => (name.0.last().and_then(|part| part.as_ident()), alias),
            TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => (None, alias),
            TableFactor::NestedJoin { table_with_joins, alias: None } => return self.read(table_with_joins),
            TableFactor::NestedJoin { alias, .. } => (None, alias),
            _ => return,
        };
        self.names.extend(alias.as_ref().map(|alias| &alias.name).or(name).map(normalized));
    }
}
