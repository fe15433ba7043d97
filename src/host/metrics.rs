//! Prometheus metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::connection::Connection;
use crate::exec::Spent;
#[cfg(feature = "store")]
use crate::store::StoreStatistics;

/// Labels of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    kind: String,
    code: &'static str,
}

/// Labels of a finished query.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    outcome: &'static str,
}

/// Labels of a rejected login.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejected {
    reason: &'static str,
}

/// Metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<Call, Counter>,
    queries: Family<Ended, Counter>,
    seconds: Histogram,
    rows: Counter,
    bytes: Counter,
    logins_rejected: Family<Rejected, Counter>,
    requests: Counter,
    throttle_wait: Counter<f64, AtomicU64>,
    /// Running queries.
    pub(crate) queries_running: Gauge,
    /// Open connections.
    pub(crate) connections: Gauge,
    /// Open sessions.
    pub(crate) sessions: Gauge,
    /// Bytes allocated since the server started.
    pub(crate) memory: Gauge,
    /// Open prepared statements.
    pub(crate) statements: Gauge,
    /// Results that can be fetched, including those already fetched but not yet expired.
    pub(crate) results: Gauge,
    upstream_requests: Gauge,
    upstream_bytes: Gauge,
    upstream_wait: Gauge,
    #[cfg(feature = "store")]
    store: StoreGauges,
    #[cfg(feature = "distributed")]
    workers: [Gauge; 2],
}

/// Use of the store by queries.
#[cfg(feature = "store")]
#[derive(Debug)]
struct StoreGauges {
    days_from_store: Gauge,
    days_requested: Gauge,
    bytes: Gauge,
    rows_skipped: Gauge,
    responses: Gauge,
    requests_saved: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("savedsearch");
        registry.register("build", "Version of the server", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let calls = Family::<Call, Counter>::default();
        registry.register("calls", "Calls by clients, by kind and status code", calls.clone());
        let queries = Family::<Ended, Counter>::default();
        registry.register("queries", "Finished queries, by outcome", queries.clone());
        let logins_rejected = Family::<Rejected, Counter>::default();
        registry.register("logins_rejected", "Rejected logins, by reason", logins_rejected.clone());
        let seconds = Histogram::new(exponential_buckets(0.01, 4.0, 9));
        registry.register("query_seconds", "Time from starting a query to its end, in seconds", seconds.clone());
        let mut counter = |name, help| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let rows = counter("rows", "Rows sent to clients");
        let bytes = counter("bytes", "Bytes of the record batches sent to clients, measured in memory");
        let requests = counter("query_requests", "Requests sent to the service by statements");
        let throttle_wait = Counter::<f64, AtomicU64>::default();
        registry.register(
            "throttle_wait_seconds",
            "Time for which limits of the service kept statements waiting, in seconds",
            throttle_wait.clone(),
        );
        let mut gauge = |name, help| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let queries_running = gauge("queries_running", "Running queries");
        let connections = gauge("connections", "Open connections");
        let sessions = gauge("sessions", "Open sessions");
        let memory = gauge("memory_bytes", "Memory that the server takes beyond what it took at its start");
        let statements = gauge("statements", "Open prepared statements");
        let results = gauge("results", "Results that can be fetched and have not expired");
        let upstream_requests = gauge("upstream_requests", "Requests sent to the service with the API keys in use");
        let upstream_bytes = gauge("upstream_bytes", "Bytes received from the service with the API keys in use");
        let upstream_wait =
            gauge("upstream_closed_seconds", "Seconds until the next request to the service is allowed (throttling)");
        #[cfg(feature = "store")]
        let store = StoreGauges {
            days_from_store: gauge("store_days", "Days of mentions that queries took from the store"),
            days_requested: gauge("store_days_requested", "Days of mentions requested by queries that use a store"),
            bytes: gauge("store_bytes", "Size of the stored mentions that queries read, in bytes"),
            rows_skipped: gauge(
                "store_rows_skipped",
                "Stored mentions that queries did not read because of an index of words",
            ),
            responses: gauge("store_responses", "Stored responses without mentions that queries used"),
            requests_saved: gauge("store_requests_saved", "Requests to the service that the store made unnecessary"),
        };
        #[cfg(feature = "distributed")]
        let workers =
            [gauge("workers", "Workers of the server"), gauge("workers_healthy", "Workers that new queries use")];
        Arc::new(Self {
            registry,
            calls,
            queries,
            seconds,
            rows,
            bytes,
            logins_rejected,
            requests,
            throttle_wait,
            queries_running,
            connections,
            sessions,
            memory,
            statements,
            results,
            upstream_requests,
            upstream_bytes,
            upstream_wait,
            #[cfg(feature = "store")]
            store,
            #[cfg(feature = "distributed")]
            workers,
        })
    }

