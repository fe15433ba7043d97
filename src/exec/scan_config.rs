//! The configuration of a scan: what was decided when it was planned, and the bounds of its time that are known later.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use chrono::{DateTime, Utc};
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
use crate::pushdown::{ScanPlan, ServiceOrder, Summary};

/// Everything about a scan that is decided before it runs. Rules of the optimizer make changed copies of it; the requests of
/// each copy are reckoned once ([`Requests`](super::requests::Requests)).
#[derive(Debug, Clone)]
pub(crate) struct ScanConfig {
    pub(crate) connection: Arc<Connection>,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) plan: Arc<ScanPlan>,
    /// Names the query in `system.requests`; scans of one query share it.
    pub(crate) query: String,
    /// Columns of the output, as positions in the table.
    pub(crate) projection: Vec<usize>,
    /// What rows must satisfy, over the whole table's schema.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// What it gives.
    pub(crate) mode: Mode,
    /// Conditions whose values are known when the query runs only.
    pub(crate) late: LateConditions,
    /// Why rows are read though numbers of them are all that is wanted.
    pub(crate) read_because: Option<String>,
    /// What the plan around it tells it.
    pub(crate) told: Told,
}

/// What a scan gives.
#[derive(Debug, Clone)]
pub(crate) enum Mode {
    /// Rows as they come.
    Unordered(Slice),
    /// Rows in an order of the service, which is checked. Where `wanted` rows will do as a rule, pages are asked for when they
    /// are needed, in spite of no limit.
    Ordered { order: ServiceOrder, slice: Slice, wanted: Option<usize> },
    /// Rows that stand for several mentions each, where numbers of them are all that is wanted.
    Summary(Summary),
}

/// A part of a scan's rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Rows left out at the beginning, where the service leaves them out.
    pub(crate) skip: usize,
    /// Rows after which no more are wanted; `None`: all are.
    pub(crate) fetch: Option<usize>,
}

/// Conditions whose values are known when the query runs only.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateConditions {
    /// What rows will have to satisfy above, over the output's schema; joins learn it while the query runs.
    pub(crate) above: Vec<Arc<dyn PhysicalExpr>>,
    /// Conditions on the time, over the whole table's schema; they take the place of the default window.
    pub(crate) bounds: Vec<Arc<dyn PhysicalExpr>>,
    /// Whether some only choose among the saved searches.
    pub(crate) choose: bool,
}

/// What a plan tells its scans; copies of a scan share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// Requests that all scans of the plan take at least.
    pub(crate) announced: Arc<AtomicU64>,
    /// What the author of the query is told when it runs.
    pub(crate) notes: Arc<Mutex<Vec<String>>>,
}

impl Mode {
    /// The order that the service is asked for and the output keeps.
    pub(crate) fn order(&self) -> Option<&ServiceOrder> {
        match self {
            Self::Ordered { order, .. } => Some(order),
            Self::Unordered(_) | Self::Summary(_) => None,
        }
    }

    /// The part of the rows that is wanted; a summary is wanted whole.
    pub(crate) fn slice(&self) -> Slice {
        match self {
            Self::Unordered(slice) | Self::Ordered { slice, .. } => *slice,
            Self::Summary(_) => Slice::default(),
        }
    }

    /// The same with another slice; `None` for a summary, of which there are no parts.
    pub(crate) fn with_slice(&self, slice: Slice) -> Option<Self> {
        match self {
            Self::Unordered(_) => Some(Self::Unordered(slice)),
            Self::Ordered { order, wanted, .. } => Some(Self::Ordered { order: order.clone(), slice, wanted: *wanted }),
            Self::Summary(_) => None,
        }
    }

    /// Rows that will do as a rule, where pages are asked for on demand.
    pub(crate) fn wanted(&self) -> Option<usize> {
        match self {
            Self::Ordered { wanted, .. } => *wanted,
            Self::Unordered(_) | Self::Summary(_) => None,
        }
    }

    /// What stands in for the rows.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Summary(summary) => Some(summary),
            Self::Unordered(_) | Self::Ordered { .. } => None,
        }
    }
}

impl Slice {
    /// All rows.
    pub(crate) const ALL: Self = Self { skip: 0, fetch: None };
}

impl LateConditions {
    /// Whether what is asked for, or for which saved searches, is known when the query runs only.
    pub(crate) fn is_empty(&self) -> bool {
        self.above.is_empty() && self.bounds.is_empty() && !self.choose
    }
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

impl ScanConfig {
    /// What stands in for the rows.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.mode.summary()
    }

    /// The period that is read because the query bounds no time; `None` where it bounds it.
    pub(crate) fn default_window(&self) -> Option<&str> {
        let window = self.plan.windows.first().filter(|_| self.plan.default_window && self.late.bounds.is_empty());
        window.map(String::as_str)
    }

    /// The scan within the bounds that are known by now, which is when the query runs. `now` is the instant at which it began.
    pub(super) fn bounded(self: Arc<Self>, now: DateTime<Utc>) -> Result<Arc<Self>> {
        if self.late.bounds.is_empty() && self.plan.unbounded().is_none() {
            return Ok(self);
        }
        let schema = arrow_schema(&self.spec);
        let (mut conjuncts, mut unread) = (Vec::new(), false);
        for bound in self.late.bounds.iter().flat_map(split_conjunction) {
            match known_bound(bound, &schema)? {
                Some(known) => conjuncts.push(known),
                // It would filter the answer to another question.
                None if looks_at_question(bound, &self.spec) => {
                    let message = format!("`{bound}` cannot choose what is asked for");
                    let error = Error::new(ErrorKind::Query, message)
                        .advice("compare the column itself: duration = (SELECT …), or timezone = '…'");
                    return Err(error.at(self.place()).into());
                }
                None => unread = true,
            }
        }
        let plan = self.plan.as_ref().clone();
        let plan = plan.bounded_by(self.connection.profile(), &self.spec, &conjuncts, unread, now);
        let plan = Arc::new(plan.map_err(|error| error.at(self.place()))?);
        Ok(Arc::new(Self { plan, ..self.as_ref().clone() }))
    }

    /// Refuses a scan of which nothing says when its range begins, now or later.
    pub(super) fn check_bounds(&self) -> Result<()> {
        match self.plan.unbounded().filter(|_| self.late.bounds.is_empty()) {
            Some(error) => Err(error.clone().at(self.place()).into()),
            None => Ok(()),
        }
    }

    /// Name of the column that holds the aid that was asked for.
    pub(super) fn aid_column(&self) -> Option<&str> {
        self.spec.column_from(&Origin::Aid)
    }

    /// Where errors of the scan happen.
    pub(super) fn place(&self) -> Place {
        Place { table: Some(self.spec.name.to_string()), ..Place::default() }
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
