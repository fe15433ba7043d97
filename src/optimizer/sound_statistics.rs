//! Answers an aggregate from statistics only if the engine finds that aggregate, and not one below it.
//!
//! The engine's rule looks for the first step of an aggregate without groups. If that step has a FILTER, the rule goes on to the
//! aggregate below, and returns the results of that one instead: `SELECT count(DISTINCT n) FILTER (WHERE …) FROM (SELECT max(x) AS n
//! …)` fails with "does not match with the projection expression". The rule is not applied to such a plan, but to its parts.

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

/// True for the last step of an aggregate whose first step the engine passes over.
fn is_misread(node: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(last) = node.downcast_ref::<AggregateExec>() else { return false };
    if last.mode().input_mode() != AggregateInputMode::Partial || !last.group_expr().is_empty() {
        return false;
    }
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
