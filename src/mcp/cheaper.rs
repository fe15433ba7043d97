//! Cheaper alternatives to a statement, which return less and need fewer requests.
//!
//! An alternative is derived from the syntax of the statement alone, and then planned. If it is invalid or not cheaper, it
//! is dropped.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, GroupByExpr, Query, Select, SetExpr, Statement, Value};
use datafusion::sql::sqlparser::dialect::GenericDialect;

use crate::session::{literal, parse_trees, syntax};

/// A cheaper form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// A description of the result that it returns instead.
    pub(super) answers: String,
    pub(super) sql: String,
}

/// Facts about the statement and the service.
#[derive(Debug, Clone, Default)]
pub(super) struct Hints {
    /// The statement aggregates or removes duplicates: its number of rows is not that of what it reads.
    pub(super) aggregates: bool,
    /// Column of the time window, column of the time, and a short window.
    pub(super) window: Option<(String, String, String)>,
    /// Column of the saved search, an aid and its name.
    pub(super) search: Option<(String, String, String)>,
}

/// Bytes of a statement that is worth repeating.
const LONGEST: usize = 4 << 10;

/// Rows of the form with a limit.
const ROWS: u64 = 20;

/// Derives the cheaper forms of a statement. None are derived from what is not a query, and from a long one.
pub(super) fn forms(sql: &str, hints: &Hints) -> Vec<Form> {
    let Some(query) = Some(sql).filter(|sql| sql.len() <= LONGEST).and_then(parse) else { return Vec::new() };
    let mut forms = Vec::new();
    let mut add = |answers: &str, form: Option<Query>| {
        forms.extend(form.map(|form| Form { answers: answers.to_owned(), sql: form.to_string() }));
    };
    if !hints.aggregates {
        add("the number of rows", counted(&query));
        add(&format!("any {ROWS} rows, or the first if it is sorted"), limited(&query));
    }
    if let Some((period, time, short)) = &hints.window {
        add(&format!("a shorter time: {short}"), narrowed(&query, period, time, short));
    }
    if let Some((column, aid, name)) = &hints.search {
        add(&format!("one saved search: {name}"), of_one(&query, column, aid));
    }
    forms
}

fn parse(sql: &str) -> Option<Query> {
    let mut statements = parse_trees(sql, GenericDialect {}).ok()?;
    match (statements.pop()?, statements.len()) {
        (Statement::Query(query), 0) => Some(*query),
        _ => None,
    }
}

/// The query with another body, if it is a single SELECT.
fn with_select(query: &Query, change: impl FnOnce(&mut Select) -> Option<()>) -> Option<Query> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    change(select)?;
    Some(query)
}

fn counted(query: &Query) -> Option<Query> {
    let count = parse("SELECT count(*)")?;
    let SetExpr::Select(count) = *count.body else { return None };
    let counted = with_select(query, |select| {
        let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
        let plain = select.distinct.is_none() && select.having.is_none() && select.qualify.is_none() && !grouped;
        plain.then(|| select.projection = count.projection)
    })?;
    Some(Query { order_by: None, limit_clause: None, fetch: None, ..counted })
}

fn limited(query: &Query) -> Option<Query> {
    let limit = parse(&format!("SELECT 1 LIMIT {ROWS}"))?.limit_clause;
    (query.limit_clause.is_none() && query.fetch.is_none()).then(|| Query { limit_clause: limit, ..query.clone() })
}

/// The query over a shorter window. A range of times is left as it is: the caller knows better which part matters.
fn narrowed(query: &Query, period: &str, time: &str, short: &str) -> Option<Query> {
    with_select(query, |select| {
        let Some(selection) = &mut select.selection else {
            select.selection = Some(equals(period, short)?);
            return Some(());
        };
        if mentions(selection, time) {
            return None;
        }
        if !mentions(selection, period) {
            return and(select, equals(period, short)?);
        }
        let mut changed = false;
        syntax::edit_expressions(selection, &mut |expression| {
            if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expression
                && is_column(left, period)
                && let Expr::Value(value) = right.as_mut()
                && let Value::SingleQuotedString(words) = &mut value.value
                && words != short
            {
                short.clone_into(words);
                changed = true;
            }
        });
        changed.then_some(())
    })
}

