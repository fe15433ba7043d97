//! Sizes of the windows that a plan would read, requested to estimate its cost.
//!
//! A scan of mentions sends a request for each page, so its cost is known once the totals of its windows are known. That
//! takes one overview for each saved search and window. A scan of counts sends a request for each saved search, so its cost
//! is known once the list is known. The list and the overviews are requested for this only if the user allows it
//! (`savedsearch.estimate = 'ask'`).
//!
//! Invariant: a size decides what an estimate says, never what a result contains.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::error::Result as DataFusionResult;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::{self, TryStreamExt};

use super::FetchExec;
use super::answer::AnswerTables;
use super::cost::{Known, likely_scans};
use super::stream::Starting;
use super::traced::admitted;
use crate::connection::Connection;
use crate::request::{PageRequest, RequestPlan};

/// Sizes that an estimate of a plan lacks.
pub(crate) struct Unsized<'p> {
    /// Connections whose list is needed, to know which saved searches the plan reads.
    pub(crate) lists: Vec<Arc<Connection>>,
    /// Set if the windows of some of these saved searches have to be counted as well.
    pub(crate) counts_listed: bool,
    /// Windows to count, each once, of scans whose saved searches are known.
    windows: Vec<(&'p FetchExec, RequestPlan)>,
}

impl<'p> Unsized<'p> {
    /// The sizes that this process does not know.
    pub(crate) fn of(plan: &'p Arc<dyn ExecutionPlan>) -> Self {
        Self::beyond(plan, Known::Now)
    }

    /// The sizes that neither this process nor an earlier one knows.
    pub(crate) fn never_known(plan: &'p Arc<dyn ExecutionPlan>) -> Self {
        Self::beyond(plan, Known::Before)
    }

    /// The sizes that these processes do not know. Windows of a service without totals cannot be counted, and are not among them.
    fn beyond(plan: &'p Arc<dyn ExecutionPlan>, processes: Known) -> Self {
        let mut all = Self { lists: Vec::new(), counts_listed: false, windows: Vec::new() };
        let mut known = HashSet::new();
        for (scan, joins_list) in likely_scans(plan) {
            let takes_each_page = scan.takes_each_page(joins_list);
            if !takes_each_page && !scan.depends_on_list(joins_list) {
                continue;
            }
            let connection = &scan.config.connection;
            let countable = takes_each_page && connection.profile().counts.is_some();
            let Some(aids) = scan.aids_to_read(processes, joins_list) else {
                all.counts_listed |= countable;
                if !all.lists.iter().any(|known| Arc::ptr_eq(known, connection)) {
                    all.lists.push(Arc::clone(connection));
                }
                continue;
            };
            if !countable {
                continue;
            }
            let windows = aids.iter().flat_map(|aid| scan.requests.windows().map(move |words| (aid, words)));
            // What resembles stored days is known only roughly: it is asked for, but not missed.
            let lacks = |aid: &str, words: &str| match processes {
                Known::Now => scan.lacks_total(aid, words),
                Known::Before => scan.likely_for(aid, words, processes).0.is_none(),
            };
            for (aid, words) in windows.filter(|(aid, words)| lacks(aid, words)) {
                let window = scan.requests.in_window(aid, words);
                let key = PageRequest::overview(window.clone()).key(connection.profile());
                if known.insert((Arc::as_ptr(connection), key)) {
                    all.windows.push((scan, window));
                }
            }
        }
        all
    }

    /// True if the plan has all sizes that it needs.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.windows.is_empty()
    }

    /// Number of requests that counting the windows takes.
    pub(crate) fn requests(&self) -> u64 {
        self.windows.len() as u64
    }

    /// Counts the windows, within the limits of a query. Windows without a total stay unknown.
    ///
    /// # Errors
    /// Those of the requests.
    pub(crate) async fn count(self, task: Arc<TaskContext>) -> DataFusionResult<()> {
        let context = admitted(task, None);
        let metrics = ExecutionPlanMetricsSet::new();
        let mut drivers = Vec::new();
        for (scan, window) in self.windows {
            drivers.push((Starting::new(scan, &context, &metrics, 0).driver()?, window));
        }
        stream::iter(drivers.into_iter().map(Ok))
            .try_for_each_concurrent(AT_ONCE, |(driver, window)| async move {
                let request = PageRequest::overview(window.clone());
                let answer = driver.overview(&request, AnswerTables::default()).await;
                let total = answer.and_then(|(answer, _)| answer.total());
                let total = total.map_err(|error| driver.at_plan(error, &window))?;
                if let Some(total) = total.and_then(|total| u64::try_from(total).ok()) {
                    driver.config.connection.client().expect(window, total);
                }
                Ok(())
            })
            .await
    }
}

/// Maximum number of windows that are counted at once.
const AT_ONCE: usize = 4;
