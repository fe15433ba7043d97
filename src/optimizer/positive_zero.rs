//! Zeros that are the result of an operation, without a sign. See [`functions`](crate::functions).
//!
//! Products, quotients, functions and text have negative zeros. Values that are passed on, such as those of columns, have none:
//! tables of services are read without them.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlan, Operator, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_values;
use crate::functions::{TypeIn, positive_zero};

/// Functions that return one of their arguments.
const PASSED_ON: [&str; 8] = ["coalesce", "greatest", "ifnull", "least", "nullif", "nvl", "nvl2", "opaque"];

/// See the module's documentation. Runs once operands have the type of the result.
#[derive(Debug)]
pub(super) struct PositiveZero;

impl AnalyzerRule for PositiveZero {
    fn name(&self) -> &str {
        "savedsearch_positive_zero"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_values(plan, |expr, schema| Ok(positive(expr, schema)))
    }
}

fn positive(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    // A plan may be analyzed twice.
    if let Expr::ScalarFunction(call) = &expr
        && call.func.name() == positive_zero().name()
        && let [inner @ Expr::ScalarFunction(again)] = call.args.as_slice()
        && again.func.name() == call.func.name()
    {
        return Transformed::yes(inner.clone());
    }
    let signed = match &expr {
        Expr::Literal(ScalarValue::Float64(Some(number)), metadata) if *number == 0.0 && number.is_sign_negative() => {
            return Transformed::yes(Expr::Literal(ScalarValue::Float64(Some(0.0)), metadata.clone()));
        }
        Expr::Negative(_)
        | Expr::BinaryExpr(BinaryExpr { op: Operator::Multiply | Operator::Divide | Operator::Modulo, .. }) => true,
        Expr::ScalarFunction(call) => {
            call.func.name() != positive_zero().name() && !PASSED_ON.contains(&call.func.name())
        }
        // A double may be too small for another type.
        Expr::Cast(Cast { expr: text, .. }) | Expr::TryCast(TryCast { expr: text, .. }) => {
            text.type_in(schema).is_ok_and(|data_type| data_type.is_string() || data_type.is_floating())
        }
        _ => false,
    };
    match signed && matches!(expr.type_in(schema), Ok(DataType::Float32 | DataType::Float64)) {
        true => Transformed::yes(positive_zero().call(vec![expr])),
        false => Transformed::no(expr),
    }
}
