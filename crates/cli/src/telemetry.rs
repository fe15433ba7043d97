//! Log lines, and the export of traces over OTLP.
//!
//! The library has the spans; this is the only place that uses the feature `otel`. Traces are sent over gRPC to the
//! collector that `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` names. Without either variable,
//! nothing is started. Only spans of the library are exported, because their fields contain no texts. Events, and spans of
//! other crates, might contain texts.

use datafusion_saved_search::error::one_line;
use tokio::task::spawn_blocking;
use tracing::Level;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::Exit;
use crate::stderr::tell;

/// A receiver of log lines or spans, with its own filter.
pub(crate) type Receiver = Box<dyn Layer<Registry> + Send + Sync>;

/// Exports the spans that are left, and returns the reason if it cannot.
type Flush = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// Running export of traces, if there is one.
pub(crate) struct Telemetry(Option<Flush>);

impl Telemetry {
    /// Starts the log, if there is one, and the export of traces, if the environment names a collector.
    pub(crate) fn start(log: Option<Receiver>) -> Result<Self, Exit> {
        let (traces, flush) = exporter()?.unzip();
        let receivers: Vec<Receiver> = log.into_iter().chain(traces).collect();
        if !receivers.is_empty() {
            let started = tracing_subscriber::registry().with(receivers).try_init();
            started.map_err(|error| Exit::usage(format!("cannot start logging: {error}")))?;
        }
        Ok(Self(flush))
    }

    /// Exports the remaining spans, for some seconds at most. A failure is only a warning: the command has done its
    /// work.
    pub(crate) async fn end(self) {
        let Some(flush) = self.0 else { return };
        // The export runs on this runtime, so it must not be waited for on one of its threads.
        if let Ok(Err(reason)) = spawn_blocking(flush).await {
            tell(Level::WARN, "warning: ", &format!("some traces were not exported: {}", one_line(&reason)));
        }
    }
}

#[cfg(not(feature = "otel"))]
fn exporter() -> Result<Option<(Receiver, Flush)>, Exit> {
    Ok(None)
}

/// Starts the export of traces.
#[cfg(feature = "otel")]
fn exporter() -> Result<Option<(Receiver, Flush)>, Exit> {
    use std::time::Duration;

    use datafusion_saved_search::config::{trace_collector, variable};
    use opentelemetry::KeyValue;
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_otlp::{SpanExporter, WithTonicConfig};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tonic::transport::ClientTlsConfig;
    use tracing_subscriber::filter::{LevelFilter, filter_fn};

    /// Time for closing the exporter. Its last export before that has the SDK's limit, 5 s.
    const CLOSE: Duration = Duration::from_secs(1);
    const NAME: &str = "savedsearch";

    let Some(collector) = trace_collector() else { return Ok(None) };
    // The exporter itself reads the address, headers and time limit from the environment.
    let builder = SpanExporter::builder().with_tonic();
    // Elsewhere the system's certificates are not needed, and may be missing.
    let builder = match collector.starts_with("https:") {
        true => builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots()),
        false => builder,
    };
    let exporter = builder.build().map_err(|error| Exit::usage(format!("cannot export traces: {error}")))?;
    let resource = Resource::builder_empty()
        .with_service_name(NAME)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    let resource = match variable("OTEL_SERVICE_NAME") {
        Some(name) => resource.with_service_name(name),
        None => resource,
    };
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
    let own = filter_fn(|metadata| {
        metadata.is_span()
            && *metadata.level() <= Level::DEBUG
            && metadata.target().starts_with("datafusion_saved_search::")
    });
    let traces: Receiver = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(NAME))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(own.with_max_level_hint(LevelFilter::DEBUG))
        .boxed();
    let flush: Flush = Box::new(move || {
        let flushed = provider.force_flush();
        // Has nothing left to export. If the export failed, another one would fail too.
        let _ = provider.shutdown_with_timeout(CLOSE);
        flushed.map_err(|error| error.to_string())
    });
    Ok(Some((traces, flush)))
}
