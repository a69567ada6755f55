//! Settings of an engine, as plain values. Parsing and checks belong to the program.

use std::time::Duration;

use seatkeeper_core::Region;
use seatkeeper_ledger::PostgresUrl;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_redis::Servers;

/// Settings of an engine.
pub struct Settings {
    /// The region in the ids of new sessions; 0 for a deployment without regions.
    pub region: Region,
    /// The store of live sessions.
    pub topology: Topology,
    /// The most events, of about 600 bytes each, that may wait for the ledger before claims are refused.
    pub journal_events_max: u64,
    /// The longest wait of an answer for its commit to the ledger.
    pub commit_timeout: Duration,
    /// The interval at which the latest heartbeats are written to the ledger.
    pub heartbeat_flush_interval: Duration,
    /// The interval at which ends of expired sessions are recorded; `None` turns the sweeper off. A seat is
    /// free the moment its TTL is over, even without a sweeper.
    pub sweep_interval: Option<Duration>,
    /// Lets the node admit subscribers by its own memory while the home region of a subscriber is unreachable.
    pub admits_without_home: bool,
}

impl Default for Settings {
    /// Returns the settings of an embedded engine.
    fn default() -> Self {
        Self {
            region: Region::default(),
            topology: Topology::Embedded,
            journal_events_max: 400_000,
            commit_timeout: Duration::from_secs(5),
            heartbeat_flush_interval: Duration::from_secs(10),
            sweep_interval: Some(Duration::from_millis(500)),
            admits_without_home: false,
        }
    }
}

/// The store of live sessions.
pub enum Topology {
    /// The memory of this process. Meanwhile no other process may use the ledger.
    Embedded,
    /// A store shared by several nodes.
    Shared(SharedSettings),
}

/// Settings of a node in a cluster.
pub struct SharedSettings {
    /// The name of this node for people, who must be able to find its process.
    pub node_name: String,
    /// The store of live sessions.
    pub store: SharedStore,
    /// The mode of buckets whose store most nodes do not reach. Without a PostgreSQL to take over, the mode
    /// is [`BucketMode::Deny`].
    pub when_down: BucketMode,
}

/// The store of live sessions shared by the nodes.
pub enum SharedStore {
    /// The ledger's PostgreSQL.
    Postgres(PostgresUrl),
    /// Redis.
    Redis(RedisSettings),
}

/// Settings of sessions in Redis.
pub struct RedisSettings {
    /// The servers.
    pub servers: Servers,
    /// The ledger's PostgreSQL, which serves while Redis is unreachable; `None` if the ledger is in SQLite.
    pub standby: Option<PostgresUrl>,
    /// The number of replicas that must have an admission before the answer.
    pub wait_replicas: u32,
    /// The most sessions, of about 150 bytes each, whose pool a node remembers.
    pub sessions_remembered_max: usize,
}

impl Settings {
    /// Returns `journal_events_max` as a size in memory.
    pub(crate) fn journal_size(&self) -> usize {
        usize::try_from(self.journal_events_max).unwrap_or(usize::MAX)
    }
}
