//! Runs a scan: plans in, filtered and projected batches out.
//!
//! ```text
//! aids of the plan, or of the list ─▶ saved searches that can have rows ─▶ plans, one per saved search and window
//!     ├─ no limit          several concurrently, pages as they arrive
//!     ├─ a limit           one after another, page by page, until it is reached
//!     └─ a sort order      merged: the first page of each, then pages of those whose rows come next
//! ```

mod page_checks;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
#[cfg(feature = "store")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};
use async_stream::try_stream;
use bytes::Bytes;
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use self::page_checks::PageChecks;
use super::contradicted_filters::Contradicted;
use super::counters::Counters;
use super::memory::PoolMemory;
use super::merging::Merging;
use super::outlook::Outlook;
use super::page_converter::PageConverter;
use super::prune;
use super::read_options::ReadOptions;
use super::requests::{Requests, least_rows};
use super::scan_config::{Mode, ScanConfig, Slice};
use super::scan_exec::FetchExec;
#[cfg(feature = "store")]
use super::stored::{Divisions, StoredPart};
use crate::client::{Completeness, Prefetch, QuerySpan, Scan, read_pages};
use crate::config::SessionSettings;
use crate::connection::{Query, QueryContext, difference};
use crate::decode::Decoded;
use crate::error::{Error, ErrorKind, Phrase, Place, Result, Setting, nearest, shortened};
use crate::profile::TableKind;
use crate::pushdown::Aids;
#[cfg(feature = "store")]
use crate::pushdown::ScanPlan;
use crate::request::{CLOCK_SKEW, Endpoint, PageRequest, RequestPlan, length_of};
#[cfg(feature = "store")]
use crate::store::blocking;

/// Batches of the output.
pub(super) type Batches = BoxStream<'static, DataFusionResult<RecordBatch>>;

/// Batches that were read in the background and wait for their consumer.
const WAITING: usize = 1;

/// Returns the stream of one partition of a scan. The service's key is redacted from its errors here, whatever their
/// origin.
pub(super) fn run(
    scan: &FetchExec,
    context: &Arc<TaskContext>,
    metrics: &ExecutionPlanMetricsSet,
    partition: usize,
) -> SendableRecordBatchStream {
    let (connection, schema) = (Arc::clone(&scan.config.connection), scan.schema());
    let merging = Merging::new(context, scan.config.mode.wanted());
    let starting = Starting::new(scan, context, metrics, partition);
    let stream = try_stream! {
        let driver = starting.driver()?;
        let mut batches = Arc::clone(&driver).start(merging).await.inspect_err(|_| driver.scan.failed())?;
        let mut found = false;
        while let Some(batch) = batches.next().await {
            driver.counters.spent(&driver.scan);
            let batch = batch.inspect_err(|_| driver.scan.failed())?;
            found = found || driver.converter.represents_any(&batch);
            driver.counters.baseline.record_output(batch.num_rows());
            driver.scan.returned.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            yield batch;
        }
        driver.counters.spent(&driver.scan);
        if !found {
            match driver.config.spec.kind {
                TableKind::List => driver.note_names(),
                _ => driver.note_case(),
            }
        }
    };
    let stream = stream.map_err(move |error| connection.client().redacted(error));
    Box::pin(RecordBatchStreamAdapter::new(schema, stream.boxed()))
}

/// A scan that is about to run. Created before its rows are asked for: the scans of a query that wait for each other share the
/// state of the query.
pub(super) struct Starting {
    config: Arc<ScanConfig>,
    requests: Arc<Requests>,
    output: SchemaRef,
    settings: SessionSettings,
    counters: Counters,
    memory: Arc<PoolMemory>,
    query: Arc<Query>,
    within: Arc<QuerySpan>,
    in_parts: bool,
    #[cfg(feature = "store")]
    context: Arc<TaskContext>,
}

