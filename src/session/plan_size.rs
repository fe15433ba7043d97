//! Limits on the size of plans and on the time of planning.
//!
//! ```text
//! visits of types ─▶ analyzer rule ─▶ size of the plan, and visits of types ─▶ analyzer rule ─▶ …
//! optimizer rule  ─▶ deadline ─▶ simplification: predicted size ─▶ rule ─▶ size of what it wrote
//! ```
//!
//! A rule can double an expression with each node that it visits: filters are copied into projections, and `coalesce(a, b)`
//! becomes `CASE WHEN a IS NOT NULL THEN a ELSE b END`. So the size is counted after each node that a rule has rewritten,
//! not once after all rules. The simplifier works on whole expressions, and would double a nested expression many times
//! before it returns, so the size of its result is predicted (`growth`).
//!
//! The engine writes out the name of a call, and those of all arguments, whenever it finds its type, and the coercion of types asks at
//! each level: its time grows with the third power of the levels. Operators become calls as well (`INTERVAL '1 day' * 2 * 2 …`),
//! so calls are counted in the plan, wherever it may be coerced next. Chains that stay operators have no such limit: their time grows
//! with the square of at most 1,000 (`session/parse`), because the engine finds the type of each operator by a walk.
//!
//! Invariant: a plan within the limits is not changed, and the plan of a PREPARE in SQL is not optimized before it is analyzed.

mod growth;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use savedsearch_clock::Clock;

use self::growth::{check_growth, check_visits, repeats_visits};
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

/// Levels of calls within each other while types are not coerced. The coercion of so many takes about a second.
const CALLS: usize = 150;

/// Name of the engine's rule that coerces types.
const COERCION: &str = "type_coercion";
/// Name of the engine's rule whose result is predicted.
const SIMPLIFICATION: &str = "simplify_expressions";

/// Applies the limits to all rules of a session.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the engine's simplification is not among them.
pub(super) fn with_plan_limits(mut builder: SessionStateBuilder) -> crate::error::Result<SessionStateBuilder> {
    let analyzer = &mut builder.analyzer().get_or_insert_default().rules;
    let coercion = analyzer.iter().position(|rule| rule.name() == COERCION).unwrap_or(usize::MAX);
    for (at, rule) in analyzer.iter_mut().enumerate() {
        *rule = Arc::new(LimitedAnalysis { rule: Arc::clone(rule), first: at == 0, is_coerced: at >= coercion });
    }
    let rules = builder.optimizer().take().unwrap_or_default().rules;
    if !rules.iter().any(|rule| rule.name() == SIMPLIFICATION) {
        return Err(missing_rule(SIMPLIFICATION));
    }
    let limited = rules.into_iter().map(|rule| -> Arc<dyn OptimizerRule + Send + Sync> { Arc::new(LimitedRule(rule)) });
    Ok(builder.with_optimizer_rules(limited.collect()))
}

/// A rule of the analyzer whose result is measured.
#[derive(Debug)]
struct LimitedAnalysis {
    rule: Arc<dyn AnalyzerRule + Send + Sync>,
    /// The plan that the first rule is given was not measured before.
    first: bool,
    /// Set for the coercion of types, and for the rules after it.
    is_coerced: bool,
}

impl AnalyzerRule for LimitedAnalysis {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        // A rule copies what it rewrites.
        memory::room_for_copies(0)?;
        if self.first {
            plan.apply_with_subqueries(|node| check_visits(node).map(|()| TreeNodeRecursion::Continue))?;
            check_calls(&plan)?;
        }
        let _ceiling = Ceiling::of(BYTES_OF_RULE);
        let plan = self.rule.analyze(plan, config)?;
        check_analyzed(&plan)?;
        if !self.is_coerced {
            check_calls(&plan)?;
        }
        Ok(plan)
    }
}

/// Rejects a plan that is too large, or whose types would take too long to find. Any rule may write a CASE, or nest one.
fn check_analyzed(plan: &LogicalPlan) -> Result<()> {
    let mut bytes = 0;
    plan.apply_with_subqueries(|node| {
        let own = Own::of(node, BYTES.saturating_sub(bytes));
        bytes += own.bytes;
        check_bytes(bytes)?;
        if own.repeats_visits {
            check_visits(node)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(drop)
}

/// Rejects a plan with too many calls within each other, before its types are coerced.
///
/// # Errors
/// [`ErrorKind::TooLarge`] for it.
pub(crate) fn check_calls(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            let mut calls = Calls::default();
            expr.visit(&mut calls)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })
    .map(drop)
}

/// Levels of calls in an expression.
#[derive(Default)]
struct Calls(usize);

impl TreeNodeVisitor<'_> for Calls {
    type Node = Expr;

    fn f_down(&mut self, expr: &Expr) -> Result<TreeNodeRecursion> {
        self.0 += usize::from(matches!(expr, Expr::ScalarFunction(_)));
        if self.0 <= CALLS {
            return Ok(TreeNodeRecursion::Continue);
        }
        let message = format!(
            "statement too complex: more than {CALLS} nested functions, with those of operators such as the \
             product of an interval"
        );
        Err(too_large(message, "compute parts of it in a temporary table"))
    }

    fn f_up(&mut self, expr: &Expr) -> Result<TreeNodeRecursion> {
        self.0 -= usize::from(matches!(expr, Expr::ScalarFunction(_)));
        Ok(TreeNodeRecursion::Continue)
    }
}

