//! Correlated subqueries whose operators must see the rows of one outer row at a time, as plans that see those of all of them,
//! divided by what the outer query is compared with.
//!
//! ```text
//! (SELECT author FROM m WHERE m.aid = o.aid GROUP BY author ORDER BY count(*) DESC LIMIT 1)
//!   ─▶ (SELECT author FROM (SELECT author, aid AS key, row_number() OVER (PARTITION BY aid ORDER BY count(*) DESC) AS number
//!                           FROM m GROUP BY author, aid) WHERE number <= 1 AND key = o.aid)
//! ```
//!
//! | operator | with the keys |
//! | --- | --- |
//! | WHERE `k = outer`, together with other conditions | `k` is a further column, a key |
//! | LIMIT, OFFSET | `row_number() OVER (PARTITION BY keys ORDER BY …)` |
//! | window functions | `PARTITION BY keys, …` |
//! | GROUP BY, DISTINCT, if an expression is compared rather than a column | `GROUP BY keys, …` |
//! | derived tables, `unnest`, inner and cross joins, the left side of LEFT JOIN | the keys are further columns |
//! | UNION ALL | the same keys in all branches |
//! | an outer column in the SELECT list, if it is compared with a key of its type | the key |
//!
//! Invariants: the inner query is read once for all outer rows, and the outer query is not read in it. A subquery that has another
//! operator, or is compared otherwise, stays as it is.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprFunctionExt, FetchType, Join, JoinType, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, SkipType, SortExpr, Union, Window, lit,
};

use crate::functions::TypeIn;
use crate::optimizer::expressions::{all_columns, filtered, has_outer_condition, is_equality, is_one_row, subquery_of};

/// The subquery with keys; `None` if it needs none, or cannot have them.
///
/// # Errors
/// Those of building a plan.
pub(in crate::session) fn keyed(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    if !needs_keys(plan) {
        return Ok(None);
    }
    let passes = match plan {
        // A result that is an outer value is a key.
        LogicalPlan::Projection(node) => !node.expr.iter().any(Expr::contains_outer),
        LogicalPlan::Filter(_) => true,
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_)) => !divides_rows(plan),
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        _ => false,
    };
    if !passes {
        return with_condition(plan);
    }
    let [input] = plan.inputs()[..] else { return Ok(None) };
    let Some(input) = keyed(input)? else { return Ok(None) };
    plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
}

