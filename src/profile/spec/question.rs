//! `[timezone]`, `[sort]` and `[filters]`: further parameters of a search. Its period is in
//! [`WindowSpec`](super::super::WindowSpec).

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::{ColumnType, Origin, TableSpec};
use super::super::zone::Zone;
use super::{Checks, Evidence};
use crate::error::nearest;

/// Time zone parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timezone {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Parameter name. Absent, with kind = "ignored" only: none is sent.
    pub parameter: Option<String>,
    /// Notation of zones.
    pub kind: TimezoneKind,
    /// Zone sent when the query names none. A parameter is always sent, as the API description recommends.
    pub default: String,
}

/// Notation of time zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimezoneKind {
    /// `Europe/Berlin`.
    Iana,
    /// `+01:00`.
    Offset,
    /// `UTC+01:00`.
    UtcOffset,
    /// Minutes by which local times are ahead of UTC: `60`.
    Minutes,
    /// The parameter has no effect, or there is none: days are always those of `default`.
    Ignored,
}

impl Timezone {
    /// Parses a zone in the service's notation. The error describes the expected value.
    pub fn zone_of(&self, name: &str) -> Result<Zone, String> {
        let parsed = match self.kind {
            TimezoneKind::UtcOffset => name.strip_prefix("UTC").ok_or_else(String::new).and_then(str::parse),
            TimezoneKind::Minutes => name.parse().ok().and_then(Zone::east).map(Zone::Offset).ok_or_else(String::new),
            // The value that is sent may be in any notation.
            TimezoneKind::Ignored => Zone::named_otherwise(name).ok_or_else(String::new),
            _ => name.parse(),
        };
        match (self.kind, parsed) {
            (TimezoneKind::UtcOffset | TimezoneKind::Minutes, Ok(zone @ Zone::Offset(_))) => Ok(zone),
            (TimezoneKind::UtcOffset, _) => {
                Err(format!("invalid time zone `{name}`: the service takes UTC offsets such as UTC+01:00"))
            }
            (TimezoneKind::Minutes, _) => {
                Err(format!("invalid time zone `{name}`: the service takes minutes ahead of UTC, such as 60"))
            }
            (TimezoneKind::Iana, Ok(zone @ Zone::Named(_))) | (TimezoneKind::Offset, Ok(zone @ Zone::Offset(_))) => {
                Ok(zone)
            }
            (TimezoneKind::Ignored, Ok(zone)) if name == self.default => Ok(zone),
            (TimezoneKind::Iana, _) => {
                let near = nearest(name, Zone::names()).unwrap_or("UTC");
                Err(format!("invalid time zone `{name}`: the service takes IANA names such as {near}"))
            }
            (TimezoneKind::Offset, _) => {
                Err(format!("invalid time zone `{name}`: the service takes UTC offsets such as +01:00"))
            }
            (TimezoneKind::Ignored, _) => {
                Err(format!("invalid time zone `{name}`: the service always uses {}", self.default))
            }
        }
    }

    /// The zone whose days the service has whatever is sent, by its name in the database. `None` if it follows the parameter, or
    /// if the database has no such zone.
    pub fn always(&self) -> Option<&'static str> {
        let zone = Zone::named_otherwise(&self.default).filter(|_| self.kind == TimezoneKind::Ignored)?;
        zone.in_database().map(|zone| zone.name())
    }

    /// Formats a zone for the service; `None` if the service cannot use it for its days.
    pub fn words_of(&self, zone: Zone) -> Option<String> {
        let utc = zone == Zone::UTC;
        match self.kind {
            TimezoneKind::Iana => Some(zone.to_string()),
            TimezoneKind::Offset if utc => Some("+00:00".to_owned()),
            TimezoneKind::UtcOffset if utc => Some("UTC+00:00".to_owned()),
            TimezoneKind::Minutes if utc => Some("0".to_owned()),
            TimezoneKind::UtcOffset => Some(format!("UTC{zone}")).filter(|_| matches!(zone, Zone::Offset(_))),
            TimezoneKind::Minutes => match zone {
                Zone::Offset(offset) => Some((offset.local_minus_utc() / 60).to_string()),
                Zone::Named(_) => None,
            },
            TimezoneKind::Offset => Some(zone.to_string()).filter(|_| matches!(zone, Zone::Offset(_))),
            TimezoneKind::Ignored => {
                Some(self.default.clone()).filter(|default| Zone::named_otherwise(default) == Some(zone))
            }
        }
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        if let Err(message) = self.zone_of(&self.default) {
            checks.expect(false, "timezone.default", message);
        }
        let sent = self.parameter.is_some() || self.kind == TimezoneKind::Ignored;
        checks.expect(
            sent,
            "timezone.parameter",
            "expected a name, or kind = \"ignored\" if there is no such parameter",
        );
    }
}

