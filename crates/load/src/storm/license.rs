//! A license that a storm rages on.

use std::time::Duration;

/// A license that nobody else uses, counted per machine.
#[derive(Clone)]
pub struct License {
    /// Its key.
    pub key: String,
    /// Its seats.
    pub seats: u32,
    /// Its TTL, in whole seconds: a few, for the storm waits for it at its end.
    pub ttl: Duration,
}

impl std::fmt::Debug for License {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key: _, seats, ttl } = self;
        f.debug_struct("License").field("seats", seats).field("ttl", ttl).finish_non_exhaustive()
    }
}
