//! Rows of stored mentions, by the engine's own operators over Parquet files: filtered, projected and sorted like rows of
//! the service.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::object_store::path::Path;
use datafusion::object_store::{self, ObjectMeta};
use datafusion::physical_expr::expressions::{Column, binary, cast, lit};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, conjunction};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;

use crate::decode::arrow_schema;
use crate::error::{Error, ErrorKind};
use crate::exec::opaque::opaque;
use crate::exec::scan_config::ScanConfig;
use crate::exec::scan_exec::sort_key;
use crate::exec::stream::{Batches, Driver, Merging};
use crate::profile::Origin;
use crate::request::RequestPlan;
use crate::store::{AID, DataFile, FromStore, Stored, Subject, days_of, retyped, span_of};

/// Rows of a batch that is read from a file.
const BATCH: usize = 8_192;

/// Stored days of one plan, and the instants that belong to its window, in microseconds since 1970.
#[derive(Debug, Clone)]
pub(super) struct StoredPart {
    pub(super) plan: RequestPlan,
    pub(super) stored: Vec<Stored>,
    pub(super) span: Range<i64>,
}

/// The place where an engine finds the files of a store.
#[derive(Debug, Clone)]
pub(crate) enum FilesAt {
    /// The folder of the store on this machine.
    Folder,
    /// A URL for the data folder of the store that is valid on all machines.
    #[cfg(feature = "distributed")]
    Url(ObjectStoreUrl),
}

/// Reader of stored mentions from files.
pub(super) struct FileScan<'s> {
    pub(super) config: &'s ScanConfig,
    /// Schema of the rows.
    pub(super) output: &'s SchemaRef,
    pub(super) from: &'s FromStore,
    pub(super) at: FilesAt,
    /// Number of partitions that read at the same time.
    pub(super) partitions: usize,
    pub(super) options: &'s ConfigOptions,
}

/// Values that the rows of files have in common if they are read together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Common {
    duration: Option<String>,
    timezone: Option<String>,
    /// Version of the columns in the catalog.
    version: i64,
    unfiltered: bool,
    /// The instants of rows that are used, in microseconds since 1970; empty: all rows.
    ranges: Vec<(i64, i64)>,
}