/// Sort parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sort {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Values and the sort order that each one selects.
    pub values: Vec<SortValue>,
}

impl Sort {
    pub(super) fn check(&self, mentions: &TableSpec, checks: &mut Checks) {
        check_fields("sort.values", self.values.iter().map(|value| &value.column), mentions, checks);
        let is_text =
            |value: &&SortValue| mentions.column(&value.column).is_none_or(|column| column.kind == ColumnType::Utf8);
        let of_others = self.values.iter().filter(|value| value.collation.is_some()).find(|value| !is_text(value));
        let column = of_others.map(|value| value.column.as_str()).unwrap_or_default();
        let message = format!("expected `collation` only with a utf8 column, found `{column}`");
        checks.expect(of_others.is_none(), "sort.values", message);
    }
}

/// Checks that columns are read from fields of mentions: the service sorts and filters by fields only.
fn check_fields<'c>(key: &str, columns: impl Iterator<Item = &'c String>, mentions: &TableSpec, checks: &mut Checks) {
    for column in columns {
        let field = mentions.column(column).is_some_and(|column| matches!(column.origin, Origin::Field(..)));
        checks.expect(field, key, format!("expected a column of tables.mentions that has `at`, found `{column}`"));
    }
}

/// A value of the sort parameter. Ties come in any order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SortValue {
    /// Value sent.
    pub value: String,
    /// Column of `mentions` to sort by.
    pub column: String,
    /// Direction.
    pub direction: Direction,
    /// Position of NULLs.
    pub nulls: Nulls,
    /// Order of texts. Absent: not known, so that mentions are sorted here by this column. Numbers, instants and booleans have one
    /// order.
    pub collation: Option<Collation>,
}

impl SortValue {
    /// True if the service sorts by this column of `mentions` as the engine does: numbers, instants and booleans, and texts of a
    /// declared collation. Services compare texts by a language, or without case, and their first pages may look the same.
    pub(crate) fn is_ours(&self, mentions: &TableSpec) -> bool {
        mentions.column(&self.column).is_some_and(|column| match column.kind {
            ColumnType::Int64 | ColumnType::Float64 | ColumnType::Boolean | ColumnType::Timestamp => true,
            ColumnType::Utf8 | ColumnType::Utf8List | ColumnType::Json => self.collation == Some(Collation::Bytes),
        })
    }
}

/// Order of the texts of a sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Collation {
    /// By the bytes of UTF-8, which is the order of the engine.
    Bytes,
}

/// Direction of a sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Smallest first.
    Asc,
    /// Largest first.
    Desc,
}

/// Position of NULLs in a sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nulls {
    /// Before all values.
    First,
    /// After all values.
    Last,
}

/// Filter parameters. Each selects mentions whose column equals one of the given values.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Filters {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Notation of several values.
    pub several: Several,
    /// Separator of values, with `several = "separated"`.
    #[serde(default)]
    pub separator: String,
    /// Maximum length of the values of all filters in a URL, in bytes. Longer ones are not sent: mentions are compared with them
    /// here. Most web servers reject URLs of more than 8 KB.
    #[serde(default = "longest")]
    pub longest: usize,
    /// Parameters.
    pub parameters: Vec<FilterParameter>,
}

fn longest() -> usize {
    6_000
}

impl Filters {
    pub(super) fn check(&self, mentions: &TableSpec, checks: &mut Checks) {
        checks.expect(
            self.several != Several::Separated || !self.separator.is_empty(),
            "filters.separator",
            "expected a non-empty string with several = \"separated\"",
        );
        let columns = self.parameters.iter().map(|parameter| &parameter.column);
        check_fields("filters.parameters", columns, mentions, checks);
    }
}

/// A filter parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterParameter {
    /// Parameter name.
    pub parameter: String,
    /// Column of `mentions` that it filters.
    pub column: String,
}

/// Notation of several values of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Several {
    /// One parameter, values joined by the separator.
    Separated,
    /// The parameter repeated for each value.
    Repeat,
    /// Not possible: one value only.
    None,
}
