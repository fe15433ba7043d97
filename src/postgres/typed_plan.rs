//! One walk over the plan of a statement, for all changes of its types and values from the engine's to PostgreSQL's.
//!
//! The plan is changed from its tables upwards, before its types are coerced. At each node, changes follow each other in the
//! order in which they are given: each of them sees inputs that all of them have changed. None of them writes an operation that
//! concerns another one.
//!
//! Invariant: columns keep their names.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Union};

use crate::session::{is_of_sets, with_outer_types, with_types_of_sets};

/// Change of operations whose types or values differ between the engine and PostgreSQL.
pub(super) trait TypeChange {
    /// True for an operator that the change may concern, whatever the types of its inputs are.
    fn concerns_node(&self, node: &LogicalPlan) -> bool;

    /// True for an expression that the change may concern, whatever the types of its operands are.
    fn concerns_expression(&self, part: &Expr) -> bool;

    /// Changes an expression whose operands were changed. `schema`: the columns of all inputs.
    ///
    /// # Errors
    /// Operations that are not supported.
    fn expression(&self, expr: Expr, schema: &DFSchema, in_values: bool) -> Result<Transformed<Expr>>;

    /// Changes the inputs of an operator. Its schema is computed afterwards.
    ///
    /// # Errors
    /// Errors of the engine's types.
    fn with_inputs(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        Ok(plan)
    }

    /// Changes what is above an operator.
    ///
    /// # Errors
    /// Errors of the engine's types.
    fn with_node_above(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        Ok(plan)
    }
}

/// Returns the plan with all changes that concern it.
///
/// # Errors
/// Those of the changes.
pub(super) fn with_changes(plan: LogicalPlan, changes: &[&dyn TypeChange]) -> Result<LogicalPlan> {
    let found = Found::of(&plan, changes)?;
    let concerned: Vec<&dyn TypeChange> =
        changes.iter().zip(found.concerned).filter(|(_, concerned)| *concerned).map(|(change, _)| *change).collect();
    // A subquery has the new types of columns of the query around it once a walk has ended.
    let together = if found.outer { 1 } else { concerned.len().max(1) };
    concerned
        .chunks(together)
        .try_fold(plan, |plan, changes| with_outer_types(plan.rewrite_with_subqueries(&mut Walk { changes })?.data))
}

/// Findings in a plan before it is changed.
struct Found {
    /// For each change: true if the plan has an operation that it may concern.
    concerned: Vec<bool>,
    /// Set by a column of the query around a subquery.
    outer: bool,
}

impl Found {
    fn of(plan: &LogicalPlan, changes: &[&dyn TypeChange]) -> Result<Self> {
        let mut found = Self { concerned: vec![false; changes.len()], outer: false };
        plan.apply_with_subqueries(|node| {
            for (change, concerned) in changes.iter().zip(&mut found.concerned) {
                *concerned |= change.concerns_node(node);
            }
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    found.outer |= matches!(part, Expr::OuterReferenceColumn(..));
                    for (change, concerned) in changes.iter().zip(&mut found.concerned) {
                        *concerned = *concerned || change.concerns_expression(part);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(found)
    }
}

/// Changes of one walk.
struct Walk<'a> {
    changes: &'a [&'a dyn TypeChange],
}

impl TreeNodeRewriter for Walk<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        // Both terms of a recursive query have the types that the first one has.
        let recursive = matches!(plan, LogicalPlan::RecursiveQuery(_));
        let next = if recursive { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue };
        Ok(Transformed::new(plan, false, next))
    }

    fn f_up(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if matches!(plan, LogicalPlan::RecursiveQuery(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let in_values = matches!(plan, LogicalPlan::Values(_));
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = self.changes.iter().try_fold(Transformed::no(expr), |expr, change| {
                expr.transform_data(|expr| expr.transform_up(|part| change.expression(part, &schema, in_values)))
            })?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        let plan = self.changes.iter().try_fold(plan.data, |plan, change| change.with_inputs(plan))?;
        // Inputs have other types than before.
        let plan = match plan {
            LogicalPlan::Union(union) => LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?),
            LogicalPlan::Join(join) if is_of_sets(&join) => with_types_of_sets(join)?.recompute_schema()?,
            plan => plan.recompute_schema()?,
        };
        let plan = self.changes.iter().try_fold(plan, |plan, change| change.with_node_above(plan))?;
        Ok(Transformed::yes(plan))
    }
}
