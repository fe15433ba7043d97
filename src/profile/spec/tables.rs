//! `[tables]`: SQL tables and their places in responses.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::{ColumnSpec, ColumnType, Origin, RECENT, Scope, SectionSpec, Shape, TableSpec};
use super::Checks;

/// SQL tables, mapped to the service's responses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Saved searches, one row per aid: entries of the list with the same aid are one row.
    pub saved_searches: TableSpec,
    /// Unchanged entries of the search history, from the list's sections with the label `recent`. Derived from
    /// `saved_searches`; `None` if it has no such section.
    #[serde(skip)]
    pub recent_searches: Option<TableSpec>,
    /// Mention records.
    pub mentions: TableSpec,
    /// Totals of a saved search.
    pub overview: TableSpec,
    /// Timeline of a saved search.
    pub volume: TableSpec,
    /// Top lists of a saved search.
    pub breakdowns: TableSpec,
    /// Further tables by name. Their rows are in the response that contains the overview.
    #[serde(default)]
    pub further: BTreeMap<String, TableSpec>,
}

/// Kind of a table's rows, which determines the requests made for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// Saved searches of the list, one row per aid: one request.
    List,
    /// Unchanged entries of the list: the same request.
    History,
    /// Mention records: pages of a search.
    Mentions,
    /// Totals of an overview: one request per saved search.
    Overview,
    /// Buckets of an overview's timeline, full days of a zone: one request per saved search.
    Volume,
    /// Entries of an overview's top lists: one request per saved search.
    Breakdowns,
    /// Other content of the response that contains the overview: one request per saved search.
    #[default]
    Further,
}

impl TableKind {
    /// True if its rows come from searches, each with an aid, a window and a zone; otherwise they come from the list.
    pub fn is_search(self) -> bool {
        !matches!(self, Self::List | Self::History)
    }
}

impl Tables {
    /// All tables; those that every profile has come first.
    pub fn all(&self) -> impl Iterator<Item = &TableSpec> {
        let Self { saved_searches, recent_searches, mentions, overview, volume, breakdowns, further } = self;
        let own = [saved_searches, mentions, overview, volume, breakdowns];
        own.into_iter().chain(recent_searches).chain(further.values())
    }

    /// Completes the tables with what follows from the document: each one's name and kind from its key, the column
    /// `kinds`, and the history.
    pub(in super::super) fn complete(&mut self) {
        self.name_tables();
        let list = &mut self.saved_searches;
        self.recent_searches = history_of(list);
        if let Some(kind) = list.columns.iter().position(|column| column.name == "kind")
            && list.column("kinds").is_none()
        {
            list.columns.insert(kind + 1, ColumnSpec::new("kinds", ColumnType::Utf8List, Origin::Kinds));
        }
    }

    fn name_tables(&mut self) {
        let Self { saved_searches, recent_searches: _, mentions, overview, volume, breakdowns, further } = self;
        let named = [
            ("saved_searches", TableKind::List, saved_searches),
            ("mentions", TableKind::Mentions, mentions),
            ("overview", TableKind::Overview, overview),
            ("volume", TableKind::Volume, volume),
            ("breakdowns", TableKind::Breakdowns, breakdowns),
        ];
        let further = further.iter_mut().map(|(name, table)| (name.as_str(), TableKind::Further, table));
        for (name, kind, table) in named.into_iter().chain(further) {
            (table.name, table.kind) = (Arc::from(name), kind);
        }
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        let own = self.all().filter(|table| table.kind != TableKind::Further);
        let own: Vec<&str> = own.map(|table| table.name.as_ref()).chain([RECENT_SEARCHES]).collect();
        for name in self.further.keys() {
            let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            let word = plain && name.starts_with(|first: char| first.is_ascii_lowercase());
            let message = format!(
                "expected a unique table name of lowercase letters, digits and `_` that starts with a letter, found \
                 `{name}`"
            );
            checks.expect(word && !own.contains(&name.as_str()), "tables.further", message);
        }
        for table in self.all() {
            check_table(table, checks);
        }
        for needed in ["aid", "kind"] {
            let known = self.saved_searches.column(needed).is_some();
            checks.expect(known, "tables.saved_searches.columns", format!("expected a column `{needed}`"));
        }
        checks.expect(
            self.mentions.id.is_some(),
            "tables.mentions",
            "expected `id`, the column that identifies a mention",
        );
        checks.expect(
            self.mentions.sections.len() == 1,
            "tables.mentions.sections",
            "expected exactly one section, whose rows are paged",
        );
    }

    /// Rejects valid settings of a table that have no effect yet.
    pub(super) fn check_supported(&self, checks: &mut Checks) {
        for table in self.all() {
            let key = |of: &str| format!("{}.{of}", key_of(table));
            let pages = table.kind == TableKind::Mentions;
            checks.not_yet(!pages && table.id.is_some(), &key("id"), "an id in a table without paging");
            let bounded = matches!(table.kind, TableKind::Mentions | TableKind::Volume);
            let time = "a time window from a column of this table";
            checks.not_yet(!bounded && table.time.is_some(), &key("time"), time);
        }
    }
}

const RECENT_SEARCHES: &str = "recent_searches";

