//! Keeps conditions above an aggregate that has a row even for an empty input: one without GROUP BY, or by grouping sets.
//!
//! The engine pushes a condition below an aggregate if all of its columns are keys. A condition that has lost its columns is one of them:
//! `n NOT IN (NULL, 7)` is never true and becomes a constant, also on its way through a union. Below such an aggregate it removes the
//! rows to be counted, and the row with the count 0 remains. No other condition can be pushed below such an aggregate, so the engine's
//! rule is not applied there at all.
//!
//! `aggregate_filters` hides conditions that are without columns from the start.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The engine's rule, which does not see filters of such aggregates. See the module's documentation.
#[derive(Debug)]
pub(super) struct SoundFilters {
    inner: Rule,
}

impl SoundFilters {
    /// Name of the engine's rule.
    pub(super) const INNER: &'static str = "push_down_filter";

    /// Wraps the engine's rule.
    pub(super) fn over(inner: Rule) -> Self {
        Self { inner }
    }
}

impl OptimizerRule for SoundFilters {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if filters_total(&plan) { Ok(Transformed::no(plan)) } else { self.inner.rewrite(plan, config) }
    }
}

/// True for a filter of an aggregate whose keys, if it has any, are grouping sets. There may be filters in between, which the engine
/// would combine.
fn filters_total(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    match filter.input.as_ref() {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.iter().all(|key| matches!(key, Expr::GroupingSet(_))),
        below => filters_total(below),
    }
}
