//! The order of a derived table, a table of WITH or a view, if it decides what a statement returns.
//!
//! ```text
//! SELECT string_agg(name, ', ') FROM (SELECT name FROM t ORDER BY rank) q
//!   ─▶ SELECT string_agg(name, ', ' ORDER BY q.__order_1) FROM (SELECT name, rank AS __order_1 FROM t) q
//! ```
//!
//! The standard leaves this order open. The engine's planner removes a sort within FROM that has no LIMIT of its own, so that
//! any rows or any text would come. PostgreSQL and DuckDB keep the sort, and tools rely on it: they wrap a statement as
//! `SELECT * FROM (…) q LIMIT 10`. Here the planner keeps all sorts, and each is moved up to what uses its order, through
//! columns, conditions and names:
//!
//! | what receives the rows | what becomes of the order |
//! | --- | --- |
//! | the result, LIMIT, OFFSET, and any operator that is not in this table | ORDER BY there |
//! | `array_agg`, `string_agg`, `first_value`, `last_value`, `nth_value` without an order | the order of the function |
//! | window functions by position, or over ROWS, without an order | the order of the window |
//! | DISTINCT ON without an order | its order, within equal keys |
//! | other aggregates and windows, joins, set operations, DISTINCT, ORDER BY, conditions with subqueries | removed |

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Distinct, DistinctOn, Expr, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection,
    Sort, SortExpr, SubqueryAlias, Window, WindowFrameUnits, WindowFunctionDefinition,
};

use crate::optimizer::expressions::{all_columns, has_subquery};

/// The state to plan statements with, whose plans have all of their sorts.
pub(in crate::session) fn with_sorts(state: &SessionState) -> Cow<'_, SessionState> {
    if !state.config_options().sql_parser.enable_subquery_sort_elimination {
        return Cow::Borrowed(state);
    }
    let mut state = state.clone();
    state.config_mut().options_mut().sql_parser.enable_subquery_sort_elimination = false;
    Cow::Owned(state)
}

/// The plan with its sorts where their order is used, and without the others.
///
/// # Errors
/// Those of building a plan.
pub(in crate::session) fn kept_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut orders = Orders::default();
    let plan = plan.transform_up_with_subqueries(|node| orders.placed(node)).data()?;
    orders.sorted(plan).data()
}

/// The orders of a statement.
#[derive(Default)]
struct Orders {
    /// Columns that were added for keys that a derived table does not return.
    added: usize,
}

/// Rows without their order, and its keys over their columns. They may have further columns than before, at the end.
type Unsorted = (LogicalPlan, Vec<SortExpr>);

impl Orders {
    /// A node whose inputs have the orders that it uses.
    fn placed(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match node {
            // They pass rows on in their order.
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
                Ok(Transformed::no(node))
            }
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::On(distinct)) if distinct.sort_expr.is_none() => self.distinct_on(distinct),
            LogicalPlan::Distinct(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::RecursiveQuery(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::Union(_) => node.map_children(without_sort),
            node => node.map_children(|input| self.sorted(input)),
        }
    }

    /// The rows of a plan, sorted at its top.
    fn sorted(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if is_sorted_above(&plan) {
            return Ok(Transformed::no(plan));
        }
        // The columns above are computed for those rows alone that are returned.
        if let LogicalPlan::Projection(projection) = &plan
            && !projection.expr.iter().any(has_subquery)
        {
            return plan.map_children(|input| self.sorted(input));
        }
        let Some((unsorted, keys)) = self.unsorted(&plan)? else { return Ok(Transformed::no(plan)) };
        shown(sort(unsorted, keys), &plan).map(Transformed::yes)
    }

