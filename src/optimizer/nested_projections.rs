//! Projections with the same expressions, one above the other, told apart.
//!
//! ```text
//! Projection: i + 1 AS i              Projection: __derived_0 + 1 AS i
//!   Projection: i + 1 AS i     ─▶       Projection: i + 1 AS __derived_0
//!     input                               input
//! ```
//!
//! The engine takes two such projections for one: `SELECT i + 1 AS i FROM (SELECT i + 1 AS i FROM …)` adds one. They differ if the
//! lower one has no column that is named as a column below it.
//!
//! Invariant: the rows and their names stay the same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// See the module's documentation. Runs before each rule of the engine that merges projections.
#[derive(Debug)]
pub(super) struct NestedProjections;

impl NestedProjections {
    /// The rule of the engine that merges projections.
    pub(super) const INNER: &'static str = "optimize_projections";
}

impl OptimizerRule for NestedProjections {
    fn name(&self) -> &'static str {
        "savedsearch_nested_projections"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Projection(upper) = &plan else { return Ok(Transformed::no(plan)) };
        let LogicalPlan::Projection(lower) = upper.input.as_ref() else { return Ok(Transformed::no(plan)) };
        let renamed = new_names(lower);
        // Columns in subqueries would have to be renamed as well.
        if renamed.is_empty() || upper.expr.iter().any(is_correlated) {
            return Ok(Transformed::no(plan));
        }
        let exprs = lower.schema.columns().into_iter().zip(&lower.expr).map(|(column, expr)| {
            match (renamed.get(&column), expr.clone()) {
                // With its metadata.
                (Some(name), Expr::Alias(alias)) => Expr::Alias(Alias { relation: None, name: name.clone(), ..alias }),
                (Some(name), expr) => expr.alias(name),
                (None, expr) => expr,
            }
        });
        let below = Projection::try_new(exprs.collect(), Arc::clone(&lower.input))?;
        let names = NamePreserver::new(&plan);
        let exprs = upper.expr.iter().map(|expr| {
            let name = names.save(expr);
            let expr = expr.clone().transform_up(|part| {
                Ok(match part {
                    Expr::Column(column) => match renamed.get(&column) {
                        Some(name) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
                        None => Transformed::no(Expr::Column(column)),
                    },
                    other => Transformed::no(other),
                })
            })?;
            Ok(name.restore(expr.data))
        });
        let below = Arc::new(LogicalPlan::Projection(below));
        let above = Projection::try_new_with_schema(exprs.collect::<Result<_>>()?, below, Arc::clone(&upper.schema))?;
        Ok(Transformed::yes(LogicalPlan::Projection(above)))
    }
}

/// New names of the columns that are named as another one that the projection reads.
fn new_names(projection: &Projection) -> HashMap<Column, String> {
    let read: HashSet<&Column> = projection.expr.iter().flat_map(Expr::column_refs).collect();
    let taken = |name: &str| projection.input.schema().iter().any(|(_, field)| field.name() == name);
    let columns = projection.schema.columns().into_iter().zip(&projection.expr).enumerate();
    let repeated = columns
        .filter(|(_, (column, expr))| read.contains(column) && !matches!(expr, Expr::Column(same) if same == column));
    repeated
        .map(|(at, (column, _))| {
            let mut name = format!("__derived_{at}");
            while taken(&name) {
                name.push('_');
            }
            (column, name)
        })
        .collect()
}

/// True if an expression has a subquery that refers to columns outside of it.
fn is_correlated(expr: &Expr) -> bool {
    let mut found = false;
    let walked = expr.apply(|part| {
        let subquery = match part {
            Expr::Exists(exists) => Some(&exists.subquery),
            Expr::InSubquery(in_subquery) => Some(&in_subquery.subquery),
            Expr::ScalarSubquery(subquery) => Some(subquery),
            Expr::SetComparison(comparison) => Some(&comparison.subquery),
            _ => None,
        };
        found |= subquery.is_some_and(|subquery| !subquery.outer_ref_columns.is_empty());
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}
