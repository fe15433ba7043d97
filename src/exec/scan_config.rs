//! Configuration of a scan: the decisions made when it was planned, and time bounds that are known only at run time.

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

use crate::client::Narrower;
use crate::connection::Connection;
use crate::decode::arrow_schema;
use crate::error::{Error, ErrorKind, Place};
use crate::profile::{Origin, TableSpec};
use crate::pushdown::{ScanPlan, ServiceOrder, Summary};

/// The decisions about a scan made before it runs. Optimizer rules make modified copies; the requests of each copy are
/// computed once ([`Requests`](super::requests::Requests)).
#[derive(Debug, Clone)]
pub(crate) struct ScanConfig {
    pub(crate) connection: Arc<Connection>,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) plan: Arc<ScanPlan>,
    /// Identifies the query in `system.requests`; scans of one query share it.
    pub(crate) query: String,
    /// Columns of the output, as positions in the table.
    pub(crate) projection: Vec<usize>,
    /// The predicate on rows, over the whole table's schema.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// The kind of rows that the scan returns.
    pub(crate) mode: Mode,
    /// Conditions whose values are known only at run time.
    pub(crate) late: LateConditions,
    /// The store that mentions are taken from.
    #[cfg(feature = "store")]
    pub(crate) from_store: Option<crate::store::FromStore>,
    /// The reason why mentions are read although only counts of them are needed.
    pub(crate) read_because: Option<String>,
    /// Data that the surrounding plan passes to the scan.
    pub(crate) plan_notes: PlanNotes,
}

/// The kind of rows that a scan returns.
#[derive(Debug, Clone)]
pub(crate) enum Mode {
    /// Rows in no particular order.
    Unordered(Slice),
    /// Rows in a sort order of the service, which is verified. If `wanted` rows are usually enough, pages are fetched
    /// on demand although there is no limit.
    Ordered { order: ServiceOrder, slice: Slice, wanted: Option<usize> },
    /// Rows that each represent several mentions, if only counts are needed.
    Summary(Summary),
}

/// A part of a scan's rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Rows to skip at the beginning; the service skips them.
    pub(crate) skip: usize,
    /// Maximum number of rows; `None`: no limit.
    pub(crate) fetch: Option<usize>,
}

/// Conditions whose values are known only at run time.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateConditions {
    /// Conditions of operators above, over the output's schema; joins fill them in while the query runs.
    pub(crate) above: Vec<Arc<dyn PhysicalExpr>>,
    /// Conditions on the time, over the whole table's schema; they replace the default window.
    pub(crate) bounds: Vec<Arc<dyn PhysicalExpr>>,
    /// Set if some of them only select saved searches.
    pub(crate) choose: bool,
}

/// Data that a plan passes to its scans; copies of a scan share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanNotes {
    /// Minimum number of requests of all scans of the plan.
    pub(crate) least_requests: Arc<AtomicU64>,
    /// Changes of the query by which it needs fewer requests, for errors.
    pub(crate) narrower: Arc<Mutex<Narrower>>,
    /// Notes to the author of the query, logged when it runs.
    pub(crate) notes: Arc<Mutex<Vec<String>>>,
}

impl Mode {
    /// The sort order that the service is asked for and that the output keeps.
    pub(crate) fn order(&self) -> Option<&ServiceOrder> {
        match self {
            Self::Ordered { order, .. } => Some(order),
            Self::Unordered(_) | Self::Summary(_) => None,
        }
    }

    /// The part of the rows that is needed; all of them for a summary.
    pub(crate) fn slice(&self) -> Slice {
        match self {
            Self::Unordered(slice) | Self::Ordered { slice, .. } => *slice,
            Self::Summary(_) => Slice::default(),
        }
    }

    /// Returns the mode with another slice; `None` for a summary, which cannot be sliced.
    pub(crate) fn with_slice(&self, slice: Slice) -> Option<Self> {
        match self {
            Self::Unordered(_) => Some(Self::Unordered(slice)),
            Self::Ordered { order, wanted, .. } => Some(Self::Ordered { order: order.clone(), slice, wanted: *wanted }),
            Self::Summary(_) => None,
        }
    }

    /// The number of rows that is usually enough, if pages are fetched on demand.
    pub(crate) fn wanted(&self) -> Option<usize> {
        match self {
            Self::Ordered { wanted, .. } => *wanted,
            Self::Unordered(_) | Self::Summary(_) => None,
        }
    }

    /// The summary that replaces the rows.
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
    /// True if all requests are known before the query runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.above.is_empty() && self.bounds.is_empty() && !self.choose
    }
}

/// Column of a summary: the count of mentions that each row represents.
pub(crate) const WEIGHT: &str = "__mentions";

