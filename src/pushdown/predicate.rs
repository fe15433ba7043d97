//! Conjuncts as constraints on columns.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, TryCast};

/// True if a scan can accept this conjunct, that is, evaluate it over a batch of the table's rows.
pub(crate) fn can_claim(expr: &Expr) -> bool {
    let foreign = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_)
                | Expr::ScalarVariable(..)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::GroupingSet(_)
                | Expr::Unnest(_)
        ))
    };
    // The closure never fails.
    !expr.exists(foreign).unwrap_or(true) && !expr.is_volatile()
}

/// True for a literal other than `true`, which the optimizer leaves of conjuncts that contradict each other.
pub(super) fn never(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Boolean(value), _) if *value != Some(true))
}

/// True for the literal `true`, which the optimizer leaves of conjuncts that all rows satisfy.
pub(super) fn always(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// Returns the compared column and its allowed values, if the conjunct says nothing else.
pub(super) fn values(expr: &Expr) -> Option<(&str, BTreeSet<String>)> {
    match expr {
        Expr::Alias(alias) => values(&alias.expr),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let (column, value) = column(left).zip(text(right)).or_else(|| column(right).zip(text(left)))?;
            Some((column, BTreeSet::from([value])))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let ((column, mut either), (other, or)) = (values(left)?, values(right)?);
            either.extend(or);
            (column == other).then_some((column, either))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            Some((column(expr)?, list.iter().map(text).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// Returns values of which a column has one in every row that satisfies the conjunct, as of `a` in `a = 1 AND b = 2 OR a = 3`;
/// `None` if it may have any.
pub(super) fn implied_values(expr: &Expr, of: &str) -> Option<BTreeSet<String>> {
    match expr {
        Expr::Alias(alias) => implied_values(&alias.expr, of),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (implied_values(left, of), implied_values(right, of)) {
                (Some(left), Some(right)) => Some(left.intersection(&right).cloned().collect()),
                (one, other) => one.or(other),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut either = implied_values(left, of)?;
            either.extend(implied_values(right, of)?);
            Some(either)
        }
        other => values(other).filter(|(column, _)| *column == of).map(|(_, any_of)| any_of),
    }
}

/// True if the conjunct uses the column.
pub(crate) fn looks_at(expr: &Expr, column: &str) -> bool {
    expr.column_refs().iter().any(|reference| reference.name == column)
}

/// True if the conjunct uses this column and no other.
pub(crate) fn looks_only_at(expr: &Expr, column: &str) -> bool {
    let columns = expr.column_refs();
    !columns.is_empty() && columns.iter().all(|reference| reference.name == column)
}

/// True for a conjunct that says nothing about the instants of this column, so that any window has rows for it. It uses the column
/// only in comparisons with another one of its row, for the time between the two, for its time of day, or for its day of the
/// week.
pub(super) fn bounds_nothing(expr: &Expr, column: &str) -> bool {
    let mut as_instant = false;
    let visited = expr.apply(|part| {
        as_instant |= matches!(part, Expr::Column(Column { name, .. }) if name == column);
        let known = recurs(part) || is_time_between(part) || compares_columns(part, column);
        Ok(if known { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && !as_instant
}

/// True for a time of day of a column, or another part of its time that comes again each week.
fn recurs(expr: &Expr) -> bool {
    const PARTS: [&str; 11] = [
        "hour",
        "hours",
        "minute",
        "minutes",
        "second",
        "seconds",
        "millisecond",
        "milliseconds",
        "microsecond",
        "dow",
        "isodow",
    ];
    match expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            matches!(field.data_type(), DataType::Time32(_) | DataType::Time64(_)) && is_time(expr)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), args.as_slice()) {
            ("date_part", [part, of]) => {
                is_time(of) && text(part).is_some_and(|part| PARTS.contains(&part.to_lowercase().as_str()))
            }
            _ => false,
        },
        _ => false,
    }
}

/// True for a column, in another type or zone.
fn is_time(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_time(&alias.expr),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            field.data_type().is_temporal() && is_time(expr)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "to_local_time" => {
            args.first().is_some_and(is_time)
        }
        _ => false,
    }
}

/// True for the time between two columns of a row.
fn is_time_between(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) = expr else { return false };
    is_time(left) && is_time(right)
}

/// True for a single comparison of this column with another one of its row, or of the time between them with an interval.
fn compares_columns(expr: &Expr, column: &str) -> bool {
    let sides = match expr {
        Expr::Not(inner) => return compares_columns(inner, column),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => vec![left, right],
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        _ => return false,
    };
    let is_length = |side: &Expr| match side {
        Expr::Literal(value, _) => matches!(value.data_type(), DataType::Interval(_) | DataType::Duration(_)),
        _ => false,
    };
    // An instant, or a choice between conditions, may bound the time.
    let may_bound = |part: &Expr| match part {
        Expr::Literal(value, _) => value.data_type().is_temporal() && !is_length(part),
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_comparison(*op) || op.is_logic_operator(),
        Expr::Between(_) | Expr::InList(_) | Expr::Like(_) | Expr::Case(_) => true,
        _ => false,
    };
    let harmless = |side: &Expr| !side.exists(|part| Ok(may_bound(part))).unwrap_or(true);
    !looks_only_at(expr, column)
        && sides.iter().all(|side| harmless(side) && (is_length(side) || !side.column_refs().is_empty()))
}

fn is_comparison(operator: Operator) -> bool {
    matches!(operator, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(Column { name, .. }) => Some(name),
        Expr::Alias(alias) => column(&alias.expr),
        // A cast between string types changes no value.
        Expr::Cast(Cast { expr, field }) if field.data_type().is_string() => column(expr),
        _ => None,
    }
}

/// Returns a string literal, or an integer literal as a string.
pub(super) fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Alias(alias) => text(&alias.expr),
        Expr::Literal(ScalarValue::Int64(value), _) => value.map(|value| value.to_string()),
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
