//! `mentions_as_of('2026-11-01T00:00:00Z')`: mentions as they were stored at an instant or a snapshot of the store, as long as its
//! files are kept. Sends no request.
//!
//! The schema of the service's tables has the table under this name without listing it: it has no rows before `at` is known.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::future::BoxFuture;

use super::changes::{bad, commit, simplified, step_by_step, texts};
use crate::boxed_future::boxed_futures;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind};
use crate::store::{Since, Store};

/// Name of the function.
pub(crate) const MENTIONS_AS_OF: &str = "mentions_as_of";
/// The arguments of the function, in positional order.
pub(super) const ARGUMENTS: [&str; 2] = ["at", "aid"];

/// The mentions of a connection's store at a commit.
#[derive(Debug, Clone)]
pub(crate) struct PastTable {
    connection: Arc<Connection>,
    /// `None` before arguments are given.
    at: Option<Since>,
    /// Saved searches; empty: all.
    aids: Vec<String>,
}

impl PastTable {
    /// The table without arguments, which has no rows.
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, at: None, aids: Vec::new() }
    }

    /// The table of a call.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for other arguments, [`ErrorKind::Config`] without a store, and those of [`Store::check_past`].
    pub(super) fn called(mut self, arguments: Vec<(String, Expr)>, options: &ConfigOptions) -> Result<Self> {
        self.connection.some_store()?;
        for (name, value) in arguments {
            let value = match simplified(value, &self.connection, options)? {
                Expr::Literal(value, _) => value,
                other => return Err(bad(MENTIONS_AS_OF, &name, &other.to_string())),
            };
            let wrong = || bad(MENTIONS_AS_OF, &name, &value.to_string());
            match name.as_str() {
                "at" => self.at = Some(commit(&value, options).ok_or_else(wrong)?),
                _ => self.aids = texts(&value).ok_or_else(wrong)?,
            }
        }
        let at = self.some_at()?;
        self.connection.some_store()?.check_past(at)?;
        Ok(self)
    }

    fn some_at(&self) -> Result<Since> {
        let missing = || {
            Error::new(ErrorKind::Query, "missing argument `at`: an instant, or the number of a snapshot of the store")
                .advice("use mentions_as_of('2026-11-01T00:00:00Z'), or a snapshot: mentions_as_of(12)")
        };
        self.at.ok_or_else(|| missing().into())
    }
}

impl TableProvider for PastTable {
    fn schema(&self) -> SchemaRef {
        match self.connection.store() {
            Some(store) => Arc::clone(store.schema()),
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

impl PastTable {
    /// Returns the scan of the mentions.
    fn read<'a>(
        &'a self,
        state: &'a dyn Session,
        projection: Option<&'a Vec<usize>>,
        filters: &'a [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(async move {
            let (store, at) = (Arc::clone(self.connection.some_store()?), self.some_at()?);
            let schema = Arc::clone(store.schema());
            let past = Past { store, schema: Arc::clone(&schema), at, aids: self.aids.clone() };
            StreamingTable::try_new(schema, vec![Arc::new(past)])?.scan(state, projection, filters, limit).await
        })
    }
}

/// The mentions of a store at a commit, file by file.
#[derive(Debug)]
struct Past {
    store: Arc<Store>,
    schema: SchemaRef,
    at: Since,
    aids: Vec<String>,
}

impl PartitionStream for Past {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (store, at, aids) = (Arc::clone(&self.store), self.at, self.aids.clone());
        step_by_step(&self.schema, move || store.past(&aids, at))
    }
}
