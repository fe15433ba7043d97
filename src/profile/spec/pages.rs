//! `[mentions]`, `[offset]`, `[page]`, `[depth]` and `[total]`: requests for pages of mentions, and the total.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::Pointer;
use super::{Checks, Evidence};
use crate::error::{Error, ErrorKind};

/// Requests for mention records.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MentionsRequest {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Condition under which a response contains mentions.
    pub requested_by: RequestedBy,
    /// Parameter for `requested_by = "flag"`.
    pub flag: Option<Flag>,
    /// True if responses with mentions contain the overview as well (API description, section 4.2).
    #[serde(default = "yes")]
    pub with_overview: bool,
}

impl MentionsRequest {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(
            (self.requested_by == RequestedBy::Flag) == self.flag.is_some(),
            "mentions.requested_by",
            "expected `flag` if and only if requested_by = \"flag\"",
        );
    }
}

fn yes() -> bool {
    true
}

/// A parameter and the value that turns it on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// Parameter name.
    pub parameter: String,
    /// Value that turns it on.
    pub value: String,
}

/// Condition under which a response contains mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestedBy {
    /// Page size above 0. Size 0 requests the overview alone.
    Size,
    /// Parameter given by `flag`.
    Flag,
    /// Every response contains mentions.
    Always,
}

/// Offset parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Offset {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Unit of the offset: rows or pages, or a cursor.
    pub unit: OffsetUnit,
    /// Number of the first row or page: 0 or 1.
    #[serde(default)]
    pub first: u64,
    /// Pointer to the cursor of the next page, or to a link that has it as the parameter. Absent, NULL or empty on the last page. With
    /// unit = "cursor" only.
    pub next: Option<Pointer>,
    /// Pointer, in a record, to the cursor of the page that follows it: the last record of a page has that of the next page. With unit
    /// = "cursor" only, instead of `next`.
    pub last: Option<Pointer>,
    /// Set if a cursor is a place in the order of mentions, not a number of them: no mention is left out or comes twice if others are
    /// added or removed meanwhile. Without a total, mentions are then read once, and not twice.
    #[serde(default)]
    pub stable: bool,
    /// Set if the service rounds an offset in rows down to a multiple of the page size, so that a page cannot begin at any row.
    #[serde(default)]
    pub aligned: bool,
}

impl Offset {
    /// True if a page can begin at any row.
    pub fn reaches_any_row(&self) -> bool {
        self.unit == OffsetUnit::Row && !self.aligned
    }

    /// Returns the offset of a 0-based row, for pages of this size. `None` if rows are not counted: a cursor names the page.
    pub fn of(&self, row: u64, size: u64) -> Option<u64> {
        match self.unit {
            OffsetUnit::Row => Some(self.first + row),
            OffsetUnit::Page => Some(self.first + row / size.max(1)),
            OffsetUnit::Cursor => None,
        }
    }

    /// Returns the cursor in what a page names as the next one: the parameter of a link, or the text itself.
    ///
    /// # Errors
    /// If it is a link without the parameter. Its other parameters are those that were sent, and may include the key.
    pub(crate) fn cursor_of(&self, next: &str) -> Result<String, Error> {
        let Some((_, query)) = next.split_once('?') else { return Ok(next.to_owned()) };
        let found = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| *name == self.parameter);
        found.map(|(_, value)| value.into_owned()).ok_or_else(|| {
            let message = format!("the link to the next page has no parameter `{}`", self.parameter);
            Error::new(ErrorKind::Contradiction, message).advice("set `parameter` in [offset] to the name in the link")
        })
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(self.first <= 1, "offset.first", format!("expected 0 or 1, found {}", self.first));
        let rows = self.unit == OffsetUnit::Row;
        checks.expect(rows || !self.aligned, "offset.aligned", "expected unit = \"row\": pages are aligned anyway");
        let cursors = u8::from(self.next.is_some()) + u8::from(self.last.is_some());
        checks.expect(
            cursors == u8::from(self.unit == OffsetUnit::Cursor),
            "offset.next",
            "expected `next`, the place of the next page's cursor, or `last`, its place in a record, if and only if unit = \"cursor\"",
        );
        checks.expect(cursors > 0 || !self.stable, "offset.stable", "expected unit = \"cursor\"");
    }
}

