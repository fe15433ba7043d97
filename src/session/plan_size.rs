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
//! before it returns, so the size of its result is predicted.
//!
//! Invariant: a plan within the limits is not changed, and the plan of a PREPARE in SQL is not optimized before it is analyzed.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::expr::{Between, Case, InList};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use savedsearch_clock::Clock;

use crate::error::{Error, ErrorKind};
use crate::functions::TypeIn;
use crate::memory::{self, Ceiling};
use crate::optimizer::missing_rule;

/// Bytes of a plan, as estimated by [`bytes_of_plan`].
const BYTES: usize = 64 << 20;
/// Bytes that a rule may take while it rewrites a plan, such as those of constants that it computes. The engine copies constants
/// several times, without asking for memory, where it compares with a list of them.
const BYTES_OF_RULE: i64 = 32 << 20;
/// Expressions by which simplification may enlarge those of an operator.
const GROWTH: u64 = 40_000;
/// Expressions that the engine may visit more than once to find the types of those of an operator.
const VISITS: u64 = 1_000_000;
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

/// Rejects an operator whose expressions would grow too much when they are simplified.
fn check_growth(plan: &LogicalPlan) -> Result<()> {
    let schema = merge_schema(&plan.inputs());
    let mut growth = 0_u64;
    plan.apply_expressions(|expr| {
        let size = Size::of(expr, &schema);
        growth = growth.saturating_add(size.simplified - size.now);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if growth <= GROWTH {
        return Ok(());
    }
    let message =
        format!("statement too complex: simplified, its expressions would have more than {GROWTH} further parts");
    let advice = "use and nest fewer coalesce, BETWEEN, IN and CASE, or compute the inner expressions in a subquery";
    Err(too_large(message, advice))
}

/// Rejects an operator with expressions whose types would take too long to find.
fn check_visits(plan: &LogicalPlan) -> Result<()> {
    let mut again = 0_u64;
    plan.apply_expressions(|expr| {
        let visits = Visits::of(expr);
        again = again.saturating_add(visits.all - visits.once);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if again <= VISITS {
        return Ok(());
    }
    let advice = "nest fewer coalesce and CASE, or compute the inner expressions in a subquery";
    Err(too_large("statement too complex: its functions and CASE are nested too deeply".to_owned(), advice))
}

/// Number of expressions that the engine visits to find the type of an expression, and whether it can be NULL. It determines both
/// for the branches of a CASE, and asks each nested expression again: visits grow exponentially with the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Visits {
    /// If each expression were visited once.
    once: u64,
    all: u64,
}

impl Visits {
    fn of(expr: &Expr) -> Self {
        /// Visits of an argument that simplification puts into a condition and into a branch.
        const OF_COPIED: u64 = 5;
        /// Visits of a branch.
        const OF_BRANCH: u64 = 2;
        /// Visits of a CASE itself: it has conditions for each branch.
        const OF_CASE: u64 = 16;

        let mut visits = Self { once: 1, all: 1 };
        let mut add = |part: &Expr, times: u64| {
            let part = Self::of(part);
            visits.once = visits.once.saturating_add(part.once);
            visits.all = visits.all.saturating_add(part.all.saturating_mul(times));
        };
        match expr {
            Expr::Case(Case { expr, when_then_expr, else_expr }) => {
                expr.iter().for_each(|expr| add(expr, 1));
                for (when, then) in when_then_expr {
                    add(when, 1);
                    add(then, OF_BRANCH);
                }
                else_expr.iter().for_each(|expr| add(expr, OF_BRANCH));
                visits.all = visits.all.saturating_add(OF_CASE);
            }
            Expr::ScalarFunction(function) if duplicates(function.name()) => {
                function.args.iter().for_each(|arg| add(arg, OF_COPIED));
            }
            other => {
                // The closure never fails.
                let _ = other.apply_children(|part| {
                    add(part, 1);
                    Ok(TreeNodeRecursion::Continue)
                });
            }
        }
        visits
    }
}

/// Number of expressions in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    now: u64,
    /// Upper bound for when it is simplified.
    simplified: u64,
}

impl Size {
    /// Measures an expression over the columns of a schema.
    fn of(expr: &Expr, schema: &DFSchema) -> Self {
        let mut size = Self { now: 1, simplified: 1 };
        // AND, OR, NOT and IS TRUE around the branches of a CASE.
        let mut operators = 0;
        let mut add = |part: &Expr, copies: u64| {
            let part = Self::of(part, schema);
            size.now = size.now.saturating_add(part.now);
            // Copies are joined by operators.
            let joining = if copies > 1 { copies.saturating_mul(2) } else { 0 };
            let copied = part.simplified.saturating_mul(copies).saturating_add(joining);
            size.simplified = size.simplified.saturating_add(copied);
        };
        match expr {
            // Two comparisons.
            Expr::Between(Between { expr, low, high, .. }) => {
                add(expr, 2);
                add(low, 2);
                add(high, 2);
            }
            // A comparison for each value.
            Expr::InList(InList { expr, list, .. }) => {
                add(expr, count(list.len()).min(3));
                list.iter().for_each(|value| add(value, 1));
            }
            Expr::Case(case) => {
                let joined = joins_conditions(case, schema);
                operators = if joined { 8 * (count(case.when_then_expr.len()) + 1) } else { 0 };
                add_case(case, joined, &mut add);
            }
            // The comparison moves into the branches.
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq | Operator::NotEq, right })
                if matches!(
                    (&**left, &**right),
                    (Expr::Case(_), Expr::Literal(..)) | (Expr::Literal(..), Expr::Case(_))
                ) =>
            {
                for side in [left, right] {
                    match &**side {
                        Expr::Case(case) => {
                            operators = 8 * (count(case.when_then_expr.len()) + 1);
                            add_case(case, true, &mut add);
                        }
                        literal => add(literal, 1),
                    }
                }
            }
            // A range: from its start and before its end, or NULL.
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::IsDistinctFrom | Operator::IsNotDistinctFrom,
                right,
            }) => {
                add(left, 3);
                add(right, 3);
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                let copies = |expr: &Expr| if matches!(expr, Expr::ScalarFunction(_) | Expr::Cast(_)) { 2 } else { 1 };
                add(left, copies(left));
                add(right, copies(right));
            }
            Expr::ScalarFunction(function) => {
                let copies = if duplicates(function.name()) { 2 } else { 1 };
                function.args.iter().for_each(|arg| add(arg, copies));
            }
            other => {
                // The closure never fails.
                let _ = other.apply_children(|part| {
                    add(part, 1);
                    Ok(TreeNodeRecursion::Continue)
                });
            }
        }
        size.simplified = size.simplified.saturating_add(operators);
        size
    }
}

