//! `changes(since => '2026-11-01T00:00:00Z')`: mentions that arrived in the store, changed or were deleted since an instant or a
//! snapshot of the store. Sends no request.
//!
//! The schema of the service's tables has the table under this name without listing it: it has no rows before `since` is known.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use async_stream::try_stream;
use chrono::{DateTime, Utc};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TableType, Volatility, lit,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::future::BoxFuture;

use super::functions::as_text;
use crate::boxed_future::boxed_futures;
use crate::connection::Connection;
use crate::error::{self, Error, ErrorKind};
use crate::store::{Since, Store};

/// Name of the function.
pub(crate) const CHANGES: &str = "changes";
/// The arguments of the function, in positional order.
pub(super) const ARGUMENTS: [&str; 2] = ["since", "aid"];

/// The changes of a connection's store.
#[derive(Debug, Clone)]
pub(crate) struct ChangesTable {
    connection: Arc<Connection>,
    /// `None` before arguments are given.
    since: Option<Since>,
    /// Saved searches; empty: all.
    aids: Vec<String>,
}

impl ChangesTable {
    /// The table without arguments, which has no rows.
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, since: None, aids: Vec::new() }
    }

    /// The table of a call, and the filters of its scan. Arguments with parameters, which have no values yet, are such a filter.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for other arguments, [`ErrorKind::Config`] without a store, and those of [`Store::check_since`].
    pub(super) fn called(self, arguments: Vec<(String, Expr)>, options: &ConfigOptions) -> Result<(Self, Vec<Expr>)> {
        self.connection.some_store()?;
        let mut deferred = false;
        for (_, value) in &arguments {
            deferred |= value.exists(|value| Ok(matches!(value, Expr::Placeholder(_))))?;
        }
        if !deferred {
            return Ok((self.with(arguments, options)?, Vec::new()));
        }
        let mut named = Vec::new();
        for (name, value) in arguments {
            let typed = value.transform_up(|value| match value {
                Expr::Placeholder(parameter) => Ok(Transformed::yes(as_text(parameter))),
                value => Ok(Transformed::no(value)),
            })?;
            named.extend([lit(name), typed.data]);
        }
        Ok((self, vec![ScalarUDF::from(Arguments::new()).call(named)]))
    }

    /// The table with these values of arguments.
    fn with(mut self, arguments: impl IntoIterator<Item = (String, Expr)>, options: &ConfigOptions) -> Result<Self> {
        for (name, value) in arguments {
            let value = match simplified(value, &self.connection, options)? {
                Expr::Literal(value, _) => value,
                other => return Err(bad(CHANGES, &name, &other.to_string())),
            };
            let wrong = || bad(CHANGES, &name, &value.to_string());
            match name.as_str() {
                "since" => self.since = Some(commit(&value, options).ok_or_else(wrong)?),
                _ => self.aids = texts(&value).ok_or_else(wrong)?,
            }
        }
        self.connection.some_store()?.check_since(self.some_since()?)?;
        Ok(self)
    }

    fn some_since(&self) -> Result<Since> {
        let missing = || {
            Error::new(
                ErrorKind::Query,
                "missing argument `since`: an instant, or the number of a snapshot of the store",
            )
            .advice("use changes(since => '2026-11-01T00:00:00Z'), or a snapshot: changes(since => 12)")
        };
        self.since.ok_or_else(|| missing().into())
    }
}

/// The arguments of a call with parameters, as a filter of the scan: the engine replaces parameters in filters.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arguments {
    signature: Signature,
}

impl Arguments {
    fn new() -> Self {
        // It is not evaluated before it reaches the scan.
        Self { signature: Signature::variadic_any(Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Arguments {
    fn name(&self) -> &str {
        CHANGES
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("the arguments of {CHANGES} are no condition")
    }
}

/// Computes the value of an argument, if it depends on nothing else.
pub(super) fn simplified(value: Expr, connection: &Connection, options: &ConfigOptions) -> Result<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(DFSchema::empty()))
        .with_config_options(Arc::new(options.clone()))
        .with_query_execution_start_time(Some(connection.clock().now()))
        .build();
    ExprSimplifier::new(context).simplify(value)
}

/// Parses an instant, or the number of a snapshot, which may be a text as well. An instant without a zone is in that of the
/// session.
pub(super) fn commit(value: &ScalarValue, options: &ConfigOptions) -> Option<Since> {
    let text = value.try_as_str().flatten().map(str::trim);
    let number = match text {
        Some(text) => text.parse().ok(),
        None if value.data_type().is_integer() => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        },
        None => None,
    };
    if let Some(number) = number {
        return (number >= 0).then_some(Since::Snapshot(number));
    }
    if let Some(at) = text.and_then(to_the_minute) {
        return Some(Since::Instant(at));
    }
    let zone = options.execution.time_zone.clone().unwrap_or_else(|| "UTC".to_owned());
    let instant = match value.data_type().is_numeric() {
        true => None,
        false => match value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()))) {
            Ok(ScalarValue::TimestampMicrosecond(Some(at), _)) => DateTime::from_timestamp_micros(at),
            _ => None,
        },
    };
    instant.map(Since::Instant)
}

