//! The PostgreSQL registry, the fallback for Redis. Memory and clock are the ledger's own.

use super::redis::{BUCKET_LEASE, TTL};
use super::rules::BucketRules;

/// The bucket in the PostgreSQL registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Standby {
    /// The served epoch of the bucket; 0 if not served.
    pub(super) served_epoch: u8,
    pub(super) lease_left: u8,
    /// Ticks until the session's TTL is over.
    pub(super) session_left: u8,
}

impl Standby {
    pub(super) const UNUSED: Self = Self { served_epoch: 0, lease_left: 0, session_left: 0 };

    pub(super) fn is_leased(&self, rules: &BucketRules) -> bool {
        self.lease_left > 0 || !rules.standby_lease
    }

    /// Renews or restores the session.
    pub(super) fn renew_session(&mut self) {
        self.session_left = TTL;
    }

    pub(super) fn renew_lease(&mut self) {
        self.lease_left = BUCKET_LEASE;
    }

    /// Lets the clock jump by more than a TTL; `None` if the session's TTL is over already.
    pub(super) fn jump(&mut self) -> Option<()> {
        (self.session_left > 0).then_some(())?;
        (self.lease_left, self.session_left) = (0, 0);
        Some(())
    }

    pub(super) fn tick(&mut self) {
        self.lease_left = self.lease_left.saturating_sub(1);
        self.session_left = self.session_left.saturating_sub(1);
    }
}
