//! What is counted, for Prometheus.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::connection::Connection;

/// A call, by its kind and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    kind: String,
    code: &'static str,
}

/// A query, by how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    outcome: &'static str,
}

/// The counters of a server.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    calls: Family<Call, Counter>,
    queries: Family<Ended, Counter>,
    seconds: Histogram,
    rows: Counter,
    bytes: Counter,
    /// Requests that statements have cost.
    pub(super) requests: Counter,
    /// Results being fetched.
    pub(super) queries_running: Gauge,
    /// Connections that are open.
    pub(super) connections: Gauge,
    /// Sessions that are open.
    pub(super) sessions: Gauge,
    /// Prepared statements that are open.
    pub(super) statements: Gauge,
    /// Results that wait to be fetched, or may be fetched again.
    pub(super) results: Gauge,
    upstream_requests: Gauge,
    upstream_bytes: Gauge,
    upstream_wait: Gauge,
}

impl Metrics {
    pub(super) fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("savedsearch");
        let calls = Family::<Call, Counter>::default();
        registry.register("calls", "Calls of clients, by what they asked for and how they ended", calls.clone());
        let queries = Family::<Ended, Counter>::default();
        registry.register("queries", "Results that were fetched, by how that ended", queries.clone());
        let seconds = Histogram::new(exponential_buckets(0.01, 4.0, 9));
        registry.register("query_seconds", "Time that results took to be fetched", seconds.clone());
        let mut counter = |name, help| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let rows = counter("rows", "Rows sent");
        let bytes = counter("bytes", "Bytes of the batches sent, as they lie in memory");
        let requests = counter("query_requests", "Requests that statements have cost at the service");
        let mut gauge = |name, help| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let queries_running = gauge("queries_running", "Results being fetched");
        let connections = gauge("connections", "Connections that are open");
        let sessions = gauge("sessions", "Sessions that are open");
        let statements = gauge("statements", "Prepared statements that are open");
        let results = gauge("results", "Results that wait to be fetched, or may be fetched again");
        let upstream_requests = gauge("upstream_requests", "Requests to the service by the connections that are open");
        let upstream_bytes =
            gauge("upstream_bytes", "Bytes received from the service by the connections that are open");
        let upstream_wait = gauge("upstream_closed_seconds", "Seconds until the service may be asked again");
        Arc::new(Self {
            registry,
            calls,
            queries,
            seconds,
            rows,
            bytes,
            requests,
            queries_running,
            connections,
            sessions,
            statements,
            results,
            upstream_requests,
            upstream_bytes,
            upstream_wait,
        })
    }

    /// A call has been answered; a result that it gives may go on.
    pub(super) fn called(&self, kind: String, code: &'static str) {
        self.calls.get_or_create(&Call { kind, code }).inc();
    }

    /// A result has been fetched, or not to its end.
    pub(super) fn ended(&self, outcome: &'static str, rows: u64, bytes: u64, requests: u64, time: Duration) {
        self.queries_running.dec();
        self.queries.get_or_create(&Ended { outcome }).inc();
        self.seconds.observe(time.as_secs_f64());
        self.rows.inc_by(rows);
        self.bytes.inc_by(bytes);
        self.requests.inc_by(requests);
    }

    /// All of it in the OpenMetrics text format, which Prometheus reads.
    ///
    /// # Errors
    /// None in practice: writing to a text does not fail.
    pub(super) fn text(&self, connections: &[Arc<Connection>]) -> Result<String, std::fmt::Error> {
        let total = |of: &dyn Fn(&Connection) -> u64| {
            let sum = connections.iter().map(|connection| of(connection)).sum::<u64>();
            i64::try_from(sum).unwrap_or(i64::MAX)
        };
        self.upstream_requests.set(total(&|connection| connection.client().log().requests.load(Ordering::Relaxed)));
        self.upstream_bytes.set(total(&|connection| connection.client().log().bytes.load(Ordering::Relaxed)));
        let waits = connections.iter().map(|connection| connection.client().throttled_for().as_secs());
        self.upstream_wait.set(waits.max().map_or(0, |seconds| i64::try_from(seconds).unwrap_or(i64::MAX)));
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
