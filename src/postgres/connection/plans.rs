//! Statements from their text to a portal: what they are, their plan, and their parameters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{Schema, SchemaRef};
use bytes::Bytes;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use pgwire::messages::response::TransactionStatus;
use postgres_types::Type;
use tokio::time::{Instant, timeout};

use super::super::command::{Command, parameter_count, words};
use super::super::dialect::Names;
use super::super::nested_arrays::refuse_nested_arrays;
use super::super::numbers::Numbers;
use super::super::parameters::{arrow_type, decode};
use super::super::report::Report;
use super::super::rows::Layout;
use super::super::startup::closed;
use super::super::typed_plan::with_changes;
use super::super::typed_times::Times;
use super::super::types::{of_catalogs, parameter_type};
use super::super::wire::Lost;
use super::super::{catalog, dialect};
use super::{
    Connection, Hold, PlanKey, Planned, Portal, Prepared, Stop, Work, cancelled, changed_type, shown, timed_out,
};
use crate::error::describe;
use crate::host::cached_plan::{Basis, CachedPlan};
use crate::host::failure::Failure;
use crate::host::planner::Statement;
use crate::host::running::Pending;
use crate::memory;
use crate::session::{bytes_of_tokens, check_text};

/// Estimated bytes of the session of a statement about catalogs: its functions, and the rows of its tables.
const CATALOGS: usize = 256 << 10;

/// True for a short text that is not parsed. Its tokens may be read on this thread, which has those of only one text at a time.
fn is_read_at_once(text: &str) -> bool {
    /// Bytes of a short text.
    const SHORT: usize = 4 << 10;
    // COPY is parsed to find its query.
    text.len() <= SHORT && !text.to_ascii_lowercase().contains("copy")
}

impl Connection {
    /// Plans a statement for its parameters and its result. The plan is `None` for what the engine does not run.
    pub(super) async fn prepare(
        &mut self,
        sql: String,
        declared: Vec<Option<Type>>,
    ) -> Result<(Prepared, Option<Planned>), Stop> {
        let read = |text: &str| check_text(text, &PostgreSqlDialect {}).map(|_| (Command::of(text), tag(text)));
        let (command, tag) = self.on_text(sql.clone(), read).await?;
        self.may_run(&command)?;
        let empty = || Arc::new(Schema::empty());
        let (schema, parameters, planned) = match &command {
            _ if sql.is_empty() => (empty(), Vec::new(), None),
            Command::Statement => {
                let planned = self.plan(sql.clone(), declared, Vec::new()).await?;
                let found: Vec<Type> = match planned.context {
                    Some(_) => {
                        let count = self.on_text(sql.clone(), |text| Ok(parameter_count(text))).await?;
                        vec![Type::TEXT; count]
                    }
                    None => {
                        let fields = planned.statement.parameters.fields().iter();
                        fields.map(|field| parameter_type(field.data_type())).collect()
                    }
                };
                let known = |number: usize| planned.types.get(&number).cloned();
                let parameters = (1..).zip(found).map(|(number, found)| known(number).unwrap_or(found)).collect();
                (Arc::clone(&planned.statement.schema), parameters, Some(planned))
            }
            Command::Show(name) if self.settings.get(name).is_some() || name == "all" => {
                (shown(name), Vec::new(), None)
            }
            Command::Fetch { cursor, skip: false, .. } => (self.schema_of(cursor), Vec::new(), None),
            Command::Show(name) => {
                let planned = self.plan(sql.clone(), Vec::new(), Vec::new()).await?;
                let planned = Planned { statement: value_alone(planned.statement, name)?, ..planned };
                (Arc::clone(&planned.statement.schema), Vec::new(), Some(planned))
            }
            _ => (empty(), Vec::new(), None),
        };
        Ok((Prepared { sql, command, parameters, schema, tag, described: false, plan: None, _held: None }, planned))
    }

    /// The key of a plan that is made now.
    pub(super) fn plan_key(&self, types: Vec<Option<Type>>) -> PlanKey {
        PlanKey { names: self.names(), types }
    }

    /// Names of the session.
    fn names(&self) -> Names {
        Names {
            user: self.settings.user().to_owned(),
            database: self.settings.database().to_owned(),
            schema: self.session.context.state_ref().read().config_options().catalog.default_schema.clone(),
            zone: self.settings.get("timezone").unwrap_or_default(),
            started: self.shared.started,
            constants: HashMap::new(),
        }
    }

