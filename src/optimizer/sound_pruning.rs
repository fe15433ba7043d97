//! Hides conditions from the pruning of Parquet files that it would misread.
//!
//! The engine computes a condition for the smallest and largest values of a file, a row group and a page, and skips those for which
//! it is false. It takes every cast for one that keeps the order of values. With `t::time < '06:00'`, `ORDER BY t::time LIMIT 3` and
//! joins on such casts, rows are then missing. `tests/it/engine_defects.rs` reproduces it in a plain session.
//!
//! Runs last, when filters, limits and joins have passed their conditions to the files.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::hidden_from_pruning;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct SoundPruning;

impl PhysicalOptimizerRule for SoundPruning {
    fn name(&self) -> &'static str {
        "savedsearch_sound_pruning"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(scan) = node.downcast_ref::<DataSourceExec>() else { return Ok(Transformed::no(node)) };
            let Some((files, source)) = scan.downcast_to_file_source::<ParquetSource>() else {
                return Ok(Transformed::no(node));
            };
            let hidden = match files.file_source().filter() {
                Some(predicate) => hidden_from_pruning(&predicate, files.file_source().table_schema().table_schema())?,
                None => None,
            };
            let Some(predicate) = hidden else { return Ok(Transformed::no(node)) };
            let source = Arc::new(source.with_predicate(predicate));
            let files = FileScanConfigBuilder::from(files.clone()).with_source(source).build();
            Ok(Transformed::yes(Arc::new(scan.clone().with_data_source(Arc::new(files)))))
        })
        .data()
    }
}
