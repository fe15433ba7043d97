//! Decides which plans are spread over workers, and plans their stages.
//!
//! ```text
//! local plan ─ reads enough from the store? ─ no ─▶ runs here
//!      └─ yes ─▶ the same query over files ─ the engine's rules ─▶ stages, if they can be encoded
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use datafusion::catalog::Session;
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::DFSchema;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::common::format::ExplainFormat;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::{QueryPlanner, SessionState, TaskContext};
use datafusion::execution::{SessionStateBuilder, runtime_env::RuntimeEnv};
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, displayable};
use datafusion::physical_planner::DefaultPhysicalPlanner;
use datafusion::prelude::SessionContext;
use datafusion_distributed::{DistributedCodec, DistributedExec, DistributedExt, SessionStateBuilderExt};
use datafusion_proto::bytes::physical_plan_to_bytes_with_extension_codec;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::codec::OperatorCodec;
use super::files::{files_of, id_at, is_of_store, url_of};
use super::spread_exec::{FetchedExec, SpreadExec, SpreadQuery, SpreadScan};
use super::workers::{Chosen, Workers};
use crate::boxed_future::boxed_futures;
use crate::config::SessionSettings;
use crate::error::{Error, ErrorKind};
use crate::exec::{FetchExec, FileScanOptions, least_requests, reads_all};
use crate::store::Store;

/// Header with the session's options that affect the rows, as JSON in Base64.
pub(super) const OPTIONS: HeaderName = HeaderName::from_static("x-savedsearch-options");
/// Prefix of the options that affect the execution of a plan.
const EXECUTION: &str = "datafusion.execution.";
/// Options that each machine decides itself.
const OWN: [&str; 2] = ["datafusion.execution.batch_size", "datafusion.execution.target_partitions"];
/// Maximum size in bytes of rows that are sent within a plan.
pub(super) const WITHIN_PLAN: usize = 16 << 20;
/// Minimum number of partitions of a part of a plan: aggregates of a single one are not spread.
const PARTITIONS: usize = 2;
/// Rows of a batch of a spread plan.
const BATCH: usize = 8_192;
/// Line of EXPLAIN for a plan that is not spread; the reason follows.
const ALONE: &str = "runs on the server alone";
/// Reason for a plan that the server can run with few partitions.
const SMALL: &str = "it reads little of the store (worker_partition_bytes)";
/// Reason for a plan with requests that its operators, such as joins, may not send.
const UNCERTAIN: &str =
    "it may not need all mentions that would be requested first; with a sufficient savedsearch.freshness, none are";

/// Returns the session with plans that are spread over workers.
pub(super) fn spread_session(context: &SessionContext, workers: &Arc<Workers>) -> SessionContext {
    let state = context.state();
    let planner = SpreadPlanner { inner: Arc::clone(state.query_planner()), workers: Arc::clone(workers) };
    let builder = SessionStateBuilder::new_from_existing(state).with_query_planner(Arc::new(planner));
    SessionContext::new_with_state(builder.build())
}

/// See the module's documentation.
struct SpreadPlanner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
    workers: Arc<Workers>,
}

impl fmt::Debug for SpreadPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpreadPlanner").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl QueryPlanner for SpreadPlanner {
    boxed_futures! {
        fn create_physical_plan<'this, 'plan, 'session>(
            &'this self,
            logical: &'plan LogicalPlan,
            session: &'session dyn Session,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            self.physical(logical, session)
        }
    }
}

impl SpreadPlanner {
    /// Returns the physical plan, spread over workers if that is possible.
    fn physical<'a>(
        &'a self,
        logical: &'a LogicalPlan,
        session: &'a dyn Session,
    ) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(async move {
            let local = self.inner.create_physical_plan(logical, session).await?;
            let Some(state) = session.as_any().downcast_ref::<SessionState>() else { return Ok(local) };
            if let (Some(analyze), LogicalPlan::Analyze(analyzed)) = (local.downcast_ref::<AnalyzeExec>(), logical) {
                let spread = self.spread(analyze.input(), &analyzed.input, state).await;
                let input = spread.unwrap_or_else(|_| Arc::clone(analyze.input()));
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                return local.replace_children(vec![input], options);
            }
            if let (Some(explain), LogicalPlan::Explain(explained)) = (local.downcast_ref::<ExplainExec>(), logical) {
                let shows = |shown: &StringifiedPlan| matches!(shown.plan_type, PlanType::FinalPhysicalPlan);
                if !explain.stringified_plans().iter().any(shows) {
                    return Ok(local);
                }
                let plan = self.inner.create_physical_plan(&explained.plan, session).await?;
                let spread = self.spread(&plan, &explained.plan, state).await;
                let text = |local: &str| match &spread {
                    Ok(spread) => text_of(spread.as_ref(), explained, state),
                    Err(Some(reason)) => format!("{}\n{ALONE}: {reason}\n", local.trim_end()),
                    Err(None) => local.to_owned(),
                };
                let shown = explain.stringified_plans().iter().map(|shown| match shown.plan_type {
                    PlanType::FinalPhysicalPlan => StringifiedPlan::new(PlanType::FinalPhysicalPlan, text(&shown.plan)),
                    _ => shown.clone(),
                });
                return Ok(Arc::new(ExplainExec::new(explain.schema(), shown.collect(), explain.verbose())));
            }
            let spread = self.spread(&local, logical, state).await;
            Ok(spread.unwrap_or(local))
        })
    }
}

