//! The section `[log]`: level and format of the log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `[log]`: level and format of the log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`) or a list of `target=level`. Default `info`.
    pub level: String,
    /// `auto` (default): text on a terminal, JSON otherwise; or `text`, or `json`.
    #[schema(value_type = String)]
    pub format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text.
    Text,
    /// A JSON object a line.
    Json,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Auto }
    }
}
