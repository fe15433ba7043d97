//! Times of texts and of dates, whose meaning in PostgreSQL depends on types that the syntax does not show.
//!
//! | operation | engine | PostgreSQL |
//! | --- | --- | --- |
//! | text to timestamp or date | a zone in the text shifts the time | the zone is ignored |
//! | text to timestamp, date or timestamptz | a day with a zone is refused | `2027-01-01Z` is a day, or its midnight there |
//! | text to time | `120000` is a number of nanoseconds | 12:00:00 |
//! | EXCEPT, INTERSECT of a date or timestamp and an instant | the type of the left side | instants |
//! | `date_trunc`, `date_bin`, `to_char`, AT TIME ZONE of a date | midnight without a zone, or in UTC | the instant of midnight in the zone of the session |
//! | `generate_series` of dates | dates, by whole days | instants, or local times beside one |
//!
//! The plan of a statement is changed before its types are coerced, when a date is still one.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{Expr, LogicalPlan, cast, lit};

use super::typed_plan::TypeChange;
use crate::error::{Error, ErrorKind};
use crate::functions::{TypeIn, start_of_day, time_text};
use crate::session::is_of_sets;

/// Functions that take the instant at which a date begins.
const OF_INSTANTS: [&str; 4] = ["date_bin", "date_trunc", "postgres_to_char", "timezone"];

/// A function that has instants and local times, but no dates.
const SERIES: &str = "generate_series";

/// PostgreSQL's meaning of texts and dates as times. `date_trunc` and `date_bin` of a date in VALUES, whose types are decided
/// before, are refused.
pub(super) struct Times;

impl TypeChange for Times {
    fn concerns_node(&self, node: &LogicalPlan) -> bool {
        matches!(node, LogicalPlan::Join(join) if is_of_sets(join))
    }

    fn concerns_expression(&self, part: &Expr) -> bool {
        match part {
            Expr::Cast(Cast { expr, field }) => {
                form_of(field.data_type()).is_some() && !matches!(expr.as_ref(), Expr::Literal(..))
            }
            Expr::ScalarFunction(function) => OF_INSTANTS.contains(&function.name()) || function.name() == SERIES,
            _ => false,
        }
    }

    fn expression(&self, expr: Expr, schema: &DFSchema, in_values: bool) -> Result<Transformed<Expr>> {
        timed(expr, schema, in_values)
    }
}

/// The form of texts that are cast to a type.
fn form_of(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Timestamp(_, None) | DataType::Date32 => Some("timestamp"),
        DataType::Timestamp(_, Some(_)) => Some("timestamptz"),
        DataType::Time32(_) | DataType::Time64(_) => Some("time"),
        _ => None,
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => value.is_string(),
        other => other.is_string(),
    }
}

fn timed(expr: Expr, schema: &DFSchema, in_values: bool) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            // Literals were read with the syntax.
            let written = !matches!(expr.as_ref(), Expr::Literal(..))
                && expr.type_in(schema).is_ok_and(|data_type| is_text(&data_type));
            Ok(match form_of(field.data_type()).filter(|_| written) {
                Some(form) => {
                    let expr = Box::new(time_text().call(vec![*expr, lit(form)]));
                    Transformed::yes(Expr::Cast(Cast { expr, field }))
                }
                None => Transformed::no(Expr::Cast(Cast { expr, field })),
            })
        }
        Expr::ScalarFunction(function) => of_dates(function, schema, in_values),
        other => Ok(Transformed::no(other)),
    }
}

/// A function whose dates are instants.
fn of_dates(mut function: ScalarFunction, schema: &DFSchema, in_values: bool) -> Result<Transformed<Expr>> {
    let types: Vec<Option<DataType>> = function.args.iter().map(|arg| arg.type_in(schema).ok()).collect();
    if function.name() == SERIES {
        return Ok(series_of_dates(function, &types));
    }
    let is_local = types.iter().any(|known| matches!(known, Some(DataType::Timestamp(_, None))));
    let name = function.name().to_owned();
    let first = match name.as_str() {
        "postgres_to_char" => 0,
        // A date beside a time without a zone is one as well.
        "date_bin" if is_local => return Ok(Transformed::no(Expr::ScalarFunction(function))),
        name if OF_INSTANTS.contains(&name) => 1,
        _ => return Ok(Transformed::no(Expr::ScalarFunction(function))),
    };
    let mut changed = false;
    for (arg, known) in function.args.iter_mut().zip(&types).skip(first) {
        if *known == Some(DataType::Date32) {
            *arg = start_of_day().call(vec![arg.clone()]);
            changed = true;
        }
    }
    if changed && in_values && name.starts_with("date_") {
        let line = format!("{name} of a date in VALUES is not supported");
        let advice = "cast the date to timestamp or timestamptz, or use SELECT … UNION ALL SELECT …";
        return Err(Error::new(ErrorKind::Unsupported, line).advice(advice).into());
    }
    Ok(Transformed::new_transformed(Expr::ScalarFunction(function), changed))
}

/// `generate_series` of dates in steps of an interval.
fn series_of_dates(mut function: ScalarFunction, types: &[Option<DataType>]) -> Transformed<Expr> {
    let [first, last, Some(DataType::Interval(_))] = types else {
        return Transformed::no(Expr::ScalarFunction(function));
    };
    let ends = [first, last];
    let local = ends.into_iter().flatten().find(|known| matches!(known, DataType::Timestamp(_, None)));
    let mut changed = false;
    for (arg, known) in function.args.iter_mut().zip(ends) {
        if *known == Some(DataType::Date32) {
            *arg = match local {
                Some(local) => cast(arg.clone(), local.clone()),
                None => start_of_day().call(vec![arg.clone()]),
            };
            changed = true;
        }
    }
    Transformed::new_transformed(Expr::ScalarFunction(function), changed)
}
