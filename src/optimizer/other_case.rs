//! Notes on comparisons with values that the service writes in another case: `count(*) FILTER (WHERE sentiment = 'Positive')`,
//! `CASE WHEN language = 'EN' …`, `source <> 'X.com'`. A condition that a scan evaluates is left out: the scan adds a note of its own
//! if it finds nothing.
//!
//! Invariant: the service's values are those of the profile, and of responses that were read before. Nothing is requested for a note.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, LogicalPlan, Operator};

use crate::connection::difference;
use crate::error::shortened;
use crate::table::ApiTable;

/// A comparison with a value that the service writes in another case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OtherCase {
    pub(super) column: String,
    pub(super) value: String,
    pub(super) note: String,
}

/// Values by relation and name of a column, and sign of the comparison.
type Compared = BTreeMap<(Option<String>, String, &'static str), BTreeSet<String>>;

/// Returns these comparisons of a plan with columns of its tables.
pub(super) fn other_cases(plan: &LogicalPlan) -> Result<Vec<OtherCase>> {
    let (mut tables, mut others) = (Vec::new(), BTreeSet::new());
    let (mut computed, mut compared) = (BTreeSet::new(), Compared::new());
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => match ApiTable::of(scan) {
                Some(table) => tables.push(table),
                None => {
                    others.insert(scan.table_name.table().to_owned());
                }
            },
            LogicalPlan::SubqueryAlias(alias) if is_of_others(&alias.input) => {
                others.insert(alias.alias.table().to_owned());
            }
            _ => {}
        }
        node.apply_expressions(|expr| {
            computed.extend(computed_name(expr));
            expr.apply(|part| {
                add_comparisons(part, &mut compared);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    // A result of this name, or a column of another table, may have other values.
    let is_other = |relation: &Option<String>| relation.as_ref().is_some_and(|relation| others.contains(relation));
    compared.retain(|(relation, column, _), _| !computed.contains(column) && !is_other(relation));
    let mut cases = Vec::new();
    for ((_, column, sign), values) in &compared {
        let of_table = |table: &ApiTable| table.connection().in_their_case(table.spec(), column, values);
        let written = tables.iter().map(of_table).find(|written| !written.is_empty()).unwrap_or_default();
        cases.extend(written.into_iter().map(|(value, written)| OtherCase {
            column: column.clone(),
            value: value.to_owned(),
            note: shortened(format!(
                "{column} {sign} '{value}' is compared with {}, and the service has '{written}'",
                difference(value, &written)
            )),
        }));
    }
    Ok(cases)
}

/// True for a table that is not one of a service.
fn is_of_others(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::TableScan(scan) if ApiTable::of(scan).is_none())
}

/// The name of a result that is not a column of this name.
pub(super) fn computed_name(expr: &Expr) -> Option<String> {
    let Expr::Alias(alias) = expr else { return None };
    let is_same = matches!(alias.expr.as_ref(), Expr::Column(column) if column.name == alias.name);
    (!is_same).then(|| alias.name.clone())
}

/// Adds the values with which an expression compares a column for equality.
fn add_comparisons(part: &Expr, compared: &mut Compared) {
    let mut add = |column: &Column, sign, value: &str| {
        let relation = column.relation.as_ref().map(|relation| relation.table().to_owned());
        compared.entry((relation, column.name.clone(), sign)).or_default().insert(value.to_owned());
    };
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let sign = match op {
                Operator::Eq | Operator::IsNotDistinctFrom => "=",
                Operator::NotEq | Operator::IsDistinctFrom => "<>",
                _ => return,
            };
            if let (Expr::Column(column), Some(value)) = (left.as_ref(), text(right)) {
                add(column, sign, value);
            } else if let (Some(value), Expr::Column(column)) = (text(left), right.as_ref()) {
                add(column, sign, value);
            }
        }
        Expr::InList(InList { expr, list, negated }) => {
            if let Expr::Column(column) = expr.as_ref() {
                let sign = if *negated { "<>" } else { "=" };
                list.iter().filter_map(text).for_each(|value| add(column, sign, value));
            }
        }
        Expr::Case(Case { expr: Some(operand), when_then_expr, .. }) => {
            if let Expr::Column(column) = operand.as_ref() {
                when_then_expr.iter().filter_map(|(when, _)| text(when)).for_each(|value| add(column, "=", value));
            }
        }
        _ => {}
    }
}

/// The text of a literal.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}
