//! Complexity limits for statements, so that a short statement cannot exhaust the engine's stack or memory or run for
//! hours.
//!
//! The parser limits the text (`session::parse`). Tables are counted in the syntax tree, and operators in the plan, before
//! the engine walks either.

use std::collections::HashMap;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, Expr as SqlExpr, GroupByExpr, Query, SetExpr, Statement as SqlStatement,
    Visit,
};

use crate::error::{Error, ErrorKind};
use crate::session::syntax::{self, Reader};

/// Returns the statement to be run or explained; `None` for DataFusion's own statement types.
fn statement_of(parsed: &Parsed) -> Option<&SqlStatement> {
    match parsed {
        Parsed::Statement(statement) => Some(statement.as_ref()),
        Parsed::Explain(explain) => statement_of(&explain.statement),
        _ => None,
    }
}

/// Rejects statements that reference too many tables. Tables inside a WITH query count for each reference to it: a
/// short statement can double them with every line, and the engine walks them all.
pub(crate) fn tables(statement: &Parsed) -> Result<()> {
    const MOST: u64 = 500;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    match Tables::of(statement).in_all(statement) {
        ..=MOST => Ok(()),
        many => {
            let message = format!("statement too complex: {many} table references, the limit is {MOST}");
            Err(Error::new(ErrorKind::TooLarge, message).advice("split the query with a temporary table").into())
        }
    }
}

/// Rejects a GROUP BY with too many grouping sets: each column of a CUBE doubles their number, and the engine expands
/// them all.
pub(crate) fn groups(statement: &Parsed) -> Result<()> {
    /// Grouping sets of one SELECT.
    const MOST: u64 = 4_096;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    let mut groupings = Groupings(0);
    syntax::read(statement, &mut groupings);
    match groupings.0 {
        ..=MOST => Ok(()),
        many => Err(Error::new(
            ErrorKind::TooLarge,
            format!("GROUP BY expands to {many} grouping sets, the limit is {MOST}"),
        )
        .advice("list them explicitly: GROUPING SETS (…)")
        .into()),
    }
}

/// Largest number of grouping sets of any SELECT seen so far.
struct Groupings(u64);

impl Reader for Groupings {
    fn pre_visit_query(&mut self, query: &Query) {
        self.see(&query.body);
    }
}

impl Groupings {
    fn see(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => {
                let GroupByExpr::Expressions(keys, _) = &select.group_by else { return };
                let groupings = |key: &SqlExpr| match key {
                    SqlExpr::Cube(sets) => 1_u64.checked_shl(u32::try_from(sets.len()).unwrap_or(u32::MAX)),
                    SqlExpr::Rollup(sets) => Some(sets.len() as u64 + 1),
                    SqlExpr::GroupingSets(sets) => Some(sets.len() as u64),
                    _ => Some(1),
                };
                let all = keys.iter().map(|key| groupings(key).unwrap_or(u64::MAX)).fold(1, u64::saturating_mul);
                self.0 = self.0.max(all);
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.see(left);
                self.see(right);
            }
            // A parenthesized query is visited separately.
            _ => {}
        }
    }
}

/// Rejects list types with large fixed sizes, such as `INT[1000][1000]`: every row holds that many values, and
/// constants of such types are built during planning.
pub(crate) fn types(statement: &Parsed) -> Result<()> {
    /// Values per row.
    const MOST: u64 = 4_096;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    let mut largest = 0;
    syntax::expressions(statement, &mut |expression| {
        if let SqlExpr::Cast { data_type, .. } = expression {
            largest = largest.max(slots(data_type));
        }
    });
    match largest {
        ..=MOST => Ok(()),
        many => Err(Error::new(
            ErrorKind::TooLarge,
            format!("list type too large: {many} values per row, the limit is {MOST}"),
        )
        .advice("omit the size of the list")
        .into()),
    }
}

