//! The topologies of a server under test, and the stores behind its nodes. Another topology is another
//! variant of `Topology`.

use std::path::Path;

use aws_lc_rs::signature::Ed25519KeyPair;
use seatkeeper_ledger::{Location, PostgresUrl};
use seatkeeper_server::{Algorithm, AuthSettings, Secret};
use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup};
use tempfile::NamedTempFile;

/// The key of tokens, shared by every node.
const TOKEN_SECRET: &str = "a secret that all nodes of a test know";

/// The setting that names the key of license tokens.
pub(crate) const LICENSE_TOKEN_KEY_FILE: &str = "AUTH_LICENSE_TOKEN_KEY_FILE";

/// Number of masters in a Redis Cluster.
const MASTERS: usize = 3;

/// The number of nodes and the kind of stores of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// A single process without external stores.
    Embedded,
    /// Nodes over one Redis and one PostgreSQL database.
    Nodes(usize),
    /// Nodes over a Redis Cluster of three masters and one PostgreSQL database.
    NodesOverCluster(usize),
    /// Nodes over one PostgreSQL database, without a Redis.
    NodesWithoutRedis(usize),
}

/// The stores that the nodes of a server share.
pub(crate) struct Backing {
    registry: Registry,
    database: Database,
    /// The key of license tokens, as all nodes find it.
    license_key: NamedTempFile,
}

/// The registry's store, which runs as long as the nodes.
enum Registry {
    Redis(Redis),
    Cluster(RedisCluster),
    Ledger,
}

impl Topology {
    /// Returns the number of nodes.
    pub(crate) fn nodes(self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::Nodes(nodes) | Self::NodesOverCluster(nodes) | Self::NodesWithoutRedis(nodes) => nodes,
        }
    }

    /// Starts the shared stores. Returns `None` for the embedded server, which keeps its state in its data
    /// directory.
    pub(super) fn backing(self) -> Option<Backing> {
        let registry = match self {
            Self::Embedded => return None,
            Self::Nodes(_) => Registry::Redis(Redis::start()),
            Self::NodesOverCluster(_) => {
                Registry::Cluster(RedisCluster::start(MASTERS, &RedisSetup::default()))
            }
            Self::NodesWithoutRedis(_) => Registry::Ledger,
        };
        let license_key = NamedTempFile::new().expect("a file");
        write_ed25519_key(license_key.path());
        Some(Backing { registry, database: postgres::database(), license_key })
    }
}

/// Writes a new private key to a file.
pub(crate) fn write_ed25519_key(path: &Path) {
    let pair = Ed25519KeyPair::generate().expect("a key");
    let der = pair.to_pkcs8v1().expect("a key");
    let text = pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref()));
    std::fs::write(path, text).expect("a file");
}

impl Registry {
    fn url(&self, ledger: &Database) -> String {
        match self {
            Self::Ledger => ledger.url(),
            Self::Redis(redis) => redis.url(),
            Self::Cluster(cluster) => {
                let addresses = cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port()));
                format!("redis+cluster://{}", addresses.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl Backing {
    /// Returns the settings for the nodes: the URLs of the stores, and the shared key of tokens.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("REGISTRY_URL", self.registry.url(&self.database)),
            ("LEDGER_URL", self.database.url()),
            ("AUTH_ALGORITHM", "HS256".to_owned()),
            ("AUTH_SECRET", TOKEN_SECRET.to_owned()),
            (LICENSE_TOKEN_KEY_FILE, self.license_key.path().to_str().expect("a path in Unicode").to_owned()),
        ]
    }

    /// Sets the shared key in the settings that tests sign tokens with.
    pub(super) fn believe(&self, auth: &mut AuthSettings) {
        (auth.algorithm, auth.secret) = (Algorithm::Hs256, Some(Secret::new(TOKEN_SECRET)));
    }

    /// Returns the location of the ledger.
    pub(super) fn ledger(&self) -> Location {
        let url: PostgresUrl = self.database.url().parse().expect("the URL of a database");
        url.into()
    }
}
