//! Aggregates over mentions that need only counts, or the smallest and largest values of a column the service sorts by.
//!
//! ```text
//! Aggregate count(*) by language          Projection coalesce(sum(m.__mentions), 0)
//!   … joins, filters, projections …   ─▶    Aggregate sum(m.__mentions) by language
//!     mentions m                              … the same …
//!                                               mentions m, its rows those of a summary
//! ```
//!
//! A mention can represent others that an aggregate does not distinguish from it: rows of a summary have the columns that
//! are used, and a weight. Sums count each row by its weight; functions that ignore duplicates stay as they are. This is
//! correct through every node that makes each of its rows from one row of the scan. If another node is in between, the scan
//! keeps the reason for EXPLAIN.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use chrono_tz::Tz;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::{approx_distinct, average, bool_and_or, count, min_max};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Aggregate, Cast, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, TableScan, TableScanBuilder,
    when,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::prelude::{ident, lit};

use crate::config::{CountFromOverview, SessionSettings};
use crate::exec::WEIGHT;
use crate::functions::{Arithmetic, TypeIn, checked_arithmetic, float_extremes, sum_udaf};
use crate::profile::{ColumnSpec, Origin as ColumnOrigin, Profile, TableKind, TableSpec};
use crate::pushdown::{Aids, ScanPlan, ServiceOrder, Summary, TimeColumn, Wanted, days_of, service_order, summarize};
use crate::table::ApiTable;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct AggregatePushdown;

impl OptimizerRule for AggregatePushdown {
    fn name(&self) -> &'static str {
        "savedsearch_aggregate_pushdown"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        let Some(below) = mentions_below(&aggregate.input) else { return Ok(Transformed::no(plan)) };
        let Below { scan, way, between, .. } = &below;
        let Some(table) = ApiTable::of(scan) else { return Ok(Transformed::no(plan)) };
        let options = config.options();
        let planned = table.planned(&options, config.query_execution_start_time(), &scan.filters);
        // The scan reports requests that the service does not support.
        let Ok(scan_plan) = planned.plan() else { return Ok(Transformed::no(plan)) };
        if scan_plan.aids == Aids::Given(Vec::new()) || scan_plan.unbounded().is_some() {
            return Ok(Transformed::no(plan));
        }
        let use_overview = SessionSettings::of(&options).count_from_overview;
        let stands =
            between.as_ref().map_or(Ok(()), |between| Err(format!("{between} is between the aggregate and the scan")));
        let found = stands.and_then(|()| ColumnUse::at(aggregate, way, scan, scan_plan, &table)).and_then(|looked| {
            if use_overview == CountFromOverview::Never && (looked.wanted.firsts.is_empty() || looked.wanted.counts) {
                return Err("count_from_overview = never".to_owned());
            }
            let approximate = use_overview == CountFromOverview::Always;
            let summary = summarize(table.connection().profile(), scan_plan, &looked.wanted, approximate)?;
            Ok((looked, summary))
        });
        let rewritten = match found {
            Ok((looked, summary)) => with_summary(aggregate, &below, &table, &looked, summary)?,
            // Unchanged since the previous round.
            Err(because) if table.reason() == Some(&because) => return Ok(Transformed::no(plan)),
            Err(because) => {
                let table = Arc::new(table.read_because(because));
                let scan = TableScan { source: provider_as_source(table), ..(*scan).clone() };
                let input = rebuilt(&aggregate.input, way, LogicalPlan::TableScan(scan), None)?.0;
                plan.with_new_exprs(plan.expressions(), vec![input])?
            }
        };
        Ok(Transformed::yes(rewritten))
    }
}

/// A scan of mentions below an aggregate.
struct Below<'p> {
    scan: &'p TableScan,
    /// Positions of inputs on the path to the scan.
    way: Vec<usize>,
    /// Set if rows above may represent no mention.
    outer: bool,
    /// The node that prevents a one-to-one mapping from rows of the scan to rows above.
    between: Option<String>,
}

