//! Runs a scan: plans in, filtered and projected batches out.
//!
//! ```text
//! rows of the input ─▶ saved searches that can have rows ─▶ plans, one a saved search and window
//!     ├─ no limit          several at once, pages as they arrive
//!     ├─ a limit           one after another, page by page, until it is met
//!     └─ an order          merged: a page of each to begin with, then of those whose rows come next
//! ```

use std::any::Any;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use arrow::array::RecordBatch;
use async_stream::try_stream;
use bytes::Bytes;
use datafusion::common::internal_err;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::sorts::streaming_merge::StreamingMergeBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use super::aid_rows;
use super::counters::Counters;
use super::memory::PoolMemory;
use super::prune;
use super::reader::Reader;
use super::requests::{Requests, least_rows};
use super::scan_config::{Mode, ScanConfig, Slice};
use super::scan_exec::{FetchExec, sort_key};
use crate::client::{Caller, Completeness, Pace, Scan, read_pages};
use crate::config::SessionSettings;
use crate::connection::Query;
use crate::decode::Decoded;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::pushdown::Aids;
use crate::request::{Endpoint, PageRequest, RequestPlan};

/// Batches of the output.
pub(super) type Batches = BoxStream<'static, DataFusionResult<RecordBatch>>;

/// The stream of one partition of a scan. The key of the service is taken out of its errors here, wherever they arise.
pub(super) fn run(
    scan: &FetchExec,
    rows: SendableRecordBatchStream,
    context: &Arc<TaskContext>,
    metrics: &ExecutionPlanMetricsSet,
    partition: usize,
) -> SendableRecordBatchStream {
    let (config, requests, schema) = (Arc::clone(&scan.config), Arc::clone(&scan.requests), scan.schema());
    let settings = SessionSettings::of(context.session_config().options());
    let counters = Counters::new(metrics, partition);
    let merging = Merging::new(context, config.mode.wanted());
    let memory = Arc::new(PoolMemory::new(context, &config.spec.name));
    // Now, not when the stream is first polled: the scans of a query that wait for each other share it.
    let execution: Arc<dyn Any + Send + Sync> = Arc::clone(context) as _;
    let caller = context.session_config().get_extension::<Caller>();
    let query = config.connection.query(&config.query, &execution, &settings, caller);
    let (connection, output) = (Arc::clone(&config.connection), Arc::clone(&schema));
    let stream = try_stream! {
        let rows: Vec<RecordBatch> = rows.try_collect().await?;
        // Of the whole plan, before the first request of any scan.
        query.budget.allow(config.told.announced.load(Ordering::Relaxed))?;
        let planned = Arc::clone(&config);
        // Periods that end now end when they are asked for.
        let instants = planned.connection.profile().window.takes_instants();
        let config = config.bounded(if instants { query.now } else { planned.connection.now() })?;
        let requests = if Arc::ptr_eq(&planned, &config) { requests } else { Arc::new(Requests::new(&config)) };
        let notes = config.told.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for note in notes {
            config.connection.client().log().note(&query.budget, None, note);
        }
        let reader = Arc::new(Reader::try_new(&config, config.mode.order(), output, settings.lossy_text)?);
        let scan = Arc::new(Scan::new(Arc::clone(&query.budget), settings.concurrency).with_memory(memory));
        let driver = Arc::new(Driver { config, requests, reader, scan, counters, query, settings });
        let mut batches = Arc::clone(&driver).start(&rows, merging).await?;
        while let Some(batch) = batches.next().await {
            driver.counters.spent(&driver.scan);
            let batch = batch?;
            driver.counters.baseline.record_output(batch.num_rows());
            yield batch;
        }
        driver.counters.spent(&driver.scan);
    };
    let stream = stream.map_err(move |error| connection.client().redacted(error));
    Box::pin(RecordBatchStreamAdapter::new(schema, stream.boxed()))
}

/// What the streams of one partition share.
pub(super) struct Driver {
    pub(super) config: Arc<ScanConfig>,
    pub(super) requests: Arc<Requests>,
    pub(super) reader: Arc<Reader>,
    pub(super) scan: Arc<Scan>,
    pub(super) counters: Counters,
    pub(super) query: Arc<Query>,
    pub(super) settings: SessionSettings,
}

