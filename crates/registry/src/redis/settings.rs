//! Settings of the registry in Redis.

use std::time::Duration;

use seatkeeper_core::Region;

/// How much the registry in Redis keeps, and for how long.
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
