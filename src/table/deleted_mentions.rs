//! `system.deleted_mentions`: mentions that the store keeps after the service has deleted them. Sends no request.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;

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
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let (rows, store) = (builder.tx(), Arc::clone(&self.store));
        builder.spawn_blocking(move || {
            for file in store.deleted_files()? {
                for batch in store.read_deleted(&file)? {
                    if rows.blocking_send(Ok(batch)).is_err() {
                        return Ok(());
                    }
                }
            }
            Ok(())
        });
        builder.build()
    }
}
