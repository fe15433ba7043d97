//! Answers an aggregate from statistics only if the engine finds that aggregate, not one below it, and if the statistics are right.
//!
//! The engine's rule looks for the first step of an aggregate without groups. If that step has a FILTER, the rule goes on to the
//! aggregate below, and returns the results of that one instead: `SELECT count(DISTINCT n) FILTER (WHERE …) FROM (SELECT max(x) AS n
//! …)` fails with "does not match with the projection expression".
//!
//! The statistics of a literal column have its value once, also if that is NULL or if there are no rows: `count(DISTINCT e)` of `SELECT
//! NULL AS e …` is then 1, a sum over no rows 0, and the smallest value of a union that of a branch without rows. So only counts
//! without DISTINCT are answered from statistics, and the smallest and the largest value of an input that is no union or join.
//!
//! The rule is not applied to a plan with another aggregate, but to its parts.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};

/// The engine's rule, applied to plans that it reads correctly.
#[derive(Debug)]
pub(super) struct SoundStatistics {
    inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl SoundStatistics {
    /// Name of the engine's rule.
    pub(super) const INNER: &'static str = "aggregate_statistics";

    /// Wraps the engine's rule.
    pub(super) fn over(inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { inner }
    }
}

impl PhysicalOptimizerRule for SoundStatistics {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        match plan.exists(|node| Ok(is_misread(node)))? {
            true => plan.map_children(|child| self.optimize(child, config).map(Transformed::yes)).data(),
            false => self.inner.optimize(plan, config),
        }
    }
}

/// True for a step of an aggregate that the engine would answer wrongly.
fn is_misread(node: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(step) = node.downcast_ref::<AggregateExec>() else { return false };
    if !step.group_expr().is_empty() {
        return false;
    }
    match step.mode().input_mode() {
        AggregateInputMode::Raw => has_wrong_statistics(step),
        AggregateInputMode::Partial => passes_over_first_step(step),
    }
}

/// True for a first step for which the statistics of its input may be wrong.
fn has_wrong_statistics(first: &AggregateExec) -> bool {
    let one_input = is_of_one_input(first.input());
    !first.aggr_expr().iter().all(|function| match function.fun().name() {
        _ if function.is_distinct() => false,
        "count" => true,
        "min" | "max" => one_input,
        _ => false,
    })
}

/// True for a plan without unions and joins.
fn is_of_one_input(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children()[..] {
        [] => true,
        [input] => is_of_one_input(input),
        _ => false,
    }
}

/// True for the last step of an aggregate whose first step the engine passes over.
fn passes_over_first_step(last: &AggregateExec) -> bool {
    let mut below = last.input();
    loop {
        if let Some(step) = below.downcast_ref::<AggregateExec>()
            && step.mode().input_mode() == AggregateInputMode::Raw
        {
            return !step.group_expr().is_empty() || step.filter_expr().iter().any(Option::is_some);
        }
        match below.children()[..] {
            [child] => below = child,
            _ => return false,
        }
    }
}