impl FileScan<'_> {
    /// Returns operators with the rows of these days, in the output's columns and in no particular order.
    pub(super) fn sources(&self, parts: &[StoredPart]) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let mut groups: BTreeMap<Common, Vec<(&RequestPlan, &Stored)>> = BTreeMap::new();
        for StoredPart { plan, stored, span } in parts {
            // Other days of a region may come from another one.
            let mut regions: BTreeMap<Option<i64>, Vec<&Stored>> = BTreeMap::new();
            for part in stored {
                regions.entry(part.region.id).or_default().push(part);
            }
            for used in regions.into_values() {
                let Some(first) = used.first() else { continue };
                for version in first.region.files.iter().map(|file| file.schema).collect::<BTreeSet<_>>() {
                    let common = Common {
                        duration: plan.duration.clone(),
                        timezone: plan.timezone.clone(),
                        version,
                        unfiltered: first.filters.is_empty(),
                        ranges: ranges_of(&used, span),
                    };
                    groups.entry(common).or_default().push((plan, first));
                }
            }
        }
        groups.iter().map(|(common, used)| self.source(common, used)).collect()
    }

    fn file(&self, plan: &RequestPlan, part: &Stored, file: &DataFile) -> Result<PartitionedFile> {
        let subject = Subject { aid: plan.aid.clone().unwrap_or_default(), filters: part.filters.clone() };
        let external = |error: object_store::path::Error| DataFusionError::External(error.into());
        let location = match &self.at {
            FilesAt::Folder => {
                let path = self.from.store.folder(&subject).join(&file.path);
                let path = std::path::absolute(&path).map_err(DataFusionError::IoError)?;
                Path::from_absolute_path(path).map_err(external)?
            }
            #[cfg(feature = "distributed")]
            FilesAt::Url(_) => Path::parse(self.from.store.path_below_data(&subject, file)).map_err(external)?,
        };
        let meta =
            ObjectMeta { location, last_modified: part.region.as_of, size: file.bytes, e_tag: None, version: None };
        let footer = usize::try_from(file.footer).unwrap_or_default();
        Ok(PartitionedFile::new_from_meta(meta).with_metadata_size_hint(footer + 8))
    }

    /// Returns an operator with the rows of files that have this in common, in the output's columns.
    fn source(&self, common: &Common, used: &[(&RequestPlan, &Stored)]) -> Result<Arc<dyn ExecutionPlan>> {
        let ScanConfig { spec, projection, predicate, .. } = self.config;
        let (mut files, mut rows) = (Vec::new(), 0);
        for (plan, part) in used {
            for file in part.region.files.iter().filter(|file| file.schema == common.version) {
                files.push(self.file(plan, part, file)?);
                rows += usize::try_from(file.rows).unwrap_or(usize::MAX);
            }
        }
        let aids: BTreeSet<Option<&str>> = used.iter().map(|(plan, _)| plan.aid.as_deref()).collect();
        let layout = self.from.store.schema();
        let readable = self.from.store.readable(common.version)?;
        let fields = layout.fields().iter().filter(|field| readable.contains(field.name()));
        let files_schema: SchemaRef = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let named = |name: &str| -> Option<Arc<dyn PhysicalExpr>> {
            files_schema.index_of(name).ok().map(|at| Arc::new(Column::new(name, at)) as _)
        };
        let table = arrow_schema(spec);
        // The value of a table's column in a row of a file.
        let value = |at: usize| -> Result<Arc<dyn PhysicalExpr>> {
            let Some(column) = spec.columns.get(at) else { return Ok(lit(1_i64)) };
            let text = |text: Option<&str>| lit(ScalarValue::Utf8(text.map(str::to_owned)));
            let of_file = match column.origin {
                Origin::Aid if aids.len() == 1 => return Ok(text(aids.first().copied().flatten())),
                Origin::Aid => named(AID),
                Origin::Duration => return Ok(text(common.duration.as_deref())),
                Origin::Timezone => return Ok(text(common.timezone.as_deref())),
                _ => named(&column.name),
            };
            // Files have instants in UTC.
            let shown = table.field(at).data_type();
            match of_file {
                Some(column) if matches!(shown, DataType::Timestamp(..)) && spec.zone.is_some() => {
                    cast(column, &files_schema, shown.clone())
                }
                Some(column) => Ok(column),
                None => Ok(lit(ScalarValue::try_from(shown)?)),
            }
        };
        let within = |ranges: &[(i64, i64)]| -> Result<Option<Arc<dyn PhysicalExpr>>> {
            let time = spec.time.as_deref().unwrap_or_default();
            let time: Arc<dyn PhysicalExpr> = Arc::new(Column::new(time, files_schema.index_of(time)?));
            let instant = |at: i64| lit(ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into())));
            let mut any: Option<Arc<dyn PhysicalExpr>> = None;
            for (start, end) in ranges {
                let from = binary(Arc::clone(&time), Operator::GtEq, instant(*start), &files_schema)?;
                let to = binary(Arc::clone(&time), Operator::Lt, instant(*end), &files_schema)?;
                let both = binary(from, Operator::And, to, &files_schema)?;
                any = Some(match any {
                    Some(any) => binary(any, Operator::Or, both, &files_schema)?,
                    None => both,
                });
            }
            Ok(any)
        };
        let mut filters: Vec<Arc<dyn PhysicalExpr>> = within(&common.ranges)?.into_iter().collect();
        if let Some(predicate) = predicate {
            let mapped = Arc::clone(predicate).transform(|expr| {
                match expr.downcast_ref::<Column>().map(|column| value(column.index())).transpose()? {
                    Some(value) => Ok(Transformed::yes(value)),
                    None => Ok(Transformed::no(expr)),
                }
            })?;
            filters.push(mapped.data);
        }
        let predicate = (!filters.is_empty()).then(|| conjunction(filters));
        let output = projection.iter().map(|at| value(*at)).collect::<Result<Vec<_>>>()?;
        // Only the columns that are used are read.
        let mut used: Vec<usize> =
            output.iter().chain(&predicate).flat_map(collect_columns).map(|column| column.index()).collect();
        used.sort_unstable();
        used.dedup();
        let mut source = ParquetSource::new(Arc::clone(&files_schema)).with_pushdown_filters(false);
        // Otherwise the engine's rules push it down from the filter.
        if let (Some(predicate), FilesAt::Folder) = (&predicate, &self.at) {
            source = source.with_predicate(Arc::clone(predicate));
        }
        let url = match &self.at {
            FilesAt::Folder => ObjectStoreUrl::local_filesystem(),
            #[cfg(feature = "distributed")]
            FilesAt::Url(url) => url.clone(),
        };
        let mut statistics = Statistics::new_unknown(&files_schema);
        statistics.num_rows = Precision::Inexact(rows);
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(vec![FileGroup::new(files)])
            .with_statistics(statistics)
            .with_projection_indices(Some(used.clone()))?
            .with_batch_size(Some(BATCH))
            .build();
        let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        let scan = scan.repartitioned(self.partitions, self.options)?.unwrap_or(scan);
        let place = |expr: Arc<dyn PhysicalExpr>| -> Result<Arc<dyn PhysicalExpr>> {
            let moved = expr.transform(|expr| match expr.downcast_ref::<Column>() {
                Some(column) => match used.binary_search(&column.index()) {
                    Ok(at) => Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as _)),
                    Err(_) => internal_err!("column {} is not read", column.name()),
                },
                None => Ok(Transformed::no(expr)),
            })?;
            Ok(moved.data)
        };
        let rows: Arc<dyn ExecutionPlan> = match predicate {
            // What a filter lets through is a guess, by which a join chooses the side that it keeps in memory.
            Some(predicate) => {
                let predicate = place(predicate)?;
                // No rule of the session visits these operators when they run.
                let predicate = opaque(&predicate, &scan.schema()).unwrap_or(predicate);
                let percent = if self.config.has_conditions() { 20 } else { 100 };
                Arc::new(FilterExec::try_new(predicate, scan)?.with_default_selectivity(percent)?)
            }
            None => scan,
        };
        let names = self.output.fields().iter().map(|field| field.name().clone());
        let output = output.into_iter().zip(names).map(|(expr, name)| Ok((place(expr)?, name)));
        Ok(Arc::new(ProjectionExec::try_new(output.collect::<Result<Vec<_>>>()?, rows)?))
    }
}

