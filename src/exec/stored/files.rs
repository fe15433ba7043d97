//! Rows of stored mentions, by the engine's own operators over Parquet files: filtered, projected and sorted like rows of
//! the service.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::DateTime;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{CachedParquetFileReaderFactory, ParquetRowSelection};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::Operator;
use datafusion::object_store::path::Path;
use datafusion::object_store::{self, ObjectMeta};
use datafusion::physical_expr::expressions::{Column, binary, in_list, lit};
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
use futures::{StreamExt, TryStreamExt, stream};
use parquet::arrow::arrow_reader::RowSelection;

use super::checked::CheckedFiles;
use super::file_columns::{FileColumns, placed};
use super::words::search;
use crate::error::{Error, ErrorKind};
use crate::exec::merging::Merging;
use crate::exec::opaque::{hidden_from_pruning, opaque};
use crate::exec::scan_config::ScanConfig;
use crate::exec::scan_exec::sort_key;
use crate::exec::stream::{Batches, Driver};
use crate::request::RequestPlan;
use crate::store::{AID, DataFile, FromStore, Store, Stored, Subject, retyped, span_of};

/// Rows of a batch that is read from a file.
const BATCH: usize = 8_192;

/// Stored days of one plan, and the instants that belong to its window, in microseconds since 1970.
#[derive(Debug, Clone)]
pub(in crate::exec) struct StoredPart {
    pub(super) plan: RequestPlan,
    pub(super) stored: Vec<Stored>,
    pub(super) span: Range<i64>,
}

/// The place where an engine finds the files of a store.
#[derive(Debug, Clone)]
pub(crate) enum FilesAt {
    /// The folder of the store on this machine, or its bucket.
    Folder,
    /// A URL for the data folder of the store that is valid on all machines.
    #[cfg(feature = "distributed")]
    Url(ObjectStoreUrl),
}

/// Scan of stored mentions in files.
pub(super) struct FileScan<'s> {
    pub(super) config: &'s ScanConfig,
    /// Schema of the rows.
    pub(super) output: &'s SchemaRef,
    pub(super) from: &'s FromStore,
    pub(super) at: FilesAt,
    /// Keeps the footers of files, which never change, for later queries; `None`: each query reads them.
    pub(super) runtime: Option<Arc<RuntimeEnv>>,
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
    /// The instants of rows that are used, in microseconds since 1970, if it cuts days; `None`: those of all used days.
    range: Option<(i64, i64)>,
    /// The file, if a condition has to choose the rows that are used.
    alone: Option<String>,
}

/// Texts to compare a column with.
type Texts = Vec<Arc<dyn PhysicalExpr>>;

/// Positions of the rows of files that may match, in order, for each of [`look_ups`]; `None`: of all rows.
pub(super) type Matching = Vec<Option<Vec<Range<u64>>>>;

/// The used rows of a file, to look up which of them may match.
pub(super) struct LookUp {
    pub(super) subject: Subject,
    pub(super) file: Arc<DataFile>,
    pub(super) rows: Vec<Range<u64>>,
}

/// The parts of a file that are used.
struct FileParts<'p> {
    file: &'p Arc<DataFile>,
    parts: Vec<(&'p RequestPlan, &'p Stored)>,
    /// The positions of their rows that may match, in order, if an index of words names them.
    matching: Option<Vec<Range<u64>>>,
}

impl FileParts<'_> {
    /// The positions of the rows that are used, in order.
    fn rows(&self) -> Vec<Range<u64>> {
        if let Some(matching) = &self.matching {
            return matching.clone();
        }
        let mut rows: Vec<Range<u64>> = self.parts.iter().map(|(_, part)| part.region.rows_of(&part.days)).collect();
        rows.retain(|rows| !rows.is_empty());
        rows.sort_unstable_by_key(|rows| rows.start);
        rows
    }

    /// Number of rows that are used.
    fn mentions(&self) -> u64 {
        self.parts.iter().map(|(_, part)| part.mentions()).sum()
    }

    /// Size of the rows that are used, in bytes, as if all had the same size.
    fn bytes(&self) -> u64 {
        match &self.matching {
            Some(rows) => self.file.share(rows.iter().map(|rows| rows.end - rows.start).sum()),
            None => self.parts.iter().map(|(_, part)| part.bytes()).sum(),
        }
    }

    fn is_whole(&self) -> bool {
        self.matching.is_none() && self.mentions() == self.file.rows
    }

    /// The mentions that the file is a part of, with one of the saved searches.
    fn subject(&self) -> Subject {
        let part = self.parts.first();
        let aid = part.and_then(|(plan, _)| plan.aid.clone()).unwrap_or_default();
        Subject { aid, filters: part.map(|(_, part)| part.filters.clone()).unwrap_or_default() }
    }
}

