//! Requests of a scan, by its plan alone: what is sent, for how many saved searches and windows, and how far it is read.

use std::sync::Arc;

use super::{Cost, KnownTotals};
use crate::exec::requests::has_unlisted_filters;
use crate::exec::scan_config::{Mode, ScanConfig, Slice};
#[cfg(feature = "store")]
use crate::exec::stored::ExpectedUse;
use crate::pushdown::{Aids, SummaryRows};
use crate::request::RequestPlan;

impl Cost {
    /// Estimates the cost of a scan that sends this request for each of its windows.
    pub(in crate::exec) fn of(config: &ScanConfig, sent: &RequestPlan, windows: u64) -> Self {
        let ScanConfig { plan, late, spec, mode, .. } = config;
        let default = if config.default_window().is_some() { " (default window)" } else { "" };
        // A join or a subquery may leave no saved search, or no time range, to request.
        let certain = late.is_empty() && plan.unbounded().is_none();
        let searches = match &plan.aids {
            Aids::Given(aids) => Some(aids.len() as u64),
            Aids::NotNeeded | Aids::Listed => None,
        };
        let RunCost { at_least, exact, requests } = run_cost(config, searches, windows);
        let at_most = match (mode, searches, mode.slice().fetch, plan.template.pages) {
            (Mode::Unordered(_) | Mode::Ordered { .. }, Some(1), Some(fetch), Some(pages))
                if certain && plan.exact && windows == 1 =>
            {
                Some(most_pages(fetch as u64, pages.size))
            }
            _ => None,
        };
        let in_turn = mode.slice().fetch.is_some() && mode.order().is_none();
        Self {
            table: Arc::clone(&spec.name),
            sent: format!("{sent}{default}"),
            requests,
            at_least: if certain { at_least } else { 0 },
            exact: exact && certain,
            at_most,
            in_turn,
            lists: matches!(plan.aids, Aids::Listed | Aids::NotNeeded),
            by_last_list: None,
            likely: None,
            likely_as_of: None,
            totals: KnownTotals::default(),
        }
    }
}

#[cfg(feature = "store")]
impl Cost {
    /// Returns the cost of a scan that takes mentions from the store.
    pub(in crate::exec) fn with_store(self, stored: &ExpectedUse) -> Self {
        let Self { requests, at_least, exact, .. } = self;
        let RunCost { at_least, exact, requests } = RunCost { at_least, exact, requests }.with_store(stored);
        Self { requests, at_least, exact, at_most: None, ..self }
    }

    /// Returns the cost of a scan of responses of which this many are stored.
    pub(in crate::exec) fn without_stored(self, stored: u64) -> Self {
        let Self { requests, at_least, exact, .. } = self;
        let RunCost { at_least, exact, requests } = RunCost { at_least, exact, requests }.without_stored(stored);
        Self { requests, at_least, exact, ..self }
    }
}

#[cfg(feature = "store")]
impl RunCost {
    /// The requests of a scan that takes mentions from the store.
    pub(super) fn with_store(self, stored: &ExpectedUse) -> Self {
        let ExpectedUse { days, at_least, .. } = *stored;
        if days == 0 && at_least > 0 {
            return self;
        }
        let requests = if at_least == 0 { "0".to_owned() } else { format!("{at_least} or more") };
        Self { requests, at_least, exact: at_least == 0 }
    }

    /// The requests of a scan of responses of which this many are stored.
    pub(super) fn without_stored(self, stored: u64) -> Self {
        if stored == 0 {
            return self;
        }
        let at_least = self.at_least.saturating_sub(stored);
        let requests = if self.exact { at_least.to_string() } else { format!("{at_least} or more") };
        Self { requests, at_least, exact: self.exact }
    }
}

/// Requests of a scan that runs.
pub(super) struct RunCost {
    pub(super) at_least: u64,
    pub(super) exact: bool,
    requests: String,
}

