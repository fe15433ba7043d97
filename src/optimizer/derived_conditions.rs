//! Moves correlated conditions out of derived tables, and gives the columns that they compare names of their own.
//!
//! The engine turns a correlated subquery into a join, and takes its correlated conditions as conditions of the join:
//!
//! - Below the alias of a derived table, it loses the columns that they compare, and then fails with names that nobody wrote, or
//!   panics: `EXISTS (SELECT 1 FROM (SELECT e.b FROM e WHERE e.a = o.a) q WHERE …)`.
//! - If another column of the subquery has the same name, it compares that one: `x IN (SELECT e.a FROM e, f WHERE f.a = o.a)`.
//!
//! Invariant: a condition passes an operator only if the rows are the same when it is evaluated after it. It stays below all
//! others, for which `subqueries` refuses what the engine computes wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Sort, Subquery, SubqueryAlias,
};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::{filtered, is_equality, map_subquery, subquery_of};
use crate::error::{Error, ErrorKind};

/// See the module's documentation. Runs before the rules that read the conditions of subqueries.
#[derive(Debug)]
pub(super) struct DerivedConditions;

impl AnalyzerRule for DerivedConditions {
    fn name(&self) -> &str {
        "savedsearch_derived_conditions"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            if let LogicalPlan::Subquery(subquery) = plan {
                return Ok(above_derived(subquery)?.update_data(LogicalPlan::Subquery));
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = expr.transform_up(|part| map_subquery(part, above_derived))?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })
        })
        .data()
    }
}

/// The subquery with its correlated conditions above its derived tables.
fn above_derived(subquery: Subquery) -> Result<Transformed<Subquery>> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(subquery));
    }
    check_aggregates(&subquery.subquery)?;
    let mut moved = Moved { columns: 0 };
    let plan = moved.below(Arc::unwrap_or_clone(subquery.subquery))?;
    let plan = moved.with_own_names(plan, &BTreeSet::new())?;
    Ok(Transformed::new_transformed(Subquery { subquery: Arc::new(plan), ..subquery }, moved.columns > 0))
}