impl Starting {
    pub(super) fn new(
        scan: &FetchExec,
        context: &Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Self {
        let (config, requests, output) = (Arc::clone(&scan.config), Arc::clone(&scan.requests), scan.schema());
        let owner = QueryContext::of(context, &config.connection, &config.query);
        let query = owner.at(&config.connection, &config.query);
        #[cfg(any(feature = "host", feature = "shell"))]
        let in_parts = context.session_config().get_extension::<super::traced::InParts>().is_some();
        #[cfg(not(any(feature = "host", feature = "shell")))]
        let in_parts = false;
        Self {
            requests,
            output,
            counters: Counters::new(metrics, partition),
            memory: Arc::new(PoolMemory::new(context, &config.spec.name)),
            config,
            settings: owner.settings.clone(),
            query,
            within: owner.span(),
            in_parts,
            #[cfg(feature = "store")]
            context: Arc::clone(context),
        }
    }

    /// Returns the state of the scan, within the bounds that are known now.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] if all scans of the plan together need more requests than allowed; errors of bounds.
    pub(super) fn driver(self) -> DataFusionResult<Arc<Driver>> {
        let Self { config, requests, output, settings, counters, memory, query, within, in_parts, .. } = self;
        query.budget.narrow_by(*config.plan_notes.narrower.lock().unwrap_or_else(PoisonError::into_inner));
        // The minimum for the whole plan, checked before the first request of any scan.
        query.budget.allow(config.plan_notes.least_requests.load(Ordering::Relaxed))?;
        let planned = Arc::clone(&config);
        // Windows that end now end at the time of the request.
        let instants = planned.connection.profile().window.takes_instants();
        let config = config.bounded(if instants { query.now } else { planned.connection.now() })?;
        let requests = if Arc::ptr_eq(&planned, &config) { requests } else { Arc::new(Requests::new(&config)) };
        let notes = config.plan_notes.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for note in notes {
            config.connection.client().log().note(&query.budget, None, note);
        }
        let converter = Arc::new(PageConverter::try_new(&config, config.mode.order(), output, settings.lossy_text)?);
        let scan = Scan::new(Arc::clone(&query.budget), settings.concurrency).with_memory(memory);
        let scan = scan.with_verdicts(Arc::clone(&counters.verdicts)).with_requests(counters.requests.clone());
        let scan = Arc::new(scan.within(within, &config.spec.name));
        #[cfg(feature = "store")]
        let divisions = Divisions::of_run(&requests, query.begun);
        Ok(Arc::new(Driver {
            config,
            requests,
            converter,
            scan,
            counters,
            #[cfg(feature = "store")]
            divisions,
            query,
            settings,
            #[cfg(feature = "store")]
            context: self.context,
            degraded: AtomicBool::new(false),
            outlook: OnceLock::new(),
            #[cfg(feature = "store")]
            together: OnceLock::new(),
            in_parts,
        }))
    }
}

/// State shared by the streams of one partition.
pub(super) struct Driver {
    pub(super) config: Arc<ScanConfig>,
    pub(super) requests: Arc<Requests>,
    pub(super) converter: Arc<PageConverter>,
    pub(super) scan: Arc<Scan>,
    pub(super) counters: Counters,
    pub(super) query: Arc<Query>,
    pub(super) settings: SessionSettings,
    /// Runs operators over the files of a store.
    #[cfg(feature = "store")]
    pub(super) context: Arc<TaskContext>,
    /// Divisions of its plans between the store and the service.
    #[cfg(feature = "store")]
    pub(super) divisions: Divisions,
    /// Set once a warning replaced an error, so that the rows are not stored.
    pub(super) degraded: AtomicBool,
    /// The plans, if all of them are read completely.
    pub(super) outlook: OnceLock<Outlook>,
    /// Stored days of several plans, if they are read together after what is requested.
    #[cfg(feature = "store")]
    pub(super) together: OnceLock<Mutex<Vec<StoredPart>>>,
    /// Set if the rows are fetched in parts.
    in_parts: bool,
}

impl Driver {
    /// Returns the converter of a read's pages: if they are stored, one of all columns.
    fn converter_of(&self, read: &ReadOptions) -> DataFusionResult<Arc<PageConverter>> {
        #[cfg(feature = "store")]
        if let Some(until) = &read.until {
            let mut plan = ScanPlan::clone(&self.config.plan);
            plan.until = Some(until.clone());
            let config = ScanConfig { plan: Arc::new(plan), ..self.config.as_ref().clone() };
            let output = Arc::clone(&self.converter.schema);
            return Ok(Arc::new(PageConverter::of_all_columns(&config, None, output, self.settings.lossy_text)?));
        }
        if !read.is_stored() {
            return Ok(Arc::clone(&self.converter));
        }
        let (order, output) = (self.config.mode.order(), Arc::clone(&self.converter.schema));
        Ok(Arc::new(PageConverter::of_all_columns(&self.config, order, output, self.settings.lossy_text)?))
    }