impl Driver {
    async fn start(self: Arc<Self>, rows: &[RecordBatch], merging: Merging) -> DataFusionResult<Batches> {
        let ScanConfig { plan, mode, .. } = self.config.as_ref();
        let Slice { fetch, .. } = mode.slice();
        if plan.template.endpoint == Endpoint::List {
            let list = RequestPlan::list();
            return Ok(self.one_after_another(vec![list], Pace::OnDemand, false));
        }
        let searches = self.plans(rows).await?;
        let several = searches.len() > 1;
        let ahead = Pace::Ahead(self.settings.concurrency);
        let Mode::Ordered { order, wanted, .. } = mode else {
            let plans: Vec<RequestPlan> = searches.into_iter().flatten().collect();
            return match fetch {
                Some(_) => Ok(self.one_after_another(plans, ahead, several)),
                None => self.all_at_once(plans, several),
            };
        };
        // The windows of a saved search follow each other in the order of time; in another they are merged.
        let by_time = self.config.spec.time.as_ref() == Some(&order.column);
        let mut groups =
            if by_time { searches } else { searches.into_iter().flatten().map(|plan| vec![plan]).collect() };
        if order.options.descending {
            groups.iter_mut().for_each(|group| group.reverse());
        }
        self.require(groups.len())?;
        // With a limit nobody knows whose rows will be wanted; without, all of them will.
        let limited = fetch.is_some() || wanted.is_some();
        if groups.len() <= 1 {
            let pace = if wanted.is_some() { Pace::OnDemand } else { ahead };
            return Ok(self.one_after_another(groups.into_iter().flatten().collect(), pace, several));
        }
        let pace = if limited { Pace::OnDemand } else { Pace::Ahead(self.settings.concurrency.div_ceil(groups.len())) };
        let streams = groups.into_iter().map(|group| {
            let rows = Arc::clone(&self).one_after_another(group, pace, several);
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.reader.schema), rows)) as SendableRecordBatchStream
        });
        Ok(merging.merge(streams.collect(), &self.config, &self.reader)?.boxed())
    }

    /// The plans of the saved searches that can have rows, those of one together.
    async fn plans(&self, rows: &[RecordBatch]) -> DataFusionResult<Vec<Vec<RequestPlan>>> {
        let ScanConfig { connection, plan, predicate, late, .. } = self.config.as_ref();
        let mut aids: Vec<String> = Vec::new();
        if plan.aids == Aids::Given(Vec::new()) {
            return Ok(Vec::new());
        }
        for aid in rows.iter().flat_map(aid_rows::read) {
            match aid {
                Some(aid) => aids.push(aid),
                None => {
                    let listed = connection.listed_aids(&self.query, &self.scan).await;
                    aids.extend(listed.map_err(|error| self.at_table(error))?);
                }
            }
        }
        if let Some(column) = self.config.aid_column() {
            aids = prune::possible(aids, predicate.iter().chain(&late.above), column)?;
        }
        let windows = self.requests.windows();
        let of = |aid: &String| windows.iter().map(|window| self.requests.of(aid, window)).collect();
        Ok(aids.iter().map(of).collect())
    }

    /// The rows of all plans as they come. All together keep no more requests under way than one would.
    fn all_at_once(self: Arc<Self>, plans: Vec<RequestPlan>, several: bool) -> DataFusionResult<Batches> {
        let reads = self.config.summary().is_none() && plans.iter().any(|plan| plan.pages.is_some());
        if reads {
            self.require(plans.len())?;
        } else {
            // Other scans may ask the same questions, and each is asked once.
            let allowed = self.scan.query.allow(plans.len() as u64);
            allowed.map_err(|error| self.at_table(error))?;
        }
        let scans = plans.len().clamp(1, self.settings.concurrency.max(1));
        // Those who read until some page must not ask for the next ones ahead.
        let ahead = Pace::Ahead(self.settings.concurrency.div_ceil(scans));
        let pace = if self.config.plan.until.is_some() { Pace::OnDemand } else { ahead };
        let streams = stream::iter(plans).map(move |plan| {
            let refused = several.then(|| plan.clone());
            let rows = match self.config.summary() {
                Some(summary) if self.config.plan.is_whole(plan.duration.as_deref()) => {
                    Arc::clone(&self).summary(summary.clone(), plan)
                }
                _ => Arc::clone(&self).rows(plan, None, pace),
            };
            Arc::clone(&self).without_refused(refused, rows)
        });
        Ok(streams.flatten_unordered(scans).boxed())
    }

    /// The rows of all plans, one after another until the limit is met. `several` says whether the query concerns more than
    /// one saved search.
    fn one_after_another(self: Arc<Self>, plans: Vec<RequestPlan>, pace: Pace, several: bool) -> Batches {
        let stream = try_stream! {
            let ScanConfig { plan: scan_plan, mode, .. } = self.config.as_ref();
            let Slice { fetch, .. } = mode.slice();
            let mut left = fetch.unwrap_or(usize::MAX);
            for plan in plans {
                if left == 0 {
                    break;
                }
                let told = fetch.filter(|_| scan_plan.exact).map(|_| left.max(least_rows(mode.order())) as u64);
                // Pages ahead are of use only where all their rows count.
                let pace = if fetch.is_some() && told.is_none() { Pace::OnDemand } else { pace };
                let refused = several.then(|| plan.clone());
                let rows = Arc::clone(&self).rows(plan, told, pace);
                let mut rows = Arc::clone(&self).without_refused(refused, rows);
                while left > 0 && let Some(batch) = rows.next().await {
                    let batch = batch?;
                    let batch = batch.slice(0, batch.num_rows().min(left));
                    left -= batch.num_rows();
                    yield batch;
                }
            }
        };
        stream.boxed()
    }

    /// Rows of one saved search of several, or a warning in their place where the service refuses it and the query is to go
    /// on.
    fn without_refused(self: Arc<Self>, plan: Option<RequestPlan>, mut rows: Batches) -> Batches {
        let Some(plan) = plan.filter(|_| self.settings.partial) else { return rows };
        let stream = try_stream! {
            while let Some(batch) = rows.next().await {
                let refused = match &batch {
                    Err(error) => Error::find(error).filter(|e| matches!(e.kind(), ErrorKind::Forbidden | ErrorKind::NotFound)),
                    Ok(_) => None,
                };
                if let Some(error) = refused {
                    self.config.connection.client().log().warn(&self.query.budget, error);
                    self.scan.incomplete.fetch_add(1, Ordering::Relaxed);
                    if let Some(label) = self.reader.label(&plan, &self.config.connection.client().redact(&error.to_string()))? {
                        yield label;
                    }
                    return;
                }
                yield batch?;
            }
        };
        stream.boxed()
    }

    /// The rows of one plan. `told` is the number of rows that the service is asked for.
    pub(super) fn rows(self: Arc<Self>, plan: RequestPlan, told: Option<u64>, pace: Pace) -> Batches {
        if plan.pages.is_none() {
            return self.answer(plan);
        }
        self.mentions(plan, told, pace, Arc::default())
    }

    /// The mentions of one plan. `came` counts those that the service gave, before filters of the query drop some.
    fn mentions(self: Arc<Self>, plan: RequestPlan, told: Option<u64>, pace: Pace, came: Arc<AtomicU64>) -> Batches {
        let stream = try_stream! {
            let Self { config, reader, scan, .. } = self.as_ref();
            let (aid, skips) = (plan.aid.clone(), plan.pages.is_some_and(|pages| pages.skip > 0));
            let mut check = reader.check();
            let mut dropped = 0;
            let mut told_gone = HashSet::new();
            let plan = Arc::new(plan.with_fetch(told));
            let client = config.connection.client();
            let mut pages = Box::pin(read_pages(client, scan, Arc::clone(&plan), reader.decoder.as_ref(), pace));
            let mut received = 0;
            while let Some(page) = pages.next().await {
                // None of its rows has left, and they are wanted in no order.
                let deep = page.as_ref().err().is_some_and(|error| error.kind() == ErrorKind::TooDeep);
                let parts = match deep && received == 0 && check.is_none() {
                    true => self.parts(&plan).await.map_err(|error| self.at_table(error))?,
                    false => None,
                };
                if let Some(parts) = parts {
                    for (part, number) in parts.clone() {
                        let of_part = Arc::new(AtomicU64::new(0));
                        let mut rows = Arc::clone(&self).mentions(part, None, pace, Arc::clone(&of_part));
                        while let Some(batch) = rows.next().await {
                            yield batch?;
                        }
                        // A name of the list that the filter takes for another value, or for none.
                        let of_part = of_part.load(Ordering::Relaxed);
                        if i64::try_from(of_part) != Ok(number) {
                            Err(self.at_table(parts_differ(&plan, of_part, number)))?;
                        }
                        came.fetch_add(of_part, Ordering::Relaxed);
                    }
                    if self.parts(&plan).await.map_err(|error| self.at_table(error))? != Some(parts) {
                        Err(self.at_table(parts_changed(&plan)))?;
                    }
                    return;
                }
                let page = page.map_err(|error| self.at_table(error))?;
                self.check_clock(&plan).map_err(|error| self.at_table(error))?;
                if let Some(check) = &mut check {
                    let place = Place { aid: aid.clone(), ..Place::default() };
                    check.observe(&page.batch).map_err(|error| self.at_table(error.at(place)))?;
                }
                self.check_fields(&plan, &page).map_err(|error| self.at_table(error))?;
                self.note_fields(&plan, &page, &mut told_gone).map_err(|error| self.at_table(error))?;
                let batch = reader.finish(&page.batch)?;
                self.counters.page(scan, &page);
                received += page.batch.num_rows() as u64;
                came.fetch_add(page.batch.num_rows() as u64, Ordering::Relaxed);
                dropped += page.batch.num_rows() - batch.num_rows();
                if skips && dropped > 0 {
                    Err(self.at_table(filters_ignored(dropped)))?;
                }
                yield batch;
                if reader.is_past(&page.batch) {
                    return;
                }
            }
            // The service gave as many rows as it was asked for, and not all of them count.
            if dropped > 0 && told.is_some_and(|told| received >= told) {
                Err(self.at_table(filters_ignored(dropped)))?;
            }
        };
        stream.boxed()
    }

    /// The rows of an answer without mentions.
    fn answer(self: Arc<Self>, plan: RequestPlan) -> Batches {
        let stream = try_stream! {
            let Self { config, reader, scan, query, .. } = self.as_ref();
            let request = PageRequest { plan: Arc::new(plan), row: 0, size: 0, frozen: None };
            let page = match request.plan.endpoint {
                Endpoint::List => {
                    let list = config.connection.list(query, scan).await;
                    list.and_then(|list| reader.decoder.decode(&request, &list.body))
                }
                Endpoint::Search => {
                    let (decoder, asked) = (Arc::clone(&reader.decoder), request.clone());
                    let decode = move |body: &Bytes| {
                        let page = decoder.decode(&asked, body)?;
                        let rows = page.batch.num_rows() as u64;
                        Ok((page, rows))
                    };
                    config.connection.answer(query, scan, request.clone(), decode).await
                }
            };
            let page = page.map_err(|error| self.at_table(error))?;
            self.check_clock(&request.plan).map_err(|error| self.at_table(error))?;
            scan.pages.fetch_add(1, Ordering::Relaxed);
            self.counters.page(scan, &page);
            yield reader.finish(&page.batch)?;
        };
        stream.boxed()
    }

    /// What the service filtered by must stand in its records: without it they would all be dropped here.
    fn check_fields(&self, plan: &RequestPlan, page: &Decoded) -> Result<()> {
        let sent = self.config.connection.profile().filters.parameters.iter();
        let sent = sent.filter(|sent| plan.filters.iter().any(|filter| filter.parameter == sent.parameter));
        let absent = |name: &str| {
            let field = |column: usize| page.batch.schema_ref().field(column).name() == name;
            page.records > 0 && page.present.iter().any(|(column, present)| field(*column) && *present == 0)
        };
        let Some(gone) = sent.map(|sent| &sent.column).find(|column| absent(column)) else { return Ok(()) };
        let message = format!("the service was asked to filter by `{gone}`, and none of its records has that field");
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice("check the column in the profile: its pointer, and the parameter in [filters]")
            .at(Place { aid: plan.aid.clone(), ..Place::default() }))
    }

    /// Takes note of the fields of a page. One that came in all records before, and in none of these, is an error, or a
    /// warning where the query asks for a report.
    fn note_fields(&self, plan: &RequestPlan, page: &Decoded, told: &mut HashSet<String>) -> Result<()> {
        // Records of another kind may have other fields.
        let mut asked = DefaultHasher::new();
        (&plan.aid, &plan.filters).hash(&mut asked);
        for column in self.config.connection.note_fields(&self.config.spec.name, asked.finish(), page) {
            let message =
                format!("the field of column `{column}` has come in every record so far, and in none of this page");
            let error = Error::new(ErrorKind::Contradiction, message)
                .advice(
                    "the service may call it otherwise now: compare `extra` with the profile; \
                     SET savedsearch.completeness = 'report' goes on with NULL",
                )
                .at(Place { aid: plan.aid.clone(), ..Place::default() });
            if self.settings.completeness == Completeness::Strict {
                return Err(error);
            }
            if told.insert(column) {
                self.config.connection.client().log().warn(&self.query.budget, &error);
            }
        }
        Ok(())
    }

    /// A range that ends now must end by the service's clock, which is known once it has answered, and one that is reached by
    /// a period that ends now must begin by it.
    pub(super) fn check_clock(&self, plan: &RequestPlan) -> Result<()> {
        let connection = &self.config.connection;
        let profile = connection.profile();
        let scan = &self.config.plan;
        let Some(words) = plan.duration.as_deref() else { return Ok(()) };
        // When the scan began, by the service's clock.
        let now = self.query.begun + connection.client().ahead();
        let ended = profile.window.span_of(words, plan.zone(profile)).is_some_and(|(_, end)| {
            scan.ends_open && now > end && self.requests.windows().last().map(String::as_str) == Some(words)
        });
        let begun = scan.until.as_ref().zip(profile.window.length_of(words));
        // A relative period is resolved when it is asked for.
        let asked = connection.clock().now() + connection.client().ahead();
        let late = begun.is_some_and(|((_, since), length)| asked - length > *since);
        if !ended && !late {
            return Ok(());
        }
        let minutes = connection.client().ahead().num_minutes();
        let place = Place { aid: plan.aid.clone(), ..Place::default() };
        Err(Error::new(
            ErrorKind::Contradiction,
            format!(
                "the service's clock is {minutes} minutes ahead of this machine's: its newest mentions would be missing"
            ),
        )
        .advice("run the query again, which goes by the service's clock from now on, or set the clock")
        .at(place))
    }

    fn require(&self, requests: usize) -> DataFusionResult<()> {
        self.scan.query.require(requests as u64).map_err(|error| self.at_table(error).into())
    }

    pub(super) fn at_table(&self, error: Error) -> Error {
        error.at(self.config.place())
    }
}

