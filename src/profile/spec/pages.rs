//! `[mentions]`, `[offset]`, `[page]`, `[depth]` and `[total]`: how pages of mention records are requested, and how many there are.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::Pointer;
use super::{Checks, Evidence};

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

impl MentionsRequest {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(
            (self.requested_by == RequestedBy::Flag) == self.flag.is_some(),
            "mentions.requested_by",
            "expected `flag` together with requested_by = \"flag\", and only then",
        );
    }
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

impl Offset {
    /// Whether a page can begin at any row.
    pub fn reaches_any_row(&self) -> bool {
        self.unit == OffsetUnit::Row
    }

    /// The value that asks for a row, 0-based, in pages of a size.
    pub fn of(&self, row: u64, size: u64) -> u64 {
        self.first
            + match self.unit {
                OffsetUnit::Row => row,
                OffsetUnit::Page => row / size.max(1),
            }
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(self.first <= 1, "offset.first", format!("expected 0 or 1, found {}", self.first));
    }
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
pub struct PageSpec {
    /// What it rests on.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Rows a page may have.
    pub max: u64,
    /// What a larger size gets.
    pub beyond: Oversize,
}

impl PageSpec {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(self.max > 0, "page.max", "expected at least 1");
    }
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

impl Depth {
    /// `page`: the rows that a page may have.
    pub(super) fn check(&self, page: u64, checks: &mut Checks) {
        checks.expect(
            self.rows.is_some() == self.beyond.is_some(),
            "depth",
            "expected both `rows` and `beyond`, or neither",
        );
        let holds_a_page = self.rows.is_none_or(|rows| rows >= page);
        checks.expect(holds_a_page, "depth.rows", format!("expected at least a page, {page}"));
    }
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

impl Total {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(
            (self.trust == Trust::Absent) == self.at.is_none(),
            "total.trust",
            "expected `at`, or trust = \"absent\" without it",
        );
    }
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
