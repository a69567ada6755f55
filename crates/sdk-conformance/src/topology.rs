//! The topologies of the server of a scenario.

use std::io::Write as _;

use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::redis::Redis;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

/// The key of tokens, shared by the nodes.
const TOKEN_SECRET: &str = "a secret that all nodes of a scenario know";

/// The key of license tokens, shared by the nodes.
const LICENSE_TOKEN_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIACh6L6qLfl9eI6wE5kfppzgawOYijS1LUScye9lAK9o
-----END PRIVATE KEY-----
";

/// The number of nodes, and the stores behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One process, with sessions in memory and records in a data directory.
    Embedded,
    /// Three nodes over one Redis and one PostgreSQL database.
    ThreeNodes,
}

/// The stores that the nodes share.
#[derive(Debug)]
pub(crate) struct Stores {
    redis: Redis,
    database: Database,
    license_token_key: NamedTempFile,
}

impl Topology {
    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::ThreeNodes => 3,
        }
    }

    /// Starts the shared stores; `None` for the embedded server.
    pub(crate) async fn stores(self) -> Option<Stores> {
        match self {
            Self::Embedded => None,
            Self::ThreeNodes => {
                Some(spawn_blocking(Stores::start).await.expect("Redis and PostgreSQL start"))
            }
        }
    }
}

impl Stores {
    fn start() -> Self {
        let mut license_token_key = NamedTempFile::new().expect("a file");
        license_token_key.write_all(LICENSE_TOKEN_KEY.as_bytes()).expect("a writable file");
        Self { redis: Redis::start(), database: postgres::database(), license_token_key }
    }

    /// Returns the settings of each node.
    pub(crate) fn settings(&self) -> [(&'static str, String); 5] {
        let license_token_key = self.license_token_key.path().to_string_lossy().into_owned();
        [
            ("SEATKEEPER_REGISTRY_URL", self.redis.url()),
            ("SEATKEEPER_LEDGER_URL", self.database.url()),
            ("SEATKEEPER_AUTH_ALGORITHM", "HS256".to_owned()),
            ("SEATKEEPER_AUTH_SECRET", TOKEN_SECRET.to_owned()),
            ("SEATKEEPER_AUTH_LICENSE_TOKEN_KEY_FILE", license_token_key),
        ]
    }
}
