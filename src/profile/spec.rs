//! The sections of a profile as types: one struct a section of the document, one enum a choice.

use std::collections::BTreeMap;

use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::column::{Pointer, TableSpec};
use super::zone::Zone;
use crate::error::nearest;

/// What a statement of the profile rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The published description of the API says so.
    Given,
    /// Nobody has said so: an assumption.
    Assumed,
    /// Seen on a live service.
    Probed,
    /// The user's own manual says so.
    Documented,
}

/// How the key is sent (seed section 5).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// What it rests on.
    pub evidence: Evidence,
    /// Header name.
    pub header: String,
    /// Header value with one placeholder: `{key}`, or `{base64}` for base64 of `<key>:` (RFC 7617).
    pub format: String,
}

/// An endpoint, relative to the base URL (seed section 4).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// What it rests on.
    pub evidence: Evidence,
    /// Path below the base URL.
    pub path: String,
}

/// The search endpoint (seed section 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchEndpoint {
    /// What it rests on.
    pub evidence: Evidence,
    /// Path below the base URL.
    pub path: String,
    /// Parameter that names the saved search.
    pub aid: String,
}

/// How mention records are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MentionsRequest {
    /// What it rests on.
    pub evidence: Evidence,
    /// The way.
    pub requested_by: RequestedBy,
    /// The parameter of `requested_by = "flag"`.
    pub flag: Option<Flag>,
    /// Whether answers with mentions have the overview as well (seed section 4.2).
    #[serde(default = "yes")]
    pub with_overview: bool,
}

fn yes() -> bool {
    true
}

/// A parameter with the value that switches something on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// Parameter name.
    pub parameter: String,
    /// Value that switches it on.
    pub value: String,
}

/// How mention records are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestedBy {
    /// By a page size above 0; size 0 is the overview alone.
    Size,
    /// By a parameter.
    Flag,
    /// They always come.
    Always,
}

/// What the offset parameter counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Offset {
    /// What it rests on.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Rows or pages.
    pub unit: OffsetUnit,
    /// What the first one is called: 0 or 1.
    pub first: u64,
}

/// What the offset parameter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffsetUnit {
    /// Rows.
    Row,
    /// Pages of the size asked for.
    Page,
}

/// The page size.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// What it rests on.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Rows a page may have.
    pub max: u64,
    /// What a larger size gets.
    pub beyond: Oversize,
}

/// What a page size above the bound gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Oversize {
    /// An error.
    Rejected,
    /// A smaller page.
    Clamped,
}

/// How far paging reaches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// What it rests on.
    pub evidence: Evidence,
    /// Rows that can be reached; absent: all.
    pub rows: Option<u64>,
    /// What lies beyond.
    pub beyond: Option<DepthAnswer>,
}

/// What the service answers beyond its depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DepthAnswer {
    /// Status 400.
    BadRequest,
    /// Status 404.
    NotFound,
    /// An empty page.
    Empty,
    /// The last page once more.
    LastPage,
}

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

/// How throttling looks (seed sections 7 and 8).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// What it rests on.
    pub evidence: Evidence,
    /// An answer that fits any of these is throttling.
    pub when: Vec<ThrottleRule>,
    /// An answer that fits any of these says that a quota is used up: it is not asked again.
    #[serde(default)]
    pub quota: Vec<ThrottleRule>,
    /// Header with the wait, in seconds or as a date (RFC 9110, 10.2.3).
    pub retry_after: Option<String>,
    /// Header with the requests allowed in a window; shown in `system.requests`.
    pub limit: Option<String>,
    /// Header with the requests left in the window.
    pub remaining: Option<String>,
    /// Header with the end of the window.
    pub reset: Option<String>,
    /// How `reset` is written.
    #[serde(default)]
    pub reset_format: ResetFormat,
}

/// A status, and optionally an error code, that means throttling.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThrottleRule {
    /// HTTP status.
    pub status: u16,
    /// Error code in the body; absent: any.
    pub code: Option<String>,
}

/// How the end of a rate window is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResetFormat {
    /// Seconds since 1970.
    #[default]
    EpochS,
    /// Seconds from now.
    Seconds,
    /// RFC 3339.
    Iso,
}

/// What may be spent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What it rests on.
    pub evidence: Evidence,
    /// Requests under way at once.
    pub concurrency: usize,
    /// Declared limits, all of which hold.
    pub windows: Vec<RateWindow>,
    /// Units of the windows that a record costs that is asked for, on top of the one that a request costs.
    pub cost_per_record: Option<u64>,
}

