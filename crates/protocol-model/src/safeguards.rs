//! The safeguards of the failover protocol.

/// The safeguards in force: every safeguard, unless a test switches some off.
#[derive(Clone, Copy, Debug)]
pub struct Safeguards {
    /// The ledger accepts batches of the bucket's current epoch only.
    pub ledger_demands_epoch: bool,
    /// A script does nothing unless the bucket is served in the epoch known to the node.
    pub script_demands_epoch: bool,
    /// A node uses a server only if the bucket was filled under the server's present identity.
    pub node_demands_identity: bool,
    /// A rebuild lets the leases of the old epoch run out before restarting TTLs.
    pub rebuild_waits_for_leases: bool,
    /// A replay takes events of the epoch that served last only. Renewals made after an older event are not on record.
    pub replay_takes_last_epoch_only: bool,
    /// The ledger keeps the epoch that served last until its journal is replayed. Otherwise a replay takes the events
    /// of the epoch before, which never served if its rebuild broke off.
    pub ledger_keeps_unreplayed_epoch: bool,
    /// A rebuild notes its replay before a registry serves the bucket.
    pub replay_is_noted_before_serving: bool,
    /// A replay stops at the first end without a record if nodes may have renewed the session by the ledger alone.
    pub replay_stops_at_false_end: bool,
    /// The ledger keeps the mode of a fallback that broke off until the journal is replayed. Otherwise the next rebuild
    /// does not know of renewals by the ledger alone.
    pub ledger_keeps_lower_mode: bool,
    /// A bucket is filled from the ledger before serving.
    pub rebuild_fills: bool,
    /// The ledger accepts a single event for each number of a pool.
    pub ledger_keeps_chain: bool,
}

impl Safeguards {
    /// Every safeguard, as in the real protocol.
    pub const ALL: Self = Self {
        ledger_demands_epoch: true,
        script_demands_epoch: true,
        node_demands_identity: true,
        rebuild_waits_for_leases: true,
        replay_takes_last_epoch_only: true,
        ledger_keeps_unreplayed_epoch: true,
        replay_is_noted_before_serving: true,
        replay_stops_at_false_end: true,
        ledger_keeps_lower_mode: true,
        rebuild_fills: true,
        ledger_keeps_chain: true,
    };
}
