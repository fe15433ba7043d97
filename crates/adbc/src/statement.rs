//! A statement: its text, bound parameters, and the result that it returned last.

use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::error::{AdbcStatusCode, Error, Result, Status};
use adbc_core::options::{OptionStatement, OptionValue};
use adbc_core::{CancelHandle, Optionable, PartitionedResult};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchReader, StringArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_saved_search::datafusion::common::ScalarValue;
use datafusion_saved_search::embedded::{
    Account, Failure, Session, bindable, chart, sets_of, stopped, takes_parameters,
};
use datafusion_saved_search::error::Term;
use tokio_util::sync::CancellationToken;

use crate::connection::{Cancel, Running};
use crate::database::not_found;
use crate::error::{details, failed, line, unknown_option, unsupported, wrong};
use crate::reader::{Reader, known};
use crate::runtime::wait;
use crate::target::{Target, switch, text_of};

/// A statement of a connection.
pub struct Statement {
    session: Arc<Session>,
    /// Keeps the demo data running.
    target: Arc<Target>,
    sql: Option<String>,
    bound: Option<(SchemaRef, Vec<RecordBatch>)>,
    /// True if the rows that are bound are drawn, in place of a query.
    charts: bool,
    chart_title: Option<String>,
    /// True if the cost of the statement is returned in place of its rows.
    estimates: bool,
    of_connection: Arc<Running>,
    running: Arc<Running>,
    last: Arc<Mutex<Last>>,
    /// Number of the statement in its connection.
    number: u64,
}

/// The last run of a statement.
#[derive(Debug, Default)]
pub(crate) struct Last {
    pub(crate) account: Option<Account>,
    pub(crate) failure: Option<Failure>,
}

impl Last {
    /// A part of the account by name: the requests sent until now, lines about what is read, and lines about what is missing.
    pub(crate) fn part(&self, name: &str) -> Option<String> {
        let account = self.account.as_ref();
        let lines = match name {
            "requests" => return Some(account.map_or(0, Account::requests).to_string()),
            "notes" => account.map(Account::notes),
            "warnings" => account.map(Account::warnings),
            _ => return None,
        };
        Some(lines.unwrap_or_default().join("\n"))
    }
}

/// Options that can be set.
const OPTIONS: [&str; 3] = ["savedsearch.estimate", "savedsearch.chart", "savedsearch.chart_title"];

/// Options that return the parts of the last failure, also of one that a stream of rows ended with, by their names as details.
const ERROR: &str = "savedsearch.error.";

impl Statement {
    pub(crate) fn new(
        session: Arc<Session>,
        target: Arc<Target>,
        of_connection: Arc<Running>,
        last: Arc<Mutex<Last>>,
        number: u64,
    ) -> Self {
        let (sql, bound, charts, chart_title, estimates, running) = Default::default();
        Self { session, target, sql, bound, charts, chart_title, estimates, of_connection, running, last, number }
    }

    fn text(&self) -> Result<String> {
        let missing = || Error::with_message_and_status("no statement was set", Status::InvalidState);
        self.sql.clone().ok_or_else(missing)
    }

    /// Begins a run, which the handles of the statement and of its connection cancel.
    fn begin(&self) -> CancellationToken {
        *self.last() = Last::default();
        let token = self.of_connection.begin();
        self.running.under(token.clone());
        token
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failure: Failure) -> Error {
        let error = failed(&failure);
        self.last().failure = Some(failure);
        error
    }

