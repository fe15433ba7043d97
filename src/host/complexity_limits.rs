//! Complexity limits for statements, so that a short statement cannot exhaust the engine's stack or memory or run for
//! hours.
//!
//! The parser limits the text (`session::parse`). Tables, columns and expressions are counted in the syntax tree, and operators in
//! the plan, before the engine walks either.

use std::collections::HashMap;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, Expr as SqlExpr, GroupByExpr, ObjectName, ObjectNamePart, Query, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement as SqlStatement, TableAlias, TableFactor, TableWithJoins,
    Visit,
};

use crate::error::{Error, ErrorKind};
use crate::session::syntax::{self, Reader};

/// Advice for a statement that does too much at once.
const SPLIT: &str = "split the query with a temporary table";

/// Refuses a statement.
fn too_large(message: String, advice: &str) -> Result<()> {
    Err(Error::new(ErrorKind::TooLarge, message).advice(advice).into())
}

/// Returns the statement to be run or explained; `None` for DataFusion's own statement types.
fn statement_of(parsed: &Parsed) -> Option<&SqlStatement> {
    match parsed {
        Parsed::Statement(statement) => Some(statement.as_ref()),
        Parsed::Explain(explain) => statement_of(&explain.statement),
        _ => None,
    }
}

/// Rejects statements that read too many tables, or have too many expressions. Those inside a WITH query count for each
/// reference to it: a short statement can double them with every line, and the engine walks them all.
pub(crate) fn tables(statement: &Parsed) -> Result<()> {
    const TABLES: u64 = 500;
    const EXPRESSIONS: u64 = 1 << 18;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    let Extent { tables, expressions } = Extents::of(statement).in_all(statement);
    if tables > TABLES {
        let message = format!("statement too complex: {tables} table references, the limit is {TABLES}");
        return too_large(message, SPLIT);
    }
    if expressions > EXPRESSIONS {
        let message = format!("statement too complex: {expressions} expressions, the limit is {EXPRESSIONS}");
        return too_large(message, "load the values into a temporary table");
    }
    Ok(())
}

/// Rejects queries with too many columns, those within others included: the engine looks each name up in all of them. The limit is
/// that of PostgreSQL (`MaxTupleAttributeNumber`).
pub(crate) fn columns(statement: &Parsed) -> Result<()> {
    const MOST: u64 = 1_664;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    let mut columns = Columns::default();
    syntax::read(statement, &mut columns);
    match columns.widest {
        ..=MOST => Ok(()),
        many => {
            let message = format!("too many columns: a query in the statement has up to {many}, the limit is {MOST}");
            too_large(message, "name the columns that are needed")
        }
    }
}

/// Columns of the widest query seen so far, and of those defined by WITH.
#[derive(Default)]
struct Columns {
    widest: u64,
    named: HashMap<String, u64>,
}

impl Reader for Columns {
    fn pre_visit_query(&mut self, query: &Query) {
        self.name(query);
        let mut bodies = vec![query.body.as_ref()];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_ref(), right.as_ref()]),
                body => self.widest = self.widest.max(self.of_body(body)),
            }
        }
    }
}

