//! Tables, columns and their places in a response.

use std::fmt;
use std::sync::Arc;

use chrono::format::{Item, StrftimeItems};
use schemars::JsonSchema;
use serde::Deserialize;

use super::spec::{Evidence, TableKind};
use super::zone::Zone;

/// A table: the sections of a response that hold its rows, and the columns of a row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// SQL name, which is the table's key in the document.
    #[serde(skip)]
    pub name: Arc<str>,
    /// Kind of its rows, by its place in the document.
    #[serde(skip)]
    pub kind: TableKind,
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Description of a row, shown to users. Absent: a default for the kind of table.
    pub description: Option<String>,
    /// Reason why the table cannot be read. Its queries are errors that name it, without a request.
    pub unsupported: Option<String>,
    /// Places in a response that hold rows, in the order in which they are read.
    pub sections: Vec<SectionSpec>,
    /// Columns, in the order of the SQL table.
    pub columns: Vec<ColumnSpec>,
    /// Column that identifies a row together with the aid; rows are deduplicated by it. Absent: rows are not
    /// deduplicated.
    pub id: Option<String>,
    /// Column whose range in a query becomes the time window. Absent: only `duration` sets the window.
    pub time: Option<String>,
    /// Column with the time of the last change: of duplicates, the newest is kept. Absent: the first one received.
    pub version: Option<String>,
    /// Columns that identify a row without an id. Absent: a row without an id is an error.
    #[serde(default)]
    pub stand_in: Vec<String>,
    /// Known fields of a record that belong to no column and are omitted from `extra`.
    #[serde(default)]
    pub ignore: Vec<Pointer>,
    /// Time zone of the session that reads the table: its instants have the type of that zone. `None`: UTC.
    #[serde(skip)]
    pub zone: Option<Arc<str>>,
}

impl TableSpec {
    /// Returns the column of this name.
    pub fn column(&self, name: &str) -> Option<&ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Columns whose values together identify a row; empty if there are none.
    pub fn row_key(&self) -> Vec<&str> {
        let aid = || self.column_from(&Origin::Aid).zip(self.id.as_deref()).map(|(aid, id)| vec![aid, id]);
        match self.kind {
            TableKind::List => self.column("aid").map(|_| vec!["aid"]),
            // Positions begin anew in each section.
            TableKind::History if self.sections.len() == 1 => self.column_from(&Origin::Rank).map(|rank| vec![rank]),
            _ => aid(),
        }
        .unwrap_or_default()
    }

    /// Returns the name of the first column with this origin.
    pub fn column_from(&self, origin: &Origin) -> Option<&str> {
        self.columns.iter().find(|column| column.origin == *origin).map(|column| column.name.as_str())
    }
}

/// Label of the list's sections that are the search history.
pub(crate) const RECENT: &str = "recent";

/// A place in a response that holds rows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SectionSpec {
    /// Pointer from the root of the response.
    pub at: Pointer,
    /// Value of the `section` column for its rows. In `saved_searches`, `saved`, `team` and `recent` have a meaning: an aid
    /// in several sections is of the first of these kinds, and `recent` is the search history.
    #[serde(default)]
    pub label: String,
    /// Layout of the rows.
    #[serde(default)]
    pub shape: Shape,
    /// With shape `entries`: the pointer by which columns refer to the name of an entry.
    pub key: Option<Pointer>,
    /// With shape `entries`: the pointer by which columns refer to the value of an entry; "" if the members of that value are
    /// the fields of the row.
    pub value: Option<Pointer>,
    /// Pointer in each record of the section to the rows, such as the saved searches of a folder. Absent: the records are the
    /// rows.
    pub inside: Option<Pointer>,
    /// The record of the section whose rows are read, such as the list of one field among those of several fields. With `inside`
    /// only. Absent: all records.
    pub only: Option<Only>,
    /// Pointer in each record to further records of the same kind, such as the folders in a folder. With `inside` only.
    pub deeper: Option<Pointer>,
    /// True if a response may lack the section. Otherwise its absence is an error; an empty section, or null, never is.
    #[serde(default)]
    pub optional: bool,
    /// In `saved_searches`: true if a query without an aid reads the mentions of these saved searches.
    #[serde(default)]
    pub fan_out: bool,
}

/// One of the records of a section, which is known by a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Only {
    /// Pointer in the record to the text.
    pub at: Pointer,
    /// The text.
    pub is: String,
}

/// Layout of the rows of a section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// An array of records.
    #[default]
    Records,
    /// One record.
    Record,
    /// An object whose members are the rows: each has a name and a value.
    Entries,
}

