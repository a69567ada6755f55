//! The topologies of the server of a scenario.

use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::redis::Redis;
use tokio::task::spawn_blocking;

/// The key of tokens, shared by the nodes.
const TOKEN_SECRET: &str = "a secret that all nodes of a scenario know";

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
                let start = || Stores { redis: Redis::start(), database: postgres::database() };
                Some(spawn_blocking(start).await.expect("Redis and PostgreSQL start"))
            }
        }
    }
}

impl Stores {
    /// Returns the settings of each node.
    pub(crate) fn settings(&self) -> [(&'static str, String); 4] {
        [
            ("SEATKEEPER_REGISTRY_URL", self.redis.url()),
            ("SEATKEEPER_LEDGER_URL", self.database.url()),
            ("SEATKEEPER_AUTH_ALGORITHM", "HS256".to_owned()),
            ("SEATKEEPER_AUTH_SECRET", TOKEN_SECRET.to_owned()),
        ]
    }
}
