//! SQL planning: a single statement, read-only except for the session's own tables, views and settings.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{DdlStatement, Expr, ExprSchemable, LogicalPlan, Statement as Utility};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, Statement as SqlStatement, Value};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::complexity_limits;
use super::type_compat::result_schema;
use crate::config::SessionSettings;
use crate::error::{Error, ErrorKind};
use crate::memory;
use crate::session::{
    PlanningTurn, bytes_of_bound, bytes_of_plan, call, check_calls, check_sizes, parse_in, plan_statement,
    refuse_inner, refuse_statement, refused, syntax, with_named_results,
};
use crate::table::query_name;

/// A planned statement.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    /// Logical plan with unbound parameters.
    pub(crate) plan: LogicalPlan,
    /// True if the statement changes the session and returns no rows.
    pub(crate) effect: bool,
    /// Parameters in order, all nullable.
    pub(crate) parameters: SchemaRef,
    /// Result schema; empty for a statement that changes the session.
    pub(crate) schema: SchemaRef,
    /// Digest of the text, for the log; empty until it is set.
    pub(crate) digest: String,
}

/// An executable plan.
#[derive(Debug)]
pub(crate) struct Runnable {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) task: Arc<TaskContext>,
    /// Name of the query in `system.requests`.
    pub(crate) query: String,
    /// Estimated bytes of the plan, with the constants that planning has computed.
    pub(crate) bytes: usize,
}

const TIME_ZONE: &str = "datafusion.execution.time_zone";

/// DataFusion settings that a session may change: those that affect output or the interpretation of literals but not
/// memory use or parallelism.
const SETTINGS: [&str; 6] = [
    TIME_ZONE,
    "datafusion.sql_parser.default_null_ordering",
    "datafusion.explain.format",
    "datafusion.explain.logical_plan_only",
    "datafusion.explain.physical_plan_only",
    "datafusion.explain.show_statistics",
];

/// True if a session may change the setting.
pub(crate) fn may_set(variable: &str) -> bool {
    variable.starts_with("savedsearch.") || SETTINGS.contains(&variable)
}

/// Checks the value of a setting, as [`SessionSettings::check_for_server`] does.
///
/// # Errors
/// Those of [`SessionSettings::check_for_server`].
pub(crate) fn check_setting(variable: &str, value: &str) -> Result<()> {
    match variable.strip_prefix("savedsearch.") {
        Some(name) => SessionSettings::check_for_server(name, value),
        None => Ok(()),
    }
}

impl Statement {
    /// Parses and plans a statement without requests to the service.
    ///
    /// # Errors
    /// Errors of DataFusion; [`ErrorKind::Unsupported`] for statements that write.
    pub(crate) async fn of(turn: &PlanningTurn<'_>, context: &SessionContext, sql: &str) -> Result<Self> {
        Self::of_typed(turn, context, sql, &[]).await
    }

