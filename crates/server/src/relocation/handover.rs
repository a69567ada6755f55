//! The messages between the regions of a move.

use garde::Validate;
use seatkeeper_core::{Particulars, RegistryTime, Session, TenantId, UserId};
use seatkeeper_ledger::KeptAnswer;
use seatkeeper_ledger::plans::PlanName;
use serde::{Deserialize, Serialize};

/// The path at which a target says whether a home may arrive.
pub(crate) const READINESS_PATH: &str = "/api/v1/regions/homes/readiness";

/// The path at which a target takes over a home.
pub(crate) const ARRIVALS_PATH: &str = "/api/v1/regions/homes/arrivals";

/// The path at which an anchor hears of a home that has moved.
pub(crate) const ANCHOR_PATH: &str = "/api/v1/regions/homes/moved";

/// A home that is handed over, or about to be.
#[derive(Serialize, Deserialize, Validate)]
pub(crate) struct Handover {
    #[garde(length(chars, min = 1, max = 255))]
    pub(crate) tenant: String,
    #[garde(length(chars, min = 1, max = 255))]
    pub(crate) user: String,
    /// The version of the home in its target.
    #[garde(range(min = 2))]
    pub(crate) version: u64,
    /// The number of the pool's last event in the region that the home leaves.
    #[garde(skip)]
    pub(crate) seq: u64,
    /// The limit of the pool in the region that the home leaves.
    #[garde(skip)]
    pub(crate) limit: u32,
    /// The live sessions.
    #[garde(skip)]
    pub(crate) sessions: Vec<(Session, Particulars)>,
    /// The active subscription, if any.
    #[garde(skip)]
    pub(crate) subscription: Option<Subscribed>,
    /// The kept answers of the writes to the subscription.
    #[garde(skip)]
    pub(crate) answers: Vec<KeptAnswer>,
}

/// The part of a subscription that moves along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subscribed {
    pub(crate) plan: PlanName,
    pub(crate) starts_at: RegistryTime,
    pub(crate) ends_at: Option<RegistryTime>,
}

/// A home that has moved, or is about to move on, for the tenant's anchor.
#[derive(Serialize, Deserialize, Validate)]
pub(crate) struct AnchorUpdate {
    #[garde(length(chars, min = 1, max = 255))]
    pub(crate) tenant: String,
    #[garde(length(chars, min = 1, max = 255))]
    pub(crate) user: String,
    /// The new home.
    #[garde(range(min = 1))]
    pub(crate) region: u8,
    /// The version of the home.
    #[garde(range(min = 1))]
    pub(crate) version: u64,
}

impl Handover {
    /// Returns the subscriber.
    pub(crate) fn subscriber(&self) -> (TenantId, UserId) {
        (TenantId::new(self.tenant.as_str()), UserId::new(self.user.as_str()))
    }
}
