//! Plans in which the keys of tables are hidden, because they unnest arrays.
//!
//! `unnest` returns a row for each item, so a key of its input does not identify a row of its output. The engine keeps the
//! key. It then drops a DISTINCT, and groups by more columns than requested: `SELECT DISTINCT aid FROM (SELECT aid,
//! unnest(kinds) FROM saved_searches)`.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, TableScan, TableScanBuilder};

use super::ApiTable;

/// Returns a plan without the keys of tables if it unnests; any other plan as it is.
pub(crate) fn without_unnested_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut unnests = false;
    plan.apply_with_subqueries(|node| {
        unnests = matches!(node, LogicalPlan::Unnest(_));
        Ok(if unnests { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !unnests {
        return Ok(plan);
    }
    let hidden = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::TableScan(scan) => match ApiTable::of(&scan) {
            Some(table) => {
                let source = provider_as_source(Arc::new(table.without_key()));
                let TableScan { table_name, projection, filters, fetch, .. } = scan;
                let scan = TableScanBuilder::new(table_name, source).with_projection(projection);
                let scan = scan.with_filters(filters).with_fetch(fetch).build()?;
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            None => Ok(Transformed::no(LogicalPlan::TableScan(scan))),
        },
        other => other.recompute_schema().map(Transformed::yes),
    })?;
    Ok(hidden.data)
}
