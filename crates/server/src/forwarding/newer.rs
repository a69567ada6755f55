//! The newer home in the refusal of a region that is not the home any more.

use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_ledger::homes::Home;
use serde::Deserialize;

use crate::error::Error;
use crate::outbound::PeerFault;
use crate::regions::Regions;

/// The subscriber of a request, if the request's home is a subscriber's.
pub(super) type Subscriber = Option<(TenantId, UserId)>;

/// The refusal of a region that knows another home.
#[derive(Deserialize)]
struct WrongRegion {
    home: u8,
    version: u64,
}

/// Returns whether the refusal of a region names the home. Any other refusal means that the settings of the two regions
/// differ.
pub(super) fn names_home(refusal: &[u8]) -> bool {
    serde_json::from_slice::<WrongRegion>(refusal).is_ok()
}

/// Returns the newer home that `refusal`, the answer 421 of region `asked`, names. A refusal without a newer home means
/// that the settings of the two regions differ: the operator is told.
pub(super) async fn home(
    regions: &Regions,
    subscriber: &Subscriber,
    asked: Home,
    refusal: Vec<u8>,
) -> Result<Home, Error> {
    let told = serde_json::from_slice(&refusal).ok();
    let newer = told.filter(|told: &WrongRegion| told.home > 0 && told.version > asked.version);
    match (subscriber, newer) {
        (Some((tenant, user)), Some(WrongRegion { home, version })) => {
            return regions.follow(tenant, user, asked.region, (Region::new(home), version)).await;
        }
        // An admin names a session whose subscriber this region does not know: nothing is put on record.
        (None, Some(WrongRegion { home, version })) => {
            return Ok(Home { version, ..Home::first(Region::new(home)) });
        }
        (Some(_) | None, None) => {}
    }
    let fault = PeerFault::refused(421, &refusal);
    tracing::error!(
        region = asked.region.number(),
        error = &fault as &dyn std::error::Error,
        "a region refused a forwarded request, so its caller gets 503: compare the [region] settings and the clocks of both regions"
    );
    Err(Error::RegionUnavailable { peer: asked.region, source: fault })
}

/// Returns the error of a request whose home moved on while the request was forwarded.
pub(super) fn moves_too_often(subscriber: &Subscriber) -> Error {
    match subscriber.clone() {
        Some((tenant, user)) => Error::HomeMoving { tenant, user },
        None => Error::TimedOut,
    }
}
