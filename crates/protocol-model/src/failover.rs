//! The extent of a walk through the failover protocol.

use crate::Safeguards;

/// The service of the pool after a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The PostgreSQL registry serves the pool, as in mode `ledger` for licenses.
    Postgres,
    /// No registry serves the pool, as in mode `ledger` for devices: a node renews sessions by the ledger alone.
    LedgerAlone,
}

/// The extent of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Failover {
    /// The limit of the pool.
    pub limit: u32,
    /// The number of clients asking for a seat.
    pub clients: usize,
    /// The number of failures of Redis, by promotion or restart.
    pub faults: u8,
    /// The last epoch of the walk. The first epoch is 1.
    pub epochs: u8,
    /// The service of the pool while Redis is out of reach. `None` if the mode never changes.
    pub fallback: Option<Fallback>,
    /// `true` if an admission is answered before its commit (`durability = journal`). Every rebuild then reaches the
    /// registry with the journal to replay.
    pub answers_by_journal: bool,
    /// The safeguards in force.
    pub safeguards: Safeguards,
}
