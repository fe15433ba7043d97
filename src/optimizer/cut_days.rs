//! Notes on conditions in FILTER and CASE that leave one instant of a day, such as `sum(reach) FILTER (WHERE published_at <= '2026-11-07')`.
//! A condition of WHERE has such a note in the plan of its scan.

use std::collections::BTreeSet;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Case, Expr, LogicalPlan};

use super::other_case::computed_name;
use crate::profile::TableKind;
use crate::pushdown::{TimeColumn, instant_of_day};
use crate::table::ApiTable;

/// Returns a note on each such condition on the time of mentions.
pub(super) fn cut_days(plan: &LogicalPlan) -> Result<Vec<String>> {
    let (mut tables, mut conditions, mut computed) = (Vec::new(), Vec::new(), BTreeSet::new());
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            tables.extend(ApiTable::of(scan).filter(|table| table.spec().kind == TableKind::Mentions));
        }
        node.apply_expressions(|expr| {
            computed.extend(computed_name(expr));
            expr.apply(|part| {
                conditions.extend(conditions_in(part).into_iter().cloned());
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let mut notes = Vec::new();
    for table in &tables {
        // A result of this name may have other times.
        let time = TimeColumn::of(table.spec()).filter(|time| !computed.contains(time.name()));
        let Some(time) = time else { continue };
        let now = table.connection().now();
        notes.extend(conditions.iter().filter_map(|condition| instant_of_day(condition, time, now)));
    }
    Ok(notes)
}

/// The filter of an aggregate, or the conditions of a CASE.
fn conditions_in(part: &Expr) -> Vec<&Expr> {
    match part {
        Expr::AggregateFunction(function) => function.params.filter.as_deref().into_iter().collect(),
        Expr::Case(Case { expr: None, when_then_expr, .. }) => {
            when_then_expr.iter().map(|(when, _)| when.as_ref()).collect()
        }
        _ => Vec::new(),
    }
}
