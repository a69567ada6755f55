//! Which registry serves which kind of pool in which mode: the table of modes in `docs/failover.md`.

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::BucketMode;

/// What serves a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The registry that is configured.
    Main,
    /// What takes its place.
    Standby,
    /// What serves sessions without heartbeats, whatever becomes of the others.
    Lasting,
    /// The memory of whichever node is asked.
    Alone,
    /// Nothing.
    Nowhere,
}

/// What serves pools of this kind in buckets of this mode.
pub(crate) fn place_of(kind: PoolKind, mode: BucketMode) -> Place {
    match (kind, mode) {
        (PoolKind::Capacity, _) => Place::Lasting,
        (PoolKind::License | PoolKind::Subscriber, BucketMode::Registry) => Place::Main,
        (PoolKind::License, BucketMode::Ledger | BucketMode::Allow) => Place::Standby,
        (PoolKind::Subscriber, BucketMode::Allow) => Place::Alone,
        (PoolKind::Subscriber, BucketMode::Ledger)
        | (PoolKind::License | PoolKind::Subscriber, BucketMode::Deny) => Place::Nowhere,
    }
}
