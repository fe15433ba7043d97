//! The scan operator, and the limits, sort orders, offsets and filters it accepts.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr, conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ExecutionPlan, Partitioning, PlanProperties, SortOrderPushdownResult, StatisticsArgs, apply_expression_roots,
};

use super::requests::Requests;
use super::scan_config::{Mode, ScanConfig, Slice, looks_at_question, scan_schema};
use super::stream;
use crate::client::Narrower;
use crate::decode::arrow_schema;
use crate::profile::{Origin, TableKind};
use crate::pushdown::{Aids, ServiceOrder, SummaryRows, service_order};

/// Requests mentions from the service and streams the rows. See the module's documentation.
#[derive(Debug, Clone)]
pub(crate) struct FetchExec {
    pub(super) config: Arc<ScanConfig>,
    pub(super) requests: Arc<Requests>,
    properties: Arc<PlanProperties>,
    pub(super) metrics: ExecutionPlanMetricsSet,
    /// Set if workers read its files, which EXPLAIN shows.
    #[cfg(feature = "distributed")]
    pub(super) by_workers: bool,
}

impl FetchExec {
    pub(crate) fn try_new(config: ScanConfig) -> Result<Self> {
        let schema = scan_schema(&config.spec, config.summary()).project(&config.projection)?;
        let schema: SchemaRef = Arc::new(schema);
        let ordering = config.mode.order().and_then(|order| sort_key(order, &schema)).map(|key| [key]);
        let equivalences = EquivalenceProperties::new_with_orderings(Arc::clone(&schema), ordering);
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            requests: Arc::new(Requests::new(&config)),
            config: Arc::new(config),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            #[cfg(feature = "distributed")]
            by_workers: false,
        })
    }

    /// Returns the scan as one whose files workers read.
    #[cfg(feature = "distributed")]
    pub(crate) fn read_by_workers(&self) -> Self {
        Self { by_workers: true, ..self.clone() }
    }

    /// The window that is read because the query has no time filter; `None` if it has one.
    pub(crate) fn default_window(&self) -> Option<&str> {
        self.config.default_window()
    }

    fn with(&self, change: impl FnOnce(&mut ScanConfig)) -> Result<Self> {
        let mut config = self.config.as_ref().clone();
        change(&mut config);
        Self::try_new(config)
    }

    /// Returns the scan in each of the service's sort orders with these options, for a plan that usually needs only
    /// `wanted` rows: pages are fetched on demand.
    pub(crate) fn in_orders(&self, options: SortOptions, wanted: usize) -> Result<Vec<Self>> {
        let ScanConfig { connection, spec, projection, .. } = self.config.as_ref();
        if !self.can_be_ordered() {
            return Ok(Vec::new());
        }
        let columns = projection.iter().filter_map(|at| spec.columns.get(*at));
        let orders = columns.filter_map(|column| service_order(connection.profile(), &column.name, options));
        orders.map(|order| self.in_order(order, Some(wanted))).collect()
    }

    fn in_order(&self, order: ServiceOrder, wanted: Option<usize>) -> Result<Self> {
        self.with(|config| config.mode = Mode::Ordered { order, slice: Slice::ALL, wanted })
    }

    /// Returns the scan without its first `skip` rows, limited to the `fetch` rows after them; `None` if the service
    /// cannot skip exactly these.
    pub(crate) fn skipping(&self, skip: usize, fetch: Option<usize>) -> Result<Option<Self>> {
        let ScanConfig { connection, spec, plan, late, mode, .. } = self.config.as_ref();
        let profile = connection.profile();
        let one = matches!(&plan.aids, Aids::Given(aids) if aids.len() == 1) && plan.windows.len() == 1;
        let last = fetch.map_or(skip, |fetch| skip.saturating_add(fetch)) as u64;
        let reached = profile.depth.rows.is_none_or(|depth| last <= depth);
        // Rows within the first page are skipped here: the request is the same, and no service can ignore it.
        let within = fetch.is_some() && last <= profile.page.max;
        let limited = Slice { skip: 0, fetch: fetch.map(|fetch| skip.saturating_add(fetch)) };
        let able = spec.kind == TableKind::Mentions && plan.exact && late.above.is_empty() && mode.slice() == limited;
        let skipped = mode.with_slice(Slice { skip, fetch }).filter(|_| able && one && reached && !within);
        let Some(mode) = skipped.filter(|_| profile.offset.reaches_any_row()) else { return Ok(None) };
        self.with(|config| config.mode = mode).map(Some)
    }

    /// True if the scan may still be sorted. A scan with a limit returns any rows; sorting it would select others.
    fn can_be_ordered(&self) -> bool {
        let ScanConfig { spec, mode, .. } = self.config.as_ref();
        spec.kind == TableKind::Mentions && matches!(mode, Mode::Unordered(Slice::ALL))
    }

    /// Returns the scan sorted locally, if the service's sort order saves no page and proves less than the order of time.
    /// `None` if it does save pages, or if the scan is unsorted.
    pub(crate) fn sorted_here(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let ScanConfig { connection, spec, mode, .. } = self.config.as_ref();
        let Mode::Ordered { order, slice: Slice { skip: 0, fetch }, wanted } = mode else { return Ok(None) };
        let depth = connection.profile().depth.rows;
        let all = match fetch {
            None => wanted.is_none(),
            Some(fetch) => depth.is_some_and(|depth| *fetch as u64 > depth),
        };
        if !all || spec.time.as_ref() == Some(&order.column) {
            return Ok(None);
        }
        let Some(ordering) = LexOrdering::new(sort_key(order, &self.schema())) else { return Ok(None) };
        let scan = self.with(|config| config.mode = Mode::Unordered(Slice::ALL))?;
        Ok(Some(Arc::new(SortExec::new(ordering, Arc::new(scan)).with_fetch(*fetch))))
    }

    /// True for a scan of all mentions of its windows that takes what it can from a store.
    #[cfg(feature = "store")]
    pub(crate) fn reads_all_from_store(&self) -> bool {
        let reads = self.config.from_store.as_ref().is_some_and(|store| store.reads);
        reads && self.can_be_ordered() && self.config.summary().is_none()
    }

    /// Refuses a scan whose time range has no beginning.
    pub(crate) fn check_bounds(&self) -> Result<()> {
        self.config.check_bounds()
    }

    /// Records the minimum number of requests of all scans of the plan; the budget admits or refuses them together.
    pub(crate) fn set_least_requests(&self, requests: u64) {
        self.config.plan_notes.least_requests.store(requests, Ordering::Relaxed);
    }

    /// Records the changes by which the query needs fewer requests.
    pub(crate) fn narrow_by(&self, narrower: Narrower) {
        *self.config.plan_notes.narrower.lock().unwrap_or_else(PoisonError::into_inner) = narrower;
    }

    /// The changes by which this scan needs fewer requests; `None` for the list.
    pub(super) fn narrower(&self) -> Option<Narrower> {
        let aid = match &self.config.plan.aids {
            Aids::NotNeeded => return None,
            Aids::Given(aids) => aids.len() > 1,
            Aids::Listed => true,
        };
        let published_at = self.config.spec.kind == TableKind::Mentions;
        let limit = published_at && self.config.summary().is_none();
        Some(Narrower { aid, published_at, limit })
    }

    /// Queues a note to the author of the query, logged when the query runs.
    pub(crate) fn note(&self, note: String) {
        let mut notes = self.config.plan_notes.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Notes that were queued.
    #[cfg(feature = "flight")]
    pub(super) fn notes(&self) -> Vec<String> {
        self.config.plan_notes.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if all rows of the scan have one of several values in a column, and this is one of them.
    pub(crate) fn compares(&self, column: &str, value: &str) -> bool {
        self.config.plan.compared.get(column).is_some_and(|values| values.contains(value))
    }

    /// Name of the table that the scan reads.
    pub(crate) fn table(&self) -> &str {
        &self.config.spec.name
    }

    fn aid_among(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let aid = self.config.aid_column();
        collect_columns(filter).iter().any(|column| Some(column.name()) == aid)
    }

    /// True if a filter selects requests and does not drop rows of a response: the saved searches, if it uses the aid
    /// alone, or the window or zone, if mentions are not counted by day.
    fn chooses_request(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let columns = collect_columns(filter);
        let aid = self.config.aid_column();
        let saved_searches = !columns.is_empty() && columns.iter().all(|column| Some(column.name()) == aid);
        let days = self.config.summary().is_some_and(|summary| matches!(summary.rows, SummaryRows::Days(_)));
        saved_searches || (!days && columns.len() == 1 && looks_at_question(filter, &self.config.spec))
    }

    /// True if a filter bounds the time of a scan without bounds of its own, or sets its window or zone.
    fn bounds_request(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let ScanConfig { plan, spec, .. } = self.config.as_ref();
        let time = spec.time.as_deref().filter(|_| plan.default_window || plan.unbounded().is_some());
        let gives = |column: &Column| {
            let origin = spec.column(column.name()).map(|column| &column.origin);
            let request = matches!(origin, Some(Origin::Duration | Origin::Timezone));
            time == Some(column.name()) || (request && !plan.chosen.contains(column.name()))
        };
        collect_columns(filter).iter().any(gives)
    }

    /// Moves filters over the output into the scan if possible. A scan with a limit returns any rows; filtering
    /// them first would select others.
    fn take_on(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let free = self.config.mode.slice() == Slice::ALL;
        let takes = |filter: &Arc<dyn PhysicalExpr>| {
            let dynamic = DynamicFilterTracking::classify(filter).contains_dynamic_filter();
            let whole = self.config.summary().is_none() || self.chooses_request(filter);
            free && whole && !is_volatile(filter) && !dynamic
        };
        let answers = filters.iter().map(|filter| if takes(filter) { PushedDown::Yes } else { PushedDown::No });
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answers.collect());
        let taken: Vec<_> = filters.into_iter().filter(takes).collect();
        if taken.is_empty() {
            return Ok(propagation);
        }
        let exact = taken.iter().all(|filter| self.chooses_request(filter));
        let table = arrow_schema(&self.config.spec);
        let taken: Vec<_> =
            taken.into_iter().map(|filter| reassign_expr_columns(filter, &table)).collect::<Result<_>>()?;
        // Once known, bounds on the time and a given window or zone replace the default.
        let bounds: Vec<_> = taken.iter().filter(|filter| self.bounds_request(filter)).cloned().collect();
        let choose = taken.iter().any(|filter| self.aid_among(filter));
        let node = self.with(|config| {
            config.late.choose |= choose;
            config.late.bounds.extend(bounds);
            let predicate = config.predicate.take();
            config.predicate = Some(conjunction(predicate.into_iter().chain(taken)));
            if !exact {
                let plan = Arc::make_mut(&mut config.plan);
                plan.no_longer_exact();
            }
        })?;
        Ok(propagation.with_updated_node(Arc::new(node)))
    }
}

