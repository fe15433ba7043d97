//! What `\d` tells: the tables, or the columns of one with what of a query the service is sent.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use super::completion::tables;
use crate::profile::{ColumnSpec, Direction, Origin, Profile, Several, TableKind, TableSpec, TimezoneKind};
use crate::table::ApiTable;

/// The tables that need no catalog: `table`, `a row is`, `answered by`.
pub(super) async fn all(context: &SessionContext) -> Result<RecordBatch> {
    let found = tables(context).await;
    let told = found.iter().map(|(name, table)| match table.downcast_ref::<ApiTable>() {
        Some(own) => (name.as_str(), row_of(own.spec()).to_owned(), answered(own.spec().kind)),
        None if name.starts_with("system.") => (name.as_str(), String::new(), "no request"),
        None => (name.as_str(), String::new(), "yours"),
    });
    let told: Vec<_> = told.collect();
    batch([
        ("table", told.iter().map(|(name, _, _)| Some((*name).to_owned())).collect()),
        ("a row is", told.iter().map(|(_, row, _)| Some(row.clone())).collect()),
        ("answered by", told.iter().map(|(_, _, answered)| Some((*answered).to_owned())).collect()),
    ])
}

/// The columns of a table, and lines about all of it.
pub(super) fn one(table: &Arc<dyn TableProvider>) -> Result<(RecordBatch, Vec<String>)> {
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
        ("what the service is sent", fields().map(|field| Some(pushed(field.name()).unwrap_or_default())).collect()),
    ])?;
    let mut lines = Vec::new();
    if let Some((spec, profile)) = spec.zip(profile) {
        lines.push(format!("A row is {}: {}.", row_of(spec), answered(spec.kind)));
        if spec.kind.is_search() {
            lines.push(format!("Without a time or a duration: the default window, {}.", profile.window.default));
            lines.push("Other conditions are evaluated here, over the rows of the window.".to_owned());
            lines.push("Columns marked `request` hold what was asked for. \\cost SQL tells the requests.".to_owned());
        }
    }
    Ok((columns, lines))
}

fn batch<const N: usize>(columns: [(&str, Vec<Option<String>>); N]) -> Result<RecordBatch> {
    let columns = columns.map(|(name, texts)| (name, Arc::new(StringArray::from(texts)) as ArrayRef));
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn row_of(table: &TableSpec) -> &str {
    table.description.as_deref().unwrap_or(match table.kind {
        TableKind::List => "an entry of the list: saved, team or recent",
        TableKind::Mentions => "a mention of a saved search",
        TableKind::Overview => "the totals of a saved search over a window",
        TableKind::Volume => "a day of the timeline",
        TableKind::Breakdowns => "an entry of a top list",
        TableKind::Further => "a record beside the overview of a saved search",
    })
}

fn answered(kind: TableKind) -> &'static str {
    match kind {
        TableKind::List => "one request",
        TableKind::Mentions => "pages, as many as the mentions take",
        TableKind::Overview | TableKind::Volume | TableKind::Breakdowns | TableKind::Further => {
            "one request a saved search"
        }
    }
}

/// The name of a type as SQL has it.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".to_owned(),
        DataType::List(field) => format!("{}[]", type_name(field.data_type())),
        other => other.to_string(),
    }
}

/// What of the conditions and orders on a column the service is sent, and which values it takes.
fn sent(spec: &TableSpec, column: &ColumnSpec, profile: &Profile) -> String {
    if !spec.kind.is_search() {
        return String::new();
    }
    let mut told = Vec::new();
    match column.origin {
        Origin::Aid => told.push("= IN LIKE, joins: the saved searches to ask for".to_owned()),
        Origin::Duration => told.push(format!("=: the window, {}", profile.window.forms())),
        Origin::Timezone => told.push(match profile.timezone.kind {
            TimezoneKind::Iana => "=: an IANA name, Europe/Berlin".to_owned(),
            TimezoneKind::Offset => "=: a distance from UTC, +01:00".to_owned(),
            TimezoneKind::Ignored => format!("=: {} alone", profile.timezone.default),
        }),
        Origin::Section => {
            let labels = spec.sections.iter().map(|section| section.label.as_str()).filter(|label| !label.is_empty());
            told.push(format!("nothing; its values are {}", labels.collect::<Vec<_>>().join(", ")));
        }
        _ => {}
    }
    if spec.time.as_deref() == Some(&column.name) {
        told.push("ranges: the window".to_owned());
    }
    if spec.kind == TableKind::Mentions {
        if let Some(filter) = profile.filters.parameters.iter().find(|filter| filter.column == column.name) {
            let how = if profile.filters.several == Several::None { "=" } else { "= IN OR" };
            told.push(format!("{how}: the filter {}", filter.parameter));
        }
        let orders = profile.sort.values.iter().filter(|value| value.column == column.name);
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
