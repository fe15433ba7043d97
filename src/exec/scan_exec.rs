//! The operator: what it is, and how it takes on limits, orders, offsets and filters.

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

use super::scan_config::{Scanning, looks_at_question, scan_schema};
use super::stream;
use crate::decode::arrow_schema;
use crate::profile::{OffsetUnit, Origin};
use crate::pushdown::{Aids, ServiceOrder, SummaryRows, Table, service_order};

/// Asks the service and streams its rows. See the module's documentation.
#[derive(Debug, Clone)]
pub struct FetchExec {
    pub(super) scanning: Arc<Scanning>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FetchExec {
    pub(crate) fn try_new(scanning: Scanning, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = scan_schema(&scanning.spec, scanning.summary.as_ref()).project(&scanning.projection)?;
        let schema: SchemaRef = Arc::new(schema);
        let ordering = scanning.order.as_ref().and_then(|order| sort_key(order, &schema)).map(|key| [key]);
        let equivalences = EquivalenceProperties::new_with_orderings(Arc::clone(&schema), ordering);
        let partitions = input.properties().partitioning.partition_count();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            scanning: Arc::new(scanning),
            input,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The period that is read because the query bounds no time; `None` where it bounds it.
    pub fn default_window(&self) -> Option<&str> {
        let plan = &self.scanning.plan;
        plan.windows.first().map(String::as_str).filter(|_| plan.default_window && self.scanning.bounds.is_empty())
    }

    fn with(&self, change: impl FnOnce(&mut Scanning)) -> Result<Self> {
        let mut scanning = self.scanning.as_ref().clone();
        change(&mut scanning);
        Self::try_new(scanning, Arc::clone(&self.input))
    }

    /// The scan in each order of the service that has these options, for a plan that will do with `wanted` rows as a
    /// rule: its pages come on demand.
    pub(crate) fn in_orders(&self, options: SortOptions, wanted: usize) -> Result<Vec<Self>> {
        let Scanning { connection, spec, projection, .. } = self.scanning.as_ref();
        if !self.can_be_ordered() {
            return Ok(Vec::new());
        }
        let columns = projection.iter().filter_map(|at| spec.columns.get(*at));
        let orders = columns.filter_map(|column| service_order(connection.profile(), &column.name, options));
        orders
            .map(|order| {
                self.with(|scanning| {
                    scanning.order = Some(order);
                    scanning.wanted = Some(wanted);
                })
            })
            .collect()
    }

    /// The scan without its first `skip` rows, with `fetch` of those that follow; `None` where the service cannot leave
    /// out just these.
    pub(crate) fn skipping(&self, skip: usize, fetch: Option<usize>) -> Result<Option<Self>> {
        let Scanning { connection, table, plan, above, .. } = self.scanning.as_ref();
        let one = matches!(&plan.aids, Aids::Given(aids) if aids.len() == 1) && plan.windows.len() == 1;
        let counts_rows = connection.profile().offset.unit == OffsetUnit::Row;
        let last = fetch.map_or(skip, |fetch| skip.saturating_add(fetch)) as u64;
        let reached = connection.profile().depth.rows.is_none_or(|depth| last <= depth);
        let same_limit = self.scanning.fetch == fetch.map(|fetch| skip.saturating_add(fetch));
        let able = *table == Table::Mentions
            && plan.exact
            && above.is_empty()
            && self.scanning.skip == 0
            && self.scanning.summary.is_none();
        if !(one && counts_rows && reached && same_limit && able) {
            return Ok(None);
        }
        self.with(|scanning| {
            scanning.skip = skip;
            scanning.fetch = fetch;
        })
        .map(Some)
    }

    /// A scan that is limited already gives any rows of the unsorted set; ordering it would choose others.
    fn can_be_ordered(&self) -> bool {
        let Scanning { table, fetch, skip, order, summary, .. } = self.scanning.as_ref();
        *table == Table::Mentions && summary.is_none() && fetch.is_none() && *skip == 0 && order.is_none()
    }

    /// The scan in the order of time, sorted here, where the service's order spares no page and proves less; `None` where it
    /// does, or the scan is in no order.
    pub(crate) fn sorted_here(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Scanning { connection, spec, order, fetch, skip, wanted, summary, .. } = self.scanning.as_ref();
        let Some(order) = order.as_ref().filter(|order| spec.time.as_ref() != Some(&order.column)) else {
            return Ok(None);
        };
        let depth = connection.profile().depth.rows;
        let all = match fetch {
            None => wanted.is_none(),
            Some(fetch) => depth.is_some_and(|depth| *fetch as u64 > depth),
        };
        let Some(key) = sort_key(order, &self.schema()).filter(|_| all && *skip == 0 && summary.is_none()) else {
            return Ok(None);
        };
        let scan = self.with(|scanning| (scanning.order, scanning.fetch) = (None, None))?;
        let Some(ordering) = LexOrdering::new([key]) else { return Ok(None) };
        Ok(Some(Arc::new(SortExec::new(ordering, Arc::new(scan)).with_fetch(*fetch))))
    }

    /// Refuses a scan of which nothing says when its range begins.
    pub(crate) fn check_bounds(&self) -> Result<()> {
        if self.scanning.plan.is_open() && self.scanning.bounds.is_empty() {
            Arc::clone(&self.scanning).bounded()?;
        }
        Ok(())
    }

    /// Takes note of the requests that all scans of the plan take at least, which are refused together.
    pub(crate) fn announce(&self, requests: u64) {
        self.scanning.announced.store(requests, Ordering::Relaxed);
    }

    /// Tells the author of the query something when it runs.
    pub(crate) fn note(&self, note: String) {
        let mut notes = self.scanning.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// The table that it reads.
    pub(crate) fn table(&self) -> Table {
        self.scanning.table
    }

    fn aid_among(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let aid = self.scanning.aid_column();
        collect_columns(filter).iter().any(|column| Some(column.name()) == aid)
    }

    /// Makes filters over the output those of the scan, where it can: a limited scan gives any rows, of which filtering
    /// would choose others.
    fn take_on(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let free = self.scanning.fetch.is_none() && self.scanning.skip == 0;
        let table = arrow_schema(&self.scanning.spec);
        // What looks at the aid alone chooses saved searches, and leaves their rows as they are.
        let aid = self.scanning.aid_column();
        let chooses = |filter: &Arc<dyn PhysicalExpr>| {
            let columns = collect_columns(filter);
            !columns.is_empty() && columns.iter().all(|column| Some(column.name()) == aid)
        };
        // What looks at the period or the zone alone chooses what is asked for, where that counts by no days.
        let days = self.scanning.summary.as_ref().is_some_and(|summary| matches!(summary.rows, SummaryRows::Days(_)));
        let gives_request = |filter: &Arc<dyn PhysicalExpr>| {
            let columns = collect_columns(filter);
            !days && columns.len() == 1 && looks_at_question(filter, &self.scanning.spec)
        };
        let mut taken = Vec::new();
        let mut answers = Vec::new();
        for filter in filters {
            let dynamic = DynamicFilterTracking::classify(&filter).contains_dynamic_filter();
            let whole = self.scanning.summary.is_none() || chooses(&filter) || gives_request(&filter);
            let takes = free && whole && !is_volatile(&filter) && !dynamic;
            answers.push(if takes { PushedDown::Yes } else { PushedDown::No });
            if takes {
                taken.push(filter);
            }
        }
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        if taken.is_empty() {
            return Ok(propagation);
        }
        let exact = taken.iter().all(|filter| chooses(filter) || gives_request(filter));
        let taken: Vec<_> =
            taken.into_iter().map(|filter| reassign_expr_columns(filter, &table)).collect::<Result<_>>()?;
        // What bounds the time, or gives the period or the zone, takes the place of the default once it is known.
        let Scanning { plan, spec, .. } = self.scanning.as_ref();
        let time = spec.time.as_deref().filter(|_| plan.default_window || plan.is_open());
        let gives = |column: &Column| {
            let request = spec.column(column.name()).map(|column| &column.origin);
            let request = matches!(request, Some(Origin::Duration | Origin::Timezone));
            time == Some(column.name()) || (request && !plan.chosen.contains(column.name()))
        };
        let bounds = |filter: &Arc<dyn PhysicalExpr>| collect_columns(filter).iter().any(gives);
        let chosen_later = taken.iter().any(|filter| self.aid_among(filter));
        let node = self.with(|scanning| {
            scanning.chosen_later |= chosen_later;
            scanning.bounds.extend(taken.iter().filter(|filter| bounds(filter)).cloned());
            let predicate = scanning.predicate.take();
            scanning.predicate = Some(conjunction(predicate.into_iter().chain(taken)));
            scanning.plan.exact &= exact;
            scanning.plan.pieces = scanning.plan.pieces.take().filter(|_| exact);
        })?;
        Ok(propagation.with_updated_node(Arc::new(node)))
    }
}

/// The service's order over the output, where its column leaves.
pub(super) fn sort_key(order: &ServiceOrder, schema: &SchemaRef) -> Option<PhysicalSortExpr> {
    let at = schema.index_of(&order.column).ok()?;
    Some(PhysicalSortExpr::new(Arc::new(Column::new(&order.column, at)), order.options))
}

/// Rows that are asked for at least: two in an order, since one cannot show a wrong direction.
pub(super) fn least_rows(order: Option<&ServiceOrder>) -> usize {
    if order.is_some() { 2 } else { 1 }
}

impl ExecutionPlan for FetchExec {
    fn name(&self) -> &'static str {
        "FetchExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        // A join computes its filter only for those who show it here.
        apply_expression_roots(self.scanning.predicate.iter().chain(&self.scanning.above), f)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(input), true) = (children.pop(), children.is_empty()) else {
            return internal_err!("FetchExec has one child");
        };
        Ok(Arc::new(Self::try_new(self.scanning.as_ref().clone(), input)?))
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        Ok(stream::run(Arc::clone(&self.scanning), rows, self.schema(), &context, &self.metrics, partition))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], _args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        // Guesses, so that joins read first what costs the fewest requests, and ask the other side for less.
        let mut statistics = Statistics::new_unknown(&self.schema());
        let searches = match &self.scanning.plan.aids {
            Aids::Given(aids) => aids.len(),
            Aids::NotNeeded | Aids::Listed => 100,
        };
        let rows = match self.scanning.table {
            // Less than anything that could be asked for by it.
            Table::SavedSearches => 50,
            Table::Overview => searches,
            Table::Volume | Table::Breakdowns => searches.saturating_mul(50),
            Table::Mentions if self.scanning.summary.is_some() => searches.saturating_mul(50),
            Table::Mentions => searches.saturating_mul(10_000),
        };
        let rows = self.scanning.fetch.map_or(rows, |fetch| fetch.min(rows));
        statistics.num_rows = Precision::Inexact(rows);
        statistics.total_byte_size = Precision::Inexact(rows.saturating_mul(1_000));
        Ok(Arc::new(statistics))
    }

