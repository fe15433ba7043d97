//! `[timezone]`, `[sort]` and `[filters]`: what else a search can be asked for. Its period is [`WindowSpec`](super::super::WindowSpec).

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::{Origin, TableSpec};
use super::super::zone::Zone;
use super::{Checks, Evidence};
use crate::error::nearest;

/// The zone parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timezone {
    /// What it rests on.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// How zones are named.
    pub kind: TimezoneKind,
    /// Zone sent where the query names none. Always sent, as the seed recommends.
    pub default: String,
}

/// How zones are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimezoneKind {
    /// `Europe/Berlin`.
    Iana,
    /// `+01:00`.
    Offset,
    /// The parameter has no effect: days are those of `default`, whatever is sent.
    Ignored,
}

impl Timezone {
    /// The zone that a name means to the service; the error tells what it takes.
    pub fn zone_of(&self, name: &str) -> Result<Zone, String> {
        match (self.kind, name.parse()) {
            (TimezoneKind::Iana, Ok(zone @ Zone::Named(_))) | (TimezoneKind::Offset, Ok(zone @ Zone::Offset(_))) => {
                Ok(zone)
            }
            (TimezoneKind::Ignored, Ok(zone)) if name == self.default => Ok(zone),
            (TimezoneKind::Iana, _) => {
                let near = nearest(name, Zone::names()).unwrap_or("UTC");
                Err(format!("`{name}` is no zone of this service: it takes IANA names, such as {near}"))
            }
            (TimezoneKind::Offset, _) => {
                Err(format!("`{name}` is no zone of this service: it takes distances from UTC, such as +01:00"))
            }
            (TimezoneKind::Ignored, _) => {
                Err(format!("`{name}` is no zone of this service: its days are those of {}", self.default))
            }
        }
    }

    /// How the service is told to count by the days of a zone; `None` where it cannot.
    pub fn words_of(&self, zone: Zone) -> Option<String> {
        let utc = zone == Zone::UTC;
        match self.kind {
            TimezoneKind::Iana => Some(zone.to_string()),
            TimezoneKind::Offset if utc => Some("+00:00".to_owned()),
            TimezoneKind::Offset => Some(zone.to_string()).filter(|_| matches!(zone, Zone::Offset(_))),
            TimezoneKind::Ignored => Some(self.default.clone()).filter(|default| default.parse() == Ok(zone)),
        }
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        if let Err(message) = self.zone_of(&self.default) {
            checks.expect(false, "timezone.default", message);
        }
    }
}

/// The sort parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sort {
    /// What it rests on.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Values with the order each gives.
    pub values: Vec<SortValue>,
}

impl Sort {
    pub(super) fn check(&self, mentions: &TableSpec, checks: &mut Checks) {
        check_fields("sort.values", self.values.iter().map(|value| &value.column), mentions, checks);
    }
}

/// Sorting and filtering go by fields of the mentions.
fn check_fields<'c>(key: &str, columns: impl Iterator<Item = &'c String>, mentions: &TableSpec, checks: &mut Checks) {
    for column in columns {
        let field = mentions.column(column).is_some_and(|column| matches!(column.origin, Origin::Field(..)));
        checks.expect(field, key, format!("expected a field column of mentions, found `{column}`"));
    }
}

/// A value of the sort parameter. Ties come in any order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SortValue {
    /// Value sent.
    pub value: String,
    /// Column of `mentions` that it orders by.
    pub column: String,
    /// Direction.
    pub direction: Direction,
    /// Where NULLs come.
    pub nulls: Nulls,
}

/// Direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Smallest first.
    Asc,
    /// Largest first.
    Desc,
}

/// Where NULLs come in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nulls {
    /// Before all values.
    First,
    /// After all values.
    Last,
}

/// The filter parameters: equality with any of the values given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Filters {
    /// What it rests on.
    pub evidence: Evidence,
    /// How several values are written.
    pub several: Several,
    /// What separates values where `several = "separated"`.
    #[serde(default)]
    pub separator: String,
    /// The parameters.
    pub parameters: Vec<FilterParameter>,
}

impl Filters {
    pub(super) fn check(&self, mentions: &TableSpec, checks: &mut Checks) {
        checks.expect(
            self.several != Several::Separated || !self.separator.is_empty(),
            "filters.separator",
            "expected a text, since several = \"separated\"",
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
    /// Column of `mentions` that it compares.
    pub column: String,
}

/// How several values of a filter are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Several {
    /// In one parameter, with a separator.
    Separated,
    /// The parameter once a value.
    Repeat,
    /// One value only.
    None,
}
