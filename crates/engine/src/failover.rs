//! Keeps a registry that can lose its memory in step with the ledger, on a node in a cluster.
//! `docs/failover.md` explains the protocol. Each part of the protocol has a file:
//!
//! - [`Confirm`] reads the epoch of each bucket every half second, and renews the [`EpochLease`].
//! - [`Roll`] extends the lease while the ledger is unreachable for every node, and lets the lease lapse
//!   otherwise.
//! - [`Probe`] inspects the buckets in the registry every half second, and queues rebuilds in
//!   [`RebuildQueue`].
//! - [`Rebuilder`] rebuilds the queued buckets, step by step.
//!
//! An answer without a commit must pass [`EpochLease::check`]: the lease must cover the answer's epoch.
//!
//! A single server needs none of this. If another process can take the ledger,
//! [`EpochLease::owned`] limits the promises.

mod absences;
mod breaker;
mod confirm;
mod epoch_lease;
mod fallbacks;
mod membership;
mod names;
mod ownership;
mod probe;
mod rebuild_locks;
mod rebuild_queue;
mod rebuild_targets;
mod rebuilder;
mod replay;
mod retries;
mod roll;
mod route;
mod survey;

pub(crate) use confirm::Confirm;
pub(crate) use epoch_lease::{EpochLease, KnownEpochs};
pub(crate) use membership::Membership;
pub(crate) use ownership::PROOF_AGE_MAX;
pub(crate) use probe::{Probe, Reach};
pub(crate) use rebuild_queue::RebuildQueue;
pub(crate) use rebuild_targets::RebuildTargets;
pub(crate) use rebuilder::Rebuilder;
pub(crate) use roll::Roll;
pub(crate) use route::{Route, route_for};

use std::time::Duration;

/// The interval between two readings of the ledger, and between two probes of the registry.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The epoch lease: a node may answer in an epoch for this time after an instant at which the epoch was
/// certainly current.
const LEASE: Duration = Duration::from_secs(2);