/// True if an operator would see the rows of all outer rows together.
fn needs_keys(plan: &LogicalPlan) -> bool {
    let mut needed = false;
    plan.apply(|node| {
        if !is_correlated(node) {
            return Ok(TreeNodeRecursion::Jump);
        }
        needed |= match node {
            LogicalPlan::Limit(_) | LogicalPlan::Window(_) | LogicalPlan::Unnest(_) | LogicalPlan::Union(_) => true,
            LogicalPlan::SubqueryAlias(alias) => !is_one_row(&alias.input),
            node => divides_rows(node),
        };
        Ok(if needed { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .expect("no step fails");
    needed
}

/// True for groups of rows of which an expression is compared with an outer value: the engine groups by the columns in it.
fn divides_rows(plan: &LogicalPlan) -> bool {
    let input = match plan {
        LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty() => &aggregate.input,
        LogicalPlan::Distinct(Distinct::All(input)) => input,
        _ => return false,
    };
    let by_expression = input.exists(|node| {
        let LogicalPlan::Filter(filter) = node else { return Ok(false) };
        let compared = split_conjunction(&filter.predicate).into_iter().filter(|part| part.contains_outer());
        Ok(compared.into_iter().any(|part| !is_equality(part)))
    });
    by_expression.unwrap_or(false)
}

fn is_correlated(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

/// The rows of a plan, chosen by their keys above all of its operators.
fn with_condition(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    if plan.exists(has_farther_subquery)? {
        return Ok(None);
    }
    let mut keys = Keys::default();
    let Some(inner) = keys.pulled_from(plan)? else { return Ok(None) };
    // A relation of its own: the rows are no longer those of the tables below.
    let named = |at: usize| Expr::Column(Column::new(Some(RELATION), format!("__column_{}", at + 1)));
    let columns = all_columns(plan.schema());
    let inner_columns =
        columns.iter().cloned().enumerate().map(|(at, column)| column.alias(named(at).qualified_name().1));
    let inner = LogicalPlanBuilder::from(inner).project(inner_columns.chain(keys.columns(0)))?.alias(RELATION)?;
    let equal = keys.compared.into_iter().enumerate().map(|(at, outer)| {
        let key = Column::new(Some(RELATION), key_name(at));
        Expr::Column(key).eq(outer)
    });
    let chosen = LogicalPlanBuilder::from(filtered(inner.build()?, equal.collect())?);
    let outer_columns = columns.iter().enumerate().map(|(at, column)| {
        let (relation, name) = column.qualified_name();
        named(at).alias_qualified(relation, name)
    });
    chosen.project(outer_columns)?.build().map(Some)
}

/// Name of the relation of rows with keys.
const RELATION: &str = "__keyed";
/// Name of a row's number.
const NUMBER: &str = "__number";

fn key_name(at: usize) -> String {
    format!("__key_{}", at + 1)
}

fn unqualified(name: impl Into<String>) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The keys that were found so far: values of the outer query, each of which is compared with a column `__key_n`.
#[derive(Default)]
struct Keys {
    compared: Vec<Expr>,
}

impl Keys {
    /// The columns of the keys since the first `from` ones.
    fn columns(&self, from: usize) -> Vec<Expr> {
        (from..self.compared.len()).map(|at| unqualified(key_name(at))).collect()
    }

    /// The plan with the columns of its keys as further ones, and without the conditions on them; `None` if it cannot have them.
    fn pulled_from(&mut self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if !is_correlated(plan) {
            return Ok(Some(plan.clone()));
        }
        let from = self.compared.len();
        match plan {
            LogicalPlan::Filter(filter) => {
                let Some(input) = self.pulled_from(&filter.input)? else { return Ok(None) };
                self.with_keys_of(filter.predicate.clone(), &filter.input, input, from)
            }
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let Some(inner) = self.pulled_from(input)? else { return Ok(None) };
                let Some(columns) = self.without_outer(expr.clone(), &inner)? else { return Ok(None) };
                let columns = columns.into_iter().chain(self.columns(from));
                LogicalPlanBuilder::from(inner).project(columns)?.build().map(Some)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.pulled_from(&sort.input),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(inner) = self.pulled_from(&alias.input)? else { return Ok(None) };
                let keys = (from..self.compared.len()).map(|at| {
                    let key = Column::new(Some(alias.alias.clone()), key_name(at));
                    Expr::Column(key).alias(key_name(at))
                });
                let columns = all_columns(plan.schema()).into_iter().chain(keys);
                LogicalPlanBuilder::from(inner).alias(alias.alias.clone())?.project(columns)?.build().map(Some)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(inner) = self.pulled_from(input)? else { return Ok(None) };
                LogicalPlanBuilder::from(inner).distinct()?.build().map(Some)
            }
            LogicalPlan::Aggregate(aggregate) => self.pulled_from_groups(aggregate, plan, from),
            LogicalPlan::Window(window) => self.pulled_from_window(window, plan, from),
            LogicalPlan::Limit(limit) => {
                let Some((skip, fetch)) = rows_of(limit)? else { return Ok(None) };
                let Some(numbered) = self.numbered(&limit.input)? else { return Ok(None) };
                let after = unqualified(NUMBER).gt(lit(skip));
                let until = fetch.map(|fetch| unqualified(NUMBER).lt_eq(lit(skip.saturating_add(fetch))));
                let chosen = LogicalPlanBuilder::from(numbered).filter(until.into_iter().fold(after, Expr::and))?;
                self.shown(chosen, plan, from)
            }
            LogicalPlan::Unnest(unnest) => {
                let Some(inner) = self.pulled_from(&unnest.input)? else { return Ok(None) };
                let unnested = LogicalPlanBuilder::from(inner)
                    .unnest_columns_with_options(unnest.exec_columns.clone(), unnest.options.clone())?;
                self.shown(unnested, plan, from)
            }
            LogicalPlan::Join(join) => self.pulled_from_join(join, plan, from),
            LogicalPlan::Union(Union { inputs, .. }) => self.pulled_from_all(inputs, from),
            _ => Ok(None),
        }
    }

    fn pulled_from_groups(
        &mut self,
        Aggregate { input, group_expr, aggr_expr, .. }: &Aggregate,
        plan: &LogicalPlan,
        from: usize,
    ) -> Result<Option<LogicalPlan>> {
        if group_expr.is_empty() || matches!(group_expr[..], [Expr::GroupingSet(_)]) {
            return Ok(None);
        }
        let Some(inner) = self.pulled_from(input)? else { return Ok(None) };
        let exprs = group_expr.iter().chain(aggr_expr).cloned().collect();
        let Some(mut exprs) = self.without_outer(exprs, &inner)? else { return Ok(None) };
        let aggregates = exprs.split_off(group_expr.len());
        let groups = exprs.into_iter().chain(self.columns(from));
        let grouped = LogicalPlanBuilder::from(inner).aggregate(groups, aggregates)?;
        self.shown(grouped, plan, from)
    }

    fn pulled_from_window(
        &mut self,
        Window { input, window_expr, .. }: &Window,
        plan: &LogicalPlan,
        from: usize,
    ) -> Result<Option<LogicalPlan>> {
        let Some(inner) = self.pulled_from(input)? else { return Ok(None) };
        let Some(windows) = self.without_outer(window_expr.clone(), &inner)? else { return Ok(None) };
        let (keys, names) = (self.columns(from), NamePreserver::new_for_projection());
        let windows = windows.into_iter().map(|expr| {
            let name = names.save(&expr);
            let divided = expr.transform(|part| {
                let Expr::WindowFunction(mut function) = part else { return Ok(Transformed::no(part)) };
                function.params.partition_by.extend(keys.iter().cloned());
                Ok(Transformed::new(Expr::WindowFunction(function), true, TreeNodeRecursion::Jump))
            });
            Ok(divided?.update_data(|expr| name.restore(expr)).data)
        });
        let windows = windows.collect::<Result<Vec<_>>>()?;
        let plan_with = LogicalPlanBuilder::from(inner).window(windows)?;
        self.shown(plan_with, plan, from)
    }

    fn pulled_from_join(&mut self, join: &Join, plan: &LogicalPlan, from: usize) -> Result<Option<LogicalPlan>> {
        let kept = match join.join_type {
            JoinType::Inner => true,
            JoinType::Left => !is_correlated(&join.right),
            _ => false,
        };
        if !kept || has_outer_condition(join) {
            return Ok(None);
        }
        let Some(left) = self.pulled_from(&join.left)? else { return Ok(None) };
        let Some(right) = self.pulled_from(&join.right)? else { return Ok(None) };
        let mut joined = join.clone();
        (joined.left, joined.right) = (Arc::new(left), Arc::new(right));
        let joined = LogicalPlan::Join(joined).recompute_schema()?;
        self.shown(LogicalPlanBuilder::from(joined), plan, from)
    }

    /// The rows of branches that have the same keys.
    fn pulled_from_all(&mut self, inputs: &[Arc<LogicalPlan>], from: usize) -> Result<Option<LogicalPlan>> {
        let earlier = self.compared[..from].to_vec();
        let mut branches: Option<LogicalPlanBuilder> = None;
        let mut compared = None;
        for input in inputs {
            self.compared.clone_from(&earlier);
            let Some(branch) = self.pulled_from(input)? else { return Ok(None) };
            if *compared.get_or_insert_with(|| self.compared.clone()) != self.compared {
                return Ok(None);
            }
            let columns = all_columns(input.schema()).into_iter().chain(self.columns(from));
            let branch = LogicalPlanBuilder::from(branch).project(columns)?;
            branches = Some(match branches {
                Some(branches) => branches.union(branch.build()?)?,
                None => branch,
            });
        }
        branches.map(LogicalPlanBuilder::build).transpose()
    }

    /// The rows that meet the conditions within the subquery, with what is compared with outer values as further keys.
    fn with_keys_of(
        &mut self,
        predicate: Expr,
        schema_of: &LogicalPlan,
        input: LogicalPlan,
        from: usize,
    ) -> Result<Option<LogicalPlan>> {
        let (mut own, mut keys) = (Vec::new(), self.columns(from));
        for part in split_conjunction_owned(predicate) {
            match part {
                part if !part.contains_outer() => own.push(part),
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                    let [here, outer] = if left.contains_outer() { [right, left] } else { [left, right] };
                    if here.contains_outer() || here.is_volatile() || outer.any_column_refs() {
                        return Ok(None);
                    }
                    keys.push(here.alias(key_name(self.compared.len())));
                    self.compared.push(*outer);
                }
                _ => return Ok(None),
            }
        }
        LogicalPlanBuilder::from(filtered(input, own)?)
            .project(all_columns(schema_of.schema()).into_iter().chain(keys))?
            .build()
            .map(Some)
    }

    /// The rows of a plan with their number among those of the same keys, in the order of the plan.
    fn numbered(&mut self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let from = self.compared.len();
        let (input, order) = match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) if is_ordered(input) => {
                let Some(inner) = self.numbered(input)? else { return Ok(None) };
                let Some(columns) = self.without_outer(expr.clone(), &inner)? else { return Ok(None) };
                let columns = columns.into_iter().chain(self.columns(from)).chain([unqualified(NUMBER)]);
                return LogicalPlanBuilder::from(inner).project(columns)?.build().map(Some);
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (sort.input.as_ref(), sort.expr.clone()),
            plan => (plan, Vec::new()),
        };
        if order.iter().any(|key| key.expr.contains_outer()) {
            return Ok(None);
        }
        let Some(inner) = self.pulled_from(input)? else { return Ok(None) };
        let number = number(self.columns(from), order)?;
        LogicalPlanBuilder::from(inner).window(vec![number])?.build().map(Some)
    }

    /// The columns of a plan and those of its keys, without others that an operator added.
    fn shown(&self, with: LogicalPlanBuilder, plan: &LogicalPlan, from: usize) -> Result<Option<LogicalPlan>> {
        with.project(all_columns(plan.schema()).into_iter().chain(self.columns(from)))?.build().map(Some)
    }

    /// Expressions with keys for the outer columns that they are equal to; `None` if one has another outer column.
    fn without_outer(&self, exprs: Vec<Expr>, input: &LogicalPlan) -> Result<Option<Vec<Expr>>> {
        let names = NamePreserver::new_for_projection();
        let replaced = exprs.into_iter().map(|expr| {
            let name = names.save(&expr);
            Ok(self.with_keys_for_outer(expr, input)?.map(|expr| name.restore(expr)))
        });
        replaced.collect()
    }

    fn with_keys_for_outer(&self, expr: Expr, input: &LogicalPlan) -> Result<Option<Expr>> {
        let replaced = expr.transform_up(|part| {
            let Expr::OuterReferenceColumn(field, _) = &part else { return Ok(Transformed::no(part)) };
            let Some(at) = self.compared.iter().position(|outer| *outer == part) else {
                return Ok(Transformed::no(part));
            };
            let key = unqualified(key_name(at));
            let same = key.type_in(input.schema()).is_ok_and(|of_key| of_key == *field.data_type());
            Ok(if same { Transformed::yes(key) } else { Transformed::no(part) })
        });
        Ok(Some(replaced.data()?).filter(|expr| !expr.contains_outer()))
    }
}

/// True for a sort, whose order the columns above keep.
fn is_ordered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => is_ordered(&node.input),
        plan => matches!(plan, LogicalPlan::Sort(_)),
    }
}

/// True if a subquery in an expression of a node refers to a query outside of the node's.
fn has_farther_subquery(plan: &LogicalPlan) -> Result<bool> {
    let schema = merge_schema(&plan.inputs());
    let is_farther =
        |outer: &Expr| !matches!(outer, Expr::OuterReferenceColumn(_, column) if schema.has_column(column));
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |=
            expr.exists(|part| Ok(subquery_of(part).is_some_and(|it| it.outer_ref_columns.iter().any(is_farther))))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The number of a row among those of the same keys.
fn number(keys: Vec<Expr>, order: Vec<SortExpr>) -> Result<Expr> {
    let number = row_number().partition_by(keys);
    // A window without an order is not one with an empty order.
    let number = if order.is_empty() { number } else { number.order_by(order) };
    Ok(number.build()?.alias(NUMBER))
}

/// Rows that are skipped, and the number of those that are kept if that is limited; `None` without literals.
pub(in crate::session) fn rows_of(limit: &Limit) -> Result<Option<(u64, Option<u64>)>> {
    Ok(match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(skip), FetchType::Literal(fetch)) => Some((skip as u64, fetch.map(|fetch| fetch as u64))),
        _ => None,
    })
}
