//! Fields of intervals and of differences of two times, for which the engine returns totals. See
//! [`functions`](crate::functions), `interval_part`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::functions::{TypeIn, has_interval_part, interval_part};

/// See the module's documentation. Runs once the types of operands are known.
#[derive(Debug)]
pub(super) struct IntervalFields;

impl AnalyzerRule for IntervalFields {
    fn name(&self) -> &str {
        "savedsearch_interval_fields"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, schema| Ok(of_interval(expr, schema)), |plan| Ok(Transformed::no(plan)))
    }
}

fn of_interval(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(function) if function.func.name() == "date_part" && is_part(&function.args, schema) => {
            Transformed::yes(interval_part().call(function.args))
        }
        other => Transformed::no(other),
    }
}

fn is_part(args: &[Expr], schema: &DFSchema) -> bool {
    let [Expr::Literal(field, _), value] = args else { return false };
    field.try_as_str().flatten().is_some_and(has_interval_part)
        && matches!(value.type_in(schema), Ok(DataType::Interval(_) | DataType::Duration(_)))
}
