//! Runs a scan: plans in, filtered and projected batches out.
//!
//! Without a fetch, several saved searches are read at once and their pages come as they arrive. With one, they are
//! read one after another and page by page, so that nothing is asked for that is not needed. In an order, they are
//! merged: a page of each to begin with, and then of those whose rows come next.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{SortOptions, and, filter_record_batch, is_not_null};
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::internal_err;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::sorts::streaming_merge::StreamingMergeBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use super::discover;
use super::fetch::{Scanning, least_rows, sort_key};
use super::plans;
use crate::client::{Pace, Scan, read_pages};
use crate::config::SessionSettings;
use crate::decode::{Decoded, Decoder};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::pushdown::ServiceOrder;
use crate::request::{Endpoint, PageRequest, Pages, RequestPlan};

/// The stream of one partition.
pub(super) fn run(
    scanning: Arc<Scanning>,
    rows: SendableRecordBatchStream,
    schema: SchemaRef,
    context: &TaskContext,
    metrics: &ExecutionPlanMetricsSet,
    partition: usize,
) -> SendableRecordBatchStream {
    let settings = SessionSettings::of(context.session_config().options());
    let counters = Arc::new(Counters::new(metrics, partition));
    let merging = Merging::new(context);
    let output = Arc::clone(&schema);
    // Now, not when the stream is first polled: the scans of a query that wait for each other share it.
    let query = scanning.connection.query(&scanning.query, &settings);
    let stream = try_stream! {
        let rows: Vec<RecordBatch> = rows.try_collect().await?;
        let table = scanning.table.name();
        let at_table = |error: Error| error.at(Place { table: Some(table.to_owned()), ..Place::default() });
        let reader = Arc::new(Reader::try_new(&scanning, output)?);
        let scan = Arc::new(Scan::new(Arc::clone(&query.budget), settings.concurrency));
        let template = &scanning.plan.template;
        if template.endpoint == Endpoint::List {
            let body = scanning.connection.list(&query, &scan).await.map_err(at_table)?;
            let page = reader.decoder.decode(&PageRequest::list(), body).map_err(at_table)?;
            let batch = reader.finish(&page.batch)?;
            let batch = batch.slice(0, batch.num_rows().min(scanning.fetch.unwrap_or(usize::MAX)));
            counters.page(&scan, &page);
            counters.baseline.record_output(batch.num_rows());
            yield batch;
            return;
        }
        let mut aids: Vec<String> = Vec::new();
        for aid in rows.iter().flat_map(plans::read) {
            match aid {
                Some(aid) => aids.push(aid),
                None => aids.extend(scanning.connection.listed_aids(&query, &scan).await.map_err(at_table)?),
            }
        }
        if let Some(column) = scanning.aid_column() {
            let conditions = scanning.predicate.iter().chain(&scanning.above);
            aids = discover::possible(aids, conditions, column)?;
        }
        let plans = aids.iter().map(|aid| {
            let sort = scanning.order.as_ref().map(|order| order.value.clone());
            let pages = template.pages.map(|pages| Pages { ordered: sort.is_some(), ..pages });
            RequestPlan { aid: Some(aid.clone()), sort: sort.or_else(|| template.sort.clone()), pages, ..template.clone() }
        });
        let plans: Vec<RequestPlan> = plans.collect();
        if scanning.order.is_some() && plans.len() > 1 {
            scan.query.require(plans.len() as u64).map_err(at_table)?;
            // With a limit nobody knows whose rows will be wanted; without, all of them will.
            let pace = match scanning.fetch {
                Some(_) => Pace::OnDemand,
                None => Pace::Ahead(settings.concurrency.div_ceil(plans.len())),
            };
            let streams = plans.into_iter().map(|plan| {
                let (reader, scanning, scan) = (Arc::clone(&reader), Arc::clone(&scanning), Arc::clone(&scan));
                in_order(reader, scanning, scan, Arc::clone(&counters), plan, pace)
            });
            let mut merged = merging.merge(streams.collect(), &reader, scanning.fetch)?;
            while let Some(batch) = merged.next().await {
                let batch = batch?;
                counters.baseline.record_output(batch.num_rows());
                yield batch;
            }
            return;
        }
        match scanning.fetch {
            Some(fetch) => {
                let mut left = fetch;
                for plan in plans {
                    if left == 0 {
                        break;
                    }
                    let told = scanning.plan.exact.then_some(left.max(least_rows(scanning.order.as_ref())) as u64);
                    let plan = plan.with_fetch(told);
                    let pace = if told.is_some() { Pace::Ahead(settings.concurrency) } else { Pace::OnDemand };
                    let mut dropped = 0;
                    let mut pages = reader.pages(&scanning, &scan, plan, pace);
                    while left > 0 && let Some(page) = pages.next().await {
                        let page = page.map_err(at_table)?;
                        let batch = reader.finish(&page.batch)?;
                        dropped += page.batch.num_rows() - batch.num_rows();
                        let batch = batch.slice(0, batch.num_rows().min(left));
                        left -= batch.num_rows();
                        counters.page(&scan, &page);
                        counters.baseline.record_output(batch.num_rows());
                        yield batch;
                    }
                    if told.is_some() && dropped > 0 && left > 0 {
                        Err(at_table(filters_ignored(dropped)))?;
                    }
                }
            }
            None => {
                scan.query.require(plans.len() as u64).map_err(at_table)?;
                // All scans together keep no more requests under way than one would.
                let scans = plans.len().clamp(1, settings.concurrency);
                let pace = Pace::Ahead(settings.concurrency.div_ceil(scans));
                let streams = stream::iter(plans).map(|plan| reader.pages(&scanning, &scan, plan, pace));
                let mut pages = streams.flatten_unordered(scans);
                while let Some(page) = pages.next().await {
                    let page = page.map_err(at_table)?;
                    let batch = reader.finish(&page.batch)?;
                    counters.page(&scan, &page);
                    counters.baseline.record_output(batch.num_rows());
                    yield batch;
                }
            }
        }
    };
    Box::pin(RecordBatchStreamAdapter::new(schema, stream.boxed()))
}

