//! A table backed by a response of the service.

use std::future::ready;
use std::sync::{Arc, Mutex};

use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Utc};
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Constraint, Constraints, DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::dml::{InsertOp, MergeIntoClause};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableScan, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use futures::future::BoxFuture;

use super::read_only::read_only;
use crate::boxed_future::boxed_futures;
use crate::config::SessionSettings;
use crate::connection::Connection;
use crate::decode::arrow_schema;
use crate::exec::{FetchExec, LateConditions, Mode, PlanNotes, ScanConfig, Slice, possible, scan_schema};
use crate::profile::{ColumnSpec, Origin, TableKind, TableSpec};
use crate::pushdown::{
    Aids, PlannedScan, ScanPlan, ServiceOrder, Summary, SummaryRows, can_claim, looks_at, looks_only_at,
};

/// A table backed by a response of the service. Works in any DataFusion session.
#[derive(Debug, Clone)]
pub(crate) struct ApiTable {
    connection: Arc<Connection>,
    spec: Arc<TableSpec>,
    schema: SchemaRef,
    constraints: Constraints,
    kind: RowKind,
    /// The reason why mentions are read although only counts of them are needed.
    read_because: Option<String>,
    /// The plan of the scan that this copy of the table belongs to; any other scan is planned when it is created.
    planned: Option<Arc<PlannedScan>>,
}

/// The kind of rows that a table returns.
#[derive(Debug, Clone)]
enum RowKind {
    /// Rows in no particular order.
    Rows,
    /// Rows in a sort order of the service.
    Ordered(ServiceOrder),
    /// Rows that each represent several mentions, if only counts are needed; the schema then has an extra column.
    Summary(Summary),
}

impl ApiTable {
    /// Creates a table of this connection, as its profile declares it. Sends no request.
    pub(crate) fn new(connection: Arc<Connection>, spec: &TableSpec) -> Self {
        let spec = Arc::new(spec.clone());
        let schema = arrow_schema(&spec);
        // The engine drops a DISTINCT over a key, so only rows that are identified by one may declare it.
        let key: Vec<usize> = spec.row_key().into_iter().filter_map(|column| schema.index_of(column).ok()).collect();
        let key = (!key.is_empty()).then_some(Constraint::PrimaryKey(key));
        let constraints = Constraints::new_unverified(key.into_iter().collect());
        Self { connection, spec, schema, constraints, kind: RowKind::Rows, read_because: None, planned: None }
    }

    /// Returns the table with its rows in a sort order of the service.
    #[must_use]
    pub(crate) fn in_order(self, order: ServiceOrder) -> Self {
        Self { kind: RowKind::Ordered(order), ..self }
    }

    /// Returns the table that a scan reads, if it is an `ApiTable`.
    pub(crate) fn of(scan: &TableScan) -> Option<Self> {
        source_as_provider(&scan.source).ok()?.downcast_ref::<Self>().cloned()
    }

    /// The table as declared by the profile.
    pub(crate) fn spec(&self) -> &Arc<TableSpec> {
        &self.spec
    }

