//! Number of requests that is expected, and the words for it.

use std::fmt;

use chrono::{DateTime, Utc};

use super::{ByLastList, KnownTotals, Likely};
use crate::numbers::counted;

/// Expected number of requests: what is certain if the last list still holds, and what is likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedRequests {
    /// Minimum number of requests.
    pub(crate) at_least: u64,
    /// Set if `at_least` is also the maximum.
    pub(crate) exact: bool,
    /// Maximum number, if it is known and larger.
    pub(crate) at_most: Option<u64>,
    /// Probable number, if it is known and larger.
    pub(crate) likely: Option<u64>,
    /// Number of saved searches of the last list, if the numbers rest on it.
    pub(crate) searches: Option<u64>,
    /// The time of that list, if an earlier process has requested it.
    pub(crate) listed_at: Option<DateTime<Utc>>,
    /// The time of the oldest known number of mentions, if an earlier process has read it.
    pub(crate) counted_at: Option<DateTime<Utc>>,
    /// The windows of known size, if the number rests on them.
    pub(crate) totals: KnownTotals,
}

impl ExpectedRequests {
    /// A number of requests that rests on nothing but the plan.
    pub(crate) fn certain(at_least: u64, exact: bool) -> Self {
        let (at_most, likely, searches) = (None, None, None);
        let totals = KnownTotals::default();
        Self { at_least, exact, at_most, likely, searches, listed_at: None, counted_at: None, totals }
    }

    /// A number of requests by what is known: according to the last list, and of the sizes of windows.
    pub(super) fn of(at_least: u64, exact: bool, by_list: Option<&ByLastList>, likely: Likely) -> Self {
        let by_list = by_list.filter(|by_list| by_list.at_least >= at_least);
        let known = by_list.map_or(Self::certain(at_least, exact), |by_list| Self {
            searches: Some(by_list.searches),
            listed_at: by_list.earlier,
            ..Self::certain(by_list.at_least, by_list.exact)
        });
        let Likely { requests: likely, as_of: counted_at, totals } = likely;
        match likely {
            _ if known.exact => known,
            Some(likely) if likely <= known.at_least => known,
            _ => Self { likely, counted_at, totals, ..known },
        }
    }

    /// The same without what it rests on.
    #[cfg(feature = "mcp")]
    pub(crate) fn alone(self) -> Self {
        Self { likely: self.likely, ..Self::certain(self.at_least, self.exact) }
    }

    /// True if the number rests on more than the plan.
    pub(crate) fn rests_on_more(&self) -> bool {
        self.likely.is_some() || self.searches.is_some()
    }
}

/// As in `28`, `at least 3`, `at most 3`, `2 to 5`, `at least 13, likely about 40 (12 saved searches in the last list)`, or, if an
/// earlier process has read what the number rests on, `(12 saved searches in the list of 2026-07-01 12:00, totals of 2026-07-01 12:00)`.
/// If only some windows are known, `likely about 40 if the other windows are similar (…, totals of 8 of 12 windows)`.
impl fmt::Display for ExpectedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_least, exact, at_most, likely, searches, listed_at, counted_at, totals } = self;
        match at_most {
            Some(most) if *at_least <= 1 => write!(f, "at most {most}")?,
            Some(most) => write!(f, "{at_least} to {most}")?,
            None => write!(f, "{}{at_least}", if *exact { "" } else { "at least " })?,
        }
        if let Some(likely) = likely {
            let others = if totals.are_partial() { " if the other windows are similar" } else { "" };
            write!(f, ", likely about {likely}{others}")?;
        }
        let list = named_list(*listed_at);
        let list = searches.map(|searches| format!("{} in the {list}", counted(searches, "saved search")));
        let counted_at = counted_at.map(|at| at.format(MINUTE));
        let totals = match (totals.are_partial(), counted_at) {
            (true, Some(at)) => Some(format!("totals of {} of {} windows as of {at}", totals.known, totals.windows)),
            (true, None) => Some(format!("totals of {} of {} windows", totals.known, totals.windows)),
            (false, at) => at.map(|at| format!("totals of {at}")),
        };
        match (list, totals) {
            (Some(list), Some(totals)) => write!(f, " ({list}, {totals})"),
            (Some(one), None) | (None, Some(one)) => write!(f, " ({one})"),
            (None, None) => Ok(()),
        }
    }
}

/// Format of the times of what an estimate rests on.
const MINUTE: &str = "%Y-%m-%d %H:%M";

/// The last list, or the one of an earlier process by its time.
pub(super) fn named_list(earlier: Option<DateTime<Utc>>) -> String {
    earlier.map_or_else(|| "last list".to_owned(), |at| format!("list of {}", at.format(MINUTE)))
}
