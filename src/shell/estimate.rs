//! Estimated cost of a query as a table: a row per scan, and one for the total.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::{Cost, PlanCost, plan_cost};
use crate::numbers::counted;

/// Columns `table`, `sent`, `requests` (in words where the count depends on the data) and `at_least`. The last row is the
/// total, in which scans share the list and equal requests.
pub(crate) fn estimate(plan: &Arc<dyn ExecutionPlan>) -> Result<RecordBatch> {
    let PlanCost { scans, at_least, exact } = plan_cost(plan);
    let or_more = |count: u64, exact: bool| if exact { count.to_string() } else { format!("{count} or more") };
    let all = match scans.as_slice() {
        // Scans of one query share requests, so that their expected costs cannot be added.
        [Cost { by_last_list: Some(expected), .. }] => {
            format!("{} according to the last list", or_more(expected.at_least, expected.exact))
        }
        _ => or_more(at_least, exact),
    };
    let requests: Vec<String> = scans
        .iter()
        .map(|scan| match &scan.by_last_list {
            Some(expected) => {
                let searches = counted(expected.searches, "saved search");
                format!(
                    "{} ({searches} in the last list: {})",
                    scan.requests,
                    or_more(expected.at_least, expected.exact)
                )
            }
            None => scan.requests.clone(),
        })
        .collect();
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let tables = scans.iter().map(|scan| scan.table.as_ref()).chain(["all"]).map(Some);
    let sent = scans.iter().map(|scan| Some(scan.sent.as_str())).chain([None]);
    let requests = requests.iter().map(String::as_str).chain([all.as_str()]).map(Some);
    let least = scans.iter().map(|scan| number(scan.at_least + u64::from(scan.lists))).chain([number(at_least)]);
    let columns: [(&str, ArrayRef); 4] = [
        ("table", Arc::new(tables.collect::<StringArray>())),
        ("sent", Arc::new(sent.collect::<StringArray>())),
        ("requests", Arc::new(requests.collect::<StringArray>())),
        ("at_least", Arc::new(least.map(Some).collect::<Int64Array>())),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