    /// The connection that the table reads from.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    fn summary(&self) -> Option<&Summary> {
        match &self.kind {
            RowKind::Summary(summary) => Some(summary),
            RowKind::Rows | RowKind::Ordered(_) => None,
        }
    }

    /// True if the rows are those of a summary.
    pub(crate) fn is_summarized(&self) -> bool {
        self.summary().is_some()
    }

    /// The reason why mentions are read although only counts of them are needed, if known.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.read_because.as_deref()
    }

    /// Returns the table with the rows of a summary and one more column, [`WEIGHT`](crate::exec::WEIGHT).
    pub(crate) fn summarized(&self, summary: Summary) -> Self {
        let schema = scan_schema(&self.spec, Some(&summary));
        // Rows of a summary have no key and no sort order.
        let kind = RowKind::Summary(summary);
        Self { schema, constraints: Constraints::default(), kind, read_because: None, ..self.clone() }
    }

    /// Returns the table with the reason, for EXPLAIN, why mentions are read although only counts are needed.
    pub(crate) fn read_because(&self, because: String) -> Self {
        Self { read_because: Some(because), ..self.clone() }
    }

    /// Returns the table without its key, for plans in which rows are multiplied.
    pub(crate) fn without_key(&self) -> Self {
        Self { constraints: Constraints::default(), ..self.clone() }
    }

    /// Returns the table with instants in the zone of a session.
    pub(crate) fn in_zone(&self, zone: &Arc<str>) -> Self {
        let spec = Arc::new(TableSpec { zone: Some(Arc::clone(zone)), ..self.spec.as_ref().clone() });
        let schema = scan_schema(&spec, self.summary());
        Self { spec, schema, planned: None, ..self.clone() }
    }

    /// Returns the table for a scan with this plan.
    pub(crate) fn with_plan(&self, planned: Arc<PlannedScan>) -> Self {
        Self { planned: Some(planned), ..self.clone() }
    }

    /// The plan that the table carries, if any, whichever scan it belongs to.
    pub(crate) fn carried(&self) -> Option<&Arc<PlannedScan>> {
        self.planned.as_ref()
    }

    /// Returns the plan of the table's scan under these filters for this query: the carried one, or a new one.
    pub(crate) fn planned(
        &self,
        options: &ConfigOptions,
        query: Option<DateTime<Utc>>,
        filters: &[Expr],
    ) -> Arc<PlannedScan> {
        self.planned_as_of(options, query, filters, || self.connection.now())
    }

    /// Like [`planned`](Self::planned), but a new plan is made as of `now` unless the table carries one of the query.
    pub(crate) fn planned_as_of(
        &self,
        options: &ConfigOptions,
        query: Option<DateTime<Utc>>,
        filters: &[Expr],
        now: impl FnOnce() -> DateTime<Utc>,
    ) -> Arc<PlannedScan> {
        let timezone = SessionSettings::zone(options);
        let carried = self.planned.as_ref().filter(|planned| planned.is_of_query(query));
        match carried.filter(|planned| planned.is_of(query, filters, &timezone)) {
            Some(planned) => Arc::clone(planned),
            None => {
                let now = carried.map_or_else(now, |planned| planned.now());
                let profile = self.connection.profile();
                Arc::new(PlannedScan::new(profile, &self.spec, filters, &timezone, query, now))
            }
        }
    }

    /// True if filters use the time or set the window, so that the default window is not read.
    pub(crate) fn is_bounded_by(&self, filters: &[Expr]) -> bool {
        let period = self.spec.column_from(&Origin::Duration);
        let columns = [self.spec.time.as_deref(), period];
        filters.iter().any(|filter| columns.into_iter().flatten().any(|column| looks_at(filter, column)))
    }

    /// True if a filter can be evaluated over the table's rows. Rows of a summary represent mentions that a filter may
    /// distinguish, unless it uses a column with the same value in all mentions of one request.
    pub(crate) fn tells_apart(&self, filter: &Expr) -> bool {
        let common = |column: &&ColumnSpec| match column.origin {
            Origin::Aid => true,
            // Days of a zone depend on the requested window and zone.
            Origin::Duration | Origin::Timezone => {
                self.summary().is_some_and(|summary| !matches!(summary.rows, SummaryRows::Days(_)))
            }
            _ => false,
        };
        let mut common = self.spec.columns.iter().filter(common);
        self.summary().is_none() || common.any(|column| looks_only_at(filter, &column.name))
    }
}

/// Returns the name of a query: the session, and the instant at which planning began, which all its scans share.
pub(crate) fn query_name(state: &dyn Session) -> String {
    let session: String = state.session_id().chars().take(8).collect();
    match state.execution_props().query_execution_start_time {
        Some(start) => format!("{session}-{:x}", start.timestamp_micros()),
        None => format!("{session}-{:x}", rand::random::<u64>()),
    }
}

impl TableProvider for ApiTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let claim = |filter: &&Expr| match can_claim(filter) && self.tells_apart(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(claim).collect())
    }

    boxed_futures! {
        fn scan<'this, 'state, 'projection, 'filters>(
            &'this self,
            state: &'state dyn Session,
            projection: Option<&'projection Vec<usize>>,
            filters: &'filters [Expr],
            limit: Option<usize>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            let args = ScanArgs::default()
                .with_projection(projection.map(Vec::as_slice))
                .with_filters(Some(filters))
                .with_limit(limit);
            Box::pin(ready(self.fetched(state, args)))
        }

        fn scan_with_args<'args, 'this, 'state>(
            &'this self,
            state: &'state dyn Session,
            args: ScanArgs<'args>,
        ) -> Result<ScanResult> {
            Box::pin(ready(self.fetched(state, args).map(ScanResult::new)))
        }

        fn insert_into<'this, 'state>(
            &'this self,
            _state: &'state dyn Session,
            _input: Arc<dyn ExecutionPlan>,
            _insert_op: InsertOp,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.refused()
        }

        fn delete_from<'this, 'state>(
            &'this self,
            _state: &'state dyn Session,
            _filters: Vec<Expr>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.refused()
        }

        fn update<'this, 'state>(
            &'this self,
            _state: &'state dyn Session,
            _assignments: Vec<(String, Expr)>,
            _filters: Vec<Expr>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.refused()
        }

        fn truncate<'this, 'state>(&'this self, _state: &'state dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
            self.refused()
        }

        fn merge_into<'this, 'state>(
            &'this self,
            _state: &'state dyn Session,
            _source: Arc<dyn ExecutionPlan>,
            _merge_schema: DFSchemaRef,
            _on: Expr,
            _clauses: Vec<MergeIntoClause>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.refused()
        }
    }
}

