//! Conditions on rows that are given as a text of their own, such as those of watch rules.
//!
//! ```text
//! count > 3 * mean ─▶ expression ─▶ SELECT expression FROM rows ─▶ plan: projections of the rows ─▶ one value for each row
//! ```
//!
//! Invariant: a condition has one value for each row, which depends on that row alone. A plan with any other operator is refused,
//! whichever function or subquery needs it, and so are random functions.

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, TableReference};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, SelectItem, Statement as Ast, TableWithJoins};

use super::nodes::{query_of, quoted, table_of};
use super::parse::{check_depth, parse_expression};
use super::planning_turn::PlanningTurn;
use super::statement::plan_statement;
use crate::error::{Error, ErrorKind};

/// Name of the rows. No table of a profile has it.
const ROWS: &str = "rows of a condition";

/// Returns the values of a condition in SQL for these rows, in their order. The session is used for nothing else.
///
/// # Errors
/// Those of [`sql`](super::sql); [`ErrorKind::Query`] for a condition that does not have one value of type Boolean for each row.
pub(crate) async fn condition(context: &SessionContext, text: &str, rows: RecordBatch) -> Result<DataFrame> {
    // In their order.
    context.state_ref().write().config_mut().options_mut().execution.target_partitions = 1;
    context.register_batch(TableReference::bare(ROWS), rows)?;
    let item = SelectItem::ExprWithAlias { expr: parse_expression(text)?, alias: Ident::new("holds") };
    let relation = table_of(ObjectName::from(vec![quoted(ROWS)]), None);
    let query = query_of(vec![item], vec![TableWithJoins { relation, joins: Vec::new() }]);
    let statement = Statement::Statement(Box::new(Ast::Query(query)));
    check_depth([&statement])?;
    let state = context.state();
    let plan = plan_statement(&PlanningTurn::unbounded(), &state, statement).await?;
    let kind = plan.schema().field(0).data_type();
    if *kind != DataType::Boolean {
        return Err(DataFusionError::Plan(format!("expected a condition, found a value of type {kind}")));
    }
    check_of_one_row(&plan)?;
    Ok(DataFrame::new(state, plan))
}

/// Refuses the plan of a condition whose value for a row depends on more than that row.
fn check_of_one_row(plan: &LogicalPlan) -> Result<()> {
    let mut of_one_row = true;
    plan.apply_with_subqueries(|node| {
        let reads_rows =
            matches!(node, LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::TableScan(_));
        of_one_row &= reads_rows && !node.expressions().iter().any(Expr::is_volatile);
        Ok(if of_one_row { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    if of_one_row {
        return Ok(());
    }
    let what = "a condition has one value for each row, so window and aggregate functions, subqueries, `unnest` and random functions \
                are not allowed";
    Err(Error::new(ErrorKind::Query, what).into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};

    use super::*;
    use crate::cases::each_async;

    async fn values(text: &str) -> Result<Vec<Option<bool>>> {
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(7)]));
        let rows = RecordBatch::try_from_iter_with_nullable([("count", counts, true)])?;
        let batches = condition(&SessionContext::new(), text, rows).await?.collect().await?;
        Ok(batches.iter().flat_map(|batch| batch.column(0).as_boolean().iter()).collect())
    }

    #[tokio::test]
    async fn a_condition_has_one_value_for_each_row() {
        let cases = [
            ("count > 5", [Some(false), None, Some(true)]),
            ("count > 5 -- a comment", [Some(false), None, Some(true)]),
            ("CASE WHEN count IS NULL THEN true ELSE count IN (3, 4) END", [Some(true), Some(true), Some(false)]),
            ("now() IS NOT NULL", [Some(true); 3]),
        ];
        each_async(cases, async |(text, expected)| {
            assert_eq!(values(text).await.expect(text), expected, "{text}");
        })
        .await;
    }

    #[tokio::test]
    async fn a_condition_on_more_than_a_row_is_refused() {
        let cases = [
            "rank() OVER (ORDER BY count DESC) = 1",
            "count > lag(count) OVER (ORDER BY count)",
            "max(count) > 5",
            "count > (SELECT max(x) FROM (VALUES (1), (5)) AS t(x))",
            "EXISTS (SELECT x FROM (VALUES (1), (5)) AS t(x) WHERE x > 1)",
            "count IN (SELECT x FROM (VALUES (1), (5)) AS t(x))",
            "unnest([true, false])",
            "random() < 0.5",
        ];
        each_async(cases, async |text| {
            let error = values(text).await.expect_err(text).to_string();
            assert!(error.contains("a condition has one value for each row"), "{text}: {error}");
        })
        .await;
        for (text, expected) in [
            ("count > avg(count)", ""),
            ("count + 1", "expected a condition, found a value of type Int64"),
            ("count > 1, true", "end of expression"),
            ("count > 1; DROP TABLE t", "end of expression"),
            ("true) FROM t --", "end of expression"),
            ("", ""),
        ] {
            let error = values(text).await.expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
