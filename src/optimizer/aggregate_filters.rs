//! Keeps conditions above an aggregate without GROUP BY.
//!
//! Such an aggregate has a row for an empty input too. The engine pushes a condition that refers to no column below it, as if its
//! value belonged to a group: `SELECT count(*) FROM mentions HAVING (SELECT …) > 5` then counts nothing and has a row, instead of
//! none. Other conditions lose their columns when they are simplified. Each is tied to a result of the aggregate ([`Opaque`]); that
//! costs nothing, because it is evaluated for a single row.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, lit};
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
        plan.transform_up_with_subqueries(|plan| {
            let LogicalPlan::Filter(Filter { predicate, input, .. }) = &plan else { return Ok(Transformed::no(plan)) };
            let Some((result, keys)) = result_of_aggregate(input) else { return Ok(Transformed::no(plan)) };
            let result = Expr::Column(Column::from(input.schema().qualified_field(result)));
            let conjuncts = split_conjunction_owned(predicate.clone()).into_iter();
            let conjuncts = conjuncts.map(|conjunct| match !keys || conjunct.column_refs().is_empty() {
                true => Opaque::of(vec![conjunct, result.clone()]),
                false => conjunct,
            });
            let predicate = conjunction(conjuncts).unwrap_or_else(|| lit(true));
            let input = Arc::clone(input);
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
        })
        .data()
    }
}

/// Position of a column that an aggregate without GROUP BY computes, or one by grouping sets, and whether it has keys; `None` if
/// there is no such aggregate, or if none of its results is visible.
fn result_of_aggregate(plan: &LogicalPlan) -> Option<(usize, bool)> {
    match plan {
        LogicalPlan::Aggregate(Aggregate { group_expr, aggr_expr, schema, .. }) => {
            let keys = !group_expr.is_empty();
            let one_row = !keys || matches!(group_expr[..], [Expr::GroupingSet(_)]);
            (one_row && !aggr_expr.is_empty()).then(|| (schema.fields().len() - aggr_expr.len(), keys))
        }
        LogicalPlan::SubqueryAlias(alias) => result_of_aggregate(&alias.input),
        LogicalPlan::Filter(filter) => result_of_aggregate(&filter.input),
        LogicalPlan::Sort(sort) => result_of_aggregate(&sort.input),
        LogicalPlan::Projection(projection) => {
            let (below, keys) = result_of_aggregate(&projection.input)?;
            let column = Column::from(projection.input.schema().qualified_field(below));
            let position = projection.expr.iter().position(|expr| expr.column_refs().contains(&column))?;
            Some((position, keys))
        }
        _ => None,
    }
}
