//! The operator: what it is, how it takes on limits and orders, and what EXPLAIN says of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Cast, Expr};
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, DynamicFilterTracking};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{
    EquivalenceProperties, PhysicalExpr, PhysicalSortExpr, conjunction, split_conjunction,
};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SortOrderPushdownResult, StatisticsArgs,
    apply_expression_roots,
};
use datafusion::prelude::ident;

use super::drive;
use crate::connection::Connection;
use crate::decode::arrow_schema;
use crate::error::Place;
use crate::profile::{OffsetUnit, Origin, TableSpec};
use crate::pushdown::{Aids, ScanPlan, ServiceOrder, Summary, SummaryRows, Table, service_order};
use crate::request::RequestPlan;

/// Everything about a scan that is decided when it is planned.
#[derive(Debug, Clone)]
pub(crate) struct Scanning {
    pub(crate) connection: Arc<Connection>,
    pub(crate) table: Table,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) plan: ScanPlan,
    /// Names the query in `system.requests`; scans of one query share it.
    pub(crate) query: String,
    /// Columns of the output, as positions in the table.
    pub(crate) projection: Vec<usize>,
    /// What rows must satisfy, over the whole table's schema.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// What rows will have to satisfy above, over the output's schema; joins learn it while the query runs.
    pub(crate) above: Vec<Arc<dyn PhysicalExpr>>,
    /// Rows after which no more are wanted.
    pub(crate) fetch: Option<usize>,
    /// Rows left out at the beginning, where the service leaves them out.
    pub(crate) skip: usize,
    /// The order that the service was asked for and the output keeps.
    pub(crate) order: Option<ServiceOrder>,
    /// Conditions on the time that are known when the query runs only, over the whole table's schema; they take the place
    /// of the default window.
    pub(crate) bounds: Vec<Arc<dyn PhysicalExpr>>,
    /// What stands in for the rows, where only numbers of them are wanted.
    pub(crate) summary: Option<Summary>,
    /// Why nothing does, though numbers are all that is wanted.
    pub(crate) read_because: Option<String>,
    /// Requests that all scans of the plan take at least.
    pub(crate) announced: Arc<AtomicU64>,
    /// Rows that will do above as a rule: pages are asked for when they are wanted, in spite of no fetch.
    pub(crate) wanted: Option<usize>,
}

/// Column of a summary's rows: how many mentions each stands for.
pub(crate) const WEIGHT: &str = "__mentions";

/// The columns that a scan can give: those of the table, and how many mentions a row of a summary stands for.
pub(crate) fn scan_schema(spec: &TableSpec, summary: Option<&Summary>) -> SchemaRef {
    let table = arrow_schema(spec);
    if summary.is_none() {
        return table;
    }
    // Columns that nothing looks at are NULL in rows that stand for several mentions.
    let columns = table.fields().iter().zip(&spec.columns).map(|(field, column)| {
        let asked = matches!(column.origin, Origin::Aid | Origin::Duration | Origin::Timezone);
        Arc::new(field.as_ref().clone().with_nullable(!asked))
    });
    Arc::new(Schema::new(columns.chain([Arc::new(Field::new(WEIGHT, DataType::Int64, false))]).collect::<Vec<_>>()))
}

impl Scanning {
    /// The periods that are asked for: in pieces where they are counted, and some of those whole.
    pub(super) fn windows(&self) -> Vec<String> {
        match (&self.summary, &self.plan.pieces) {
            (Some(_), Some(pieces)) => pieces.iter().map(|(words, _)| words.clone()).collect(),
            _ => self.plan.windows.clone(),
        }
    }

    /// Whether the service gives just the rows of the plan that count.
    pub(super) fn is_whole(&self, plan: &RequestPlan) -> bool {
        let mut pieces = self.plan.pieces.iter().flatten();
        let piece = pieces.find(|(words, _)| Some(words) == plan.duration.as_ref());
        piece.is_none_or(|(_, whole)| *whole)
    }

    /// The scan within the bounds that are known by now.
    pub(super) fn bounded(self: Arc<Self>) -> Result<Arc<Self>> {
        if self.bounds.is_empty() && !self.plan.is_open() {
            return Ok(self);
        }
        let schema = arrow_schema(&self.spec);
        let conjuncts: Vec<Expr> = self
            .bounds
            .iter()
            .flat_map(split_conjunction)
            .filter_map(|bound| known_bound(bound, &schema).transpose())
            .collect::<Result<_>>()?;
        let Self { connection, plan, table, .. } = self.as_ref();
        let place = || Place { table: Some(table.name().to_owned()), ..Place::default() };
        let plan = plan.clone().bounded_by(connection.profile(), *table, &conjuncts, connection.clock().now());
        let plan = plan.map_err(|error| error.at(place()))?;
        Ok(Arc::new(Self { plan, ..self.as_ref().clone() }))
    }