/// Returns the columns that a scan can output: those of the table and, in a summary, the count of mentions per row.
pub(crate) fn scan_schema(spec: &TableSpec, summary: Option<&Summary>) -> SchemaRef {
    let table = arrow_schema(spec);
    let Some(summary) = summary else { return table };
    let counted = summary.counted(spec);
    // Unused columns are NULL in rows that represent several mentions. The others are as they were: operators above may rely on
    // that.
    let columns = table.fields().iter().zip(&spec.columns).map(|(field, column)| {
        let asked = matches!(column.origin, Origin::Aid | Origin::Duration | Origin::Timezone);
        let used = counted == Some(&column.name);
        Arc::new(field.as_ref().clone().with_nullable(!asked && (!used || field.is_nullable())))
    });
    Arc::new(Schema::new(columns.chain([Arc::new(Field::new(WEIGHT, DataType::Int64, false))]).collect::<Vec<_>>()))
}

impl ScanConfig {
    /// The summary that replaces the rows.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.mode.summary()
    }

    /// The window that is read because the query has no time filter; `None` if it has one.
    pub(crate) fn default_window(&self) -> Option<&str> {
        let window = self.plan.windows.first().filter(|_| self.plan.default_window && self.late.bounds.is_empty());
        self.plan.template.named.as_deref().filter(|_| window.is_some()).or(window.map(String::as_str))
    }

    /// Returns the scan within the bounds that are known at run time. `now` is the instant at which the query began.
    pub(super) fn bounded(self: Arc<Self>, now: DateTime<Utc>) -> Result<Arc<Self>> {
        if self.late.bounds.is_empty() && self.plan.unbounded().is_none() {
            return Ok(self);
        }
        let schema = arrow_schema(&self.spec);
        let (mut conjuncts, mut unread) = (Vec::new(), false);
        for bound in self.late.bounds.iter().flat_map(split_conjunction) {
            match known_bound(bound, &schema)? {
                Some(known) => conjuncts.push(known),
                // It would filter the response to a different request.
                None if looks_at_question(bound, &self.spec) => {
                    let message = format!("`{bound}` cannot set the time window or zone");
                    let error = Error::new(ErrorKind::Query, message)
                        .advice("compare the column directly: duration = (SELECT …), or timezone = '…'");
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

    /// Refuses a scan whose time range has no beginning, neither now nor at run time.
    pub(super) fn check_bounds(&self) -> Result<()> {
        match self.plan.unbounded().filter(|_| self.late.bounds.is_empty()) {
            Some(error) => Err(error.clone().at(self.place()).into()),
            None => Ok(()),
        }
    }

    /// True if a condition leaves out rows of the windows that are read.
    pub(super) fn has_conditions(&self) -> bool {
        let asked = |name: &str| {
            let origin = self.spec.column(name).map(|column| &column.origin);
            let parameter = matches!(origin, Some(Origin::Aid | Origin::Duration | Origin::Timezone));
            parameter || self.spec.time.as_deref() == Some(name)
        };
        let columns = self.predicate.iter().flat_map(collect_columns);
        columns.into_iter().any(|column| !asked(column.name()))
    }

    /// Name of the column that holds the requested aid.
    pub(super) fn aid_column(&self) -> Option<&str> {
        self.spec.column_from(&Origin::Aid)
    }

    /// The place reported in errors of the scan.
    pub(super) fn place(&self) -> Place {
        Place { table: Some(self.spec.name.to_string()), ..Place::default() }
    }
}

/// True if a condition uses a column that repeats the requested window or zone.
pub(super) fn looks_at_question(condition: &Arc<dyn PhysicalExpr>, spec: &TableSpec) -> bool {
    let asked = |column: &Column| {
        let column = spec.column(column.name());
        column.is_some_and(|column| matches!(column.origin, Origin::Duration | Origin::Timezone))
    };
    collect_columns(condition).iter().any(asked)
}

/// Returns a comparison of a column with a known value as an expression over literals; `None` for anything else.
fn known_bound(bound: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Option<Expr>> {
    let Some(compare) = bound.downcast_ref::<BinaryExpr>() else { return Ok(None) };
    let op = *compare.op();
    let (Some(left), Some(right)) = (known_side(compare.left(), schema)?, known_side(compare.right(), schema)?) else {
        return Ok(None);
    };
    let unknown = |side: &Expr| matches!(side, Expr::Literal(value, _) if value.is_null());
    let strict = matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    if strict && (unknown(&left) || unknown(&right)) {
        // A comparison with NULL is never true.
        return Ok(Some(Expr::Literal(ScalarValue::Boolean(None), None)));
    }
    Ok(Some(datafusion::logical_expr::binary_expr(left, op, right)))
}

/// Returns a column, casts of a column, or the value of an expression without columns.
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
