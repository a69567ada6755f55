//! The substitute for `traces` in a build without the feature `otlp`: no spans are exported.

use std::convert::Infallible;

use seatkeeper_server::TracingSettings;
use tracing_subscriber::layer::Identity;

/// The error of settings with a collector in a build without traces.
#[derive(Debug, thiserror::Error)]
#[error(
    "tracing.otlp_endpoint is set, and this program was built without traces: build it with `--features otlp`, or \
     remove the setting"
)]
pub(crate) struct Unfit;

/// No value of this type exists.
#[derive(Debug)]
pub(crate) struct Traces(Infallible);

impl Traces {
    /// Returns `None`, or `Err` if the settings name a collector.
    pub(crate) fn start(settings: &TracingSettings) -> Result<Option<Self>, Unfit> {
        if settings.otlp_endpoint.is_some() { Err(Unfit) } else { Ok(None) }
    }

    /// Returns a layer for spans.
    pub(crate) fn layer(&self) -> Identity {
        match self.0 {}
    }

    /// Sends the last spans.
    pub(crate) async fn finish(self) {
        match self.0 {}
    }
}
