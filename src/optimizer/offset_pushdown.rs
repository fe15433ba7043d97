//! `LIMIT 10 OFFSET 500` over one saved search, if all of its rows satisfy the query: the service starts at row 500.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use crate::exec::FetchExec;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OffsetPushdown;

impl PhysicalOptimizerRule for OffsetPushdown {
    fn name(&self) -> &'static str {
        "savedsearch_offset_pushdown"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| {
            let limit = node.downcast_ref::<GlobalLimitExec>().filter(|limit| limit.skip() > 0);
            let better = limit.map(|limit| skipping(limit.input(), limit.skip(), limit.fetch())).transpose()?;
            Ok(better.flatten().map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    }
}

/// Returns the plan without its first rows; `None` if the scan cannot skip them. Projections keep the number of rows.
fn skipping(
    plan: &Arc<dyn ExecutionPlan>,
    skip: usize,
    fetch: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        return Ok(scan.skipping(skip, fetch)?.map(|scan| Arc::new(scan) as _));
    }
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    skipping(projection.input(), skip, fetch)?
        .map(|input| {
            Arc::clone(plan)
                .replace_children(vec![input], ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        })
        .transpose()
}
