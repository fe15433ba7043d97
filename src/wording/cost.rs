//! Estimated cost of a query as a table: a row per scan, and one for the total.

use std::slice;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::{Cost, ExpectedRequests, PlanCost, plan_cost};

/// Columns `table`, `sent`, `requests` (in words if the count depends on the data) and `at_least`. The last row is the total,
/// in which scans share the list and equal requests, and sends nothing of its own. Saved searches are those of the last list, if it is
/// known.
pub(crate) fn estimate(plan: &Arc<dyn ExecutionPlan>) -> Result<RecordBatch> {
    estimate_all(slice::from_ref(plan))
}

/// As [`estimate`], for plans that run one after another, so that their requests add up.
pub(crate) fn estimate_all(plans: &[Arc<dyn ExecutionPlan>]) -> Result<RecordBatch> {
    let costs: Vec<_> = plans.iter().map(plan_cost).collect();
    let all = match costs.as_slice() {
        [cost] => of_plan(cost),
        costs => sum(costs),
    };
    let scans: Vec<_> = costs.into_iter().flat_map(|cost| cost.scans).collect();
    let words = |scan: &Cost| match of_scan(scan) {
        // What the number depends on.
        ExpectedRequests { searches: None, likely: None, at_most: None, .. } => scan.requests.clone(),
        expected => expected.to_string(),
    };
    let total = match scans.as_slice() {
        [Cost { lists: true, exact: false, by_last_list: None, in_turn: true, requests, .. }] => requests.clone(),
        // How many they are is known once the list was requested.
        [Cost { lists: true, exact: false, by_last_list: None, .. }] => {
            format!("{all}, plus those of each saved search")
        }
        _ => all.to_string(),
    };
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let tables = scans.iter().map(|scan| scan.table.as_ref()).chain(["all"]).map(Some);
    let sent = scans.iter().map(|scan| Some(scan.sent.as_str())).chain([Some("")]);
    let requests = scans.iter().map(words).chain([total]).map(Some);
    let least = scans.iter().map(least_of).chain([all.at_least]).map(number);
    let columns: [(&str, ArrayRef); 4] = [
        ("table", Arc::new(tables.collect::<StringArray>())),
        ("sent", Arc::new(sent.collect::<StringArray>())),
        ("requests", Arc::new(requests.collect::<StringArray>())),
        ("at_least", Arc::new(least.map(Some).collect::<Int64Array>())),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// The expected number of requests of a scan, including the list.
fn of_scan(scan: &Cost) -> ExpectedRequests {
    scan.expected(scan.at_least + u64::from(scan.lists), scan.exact)
}

/// The minimum number of requests of a scan.
fn least_of(scan: &Cost) -> u64 {
    // The words count a saved search, which follows the list unless that is empty.
    let after_list = scan.lists && scan.in_turn && !scan.exact && scan.by_last_list.is_none();
    of_scan(scan).at_least + u64::from(after_list)
}

/// The expected number of requests of a plan: no fewer than those of any of its scans.
fn of_plan(cost: &PlanCost) -> ExpectedRequests {
    let all = cost.expected();
    let at_least = cost.scans.iter().map(least_of).fold(all.at_least, u64::max);
    let above = |number: &u64| *number > at_least;
    ExpectedRequests {
        at_least,
        exact: all.exact && at_least == all.at_least,
        at_most: all.at_most.filter(above),
        likely: all.likely.filter(above),
        ..all
    }
}

/// The maximum number of requests, if it is known.
fn most(of: &ExpectedRequests) -> Option<u64> {
    of.at_most.or_else(|| of.exact.then_some(of.at_least))
}

/// The likely number of requests, or the least if nothing is known; `None` if too little is known.
fn likely(of: &ExpectedRequests) -> Option<u64> {
    of.likely.or_else(|| (!of.totals.are_partial()).then_some(of.at_least))
}

/// The expected number of requests of plans that run one after another.
fn sum(costs: &[PlanCost]) -> ExpectedRequests {
    costs.iter().map(of_plan).fold(ExpectedRequests::certain(0, true), |all, one| {
        let likely = likely(&all).zip(likely(&one)).map(|(all, one)| all + one);
        let at_least = all.at_least + one.at_least;
        ExpectedRequests {
            at_least,
            exact: all.exact && one.exact,
            at_most: most(&all).zip(most(&one)).map(|(all, one)| all + one).filter(|most| *most > at_least),
            likely: likely.filter(|likely| *likely > at_least),
            searches: all.searches.max(one.searches),
            listed_at: all.listed_at.into_iter().chain(one.listed_at).min(),
            counted_at: all.counted_at.into_iter().chain(one.counted_at).min(),
            totals: all.totals.and(one.totals),
        }
    })
}
