//! What a statement may be at most, lest a short text costs the engine its stack, its memory, or hours.
//!
//! Depth is told by tokens, before anything is parsed: what was parsed has to be dropped again, by recursion. Tables are counted
//! in what was parsed, operators in the plan, each before the engine walks them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, Expr as SqlExpr, GroupByExpr, Query, SetExpr, Statement as SqlStatement,
    Visit, Visitor, visit_expressions, visit_relations,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, ErrorKind};

/// Refuses what would be nested too deeply: expressions are walked by recursion, and a chain of operators is as deep as it
/// is long. The parser has a limit of its own for parentheses.
pub(super) fn depth(sql: &str) -> Result<()> {
    /// Operators that the stack of a thread has room for, with a margin.
    const MOST: usize = 1_000;
    // What cannot be read is told by the parser.
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().unwrap_or_default();
    let is_operator = |token: &Token| match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::JOIN
                | Keyword::LIKE
                | Keyword::IS
                | Keyword::AT
                | Keyword::WHEN
        ),
        Token::Whitespace(_) | Token::Comma | Token::Period | Token::LParen | Token::RParen | Token::EOF => false,
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::SemiColon => false,
        _ => true,
    };
    match tokens.iter().filter(|token| is_operator(token)).count() {
        ..=MOST => Ok(()),
        many => Err(Error::new(ErrorKind::TooLarge, format!("the statement has {many} operators, {MOST} are allowed"))
            .advice("say IN (…) instead of many OR, or bring the values along in a table")
            .into()),
    }
}

/// The statement that is to be run or explained; `None` for one of the engine's own.
fn statement_of(parsed: &Parsed) -> Option<&SqlStatement> {
    match parsed {
        Parsed::Statement(statement) => Some(statement.as_ref()),
        Parsed::Explain(explain) => statement_of(&explain.statement),
        _ => None,
    }
}

/// Refuses what names too many tables, those of WITH counted as often as they are named: a short text can double them line by
/// line, and the engine walks them all.
pub(super) fn tables(statement: &Parsed) -> Result<()> {
    /// Each joins another.
    const MOST: u64 = 500;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    match Tables::of(statement).in_all(statement) {
        ..=MOST => Ok(()),
        many => {
            Err(Error::new(ErrorKind::TooLarge, format!("the statement comes to {many} tables, {MOST} are allowed"))
                .advice("make a temporary table of a part")
                .into())
        }
    }
}

/// Refuses a GROUP BY that stands for too many: each column of a CUBE doubles their number, and the engine writes them all out.
pub(super) fn groups(statement: &Parsed) -> Result<()> {
    /// Groupings of one SELECT.
    const MOST: u64 = 4_096;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    let mut groupings = Groupings(0);
    let _ = Visit::visit(statement, &mut groupings);
    match groupings.0 {
        ..=MOST => Ok(()),
        many => Err(Error::new(ErrorKind::TooLarge, format!("GROUP BY comes to {many} groupings, {MOST} are allowed"))
            .advice("name the groupings: GROUPING SETS (…)")
            .into()),
    }
}

/// The most groupings of a SELECT.
struct Groupings(u64);

impl Visitor for Groupings {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.see(&query.body);
        ControlFlow::Continue(())
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
            // One in parentheses is visited by itself.
            _ => {}
        }
    }
}

/// Refuses types with large sizes, such as `INT[1000][1000]`: each row has as many values, and constants of such types are
/// made while a statement is read.
pub(super) fn types(statement: &Parsed) -> Result<()> {
    /// Values of a row.
    const MOST: u64 = 4_096;
    let Some(statement) = statement_of(statement) else { return Ok(()) };
    let mut largest = 0;
    let _ = visit_expressions(statement, |expression| {
        if let SqlExpr::Cast { data_type, .. } = expression {
            largest = largest.max(slots(data_type));
        }
        ControlFlow::<()>::Continue(())
    });
    match largest {
        ..=MOST => Ok(()),
        many => Err(Error::new(ErrorKind::TooLarge, format!("a type has {many} values a row, {MOST} are allowed"))
            .advice("leave the size of the list out")
            .into()),
    }
}

/// Values of a row of this type.
fn slots(data_type: &SqlType) -> u64 {
    match data_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, size)) => size.unwrap_or(1).saturating_mul(slots(item)),
        SqlType::Array(ArrayElemTypeDef::AngleBracket(item) | ArrayElemTypeDef::Parenthesis(item)) => slots(item),
        _ => 1,
    }
}

/// How many tables each name of a WITH stands for.
#[derive(Default)]
struct Tables(HashMap<String, u64>);

impl Tables {
    fn of(statement: &SqlStatement) -> Self {
        let mut tables = Self::default();
        let _ = Visit::visit(statement, &mut tables);
        tables
    }

    fn in_all(&self, part: &impl Visit) -> u64 {
        let mut count = 0_u64;
        let _ = visit_relations(part, |name| {
            let known = self.0.get(&name.to_string().to_lowercase()).copied();
            count = count.saturating_add(known.unwrap_or(1));
            ControlFlow::<()>::Continue(())
        });
        count
    }
}

impl Visitor for Tables {
    type Break = ();

    // What is inside comes first.
    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            // One that reads nothing is one of them itself.
            let count = self.in_all(&table.query).max(1);
            let known = self.0.entry(table.alias.name.value.to_lowercase()).or_default();
            *known = count.max(*known);
        }
        ControlFlow::Continue(())
    }
}

/// Refuses a plan that is too large to be optimized: views and WITH stand for their queries wherever they are named, so that
/// a short text can have millions.
pub(super) fn size(plan: &LogicalPlan) -> Result<()> {
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
    let message = format!("the statement comes to more than {MOST} operators, views and WITH written out");
    Err(Error::new(ErrorKind::TooLarge, message).advice("make a temporary table of a part").into())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn tables_are_counted_as_often_as_they_are_named() {
        let doubled = "WITH a AS (SELECT 1 AS x), b AS (SELECT p.x FROM a p JOIN a q ON p.x = q.x), \
                       c AS (SELECT p.x FROM b p JOIN b q ON p.x = q.x) SELECT * FROM (SELECT * FROM c, c AS d) e";
        for (sql, count) in [("SELECT 1", 0), ("SELECT * FROM t, u JOIN v ON true", 3), (doubled, 14)] {
            let statements = Parser::parse_sql(&GenericDialect {}, sql).expect(sql);
            assert_eq!(Tables::of(&statements[0]).in_all(&statements[0]), count, "{sql}");
        }
    }
}
