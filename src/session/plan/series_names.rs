//! Table functions whose calls are different tables.
//!
//! The engine names the rows of `generate_series(1, 3)` as those of `generate_series(1, 5)`, and takes two subqueries over them for
//! the same one, so that both have the value of the first. Here each call has a name of its own, below the one that the statement
//! knows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, TableScanBuilder};

/// Functions whose rows the engine names without parentheses if they are called in LATERAL.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// Gives each call in a plan a name of its own.
///
/// # Errors
/// Those of building a plan.
pub(in crate::session) fn with_own_series(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut calls = 0;
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let name = scan.table_name.table();
        if scan.table_name.schema().is_some() || !(name.ends_with("()") || SERIES.contains(&name)) {
            return Ok(Transformed::no(node));
        }
        calls += 1;
        let own = TableReference::bare(format!("{name}#{calls}"));
        let own = TableScanBuilder::new(own, Arc::clone(&scan.source))
            .with_projection(scan.projection.clone())
            .with_filters(scan.filters.clone())
            .with_fetch(scan.fetch)
            .build()?;
        let named = LogicalPlanBuilder::from(LogicalPlan::TableScan(own)).alias(scan.table_name.clone())?;
        named.build().map(Transformed::yes)
    })
    .data()
}