impl FileScan<'_> {
    /// Returns operators with the rows of these days, in the output's columns and in no particular order. Each file is in one of
    /// them, as far as its rows have the same values beside their own. Those that this machine reads are counted. If
    /// `matching` is empty, all rows may match.
    pub(super) fn sources(&self, parts: &[StoredPart], matching: Matching) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let mut groups: BTreeMap<Common, BTreeMap<&str, FileParts<'_>>> = BTreeMap::new();
        let (mut opened, mut bytes, mut matching) = (BTreeSet::new(), 0, matching.into_iter());
        for ((mut common, path), mut of) in by_file(parts) {
            of.matching = matching.next().flatten();
            if of.matching.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            opened.insert(path);
            bytes += of.bytes();
            // Plans that other machines read have no positions of rows.
            let chosen = !matches!(self.at, FilesAt::Folder) && !of.is_whole();
            common.alone = chosen.then(|| path.to_owned());
            groups.entry(common).or_default().insert(path, of);
        }
        if matches!(self.at, FilesAt::Folder) {
            self.from.store.counters().opened(opened.len() as u64, bytes);
        }
        groups.iter().map(|(common, used)| self.source(common, used.values())).collect()
    }

    fn file(&self, of: &FileParts<'_>) -> Result<PartitionedFile> {
        let FileParts { file, .. } = of;
        let subject = of.subject();
        let external = |error: object_store::path::Error| DataFusionError::External(error.into());
        let location = match &self.at {
            FilesAt::Folder => match self.from.store.key(&subject, file)? {
                Some(key) => Path::parse(key).map_err(external)?,
                None => {
                    let path = self.from.store.folder(&subject).join(&file.path);
                    let path = std::path::absolute(&path).map_err(DataFusionError::IoError)?;
                    Path::from_absolute_path(path).map_err(external)?
                }
            },
            #[cfg(feature = "distributed")]
            FilesAt::Url(_) => Path::parse(self.from.store.path_below_data(&subject, file)).map_err(external)?,
        };
        // A file never changes.
        let last_modified = DateTime::UNIX_EPOCH;
        let meta = ObjectMeta { location, last_modified, size: file.bytes, e_tag: None, version: None };
        let footer = usize::try_from(file.footer).unwrap_or_default();
        let read = PartitionedFile::new_from_meta(meta).with_metadata_size_hint(footer + 8);
        if of.is_whole() || !matches!(self.at, FilesAt::Folder) {
            return Ok(read);
        }
        let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let rows = of.rows().into_iter().map(|rows| position(rows.start)..position(rows.end));
        let selection = RowSelection::from_consecutive_ranges(rows, position(file.rows));
        Ok(read.with_extension(ParquetRowSelection::new(selection)))
    }

    /// Returns the condition that chooses the used rows of a file: days of saved searches. No other row of a file has these.
    fn chosen(&self, of: &FileParts<'_>, schema: &Schema) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let mut days: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
        for (plan, part) in &of.parts {
            let span = span_of(&part.days);
            let days = days.entry(plan.aid.as_deref().unwrap_or_default()).or_default();
            match days.last_mut().filter(|last| last.1 == span.start) {
                Some(last) => last.1 = span.end,
                None => days.push((span.start, span.end)),
            }
        }
        let mut aids: BTreeMap<Vec<(i64, i64)>, Texts> = BTreeMap::new();
        for (aid, days) in days {
            aids.entry(days).or_default().push(lit(ScalarValue::Utf8(Some(aid.to_owned()))));
        }
        let aid: Arc<dyn PhysicalExpr> = Arc::new(Column::new(AID, schema.index_of(AID)?));
        let chosen = aids.into_iter().map(|(days, aids)| {
            let named = in_list(Arc::clone(&aid), aids, &false, schema)?;
            match self.within(&days, schema)? {
                Some(days) => binary(named, Operator::And, days, schema),
                None => Ok(named),
            }
        });
        let chosen = chosen.collect::<Result<Vec<_>>>()?.into_iter();
        Ok(any_of(chosen, schema)?.into_iter().collect())
    }

    /// Returns the condition that the time of a row is within one of these ranges, in microseconds since 1970.
    fn within(&self, ranges: &[(i64, i64)], schema: &Schema) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let time = self.config.spec.time.as_deref().unwrap_or_default();
        let time: Arc<dyn PhysicalExpr> = Arc::new(Column::new(time, schema.index_of(time)?));
        let instant = |at: i64| lit(ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into())));
        let ranges = ranges.iter().map(|(start, end)| {
            let from = binary(Arc::clone(&time), Operator::GtEq, instant(*start), schema)?;
            let to = binary(Arc::clone(&time), Operator::Lt, instant(*end), schema)?;
            binary(from, Operator::And, to, schema)
        });
        any_of(ranges.collect::<Result<Vec<_>>>()?.into_iter(), schema)
    }

    /// Returns an operator with the rows of files that have this in common, in the output's columns.
    fn source<'p>(
        &self,
        common: &Common,
        used: impl Iterator<Item = &'p FileParts<'p>> + Clone,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = used.clone().map(|of| self.file(of)).collect::<Result<Vec<_>>>()?;
        let rows: usize = used.clone().map(|of| usize::try_from(of.mentions()).unwrap_or(usize::MAX)).sum();
        let parts = used.clone().flat_map(|of| &of.parts);
        let aids: BTreeSet<Option<&str>> = parts.map(|(plan, _)| plan.aid.as_deref()).collect();
        let (layout, readable) = (self.from.store.schema(), self.from.store.readable(common.version)?);
        let fields = layout.fields().iter().filter(|field| readable.contains(field.name()));
        let schema: SchemaRef = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let (duration, timezone) = (common.duration.as_deref(), common.timezone.as_deref());
        let columns = FileColumns::new(&self.config.spec, Arc::clone(&schema), aids, duration, timezone);
        let predicate = self.condition(common, used, &columns)?;
        let output = self.config.projection.iter().map(|at| columns.value(*at)).collect::<Result<Vec<_>>>()?;
        // Only the columns that are used are read.
        let mut read: Vec<usize> =
            output.iter().chain(&predicate).flat_map(collect_columns).map(|column| column.index()).collect();
        read.sort_unstable();
        read.dedup();
        let source = self.parquet(&schema, predicate.as_ref())?;
        let url = match &self.at {
            // Its readers have the files, also those of a bucket.
            FilesAt::Folder => ObjectStoreUrl::local_filesystem(),
            #[cfg(feature = "distributed")]
            FilesAt::Url(url) => url.clone(),
        };
        let mut statistics = Statistics::new_unknown(&schema);
        statistics.num_rows = Precision::Inexact(rows);
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(vec![FileGroup::new(files)])
            .with_statistics(statistics)
            .with_projection_indices(Some(read.clone()))?
            .with_batch_size(Some(BATCH))
            .build();
        let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        let scan = scan.repartitioned(self.partitions, self.options)?.unwrap_or(scan);
        let rows: Arc<dyn ExecutionPlan> = match predicate {
            // What a filter lets through is a guess, by which a join chooses the side that it keeps in memory.
            Some(predicate) => {
                let predicate = placed(predicate, &read)?;
                // No rule of the session visits these operators when they run.
                let predicate = opaque(&predicate, &scan.schema()).unwrap_or(predicate);
                let percent = if self.config.has_conditions() { 20 } else { 100 };
                Arc::new(FilterExec::try_new(predicate, scan)?.with_default_selectivity(percent)?)
            }
            None => scan,
        };
        let names = self.output.fields().iter().map(|field| field.name().clone());
        let output = output.into_iter().zip(names).map(|(expr, name)| Ok((placed(expr, &read)?, name)));
        Ok(Arc::new(ProjectionExec::try_new(output.collect::<Result<Vec<_>>>()?, rows)?))
    }

    /// Returns the condition that chooses the rows of files; `None`: all rows.
    fn condition<'p>(
        &self,
        common: &Common,
        used: impl Iterator<Item = &'p FileParts<'p>>,
        columns: &FileColumns<'_>,
    ) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let (range, schema) = (common.range.as_slice(), columns.schema());
        let mut filters: Vec<Arc<dyn PhysicalExpr>> = self.within(range, schema)?.into_iter().collect();
        for of in used.filter(|_| common.alone.is_some()) {
            filters.extend(self.chosen(of, schema)?);
        }
        if let Some(predicate) = &self.config.predicate {
            let mapped = Arc::clone(predicate).transform(|expr| {
                match expr.downcast_ref::<Column>().map(|column| columns.value(column.index())).transpose()? {
                    Some(value) => Ok(Transformed::yes(value)),
                    None => Ok(Transformed::no(expr)),
                }
            })?;
            filters.push(hidden_from_pruning(&mapped.data, schema)?.unwrap_or(mapped.data));
        }
        Ok((!filters.is_empty()).then(|| conjunction(filters)))
    }

    /// Returns the reader of files. On this machine, it compares what it reads with the checksums.
    fn parquet(&self, schema: &SchemaRef, predicate: Option<&Arc<dyn PhysicalExpr>>) -> Result<ParquetSource> {
        let mut source = ParquetSource::new(Arc::clone(schema)).with_pushdown_filters(false);
        // Otherwise the engine's rules push it down from the filter.
        if let (Some(predicate), FilesAt::Folder) = (predicate, &self.at) {
            source = source.with_predicate(Arc::clone(predicate));
        }
        let Some(runtime) = &self.runtime else { return Ok(source) };
        #[cfg(feature = "shared")]
        let objects = self.from.store.objects().map(Arc::clone);
        #[cfg(not(feature = "shared"))]
        let objects = None;
        let files = match objects {
            Some(objects) => objects,
            None => runtime.object_store(ObjectStoreUrl::local_filesystem())?,
        };
        let checked = CheckedFiles::new(files, Arc::clone(&self.from.store));
        let footers = runtime.cache_manager.get_file_metadata_cache();
        let readers = CachedParquetFileReaderFactory::new(Arc::new(checked), footers);
        Ok(source.with_parquet_file_reader_factory(Arc::new(readers)))
    }
}

