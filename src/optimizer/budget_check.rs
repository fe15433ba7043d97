//! Announces the total requests of the plan to each scan, so that an excess is refused before the first request. Also
//! refuses scans whose time range has no beginning, now that all filters have reached them.
//!
//! The requests depend on what a store has. A rule cannot pause, so the planner of the session announces them once all rules have
//! been applied.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::{FetchExec, aside, least_requests, narrower_of};

/// Refuses scans without a beginning. It replaces no node, since filters may already refer to them.
#[derive(Debug)]
pub(super) struct BoundsCheck;

impl PhysicalOptimizerRule for BoundsCheck {
    fn name(&self) -> &'static str {
        "savedsearch_bounds_check"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        each_scan(&plan, FetchExec::check_bounds)?;
        Ok(plan)
    }
}

/// Announces the requests of all scans of a plan to each of them.
///
/// # Errors
/// [`ErrorKind::Store`](crate::error::ErrorKind::Store) if the work is aborted.
pub(super) async fn announce_requests(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let (requests, narrower) = aside(plan, |plan| (least_requests(plan), narrower_of(plan))).await?;
    each_scan(plan, |scan| {
        scan.set_least_requests(requests);
        scan.narrow_by(narrower);
        Ok(())
    })
}

fn each_scan(plan: &Arc<dyn ExecutionPlan>, mut visit: impl FnMut(&FetchExec) -> Result<()>) -> Result<()> {
    plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<FetchExec>() {
            visit(scan)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
