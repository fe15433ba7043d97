//! Refuses conditions on the time of mentions that cannot reach their scan, while the default window is read.
//!
//! `… JOIN p ON m.published_at >= p.start` says when, and only the join can tell: the scan would read the profile's
//! default window, and what lies outside would be missing without a word. The same holds for filters that stay above an
//! outer join, and for dates made of the time and joined with a calendar. Comparisons of what comes out of such windows
//! among themselves are another matter, such as that of each mention with the latest one.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, split_conjunction};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::error::{Error, ErrorKind, Place};
use crate::pushdown::can_claim;
use crate::table::ApiTable;

/// Looks at the logical plan when the optimizer is done with it, since a filter may reach its scan in a late round.
#[derive(Debug)]
pub(super) struct RefuseUnbounded;

#[async_trait]
impl QueryPlanner for RefuseUnbounded {
    async fn create_physical_plan(&self, plan: &LogicalPlan, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        Origins::of(plan, state.config_options())?;
        DefaultPhysicalPlanner::default().create_physical_plan(plan, state).await
    }
}

/// Refuses the conditions of one node, whose inputs' columns come from there.
fn check(plan: &LogicalPlan, inputs: &[Origins<'_>]) -> Result<()> {
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
        let found: Vec<Origin> = sides.iter().flat_map(|side| origins_in(side, inputs)).collect();
        let time = found.iter().find_map(|origin| match origin {
            Origin::Time(table) => Some(*table),
            _ => None,
        });
        let instants = sides.iter().any(|side| names_an_instant(side));
        let among_themselves = found.len() > 1 && !instants && !found.contains(&Origin::Elsewhere);
        if let Some(table) = time.filter(|_| !among_themselves) {
            let said = sides.iter().map(|side| side.human_display().to_string()).collect::<Vec<_>>().join(" = ");
            let message = format!("`{said}` does not reach the scan, and nothing else bounds the time to read");
            let place = Place { table: Some(table.to_owned()), ..Place::default() };
            return Err(Error::new(ErrorKind::Query, message)
                .advice("put a range of the time, by literals or a scalar subquery, or duration = '…', into a subquery over the table")
                .at(place)
                .into());
        }
    }
    Ok(())
}

/// Where a column of a plan comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The time of a scan of this table that reads the default window, or what is made of it.
    Time(&'static str),
    /// Something else that comes out of default windows alone.
    Window,
    /// Elsewhere.
    Elsewhere,
}

/// Where the columns of a plan come from, in the order of its schema.
struct Origins<'p> {
    plan: &'p LogicalPlan,
    columns: Vec<Origin>,
}

impl<'p> Origins<'p> {
    /// Follows the columns from the scans up, and checks each node on the way, those of subqueries included.
    fn of(plan: &'p LogicalPlan, options: &ConfigOptions) -> Result<Self> {
        let width = plan.schema().fields().len();
        let inputs = plan.inputs().into_iter().map(|input| Origins::of(input, options)).collect::<Result<Vec<_>>>()?;
        plan.apply_subqueries(|subquery| Origins::of(subquery, options).map(|_| TreeNodeRecursion::Continue))?;
        check(plan, &inputs)?;
        let made = |expr: &Expr| together(&origins_in(expr, &inputs));
        let mut columns: Vec<Origin> = match plan {
            LogicalPlan::TableScan(_) => scanned(plan, options),
            LogicalPlan::Projection(projection) => projection.expr.iter().map(made).collect(),
            LogicalPlan::Filter(filter) => {
                let bounds = split_conjunction(&filter.predicate).into_iter().any(|conjunct| {
                    reaches_scan(plan, conjunct)
                        && origins_in(conjunct, &inputs).iter().any(|origin| matches!(origin, Origin::Time(_)))
                });
                // Its time is known when the query runs.
                if bounds { vec![Origin::Elsewhere; width] } else { inputs[0].columns.clone() }
            }
            LogicalPlan::Aggregate(aggregate) => {
                let groups = grouping_set_to_exprlist(&aggregate.group_expr).unwrap_or_default();
                let groups = groups.into_iter().map(made);
                // Behind the groups comes the number of the grouping set, where there are several.
                let ids = (width - aggregate.aggr_expr.len()).saturating_sub(groups.len());
                let ids = vec![Origin::Window; ids];
                groups.chain(ids).chain(aggregate.aggr_expr.iter().map(|expr| made_of(expr, &inputs))).collect()
            }
            LogicalPlan::Window(window) => {
                let passed = inputs[0].columns.iter().copied();
                passed.chain(window.window_expr.iter().map(|expr| made_of(expr, &inputs))).collect()
            }
            LogicalPlan::Join(Join { join_type, .. }) => match join_type {
                JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => inputs[1].columns.clone(),
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => inputs[0].columns.clone(),
                _ => inputs.iter().flat_map(|input| input.columns.iter().copied()).collect(),
            },
            LogicalPlan::Union(_) => (0..width)
                .map(|at| {
                    let column: Vec<Origin> =
                        inputs.iter().filter_map(|input| input.columns.get(at)).copied().collect();
                    together(&column)
                })
                .collect(),
            // Those that pass their rows on, and perhaps append to them.
            _ => inputs.first().map(|input| input.columns.clone()).unwrap_or_default(),
        };
        columns.resize(width, Origin::Elsewhere);
        Ok(Self { plan, columns })
    }
}

