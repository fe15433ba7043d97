//! `[throttle]` and `[budget]`: recognition of throttling, and the request budget.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Checks, Evidence};

/// Recognition of throttling (API description, sections 7 and 8).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// A response that matches any of these rules is throttling.
    pub when: Vec<ThrottleRule>,
    /// A response that matches any of these rules reports an exhausted quota and is not retried.
    #[serde(default)]
    pub quota: Vec<ThrottleRule>,
    /// Header with the time to wait, in seconds or as a date (RFC 9110, 10.2.3).
    pub retry_after: Option<String>,
    /// Header with the number of requests allowed per window; shown in `system.requests`.
    pub limit: Option<String>,
    /// Header with the number of requests left in the window.
    pub remaining: Option<String>,
    /// Header with the end of the window.
    pub reset: Option<String>,
    /// Format of the `reset` header.
    #[serde(default)]
    pub reset_format: ResetFormat,
}

impl Throttle {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(!self.when.is_empty(), "throttle.when", "expected at least one rule, such as { status = 429 }");
        checks.expect(
            self.when.iter().all(|rule| rule.code.is_some() || !(200..300).contains(&rule.status)),
            "throttle.when",
            "expected `code` with a 2xx status",
        );
    }
}

/// A status, optionally with an error code, that signals throttling or an exhausted quota.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThrottleRule {
    /// HTTP status.
    pub status: u16,
    /// Error code in the body. Absent: any.
    pub code: Option<String>,
}

/// Format of the end of a rate window.
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

/// Request budget.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Maximum number of requests in flight.
    pub concurrency: usize,
    /// Declared limits. All of them apply.
    pub windows: Vec<RateWindow>,
    /// Cost of each requested record, in units of the windows, added to the cost of 1 per request.
    pub cost_per_record: Option<u64>,
}

impl Budget {
    /// `page`: maximum number of rows per page.
    pub(super) fn check(&self, page: u64, checks: &mut Checks) {
        checks.expect(self.concurrency > 0, "budget.concurrency", "expected at least 1");
        checks.expect(
            self.windows.iter().all(|window| window.requests > 0 && window.seconds > 0),
            "budget.windows",
            "expected `requests` and `seconds` of at least 1",
        );
        let page = self.cost_per_record.unwrap_or_default().saturating_mul(page).saturating_add(1);
        checks.expect(
            self.windows.iter().all(|window| u64::from(window.requests) >= page),
            "budget.windows",
            format!("expected `requests` of at least {page}, the cost of one page"),
        );
    }
}

/// A declared limit: at most `requests` in any `seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateWindow {
    /// Number of requests.
    pub requests: u32,
    /// Length of the window, in seconds.
    pub seconds: u32,
}
