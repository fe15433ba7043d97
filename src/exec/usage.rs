//! Cost of a plan so far, summed over its scans.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

#[cfg(feature = "store")]
use super::counters::UNSTORED;

/// Cost of a plan's scans so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// Requests sent, retries included.
    pub requests: u64,
    /// Retried requests.
    pub retries: u64,
    /// Milliseconds in which limits of the service delayed requests; a time in which several of them waited counts once.
    pub wait_ms: u64,
    /// Windows with missing mentions.
    pub incomplete: u64,
}

/// Number of reads of a plan so far whose days are not stored, or not all of them, although they should be.
#[cfg(feature = "store")]
pub(crate) fn unstored(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    count(plan, UNSTORED) + plan.children().into_iter().map(unstored).sum::<u64>()
}

/// Returns what a plan has cost so far.
pub fn spent(plan: &Arc<dyn ExecutionPlan>) -> Spent {
    let of = |name: &str| count(plan, name);
    let own = Spent {
        requests: of("requests"),
        retries: of("retries"),
        wait_ms: of("wait_ms"),
        incomplete: of("incomplete"),
    };
    plan.children().into_iter().map(spent).fold(own, |sum, other| Spent {
        requests: sum.requests + other.requests,
        retries: sum.retries + other.retries,
        wait_ms: sum.wait_ms + other.wait_ms,
        incomplete: sum.incomplete + other.incomplete,
    })
}

/// Value of a counter of a plan, without its inputs.
fn count(plan: &Arc<dyn ExecutionPlan>, name: &str) -> u64 {
    let metric = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    metric.map_or(0, |value| value.as_usize() as u64)
}