    /// The rows of a plan whose order is that of a sort below; `None` for others.
    fn unsorted(&mut self, plan: &LogicalPlan) -> Result<Option<Unsorted>> {
        let input = match plan {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => return self.without_order(sort),
            LogicalPlan::Filter(Filter { input, .. })
            | LogicalPlan::Limit(Limit { input, .. })
            | LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => input,
            LogicalPlan::Window(window) if !window.window_expr.iter().any(has_order) => &window.input,
            _ => return Ok(None),
        };
        let Some((inner, mut keys)) = self.unsorted(input)? else { return Ok(None) };
        let plan = match plan {
            LogicalPlan::Filter(filter) => LogicalPlanBuilder::from(inner).filter(filter.predicate.clone())?.build()?,
            // Its rows are chosen by the order.
            LogicalPlan::Limit(limit) => {
                let input = Arc::new(sort(inner, keys.clone()));
                LogicalPlan::Limit(Limit { input, ..limit.clone() })
            }
            LogicalPlan::Projection(projection) => {
                let mut columns = projection.expr.clone();
                let names: Vec<_> = projection.schema.columns();
                for key in &mut keys {
                    let computed = |column: &Expr| !key.expr.is_volatile() && column.clone().unalias() == key.expr;
                    let name = match projection.expr.iter().position(computed) {
                        Some(at) => names[at].clone(),
                        None => {
                            let name = self.name();
                            columns.push(key.expr.clone().alias(&name));
                            Column::new_unqualified(name)
                        }
                    };
                    key.expr = Expr::Column(name);
                }
                LogicalPlanBuilder::from(inner).project(columns)?.build()?
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let columns = inner.schema().columns();
                let plan = LogicalPlanBuilder::from(inner).alias(alias.alias.clone())?.build()?;
                let names = plan.schema().columns();
                for key in &mut keys {
                    key.expr = std::mem::take(&mut key.expr)
                        .transform_up(|part| {
                            let at = part.try_as_col().and_then(|part| columns.iter().position(|known| known == part));
                            Ok(match at {
                                Some(at) => Transformed::yes(Expr::Column(names[at].clone())),
                                None => Transformed::no(part),
                            })
                        })
                        .data()?;
                }
                plan
            }
            LogicalPlan::Window(window) => {
                LogicalPlan::Window(Window::try_new(window.window_expr.clone(), Arc::new(inner))?)
            }
            _ => return Ok(None),
        };
        Ok(Some((plan, keys)))
    }

    /// The rows of a sort without their order. Keys that must be computed here are columns.
    fn without_order(&mut self, sort: &Sort) -> Result<Option<Unsorted>> {
        if sort.expr.iter().any(|key| key.expr.contains_outer()) {
            return Ok(None);
        }
        let (mut columns, mut keys) = (all_columns(sort.input.schema()), sort.expr.clone());
        let before = columns.len();
        for key in keys.iter_mut().filter(|key| has_subquery(&key.expr) || key.expr.is_volatile()) {
            let name = self.name();
            columns.push(std::mem::replace(&mut key.expr, Expr::Column(Column::new_unqualified(&name))).alias(name));
        }
        let input = sort.input.as_ref().clone();
        let rows = match columns.len() == before {
            true => input,
            false => LogicalPlanBuilder::from(input).project(columns)?.build()?,
        };
        Ok(Some((rows, keys)))
    }

    /// Name of a column that is added.
    fn name(&mut self) -> String {
        self.added += 1;
        format!("__order_{}", self.added)
    }

    /// Window functions that see the rows in their order; the rows keep it.
    fn window(&mut self, window: Window) -> Result<Transformed<LogicalPlan>> {
        if window.window_expr.iter().any(has_order) {
            return LogicalPlan::Window(window).map_children(without_sort);
        }
        if !window.window_expr.iter().any(follows_order) {
            return Ok(Transformed::no(LogicalPlan::Window(window)));
        }
        let Some((input, keys)) = self.unsorted(&window.input)? else {
            return Ok(Transformed::no(LogicalPlan::Window(window)));
        };
        // The functions of a node have one order.
        let (ordered, others): (Vec<_>, Vec<_>) = window.window_expr.iter().cloned().partition(follows_order);
        let ordered = renamed(ordered, |expr| {
            expr.transform(|part| match part {
                Expr::WindowFunction(mut function) => {
                    function.params.order_by.clone_from(&keys);
                    Ok(Transformed::yes(Expr::WindowFunction(function)))
                }
                part => Ok(Transformed::no(part)),
            })
            .data()
        })?;
        let mut plan = sort(input, keys.clone());
        for functions in [others, ordered] {
            if !functions.is_empty() {
                plan = LogicalPlan::Window(Window::try_new(functions, Arc::new(plan))?);
            }
        }
        let columns = all_columns(&window.schema);
        LogicalPlanBuilder::from(plan).project(columns)?.build().map(Transformed::yes)
    }

