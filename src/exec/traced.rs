//! The start of a statement, which admits it: it gets the owner of its query, with what only its caller (the shell, a driver or a
//! server) knows of it: its kind, for its span, and if its rows are fetched in parts.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::TaskContext;
#[cfg(any(feature = "host", feature = "shell"))]
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};

use crate::client::QuerySpan;
use crate::connection::QueryContext;

/// Kind of a statement that returns rows, as its span names it.
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) fn statement_kind(plan: &LogicalPlan) -> &'static str {
    match plan {
        LogicalPlan::Explain(_) => "explain",
        LogicalPlan::Analyze(_) => "explain_analyze",
        _ => "query",
    }
}

/// Starts a statement, and returns its rows. `span` is that of the statement; without one, its scans start one. All statements start
/// here: a plan that is run elsewhere has no span, and is not admitted.
///
/// # Errors
/// Those of the plan's operators.
pub(crate) fn start(
    plan: &Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    span: Option<&Arc<QuerySpan>>,
) -> Result<SendableRecordBatchStream> {
    execute_stream(Arc::clone(plan), admitted(task, span))
}

/// As [`start`], with the owner of the query, which is asked about it once its rows were read.
///
/// # Errors
/// Those of the plan's operators.
#[cfg(feature = "store")]
pub(crate) fn start_with_owner(
    plan: &Arc<dyn ExecutionPlan>,
    task: TaskContext,
) -> Result<(SendableRecordBatchStream, Arc<QueryContext>)> {
    let (owner, task) = owned(task, None);
    Ok((execute_stream(Arc::clone(plan), task)?, owner))
}

/// Admits the statement of a task: all of its scans find the owner of their query in the task. Operators run inputs on tasks of their
/// own, so the owner travels in the context of the task and not on a thread.
pub(super) fn admitted(task: Arc<TaskContext>, span: Option<&Arc<QuerySpan>>) -> Arc<TaskContext> {
    match Arc::try_unwrap(task) {
        Ok(task) => owned(task, span).1,
        // Somebody else may run another statement with it.
        Err(shared) => shared,
    }
}

/// A task with the owner of its query.
fn owned(task: TaskContext, span: Option<&Arc<QuerySpan>>) -> (Arc<QueryContext>, Arc<TaskContext>) {
    let owner = Arc::new(QueryContext::new(&task, span.cloned()));
    let config = task.session_config().clone().with_extension(Arc::clone(&owner));
    (owner, Arc::new(task.with_session_config(config)))
}

/// Marks a task whose rows are fetched in parts, so that its scans request pages as they are wanted.
#[cfg(any(feature = "host", feature = "shell"))]
#[derive(Debug)]
pub(super) struct InParts;

/// Marks a task as [`InParts`], with small batches.
#[cfg(feature = "host")]
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
    fn a_statement_is_admitted_with_its_span_in_the_task_that_it_was_started_for() {
        let span = QuerySpan::start(Some("query"));
        let found = |task: &TaskContext| task.session_config().get_extension::<QueryContext>();
        let own = admitted(Arc::new(TaskContext::default()), Some(&span));
        assert!(found(&own).is_some_and(|owner| Arc::ptr_eq(&owner.span(), &span)));
        let without = admitted(Arc::new(TaskContext::default()), None);
        assert!(found(&without).is_some_and(|owner| !Arc::ptr_eq(&owner.span(), &span)));
        let shared = Arc::new(TaskContext::default());
        assert!(found(&admitted(Arc::clone(&shared), Some(&span))).is_none());
    }
}
