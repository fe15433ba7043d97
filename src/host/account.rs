//! Account of a running query: what it sent and returned, for the log and the metrics.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::physical_plan::ExecutionPlan;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::failure::{Code, Failure};
use super::lanes::InLane;
use super::metrics::Metrics;
use super::sessions::{Busy, Session};
use super::state::Host;
use super::type_compat::bytes_of;
use crate::client::QuerySpan;
use crate::exec::spent;

/// See the module's documentation. Dropping it writes the account, and releases the query's place in the server.
pub(crate) struct Account {
    pub(crate) session: Arc<Session>,
    /// Bytes of the rows returned.
    pub(crate) bytes: u64,
    /// Code with which it ended; `None` if the client disconnected.
    pub(crate) end: Option<Code>,
    query: String,
    metrics: Arc<Metrics>,
    begun: Instant,
    rows: u64,
    plan: Option<Arc<dyn ExecutionPlan>>,
    /// Span of the current plan, and the number of rows returned before it.
    span: Option<(Arc<QuerySpan>, u64)>,
    requests: u64,
    _busy: Busy,
    _places: [OwnedSemaphorePermit; 2],
    _lane: Arc<InLane>,
}

impl Account {
    /// Opens an account for a query in a lane.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the session or the server has too many running queries.
    pub(crate) fn open(host: &Host, session: Arc<Session>, lane: Arc<InLane>) -> Result<Self, Failure> {
        let places = host.places(&session)?;
        host.metrics.queries_running.inc();
        Ok(Self {
            bytes: 0,
            end: None,
            query: String::new(),
            metrics: Arc::clone(&host.metrics),
            begun: Instant::now(),
            rows: 0,
            plan: None,
            span: None,
            requests: 0,
            _busy: session.busy(),
            _places: places,
            _lane: lane,
            session,
        })
    }

    /// Starts the account of the next plan of a statement, and returns its span. `statement` is the digest of its text.
    pub(crate) fn begin(
        &mut self,
        kind: &'static str,
        query: String,
        statement: &str,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Arc<QuerySpan> {
        tracing::info!(query, statement, principal = %self.session.principal.name, "query started");
        self.settle(Code::Ok.name());
        self.query = query;
        self.plan = Some(Arc::clone(plan));
        let span = QuerySpan::start(Some(kind));
        self.span = Some((Arc::clone(&span), self.rows));
        span
    }

    /// Counts rows that the client receives.
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        self.bytes += bytes_of(batch);
    }

    /// Ends the account of the current plan: counts its cost, and ends its span.
    fn settle(&mut self, outcome: &'static str) {
        let spent = self.plan.take().map(|plan| spent(&plan)).unwrap_or_default();
        self.requests += spent.requests;
        self.metrics.spent(spent);
        if let Some((span, before)) = self.span.take() {
            span.ended(outcome, self.rows - before);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let outcome = self.end.map_or("gone", Code::name);
        self.settle(outcome);
        let Self { query, session, metrics, begun, rows, bytes, requests, end, .. } = self;
        if *end == Some(Code::Ok) && *requests > 0 {
            session.prove();
        }
        metrics.ended(outcome, *rows, *bytes, begun.elapsed());
        let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(query, principal = %session.principal.name, outcome, rows, bytes, requests, elapsed_ms, "query finished");
    }
}
