//! What a plan has cost so far, summed over its scans.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

/// What the scans of a plan have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// Requests issued, retries included.
    pub requests: u64,
    /// Requests that had to be repeated.
    pub retries: u64,
    /// Milliseconds of waiting for the limiter and between attempts.
    pub wait_ms: u64,
    /// Windows of which not all mentions came.
    pub incomplete: u64,
}

/// What a plan has cost so far.
pub fn spent(plan: &Arc<dyn ExecutionPlan>) -> Spent {
    let of = |name: &str| {
        let metric = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
        metric.map_or(0, |value| value.as_usize() as u64)
    };
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