/// The instants of a region's rows that are used, of a span; empty: all of them. `used` are parts of one region.
fn ranges_of(used: &[&Stored], span: &Range<i64>) -> Vec<(i64, i64)> {
    let Some(region) = used.first().map(|part| &part.region) else { return Vec::new() };
    let (all, asked) = (span_of(&region.days), span_of(&days_of(span)));
    let days: usize = used.iter().map(|part| part.days.len()).sum();
    let wanted = all.start.max(asked.start)..all.end.min(asked.end);
    match days == days_of(&wanted).len() {
        true if span.start <= all.start && all.end <= span.end => Vec::new(),
        // The same for all saved searches.
        true => vec![(span.start, span.end)],
        false => {
            let days = used.iter().map(|part| span_of(&part.days));
            days.map(|days| (days.start.max(span.start), days.end.min(span.end))).collect()
        }
    }
}

impl Driver {
    /// Returns the rows of stored days of one plan, in the sort order of the scan, if it has one.
    pub(super) fn files(
        &self,
        from: &FromStore,
        plan: &RequestPlan,
        stored: Vec<Stored>,
        span: &Range<i64>,
    ) -> Result<Batches> {
        let opened = stored.iter().flat_map(|part| &part.region.files).map(|file| file.bytes).sum();
        from.store.counters().opened(opened);
        let scan = FileScan {
            config: &self.config,
            output: &self.reader.schema,
            from,
            at: FilesAt::Folder,
            partitions: std::thread::available_parallelism().map_or(1, usize::from),
            options: self.context.session_config().options(),
        };
        let mut sources = scan.sources(&[StoredPart { plan: plan.clone(), stored, span: span.clone() }])?;
        let schema = Arc::clone(&self.reader.schema);
        let rows: Arc<dyn ExecutionPlan> = match sources.len() {
            0 => return Ok(futures::stream::empty().boxed()),
            1 => sources.remove(0),
            _ => UnionExec::try_new(sources)?,
        };
        let several = rows.properties().partitioning.partition_count() > 1;
        let key = self.config.mode.order().and_then(|order| sort_key(order, &schema));
        let rows: Arc<dyn ExecutionPlan> = match LexOrdering::new(key) {
            Some(order) => {
                let fetch = self.config.mode.slice().fetch;
                let sorted = SortExec::new(order.clone(), rows).with_fetch(fetch).with_preserve_partitioning(several);
                match several {
                    true => Arc::new(SortPreservingMergeExec::new(order, Arc::new(sorted)).with_fetch(fetch)),
                    false => Arc::new(sorted),
                }
            }
            None if several => Arc::new(CoalescePartitionsExec::new(rows)),
            None => rows,
        };
        let (counters, place) = (self.counters.stored.clone(), self.config.place());
        let at_table = move |error: Error| DataFusionError::from(error.at(place.clone()));
        let rows = execute_stream(rows, Arc::clone(&self.context))?;
        let rows = rows.map(move |batch| {
            let batch = batch.map_err(|error| if is_of_file(&error) { at_table(unreadable(&error)) } else { error })?;
            counters.add(batch.num_rows());
            with_schema(&batch, &schema)
        });
        Ok(rows.boxed())
    }

    /// Merges streams in the sort order of the scan.
    pub(super) fn merged(&self, rows: Vec<Batches>) -> Result<Batches> {
        let schema = &self.reader.schema;
        let streams = rows
            .into_iter()
            .map(|rows| Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows)) as SendableRecordBatchStream);
        let merging = Merging::new(&self.context, self.config.mode.wanted());
        Ok(merging.merge(streams.collect(), &self.config, &self.reader)?.boxed())
    }
}

/// True for errors of files, which expressions of a query cannot cause.
fn is_of_file(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ParquetError(_) | DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => true,
        DataFusionError::ArrowError(error, _) => {
            matches!(**error, ArrowError::ParquetError(_) | ArrowError::IoError(..) | ArrowError::ExternalError(_))
        }
        _ => false,
    }
}

/// The error of a file that cannot be read.
fn unreadable(error: &DataFusionError) -> Error {
    let message = format!("cannot read the store: {}", error.strip_backtrace());
    Error::new(ErrorKind::Store, message).advice(
        "SET savedsearch.store = 'off' bypasses the store; 'write' re-reads and replaces the days; \
         `savedsearch store verify` lists damaged files",
    )
}

/// Returns a batch with another schema of the same columns: nullability and metadata may differ.
fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type().equals_datatype(field.data_type()) {
            return retyped(column, field.data_type());
        }
        arrow::compute::cast(column, field.data_type())
    });
    let columns: Vec<ArrayRef> = columns.collect::<std::result::Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
