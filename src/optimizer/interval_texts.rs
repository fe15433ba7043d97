//! Texts that are cast to intervals: a last number without a unit, as in `'5'::interval`, counts seconds, as in `INTERVAL '5'`, in
//! PostgreSQL and in DuckDB. The engine takes it for months.

use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, TryCast, cast, lit};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::functions::{TypeIn, interval_with_unit, time_text};

/// Functions that cast their first argument.
const CASTS: [&str; 4] = ["arrow_cast", "arrow_try_cast", "cast_to_type", "try_cast_to_type"];

/// See the module's documentation. Runs after type coercion, for its casts.
#[derive(Debug)]
pub(super) struct IntervalTexts;

impl AnalyzerRule for IntervalTexts {
    fn name(&self) -> &str {
        "savedsearch_interval_texts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, schema| Ok(with_unit(expr, schema)), |plan| Ok(Transformed::no(plan)))
    }
}

fn with_unit(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let to = match &expr {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => Some(field.data_type().clone()),
        Expr::ScalarFunction(function) if CASTS.contains(&function.func.name()) => expr.type_in(schema).ok(),
        _ => None,
    };
    if to != Some(DataType::Interval(IntervalUnit::MonthDayNano)) {
        return Transformed::no(expr);
    }
    let Some(text) = operand(&mut expr) else { return Transformed::no(expr) };
    let known = match &*text {
        Expr::Literal(value, _) => value.try_as_str().flatten().and_then(interval_with_unit).map(lit),
        other => in_rows(other, schema),
    };
    let changed = known.is_some();
    if let Some(known) = known {
        *text = known;
    }
    Transformed::new_transformed(expr, changed)
}

/// The value that is cast.
fn operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::Cast(cast) => Some(cast.expr.as_mut()),
        Expr::TryCast(cast) => Some(cast.expr.as_mut()),
        Expr::ScalarFunction(function) => function.args.first_mut(),
        _ => None,
    }
}

/// A text that is known when rows are, with its unit; `None` for another value.
fn in_rows(text: &Expr, schema: &DFSchema) -> Option<Expr> {
    let data_type = text.type_in(schema).ok()?;
    // A plan may be analyzed twice.
    let is_done = matches!(text, Expr::ScalarFunction(function) if function.func == time_text());
    let is_text = match &data_type {
        DataType::Dictionary(_, value) => value.is_string(),
        other => other.is_string(),
    };
    if is_done || !is_text {
        return None;
    }
    let text = text.clone();
    let text = if data_type == DataType::Utf8 { text } else { cast(text, DataType::Utf8) };
    Some(time_text().call(vec![text, lit("interval")]))
}
