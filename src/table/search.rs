//! `search('recall OR "battery fire"', aid => '183772')`: mentions whose text has the words of a query, with a column `score`.
//!
//! ```text
//! search(query, aid, duration, timezone, column)
//!   ─▶ SELECT *, match_score(column, query) AS score FROM mentions(aid, duration, timezone) WHERE match(column, query)
//! ```
//!
//! The schema of the service's tables has the table under this name without listing it: it has no rows before a query is given.

use std::future::ready;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::ident;

use super::ApiTable;
use super::functions::{TableFunctions, as_text};
use crate::boxed_future::boxed_futures;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind};
use crate::functions::OfWords;

/// Name of the function.
pub(crate) const SEARCH: &str = "search";
/// The arguments of the function, in positional order.
pub(super) const ARGUMENTS: [&str; 5] = ["query", "aid", "duration", "timezone", "column"];
/// Column of texts that is searched unless another one is named.
const TEXT: &str = "text";
/// Column with the score.
const SCORE: &str = "score";

/// The mentions of a connection, to be searched.
#[derive(Debug, Clone)]
pub(crate) struct SearchTable {
    mentions: ApiTable,
}

impl SearchTable {
    /// The table without arguments, which has no rows.
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        Self { mentions: ApiTable::new(Arc::clone(connection), &connection.profile().tables.mentions) }
    }

    /// The plan of a call with these arguments.
    ///
    /// # Errors
    /// Without a query, for a column that has no texts, and those of the query.
    pub(super) fn called(self, arguments: Vec<(String, Expr)>) -> Result<LogicalPlan> {
        let (mut query, mut column, mut others) = (None, TEXT.to_owned(), Vec::new());
        for (name, value) in arguments {
            match name.as_str() {
                "query" => query = Some(value),
                "column" => column = self.column(&value)?,
                _ => others.push((name, value)),
            }
        }
        let query = match query.ok_or_else(missing)? {
            Expr::Placeholder(parameter) => as_text(parameter),
            query => query,
        };
        self.check(&column)?;
        if self.mentions.schema().field_with_name(SCORE).is_ok() {
            return plan_err!(
                "mentions have a column `{SCORE}`; use match(…) and match_score(…) instead of {SEARCH}(…)"
            );
        }
        let call = |function: OfWords| function.udf().call(vec![ident(&column), query.clone()]);
        let found = TableFunctions::plan(self.mentions, others)?.filter(call(OfWords::Match))?;
        let columns = found.schema().columns().into_iter().map(Expr::Column);
        let columns: Vec<Expr> = columns.chain([call(OfWords::Score).alias(SCORE)]).collect();
        found.project(columns)?.build()
    }

    /// The column that an argument names.
    fn column(&self, value: &Expr) -> Result<String> {
        let name = match value {
            Expr::Literal(name, _) => name.try_as_str().flatten(),
            _ => None,
        };
        let wrong = || plan_datafusion_err!("{SEARCH}: column must be one of {}, found {value}", self.texts());
        name.map(str::to_owned).ok_or_else(wrong)
    }

    fn check(&self, column: &str) -> Result<()> {
        match self.mentions.schema().field_with_name(column) {
            Ok(field) if field.data_type() == &DataType::Utf8 => Ok(()),
            _ => plan_err!(
                "{SEARCH}: mentions have no column of texts `{column}`; use column => one of {}",
                self.texts()
            ),
        }
    }

    /// Columns of texts, for messages.
    fn texts(&self) -> String {
        let schema = self.mentions.schema();
        let texts = schema.fields().iter().filter(|field| field.data_type() == &DataType::Utf8);
        texts.map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn missing() -> DataFusionError {
    let message = format!("missing argument `query` of {SEARCH}: words to look for");
    Error::new(ErrorKind::Query, message).advice("use search('recall OR fire', aid => '183772')").into()
}

impl TableProvider for SearchTable {
    fn schema(&self) -> SchemaRef {
        self.mentions.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    boxed_futures! {
        fn scan<'this, 'state, 'projection, 'filters>(
            &'this self,
            _state: &'state dyn Session,
            _projection: Option<&'projection Vec<usize>>,
            _filters: &'filters [Expr],
            _limit: Option<usize>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Box::pin(ready(Err(missing())))
        }
    }
}
