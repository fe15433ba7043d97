//! `changes(since => '2026-11-01T00:00:00Z')`: mentions that arrived in the store, changed or were deleted since an instant or a
//! snapshot of the store. Sends no request.
//!
//! The schema of the service's tables has the table under this name without listing it: it has no rows before `since` is known.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use chrono::DateTime;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;

use crate::connection::Connection;
use crate::error::{Error, ErrorKind};
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
    aid: Option<String>,
}

impl ChangesTable {
    /// The table without arguments, which has no rows.
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, since: None, aid: None }
    }

    /// The table of a call.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for other arguments, [`ErrorKind::Config`] without a store, and those of [`Store::check_since`].
    pub(super) fn called(mut self, arguments: Vec<(String, Expr)>, options: &ConfigOptions) -> Result<Self> {
        for (name, value) in arguments {
            let now = self.connection.clock().now();
            let context = SimplifyContext::builder()
                .with_schema(Arc::new(DFSchema::empty()))
                .with_config_options(Arc::new(options.clone()))
                .with_query_execution_start_time(Some(now))
                .build();
            let value = match ExprSimplifier::new(context).simplify(value)? {
                Expr::Literal(value, _) => value,
                other => return Err(bad(&name, &other.to_string())),
            };
            match name.as_str() {
                "since" => self.since = Some(since(&value, options)?),
                _ => self.aid = Some(text(&value).ok_or_else(|| bad(&name, &value.to_string()))?),
            }
        }
        self.connection.some_store()?.check_since(self.some_since()?)?;
        Ok(self)
    }

    fn some_since(&self) -> Result<Since> {
        let missing = || {
            Error::new(ErrorKind::Query, "changes are those since an instant or a snapshot of the store")
                .advice("use changes(since => '2026-11-01T00:00:00Z'), or a snapshot: changes(since => 12)")
        };
        self.since.ok_or_else(|| missing().into())
    }
}

/// Parses an instant, or the number of a snapshot. An instant without a zone is in that of the session.
fn since(value: &ScalarValue, options: &ConfigOptions) -> Result<Since> {
    let number = match value {
        ScalarValue::Int64(number) => *number,
        ScalarValue::Int32(number) => number.map(i64::from),
        ScalarValue::UInt64(number) => number.and_then(|number| i64::try_from(number).ok()),
        _ => None,
    };
    if let Some(number) = number.filter(|number| *number >= 0) {
        return Ok(Since::Snapshot(number));
    }
    let zone = options.execution.time_zone.clone().unwrap_or_else(|| "UTC".to_owned());
    let instant = match value.data_type().is_integer() {
        true => None,
        false => match value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()))) {
            Ok(ScalarValue::TimestampMicrosecond(Some(at), _)) => DateTime::from_timestamp_micros(at),
            _ => None,
        },
    };
    instant.map(Since::Instant).ok_or_else(|| bad("since", &value.to_string()))
}

/// Text of an aid, which may be written as a number.
fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Int64(Some(number)) => Some(number.to_string()),
        value => value.try_as_str().flatten().map(str::to_owned),
    }
}

fn bad(name: &str, found: &str) -> DataFusionError {
    let expected = match name {
        "since" => "an instant such as '2026-11-01T00:00:00Z', or the number of a snapshot",
        _ => "a saved search such as '183772'",
    };
    Error::new(ErrorKind::Query, format!("{CHANGES}: {name} must be {expected}; found {found}")).into()
}

#[async_trait]
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

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let store = Arc::clone(self.connection.some_store()?);
        let (schema, since, aid) = (store.changes_schema(), self.some_since()?, self.aid.clone());
        let changes = Changes { store, schema: Arc::clone(&schema), since, aid };
        StreamingTable::try_new(schema, vec![Arc::new(changes)])?.scan(state, projection, filters, limit).await
    }
}

/// The changes of a store, saved search by saved search.
#[derive(Debug)]
struct Changes {
    store: Arc<Store>,
    schema: SchemaRef,
    since: Since,
    aid: Option<String>,
}

impl PartitionStream for Changes {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let (rows, store, since, aid) = (builder.tx(), Arc::clone(&self.store), self.since, self.aid.clone());
        builder.spawn_blocking(move || {
            let changes = store.changes(aid.as_deref(), since, |batch| Ok(rows.blocking_send(Ok(batch)).is_ok()));
            Ok(changes?)
        });
        builder.build()
    }
}
