//! What SQL may do here, and how it becomes a plan: one statement, read-only but for the session's own tables and settings.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, Statement as Utility};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Statement as SqlStatement, Value, visit_expressions, visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Location;

use super::complexity_limits;
use super::sessions::Session;
use super::type_compat::result_schema;
use crate::error::{Error, ErrorKind};
use crate::session::check_sizes;
use crate::table::query_name;

/// A statement that was understood.
#[derive(Debug)]
pub(super) struct Statement {
    /// What it comes to, parameters still open.
    pub(super) plan: LogicalPlan,
    /// Whether it changes the session, and has no result.
    pub(super) effect: bool,
    /// Its parameters in their order, each nullable.
    pub(super) parameters: SchemaRef,
    /// Its result; no columns for an effect.
    pub(super) schema: SchemaRef,
}

/// A plan that can be run.
#[derive(Debug)]
pub(super) struct Runnable {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) task: Arc<TaskContext>,
    /// The name of the query in `system.requests`.
    pub(super) query: String,
}

const TIME_ZONE: &str = "datafusion.execution.time_zone";

/// Settings of the engine that a session may change: those that change what is printed or what a text means, and take no
/// more memory or tasks.
const SETTINGS: [&str; 6] = [
    TIME_ZONE,
    "datafusion.sql_parser.default_null_ordering",
    "datafusion.explain.format",
    "datafusion.explain.logical_plan_only",
    "datafusion.explain.physical_plan_only",
    "datafusion.explain.show_statistics",
];

/// Whether a session may change a setting.
pub(super) fn may_set(variable: &str) -> bool {
    variable.starts_with("savedsearch.") || SETTINGS.contains(&variable)
}

impl Statement {
    /// Understands a text. Nothing is asked of the service.
    ///
    /// # Errors
    /// Those of the engine; [`ErrorKind::Unsupported`] for what would write.
    pub(super) async fn of(session: &Session, sql: &str) -> Result<Self> {
        let state = session.context.state();
        let plan = state.statement_to_plan(parse(sql)?).await?;
        complexity_limits::size(&plan)?;
        check_sizes(&plan)?;
        let effect = check(&plan)?;
        let parameters = parameters(&plan)?;
        let schema = if effect {
            Arc::new(Schema::empty())
        } else {
            let nulls = parameters.fields().iter().map(|field| ScalarValue::try_from(field.data_type()));
            let known = bound(&plan, nulls.collect::<Result<_>>()?)?;
            result_schema(known.schema().as_arrow())
        };
        Ok(Self { plan, effect, parameters, schema })
    }

    /// The plan with its parameters given.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] where their number is another.
    pub(super) fn bind(&self, values: Vec<ScalarValue>) -> Result<LogicalPlan> {
        let (takes, given) = (self.parameters.fields().len(), values.len());
        if takes != given {
            let message = format!("the statement takes {takes} parameters, {given} are bound");
            return Err(Error::new(ErrorKind::Query, message).into());
        }
        bound(&self.plan, values)
    }
}

/// Makes a plan that can be run. Nothing is asked of the service.
///
/// # Errors
/// Those of planning.
pub(super) async fn runnable(session: &Session, plan: LogicalPlan) -> Result<Runnable> {
    let (state, plan) = session.context.execute_logical_plan(plan).await?.into_parts();
    let query = query_name(&state);
    let task = state.task_ctx();
    let plan = state.optimize(&plan)?;
    // Literals have been computed by now.
    check_sizes(&plan)?;
    let plan = state.query_planner().create_physical_plan(&plan, &state).await?;
    Ok(Runnable { plan, task, query })
}

