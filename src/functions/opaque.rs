//! A value that the engine's optimizer must not recognize.
//!
//! The simplifier merges lists of one operand: `x IN ('a') AND x IN ('b')` becomes false, although it is NULL if `x` is
//! NULL. If that makes a difference, one of the operands is hidden.
//!
//! The filter pushdown moves a condition without columns to any place. With a column as a further argument, the condition
//! stays above the operator that computes the column.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// `opaque(x, …)`: returns `x`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Opaque {
    signature: Signature,
}

impl Opaque {
    /// Creates the function.
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Self::with(Volatility::Immutable)
    }

    fn with(volatility: Volatility) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::variadic_any(volatility) }))
    }

    /// Returns a call of the function.
    pub(crate) fn of(args: Vec<Expr>) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(Self::udf(), args))
    }

    /// Returns a value that the optimizer must take for one that may be NULL. A constant is not computed while planning, which
    /// would make it a literal again.
    pub(crate) fn nullable(value: Expr) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(Self::with(Volatility::Volatile), vec![value]))
    }

    /// True if the first column of a plan is a call of the function under a name.
    pub(crate) fn hides_first(plan: &LogicalPlan) -> bool {
        let LogicalPlan::Projection(projection) = plan else { return false };
        let Some(Expr::Alias(alias)) = projection.expr.first() else { return false };
        matches!(alias.expr.as_ref(), Expr::ScalarFunction(call) if call.func.inner().downcast_ref::<Self>().is_some())
    }
}

impl ScalarUDFImpl for Opaque {
    fn name(&self) -> &'static str {
        "opaque"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [value, ..] => Ok(value.clone()),
            [] => plan_err!("opaque takes an argument"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => plan_err!("opaque takes an argument"),
        }
    }
}