/// Computes the requests for this number of saved searches; `None` if it is known only once the list has been requested.
pub(super) fn run_cost(config: &ScanConfig, searches: Option<u64>, windows: u64) -> RunCost {
    let ScanConfig { plan, mode, late, .. } = config;
    let cost = |at_least, exact, requests: String| RunCost { at_least, exact, requests };
    if plan.aids == Aids::NotNeeded {
        return cost(0, true, "1".into());
    }
    let list = if searches.is_none() { "1 + " } else { "" };
    if !late.bounds.is_empty() {
        return cost(0, false, format!("{list}depends on the time range set by a subquery"));
    }
    let slice = mode.slice();
    let Some(size) = plan.template.pages.map(|pages| pages.size) else {
        return match searches {
            Some(searches) if slice.fetch.is_some() && searches * windows > 1 => {
                cost(1, false, format!("1 to {}", searches * windows))
            }
            Some(searches) => cost(searches * windows, true, (searches * windows).to_string()),
            None => cost(0, false, format!("1 + {windows} per saved search")),
        };
    };
    match mode {
        Mode::Summary(summary) => {
            // Without mentions beside the overview, a page of them shows what a filter means.
            let apart = !summary.with_mentions && !plan.template.filters.is_empty();
            let unlisted = has_unlisted_filters(config) || apart;
            of_summary(&summary.rows, plan.exact, unlisted, searches, windows, size)
        }
        Mode::Unordered(_) | Mode::Ordered { .. } => of_mentions(mode, plan.exact, searches, windows, size),
    }
}

fn of_summary(
    rows: &SummaryRows,
    exact: bool,
    unlisted: bool,
    searches: Option<u64>,
    windows: u64,
    size: u64,
) -> RunCost {
    let cost = |at_least, exact, requests: String| RunCost { at_least, exact, requests };
    if let SummaryRows::Firsts(orders) = rows
        && orders.len() > 1
    {
        let (one, all) = (windows, windows * orders.len() as u64);
        return match searches {
            Some(searches) => cost(searches * one, false, format!("{} to {}", searches * one, searches * all)),
            None => cost(0, false, format!("1 + {one} to {all} per saved search")),
        };
    }
    // If its counts do not add up, the mentions are read.
    let list = matches!(rows, SummaryRows::List(_));
    let certain = !list && !unlisted;
    let further = further_rows(size);
    let per_list = match list {
        true => format!(", or 1 per {further} mentions if the list omits some"),
        false => format!(", or 1 per {further} mentions if there are more"),
    };
    let more = match (exact, certain) {
        (true, true) => "",
        (true, false) => &per_list,
        (false, _) => " or more",
    };
    match searches {
        Some(searches) => cost(searches * windows, exact && certain, format!("{}{more}", searches * windows)),
        None => cost(0, false, format!("1 + {windows} per saved search{more}")),
    }
}

/// Rows of a page that were not on the page before: two pages share one.
fn further_rows(size: u64) -> u64 {
    size.saturating_sub(1).max(1)
}

/// Number of pages that this many rows take if further ones follow. Such a reader does not know the end of the window, and its pages
/// share two rows.
fn most_pages(rows: u64, size: u64) -> u64 {
    1 + rows.saturating_sub(size).div_ceil(size.saturating_sub(2).max(1))
}

fn of_mentions(mode: &Mode, exact: bool, searches: Option<u64>, windows: u64, size: u64) -> RunCost {
    let cost = |at_least, exact, requests: String| RunCost { at_least, exact, requests };
    let Slice { skip, fetch } = mode.slice();
    let ordered = mode.order().is_some();
    let list = if searches.is_none() { "1 + " } else { "" };
    let per_page = format!(", 1 per {} mentions", further_rows(size));
    match (searches, fetch) {
        (Some(0), _) | (_, Some(0)) => cost(0, true, "0".into()),
        (Some(1), Some(fetch)) if exact && windows == 1 => {
            let pages = most_pages(fetch as u64, size);
            cost(1, pages == 1, if pages == 1 { "1".to_owned() } else { format!("at most {pages}") })
        }
        // In a sort order, the first rows of each saved search are requested.
        (Some(searches), Some(_)) if ordered => cost(searches, false, format!("{searches} or more")),
        (None, Some(_)) if ordered => cost(0, false, format!("{list}1 or more per saved search")),
        // Otherwise they are read one after another until the limit is reached.
        (_, Some(_)) => cost(u64::from(searches.is_some()), false, format!("{list}1 or more")),
        (Some(searches), None) => {
            // In a sort order that is read on demand, the first window may be enough.
            let least = if mode.wanted().is_some() { searches } else { searches * windows };
            let less = if skip > 0 { format!(" after the first {skip}") } else { String::new() };
            cost(least, false, format!("{least} or more{per_page}{less}"))
        }
        (None, None) => cost(0, false, format!("{list}{windows} or more per saved search{per_page}")),
    }
}
