//! The root of a plan that is spread over workers.
//!
//! ```text
//! scans of the service, one after another ─▶ store up to date ─▶ stages over its files ─▶ rows
//!                                                └─ not all of them in files ─▶ the local plan
//! ```
//!
//! This process sends all requests before the first stage runs, within the query's budget. If the reader disconnects, the
//! requests stop, as in an ordinary scan.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, execute_stream,
};
use futures::StreamExt;

use super::planner::{Planning, Stages, WITHIN_PLAN};
use crate::exec::{FetchExec, FileScanOptions, InFiles};

/// A scan of the service below a spread plan.
#[derive(Debug, Clone)]
pub(super) struct SpreadScan {
    scan: Arc<FetchExec>,
    /// The files with its rows; `None`: they are sent within the plan.
    files: Option<(FileScanOptions, InFiles)>,
}

impl SpreadScan {
    /// A scan of mentions that are read from files.
    pub(super) fn of_files(scan: &FetchExec, readers: FileScanOptions, files: InFiles) -> Self {
        Self { scan: Arc::new(scan.read_by_workers()), files: Some((readers, files)) }
    }

    /// A scan of few rows.
    pub(super) fn of_rows(scan: Arc<FetchExec>) -> Self {
        Self { scan, files: None }
    }

    /// Size of its files in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.as_ref().map_or(0, |(_, files)| files.bytes)
    }

    /// Sends the requests of the scan. Returns an operator with its rows that workers can run, and true if it is the planned one;
    /// `None` if there is none.
    async fn ready(&self, context: &Arc<TaskContext>) -> Result<Option<(Arc<dyn ExecutionPlan>, bool)>> {
        let Some((readers, planned)) = &self.files else {
            let mut rows = self.scan.execute(0, Arc::clone(context))?;
            let (mut batches, mut bytes) = (Vec::new(), 0);
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                bytes += batch.get_array_memory_size();
                batches.push(batch);
                if bytes > WITHIN_PLAN {
                    return Ok(None);
                }
            }
            let rows = MemorySourceConfig::try_new_exec(&[batches], self.scan.schema(), None)?;
            return Ok(Some((rows, false)));
        };
        let files = self.scan.bring_into_files(readers, context).await?;
        Ok(files.map(|files| (Arc::clone(&files.rows), planned.used == files.used)))
    }
}

/// A query that is spread over workers.
#[derive(Debug)]
pub(super) struct SpreadQuery {
    /// The plan of the same query on this machine.
    pub(super) local: Arc<dyn ExecutionPlan>,
    /// The plan before optimization, with its scans.
    pub(super) unoptimized: Arc<dyn ExecutionPlan>,
    /// Its scans, in plan order.
    pub(super) scans: Vec<SpreadScan>,
    /// The stages as far as they were known when the query was planned.
    pub(super) stages: Stages,
    /// Ids of the stores that workers need.
    pub(super) stores: BTreeSet<String>,
    pub(super) planning: Planning,
}

impl SpreadQuery {
    /// Sends the requests of all scans, and returns the stages that have all rows; `None` if the query runs on this machine.
    /// `used` is set once the planned stages have run: workers know them by an id that is used once.
    async fn ready(&self, used: &AtomicBool, context: &Arc<TaskContext>) -> Result<Option<Stages>> {
        let Self { unoptimized, scans, stages, stores, planning, .. } = self;
        let (mut rows, mut as_planned) = (Vec::with_capacity(scans.len()), true);
        // One after another: a scan finds in the store what another one has just read.
        for scan in scans {
            let Some((operator, same)) = scan.ready(context).await? else { return Ok(None) };
            as_planned &= same;
            rows.push(operator);
        }
        if as_planned && planning.usable(stores) == stages.workers && !used.swap(true, Ordering::Relaxed) {
            return Ok(Some(stages.clone()));
        }
        Ok(planning.stages(unoptimized, rows, stores).await?.ok())
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct SpreadExec {
    query: Arc<SpreadQuery>,
    /// Set once the planned stages have run.
    used: Arc<AtomicBool>,
    /// The stages, and the scans that run before them.
    children: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl SpreadExec {
    pub(super) fn new(query: SpreadQuery) -> Self {
        let before = query.scans.iter().map(|scan| Arc::clone(&scan.scan) as Arc<dyn ExecutionPlan>);
        let children = std::iter::once(Arc::clone(&query.stages.plan)).chain(before).collect();
        let properties = one_partition(query.local.schema());
        Self { query: Arc::new(query), used: Arc::default(), children, properties }
    }
}

/// Properties of an operator with a single partition whose rows have no particular order.
fn one_partition(schema: SchemaRef) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl ExecutionPlan for SpreadExec {
    fn name(&self) -> &'static str {
        "SpreadExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.children.iter().collect()
    }

    /// Those of the local plan, in case it ran.
    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = MetricsSet::new();
        // The closure never fails.
        let _ = self.query.local.apply(|node| {
            node.metrics().iter().flat_map(MetricsSet::iter).for_each(|metric| all.push(Arc::clone(metric)));
            Ok(TreeNodeRecursion::Continue)
        });
        Some(all)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.len() == self.children().len() {
            // Its stages belong to a context.
            true => Ok(self),
            false => internal_err!("SpreadExec has other children"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("SpreadExec has one partition");
        }
        let schema = self.query.local.schema();
        let (query, used, output) = (Arc::clone(&self.query), Arc::clone(&self.used), Arc::clone(&schema));
        let stream = try_stream! {
            let mut rows = match query.ready(&used, &context).await? {
                Some(Stages { plan, context, .. }) => plan.execute(0, context)?,
                None => execute_stream(Arc::clone(&query.local), context)?,
            };
            while let Some(batch) = rows.next().await {
                yield with_schema(&batch?, &output)?;
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream.boxed())))
    }
}

/// Returns a batch with another schema of the same types.
fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)?)
}

impl DisplayAs for SpreadExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "SpreadExec: workers={}", self.query.stages.workers.len())
            }
            DisplayFormatType::TreeRender => writeln!(f, "workers={}", self.query.stages.workers.len()),
        }
    }
}

/// The place in a plan of rows that are requested before it runs.
#[derive(Debug)]
pub(super) struct FetchedExec {
    table: String,
    properties: Arc<PlanProperties>,
}

impl FetchedExec {
    pub(super) fn new(table: &str, schema: SchemaRef) -> Self {
        Self { table: table.to_owned(), properties: one_partition(schema) }
    }
}

impl DisplayAs for FetchedExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FetchedExec: table={}", self.table)
    }
}

impl ExecutionPlan for FetchedExec {
    fn name(&self) -> &'static str {
        "FetchedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("the rows of {} were not requested", self.table)
    }
}
