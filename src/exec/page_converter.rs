//! Turns pages into output: the columns read, the predicate on them, the sort order to verify, and the projection.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::{SortOptions, and, concat_batches, filter_record_batch, is_not_null};
use arrow::datatypes::{FieldRef, Int64Type, SchemaRef, TimestampMicrosecondType};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result as DataFusionResult;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};

use super::scan_config::ScanConfig;
use crate::connection::Connection;
use crate::decode::{Decoded, Decoder, OneRowAnAid, arrow_schema, entries_of, in_zone_of};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Origin, Shape, TableKind};
use crate::pushdown::ServiceOrder;
use crate::request::{PageRequest, RequestPlan};

/// Converts pages to output batches.
pub(super) struct PageConverter {
    pub(super) decoder: Arc<Decoder>,
    predicate: Option<Arc<dyn PhysicalExpr>>,
    /// The zone that the query requests.
    timezone: Option<String>,
    /// The sort order that pages are checked for, and its column among those read.
    checked: Option<(usize, ServiceOrder)>,
    /// The earliest wanted instant of the checked column, in newest-first order.
    until: Option<i64>,
    /// Columns of the output among those read; `None`: the count of mentions that a row represents, which is one.
    output: Vec<Option<usize>>,
    /// The column among those read with the instant of reading, and that instant by our clock.
    as_of: Option<(usize, DateTime<Utc>)>,
    connection: Arc<Connection>,
    /// Schema of the columns read, in the zone of the session; `None` if that is UTC, in which they are decoded.
    shown: Option<SchemaRef>,
    /// The time column among those read.
    pub(super) time: Option<usize>,
    /// Set if a response is always one row.
    single: bool,
    /// Makes rows of the entries of a list.
    entries: Option<OneRowAnAid>,
    pub(super) schema: SchemaRef,
}

impl PageConverter {
    /// Creates a converter of pages in the sort order `sorted`, if any, whose output has the given `schema`.
    pub(super) fn try_new(
        config: &ScanConfig,
        sorted: Option<&ServiceOrder>,
        schema: SchemaRef,
        lossy: bool,
    ) -> DataFusionResult<Self> {
        Self::of(config, sorted, schema, lossy, false)
    }

    /// Creates a converter that reads all columns of the table, for the same output.
    pub(super) fn of_all_columns(
        config: &ScanConfig,
        sorted: Option<&ServiceOrder>,
        schema: SchemaRef,
        lossy: bool,
    ) -> DataFusionResult<Self> {
        Self::of(config, sorted, schema, lossy, true)
    }

    fn of(
        config: &ScanConfig,
        sorted: Option<&ServiceOrder>,
        schema: SchemaRef,
        lossy: bool,
        all: bool,
    ) -> DataFusionResult<Self> {
        let ScanConfig { connection, spec, projection, predicate, plan, .. } = config;
        let position = |name: &str| spec.columns.iter().position(|column| column.name == name);
        let until = plan.until.as_ref().filter(|(order, _)| sorted.is_none_or(|sorted| sorted == order));
        let checked = sorted.or(until.map(|(order, _)| order));
        // Positions in the table. The columns that identify and order rows (id, time, version, sort key) are read
        // whether they are part of the output or not.
        let mut read: BTreeSet<usize> = projection.iter().copied().filter(|at| *at < spec.columns.len()).collect();
        read.extend([&spec.id, &spec.time, &spec.version].into_iter().flatten().filter_map(|name| position(name)));
        read.extend(checked.and_then(|order| position(&order.column)));
        read.extend(predicate.iter().flat_map(collect_columns).map(|column| column.index()));
        // The mentions beside counts by a column confirm them.
        read.extend(config.summary().and_then(|summary| summary.counted(spec)).and_then(|name| position(name)));
        if all {
            read.extend(0..spec.columns.len());
        }
        let list = spec.kind == TableKind::List;
        if list {
            read.extend(OneRowAnAid::needed(spec));
        }
        let read: Vec<usize> = read.into_iter().collect();
        let entries = list.then(|| OneRowAnAid::try_new(spec, &read)).transpose()?;
        let shown = spec.zone.is_some().then(|| arrow_schema(spec).project(&read)).transpose()?.map(Arc::new);
        let records = if list { Arc::new(entries_of(spec)) } else { Arc::clone(spec) };
        let decoder = Decoder::new(Arc::clone(connection.profile()), records, &read).lossy(lossy);
        let paged = !spec.kind.is_search() && connection.profile().list.pages.is_some();
        let decoder = match spec.kind {
            // Sections may be on any page of the list.
            _ if paged => decoder.continuing(),
            // A list may come without a history.
            TableKind::History => decoder,
            _ => decoder.of_table(),
        };
        let predicate = predicate
            .as_ref()
            .map(|predicate| reassign_expr_columns(Arc::clone(predicate), decoder.schema()))
            .transpose()?;
        let at = |column: usize| read.binary_search(&column).ok();
        let until = until.map(|(_, since)| since.timestamp_micros());
        let checked = checked.and_then(|order| Some((at(position(&order.column)?)?, order.clone())));
        let output = projection.iter().map(|column| at(*column)).collect();
        let as_of = spec.column_from(&Origin::AsOf).and_then(position).and_then(at);
        let as_of = as_of.map(|at| (at, connection.clock().now()));
        let time = spec.time.as_deref().and_then(position).and_then(at);
        let single = spec.sections.iter().all(|section| section.shape == Shape::Record);
        Ok(Self {
            decoder: Arc::new(decoder),
            predicate,
            timezone: plan.template.timezone.clone(),
            checked,
            until,
            output,
            as_of,
            shown,
            time,
            connection: Arc::clone(connection),
            single,
            entries,
            schema,
        })
    }

