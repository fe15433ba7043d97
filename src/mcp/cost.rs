//! Estimated cost of a query, in words, and the refusal of a query that costs too much.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

use super::text::table;
use crate::exec::{Cost, PlanCost, plan_cost};
use crate::numbers::counted;
use crate::shell::estimate;

/// Estimated cost of a plan.
#[derive(Debug)]
pub(super) struct Estimate {
    /// Requests that the plan needs at least. By the last list where a plan's only scan reads all saved searches of it: the
    /// list may have changed, but a refused query can be sent again.
    pub(super) needed: u64,
    /// Set if `needed` is also the maximum.
    pub(super) exact: bool,
    /// Set if a scan reads all saved searches of the list.
    pub(super) lists: bool,
    /// Names of the tables that are read.
    pub(super) tables: Vec<Arc<str>>,
    /// Each scan and the total, as a table.
    text: String,
}

impl Estimate {
    /// Estimates a plan without a row limit: below a limit nothing is certain to be read.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let PlanCost { scans, at_least, exact } = plan_cost(plan);
        let (needed, exact) = match scans.as_slice() {
            // Scans of one query share requests, so that their expected costs cannot be added.
            // Nothing is certain of a scan that may stop early, such as one below a limit.
            [Cost { by_last_list: Some(expected), .. }] if at_least > 0 && expected.at_least >= at_least => {
                (expected.at_least, expected.exact)
            }
            _ => (at_least, exact),
        };
        let lists = scans.iter().any(|scan| scan.lists);
        let tables = scans.iter().map(|scan| Arc::clone(&scan.table)).collect();
        Ok(Self { needed, exact, lists, tables, text: table(&estimate(plan)?)? })
    }

    /// True if this costs less than another.
    pub(super) fn is_cheaper_than(&self, other: &Self) -> bool {
        self.needed < other.needed || (self.needed == other.needed && self.exact && !other.exact)
    }

    /// The number of requests in words: `3` or `3 or more`.
    pub(super) fn number(&self) -> String {
        if self.exact { self.needed.to_string() } else { format!("{} or more", self.needed) }
    }

    /// The estimate for a reader who has not run the query.
    pub(super) fn told(&self) -> String {
        let Self { needed, exact, text, .. } = self;
        let sentence = match (needed, exact) {
            (0, true) => "The query needs no request.".to_owned(),
            (needed, true) => format!(
                "The query needs {}: call `query` with max_requests of at least {needed}.",
                counted(*needed, "request")
            ),
            (needed, false) => format!(
                "The query needs at least {}; `query` refuses it if max_requests is less, and stops it before it sends more than \
                 max_requests.",
                counted(*needed, "request")
            ),
        };
        format!("{text}\n{sentence} No request was sent.\n")
    }

    /// The reason for which a query is refused before its first request.
    pub(super) fn refusal(&self, max_requests: u64) -> String {
        let least = if self.exact { "" } else { "at least " };
        format!(
            "Refused before the first request: the query needs {least}{}, and max_requests is {max_requests}.\n\n{}",
            counted(self.needed, "request"),
            self.text
        )
    }

    /// The estimate alone.
    pub(super) fn table(&self) -> &str {
        &self.text
    }
}