/// A declared limit: so many requests in any span of so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateWindow {
    /// Requests.
    pub requests: u32,
    /// Length of the window, in seconds.
    pub seconds: u32,
}

/// The number of mentions that match, as an answer tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Total {
    /// What it rests on.
    pub evidence: Evidence,
    /// How far it is believed.
    pub trust: Trust,
    /// Where it is.
    pub at: Option<Pointer>,
    /// Where `eq` or `gte` says whether it is exact; absent: it is.
    pub relation: Option<Pointer>,
}

/// How far a total is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// It is the number of mentions; a scan is complete when it received as many.
    Exact,
    /// A hint; pages are read until one is empty.
    Advisory,
    /// There is none; pages are read until one is empty.
    Absent,
}

/// Which numbers of the overview count the mentions that match, so that they need not be read to be counted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// What it rests on.
    pub evidence: Evidence,
    /// How far they are believed; by advisory ones a query counts only if it says so.
    pub trust: Trust,
    /// Column of `overview` with the number of all mentions that match.
    pub total: String,
    /// Column of `overview` that says `eq` where the total is exact; absent, or NULL there: it is.
    pub relation: Option<String>,
    /// Whether the buckets of `volume` are the days of the zone that was asked for, and count the window's mentions.
    pub days: bool,
    /// The lists of `breakdowns` that count each mention of a column's value.
    pub lists: Vec<CountList>,
}

/// A list of `breakdowns` that counts the mentions of each value of a column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountList {
    /// Column of `mentions`.
    pub column: String,
    /// Label of the section of `breakdowns`.
    pub dimension: String,
    /// Name of the entry for mentions without a value.
    pub missing: Option<String>,
    /// The service's manual promises that the list has every value, so that mentions which it does not count have none.
    /// Honored only with `evidence = "documented"`; otherwise a list counts only where its numbers add up to the total.
    #[serde(default)]
    pub whole: bool,
    /// Where the overview tells the number of mentions whose values the list leaves out, from the record of `overview`.
    pub rest: Option<Pointer>,
}

/// What an answer repeats of its question. Compared with the question where present.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoSpec {
    /// What it rests on.
    pub evidence: Evidence,
    /// The aid.
    pub aid: Option<Pointer>,
    /// The zone.
    pub timezone: Option<Pointer>,
    /// The offset as it was sent.
    pub offset: Option<Pointer>,
    /// Start of the window that was resolved, as an instant.
    pub from: Option<Pointer>,
    /// End of the window that was resolved, as an instant.
    pub to: Option<Pointer>,
}

/// How an error looks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorSpec {
    /// What it rests on.
    pub evidence: Evidence,
    /// How the body is written.
    pub format: ErrorFormat,
    /// Where the machine-readable code is.
    pub code: Option<Pointer>,
    /// Where the message is.
    pub message: Option<Pointer>,
    /// Where the offending parameter is named.
    pub field: Option<Pointer>,
    /// Whether an error may come with a status of success.
    #[serde(default)]
    pub inside_success: bool,
    /// The statuses that the codes of such errors stand for; any other stands for 500, which may pass.
    #[serde(default)]
    pub statuses: BTreeMap<String, u16>,
}

impl ErrorSpec {
    /// The status that the code of an error inside a success stands for.
    pub fn status_of(&self, code: Option<&str>) -> StatusCode {
        let status = code.and_then(|code| self.statuses.get(code));
        status.and_then(|status| StatusCode::from_u16(*status).ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// How the body of an error is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorFormat {
    /// JSON with the pointers of the section.
    Json,
    /// A text.
    Text,
}

/// The tables that map to the service's answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Entries of the list.
    pub saved_searches: TableSpec,
    /// Mention records.
    pub mentions: TableSpec,
    /// Totals.
    pub overview: TableSpec,
    /// The timeline.
    pub volume: TableSpec,
    /// The top lists.
    pub breakdowns: TableSpec,
}

impl Tables {
    /// All tables with their names in SQL.
    pub fn all(&self) -> [(&'static str, &TableSpec); 5] {
        [
            ("saved_searches", &self.saved_searches),
            ("mentions", &self.mentions),
            ("overview", &self.overview),
            ("volume", &self.volume),
            ("breakdowns", &self.breakdowns),
        ]
    }
}
