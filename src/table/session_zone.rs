//! Tables in the time zone of the session: instants have the type of that zone, so that the engine truncates, casts, extracts
//! and prints them by its days.
//!
//! Tables of a service need no cast: a scan decodes instants with the other type, and sort orders, time ranges and counts by
//! day reach the service as before. Other tables are cast, and so are the tables of views that were created in another zone.
//! A rule that rewrites each function was rejected, because it would have to know all functions.
//!
//! In UTC, the default, tables are not changed.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan, TableScanBuilder, cast};

use super::ApiTable;

/// Returns a plan that is not analyzed yet, with all tables in the zone.
pub(super) fn in_zone(plan: LogicalPlan, zone: &Arc<str>) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::TableScan(scan) => table_in_zone(scan, zone),
        other => Ok(Transformed::no(other)),
    })?;
    if !plan.transformed {
        return Ok(plan.data);
    }
    // From the tables upward: a node has the types of its inputs.
    let plan = plan.data.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::TableScan(_) => Ok(Transformed::no(plan)),
        other => other.recompute_schema().map(Transformed::yes),
    })?;
    Ok(plan.data)
}

fn table_in_zone(scan: TableScan, zone: &Arc<str>) -> Result<Transformed<LogicalPlan>> {
    let other = |kind: &DataType| matches!(kind, DataType::Timestamp(_, Some(known)) if known != zone);
    if !scan.projected_schema.fields().iter().any(|field| other(field.data_type())) {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    }
    if let Some(table) = ApiTable::of(&scan) {
        let TableScan { table_name, projection, filters, fetch, .. } = scan;
        let source = provider_as_source(Arc::new(table.in_zone(zone)));
        let scan = TableScanBuilder::new(table_name, source).with_projection(projection).with_filters(filters);
        let scan = scan.with_fetch(fetch).build()?;
        return Ok(Transformed::yes(LogicalPlan::TableScan(scan)));
    }
    let columns = scan.projected_schema.iter().map(|(qualifier, field)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        match field.data_type() {
            DataType::Timestamp(unit, Some(known)) if known != zone => {
                let shown = DataType::Timestamp(*unit, Some(Arc::clone(zone)));
                cast(column, shown).alias_qualified(qualifier.cloned(), field.name())
            }
            _ => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::TableScan(scan)).project(columns)?.build()?;
    Ok(Transformed::yes(plan))
}
