//! The settings that an operator may set: a struct for each section.
//!
//! Unknown keys are refused by name. The doc comment of a field is the field's line in
//! `docs/configuration.md`: meaning, unit, range and default. A new section goes into [`Settings`] and into
//! the list of `reference`.

mod auth;
mod capacities;
mod comma_list;
mod devices;
mod ledger;
mod licenses;
mod limits;
mod log;
mod metrics;
mod networks;
mod origins;
mod reference;
mod region;
mod registry;
mod registry_url;
mod secret;
mod server;
mod tracing;
mod usage;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::outbound::{self, BadAddress};

pub(crate) use auth::SECRET_BYTES_MIN;
pub use auth::{Algorithm, AuthSettings};
pub use capacities::CapacitiesSettings;
pub use comma_list::CommaList;
pub use devices::{DevicesSettings, DevicesWhenDown};
pub use ledger::LedgerSettings;
pub use licenses::LicensesSettings;
pub(crate) use licenses::{CACHE_SECONDS_MAX, TTL_SECONDS_MAX, TTL_SECONDS_MIN};
pub use limits::{LimitsSettings, WhenRedisDown};
pub use log::{LogFormat, LogSettings};
pub use metrics::MetricsSettings;
pub use networks::{Network, Networks, NoNetwork};
pub use origins::{InvalidOrigin, Origin, Origins};
pub use reference::SectionReference;
pub use region::{HeartbeatForwarding, PeerSettings, RegionSettings, WhenHomeDown};
pub use registry::{RegistrySettings, WhenDown};
pub use registry_url::RegistryUrl;
pub use seatkeeper_engine::Durability;
pub use secret::Secret;
pub(crate) use secret::is_token;
pub use server::{ProxyHeader, ServerSettings};
pub use tracing::TracingSettings;
pub use usage::{SinkFormat, UsageSettings};

/// All settings. Every setting has a default, so the server starts without any configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The listeners of the server, and limits of connections and requests.
    pub server: ServerSettings,
    /// The keys and claims of accepted tokens.
    pub auth: AuthSettings,
    /// The system of record.
    pub ledger: LedgerSettings,
    /// The live sessions.
    pub registry: RegistrySettings,
    /// This region among several.
    pub region: RegionSettings,
    /// Defaults for licenses.
    pub licenses: LicensesSettings,
    /// Subscribers and their plans.
    pub devices: DevicesSettings,
    /// Capacities.
    pub capacities: CapacitiesSettings,
    /// Rate limits of callers.
    pub limits: LimitsSettings,
    /// Metering of capacities, and the sink of usage records.
    pub usage: UsageSettings,
    /// Level and format of the log.
    pub log: LogSettings,
    /// Metrics for Prometheus.
    pub metrics: MetricsSettings,
    /// Export of traces.
    pub tracing: TracingSettings,
}

/// A setting with an invalid value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {got}: {want}")]
pub struct InvalidSetting {
    /// The key, with its section.
    pub key: &'static str,
    /// The value.
    pub got: String,
    /// The valid values.
    pub want: &'static str,
}

/// The outcome of a check of a setting, or of several settings together.
type Checked = Result<(), InvalidSetting>;

impl Settings {
    /// Checks constraints beyond the types. Returns the first invalid setting as an error.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        self.misfits().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns whether the node is one of several, and checks tokens by a key that it makes in its data directory. No other
    /// node has the key.
    pub fn is_token_key_unshared(&self) -> bool {
        let auth = &self.auth;
        let is_own = auth.algorithm == Algorithm::EdDsa && auth.key_file.is_none() && auth.jwks_url.is_none();
        is_own && !self.registry.is_memory()
    }

    /// Returns all invalid settings.
    pub fn misfits(&self) -> Vec<InvalidSetting> {
        let sections = [
            self.server.checks(),
            self.auth.checks(),
            self.ledger.checks(),
            self.registry.checks(&self.ledger),
            self.region.checks(),
            self.licenses.checks(),
            self.devices.checks(&self.registry),
            self.capacities.checks(),
            self.limits.checks(),
            self.usage.checks(),
            self.metrics.checks(),
            self.tracing.checks(),
        ];
        sections.into_iter().flatten().filter_map(Result::err).collect()
    }
}

/// Checks that a number lies within a range.
fn within(
    key: &'static str,
    got: u64,
    range: std::ops::RangeInclusive<u64>,
    want: &'static str,
) -> Result<(), InvalidSetting> {
    if range.contains(&got) { Ok(()) } else { Err(InvalidSetting { key, got: got.to_string(), want }) }
}

/// Checks that a header can carry the token, and that the token is not given twice: as a value and as a file.
fn check_token(
    [key, file_key]: [&'static str; 2],
    token: Option<&Secret>,
    file: Option<&PathBuf>,
) -> Result<(), InvalidSetting> {
    let Some(token) = token else { return Ok(()) };
    if file.is_some() {
        return Err(InvalidSetting {
            key: file_key,
            got: "a file beside a token".into(),
            want: "want the token or its file, and not both",
        });
    }
    let token = token.reveal();
    if is_token(token) {
        return Ok(());
    }
    let want = "want visible ASCII characters: no space, no line break, and not nothing";
    Err(InvalidSetting { key, got: format!("{} bytes", token.len()), want })
}

/// Checks that `text` is an address for outbound requests.
fn web_address(key: &'static str, text: &str) -> Result<(), InvalidSetting> {
    let (got, want) = match outbound::check_address(text) {
        Ok(()) => return Ok(()),
        Err(BadAddress::NotHttp) => (text, "want an http or https URL"),
        Err(BadAddress::Secret) => ("a URL with a user or password", "want it without: addresses are shown"),
    };
    Err(InvalidSetting { key, got: got.into(), want })
}