/// Returns the number of values per row of a type.
fn slots(data_type: &SqlType) -> u64 {
    match data_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, size)) => size.unwrap_or(1).saturating_mul(slots(item)),
        SqlType::Array(ArrayElemTypeDef::AngleBracket(item) | ArrayElemTypeDef::Parenthesis(item)) => slots(item),
        _ => 1,
    }
}

/// Number of tables behind each name defined by WITH.
#[derive(Default)]
struct Tables(HashMap<String, u64>);

impl Tables {
    fn of(statement: &SqlStatement) -> Self {
        let mut tables = Self::default();
        syntax::read(statement, &mut tables);
        tables
    }

    fn in_all(&self, part: &impl Visit) -> u64 {
        let mut count = 0_u64;
        syntax::relations(part, &mut |name| {
            let known = match name.0.as_slice() {
                [part] => part.as_ident().and_then(|name| self.0.get(&name.value.to_lowercase())).copied(),
                _ => None,
            };
            count = count.saturating_add(known.unwrap_or(1));
        });
        count
    }
}

impl Reader for Tables {
    // Post-order: inner queries are counted first.
    fn post_visit_query(&mut self, query: &Query) {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            // A query that reads no table counts as one.
            let count = self.in_all(&table.query).max(1);
            let known = self.0.entry(table.alias.name.value.to_lowercase()).or_default();
            *known = count.max(*known);
        }
    }
}

/// Rejects plans that are too large to optimize: views and WITH queries are inlined at each reference, so a short
/// statement can expand to millions of operators.
pub(crate) fn size(plan: &LogicalPlan) -> Result<()> {
    /// Operators of a plan.
    const MOST: usize = 5_000;
    let mut nodes = 0;
    plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(if nodes > MOST { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if nodes <= MOST {
        return Ok(());
    }
    let message = format!("query plan too large: more than {MOST} operators after expanding views and WITH");
    Err(Error::new(ErrorKind::TooLarge, message).advice("split the query with a temporary table").into())
}

/// Rejects subqueries in expressions that are nested too deeply: the optimizer's work doubles with each level. Subqueries in
/// FROM do not count.
pub(crate) fn subqueries(plan: &LogicalPlan) -> Result<()> {
    /// Levels of subqueries.
    const MOST: usize = 8;
    if levels(plan, MOST)? <= MOST {
        return Ok(());
    }
    let message = format!("subqueries nested too deeply: more than {MOST} levels after expanding views and WITH");
    Err(Error::new(ErrorKind::TooLarge, message).advice("use joins, or a temporary table for the inner ones").into())
}

/// Returns the levels of subqueries below the expressions of a plan, `most` and 1 if there are more.
fn levels(plan: &LogicalPlan, most: usize) -> Result<usize> {
    let mut deepest = 0;
    plan.apply(|node| {
        node.apply_subqueries(|subquery| {
            let below = if most == 0 { 0 } else { levels(subquery, most - 1)? };
            deepest = deepest.max(1 + below);
            Ok(if deepest > most { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(deepest)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn tables_are_counted_as_often_as_they_are_named() {
        let doubled = "WITH a AS (SELECT 1 AS x), b AS (SELECT p.x FROM a p JOIN a q ON p.x = q.x), \
                       c AS (SELECT p.x FROM b p JOIN b q ON p.x = q.x) SELECT * FROM (SELECT * FROM c, c AS d) e";
        let quoted = doubled.replace("FROM a p JOIN a q", "FROM \"a\" p JOIN \"a\" q");
        for (sql, count) in
            [("SELECT 1", 0), ("SELECT * FROM t, u JOIN v ON true", 3), (doubled, 14), (quoted.as_str(), 14)]
        {
            let statements = Parser::parse_sql(&GenericDialect {}, sql).expect(sql);
            assert_eq!(Tables::of(&statements[0]).in_all(&statements[0]), count, "{sql}");
        }
    }
}
