//! Local sorting of full scans that request one of the service's sort orders other than that of time.
//!
//! If the service sorts by reach, mentions of equal reach may change places from page to page, and nothing shows if one was
//! missed between two pages. In the order of time, the scan can prove that it is complete. With a limit, the service's sort
//! order saves requests, because the first rows are on the first pages. Without a limit, all pages are read in any case, so
//! they are read in the order of time and sorted locally. The same is done if a limit is deeper than paging reaches.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::FetchExec;

/// See the module's documentation. Runs after the rules that push sort orders and limits down to the scans.
#[derive(Debug)]
pub(super) struct SortHere;

impl PhysicalOptimizerRule for SortHere {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            // Below a limit a scan may end early, which only a sort order of the service allows.
            if plan.fetch().is_some() && plan.downcast_ref::<FetchExec>().is_none() {
                return Ok(Transformed::new(plan, false, TreeNodeRecursion::Jump));
            }
            match plan.downcast_ref::<FetchExec>().map(FetchExec::sorted_here).transpose()?.flatten() {
                Some(sorted) => Ok(Transformed::new(sorted, true, TreeNodeRecursion::Jump)),
                None => Ok(Transformed::no(plan)),
            }
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "savedsearch_sort_here"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