    /// As [`of`](Self::of), with the types of the values that will be bound. They decide what the statement leaves open, as in
    /// `SELECT ? + ?`, and keep the fractions of values that are beside integers, as in `VALUES (1), (?)`.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub(crate) async fn of_typed(
        turn: &PlanningTurn<'_>,
        context: &SessionContext,
        sql: &str,
        types: &[DataType],
    ) -> Result<Self> {
        let parsed = with_named_results(parse(turn, sql, GenericDialect {})?);
        let typed = with_types(&parsed, types);
        match (Self::of_parsed(turn, context, parsed, &[], Ok).await, typed) {
            (Err(refused), Some(typed)) => Self::of_parsed(turn, context, typed, &[], Ok).await.map_err(|_| refused),
            (Ok(planned), Some(typed)) if planned.takes_integers_for(types) => {
                Ok(Self::of_parsed(turn, context, typed, &[], Ok).await.unwrap_or(planned))
            }
            (planned, _) => planned,
        }
    }

    /// As [`of`](Self::of), for a statement that is [parsed](parse) already, with types that the client has declared for
    /// parameters whose type the statement leaves open. `adapted` gives the plan the types of a protocol.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub(crate) async fn of_parsed(
        turn: &PlanningTurn<'_>,
        context: &SessionContext,
        parsed: Parsed,
        types: &[Option<DataType>],
        adapted: fn(LogicalPlan) -> Result<LogicalPlan>,
    ) -> Result<Self> {
        let state = context.state();
        let plan = adapted(plan_statement(turn, &state, parsed).await?)?;
        complexity_limits::size(&plan)?;
        complexity_limits::subqueries(&plan)?;
        // Again: a protocol computes more operators by functions.
        check_calls(&plan)?;
        check_sizes(&plan)?;
        let effect = check(&plan)?;
        let parameters = parameters(&plan, types)?;
        let schema = if effect {
            Arc::new(Schema::empty())
        } else {
            let nulls = parameters.fields().iter().map(|field| ScalarValue::try_from(field.data_type()));
            let known = bound(&plan, nulls.collect::<Result<_>>()?)?;
            // Types of the rows: a plan that was only parsed has those of the first branch of a CASE or UNION. One that cannot be
            // coerced fails when it is run.
            let coerced = TypeCoercion::new().analyze(known.clone(), state.config_options());
            result_schema(coerced.as_ref().unwrap_or(&known).schema().as_arrow())
        };
        Ok(Self { plan, effect, parameters, schema, digest: String::new() })
    }

    /// True if a parameter that the statement has for an integer will be a number with a fraction.
    fn takes_integers_for(&self, types: &[DataType]) -> bool {
        let fields = self.parameters.fields().iter().zip(types);
        let mut pairs = fields.map(|(field, given)| (field.data_type(), given));
        pairs.any(|(taken, given)| taken.is_integer() && (given.is_decimal() || given.is_floating()))
    }

    /// Estimates the memory of the plans of all parameter sets, before they are made.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for a plan that would be too large.
    pub(crate) fn bytes_of_bound(&self, sets: &[Vec<ScalarValue>]) -> Result<usize> {
        let mut bytes = sets.iter().map(|set| bytes_of_bound(&self.plan, set));
        bytes.try_fold(0_usize, |all, bytes| Ok(all.saturating_add(bytes?)))
    }

    /// Returns the plan of each parameter set.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for several sets of a statement that changes the session: each would undo or repeat what the last one
    /// did. Those of [`bind`](Self::bind).
    pub(crate) fn bind_all(&self, turn: &PlanningTurn<'_>, sets: Vec<Vec<ScalarValue>>) -> Result<Vec<LogicalPlan>> {
        if self.effect && sets.len() > 1 {
            let message = format!("a statement that changes the session takes one parameter set, got {}", sets.len());
            return Err(Error::new(ErrorKind::Query, message).advice("run it once for each set").into());
        }
        sets.into_iter().map(|set| self.bind(turn, set)).collect()
    }

    /// Returns the plan with parameters bound.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for a wrong number of parameters, and for a number that a column of VALUES would cut;
    /// [`ErrorKind::TooLarge`] for values that are too large for the places of their parameters.
    pub(crate) fn bind(&self, _turn: &PlanningTurn<'_>, values: Vec<ScalarValue>) -> Result<LogicalPlan> {
        check_number(self.parameters.fields().len(), values.len())?;
        check_rows(&self.plan, &values)?;
        let _room = memory::room(bytes_of_bound(&self.plan, &values)? as u64)?;
        bound(&self.plan, values)
    }
}

/// Checks that a statement gets as many parameters as it takes.
///
/// # Errors
/// [`ErrorKind::Query`] for another number.
pub(crate) fn check_number(takes: usize, given: usize) -> Result<(), Error> {
    if takes == given {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Query, format!("wrong number of parameters: expected {takes}, got {given}")))
}

