//! Interval literals in all of PostgreSQL's forms, translated to the engine's form.

use datafusion::sql::sqlparser::ast::{DateTimeField, Expr as SqlExpr, Interval};

use super::expressions::{digits_of, literal_of, text};
use super::unsupported;
use crate::functions::{Unit, read_interval};
use crate::postgres::report::Report;

/// A literal of a text, with the fields that follow it.
pub(super) fn literal(words: &str, fields: Option<(Unit, Unit)>) -> Result<SqlExpr, Report> {
    written(words, fields, false)
}

/// The step of a series of times that is written as a text, such as `'1 day'`; `None` for a number and another expression.
pub(super) fn of_step(step: &SqlExpr) -> Option<SqlExpr> {
    let words = literal_of(step).filter(|words| words.trim().parse::<f64>().is_err())?;
    literal(&words, None).ok()
}

/// `- interval '…'`, whose sign the engine would read as that of the first field. `None` for another expression.
pub(super) fn negated(expr: &SqlExpr) -> Result<Option<SqlExpr>, Report> {
    match expr {
        SqlExpr::Nested(inner) => negated(inner),
        SqlExpr::Interval(Interval { value, leading_field: None, .. }) => match literal_of(value) {
            Some(words) => written(&words, None, true).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn written(words: &str, fields: Option<(Unit, Unit)>, negative: bool) -> Result<SqlExpr, Report> {
    let span = read_interval(words, fields).and_then(|span| if negative { span.negated() } else { Ok(span) });
    let span = span.map_err(|error| Report::error("22007", error.line(words)))?;
    let written = format!("{} months {} days {} microseconds", span.months, span.days, span.micros);
    Ok(SqlExpr::Interval(Interval {
        value: Box::new(text(&written)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

/// Translates `interval '…'`, with or without fields. `None` for one that is computed.
pub(super) fn translated(interval: &Interval) -> Result<Option<SqlExpr>, Report> {
    let Some(words) = literal_of(&interval.value).or_else(|| digits_of(&interval.value)) else { return Ok(None) };
    let fields = match (&interval.leading_field, &interval.last_field) {
        (None, _) => None,
        (Some(first), last) => {
            let unit = |field: &DateTimeField| {
                Unit::named(&field.to_string()).ok_or_else(|| unsupported(format!("interval {field} is not supported")))
            };
            let first = unit(first)?;
            Some((first, last.as_ref().map_or(Ok(first), unit)?))
        }
    };
    literal(&words, fields).map(Some)
}