/// Returns the table of the search history: the entries of the list's sections with the label `recent`, as they came.
fn history_of(list: &TableSpec) -> Option<TableSpec> {
    let sections = list.sections.iter().filter(|section| section.label == RECENT);
    let sections: Vec<_> = sections.map(|section| SectionSpec { optional: true, ..section.clone() }).collect();
    if sections.is_empty() {
        return None;
    }
    let taken = |column: &&ColumnSpec| match column.origin {
        Origin::Field(..) => ["aid", "name", "query", "searched_at"].contains(&column.name.as_str()),
        ref origin => *origin == Origin::Extra,
    };
    // A search that was not saved may have no aid.
    let columns = list.columns.iter().filter(taken).cloned().map(ColumnSpec::nullable);
    let position = ColumnSpec::new("position", ColumnType::Int64, Origin::Rank);
    Some(TableSpec {
        name: Arc::from(RECENT_SEARCHES),
        kind: TableKind::History,
        description: None,
        id: None,
        time: None,
        version: None,
        stand_in: Vec::new(),
        sections,
        columns: [position].into_iter().chain(columns).collect(),
        ..list.clone()
    })
}

/// Key of a table in the document.
fn key_of(table: &TableSpec) -> String {
    match table.kind {
        TableKind::Further => format!("tables.further.{}", table.name),
        TableKind::History => "tables.saved_searches".to_owned(),
        _ => format!("tables.{}", table.name),
    }
}

fn check_table(table: &TableSpec, checks: &mut Checks) {
    let key = |of: &str| format!("{}.{of}", key_of(table));
    check_columns(table, &key("columns"), checks);
    checks.expect(!table.sections.is_empty(), &key("sections"), "expected at least one section");
    for section in &table.sections {
        let is_list = !table.kind.is_search();
        let may_hold = match table.kind {
            TableKind::List | TableKind::History => section.shape == Shape::Records,
            TableKind::Volume | TableKind::Breakdowns | TableKind::Further => section.shape != Shape::Record,
            TableKind::Mentions | TableKind::Overview => false,
        };
        checks.expect(
            section.inside.is_none() || may_hold,
            &key("sections"),
            "expected `inside` only in tables.saved_searches with shape = \"records\", and in volume, breakdowns and further tables \
             with shape = \"records\" or \"entries\"",
        );
        checks.expect(
            section.inside.is_some() || (section.deeper.is_none() && section.only.is_none()),
            &key("sections"),
            "expected `deeper` and `only` only with `inside`",
        );
        checks.expect(
            is_list || section.deeper.is_none(),
            &key("sections"),
            "expected `deeper` only in tables.saved_searches",
        );
        checks.expect(
            (section.shape == Shape::Entries) == (section.key.is_some() && section.value.is_some()),
            &key("sections"),
            "expected `key` and `value` if and only if shape = \"entries\"",
        );
    }
    let in_record = |column: &ColumnSpec| matches!(column.origin, Origin::Field(_, Scope::Record));
    let named = |name: &Option<String>| name.as_ref().map(|name| table.column(name));
    let is_id = |column: &ColumnSpec| {
        matches!(column.kind, ColumnType::Utf8 | ColumnType::Int64) && in_record(column) && !column.nullable
    };
    checks.expect(
        named(&table.id).is_none_or(|column| column.is_some_and(is_id)),
        &key("id"),
        "expected a utf8 or int64 column of this table that is read from the record, with null = false",
    );
    for (of, name) in [("time", &table.time), ("version", &table.version)] {
        let instant = |column: &ColumnSpec| column.kind == ColumnType::Timestamp && in_record(column);
        checks.expect(
            named(name).is_none_or(|column| column.is_some_and(instant)),
            &key(of),
            "expected a timestamp column of this table that is read from the record",
        );
    }
    let text_id = named(&table.id).flatten().is_some_and(|column| column.kind == ColumnType::Utf8);
    let fields = table.stand_in.iter().all(|name| table.column(name).is_some_and(in_record));
    checks.expect(
        table.stand_in.is_empty() || (text_id && fields),
        &key("stand_in"),
        "expected columns of this table that are read from the record, and an `id` of type utf8",
    );
}

fn check_columns(table: &TableSpec, key: &str, checks: &mut Checks) {
    let mut names = HashSet::new();
    for ColumnSpec { name, origin, .. } in &table.columns {
        checks.expect(names.insert(name), key, format!("duplicate column `{name}`"));
        checks.expect(
            table.kind.is_search() || !matches!(origin, Origin::Aid | Origin::Duration | Origin::Timezone),
            key,
            format!("column `{name}`: requests for the list have no aid, window or time zone"),
        );
        let root = matches!(origin, Origin::Field(at, Scope::Record) if at.steps().is_empty());
        checks.expect(!root, key, format!("column `{name}`: expected `at` to name a field, found the entire record"));
    }
    for (name, origin) in [("section", Origin::Section), ("rank", Origin::Rank), ("extra", Origin::Extra)] {
        let several = table.columns.iter().filter(|column| column.origin == origin).count() > 1;
        checks.expect(!several, key, format!("expected at most one column with from = \"{name}\""));
    }
}
