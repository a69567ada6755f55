//! Settings of the connections to Redis.

use std::path::PathBuf;
use std::time::Duration;

/// The settings of the connections to Redis.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The servers and their topology.
    pub deployment: Deployment,
    /// The login on the servers.
    pub login: Login,
    /// The login on the Sentinels. `None` tries the servers' login, then no login for Sentinels without
    /// passwords.
    pub sentinel_login: Option<Login>,
    /// TLS of the connections. `None` means plain text.
    pub tls: Option<Tls>,
    /// Time limit for a reply. Beyond the limit the outcome of the call is unknown.
    pub response_timeout: Duration,
}

/// The servers and their topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// A standalone server.
    Standalone(Address),
    /// A primary and its replicas, monitored by Sentinels.
    Sentinel {
        /// Addresses of the Sentinels.
        sentinels: Vec<Address>,
        /// The name of the primary in the Sentinels' configuration.
        primary: String,
    },
    /// A cluster, with the addresses of some nodes.
    Cluster(Vec<Address>),
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The host name or IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The user and the password of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The user of the server's ACL. `None` means the default user.
    pub username: Option<String>,
    /// The password, read again for each connection, so that a rotation needs no restart of the node.
    pub password: Password,
}

/// A password, or the file with a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Password {
    /// No password.
    #[default]
    None,
    /// The password as text.
    Text(String),
    /// The content of a file, without the line ending.
    File(PathBuf),
}

/// TLS settings: PEM files, read again for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The file of the certificate authorities for the servers' certificates. `None` means the system's
    /// authorities.
    pub ca: Option<PathBuf>,
    /// The files of the client certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl ServerSettings {
    /// Creates settings without TLS and without a password.
    pub const fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            login: Login { username: None, password: Password::None },
            sentinel_login: None,
            tls: None,
            response_timeout: Duration::from_secs(5),
        }
    }

    /// Returns the settings with a different login.
    pub(crate) fn with_login(&self, login: Login) -> Self {
        Self { login, ..self.clone() }
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
