//! `system.deleted_mentions`: mentions that the store keeps after the service has deleted them. Sends no request.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::streaming::PartitionStream;

use super::changes::step_by_step;
use crate::connection::Connection;
use crate::store::Store;

/// The deleted mentions of a store, file by file.
#[derive(Debug)]
struct Deleted {
    store: Arc<Store>,
    schema: SchemaRef,
}

/// Returns the table of a connection with a store: the columns of its files, and `deleted_at`, the instant by the service's
/// clock at which a mention was first missing.
///
/// # Errors
/// Those of a connection without a store.
pub(crate) fn deleted_mentions(connection: &Arc<Connection>) -> Result<StreamingTable> {
    let store = Arc::clone(connection.some_store()?);
    let schema = Arc::clone(&store.deleted_layout().schema);
    StreamingTable::try_new(Arc::clone(&schema), vec![Arc::new(Deleted { store, schema })])
}

impl PartitionStream for Deleted {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let store = Arc::clone(&self.store);
        step_by_step(&self.schema, move || store.deleted())
    }
}
