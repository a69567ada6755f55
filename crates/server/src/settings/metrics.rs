use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Secret, check_token, within};

/// The most licenses that have series of their own.
const LICENSE_SERIES_MAX: u64 = 10_000;

/// `[metrics]`: what Prometheus is told.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsSettings {
    /// The address for `/metrics` alone; port 0 takes a free one. Absent: it is served at `server.listen`.
    #[schema(value_type = Option<String>)]
    pub listen: Option<SocketAddr>,
    /// The bearer token that a scrape must show: at least one character, all of them visible ASCII. Absent: none is asked for.
    #[schema(value_type = Option<String>)]
    pub token: Option<Secret>,
    /// The file that holds that token, instead of `token`. It is read again within seconds when it changes; what cannot be used
    /// is logged, and the old one goes on.
    #[schema(value_type = Option<String>)]
    pub token_file: Option<PathBuf>,
    /// How many licenses have series of their own, `license_seats_used` and `license_seats_total`: 0 turns them off,
    /// at most 10,000. If there are more, those with the most seats in use have them. They are shown only where `listen` or a
    /// token protects the scrape. Default 1,000.
    pub license_series_max: u64,
    /// How old figures may be that are looked up in the ledger and the registry, in seconds: 1 to 300. Default 10.
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