    /// Waits for work until it is cancelled.
    fn cancellable<T: Send + 'static>(
        &self,
        token: CancellationToken,
        work: impl Future<Output = std::result::Result<T, Failure>> + Send + 'static,
    ) -> Result<T> {
        let done = wait(async move {
            tokio::select! {
                biased;
                () = token.cancelled() => Err(stopped()),
                done = work => done,
            }
        })?;
        done.map_err(|failure| self.fail(failure))
    }

    /// The types of the parameters that were bound; `None` if none were.
    fn bound_types(&self) -> Option<Vec<DataType>> {
        let (schema, _) = self.bound.as_ref().filter(|(schema, _)| !schema.fields().is_empty())?;
        Some(schema.fields().iter().map(|field| field.data_type().clone()).collect())
    }

    /// The parameter sets that were bound; one empty set if none were.
    fn take_sets(&mut self) -> Result<Vec<Vec<ScalarValue>>> {
        // Drivers that bind nothing bind rows without columns.
        let Some((_, bound)) = self.bound.take().filter(|(schema, _)| !schema.fields().is_empty()) else {
            return Ok(vec![Vec::new()]);
        };
        let sets = bound.iter().map(sets_of).collect::<std::result::Result<Vec<_>, _>>();
        Ok(sets.map_err(|failure| self.fail(failure))?.into_iter().flatten().collect())
    }

    /// Runs the statement until its first rows are there, so that most failures are those of this call.
    fn run(&mut self) -> Result<Reader> {
        let (sql, sets, token) = (self.text()?, self.take_sets()?, self.begin());
        let (session, cancelled, of_reader) = (Arc::clone(&self.session), token.clone(), token.clone());
        let account = session.account();
        self.last().account = Some(account.clone());
        let begun = self.cancellable(token, async move {
            let prepared = session.prepare(&sql, types_of(&sets).as_deref()).await?;
            let mut rows = session.run(&prepared, sets, cancelled, account).await?;
            match rows.next().await {
                Some(first) => Ok((Arc::clone(rows.schema()), Some(first?), Some(rows))),
                None => {
                    let schema = Arc::clone(rows.schema());
                    rows.ended().await?;
                    Ok((schema, None, None))
                }
            }
        })?;
        let (schema, first, rows) = begun;
        Ok(Reader::new(schema, first, rows, of_reader, Arc::clone(&self.last), Arc::clone(&self.target)))
    }

    fn estimate(&mut self) -> Result<RecordBatch> {
        let (sql, sets, token) = (self.text()?, self.take_sets()?, self.begin());
        let (session, account) = (Arc::clone(&self.session), self.session.account());
        self.last().account = Some(account.clone());
        self.cancellable(token, async move {
            let prepared = session.prepare(&sql, types_of(&sets).as_deref()).await?;
            session.estimate(&prepared, sets, &account).await
        })
    }

    /// Draws the rows that are bound.
    fn draw(&mut self) -> Result<RecordBatch> {
        let (schema, rows) = self.bound.take().ok_or_else(|| wrong("no rows were bound for the chart", "bind them"))?;
        let svg = chart(&schema, &rows, self.chart_title.clone()).map_err(|failure| self.fail(failure))?;
        Ok(RecordBatch::try_from_iter([("svg", Arc::new(StringArray::from(vec![svg])) as ArrayRef)])?)
    }

    /// Plans the statement, and returns its parameters, its columns, and whether it has a result.
    fn describe(&self, types: Option<Vec<DataType>>) -> Result<(Schema, Schema, bool)> {
        let (sql, session, token) = (self.text()?, Arc::clone(&self.session), self.begin());
        self.cancellable(token, async move {
            let prepared = session.prepare(&sql, types.as_deref()).await?;
            let (parameters, schema) = (prepared.parameters(), prepared.schema());
            Ok((parameters.as_ref().clone(), schema.as_ref().clone(), !prepared.is_effect()))
        })
    }
}

/// The types of the first parameter set; `None` without a set.
fn types_of(sets: &[Vec<ScalarValue>]) -> Option<Vec<DataType>> {
    sets.first().map(|set| set.iter().map(ScalarValue::data_type).collect())
}

