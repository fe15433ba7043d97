//! Refuses conditions on the time of mentions that cannot reach their scan, while the default window is read.
//!
//! `… JOIN p ON m.published_at >= p.start` says when, and only the join can tell: the scan would read the profile's
//! default window, and what lies outside would be missing without a word. The same holds for filters that stay above an
//! outer join, and for dates made of the time and joined with a calendar. Comparisons of what comes out of such windows
//! among themselves are another matter, such as that of each mention with the latest one.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::error::{Error, ErrorKind, Place};
use crate::pushdown::can_claim;
use crate::table::ApiTable;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct RefuseUnbounded;

impl OptimizerRule for RefuseUnbounded {
    fn name(&self) -> &'static str {
        "savedsearch_unbounded"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let conditions: Vec<Vec<&Expr>> = match &plan {
            LogicalPlan::Join(Join { on, filter, .. }) => {
                let pairs = on.iter().map(|(left, right)| vec![left, right]);
                pairs.chain(filter.iter().flat_map(split_conjunction).map(|conjunct| vec![conjunct])).collect()
            }
            LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate).into_iter().map(|c| vec![c]).collect(),
            _ => return Ok(Transformed::no(plan)),
        };
        if conditions.is_empty() {
            return Ok(Transformed::no(plan));
        }
        let inputs: Vec<Origins> = plan.inputs().into_iter().map(|input| Origins::of(input, config)).collect();
        for sides in conditions {
            let reaches = |side: &&Expr| reaches_scan(&plan, side);
            if sides.iter().all(reaches)
                || sides.iter().any(|side| matches!(side, Expr::IsNull(_) | Expr::IsNotNull(_)))
            {
                continue;
            }
            let found: Vec<Origin> = sides.iter().flat_map(|side| origins_in(side, &inputs)).collect();
            let time = found.iter().find_map(|origin| match origin {
                Origin::Time(table) => Some(*table),
                _ => None,
            });
            let among_themselves = found.len() > 1 && !found.contains(&Origin::Elsewhere);
            if let Some(table) = time.filter(|_| !among_themselves) {
                let said = sides.iter().map(|side| side.human_display().to_string()).collect::<Vec<_>>().join(" = ");
                let message = format!("`{said}` does not reach the scan, and nothing else bounds the time to read");
                let place = Place { table: Some(table.to_owned()), ..Place::default() };
                return Err(Error::new(ErrorKind::Query, message)
                    .advice(
                        "add a range of the time with literals or a subquery, or duration = '…', to the table itself",
                    )
                    .at(place)
                    .into());
            }
        }
        Ok(Transformed::no(plan))
    }
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
    fn of(plan: &'p LogicalPlan, config: &dyn OptimizerConfig) -> Self {
        let width = plan.schema().fields().len();
        let inputs: Vec<Origins> = plan.inputs().into_iter().map(|input| Origins::of(input, config)).collect();
        let made = |expr: &Expr| together(&origins_in(expr, &inputs));
        let mut columns: Vec<Origin> = match plan {
            LogicalPlan::TableScan(_) => scanned(plan, config),
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
                let all = inputs[0].columns.iter().all(|origin| *origin != Origin::Elsewhere);
                let numbers = if all { Origin::Window } else { Origin::Elsewhere };
                let groups = aggregate.group_expr.iter().map(made);
                groups.chain(aggregate.aggr_expr.iter().map(|_| numbers)).collect()
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
        Self { plan, columns }
    }
}

/// The columns of a scan.
fn scanned(plan: &LogicalPlan, config: &dyn OptimizerConfig) -> Vec<Origin> {
    let LogicalPlan::TableScan(scan) = plan else { return Vec::new() };
    let Ok(provider) = source_as_provider(&scan.source) else { return Vec::new() };
    let Some(table) = provider.downcast_ref::<ApiTable>() else { return Vec::new() };
    let default = table.plan(&config.options(), &scan.filters).is_ok_and(|plan| plan.default_window || plan.is_open());
    if !default {
        return Vec::new();
    }
    let time = table.table().spec(table.connection().profile()).time.as_deref();
    let origin = |name: &str| if Some(name) == time { Origin::Time(table.table().name()) } else { Origin::Window };
    scan.projected_schema.fields().iter().map(|field| origin(field.name())).collect()
}

/// The origins of the columns that an expression looks at.
fn origins_in(expr: &Expr, inputs: &[Origins<'_>]) -> Vec<Origin> {
    let find = |column: &datafusion::common::Column| {
        inputs.iter().find_map(|input| {
            let at = input.plan.schema().maybe_index_of_column(column)?;
            input.columns.get(at).copied()
        })
    };
    expr.column_refs().into_iter().map(|column| find(column).unwrap_or(Origin::Elsewhere)).collect()
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