/// About how many bytes a plan takes that is kept: its operators and expressions, and the values in them.
pub(super) fn bytes_of_plan(plan: &LogicalPlan) -> usize {
    const OPERATOR: usize = 1 << 10;
    const EXPRESSION: usize = 256;
    let mut bytes = 0;
    // The closures never fail.
    let _ = plan.apply_with_subqueries(|node| {
        bytes += OPERATOR + node.schema().fields().len() * EXPRESSION;
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                bytes += EXPRESSION;
                if let Expr::Literal(value, _) = part {
                    bytes += value.size();
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    bytes
}

/// The one statement of a text, its `?` numbered.
fn parse(sql: &str) -> Result<Parsed> {
    let wrong = |message: String| DataFusionError::from(Error::new(ErrorKind::Query, message));
    complexity_limits::depth(sql)?;
    let mut statements = DFParserBuilder::new(sql).with_dialect(&GenericDialect {}).build()?.parse_statements()?;
    let (Some(mut statement), 0) = (statements.pop_front(), statements.len()) else {
        return Err(wrong("expected one statement, not none and not several".to_owned()));
    };
    complexity_limits::tables(&statement)?;
    complexity_limits::groups(&statement)?;
    complexity_limits::types(&statement)?;
    number_parameters(&mut statement).map_err(wrong)?;
    match &mut statement {
        // Before the engine looks for files.
        Parsed::CopyTo(_) => return Err(refused("COPY")),
        Parsed::CreateExternalTable(_) => return Err(refused("CREATE EXTERNAL TABLE")),
        // All tables and views of a session are temporary; the engine knows none that are called so.
        Parsed::Statement(statement) => match statement.as_mut() {
            SqlStatement::Insert(_) => return Err(refused("INSERT")),
            SqlStatement::Update(_) => return Err(refused("UPDATE")),
            SqlStatement::Delete(_) => return Err(refused("DELETE")),
            SqlStatement::CreateTable(table) => table.temporary = false,
            SqlStatement::CreateView(view) => view.temporary = false,
            _ => {}
        },
        _ => {}
    }
    Ok(statement)
}

/// What would change more than the session.
fn refused(what: &str) -> DataFusionError {
    let error = Error::new(ErrorKind::Unsupported, format!("{what} is not supported: the service is read-only"));
    error.advice("what works: queries, SET savedsearch.…, CREATE VIEW, CREATE TABLE … AS, and DROP of those").into()
}

/// Turns each `?` into `$1`, `$2`, … by where it stands in the text.
fn number_parameters(statement: &mut Parsed) -> Result<(), String> {
    let statement = match statement {
        Parsed::Statement(statement) => statement.as_mut(),
        Parsed::Explain(explain) => return number_parameters(&mut explain.statement),
        _ => return Ok(()),
    };
    let (mut places, mut named) = (Vec::<Location>::new(), false);
    let _ = visit_expressions(statement, |expression| {
        if let SqlExpr::Value(value) = expression
            && let Value::Placeholder(name) = &value.value
        {
            if name == "?" { places.push(value.span.start) } else { named = true }
        }
        ControlFlow::<()>::Continue(())
    });
    if named && !places.is_empty() {
        return Err("parameters are either all ? or all $1, $2, …".to_owned());
    }
    places.sort_by_key(|place| (place.line, place.column));
    let numbers: HashMap<Location, usize> = places.into_iter().zip(1..).collect();
    let _ = visit_expressions_mut(statement, |expression| {
        if let SqlExpr::Value(value) = expression
            && let Value::Placeholder(name) = &mut value.value
            && let Some(number) = numbers.get(&value.span.start)
        {
            *name = format!("${number}");
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(())
}

/// Whether a plan changes the session.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for what would change more than that.
fn check(plan: &LogicalPlan) -> Result<bool> {
    let refuse = |what: String| Err(refused(&what));
    let (effect, inner) = match plan {
        LogicalPlan::Ddl(ddl) => match ddl {
            DdlStatement::CreateView(_) | DdlStatement::CreateMemoryTable(_) => (true, ddl.inputs()),
            DdlStatement::DropTable(_) | DdlStatement::DropView(_) => (true, Vec::new()),
            other => return refuse(other.name().to_owned()),
        },
        LogicalPlan::Statement(Utility::SetVariable(set))
            if set.variable == TIME_ZONE && set.value.parse::<Tz>().is_err() =>
        {
            let message = format!("`{}` is no time zone: expected a name such as Europe/Berlin, or +01:00", set.value);
            return Err(Error::new(ErrorKind::Query, message).into());
        }
        LogicalPlan::Statement(Utility::SetVariable(set)) if may_set(&set.variable) => (true, Vec::new()),
        LogicalPlan::Statement(Utility::ResetVariable(reset)) if may_set(&reset.variable) => (true, Vec::new()),
        LogicalPlan::Statement(Utility::SetVariable(set)) => return refuse(format!("SET {}", set.variable)),
        LogicalPlan::Statement(Utility::ResetVariable(reset)) => return refuse(format!("RESET {}", reset.variable)),
        query => (false, vec![query]),
    };
    for plan in inner {
        // EXPLAIN ANALYZE would run what it explains.
        let mut writes = None;
        plan.apply_with_subqueries(|node| {
            writes = match node {
                LogicalPlan::Ddl(ddl) => Some(ddl.name().to_owned()),
                LogicalPlan::Dml(dml) => Some(dml.op.name().to_owned()),
                LogicalPlan::Copy(_) => Some("COPY".to_owned()),
                LogicalPlan::Statement(statement) => Some(statement.name().to_owned()),
                _ => return Ok(TreeNodeRecursion::Continue),
            };
            Ok(TreeNodeRecursion::Stop)
        })?;
        if let Some(what) = writes {
            return refuse(what);
        }
    }
    Ok(effect)
}

/// The parameters of a plan in their order. Where nothing tells a type, it is a text.
fn parameters(plan: &LogicalPlan) -> Result<SchemaRef> {
    let known = plan.get_parameter_types()?;
    let wrong = |name: &str| {
        let message = format!("the parameter {name} has no place: parameters are $1, $2, … without a gap, or ?");
        DataFusionError::from(Error::new(ErrorKind::Query, message))
    };
    let numbers = known.keys().map(|name| {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        number.filter(|number| (1..=known.len()).contains(number)).ok_or_else(|| wrong(name))
    });
    let numbers = numbers.collect::<Result<HashSet<usize>>>()?;
    let counts = row_counts(plan)?;
    let fields = (1..=numbers.len()).map(|number| {
        let name = format!("${number}");
        let count = counts.contains(&name).then_some(DataType::Int64);
        let data_type = count.or_else(|| known.get(&name).cloned().flatten().filter(|known| *known != DataType::Null));
        Field::new(name, data_type.unwrap_or(DataType::Utf8), true)
    });
    Ok(result_schema(&Schema::new(fields.collect::<Vec<_>>())))
}

/// The parameters that are numbers of rows, which the engine has no type for.
fn row_counts(plan: &LogicalPlan) -> Result<HashSet<String>> {
    let mut counts = HashSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for count in [&limit.skip, &limit.fetch].into_iter().flatten() {
                if let Expr::Placeholder(placeholder) = count.as_ref() {
                    counts.insert(placeholder.id.clone());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(counts)
}

fn bound(plan: &LogicalPlan, values: Vec<ScalarValue>) -> Result<LogicalPlan> {
    if values.is_empty() {
        return Ok(plan.clone());
    }
    plan.clone().replace_params_with_values(&ParamValues::from(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_marks_are_numbered_by_where_they_stand() {
        let parsed = parse("SELECT ? FROM t WHERE a = ? AND b IN (?, 'why?') ORDER BY c LIMIT ?").expect("a statement");
        assert_eq!(parsed.to_string(), "SELECT $1 FROM t WHERE a = $2 AND b IN ($3, 'why?') ORDER BY c LIMIT $4");
        let parsed = parse("EXPLAIN SELECT *\nFROM mentions(aid => ?)\nWHERE x BETWEEN ? AND ?").expect("a statement");
        assert!(parsed.to_string().contains("aid => $1) WHERE x BETWEEN $2 AND $3"), "{parsed}");
        for wrong in ["", ";", "SELECT 1; SELECT 2", "SELECT ?, $2"] {
            parse(wrong).expect_err(wrong);
        }
    }
}
