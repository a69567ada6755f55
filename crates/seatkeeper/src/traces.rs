//! How requests went, told to a collector by OTLP.

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use seatkeeper_server::TracingSettings;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// What a collector calls this program, unless `OTEL_SERVICE_NAME` says otherwise.
const NAME: &str = "seatkeeper";

/// The variables by which programs are told of a collector.
const ENDPOINT_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Whose spans are sent. What sends them has spans of its own, which would never end.
const TARGETS: [&str; 2] = ["seatkeeper_engine", "seatkeeper_server"];

/// How long a collector may hold up the end of the program.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);

/// No spans can be sent.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Unfit(#[from] opentelemetry_otlp::ExporterBuildError);

/// Spans on their way to a collector: they wait in a bounded queue, and those for which there is no room are lost.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Sends spans from now on; none: there is no collector.
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

    /// What takes spans from the program.
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

    /// Sends what is not sent yet, if the collector takes it in time.
    pub(crate) async fn finish(self) {
        let sent = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(LAST_WORDS_MAX)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::warn!("the last traces did not get to their collector");
        }
    }
}
