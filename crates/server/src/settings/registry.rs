//! The section `[registry]`: the store of live sessions, and its fallback.

use std::path::PathBuf;

use seatkeeper_redis::{Deployment, Login, Password, ServerSettings, Tls};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, InvalidSetting, LedgerSettings, RegistryUrl, within};

const MEMORY: &str = "memory";

/// Maximum of replicas that an admission waits for.
const REPLICAS_MAX: u64 = 5;

/// `[registry]`: the live sessions.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RegistrySettings {
    /// The store of live sessions: `memory`, in this process; or a Redis shared by any number of nodes,
    /// `redis://user:password@host:port`, `redis+sentinel://user:password@host:port,host:port/name` or
    /// `redis+cluster://user:password@host:port,host:port`, with `rediss` in place of `redis` for TLS; or the
    /// `postgres://…` of `ledger.url`, for nodes without a Redis. Default `memory`.
    #[schema(value_type = String)]
    pub url: RegistryUrl,
    /// The file with the password of Redis, read again for each connection. Absent: the password in `url`.
    #[schema(value_type = Option<String>)]
    pub password_file: Option<PathBuf>,
    /// The ACL user of the Sentinels, if Sentinels have passwords of their own. Absent: the default user.
    pub sentinel_username: Option<String>,
    /// The file with the Sentinels' own password, read again for each connection. Absent: Sentinels get the
    /// user and password of Redis, unless they require no password.
    #[schema(value_type = Option<String>)]
    pub sentinel_password_file: Option<PathBuf>,
    /// The file with the certificates, in PEM, of the authorities that sign Redis's certificate. Absent: the
    /// authorities trusted by the system.
    #[schema(value_type = Option<String>)]
    pub tls_ca_file: Option<PathBuf>,
    /// The file with the client certificate for Redis, in PEM. Absent: no client certificate. Requires
    /// `tls_key_file`.
    #[schema(value_type = Option<String>)]
    pub tls_cert_file: Option<PathBuf>,
    /// The file with the key of the client certificate, in PEM.
    #[schema(value_type = Option<String>)]
    pub tls_key_file: Option<PathBuf>,
    /// Service while most nodes do not reach their Redis: `ledger` (default) serves licenses from the
    /// ledger's PostgreSQL, and devices by `devices.when_down`; `deny` admits no client of either kind and
    /// ends no session, so live sessions stay live. Without a PostgreSQL ledger the setting is `deny`.
    /// Capacities need no Redis.
    #[schema(value_type = String)]
    pub when_down: WhenDown,
    /// Interval at which the expiry of silent holders is recorded, in milliseconds: 0 (sweeper off) to
    /// 60,000. Default 500. A seat is free as soon as its TTL is over, with or without the sweeper.
    pub sweep_interval_milliseconds: u64,
    /// Maximum of events that wait for the ledger, of about 600 bytes each: 1,000 to 10,000,000. Beyond the
    /// maximum admissions are answered 503. Default 400,000.
    pub journal_events_max: u64,
    /// Replicas of Redis that must have an admission before the answer, at any durability: 0 to 5. If fewer
    /// replicas have the admission within a second, the answer is 503, and a retry of the claim finds the
    /// admitted session. Default 0.
    pub wait_replicas: u32,
    /// Maximum of sessions whose pool a node remembers, of about 150 bytes each: 1,000 to 100,000,000. A
    /// heartbeat of a forgotten session costs a query of the ledger. Default 2,000,000.
    pub sessions_remembered_max: u64,
}

/// The treatment of sessions with heartbeats while most nodes do not reach their shared Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenDown {
    /// The ledger's database serves licenses, more slowly. [`DevicesWhenDown`](super::DevicesWhenDown)
    /// decides on devices.
    Ledger,
    /// No client is admitted, and no session ends. Live sessions stay live.
    Deny,
}

impl Default for RegistrySettings {
    fn default() -> Self {
        Self {
            url: RegistryUrl::new(MEMORY),
            password_file: None,
            sentinel_username: None,
            sentinel_password_file: None,
            tls_ca_file: None,
            tls_cert_file: None,
            tls_key_file: None,
            when_down: WhenDown::Ledger,
            sweep_interval_milliseconds: 500,
            journal_events_max: 400_000,
            wait_replicas: 0,
            sessions_remembered_max: 2_000_000,
        }
    }
}

