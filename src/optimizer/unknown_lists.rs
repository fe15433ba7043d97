//! Keeps `x IN (…)` NULL if `x` is NULL, when several lists of one operand are combined.
//!
//! The engine's simplifier merges two lists, and replaces a merged list without values by false, or by true for NOT IN. If
//! `x` is NULL, the standard requires NULL: `NOT (x IN ('a') AND x IN ('b'))` does not keep such rows, and neither does
//! `x NOT IN ('a') OR x NOT IN ('b')`. One operand of such a pair is hidden from the simplifier ([`Opaque`]).
//!
//! `x XOR x` becomes 0 in the same way, and is kept NULL in the same way.
//!
//! At the top of WHERE, false and NULL are the same, so lists that are combined by AND there stay as they are, and are sent
//! to the service. Lists of a column without NULLs also stay, and so does `x IN ('a') OR x IN ('b')`, because its merged
//! list always has values. Lists with a NULL among their values are an exception: `x IN ('a') AND x NOT IN (NULL)` is never
//! true.

use std::collections::HashMap;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Filter, LogicalPlan, Operator, TryCast, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::Opaque;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct UnknownLists;

impl AnalyzerRule for UnknownLists {
    fn name(&self) -> &str {
        "savedsearch_unknown_lists"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                // A list with NULL changes what other lists of its operand mean, at the top of WHERE too.
                let together = predicate.exists(|part| has_null_among_values(part, input.schema()))?;
                let conjuncts = if together { vec![predicate] } else { split_conjunction_owned(predicate) };
                let conjuncts = conjuncts.into_iter();
                let conjuncts = conjuncts.map(|conjunct| hide(conjunct, input.schema())).collect::<Result<Vec<_>>>()?;
                let changed = conjuncts.iter().any(|conjunct| conjunct.transformed);
                let conjuncts = conjuncts.into_iter().map(|conjunct| conjunct.data);
                let filter = Filter::try_new(conjunction(conjuncts).unwrap_or_else(|| lit(true)), input)?;
                Ok(Transformed::new_transformed(LogicalPlan::Filter(filter), changed))
            }
            // Its filters were a Filter when they were analyzed: a plan that is optimized may be analyzed again.
            LogicalPlan::TableScan(_) => Ok(Transformed::no(plan)),
            plan => {
                let schema = merge_schema(&plan.inputs());
                let names = NamePreserver::new(&plan);
                let changed = plan.map_expressions(|expr| {
                    let name = names.save(&expr);
                    Ok(hide(expr, &schema)?.update_data(|expr| name.restore(expr)))
                })?;
                if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
            }
        })
        .map(|transformed| transformed.data)
    }
}

/// Hides operands in an expression if lists of one operand could become a literal.
fn hide(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut lists = Lists { schema, hidden: false };
    let expr = lists.logical(expr, false)?.0;
    Ok(Transformed::new_transformed(expr, lists.hidden))
}

/// Operands of the lists below a node.
type Operands = HashMap<Expr, Seen>;

/// Kinds of lists with the same operand.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// IN, with NOT above it applied.
    is_in: bool,
    /// NOT IN, with NOT above it applied.
    is_not_in: bool,
    /// A list whose operand can be NULL.
    unknown: bool,
    /// A list one of whose values can be NULL. It is merged wrongly with any other one.
    has_null: bool,
}

impl Seen {
    /// The kinds without one of the NOTs above.
    fn negated(self) -> Self {
        Self { is_in: self.is_not_in, is_not_in: self.is_in, ..self }
    }

    /// True if the merged list may have no values: of both by AND, or else by OR.
    fn becomes_literal(self, other: Self, by_and: bool) -> bool {
        match by_and {
            true => (self.is_in && (other.is_in || other.is_not_in)) || (self.is_not_in && other.is_in),
            false => self.is_not_in && other.is_not_in,
        }
    }
}

struct Lists<'a> {
    schema: &'a DFSchema,
    /// Set once an operand was hidden.
    hidden: bool,
}

