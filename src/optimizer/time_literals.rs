//! Literals of times that the engine refuses.
//!
//! - Times without seconds and dates without a day: `'2026-11-24 10:30'`, `'2026-11'`.
//! - Times beyond the years 1677 to 2262 in comparisons, such as `indexed_at < '9999-12-31'`: the engine compares in
//!   nanoseconds, which have no such times. Such a time is replaced by the last instant of the range, which compares in the
//!   same way with every value of the range.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::{is_comparison, rewrite_expressions};
use crate::functions::complete_time;

/// See the module's documentation. Runs after type coercion, which puts casts around the literals of comparisons.
#[derive(Debug)]
pub(super) struct TimeLiterals;

impl AnalyzerRule for TimeLiterals {
    fn name(&self) -> &str {
        "savedsearch_time_literals"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let each = |expr: Expr| completed(expr).transform_data(|expr| Ok(in_range(expr)));
        rewrite_expressions(plan, |expr, _| each(expr), |plan| Ok(Transformed::no(plan)))
    }
}

fn completed(mut expr: Expr) -> Transformed<Expr> {
    let (inner, data_type) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return Transformed::no(expr),
    };
    if !matches!(data_type, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) {
        return Transformed::no(expr);
    }
    let complete = match inner.as_ref() {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => complete_time(text),
        _ => None,
    };
    let changed = complete.is_some();
    if let Some(complete) = complete {
        **inner = lit(complete);
    }
    Transformed::new_transformed(expr, changed)
}

/// A comparison whose literals are within the range of nanoseconds.
fn in_range(mut expr: Expr) -> Transformed<Expr> {
    let operands: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            vec![left.as_mut(), right.as_mut()]
        }
        Expr::Between(Between { expr, low, high, .. }) => vec![expr.as_mut(), low.as_mut(), high.as_mut()],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(expr.as_mut()).chain(list).collect(),
        _ => return Transformed::no(expr),
    };
    let mut changed = false;
    for operand in operands {
        if let Some(last) = beyond(operand) {
            *operand = last;
            changed = true;
        }
    }
    Transformed::new_transformed(expr, changed)
}

/// The last instant in nanoseconds in the direction of a literal that is beyond it; `None` for other expressions.
fn beyond(expr: &Expr) -> Option<Expr> {
    const MICROSECOND: i64 = 1_000;
    let Expr::Cast(cast) = expr else { return None };
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = cast.field.data_type() else { return None };
    let mut inner = cast.expr.as_ref();
    // A literal with a type of its own is converted to that of the other side.
    while let Expr::Cast(cast) = inner
        && matches!(cast.field.data_type(), DataType::Timestamp(..) | DataType::Date32)
    {
        inner = &cast.expr;
    }
    let Expr::Literal(value, _) = inner else { return None };
    if !value.data_type().is_string() && !value.data_type().is_temporal() {
        return None;
    }
    let wide = value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone())).ok()?;
    let ScalarValue::TimestampMicrosecond(Some(at), _) = wide else { return None };
    let last = match at.checked_mul(MICROSECOND) {
        Some(_) => return None,
        None if at > 0 => i64::MAX,
        None => i64::MIN,
    };
    Some(lit(ScalarValue::TimestampNanosecond(Some(last), zone.clone())))
}
