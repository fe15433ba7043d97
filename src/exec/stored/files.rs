//! Rows of stored mentions, by the engine's own operators over Parquet files: filtered, projected and sorted like rows of
//! the service.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path;
use datafusion::physical_expr::expressions::{Column, binary, lit};
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

use crate::error::{Error, ErrorKind};
use crate::exec::scan_config::ScanConfig;
use crate::exec::scan_exec::sort_key;
use crate::exec::stream::{Batches, Driver, Merging};
use crate::profile::Origin;
use crate::request::RequestPlan;
use crate::store::{DataFile, FromStore, Stored, Subject, retyped, span_of};

/// Parts of a region that are used, and the instants of each in microseconds since 1970.
type PartlyUsed<'s> = (Vec<&'s Stored>, Vec<Range<i64>>);

/// Rows of a batch that is read from a file.
const BATCH: usize = 8_192;

impl Driver {
    /// Returns the rows of stored days of one plan, in the sort order of the scan, if it has one.
    pub(super) fn files(
        &self,
        from: &FromStore,
        plan: &RequestPlan,
        stored: Vec<Stored>,
        span: &Range<i64>,
    ) -> Result<Batches> {
        // Files of regions that are used completely are read together.
        let mut together: BTreeMap<(i64, bool), Vec<PartitionedFile>> = BTreeMap::new();
        let mut apart: BTreeMap<Option<i64>, PartlyUsed<'_>> = BTreeMap::new();
        for part in &stored {
            let days = span_of(&part.days);
            let whole = part.is_whole() && span.start <= days.start && days.end <= span.end;
            if whole {
                for file in &part.region.files {
                    let key = (file.schema, part.filters.is_empty());
                    together.entry(key).or_default().push(self.file(from, plan, part, file)?);
                }
            } else {
                let (parts, ranges) = apart.entry(part.region.id).or_default();
                parts.push(part);
                ranges.push(days.start.max(span.start)..days.end.min(span.end));
            }
        }
        let opened = stored.iter().flat_map(|part| &part.region.files).map(|file| file.bytes).sum();
        from.store.counters().opened(opened);
        let mut sources = Vec::new();
        for ((schema, _), files) in together {
            sources.push(self.source(from, plan, schema, files, &[])?);
        }
        for (parts, ranges) in apart.into_values() {
            let Some(part) = parts.first() else { continue };
            let mut versions: BTreeMap<i64, Vec<PartitionedFile>> = BTreeMap::new();
            for file in &part.region.files {
                versions.entry(file.schema).or_default().push(self.file(from, plan, part, file)?);
            }
            for (schema, files) in versions {
                sources.push(self.source(from, plan, schema, files, &ranges)?);
            }
        }
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

    fn file(&self, from: &FromStore, plan: &RequestPlan, part: &Stored, file: &DataFile) -> Result<PartitionedFile> {
        let subject = Subject { aid: plan.aid.clone().unwrap_or_default(), filters: part.filters.clone() };
        let path = from.store.folder(&subject).join(&file.path);
        let path = std::path::absolute(&path).map_err(DataFusionError::IoError)?;
        let meta = ObjectMeta {
            location: Path::from_absolute_path(path).map_err(|error| DataFusionError::External(error.into()))?,
            last_modified: part.region.as_of,
            size: file.bytes,
            e_tag: None,
            version: None,
        };
        let footer = usize::try_from(file.footer).unwrap_or_default();
        Ok(PartitionedFile::new_from_meta(meta).with_metadata_size_hint(footer + 8))
    }

    /// Returns an operator with the rows of files in the output's columns; of times within `ranges`, unless these are
    /// empty.
    fn source(
        &self,
        from: &FromStore,
        plan: &RequestPlan,
        version: i64,
        files: Vec<PartitionedFile>,
        ranges: &[Range<i64>],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ScanConfig { spec, projection, predicate, .. } = self.config.as_ref();
        let layout = from.store.schema();
        let readable = from.store.readable(version)?;
        let fields = layout.fields().iter().filter(|field| readable.contains(field.name()));
        let files_schema: SchemaRef = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        // The value of a table's column in a row of a file.
        let value = |at: usize| -> Result<Arc<dyn PhysicalExpr>> {
            let Some(column) = spec.columns.get(at) else { return Ok(lit(1_i64)) };
            let text = |text: &Option<String>| lit(ScalarValue::Utf8(text.clone()));
            Ok(match column.origin {
                Origin::Aid => text(&plan.aid),
                Origin::Duration => text(&plan.duration),
                Origin::Timezone => text(&plan.timezone),
                _ => match files_schema.index_of(&column.name) {
                    Ok(at) => Arc::new(Column::new(&column.name, at)),
                    Err(_) => lit(ScalarValue::try_from(&crate::decode::data_type(column.kind))?),
                },
            })
        };
        let within = |ranges: &[Range<i64>]| -> Result<Option<Arc<dyn PhysicalExpr>>> {
            let time = spec.time.as_deref().unwrap_or_default();
            let time: Arc<dyn PhysicalExpr> = Arc::new(Column::new(time, files_schema.index_of(time)?));
            let instant = |at: i64| lit(ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into())));
            let mut any: Option<Arc<dyn PhysicalExpr>> = None;
            for range in ranges {
                let from = binary(Arc::clone(&time), Operator::GtEq, instant(range.start), &files_schema)?;
                let to = binary(Arc::clone(&time), Operator::Lt, instant(range.end), &files_schema)?;
                let both = binary(from, Operator::And, to, &files_schema)?;
                any = Some(match any {
                    Some(any) => binary(any, Operator::Or, both, &files_schema)?,
                    None => both,
                });
            }
            Ok(any)
        };
        let mut filters: Vec<Arc<dyn PhysicalExpr>> = within(ranges)?.into_iter().collect();
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
        if let Some(predicate) = &predicate {
            source = source.with_predicate(Arc::clone(predicate));
        }
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(vec![FileGroup::new(files)])
            .with_projection_indices(Some(used.clone()))?
            .with_batch_size(Some(BATCH))
            .build();
        let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        let options = self.context.session_config().options();
        let wanted = std::thread::available_parallelism().map_or(1, usize::from);
        let scan = scan.repartitioned(wanted, options)?.unwrap_or(scan);
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
            Some(predicate) => Arc::new(FilterExec::try_new(place(predicate)?, scan)?),
            None => scan,
        };
        let names = self.reader.schema.fields().iter().map(|field| field.name().clone());
        let output = output.into_iter().zip(names).map(|(expr, name)| Ok((place(expr)?, name)));
        Ok(Arc::new(ProjectionExec::try_new(output.collect::<Result<Vec<_>>>()?, rows)?))
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
