//! What every write to something that gives a limit has in common.

use seatkeeper_core::{Origin, RegistryTime};

use crate::Idempotency;

/// By whom, when and under which idempotency key something is written.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// What caused it.
    pub origin: &'a Origin,
    /// The registry's time.
    pub at: RegistryTime,
    /// The caller's idempotency key, if it sent one.
    pub idempotency: Option<&'a Idempotency>,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T> {
    /// What was written, as it is after it; of a replay, as it was answered then.
    pub value: T,
    /// What it did.
    pub effect: Effect,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It made a change.
    Changed,
    /// All was so already.
    Unchanged,
    /// The same request was answered before; nothing was done again.
    Replayed,
}