/// The rows of one saved search in the service's order, for a merge that takes what it needs.
fn in_order(
    reader: Arc<Reader>,
    scanning: Arc<Scanning>,
    scan: Arc<Scan>,
    counters: Arc<Counters>,
    plan: RequestPlan,
    pace: Pace,
) -> SendableRecordBatchStream {
    let schema = Arc::clone(&reader.schema);
    let stream = try_stream! {
        let table = Some(scanning.table.name().to_owned());
        let at_table = |error: Error| error.at(Place { table: table.clone(), ..Place::default() });
        // No more rows of one can be wanted than of all.
        let fetch = scanning.fetch.map(|fetch| fetch.max(least_rows(scanning.order.as_ref())) as u64);
        let told = fetch.filter(|_| scanning.plan.exact);
        let (mut received, mut dropped) = (0, 0);
        let mut pages = reader.pages(&scanning, &scan, plan.with_fetch(told), pace);
        while let Some(page) = pages.next().await {
            let page = page.map_err(at_table)?;
            let batch = reader.finish(&page.batch)?;
            counters.page(&scan, &page);
            received += page.batch.num_rows() as u64;
            dropped += page.batch.num_rows() - batch.num_rows();
            yield batch;
        }
        if dropped > 0 && told.is_some_and(|told| received >= told) {
            Err(at_table(filters_ignored(dropped)))?;
        }
    };
    Box::pin(RecordBatchStreamAdapter::new(schema, stream.boxed()))
}

/// Merges streams that are in one order.
struct Merging {
    reservation: MemoryReservation,
    batch_size: usize,
}

impl Merging {
    fn new(context: &TaskContext) -> Self {
        let reservation = MemoryConsumer::new("FetchExec merge").register(context.memory_pool());
        Self { reservation, batch_size: context.session_config().batch_size() }
    }

    fn merge(
        self,
        streams: Vec<SendableRecordBatchStream>,
        reader: &Reader,
        fetch: Option<usize>,
    ) -> DataFusionResult<SendableRecordBatchStream> {
        let key = reader.order.as_ref().and_then(|(_, order)| sort_key(order, &reader.schema));
        let Some(ordering) = LexOrdering::new(key) else {
            return internal_err!("an order without a key in the output");
        };
        StreamingMergeBuilder::new()
            .with_streams(streams)
            .with_schema(Arc::clone(&reader.schema))
            .with_expressions(&ordering)
            // The merge counts its own; the operator's are counted here.
            .with_metrics(BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), 0))
            .with_batch_size(self.batch_size)
            .with_fetch(fetch)
            .with_reservation(self.reservation)
            .build()
    }
}

fn filters_ignored(dropped: usize) -> Error {
    Error::new(
        ErrorKind::Contradiction,
        format!("the service gave {dropped} mentions that do not satisfy the filters it was sent"),
    )
    .advice("it ignores a parameter or compares otherwise: correct [filters] or [window] in the profile")
}

/// What turns pages into output: the columns read, the predicate over them, and those that leave.
struct Reader {
    decoder: Decoder,
    predicate: Option<Arc<dyn PhysicalExpr>>,
    order: Option<(usize, ServiceOrder)>,
    output: Vec<usize>,
    schema: SchemaRef,
}