/// Unit of the offset parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffsetUnit {
    /// Rows.
    Row,
    /// Pages of the requested size.
    Page,
    /// A value that the page before contains. The first page is requested without one.
    Cursor,
}

/// Page size parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageSpec {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Parameter name.
    pub parameter: String,
    /// Maximum number of rows per page.
    pub max: u64,
    /// Response to a larger size.
    pub beyond: Oversize,
    /// Minimum number of rows per page, which is requested if fewer are wanted. Absent: 1.
    pub min: Option<u64>,
    /// Sizes that the service accepts, if not all from `min` to `max`. The smallest that suffices is requested.
    #[serde(default)]
    pub sizes: Vec<u64>,
}

impl PageSpec {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(self.max > 0, "page.max", "expected at least 1");
        let least = self.min.is_none_or(|min| (1..=self.max).contains(&min));
        checks.expect(least, "page.min", format!("expected 1 to {}, the value of `max`", self.max));
        let sizes =
            self.sizes.is_empty() || (self.sizes.contains(&self.max) && self.sizes.iter().all(|size| *size > 0));
        let largest = self.sizes.iter().all(|size| *size <= self.max);
        checks.expect(sizes && largest, "page.sizes", format!("expected sizes from 1 to {}, and that one", self.max));
    }

    /// Smallest size that the service accepts for this many rows; `max` if there is none.
    pub fn accepted(&self, rows: u64) -> u64 {
        let rows = rows.max(self.min.unwrap_or(1));
        match self.sizes.is_empty() {
            true => rows,
            false => self.sizes.iter().copied().filter(|size| *size >= rows).min().unwrap_or(self.max),
        }
    }
}

/// Response to a page size above the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Oversize {
    /// An error.
    Rejected,
    /// A smaller page.
    Clamped,
}

/// Limit on how far paging reaches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Number of rows that paging can reach. Absent: all.
    pub rows: Option<u64>,
    /// Response to requests beyond that.
    pub beyond: Option<DepthAnswer>,
}

impl Depth {
    /// `page`: maximum number of rows per page.
    pub(super) fn check(&self, page: u64, checks: &mut Checks) {
        checks.expect(
            self.rows.is_some() == self.beyond.is_some(),
            "depth",
            "expected both `rows` and `beyond`, or neither",
        );
        let holds_a_page = self.rows.is_none_or(|rows| rows >= page);
        checks.expect(holds_a_page, "depth.rows", format!("expected at least {page}, the size of one page"));
    }
}

/// Response to a request beyond the reachable rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DepthAnswer {
    /// Status 400.
    BadRequest,
    /// Status 404.
    NotFound,
    /// An empty page.
    Empty,
    /// The last page again.
    LastPage,
}

/// Total of matching mentions, as reported by a response.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Total {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Trust in the total.
    pub trust: Trust,
    /// Pointer to the total.
    pub at: Option<Pointer>,
    /// Pointer to the relation: `eq` or `exact` if the total is exact, `approx` or `lte` if it is an estimate; other words
    /// such as `gte` mean a lower bound. Absent: it is exact.
    pub relation: Option<Pointer>,
}

impl Total {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(
            (self.trust == Trust::Absent) == self.at.is_none(),
            "total.trust",
            "expected `at` with trust = \"exact\" or \"advisory\", and no `at` with \"absent\"",
        );
    }
}

/// Trust in a reported number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The exact number of mentions: a scan that received as many is complete.
    Exact,
    /// A hint: pages are read until one is empty.
    Advisory,
    /// Not reported: pages are read until one is empty.
    Absent,
}
