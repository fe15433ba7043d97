//! Full scans in an order of the service other than that of time, sorted here instead.
//!
//! Where the service sorts by reach, mentions of equal reach may change places from page to page, and nothing shows whether one
//! slipped between two of them; in the order of time the scan can prove that it has all. A limit makes the service's order
//! worth its price: the first rows cost the first pages. Without one all pages are read in any case, so they are read in the
//! order that proves the most and sorted here. The same holds for a limit that lies deeper than paging reaches.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::FetchExec;

/// See the module's documentation. Runs behind the rules that carry orders and limits down to the scans.
#[derive(Debug)]
pub(super) struct SortHere;

impl PhysicalOptimizerRule for SortHere {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            // Somewhere above a limit a scan may end early, which an order of the service allows.
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
