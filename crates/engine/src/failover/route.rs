//! Which registry serves which kind of pool in which mode: the table of modes in `docs/failover.md`.

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::buckets::BucketMode;

/// What serves a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The registry that is configured.
    Main,
    /// What takes its place.
    Standby,
    /// What serves sessions without heartbeats, whatever becomes of the others.
    Lasting,
    /// The memory of whichever node is asked.
    NodeLocal,
    /// Nothing.
    Nowhere,
}

/// What serves pools of this kind in buckets of this mode.
pub(crate) fn route_for(kind: PoolKind, mode: BucketMode) -> Route {
    match (kind, mode) {
        (PoolKind::Capacity, _) => Route::Lasting,
        (PoolKind::License | PoolKind::Subscriber, BucketMode::Registry) => Route::Main,
        (PoolKind::License, BucketMode::Ledger | BucketMode::Allow) => Route::Standby,
        (PoolKind::Subscriber, BucketMode::Allow) => Route::NodeLocal,
        (PoolKind::Subscriber, BucketMode::Ledger)
        | (PoolKind::License | PoolKind::Subscriber, BucketMode::Deny) => Route::Nowhere,
    }
}
