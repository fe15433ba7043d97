//! Decides the requests of every scan of a query, once, as of one instant.
//!
//! Each scan gets a copy of its table that carries the plan. The other rules, the planner and the operator read that plan.
//! The engine repeats its rules until nothing changes. If the filters of a scan did not change, it keeps its plan; if they
//! did, it is planned again as of the same instant. If a query plan is kept and run again, its scans are planned again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::connection::Connection;
use crate::table::ApiTable;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct PlanScans;

impl OptimizerRule for PlanScans {
    fn name(&self) -> &'static str {
        "savedsearch_plan_scans"
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let options = config.options();
        let query = config.query_execution_start_time();
        let mut clocks = Clocks::of(&plan, query)?;
        plan.transform_down_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
            let Some(table) = ApiTable::of(scan) else { return Ok(Transformed::no(node)) };
            let now = || clocks.of_connection(table.connection());
            let planned = table.planned_as_of(&options, query, &scan.filters, now);
            if table.carried().is_some_and(|carried| Arc::ptr_eq(carried, &planned)) {
                return Ok(Transformed::no(node));
            }
            let source = provider_as_source(Arc::new(table.with_plan(planned)));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan.clone() })))
        })
    }
}

/// The instants that the scans of each connection are planned as of.
struct Clocks(Vec<(Arc<Connection>, DateTime<Utc>)>);

impl Clocks {
    /// Collects the instants of scans that have already been planned in this query.
    fn of(plan: &LogicalPlan, query: Option<DateTime<Utc>>) -> Result<Self> {
        let mut known = Vec::new();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(table) = ApiTable::of(scan)
                && let Some(planned) = table.carried().filter(|planned| planned.is_of_query(query))
            {
                known.push((Arc::clone(table.connection()), planned.now()));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Self(known))
    }

    fn of_connection(&mut self, connection: &Arc<Connection>) -> DateTime<Utc> {
        if let Some((_, now)) = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, connection)) {
            return *now;
        }
        let now = connection.now();
        self.0.push((Arc::clone(connection), now));
        now
    }
}
