//! How Redis is reached, and how much of this node's memory goes into it.

use std::path::PathBuf;
use std::time::Duration;

use seatkeeper_core::Region;

/// How Redis is reached.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Which servers, and how they hang together.
    pub deployment: Deployment,
    /// As whom the servers know this node.
    pub login: Login,
    /// As whom Sentinels know it; none: as the servers do, or where one has no passwords, as anybody.
    pub sentinel_login: Option<Login>,
    /// What secures the connections; none: they are in the clear.
    pub tls: Option<Tls>,
    /// How long a call may take. Past it its outcome is unknown.
    pub response_timeout: Duration,
}

/// How much is kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The region that new sessions' ids carry.
    pub region: Region,
    /// How many events the journal takes, over all buckets, until no session is admitted.
    pub journal_events_max: usize,
    /// How old this node's knowledge may be of what other nodes wrote into the journal.
    pub journal_poll: Duration,
    /// For how long what other nodes wrote into the journal is left to them to bring to the ledger. Then they may be gone.
    pub journal_linger: Duration,
    /// How many replicas must have a claim that is granted before it is answered.
    pub wait_replicas: u32,
    /// How long a bucket is served after the latest node that serves clients has renewed its lease; past it, no session of the
    /// bucket can end before the bucket is rebuilt. Shorter than two thirds of the shortest TTL, so that clients have time to
    /// heartbeat again; none: a bucket needs no lease, for registries that no failover looks after.
    pub lease: Option<Duration>,
    /// How many sessions this node remembers the place of. A heartbeat of any other session queries the record.
    pub sessions_remembered_max: usize,
}

/// Which servers, and how they hang together. Each is a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// One server.
    Standalone(Address),
    /// A primary and its replicas, which these Sentinels watch under this name.
    Sentinel {
        /// The Sentinels.
        sentinels: Vec<Address>,
        /// The name.
        primary: String,
    },
    /// A cluster. Of its nodes, some.
    Cluster(Vec<Address>),
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The host's name or number.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Who says hello to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The user of the server's ACL; none: the default one.
    pub username: Option<String>,
    /// Where the password is. It is read again for each connection, so that it can be changed while this runs.
    pub password: Password,
}

/// Where the password is.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Password {
    /// Nowhere: none is asked for.
    #[default]
    None,
    /// Here.
    Text(String),
    /// In a file, but for the end of its line.
    File(PathBuf),
}

/// What secures the connections. All of it is in PEM files, which are read again for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Who vouches for the servers; none: those whom the system trusts.
    pub ca: Option<PathBuf>,
    /// The certificate that this node shows, and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl ServerSettings {
    /// In the clear and without a password.
    pub const fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            login: Login { username: None, password: Password::None },
            sentinel_login: None,
            tls: None,
            response_timeout: Duration::from_secs(5),
        }
    }

    /// The same as somebody else.
    pub(super) fn known_as(&self, login: Login) -> Self {
        Self { login, ..self.clone() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            region: Region::default(),
            journal_events_max: 100_000,
            journal_poll: Duration::from_millis(200),
            journal_linger: Duration::from_secs(1),
            wait_replicas: 0,
            lease: None,
            sessions_remembered_max: 2_000_000,
        }
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
