//! The extent of a walk through the failover protocol.

use crate::Safeguards;

/// What is walked through.
#[derive(Clone, Copy, Debug)]
pub struct Failover {
    /// The pool's limit.
    pub limit: u32,
    /// How many ask for a seat.
    pub clients: usize,
    /// How many times Redis fails: promoted, or restarted.
    pub faults: u8,
    /// The last epoch that is looked at; the first is 1.
    pub epochs: u8,
    /// Whether the mode may change.
    pub falls_back: bool,
    /// What is checked.
    pub safeguards: Safeguards,
}