/// Returns the first scan of mentions whose rows are still undecided; scans that can be summarized take precedence.
fn mentions_below(plan: &LogicalPlan) -> Option<Below<'_>> {
    if let LogicalPlan::TableScan(scan) = plan {
        let table = ApiTable::of(scan)?;
        let open = scan.fetch.is_none() && table.spec().kind == TableKind::Mentions && !table.is_summarized();
        return open.then_some(Below { scan, way: Vec::new(), outer: false, between: None });
    }
    let found = plan.inputs().into_iter().enumerate().filter_map(|(at, input)| {
        let mut below = mentions_below(input)?;
        below.way.insert(0, at);
        let (passes, outer) = match plan {
            LogicalPlan::SubqueryAlias(_) | LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => (true, false),
            LogicalPlan::Join(Join { join_type, .. }) => match (join_type, at) {
                (JoinType::Inner, _) => (true, false),
                (JoinType::LeftSemi | JoinType::LeftAnti, 0) | (JoinType::RightSemi | JoinType::RightAnti, 1) => {
                    (true, false)
                }
                (JoinType::Left, at) => (true, at == 1),
                (JoinType::Right, at) => (true, at == 0),
                (JoinType::Full, _) => (true, true),
                _ => (false, false),
            },
            // The rows of this aggregate have already been decided.
            LogicalPlan::Aggregate(_) => return None,
            _ => (false, false),
        };
        below.outer |= outer;
        if !passes && below.between.is_none() {
            below.between = Some(plan.display().to_string().split([':', ' ']).next().unwrap_or_default().to_owned());
        }
        Some(below)
    });
    found.min_by_key(|below| below.between.is_some())
}

/// The use that an aggregate makes of the columns of a scan.
struct ColumnUse {
    wanted: Wanted,
    /// The replacement of each aggregate expression.
    weighing: Vec<Weighing>,
    /// Columns of the scan that are used above it.
    columns: BTreeSet<String>,
}

/// Replacement of an aggregate expression over weighted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weighing {
    /// Unchanged: the function ignores duplicates.
    Same,
    /// The count of rows: the sum of the weights.
    Rows,
    /// The count of rows whose argument is not NULL.
    RowsOf,
    /// The count of mentions, without rows that an outer join adds.
    Mentions,
    /// The sum of the argument times the weight.
    Sum,
    /// That sum divided by the count of rows whose argument is not NULL.
    Mean,
    /// The smallest or largest value of a column, taken from a first mention.
    First,
}

impl ColumnUse {
    fn at(
        aggregate: &Aggregate,
        way: &[usize],
        scan: &TableScan,
        scan_plan: &ScanPlan,
        table: &ApiTable,
    ) -> Result<Self, String> {
        let profile = table.connection().profile();
        let mut above = Above::new(table.spec(), scan.table_name.clone());
        for node in nodes_on(way, &aggregate.input)?.into_iter().rev() {
            above.pass(node, scan_plan)?;
        }
        for expr in &aggregate.group_expr {
            if matches!(expr, Expr::GroupingSet(_)) {
                return Err("the aggregate has grouping sets".into());
            }
            above.note(expr)?;
        }
        if above.asked_later && above.references.days.is_some() {
            return Err("the window or zone is known only at run time".into());
        }
        let weighed: Vec<Weighed> =
            aggregate.aggr_expr.iter().map(|expr| weigh(expr, aggregate, &above, profile)).collect::<Result<_, _>>()?;
        for input in weighed.iter().flat_map(|weighed| &weighed.inputs) {
            above.note(input)?;
        }
        let weighing: Vec<Weighing> = weighed.iter().map(|weighed| weighed.becomes).collect();
        let firsts: Vec<ServiceOrder> = weighed.into_iter().filter_map(|weighed| weighed.first).collect();
        let counts = weighing.iter().any(|weighing| !matches!(weighing, Weighing::Same | Weighing::First));
        let Above { references, passed, .. } = above;
        let mut columns = references.columns.clone();
        columns.extend(passed);
        columns.extend(references.days.and(references.spec.time.clone()));
        columns.extend(firsts.iter().map(|order| order.column.clone()));
        let wanted = Wanted { columns: references.columns, days: references.days, counts, firsts };
        Ok(Self { wanted, weighing, columns })
    }
}

/// Returns the nodes on the path to the scan, from the aggregate's input down.
fn nodes_on<'p>(way: &[usize], input: &'p LogicalPlan) -> Result<Vec<&'p LogicalPlan>, String> {
    let (mut nodes, mut node) = (Vec::new(), input);
    for at in way {
        nodes.push(node);
        node = node.inputs()[*at];
    }
    // A second weight would have the same name as the first.
    let kept = |node: &&LogicalPlan| node.schema().fields().iter().any(|field| field.name().starts_with("__"));
    match nodes.iter().any(kept) {
        true => {
            Err("a column below the aggregate has a name reserved for counting, for example from another counted scan"
                .to_owned())
        }
        false => Ok(nodes),
    }
}

