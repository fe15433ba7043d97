//! Estimated cost of a query, in words, and the refusal of a query that costs too much.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

use super::text::table;
use crate::exec::{ExpectedRequests, aside, plan_cost};
use crate::numbers::counted;
use crate::wording::estimate;

/// Estimated cost of a plan.
#[derive(Debug)]
pub(super) struct Estimate {
    /// Requests of the plan. They may rest on the last list, which may have changed; a refused query can be sent again.
    expected: ExpectedRequests,
    /// Set if a scan reads all saved searches of the list.
    pub(super) lists: bool,
    /// Names of the tables that are read.
    pub(super) tables: Vec<Arc<str>>,
    /// Each scan and the total, as a table.
    text: String,
}

impl Estimate {
    /// Estimates a plan without a row limit: below a limit nothing is certain to be read.
    pub(super) async fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let (cost, rows) = aside(plan, |plan| (plan_cost(plan), estimate(plan))).await?;
        let (expected, scans) = (cost.expected(), cost.scans);
        let lists = scans.iter().any(|scan| scan.lists);
        let tables = scans.iter().map(|scan| Arc::clone(&scan.table)).collect();
        Ok(Self { expected, lists, tables, text: table(&rows?)? })
    }

    /// Minimum number of requests.
    pub(super) fn needed(&self) -> u64 {
        self.expected.at_least
    }

    /// True if [`needed`](Self::needed) is also the maximum.
    pub(super) fn is_exact(&self) -> bool {
        self.expected.exact
    }

    /// True if this costs less than another.
    pub(super) fn is_cheaper_than(&self, other: &Self) -> bool {
        let (own, other) = (self.expected, other.expected);
        own.at_least < other.at_least || (own.at_least == other.at_least && own.exact && !other.exact)
    }

    /// The number of requests in words: `3`, `at least 3`, or `at least 3, likely about 20`.
    pub(super) fn number(&self) -> String {
        self.expected.alone().to_string()
    }

    /// The estimate for a reader who has not run the query.
    pub(super) fn told(&self) -> String {
        let Self { expected: ExpectedRequests { at_least: needed, exact, likely, .. }, text, .. } = self;
        let likely = likely.map_or(String::new(), |likely| format!(", likely about {likely}"));
        let sentence = match (needed, exact) {
            (0, true) => "The query needs no request.".to_owned(),
            (needed, true) => format!(
                "The query needs {}: call `query` with max_requests of at least {needed}.",
                counted(*needed, "request")
            ),
            (needed, false) => format!(
                "The query needs at least {}{likely}; `query` refuses it if max_requests is less, and stops it before it \
                 sends more than max_requests.",
                counted(*needed, "request")
            ),
        };
        format!("{text}\n{sentence} No request was sent.\n")
    }

    /// The reason for which a query is refused before its first request.
    pub(super) fn refusal(&self, max_requests: u64) -> String {
        let least = if self.expected.exact { "" } else { "at least " };
        format!(
            "Refused before the first request: the query needs {least}{}, and max_requests is {max_requests}.\n\n{}",
            counted(self.expected.at_least, "request"),
            self.text
        )
    }

    /// The estimate alone.
    pub(super) fn table(&self) -> &str {
        &self.text
    }
}
