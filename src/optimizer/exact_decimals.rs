//! Casts of floating-point numbers to decimals, as a function. See [`functions`](crate::functions).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_values;
use crate::functions::{TypeIn, exact_decimal};

/// See the module's documentation. Runs after type coercion, which adds such casts.
#[derive(Debug)]
pub(super) struct ExactDecimals;

impl AnalyzerRule for ExactDecimals {
    fn name(&self) -> &str {
        "savedsearch_exact_decimals"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_values(plan, exact)
    }
}

fn exact(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr: number, field }) = &expr else { return Ok(Transformed::no(expr)) };
    let DataType::Decimal128(precision, scale) = *field.data_type() else { return Ok(Transformed::no(expr)) };
    if !number.type_in(schema).is_ok_and(|data_type| data_type.is_floating()) {
        return Ok(Transformed::no(expr));
    }
    let decimal = lit(ScalarValue::Decimal128(None, precision, scale));
    Ok(Transformed::yes(exact_decimal().call(vec![number.as_ref().clone(), decimal])))
}
