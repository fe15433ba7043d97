//! Filters of aggregates, combined into a filter of their input, if each of them bounds the time.
//!
//! ```text
//! Aggregate count(*) FILTER (t >= a), count(*) FILTER (t >= b AND …)
//!   mentions                                                          ─▶  the same over Filter (t >= a OR t >= b)
//! ```
//!
//! In an aggregate without groups, rows that satisfy none of the filters change nothing. The filters are the only bounds on
//! the time in the query; without this rule, the scan would read its default window instead.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::pushdown::{TimeColumn, earliest};
use crate::table::ApiTable;

/// See the module's documentation. Runs before the engine's rules, which push the filter down to the scan.
#[derive(Debug)]
pub(super) struct FilteredAggregates;

impl OptimizerRule for FilteredAggregates {
    fn name(&self) -> &'static str {
        "savedsearch_filtered_aggregates"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        if !aggregate.group_expr.is_empty() || aggregate.aggr_expr.is_empty() {
            return Ok(Transformed::no(plan));
        }
        let Some(scan) = scan_below(&aggregate.input) else { return Ok(Transformed::no(plan)) };
        let Some(table) = ApiTable::of(scan) else { return Ok(Transformed::no(plan)) };
        // Once the filter has reached the scan, its time is bounded.
        let Some(time) = TimeColumn::of(table.spec()).filter(|_| !table.is_bounded_by(&scan.filters)) else {
            return Ok(Transformed::no(plan));
        };
        let bounds: Option<Vec<Expr>> = aggregate.aggr_expr.iter().map(|expr| time_bound(expr, time)).collect();
        let Some(predicate) = bounds.and_then(disjunction) else { return Ok(Transformed::no(plan)) };
        let input = LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).filter(predicate)?.build()?;
        Ok(Transformed::yes(plan.with_new_exprs(plan.expressions(), vec![input])?))
    }
}

/// Returns the scan that an aggregate reads, if nothing in between renames its columns.
fn scan_below(plan: &Arc<LogicalPlan>) -> Option<&TableScan> {
    match plan.as_ref() {
        LogicalPlan::TableScan(scan) => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => scan_below(&alias.input),
        LogicalPlan::Filter(filter) => scan_below(&filter.input),
        _ => None,
    }
}

/// Returns the part of an aggregate's filter that bounds the time.
fn time_bound(expr: &Expr, time: TimeColumn<'_>) -> Option<Expr> {
    match expr {
        Expr::Alias(alias) => time_bound(&alias.expr, time),
        Expr::AggregateFunction(function) => {
            let filter = function.params.filter.as_deref()?;
            let bounds = split_conjunction(filter).into_iter().filter(|part| earliest(part, time).is_some());
            conjunction(bounds.cloned()).filter(|bounds| !bounds.is_volatile())
        }
        _ => None,
    }
}
