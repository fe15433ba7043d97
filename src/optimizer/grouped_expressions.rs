//! Expressions of ROLLUP, CUBE and GROUPING SETS, and those of GROUP BY with random values, computed below the aggregate.
//!
//! ```text
//! Aggregate: ROLLUP (k SIMILAR TO 'a')        Aggregate: ROLLUP ("k SIMILAR TO 'a'")
//!   input                                ─▶     Projection: input's columns, k SIMILAR TO 'a'
//!                                                 input
//! ```
//!
//! A rule that changes an expression keeps its name by an alias. The engine gives the alias to the whole of the sets, and then
//! does not recognize them: it refuses the aggregate, or loses the row of an empty input. Columns need no change. Subqueries
//! are supported in a projection only.
//!
//! A condition on a group, such as that of `random() < 0.5`, is pushed below the aggregate, where it has another value (#25415). None
//! is pushed below the projection that computes it.
//!
//! Invariant: the rows stay the same. A projection adds a column, but no rows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::all_columns;

/// See the module's documentation. Runs before the rules that change expressions.
#[derive(Debug)]
pub(super) struct GroupedExpressions;

impl AnalyzerRule for GroupedExpressions {
    fn name(&self) -> &'static str {
        "savedsearch_grouped_expressions"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        grouped_expressions(plan)
    }
}

/// Returns the plan with such expressions in projections. Sessions that plan statements call it before they move subqueries; the
/// rule does the same for plans that are built in another way.
///
/// # Errors
/// Those of building a plan.
pub(crate) fn grouped_expressions(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Aggregate(aggregate) => Ok(match of_columns(aggregate)? {
            Some(aggregate) => Transformed::yes(LogicalPlan::Aggregate(aggregate)),
            None => Transformed::no(node),
        }),
        _ => Ok(Transformed::no(node)),
    })
    .data()
}

/// The aggregate with sets of columns; `None` if it needs no change.
fn of_columns(aggregate: &Aggregate) -> Result<Option<Aggregate>> {
    let groups: Vec<&Expr> = match &aggregate.group_expr[..] {
        [Expr::GroupingSet(sets)] => sets.distinct_expr(),
        exprs => exprs.iter().filter(|expr| expr.is_volatile()).collect(),
    };
    let schema = aggregate.input.schema();
    // A cast of a column has the name of the column, and stays.
    let is_taken = |column: &Column| schema.columns().iter().any(|known| known.flat_name() == column.flat_name());
    let computed = groups.into_iter().filter(|expr| !matches!(expr, Expr::Column(_)));
    let computed = computed.map(|expr| {
        let (relation, name) = expr.qualified_name();
        (expr.clone(), Column::new(relation, name))
    });
    let computed: Vec<(Expr, Column)> = computed.filter(|(_, column)| !is_taken(column)).collect();
    let names: HashSet<String> = computed.iter().map(|(_, column)| column.flat_name()).collect();
    if computed.is_empty() || names.len() < computed.len() {
        return Ok(None);
    }
    let column_of = |expr: &Expr| {
        let known = computed.iter().find(|(known, _)| known == expr);
        known.map_or_else(|| expr.clone(), |(_, column)| Expr::Column(column.clone()))
    };
    let columns_of = |exprs: &[Expr]| exprs.iter().map(column_of).collect::<Vec<_>>();
    let groups = match &aggregate.group_expr[..] {
        [Expr::GroupingSet(sets)] => vec![Expr::GroupingSet(match sets {
            GroupingSet::Rollup(exprs) => GroupingSet::Rollup(columns_of(exprs)),
            GroupingSet::Cube(exprs) => GroupingSet::Cube(columns_of(exprs)),
            GroupingSet::GroupingSets(sets) => {
                GroupingSet::GroupingSets(sets.iter().map(|set| columns_of(set)).collect())
            }
        })],
        exprs => columns_of(exprs),
    };
    let names = NamePreserver::new_for_projection();
    let results = aggregate.aggr_expr.iter().map(|result| {
        let name = names.save(result);
        let result = result.clone().transform_up(|part| match part {
            Expr::AggregateFunction(mut call) if call.func.name() == "grouping" => {
                call.params.args = columns_of(&call.params.args);
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            part => Ok(Transformed::no(part)),
        })?;
        Ok(result.update_data(|result| name.restore(result)).data)
    });
    let results = results.collect::<Result<Vec<_>>>()?;
    let added =
        computed.iter().map(|(expr, column)| expr.clone().alias_qualified(column.relation.clone(), &column.name));
    let input = LogicalPlanBuilder::from(Arc::clone(&aggregate.input));
    let input = input.project(all_columns(schema).into_iter().chain(added))?.build()?;
    Aggregate::try_new(Arc::new(input), groups, results).map(Some)
}
