//! Casts of decimals to integers and to decimals with fewer digits after the point, hidden from the simplifier.
//!
//! The engine moves a cast in a comparison to the literal: `x::bigint = 12` becomes `x = 12.00`, which is false for 12.60, although
//! `x::bigint` is 12 (#23095).
//!
//! Invariant: the rows stay the same.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_values;
use crate::functions::{Opaque, TypeIn};

/// See the module's documentation. Runs after type coercion, which adds casts.
#[derive(Debug)]
pub(super) struct NarrowedDecimals;

impl AnalyzerRule for NarrowedDecimals {
    fn name(&self) -> &'static str {
        "savedsearch_narrowed_decimals"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_values(plan, hidden)
    }
}

fn hidden(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (Expr::Cast(Cast { expr: number, field }) | Expr::TryCast(TryCast { expr: number, field })) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let is_constant = matches!(number.as_ref(), Expr::Literal(..));
    let loses = number.type_in(schema).is_ok_and(|from| loses_digits(&from, field.data_type()));
    Ok(if loses && !is_constant { Transformed::yes(Opaque::of(vec![expr])) } else { Transformed::no(expr) })
}

/// True if different values of the first type, a decimal, may be one of the second.
fn loses_digits(from: &DataType, to: &DataType) -> bool {
    let scale = |data_type: &DataType| match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    };
    let Some(scale_before) = scale(from) else { return false };
    match scale(to) {
        Some(scale_after) => scale_after < scale_before,
        None => to.is_integer() && scale_before > 0,
    }
}