    /// Caches a plan, unless it depends on more than its key.
    pub(super) fn cached(&self, planned: &Planned, basis: Basis, key: PlanKey) -> Option<CachedPlan<PlanKey>> {
        let Planned { statement, context: None, has_values: false, .. } = planned else { return None };
        CachedPlan::new(&self.shared.host, &self.session, &Arc::new(statement.clone()), basis, key)
    }

    /// Plans a prepared statement for the types of its parameters, or takes the plan of an earlier call that is not outdated.
    async fn plan_prepared(&mut self, prepared: &mut Prepared, values: &[ScalarValue]) -> Result<Planned, Stop> {
        let types: Vec<_> = prepared.parameters.iter().cloned().map(Some).collect();
        let (basis, key) = (Basis::of(&self.session.context), self.plan_key(types.clone()));
        if let Some(statement) = prepared.plan.as_ref().and_then(|plan| plan.statement(&basis, &key)) {
            let statement = Arc::unwrap_or_clone(statement);
            return Ok(Planned { statement, context: None, types: BTreeMap::new(), has_values: false });
        }
        // An outdated plan frees its memory before another one is made.
        prepared.plan = None;
        let planned = self.plan(prepared.sql.clone(), types, values.to_vec()).await?;
        let planned = match &prepared.command {
            Command::Show(name) => Planned { statement: value_alone(planned.statement, name)?, ..planned },
            _ => planned,
        };
        prepared.plan = self.cached(&planned, basis, key);
        Ok(planned)
    }