/// The columns of a scan.
fn scanned(plan: &LogicalPlan, options: &ConfigOptions) -> Vec<Origin> {
    let LogicalPlan::TableScan(scan) = plan else { return Vec::new() };
    let Some(table) = ApiTable::of(scan) else { return Vec::new() };
    let default = table.plan(options, &scan.filters).is_ok_and(|plan| plan.default_window || plan.is_open());
    if !default {
        return Vec::new();
    }
    let time = table.table().spec(table.connection().profile()).time.as_deref();
    let origin = |name: &str| if Some(name) == time { Origin::Time(table.table().name()) } else { Origin::Window };
    scan.projected_schema.fields().iter().map(|field| origin(field.name())).collect()
}

/// The origins of the columns whose values an expression looks at; whether there is one does not bound it.
fn origins_in(expr: &Expr, inputs: &[Origins<'_>]) -> Vec<Origin> {
    let find = |column: &Column| {
        inputs.iter().find_map(|input| {
            let at = input.plan.schema().maybe_index_of_column(column)?;
            input.columns.get(at).copied()
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

/// The origin of what an aggregate or a window makes of columns, or of all rows where it looks at none.
fn made_of(expr: &Expr, inputs: &[Origins<'_>]) -> Origin {
    let looked_at = origins_in(expr, inputs);
    let all = inputs.iter().flat_map(|input| input.columns.iter());
    let here = |origin: &Origin| *origin != Origin::Elsewhere;
    let window = if looked_at.is_empty() { all.clone().all(here) } else { looked_at.iter().all(here) };
    if window { Origin::Window } else { Origin::Elsewhere }
}

/// Whether it compares with an instant or a day that it names.
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

/// The origin of what is made of columns.
fn together(of: &[Origin]) -> Origin {
    let time = of.iter().find(|origin| matches!(origin, Origin::Time(_)));
    match time {
        Some(time) => *time,
        None if !of.is_empty() && of.iter().all(|origin| *origin == Origin::Window) => Origin::Window,
        None => Origin::Elsewhere,
    }
}

/// Whether a scan right below the filter takes the condition on: one that the table itself would, or one that waits for
/// an uncorrelated subquery.
fn reaches_scan(plan: &LogicalPlan, condition: &Expr) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let mut below = filter.input.as_ref();
    loop {
        below = match below {
            LogicalPlan::TableScan(_) => break,
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            LogicalPlan::Filter(filter) => filter.input.as_ref(),
            LogicalPlan::Projection(projection) => projection.input.as_ref(),
            _ => return false,
        };
    }
    let waits = condition.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_)))).unwrap_or(false);
    (waits || can_claim(condition)) && !condition.is_volatile()
}
