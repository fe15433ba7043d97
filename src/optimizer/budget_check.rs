//! Tells each scan what all scans of the plan take together, so that too much is refused before the first request; and
//! refuses those of which nothing says when their range begins, now that all filters have reached them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::{FetchExec, plan_cost};

/// See the module's documentation. It changes no node, since filters may refer to them by now.
#[derive(Debug)]
pub(super) struct BudgetCheck;

impl PhysicalOptimizerRule for BudgetCheck {
    fn name(&self) -> &'static str {
        "savedsearch_budget_check"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let requests = plan_cost(&plan).at_least;
        plan.apply(|node| {
            if let Some(scan) = node.downcast_ref::<FetchExec>() {
                scan.check_bounds()?;
                scan.announce(requests);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(plan)
    }
}
