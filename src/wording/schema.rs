//! Tables, and the columns of a table with their pushdown: the output of `\d`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
#[cfg(feature = "shell")]
use arrow::compute::filter_record_batch;
#[cfg(feature = "shell")]
use arrow::compute::kernels::comparison::ilike;
use datafusion::catalog::TableProvider;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use super::period::period_in_words;
use crate::profile::{ColumnSpec, Direction, Origin, Profile, Several, TableKind, TableSpec, TimezoneKind};
use crate::session::suggestion::tables_of;
use crate::session::type_name;
use crate::table::ApiTable;

/// Tables of the current catalog: `table`, `a row is`, `requests`.
pub(crate) async fn all(context: &SessionContext) -> Result<RecordBatch> {
    let found = tables_of(context).await;
    let told = found.iter().map(|(name, table)| match table.downcast_ref::<ApiTable>() {
        Some(own) => (name.as_str(), row_of(own.spec()).to_owned(), cost_of(own.spec().kind)),
        None if name.starts_with("system.") => (name.as_str(), of_system(name).to_owned(), "none"),
        None if table.table_type() == TableType::View => {
            (name.as_str(), "a row of your view".to_owned(), "same as its query")
        }
        None => (name.as_str(), "a row of your table".to_owned(), "none"),
    });
    let told: Vec<_> = told.collect();
    batch([
        ("table", told.iter().map(|(name, _, _)| Some((*name).to_owned())).collect()),
        ("a row is", told.iter().map(|(_, row, _)| Some(row.clone())).collect()),
        ("requests", told.iter().map(|(_, _, cost)| Some((*cost).to_owned())).collect()),
    ])
}

/// As [`all`], the tables whose names match a pattern, in which `*` stands for any characters and `?` for one.
#[cfg(feature = "shell")]
pub(crate) async fn matching(context: &SessionContext, pattern: &str) -> Result<RecordBatch> {
    let tables = all(context).await?;
    let literal = pattern.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    let pattern = StringArray::new_scalar(literal.replace('*', "%").replace('?', "_"));
    Ok(filter_record_batch(&tables, &ilike(tables.column(0), &pattern)?)?)
}

/// Columns of a table, and lines about the table.
pub(crate) fn one(table: &Arc<dyn TableProvider>) -> Result<(RecordBatch, Vec<String>)> {
    let schema = table.schema();
    let own = table.downcast_ref::<ApiTable>();
    let profile = own.map(|own| own.connection().profile());
    let spec = own.map(|own| own.spec());
    let key = |name: &str| {
        let column = spec.and_then(|spec| spec.column(name))?;
        let is_id = spec.is_some_and(|spec| spec.id.as_deref() == Some(name));
        Some(match column.origin {
            Origin::Duration | Origin::Timezone => "request",
            Origin::Aid => "yes",
            _ if spec.is_some_and(|spec| spec.row_key() == [name]) => "yes",
            _ if is_id => "yes",
            _ => return None,
        })
    };
    let pushed = |name: &str| Some(sent(spec?, spec?.column(name)?, profile?));
    let fields = || schema.fields().iter();
    let columns = batch([
        ("column", fields().map(|field| Some(field.name().clone())).collect()),
        ("type", fields().map(|field| Some(type_name(field.data_type()))).collect()),
        ("key", fields().map(|field| Some(key(field.name()).unwrap_or_default().to_owned())).collect()),
        ("pushed down", fields().map(|field| Some(pushed(field.name()).unwrap_or_default())).collect()),
    ])?;
    let mut lines = Vec::new();
    if let Some((spec, profile)) = spec.zip(profile) {
        lines.push(format!("A row is {}. Requests: {}.", row_of(spec), cost_of(spec.kind)));
        if spec.kind.is_search() {
            lines.push(format!(
                "Without a time filter or a duration, a query reads {}.",
                period_in_words(&profile.window.default)
            ));
            lines.push("Other conditions are evaluated locally, over all rows of the time window.".to_owned());
            lines.push("Columns with key `request` echo request parameters.".to_owned());
        }
    }
    Ok((columns, lines))
}

