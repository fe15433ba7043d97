//! `system.workers`: the workers of the server, as last checked.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::workers::Workers;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct WorkersTable {
    workers: Arc<Workers>,
    schema: SchemaRef,
}

impl WorkersTable {
    pub(crate) fn new(workers: Arc<Workers>) -> Self {
        let schema = Schema::new(vec![
            Field::new("url", DataType::Utf8, false),
            Field::new("state", DataType::Utf8, false),
            Field::new("version", DataType::Utf8, true),
            Field::new("seen_at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
            Field::new("reason", DataType::Utf8, true),
        ]);
        Self { workers, schema: Arc::new(schema) }
    }
}

#[async_trait]
impl TableProvider for WorkersTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let status = self.workers.status();
        let seen = status.iter().map(|worker| worker.seen.map(|seen| seen.timestamp_micros()));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(status.iter().map(|worker| &worker.url))),
            Arc::new(StringArray::from_iter_values(status.iter().map(|worker| worker.state.name()))),
            Arc::new(status.iter().map(|worker| worker.version.as_deref()).collect::<StringArray>()),
            Arc::new(seen.collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
            Arc::new(status.iter().map(|worker| worker.reason.as_deref()).collect::<StringArray>()),
        ];
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(MemorySourceConfig::try_new_exec(&[vec![rows]], self.schema(), projection.cloned())?)
    }
}
