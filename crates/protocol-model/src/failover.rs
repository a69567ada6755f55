//! The extent of a walk through the failover protocol.

use crate::Safeguards;

/// The extent of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Failover {
    /// The pool's limit.
    pub limit: u32,
    /// The number of clients that ask for a seat.
    pub clients: usize,
    /// The number of times that Redis fails: promoted, or restarted.
    pub faults: u8,
    /// The last epoch of the walk; the first is 1.
    pub epochs: u8,
    /// The mode may change.
    pub falls_back: bool,
    /// The safeguards in force.
    pub safeguards: Safeguards,
}