/// Creates an executable plan without requests to the service.
///
/// # Errors
/// Errors of planning.
pub(crate) async fn runnable(
    _turn: &PlanningTurn<'_>,
    context: &SessionContext,
    plan: LogicalPlan,
) -> Result<Runnable> {
    let (state, plan) = context.execute_logical_plan(plan).await?.into_parts();
    let query = query_name(&state);
    let task = state.task_ctx();
    let plan = state.optimize(&plan)?;
    let bytes = bytes_of_plan(&plan);
    // Again, now that constant expressions are folded.
    check_sizes(&plan)?;
    let plan = state.query_planner().create_physical_plan(&plan, &state).await?;
    Ok(Runnable { plan, task, query, bytes })
}

/// Parses a single statement and numbers its `?` parameters.
///
/// # Errors
/// Errors of the parser and of limits; [`ErrorKind::Unsupported`] for statements that write.
pub(crate) fn parse(_turn: &PlanningTurn<'_>, sql: &str, dialect: impl Dialect) -> Result<Parsed> {
    let wrong = |message: String| DataFusionError::from(Error::new(ErrorKind::Query, message));
    let mut statements = parse_in(sql, dialect)?;
    let (Some(mut statement), 0) = (statements.pop_front(), statements.len()) else {
        return Err(wrong("expected exactly one statement".to_owned()));
    };
    complexity_limits::tables(&statement)?;
    complexity_limits::columns(&statement)?;
    complexity_limits::groups(&statement)?;
    complexity_limits::types(&statement)?;
    number_parameters(&mut statement)?;
    refuse_statement(&statement)?;
    // All tables and views of a session are temporary; DataFusion does not support the TEMPORARY keyword.
    if let Parsed::Statement(statement) = &mut statement {
        match statement.as_mut() {
            SqlStatement::CreateTable(table) => table.temporary = false,
            SqlStatement::CreateView(view) => view.temporary = false,
            _ => {}
        }
    }
    Ok(statement)
}

/// Replaces each `?` by `$1`, `$2`, … in the order of the statement text.
///
/// # Errors
/// [`ErrorKind::Query`] for parameters of two styles, and where none can stand.
fn number_parameters(statement: &mut Parsed) -> Result<(), Error> {
    let statement = match statement {
        Parsed::Statement(statement) => statement.as_mut(),
        Parsed::Explain(explain) => return number_parameters(&mut explain.statement),
        _ => return Ok(()),
    };
    let (mut places, mut named, mut of_interval) = (Vec::<Location>::new(), false, false);
    syntax::expressions(statement, &mut |expression| {
        if let Some((name, place)) = parameter(expression) {
            if name == "?" { places.push(place) } else { named = true }
        }
        of_interval |= matches!(expression, SqlExpr::Interval(interval) if parameter(&interval.value).is_some());
    });
    let wrong = |message: &str| Error::new(ErrorKind::Query, message);
    if named && !places.is_empty() {
        return Err(wrong("parameters must be either all ? or all $1, $2, …"));
    }
    if of_interval {
        return Err(wrong("INTERVAL takes no parameter").advice("write CAST(? AS interval)"));
    }
    if matches!(statement, SqlStatement::Set(_)) && (named || !places.is_empty()) {
        return Err(wrong("SET takes no parameter").advice("write the value into the statement"));
    }
    places.sort_by_key(|place| (place.line, place.column));
    let numbers: HashMap<Location, usize> = places.into_iter().zip(1..).collect();
    syntax::edit_expressions(statement, &mut |expression| {
        if let SqlExpr::Value(value) = expression
            && let Value::Placeholder(name) = &mut value.value
            && let Some(number) = numbers.get(&value.span.start)
        {
            *name = format!("${number}");
        }
    });
    Ok(())
}

/// Name and place of a parameter; `None` for another expression.
pub(crate) fn parameter(expression: &SqlExpr) -> Option<(&str, Location)> {
    let SqlExpr::Value(value) = expression else { return None };
    match &value.value {
        Value::Placeholder(name) => Some((name, value.span.start)),
        _ => None,
    }
}

