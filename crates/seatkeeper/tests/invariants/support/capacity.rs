//! Capacities for the invariants' tests.

use serde_json::{Value, json};
use uuid::Uuid;

use super::dice::Dice;
use crate::harness::{Client, Harness};

/// The tenant of every capacity.
pub(crate) const TENANT: &str = "6f1d2c3b-0d5e-4f7a-9b8c-1a2b3c4d5e6f";

/// The path of the capacity API.
pub(crate) const PATH: &str = "/api/v1/capacities/sessions";

/// Returns a client of a service that claims capacities for users.
pub(crate) fn client(harness: &Harness) -> Client {
    harness.client_with(harness.token_of(TENANT, "portal", "service"))
}

/// A user and a capacity: one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Capacity {
    user: Uuid,
    capacity: Uuid,
}

impl Capacity {
    /// Draws a new random user and capacity.
    pub(crate) fn drawn(dice: &mut Dice) -> Self {
        let mut id = || Uuid::from_u64_pair(dice.below(u64::MAX), dice.below(u64::MAX));
        Self { user: id(), capacity: id() }
    }

    /// Returns the request body in a tier.
    pub(crate) fn ask(&self, tier: u8) -> Value {
        json!({
            "userObjectId": self.user,
            "tenantObjectId": TENANT,
            "capacityId": self.capacity,
            "sessionKind": tier,
        })
    }

    /// Returns the path that searches the session.
    pub(crate) fn search(&self) -> String {
        format!("{PATH}?userObjectId={}&capacityId={}", self.user, self.capacity)
    }

    /// Returns the pool's name in the ledger.
    pub(crate) fn pool(&self) -> String {
        format!("{}/{}", self.user, self.capacity)
    }
}
