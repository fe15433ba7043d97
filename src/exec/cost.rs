//! What a scan costs, as far as it can be known before its first request.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::FetchExec;
use super::scanning::Scanning;
use crate::pushdown::{Aids, SummaryRows};

/// What a scan costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Table of the SQL surface.
    pub table: &'static str,
    /// What is sent, without an aid.
    pub sent: String,
    /// Requests, in words where their number hangs on what the service has.
    pub requests: String,
    /// Requests that are taken in any case, the list excepted.
    pub at_least: u64,
    /// Whether no more are taken.
    pub exact: bool,
    /// Whether the list is asked for; all scans of a query share it.
    pub lists: bool,
}

/// The costs of the scans of a plan, and of all together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanCost {
    /// Each scan, in the order of the plan.
    pub scans: Vec<Cost>,
    /// Requests that are taken in any case.
    pub at_least: u64,
    /// Whether no more are taken.
    pub exact: bool,
}

/// What a plan costs. Scans that ask the same question share its answer.
pub fn plan_cost(plan: &Arc<dyn ExecutionPlan>) -> PlanCost {
    let mut scans = Vec::new();
    collect(plan, &mut scans);
    let lists = scans.iter().any(|(_, cost)| cost.lists);
    // Questions without mentions, by what is sent for whom.
    let mut questions: BTreeMap<String, u64> = BTreeMap::new();
    let mut at_least = u64::from(lists);
    for (question, cost) in &scans {
        match question {
            Some(question) => {
                let asked = questions.entry(question.clone()).or_default();
                *asked = (*asked).max(cost.at_least);
            }
            None => at_least = at_least.saturating_add(cost.at_least),
        }
    }
    let at_least = questions.values().fold(at_least, |sum, asked| sum.saturating_add(*asked));
    let exact = scans.iter().all(|(_, cost)| cost.exact);
    PlanCost { scans: scans.into_iter().map(|(_, cost)| cost).collect(), at_least, exact }
}

fn collect(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<(Option<String>, Cost)>) {
    if let Some(scan) = plan.downcast_ref::<FetchExec>() {
        scans.push((scan.question(), scan.cost()));
    }
    plan.children().into_iter().for_each(|child| collect(child, scans));
}

impl FetchExec {
    /// What the scan costs.
    pub fn cost(&self) -> Cost {
        let Scanning { plan, fetch, skip, order, summary, above, table, .. } = self.scanning.as_ref();
        let windows = self.scanning.windows().len() as u64;
        let default = if self.default_window().is_some() { " (the default period)" } else { "" };
        let sent = format!("{}{default}", self.sent());
        let lists = matches!(plan.aids, Aids::Listed | Aids::NotNeeded);
        let cost = |at_least, exact, requests| {
            // A join may leave no saved search to ask for.
            let at_least = if above.is_empty() { at_least } else { 0 };
            let exact = exact && above.is_empty();
            Cost { table: table.name(), sent: sent.clone(), requests, at_least, exact, lists }
        };
        let searches = match &plan.aids {
            Aids::NotNeeded => return cost(0, true, "1".into()),
            Aids::Given(aids) => Some(aids.len() as u64),
            Aids::Listed => None,
        };
        let list = if searches.is_none() { "1 + " } else { "" };
        let Some(size) = plan.template.pages.map(|pages| pages.size) else {
            return match searches {
                Some(searches) => cost(searches * windows, true, (searches * windows).to_string()),
                None => cost(0, false, format!("1 + {windows} per saved search")),
            };
        };
        let per_list = format!(", or 1 per {size} mentions where the list leaves some out");
        match summary.as_ref().map(|summary| &summary.rows) {
            Some(SummaryRows::Firsts(orders)) if orders.len() > 1 => {
                let (one, all) = (windows, windows * orders.len() as u64);
                return match searches {
                    Some(searches) => cost(searches * one, false, format!("{} to {}", searches * one, searches * all)),
                    None => cost(0, false, format!("1 + {one} to {all} per saved search")),
                };
            }
            Some(rows) => {
                // Where its numbers may not add up, the mentions are read.
                let certain = !matches!(rows, SummaryRows::List(list) if !list.whole);
                let exact = plan.exact && certain;
                let more = match (plan.exact, certain) {
                    (true, true) => "",
                    (true, false) => &per_list,
                    (false, _) => " or more",
                };
                return match searches {
                    Some(searches) => cost(searches * windows, exact, format!("{}{more}", searches * windows)),
                    None => cost(0, false, format!("1 + {windows} per saved search{more}")),
                };
            }
            None => {}
        }
        let per_page = format!(", 1 per {size} mentions");
        match (searches, fetch) {
            (Some(0), _) | (_, Some(0)) => cost(0, true, "0".into()),
            (Some(1), Some(fetch)) if plan.exact && windows == 1 => {
                let pages = (*fetch as u64).div_ceil(size);
                cost(1, pages == 1, pages.to_string())
            }
            // In an order, each saved search is asked for its first rows.
            (Some(searches), Some(_)) if order.is_some() => cost(searches, false, format!("{searches} or more")),
            (None, Some(_)) if order.is_some() => cost(0, false, format!("{list}1 or more per saved search")),
            // Otherwise they are read one after another until the limit is met.
            (_, Some(_)) => cost(u64::from(searches.is_some()), false, format!("{list}1 or more")),
            (Some(searches), None) => {
                let least = searches * windows;
                let less = if *skip > 0 { format!(" behind the first {skip}") } else { String::new() };
                cost(least, false, format!("{least} or more{per_page}{less}"))
            }
            (None, None) => cost(0, false, format!("{list}{windows} or more per saved search{per_page}")),
        }
    }

    /// What is sent for whom, where the answer holds no mentions and is shared by scans that ask the same.
    fn question(&self) -> Option<String> {
        let Scanning { plan, summary, .. } = self.scanning.as_ref();
        let (sent, mentions) = (self.sent(), plan.template.pages.is_some());
        let summed = summary.as_ref().is_some_and(|_| sent.sort.is_none());
        (summed || !mentions).then(|| format!("{sent} {:?}", plan.aids))
    }
}