    async fn start(self: Arc<Self>, merging: Merging) -> DataFusionResult<Batches> {
        let ScanConfig { plan, mode, .. } = self.config.as_ref();
        let Slice { fetch, .. } = mode.slice();
        if plan.template.endpoint == Endpoint::List {
            let list = RequestPlan::list();
            return Ok(self.one_after_another(vec![list], Prefetch::OnDemand, false));
        }
        let searches = self.plans().await?;
        let several = searches.len() > 1;
        #[cfg(feature = "store")]
        if self.config.summary().is_none() {
            let plans: Vec<RequestPlan> = searches.iter().flatten().cloned().collect();
            if let Some(rows) = self.all_stored(&plans).await? {
                return Ok(rows);
            }
        }
        let ahead = self.ahead(self.settings.concurrency);
        let Mode::Ordered { order, wanted, .. } = mode else {
            let plans: Vec<RequestPlan> = searches.into_iter().flatten().collect();
            return match fetch {
                Some(_) => Ok(self.one_after_another(plans, ahead, several)),
                None if self.in_parts && self.config.summary().is_none() => {
                    Ok(self.one_after_another(plans, ahead, several))
                }
                None => self.all_at_once(plans, several).await,
            };
        };
        // The windows of a saved search follow each other in order of time; in any other sort order they are merged.
        let by_time = self.config.spec.time.as_ref() == Some(&order.column);
        let mut groups =
            if by_time { searches } else { searches.into_iter().flatten().map(|plan| vec![plan]).collect() };
        if order.options.descending {
            groups.iter_mut().for_each(|group| group.reverse());
        }
        let asked = move |driver: &Self| {
            let least = driver.least_of(&groups);
            (groups, least)
        };
        let (groups, least) = self.aside(asked).await?;
        self.require(least)?;
        // With a limit it is unknown whose rows will be needed; without one, all of them will.
        let limited = fetch.is_some() || wanted.is_some();
        if groups.len() <= 1 {
            let prefetch = if wanted.is_some() { Prefetch::OnDemand } else { ahead };
            return Ok(self.one_after_another(groups.into_iter().flatten().collect(), prefetch, several));
        }
        let prefetch =
            if limited { Prefetch::OnDemand } else { self.ahead(self.settings.concurrency.div_ceil(groups.len())) };
        let streams = groups.into_iter().map(|group| {
            let rows = Arc::clone(&self).one_after_another(group, prefetch, several);
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.converter.schema), rows))
                as SendableRecordBatchStream
        });
        Ok(merging.merge(streams.collect(), &self.config, &self.converter)?.boxed())
    }

    /// Prefetching for a consumer that wants all rows, or fetches them in parts.
    fn ahead(&self, requests: usize) -> Prefetch {
        if self.in_parts { Prefetch::Growing(requests) } else { Prefetch::Ahead(requests) }
    }

    /// Returns the plans of the saved searches that can have rows, grouped by saved search.
    pub(super) async fn plans(&self) -> DataFusionResult<Vec<Vec<RequestPlan>>> {
        let ScanConfig { connection, plan, predicate, late, .. } = self.config.as_ref();
        // Conditions with known values have chosen among given aids when the scan was planned.
        let (mut aids, chosen) = match &plan.aids {
            Aids::Given(aids) => (aids.clone(), late.above.is_empty() && !late.choose),
            Aids::Listed | Aids::NotNeeded => {
                let listed = connection.listed_aids(&self.query, &self.scan).await;
                (listed.map_err(|error| self.at_table(error))?, false)
            }
        };
        if let Some(column) = self.config.aid_column().filter(|_| !chosen) {
            aids = prune::possible(aids, predicate.iter().chain(&late.above), column)?;
        }
        self.scan.span().record("searches", aids.len());
        Ok(aids.iter().map(|aid| self.requests.of_search(aid)).collect())
    }

    /// Returns the rows of all plans as they arrive. Together they keep no more requests in flight than one plan would.
    async fn all_at_once(self: Arc<Self>, plans: Vec<RequestPlan>, several: bool) -> DataFusionResult<Batches> {
        let reads = self.config.summary().is_none() && plans.iter().any(|plan| plan.pages.is_some());
        let expects = reads && several;
        let asked = move |driver: &Self| {
            let least = driver.least(&plans);
            let whole = plans.iter().filter(|plan| expects && driver.is_read_whole(plan));
            let firsts: Vec<RequestPlan> = whole.map(|plan| driver.first_of(plan)).collect();
            (plans, least, firsts)
        };
        let (plans, least, firsts) = self.aside(asked).await?;
        if reads {
            self.require(least)?;
            if several {
                self.outlook.get_or_init(|| Outlook::new(firsts.into_iter()));
            }
        } else {
            // Other scans may send the same requests, and each is sent once.
            let query = &self.scan.query;
            let allowed = query.allow(query.listed().saturating_add(least as u64));
            allowed.map_err(|error| self.at_table(error))?;
        }
        let scans = plans.len().clamp(1, self.settings.concurrency.max(1));
        // Plans that stop at some page must not request later pages ahead.
        let ahead = Prefetch::Ahead(self.settings.concurrency.div_ceil(scans));
        let prefetch = if self.config.plan.until.is_some() { Prefetch::OnDemand } else { ahead };
        #[cfg(feature = "store")]
        if several {
            self.together.get_or_init(Mutex::default);
        }
        #[cfg(feature = "store")]
        let driver = Arc::clone(&self);
        let streams = stream::iter(plans).map(move |plan| {
            let refused = several.then(|| plan.clone());
            let rows = match self.config.summary() {
                Some(summary) => Arc::clone(&self).summary(summary.clone(), plan, prefetch),
                None => Arc::clone(&self).rows(plan, None, prefetch),
            };
            Arc::clone(&self).without_refused(refused, rows)
        });
        let rows = streams.flatten_unordered(scans);
        #[cfg(feature = "store")]
        let rows = rows.chain(stream::once(async move { driver.rows_together() }).try_flatten());
        Ok(rows.boxed())
    }

    /// Returns the rows of all plans, one after another until the limit is reached. `several` is set if the query
    /// covers more than one saved search.
    fn one_after_another(self: Arc<Self>, plans: Vec<RequestPlan>, prefetch: Prefetch, several: bool) -> Batches {
        let stream = try_stream! {
            let ScanConfig { plan: scan_plan, mode, .. } = self.config.as_ref();
            let Slice { fetch, .. } = mode.slice();
            let mut left = fetch.unwrap_or(usize::MAX);
            for plan in plans {
                if left == 0 {
                    break;
                }
                let asked = fetch.filter(|_| scan_plan.exact).map(|_| left.max(least_rows(mode.order())) as u64);
                // Reading pages ahead helps only if all their rows count toward the limit.
                let prefetch = if fetch.is_some() && asked.is_none() { Prefetch::OnDemand } else { prefetch };
                let refused = several.then(|| plan.clone());
                let rows = Arc::clone(&self).rows(plan, asked, prefetch);
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

    /// Returns the rows of one of several saved searches. If the service refuses it and partial results are allowed, a
    /// warning replaces the remaining rows.
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
                    let message = self.config.connection.client().redact(&error.to_string());
                    if let Some(label) = self.converter.label(&plan, &message)? {
                        yield label;
                    }
                    return;
                }
                yield batch?;
            }
        };
        stream.boxed()
    }

    /// Returns the rows of one plan. `asked` is the number of rows to request from the service.
    pub(super) fn rows(self: Arc<Self>, plan: RequestPlan, asked: Option<u64>, prefetch: Prefetch) -> Batches {
        if plan.pages.is_none() {
            return self.answer(plan);
        }
        #[cfg(feature = "store")]
        if let Some(rows) = self.stored_first(&plan, asked, prefetch) {
            return rows;
        }
        self.mentions(plan, asked, prefetch, Arc::default(), ReadOptions::default())
    }

    /// Returns the mentions of one plan. `came` counts those that the service returned, before filters of the query.
    pub(super) fn mentions(
        self: Arc<Self>,
        plan: RequestPlan,
        asked: Option<u64>,
        prefetch: Prefetch,
        came: Arc<AtomicU64>,
        read: ReadOptions,
    ) -> Batches {
        let schema = Arc::clone(&self.converter.schema);
        let stream = try_stream! {
            let converter = self.converter_of(&read)?;
            let converter = converter.as_ref();
            let plan = Arc::new(plan.with_fetch(asked));
            let client = self.config.connection.client();
            let mut checks = PageChecks::new(&self, &plan, converter, &read, asked, prefetch);
            let always = read.first().is_some() || !checks.values.is_empty();
            let decoder = self.keeping(&converter.decoder, Some(Arc::clone(&checks.response)), always);
            let (reading, scan, plan_read) = (Arc::clone(client), Arc::clone(&self.scan), Arc::clone(&plan));
            let mut pages = Box::pin(read_pages(reading, scan, plan_read, decoder, prefetch));
            if let Some(outlook) = self.outlook.get() {
                outlook.begin(&plan).await;
            }
            let unordered = converter.order().is_none();
            // The store takes all mentions, and a consumer that may stop early reads on.
            let wanted = matches!(prefetch, Prefetch::Ahead(_)) && asked.is_none();
            let all = wanted && unordered && !checks.skips && read.is_plain();
            let parts = match all {
                true => self.value_parts(&plan, converter).await.map_err(|error| self.at_plan(error, &plan))?,
                false => None,
            };
            if let Some(parts) = parts {
                for part in parts {
                    let mut rows = Arc::clone(&self).mentions(part, None, prefetch, Arc::clone(&came), read.clone());
                    while let Some(batch) = rows.next().await {
                        yield batch?;
                    }
                }
                return;
            }
            while let Some(page) = pages.next().await {
                // None of the rows has been output yet, and no sort order is needed.
                let deep = page.as_ref().err().is_some_and(|error| error.kind() == ErrorKind::TooDeep);
                let parts = match deep && checks.received == 0 && unordered {
                    true => self.parts(&plan).await.map_err(|error| self.at_table(error))?,
                    false => None,
                };
                if let Some(parts) = parts {
                    read.note_by_value();
                    let (plan, came) = (Arc::clone(&plan), Arc::clone(&came));
                    let mut rows = Arc::clone(&self).mentions_by_value(plan, parts, prefetch, came, read.clone());
                    while let Some(batch) = rows.next().await {
                        yield batch?;
                    }
                    return;
                }
                let page = page.map_err(|error| self.at_table(error))?;
                checks.page(&page).await?;
                if let Some(contradicted) = checks.contradicted(&page, &read)? {
                    // No further page is requested.
                    drop(pages);
                    let mut rows = Arc::clone(&self).without(contradicted, &plan, prefetch, came);
                    while let Some(batch) = rows.next().await {
                        yield batch?;
                    }
                    return;
                }
                read.keep(&page, client.ahead()).await;
                let batch = checks.rows(&page, &read)?;
                came.fetch_add(page.batch.num_rows() as u64, Ordering::Relaxed);
                yield batch;
                if converter.is_past(&page.batch) {
                    return;
                }
            }
            checks.end().await?;
        };
        match prefetch {
            Prefetch::OnDemand | Prefetch::Growing(_) => stream.boxed(),
            Prefetch::Ahead(_) => in_background(schema, stream.boxed()),
        }
    }

    /// Returns the mentions of the parts of a plan, each with the number of mentions that it has.
    fn mentions_by_value(
        self: Arc<Self>,
        plan: Arc<RequestPlan>,
        parts: Vec<(RequestPlan, i64)>,
        prefetch: Prefetch,
        came: Arc<AtomicU64>,
        read: ReadOptions,
    ) -> Batches {
        let stream = try_stream! {
            for (part, number) in parts.clone() {
                let of_part = Arc::new(AtomicU64::new(0));
                let mut rows = Arc::clone(&self).mentions(part, None, prefetch, Arc::clone(&of_part), read.clone());
                while let Some(batch) = rows.next().await {
                    yield batch?;
                }
                // A name in the list that the filter matches with another value, or with none.
                let of_part = of_part.load(Ordering::Relaxed);
                if i64::try_from(of_part) != Ok(number) {
                    Err(self.at_table(parts_differ(&plan, of_part, number)))?;
                }
                came.fetch_add(of_part, Ordering::Relaxed);
            }
            if self.parts(&plan).await.map_err(|error| self.at_table(error))? != Some(parts) {
                Err(self.at_table(parts_changed(&plan)))?;
            }
        };
        stream.boxed()
    }

    /// Returns the mentions of a plan without the filters that a mention contradicts.
    fn without(
        self: Arc<Self>,
        contradicted: Contradicted,
        plan: &RequestPlan,
        prefetch: Prefetch,
        came: Arc<AtomicU64>,
    ) -> Batches {
        let Contradicted { others, error } = contradicted;
        self.note_contradicted(plan, &error);
        let plan = RequestPlan { filters: others, ..plan.clone() };
        let mut rows = Arc::clone(&self).mentions(plan, None, prefetch, came, ReadOptions::default());
        let stream = try_stream! {
            let mut any = false;
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                any |= batch.num_rows() > 0;
                yield batch;
            }
            // No mention has a requested value, although the service returned some.
            if !any && self.config.plan.exact {
                Err(error)?;
            }
        };
        stream.boxed()
    }

    /// Returns the rows of a response without mentions.
    fn answer(self: Arc<Self>, plan: RequestPlan) -> Batches {
        let stream = try_stream! {
            let Self { config, converter, scan, query, .. } = self.as_ref();
            let request = PageRequest::first(Arc::new(plan));
            let page = match request.plan.endpoint {
                Endpoint::List => {
                    let list = config.connection.list(query, scan).await;
                    list.and_then(|list| converter.listed(&request, &list.pages))
                }
                Endpoint::Search => {
                    let (decoder, asked) = (Arc::clone(&converter.decoder), request.clone());
                    let decode = move |body: &Bytes| {
                        let page = decoder.decode(&asked, body)?;
                        let rows = page.batch.num_rows() as u64;
                        Ok((page, rows))
                    };
                    config.connection.answer(query, scan, request.clone(), decode).await
                }
            };
            let page = page.map_err(|error| self.at_table(error))?;
            self.check_window(&page).map_err(|error| self.at_plan(error, &request.plan))?;
            self.check_clock(&request.plan).map_err(|error| self.at_table(error))?;
            scan.pages.fetch_add(1, Ordering::Relaxed);
            self.counters.page(scan, &page);
            self.note_doubt(&request.plan, &page);
            self.note_inexact(&request.plan, &page);
            self.note_total(&request.plan, &page);
            config.connection.note_compared(&config.spec.name, config.plan.compared.keys(), &page.batch);
            yield converter.finish(&page.batch)?;
        };
        stream.boxed()
    }

    /// Notes a member of a response that may say that it is not complete.
    pub(super) fn note_doubt(&self, plan: &RequestPlan, page: &Decoded) {
        if let Some(doubt) = &page.doubt {
            self.config.connection.client().log().note(&self.query.budget, plan.aid.clone(), shortened(doubt.clone()));
        }
    }

    /// The end of the range that the requested period stands for; `None` if it is another window, or the range reaches to now.
    fn end_of_range(&self) -> Option<DateTime<Utc>> {
        self.config.plan.reach.and_then(|(_, end)| end)
    }

    /// Checks that a response to a window that ends now is of now.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] for an old one.
    pub(super) fn check_lag(&self, page: &Decoded) -> Result<()> {
        page.echo.check_lag(self.config.connection.client().clocks(), self.end_of_range())
    }

    /// Notes that a response to a window that ends now is older than clocks differ.
    pub(super) fn note_lag(&self, page: &Decoded) {
        let client = self.config.connection.client();
        let lag = page.echo.lag(client.clocks(), self.end_of_range());
        if let Some(lag) = lag.filter(|lag| *lag > CLOCK_SKEW) {
            let verb = if page.echo.may_reach_end() { "may not be" } else { "are not" };
            let note =
                format!("a response ends {} before its window does: newer mentions {verb} in it", length_of(lag));
            client.log().note(&self.query.budget, None, note);
        }
    }

    /// Notes a total of `overview` that its response does not call exact.
    fn note_inexact(&self, plan: &RequestPlan, page: &Decoded) {
        /// The column of a profile without `[counts]`.
        const TOTAL: &str = "total_mentions";
        let ScanConfig { connection, spec, .. } = self.config.as_ref();
        let total = connection.profile().counts.as_ref().map_or(TOTAL, |counts| counts.total.as_str());
        if spec.kind == TableKind::Overview
            && page.batch.column_by_name(total).is_some()
            && let Some(said) = &page.inexact
        {
            let note = format!("{total} need not be the number of mentions: in the response, {said}");
            connection.client().log().note(&self.query.budget, plan.aid.clone(), shortened(note));
        }
    }

    /// Remembers the total of a row of `overview`, for estimates.
    fn note_total(&self, plan: &RequestPlan, page: &Decoded) {
        let ScanConfig { connection, spec, .. } = self.config.as_ref();
        let Some(counts) = &connection.profile().counts else { return };
        if spec.kind != TableKind::Overview {
            return;
        }
        let total = page.batch.column_by_name(&counts.total).and_then(|total| total.as_primitive_opt::<Int64Type>());
        if let Some(total) = total.and_then(|total| total.iter().next().flatten())
            && let Ok(total) = u64::try_from(total)
        {
            self.note_count(plan, total);
        }
    }

    /// Checks that records contain the fields that the service filtered by: without them, all would be dropped here.
    fn check_fields(&self, plan: &RequestPlan, page: &Decoded) -> Result<()> {
        let sent = self.config.connection.profile().filters.parameters.iter();
        let sent = sent.filter(|sent| plan.filters.iter().any(|filter| filter.parameter == sent.parameter));
        let absent = |name: &str| {
            let field = |column: usize| page.batch.schema_ref().field(column).name() == name;
            page.records > 0 && page.present.iter().any(|(column, present)| field(*column) && *present == 0)
        };
        let Some(gone) = sent.map(|sent| &sent.column).find(|column| absent(column)) else { return Ok(()) };
        let message = format!("the request filters by `{gone}`, but no record in the response has that field");
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice("check the column's pointer in the profile, and its parameter in [filters]")
            .at(Place { aid: plan.aid.clone(), ..Place::default() }))
    }

    /// Notes the values that the service writes in another case, or without the spaces at the ends, of a query that found nothing.
    fn note_case(&self) {
        let ScanConfig { connection, spec, plan, .. } = self.config.as_ref();
        for (column, values) in &plan.compared {
            for (value, written) in connection.in_their_case(spec, column, values) {
                let with = difference(value, &written);
                let note = format!(
                    "nothing was found: {column} = '{value}' is compared with {with}, and the service has '{written}'"
                );
                connection.client().log().note(&self.query.budget, None, shortened(note));
            }
        }
    }

    /// Notes the names that no saved search has, of a query of the list that found nothing.
    fn note_names(&self) {
        let ScanConfig { connection, plan, .. } = self.config.as_ref();
        let Some(searches) = connection.known_searches() else { return };
        let names: Vec<&str> = searches.iter().map(|(_, name)| name.as_str()).collect();
        for name in plan.compared.values().flatten().filter(|name| !names.contains(&name.as_str())) {
            let advice = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => "saved_searches lists the names".to_owned(),
            };
            let note = format!("nothing was found: no saved search has the name '{name}'; {advice}");
            connection.client().log().note(&self.query.budget, None, shortened(note));
        }
    }

    /// Records the fields of a page. A field that was present in all earlier records and is missing from this page is
    /// an error, or a warning if the query asks for a report.
    fn note_fields(&self, plan: &RequestPlan, page: &Decoded, noted: &mut HashSet<String>) -> Result<()> {
        // Other requests may return records with other fields.
        let mut asked = DefaultHasher::new();
        (&plan.aid, &plan.filters).hash(&mut asked);
        let ScanConfig { connection, spec, plan: scan, .. } = self.config.as_ref();
        for column in connection.note_fields(&spec.name, asked.finish(), page, scan.compared.keys()) {
            let message = format!(
                "the field of column `{column}` was in every record so far, but is missing from all records of this page"
            );
            let error = Error::new(ErrorKind::Contradiction, message)
                .advice(
                    Phrase::from("the service may have renamed it: compare `extra` with the profile")
                        + Setting::Completeness.to("report").after("; ").then(" continues with NULL"),
                )
                .at(Place { aid: plan.aid.clone(), ..Place::default() });
            if self.settings.completeness == Completeness::Strict {
                return Err(error);
            }
            self.degraded.store(true, Ordering::Relaxed);
            if noted.insert(column) {
                self.config.connection.client().log().warn(&self.query.budget, &error);
            }
        }
        Ok(())
    }

    /// Checks the window against the service's clock, which is known once it has responded: a range that ends now must
    /// end after the service's current time, and a relative period that ends now must reach back to the start of the
    /// range.
    pub(super) fn check_clock(&self, plan: &RequestPlan) -> Result<()> {
        let connection = &self.config.connection;
        let profile = connection.profile();
        let scan = &self.config.plan;
        let Some(words) = plan.duration.as_deref() else { return Ok(()) };
        // The start of the scan by the service's clock.
        let now = self.query.begun + connection.client().ahead();
        let ended = profile
            .window
            .span_of(words, plan.zone(profile))
            .is_some_and(|(_, end)| scan.ends_open && now > end && self.requests.windows().next_back() == Some(words));
        let begun = scan.until.as_ref().zip(profile.window.length_of(words));
        // A relative period is resolved when it is requested.
        let asked = connection.clock().now() + connection.client().ahead();
        let late = begun.is_some_and(|((_, since), length)| asked - length > *since);
        if !ended && !late {
            return Ok(());
        }
        Err(self.clock_is_behind(plan))
    }

    /// Checks that no time without a zone is ahead of the service's clock, since it would not be UTC, as assumed; and no time at all
    /// in a period that ends now: a relative one, which ends where the response says, or one with an open end, which a store requests
    /// up to the end of the day.
    pub(super) fn check_zone(&self, plan: &RequestPlan, page: &Decoded) -> Result<()> {
        let connection = &self.config.connection;
        let now = connection.clock().now() + connection.client().ahead();
        let profile = connection.profile();
        let place = || Place { aid: plan.aid.clone(), ..Place::default() };
        if let Some(newest) = page.assumed.and_then(|(_, last)| DateTime::from_timestamp_micros(last))
            && newest - now > CLOCK_SKEW
        {
            let time = profile.tables.mentions.time.as_deref().unwrap_or_default();
            return Err(without_zone(time, newest, now).at(place()));
        }
        let relative =
            plan.duration.as_deref().filter(|words| profile.window.span_of(words, plan.zone(profile)).is_none());
        if relative.is_none() && !self.config.plan.ends_open {
            return Ok(());
        }
        let end = page.echo.window().filter(|_| relative.is_some()).map_or(now, |(_, to)| to.max(now));
        let time = profile.tables.mentions.time.as_deref().and_then(|time| profile.tables.mentions.column(time));
        let declared = time.is_some_and(|time| time.zone.is_some());
        let allowed = if declared { LAST_DAY } else { CLOCK_SKEW };
        let newest = page.times.iter().flatten().max().and_then(|newest| DateTime::from_timestamp_micros(*newest));
        match newest.filter(|newest| *newest - end > allowed) {
            Some(newest) => Err(after_end(relative, newest, end, declared).at(place())),
            None => Ok(()),
        }
    }

    /// Checks that a window with an open end, which was requested until `end`, ends after the service's current time.
    #[cfg(feature = "store")]
    pub(super) fn check_end(&self, plan: &RequestPlan, end: i64) -> Result<()> {
        let now = self.query.begun + self.config.connection.client().ahead();
        if now.timestamp_micros() > end { Err(self.clock_is_behind(plan)) } else { Ok(()) }
    }

    fn clock_is_behind(&self, plan: &RequestPlan) -> Error {
        let minutes = self.config.connection.client().ahead().num_minutes();
        let place = Place { aid: plan.aid.clone(), ..Place::default() };
        Error::new(
            ErrorKind::Contradiction,
            format!(
                "the service's clock is {minutes} minutes ahead of this machine's; the newest mentions would be missing"
            ),
        )
        .advice(
            "correct this machine's clock; in the same session, the query uses the service's clock if it is run again",
        )
        .at(place)
    }

    /// Does work that may read the catalog of a store. With a store, it is done on a thread for such work: a catalog on a server may
    /// take long to answer, and the threads of a runtime have other tasks.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the work is aborted.
    #[cfg_attr(not(feature = "store"), allow(clippy::unused_async, reason = "without a store, nothing is waited for"))]
    pub(super) async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        #[cfg(feature = "store")]
        if self.config.from_store.is_some() {
            let driver = Arc::clone(self);
            let done = blocking(move || Ok(work(driver.as_ref()))).await;
            return done.map_err(|error| self.at_table(error));
        }
        Ok(work(self.as_ref()))
    }

    /// Minimum number of requests of plans.
    fn least(&self, plans: &[RequestPlan]) -> usize {
        #[cfg(feature = "store")]
        return self.to_request(plans);
        #[cfg(not(feature = "store"))]
        plans.len()
    }

    /// The first request of a plan of which nothing is stored.
    fn first_of(&self, plan: &RequestPlan) -> RequestPlan {
        #[cfg(feature = "store")]
        if let Some(plan) = self.first_of_unstored(plan) {
            return plan;
        }
        plan.clone()
    }

    /// True if a plan is requested completely, beginning with its [first request](Self::first_of).
    fn is_read_whole(&self, plan: &RequestPlan) -> bool {
        #[cfg(feature = "store")]
        return self.is_unstored(plan);
        #[cfg(not(feature = "store"))]
        plan.pages.is_some()
    }

    /// Minimum number of requests of groups of plans. The first plan of a group may be enough.
    fn least_of(&self, groups: &[Vec<RequestPlan>]) -> usize {
        groups.iter().filter(|group| self.least(group) == group.len()).count()
    }

    pub(super) fn require(&self, requests: usize) -> DataFusionResult<()> {
        self.scan.query.require(requests as u64).map_err(|error| self.at_table(error).into())
    }

    pub(super) fn at_table(&self, error: Error) -> Error {
        error.at(self.config.place())
    }
}