/// A column: its SQL name and type, and the origin of its value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "RawColumn")]
pub struct ColumnSpec {
    /// SQL name.
    pub name: String,
    /// SQL type.
    pub kind: ColumnType,
    /// True if NULL is allowed. If not, a NULL is an error; it is never replaced by a default.
    pub nullable: bool,
    /// Origin of the value.
    pub origin: Origin,
    /// Format of timestamps in `strftime` notation (`%d/%m/%Y %H:%M`). Absent: RFC 3339 or a number.
    pub pattern: Option<Arc<str>>,
    /// Zone of timestamps that have none. Absent: UTC, unless they contradict it.
    #[schemars(with = "Option<String>")]
    pub zone: Option<Zone>,
    /// Other zones that the times may be of. A time is read if it is the same instant in all of them, and an error otherwise.
    #[schemars(with = "Vec<String>")]
    pub other_zones: Arc<[Zone]>,
    /// True for a text that is the time of a mention, in a zone or a form that is not known. It is returned as it is, and a condition on
    /// it does not set the period that is requested.
    pub is_unzoned: bool,
    /// Pointer to the time of day, if `at` is the day alone.
    pub time_at: Option<Pointer>,
    /// Pointers to further fields of a text, which are appended with `:`. Without one of them the value is NULL.
    pub joined_with: Vec<Pointer>,
    /// Words that mean NULL.
    pub nulls: Arc<[String]>,
}

/// Origin of a column's value.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub enum Origin {
    /// Field of the record, or of the entire response.
    Field(Pointer, Scope),
    /// Requested aid.
    Aid,
    /// Requested time window, in the service's notation.
    Duration,
    /// Requested time zone.
    Timezone,
    /// Label of the section.
    Section,
    /// Kinds of all entries of the list that name an aid. Every table of saved searches has such a column, even if the
    /// profile does not declare it.
    Kinds,
    /// 1-based position in the section.
    Rank,
    /// Fields that belong to no column, and values that did not fit their column's type, as JSON.
    Extra,
    /// Instant by the service's clock at which the row was read. No profile declares such a column: connections with a
    /// store have one.
    AsOf,
    /// Instant by the service's clock at which a store first saw the row; NULL in a row that does not come from the store. No
    /// profile declares such a column: connections with a store have one.
    FirstSeen,
}

/// Starting point of a pointer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Record of the row.
    #[default]
    Record,
    /// Root of the response; all its rows have the same value.
    Answer,
}

/// SQL type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// String.
    Utf8,
    /// 64-bit integer. Never parsed through a float.
    Int64,
    /// 64-bit float.
    Float64,
    /// Boolean.
    Boolean,
    /// Instant in microseconds, UTC. Parsed from RFC 3339, from local times (as UTC), dates, and epoch numbers
    /// (seconds, milliseconds or microseconds, by their magnitude).
    Timestamp,
    /// List of strings.
    Utf8List,
    /// JSON, as a string.
    Json,
}

/// The `zone` of a text that is a time without one.
pub(crate) const UNKNOWN_ZONE: &str = "unknown";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawColumn {
    name: String,
    #[serde(rename = "type")]
    kind: ColumnType,
    #[serde(default = "yes")]
    null: bool,
    at: Option<Pointer>,
    from: Option<RawOrigin>,
    scope: Option<Scope>,
    /// Format of timestamps in `strftime` notation.
    pattern: Option<String>,
    /// Zone of timestamps that have none: an IANA name or an offset such as +09:00. `unknown` for a text that is a time whose zone or
    /// form is not known. A list of zones, if it is one of them: a time is read if they agree on it, and an error otherwise.
    zone: Option<RawZone>,
    /// Pointer to the time of day, if `at` is the day alone. A pattern then reads both, with a blank between them.
    time_at: Option<Pointer>,
    /// Pointers to further fields of a text, which are appended with `:`. Without one of them the value is NULL.
    #[serde(default)]
    joined_with: Vec<Pointer>,
    /// Words that mean NULL, such as "" or "n/a".
    #[serde(default)]
    nulls: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a zone, or a list of zones")]
enum RawZone {
    One(String),
    OneOf(Vec<String>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RawOrigin {
    Aid,
    Duration,
    Timezone,
    Section,
    Rank,
    Extra,
}

fn yes() -> bool {
    true
}

impl ColumnSpec {
    /// A column that no profile declares, without NULL.
    pub(crate) fn new(name: &str, kind: ColumnType, origin: Origin) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            nullable: false,
            origin,
            pattern: None,
            zone: None,
            other_zones: Arc::default(),
            is_unzoned: false,
            time_at: None,
            joined_with: Vec::new(),
            nulls: Arc::default(),
        }
    }

    /// The same column, with NULL allowed.
    pub(crate) fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }
}

