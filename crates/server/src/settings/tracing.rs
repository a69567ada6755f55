//! The section `[tracing]`: the export of traces.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, web_address};

/// `[tracing]`: the export of traces.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracingSettings {
    /// The collector for traces, by OTLP over HTTP, such as `http://127.0.0.1:4318`. Absent: the value of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`; without the variable no traces are sent. A program built without the
    /// feature `otlp` refuses the setting.
    pub otlp_endpoint: Option<String>,
}

impl TracingSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        vec![self.otlp_endpoint.as_deref().map_or(Ok(()), |url| web_address("tracing.otlp_endpoint", url))]
    }
}
