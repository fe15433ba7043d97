//! The time windows that a plan reads, and notes about what it reads.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::FetchExec;
use crate::profile::{TableKind, Zone};
use crate::pushdown::SummaryRows;

/// Returns the time windows that a plan reads, as the service writes them.
pub(crate) fn windows(plan: &Arc<dyn ExecutionPlan>) -> Vec<WindowRead> {
    let mut found: Vec<WindowRead> = Vec::new();
    collect(plan, &mut found);
    found
}

/// Returns the notes about what a plan reads. They are logged when it runs.
#[cfg(feature = "flight")]
pub(crate) fn notes(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let mut found = plan.downcast_ref::<FetchExec>().map(FetchExec::notes).unwrap_or_default();
    found.extend(plan.children().into_iter().flat_map(notes));
    found
}

/// A time window that a plan reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowRead {
    /// The window as the service writes it.
    pub words: String,
    /// The zone that is sent with it.
    pub timezone: Option<String>,
    /// Set if it is the default window, read because the query has no time filter.
    pub default: bool,
    /// Column with the time of its rows; `None` if the table has none.
    pub time: Option<String>,
    /// The zone whose days the rows count; `None` for other rows.
    pub days: Option<Zone>,
}

fn collect(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<WindowRead>) {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        let default = scan.default_window().is_some();
        // Windows set by a subquery are known only at run time.
        let known = scan.requests.windows().filter(|_| scan.config.late.bounds.is_empty());
        let named = scan.requests.sent().named.as_deref();
        let days = counted_days(scan);
        for words in known {
            let words = named.unwrap_or(words);
            let (timezone, time) = (scan.requests.sent().timezone.clone(), scan.config.spec.time.clone());
            let window = WindowRead { words: words.to_owned(), timezone, default, time, days };
            if !found.contains(&window) {
                found.push(window);
            }
        }
    }
    plan.children().into_iter().for_each(|child| collect(child, found));
}

/// The zone whose days the rows of a scan count.
fn counted_days(scan: &FetchExec) -> Option<Zone> {
    if let Some(SummaryRows::Days(zone)) = scan.config.summary().map(|summary| &summary.rows) {
        return Some(Zone::Named(*zone));
    }
    let other_buckets = scan.config.connection.profile().counts.as_ref().is_some_and(|counts| !counts.days);
    let timeline = scan.config.spec.kind == TableKind::Volume && !other_buckets;
    scan.requests.sent().timezone.as_deref().filter(|_| timeline)?.parse().ok()
}