/// Time after now at which a period that ends now may still have mentions if the profile states the zone of times: it may end with
/// the day, in any zone.
const LAST_DAY: TimeDelta = TimeDelta::hours(24 + 14);

/// Error for a time without a zone that is ahead of the service's clock.
fn without_zone(time: &str, newest: DateTime<Utc>, now: DateTime<Utc>) -> Error {
    let ahead = newest - now;
    let shift = match (ahead.num_hours(), ahead.num_minutes()) {
        (0, minutes) => format!("{minutes} min"),
        (hours, _) => format!("{hours} h"),
    };
    let now = now.trunc_subsecs(0);
    let message = format!("`{time}` has no time zone, and {newest} is {shift} ahead of the service's clock, {now}");
    Error::new(ErrorKind::Contradiction, message).advice(format!(
        "set `zone` of the column `{time}` in the profile to the zone of its times, or to \"UTC\" if they are right"
    ))
}

/// Error for a mention after the end of a period that ends now. `declared`: the profile states the zone of times.
fn after_end(relative: Option<&str>, newest: DateTime<Utc>, end: DateTime<Utc>, declared: bool) -> Error {
    let end = end.trunc_subsecs(0);
    let but = match relative {
        Some(words) => format!("but the period `{words}` ends at {end}"),
        None => format!("but the service's clock shows {end}"),
    };
    let message = format!("the response has a mention of {newest}, {but}");
    Error::new(ErrorKind::Contradiction, message).advice(match declared {
        true => "if that is its time, set both bounds of the time in the query instead of a period that ends now",
        false => {
            "its times may be local ones that are written as UTC: set `zone` and `pattern` of the column in the profile, or `zone` \
             to \"UTC\" if they are right"
        }
    })
}