    /// Name of the column that holds the aid that was asked for.
    pub(super) fn aid_column(&self) -> Option<&str> {
        self.spec.columns.iter().find(|column| column.origin == Origin::Aid).map(|column| column.name.as_str())
    }
}

/// A comparison of a column with what is known by now, as an expression over literals; `None` for anything else.
fn known_bound(bound: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Option<Expr>> {
    let Some(compare) = bound.downcast_ref::<BinaryExpr>() else { return Ok(None) };
    let side = |side: &Arc<dyn PhysicalExpr>| -> Result<Option<Expr>> {
        if collect_columns(side).is_empty() {
            let row = RecordBatch::try_new_with_options(
                Arc::new(Schema::empty()),
                Vec::new(),
                &RecordBatchOptions::new().with_row_count(Some(1)),
            )?;
            let value = ScalarValue::try_from_array(&side.evaluate(&row)?.into_array(1)?, 0)?;
            return Ok(Some(Expr::Literal(value, None)));
        }
        Ok(match (side.downcast_ref::<Column>(), side.downcast_ref::<CastExpr>()) {
            (Some(column), _) => Some(ident(column.name())),
            (_, Some(cast)) => cast.expr().downcast_ref::<Column>().map(|column| {
                let to = side.data_type(schema).unwrap_or(DataType::Null);
                Expr::Cast(Cast::new(Box::new(ident(column.name())), to))
            }),
            _ => None,
        })
    };
    let sides = side(compare.left())?.zip(side(compare.right())?);
    let unknown = |side: &Expr| matches!(side, Expr::Literal(value, _) if value.is_null());
    if sides.as_ref().is_some_and(|(left, right)| unknown(left) || unknown(right)) {
        // It is true of nothing.
        return Ok(Some(Expr::Literal(ScalarValue::Boolean(None), None)));
    }
    Ok(sides.map(|(left, right)| {
        Expr::BinaryExpr(datafusion::logical_expr::BinaryExpr::new(Box::new(left), *compare.op(), Box::new(right)))
    }))
}

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
        let same_limit = self.scanning.fetch == fetch.map(|fetch| skip.saturating_add(fetch));
        let able = *table == Table::Mentions
            && plan.exact
            && above.is_empty()
            && self.scanning.skip == 0
            && self.scanning.summary.is_none();
        if !(one && counts_rows && same_limit && able) {
            return Ok(None);
        }
        self.with(|scanning| {
            scanning.skip = skip;
            scanning.fetch = fetch;
        })
        .map(Some)
    }

    /// Whether rows tell how many mentions they stand for.
    fn counts(&self) -> bool {
        self.schema().column_with_name(WEIGHT).is_some()
    }

    /// A scan that is limited already gives any rows of the unsorted set; ordering it would choose others.
    fn can_be_ordered(&self) -> bool {
        let Scanning { table, fetch, skip, order, summary, .. } = self.scanning.as_ref();
        *table == Table::Mentions && summary.is_none() && fetch.is_none() && *skip == 0 && order.is_none()
    }

    /// What is sent, without an aid.
    pub(super) fn sent(&self) -> RequestPlan {
        let Scanning { plan, order, summary, .. } = self.scanning.as_ref();
        let mut sent = plan.template.clone();
        sent.sort = order.as_ref().map(|order| order.value.clone()).or(sent.sort);
        let windows = self.scanning.windows();
        sent.duration = (!windows.is_empty() && self.scanning.bounds.is_empty()).then(|| windows.join("|"));
        match summary.as_ref().map(|summary| &summary.rows) {
            Some(SummaryRows::Days(zone)) => sent.timezone = Some(zone.name().to_owned()),
            Some(SummaryRows::Firsts(orders)) => {
                sent.sort = Some(orders.iter().map(|order| order.value.as_str()).collect::<Vec<_>>().join("|"));
            }
            _ => {}
        }
        if self.page_size() == Some(0) {
            sent.sort = None;
        }
        sent
    }

    /// Mentions that are asked for at once.
    fn page_size(&self) -> Option<u64> {
        let Scanning { plan, fetch, order, summary, .. } = self.scanning.as_ref();
        let size = plan.template.pages?.size;
        Some(match (fetch, summary.as_ref().map(|summary| &summary.rows)) {
            (_, Some(SummaryRows::Total | SummaryRows::Days(_))) => 0,
            (_, Some(SummaryRows::Firsts(orders))) if plan.exact && orders.len() == 1 && !self.counts() => 2,
            (_, Some(SummaryRows::List(list))) if list.whole || list.missing.is_some() => 0,
            (Some(fetch), _) if plan.exact => size.min((*fetch).max(least_rows(order.as_ref())) as u64),
            _ => size,
        })
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
        let mut taken = Vec::new();
        let mut answers = Vec::new();
        for filter in filters {
            let dynamic = DynamicFilterTracking::classify(&filter).contains_dynamic_filter();
            let whole = self.scanning.summary.is_none() || chooses(&filter);
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
        let exact = taken.iter().all(chooses);
        let taken: Vec<_> =
            taken.into_iter().map(|filter| reassign_expr_columns(filter, &table)).collect::<Result<_>>()?;
        // What bounds the time takes the place of the default window, once it is known.
        let plan = &self.scanning.plan;
        let time = self.scanning.spec.time.as_deref().filter(|_| plan.default_window || plan.is_open());
        let bounds =
            |filter: &Arc<dyn PhysicalExpr>| collect_columns(filter).iter().any(|column| time == Some(column.name()));
        let node = self.with(|scanning| {
            scanning.bounds.extend(taken.iter().filter(|filter| bounds(filter)).cloned());
            let predicate = scanning.predicate.take();
            scanning.predicate = Some(conjunction(predicate.into_iter().chain(taken)));
            scanning.plan.exact &= exact;
        })?;
        Ok(propagation.with_updated_node(Arc::new(node)))
    }
}