fn of_one(query: &Query, column: &str, aid: &str) -> Option<Query> {
    with_select(query, |select| match &select.selection {
        Some(selection) if mentions(selection, column) => None,
        _ => and(select, equals(column, aid)?),
    })
}

/// Adds a condition.
fn and(select: &mut Select, condition: Expr) -> Option<()> {
    select.selection = Some(match select.selection.take() {
        None => condition,
        Some(selection) => {
            let left = Box::new(match selection {
                or @ Expr::BinaryOp { op: BinaryOperator::Or, .. } => Expr::Nested(Box::new(or)),
                other => other,
            });
            Expr::BinaryOp { left, op: BinaryOperator::And, right: Box::new(condition) }
        }
    });
    Some(())
}

/// `column = 'value'`.
fn equals(column: &str, value: &str) -> Option<Expr> {
    let condition = parse(&format!("SELECT 1 WHERE {column} = {}", literal(value)))?;
    let SetExpr::Select(select) = *condition.body else { return None };
    select.selection
}

fn mentions(expression: &Expr, column: &str) -> bool {
    let mut found = false;
    syntax::expressions(expression, &mut |part| found |= is_column(part, column));
    found
}

fn is_column(expression: &Expr, column: &str) -> bool {
    let name = match expression {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    };
    name.is_some_and(|name| name.value.eq_ignore_ascii_case(column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn hints() -> Hints {
        Hints {
            aggregates: false,
            window: Some(("duration".to_owned(), "published_at".to_owned(), "1d".to_owned())),
            search: Some(("aid".to_owned(), "183772".to_owned(), "Acme".to_owned())),
        }
    }

    fn of(sql: &str, hints: &Hints) -> Vec<String> {
        forms(sql, hints).into_iter().map(|form| form.sql).collect()
    }

    #[test]
    fn a_list_of_rows_has_four_cheaper_forms() {
        assert_eq!(
            of("SELECT id, title FROM mentions WHERE duration = '30d' OR duration='7d' ORDER BY reach;", &hints()),
            [
                "SELECT count(*) FROM mentions WHERE duration = '30d' OR duration = '7d'",
                "SELECT id, title FROM mentions WHERE duration = '30d' OR duration = '7d' ORDER BY reach LIMIT 20",
                "SELECT id, title FROM mentions WHERE duration = '1d' OR duration = '1d' ORDER BY reach",
                "SELECT id, title FROM mentions WHERE (duration = '30d' OR duration = '7d') AND aid = '183772' ORDER BY reach",
            ]
        );
        assert_eq!(
            of("SELECT * FROM mentions m LIMIT 500", &hints()),
            [
                "SELECT count(*) FROM mentions m",
                "SELECT * FROM mentions m WHERE duration = '1d' LIMIT 500",
                "SELECT * FROM mentions m WHERE aid = '183772' LIMIT 500",
            ]
        );
    }

    #[test]
    fn a_long_statement_is_not_repeated() {
        let of_texts = |bytes: usize| format!("SELECT id FROM mentions WHERE title = '{}'", "x".repeat(bytes));
        assert_eq!(of(&of_texts(3_000), &hints()).len(), 4);
        assert!(of(&of_texts(300_000), &hints()).is_empty());
    }

    #[test]
    fn what_the_statement_says_stays() {
        let ranged = "SELECT id FROM mentions WHERE m.aid = '1' AND published_at > now()";
        let Hints { window, search, .. } = hints();
        let only = Hints { aggregates: true, window, search };
        assert!(of(ranged, &only).is_empty(), "both are named");
        let grouped = "SELECT source, count(*) FROM mentions WHERE duration = '1d' GROUP BY source";
        assert_eq!(of(grouped, &only).len(), 1, "the window is the shortest, and a saved search is not named");
        each(["SET x = 1", "SELECT 1; SELECT 2", "EXPLAIN SELECT 1", "not SQL", ""], |other| {
            assert!(of(other, &hints()).is_empty(), "{other}");
        });
        let quoted = Hints { search: Some(("aid".to_owned(), "it's".to_owned(), "x".to_owned())), ..only };
        assert_eq!(
            of("SELECT max(reach) FROM mentions", &quoted)[1],
            "SELECT max(reach) FROM mentions WHERE aid = 'it''s'"
        );
    }
}
