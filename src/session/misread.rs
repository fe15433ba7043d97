//! Syntax that the parser or the engine reads differently from the SQL standard, without an error.
//!
//! | statement | how it is read | here |
//! | --- | --- | --- |
//! | `a IS DISTINCT FROM b AND c` | `a IS DISTINCT FROM (b AND c)` | refused |
//! | `EXCEPT ALL`, `INTERSECT ALL` | how often a row occurs is ignored | refused |
//! | `a = ANY (SELECT …)`, `a <> ALL (SELECT …)` | columns of the subquery may be taken for those of the query | as `IN`, `NOT IN` |
//! | other comparisons with `ANY` and `ALL` of a subquery | the same | refused |

use datafusion::error::Result;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier};

use super::syntax::{self, Editor};
use crate::error::{Error, ErrorKind};

/// Returns a statement that is read as the standard says.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if there is no such form of it.
pub(crate) fn as_standard(mut statement: Statement) -> Result<Statement> {
    let mut reader = Standard { error: None };
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = &mut explain.statement;
    }
    match inner {
        Statement::Statement(ast) => syntax::edit(ast.as_mut(), &mut reader),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                syntax::edit(query.as_mut(), &mut reader);
            }
        }
        _ => {}
    }
    match reader.error {
        Some(error) => Err(error.into()),
        None => Ok(statement),
    }
}

struct Standard {
    /// The last error.
    error: Option<Error>,
}

impl Standard {
    fn refuse(&mut self, what: &str, advice: &str) {
        self.error = Some(Error::new(ErrorKind::Unsupported, what).advice(advice));
    }
}

impl Editor for Standard {
    fn pre_visit_query(&mut self, query: &mut Query) {
        let mut bodies = vec![query.body.as_ref()];
        while let Some(body) = bodies.pop() {
            // A parenthesized query is visited separately.
            let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { continue };
            let all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
            if all && *op != SetOperator::Union {
                self.refuse(
                    "EXCEPT ALL and INTERSECT ALL are not supported: the engine ignores how often a row occurs",
                    "use EXCEPT or INTERSECT, or count the rows with GROUP BY and compare the counts",
                );
            }
            bodies.extend([left.as_ref(), right.as_ref()]);
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) {
        let of_subquery = |right: &Expr| matches!(right, Expr::Subquery(_));
        match expr {
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) if is_logical(right) => self.refuse(
                "IS DISTINCT FROM before AND or OR is not supported: the parser takes all of it as the right operand",
                "put the comparison in parentheses: (a IS DISTINCT FROM b) AND c",
            ),
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } if of_subquery(right) => {
                *expr = within(left, right, false);
            }
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } if of_subquery(right) => {
                *expr = within(left, right, true);
            }
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } if of_subquery(right) => self.refuse(
                "this comparison with ANY or ALL of a subquery is not supported",
                "compare with (SELECT min(…)) or (SELECT max(…)), or use IN or NOT IN",
            ),
            _ => {}
        }
    }
}

/// True for AND, OR and XOR without parentheses around them.
fn is_logical(expr: &Expr) -> bool {
    use BinaryOperator::{And, Or, Xor};
    matches!(expr, Expr::BinaryOp { op: And | Or | Xor, .. })
}

/// `left [NOT] IN (subquery)`.
fn within(left: &Expr, subquery: &Expr, negated: bool) -> Expr {
    match subquery {
        Expr::Subquery(query) => Expr::InSubquery { expr: Box::new(left.clone()), subquery: query.clone(), negated },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn read(sql: &str) -> Result<String> {
        let statement = DFParser::parse_sql(sql).expect("valid syntax").pop_front().expect("a statement");
        Ok(as_standard(statement)?.to_string())
    }

    #[test]
    fn comparisons_with_equal_forms_get_them() {
        for (sql, expected) in [
            ("SELECT 1 WHERE a = ANY (SELECT a FROM t)", "SELECT 1 WHERE a IN (SELECT a FROM t)"),
            ("SELECT 1 WHERE a = SOME (SELECT a FROM t)", "SELECT 1 WHERE a IN (SELECT a FROM t)"),
            ("EXPLAIN SELECT 1 WHERE a <> ALL (SELECT a FROM t)", "EXPLAIN SELECT 1 WHERE a NOT IN (SELECT a FROM t)"),
        ] {
            assert_eq!(read(sql).expect("supported").trim(), expected);
        }
    }

    #[test]
    fn what_would_be_misread_is_refused() {
        for sql in [
            "SELECT true IS DISTINCT FROM true AND false",
            "SELECT 1 WHERE x AND a IS NOT DISTINCT FROM b OR c",
            "CREATE VIEW v AS SELECT a IS DISTINCT FROM b AND c FROM t",
            "COPY (SELECT a IS DISTINCT FROM b AND c FROM t) TO 'f.csv'",
            "EXPLAIN ANALYZE SELECT a IS DISTINCT FROM b AND c FROM t",
            "SELECT 1 EXCEPT ALL SELECT 2",
            "SELECT 1 UNION SELECT 2 INTERSECT ALL SELECT 3",
            "SELECT * FROM (SELECT 1 UNION ALL (SELECT 2 EXCEPT ALL SELECT 3))",
            "SELECT 1 WHERE a >= ALL (SELECT a FROM t)",
            "SELECT 1 WHERE a < ANY (SELECT a FROM t)",
        ] {
            let error = Error::find(&read(sql).expect_err(sql)).expect("our error").clone();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}");
        }
    }

    #[test]
    fn everything_else_stays() {
        for sql in [
            "SELECT a IS DISTINCT FROM (b AND c), (a IS DISTINCT FROM b) AND c FROM t",
            "SELECT c AND a IS DISTINCT FROM b FROM t",
            "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3",
            "SELECT 1 WHERE a = ANY(ARRAY[1, 2])",
            "SELECT 1 WHERE a IN (SELECT a FROM t)",
        ] {
            assert_eq!(read(sql).expect("supported"), sql);
        }
    }
}
