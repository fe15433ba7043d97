//! Local times of instants whose type has a zone, for operations that the engine computes in UTC.
//!
//! *Casts to a time without a zone*, `t::timestamp`: the engine keeps the digits of UTC. They become local times.
//!
//! *`date_bin` by whole days or months*: the engine counts them from 1970 in UTC. They become those of the zone. With an origin,
//! days have 24 hours, as in PostgreSQL.
//!
//! *`date_bin` with an origin*: the engine takes an origin without a zone as a time of UTC. It becomes one of the zone.
//!
//! *`to_timestamp` of an integer*: the engine takes it for the seconds of a local time. It becomes an instant, and so does the
//! result of `from_unixtime`.
//!
//! *`to_timestamp` of a floating-point number*: the engine makes the nearest instant that it can represent of one that is too large,
//! and 1970 of NaN. Both are errors.
//!
//! *Dates and times without a zone, compared with an instant or subtracted from one*: the engine compares the digits of UTC.
//! They become the instants at which clocks of the zone show that time.
//!
//! *Instants plus or minus an interval*: the engine fails at local times that clocks of the zone skip or show twice. They are
//! computed by functions that do not.
//!
//! *`generate_series` and `range` of instants*: the engine ends the list there.
//!
//! *`timezone(zone, local)`*, from `AT TIME ZONE` of PostgreSQL, and *`start_of_day(date)`*: an instant in UTC. It becomes one in the
//! zone of the session.
//!
//! *Casts to fewer digits*, `t::timestamp(0)`: the engine drops the others. They are rounded.
//!
//! In the zone UTC nothing else changes. `date_trunc`, `date_part`, `to_char` and casts to dates and clock times follow the zone
//! by themselves.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::datetime::{date_bin, to_local_time};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, LogicalPlan, Operator, TryCast, cast, lit, try_cast};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::config::SessionSettings;
use crate::functions::{TypeIn, corrected, minus_interval, plus_interval, rounded_time, times_in_steps};

/// Rule for casts of instants and for `date_bin`. See the module's documentation.
#[derive(Debug)]
pub(super) struct LocalTimes;

impl AnalyzerRule for LocalTimes {
    fn name(&self) -> &str {
        "local_times"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let zone = SessionSettings::zone(config);
        let each = |expr, schema: &DFSchema| {
            let local = local(expr, schema, &zone);
            let rounded = rounded(local.data, schema);
            Ok(Transformed::new_transformed(rounded.data, rounded.transformed || local.transformed))
        };
        rewrite_expressions(plan, each, |plan| Ok(Transformed::no(plan)))
    }
}

/// A cast of a time, or of a text, to one with fewer digits, rounded.
fn rounded(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (inner, to, tries) = match &expr {
        Expr::Cast(Cast { expr, field }) => (expr, field.data_type(), false),
        Expr::TryCast(TryCast { expr, field }) => (expr, field.data_type(), true),
        _ => return Transformed::no(expr),
    };
    let DataType::Timestamp(unit @ (TimeUnit::Second | TimeUnit::Millisecond), zone) = to else {
        return Transformed::no(expr);
    };
    let step: i64 = if *unit == TimeUnit::Second { 1_000_000 } else { 1_000 };
    let done = matches!(inner.as_ref(), Expr::ScalarFunction(function) if function.func == rounded_time());
    let has_digits = match inner.type_in(schema) {
        Ok(DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)) => true,
        Ok(DataType::Timestamp(TimeUnit::Millisecond, _)) => *unit == TimeUnit::Second,
        Ok(of_text) => of_text.is_string(),
        Err(_) => false,
    };
    if done || !has_digits {
        return Transformed::no(expr);
    }
    let (inner, to) = (inner.as_ref().clone(), to.clone());
    let fine = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let inner = if tries { try_cast(inner, fine) } else { cast(inner, fine) };
    Transformed::yes(cast(rounded_time().call(vec![inner, lit(step)]), to))
}