/// Returns a plan as EXPLAIN shows it.
fn text_of(plan: &dyn ExecutionPlan, explained: &datafusion::logical_expr::Explain, state: &SessionState) -> String {
    let options = &state.config_options().explain;
    match explained.explain_format {
        ExplainFormat::Tree => {
            displayable(plan).set_tree_maximum_render_width(options.tree_maximum_render_width).tree_render().to_string()
        }
        _ => displayable(plan)
            .set_show_statistics(explained.show_statistics.unwrap_or(options.show_statistics))
            .indent(explained.verbose)
            .to_string(),
    }
}

impl SpreadPlanner {
    /// Size in bytes of stored files that the server's own partitions read.
    fn least_bytes(&self, state: &SessionState) -> u64 {
        (self.workers.partition_bytes() as u64).saturating_mul(state.config().target_partitions() as u64)
    }

    /// Returns the plan of a query on workers, or the reason why it runs on the server alone, if it reads the store.
    async fn spread(
        &self,
        local: &Arc<dyn ExecutionPlan>,
        logical: &LogicalPlan,
        state: &SessionState,
    ) -> std::result::Result<Arc<dyn ExecutionPlan>, Option<String>> {
        let bytes = stored_bytes(local);
        // Nearly all queries end here.
        if bytes <= self.least_bytes(state) {
            return Err((bytes > 0).then(|| SMALL.to_owned()));
        }
        match self.try_spread(local, logical, state).await {
            Ok(Ok(spread)) => Ok(Arc::new(spread)),
            Ok(Err(reason)) => {
                tracing::debug!(reason, "{ALONE}");
                Err(Some(reason.to_owned()))
            }
            Err(error) => {
                let error = crate::error::describe(&error);
                tracing::warn!(error = error.as_str(), "cannot be spread over workers: {ALONE}");
                Err(Some(error))
            }
        }
    }

