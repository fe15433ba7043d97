//! From a statement to its plan. The shell, the servers and users of the library all plan statements here.

use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr as LogicalExpr, LogicalPlan, LogicalPlanBuilder, Statement as Utility};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Statement as Ast, UnaryOperator, Value};

use super::defaults::reset_as_set;
use super::parse::parse_statements;
use super::plan::common_types::common_types;
use super::plan::described::described;
use super::plan::guarded::guarded;
use super::plan::kept_order::{kept_order, with_sorts};
use super::plan::lateral::lateral;
use super::plan::moved_subqueries::moved_subqueries;
use super::plan::series_names::with_own_series;
use super::plan::signed_numbers::signed_numbers;
use super::plan_size::check_calls;
use super::planning_turn::PlanningTurn;
use super::syntax::{self, Editor};
use super::time_zone::{follow_time_zone, resolve_time_zone};
use super::tree::ambiguous_names::check_outer_names;
use super::tree::exact_numbers::exact_numbers;
use super::tree::listings::listings;
use super::tree::merged_columns::{expand_wildcards, merge_columns};
use super::tree::misread::as_standard;
use super::tree::nested_names::with_different_names;
use super::tree::output_names::{
    DistinctNames, EveryName, groups_by_casts, is_marked, shown_name, unique_names, with_named_columns,
};
use super::tree::own_names::with_own_names;
use super::tree::recursive_types::check_recursive_types;
use super::tree::repeated_random::repeated_random;
use super::tree::search_names::{lacks_name, uses_name, with_search_names};
use super::tree::sorted_names::SortedNames;
use super::tree::sorted_positions::SortedPositions;
use crate::error::{Error, ErrorKind};
use crate::memory;
use crate::optimizer::grouped_expressions;

/// Plans a statement and returns its result, as [`SessionContext::sql`] does, but with the meaning of the SQL standard.
///
/// The engine alone misreads some statements, such as joins with USING, and IS DISTINCT FROM before AND. It refuses others,
/// such as `SELECT 1, 1` or `FETCH FIRST 3 ROWS ONLY`. If several columns have the same name, the further ones get a number:
/// `aid`, `aid_1`. Planning sends no request; statements that change the session, such as `SET` and `CREATE VIEW`, take
/// effect at once.
///
/// # Errors
/// Those of planning; [`ErrorKind::Query`] for a text that is not exactly one statement.
pub async fn sql(context: &SessionContext, text: &str) -> Result<DataFrame> {
    let mut statements = parse_statements(text)?;
    let (Some(statement), 0) = (statements.pop_front(), statements.len()) else {
        return Err(Error::new(ErrorKind::Query, "expected exactly one statement").into());
    };
    let plan = plan_statement(&PlanningTurn::unbounded(), &context.state(), statement).await?;
    let sets = matches!(&plan, LogicalPlan::Statement(Utility::SetVariable(_) | Utility::ResetVariable(_)));
    let frame = context.execute_logical_plan(uniquely_named(plan)?).await?;
    if sets {
        follow_time_zone(context).await?;
    }
    Ok(frame)
}

/// Plans a statement. Sends no request.
///
/// Columns of the plan may have the marks of [`shown_name`].
///
/// # Errors
/// Those of the engine; [`ErrorKind::Unsupported`] and [`ErrorKind::Query`] for statements that it would misread.
pub(crate) async fn plan_statement(
    _turn: &PlanningTurn<'_>,
    state: &SessionState,
    statement: Statement,
) -> Result<LogicalPlan> {
    repeated_random(state, &statement)?;
    let state = with_sorts(state);
    let state = state.as_ref();
    let statement = with_named_columns(listings(state, statement)?);
    let statement = with_different_names(as_standard(exact_numbers(resolve_time_zone(statement)))?);
    // Planning never waits, so a statement that was ended stops between its steps.
    memory::check()?;
    let mut statement = with_own_names(state, merge_columns(state, statement).await?);
    if uses_name(&statement)
        && let Some(named) = with_search_names(state, statement.clone(), true).await?
    {
        statement = named;
    }
    memory::check()?;
    let plan = match planned(state, statement.clone()).await {
        Err(refused) if lacks_name(&refused) => match with_search_names(state, statement.clone(), false).await? {
            Some(statement) => planned(state, statement).await,
            None => Err(refused),
        },
        outcome => outcome,
    };
    memory::check()?;
    let plan = reset_as_set(plan?, state.config());
    check_calls(&plan)?;
    check_outer_names(&statement, &plan)?;
    check_recursive_types(&statement, &plan)?;
    let plan = moved_subqueries(grouped_expressions(lateral(kept_order(with_own_series(plan)?)?)?)?)?;
    guarded(common_types(signed_numbers(described(plan)?)?)?)
}

