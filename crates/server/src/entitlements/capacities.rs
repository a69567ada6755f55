//! Terms of capacities. A capacity has no entitlement on record: the settings alone determine its terms.

use seatkeeper_core::{Seats, Span, Standing, Terms};

use crate::settings::CapacitiesSettings;

/// Returns the terms of every capacity: a single seat, with the TTL of the settings. The version is constant, because
/// the limit never changes. A claim brings the TTL of its node to the pool under the same version.
pub(crate) fn capacity_terms(settings: &CapacitiesSettings) -> Terms {
    Terms {
        version: 1,
        limit: Seats(1),
        ttl: Span::from_secs(settings.ttl_seconds),
        ends_at: None,
        standing: Standing::Open,
    }
}
