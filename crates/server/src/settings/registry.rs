use std::path::PathBuf;

use seatkeeper_redis::{Deployment, Login, Password, ServerSettings, Tls};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, LedgerSettings, Misfit, RegistryUrl, within};

const MEMORY: &str = "memory";

/// The most replicas that an admission waits for.
const REPLICAS_MAX: u64 = 5;

/// `[registry]`: the live sessions.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RegistrySettings {
    /// Where live sessions are: `memory`, this process's own, or a Redis that any number of nodes share:
    /// `redis://user:password@host:port`, `redis+sentinel://user:password@host:port,host:port/name` or
    /// `redis+cluster://user:password@host:port,host:port`; with `rediss` for `redis` by TLS. Or the `postgres://…` of
    /// `ledger.url`, for nodes without a Redis: then what a node remembers of licenses and plans counts for its time,
    /// whatever another node changes. Default `memory`.
    #[schema(value_type = String)]
    pub url: RegistryUrl,
    /// The file that holds Redis's password, which is read again for each connection. Absent: the one in `url`.
    #[schema(value_type = Option<String>)]
    pub password_file: Option<PathBuf>,
    /// The user of the Sentinels' ACL, where Sentinels have passwords of their own. Absent: the default one.
    pub sentinel_username: Option<String>,
    /// The file that holds the Sentinels' own password, which is read again for each connection. Absent: they are told the user
    /// and the password of Redis, unless they have none.
    #[schema(value_type = Option<String>)]
    pub sentinel_password_file: Option<PathBuf>,
    /// The file of the certificates, in PEM, that vouch for Redis's. Absent: those that the system trusts.
    #[schema(value_type = Option<String>)]
    pub tls_ca_file: Option<PathBuf>,
    /// The file of the certificate, in PEM, that is shown to Redis. Absent: none. Its key goes with it.
    #[schema(value_type = Option<String>)]
    pub tls_cert_file: Option<PathBuf>,
    /// The file of that certificate's key, in PEM.
    #[schema(value_type = Option<String>)]
    pub tls_key_file: Option<PathBuf>,
    /// While most nodes do not reach their Redis: `ledger` (default) serves licenses from the ledger's PostgreSQL, and
    /// `devices.when_down` says what becomes of devices; `deny` denies both. To deny is to admit nobody and to end nobody: whoever is live stays so.
    /// Without a PostgreSQL it is `deny`. Capacities need no Redis.
    #[schema(value_type = String)]
    pub when_down: WhenDown,
    /// How often seats of silent holders are put on record as expired, in milliseconds: 0 turns the sweeper
    /// off, at most 60,000. Default 500. A seat is free the moment its TTL is over all the same.
    pub sweep_interval_milliseconds: u64,
    /// How many events may wait for the ledger before admissions are answered 503, of about 600 bytes each: 1,000 to
    /// 10,000,000. Default 400,000.
    pub journal_events_max: u64,
    /// How many replicas of Redis must have an admission before it is answered, whatever its durability: 0 to 5. Where fewer have it within
    /// a second the answer is 503, and the same claim asked again finds its session. Default 0.
    pub wait_replicas: u32,
    /// How many sessions a node remembers the pool of, of about 150 bytes each: 1,000 to 100,000,000. A heartbeat of a session that it
    /// does not remember costs a query of the ledger. Default 2,000,000.
    pub sessions_remembered_max: u64,
}

/// What becomes of sessions with heartbeats while most nodes do not reach the Redis that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenDown {
    /// Licenses are served from the ledger's database, more slowly; devices are as with [`WhenDown::Deny`].
    Ledger,
    /// Nobody is admitted and nobody ends; whoever is live stays so.
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
    /// How the Redis is reached that nodes share; none if there is none.
    pub(crate) fn shared(&self) -> Result<Option<ServerSettings>, Misfit> {
        let url = self.url.reveal();
        if self.is_memory() || self.is_ledgers() {
            return Ok(None);
        }
        let misfit = |key, want| Misfit { key, got: "another text".to_owned(), want };
        let mut servers: ServerSettings = url.parse().map_err(|_| {
            misfit(
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
                return Err(misfit(
                    "registry.tls_key_file",
                    "want tls_cert_file and tls_key_file, or neither",
                ));
            }
        };
        match &mut servers.tls {
            Some(tls) => *tls = Tls { ca: self.tls_ca_file.clone(), client },
            None if self.tls_ca_file.is_some() || client.is_some() => {
                return Err(misfit("registry.url", "want rediss://… where there are certificates"));
            }
            None => {}
        }
        Ok(Some(servers))
    }

    /// As whom Sentinels know this node, if otherwise than Redis does.
    fn sentinel_login(&self, servers: &ServerSettings) -> Result<Option<Login>, Misfit> {
        let Some(path) = &self.sentinel_password_file else {
            return match &self.sentinel_username {
                None => Ok(None),
                Some(user) => Err(Misfit {
                    key: "registry.sentinel_username",
                    got: user.clone(),
                    want: "want sentinel_password_file with it",
                }),
            };
        };
        if !matches!(servers.deployment, Deployment::Sentinel { .. }) {
            return Err(Misfit {
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

    /// Whether the ledger's database holds the live sessions as well.
    pub(crate) fn is_ledgers(&self) -> bool {
        let url = self.url.reveal();
        url.starts_with("postgres://") || url.starts_with("postgresql://")
    }

    pub(super) fn checks(&self, ledger: &LedgerSettings) -> Vec<Checked> {
        let shared = self.shared();
        // Without a Redis there are none; and where it is not known, nothing is said of them.
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

    /// If live sessions are in a PostgreSQL, it is the ledger's.
    fn check_ledgers(&self, ledger: &LedgerSettings) -> Checked {
        if !self.is_ledgers() || ledger.url.as_ref().is_some_and(|url| url.reveal() == self.url.reveal()) {
            return Ok(());
        }
        Err(Misfit {
            key: "registry.url",
            got: "another PostgreSQL".to_owned(),
            want: "live sessions can only be in the ledger's own database: want the text of ledger.url",
        })
    }
}
