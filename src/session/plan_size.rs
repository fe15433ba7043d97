//! Limits on the size of plans and on the time of planning.
//!
//! ```text
//! analyzer rule   ─▶ size of the plan
//! optimizer rule  ─▶ deadline ─▶ simplification: predicted size ─▶ rule ─▶ size of what it wrote
//! ```
//!
//! A rule can double an expression with each node that it visits: filters are copied into projections, and `coalesce(a, b)`
//! becomes `CASE WHEN a IS NOT NULL THEN a ELSE b END`. So the size is counted after each node that a rule has rewritten,
//! not once after all rules. The simplifier works on whole expressions, and would double a nested expression many times
//! before it returns, so the size of its result is predicted (`growth`).
//!
//! Invariant: a plan within the limits is not changed, and the plan of a PREPARE in SQL is not optimized before it is analyzed.

mod growth;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use savedsearch_clock::Clock;

use self::growth::{check_growth, check_visits};
use crate::error::{Error, ErrorKind};
use crate::memory::{self, Ceiling};
use crate::optimizer::missing_rule;

/// Bytes of a plan, as estimated by [`bytes_of_plan`].
const BYTES: usize = 64 << 20;
/// Bytes that a rule may take while it rewrites a plan, such as those of constants that it computes. The engine copies constants
/// several times, without asking for memory, where it compares with a list of them.
const BYTES_OF_RULE: i64 = 32 << 20;
/// Seconds from the start of a statement in which its plan must be optimized.
const SECONDS: i64 = 300;
/// Estimated bytes of an operator.
const OPERATOR: usize = 1 << 10;
/// Estimated bytes of an expression.
const EXPRESSION: usize = 256;

/// Name of the engine's rule whose result is predicted.
const SIMPLIFICATION: &str = "simplify_expressions";

/// Applies the limits to all rules of a session.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the engine's simplification is not among them.
pub(super) fn with_plan_limits(mut builder: SessionStateBuilder) -> crate::error::Result<SessionStateBuilder> {
    let analyzer = &mut builder.analyzer().get_or_insert_default().rules;
    for rule in analyzer.iter_mut() {
        *rule = Arc::new(Limited(Arc::clone(rule)));
    }
    let rules = builder.optimizer().take().unwrap_or_default().rules;
    if !rules.iter().any(|rule| rule.name() == SIMPLIFICATION) {
        return Err(missing_rule(SIMPLIFICATION));
    }
    let limited = rules.into_iter().map(|rule| -> Arc<dyn OptimizerRule + Send + Sync> { Arc::new(Limited(rule)) });
    Ok(builder.with_optimizer_rules(limited.collect()))
}

/// A rule whose result is measured.
#[derive(Debug)]
struct Limited<R: ?Sized>(Arc<R>);

impl AnalyzerRule for Limited<dyn AnalyzerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        // A rule copies what it rewrites.
        memory::room_for_copies(0)?;
        plan.apply_with_subqueries(|node| check_visits(node).map(|()| TreeNodeRecursion::Continue))?;
        let _ceiling = Ceiling::of(BYTES_OF_RULE);
        let plan = self.0.analyze(plan, config)?;
        check_bytes(bytes_of(&plan, usize::MAX))?;
        Ok(plan)
    }
}

impl OptimizerRule for Limited<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        /// Levels of operators that a rule may write at once.
        const LEVELS: usize = 4;
        // PREPARE optimizes a plan that was not analyzed, so that the engine's rules would meet what rules of the analyzer correct.
        // The plan is analyzed and optimized when it is executed.
        if config.query_execution_start_time().is_none() && config.function_registry().is_none() {
            return Ok(Transformed::no(plan));
        }
        if let Some(start) = config.query_execution_start_time()
            && (Clock::system().now() - start).num_seconds() > SECONDS
        {
            let message = format!("planning took more than {SECONDS} s");
            return Err(Error::new(ErrorKind::Timeout, message).advice("simplify the query").lasting().into());
        }
        memory::room_for_copies(0)?;
        let _ceiling = Ceiling::of(BYTES_OF_RULE);
        if self.0.name() == SIMPLIFICATION {
            check_growth(&plan)?;
            check_visits(&plan)?;
        }
        let rewritten = self.0.rewrite(plan, config)?;
        if rewritten.transformed {
            // The optimizer visits the operators further down by itself.
            let levels = if self.0.apply_order().is_some() { LEVELS } else { usize::MAX };
            check_bytes(bytes_of(&rewritten.data, levels))?;
        }
        Ok(rewritten)
    }
}

