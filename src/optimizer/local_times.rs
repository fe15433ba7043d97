//! Local times of instants whose type has a zone, for operations that the engine computes in UTC.
//!
//! *Casts to a time without a zone*, `t::timestamp`: the engine keeps the digits of UTC. They become local times.
//!
//! *`date_bin` by whole days or months*: the engine counts them from 1970 in UTC. They become those of the zone.
//!
//! *Dates and times without a zone, compared with an instant or subtracted from one*: the engine compares the digits of UTC.
//! They become the instants at which clocks of the zone show that time.
//!
//! *Instants plus or minus an interval*: the engine fails at local times that clocks of the zone skip or show twice. They are
//! computed by functions that do not.
//!
//! *`generate_series` and `range` of instants*: the engine ends the list there.
//!
//! *`timezone(zone, local)`*, from `AT TIME ZONE` of PostgreSQL: an instant in UTC. It becomes one in the zone of the session.
//!
//! In the zone UTC nothing changes. `date_trunc`, `date_part`, `to_char` and casts to dates and clock times follow the zone
//! by themselves.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::datetime::{date_bin, to_local_time};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, cast};
use datafusion::optimizer::AnalyzerRule;

use crate::config::SessionSettings;
use crate::functions::{minus_interval, plus_interval, times_in_steps};

/// Rule for casts of instants and for `date_bin`. See the module's documentation.
#[derive(Debug)]
pub(super) struct LocalTimes;

impl AnalyzerRule for LocalTimes {
    fn name(&self) -> &str {
        "local_times"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let zone = SessionSettings::zone(config);
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            let changed = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = expr.transform_up(|expr| Ok(local(expr, &schema, &zone)))?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })?;
            if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
        })
        .map(|transformed| transformed.data)
    }
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
        Expr::ScalarFunction(ScalarFunction { func, mut args })
            if func.name() == "date_bin" && args.len() == 2 && of_days(&args[0]) =>
        {
            match zone_of(&args[1], schema) {
                Some((unit, zone)) => {
                    args[1] = to_local_time().call(vec![args[1].clone()]);
                    let bin = date_bin().call(args);
                    Transformed::yes(cast(bin, DataType::Timestamp(unit, Some(zone))))
                }
                None => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
            }
        }
        Expr::ScalarFunction(ScalarFunction { func, args })
            if ["generate_series", "range"].contains(&func.name())
                && args.len() == 3
                && shifts(&args[0], &args[2], schema) =>
        {
            Transformed::yes(times_in_steps(func.name() == "generate_series").call(args))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) if shifts(&left, &right, schema) => {
            Transformed::yes(plus_interval().call(vec![*left, *right]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) if shifts(&right, &left, schema) => {
            Transformed::yes(plus_interval().call(vec![*right, *left]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) if shifts(&left, &right, schema) => {
            Transformed::yes(minus_interval().call(vec![*left, *right]))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() || op == Operator::Minus => {
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
        Expr::ScalarFunction(ref function) if function.func.name() == "timezone" && !zone.is_empty() => {
            match expr.get_type(schema) {
                Ok(DataType::Timestamp(unit, Some(_))) => {
                    Transformed::yes(cast(expr, DataType::Timestamp(unit, Some(zone.into()))))
                }
                _ => Transformed::no(expr),
            }
        }
        other => Transformed::no(other),
    }
}

/// Returns a date, or a time without a zone, as an instant in the zone of what it is compared with, if that has one.
fn instant(expr: Expr, zone: Option<(TimeUnit, Arc<str>)>, schema: &DFSchema) -> Transformed<Expr> {
    let Some((unit, zone)) = zone else { return Transformed::no(expr) };
    match expr.get_type(schema) {
        Ok(DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None)) => {
            Transformed::yes(cast(expr, DataType::Timestamp(unit, Some(zone))))
        }
        _ => Transformed::no(expr),
    }
}

/// Unit and zone of an instant whose local times are not those of UTC.
fn zone_of(expr: &Expr, schema: &DFSchema) -> Option<(TimeUnit, Arc<str>)> {
    match expr.get_type(schema) {
        Ok(DataType::Timestamp(unit, Some(zone))) if !["UTC", "+00:00", "Z"].contains(&zone.as_ref()) => {
            Some((unit, zone))
        }
        _ => None,
    }
}

/// True for an instant in a zone, and an interval.
fn shifts(instant: &Expr, interval: &Expr, schema: &DFSchema) -> bool {
    zone_of(instant, schema).is_some() && matches!(interval.get_type(schema), Ok(DataType::Interval(_)))
}

/// True for an interval of whole days or months.
fn of_days(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds == 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => interval.milliseconds == 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(Some(_)), _) => true,
        _ => false,
    }
}
