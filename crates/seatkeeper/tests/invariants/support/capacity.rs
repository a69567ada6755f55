//! Capacities to play on.

use serde_json::{Value, json};
use uuid::Uuid;

use super::dice::Dice;
use crate::house::{Client, House};

/// The tenant of all of them.
pub(crate) const TENANT: &str = "6f1d2c3b-0d5e-4f7a-9b8c-1a2b3c4d5e6f";

/// Where they are put.
pub(crate) const PATH: &str = "/api/v1/capacities/sessions";

/// A client that asks for them.
pub(crate) fn client(house: &House) -> Client {
    house.client_with(house.token_of(TENANT, "portal", "service"))
}

/// One user on one capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Capacity {
    user: Uuid,
    capacity: Uuid,
}

impl Capacity {
    /// One that nobody asked for yet.
    pub(crate) fn drawn(dice: &mut Dice) -> Self {
        let mut id = || Uuid::from_u64_pair(dice.below(u64::MAX), dice.below(u64::MAX));
        Self { user: id(), capacity: id() }
    }

    /// A request for it in this tier.
    pub(crate) fn ask(&self, tier: u8) -> Value {
        json!({
            "userObjectId": self.user,
            "tenantObjectId": TENANT,
            "capacityId": self.capacity,
            "sessionKind": tier,
        })
    }

    /// Where its session is looked for.
    pub(crate) fn search(&self) -> String {
        format!("{PATH}?userObjectId={}&capacityId={}", self.user, self.capacity)
    }

    /// The pool on record.
    pub(crate) fn pool(&self) -> String {
        format!("{}/{}", self.user, self.capacity)
    }
}
