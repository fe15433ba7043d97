//! Request plans as rows of a memory source. No other module knows this encoding.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

use crate::pushdown::Aids;

/// One column: the saved search to request; NULL if the list names them or none is needed.
static SCHEMA: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("aid", DataType::Utf8, true)])));

/// Builds a source with one partition.
pub(crate) fn source(aids: &Aids) -> Result<Arc<dyn ExecutionPlan>> {
    let rows: StringArray = match aids {
        Aids::NotNeeded | Aids::Listed => StringArray::from(vec![None::<&str>]),
        Aids::Given(aids) => aids.iter().map(Some).collect(),
    };
    let batch = RecordBatch::try_new(Arc::clone(&SCHEMA), vec![Arc::new(rows)])?;
    let config = MemorySourceConfig::try_new(&[vec![batch]], Arc::clone(&SCHEMA), None)?.with_show_sizes(false);
    Ok(DataSourceExec::from_data_source(config))
}

/// Reads the aids from a batch of the source.
pub(super) fn read(batch: &RecordBatch) -> Vec<Option<String>> {
    let aids = batch.column(0).as_string::<i32>();
    (0..aids.len()).map(|row| aids.is_valid(row).then(|| aids.value(row).to_owned())).collect()
}