/// Merges streams that are in one order.
struct Merging {
    reservation: MemoryReservation,
    batch_size: usize,
}

impl Merging {
    /// `wanted` rows may do; more are not waited for before some leave.
    fn new(context: &TaskContext, wanted: Option<usize>) -> Self {
        let reservation = MemoryConsumer::new("FetchExec merge").register(context.memory_pool());
        let batch_size = context.session_config().batch_size();
        Self { reservation, batch_size: wanted.map_or(batch_size, |wanted| wanted.clamp(1, batch_size)) }
    }

    fn merge(
        self,
        streams: Vec<SendableRecordBatchStream>,
        config: &ScanConfig,
        reader: &Reader,
    ) -> DataFusionResult<SendableRecordBatchStream> {
        let key = config.mode.order().and_then(|order| sort_key(order, &reader.schema));
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
            .with_fetch(config.mode.slice().fetch)
            .with_reservation(self.reservation)
            .build()
    }
}

fn parts_changed(plan: &RequestPlan) -> Error {
    let place = Place { aid: plan.aid.clone(), ..Place::default() };
    Error::new(ErrorKind::Incomplete, "the values by which the mentions were asked for in parts changed meanwhile")
        .advice("run the query again, or narrow the period")
        .at(place)
}

/// The mentions of a part are not those that the list counts.
fn parts_differ(plan: &RequestPlan, came: u64, number: i64) -> Error {
    let message = format!("{came} mentions came for a value of which the overview counts {number}");
    Error::new(ErrorKind::Incomplete, message)
        .advice("paging does not reach all, and asking value by value does not give them; narrow the period")
        .at(Place { aid: plan.aid.clone(), ..Place::default() })
}

pub(super) fn filters_ignored(dropped: usize) -> Error {
    Error::new(
        ErrorKind::Contradiction,
        format!("the service gave {dropped} mentions that do not satisfy the filters it was sent"),
    )
    .advice("it ignores a parameter or compares otherwise: correct [filters] or [window] in the profile")
}
