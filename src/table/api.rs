//! A table that maps to an answer of the service.

use std::sync::{Arc, Mutex};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Constraint, Constraints, DFSchema, Result, internal_err};
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableScan, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::config::SessionSettings;
use crate::connection::Connection;
use crate::decode::arrow_schema;
use crate::error::Place;
use crate::exec::{FetchExec, Scanning, possible, scan_schema, source};
use crate::profile::{ColumnSpec, Origin, TableSpec};
use crate::pushdown::{Aids, ScanPlan, ServiceOrder, Summary, SummaryRows, Table, can_claim, looks_only_at, plan_scan};

/// A table that maps to an answer of the service. Works in any DataFusion session.
#[derive(Debug, Clone)]
pub struct ApiTable {
    connection: Arc<Connection>,
    table: Table,
    spec: Arc<TableSpec>,
    schema: SchemaRef,
    constraints: Constraints,
    /// Stands in for the rows where only numbers of them are wanted; the schema then has a column more.
    summary: Option<Summary>,
    /// Why nothing does, though numbers are all that is wanted.
    read_because: Option<String>,
    /// The service's order that its rows come in.
    order: Option<ServiceOrder>,
}

impl ApiTable {
    /// The table of this connection. No request is made.
    pub fn new(connection: Arc<Connection>, table: Table) -> Self {
        let spec = Arc::new(table.spec(connection.profile()).clone());
        let schema = arrow_schema(&spec);
        // The engine drops a DISTINCT over a key, so only rows that are told apart by it have one.
        let aid = spec.columns.iter().position(|column| column.origin == Origin::Aid);
        let id = spec.id.as_ref().and_then(|id| schema.index_of(id).ok());
        let key = aid.zip(id).map(|(aid, id)| Constraint::PrimaryKey(vec![aid, id]));
        let constraints = key.into_iter().collect();
        let constraints = Constraints::new_unverified(constraints);
        Self { connection, table, spec, schema, constraints, summary: None, read_because: None, order: None }
    }

    /// The same table, with its rows in an order of the service.
    #[must_use]
    pub fn in_order(self, order: ServiceOrder) -> Self {
        Self { order: Some(order), ..self }
    }

    /// The table that a scan reads, where it is one of these.
    pub(crate) fn of(scan: &TableScan) -> Option<Self> {
        source_as_provider(&scan.source).ok()?.downcast_ref::<Self>().cloned()
    }

    /// Which of the service's tables it is.
    pub fn table(&self) -> Table {
        self.table
    }

    /// The connection that it reads from.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Whether its rows are those of a summary.
    pub(crate) fn is_summarized(&self) -> bool {
        self.summary.is_some()
    }

    /// Why its rows are read though numbers of them are all that is wanted, as far as that is known.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.read_because.as_deref()
    }

    /// The table whose rows are those of a summary, with one more column, [`WEIGHT`](crate::exec::WEIGHT).
    pub(crate) fn summarized(&self, summary: Summary) -> Self {
        let schema = scan_schema(&self.spec, Some(&summary));
        // Its rows have no key and no order.
        let summary = Some(summary);
        Self { schema, constraints: Constraints::default(), summary, read_because: None, order: None, ..self.clone() }
    }

    /// The table, with the reason for EXPLAIN why its rows are read though numbers of them are all that is wanted.
    pub(crate) fn read_because(&self, because: String) -> Self {
        Self { read_because: Some(because), ..self.clone() }
    }

    /// Whether a filter can be evaluated over its rows. Rows of a summary stand for mentions that a filter may tell apart,
    /// unless it looks at what all mentions of one request have in common.
    pub(crate) fn tells_apart(&self, filter: &Expr) -> bool {
        let common = |column: &&ColumnSpec| match column.origin {
            Origin::Aid => true,
            // Days of a zone depend on the period and the zone that are asked for.
            Origin::Duration | Origin::Timezone => {
                self.summary.as_ref().is_some_and(|summary| !matches!(summary.rows, SummaryRows::Days(_)))
            }
            _ => false,
        };
        let mut common = self.spec.columns.iter().filter(common);
        self.summary.is_none() || common.any(|column| looks_only_at(filter, &column.name))
    }

    /// What is asked of the service under these filters.
    ///
    /// # Errors
    /// As [`plan_scan`].
    pub(crate) fn plan(&self, options: &ConfigOptions, filters: &[Expr]) -> Result<ScanPlan> {
        let settings = SessionSettings::of(options);
        let conjuncts: Vec<Expr> = filters.iter().flat_map(split_conjunction).cloned().collect();
        let now = self.connection.now();
        plan_scan(self.connection.profile(), self.table, &conjuncts, &settings.timezone, now).map_err(|error| {
            let table = Some(self.table.name().to_owned());
            DataFusionError::from(error.at(Place { table, ..Place::default() }))
        })
    }
}