async fn planned(state: &SessionState, statement: Statement) -> Result<LogicalPlan> {
    let (mut names, mut of_columns) = (SortedNames::default(), statement.clone());
    syntax::edit_statement(&mut of_columns, &mut names);
    if names.renamed > 0
        && let Ok(plan) = planned_as_written(state, of_columns).await
    {
        return Ok(plan);
    }
    let again = is_query(&statement).then(|| statement.clone());
    match (planned_as_written(state, statement).await, again) {
        (Err(refused), Some(mut statement)) if negates_unsigned(&refused) => {
            syntax::edit_statement(&mut statement, &mut Differences);
            planned_as_written(state, statement).await.map_err(|_| refused)
        }
        (outcome, _) => outcome,
    }
}

/// True if the engine refused the negation of a number that is signed only in the plan.
fn negates_unsigned(error: &DataFusionError) -> bool {
    error.to_string().contains("Unary operator '-' only supports signed")
}

/// Writes negations as differences.
struct Differences;

impl Editor for Differences {
    fn post_visit_expr(&mut self, expr: &mut Expr) {
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } = expr
            && !matches!(operand.as_ref(), Expr::Value(_) | Expr::Interval(_))
        {
            let zero = Box::new(Expr::value(Value::Number("0".to_owned(), false)));
            let difference = Expr::BinaryOp { left: zero, op: BinaryOperator::Minus, right: operand.clone() };
            *expr = Expr::Nested(Box::new(difference));
        }
    }
}

async fn planned_as_written(state: &SessionState, mut statement: Statement) -> Result<LogicalPlan> {
    if groups_by_casts(&statement) {
        syntax::edit_statement(&mut statement, &mut EveryName::default());
    }
    memory::check()?;
    let written = statement.clone();
    let refused = match plan_as_is(state, statement).await {
        Ok(plan) => return Ok(plan),
        Err(refused) => refused,
    };
    let (mut positions, mut expressions) = (SortedPositions::default(), written.clone());
    syntax::edit_statement(&mut expressions, &mut positions);
    let (refused, statement) = match positions.replaced {
        0 => (refused, written),
        _ => match plan_as_is(state, expressions.clone()).await {
            Ok(plan) => return Ok(plan),
            // Names are left to make unique.
            Err(error) if has_one_name_twice(&error) => (error, expressions),
            Err(_) => (refused, written),
        },
    };
    if !is_query(&statement) {
        return Err(refused);
    }
    // The engine refuses results with the same name. Only then are they renamed, so that other statements keep their names.
    let statement = match expand_wildcards(state, statement).await {
        Ok(statement) => statement,
        Err(error) if Error::find(&error).is_some() => return Err(error),
        Err(_) => return Err(refused),
    };
    let mut names = DistinctNames::new();
    let mut distinct = statement;
    syntax::edit_statement(&mut distinct, &mut names);
    if let Some(error) = names.error {
        return Err(error.into());
    }
    let error = match names.renamed {
        0 => None,
        _ => match plan_as_is(state, distinct.clone()).await {
            Ok(plan) => return Ok(plan),
            Err(error) => Some(error),
        },
    };
    // Marks are for the engine alone.
    let for_people = |error: &DataFusionError| !is_marked(&error.to_string());
    if !has_one_name_twice(&refused) {
        return Err(error.filter(for_people).unwrap_or(refused));
    }
    let mut every = distinct;
    syntax::edit_statement(&mut every, &mut EveryName::default());
    match plan_as_is(state, every).await {
        Ok(plan) => Ok(plan),
        // A statement may have another fault than its names.
        Err(other) if !has_one_name_twice(&other) && for_people(&other) => Err(other),
        Err(_) => Err(refused),
    }
}

/// Plans a statement in the engine.
fn plan_as_is(state: &SessionState, statement: Statement) -> impl Future<Output = Result<LogicalPlan>> {
    tracing::trace!("statement planned");
    state.statement_to_plan(statement)
}

/// True if the engine refused expressions of one name.
fn has_one_name_twice(error: &DataFusionError) -> bool {
    let message = error.to_string();
    ["unique expression names", "duplicate unqualified field name", "which would be ambiguous"]
        .iter()
        .any(|twice| message.contains(twice))
}

/// True for a statement whose rows are shown: a query, or EXPLAIN of one.
fn is_query(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(ast) => matches!(ast.as_ref(), Ast::Query(_)),
        Statement::Explain(explain) => is_query(&explain.statement),
        _ => false,
    }
}

/// The plan without marks in the names of its columns.
fn uniquely_named(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let schema = plan.schema();
    if schema.fields().iter().all(|field| shown_name(field.name()) == field.name()) {
        return Ok(plan);
    }
    let names = unique_names(schema.fields().iter().map(|field| field.name().as_str()));
    let columns = schema.columns().into_iter().zip(names).map(|(column, name)| LogicalExpr::Column(column).alias(name));
    let columns: Vec<LogicalExpr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