impl adbc_core::Statement for Statement {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        let batch = bindable(&batch)?;
        self.bound = Some((batch.schema(), vec![batch]));
        Ok(())
    }

    fn bind_stream(&mut self, reader: Box<dyn RecordBatchReader + Send>) -> Result<()> {
        let schema = bindable(&RecordBatch::new_empty(reader.schema()))?.schema();
        let batches = reader.map(|batch| bindable(&batch?)).collect::<std::result::Result<_, _>>()?;
        self.bound = Some((schema, batches));
        Ok(())
    }

    fn execute(&mut self) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        if self.charts {
            return Ok(known(self.draw()?));
        }
        if self.estimates {
            return Ok(known(self.estimate()?));
        }
        Ok(Box::new(self.run()?))
    }

    fn execute_update(&mut self) -> Result<Option<i64>> {
        let (_, _, has_rows) = self.describe(Some(self.bound_types().unwrap_or_default()))?;
        if has_rows {
            return Err(wrong("the statement has rows, which this call would drop", Term::AsQuery));
        }
        self.run()?;
        Ok(None)
    }

    /// Columns of the result; with parameters that are bound, which stay, those of the first set.
    fn execute_schema(&mut self) -> Result<Schema> {
        if self.estimates {
            return Ok(self.estimate()?.schema().as_ref().clone());
        }
        let bound = self.bound.as_ref().and_then(|(_, bound)| bound.iter().find(|batch| batch.num_rows() > 0));
        let Some(first) = bound.filter(|batch| batch.num_columns() > 0).map(|batch| batch.slice(0, 1)) else {
            return Ok(self.describe(self.bound_types())?.1);
        };
        let set = sets_of(&first).map_err(|failure| self.fail(failure))?.into_iter().next().unwrap_or_default();
        let (sql, session, token) = (self.text()?, Arc::clone(&self.session), self.begin());
        self.cancellable(token, async move {
            let prepared = session.prepare(&sql, types_of(std::slice::from_ref(&set)).as_deref()).await?;
            Ok(session.result_schema(&prepared, set).await?.as_ref().clone())
        })
    }

    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        Err(unsupported("results are not partitioned", "execute the statement as a query"))
    }

    fn get_parameter_schema(&self) -> Result<Schema> {
        Ok(self.describe(self.bound_types())?.0)
    }

    /// Checks the statement. It is planned again when it runs, since its tables may have changed.
    fn prepare(&mut self) -> Result<()> {
        match self.describe(self.bound_types()) {
            // The values, which are bound afterwards, may decide types that the statement leaves open.
            Err(_) if takes_parameters(&self.text()?) => Ok(()),
            described => described.map(drop),
        }
    }

    fn set_sql_query(&mut self, query: impl AsRef<str>) -> Result<()> {
        self.bound = None;
        self.sql = Some(query.as_ref().to_owned());
        Ok(())
    }

    fn set_substrait_plan(&mut self, _plan: impl AsRef<[u8]>) -> Result<()> {
        Err(unsupported("Substrait plans are not supported", "set a SQL query"))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(Cancel(Arc::clone(&self.running)))
    }
}

impl Optionable for Statement {
    type Option = OptionStatement;

    fn set_option(&mut self, key: OptionStatement, value: OptionValue) -> Result<()> {
        let name = key.as_ref().to_owned();
        let text = text_of(&name, value)?;
        match key {
            OptionStatement::Other(_) if name == "savedsearch.estimate" => self.estimates = switch(&name, &text)?,
            OptionStatement::Other(_) if name == "savedsearch.chart" => self.charts = switch(&name, &text)?,
            OptionStatement::Other(_) if name == "savedsearch.chart_title" => self.chart_title = Some(text),
            OptionStatement::Other(_) | OptionStatement::Incremental => {
                return Err(unknown_option(&name, &OPTIONS));
            }
            _ => {
                let message = format!("option {name} is not supported: the service is read-only");
                return Err(unsupported(message, "leave it out"));
            }
        }
        Ok(())
    }

    fn get_option_string(&self, key: OptionStatement) -> Result<String> {
        let last = self.last();
        if let Some(part) = key.as_ref().strip_prefix("savedsearch.").and_then(|name| last.part(name)) {
            return Ok(part);
        }
        match key.as_ref() {
            "savedsearch.estimate" => Ok(self.estimates.to_string()),
            "savedsearch.statement" => Ok(self.number.to_string()),
            name => {
                let (part, failure) =
                    name.strip_prefix(ERROR).zip(last.failure.as_ref()).ok_or_else(|| not_found(name))?;
                match part {
                    "message" => Ok(line(failure)),
                    "sqlstate" => Ok(failure.sqlstate().to_owned()),
                    "status" => Ok(AdbcStatusCode::from(failed(failure).status).to_string()),
                    part => {
                        let full = format!("savedsearch.{part}");
                        let known = details(failure).into_iter().find(|(name, _)| *name == full);
                        known.map(|(_, text)| text).ok_or_else(|| not_found(name))
                    }
                }
            }
        }
    }

    fn get_option_bytes(&self, key: OptionStatement) -> Result<Vec<u8>> {
        Err(not_found(key.as_ref()))
    }

    fn get_option_int(&self, key: OptionStatement) -> Result<i64> {
        let name = key.as_ref().to_owned();
        self.get_option_string(key)?.parse().map_err(|_| not_found(&name))
    }

    fn get_option_double(&self, key: OptionStatement) -> Result<f64> {
        Err(not_found(key.as_ref()))
    }
}
