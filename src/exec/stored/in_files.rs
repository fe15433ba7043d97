//! A scan as an operator over the files of a store, for engines that spread work over machines.
//!
//! ```text
//! planning ─▶ the files as far as they are known to be complete; no request
//! running ──▶ the store is brought up to date, with the requests of an ordinary scan ─▶ its files have all rows
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;
use futures::{StreamExt, TryStreamExt, stream};

use super::candidates::{Decided, is_limited, usable};
use super::files::{FileScan, FilesAt, Matching, StoredPart, files_of};
use super::{Divided, Driver};
use crate::client::Prefetch;
use crate::config::SessionSettings;
use crate::error::Result;
use crate::exec::FetchExec;
use crate::exec::scan_config::ScanConfig;
use crate::exec::stream::Starting;
use crate::pushdown::Aids;
use crate::request::RequestPlan;
use crate::store::{Day, Store, Stored, Terms, divide};

/// The rows of a scan in files.
#[derive(Debug, Clone)]
pub(crate) struct InFiles {
    /// Operator with the rows, in no particular order.
    pub(crate) rows: Arc<dyn ExecutionPlan>,
    /// Size of the files in bytes.
    pub(crate) bytes: u64,
    /// Set if all rows are in files, so that no mention has to be requested.
    pub(crate) complete: bool,
    /// The parts of the files that are used.
    pub(crate) used: Used,
}

/// The parts of files that make up the rows of a scan; equal for equal rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Used {
    /// Regions, and the days of each.
    days: Vec<(Option<i64>, Range<Day>)>,
    /// Instants of each plan, in microseconds since 1970.
    spans: Vec<Range<i64>>,
}

/// Location of a store's files, and the number of readers.
#[derive(Debug, Clone)]
pub(crate) struct FileScanOptions {
    /// URL for the data folder of the store.
    pub(crate) url: ObjectStoreUrl,
    /// Number of partitions that read at the same time.
    pub(crate) partitions: usize,
    /// Minimum size in bytes of files that more than one partition reads.
    pub(crate) parallel_bytes: usize,
}