/// Parses an instant with an offset and without seconds, which the engine does not.
fn to_the_minute(text: &str) -> Option<DateTime<Utc>> {
    let text = text.replacen(['T', 't'], " ", 1);
    let text = text.strip_suffix(['Z', 'z']).map_or_else(|| text.clone(), |local| format!("{local}+00:00"));
    Some(DateTime::parse_from_str(&text, "%Y-%m-%d %H:%M%#z").ok()?.to_utc())
}

/// Texts of an aid, or of a list of them.
pub(super) fn texts(value: &ScalarValue) -> Option<Vec<String>> {
    let list = match value {
        ScalarValue::List(list) => list.value(0),
        ScalarValue::LargeList(list) => list.value(0),
        value => return text(value).map(|aid| vec![aid]),
    };
    let aids = (0..list.len()).map(|at| text(&ScalarValue::try_from_array(&list, at).ok()?));
    aids.collect::<Option<Vec<_>>>().filter(|aids| !aids.is_empty())
}

/// Text of an aid, which may be written as a number.
fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Int64(Some(number)) => Some(number.to_string()),
        value => value.try_as_str().flatten().map(str::to_owned),
    }
}

/// The error of an argument with another value.
pub(super) fn bad(function: &str, name: &str, found: &str) -> DataFusionError {
    let expected = match name {
        "since" | "at" => "an instant such as '2026-11-01T00:00:00Z', or the number of a snapshot",
        _ => "a saved search such as '183772', or a list of them such as ['183772', '184889']",
    };
    Error::new(ErrorKind::Query, format!("{function}: {name} must be {expected}; found {found}")).into()
}

impl TableProvider for ChangesTable {
    fn schema(&self) -> SchemaRef {
        match self.connection.store() {
            Some(store) => store.changes_schema(),
            None => Arc::new(Schema::empty()),
        }
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    boxed_futures! {
        fn scan<'this, 'state, 'projection, 'filters>(
            &'this self,
            state: &'state dyn Session,
            projection: Option<&'projection Vec<usize>>,
            filters: &'filters [Expr],
            limit: Option<usize>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.read(state, projection, filters, limit)
        }
    }
}

impl ChangesTable {
    /// Returns the scan of the changes.
    fn read<'a>(
        &'a self,
        state: &'a dyn Session,
        projection: Option<&'a Vec<usize>>,
        filters: &'a [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(async move {
            let store = Arc::clone(self.connection.some_store()?);
            let arguments = filters.iter().find_map(|filter| match filter {
                Expr::ScalarFunction(call) if call.func.inner().downcast_ref::<Arguments>().is_some() => {
                    Some(&call.args)
                }
                _ => None,
            });
            let table = match arguments {
                Some(named) => {
                    let given = named.chunks_exact(2).filter_map(|pair| match pair {
                        [Expr::Literal(name, _), value] => Some((name.try_as_str()??.to_owned(), value.clone())),
                        _ => None,
                    });
                    self.clone().with(given, state.config_options())?
                }
                None => self.clone(),
            };
            let (schema, since, aids) = (store.changes_schema(), table.some_since()?, table.aids);
            let changes = Changes { store, schema: Arc::clone(&schema), since, aids };
            StreamingTable::try_new(schema, vec![Arc::new(changes)])?.scan(state, projection, filters, limit).await
        })
    }
}

/// The changes of a store, saved search by saved search.
#[derive(Debug)]
struct Changes {
    store: Arc<Store>,
    schema: SchemaRef,
    since: Since,
    aids: Vec<String>,
}

impl PartitionStream for Changes {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (store, since, aids) = (Arc::clone(&self.store), self.since, self.aids.clone());
        step_by_step(&self.schema, move || store.changes(&aids, since))
    }
}

/// The batches of an iterator that reads files. Each is read by work of its own, so that a stream that nobody reads holds no
/// thread: there may be many, and others wait for the threads of a runtime.
pub(super) fn step_by_step<R>(
    schema: &SchemaRef,
    begin: impl FnOnce() -> error::Result<R> + Send + 'static,
) -> SendableRecordBatchStream
where
    R: Iterator<Item = error::Result<RecordBatch>> + Send + 'static,
{
    let batches = try_stream! {
        let mut rows = blocking(begin).await?;
        loop {
            let (batch, rest) = blocking(move || Ok((rows.next().transpose()?, rows))).await?;
            let Some(batch) = batch else { break };
            rows = rest;
            yield batch;
        }
    };
    Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), batches))
}

/// Runs work that waits for the disk, for the statement of the caller.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> error::Result<T> + Send + 'static) -> Result<T> {
    let ended = |error| DataFusionError::ExecutionJoin(Box::new(error));
    Ok(SpawnedTask::spawn_blocking(work).join_unwind().await.map_err(ended)??)
}
