//! Where in an answer the rows and columns of a table lie.

use std::fmt;
use std::sync::Arc;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use schemars::JsonSchema;
use serde::Deserialize;

use super::spec::{Evidence, TableKind};

/// A table: the sections of an answer that hold its rows, and the columns of a row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Name in SQL, which is its key in the document.
    #[serde(skip)]
    pub name: Arc<str>,
    /// What its rows are, by its place in the document.
    #[serde(skip)]
    pub kind: TableKind,
    /// What the layout rests on.
    pub evidence: Evidence,
    /// What a row is, for people; absent: by its kind.
    pub description: Option<String>,
    /// The places in an answer that hold rows, in the order in which they are read.
    pub sections: Vec<SectionSpec>,
    /// Columns in the order of the SQL table.
    pub columns: Vec<ColumnSpec>,
    /// Column that, with the aid, names a row. Rows are told apart by it; absent: rows are not deduplicated.
    pub id: Option<String>,
    /// Column whose range bounds the window to ask for. Absent: only `duration` bounds it.
    pub time: Option<String>,
    /// Column that says when a row was last changed: of doubles the newest is taken. Absent: the one that came first.
    pub version: Option<String>,
    /// Columns that name a row which has no id. Absent: a row without one is an error.
    #[serde(default)]
    pub stand_in: Vec<String>,
    /// Fields of a record that are known, belong to no column and are kept out of `extra`.
    #[serde(default)]
    pub ignore: Vec<Pointer>,
}

impl TableSpec {
    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The name of the first column that has this origin.
    pub fn column_from(&self, origin: &Origin) -> Option<&str> {
        self.columns.iter().find(|column| column.origin == *origin).map(|column| column.name.as_str())
    }
}

/// A place in an answer that holds rows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SectionSpec {
    /// Where, from the root of the answer.
    pub at: Pointer,
    /// What the `section` column says of its rows.
    #[serde(default)]
    pub label: String,
    /// How the rows are written.
    #[serde(default)]
    pub shape: Shape,
    /// With shape `entries`: the pointer under which the name of an entry is found by a column.
    pub key: Option<Pointer>,
    /// With shape `entries`: the pointer under which the value of an entry is found by a column.
    pub value: Option<Pointer>,
    /// Whether an answer may lack it. Otherwise its absence is an error; an empty one, or null, never is.
    #[serde(default)]
    pub optional: bool,
    /// In `saved_searches`: whether a query without an aid asks for the mentions of these.
    #[serde(default)]
    pub fan_out: bool,
}

/// How the rows of a section are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// An array of records.
    #[default]
    Records,
    /// One record.
    Record,
    /// An object whose members are the rows: name and value.
    Entries,
}

/// A column: its SQL name and type, and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "RawColumn")]
pub struct ColumnSpec {
    /// Name in SQL.
    pub name: String,
    /// Type in SQL.
    pub kind: ColumnType,
    /// Whether NULL is allowed. A NULL where it is not is an error, never a default.
    pub nullable: bool,
    /// Where the value comes from.
    pub origin: Origin,
    /// How texts say an instant, as `strftime` does (`%d/%m/%Y %H:%M`); absent: by RFC 3339 or a number.
    pub pattern: Option<Arc<str>>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub enum Origin {
    /// A field of the record, or of the whole answer.
    Field(Pointer, Scope),
    /// The aid that was asked for.
    Aid,
    /// The window that was asked for, in the service's words.
    Duration,
    /// The zone that was asked for.
    Timezone,
    /// The label of the section.
    Section,
    /// 1-based position in the section.
    Rank,
    /// JSON text of what no column took.
    Extra,
}

/// What a pointer starts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The record of the row.
    #[default]
    Record,
    /// The root of the answer; the same value for each of its rows.
    Answer,
}

/// The SQL type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// Text.
    Utf8,
    /// 64-bit integer. Never read through a float.
    Int64,
    /// 64-bit float.
    Float64,
    /// True or false.
    Boolean,
    /// Instant in microseconds, UTC. Read from RFC 3339, from times without zone (UTC), dates and epoch numbers
    /// (seconds, milliseconds or microseconds by their size).
    Timestamp,
    /// List of texts.
    Utf8List,
    /// JSON text.
    Json,
}

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
    pattern: Option<String>,
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

impl TryFrom<RawColumn> for ColumnSpec {
    type Error = String;

    fn try_from(raw: RawColumn) -> Result<Self, String> {
        let RawColumn { name, kind, null: nullable, at, from, scope, pattern } = raw;
        if name.is_empty() {
            return Err("a column needs a name".into());
        }
        let origin = match (at, from) {
            (Some(at), None) => Origin::Field(at, scope.unwrap_or_default()),
            (None, Some(_)) if scope.is_some() => {
                return Err(format!("column `{name}`: `scope` goes with `at` only"));
            }
            (None, Some(from)) => match from {
                RawOrigin::Aid => Origin::Aid,
                RawOrigin::Duration => Origin::Duration,
                RawOrigin::Timezone => Origin::Timezone,
                RawOrigin::Section => Origin::Section,
                RawOrigin::Rank => Origin::Rank,
                RawOrigin::Extra => Origin::Extra,
            },
            _ => return Err(format!("column `{name}` needs either `at` or `from`")),
        };
        let fits = match origin {
            Origin::Field(..) => true,
            Origin::Rank => kind == ColumnType::Int64,
            Origin::Extra => kind == ColumnType::Json,
            _ => kind == ColumnType::Utf8,
        };
        if !fits {
            return Err(format!("column `{name}`: this type does not fit what `from` gives"));
        }
        if let Some(pattern) = &pattern {
            let known = StrftimeItems::new(pattern).all(|item| item != Item::Error);
            if kind != ColumnType::Timestamp || !known {
                return Err(format!(
                    "column `{name}`: `pattern` says how a timestamp is written, such as %d/%m/%Y %H:%M"
                ));
            }
        }
        Ok(Self { name, kind, nullable, origin, pattern: pattern.map(Arc::from) })
    }
}

/// An instant in microseconds since 1970, as a `strftime` pattern says it; without a zone it is UTC, without a time of day the
/// beginning of the day.
pub(crate) fn instant_by(pattern: &str, text: &str) -> Option<i64> {
    let zoned = DateTime::parse_from_str(text, pattern).map(|at| at.timestamp_micros());
    let local = || NaiveDateTime::parse_from_str(text, pattern).map(|at| at.and_utc().timestamp_micros());
    let day = || NaiveDate::parse_from_str(text, pattern).map(|day| day.and_time(NaiveTime::MIN).and_utc());
    zoned.or_else(|_| local()).or_else(|_| day().map(|at| at.timestamp_micros())).ok()
}

/// A JSON pointer (RFC 6901). In a record it may go into arrays, by positions from 0; on the way to a section or to a value
/// of the whole answer it goes through objects only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// The members on the way, outermost first; empty for the root.
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// The place that `inner` names below this one.
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
            return Err(format!("`{text}` is no JSON pointer: expected \"\" or a text that starts with /"));
        };
        Ok(Self(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}