impl Lists<'_> {
    /// Visits a Boolean expression below an even or odd number of NOTs.
    fn logical(&mut self, expr: Expr, not: bool) -> Result<(Expr, Operands)> {
        match expr {
            Expr::Not(inner) => {
                let (inner, operands) = self.logical(*inner, !not)?;
                Ok((Expr::Not(inner.into()), operands))
            }
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (left, mut operands) = self.logical(*left, not)?;
                let (mut right, others) = self.logical(*right, not)?;
                for (operand, other) in others {
                    let before = operands.entry(operand.clone()).or_default();
                    // The simplifier merges lists before or after it applies the NOT above them.
                    let merge = before.becomes_literal(other, (op == Operator::And) != not)
                        || (not && before.negated().becomes_literal(other.negated(), op == Operator::And));
                    let second = before.is_in || before.is_not_in;
                    let has_null = second && (before.has_null || other.has_null);
                    if has_null || (merge && (before.unknown || other.unknown)) {
                        right = self.without(right, &operand)?;
                    } else {
                        before.is_in |= other.is_in;
                        before.is_not_in |= other.is_not_in;
                        before.unknown |= other.unknown;
                        before.has_null |= other.has_null;
                    }
                }
                Ok((Expr::BinaryExpr(BinaryExpr { left: left.into(), op, right: right.into() }), operands))
            }
            other => {
                let mut operands = Operands::new();
                if let Some((operand, negated)) = operand(&other) {
                    let is_not_in = negated != not;
                    let unknown = operand.nullable(self.schema)?;
                    let has_null = has_null_among_values(&other, self.schema)?;
                    operands.insert(operand.clone(), Seen { is_in: !is_not_in, is_not_in, unknown, has_null });
                }
                let other = match other {
                    Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right }) => {
                        self.hidden = true;
                        let right = Opaque::of(vec![*right]).into();
                        Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right })
                    }
                    other => other,
                };
                // Parts of any other expression are expressions of their own.
                let other = other.map_children(|part| {
                    let (part, _) = self.logical(part, false)?;
                    Ok(Transformed::yes(part))
                })?;
                Ok((other.data, operands))
            }
        }
    }

    fn without(&mut self, expr: Expr, hidden: &Expr) -> Result<Expr> {
        self.hidden = true;
        let opaque = |of: &Expr| Opaque::of(vec![of.clone()]);
        let expr = expr.transform_up(|part| {
            if operand(&part).is_none_or(|(operand, _)| operand != hidden) {
                return Ok(Transformed::no(part));
            }
            Ok(Transformed::yes(match part {
                Expr::InList(InList { expr, list, negated }) => {
                    Expr::InList(InList { expr: opaque(&expr).into(), list, negated })
                }
                Expr::BinaryExpr(BinaryExpr { left, op, right }) if without_casts(&left) == hidden => {
                    Expr::BinaryExpr(BinaryExpr { left: opaque(&left).into(), op, right })
                }
                Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                    Expr::BinaryExpr(BinaryExpr { left, op, right: opaque(&right).into() })
                }
                other => other,
            }))
        })?;
        Ok(expr.data)
    }
}

/// True for a list one of whose values can be NULL.
fn has_null_among_values(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let Expr::InList(InList { list, .. }) = expr else { return Ok(false) };
    for value in list {
        if value.nullable(schema)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The operand of a list, or of a comparison that the simplifier turns into a list, and whether it is NOT IN.
fn operand(expr: &Expr) -> Option<(&Expr, bool)> {
    match expr {
        Expr::InList(InList { expr, negated, .. }) => Some((without_casts(expr), *negated)),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::NotEq), right }) => {
            let column = match (without_casts(left), without_casts(right)) {
                (column @ Expr::Column(_), Expr::Literal(..)) | (Expr::Literal(..), column @ Expr::Column(_)) => column,
                _ => return None,
            };
            Some((column, *op == Operator::NotEq))
        }
        _ => None,
    }
}

/// The expression below casts, which the simplifier moves from operands to values.
fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => without_casts(expr),
        expr => expr,
    }
}