/// Refuses aggregates of outer columns alone: in the standard, they belong to the outer query, and the engine computes them in the
/// subquery.
///
/// # Errors
/// [`ErrorKind::Unsupported`], naming the aggregate.
fn check_aggregates(plan: &LogicalPlan) -> Result<()> {
    let mut outer = None;
    plan.apply(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            // The standard has no such aggregate. It is the value of a scalar subquery.
            let first =
                |expr: &Expr| Ok(matches!(expr, Expr::AggregateFunction(call) if call.func.name() == "first_value"));
            let is_outer = |expr: &&Expr| {
                expr.contains_outer() && expr.column_refs().is_empty() && !expr.exists(first).unwrap_or(false)
            };
            outer = aggregate.aggr_expr.iter().find(is_outer).map(ToString::to_string);
        }
        Ok(if outer.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    let Some(outer) = outer else { return Ok(()) };
    let error = format!(
        "{} in a subquery is not supported: its columns are those of the outer query",
        outer.replace("outer_ref", "")
    );
    let advice = "compute it in the outer query, or in a subquery of FROM";
    Err(Error::new(ErrorKind::Unsupported, error).advice(advice).into())
}

/// Columns that the conditions of one subquery needed.
struct Moved {
    /// Columns that derived tables have in addition, so far.
    columns: usize,
}

impl Moved {
    /// The plan with the same columns, whose conditions are above the derived tables that are its inputs.
    fn below(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let chooses = matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
        plan.map_children(|child| self.settled(child, !chooses).map(Transformed::yes)).data()
    }

    /// An input whose conditions are at its top if they were in a derived table, with the same columns if `exact`, and more otherwise.
    fn settled(&mut self, input: LogicalPlan, exact: bool) -> Result<LogicalPlan> {
        if !matches!(input, LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
            return self.below(input);
        }
        let columns = input.schema().columns();
        let before = self.columns;
        let (input, conditions) = self.without_conditions(input)?;
        let input = filtered(input, conditions)?;
        if self.columns == before || !exact {
            return Ok(input);
        }
        LogicalPlanBuilder::from(input).project(columns.into_iter().map(Expr::Column))?.build()
    }

    /// The plan without those of its correlated conditions that may be evaluated later, and with the columns that they need; and
    /// the conditions, over those columns.
    fn without_conditions(&mut self, plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Expr>)> {
        match plan {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let (input, mut conditions) = self.without_conditions(Arc::unwrap_or_clone(input))?;
                let (correlated, own) =
                    split_conjunction_owned(predicate).into_iter().partition::<Vec<_>, _>(is_movable);
                conditions.extend(correlated);
                Ok((filtered(input, own)?, conditions))
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let (input, conditions) = self.without_conditions(Arc::unwrap_or_clone(input))?;
                let inner = input.schema().columns();
                let plan = LogicalPlanBuilder::from(input).alias(alias)?.build()?;
                let names = inner.into_iter().zip(plan.schema().columns()).collect();
                Ok((plan, renamed(conditions, &names)?))
            }
            LogicalPlan::Projection(Projection { mut expr, input, .. }) => {
                let (input, conditions) = self.without_conditions(Arc::unwrap_or_clone(input))?;
                let names = self.added(&conditions, &mut expr);
                let plan = Projection::try_new(expr, Arc::new(input))?;
                Ok((LogicalPlan::Projection(plan), renamed(conditions, &names)?))
            }
            // A key that is equal to a value of the outer row is one value, and so divides no group.
            LogicalPlan::Aggregate(Aggregate { input, mut group_expr, aggr_expr, .. })
                if !group_expr.is_empty() && !matches!(group_expr[..], [Expr::GroupingSet(_)]) =>
            {
                let (input, conditions) = self.without_conditions(Arc::unwrap_or_clone(input))?;
                let (equal, others): (Vec<_>, Vec<_>) =
                    conditions.into_iter().partition(|condition| is_of_one_value(condition, input.schema()));
                let names = self.added(&equal, &mut group_expr);
                let plan = Aggregate::try_new(Arc::new(filtered(input, others)?), group_expr, aggr_expr)?;
                Ok((LogicalPlan::Aggregate(plan), renamed(equal, &names)?))
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let mut columns = input.schema().columns();
                let (input, conditions) = self.without_conditions(Arc::unwrap_or_clone(input))?;
                let (equal, others): (Vec<_>, Vec<_>) =
                    conditions.into_iter().partition(|condition| is_of_one_value(condition, input.schema()));
                let compared: BTreeSet<&Column> = equal.iter().flat_map(Expr::column_refs).collect();
                columns.extend(
                    compared.into_iter().filter(|column| !columns.contains(column)).cloned().collect::<Vec<_>>(),
                );
                let rows = LogicalPlanBuilder::from(filtered(input, others)?)
                    .project(columns.into_iter().map(Expr::Column))?;
                Ok((rows.distinct()?.build()?, equal))
            }
            // An order without LIMIT is that of rows that the outer query puts together in another one.
            LogicalPlan::Sort(Sort { input, fetch: None, .. }) => self.without_conditions(Arc::unwrap_or_clone(input)),
            LogicalPlan::Join(join) => {
                let (of_left, of_right) = match join.join_type {
                    JoinType::Inner => (true, true),
                    JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
                    JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (false, true),
                    JoinType::Full => (false, false),
                };
                let mut side = |passes: bool, side| match passes {
                    true => self.without_conditions(Arc::unwrap_or_clone(side)),
                    false => Ok((self.settled(Arc::unwrap_or_clone(side), true)?, vec![])),
                };
                let (left, mut conditions) = side(of_left, join.left)?;
                let (right, more) = side(of_right, join.right)?;
                conditions.extend(more);
                let Join { on, filter, join_type, join_constraint, null_equality, null_aware, .. } = join;
                let (left, right) = (Arc::new(left), Arc::new(right));
                let join =
                    Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)?;
                Ok((LogicalPlan::Join(join), conditions))
            }
            other => Ok((self.below(other)?, vec![])),
        }
    }

    /// The plan whose correlated conditions compare columns with names that no other column has, from there to the top. `above` are
    /// the columns of the operators above.
    fn with_own_names(&mut self, plan: LogicalPlan, above: &BTreeSet<Column>) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let columns = input.schema().columns();
                let names = columns.iter().chain(above).cloned().collect();
                let input = self.with_own_names(Arc::unwrap_or_clone(input), &names)?;
                let is_shared = |column: &&Column| names.iter().any(|it| it.name == column.name && it != *column);
                let conditions = split_conjunction(&predicate).into_iter().filter(|conjunct| conjunct.contains_outer());
                let shared: BTreeSet<&Column> = conditions.flat_map(Expr::column_refs).filter(is_shared).collect();
                if shared.is_empty() {
                    return LogicalPlanBuilder::from(input).filter(predicate)?.build();
                }
                let shared = shared.into_iter().cloned().map(Expr::Column).collect::<Vec<_>>();
                let mut exprs = columns.into_iter().map(Expr::Column).collect();
                let names = self.added(&shared, &mut exprs);
                let (conditions, own) =
                    split_conjunction_owned(predicate).into_iter().partition::<Vec<_>, _>(Expr::contains_outer);
                let plan = LogicalPlanBuilder::from(filtered(input, own)?).project(exprs)?.build()?;
                filtered(plan, renamed(conditions, &names)?)
            }
            LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Sort(_) => {
                let names = plan.schema().columns().into_iter().chain(above.iter().cloned()).collect();
                plan.map_children(|input| self.with_own_names(input, &names).map(Transformed::yes)).data()
            }
            other => Ok(other),
        }
    }

    /// Adds the columns of the conditions to the expressions of a node, and gives their new names.
    fn added(&mut self, conditions: &[Expr], to: &mut Vec<Expr>) -> BTreeMap<Column, Column> {
        let compared: BTreeSet<&Column> = conditions.iter().flat_map(Expr::column_refs).collect();
        let columns = compared.into_iter().map(|column| {
            self.columns += 1;
            let name = format!("__compared_{}", self.columns);
            to.push(Expr::Column(column.clone()).alias(&name));
            (column.clone(), Column::new_unqualified(name))
        });
        columns.collect()
    }
}

/// True for `column = outer value`, if equal values of the column's type are the same for GROUP BY and DISTINCT.
fn is_of_one_value(condition: &Expr, schema: &DFSchema) -> bool {
    let exact = |column: &Column| {
        schema.data_type(column).is_ok_and(|data_type| !data_type.is_floating() && !data_type.is_nested())
    };
    is_equality(condition) && condition.column_refs().into_iter().all(exact)
}

/// True for a conjunct that compares with a row of the outer query, and may be evaluated later.
fn is_movable(conjunct: &Expr) -> bool {
    let subquery = conjunct.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true);
    conjunct.contains_outer() && !conjunct.is_volatile() && !subquery
}

fn renamed(conditions: Vec<Expr>, names: &BTreeMap<Column, Column>) -> Result<Vec<Expr>> {
    let named = |condition: Expr| {
        condition.transform_up(|part| match part {
            Expr::Column(column) => {
                let name = names.get(&column).cloned();
                Ok(Transformed::new(Expr::Column(name.unwrap_or(column)), true, TreeNodeRecursion::Continue))
            }
            other => Ok(Transformed::no(other)),
        })
    };
    conditions.into_iter().map(|condition| named(condition).data()).collect()
}