    /// Returns the rows of a list: one an aid, or the entries of the history as they came.
    pub(super) fn listed(&self, request: &PageRequest, pages: &[Bytes]) -> Result<Decoded> {
        let mut pages: Vec<Decoded> =
            pages.iter().map(|page| self.decoder.decode(request, page)).collect::<Result<_>>()?;
        let batch = concat_batches(self.decoder.schema(), pages.iter().map(|page| &page.batch));
        let batch =
            batch.map_err(|error| Error::new(ErrorKind::Contradiction, format!("cannot join the list: {error}")))?;
        let Some(last) = pages.pop() else {
            return Err(Error::new(ErrorKind::Contradiction, "the list has no page"));
        };
        let entries = Decoded { batch, ..last };
        Ok(match &self.entries {
            Some(rule) => Decoded { batch: rule.rows(&entries.batch)?, ..entries },
            None => entries,
        })
    }

    /// Returns the rows that satisfy the predicate, with the output's columns; each row represents one mention.
    pub(super) fn finish(&self, batch: &RecordBatch) -> DataFusionResult<RecordBatch> {
        let (dated, zoned, filtered);
        let batch = match self.as_of {
            Some((at, begun)) => {
                dated = self.dated(batch, at, begun)?;
                &dated
            }
            None => batch,
        };
        let batch = match &self.shown {
            Some(schema) => {
                let columns = batch.columns().iter().zip(schema.fields());
                let columns = columns.map(|(column, field)| in_zone_of(column, field.data_type())).collect();
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                zoned = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
                &zoned
            }
            None => batch,
        };
        let batch = match &self.predicate {
            Some(predicate) => {
                filtered = satisfying(predicate, batch)?;
                &filtered
            }
            None => batch,
        };
        let ones = || Arc::new(Int64Array::from_value(1, batch.num_rows()));
        let column = |at: &Option<usize>| at.map_or_else(|| ones() as ArrayRef, |at| Arc::clone(batch.column(at)));
        let columns: Vec<ArrayRef> = self.output.iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// The number of rows beside counts that satisfy the predicate. Days may be counted in another zone than that of the query, which
    /// its rows have.
    pub(super) fn matching(&self, batch: &RecordBatch) -> DataFusionResult<usize> {
        let is_zone = |field: &FieldRef| self.decoder.origin(field.name()) == Some(&Origin::Timezone);
        let (Some(at), Some(zone)) = (batch.schema_ref().fields().iter().position(is_zone), &self.timezone) else {
            return Ok(self.finish(batch)?.num_rows());
        };
        let mut columns = batch.columns().to_vec();
        columns[at] = Arc::new(StringArray::new_repeated(zone, batch.num_rows()));
        Ok(self.finish(&RecordBatch::try_new(batch.schema(), columns)?)?.num_rows())
    }

    /// Returns a page with the instant of its reading, by the service's clock.
    fn dated(&self, page: &RecordBatch, at: usize, begun: DateTime<Utc>) -> DataFusionResult<RecordBatch> {
        let as_of = (begun + self.connection.client().ahead()).timestamp_micros();
        let mut columns = page.columns().to_vec();
        let as_of = TimestampMicrosecondArray::from_value(as_of, page.num_rows());
        columns[at] = Arc::new(as_of.with_timezone("UTC"));
        Ok(RecordBatch::try_new(page.schema(), columns)?)
    }

    /// Returns a row that explains why the rows of a saved search are missing, if the table has room for it: the
    /// request's values, the reason in the `extra` column, and NULL everywhere else.
    pub(super) fn label(&self, plan: &RequestPlan, reason: &str) -> DataFusionResult<Option<RecordBatch>> {
        let schema = self.decoder.schema();
        let said = serde_json::json!({ "savedsearch.missing": reason }).to_string();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for field in schema.fields() {
            let text = match self.decoder.origin(field.name()) {
                Some(Origin::Aid) => plan.aid.as_deref(),
                Some(Origin::Duration) => plan.named_window(),
                Some(Origin::Timezone) => plan.timezone.as_deref(),
                Some(Origin::Extra) => Some(said.as_str()),
                _ => None,
            };
            match text {
                Some(text) => columns.push(Arc::new(StringArray::from(vec![text]))),
                None if field.is_nullable() => columns.push(arrow::array::new_null_array(field.data_type(), 1)),
                None => return Ok(None),
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        if self.single { self.finish(&row).map(Some) } else { Ok(None) }
    }

    /// True if rows carry the count of mentions that they represent.
    pub(super) fn counts(&self) -> bool {
        self.output.contains(&None)
    }

    /// True if a batch of the output represents a mention, or several.
    pub(super) fn represents_any(&self, batch: &RecordBatch) -> bool {
        match self.output.iter().position(Option::is_none) {
            Some(at) => batch.column(at).as_primitive::<Int64Type>().iter().flatten().any(|count| count > 0),
            None => batch.num_rows() > 0,
        }
    }

    /// Returns rows of the output with other counts of mentions.
    pub(super) fn weighted(&self, batch: &RecordBatch, weights: Vec<i64>) -> DataFusionResult<RecordBatch> {
        let weights: ArrayRef = Arc::new(Int64Array::from(weights));
        let columns = batch.columns().iter().zip(&self.output);
        let columns = columns.map(|(column, from)| Arc::clone(from.map_or(&weights, |_| column))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// Returns a check of the pages of one plan; `None` if no sort order was requested.
    pub(super) fn check(&self) -> Option<OrderCheck<'_>> {
        self.checked.as_ref().map(|(column, order)| OrderCheck { column: *column, order, last: None })
    }

    /// True if the first row of a page has no value in the column that pages are sorted by.
    pub(super) fn begins_with_null(&self, batch: &RecordBatch) -> bool {
        batch.num_rows() > 0 && self.checked.as_ref().is_some_and(|(column, _)| batch.column(*column).is_null(0))
    }

    /// The sort order that pages are checked for.
    pub(super) fn order(&self) -> Option<&ServiceOrder> {
        self.checked.as_ref().map(|(_, order)| order)
    }

    /// True if everything after this page is older than needed.
    pub(super) fn is_past(&self, batch: &RecordBatch) -> bool {
        let (Some(until), Some((column, _)), Some(last)) = (self.until, &self.checked, batch.num_rows().checked_sub(1))
        else {
            return false;
        };
        let times = batch.column(*column).as_primitive_opt::<TimestampMicrosecondType>();
        times.is_some_and(|times| times.is_valid(last) && times.value(last) < until)
    }
}

/// The rows that satisfy the predicate. Each conjunct is evaluated only for rows that satisfy those before it: it may fail for others.
fn satisfying(predicate: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> DataFusionResult<RecordBatch> {
    let mut rows = batch.clone();
    for conjunct in split_conjunction(predicate) {
        let flags = conjunct.evaluate(&rows)?.into_array(rows.num_rows())?;
        let flags = no_nulls(as_boolean_array(&flags)?)?;
        if flags.true_count() < rows.num_rows() {
            rows = filter_record_batch(&rows, &flags)?;
        }
    }
    Ok(rows)
}

/// Replaces NULL by false.
fn no_nulls(flags: &BooleanArray) -> DataFusionResult<BooleanArray> {
    if flags.null_count() == 0 {
        return Ok(flags.clone());
    }
    let values = BooleanArray::new(flags.values().clone(), None);
    Ok(and(&values, &is_not_null(flags)?)?)
}

/// Verifies that rows arrive in the requested sort order.
pub(super) struct OrderCheck<'a> {
    column: usize,
    order: &'a ServiceOrder,
    /// The last key, as an array of length one.
    last: Option<ArrayRef>,
}

impl OrderCheck<'_> {
    /// Checks the next page.
    pub(super) fn observe(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = batch.column(self.column);
        let options: SortOptions = self.order.options;
        let failed = |error| Error::new(ErrorKind::Contradiction, format!("cannot compare sort keys: {error}"));
        if let Some(last) = &self.last {
            let compare = arrow::array::make_comparator(last, keys, options).map_err(failed)?;
            if compare(0, 0).is_gt() {
                return Err(self.violation());
            }
        }
        let compare = arrow::array::make_comparator(keys, keys, options).map_err(failed)?;
        if (1..keys.len()).any(|row| compare(row - 1, row).is_gt()) {
            return Err(self.violation());
        }
        self.last = Some(keys.slice(keys.len() - 1, 1));
        Ok(())
    }

    fn violation(&self) -> Error {
        let ServiceOrder { value, column, .. } = self.order;
        Error::new(
            ErrorKind::Contradiction,
            format!("the service does not keep the requested sort order `{value}` by `{column}`"),
        )
        .advice("correct or remove this value in the profile's [sort]")
    }
}
