use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, web_address};

/// `[tracing]`: who is told how requests went.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracingSettings {
    /// Where traces are sent by OTLP over HTTP: the address of a collector, such as `http://127.0.0.1:4318`. Absent:
    /// where `OTEL_EXPORTER_OTLP_ENDPOINT` says, and nowhere without that. A program that was built without the
    /// feature `otlp` refuses this setting.
    pub otlp_endpoint: Option<String>,
}

impl TracingSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        vec![self.otlp_endpoint.as_deref().map_or(Ok(()), |url| web_address("tracing.otlp_endpoint", url))]
    }
}
