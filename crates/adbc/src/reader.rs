//! Results: batches as they arrive. Dropping a reader ends its query. After a cancel it has no rows, also if some have arrived.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion_saved_search::embedded::{Failure, Rows, stopped};
use futures::executor::block_on;
use tokio_util::sync::CancellationToken;

use crate::error::failed;
use crate::runtime::check;
use crate::statement::Last;
use crate::target::Target;

/// The rows of a query.
pub(crate) struct Reader {
    schema: SchemaRef,
    first: Option<RecordBatch>,
    /// `None` once the last batch was returned.
    rows: Option<Rows>,
    /// Cancelled by the handles of the statement and of its connection.
    cancelled: CancellationToken,
    /// Receives the failure that the rows end with: an Arrow stream has no room for its parts.
    last: Arc<Mutex<Last>>,
    /// Keeps the demo data running.
    _target: Arc<Target>,
}

impl Reader {
    pub(crate) fn new(
        schema: SchemaRef,
        first: Option<RecordBatch>,
        rows: Option<Rows>,
        cancelled: CancellationToken,
        last: Arc<Mutex<Last>>,
        target: Arc<Target>,
    ) -> Self {
        Self { schema, first, rows, cancelled, last, _target: target }
    }

    fn fail(&self, failure: Failure) -> ArrowError {
        let error = ArrowError::ExternalError(failed(&failure).message.into());
        self.last.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(failure);
        error
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cancelled.is_cancelled() {
            self.first = None;
            return self.rows.take().map(|_| Err(self.fail(stopped())));
        }
        if let Err(error) = check() {
            self.first = None;
            return self.rows.take().map(|_| Err(ArrowError::ExternalError(error.message.into())));
        }
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let mut rows = self.rows.take()?;
        match block_on(rows.next()) {
            Some(Ok(batch)) => {
                self.rows = Some(rows);
                Some(Ok(batch))
            }
            Some(Err(failure)) => Some(Err(self.fail(failure))),
            None => block_on(rows.ended()).err().map(|failure| Err(self.fail(failure))),
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A result that is known without a query.
pub(crate) fn known(batch: RecordBatch) -> Box<dyn RecordBatchReader + Send + 'static> {
    let schema = batch.schema();
    Box::new(RecordBatchIterator::new([Ok(batch)], schema))
}