/// The statement with parameters that have these types; `None` if it has no parameter, or there are no types.
fn with_types(parsed: &Parsed, types: &[DataType]) -> Option<Parsed> {
    if types.is_empty() {
        return None;
    }
    let (mut typed, mut found) = (parsed.clone(), false);
    let mut cast = |expression: &mut SqlExpr| {
        if let SqlExpr::Value(value) = &*expression
            && let Value::Placeholder(name) = &value.value
            && let Some(number) = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok())
            && let Some(of) = number.checked_sub(1).and_then(|at| types.get(at)).filter(|of| !of.is_null())
        {
            let name = SqlExpr::value(Value::SingleQuotedString(of.to_string()));
            *expression = call("arrow_cast", vec![expression.clone(), name]);
            found = true;
        }
    };
    match &mut typed {
        Parsed::Statement(statement) => syntax::edit_expressions(statement.as_mut(), &mut cast),
        Parsed::Explain(explain) => {
            *explain.statement = with_types(&explain.statement, types)?;
            return Some(typed);
        }
        _ => {}
    }
    found.then_some(typed)
}

/// Returns true if a plan changes the session.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a plan that would change anything else.
fn check(plan: &LogicalPlan) -> Result<bool> {
    let (effect, inner) = match plan {
        LogicalPlan::Ddl(ddl) => match ddl {
            DdlStatement::CreateView(_) | DdlStatement::CreateMemoryTable(_) => (true, ddl.inputs()),
            DdlStatement::DropTable(_) | DdlStatement::DropView(_) => (true, Vec::new()),
            other => return Err(refused(other.name())),
        },
        LogicalPlan::Statement(Utility::SetVariable(set)) if may_set(&set.variable) => {
            check_setting(&set.variable, &set.value)?;
            (true, Vec::new())
        }
        LogicalPlan::Statement(Utility::ResetVariable(reset)) if may_set(&reset.variable) => (true, Vec::new()),
        LogicalPlan::Statement(Utility::SetVariable(set)) => {
            return Err(refused(&format!("SET {}", set.variable)));
        }
        LogicalPlan::Statement(Utility::ResetVariable(reset)) => {
            return Err(refused(&format!("RESET {}", reset.variable)));
        }
        query => (false, vec![query]),
    };
    inner.into_iter().try_for_each(refuse_inner)?;
    Ok(effect)
}

/// Returns the parameters of a plan in order. Parameters of unknown type have the declared one, or are strings.
fn parameters(plan: &LogicalPlan, types: &[Option<DataType>]) -> Result<SchemaRef> {
    let known = plan.get_parameter_types()?;
    let wrong = |name: &str| {
        let message = format!("invalid parameter {name}: parameters must be $1, $2, … without gaps, or ?");
        DataFusionError::from(Error::new(ErrorKind::Query, message))
    };
    let numbers = known.keys().map(|name| {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        number.filter(|number| (1..=known.len()).contains(number)).ok_or_else(|| wrong(name))
    });
    let numbers = numbers.collect::<Result<HashSet<usize>>>()?;
    let (counts, lists) = (row_counts(plan)?, list_types(plan)?);
    let fields = (1..=numbers.len()).map(|number| {
        let name = format!("${number}");
        let count = counts.contains(&name).then_some(DataType::Int64);
        let inferred = known.get(&name).cloned().flatten().filter(|known| *known != DataType::Null);
        let data_type = count.or_else(|| lists.get(&name).cloned()).or(inferred);
        let declared = || types.get(number - 1).cloned().flatten();
        Field::new(name, data_type.or_else(declared).unwrap_or(DataType::Utf8), true)
    });
    Ok(result_schema(&Schema::new(fields.collect::<Vec<_>>())))
}

/// Returns the parameters of LIMIT and OFFSET, for which DataFusion infers no type.
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