impl TryFrom<RawColumn> for ColumnSpec {
    type Error = String;

    fn try_from(raw: RawColumn) -> Result<Self, String> {
        let RawColumn { name, kind, null: nullable, at, from, scope, pattern, zone, time_at, joined_with, nulls } = raw;
        if name.is_empty() {
            return Err("expected a column name, found an empty one".into());
        }
        let origin = match (at, from) {
            (Some(at), None) => Origin::Field(at, scope.unwrap_or_default()),
            (None, Some(_)) if scope.is_some() => {
                return Err(format!("column `{name}`: `scope` is allowed only with `at`"));
            }
            (None, Some(from)) => match from {
                RawOrigin::Aid => Origin::Aid,
                RawOrigin::Duration => Origin::Duration,
                RawOrigin::Timezone => Origin::Timezone,
                RawOrigin::Section => Origin::Section,
                RawOrigin::Rank => Origin::Rank,
                RawOrigin::Extra => Origin::Extra,
            },
            _ => return Err(format!("column `{name}`: expected exactly one of `at` and `from`")),
        };
        let (fits, expected) = match origin {
            Origin::Field(..) => (true, ""),
            Origin::Rank => (kind == ColumnType::Int64, "int64"),
            Origin::Extra => (kind == ColumnType::Json, "json"),
            _ => (kind == ColumnType::Utf8, "utf8"),
        };
        if !fits {
            return Err(format!("column `{name}`: expected type = \"{expected}\" with this `from`"));
        }
        if let Some(pattern) = &pattern {
            let known = StrftimeItems::new(pattern).all(|item| item != Item::Error);
            if kind != ColumnType::Timestamp || !known {
                return Err(format!(
                    "column `{name}`: expected `pattern` only on a timestamp column, in strftime notation such as \
                     %d/%m/%Y %H:%M"
                ));
            }
        }
        let in_record = matches!(origin, Origin::Field(_, Scope::Record));
        let zones = match zone {
            None => Vec::new(),
            Some(RawZone::One(zone)) => vec![zone],
            Some(RawZone::OneOf(zones)) if zones.is_empty() => {
                return Err(format!("column `{name}`: expected a zone, or a list of zones, found an empty list"));
            }
            Some(RawZone::OneOf(zones)) => zones,
        };
        let is_unzoned = in_record && kind == ColumnType::Utf8 && zones.as_slice() == [UNKNOWN_ZONE];
        let zones = if is_unzoned { Vec::new() } else { zones };
        if (!zones.is_empty() || time_at.is_some()) && (kind != ColumnType::Timestamp || !in_record) {
            return Err(format!(
                "column `{name}`: expected `zone` and `time_at` only on a timestamp column of the record"
            ));
        }
        if !joined_with.is_empty() && (kind != ColumnType::Utf8 || !in_record) {
            return Err(format!("column `{name}`: expected `joined_with` only on a utf8 column of the record"));
        }
        if !nulls.is_empty() && (!in_record || time_at.is_some()) {
            return Err(format!("column `{name}`: expected `nulls` only on a column of the record, without `time_at`"));
        }
        let zones: Result<Vec<Zone>, String> = zones.iter().map(|zone| zone.parse()).collect();
        let mut zones = zones.map_err(|error| format!("column `{name}`: {error}"))?.into_iter();
        let (zone, other_zones) = (zones.next(), zones.collect());
        let (pattern, nulls) = (pattern.map(Arc::from), nulls.into());
        Ok(Self { name, kind, nullable, origin, pattern, zone, other_zones, time_at, joined_with, nulls, is_unzoned })
    }
}

/// A JSON pointer (RFC 6901). It addresses members of arrays by 0-based position.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Steps of the path, outermost first; empty for the root.
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// The member of nested objects at this path; arrays have none.
    pub(crate) fn member_of<'v>(&self, value: &'v serde_json::Value) -> Option<&'v serde_json::Value> {
        self.0.iter().try_fold(value, |value, step| value.get(step.as_str()))
    }

    /// Pointer of these steps.
    pub(crate) fn of<'s>(steps: impl IntoIterator<Item = &'s str>) -> Self {
        Self(steps.into_iter().map(str::to_owned).collect())
    }

    /// Pointer to the place that `inner` names below this one.
    pub fn join(&self, inner: &Self) -> Self {
        Self(self.0.iter().chain(&inner.0).cloned().collect())
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("invalid JSON pointer `{text}`: expected \"\" or a string that starts with /"));
        };
        Ok(Self(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}
