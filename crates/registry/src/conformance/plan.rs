//! What a clause's pool is like.

use seatkeeper_core::{PoolKind, RegistryTime, Seats, Span, Standing, Terms, WhenFull, WhenHeld, WhenNamed};

/// Long enough that nothing is over by chance.
pub(super) const TTL_LONG: Span = Span::from_secs(3_600);

/// A pool's kind, policy and terms. Nothing in it is over within an hour unless it is brief.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) kind: PoolKind,
    pub(super) name: String,
    pub(super) when_full: WhenFull,
    pub(super) when_held: WhenHeld,
    pub(super) brief: bool,
    pub(super) terms: Terms,
}

/// A license: the newcomer is denied, the holder resumes.
pub(super) fn seats(limit: u32) -> Plan {
    Plan::new(PoolKind::License, limit, WhenFull::Deny, WhenHeld::Resume)
}

/// A subscriber's devices: the stalest is evicted, the holder supersedes itself.
pub(super) fn devices(limit: u32) -> Plan {
    Plan::new(PoolKind::Subscriber, limit, WhenFull::Evict, WhenHeld::Supersede)
}

/// A (user, capacity): a higher tier replaces a lower one.
pub(super) fn capacity() -> Plan {
    Plan::new(PoolKind::Capacity, 1, WhenFull::Deny, WhenHeld::Upgrade)
}

impl Plan {
    fn new(kind: PoolKind, limit: u32, when_full: WhenFull, when_held: WhenHeld) -> Self {
        let terms =
            Terms { version: 1, limit: Seats(limit), ttl: TTL_LONG, ends_at: None, standing: Standing::Open };
        Self { kind, name: "pool".to_owned(), when_full, when_held, brief: false, terms }
    }

    /// Only devices move between networks.
    pub(super) fn when_named(&self) -> WhenNamed {
        match self.kind {
            PoolKind::Subscriber => WhenNamed::SameDevice,
            PoolKind::License | PoolKind::Capacity => WhenNamed::SameHolder,
        }
    }

    /// Sessions are over after the harness's TTL.
    pub(super) fn brief(mut self) -> Self {
        self.brief = true;
        self
    }

    /// The entitlement ends then.
    pub(super) fn ending_at(mut self, ends_at: RegistryTime) -> Self {
        self.terms.ends_at = Some(ends_at);
        self
    }

    /// Another pool than the one that is called nothing.
    pub(super) fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The full pool denies, whatever its kind.
    pub(super) fn that_denies(mut self) -> Self {
        self.when_full = WhenFull::Deny;
        self
    }
}
