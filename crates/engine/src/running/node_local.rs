//! The node-local backend: the memory of a node that decides alone.

use std::sync::Arc;

use seatkeeper_core::{Region, RegistryTime};
use seatkeeper_registry::MonotonicClock;
use seatkeeper_registry::memory::MemoryRegistry;

use crate::backend::Backend;
use crate::commits::Commits;

/// The most events in the journal of a node-local registry.
const EVENTS_MAX: usize = 10_000;

/// The epoch of a node-local journal, constant for the life of the process.
const EPOCH: u64 = 1;

/// Returns an empty node-local backend. Its clock begins at `now`.
pub(super) fn node_local(region: Region, now: RegistryTime) -> Backend {
    let clock = MonotonicClock::starting_at(now);
    let registry = MemoryRegistry::new(EPOCH, region, EVENTS_MAX, clock);
    Backend::node_local(Arc::new(registry), Commits::new(EVENTS_MAX as u64))
}
