//! Keeps a registry that can lose its memory in step with the ledger, on a server that is one of several. The protocol
//! is in `docs/failover.md`, with the reasons; here is what a node does for it.
//!
//! - [`Confirm`] reads the epoch of each bucket every half second, which renews the [`EpochLease`].
//! - [`Roll`] keeps the lease while the ledger is out of reach for every node, and lets it lapse otherwise.
//! - [`Probe`] looks just as often how the buckets are in the registry, and lists in [`RebuildQueue`] which must be rebuilt.
//! - [`Rebuilder`] rebuilds them, step by step.
//!
//! An answer that rests on no commit asks [`EpochLease::check`] whether the lease covers its epoch.

mod breaker;
mod confirm;
mod epoch_lease;
mod fallbacks;
mod membership;
mod probe;
mod rebuild_queue;
mod rebuild_targets;
mod rebuilder;
mod replay;
mod roll;
mod route;

pub(crate) use confirm::Confirm;
pub(crate) use epoch_lease::{EpochLease, Known};
pub(crate) use membership::Membership;
pub(crate) use probe::{Probe, Reach};
pub(crate) use rebuild_queue::RebuildQueue;
pub(crate) use rebuild_targets::RebuildTargets;
pub(crate) use rebuilder::Rebuilder;
pub(crate) use roll::Roll;
pub(crate) use route::{Route, route_for};

use std::time::Duration;

/// How often a node reads where things stand.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The epoch lease: the time for which a node may answer by an epoch after an instant at which nobody can have raised it.
const LEASE: Duration = Duration::from_secs(2);
