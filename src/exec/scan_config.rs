//! What is decided about a scan when it is planned, and the bounds of its time that are known later.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::prelude::ident;

use crate::connection::Connection;
use crate::decode::arrow_schema;
use crate::error::{Error, ErrorKind, Place};
use crate::profile::{Origin, TableSpec};
use crate::pushdown::{ScanPlan, ServiceOrder, Summary, Table};
use crate::request::RequestPlan;

/// Everything about a scan that is decided when it is planned.
#[derive(Debug, Clone)]
pub(crate) struct Scanning {
    pub(crate) connection: Arc<Connection>,
    pub(crate) table: Table,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) plan: ScanPlan,
    /// Names the query in `system.requests`; scans of one query share it.
    pub(crate) query: String,
    /// Columns of the output, as positions in the table.
    pub(crate) projection: Vec<usize>,
    /// What rows must satisfy, over the whole table's schema.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// What rows will have to satisfy above, over the output's schema; joins learn it while the query runs.
    pub(crate) above: Vec<Arc<dyn PhysicalExpr>>,
    /// Rows after which no more are wanted.
    pub(crate) fetch: Option<usize>,
    /// Rows left out at the beginning, where the service leaves them out.
    pub(crate) skip: usize,
    /// The order that the service was asked for and the output keeps.
    pub(crate) order: Option<ServiceOrder>,
    /// Whether conditions that are known when the query runs only choose among the saved searches.
    pub(crate) chosen_later: bool,
    /// Conditions on the time that are known when the query runs only, over the whole table's schema; they take the place
    /// of the default window.
    pub(crate) bounds: Vec<Arc<dyn PhysicalExpr>>,
    /// What stands in for the rows, where only numbers of them are wanted.
    pub(crate) summary: Option<Summary>,
    /// Why nothing does, though numbers are all that is wanted.
    pub(crate) read_because: Option<String>,
    /// Requests that all scans of the plan take at least.
    pub(crate) announced: Arc<AtomicU64>,
    /// What the author of the query is told when it runs.
    pub(crate) notes: Arc<Mutex<Vec<String>>>,
    /// Rows that will do above as a rule: pages are asked for when they are wanted, in spite of no fetch.
    pub(crate) wanted: Option<usize>,
}

/// Column of a summary's rows: how many mentions each stands for.
pub(crate) const WEIGHT: &str = "__mentions";

/// The columns that a scan can give: those of the table, and how many mentions a row of a summary stands for.
pub(crate) fn scan_schema(spec: &TableSpec, summary: Option<&Summary>) -> SchemaRef {
    let table = arrow_schema(spec);
    if summary.is_none() {
        return table;
    }
    // Columns that nothing looks at are NULL in rows that stand for several mentions.
    let columns = table.fields().iter().zip(&spec.columns).map(|(field, column)| {
        let asked = matches!(column.origin, Origin::Aid | Origin::Duration | Origin::Timezone);
        Arc::new(field.as_ref().clone().with_nullable(!asked))
    });
    Arc::new(Schema::new(columns.chain([Arc::new(Field::new(WEIGHT, DataType::Int64, false))]).collect::<Vec<_>>()))
}

impl Scanning {
    /// The periods that are asked for: in pieces where they are counted, and some of those whole.
    pub(super) fn windows(&self) -> Vec<String> {
        match (&self.summary, &self.plan.pieces) {
            (Some(_), Some(pieces)) => pieces.iter().map(|(words, _)| words.clone()).collect(),
            _ => self.plan.windows.clone(),
        }
    }

    /// Whether the service gives just the rows of the plan that count.
    pub(super) fn is_whole(&self, plan: &RequestPlan) -> bool {
        let mut pieces = self.plan.pieces.iter().flatten();
        let piece = pieces.find(|(words, _)| Some(words) == plan.duration.as_ref());
        piece.is_none_or(|(_, whole)| *whole)
    }

    /// The scan within the bounds that are known by now.
    pub(super) fn bounded(self: Arc<Self>) -> Result<Arc<Self>> {
        if self.bounds.is_empty() && !self.plan.is_open() {
            return Ok(self);
        }
        let schema = arrow_schema(&self.spec);
        let Self { connection, plan, table, spec, .. } = self.as_ref();
        let place = || Place { table: Some(table.name().to_owned()), ..Place::default() };
        let (mut conjuncts, mut unread) = (Vec::new(), false);
        for bound in self.bounds.iter().flat_map(split_conjunction) {
            match known_bound(bound, &schema)? {
                Some(known) => conjuncts.push(known),
                // It would filter the answer to another question.
                None if looks_at_question(bound, spec) => {
                    let message = format!("`{bound}` cannot choose what is asked for");
                    let error = Error::new(ErrorKind::Query, message)
                        .advice("compare the column itself: duration = (SELECT …), or timezone = '…'");
                    return Err(error.at(place()).into());
                }
                None => unread = true,
            }
        }
        let plan = plan.clone().bounded_by(connection.profile(), *table, &conjuncts, unread, connection.now());
        let plan = plan.map_err(|error| error.at(place()))?;
        Ok(Arc::new(Self { plan, ..self.as_ref().clone() }))
    }

    /// Name of the column that holds the aid that was asked for.
    pub(super) fn aid_column(&self) -> Option<&str> {
        self.spec.columns.iter().find(|column| column.origin == Origin::Aid).map(|column| column.name.as_str())
    }
}

/// Whether a condition looks at a column that repeats the period or the zone that was asked for.
pub(super) fn looks_at_question(condition: &Arc<dyn PhysicalExpr>, spec: &TableSpec) -> bool {
    let asked = |column: &Column| {
        let column = spec.column(column.name());
        column.is_some_and(|column| matches!(column.origin, Origin::Duration | Origin::Timezone))
    };
    collect_columns(condition).iter().any(asked)
}

/// A comparison of a column with what is known by now, as an expression over literals; `None` for anything else.
fn known_bound(bound: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Option<Expr>> {
    let Some(compare) = bound.downcast_ref::<BinaryExpr>() else { return Ok(None) };
    let op = *compare.op();
    let (Some(left), Some(right)) = (known_side(compare.left(), schema)?, known_side(compare.right(), schema)?) else {
        return Ok(None);
    };
    let unknown = |side: &Expr| matches!(side, Expr::Literal(value, _) if value.is_null());
    let strict = matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    if strict && (unknown(&left) || unknown(&right)) {
        // It is true of nothing.
        return Ok(Some(Expr::Literal(ScalarValue::Boolean(None), None)));
    }
    Ok(Some(datafusion::logical_expr::binary_expr(left, op, right)))
}

/// A column, casts of one, or the value of what looks at no column.
fn known_side(side: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Option<Expr>> {
    if collect_columns(side).is_empty() {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
        let value = ScalarValue::try_from_array(&side.evaluate(&row)?.into_array(1)?, 0)?;
        return Ok(Some(Expr::Literal(value, None)));
    }
    if let Some(column) = side.downcast_ref::<Column>() {
        return Ok(Some(ident(column.name())));
    }
    let Some(cast) = side.downcast_ref::<CastExpr>() else { return Ok(None) };
    let to = side.data_type(schema)?;
    Ok(known_side(cast.expr(), schema)?.map(|inner| Expr::Cast(Cast::new(Box::new(inner), to))))
}
