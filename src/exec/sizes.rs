//! Sizes of the windows that a plan would read, requested to estimate its cost.
//!
//! A scan of mentions sends a request for each page, so its cost is known once the totals of its windows are known. That
//! takes one overview for each saved search and window. Overviews are requested for this only if the user allows it
//! (`savedsearch.estimate = 'ask'`).
//!
//! Invariant: a size decides what an estimate says, never what a result contains.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::{self, TryStreamExt};

use super::FetchExec;
use super::cost::scans_that_read_all;
use super::stand_ins::totals;
use super::stream::Starting;
use crate::connection::Connection;
use crate::request::{PageRequest, RequestPlan};

/// Sizes that an estimate of a plan lacks.
pub(crate) struct Unsized<'p> {
    /// Connections whose list is needed, to know which saved searches the plan reads.
    pub(crate) lists: Vec<Arc<Connection>>,
    /// Windows to count, of scans whose saved searches are known.
    windows: Vec<(&'p FetchExec, RequestPlan)>,
}

impl<'p> Unsized<'p> {
    /// The unknown sizes of a plan.
    pub(crate) fn of(plan: &'p Arc<dyn ExecutionPlan>) -> Self {
        let mut all = Self { lists: Vec::new(), windows: Vec::new() };
        for scan in scans_that_read_all(plan) {
            let connection = &scan.config.connection;
            let Some(aids) = scan.aids_to_read() else {
                if !all.lists.iter().any(|known| Arc::ptr_eq(known, connection)) {
                    all.lists.push(Arc::clone(connection));
                }
                continue;
            };
            let windows =
                aids.iter().flat_map(|aid| scan.requests.windows().map(|words| scan.requests.in_window(aid, words)));
            let unknown = windows.filter(|window| connection.client().expected_total(window.clone()).is_none());
            all.windows.extend(unknown.map(|window| (scan, window)));
        }
        all
    }

    /// Number of requests that counting the windows takes.
    pub(crate) fn requests(&self) -> u64 {
        self.windows.len() as u64
    }

    /// Counts the windows, within the limits of a query. Without totals of the service, their sizes stay unknown.
    ///
    /// # Errors
    /// Those of the requests.
    pub(crate) async fn count(self, context: &Arc<TaskContext>) -> DataFusionResult<()> {
        let metrics = ExecutionPlanMetricsSet::new();
        let mut drivers = Vec::new();
        for (scan, window) in self.windows {
            drivers.push((Starting::new(scan, context, &metrics, 0).driver()?, window));
        }
        stream::iter(drivers.into_iter().map(Ok))
            .try_for_each_concurrent(AT_ONCE, |(driver, window)| async move {
                let connection = &driver.config.connection;
                let Some(counts) = &connection.profile().counts else { return Ok(()) };
                let request = PageRequest::overview(window.clone());
                let body = driver.overview(&request).await.map_err(|error| driver.at_plan(error, &window))?;
                let decoder = driver.decoder(totals(counts, None, &driver.overview_table()));
                let batch = decoder.decode(&request, &body).map_err(|error| driver.at_plan(error, &window))?.batch;
                let total =
                    batch.column(0).as_primitive_opt::<Int64Type>().and_then(|total| total.iter().next().flatten());
                if let Some(total) = total.and_then(|total| u64::try_from(total).ok()) {
                    connection.client().expect(window, total);
                }
                Ok(())
            })
            .await
    }
}

/// Maximum number of windows that are counted at once.
const AT_ONCE: usize = 4;