/// Returns the used rows of each file of these days, in the order in which [`FileScan::sources`] takes those that may match.
pub(super) fn look_ups(parts: &[StoredPart]) -> Vec<LookUp> {
    let of_file = |of: FileParts<'_>| LookUp { subject: of.subject(), file: Arc::clone(of.file), rows: of.rows() };
    by_file(parts).into_values().map(of_file).collect()
}

/// Returns the used parts of the files of these days.
fn by_file(parts: &[StoredPart]) -> BTreeMap<(Common, &str), FileParts<'_>> {
    let mut files: BTreeMap<(Common, &str), FileParts<'_>> = BTreeMap::new();
    let used = |part: &&Stored| part.mentions() > 0;
    // Days that are whole lie within the span as well, and are read together with others.
    let cut = parts.iter().filter(|StoredPart { stored, span, .. }| {
        let cuts = |days: Range<i64>| days.start < span.start || span.end < days.end;
        stored.iter().filter(used).any(|part| cuts(span_of(&part.days)))
    });
    let cut: BTreeSet<(i64, i64)> = cut.map(|part| (part.span.start, part.span.end)).collect();
    for StoredPart { plan, stored, span } in parts {
        for part in stored.iter().filter(used) {
            let Some(file) = part.region.file() else { continue };
            let range = (span.start, span.end);
            let common = Common {
                duration: plan.named_window().map(str::to_owned),
                timezone: plan.timezone.clone(),
                version: file.schema,
                unfiltered: part.filters.is_empty(),
                range: cut.contains(&range).then_some(range),
                alone: None,
            };
            let new = || FileParts { file, parts: Vec::new(), matching: None };
            let of = files.entry((common, file.path.as_str())).or_insert_with(new);
            of.parts.push((plan, part));
        }
    }
    files
}