    /// Returns the plan of a query on workers, or the reason why it runs on the server alone.
    async fn try_spread(
        &self,
        local: &Arc<dyn ExecutionPlan>,
        logical: &LogicalPlan,
        state: &SessionState,
    ) -> Result<std::result::Result<SpreadExec, &'static str>> {
        let unoptimized =
            SessionStateBuilder::new_from_existing(state.clone()).with_physical_optimizer_rules(Vec::new());
        let unoptimized = self.inner.create_physical_plan(logical, &unoptimized.build()).await?;
        let settings = SessionSettings::of(state.config_options());
        let planning = Planning { state: state.clone(), workers: Arc::clone(&self.workers) };
        let requests = least_requests(local);
        let (mut scans, mut stores) = (Vec::new(), BTreeSet::new());
        // Requests are sent before the query runs: only those that it certainly needs.
        let (mut of_mentions, mut of_others) = (false, false);
        let mut refused = None;
        let mut rows: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
        unoptimized.apply(|node| {
            let Some(scan) = node.downcast_ref::<FetchExec>() else { return Ok(TreeNodeRecursion::Continue) };
            scan.check_bounds()?;
            scan.set_least_requests(requests);
            let scan = Arc::new(scan.clone());
            match scan.store() {
                Some(store) => {
                    let readers = planning.readers(store)?;
                    let Some(files) = scan.in_files(&readers, &settings)? else {
                        refused = Some("the store cannot have all mentions that it reads");
                        return Ok(TreeNodeRecursion::Stop);
                    };
                    of_mentions |= !files.complete;
                    stores.insert(id_at(store.location())?);
                    rows.push(Arc::clone(&files.rows));
                    scans.push(SpreadScan::of_files(&scan, readers, files));
                }
                None if scan.is_of_mentions() => {
                    refused = Some("mentions are not read from the store, or only some of them");
                    return Ok(TreeNodeRecursion::Stop);
                }
                None => {
                    of_others = true;
                    rows.push(Arc::new(FetchedExec::new(scan.table(), scan.schema())));
                    scans.push(SpreadScan::of_rows(scan));
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if let Some(reason) = refused {
            return Ok(Err(reason));
        }
        if (of_mentions && !reads_all(local, true)) || (of_others && !reads_all(local, false)) {
            return Ok(Err(UNCERTAIN));
        }
        let bytes: u64 = scans.iter().map(SpreadScan::bytes).sum();
        if bytes <= self.least_bytes(state) {
            return Ok(Err(SMALL));
        }
        let planned = planning.stages(&unoptimized, rows, &stores).await?;
        let local = Arc::clone(local);
        Ok(planned.map(|stages| SpreadExec::new(SpreadQuery { local, unoptimized, scans, stages, stores, planning })))
    }
}

/// Size in bytes of the stored files that a plan's scans may read; 0 if a scan reads only some rows.
fn stored_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut bytes = 0_u64;
    // The closure never fails.
    let _ = plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<FetchExec>() {
            if scan.is_on_demand() {
                bytes = 0;
                return Ok(TreeNodeRecursion::Stop);
            }
            bytes = bytes.saturating_add(scan.stored_bytes());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    bytes
}

/// Stages of a plan, and the context in which the engine runs them.
#[derive(Debug, Clone)]
pub(super) struct Stages {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) context: Arc<TaskContext>,
    /// URLs of the workers.
    pub(super) workers: Vec<Url>,
}

/// Session state that planning needs.
#[derive(Clone)]
pub(super) struct Planning {
    state: SessionState,
    workers: Arc<Workers>,
}

impl fmt::Debug for Planning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planning").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Planning {
    /// Returns the location of a store's files, and the number of readers. The server reads them under the same URL.
    fn readers(&self, store: &Store) -> Result<FileScanOptions> {
        let url = url_of(&id_at(store.location())?)?;
        let runtime: &Arc<RuntimeEnv> = self.state.runtime_env();
        if runtime.object_store(&url).is_err() {
            runtime.register_object_store(url.as_ref(), files_of(store)?);
        }
        let partitions = self.state.config().target_partitions().max(PARTITIONS);
        Ok(FileScanOptions { url, partitions, parallel_bytes: self.workers.partition_bytes() })
    }

    /// URLs of the workers that can be used now.
    pub(super) fn usable(&self, stores: &BTreeSet<String>) -> Vec<Url> {
        self.workers.with_stores(stores)
    }

    /// Plans the stages of a query whose scans are replaced by these operators, in plan order. A reason if it runs on the server
    /// alone.
    pub(super) async fn stages(
        &self,
        unoptimized: &Arc<dyn ExecutionPlan>,
        rows: Vec<Arc<dyn ExecutionPlan>>,
        stores: &BTreeSet<String>,
    ) -> Result<std::result::Result<Stages, &'static str>> {
        let workers = self.usable(stores);
        let chosen = match workers.as_slice() {
            [] => return Ok(Err("no worker is healthy and has the store")),
            // The engine spreads nothing over one address: the worker takes two parts.
            [only] => vec![only.clone(), only.clone()],
            several => several.to_vec(),
        };
        let mut rows = rows.into_iter();
        let replaced = Arc::clone(unoptimized).transform_down(|node| {
            if node.downcast_ref::<FetchExec>().is_none() {
                return Ok(Transformed::no(node));
            }
            let Some(rows) = rows.next() else { return Ok(Transformed::no(node)) };
            Ok(Transformed::new(rows, true, TreeNodeRecursion::Jump))
        });
        let partitions = self.state.config().target_partitions().max(PARTITIONS);
        let mut config = self.state.config().clone().with_batch_size(BATCH).with_target_partitions(partitions);
        // Files have no order, and all of their rows are needed.
        config.options_mut().execution.sort_pushdown_buffer_capacity =
            ConfigOptions::default().execution.sort_pushdown_buffer_capacity;
        let state = SessionStateBuilder::new_from_existing(self.state.clone()).with_config(config.clone()).build();
        let plan = DefaultPhysicalPlanner::default().optimize_physical_plan(replaced.data()?, &state, |_, _| {})?;
        if let Err(reason) = check(&plan) {
            return Ok(Err(reason));
        }
        let config = config
            .with_distributed_worker_resolver(Chosen(chosen))
            .with_distributed_channel_resolver(self.workers.connections())
            .with_distributed_user_codec(OperatorCodec)
            .with_distributed_file_scan_config_bytes_per_partition(self.workers.partition_bytes())?
            .with_distributed_passthrough_headers(headers(self.state.config_options())?)?;
        if encode(&plan, &config).is_err() {
            return Ok(Err("it has an operator or function that cannot be sent to workers"));
        }
        let builder = SessionStateBuilder::new_from_existing(state)
            .with_config(config)
            .with_query_planner(Arc::new(Planned(plan)))
            .with_distributed_planner();
        let state = builder.build();
        let nothing =
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) });
        let plan = state.query_planner().create_physical_plan(&nothing, &state).await?;
        match plan.downcast_ref::<DistributedExec>() {
            Some(_) => Ok(Ok(Stages { plan, context: state.task_ctx(), workers })),
            None => Ok(Err("the engine would not distribute this plan")),
        }
    }
}