/// The service's sort order over the output, if its column is part of the output.
pub(super) fn sort_key(order: &ServiceOrder, schema: &SchemaRef) -> Option<PhysicalSortExpr> {
    let at = schema.index_of(&order.column).ok()?;
    Some(PhysicalSortExpr::new(Arc::new(Column::new(&order.column, at)), order.options))
}

impl ExecutionPlan for FetchExec {
    fn name(&self) -> &'static str {
        "FetchExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        // A join computes its dynamic filter only for operators that report it here.
        apply_expression_roots(self.config.predicate.iter().chain(&self.config.late.above), f)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("FetchExec has no child") }
    }

    /// A scan that runs again, as in a recursive query, has its own requests and metrics.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::try_new(self.config.as_ref().clone())?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("FetchExec has one partition");
        }
        Ok(stream::run(self, &context, &self.metrics, partition))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], _args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        // Rough guesses, so that a join first reads the side with the fewest requests and asks the other for less.
        let mut statistics = Statistics::new_unknown(&self.schema());
        let searches = match &self.config.plan.aids {
            Aids::Given(aids) => aids.len(),
            Aids::NotNeeded | Aids::Listed => 100,
        };
        let a_few = searches.saturating_mul(50);
        let rows = match self.config.spec.kind {
            // Less than any table that is requested by its rows.
            TableKind::List | TableKind::History => 50,
            TableKind::Overview => searches,
            TableKind::Volume | TableKind::Breakdowns | TableKind::Further => a_few,
            TableKind::Mentions if self.config.summary().is_some() => a_few,
            // Of two sides that are both read, a join keeps the one with conditions in memory.
            TableKind::Mentions if self.config.has_conditions() => searches.saturating_mul(2_000),
            TableKind::Mentions => searches.saturating_mul(10_000),
        };
        let rows = self.fetch().map_or(rows, |fetch| fetch.min(rows));
        statistics.num_rows = Precision::Inexact(rows);
        statistics.total_byte_size = Precision::Inexact(rows.saturating_mul(1_000));
        Ok(Arc::new(statistics))
    }

    /// Accepts filters that the table could not, such as `aid = (SELECT …)`. Filters whose values are known only while
    /// the query runs are kept to select saved searches; the rows remain the responsibility of the parent operators.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = child_pushdown_result.parent_filters.iter().map(|parent| Arc::clone(&parent.filter));
        match phase {
            FilterPushdownPhase::Pre => self.take_on(filters.collect()),
            FilterPushdownPhase::Post => {
                let above: Vec<_> = filters.filter(|filter| self.aid_among(filter)).collect();
                let propagation = FilterPushdownPropagation::all_unsupported(child_pushdown_result);
                if above.is_empty() || self.fetch().is_some() {
                    return Ok(propagation);
                }
                let node: Arc<dyn ExecutionPlan> = Arc::new(self.with(|config| config.late.above.extend(above))?);
                Ok(propagation.with_updated_node(node))
            }
        }
    }

    fn fetch(&self) -> Option<usize> {
        self.config.mode.slice().fetch
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let mode = self.config.mode.with_slice(Slice { fetch, ..self.config.mode.slice() })?;
        Some(Arc::new(self.with(|config| config.mode = mode).ok()?))
    }

    /// Reads saved searches in the service's sort order, which the stream verifies, and merges them.
    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let connection = &self.config.connection;
        let [key] = order else { return Ok(SortOrderPushdownResult::Unsupported) };
        let (true, Some(column)) = (self.can_be_ordered(), key.expr.downcast_ref::<Column>()) else {
            return Ok(SortOrderPushdownResult::Unsupported);
        };
        match service_order(connection.profile(), column.name(), key.options) {
            Some(order) => {
                let inner: Arc<dyn ExecutionPlan> = Arc::new(self.in_order(order, None)?);
                Ok(SortOrderPushdownResult::Exact { inner })
            }
            None => Ok(SortOrderPushdownResult::Unsupported),
        }
    }
}
