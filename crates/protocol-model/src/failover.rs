//! The extent of a walk through the failover protocol.

use crate::Safeguards;

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
    /// `true` if the mode may change.
    pub falls_back: bool,
    /// `true` if an admission is answered before its commit (`durability = journal`). Every rebuild then reaches the
    /// registry with the journal to replay.
    pub answers_by_journal: bool,
    /// The safeguards in force.
    pub safeguards: Safeguards,
}