/// A planner of one plan, for the engine, which takes its input from a planner.
#[derive(Debug)]
struct Planned(Arc<dyn ExecutionPlan>);

impl QueryPlanner for Planned {
    boxed_futures! {
        fn create_physical_plan<'this, 'plan, 'session>(
            &'this self,
            _plan: &'plan LogicalPlan,
            _session: &'session dyn Session,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Box::pin(ready(Ok(Arc::clone(&self.0))))
        }
    }
}

/// Refuses plans with operators that workers must not, or cannot, run.
fn check(plan: &Arc<dyn ExecutionPlan>) -> std::result::Result<(), &'static str> {
    let (mut refused, mut within) = (None, 0);
    // The closure never fails.
    let _ = plan.apply(|node| {
        refused = if node.is::<ScalarSubqueryExec>() {
            // Its result is known only to the process that runs it.
            Some("it has a scalar subquery")
        } else if node.is::<DataSinkExec>() {
            Some("it writes")
        } else if node.children().is_empty() {
            leaf(node, &mut within)
        } else {
            None
        };
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match refused {
        Some(reason) => Err(reason),
        None if within > WITHIN_PLAN => Err("its temporary tables are too large to be sent"),
        None => Ok(()),
    }
}

/// Returns the reason why a leaf cannot run on workers. Adds the bytes that are sent with it.
fn leaf(node: &Arc<dyn ExecutionPlan>, within: &mut usize) -> Option<&'static str> {
    if node.is::<EmptyExec>() || node.is::<PlaceholderRowExec>() || node.is::<FetchedExec>() {
        return None;
    }
    let Some(source) = node.downcast_ref::<DataSourceExec>() else {
        return Some("it has an operator that only the server can run");
    };
    if let Some(memory) = source.data_source().downcast_ref::<MemorySourceConfig>() {
        *within += memory.partitions().iter().flatten().map(|batch| batch.get_array_memory_size()).sum::<usize>();
        return None;
    }
    match source.data_source().downcast_ref::<FileScanConfig>() {
        Some(files) if is_of_store(&files.object_store_url) => None,
        _ => Some("it reads files that workers cannot read"),
    }
}

/// Encodes a plan, to find out whether that is possible.
fn encode(plan: &Arc<dyn ExecutionPlan>, config: &datafusion::prelude::SessionConfig) -> Result<()> {
    let known = Arc::clone(plan).transform_up(|node| {
        Ok(match node.is::<FetchedExec>() {
            true => Transformed::yes(Arc::new(EmptyExec::new(node.schema())) as Arc<dyn ExecutionPlan>),
            false => Transformed::no(node),
        })
    });
    let codec = DistributedCodec::new_combined_with_user(config);
    physical_plan_to_bytes_with_extension_codec(known.data()?, &codec).map(drop)
}

/// Returns the session's options that affect the rows, for workers.
fn headers(options: &ConfigOptions) -> Result<HeaderMap> {
    let usual: std::collections::HashMap<_, _> =
        ConfigOptions::default().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    let changed = options.entries().into_iter().filter(|entry| {
        entry.key.starts_with(EXECUTION)
            && !OWN.contains(&entry.key.as_str())
            && usual.get(&entry.key) != Some(&entry.value)
    });
    let changed: std::collections::BTreeMap<_, _> = changed.map(|entry| (entry.key, entry.value)).collect();
    let text = serde_json::to_vec(&changed).map_err(|error| DataFusionError::External(error.into()))?;
    let value = HeaderValue::from_str(&BASE64_STANDARD.encode(text));
    let value = value.map_err(|error| DataFusionError::External(error.into()))?;
    Ok(HeaderMap::from_iter([(OPTIONS, value)]))
}

/// Reads the options that a server sent.
///
/// # Errors
/// [`ErrorKind::Worker`] for anything else.
pub(super) fn read_options(headers: &HeaderMap) -> crate::error::Result<Vec<(String, String)>> {
    let wrong = || Error::new(ErrorKind::Worker, "the server sent unreadable options");
    let Some(value) = headers.get(OPTIONS) else { return Ok(Vec::new()) };
    let text = BASE64_STANDARD.decode(value.as_bytes()).map_err(|_| wrong())?;
    let options: std::collections::BTreeMap<String, Option<String>> =
        serde_json::from_slice(&text).map_err(|_| wrong())?;
    let options = options.into_iter().filter(|(key, _)| key.starts_with(EXECUTION));
    Ok(options.filter_map(|(key, value)| Some((key, value?))).collect())
}