impl RegistrySettings {
    /// Returns the connection settings of the shared Redis; `None` without a Redis.
    pub(crate) fn shared(&self) -> Result<Option<ServerSettings>, InvalidSetting> {
        let url = self.url.reveal();
        if self.is_memory() || self.is_ledgers() {
            return Ok(None);
        }
        let invalid_setting = |key, want| InvalidSetting { key, got: "another text".to_owned(), want };
        let mut servers: ServerSettings = url.parse().map_err(|_| {
            invalid_setting(
                "registry.url",
                "want memory, redis://host:port, redis+sentinel://…, redis+cluster://… or ledger.url",
            )
        })?;
        if let Some(path) = &self.password_file {
            servers.login.password = Password::File(path.clone());
        }
        servers.sentinel_login = self.sentinel_login(&servers)?;
        let client = match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            _ => {
                return Err(invalid_setting(
                    "registry.tls_key_file",
                    "want tls_cert_file and tls_key_file, or neither",
                ));
            }
        };
        match &mut servers.tls {
            Some(tls) => *tls = Tls { ca: self.tls_ca_file.clone(), client },
            None if self.tls_ca_file.is_some() || client.is_some() => {
                return Err(invalid_setting("registry.url", "want rediss://… where there are certificates"));
            }
            None => {}
        }
        Ok(Some(servers))
    }

    /// Returns the login for Sentinels; `None` if Sentinels take the login of Redis.
    fn sentinel_login(&self, servers: &ServerSettings) -> Result<Option<Login>, InvalidSetting> {
        let Some(path) = &self.sentinel_password_file else {
            return match &self.sentinel_username {
                None => Ok(None),
                Some(user) => Err(InvalidSetting {
                    key: "registry.sentinel_username",
                    got: user.clone(),
                    want: "want sentinel_password_file with it",
                }),
            };
        };
        if !matches!(servers.deployment, Deployment::Sentinel { .. }) {
            return Err(InvalidSetting {
                key: "registry.sentinel_password_file",
                got: path.display().to_string(),
                want: "want redis+sentinel://… in registry.url where there is a password for Sentinels",
            });
        }
        Ok(Some(Login { username: self.sentinel_username.clone(), password: Password::File(path.clone()) }))
    }

    /// Returns `true` if the live sessions are in the memory of this process, so that there is no other node.
    pub(crate) fn is_memory(&self) -> bool {
        self.url.reveal() == MEMORY
    }

    /// Returns whether the ledger's PostgreSQL holds the live sessions as well.
    pub(crate) fn is_ledgers(&self) -> bool {
        let url = self.url.reveal();
        url.starts_with("postgres://") || url.starts_with("postgresql://")
    }

    pub(super) fn checks(&self, ledger: &LedgerSettings) -> Vec<Checked> {
        let shared = self.shared();
        // Without a Redis the maximum is 0. An invalid `registry.url` is reported by `shared` alone.
        let replicas_max = if matches!(shared, Ok(None)) { 0 } else { REPLICAS_MAX };
        vec![
            shared.map(drop),
            self.check_ledgers(ledger),
            within(
                "registry.sweep_interval_milliseconds",
                self.sweep_interval_milliseconds,
                0..=60_000,
                "want 0 (off) to 60,000 milliseconds",
            ),
            within(
                "registry.journal_events_max",
                self.journal_events_max,
                1_000..=10_000_000,
                "want 1,000 to 10,000,000 events",
            ),
            within(
                "registry.wait_replicas",
                u64::from(self.wait_replicas),
                0..=replicas_max,
                "want 0 to 5 replicas, and 0 without a Redis",
            ),
            within(
                "registry.sessions_remembered_max",
                self.sessions_remembered_max,
                1_000..=100_000_000,
                "want 1,000 to 100,000,000 sessions",
            ),
        ]
    }

    /// Checks that live sessions in a PostgreSQL are in the ledger's database.
    fn check_ledgers(&self, ledger: &LedgerSettings) -> Checked {
        if !self.is_ledgers() || ledger.url.as_ref().is_some_and(|url| url.reveal() == self.url.reveal()) {
            return Ok(());
        }
        Err(InvalidSetting {
            key: "registry.url",
            got: "another PostgreSQL".to_owned(),
            want: "live sessions can only be in the ledger's own database: want the text of ledger.url",
        })
    }
}
