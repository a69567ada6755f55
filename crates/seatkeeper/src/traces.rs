//! Exports spans of requests to a collector by OTLP. A slow collector never delays a request: spans are
//! dropped instead.

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use seatkeeper_server::TracingSettings;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// The service name for the collector, unless `OTEL_SERVICE_NAME` is set.
const NAME: &str = "seatkeeper";

/// The standard variables with a collector's address.
const ENDPOINT_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// The crates whose spans are exported. Spans of the exporter itself would cause further spans without end.
const TARGETS: [&str; 2] = ["seatkeeper_engine", "seatkeeper_server"];

/// The longest delay of the program's end by the collector.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);

/// The error of an exporter that cannot be built.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Unfit(#[from] opentelemetry_otlp::ExporterBuildError);

/// The export of spans. Spans wait in a bounded queue; without room, a span is dropped.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts the export. Returns `None` without a collector.
    pub(crate) fn start(settings: &TracingSettings) -> Result<Option<Self>, Unfit> {
        let is_told = ENDPOINT_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let exporter = match &settings.otlp_endpoint {
            Some(url) => exporter.with_endpoint(format!("{}/v1/traces", url.trim_end_matches('/'))),
            None if is_told => exporter,
            None => return Ok(None),
        };
        let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
            Some(_) => Resource::builder().build(),
            None => Resource::builder().with_service_name(NAME).build(),
        };
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter.build()?).with_resource(resource);
        Ok(Some(Self(provider.build())))
    }

    /// Returns the layer that takes spans from the program.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let targets = TARGETS.map(|target| (target, LevelFilter::DEBUG));
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer(NAME))
            .with_location(false)
            .with_threads(false)
            .with_filter(Targets::new().with_targets(targets))
    }

    /// Sends the remaining spans, within [`LAST_WORDS_MAX`].
    pub(crate) async fn finish(self) {
        let sent = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(LAST_WORDS_MAX)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::warn!("the collector did not take the last spans: they are lost");
        }
    }
}
