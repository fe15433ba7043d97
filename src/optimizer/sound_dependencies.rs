//! Corrects the functional dependencies that the engine derives for aggregates.
//!
//! In `SELECT s.aid, m.language … GROUP BY s.aid, m.language`, where `aid` is the key of one of the joined tables, the engine takes
//! `aid` for a key of the result: it determines the other columns of its own table, and of the aggregate only those. Rules that
//! rely on it drop keys of ORDER BY and GROUP BY, DISTINCT, and joins, and the rows are wrong.
//!
//! The engine derives dependencies again whenever a rule builds a node. So this rule runs before each of the engine's rules that
//! read them ([`READERS`]).
//!
//! Invariant: an aggregate has the dependency of its own keys, and those among its keys that its input has.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Dependency, FunctionalDependence, FunctionalDependencies, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Rules of the engine that read functional dependencies. A test has the engine's full list.
pub(super) const READERS: &[&str] =
    &["eliminate_duplicated_expr", "eliminate_join", "optimize_projections", "replace_distinct_aggregate"];

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct SoundDependencies;

impl OptimizerRule for SoundDependencies {
    fn name(&self) -> &str {
        "savedsearch_sound_dependencies"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut sound = true;
        plan.apply_with_subqueries(|node| {
            sound &= !matches!(node, LogicalPlan::Aggregate(aggregate) if !is_sound(aggregate));
            Ok(if sound { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        if sound {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(mut aggregate) => {
                let schema = aggregate.schema.as_ref().clone();
                aggregate.schema = Arc::new(schema.with_functional_dependencies(dependencies(&aggregate))?);
                Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
            }
            // These have the dependencies of their inputs.
            LogicalPlan::Projection(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Unnest(_) => node.recompute_schema().map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        })
    }
}

/// True if each dependency of the aggregate follows from those that it should have.
fn is_sound(aggregate: &Aggregate) -> bool {
    let right = dependencies(aggregate);
    aggregate.schema.functional_dependencies().iter().all(|found| {
        right.iter().any(|right| {
            right.source_indices.iter().all(|column| found.source_indices.contains(column))
                && found.target_indices.iter().all(|column| right.target_indices.contains(column))
                && (found.mode == Dependency::Multi || right.mode == Dependency::Single)
        })
    })
}

/// The dependencies of an aggregate, by those of its input.
fn dependencies(aggregate: &Aggregate) -> FunctionalDependencies {
    let keys = &aggregate.group_expr;
    if keys.is_empty() || matches!(keys[..], [Expr::GroupingSet(_)]) {
        return FunctionalDependencies::empty();
    }
    let fields = aggregate.schema.fields();
    let nullable = fields.iter().take(keys.len()).any(|field| field.is_nullable());
    let all = FunctionalDependence::new((0..keys.len()).collect(), (0..fields.len()).collect(), nullable);
    let mut found = vec![all.with_mode(Dependency::Single)];
    let input = aggregate.input.schema();
    let columns: Vec<Option<usize>> = keys
        .iter()
        .map(|key| match key {
            Expr::Column(column) => input.maybe_index_of_column(column),
            _ => None,
        })
        .collect();
    for dependence in input.functional_dependencies().iter() {
        let key_of = |column: &usize| columns.iter().position(|of| of.as_ref() == Some(column));
        let source: Option<Vec<usize>> = dependence.source_indices.iter().map(key_of).collect();
        let Some(source) = source.filter(|source| !source.is_empty()) else { continue };
        let determined: Vec<usize> = (0..keys.len())
            .filter(|key| columns[*key].is_some_and(|column| dependence.target_indices.contains(&column)))
            .collect();
        // With all other keys, it is a key of the result as well.
        let is_key = (0..keys.len()).all(|key| source.contains(&key) || determined.contains(&key));
        let (targets, mode) = match is_key {
            true => ((0..fields.len()).collect(), Dependency::Single),
            false => (determined, Dependency::Multi),
        };
        found.push(FunctionalDependence::new(source, targets, dependence.nullable).with_mode(mode));
    }
    FunctionalDependencies::new(found)
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::Optimizer;

    use super::*;

    /// The engine's full list: a new or renamed rule fails here, so that a developer determines whether it reads dependencies.
    #[test]
    fn every_rule_of_the_engine_is_known() {
        let rules: Vec<String> = Optimizer::new().rules.iter().map(|rule| rule.name().to_owned()).collect();
        let others = [
            "common_sub_expression_eliminate",
            "decorrelate_lateral_join",
            "decorrelate_predicate_subquery",
            "eliminate_cross_join",
            "eliminate_filter",
            "eliminate_group_by_constant",
            "eliminate_limit",
            "eliminate_outer_join",
            "extract_equijoin_predicate",
            "extract_leaf_expressions",
            "filter_null_join_keys",
            "optimize_unions",
            "propagate_empty_relation",
            "push_down_filter",
            "push_down_leaf_projections",
            "push_down_limit",
            "rewrite_set_comparison",
            "scalar_subquery_to_join",
            "simplify_expressions",
            "single_distinct_aggregation_to_group_by",
            "unions_to_filter",
        ];
        let known: Vec<&str> = others.into_iter().chain(READERS.iter().copied()).collect();
        let unknown: Vec<_> = rules.iter().filter(|rule| !known.contains(&rule.as_str())).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(READERS.iter().all(|reader| rules.iter().any(|rule| rule == reader)), "{rules:?}");
    }
}