fn check_bytes(bytes: usize) -> Result<()> {
    if bytes <= BYTES {
        return Ok(());
    }
    let message = format!("query plan too large: more than {} MiB", BYTES >> 20);
    Err(too_large(message, "split the query with a temporary table"))
}

pub(super) fn too_large(message: String, advice: &str) -> DataFusionError {
    Error::new(ErrorKind::TooLarge, message).advice(advice).into()
}

/// Estimates the memory of a plan in bytes: its operators, expressions and literals.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers keep plans"))]
pub(crate) fn bytes_of_plan(plan: &LogicalPlan) -> usize {
    let mut bytes = 0;
    // The closure never fails.
    let _ = plan.apply_with_subqueries(|node| {
        bytes += own_bytes(node, usize::MAX);
        Ok(TreeNodeRecursion::Continue)
    });
    bytes
}

/// Estimates the memory of a plan with values for its parameters, `$1` first. A value is copied to each place of its parameter.
///
/// # Errors
/// [`ErrorKind::TooLarge`] for a plan that would be too large.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers bind values"))]
pub(crate) fn bytes_of_bound(plan: &LogicalPlan, values: &[ScalarValue]) -> Result<usize> {
    let mut bytes = bytes_of_plan(plan);
    let value_of = |name: &str| values.get(name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?);
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Placeholder(placeholder) = part
                    && let Some(value) = value_of(&placeholder.id)
                {
                    bytes = bytes.saturating_add(value.size());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    check_bytes(bytes)?;
    Ok(bytes)
}

/// As [`bytes_of_plan`], down to some levels of operators and only as far as [`BYTES`].
fn bytes_of(plan: &LogicalPlan, levels: usize) -> usize {
    let (mut open, mut bytes) = (vec![(plan, 0)], 0);
    while let Some((node, level)) = open.pop()
        && bytes <= BYTES
    {
        bytes += own_bytes(node, BYTES - bytes.min(BYTES));
        // The closure never fails.
        let _ = node.apply_subqueries(|subquery| {
            bytes += bytes_of(subquery, levels);
            Ok(TreeNodeRecursion::Continue)
        });
        if level < levels {
            open.extend(node.inputs().into_iter().map(|input| (input, level + 1)));
        }
    }
    bytes
}

/// Bytes of an operator without its inputs and subqueries, counted as far as `most`.
fn own_bytes(node: &LogicalPlan, most: usize) -> usize {
    let mut bytes = OPERATOR + node.schema().fields().len() * EXPRESSION;
    // The closures never fail.
    let _ = node.apply_expressions(|expr| {
        expr.apply(|part| {
            bytes += EXPRESSION;
            if let Expr::Literal(value, _) = part {
                bytes += value.size();
            }
            Ok(if bytes > most { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_the_simplification_of_the_engine_is_refused() {
        let builder = || SessionStateBuilder::new().with_default_features();
        with_plan_limits(builder()).map(drop).expect("the rules of the engine");
        let mut rules = builder().optimizer().take().unwrap_or_default().rules;
        rules.retain(|rule| rule.name() != SIMPLIFICATION);
        let error = with_plan_limits(builder().with_optimizer_rules(rules)).map(drop).expect_err("a rule is missing");
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains(SIMPLIFICATION), "{error}");
    }
}
