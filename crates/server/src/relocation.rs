//! Moves of subscribers' homes between regions. `docs/regions.md` has the protocol.
//!
//! `departures` runs in the region that a home leaves, `arrivals` in the region that takes over, `subscription` takes the
//! subscriber's plan along, `adoption` takes over the pools of a lost region, `adopted_sessions` the sessions of its
//! licenses, `forgotten` learns the homes that a restored record lacks, `handover` is the message between the two, and `job`
//! carries on moves that were cut off.

mod adopted_sessions;
mod adoption;
mod adoption_messages;
mod arrivals;
mod departures;
mod forgotten;
mod handover;
mod job;
mod subscription;

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_core::{PoolId, PoolKind, Region, Span, TenantId, UserId};
use seatkeeper_engine::Engine;
use seatkeeper_ledger::Ledger;

use crate::entitlements::Entitlements;
use crate::regions::Regions;
pub(crate) use adopted_sessions::Openings;
pub(crate) use adoption_messages::{
    ADOPTIONS_PATH, AdoptedLicense, AdoptedSessions, BeginAdoption, BegunAdoption, EndAdoption,
    EndedAdoption, HomesPage, HomesQuestion, KnownHomes, LicenseState, MESSAGE_BYTES_MAX, PoolOpening,
    RemainingHome, RemainingHomes, adoption_path,
};
pub(crate) use departures::Moved;
pub(crate) use forgotten::{HERE_PATH, HerePage, HereQuestion};
pub(crate) use handover::{ANCHOR_PATH, ARRIVALS_PATH, AnchorUpdate, Handover, READINESS_PATH, Subscribed};
pub(crate) use job::MoveJob;
pub(crate) use subscription::active_subscription;

/// Moves homes out of this region and into this region.
pub(crate) struct Mover {
    pub(crate) regions: Arc<Regions>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) ledger: Ledger,
    pub(crate) entitlements: Arc<Entitlements>,
    /// The TTL of plans without a TTL.
    pub(crate) ttl_default: Span,
    /// The TTL of licenses without a TTL.
    pub(crate) license_ttl_default: Span,
    pub(crate) openings: Openings,
    /// The peers that did not tell their homes when last asked.
    pub(crate) silent_peers: Mutex<HashSet<Region>>,
}

/// Returns the pool of a subscriber.
fn pool_of(tenant: &TenantId, user: &UserId) -> PoolId {
    PoolId::new(PoolKind::Subscriber, tenant.clone(), user.as_str())
}
