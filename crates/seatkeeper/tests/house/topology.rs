//! What stands behind a server under test.

use seatkeeper_ledger::{Location, PostgresUrl};
use seatkeeper_server::{Algorithm, AuthSettings, Secret};
use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup};

/// The key of tokens, which all nodes know.
const TOKEN_SECRET: &str = "a secret that all nodes of a test know";

/// Masters of a cluster.
const MASTERS: usize = 3;

/// How many processes are one server, and what they keep their state in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One process that needs nothing else.
    Embedded,
    /// So many nodes over a Redis and a PostgreSQL database of their own.
    Nodes(usize),
    /// So many nodes over a Redis Cluster of three masters and a database.
    NodesOverCluster(usize),
    /// So many nodes over a database alone.
    NodesWithoutRedis(usize),
}

/// What nodes share.
pub(crate) struct Backing {
    registry: Registry,
    database: Database,
}

/// Kept for as long as the servers run.
enum Registry {
    Redis(Redis),
    Cluster(RedisCluster),
    Ledger,
}

impl Topology {
    /// Processes.
    pub(crate) fn nodes(self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::Nodes(nodes) | Self::NodesOverCluster(nodes) | Self::NodesWithoutRedis(nodes) => nodes,
        }
    }

    /// What they share; none: each keeps its state in its data directory.
    pub(super) fn backing(self) -> Option<Backing> {
        let registry = match self {
            Self::Embedded => return None,
            Self::Nodes(_) => Registry::Redis(Redis::start()),
            Self::NodesOverCluster(_) => {
                Registry::Cluster(RedisCluster::start(MASTERS, &RedisSetup::default()))
            }
            Self::NodesWithoutRedis(_) => Registry::Ledger,
        };
        Some(Backing { registry, database: postgres::database() })
    }
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
    /// The settings that nodes find it by, and by which they believe each other's tokens.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("REGISTRY_URL", self.registry.url(&self.database)),
            ("LEDGER_URL", self.database.url()),
            ("AUTH_ALGORITHM", "HS256".to_owned()),
            ("AUTH_SECRET", TOKEN_SECRET.to_owned()),
        ]
    }

    /// The same for who makes tokens.
    pub(super) fn believe(&self, auth: &mut AuthSettings) {
        (auth.algorithm, auth.secret) = (Algorithm::Hs256, Some(Secret::new(TOKEN_SECRET)));
    }

    /// Where the ledger is.
    pub(super) fn ledger(&self) -> Location {
        let url: PostgresUrl = self.database.url().parse().expect("the URL of a database");
        url.into()
    }
}