/// Names a query: the session, and the instant at which its planning began, which all its scans share.
pub(crate) fn query_name(state: &dyn Session) -> String {
    let session: String = state.session_id().chars().take(8).collect();
    match state.execution_props().query_execution_start_time {
        Some(start) => format!("{session}-{:x}", start.timestamp_micros()),
        None => format!("{session}-{:x}", rand::random::<u64>()),
    }
}

#[async_trait]
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

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let args = ScanArgs::default()
            .with_projection(projection.map(Vec::as_slice))
            .with_filters(Some(filters))
            .with_limit(limit);
        Ok(self.scan_with_args(state, args).await?.into_inner())
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, args: ScanArgs<'a>) -> Result<ScanResult> {
        let filters = args.filters().unwrap_or_default();
        let projection = match args.projection() {
            Some(columns) => columns.to_vec(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let mut plan = self.plan(state.config_options(), filters)?;
        let table = DFSchema::try_from(Arc::clone(&self.schema))?;
        let predicate = conjunction(filters.to_vec());
        let predicate = predicate.map(|predicate| state.create_physical_expr(predicate, &table)).transpose()?;
        let aid = self.spec.columns.iter().find(|column| column.origin == Origin::Aid);
        if let (Aids::Given(aids), Some(aid)) = (&plan.aids, aid) {
            plan.aids = Aids::Given(possible(aids.clone(), &predicate, &aid.name)?);
        }
        if plan.aids == Aids::Given(Vec::new()) || args.limit() == Some(0) {
            let schema = Arc::new(self.schema.project(&projection)?);
            return Ok(ScanResult::new(Arc::new(EmptyExec::new(schema))));
        }
        let firsts = |summary: &Summary| matches!(summary.rows, SummaryRows::Firsts(_));
        if self.summary.as_ref().is_some_and(|summary| !firsts(summary) && !plan.countable()) {
            return internal_err!("a filter was pushed below the numbers that it should choose from");
        }
        let input = source(&plan.aids)?;
        // Saved searches are merged by the key of their order, which may not leave.
        let width = projection.len();
        let key = self.order.as_ref().map(|order| self.schema.index_of(&order.column)).transpose()?;
        let projection = projection.iter().copied().chain(key.filter(|key| !projection.contains(key))).collect();
        let notes = Arc::new(Mutex::new(plan.notes.clone()));
        let scanning = Scanning {
            connection: Arc::clone(&self.connection),
            table: self.table,
            spec: Arc::clone(&self.spec),
            plan,
            query: query_name(state),
            projection,
            predicate,
            above: Vec::new(),
            fetch: args.limit(),
            skip: 0,
            announced: Arc::default(),
            notes,
            chosen_later: false,
            bounds: Vec::new(),
            summary: self.summary.clone(),
            read_because: self.read_because.clone(),
            order: self.order.clone(),
            wanted: None,
        };
        let scan: Arc<dyn ExecutionPlan> = Arc::new(FetchExec::try_new(scanning, input)?);
        let fields = scan.schema();
        if fields.fields().len() == width {
            return Ok(ScanResult::new(scan));
        }
        let leaving = fields.fields().iter().take(width).enumerate();
        let columns = leaving.map(|(at, field)| {
            (Arc::new(Column::new(field.name(), at)) as Arc<dyn PhysicalExpr>, field.name().clone())
        });
        Ok(ScanResult::new(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), scan)?)))
    }
}
