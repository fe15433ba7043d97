//! Struct literals. The engine's planner builds them from its own functions, not from the session's, and inspects their
//! types while planning; nested types grow exponentially, as values do.

use std::sync::Arc;

use super::demand::Calls;
use super::function::bounded;
use datafusion::common::{DFSchema, Result};
use datafusion::functions::core::{named_struct, r#struct};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawDictionaryExpr};
use datafusion::logical_expr::{Expr, ScalarUDF};

/// Plans `struct(…)`, `STRUCT<…>(…)` and `{…}` with bounded functions.
#[derive(Debug)]
pub(super) struct BoundedLiterals;

impl ExprPlanner for BoundedLiterals {
    fn plan_struct_literal(&self, args: Vec<Expr>, is_named_struct: bool) -> Result<PlannerResult<Vec<Expr>>> {
        let function = if is_named_struct { named_struct() } else { r#struct() };
        Ok(PlannerResult::Planned(call(function, args)))
    }

    fn plan_dictionary_literal(
        &self,
        expr: RawDictionaryExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawDictionaryExpr>> {
        let args = expr.keys.into_iter().zip(expr.values).flat_map(|(key, value)| [key, value]);
        Ok(PlannerResult::Planned(call(named_struct(), args.collect())))
    }
}

fn call(function: Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
    let function = bounded(&function, Calls::ONE).map_or(function, Arc::new);
    Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
}