    /// Aggregates that see the rows in their order.
    fn aggregate(&mut self, aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
        let unsorted = match aggregate.aggr_expr.iter().any(collects_unordered) {
            true => self.unsorted(&aggregate.input)?,
            false => None,
        };
        let Some((input, keys)) = unsorted else {
            return LogicalPlan::Aggregate(aggregate).map_children(without_sort);
        };
        let aggregates = renamed(aggregate.aggr_expr, |expr| {
            expr.transform(|part| match part {
                Expr::AggregateFunction(mut function) if is_unordered(&function) => {
                    function.params.order_by.clone_from(&keys);
                    Ok(Transformed::yes(Expr::AggregateFunction(function)))
                }
                part => Ok(Transformed::no(part)),
            })
            .data()
        })?;
        let plan = Aggregate::try_new(Arc::new(input), aggregate.group_expr, aggregates)?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(plan)))
    }

    /// The first row of each key, in the order of the rows.
    fn distinct_on(&mut self, distinct: DistinctOn) -> Result<Transformed<LogicalPlan>> {
        let Some((input, keys)) = self.unsorted(&distinct.input)? else {
            return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::On(distinct))));
        };
        let on = distinct.on_expr;
        let within = keys.into_iter().filter(|key| !on.contains(&key.expr));
        let order = on.iter().map(|key| key.clone().sort(true, false)).chain(within).collect();
        let plan = DistinctOn::try_new(on.clone(), distinct.select_expr, Some(order), Arc::new(input))?;
        Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(plan))))
    }
}

/// The rows sorted by keys, which are expressions over their columns.
fn sort(input: LogicalPlan, expr: Vec<SortExpr>) -> LogicalPlan {
    LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch: None })
}

/// True for a sort below nothing but columns and limits, the form that the planner gives to ORDER BY.
fn is_sorted_above(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_sorted_above(&projection.input),
        LogicalPlan::Limit(limit) => is_sorted_above(&limit.input),
        plan => matches!(plan, LogicalPlan::Sort(_)),
    }
}

/// The rows without their order, which nothing uses.
fn without_sort(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => Ok(Transformed::yes(Arc::unwrap_or_clone(sort.input))),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Window(_) => plan.map_children(without_sort),
        plan => Ok(Transformed::no(plan)),
    }
}

/// The columns of a plan that had no further ones.
fn shown(with: LogicalPlan, plan: &LogicalPlan) -> Result<LogicalPlan> {
    if with.schema().fields().len() == plan.schema().fields().len() {
        return Ok(with);
    }
    LogicalPlanBuilder::from(with).project(all_columns(plan.schema()))?.build()
}

/// Changed expressions with the names that they had.
fn renamed(exprs: Vec<Expr>, mut change: impl FnMut(Expr) -> Result<Expr>) -> Result<Vec<Expr>> {
    let names = NamePreserver::new_for_projection();
    let changed = exprs.into_iter().map(|expr| {
        let name = names.save(&expr);
        change(expr).map(|expr| name.restore(expr))
    });
    changed.collect()
}

/// True for a window function with an order of its own.
fn has_order(expr: &Expr) -> bool {
    let ordered =
        |part: &Expr| Ok(matches!(part, Expr::WindowFunction(function) if !function.params.order_by.is_empty()));
    expr.exists(ordered).unwrap_or(false)
}

/// True for a window function of which an order changes the result, but not by rows that are equal in it.
fn follows_order(expr: &Expr) -> bool {
    let follows = |part: &Expr| {
        let Expr::WindowFunction(function) = part else { return Ok(false) };
        let frame = &function.params.window_frame;
        let whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
        let rows = frame.units == WindowFrameUnits::Rows;
        Ok(match &function.fun {
            WindowFunctionDefinition::WindowUDF(function) => match function.name() {
                "lag" | "lead" | "ntile" | "row_number" => true,
                "first_value" | "last_value" | "nth_value" => whole || rows,
                _ => false,
            },
            WindowFunctionDefinition::AggregateUDF(function) => match whole {
                true => collects(function),
                false => rows,
            },
        })
    };
    expr.exists(follows).unwrap_or(false)
}

/// True for an expression with a function of [`is_unordered`].
fn collects_unordered(expr: &Expr) -> bool {
    expr.exists(|part| Ok(matches!(part, Expr::AggregateFunction(function) if is_unordered(function)))).unwrap_or(false)
}

/// True for a function that collects rows and has no order.
fn is_unordered(function: &AggregateFunction) -> bool {
    function.params.order_by.is_empty() && !function.params.distinct && collects(&function.func)
}

/// True for a function of which the order of its rows decides the result. The engine's default, a hard requirement, is also that
/// of `count` and `avg`.
fn collects(function: &AggregateUDF) -> bool {
    use AggregateOrderSensitivity::{Beneficial, SoftRequirement};
    matches!(function.order_sensitivity(), Beneficial | SoftRequirement) || function.name() == "nth_value"
}
