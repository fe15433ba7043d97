//! The windows that a plan reads.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::FetchExec;

/// The windows that a plan reads, in the service's words, each with its zone and with whether it is the profile's default.
pub(crate) fn windows(plan: &Arc<dyn ExecutionPlan>) -> Vec<WindowRead> {
    let mut found: Vec<WindowRead> = Vec::new();
    collect(plan, &mut found);
    found
}

/// A window that a plan reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowRead {
    /// The service's words for it.
    pub words: String,
    /// The zone that is sent along.
    pub timezone: Option<String>,
    /// Whether it is read because the query bounds no time.
    pub default: bool,
}

fn collect(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<WindowRead>) {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        let default = scan.default_window().is_some();
        // Those that a subquery gives are known when the query runs.
        let known: &[String] = if scan.config.late.bounds.is_empty() { scan.requests.windows() } else { &[] };
        for words in known {
            let window = WindowRead { words: words.clone(), timezone: scan.requests.sent().timezone.clone(), default };
            if !found.contains(&window) {
                found.push(window);
            }
        }
    }
    plan.children().into_iter().for_each(|child| collect(child, found));
}