fn batch<const N: usize>(columns: [(&str, Vec<Option<String>>); N]) -> Result<RecordBatch> {
    let columns = columns.map(|(name, texts)| (name, Arc::new(StringArray::from(texts)) as ArrayRef));
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Rows of the tables of schema `system`.
fn of_system(name: &str) -> &'static str {
    match name {
        "system.requests" => "a request sent",
        "system.warnings" => "a warning or note on a query",
        "system.profile" => "an entry of the profile",
        "system.budget" => "a limit of the key",
        "system.columns_seen" => "an unknown field in responses",
        "system.store" => "the stored days of a saved search",
        "system.deleted_mentions" => "a deleted mention kept in the store",
        "system.workers" => "a worker of the server",
        _ => "",
    }
}

fn row_of(table: &TableSpec) -> &str {
    table.description.as_deref().unwrap_or(match table.kind {
        TableKind::List => "a saved search",
        TableKind::History => "a search of the history",
        TableKind::Mentions => "a mention of a saved search",
        TableKind::Overview => "the totals of a saved search over a time window",
        TableKind::Volume => "a day of the timeline",
        TableKind::Breakdowns => "an entry of a top list",
        TableKind::Further => "a record of a saved search's overview response",
    })
}

fn cost_of(kind: TableKind) -> &'static str {
    match kind {
        TableKind::List | TableKind::History => "1",
        TableKind::Mentions => "1 per page of mentions",
        TableKind::Overview | TableKind::Volume | TableKind::Breakdowns | TableKind::Further => "1 per saved search",
    }
}

/// Conditions and sort orders on a column that are pushed down, and the values that it takes.
fn sent(spec: &TableSpec, column: &ColumnSpec, profile: &Profile) -> String {
    if !spec.kind.is_search() {
        return String::new();
    }
    let mut told = Vec::new();
    match column.origin {
        Origin::Aid => told.push("=, IN, LIKE, joins: which saved searches to read".to_owned()),
        Origin::Duration => told.push(format!("=: time window, {}", profile.window.forms())),
        Origin::Timezone => told.push(match profile.timezone.kind {
            TimezoneKind::Iana => "=: IANA name, such as Europe/Berlin".to_owned(),
            TimezoneKind::Offset => "=: UTC offset, such as +01:00".to_owned(),
            TimezoneKind::UtcOffset => "=: UTC offset, such as UTC+01:00".to_owned(),
            TimezoneKind::Minutes => "=: minutes ahead of UTC, such as 60".to_owned(),
            TimezoneKind::Ignored => format!("=: {} only", profile.timezone.default),
        }),
        Origin::Section => {
            let labels = spec.sections.iter().map(|section| section.label.as_str()).filter(|label| !label.is_empty());
            told.push(format!("not pushed down; values: {}", labels.collect::<Vec<_>>().join(", ")));
        }
        _ => {}
    }
    if spec.time.as_deref() == Some(&column.name) {
        told.push("ranges: time window".to_owned());
    }
    if spec.kind == TableKind::Mentions {
        if let Some(filter) = profile.filters.parameters.iter().find(|filter| filter.column == column.name) {
            let how = if profile.filters.several == Several::None { "=" } else { "=, IN, OR" };
            told.push(format!("{how}: filter {}", filter.parameter));
        }
        let ours = profile.sort.values.iter().filter(|value| value.is_ours(spec));
        let orders = ours.filter(|value| value.column == column.name);
        let orders = orders.map(|value| match value.direction {
            Direction::Asc => "ASC",
            Direction::Desc => "DESC",
        });
        let orders: Vec<_> = orders.collect();
        if !orders.is_empty() {
            told.push(format!("ORDER BY {}", orders.join(" ")));
        }
    }
    told.join("; ")
}