impl FetchExec {
    /// The store that all rows of the scan may come from; `None` if it uses none, or has a limit.
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        let from = usable(&self.config)?;
        let whole = !is_limited(&self.config) && self.config.late.is_empty() && self.config.plan.unbounded().is_none();
        whole.then_some(&from.store)
    }

    /// Size in bytes of the stored files that the scan may read.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let Some(from) = usable(&self.config) else { return 0 };
        let bytes = self.known_plans().into_iter().flatten().map(|plan| {
            let decided = self.requests.divisions.of(&self.config, from, &plan).ok().flatten();
            decided.map_or(0, |decided| decided.apart().stored.iter().map(Stored::bytes).sum())
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// The plans of the scan, for the saved searches of the last list if none are given.
    fn known_plans(&self) -> Option<Vec<RequestPlan>> {
        let aids = match &self.config.plan.aids {
            Aids::Given(aids) => aids.clone(),
            Aids::Listed => self.listed_before()?,
            Aids::NotNeeded => return None,
        };
        Some(aids.iter().flat_map(|aid| self.requests.of_search(aid)).collect())
    }

    /// Returns the rows of the scan that are in files now. `None` if the scan cannot be answered by files alone.
    ///
    /// # Errors
    /// Errors of the store's catalog.
    pub(crate) fn in_files(
        &self,
        readers: &FileScanOptions,
        settings: &SessionSettings,
    ) -> DataFusionResult<Option<InFiles>> {
        let (Some(from), Some(_)) = (usable(&self.config), self.store()) else { return Ok(None) };
        let Some(plans) = self.known_plans() else { return Ok(None) };
        let (mut parts, mut complete) = (Vec::new(), true);
        for plan in plans {
            let Some(decided) = self.requests.divisions.of(&self.config, from, &plan)? else { return Ok(None) };
            complete &= decided.division.is_stored();
            parts.push(StoredPart { plan, stored: decided.division.stored.clone(), span: decided.span.clone() });
        }
        let fills = from.writes && from.reads && !settings.lossy_text;
        if !complete && (!fills || self.config.summary().is_some()) {
            return Ok(None);
        }
        self.of_parts(&self.config, &parts, readers, complete)
    }

    /// Brings the store up to date for the scan, and returns its rows in files. `None` if they could not all be stored; the scan
    /// then has to be run as it is.
    ///
    /// # Errors
    /// Those of a scan, with the service's key redacted.
    pub(crate) async fn bring_into_files(
        &self,
        readers: &FileScanOptions,
        context: &Arc<TaskContext>,
    ) -> DataFusionResult<Option<InFiles>> {
        let starting = Starting::new(self, context, &self.metrics, 0);
        let client = self.config.connection.client();
        let redacted = |error: DataFusionError| client.redacted(error);
        let driver = starting.driver().map_err(redacted)?;
        let parts = driver.stored_parts().await;
        driver.counters.spent(&driver.scan);
        let parts = parts.inspect_err(|_| driver.scan.failed()).map_err(redacted)?;
        match parts {
            Some(parts) => self.of_parts(&driver.config, &parts, readers, true),
            None => Ok(None),
        }
    }

    fn of_parts(
        &self,
        config: &ScanConfig,
        parts: &[StoredPart],
        readers: &FileScanOptions,
        complete: bool,
    ) -> DataFusionResult<Option<InFiles>> {
        let Some(from) = usable(config) else { return Ok(None) };
        let schema = self.schema();
        let mut options = ConfigOptions::default();
        options.optimizer.repartition_file_min_size = readers.parallel_bytes;
        let scan = FileScan {
            config,
            output: &schema,
            from,
            at: FilesAt::Url(readers.url.clone()),
            runtime: None,
            partitions: readers.partitions,
            options: &options,
        };
        let mut sources = scan.sources(parts, Matching::new())?;
        let rows: Arc<dyn ExecutionPlan> = match sources.len() {
            0 => Arc::new(EmptyExec::new(schema)),
            1 => sources.remove(0),
            _ => UnionExec::try_new(sources)?,
        };
        let stored = || parts.iter().flat_map(|part| &part.stored);
        let bytes = stored().map(Stored::bytes).sum();
        let used = Used {
            days: stored().map(|part| (part.region.id, part.days.clone())).collect(),
            spans: parts.iter().map(|part| part.span.clone()).collect(),
        };
        Ok(Some(InFiles { rows, bytes, complete, used }))
    }
}

impl Driver {
    /// Brings the store up to date for all plans of a scan. `None` if their mentions could not all be stored.
    async fn stored_parts(self: &Arc<Self>) -> DataFusionResult<Option<Vec<StoredPart>>> {
        let plans: Vec<RequestPlan> = self.plans().await?.into_iter().flatten().collect();
        let counts = self.config.summary().is_some();
        let asked = move |driver: &Self| {
            let fits = !counts || plans.iter().all(|plan| driver.is_stored(plan));
            let least = fits.then(|| driver.to_request(&plans));
            (plans, least)
        };
        let (plans, least) = self.aside(asked).await?;
        let Some(least) = least else { return Ok(None) };
        self.require(least)?;
        let at_once = self.settings.concurrency.max(1);
        let parts = stream::iter(plans).map(|plan| Arc::clone(self).stored_part(plan)).buffered(at_once);
        parts.try_collect::<Vec<_>>().await.map(|parts| parts.into_iter().collect())
    }

    /// Brings the store up to date for a plan. `None` if its mentions could not all be stored.
    async fn stored_part(self: Arc<Self>, plan: RequestPlan) -> DataFusionResult<Option<StoredPart>> {
        let Some(from) = usable(&self.config).cloned() else { return Ok(None) };
        let asked = plan.clone();
        if !self.fills(&from) && !self.aside(move |driver| driver.is_stored(&asked)).await? {
            return Ok(None);
        }
        let divided = self.divided_alone(&from, &plan).await.map_err(|error| self.at_plan(error, &plan))?;
        let Some(divided) = divided else { return Ok(None) };
        let Divided { division, span, timeline, tail, .. } = divided;
        self.note_declared_later(&from, &plan, &division.stored).await;
        let timeline = Arc::new(timeline);
        let mut stored = division.stored;
        let mut missing = division.read.clone();
        for range in division.read {
            let rows = Arc::clone(&self).remainder(&from, &plan, range, span.end, &timeline, Prefetch::Ahead(1));
            let mut rows = rows.map_err(|error| self.at_plan(error, &plan))?;
            while let Some(batch) = rows.next().await {
                batch?;
            }
        }
        missing.extend(tail.map(|tail| tail.start..span.end));
        for range in missing {
            let asked = plan.clone();
            match self.aside(move |driver| driver.stored_since_begun(&asked, &range)).await?? {
                Some(days) => stored.extend(days),
                None => return Ok(None),
            }
        }
        let counters = from.store.counters();
        counters.opened(files_of(stored.iter()), stored.iter().map(Stored::bytes).sum());
        Ok(Some(StoredPart { plan, stored, span }))
    }

    /// The stored days of a range of a plan, if all were seen at the service since the query began.
    fn stored_since_begun(&self, plan: &RequestPlan, range: &Range<i64>) -> Result<Option<Vec<Stored>>> {
        let Some(from) = usable(&self.config) else { return Ok(None) };
        let Some(decided) = self.divisions.of(&self.config, from, plan)? else { return Ok(None) };
        let Decided { subject, terms, regions, .. } = decided.as_ref();
        let begun = self.query.begun + self.config.connection.client().ahead() - TimeDelta::microseconds(1);
        let terms = Terms { since: terms.since.min(begun), ..*terms };
        let division = divide(range, &subject.filters, regions, &terms);
        let incomplete = self.scan.incomplete.load(Ordering::Relaxed) > 0;
        Ok((division.is_stored() && !incomplete).then_some(division.stored))
    }
}
