//! Unqualified columns that several relations have.
//!
//! The engine refuses them, with two exceptions:
//!
//! - WHERE also has the same column of each relation, as in `a.y > 0 AND b.y > 0 AND y = 4`. The engine then takes `y` for the key
//!   of a join with USING, and compares that of the first relation.
//! - A query around the subquery also has a column of this name. The engine then takes that one.

use std::collections::BTreeSet;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr as Planned, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, JoinConstraint, Query, Select, TableFactor, TableWithJoins};

use super::merged_columns::constraint_of;
use crate::error::{Error, ErrorKind};
use crate::session::nodes::normalized;
use crate::session::syntax::{self, Reader};

/// The error for an ambiguous column of WHERE.
pub(in crate::session) fn ambiguous_name(select: &Select) -> Option<Error> {
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
        (of.len() > 1).then(|| ambiguous(name, &of))
    })
}

fn ambiguous(name: &str, of: &[String]) -> Error {
    Error::new(ErrorKind::Query, format!("column `{name}` is ambiguous")).advice(format!("write {}", of.join(" or ")))
}

/// Rejects a plan with a column of an outer query that the statement does not name so: it names one that several relations of
/// the subquery have.
///
/// # Errors
/// [`ErrorKind::Query`] with the columns of the subquery's relations.
pub(in crate::session) fn check_outer_names(statement: &Statement, plan: &LogicalPlan) -> Result<()> {
    let mut passed = Passed::default();
    passed.read(plan, &[])?;
    if passed.columns.is_empty() {
        return Ok(());
    }
    let mut written = Written::default();
    syntax::read_statement(statement, &mut written);
    let found = passed.columns.into_iter().find(|PassedColumn { name, of, directly }| {
        let is_written = |WrittenSelect { names, within, relations }: &WrittenSelect| {
            let known = of.iter().all(|relation| relations.names.contains(relation));
            let alone = names.alone.contains(name) || (!directly && within.alone.contains(name));
            known && alone && !relations.natural && !relations.merged.contains(name)
        };
        written.selects.iter().any(is_written)
    });
    match found {
        Some(PassedColumn { name, of, .. }) => {
            let of: Vec<String> = of.iter().map(|relation| format!("{relation}.{name}")).collect();
            Err(ambiguous(&name, &of).into())
        }
        None => Ok(()),
    }
}

/// An outer column, and the relations of a subquery between it and its query that have a column of this name as well.
struct PassedColumn {
    name: String,
    of: Vec<String>,
    /// Set if the subquery refers to the column itself, rather than a subquery within it.
    directly: bool,
}

#[derive(Default)]
struct Passed {
    columns: Vec<PassedColumn>,
}

impl Passed {
    /// `scopes`: the relations of each subquery around the plan, as the schemas of their joins, the innermost last.
    fn read(&mut self, plan: &LogicalPlan, scopes: &[Vec<DFSchemaRef>]) -> Result<()> {
        plan.apply_expressions(|expr| {
            expr.apply(|part| {
                match part {
                    Planned::OuterReferenceColumn(_, column) => self.pass(column, scopes),
                    Planned::ScalarSubquery(subquery)
                    | Planned::Exists(Exists { subquery, .. })
                    | Planned::InSubquery(InSubquery { subquery, .. })
                    | Planned::SetComparison(SetComparison { subquery, .. }) => {
                        self.read(&subquery.subquery, &[scopes, &[scope_of(&subquery.subquery)]].concat())?;
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        for input in plan.inputs() {
            match plan {
                LogicalPlan::Subquery(_) => self.read(input, &[scopes, &[scope_of(input)]].concat())?,
                // A derived table does not see the relations beside it.
                LogicalPlan::SubqueryAlias(_) if !scopes.is_empty() => {
                    self.read(input, &[&scopes[..scopes.len() - 1], &[scope_of(input)]].concat())?;
                }
                _ => self.read(input, scopes)?,
            }
        }
        Ok(())
    }

    /// Adds a column for each subquery between it and its query that has several columns of its name.
    fn pass(&mut self, column: &Column, scopes: &[Vec<DFSchemaRef>]) {
        for (level, scope) in scopes.iter().rev().enumerate() {
            if let Some(of) = scope.iter().find_map(|schema| relations_with(schema, &column.name)) {
                self.columns.push(PassedColumn { name: column.name.clone(), of, directly: level == 0 });
            } else if level > 0 && scope.iter().any(|schema| schema.has_column(column)) {
                return;
            }
        }
    }
}

/// Schemas of the joins and relations of a subquery.
fn scope_of(plan: &LogicalPlan) -> Vec<DFSchemaRef> {
    let mut schemas = vec![DFSchemaRef::clone(plan.schema())];
    if !matches!(plan, LogicalPlan::SubqueryAlias(_) | LogicalPlan::TableScan(_) | LogicalPlan::Subquery(_)) {
        plan.inputs().into_iter().for_each(|input| schemas.extend(scope_of(input)));
    }
    schemas
}

/// The relations that have a column of this name, if there are several.
fn relations_with(schema: &DFSchema, name: &str) -> Option<Vec<String>> {
    let relations = schema.qualified_fields_with_unqualified_name(name).into_iter();
    let relations: Vec<String> = relations.filter_map(|(relation, _)| Some(relation?.table().to_owned())).collect();
    (relations.len() > 1).then_some(relations)
}

/// Names in a SELECT.
struct WrittenSelect {
    names: Names,
    /// Names in its subqueries.
    within: Names,
    relations: Relations,
}

#[derive(Default)]
struct Written {
    selects: Vec<WrittenSelect>,
}

impl Reader for Written {
    fn pre_visit_select(&mut self, select: &Select) {
        let (mut names, mut relations) = (Names::default(), Relations::default());
        let mut within = Names { nested: true, ..Names::default() };
        syntax::read(select, &mut names);
        syntax::read(select, &mut within);
        select.from.iter().for_each(|item| relations.read(item));
        self.selects.push(WrittenSelect { names, within, relations });
    }
}

/// Columns of an expression, without those of its subqueries, or theirs alone.
#[derive(Default)]
struct Names {
    nested: bool,
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
            _ if (self.depth > 0) != self.nested => {}
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
