//! The column `name` of `mentions`, `overview` and `volume`: the name of the saved search, which only the list has.
//!
//! ```text
//! SELECT name, count(*) FROM mentions m GROUP BY name
//!   ─▶ SELECT name, count(*)
//!      FROM (SELECT t.*, s.name FROM mentions t LEFT JOIN saved_searches s ON s.aid = t.aid) m GROUP BY name
//! ```
//!
//! It works like a system column of PostgreSQL: `*` does not include it, and a column of the same name in another table of
//! FROM takes precedence. So a statement requests the list only if it names the column.
//!
//! Invariant: if a statement has a meaning without this column, it keeps that meaning, with one exception: in a subquery
//! over these tables alone, `name` is this column, not one of the outer query.

use std::collections::{HashMap, HashSet};

use datafusion::common::{SchemaError, TableReference};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    OrderBy, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor,
    TableWithJoins, WildcardAdditionalOptions, With,
};

use crate::session::nodes::{normalized, query_of, quoted, table_of};
use crate::session::syntax::{self, Editor, Reader};
use crate::table::ApiTable;

const NAME: &str = "name";
const LIST: &str = "saved_searches";

/// True if the engine refused a statement because no table has a column `name`.
pub(in crate::session) fn lacks_name(error: &DataFusionError) -> bool {
    let DataFusionError::SchemaError(error, _) = error.find_root() else { return false };
    matches!(error.as_ref(), SchemaError::FieldNotFound { field, .. } if field.name == NAME)
}

/// True for a statement that uses the name with its table, which the engine may miss only after planning, or in a subquery, where
/// the engine would take a column of the query around it.
pub(in crate::session) fn uses_name(statement: &Statement) -> bool {
    let mut uses = Uses::default();
    syntax::read_statement(statement, &mut uses);
    uses.nested || !uses.qualifiers.is_empty()
}

/// The statement with the name of the saved search where it is used; `None` if no table of the statement has one. `alone`: only
/// if FROM has no other tables, whose columns would go first.
///
/// # Errors
/// Those of the catalogs.
pub(in crate::session) async fn with_search_names(
    state: &SessionState,
    mut statement: Statement,
    alone: bool,
) -> Result<Option<Statement>> {
    let mut relations = Relations::default();
    syntax::read_statement(&statement, &mut relations);
    let mut lists = HashMap::new();
    for relation in relations.names {
        if let Some(list) = list_beside(state, &relation).await? {
            lists.insert(relation, list);
        }
    }
    let mut joins = Joins { lists, alone, changed: false };
    syntax::edit_statement(&mut statement, &mut joins);
    Ok(joins.changed.then_some(statement))
}

/// The table of saved searches in the schema of a table that has an aid but no name; `None` for other tables.
async fn list_beside(state: &SessionState, relation: &ObjectName) -> Result<Option<ObjectName>> {
    let Some(parts) = relation.0.iter().map(ObjectNamePart::as_ident).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let reference = match &parts.iter().map(|part| normalized(part)).collect::<Vec<_>>()[..] {
        [table] => TableReference::bare(table.as_str()),
        [schema, table] => TableReference::partial(schema.as_str(), table.as_str()),
        [catalog, schema, table] => TableReference::full(catalog.as_str(), schema.as_str(), table.as_str()),
        _ => return Ok(None),
    };
    let Ok(schema) = state.schema_for_ref(reference.clone()) else { return Ok(None) };
    let Some(table) = schema.table(reference.table()).await? else { return Ok(None) };
    let columns = table.schema();
    let lacks = columns.field_with_name("aid").is_ok() && columns.field_with_name(NAME).is_err();
    if !lacks || table.downcast_ref::<ApiTable>().is_none() || !schema.table_exist(LIST) {
        return Ok(None);
    }
    let mut list = relation.clone();
    list.0.pop();
    list.0.push(ObjectNamePart::Identifier(quoted(LIST)));
    Ok(Some(list))
}

/// Names of the tables of a statement, without those of its common table expressions.
#[derive(Default)]
struct Relations {
    names: HashSet<ObjectName>,
}

impl Reader for Relations {
    fn visit_relation(&mut self, name: &ObjectName) {
        self.names.insert(name.clone());
    }

    fn post_visit_query(&mut self, query: &Query) {
        if let Some(With { cte_tables, .. }) = &query.with {
            let names = cte_tables.iter().map(|cte| normalized(&cte.alias.name)).collect::<HashSet<_>>();
            self.names.retain(
                |name| !matches!(&name.0[..], [ObjectNamePart::Identifier(only)] if names.contains(&normalized(only))),
            );
        }
    }
}

/// Joins the list to the tables whose name is used.
struct Joins {
    /// The table of saved searches beside each table that can have the column.
    lists: HashMap<ObjectName, ObjectName>,
    alone: bool,
    changed: bool,
}

impl Editor for Joins {
    fn pre_visit_query(&mut self, query: &mut Query) {
        let Query { body, order_by, .. } = query;
        self.set(body, order_by.as_ref());
    }
}

impl Joins {
    fn set(&mut self, body: &mut SetExpr, order_by: Option<&OrderBy>) {
        match body {
            SetExpr::Select(select) => self.select(select, order_by),
            SetExpr::SetOperation { left, right, .. } => {
                self.set(left, None);
                self.set(right, None);
            }
            // Other queries are visited by themselves.
            _ => {}
        }
    }