    /// Counts an answered call. Its result stream may still be running.
    pub(crate) fn called(&self, kind: String, code: &'static str) {
        self.calls.get_or_create(&Call { kind, code }).inc();
    }

    /// Returns the count of logins rejected for this reason.
    pub(crate) fn rejected(&self, reason: &'static str) -> Counter {
        self.logins_rejected.get_or_create_owned(&Rejected { reason })
    }

    /// Records the end of a query, complete or not.
    pub(crate) fn ended(&self, outcome: &'static str, rows: u64, bytes: u64, time: Duration) {
        self.queries_running.dec();
        self.queries.get_or_create(&Ended { outcome }).inc();
        self.seconds.observe(time.as_secs_f64());
        self.rows.inc_by(rows);
        self.bytes.inc_by(bytes);
    }

    /// Records what a statement has cost. Totals of the connections would not do: those of pass-through clients close.
    pub(crate) fn spent(&self, spent: Spent) {
        self.requests.inc_by(spent.requests);
        self.throttle_wait.inc_by(Duration::from_millis(spent.wait_ms).as_secs_f64());
    }

    /// Sets the numbers of all workers and of the healthy ones.
    #[cfg(feature = "distributed")]
    pub(crate) fn set_workers(&self, numbers: [usize; 2]) {
        for (gauge, number) in self.workers.iter().zip(numbers) {
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        }
    }

    /// Returns all metrics in the OpenMetrics text format.
    ///
    /// # Errors
    /// None in practice: writing to a string does not fail.
    pub(crate) fn text(&self, connections: &[Arc<Connection>]) -> Result<String, std::fmt::Error> {
        let total = |of: &dyn Fn(&Connection) -> u64| {
            let sum = connections.iter().map(|connection| of(connection)).sum::<u64>();
            i64::try_from(sum).unwrap_or(i64::MAX)
        };
        self.upstream_requests.set(total(&|connection| connection.client().log().requests.load(Ordering::Relaxed)));
        self.upstream_bytes.set(total(&|connection| connection.client().log().bytes.load(Ordering::Relaxed)));
        let waits = connections.iter().map(|connection| connection.client().throttled_for().as_secs());
        self.upstream_wait.set(waits.max().map_or(0, |seconds| i64::try_from(seconds).unwrap_or(i64::MAX)));
        #[cfg(feature = "store")]
        self.store.set(connections);
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(feature = "store")]
impl StoreGauges {
    fn set(&self, connections: &[Arc<Connection>]) {
        let used: Vec<StoreStatistics> =
            connections.iter().filter_map(|connection| connection.store_statistics()).collect();
        let set = |gauge: &Gauge, of: fn(&StoreStatistics) -> u64| {
            let sum: u64 = used.iter().map(of).sum();
            gauge.set(i64::try_from(sum).unwrap_or(i64::MAX));
        };
        set(&self.days_from_store, |used| used.days_from_store);
        set(&self.days_requested, |used| used.days_requested);
        set(&self.bytes, |used| used.bytes);
        set(&self.rows_skipped, |used| used.rows_skipped);
        set(&self.responses, |used| used.responses);
        set(&self.requests_saved, |used| used.requests_saved);
    }
}