/// Number of files with the mentions of stored days.
#[cfg(feature = "distributed")]
pub(super) fn files_of<'s>(stored: impl Iterator<Item = &'s Stored>) -> u64 {
    let used = stored.filter(|part| part.mentions() > 0).filter_map(|part| part.region.file());
    used.map(|file| file.path.as_str()).collect::<BTreeSet<_>>().len() as u64
}

/// Returns the condition that one of several holds.
fn any_of(
    conditions: impl Iterator<Item = Arc<dyn PhysicalExpr>>,
    schema: &Schema,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let mut any: Option<Arc<dyn PhysicalExpr>> = None;
    for condition in conditions {
        any = Some(match any {
            Some(any) => binary(any, Operator::Or, condition, schema)?,
            None => condition,
        });
    }
    Ok(any)
}

/// Number of processors. It is looked up once: the engine reads several files of the system for it.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

impl Driver {
    /// Returns the rows of stored days, in the sort order of the scan, if it has one. Rows with words that a condition looks for
    /// are looked up once the first batch is asked for.
    pub(super) fn files(self: &Arc<Self>, from: &FromStore, parts: Vec<StoredPart>) -> Result<Batches> {
        let Some(search) = search(&self.config) else { return self.matching_rows(from, &parts, Matching::new()) };
        let (driver, from) = (Arc::clone(self), from.clone());
        let rows = async move {
            let matching = driver.matching(&from, &parts, search).await?;
            driver.matching_rows(&from, &parts, matching)
        };
        Ok(stream::once(rows).try_flatten().boxed())
    }