/// Reads batches in a task of its own, so that pages are received and decoded while the consumer works on earlier ones. At most
/// [`WAITING`] batches wait for the consumer. Dropping the stream stops the task.
fn in_background(schema: SchemaRef, mut rows: Batches) -> Batches {
    let started = async move {
        let mut builder = RecordBatchReceiverStream::builder(schema, WAITING);
        let sender = builder.tx();
        builder.spawn(async move {
            while let Some(batch) = rows.next().await {
                let failed = batch.is_err();
                if sender.send(batch).await.is_err() || failed {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    };
    // Nothing is requested before the first batch is asked for.
    stream::once(started).flatten().boxed()
}

fn parts_changed(plan: &RequestPlan) -> Error {
    let place = Place { aid: plan.aid.clone(), ..Place::default() };
    Error::new(ErrorKind::Incomplete, "the values used to read the mentions in parts changed during the scan")
        .advice("run the query again, or narrow the time window")
        .at(place)
}

/// The error for a part whose mentions do not match the count in the list.
fn parts_differ(plan: &RequestPlan, came: u64, number: i64) -> Error {
    let message = format!("received {came} mentions for a value, but the overview counts {number}");
    Error::new(ErrorKind::Incomplete, message)
        .advice("neither paging nor requesting value by value returns all mentions; narrow the time window")
        .at(Place { aid: plan.aid.clone(), ..Place::default() })
}

pub(super) fn filters_ignored(dropped: usize) -> Error {
    Error::new(
        ErrorKind::Contradiction,
        format!("the service returned mentions that do not match the requested filters (count: {dropped})"),
    )
    .advice("it ignores a parameter or compares differently; correct [filters] or [window] in the profile")
}