impl Reader {
    fn try_new(scanning: &Scanning, schema: SchemaRef) -> DataFusionResult<Self> {
        let Scanning { connection, spec, projection, predicate, order, .. } = scanning;
        let position = |name: &str| spec.columns.iter().position(|column| column.name == name);
        // Positions in the table; ids and the key of the order are read whether they leave or not.
        let mut read: BTreeSet<usize> = projection.iter().copied().collect();
        read.extend(spec.id.as_deref().and_then(position));
        read.extend(order.as_ref().and_then(|order| position(&order.column)));
        read.extend(predicate.iter().flat_map(collect_columns).map(|column| column.index()));
        let read: Vec<usize> = read.into_iter().collect();
        let decoder = Decoder::new(Arc::clone(connection.profile()), Arc::clone(spec), &read);
        let predicate = predicate
            .as_ref()
            .map(|predicate| reassign_expr_columns(Arc::clone(predicate), decoder.schema()))
            .transpose()?;
        let at = |column: usize| read.binary_search(&column).ok();
        let order = order.as_ref().and_then(|order| Some((at(position(&order.column)?)?, order.clone())));
        // Every column of the projection is among those read.
        let output = projection.iter().filter_map(|column| at(*column)).collect();
        Ok(Self { decoder, predicate, order, output, schema })
    }

    /// The pages of a plan; where an order was asked for, it is checked.
    fn pages<'a>(
        &'a self,
        scanning: &'a Scanning,
        scan: &'a Scan,
        plan: RequestPlan,
        pace: Pace,
    ) -> BoxStream<'a, Result<Decoded>> {
        let aid = plan.aid.clone();
        let mut check = self.order.as_ref().map(|(column, order)| OrderCheck { column: *column, order, last: None });
        let pages = read_pages(scanning.connection.client(), scan, Arc::new(plan), &self.decoder, pace);
        let pages = pages.map(move |page| {
            let page = page?;
            match check.as_mut().map(|check| check.observe(&page.batch)) {
                Some(Err(error)) => Err(error.at(Place { aid: aid.clone(), ..Place::default() })),
                _ => Ok(page),
            }
        });
        pages.boxed()
    }

    /// The rows that satisfy the predicate, and the columns that leave.
    fn finish(&self, batch: &RecordBatch) -> DataFusionResult<RecordBatch> {
        let filtered;
        let batch = match &self.predicate {
            Some(predicate) => {
                let flags = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
                filtered = filter_record_batch(batch, &no_nulls(as_boolean_array(&flags)?)?)?;
                &filtered
            }
            None => batch,
        };
        let columns: Vec<ArrayRef> = self.output.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// NULL is not true.
fn no_nulls(flags: &BooleanArray) -> DataFusionResult<BooleanArray> {
    if flags.null_count() == 0 {
        return Ok(flags.clone());
    }
    let values = BooleanArray::new(flags.values().clone(), None);
    Ok(and(&values, &is_not_null(flags)?)?)
}

/// Checks that rows come in the order that was asked for.
struct OrderCheck<'a> {
    column: usize,
    order: &'a ServiceOrder,
    /// The last key, as an array of one.
    last: Option<ArrayRef>,
}

impl OrderCheck<'_> {
    fn observe(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = batch.column(self.column);
        let options: SortOptions = self.order.options;
        let failed = |error| Error::new(ErrorKind::Contradiction, format!("keys cannot be compared: {error}"));
        if let Some(last) = &self.last {
            let compare = arrow::array::make_comparator(last, keys, options).map_err(failed)?;
            if compare(0, 0).is_gt() {
                return Err(self.violation());
            }
        }
        let compare = arrow::array::make_comparator(keys, keys, options).map_err(failed)?;
        if (1..keys.len()).any(|row| compare(row - 1, row).is_gt()) {
            return Err(self.violation());
        }
        self.last = Some(keys.slice(keys.len() - 1, 1));
        Ok(())
    }

    fn violation(&self) -> Error {
        let ServiceOrder { value, column, .. } = self.order;
        Error::new(
            ErrorKind::Contradiction,
            format!("the service does not keep the order `{value}` by `{column}` that it was asked for"),
        )
        .advice("correct or remove that value in the profile's [sort]")
    }
}

/// The counters that EXPLAIN ANALYZE shows.
struct Counters {
    baseline: BaselineMetrics,
    requests: Count,
    retries: Count,
    pages: Count,
    received: Count,
    bytes: Count,
    wait_ms: Count,
    conflicts: Count,
}

impl Counters {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            baseline: BaselineMetrics::new(metrics, partition),
            requests: counter("requests"),
            retries: counter("retries"),
            pages: counter("pages"),
            received: counter("mentions_received"),
            bytes: counter("bytes_received"),
            wait_ms: counter("wait_ms"),
            conflicts: counter("type_conflicts"),
        }
    }

    fn page(&self, scan: &Scan, page: &Decoded) {
        self.pages.add(1);
        self.received.add(page.batch.num_rows());
        self.conflicts.add(usize::try_from(page.conflicts).unwrap_or(usize::MAX));
        for (counter, now) in [
            (&self.requests, &scan.requests),
            (&self.retries, &scan.retries),
            (&self.bytes, &scan.bytes),
            (&self.wait_ms, &scan.wait_ms),
        ] {
            let now = usize::try_from(now.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
            counter.add(now.saturating_sub(counter.value()));
        }
    }
}
