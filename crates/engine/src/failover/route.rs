//! Routes each kind of pool in each mode to a registry: the table of modes in `docs/failover.md`. A new kind
//! of pool gets a line in `route_for`.

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::buckets::BucketMode;

/// The registry that serves a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The configured registry.
    Main,
    /// The registry that serves in place of `Main`.
    Standby,
    /// The registry of sessions without heartbeats, in every mode.
    Lasting,
    /// The memory of the node that gets the request.
    NodeLocal,
    /// No registry: the pool is denied.
    Nowhere,
}

impl Route {
    /// Returns the mode under whose name operators know the route: `Ledger` for PostgreSQL in place of the registry, `Allow`
    /// for each node by itself, `Deny` for no registry.
    pub(crate) fn mode(self) -> BucketMode {
        match self {
            Self::Main | Self::Lasting => BucketMode::Registry,
            Self::Standby => BucketMode::Ledger,
            Self::NodeLocal => BucketMode::Allow,
            Self::Nowhere => BucketMode::Deny,
        }
    }
}

/// Returns the route of pools of this kind in buckets of this mode.
pub(crate) fn route_for(kind: PoolKind, mode: BucketMode) -> Route {
    match (kind, mode) {
        (PoolKind::Capacity, _) => Route::Lasting,
        (PoolKind::License | PoolKind::Subscriber | PoolKind::Group, BucketMode::Registry) => Route::Main,
        (PoolKind::License, BucketMode::Ledger | BucketMode::Allow) => Route::Standby,
        (PoolKind::Subscriber, BucketMode::Allow) => Route::NodeLocal,
        // A node by itself sees neither the other members of a group nor its screen.
        (PoolKind::Group, BucketMode::Ledger | BucketMode::Allow | BucketMode::Deny)
        | (PoolKind::Subscriber, BucketMode::Ledger)
        | (PoolKind::License | PoolKind::Subscriber, BucketMode::Deny) => Route::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of modes in `docs/failover.md`.
    #[test]
    fn the_mode_of_a_kind_is_the_mode_that_serves_the_kind() {
        use BucketMode::{Allow, Deny, Ledger, Registry};
        let kinds = [PoolKind::License, PoolKind::Subscriber, PoolKind::Group, PoolKind::Capacity];
        for (mode, served) in [
            (Registry, [Registry, Registry, Registry, Registry]),
            (Ledger, [Ledger, Deny, Deny, Registry]),
            (Allow, [Ledger, Allow, Deny, Registry]),
            (Deny, [Deny, Deny, Deny, Registry]),
        ] {
            assert_eq!(kinds.map(|kind| route_for(kind, mode).mode()), served, "{mode:?}");
        }
    }
}