/// The columns of the scan as seen from a node above it.
struct Above<'t> {
    references: References<'t>,
    /// The scan's name at this node.
    qualifier: TableReference,
    /// Columns that projections pass on unchanged.
    passed: BTreeSet<String>,
    /// Set if a condition on the path sets the window or the zone at run time.
    asked_later: bool,
}

impl<'t> Above<'t> {
    fn new(spec: &'t TableSpec, qualifier: TableReference) -> Self {
        let names = spec.columns.iter().map(|column| column.name.clone()).collect();
        let references = References { spec, names, columns: BTreeSet::new(), days: None, renamed: false };
        Self { references, qualifier, passed: BTreeSet::new(), asked_later: false }
    }

    /// Moves up through a node.
    fn pass(&mut self, node: &LogicalPlan, scan_plan: &ScanPlan) -> Result<(), String> {
        let mut kept = BTreeSet::new();
        if let LogicalPlan::Filter(filter) = node {
            let columns = filter.predicate.column_refs();
            let unknown = columns.iter().filter(|column| !scan_plan.chosen.contains(&column.name));
            self.asked_later |= unknown
                .filter_map(|column| self.references.spec.column(&column.name))
                .any(|column| matches!(column.origin, ColumnOrigin::Duration | ColumnOrigin::Timezone));
        }
        let days = self.references.days;
        for expr in node.expressions() {
            match (&expr, node) {
                // It keeps its name; only a use of that name counts.
                (Expr::Column(column), LogicalPlan::Projection(_)) if self.references.own(column, &self.qualifier) => {
                    self.passed.insert(column.name.clone());
                    kept.insert(column.name.clone());
                }
                _ => self.note(&expr)?,
            }
        }
        match node {
            LogicalPlan::SubqueryAlias(alias) => self.qualifier = alias.alias.clone(),
            LogicalPlan::Filter(_) if scan_plan.default_window && self.references.days != days => {
                return Err("a condition bounds the time only at run time".to_owned());
            }
            LogicalPlan::Projection(_) => {
                self.references.renamed = true;
                self.references.names = kept;
            }
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, expr: &Expr) -> Result<(), String> {
        self.references.note(expr, &self.qualifier)
    }

    /// Returns the scan's column if the expression is exactly that.
    fn own(&self, expr: &Expr) -> Option<&'t ColumnSpec> {
        match expr {
            Expr::Column(column) if self.references.own(column, &self.qualifier) => {
                self.references.spec.column(&column.name)
            }
            _ => None,
        }
    }
}

/// An aggregate expression over weighted rows.
struct Weighed {
    becomes: Weighing,
    /// The sort order whose first mention has the value.
    first: Option<ServiceOrder>,
    /// The expressions that it uses.
    inputs: Vec<Expr>,
}

/// Determines the replacement of an aggregate expression.
///
/// # Errors
/// The reason why it needs the mentions themselves.
fn weigh(expr: &Expr, aggregate: &Aggregate, above: &Above<'_>, profile: &Profile) -> Result<Weighed, String> {
    let function = aggregate_function(expr).ok_or("the aggregate is not a plain function call")?;
    let AggregateFunctionParams { args, distinct, filter, order_by, null_treatment } = &function.params;
    let name = function.func.name();
    let [argument] = args.as_slice() else { return Err(format!("{name} does not have exactly one argument")) };
    if !order_by.is_empty() || null_treatment.is_some() {
        return Err(format!("{name} uses ORDER BY or a NULL treatment"));
    }
    let [max, min] = float_extremes();
    let largest = [max, min_max::max_udaf()].contains(&function.func);
    let smallest = [min, min_max::min_udaf()].contains(&function.func);
    let ordered = above.own(argument).filter(|_| (largest || smallest) && filter.is_none());
    let first = ordered.and_then(|column| {
        service_order(profile, &column.name, SortOptions { descending: largest, nulls_first: false })
    });
    let is_signed = |of: &Expr| of.type_in(aggregate.input.schema()).is_ok_and(|kind| kind.is_signed_integer());
    let becomes = if first.is_some() {
        Weighing::First
    } else if *distinct || largest || smallest || ignores_doubles(function) {
        Weighing::Same
    } else if function.func == count::count_udaf() {
        match argument {
            Expr::Literal(value, _) if !value.is_null() => Weighing::Rows,
            _ if above.own(argument).is_some_and(|column| !column.nullable) => Weighing::Mentions,
            _ => Weighing::RowsOf,
        }
    } else if function.func == sum_udaf() && is_signed(argument) {
        Weighing::Sum
    } else if function.func == average::avg_udaf() && is_whole(argument, &aggregate.input) {
        Weighing::Mean
    } else {
        return Err(format!("{name} needs the mentions themselves"));
    };
    // The argument of a count or of a first mention is not used.
    let looks = !matches!(becomes, Weighing::Rows | Weighing::Mentions | Weighing::First);
    let inputs = filter.iter().map(|filter| filter.as_ref().clone()).chain(looks.then(|| argument.clone()));
    Ok(Weighed { becomes, first, inputs: inputs.collect() })
}

