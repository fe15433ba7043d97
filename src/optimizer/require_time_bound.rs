//! Refuses conditions that are meant to determine a scan's requests but cannot reach the scan.
//!
//! `… JOIN p ON m.published_at >= p.start` bounds the time, but only the join knows the bound. The scan would read the
//! profile's default window, and rows outside it would silently be missing. The same holds for filters that stay above an
//! outer join, and for dates computed from the time and joined with a calendar. Comparisons among values that all come from
//! such windows are allowed, for example of each mention with the latest one.
//!
//! Columns that repeat the request, `duration` and `timezone`, have one value in all rows of a scan. A comparison of
//! them with anything but that value, at any place in the query, means a different request and is refused as well.
//!
//! Aggregates over a part of the default window are allowed. If the part begins before the window, the scan has a note.

use std::sync::Arc;

use arrow::datatypes::DataType;
use chrono::{DateTime, Utc};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::DataFusionError;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, split_conjunction};
use datafusion::logical_expr::{
    Between, BinaryExpr, Case, Expr, Join, JoinType, Like, LogicalPlan, Operator, TableScan,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::future::BoxFuture;

use super::cut_days::cut_days;
use super::explained_defects::with_defects;
use super::misread_templates::misread_templates;
use super::other_case::other_cases;
use super::texts_of_times::texts_of_times;
use crate::boxed_future::boxed_futures;
use crate::error::{Error, ErrorKind, Place};
use crate::exec::FetchExec;
use crate::functions::TypeIn;
use crate::profile::{Origin as ColumnOrigin, TableSpec};
use crate::pushdown::{CLOCK_SKEW, TimeColumn, can_claim, earliest};
use crate::table::ApiTable;

/// Inspects the logical plan after the optimizer has finished, since a filter may reach its scan in a late round.
#[derive(Debug)]
pub(super) struct RequireTimeBound {
    /// The planner of the session; `None`: the engine's default.
    planner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl RequireTimeBound {
    /// Wraps this planner.
    pub(super) fn over(planner: Option<Arc<dyn QueryPlanner + Send + Sync>>) -> Self {
        Self { planner }
    }
}

impl QueryPlanner for RequireTimeBound {
    boxed_futures! {
        fn create_physical_plan<'this, 'plan, 'state>(
            &'this self,
            plan: &'plan LogicalPlan,
            state: &'state dyn Session,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.physical(plan, state)
        }
    }
}

impl RequireTimeBound {
    /// Returns the physical plan of a plan with a lower bound of time, or an error.
    fn physical<'a>(
        &'a self,
        plan: &'a LogicalPlan,
        state: &'a dyn Session,
    ) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(async move {
            let query =
                Query { options: state.config_options(), start: state.execution_props().query_execution_start_time };
            Origins::of(plan, query)?;
            let notes = parts_of_the_time(plan, query)?;
            let physical = match &self.planner {
                Some(planner) => planner.create_physical_plan(plan, state).await?,
                None => DefaultPhysicalPlanner::default().create_physical_plan(plan, state).await?,
            };
            let mut cases = other_cases(plan)?;
            physical.apply(|node| {
                if let Some(scan) = node.downcast_ref::<FetchExec>() {
                    cases.retain(|case| !scan.compares(&case.column, &case.value));
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
            let whole = misread_templates(plan)?.into_iter().chain(texts_of_times(plan)?).chain(cut_days(plan)?);
            let whole: Vec<String> = whole.chain(cases.into_iter().map(|case| case.note)).collect();
            physical.apply(|node| {
                if let Some(scan) = node.downcast_ref::<FetchExec>() {
                    whole.iter().for_each(|note| scan.note(note.clone()));
                    let own = notes.iter().filter(|(table, _)| *table.name == *scan.table());
                    let own = own.filter(|_| scan.default_window().is_some());
                    own.for_each(|(_, note)| scan.note(note.clone()));
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
            super::budget_check::announce_requests(&physical).await?;
            Ok(with_defects(plan, physical))
        })
    }
}

/// Options and start of the query whose plan is inspected.
#[derive(Clone, Copy)]
struct Query<'s> {
    options: &'s ConfigOptions,
    start: Option<DateTime<Utc>>,
}

/// Returns a note for each part of an aggregate, or of an expression such as CASE, that compares the time of a scan of
/// the default window and reaches further back than that window.
fn parts_of_the_time(plan: &LogicalPlan, query: Query<'_>) -> Result<Vec<(Arc<TableSpec>, String)>> {
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = ApiTable::of(scan)
        {
            let planned = table.planned(query.options, query.start, &scan.filters);
            let default = planned.plan().is_ok_and(|plan| plan.default_window);
            found.extend(default.then(|| (table, planned.now())));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut notes = Vec::new();
    for (table, now) in found {
        let profile = table.connection().profile();
        let default = &profile.window.default;
        let (Some(time), Some(length)) = (TimeColumn::of(table.spec()), profile.window.length_of(default)) else {
            continue;
        };
        let begins = now - length - CLOCK_SKEW;
        plan.apply_with_subqueries(|node| {
            // Conditions of other nodes either reach the scan or are refused.
            if matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
                for expr in node.expressions() {
                    if let Some(part) = reaching_back(&expr, time, begins)? {
                        let name = &table.spec().name;
                        notes.push((
                            Arc::clone(table.spec()),
                            format!(
                                "`{part}` reaches before the default window of {name} (`{default}`); add a filter on \
                                 `{}` to the WHERE clause",
                                time.name()
                            ),
                        ));
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(notes)
}

/// Returns the part of an expression that compares the time with an instant before `begins`.
fn reaching_back(expr: &Expr, time: TimeColumn<'_>, begins: DateTime<Utc>) -> Result<Option<String>> {
    let mut found = None;
    expr.apply(|part| {
        let bounds = matches!(part, Expr::BinaryExpr(_) | Expr::Between(_) | Expr::InList(_));
        let Some(start) = bounds.then(|| earliest(part, time)).flatten() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        if start.is_none_or(|start| start < begins.timestamp_micros()) {
            found = Some(part.human_display().to_string());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(found)
}

/// Refuses comparisons of columns that repeat a request with anything but the value sent.
fn check_requests(plan: &LogicalPlan, inputs: &[Origins<'_>]) -> Result<()> {
    let looks = |origins: &Origins<'_>| origins.columns.iter().any(|origin| matches!(origin, Origin::RequestColumn(_)));
    if !inputs.iter().any(looks) {
        return Ok(());
    }
    for expr in plan.expressions() {
        for conjunct in split_conjunction(&expr) {
            if reaches_scan(plan, conjunct) {
                continue;
            }
            conjunct.apply(|part| {
                match part {
                    Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
                        compare_requests(&[left, right], inputs)?;
                    }
                    Expr::InList(InList { expr, list, .. }) => {
                        for item in list {
                            compare_requests(&[expr, item], inputs)?;
                        }
                    }
                    Expr::Like(Like { expr, pattern, .. }) | Expr::SimilarTo(Like { expr, pattern, .. }) => {
                        compare_requests(&[expr, pattern], inputs)?;
                    }
                    Expr::Between(Between { expr, low, high, .. }) => {
                        compare_requests(&[expr, low], inputs)?;
                        compare_requests(&[expr, high], inputs)?;
                    }
                    Expr::Case(Case { expr: Some(expr), when_then_expr, .. }) => {
                        for (when, _) in when_then_expr {
                            compare_requests(&[expr, when], inputs)?;
                        }
                    }
                    Expr::ScalarFunction(function) if tests_values(part, function, inputs) => {
                        if let Some(request) = request_in(part, inputs) {
                            return Err(unknown_request(
                                &request,
                                &format!("`{}` tests a value", part.human_display()),
                            ));
                        }
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
    }
    Ok(())
}

/// True if a function compares its arguments: its result is a Boolean, or NULL if they are equal.
fn tests_values(call: &Expr, function: &ScalarFunction, inputs: &[Origins<'_>]) -> bool {
    let is_boolean = |input: &Origins<'_>| call.type_in(input.plan.schema()).is_ok_and(|of| of == DataType::Boolean);
    function.name() == "nullif" || inputs.iter().any(is_boolean)
}

fn compares(op: Operator) -> bool {
    use Operator::{
        Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, RegexIMatch, RegexMatch, RegexNotIMatch,
        RegexNotMatch,
    };
    matches!(
        op,
        Eq | NotEq
            | Lt
            | LtEq
            | Gt
            | GtEq
            | IsDistinctFrom
            | IsNotDistinctFrom
            | RegexMatch
            | RegexIMatch
            | RegexNotMatch
            | RegexNotIMatch
    )
}

/// Refuses a comparison of a column that repeats a request with anything that may differ from the value sent.
fn compare_requests(sides: &[&Expr; 2], inputs: &[Origins<'_>]) -> Result<()> {
    let requests = sides.map(|side| request_in(side, inputs));
    let (request, other) = match requests {
        [None, None] => return Ok(()),
        [Some(one), Some(other)] if one.sent.is_some() && one.sent == other.sent => return Ok(()),
        [Some(request), _] => (request, sides[1]),
        [None, Some(request)] => (request, sides[0]),
    };
    let literal = match other {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        _ => None,
    };
    if literal.is_some() && literal == request.sent {
        return Ok(());
    }
    let said = sides.map(|side| side.human_display().to_string()).join(" and ");
    Err(unknown_request(&request, &format!("{said} are compared")))
}

/// Returns the first column used by the expression that repeats a request.
fn request_in(expr: &Expr, inputs: &[Origins<'_>]) -> Option<Arc<RequestColumn>> {
    origins_in(expr, inputs).into_iter().find_map(|origin| match origin {
        Origin::RequestColumn(request) => Some(request),
        _ => None,
    })
}

fn unknown_request(request: &RequestColumn, said: &str) -> DataFusionError {
    let RequestColumn { table, column, .. } = request;
    let message = format!("{said}, but `{column}` must be known before the request is sent");
    let place = Place { table: Some(table.to_string()), ..Place::default() };
    Error::new(ErrorKind::Query, message)
        .advice(format!(
            "set it in the WHERE clause of the table: {column} = '…'; combine several values with UNION ALL"
        ))
        .at(place)
        .into()
}

/// Checks the conditions of one node against the origins of its inputs' columns.
fn check(plan: &LogicalPlan, inputs: &[Origins<'_>]) -> Result<()> {
    check_requests(plan, inputs)?;
    let conditions: Vec<Vec<&Expr>> = match plan {
        LogicalPlan::Join(Join { on, filter, .. }) => {
            let pairs = on.iter().map(|(left, right)| vec![left, right]);
            pairs.chain(filter.iter().flat_map(split_conjunction).map(|conjunct| vec![conjunct])).collect()
        }
        LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate).into_iter().map(|c| vec![c]).collect(),
        _ => return Ok(()),
    };
    for sides in conditions {
        if sides.iter().all(|side| reaches_scan(plan, side)) {
            continue;
        }
        if let [left, right] = sides[..] {
            compare_requests(&[left, right], inputs)?;
        }
        let found: Vec<Origin> = sides.iter().flat_map(|side| origins_in(side, inputs)).collect();
        let time = found.iter().find_map(|origin| match origin {
            Origin::Time(table) => Some(Arc::clone(table)),
            _ => None,
        });
        let instants = sides.iter().any(|side| names_an_instant(side));
        let among_themselves = found.len() > 1 && !instants && !found.contains(&Origin::Elsewhere);
        if let Some(table) = time.filter(|_| !among_themselves) {
            let said = sides.iter().map(|side| side.human_display().to_string()).collect::<Vec<_>>().join(" = ");
            let message = format!("`{said}` is not pushed down to the scan, and no other condition bounds the time");
            let place = Place { table: Some(table.to_string()), ..Place::default() };
            return Err(Error::new(ErrorKind::Query, message)
                .advice(
                    "add a time range (literals or a scalar subquery) or duration = '…' in a subquery over the table",
                )
                .at(place)
                .into());
        }
    }
    Ok(())
}

/// Origin of a column of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// The time of a scan of this table that reads the default window, or a value derived from it.
    Time(Arc<str>),
    /// A column that repeats a scan's request and that no condition of the scan sets to a value.
    RequestColumn(Arc<RequestColumn>),
    /// Any other value derived only from default windows.
    Window,
    /// Anything else.
    Elsewhere,
}

/// A column that repeats a scan's request.
#[derive(Debug, PartialEq, Eq)]
struct RequestColumn {
    table: Arc<str>,
    column: String,
    /// The value that the scan sends, if it is a single one.
    sent: Option<String>,
}

/// Origins of the columns of a plan, in the order of its schema.
struct Origins<'p> {
    plan: &'p LogicalPlan,
    columns: Vec<Origin>,
}

impl<'p> Origins<'p> {
    /// Follows the columns up from the scans and checks each node on the way, including those of subqueries.
    fn of(plan: &'p LogicalPlan, query: Query<'_>) -> Result<Self> {
        let width = plan.schema().fields().len();
        let inputs = plan.inputs().into_iter().map(|input| Origins::of(input, query)).collect::<Result<Vec<_>>>()?;
        plan.apply_subqueries(|subquery| Origins::of(subquery, query).map(|_| TreeNodeRecursion::Continue))?;
        check(plan, &inputs)?;
        let made = |expr: &Expr| together(&origins_in(expr, &inputs));
        let mut columns: Vec<Origin> = match plan {
            LogicalPlan::TableScan(scan) => scanned(scan, query),
            LogicalPlan::Projection(projection) => projection.expr.iter().map(made).collect(),
            LogicalPlan::Filter(filter) => {
                let bounds = split_conjunction(&filter.predicate).into_iter().any(|conjunct| {
                    reaches_scan(plan, conjunct)
                        && origins_in(conjunct, &inputs).iter().any(|origin| matches!(origin, Origin::Time(_)))
                });
                // The time is bounded at run time.
                let known_later = |origin: &Origin| match origin {
                    Origin::RequestColumn(_) => origin.clone(),
                    _ => Origin::Elsewhere,
                };
                match bounds {
                    true => inputs[0].columns.iter().map(known_later).collect(),
                    false => inputs[0].columns.clone(),
                }
            }
            LogicalPlan::Aggregate(aggregate) => {
                let groups = grouping_set_to_exprlist(&aggregate.group_expr).unwrap_or_default();
                let groups = groups.into_iter().map(made);
                // With several grouping sets, the set's id follows the groups.
                let ids = (width - aggregate.aggr_expr.len()).saturating_sub(groups.len());
                let ids = vec![Origin::Window; ids];
                groups.chain(ids).chain(aggregate.aggr_expr.iter().map(|expr| made_of(expr, &inputs))).collect()
            }
            LogicalPlan::Window(window) => {
                let passed = inputs[0].columns.iter().cloned();
                passed.chain(window.window_expr.iter().map(|expr| made_of(expr, &inputs))).collect()
            }
            LogicalPlan::Join(Join { join_type, .. }) => match join_type {
                JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => inputs[1].columns.clone(),
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => inputs[0].columns.clone(),
                _ => inputs.iter().flat_map(|input| input.columns.iter().cloned()).collect(),
            },
            LogicalPlan::Union(_) => (0..width)
                .map(|at| {
                    let column: Vec<Origin> =
                        inputs.iter().filter_map(|input| input.columns.get(at)).cloned().collect();
                    together(&column)
                })
                .collect(),
            LogicalPlan::Unnest(unnest) => {
                let from = |at: &usize| inputs[0].columns.get(*at).cloned().unwrap_or(Origin::Elsewhere);
                unnest.dependency_indices.iter().map(from).collect()
            }
            // Nodes that pass their rows on, possibly with columns appended.
            _ => inputs.first().map(|input| input.columns.clone()).unwrap_or_default(),
        };
        columns.resize(width, Origin::Elsewhere);
        Ok(Self { plan, columns })
    }
}

/// Returns the origins of a scan's columns.
fn scanned(scan: &TableScan, query: Query<'_>) -> Vec<Origin> {
    let Some(table) = ApiTable::of(scan) else { return Vec::new() };
    let planned = table.planned(query.options, query.start, &scan.filters);
    let Ok(plan) = planned.plan() else { return Vec::new() };
    let default = plan.default_window || plan.unbounded().is_some();
    let spec = table.spec();
    let sent = |origin: &ColumnOrigin| match origin {
        ColumnOrigin::Duration if plan.windows.len() == 1 => plan.windows.first().cloned(),
        ColumnOrigin::Timezone => plan.template.timezone.clone(),
        _ => None,
    };
    let origin = |name: &str| match spec.column(name).map(|column| &column.origin) {
        Some(request @ (ColumnOrigin::Duration | ColumnOrigin::Timezone)) if !plan.chosen.contains(name) => {
            let (table, column) = (Arc::clone(&spec.name), name.to_owned());
            Origin::RequestColumn(Arc::new(RequestColumn { table, column, sent: sent(request) }))
        }
        _ if default && Some(name) == spec.time.as_deref() => Origin::Time(Arc::clone(&spec.name)),
        _ if default => Origin::Window,
        _ => Origin::Elsewhere,
    };
    scan.projected_schema.fields().iter().map(|field| origin(field.name())).collect()
}

/// Returns the origins of the columns whose values an expression uses; a test for NULL bounds nothing.
fn origins_in(expr: &Expr, inputs: &[Origins<'_>]) -> Vec<Origin> {
    let find = |column: &Column| {
        inputs.iter().find_map(|input| {
            let at = input.plan.schema().maybe_index_of_column(column)?;
            input.columns.get(at).cloned()
        })
    };
    let mut found = Vec::new();
    // The closure never fails.
    let _ = expr.apply(|part| {
        match part {
            Expr::IsNull(_) | Expr::IsNotNull(_) => return Ok(TreeNodeRecursion::Jump),
            Expr::Column(column) => found.push(find(column).unwrap_or(Origin::Elsewhere)),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// Returns the origin of an aggregate's or window function's result, derived from its columns, or from all rows without
/// any.
fn made_of(expr: &Expr, inputs: &[Origins<'_>]) -> Origin {
    let looked_at = origins_in(expr, inputs);
    // The function returns one of the values unchanged.
    if let Some(request) = looked_at.iter().find(|origin| matches!(origin, Origin::RequestColumn(_)))
        && gives_a_value(expr)
    {
        return request.clone();
    }
    let all = inputs.iter().flat_map(|input| input.columns.iter());
    let here = |origin: &Origin| *origin != Origin::Elsewhere;
    let window = if looked_at.is_empty() { all.clone().all(here) } else { looked_at.iter().all(here) };
    if window { Origin::Window } else { Origin::Elsewhere }
}

/// True if an aggregate or window function returns one of its argument's values.
fn gives_a_value(expr: &Expr) -> bool {
    let names = [
        "min",
        "max",
        "nested_max",
        "nested_min",
        "first_value",
        "last_value",
        "nth_value",
        "lag",
        "lead",
        "any_value",
    ];
    match expr {
        Expr::Alias(alias) => gives_a_value(&alias.expr),
        Expr::AggregateFunction(function) => names.contains(&function.func.name()),
        Expr::WindowFunction(function) => names.contains(&function.fun.name()),
        _ => false,
    }
}

/// True if the expression contains a literal instant or day.
fn names_an_instant(expr: &Expr) -> bool {
    let instant = |part: &Expr| {
        matches!(
            part,
            Expr::Literal(
                ScalarValue::TimestampSecond(..)
                    | ScalarValue::TimestampMillisecond(..)
                    | ScalarValue::TimestampMicrosecond(..)
                    | ScalarValue::TimestampNanosecond(..)
                    | ScalarValue::Date32(_)
                    | ScalarValue::Date64(_),
                _
            )
        )
    };
    expr.exists(|part| Ok(instant(part))).unwrap_or(false)
}

/// Returns the origin of a value derived from columns.
fn together(of: &[Origin]) -> Origin {
    let time = of.iter().find(|origin| matches!(origin, Origin::Time(_)));
    let request = || of.iter().find(|origin| matches!(origin, Origin::RequestColumn(_)));
    match time.or_else(request) {
        Some(origin) => origin.clone(),
        None if !of.is_empty() && of.iter().all(|origin| *origin == Origin::Window) => Origin::Window,
        None => Origin::Elsewhere,
    }
}

/// True if a scan directly below the filter accepts the condition: one that the table itself would accept, or one that
/// waits for an uncorrelated subquery.
fn reaches_scan(plan: &LogicalPlan, condition: &Expr) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let mut below = filter.input.as_ref();
    let scan = loop {
        below = match below {
            LogicalPlan::TableScan(scan) => break scan,
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            LogicalPlan::Filter(filter) => filter.input.as_ref(),
            LogicalPlan::Projection(projection) => projection.input.as_ref(),
            _ => return false,
        };
    };
    if ApiTable::of(scan).is_some_and(|table| !table.tells_apart(condition)) {
        return false;
    }
    let waits = condition.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_)))).unwrap_or(false);
    (waits || can_claim(condition)) && !condition.is_volatile()
}
