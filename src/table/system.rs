//! System tables: the requests sent, the profile, and other state of a connection. They send no request.

use std::sync::Arc;

#[cfg(feature = "store")]
use arrow::array::Date32Array;
use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt16Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
#[cfg(feature = "store")]
use chrono::NaiveDate;
use chrono::{DateTime, Utc};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::client::{Caller, RequestRecord};
use crate::connection::{Connection, UnknownField};
use crate::profile::RateWindow;
#[cfg(feature = "store")]
use crate::store::Holding;

/// A table about a connection, captured when a query is planned.
#[derive(Debug)]
pub(crate) struct SystemTable {
    connection: Arc<Connection>,
    kind: Kind,
    schema: SchemaRef,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Requests,
    Warnings,
    Profile,
    ColumnsSeen,
    Budget,
    #[cfg(feature = "store")]
    Store,
}

impl SystemTable {
    /// `system.requests`: the calls made, oldest first; the last 10,000 are kept. `wait` and `elapsed` are in
    /// milliseconds; `verdict`, on the last call of a scan, a count or a list, says whether it is complete and what shows it.
    pub(crate) fn requests(connection: Arc<Connection>) -> Self {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let fields = vec![
            Field::new("time", time, false),
            Field::new("query", DataType::Utf8, false),
            Field::new("endpoint", DataType::Utf8, false),
            Field::new("parameters", DataType::Utf8, false),
            Field::new("status", DataType::UInt16, true),
            Field::new("attempts", DataType::Int64, false),
            Field::new("wait", DataType::Int64, false),
            Field::new("elapsed", DataType::Int64, false),
            Field::new("bytes", DataType::Int64, false),
            Field::new("rows", DataType::Int64, false),
            Field::new("cached", DataType::Boolean, false),
            Field::new("rate_limit", DataType::Int64, true),
            Field::new("rate_remaining", DataType::Int64, true),
            Field::new("error", DataType::Utf8, true),
            Field::new("verdict", DataType::Utf8, true),
        ];
        Self { connection, kind: Kind::Requests, schema: Arc::new(Schema::new(fields)) }
    }

    /// `system.warnings`: parts missing from results, oldest first, for queries that allow incomplete results; the last
    /// 10,000 are kept.
    pub(crate) fn warnings(connection: Arc<Connection>) -> Self {
        let fields = vec![
            Field::new("query", DataType::Utf8, false),
            Field::new("aid", DataType::Utf8, true),
            Field::new("message", DataType::Utf8, false),
        ];
        Self { connection, kind: Kind::Warnings, schema: Arc::new(Schema::new(fields)) }
    }

    /// `system.profile`: the declarations of the profile, with the evidence for each.
    pub(crate) fn profile(connection: Arc<Connection>) -> Self {
        let fields = vec![
            Field::new("dimension", DataType::Utf8, false),
            Field::new("value", DataType::Utf8, false),
            Field::new("evidence", DataType::Utf8, true),
        ];
        Self { connection, kind: Kind::Profile, schema: Arc::new(Schema::new(fields)) }
    }

    /// `system.columns_seen`: fields of records that belong to no column, as queries found them in `extra`.
    pub(crate) fn columns_seen(connection: Arc<Connection>) -> Self {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let fields = vec![
            Field::new("table", DataType::Utf8, false),
            Field::new("field", DataType::Utf8, false),
            Field::new("first_seen", time.clone(), false),
            Field::new("last_seen", time, false),
            Field::new("records", DataType::Int64, false),
        ];
        Self { connection, kind: Kind::ColumnsSeen, schema: Arc::new(Schema::new(fields)) }
    }

    /// `system.budget`: the limits that the profile declares, with their use; the caller's own; and the limit that the
    /// service last reported in its headers.
    pub(crate) fn budget(connection: Arc<Connection>) -> Self {
        let fields = vec![
            Field::new("source", DataType::Utf8, false),
            Field::new("requests", DataType::Int64, true),
            Field::new("seconds", DataType::Int64, true),
            Field::new("used", DataType::Int64, true),
            Field::new("remaining", DataType::Int64, true),
        ];
        Self { connection, kind: Kind::Budget, schema: Arc::new(Schema::new(fields)) }
    }

