//! Literals that are read, and expressions that are made.

use datafusion::sql::sqlparser::ast::{CastKind, DataType as SqlType, Expr as SqlExpr, UnaryOperator, Value};

use crate::session::case_of;
pub(super) use crate::session::{joined, pair};

/// The text of a literal.
pub(super) fn literal_of(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text.clone()),
            Value::DollarQuotedString(quoted) => Some(quoted.value.clone()),
            _ => None,
        },
        SqlExpr::Nested(inner) => literal_of(inner),
        _ => None,
    }
}

/// The digits of a number, with its sign.
pub(super) fn digits_of(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            digits_of(expr).filter(|digits| !digits.starts_with('-')).map(|digits| format!("-{digits}"))
        }
        SqlExpr::Nested(inner) => digits_of(inner),
        _ => None,
    }
}

pub(super) fn whole_number(expr: &SqlExpr) -> Option<i64> {
    digits_of(expr)?.parse().ok()
}

pub(super) fn text(text: &str) -> SqlExpr {
    SqlExpr::value(Value::SingleQuotedString(text.to_owned()))
}

pub(super) fn number(digits: &str) -> SqlExpr {
    SqlExpr::value(Value::Number(digits.to_owned(), false))
}

pub(super) fn cast_to(expr: SqlExpr, data_type: SqlType) -> SqlExpr {
    SqlExpr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

pub(super) fn not(expr: SqlExpr) -> SqlExpr {
    SqlExpr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }
}

/// `CASE WHEN condition THEN result END`.
pub(super) fn when(condition: SqlExpr, result: SqlExpr) -> SqlExpr {
    case_of(vec![(condition, result)], None)
}