impl ApiTable {
    /// The answer to all statements that write.
    fn refused(&self) -> BoxFuture<'static, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(ready(Err(read_only(&self.spec.name).into())))
    }

    /// Returns the scan of the table.
    fn fetched(&self, state: &dyn Session, args: ScanArgs<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let filters = args.filters().unwrap_or_default();
        let projection = match args.projection() {
            Some(columns) => columns.to_vec(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let query = state.execution_props().query_execution_start_time;
        let planned = self.planned(state.config_options(), query, filters);
        let mut plan = planned.plan()?.clone();
        let predicate = conjunction(filters.to_vec());
        let table = DFSchema::try_from(Arc::clone(&self.schema))?;
        let predicate = predicate.map(|predicate| state.create_physical_expr(predicate, &table)).transpose()?;
        if let (Aids::Given(aids), Some(aid)) = (&plan.aids, self.spec.column_from(&Origin::Aid)) {
            plan.aids = Aids::Given(possible(aids.clone(), &predicate, aid)?);
        }
        if plan.aids == Aids::Given(Vec::new()) || args.limit() == Some(0) {
            let schema = Arc::new(self.schema.project(&projection)?);
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let mode = self.mode(&plan, args.limit())?;
        let mixed = self.mixed_labels(&projection, filters);
        // Saved searches are merged by their sort key, which may not be part of the output.
        let width = projection.len();
        let key = mode.order().map(|order| self.schema.index_of(&order.column)).transpose()?;
        let projection = projection.iter().copied().chain(key.filter(|key| !projection.contains(key))).collect();
        let note = mode.summary().and_then(|summary| summary.note(self.connection.profile(), &self.spec, &plan));
        let notes = plan.notes.iter().cloned().chain(note).chain(mixed).collect();
        let plan_notes = PlanNotes { notes: Arc::new(Mutex::new(notes)), ..PlanNotes::default() };
        #[cfg(feature = "store")]
        let from_store = self.connection.store_for(&SessionSettings::of(state.config_options()));
        let config = ScanConfig {
            connection: Arc::clone(&self.connection),
            spec: Arc::clone(&self.spec),
            plan: Arc::new(plan),
            query: query_name(state),
            projection,
            predicate,
            mode,
            late: LateConditions::default(),
            #[cfg(feature = "store")]
            from_store,
            read_because: self.read_because.clone(),
            plan_notes,
        };
        let scan: Arc<dyn ExecutionPlan> = Arc::new(FetchExec::try_new(config)?);
        first_columns(scan, width)
    }

    /// Returns a note on a query of breakdowns that reads values, but neither the label of their section nor a condition on it.
    fn mixed_labels(&self, projection: &[usize], filters: &[Expr]) -> Option<String> {
        let label = self.spec.column_from(&Origin::Section).filter(|_| self.spec.kind == TableKind::Breakdowns)?;
        let read = || projection.iter().filter_map(|at| self.spec.columns.get(*at));
        let names = filters.iter().any(|filter| looks_at(filter, label));
        if names || read().any(|column| column.name == label) {
            return None;
        }
        let (table, labels) = (&self.spec.name, self.spec.sections.iter().map(|section| section.label.as_str()));
        let labels: Vec<&str> = labels.collect();
        let has_values = read().any(|column| matches!(column.origin, Origin::Field(..)));
        (has_values && labels.len() > 1).then(|| {
            format!("{table} has rows of each {label} ({}): select {label}, or add {label} = '…'", labels.join(", "))
        })
    }

    /// Returns the kind of rows of a scan under this plan and limit.
    fn mode(&self, plan: &ScanPlan, limit: Option<usize>) -> Result<Mode> {
        let slice = Slice { fetch: limit, ..Slice::ALL };
        Ok(match &self.kind {
            RowKind::Rows => Mode::Unordered(slice),
            RowKind::Ordered(order) => Mode::Ordered { order: order.clone(), slice, wanted: None },
            RowKind::Summary(summary) => {
                let firsts = matches!(summary.rows, SummaryRows::Firsts(_));
                if !firsts && !plan.countable() {
                    return internal_err!("a filter was pushed below the counts that it applies to");
                }
                if limit.is_some() {
                    return internal_err!("a limit was pushed below counts that must be complete");
                }
                Mode::Summary(summary.clone())
            }
        })
    }
}

/// Returns the plan with only its first columns.
fn first_columns(plan: Arc<dyn ExecutionPlan>, width: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    if schema.fields().len() == width {
        return Ok(plan);
    }
    let leaving = schema.fields().iter().take(width).enumerate();
    let columns = leaving
        .map(|(at, field)| (Arc::new(Column::new(field.name(), at)) as Arc<dyn PhysicalExpr>, field.name().clone()));
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
}
