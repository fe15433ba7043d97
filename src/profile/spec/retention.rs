//! `[store]`: when mentions of a day stop changing.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::window::Period;
use super::{Checks, Evidence};

/// Age at which the mentions of a day stop changing, for local copies of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Time after the end of a day until mentions are no longer expected to arrive or disappear. A stored day that was
    /// read earlier is read again.
    pub settle: Period,
    /// Age at which a stored day is read again if the service's timeline cannot confirm its number of mentions.
    pub rescan: Period,
}

impl Default for Retention {
    fn default() -> Self {
        Self { evidence: Evidence::Assumed, settle: Period::days(3), rescan: Period::days(7) }
    }
}

impl Retention {
    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(
            self.rescan.length() >= self.settle.length(),
            "store.rescan",
            "expected a period that is not shorter than `settle`",
        );
    }
}
