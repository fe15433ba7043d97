//! Notes on orders, extremes and comparisons of times that are texts, because their form or their zone is not known: texts are compared
//! by their letters.

use std::collections::BTreeSet;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use crate::table::ApiTable;

/// Returns a note on each such column that a plan compares.
pub(super) fn texts_of_times(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut texts: BTreeSet<String> = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = ApiTable::of(scan)
        {
            let columns = table.spec().columns.iter().filter(|column| column.is_unzoned);
            texts.extend(columns.map(|column| column.name.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut compared: BTreeSet<String> = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        let sorts = matches!(node, LogicalPlan::Sort(_));
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if sorts || compares(part) {
                    let columns = part.column_refs().into_iter().map(|column| &column.name);
                    compared.extend(columns.filter(|name| texts.contains(*name)).cloned());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(compared.iter().map(|name| note_on(name)).collect())
}

/// True for an expression that compares values by their order.
fn compares(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => {
            matches!(binary.op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
        }
        Expr::Between(_) => true,
        Expr::AggregateFunction(function) => ["min", "max"].contains(&function.func.name()),
        _ => false,
    }
}

fn note_on(column: &str) -> String {
    format!(
        "`{column}` is compared by its letters, which need not be the order of time: it is a text, because the form or the zone of its \
         times is unknown"
    )
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::expr_fn::{count, max};
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn orders_and_extremes_are_comparisons() {
        assert!(compares(&col("a").gt_eq(lit("x"))) && compares(&col("a").between(lit("x"), lit("y"))));
        assert!(compares(&max(col("a"))) && !compares(&count(col("a"))) && !compares(&col("a").eq(lit("x"))));
    }
}