/// A rule of the optimizer whose result is measured.
#[derive(Debug)]
struct LimitedRule(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for LimitedRule {
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
        bytes += Own::of(node, usize::MAX).bytes;
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
        bytes += Own::of(node, BYTES - bytes.min(BYTES)).bytes;
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

/// Measures of an operator without its inputs and subqueries.
struct Own {
    bytes: usize,
    /// True if finding its types may take more than one visit of each expression.
    repeats_visits: bool,
}

impl Own {
    /// Measures as far as `most` bytes.
    fn of(node: &LogicalPlan, most: usize) -> Self {
        let mut own = Self { bytes: OPERATOR + node.schema().fields().len() * EXPRESSION, repeats_visits: false };
        // The closures never fail.
        let _ = node.apply_expressions(|expr| {
            expr.apply(|part| {
                own.bytes += EXPRESSION;
                if let Expr::Literal(value, _) = part {
                    own.bytes += value.size();
                }
                own.repeats_visits |= repeats_visits(part);
                Ok(if own.bytes > most { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        });
        own
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use datafusion::functions::expr_fn::abs;
    use datafusion::logical_expr::{LogicalPlanBuilder, Projection, col, lit, when};

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

    #[test]
    fn calls_within_each_other_are_counted_wherever_operators_become_calls() {
        // Names and types are not needed: finding them is what takes long.
        let check = |expr: Expr| {
            let values = LogicalPlanBuilder::values(vec![vec![lit(1_i64)]]).and_then(LogicalPlanBuilder::build)?;
            let schema = Arc::clone(values.schema());
            let projection = Projection::try_new_with_schema(vec![expr], Arc::new(values), schema)?;
            check_calls(&LogicalPlan::Projection(projection))
        };
        let nested = |levels: usize| (0..levels).fold(col("column1"), |inner, _| abs(inner + lit(1_i64)));
        check(nested(CALLS).is_null()).expect("as many as are taken");
        let error = check(nested(CALLS + 1).is_null()).expect_err("one more").to_string();
        assert!(error.contains("150 nested functions"), "{error}");
        check((0..CALLS + 1).fold(col("column1"), |inner, _| inner + abs(lit(1_i64)))).expect("beside each other");
    }

    /// A rule that writes a projection.
    #[derive(Debug)]
    struct Writing {
        /// Levels of CASE in it.
        levels: usize,
        runs: AtomicUsize,
    }

    impl AnalyzerRule for Writing {
        fn name(&self) -> &str {
            "writing"
        }

        fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            projected(plan, self.levels)
        }
    }

    /// A projection with levels of CASE, whose types nobody has found.
    fn projected(plan: LogicalPlan, levels: usize) -> Result<LogicalPlan> {
        let level = |inner| when(col("column1").gt(lit(1_i64)), abs(inner)).otherwise(lit(2_i64));
        let expr = (0..levels).try_fold(col("column1"), |inner, _| level(inner))?.alias("column1");
        let schema = Arc::clone(plan.schema());
        Projection::try_new_with_schema(vec![expr], Arc::new(plan), schema).map(LogicalPlan::Projection)
    }

    /// The error of two rules that write projections with these levels of CASE over a plan with others, and how often each ran.
    fn analyzed(given: usize, written: [usize; 2]) -> (Option<String>, [usize; 2]) {
        let rules = written.map(|levels| Arc::new(Writing { levels, runs: AtomicUsize::new(0) }));
        let own = rules.clone().map(|rule| -> Arc<dyn AnalyzerRule + Send + Sync> { rule });
        let builder = SessionStateBuilder::new().with_default_features().with_analyzer_rules(own.into());
        let limited = with_plan_limits(builder).expect("the rules of the engine").analyzer().take().expect("rules");
        let values = LogicalPlanBuilder::values(vec![vec![lit(1_i64)]]).and_then(LogicalPlanBuilder::build);
        let plan = values.and_then(|values| projected(values, given)).expect("a plan");
        let config = ConfigOptions::default();
        let analyzed = limited.rules.iter().try_fold(plan, |plan, rule| rule.analyze(plan, &config));
        (analyzed.err().map(|error| error.to_string()), rules.map(|rule| rule.runs.load(Ordering::Relaxed)))
    }

    #[test]
    fn nested_branches_are_refused_before_the_next_rule_of_the_analyzer() {
        assert_eq!(analyzed(3, [3, 3]), (None, [1, 1]));
        for (given, written, runs) in [(17, [0, 0], [0, 0]), (0, [17, 0], [1, 0]), (0, [0, 17], [1, 1])] {
            let (error, ran) = analyzed(given, written);
            let error = error.expect("refused");
            assert!(error.contains("too complex"), "{error}");
            assert_eq!(ran, runs);
        }
    }
}
