//! Announces the total requests of the plan to each scan, so that an excess is refused before the first request. Also
//! refuses scans whose time range has no beginning, now that all filters have reached them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::{FetchExec, least_requests, narrower_of};

/// See the module's documentation. It replaces no node, since filters may already refer to them.
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
        let (requests, narrower) = (least_requests(&plan), narrower_of(&plan));
        plan.apply(|node| {
            if let Some(scan) = node.downcast_ref::<FetchExec>() {
                scan.check_bounds()?;
                scan.set_least_requests(requests);
                scan.narrow_by(narrower);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(plan)
    }
}