    /// Reads a text of statements: in the session's lane if that may take long, since this thread serves other connections.
    pub(super) async fn on_text<T: Send + 'static>(
        &mut self,
        text: String,
        read: impl FnOnce(&str) -> datafusion::error::Result<T> + Send + 'static,
    ) -> Result<T, Stop> {
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        if is_read_at_once(&text) {
            return Ok(read(&text).map_err(|error| session.failure(&error))?);
        }
        let own = Arc::clone(&session);
        let work = async move {
            let _turn = own.share.planning(text.len()).await;
            let _room = memory::room(bytes_of_tokens(&text)).map_err(Failure::own)?;
            read(&text).map_err(|error| own.failure(&error))
        };
        self.in_time(host.away(&session, work)).await
    }

    /// In a failed transaction, only its end is accepted.
    fn may_run(&self, command: &Command) -> Result<(), Report> {
        let ends = matches!(command, Command::Commit | Command::Rollback | Command::RollbackTo(_));
        match self.status {
            TransactionStatus::Error if !ends => Err(Report::error(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            _ => Ok(()),
        }
    }

    /// Plans a statement, in the context that has its tables. `types` are declared ones of parameters, and `values` theirs
    /// if they are bound.
    pub(super) async fn plan(
        &mut self,
        sql: String,
        types: Vec<Option<Type>>,
        values: Vec<ScalarValue>,
    ) -> Result<Planned, Stop> {
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        let names = self.names();
        let all = self.settings.all();
        let digest = session.log_statement(self.command_text.as_deref().unwrap_or(&sql));
        let planned = async move {
            let turn = session.share.planning_of(&sql).await;
            let failed = |error| session.failure(&error);
            let mut parsed = match dialect::parsed(&turn, &sql) {
                Ok(parsed) => parsed,
                Err(error) => return Err(session.failure_in(&error, &sql).await),
            };
            let calls = match catalog::meant(&parsed) {
                Ok(catalog::Meant::Service { calls }) => calls,
                Ok(catalog::Meant::Catalogs) => {
                    let types = dialect::parameter_types(&mut parsed, &types);
                    let parsed = catalog::rewritten(parsed, &names, &values).map_err(failed)?;
                    let context = catalog::context(&session, &names, &all, &parsed).await.map_err(failed)?;
                    let statement = Statement::of_parsed(&turn, &context, parsed, &[], Ok).await.map_err(failed)?;
                    let schema = of_catalogs(&statement.schema);
                    let statement = Statement { schema, digest, ..statement };
                    return Ok(Ok(Planned { statement, context: Some(context), types, has_values: true }));
                }
                Err(report) => return Ok(Err(report)),
            };
            let mut names = names;
            let has_calls = !calls.is_empty();
            if has_calls {
                let constants = catalog::constants(&turn, &session, &names, &all, calls).await;
                names.constants = constants.map_err(failed)?;
            }
            let (parsed, types) = match dialect::translated(parsed, &names, &types, &values) {
                Ok(translated) => translated,
                Err(report) => return Ok(Err(report)),
            };
            let known = (1..=types.keys().max().copied().unwrap_or(0)).map(|number| types.get(&number));
            let known: Vec<_> = known.map(|known| known.and_then(arrow_type)).collect();
            let has_values = has_calls || dialect::depends_on_values(&types);
            let in_postgres = |plan| {
                refuse_nested_arrays(&plan)?;
                with_changes(plan, &[&Times, &Numbers])
            };
            let statement = host.statement_of(&turn, &session, &sql, parsed, &known, in_postgres).await?;
            let statement = Statement { digest, ..statement };
            Ok(Ok(Planned { statement, context: None, types, has_values }))
        };
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        Ok(self.in_time(host.away::<Result<Planned, Report>, Failure>(&session, planned)).await??)
    }

    /// Waits for work of a statement, unless its time ends before, it is cancelled, or the client disconnects.
    pub(super) async fn in_time<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Stop> {
        let limit = self.deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        timeout(limit, self.unless_cancelled(work)).await.map_err(|_| timed_out())?
    }

    /// Waits for work of a statement, unless it is cancelled or the client disconnects.
    pub(super) async fn unless_cancelled<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Stop> {
        tokio::select! {
            done = work => Ok(done?),
            () = self.cancelled.cancelled() => Err(cancelled().into()),
            reason = self.ended.wait() => Err(closed(reason).into()),
            () = self.wire.gone() => Err(Lost::Gone.into()),
        }
    }

    pub(super) async fn bind_values(
        &mut self,
        prepared: &mut Prepared,
        formats: &[i16],
        values: &[Option<Bytes>],
        results: &[i16],
    ) -> Result<Portal, Stop> {
        let (needs, has) = (prepared.parameters.len(), values.len());
        if needs != has {
            let line = format!("bind message supplies {has} parameters, but the statement requires {needs}");
            return Err(Report::error("08P01", line).into());
        }
        let bound = self.values(&prepared.parameters, formats, values).await?;
        let portal = self.bind(prepared, None, bound, results).await?;
        // Tables may have changed since, and the types of parameters may decide.
        let told = Layout::new(&prepared.schema, &[]).filter(|_| prepared.described);
        if told.is_some_and(|told| !told.fits(&portal.layout)) {
            return Err(changed_type().into());
        }
        Ok(portal)
    }

    /// Reads the values of parameters: in the session's lane if that may take long.
    async fn values(
        &mut self,
        types: &[Type],
        formats: &[i16],
        values: &[Option<Bytes>],
    ) -> Result<Vec<ScalarValue>, Stop> {
        /// Bytes of values that are read at once, and bytes that one counts as in addition.
        const SHORT: usize = 4 << 10;
        const VALUE: usize = 32;
        let zone = self.settings.get("timezone").unwrap_or_default();
        let bytes: usize = values.iter().map(|value| VALUE + value.as_ref().map_or(0, Bytes::len)).sum();
        if bytes <= SHORT {
            return Ok(decoded(types, formats, values, &zone)?);
        }
        let (types, formats, values) = (types.to_vec(), formats.to_vec(), values.to_vec());
        let read = async move { Ok(decoded(&types, &formats, &values, &zone)) };
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        Ok(self.in_time(host.away::<Result<Vec<ScalarValue>, Report>, Failure>(&session, read)).await??)
    }

    /// Makes a portal of a statement, from the plan that `prepare` has just made if there is one. Its settings and tables must
    /// be those that the plan was made with.
    pub(super) async fn bind(
        &mut self,
        prepared: &mut Prepared,
        planned: Option<Planned>,
        values: Vec<ScalarValue>,
        formats: &[i16],
    ) -> Result<Portal, Stop> {
        self.may_run(&prepared.command)?;
        let bytes = values.iter().map(ScalarValue::size).sum();
        let mut held = self.shared.host.hold(&self.session, "bound parameters", bytes)?;
        let Prepared { sql, command, .. } = &*prepared;
        let engine = match command {
            _ if sql.is_empty() => None,
            Command::Statement => Some(()),
            Command::Show(name) if self.settings.get(name).is_none() && name != "all" => Some(()),
            _ => None,
        };
        let command_work = || Work::Command { command: command.clone(), sql: sql.clone() };
        let (work, schema) = match engine {
            None if sql.is_empty() => (Work::Empty, Arc::new(Schema::empty())),
            None if let Command::Fetch { cursor, skip: false, .. } = command => {
                (command_work(), self.schema_of(cursor))
            }
            None => (command_work(), Arc::clone(&prepared.schema)),
            Some(()) => {
                let Planned { statement, context, .. } = match planned {
                    Some(planned) => planned,
                    None => self.plan_prepared(prepared, &values).await?,
                };
                if context.is_some() {
                    held.grow(CATALOGS).map_err(Failure::own)?;
                }
                // Those of a statement about catalogs are in its text now.
                let values = if context.is_some() { Vec::new() } else { values };
                if statement.effect {
                    (Work::Effect { statement: Box::new(statement), values }, Arc::new(Schema::empty()))
                } else {
                    let catalogs = context.is_some();
                    let pending = self.pending(statement, context, values).await?;
                    let schema = if catalogs { of_catalogs(&pending.schema) } else { Arc::clone(&pending.schema) };
                    (Work::Query(Arc::new(pending)), schema)
                }
            }
        };
        let layout = Layout::new(&schema, formats).ok_or_else(|| {
            let (has, needs) = (formats.len(), schema.fields().len());
            Report::error("08P01", format!("bind message has {has} result formats but query has {needs} columns"))
        })?;
        Ok(Portal { work, layout, schema, tag: prepared.tag.clone(), hold: Hold::Transaction, _held: held })
    }

    /// Schema of the rows of a cursor; empty if there is none of this name.
    fn schema_of(&self, cursor: &str) -> SchemaRef {
        self.portals.get(cursor).map_or_else(|| Arc::new(Schema::empty()), |portal| Arc::clone(&portal.schema))
    }

    pub(super) async fn pending(
        &mut self,
        statement: Statement,
        context: Option<SessionContext>,
        values: Vec<ScalarValue>,
    ) -> Result<Pending, Stop> {
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        let planned = async move {
            let context = context.unwrap_or_else(|| session.context.clone());
            Pending::plan_in(context, &host, &session, &statement, vec![values]).await
        };
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        self.in_time(host.away::<_, Failure>(&session, planned)).await
    }
}

/// Reads the values of parameters. There is no format (all text), one for all, or one for each.
fn decoded(types: &[Type], formats: &[i16], values: &[Option<Bytes>], zone: &str) -> Result<Vec<ScalarValue>, Report> {
    let binary = |at: usize| match formats {
        [] => Some(false),
        [one] => Some(*one == 1),
        each if each.len() == values.len() => Some(each[at] == 1),
        _ => None,
    };
    let wrong = || Report::error("08P01", "bind message has a wrong number of parameter formats");
    let decoded =
        values.iter().zip(types).enumerate().map(|(at, (value, postgres))| {
            decode(value.as_ref(), binary(at).ok_or_else(wrong)?, postgres, at + 1, zone)
        });
    decoded.collect()
}

/// SHOW of one setting of the engine or of the session returns the value alone, in a column named like the setting, as
/// in PostgreSQL. Other statements, such as SHOW TABLES, stay as they are.
fn value_alone(statement: Statement, setting: &str) -> Result<Statement, Report> {
    let columns = statement.schema.fields().iter().map(|field| field.name().as_str());
    if !columns.eq(["name", "value"]) {
        return Ok(statement);
    }
    let value = Expr::from(statement.plan.schema().qualified_field(1)).alias(setting);
    let plan = LogicalPlanBuilder::from(statement.plan).project([value]).and_then(LogicalPlanBuilder::build);
    let plan = plan.map_err(|error| Report::error("XX000", describe(&error)))?;
    Ok(Statement { plan, schema: shown(setting), ..statement })
}

/// Tag that reports the end of a statement to a client, without the number of rows.
fn tag(sql: &str) -> String {
    let mut words = words(sql).into_iter().map(|word| word.to_uppercase());
    let first = words.next().unwrap_or_default();
    match first.as_str() {
        "EXPLAIN" | "SHOW" | "SET" | "RESET" => first,
        "DESCRIBE" | "DESC" => "SHOW".to_owned(),
        "CREATE" | "DROP" => {
            let what = words.find(|word| matches!(word.as_str(), "TABLE" | "VIEW"));
            format!("{first} {}", what.unwrap_or_default())
        }
        _ => "SELECT".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_may_take_long_is_read_in_the_lane() {
        let long = format!("SELECT '{}'", "x".repeat(4 << 10));
        let copy = "/* x */ Copy (SELECT 1) TO STDOUT";
        for (text, expected) in [("SELECT 1", true), (long.as_str(), false), (copy, false)] {
            assert_eq!(is_read_at_once(text), expected, "{}", &text[..10.min(text.len())]);
        }
    }
}