    /// As [`files`](Self::files), of the rows that may match.
    fn matching_rows(&self, from: &FromStore, parts: &[StoredPart], matching: Matching) -> Result<Batches> {
        let stored = || parts.iter().flat_map(|part| &part.stored);
        let scan = FileScan {
            config: &self.config,
            output: &self.converter.schema,
            from,
            at: FilesAt::Folder,
            runtime: Some(self.context.runtime_env()),
            partitions: processors(),
            options: self.context.session_config().options(),
        };
        let mut sources = scan.sources(parts, matching)?;
        let schema = Arc::clone(&self.converter.schema);
        let rows: Arc<dyn ExecutionPlan> = match sources.len() {
            0 => return Ok(stream::empty().boxed()),
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
        let (store, used) = (Arc::clone(&from.store), stored().cloned().collect::<Vec<_>>());
        let rows = rows.map(move |batch| {
            let batch = batch.map_err(|error| match is_of_file(&error) {
                true => at_table(unreadable(&error, &store, &used)),
                false => error,
            })?;
            counters.add(batch.num_rows());
            with_schema(&batch, &schema)
        });
        Ok(rows.boxed())
    }

    /// Merges streams in the sort order of the scan.
    pub(super) fn merged(&self, rows: Vec<Batches>) -> Result<Batches> {
        let schema = &self.converter.schema;
        let streams = rows
            .into_iter()
            .map(|rows| Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows)) as SendableRecordBatchStream);
        let merging = Merging::new(&self.context, self.config.mode.wanted());
        Ok(merging.merge(streams.collect(), &self.config, &self.converter)?.boxed())
    }
}

/// True for errors of files, which expressions of a query cannot cause.
fn is_of_file(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ParquetError(_) | DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => true,
        DataFusionError::ArrowError(error, _) => {
            matches!(**error, ArrowError::ParquetError(_) | ArrowError::IoError(..) | ArrowError::ExternalError(_))
        }
        // The file has other rows than in the catalog.
        DataFusionError::Execution(what) => what.starts_with("Invalid Parquet RowSelection"),
        _ => false,
    }
}

/// The error of a file that cannot be read.
fn unreadable(error: &DataFusionError, store: &Store, used: &[Stored]) -> Error {
    if let Some(error) = Error::find(error) {
        return error.clone();
    }
    if let Some(error) = store.first_unreadable(used.iter().map(|part| (&part.filters, part.region.as_ref()))) {
        return error;
    }
    Error::new(ErrorKind::Store, format!("cannot read the store: {}", error.strip_backtrace()))
        .advice(crate::store::unreadable())
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
