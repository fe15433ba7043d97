//! Facts about a statement that only its caller (the shell or a server) knows: its kind, for its span, and if its rows are
//! fetched in parts.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::logical_expr::LogicalPlan;

use crate::client::QuerySpan;

/// Kind of a statement that returns rows, as its span names it.
pub(crate) fn statement_kind(plan: &LogicalPlan) -> &'static str {
    match plan {
        LogicalPlan::Explain(_) => "explain",
        LogicalPlan::Analyze(_) => "explain_analyze",
        _ => "query",
    }
}

/// Puts the scans of a task into the span of their statement. Operators run inputs on tasks of their own, so the span
/// travels in the context of the task and not on a thread.
pub(crate) fn in_span(task: Arc<TaskContext>, span: &Arc<QuerySpan>) -> Arc<TaskContext> {
    match Arc::try_unwrap(task) {
        Ok(task) => {
            let config = task.session_config().clone().with_extension(Arc::clone(span));
            Arc::new(task.with_session_config(config))
        }
        // Somebody else may run another statement with it.
        Err(shared) => shared,
    }
}

/// Marks a task whose rows are fetched in parts, so that its scans request pages as they are wanted.
#[derive(Debug)]
pub(super) struct InParts;

/// Marks a task as [`InParts`], with small batches.
#[cfg(feature = "postgres")]
pub(crate) fn in_parts(task: Arc<TaskContext>) -> Arc<TaskContext> {
    const BATCH: usize = 16;
    match Arc::try_unwrap(task) {
        Ok(task) => {
            let config = task.session_config().clone().with_extension(Arc::new(InParts)).with_batch_size(BATCH);
            Arc::new(task.with_session_config(config))
        }
        Err(shared) => shared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_travels_with_the_task_that_it_was_started_for() {
        let span = QuerySpan::start(Some("query"));
        let found = |task: &TaskContext| task.session_config().get_extension::<QuerySpan>();
        let own = in_span(Arc::new(TaskContext::default()), &span);
        assert!(found(&own).is_some_and(|found| Arc::ptr_eq(&found, &span)));
        let shared = Arc::new(TaskContext::default());
        assert!(found(&in_span(Arc::clone(&shared), &span)).is_none());
    }
}