/// Adds the parts of a CASE. If its conditions are joined by AND and OR, each branch repeats those of the branches before it.
fn add_case(case: &Case, joined: bool, add: &mut impl FnMut(&Expr, u64)) {
    let copies = if joined { count(case.when_then_expr.len()).saturating_add(1) } else { 1 };
    case.expr.iter().for_each(|expr| add(expr, copies));
    for (when, then) in &case.when_then_expr {
        add(when, copies);
        add(then, 1);
    }
    case.else_expr.iter().for_each(|expr| add(expr, 1));
}

/// True if a CASE may become an expression of AND and OR: a truth value of few branches, or of few that are true or false.
fn joins_conditions(case: &Case, schema: &DFSchema) -> bool {
    let branches = &case.when_then_expr;
    let few = branches.len() < 3 || branches.iter().all(|(_, then)| matches!(**then, Expr::Literal(..)));
    few && branches.first().is_some_and(|(_, then)| {
        // The type of nested branches is that of the first one in them.
        let mut then = then;
        while let Expr::Case(Case { when_then_expr, .. }) = &**then
            && let Some((_, inner)) = when_then_expr.first()
        {
            then = inner;
        }
        then.type_in(schema).map_or(true, |of| matches!(of, DataType::Boolean | DataType::Null))
    })
}

fn count(parts: usize) -> u64 {
    u64::try_from(parts).unwrap_or(u64::MAX)
}