fn local(expr: Expr, schema: &DFSchema, zone: &str) -> Transformed<Expr> {
    match expr {
        Expr::Cast(Cast { expr, field })
            if matches!(field.data_type(), DataType::Timestamp(_, None)) && zone_of(&expr, schema).is_some() =>
        {
            let expr = Box::new(to_local_time().call(vec![*expr]));
            Transformed::yes(Expr::Cast(Cast { expr, field }))
        }
        Expr::TryCast(TryCast { expr, field })
            if matches!(field.data_type(), DataType::Timestamp(_, None)) && zone_of(&expr, schema).is_some() =>
        {
            let expr = Box::new(to_local_time().call(vec![*expr]));
            Transformed::yes(Expr::TryCast(TryCast { expr, field }))
        }
        Expr::ScalarFunction(function) => in_function(function, schema, zone),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) if shifts(&left, &right, schema) => {
            Transformed::yes(plus_interval().call(vec![*left, *right]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) if shifts(&right, &left, schema) => {
            Transformed::yes(plus_interval().call(vec![*right, *left]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) if shifts(&left, &right, schema) => {
            Transformed::yes(minus_interval().call(vec![*left, *right]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if (op.supports_propagation() || op == Operator::Minus) && is_time(&right, schema) =>
        {
            let (of_left, of_right) = (zone_of(&left, schema), zone_of(&right, schema));
            let (left, right) = (instant(*left, of_right, schema), instant(*right, of_left, schema));
            let changed = left.transformed || right.transformed;
            let expr = BinaryExpr { left: Box::new(left.data), op, right: Box::new(right.data) };
            Transformed::new_transformed(Expr::BinaryExpr(expr), changed)
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let zone = zone_of(&expr, schema);
            let (low, high) = (instant(*low, zone.clone(), schema), instant(*high, zone, schema));
            let changed = low.transformed || high.transformed;
            let between = Between { expr, negated, low: Box::new(low.data), high: Box::new(high.data) };
            Transformed::new_transformed(Expr::Between(between), changed)
        }
        Expr::InList(InList { expr, list, negated }) => {
            let zone = zone_of(&expr, schema);
            let list: Vec<_> = list.into_iter().map(|item| instant(item, zone.clone(), schema)).collect();
            let changed = list.iter().any(|item| item.transformed);
            let list = list.into_iter().map(|item| item.data).collect();
            Transformed::new_transformed(Expr::InList(InList { expr, list, negated }), changed)
        }
        other => Transformed::no(other),
    }
}

fn in_function(function: ScalarFunction, schema: &DFSchema, zone: &str) -> Transformed<Expr> {
    let func = Arc::clone(&function.func);
    match (func.name(), function.args.as_slice()) {
        ("date_bin", _) => bins(function, schema),
        ("to_timestamp", [number]) if is_integer(number, schema) => {
            let (number, expr) = (number.clone(), Expr::ScalarFunction(function));
            match zone_of(&expr, schema) {
                Some((unit, zone)) => {
                    let instant = cast(number, DataType::Timestamp(TimeUnit::Second, Some(Arc::clone(&zone))));
                    Transformed::yes(cast(instant, DataType::Timestamp(unit, Some(zone))))
                }
                None => Transformed::no(expr),
            }
        }
        ("to_timestamp", [number]) if is_float(number, schema) => {
            let (number, expr) = (number.clone(), Expr::ScalarFunction(function));
            match expr.type_in(schema) {
                Ok(to @ DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
                    let nanoseconds = cast(number, DataType::Float64) * lit(1e9);
                    Transformed::yes(cast(cast(nanoseconds, DataType::Int64), to))
                }
                _ => Transformed::no(expr),
            }
        }
        ("from_unixtime", [seconds]) if !is_utc(zone) => {
            let instant = DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
            Transformed::yes(cast(seconds.clone(), instant))
        }
        ("generate_series" | "range", [start, _, step]) if shifts(start, step, schema) => {
            Transformed::yes(times_in_steps(func.name() == "generate_series").call(function.args))
        }
        ("timezone" | "start_of_day", _) if !zone.is_empty() => {
            let expr = Expr::ScalarFunction(function);
            match expr.type_in(schema) {
                Ok(DataType::Timestamp(unit, Some(_))) => {
                    Transformed::yes(cast(expr, DataType::Timestamp(unit, Some(zone.into()))))
                }
                _ => Transformed::no(expr),
            }
        }
        _ => Transformed::no(Expr::ScalarFunction(function)),
    }
}

/// Returns a date, or a time without a zone, as an instant in the zone of what it is compared with, if that has one.
fn instant(expr: Expr, zone: Option<(TimeUnit, Arc<str>)>, schema: &DFSchema) -> Transformed<Expr> {
    let Some((unit, zone)) = zone else { return Transformed::no(expr) };
    match expr.type_in(schema) {
        Ok(DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None)) => {
            Transformed::yes(cast(expr, DataType::Timestamp(unit, Some(zone))))
        }
        _ => Transformed::no(expr),
    }
}

/// Unit and zone of an instant whose local times are not those of UTC.
fn zone_of(expr: &Expr, schema: &DFSchema) -> Option<(TimeUnit, Arc<str>)> {
    match expr.type_in(schema) {
        Ok(DataType::Timestamp(unit, Some(zone))) if !is_utc(&zone) => Some((unit, zone)),
        _ => None,
    }
}

/// True for a zone whose local times are those of UTC.
fn is_utc(zone: &str) -> bool {
    ["", "UTC", "+00:00", "Z"].contains(&zone)
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.type_in(schema).is_ok_and(|data_type| data_type.is_floating())
}

fn is_integer(expr: &Expr, schema: &DFSchema) -> bool {
    expr.type_in(schema).is_ok_and(|data_type| data_type.is_integer())
}

/// True for a date, and for a time with or without a zone.
fn is_time(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.type_in(schema), Ok(DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)))
}

/// True for an instant in a zone, and an interval. The type of a chain of operators is found last: it takes a walk through it.
fn shifts(instant: &Expr, interval: &Expr, schema: &DFSchema) -> bool {
    let is_interval = || matches!(interval.type_in(schema), Ok(DataType::Interval(_)));
    match instant {
        Expr::BinaryExpr(_) => is_interval() && zone_of(instant, schema).is_some(),
        _ => zone_of(instant, schema).is_some() && is_interval(),
    }
}

/// `date_bin(stride, time, origin)` as PostgreSQL counts: in spans of 24 hours from the origin. Months are those of the zone, and
/// so are days without an origin.
fn bins(function: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let mut args = function.args;
    let zones: Vec<_> = args.iter().skip(1).map(|arg| zone_of(arg, schema)).collect();
    let (Some((unit, zone)), Some(stride)) = (zones.iter().flatten().next().cloned(), args.first().map(stride)) else {
        return Transformed::no(Expr::ScalarFunction(ScalarFunction { func: function.func, args }));
    };
    let there = DataType::Timestamp(unit, Some(zone));
    let months = stride.is_some_and(|stride| stride.months != 0);
    let days = args.len() == 2 && stride.is_some_and(|stride| stride.nanoseconds == 0);
    let mut changed = false;
    for (arg, known) in args.iter_mut().skip(1).zip(&zones) {
        if known.is_none() && !matches!(arg.type_in(schema), Ok(DataType::Timestamp(_, Some(_)))) {
            *arg = cast(arg.clone(), there.clone());
            changed = true;
        }
    }
    if !months && !days {
        let bin = Expr::ScalarFunction(ScalarFunction { func: function.func, args });
        return Transformed::new_transformed(bin, changed);
    }
    for arg in args.iter_mut().skip(1) {
        *arg = to_local_time().call(vec![arg.clone()]);
    }
    Transformed::yes(cast(corrected(date_bin()).call(args), there))
}

/// The value of a literal interval, also of one that is written as a text.
fn stride(interval: &Expr) -> Option<IntervalMonthDayNano> {
    let value = match interval {
        Expr::Literal(value, _) => value,
        Expr::Cast(Cast { expr, .. }) => return stride(expr),
        _ => return None,
    };
    match value.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano)).ok()? {
        ScalarValue::IntervalMonthDayNano(stride) => stride,
        _ => None,
    }
}