    /// `system.store`: what the connection's store has, for each saved search and filters. On a server, filters are those that the
    /// user has sent since it started.
    #[cfg(feature = "store")]
    pub(crate) fn store(connection: Arc<Connection>) -> Self {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let fields = vec![
            Field::new("aid", DataType::Utf8, false),
            Field::new("filters", DataType::Utf8, false),
            Field::new("first_day", DataType::Date32, false),
            Field::new("last_day", DataType::Date32, false),
            Field::new("days", DataType::Int64, false),
            Field::new("sealed_days", DataType::Int64, false),
            Field::new("mentions", DataType::Int64, false),
            Field::new("files", DataType::Int64, false),
            Field::new("bytes", DataType::Int64, false),
            Field::new("confirmed_at", time, false),
            Field::new("ranges", DataType::Utf8, false),
            Field::new("index_bytes", DataType::Int64, false),
        ];
        Self { connection, kind: Kind::Store, schema: Arc::new(Schema::new(fields)) }
    }

    /// Returns the rows, for one caller or for all.
    fn snapshot(&self, caller: Option<&Caller>) -> Result<RecordBatch> {
        let concerns = |whom: &Option<Arc<str>>| caller.is_none_or(|caller| whom.as_ref() == Some(&caller.name));
        let columns = match self.kind {
            Kind::Requests => {
                let mut records = self.connection.client().log().records();
                records.retain(|record| concerns(&record.caller));
                request_columns(&records)
            }
            Kind::Warnings => {
                let mut warnings = self.connection.client().log().warnings();
                warnings.retain(|warning| concerns(&warning.caller));
                vec![
                    texts(warnings.iter().map(|warning| Some(warning.query.as_str()))),
                    texts(warnings.iter().map(|warning| warning.aid.as_deref())),
                    texts(warnings.iter().map(|warning| Some(warning.message.as_str()))),
                ]
            }
            Kind::Budget => budget_columns(&self.connection, caller)?,
            #[cfg(feature = "store")]
            Kind::Store => store_columns(&match caller {
                Some(caller) => self.connection.holdings_of(caller)?,
                None => self.connection.holdings()?,
            }),
            Kind::ColumnsSeen => {
                let seen = self.connection.unknown_fields();
                let instants = |of: &dyn Fn(&UnknownField) -> DateTime<Utc>| -> ArrayRef {
                    let micros = seen.iter().map(|field| Some(of(field).timestamp_micros()));
                    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
                };
                let records = seen.iter().map(|field| i64::try_from(field.records).unwrap_or(i64::MAX));
                vec![
                    texts(seen.iter().map(|field| Some(field.table.as_str()))),
                    texts(seen.iter().map(|field| Some(field.at.as_str()))),
                    instants(&|field| field.first_seen),
                    instants(&|field| field.last_seen),
                    Arc::new(records.collect::<Int64Array>()),
                ]
            }
            Kind::Profile => {
                let dimensions = self.connection.profile().dimensions();
                vec![
                    texts(dimensions.iter().map(|(name, ..)| Some(name.as_str()))),
                    texts(dimensions.iter().map(|(_, value, _)| Some(value.as_str()))),
                    texts(dimensions.iter().map(|(.., evidence)| evidence.as_deref())),
                ]
            }
        };
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

fn budget_columns(connection: &Connection, caller: Option<&Caller>) -> Result<Vec<ArrayRef>> {
    let row = |source: &'static str, (window, used): (RateWindow, u64)| {
        let (requests, used) = (i64::from(window.requests), i64::try_from(used).unwrap_or(i64::MAX));
        (source, Some(requests), Some(i64::from(window.seconds)), Some(used), Some((requests - used).max(0)))
    };
    let declared = connection.client().standing()?.into_iter().map(|standing| row("declared", standing));
    let own = caller.and_then(|caller| caller.allowance.as_ref()).map(|allowance| allowance.standing());
    let own = own.into_iter().flatten().map(|standing| row("caller", standing));
    let told = connection.client().log().records().into_iter().rev();
    let told = told.filter(|record| record.rate_limit.is_some() || record.rate_remaining.is_some()).take(1);
    let told = told.map(|record| {
        let used = record.rate_limit.zip(record.rate_remaining).map(|(limit, left)| limit - left);
        ("service", record.rate_limit, None, used, record.rate_remaining)
    });
    let rows: Vec<_> = declared.chain(own).chain(told).collect();
    let numbers = |values: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    Ok(vec![
        texts(rows.iter().map(|(source, ..)| Some(*source))),
        numbers(rows.iter().map(|row| row.1).collect()),
        numbers(rows.iter().map(|row| row.2).collect()),
        numbers(rows.iter().map(|row| row.3).collect()),
        numbers(rows.iter().map(|row| row.4).collect()),
    ])
}

#[cfg(feature = "store")]
fn store_columns(holdings: &[Holding]) -> Vec<ArrayRef> {
    let numbers = |of: fn(&Holding) -> u64| -> ArrayRef {
        let numbers = holdings.iter().map(|holding| i64::try_from(of(holding)).unwrap_or(i64::MAX));
        Arc::new(numbers.collect::<Int64Array>())
    };
    let dates = |of: &dyn Fn(&Holding) -> NaiveDate| -> ArrayRef {
        Arc::new(holdings.iter().map(|holding| Some(of(holding).to_epoch_days())).collect::<Date32Array>())
    };
    let confirmed = holdings.iter().map(|holding| Some(holding.confirmed_at.timestamp_micros()));
    let last_of = |end: NaiveDate| end.pred_opt().unwrap_or(end);
    let ranges = holdings.iter().map(|holding| {
        let ranges = holding.ranges.iter().map(|range| format!("{}..{}", range.start, last_of(range.end)));
        Some(ranges.collect::<Vec<_>>().join(", "))
    });
    vec![
        texts(holdings.iter().map(|holding| Some(holding.aid.as_str()))),
        texts(holdings.iter().map(|holding| Some(holding.filters.as_str()))),
        dates(&|holding| holding.from),
        dates(&|holding| last_of(holding.to)),
        numbers(|holding| holding.days),
        numbers(|holding| holding.sealed_days),
        numbers(|holding| holding.mentions),
        numbers(|holding| holding.files),
        numbers(|holding| holding.bytes),
        Arc::new(confirmed.collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        Arc::new(ranges.collect::<StringArray>()),
        numbers(|holding| holding.index_bytes),
    ]
}

fn request_columns(records: &[RequestRecord]) -> Vec<ArrayRef> {
    let count = |value: &dyn Fn(&RequestRecord) -> u128| -> ArrayRef {
        let values = records.iter().map(|record| i64::try_from(value(record)).unwrap_or(i64::MAX));
        Arc::new(values.collect::<Int64Array>())
    };
    let times = records.iter().map(|record| Some(record.at.timestamp_micros()));
    vec![
        Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        texts(records.iter().map(|record| Some(record.query.as_str()))),
        texts(records.iter().map(|record| Some(record.endpoint.as_str()))),
        texts(records.iter().map(|record| Some(record.parameters.as_str()))),
        Arc::new(records.iter().map(|record| record.status).collect::<UInt16Array>()),
        count(&|record| record.attempts.into()),
        count(&|record| record.wait.as_millis()),
        count(&|record| record.elapsed.as_millis()),
        count(&|record| record.bytes.into()),
        count(&|record| record.rows.into()),
        Arc::new(records.iter().map(|record| Some(record.cached)).collect::<BooleanArray>()),
        Arc::new(records.iter().map(|record| record.rate_limit).collect::<Int64Array>()),
        Arc::new(records.iter().map(|record| record.rate_remaining).collect::<Int64Array>()),
        texts(records.iter().map(|record| record.error.as_deref())),
        texts(records.iter().map(|record| record.verdict.as_deref())),
    ]
}

fn texts<'t>(values: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let caller = state.config().get_extension::<Caller>();
        let batch = self.snapshot(caller.as_deref())?;
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], Arc::clone(&self.schema), projection.cloned())?)
    }
}
