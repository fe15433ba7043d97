//! Rows of values, `(a, b)`, compared member by member with SQL's three truth values, whole rows of tables, and `OVERLAPS`.

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Join, JoinOperator, Query, SetExpr, TableFactor, TableWithJoins,
};

use super::super::report::Report;
use super::expressions::{joined, not, pair, when};
use super::{check_copies, unsupported};
use crate::session::syntax::{self, Reader};
use crate::session::{call, members};

pub(super) fn all_members(expr: &SqlExpr, is: fn(Box<SqlExpr>) -> SqlExpr) -> Option<SqlExpr> {
    let each = members(expr)?.into_iter().map(|member| is(Box::new(member))).collect();
    joined(each, &BinaryOperator::And)
}

/// The members of two rows of the same length; `None` if not both are rows.
fn both_members(left: &SqlExpr, right: &SqlExpr) -> Result<Option<Vec<(SqlExpr, SqlExpr)>>, Report> {
    let (Some(left), Some(right)) = (members(left), members(right)) else { return Ok(None) };
    if left.len() != right.len() {
        return Err(Report::error("42601", "unequal number of entries in row expressions"));
    }
    Ok(Some(left.into_iter().zip(right).collect()))
}

/// `left IS NOT DISTINCT FROM right` for rows.
pub(super) fn distinct(left: &SqlExpr, right: &SqlExpr) -> Result<Option<SqlExpr>, Report> {
    let Some(members) = both_members(left, right)? else { return Ok(None) };
    let same = members
        .into_iter()
        .map(|(a, b)| SqlExpr::Nested(Box::new(SqlExpr::IsNotDistinctFrom(Box::new(a), Box::new(b)))));
    Ok(joined(same.collect(), &BinaryOperator::And))
}

/// True for a query that counts the rows of a table, as `count(t.*)`, and has an outer join: PostgreSQL leaves out the rows that the
/// join adds, and the engine counts them.
pub(super) fn counts_missing_rows(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_outer = |join: &Join| {
        use JoinOperator::{FullOuter, Left, LeftOuter, Right, RightOuter};
        matches!(join.join_operator, Left(_) | LeftOuter(_) | Right(_) | RightOuter(_) | FullOuter(_))
    };
    let mut outer = false;
    let mut items: Vec<&TableWithJoins> = select.from.iter().collect();
    while let Some(item) = items.pop() {
        outer |= item.joins.iter().any(is_outer);
        for factor in std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)) {
            if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
                items.push(table_with_joins);
            }
        }
    }
    let mut counts = Counts::default();
    syntax::read(&select.projection, &mut counts);
    syntax::read(&select.having, &mut counts);
    syntax::read(&query.order_by, &mut counts);
    outer && counts.found
}

/// Finds `count(t.*)` outside of subqueries.
#[derive(Default)]
struct Counts {
    queries: usize,
    found: bool,
}

impl Reader for Counts {
    fn pre_visit_query(&mut self, _query: &Query) {
        self.queries += 1;
    }

    fn post_visit_query(&mut self, _query: &Query) {
        self.queries -= 1;
    }

    fn pre_visit_expr(&mut self, expr: &SqlExpr) {
        let whole_row =
            |argument: &FunctionArg| matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)));
        self.found |= self.queries == 0
            && matches!(expr, SqlExpr::Function(Function { args: FunctionArguments::List(list), .. })
                if list.args.iter().any(whole_row));
    }
}

/// A comparison of two rows, member by member.
pub(super) fn rows(left: &SqlExpr, op: &BinaryOperator, right: &SqlExpr) -> Result<Option<SqlExpr>, Report> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let Some(members) = both_members(left, right)? else { return Ok(None) };
    let each = |op: &BinaryOperator| members.iter().map(|(a, b)| pair(a.clone(), op.clone(), b.clone())).collect();
    let strict = match op {
        Eq => return Ok(joined(each(&Eq), &And)),
        NotEq => return Ok(joined(each(&NotEq), &Or)),
        Lt | LtEq => Lt,
        Gt | GtEq => Gt,
        other => return Err(unsupported(format!("rows cannot be compared by {other}"))),
    };
    // The first members that differ decide. All but the last ones are compared twice.
    if members.len() > 1 {
        check_copies(left, 2)?;
        check_copies(right, 2)?;
    }
    let mut found: Option<SqlExpr> = None;
    for (a, b) in members.into_iter().rev() {
        found = Some(match found {
            None => pair(a, op.clone(), b),
            Some(rest) => {
                let less = pair(a.clone(), strict.clone(), b.clone());
                pair(less, Or, pair(pair(a, Eq, b), And, rest))
            }
        });
    }
    Ok(found)
}

/// `(start, end) OVERLAPS (start, end)`: periods with their start, without their end. An end may be the length of the period.
pub(super) fn overlaps(left: &SqlExpr, right: &SqlExpr) -> Result<SqlExpr, Report> {
    /// Times that a member stands in the result, at most.
    const COPIES: usize = 64;
    use BinaryOperator::{And, Eq, Gt, GtEq, Or, Plus};
    let period = |side: &SqlExpr| match members(side).as_deref() {
        Some([start, end]) => {
            let length = matches!(end, SqlExpr::Interval(_))
                || matches!(end, SqlExpr::Cast { data_type: SqlType::Interval { .. }, .. });
            let end = if length { pair(start.clone(), Plus, end.clone()) } else { end.clone() };
            // In this order; without an end if one of the two is missing.
            let later = call("greatest", vec![start.clone(), end.clone()]);
            let known = pair(
                SqlExpr::IsNotNull(Box::new(SqlExpr::Nested(Box::new(start.clone())))),
                And,
                SqlExpr::IsNotNull(Box::new(SqlExpr::Nested(Box::new(end.clone())))),
            );
            Ok((call("least", vec![start.clone(), end]), when(known, later)))
        }
        _ => Err(Report::error("42601", "OVERLAPS takes two rows of two: (start, end) OVERLAPS (start, end)")),
    };
    check_copies(left, COPIES)?;
    check_copies(right, COPIES)?;
    let ((start, end), (other_start, other_end)) = (period(left)?, period(right)?);
    let pair = |left: &SqlExpr, op: BinaryOperator, right: &SqlExpr| pair(left.clone(), op, right.clone());
    let begins_within = |start: &SqlExpr, end: &SqlExpr, other_start: &SqlExpr, other_end: &SqlExpr| {
        let after = pair(&pair(start, GtEq, other_end), And, &pair(end, GtEq, other_end));
        pair(&pair(start, Gt, other_start), And, &not(after))
    };
    let together = pair(
        &pair(&start, Eq, &other_start),
        And,
        &pair(&pair(&end, Eq, &end), And, &pair(&other_end, Eq, &other_end)),
    );
    let either = pair(
        &begins_within(&start, &end, &other_start, &other_end),
        Or,
        &begins_within(&other_start, &other_end, &start, &end),
    );
    Ok(pair(&either, Or, &together))
}