/// Returns the types of parameters that stand for a list or for an item of one, for which DataFusion infers none:
/// `x = ANY ($1)`, `$1 = ANY (list)`, `x < ALL ($1)`.
fn list_types(plan: &LogicalPlan) -> Result<HashMap<String, DataType>> {
    let mut found = HashMap::new();
    let name_of = |expr: &Expr| match expr {
        Expr::Placeholder(placeholder) => Some(placeholder.id.clone()),
        _ => None,
    };
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let mut note = |parameter: &Expr, other: &Expr, typed: fn(DataType) -> Option<DataType>| {
            if let Some(name) = name_of(parameter)
                && let Some(data_type) = other.get_type(&schema).ok().filter(|known| !known.is_null()).and_then(typed)
            {
                found.insert(name, data_type);
            }
        };
        let list = |item: DataType| Some(DataType::new_list(item, true));
        let item = |list: DataType| match list {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Some(item.data_type().clone())
            }
            _ => None,
        };
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                match part {
                    Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                        ("array_has", [many, one]) => {
                            note(many, one, list);
                            note(one, many, item);
                        }
                        ("array_has_any" | "array_has_all", [left, right]) => {
                            note(left, right, Some);
                            note(right, left, Some);
                        }
                        _ => {}
                    },
                    // The bounds of a list that is compared.
                    Expr::BinaryExpr(compared) => {
                        for (bound, other) in [(&compared.left, &compared.right), (&compared.right, &compared.left)] {
                            if let Expr::ScalarFunction(call) = bound.as_ref()
                                && let ("array_min" | "array_max", [many]) = (call.func.name(), call.args.as_slice())
                            {
                                note(many, other, list);
                            }
                        }
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Refuses numbers that lose their fraction in the rows of VALUES, whose types are decided before there are values.
fn check_rows(plan: &LogicalPlan, values: &[ScalarValue]) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Values(rows) = node else { return Ok(TreeNodeRecursion::Continue) };
        for (expr, field) in rows.values.iter().flat_map(|row| row.iter().zip(rows.schema.fields())) {
            let mut inner = expr;
            while let Expr::Cast(cast) = inner {
                inner = &cast.expr;
            }
            let Expr::Placeholder(placeholder) = inner else { continue };
            let number = placeholder.id.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
            let Some(value) = number.and_then(|number| values.get(number.checked_sub(1)?)) else { continue };
            let (given, column) = (value.data_type(), field.data_type());
            if !(given.is_decimal() || given.is_floating()) || !column.is_integer() {
                continue;
            }
            if value.cast_to(column)?.cast_to(&given)? != *value {
                let message = format!("parameter {} is {value}, but its column of VALUES has integers", placeholder.id);
                let error = Error::new(ErrorKind::Query, message);
                return Err(error.advice("write a cast around the parameter, such as CAST(? AS double)").into());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
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
    use crate::host::running::Pending;
    use crate::host::state::Host;
    use crate::memory::STACK;

    #[test]
    fn question_marks_are_numbered_by_where_they_stand() {
        let read = |sql| parse(&PlanningTurn::unbounded(), sql, GenericDialect {});
        let parsed = read("SELECT ? FROM t WHERE a = ? AND b IN (?, 'why?') ORDER BY c LIMIT ?").expect("a statement");
        assert_eq!(parsed.to_string(), "SELECT $1 FROM t WHERE a = $2 AND b IN ($3, 'why?') ORDER BY c LIMIT $4");
        let parsed = read("EXPLAIN SELECT *\nFROM mentions(aid => ?)\nWHERE x BETWEEN ? AND ?").expect("a statement");
        assert!(parsed.to_string().contains("aid => $1) WHERE x BETWEEN $2 AND $3"), "{parsed}");
        for wrong in ["", ";", "SELECT 1; SELECT 2", "SELECT ?, $2"] {
            read(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn statements_that_a_session_does_not_take_are_refused_with_a_reason() {
        for (sql, expected) in [
            ("SET savedsearch.max_requests = ?", "SET takes no parameter; write the value into the statement"),
            ("SET savedsearch.max_requests = $1", "SET takes no parameter; write the value into the statement"),
            ("SELECT now() - INTERVAL ?", "INTERVAL takes no parameter; write CAST(? AS interval)"),
            ("EXPLAIN SELECT now() - INTERVAL $1 DAY", "INTERVAL takes no parameter; write CAST(? AS interval)"),
            ("BEGIN", "there are no transactions: the service is read-only; leave out BEGIN, COMMIT and ROLLBACK"),
            ("START TRANSACTION", "there are no transactions: the service is read-only"),
            ("COMMIT", "there are no transactions: the service is read-only"),
            ("END", "there are no transactions: the service is read-only"),
            ("ROLLBACK", "there are no transactions: the service is read-only"),
            ("SAVEPOINT s", "there are no transactions: the service is read-only"),
            ("RELEASE SAVEPOINT s", "there are no transactions: the service is read-only"),
        ] {
            let error = parse(&PlanningTurn::unbounded(), sql, GenericDialect {}).expect_err(sql);
            assert!(error.to_string().contains(expected), "{sql}: {error}");
        }
    }

    /// The engine would take minutes for the types of 900 of them.
    /// On a stack as large as those of lanes.
    #[test]
    fn operators_that_functions_compute_are_as_deep_as_functions() {
        let plan = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let (host, session) = Host::of_tests().await;
                let chain =
                    |first: &str, step: &str, times: usize| format!("SELECT {first}{} AS r", step.repeat(times));
                host.statement(&session, &chain("INTERVAL '1 day'", " * 1", 40)).await.expect("a product");
                let deep = chain("INTERVAL '1 day'", " * 1", 900);
                let refused = host.statement(&session, &deep).await.expect_err("too deep");
                assert!(refused.message().contains("nested functions"), "{}", refused.message());
                for (first, step) in [("1", " + 1"), ("'a'", " || 'a'"), ("true", " AND true")] {
                    host.statement(&session, &chain(first, step, 900)).await.expect(first);
                }
            });
        };
        let planned = std::thread::Builder::new().stack_size(STACK).spawn(plan).expect("a thread").join();
        assert!(planned.is_ok(), "see its message above");
    }

    /// 128 KiB in 900 places are 115 MB.
    #[tokio::test]
    async fn a_value_counts_in_each_place_of_its_parameter_before_it_is_there() {
        let (host, session) = Host::of_tests().await;
        let places = (0..900).map(|place| format!("$1 AS a{place}")).collect::<Vec<_>>().join(", ");
        let statement = host.statement(&session, &format!("SELECT {places}")).await.expect("a plan");
        let set = |kib: usize| vec![ScalarValue::from("x".repeat(kib << 10))];
        let bound = |kib| statement.bind(&PlanningTurn::unbounded(), set(kib));
        let refused = bound(128).expect_err("more than 64 MiB");
        let refused = Error::find(&refused).expect("an error of this crate");
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert_eq!(refused.message(), "query plan too large: more than 64 MiB");
        assert!(bytes_of_plan(&bound(1).expect("900 KiB")) <= statement.bytes_of_bound(&[set(1)]).expect("900 KiB"));
        // Together, they do not fit into the share of the user.
        let refused = Pending::plan(&host, &session, &statement, vec![set(40); 20]).await.expect_err("720 MB");
        assert!(refused.message().contains("not enough memory for the result"), "{}", refused.message());
        assert_eq!(session.share.pool().reserved(), 0);
    }

    #[test]
    fn estimates_that_ask_are_refused() {
        let ask =
            check_setting("savedsearch.estimate", "ask").expect_err("such an estimate sends requests").to_string();
        let advice = "in the shell only; estimates of servers and drivers send no request; use a session of `Shell` for this one";
        assert!(ask.contains(advice), "{ask}");
        check_setting("savedsearch.estimate", "known").expect("the default");
        check_setting("savedsearch.timezone", "ask").expect("another setting");
    }
}
