//! What stands behind a server under test.

use seatkeeper_ledger::{Location, PostgresUrl};
use seatkeeper_server::{Algorithm, AuthSettings, Secret};
use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::redis::Redis;

/// The key of tokens, which all nodes know.
const TOKEN_SECRET: &str = "a secret that all nodes of a test know";

/// How many processes are one server, and what they keep their state in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One process that needs nothing else.
    Embedded,
    /// So many nodes over a Redis and a PostgreSQL database of their own.
    Nodes(usize),
}

/// What nodes share.
pub(crate) struct Backing {
    pub(crate) redis: Redis,
    pub(crate) database: Database,
}

impl Topology {
    /// Processes.
    pub(crate) fn nodes(self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::Nodes(nodes) => nodes,
        }
    }

    /// What they share; none: each keeps its state in its data directory.
    pub(super) fn backing(self) -> Option<Backing> {
        match self {
            Self::Embedded => None,
            Self::Nodes(_) => Some(Backing { redis: Redis::start(), database: postgres::database() }),
        }
    }
}

impl Backing {
    /// The settings that nodes find it by, and by which they believe each other's tokens.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("REGISTRY_URL", self.redis.url()),
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