impl Columns {
    /// Notes the columns of the queries that WITH defines.
    fn name(&mut self, query: &Query) {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let columns = self.of_query(&table.query);
            let known = self.named.entry(table.alias.name.value.to_lowercase()).or_default();
            *known = columns.max(*known);
        }
    }

    fn of_query(&mut self, query: &Query) -> u64 {
        self.name(query);
        self.of_body(&query.body)
    }

    fn of_body(&mut self, mut body: &SetExpr) -> u64 {
        while let SetExpr::SetOperation { left, .. } = body {
            body = left;
        }
        match body {
            SetExpr::Select(select) => {
                let mut factors = Vec::new();
                select.from.iter().for_each(|item| self.add_joined(item, &mut factors));
                let sum = |named: &dyn Fn(&str) -> bool| {
                    let columns = factors.iter().filter(|(name, _)| named(name)).map(|(_, columns)| *columns);
                    columns.fold(0, u64::saturating_add)
                };
                let all = sum(&|_| true);
                let of_item = |item: &SelectItem| match item {
                    SelectItem::Wildcard(_) => all,
                    SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                        let wanted = last_name(name);
                        Some(sum(&|name| name == wanted)).filter(|columns| *columns > 0).unwrap_or(all)
                    }
                    SelectItem::QualifiedWildcard(..) => all,
                    _ => 1,
                };
                select.projection.iter().map(of_item).fold(0, u64::saturating_add)
            }
            SetExpr::Values(values) => values.rows.iter().map(|row| row.len() as u64).max().unwrap_or_default(),
            SetExpr::Query(query) => self.of_query(query),
            _ => TABLE,
        }
    }

    /// Adds the names of joined tables, and their columns.
    fn add_joined(&mut self, item: &TableWithJoins, found: &mut Vec<(String, u64)>) {
        for factor in std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)) {
            let (name, columns) = match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    self.add_joined(table_with_joins, found);
                    continue;
                }
                TableFactor::NestedJoin { table_with_joins, alias } => {
                    let mut inner = Vec::new();
                    self.add_joined(table_with_joins, &mut inner);
                    (alias, inner.into_iter().map(|(_, columns)| columns).fold(0, u64::saturating_add))
                }
                TableFactor::Derived { subquery, alias, .. } => (alias, self.of_query(subquery)),
                TableFactor::Table { name, alias: None, .. } => {
                    found.push((last_name(name), known(&self.named, name).unwrap_or(TABLE)));
                    continue;
                }
                TableFactor::Table { name, alias, .. } => (alias, known(&self.named, name).unwrap_or(TABLE)),
                TableFactor::Function { alias, .. }
                | TableFactor::TableFunction { alias, .. }
                | TableFactor::UNNEST { alias, .. } => (alias, TABLE),
                _ => (&None, TABLE),
            };
            found.push((alias_of(name.as_ref()), columns));
        }
    }
}

/// The name of an alias, in lower case.
fn alias_of(alias: Option<&TableAlias>) -> String {
    alias.map(|alias| alias.name.value.to_lowercase()).unwrap_or_default()
}

/// The last part of a name, in lower case.
fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(ObjectNamePart::as_ident).map(|name| name.value.to_lowercase()).unwrap_or_default()
}

/// Columns of a table, assumed: those of the service have 3 to 35.
const TABLE: u64 = 16;

/// Value known for a name that WITH defines.
fn known<T: Copy>(named: &HashMap<String, T>, name: &ObjectName) -> Option<T> {
    match name.0.as_slice() {
        [part] => part.as_ident().and_then(|name| named.get(&name.value.to_lowercase())).copied(),
        _ => None,
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
        many => too_large(
            format!("GROUP BY expands to {many} grouping sets, the limit is {MOST}"),
            "list them explicitly: GROUPING SETS (…)",
        ),
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
        many => too_large(
            format!("list type too large: {many} values per row, the limit is {MOST}"),
            "omit the size of the list",
        ),
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

/// Size of a part of a statement after each WITH query is put in place of its name.
#[derive(Debug, Default, Clone, Copy)]
struct Extent {
    tables: u64,
    expressions: u64,
}

/// The extent of each query that WITH defines, by its name.
#[derive(Default)]
struct Extents(HashMap<String, Extent>);

impl Extents {
    fn of(statement: &SqlStatement) -> Self {
        let mut extents = Self::default();
        syntax::read(statement, &mut extents);
        extents
    }

    fn in_all(&self, part: &impl Visit) -> Extent {
        let mut all = All { named: &self.0, extent: Extent::default() };
        syntax::read(part, &mut all);
        all.extent
    }
}

impl Reader for Extents {
    // Post-order: inner queries are counted first.
    fn post_visit_query(&mut self, query: &Query) {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let Extent { tables, expressions } = self.in_all(&table.query);
            let known = self.0.entry(table.alias.name.value.to_lowercase()).or_default();
            // A query that reads no table counts as one.
            *known =
                Extent { tables: tables.max(1).max(known.tables), expressions: expressions.max(known.expressions) };
        }
    }
}

/// Adds up an extent.
struct All<'a> {
    named: &'a HashMap<String, Extent>,
    extent: Extent,
}

