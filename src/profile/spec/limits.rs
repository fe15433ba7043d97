//! `[throttle]` and `[budget]`: how throttling looks, and what may be spent.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Checks, Evidence};

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

impl Throttle {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(!self.when.is_empty(), "throttle.when", "expected at least one status");
        checks.expect(
            self.when.iter().all(|rule| rule.code.is_some() || !(200..300).contains(&rule.status)),
            "throttle.when",
            "expected a `code` for a status of success",
        );
    }
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

impl Budget {
    /// `page`: the rows that a page may have.
    pub(super) fn check(&self, page: u64, checks: &mut Checks) {
        checks.expect(self.concurrency > 0, "budget.concurrency", "expected at least 1");
        checks.expect(
            self.windows.iter().all(|window| window.requests > 0 && window.seconds > 0),
            "budget.windows",
            "expected requests and seconds of at least 1",
        );
        let page = self.cost_per_record.unwrap_or_default().saturating_mul(page).saturating_add(1);
        checks.expect(
            self.windows.iter().all(|window| u64::from(window.requests) >= page),
            "budget.windows",
            format!("expected room for a page, which costs {page}"),
        );
    }
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