    fn select(&mut self, select: &mut Select, order_by: Option<&OrderBy>) {
        let mut uses = Uses::default();
        syntax::read(&*select, &mut uses);
        if let Some(order_by) = order_by {
            syntax::read(order_by, &mut uses);
        }
        let mut factors = Vec::new();
        select.from.iter_mut().for_each(|item| factors_of(item, &mut factors));
        let alone = factors.len() == 1;
        let every = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
        // Of two columns, `*` could not leave out the right one.
        if every && !alone {
            return;
        }
        let is_result =
            |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if normalized(alias) == NAME);
        let mut bare = uses.bare && !select.projection.iter().any(is_result);
        bare &= factors.iter().all(|factor| match factor {
            TableFactor::Table { name, args: None, .. } if self.alone => self.lists.contains_key(name),
            TableFactor::Table { name, .. } => !is_list(name),
            _ => !self.alone,
        });
        let mut joined = HashSet::new();
        for factor in factors {
            let Some(known_as) = known_as(factor) else { continue };
            if (bare || uses.qualifiers.contains(&known_as)) && self.join(factor) {
                // One of them is enough.
                bare = false;
                joined.insert(known_as);
            }
        }
        self.changed |= !joined.is_empty();
        for item in &mut select.projection {
            match item {
                SelectItem::Wildcard(options) if !joined.is_empty() => leave_out(options),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if last(name).is_some_and(|name| joined.contains(&name)) =>
                {
                    leave_out(options);
                }
                _ => {}
            }
        }
    }

    /// Replaces a table by its join with the list; false for a table that cannot have the column.
    fn join(&self, factor: &mut TableFactor) -> bool {
        let TableFactor::Table { name, alias, args: None, .. } = &*factor else { return false };
        let Some(list) = self.lists.get(name) else { return false };
        let known_as = match alias {
            Some(TableAlias { name, columns, .. }) if columns.is_empty() => name.clone(),
            Some(_) => return false,
            None => match name.0.last().and_then(ObjectNamePart::as_ident) {
                Some(name) => name.clone(),
                None => return false,
            },
        };
        let column = |table: &str, name: &str| Expr::CompoundIdentifier(vec![quoted(table), quoted(name)]);
        let listed = table_of(list.clone(), Some(alias_of(quoted("s"))));
        let on = Expr::BinaryOp {
            left: Box::new(column("s", "aid")),
            op: BinaryOperator::Eq,
            right: Box::new(column("t", "aid")),
        };
        let mut table = factor.clone();
        if let TableFactor::Table { alias, .. } = &mut table {
            *alias = Some(alias_of(quoted("t")));
        }
        let join = Join { relation: listed, global: false, join_operator: JoinOperator::Left(JoinConstraint::On(on)) };
        let every = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![quoted("t")]));
        let items = vec![
            SelectItem::QualifiedWildcard(every, WildcardAdditionalOptions::default()),
            SelectItem::UnnamedExpr(column("s", NAME)),
        ];
        *factor = TableFactor::Derived {
            lateral: false,
            subquery: query_of(items, vec![TableWithJoins { relation: table, joins: vec![join] }]),
            alias: Some(alias_of(known_as)),
            sample: None,
        };
        true
    }
}

fn alias_of(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// Leaves the name out of `*`, unless other columns are left out already.
fn leave_out(options: &mut WildcardAdditionalOptions) {
    if options.opt_exclude.is_none() && options.opt_except.is_none() {
        options.opt_exclude = Some(ExcludeSelectItem::Single(quoted(NAME).into()));
    }
}

fn is_list(name: &ObjectName) -> bool {
    last(name).as_deref() == Some(LIST)
}

/// Last part of a qualified name.
fn last(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(ObjectNamePart::as_ident).map(normalized)
}

/// Name of an item of FROM in the expressions of its SELECT.
fn known_as(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } => Some(normalized(&alias.name)),
        TableFactor::Table { name, .. } => last(name),
        _ => None,
    }
}

fn factors_of<'a>(item: &'a mut TableWithJoins, factors: &mut Vec<&'a mut TableFactor>) {
    let relations = std::iter::once(&mut item.relation).chain(item.joins.iter_mut().map(|join| &mut join.relation));
    for factor in relations {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => factors_of(table_with_joins, factors),
            factor => factors.push(factor),
        }
    }
}

/// Uses of the column in a SELECT, or in a statement.
#[derive(Default)]
struct Uses {
    /// Number of queries around the current expression, within what is read.
    depth: usize,
    /// Without a table, outside of queries.
    bare: bool,
    /// Without a table, in a query within another one.
    nested: bool,
    /// Tables that it is qualified with.
    qualifiers: HashSet<String>,
}

impl Reader for Uses {
    fn pre_visit_query(&mut self, _query: &Query) {
        self.depth += 1;
    }

    fn post_visit_query(&mut self, _query: &Query) {
        self.depth -= 1;
    }

    fn pre_visit_expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Identifier(name) if normalized(name) == NAME => {
                self.bare |= self.depth == 0;
                self.nested |= self.depth > 1;
            }
            Expr::CompoundIdentifier(parts) => {
                if let [.., table, name] = &parts[..]
                    && normalized(name) == NAME
                {
                    self.qualifiers.insert(normalized(table));
                }
            }
            _ => {}
        }
    }
}
