//! Compares rows member by member: `(a, b) = (c, d)` is `a = c AND b = d`.
//!
//! The engine makes structs of both sides and compares those. A NULL in them then counts as a value, so that
//! `(1, NULL) = (1, NULL)` is true. The standard requires NULL, or false if other members differ.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::{check_copies, rewrite_expressions};

/// See the module's documentation. Runs before type coercion, so that each pair of members gets its own type.
#[derive(Debug)]
pub(super) struct RowComparison;

impl AnalyzerRule for RowComparison {
    fn name(&self) -> &str {
        "savedsearch_row_comparison"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, _| by_member(expr), |plan| Ok(Transformed::no(plan)))
    }
}

fn by_member(expr: Expr) -> Result<Transformed<Expr>> {
    let compared = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (row(left), row(right)) {
            (Some(one), Some(other)) if one.len() == other.len() => {
                // All members but the last one are compared twice to find the order.
                let copies = if is_order(*op) && one.len() > 1 { 2 } else { 1 };
                check_copies(left, copies)?;
                check_copies(right, copies)?;
                compare(one, *op, other)
            }
            _ => None,
        },
        Expr::InList(InList { expr, list, negated }) => match row(expr) {
            Some(left) if list.iter().all(|item| row(item).is_some_and(|right| right.len() == left.len())) => {
                check_copies(expr, list.len())?;
                let equal = list.iter().filter_map(|item| compare(left, Operator::Eq, row(item)?));
                any_of(equal.collect()).map(|found| if *negated { Expr::Not(found.into()) } else { found })
            }
            _ => None,
        },
        _ => None,
    };
    Ok(compared.map_or_else(|| Transformed::no(expr), Transformed::yes))
}

/// The disjunction as a tree of little depth: a list can be long.
fn any_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() <= 1 {
        return conditions.pop();
    }
    let rest = conditions.split_off(conditions.len() / 2);
    Some(any_of(conditions)?.or(any_of(rest)?))
}

/// The members of a row that is written out.
fn row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::ScalarFunction(function) if function.name() == "struct" => Some(&function.args),
        _ => None,
    }
}

/// A comparison of rows, from the first member on; `None` for an operator that compares nothing.
fn compare(left: &[Expr], op: Operator, right: &[Expr]) -> Option<Expr> {
    let pairs = || left.iter().cloned().zip(right.iter().cloned());
    let each = |op| pairs().map(move |(left, right)| binary_expr(left, op, right));
    match op {
        Operator::Eq | Operator::IsNotDistinctFrom => conjunction(each(op)),
        Operator::NotEq | Operator::IsDistinctFrom => disjunction(each(op)),
        op if is_order(op) => {
            let strict = match op {
                Operator::LtEq => Operator::Lt,
                Operator::GtEq => Operator::Gt,
                other => other,
            };
            let last = lit(op != strict);
            // The first pair that differs decides, from the last one backwards.
            Some(pairs().rev().fold(last, |rest, (left, right)| {
                let equal = binary_expr(left.clone(), Operator::Eq, right.clone());
                binary_expr(left, strict, right).or(equal.and(rest))
            }))
        }
        _ => None,
    }
}

fn is_order(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}
