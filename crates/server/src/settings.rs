//! What an operator may set. One struct a section; an unknown key is refused by name.

mod auth;
mod capacities;
mod devices;
mod ledger;
mod licenses;
mod limits;
mod log;
mod metrics;
mod networks;
mod origins;
mod reference;
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
pub use registry::{RegistrySettings, WhenDown};
pub use registry_url::RegistryUrl;
pub use seatkeeper_engine::Durability;
pub use secret::Secret;
pub(crate) use secret::is_token;
pub use server::{ProxyHeader, ServerSettings};
pub use tracing::TracingSettings;
pub use usage::{SinkFormat, UsageSettings};

/// All settings. Every one has a default: the server starts with none given.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How the server is reached.
    pub server: ServerSettings,
    /// Whose tokens are believed.
    pub auth: AuthSettings,
    /// The system of record.
    pub ledger: LedgerSettings,
    /// The live sessions.
    pub registry: RegistrySettings,
    /// Licenses that say nothing else.
    pub licenses: LicensesSettings,
    /// Subscribers and their plans.
    pub devices: DevicesSettings,
    /// Capacities.
    pub capacities: CapacitiesSettings,
    /// How often one caller may ask.
    pub limits: LimitsSettings,
    /// Who is told for how long capacities were held.
    pub usage: UsageSettings,
    /// What is logged.
    pub log: LogSettings,
    /// What Prometheus is told.
    pub metrics: MetricsSettings,
    /// Who is told how requests went.
    pub tracing: TracingSettings,
}

/// A setting that cannot be: which, what it is, and what it may be.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {got}: {want}")]
pub struct Misfit {
    /// The key, with its section.
    pub key: &'static str,
    /// The value.
    pub got: String,
    /// What it may be.
    pub want: &'static str,
}

/// What came of one look at a setting, or at several that go together.
type Checked = Result<(), Misfit>;

impl Settings {
    /// Checks what the types cannot.
    pub fn check(&self) -> Result<(), Misfit> {
        self.misfits().into_iter().next().map_or(Ok(()), Err)
    }

    /// All that does not fit.
    pub fn misfits(&self) -> Vec<Misfit> {
        let sections = [
            self.server.checks(),
            self.auth.checks(),
            self.ledger.checks(),
            self.registry.checks(&self.ledger),
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

/// Demands that a number lies within bounds.
fn within(
    key: &'static str,
    got: u64,
    range: std::ops::RangeInclusive<u64>,
    want: &'static str,
) -> Result<(), Misfit> {
    if range.contains(&got) { Ok(()) } else { Err(Misfit { key, got: got.to_string(), want }) }
}

/// Demands a token that a header can carry, and that stands in one place.
fn check_token(
    [key, file_key]: [&'static str; 2],
    token: Option<&Secret>,
    file: Option<&PathBuf>,
) -> Result<(), Misfit> {
    let Some(token) = token else { return Ok(()) };
    if file.is_some() {
        return Err(Misfit {
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
    Err(Misfit { key, got: format!("{} bytes", token.len()), want })
}

/// Demands an address that may be asked.
fn web_address(key: &'static str, text: &str) -> Result<(), Misfit> {
    let (got, want) = match outbound::check_address(text) {
        Ok(()) => return Ok(()),
        Err(BadAddress::NotHttp) => (text, "want an http or https URL"),
        Err(BadAddress::Secret) => ("a URL with a user or password", "want it without: addresses are shown"),
    };
    Err(Misfit { key, got: got.into(), want })
}
