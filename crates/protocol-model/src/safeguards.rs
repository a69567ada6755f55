//! The safeguards of the failover protocol.

/// The safeguards in force: every one, unless a test takes one away.
#[derive(Clone, Copy, Debug)]
pub struct Safeguards {
    /// The ledger takes a batch of the bucket's epoch alone.
    pub ledger_demands_epoch: bool,
    /// A script does nothing unless the bucket is served in the epoch that the node knows.
    pub script_demands_epoch: bool,
    /// A node uses a server only if the bucket was filled on it, as what it is now.
    pub node_demands_identity: bool,
    /// A rebuild lets the leases of the old epoch run out before it starts a TTL anew.
    pub rebuild_waits_for_leases: bool,
    /// Salvage replays the last epoch's events alone. Renewals since an older event are on no record.
    pub salvage_takes_last_epoch_alone: bool,
    /// A bucket is filled from the ledger before it is served.
    pub rebuild_fills: bool,
    /// The ledger takes one event for each number of a pool.
    pub ledger_keeps_chain: bool,
}

impl Safeguards {
    /// The protocol as it is.
    pub const ALL: Self = Self {
        ledger_demands_epoch: true,
        script_demands_epoch: true,
        node_demands_identity: true,
        rebuild_waits_for_leases: true,
        salvage_takes_last_epoch_alone: true,
        rebuild_fills: true,
        ledger_keeps_chain: true,
    };
}
