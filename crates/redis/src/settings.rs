//! Settings of the connections to Redis.

use std::path::PathBuf;
use std::time::Duration;

/// How Redis is reached.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The servers and their topology.
    pub deployment: Deployment,
    /// The login on the servers.
    pub login: Login,
    /// The login on the Sentinels; `None`: the servers' login, or no login where a Sentinel has no passwords.
    pub sentinel_login: Option<Login>,
    /// TLS of the connections; `None`: plain text.
    pub tls: Option<Tls>,
    /// Time limit for a reply. Past the limit the outcome of the call is unknown.
    pub response_timeout: Duration,
}

/// The servers and their topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// One server.
    Standalone(Address),
    /// A primary and its replicas, watched by Sentinels.
    Sentinel {
        /// Addresses of the Sentinels.
        sentinels: Vec<Address>,
        /// The name of the primary in the Sentinels' configuration.
        primary: String,
    },
    /// A cluster, by some of its nodes.
    Cluster(Vec<Address>),
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The host's name or IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The user and the password of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The user of the server's ACL; `None`: the default user.
    pub username: Option<String>,
    /// The password, read again for each connection so that it can be changed while the node runs.
    pub password: Password,
}

/// A password, or the place of one.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Password {
    /// No password.
    #[default]
    None,
    /// This password.
    Text(String),
    /// The content of a file, without the end of its line.
    File(PathBuf),
}

/// TLS of the connections, by PEM files that are read again for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The file of the certificate authorities that the servers' certificates need; `None`: the system's authorities.
    pub ca: Option<PathBuf>,
    /// The files of the client certificate and of its key.
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

    /// Returns the same settings with another login.
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
