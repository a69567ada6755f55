//! Settings of the registry in Redis.

use std::time::Duration;

use seatkeeper_core::Region;

/// Settings of the registry in Redis.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Region in the ids of new sessions.
    pub region: Region,
    /// Maximum number of unacknowledged events in the journal, summed over all buckets. Beyond the maximum no
    /// session is admitted.
    pub journal_events_max: usize,
    /// Polling interval of the journals: the maximum age of this node's knowledge of events of other nodes.
    pub journal_poll: Duration,
    /// Time after which this node brings another node's events to the ledger, because the other node may be
    /// gone.
    pub journal_linger: Duration,
    /// Number of replicas that must have a granted claim before the answer.
    pub wait_replicas: u32,
    /// Lease of a bucket, renewed by nodes that serve clients. Once the lease is over, no session of the
    /// bucket can end before a rebuild. Must be shorter than two thirds of the shortest TTL, so that clients
    /// have time for another heartbeat. `None`: buckets need no lease, for registries without failover.
    pub lease: Option<Duration>,
    /// Maximum number of cached session locations. A heartbeat of an uncached session queries the ledger.
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