/// True for functions that are simplified to an expression with two copies of an argument.
fn duplicates(function: &str) -> bool {
    matches!(function, "coalesce" | "nvl")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::functions::expr_fn::{abs, coalesce, nvl};
    use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
    use datafusion::logical_expr::{cast, col, lit, when};
    use datafusion::optimizer::simplify_expressions::ExprSimplifier;
    use datafusion::prelude::SessionContext;

    use super::*;

    fn nested(times: usize, level: impl Fn(Expr) -> Expr) -> Expr {
        (0..times).fold(col("x"), |inner, _| level(inner))
    }

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
    fn the_predicted_size_is_at_least_the_simplified_one() {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let schema = Arc::new(DFSchema::try_from(schema).expect("a schema"));
        let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&schema)).build());
        let int = |expr: Expr| cast(expr, DataType::Int64);
        let levels: [(&str, &dyn Fn(Expr) -> Expr); 6] = [
            ("coalesce", &|inner| coalesce(vec![inner, lit(2_i64)])),
            ("nvl", &|inner| nvl(inner, lit(2_i64))),
            ("between", &|inner| int(inner.between(lit(1_i64), lit(2_i64)))),
            ("not between", &|inner| int(inner.not_between(lit(1_i64), lit(2_i64)))),
            ("in", &|inner| int(inner.in_list(vec![lit(1_i64), lit(2_i64)], false))),
            ("case", &|inner| {
                let mut case = when(inner.gt(lit(1_i64)), col("x").gt(lit(3_i64)));
                int(case.otherwise(col("x").lt(lit(1_i64))).expect("a CASE"))
            }),
        ];
        for (name, level) in levels {
            for times in [1, 2, 5] {
                let expr = nested(times, level);
                let predicted = Size::of(&expr, &schema).simplified;
                let simplified = simplifier.simplify(expr).expect("simplified");
                let size = Size::of(&simplified, &schema).now;
                assert!(size <= predicted, "{name} {times} times: {size} expressions, {predicted} predicted");
            }
        }
    }

    #[test]
    fn visits_of_types_grow_with_the_levels_of_functions_and_branches() {
        let again = |expr: Expr| {
            let visits = Visits::of(&expr);
            visits.all - visits.once
        };
        let of_coalesce = |inner| coalesce(vec![abs(inner), lit(2_i64)]);
        let of_case = |inner| when(col("x").gt(lit(1_i64)), abs(inner)).otherwise(lit(2_i64)).expect("a CASE");
        assert!(again(nested(7, of_coalesce)) <= VISITS && again(nested(9, of_coalesce)) > VISITS);
        assert!(again(nested(14, of_case)) <= VISITS && again(nested(17, of_case)) > VISITS);
        assert_eq!(again(nested(500, abs)), 0);
    }

    /// The engine's full list: a function that begins to repeat its arguments fails here.
    #[test]
    fn no_other_function_repeats_its_arguments() {
        let context = SessionContext::new();
        let functions: Vec<_> = context.state_ref().read().scalar_functions().values().cloned().collect();
        let marks = |expr: &Expr, name: &str| {
            let mut marks = 0;
            let _ = expr.apply(|part| {
                marks += usize::from(matches!(part, Expr::Column(column) if column.name == name));
                Ok(TreeNodeRecursion::Continue)
            });
            marks
        };
        assert!(functions.len() > 150);
        for function in functions {
            let examples = function.signature().type_signature.get_example_types();
            let counts: BTreeSet<usize> = examples.iter().map(Vec::len).chain([2]).collect();
            for arguments in counts {
                let args: Vec<Expr> = (0..arguments).map(|at| col(format!("a{at}"))).collect();
                // A function may take another number of arguments, which its signature does not show.
                let simplified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    function.simplify(args, &SimplifyContext::builder().build())
                }));
                let Ok(Ok(ExprSimplifyResult::Simplified(expr))) = simplified else { continue };
                let most = (0..arguments).map(|at| marks(&expr, &format!("a{at}"))).max().unwrap_or_default();
                assert!(most <= if duplicates(function.name()) { 2 } else { 1 }, "{}: {expr}", function.name());
            }
        }
    }
}
