//! Plans of the pools of clauses.

use seatkeeper_core::{PoolKind, RegistryTime, Seats, Span, Standing, Terms, WhenFull, WhenHeld, WhenNamed};

/// A TTL so long that no session is over by chance.
pub(super) const TTL_LONG: Span = Span::from_secs(3_600);

/// A pool's kind, policy and terms. Unless `brief`, no session is over within an hour.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) kind: PoolKind,
    pub(super) name: String,
    pub(super) when_full: WhenFull,
    pub(super) when_held: WhenHeld,
    pub(super) brief: bool,
    pub(super) terms: Terms,
}

/// Returns a license: a newcomer is denied, a holder resumes.
pub(super) fn seats(limit: u32) -> Plan {
    Plan::new(PoolKind::License, limit, WhenFull::Deny, WhenHeld::Resume)
}

/// Returns a subscriber's devices: the stalest is evicted, a holder supersedes its own session.
pub(super) fn devices(limit: u32) -> Plan {
    Plan::new(PoolKind::Subscriber, limit, WhenFull::Evict, WhenHeld::Supersede)
}

/// Returns a (user, capacity) pool: a higher tier replaces a lower tier.
pub(super) fn capacity() -> Plan {
    Plan::new(PoolKind::Capacity, 1, WhenFull::Deny, WhenHeld::Upgrade)
}

/// Returns the members of a group: a newcomer is denied, a member resumes. The version of the terms is the limit.
pub(super) fn group(members_max: u32) -> Plan {
    let mut plan = Plan::new(PoolKind::Group, members_max, WhenFull::Deny, WhenHeld::Resume);
    plan.terms.version = u64::from(members_max);
    plan
}

impl Plan {
    fn new(kind: PoolKind, limit: u32, when_full: WhenFull, when_held: WhenHeld) -> Self {
        let terms =
            Terms { version: 1, limit: Seats(limit), ttl: TTL_LONG, ends_at: None, standing: Standing::Open };
        Self { kind, name: "pool".to_owned(), when_full, when_held, brief: false, terms }
    }

    /// Returns the match for named sessions: only devices move between networks.
    pub(super) fn when_named(&self) -> WhenNamed {
        match self.kind {
            PoolKind::Subscriber | PoolKind::Group => WhenNamed::SameDevice,
            PoolKind::License | PoolKind::Capacity => WhenNamed::SameHolder,
        }
    }

    /// Sets the TTL to the harness's TTL.
    pub(super) fn brief(mut self) -> Self {
        self.brief = true;
        self
    }

    /// Sets the end of the entitlement.
    pub(super) fn ending_at(mut self, ends_at: RegistryTime) -> Self {
        self.terms.ends_at = Some(ends_at);
        self
    }

    /// Sets the pool's name, for a second pool beside the default.
    pub(super) fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Denies when full, for any kind.
    pub(super) fn that_denies(mut self) -> Self {
        self.when_full = WhenFull::Deny;
        self
    }
}