impl DisplayAs for FetchExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scanning { table, plan, predicate, above, fetch, skip, order, wanted, summary, read_because, .. } =
            self.scanning.as_ref();
        let aids = match &plan.aids {
            Aids::NotNeeded => None,
            Aids::Given(aids) => Some(aids.join("|")),
            Aids::Listed => Some("* (from list)".to_owned()),
        };
        let window = match (plan.default_window, self.scanning.bounds.is_empty()) {
            (_, false) => Some("bounded by the subquery when it is known".to_owned()),
            (true, true) => Some("the profile's default".to_owned()),
            (false, true) => None,
        };
        let (template, page) = (self.sent(), self.page_size());
        let schema = self.schema();
        let because = read_because.as_ref().map(|because| format!("one by one, since {because}"));
        let counted = summary.as_ref().map(|summary| said_of(&summary.rows)).or(because);
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let parts = [
            ("table", Some(table.name().to_owned())),
            ("sent", Some(format!("[{template}]"))),
            ("aids", aids),
            ("window", window),
            ("page", page.map(|size| size.to_string())),
            ("counted", counted),
            ("requests", Some(self.cost().requests)),
            ("columns", Some(format!("[{}]", columns.join(", ")))),
            ("filter", predicate.as_ref().map(ToString::to_string)),
            ("joined", (!above.is_empty()).then(|| "the saved searches of the other side".to_owned())),
            ("order", order.as_ref().map(|order| format!("{} {}", order.column, direction(order.options)))),
            ("until", plan.until.as_ref().map(|(order, since)| format!("{} < {since}", order.column))),
            ("skip", (*skip > 0).then(|| skip.to_string())),
            ("fetch", fetch.map(|fetch| fetch.to_string())),
            ("pages", wanted.map(|_| "on demand".to_owned())),
        ];
        let said = parts.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "FetchExec: ")?;
                for (index, (key, value)) in said.enumerate() {
                    write!(f, "{}{key}={value}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            DisplayFormatType::TreeRender => said.into_iter().try_for_each(|(key, value)| writeln!(f, "{key}={value}")),
        }
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

/// Where the numbers of a summary come from.
fn said_of(rows: &SummaryRows) -> String {
    match rows {
        SummaryRows::Total => "by the overview's total".to_owned(),
        SummaryRows::List(list) => format!("by the overview's list `{}`", list.dimension),
        SummaryRows::Days(zone) => format!("by the overview's days in {zone}"),
        SummaryRows::Firsts(orders) => {
            let first = |order: &ServiceOrder| format!("{} {}", order.column, direction(order.options));
            format!("by the first mention of {}", orders.iter().map(first).collect::<Vec<_>>().join(" and of "))
        }
    }
}

fn direction(options: SortOptions) -> &'static str {
    if options.descending { "DESC" } else { "ASC" }
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
        Ok(drive::run(Arc::clone(&self.scanning), rows, self.schema(), &context, &self.metrics, partition))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], _args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        // Guesses, so that joins read first what costs the fewest requests, and ask the other side for less.
        let mut statistics = Statistics::new_unknown(&self.schema());
        let rows: usize = match self.scanning.table {
            Table::SavedSearches => 100,
            Table::Mentions if self.scanning.summary.is_some() => 10_000,
            Table::Overview | Table::Volume | Table::Breakdowns => 10_000,
            Table::Mentions => 1_000_000,
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
