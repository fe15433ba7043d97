//! Sort keys that occur twice, removed: the engine panics at `DISTINCT ON (a) … ORDER BY a, a, b` and `first_value(x ORDER BY b, b)`,
//! because it removes them itself in one of two places.
//!
//! A key after an equal one has no effect, in either direction. The same is true of all keys of an aggregate function whose result
//! does not depend on the order of its values; the engine panics at `avg(x ORDER BY y)` with GROUP BY (#25401).

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};

use super::expressions::rewrite_expressions;

/// Aggregate functions whose result does not depend on the order of their values. For others, the keys stay. A test has the
/// engine's full list.
const UNORDERED: &[&str] = &[
    "approx_distinct",
    "approx_median",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "max",
    "median",
    "min",
    "nested_max",
    "nested_min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// See the module's documentation. Runs in analysis, and again once expressions are simplified, when more keys are equal.
#[derive(Debug)]
pub(super) struct SortKeys;

impl AnalyzerRule for SortKeys {
    fn name(&self) -> &str {
        "savedsearch_sort_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, _| Ok(in_expression(expr)), |plan| Ok(in_node(plan)))
    }
}

impl OptimizerRule for SortKeys {
    fn name(&self) -> &str {
        "savedsearch_sort_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|expr| Ok(in_expression(expr)))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })
    }
}

fn in_expression(mut expr: Expr) -> Transformed<Expr> {
    let changed = match &mut expr {
        Expr::AggregateFunction(function) if UNORDERED.contains(&function.func.name()) => {
            !std::mem::take(&mut function.params.order_by).is_empty()
        }
        Expr::AggregateFunction(function) => without_repeated(&mut function.params.order_by, |key| &key.expr),
        Expr::WindowFunction(function) => {
            let keys = without_repeated(&mut function.params.order_by, |key| &key.expr);
            without_repeated(&mut function.params.partition_by, |key| key) || keys
        }
        _ => false,
    };
    Transformed::new_transformed(expr, changed)
}

fn in_node(mut plan: LogicalPlan) -> Transformed<LogicalPlan> {
    let changed = match &mut plan {
        LogicalPlan::Distinct(Distinct::On(on)) => {
            let keys = on.sort_expr.as_mut().is_some_and(|keys| without_repeated(keys, |key| &key.expr));
            without_repeated(&mut on.on_expr, |key| key) || keys
        }
        _ => false,
    };
    Transformed::new_transformed(plan, changed)
}

/// Removes keys whose expression occurred before. Returns true if there was one. Names do not matter: the engine gives a common
/// part of several expressions the name of each.
fn without_repeated<K>(keys: &mut Vec<K>, expr: impl Fn(&K) -> &Expr) -> bool {
    let before = keys.len();
    let mut seen: Vec<Expr> = Vec::new();
    keys.retain(|key| {
        let key = expr(key).clone().unalias_nested().data;
        let new = !seen.contains(&key);
        if new {
            seen.push(key);
        }
        new
    });
    keys.len() < before
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::functions;

    /// A new or renamed function fails here, so that a developer determines if an order changes its result.
    #[test]
    fn every_aggregate_depends_on_an_order_or_not() {
        let context = SessionContext::new();
        functions::aggregates().into_iter().for_each(|function| context.register_udaf(function.as_ref().clone()));
        let state = context.state();
        let known = state.aggregate_functions().values().map(|function| function.name()).collect::<BTreeSet<_>>();
        let unordered: BTreeSet<&str> = UNORDERED.iter().copied().collect();
        assert_eq!(unordered.difference(&known).count(), 0, "{unordered:?}");
        let ordered: Vec<&str> = known.difference(&unordered).copied().collect();
        let expected = [
            "any_value",
            "approx_percentile_cont",
            "approx_percentile_cont_with_weight",
            "array_agg",
            "first_value",
            "grouping",
            "last_value",
            "nth_value",
            "percentile_cont",
            "string_agg",
        ];
        assert_eq!(ordered, expected);
    }
}
