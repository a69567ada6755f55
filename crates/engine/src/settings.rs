//! Settings of an engine, as plain values.

use std::time::Duration;

use seatkeeper_ledger::PostgresUrl;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_redis::Servers;

/// Settings of an engine.
pub struct Settings {
    /// The place of live sessions.
    pub topology: Topology,
    /// The most events that may wait for the ledger before claims are refused, of about 600 bytes each.
    pub journal_events_max: u64,
    /// The longest wait of an answer for its record in the ledger.
    pub commit_timeout: Duration,
    /// Interval at which the latest heartbeats are written to the ledger.
    pub heartbeat_flush_interval: Duration,
    /// Interval at which expired sessions are put on record; `None` turns the sweeper off. A seat is free the moment its TTL
    /// is over all the same.
    pub sweep_interval: Option<Duration>,
}

impl Default for Settings {
    /// An embedded engine.
    fn default() -> Self {
        Self {
            topology: Topology::Embedded,
            journal_events_max: 400_000,
            commit_timeout: Duration::from_secs(5),
            heartbeat_flush_interval: Duration::from_secs(10),
            sweep_interval: Some(Duration::from_millis(500)),
        }
    }
}

/// The place of live sessions.
pub enum Topology {
    /// The memory of this process. No other process may use the ledger meanwhile.
    Embedded,
    /// A store that several nodes share.
    Shared(SharedSettings),
}

/// Settings of a node among others.
pub struct SharedSettings {
    /// The name of this node for people.
    pub node_name: String,
    /// The store of live sessions.
    pub store: SharedStore,
    /// The mode of buckets whose store most nodes do not reach. Without a PostgreSQL that can take the place of the store,
    /// the mode is [`BucketMode::Deny`].
    pub when_down: BucketMode,
}

/// The store of live sessions that nodes share.
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
    /// The ledger's PostgreSQL, which takes the place of Redis while that is out of reach; `None` if the ledger is in SQLite.
    pub standby: Option<PostgresUrl>,
    /// The number of replicas that must have an admission before it is answered.
    pub wait_replicas: u32,
    /// The most sessions whose pool a node remembers, of about 150 bytes each.
    pub sessions_remembered_max: usize,
}

impl Settings {
    /// Returns whether live sessions are in Redis.
    pub(crate) fn is_over_redis(&self) -> bool {
        matches!(self.topology, Topology::Shared(SharedSettings { store: SharedStore::Redis(_), .. }))
    }

    /// The most events that may wait in the journal, as a size in memory.
    pub(crate) fn journal_size(&self) -> usize {
        usize::try_from(self.journal_events_max).unwrap_or(usize::MAX)
    }
}
