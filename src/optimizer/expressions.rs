//! Rewrites of all expressions of a plan, for rules of analysis.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use crate::session::check_copies;

/// Calls `each` with every expression of a plan and of its subqueries, inner ones first, and with the columns that it may use.
/// Columns of results keep their names.
///
/// # Errors
/// Those of `each`, and [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) where copies of copies grow too much.
pub(super) fn rewrite_expressions(
    plan: LogicalPlan,
    each: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
    node: impl Fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let changed = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|expr| {
                let changed = each(expr, &schema)?;
                if changed.transformed {
                    check_copies(&changed.data, 1)?;
                }
                Ok(changed)
            })?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })?;
        let changed = changed.transform_data(&node)?;
        if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    })
    .map(|transformed| transformed.data)
}

/// True for an operator that compares two values.
pub(super) fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
