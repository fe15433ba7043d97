//! Operators that the engine does not have, or whose result does not fit the type that the engine gives it.
//!
//! - `a && b` on arrays is `array_has_any(a, b)`.
//! - `->`, `->>`, and in PostgreSQL's dialect `#>`, `#>>` and `?`, read JSON text.
//! - The difference of two unsigned integers, such as two row numbers, is a signed integer.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::functions_nested::expr_fn::array_has_any;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{ExprSchemable, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::json_operator;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        match expr.op {
            BinaryOperator::PGOverlap => Ok(PlannerResult::Planned(array_has_any(expr.left, expr.right))),
            BinaryOperator::Minus => {
                let unsigned = |side: &datafusion::logical_expr::Expr| {
                    side.get_type(schema).is_ok_and(|data_type| data_type.is_unsigned_integer())
                };
                if unsigned(&expr.left) && unsigned(&expr.right) {
                    let [left, right] = [expr.left, expr.right].map(|side| cast(side, DataType::Int64));
                    return Ok(PlannerResult::Planned(left - right));
                }
                Ok(PlannerResult::Original(expr))
            }
            _ => Ok(match json_operator(&expr.op, &expr.left, &expr.right) {
                Some(call) => PlannerResult::Planned(call),
                None => PlannerResult::Original(expr),
            }),
        }
    }
}