    /// Takes on filters that the table could not, such as `aid = (SELECT …)`. Of those that are only known while the query
    /// runs it takes note: they choose saved searches; the rows stay with those who gave the filters.
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
                if above.is_empty() || self.scanning.fetch.is_some() {
                    return Ok(propagation);
                }
                let node: Arc<dyn ExecutionPlan> = Arc::new(self.with(|scanning| scanning.above.extend(above))?);
                Ok(propagation.with_updated_node(node))
            }
        }
    }

    fn fetch(&self) -> Option<usize> {
        self.scanning.fetch
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        if self.scanning.summary.is_some() {
            return None;
        }
        Some(Arc::new(self.with(|scanning| scanning.fetch = fetch).ok()?))
    }

    /// Saved searches can be read in the service's order, which the stream then checks, and merged.
    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let connection = &self.scanning.connection;
        let [key] = order else { return Ok(SortOrderPushdownResult::Unsupported) };
        let (true, Some(column)) = (self.can_be_ordered(), key.expr.downcast_ref::<Column>()) else {
            return Ok(SortOrderPushdownResult::Unsupported);
        };
        match service_order(connection.profile(), column.name(), key.options) {
            Some(order) => {
                let inner: Arc<dyn ExecutionPlan> = Arc::new(self.with(|scanning| scanning.order = Some(order))?);
                Ok(SortOrderPushdownResult::Exact { inner })
            }
            None => Ok(SortOrderPushdownResult::Unsupported),
        }
    }
}
