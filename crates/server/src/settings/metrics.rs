//! The section `[metrics]`: the listener, the token and the series for Prometheus.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Secret, check_token, within};

/// Maximum of licenses with series of their own.
const LICENSE_SERIES_MAX: u64 = 10_000;

/// `[metrics]`: metrics for Prometheus.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsSettings {
    /// The address of a listener for `/metrics` alone; port 0 takes a free port. Absent: `server.listen`
    /// serves `/metrics`.
    #[schema(value_type = Option<String>)]
    pub listen: Option<SocketAddr>,
    /// The bearer token that a scrape must present: at least one character, visible ASCII only. Absent: no
    /// token is required.
    #[schema(value_type = Option<String>)]
    pub token: Option<Secret>,
    /// The file with the token. An alternative to `token`. A changed file is read again within seconds; an
    /// invalid file is logged, and the old token stays in use.
    #[schema(value_type = Option<String>)]
    pub token_file: Option<PathBuf>,
    /// Maximum of licenses with series of their own, `license_seats_used` and `license_seats_total`: 0 (off)
    /// to 10,000. Beyond the maximum the licenses with most seats in use are shown. The series require
    /// `listen` or a token. Default 1,000.
    pub license_series_max: u64,
    /// Maximum age of figures from the ledger and the registry, in seconds: 1 to 300. Default 10.
    pub refresh_seconds: u64,
}

impl Default for MetricsSettings {
    fn default() -> Self {
        Self { listen: None, token: None, token_file: None, license_series_max: 1_000, refresh_seconds: 10 }
    }
}

impl MetricsSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        vec![
            check_token(
                ["metrics.token", "metrics.token_file"],
                self.token.as_ref(),
                self.token_file.as_ref(),
            ),
            within(
                "metrics.license_series_max",
                self.license_series_max,
                0..=LICENSE_SERIES_MAX,
                "want 0 (off) to 10,000 licenses",
            ),
            within("metrics.refresh_seconds", self.refresh_seconds, 1..=300, "want 1 to 300 seconds"),
        ]
    }
}
