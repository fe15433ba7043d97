//! Keeps conditions above an aggregate that has a row even for an empty input: an aggregate without GROUP BY, or by grouping
//! sets of which one is empty.
//!
//! The engine pushes a condition that refers to no column below it, as if its value belonged to a group:
//! `SELECT count(*) FROM mentions HAVING (SELECT …) > 5` then returns a row with the count 0, instead of no row. Other
//! conditions lose their columns when they are simplified, or when they are pushed through a projection of literals: `… FROM
//! (SELECT 'a' AS w, count(*) FROM mentions UNION ALL …) WHERE w = 'b'`. Each such condition, and each such literal, is tied
//! to a result of the aggregate ([`Opaque`]). That costs nothing, because it is evaluated for a few rows.
//!
//! A condition of a join that is never true is pushed to both of its sides, and one without columns below GROUP BY and DISTINCT ON.
//! Such an aggregate below one of these gets a limit, which conditions do not pass.

use std::collections::BTreeSet;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::Opaque;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct AggregateFilters;

impl AnalyzerRule for AggregateFilters {
    fn name(&self) -> &str {
        "savedsearch_aggregate_filters"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(limited).data()?;
        match plan {
            // No condition is above the SELECT list of the statement.
            plan @ LogicalPlan::Projection(_) => {
                let plan = plan.map_subqueries(|plan| plan.transform_up_with_subqueries(tied))?.data;
                plan.map_children(|input| input.transform_up_with_subqueries(tied)).data()
            }
            plan => plan.transform_up_with_subqueries(tied).data(),
        }
    }
}

fn tied(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let input = match &plan {
        LogicalPlan::Filter(filter) => &filter.input,
        LogicalPlan::Projection(projection) => &projection.input,
        _ => return Ok(Transformed::no(plan)),
    };
    let Some(Results { columns, of_union, .. }) = results_of_aggregates(input) else {
        return Ok(Transformed::no(plan));
    };
    // The last ones are no keys if others are visible.
    let columns: BTreeSet<usize> = columns.iter().filter_map(|columns| columns.last().copied()).collect();
    let results = columns.into_iter().map(|at| Expr::Column(Column::from(input.schema().qualified_field(at))));
    let results: Vec<Expr> = results.collect();
    let tie = |expr: Expr| match of_union && !expr.column_refs().is_empty() {
        // It reaches the scans of other branches.
        true => expr,
        false => Opaque::of([vec![expr], results.clone()].concat()),
    };
    let plan = match plan {
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            // The engine pushes none below grouping sets, unless it loses its columns.
            let conjuncts = split_conjunction_owned(predicate).into_iter();
            let conjuncts = conjuncts.map(|conjunct| if is_not_in(&conjunct) { conjunct } else { tie(conjunct) });
            LogicalPlan::Filter(Filter::try_new(conjunction(conjuncts).unwrap_or_else(|| lit(true)), input)?)
        }
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let names = NamePreserver::new_for_projection();
            let exprs = expr.into_iter().map(|expr| {
                let name = names.save(&expr);
                match expr.column_refs().is_empty() {
                    true => name.restore(tie(expr.unalias())),
                    false => expr,
                }
            });
            LogicalPlan::Projection(Projection::try_new(exprs.collect(), input)?)
        }
        other => return Ok(Transformed::no(other)),
    };
    Ok(Transformed::yes(plan))
}

/// True for NOT IN with a subquery: the engine makes a join of it, which it does not push down, and which is right for NULL only as a
/// conjunct of its own.
fn is_not_in(condition: &Expr) -> bool {
    match condition {
        Expr::InSubquery(condition) => condition.negated,
        Expr::Not(inner) => matches!(inner.as_ref(), Expr::InSubquery(condition) if !condition.negated),
        _ => false,
    }
}

/// A join, GROUP BY or DISTINCT ON with limits above the aggregates below it that have a row for an empty input.
fn limited(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Join(_) | LogicalPlan::Distinct(Distinct::On(_)) => {}
        LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty() => {}
        _ => return Ok(Transformed::no(plan)),
    }
    plan.map_children(|side| {
        side.transform_down(|node| match node {
            // It is limited, or decorrelated with the aggregate as it is.
            LogicalPlan::Limit(_) | LogicalPlan::Subquery(_) => {
                Ok(Transformed::new(node, false, TreeNodeRecursion::Jump))
            }
            LogicalPlan::Aggregate(_) => {
                let limit = match results_of_aggregates(&node) {
                    Some(Results { keys: false, .. }) => 1,
                    Some(_) => usize::MAX >> 1,
                    None => return Ok(Transformed::no(node)),
                };
                let limited = LogicalPlanBuilder::from(node).limit(0, Some(limit))?.build()?;
                Ok(Transformed::new(limited, true, TreeNodeRecursion::Jump))
            }
            node => Ok(Transformed::no(node)),
        })
    })
}

/// Results of aggregates that have a row for an empty input.
struct Results {
    /// Positions of the columns of each. Keys come first.
    columns: Vec<Vec<usize>>,
    /// Set if they have keys.
    keys: bool,
    /// Set if there are other rows as well.
    of_union: bool,
}

/// The results of such aggregates below a node; `None` if there is no such aggregate, or if none of its columns is visible.
fn results_of_aggregates(plan: &LogicalPlan) -> Option<Results> {
    match plan {
        LogicalPlan::Aggregate(Aggregate { group_expr, schema, .. }) => {
            let keys = !group_expr.is_empty();
            let one_row = !keys || matches!(group_expr[..], [Expr::GroupingSet(_)]);
            let columns = (0..schema.fields().len()).collect();
            one_row.then_some(Results { columns: vec![columns], keys, of_union: false })
        }
        LogicalPlan::SubqueryAlias(alias) => results_of_aggregates(&alias.input),
        LogicalPlan::Filter(filter) => results_of_aggregates(&filter.input),
        LogicalPlan::Sort(sort) => results_of_aggregates(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => results_of_aggregates(input),
        LogicalPlan::Window(window) => results_of_aggregates(&window.input),
        LogicalPlan::Projection(projection) => {
            let below = results_of_aggregates(&projection.input)?;
            let shown = |below: usize| {
                let column = Column::from(projection.input.schema().qualified_field(below));
                projection.expr.iter().position(|expr| expr.column_refs().contains(&column))
            };
            let shown = |columns: Vec<usize>| columns.into_iter().filter_map(shown).collect();
            let columns = below.columns.into_iter().map(shown).filter(|columns: &Vec<usize>| !columns.is_empty());
            let columns: Vec<Vec<usize>> = columns.collect();
            (!columns.is_empty()).then_some(Results { columns, ..below })
        }
        LogicalPlan::Union(union) => {
            let branches: Vec<Results> =
                union.inputs.iter().filter_map(|branch| results_of_aggregates(branch)).collect();
            let keys = branches.iter().any(|branch| branch.keys);
            let columns: Vec<Vec<usize>> = branches.into_iter().flat_map(|branch| branch.columns).collect();
            (!columns.is_empty()).then_some(Results { columns, keys, of_union: true })
        }
        _ => None,
    }
}