impl Reader for All<'_> {
    fn pre_visit_table_factor(&mut self, factor: &TableFactor) {
        // Tables have a name, and are counted there.
        let others = !matches!(factor, TableFactor::Table { .. } | TableFactor::NestedJoin { .. });
        self.extent.tables = self.extent.tables.saturating_add(u64::from(others));
    }

    fn visit_relation(&mut self, name: &ObjectName) {
        let Extent { tables, expressions } = known(self.named, name).unwrap_or(Extent { tables: 1, expressions: 0 });
        self.extent.tables = self.extent.tables.saturating_add(tables);
        self.extent.expressions = self.extent.expressions.saturating_add(expressions);
    }

    fn pre_visit_expr(&mut self, _expr: &SqlExpr) {
        self.extent.expressions = self.extent.expressions.saturating_add(1);
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
    too_large(message, SPLIT)
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
    too_large(message, "use joins, or a temporary table for the inner subqueries")
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
    use crate::cases::each;

    fn parsed(sql: &str) -> Parsed {
        let statement = Parser::parse_sql(&GenericDialect {}, sql).expect(sql).remove(0);
        Parsed::Statement(Box::new(statement))
    }

    #[test]
    fn tables_are_counted_as_often_as_they_are_named() {
        let doubled = "WITH a AS (SELECT 1 AS x), b AS (SELECT p.x FROM a p JOIN a q ON p.x = q.x), \
                       c AS (SELECT p.x FROM b p JOIN b q ON p.x = q.x) SELECT * FROM (SELECT * FROM c, c AS d) e";
        let quoted = doubled.replace("FROM a p JOIN a q", "FROM \"a\" p JOIN \"a\" q");
        let cases = [
            ("SELECT 1", 0),
            ("SELECT * FROM t, u JOIN v ON true", 3),
            (doubled, 15),
            (quoted.as_str(), 15),
            ("SELECT 1 FROM (VALUES (1)) a, unnest([1]) b, t", 3),
        ];
        each(cases, |(sql, count)| {
            let statements = Parser::parse_sql(&GenericDialect {}, sql).expect(sql);
            assert_eq!(Extents::of(&statements[0]).in_all(&statements[0]).tables, count, "{sql}");
        });
        let many = (0..600).map(|n| format!("(VALUES (1)) a{n}")).collect::<Vec<_>>().join(", ");
        tables(&parsed(&format!("SELECT 1 FROM {many}"))).expect_err("600 tables");
        let values = vec!["(1)"; 10_000].join(", ");
        let reads = vec!["SELECT * FROM v"; 300].join(" UNION ALL ");
        tables(&parsed(&format!("WITH v AS (VALUES {values}) SELECT * FROM v"))).expect("10,000 values");
        tables(&parsed(&format!("WITH v AS (VALUES {values}) {reads}"))).expect_err("3,000,000 values");
    }

    #[test]
    fn columns_are_counted_before_wildcards_are_expanded() {
        let ones = vec!["1"; 1_664].join(", ");
        let stars = vec!["*"; 150].join(", ");
        let doubled = |levels: usize| {
            let queries = (1..levels).map(|n| format!("c{n} AS (SELECT a.*, b.* FROM c{} a, c{} b)", n - 1, n - 1));
            let queries: Vec<String> = queries.collect();
            format!("WITH c0 AS (SELECT 1 AS x), {} SELECT count(*) FROM c1", queries.join(", "))
        };
        let cases = [
            (format!("SELECT {ones}"), true),
            (format!("SELECT {ones}, 1"), false),
            (format!("SELECT * FROM (VALUES ({ones})) v"), true),
            (format!("VALUES ({ones}, 1)"), false),
            ("SELECT m.*, s.* FROM mentions m JOIN saved_searches s ON m.aid = s.aid".to_owned(), true),
            (format!("SELECT {stars} FROM (VALUES ({ones})) v"), false),
            (format!("SELECT count(*) FROM (SELECT {stars} FROM mentions) v"), false),
            (format!("SELECT 1 UNION ALL SELECT {ones}, 1"), false),
            (format!("SELECT (SELECT count(*) FROM (SELECT {ones}, 1) v)"), false),
            (doubled(10), true),
            (doubled(13), false),
        ];
        each(cases, |(sql, fits)| {
            let shown: String = sql.chars().take(60).collect();
            assert_eq!(columns(&parsed(&sql)).is_ok(), fits, "{shown}");
        });
    }
}
