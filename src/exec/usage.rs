//! What a plan has cost so far, summed over its scans, and which windows it reads.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::FetchExec;

/// What the scans of a plan have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Requests issued, retries included.
    pub requests: u64,
    /// Requests that had to be repeated.
    pub retries: u64,
    /// Milliseconds of waiting for the limiter and between attempts.
    pub wait_ms: u64,
    /// Windows of which not all mentions came.
    pub incomplete: u64,
}

/// The windows that a plan reads, in the service's words, each with its zone and with whether it is the profile's default.
pub(crate) fn windows(plan: &Arc<dyn ExecutionPlan>) -> Vec<Window> {
    let mut found: Vec<Window> = Vec::new();
    collect(plan, &mut found);
    found
}

/// A window that a plan reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// The service's words for it.
    pub words: String,
    /// The zone that is sent along.
    pub timezone: Option<String>,
    /// Whether it is read because the query bounds no time.
    pub default: bool,
}

fn collect(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<Window>) {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        let default = scan.default_window().is_some();
        // Those that a subquery gives are known when the query runs.
        let known: &[String] = if scan.config.late.bounds.is_empty() { scan.requests.windows() } else { &[] };
        for words in known {
            let window = Window { words: words.clone(), timezone: scan.requests.sent().timezone.clone(), default };
            if !found.contains(&window) {
                found.push(window);
            }
        }
    }
    plan.children().into_iter().for_each(|child| collect(child, found));
}

/// What a plan has cost so far.
pub(crate) fn spent(plan: &Arc<dyn ExecutionPlan>) -> Spent {
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
