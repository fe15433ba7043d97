//! Work on a plan that may read the catalog of a store, away from the threads that run tasks: its requests, and its cost.
//!
//! What EXPLAIN shows is written by the engine while it plans, which does not pause. It reads the catalog where it is, as does a
//! program that calls [`plan_cost`](super::plan_cost).

use std::sync::Arc;

#[cfg(feature = "store")]
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_plan::ExecutionPlan;
#[cfg(feature = "store")]
use tokio::runtime::Handle;

#[cfg(feature = "store")]
use super::FetchExec;
use crate::error::Result;
#[cfg(feature = "store")]
use crate::store::blocking;

/// Does work on a plan that may read the catalog of a store. If the plan has such a scan, it is done on a thread for such work: a
/// catalog on a server may take long to answer, and the threads of a runtime have other tasks.
///
/// # Errors
/// [`ErrorKind::Store`](crate::error::ErrorKind::Store) if the work is aborted.
#[cfg_attr(not(feature = "store"), allow(clippy::unused_async, reason = "without a store, nothing is waited for"))]
pub(crate) async fn aside<T: Send + 'static>(
    plan: &Arc<dyn ExecutionPlan>,
    work: impl FnOnce(&Arc<dyn ExecutionPlan>) -> T + Send + 'static,
) -> Result<T> {
    // A program may plan without a runtime.
    #[cfg(feature = "store")]
    if reads_catalog(plan) && Handle::try_current().is_ok() {
        let plan = Arc::clone(plan);
        return blocking(move || Ok(work(&plan))).await;
    }
    Ok(work(plan))
}

/// True for a plan with a scan that uses a store.
#[cfg(feature = "store")]
fn reads_catalog(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let uses = |node: &Arc<dyn ExecutionPlan>| {
        Ok(node.downcast_ref::<FetchExec>().is_some_and(|scan| scan.config.from_store.is_some()))
    };
    // The closure never fails.
    plan.exists(uses).unwrap_or(true)
}