/// True if the argument is an integer cast to a float, as the engine does for averages.
fn is_whole(argument: &Expr, input: &LogicalPlan) -> bool {
    let Expr::Cast(Cast { expr, field }) = argument else { return false };
    let from = expr.type_in(input.schema());
    *field.data_type() == DataType::Float64 && from.is_ok_and(|from| from.is_signed_integer())
}

fn ignores_doubles(function: &AggregateFunction) -> bool {
    let known = [bool_and_or::bool_and_udaf(), bool_and_or::bool_or_udaf(), approx_distinct::approx_distinct_udaf()];
    known.contains(&function.func)
}

fn aggregate_function(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::AggregateFunction(function) => Some(function),
        Expr::Alias(alias) => aggregate_function(&alias.expr),
        _ => None,
    }
}

/// The columns of a scan that expressions use.
struct References<'t> {
    spec: &'t TableSpec,
    /// Names that still refer to the scan's columns, not to expressions or to columns of other inputs.
    names: BTreeSet<String>,
    columns: BTreeSet<String>,
    /// The zone, if the time is used only by its days.
    days: Option<Tz>,
    /// Set if unqualified names may refer to expressions.
    renamed: bool,
}

impl References<'_> {
    /// True if it is a column of the scan, whose name here is `qualifier`.
    fn own(&self, column: &Column, qualifier: &TableReference) -> bool {
        let named = match &column.relation {
            Some(relation) => relation.resolved_eq(qualifier),
            None => !self.renamed,
        };
        named && self.names.contains(&column.name)
    }

    fn note(&mut self, expr: &Expr, qualifier: &TableReference) -> Result<(), String> {
        if expr.is_volatile() {
            return Err("a volatile expression may differ between mentions".to_owned());
        }
        let mut refused = None;
        let visited = expr.apply(|part| {
            let days = TimeColumn::of(self.spec).and_then(|time| days_of(part, time));
            if let Some(zone) = days.filter(|_| part.column_refs().iter().all(|column| self.own(column, qualifier))) {
                if self.days.is_some_and(|days| days != zone) {
                    refused = Some("the query uses days of several time zones".to_owned());
                }
                self.days = Some(zone);
                return Ok(TreeNodeRecursion::Jump);
            }
            if let Expr::Column(column) = part
                && self.own(column, qualifier)
            {
                self.columns.insert(column.name.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        match (refused, visited) {
            (Some(refused), _) => Err(refused),
            (None, Err(error)) => Err(error.to_string()),
            (None, Ok(_)) => Ok(()),
        }
    }
}

/// Returns the aggregate over the scan's summary, with its original columns.
fn with_summary(
    aggregate: &Aggregate,
    below: &Below<'_>,
    table: &ApiTable,
    looked: &ColumnUse,
    summary: Summary,
) -> Result<LogicalPlan> {
    let Below { scan, way, outer, .. } = below;
    let source = provider_as_source(Arc::new(table.summarized(summary)));
    let schema = source.schema();
    let mut projection = vec![schema.index_of(WEIGHT)?];
    for column in &looked.columns {
        projection.push(schema.index_of(column)?);
    }
    projection.sort_unstable();
    let scan = TableScanBuilder::new(scan.table_name.clone(), source)
        .with_projection(Some(projection))
        .with_filters(scan.filters.clone())
        .build()?;
    let weight = Column::new(Some(scan.table_name.clone()), WEIGHT);
    let (input, weight) = rebuilt(&aggregate.input, way, LogicalPlan::TableScan(scan), Some(weight))?;
    let weight = Expr::Column(weight.unwrap_or_else(|| Column::from_name(WEIGHT)));
    // An outer join's row without a mention counts as one row.
    let rows = if *outer { coalesce(vec![weight.clone(), lit(1_i64)]) } else { weight.clone() };

    let mut expressions = Vec::new();
    for (at, (expr, weighing)) in aggregate.aggr_expr.iter().zip(&looked.weighing).enumerate() {
        let Some(AggregateFunction { params, .. }) = aggregate_function(expr) else { continue };
        let argument = params.args.first().cloned().unwrap_or_else(|| lit(1_i64));
        let weighed = match weighing {
            Weighing::Same | Weighing::First => expr.clone().unalias(),
            Weighing::Mentions => summed(weight.clone(), params),
            Weighing::Rows => summed(rows.clone(), params),
            Weighing::RowsOf => summed(when(argument.is_not_null(), rows.clone()).otherwise(lit(0_i64))?, params),
            Weighing::Sum => {
                let argument = Expr::Cast(Cast::new(Box::new(argument), DataType::Int64));
                summed(checked_arithmetic(Arithmetic::Multiply).call(vec![argument, rows.clone()]), params)
            }
            Weighing::Mean => {
                let some = when(argument.clone().is_not_null(), rows.clone()).otherwise(lit(0_i64))?;
                expressions.push(summed(some, params).alias(format!("__rows_{at}")));
                let rows = Expr::Cast(Cast::new(Box::new(rows.clone()), DataType::Float64));
                summed(argument * rows, params)
            }
        };
        expressions.push(weighed.alias(format!("__summary_{at}")));
    }
    let grouped = aggregate.group_expr.len();
    let aggregated = LogicalPlanBuilder::from(input).aggregate(aggregate.group_expr.clone(), expressions)?.build()?;
    let named = aggregate.schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let column = match at.checked_sub(grouped) {
            None => Expr::Column(Column::from(aggregated.schema().qualified_field(at))),
            Some(at) => {
                let column = ident(format!("__summary_{at}"));
                match looked.weighing.get(at) {
                    Some(Weighing::Rows | Weighing::RowsOf | Weighing::Mentions) => {
                        coalesce(vec![column, lit(ScalarValue::Int64(Some(0)))])
                    }
                    Some(Weighing::Mean) => {
                        let rows = ident(format!("__rows_{at}"));
                        column / Expr::Cast(Cast::new(Box::new(rows), DataType::Float64))
                    }
                    _ => column,
                }
            }
        };
        column.alias_qualified(qualifier.cloned(), field.name())
    });
    let named: Vec<Expr> = named.collect();
    LogicalPlanBuilder::from(aggregated).project(named)?.build()
}

fn summed(argument: Expr, params: &AggregateFunctionParams) -> Expr {
    let function = AggregateFunction::new_udf(sum_udaf(), vec![argument], false, params.filter.clone(), vec![], None);
    Expr::AggregateFunction(function)
}

/// Returns the plan with another scan at the end of the path, and the name of the weight above it.
fn rebuilt(
    plan: &LogicalPlan,
    way: &[usize],
    scan: LogicalPlan,
    weight: Option<Column>,
) -> Result<(LogicalPlan, Option<Column>)> {
    let Some((at, rest)) = way.split_first() else { return Ok((scan, weight)) };
    let mut inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
    let (input, weight) = rebuilt(&inputs[*at], rest, scan, weight)?;
    inputs[*at] = input;
    if let LogicalPlan::SubqueryAlias(alias) = plan {
        let input = inputs.swap_remove(0);
        let renamed = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
        let weight = weight.map(|_| Column::new(Some(alias.alias.clone()), WEIGHT));
        return Ok((LogicalPlan::SubqueryAlias(renamed), weight));
    }
    let mut expressions = plan.expressions();
    if matches!(plan, LogicalPlan::Projection(_)) {
        expressions.extend(weight.clone().map(Expr::Column));
    }
    Ok((plan.with_new_exprs(expressions, inputs)?, weight))
}
