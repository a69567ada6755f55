//! Keeps a registry that can lose its memory in step with the ledger, on a server that is one of several. The protocol
//! is in `docs/failover.md`, with the reasons; here is what a node does for it.
//!
//! - [`Confirm`] reads every half second which epoch each bucket is in, and keeps what it read in [`Bearings`].
//! - [`Probe`] looks just as often how the buckets are in the registry, and says in [`Needs`] which must be rebuilt.
//! - [`Rebuilder`] rebuilds them, step by step.
//!
//! An answer that rests on no commit asks [`Bearings::still`] whether its epoch holds.

mod bearings;
mod breaker;
mod confirm;
mod needs;
mod place;
mod presence;
mod probe;
mod rebuilder;
mod rebuilt;
mod salvage;

pub(crate) use bearings::{Bearings, Known};
pub(crate) use confirm::Confirm;
pub(crate) use needs::Needs;
pub(crate) use place::{Place, place_of};
pub(crate) use presence::Presence;
pub(crate) use probe::{Probe, Reach};
pub(crate) use rebuilder::Rebuilder;
pub(crate) use rebuilt::Rebuilt;

use std::time::Duration;

/// How often a node reads where things stand.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// For how long after it began to read an epoch a node gives answers by it.
const LEASE: Duration = Duration::from_secs(2);
